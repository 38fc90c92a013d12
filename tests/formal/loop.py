#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prove mlo_loop: base case and induction of all its properties at once, then refute mutants of it.

z3 (run.py) does not get through this model; the SAT solver inside yosys takes seconds, so it has a script of its own.
One line per proof or mutant; exit 1 if one is not as it must be. What proved.txt holds is not proved again each time:
see proved.py."""
import os
import subprocess
import proved
SOURCE = os.path.join(proved.VERILOG, "mlo_loop.v")
STEPS = 3       # of the induction; the base case has as many
DEEP = 12       # steps in which a mutant must fail from reset

MUTANTS = [
    ("first  <= token_end ? iteration_end : in_first", "first  <= token_end ? 1'b0 : in_first"),
    ("(count + 8'd1 >= frames)", "(count >= frames)"),
    ("(closed || full || (!s_ext_tvalid && over))", "(full || (!s_ext_tvalid && over))"),
    ("in_first = close || first", "in_first = first"),
    ("left   <= iteration_end ? others : (close ? others : left)", "left   <= iteration_end ? others : left"),
    ("out_next ? out_rest == 16'd1 : out_rest == 16'd0", "out_rest == 16'd0"),
    ("close ? rounds == 16'd1 : rest == 16'd0", "rest == 16'd0"),
    ("wire        frame_end = token_end && in_user[0]", "wire        frame_end = token_end"),
    ("(out_rest == 16'd0) ? rounds : out_rest - 16'd1", "out_rest - 16'd1"),
    ("assign s_ext_tready = in_go && !from_fb", "assign s_ext_tready = in_go"),
    ("in_go    = in_ready && (midway || turn_ready)", "in_go    = in_ready"),
    ("turn_valid   = offered && !midway && in_ready", "turn_valid   = offered && in_ready"),
    ("assign turn_round   = from_fb", "assign turn_round   = round"),
    ("(midway && count + 8'd1 >= frames)", "midway"),
    ("!said && (known || close || begins)", "!said && (known || begins)"),
    ("known ? ending : close;", "known && ending;"),
    ("known <= from_fb || once || count + 8'd1 >= frames;", "known <= from_fb || once || count >= frames;"),
    ("(close ? count == 8'd1 : left == 8'd0)", "left == 8'd0"),
]
# reached, or the proof would be about nothing: a beat leaves after three iterations; a second group of two frames goes round
REACHED = ["!(f_n == 3 && f_out == 1)", "!(f_n == 2 && f_group == 2 && f_k == 1 && f_gs != 0)"]


PROVE, REFUTE = "-maxsteps %d" % STEPS, "-tempinduct-baseonly -maxsteps %d" % DEEP


def sat(beats, options, patience=0):
    """yosys' script"""
    return "; ".join(["read_verilog -formal -sv mlo_loop.v", "chparam -set WIDTH 8 -set BEATS %d -set PATIENCE %d mlo_loop" % (beats, patience),
                      "prep -top mlo_loop -nordff", "async2sync", "dffunmap", "chformal -cover -remove", "opt -full",
                      "sat -prove-asserts -set-assumes -tempinduct " + options])


def run(script, directory):
    """yosys' verdict: 'proved', 'refuted' or what it said"""
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        out = subprocess.run(["yosys", "-p", script], cwd=directory, timeout=600, **pipes).stdout
    except subprocess.TimeoutExpired:
        return "timeout"
    if "Induction step proven: SUCCESS!" in out:
        return "proved"
    if "model found for base case: FAIL!" in out:
        return "refuted"
    return "\n".join(out.splitlines()[-3:])


def expect(what, text, wanted, scripts, wrong=""):
    """one of these scripts has to lead to the verdict that is wanted"""
    def prove(directory):
        for script in scripts:
            verdict = run(script, directory)
            if verdict == wanted:
                break
        return verdict == wanted, verdict
    return proved.Proof("mlo_loop " + what, "mlo_loop", [proved.File("mlo_loop.v", text)], scripts, prove, wrong)


def proofs():
    with open(SOURCE) as f:
        text = f.read()
    for beats in (1, 2):
        yield expect("BEATS=%d base+induction" % beats, text, "proved", [sat(beats, PROVE)])
        yield expect("BEATS=%d PATIENCE=2 base+induction" % beats, text, "proved", [sat(beats, PROVE, 2)])
    feed = "    // ---- the specification of the feed"
    for claim in REACHED:
        more = "\n    always @* if (f_past_valid) assert (%s);\n" % claim
        yield expect("reaches " + claim, text.replace(feed, more + feed), "refuted", [sat(1, REFUTE)])
    design, mark, properties = text.partition("`ifdef FORMAL\n    // The world around")
    for old, new in MUTANTS:
        wrong = "" if design.count(old) == 1 else "text found %d times" % design.count(old)
        mutant = design.replace(old, new) + mark + properties       # some need tokens of two beats
        yield expect("mutant " + new, mutant, "refuted", [sat(1, REFUTE), sat(2, REFUTE)], wrong)


if __name__ == "__main__":
    proved.main("loop", list(proofs()), proved.arguments(__doc__).parse_args(), floor=20)
