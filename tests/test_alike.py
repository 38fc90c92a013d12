#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every layer of a model changed alike, one thing at a time: quantize gives integers near what the changed model computes, or refuses with one line.

    python tests/test_alike.py path/to/mlo [MODEL ...]

alike.txt holds the changes, a line each: those, of all that alike.py makes of a loop's body (an attribute, an operand, a constant, an operator, a node
more), that took quantize where no other test had. ONNX Runtime computes the changed model and its integers, on inputs that both were calibrated on; a
change that it does not run either is none."""
import os
import numpy as np
import onnx
import alike
import harness as t
from graphs import execute, feeds, scans, session

NEAR = 0.9                          # cosine of what integers of 8 bits give: a wrong sign, head or channel is far below


def rolled(path):
    with open(path, "rb") as f: model = f.read()
    bound = [w for name, n in (("batch", 1), ("sequence", 8)) if ("%c%s" % (len(name), name)).encode() in model for w in ("--dim", "%s=%d" % (name, n))]
    t.good("roll", path, *bound, "--onnx", "-o", t.at("rolled.onnx"))
    return onnx.load(t.at("rolled.onnx"))


def judged(model, change, feed):
    """Why this is wrong; "" if it is right; None if there is nothing to judge."""
    c = alike.changed(model, change)
    try: want = execute(c, feed)[0]
    except Exception: return None
    np.savez(t.at("calibration.npz"), **{k: v[None] for k, v in feed.items()})
    p = t.call("quantize", t.write("changed.onnx", c.SerializeToString()), "--calib", t.at("calibration.npz"), "--onnx", "-o", t.at("integers.onnx"), text=True)
    told = [l for l in p.stderr.splitlines() if "[MLO_E_" in l]
    if p.returncode: return "" if p.returncode in (3, 4) and len(told) == 1 else "status %d: %s" % (p.returncode, p.stderr[-300:])
    a, b = want.ravel().astype(float), session(t.at("integers.onnx")).run(None, feed)[0].ravel().astype(float)
    near = float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30))
    return "" if near > NEAR or not np.linalg.norm(a) else "cosine %.3f" % near


def check(name, names):
    def one():
        model = rolled(os.path.join(t.tests, "models", name + ".onnx"))
        made, wrong, tried = dict(alike.changes(model)), [], 0
        feed = feeds(model, ints=(0, 16))
        lost = [what for what in names if what not in made]
        for what in names:
            why = judged(model, made[what], feed) if what in made else None
            tried += why is not None
            if why: wrong.append("%s: %s" % (what, why))
        t.case("%s: %d changes" % (name, len(names)), "there is no '%s' any more; write alike.txt anew" % lost[0] if lost else "; ".join(wrong[:3]) if wrong else "" if tried else "nothing to judge")
    one.__name__ = name
    return one


with open(os.path.join(t.tests, "alike.txt")) as f: ROWS = [[w.strip() for w in l.split("|")] for l in f if not l.startswith("#")]
MODELS = dict.fromkeys(name for name, _ in ROWS)
t.main(*[check(name, [what for n, what in ROWS if n == name]) for name in MODELS], floor=40)
