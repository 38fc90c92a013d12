#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every layer of a model changed alike, one thing at a time: quantize gives integers near what the changed model computes, or refuses with one line.

    python tests/test_alike.py path/to/mlo [MODEL ...]

As they are, quantize takes them. alike.txt holds the changes, a line each: those, of all that alike.py makes of a loop's body (an attribute, an operand, a constant, an operator, a node
more, a parameter; one of them or two), that took quantize where no other test had. ONNX Runtime computes the changed model and its integers, on inputs that
both were calibrated on. What it does not run either is no model, and is refused; or it is none that says anything."""
import os
import numpy as np
import onnx
import alike
import harness as t
from graphs import execute, feeds, scans, session

NEAR = 0.9                          # cosine of what integers of 8 bits give: a wrong sign, head or channel is far below
FEWER = 0.75                        # the same where flags ask for fewer bits
REFUSED = "conv/dilated-d18-none-a", "families/bert-d18-sdpa-none-batch2-a", "families/bert-d18-sdpa-square-a"             # as they are; with these changes some are none such


def rolled(path):
    with open(path, "rb") as f: model = f.read()
    bound = [w for name, n in (("batch", 1), ("sequence", 8)) if ("%c%s" % (len(name), name)).encode() in model for w in ("--dim", "%s=%d" % (name, n))]
    if "/context/" in path: bound += ["--context", "16"]
    t.good("roll", path, *bound, "--onnx", "-o", t.at("rolled.onnx"))
    return onnx.load(t.at("rolled.onnx"))


def judged(c, options, feed, taken=False):
    """Why this is wrong; "" if it is right, or refused, but where it has to be taken; None if there is nothing to judge."""
    try: want = execute(c, feed)[0].ravel().astype(float)
    except Exception: want = None
    np.savez(t.at("calibration.npz"), **{k: v[None] for k, v in feed.items()})
    p = t.call("quantize", t.write("changed.onnx", c.SerializeToString()), "--calib", t.at("calibration.npz"), *options, "--onnx", "-o", t.at("integers.onnx"), text=True)
    told = [l for l in p.stderr.splitlines() if "[MLO_E_" in l]
    if p.returncode: return "" if p.returncode in (3, 4) and len(told) == 1 and not taken else "status %d: %s" % (p.returncode, p.stderr[-300:])
    if want is None: return None
    got = session(t.at("integers.onnx")).run(None, feed)[0].ravel().astype(float)
    near = float(want @ got / max(np.linalg.norm(want) * np.linalg.norm(got), 1e-30))
    return "" if near > (FEWER if options else NEAR) or not np.linalg.norm(want) else "cosine %.3f" % near


def check(name, rows):
    def one():
        model = rolled(os.path.join(t.tests, "models", name + ".onnx"))
        wrong, lost, tried = [], [], 0
        feed = feeds(model, ints=(0, 16))
        t.case("%s as it is" % name, judged(model, [], feed, taken=name not in REFUSED) or "")
        for what, *options in rows:
            c = alike.made(model, what)
            if c is None: lost.append(what)
            why = judged(c, options[0].split() if options else [], feed) if c else None
            tried += why is not None
            if why: wrong.append("%s: %s" % (what, why))
        t.case("%s: %d changes" % (name, len(rows)), "there is no '%s' any more; write alike.txt anew" % lost[0] if lost else "; ".join(wrong[:3]) if wrong else "" if tried else "nothing to judge")
    one.__name__ = name
    return one


with open(os.path.join(t.tests, "alike.txt")) as f: ROWS = [[w.strip() for w in l.split("|")] for l in f if not l.startswith("#")]
MODELS = dict.fromkeys(name for name, *_ in ROWS)
t.main(*[check(name, [row for n, *row in ROWS if n == name]) for name in MODELS], floor=220)
