#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What proved.py promises: what changes a key and what does not, that a forged line is found, that all is proved again in time.

In a copy of verilog/ and tests/formal, with proofs that take less than a second."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import proved
from proved import Line
ROOT = os.path.dirname(proved.VERILOG)
SCRIPTS = {"proofs": ["run.py"], "mutants": ["run.py", "--mutants"], "contract": ["contract.py"], "loop": ["loop.py"]}
say = proved.cases.case


class Copy:
    """The part of the tree that proofs are about, to be spoilt."""
    def __init__(self, root):
        self.root = root
        for what in ("verilog", "tests/formal"):
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
        command = [sys.executable, os.path.join(self.root, "tests/formal", SCRIPTS[script][0]), *SCRIPTS[script][1:], *more]
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        return p.returncode, p.stdout.splitlines()

    def keys(self, env=None):
        """(script, number) -> (key, name) of every proof"""
        return {(s, n): tuple(line.split(None, 2)[1:]) for s in SCRIPTS for n, line in enumerate(self.run(s, "--list", env=env)[1])}

    def held(self):
        with open(os.path.join(self.root, "tests/formal/proved.txt")) as f:
            return f.read()


def changed(before, after):
    return {i: before[i][1] for i in before if before[i][0] != after[i][0]}


def comments(text):
    """Verilog that says the same: other comments, one space for any, lines broken anew. (What begins with ` keeps its line.)"""
    lines = [re.sub(r"//.*", "", line).strip() for line in text.split("\n")]
    apart = [("\n%s\n" if line.startswith("`") else "%s ") % re.sub(r" +", " ", line) for line in lines]
    return "/* new\n comment */" + "".join(apart).replace(";", "; // here\n   ")


def check_keys(copy):
    before = copy.keys()
    kept = copy.edit("verilog/mlo_skid.v", comments)
    other = changed(before, copy.keys())
    say("keys: comments and white space change none of %d" % len(before), str(other) if other or len(before) < 430 else "")

    copy.edit("verilog/mlo_skid.v", lambda _: kept.replace("1'b0", "1'd0", 1))
    other = changed(before, copy.keys())
    names = [name for (script, _), name in other.items() if script == "proofs"]
    users = {"mlo_skid", "mlo_add", "mlo_mvu", "mlo_requant", "mlo_layernorm", "mlo_split"}
    say("keys: a token of mlo_skid changes those of its users", "" if users <= {n.split()[0] for n in names} else str(names))
    free = [n for n in names if n.split()[0] in ("mlo_exp2", "mlo_param", "mlo_delay", "mlo_divide", "mlo_regs")]
    say("keys: and no others", str(free) if free or any(script == "loop" for script, _ in other) else "")
    status, lines = copy.run("proofs", "skid", "fork")
    again = [line for line in lines if line.startswith("ok mlo_skid") and "proved on" in line]
    say("a changed module is proved anew", "status %s, %s" % (status, lines) if status or again or len(lines) < 8 else "")
    copy.edit("verilog/mlo_skid.v", lambda _: kept)

    kept = copy.edit("tests/formal/contract/rules.v", lambda text: text.replace("if (rst)  beat <= 0;", "if (rst)  beat <= 1'b0;", 1))
    other = changed(before, copy.keys())
    say("keys: a rule of the contracts changes those of all contracts, and no others",
        "" if {i[0] for i in other} == {"contract"} and len(other) == sum(i[0] == "contract" for i in before) else str(other)[:300])
    copy.edit("tests/formal/contract/rules.v", lambda _: kept)

    tool = os.path.join(copy.root, "bin", "z3")
    os.makedirs(os.path.dirname(tool))
    with open(tool, "w") as f:
        f.write("#!/bin/sh\necho Z3 version 99\n")
    os.chmod(tool, 0o755)
    other = changed(before, copy.keys(dict(os.environ, PATH=os.path.dirname(tool) + ":" + os.environ["PATH"])))
    say("keys: another z3 changes all", "" if len(other) == len(before) else "%d of %d" % (len(other), len(before)))
    say("keys: nothing was left changed", str(changed(before, copy.keys())) if changed(before, copy.keys()) else "")


def check_forged(copy):
    """mlo_skid as one of its mutants: a proof of it fails."""
    name, before = "mlo_skid 8 WIDTH=1", copy.held().splitlines()
    kept = copy.edit("verilog/mlo_skid.v", lambda text: text.replace("full_reg ? spare_reg : s_tdata;", "s_tdata;", 1))
    status, lines = copy.run("proofs", "skid")
    say("a false module is refuted", "" if status and any(line.startswith("FAIL " + name) for line in lines) else str(lines))
    status, lines = copy.run("proofs", "skid", "--record")
    key = next(key for key, n in copy.keys().values() if n == name)
    say("what failed is not recorded", "" if status and key not in copy.held() else str(lines))
    copy.edit("tests/formal/proved.txt", lambda text: text + "%s proofs 0.3 2020-01-01 %s\n" % (key, name))
    status, lines = copy.run("proofs", "skid")
    believed = any(name + " (proved on 2020-01-01)" in line for line in lines)
    say("a forged line is believed, or picked by the date", "" if believed or any("FAIL " + name in line for line in lines) else str(lines))
    status, lines = copy.run("proofs", "skid", "--all")
    say("--all finds it", "" if status and any(line.startswith("FAIL " + name) for line in lines) else str(lines))
    status, lines = copy.run("proofs", "skid", "--all", "--record")
    say("--record strikes it out", "" if status and key not in copy.held() else str(lines))
    copy.edit("verilog/mlo_skid.v", lambda _: kept)
    copy.run("proofs", "skid", "--record")
    status, lines = copy.run("proofs", "skid")
    say("what was recorded is believed", "" if not status and any("(proved on" in line for line in lines) else str(lines))
    current = {key for key, _ in copy.keys().values()}
    other = [line for line in before if line.split()[0] in current and " mlo_skid " not in line and line not in copy.held().splitlines()]
    say("--record keeps what was not asked for", str(other[:3]) if other else "")


def check_sample(_):
    dates = ["2031-%02d-%02d" % (month, day) for month in range(1, 13) for day in range(1, 29)]
    for script in SCRIPTS:
        lines = [line for line in proved.read() if line.script == script]
        days = [proved.sample(lines, date) for date in dates]
        cost = [sum(line.seconds for line in day) for day in days]
        most = max([proved.BUDGET] + [line.seconds for line in lines])
        say("sample of %s: %.0f s a day at most" % (script, most), "" if max(cost) < most + 0.01 else str(max(cost)))
        never = [line.name for line in lines if line.seconds <= proved.BUDGET and not any(line in day for day in days)]
        say("sample of %s: each within a year, but for those of more" % script, str(never) if never else "")
    few = [Line(str(i), "x", 1.0, "", str(i)) for i in range(20)]
    turns = [sum(line in proved.sample(few, date) for date in dates) for line in few]
    say("sample: each about every tenth day", "" if all(15 < n < 60 for n in turns) else str(turns))


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
