#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Networks of integers (Deeploy's dialect) in hardware: the network's own numbers, every one.

Drawn networks of layers that repeat, beside numpy's formulas: quantize, then lower, are run by mlo and by ONNX Runtime; the core is compiled, and
simulated with pauses. MLPerf Tiny's keyword spotting (../shared/deeploy, where that is) against its golden vectors. What has no exact form in
hardware is refused, with the node and the numbers.
"""
import json, math, os, re
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper, numpy_helper
import harness as t
from harness import at, case

ort.set_default_logger_severity(4)


class Net:
    """Nodes, and beside each what it is by numpy."""

    def __init__(self, seed, x):
        self.r, self.nodes, self.own, self.value = np.random.default_rng(seed), [], [], {"x": x.astype(np.int64)}

    def add(self, op, inputs, value, **attributes):
        name = "v%d" % len(self.nodes)
        self.nodes.append(helper.make_node(op, inputs, [name], name="n%d" % len(self.nodes), **attributes))
        self.value[name] = value
        return name

    def number(self, value):
        name = "p%d" % len(self.own)
        self.own.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def shift(self, x, mul, add=0, div=65536, n=256, signed=1):
        tensor = lambda v: numpy_helper.from_array(np.array([v], np.float32))
        low = -(n // 2) if signed else 0
        y = (self.value[x] * np.asarray(mul, np.int64) + np.asarray(add, np.int64) + div // 2) // div
        return self.add("RequantShift", [x, self.number(mul), self.number(add)], np.clip(y, low, low + n - 1), div=tensor(div), n_levels_out=tensor(n), signed=tensor(signed))

    def linear(self, x, n, bias=0):
        k = self.value[x].shape[-1]
        w = self.r.integers(-128, 128, (k, n))
        y = self.add("MatMul", [x, self.number(w)], self.value[x] @ w)
        if not bias: return y
        b = self.r.integers(-bias, bias, n)
        return self.add("Add", [self.number(b), y], self.value[y] + b)

    def gemm(self, x, n):
        w, b = self.r.integers(-128, 128, (n, self.value[x].shape[-1])), self.r.integers(-999, 999, n)
        return self.add("Gemm", [x, self.number(w), self.number(b)], self.value[x] @ w.T + b, transB=1)

    def conv(self, x, n, depthwise=0):
        v = self.value[x]
        size = [3] * (v.ndim - 2) if depthwise else [1] * (v.ndim - 2)
        w = self.r.integers(-128, 128, [n, 1 if depthwise else v.shape[1], *size])
        if depthwise:
            wide, y = np.pad(v, [(0, 0), (0, 0)] + [(1, 1)] * (v.ndim - 2)), np.zeros_like(v)
            for at_ in np.ndindex(*size):
                window = tuple(slice(a, a + d) for a, d in zip(at_, v.shape[2:]))
                y += wide[(slice(None), slice(None), *window)] * w[(slice(None), 0, *at_)].reshape([-1] + [1] * (v.ndim - 2))
            return self.add("Conv", [x, self.number(w)], y, group=n, pads=[1] * 2 * (v.ndim - 2), kernel_shape=size)
        b = self.r.integers(-999, 999, n)
        y = np.tensordot(w.reshape(n, -1), v[0], 1)[None] + b.reshape([1, -1] + [1] * (v.ndim - 2))
        return self.add("Conv", [x, self.number(w), self.number(b)], y, kernel_shape=size)

    def sum(self, a, b): return self.add("Add", [a, b], self.value[a] + self.value[b])
    def product(self, a, b): return self.add("Mul", [a, b], self.value[a] * self.value[b])

    def norm(self, x, w, b=None, D=65536, n=256):
        """iRMSNorm; of a bias, iLayerNorm: as integer-dialect.md writes them down, with Python's integers."""
        v, low = self.value[x], -(n // 2)
        trunc = lambda a, by: int(abs(int(a)) // int(by)) * (1 if a >= 0 else -1)
        w, b_ = [np.broadcast_to(np.asarray(k if k is not None else 0, np.int64), v.shape[-1]) for k in (w, b)]
        y = np.zeros_like(v)
        for at_ in np.ndindex(*v.shape[:-1]):
            row = [int(a) for a in v[at_]]
            mean = trunc(sum(row), len(row)) if b is not None else 0
            r = math.isqrt(sum((a - mean) ** 2 for a in row) // len(row) + 1)
            y[at_] = [min(max((trunc((a - mean) * int(g), r) + int(o)) // D, low), low + n - 1) for a, g, o in zip(row, w, b_)]
        more = [self.number(b)] if b is not None else []
        return self.add("iLayerNorm" if more else "iRMSNorm", [x, self.number(w), *more], y, D=D, n_levels=n)

    def hardswish(self, x, sixth=42, three=181, six=362):
        v = self.value[x]
        return self.add("iHardswish", [x], v * (np.clip(v + three, 0, six) * sixth), one_over_six=sixth, three=three, six=six)

    def save(self, y, path, more=()):
        info = lambda n: helper.make_tensor_value_info(n, T.FLOAT, self.value[n].shape)
        g = helper.make_graph(self.nodes, "integers", [info("x")], [info(v) for v in (y, *more)], self.own)
        return t.write(path, helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString())


def gated(n, x):
    """Two projections, a gate, a third, a residual sum: a feed-forward block. 17 bits of mul that can be halved, and 16 odd ones."""
    a = n.shift(n.linear(x, 24, bias=3000), 1300)
    gate = n.shift(n.hardswish(a), 2)
    b = n.shift(n.shift(n.linear(x, 24), 500), n.r.integers(20000, 32768, 24), div=16384)
    y = n.shift(n.product(gate, b), 2766)
    y = n.shift(n.linear(y, 16), 700, add=700 * 5)
    return n.shift(n.sum(n.shift(x, 55896), y), 58499)


def plain(n, x):
    """Fully connected layers as MLPerf Tiny's anomaly detection has them: 0..255, by Gemm."""
    return n.shift(n.gemm(x, 16), 514, signed=0)


def grid(n, x):
    """A depthwise convolution, then one of 1 x 1, with sums of both kinds of rounding."""
    by = lambda v: np.reshape(v, [-1] + [1] * (n.value[x].ndim - 2))
    a = n.shift(n.conv(x, 8, depthwise=1), by(n.r.integers(300, 600, 8)), signed=0)
    b = n.shift(n.conv(a, 8), by(np.full(8, 257)))
    return n.shift(n.sum(n.shift(x, 32768), b), 131072, signed=0)


def seven(n, x):
    """Levels that are no power of two, a Relu, a value that two read."""
    a = n.shift(n.linear(x, 8), 900, n=200)
    b = n.add("Relu", [a], np.maximum(n.value[a], 0))
    return n.shift(n.sum(n.shift(a, 40000), n.shift(n.linear(b, 8), 600)), 65536, add=3 * 65536, n=128)


def wider(n, x):
    """What goes into the first layer is 0..255, what layers hand on is -128..127: nine bits hold both."""
    return n.shift(n.linear(x, 8), 350)


def block(n, x):
    """A decoder's two residual branches, each behind an iRMSNorm, as microLlama has them; weights of 23 bits."""
    width = n.value[x].shape[-1]
    a = n.shift(n.linear(n.norm(x, n.r.integers(2 ** 21, 2 ** 22, width)), 2 * width, bias=3000), 900)
    x = n.shift(n.sum(n.shift(x, 55896), n.shift(n.linear(a, width), 700)), 58499)
    h = n.norm(x, n.r.integers(-2 ** 22, 2 ** 22, width))
    y = n.shift(n.linear(n.shift(n.product(n.shift(n.linear(h, 8), 600), n.shift(n.linear(h, 8), 500)), 900), width), 800)
    return n.shift(n.sum(n.shift(x, 60000), y), 58499)


def encoder(n, x):
    """An encoder's layer: a branch behind an iLayerNorm, and one as a sum ends; weights of 18 bits, offsets of 16."""
    width, whole = n.value[x].shape[-1], lambda: n.r.integers(2 ** 17, 2 ** 18, n.value[x].shape[-1])
    h = n.norm(x, whole(), n.r.integers(-32768, 32768, width), D=4096)
    return n.norm(n.shift(n.sum(n.shift(x, 60000), n.shift(n.linear(h, width), 800)), 60000), whole(), n.r.integers(-32768, 32768, width), D=4096)


def few(n, x):
    """Norms to levels that are no power of two, that a table cuts; to 16 bits; one that a function reads; weights of 8 bits, one for all."""
    width = n.value[x].shape[-1]
    a = n.norm(x, n.r.integers(-128, 128, width), n.r.integers(-999, 999, width), D=2, n=100)
    b = n.norm(n.shift(n.linear(a, width), 3000, n=65536), 127, D=1, n=512)
    c = n.add("Relu", [n.norm(b, n.r.integers(1000, 9999, width), D=128)], None)
    n.value[c] = np.maximum(n.value[n.nodes[-1].input[0]], 0)
    return n.shift(n.sum(n.shift(c, 30000), x), 65536, n=128)


NETWORKS = {"block": (block, (1, 5, 16), -128), "six": (block, (1, 4, 6), -128), "seven": (block, (2, 3, 7), -128), "eighty": (block, (1, 3, 80), -128),
            "encoder": (encoder, (1, 5, 12), -128), "few": (few, (1, 6, 10), -64), "wider": (wider, (1, 4, 8), 0), "gated": (gated, (1, 5, 16), -128), "plain": (plain, (3, 16), 0), "grid": (grid, (1, 8, 3, 4), 0), "sequence": (grid, (1, 8, 7), 0),
            "levels": (seven, (1, 4, 8), -64)}


def network(name, layers=3, seed=0):
    """A model of so many layers; its input; what it makes."""
    layer, shape, low = NETWORKS[name]
    n = Net(seed, np.random.default_rng(seed + 1).integers(low, low + (128 if name in ("levels", "few") else 256), shape))
    if not low: n.value["x"] -= 128
    y = "x" if low else n.shift("x", 65536, add=128 * 65536, signed=0)
    for _ in range(layers): y = layer(n, y)
    path = n.save(y, name + ".onnx")
    np.savez(at(name + ".npz"), x=n.value["x"].astype(np.float32))
    return path, n.value["x"], n.value[y]


def differs(got, want): return "" if got.shape == want.shape and np.array_equal(got, want) else "%s of %s differ" % (np.sum(got != want) if got.shape == want.shape else got.shape, want.shape)


def of(path): return list(np.load(path).values())[0]


def check_words():
    """Three executions of one network: mlo, ONNX Runtime, Icarus; numpy judges."""
    simulated = t.have("simulation", "iverilog")
    for name in NETWORKS:
        path, x, want = network(name)
        assert len(np.unique(want)) > 9, "a network that makes next to nothing"
        for stage in ("quantize", "lower"):
            said = t.call(stage, path, "--onnx", "-o", at("stage.onnx"), text=True)
            if said.returncode: case("%s: %s" % (name, stage), said.stderr); continue
            t.good("run", at("stage.onnx"), "--inputs", at(name + ".npz"), "--outputs", at("out.npz"))
            case("%s: %s is the network's integers" % (name, stage), differs(of(at("out.npz")), want))
            got = ort.InferenceSession(at("stage.onnx")).run(None, {"x": x.astype(np.float32)})[0]
            case("%s: %s in ONNX Runtime" % (name, stage), differs(got, want))
        if name in ("block", "encoder"):
            t.good("compile", at("stage.onnx"), "-o", at("c"), "--target", "c")
            p = t.call("sim", at("c"))
            case("%s: lowered, as C, its test passes" % name, p.stderr.decode() if p.returncode or not json.loads(p.stdout)["pass"] else "")
        if not simulated: continue
        t.good("compile", path, "-o", at(name))
        p = t.call("sim", at(name), "--inputs", at(name + ".npz"), "--outputs", at("out.npz"), "--simulator", "icarus", "--stall", "30", "--seed", "3")
        case("%s: the core makes the network's integers" % name, p.stderr.decode() if p.returncode else differs(of(at("out.npz")).reshape(want.shape), want))
        host = ort.InferenceSession(at(name + "/host/core.onnx"))
        turned = name in ("grid", "sequence")
        feed = (np.moveaxis(x, 1, -1) if turned else x) + 128 * (not NETWORKS[name][2])         # (moved in front of the loop)
        got = host.run(None, {host.get_inputs()[0].name: feed.reshape(1, -1, feed.shape[-1]).astype(np.int16)})[0].reshape(feed.shape)
        if turned: got = np.moveaxis(got, -1, 1)
        case("%s: host/core.onnx in ONNX Runtime" % name, differs(got, want))
        s = json.loads(t.call("sim", at(name), "--simulator", "icarus").stdout)
        near = abs(s["cycles"] - s["predicted_cycles"]) <= 0.01 * s["cycles"]
        case("%s: its bench passes, in the cycles foretold" % name, "" if s["pass"] and near else str(s)[:200])


def check_layers():
    """What a table or a word is of one layer is not another's: networks whose layers round differently."""
    def layers(what, layer):
        n = Net(5, np.random.default_rng(6).integers(-128, 128, (1, 4, 8)))
        y = "x"
        for i in range(4): y = layer(n, y, i)
        np.savez(at("layers.npz"), x=n.value["x"].astype(np.float32))
        t.good("lower", n.save(y, "layers.onnx"), "--onnx", "-o", at("stage.onnx"))
        t.good("run", at("stage.onnx"), "--inputs", at("layers.npz"), "--outputs", at("out.npz"))
        case(what, differs(of(at("out.npz")), n.value[y]))

    mul, levels = [900, 700, 1100, 650], [256, 200, 256, 100]
    curved = lambda n, y, i: n.hardswish(n.shift(n.linear(y, 8, bias=500), mul[i], n=levels[i]), three=[181, 90, 60, 181][i])
    layers("layers that round differently are one loop", lambda n, y, i: n.shift(curved(n, y, i), [7, 9, 30001, 11][i]))
    layers("layers of 256 levels and of 32 are one loop", lambda n, y, i: n.shift(n.linear(y, 8), mul[i], n=[256, 32, 256, 32][i]))
    layers("layers of 0..255 and of 0..127 are one loop", lambda n, y, i: n.shift(n.linear(y, 8), mul[i], n=[256, 128, 256, 128][i], signed=0))


def check_spellings():
    """What is rounded, read twice, or looked up in other places than networks mostly have it."""
    def same(what, layer, x=(1, 4, 8)):
        n = Net(7, np.random.default_rng(8).integers(-128, 128, x))
        y = "x"
        for _ in range(3): y = layer(n, y)
        np.savez(at("spelled.npz"), x=n.value["x"].astype(np.float32))
        p = t.call("lower", n.save(y, "spelled.onnx"), "--onnx", "-o", at("stage.onnx"), text=True)
        if p.returncode: return case(what, p.stderr)
        t.good("run", at("stage.onnx"), "--inputs", at("spelled.npz"), "--outputs", at("out.npz"))
        case(what, differs(of(at("out.npz")), n.value[y]))

    def clip(n, x, most): return n.add("Clip", [x, "", n.number(most)], np.minimum(n.value[x], most))

    def relu(n, x): return n.add("Relu", [x], np.maximum(n.value[x], 0))

    def deep(n, x):
        y = n.shift(n.linear(x, 8), 600)
        for _ in range(18): y = relu(n, y)
        return n.shift(y, 65536)

    def twice(n, x):
        both = n.sum(n.shift(n.linear(x, 8), 600), x)
        return n.shift(n.sum(n.shift(both, 30000), n.shift(both, 20000)), 60000)

    def batched(n, x):
        w = n.r.integers(-99, 99, (1, 8, 8))
        return n.shift(n.add("MatMul", [x, n.number(w)], n.value[x] @ w), 700)

    same("a sum that nothing rounds, in a product", lambda n, x: n.shift(n.product(n.sum(n.shift(n.linear(x, 8), 300, n=64), n.shift(x, 8000)), x), 700))
    same("a sum that two roundings read", twice)
    same("a Clip without a least number", lambda n, x: n.shift(clip(n, n.shift(n.linear(x, 8), 600), 50), 90000))
    same("a function longer than a table's chain", deep)
    same("an add for each channel behind a function", lambda n, x: n.shift(relu(n, n.shift(n.linear(x, 8), 600)), 30000, add=30000 * n.r.integers(-9, 9, 8)))
    same("weights that are a batch of one", batched)
    same("a convolution of 1 x 1 behind a number for each channel", lambda n, x: n.shift(n.conv(n.shift(x, n.r.integers(30000, 32768, (8, 1)), div=32768), 8), 700), x=(1, 8, 5))


def check_kernels():
    """A matrix is there once, however many read its sums' rounding; and widths are what roundings say, not what is learned."""
    for name, matrices, widths in (("levels", 2, {7, 8, 9}), ("gated", 3, {8, 9}), ("plain", 1, {9}), ("wider", 1, {9})):
        t.good("quantize", network(name)[0], "--report", at("report.json"), "-o", at("stage.json"))
        values = json.loads(t.read(at("report.json")))["quantize"]["values"]
        got = sum(v["op"].startswith("MVU") for v in values), {v["bits"] for v in values}
        case("%s: %d matrices, streams of %s bits" % (name, matrices, sorted(widths)), "" if got == (matrices, widths) else str(got))


def check_refusals():
    def bad(what, layer, said, status=4, x=(1, 4, 8), loop=3):
        n = Net(1, np.random.default_rng(2).integers(-100, 100, x))
        y = "x"
        for _ in range(loop): y = layer(n, y)
        p = t.call("quantize", n.save(y, "bad.onnx"), text=True)
        ok = p.returncode == status and said in p.stderr and re.search("mlo: quantize: (n[0-9]+|loop) ", p.stderr)
        case(what + " is refused", "" if ok else "status %d: %s" % (p.returncode, p.stderr))

    n = Net(1, np.random.default_rng(2).integers(-128, 128, (1, 4, 8)))
    inner, y = [], "x"
    for _ in range(3):
        inner.append(n.shift(n.linear(y, 8), 600))
        y = n.shift(n.sum(y, n.shift(n.hardswish(inner[-1]), 7)), 40000)
    p = t.call("quantize", n.save(y, "taps.onnx", inner), text=True)
    case("values that leave every layer are refused", "" if p.returncode == 4 and "leaves every layer of a network of integers" in p.stderr else p.stderr)

    def weights(n, x, by):
        w = n.r.integers(-99, 99, (8, 8)) * by
        return n.shift(n.add("MatMul", [x, n.number(w)], n.value[x] @ np.asarray(w, np.int64)), 512)

    def norm(*given, op="iRMSNorm", D=65536, n_levels=256):
        """A norm of x (None) and these numbers, in their order."""
        def layer(n, x):
            y = n.add(op, [x if v is None else n.number(v) for v in given], n.value[x], D=D, n_levels=n_levels)
            return n.shift(n.linear(y, 8) if n.value[x].ndim < 3 or n.value[x].shape[1] != 8 else n.conv(y, 8), 700)
        return layer

    def unrounded(n, x):
        y = n.linear(x, 8)
        return n.shift(n.add("Relu", [y], np.maximum(n.value[y], 0)), 700)

    bad("add that is no multiple of mul", lambda n, x: n.shift(n.linear(x, 8), 700, add=701), "mul 700, add 701, div 65536 (channel 0)")
    bad("mul of 16 bits, odd, behind a matrix", lambda n, x: n.shift(n.linear(x, 8), 40001), "mul 40001, ")
    bad("div that is no power of two", lambda n, x: n.shift(n.linear(x, 8), 512, div=60000), "div 60000 ")
    bad("a product whose odd mul has 16 bits", lambda n, x: n.shift(n.product(n.shift(n.linear(x, 8), 600), x), 40001, div=2 ** 22), "mul 40001, ")
    bad("a weight beyond 8 bits", lambda n, x: weights(n, x, 3), "weights of 8 bits")
    bad("a weight that is no integer", lambda n, x: weights(n, x, 0.5), "integers", status=3)
    bad("a matrix whose sums nothing rounds", unrounded, "RequantShift has to follow")
    per = lambda n: n.r.integers(300, 900, 8)
    thin = lambda n, x: n.add("Add", [n.shift(n.linear(x, 1), 600), x], n.value[x])
    rows = lambda n, x: n.add("Add", [n.linear(x, 8), n.number(n.r.integers(-9, 9, (4, 8)))], n.value[x])
    bad("a sum whose channels have a mul each", lambda n, x: n.shift(n.sum(n.shift(n.linear(x, 8), 600), x), per(n), div=512), "one mul for all channels")
    bad("a mul below 0", lambda n, x: n.shift(n.linear(x, 8), -512), "mul -512, ")
    bad("a sum of 8 channels and one", lambda n, x: n.shift(thin(n, x), 65536), "streams of 1 and 8 channels")
    bad("a bias for each token", lambda n, x: n.shift(rows(n, x), 512), "no kernel makes these integers exactly")
    bad("two biases", lambda n, x: n.shift(n.add("Add", [n.gemm(x, 8), n.number(per(n))], n.value[x]), 512), "no kernel makes these integers exactly", x=(4, 8))
    def gemm(**how):
        def layer(n, x):
            w, b = n.r.integers(-99, 99, (8, 8)), n.r.integers(-99, 99, 8)
            return n.shift(n.add("Gemm", [x, n.number(w), n.number(b)], n.value[x], **how), 700)
        return layer

    def product(a, b): return lambda n, x: n.shift(n.add("MatMul", [x if v is None else n.number(n.r.integers(-9, 9, v)) for v in (a, b)], n.value[x]), 512)

    def conv(shape, **how): return lambda n, x: n.shift(n.add("Conv", [x, n.number(n.r.integers(-9, 9, shape))], n.value[x], kernel_shape=shape[2:], **how), 512)

    def narrow(n, x):
        y = n.add("Conv", [x, n.number(n.r.integers(-9, 9, (8, 1, 7)))], n.value[x][:, :, :1], kernel_shape=[7], group=8)
        return n.shift(n.add("Add", [x, n.shift(y, 512)], n.value[x]), 60000)

    def table(n, x):
        """A function of 21 bits that two read, so that no rounding is in its table."""
        y = n.hardswish(n.shift(n.linear(x, 8), 600))
        return n.shift(n.product(y, n.shift(y, 2)), 700)

    none, huge = "no kernel makes these integers exactly", 2.0 ** 31 - 128
    biased = lambda b, add: lambda n, x: n.shift(n.add("Add", [n.linear(x, 8), n.number(np.full(8, b))], n.value[x]), 700, add=700 * add)
    bad("a bias of 40 bits", biased(2.0 ** 40, 0), "has to be one of 32 bits", status=3)
    bad("a bias and an add of more than 32 bits", biased(huge, 999), "mul 700, add 699300, ")
    bad("a bias and an add below 32 bits", biased(-huge, -999), "mul 700, add -699300, ")
    bad("a div of 0 within a layer", lambda n, x: n.shift(n.add("RequantShift", [n.linear(x, 8), n.number(7), n.number(0)], n.value[x], **{k: numpy_helper.from_array(np.array([v], np.float32)) for k, v in (("div", 0), ("n_levels_out", 256), ("signed", 1))}), 512), "", status=3)
    bad("a sum whose channels have an add each", lambda n, x: n.shift(n.sum(n.shift(n.linear(x, 8), 600), x), 30000, add=30000 * np.arange(8)), "one mul for all channels")
    bad("a mul for 4 of 8 channels", lambda n, x: n.shift(n.add("RequantShift", [n.linear(x, 8), n.number(np.full(4, 9.0)), n.number(0)], n.value[x], **{k: numpy_helper.from_array(np.array([v], np.float32)) for k, v in (("div", 256), ("n_levels_out", 256), ("signed", 1))}), 512), none)
    bad("a mul for each place, not each channel", lambda n, x: n.shift(n.shift(n.conv(x, 8), np.arange(900, 905)), 60000), none, x=(1, 8, 5))
    bad("a table of numbers beyond a stream's", table, "streams have 16 bits at most")
    bad("a number added to a stream", lambda n, x: n.shift(n.add("Add", [n.shift(n.linear(x, 8), 600), n.number(per(n))], n.value[x]), 512), none)
    bad("a stream times a number for each channel", lambda n, x: n.shift(n.add("Mul", [n.number(per(n)), n.shift(n.linear(x, 8), 600)], n.value[x]), 512), none)
    bad("a product that mixes tokens", product((1, 4, 4), None), none)
    bad("a product of a stream with itself", product(None, None), none, x=(1, 8, 8))
    bad("a product of another matrix for each token", product(None, (4, 8, 8)), "a product of this form (weights [4,8,8])", x=(4, 1, 8))
    bad("a product along places", lambda n, x: n.shift(product(None, (5, 5))(n, n.shift(n.conv(x, 8), 600)), 512), "channels are in front of their places", x=(1, 8, 5))
    for how in ({"alpha": 2.0}, {"beta": 2.0}, {"transA": 1}): bad("a Gemm with %s" % list(how)[0], gemm(**how), "a product of this form", x=(8, 8))
    bad("a layer of no channels", lambda n, x: n.shift(n.linear(n.shift(n.linear(x, 0), 600), 8), 600), "the layers work on 4 tokens")
    bad("a convolution that leaves one place", narrow, "the layers work on 7 tokens", x=(1, 8, 7))
    bad("a convolution of 1 x 1 that skips rows", conv((8, 8, 1, 1), strides=[2, 1]), "a convolution with a stride", x=(1, 8, 1, 5))
    bad("a convolution of 1 that moves places", conv((8, 8, 1), pads=[1, -1]), "several channels with each other", x=(1, 8, 5))
    bad("a batch of two, convolved", conv((8, 8, 1)), "layers hand on [2,8,5]", x=(2, 8, 5))
    bad("layers that hand on a list", product(None, (8, 8)), "layers hand on [8]", x=(8,))
    w8 = np.full(8, 9000.0)
    bad("a norm whose D is no power of two", norm(None, w8, D=60000), "D is 60000 in iteration 0; hardware divides a norm by powers of two: scale its weights")
    bad("a norm whose D is negative", norm(None, w8, w8, op="iLayerNorm", D=-2), "D is -2 in iteration 0")
    bad("a norm whose D is 0", norm(None, w8, D=0), "divides by zero", status=3)
    bad("a norm by weights that are no integers", norm(None, w8 + 0.5), "integers", status=3)
    bad("a norm by a weight of 40 bits", norm(None, w8 * 2.0 ** 27), "has to be one of 32 bits", status=3)
    bad("a norm by weights of each token", norm(None, np.full((4, 8), 9.0)), none)
    bad("a norm with an offset for each token", norm(None, w8, np.full((4, 8), 9.0), op="iLayerNorm"), none)
    bad("a norm by a stream", norm(None, None), none)
    bad("a norm whose weights are in front of its stream", norm(np.full((1, 4, 8), 9000.0), None), none)
    bad("a norm along places", norm(None, np.full(5, 9.0)), none, x=(1, 8, 5))
    bad("a norm to levels of 14 bits, no power of two", norm(None, w8, n_levels=9999), "a function of numbers of 14 bits; tables have indices of 12 at most")
    bad("a norm beyond a stream's 16 bits", norm(None, w8, D=1, n_levels=2 ** 17), "streams have 16 bits at most")
    bad("a table of too many numbers", lambda n, x: n.shift(n.hardswish(n.shift(n.linear(x, 8), 600, n=65536)), 7), "indices of 12 at most")
    bad("a convolution of channels with each other", lambda n, x: n.shift(n.add("Conv", [x, n.number(n.r.integers(-9, 9, (8, 8, 3)))], n.value[x], pads=[1, 1], kernel_shape=[3]), 700),
        "several channels with each other", x=(1, 8, 5))


def check_options():
    """What would choose integers changes nothing, and says so."""
    path, _, want = network("plain")
    for option in (["--weights", "4"], ["--activations", "10"], ["--scale", "pow2"], ["--max-error", "0.1"]):
        p = t.call("quantize", path, *option, "--onnx", "-o", at("stage.onnx"), text=True)
        t.good("run", at("stage.onnx"), "--inputs", at("plain.npz"), "--outputs", at("out.npz"))
        good = p.returncode == 0 and "warning: quantize: %s changes nothing" % option[0] in p.stderr and not differs(of(at("out.npz")), want)
        case("%s changes nothing" % option[0], "" if good else "status %d: %s" % (p.returncode, p.stderr))


def check_keywords():
    """MLPerf Tiny's keyword spotting, and its golden vectors: every day as lowered, in Verilog every third. (Not in ONNX Runtime: it is of
    opset 10, at which Pow has no integers, and kernels' functions need them.)"""
    place = t.beside("keyword spotting", "deeploy")
    if not place: return
    place = os.path.join(place, "Models__MLPerf__KeywordSpotting")
    want = of(os.path.join(place, "outputs.npz"))
    np.savez(at("in.npz"), input=of(os.path.join(place, "inputs.npz")).astype(np.float32))
    t.good("lower", os.path.join(place, "network.onnx"), "--onnx", "-o", at("stage.onnx"))
    t.good("run", at("stage.onnx"), "--inputs", at("in.npz"), "--outputs", at("out.npz"))
    case("keyword spotting: lowered, its outputs are the golden ones", differs(of(at("out.npz")), want))
    if "keyword spotting" not in t.drawn(["keyword spotting", "nothing", "nothing"], 3) or not t.have("simulation", "iverilog"): return
    t.good("compile", os.path.join(place, "network.onnx"), "-o", at("kws"), "--simd", "16", "--pe", "16")
    p = t.call("sim", at("kws"), "--inputs", at("in.npz"), "--outputs", at("out.npz"), "--simulator", "icarus")
    case("keyword spotting: the core's outputs are the golden ones", p.stderr.decode() if p.returncode else differs(of(at("out.npz")), want))


t.main(check_words, check_layers, check_spellings, check_kernels, check_refusals, check_options, check_keywords, floor=150)
