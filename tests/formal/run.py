#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prove the properties under `ifdef FORMAL of verilog/mlo_*.v with yosys + yosys-smtbmc + z3.

    run.py [MODULE ...] [-j N] [--timeout S] [--keep DIR]     each `proof` of claims/*.txt (all, or only these modules)
    run.py --mutants [MODULE ...]                             each `mutant` must be refuted

What proved.txt holds is not proved again each time: proved.py says when, and what --all, --record and --list do.

proof DEPTH [FLAG ...] [PARAM=VALUE ...] (see claims.py) is
    a bounded proof of DEPTH steps from reset, then an induction proof with the same DEPTH, then (if the module
    has cover statements) each of them must be reached within DEPTH steps.  FLAGs:
    bmc      bounded proof only        nocover  skip the covers        cover    the covers only
    plain    leave the submodules' own properties out (less work; with them they serve as lemmas)
    open:NAME,NAME..         these submodules as contract/abstract.v has them: a queue's contract, any numbers

mutant DEPTH [FLAG ...] [PARAM=VALUE ...] | old text | new text:
    the old text (once, before `ifdef FORMAL) is replaced; then the bounded proof must find a counterexample.

One line per proof, a count at the end; exit 1 if anything failed, or fewer ran than there are at least."""
import os
import re
import subprocess
import sys
import claims
import proved
from proved import HERE, VERILOG
FLAGS = ("bmc", "nocover", "cover", "plain")
PROOFS, MUTANTS = 293, 305       # at least


class Job:
    """What a claim asks for. text: by which it is known."""
    def __init__(self, claim):
        self.module, self.old, self.new = claim.module, claim.old, claim.new
        self.text = "%s %s" % (claim.module, claim.text)
        self.depth, self.flags, self.params, self.left_open = None, set(), {}, []
        if claim.old is not None:
            self.text += "  %s -> %s" % (claim.old, claim.new)
        for w in claim.text.split():
            if w.isdigit():
                self.depth = int(w)
            elif w in FLAGS:
                self.flags.add(w)
            elif w.startswith("open:"):
                self.left_open = ["mlo_" + name for name in w[5:].split(",")]
            elif "=" in w:
                k, v = w.split("=", 1)
                self.params[k] = v
            else:
                sys.exit("%s: what is '%s'?" % (claim.where, w))
        if self.depth is None:
            sys.exit("%s: no depth" % claim.where)


def source(module):
    with open(os.path.join(VERILOG, module + ".v")) as f:
        return f.read()


def abstract(module):
    """what contract/abstract.v has of a module"""
    with open(os.path.join(HERE, "contract", "abstract.v")) as f:
        return re.search(r"^module %s\b.*?^endmodule\n" % module, f.read(), re.M | re.S).group()


def submodules(module, left_open=()):
    """all modules below `module`, itself excluded; of those left open it does not look further"""
    seen, todo = [], [module]
    while todo:
        text = re.sub(r"//.*", "", source(todo.pop()))
        for name in re.findall(r"^\s*(mlo_\w+)\s+(?:#\s*\(|\w+\s*\()", text, re.M):
            if not name.startswith("mlo_error_") and name != module and name not in seen:
                seen.append(name)
                if name not in left_open:
                    todo.append(name)
    return seen


def tool(cmd, timeout, directory):
    """(status, output); status 'ok', 'failed' or 'timeout'"""
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    p = subprocess.Popen(cmd, cwd=directory, start_new_session=True, **pipes)
    try:
        out, _ = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)                     # the solver is a grandchild
        p.communicate()
        return "timeout", ""
    return ("ok" if p.returncode == 0 else "failed"), out


def tail(out):
    out = re.sub(r"[^\n]*\x08", "", out)         # the solver's progress
    lines = [x for x in out.splitlines() if re.search(r"[Ff]ailed|ERROR|Unreached|error", x)]
    return "; ".join(x.strip() for x in lines[-2:]) or "\n".join(out.splitlines()[-3:])


def solve(depth, *options):
    # --unroll: up to 100 x faster (measured)
    return ["yosys-smtbmc", "-s", "z3", "--unroll", "-t", str(depth), "--dump-vcd", "trace.vcd", *options, "model.smt2"]


def commands(job, below):
    """Yosys' script, then the solver's calls by name"""
    script = ["read_verilog -formal -sv %s.v" % job.module]
    if below:
        formal = "" if "plain" in job.flags else "-formal"
        script.append("read_verilog %s -sv %s" % (formal, " ".join(m + ".v" for m in below)))
    script += ["chparam -set %s %s %s" % (k, v, job.module) for k, v in job.params.items()]
    script += ["prep -flatten -top %s -nordff" % job.module, "delete -output", "opt_clean"]      # what is not asked
    script += ["async2sync", "dffunmap", "write_smt2 -wires model.smt2"]
    calls = {"bounded": solve(job.depth), "induction": solve(job.depth, "-i"), "cover": solve(job.depth, "-c")}
    if job.old is not None:
        calls = {"bounded": calls["bounded"]}
    if "cover" in job.flags:
        calls = {"cover": calls["cover"]}
    for flag, call in (("bmc", "induction"), ("nocover", "cover")):
        if flag in job.flags:
            calls.pop(call, None)
    return "; ".join(script), calls


def prove(job, script, calls, timeout, directory):
    """Returns (it holds, what to say)."""
    status, out = tool(["yosys", "-q", "-p", script], timeout, directory)
    lost = re.search(r".*(implicitly declared|used but has no driver).*", out)
    if lost or status != "ok":                  # a name that binds to nothing would make a property about nothing
        return False, "yosys %s: %s" % (status, lost.group(0) if lost else tail(out))
    with open(os.path.join(directory, "model.smt2")) as f:
        model = f.read()
    if "; yosys-smt2-assert" not in model:
        return False, "no property to prove"
    done = []
    for name, call in calls.items():
        if name == "cover" and "; yosys-smt2-cover" not in model:
            continue
        status, out = tool(call, timeout, directory)
        if job.old is not None:
            refuted = status == "failed" and re.search(r"BMC failed|Assert failed", out)
            return bool(refuted), "refuted" if refuted else "NOT refuted: %s" % status
        if status != "ok":
            return False, "%s: %s: %s" % (name, status, tail(out))
        done.append(name)
    return bool(done), "+".join(done) or "no cover to reach"


def proof(job, timeout):
    below, text, wrong = submodules(job.module, job.left_open), source(job.module), ""
    if job.old is not None:
        design, mark, properties = text.partition("`ifdef FORMAL")
        if design.count(job.old) != 1:
            wrong = "old text found %d times" % design.count(job.old)
        text = design.replace(job.old, job.new) + mark + properties
    texts = {m: abstract(m) if m in job.left_open else source(m) for m in below}
    files = [proved.File(m + ".v", texts[m], "plain" not in job.flags) for m in below]
    script, calls = commands(job, below)
    make = lambda directory: prove(job, script, calls, timeout, directory)
    files.insert(0, proved.File(job.module + ".v", text))
    return proved.Proof(job.text, job.module, files, [script, *calls.values()], make, wrong)


def main():
    ap = proved.arguments(__doc__)
    ap.add_argument("--timeout", type=float, default=300, metavar="S", help="per solver call (300)")
    ap.add_argument("--mutants", action="store_true")
    a = ap.parse_args()
    name, kind, floor = ("mutants", "mutant", MUTANTS) if a.mutants else ("proofs", "proof", PROOFS)
    proved.main(name, [proof(Job(c), a.timeout) for c in claims.read(kind)], a, floor)


if __name__ == "__main__":
    main()
