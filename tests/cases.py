# SPDX-License-Identifier: MIT
"""cases: the lines that a test script says, and what they have to add up to.

    ok NAME               a check that passed
    FAIL NAME: why        one that did not
    skip NAME: reason     one that is left out wherever it runs: skips.txt lists it
    absent NAME: what     one that this machine lacks the means for: a tool, ../shared
    floor N               at the end: so many checks (ok and FAIL) the script makes at least

The floor stands in the script, as its last act: t.main(check_a, check_b, floor=40), or, without harness.py, cases.end(floor=40).
A failure is: fewer checks than that, or no floor; a skip that skips.txt does not list; a line of skips.txt that nothing skips any more;
with CI=true whatever is absent, for there everything is. The script says so itself, and run.py, which reads these lines, judges them again.
Where something is absent, the floor and what skips.txt lists in vain are not held against the script; nor where NAMEs pick some of its checks.

What is drawn by the date (drawn) turns: after so many days all of it was there. The floor is that of the poorest day. MLO_DAY, a number, is another day."""
import datetime
import fnmatch
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
said = []
full = bool(os.environ.get("MLO_FULL"))                     # nothing is drawn by the date: every grid is whole (run.py --full)


# ---- saying it -----------------------------------------------------------------------------------------------------------------------

def line(word, name, why=""):
    said.append(word + " " + name + (": " + " ".join(str(why).split())[:500] if why else ""))
    print(said[-1], flush=True)


def case(name, why=""):
    """A check that passed when `why` is empty."""
    line("FAIL" if why else "ok", name, why)


def note(text): print("    " + text, flush=True)


def turn(items, one_in):
    """Every so many-th of some things, others every day; all of them with run.py --full."""
    day = int(os.environ.get("MLO_DAY") or datetime.date.today().toordinal())
    return list(items) if full else list(items)[day % one_in::one_in]


def drawn(items, one_in, name=str):
    """Those of some things whose turn it is; says which."""
    some = turn(items, one_in)
    note("drawn by the date, one in %d: %s" % (one_in, ", ".join(map(name, some))))
    return some


def skip(name, why): line("skip", name, why)
def absent(name, what): line("absent", name, what)


def have(name, *tools):
    """Whether all these programs are here; if not, `name` is absent."""
    missing = [x for x in tools if not shutil.which(x)]
    if missing: absent(name, ", ".join(missing) + " not installed")
    return not missing


def end(floor, picked=False):
    """Judges what was said, prints the counts, exits. picked: only some checks were asked for."""
    if not picked:
        line("floor", str(floor))
        script = os.path.relpath(os.path.abspath(sys.argv[0]), HERE)
        for why in judge(os.path.splitext(script)[0], said): line("FAIL", "the script as a whole", why)
    n = counts(said)
    print("%d passed, %d failed, %d skipped" % (n["ok"], n["FAIL"], n["skip"] + n["absent"]), flush=True)
    sys.exit(n["FAIL"] > 0 or not said)


# ---- judging it ----------------------------------------------------------------------------------------------------------------------

def counts(lines):
    words = [l.split(" ", 1)[0] for l in lines]
    return {word: words.count(word) for word in ("ok", "FAIL", "skip", "absent")}


def allowed(script):
    """The names (with * and ?) that skips.txt lets a script skip."""
    with open(os.path.join(HERE, "skips.txt")) as f: rows = [[word.strip() for word in l.split("|")] for l in f if not l.startswith("#")]
    return [row[1] for row in rows if row[0] == script]


def judge(script, lines, picked=False):
    """What is wrong with a script's lines as a whole, as sentences. picked: only some of its checks ran."""
    skips, floor = [l[5:] for l in lines if l.startswith("skip ")], [int(l[6:]) for l in lines if l.startswith("floor ")]
    fits = lambda said, name: fnmatch.fnmatchcase(said, name + ": *")
    n, names = counts(lines), allowed(script)
    why = ["it skips '%s', which skips.txt does not list" % s for s in skips if not any(fits(s, name) for name in names)]
    if os.environ.get("CI") == "true": why += ["%s; in CI everything is there" % l for l in lines if l.startswith("absent ")]
    if picked: return why + ["it made no checks"] * (not n["ok"] + n["FAIL"] + n["absent"])
    if not floor or floor[0] < 1: return why + ["it does not say how many checks it has at least (floor=N), or it ended before"]
    if n["absent"]: return why
    if n["ok"] + n["FAIL"] < floor[0]: why.append("it made %d checks; there are %d at least" % (n["ok"] + n["FAIL"], floor[0]))
    return why + ["skips.txt lists '%s', which it does not skip" % name for name in names if not any(fits(s, name) for s in skips)]
