#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutants of the C: what the tests do not notice. A tool, not a test.

    python tests/mutants.py [FILE.c ...] [-n 20] [--seed N] [--list] [--only N ...]       (make mutants FILE=src/json.c N=20)
    python tests/mutants.py FILE.c:40-52 [--scripts "roll given:qdq"]                     every mutant of these lines, when a check of them is new

A mutant is the tree with one place of one file changed: a comparison, an operator, a constant, or a statement left out. Of all places in the files
(default: everything that src/mlo.c and main.c include) a seeded sample is taken, as many of each kind; the seed is the date. Each mutant is
compiled (a second), and the checks that run its line are asked, quick ones first, until one has a FAIL. The verdicts:

    killed            a check failed, or took far longer than without the mutant
    survived          none did: it is equivalent for a reason that no compiler knows, or a test is missing
    not run           no check that is asked runs the line (nor one of a table outside of functions: no line of it is run)
    equivalent        none did, and the compiler makes the same object of it at -O2 (with --same: that takes as long as ten scripts)
    did not compile   nothing was tried

Which lines a check runs, and how long it takes, is measured once: each script of MEASURED against an mlo that counts (Reach). What was measured stays in
build/mutants/ by the hash of the C and of the script. A check that fails there, or takes longer than --longest, is not asked.

Checks run without sanitizers: a step beyond an array, or memory that nobody frees, is seen here only when it changes something."""
import argparse
import collections
import concurrent.futures
import datetime
import filecmp
import fnmatch
import glob
import hashlib
import itertools
import json
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
QUICK = 4                                                # seconds of a processor: such checks of a script are asked together
START = 2                                                # .. that a script takes to begin
LONGEST = "#include <sys/resource.h>\n__attribute__((constructor)) static void end(void) { setrlimit(RLIMIT_CPU, &(struct rlimit){ 12, 12 }); }\n"     # no run of a check takes half of that
MEASURED = """errors roll report nested extract spellings attention positions edited deeploy finn given ops numerics cli survival odd conv gate fixed stories step
    trace bias causal rotary cross tokenizer share sim run context fold_default tokens perturb search show device predict read interval moved memory driver""".split()
TIMED = "sim:progress sim:stopped"                        # hold the clock against a prediction: on a busy machine they kill whatever there is
WHOLE = "ops"                                            # a check for each case: not asked apart
BESIDE = [       # what scripts compile into programs of their own, and do not run in mlo
    ("src/show/*", "show"),
    ("src/onnx/* src/read/* src/ground/* src/api.c", "read"),
    ("src/emit/sha.c src/share.c", "share"),
    ("src/exact/*", "interval"),
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


def run(tests, script, mlo, limit, to_the_end=False, **more):
    """Its lines, and why it failed, or None: the script, or those of its checks that it names, until its first FAIL."""
    folder, why = tempfile.mkdtemp(prefix="mlo-mutant-"), None
    env = dict(os.environ, TMPDIR=folder, PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1", MLO_SANITIZE="0", **more)
    name, _, checks = script.partition(":")
    picks = checks.split("+") if checks else []
    p = subprocess.Popen([sys.executable, os.path.join(tests, "test_%s.py" % name), mlo, *picks], cwd=os.path.dirname(tests), env=env, stdin=subprocess.DEVNULL,
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
        if line.startswith("FAIL ") and not to_the_end:
            why = line[5:].strip()
            break
    timer.cancel()
    if not why and p.wait(): why = "too slow" if late else "status %d: %s" % (p.returncode, " ".join(lines[-1:]).strip())
    try: os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError: pass
    p.wait()
    shutil.rmtree(folder, True)
    return lines, why


# ---- which checks run a line -----------------------------------------------------------------------------------------------------

Check = collections.namedtuple("Check", "script name seconds lines")     # lines: of each file a number with a bit for each that was run


class Reach:
    """All checks, as far as they were measured."""

    def __init__(self, folder, every):
        self.folder, self.kept, self.checks = folder, os.path.join(ROOT, "build", "mutants"), []
        os.makedirs(self.kept, exist_ok=True)
        self.sources = hashlib.sha256()
        for path in sorted({*every, "main.c", "src/mlo.c"}):
            with open(os.path.join(ROOT, path), "rb") as f: self.sources.update(f.read())

    def build(self):
        """An mlo that counts; src/ and not mlo.c, so that what is counted are its files."""
        mlo = os.path.join(self.folder, "counted")
        flags = ["-std=gnu99", "-w", "-O0", "-fprofile-instr-generate", "-fcoverage-mapping", "-I.", "-Ibuild"]
        if not os.path.exists(mlo): subprocess.run(["clang", *flags, "main.c", "src/mlo.c", "-o", mlo, *LIBS], cwd=ROOT, check=True)
        return mlo

    def load(self, script, measure):
        """The checks of a script, from what is kept or by running it."""
        with open(os.path.join(TESTS, "test_%s.py" % script), "rb") as f: key = hashlib.sha256(self.sources.digest() + f.read()).hexdigest()[:16]
        path = os.path.join(self.kept, "%s-%s.json" % (script, key))
        if not os.path.exists(path):
            if not measure: return
            found = self.measured(script, self.build())
            with open(path + ".part", "w", encoding="utf-8") as f: json.dump(found, f)
            os.replace(path + ".part", path)
        with open(path, encoding="utf-8") as f: found = json.load(f)
        found = [one for one in found if "%s:%s" % (script, one[0]) not in TIMED.split()]
        self.checks += [Check(script, name, seconds, {p: int(bits, 16) for p, bits in lines.items()}) for name, seconds, lines in found]

    def measured(self, script, mlo):
        """[[check, seconds, {file: lines}], ..] of those that pass."""
        folder, found, failed = tempfile.mkdtemp(dir=self.folder), [], False
        if script in WHOLE.split():
            began = sum(os.times()[2:4])
            why = run(TESTS, script, mlo, 3000, LLVM_PROFILE_FILE=os.path.join(folder, "all.%4m"))[1]
            if why: print("test_%s judges nothing: it fails without a mutant: %s" % (script, why), flush=True)
            else: found = [["", sum(os.times()[2:4]) - began, self.lines(glob.glob(os.path.join(glob.escape(folder), "all.*")), mlo)]]
            return found
        for line in run(TESTS, script, mlo, 3000, True, MLO_PROFILES=folder)[0]:
            failed |= line.startswith("FAIL ")
            done = re.match(r"    check (\w+): ([\d.]+) s, ([\d.]+) of a processor", line)
            if not done: continue
            if failed: print("test_%s:%s judges nothing: it fails without a mutant" % (script, done[1]), flush=True)
            else: found.append([done[1], float(done[3]), self.lines(glob.glob(os.path.join(glob.escape(folder), done[1] + ".*")), mlo)])
            failed = False
        shutil.rmtree(folder, True)
        return found

    def lines(self, profiles, mlo):
        """File -> the lines that profiles say were run."""
        if not profiles: return {}
        merged, found, path = profiles[0] + ".all", {}, None
        subprocess.run(["llvm-profdata", "merge", "-o", merged, *profiles], check=True)
        text = subprocess.run(["llvm-cov", "export", "-format=lcov", mlo, "-instr-profile", merged], capture_output=True, check=True, text=True).stdout
        for kind, _, rest in (line.partition(":") for line in text.splitlines()):
            if kind == "SF": path = os.path.relpath(rest, ROOT)
            elif kind == "DA" and not rest.endswith(",0"): found[path] = found.get(path, 0) | 1 << int(rest.split(",")[0])
        return {path: "%x" % bits for path, bits in found.items()}

    def asked(self, path, line, longest, most):
        """[(script:checks, seconds), ..] that may see a change of a line: first those that see much of the file for a second. Quick ones of a script are
        one round; a long one is alone."""
        beside = " ".join(scripts for patterns, scripts in BESIDE if any(fnmatch.fnmatchcase(path, p) for p in patterns.split())).split()
        rounds = collections.defaultdict(list)
        for c in self.checks:
            if c.seconds <= longest and (c.lines.get(path, 0) >> line & 1 or c.script in beside): rounds[c.script, c.name if c.seconds > QUICK else None].append(c)
        found = []
        for (script, _), some in rounds.items():
            seen, seconds = 0, sum(c.seconds for c in some)
            for c in some: seen |= c.lines.get(path, 0)
            found.append((-bin(seen).count("1") / (seconds + START), "%s:%s" % (script, "+".join(c.name for c in some)), seconds))
        found = [(checks, seconds) for _, checks, seconds in sorted(found)]
        spent = list(itertools.accumulate(seconds + START for _, seconds in found))
        return [one for k, one in enumerate(found) if not k or spent[k] <= most]


class Judge:
    """Compiles and tries mutants."""

    def __init__(self, cc, level, folder, paths, asked, ask):
        self.asked, self.ask, self.level, self.folder, self.paths, self.cc = asked, ask, level, folder, paths, cc
        self.lock = threading.Lock()
        self.trees = queue.Queue()                       # that no mutant is in

    def tree(self):
        try: return self.trees.get_nowait()
        except queue.Empty: pass
        t = Tree(tempfile.mkdtemp(dir=self.folder), self.paths, self.cc)
        for unit in self.paths:
            if not t.compile(unit, unit.replace("/", "_") + ".o", self.level): sys.exit("tests/mutants.py: %s does not compile" % unit)
        return t

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
        asked = self.asked(m)
        if not asked: return "not run", ""
        tree = self.tree()
        try:
            tree.put(m)
            unit = tree.unit_of(m.path)
            if not tree.compile(unit, "mutant.o", self.level): return "did not compile", ""
            mlo = tree.link("mutant", *["mutant.o" if u == unit else u.replace("/", "_") + ".o" for u in self.paths])
            for script, seconds in asked:                # until one fails
                why = run(os.path.join(tree.root, "tests"), script, mlo, 10 * seconds + 60)[1]
                if why: return "killed", "test_%s: %s" % (script, why[:100])
            return ("equivalent" if self.ask and self.same(tree, m, unit) else "survived"), "%d checks" % sum(s.count("+") + 1 for s, _ in asked)
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
    ap.add_argument("--scripts", help="instead of the checks that run a line: \"roll given:qdq+qonnx\"")
    ap.add_argument("--longest", type=float, default=60, help="ask checks that take at most so many seconds (60)")
    ap.add_argument("--most", type=float, default=600, help="ask of each mutant what takes at most so many seconds in all (600)")
    ap.add_argument("--measured", action="store_true", help="ask only checks that were measured already")
    ap.add_argument("--measure", nargs="*", metavar="SCRIPT", help="measure these scripts (default: all), and try no mutant")
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
        reach = Reach(folder, every)
        if a.measure is not None:
            for script in a.measure or MEASURED: reach.load(script, True)
            return
        for script in MEASURED if not a.scripts else []: reach.load(script, not a.measured)
        asked = lambda m: [(s, 300) for s in a.scripts.split()] if a.scripts else reach.asked(m.path, line_of(m.path, m.at), a.longest, a.most)
        judge = Judge(a.cc.split(), a.level, folder, paths, asked, a.same)
        with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
            waiting = {pool.submit(judge.verdict, m): (i, m) for i, m in chosen}
            for done in concurrent.futures.as_completed(waiting):
                (i, m), (verdict, why) = waiting[done], done.result()
                counts[verdict] += 1
                print("%3d  %-15s %s%s" % (i, verdict, told(m), "   [%s]" % why if why else ""), flush=True)
    finally: shutil.rmtree(folder, True)
    alive = counts["killed"] + counts["survived"] + counts["not run"]
    print("\n%s: %.1f %% of %d that change something are killed" % (", ".join("%d %s" % (n, v) for v, n in sorted(counts.items())), 100 * counts["killed"] / max(1, alive), alive))


if __name__ == "__main__": main()
