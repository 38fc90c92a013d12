#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Coverage of the C by tests: lines, branches and MC/DC of every file, as a table. A tool, not a test.

    python tests/coverage.py [SCRIPT ...] [--missing FILE.c ...]          (make coverage TESTS="roll ops" MISSING=src/roll.c)

clang-19 or newer instruments mlo (-fcoverage-mcdc); the scripts (default: FAST; `all` is each test_*.py) run it, whatever else they compile is not
counted, but for interval_driver.c, read_driver.c, show_driver.c, tokenizer_driver.c and the fuzzers' replay.c (harness.counted finds them); `library` is no script: the C programs that call the library (examples/layers.c, library/places.c, ..), linked with what is counted.
Nor is `exports`: mlo alone on each export that the tests hold, to Verilog and to C; test_families.py and its like judge and simulate them for hours.
FAST is what runs mlo and hardly a simulator: about an hour of a processor, a quarter of it refusing memory in every place (`library`).
llvm-profdata and llvm-cov say what was run. --missing prints the lines of files that never were, and branches that went one way only."""
import argparse
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import nodes

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TESTS)
LIBS = ["-lprotobuf-nanopb", "-lcjson", "-lz", "-lm"]
FAST = ("library exports errors odd defaults unbatch read roll run ops alike deeploy finn edited step report attention extract nested spellings survival tokenizer sim verdicts cli fuzz interval:ends "
        "search:brute_force,front,frames,targets,refusals,around,blocks given layout rotary numerics sketch single:steps,changed,refused,context positions fixed context:near,caches,changed,merged,options,buffers,mixing,prefill,generate "
        "tokens integers heads jobs:refused,past c flat whole device show:two,best,simulation,device,odd,refusals,locale,command wrong_usage:terminal,help,completion "
        "fold_default:choice,flags,many perturb moved:near,cosine bias:errors,counted every:limits,plain,near prefix:kernels,errors,near,before,plain causal:errors,before,blind,half cross:mask,refused gate conv sweep trace stories exponentials").split()
DRIVERS = ["examples/layers.c", "tests/library/threads.c", "tests/library/misuse.c", "tests/show_driver.c", "tests/tokenizer_driver.c"]
HOSTILE = {"replay-" + kind: ["tests/fuzz/replay.c", "tests/fuzz/fuzz_%s.c" % kind] for kind in ("onnx", "json")}
INSIDE = ["interval_driver", "read_driver"]      # they include src/mlo.c, and have counters of their own
OWN = [*INSIDE, "tokenizer_driver"]      # that one includes main.c
ENDS = [("int", "raise", "int n", "return raise(n)"), ("void", "_exit", "int n", "_exit(n)"), ("int", "execvp", "const char *file, char *const *words", "return execvp(file, words)")]
VERSIONS = range(30, 18, -1)             # of clang: 18 knows MC/DC, but merges no profiles of it


def tools():
    """(clang, llvm-profdata, llvm-cov) of one version."""
    for v in VERSIONS:
        found = [shutil.which("%s-%d" % (tool, v)) for tool in ("clang", "llvm-profdata", "llvm-cov")]
        if all(found): return found
    sys.exit("tests/coverage.py: no clang that knows MC/DC; apt-get install clang-19 llvm-19 libclang-rt-19-dev")


def build(clang, folder):
    """mlo and the programs of the library with counters; src/ and not mlo.c, so that what is counted are its files."""
    flags = ["-std=gnu99", "-w", "-O1", "-fprofile-instr-generate", "-fcoverage-mapping", "-fcoverage-mcdc", "-I.", "-Ibuild"]
    lib, small = os.path.join(folder, "lib.o"), os.path.join(folder, "small.o")
    ends = os.path.join(folder, "ends.c")                # what ends so writes no profile of its own accord
    with open(ends, "w") as f: f.write("#include <signal.h>\n#include <unistd.h>\nint __llvm_profile_write_file(void);\n" + "".join("%s said_%s(%s) { __llvm_profile_write_file(); %s; }\n" % x for x in ENDS))
    said = ["-D%s=said_%s" % (name, name) for _, name, _, _ in ENDS]
    programs = [(ends[:-2] + ".o", ["-c", ends]), (lib, ["-c", "src/mlo.c"]), (small, ["-c", "-DMLO_SMALL_BLOCK=64", "src/mlo.c"]), ("mlo", [*said, "main.c", ends[:-2] + ".o", lib]), ("places", ["tests/library/places.c", small])]
    programs += [(os.path.basename(source)[:-2], [source, lib]) for source in DRIVERS] + [(name, [*sources, lib]) for name, sources in HOSTILE.items()] + [(name, ["tests/%s.c" % name]) for name in INSIDE]
    for out, sources in programs:
        command = [clang, *flags, *sources, "-o", os.path.join(folder, out), *([] if "-c" in sources else LIBS)]
        p = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)             # it warns of decisions that it does not follow
        if p.returncode: sys.exit("tests/coverage.py: %s does not compile: %s" % (clang, p.stderr[-400:]))


def committed():
    """Each model that the tests hold, and what binds its open dimensions."""
    for path in sorted(glob.glob(os.path.join(TESTS, "models/**/*.onnx"), recursive=True)):
        with open(path, "rb") as f: model = f.read()
        yield path, [w for name, n in (("batch", 1), ("sequence", 8)) if ("%c%s" % (len(name), name)).encode() in model for w in ("--dim", "%s=%d" % (name, n))]


def library(folder):
    """Everything refused once in every place, and each committed model where it comes to others; and the other programs, as test_library.py calls them."""
    with open(os.path.join(TESTS, "library/places.txt")) as f: rows = [[w.strip() for w in l.split("|")] for l in f if not l.startswith("#")]
    subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, "de_DE.UTF-8")], capture_output=True)     # a point that is a comma
    env = dict(os.environ, LLVM_PROFILE_FILE=os.path.join(folder, "library-%4m.profraw"), LOCPATH=folder, LC_ALL="de_DE.UTF-8")
    bert = os.path.join(TESTS, "models/bert-1.onnx")
    nodes.write(os.path.join(folder, "operators.onnx"))
    rows = [[os.path.join(folder, "operators.onnx"), "to read; run"], *rows, *([path, "; ".join([*("set dim=" + w for w in bound[1::2]), *(["set context=16"] if "/context/" in path else []), "set pe=4; set simd=4; to fold; emit"])] for path, bound in committed())]
    calls = [["places", os.path.join(TESTS, model), steps, "0", "1", os.path.join(folder, "seen")] for model, steps in rows] + [["layers", bert], ["threads", bert, bert], ["misuse", bert, os.path.join(TESTS, "models/context/llama-d18-eager-one.onnx")]]
    p = [subprocess.run([os.path.join(folder, name), *args], env=env, capture_output=True) for name, *args in calls]
    print("%-19s %4d ok, %d failed" % ("library", sum(not x.returncode for x in p), sum(x.returncode != 0 for x in p)), flush=True)


def exports(mlo, folder):
    """Each committed model, decoders in context/ with their caches and as ids, to Verilog and to C; one of five is shown. What is refused counts as well."""
    env = dict(os.environ, LLVM_PROFILE_FILE=os.path.join(folder, "exports-%4m.profraw"))
    out, codes = os.path.join(folder, "built"), []
    call = lambda *args: codes.append(subprocess.run([mlo, *args], env=env, stdin=subprocess.DEVNULL, capture_output=True).returncode)
    for k, (path, bound) in enumerate(committed()):
        kinds = [["--context", "16"], ["--context", "16", "--tokens"]] if "/context/" in path else [[]]
        for more in [[*kind, *target] for kind in kinds for target in (["--pe", "4", "--simd", "4"], ["--target", "c"])]: call("compile", path, *bound, *more, "-o", out)
        if k % 5 == 0: call("show", "--html", path, *bound)
        shutil.rmtree(out, True)
    print("%-19s %4d ok, %d refused" % ("exports", codes.count(0), len(codes) - codes.count(0)), flush=True)


def run(script, mlo, folder):
    """One script. Its processes merge their counts into a few files (%4m), so that ten thousand of them do not fill the disk."""
    if script == "library": return library(folder)
    if script == "exports": return exports(mlo, folder)
    script, _, picked = script.partition(":")
    own = os.path.join(folder, script)
    os.makedirs(own)
    env = dict(os.environ, TMPDIR=own, MLO_COUNTED=folder, LLVM_PROFILE_FILE=os.path.join(folder, script + "-%4m.profraw"), PYTHONDONTWRITEBYTECODE="1")
    command = [sys.executable, os.path.join(TESTS, "test_%s.py" % script), mlo, *filter(None, picked.split(","))]
    p = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    lines = p.stdout.splitlines()
    print("test_%-14s %4d ok, %d failed" % (script, sum(l.startswith("ok ") for l in lines), sum(l.startswith("FAIL ") for l in lines)), flush=True)
    shutil.rmtree(own, True)


def counted(mlo): return [mlo, *(word for name in OWN for word in ("-object", os.path.join(os.path.dirname(mlo), name)))]


def together(data):
    """file -> kind -> how many more all programs take than the one, of each function, that takes most of it: that one llvm-cov counts."""
    same, more = {}, {}
    for f in data["functions"]: same.setdefault((f["filenames"][0], f["name"].rpartition(":")[2]), []).append(f)
    for (file, _), functions in same.items():
        kinds = {"branches": [[way > 0 for b in f["branches"] for way in b[4:6]] for f in functions], "mcdc": [[c for r in f.get("mcdc_records", []) for c in r[-1]] for f in functions]}
        for kind, taken in kinds.items():
            if len(set(map(len, taken))) == 1: more.setdefault(file, {}).setdefault(kind, []).append(sum(map(any, zip(*taken))) - max(map(sum, taken)))
    return {file: {kind: sum(n) for kind, n in kinds.items()} for file, kinds in more.items()}


def table(data):
    """The weakest branches first, and the sum."""
    kinds, more = ("lines", "branches", "mcdc"), together(data)
    files = [f for f in data["files"] if not f["filename"].endswith(("/texts.c", ".h", "_driver.c"))]
    for f in files:
        for kind, n in more.get(f["filename"], {}).items(): f["summary"][kind]["covered"] += n
    rows = [(os.path.relpath(f["filename"], ROOT), [f["summary"].get(k, {"covered": 0, "count": 0}) for k in kinds]) for f in files]
    rows = [(name, [(c["covered"], c["count"]) for c in counts]) for name, counts in rows if counts[0]["count"]]
    rows.sort(key=lambda row: row[1][1][0] / max(1, row[1][1][1]))
    rows.append(("all", [tuple(map(sum, zip(*(row[1][k] for row in rows)))) for k in range(len(kinds))]))
    shown = lambda covered, count: "%5.1f %% of %5d" % (100 * covered / count, count) if count else "%16s" % "-"
    print("\n%-28s %16s   %16s   %16s" % ("", *("lines", "branches", "MC/DC")))
    for name, counts in rows: print("%-28s %s" % (name, "   ".join(shown(*c) for c in counts)))


def missing(cov, mlo, profile, file):
    """Lines of a file that no test ran; branches that went one way only."""
    data = json.loads(subprocess.run([cov, "export", *counted(mlo), "-instr-profile", profile, os.path.join(ROOT, file)], capture_output=True, check=True).stdout)["data"][0]
    one = next((f for f in data["files"] if f["filename"].endswith("/" + file.lstrip("/"))), None)
    if not one: return print("%s: not compiled, or nothing in it" % file)
    with open(one["filename"], encoding="utf-8") as f: lines = f.read().splitlines()
    cold, count, at = set(), 1, 1
    for line, _, hits, has, _, gap in one["segments"]:
        if not count: cold.update(range(at, line + 1))
        at, count = line, hits if has and not gap else 1              # between statements there is nothing to run
    half, ways = {}, {}
    for b in one["branches"]: ways[b[0], b[1]] = [x + y for x, y in zip(ways.get((b[0], b[1]), (0, 0)), b[4:6])]       # of all that it is compiled into
    for (line, column), (yes, no) in ways.items():
        if bool(yes) != bool(no): half.setdefault(line, []).append("%d is always %s" % (column, "true" if yes else "false"))
    for n, text in enumerate(lines, 1):
        if n in cold or n in half: print("%s:%d: %-9s %s%s" % (file, n, "not run" if n in cold else "one way", text.strip()[:140], "   (column %s)" % ", ".join(half[n]) if n in half else ""))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("scripts", nargs="*", metavar="SCRIPT", help="roll, ops, search:front,targets (some of its checks), ..; all (%s)" % " ".join(FAST))
    ap.add_argument("--missing", nargs="*", default=[], metavar="FILE")
    ap.add_argument("-j", type=int, default=2, help="scripts at a time (2)")
    ap.add_argument("--keep", metavar="DIR", help="keep the program and its profile there, or use those that are there")
    a = ap.parse_args()
    every = ["exports"] + sorted(os.path.basename(p)[5:-3] for p in glob.glob(os.path.join(TESTS, "test_*.py")))
    scripts = every if a.scripts == ["all"] else a.scripts or FAST
    unknown = [s for s in scripts if s.partition(":")[0] not in every]
    if unknown: sys.exit("tests/coverage.py: there is no test_%s.py" % unknown[0])
    clang, profdata, cov = tools()
    folder = os.path.abspath(a.keep) if a.keep else tempfile.mkdtemp(prefix="mlo-coverage-")
    mlo, profile = os.path.join(folder, "mlo"), os.path.join(folder, "all.profdata")
    try:
        if not (os.path.exists(profile) and not a.scripts):
            os.makedirs(folder, exist_ok=True)
            if not os.path.exists(mlo): build(clang, folder)
            with concurrent.futures.ThreadPoolExecutor(a.j) as pool: list(pool.map(lambda s: run(s, mlo, folder), scripts))
            subprocess.run([profdata, "merge", "-o", profile, *glob.glob(os.path.join(folder, "*.profraw"))], check=True)
        data = subprocess.run([cov, "export", *counted(mlo), "-instr-profile", profile], capture_output=True, check=True).stdout
        table(json.loads(data)["data"][0])
        for file in a.missing: missing(cov, mlo, profile, file)
    finally:
        if not a.keep: shutil.rmtree(folder, True)


if __name__ == "__main__": main()
