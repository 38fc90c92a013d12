#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The benches of kernels, each of which stands until something that it simulates changes.

    benches.py [NAME ...]     all, or only these: add, mvu ..; --all, --record, --list and -j as proved.py has them

A bench draws its numbers from seeds of its own, so the same files give the same simulation, word for word and cycle for cycle: it is run where
its key is new, and the others when the date picks them. The key: the bench and the scripts that it imports, and of Verilog each file that what was taken in so far names, in
a script mlo_add, "mlo_add", "add_tb" or "add", in Verilog mlo_add, without comments (more than Icarus reads, never less: whenever a bench is run, that is held to what
Icarus says); and Icarus's version. With --record a bench is run whole, nothing drawn by the date. `python tests/verilog/NAME.py` runs it in any case."""
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "formal"))
import proved
from proved import VERILOG

APART = {"bench", "benches", "ram", "stalls"}               # no benches; cocotb's; one that draws its seeds from the date: run.py runs these two each time
TIMEOUT = 1200


def read(path):
    with open(path) as f: return f.read()


def first_line(*command): return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.split("\n")[0]


def python(name, found):
    """The scripts of this folder that one takes in, itself among them."""
    if name in found: return found
    found[name] = read(os.path.join(HERE, name + ".py"))
    for other in re.findall(r"^\s*(?:import|from) (\w+)", found[name], re.M):
        if os.path.exists(os.path.join(HERE, other + ".py")): python(other, found)
    return found


def verilog(texts):
    """The modules and benches that these scripts name, and what those name."""
    there = {os.path.basename(p): p for folder in (VERILOG, HERE) for p in glob.glob(os.path.join(folder, "*.v"))}
    found, words = {}, set(re.findall(r"\bmlo_\w+|(?<=[\"'])\w+(?=[\"'])", " ".join(texts)))
    forms = "%s.v", "mlo_%s.v", "%s_tb.v"
    while words:
        names = {f % w for w in words for f in forms} & set(there) - set(found)
        forms = forms[:1]                                   # Verilog names modules in full; `first` is a wire there
        found.update((n, proved.File(n, read(there[n]), formal=None)) for n in names)
        words = {w for n in names for w in re.findall(r"\w+", " ".join(proved.tokens(found[n])))}
    return [found[n] for n in sorted(found)]


def bench(name, whole):
    scripts, icarus = python(name, {}), first_line("iverilog", "-V")
    files = verilog(text for n, text in scripts.items() if n != "bench")

    def simulate(folder):
        """Runs it; what it compiled has to be what the key is made of."""
        used = os.path.join(folder, "used")
        env = dict(os.environ, MLO_USED=used, PYTHONDONTWRITEBYTECODE="1", **({"MLO_FULL": "1"} if whole else {}))
        p = subprocess.run([sys.executable, os.path.join(HERE, name + ".py")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, timeout=TIMEOUT)
        lines = p.stdout.splitlines()
        missed = {os.path.basename(l) for l in read(used).split()} - {f.name for f in files} if os.path.exists(used) else {"anything"}
        wrong = [l for l in lines if l.startswith("FAIL ")] + ["Icarus read %s, which the key leaves out" % m for m in sorted(missed)]
        good = sum(l.startswith("ok ") for l in lines)
        return p.returncode == 0 and not wrong and good > 0, "; ".join(wrong)[:400] or ("%d groups" % good if p.returncode == 0 else "\n".join(lines[-20:]))
    return proved.Proof("bench of " + name, "mlo_" + name, files, [icarus, *(scripts[n] for n in sorted(scripts))], simulate)


def main():
    args = proved.arguments(__doc__).parse_args()
    names = sorted({os.path.basename(p)[:-3] for p in glob.glob(os.path.join(HERE, "*.py"))} - APART)
    proved.main("benches", [bench(name, args.record) for name in names], args, floor=30)


if __name__ == "__main__":
    main()
