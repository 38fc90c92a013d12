#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the npm package mlo-compiler, same files same bytes: python3 tools/npm.py VERSION mlo.wasm mlo.js FOLDER. Prints its path."""
import gzip, io, json, os, sys, tarfile

version, wasm, glue, folder = sys.argv[1:]
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(path):
    with open(path, "rb") as f: return f.read()


package = {"name": "mlo-compiler", "version": version, "description": "A transformer exported as ONNX in, a verified streaming Verilog accelerator out", "license": "MIT",
           "main": "index.js", "engines": {"node": ">=18"}, "keywords": ["onnx", "verilog", "fpga", "transformer", "compiler"]}
files = {"package.json": json.dumps(package, indent=2).encode() + b"\n", "mlo.js": read(glue), "mlo.wasm": read(wasm)}
for name, at in ("index.js", "npm/index.js"), ("library.js", "web/library.js"), ("README.md", "docs/javascript.md"), ("LICENSE", "LICENSE"), ("LICENSE.cJSON", "build/third/cjson/LICENSE"), ("LICENSE.nanopb", "build/third/LICENSE.nanopb"):
    files[name] = read(os.path.join(root, at))
packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
    for name, data in files.items():
        entry = tarfile.TarInfo("package/" + name)
        entry.size, entry.mode, entry.mtime = len(data), 0o644, 499162500           # as npm pack dates them
        tar.addfile(entry, io.BytesIO(data))
out = os.path.join(folder, "mlo-compiler-%s.tgz" % version)
with open(out, "wb") as f: f.write(gzip.compress(packed.getvalue(), 9, mtime=0))
print(out)
