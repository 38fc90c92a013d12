#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention of which not all keys count for all queries, or whose queries share heads of keys: causal, band, kv_heads.

    python tests/test_causal.py path/to/mlo [CHECK ...]

    kernels   ONNX Runtime and mlo run give the words of the bench's model (tests/verilog/attention.py) for all attentions
    errors    what cannot be says so
    cores     whole cores: every word is that of mlo run and of ONNX Runtime on host/core.onnx, frames of any length, in flight together, with stalls;
              cycles are as predicted
    half      at 64 tokens a causal attention works at most 0.55 of the cycles of the square
    before    what later tokens are changes no word of the tokens before
    blind     rows of which no key counts: a mask that hides all keys up to the query's own, or all"""
import itertools
import json
import os
import random
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import harness as t
from decoders import Decoder
from graphs import execute
import hardware

sys.path.insert(0, os.path.join(t.tests, "verilog"))
import attention as model
import bench

# what a kernel rounds, or caps
OPS = {"Attention": {}, "AttentionProbs": {"prob": 1}, "AttentionRounded": {"prob": 1, "rounds": 1}, "AttentionCap": {"cap": 1}}


def members(c): return 10 if c["ROUND"] else 7 if c["PROB"] else 6 if c["CAP"] else 4


def functions():
    """A model with the kernels' functions as mlo writes them."""
    path = t.at("functions.onnx")
    if not os.path.exists(path): t.good("quantize", t.model("bert-1"), "--onnx", "-o", path)
    return onnx.load(path)


def one_kernel(op, feed, attributes, change=lambda node: None):
    base = functions()
    node = helper.make_node(op, list(feed), ["y"], domain="mlo", to=onnx.TensorProto.INT8, lo=-128, hi=127, **attributes)
    change(node)
    info = lambda k, v: helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
    graph = helper.make_graph([node], op, [info(k, v) for k, v in feed.items()], [helper.make_tensor_value_info("y", onnx.TensorProto.INT8, None)])
    return helper.make_model(graph, opset_imports=base.opset_import, functions=[f for f in base.functions if f.name == op], ir_version=base.ir_version)


def said(c, band, causal):
    """The attributes of a configuration; none that says what holds without it."""
    a = {"heads": c["H"], "lt": model.clog2(c["T"])}
    if c["KVH"] != c["H"]: a["kv_heads"] = c["KVH"]
    if causal: a["causal"] = 1
    if band: a["band"] = 1
    if c["SHIFT"]: a["bias_shift"] = c["SHIFT"]
    return a


def judged(rng, op, c, tq, tk, key, reach, bias=None, rows=0):
    """'' or how ONNX Runtime's or mlo's words are off from the model's. rows: so many keys and values are parameters, in front of the others."""
    h, kvh, d = c["H"], c["KVH"], c["D"]
    q, k, v, keys, values = (np.array(rng.signed(n * w * d, 8)).reshape(n, w * d).astype(np.int8) for n, w in ((tq, h), (tk, kvh), (tk, kvh), (rows, kvh), (rows, kvh)))
    par = list(model.pick_params(rng, c, 1, False))
    feed = {"q": q[None], "k": k[None], "v": v[None], "mask": key[None], "p": np.array(par[:members(c)] + list(reach) * c["BAND"], np.int32)}
    if bias is not None: feed["bias"] = bias.astype(np.int16)
    if rows: feed.update(keys=keys, values=values)
    k, v, key = np.concatenate((keys, k)), np.concatenate((values, v)), np.concatenate((np.ones(rows, bool), key))
    want = [[] for _ in range(tq)]
    for i, head in itertools.product(range(tq), range(h)):
        ch, kv = slice(head * d, head * d + d), slice(head // (h // kvh) * d, head // (h // kvh) * d + d)
        want[i] += model.row(q[i, ch].astype(int), k[:, kv].astype(int), v[:, kv].astype(int), model.seen(rows + i, key, reach, c), par, c, model.bias_of(bias, head, i, rows + tk))
    m = one_kernel(op, feed, dict(said(c, c["BAND"], c["CAUSAL"]), **{"prefix": rows} if rows else {}))
    np.savez(t.at("in.npz"), **feed)
    t.good("run", t.write("kernel.onnx", m.SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    with np.load(t.at("out.npz")) as z: results = {"ONNX Runtime": execute(m, feed)[0], "mlo run": z["y"]}
    for who, y in results.items():
        if not np.array_equal(y[0], want): return "%s: %d of %d words" % (who, (y[0] != want).sum(), y.size)
    return ""


def check_kernels():
    rows = words = 0
    for op, (causal, band) in itertools.product(OPS, ((1, 0), (0, 1), (1, 1), (0, 0))):
        rng, why = bench.Rng(1 + 10 * causal + band), ""
        for n, (h, kvh, tq, tk) in enumerate(((4, 4, 9, 9), (4, 2, 7, 7), (6, 1, 12, 12), (2, 2, 1, 1), (3, 1, 4, 9), (2, 1, 9, 4))):
            c = model.config(h, 4, tk, 1, 1, **OPS[op], kvh=kvh, causal=causal, band=band)
            keys = np.ones(tk, bool), np.zeros(tk, bool), np.arange(tk) >= tk // 2, np.array([rng.chance(50) for _ in range(tk)])
            for key, reach in zip(keys, ((0, 0), (2, 1), (1, 2 ** 31 - 1), (2 ** 31 - 1, 3))):
                why = why or judged(rng, op, c, tq, tk, key, reach)
                rows, words = rows + tq * h, words + tq * h * 4
        t.case("%s%s%s: ONNX Runtime and mlo run give the model's words" % (op, ", causal" * causal, ", band" * band), why)
    t.note("%d rows, %d words" % (rows, words))


def check_errors():
    q, k = np.zeros((1, 4, 8), np.int8), np.zeros((1, 4, 4), np.int8)
    feed = lambda k, p: {"q": q, "k": k, "v": k, "mask": np.ones((1, 4), bool), "p": np.array(p, np.int32)}
    for what, k_, p, attributes, status, words in (
            ("kv_heads that do not divide heads", k, [1, 1, 1, 1], {"heads": 4, "kv_heads": 3}, 3, b"4 heads, 3 of keys and values"),
            ("kv_heads that the keys have no channels for", q, [1, 1, 1, 1], {"heads": 4, "kv_heads": 2}, 3, b"4 heads, 2 of keys and values"),
            ("a band without its members", k, [1, 1, 1, 1], {"heads": 4, "kv_heads": 2, "band": 1}, 3, b"needs 6"),
            ("a band that begins ahead", k, [1, 1, 1, 1, -1, 0], {"heads": 4, "kv_heads": 2, "band": 1}, 3, b"number of keys back -1"),
            ("a band that ends before", k, [1, 1, 1, 1, 0, -2], {"heads": 4, "kv_heads": 2, "band": 1}, 3, b"number of keys ahead -2")):
        f = feed(k_, p)
        np.savez(t.at("in.npz"), **f)
        r = t.call("run", t.write("kernel.onnx", one_kernel("Attention", f, dict(attributes, lt=2)).SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        t.case(what + ": an error", "" if r.returncode == status and words in r.stderr else "status %d: %s" % (r.returncode, r.stderr.decode()))


# ---- whole cores ----------------------------------------------------------------------------------------------------------------------

class Core:
    """A quantized model of a residual attention: integers of any value, whose loop is a core."""
    def __init__(self, name, op="Attention", layers=2, tokens=32, heads=2, kv=None, d=4, causal=0, reach=(), bias=(), masked=False, rows=0, seed=1):
        rng, kv = np.random.default_rng(seed), kv or heads
        self.name, self.tokens, self.channels, self.masked, self.near = name, tokens, 8, masked, 0.02 if kv != heads else 0.01 if rows else 0
        c = model.config(heads, d, tokens + rows, 1, 1, **OPS[op], kvh=kv, causal=causal, band=int(bool(reach)), bias=bias)
        self.nodes, self.stacks = [], []
        put = lambda op, out, ins, bits, params, **attributes: self.put(op, out, ins, bits, [np.stack(p) for p in params], attributes)
        each = lambda make: [make() for _ in range(layers)]
        ints = lambda *v: np.array(v, np.int32)
        def mvu(out, x, k, n, bits, shift):
            put("MVU", out, [x], bits, [each(lambda: rng.integers(-100, 100, (k, n)).astype(np.int8)), each(lambda: rng.integers(-500, 500, n).astype(np.int32)),
                                        each(lambda: rng.integers(1 << 13, 1 << 15, n).astype(np.int32)), each(lambda: np.full(n, shift, np.int32))])
        put("Requant", "narrow", ["state"], 8, [each(lambda: ints(*[0] * 8)), each(lambda: ints(*[1 << 14] * 8)), each(lambda: ints(*[21] * 8))])
        for x, w in ("q", heads), ("k", kv), ("v", kv): mvu(x, "narrow", 8, w * d, 8, 21)
        draw = bench.Rng(seed)
        p = [ints(*model.pick_params(draw, c, 1, False)[:members(c)], *(reach[i % len(reach)] if reach else ())) for i in range(layers)]
        tables = [[model.pick_bias(draw, c, False).astype(np.int16) for _ in range(layers)]] if bias else []
        beside = [each(lambda: rng.integers(-128, 128, (rows, kv * d)).astype(np.int8)) for _ in "kv"] if rows else []
        kind = {(0, 0): op, (0, 1): op + "Bias", (1, 0): "AttentionPrefix", (1, 1): "AttentionSink"}[bool(rows), bool(bias)]
        put(kind, "mixed", ["q", "k", "v", "mlo_mask"], 8, [p] + tables + beside, **said(c, c["BAND"], causal), **{"prefix": rows} if rows else {})
        mvu("back", "mixed", heads * d, 8, 16, 14)
        put("Add", "next", ["state", "back"], 16, [each(lambda: ints(1 << 13, 1 << 14, 15))])
        self.path = t.at(name + ".onnx")
        self.save(layers)

    def put(self, op, out, inputs, bits, params, attributes):
        names = ["%s_%d" % (out, i) for i in range(len(params))]
        self.stacks += zip(names, params)
        to = TensorProto.INT8 if bits <= 8 else TensorProto.INT16
        self.nodes.append(helper.make_node(op, inputs + names, [out], domain="mlo", to=to, lo=-(1 << (bits - 1)), hi=(1 << (bits - 1)) - 1, **attributes))

    def save(self, layers):
        base, shape, info = functions(), [1, self.tokens, self.channels], helper.make_tensor_value_info
        kind = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
        body = helper.make_graph(self.nodes, "body", [info("state", TensorProto.INT16, shape)] + [info(k, kind(v), v.shape[1:]) for k, v in self.stacks], [info("next", TensorProto.INT16, shape)])
        scan = helper.make_node("Scan", ["x"] + [k + "_stack" for k, _ in self.stacks], ["y"], name="loop", body=body, num_scan_inputs=len(self.stacks))
        inits, ins = [numpy_helper.from_array(v, k + "_stack") for k, v in self.stacks], [info("hidden", TensorProto.FLOAT, shape)]
        # pre: 4096 steps a unit; post: as it is
        inits.append(numpy_helper.from_array(np.array(4096, np.float32), "steps"))
        nodes = [helper.make_node("Mul", ["hidden", "steps"], ["scaled"]), helper.make_node("Cast", ["scaled"], ["x"], to=TensorProto.INT16), scan, helper.make_node("Cast", ["y"], ["out"], to=TensorProto.FLOAT)]
        if self.masked:
            ins.append(info("attention_mask", TensorProto.INT64, [1, self.tokens]))
            nodes.insert(0, helper.make_node("Cast", ["attention_mask"], ["mlo_mask"], to=TensorProto.BOOL))
        else: inits.append(numpy_helper.from_array(np.ones((1, self.tokens), bool), "mlo_mask"))
        known = [info("x", TensorProto.INT16, shape), info("y", TensorProto.INT16, shape), info("mlo_mask", TensorProto.BOOL, [1, self.tokens])]
        graph = helper.make_graph(nodes, "core", ins, [info("out", TensorProto.FLOAT, shape)], inits, value_info=known[:2 + self.masked])
        m = helper.make_model(graph, opset_imports=base.opset_import, functions=base.functions, ir_version=base.ir_version)
        m.metadata_props.add(key="mlo.stage", value="quantize")
        onnx.save(m, self.path)

    def build(self, pe, simd, group=1, *flags):
        to = t.at("%s-%d-%d-%d" % (self.name, pe, simd, group))
        if not os.path.exists(to): t.good("compile", self.path, "--pe", pe, "--simd", simd, "--frames-in-flight", group, *flags, "-o", to)
        return to


def foretold(r, most=2):
    """'' or what the prediction says otherwise: the run's cycles but for `most`, all busy cycles."""
    if abs(r.report["predicted_cycles"] - r.cycles) > most: return "%d cycles, predicted %d" % (r.cycles, r.report["predicted_cycles"])
    return next(("%s busy %d, predicted %d" % (k["name"], k["busy"], k["predicted"]) for k in r.report["kernels"] if k["busy"] != k["predicted"]), "")


def judge(core, pe, simd, group=1, lengths=None):
    """'' or what is wrong with a core's words, with stalls too, or with its prediction."""
    path = core.build(pe, simd, group)
    r = hardware.Run(path)
    # projections of unlike widths are matrices of their own: which beats of a token wait in the fork in front of them is not foretold to the beat; nor is which wait behind rows
    why = r.why() or foretold(r, max(2, core.near * r.cycles))
    if not why: t.note("%s, PE %d, SIMD %d: %d cycles, predicted %d" % (core.name, pe, simd, r.cycles, r.report["predicted_cycles"]))
    seed = core.tokens + pe
    why = why or hardware.Run(path, "--frames", group, "--stall", 30 + 10 * (seed % 5), "--seed", seed, "--axi-latency", 60).why()
    if lengths: why = why or hardware.Run(path, "--frame-tokens", ",".join(map(str, lengths)), "--stall", 20, "--seed", 5).why(sum(lengths))
    return why


def check_cores():
    if not t.have("cores", "iverilog"): return
    cases = [
        (Core("causal-1", tokens=1, causal=1), 1, 2, 1, None),
        (Core("causal-7", tokens=7, causal=1, heads=3), 3, 2, 2, [7, 1, 4, 6]),
        (Core("causal-32", tokens=32, causal=1, masked=True), 4, 4, 2, [5, 32, 1, 17]),
        (Core("causal-33", tokens=33, causal=1, op="AttentionRounded", heads=4, kv=2), 5, 2, 2, [33, 2, 20]),
        (Core("causal-probs", tokens=16, causal=1, op="AttentionProbs", heads=2, kv=1, masked=True), 16, 4, 1, [3, 16]),
        (Core("kv-1", tokens=9, heads=4, kv=1), 2, 4, 1, [9, 3]),
        (Core("kv-2", tokens=9, heads=4, kv=2, masked=True), 4, 1, 2, [9, 3, 1]),
        (Core("band", tokens=18, layers=3, reach=((2, 1), (0, 0), (17, 40))), 4, 2, 2, [18, 2, 9]),
        (Core("band-probs", tokens=11, layers=4, reach=((1, 3), (5, 0)), op="AttentionProbs", masked=True), 3, 4, 1, [11, 1]),
        (Core("cap", tokens=19, layers=3, op="AttentionCap", masked=True), 4, 2, 2, [19, 1, 8]),
        (Core("cap-causal", tokens=16, op="AttentionCap", causal=1, heads=4, kv=1), 16, 4, 1, [16, 5]),
        (Core("cap-band", tokens=12, layers=3, op="AttentionCap", reach=((2, 0), (11, 0)), causal=1, masked=True), 1, 1, 1, [12, 3]),
        (Core("band-causal", tokens=20, layers=3, reach=((3, 0), (30, 0)), causal=1, heads=4, kv=2, masked=True), 2, 4, 2, [20, 1, 7]),
    ]
    for core, *how in t.drawn(cases, 2, name=lambda case: case[0].name): t.case("core %s: words, stalls, short frames, cycles" % core.name, judge(core, *how))


def check_half():
    if not t.have("half", "iverilog"): return
    busy = []
    for causal in 0, 1:
        core = Core("half-%d" % causal, tokens=64, layers=1, heads=1, d=8, causal=causal)
        r = hardware.Run(core.build(4, 1))
        why = r.why() or foretold(r)
        kernel = next((k for k in r.report.get("kernels", []) if k["op"] == "Attention"), {"busy": 0, "macs": 0})
        busy.append((kernel["busy"], r.cycles, kernel["macs"], why))
    (square, a, macs, why), (half, b, fewer, why2) = busy
    t.note("64 tokens: busy %d of the square's %d cycles; the core takes %s and %s" % (half, square, b, a))
    t.case("64 tokens: a causal attention is busy at most 0.55 of the square's cycles", why or why2 or ("" if 0.5 * square < half <= 0.55 * square else "%d of %d" % (half, square)))
    t.case("its useful multiplications are those of half the square and its diagonal", "" if fewer * 2 * 64 == macs * 65 else "%d of %d" % (fewer, macs))


def check_before():
    """In ONNX Runtime and in hardware, through all layers."""
    if not t.have("before", "iverilog"): return
    core = Core("before", tokens=12, layers=3, heads=4, kv=2, causal=1)
    path, rng = core.build(3, 2), np.random.default_rng(2)
    x = rng.integers(-9000, 9000, (1, 12, 8)).astype(np.int16)
    seen = []
    for at in (12, 7, 1):
        y = x.copy()
        y[0, at:] = rng.integers(-9000, 9000, y[0, at:].shape)
        np.savez(t.at("before.npz"), hidden=y.astype(np.float32) / 4096)
        r = hardware.Run(path, "--inputs", t.at("before.npz"), "--stall", "30", "--seed", str(at))
        frames = hardware.frames(path, "sim/golden.hex", *(json.loads(t.read(os.path.join(path, "manifest.json")))["stream"][k] for k in ("lanes", "bits")))
        seen.append((at, r.why(), frames[0].reshape(12, 8) if frames else None))
    why = next((w for _, w, _ in seen if w), "")
    for at, _, words in seen[1:]:
        if not why and not np.array_equal(words[:at], seen[0][2][:at]): why = "what token %d is changes words before" % at
        if not why and np.array_equal(words[at:], seen[0][2][at:]): why = "token %d changes nothing" % at
    t.case("in a causal core later tokens change no word before", why)


def check_blind():
    if not t.have("blind", "iverilog"): return
    rng = np.random.default_rng(4)
    masks = np.array([[0, 0, 0, 1, 0, 1, 1, 0, 1, 1], [0] * 10, [0] * 9 + [1]])
    for name, how in ("causal", dict(causal=1, heads=4, kv=2)), ("band", dict(reach=((1, 1), (2, 0)), op="AttentionRounded")):
        core = Core("blind-" + name, tokens=10, masked=True, **how)
        path = core.build(3, 2)
        np.savez(t.at("blind.npz"), hidden=rng.normal(0, 2, (3, 10, 8)).astype(np.float32), attention_mask=masks)
        r = hardware.Run(path, "--inputs", t.at("blind.npz"), "--stall", "20", "--seed", "8")
        t.case("rows of which no key counts, %s" % name, r.why() or ("" if r.frames == 3 else "%s frames" % r.frames))


def check_budgets():
    """Rows of causal attention are of unlike length. A budget makes the last ones fast enough, too: two frames in flight keep all matrices at work."""
    d = Decoder(random.Random(5))
    d.layers, d.hidden, d.heads, d.kv, d.head, d.tokens, d.inner, d.norm, d.act, d.turning = 2, 32, 2, 1, 16, 24, 64, "pre", "Silu", 16
    d.gated, d.rms, d.biased, d.neighbours, d.qk, d.sees, d.biases, d.mask = True, True, False, False, None, "causal", None, False
    path, out = t.write("budget.onnx", d.model().SerializeToString()), t.at("budget")
    for budget in 64, 112:
        t.good("compile", path, "--budget-macs", budget, "--frames-in-flight", 2, "-o", out)
        with open(os.path.join(out, "manifest.json")) as f: m = json.load(f)
        bound = m["iterations"] * m["tokens"] * max(k["interval"] for k in m["kernels"])
        t.case("%d multipliers of %d: an interval of %d, %.3f of the bound" % (m["multipliers"], budget, m["predicted_interval"], m["predicted_interval"] / bound), "" if m["predicted_interval"] <= 1.001 * bound else str(m["predicted_interval"]))
    if not t.have("budgets", "iverilog"): return
    r = json.loads(t.good("sim", out, "--frames", 6, "--simulator", "icarus", timeout=600))
    interval = (r["frame_done"][-1] - r["frame_done"][1]) / 4
    t.case("simulated: %.1f cycles a frame, %.3f of the bound" % (interval, interval / bound), "" if r["pass"] and interval <= 1.02 * bound else str(r["frame_done"]))


if __name__ == "__main__":
    t.main(check_kernels, check_errors, check_cores, check_half, check_before, check_blind, check_budgets, floor=35)
