#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutants of the C: what the tests do not notice. A tool, not a test.

    python tests/mutants.py [FILE.c ...] [-n 20] [--seed N] [--list] [--only N ...]       (make mutants FILE=src/json.c N=20)
    python tests/mutants.py FILE.c:40-52 [--scripts "roll given:qdq"]                     every mutant of these lines, when a check of them is new

A mutant is the tree with one place of one file changed: a comparison, an operator, a constant, or a statement left out. Of all places in the files
(default: everything that src/mlo.c and main.c include) a seeded sample is taken, as many of each kind; the seed is the date. Each mutant is
compiled, and the scripts that concern its file (SCRIPTS) run until one of them has a FAIL. A script that fails is asked again
without the mutant, once for each check. The verdicts:

    killed            a script failed, or took far longer than costs.txt lets it
    survived          none did: it is equivalent for a reason that no compiler knows, or a test is missing
    equivalent        none did, and the compiler makes the same object of it at -O2 (with --same: that takes as long as ten scripts)
    did not compile   nothing was tried

Scripts run without sanitizers: a step beyond an array, or memory that nobody frees, is seen here only when it changes something.

Files are looked up in what src/mlo.c includes, so that they may move; one that no line of SCRIPTS names gets EVERYTHING."""
import argparse
import collections
import concurrent.futures
import datetime
import filecmp
import fnmatch
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TESTS)
LIBS = ["-lprotobuf-nanopb", "-lcjson", "-lz", "-lm"]
LONGEST = "#include <sys/resource.h>\n__attribute__((constructor)) static void end(void) { setrlimit(RLIMIT_CPU, &(struct rlimit){ 30, 30 }); }\n"     # no run takes half of that
GIVEN = "given:lowest+zero_points+qdq+variants+integer+operators+weights+qonnx+refusals"             # all but what simulators take long over
CLI = "cli:help+flags+config+input+output+pipe+npz+run+compile"
EVERYTHING = "errors roll ops cli:npz+run extract nested spellings report numerics read " + GIVEN
SCRIPTS = [      # files, and the scripts that concern them, or some of a script's checks: quick ones that see much first
    ("src/onnx/tensor.c", "ops read:elements+round+refusals cli:npz errors deeploy"),
    ("src/onnx/* src/read/read.c", "errors roll read:elements+round+refusals+json+changed+data+stage+locale+invalid"),
    ("src/ground/*", "errors roll ops numerics"),
    ("src/ops/infer.c src/ops/constants.c", "roll errors ops numerics"),
    ("src/ops/qonnx.c", "errors %(given)s ops"),
    ("src/ops/*", "ops errors cli:npz deeploy numerics"),
    ("src/read/expand*.c src/read/builder.c src/read/inline.c", "survival:operators+half+free+kept+functions spellings errors roll attention"),
    ("src/read/*", "spellings errors roll attention"),
    ("src/loop/finn.c", "roll errors finn"),
    ("src/loop/*", "roll odd:pairs+unrolled+places+layers nested extract errors spellings"),
    ("src/kernels/area.c src/core/estimate.c", "device:synthesized+parts errors report predict"),
    ("src/kernels/conv.c src/integer/window.c src/core/flow_window.c", "conv device:synthesized errors report predict"),
    ("src/kernels/rotary.c src/integer/rotary.c", "rotary:words+angles+refusals errors spellings rotary:cores device:synthesized"),
    ("src/integer/rotation.c src/integer/respell_rotary.c", "positions spellings errors rotary:refusals attention"),
    ("src/kernels/mul.c src/integer/gate.c", "gate:products+given+attention+options+refusals errors report numerics gate:hardware device:synthesized"),
    ("src/kernels/interval.c", "interval:ends fixed numerics report interval:words"),
    ("src/kernels/attention.c src/integer/attention.c", "numerics causal:kernels+errors bias:kernels+errors report predict interval causal:cores device:synthesized"),
    ("src/kernels/*", "errors device:synthesized report numerics predict fixed interval"),
    ("src/integer/said.c", "stories:inputs+words+default"),
    ("src/fold/* src/stages.c", "errors report search device fold_default"),
    ("src/integer/given.c src/integer/qconfig.c", "errors %(given)s numerics fixed"),
    ("src/integer/layout.c src/integer/respell*.c src/integer/mask.c src/integer/symbol.c src/integer/band.c src/integer/bias.c src/integer/recognise.c src/integer/scan.c",
     "spellings errors bias:kernels+errors causal:errors %(given)s numerics attention"),
    ("src/integer/*", "errors numerics spellings report %(given)s fixed"),
    ("src/core/lower.c", "cli:compile errors fold_default:loops report predict"),
    ("src/core/*", "report show:sizes+chip+manifests errors predict search"),
    ("src/share.c src/emit/*", "cli:compile errors report share trace memory"),
    ("src/show/*", "show:sizes+chip+manifests+odd+simulation+models report"),
    ("src/api.c", "errors roll report %(cli)s"),
    ("cli/npz.c", "cli:npz+hostile+archives+run errors"),
    ("cli/progress.c cli/wait.c", "sim:progress+stopped"),
    ("cli/sim.c cli/simulator.c cli/bench.c cli/trace.c cli/probe.c", "cli:sim trace sim faults"),
    ("main.c cli/*", "errors report %(cli)s"),
]


# ---- the sources -----------------------------------------------------------------------------------------------------------------

def included(path):
    """A file and all that it includes with quotes, as far as the tree has them; relative to the root."""
    found = [path]
    with open(os.path.join(ROOT, path), encoding="utf-8") as f: text = f.read()
    for name in re.findall(r'^\s*#\s*include "([^"]+)"', text, re.M):
        for folder in (os.path.dirname(path), ""):
            inner = os.path.normpath(os.path.join(folder, name))
            if os.path.exists(os.path.join(ROOT, inner)) and inner.endswith(".c"):
                found += included(inner)
                break
    return found


def costs():
    """Seconds of a processor that costs.txt lets each script take."""
    with open(os.path.join(TESTS, "costs.txt"), encoding="utf-8") as f: return {l.split()[0]: int(l.split()[1]) for l in f if not l.startswith("#")}


def scripts_of(path):
    found = (scripts for patterns, scripts in SCRIPTS if any(fnmatch.fnmatchcase(path, p) for p in patterns.split()))
    return (next(found, EVERYTHING) % {"given": GIVEN, "cli": CLI}).split()


# ---- mutants ---------------------------------------------------------------------------------------------------------------------

Mutant = collections.namedtuple("Mutant", "path kind at end new")
NOT_CODE = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*'
COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
OPERATORS = {"+": ("-",), "-": ("+",), "*": ("/", "+"), "/": ("*",), "%": ("/", "*"), "&&": ("||",), "||": ("&&",), "&": ("|",), "|": ("&",), "^": ("|",),
             "<<": (">>",), ">>": ("<<",), "+=": ("-=",), "-=": ("+=",), "*=": ("+=",), "/=": ("*=",), "|=": ("&=",), "&=": ("|=",)}
BINARY = r"(?<= )(?:%s)(?= )" % "|".join(re.escape(o) for o in sorted([*COMPARISONS, *OPERATORS], key=len, reverse=True))
NUMBER = r"(?<![\w.])(?:\d+\.\d*(?:e-?\d+)?|\d+e-?\d+|\d+)(?![\w.])"
DECLARED = r"^\s*(?:static |const |unsigned |struct )*\w+ [^=;()]*\[$"             # int64_t list[, of which more is no fault
NO_STATEMENT = "return break continue goto case default typedef struct enum union static extern const else do".split()


def code(text):
    """The text with comments, strings and preprocessor lines as spaces: what is left is code, in its place."""
    return re.sub(NOT_CODE, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S | re.M)


def other_numbers(number):
    if number.isdigit(): return [str(int(number) + 1)] + ([str(int(number) - 1)] if int(number) else [])
    return ["%g" % (float(number) * 3 + 0.5) + ("" if "%g" % (float(number) * 3 + 0.5) != "%d" % (float(number) * 3 + 0.5) else ".0")]


def closing(text, at):
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "({[") - (text[i] in ")}]")
        if not depth: return i + 1
    return len(text)


def statements(text):
    """(begin, end) of every statement that is an expression, without its semicolon."""
    begin, i = 0, 0
    while i < len(text):
        c = text[i]
        if c in "{};" or c == ":" and re.match(r"\s*(?:case\b.*|\w+)\s*$", text[begin:i], re.S):
            if c == ";" and re.match(r"[\w*(+-]", text[begin:i].lstrip()):
                first = begin + len(text[begin:i]) - len(text[begin:i].lstrip())
                one = text[first:i]
                declares = re.match(r"(?:\w+\s+)+\**\w+|\w+ \*+\w+", one) or re.match(r"\w+", one) and re.match(r"\w+", one)[0] in NO_STATEMENT
                if not declares and re.search(r"=|\(|\+\+|--", one): yield first, i
            begin = i + 1
        elif c in "([":
            control = re.search(r"\b(?:if|while|for|switch)\s*$", text[begin:i])
            i = closing(text, i)
            if control: begin = i
            continue
        elif re.match(r"\b(?:else|do)\b", text[i:i + 5]) and not re.match(r"\w", text[i - 1:i]):
            begin = i = i + (4 if c == "e" else 2)
            continue
        i += 1


def mutants(path):
    """Every place of a file that can be changed, with all that it can be changed to: kind -> [[mutant, ..], ..]."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f: text = code(f.read())
    found = collections.defaultdict(list)
    for m in re.finditer(BINARY, text):
        kind = "comparison" if m[0] in COMPARISONS else "operator"
        found[kind].append([Mutant(path, kind, m.start(), m.end(), new) for new in (COMPARISONS.get(m[0]) or OPERATORS[m[0]])])
    for m in re.finditer(r"\+\+|--", text): found["operator"].append([Mutant(path, "operator", *m.span(), {"++": "--", "--": "++"}[m[0]])])
    for m in re.finditer(r"!(?=[\w(])", text): found["operator"].append([Mutant(path, "operator", *m.span(), "")])
    for m in re.finditer(NUMBER, text):
        line = text[text.rfind("\n", 0, m.start()) + 1:m.start()]
        if not re.match(DECLARED, line): found["constant"].append([Mutant(path, "constant", *m.span(), new) for new in other_numbers(m[0])])
    for begin, end in statements(text): found["statement"].append([Mutant(path, "statement", begin, end, "(void)0")])
    return found


def sample(paths, n, seed):
    """n mutants, as many of each kind as there are."""
    r, places = random.Random("%s" % seed), collections.defaultdict(list)
    for path in paths:
        for kind, some in mutants(path).items(): places[kind] += some
    for some in places.values(): r.shuffle(some)
    chosen, kinds = [], sorted(places)
    while len(chosen) < n and any(places.values()):
        for kind in kinds:
            if places[kind] and len(chosen) < n: chosen.append(r.choice(places[kind].pop()))
    return chosen


def of_lines(every, asked):
    """All mutants of FILE:FIRST-LAST."""
    found = []
    for name, first, last in asked:
        for path in (p for p in every if p == name or p.endswith("/" + name)):
            found += [m for some in mutants(path).values() for places in some for m in places if first <= line_of(path, m.at) <= last]
    return sorted(found, key=lambda m: (m.path, m.at))


def line_of(path, at):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f: return f.read().count("\n", 0, at) + 1


def told(m):
    """A mutant as `src/json.c:253 comparison: "floor(d) < d" <= `."""
    with open(os.path.join(ROOT, m.path), encoding="utf-8") as f: text = f.read()
    around = text[max(text.rfind("\n", 0, m.at) + 1, m.at - 30):min(text.find("\n", m.end) % (len(text) + 1), m.end + 30)]
    old = text[m.at:m.end] if m.kind != "statement" else " ".join(text[m.at:m.end].split())[:60]
    return "%s:%d %s: %s -> %s%s" % (m.path, line_of(m.path, m.at), m.kind, old, m.new if m.kind != "statement" else "nothing",
                                     "" if m.kind == "statement" else " in `%s`" % " ".join(around.split()))


# ---- a tree to change ------------------------------------------------------------------------------------------------------------

class Tree:
    """The project with its C and its scripts copied and everything else linked, and ../shared beside it."""

    def __init__(self, folder, paths, cc):
        self.root, self.cc, self.paths = os.path.join(folder, "tree"), cc, paths
        os.makedirs(self.root)
        for name in os.listdir(ROOT):
            if name not in ("src", "cli", "tests", ".git"): os.symlink(os.path.join(ROOT, name), os.path.join(self.root, name))
        for name in ("src", "cli"): shutil.copytree(os.path.join(ROOT, name), os.path.join(self.root, name))
        os.remove(os.path.join(self.root, "main.c"))
        shutil.copy(os.path.join(ROOT, "main.c"), self.root)
        os.makedirs(os.path.join(self.root, "tests"))
        for name in os.listdir(TESTS):
            (shutil.copy if name.endswith((".py", ".txt", ".c")) else os.symlink)(os.path.join(TESTS, name), os.path.join(self.root, "tests", name))
        if os.path.isdir(os.path.join(ROOT, "..", "shared")): os.symlink(os.path.abspath(os.path.join(ROOT, "..", "shared")), os.path.join(folder, "shared"))
        self.made = os.path.join(folder, "made")
        os.makedirs(self.made)
        with open(os.path.join(self.made, "longest.c"), "w", encoding="utf-8") as f: f.write(LONGEST)

    def compile(self, unit, out, level):
        """Whether main.c or src/mlo.c compiles as the tree is."""
        flags = ["-std=c99", "-w", level, "-I.", "-Ibuild", "-I" + os.path.dirname(unit) if os.path.dirname(unit) else "-I."]
        return subprocess.run([*self.cc, *flags, "-c", unit, "-o", os.path.join(self.made, out)], cwd=self.root, capture_output=True).returncode == 0

    def link(self, name, *objects):
        """The path of a program of objects that compile() made; it ends by itself where a loop does not."""
        out = os.path.join(self.made, name)
        subprocess.run([self.cc[-1], *[os.path.join(self.made, o) for o in ("longest.c", *objects)], "-o", out, *LIBS], check=True)
        return out

    def unit_of(self, path): return "main.c" if path in self.paths["main.c"] else "src/mlo.c"

    def put(self, m):
        with open(os.path.join(ROOT, m.path), encoding="utf-8") as f: text = f.read()
        with open(os.path.join(self.root, m.path), "w", encoding="utf-8") as f: f.write(text[:m.at] + m.new + text[m.end:])

    def restore(self, m): shutil.copy(os.path.join(ROOT, m.path), os.path.join(self.root, m.path))


def run(tree, script, mlo, limit):
    """Why it failed, or None: the script, or those of its checks that it names, until its first FAIL."""
    folder, why = tempfile.mkdtemp(prefix="mlo-mutant-"), None
    env = dict(os.environ, TMPDIR=folder, PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1", MLO_SANITIZE="0")
    name, _, checks = script.partition(":")
    picks = checks.split("+") if checks else []
    p = subprocess.Popen([sys.executable, os.path.join(tree.root, "tests", "test_%s.py" % name), mlo, *picks], cwd=tree.root, env=env, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    late = []

    def end():
        late.append(1)
        os.killpg(p.pid, signal.SIGKILL)
    timer = threading.Timer(limit, end)
    timer.start()
    lines = []
    for line in p.stdout:
        lines.append(line)
        if line.startswith("FAIL "):
            why = line[5:].strip()
            break
    timer.cancel()
    if not why and p.wait(): why = "too slow" if late else "status %d: %s" % (p.returncode, " ".join(lines[-1:]).strip())
    try: os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError: pass
    p.wait()
    shutil.rmtree(folder, True)
    return why


class Judge:
    """Compiles and tries mutants; what the tests say without one is asked once for each script."""

    def __init__(self, cc, level, folder, paths, scripts, ask):
        self.scripts, self.ask, self.level, self.folder, self.paths, self.cc = scripts, ask, level, folder, paths, cc
        self.baseline, self.measuring, self.lock, self.costs = {}, {}, threading.Lock(), costs()
        self.trees = queue.Queue()                       # that no mutant is in

    def tree(self):
        try: return self.trees.get_nowait()
        except queue.Empty: pass
        t = Tree(tempfile.mkdtemp(dir=self.folder), self.paths, self.cc)
        for unit in self.paths:
            if not t.compile(unit, unit.replace("/", "_") + ".o", self.level): sys.exit("tests/mutants.py: %s does not compile" % unit)
        return t

    def passes(self, tree, m, script):
        """Whether a script passes without the mutant: asked once, and of scripts only that failed with one."""
        with self.lock: lock = self.measuring.setdefault(script, threading.Lock())
        with lock:
            if script not in self.baseline:
                tree.restore(m)                          # scripts compile src/, too
                plain = tree.link("plain", *[u.replace("/", "_") + ".o" for u in self.paths])
                why = run(tree, script, plain, 3000)
                tree.put(m)
                self.baseline[script] = not why
                if why: print("test_%s judges nothing: it fails without a mutant: %s" % (script, why[:200]), flush=True)
        return self.baseline[script]

    def fails(self, tree, m, script, mlo):
        """Why a script fails with a mutant and not without."""
        if not self.baseline.get(script, True): return None
        why = run(tree, script, mlo, 10 * self.costs.get("test_" + script.partition(":")[0], 60) + 60)
        return why if why and self.passes(tree, m, script) else None

    def same(self, tree, m, unit):
        """Does the compiler make the same object of it at -O2?"""
        before = os.path.join(self.folder, unit.replace("/", "_") + ".O2.o")
        if not tree.compile(unit, "mutant.o2", "-O2"): return False
        with self.lock:
            if not os.path.exists(before):
                tree.restore(m)
                tree.compile(unit, "plain.o2", "-O2")
                shutil.copy(os.path.join(tree.made, "plain.o2"), before)
        return filecmp.cmp(before, os.path.join(tree.made, "mutant.o2"), shallow=False)

    def verdict(self, m):
        tree = self.tree()
        try:
            tree.put(m)
            unit = tree.unit_of(m.path)
            if not tree.compile(unit, "mutant.o", self.level): return "did not compile", ""
            mlo = tree.link("mutant", *["mutant.o" if u == unit else u.replace("/", "_") + ".o" for u in self.paths])
            for script in self.scripts or scripts_of(m.path):            # until one fails
                why = self.fails(tree, m, script, mlo)
                if why: return "killed", "test_%s: %s" % (script, why[:100])
            return ("equivalent" if self.ask and self.same(tree, m, unit) else "survived"), ""
        finally:
            tree.restore(m)
            self.trees.put(tree)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("files", nargs="*", metavar="FILE", help="src/json.c, or json.c; src/json.c:40-52, every mutant of these lines")
    ap.add_argument("-n", type=int, default=20, help="mutants (20)")
    ap.add_argument("--seed", default=datetime.date.today().isoformat(), help="which ones (the date)")
    ap.add_argument("--only", type=int, nargs="*", help="of these, only those numbers")
    ap.add_argument("--list", action="store_true", help="say which they are, and try none")
    ap.add_argument("-j", type=int, default=2, help="at a time (2)")
    ap.add_argument("--same", action="store_true", help="ask the compiler about those that survive: does it make the same of them at -O2?")
    ap.add_argument("--scripts", help="instead of those that concern a file: \"roll given:qdq+qonnx\"")
    ap.add_argument("--cc", default=("ccache " if shutil.which("ccache") else "") + (shutil.which("clang") or "gcc"), help="compiler (clang: a second for all of src/ at -O0)")
    ap.add_argument("--level", default="-O0", help="of optimization (-O0)")
    a = ap.parse_args()
    paths = {unit: included(unit) for unit in ("main.c", "src/mlo.c")}
    every = [p for unit in paths.values() for p in unit if p != "src/mlo.c"]
    lines = [(f, int(first), int(last or first)) for f, first, last in re.findall(r"^(.+):(\d+)(?:-(\d+))?$", "\n".join(a.files), re.M)]
    files = [p for p in every if not a.files or lines or any(p == f or p.endswith("/" + f) for f in a.files)]
    if not files: sys.exit("tests/mutants.py: nothing that src/mlo.c or main.c includes is called %s" % " ".join(a.files))
    chosen = [(i, m) for i, m in enumerate(of_lines(every, lines) if lines else sample(files, a.n, a.seed), 1) if not a.only or i in a.only]
    print("%d mutants of %s, seed %s" % (len(chosen), " ".join(a.files) or "%d files" % len(files), a.seed), flush=True)
    if a.list: return print("\n".join("%3d  %s" % (i, told(m)) for i, m in chosen))
    folder, counts = tempfile.mkdtemp(prefix="mlo-mutants-"), collections.Counter()
    try:
        judge = Judge(a.cc.split(), a.level, folder, paths, (a.scripts or "").split(), a.same)
        with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
            waiting = {pool.submit(judge.verdict, m): (i, m) for i, m in chosen}
            for done in concurrent.futures.as_completed(waiting):
                (i, m), (verdict, why) = waiting[done], done.result()
                counts[verdict] += 1
                print("%3d  %-15s %s%s" % (i, verdict, told(m), "   [%s]" % why if why else ""), flush=True)
    finally: shutil.rmtree(folder, True)
    alive = counts["killed"] + counts["survived"]
    print("\n%d killed, %d survived, %d did not compile, %d equivalent: %.1f %% of %d that change something are killed" %
          (counts["killed"], counts["survived"], counts["did not compile"], counts["equivalent"], 100 * counts["killed"] / max(1, alive), alive))


if __name__ == "__main__": main()
