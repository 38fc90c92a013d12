#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention whose scores get a bias that is a parameter: ALiBi, tables by distance, learned biases of any form, what they hide.

    python tests/test_bias.py path/to/mlo [CHECK ...]

    kernels   ONNX Runtime and mlo run give the words of the bench's model (tests/verilog/attention.py)
    errors    what cannot be says so
    cores     whole cores: every word is that of mlo run and of ONNX Runtime on host/core.onnx, frames of any length, in flight together, with stalls;
              cycles are as predicted
    exports   models/bias/ (families_bias.py made it: T5, UMT5, BLOOM, MPT, BEiT and own ones) become hardware, as test_families.py has it: words in
              Icarus, `mlo run` and ONNX Runtime, and how near they come to the floats
    counted   BLOOM's distances, which count the ones of a run-time mask, against the floats, where it pads left or right; near misses are refused
    hidden    a key that one of two attentions hides is refused, and which it is"""
import glob
import os
import re
import numpy as np
import onnx
from onnx import numpy_helper
import harness as t
import test_families
from encoders import Encoder
from graphs import session
from test_causal import Core, bench, judge, judged, model, one_kernel


def check_kernels():
    words = 0
    for causal, kvh, (h, t_, bias) in ((0, 4, (4, 9, (1, 1, 0))), (1, 2, (4, 7, (1, 1, 5))), (0, 1, (3, 8, (1, 0, 3))), (1, 2, (2, 12, (0, 1, 2))), (1, 1, (2, 5, (0, 0, 23))), (0, 1, (1, 1, (1, 1, 1)))):
        rng, why = bench.Rng(7 * h + t_), ""
        c = model.config(h, 4, t_, 1, 1, kvh=kvh, causal=causal, bias=bias)
        for tq, tk in (t_, t_), (1, (t_ + 1) // 2), ((t_ + 2) // 3, t_), (min(2, t_), min(2, t_)):
            for n, key in enumerate((np.ones(tk, bool), np.zeros(tk, bool), np.arange(tk) >= tk // 2, np.array([rng.chance(50) for _ in range(tk)]))):
                why = why or judged(rng, "AttentionBias", c, tq, tk, key, (0, 0), model.pick_bias(rng, c, n == 3))
                words += tq * h * 4
        t.case("bias of %d heads, %d queries, shift %d%s: ONNX Runtime and mlo run give the model's words" % (c["BIASH"], c["BIAST"], c["SHIFT"], ", causal" * causal), why)
    t.note("%d words" % words)


def check_errors():
    q = np.zeros((1, 4, 8), np.int8)
    feed = {"q": q, "k": q, "v": q, "mask": np.ones((1, 4), bool), "p": np.array([1, 1, 1, 1], np.int32)}
    zeros = lambda *shape: np.zeros(shape, np.int16)
    for what, bias, attributes, status, words in (
            ("a bias of other heads", zeros(3, 4, 4), {}, 3, b"a bias of shape [3,4,4] for 4 heads, 4 queries and 4 keys"),
            ("a bias of fewer queries", zeros(4, 3, 4), {}, 3, b"for 4 heads, 4 queries"),
            ("a bias of fewer keys", zeros(1, 1, 3), {}, 3, b"and 4 keys"),
            ("a bias of two dimensions", zeros(4, 4), {}, 3, b"INT16 [heads, queries, keys]"),
            ("a bias of other integers", np.zeros((4, 4, 4), np.int32), {}, 3, b"INT16 [heads, queries, keys]"),
            ("a shift too far", zeros(4, 4, 4), {"bias_shift": 24}, 3, b"bias_shift 24 is not within 0..23"),
            ("a band beside it", zeros(4, 4, 4), {"band": 1}, 4, b"a band beside a bias")):
        f = dict(feed, bias=bias)
        if "band" in attributes: f["p"] = np.array([1, 1, 1, 1, 1, 1], np.int32)
        np.savez(t.at("in.npz"), **f)
        r = t.call("run", t.write("kernel.onnx", one_kernel("AttentionBias", f, dict({"heads": 4, "lt": 2}, **attributes)).SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        t.case(what + ": an error", "" if r.returncode == status and words in r.stderr else "status %d: %s" % (r.returncode, r.stderr.decode()))


def check_cores():
    if not t.have("cores", "iverilog"): return
    cases = [
        (Core("bias-1", tokens=1, bias=(1, 1, 2)), 1, 2, 1, None),
        (Core("bias-7", tokens=7, heads=3, bias=(1, 1, 4)), 3, 2, 2, [7, 1, 4, 6]),
        (Core("bias-keys", tokens=12, layers=3, bias=(1, 0, 3), causal=1, masked=True), 1, 4, 2, [12, 1, 5]),
        (Core("bias-heads", tokens=20, bias=(0, 1, 5), heads=4, kv=2, masked=True), 8, 1, 1, [20, 3]),
        (Core("bias-causal", tokens=18, layers=3, bias=(1, 1, 6), causal=1, masked=True), 4, 4, 2, [18, 2, 9]),
    ]
    for core, *how in cases: t.case("core %s: words, stalls, short frames, cycles" % core.name, judge(core, *how))


def counted(change=None):
    """BLOOM with a run-time mask, whose ones its distances count: (its file, what compile says, the build directory); change takes its graph first."""
    m = onnx.load(glob.glob(os.path.join(t.tests, "models", "bias", "bloom-d18-eager-mask-*.onnx"))[0])
    if change: change(m.graph)
    path, out = t.write("counted.onnx", m.SerializeToString()), t.at("counted")
    return path, t.call("compile", path, "-o", out, text=True), out


def near(path, out, mask):
    """The cosine of the integers' and the floats' tokens that count, both by ONNX Runtime."""
    rng = np.random.default_rng(3)
    feed = {"input_ids": rng.integers(3, 50, (1, len(mask))), "attention_mask": mask.astype(np.int64)[None]}
    want, values = session(path).run(None, feed)[0], dict(feed)
    for part in "pre", "core", "post":
        s = session(os.path.join(out, "host", part + ".onnx"))
        values.update(zip([o.name for o in s.get_outputs()], s.run(None, {i.name: values[i.name] for i in s.get_inputs()})))
    a, b = want[0][mask], values[s.get_outputs()[0].name][0][mask]
    return float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))


def hides_nothing(graph):
    """Only the distances know of the mask."""
    graph.initializer.append(numpy_helper.from_array(np.ones((1, 7), np.int64), "all"))
    for n in graph.node:
        for i, name in enumerate(n.input):
            if name == "attention_mask" and n.op_type not in ("CumSum", "Mul"): n.input[i] = "all"


def counts_those_before(graph):
    for n in graph.node:
        for a in n.attribute: a.i = 1 if n.op_type == "CumSum" and a.name == "exclusive" else a.i


def check_counted():
    """Distances that count a mask's ones are those of places, wherever the ones are one run; of a mask that hides no key, and other counts, they are refused."""
    path, p, out = counted()
    t.case("distances count the mask's ones: compiled, and said", "" if not p.returncode and "one run (padding at the ends)" in p.stderr else p.stderr[-400:] or "it says nothing")
    at = np.arange(7)
    for name, mask in (("all", at >= 0), ("the first four", at < 4), ("the last four", at > 2), ("those in the middle", (at > 1) & (at < 6))):
        got = 0 if p.returncode else near(path, out, mask)
        t.case("of %s count: cosine %.4f" % (name, got), "" if got > 0.998 else "more than 0.998 was expected")
    t.good("quantize", os.path.join(t.tests, "models/bias/bloom-d18-eager-none-d.onnx"), "--onnx", "-o", t.at("alibi.onnx"))
    sizes = [tuple(i.dims) for i in onnx.load(t.at("alibi.onnx")).graph.initializer if "bias" in i.name and len(i.dims) == 4]
    t.case("distances that causal queries see alike are one row for all: 3 layers, 4 heads, 9 keys", "" if sizes == [(3, 4, 1, 9)] else str(sizes))
    for name, change, words in ("a mask that hides no key", hides_nothing, "which does not hide key 0"), ("counts of those before", counts_those_before, "what depends on the model's inputs"):
        p = counted(change)[1]
        t.case("%s: refused, and why" % name, "" if p.returncode == 4 and words in p.stderr else "status %d: %s" % (p.returncode, p.stderr[-400:]))


class Twice(Encoder):
    """Two attentions a layer, each with a bias of its own; the second one's hides a key from all queries and heads."""
    def attention(self, x, bias, p):
        numbers = self.rng.standard_normal((1, self.heads, self.tokens, self.tokens)).astype(np.float32)
        if p.endswith("again."): numbers[..., 4] = -np.inf
        return super().attention(x, self.init(p + "bias", numbers), p)

    def layer(self, x, bias, p):
        x = super().layer(x, bias, p)
        return self.node("Add", self.attention(x, bias, p + "again."), x)


def check_hidden():
    """A key that one attention hides and another one sees is no bit of a mask: refused, and which key it is; where all heads hide it none is named."""
    p = t.call("quantize", t.write("hidden.onnx", Twice(2, 8, 2, 4, 8, 7, "post", "Relu").model().SerializeToString()), text=True)
    t.case("a key that one attention hides: refused, and which", "" if p.returncode == 4 and re.search(r"\[1,2,7,7\]: query 0 hides key 4, which other layers or attentions do not", p.stderr) else "status %d: %s" % (p.returncode, p.stderr[-400:]))


def check_exports(): test_families.exports("bias")


if __name__ == "__main__":
    t.main(check_kernels, check_errors, check_cores, check_exports, check_counted, check_hidden, floor=46)
