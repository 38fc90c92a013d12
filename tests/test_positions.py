#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rotary position embedding, written in many ways: whatever exporters write becomes the same two integer kernels.

Each spelling is a model of its own, written node by node. ONNX Runtime says what its floats are; the quantized model has to be near to them, and
ONNX Runtime and mlo have to agree on it bit for bit. Near misses, which are another function, are refused by name."""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper

import graphs
import harness as t
from test_spellings import Spelled, cosine

THETA = 30.0            # of so few positions: angles from 1 to a few hundredths


def angles(tokens, pairs, theta=THETA): return np.arange(tokens)[:, None] * theta ** (-np.arange(pairs) / pairs)


class Turned(Spelled):
    """transformers' rotate_half on [1, H, T, D]: x cos + Concat(-x2, x1) sin."""
    theta, turning = THETA, 8

    def tables(self, p, repeat=lambda a: np.concatenate([a, a], 1)):
        a = repeat(angles(self.tokens, self.turning // 2, self.theta))
        return np.cos(a).astype(np.float32), np.sin(a).astype(np.float32)

    def constants(self, p, *shape, **options): return [self.init("%s%s" % (n, "_".join(map(str, shape))), a.reshape(shape)) for n, a in zip(("cos", "sin"), self.tables(p, **options))]
    def slice(self, x, start, end, axis=-1, step=1): return self.node("Slice", x, self.ints(start), self.ints(end), self.ints(axis), self.ints(step))
    def halves(self, x): return self.slice(x, 0, self.turning // 2), self.slice(x, self.turning // 2, self.turning)
    def plus(self, a, b): return self.node("Add", a, b)
    def times(self, a, b): return self.node("Mul", a, b)

    def rotated(self, x):
        a, b = self.halves(x)
        return self.node("Concat", self.node("Neg", b), a, axis=-1)

    def turned_head(self, x, p):
        """[1, H, T, D] -> [1, H, T, D]"""
        cos, sin = self.constants(p, 1, 1, self.tokens, self.turning)
        return self.plus(self.times(x, cos), self.times(self.rotated(x), sin))

    def query(self, x, p): return self.heads_of(self.linear(x, self.hidden, self.heads * self.head, p + "query"))
    def key(self, x, p): return self.heads_of(self.linear(x, self.hidden, self.heads * self.head, p + "key"))

    def projections(self, x, p):
        v = self.heads_of(self.linear(x, self.hidden, self.heads * self.head, p + "value"))
        return self.turned(self.turned_head(self.query(x, p), p), self.turned_head(self.key(x, p), p), v)


class TokenMajor(Turned):
    """Turned as [1, T, H, D], transposed to heads behind."""
    def heads_of(self, x, order=(0, 2, 1, 3)): return self.shaped(x, 1, self.tokens, self.heads, self.head)
    def projections(self, x, p):
        q, k, v = super().projections(x, p)
        return self.node("Transpose", q, perm=[0, 2, 1, 3]), self.node("Transpose", k, perm=[0, 3, 1, 2]), self.node("Transpose", v, perm=[0, 2, 1, 3])
    def turned(self, q, k, v): return q, self.node("Transpose", k, perm=[0, 1, 3, 2]), v
    def projections(self, x, p):
        wide = self.heads * self.head
        q, k = (self.turned_head(self.shaped(self.linear(x, self.hidden, wide, p + n), 1, self.tokens, self.heads, self.head), p) for n in ("query", "key"))
        v = self.shaped(self.linear(x, self.hidden, wide, p + "value"), 1, self.tokens, self.heads, self.head)
        q, k, v = (self.node("Transpose", y, perm=[0, 2, 1, 3]) for y in (q, k, v))
        return self.turned(q, k, v)
    def turned_head(self, x, p):
        cos, sin = self.constants(p, 1, self.tokens, 1, self.turning)
        return self.plus(self.times(x, cos), self.times(self.rotated(x), sin))


class SplitHalves(Turned):
    def halves(self, x):
        n = len(self.nodes)
        self.nodes.append(helper.make_node("Split", [x, self.ints(4, 4)], ["lo%d" % n, "hi%d" % n], name="split%d" % n, axis=-1))
        return "lo%d" % n, "hi%d" % n


class GatheredHalves(Turned):
    def halves(self, x): return self.node("Gather", x, self.ints(0, 1, 2, 3), axis=-1), self.node("Gather", x, self.ints(4, 5, 6, 7), axis=-1)


class OneByOne(Turned):
    """A part for each channel: eight, the most that are joined."""
    def rotated(self, x):
        parts = [self.slice(x, i, i + 1) for i in range(8)]
        return self.node("Concat", *(self.node("Neg", y) for y in parts[4:]), *parts[:4], axis=-1)


class Minus(Turned):
    """x cos - Concat(x2, -x1) sin"""
    def rotated(self, x):
        a, b = self.halves(x)
        return self.node("Concat", b, self.node("Neg", a), axis=-1)
    def plus(self, a, b): return self.node("Sub", a, b)


class HalfTables(Turned):
    """Concat(x1 cos - x2 sin, x2 cos + x1 sin), tables [T, D/2]: the original paper's, flash attention's."""
    def turned_head(self, x, p):
        cos, sin = self.constants(p, self.tokens, self.turning // 2, repeat=lambda a: a)
        a, b = self.halves(x)
        return self.node("Concat", self.node("Sub", self.times(a, cos), self.times(b, sin)), self.plus(self.times(b, cos), self.times(a, sin)), axis=-1)


class Neighbours(Turned):
    """GPT-J, GLM: rotate_every_two, by slices with a step of two; tables repeat each angle."""
    def rotated(self, x):
        a, b = self.slice(x, 0, self.turning, step=2), self.slice(x, 1, self.turning, step=2)
        pair = [self.node("Unsqueeze", y, self.ints(-1)) for y in (self.node("Neg", b), a)]
        return self.shaped(self.node("Concat", *pair, axis=-1), 1, self.heads, self.tokens, self.turning)
    def turned_head(self, x, p):
        cos, sin = self.constants(p, self.tokens, self.turning, repeat=lambda a: np.repeat(a, 2, 1))
        return self.plus(self.times(cos, x), self.times(self.rotated(x), sin))


class Complex(Turned):
    """Llama's original: pairs as complex numbers, which in real arithmetic is [.., D/2, 2]."""
    def turned_head(self, x, p):
        cos, sin = self.constants(p, 1, 1, self.tokens, self.turning // 2, repeat=lambda a: a)
        y = self.shaped(x, 1, self.heads, self.tokens, self.turning // 2, 2)
        re, im = (self.node("Gather", y, self.whole(i), axis=-1) for i in range(2))
        real, imaginary = self.node("Sub", self.times(re, cos), self.times(im, sin)), self.plus(self.times(re, sin), self.times(im, cos))
        both = self.node("Concat", *(self.node("Unsqueeze", v, self.ints(4)) for v in (real, imaginary)), axis=4)
        return self.shaped(both, 1, self.heads, self.tokens, self.turning)


class Flat(Turned):
    """llama2.c's run.c: all heads of a token in one go, [T, H D/2, 2], tables repeated for each head."""
    def projections(self, x, p):
        wide = self.heads * self.head
        cos, sin = self.constants(p, self.tokens, wide // 2, 1, repeat=lambda a: np.tile(a, (1, self.heads)))
        def turn(y):
            y = self.shaped(y, self.tokens, wide // 2, 2)
            a, b = self.slice(y, 0, 1), self.slice(y, 1, 2)
            return self.node("Concat", self.node("Sub", self.times(a, cos), self.times(b, sin)), self.plus(self.times(a, sin), self.times(b, cos)), axis=-1)
        q, k = (self.heads_of(turn(self.linear(x, self.hidden, wide, p + n))) for n in ("query", "key"))
        return self.turned(q, k, self.heads_of(self.linear(x, self.hidden, wide, p + "value")))


class Partial(Turned):
    """GPT-NeoX, Phi: the first half of each head's channels turns, in halves; the rest stays."""
    turning = 4
    def turned_head(self, x, p): return self.node("Concat", super().turned_head(self.slice(x, 0, self.turning), p), self.slice(x, self.turning, self.head), axis=-1)


class PartialNeighbours(Neighbours):
    """GLM-4."""
    turning = 4
    def turned_head(self, x, p): return self.node("Concat", super().turned_head(self.slice(x, 0, self.turning), p), self.slice(x, self.turning, self.head), axis=-1)


class Prefix(Turned):
    """DINOv3, EVA-02: a class token and registers in front do not turn."""
    def turned_head(self, x, p):
        rest = self.slice(x, 2, self.tokens, 2)
        cos, sin = (self.init(n, a[2:]) for n, a in zip(("cosines", "sines"), self.tables(p)))
        return self.node("Concat", self.slice(x, 0, 2, 2), self.plus(self.times(rest, cos), self.times(self.rotated(rest), sin)), axis=2)


class ScaledBefore(Turned):
    """1 / sqrt(D) on the queries, before they turn."""
    def query(self, x, p): return self.times(super().query(x, p), self.number(self.head ** -0.5))
    def scores(self, q, k): return self.node("MatMul", q, k)


class ScaledBehind(Turned):
    """1 / D^(1/4) on both, behind."""
    def turned_head(self, x, p): return self.times(super().turned_head(x, p), self.number(self.head ** -0.25))
    def scores(self, q, k): return self.node("MatMul", q, k)


class Stretched(Turned):
    """YaRN: both tables are multiplied by a factor above 1."""
    def tables(self, p, **options): return [a * np.float32(1.3) for a in super().tables(p, **options)]


class Other(Turned):
    """The other way round: by minus the angle."""
    def tables(self, p, **options):
        cos, sin = super().tables(p, **options)
        return cos, -sin


class PerLayer(Turned):
    """Gemma 3, ModernBERT: other angles in other layers."""
    def constants(self, p, *shape, **options):
        self.theta = 30.0 if p.startswith("layer.0") else 7.0
        return [self.init(p + n, a.reshape(shape)) for n, a in zip(("cos", "sin"), self.tables(p, **options))]


class Computed(Turned):
    """The tables are computed in the model: cos(positions x frequencies)."""
    def constants(self, p, *shape, **options):
        if not hasattr(self, "made") or self.made[0] is not self.nodes:
            place = self.init("positions", np.arange(self.tokens, dtype=np.float32).reshape(self.tokens, 1))
            a = self.times(place, self.init("frequencies", (THETA ** (-np.arange(4) / 4)).astype(np.float32).reshape(1, 4)))
            a = self.shaped(self.node("Concat", a, a, axis=-1), *shape)
            self.made = self.nodes, [self.node("Cos", a), self.node("Sin", a)]
        return self.made[1]


class InTheBody(Turned):
    """... in each layer."""
    def constants(self, p, *shape, **options):
        place = self.init("positions", np.arange(self.tokens, dtype=np.float32).reshape(self.tokens, 1))
        a = self.times(place, self.draw(p + "frequencies", 1, 4, by=0.3))
        a = self.shaped(self.node("Concat", a, a, axis=-1), *shape)
        return self.node("Cos", a), self.node("Sin", a)


class Packed(Turned):
    """ModernBERT: one projection to [1, T, 3, H, D]."""
    def projections(self, x, p):
        y = self.node("Transpose", self.shaped(self.packed(x, p), 1, self.tokens, 3, self.heads, self.head), perm=[2, 0, 3, 1, 4])
        q, k, v = (self.node("Gather", y, self.whole(i), axis=0) for i in range(3))
        return self.turned(self.turned_head(q, p), self.turned_head(k, p), v)


class Normed(Turned):
    """OLMo 2: queries and keys are normed, all heads at once, before they turn."""
    def normed(self, x, p):
        y = self.linear(x, self.hidden, self.heads * self.head, p)
        power = self.node("ReduceMean", self.times(y, y), self.ints(-1))
        y = self.node("Div", y, self.node("Sqrt", self.plus(power, self.number(1e-6))))
        return self.heads_of(self.times(y, self.init(p + "gain", (1 + 0.3 * self.rng.standard_normal(self.heads * self.head)).astype(np.float32))))
    def query(self, x, p): return self.normed(x, p + "query")
    def key(self, x, p): return self.normed(x, p + "key")


class NormedEach(Normed):
    """Cohere, Chameleon: each head by itself, with gains of its own."""
    def normed(self, x, p):
        y = self.shaped(self.linear(x, self.hidden, self.heads * self.head, p), 1, self.tokens, self.heads, self.head)
        y = self.node("Div", y, self.node("Sqrt", self.plus(self.node("ReduceMean", self.times(y, y), self.ints(-1)), self.number(1e-6))))
        gains = self.init(p + "gain", (1 + 0.3 * self.rng.standard_normal((self.heads, self.head))).astype(np.float32))
        return self.node("Transpose", self.times(y, gains), perm=[0, 2, 1, 3])


class SequenceFirst(Turned):
    """[T, 1, C], heads as a batch: [H, T, D]."""
    def start(self, x): return self.node("Transpose", x, perm=[1, 0, 2])
    def heads_of(self, x, order=None): return self.node("Transpose", self.shaped(x, self.tokens, self.heads, self.head), perm=[1, 0, 2])
    def constants(self, p, *shape, **options): return super().constants(p, *shape[1:], **options)
    def turned(self, q, k, v): return q, self.node("Transpose", k, perm=[0, 2, 1]), v
    def joined(self, y): return self.shaped(self.node("Transpose", y, perm=[1, 0, 2]), self.tokens, 1, self.heads * self.head)


class Operator(Turned):
    """ONNX's RotaryEmbedding on [1, H, T, D], rows by position, in halves."""
    opset, options = 23, {}
    def positions(self): return [self.init("at", np.arange(self.tokens, dtype=np.int64)[None])]
    def turned_head(self, x, p):
        cos, sin = self.constants(p, *([self.tokens] if self.positions() else [1, self.tokens]), self.turning // 2, repeat=lambda a: a)
        return self.node("RotaryEmbedding", x, cos, sin, *self.positions(), **self.options)


class OperatorPartial(Operator):
    turning, options = 4, {"rotary_embedding_dim": 4, "interleaved": 1}
    def positions(self): return []


class OperatorFlat(Operator):
    """... on [1, T, C], pairs that are neighbours, a row a token: the one spelling that all become."""
    options = {"num_heads": 3, "interleaved": 1}
    def positions(self): return []
    def projections(self, x, p):
        q, k, v = (self.linear(x, self.hidden, self.heads * self.head, p + n) for n in ("query", "key", "value"))
        return self.turned(*(self.heads_of(y) for y in (self.turned_head(q, p), self.turned_head(k, p), v)))


class OperatorPacked(OperatorFlat):
    """... on a part of a projection."""
    def projections(self, x, p):
        wide, qkv = self.heads * self.head, self.packed(x, p)
        q, k, v = (self.slice(qkv, i * wide, (i + 1) * wide) for i in range(3))
        return self.turned(*(self.heads_of(y) for y in (self.turned_head(q, p), self.turned_head(k, p), v)))


class Latent(Turned):
    """DeepSeek's and MiniCPM3's latent attention: of each head's channels the first are a norm's behind a narrow projection, the rest turn and are the same for all heads; values are narrower."""
    turning, rank, value = 4, 10, 6
    def normed(self, x, n, name):
        squares = self.node("ReduceMean", self.node("Mul", x, x), self.ints(-1))
        return self.node("Mul", self.node("Div", x, self.node("Sqrt", self.node("Add", squares, self.number(1e-6)))), self.init(name, (1 + 0.3 * self.rng.standard_normal(n)).astype(np.float32)))

    def heads_of(self, x, d): return self.node("Transpose", self.shaped(x, 1, self.tokens, self.heads, d), perm=[0, 2, 1, 3])
    def joined(self, y): return self.shaped(self.node("Transpose", y, perm=[0, 2, 1, 3]), 1, self.tokens, self.heads * self.value)
    def filled(self, still, turns): return self.node("Concat", still, turns, axis=-1)
    def queries(self, x, p): return self.heads_of(self.linear(self.normed(self.linear(x, self.hidden, 12, p + "qa"), 12, p + "qn"), 12, self.heads * self.head, p + "qb"), self.head)

    def attention(self, x, bias, p):
        still, q = self.head - self.turning, self.queries(x, p)
        q = self.node("Concat", self.slice(q, 0, still), self.turned_head(self.slice(q, still, self.head), p), axis=-1)
        both = self.linear(x, self.hidden, self.rank + self.turning, p + "kva")
        kv = self.heads_of(self.linear(self.normed(self.slice(both, 0, self.rank), self.rank, p + "kvn"), self.rank, self.heads * (still + self.value), p + "kvb"), still + self.value)
        turns = self.turned_head(self.shaped(self.slice(both, self.rank, self.rank + self.turning), 1, 1, self.tokens, self.turning), p)
        k = self.filled(self.slice(kv, 0, still), self.node("Expand", turns, self.ints(1, self.heads, self.tokens, self.turning)))
        y = self.node("MatMul", self.node("Softmax", self.scores(q, self.node("Transpose", k, perm=[0, 1, 3, 2])), axis=-1), self.slice(kv, still, still + self.value))
        return self.linear(self.joined(y), self.heads * self.value, self.hidden, p + "output")


class LatentQueries(Latent):
    """DeepSeek V2 Lite: queries are one projection; values are as wide as the keys."""
    value = 8
    def queries(self, x, p): return self.heads_of(self.linear(x, self.hidden, self.heads * self.head, p + "query"), self.head)


class LatentFilled(Latent):
    """Keys are a place that is filled in two parts, as the exporter with dynamo writes it: rows of what has its channels in front."""
    def put(self, into, part, start, end):
        at = self.init("at%d_%d" % (start, end), np.arange(start, end, dtype=np.int64)[:, None])
        return self.node("ScatterND", into, at, self.node("Transpose", part, perm=[3, 0, 1, 2]))

    def filled(self, still, turns):
        y = self.init("nothing", np.zeros((self.head, 1, self.heads, self.tokens), np.float32))
        y = self.put(self.put(y, still, 0, self.head - self.turning), turns, self.head - self.turning, self.head)
        return self.node("Transpose", y, perm=[1, 2, 3, 0])


class LatentElements(Latent):
    """... as the older exporter writes it: element by element."""
    def put(self, into, part, start, end):
        at = np.stack(np.meshgrid(*(np.arange(n) for n in (1, self.heads, self.tokens)), np.arange(start, end), indexing="ij"), -1)
        return self.node("ScatterND", into, self.init("places%d_%d" % (start, end), at.astype(np.int64)), part)

    def filled(self, still, turns):
        y = self.init("nothing", np.zeros((1, self.heads, self.tokens, self.head), np.float32))
        return self.put(self.put(y, still, 0, self.head - self.turning), turns, self.head - self.turning, self.head)


class LowRank(Turned):
    """Queries with an adapter of low rank beside their projection, turned."""
    def query(self, x, p): return self.heads_of(self.plus(self.linear(x, self.hidden, 24, p + "query"), self.node("MatMul", self.node("MatMul", x, self.draw(p + "a", 24, 4, by=0.2)), self.draw(p + "b", 4, 24, by=0.5))))


SPELLINGS = {"latent": Latent, "latent, queries of one projection": LatentQueries, "latent, filled in parts": LatentFilled, "latent, filled element by element": LatentElements,
             "turned with an adapter": LowRank, "halves": Turned, "token major": TokenMajor, "split": SplitHalves, "gathered": GatheredHalves, "one by one": OneByOne, "minus": Minus, "half tables": HalfTables, "neighbours": Neighbours,
             "complex": Complex, "flat": Flat, "partial": Partial, "partial neighbours": PartialNeighbours, "prefix": Prefix, "scaled before": ScaledBefore, "scaled behind": ScaledBehind,
             "stretched": Stretched, "the other way": Other, "per layer": PerLayer, "computed": Computed, "in the body": InTheBody, "packed": Packed, "normed": Normed, "normed each": NormedEach,
             "sequence first": SequenceFirst, "operator": Operator, "operator, partial": OperatorPartial, "operator, flat": OperatorFlat, "operator, packed": OperatorPacked}


def judge(m, path, *options, least=0.995, exact=True):
    """'' or what is wrong with the integers of a model. exact: it is nothing but its loop, whose words are to be equal; floats around it may differ in their last bits."""
    quantized = path[:-5] + ".quantized.onnx"
    onnx.save(m, path)
    p = t.call("quantize", path, *options, "--onnx", "-o", quantized)
    if p.returncode: return p.stderr.decode().strip().splitlines()[-1]
    q = onnx.load(quantized)
    kernels = sorted(n.op_type for n in graphs.body(graphs.scans(q)[0]).node if n.domain == "mlo")
    if kernels.count("Rotary") != 2 or kernels.count("Attention") != 1: return "kernels %s" % kernels
    worst = 1.0
    for seed in range(3):
        f = graphs.feeds(m, seed + 100, ints=(0, 50))
        np.savez(t.at("in.npz"), **f)
        t.good("run", quantized, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        right, judged = graphs.execute(m, f)[0], graphs.execute(q, f)[0]
        with np.load(t.at("out.npz")) as z: ours = z[m.graph.output[0].name]
        if ours.shape != right.shape or not (np.array_equal(ours, judged) if exact else cosine(ours, judged) > 0.99999): return "mlo and ONNX Runtime differ on the integers"
        worst = min(worst, cosine(right, ours))
    return "" if worst >= least else "cosine %.4f with the floats" % worst


def check_spellings():
    for name, spelled in SPELLINGS.items(): t.case(name, judge(spelled().model(), t.at("m.onnx")))


def check_powers_of_two():
    for name in ("halves", "stretched"): t.case("scales that are powers of two: " + name, judge(SPELLINGS[name]().model(), t.at("m.onnx"), "--scale", "pow2"))


def check_exports():
    """What PyTorch's exporters make of encoders that people have: tests/models/positions.py."""
    for path in sorted(pathlib.Path(t.tests, "models", "positions").glob("*.onnx")): t.case(path.stem, judge(onnx.load(path), t.at("m.onnx"), least=0.99, exact=False))


# ---- near misses ---------------------------------------------------------------------------------------------------------------------

class WrongSign(Turned):
    def rotated(self, x): return self.node("Concat", *self.halves(x)[::-1], axis=-1)


class WrongElement(Turned):
    """One of the cosines is another number in the second half."""
    def tables(self, p, **options):
        cos, sin = super().tables(p, **options)
        cos[3, 6] += 0.01
        return cos, sin


class OneLayer(PerLayer):
    """... in one layer alone."""
    def tables(self, p, **options):
        cos, sin = super().tables(p, **options)
        cos[3, 6] += 0.01 * p.startswith("layer.1")
        return cos, sin


class Anything(Turned):
    def tables(self, p, **options): return [np.random.default_rng(i).standard_normal((self.tokens, self.turning)).astype(np.float32) for i in range(2)]


class ByHead(Turned):
    """Other angles for other heads."""
    def turned_head(self, x, p):
        a = np.stack([np.tile(angles(self.tokens, 4, THETA + h), (1, 2)) for h in range(self.heads)])[None]
        cos, sin = (self.init(n, f(a).astype(np.float32)) for n, f in (("cosines", np.cos), ("sines", np.sin)))
        return self.plus(self.times(x, cos), self.times(self.rotated(x), sin))


class OtherPairs(Turned):
    """Queries in halves, keys in neighbours."""
    def key(self, x, p): return Neighbours.turned_head(self, super().key(x, p), p)
    def projections(self, x, p):
        v = self.heads_of(self.linear(x, self.hidden, self.heads * self.head, p + "value"))
        self.rotated = lambda y: Turned.rotated(self, y)
        q = Turned.turned_head(self, self.query(x, p), p)
        self.rotated = lambda y: Neighbours.rotated(self, y)
        cos, sin = (self.init("near" + n, f(np.repeat(angles(self.tokens, 4), 2, 1)).astype(np.float32)) for n, f in (("cos", np.cos), ("sin", np.sin)))
        k = Turned.key(self, x, p)
        return self.turned(q, self.plus(self.times(k, cos), self.times(self.rotated(k), sin)), v)


class QueriesAlone(Turned):
    """Keys do not turn, and queries turn in halves: their channels cannot change places."""
    def projections(self, x, p):
        v = self.heads_of(self.linear(x, self.hidden, self.heads * self.head, p + "value"))
        return self.turned(self.turned_head(self.query(x, p), p), self.key(x, p), v)


class Three(Turned):
    """A third channel comes in."""
    def turned_head(self, x, p): return self.plus(super().turned_head(x, p), self.times(self.node("Concat", self.slice(x, 1, 8), self.slice(x, 0, 1), axis=-1), self.number(0.1)))


class ThreeHalves(Turned):
    """Channels 0 to 3 with 4 to 7 shifted by one: pairs 0 5, 1 6, 2 7, 3 4 one way, but 0 4, .. the other."""
    def rotated(self, x):
        a, b = self.halves(x)
        shifted = self.node("Concat", self.slice(x, 5, 8), self.slice(x, 4, 5), axis=-1)
        return self.node("Concat", self.node("Neg", shifted), a, axis=-1)


class Tokens(Turned):
    """Pairs of tokens instead of channels."""
    def turned_head(self, x, p):
        cos, sin = self.constants(p, 1, 1, self.tokens, self.turning)
        other = self.node("Concat", self.slice(x, 1, 7, 2), self.slice(x, 0, 1, 2), axis=2)
        return self.plus(self.times(x, cos), self.times(other, sin))


class Asked(Turned):
    """Positions are an input of the model."""
    def turned_head(self, x, p):
        rows = [self.shaped(self.node("Gather", c, "attention_mask"), 1, 1, self.tokens, self.turning) for c in self.constants(p, self.tokens, self.turning)]
        return self.plus(self.times(x, rows[0]), self.times(self.rotated(x), rows[1]))
    runtime_mask = TensorProto.INT64


class Squared(Turned):
    """What is turned is no projection, and its channels cannot change places."""
    def query(self, x, p): return self.heads_of(self.node("Relu", self.linear(x, self.hidden, self.heads * self.head, p + "query")))


class LatentHole(LatentElements):
    """One channel of the keys is filled by nobody."""
    def filled(self, still, turns):
        y = self.put(self.init("nothing", np.zeros((1, self.heads, self.tokens, self.head), np.float32)), still, 0, self.head - self.turning)
        return self.put(y, self.slice(turns, 1, self.turning), self.head - self.turning + 1, self.head)


NUMBERS = "by other numbers than the cosine and sine of one angle"
REFUSED = {"wrong sign": (WrongSign, NUMBERS), "wrong element": (WrongElement, NUMBERS), "wrong in one layer": (OneLayer, NUMBERS), "anything": (Anything, NUMBERS), "by head": (ByHead, NUMBERS),
           "other pairs": (OtherPairs, "in other pairs than what it is multiplied by"), "queries alone": (QueriesAlone, "in other pairs than what it is multiplied by"),
           "three": (Three, "mixes more than two channels"), "shifted": (ThreeHalves, "does not mix its channels in pairs"), "tokens": (Tokens, "no rotary embedding"),
           "positions asked for": (Asked, "come from an input of the model"), "no projection": (Squared, "not heads of a projection's channels"), "a channel that is not filled": (LatentHole, "values that are put where an index says")}


def check_near_misses():
    for name, (spelled, words) in REFUSED.items():
        onnx.save(spelled().model(), t.at("m.onnx"))
        p = t.call("quantize", t.at("m.onnx"))
        line = p.stderr.decode().strip().splitlines()[-1] if p.stderr else ""
        t.case("refused: " + name, "" if p.returncode == 4 and words in line else "status %d: %s" % (p.returncode, line))


if __name__ == "__main__":
    t.main(check_spellings, check_powers_of_two, check_exports, check_near_misses, floor=66)
