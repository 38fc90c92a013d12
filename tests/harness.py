# SPDX-License-Identifier: MIT
"""harness: what test scripts share. Cases and their lines, models, running the command line, building C.

    import harness as t
    def check_sums():
        t.case("it adds", "" if got == want else f"{got}")  # prints `ok it adds`, or `FAIL it adds: ...`
    t.main(check_sums, ..., floor=12)                       # runs them, prints the counts, exits; 12 cases at least, or it fails

A script is called as `python test_X.py path/to/mlo [NAME ...]`; NAMEs pick checks by substring ("sums").
What cannot be checked is said, and held against a list (cases.py has the rules):
    if not t.have("simulation", "iverilog"): return         # a tool: a failure in CI, where everything is; elsewhere a skip
    t.absent("deeploy", "no ../shared/deeploy")             # likewise anything else that a machine may lack
    t.skip("training", "mlo draws nothing")                 # left out wherever it runs: tests/skips.txt has to list it, with the reason
"""
import atexit, fcntl, glob, hashlib, json, os, pty, re, shutil, signal, subprocess, sys, tempfile, time, traceback
import numpy as np
import cases
from cases import absent, case, drawn, full, have, note, skip, turn

tests = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(tests)
mlo = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(root, "mlo")
tmp = tempfile.mkdtemp(prefix="mlo-test-")
atexit.register(shutil.rmtree, tmp, True)
shared = os.path.join(root, "..", "shared")                # more models and vectors, where that is: in CI always
cache = os.environ.get("MLO_OBJECTS") or os.path.join(root, "build", "tests")       # what was compiled, by its hash; run.py says when it goes
LIBS = ["-lprotobuf-nanopb", "-lcjson", "-lm"]
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
SANITIZE = ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if os.environ.get("MLO_SANITIZE") != "0" else []     # mutants.py has no time for it
# mlo.c under them: -O1 takes twice as long to compile, and what it makes is a fifth faster
WATCHED = ["-Og", "-fno-tree-fre", "-fno-tree-dominator-opts", *SANITIZE]
# Verilator's C++ takes longer to compile than to run here: one unit instead of fourteen, little optimization (objcache.sh)
os.environ.update(MAKEFLAGS="-j2 -- VM_PARALLEL_BUILDS=0", OBJCACHE="sh %s/objcache.sh" % tests)
os.environ.setdefault("CCACHE_DIR", os.path.join(root, "build", "ccache"))
os.environ.update(ASAN_OPTIONS="exitcode=99:detect_leaks=1:allocator_may_return_null=1", UBSAN_OPTIONS="exitcode=99:print_stacktrace=1")


# ---- cases -----------------------------------------------------------------------------------------------------------------------

def main(*checks, floor=0):
    """Runs the checks that the command line picks. An exception in one is a failed case; the others still run.
    floor: as many cases there are at least."""
    if os.environ.pop("MLO_ASKED", None): asked(lambda: main(*checks, floor=floor))
    names = [check.__name__.replace("check_", "") for check in checks]
    for pick in sys.argv[2:]:
        if not any(pick in name for name in names): case(pick, "no check is called so; there are " + ", ".join(names))
    for check, name in zip(checks, names):
        if sys.argv[2:] and not any(p in name for p in sys.argv[2:]): continue
        start, cpu = time.monotonic(), spent()
        if os.environ.get("MLO_SEEN"): os.environ["MLO_SEEN"] = os.path.join(os.path.dirname(os.environ["MLO_SEEN"]), name.replace("/", "-"))       # mutants.py: what it runs
        try:
            check()
        except Exception as e:
            where = traceback.extract_tb(e.__traceback__)[-1]
            case(name, "%s: %s (%s:%s)" % (type(e).__name__, e, os.path.basename(where.filename), where.lineno))
        note("check %s: %.1f s, %.1f of a processor" % (name, time.monotonic() - start, spent() - cpu))
    cases.end(floor, picked=sys.argv[2:])


def due(check, checks, one_in):
    """Whether it is the turn of a check, of several that are long, or the command line asks for it; says so if not."""
    if any(pick in check for pick in sys.argv[2:]) or check in cases.turn(checks, one_in): return True
    note("%s: another day" % check)
    return False


def asked(answer):
    """mutants.py, which asks a script about many mutants: what it imports costs more than most checks. For each question of stdin, [environment, NAMEs],
    this process forks. The child says its pid and what main() says; at its end the parent says its status, behind a NUL."""
    print("asked", flush=True)
    for question in sys.stdin:
        env, picks = json.loads(question)
        child = os.fork()
        if not child:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.environ.update(env)
            sys.argv[2:] = picks
            print(os.getpid(), flush=True)
            try: answer()
            except SystemExit as e: os._exit(int(e.code))     # no more: onnxruntime would wait for threads that a fork leaves behind
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        try: os.killpg(child, signal.SIGKILL)             # what it left running
        except ProcessLookupError: pass
        print("\n\0", status, flush=True)
    os._exit(0)


def spent(): return sum(os.times()[:4])                    # seconds of a processor, with those of programs that ended


# ---- models ----------------------------------------------------------------------------------------------------------------------

def models():
    """name -> path of every model of the project, and of ../shared where that exists."""
    found = {}
    for folder in (os.path.join(shared, "models"), os.path.join(tests, "models"), os.path.join(root, "examples")):
        found.update((os.path.basename(p)[:-5], os.path.abspath(p)) for p in sorted(glob.glob(os.path.join(folder, "*.onnx"))))
    return found


def model(name):
    path = models().get(name)
    if not path: raise FileNotFoundError("no model %s.onnx in examples/ or tests/models/" % name)
    return path


def beside(name, *path):
    """A folder of ../shared; where that is not, None, and `name` is absent."""
    folder = os.path.join(shared, *path)
    if os.path.isdir(folder): return folder
    absent(name, "there is no ../shared/%s" % "/".join(path))


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
    """Runs mlo. The result has returncode, and stdout and stderr as bytes unless text=True. A signal that ends it is no result: it says nothing on
    stderr, which a check may take for no fault."""
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if options["stdin"] is None: del options["stdin"]
    if "stdout" not in options and "stderr" not in options: options["capture_output"] = True
    p = subprocess.run([program or mlo, *map(str, args)], timeout=options.pop("timeout", 900), **options)
    if p.returncode < 0: raise RuntimeError("mlo %s: signal %d" % (" ".join(map(str, args)), -p.returncode))
    return p


def on_terminal(command, **options):
    """What a program says on a terminal: subprocess's result, stdout being what the terminal shows of stderr, and of stdout where options do not send it elsewhere."""
    master, slave = pty.openpty()
    p, said = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=slave, **{"stdout": slave, **options}), b""
    os.close(slave)
    while True:
        try: said += os.read(master, 65536)
        except OSError: break                              # nobody holds its other end any more
    os.close(master)
    return subprocess.CompletedProcess(command, p.wait(), said.decode(errors="replace"))


def good(*args, **options):
    """Runs mlo, which must succeed. Returns stdout."""
    p = call(*args, **options)
    if p.returncode: raise RuntimeError("mlo %s: status %d: %s" % (" ".join(map(str, args)), p.returncode, (p.stderr or b"").decode(errors="replace")[-400:]))
    return p.stdout


def locale(name, language="de_DE"):
    """The environment in which a program's C library speaks a language whose decimal point is a comma, though the program never asks for it (as one that
    includes mlo.c may); where it cannot, None, and `name` is absent."""
    if not have(name, "localedef", "gcc"): return None
    asks, source = at("asks.so"), '#include <locale.h>\n__attribute__((constructor)) static void ask(void) { setlocale(LC_ALL, ""); }\n'
    if not os.path.exists(asks): subprocess.run(["gcc", "-shared", "-fPIC", "-o", asks, "-x", "c", "-"], input=source.encode(), check=True)
    place = at(language + ".UTF-8")
    if not os.path.isdir(place): subprocess.run(["localedef", "-i", language, "-f", "UTF-8", place], capture_output=True)
    sanitized = os.environ["ASAN_OPTIONS"] + ":verify_asan_link_order=0"            # its runtime wants to come first
    if os.path.isdir(place): return dict(os.environ, LD_PRELOAD=asks, ASAN_OPTIONS=sanitized, LOCPATH=tmp, LC_ALL=language + ".UTF-8", LANG=language + ".UTF-8")
    absent(name, "localedef does not make %s" % language)


def tree(folder):
    """Relative path -> digest of every file below. (accuracy.json is of the floats that compile knew, which emit does not.)"""
    return {os.path.relpath(os.path.join(d, f), folder): hashlib.sha256(read(os.path.join(d, f))).hexdigest() for d, _, files in os.walk(folder) for f in files if f != "accuracy.json"}


def trees_differ(a, b):
    """'' or what differs between two folders."""
    a, b = tree(a), tree(b)
    if not a: return "nothing was written"
    return ", ".join(sorted(f for f in a.keys() | b.keys() if a.get(f) != b.get(f))[:6])


def scriptless(page):
    """A page without its own script, share/page.js, which it ends with; any other one is left."""
    own = "".join(l.lstrip(" ") + "\n" for l in read(os.path.join(root, "share/page.js")).decode().splitlines())
    return page.replace("<script>\n" + own + "</script></body></html>\n", "</body></html>\n")


def public_names():
    """The functions of mlo.h."""
    header = re.sub(r"/\*.*?\*/", "", read(os.path.join(root, "mlo.h")).decode(), flags=re.S)
    return set(re.findall(r"^[^/\n#]*?\b(mlo_\w+)\(", header, re.M)) - {"mlo_sink", "mlo_watcher"}


def texts():
    """build/texts.c as tools/embed.sh makes it, in a folder for -I."""
    os.makedirs(at("made"), exist_ok=True)
    with open(at("made/texts.c"), "wb") as f:
        subprocess.run(["sh", os.path.join(root, "tools/embed.sh"), os.path.join(root, "verilog"), os.path.join(root, "share"), os.path.join(root, "src/exact")], stdout=f, check=True)
    return at("made")


def amalgamation():
    """mlo.c, made anew."""
    if not os.path.exists(at("amalgamated/mlo.c")):
        os.makedirs(at("amalgamated"), exist_ok=True)
        with open(at("amalgamated/mlo.c"), "wb") as f:
            subprocess.run(["sh", os.path.join(root, "tools/amalgamate.sh"), os.path.join(root, "src/mlo.c"), texts()], stdout=f, check=True)
        shutil.copy(os.path.join(root, "mlo.h"), at("amalgamated"))
    return at("amalgamated/mlo.c")


def kept(key, suffix, make):
    """A file of the cache, which scripts of a run share and which later runs find: make(path) makes what is not there.
    Its path, and what make said."""
    os.makedirs(cache, exist_ok=True)
    out = os.path.join(cache, key[:20] + suffix)
    with open(out + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)                 # two scripts may want it at a time
        if os.path.exists(out):
            os.utime(out)
            return out, None
        said = make(out + ".part")
        if os.path.exists(out + ".part"): os.replace(out + ".part", out)
    return out, said


def compiled(cc, flags):
    """mlo.c as an object, made once for a compiler and its flags: with sanitizers that takes a minute."""
    flags = list(dict.fromkeys(f for f, before in zip(flags, ["", *flags]) if "-I" not in (f, before)))
    key = hashlib.sha256(repr((cc, flags)).encode() + read(amalgamation()) + read(os.path.join(root, "mlo.h"))).hexdigest()
    return kept(key, ".o", lambda part: subprocess.run([cc, *flags, "-c", amalgamation(), "-o", part], capture_output=True, text=True))


def compile_c(out, sources, flags=(), cc="gcc", libs=LIBS):
    """'' or what the compiler says."""
    if "-fno-pie" in flags: libs = [*libs, "-no-pie"]
    made, p = compiled(cc, flags) if amalgamation() in sources and "-c" not in sources else (None, None)
    if not p or p.returncode == 0:
        sources = [made if made and s == amalgamation() else s for s in sources]
        p = subprocess.run([cc, *flags, "-I", os.path.dirname(amalgamation()), *sources, "-o", out, *libs], capture_output=True, text=True)
    return "" if p.returncode == 0 else "%s: %s" % (cc, "; ".join(l for l in p.stderr.splitlines() if "error" in l or "undefined" in l)[:400] or p.stderr[-400:])


def of_cpp(path, *names):
    """'' when a program of C++ finds these functions and numbers of a build of C."""
    objects = [os.path.join(path, f[:-1] + "o") for f in ("model.c", "whole.c", "weights.c") if os.path.exists(os.path.join(path, f))]
    user = write("user.cc", '#include "model.h"\nint main(int n, char **) { const void *at[] = { %s }; return !at[n - 1]; }\n' % ", ".join("(const void *)&" + n for n in names))
    for command in *(["gcc", "-std=c99", "-O0", "-c", "-o", o, o[:-1] + "c"] for o in objects), ["g++", "-Wall", "-Werror", "-I" + path, user, *objects, "-lm", "-o", at("user")], [at("user")]:
        p = subprocess.run(command, capture_output=True, text=True)
        if p.returncode: return p.stderr[-300:] or "status %d" % p.returncode
    return ""


def counted(name):
    """A program that coverage.py, which runs this script, built with counters; or None."""
    path = os.path.join(os.environ.get("MLO_COUNTED", "/nowhere"), name)
    return path if os.path.exists(path) else None


def command_line(cc="gcc", flags=("-O1",)):
    """Another build of mlo: main.c and the amalgamation. Its path; raises when it does not compile."""
    sources = [amalgamation(), *(os.path.join(root, f) for f in ("mlo.h", "main.c")), *sorted(glob.glob(os.path.join(root, "cli", "*.c")))]
    key = hashlib.sha256(repr((cc, flags)).encode() + b"".join(map(read, sources))).hexdigest()
    libs = LIBS + ["-lz"]
    make = lambda part: compile_c(part, [os.path.join(root, "main.c"), amalgamation()], ["-std=c99", *flags, "-I", root], cc, libs)
    out, why = kept(key, "-mlo", make)
    if why: raise RuntimeError(why)
    return out


def sanitized(): return command_line("gcc", WATCHED)


def inside(name, sanitizers="address,undefined"):
    """A program of tests/NAME.c, which takes in src/mlo.c whole to reach what the library hides. clang, which without optimization takes half of gcc's
    time to compile it; as fast when run."""
    source, flags = os.path.join(tests, name + ".c"), ["-std=c99", "-w", "-O0", "-g1", *(["-fsanitize=" + sanitizers, "-fno-sanitize-recover=all"] if SANITIZE else [])]
    key = hashlib.sha256(repr(flags).encode() + read(source) + read(amalgamation()) + read(os.path.join(root, "mlo.h"))).hexdigest()
    out, why = kept(key, "-" + name, lambda part: compile_c(part, [source], [*flags, "-I", root, "-I", texts()], "clang"))
    if why: raise RuntimeError(why)
    return out
