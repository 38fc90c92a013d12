#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutants of the C: what the tests do not notice. A tool, not a test.

    python tests/mutants.py [FILE.c ...] [-n 20] [--seed N] [--list] [--only N ...]       (make mutants FILE=src/json.c N=20 SEED=1)
    python tests/mutants.py FILE.c:40-52 [--scripts "roll given:qdq"]                     every mutant of these lines, when a check of them is new

A mutant is mlo with one place of one file changed: a comparison, an operator, a constant, or a statement left out. Of all places in the files
(default: everything that src/mlo.c and main.c include) a seeded sample is taken, as many of each kind; the seed is the date. All of them are compiled into
one program (schemata), which the environment tells which one to be: MLO_MUTANT=17. What is no place for that, a case or the size of an array, is compiled alone.

As none of them the program notes which mutants a check reaches, and where the changed expression would have had another value (MLO_SEEN=file). So scripts,
what costs least first, are run once as they are, and in between those of their checks are asked about a mutant in which it would make a difference, until one
has a FAIL. What is found stays in build/mutants/, by the hash of the C and of the sample: a run that was stopped goes on where it was, and a script
that changed is asked again about what is alive. The verdicts:

    killed         a check failed, or took far longer than without the mutant
    survived       none did: a test is missing, or it is equivalent for a reason that has to be found
    unjudged       none did, of those that were asked: --scripts, --most and --longest leave some out
    no difference  its expression has the same value whenever a check comes by
    not reached    no check comes by
    equivalent     none of these, and equivalents.txt says why it changes nothing that anybody can see

At last those that are alive are asked under sanitizers: a step beyond an array, or memory that nobody frees, is seen by nothing else."""
import argparse
import collections
import concurrent.futures
import datetime
import glob
import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from run import PLAIN

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TESTS)
LIBS = ["-lprotobuf-nanopb", "-lcjson", "-lz", "-lm"]
QUICK = 4                                                # seconds: checks of a script that take no more are asked together
START = 0.1                                              # .. that a question takes besides
LONGEST = 60                                             # seconds of a processor, in which a run of mlo ends that is asked of a mutant; none takes a fifth of that without
IDLE = 16                                                # scripts that have begun and wait for a question; each holds 100 MB
FEW = 4                                                  # scripts that are measured before each mutant is asked once more
# No script: what packages, pages and other compilers make of mlo, and what holds the clock or the memory against a number, or puts faults in itself
WATCHED = "-O1 -g1 -fsanitize=address,bounds -fno-sanitize-recover=all"       # of the undefined, mutants that are not chosen do some, too
GONE = "ended by somebody"                               # a script: that says nothing of a mutant, whose programs are not the script
NO_SCRIPT = "library package pages layout fuzz faults large hardware stalls jobs families wrong_usage".split()
TIMED = "sim:progress sim:stopped".split()                # hold the clock against a prediction: on a busy machine they kill whatever there is; not even run


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


def code(text, string=" "):
    """The text with comments, strings and preprocessor lines as spaces (strings as something else): what is left is code, in its place."""
    return re.sub(NOT_CODE, lambda m: re.sub(r"[^\n]", string if m[0][0] in "\"'" else " ", m[0]), text, flags=re.S | re.M)


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
    """n mutants, as many of each kind as there are. A place's turn is a hash of the seed and of what stands around it: a line that is edited changes
    the draw of what is on it, and of nothing else."""
    places, met = collections.defaultdict(list), collections.Counter()
    for path in paths:
        with open(os.path.join(ROOT, path), encoding="utf-8") as f: text = f.read()
        for kind, some in mutants(path).items():
            for place in some:
                stands = path, kind, " ".join(text[max(place[0].at - 30, 0):place[0].end + 30].split())
                met[stands] += 1                         # the first of those that look alike, or which
                turn = hashlib.sha256(repr((str(seed), stands, met[stands])).encode()).digest()
                places[kind].append((turn, place))
    for some in places.values(): some.sort(key=lambda s: s[0], reverse=True)
    chosen, kinds = [], sorted(places)
    while len(chosen) < n and any(places.values()):
        for kind in kinds:
            if not places[kind] or len(chosen) == n: continue
            turn, place = places[kind].pop()
            chosen.append(place[turn[-1] % len(place)])
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


# ---- all mutants in one program --------------------------------------------------------------------------------------------------

HEADER = """#pragma GCC system_header
#ifndef MUTANTS
#define MUTANTS
static int mutant_chosen = -1;
static volatile unsigned char mutant_own[4096], *mutant_seen = mutant_own;
extern char *mutant_getenv(const char *) __asm__("getenv");
extern int mutant_atoi(const char *) __asm__("atoi"), mutant_open(const char *, int, ...) __asm__("open");
extern int mutant_timer(int, const long *, void *) __asm__("setitimer"), mutant_truncate(int, long) __asm__("ftruncate");
extern int mutant_close(int) __asm__("close");
extern void *mutant_map(void *, unsigned long, int, int, int, long) __asm__("mmap");
__attribute__((constructor)) static void mutant_choose(void) {
    const char *chosen = mutant_getenv("MLO_MUTANT"), *path = mutant_getenv("MLO_SEEN");
    long most[4] = { 0, 0, chosen ? LONGEST : 10 * LONGEST, 0 };
    int f = path ? mutant_open(path, 0102, 0600) : -1;
    if (chosen) mutant_chosen = mutant_atoi(chosen);
    if (chosen || path) mutant_timer(2, most, (void *)0);
    if (f >= 0 && !mutant_truncate(f, 4096)) mutant_seen = mutant_map((void *)0, 4096, 3, 1, f, 0);
    if (f >= 0) mutant_close(f);
}
#define MUTANT(n) (mutant_seen[n] = 3, mutant_chosen == (n))
#define MUTANT_OF(n, l, r, op, other)                                                                    \\
    (__extension__({                                                                                     \\
        __auto_type l_##n = l;                                                                           \\
        __auto_type r_##n = r;                                                                           \\
        mutant_seen[n] |= (l_##n op r_##n) != (l_##n other r_##n) ? 3 : 1;                               \\
        mutant_chosen == (n) ? l_##n other r_##n : (l_##n op r_##n);                                     \\
    }))
#define MUTANT_AND(n, l, r) (__extension__({ int l_##n = !!l, v_##n; if (mutant_chosen == (n)) v_##n = l_##n || r; else v_##n = l_##n && r; mutant_seen[n] |= v_##n ? 1 : 3; v_##n; }))
#define MUTANT_OR(n, l, r) (__extension__({ int l_##n = !!l, v_##n; if (mutant_chosen == (n)) v_##n = l_##n && r; else v_##n = l_##n || r; mutant_seen[n] |= v_##n ? 3 : 1; v_##n; }))
#endif
"""
STRENGTH = [("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%")]
ASSIGN = ("+=", "-=", "*=", "/=", "|=", "&=", "%=", "^=", "<<=", ">>=", "=")
SPACED = re.compile(r"(?<=\s)(%s)(?=\s)" % "|".join(re.escape(o) for o in sorted([*itertools.chain(*STRENGTH), *ASSIGN, "?", ":"], key=len, reverse=True)))
STATEMENT = re.compile(r"(?:if|for|while|switch)\s*$")


def strength(op): return next((i for i, some in enumerate(STRENGTH) if op in some), -1)


def left_of(text, at, own):
    """Where the left operand of an operator of that strength begins."""
    i = at
    while i > 0:
        c = text[i - 1]
        if c in ")]":
            depth, i = 1, i - 1
            while depth: i, depth = i - 1, depth + (text[i - 1] in ")]}") - (text[i - 1] in "([{")
            control = STATEMENT.search(text[max(0, i - 12):i])
            if not control: continue
            i = closing(text, i)
            break
        word = not re.match(r"\w", text[i:i + 1]) and re.search(r"(?<!\w)(?:return|else|do|case)$", text[max(0, i - 7):i])
        if c in "([{};," or word: break
        if c.isspace():
            op = re.search(r"(?<=\s)(\S+)$", text[max(0, i - 5):i - 1])
            if op and SPACED.match(text, i - 1 - len(op[1])) and SPACED.match(text, i - 1 - len(op[1]))[1] == op[1] and (op[1] in (*ASSIGN, "?", ":") or strength(op[1]) < own): break
        i -= 1
    return i + len(text[i:at]) - len(text[i:at].lstrip())


def right_of(text, at, own):
    """Where the right operand ends."""
    i = at
    while i < len(text):
        c = text[i]
        if c in "([{":
            i = closing(text, i)
            continue
        op = SPACED.match(text, i)
        if c in ")]};," or op and (strength(op[1]) <= own): break
        i += len(op[1]) if op else 1
    return at + len(text[at:i].rstrip())


def around(text, m):
    """(begin, end) of the whole expression that a mutant changes."""
    old = text[m.at:m.end]
    if m.kind in ("statement", "constant"): return m.at, m.end
    if old in ("++", "--"):
        if re.match(r"\w", text[m.end:]) or text[m.end] in "(*": return m.at, re.compile(r"\**(?:\w|->|\.)+|\(").match(text, m.end).end()
        begin = m.at
        while re.match(r"[\w.>\])-]", text[begin - 1]):
            if text[begin - 1] in ")]":
                depth, begin = 1, begin - 1
                while depth: begin, depth = begin - 1, depth + (text[begin - 1] in ")]") - (text[begin - 1] in "([")
            else: begin -= 1
        return begin, m.end
    if old == "!":
        end = m.end
        while re.match(r"[\w.(\[]|->", text[end:end + 2]): end = closing(text, end) if text[end] in "([" else end + (2 if text[end] == "-" else 1)
        return m.at, end
    own = -2 if old in ASSIGN else strength(old)             # what is assigned reaches to the end
    return left_of(text, m.at, own), right_of(text, m.end, own)


def schemata(path, numbered):
    """The text of a file in which every mutant, of (number, mutant), is there to be chosen at run time; each is on one line, with its number."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f: text = f.read()
    bare = code(text, "_")
    places = sorted((*around(bare, m), n, m) for n, m in numbered)

    def render(lo, hi, some):
        """text[lo:hi] with the mutants of that range."""
        if not some: return text[lo:hi]
        begin, end, n, m = max(some, key=lambda p: (p[1] - p[0], -p[2]))
        rest = [p for p in some if p[2] != n]
        inside = [p for p in rest if begin <= p[0] and p[1] <= end]
        before, after = [p for p in rest if p[1] <= begin and p not in inside], [p for p in rest if p[0] >= end and p not in inside]
        return render(lo, begin, before) + wrap(begin, end, n, m, inside) + render(end, hi, after)

    def wrap(begin, end, n, m, inside):
        left, right = [p for p in inside if p[1] <= m.at], [p for p in inside if p[0] >= m.end]
        l, r, old = flat(render(begin, m.at, left)), flat(render(m.end, end, right)), text[m.at:m.end]
        if m.kind == "statement": return "if (MUTANT(%d)) {} else %s" % (n, flat(render(begin, end, inside)))
        if len(left) + len(right) < len(inside): return "(MUTANT(%d) ? %s %s %s : (%s))" % (n, l, m.new, r, flat(render(begin, end, inside)))
        if m.kind == "constant" or old in ("++", "--", "!") or old in ASSIGN: return "(MUTANT(%d) ? %s%s%s : %s%s%s)" % (n, l, m.new, r, l, old, r)
        if old in ("&&", "||") and re.search(r"\w\(|\+\+|--|[^=!<>]=[^=]", r): return "(MUTANT(%d) ? %s %s %s : %s %s %s)" % (n, l, m.new, r, l, old, r)      # what r does is done by one of both
        if old in ("&&", "||"): return "MUTANT_%s(%d, (%s), (%s))" % ("AND" if old == "&&" else "OR", n, l, r)
        if "/" in (old, m.new) or "%" in (old, m.new): return "(MUTANT(%d) ? %s %s %s : %s %s %s)" % (n, l, m.new, r, l, old, r)
        return "MUTANT_OF(%d, (%s), (%s), %s, %s)" % (n, l, r, old, m.new)
    return HEADER.replace("LONGEST", str(LONGEST)) + render(0, len(text), places)


def flat(text): return re.sub(r"\s*\n\s*", " ", re.sub(r"//[^\n]*\n", "\n", text)).strip()


# ---- programs --------------------------------------------------------------------------------------------------------------------

class Tree:
    """The project with its C and its scripts copied and everything else linked, and ../shared beside it. texts: path -> what to write there instead."""

    def __init__(self, folder, texts):
        self.root, self.tests, self.mlo, self.complaints = os.path.join(folder, "tree"), os.path.join(folder, "tree", "tests"), os.path.join(folder, "tree", "mlo"), ""
        os.makedirs(self.tests)
        for name in os.listdir(ROOT):
            if name not in ("src", "cli", "tests", "main.c", "mlo", ".git"): os.symlink(os.path.join(ROOT, name), os.path.join(self.root, name))
        for name in ("src", "cli"): shutil.copytree(os.path.join(ROOT, name), os.path.join(self.root, name))
        shutil.copy(os.path.join(ROOT, "main.c"), self.root)
        for name in os.listdir(TESTS):
            (shutil.copy if name.endswith((".py", ".txt", ".c")) else os.symlink)(os.path.join(TESTS, name), os.path.join(self.tests, name))
        if os.path.isdir(os.path.join(ROOT, "..", "shared")): os.symlink(os.path.abspath(os.path.join(ROOT, "..", "shared")), os.path.join(folder, "shared"))
        self.write(texts)

    def write(self, texts):
        for path, text in texts.items():
            with open(os.path.join(self.root, path), "w", encoding="utf-8") as f: f.write(text)

    def compile(self, cc, *flags):
        """Whether it compiles; else the complaints say why not."""
        p = subprocess.run([*cc, "-std=c99", "-w", *flags, "-I.", "-Ibuild", "-Isrc", "main.c", "src/mlo.c", *(LIBS if "-o" in flags else [])], cwd=self.root, capture_output=True, text=True)
        self.complaints = p.stderr
        return p.returncode == 0

    def in_texts(self, cc):
        """Numbers of mutants that a macro makes text of: these would be another program even when none is chosen."""
        text = subprocess.run([*cc, "-E", "-P", "-std=c99", "-w", "-I.", "-Ibuild", "-Isrc", "src/mlo.c"], cwd=self.root, capture_output=True, text=True).stdout
        return {int(n) for words in re.findall(r'"(?:\\.|[^"\\\n])*"', text) for n in re.findall(r"\b(?:MUTANT(?:_\w+)?\(|mutant_seen\[)(\d+)", words)}

    def link(self, cc, level): return self.compile(cc, *level.split(), "-o", self.mlo)


def by_file(numbered):
    files = collections.defaultdict(list)
    for n, m in numbered: files[m.path].append((n, m))
    return {path: schemata(path, some) for path, some in files.items()}


def kept(chosen, what):
    """Where something of these mutants of this C stays."""
    key, folder = hashlib.sha256(repr(chosen).encode()), os.path.join(ROOT, "build", "mutants")
    for path in sorted(included("main.c") + included("src/mlo.c")):
        with open(os.path.join(ROOT, path), "rb") as f: key.update(f.read())
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, key.hexdigest()[:16] + what)


def together(folder, numbered, cc):
    """A tree with all these mutants in one program, to be built, and those that are no place for that."""
    listed, alone = kept(numbered, "-alone"), set()
    if os.path.exists(listed):
        with open(listed, encoding="utf-8") as f: alone = set(json.load(f))
    tree = Tree(folder, by_file([(n, m) for n, m in numbered if n not in alone]))

    def leave(wrong):
        alone.update(wrong)
        for path in {m.path for n, m in numbered if n in wrong}: tree.write({path: schemata(path, [(n, m) for n, m in numbered if m.path == path and n not in alone])})
    while not os.path.exists(listed) and not tree.compile(cc, "-fsyntax-only", "-ferror-limit=0" if "clang" in cc[-1] else "-fmax-errors=0"):
        wrong = {int(n) for line in tree.complaints.splitlines() for n in re.findall(r"\bMUTANT(?:_\w+)?\((\d+)", line)} - alone
        if not wrong: sys.exit("tests/mutants.py: it does not compile:\n" + tree.complaints[:2000])
        leave(wrong)
    if not os.path.exists(listed): leave(tree.in_texts(cc))
    with open(listed, "w", encoding="utf-8") as f: json.dump(sorted(alone), f)
    return tree, sorted(alone)


def built(tree, numbered, cc, level):
    """The same tree, with its program."""
    before = kept(numbered, level.replace(" ", "") + "-mlo")
    if not os.path.exists(before):
        if not tree.link(cc, level): sys.exit("tests/mutants.py: it does not link:\n" + tree.complaints[:2000])
        shutil.copy(tree.mlo, before)
    shutil.copy(before, tree.mlo)
    return tree


def single(folder, m, cc):
    """A tree with that mutant only, or None when it does not compile."""
    with open(os.path.join(ROOT, m.path), encoding="utf-8") as f: text = f.read()
    tree, before = Tree(folder, {m.path: schemata(m.path, [])[:-len(text)] + text[:m.at] + m.new + text[m.end:]}), kept([(0, m)], "-single-mlo")
    if not os.path.exists(before):
        if not tree.link(cc, "-O0"): return None
        shutil.copy(tree.mlo, before)
    shutil.copy(before, tree.mlo)
    return tree


class Script:
    """A script that has begun and forks for each question: harness.py, asked(). Its folder is the same for each of them."""
    idle, lock = [], threading.Lock()

    def __init__(self, tree, script):
        self.key, self.folder = (tree.root, script), tempfile.mkdtemp(prefix="mlo-mutant-")
        self.now, self.begun = os.path.join(self.folder, "now"), os.path.join(self.folder, "begun")
        os.mkdir(self.now)
        env = dict(os.environ, TMPDIR=self.now, MLO_ASKED="1", PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1", MLO_SANITIZE="0")
        self.p = subprocess.Popen([sys.executable, os.path.join(tree.tests, "test_%s.py" % script), tree.mlo], cwd=tree.root, env=env, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        self.said, line = [], None
        for line in iter(self.p.stdout.readline, ""):
            if line == "asked\n": break
            self.said.append(line)
        if not line: self.p.wait()
        shutil.copytree(self.now, self.begun, symlinks=True)

    def ask(self, checks, limit, env):
        """The lines of these checks, and why they failed, or None. As a mutant it ends at its first FAIL."""
        why, lines, late, status = None, [], [], -1
        if self.p.poll() is not None: return self.said, ended(self.p.returncode, self.said)                    # it never came to main()
        print(json.dumps([env, checks]), file=self.p.stdin, flush=True)
        child = int(self.p.stdout.readline())

        def end():
            late.append(1)
            stop()

        def stop():
            try: os.killpg(child, signal.SIGKILL)
            except ProcessLookupError: pass                       # it just ended
        timer = threading.Timer(limit, end)
        timer.start()
        for line in iter(self.p.stdout.readline, ""):
            if line.startswith("\0"):
                status = int(line[1:])
                break
            lines += [line] * (line != "\n")
            if line.startswith("FAIL ") and "MLO_MUTANT" in env and not why:
                why = line[5:].strip()
                stop()
        timer.cancel()
        if not why: why = "too slow" if late else ended(status, lines)
        shutil.rmtree(self.now, True)
        shutil.copytree(self.begun, self.now, symlinks=True)
        return lines, why

    def end(self):
        self.p.kill()
        self.p.communicate()
        shutil.rmtree(self.folder, True)


def ended(status, lines):
    """Why that is a failure, or None."""
    return None if status == 0 else GONE if status < 0 else "status %d: %s" % (status, " ".join(lines[-1:]).strip())


def run(tree, script, checks, limit, **env):
    """What a script says of these checks (Script.ask). Some that have begun wait for the next question."""
    with Script.lock:
        one = next((s for s in Script.idle if s.key == (tree.root, script)), None)
        if one: Script.idle.remove(one)
    one = one or Script(tree, script)
    said = one.ask(checks, limit, env)
    with Script.lock:
        Script.idle += [one] * (one.p.poll() is None)
        old = [Script.idle.pop(0) for _ in Script.idle[IDLE:]]
    for s in old: s.end()
    return said


# ---- which checks see a mutant -----------------------------------------------------------------------------------------------------

Check = collections.namedtuple("Check", "script name seconds seen")      # seen: number of a mutant -> 1, reached, or 3, with another value


def scripts(last):
    """All that are asked, what costs least first, but some last."""
    with open(os.path.join(TESTS, "costs.txt"), encoding="utf-8") as f: rows = [l.split() for l in f if l.startswith("test_")]
    costs = sorted((name[5:] in last, float(seconds), name[5:]) for name, seconds in rows)
    return [name for _, _, name in costs if name not in NO_SCRIPT]


def measured(tree, script, picks):
    """[[check, seconds, {mutant: seen}], ..] of those that pass without a mutant."""
    if not picks and any(name.startswith(script + ":") for name in TIMED):
        with open(os.path.join(tree.tests, "test_%s.py" % script), encoding="utf-8") as f:
            picks = [name for name in re.findall(r"^def check_(\w+)\(", f.read(), re.M) if "%s:%s" % (script, name) not in TIMED]
    folder, found, failed = tempfile.mkdtemp(prefix="mlo-seen-"), [], False
    began = time.monotonic()
    lines, why = run(tree, script, picks, 3000, MLO_SEEN=os.path.join(folder, "all"))

    def seen(name):
        path = os.path.join(folder, name.replace("/", "-"))
        if not os.path.exists(path): return {}
        with open(path, "rb") as f: return {str(n): v for n, v in enumerate(f.read()) if v}
    for line in lines:
        failed |= line.startswith("FAIL ")
        done = re.match(r"    check (\S+): ([\d.]+) s, ([\d.]+) of a processor", line)
        if not done: continue
        if failed: print("test_%s:%s judges nothing: it fails without a mutant" % (script, done[1]), flush=True)
        else: found.append([done[1], float(done[3]), seen(done[1])])
        failed = False
    if not found and not why: found = [["", time.monotonic() - began, seen("all")]]
    if not found: print("test_%s judges nothing: it fails without a mutant: %s" % (script, why), flush=True)
    shutil.rmtree(folder, True)
    return found


def each(what):
    """Of `script-hash:one+two` the two."""
    script, _, names = what.rpartition(":")
    return {script + ":" + name for name in names.split("+")}


class Judge:
    """Asks checks about mutants, and keeps in a file what they said."""

    def __init__(self, chosen, tree, singles, a):
        self.chosen, self.tree, self.singles, self.a, self.lock, self.watched = dict(chosen), tree, singles, a, threading.Lock(), False
        self.alone = set(singles)
        self.seen, self.asked, self.spent = collections.Counter(), collections.defaultdict(set), collections.Counter()
        self.killed, self.rate = {}, collections.defaultdict(lambda: [0, 0])                # of checks, and of these for a folder: kills, times asked
        self.path = kept(chosen, ".jsonl")
        self.known, self.alone_pass = {}, {}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as f: rows = [json.loads(line) for line in f]
            for row in rows: self.learn(row, True)

    def learn(self, row, first=False):
        if "measured" in row: self.known[row["measured"]] = row["checks"]
        else:
            n, what = row["mutant"], row["asked"]
            self.asked[n].update(each(what))
            if first: self.spent[n] += 0 if what.startswith("watched") else row["seconds"]
            for check in row["names"]:
                for key in (check, (check, os.path.dirname(self.chosen[n].path))):
                    self.rate[key][0] += bool(row["why"])
                    self.rate[key][1] += 1
            if row["why"]: self.killed[n] = "%s: %s" % (row["names"][0].partition(":")[0], row["why"][:100])

    def keep(self, row):
        with self.lock, open(self.path, "a", encoding="utf-8") as f:
            f.write(json.dumps(row) + "\n")
            self.learn(row)

    def checks(self, script):
        """Those of a script (or of SCRIPT:CHECK+CHECK), from what is kept or by running it."""
        name, script = script, script.partition(":")[0]
        with open(os.path.join(TESTS, "test_%s.py" % script), "rb") as f: key = name + "-" + hashlib.sha256(f.read()).hexdigest()[:16]
        if key not in self.known: self.keep({"measured": key, "checks": measured(self.tree, script, [word for word in name.partition(":")[2].split("+") if word])})
        checks = [Check(script, name, seconds, {int(n): v for n, v in seen.items()}) for name, seconds, seen in self.known[key]]
        with self.lock:
            for c in checks:
                for n, v in c.seen.items(): self.seen[n] |= v
        return key, checks

    def likely(self, n, c):
        """How likely a check kills a mutant: by what it did before, above all in that folder; at first those that see little are."""
        name = c.script + ":" + c.name
        own, there = self.rate[name], self.rate[name, os.path.dirname(self.chosen[n].path)]
        return (there[0] + 2 * (own[0] + 1) / (own[1] + 3 + 12 * len(c.seen) / len(self.chosen))) / (there[1] + 2)

    def rounds(self, n, measured):
        """[(what, script, checks, seconds), ..] to ask about a mutant, the likeliest kill for a second first. Quick checks of a script are asked together."""
        rounds = []
        for key, checks in measured:
            seen = [c for c in checks if c.seconds <= self.a.longest and (n in self.singles or c.seen.get(n, 0) & 2)]
            packs = [[]]
            for c in sorted(seen, key=lambda c: -self.likely(n, c) / (c.seconds + START)):
                if packs[-1] and sum(one.seconds for one in packs[-1]) + c.seconds > QUICK: packs.append([])
                packs[-1].append(c)
            for some in filter(None, packs):
                what = "watched " * self.watched + key + ":" + "+".join(sorted(c.name for c in some))
                seconds, alive = START + sum(c.seconds for c in some), 1.0
                for c in some: alive *= 1 - self.likely(n, c)
                if not each(what) <= self.asked[n]: rounds.append(((alive - 1) / seconds, what, some[0].script, [c.name for c in some if c.name], seconds))
        return [r[1:] for r in sorted(rounds)]

    def stands(self, script, checks, seconds):
        """Do these checks pass without a mutant when they are asked alone? (What another check of the script leaves behind may be missing.)"""
        key = script, *checks
        if key not in self.alone_pass:
            self.alone_pass[key] = run(self.tree, script, checks, 10 * seconds + 60)[1] in (None, GONE)
            if not self.alone_pass[key]: print("test_%s:%s judges nothing when it is asked alone: it fails without a mutant" % (script, "+".join(checks)), flush=True)
        return self.alone_pass[key]

    def ask(self, n, measured):
        """Asks what is likeliest to kill a mutant, when that is not too dear."""
        for what, script, checks, seconds in self.rounds(n, measured)[:1]:
            if self.spent[n] + seconds > self.a.most: return
            self.spent[n] += seconds
            tree = self.singles.get(n, self.tree)
            why = run(tree, script, checks, 10 * seconds + 60, MLO_MUTANT=str(n))[1]
            if why == GONE: return n
            if why and not self.stands(script, checks, seconds): why = None
            self.keep({"mutant": n, "asked": what, "names": ["%s:%s" % (script, c) for c in checks or [""]], "why": why, "seconds": seconds})
            if why: print("%3d  killed  %s   [test_%s]" % (n, told(self.chosen[n]), self.killed[n]), flush=True)
            return n

    def all(self):
        """Whoever is free asks a mutant that is alive what is likeliest to kill it, of all that is measured, once for every few scripts; or measures the next one."""
        names = collections.deque(self.a.scripts.split() if self.a.scripts else [name for name in scripts(self.a.last.split()) if not (self.watched and "test_" + name in PLAIN)])
        measured, turns, tired, busy, free = [], collections.Counter(), {}, set(), threading.Condition()
        if not self.watched: self.measured = measured

        def mutant():
            """The one that was asked least, of those whose turn it is; None: no one's."""
            most = 1 + len(measured) // FEW if names else float("inf")
            return min((n for n in self.chosen if n not in self.killed and n not in busy and turns[n] < most and tired.get(n) != len(measured)), key=lambda n: turns[n], default=None)

        def work():
            while True:
                with free:
                    n = mutant()
                    while n is None and not names and busy:
                        free.wait()
                        n = mutant()
                    if n is None and not names: return
                    script = names.popleft() if n is None else None
                    busy.add(script or n)
                    known, found = list(measured), None
                try:
                    found = self.checks(script) if script else self.ask(n, known)
                finally:
                    with free:
                        busy.discard(script or n)
                        if script:
                            measured.append(found)
                            print("%s: %d of %d are killed" % (script, len(self.killed.keys() & self.chosen.keys()), len(self.chosen)), flush=True)
                        elif found is None: tired[n] = len(known)
                        else: turns[n] += 1
                        free.notify_all()
        with concurrent.futures.ThreadPoolExecutor(self.a.j) as pool:
            for one in [pool.submit(work) for _ in range(self.a.j)]: one.result()

    def watch(self, tree):
        """From now on sanitizers see what happens, in the scripts that run.py lets them watch."""
        self.tree, self.watched, self.singles = tree, True, {}
        self.spent.clear()

    def left(self, n):
        """Is there a check that sees a mutant and was not asked?"""
        return any(c.seen.get(n, 0) & 2 and key + ":" + c.name not in self.asked[n] for key, checks in self.measured for c in checks)

    def verdict(self, n, known):
        if n in self.killed: return "killed"
        if identity(self.chosen[n]) in known: return "equivalent"
        if self.a.scripts or n in self.alone or self.left(n): return "unjudged"
        return "survived" if self.seen[n] & 2 else "no difference" if self.seen[n] else "not reached"


# ---- the table -------------------------------------------------------------------------------------------------------------------

def identity(m):
    """What stays of a mutant when lines move: its file, and what told() says behind that."""
    return m.path + " " + told(m).partition(" ")[2]


def equivalents():
    """identity -> why it is equivalent."""
    with open(os.path.join(TESTS, "equivalents.txt"), encoding="utf-8") as f: rows = [line.rstrip("\n").split(" | ") for line in f if not line.startswith("#")]
    return {" | ".join(row[:-1]): row[-1] for row in rows if len(row) > 1}


def table(judge):
    """A row for each part of the project, and every mutant that is not killed."""
    known, rows, verdicts = equivalents(), collections.defaultdict(collections.Counter), {}
    for n, m in judge.chosen.items():
        verdicts[n] = judge.verdict(n, known)
        rows[os.path.dirname(m.path) or m.path][verdicts[n]] += 1
    columns = ["killed", "survived", "no difference", "not reached", "unjudged", "equivalent"]
    print("\n%-14s %5s " % ("part", "taken") + " ".join("%13s" % c for c in columns))
    for part in sorted(rows): print("%-14s %5d " % (part, sum(rows[part].values())) + " ".join("%13s" % (rows[part][c] or "-") for c in columns))
    counts = sum(rows.values(), collections.Counter())
    print("%-14s %5d " % ("all", sum(counts.values())) + " ".join("%13s" % (counts[c] or "-") for c in columns))
    for c in columns[1:]:
        if counts[c]: print("\n%s:" % c)
        for n, m in judge.chosen.items():
            if verdicts[n] == c: print("%3d  %s%s" % (n, told(m), "\n     " + known[identity(m)] if c == "equivalent" else ""))
    alive = sum(counts[c] for c in columns[:5])
    print("\n%.1f %% of the %d that change something are killed; %d are unjudged" % (100 * counts["killed"] / max(1, alive), alive, counts["unjudged"]))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("files", nargs="*", metavar="FILE", help="src/json.c, or json.c; src/json.c:40-52, every mutant of these lines")
    ap.add_argument("-n", type=int, default=20, help="mutants (20)")
    ap.add_argument("--seed", default=datetime.date.today().strftime("%Y%m%d"), help="which ones (the date, as 20261125)")
    ap.add_argument("--only", type=int, nargs="*", help="of these, only those numbers")
    ap.add_argument("--list", action="store_true", help="say which they are, and try none")
    ap.add_argument("-j", type=int, default=2, help="at a time (2)")
    ap.add_argument("--scripts", help="these instead of all: \"roll given:qdq+qonnx\"")
    ap.add_argument("--last", default="", help="these when all others were asked: \"search driver\"")
    ap.add_argument("--longest", type=float, default=60, help="ask checks that take at most so many seconds (60)")
    ap.add_argument("--most", type=float, default=150, help="ask of each mutant what takes at most so many seconds in all (150)")
    ap.add_argument("--plain", action="store_true", help="do not ask again under sanitizers")
    ap.add_argument("--cc", default=shutil.which("clang") or "gcc", help="compiler (clang)")
    ap.add_argument("--level", default="-O1", help="of optimization (-O1)")
    a = ap.parse_args()
    every = [p for unit in ("main.c", "src/mlo.c") for p in included(unit) if p != "src/mlo.c"]
    lines = [(f, int(first), int(last or first)) for f, first, last in re.findall(r"^(.+):(\d+)(?:-(\d+))?$", "\n".join(a.files), re.M)]
    files = [p for p in every if not a.files or lines or any(p == f or p.endswith("/" + f) for f in a.files)]
    if not files: sys.exit("tests/mutants.py: nothing that src/mlo.c or main.c includes is called %s" % " ".join(a.files))
    chosen = list(enumerate(of_lines(every, lines) if lines else sample(files, a.n, a.seed), 1))
    print("%d mutants of %s, seed %s" % (len(chosen), " ".join(a.files) or "%d files" % len(files), a.seed), flush=True)
    if a.list: return print("\n".join("%3d  %s" % (i, told(m)) for i, m in chosen))
    if a.seed.isdigit(): os.environ.setdefault("MLO_DAY", a.seed)             # what is drawn by the date stays the same, through midnight and when it goes on
    folder, cc = tempfile.mkdtemp(prefix="mlo-mutants-"), a.cc.split()
    try:
        tree, alone = together(os.path.join(folder, "all"), chosen, cc)
        with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
            whole, asked = pool.submit(built, tree, chosen, cc, a.level), a.only or [n for n, _ in chosen]
            singles = {n: pool.submit(single, os.path.join(folder, str(n)), m, cc) for n, m in chosen if n in alone and n in asked}
            whole, singles = whole.result(), {n: one.result() for n, one in singles.items()}
        judge = Judge(chosen, whole, {n: t for n, t in singles.items() if t}, a)
        for n in singles:
            if not singles[n]: judge.chosen.pop(n)
        if a.only: judge.chosen = {n: judge.chosen[n] for n in a.only}
        judge.all()
        if judge.chosen.keys() - judge.killed.keys() and not a.plain:
            rest = [(n, m) for n, m in chosen if n not in judge.alone]
            judge.watch(built(together(os.path.join(folder, "watched"), rest, cc)[0], rest, cc, WATCHED))
            judge.all()
        table(judge)
    finally:
        for script in Script.idle: script.end()
        shutil.rmtree(folder, True)


if __name__ == "__main__": main()
