#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Overflow cannot happen: every kernel with the worst weights, inputs and parameters there are.

    python tests/test_interval.py path/to/mlo [NAME ...]

The judge is Python, whose integers do not overflow: it computes every intermediate as the kernels' essays define them.
    words     ONNX Runtime and mlo run give the judge's words; what it saw on the way lies in the intervals of intermediates.json, and comes within 1 %
              of both ends where an interval is said to be tight
    hardware  the emitted core gives the words of mlo run in Icarus; its registers are as wide as intermediates.json says
    mutants   a register one bit narrower than its interval asks for gives other words: the attacks are attacks
    ends      the arithmetic of intervals itself, to the ends of int64 (interval_driver.c)"""
import itertools
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import harness as t
from graphs import execute

SIZES, BITS = (1, 7, 64, 255, 3072), (8, 10, 12, 16)
BIAS = (-2 ** 31, 2 ** 31 - 1, 0)
TOKENS = 8                                              # of a frame: so many inputs at once
HEADS = {8: (1, 7, 64, 255), 16: (1, 512)}              # channels of a head, by the bits of q, k and v
WINDOW = {"width": 4, "top": 0, "left": 1}                # of 2 x 3 over two rows of a frame: it lies within the grid at tokens 1 and 2
FRAMES = 1, 8, 384                                       # channels of a norm over a frame, which has TOKENS times as many numbers
ATTENTIONS = {"Attention": 4, "AttentionCap": 6, "AttentionProbs": 7, "AttentionRounded": 10}     # and their parameters


def sizes_of(op, bits):
    """A loop has 96 kernels at most."""
    return {("AttentionCap", 8): (64,), ("AttentionProbs", 8): (1, 64, 255)}.get((op, bits), HEADS[bits])


def low(bits): return -(1 << (bits - 1))
def high(bits): return (1 << (bits - 1)) - 1
def dtype(bits): return np.int8 if bits <= 8 else np.int16
def onnx_type(a): return helper.np_dtype_to_tensor_dtype(np.dtype(a))
def ints(values): return np.array(values, np.int32)


# ---- one kernel, in ONNX Runtime and in mlo ------------------------------------------------------------------------------------------

def functions():
    """A model with the kernels' functions as mlo writes them."""
    path = t.at("functions.onnx")
    if not os.path.exists(path): t.good("quantize", t.model("bert-1"), "--onnx", "-o", path)
    return onnx.load(path)


def run(op, feed, bits, clip=None, change=None, **attributes):
    """What ONNX Runtime and mlo run make of one kernel. change: what is done to its function before."""
    base, to = functions(), onnx_type(dtype(bits))
    node = helper.make_node(op, list(feed), ["y"], domain="mlo", to=to, lo=low(clip or bits), hi=high(clip or bits), **attributes)
    graph = helper.make_graph([node], op, [helper.make_tensor_value_info(k, onnx_type(v.dtype), v.shape) for k, v in feed.items()], [helper.make_tensor_value_info("y", to, None)])
    model = helper.make_model(graph, opset_imports=base.opset_import, functions=[f for f in base.functions if f.name == op], ir_version=base.ir_version)
    if change: change(model.functions[0])
    want = execute(model, feed)[0]
    if change: return {"ONNX Runtime": want}
    np.savez(t.at("in.npz"), **feed)
    t.good("run", t.write("kernel.onnx", model.SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    with np.load(t.at("out.npz")) as z: return {"ONNX Runtime": want, "mlo run": z["y"]}


def differ(results, want):
    want = np.array(want)
    return next(("%s: %d of %d words, the first at %s" % (who, (y.reshape(want.shape) != want).sum(), want.size, np.argwhere(y.reshape(want.shape) != want)[0])
                 for who, y in results.items() if not np.array_equal(y.reshape(want.shape), want)), "")


# ---- the judge -----------------------------------------------------------------------------------------------------------------------

class Seen(dict):
    """name -> lowest and highest value of an intermediate."""
    def __call__(self, name, *values):
        for v in values:
            a, b = self.get(name, (v, v))
            self[name] = min(a, v), max(b, v)
        return values[0]

    def wrong(self, claims):
        """'' or what lies outside of its interval, or does not come within 1 % of an end of a tight one."""
        if len(claims) >= 24: return "%d intermediates, more may have found no room" % len(claims)
        for c in claims:
            lo, hi = int(c["lo"]), int(c["hi"])
            if c["name"] not in self: return "'%s' is in the manifest, the judge does not know it" % c["name"]
            a, b = self[c["name"]]
            if a < lo or b > hi: return "%s: seen %d..%d, said to be %d..%d" % (c["name"], a, b, lo, hi)
            if c["tight"] and (lo < 0 and 100 * a > 99 * lo or hi > 0 and 100 * b < 99 * hi): return "%s: said to be %d..%d and tight, seen %d..%d only" % (c["name"], lo, hi, a, b)
        return ""


def clip(x, bits): return max(low(bits), min(high(bits), x))


def requantize(seen, acc, m, s, bits, name="acc * M"):
    half = seen(name, acc * m) + (1 << (s - 1))
    seen("acc * M + 2^(S-1)", half)
    seen("whole steps", half >> s << s)
    return clip(half >> s, bits)


def patterns(n, bits):
    """Vectors that reach what n numbers of so many bits can do."""
    lo, hi = low(bits), high(bits)
    return [[lo] * n, [hi] * n, [lo if i % 2 else hi for i in range(n)], [lo] + [hi] * (n - 1), [hi] + [lo] * (n - 1), [lo] + [0] * (n - 1), [hi] + [0] * (n - 1), [0] * n]


def mvu_columns(k, xbits, ybits):
    """Weights, bias, multiplier, shift of each column: extremes, with each other; a shift where nothing is clipped; a bias that cancels a sum, so that its
    last bits show. 16 columns share their weights."""
    middle = max(1, (k * (1 << (xbits + 6)) + (1 << 31)).bit_length() + 16 - ybits)
    weights = [[-128] * k, [127] * k, [-127] * k, [-128 if i % 2 else 127 for i in range(k)], [127 if i % 2 else -128 for i in range(k)]]
    return [(w, b, m, s) for w in weights for b in (*BIAS, clip(-high(xbits) * sum(w), 32)) for m, s in ((32767, 1), (32767, 62), (1, 1), (32767, middle))]


def mvu(x, columns, bits, simd, seen):
    y, sums = [], {}
    for n, row in enumerate(x):
        for w, *_ in columns[::16]:
            products = [a * b for a, b in zip(row, w)]
            seen("x W", min(products), max(products))
            for i in range(0, len(row), simd): seen("SIMD products", sum(products[i:i + simd]))
            sums[n, tuple(w)] = seen("K products", sum(products))
        y.append([requantize(seen, seen("acc", sums[n, tuple(w)] + bias), m, s, bits) for w, bias, m, s in columns])
    return y


def mvu_feed(x, columns, bits):
    return {"x": np.array([x], dtype(bits)), "w": np.array([c[0] for c in columns], np.int8).T.copy(), "bias": ints([c[1] for c in columns]), "mult": ints([c[2] for c in columns]), "shift": ints([c[3] for c in columns])}


def norm(x, g, b, eps, sh, center, bits, seen):
    c, y = len(x), []
    total, squares = seen("sum x", sum(x)), seen("sum x^2", sum(v * v for v in x))
    if not center: total = 0
    seen("|sum x|", abs(total))
    seen("(sum x)^2", total * total)
    seen("C sum x^2 + EPS", seen("C sum x^2", c * squares) + eps)
    v = seen("V", c * squares - total * total + eps)
    k = 0
    while v < 1 << 60: v, k = v * 4, k + 1
    seen("V 4^k", v)
    root = int(np.sqrt(float(v >> 30)))                 # exact: below 2^32
    assert root * root <= v >> 30 < (root + 1) ** 2
    r = seen("R", 2 ** 31 // root)
    seen("C R", c * r)
    seen("-(sum x) R + half", (1 << (31 - k)) - total * r)
    known = {}
    for e, gain, offset in zip(x, g, b):
        if (e, gain, offset) not in known:
            u = seen("u", seen("C x", c * e) - total)
            ur = seen("u R + half", u * r + (1 << (31 - k)))
            n = seen("n", ur >> (32 - k))
            seen("whole n", ur >> (32 - k) << (32 - k))
            acc = seen("n G + B", seen("n G", n * gain) + offset)
            seen("whole steps", acc >> sh << sh)
            known[e, gain, offset] = clip(acc >> sh, bits)
        y.append(known[e, gain, offset])
    return y


def trunc(a, by): return abs(a) // by * (1 if a >= 0 else -1)


def exact(x, w, b, sh, center, bits, seen):
    total, c = seen("sum x", sum(x)) if center else 0, len(x)
    seen("sum x^2", sum(v * v for v in x))
    mean = trunc(total, c)
    far = [seen("x - mean", v - mean) for v in x]
    s = seen("s", seen("sum (x - mean)^2", sum(v * v for v in far)) // c + 1)
    r, y = seen("r", math.isqrt(s)), []
    for v, g, o in zip(far, w, b):
        p = seen("(x - mean) w", v * g)
        more = seen("(x - mean) w + r - 1", p + (r - 1 if v * g < 0 else 0))
        k = seen("(x - mean) w + b r + r - 1", more + o * r) >> sh
        seen("k + r 2^(Y-1)", k + r * 2 ** (bits - 1))
        acc = seen("(x - mean) w / r + b", trunc(p, r) + o)
        seen("whole steps", acc >> sh << sh)
        y.append(clip(acc >> sh, bits))
    return y


ROM = [int(65280 * 2.0 ** (-f / 64) + 0.5) for f in range(64)]
FINE = [int(262143 * 2.0 ** (-f / 64) + 0.5) for f in range(65)]
TANH = [int(65535 * np.tanh(f / 32) + 0.5) for f in range(257)]
NEVER = -2 ** 40


def coarse(x):
    x = min(4095, x)
    return (ROM[x & 63] + (1 << (7 + (x >> 6)))) >> (8 + (x >> 6))


def fine(x):
    x = min(2 ** 17 - 1, x)
    i, f, g = x >> 12, x >> 6 & 63, x & 63
    a = FINE[f] - (((FINE[f] - FINE[f + 1]) * g + 32) >> 6)
    return (2 * a + (1 << i)) >> (i + 1)


def dots(q, keys, simd, seen):
    """The scores of a row."""
    scores = []
    for key in keys:
        products = [a * b for a, b in zip(q, key)]
        for i in range(0, len(q), simd): seen("SIMD products", sum(products[i:i + simd]))
        scores.append(seen("s", sum(products)))
    return scores


def in_steps(s, m, sh, zero, seen):
    """A score as the source rounds it."""
    scaled = seen("s * MR + 2^(SR-1)", seen("s * MR", s * m) + (1 << (sh - 1)))
    seen("whole steps of s", scaled >> sh << sh)
    return seen("r", clip((scaled >> sh) + zero, 8))


def under_cap(s, m, sh, seen):
    """65535 tanh of a score over its cap."""
    scaled = seen("s * MC + 2^(SC-1)", seen("s * MC", s * m) + (1 << (sh - 1)))
    seen("whole steps of s", scaled >> sh << sh)
    u = min(65535, max(-65535, scaled >> sh))
    f, g = abs(u) >> 8, abs(u) & 255
    y = TANH[f] + ((TANH[min(f + 1, 256)] - TANH[f]) * g + 128 >> 8)
    return seen("c", y if u > 0 else -y)


def weights(scores, mask, ms, ss, exp2, seen):
    """e of a row. No key counts: all do, and are equal."""
    counts, known = list(mask) if any(mask) else [True] * len(mask), {}
    largest = max(s for s, c in zip(scores, counts) if c) if any(mask) else 0
    for s, c in set(zip(scores, counts)):
        distance = seen("mx - s", largest - (s if any(mask) else 0)) if c else seen("mx - never", largest - NEVER)
        if c: seen("(mx - s) * MS", distance * ms)
        x = seen("(mx - s) * MS + 2^(SS-1)", distance * ms + (1 << (ss - 1))) >> ss
        known[s, c] = seen("e", exp2(x) if c else 0)
    return [known[x] for x in zip(scores, counts)]


def mix(w, values, m, s, pe, bits, seen):
    y = []
    for column in zip(*values):
        products = [e * v for e, v in zip(w, column)]
        for i in range(0, len(products), pe): seen("PE products", sum(products[i:i + pe]))
        y.append(requantize(seen, seen("sum e v", sum(products)), m, s, bits))
    return y


def attention(op, q, keys, values, mask, p, lt, simd, pe, bits, seen):
    """One row of one head."""
    scores = dots(q, keys, simd, seen)
    if op in ("Attention", "AttentionCap"):
        ms, ss, mo, so = p[:4]
        if op == "AttentionCap": scores = [under_cap(s, *p[4:], seen) for s in scores]
        e = weights(scores, mask, ms, ss, coarse, seen)
        r = seen("R", seen("MO * 2^(LT+8)", mo << (lt + 8)) // seen("sum e", sum(e)))
        return mix(e, values, r, so, pe, bits, seen)
    ms, ss, mo, so, mp, sp, hp = p[:7]
    if op == "AttentionRounded": scores = [in_steps(s, *p[7:], seen) for s in scores]
    e = weights(scores, mask, ms, ss, fine, seen)
    r = seen("R", seen("MP * 2^(LT+18)", mp << (lt + 18)) // seen("sum e", sum(e)))
    w = [min(hp, seen("e * R + 2^(SP-1)", seen("e * R", x * r) + (1 << (sp - 1))) >> sp) for x in e]
    return mix(w, values, mo, so, pe, bits, seen)


# ---- what intermediates.json says -----------------------------------------------------------------------------------------------------------------

class Loop:
    """A quantized model, written by hand: kernels of any size and width in a loop of one iteration over a state of TOKENS x 8 of int16. What it computes
    does not matter: its intermediates.json says what the numbers inside of kernels can be, its top has the parameters of their modules."""
    def __init__(self):
        self.nodes, self.stacks, self.last = [], [], "state"
        self.base = functions()

    def put(self, op, name, inputs, bits, attributes={}, **params):
        for k, v in params.items(): self.stacks.append((name + "_" + k, np.asarray(v)))
        n = helper.make_node(op, inputs + [name + "_" + k for k in params], [name], domain="mlo", to=onnx_type(dtype(bits)), lo=low(bits), hi=high(bits), **attributes)
        n.metadata_props.append(onnx.StringStringEntryProto(key="mlo.bits", value=str(bits)))
        self.nodes.append(n)
        return name

    def linear(self, name, x, k, n, bits): return self.put("MVU", name, [x], bits, w=np.zeros((k, n), np.int8), bias=ints([0] * n), mult=ints([1] * n), shift=ints([1] * n))
    def stream(self, name, channels, bits): return self.linear(name, self.narrow, 8, channels, bits)
    def use(self, name, channels): self.last = self.put("Add", name + "_sum", [self.last, self.linear(name + "_back", name, channels, 8, 16)], 16, p=ints([1, 1, 1]))

    def kernels(self, bits):
        """Every kernel on streams of so many bits."""
        self.narrow = self.put("Requant", "narrow", ["state"], 8, bias=ints([0] * 8), mult=ints([1] * 8), shift=ints([1] * 8))
        for k in SIZES:
            self.use(self.linear("MVU %d" % k, self.stream("x%d" % k, k, bits), k, 8, 16), 8)
            for center in (1, 0): self.use(self.put("LayerNorm", "LayerNorm %d %d" % (k, center), ["x%d" % k], 16, {"center": center}, g=ints([1] * k), b=ints([0] * k), p=np.array([1, 0], np.int64)), k)
        self.use(self.put("Requant", "Requant", ["x7"], 16, bias=ints([0] * 7), mult=ints([1] * 7), shift=ints([1] * 7)), 7)
        self.use(self.put("Add", "Add", ["x7", self.stream("y7", 7, bits)], 16, p=ints([1, 1, 1])), 7)
        self.use(self.put("Mul", "Mul", ["x7", "y7"], 16, p=ints([1, 1])), 7)
        self.use(self.put("Rotary", "Rotary", ["x64"], 16, {"heads": 16}, table=np.zeros((TOKENS, 4), np.int16), p=ints([1, 1])), 64)
        for d in HEADS.get(bits, ()):
            q, k, v = (self.stream("%s%d" % (x, d), d, bits) for x in "qkv")
            for op, n in ((op, n) for op, n in ATTENTIONS.items() if d in sizes_of(op, bits)): q = self.put(op, "%s %d" % (op, d), [q, k, v, "mlo_mask"], bits, {"heads": 1, "lt": 3}, p=ints([1] * n))
            self.use(q, d)

    def window(self, bits):
        """A Conv, in a core of its own: one has room for 96 kernels."""
        self.narrow = self.put("Requant", "narrow", ["state"], 8, bias=ints([0] * 8), mult=ints([1] * 8), shift=ints([1] * 8))
        self.use(self.put("Conv", "Conv", [self.stream("x7", 7, bits)], 16, WINDOW, w=np.zeros((7, 2, 3), np.int8), bias=ints([0] * 7), mult=ints([1] * 7), shift=ints([1] * 7)), 7)

    def frames(self, bits):
        """Norms over frames, in a core of their own."""
        self.narrow = self.put("Requant", "narrow", ["state"], 8, bias=ints([0] * 8), mult=ints([1] * 8), shift=ints([1] * 8))
        for k in FRAMES:
            x = self.stream("x%d" % k, k, bits)
            for center in (1, 0): self.use(self.put("FrameNorm", "FrameNorm %d %d" % (k, center), [x], 16, {"center": center}, g=ints([1] * k), b=ints([0] * k), p=np.array([1, 0], np.int64)), k)
            for center in (1, 0): self.use(self.put("ExactNorm", "ExactNorm %d %d" % (k, center), [x], 16, {"center": center}, w=ints([1] * k), b=ints([0] * (k if center else 1)), p=ints([0])), k)

    def save(self, path):
        shape, info = [1, TOKENS, 8], helper.make_tensor_value_info
        body = helper.make_graph(self.nodes, "body", [info("state", TensorProto.INT16, shape)] + [info(k, onnx_type(v.dtype), v.shape) for k, v in self.stacks], [info(self.last, TensorProto.INT16, shape)])
        scan = helper.make_node("Scan", ["x"] + [k + "_stack" for k, _ in self.stacks], ["y"], name="loop", body=body, num_scan_inputs=len(self.stacks))
        inits = [numpy_helper.from_array(v[None], k + "_stack") for k, v in self.stacks] + [numpy_helper.from_array(np.ones((1, TOKENS), bool), "mlo_mask")]
        graph = helper.make_graph([scan], "kernels", [info("x", TensorProto.INT16, shape)], [info("y", TensorProto.INT16, shape)], inits)
        m = helper.make_model(graph, opset_imports=self.base.opset_import, functions=self.base.functions, ir_version=self.base.ir_version)
        m.metadata_props.append(onnx.StringStringEntryProto(key="mlo.stage", value="quantize"))
        onnx.save(m, path)
        return path


def build(bits, what="kernels"):
    path = t.at("build-%s-%d" % (what, bits))
    if not os.path.exists(path):
        loop = Loop()
        getattr(loop, what)(bits)
        t.good("compile", loop.save(t.at("%s-%d.onnx" % (what, bits))), "--pe", 4, "--simd", 4, "-o", path)
    return path


def kernel(name, bits):
    """What the build says of a kernel and the numbers in it, and the parameters of its module in the emitted core."""
    d = build(bits, {"Conv": "window", "FrameNorm": "frames", "ExactNorm": "frames"}.get(name.split()[0], "kernels"))
    k = next(k for k in json.loads(t.read(os.path.join(d, "manifest.json")))["kernels"] if k["value"] == name)
    k.update(next(i for i in json.loads(t.read(os.path.join(d, "intermediates.json")))["kernels"] if i["name"] == k["name"]))
    line = re.search(r"%s #\(([^;]*?)\) u_%s \(" % (k["module"], k["name"]), t.read(os.path.join(d, "rtl/mlo_core.v")).decode(), re.S)
    return k, {n: int(v) for n, v in re.findall(r"\.(\w+)\((\d+)\)", line[1])}


# ---- attacks: feeds of a kernel, and what the judge makes of them -----------------------------------------------------------------------------

class Attack:
    """feed, attributes: of the ONNX node; y: the judge's words; p: parameters of the module."""
    def __init__(self, op, name, bits, out, seen):
        self.op, self.bits, self.out, self.seen = op, bits, out, seen
        self.claim, self.p = kernel(name, bits)
        self.attributes, self.clip = {}, None

    def words(self):
        """ONNX Runtime and mlo run."""
        return differ(run(self.op, self.feed, self.out, self.clip, **self.attributes), self.y)


def attack_mvu(k, bits, seen):
    a = Attack("MVU", "MVU %d" % k, bits, 16, seen)
    x, columns = patterns(k, bits), mvu_columns(k, bits, 16)
    a.feed, a.y = mvu_feed(x, columns, bits), mvu(x, columns, 16, a.p["SIMD"], seen)
    return [a]


def attack_conv(k, bits, seen):
    """A channel for each pattern under the window of token 1, each with the weights, bias and scales of a column."""
    a = Attack("Conv", "Conv", bits, 16, seen)
    each = [(p, *c) for p in patterns(6, bits) for c in mvu_columns(6, bits, 16)]
    x, y = np.zeros((TOKENS, len(each)), int), np.zeros((TOKENS, len(each)), int)
    for n, (p, w, b, m, s) in enumerate(each):
        x[[0, 1, 2, 4, 5, 6], n] = p
        for i in range(TOKENS):
            rows = [[int(x[r * 4 + c, n]) if r < 2 and 0 <= c < 4 else 0 for c in range(i % 4 - 1, i % 4 + 2)] for r in (i // 4, i // 4 + 1)]
            products = [[u * v for u, v in zip(row, w[3 * r:])] for r, row in enumerate(rows)]
            for row in products:
                seen("x w", *row)
                for at in range(0, 3, a.p["SIMD"]): seen("SIMD products", sum(row[at:at + a.p["SIMD"]]))
            y[i, n] = requantize(seen, seen("acc", seen("all products", sum(map(sum, products))) + b), m, s, 16)
    c = [ints([e[k] for e in each]) for k in (2, 3, 4)]
    a.feed, a.y = {"x": x[None].astype(dtype(bits)), "w": np.array([e[1] for e in each], np.int8).reshape(-1, 2, 3), "bias": c[0], "mult": c[1], "shift": c[2]}, y.tolist()
    a.attributes = WINDOW
    return [a]


def attack_table(k, bits, seen):
    a = attack_mvu(k, bits, seen)[0]
    a.op, a.out = "MVUTable", 8
    x, columns, table = patterns(k, bits), mvu_columns(k, bits, 10), np.random.default_rng(1).integers(-128, 128, 1024).astype(np.int8)
    a.feed, a.clip = dict(mvu_feed(x, columns, bits), table=table), 10
    a.y = [[int(table[v + 512]) for v in row] for row in mvu(x, columns, 10, a.p["SIMD"], Seen())]
    return [a]


def attack_norm(k, bits, seen, center=1, tokens=1):
    """Of a token's k channels, or of a frame of so many tokens: their k numbers."""
    attacks, x, channels = [], patterns(k, bits), k // tokens
    spread = (k - 1) * ((1 << bits) - 1) ** 2 if center else k * low(bits) ** 2
    even = 4 ** ((spread.bit_length() + 1) // 2) - spread                   # makes V of one channel far out a power of 4, so that R is largest
    for eps, sh in (1, 0), (2 ** 47, 40), (4 ** 23 - 1, 20), (4 ** 23, 12), (max(1, even), 14):
        for flip in (0, 1, 2):
            op = "LayerNorm" if tokens == 1 else "FrameNorm"
            a = Attack(op, "%s %d %d" % (op, channels, center), bits, 16, seen)
            g, b = [-32768 if i // 2 % 2 == flip else 32767 for i in range(channels)], [0 if flip == 2 else BIAS[(i // 4 + flip) % 2] for i in range(channels)]
            if flip == 2: sh = 14 + (k.bit_length() + 1) // 2               # nothing is clipped
            rows = np.array(x, dtype(bits)).reshape((1, len(x), k) if tokens == 1 else (len(x), tokens, channels))
            a.feed, a.attributes = {"x": rows, "g": ints(g), "b": ints(b), "p": np.array([eps, sh], np.int64)}, {"center": center}
            a.y = [norm(row, g * tokens, b * tokens, eps, sh, center, 16, seen) for row in x]
            if tokens > 1: a.y = np.array(a.y).reshape(rows.shape).tolist()
            attacks.append(a)
    return attacks


def attack_exact(k, bits, seen, center=1):
    attacks, x = [], patterns(k, bits)
    for sh, flip in itertools.product((0, 12, 31), (0, 1, 2)):
        a = Attack("ExactNorm", "ExactNorm %d %d" % (k, center), bits, 16, seen)
        w = [-2 ** 31 if i // 2 % 2 == flip else 2 ** 31 - 1 for i in range(k)]
        b = [0 if flip == 2 else (-2 ** 31, 2 ** 31 - 1)[(i // 4 + flip) % 2] for i in range(k)] if center else [0]
        a.feed, a.attributes = {"x": np.array([x], dtype(bits)), "w": ints(w), "b": ints(b), "p": ints([sh])}, {"center": center}
        a.y = [exact(row, w, b if center else [0] * k, sh, center, 16, seen) for row in x]
        attacks.append(a)
    return attacks


def attack_rms(k, bits, seen): return attack_norm(k, bits, seen, 0)
def attack_frame(k, bits, seen, center=1): return attack_norm(k * TOKENS, bits, seen, center, TOKENS)


def attack_requant(k, bits, seen):
    attacks, x = [], patterns(k, bits)
    for bias in (low(bits), high(bits)):
        for m, s in (32767, 1), (32767, 62), (32767, bits), (0, 30):
            a = Attack("Requant", "Requant", bits, 16, seen)
            a.feed = {"x": np.array([x], dtype(bits)), "bias": ints([bias] * k), "mult": ints([m] * k), "shift": ints([s] * k)}
            a.y = [[requantize(seen, seen("acc", v + bias), m, s, 16) for v in row] for row in x]
            attacks.append(a)
    return attacks


def attack_requant_table(k, bits, seen):
    attacks, table = attack_requant(k, bits, seen), np.random.default_rng(2).integers(-128, 128, 1024).astype(np.int8)
    for a in attacks:
        a.op, a.out, a.clip = "RequantTable", 8, 10
        x, bias, m, s = a.feed["x"][0].tolist(), *(int(a.feed[p][0]) for p in ("bias", "mult", "shift"))
        a.feed = dict(a.feed, table=table)
        a.y = [[int(table[requantize(Seen(), v + bias, m, s, 10) + 512]) for v in row] for row in x]
    return attacks


def attack_add(k, bits, seen):
    attacks, x = [], patterns(k, bits)
    for y in x, x[1:] + x[:1], x[::-1]:
        for ma, mb, s in (32767, 32767, 1), (32767, 32767, 62), (32767, 32767, bits), (0, 32767, 15), (32767, 0, bits):
            a = Attack("Add", "Add", bits, 16, seen)
            a.feed = {"a": np.array([x], dtype(bits)), "b": np.array([y], dtype(bits)), "p": ints([ma, mb, s])}
            a.y = [[requantize(seen, seen("a * MA", u * ma) + seen("b * MB", v * mb), 1, s, 16) for u, v in zip(*rows)] for rows in zip(x, y)]
            attacks.append(a)
    return attacks


def attack_mul(k, bits, seen):
    attacks, x = [], patterns(k, bits)
    for y in x, x[1:] + x[:1], x[::-1]:
        for m, s in (32767, 1), (32767, 62), (32767, 2 * bits), (0, 30), (1, bits):
            a = Attack("Mul", "Mul", bits, 16, seen)
            a.feed = {"a": np.array([x], dtype(bits)), "b": np.array([y], dtype(bits)), "p": ints([m, s])}
            a.y = [[requantize(seen, seen("acc", u * v), m, s, 16) for u, v in zip(*rows)] for rows in zip(x, y)]
            attacks.append(a)
    return attacks


def attack_rotary(k, bits, seen):
    attacks, x, ends = [], patterns(k, bits), (low(16), high(16))
    for c, n in (*itertools.product(ends, ends), (1 << 14, 0)):
        for m, s in (32767, 1), (32767, 62), (32767, bits + 15), (0, 30):
            a = Attack("Rotary", "Rotary", bits, 16, seen)
            a.feed, a.attributes = {"x": np.array([x], dtype(bits)), "table": np.array([[c, n, n, c]] * TOKENS, np.int16), "p": ints([m, s])}, {"heads": k // 4}
            a.y = [[y for i in range(0, k, 2) for y in turned(row[i], row[i + 1], *((c, n) if i % 4 == 0 else (n, c)), m, s, seen)] for row in x]
            attacks.append(a)
    return attacks


def turned(a, b, c, n, m, s, seen):
    for v in a * c, b * n, a * n, b * c: seen("a cos", v)
    return [requantize(seen, acc, m, s, 16) for acc in (seen("a cos - b sin", a * c - b * n), seen("a sin + b cos", a * n + b * c))]


def scaled(m, shift):
    """m 2^-shift, with a shift of 40 at most."""
    return m >> max(0, shift - 40), min(40, shift)


def constants(op, d, bits):
    """Parameters of an attention: extremes, then some whose weights and results are neither all nor nothing, so that they tell what became of scores and sums."""
    far = (d << 2 * bits).bit_length()                  # bits of a distance, and one
    if op == "Attention": return (32767, 1, 32767, 62), (32767, 40, 32767, 24), (1, 1, 0, 20), (0, 1, 32767, 26), (*scaled(32767, far + 2), 32767, 26)
    if op == "AttentionCap":
        steps = (32767, 1), (32767, 40), (1, 1), (0, 40), scaled(32767, far - 3)
        return [p + s for p, s in zip([(32767, 1, 32767, 62), (32767, 40, 32767, 24), (1, 1, 0, 20), (0, 1, 32767, 26), (32767, 22, 32767, 26)], steps)]
    probs, extremes = (32767, 23, 32767, 28, 255), [(32767, 1, 32767, 23, 32767, 1, 255), (32767, 40, 32767, 22, 32767, 28, 20), (1, 1, 0, 62, 0, 62, 0), (0, 1, 32767, 1, 32767, 1, 255)]
    if op == "AttentionProbs": return extremes + [(*scaled(32767, far - 2), *probs)]
    steps = (262143, 1, 127), (262143, 40, -128), (0, 40, -128), (262143, 1, 0)
    return [p + r for p, r in zip(extremes, steps)] + [(32767, 7, *probs, *scaled(262143, far + 8), zero) for zero in (-128, 127)]


def attack_attention(d, bits, seen, op="Attention"):
    attacks, x, masks = [], patterns(d, bits), ([True] * TOKENS, [True, False] * (TOKENS // 2), [False] * TOKENS)
    keys = x, [x[0]] * TOKENS, [x[0]] + [x[1]] * (TOKENS - 1)               # all kinds, all equal and largest, one far above (or below) the others
    values = [x[0]] * TOKENS, [x[1]] * TOKENS, np.random.default_rng(d).choice([low(bits), high(bits)], (TOKENS, d)).tolist()
    for p in constants(op, d, bits):
        for i, j in np.ndindex(3, 3):                   # any two of mask, keys and values meet; where all keys count and differ, values do, too
            mask, k, v = masks[i], keys[j], values[(i + j + 2) % 3]
            a = Attack(op, "%s %d" % (op, d), bits, bits, seen)
            a.feed = {"q": np.array([x], dtype(bits)), "k": np.array([k], dtype(bits)), "v": np.array([v], dtype(bits)), "mask": np.array([mask]), "p": ints(p)}
            a.attributes = {"heads": 1, "lt": 3}
            a.y = [attention(op, q, k, v, mask, p, 3, a.p["SIMD"], a.p["PE"], bits, seen) for q in x]
            attacks.append(a)
    return attacks


def attack_cap(d, bits, seen): return attack_attention(d, bits, seen, "AttentionCap")
def attack_probs(d, bits, seen): return attack_attention(d, bits, seen, "AttentionProbs")
def attack_rounded(d, bits, seen): return attack_attention(d, bits, seen, "AttentionRounded")


def attacks():
    """A name, what attacks, its arguments, of which the third is what the judge sees: of every kernel at every size and width."""
    for bits in BITS:
        for k in SIZES:
            for name, attack in ("MVU", attack_mvu), ("MVUTable", attack_table), ("LayerNorm", attack_norm), ("LayerNorm without a mean", attack_rms):
                if attack not in (attack_mvu, attack_table) and bits in (10, 12) and k != 64: continue
                yield "%s, %d channels of %d bits" % (name, k, bits), attack, (k, bits, Seen())
        for name, attack in ("Requant", attack_requant), ("RequantTable", attack_requant_table), ("Add", attack_add), ("Mul", attack_mul):
            yield "%s, %d bits" % (name, bits), attack, (7, bits, Seen())
        for k, center in itertools.product(FRAMES, (1, 0)):
            if bits in (10, 12) and k != 8: continue
            yield "FrameNorm%s, %d tokens of %d channels of %d bits" % ("" if center else " without a mean", TOKENS, k, bits), attack_frame, (k, bits, Seen(), center)
        for k, center in itertools.product(FRAMES, (1, 0)):
            yield "ExactNorm%s, %d channels of %d bits" % ("" if center else " without a mean", k, bits), attack_exact, (k, bits, Seen(), center)
        yield "Conv, a window of 2 x 3, %d bits" % bits, attack_conv, (6, bits, Seen())
        yield "Rotary, %d bits" % bits, attack_rotary, (64, bits, Seen())
    for bits, op in itertools.product(HEADS, ATTENTIONS):
        for d in sizes_of(op, bits):
            yield "%s, heads of %d channels of %d bits" % (op, d, bits), attack_attention, (d, bits, Seen(), op)


# ---- in Icarus ----------------------------------------------------------------------------------------------------------------------------------

sys.path.insert(0, os.path.join(t.tests, "verilog"))
from bench import beats, hexwords, pack, param_beats, turns


def simulate(name, p, files, plus, library=os.path.join(t.root, "verilog"), kernel="mlo_add"):
    """The last line that a bench of tests/verilog says, and the words of its out.txt. All of it is one run: seed 1, nothing stalls."""
    folder = t.at("icarus")
    shutil.rmtree(folder, True)
    os.makedirs(folder)
    for f, text in files.items():
        with open(os.path.join(folder, f), "w") as h: h.write(text)
    source = os.path.join(t.tests, "verilog", name + "_tb.v")
    p = subprocess.run(["iverilog", "-g2005", "-o", "tb.vvp", "-s", name + "_tb", "-DKERNEL=" + kernel, "-y", library, "-y", os.path.dirname(source), *["-P%s_tb.%s=%d" % (name, k, v) for k, v in p.items()], source],
                       cwd=folder, capture_output=True, text=True, timeout=600)
    if p.returncode: return "iverilog: " + p.stderr[-300:], []
    plus = dict(seed=1, stall=0, s_in=0, s_w=0, s_c=0, s_t=0, s_out=0, hold=0, gap=0, **plus)
    p = subprocess.run(["vvp", "-n", "tb.vvp", *["+%s=%d" % x for x in plus.items()]], cwd=folder, capture_output=True, text=True, timeout=400)
    said = [l for l in p.stdout.splitlines() if l.startswith(("PASS", "FAIL"))]
    words = [l.split()[-1] for l in open(os.path.join(folder, "out.txt"))] if os.path.exists(os.path.join(folder, "out.txt")) else []
    return said[-1] if said else "nothing was said: " + p.stdout[-200:], words


def users(attacks): return [(n, y, int(i == 0)) for n, a in enumerate(attacks) for i, y in enumerate(a.y)]
def channel_words(bias, mult, shift): return [int(b) & 0xffffffff | int(m) << 32 | int(s) << 48 for b, m, s in zip(bias, mult, shift)]
def stream(attacks, key, lanes, bits, above=0): return [b | (i == 0) << lanes * bits for a in attacks for i, row in enumerate(a.feed[key][0].tolist()) for b in beats(row, lanes, bits)]
def result(attacks, lanes, bits): return [b | (i == 0) << lanes * bits for a in attacks for i, row in enumerate(a.y) for b in beats(row, lanes, bits)]
def banks(attacks, words, width): return [b for a in attacks for b in param_beats(words(a), width)]
def lanes_of(words, pe): return [pack(words[i:i + pe], 64) for i in range(0, len(words), pe)]


def judged(said, words, want):
    """mvu_tb and requant_tb write their words, which are judged here."""
    if not said.startswith("PASS"): return said
    got = [int(w, 16) if "x" not in w else w for w in words]
    return next(("beat %d is %s, not %x" % (i, g, w) for i, (g, w) in enumerate(zip(got, want)) if g != w), "" if len(got) == len(want) else "%d beats of %d" % (len(got), len(want)))


def icarus_mvu(attacks, p, library):
    f, pe, simd = attacks[0].feed, p["PE"], p["SIMD"]
    w, n = f["w"].tolist(), f["w"].shape[1]
    weights = [pack([w[k + s][c + i] for i in range(pe) for s in range(simd)], 8) for c in range(0, n, pe) for k in range(0, len(w), simd)]
    x, want = stream(attacks, "x", simd, p["XBITS"]), result(attacks, pe, 16)
    lanes = pe // turns(pe, len(w) // simd)
    wb, cb = param_beats(weights, pe * simd * 8), param_beats(lanes_of(channel_words(f["bias"], f["mult"], f["shift"]), lanes), 64 * lanes)
    files = {"in.hex": hexwords(x, simd * p["XBITS"] + 3), "w.hex": hexwords(wb, 128), "c.hex": hexwords(cb, 128)}
    return judged(*simulate("mvu", dict(p, N=n), files, dict(n_in=len(x), n_w=len(wb), n_c=len(cb), n_t=0, n_out=len(want)), library), want)


def icarus_requant(attacks, p, library):
    pe = p["PE"]
    x, want = stream(attacks, "x", pe, p["XBITS"]), result(attacks, pe, 16)
    cb = banks(attacks, lambda a: lanes_of(channel_words(a.feed["bias"], a.feed["mult"], a.feed["shift"]), pe), 64 * pe)
    files = {"in.hex": hexwords(x, pe * p["XBITS"] + 3), "c.hex": hexwords(cb, 128)}
    return judged(*simulate("requant", p, files, dict(n_in=len(x), n_c=len(cb), n_t=0, n_out=len(want)), library), want)


def told(said, _): return "" if said.startswith("PASS") else said


def icarus_mul(attacks, p, library):
    return icarus_add(attacks, p, library, banks(attacks, lambda a: [int(a.feed["p"][0]) | int(a.feed["p"][1]) << 16], 32), "mlo_mul")


def icarus_add(attacks, p, library, cb=None, kernel="mlo_add"):
    pe, y = p["PE"], result(attacks, p["PE"], 16)
    cb = cb or banks(attacks, lambda a: [int(a.feed["p"][0]) | int(a.feed["p"][1]) << 16 | int(a.feed["p"][2]) << 32], 64)
    files = {"a.hex": hexwords(stream(attacks, "a", pe, p["ABITS"]), 35 + pe * p["ABITS"]), "b.hex": hexwords(stream(attacks, "b", pe, p["BBITS"]), 35 + pe * p["BBITS"]),
             "c.hex": hexwords(cb, 160), "y.hex": hexwords(y, 3 + pe * 16)}
    return told(*simulate("add", p, files, dict(beats=len(y), limit=4000 + 20 * len(y)), library, kernel))


def in_frames(attacks, rows, lanes, bits):
    """Beats of tokens of frames: the first of each attack, the last of each frame."""
    return [b | ((n == i == 0) | (i == TOKENS - 1) << 1) << lanes * bits for a in attacks for n, frame in enumerate(rows(a)) for i, row in enumerate(frame) for b in beats(row, lanes, bits)]


def icarus_norm(attacks, p, library):
    pe, frames = p["PE"], "FRAME" in p
    x = in_frames(attacks, lambda a: a.feed["x"].tolist(), pe, p["XBITS"]) if frames else stream(attacks, "x", pe, p["XBITS"])
    y = in_frames(attacks, lambda a: a.y, pe, 16) if frames else result(attacks, pe, 16)
    cb = banks(attacks, lambda a: lanes_of([int(g) & 0xffff | (int(b) & 0xffffffff) << 32 for g, b in zip(a.feed["g"], a.feed["b"])], pe), 64 * pe)
    eb = banks(attacks, lambda a: [int(a.feed["p"][0]) | int(a.feed["p"][1]) << 48], 64)
    files = {"x.hex": hexwords(x, 35 + pe * p["XBITS"]), "c.hex": hexwords(cb, 160), "e.hex": hexwords(eb, 160), "y.hex": hexwords(y, 3 + pe * 16)}
    return told(*simulate("layernorm", p, files, dict(beats=len(y), limit=4000 + len(cb) + 500 * TOKENS * len(attacks) + 3 * len(y)), library))


def icarus_exact(attacks, p, library):
    pe, lane = p["PE"], 64 if p["CENTER"] else 32
    x, y = stream(attacks, "x", pe, p["XBITS"]), result(attacks, pe, 16)
    words = lambda a: [int(w) & 0xffffffff | ((int(b) & 0xffffffff) << 32 if lane == 64 else 0) for w, b in itertools.zip_longest(a.feed["w"], a.feed["b"], fillvalue=0)]
    cb, eb = banks(attacks, lambda a: [pack(words(a)[i:i + pe], lane) for i in range(0, len(words(a)), pe)], lane * pe), banks(attacks, lambda a: [int(a.feed["p"][0])], 32)
    files = {"x.hex": hexwords(x, 35 + pe * p["XBITS"]), "c.hex": hexwords(cb, 160), "e.hex": hexwords(eb, 160), "y.hex": hexwords(y, 3 + pe * 16)}
    return told(*simulate("exactnorm", p, files, dict(beats=len(y), limit=4000 + len(cb) + 500 * TOKENS * len(attacks) + 3 * len(y)), library))


def icarus_rotary(attacks, p, library):
    pe, flags = p["PE"], lambda i: (i == 0) | (i == TOKENS - 1) << 1
    x = [b | flags(i) << pe * p["XBITS"] for a in attacks for i, row in enumerate(a.feed["x"][0].tolist()) for b in beats(row, pe, p["XBITS"])]
    want = [b | flags(i) << pe * 16 for a in attacks for i, row in enumerate(a.y) for b in beats(row, pe, 16)]
    cb = banks(attacks, lambda a: [int(a.feed["p"][0]) | int(a.feed["p"][1]) << 32], 64)
    tb = banks(attacks, lambda a: [pack(row[i:i + pe], 16) for row in a.feed["table"].tolist() for i in range(0, len(row), pe)], 16 * pe)
    files = {"in.hex": hexwords(x, pe * p["XBITS"] + 3), "c.hex": hexwords(cb, 128), "t.hex": hexwords(tb, 128)}
    return judged(*simulate("rotary", p, files, dict(n_in=len(x), n_c=len(cb), n_t=len(tb), n_out=len(want)), library), want)


def icarus_attention(attacks, p, library):
    simd, bits = p["SIMD"], p["XBITS"]
    def tokens(key):
        return [b | ((i == 0) | (i == TOKENS - 1) << 1 | int(key == "k" and a.feed["mask"][0][i]) << 2) << simd * bits for a in attacks for i, row in enumerate(a.feed[key][0].tolist()) for b in beats(row, simd, bits)]
    golden = [b | ((i == 0) | (i == TOKENS - 1) << 1) << simd * bits for a in attacks for i, row in enumerate(a.y) for b in beats(row, simd, bits)]
    at = (0, 16), (16, 6), (32, 16), (48, 6), (64, 16), (80, 6), (88, 8), (96, 18), (114, 6), (120, 8)      # of p: first bit, bits
    cb = banks(attacks, lambda a: [sum((int(v) & (1 << n) - 1) << i for v, (i, n) in zip(a.feed["p"], at))], 128 if "PROB" in p or "CAP" in p else 64)
    q, k, v = (tokens(x) for x in "qkv")
    files = {n: hexwords(x, simd * bits + 3) for n, x in (("q.hex", q), ("k.hex", k), ("v.hex", v), ("golden.hex", golden))}
    return told(*simulate("attention", dict(p, MAX=65536), dict(files, **{"c.hex": hexwords(cb, 128)}), dict(nq=len(q), nk=len(k), nc=len(cb), nm=len(golden), kbeats=TOKENS * p["D"] // simd), library))


IN_ICARUS = {"MVU": icarus_mvu, "Requant": icarus_requant, "Add": icarus_add, "Mul": icarus_mul, "LayerNorm": icarus_norm, "FrameNorm": icarus_norm, "ExactNorm": icarus_exact, "Rotary": icarus_rotary, **dict.fromkeys(ATTENTIONS, icarus_attention)}


def icarus(attacks, library=os.path.join(t.root, "verilog"), **more):
    """'' or what is wrong with the words of the kernel as the emitted top has it."""
    return IN_ICARUS[attacks[0].op](attacks, dict(attacks[0].p, **more), library)


def check_hardware():
    if not t.have("the worst case in Icarus", "iverilog"): return
    cases = {}                                           # name -> the attack, its arguments, what is wider
    for bits, k in itertools.product((8, 16), SIZES):
        cases["MVU, %d channels of %d bits" % (k, bits)] = attack_mvu, (k, bits, Seen()), dict(SIMD=16) if k == 3072 else {}
        for center in (1, 0): cases["LayerNorm%s, %d channels of %d bits" % ("" if center else " without a mean", k, bits)] = attack_norm, (k, bits, Seen(), center), dict(PE=64) if k == 3072 else {}
    for bits, k, center in itertools.product((8, 16), FRAMES, (1, 0)):
        cases["FrameNorm%s, %d channels of %d bits" % ("" if center else " without a mean", k, bits)] = attack_frame, (k, bits, Seen(), center), dict(PE=64) if k == 384 else {}
    for bits, k, center in itertools.product((8, 16), FRAMES, (1, 0)):
        cases["ExactNorm%s, %d channels of %d bits" % ("" if center else " without a mean", k, bits)] = attack_exact, (k, bits, Seen(), center), dict(PE=64) if k == 384 else {}
    for bits in BITS:
        for op, attack in ("Requant", attack_requant), ("Add", attack_add), ("Mul", attack_mul): cases["%s, %d bits" % (op, bits)] = attack, (7, bits, Seen()), {}
        cases["Rotary, %d bits" % bits] = attack_rotary, (64, bits, Seen()), {}
    for bits, op in itertools.product(HEADS, ATTENTIONS):
        for d in sizes_of(op, bits): cases["%s, heads of %d channels of %d bits" % (op, d, bits)] = attack_attention, (d, bits, Seen(), op), dict(SIMD=16) if d == 512 else {}
    for name in t.drawn(cases, 8):
        attack, arguments, wide = cases[name]
        t.case("worst case in Icarus: " + name, icarus(attack(*arguments), **wide))


def check_registers():
    """The widths that a build states are the registers' own, and wide enough."""
    if not t.have("registers", "iverilog"): return
    for bits, (what, least) in itertools.product(BITS, {"kernels": 100, "window": 9, "frames": 50}.items()):
        d = build(bits, what)
        named = [(k["name"] + "." + c["register"], c) for k in json.loads(t.read(os.path.join(d, "intermediates.json")))["kernels"] for c in k["intermediates"] if "register" in c]
        probe = t.write("widths.v", "module widths; mlo_top top (); initial begin\n%s$finish; end endmodule\n" % "".join('$display("%%0d", $bits(top.u_core.u_%s));\n' % r for r, _ in named))
        subprocess.run(["iverilog", "-g2012", "-s", "widths", "-y", os.path.join(d, "rtl"), "-o", t.at("widths.vvp"), probe], check=True, capture_output=True, timeout=600)
        have = subprocess.run(["vvp", "-n", t.at("widths.vvp")], check=True, capture_output=True, text=True, timeout=600).stdout.split()
        why = next(("%s has %s bits, intermediates.json says %d" % (r, n, c["verilog"]) for (r, c), n in zip(named, have) if int(n) != c["verilog"]), "")
        for r, c in named:                              # the bits that it takes, counted anew
            lo, hi = int(c["lo"]), int(c["hi"])
            needs = max(max(hi, 0).bit_length(), max(-lo - 1, 0).bit_length()) + c["signed"]
            if needs > c["verilog"] or lo < 0 and not c["signed"]: why = why or "%s has %d bits for %d..%d" % (r, c["verilog"], lo, hi)
        t.case("%d registers of %s on %d bits are as wide as the manifest says, and wide enough" % (len(named), what, bits), why if len(have) == len(named) > least else "%d widths for %d registers" % (len(have), len(named)))


# ---- mutants ------------------------------------------------------------------------------------------------------------------------------------

# {n}: what the register has to spare, and one bit more. (Not here: |sum x| is at its end only where all channels are, and then u is 0.)

MVU, REQUANT, ADD = lambda: attack_mvu(64, 8, Seen()), lambda: attack_requant(7, 16, Seen()), lambda: attack_add(7, 16, Seen())
MUL = lambda: attack_mul(7, 16, Seen())
ROTARY = lambda: attack_rotary(64, 16, Seen())
NORM, RMS, ATTENTION = lambda: attack_norm(64, 16, Seen()), lambda: attack_rms(64, 16, Seen()), lambda: attack_attention(64, 8, Seen())
FRAME = lambda: attack_frame(8, 16, Seen())
CAP = lambda: attack_cap(64, 8, Seen())
PROBS, ROUNDED = lambda: attack_probs(64, 8, Seen()), lambda: attack_rounded(64, 8, Seen())
PRODUCT = ("mlo_requantize.v", "PBITS = ABITS + MBITS;", "PBITS = ABITS + MBITS - {n};")
LESS = ("mlo_requantize.v", "parameter SHIFT = 0 ", "parameter LESS = 0, parameter SHIFT = 0 "), ("mlo_requantize.v", "PBITS = ABITS + MBITS;", "PBITS = ABITS + MBITS - LESS;")     # of one product only
MUTANTS = [
    (MVU, "x W", [("mlo_dots.v", "wire signed [PBITS-1:0] a, b, c, d; // the products", "wire signed [PBITS-1-{n}:0] a; wire signed [PBITS-1:0] b, c, d; // the products")]),
    (MVU, "SIMD products", [("mlo_mvu.v", "wire signed [SBITS-1:0] sum;", "wire signed [SBITS-1-{n}:0] sum;"), ("mlo_mvu.v", "{{(TOTAL - SBITS){sum[SBITS-1]}}, sum}", "{{(TOTAL - SBITS + {n}){sum[SBITS-1-{n}]}}, sum}")]),
    (MVU, "acc", [("mlo_mvu.v", "wire signed [ABITS-1:0] acc =", "wire signed [ABITS-1-{n}:0] acc =")]),
    (MVU, "acc * M", [PRODUCT]),
    (REQUANT, "acc", [("mlo_requant.v", "wire signed [XBITS:0]   acc =", "wire signed [XBITS-{n}:0]   acc =")]),
    (REQUANT, "acc * M", [PRODUCT]),
    (ADD, "a * MA", [("mlo_add.v", "PA    = ABITS + 16;", "PA    = ABITS + 16 - {n};")]),
    (ADD, "b * MB", [("mlo_add.v", "PB    = BBITS + 16;", "PB    = BBITS + 16 - {n};")]),
    (ADD, "acc * M", [("mlo_add.v", "reg  signed [SB-1:0]    t3, t4;", "reg  signed [SB-1-{n}:0]    t3; reg signed [SB-1:0] t4;")]),
    (MUL, "acc", [("mlo_mul.v", "wire signed [PB-1:0] product =", "wire signed [PB-1-{n}:0] product =")]),
    (MUL, "acc * M", [PRODUCT]),
    (ROTARY, "a cos", [("mlo_rotary.v", "PB = XBITS + 16;", "PB = XBITS + 16 - {n};")]),
    (ROTARY, "a cos - b sin", [("mlo_rotary.v", "wire signed [AB-1:0] even =", "wire signed [AB-1-{n}:0] even =")]),
    (ROTARY, "a sin + b cos", [("mlo_rotary.v", "wire signed [AB-1:0] odd  =", "wire signed [AB-1-{n}:0] odd  =")]),
    (ROTARY, "acc * M", [PRODUCT]),
    (NORM, "sum x", [("mlo_layernorm.v", "S1BITS = XBITS + LC;", "S1BITS = XBITS + LC - {n};"), ("mlo_variance.v", "S1BITS    = XBITS + $clog2(C)", "S1BITS    = XBITS + $clog2(C) - {n}")]),
    (RMS, "sum x^2", [("mlo_variance.v", "S2BITS = QBITS + $clog2(C);", "S2BITS = QBITS + $clog2(C) - {n};")]),
    (NORM, "V", [("mlo_layernorm.v", "wire [61:0]         v_data;", "wire [61-{n}:0]         v_data;")]),
    (NORM, "C R", [("mlo_layernorm.v", "CRBITS = $clog2(N + 1) + 17;", "CRBITS = $clog2(N + 1) + 17 - {n};")]),
    (NORM, "-(sum x) R + half", [("mlo_layernorm.v", "reg  [UBITS-1:0]  t_c;", "reg signed [UBITS-1-{n}:0]  t_c;")]),
    (NORM, "u R + half", [("mlo_layernorm.v", "wire signed [UBITS-1:0] ur3;", "wire signed [UBITS-1-{n}:0] ur3;")]),
    (NORM, "n", [("mlo_layernorm.v", "reg  signed [NBITS-1:0] n4;", "reg  signed [NBITS-1-{n}:0] n4;")]),
    (RMS, "n", [("mlo_layernorm.v", "reg  signed [NBITS-1:0] n4;", "reg  signed [NBITS-1-{n}:0] n4;")]),
    (NORM, "n G + B", [("mlo_layernorm.v", "NBITS + 16 : 33) + 1;", "NBITS + 16 : 33) + 1 - {n};")]),
    (FRAME, "sum x", [("mlo_layernorm.v", "S1BITS = XBITS + LC;", "S1BITS = XBITS + LC - {n};"), ("mlo_variance.v", "S1BITS    = XBITS + $clog2(C)", "S1BITS    = XBITS + $clog2(C) - {n}")]),
    (FRAME, "C R", [("mlo_layernorm.v", "CRBITS = $clog2(N + 1) + 17;", "CRBITS = $clog2(N + 1) + 17 - {n};")]),
    (FRAME, "n", [("mlo_layernorm.v", "reg  signed [NBITS-1:0] n4;", "reg  signed [NBITS-1-{n}:0] n4;")]),
    (ATTENTION, "s", [("mlo_attention_max.v", "row_max   <= row_next;", "row_max   <= $signed(row_next[SB-1-{n}:0]);")]),
    (ATTENTION, "mx - s", [("mlo_exp2.v", "DB = SBITS - 1;", "DB = SBITS - 1 - {n};")]),
    (ATTENTION, "(mx - s) * MS", [("mlo_exp2.v", "wire [PB-1:0] p2;", "wire [PB-1-{n}:0] p2;")]),
    (ATTENTION, "sum e", [("mlo_attention_softmax.v", "reg  [SUMB-1:0]  sum_reg, lanes5;", "reg  [SUMB-1-{n}:0] sum_reg; reg [SUMB-1:0] lanes5;")]),
    (ATTENTION, "MO * 2^(LT+8)", [("mlo_divide.v", "parameter NBITS = 16,", "parameter NBITS = 16, parameter LESS = NBITS - {n},"), ("mlo_divide.v", "{{WB-NBITS{1'b0}}, s_n};", "s_n[LESS-1:0];")]),
    (ATTENTION, "R", [("mlo_divide.v", "reg [QBITS-1:0] out_q_reg;", "reg [QBITS-1-{n}:0] out_q_reg;")]),
    (ATTENTION, "PE products", [("mlo_attention_mix.v", "wire [DOTB-1:0] dot;", "wire signed [DOTB-1-{n}:0] dot;"), ("mlo_attention_mix.v", "wire [DOTB-1:0] d = g_dot[s].dot;", "wire [DOTB-1:0] d = $signed(g_dot[s].dot);")]),
    (ATTENTION, "sum e v", [("mlo_attention_mix.v", "reg  [AB-1:0]   sum_reg;", "reg signed [AB-1-{n}:0]   sum_reg;")]),
    (CAP, "s * MC", [("mlo_attention_cap.v", ".ABITS(SB), .MBITS(16)", ".ABITS(SB), .LESS({n}), .MBITS(16)"), *LESS]),
    (CAP, "c", [("mlo_attention_cap.v", "assign out = out_reg;", "wire [16:0] most = out_reg; assign out = {{{n}{most[16-{n}]}}, most[16-{n}:0]};")]),
    (CAP, "mx - s", [("mlo_exp2.v", "DB = SBITS - 1;", "DB = SBITS - 1 - {n};")]),
    (PROBS, "mx - s", [("mlo_exp2_fine.v", "DB = SBITS - 1;", "DB = SBITS - 1 - {n};")]),
    (PROBS, "(mx - s) * MS", [("mlo_exp2_fine.v", "reg [PB-1:0] p2;", "reg [PB-1-{n}:0] p2;")]),
    (PROBS, "e", [("mlo_exp2_fine.v", "here5, a6, e7;", "here5, a6; reg [17-{n}:0] e7;")]),
    (PROBS, "sum e", [("mlo_attention_softmax.v", "reg  [SUMB-1:0]  sum_reg, lanes5;", "reg  [SUMB-1-{n}:0] sum_reg; reg [SUMB-1:0] lanes5;")]),
    (PROBS, "MP * 2^(LT+18)", [("mlo_divide.v", "parameter NBITS = 16,", "parameter NBITS = 16, parameter LESS = NBITS - {n},"), ("mlo_divide.v", "{{WB-NBITS{1'b0}}, s_n};", "s_n[LESS-1:0];")]),
    (PROBS, "R", [("mlo_divide.v", "reg [QBITS-1:0] out_q_reg;", "reg [QBITS-1-{n}:0] out_q_reg;")]),
    (PROBS, "e * R", [("mlo_attention_weight.v", ".ABITS(EB + 1), .MBITS(RB + 1)", ".ABITS(EB + 1), .LESS({n}), .MBITS(RB + 1)"), *LESS]),
    (PROBS, "PE products", [("mlo_attention_mix.v", "wire [DOTB-1:0] dot;", "wire signed [DOTB-1-{n}:0] dot;"), ("mlo_attention_mix.v", "wire [DOTB-1:0] d = g_dot[s].dot;", "wire [DOTB-1:0] d = $signed(g_dot[s].dot);")]),
    (PROBS, "acc * M", [("mlo_attention_mix.v", ".ABITS(AB), .MBITS(MB + 1)", ".ABITS(AB), .LESS({n}), .MBITS(MB + 1)"), *LESS]),
    (ROUNDED, "s * MR", [("mlo_attention_round.v", ".ABITS(SB), .MBITS(19)", ".ABITS(SB), .LESS({n}), .MBITS(19)"), *LESS]),
    (ROUNDED, "r", [("mlo_attention_round.v", "assign out = out_reg;", "wire [7:0] most = out_reg; assign out = {{{n}{most[7-{n}]}}, most[7-{n}:0]};")]),
    (ROUNDED, "mx - s", [("mlo_exp2_fine.v", "DB = SBITS - 1;", "DB = SBITS - 1 - {n};")]),
]


def mutant(changes, n):
    """The Verilog, changed."""
    folder = t.at("mutant")
    shutil.rmtree(folder, True)
    shutil.copytree(os.path.join(t.root, "verilog"), folder)
    for f, old, new in changes:
        text = t.read(os.path.join(folder, f)).decode()
        assert text.count(old) == 1, "%s holds %d times: %s" % (f, text.count(old), old)
        with open(os.path.join(folder, f), "w") as h: h.write(text.replace(old, new.replace("{n}", str(n))))
    return folder


def check_function_mutants():
    """An ONNX function with products in float32, and one whose sums wrap around at 32 bits."""
    def floats(f):
        for a in (a for n in f.node if n.op_type == "Cast" for a in n.attribute if a.i == TensorProto.DOUBLE): a.i = TensorProto.FLOAT
    def wraps(f):
        at = next(i for i, n in enumerate(f.node) if n.output[0] == "acc")
        f.node[at].output[0] = "wide"
        f.node.insert(at + 1, helper.make_node("Cast", ["wide"], ["narrow"], to=TensorProto.INT32))
        f.node.insert(at + 2, helper.make_node("Cast", ["narrow"], ["acc"], to=TensorProto.INT64))
    for change in floats, wraps:
        a = attack_mvu(255, 16, Seen())[0]
        t.case("a mutant is noticed: MVU's function, " + change.__name__, "" if differ(run("MVU", a.feed, 16, change=change), a.y) else "it passes")


def check_mutants():
    """A register one bit too narrow is noticed; as narrow as its interval allows, it is not."""
    if not t.have("mutants", "iverilog"): return
    for k in t.drawn(range(len(MUTANTS)), 10):
        make, name, changes = MUTANTS[k]
        made = make()
        c = next(c for c in made[0].claim["intermediates"] if c["name"] == name)
        spare = c["verilog"] - c["bits"]
        why = icarus(made, mutant(changes, spare + 1))
        what = "%s: '%s' in %d bits" % (made[0].op, name, c["bits"] - 1)
        t.case("a mutant is noticed: " + what, "" if re.search("beat \\d+", why) else "it passes" if not why else why)
        t.case("and is right in %d" % c["bits"], icarus(made, mutant(changes, spare)))


def check_words():
    for name, attack, arguments in t.drawn(attacks(), 5, name=lambda row: row[0]):
        made, seen = attack(*arguments), arguments[2]
        why = next(filter(None, (a.words() for a in made)), "")
        t.case("worst case in ONNX Runtime and mlo run: " + name, why)
        t.case("its intermediates are in their intervals: " + name, seen.wrong(made[0].claim["intermediates"]))


# ---- the arithmetic of intervals ------------------------------------------------------------------------------------------------------------------

FAR = 2 ** 63 - 1                                        # an end that far or beyond


def ends(rng):
    """An interval: of any size, and of the ends of every width. None begins at FAR or ends at -FAR."""
    def one():
        n = rng.choice((0, 1, 2 ** 31, 2 ** 32, 2 ** 61, 2 ** 62, FAR, FAR // 2, FAR // 3, 3037000499, rng.getrandbits(63), rng.getrandbits(rng.randint(1, 63))))
        return max(-FAR, min(FAR, rng.choice((1, -1)) * n + rng.randint(-1, 1)))
    a, b = sorted((one(), one()))
    return min(a, FAR - 1), max(b, 1 - FAR)


def as_ends(lo, hi): return tuple(max(-FAR, min(FAR, x)) for x in (lo, hi))
def true_end(x): return x * 2 ** 200 if abs(x) == FAR else x               # what lies beyond: any large number will do


def bits_for(lo, hi):
    """Bits of a signed number; 65: more than any has."""
    return 65 if lo == -FAR or hi == FAR else 1 + max((-lo - 1).bit_length() if lo < 0 else 0, hi.bit_length() if hi > 0 else 0)


def room(lo, hi, c, onnx_, verilog, is_signed):
    bits = bits_for(lo, hi)
    if 0 < c < bits: return "C", c
    if 0 < onnx_ < bits: return "ONNX", onnx_
    if verilog and (bits - (not is_signed) > verilog or not is_signed and lo < 0): return "Verilog", verilog
    return "all", 0


def questions(rng):
    """A word of interval_driver.c, its numbers, and what the judge answers; of each word one."""
    (a, b), (c, d), n, width = ends(rng), ends(rng), rng.choice((0, 1, 2, 3, 255, 2 ** 31, rng.getrandbits(40))), rng.randint(1, 63)
    ta, tb, tc, td = map(true_end, (a, b, c, d))
    products = [x * y for x in (ta, tb) for y in (tc, td)]
    yield "sum", (a, b, c, d), as_ends(ta + tc, tb + td)
    yield "product", (a, b, c, d), as_ends(min(products), max(products))
    yield "many", (n, a, b), as_ends(min(n * ta, 0), max(n * tb, 0))
    yield "signed", (width,), as_ends(low(width), high(width))
    yield "bits", (a, b), (bits_for(a, b),)
    yield "clog2", (n,), (max(n - 1, 0).bit_length(),)
    if rng.random() < 0.5: a, b = max(a, 0), max(b, 0)                     # as an unsigned register holds
    widths = [rng.choice((0, *range(max(bits_for(a, b) - 2, 1), bits_for(a, b) + 1))) for _ in range(3)] + [rng.randint(0, 1)]
    yield "room", (a, b, *widths), room(a, b, *widths)


def check_ends():
    """Sums and products saturate, widths are those that Python's integers need; nothing overflows, says UBSan."""
    rng, driver = random.Random(21), t.counted("interval_driver") or t.inside("interval_driver", "undefined")
    asked = [q for _ in range(4000) for q in questions(rng)]
    p = subprocess.run([driver], input="".join("%s %s\n" % (word, " ".join(map(str, numbers))) for word, numbers, _ in asked), capture_output=True, text=True)
    if p.returncode: raise RuntimeError("the driver: status %d: %s" % (p.returncode, p.stderr[-300:]))
    wrong = {word: "" for word, *_ in asked}
    for (word, numbers, want), got in zip(asked, p.stdout.splitlines(), strict=True):
        if got.split() != [str(x) for x in want]: wrong[word] = wrong[word] or "%s: %s, not %s" % (numbers, got, want)
    for word, what in wrong.items(): t.case("intervals to the ends of int64: " + word, what)


if __name__ == "__main__":
    t.main(check_words, check_registers, check_hardware, check_function_mutants, check_mutants, check_ends, floor=77)
