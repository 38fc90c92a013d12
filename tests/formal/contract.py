#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prove the stream contract of whole kernels by induction: every offer stands until it is taken; a token out for each token
in, in their order, with its sideband, in as many beats as it must have; parameter memories swapped only when they may be.
Likewise of the modules at the top's edge: entry and exit (each beat's words too), the loader with its reader and router
(AXI4's read channels, and to each port its beats), the registers (AXI4-Lite, and what reads give), and
jobs at the door (each judged by lengths that the proof keeps, one frame in the core).

    contract.py [NAME ...]        all, or only these: requant, mvu ..

At which parameters, and with which mutants: claims.py. What is claimed is written in contract/rules.v, for any kernel. contract/mlo_NAME.v says which streams a kernel has and where
the tokens inside it are, oldest first: with that the claim is inductive. `given`, `wanted` and `reach` are shorthands for
streams (below); `inner` declares a register of the kernel that is looked at; `uses` takes in what two contracts share. The kernels are taken as they are, but for
what only computes numbers, and parameter memories and queues, of which just the contract is kept (contract/abstract.v): each
of those has a proof of its own. Of mlo_mvu_tiled's parts too just the contract is kept (contract/parts.v): it is proved here of
each (for mlo_tile and mlo_untile the same rules, contract/tiles.v, once claimed and once assumed). The bodies of kernels are read without their own `ifdef FORMAL.

The engine is the SAT solver in Yosys (temporal induction), for reachability and mutants the bounded model checker of its
ABC: seconds, where z3 takes minutes. One line per proof or mutant; exit 1 if one is not as it must be. What proved.txt holds
is not proved again each time: see proved.py."""
import functools
import os
import re
import subprocess
import claims
import proved
from proved import HERE, VERILOG
STEPS = 3       # of the induction; the base case has as many
DEEP = 80       # cycles within which mutants fail and goals are reached, where a claim says no other
TIMEOUT = 900

STREAM = """
    wire %(n)s_start, %(n)s_ending, %(n)s_take;
    wire [2:0] %(n)s_token;
    wire [((%(beats)s > 1) ? $clog2(%(beats)s) : 1)-1:0] %(n)s_beat;
    stream #(.GIVEN(%(given)d), .BEATS(%(beats)s), .DATA($bits(%(name)s_tdata))) u_%(n)s (
        .clk(clk), .rst(rst), .valid(%(name)s_tvalid), .ready(%(name)s_tready), .data(%(name)s_tdata), .user(%(name)s_tuser),
        .start(%(n)s_start), .ending(%(n)s_ending), .take(%(n)s_take), .beat(%(n)s_beat), .token(%(n)s_token));
"""
REACH = """
    // the very first token begins an iteration
    reg begun;
    always @(posedge clk) begun <= !rst && (begun || %(a)s_take);
    always @* if (!begun && %(s)s_tvalid) assume (%(s)s_tuser[0]);
    // not vacuous: tokens leave, marked ones among them, and both streams had to wait
    reg [1:0]  left;
    reg        waited, wait_in;
    wire [1:0] outs;
    always @(posedge clk) begin
        if (%(b)s_take && %(b)s_ending && left != %(tokens)s) left <= left + 1'b1;
        if (%(m)s_tvalid && !%(m)s_tready) waited <= 1'b1;
        if (%(s)s_tvalid && !%(s)s_tready) wait_in <= 1'b1;
        if (rst) {left, waited, wait_in} <= 0;
    end
    goal u_goal (.reached(past && left == %(tokens)s && waited && wait_in && outs != 0));
"""


@functools.lru_cache(None)
def read(path):
    with open(path) as f:
        return f.read()


def source(module):
    return read(os.path.join(VERILOG, module + ".v"))


def contract(name):
    return os.path.join(HERE, "contract", name + ".v")


@functools.lru_cache(None)
def modules(name):
    return re.findall(r"^module (\w+)", read(contract(name)), re.M)


def contract_text(module):
    return re.sub(r"^uses (\w+);", lambda m: read(contract(m.group(1))), read(contract(module)), flags=re.M)


def left_open(module):
    """the files in contract/ of what is left open below `module`"""
    return ["abstract"] if module in modules("parts") else ["abstract", "parts"]


@functools.lru_cache(None)
def submodules(module):
    """all modules below `module` that are not left open, itself excluded"""
    seen, todo, abstract = [], [module], [m for name in left_open(module) for m in modules(name)]
    while todo:
        text = re.sub(r"//.*", "", source(todo.pop()))
        for name in re.findall(r"^\s*(mlo_\w+)\s+(?:#\s*\(|\w+\s*\()", text, re.M):
            if not name.startswith("mlo_error_") and name != module and name not in seen + abstract:
                seen.append(name)
                todo.append(name)
    return seen


def expand(text, params):
    """uses FILE;   given STREAM BEATS;   wanted STREAM BEATS;   reach IN OUT TOKENS;   inner [RANGE] dut.NAME;   inner [RANGE] NEW = dut.NAME;
    memory COUNT [RANGE] NEW = dut.NAME;"""
    def value(expression):
        return eval(expression, {k: int(v) for k, v in params if v.isdigit()})

    def short(name):
        return name.replace("_axis", "")

    def statement(m):
        word, rest = m.group(1), m.group(2).strip()
        if word in ("given", "wanted"):
            name, beats = rest.split(None, 1)
            return STREAM % dict(n=short(name), name=name, beats=beats, given=word == "given")
        if word == "reach":
            s, m, tokens = rest.split()
            return REACH % dict(s=s, m=m, a=short(s), b=short(m), tokens=value(tokens))
        if word == "memory":                     # registers by now (-mem2reg)
            count, width, new, old = re.match(r"(\S+) \[(.*):0\] (\w+) = ([\w.]+)$", rest).groups()
            old = ["\\%s[%d] " % (old, i) for i in range(value(count))]
            lines = ["    (* hierconn *) wire [%s:0] %s;" % (width, x) for x in old]
            return "\n".join(lines + ["    wire [%d*(%s+1)-1:0] %s = {%s};" % (len(old), width, new, ", ".join(reversed(old)))])
        if "=" in rest:                         # another name for what has brackets in its own
            new, old = rest.split(" = ")
            width = new.rpartition(" ")[0]
            return "    (* hierconn *) wire %s \\%s ;\n    wire %s = \\%s ;" % (width, old, new, old)
        return "    (* hierconn *) wire %s;" % rest         # Yosys connects it to the register when it flattens

    text = re.sub(r"^ *(given|wanted|reach|inner|memory) ([^;]*);", statement, text, flags=re.M)
    return re.sub(r"(?<!\\)\b(?:dut|u_rules)\.[\w.]+", lambda m: "\\" + m.group(0) + " ", text)


def wrapper(module, params):
    """a module with the kernel's parameters and ports, the kernel in it, and its contract"""
    text = re.sub(r"`ifdef FORMAL.*?`endif", "", source(module), flags=re.S)
    head = re.search(r"^module %s\b.*?^\);" % module, text, re.M | re.S).group(0)
    names = re.findall(r"^\s*(?:,\s*)?parameter\s+(?:\[[^\]]*\]\s*)?(\w+)", head, re.M)
    head = re.sub(r"^module \w+", "module contract", head)
    head = re.sub(r"\boutput(\s+)reg\b", r"output\1wire", head)
    return """%s
    %s #(%s) dut (.*);
    reg past = 1'b0;                            // registers may hold anything before the reset: it stands for any reset
    always @(posedge clk) past <= 1'b1;
    always @* assume (rst == !past);
%s
endmodule
""" % (head, module, ", ".join(".%s(%s)" % (n, n) for n in names), expand(contract_text(module), params))


@functools.lru_cache(None)
def given(module):
    """the files in contract/ that a proof of `module` reads: those of which a module is named, since what they hold is in its key"""
    bare = lambda text: re.sub(r"//.*", "", text)
    text = bare("".join([contract_text(module)] + [source(m) for m in [module] + submodules(module)]))
    files, left = ["rules"], ["tiles"] + left_open(module)
    while True:
        named = [x for x in left if any(re.search(r"\b%s\b" % m, text) for m in modules(x))]
        if not named:
            return files
        files += named
        left = [x for x in left if x not in named]
        text = bare("".join(read(contract(x)) for x in named))


# the modules of rules.v whose assertions stay in a proof
ALL = ["contract", "*stream*", "*order*", "*changes*", "*watch*", "*beats*", "*rules*", "*claim*", "*mlo_*"]
INDUCTION = ["select -list t:$assert", "opt -full", "dffunmap", "sat -prove-asserts -set-assumes -tempinduct -maxsteps %d" % STEPS]
AIG = ["opt -full", "techmap", "opt -fast", "dffunmap", "abc -g AND -fast", "opt_clean", "write_aiger -zinit -I -B model.aig"]
BMC = "read_aiger model.aig; fold; strash; orpos; scorr; bmc3 -F %d"


def files(module, params, text):
    """what Yosys reads"""
    below = [proved.File(m + ".v", source(m), False) for m in submodules(module)]
    rules = [proved.File(x + ".v", read(contract(x))) for x in given(module)]
    return [proved.File("contract.v", wrapper(module, params)), proved.File(module + ".v", text, False)] + below + rules


def script(module, params, keep, end):
    """what Yosys does; keep: the modules of rules.v whose assertions stay"""
    registers = "-mem2reg " if re.search("^memory ", read(contract(module)), re.M) else ""
    lines = ["read_verilog -defer -sv " + registers + " ".join(m + ".v" for m in [module] + submodules(module))]
    lines += ["read_verilog -formal -sv " + " ".join(x + ".v" for x in given(module))]
    lines += ["read_verilog -defer -formal -sv contract.v"]     # its default parameters, which may be large, are not elaborated
    lines += ["hierarchy -top contract " + " ".join("-chparam %s %s" % (k, v) for k, v in params), "proc"]
    lines += ["select *"] + ["select -del " + m for m in keep] + ["chformal -assert -remove", "select -clear"]
    lines += ["prep -flatten -top contract -nordff", "setattr -unset keep", "delete -output", "opt_clean", "async2sync", "memory_map"]
    return "; ".join(lines + end)


def run(command, directory):
    """its status (0: well) and what it says"""
    try:
        p = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return 1, "timeout"
    return p.returncode, p.stdout


def yosys(script, directory):
    """whether it went well; what it says"""
    status, out = run(["yosys", "-p", script], directory)
    lost = re.search(r".*(implicitly declared|used but has no driver).*", out)
    if lost or status:                          # a name that binds to nothing would make a claim about nothing
        return False, lost.group(0) if lost else out[-300:]
    return True, out


def induction(script, directory):
    well, out = yosys(script, directory)
    if well and "Induction step proven: SUCCESS!" in out:
        return True, "proved"
    return False, "refuted" if "model found for base case" in out else "\n".join(out.splitlines()[-4:])


def bounded(script, bmc, directory):
    well, out = yosys(script, directory)
    if not well:
        return False, out
    out = run(["yosys-abc", "-c", bmc], directory)[1]
    found = re.search(r"was asserted in frame (\d+)", out)
    return bool(found), "in cycle " + found.group(1) if found else "NOT found: " + out[-200:].strip()


def proof(name, claim, keep, reach=False):
    """reach: not that the claim's assertions hold but that one does not, in the mutant where it is one"""
    module, params = claim.module, [x.split("=") for x in claim.text.split() if "=" in x]
    depth = [int(x[5:]) for x in claim.text.split() if x.startswith("deep:")] or [DEEP]
    text, wrong, old, new = source(module), "", claim.old, claim.new
    if old:
        wrong = "" if text.count(old) == 1 else "text found %d times" % text.count(old)
        text = text.replace(old, new)
    asked, bmc = script(module, params, keep, AIG if reach else INDUCTION), BMC % depth[0]
    prove = lambda directory: bounded(asked, bmc, directory) if reach else induction(asked, directory)
    return proved.Proof(name, module, files(module, params, text), [asked, bmc] if reach else [asked], prove, wrong)


def proofs():
    for claim in claims.read("contract"):
        job = " ".join([claim.module] + [x for x in claim.text.split() if not x.startswith("deep:")])
        yield proof("contract of " + job, claim, ALL)
        yield proof("reached in " + job, claim, ["goal"], True)
    for claim in claims.read("mutant contract"):
        yield proof("mutant of %s: %s" % (claim.module, claim.new), claim, ["claim"], True)


if __name__ == "__main__":
    proved.main("contract", list(proofs()), proved.arguments(__doc__).parse_args(), floor=308)
