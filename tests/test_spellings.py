#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One model, written in many ways: whatever exporters write for attention, masks, norms and projections becomes the same integer kernels.

Each spelling is a model of its own, written node by node. ONNX Runtime says what its floats are; the lowered model has to be near to them, and
ONNX Runtime and mlo have to agree on it bit for bit. Near misses, which are another function, are refused by name."""
import os
import numpy as np
import onnx
from onnx import TensorProto, helper

import graphs
import harness as t
from encoders import Encoder

TOKENS = 7


class Spelled(Encoder):
    """Two layers of 24 channels in 3 heads of 8. Subclasses write one thing in another way."""
    opset, runtime_mask = 20, None

    def __init__(self, norm="post", act="Gelu"):
        super().__init__(2, 24, 3, 8, 40, TOKENS, norm, act)

    def ints(self, *v): return self.init("ints" + "_".join(map(str, v)), np.array(v, np.int64))
    def whole(self, v): return self.init("whole%d" % v, np.array(v, np.int64))
    def number(self, v): return self.init("number%r" % v, np.float32(v))

    def heads_of(self, x, order=(0, 2, 1, 3)): return self.node("Transpose", self.shaped(x, 1, self.tokens, self.heads, self.head), perm=list(order))
    def projections(self, x, p):
        """Queries [1, H, T, D], keys [1, H, D, T], values [1, H, T, D]."""
        wide = self.heads * self.head
        return [self.heads_of(self.linear(x, self.hidden, wide, p + n), o) for n, o in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3)))]

    def packed(self, x, p): return self.linear(x, self.hidden, 3 * self.heads * self.head, p + "qkv")
    def turned(self, q, k, v): return q, self.node("Transpose", k, perm=[0, 1, 3, 2]), v

    def scores(self, q, k): return self.node("Mul", self.node("MatMul", q, k), self.number(self.head ** -0.5))
    def masked(self, scores): return scores
    def guarded(self, probabilities): return probabilities
    def mixed(self, p, v): return self.node("MatMul", p, v)
    def joined(self, y): return self.shaped(self.node("Transpose", y, perm=[0, 2, 1, 3]), 1, self.tokens, self.heads * self.head)

    def attention(self, x, bias, p):
        q, k, v = self.projections(x, p)
        probabilities = self.guarded(self.node("Softmax", self.masked(self.scores(q, k)), axis=-1))
        return self.linear(self.joined(self.mixed(probabilities, v)), self.heads * self.head, self.hidden, p + "output")

    def extra(self):
        """Nodes in front of the layers."""

    def start(self, x): return x

    def model(self):
        info = helper.make_tensor_value_info
        self.nodes, self.inits, self.rng = [], {}, np.random.default_rng(24)
        x = self.node("Add", self.node("Gather", self.draw("words", 50, self.hidden), "input_ids"), self.draw("places", 1, self.tokens, self.hidden))
        self.extra()
        x = self.start(x)
        for i in range(self.layers): x = self.layer(x, None, "layer.%d." % i)
        self.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"], name="result"))
        inputs = [info("input_ids", TensorProto.INT64, [1, self.tokens])]
        if self.runtime_mask: inputs.append(info("attention_mask", self.runtime_mask, [1, self.tokens]))
        graph = helper.make_graph(self.nodes, "encoder", inputs, [info("last_hidden_state", TensorProto.FLOAT, None)], list(self.inits.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)


# ---- projections --------------------------------------------------------------------------------------------------------------------

class Minus(Spelled):
    """A difference of two values whose minus is in the weights, as the refusal of a difference says."""
    def mlp(self, x, p):
        less = self.linear(self.node("Tanh", self.linear(x, self.hidden, self.hidden, p + "b")), self.hidden, self.hidden, p + "less")
        return self.node("Add", self.linear(x, self.hidden, self.hidden, p + "a"), less)


class Split(Spelled):
    def projections(self, x, p):
        wide, qkv = self.heads * self.head, self.packed(x, p)
        parts = ["%s%s" % (p, n) for n in "qkv"]
        self.nodes.append(helper.make_node("Split", [qkv, self.ints(wide, wide, wide)], parts, name=p + "split", axis=-1))
        return self.turned(*(self.heads_of(y) for y in parts))


class Slices(Spelled):
    def projections(self, x, p):
        wide, qkv = self.heads * self.head, self.packed(x, p)
        return self.turned(*(self.heads_of(self.node("Slice", qkv, self.ints(i * wide), self.ints((i + 1) * wide), self.ints(2))) for i in range(3)))


class Gathers(Spelled):
    """timm: [1, T, 3, H, D], moved to [3, 1, H, T, D], and one taken after the other."""
    def projections(self, x, p):
        y = self.node("Transpose", self.shaped(self.packed(x, p), 1, self.tokens, 3, self.heads, self.head), perm=[2, 0, 3, 1, 4])
        return self.turned(*(self.node("Gather", y, self.whole(i), axis=0) for i in range(3)))


class PerHead(Spelled):
    """GPT-NeoX, Megatron: queries, keys and values of a head side by side, [1, T, H, 3 D]."""
    def projections(self, x, p):
        y = self.node("Transpose", self.shaped(self.packed(x, p), 1, self.tokens, self.heads, 3 * self.head), perm=[0, 2, 1, 3])
        return self.turned(*(self.node("Slice", y, self.ints(i * self.head), self.ints((i + 1) * self.head), self.ints(3)) for i in range(3)))


class Innermost(Spelled):
    """[1, T, H, D, 3]: a channel's query, key and value side by side."""
    def projections(self, x, p):
        y = self.node("Transpose", self.shaped(self.packed(x, p), 1, self.tokens, self.heads, self.head, 3), perm=[4, 0, 2, 1, 3])
        return self.turned(*(self.node("Squeeze", self.node("Slice", y, self.ints(i), self.ints(i + 1), self.ints(0)), self.ints(0)) for i in range(3)))


class Unbound(Spelled):
    """The same, taken apart where it lies: qkv.view(1, T, H, D, 3).unbind(-1)."""
    slices = 3
    def packed(self, x, p): return self.linear(x, self.hidden, self.slices * self.heads * self.head, p + "qkv")
    def apart(self, y, n, name):
        parts = ["%s.%d" % (name, i) for i in range(n)]
        self.nodes.append(helper.make_node("Split", [y, self.ints(*[1] * n)], parts, name=name, axis=-1))
        return [self.node("Squeeze", i, self.ints(-1)) for i in parts]

    def projections(self, x, p):
        q, k, v, *rest = self.apart(self.shaped(self.packed(x, p), 1, self.tokens, self.heads, self.head, self.slices), self.slices, p + "unbind")
        self.rest = rest
        q, k, v = (self.node("Transpose", y, perm=[0, 2, 1, 3]) for y in (q, k, v))
        return self.turned(q, k, v)


class Indexed(Unbound):
    """qkv[..., 0], as TorchScript has it; the second of four is for nobody."""
    slices = 4
    def apart(self, y, n, name): return [self.node("Gather", y, self.whole(i), axis=4) for i in (3, 0, 2)]


class Steps(Spelled):
    """qkv[..., 0::3]"""
    def projections(self, x, p):
        y = self.packed(x, p)
        return self.turned(*(self.heads_of(self.node("Slice", y, self.ints(i), self.ints(3 * self.hidden), self.ints(2), self.ints(3))) for i in range(3)))


class UnboundGate(Unbound):
    """Four of them: the last is the attention's gate."""
    slices = 4
    def joined(self, y): return self.node("Mul", super().joined(y), self.node("Sigmoid", self.shaped(*self.rest, 1, self.tokens, self.heads * self.head)))


class PairedGate(Unbound):
    """An FFN's gate whose halves lie interleaved, up.view(1, T, D, 2).unbind(-1), and one whose halves lie side by side in each of four groups."""
    def __init__(self, groups=0):
        super().__init__()
        self.groups = groups

    def halves(self, y, p):
        if not self.groups: return self.apart(self.shaped(y, 1, self.tokens, self.inner, 2), 2, p + "halves")
        y, wide = self.shaped(y, 1, self.tokens, self.groups, 2 * self.inner // self.groups), self.inner // self.groups
        return [self.shaped(self.node("Slice", y, self.ints(i * wide), self.ints((i + 1) * wide), self.ints(3)), 1, self.tokens, self.inner) for i in range(2)]

    def mlp(self, x, p):
        gate, up = self.halves(self.linear(x, self.hidden, 2 * self.inner, p + "up"), p)
        return self.linear(self.node("Mul", self.node("Sigmoid", gate), up), self.inner, self.hidden, p + "down")


class Interleaved(Spelled):
    """Channels as [D, H]: neighbours belong to different heads, in queries and keys alike."""
    def projections(self, x, p):
        q, k, v = (self.linear(x, self.hidden, self.heads * self.head, p + n) for n in ("query", "key", "value"))
        q, k = (self.node("Transpose", self.shaped(y, 1, self.tokens, self.head, self.heads), perm=[0, 3, 1, 2]) for y in (q, k))
        return self.turned(q, k, self.heads_of(v))


class Gemm(Spelled):
    def packed(self, x, p):
        n = 3 * self.heads * self.head
        y = self.node("Gemm", self.shaped(x, self.tokens, self.hidden), self.draw(p + "in_proj", n, self.hidden, by=self.hidden ** -0.5), self.draw(p + "in_bias", n, by=0.2), transB=1)
        return y

    projections = Split.projections


class Crossed(Split):
    """Keys and values change places: another function of the same weights, which a careless reader would not see."""
    def projections(self, x, p):
        wide, qkv = self.heads * self.head, self.packed(x, p)
        q, k, v = (self.heads_of(self.node("Slice", qkv, self.ints(i * wide), self.ints((i + 1) * wide), self.ints(2))) for i in (1, 2, 0))
        return self.turned(q, k, v)


class SequenceFirst(Spelled):
    """torch.nn.TransformerEncoder with batch_first=False: [T, 1, C]; heads as a batch of H."""
    def start(self, x): return self.node("Transpose", x, perm=[1, 0, 2])
    def heads_of(self, x, order=(1, 0, 2)): return self.node("Transpose", self.shaped(x, self.tokens, self.heads, self.head), perm=list(order))
    def projections(self, x, p):
        wide = self.heads * self.head
        y = self.shaped(self.packed(x, p), self.tokens, 1, 3, wide)
        y = self.node("Squeeze", self.node("Transpose", self.node("Unsqueeze", y, self.ints(0)), perm=[3, 1, 2, 0, 4]), self.ints(3))
        q, k, v = (self.heads_of(self.node("Gather", y, self.whole(i), axis=0)) for i in range(3))
        return q, self.node("Transpose", k, perm=[0, 2, 1]), v

    def joined(self, y): return self.shaped(self.node("Transpose", y, perm=[1, 0, 2]), self.tokens, 1, self.heads * self.head)


class Lines(Spelled):
    """Channels in front of tokens, projections as convolutions of size 1 (SqueezeBERT)."""
    groups, gained = 1, False

    def linear(self, x, k, n, name):
        weight = self.draw(name + ".weight", n, k // self.groups, 1, by=(k / self.groups) ** -0.5)
        y = self.node("Conv", self.node("Transpose", x, perm=[0, 2, 1]), weight, self.draw(name + ".bias", n, by=0.2), group=self.groups)
        if self.gained and n == self.hidden: y = self.node("Add", self.node("Mul", y, self.init(name + ".gain", self.rng.uniform(0.8, 1.2, (n, 1)).astype(np.float32))), self.draw(name + ".more", 1, n, 1, by=0.1))
        return self.node("Transpose", y, perm=[0, 2, 1])


class LinesInGroups(Lines): groups = 4
class LinesGained(Lines): groups, gained = 2, True


class Rows(Spelled):
    """One sequence without a batch, [T, C]: torch.nn.TransformerEncoder."""
    def start(self, x): return self.shaped(x, self.tokens, self.hidden)
    def linear(self, x, k, n, name): return self.node("Gemm", self.shaped(x, self.tokens, k), self.draw(name, n, k, by=k ** -0.5), self.draw(name + ".bias", n, by=0.2), transB=1)


class Einsum(Spelled):
    def projections(self, x, p): return [self.shaped(self.linear(x, self.hidden, 24, p + n), 1, self.tokens, self.heads, self.head) for n in ("query", "key", "value")]
    def scores(self, q, k): return self.node("Div", self.node("Einsum", q, k, equation="b t h d, b s h d -> b h t s"), self.number(self.head ** 0.5))
    def mixed(self, p, v): return self.node("Einsum", p, v, equation="bhts,bshd->bthd")
    def joined(self, y): return self.shaped(y, 1, self.tokens, self.heads * self.head)


class EinsumOneKey(Einsum):
    """All heads have the same keys and values, [1, T, D], in index notation (PaLM, multi-query attention)."""
    says = {"kv_heads": 1}
    def __init__(self):
        super().__init__()
        self.heads, self.head = 4, 6

    def projections(self, x, p):
        wide = self.heads * self.head
        return [self.shaped(self.linear(x, self.hidden, wide, p + "query"), 1, self.tokens, self.heads, self.head), *(self.linear(x, self.hidden, self.head, p + n) for n in ("key", "value"))]

    def scores(self, q, k): return self.node("Div", self.node("Einsum", q, k, equation="bthd,bsd->bhts"), self.number(self.head ** 0.5))
    def mixed(self, p, v): return self.node("Einsum", p, v, equation="bhts,bsd->bthd")


class EinsumWeights(Einsum):
    """Projections to heads, and back, in index notation: weights [C, H, D] and [H, D, C]."""
    def projections(self, x, p):
        return [self.node("Einsum", x, self.draw(p + n, self.hidden, self.heads, self.head, by=self.hidden ** -0.5), equation="btc,chd->bthd") for n in ("query", "key", "value")]


class EinsumGains(Einsum):
    """Three operands: weights and a gain for each head; the way back is in two factors, of half as many channels."""
    def projections(self, x, p):
        gains = [self.init(p + n + ".gain", self.rng.uniform(0.8, 1.2, self.heads).astype(np.float32)) for n in ("query", "key", "value")]
        weights = [self.draw(p + n, self.hidden, self.heads, self.head, by=self.hidden ** -0.5) for n in ("query", "key", "value")]
        return [self.node("Einsum", x, w, g, equation="btc,chd,h->bthd") for w, g in zip(weights, gains)]

    def attention(self, x, bias, p):
        q, k, v = self.projections(x, p)
        y, half = self.mixed(self.node("Softmax", self.scores(q, k), axis=-1), v), self.hidden // 2
        down, up = self.draw(p + "down", self.heads, self.head, half, by=self.hidden ** -0.5), self.draw(p + "up", half, self.hidden, by=half ** -0.5)
        return self.node("Einsum", y, down, up, equation="bthd,hdr,rc->btc")


class ScaleTwice(Spelled):
    """SDPA: queries and keys are both multiplied by the fourth root."""
    def scores(self, q, k):
        root = self.number(self.head ** -0.25)
        return self.node("MatMul", self.node("Mul", q, root), self.node("Mul", k, root))


class Casts(Spelled):
    def guarded(self, probabilities): return self.node("Cast", self.node("Cast", probabilities, to=TensorProto.FLOAT), to=TensorProto.FLOAT)


class Flat(Spelled):
    """Scores as a batch of heads [H, T, T], reshaped to [1, H, T, T] and back around the softmax."""
    def scores(self, q, k):
        q, k = self.shaped(q, self.heads, self.tokens, self.head), self.shaped(k, self.heads, self.head, self.tokens)
        return self.shaped(self.node("Mul", self.node("MatMul", q, k), self.number(self.head ** -0.5)), 1, self.heads, self.tokens, self.tokens)
    def mixed(self, p, v):
        y = self.node("MatMul", self.shaped(p, self.heads, self.tokens, self.tokens), self.shaped(v, self.heads, self.tokens, self.head))
        return self.shaped(y, 1, self.heads, self.tokens, self.head)


class LayerScale(Spelled):
    def mlp(self, x, p): return self.node("Mul", super().mlp(x, p), self.draw(p + "gamma", self.hidden))


class Batched(Spelled):
    """PatchTST: batch norms between two transposes, in front of projections alone; some factors are below 0."""
    least, training, norms = -1.2, 0, "pre"
    def __init__(self): super().__init__(norm=self.norms)
    def mean(self, name): return self.draw(name + ".mean", self.hidden, by=0.5)

    def batch(self, x, name):
        drawn = {n: self.init("%s.%s" % (name, n), self.rng.uniform(*at, self.hidden).astype(np.float32)) for n, at in (("scale", (self.least, 1.2)), ("variance", (0.2, 2)))}
        return self.node("BatchNormalization", x, drawn["scale"], self.draw(name + ".bias", self.hidden, by=0.3), self.mean(name), drawn["variance"], epsilon=0.1, training_mode=self.training)

    def layernorm(self, x, name): return self.node("Transpose", self.batch(self.node("Transpose", x, perm=[0, 2, 1]), name), perm=[0, 2, 1])


class BatchedBehind(Batched):
    """Behind each sum."""
    least, norms = 0.4, "post"


class BatchedFlat(Batched):
    """Of tokens as a batch, and Gemm with its weights across."""
    def layernorm(self, x, name): return self.shaped(self.batch(self.shaped(x, self.tokens, self.hidden), name), 1, self.tokens, self.hidden)
    def linear(self, x, k, n, name):
        y = self.node("Gemm", self.shaped(x, self.tokens, k), self.draw(name, n, k, by=k ** -0.5), self.draw(name + ".bias", n, by=0.2), transB=1)
        return self.shaped(y, 1, self.tokens, n)


class BatchedLines(Batched):
    """Channels in front of tokens, all along: convolutions of size 1."""
    def start(self, x): return self.node("Transpose", x, perm=[0, 2, 1])
    def layernorm(self, x, name): return self.batch(x, name)
    def linear(self, x, k, n, name): return self.node("Conv", x, self.draw(name + ".weight", n, k, 1, by=k ** -0.5), self.draw(name + ".bias", n, by=0.2))
    def joined(self, y): return self.shaped(self.node("Transpose", y, perm=[0, 1, 3, 2]), 1, self.heads * self.head, self.tokens)
    def projections(self, x, p):
        q, k, v = (self.shaped(self.linear(x, self.hidden, self.hidden, p + n), 1, self.heads, self.head, self.tokens) for n in ("query", "key", "value"))
        return self.node("Transpose", q, perm=[0, 1, 3, 2]), k, self.node("Transpose", v, perm=[0, 1, 3, 2])


# ---- masks --------------------------------------------------------------------------------------------------------------------------------

class Masked(Spelled):
    runtime_mask = TensorProto.INT64
    def shape(self, *dims): return self.shaped("attention_mask", *dims)


class Added(Masked):
    """BERT: (1 - mask) * -3.4e38 of shape [1, 1, 1, T]."""
    def extra(self):
        keep = self.node("Cast", self.shape(1, 1, 1, self.tokens), to=TensorProto.FLOAT)
        self.bias = self.node("Mul", self.node("Sub", self.number(1.0), keep), self.number(-3.4e38))
    def masked(self, scores): return self.node("Add", scores, self.bias)


class Expanded(Masked):
    """SDPA's: the key mask for every query, by Expand, Cast and Where."""
    def extra(self):
        wide = self.node("Expand", self.node("Unsqueeze", "attention_mask", self.ints(1, 2)), self.ints(1, 1, self.tokens, self.tokens))
        off = self.node("Sub", self.number(1.0), self.node("Cast", wide, to=TensorProto.FLOAT))
        self.bias = self.node("Where", self.node("Cast", off, to=TensorProto.BOOL), self.number(-3.4e38), off)
    masked = Added.masked


class PerHeadMask(Masked):
    """torch.nn.TransformerEncoder: -inf where padded, for each head, as [H, 1, T]."""
    runtime_mask = TensorProto.BOOL
    def extra(self):
        bias = self.node("Where", "attention_mask", self.number(float("-inf")), self.init("zeros", np.zeros((1, self.tokens), np.float32)))
        wide = self.node("Expand", self.shaped(bias, 1, 1, 1, self.tokens), self.ints(1, self.heads, 1, 1))
        self.bias = self.shaped(self.shaped(wide, self.heads, 1, self.tokens), 1, self.heads, 1, self.tokens)
    masked = Added.masked


class InTheBody(Masked):
    """TorchScript's: every layer makes the mask for itself."""
    def masked(self, scores):
        keep = self.node("Cast", self.node("Expand", self.shape(1, 1, 1, self.tokens), self.ints(1, 1, self.tokens, self.tokens)), to=TensorProto.BOOL)
        return self.node("Add", scores, self.node("Where", keep, self.number(0.0), self.number(float("-inf"))))


class Filled(Masked):
    """masked_fill: Where(padded, -1e9, scores)."""
    def masked(self, scores): return self.node("Where", self.node("Equal", self.shape(1, 1, 1, self.tokens), self.whole(0)), self.number(-1e9), scores)


class Kept(Masked):
    """Where(keep, scores, -inf), keep being the outer product of the mask with ones."""
    def masked(self, scores):
        keep = self.node("And", self.node("Cast", self.shape(1, 1, 1, self.tokens), to=TensorProto.BOOL), self.init("every", np.ones((1, 1, self.tokens, 1), bool)))
        return self.node("Where", keep, scores, self.number(float("-inf")))


class Guarded(Filled):
    def guarded(self, probabilities): return self.node("Where", self.node("IsNaN", probabilities), self.number(0.0), probabilities)


class Subtracted(Masked):
    def masked(self, scores):
        off = self.node("Sub", self.number(1.0), self.node("Cast", self.shape(1, 1, 1, self.tokens), to=TensorProto.FLOAT))
        return self.node("Sub", scores, self.node("Mul", off, self.number(1e9)))


class Twice(Added):
    """A constant mask that is all zeros, and the one of the keys."""
    def masked(self, scores): return self.node("Add", self.node("Add", scores, self.init("none", np.zeros((1, 1, self.tokens, self.tokens), np.float32))), self.bias)


class Gathered(Masked):
    """Indexed: every query gathers the same keys of the mask."""
    def extra(self):
        every = np.tile(np.arange(self.tokens), (1, 1, self.tokens, 1))
        index = self.init("index", np.stack([np.zeros_like(every), every], -1).astype(np.int64))
        keep = self.node("Cast", self.node("GatherND", "attention_mask", index), to=TensorProto.BOOL)
        self.bias = self.node("Where", keep, self.number(0.0), self.number(-3.4e38))
    masked = Added.masked


# ---- norms --------------------------------------------------------------------------------------------------------------------------------

class Norm(Spelled):
    """A norm written out; `parts` is what the parts are written with."""
    square, root, last, centred, ending = "Pow", "Sqrt", "Div", True, "plain"

    def mean(self, x, axis): return self.node("ReduceMean", x, self.ints(axis))
    def deviation(self, x): return self.node("Sub", x, self.mean(x, -1)) if self.centred else x

    def layernorm(self, x, name):
        gain = self.init(name + ".weight", (1 + 0.3 * self.rng.standard_normal(self.hidden)).astype(np.float32))
        bias = self.draw(name + ".bias", self.hidden, by=0.1)
        d = self.deviation(x)
        power = self.node("Pow", d, self.number(2.0)) if self.square == "Pow" else self.node("Mul", d, d)
        power = self.node("Add", self.mean(power, 2), self.number(1e-5))
        root = self.node("Sqrt", power) if self.root == "Sqrt" else self.node("Pow", power, self.number(0.5 if self.last == "Div" else -0.5))
        if self.last == "Reciprocal": root = self.node("Reciprocal", root)
        if self.last == "Over": root = self.node("Div", self.number(1.0), root)
        join = "Div" if self.last == "Div" else "Mul"
        if self.ending == "early": return self.node("Add", self.node(join, self.node("Mul", gain, d), root), bias)
        y = self.node("Mul", self.node(join, d, root), gain) if self.ending == "plain" else self.node("Mul", gain, self.node(join, *((d, root) if join == "Div" else (root, d))))
        return self.node("Add", y, bias) if self.centred else y


def norm(**parts): return type("Norm", (Norm,), parts)


class OldMean(Norm):
    """As before opset 18: axes are an attribute."""
    opset = 17
    def __init__(self): super().__init__(act="Relu")
    def mean(self, x, axis): return self.node("ReduceMean", x, axes=[axis])


class TwoDeviations(Norm):
    """The deviation is computed twice, and the variance from the second one."""
    def layernorm(self, x, name):
        gain, bias = self.init(name + ".weight", np.float32(1 + 0.3 * self.rng.standard_normal(self.hidden))), self.draw(name + ".bias", self.hidden, by=0.1)
        power = self.node("ReduceMean", self.node("Pow", self.deviation(x), self.number(2.0)), self.ints(-1))
        y = self.node("Div", self.deviation(x), self.node("Sqrt", self.node("Add", power, self.number(1e-5))))
        return self.node("Add", self.node("Mul", y, gain), bias)


class OfDeviation(Spelled):
    """Cohere's since opset 23, by dynamo: the RMS norm of a token less its mean."""
    opset = 23
    def layernorm(self, x, name):
        gain = self.init(name + ".weight", np.float32(1 + 0.3 * self.rng.standard_normal(self.hidden)))
        return self.node("RMSNormalization", self.node("Sub", x, self.node("ReduceMean", x, self.ints(-1))), gain, axis=-1, epsilon=1e-5)


# ---- causal masks, windows, shared heads -----------------------------------------------------------------------------------------------

class Causal(Spelled):
    """GPT-2's: Where(triangle, scores, lowest)."""
    says = {"causal": 1}
    def triangle(self): return np.tril(np.ones((1, 1, self.tokens, self.tokens), bool))
    def masked(self, scores): return self.node("Where", self.init("triangle", self.triangle()), scores, self.number(float("-inf")))


class CausalFronts(Causal):
    """litgpt's Gemma 2: the mask of one layer is [1, 1, T, T], another one's [T, T], and hides more."""
    says, band, layer_now = {"causal": 1, "band": 1}, [[6, 0], [2, 0]], 0
    def masked(self, scores):
        self.layer_now += 1
        seen = self.triangle() if self.layer_now == 1 else np.triu(self.triangle(), -2)[0, 0]
        return self.node("Add", scores, self.init("mask%d" % self.layer_now, np.where(seen, 0, -3e38).astype(np.float32)))


class Blanked(Causal):
    """GPT-1's: scores times a triangle of ones, and far below where there is none."""
    factor, far = 0.0, -1e4
    def masked(self, scores):
        seen = np.where(self.triangle(), 1, self.factor).astype(np.float32)
        return self.node("Add", self.node("Mul", scores, self.init("seen", seen)), self.init("unseen", np.where(self.triangle(), 0, self.far).astype(np.float32)))


class Capped(Spelled):
    """Gemma 2's: c tanh(s / c)."""
    inside, cap = (1.5,), (1.5,)
    def __init__(self):
        super().__init__()
        self.layer_at = -1
    def under(self, scores):
        i = self.layer_at = self.layer_at + 1
        inside, cap = self.inside[i % len(self.inside)], self.cap[i % len(self.cap)]
        y = self.node("Tanh", self.node("Div", scores, self.number(inside)))
        return y if cap is None else self.node("Mul", y, self.number(cap))
    masked = under


class CappedTimes(Capped):
    """Multiplied by what the cap is the inverse of, and the other way round."""
    def masked(self, scores): return self.node("Mul", self.number(2.0), self.node("Tanh", self.node("Mul", self.number(0.5), scores)))


class CapAlone(Capped):
    """Nothing behind the tanh: a cap of 1, and another slope."""
    inside, cap = (2.0,), (None,)


class CapUneven(Capped):
    """One number in front of the tanh, another one behind it."""
    inside, cap = (2.0,), (5.0,)


class CapsOfLayers(Capped):
    inside = cap = (0.8, 3.0)


class CappedCausal(Causal):
    """Hidden behind the cap."""
    def masked(self, scores): return super().masked(self.node("Mul", self.node("Tanh", self.node("Div", scores, self.number(1.5))), self.number(1.5)))


class CausalAndKeys(Added):
    """CLIP's: two masks, one behind the other."""
    says = {"causal": 1}
    def masked(self, scores):
        triangle = np.triu(np.full((self.tokens, self.tokens), -1e9, np.float32), 1)
        return self.node("Add", super().masked(scores), self.init("triangle", triangle))


class Ranges(Masked):
    """transformers': Range against Range, and the keys' mask, as one boolean."""
    says = {"causal": 1}
    def sees(self):
        i = self.node("Range", self.whole(0), self.whole(self.tokens), self.whole(1))
        return i, self.node("LessOrEqual", i, self.shaped(i, self.tokens, 1))
    def extra(self):
        keep = self.node("And", self.sees()[1], self.node("Cast", self.shape(1, 1, 1, self.tokens), to=TensorProto.BOOL))
        self.bias = self.node("Where", keep, self.number(0.0), self.number(-3.4e38))
    masked = Added.masked


class Window(Ranges):
    """... and no key more than two tokens back."""
    says, band = {"causal": 1, "band": 1}, [[2, 0]] * 2
    def sees(self):
        i, sees = super().sees()
        near = self.node("Less", self.node("Sub", self.shaped(i, self.tokens, 1), i), self.whole(3))
        return i, self.node("And", sees, near)


class Around(Ranges):
    """ModernBERT's: two tokens back, two ahead."""
    says, band = {"band": 1}, [[2, 2]] * 2
    def sees(self):
        i = self.node("Range", self.whole(0), self.whole(self.tokens), self.whole(1))
        return i, self.node("LessOrEqual", self.node("Abs", self.node("Sub", i, self.shaped(i, self.tokens, 1))), self.whole(2))


class Lopsided(Spelled):
    """A constant band: one token back, three ahead."""
    says, band = {"band": 1}, [[1, 3]] * 2
    def masked(self, scores):
        ones = np.ones((self.tokens, self.tokens), bool)
        return self.node("Add", scores, self.init("band", np.where(np.triu(ones, -1) & np.tril(ones, 3), 0, -np.inf).astype(np.float32)))


class Trilus(Masked):
    """Trilu of a full matrix of -inf, and a mask whose complement is filled (bool of 1 - mask) in front of the sum."""
    says = {"causal": 1}
    def extra(self):
        wide = self.node("Expand", self.node("Unsqueeze", "attention_mask", self.ints(1, 2)), self.ints(1, 1, self.tokens, self.tokens))
        off = self.node("Sub", self.number(1.0), self.node("Cast", wide, to=TensorProto.FLOAT))
        off = self.node("Where", self.node("Cast", off, to=TensorProto.BOOL), self.number(-3.4e38), off)
        self.bias = self.node("Add", self.node("Trilu", self.init("full", np.full((self.tokens, self.tokens), -3.4e38, np.float32)), self.whole(1), upper=1), off)
    masked = Added.masked


class Product(Masked):
    """BERT's as a decoder: (1 - triangle * mask) * lowest."""
    says = {"causal": 1}
    def extra(self):
        both = self.node("Mul", self.init("triangle", np.tril(np.ones((1, 1, self.tokens, self.tokens), np.float32))), self.node("Cast", self.shape(1, 1, 1, self.tokens), to=TensorProto.FLOAT))
        self.bias = self.node("Mul", self.node("Sub", self.number(1.0), both), self.number(-3.4e38))
    masked = Added.masked


class Scattered(Spelled):
    """The rows of a mask are written one after the other."""
    says = {"causal": 1}
    def extra(self):
        rows = self.init("rows", np.triu(np.full((self.tokens, self.tokens), -np.inf, np.float32), 1))
        self.bias = self.node("ScatterND", self.init("clean", np.zeros((self.tokens, self.tokens), np.float32)), self.init("order", np.arange(self.tokens)[:, None]), rows)
    masked = Added.masked


class HeldAndCausal(Causal):
    """Two keys are padding for good, and the triangle."""
    def triangle(self):
        keep = super().triangle()
        keep[..., -2:] = False
        return keep


class Lowest(CausalAndKeys):
    """XGLM's: not below the lowest number."""
    def masked(self, scores): return self.node("Max", super().masked(scores), self.number(-3.4e38))


class Grouped(Spelled):
    """Heads of keys that several heads of queries share: `spread` says how they are repeated."""
    kv, spread = 1, "expand"
    def __init__(self):
        super().__init__()
        self.says = {"kv_heads": self.kv}
        self.hidden, self.head, self.heads = 24, 6, 4

    def repeated(self, y):
        """[1, KV, T, D] to [1, H, T, D]"""
        n, wide = self.heads // self.kv, (1, self.heads, self.tokens, self.head)
        if self.spread == "expand": return self.shaped(self.node("Expand", self.node("Unsqueeze", y, self.ints(2)), self.ints(1, self.kv, n, self.tokens, self.head)), *wide)
        if self.spread == "tile": return self.shaped(self.node("Tile", self.node("Unsqueeze", y, self.ints(2)), self.ints(1, 1, n, 1, 1)), *wide)
        if self.spread == "gather": return self.node("Gather", y, self.ints(*np.repeat(np.arange(self.kv), n)), axis=1)
        if self.spread == "wrong": return self.node("Tile", y, self.ints(1, n, 1, 1))
        return y

    def projections(self, x, p):
        q = self.heads_of(self.linear(x, self.hidden, 24, p + "query"))
        heads = lambda y: self.node("Transpose", self.shaped(y, 1, self.tokens, self.kv, self.head), perm=[0, 2, 1, 3])
        return self.turned(q, *(self.repeated(heads(self.linear(x, self.hidden, self.kv * self.head, p + n))) for n in ("key", "value")))


class FiveAxes(Grouped):
    """[1, KV, G, T, D] against [1, KV, 1, D, T]: the product repeats them."""
    kv, spread = 2, None
    def heads_first(self, y): return self.shaped(y, 1, self.kv, -1, self.tokens, self.head)
    def turned(self, q, k, v):
        apart = lambda y, n: self.shaped(y, 1, self.kv, n, self.tokens, self.head)
        return apart(q, self.heads // self.kv), self.node("Transpose", apart(k, 1), perm=[0, 1, 2, 4, 3]), apart(v, 1)
    def mixed(self, p, v): return self.shaped(super().mixed(p, v), 1, self.heads, self.tokens, self.head)


class PackedGroups(Grouped):
    """Phi-3's: queries, keys and values out of one projection, 4, 2 and 2 heads of them."""
    kv = 2
    def projections(self, x, p):
        y, at, parts = self.linear(x, self.hidden, 48, p + "qkv"), 0, []
        for heads in (4, 2, 2):
            part = self.node("Slice", y, self.ints(at), self.ints(at + heads * self.head), self.ints(2))
            parts.append(self.node("Transpose", self.shaped(part, 1, self.tokens, heads, self.head), perm=[0, 2, 1, 3]))
            at += heads * self.head
        return self.turned(parts[0], *map(self.repeated, parts[1:]))


class CausalGroups(Ranges, Grouped):
    kv = 2
    def __init__(self):
        super().__init__()
        self.says = {"causal": 1, "kv_heads": 2}


class GroupQuery(Spelled):
    """ONNX Runtime's operator for decoders, as its tools write a prompt: it repeats keys, is causal, and turns queries and keys."""
    window, says, turns, packed_in = -1, {"causal": 1, "kv_heads": 2}, 1, False
    def __init__(self):
        super().__init__()
        self.hidden, self.head, self.heads = 24, 16, 4

    def extra(self):
        angles = np.arange(self.tokens + 3)[:, None] * 10000.0 ** -(np.arange(8) / 8)
        self.tables = [self.init(n, f(angles).astype(np.float32)) for n, f in (("cos", np.cos), ("sin", np.sin))]
        self.count = [self.init("before", np.array([self.tokens - 1], np.int32)), self.init("all", np.array(self.tokens, np.int32))]

    def attention(self, x, bias, p):
        widths = [heads * self.head for heads in (4, 2, 2)]
        if self.packed_in: q, k, v = self.linear(x, self.hidden, sum(widths), p + "qkv"), "", ""
        else: q, k, v = (self.linear(x, self.hidden, w, p + n) for n, w in zip(("query", "key", "value"), widths))
        y = self.node("GroupQueryAttention", q, k, v, "", "", *self.count, *self.tables * self.turns, domain="com.microsoft", num_heads=4, kv_num_heads=2,
                      do_rotary=self.turns, local_window_size=self.window)
        return self.linear(y, widths[0], self.hidden, p + "output")

    def model(self):
        m = super().model()
        m.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        return m


class GroupQueryWindow(GroupQuery):
    window, turns, packed_in, says, band = 3, 0, True, {"causal": 1, "kv_heads": 2, "band": 1}, [[2, 0]] * 2


def grouped(kv, spread): return type("Grouped", (Grouped,), {"kv": kv, "spread": spread})


class Unbiased(Norm):
    """The variance of N - 1: a LayerNorm of another scale."""
    def layernorm(self, x, name):
        d = self.deviation(x)
        power = self.node("Mul", self.node("ReduceMean", self.node("Pow", d, self.number(2.0)), self.ints(-1)), self.number(self.hidden / (self.hidden - 1)))
        return self.node("Mul", self.node("Div", d, self.node("Sqrt", self.node("Add", power, self.number(1e-5)))), self.draw(name, self.hidden))


class StdGuarded(Norm):
    """As torch exports the annotated transformer's norm, gain * (x - x.mean(-1)) / (x.std(-1) + 1e-6) + bias: the variance of N - 1 loses its axis and gets it back; the guard is outside of the root."""
    guard, learned = 1e-6, 24
    def back(self, power): return self.shaped(power, 1, self.tokens, 1)

    def layernorm(self, x, name):
        d = self.deviation(x)
        power = self.node("ReduceMean", self.node("Mul", d, d), self.ints(-1), keepdims=0)
        power = self.back(self.node("Div", self.node("Mul", power, self.number(self.hidden)), self.number(self.hidden - 1)))
        root = self.node("Add", self.node("Sqrt", power), self.number(self.guard))
        gain = self.init(name + ".weight", (1 + 0.3 * self.rng.standard_normal(self.learned)).astype(np.float32))
        return self.node("Add", self.node("Div", self.node("Mul", gain, self.deviation(x)), root), self.draw(name + ".bias", self.learned, by=0.1))


class StdUnsqueezed(StdGuarded):
    """The same by Unsqueeze."""
    def back(self, power): return self.node("Unsqueeze", power, self.ints(-1))


class StdOne(StdGuarded):
    """One learned factor and one summand for all channels, other ones in each layer (many who write a transformer from scratch learn these)."""
    learned = 1


class StdFar(StdGuarded):
    """That guard is an epsilon of its own."""
    guard = 1e-3


class StdTurned(StdGuarded):
    """As many tokens as channels, and the axis does not come back: [1, T] meets the channels of [1, T, C]."""
    def __init__(self):
        super().__init__()
        self.tokens = self.hidden

    def back(self, power): return power


class FastNorm(Norm):
    """Flax and Haiku: the variance as mean(x^2) - mean(x)^2, kept from falling below 0; as jax2onnx writes it."""
    floor = 0.0
    def square(self, v): return self.node("Mul", v, v)
    def mean(self, x): return self.node("ReduceMean", x, self.ints(2), keepdims=1)
    def variance(self, x, mean): return self.node("Sub", self.mean(self.square(x)), self.square(mean))
    def root(self, x, mean): return self.node("Sqrt", self.node("Add", self.node("Max", self.variance(x, mean), self.number(self.floor)), self.number(1e-6)))
    def gains(self, name): return self.init(name + ".weight", (1 + 0.3 * self.rng.standard_normal(self.hidden)).astype(np.float32)), self.draw(name + ".bias", self.hidden, by=0.1)
    def layernorm(self, x, name):
        mean, (gain, bias) = self.mean(x), self.gains(name)
        return self.node("Add", self.node("Mul", self.node("Div", self.node("Sub", x, mean), self.root(x, mean)), gain), bias)


class FastNormPow(FastNorm):
    """By Pow, without a floor."""
    def square(self, v): return self.node("Pow", v, self.number(2.0))
    def root(self, x, mean): return self.node("Sqrt", self.node("Add", self.variance(x, mean), self.number(1e-6)))


class FastNormFloored(FastNorm):
    """A variance of a tenth at least."""
    floor = 0.1


class FastNormTurned(FastNorm):
    """mean(x)^2 - mean(x^2), turned round by the root's -1."""
    def variance(self, x, mean): return self.node("Sub", self.square(mean), self.mean(self.square(x)))


class FastNormOther(FastNorm):
    """Less the square of another value's mean."""
    def variance(self, x, mean): return self.node("Sub", self.mean(self.square(x)), self.square(self.mean(self.node("Tanh", x))))


class Affine(FastNorm):
    """TensorFlow: x s + (bias - mean s), s = gain / root, with -mean s + bias behind the plus; the variance of squared differences."""
    def root(self, x, mean): return super().root(x, mean)
    def variance(self, x, mean): return self.mean(self.square(self.node("Sub", x, mean)))
    def slope(self, x, mean, gain): return self.node("Mul", self.node("Reciprocal", self.root(x, mean)), gain)
    def shift(self, mean, s, bias): return self.node("Add", self.node("Mul", self.node("Neg", mean), s), bias)
    def layernorm(self, x, name):
        mean, (gain, bias) = self.mean(x), self.gains(name)
        s = self.slope(x, mean, gain)
        return self.node("Add", self.node("Mul", x, s), self.shift(mean, s, bias))


class AffineLess(Affine):
    """bias - mean s, in front; the other factor first."""
    def shift(self, mean, s, bias): return self.node("Sub", bias, self.node("Mul", s, mean))
    def layernorm(self, x, name):
        mean, (gain, bias) = self.mean(x), self.gains(name)
        s = self.slope(x, mean, gain)
        return self.node("Add", self.shift(mean, s, bias), self.node("Mul", s, x))


class AffinePlain(Affine):
    """Without gain and bias."""
    def slope(self, x, mean, gain): return self.node("Reciprocal", self.root(x, mean))
    def shift(self, mean, s, bias): return self.node("Mul", self.node("Neg", mean), s)


class AffineMore(Affine):
    """mean s is added: another function."""
    def shift(self, mean, s, bias): return self.node("Add", self.node("Mul", mean, s), bias)


class AffineTwice(Affine):
    """What the mean is multiplied by has another gain than what x is."""
    def shift(self, mean, s, bias): return super().shift(mean, self.node("Mul", s, self.number(2.0)), bias)


class AffineOther(Affine):
    """The mean of another value is taken off."""
    def shift(self, mean, s, bias): return super().shift(self.mean(self.node("Tanh", self.node("Neg", mean))), s, bias)


# ---- probabilities that are masked ------------------------------------------------------------------------------------------------------

class Renormalized(Spelled):
    """jax2onnx's attention: softmax of all scores, times 0 where a key is hidden, over its sum, with guards against a sum of nothing."""
    says, threshold, other = {"causal": 1}, 0.0, 1.0
    def hides(self): return np.tril(np.ones((1, 1, self.tokens, self.tokens), bool))
    def factor(self): return self.node("Cast", self.init("kept", self.hides()), to=TensorProto.FLOAT)
    def summed(self, w): return self.node("ReduceSum", w, self.ints(3), keepdims=1)
    def guarded(self, probabilities):
        w = self.node("Mul", probabilities, self.factor())
        total = self.summed(w)
        some = self.node("Greater", total, self.number(self.threshold))
        return self.node("Where", some, self.node("Div", w, self.node("Where", some, total, self.number(self.other))), self.number(0.0))


class RenormalizedPlain(Renormalized):
    """Without guards; the factors are numbers."""
    def factor(self): return self.init("kept", self.hides().astype(np.float32))
    def guarded(self, probabilities):
        w = self.node("Mul", self.factor(), probabilities)
        return self.node("Div", w, self.summed(w))


class RenormalizedKeys(Renormalized):
    """Keys that a mask hides when it runs."""
    says, runtime_mask = {}, TensorProto.INT64
    def extra(self):
        kept = self.node("Cast", "attention_mask", to=TensorProto.BOOL)
        self.kept = self.shaped(kept, 1, 1, 1, self.tokens)
    def factor(self): return self.node("Cast", self.kept, to=TensorProto.FLOAT)


class RenormalizedHalf(RenormalizedPlain):
    """One key counts half."""
    def factor(self):
        half = self.hides().astype(np.float32)
        half[..., 2] *= 0.5
        return self.init("kept", half)


class RenormalizedQueries(RenormalizedPlain):
    """Summed over the queries."""
    def summed(self, w): return self.node("ReduceSum", w, self.ints(2), keepdims=1)


class RenormalizedOther(RenormalizedPlain):
    """Divided by another sum."""
    def guarded(self, probabilities): return self.node("Div", self.node("Mul", probabilities, self.factor()), self.summed(self.node("Exp", probabilities)))


class RenormalizedAbove(Renormalized):
    """What sums up to less than a tenth becomes 0."""
    threshold = 0.1


class KeysFirst(Spelled):
    """Keras where it may drop weights: scores [.., keys, queries], softmax over the keys, transposed for the values. hides: the mask that is added."""
    axis, hides = 2, None
    def scores(self, q, k):
        s = self.node("MatMul", self.node("Transpose", k, perm=[0, 1, 3, 2]), self.node("Transpose", q, perm=[0, 1, 3, 2]))
        s = self.node("Mul", s, self.number(self.head ** -0.5))
        return s if self.hides is None else self.node("Add", s, self.init("mask", self.hides(self.tokens)))

    def attention(self, x, bias, p):
        q, k, v = self.projections(x, p)
        probabilities = self.node("Transpose", self.node("Softmax", self.scores(q, k), axis=self.axis), perm=[0, 1, 3, 2])
        return self.linear(self.joined(self.mixed(probabilities, v)), self.heads * self.head, self.hidden, p + "output")


class KeysFirstCausal(KeysFirst):
    """A key is hidden from the queries before it."""
    says = {"causal": 1}
    hides = staticmethod(lambda n: np.where(np.tril(np.ones((n, n))) > 0, 0, -1e9).astype(np.float32).T.copy())


class KeysFirstQueries(KeysFirst):
    """A softmax over the queries, transposed: another function."""
    axis = 3


class OneBehind(Spelled):
    """tf2onnx's einsum: products of matrices of rank 3, whose results get an axis of one behind the keys, and lose it."""
    def projections(self, x, p):
        q, k, v = (self.shaped(self.linear(x, self.hidden, self.heads * self.head, p + n), 1, self.tokens, self.heads, self.head) for n in ("query", "key", "value"))
        q = self.node("Transpose", self.node("Unsqueeze", q, self.ints(3)), perm=[0, 2, 1, 3, 4])                   # [1, H, T, 1, D]
        k = self.node("Transpose", self.node("Unsqueeze", k, self.ints(1)), perm=[0, 3, 1, 2, 4])                   # [1, H, 1, T, D]
        v = self.node("Transpose", self.node("Unsqueeze", v, self.ints(2)), perm=[0, 3, 2, 4, 1])                   # [1, H, 1, D, T]
        flat = [self.shaped(y, self.heads, -1, last) for y, last in ((q, self.head), (k, self.head), (v, self.tokens))]
        return flat[0], self.node("Transpose", flat[1], perm=[0, 2, 1]), self.node("Transpose", flat[2], perm=[0, 2, 1])

    def behind(self, y, last): return self.node("Squeeze", self.shaped(y, 1, self.heads, self.tokens, last, 1), self.ints(4))
    def scores(self, q, k): return self.node("Mul", self.behind(self.node("MatMul", q, k), self.tokens), self.number(self.head ** -0.5))
    def mixed(self, p, v): return self.behind(self.node("MatMul", self.shaped(self.node("Unsqueeze", p, self.ints(3)), self.heads, -1, self.tokens), v), self.head)


class OneBehindOther(OneBehind):
    """The view that takes the axis away makes heads of keys: [1, H, T, T, 1] as [1, T, H, T]."""
    def behind(self, y, last): return self.shaped(self.shaped(y, 1, self.heads, self.tokens, last, 1), 1, self.tokens, self.heads, last)


class ConvolvedLines(Lines):
    """A Conv1D of size 1 as TensorFlow has it: a convolution of a grid of one row, channels first."""
    def mlp(self, x, p):
        y = self.node("Transpose", self.node("Unsqueeze", x, self.ints(1)), perm=[0, 3, 1, 2])                      # [1, C, 1, T]
        for n, k, name in (self.inner, self.hidden, "up"), (self.hidden, self.inner, "down"):
            y = self.node("Conv", y, self.draw(p + name + ".weight", n, k, 1, 1, by=k ** -0.5), self.draw(p + name + ".bias", n, by=0.2), kernel_shape=[1, 1])
            y = self.node("Squeeze", y, self.ints(2))                                                              # [1, C, T]
            if name == "up": y = self.node("Unsqueeze", self.activation(y), self.ints(2))
        return self.node("Transpose", y, perm=[0, 2, 1])


class PaddedConv(Spelled):
    """Conformer's: channels first a gate of two halves, then a convolution of each channel along the tokens behind a Pad of its own."""
    def __init__(self, pads=(1, 1), value=None, mode="constant"):
        super().__init__()
        self.pads, self.value, self.mode = pads, value, mode

    def mlp(self, x, p):
        y = self.node("Transpose", x, perm=[0, 2, 1])
        y = self.node("Conv", y, self.draw(p + "up", 2 * self.inner, self.hidden, 1, by=0.2), kernel_shape=[1])
        a, b = (self.node("Slice", y, self.ints(i * self.inner), self.ints((i + 1) * self.inner), self.ints(1)) for i in range(2))
        y = self.node("Mul", a, self.node("Sigmoid", b))
        y = self.node("Pad", y, self.ints(0, 0, self.pads[0], 0, 0, self.pads[1]), *([] if self.value is None else [self.number(self.value)]), mode=self.mode)
        y = self.node("Conv", y, self.draw(p + "along", self.inner, 1, 3, by=0.6), self.draw(p + "along.bias", self.inner, by=0.2), kernel_shape=[3], group=self.inner)
        return self.node("Transpose", self.node("Conv", y, self.draw(p + "down", self.hidden, self.inner, 1, by=0.2), kernel_shape=[1]), perm=[0, 2, 1])


class Rms(Spelled):
    """x / its root mean square, in ways of its own; last: what comes of the quotient and the gain."""
    def gain(self, name): return self.init(name + ".weight", (1 + 0.3 * self.rng.standard_normal(self.hidden)).astype(np.float32))
    def quotient(self, x): return self.node("Div", x, self.node("Sqrt", self.node("Add", self.node("ReduceMean", self.node("Mul", x, x), self.ints(-1)), self.number(1e-6))))
    def layernorm(self, x, name): return self.node("Mul", self.quotient(x), self.gain(name))


class Normalized(Rms):
    """F.normalize(x) sqrt(C), as both exporters write it."""
    def length(self, x): return self.node("Clip", self.node("ReduceL2", x, self.ints(-1)), self.number(1e-12))
    def quotient(self, x): return self.node("Mul", self.node("Div", x, self.node("Expand", self.length(x), self.ints(1, self.tokens, self.hidden))), self.number(self.hidden ** 0.5))


class Longest(Normalized):
    """The length is no longer than it is at least: Max; the constant comes last."""
    def length(self, x): return self.node("Max", self.node("Sqrt", self.node("ReduceSumSquare", x, self.ints(-1))), self.number(1e-8))
    def quotient(self, x): return self.node("Div", x, self.length(x))
    def layernorm(self, x, name): return self.node("Mul", super().layernorm(x, name), self.number(self.hidden ** 0.5))


class Summed(Rms):
    """The mean as a sum by hand; the quotient as a product with 1 / root."""
    def quotient(self, x):
        power = self.node("Add", self.node("Div", self.node("ReduceSum", self.node("Pow", x, self.number(2.0)), self.ints(2)), self.number(self.hidden)), self.number(1e-6))
        return self.node("Mul", x, self.node("Reciprocal", self.node("Sqrt", power)))


class OnePlus(Rms):
    """Gemma: 1 + w, in float32 and back."""
    def gain(self, name): return self.node("Add", self.draw(name + ".weight", self.hidden, by=0.3), self.number(1.0))
    def layernorm(self, x, name): return self.node("Cast", super().layernorm(self.node("Cast", x, to=TensorProto.FLOAT), name), to=TensorProto.FLOAT)


class NoGain(Rms):
    def layernorm(self, x, name): return self.quotient(x)


class Sandwich(Rms):
    """Gemma 2: what sublayers make is normed, too, before it is added."""
    def layer(self, x, bias, p):
        for part, name in (lambda y: self.attention(y, bias, p), "1"), (lambda y: self.mlp(y, p), "2"):
            x = self.node("Add", x, self.layernorm(part(self.layernorm(x, p + "before" + name)), p + "behind" + name))
        return x


# ---- norms of queries and keys --------------------------------------------------------------------------------------------------------

class QkNorm(Spelled):
    """Queries and keys are normed, each head by itself, [1, T, H, D], before heads go first. of: the shape of the gain."""
    def of(self): return (self.head,)
    def gain(self, name): return self.init(name, (1 + 0.3 * self.rng.standard_normal(self.of())).astype(np.float32))
    def normed(self, x, name): return self.node("LayerNormalization", x, self.gain(name), self.draw(name + ".bias", *self.of(), by=0.1), axis=-1, epsilon=1e-5)
    def projections(self, x, p):
        q, k, v = (self.linear(x, self.hidden, self.heads * self.head, p + n) for n in ("query", "key", "value"))
        q, k = (self.node("Transpose", self.normed(self.shaped(y, 1, self.tokens, self.heads, self.head), p + n), perm=[0, 2, 1, 3]) for y, n in ((q, "q_norm"), (k, "k_norm")))
        return self.turned(q, k, self.heads_of(v))


class QkRms(QkNorm):
    """Qwen 3, written out; the gain first, or (of each head) wherever it is broadcast."""
    def normed(self, x, name):
        power = self.node("Add", self.node("ReduceMean", self.node("Pow", x, self.number(2.0)), self.ints(-1)), self.number(1e-6))
        return self.node("Mul", self.gain(name), self.node("Mul", x, self.node("Reciprocal", self.node("Sqrt", power))))


class UnitGain(Spelled):
    """x-transformers' qk_norm: F.normalize of [.., T, 1, D], a gain for each channel of each head behind the view back."""
    behind, own = 1, None

    def projections(self, x, p):
        q, k, v = super().projections(x, p)
        k = self.node("Transpose", k, perm=[0, 1, 3, 2])
        q, k = self.normed(q, p + "q"), self.normed(k, p + "k")
        return q, self.node("Transpose", k, perm=[0, 1, 3, 2]), v

    def normed(self, x, name):
        view = self.shaped(x, 1, self.heads, self.tokens, self.behind, self.head // self.behind)
        length = self.node("Expand", self.node("Clip", self.node("ReduceL2", view, self.ints(-1)), self.number(1e-12)), self.node("Shape", view))
        back = self.shaped(self.node("Div", view, length), 1, self.heads, self.tokens, self.head)
        return self.node("Mul", back, self.draw(name + ".gain", *(self.own or (self.heads, 1, self.head))))

    def scores(self, q, k): return self.node("Mul", self.node("MatMul", q, k), self.number(5.0))


class UnitGainHalves(UnitGain):
    """... of the halves of each head."""
    behind = 2


class UnitGainTokens(UnitGain):
    """... a gain for each token."""
    own = 1, TOKENS, 8


class QkSimplified(QkNorm):
    """ONNX Runtime's operator."""
    def normed(self, x, name): return self.node("SimplifiedLayerNormalization", x, self.gain(name), axis=-1, epsilon=1e-6)


class QkOwn(QkRms):
    """Cohere: a gain of its own for each head."""
    def of(self): return self.heads, self.head


class QkBehind(QkNorm):
    """Behind heads that went first, [1, H, T, D]."""
    def heads_first(self, x, p): return Spelled.projections(self, x, p)
    def projections(self, x, p):
        q, k, v = self.heads_first(x, p)
        if self.heads_first.__func__ is QkBehind.heads_first: k = self.node("Transpose", k, perm=[0, 1, 3, 2])
        return self.turned(self.normed(q, p + "q_norm"), self.normed(k, p + "k_norm"), v)


class QkBehindOwn(QkBehind):
    normed = QkRms.normed
    def of(self): return self.heads, 1, self.head


class QkPacked(QkBehind):
    """timm: out of one projection."""
    def turned(self, q, k, v): return q, k, v
    def heads_first(self, x, p): return Gathers.projections(self, x, p)
    def projections(self, x, p):
        q, k, v = self.heads_first(x, p)
        return Spelled.turned(self, self.normed(q, p + "q_norm"), self.normed(k, p + "k_norm"), v)


class QkMegatron(QkPacked):
    """Out of [1, T, H, 3 D], a gain of its own for each head."""
    normed = QkRms.normed
    def of(self): return self.heads, 1, self.head
    def heads_first(self, x, p): return PerHead.projections(self, x, p)


class QkRows(QkNorm):
    """All heads of all tokens as rows of a matrix."""
    def normed(self, x, name): return self.shaped(super().normed(self.shaped(x, self.tokens * self.heads, self.head), name), 1, self.tokens, self.heads, self.head)


class QkInterleaved(QkNorm):
    """Channels as [D, H]: neighbours belong to different heads."""
    def projections(self, x, p):
        q, k, v = (self.linear(x, self.hidden, self.heads * self.head, p + n) for n in ("query", "key", "value"))
        q, k = (self.normed(self.node("Transpose", self.shaped(y, 1, self.tokens, self.head, self.heads), perm=[0, 3, 1, 2]), p + n) for y, n in ((q, "q_norm"), (k, "k_norm")))
        return self.turned(q, k, self.heads_of(v))


class QkWhole(Spelled):
    """OLMo 2: queries and keys are normed over all heads."""
    def projections(self, x, p):
        wide = self.heads * self.head
        q, k, v = (self.linear(x, self.hidden, wide, p + n) for n in ("query", "key", "value"))
        q, k = (self.node("LayerNormalization", y, self.draw(p + n, wide), axis=-1, epsilon=1e-5) for y, n in ((q, "q_norm"), (k, "k_norm")))
        return self.turned(*(self.heads_of(y) for y in (q, k, v)))


class OneWrong(Causal):
    """A triangle with one element more."""
    says = {"bias": [1, TOKENS, TOKENS]}
    row, column = 2, 5
    def triangle(self):
        keep = super().triangle()
        keep[0, 0, self.row, self.column] ^= True
        return keep


class OneMissing(OneWrong):
    """One less."""
    row, column, says = 5, 1, {"causal": 1, "bias": [1, TOKENS, TOKENS]}


class OneOther(CausalAndKeys):
    """One element of the triangle is a bias, others are the keys' own beside it."""
    says = {"causal": 1, "bias": [1, TOKENS, TOKENS]}
    def masked(self, scores):
        triangle = np.triu(np.full((self.tokens, self.tokens), -1e9, np.float32), 1)
        triangle[4, 3] = -2
        return self.node("Add", Added.masked(self, scores), self.init("triangle", triangle))


class Staircase(Causal):
    """Chunks of three tokens see each other, and those before: no band."""
    says = {"bias": [1, TOKENS, TOKENS]}
    def triangle(self): return (np.arange(self.tokens) // 3 <= np.arange(self.tokens)[:, None] // 3)[None, None]


class HeadsDiffer(Causal):
    """The last head sees everything."""
    says = {"bias": [3, TOKENS, TOKENS]}
    def triangle(self):
        keep = np.repeat(super().triangle(), self.heads, 1)
        keep[:, -1] = True
        return keep


class Alibi(Spelled):
    """Numbers by distance, other ones for each head: a slope times the key's place, whatever the query."""
    says = {"causal": 1, "bias": [3, 1, TOKENS]}
    def masked(self, scores):
        far = np.arange(self.tokens) - np.arange(self.tokens)[:, None]
        slopes = 2.0 ** -np.arange(1, self.heads + 1)
        return self.node("Add", scores, self.init("alibi", np.where(far <= 0, slopes[:, None, None] * far, -np.inf).astype(np.float32)[None]))


class Bias(Spelled):
    """Any number for each head, query and key, in each layer others."""
    says = {"bias": [3, TOKENS, TOKENS]}
    def masked(self, scores): return self.node("Add", scores, self.draw("bias", 1, self.heads, self.tokens, self.tokens))


class Modules(Spelled):
    """A lecture's GPT: nn.ModuleList of heads, each with three Linear of its own, and torch.cat([head(x) for head in heads], -1)."""
    def part(self, x, name): return self.linear(x, self.hidden, self.head, name)
    def source(self, x, h): return x
    def attend(self, x, name, h):
        q, k, v = (self.part(self.source(x, h), name + n) for n in ("query", "key", "value"))
        scores = self.masked_by(self.scores(q, self.node("Transpose", k, perm=[0, 2, 1])), h)
        return self.node("MatMul", self.node("Softmax", scores, axis=-1), v)

    def masked_by(self, scores, h): return scores
    def attention(self, x, bias, p):
        heads = [self.attend(x, "%shead.%d." % (p, h), h) for h in range(self.heads)]
        return self.linear(self.node("Concat", *heads, axis=-1), self.heads * self.head, self.hidden, p + "output")


class ModulesOfParts(Modules):
    """A tutorial's ViT: each head reads a part of the channels alone, and nothing is behind the heads that are joined."""
    step = 1
    def source(self, x, h): return self.node("Slice", x, self.ints(h * self.head * (self.step == 1) + h * (self.step > 1)), self.ints((h + 1) * self.head if self.step == 1 else 99), self.ints(2), self.ints(self.step))
    def part(self, x, name): return self.linear(x, self.head, self.head, name)
    def attention(self, x, bias, p): return self.node("Concat", *[self.attend(x, "%shead.%d." % (p, h), h) for h in range(self.heads)], axis=-1)


class ModulesOfEveryThird(ModulesOfParts):
    """... every third of the channels."""
    step = 3


class ModulesCausal(Modules):
    """Without biases, and each with a triangle of its own, as buffers are."""
    says = {"causal": 1}
    def part(self, x, name): return self.node("MatMul", x, self.draw(name + ".weight", self.hidden, self.head, by=self.hidden ** -0.5))
    def masked_by(self, scores, h): return self.node("Where", self.init("triangle%d" % h, np.tril(np.ones((self.tokens, self.tokens), bool))), scores, self.number(float("-inf")))


class ModulesGemm(Modules):
    """Tokens as rows, [T, C], and weights as torch has them."""
    def source(self, x, h): return self.shaped(x, self.tokens, self.hidden)
    def part(self, x, name): return self.node("Gemm", x, self.draw(name + ".weight", self.head, self.hidden, by=self.hidden ** -0.5), self.draw(name + ".bias", self.head, by=0.2), transB=1)
    def attend(self, x, name, h):
        q, k, v = (self.part(self.source(x, h), name + n) for n in ("query", "key", "value"))
        return self.node("MatMul", self.node("Softmax", self.scores(q, self.node("Transpose", k)), axis=1), v)

    def attention(self, x, bias, p): return self.shaped(super().attention(x, bias, p), 1, self.tokens, self.hidden)


class ModulesBias(Modules):
    """Each with a bias of its own, the same in each layer."""
    says = {"bias": [3, TOKENS, TOKENS]}
    def masked_by(self, scores, h): return self.node("Add", scores, self.init("bias%d" % h, np.random.default_rng(h).standard_normal((self.tokens, self.tokens)).astype(np.float32)))


class ModulesSteeper(Modules):
    """One head's scores are steeper: three attentions of a head each, and the projection behind them in three parts."""
    def masked_by(self, scores, h): return self.node("Mul", scores, self.number(2.0)) if h == 1 else scores


class ModulesOther(Modules):
    """One head reads another value."""
    def source(self, x, h): return self.node("Relu", x) if h == 1 else x


class Beside(Spelled):
    """Attention and an FFN beside it, behind one norm, and one projection of both: ViT-22B, PaLM, FLUX as many write them."""
    def __init__(self): super().__init__("pre")
    def out(self, x, name): return self.linear(x, self.heads * self.head + self.inner, self.hidden, name)

    def layer(self, x, bias, p):
        y = self.layernorm(x, p + "norm")
        q, k, v = self.projections(y, p)
        heads = self.joined(self.mixed(self.node("Softmax", self.scores(q, k), axis=-1), v))
        return self.node("Add", x, self.out(self.node("Concat", heads, self.activation(self.linear(y, self.hidden, self.inner, p + "up")), axis=-1), p + "out"))


class BesideGemm(Beside):
    """By a Gemm of rows, under a factor of each channel."""
    def out(self, x, name):
        wide = self.heads * self.head + self.inner
        y = self.node("Gemm", self.shaped(x, self.tokens, wide), self.draw(name + ".weight", self.hidden, wide, by=wide ** -0.5), self.draw(name + ".bias", self.hidden, by=0.2), transB=1)
        return self.node("Mul", self.shaped(y, 1, self.tokens, self.hidden), self.draw(name + ".gamma", self.hidden, by=0.5))


# ---- what stands on heads, inside of attention -----------------------------------------------------------------------

class FactorOn(Spelled):
    """A factor for each head, or for each channel of each head, of one thing inside of attention; Div: divided by it."""
    def __init__(self, of, shape=None, op="Mul"):
        super().__init__()
        self.of, self.op, self.own = of, op, shape or (1, self.heads, 1, 1)

    def factor(self, y, of):
        if of != self.of: return y
        self.factors = getattr(self, "factors", 0) + 1
        by = np.random.default_rng(self.factors).uniform(0.4, 1.8, self.own).astype(np.float32)
        return self.node(self.op, y, self.init("factor%d" % self.factors, by))

    def projections(self, x, p):
        return [self.factor(y, of) for y, of in zip(super().projections(x, p), ("queries", "keys", "values"))]

    def scores(self, q, k): return self.factor(super().scores(q, k), "scores")
    def mixed(self, p, v): return self.factor(super().mixed(p, v), "result")
    def joined(self, y): return self.shaped(self.factor(self.node("Transpose", y, perm=[0, 2, 1, 3]), "turned"), 1, self.tokens, self.heads * self.head)


class FactorOfPacked(FactorOn):
    """Of values that are a part of one projection."""
    def projections(self, x, p):
        y = self.shaped(self.packed(x, p), 1, self.tokens, 3, self.heads, self.head)
        q, k, v = (self.node("Squeeze", self.node("Slice", y, self.ints(i), self.ints(i + 1), self.ints(2)), self.ints(2)) for i in range(3))
        return [self.node("Transpose", i, perm=o) for i, o in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (self.factor(v, "values"), [0, 2, 1, 3]))]


class ValuesTimes(Spelled):
    """Values times one number, another one in each layer (modded-nanogpt), or probabilities divided by one (a widely copied ViT)."""
    def __init__(self, of):
        super().__init__()
        self.of, self.layer_now = of, 0

    def projections(self, x, p):
        q, k, v = super().projections(x, p)
        self.layer_now += 1
        return q, k, self.node("Mul", self.init("times%d" % self.layer_now, np.float32(0.4 + 0.5 * self.layer_now)), v) if self.of == "values" else v

    def guarded(self, probabilities): return self.node("Div", probabilities, self.number(1.7)) if self.of == "probabilities" else probabilities


class FactorOfTokens(FactorOn):
    """A factor for each token is none of a head's."""
    def __init__(self, of): super().__init__(of, (1, 1, TOKENS, 1))


class Shuffled(Spelled):
    """Heads lie channel by channel, "b t (d h)", and are joined so."""
    def heads_of(self, x, order=(0, 2, 1, 3)): return self.node("Transpose", self.shaped(x, 1, self.tokens, self.head, self.heads), perm=[(0, 1, 3, 2)[i] for i in order])
    def joined(self, y): return self.shaped(self.node("Transpose", y, perm=[0, 2, 3, 1]), 1, self.tokens, self.heads * self.head)


class ShuffledGemm(Shuffled):
    """The same, with torch's weights behind it."""
    def attention(self, x, bias, p):
        q, k, v = self.projections(x, p)
        y = self.joined(self.mixed(self.node("Softmax", self.scores(q, k), axis=-1), v))
        y = self.node("Gemm", self.shaped(y, self.tokens, self.hidden), self.draw(p + "o.weight", self.hidden, self.hidden, by=self.hidden ** -0.5), self.draw(p + "o.bias", self.hidden, by=0.2), transB=1)
        return self.shaped(y, 1, self.tokens, self.hidden)


class ShuffledTokens(Spelled):
    """Joined without the transpose: what a token gets is other tokens'."""
    def joined(self, y): return self.shaped(y, 1, self.tokens, self.heads * self.head)


class Flipped(Spelled):
    """Channels of each head in another order, the values' in a third one."""
    def heads_of(self, x, order=(0, 2, 1, 3)):
        y = self.node("Slice", self.shaped(x, 1, self.tokens, self.heads, self.head), self.ints(-1), self.ints(-99), self.ints(3), self.ints(-1))
        return self.node("Transpose", y, perm=list(order))

    def mixed(self, p, v): return self.node("MatMul", p, self.node("Gather", v, self.ints(3, 1, 0, 2, 7, 4, 6, 5), axis=3))


class Tempered(Spelled):
    """A temperature that each layer learns, and a diagonal that is hidden behind it (a ViT for small data sets)."""
    says = {"bias": [1, TOKENS, TOKENS]}
    def scores(self, q, k):
        self.learnt = getattr(self, "learnt", 0) + 1
        return self.node("Mul", self.node("MatMul", q, k), self.node("Exp", self.init("temperature%d" % self.learnt, np.float32(-1 - 0.1 * self.learnt))))

    def masked(self, scores): return self.node("Where", self.node("Cast", self.node("EyeLike", self.init("square", np.zeros((self.tokens, self.tokens), np.float32))), to=TensorProto.BOOL), self.number(-3.4e38), scores)


class DeepNorm(Spelled):
    """norm(alpha x + f(x)), as DeepNet has it; by: another alpha in each layer."""
    def __init__(self, *by): super().__init__(); self.by = by
    def layer(self, x, bias, p):
        for part, name in (self.attention(x, bias, p), "norm1"), (None, "norm2"):
            alpha = self.number(1.5) if not self.by else self.init(p + name + ".alpha", np.float32(self.by[int(p[6])]))
            x = self.layernorm(self.node("Add", self.node("Mul", x, alpha), part or self.mlp(x, p)), p + name)
        return x


class RmsClamped(Rms):
    """x / max(rms, 1e-5), as a well-known collection of layers has it."""
    least = 1e-5
    def quotient(self, x):
        rms = self.node("Mul", self.node("ReduceL2", x, self.ints(-1)), self.number(self.hidden ** -0.5))
        return self.node("Div", x, self.node("Clip", rms, self.number(self.least)))


class RmsClampedFar(RmsClamped):
    """That floor is no guard any more."""
    least = 1e-2


class Talking(Spelled):
    """Talking heads: scores of heads mixed with each other, by an Einsum."""
    def scores(self, q, k):
        self.mixes = getattr(self, "mixes", 0) + 1
        return self.node("Einsum", super().scores(q, k), self.draw("talk%d" % self.mixes, self.heads, self.heads), equation="bhij,hg->bgij")


class ValuesBeside(Spelled):
    """Relative positions of values: a second product of the probabilities."""
    def mixed(self, p, v):
        self.places = getattr(self, "places", 0) + 1
        return self.node("Add", super().mixed(p, v), self.node("MatMul", p, self.draw("place%d" % self.places, self.tokens, self.head)))


class LinearAttention(Spelled):
    """softmax(q) (softmax(k)^T v)"""
    def attention(self, x, bias, p):
        q, k, v = self.projections(x, p)
        y = self.node("MatMul", self.node("Softmax", q, axis=-1), self.node("MatMul", self.node("Softmax", k, axis=-1), v))
        return self.linear(self.joined(y), self.heads * self.head, self.hidden, p + "output")


class Widths(Spelled):
    """Values of another width than queries and keys; one head of keys and values may be all queries'."""
    def __init__(self, value, kv=3):
        super().__init__()
        self.value, self.kv = value, kv
        self.says = dict(kv_heads=kv) if kv < 3 else {}

    def some(self, x, n, d, name):
        y = self.node("Transpose", self.shaped(self.linear(x, self.hidden, n * d, name), 1, self.tokens, n, d), perm=[0, 2, 1, 3])
        return y if n == self.heads else self.node("Expand", y, self.ints(1, self.heads, self.tokens, d))

    def projections(self, x, p): return self.turned(self.some(x, self.heads, self.head, p + "query"), self.some(x, self.kv, self.head, p + "key"), self.some(x, self.kv, self.value, p + "value"))
    def joined(self, y): return self.shaped(self.node("Transpose", y, perm=[0, 2, 1, 3]), 1, self.tokens, self.heads * self.value)
    def attention(self, x, bias, p):
        q, k, v = self.projections(x, p)
        probabilities = self.node("Softmax", self.masked(self.scores(q, k)), axis=-1)
        return self.linear(self.joined(self.mixed(probabilities, v)), self.heads * self.value, self.hidden, p + "output")


class WidthsCausal(Widths):
    def __init__(self, value):
        super().__init__(value)
        self.says = dict(causal=1)
    def masked(self, scores): return self.node("Where", self.init("triangle", np.tril(np.ones((1, 1, self.tokens, self.tokens), bool))), scores, self.number(float("-inf")))


class WidthsGated(Widths):
    """What stands between heads of another width and their projection is no view."""
    def joined(self, y): return self.node("Sigmoid", super().joined(y))


class TwoKeys(Spelled):
    """Of each head's keys the first half is one value's, the second another's, of all heads."""
    def projections(self, x, p):
        half, other = self.head // 2, self.node("Tanh", self.linear(x, self.hidden, 16, p + "narrow"))
        mine = self.node("Transpose", self.shaped(self.linear(other, 16, self.heads * half, p + "mine"), 1, self.tokens, self.heads, half), perm=[0, 2, 1, 3])
        ours = self.node("Expand", self.shaped(self.linear(x, self.hidden, half, p + "ours"), 1, 1, self.tokens, half), self.ints(1, self.heads, self.tokens, half))
        q, v = (self.heads_of(self.linear(x, self.hidden, 24, p + n)) for n in ("query", "value"))
        return self.turned(q, self.node("Concat", mine, ours, axis=-1), v)


class TwoWhole(Spelled):
    """Keys of two projections side by side, behind which all channels are taken apart into heads."""
    def projections(self, x, p):
        k = self.node("Concat", self.linear(self.node("Tanh", self.linear(x, self.hidden, 16, p + "narrow")), 16, 10, p + "a"), self.linear(x, self.hidden, 14, p + "b"), axis=-1)
        return self.turned(*(self.heads_of(y) for y in (self.linear(x, self.hidden, 24, p + "query"), k, self.linear(x, self.hidden, 24, p + "value"))))


class Differential(Spelled):
    """DiffLlama's: each head mixes its values twice; the second, times a number, is taken from the first, and each head has a norm behind it."""
    def attention(self, x, bias, p):
        q, k, v = self.projections(x, p)
        of = [self.linear(x, self.hidden, 24, p + n) for n in ("query2", "key2")]
        second = self.node("Softmax", self.scores(self.heads_of(of[0]), self.heads_of(of[1], (0, 2, 3, 1))), axis=-1)
        y = self.node("Sub", self.mixed(self.node("Softmax", self.scores(q, k), axis=-1), v), self.node("Mul", self.mixed(second, v), self.number(0.4)))
        y = self.node("LayerNormalization", y, self.draw(p + "gain", self.head), axis=-1)
        return self.linear(self.joined(y), 24, self.hidden, p + "output")


class NoSoftmax(Spelled):
    """Attention by another function of the scores, then by a length: YOSO's."""
    def attention(self, x, bias, p):
        q, k, v = self.projections(x, p)
        y = self.mixed(self.node("Sigmoid", self.scores(q, k)), v)
        return self.linear(self.joined(self.ended(y)), 24, self.hidden, p + "output")
    def ended(self, y): return y


class NoSoftmaxNormed(NoSoftmax):
    def ended(self, y): return self.node("Div", y, self.node("Expand", self.node("Clip", self.node("ReduceL2", y, self.ints(-1)), self.number(1e-12)), self.ints(1, self.heads, self.tokens, self.head)))


class Dynamic(Spelled):
    """ConvBERT's: beside the heads stand convolutions whose kernels the tokens make."""
    def joined(self, y):
        kernels = self.node("Softmax", self.shaped(self.linear(self.now, self.hidden, self.heads * 3, "kernels"), self.tokens * self.heads, 3, 1), axis=1)
        wide = self.node("Pad", self.linear(self.now, self.hidden, 24, "unfolded"), self.ints(0, 1, 0, 0, 1, 0))
        taken = [self.node("Unsqueeze", self.node("Slice", wide, self.ints(i), self.ints(i + self.tokens), self.ints(1)), self.ints(3)) for i in range(3)]
        values = self.shaped(self.node("Concat", *taken, axis=3), self.tokens * self.heads, self.head, 3)
        return self.node("Concat", super().joined(y), self.shaped(self.node("MatMul", values, kernels), 1, self.tokens, 24), axis=-1)

    def attention(self, x, bias, p):
        self.now = x
        q, k, v = self.projections(x, p)
        return self.linear(self.joined(self.mixed(self.node("Softmax", self.scores(q, k), axis=-1), v)), 48, self.hidden, p + "output")


class SumNorm(FastNorm):
    """Plain JAX: the mean is a sum that loses its axis, gets it back by a Reshape and an Expand, and is divided."""
    op, channels = "ReduceSum", 24
    def mean(self, x): return self.node("Div", self.node("Expand", self.shaped(self.node(self.op, x, self.ints(2), keepdims=0), 1, self.tokens, 1), self.ints(1, self.tokens, 1)), self.number(float(self.channels)))


class SumNormOutside(SumNorm):
    """It is divided before it gets its axis back."""
    def mean(self, x): return self.shaped(self.node("Div", self.node("ReduceSum", x, self.ints(2), keepdims=0), self.number(float(self.channels))), 1, self.tokens, 1)


class SumNormOther(SumNorm):
    """Divided by another number."""
    channels = 25


class SlopeNorm(Rms):
    """Keras: x * (gain / root)."""
    def layernorm(self, x, name):
        power = self.node("Add", self.node("ReduceMean", self.node("Pow", x, self.number(2.0)), self.ints(-1)), self.number(1e-6))
        return self.node("Mul", x, self.node("Mul", self.node("Reciprocal", self.node("Sqrt", power)), self.gain(name)))


class SteadyNorm(FastNorm):
    """jax2onnx: a token whose channels are all the same has deviations of 0, and the variance is computed in double."""
    least = "ReduceMin"
    def less(self, x, mean): return self.node("Sub", x, mean)
    def layernorm(self, x, name):
        mean, (gain, bias) = self.mean(x), self.gains(name)
        same = self.node("Equal", self.node(self.least, x, self.ints(2), keepdims=1), self.node("ReduceMax", x, self.ints(2), keepdims=1))
        same = self.node("And", same, self.node("Equal", self.node("Sub", mean, mean), self.number(0.0)))
        d = self.node("Where", same, self.number(0.0), self.less(x, mean))
        power = self.node("Cast", self.mean(self.node("Cast", self.node("Mul", d, d), to=TensorProto.DOUBLE)), to=TensorProto.FLOAT)
        return self.node("Add", self.node("Mul", self.node("Div", d, self.node("Sqrt", self.node("Add", power, self.number(1e-5)))), gain), bias)


class DoubleNorm(FastNorm):
    """TorchScript's of a model in 16 bits before opset 17: from the deviation to the quotient in double, then gain and bias, or neither."""
    bare = False
    def layernorm(self, x, name):
        gain, bias = self.gains(name)
        d = self.node("Cast", self.node("Sub", x, self.mean(x)), to=TensorProto.DOUBLE)
        power = self.node("Add", self.mean(self.node("Mul", d, d)), self.init(name + ".epsilon", np.float64(1e-5)))
        y = self.node("Cast", self.node("Div", d, self.node("Sqrt", power)), to=TensorProto.FLOAT)
        return y if self.bare else self.node("Add", self.node("Mul", y, gain), bias)


class BareDoubleNorm(DoubleNorm):
    bare = True


class UnsteadyNorm(SteadyNorm):
    """Deviations of 0 where the largest is 0: another function."""
    least = "ReduceSum"


class SteadyOther(SteadyNorm):
    """What is set to 0 is no deviation: less half the mean, and a token whose channels are all the same has one."""
    def less(self, x, mean): return self.node("Sub", x, self.node("Mul", mean, self.number(0.5)))


class ByHand(Spelled):
    """A softmax by hand: e^(s - max) over its sum, whose axes go and come."""
    most, axis = "ReduceMax", 3
    def over(self, op, v):
        if self.axis != 3: return self.node(op, v, self.ints(self.axis), keepdims=1)
        y = self.node(op, v, self.ints(3), keepdims=0)
        return self.node("Expand", self.shaped(y, 1, self.heads, self.tokens, 1), self.ints(1, self.heads, self.tokens, 1))

    def attention(self, x, bias, p):
        q, k, v = self.projections(x, p)
        s = self.masked(self.scores(q, k))
        e = self.node("Exp", self.node("Sub", s, self.over(self.most, s)))
        return self.linear(self.joined(self.mixed(self.node("Div", e, self.over("ReduceSum", e)), v)), self.heads * self.head, self.hidden, p + "output")


class ByHandLeast(ByHand):
    """Less the least: the same function."""
    most = "ReduceMin"


class ByHandColumns(ByHand):
    """Over the queries: another one."""
    axis = 2


class Neutral(Spelled):
    """Paddle's scale, s * c + 0, in front of products; a factor of 1."""
    def scores(self, q, k): return self.node("Mul", self.node("MatMul", self.node("Add", self.node("Mul", q, self.number(self.head ** -0.5)), self.number(0.0)), k), self.number(1.0))


class GemmOfNone(Spelled):
    """XLA's products: a Gemm of rows whose third operand counts 0 times; scores get their batch back by a view, and the softmax's axis is said."""
    def linear(self, x, k, n, name):
        y = self.node("Gemm", self.shaped(x, self.tokens, k), self.draw(name + ".weight", k, n, by=k ** -0.5), self.number(7.0), beta=0.0)
        return self.node("Add", self.shaped(y, 1, self.tokens, n), self.draw(name + ".bias", n, by=0.2))

    def scores(self, q, k): return super().scores(*(self.node("Squeeze", v, self.ints(0)) for v in (q, k)))
    def masked(self, scores): return self.shaped(scores, 1, self.heads, self.tokens, self.tokens)
    def guarded(self, probabilities):
        self.nodes[-1].attribute[0].i = 3
        return probabilities


class Dotted(Spelled):
    """Flax: products in index notation with an ellipsis for the batch."""
    def projections(self, x, p): return [self.shaped(self.linear(x, self.hidden, self.heads * self.head, p + n), 1, self.tokens, self.heads, self.head) for n in ("query", "key", "value")]
    def scores(self, q, k): return self.node("Einsum", self.node("Div", q, self.number(self.head ** 0.5)), k, equation="...qhd,...khd->...hqk")
    def mixed(self, p, v): return self.node("Einsum", p, v, equation="...hqk,...khd->...qhd")
    def joined(self, y): return self.shaped(y, 1, self.tokens, self.heads * self.head)


class Spread(Spelled):
    """Haiku: biases that were spread over the tokens."""
    def linear(self, x, k, n, name): return self.node("Add", self.node("MatMul", x, self.draw(name + ".weight", k, n, by=k ** -0.5)), self.init(name + ".bias", np.repeat((self.rng.standard_normal((1, 1, n)) * 0.2).astype(np.float32), self.tokens, 1)))


class HeadBias(Spelled):
    """Keras: biases of heads, [H, D], where the channels are heads already."""
    bias = (3, 8)
    def projections(self, x, p):
        def one(n): return self.node("Add", self.shaped(self.node("MatMul", x, self.draw(p + n, self.hidden, self.hidden, by=self.hidden ** -0.5)), 1, self.tokens, self.heads, self.head), self.draw(p + n + ".bias", *self.bias, by=0.3))
        return [self.node("Transpose", one(n), perm=order) for n, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))]


class HeadBiasTokens(HeadBias):
    """One for each token, too."""
    bias = (TOKENS, 3, 8)


class Selected(Causal):
    """tf2onnx: a choice by arithmetic, c scores + (1 - c) -1e9, of a causal mask and a run time's in one, by their least; what is hidden is 0 once more behind the softmax."""
    says, runtime_mask, nothing = {"causal": 1}, TensorProto.INT64, 0.0
    def extra(self):
        rows = self.node("Unsqueeze", self.node("Cast", "attention_mask", to=TensorProto.INT32), self.ints(1))
        least = self.node("Min", rows, self.init("causal", np.tril(np.ones((1, self.tokens, self.tokens), np.int32))))
        self.kept = self.node("Greater", self.node("Cast", self.node("Unsqueeze", least, self.ints(1)), to=TensorProto.FLOAT), self.number(0.0))
        self.keeps, self.hides = (self.node("Cast", c, to=TensorProto.FLOAT) for c in (self.kept, self.node("Not", self.kept)))
    def select(self, v, other): return self.node("Add", self.node("Mul", self.keeps, v), self.node("Mul", self.hides, self.number(other)))
    def masked(self, scores): return self.select(scores, -1e9)
    def guarded(self, probabilities): return self.select(probabilities, self.nothing)


class Paired(Spelled):
    """Flax, and Keras' mask_zero: a query sees a key where both are no padding; on their way conditions are cast and compared. Padding itself sees something else."""
    runtime_mask, pads, op = TensorProto.INT64, True, "And"
    def extra(self):
        kept = self.node("Greater", "attention_mask", self.whole(0))
        q, k = self.shaped(kept, 1, 1, self.tokens, 1), self.shaped(self.node("Greater", "attention_mask", self.whole(0)), 1, 1, 1, self.tokens)
        self.kept = self.node("Not", self.node("Equal", self.node("Cast", self.node(self.op, q, k), to=TensorProto.FLOAT), self.number(0.0)))
    def masked(self, scores): return self.node("Where", self.kept, scores, self.number(-1e9))


class PairedTwice(Paired):
    """Keras: and once more the keys' own."""
    def extra(self):
        kept = self.node("Cast", "attention_mask", to=TensorProto.BOOL)
        q, k = self.shaped(kept, 1, 1, self.tokens, 1), self.shaped(kept, 1, 1, 1, self.tokens)
        self.kept = self.node("And", self.node("And", q, k), k)


class PairedCausal(Paired):
    """And no later key."""
    says = {"causal": 1}
    def extra(self):
        super().extra()
        self.kept = self.node("And", self.init("before", np.tril(np.ones((1, 1, self.tokens, self.tokens), bool))), self.kept)


class PairedBytes(Paired):
    """A tutorial's: bytes; queries that are padding see nothing, all others padding's keys, too, but no later one: of padding behind all tokens nothing is seen."""
    says = {"causal": 1}
    def extra(self):
        kept = self.node("Cast", self.node("Greater", "attention_mask", self.whole(0)), to=TensorProto.UINT8)
        both = self.node("BitwiseAnd", self.shaped(kept, 1, 1, self.tokens, 1), self.init("before", np.tril(np.ones((self.tokens, self.tokens), np.uint8))))
        self.kept = self.node("Not", self.node("Equal", both, self.init("zero", np.uint8(0))))


class PairedEither(Paired):
    """One of them is enough: padding's keys are seen."""
    op = "Or"


class PairedHidden(Paired):
    """Hidden where both are padding: another function."""
    def masked(self, scores): return self.node("Where", self.kept, self.number(-1e9), scores)


class PairedShifted(Paired):
    """The next query's padding counts."""
    def extra(self):
        kept = self.node("Cast", "attention_mask", to=TensorProto.BOOL)
        next_ = self.node("Gather", kept, self.init("next", np.array([*range(1, self.tokens), 0])), axis=1)
        self.kept = self.node("And", self.shaped(next_, 1, 1, self.tokens, 1), self.shaped(kept, 1, 1, 1, self.tokens))


class PairedQueries(Paired):
    """not (not (q k) and not q) is q: queries that are padding see nothing, all others see padding's keys, too."""
    def extra(self):
        kept = self.node("Cast", "attention_mask", to=TensorProto.BOOL)
        q, k = self.shaped(kept, 1, 1, self.tokens, 1), self.shaped(kept, 1, 1, 1, self.tokens)
        self.kept = self.node("Not", self.node("And", self.node("Not", self.node("And", q, k)), self.node("Not", q)))


class PairedElsewhere(Paired):
    """A query that is no padding and a word of some kind; but for a token itself, which is no padding."""
    def extra(self):
        kept, kind = self.node("Cast", "attention_mask", to=TensorProto.BOOL), self.node("Greater", "input_ids", self.whole(5))
        pair = self.node("And", self.shaped(kept, 1, 1, self.tokens, 1), self.shaped(kind, 1, 1, 1, self.tokens))
        self.kept = self.node("Where", self.init("self", np.eye(self.tokens, dtype=bool)[None, None]), self.shaped(kept, 1, 1, 1, self.tokens), pair)


class SelectedOther(Selected):
    """What is hidden counts a tenth behind the softmax."""
    nothing = 0.1


class SelectedFolded(Spelled):
    """The same of a constant mask, which tf2onnx has computed."""
    says = {"causal": 1}
    def extra(self):
        kept = np.tril(np.ones((1, 1, self.tokens, self.tokens), np.float32))
        self.keeps, self.fill, self.zeros = self.init("keeps", kept), self.init("fill", (1 - kept) * np.float32(-1e9)), self.init("zeros", 0 * kept)
    def masked(self, scores): return self.node("Add", self.node("Mul", self.keeps, scores), self.fill)
    def guarded(self, probabilities): return self.node("Add", self.node("Mul", self.keeps, probabilities), self.zeros)


class SelectedFoldedOther(SelectedFolded):
    """Behind the softmax another key is hidden, too."""
    def guarded(self, probabilities):
        kept = np.tril(np.ones((1, 1, self.tokens, self.tokens), np.float32))
        kept[..., 0] = 0
        return self.node("Mul", self.init("others", kept), probabilities)


class FilledFar(Spelled):
    """Paddle: Where(hides, an array of -inf, scores)."""
    says = {"causal": 1}
    def masked(self, scores): return self.node("Where", self.init("hides", ~np.tril(np.ones((1, 1, self.tokens, self.tokens), bool))), self.init("far", np.full((1, 1, self.tokens, self.tokens), -np.inf, np.float32)), scores)


# ---- layers that are a loop already -------------------------------------------------------------------------------------------------------

class Looped(Spelled):
    """jax.lax.scan as jax2onnx writes it: a Loop that passes stacks of weights on, and picks from them by the number of the iteration."""
    axis, trips, stacks, outside, counts = 0, 2, 2, False, False
    def draw(self, name, *shape, by=1.0):
        if not self.inside: return super().draw(name, *shape, by=by)
        stack = super().draw(name, *((self.stacks, *shape) if self.axis == 0 else (*shape[:1], self.stacks, *shape[1:])), by=by)
        self.passed.append(stack)
        return self.node("Gather", stack if self.outside else stack + ".in", self.number_of(), axis=self.axis)

    def node(self, op, *inputs, **attributes):
        out = super().node(op, *inputs, **attributes)
        if not self.inside: return out
        self.nodes[-1].output[0] = "layer." + out
        return "layer." + out

    def number_of(self): return "i"
    def goes_on(self): return self.node("Identity", "on")
    def kept(self, name): return self.node("Identity", name)
    def ended(self, x): return x
    def layernorm(self, x, name):
        gain = self.node("Add", self.draw(name + ".weight", self.hidden, by=0.3), self.number(1.0))
        return self.node("LayerNormalization", x, gain, self.draw(name + ".bias", self.hidden, by=0.1), axis=-1, epsilon=1e-5)

    def model(self):
        info = helper.make_tensor_value_info
        self.nodes, self.inits, self.rng, self.inside, self.passed = [], {}, np.random.default_rng(24), False, []
        x = self.node("Add", self.node("Gather", self.draw("words", 50, self.hidden), "input_ids"), self.draw("places", 1, self.tokens, self.hidden))
        outer, self.nodes, self.inside = self.nodes, [], True
        y = self.ended(self.layer("x", None, "layer."))
        passed = [] if self.outside else self.passed
        ends = [self.goes_on(), y, *(self.kept(s + ".in") for s in passed)]
        shapes = {s: self.inits[s].dims for s in passed}
        inputs = [info("i", TensorProto.INT64, []), info("on", TensorProto.BOOL, []), info("x", TensorProto.FLOAT, [1, self.tokens, self.hidden]), *(info(s + ".in", TensorProto.FLOAT, shapes[s]) for s in passed)]
        outputs = [info(ends[0], TensorProto.BOOL, []), info(y, TensorProto.FLOAT, [1, self.tokens, self.hidden]), *(info(e, TensorProto.FLOAT, shapes[s]) for e, s in zip(ends[2:], passed))]
        body, self.nodes, self.inside = helper.make_graph(self.nodes, "layer", inputs, outputs), outer, False
        trips = "trips" if self.counts else self.whole(self.trips)
        self.nodes.append(helper.make_node("Loop", [trips, self.init("true", np.array(True)), x, *passed], ["last_hidden_state", *(s + ".out" for s in passed)], name="layers", body=body))
        inputs = [info("input_ids", TensorProto.INT64, [1, self.tokens])] + ([info("trips", TensorProto.INT64, [])] if self.counts else [])
        graph = helper.make_graph(self.nodes, "encoder", inputs, [info("last_hidden_state", TensorProto.FLOAT, [1, self.tokens, self.hidden])], list(self.inits.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)


class LoopedOutside(Looped):
    """The body reads the stacks where they are."""
    outside = True


class LoopedNested(Looped):
    """A branch within reads what never changes."""
    def ended(self, x):
        stack = self.passed[0]
        then = helper.make_graph([helper.make_node("ReduceMean", [stack + ".in"], ["then"], keepdims=0), helper.make_node("Add", [x, "then"], ["more"])], "then", [], [helper.make_tensor_value_info("more", TensorProto.FLOAT, None)])
        other = helper.make_graph([helper.make_node("Identity", [x], ["same"])], "other", [], [helper.make_tensor_value_info("same", TensorProto.FLOAT, None)])
        return self.node("If", self.node("Greater", self.node("ReduceMax", x, keepdims=0), self.number(0.0)), then_branch=then, else_branch=other)


class LoopedOpen(LoopedOutside):
    """So often as an input says."""
    counts = True


class LoopedEnding(Looped):
    """It ends by itself after the first."""
    def goes_on(self): return self.node("Less", "i", self.whole(0))


class LoopedAcross(Looped):
    """Weights lie along the second axis of what is picked from."""
    axis = 1
    def layernorm(self, x, name): return Spelled.layernorm(self, x, name)
    def linear(self, x, k, n, name): return self.node("MatMul", x, self.draw(name + ".weight", k, n, by=k ** -0.5))


class LoopedOther(Looped):
    """Each iteration takes the weights of the other one."""
    def number_of(self): return self.node("Sub", self.whole(1), "i")


class LoopedChanging(Looped):
    """The stacks shrink from iteration to iteration."""
    def kept(self, name): return self.node("Mul", name, self.number(0.5))


class LoopedLonger(Looped):
    """There are more weights than iterations."""
    stacks = 3


class LoopedCounting(Looped):
    """The number of the iteration is a number of the model, too."""
    def ended(self, x): return self.node("Add", x, self.node("Mul", self.node("Cast", "i", to=TensorProto.FLOAT), self.number(0.25)))


ATTENTIONS = {"Attention", "AttentionBias", "AttentionCap"}
SPELLINGS = {
    "plain": Spelled, "split": Split, "slices": Slices, "gathers": Gathers, "per head": PerHead, "innermost": Innermost, "unbound": Unbound, "indexed": Indexed, "steps": Steps, "unbound, with a gate": UnboundGate, "a gate's halves interleaved": PairedGate, "a gate's halves in groups": lambda: PairedGate(4), "interleaved": Interleaved, "gemm": Gemm,
    "crossed": Crossed, "sequence first": SequenceFirst, "channels first": Lines, "channels first, in groups": LinesInGroups, "channels first, with gains": LinesGained, "einsum": Einsum, "einsum weights": EinsumWeights, "einsum of three": EinsumGains, "scale twice": ScaleTwice, "casts": Casts, "flat": Flat, "layer scale": LayerScale,
    "rows": Rows, "batch norms": Batched, "batch norms behind": BatchedBehind, "batch norms, flat": BatchedFlat, "batch norms, channels first": BatchedLines,
    "mask added": Added, "mask expanded": Expanded, "mask per head": PerHeadMask, "mask in the body": InTheBody, "mask filled": Filled, "mask kept": Kept, "guarded": Guarded,
    "mask subtracted": Subtracted, "mask twice": Twice, "mask gathered": Gathered,
    "causal": Causal, "causal and keys": CausalAndKeys, "causal ranges": Ranges, "causal trilu": Trilus, "causal product": Product, "causal scattered": Scattered,
    "causal blanked": Blanked, "capped": Capped, "capped times": CappedTimes, "cap alone": CapAlone, "cap uneven": CapUneven, "caps of layers": CapsOfLayers, "capped causal": CappedCausal,
    "causal held": HeldAndCausal, "causal, of two ranks": CausalFronts, "causal lowest": Lowest, "window": Window, "window around": Around, "window lopsided": Lopsided,
    "grouped expand": grouped(2, "expand"), "grouped tile": grouped(2, "tile"), "grouped gather": grouped(2, "gather"), "one head of keys": grouped(1, "expand"),
    "five axes": FiveAxes, "grouped packed": PackedGroups, "grouped causal": CausalGroups, "group query": GroupQuery, "group query window": GroupQueryWindow,
    "norm pow sqrt div": norm(), "norm mul sqrt reciprocal": norm(square="Mul", last="Reciprocal", ending="first"), "norm pow power": norm(root="Pow", last="Power"),
    "norm one over": norm(last="Over"), "norm gain early": norm(ending="early"), "norm twice": TwoDeviations, "norm of opset 17": OldMean, "norm of a deviation": OfDeviation,
    "rms": norm(centred=False), "rms reciprocal": norm(centred=False, last="Reciprocal", ending="first"), "rms power": norm(centred=False, root="Pow", last="Power"),
    "norm unbiased": Unbiased, "norm guarded": StdGuarded, "norm guarded, unsqueezed": StdUnsqueezed, "norm guarded, one factor": StdOne, "rms of the length": Normalized, "rms of the longest": Longest, "rms by sums": Summed, "rms one plus": OnePlus, "rms without a gain": NoGain, "rms sandwich": Sandwich,
    "minus": Minus, "einsum, one key": EinsumOneKey, "qk norm": QkNorm, "qk rms": QkRms, "qk simplified": QkSimplified, "qk own": QkOwn, "qk behind": QkBehind, "qk behind own": QkBehindOwn, "qk packed": QkPacked, "qk side by side": QkMegatron,
    "qk rows": QkRows, "qk interleaved": QkInterleaved, "qk whole": QkWhole,
    "one element more": OneWrong, "one element less": OneMissing, "one other element": OneOther, "staircase": Staircase, "heads differ": HeadsDiffer, "alibi": Alibi, "bias": Bias,
    "modules": Modules, "modules, causal": ModulesCausal, "modules of parts": ModulesOfParts, "modules of rows": ModulesGemm, "modules with biases": ModulesBias, "modules, one steeper": ModulesSteeper, "beside": Beside, "beside by a Gemm": BesideGemm,
    **{"a factor of each head's " + of: (lambda of=of: FactorOn(of)) for of in ("queries", "keys", "values", "scores", "result")},
    "a factor of turned heads": lambda: FactorOn("turned", (3, 1)), "a factor of each channel of heads": lambda: FactorOn("result", (3, 1, 8)), "a divisor of queries' channels": lambda: FactorOn("queries", (3, 1, 8), "Div"),
    "a convolution behind a Pad": PaddedConv, "a causal one behind a Pad": lambda: PaddedConv((2, 0), 0.0),
    "values times a number of each layer": lambda: ValuesTimes("values"), "probabilities divided": lambda: ValuesTimes("probabilities"), "gains behind a view of norms": UnitGain,
    "a divisor of scores": lambda: FactorOn("scores", (3, 1, 1), "Div"), "a factor of packed values": lambda: FactorOfPacked("values", (3, 8)),
    "heads channel by channel": Shuffled, "heads channel by channel, a Gemm behind": ShuffledGemm, "heads flipped": Flipped, "temperatures, no diagonal": Tempered,
    "values narrower": lambda: Widths(5), "values wider": lambda: Widths(12), "values narrower, one head": lambda: Widths(6, 1), "values wider, one head": lambda: Widths(10, 1), "values narrower, causal": lambda: WidthsCausal(6), "values wider, causal": lambda: WidthsCausal(12),
    "keys of two values": TwoKeys, "keys of two projections": TwoWhole,
    "norm by mean squares": FastNorm, "norm by mean squares, Pow": FastNormPow, "norm affine": Affine, "norm affine, less": AffineLess, "norm affine, plain": AffinePlain,
    "renormalized": Renormalized, "renormalized by numbers": RenormalizedPlain, "renormalized keys": RenormalizedKeys, "keys first": KeysFirst, "keys first, causal": KeysFirstCausal,
    "norm by sums": SumNorm, "norm by sums, divided first": SumNormOutside, "rms by its slope": SlopeNorm, "norm of steady tokens": SteadyNorm, "norm in doubles": DoubleNorm, "norm in doubles, bare": BareDoubleNorm, "softmax by hand": ByHand, "softmax by hand, less the least": ByHandLeast,
    "gemm of none": GemmOfNone, "neutral": Neutral, "einsum with dots": Dotted, "biases spread": Spread, "biases of heads": HeadBias, "selected": Selected, "selected, folded": SelectedFolded, "filled with an array": FilledFar, "padding in pairs": Paired, "padding in pairs, twice": PairedTwice, "padding in pairs, causal": PairedCausal, "padding of queries, causal, bytes": PairedBytes,
    "a loop": Looped, "a loop, stacks outside": LoopedOutside,
    "an axis behind the keys": OneBehind, "convolved lines": ConvolvedLines,
    "deep norm": DeepNorm, "deep norm of layers": lambda: DeepNorm(1.5, 0.8), "rms clamped": RmsClamped}


def feed(m, seed):
    """Inputs that calibration has not seen: a mask keeps the first keys (boolean: pads the last)."""
    rng, out = np.random.default_rng(seed), {}
    for i in m.graph.input:
        kept = np.arange(TOKENS) < rng.integers(TOKENS // 2, TOKENS)
        if i.name == "input_ids": out[i.name] = rng.integers(0, 50, (1, TOKENS))
        else: out[i.name] = ~kept[None] if i.type.tensor_type.elem_type == TensorProto.BOOL else kept[None].astype(np.int64)
    return out


def cosine(a, b): return float(np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b)))


def said(lowered):
    """What an attention hides by place, its heads of keys, the shape of its bias: its attributes, and the last two members of its parameters in each iteration."""
    m = onnx.load(lowered)
    loop = graphs.scans(m)[0]
    n = next(n for n in graphs.body(loop).node if n.op_type in ATTENTIONS)
    says = {a.name: a.i for a in n.attribute if a.name in ("causal", "band", "kv_heads")}
    stacks = dict(zip((i.name for i in graphs.body(loop).input), loop.input))
    parameter = lambda k: onnx.numpy_helper.to_array(next(i for i in m.graph.initializer if i.name == stacks[n.input[k]]))
    p = parameter(4)
    if n.op_type == "AttentionBias": says["bias"] = list(parameter(5).shape[1:])
    return says, p[:, 4:].tolist() if says.get("band") else None


def judge(m, path, spelled=None):
    """'' or what is wrong with the integers of a model."""
    lowered = path[:-5] + ".lowered.onnx"
    p = t.call("lower", path, "--onnx", "-o", lowered)
    if p.returncode: return p.stderr.decode().strip().splitlines()[-1]
    kernels = sorted(n.op_type for n in graphs.body(graphs.scans(onnx.load(lowered))[0]).node if n.domain == "mlo")
    if not ATTENTIONS & set(kernels): return "no attention among %s" % kernels
    expected = getattr(spelled, "says", {}), getattr(spelled, "band", None)
    if said(lowered) != expected: return "the attention is %s, not %s" % (said(lowered), expected)
    worst = 1.0
    for seed in range(3):
        f = feed(m, seed)
        np.savez(t.at("in.npz"), **f)
        t.good("run", lowered, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        right, judged = graphs.execute(m, f)[0], graphs.execute(onnx.load(lowered), f)[0]
        with np.load(t.at("out.npz")) as z: ours = z["last_hidden_state"]
        if ours.shape != right.shape or not np.array_equal(ours, judged): return "mlo and ONNX Runtime differ on the integers"
        # in a window, a query may see no key: ours gives 0, floats give the mean; it is padding itself
        kept = f["attention_mask"][0] > 0 if (expected[1] or getattr(spelled, "pads", False)) and "attention_mask" in f else slice(None)
        worst = min(worst, cosine(right[:, kept], ours[:, kept]))
    return "" if worst >= 0.995 else "cosine %.4f with the floats" % worst


def check_spellings():
    for name, spelled in SPELLINGS.items():
        encoder = spelled()
        m = encoder.model()
        onnx.save(m, t.at("m.onnx"))
        t.case(name, judge(m, t.at("m.onnx"), encoder))


def check_one_kernel_list():
    """A packed projection costs what three cost: the same kernels, of the same sizes."""
    lists = {}
    for name in ("plain", "split", "gathers", "per head", "innermost", "unbound", "indexed", "steps", "sequence first"):
        onnx.save(SPELLINGS[name]().model(), t.at("m.onnx"))
        t.good("lower", t.at("m.onnx"), "--onnx", "-o", t.at("lowered.onnx"))
        lists[name] = [(n.op_type, graphs.meta(n).get("mlo.kernel")) for n in graphs.body(graphs.scans(onnx.load(t.at("lowered.onnx")))[0]).node if n.domain == "mlo"]
    t.case("spellings cost the same", "; ".join("%s: %s" % (k, v) for k, v in lists.items() if v != lists["plain"]))


def check_named_domain():
    """ai.onnx is the name of the standard operators' domain, which most leave empty: the same kernels."""
    m, lists = SPELLINGS["plain"]().model(), []
    for domain in "", "ai.onnx":
        for n in m.graph.node: n.domain = domain
        onnx.save(m, t.at("m.onnx"))
        t.good("lower", t.at("m.onnx"), "--onnx", "-o", t.at("lowered.onnx"))
        lists.append([(n.op_type, graphs.meta(n).get("mlo.kernel")) for n in graphs.body(graphs.scans(onnx.load(t.at("lowered.onnx")))[0]).node if n.domain == "mlo"])
    t.case("a domain that is named", "" if lists[0] == lists[1] and lists[0] else "%s, %s" % tuple(lists))


class Viewed(Spelled):
    """TorchScript's input_ids.view(-1, T): the ids reach their table behind a Reshape, and are drawn from all of it all the same."""
    def node(self, op, *inputs, **attributes):
        if op == "Gather" and inputs[1] == "input_ids": inputs = (inputs[0], self.node("Reshape", "input_ids", self.ints(1, self.tokens)))
        return super().node(op, *inputs, **attributes)


def check_drawn_inputs():
    onnx.save(Viewed().model(), t.at("m.onnx"))
    t.case("ids behind a view", judge(onnx.load(t.at("m.onnx")), t.at("m.onnx")))


# ---- near misses -------------------------------------------------------------------------------------------------------------------------

class Blocks(Masked):
    """Keys count for queries of the same segment: rows differ with the input, though they are equal when all is one segment."""
    def masked(self, scores):
        same = self.node("Equal", self.shape(1, 1, 1, self.tokens), self.shape(1, 1, self.tokens, 1))
        return self.node("Where", same, scores, self.number(-1e9))


class OtherKeys(Masked):
    """Causal, but of one query the keys' mask is shifted by a key."""
    def extra(self):
        keep = self.node("And", self.init("triangle", np.tril(np.ones((1, 1, self.tokens, self.tokens), bool))), self.node("Cast", self.shape(1, 1, 1, self.tokens), to=TensorProto.BOOL))
        rows = [self.node("Slice", keep, self.ints(i), self.ints(i + 1), self.ints(2)) for i in range(self.tokens)]
        rows[4] = self.node("Gather", rows[4], self.ints(*np.roll(np.arange(self.tokens), 1)), axis=3)
        self.bias = self.node("Where", self.node("Concat", *rows, axis=2), self.number(0.0), self.number(-3.4e38))
    masked = Added.masked


class Strict(Causal):
    """A query does not even see itself."""
    def triangle(self): return np.tril(np.ones((1, 1, self.tokens, self.tokens), bool), -1)


class Faint(Blanked):
    """What the triangle takes away is not hidden."""
    far = -100.0


class Halved(Blanked):
    """A triangle that halves scores."""
    factor = 0.5


class CapOfMasked(Causal):
    """Hidden in front of the cap: no more than at the cap."""
    def masked(self, scores): return self.node("Mul", self.node("Tanh", self.node("Add", scores, self.init("hides", np.where(self.triangle(), 0, -1e9).astype(np.float32)))), self.number(1.5))


class CapBelow(Capped):
    """Turned round."""
    inside, cap = (1.5,), (-1.5,)


class CapAndBias(Capped):
    def masked(self, scores): return self.node("Add", self.under(scores), self.init("slope", np.arange(self.tokens, dtype=np.float32)))


class HalfMasked(Masked):
    """A mask of numbers that no one proves to hide."""
    runtime_mask = TensorProto.FLOAT
    def masked(self, scores): return self.node("Add", scores, self.node("Mul", self.init("rows", np.tril(np.full((self.tokens, self.tokens), -1e9, np.float32))), self.shape(1, 1, 1, self.tokens)))


class Counted(Masked):
    """BLOOM's ALiBi: the distance counts the tokens that the mask keeps, so the bias depends on the input."""
    def masked(self, scores):
        keep = self.node("Cast", self.shape(1, 1, 1, self.tokens), to=TensorProto.FLOAT)
        places = self.node("Mul", self.node("CumSum", keep, self.ints(3)), self.init("slopes", (2.0 ** -np.arange(1, self.heads + 1)).astype(np.float32)[:, None, None]))
        return super().masked(self.node("Add", scores, places))


class Asked(Spelled):
    """A bias that tokens themselves ask for."""
    def projections(self, x, p):
        self.asks = self.node("Transpose", self.node("MatMul", x, self.draw(p + "asks", self.hidden, self.heads)), perm=[0, 2, 1])
        return super().projections(x, p)

    def masked(self, scores): return self.node("Add", scores, self.node("Unsqueeze", self.asks, self.ints(2)))


class WrongWay(Grouped):
    """Key heads 0 1 0 1 of a layer that is no projection: its heads lie the wrong way round."""
    kv, spread = 2, "wrong"
    def linear(self, x, k, n, p):
        y = super().linear(x, k, n, p)
        return self.node("Relu", y) if n == self.kv * self.head else y


class Outside(Rms):
    """Epsilon is added to the root."""
    def quotient(self, x): return self.node("Div", x, self.node("Add", self.node("Sqrt", self.node("ReduceMean", self.node("Mul", x, x), self.ints(-1))), self.number(1e-5)))


class Floored(Normalized):
    """The length is 1 at least."""
    def length(self, x): return self.node("Clip", self.node("ReduceL2", x, self.ints(-1)), self.number(1.0))


class QkOtherAxis(QkRms):
    """The mean over the heads."""
    def normed(self, x, name):
        power = self.node("Add", self.node("ReduceMean", self.node("Pow", x, self.number(2.0)), self.ints(2)), self.number(1e-6))
        return self.node("Mul", self.node("Mul", x, self.node("Reciprocal", self.node("Sqrt", power))), self.gain(name))


class QkTokens(QkRms):
    """A gain for each token, of which there are as many as heads."""
    def __init__(self):
        super().__init__()
        self.tokens = self.heads

    def of(self): return self.tokens, 1, self.head


class QkHalves(QkNorm):
    """Norms of parts that are not heads, two of each: the attention that follows is none of those parts'."""
    def normed(self, x, name):
        y = self.node("LayerNormalization", self.shaped(x, 1, self.tokens, 2, self.heads, self.head // 2), self.draw(name, self.tokens, 1, 1, self.head // 2), axis=-1)
        return self.shaped(y, 1, self.tokens, self.heads, self.head)


class OtherMean(Norm):
    """The mean over the tokens."""
    def deviation(self, x): return self.node("Sub", x, self.node("ReduceMean", x, self.ints(1)))


class Rotary(Spelled):
    def projections(self, x, p):
        q, k, v = super().projections(x, p)
        half, cos, sin = self.head // 2, self.draw("cos", 1, 1, self.tokens, self.head), self.draw("sin", 1, 1, self.tokens, self.head)
        turned = self.node("Concat", self.node("Neg", self.node("Slice", q, self.ints(half), self.ints(self.head), self.ints(3))), self.node("Slice", q, self.ints(0), self.ints(half), self.ints(3)), axis=-1)
        return self.node("Add", self.node("Mul", q, cos), self.node("Mul", turned, sin)), k, v


class Factored(Spelled):
    """A Gemm of another factor than 1, or of its operand across: the projection of queries, keys and values, or what is in front of the function."""
    def __init__(self, where, **how):
        super().__init__()
        self.where, self.how = where, how

    def linear(self, x, k, n, p):
        if not p.endswith(self.where): return super().linear(x, k, n, p)
        x = self.shaped(x, self.tokens, k)
        if "transA" in self.how: x = self.node("Transpose", x, perm=[1, 0])
        return self.shaped(self.node("Gemm", x, self.draw(p + ".weight", k, n), self.draw(p + ".bias", n), **self.how), 1, self.tokens, n)


class OverQueries(Spelled):
    """Rows of the queries add up to 1, not those of the keys."""
    def guarded(self, probabilities):
        self.nodes[-1].attribute[0].i = 2
        return probabilities


class GuardedByHalf(Spelled):
    """Rows without any key become a half, not 0."""
    def guarded(self, probabilities): return self.node("Where", self.node("IsNaN", probabilities), self.number(0.5), probabilities)


class GuardedByScores(Spelled):
    """What is asked of is another value than what is kept."""
    def scores(self, q, k):
        self.asked = super().scores(q, k)
        return self.asked

    def guarded(self, probabilities): return self.node("Where", self.node("IsNaN", self.asked), self.number(0.0), probabilities)


class Inverse(Spelled):
    """A number by the scores, where scores by a number are meant."""
    def scores(self, q, k): return self.node("Div", self.number(self.head ** 0.5), self.node("MatMul", q, k))


class FewerKeys(Spelled):
    """The last four tokens are keys."""
    def projections(self, x, p):
        q, k, v = super().projections(x, p)
        return q, self.node("Slice", k, self.ints(3), self.ints(7), self.ints(3)), self.node("Slice", v, self.ints(3), self.ints(7), self.ints(2))


class Turned(Spelled):
    """Queries turned by tables, half a head against the other half: what subclasses do in its place is no rotation."""
    def angles(self, *heads):
        """Cosines and sines [.., T, D], the same for both members of a pair."""
        a = np.arange(1, 1 + self.tokens)[:, None] * 0.5 ** np.arange(self.head // 2) * np.arange(1, 1 + (heads[0] if heads else 1)).reshape(-1, 1, 1)
        return [self.init("%s%d" % (f.__name__, a.shape[0]), np.tile(f(a), (1, 1, 2))[None].astype(np.float32)) for f in (np.cos, np.sin)]

    def part(self, x, at, to): return self.node("Slice", x, self.ints(at), self.ints(to), self.ints(3))
    def other(self, x): return self.node("Concat", self.node("Neg", self.part(x, self.head // 2, self.head)), self.part(x, 0, self.head // 2), axis=3)
    def turn(self, x, other): return self.node("Add", self.node("Mul", x, self.angles()[0]), self.node("Mul", other, self.angles()[1]))
    def queries(self, q, k): return self.turn(q, self.other(q))
    def projections(self, x, p):
        q, k, v = (self.heads_of(self.linear(x, self.hidden, self.heads * self.head, p + n)) for n in ("query", "key", "value"))
        return self.queries(q, k), self.node("Transpose", self.keys(k), perm=[0, 1, 3, 2]), v

    def keys(self, k): return self.turn(k, self.other(k))


class OfTwo(Turned):
    """The other half is the key's."""
    def queries(self, q, k): return self.turn(q, self.other(k))


class OfThree(Turned):
    """A third channel is in each."""
    def queries(self, q, k): return self.node("Add", super().queries(q, k), self.node("Concat", self.part(q, 1, self.head), self.part(q, 0, 1), axis=3))


class InARing(Turned):
    """Each channel with the next one, all around."""
    def other(self, x): return self.node("Concat", self.part(x, 1, self.head), self.part(x, 0, 1), axis=3)


class Mirrored(Turned):
    """The sine has one sign in both halves."""
    def other(self, x): return self.node("Concat", self.part(x, self.head // 2, self.head), self.part(x, 0, self.head // 2), axis=3)


class ByHead(Turned):
    """Each head has angles of its own."""
    def turn(self, x, other): return self.node("Add", self.node("Mul", x, self.angles(self.heads)[0]), self.node("Mul", other, self.angles(self.heads)[1]))


class OtherPairs(Turned):
    """Keys are turned the other way round: the first half against the second, backwards."""
    def keys(self, k):
        back = self.node("Gather", k, self.init("back", np.arange(self.head)[::-1].copy()), axis=3)
        sign = self.init("sign", np.repeat(np.float32([-1, 1]), self.head // 2))
        return self.node("Add", self.node("Mul", k, self.number(0.6)), self.node("Mul", self.node("Mul", back, sign), self.number(0.8)))


class BatchedAtRun(Batched):
    """The mean comes with the tokens."""
    def mean(self, name): return "mean"
    def model(self):
        m = super().model()
        m.graph.input.append(helper.make_tensor_value_info("mean", TensorProto.FLOAT, [self.hidden]))
        return m


class BatchedByTokens(Batched):
    """The mean is that of the tokens in front of the layers."""
    def mean(self, name): return self.of
    def start(self, x):
        self.of = self.node("ReduceMean", x, self.ints(0, 1), keepdims=0)
        return x


class BatchedTraining(Batched): training = 1
class BatchedBelow(BatchedBehind): least = -1.2


class Apart(Spelled):
    """A function of the first token alone (TimeSformer's class token has a mean of its own)."""
    def attention(self, x, bias, p):
        first, rest = (self.node("Slice", super(Apart, self).attention(x, bias, p), self.ints(a), self.ints(b), self.ints(1)) for a, b in ((0, 1), (1, self.tokens)))
        return self.node("Concat", self.node("Tanh", first), rest, axis=1)


class Mixer(Spelled):
    """A linear layer over the tokens (MLP-Mixer, PatchTSMixer)."""
    def mlp(self, x, p):
        y = self.node("Transpose", self.node("Unsqueeze", x, self.ints(0)), perm=[0, 1, 3, 2])
        y = self.node("Gelu", self.node("MatMul", y, self.draw(p + "mix", self.tokens, self.tokens)))
        return self.node("Squeeze", self.node("Transpose", y, perm=[0, 1, 3, 2]), self.ints(0))


class SideBySide(Spelled):
    """A function of half of the channels."""
    def mlp(self, x, p): return self.node("Concat", self.linear(x, self.hidden, 12, p + "half"), self.node("Tanh", self.linear(x, self.hidden, 12, p + "other")), axis=2)


class Summed(Spelled):
    """A sum over the tokens so far (a recurrence without a gate, Mamba's)."""
    def mlp(self, x, p): return self.linear(self.node("Mul", self.node("CumSum", x, self.whole(1)), self.number(0.3)), self.hidden, self.hidden, p + "out")


class Scattered(Spelled):
    """Every other token has an adapter of its own (X-MOD's languages)."""
    def mlp(self, x, p):
        y = self.linear(x, self.hidden, self.hidden, p + "adapter")
        at = self.init("at", np.array([[[0, i] for i in range(0, self.tokens, 2)]], np.int64))
        return self.node("ScatterND", y, at, self.node("Tanh", self.node("GatherND", y, at)))


class SecondProduct(Spelled):
    """Positions by content: queries meet keys of another projection, too (XLNet, Conformer)."""
    def attention(self, x, bias, p):
        self.second = self.heads_of(self.linear(x, self.hidden, self.heads * self.head, p + "places"), (0, 2, 3, 1))
        return super().attention(x, bias, p)

    def scores(self, q, k): return self.node("Add", super().scores(q, k), super().scores(q, self.second))


class GatedBias(Spelled):
    """Each query weighs its bias (WavLM)."""
    def attention(self, x, bias, p):
        gate = self.node("Transpose", self.node("Sigmoid", self.linear(x, self.hidden, self.heads, p + "gate")), perm=[0, 2, 1])
        self.gated = self.node("Mul", self.node("Unsqueeze", gate, self.ints(3)), self.draw(p + "bias", 1, self.heads, self.tokens, self.tokens))
        return super().attention(x, bias, p)

    def scores(self, q, k): return self.node("Add", super().scores(q, k), self.gated)


class Squeezed(Spelled):
    """Channels weighed by the tokens' mean (squeeze and excitation)."""
    def mlp(self, x, p):
        mean = self.node("ReduceMean", x, self.ints(1), keepdims=1)
        return self.node("Mul", self.linear(x, self.hidden, self.hidden, p + "up"), self.node("Sigmoid", self.linear(mean, self.hidden, self.hidden, p + "weigh")))


class Difference(Spelled):
    """Two values, one taken off the other (DiffLlama's attentions)."""
    def mlp(self, x, p): return self.node("Sub", self.linear(x, self.hidden, self.hidden, p + "a"), self.node("Tanh", self.linear(x, self.hidden, self.hidden, p + "b")))


class Regrouped(Spelled):
    """Two tokens' channels are one's."""
    def mlp(self, x, p):
        y = self.node("Tanh", self.shaped(x, 1, self.tokens * 2, self.hidden // 2))
        return self.linear(self.shaped(y, 1, self.tokens, self.hidden), self.hidden, self.hidden, p + "out")


class TokensGate(PairedGate):
    """The halves are of tokens: every token's gate is another one's."""
    def halves(self, y, p):
        y = self.shaped(y, 1, 2 * self.tokens, self.inner)
        return [self.node("Slice", y, self.ints(i * self.tokens), self.ints((i + 1) * self.tokens), self.ints(1)) for i in range(2)]


class CrossedGate(PairedGate):
    """One half lies as [D, T]."""
    def halves(self, y, p):
        gate, up = super().halves(y, p)
        return self.shaped(self.node("Transpose", gate, perm=[0, 2, 1]), 1, self.tokens, self.inner), up


REFUSED = {"blocks": (Blocks, "query 1 adds to key 0 what other queries do not"), "other keys": (OtherKeys, "query 4"), "strict": (Strict, "query 0 sees no key"),
           "faint": (Faint, "times a number that tokens differ in"), "halved": (Halved, "times a number that tokens differ in"), "cap of masked": (CapOfMasked, "before their soft cap"),
           "cap below": (CapBelow, "whose c is not above 0"), "cap and bias": (CapAndBias, "under a soft cap that get a bias"),
           "half masked": (HalfMasked, "attention mask or bias"), "counted alibi": (Counted, "query 0 adds to key 0 what other heads, layers or attentions do not"),
           "wrong way": (WrongWay, "keys that are not laid out as heads"),
           "asked bias": (Asked, "a softmax over something that is not scale * q k^T + mask"), "epsilon outside": (Outside, "no function of one value"), "a guard that is none": (StdFar, "no function of one value"), "another token's deviation": (StdTurned, "no function of one value"), "floored": (Floored, "no function of one value"),
           "qk other axis": (QkOtherAxis, "queries that are not laid out as heads"), "qk tokens": (QkTokens, "one whose gain is not each channel's"), "qk halves": (QkHalves, "queries that are not laid out as heads"),
           "other mean": (OtherMean, "no function of one value"),
           "rotary": (Rotary, "rotary embedding"), "over queries": (OverQueries, "a softmax that is not over the keys"), "guarded by a half": (GuardedByHalf, "that is not attention"),
           "guarded by scores": (GuardedByScores, "that is not attention"), "inverse scores": (Inverse, "a softmax over something"), "fewer keys": (FewerKeys, "two lengths, 7 queries and 4 keys; those of one stream are as many"),
           "of two": (OfTwo, "is a sum of two values"), "of three": (OfThree, "mixes more than two channels"), "in a ring": (InARing, "does not mix its channels in pairs"),
           "mirrored": (Mirrored, "by other numbers than the cosine"), "by head": (ByHead, "by other numbers than the cosine"), "other pairs": (OtherPairs, "in other pairs than what it is multiplied by"),
           "a batch norm of a mean from outside": (BatchedAtRun, "a batch norm whose input 3, 'mean', is known only when the model runs"), "a batch norm of the tokens' mean": (BatchedByTokens, "is known only when the model runs"),
           "a mixer": (Mixer, "tokens and channels that change places, as around a linear layer over tokens"), "a token apart": (Apart, "tokens of several values behind each other"), "channels side by side": (SideBySide, "channels of several values side by side"),
           "a state of the tokens so far": (Summed, "a state that goes from token to token"), "tokens put by an index": (Scattered, "values that are put where an index says"),
           "positions by content": (SecondProduct, "a second product is in it"), "a bias by the tokens": (GatedBias, "tokens make the bias"),
           "squeeze and excitation": (Squeezed, "a value for all tokens at once that the tokens make"), "a difference": (Difference, "put the minus into the weights"),
           "a gate of other tokens": (TokensGate, "a layer's values are [tokens, channels]"), "a gate across": (CrossedGate, "a layer's values are [tokens, channels]"),
           "two tokens of one": (Regrouped, "a layer's values are [tokens, channels]"),
           "a convolution behind a Pad of ones": (lambda: PaddedConv(value=1.0), "a convolution whose padding does not leave as many tokens"), "a convolution behind a Pad by its edge": (lambda: PaddedConv(mode="edge"), "a convolution whose padding does not leave as many tokens"),
           "modules of every third channel": (ModulesOfEveryThird, "channels of several values side by side"),
           "gains behind a view of halves": (UnitGainHalves, "queries that are not laid out as heads"), "gains of tokens behind a view": (UnitGainTokens, "one whose gain is not each channel's"),
           "a factor of each query": (lambda: FactorOfTokens("queries"), "times a number that tokens differ in"), "a factor of each key's scores": (lambda: FactorOn("scores", (1, 1, 1, TOKENS)), "times a number that tokens differ in"),
           "a factor of each token's result": (lambda: FactorOfTokens("result"), "times a number that tokens differ in"), "heads of other tokens": (ShuffledTokens, "heads that are not joined back"), "rms clamped far": (RmsClampedFar, "no function of one value"),
           "values narrower, a function behind": (lambda: WidthsGated(6), "heads of two widths, 8 channels of queries and keys and 6 of values"),
           "a difference of attentions": (Differential, "a difference of two attentions in each head"), "no softmax": (NoSoftmax, "a function of q k^T that is no softmax"),
           "no softmax, a length behind": (NoSoftmaxNormed, "a function of q k^T that is no softmax"), "kernels that tokens make": (Dynamic, "a convolution whose kernel the tokens make"),
           "talking heads": (Talking, "(talking heads)"), "positions of values": (ValuesBeside, "a second product beside the values"), "linear attention": (LinearAttention, "linear attention, q (k^T v)"),
           "a factor below 0 of the stream": (lambda: DeepNorm(-0.5, -0.5), "factors above 0"),
           "a head of another value": (ModulesOther, "which is no linear layer of its own"),
           **{"a norm by mean squares, " + name: (miss, "no function of one value") for name, miss in (("floored", FastNormFloored), ("turned", FastNormTurned), ("of another", FastNormOther))},
           **{"an affine norm, " + name: (miss, "an op without an integer kernel") for name, miss in (("a mean more", AffineMore), ("twice", AffineTwice), ("of another", AffineOther))},
           **{"renormalized, " + name: (miss, "that is not attention") for name, miss in (("half", RenormalizedHalf), ("over queries", RenormalizedQueries), ("by another sum", RenormalizedOther), ("above", RenormalizedAbove))},
           "norm by sums, of another number": (SumNormOther, "no function of one value"), "norm of unsteady tokens": (UnsteadyNorm, "no function of one value"), "norm of steady others": (SteadyOther, "no function of one value"),
           "softmax by hand, over queries": (ByHandColumns, "no softmax"), "biases of heads and tokens": (HeadBiasTokens, "a reshape that changes the channels"), "selected, a tenth": (SelectedOther, "that is not attention"),
           **{"padding in pairs, " + name: (miss, "what other queries do not") for name, miss in (("either", PairedEither), ("hidden", PairedHidden), ("shifted", PairedShifted), ("elsewhere", PairedElsewhere), ("of queries", PairedQueries))},
           "selected, folded otherwise": (SelectedFoldedOther, "that is not attention"),
           "keys first, over queries": (KeysFirstQueries, "that is not attention"), "heads behind the keys": (OneBehindOther, "heads that are not joined back"),
           "a batch norm that trains": (BatchedTraining, "(training_mode = 1); export the model for inference"), "a batch norm's factor below 0, behind a sum": (BatchedBelow, "factors above 0")}
for _where in ("query", "up"):
    for _how in ({"alpha": 2.0}, {"beta": 0.5}, {"transA": 1}):
        REFUSED["%s of a Gemm with %s" % (_where, *_how)] = (lambda where=_where, how=_how: Factored(where, **how), "Gemm with alpha, beta or transA")


def check_near_misses():
    for name, (spelled, words) in REFUSED.items():
        onnx.save(spelled().model(), t.at("m.onnx"))
        p = t.call("quantize", t.at("m.onnx"))
        line = p.stderr.decode().strip().splitlines()[-1] if p.stderr else ""
        t.case("refused: " + name, "" if p.returncode == 4 and words in line else "status %d: %s" % (p.returncode, line))


class FromTheEnd(Spelled):
    """TensorFlow, JAX: ids < 0 ? ids + 50 : ids in front of a table of 50 rows, as a choice or in arithmetic, with views behind it."""
    def __init__(self, rows=50, below=0, arithmetic=False):
        super().__init__()
        self.rows, self.below, self.arithmetic = rows, below, arithmetic

    def node(self, op, *inputs, **attributes):
        if op == "Gather" and inputs[1] == "input_ids":
            plus, less = self.node("Add", "input_ids", self.whole(self.rows)), self.node("Less", "input_ids", self.whole(self.below))
            if self.arithmetic:
                parts = [self.node("Mul", self.node("Cast", c, to=TensorProto.INT64), v) for c, v in ((less, plus), (self.node("Not", less), "input_ids"))]
                ids = self.node("Add", *parts)
            else: ids = self.node("Where", less, plus, "input_ids")
            inputs = (inputs[0], self.shaped(self.node("Expand", self.shaped(ids, 1, self.tokens, 1), self.ints(1, self.tokens, 1)), 1, self.tokens))
        return super().node(op, *inputs, **attributes)


class Listed(Spelled):
    """torch.hstack as TorchScript writes it: a list, its first element's rank, a choice by that, all of the list along an axis; here of the two halves of the words' channels."""
    new_axis, place, grows = 0, 0, False

    def start(self, x):
        halves = [self.node("Slice", x, self.ints(i * 12), self.ints(i * 12 + 12), self.ints(2)) for i in range(2)]
        if self.new_axis: return self.shaped(self.node("Transpose", self.node("ConcatFromSequence", self.node("SequenceConstruct", *halves), axis=0, new_axis=1), perm=[1, 2, 0, 3]), 1, self.tokens, self.hidden)
        parts = self.node("SequenceConstruct", *halves)
        if self.grows: parts = self.node("SequenceInsert", self.node("SequenceConstruct", halves[0]), halves[1])
        flat = self.node("Equal", self.node("Size", self.node("Shape", self.node("SequenceAt", parts, self.place if isinstance(self.place, str) else self.whole(self.place)))), self.whole(1))
        branches = []
        for axis in 0, 2:
            out = "joined%d" % axis
            branches.append(helper.make_graph([helper.make_node("ConcatFromSequence", [parts], [out], axis=axis)], "along%d" % axis, [], [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)]))
        return self.node("If", flat, then_branch=branches[0], else_branch=branches[1])


class ListedLast(Listed): place = -1


class ListedPicked(Listed):
    """Each half is picked, the second as the last one."""
    def start(self, x):
        parts = self.node("SequenceConstruct", *[self.node("Slice", x, self.ints(i * 12), self.ints(i * 12 + 12), self.ints(2)) for i in range(2)])
        return self.node("Concat", *[self.node("SequenceAt", parts, self.whole(k)) for k in (0, -1)], axis=2)


class ListedStacked(Listed): new_axis = 1
class ListedGrowing(Listed): grows = True


def check_lists():
    """Lists whose elements are known become these when the model is read; others stay, and are the same function."""
    for name, spelled, gone in (("hstack", Listed, True), ("its last", ListedLast, True), ("picked", ListedPicked, True), ("stacked", ListedStacked, False), ("growing", ListedGrowing, False)):
        m = spelled().model()
        onnx.save(m, t.at("m.onnx"))
        t.good("read", t.at("m.onnx"), "--onnx", "-o", t.at("read.onnx"))
        got, f = onnx.load(t.at("read.onnx")), {"input_ids": np.arange(TOKENS)[None] * 5 % 50}
        left = [n.op_type for n in got.graph.node if "Sequence" in n.op_type or n.op_type == "If"]
        far = max(np.abs(a - b).max() for a, b in [[graphs.session(v).run(["last_hidden_state"], f)[0] for v in (m, got)]])
        t.case("a list, " + name, "" if bool(left) != gone and far < 1e-5 else "left %s, %g off" % (left, far))
        if gone: t.case("a list, %s: hardware" % name, judge(m, t.at("m.onnx"), spelled()))


def check_rows():
    """Rows that are counted from the end by hand are counted by Gather; what counts otherwise stays."""
    for name, model, gone in (("a choice", FromTheEnd(), True), ("arithmetic", FromTheEnd(arithmetic=True), True), ("another number", FromTheEnd(49), False), ("another bound", FromTheEnd(below=1), False)):
        m = model.model()
        onnx.save(m, t.at("m.onnx"))
        t.good("read", t.at("m.onnx"), "--onnx", "-o", t.at("read.onnx"))
        got, f = onnx.load(t.at("read.onnx")), {"input_ids": np.array([[3, -1, 49, -48, 7, -7, 20]])}
        left = any(n.op_type == "Less" for n in got.graph.node)
        far = np.abs(graphs.execute(m, f)[0] - graphs.execute(got, f)[0]).max()
        t.case("rows from the end, " + name, "" if left != gone and far < 1e-5 else "left %s, %g off" % (left, far))


def check_loops():
    """A Loop over stacks is a Scan when it is read; what may be something else stays, and is the same function."""
    for name, spelled, op in (("as it is", Looped, "Scan"), ("from outside", LoopedOutside, "Scan"), ("counting", LoopedCounting, "Scan"), ("a branch within", LoopedNested, "Scan"), ("an open count", LoopedOpen, "Loop"), ("that ends", LoopedEnding, "Loop"), ("across", LoopedAcross, "Loop"),
                              ("the other's weights", LoopedOther, "Loop"), ("stacks that change", LoopedChanging, "Loop"), ("longer stacks", LoopedLonger, "Loop")):
        m = spelled().model()
        onnx.save(m, t.at("m.onnx"))
        t.good("read", t.at("m.onnx"), "--onnx", "-o", t.at("read.onnx"))
        got, f = onnx.load(t.at("read.onnx")), {"input_ids": np.arange(TOKENS)[None] * 5 % 50}
        if spelled.counts: f["trips"] = np.array(2)
        ops = [n.op_type for n in got.graph.node if n.op_type in ("Scan", "Loop")]
        want, made = (graphs.session(v).run(["last_hidden_state"], f)[0] for v in (m, got))
        np.savez(t.at("in.npz"), **f)
        t.good("run", t.at("m.onnx"), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        with np.load(t.at("out.npz")) as z: far = max(np.abs(z["last_hidden_state"] - want).max(), np.abs(made - want).max())
        t.case("a loop, %s" % name, "" if ops == [op] and far < 1e-5 else "%s, %g off" % (ops, far))
        if op == "Scan": continue
        p = t.call("compile", t.at("m.onnx"), "-o", t.at("none"))
        t.case("a loop, %s: refused" % name, "" if p.returncode == 4 and b"the model's own loop does not pick its weights" in p.stderr and not os.path.exists(t.at("none")) else p.stderr.decode()[-300:])


def check_whole_refusals():
    """What is refused whatever is in the body: doubles, a batch. 16-bit floats are not."""
    import onnx.numpy_helper as nh
    def of(dtype, m=None):
        m = m or Spelled().model()
        for i in m.graph.initializer:
            a = nh.to_array(i)
            if a.dtype == np.float32: i.CopyFrom(nh.from_array(a.astype(dtype), i.name))
        for v in (*m.graph.input, *m.graph.output):
            if v.type.tensor_type.elem_type == TensorProto.FLOAT: v.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        onnx.save(m, t.at("other.onnx"))
        return t.call("quantize", t.at("other.onnx"), "--onnx", "-o", t.at("kernels.onnx"))
    def kernels(): return [n.op_type for n in next(n for n in onnx.load(t.at("kernels.onnx")).graph.node if n.op_type == "Scan").attribute[0].g.node]
    p = of(np.float64)
    t.case("refused: doubles", "" if p.returncode == 4 and b"double; export it in float32" in p.stderr else p.stderr.decode() or "it says nothing")
    lists = [kernels() if not p.returncode else p.stderr.decode() for p in (of(np.float32), of(np.float16))]
    # weights of more than 2^20 numbers stay 16-bit floats, and are cast
    large = Encoder(2, 128, 4, 32, 8200, 8, "post", "Gelu").model()
    feed = graphs.feeds(large, 3, ints=(0, 50))
    want = graphs.session(large).run(None, feed)[0]
    p, half = of(np.float16, large), None
    if not p.returncode: half = graphs.session(onnx.load(t.at("kernels.onnx"))).run(None, feed)[0]
    near = 0 if half is None else float((want * half).sum() / np.sqrt((want ** 2).sum() * (half ** 2).sum()))
    t.case("float16: large weights", "" if near > 0.999 and half.dtype == np.float32 else "cosine %.5f %s" % (near, p.stderr.decode()))
    t.case("float16: the kernels of float32", "" if lists[0] == lists[1] and len(lists[0]) > 5 else str(lists))

    class Pair(Spelled):
        def shaped(self, x, *dims): return super().shaped(x, 2 if dims[0] == 1 else dims[0], *dims[1:])
    m = Pair().model()
    m.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    onnx.save(m, t.at("pair.onnx"))
    p = t.call("quantize", t.at("pair.onnx"))
    t.case("refused: batch", "" if p.returncode == 4 and b"a batch of 2; export with a batch of 1" in p.stderr else p.stderr.decode() or "it says nothing")


if __name__ == "__main__":
    t.main(check_spellings, check_one_kernel_list, check_named_domain, check_drawn_inputs, check_near_misses, check_loops, check_rows, check_lists, check_whole_refusals, floor=314)
