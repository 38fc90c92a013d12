#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prove the properties under `ifdef FORMAL` of verilog/mlo_*.v with yosys + yosys-smtbmc + z3.

    run.py [MODULE ...] [-j N] [--timeout S] [--keep DIR]     prove grid.d/*.txt (all, or only these modules)
    run.py --mutants [MODULE ...]                             every mutant of mutants.txt must be refuted

A line of grid.d/*.txt is one proof:   mlo_NAME DEPTH [FLAG ...] [PARAM=VALUE ...]
    a bounded proof of DEPTH steps from reset, then an induction proof with the same DEPTH, then (if the module
    has cover statements) each of them must be reached within DEPTH steps.  FLAGs:
    bmc      bounded proof only        nocover  skip the covers
    plain    leave the submodules' own properties out (less work; with them they serve as lemmas)

A line of mutants.txt:   mlo_NAME DEPTH [FLAG ...] [PARAM=VALUE ...] | old text | new text        (\\| stands for |)
    the old text (once, before `ifdef FORMAL) is replaced; then the bounded proof must find a counterexample.

One line per proof, a count at the end; exit 1 if anything failed, or fewer ran than there are at least."""
import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VERILOG = os.path.join(os.path.dirname(os.path.dirname(HERE)), "verilog")
sys.path.insert(0, os.path.dirname(HERE))
import cases
FLAGS = ("bmc", "nocover", "plain")
PROOFS, MUTANTS = 139, 79        # at least


class Job:
    def __init__(self, text, where):
        self.text, self.where = " ".join(text.split()), where
        self.depth, self.flags, self.params = None, set(), {}
        self.old = self.new = None              # of a mutant
        words = text.split()
        self.module = words[0]
        for w in words[1:]:
            if w.isdigit():
                self.depth = int(w)
            elif w in FLAGS:
                self.flags.add(w)
            elif "=" in w:
                k, v = w.split("=", 1)
                self.params[k] = v
            else:
                sys.exit("%s: what is '%s'?" % (where, w))
        if self.depth is None:
            sys.exit("%s: no depth" % where)


def read_lines(path):
    with open(path) as f:
        for n, line in enumerate(f, 1):
            line = line.strip()
            if line and not line.startswith("#"):
                yield "%s:%d" % (os.path.basename(path), n), line


def read_grid():
    return [Job(line, where) for path in sorted(glob.glob(os.path.join(HERE, "grid.d", "*.txt"))) for where, line in read_lines(path)]


def read_mutants():
    jobs = []
    for where, line in read_lines(os.path.join(HERE, "mutants.txt")):
        head, old, new = [x.strip().replace("\\|", "|") for x in line.split(" | ")]
        job = Job(head, where)
        job.old, job.new = old, new
        job.text += "  %s -> %s" % (old, new)
        jobs.append(job)
    return jobs


def source(module):
    with open(os.path.join(VERILOG, module + ".v")) as f:
        return f.read()


def submodules(module):
    """all modules below `module`, itself excluded"""
    seen, todo = [], [module]
    while todo:
        text = re.sub(r"//.*", "", source(todo.pop()))
        for name in re.findall(r"^\s*(mlo_\w+)\s+(?:#\s*\(|\w+\s*\()", text, re.M):
            if not name.startswith("mlo_error_") and name != module and name not in seen:
                seen.append(name)
                todo.append(name)
    return seen


def tool(cmd, timeout):
    """(status, output); status 'ok', 'failed' or 'timeout'"""
    p = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        out, _ = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)                     # the solver is a grandchild
        p.communicate()
        return "timeout", ""
    return ("ok" if p.returncode == 0 else "failed"), out


def tail(out):
    lines = [x for x in out.splitlines() if re.search(r"[Ff]ailed|ERROR|Unreached|error", x)]
    return "; ".join(x.strip() for x in lines[-2:]) or "\n".join(out.splitlines()[-3:])


def prove(job, directory, timeout):
    """Returns (passed, seconds, remark)."""
    start = time.time()

    def answer(passed, remark):
        return passed, time.time() - start, remark

    os.makedirs(directory)
    text = source(job.module)
    top = os.path.join(directory, job.module + ".v")
    if job.old is not None:
        design, mark, properties = text.partition("`ifdef FORMAL")
        if design.count(job.old) != 1:
            return answer(False, "old text found %d times" % design.count(job.old))
        text = design.replace(job.old, job.new) + mark + properties
    with open(top, "w") as f:
        f.write(text)
    below = [os.path.join(VERILOG, m + ".v") for m in submodules(job.module)]
    script = ["read_verilog -formal -sv " + top]
    if below:
        script.append("read_verilog %s -sv %s" % ("" if "plain" in job.flags else "-formal", " ".join(below)))
    script += ["chparam -set %s %s %s" % (k, v, job.module) for k, v in job.params.items()]
    smt2 = os.path.join(directory, "model.smt2")
    script += ["prep -flatten -top %s -nordff" % job.module, "async2sync", "dffunmap", "write_smt2 -wires " + smt2]
    status, out = tool(["yosys", "-q", "-p", "; ".join(script)], timeout)
    lost = re.search(r".*(implicitly declared|used but has no driver).*", out)
    if lost or status != "ok":                  # a name that binds to nothing would make a property about nothing
        return answer(False, "yosys %s: %s" % (status, lost.group(0) if lost else tail(out)))
    with open(smt2) as f:
        model = f.read()
    if "; yosys-smt2-assert" not in model:
        return answer(False, "no property to prove")

    solve = ["yosys-smtbmc", "-s", "z3", "--unroll", "-t", str(job.depth)]     # --unroll: up to 100 x faster (measured)
    dump = ["--dump-vcd", os.path.join(directory, "trace.vcd")]
    status, out = tool(solve + dump + [smt2], timeout)
    if job.old is not None:
        if status == "failed" and re.search(r"BMC failed|Assert failed", out):
            return answer(True, "refuted")
        return answer(False, "NOT refuted: %s" % status)
    if status != "ok":
        return answer(False, "bounded: %s: %s" % (status, tail(out)))
    done = ["bounded"]
    if "bmc" not in job.flags:
        status, out = tool(solve + ["-i"] + dump + [smt2], timeout)
        if status != "ok":
            return answer(False, "induction: %s: %s" % (status, tail(out)))
        done.append("induction")
    if "nocover" not in job.flags and "; yosys-smt2-cover" in model:
        status, out = tool(solve + ["-c"] + dump + [smt2], timeout)
        if status != "ok":
            return answer(False, "cover: %s: %s" % (status, tail(out)))
        done.append("cover")
    return answer(True, "+".join(done))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("modules", nargs="*", help="mlo_skid or skid")
    ap.add_argument("-j", type=int, default=2, metavar="N", help="proofs at a time (2)")
    ap.add_argument("--timeout", type=float, default=300, metavar="S", help="per solver call (300)")
    ap.add_argument("--mutants", action="store_true")
    ap.add_argument("--keep", metavar="DIR", help="keep models and traces here")
    a = ap.parse_args()
    jobs = read_mutants() if a.mutants else read_grid()
    if a.modules:
        wanted = {m if m.startswith("mlo_") else "mlo_" + m for m in a.modules}
        jobs = [j for j in jobs if j.module in wanted]
    work = a.keep or tempfile.mkdtemp(prefix="mlo-formal-")
    os.makedirs(work, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
        running = {}
        for i, job in enumerate(jobs):
            directory = os.path.join(work, "%03d_%s" % (i, job.module))
            shutil.rmtree(directory, True)
            running[pool.submit(prove, job, directory, a.timeout)] = job
        for f in concurrent.futures.as_completed(running):
            good, seconds, remark = f.result()
            said = "%s (%.1f s)" % (remark, seconds)
            cases.case(running[f].text + (": " + said if good else ""), "" if good else said)
    if not a.keep:
        shutil.rmtree(work, True)
    cases.end(floor=MUTANTS if a.mutants else PROOFS, picked=a.modules)


if __name__ == "__main__":
    main()
