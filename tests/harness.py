# SPDX-License-Identifier: MIT
"""harness: what test scripts share. Cases and their lines, models, running the command line, building C.

    import harness as t
    def check_sums():
        t.case("it adds", "" if got == want else f"{got}")  # prints `ok it adds`, or `FAIL it adds: ...`
    t.main(check_sums, ...)                                 # runs them, prints the counts, exits

A script is called as `python test_X.py path/to/mlo [NAME ...]`; NAMEs pick checks by substring ("sums").
"""
import atexit, glob, hashlib, os, shutil, subprocess, sys, tempfile, traceback
import numpy as np

tests = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(tests)
mlo = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(root, "mlo")
tmp = tempfile.mkdtemp(prefix="mlo-test-")
atexit.register(shutil.rmtree, tmp, True)
count = {"ok": 0, "FAIL": 0, "skip": 0}
shared = os.environ.get("MLO_MODELS", os.path.join(root, "..", "shared", "models"))      # more models, where they are found
LIBS = ["-lprotobuf-nanopb", "-lcjson", "-lm"]
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
SANITIZE = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
os.environ.update(ASAN_OPTIONS="exitcode=99:detect_leaks=1:allocator_may_return_null=1", UBSAN_OPTIONS="exitcode=99:print_stacktrace=1")


# ---- cases -----------------------------------------------------------------------------------------------------------------------

def line(word, name, why=""):
    count[word] += 1
    print(word + " " + name + (": " + " ".join(str(why).split())[:500] if why else ""), flush=True)


def case(name, why=""):
    """A case that passed when `why` is empty."""
    line("FAIL" if why else "ok", name, why)


def skip(name, why): line("skip", name, why)
def note(text): print("    " + text, flush=True)


def have(name, *tools):
    """Whether all these programs are here; if not, `name` is skipped."""
    missing = [x for x in tools if not shutil.which(x)]
    if missing: skip(name, ", ".join(missing) + " not installed")
    return not missing


def main(*checks):
    """Runs the checks that the command line picks. An exception in one is a failed case; the others still run."""
    for check in checks:
        name = check.__name__.replace("check_", "")
        if sys.argv[2:] and not any(p in name for p in sys.argv[2:]): continue
        try:
            check()
        except Exception as e:
            where = traceback.extract_tb(e.__traceback__)[-1]
            case(name, "%s: %s (%s:%s)" % (type(e).__name__, e, os.path.basename(where.filename), where.lineno))
    print("%d passed, %d failed, %d skipped" % (count["ok"], count["FAIL"], count["skip"]))
    sys.exit(count["FAIL"] > 0)


# ---- models ----------------------------------------------------------------------------------------------------------------------

def models():
    """name -> path of every model of the project, and of ../shared where that exists."""
    found = {}
    for folder in (shared, os.path.join(tests, "models"), os.path.join(root, "examples")):
        found.update((os.path.basename(p)[:-5], os.path.abspath(p)) for p in sorted(glob.glob(os.path.join(folder, "*.onnx"))))
    return found


def model(name):
    path = models().get(name)
    if not path: raise FileNotFoundError("no model %s.onnx in examples/ or tests/models/" % name)
    return path


def calibration(name, samples=2, seed=1):
    """An npz with samples of a model's inputs, as the exported models take them."""
    import onnx
    rng = np.random.default_rng(seed)
    arrays = {}
    for v in onnx.load(model(name), load_external_data=False).graph.input:
        dims = [samples] + [d.dim_value or 32 for d in v.type.tensor_type.shape.dim][1:]
        if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT: arrays[v.name] = rng.standard_normal(dims).astype(np.float32)
        elif "mask" in v.name: arrays[v.name] = (np.arange(dims[-1]) < np.arange(dims[-1], dims[-1] - samples, -1)[:, None]).astype(np.int64)
        else: arrays[v.name] = rng.integers(0, 300, dims)
    path = at("%s-%d-%d.npz" % (name, samples, seed))
    np.savez(path, **arrays)
    return path


# ---- files, programs ---------------------------------------------------------------------------------------------------------------

def at(name): return os.path.join(tmp, name)


def write(name, data):
    with open(at(name), "wb") as f: f.write(data if isinstance(data, bytes) else data.encode())
    return at(name)


def read(path):
    with open(path, "rb") as f: return f.read()


def call(*args, program=None, **options):
    """Runs mlo. The result has returncode, and stdout and stderr as bytes unless text=True."""
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if options["stdin"] is None: del options["stdin"]
    if "stdout" not in options and "stderr" not in options: options["capture_output"] = True
    return subprocess.run([program or mlo, *map(str, args)], timeout=options.pop("timeout", 900), **options)


def good(*args, **options):
    """Runs mlo, which must succeed. Returns stdout."""
    p = call(*args, **options)
    if p.returncode: raise RuntimeError("mlo %s: status %d: %s" % (" ".join(map(str, args)), p.returncode, (p.stderr or b"").decode(errors="replace")[-400:]))
    return p.stdout


def tree(folder):
    """Relative path -> digest of every file below."""
    return {os.path.relpath(os.path.join(d, f), folder): hashlib.sha256(read(os.path.join(d, f))).hexdigest() for d, _, files in os.walk(folder) for f in files}


def trees_differ(a, b):
    """'' or what differs between two folders."""
    a, b = tree(a), tree(b)
    if not a: return "nothing was written"
    return ", ".join(sorted(f for f in a.keys() | b.keys() if a.get(f) != b.get(f))[:6])


def verilog_text():
    """build/verilog.c as tools/embed.sh makes it, in a folder for -I."""
    os.makedirs(at("made"), exist_ok=True)
    with open(at("made/verilog.c"), "wb") as f:
        subprocess.run(["sh", os.path.join(root, "tools/embed.sh"), *sorted(glob.glob(os.path.join(root, "verilog/*.v")))], stdout=f, check=True)
    return at("made")


def amalgamation():
    """mlo.c, made anew."""
    if not os.path.exists(at("amalgamated/mlo.c")):
        os.makedirs(at("amalgamated"), exist_ok=True)
        with open(at("amalgamated/mlo.c"), "wb") as f:
            subprocess.run(["sh", os.path.join(root, "tools/amalgamate.sh"), os.path.join(root, "src/mlo.c"), verilog_text()], stdout=f, check=True)
        shutil.copy(os.path.join(root, "mlo.h"), at("amalgamated"))
    return at("amalgamated/mlo.c")


def compile_c(out, sources, flags=(), cc="gcc", libs=LIBS):
    """'' or what the compiler says."""
    p = subprocess.run([cc, *flags, "-I", os.path.dirname(amalgamation()), *sources, "-o", out, *libs], capture_output=True, text=True)
    return "" if p.returncode == 0 else "%s: %s" % (cc, "; ".join(l for l in p.stderr.splitlines() if "error" in l or "undefined" in l)[:400] or p.stderr[-400:])


def command_line(name, cc="gcc", flags=("-O1",)):
    """Another build of mlo: main.c and the amalgamation. Its path; raises when it does not compile."""
    out = at(name)
    if not os.path.exists(out):
        why = compile_c(out, [os.path.join(root, "main.c"), amalgamation()], ["-std=c99", *flags, "-I", root], cc, LIBS + ["-lz"])
        if why: raise RuntimeError(why)
    return out


def sanitized(): return command_line("mlo-sanitized", "gcc", ("-O1", *SANITIZE))
