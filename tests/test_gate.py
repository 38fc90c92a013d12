#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Products of two values of a loop become Mul: what is one, what is not, and how near the integers come.

    python tests/test_gate.py path/to/mlo [NAME ...]

Encoders with one kind of product each, written node by node: their kernels; words of `mlo run` and of ONNX Runtime, equal; how near these are to the
floats; some in Verilator or Icarus: words, and cycles as predicted."""
import json
import os
import subprocess
import numpy as np
import onnx
from onnx import helper, numpy_helper
import graphs
import harness as t
from encoders import Encoder, WORDS
from hardware import Run

TOKENS = 6


class Gates(Encoder):
    """An encoder whose feed-forward layer is `forward`."""
    inner, opset = 40, 20

    def __init__(self, norm="pre"): super().__init__(2, 24, 3, 8, self.inner, TOKENS, norm, "Relu")
    def number(self, v): return self.init("number%r" % v, np.float32(v))
    def ints(self, *v): return self.init("ints" + "_".join(map(str, v)), np.array(v, np.int64))
    def up(self, x, p, name="up"): return self.linear(x, self.hidden, self.inner, p + name)
    def gate(self, x, p): return self.up(x, p, "gate")
    def silu(self, x): return self.node("Mul", x, self.node("Sigmoid", x))
    def mlp(self, x, p): return self.linear(self.forward(x, p), self.inner, self.hidden, p + "down")
    def forward(self, x, p): return self.node("Mul", self.silu(self.gate(x, p)), self.up(x, p))

    def model(self):
        m = super().model()
        m.opset_import[0].version = self.opset
        return m


class Operator(Gates):
    """A function that is one operator."""
    def __init__(self, op, opset=20, **attributes):
        super().__init__()
        self.op, self.opset, self.attributes = op, opset, attributes

    def forward(self, x, p): return self.node("Mul", self.up(x, p), self.node(self.op, self.gate(x, p), **self.attributes))


class Bilinear(Gates):
    def forward(self, x, p): return self.node("Mul", self.gate(x, p), self.up(x, p))


class Factors(Gates):
    """0.5 ((2 silu(g)) (u / 3)): constants everywhere."""
    def forward(self, x, p):
        y = self.node("Mul", self.node("Mul", self.number(2.0), self.silu(self.gate(x, p))), self.node("Div", self.up(x, p), self.number(3.0)))
        return self.node("Mul", y, self.number(0.5))


class Square(Gates):
    """A function of one value."""
    def forward(self, x, p):
        y = self.node("Relu", self.up(x, p))
        return self.node("Mul", y, y)


class One(Gates):
    """silu(u) u tanh(u): products, and a function of one value all the same."""
    def forward(self, x, p):
        y = self.up(x, p)
        return self.node("Mul", self.node("Mul", self.silu(y), y), self.node("Tanh", y))


class Sides(Gates):
    """Another function on either side of 0 (Apertus's xIELU)."""
    def forward(self, x, p):
        y = self.up(x, p)
        right = self.node("Mul", self.number(0.8), self.node("Mul", y, y))
        left = self.node("Mul", self.number(0.6), self.node("Sub", self.node("Sub", self.node("Exp", self.node("Min", y, self.number(-1e-6))), self.number(1.0)), y))
        return self.node("Add", self.node("Where", self.node("Greater", y, self.number(0.0)), right, left), self.node("Mul", y, self.number(0.5)))


class Spectrum(Gates):
    """Tokens mixed by an operator that mlo does not know (FNet)."""
    def attention(self, x, bias, p):
        y = self.node("DFT", self.node("Unsqueeze", x, self.ints(-1)))
        return self.node("Squeeze", self.node("Slice", y, self.ints(0), self.ints(1), self.ints(3)), self.ints(3))


class Three(Gates):
    def forward(self, x, p): return self.node("Mul", self.node("Mul", self.node("Sigmoid", self.gate(x, p)), self.up(x, p)), self.up(x, p, "more"))


class Highway(Gates):
    """x sigmoid(x W): an operand that others read, too; the product joins the residual stream."""
    def mlp(self, x, p): return self.node("Mul", x, self.node("Sigmoid", self.linear(x, self.hidden, self.hidden, p + "gate")))


class GatedAttention(Gates):
    """What attention makes times sigmoid(x W), before the output projection."""
    def mlp(self, x, p): return super().mlp(x, p)

    def linear(self, x, k, n, name):
        if name.endswith("output"): x = self.node("Mul", x, self.node("Sigmoid", super().linear(self.read, self.hidden, k, name + ".gate")))
        return super().linear(x, k, n, name)

    def attention(self, x, bias, p):
        self.read = x
        return super().attention(x, bias, p)


class Outliers(Gates):
    """Channels of `up` from 1/40 to 40 times the others: the rows of `down` make up for it."""
    def draw(self, name, *shape, by=1.0):
        by = np.geomspace(1 / 40, 40, self.inner) if "up" in name else np.geomspace(40, 1 / 40, self.inner)[:, None] * by if name.endswith("down.weight") else by
        if "up.weight" in name: by = by * self.hidden ** -0.5
        return super().draw(name, *shape, by=by)


class Quantized(Gates):
    """QDQ, as ONNX Runtime quantizes: unsigned numbers with zero points, of both operands and of the product."""
    def rounded(self, x, scale, zero):
        given = self.init("scale%r" % scale, np.float32(scale)), self.init("zero%d" % zero, np.uint8(zero))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *given), *given)

    def forward(self, x, p):
        gate, up = self.rounded(self.silu(self.gate(x, p)), 0.02, 14), self.rounded(self.up(x, p), 0.03, 121)
        return self.rounded(self.node("Mul", gate, up), 0.06, 101)


class Packed(Gates):
    """Gate and up out of one projection."""
    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x, p):
        y, n = self.linear(x, self.hidden, 2 * self.inner, p + "both"), self.inner
        if self.how == "split":
            parts = [p + "a", p + "b"]
            self.nodes.append(helper.make_node("Split", [y, self.ints(n, n)], parts, name=p + "split", axis=-1))
        elif self.how == "slices": parts = [self.node("Slice", y, self.ints(i * n), self.ints(i * n + n), self.ints(2)) for i in range(2)]
        elif self.how == "every other": parts = [self.node("Slice", y, self.ints(i), self.ints(2 * n), self.ints(2), self.ints(2)) for i in range(2)]
        elif self.how == "pairs":
            y = self.shaped(y, 1, self.tokens, n, 2)
            parts = [self.node("Gather", y, self.init("at%d" % i, np.array(i, np.int64)), axis=3) for i in range(2)]
        else:                           # halves: [1, T, 2, F], transposed to have the halves in front
            y = self.node("Transpose", self.shaped(y, 1, self.tokens, 2, n), perm=[2, 0, 1, 3])
            parts = [self.node("Squeeze", self.node("Slice", y, self.ints(i), self.ints(i + 1), self.ints(0)), self.ints(0)) for i in range(2)]
        return self.node("Mul", self.silu(parts[0]), parts[1])


class Affine(Gates):
    """A factor and an offset per channel in place of each norm (MobileBERT's); how: which of them, and in which spelling."""
    def __init__(self, how="both", low=0.4, offset=0.1, norm="post"):
        super().__init__(norm)
        self.how, self.low, self.offset = how, low, offset

    def layernorm(self, x, name):
        if name == "norm": return super().layernorm(x, name)
        w = self.init(name + ".weight", self.rng.uniform(self.low, 0.8, self.hidden).astype(np.float32))
        b = self.draw(name + ".bias", self.hidden, by=self.offset)
        if self.how == "offset": return self.node("Add", b, self.node("Mul", x, self.number(0.6)))
        x = self.node("Mul", *((w, x) if self.how == "turned" else (x, w)))
        return x if self.how == "factor" else self.node("Add", x, b)


class Stepped(Affine):
    """The steps of the stream in front of the factors are given."""
    def layernorm(self, x, name):
        given = self.init("step", np.float32(0.05)), self.init("none", np.int8(0))
        return super().layernorm(x if name == "norm" else self.node("DequantizeLinear", self.node("QuantizeLinear", x, *given), *given), name)


class Places(Gates):
    """A row for each position that every layer adds: to what queries and keys are made of (DETR), or behind itself (YOLOS)."""
    def __init__(self, how, norm="post", own=False, by=1.0, shape=(TOKENS, 24)):
        super().__init__(norm)
        self.how, self.own, self.by, self.shape, self.known = how, own, by, shape, {}

    def rows(self, p):
        name = (p if self.own else "") + "rows"
        return name if name in self.inits else self.draw(name, *self.shape, by=self.by)

    def linear(self, x, k, n, name):
        if self.how == "queries" and name.endswith(("query", "key")):
            if (name[:8], x) not in self.known: self.known[name[:8], x] = self.node("Add", x, self.rows(name[:8]))
            x = self.known[name[:8], x]
        return super().linear(x, k, n, name)

    def layer(self, x, bias, p):
        x = super().layer(x, bias, p)
        return self.node("Add", self.rows(p), x) if self.how == "layers" else x

    def model(self):
        self.known = {}
        return super().model()


class Asked(Places):
    """Rows that the model's input picks."""
    def rows(self, p): return self.node("Gather", super().rows(p), self.node("Mod", "input_ids", self.init("most", np.array(TOKENS, np.int64))))


FEED_FORWARD = {"MVU": 1, "MVUTable": 1}
GATE, TABLE = ("MVU", "MVUTable", "Mul", "MVU"), ("MVUTable", "MVU")
# what the layer has behind its attention
PRODUCTS = {
    "silu": (Gates(), GATE), "post-norm": (Gates("post"), GATE), "sigmoid": (Operator("Sigmoid"), GATE), "relu": (Operator("Relu"), GATE), "tanh": (Operator("Tanh"), GATE),
    "gelu": (Operator("Gelu"), GATE), "gelu by tanh": (Operator("Gelu", approximate="tanh"), GATE), "hard swish": (Operator("HardSwish"), GATE), "mish": (Operator("Mish"), GATE),
    "swish": (Operator("Swish", 24), GATE), "softplus": (Operator("Softplus"), GATE), "elu": (Operator("Elu"), GATE), "selu": (Operator("Selu"), GATE), "softsign": (Operator("Softsign"), GATE),
    "bilinear": (Bilinear(), ("MVU", "MVU", "Mul", "MVU")), "factors": (Factors(), GATE), "square of relu": (Square(), TABLE), "of one value": (One(), TABLE), "of either side": (Sides(), TABLE),
    "three": (Three(), ("MVUTable", "MVU", "Mul", "MVU", "Mul", "MVU")), "highway": (Highway(), ("MVUTable", "Mul")), "outliers": (Outliers(), GATE),
    "packed, split": (Packed("split"), GATE), "packed, slices": (Packed("slices"), GATE), "packed, every other": (Packed("every other"), GATE),
    "packed, pairs": (Packed("pairs"), GATE), "packed, halves": (Packed("halves"), GATE)}


def saved(encoder):
    m = encoder.model()
    onnx.save(m, t.at("m.onnx"))
    return m, t.at("m.onnx")


def body_of(path): return [n for n in graphs.body(graphs.scans(onnx.load(path))[0]).node if n.domain == "mlo"]


def cosine(a, b): return float(np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b)))


def compared(m, integers):
    """'' or where mlo and ONNX Runtime differ; the least cosine with the floats."""
    worst = 1.0
    for seed in range(3):
        f = {"input_ids": np.random.default_rng(seed).integers(0, WORDS, (1, TOKENS))}
        np.savez(t.at("in.npz"), **f)
        t.good("run", integers, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        right, judged = graphs.execute(m, f)[0], graphs.execute(onnx.load(integers), f)[0]
        with np.load(t.at("out.npz")) as z: ours = z["last_hidden_state"]
        if not np.allclose(ours, judged, atol=1e-5): return "mlo and ONNX Runtime differ by %g" % np.abs(ours - judged).max(), 0      # the last norm is of floats
        worst = min(worst, cosine(right, ours))
    return "", worst


def lowered(path, *flags):
    t.good("lower", path, *flags, "--onnx", "-o", t.at("lowered.onnx"))
    return t.at("lowered.onnx")


def reference(m):
    """A model that ONNX Runtime can run: it has no Swish yet."""
    m = onnx.ModelProto.FromString(m.SerializeToString())
    nodes = []
    for n in m.graph.node:
        if n.op_type == "Swish": nodes += [helper.make_node("Sigmoid", [n.input[0]], [n.output[0] + "_s"]), helper.make_node("Mul", [n.input[0], n.output[0] + "_s"], n.output)]
        else: nodes.append(n)
    del m.graph.node[:]
    m.graph.node.extend(nodes)
    return m


def check_products():
    for name, (encoder, kernels) in PRODUCTS.items():
        m, path = saved(encoder)
        low = lowered(path)
        ops = [n.op_type for n in body_of(low)]
        got = [op for op in ops[ops.index("Attention") + 2:] if op in ("MVU", "MVUTable", "Mul")]       # the first MVU is attention's own
        t.case("kernels: " + name, "" if sorted(got) == sorted(kernels) else " ".join(got))
        why, near = compared(reference(m), low)
        t.case("near the floats: %s, %.4f" % (name, near), why or ("" if near >= 0.995 else "cosine %.4f" % near))


def check_given():
    """A quantized model keeps its scales; the product's zero, which no product of streams has, is added behind it."""
    m, path = saved(Quantized())
    nodes = {n.output[0]: n for n in body_of(lowered(path))}
    mul = next(n for n in nodes.values() if n.op_type == "Mul")
    after = next(n for n in nodes.values() if n.input[0] == mul.output[0])
    scale = [set(graphs.meta(n)["mlo.scale"].split()) for n in (mul, after)]
    t.case("a product's scale and zero are the model's", "" if after.op_type == "Requant" and scale == [{"%.9g" % np.float32(0.06)}] * 2 else "%s %s" % (after.op_type, scale))
    why, near = compared(m, t.at("lowered.onnx"))
    t.case("near the quantized model, %.4f" % near, why or ("" if near >= 0.995 else "cosine %.4f" % near))


def check_attention():
    m, path = saved(GatedAttention())
    low = lowered(path)
    ops = [n.op_type for n in body_of(low)]
    t.case("kernels: attention times a gate", "" if ops.count("Mul") == 2 and ops.index("Mul") > ops.index("Attention") else " ".join(ops))
    why, near = compared(m, low)
    t.case("near the floats: attention times a gate, %.4f" % near, why or ("" if near >= 0.995 else "cosine %.4f" % near))


def stacked(m, name):
    """A parameter of all iterations."""
    scan = graphs.scans(m)[0]
    names = [i.name for i in graphs.body(scan).input]
    outside = scan.input[names.index(name)]
    return numpy_helper.to_array(next(i for i in m.graph.initializer if i.name == outside))


def check_options():
    """Widths of the operands, scales in powers of two, a q_config by type."""
    m, path = saved(Gates())
    mul = next(n for n in body_of(lowered(path)) if n.op_type == "Mul")
    made = {n.output[0]: n for n in body_of(t.at("lowered.onnx"))}
    t.case("operands have 16 bits, the product no more than linear layers take", "" if all(graphs.attribute(made[x], "to").i == onnx.TensorProto.INT16 for x in mul.input[:2]) else str(mul))
    low = onnx.load(lowered(path, "--scale", "pow2"))
    p = stacked(low, next(n for n in body_of(t.at("lowered.onnx")) if n.op_type == "Mul").input[2])
    t.case("a product's multipliers are powers of two", "" if all(v > 0 and v & (v - 1) == 0 for v in p[:, 0].tolist()) else str(p))
    why, near = compared(m, t.at("lowered.onnx"))
    t.case("near the floats in powers of two, %.4f" % near, why or ("" if near >= 0.99 else "cosine %.4f" % near))
    config = {"by": "type", "mul": {"config": {"name": "integer", "data_in_width": 12, "data_in_frac_width": 8, "data_out_width": 8, "data_out_frac_width": 4}}}
    with open(t.at("q.json"), "w") as f: json.dump(config, f)
    nodes = {n.output[0]: n for n in body_of(lowered(path, "--q-config", t.at("q.json")))}
    mul = next(n for n in nodes.values() if n.op_type == "Mul")
    scales = [set(graphs.meta(nodes[x])["mlo.scale"].split()) for x in (mul.input[0], mul.input[1], mul.output[0])]
    t.case("a q_config fixes a product's operands and result", "" if scales == [{"%.9g" % 2.0 ** -8}] * 2 + [{"%.9g" % 2.0 ** -4}] and graphs.meta(nodes[mul.input[0]])["mlo.bits"] == "12" else str(scales))
    stacks = stacked(onnx.load(t.at("lowered.onnx")), mul.input[2])
    t.case("and its multiplier is theirs", "" if all(m * 2.0 ** -s == 2.0 ** (4 - 16) for m, s in stacks.tolist()) else str(stacks))
    t.good("quantize", path, "--report", t.at("r.json"), "-o", t.at("q.onnx"))
    with open(t.at("r.json")) as f: r = json.load(f)["quantize"]
    shares = sum(sum(v["share"]) for v in r["values"] if "share" in v) + r["input"]["share"]
    own = [s for v in r["values"] if v["op"] == "Mul" for s in v["share"]]
    t.case("the product has its share of the noise, and all make one", "" if len(own) == 2 and 0 < min(own) and max(own) < 0.3 and abs(shares - 1) < 1e-3 else "%s, %s in all" % (own, shares))


def check_outliers():
    """Factors per channel bring the product 8 bits in all channels: without them most would have a few steps."""
    m, path = saved(Outliers())
    t.good("quantize", path, "--max-cost", "1", "--report", t.at("r.json"), "-o", t.at("q.onnx"))
    with open(t.at("r.json")) as f: r = json.load(f)["quantize"]
    mul = next(v for v in r["values"] if v["op"] == "Mul")
    shapes = [np.ravel(s) for s in mul["shapes"]]
    t.case("the product has factors per channel", "" if all(len(s) == 40 and s.max() / s.min() > 100 for s in shapes) else str(mul["shapes"])[:200])
    t.case("and so has the operand, the same", "" if [v["shapes"] for v in r["values"] if v["op"] == "MVU" and "shapes" in v and len(np.ravel(v["shapes"][0])) == 40] == [mul["shapes"]] else "no")


def check_affine():
    """A factor and an offset per channel of the residual stream are a Requant behind each sum."""
    for how in "both", "factor", "offset", "turned":
        m, path = saved(Affine(how))
        nodes = body_of(lowered(path))
        sums = [n.output[0] for n in nodes if n.op_type == "Add"]
        behind = [[n.op_type for n in nodes if s in n.input] for s in sums]
        t.case("kernels: a norm's place, " + how, "" if behind == [["Requant"]] * 2 else str(behind))
        why, near = compared(m, t.at("lowered.onnx"))
        t.case("near the floats: a norm's place, %s, %.4f" % (how, near), why or ("" if near >= 0.998 else "cosine %.4f" % near))
    m, path = saved(Affine(offset=2.0, norm="pre"))                # what linear layers alone read has a zero and factors per channel
    why, near = compared(m, lowered(path))
    t.case("near the floats: in front of the sublayers, %.4f" % near, why or ("" if near >= 0.998 else "cosine %.4f" % near))
    m, path = saved(Affine(low=0.01, offset=20.0))
    why, near = compared(m, lowered(path))
    t.case("offsets far beyond the stream, %.4f" % near, why or ("" if near >= 0.998 else "cosine %.4f" % near))


def check_places():
    """What every layer adds by position is a Place: of the stream, or of what linear layers read; its numbers have 16 bits, whatever the stream's steps are."""
    for name, encoder in {"queries and keys": Places("queries"), "queries and keys, of each layer": Places("queries", "pre", own=True), "between layers": Places("layers", "pre", own=True),
                          "behind a norm": Places("layers"), "far above the stream": Places("layers", "pre", by=40.0), "[1, tokens, channels]": Places("layers", "pre", shape=(1, TOKENS, 24))}.items():
        m, path = saved(encoder)
        for scale in (), ("--scale", "pow2"):
            ops = [n.op_type for n in body_of(lowered(path, *scale))]
            why, near = compared(m, t.at("lowered.onnx"))
            t.case("places: %s%s, %.4f" % (name, ", powers of two" * bool(scale), near),
                   why or ("%d Places" % ops.count("Place") if ops.count("Place") != 1 else "" if near >= (0.99 if scale else 0.995) else "cosine %.4f" % near))


class Broadcast(Gates):
    """One gate for all channels."""
    def forward(self, x, p): return self.node("Mul", self.up(x, p), self.node("Sigmoid", self.linear(x, self.hidden, 1, p + "gate")))


def check_refusals():
    by_place = "is no constant of a number for each token and channel"
    for name, encoder, words in (("one gate for all channels", Broadcast(), "40 channels and 6 of 1; give both as many"), ("a factor below 0", Affine(low=-0.4), "factors above 0"),
                                 ("a number for each position", Places("layers", shape=(TOKENS, 1)), by_place), ("rows that an input picks", Asked("queries"), by_place), ("a Fourier transform", Spectrum(), "mlo does not know DFT, which is in every layer")):
        p = t.call("quantize", saved(encoder)[1], text=True)
        line = p.stderr.strip().splitlines()[-1]
        t.case("refused: " + name, "" if p.returncode == 4 and words in line else "status %d: %s" % (p.returncode, line))
    p = t.call("quantize", saved(Stepped(offset=30.0))[1], "-o", t.at("stepped.json"), text=True)
    told = "roundings of values are left out" in p.stderr and "offsets of up to 127 steps of the stream, are supported" in p.stderr
    t.case("offsets of more steps than a word has, steps given: others are chosen, with a word", "" if not p.returncode and told else "status %d: %s" % (p.returncode, p.stderr[-300:]))


def simulated(name, encoder, *flags, sim=(), verilator=True):
    _, path = saved(encoder)
    out = t.at("build-" + name.replace(" ", "-").replace(",", ""))
    t.good("compile", path, "-o", out, *flags)
    r = Run(out, *sim, verilator=verilator)
    with open(os.path.join(out, "manifest.json")) as f: foretold = json.load(f)["predicted_cycles"]
    t.case("%s: words, and cycles as predicted" % name, r.why() or ("" if sim or r.cycles == foretold else "%s cycles, predicted %s" % (r.cycles, foretold)))


def check_hardware():
    if not t.have("products in Icarus", "iverilog"): return
    simulated("silu in Icarus", Gates(), "--pe", "4", "--simd", "4", verilator=False)
    simulated("the smallest core", Three(), "--pe", "1", "--simd", "1", verilator=False)
    simulated("multipliers that are shifts", Gates("post"), "--pe", "8", "--simd", "8", "--scale", "pow2", verilator=False)
    simulated("attention times a gate", GatedAttention(), "--pe", "2", "--simd", "8", verilator=False)
    simulated("a norm's place", Affine(), "--pe", "4", "--simd", "4", sim=("--stall", "30"), verilator=False)


def check_placed():
    """Words and cycles of one of three a day, with frames in flight, stalls and resident parameters; the same words in C."""
    if not t.have("places in Icarus", "iverilog"): return
    runs = {"places": (Places("queries"), ("--pe", "4", "--simd", "4"), ()), "places, resident": (Places("queries", own=True), ("--pe", "2", "--simd", "2", "--memory", "resident"), ()),
            "places, two frames in flight": (Places("layers", "pre", own=True), ("--pe", "8", "--simd", "4", "--frames-in-flight", "2"), ("--frames", "3", "--stall", "30"))}
    for name in t.drawn(runs, 3):
        encoder, flags, sim = runs[name]
        simulated(name, encoder, *flags, sim=sim, verilator=False)
    t.good("compile", saved(Places("queries", "pre", own=True))[1], "--target", "c", "-o", t.at("c"))
    p = subprocess.run(["make", "-s", "-C", t.at("c"), "test"], capture_output=True, text=True)
    t.case("places in C: words", "" if p.returncode == 0 and "PASS" in p.stdout else p.stdout[-200:] + p.stderr[-200:])


def check_verilator():
    if not t.have("products in Verilator", "verilator"): return
    simulated("two frames in flight", Highway(), "--pe", "4", "--simd", "4", "--frames-in-flight", "2")
    simulated("stalls", Gates(), "--pe", "8", "--simd", "4", sim=("--stall", "30", "--frames", "3"))


if __name__ == "__main__": t.main(check_products, check_given, check_attention, check_options, check_outliers, check_affine, check_places, check_refusals, check_hardware, check_placed, check_verilator, floor=98)
