#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention whose scores get a bias that is a parameter: ALiBi, tables by distance, learned biases of any form, what they hide.

    python tests/test_bias.py path/to/mlo [CHECK ...]

    kernels   ONNX Runtime and mlo run give the words of the bench's model (tests/verilog/attention.py)
    errors    what cannot be says so
    cores     whole cores: every word is that of mlo run and of ONNX Runtime on host/core.onnx, frames of any length, in flight together, with stalls;
              cycles are as predicted
    exports   models/bias/ (families_bias.py made it: T5, UMT5, BLOOM, MPT, BEiT and own ones) become hardware, as test_families.py has it: words in
              Icarus, `mlo run` and ONNX Runtime, and how near they come to the floats; what depends on the input says so"""
import glob
import os
import numpy as np
import harness as t
import test_families
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


# by a part of the name: what the refusal's line has to say
REFUSED = {"bloom-d18-eager-mask": "what depends on the model's inputs"}        # its distance counts the tokens that the mask keeps


def check_exports():
    if not t.have("exports", "iverilog"): return
    models = [test_families.Model(p) for p in sorted(glob.glob(os.path.join(t.tests, "models", "bias", "*.onnx")))]
    for m in models:
        m.words = REFUSED.get(m.name[:-2], "")
        m.compile()
        m.judge()
        if not m.verdict(): t.note("%-32s %s" % (m.name, "cosine %.4f" % m.near if m.near != "" else "refused: " + m.words))
        t.case("export %s" % m.name, m.verdict())


if __name__ == "__main__":
    t.main(check_kernels, check_errors, check_cores, check_exports, floor=37)
