#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every test, two at a time, and ends with `N passed, N failed, N skipped`.

    python tests/run.py path/to/mlo [NAME ...] [--under plain|sanitizers|valgrind] [-j N] [-v]
        NAME picks scripts by substring ("roll", "formal", "verilog/fifo")

Test scripts get a build of mlo under ASan and UBSan (the default), so that whatever they try is watched; test_library gets path/to/mlo.

What is a test:
    tests/test_*.py          run as `python test_X.py path/to/mlo`
    tests/verilog/*.py       kernel benches (Icarus)
    tests/formal/run.py      proofs, then mutants that must be refuted
    tests/formal/contract.py the stream contract of whole kernels
    tests/formal/loop.py     the loop control's proof, by the SAT solver in Yosys (z3 does not finish)
    tests/lint.sh            every module in three tools

Each says a line per check, and at its end how many there are at least: `ok NAME`, `FAIL NAME: why`, `skip NAME: reason`, `absent NAME: what`, `floor N`.
cases.py says what they mean, and judges them. A new script: a floor in its last line, t.main(check_a, check_b, floor=40), and nothing else; what it
skips wherever it runs gets a line in skips.txt. Fewer checks than the floor, no floor, a skip that is not listed, another status than 0 without a
FAIL, too long a time: a failure each; with CI=true also a tool or a folder that is absent, for there everything has to run.
Scripts of one run share nothing: each has its own temporary folder, which is removed behind it."""
import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import cases

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TESTS)
TIMEOUT = 1500                                          # seconds; a test that needs half of it wants to be split
LONGEST_FIRST = ("formal", "test_hardware", "test_library", "test_errors", "test_")       # whoever is not named comes after these


class Script:
    def __init__(self, name, command, needs=()):
        self.name, self.command, self.needs = name, command, needs
        self.seconds, self.ok, self.floor, self.failures, self.skips, self.output = 0.0, 0, "none", [], [], ""


def watched(mlo, under, folder):
    """The program that test scripts call: mlo, or mlo as sanitizers or valgrind see it. A complaint of theirs is status 99, which no test expects."""
    path = os.path.join(folder, "mlo")
    if under == "plain": return mlo
    if under == "valgrind":
        with open(path, "w") as f: f.write('#!/bin/sh\nexec valgrind -q --error-exitcode=99 --leak-check=full --log-file=%s/valgrind.%%p "%s" "$@"\n' % (folder, mlo))
        os.chmod(path, 0o755)
        return path
    import harness
    shutil.move(harness.sanitized(), path)
    return path


def find(mlo, given):
    python = sys.executable
    rel = lambda path: os.path.relpath(path, TESTS)
    scripts = [Script(rel(p)[:-3], [python, p, mlo if p.endswith("test_library.py") else given]) for p in glob.glob(os.path.join(TESTS, "test_*.py"))]
    scripts += [Script(rel(p)[:-3], [python, p], ["iverilog"]) for p in glob.glob(os.path.join(TESTS, "verilog", "*.py")) if os.path.basename(p) != "bench.py"]
    formal = [python, os.path.join(TESTS, "formal", "run.py"), "-j", "1", "--timeout", "600"]
    scripts += [Script("formal/proofs", formal, ["yosys", "yosys-smtbmc", "z3"]), Script("formal/mutants", formal + ["--mutants"], ["yosys", "yosys-smtbmc", "z3"])]
    scripts.append(Script("formal/contract", [python, os.path.join(TESTS, "formal", "contract.py")], ["yosys", "yosys-abc"]))
    scripts.append(Script("formal/loop", [python, os.path.join(TESTS, "formal", "loop.py")], ["yosys"]))
    scripts.append(Script("lint", ["sh", os.path.join(TESTS, "lint.sh")], ["iverilog", "verilator", "yosys"]))
    rank = lambda s: next((i for i, prefix in enumerate(LONGEST_FIRST) if s.name.startswith(prefix)), len(LONGEST_FIRST))
    return sorted(scripts, key=lambda s: (rank(s), s.name))


def count(script, text, status=0):
    """Reads the lines of a script that ended, and judges them."""
    script.output, lines = text, text.splitlines()
    said = lambda word: [l[len(word) + 1:] for l in lines if l.startswith(word + " ")]
    script.ok, script.failures, script.skips = len(said("ok")), said("FAIL"), said("skip") + said("absent")
    script.floor = next(iter(said("floor")), "none")
    if status and not script.failures: script.failures.append("ended with status %s" % status)
    own = next((i for i, l in enumerate(lines) if l.startswith("floor ")), len(lines))     # beyond it is the script's judgement of itself
    script.failures += [why for why in cases.judge(script.name, lines[:own + 1]) if not any(why in f for f in script.failures)]


def run(script):
    start = time.monotonic()
    missing = [tool for tool in script.needs if not shutil.which(tool)]
    if missing:
        return count(script, "absent %s: %s not installed\nfloor 1\n" % (script.name, ", ".join(missing)))
    folder = tempfile.mkdtemp(prefix="mlo-test-")
    log = os.path.join(folder, "log")
    env = dict(os.environ, TMPDIR=folder, PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1", ASAN_OPTIONS="exitcode=99:detect_leaks=1:allocator_may_return_null=1",
               UBSAN_OPTIONS="exitcode=99:print_stacktrace=1")
    with open(log, "wb") as out:
        p = subprocess.Popen(script.command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, env=env, start_new_session=True)
        try:
            status = p.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            status = "none after %d s" % TIMEOUT
            os.killpg(p.pid, signal.SIGKILL)            # its simulators and solvers too
            p.wait()
    with open(log, encoding="utf-8", errors="replace") as f:
        count(script, f.read(), status)
    shutil.rmtree(folder, True)
    script.seconds = time.monotonic() - start


def report(script, verbose):
    print("%-28s %6.1f s  %4d ok (floor %s)%s%s" % (script.name, script.seconds, script.ok, script.floor, ", %d FAILED" % len(script.failures) if script.failures else "",
                                        ", %d skipped" % len(script.skips) if script.skips else ""), flush=True)
    if script.failures or verbose:
        lines = script.output.splitlines()
        shown = lines if verbose else [l for l in lines if not re.match(r"(ok|skip|absent|floor) ", l)][-80:]
        for line in shown: print("    " + line[:400])
        for f in script.failures:
            if not any(f in line for line in shown): print("    FAIL " + f[:400])
    for s in script.skips: print("    skip " + s[:200], flush=True)


def table(scripts, seconds):
    print("\nseconds  script")
    for s in sorted(scripts, key=lambda s: -s.seconds): print("%7.1f  %s" % (s.seconds, s.name))
    print("%7.1f  all of them, by the clock\n" % seconds)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("mlo")
    ap.add_argument("names", nargs="*", metavar="NAME")
    ap.add_argument("--under", choices=["plain", "sanitizers", "valgrind"], default="sanitizers")
    ap.add_argument("-j", type=int, default=2, metavar="N", help="scripts at a time (2)")
    ap.add_argument("-v", action="store_true", help="show the output of scripts that pass, too")
    a = ap.parse_args()
    mlo = os.path.abspath(a.mlo)
    if not os.access(mlo, os.X_OK): sys.exit("tests/run.py: there is no program %s; `make mlo` builds it" % mlo)
    folder = os.environ["MLO_OBJECTS"] = tempfile.mkdtemp(prefix="mlo-watched-")
    scripts = [s for s in find(mlo, watched(mlo, a.under, folder)) if not a.names or any(n in s.name for n in a.names)]
    start, lock = time.monotonic(), threading.Lock()

    def one(script):
        run(script)
        with lock: report(script, a.v)

    with concurrent.futures.ThreadPoolExecutor(max(1, a.j)) as pool:
        for done in [pool.submit(one, s) for s in scripts]: done.result()
    shutil.rmtree(folder, True)
    table(scripts, time.monotonic() - start)
    for s in scripts:
        for f in s.failures: print("FAIL %s: %s" % (s.name, f[:300]))
    passed, failed, skipped = sum(s.ok for s in scripts), sum(len(s.failures) for s in scripts), sum(len(s.skips) for s in scripts)
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped), flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
