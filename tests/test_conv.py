#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo.Conv: every channel of a token from what lies around it on a grid. mlo.FrameNorm: a norm over all tokens of a frame.

    python tests/test_conv.py path/to/mlo [NAME ...]

    words     ONNX Runtime and mlo run give the words of Python integers, at opsets from 13 on; windows with weights of their own at the borders, too
    frames    the same of norms over frames
    floats    torch's and ONNX's Conv with groups = channels, and AveragePool, are such windows
    refusals  shapes and numbers that there is no hardware for
    cores     whole cores with convolutions: beside a residual path, in front of and behind matrices, norms and attention; the words of ONNX Runtime on host/core.onnx,
              the cycles predicted; stalls, frames in flight, frames shorter than the grid, parameters of all kinds
    verilator PoolFormer's layer in Verilator: Icarus's words, and each kernel busy as long
    exports   models/conv/ (families_conv.py made it: stages of ConvNeXt, SegFormer's layers, windows between 1 x 1, average pooling, conformers) become hardware, as test_families.py has it: words in
              Icarus, `mlo run` and ONNX Runtime, and how near they come to the floats; other windows are refused by name and reason
    foldings  PE and SIMD of convolutions, as options, --folding and searches choose them; what is refused"""
import glob
import json
import os
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import cores
import harness as t
import test_families
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "verilog"))
import layernorm
from graphs import Written, execute
from hardware import Run

OPSETS = 13, 14, 17, 18, 21, 23


def low(bits): return -(1 << (bits - 1))
def high(bits): return (1 << (bits - 1)) - 1
def ints(*a): return np.array(a, np.int32)


# ---- the kernel alone ------------------------------------------------------------------------------------------------------------------

def functions(opset):
    """A model with the kernels' functions as mlo writes them at an opset."""
    m = onnx.load(t.model("bert-1"))
    m.opset_import[0].version = opset
    if not hasattr(functions, "made"): functions.made = {}
    if opset not in functions.made:
        path = t.at("functions-%d.onnx" % opset)
        t.good("quantize", t.write("opset-%d.onnx" % opset, m.SerializeToString()), "--onnx", "-o", path)
        functions.made[opset] = onnx.load(path)
    return functions.made[opset]


def kernel(feed, bits, opset=18, **grid):
    """One node, and its function, as a model."""
    base, to = functions(opset), TensorProto.INT8 if bits <= 8 else TensorProto.INT16
    name = "Conv" if "w" in feed else "FrameNorm"
    node = helper.make_node(name, list(feed), ["y"], domain="mlo", to=to, lo=low(bits), hi=high(bits), **grid)
    kind = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(k, kind(v), v.shape) for k, v in feed.items()], [helper.make_tensor_value_info("y", to, None)])
    return helper.make_model(graph, opset_imports=base.opset_import, functions=[f for f in base.functions if f.name == name], ir_version=9 if opset < 23 else base.ir_version)


def ran(model, feed):
    np.savez(t.at("in.npz"), **feed)
    t.good("run", t.write("kernel.onnx", model.SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    with np.load(t.at("out.npz")) as z: return z["y"]


def parts(kh, kw, top, left): return (top + 1) * (kh - top) * (left + 1) * (kw - left)


def part(n, tokens, kh, kw, width, top, left):
    """Which part of its window token n has: rows that are missing above and (by the tokens under it) below, columns to the left and right, counted one by one."""
    above = sum(n // width + i - top < 0 for i in range(kh))
    below = sum(n + (i - top) * width >= tokens for i in range(top + 1, kh))
    before = sum(n % width + j - left < 0 for j in range(kw))
    behind = sum(n % width + j - left >= width for j in range(kw))
    return ((above * (kh - top) + below) * (left + 1) + before) * (kw - left) + behind


def sums(x, w, width, top, left):
    """The definition, in Python's integers, without bias."""
    frames, tokens, channels = x.shape
    acc, kh, kw = np.zeros(x.shape, object), *w.shape[1:3]
    for b, n, i, j in np.ndindex(frames, tokens, kh, kw):
        row, column = n // width + i - top, n % width + j - left
        weights = w[:, i, j] if w.ndim == 3 else w[:, i, j, part(n, tokens, kh, kw, width, top, left)]
        if row >= 0 and 0 <= column < width and row * width + column < tokens: acc[b, n] += x[b, row * width + column].astype(object) * weights.astype(object)
    return acc


def convolved(feed, bits, **grid):
    acc = sums(feed["x"], feed["w"], **grid) + feed["bias"].astype(object)
    scaled = (acc * feed["mult"].astype(object) + 2 ** (feed["shift"].astype(object) - 1)) // 2 ** feed["shift"].astype(object)
    return np.clip(scaled, low(bits), high(bits)).astype(np.int64)


def feed_of(rng, frames, tokens, channels, kh, kw, xbits, mult=None, shift=None, bias=1 << 12, wbits=8, edges=()):
    """Numbers of all sizes, and the ends."""
    pick = lambda bits, shape: np.where(rng.random(shape) < 0.2, rng.choice([low(bits), high(bits), 0, 1, -1], shape), rng.integers(low(bits), high(bits) + 1, shape))
    typical = xbits + wbits + int(kh * kw).bit_length() // 2 + 5
    return {"x": pick(xbits, (frames, tokens, channels)).astype(np.int8 if xbits <= 8 else np.int16), "w": pick(wbits, (channels, kh, kw, *edges)).astype(np.int8),
            "bias": rng.integers(-bias, bias, channels).astype(np.int32), "mult": np.full(channels, mult, np.int32) if mult is not None else rng.integers(0, 1 << 15, channels).astype(np.int32),
            "shift": np.full(channels, shift, np.int32) if shift is not None else rng.integers(max(1, typical - 3), typical + 4, channels).astype(np.int32)}


# tokens, channels, window, grid
GRIDS = [(15, 3, (3, 3), dict(width=5, top=1, left=1)), (49, 2, (7, 7), dict(width=7, top=3, left=3)), (7, 5, (7, 7), dict(width=7, top=3, left=3)), (45, 4, (5, 5), dict(width=9, top=2, left=2)),
         (7, 1, (5, 5), dict(width=1, top=2, left=2)), (12, 3, (4, 1), dict(width=1, top=3, left=0)), (13, 2, (3, 3), dict(width=5, top=1, left=1)), (6, 2, (2, 4), dict(width=3, top=0, left=3)),
         (1, 3, (3, 3), dict(width=1, top=1, left=1)), (20, 2, (1, 1), dict(width=4, top=0, left=0))]


def check_words():
    rng = np.random.default_rng(5)
    for opset in OPSETS:
        why = ""
        for n, (tokens, channels, (kh, kw), grid) in enumerate(GRIDS):
            count = parts(kh, kw, grid["top"], grid["left"])
            for xbits, bits, more in ((8, 8, {}), (16, 16, {}), (8, 16, dict(edges=[count])), (16, 8, dict(mult=32767, shift=1)), (8, 16, dict(mult=32767, shift=62, bias=(1 << 31) - 1)), (8, 8, dict(mult=0, shift=5))):
                feed = feed_of(rng, 1 + n % 3, tokens, channels, kh, kw, xbits, **more)
                model, want = kernel(feed, bits, opset, **grid), convolved(feed, bits, **grid)
                for who, got in [("ONNX Runtime", execute(model, feed)[0])] + ([("mlo run", ran(model, feed))] if opset in (13, 23) else []):
                    if got.shape != want.shape or got.dtype != (np.int8 if bits <= 8 else np.int16): why = why or "%s makes %s %s" % (who, got.dtype, got.shape)
                    elif not np.array_equal(got, want): why = why or "%s, %s, %d to %d bits: %d of %d words" % (who, grid, xbits, bits, (got != want).sum(), want.size)
        t.case("words at opset %d: %d windows and grids" % (opset, len(GRIDS)), why)


def check_frames():
    rng = np.random.default_rng(8)
    for opset in OPSETS:
        why = ""
        for n, (frames, tokens, channels) in enumerate([(1, 1, 1), (2, 3, 4), (1, 30, 8), (3, 7, 5), (1, 2048, 16)]):
            x = np.clip(rng.normal(rng.integers(-9000, 9000), rng.choice([1, 300, 9000]), (frames, tokens, channels)), low(16), high(16)).astype(np.int16)
            if n == 4: x[:] = np.where(np.arange(channels) % 2, low(16), high(16))
            center, bits = n % 3 != 1, 8 if n % 2 else 16
            eps, sh = int(rng.integers(1, 1 << 40)), int(rng.integers(0, 20))
            feed = {"x": x, "g": rng.integers(low(16), high(16) + 1, channels).astype(np.int32), "b": rng.integers(-(1 << 30), 1 << 30, channels).astype(np.int32), "p": np.array([eps, sh], np.int64)}
            model = kernel(feed, bits, opset, center=int(center))
            want = np.stack([layernorm.model([int(v) for v in f.ravel()], center, eps, sh, [int(v) for v in feed["g"]] * tokens, [int(v) for v in feed["b"]] * tokens, bits) for f in x]).reshape(x.shape)
            for who, got in [("ONNX Runtime", execute(model, feed)[0])] + ([("mlo run", ran(model, feed))] if opset in (13, 23) else []):
                if got.shape != want.shape or not np.array_equal(got, want): why = why or "%s, %s: %d of %d words" % (who, x.shape, (got != want).sum(), want.size)
        t.case("norms of frames at opset %d" % opset, why)
    for name, word, x in (("more numbers than the norm takes", "a norm over 4096 tokens of 9 channels; the integer norm takes 1 to 32768 numbers of a frame", np.zeros((1, 4096, 9), np.int16)),
                          ("a frame of two dimensions", "takes x of 3 dimensions, [batch, tokens, channels]; it has 2", np.zeros((7, 9), np.int16))):
        feed = {"x": x, "g": np.ones(9, np.int32), "b": np.zeros(9, np.int32), "p": np.array([1, 1], np.int64)}
        np.savez(t.at("in.npz"), **feed)
        p = t.call("run", t.write("kernel.onnx", kernel(feed, 16, center=1).SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        t.case("refused: " + name, "" if p.returncode in (3, 4) and word in p.stderr.decode() else "status %d: %s" % (p.returncode, p.stderr.decode()))


def check_floats():
    """A window of weights is ONNX's Conv with a group for each channel; of ones, AveragePool that counts zeros."""
    rng = np.random.default_rng(6)
    info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    for k, h, w, c in (3, 7, 7, 4), (5, 5, 9, 2), (7, 1, 7, 3), (7, 7, 7, 2), (3, 9, 5, 1):
        x = rng.integers(low(8), high(8) + 1, (1, h * w, c)).astype(np.int8)
        weights = rng.integers(low(8), high(8) + 1, (c, k, k)).astype(np.int8)
        grid, pads = dict(width=w, top=k // 2, left=k // 2), [k // 2] * 4
        image = x.reshape(1, h, w, c).transpose(0, 3, 1, 2).astype(np.float32)
        conv = helper.make_node("Conv", ["x", "w"], ["y"], group=c, pads=pads)
        pool = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[k, k], pads=pads, count_include_pad=1)
        for name, node, feed, mine in (("Conv", conv, {"x": image, "w": weights[:, None].astype(np.float32)}, weights), ("AveragePool", pool, {"x": image * k * k}, np.ones_like(weights))):
            shapes = [info(n, v.shape) for n, v in feed.items()]
            m = helper.make_model(helper.make_graph([node], "g", shapes, [info("y", None)]), opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
            want = execute(m, feed)[0].transpose(0, 2, 3, 1).reshape(1, h * w, c)
            feed = {"x": x, "w": mine, "bias": np.zeros(c, np.int32), "mult": np.full(c, 1, np.int32), "shift": np.full(c, 8, np.int32)}
            got, clip = execute(kernel(feed, 16, **grid), feed)[0], np.clip(np.floor(want.astype(np.float64).round() / 256 + 0.5), low(16), high(16))
            t.case("%s of %d x %d over %d x %d, %d channels" % (name, k, k, h, w, c), "" if np.array_equal(got, clip) else "%d of %d words" % ((got != clip).sum(), got.size))


def check_refusals():
    rng = np.random.default_rng(7)
    good = feed_of(rng, 1, 15, 4, 3, 3, 16)
    def refuses(name, word, grid=(5, 1, 1), without=None, **change):
        feed = dict(good, **change)
        np.savez(t.at("in.npz"), **feed)
        given = {k: v for k, v in zip(("width", "top", "left"), grid) if k != without}
        p = t.call("run", t.write("kernel.onnx", kernel(feed, 16, **given).SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        said = p.stderr.decode().strip()
        t.case("refused: " + name, "" if p.returncode in (3, 4) and word in said and said.count("\n") == 0 else "status %d: %s" % (p.returncode, said))
    refuses("a window above the token", "top = 3, left = 1 in a window of 3 x 3; a token must be in its window", (5, 3, 1))
    refuses("a window beside the token", "top = 1, left = -1 in a window", (5, 1, -1))
    refuses("rows of no token", "over rows of width = 0 tokens", (0, 1, 1))
    refuses("no width", "over rows of width = 0 tokens", without="width")
    refuses("no top", "top = -1, left = 1", without="top")
    refuses("a window of no rows", "a window of 0 x 3", w=good["w"][:, :0])
    refuses("other channels", "x has 4 channels, w 3", w=good["w"][:3])
    refuses("weights of all channels with all", "or 4 with parts; they have 3 and 5", w=np.repeat(good["w"][:, None, :, :, None], 4, 1))
    refuses("weights for some parts of the window", "weights for 4 parts of the window; it has 16", w=np.repeat(good["w"][..., None], 4, 3))
    refuses("channels first", "x has 15 channels, w 4", x=good["x"].transpose(0, 2, 1))
    refuses("x of four dimensions", "takes x of 3 dimensions", x=good["x"].reshape(1, 3, 5, 4))
    refuses("weights of 16 bits", "w is int16; it must be INT8", w=good["w"].astype(np.int16))
    refuses("x of 32 bits", "input 0 is int32; it must be INT8 or INT16", x=good["x"].astype(np.int32))
    refuses("a multiplier of 16 bits", "multiplier 32768 is not within 0..32767", mult=ints(5, 5, 32768, 5))
    refuses("a shift of 0", "shift 0 is not within 1..62", shift=ints(5, 5, 5, 0))
    refuses("a scale too few", "input 3 has 3 elements, needs 4", mult=ints(5, 5, 5))


# ---- whole cores -----------------------------------------------------------------------------------------------------------------------

class Body(cores.Body):
    """With convolutions, and numbers for all parameters."""

    def __init__(self, width, rows, channels, seed=9):
        super().__init__(width * rows, channels)
        self.grid, self.rng, self.values = width, np.random.default_rng(seed), {}

    def numbers(self, values, kind):
        name = self.parameter(kind, *np.shape(values(0)))
        self.values[name] = values
        return name

    def scales(self, n, gain):
        """M and S of each channel that make of sums of size `gain` numbers of a fifth of a byte."""
        s = 14 + int(gain * 1.5).bit_length() - 6
        return [self.numbers(lambda i: self.rng.integers(-300, 300, n).astype(np.int32), TensorProto.INT32), self.numbers(lambda i: self.rng.integers(1 << 13, 1 << 15, n).astype(np.int32), TensorProto.INT32),
                self.numbers(lambda i: np.full(n, s, np.int32), TensorProto.INT32)]

    def conv(self, x, kh, kw, bits=8, top=None, left=None, meta=(), wbits=8, edges=False):
        c, xbits = self.width[x]
        own = [parts(kh, kw, (kh - 1) // 2 if top is None else top, (kw - 1) // 2 if left is None else left)] if edges else []
        w = self.numbers(lambda i: self.rng.integers(low(wbits), high(wbits) + 1, (c, kh, kw, *own)).astype(np.int8), TensorProto.INT8)
        size = (kh * kw) ** 0.5 * 2 ** (wbits - 2) * (20 if xbits == 8 else 4000) / (1 if bits == 8 else 64)
        meta = {**dict(meta), **({"mlo.weight_bits": str(wbits)} if wbits < 8 else {})}
        return self.node("Conv", [x, w, *self.scales(c, size)], c, bits, meta, width=self.grid, top=(kh - 1) // 2 if top is None else top, left=(kw - 1) // 2 if left is None else left)[1]

    def mvu(self, x, n, bits=8, parts=1):
        k = self.width[x][0]
        w = self.numbers(lambda i: self.rng.integers(-128, 128, (k, n)).astype(np.int8), TensorProto.INT8)
        return self.node("MVU", [x, w, *self.scales(n, k ** 0.5 * 64 * 20 / (1 if bits == 8 else 64))], n, bits, {"mlo.parts": str(parts)} if parts > 1 else {})[1]

    def requant(self, x):
        c = self.width[x][0]
        fill = lambda v: self.numbers(lambda i: np.full(c, v, np.int32), TensorProto.INT32)
        return self.node("Requant", [x, fill(3), fill(20000), fill(22)], c, 8)[1]

    def add(self, x, y): return self.node("Add", [x, y, self.numbers(lambda i: ints(1 << 13, 3 << 12, 14), TensorProto.INT32)], self.width[x][0], 16)[1]

    def norm(self, x):
        c = self.width[x][0]
        gain, p = self.numbers(lambda i: self.rng.integers(6000, 12000, c).astype(np.int32), TensorProto.INT32), self.numbers(lambda i: np.array([1000, 6], np.int64), TensorProto.INT64)
        return self.node("LayerNorm", [x, gain, self.numbers(lambda i: self.rng.integers(-99, 99, c).astype(np.int32), TensorProto.INT32), p], c, 8, center=1)[1]

    def framenorm(self, x, eps=100000, center=1):
        c = self.width[x][0]
        gain, p = self.numbers(lambda i: self.rng.integers(6000, 12000, c).astype(np.int32), TensorProto.INT32), self.numbers(lambda i: np.array([eps, 6], np.int64), TensorProto.INT64)
        return self.node("FrameNorm", [x, gain, self.numbers(lambda i: self.rng.integers(-99, 99, c).astype(np.int32), TensorProto.INT32), p], c, 8, center=center)[1]

    def attention(self, x, heads):
        c = self.width[x][0] // 3
        parts = ["%s_%d" % (x, i) for i in range(3)]
        self.constants.append(helper.make_tensor(x + "_parts", TensorProto.INT64, [3], [c, c, c]))
        self.nodes.append(helper.make_node("Split", [x, x + "_parts"], parts, axis=-1))
        for p in parts: self.width[p] = (c, 8)
        return self.node("Attention", [*parts, "mask", self.numbers(lambda i: ints(20000, 24, 16384, 15), TensorProto.INT32)], c, 8, heads=heads, lt=cores.clog2(self.tokens))[1]

    def made(self, name, y, layers):
        """As a file, with floats at both ends."""
        m = self.model(y, layers)
        g = m.graph
        for p, values in self.values.items(): g.initializer.append(numpy_helper.from_array(np.stack([values(i) for i in range(layers)]), "all_" + p))
        g.initializer.append(numpy_helper.from_array(np.float32(2 ** -12), "step"))
        dims = [1, self.tokens, self.channels]
        for values, other in (g.input, "floats"), (g.output, "made"):
            del values[:]
            values.append(helper.make_tensor_value_info(other, TensorProto.FLOAT, dims))
        g.value_info.extend(helper.make_tensor_value_info(v, TensorProto.INT16, dims) for v in ("x0", "y0"))
        g.node.insert(0, helper.make_node("Quantize", ["floats", "step"], ["x0"], domain="mlo", to=TensorProto.INT16, lo=low(16), hi=high(16)))
        g.node.append(helper.make_node("Dequantize", ["y0", "step"], ["made"], domain="mlo"))
        m.functions.extend(functions(18).functions)
        m.metadata_props[0].value = "quantize"
        return t.write(name + ".onnx", m.SerializeToString())


def plain(kh, kw, width, rows, channels, layers=2, **more):
    """x + conv(x)."""
    def build(name):
        b = Body(width, rows, channels)
        return b.made(name, b.add(b.conv(b.x, kh, kw, 16, **more), b.x), layers)
    return build


def convnext(k, width, rows, channels, layers=2, inner=3, meta=()):
    """ConvNeXt's block: window, norm, two matrices, and what came in."""
    def build(name):
        b = Body(width, rows, channels)
        y = b.mvu(b.mvu(b.norm(b.conv(b.requant(b.x), k, k, 16, meta=meta)), inner * channels), channels, 16)
        return b.made(name, b.add(y, b.x), layers)
    return build


def poolformer(k, width, rows, channels, layers=2, inner=2, center=1):
    """PoolFormer's: norms of whole frames, a window, two matrices."""
    def build(name):
        b = Body(width, rows, channels)
        x = b.add(b.conv(b.framenorm(b.x, center=center), k, k, 16, edges=True), b.x)
        return b.made(name, b.add(b.mvu(b.mvu(b.framenorm(x, center=center), inner * channels), channels, 16), x), layers)
    return build


def segformer(k, width, rows, channels, heads, layers=2):
    """Attention, and a window between two matrices."""
    def build(name):
        b = Body(width, rows, channels)
        x = b.add(b.mvu(b.attention(b.mvu(b.norm(b.x), 3 * channels, parts=3), heads), channels, 16), b.x)
        y = b.mvu(b.conv(b.mvu(b.norm(x), 2 * channels), k, k, wbits=5), channels, 16)
        return b.made(name, b.add(y, x), layers)
    return build


def twice(width, rows, channels, layers=2):
    """Two windows one behind the other, beside one."""
    def build(name):
        b = Body(width, rows, channels)
        x = b.requant(b.x)
        return b.made(name, b.add(b.add(b.conv(b.conv(x, 3, 3), 5, 3, 16), b.conv(x, 1, 5, 16, left=4)), b.x), layers)
    return build


CORES = {   # how it is made, flags of compile, runs of the bench
    "3 x 3 over 5 x 9": (plain(3, 3, 9, 5, 6), ["--pe", 2, "--simd", 3], [[], ["--stall", 40, "--seed", 3], ["--frames", 3, "--frame-tokens", "45,7,20"]]),
    "7 x 7 over 1 x 7": (plain(7, 7, 7, 1, 5), ["--pe", 5, "--simd", 7], [[], ["--frames", 4]]),
    "5 x 5 over 7 x 7, a lane": (plain(5, 5, 7, 7, 3), ["--pe", 1, "--simd", 1], [[]]),
    "along a sequence, causal": (plain(4, 1, 1, 12, 4, top=3), ["--pe", 4, "--simd", 1, "--frames-in-flight", 2], [["--frames", 4], ["--frames", 4, "--frame-tokens", "12,3,1,9", "--stall", 20, "--seed", 6]]),
    "ConvNeXt's block": (convnext(7, 7, 5, 6), ["--pe", 3, "--simd", 7], [[], ["--stall", 30, "--seed", 5, "--frames", 2], ["--axi-latency", 60]]),
    "ConvNeXt's block, two frames": (convnext(3, 4, 4, 8), ["--target-cycles", 4000, "--frames-in-flight", 2], [["--frames", 4]]),
    "resident": (convnext(5, 5, 3, 4, 3), ["--pe", 4, "--simd", 5, "--memory", "resident"], [[], ["--frames", 3, "--stall", 30, "--seed", 7]]),
    "row blocks": (convnext(3, 3, 3, 8), ["--pe", 2, "--simd", 3, "--memory", "block", "--tile", 4], [["--frames", 2]]),
    "SegFormer's layer": (segformer(3, 4, 3, 8, 2), ["--pe", 4, "--simd", 4], [[], ["--frames", 2, "--stall", 20, "--seed", 8]]),
    "windows behind and beside windows": (twice(5, 9, 4), ["--pe", 2, "--simd", 3], [[], ["--stall", 50, "--seed", 9]]),
    "PoolFormer's layer": (poolformer(3, 5, 3, 4), ["--pe", 2, "--simd", 3], [[], ["--frames", 3], ["--frames", 3, "--frame-tokens", "15,7,4", "--stall", 30, "--seed", 5]]),
    "PoolFormer's layer, two frames": (poolformer(3, 6, 5, 8, 3), ["--pe", 4, "--simd", 1, "--frames-in-flight", 2], [["--frames", 4], ["--frames", 4, "--stall", 30, "--seed", 6]]),
    "windows with weights at all borders": (plain(5, 4, 7, 5, 3, top=3, left=1, edges=True), ["--pe", 3, "--simd", 2], [[], ["--stall", 40, "--seed", 3], ["--frames", 3, "--frame-tokens", "35,9,17"]]),
    "a narrow bus": (convnext(3, 5, 3, 8), ["--pe", 8, "--simd", 3, "--axi-width", 32], [["--frames", 2, "--stall", 50, "--seed", 9]]),
}


def check_cores():
    if not t.have("cores with convolutions", "iverilog"): return
    exact = runs = 0
    for name, (build, flags, plays) in CORES.items():
        path = t.at("core-" + name.replace(" ", "-").replace("'", "").replace(",", ""))
        t.good("compile", build(os.path.basename(path)), *flags, "-o", path)
        for play in plays:
            r = Run(path, *play)
            given = dict(zip(play, play[1:]))
            tokens = sum(map(int, given["--frame-tokens"].split(","))) if "--frame-tokens" in given else None
            why = r.why(tokens)
            if not why and not {"--stall", "--frame-tokens"} & given.keys():
                runs += 1
                exact += r.cycles == r.predicted_cycles
                if abs(r.cycles - r.predicted_cycles) > r.cycles // 100: why = "%d cycles, predicted %d" % (r.cycles, r.predicted_cycles)
                t.note("%s %s: %s cycles, predicted %s" % (name, " ".join(map(str, play)), r.cycles, r.predicted_cycles))
            t.case("core with convolutions: %s %s" % (name, " ".join(map(str, play))), why)
    t.note("predicted to the cycle: %d of %d" % (exact, runs))


def check_verilator():
    """PoolFormer's layer: frames shorter than the longest, behind each other."""
    if not t.have("PoolFormer in both simulators", "iverilog", "verilator"): return
    build, flags, _ = CORES["PoolFormer's layer"]
    path = t.at("core-in-verilator")
    t.good("compile", build(os.path.basename(path)), *flags, "-o", path)
    for play, tokens in (["--frames", 3, "--frame-tokens", "15,7,4"], 26), (["--frames", 2], 30):
        icarus, verilator = Run(path, *play), Run(path, *play, verilator=True)
        why = icarus.why(tokens) or verilator.why(tokens)
        if not why and icarus.timing() != verilator.timing(): why = "Icarus says %s, Verilator %s" % (icarus.timing(), verilator.timing())
        t.case("the same words and cycles in Icarus and Verilator: PoolFormer's layer %s" % " ".join(map(str, play)), why)


# ---- models of PyTorch ------------------------------------------------------------------------------------------------------------------

# by a part of the name: what the refusal's line has to say
REFUSED = {"dilated": "Conv1 (Conv): a convolution with a dilation", "grouped": "Conv1 (Conv): a convolution of several channels with each other"}


def check_exports():
    if not t.have("exports", "iverilog"): return
    paths = sorted(glob.glob(os.path.join(t.tests, "models", "conv", "*.onnx")))
    due = t.drawn(paths, 3, name=os.path.basename)              # compiled are all
    for path in paths:
        m = test_families.Model(path)
        m.words = next((words for part, words in REFUSED.items() if part in m.name), "")
        m.compile()
        if path in due: m.judge()
        if m.near != "" or m.words: t.note("%-24s %s" % (m.name, "cosine %.4f, %s cycles" % (m.near, m.cycles) if m.near != "" else "refused: " + m.words))
        t.case("export %s" % m.name, m.verdict())
    for name, change, words in MISSES:
        near = test_families.Model(t.at("poolformer_%s-d18-none-a.onnx" % name))
        model = onnx.load(os.path.join(t.tests, "models", "conv", "poolformer-d18-none-d.onnx"))
        change(model)
        onnx.save(model, near.path)
        near.words = words
        near.compile()
        if not words: near.judge()
        t.case("PoolFormer, %s: %s" % (name.replace("_", " "), "refused" if words else "as the float model"), near.verdict())


def changed(op, **given):
    """Attributes of all nodes of an operator, others."""
    def change(model):
        for n in model.graph.node:
            if n.op_type != op: continue
            kept = [a for a in n.attribute if a.name not in given]
            del n.attribute[:]
            n.attribute.extend(kept + [helper.make_attribute(k, v) for k, v in given.items()])
    return change


def in_groups(model):
    """Norms of two groups."""
    for n in model.graph.node:
        if n.op_type != "InstanceNormalization": continue
        for p in model.graph.initializer:
            if p.name in n.input[1:]: p.CopyFrom(numpy_helper.from_array(np.repeat(numpy_helper.to_array(p).ravel()[:1], 2), p.name))
        back = next(m for m in model.graph.node if m.output[0] == n.input[0])
        for p in model.graph.initializer:
            if p.name == back.input[1]: p.CopyFrom(numpy_helper.from_array(np.array([1, 2, -1], np.int64), p.name))


def shifted(model):
    """Convolutions of one number that look at another token, though as many come out: pads and steps of 2."""
    h, w = (d.dim_value // 4 for d in model.graph.input[0].type.tensor_type.shape.dim[2:])
    for n in model.graph.node:
        attributes = {a.name: a for a in n.attribute}
        if n.op_type != "Conv" or list(attributes["kernel_shape"].ints) != [1, 1]: continue
        attributes["strides"].ints[:] = [2, 2]
        attributes["pads"].ints[:] = [1, 1, h - 2, w - 2]


# PoolFormers that are nearly one
MISSES = [("with another epsilon", changed("InstanceNormalization", epsilon=0.25), ""), ("with a pool of 5", changed("AveragePool", kernel_shape=[5, 5], pads=[2, 2, 2, 2]), ""),
          ("with a pool of 2 and 3", changed("AveragePool", kernel_shape=[2, 3], pads=[1, 1, 0, 1]), ""), ("that counts zeros", changed("AveragePool", count_include_pad=1), ""),
          ("of two groups", in_groups, "a norm over the channels of several tokens, but not of one group"),
          ("with steps of 2 over padding", shifted, "a convolution with a stride"),
          ("with a dilation", changed("AveragePool", dilations=[2, 2], pads=[2, 2, 2, 2]), "a convolution with a dilation")]


def pooled_line(kernel, pads, less, zeros=1):
    """A model whose three layers mix nine tokens by an average along their line, less the token itself or not."""
    rng, m, x = np.random.default_rng(kernel), Written(), "x"
    add = m.add
    for _ in range(3):
        n = add("Transpose", add("LayerNormalization", x, rng.uniform(0.5, 1.5, 8), rng.standard_normal(8) / 9), perm=[0, 2, 1])
        y = add("AveragePool", n, kernel_shape=[kernel], pads=list(pads), count_include_pad=zeros)
        x = add("Add", x, add("Transpose", add("Sub", y, n) if less else y, perm=[0, 2, 1]))
        n = add("LayerNormalization", x, rng.uniform(0.5, 1.5, 8), rng.standard_normal(8) / 9)
        x = add("Add", x, add("MatMul", add("Relu", add("MatMul", n, rng.standard_normal((8, 16)) / 3)), rng.standard_normal((16, 8)) / 4))
    return m.model([1, 9, 8], x)


def check_lines():
    """Averages along a line of tokens: of windows that count what is beyond the border as zeros the float model's numbers; of others, a refusal."""
    for kernel, pads, less in ((3, (1, 1), True), (5, (2, 2), False), (2, (1, 0), True), (4, (1, 2), False), (1, (0, 0), False)):
        model = pooled_line(kernel, pads, less)
        x = np.random.default_rng(9).standard_normal((4, 1, 9, 8)).astype(np.float32)
        np.savez(t.at("line.npz"), x=x[:, 0])
        t.good("quantize", t.write("line.onnx", model.SerializeToString()), "--calib", t.at("line.npz"), "--onnx", "-o", t.at("integers.onnx"))
        want, got = (np.concatenate([execute(m, {"x": one})[0].ravel() for one in x]).astype(float) for m in (model, onnx.load(t.at("integers.onnx"))))
        near = want @ got / np.linalg.norm(want) / np.linalg.norm(got)
        t.case("an average of %d tokens%s" % (kernel, ", less the token" if less else ""), "" if near > 0.998 else "cosine %.4f" % near)
    p = t.call("quantize", t.write("line.onnx", pooled_line(3, (1, 1), True, 0).SerializeToString()), text=True)
    t.case("refused: an average of fewer tokens at the border", "" if p.returncode == 4 and "along a line of tokens" in p.stderr else "status %d: %s" % (p.returncode, p.stderr))


# ---- foldings --------------------------------------------------------------------------------------------------------------------------

def check_foldings():
    model = convnext(9, 9, 2, 12)("foldings")
    def folded(*flags):
        shown = json.loads(t.call("show", "--json", input=t.good("fold", model, *flags)).stdout)
        return [(k["pe"], k["simd"]) for k in shown["kernels"] if k["op"] == "Conv"]
    for flags, want in ((("--pe", 1), (1, 1)), (("--pe", 5, "--simd", 2), (4, 1)), (("--pe", 12, "--simd", 8), (12, 3)), (("--pe", 2, "--simd", 9), (2, 9))):
        got = folded(*flags)
        t.case("PE and SIMD of a window of 9 x 9, 12 channels, %s" % " ".join(map(str, flags)), "" if got == [want] else "%s, not %s" % (got, want))
    lines = [json.loads(line) for line in t.good("fold", model, "--pareto").decode().splitlines()]
    used = {(line["folding"]["conv_0"]["PE"], line["folding"]["conv_0"]["SIMD"]) for line in lines}
    t.case("foldings of the front divide channels and columns", "" if len(lines) > 3 and len(used) > 2 and all(12 % p == 0 and 9 % s == 0 for p, s in used) else "%d lines, %s" % (len(lines), used))
    for entry, word in (({"PE": 5}, "PE=5 does not divide the channels; the nearest that do are 4 or 6"), ({"SIMD": 7}, "SIMD=7 does not divide the columns of the window; the nearest that do are 3 or 9"),
                        ({"memory": "block"}, "memory block is of the rows of a matrix")):
        p = t.call("fold", model, "--folding", t.write("folding.json", json.dumps({"conv_0": entry})), "-o", t.at("folded.json"))
        t.case("refused: a folding %s" % entry, "" if p.returncode == 1 and word in p.stderr.decode() else "status %d: %s" % (p.returncode, p.stderr.decode()))
    p = t.call("compile", convnext(3, 3, 3, 4, meta={"mlo.pow2": "1"})("odd"), "-o", t.at("odd"))
    t.case("refused: multipliers that are no powers of two where metadata say so", "" if p.returncode == 3 and "is no power of two" in p.stderr.decode() else "status %d: %s" % (p.returncode, p.stderr.decode()))
    b = Body(3, 3, 4)
    narrow = b.made("narrow", b.add(b.conv(b.x, 3, 3, 16, meta={"mlo.weight_bits": "3"}), b.x), 2)
    p = t.call("compile", narrow, "-o", t.at("narrow"))
    t.case("refused: weights of more bits than metadata say", "" if p.returncode == 3 and "does not fit 3 bits" in p.stderr.decode() else "status %d: %s" % (p.returncode, p.stderr.decode()))


if __name__ == "__main__": t.main(check_words, check_frames, check_floats, check_refusals, check_cores, check_verilator, check_exports, check_lines, check_foldings, floor=107)
