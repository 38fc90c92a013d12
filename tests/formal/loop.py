#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prove mlo_loop: base case and induction of all its properties at once, then refute mutants of it.

z3 (run.py) does not get through this model; the SAT solver inside yosys takes seconds, so it has a script of its own.
One line per proof or mutant; exit 1 if one is not as it must be."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import cases
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "verilog", "mlo_loop.v")
STEPS = 3       # of the induction; the base case has as many
DEEP = 12       # steps in which a mutant must fail from reset

MUTANTS = [
    ("first  <= token_end ? iteration_end : in_first", "first  <= token_end ? 1'b0 : in_first"),
    ("(count + 8'd1 >= frames)", "(count >= frames)"),
    ("(closed || full || (!s_ext_tvalid && s_fb_tvalid))", "(full || (!s_ext_tvalid && s_fb_tvalid))"),
    ("in_first = close || first", "in_first = first"),
    ("left   <= iteration_end ? others : (close ? others : left)", "left   <= iteration_end ? others : left"),
    ("out_next ? out_rest == 16'd1 : out_rest == 16'd0", "out_rest == 16'd0"),
    ("close ? rounds == 16'd1 : rest == 16'd0", "rest == 16'd0"),
    ("wire        frame_end = token_end && in_user[0]", "wire        frame_end = token_end"),
    ("(out_rest == 16'd0) ? rounds : out_rest - 16'd1", "out_rest - 16'd1"),
    ("assign s_ext_tready = in_ready && !from_fb", "assign s_ext_tready = in_ready"),
]
# reached, or the proof would be about nothing: a beat leaves after three iterations; a second group of two frames goes round
REACHED = ["!(f_n == 3 && f_out == 1)", "!(f_n == 2 && f_group == 2 && f_k == 1 && f_gs != 0)"]


def sat(text, beats, options, directory):
    """yosys' verdict: 'proved', 'refuted' or what it said"""
    path = os.path.join(directory, "mlo_loop.v")
    with open(path, "w") as f:
        f.write(text)
    script = ["read_verilog -formal -sv " + path, "chparam -set WIDTH 8 -set BEATS %d mlo_loop" % beats, "prep -top mlo_loop -nordff",
              "async2sync", "dffunmap", "chformal -cover -remove", "opt -full", "sat -prove-asserts -set-assumes -tempinduct " + options]
    try:
        out = subprocess.run(["yosys", "-p", "; ".join(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600).stdout
    except subprocess.TimeoutExpired:
        return "timeout"
    if "Induction step proven: SUCCESS!" in out:
        return "proved"
    if "model found for base case: FAIL!" in out:
        return "refuted"
    return "\n".join(out.splitlines()[-3:])


def main():
    with open(SOURCE) as f:
        text = f.read()
    with tempfile.TemporaryDirectory(prefix="mlo-formal-") as directory:

        def expect(what, verdict, wanted):
            cases.case("mlo_loop %s: %s" % (what, wanted), "" if verdict == wanted else verdict)

        for beats in (1, 2):
            expect("BEATS=%d base+induction" % beats, sat(text, beats, "-maxsteps %d" % STEPS, directory), "proved")
        design, mark, properties = text.partition("`ifdef FORMAL\n    // The world around")
        for claim in REACHED:
            more = "\n    always @* if (f_past_valid) assert (%s);\n" % claim
            expect("reaches " + claim, sat(text.replace("    // ---- the specification of the feed", more + "    // ---- the specification of the feed"), 1,
                                           "-tempinduct-baseonly -maxsteps %d" % DEEP, directory), "refuted")
        for old, new in MUTANTS:
            if design.count(old) != 1:
                expect("mutant " + old, "text found %d times" % design.count(old), "refuted")
                continue
            mutant = design.replace(old, new) + mark + properties
            verdict = sat(mutant, 1, "-tempinduct-baseonly -maxsteps %d" % DEEP, directory)
            if verdict != "refuted":            # some need tokens of two beats
                verdict = sat(mutant, 2, "-tempinduct-baseonly -maxsteps %d" % DEEP, directory)
            expect("mutant %s" % new, verdict, "refuted")
    cases.end(floor=14)


if __name__ == "__main__":
    main()
