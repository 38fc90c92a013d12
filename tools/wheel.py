#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the wheel of mlo_compiler, same files same bytes: python3 tools/wheel.py VERSION libmlo.so mlo FOLDER. Prints its path.

Its tag says which glibc it needs (manylinux_2_29 = 2.29 or newer), by the versions that the library and the program ask for."""
import base64, hashlib, os, re, subprocess, sys, sysconfig, zipfile

version, library, program, folder = sys.argv[1:]
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def tag():
    symbols = "".join(subprocess.run(["objdump", "-T", f], capture_output=True, text=True).stdout for f in (library, program))
    newest = max(((int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)), default=None)
    machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return "py3-none-" + (machine.replace("linux", "manylinux_%d_%d" % newest) if newest and machine.startswith("linux") else machine)


def read(path):
    with open(path, "rb") as f: return f.read()


info, kind = "mlo_compiler-%s.dist-info" % version, tag()
metadata = """Metadata-Version: 2.1
Name: mlo-compiler
Version: %s
Summary: A transformer exported as ONNX in, a verified streaming Verilog accelerator out
License: MIT
Requires-Python: >=3.8
Provides-Extra: arrays
Requires-Dist: numpy; extra == "arrays"
Description-Content-Type: text/markdown

""" % version
third = os.path.join(root, "build/third")
files = {
    "mlo_compiler/__init__.py": read(os.path.join(root, "python/mlo_compiler/__init__.py")),
    "mlo_compiler/libmlo.so": read(library),
    "mlo_compiler/mlo": read(program),
    info + "/METADATA": metadata.encode() + read(os.path.join(root, "docs/python.md")),
    info + "/WHEEL": ("Wheel-Version: 1.0\nGenerator: mlo\nRoot-Is-Purelib: false\nTag: %s\n" % kind).encode(),
    info + "/entry_points.txt": b"[console_scripts]\nmlo = mlo_compiler:main\n",
    info + "/licenses/LICENSE": read(os.path.join(root, "LICENSE")),
    info + "/licenses/LICENSE.cJSON": read(os.path.join(third, "cjson/LICENSE")),
    info + "/licenses/LICENSE.nanopb": read(os.path.join(third, "LICENSE.nanopb")),
}
record = "".join("%s,sha256=%s,%d\n" % (name, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), len(data)) for name, data in files.items())
files[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()
os.makedirs(folder, exist_ok=True)
out = os.path.join(folder, "mlo_compiler-%s-%s.whl" % (version, kind))
with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
    for name, data in files.items():
        entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100755 if name.endswith(("/mlo", ".so")) else 0o100644) << 16
        z.writestr(entry, data)
print(out)
