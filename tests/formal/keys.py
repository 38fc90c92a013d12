#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What proved.py promises: what changes a key and what does not, that a forged line is found, that each has its turn.

In a copy of verilog/, tests/formal and tests/verilog, with proofs that take less than a second."""
import datetime
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import proved
from proved import Line
ROOT = os.path.dirname(proved.VERILOG)
SCRIPTS = {"proofs": ["run.py"], "mutants": ["run.py", "--mutants"], "contract": ["contract.py"], "loop": ["loop.py"], "benches": ["../verilog/benches.py"]}


def say(name, good, seen):
    proved.cases.case(name, "" if good else "%s" % (seen,))


class Copy:
    """The part of the tree that proofs are about, to be spoilt."""
    def __init__(self, root):
        self.root = root
        for what in ("verilog", "tests/formal", "tests/verilog"):
            shutil.copytree(os.path.join(ROOT, what), os.path.join(root, what))
        for what in ("cases.py", "skips.txt"):
            shutil.copy(os.path.join(ROOT, "tests", what), os.path.join(root, "tests"))

    def edit(self, path, change):
        path = os.path.join(self.root, path)
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(change(text))
        return text

    def run(self, script, *more, env=None):
        """(status, lines) of a script"""
        name, *options = SCRIPTS[script]
        command = [sys.executable, "-S", os.path.join(self.root, "tests/formal", name), *options, *more]
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        return p.returncode, p.stdout.splitlines()

    def keys(self, *scripts, env=None):
        """(script, number) -> (key, name) of every proof, or of those of these scripts"""
        found = {}
        for script in scripts or SCRIPTS:
            for number, line in enumerate(self.run(script, "--list", env=env)[1]):
                found[script, number] = tuple(line.split(None, 2)[1:])
        return found

    def held(self):
        with open(os.path.join(self.root, "tests/formal/proved.txt")) as f:
            return f.read()


def changed(before, after):
    return {i: before[i][1] for i in after if before[i][0] != after[i][0]}


def comments(text):
    """Verilog that says the same: other comments, one space for any, lines broken anew but for those of ` directives"""
    lines = [re.sub(r"//.*", "", line).strip() for line in text.split("\n")]
    apart = [("\n%s\n" if line.startswith("`") else "%s ") % re.sub(r" +", " ", line) for line in lines]
    return "/* new\n comment */" + "".join(apart).replace(";", "; // here\n   ")


def check_keys(copy):
    before = copy.keys()
    kept = copy.edit("verilog/mlo_skid.v", comments)
    other = changed(before, copy.keys())
    say("keys: comments and white space change none of %d" % len(before), not other and len(before) >= 430, other)

    copy.edit("verilog/mlo_skid.v", lambda _: kept.replace("1'b0", "1'd0", 1))
    other = changed(before, copy.keys("proofs", "loop", "benches"))
    names = {name.split()[0] for (script, _), name in other.items() if script == "proofs"}
    users = {"mlo_skid", "mlo_add", "mlo_mvu", "mlo_requant", "mlo_layernorm", "mlo_split"}
    free = {"mlo_exp2", "mlo_param", "mlo_delay", "mlo_divide", "mlo_regs"}
    say("keys: a token of mlo_skid changes those of its users", users <= names, names)
    say("keys: and no others", not names & free and {script for script, _ in other} == {"proofs", "benches"}, other)
    benches = {name.split()[-1] for (script, _), name in other.items() if script == "benches"}
    say("keys: the benches of its users, and no others", {"skid", "add", "mvu", "split"} <= benches and not benches & {"rsqrt", "param", "newest", "check"}, benches)
    status, lines = copy.run("proofs", "skid")
    again = [line for line in lines if line.startswith("ok mlo_skid") and "proved on" not in line]
    say("a changed module is proved anew", status == 0 and len(again) == 3, lines)
    copy.edit("verilog/mlo_skid.v", lambda _: kept)

    rules = "tests/formal/contract/rules.v"
    kept = copy.edit(rules, lambda text: text.replace("if (rst)  beat <= 0;", "if (rst)  beat <= 1'b0;", 1))
    other = changed(before, copy.keys("proofs", "contract"))
    say("keys: a rule of the contracts changes those of all contracts, and no others",
        set(other) == {i for i in before if i[0] == "contract"}, other)
    copy.edit(rules, lambda _: kept)

    tool = os.path.join(copy.root, "bin", "z3")
    os.makedirs(os.path.dirname(tool))
    with open(tool, "w") as f:
        f.write("#!/bin/sh\necho Z3 version 99\n")
    os.chmod(tool, 0o755)
    other = changed(before, copy.keys(env=dict(os.environ, PATH=os.path.dirname(tool) + ":" + os.environ["PATH"])))
    say("keys: another z3 changes all", len(other) == len(before), len(other))
    other = changed(before, copy.keys("proofs", "contract"))
    say("keys: and back they are what they were", not other, other)


def check_forged(copy):
    """mlo_delay as one of its mutants: a proof of it fails."""
    name, before = "mlo_delay 8 WIDTH=2 CYCLES=5", copy.held().splitlines()

    def fails(lines):
        return any(line.startswith("FAIL " + name) for line in lines)

    false = lambda text: text.replace("valid_next != {CYCLES+1{1'b0}}", "in_valid", 1)
    kept = copy.edit("verilog/mlo_delay.v", false)
    status, lines = copy.run("proofs", "delay", "--record")
    key = next(key for key, n in copy.keys("proofs").values() if n == name)
    say("a false module is refuted", status and fails(lines), lines)
    say("what failed is not recorded", key not in copy.held(), lines)
    copy.edit("tests/formal/proved.txt", lambda text: text + "%s proofs 0.3 2020-01-01 %s\n" % (key, name))
    lines = copy.run("proofs", "delay")[1]
    believed = "ok %s (proved on 2020-01-01)" % name in lines
    say("a forged line is believed, or picked by the date", believed or fails(lines), lines)
    status, lines = copy.run("proofs", "delay", "--all")
    say("--all finds it", status and fails(lines), lines)
    copy.run("proofs", "delay", "--all", "--record")
    say("--record strikes it out", key not in copy.held(), key)
    copy.edit("verilog/mlo_delay.v", lambda _: kept)
    copy.run("proofs", "delay", "--record")
    status, lines = copy.run("proofs", "delay")
    say("what was recorded is believed", status == 0 and any("(proved on" in line for line in lines), lines)
    current = {key for key, _ in copy.keys("proofs").values()}
    lost = [line for line in before if line.split()[0] in current and line not in copy.held().splitlines()]
    say("--record keeps what was not asked for", all(" mlo_delay " in line for line in lost), lost)


def check_sample(_):
    first = datetime.date(2031, 1, 1)
    dates = [(first + datetime.timedelta(days=day)).isoformat() for day in range(364)]
    for script in SCRIPTS:
        lines = [line for line in proved.read() if line.script == script]
        days = [proved.sample(lines, date) for date in dates]
        cost = max(sum(line.seconds for line in day) for day in days)
        most = proved.BUDGET + max(line.seconds for line in lines)
        say("sample of %s: %.0f s a day at most" % (script, most), cost < most, cost)
        cycle = math.ceil(max(proved.DAYS, sum(line.seconds for line in lines) / proved.BUDGET)) + 1
        picked = {line for day in days[:cycle] for line in day}
        never = [line.name for line in lines if line not in picked]
        say("sample of %s: each within %d days" % (script, cycle), not never and cycle < 100, never or cycle)
    few = [Line(str(i), "x", 1.0, "", str(i)) for i in range(20)]
    turns = [sum(line in proved.sample(few, date) for date in dates) for line in few]
    say("sample: each about every tenth day", all(30 < n < 43 for n in turns), turns)


def main():
    if not proved.cases.have("keys", "yosys", "yosys-smtbmc", "yosys-abc", "z3"):
        proved.cases.end(floor=23)
    with tempfile.TemporaryDirectory(prefix="mlo-formal-") as folder:
        copy = Copy(folder)
        for check in (check_keys, check_forged, check_sample):
            check(copy)
    proved.cases.end(floor=23)


if __name__ == "__main__":
    main()
