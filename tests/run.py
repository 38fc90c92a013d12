#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs tests, a script more at a time than there are processors, and ends with `N passed, N failed, N skipped`.

    python tests/run.py path/to/mlo [NAME ...] [--quick | --full] [--under plain|sanitizers|valgrind] [-j N] [-v] [--costs]
        NAME     picks scripts by substring ("roll", "formal", "benches")
        --quick  `make test`: the checks that QUICK below names, minutes
        neither  `make test-all`: every script
        --full   and nothing drawn by date: all grids, sanitizers everywhere
        --costs  writes costs.txt: what scripts cost now is what they may cost

Test scripts get a build of mlo under ASan and UBSan, so that whatever they try is watched; those in PLAIN, whose time goes into simulators and
whole models, get path/to/mlo, and the other one every sixth day. What was compiled stays in build/, by its hash.
A script may not cost half as much again as costs.txt says: seconds of a processor, in units of a loop that is timed beside it. (With CI=true that
is a note: a machine that nobody knows has no say in it.)

What is a test:
    tests/test_*.py          run as `python test_X.py path/to/mlo`
    tests/verilog/benches.py the kernels' benches (Icarus): those of which something has changed, and some of the others; stalls.py, ram.py: each time
    tests/formal/run.py      proofs, then mutants that must be refuted
    tests/formal/contract.py the stream contract of whole kernels
    tests/formal/loop.py     the loop control's proof, by the SAT solver in Yosys (z3 does not finish)
    tests/formal/keys.py     that the four above prove again what has changed, and only that
    tests/lint.sh            every module in three tools

Each says a line per check, and at its end how many there are at least: `ok NAME`, `FAIL NAME: why`, `skip NAME: reason`, `absent NAME: what`, `floor N`.
cases.py says what they mean, and judges them. A new script: a floor in its last line, t.main(check_a, check_b, floor=40), and nothing else; what it
skips wherever it runs gets a line in skips.txt. Fewer checks than the floor, no floor, a skip that is not listed, another status than 0 without a
FAIL, too long a time: a failure each; with CI=true also a tool or a folder that is absent, for there everything has to run.
Whole cores are simulated where replayed.txt does not hold what their simulation said (replay.py): new ones, and some that the date picks.
Scripts of one run share what was compiled (Python too, of which pip compiles nothing), and nothing else: each has its own temporary folder, which is removed behind it."""
import argparse
import concurrent.futures
import datetime
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
import replay

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TESTS)
TIMEOUT = 1500                                          # seconds; a test that needs half of it wants to be split
GROWN, SLACK = 1.5, 15                                  # more than that many times a script's cost, and so many seconds, is too much
MEMORY = bytearray(b"x") * (1 << 24)
COSTS = os.path.join(TESTS, "costs.txt")
PYCACHE = os.path.join(ROOT, "build", "pycache")

# `make test`: of these scripts the checks whose names contain a word; all of them where there is no word
QUICK = {
    "test_c": "depth arena packing refused sim story",
    "test_cli": "help flags config input output pipe npz run compile",
    "test_context": "steps near options generate prefill",
    "test_conv": "words floats refusals foldings",
    "test_defaults": "",
    "test_device": "parts brute_force refusals",
    "test_errors": "",
    "test_every": "limits near",
    "test_extract": "",
    "test_fold_default": "flags loops",
    "test_fuzz": "seeds damaged",
    "test_gate": "products given attention options outliers places refusals",
    "test_hardware": "identical",
    "test_heads": "refusals",
    "test_integers": "layers kernels refusals options",
    "test_large": "floats integers",
    "test_library": "header layers amalgamation options json_is_onnx style",
    "test_memory": "once errors",
    "test_moved": "drawn near",
    "test_nested": "",
    "test_numerics": "requantize exp2 layernorm",
    "test_pages": "links picture numbers",
    "test_predict": "predictions",
    "test_prefix": "kernels errors near",
    "test_read": "",
    "test_report": "models still around spread asking channels",
    "test_roll": "",
    "test_run": "",
    "test_search": "brute_force front refusals",
    "test_show": "odd refusals",
    "test_sim": "choice",
    "test_stalls": "verilator protocol",
    "test_single": "changed refused",
    "test_sketch": "tokens unread refused",
    "test_step": "targets refused",
    "test_stories": "default",
    "test_tokens": "judged rows encoder refused",
    "test_unbatch": "",
    "test_verdicts": "",
    "test_whole": "index again refused wrong",
    "test_wrong_usage": "terminal help completion",
    "verilog/benches": "",
}

# scripts that calibrate, evaluate whole models, wait for simulators or start mlo hundreds of times: the sanitizers' turn at each comes every TURN days
PLAIN = """test_alike test_attention test_bias test_bits test_c test_causal test_cli test_context test_conv test_cross test_defaults test_driver test_every test_exponentials test_families
    test_faults test_fixed test_flat test_gate test_given test_hardware test_heads test_integers test_interval test_jobs test_memory test_moved
    test_numerics test_odd test_ops test_perturb test_positions test_predict test_prefix test_report test_rotary test_share test_show test_single test_sketch test_spellings test_stalls test_step test_survival
    test_trace
    test_whole test_wrong_usage""".split()
TURN = 6

# scripts that simulate whole cores: a simulation stands until something that it simulates changes (replay.py)
REPLAYED = """test_attention test_bias test_bits test_causal test_conv test_cross test_driver test_every test_exponentials test_families test_faults test_fixed test_gate test_given test_hardware test_heads test_integers
    test_jobs test_library test_memory test_moved test_pages test_predict test_prefix test_rotary test_share test_single test_stalls test_step test_stories test_tokens
    test_trace""".split()


class Script:
    def __init__(self, name, command, needs=()):
        self.name, self.command, self.needs = name, command, needs
        self.picked = False                             # of its checks, some
        self.seconds, self.cost, self.ok, self.floor, self.failures, self.skips, self.output = 0.0, 0.0, 0, "none", [], [], ""


def watched(mlo, under):
    """The program that test scripts call: mlo, or mlo as sanitizers or valgrind see it. A complaint of theirs is status 99, which no test expects."""
    if under == "plain": return mlo
    import harness
    if under == "sanitizers": return harness.sanitized()
    path = os.path.join(harness.cache, "mlo-valgrind")
    os.makedirs(harness.cache, exist_ok=True)
    with open(path, "w") as f: f.write('#!/bin/sh\nexec valgrind -q --error-exitcode=99 --leak-check=full --log-file=%s.%%p "%s" "$@"\n' % (path, mlo))
    os.chmod(path, 0o755)
    return path


def plain_today(full):
    """Scripts that get mlo itself. test_library makes its own programs, and has every model's folding looked for under sanitizers;
    test_search, test_device and test_fold_default, which look for thousands, would take five times as long; test_large measures memory;
    in test_stories and test_tokens aiming few bits at the floats takes 250 s there (test_fixed has it under them, test_driver a core of ids)."""
    today = datetime.date.today().toordinal() % TURN
    return [name for i, name in enumerate(PLAIN) if not full and i % TURN != today] + ["test_library", "test_package", "test_pages", "test_layout", "test_web", "test_search", "test_device", "test_fold_default", "test_large", "test_stories", "test_tokens"]


def find(quick):
    """Every script: its name, its command with MLO for the program."""
    python = sys.executable
    rel = lambda path: os.path.relpath(path, TESTS)
    scripts = [Script(rel(p)[:-3], [python, p, "MLO"]) for p in glob.glob(os.path.join(TESTS, "test_*.py"))]
    scripts += [Script("verilog/" + name, [python, os.path.join(TESTS, "verilog", name + ".py")], ["iverilog"]) for name in ("benches", "ram", "stalls")]
    formal = [python, os.path.join(TESTS, "formal", "run.py"), "-j", "1", "--timeout", "600"]
    scripts += [Script("formal/proofs", formal, ["yosys", "yosys-smtbmc", "z3"]), Script("formal/mutants", formal + ["--mutants"], ["yosys", "yosys-smtbmc", "z3"])]
    scripts.append(Script("formal/contract", [python, os.path.join(TESTS, "formal", "contract.py")], ["yosys", "yosys-abc"]))
    scripts.append(Script("formal/keys", [python, os.path.join(TESTS, "formal", "keys.py")], ["yosys", "yosys-smtbmc", "yosys-abc", "z3"]))
    scripts.append(Script("formal/loop", [python, os.path.join(TESTS, "formal", "loop.py")], ["yosys"]))
    scripts.append(Script("lint", ["sh", os.path.join(TESTS, "lint.sh")], ["iverilog", "verilator", "yosys"]))
    if quick:
        for name in set(QUICK) - {s.name for s in scripts}: sys.exit("tests/run.py: QUICK names %s, which is not there" % name)
        scripts = [s for s in scripts if s.name in QUICK]
        for s in scripts:
            s.command += QUICK[s.name].split()
            s.picked = bool(QUICK[s.name])
    known = costs()
    return sorted(scripts, key=lambda s: (-known.get(s.name, 1e9), s.name))


# ---- what scripts cost ---------------------------------------------------------------------------------------------------------------

def costs():
    """script -> seconds that costs.txt allows."""
    if not os.path.exists(COSTS): return {}
    with open(COSTS) as f: rows = [l.split() for l in f if not l.startswith("#")]
    return {name: float(seconds) for name, seconds in rows}


def pace():
    """How long this machine takes now for what takes the one of costs.txt a second: it reaches for memory, as simulators do."""
    start, at = time.thread_time(), 1
    for _ in range(200000): at = (at * 1664525 + 1013904223 + MEMORY[at]) & 0xffffff
    return (time.thread_time() - start) / 0.05


def grown(script, known):
    """'' or that a script costs more than it may."""
    allowed = known.get(script.name)
    if allowed is None: return "costs.txt does not say what it may cost; `make costs` writes it" if known else ""
    if script.cost <= max(GROWN * allowed, allowed + SLACK): return ""
    return "it costs %.0f s, and %.0f are allowed: faster, or split, or `make costs` and a reason in the commit" % (script.cost, allowed)


def write_costs(scripts):
    rows = dict(costs(), **{s.name: s.cost for s in scripts})
    with open(COSTS, "w") as f:
        f.write("# What each script costs, in seconds of a processor as run.py's pace() measures them. `make costs` writes this.\n")
        f.writelines("%-28s %5.0f\n" % (name, max(1, rows[name])) for name in sorted(rows, key=lambda n: (-rows[n], n)))


# ---- running them --------------------------------------------------------------------------------------------------------------------

def count(script, text, status=0):
    """Reads the lines of a script that ended, and judges them."""
    script.output, lines = text, text.splitlines()
    said = lambda word: [l[len(word) + 1:] for l in lines if l.startswith(word + " ")]
    script.ok, script.failures, script.skips = len(said("ok")), said("FAIL"), said("skip") + said("absent")
    script.floor = next(iter(said("floor")), "none")
    if status and not script.failures: script.failures.append("ended with status %s" % status)
    own = next((i for i, l in enumerate(lines) if l.startswith("floor ")), len(lines))     # beyond it is the script's judgement of itself
    script.failures += [why for why in cases.judge(script.name, lines[:own + 1], script.picked) if not any(why in f for f in script.failures)]


def ended(p):
    """The status of a process, and what it and its children used. One that takes too long is killed, with its simulators and solvers."""
    end = time.monotonic() + TIMEOUT
    while True:
        pid, status, used = os.wait4(p.pid, os.WNOHANG)
        if pid: break
        if time.monotonic() > end:
            os.killpg(p.pid, signal.SIGKILL)
            _, _, used = os.wait4(p.pid, 0)
            p.returncode = -signal.SIGKILL
            return "none after %d s" % TIMEOUT, used
        time.sleep(0.05)
    p.returncode = os.waitstatus_to_exitcode(status)
    return p.returncode, used


def run(script):
    start = time.monotonic()
    missing = [tool for tool in script.needs if not shutil.which(tool)]
    if missing:
        return count(script, "absent %s: %s not installed\nfloor 1\n" % (script.name, ", ".join(missing)))
    folder = tempfile.mkdtemp(prefix="mlo-test-")
    log = os.path.join(folder, "log")
    env = dict(os.environ, TMPDIR=folder, PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="", PYTHONPYCACHEPREFIX=PYCACHE, ASAN_OPTIONS="exitcode=99:detect_leaks=1:allocator_may_return_null=1",
               UBSAN_OPTIONS="exitcode=99:print_stacktrace=1")
    if script.name in REPLAYED and not os.environ.get("MLO_FULL"): env["PATH"] = replay.links() + os.pathsep + env["PATH"]
    before = pace()
    with open(log, "wb") as out:
        p = subprocess.Popen(script.command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, env=env, start_new_session=True)
        status, used = ended(p)
    script.cost = (used.ru_utime + used.ru_stime) / ((before + pace()) / 2)
    with open(log, encoding="utf-8", errors="replace") as f:
        count(script, f.read(), status)
    shutil.rmtree(folder, True)
    script.seconds = time.monotonic() - start


def report(script, verbose):
    print("%-28s %6.1f s, cost %5.1f  %4d ok (floor %s)%s%s" % (script.name, script.seconds, script.cost, script.ok, script.floor, ", %d FAILED" % len(script.failures) if script.failures else "",
                                        ", %d skipped" % len(script.skips) if script.skips else ""), flush=True)
    if script.failures or verbose:
        lines = script.output.splitlines()
        shown = lines if verbose else [l for l in lines if not re.match(r"(ok|skip|absent|floor) ", l)][-80:]
        for line in shown: print("    " + line[:400])
        for f in script.failures:
            if not any(f in line for line in shown): print("    FAIL " + f[:400])
    for s in script.skips: print("    skip " + s[:200], flush=True)


def table(scripts, seconds):
    known = costs()
    print("\nseconds   cost   was  script")
    for s in sorted(scripts, key=lambda s: -s.cost): print("%7.1f %6.0f %5s  %s" % (s.seconds, s.cost, "%.0f" % known[s.name] if s.name in known else "-", s.name))
    print("%7.1f %6.0f        all of them, by the clock and by what they used\n" % (seconds, sum(s.cost for s in scripts)))


def forget(cache):
    """Of what was compiled, all that nobody has used for three days; of Python, what lay in folders that are gone."""
    shutil.rmtree(PYCACHE + tempfile.gettempdir(), True)
    for path in glob.glob(os.path.join(cache, "*")) + glob.glob(os.path.join(cache, "benches", "*")):
        if os.path.basename(path) != "benches" and time.time() - os.stat(path).st_mtime > 3 * 86400:
            (shutil.rmtree if os.path.isdir(path) else os.remove)(path)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("mlo")
    ap.add_argument("names", nargs="*", metavar="NAME")
    ap.add_argument("--under", choices=["plain", "sanitizers", "valgrind"], default="sanitizers")
    tier = ap.add_mutually_exclusive_group()
    tier.add_argument("--quick", action="store_true", help="what a change is likely to break")
    tier.add_argument("--full", action="store_true", help="every grid, sanitizers everywhere")
    ap.add_argument("--costs", action="store_true", help="write costs.txt")
    ap.add_argument("-j", type=int, default=len(os.sched_getaffinity(0)) + 1, metavar="N", help="scripts at a time (one more than processors: some wait for terminals, pages, locks)")
    ap.add_argument("-v", action="store_true", help="show the output of scripts that pass, too")
    a = ap.parse_args()
    mlo = os.path.abspath(a.mlo)
    if not os.access(mlo, os.X_OK): sys.exit("tests/run.py: there is no program %s; `make mlo` builds it" % mlo)
    if a.full: os.environ["MLO_FULL"] = "1"
    scripts = [s for s in find(a.quick) if not a.names or any(n in s.name for n in a.names)]
    plain = plain_today(a.full)
    waits = lambda script: "MLO" in script.command and script.name not in plain
    scripts.sort(key=waits)                             # who takes longest begins, but for those whose program is made meanwhile
    if a.under != "plain": print("%s: all but %s" % (a.under, ", ".join(plain)), flush=True)
    watching = concurrent.futures.ThreadPoolExecutor(1).submit(watched, mlo, a.under)
    known = {} if a.quick or a.full or a.costs or a.under == "valgrind" else costs()
    start, lock = time.monotonic(), threading.Lock()

    def one(script):
        program = watching.result() if waits(script) else mlo
        script.command = [program if word == "MLO" else word for word in script.command]
        run(script)
        due = script.name in PLAIN and script.name not in plain            # sanitizers are dear there
        dear = "" if due else grown(script, known)
        if dear and os.environ.get("CI") != "true": script.failures.append(dear)
        elif dear: script.output += "\nnote %s: %s\n" % (script.name, dear)          # of a machine that nobody knows it is no verdict
        with lock: report(script, a.v)

    with concurrent.futures.ThreadPoolExecutor(max(1, a.j)) as pool:
        for done in [pool.submit(one, s) for s in scripts]: done.result()
    if a.under != "plain":
        import harness
        forget(harness.cache)
    if a.costs: write_costs(scripts)
    table(scripts, time.monotonic() - start)
    for s in scripts:
        for f in s.failures: print("FAIL %s: %s" % (s.name, f[:300]))
    passed, failed, skipped = sum(s.ok for s in scripts), sum(len(s.failures) for s in scripts), sum(len(s.skips) for s in scripts)
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped), flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
