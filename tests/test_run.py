#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py and cases.py: a test that vanishes is a failure. Toy scripts in a folder of their own, under run.py, and by themselves.

    python tests/test_run.py [path/to/mlo]
"""
import os
import shutil
import subprocess
import sys
import types
import harness as t
import run

TOY = """import cases
for name in "one", "two", "three": cases.case(name)
cases.end(floor=3)
"""


def played(script, skips="", name="toy", alone=False, costs="", **env):
    """(status, output) of a toy script tests/test_NAME.py, under run.py or by itself."""
    folder = t.at("tests")
    shutil.rmtree(folder, True)
    os.makedirs(folder)
    for f in ("run.py", "cases.py", "harness.py", "replay.py"): shutil.copy(os.path.join(t.tests, f), folder)
    path = t.write("tests/test_%s.py" % name, script)
    t.write("tests/skips.txt", skips)
    if costs: t.write("tests/costs.txt", costs)
    command = [path] if alone else [os.path.join(folder, "run.py"), sys.executable, "test_", "--under", "plain"]
    clean = {k: v for k, v in os.environ.items() if k != "CI"}
    p = subprocess.run([sys.executable, *command], env=dict(clean, **env), capture_output=True, text=True)
    return p.returncode, p.stdout + p.stderr


def fails(what, why, script, *args, own=True, **options):
    """The script fails, and this is why: by itself (own), too."""
    for alone in [False, True][:1 + own]:
        status, said = played(script, *args, alone=alone, **options)
        t.case(what + (", by itself" if alone else ""), "" if status == 1 and "FAIL" in said and why in said else "status %d: %s" % (status, said))


def passes(what, counts, script, *args, **options):
    for alone in False, True:
        status, said = played(script, *args, alone=alone, **options)
        t.case(what + (", by itself" if alone else ""), "" if status == 0 and said.splitlines()[-1] == counts else "status %d: %s" % (status, said))


def check_floor():
    passes("as many checks as the floor", "3 passed, 0 failed, 0 skipped", TOY)
    fails("a check that is taken away", "it made 2 checks; there are 3 at least", TOY.replace('"two", ', ""))
    fails("every check taken away", "it made 0 checks; there are 3 at least", TOY.replace('"one", "two", "three"', "()"))
    fails("no floor", "it does not say how many checks it has at least", TOY.replace("cases.end(floor=3)", ""), own=False)
    fails("a floor of zero", "it does not say how many checks it has at least", TOY.replace("floor=3", "floor=0"))
    fails("an end before the end", "it does not say how many checks it has at least", TOY.replace("cases.end", "raise SystemExit\ncases.end"), own=False)
    fails("a status without a FAIL", "ended with status 7", TOY.replace("cases.end", "raise SystemExit(7)\ncases.end"), own=False)
    fails("a floor that only the script believes", "it made 2 checks; there are 3 at least",
          "print('ok one')\nprint('ok two')\nprint('floor 3')\n", own=False)
    status, said = played(TOY.replace("floor=3", "floor=4, picked=['o']"), alone=True)
    t.case("some checks picked: no floor", "" if status == 0 and "floor" not in said else said or "it says nothing")


def check_skips():
    skipping = TOY.replace("cases.end", "cases.skip('four', 'mlo has no fourth')\ncases.end")
    fails("a skip that is not listed", "it skips 'four: mlo has no fourth', which skips.txt does not list", skipping)
    passes("a skip that is listed", "3 passed, 0 failed, 1 skipped", skipping, "# why\ntest_toy | fo* | there is none\n")
    fails("a skip of another script", "it skips 'four: mlo has no fourth', which skips.txt does not list", skipping, "test_other | four | there is none\n")
    fails("a listed skip does not make up for a check", "it made 2 checks; there are 3 at least", skipping.replace('"two", ', ""), "test_toy | four | there is none\n")
    fails("a line that nothing skips", "skips.txt lists 'four', which it does not skip", TOY, "test_toy | four | there is none\n")


def check_absent():
    lacking = "import cases\ncases.case('one')\nif cases.have('two', 'no-such-tool'): cases.case('two')\ncases.end(floor=2)\n"
    passes("a tool that is absent, elsewhere", "1 passed, 0 failed, 1 skipped", lacking)
    passes("a tool that is there, in CI", "2 passed, 0 failed, 0 skipped", lacking.replace("no-such-tool", "sh"), CI="true")
    fails("a tool that is absent, in CI", "absent two: no-such-tool not installed; in CI everything is there", lacking, CI="true")
    beside = "import harness as t\nt.case('one')\nif t.beside('two', 'vectors'): t.case('two')\nt.main(floor=2)\n"
    passes("a folder of ../shared that is absent, elsewhere", "1 passed, 0 failed, 1 skipped", beside)
    fails("a folder of ../shared that is absent, in CI", "absent two: there is no ../shared/vectors; in CI everything is there", beside, CI="true")


def check_costs():
    """A script that costs half as much again as it did is a failure; so is one that nobody has timed, and a table that is not of these scripts."""
    grown = lambda cost, known: run.grown(types.SimpleNamespace(name="toy", cost=cost), known)
    t.case("half as much again", "" if "it costs 61 s, and 40 are allowed" in grown(61, {"toy": 40}) else grown(61, {"toy": 40}))
    t.case("less than that", grown(59, {"toy": 40}))
    t.case("some seconds are no growth", grown(14, {"toy": 1}))
    passes("a script that is timed", "3 passed, 0 failed, 0 skipped", TOY, costs="# why\ntest_toy 5\n")
    fails("a script that is not", "costs.txt does not say what it may cost", TOY, own=False, costs="test_other 5\n")
    there = {s.name for s in run.find(False)}
    t.case("costs.txt is of the scripts that there are", ", ".join(sorted(there ^ set(run.costs()))))
    t.case("the quick ones are some of them", "" if 10 < len(run.find(True)) < len(there) else str(len(run.find(True))))


def check_picks():
    status, said = played("import harness as t\ndef check_one(): t.case('one')\nt.main(check_one, floor=1)\n", alone=True)
    t.case("a check by itself", "" if status == 0 and "1 passed" in said else said or "it says nothing")
    path = t.at("tests/test_toy.py")
    p = subprocess.run([sys.executable, path, "mlo", "two"], capture_output=True, text=True)
    t.case("a name that no check has", "" if p.returncode == 1 and "FAIL two: no check is called so; there are one" in p.stdout else p.stdout or "it says nothing")


t.main(check_floor, check_skips, check_absent, check_costs, check_picks, floor=43)
