#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library as a guest in other programs, and the same bytes everywhere.

Usage: python tests/test_library.py path/to/mlo [CHECK ...]     (CHECK: a part of a check's name below, without check_)
"""
import datetime, glob, json, os, re, shutil, subprocess, sys
import harness as t
import nodes
from harness import at, case, good
from test_pages import shell, workshop                # a folder as a reader has it after `make`

COMPILERS = t.drawn(("gcc", "clang"), 2)              # objects of one a day: what they are held to is the same, and other bytes show beside ./mlo, which is cc's
OBJECT = [*t.STRICT, "-fno-pie", "-fno-pic"]          # not position-independent: constant tables with addresses count as data otherwise
STAGES = ["read", "scope", "extract", "roll", "quantize", "lower", "fold"]


def header(): return t.read(os.path.join(t.root, "mlo.h")).decode()


# ---- a drop-in ---------------------------------------------------------------------------------------------------------------------

def levels(cc):
    """How much a compiler optimizes: gcc does, it has warnings of what flows; clang does not, which takes as long for -O1 as for all the rest."""
    return ("-O1",) if cc == "gcc" else ("-O0",)


def check_drop_in():
    """README's example, linked and included, as strictly as compilers can be."""
    for cc in COMPILERS:
        if not t.have("drop-in with " + cc, cc): continue
        layers = os.path.join(t.root, "examples/layers.c")
        for level in levels(cc): case(f"linked, {cc} {level}", t.compile_c(at("linked-" + cc), [layers, t.amalgamation()], [*OBJECT, level], cc))
        guest = ["-I", os.path.join(t.root, "examples"), os.path.join(t.tests, "library/guest.c")]
        case(f"included after a user's own headers, {cc}", t.compile_c(at("included-" + cc), guest, [*OBJECT, "-O0"], cc))
        if not (os.path.exists(at("linked-" + cc)) and os.path.exists(at("included-" + cc))): continue
        p = [subprocess.run([at(kind + cc), t.model("bert-1")], capture_output=True, text=True) for kind in ("linked-", "included-")]
        case(f"both run alike, {cc}", "" if p[0].returncode == p[1].returncode == 0 and p[0].stdout == p[1].stdout and "cycles a frame" in p[0].stdout else p[0].stderr + p[1].stderr)


def check_header():
    """mlo.h alone, as C and as C++."""
    plus = [(cc, "c++", "c++" + year) for cc in ("g++", "clang++") for year in ("98", "11", "14", "17", "20")]
    for cc, language, standard in (("gcc", "c", "c99"), ("gcc", "c", "c2x"), ("clang", "c", "c99"), *plus):
        if not t.have(f"header with {cc}", cc): continue
        source = t.write("header.c", '#include "mlo.h"\nint main(void) { return mlo_failed(0) == 0; }\n')
        flags = ["-x", language, "-std=" + standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", t.root]
        if standard == "c++98": flags += ["-Wno-variadic-macros", "-Wno-long-long"]
        p = subprocess.run([cc, *flags, source], capture_output=True, text=True)
        case(f"the header as {standard}, {cc}", p.stderr)


def check_amalgamation():
    """The committed mlo.c is what src/ makes."""
    mine = os.path.join(t.root, "mlo.c")
    if not os.path.exists(mine): return case("mlo.c is there", "no mlo.c; `make mlo.c`, and commit it")
    case("mlo.c is what src/ makes", "" if t.read(mine) == t.read(t.amalgamation()) else "it differs; `make mlo.c`, and commit it")


# ---- the object --------------------------------------------------------------------------------------------------------------------

FORBIDDEN = """exit _exit _Exit quick_exit abort atexit printf puts putchar putc fputc fputs fprintf vprintf vfprintf perror stdout stderr stdin __assert_fail
    raise signal setlocale getenv system rand srand time clock malloc_usable_size setenv strtok""".split()


def check_object():
    """Nothing mutable, no way out but return, no word to anybody."""
    if not t.have("object", "nm", "clang"): return
    for cc in COMPILERS:
        if not t.have("object with " + cc, cc): continue
        made, p = t.compiled(cc, [*OBJECT, levels(cc)[-1]])
        if p and p.returncode: case(f"compiles alone, {cc}", p.stderr[:300]); continue
        symbols = [l.split()[-2:] for l in subprocess.run(["nm", made], capture_output=True, text=True).stdout.splitlines()]
        case(f"no mutable globals, {cc}", ", ".join(n for kind, n in symbols if kind in "bBdDcCsSgG"))
        sizes = subprocess.run(["size", made], capture_output=True, text=True).stdout.splitlines()[1].split()
        if levels(cc)[-1] != "-O0": case(f".data and .bss are empty, {cc}", "" if sizes[1:3] == ["0", "0"] else f"{sizes[1]} and {sizes[2]} bytes")     # else constants of functions lie there
        case(f"no exit, abort, printf, {cc}", ", ".join(n for kind, n in symbols if kind == "U" and n.split("@")[0] in FORBIDDEN))
        exported = {n for kind, n in symbols if kind in "TRWV"}
        case(f"what is exported is what mlo.h declares, {cc}", ", ".join(sorted(exported ^ t.public_names())))
    made, _ = t.compiled("clang", [*OBJECT, "-O0"])         # every function is there, and it takes 3 s where gcc takes 24
    symbols = [l.split()[-2:] for l in subprocess.run(["nm", made], capture_output=True, text=True).stdout.splitlines()]
    odd = [n for kind, n in symbols if kind in "tr" and not n.startswith("mlo_") and not re.search(r"\.\d+$|^\.|^__(func|PRETTY)", n)]
    case("every function and table is called mlo_*", "" if len(symbols) > 200 and not odd else ", ".join(odd) or "too few symbols to believe")
    compiled = {n for kind, n in symbols if kind in "tT" and n.startswith("mlo_")}
    seen = compiled & set(defined())
    case("the pattern for functions sees what clang sees", "" if len(seen) > 0.8 * len(compiled) else f"{len(seen)} of {len(compiled)}")       # macros make the others
    macros = set(re.findall(r"^\s*#\s*define\s+(\w+)", "\n".join(t.read(p).decode() for _, p in sources()), re.M))
    case("every macro is called MLO_*", ", ".join(sorted(m for m in macros if not re.match(r"MLO_|mlo_", m))) or few(macros, 60))
    types = set(re.findall(r"^(?:typedef\s+)?(?:struct|enum|union)\s+(\w+)", "\n".join(t.read(p).decode() for _, p in sources()), re.M)) | set(re.findall(r"^\}\s*(\w+)\s*;", "\n".join(t.read(p).decode() for _, p in sources()), re.M))
    case("every type is called mlo_*", ", ".join(sorted(x for x in types if not x.startswith("mlo"))) or few(types, 40))


def sources():
    """(name, path) of src/ in the order of src/mlo.c."""
    names = re.findall(r'^#include "([\w/]+\.c)"', t.read(os.path.join(t.root, "src/mlo.c")).decode(), re.M)
    return [(n, os.path.join(t.root, "src", n)) for n in names if n != "texts.c"]


def few(found, least): return "" if len(found) >= least else f"{len(found)} found; is the pattern still right?"


def without_comments(): return {name: re.sub(r"/\*.*?\*/|//[^\n]*", "", t.read(path).decode(), flags=re.S) for name, path in sources()}


def defined():
    """function -> the file that defines it (check_object holds it against what compilers see)"""
    return {f: name for name, s in without_comments().items() for f in re.findall(r"^(?:static\s+)?[\w \*]+?\b(mlo_\w+)\([^;{}]*\)\s*\{", s, re.M)}


def check_layers():
    """A file uses only files above it: no function is declared in one file and defined in another, none calls the public API from below."""
    text, home = without_comments(), defined()
    wrong = [f"{name} declares {f}, which {home.get(f, 'nobody')} defines" for name, s in text.items()
             for f in re.findall(r"^(?:static|extern)\s+[\w \*]+?\b(mlo_\w+)\([^;{}]*\)\s*;", s, re.M) if home.get(f) != name]
    case("no declarations across files", "; ".join(wrong))
    order = [name for name, _ in sources()]
    public = t.public_names()
    upward = [f"{name} calls {f} of {home[f]}" for name, s in text.items() for f in sorted(set(re.findall(r"\b(mlo_\w+)\(", s)))
              if f in public and f in home and order.index(home[f]) > order.index(name)]
    case("nothing calls the public functions from below", "; ".join(upward) or few(public, 20))
    folder = os.path.join(t.root, "src")
    there = set(os.path.relpath(os.path.join(d, f), folder) for d, _, files in os.walk(folder) for f in files if f.endswith(".c"))
    lost = there ^ (set(order) | {"mlo.c"})
    case("every file of src/ is in src/mlo.c", ", ".join(sorted(lost)))


BREACHES = [      # a rule of lint.sh, a file, what is put at its end that breaks it, more of the same that does not
    ("lines and functions", "src/ground/keys.c", "static int mlo_two(int a) {\n    a++; a--;\n    return a;\n}\n",
     "static int mlo_two(int a) {\n    for (int i = 0; i < a; i++) a--;\n    switch (a) {\n    case 1: a = 2; break;\n    }\n    return a; /* a; b */\n}\n"),
    ("lines and functions", "cli/wait.c", "/* " + 118 * "x" + " */\n", "/* " + 100 * "x" + " */\n"),
    ("lines and functions", "src/ground/keys.c", "static void mlo_long(int *a) {\n" + 61 * "    *a += 1;\n" + "}\n", "static void mlo_long(int *a) {\n" + 60 * "    *a += 1;\n" + "}\n"),
    ("lines and functions", "src/fold/fold.c", "typedef struct {\n    int (*both)(int a, int b);\n    struct {\n        int pe,\n            simd; /* a, b */\n    } at;\n} mlo_two;\n",
     "static const struct mlo_two {\n    const char *name; /* a * b, c; d */\n    struct {\n        int pe; /* it goes on,\n    a, b; c, d */\n        int simd;\n    } at;\n    int (*both)(int a,\n        int b);\n"
     "} two[] = { { \"a, b;\", { 1, 2 }, NULL }, { \"c\", { 3, 4 }, NULL } };\nstatic void mlo_two(void) {\n    struct mlo_two a = two[0], b = two[1];\n}\n"),
    ("lines and functions", "cli/wait.c", "union cli_two {\n    long long *at, n[2];\n};\n", ""),
    ("half of the functions", "src/ground/keys.c", "".join("static void mlo_l%d(int *a) {\n%s}\n" % (i, 40 * "    *a += 1;\n") for i in range(400)), ""),
    ("kernels are named", "src/fold/fold.c", 'static const char *mlo_me(void) { return "mlo.Attention"; }\n', '/* "mlo.Attention" */\n'),
    ("metadata keys", "src/fold/fold.c", 'static const char *mlo_me(void) { return "mlo.iterations"; }\n', ""),
    ("flows are asked", "src/emit/emit.c", "static int mlo_me(int f) { return f == MLO_FLOW_MATRIX; }\n", ""),
    ("one min", "src/fold/fold.c", "static int mlo_more(int a, int b) {\n    return a > b ? a : b;\n}\n", ""),
    ("passed on by mlo_failed", "src/fold/fold.c", "static int mlo_me(mlo *m) { return (int)m->error.code; }\n", ""),
    ("header says", "verilog/mlo_new.v", "// Contract: none\n// Throughput, Latency, Stall\nmodule mlo_new;\nendmodule\n",
     "".join(f"// {word} said\n" for word in "Contract Throughput Latency Stall Legal".split()) + "module mlo_new;\nendmodule\n"),
    ("250 lines of logic", "verilog/mlo_delay.v", 251 * "wire x;\n", "`ifdef FORMAL\n" + 251 * "wire x;\n" + "`endif\n"),
]


def style_of(tree):
    """What lint.sh says of a tree's style."""
    p = subprocess.run(["sh", "tests/lint.sh", "style"], cwd=tree, capture_output=True, text=True)
    return [l[5:] for l in p.stdout.splitlines() if l.startswith("FAIL ")] or ["ended with status %d" % p.returncode] * (p.returncode != 0)


def check_style(): case("lint: the tree is in style", "; ".join(style_of(t.root)))


def check_lint():
    """lint.sh says of each rule of style when it is broken, and nothing else then; and nothing of what only looks so."""
    tree = at("linted")
    for folder in ("src", "cli", "verilog", "tests"): os.makedirs(f"{tree}/{folder}")
    for folder in ("src", "cli", "verilog"): shutil.copytree(os.path.join(t.root, folder), f"{tree}/{folder}", dirs_exist_ok=True)
    for f in ("main.c", "tests/lint.sh", "tests/style.awk"): shutil.copy(os.path.join(t.root, f), f"{tree}/{f}")
    for k, (rule, file, breach, _) in enumerate(BREACHES):
        path = f"{tree}/{file}"
        before = t.read(path) if os.path.exists(path) else None
        with open(path, "ab") as f: f.write(breach.encode())
        said = style_of(tree)
        case(f"lint: {rule}, {k}", "" if len(said) == 1 and rule in said[0] else f"says {said}")
        if before is None: os.remove(path)
        else:
            with open(path, "wb") as f: f.write(before)
    for k, (_, file, _, like) in enumerate(BREACHES):
        with open(f"{tree}/{file}", "ab") as f: f.write(like.replace("mlo_two", f"mlo_two{k}").encode())
    case("lint: what only looks like a breach", "; ".join(style_of(tree)))


# ---- what the documentation says -----------------------------------------------------------------------------------------------------

def check_example():
    """The command and the program in mlo.h's opening."""
    lines = re.search(r"/\*(.*?)\*/", header(), re.S).group(1).splitlines()
    blocks, now = [], []
    for l in lines + [""]:
        if re.match(r" \*     ", l): now.append(l[7:])
        elif now: blocks.append("\n".join(now)); now = []
    program = next((b for b in blocks if "int main" in b), None)
    command = next((b for b in blocks if " cc " in b), None)
    case("mlo.h shows a program and how to compile it", "" if program and command else str(blocks)[:300])
    if not (program and command): return
    os.makedirs(workshop() + "/drop/tool", exist_ok=True)
    for f in ("mlo.h", "mlo.c"): shutil.copy(os.path.join(workshop(), f), workshop() + "/drop")
    with open(workshop() + "/drop/tool.c", "w") as f: f.write(program + "\n")
    p = shell("cd drop && " + command.strip() + " -o tool.out && ./tool.out ../examples/bert-tiny.onnx")
    case("mlo.h's program, by mlo.h's command", "" if p.returncode == 0 and '"loops"' in p.stdout else p.stdout[-300:] or "it says nothing")
    p = shell("cd drop && ./tool.out tool.c")
    case("mlo.h's program on a text file", "" if p.stdout.startswith("mlo: ") and "MLO_E_FORMAT" in p.stdout else p.stdout[-300:] or "it says nothing")


def check_options():
    """mlo_set takes what the command line hands on, and refuses what nobody would look at."""
    made = os.path.dirname(t.amalgamation())
    flags = ["-std=c99", "-D_XOPEN_SOURCE=700", "-Wno-unused-function", "-I", made, "-I", t.root]
    p = subprocess.run([COMPILERS[0], *flags, os.path.join(t.tests, "library/options.c"), "-o", at("options"), *t.LIBS], capture_output=True, text=True)
    p = subprocess.run([at("options")], capture_output=True, text=True) if not p.returncode else p
    case("options: one table", p.stdout or p.stderr[-400:])


def check_misuse():
    """Calls at the wrong time, or with nothing in them: the failure that mlo.h says, and it sticks."""
    why = t.compile_c(at("misuse"), [os.path.join(t.tests, "library/misuse.c"), t.amalgamation()], ["-std=c99", *t.WATCHED])
    p = None if why else subprocess.run([at("misuse"), t.model("bert-1"), os.path.join(t.tests, "models/context/llama-d18-eager-one.onnx")], capture_output=True, text=True)
    case("misuse", why or p.stdout[:400] or complaint(p.stderr) if why or p.stdout or p.returncode else "")


def check_demo():
    """examples/demo.sh keeps what it built, and every line of its "Next" works when typed. (synth runs for minutes: that make knows it is looked at.)"""
    if not t.have("demo", "iverilog", "vvp", "make"): return
    p = shell("sh examples/demo.sh ./mlo", timeout=1200)
    case("demo", "" if p.returncode == 0 and re.search(r"PASS +2 048 words compared, all equal", p.stdout) else p.stdout[-400:] or "it says nothing")
    case("demo keeps what it built", "" if os.path.exists(workshop() + "/demo/manifest.json") and os.path.exists(workshop() + "/demo/sim/report.json") else str(os.listdir(workshop())))
    lines = [l for block in re.findall(r"^Next: (.*(?:\n      .*)*)", p.stdout, re.M) for l in re.split(r"\n +", block)]
    case("demo says what is next, twice", "" if len(lines) == 7 and not any("build" in l for l in lines) else str(lines))
    for l in lines:
        needs = [x for x in ("verilator", "yosys") if l.startswith("make") and not shutil.which(x)]
        if needs: t.skip(l, ", ".join(needs) + " not installed"); continue
        p = shell(l.replace("make", "make -n", 1) if l.endswith(" synth") else l, timeout=1200)
        case("demo, next: " + l, "" if p.returncode == 0 else "status %d: %s" % (p.returncode, p.stdout[-300:]))


# ---- memory ------------------------------------------------------------------------------------------------------------------------

def complaint(text):
    """The first line a sanitizer says that matters, and where in mlo.c."""
    said = [l for l in text.splitlines() if re.search(r"runtime error|ERROR: |allocation ", l)]
    frames = re.findall(r"#\d+ 0x[0-9a-f]+ in (mlo_\w+)", text)
    return "; ".join(said[:2] or text.splitlines()[-2:]) + ("; in " + " < ".join(frames[:5]) if frames else "")


def complaints(p):
    """What a sanitizer said."""
    text = (p.stderr or b"").decode(errors="replace")
    bad = [l for l in text.splitlines() if re.search(r"runtime error|AddressSanitizer|LeakSanitizer|ERROR SUMMARY: [1-9]", l)]
    return "; ".join(bad) or (f"status {p.returncode}: {text[-300:]}" if p.returncode not in (0, 1, 2, 3, 4) else "")


QUANTIZES = ["bert-tiny", "bert-tiny-mask", "bert-tiny-external", "bert-tiny-shared-biases", "bert-tiny-b", "vit-tiny", "bert-12-torchscript", "bert-96", "bert-60", "bert-1", "bert-12", "vit-48", "mlp-res", "whisper-tiny", "swin-tiny"]

REFUSED = "deberta-tiny gpt2-cache".split()        # a cache of fixed length


def check_sanitizers():
    """Every verb over models with ASan and UBSan, in five days over every one; models that mlo does not support must be refused as cleanly."""
    program, whole, compiled = t.sanitized(), t.drawn(t.models(), 5), t.drawn(t.models(), 2)          # by all verbs; by compile and read; the others by read
    for name, path in t.models().items():
        dim = ["--dim", "seq=32"] if "dynamic" in name else []
        calib = ["--calib", t.calibration(name, 1)] if name in QUANTIZES + ["bert-tiny-dynamic"] else []
        steps = [["compile", path, "-o", at("san/" + name), "--keep", at("san-keep/" + name), "--pe", 4, "--simd", 4, *calib, *dim], ["read", path, *dim], ["read", path, "--inline", *dim]]
        if name not in {*whole, *compiled}:
            case(f"{name}: read", next(filter(None, (complaints(t.call(*step, program=program)) for step in steps[1:])), ""))
            continue
        p = t.call(*steps[0], program=program)
        why = complaints(p) or ("" if p.returncode == (4 if name in REFUSED else 0) else f"status {p.returncode}: {p.stderr.decode()[-300:]}")
        keep = at("san-keep/" + name)
        kept = [s for s in STAGES if os.path.exists(f"{keep}/{s}.onnx")]
        for s in kept: steps += [["show", f"{keep}/{s}.onnx", f] for f in ("--text", "--json", "--dot", "--html")]
        if "roll" in kept: steps += [["check", f"{keep}/roll.onnx", "--against", path, *dim]]
        for s in {"read", "roll", "quantize", "fold"} & set(kept):
            if calib: steps += [["run", f"{keep}/{s}.onnx", "--inputs", t.calibration(name, 1), "--outputs", at("san.npz")]]
        if name not in whole: steps = steps[:2]
        for step in steps[1:]: why = why or complaints(t.call(*step, program=program))
        case(f"{name}: {len(steps)} commands", why)
    p = [t.call(*args, program=program) for args in (["help"], ["help", "fold"], ["help", "--man"], ["help", "--completion", "bash"], ["--version"])]
    case("help and version", next(filter(None, map(complaints, p)), "") or next((str(x.args) for x in p if x.returncode), ""))


def check_json_pipe_sanitized():
    """The pipe reads and writes JSON at every stage: another path through the library than compile's."""
    program = t.sanitized()
    data = t.read(t.model("bert-1"))
    for stage in STAGES:
        p = t.call(stage, input=data, program=program)
        if complaints(p) or p.returncode: return case("JSON pipe under sanitizers", f"{stage}: {complaints(p) or p.stderr.decode()[-300:]}")
        data = p.stdout
    case("JSON pipe under sanitizers")


def check_valgrind():
    """Memory that nobody has written, which ASan does not see."""
    if not t.have("valgrind", "valgrind", COMPILERS[0]): return
    mlo = t.command_line(COMPILERS[0], (*OBJECT, levels(COMPILERS[0])[-1]))
    grind = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=definite,indirect,possible", mlo]
    for args in t.drawn((["compile", t.model("bert-1"), "--calib", t.calibration("bert-1", 1), "--pe", "2", "--simd", "2", "-o", at("grind")], ["read", t.model("bert-tiny-external")], ["scope", t.model("mlp-res")]), 3, name=lambda args: args[0]):
        p = subprocess.run(grind + args, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        case("valgrind: " + args[0], "" if p.returncode == 0 else p.stderr[:400] or "it says nothing")


def check_allocations():
    """Every k-th allocation fails in turn (a sixth of them a day), once for itself and once with all later ones: an error, nothing lost."""
    why = t.compile_c(at("allocations"), [os.path.join(t.tests, "library/allocations.c"), t.amalgamation()], ["-std=c99", *t.WATCHED])
    if why: return case("allocations", why)
    day, step = datetime.date.today().toordinal(), 1 if t.full else 6
    t.note("one allocation in %d, by the date" % step)
    for sticky in 0, 1:
        first = 1 + (day + sticky) % step
        p = subprocess.run([at("allocations"), t.model("bert-1"), str(first), str(step), str(sticky)], capture_output=True, text=True)
        runs = p.stdout.split()
        case("an allocation fails%s, %s" % (" and all after it" if sticky else "", "%s of %s times" % tuple(runs) if len(runs) == 2 else "?"),
             complaint(p.stderr) if p.returncode else "" if int(runs[0]) >= 50 else "too few allocations to believe")


def exports():
    """(model, steps) of each model that the tests hold, to a core; one of twenty a day. Of bert-12's like, one is enough."""
    every = sorted(glob.glob(os.path.join(t.tests, "models/**/*.onnx"), recursive=True))
    for path in t.turn(every, 20):
        model = t.read(path)
        if len(model) > 2 << 20: continue
        bound = "".join("set dim=%s=%d; " % (w, n) for w, n in (("batch", 1), ("sequence", 8)) if ("%c%s" % (len(w), w)).encode() in model)
        yield os.path.relpath(path, t.tests), bound + ("set context=16; " if "/context/" in path or "/single/" in path else "") + "set pe=4; set simd=4; to fold; emit"


def check_places():
    """Each place that asks for memory, bytes of a file or room in a sink, told from others by who asked there, is refused once: an error, nothing lost.
    A place that one model came to is none of the next one's, so that there may be many models."""
    why = t.compile_c(at("places"), [os.path.join(t.tests, "library/places.c"), t.amalgamation()], ["-std=gnu99", "-w", "-O0", "-DMLO_SMALL_BLOCK=64", *t.SANITIZE], "clang")
    if why: return case("places", why)
    day, step, total = datetime.date.today().toordinal(), 1 if t.full else 30, 0
    german = t.locale("places in German")
    t.note("one place in %d, by the date" % step)
    nodes.write(at("operators.onnx"))
    with open(os.path.join(t.tests, "library/places.txt")) as f: rows = [[w.strip() for w in l.split("|")] for l in f if not l.startswith("#")]
    for k, (model, steps) in enumerate([[at("operators.onnx"), "to read; run"], *rows, *exports()]):
        p = subprocess.run([at("places"), os.path.join(t.tests, model), steps, str((day + k) % step), str(step), at("seen")], capture_output=True, text=True, env=german if model.endswith(".json") else None)
        runs, lost = [*map(int, p.stdout.split())] or [0, 0], [l for l in p.stderr.splitlines() if l.startswith(("place ", "refused: ")) or re.search(r": code \d+, [1-9]", l)]
        total += runs[1]
        refused = k > len(rows) and not lost and "with all it wants: code " in p.stderr                    # an export that mlo does not take
        case("refused: %s: %s" % (os.path.basename(model), steps), "" if refused else complaint(p.stderr) if p.returncode else "" if runs[0] >= runs[1] // step else p.stdout + "are too few to believe")
    case("places, all together", "" if total > 1000 else "%d are too few to believe" % total)


def check_threads():
    """Several handles at once, some of which share their work among threads, the same results; the thread sanitizer watches."""
    for flags in [*OBJECT, levels(COMPILERS[0])[-1]], ["-std=c99", "-O0", "-fsanitize=thread", "-DMLO_PIECES_WORK=1"]:
        cc = "clang" if "-fsanitize=thread" in flags else COMPILERS[0]                  # clang: 6 s without optimization, where gcc takes 17
        made, _ = t.compiled(cc, flags)
        how = flags[2:] if "-fsanitize=thread" in flags else ["-no-pie"]
        why = t.compile_c(at("threads"), [os.path.join(t.tests, "library/threads.c"), made], ["-std=gnu99", "-O1", *how], cc, t.LIBS + ["-lpthread"])
        if why: case("threads", why); continue
        p = subprocess.run([at("threads"), t.model("bert-1"), t.model("bert-tiny-mask")], capture_output=True, text=True)
        case("two handles in each of two threads" + (", watched" if "-fsanitize=thread" in flags else ""), "" if p.returncode == 0 and len(set(p.stdout.split())) == 2 else f"status {p.returncode}: {p.stderr[:300]}")


# ---- the same bytes --------------------------------------------------------------------------------------------------------------------

FOLD = ["--target-cycles", "60000"]


def compile_to(folder, name="bert-tiny-mask", program=None, model=None, **options):
    """compile into at(folder); a word on what differs from the first such build."""
    good("compile", model or t.model(name), "--calib", t.calibration(name), *FOLD, "-o", at(folder), program=program, **options)
    return t.trees_differ(at("same/first"), at(folder)) if folder != "same/first" else ""


def check_determinism():
    compile_to("same/first")
    case("twice the same", compile_to("same/second"))
    case("over what is there", compile_to("same/second"))
    folder = os.path.dirname(t.model("bert-tiny-mask"))
    case("from another directory", compile_to("same/elsewhere", cwd=folder, model="bert-tiny-mask.onnx"))
    shutil.copy(t.model("bert-tiny-mask"), at("moved.onnx"))
    case("under another name", compile_to("same/moved", model=at("moved.onnx")))
    eager = t.drawn(("gcc", "clang", *6 * [""]), 8)         # an object of its own: the others are those of check_object
    for cc in COMPILERS:
        if not t.have("compiled with " + cc, cc): continue
        for level in levels(cc): case(f"compiled with {cc} {level}", compile_to(f"same/{cc}{level}", program=t.command_line(cc, (*OBJECT, level))))
        if cc in eager: case(f"compiled with {cc} -O3", compile_to(f"same/{cc}-O3", program=t.command_line(cc, ("-O3", "-march=native", "-std=gnu99"))))
    environment = dict(os.environ, TZ="Asia/Tokyo", SOURCE_DATE_EPOCH="1", HOME="/nonexistent", MALLOC_PERTURB_="85")
    case("in another time zone, with memory that is not zero", compile_to("same/zone", env=environment))
    german = t.locale("in German")
    if not german: return
    point = subprocess.run([sys.executable, "-c", "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.localeconv()['decimal_point'])"], env=german, capture_output=True, text=True)
    case("the locale is German", "" if point.stdout.strip() == "," else point.stdout + point.stderr[-200:])
    case("in German", compile_to("same/german", env=german))
    for where, env in ("c", None), ("german-c", german): good("compile", t.model("bert-tiny-mask"), "--target", "c", "--whole", "-o", at("same/" + where), env=env)
    case("C in German", t.trees_differ(at("same/c"), at("same/german-c")))


def check_plus():
    """mlo.c and main.c as C++: no word from the compiler, nothing mutable, nothing of C++'s library; and the bytes that ./mlo writes."""
    for cc, year in t.drawn([(cc, year) for year in ("20", "17") for cc in ("clang++", "g++")], 4, " ".join):
        if not t.have("as C++ with " + cc, cc, "gcc", "nm"): continue
        how, flags = f"C++{year}, {cc}", ["-x", "c++", "-std=c++" + year, "-O0", "-Wall", "-Werror"]
        made, p = t.compiled(cc, [*flags, "-fno-pie", "-fno-pic"])
        case("mlo.c as " + how, p.stderr[:400] if p and p.returncode else "")
        why = t.compile_c(at("plus.o"), ["-c", os.path.join(t.root, "main.c")], [*flags, "-I", t.root], cc, [])
        why = why or t.compile_c(at("plus"), [at("plus.o"), made], ["-fno-pie"], "gcc", [*t.LIBS, "-lz"])
        case(f"with main.c, linked by gcc: {how}", why)
        if why: continue
        symbols = [l.split()[-2:] for l in subprocess.run(["nm", made], capture_output=True, text=True).stdout.splitlines()]
        case("no mutable globals, " + how, ", ".join(n for kind, n in symbols if kind in "bBdDcCsSgG"))
        case("what is exported is what mlo.h declares, " + how, ", ".join(sorted({n for kind, n in symbols if kind == "T"} ^ t.public_names())))
        for name, *args in (("bert-tiny-mask", "--calib", t.calibration("bert-tiny-mask"), *FOLD), ("stories260k-step", "--context", 64, "--tokens"), ("swin-tiny", "--target", "c")):
            for folder, program in ("first", None), ("second", at("plus")): good("compile", t.model(name), *args, "-o", at(f"plus-{folder}/{name}"), program=program)
            case(f"{name}: the bytes of ./mlo, {how}", t.trees_differ(at("plus-first/" + name), at("plus-second/" + name)))


def check_json_is_onnx():
    """A stage's JSON and its --onnx are the same message, field by field, and onnx accepts it; what was piped in holds its weights itself."""
    from google.protobuf import json_format
    import onnx
    data = t.read(t.model("bert-1"))
    for stage in STAGES:
        binary, data = good(stage, "--onnx", input=data), good(stage, input=data)
        m, n = json_format.Parse(data, onnx.ModelProto()), onnx.load_from_string(binary)
        why = "" if m == n else "JSON and binary differ"
        try: onnx.checker.check_model(n)
        except Exception as e: why = why or str(e)
        case(f"{stage}: JSON is ONNX", why or ("" if len(n.graph.node) > 3 and sum(len(i.raw_data) for i in n.graph.initializer) > 50000 else "where are the weights?"))


def pipe(folder, name, between=()):
    """The pipe of the design's first section, with something between its stages. '' or how it failed."""
    stages = [["read", t.model(name)], ["scope"], ["extract"], ["roll"], ["quantize", "--calib", t.calibration(name)], ["lower"], ["fold", *FOLD], ["emit", "-o", at(folder)]]
    data = b""
    for stage in stages:
        p = t.call(*stage, input=data)
        if p.returncode: return f"{stage[0]}: {p.stderr.decode()[-300:]}"
        data = p.stdout
        if between and stage[0] != "emit": data = subprocess.run(between, input=data, capture_output=True, check=True).stdout
    return ""


def check_pipe():
    compile_to("same/first")
    case("the pipe gives what compile gives", pipe("same/pipe", "bert-tiny-mask") or t.trees_differ(at("same/first"), at("same/pipe")))
    if t.have("jq in between", "jq"): case("jq in between changes nothing", pipe("same/jq", "bert-tiny-mask", ["jq", "."]) or t.trees_differ(at("same/first"), at("same/jq")))
    again = [sys.executable, "-c", "import sys, onnx; from google.protobuf import json_format as j; sys.stdout.write(j.MessageToJson(j.Parse(sys.stdin.read(), onnx.ModelProto())))"]
    case("Python in between changes nothing", pipe("same/python", "bert-tiny-mask", again) or t.trees_differ(at("same/first"), at("same/python")))
    good("compile", t.model("bert-tiny-mask"), "--calib", t.calibration("bert-tiny-mask"), *FOLD, "--keep", at("kept"), "-o", at("same/kept"))
    case("--keep changes nothing", t.trees_differ(at("same/first"), at("same/kept")))
    for stage in STAGES[3:]:
        calib = ["--calib", t.calibration("bert-tiny-mask")] if stage == "roll" else []
        good("emit", at(f"kept/{stage}.onnx"), *calib, *([] if stage == "fold" else FOLD), "-o", at("same/from-" + stage))
        case(f"emit from a saved {stage}.onnx", t.trees_differ(at("same/first"), at("same/from-" + stage)))


def check_verilog_alike():
    """The Verilog knows shapes and folding, neither weights nor depth."""
    for name in ("bert-tiny", "bert-tiny-b", "bert-12"): good("compile", t.model(name), "--calib", t.calibration(name), "--pe", 4, "--simd", 4, "-o", at("alike/" + name))
    case("two sets of weights, one Verilog", t.trees_differ(at("alike/bert-tiny/rtl"), at("alike/bert-tiny-b/rtl")))
    case("two layers or twelve, one Verilog", t.trees_differ(at("alike/bert-tiny/rtl"), at("alike/bert-12/rtl")))
    case("but the parameters differ", "" if t.read(at("alike/bert-tiny/params.bin")) != t.read(at("alike/bert-tiny-b/params.bin")) else "they are the same")


if __name__ == "__main__":
    t.main(check_drop_in, check_header, check_amalgamation, check_object, check_layers, check_style, check_lint, check_example, check_options, check_misuse, check_demo, check_allocations, check_places, check_threads,
           check_valgrind, check_determinism, check_plus, check_json_is_onnx, check_pipe, check_verilog_alike, check_json_pipe_sanitized, check_sanitizers,
           floor=110)
