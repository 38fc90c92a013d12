#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make install: what lies where, what the shared library exports, and how other programs find it; make uninstall leaves nothing. make wheel: it needs
nothing but Python, and says what the command line says. make deb: packages without a complaint of lintian's; make dist: the source, twice the same bytes.

    python tests/test_package.py path/to/mlo [CHECK ...]"""
import os, re, shutil, subprocess, tarfile
import harness as t

MAKE = ["make", "-s", "CFLAGS=-O0"]
PROGRAM = '#include "mlo.h"\n#include <stdio.h>\nint main(int argc, char **argv) {\n    mlo *m = mlo_open(NULL);\n    if (argc > 1 && !mlo_load(m, argv[1]) && !mlo_to(m, "roll")) puts(mlo_summary(m));\n' \
          '    int failed = mlo_failed(m);\n    mlo_close(m);\n    return failed != 0;\n}\n'
CMAKE = 'cmake_minimum_required(VERSION 3.10)\nproject(user C CXX)\nfind_package(mlo 0.1 REQUIRED)\nadd_executable(shared user.c)\ntarget_link_libraries(shared mlo::mlo)\nadd_executable(fixed user.c)\n' \
        'target_link_libraries(fixed mlo::static)\nadd_executable(plus plus.cpp)\ntarget_link_libraries(plus mlo::mlo)\n'


def run(*command, where=None, **env):
    return subprocess.run(command, cwd=where, env=dict(os.environ, **env), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=800)


def source():
    """The project as it is unpacked, mlo.c made anew, so that nothing is written into this one."""
    d = t.at("source")
    if not os.path.exists(d):
        os.makedirs(d)
        for f in "src", "cli", "share", "verilog", "tools", "python", "docs": shutil.copytree(os.path.join(t.root, f), os.path.join(d, f))
        for f in "Makefile", "main.c", "mlo.h", "LICENSE", "CHANGELOG.md": shutil.copy(os.path.join(t.root, f), d)
        shutil.copy(t.amalgamation(), d)
        os.utime(os.path.join(d, "mlo.c"), (2e9, 2e9))
    return d


def prefix():
    """Where it is installed, once."""
    d = t.at("prefix")
    if not os.path.exists(d):
        p = run(*MAKE, "install", "PREFIX=" + d, where=source())
        if p.returncode: raise RuntimeError(p.stderr[-400:])
    return d


def files(d): return {os.path.relpath(os.path.join(a, f), d) for a, _, names in os.walk(d) for f in names}


def check_files():
    p = run(prefix() + "/bin/mlo", "--version")
    version = p.stdout.split()[-1]
    t.case("the program", "" if not p.returncode else p.stderr or "it says nothing")
    want = {"bin/mlo", "include/mlo.h", "lib/libmlo.a", "lib/libmlo.so." + version, "lib/libmlo.so." + version.split(".")[0], "lib/libmlo.so", "lib/pkgconfig/mlo.pc", "lib/cmake/mlo/mlo-config.cmake", "lib/cmake/mlo/mlo-config-version.cmake",
            "share/mlo/mlo.c", "share/man/man1/mlo.1", "share/bash-completion/completions/mlo", "share/zsh/site-functions/_mlo", "share/fish/vendor_completions.d/mlo.fish"}
    t.case("what lies where", " ".join(want ^ files(prefix())))
    t.case("no hole is left", " ".join(f for f in want if f.endswith((".pc", ".cmake")) and "@" in t.read(os.path.join(prefix(), f)).decode()))
    staged = t.at("staged")
    p = run(*MAKE, "install", "DESTDIR=" + staged, "PREFIX=/usr", where=source())
    t.case("DESTDIR", p.stderr[-300:] if p.returncode else " ".join({"usr/" + f for f in want} ^ files(staged)))
    t.case("DESTDIR is named nowhere", " ".join(f for f in files(staged) if staged.encode() in t.read(os.path.join(staged, f))))
    other = os.path.join(staged, "usr/share/other")
    with open(other, "w") as f: f.write("somebody else's")
    p = run(*MAKE, "uninstall", "DESTDIR=" + staged, "PREFIX=/usr", where=source())
    t.case("make uninstall leaves what is not its own", p.stderr[-300:] if p.returncode or files(staged) != {"usr/share/other"} or os.path.exists(os.path.join(staged, "usr/share/mlo")) else "")


# what a bare machine lacks and a script must not have: this one asks nobody, and writes down who was asked
ASKED = """#!/bin/sh
echo "$(basename "$0") $*" >> "%s"
case "$(basename "$0") $*" in sudo*) exec "$@";; *install*make*) ln -s "%s" "$(dirname "$0")/make";; esac
"""


def check_install():
    """tools/install.sh, README's first command: nothing but what is missing is asked for; what is then there runs. Without make, apt-get brings it first."""
    if not t.have("tools/install.sh", "make", "dpkg-query"): return
    d, log = source(), t.at("asked.log")
    os.makedirs(t.at("bin"))
    for name in "apt-get", "sudo": os.chmod(t.write("bin/" + name, ASKED % (log, shutil.which("make"))), 0o755)
    for tool in "sh id mkdir dirname basename env ln sed rm install grep cat cc ar mv sort find tr awk git date uname touch chmod expr cp test printf ls gcc as ld".split():
        if shutil.which(tool): os.symlink(shutil.which(tool), os.path.join(t.at("bin"), tool))
    # a machine that says that everything is there
    os.chmod(t.write("bin/dpkg-query", "#!/bin/sh\necho install ok installed\n"), 0o755)
    p = run("sh", d + "/tools/install.sh", PATH=t.at("bin"), PREFIX=t.at("mine"), CFLAGS="-O0")
    asked = t.read(log).decode().splitlines() if os.path.exists(log) else []
    t.case("tools/install.sh: a machine without make", p.stderr[-300:] if p.returncode else "" if [a for a in asked if "apt-get install" in a or a.startswith("apt-get update")] and not any("g++" in a for a in asked) else str(asked))
    q = run(t.at("mine/bin/mlo"), "--version") if not p.returncode else p
    t.case("tools/install.sh: what it installed", "" if not q.returncode and q.stdout in p.stdout else q.stderr[-200:] + p.stdout[-200:])
    os.remove(log)
    p = run("sh", d + "/tools/install.sh", PATH=t.at("bin"), PREFIX=t.at("mine"), CFLAGS="-O0")
    t.case("tools/install.sh again: nothing is asked for", p.stderr[-300:] if p.returncode else t.read(log).decode() if os.path.exists(log) else "")


def check_symbols():
    """The functions of mlo.h, each with the version; nothing else."""
    if not t.have("symbols", "nm", "readelf"): return
    library = os.path.realpath(prefix() + "/lib/libmlo.so")
    out = run("nm", "-D", "--defined-only", library).stdout
    names = dict(re.findall(r" [TDBRV] (\w+)@@(\S+)", out))
    t.case("exported", " ".join(set(names) ^ t.public_names()))
    t.case("versions", "" if set(names.values()) == {"MLO_0.1"} else str(set(names.values())))
    loose = re.findall(r" [TDBRV] (\w+)$", out, re.M)
    t.case("nothing without a version", " ".join(loose))
    t.case("soname", "" if "[libmlo.so.0]" in run("readelf", "-d", library).stdout else "another")


def works(name, program):
    p = run(program, t.model("bert-1"), LD_LIBRARY_PATH=prefix() + "/lib")
    t.case(name, "" if not p.returncode and '"loops"' in p.stdout else f"{p.returncode} {p.stderr[-200:]}")


def check_pkgconfig():
    if not t.have("pkg-config", "pkg-config", "gcc", "g++"): return
    asked = lambda *more: run("pkg-config", *more, "mlo", PKG_CONFIG_PATH=prefix() + "/lib/pkgconfig").stdout.split()
    t.write("user.c", PROGRAM)
    t.write("plus.cpp", PROGRAM)
    for name, command in ("shared, C", ["gcc", "-std=c99", "-Wall", "-Werror", t.at("user.c"), *asked("--cflags", "--libs")]), ("shared, C++", ["g++", "-Wall", "-Werror", t.at("plus.cpp"), *asked("--cflags", "--libs")]), \
            ("static, C", ["gcc", t.at("user.c"), *asked("--cflags"), prefix() + "/lib/libmlo.a", *[f for f in asked("--libs", "--static") if f != "-lmlo"]]):
        out = t.at("user-" + name.replace(", ", "-"))
        p = run(*command, "-o", out)
        if p.returncode: t.case(name, p.stderr[-300:])
        else: works(name, out)


def check_cmake():
    if not t.have("cmake", "cmake", "g++"): return
    d = t.at("cmake")
    os.makedirs(d)
    for f, s in ("CMakeLists.txt", CMAKE), ("user.c", PROGRAM), ("plus.cpp", PROGRAM): t.write("cmake/" + f, s)
    p = run("cmake", "-S", d, "-B", d + "/b", "-DCMAKE_PREFIX_PATH=" + prefix())
    q = run("cmake", "--build", d + "/b") if not p.returncode else p
    if q.returncode: return t.case("cmake", (q.stdout + q.stderr)[-400:])
    for program in "shared", "fixed", "plus": works("cmake: " + program, d + "/b/" + program)
    t.write("cmake/CMakeLists.txt", CMAKE.replace("mlo 0.1", "mlo 9"))
    p = run("cmake", "-S", d, "-B", d + "/c", "-DCMAKE_PREFIX_PATH=" + prefix())
    t.case("cmake: a version that is not there", "" if p.returncode and "9" in p.stderr else "taken")


def check_deb():
    """Three packages, of which lintian says nothing; unpacked, the program runs with the library, and pkg-config leads to both."""
    if not t.have("deb", "dpkg-deb", "dpkg-architecture", "dpkg-shlibdeps", "lintian", "pkg-config", "gcc"): return
    p = run(*MAKE, "deb", where=source())
    debs = p.stdout.split()
    if p.returncode or len(debs) != 3: return t.case("make deb", (p.stdout + p.stderr)[-400:])
    t.case("make deb")
    first = [t.read(d) for d in debs]
    p = run("lintian", "--fail-on", "error,warning", "--allow-root", *debs)
    t.case("lintian", p.stdout + p.stderr if p.returncode or re.search(r"^[EW]: ", p.stdout, re.M) else "")
    run(*MAKE, "deb", where=source())
    t.case("the same packages again", " ".join(os.path.basename(d) for d, b in zip(debs, first) if t.read(d) != b))
    for d in debs: run("dpkg-deb", "-x", d, t.at("unpacked"))
    usr = t.at("unpacked/usr")
    lib = os.path.join(usr, "lib", run("dpkg-architecture", "-qDEB_HOST_MULTIARCH").stdout.strip())
    p = run(usr + "/bin/mlo", "--version")
    t.case("their program", p.stderr if p.returncode else "")
    flags = run("pkg-config", "--define-prefix", "--cflags", "--libs", "mlo", PKG_CONFIG_PATH=lib + "/pkgconfig", PKG_CONFIG_SYSROOT_DIR="").stdout.replace("${prefix}", usr).split()
    flags = ["-I" + usr + "/include", "-L" + lib, *flags]
    p = run("gcc", t.write("unpacked.c", PROGRAM), *flags, "-o", t.at("unpacked-user"))
    q = run(t.at("unpacked-user"), t.model("bert-1"), LD_LIBRARY_PATH=lib) if not p.returncode else p
    t.case("their library", q.stderr[-300:] if q.returncode or '"loops"' not in q.stdout else "")


def check_dist():
    """Every file that git knows, as it is; the same bytes wherever and whenever."""
    if run("git", "-C", t.root, "rev-parse").returncode: return t.absent("dist", "this is no clone of git's")
    made = os.path.join(t.root, run(*MAKE, "dist", where=t.root, SOURCE_DATE_EPOCH="1").stdout.strip())
    first = t.read(made)
    p = run("sh", "-c", "umask 077; exec make -s dist", where=t.root, SOURCE_DATE_EPOCH="1", TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    t.case("make dist, twice the same bytes", p.stderr if p.returncode or t.read(made) != first else "")
    with tarfile.open(made) as f: inside = {m.name.split("/", 1)[1]: f.extractfile(m).read() for m in f if m.isfile()}
    os.remove(made)
    known = [f for f in run("git", "-C", t.root, "ls-files").stdout.splitlines() if os.path.isfile(os.path.join(t.root, f))]
    t.case("every file, as it is", " ".join(f for f in known if inside.get(f) != t.read(os.path.join(t.root, f)))[:300] or " ".join(set(inside) - set(known))[:300])


# in a fresh environment, without numpy and onnx; prints a line for each thing that is not as it should be
PYTHON = r"""
import json, sys, threading, warnings
import mlo_compiler as mlo
model, folder = sys.argv[1:]
warnings.simplefilter("ignore")
def same(what, got, want): got == want or print(what + ":", repr(got)[:200], "and not", repr(want)[:200])
def fails(code, f, *words):
    try: f()
    except mlo.Error as e:
        same("code", e.code, code)
        for w in words: w in e.what + e.remedy or print(w, "is not in", e.args[0])
        return e
    print(code, "was not raised")
same("numpy", mlo.numpy, None)
for stage in mlo.STAGES: open(folder + "/" + stage + ".json", "wb").write(getattr(mlo, stage)(model).text)
rolled = mlo.roll(model)
core = mlo.fold(mlo.lower(rolled, calib=mlo.draw(model, 3)), pe=2, simd=2)
inside = mlo.roll(open(model, "rb").read())                        # weights in the JSON
same("of bytes", inside.onnx() == rolled.onnx(), True)
same("check", mlo.check(rolled, model), True)
x = mlo.draw(model)
(name, (kind, shape)), = mlo.signature(model).items()
same("drawn", (list(x), x[name].format, x[name].shape), ([name], {"float32": "f", "int64": "q"}[kind], shape))
y = mlo.run(rolled, x)
same("run", [(k, a.format, a.shape) for k, a in y.items()], [(k, "f", s) for k, (_, s) in mlo.signature(model, outputs=True).items()])
same("of floats", {k: a.tobytes() for k, a in mlo.run(model, [x[name]]).items()}, {k: a.tobytes() for k, a in y.items()})
build = mlo.emit(core, folder + "/build")
same("manifest", build.manifest["predicted_cycles"], mlo.report(core, "cycles")["cycles"])
mlo.emit(core, folder + "/build")                                  # over the one before
e = fails("MLO_E_FOLDING", lambda: mlo.fold(rolled, target_cycles=1), "target-cycles")
same("stage", (e.stage, e.status, bool(e.remedy)), ("fold", 1, True))
fails("MLO_E_USAGE", lambda: mlo.fold(model, no_such=1), "no-such")
fails("MLO_E_IO", lambda: mlo.read("/nowhere.onnx"), "/nowhere.onnx")
fails("MLO_E_FORMAT", lambda: mlo.read(b"not a model"))
fails("MLO_E_MISMATCH", lambda: mlo.check(core, model))
try: mlo.run(model, [memoryview(b"x").cast("c")])
except TypeError as e: pass
else: print("an array of characters was taken")
try: mlo.emit(core, folder + "/read.json")
except OSError: pass
else: print("a file became a folder")
said = []
threads = [threading.Thread(target=lambda: said.append(mlo.roll(model).text)) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
same("threads", said, [rolled.text] * 4)
"""


SIZES = """#include <stdio.h>
#include "mlo.h"
int main(void) { printf("%zu %zu %zu\\n", sizeof(mlo_error), sizeof(mlo_array), sizeof(mlo_desc)); return 0; }
"""


def check_wheel():
    """In an environment with nothing else in it: every stage's bytes are the command line's, arrays come and go, failures are exceptions."""
    if not t.have("wheel", "objdump", "apt-get", "dpkg-source"): return
    p = run(*MAKE, "wheel", where=source())
    made = p.stdout.strip()
    if p.returncode: return t.case("make wheel", p.stderr[-400:])
    wheel = os.path.join(source(), made)
    t.case("make wheel", "" if os.path.getsize(wheel) < 4 << 20 else "%d bytes" % os.path.getsize(wheel))
    first = t.read(wheel)
    run(*MAKE, "wheel", where=source())
    t.case("the same bytes again", "" if t.read(wheel) == first else "others")
    env = t.at("fresh")
    p = run("python3", "-m", "venv", env)
    p = p if p.returncode else run(env + "/bin/pip", "install", "-q", "--no-index", "--disable-pip-version-check", wheel)
    if p.returncode: return t.case("pip install", p.stderr[-400:])
    os.makedirs(t.at("python"))
    p = run(env + "/bin/python", t.write("wheel.py", PYTHON), t.model("bert-1"), t.at("python"))
    t.case("what Python says", p.stdout + p.stderr[-500:] + ("" if not p.returncode else "status %d" % p.returncode))
    p = run("gcc", "-I" + t.root, t.write("sizes.c", SIZES), "-o", t.at("sizes"))
    sizes = p.stderr if p.returncode else run(t.at("sizes")).stdout
    q = run(env + "/bin/python", "-c", "import ctypes, mlo_compiler as m; print(*(ctypes.sizeof(c) for c in (m.Failure, m.Array, m.Desc)))")
    t.case("its structures are mlo.h's", "" if q.stdout == sizes else "%s and not %s" % (q.stdout + q.stderr[-200:], sizes))
    for stage in "read", "scope", "extract", "roll", "quantize", "lower", "fold":
        got = t.read(t.at("python/%s.json" % stage)) if os.path.exists(t.at("python/%s.json" % stage)) else b""
        t.case("%s: as the command line" % stage, "" if got and got == t.good(stage, t.model("bert-1")) else "%d other bytes" % len(got))
    p = run(env + "/bin/mlo", "--version")
    t.case("its program", "" if not p.returncode and p.stdout.startswith("mlo ") else p.stdout + p.stderr)
    needs = set(re.findall(r"NEEDED\s+(\S+)", "".join(run("objdump", "-p", os.path.join(d, f)).stdout for d, _, names in os.walk(env) for f in names if f in ("libmlo.so", "mlo"))))
    t.case("what it needs", " ".join(x for x in needs if not re.match(r"(libc|libm|libpthread|libmlo|ld-linux.*)\.so", x)) or ("" if "libmlo.so" in needs else "no library"))


if __name__ == "__main__":
    t.main(check_files, check_install, check_symbols, check_pkgconfig, check_cmake, check_deb, check_dist, check_wheel, floor=39)
