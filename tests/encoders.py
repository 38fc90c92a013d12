# SPDX-License-Identifier: MIT
"""Encoders of odd sizes, written node by node as exporters write them, with weights drawn from a seed: embedding, layers, perhaps a runtime mask."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

WORDS = 50


class Encoder:
    """layers, hidden, heads x head (which need not be hidden), inner, tokens; norm: "post" (BERT) or "pre" (ViT); act: Gelu, Tanh (GELU by tanh), Relu, Silu."""
    def __init__(self, layers, hidden, heads, head, inner, tokens, norm, act, mask=False):
        self.layers, self.hidden, self.heads, self.head, self.inner, self.tokens, self.norm, self.act, self.mask = layers, hidden, heads, head, inner, tokens, norm, act, mask

    def init(self, name, a):
        self.inits[name] = numpy_helper.from_array(np.asarray(a), name)
        return name

    def node(self, op, *inputs, **attributes):
        out = "%s_%d" % (op.lower(), len(self.nodes))
        self.nodes.append(helper.make_node(op, inputs, [out], name=out, **attributes))
        return out

    def draw(self, name, *shape, by=1.0): return self.init(name, (self.rng.standard_normal(shape) * by).astype(np.float32))
    def shaped(self, x, *dims): return self.node("Reshape", x, self.init("shape" + "_".join(map(str, dims)), np.array(dims, np.int64)))

    def linear(self, x, k, n, name): return self.node("Add", self.node("MatMul", x, self.draw(name + ".weight", k, n, by=k ** -0.5)), self.draw(name + ".bias", n, by=0.2))

    def layernorm(self, x, name):
        gain = self.init(name + ".weight", (1 + 0.3 * self.rng.standard_normal(self.hidden)).astype(np.float32))
        return self.node("LayerNormalization", x, gain, self.draw(name + ".bias", self.hidden, by=0.1), axis=-1, epsilon=1e-5)

    def attention(self, x, bias, p):
        wide = self.heads * self.head
        q, k, v = (self.shaped(self.linear(x, self.hidden, wide, p + n), 1, self.tokens, self.heads, self.head) for n in ("query", "key", "value"))
        q, k, v = self.node("Transpose", q, perm=[0, 2, 1, 3]), self.node("Transpose", k, perm=[0, 2, 3, 1]), self.node("Transpose", v, perm=[0, 2, 1, 3])
        scores = self.node("Mul", self.node("MatMul", q, k), self.init("root", np.float32(self.head ** -0.5)))
        if bias: scores = self.node("Add", scores, bias)
        mixed = self.node("Transpose", self.node("MatMul", self.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.linear(self.shaped(mixed, 1, self.tokens, wide), wide, self.hidden, p + "output")

    def activation(self, x):
        if self.act == "Silu": return self.node("Mul", x, self.node("Sigmoid", x))
        if self.act == "Relu": return self.node("Relu", x)
        return self.node("Gelu", x, approximate="tanh" if self.act == "Tanh" else "none")

    def mlp(self, x, p): return self.linear(self.activation(self.linear(x, self.hidden, self.inner, p + "up")), self.inner, self.hidden, p + "down")

    def layer(self, x, bias, p):
        for part, name in (lambda y: self.attention(y, bias, p), "norm1"), (lambda y: self.mlp(y, p), "norm2"):
            x = self.node("Add", part(self.layernorm(x, p + name)), x) if self.norm == "pre" else self.layernorm(self.node("Add", part(x), x), p + name)
        return x

    def model(self):
        """input_ids [1, tokens] (and attention_mask) -> last_hidden_state, and the mean over tokens, pooled."""
        info, bias = helper.make_tensor_value_info, None
        self.nodes, self.inits, self.rng = [], {}, np.random.default_rng([self.layers, self.hidden, self.tokens])
        x = self.node("Add", self.node("Gather", self.draw("words", WORDS, self.hidden), "input_ids"), self.draw("places", 1, self.tokens, self.hidden))
        if self.norm == "post": x = self.layernorm(x, "norm")
        if self.mask:
            keep = self.node("Cast", self.shaped("attention_mask", 1, 1, 1, self.tokens), to=TensorProto.FLOAT)
            bias = self.node("Mul", self.node("Sub", self.init("one", np.float32(1)), keep), self.init("far", np.finfo(np.float32).min))
        for i in range(self.layers): x = self.layer(x, bias, "layer.%d." % i)
        if self.norm == "pre": x = self.layernorm(x, "norm")
        last = [helper.make_node("Identity", [x], ["last_hidden_state"], name="result"),
                helper.make_node("ReduceMean", [x, self.init("axis", np.array([1], np.int64))], ["pooled"], name="pool", keepdims=0)]
        names = ["input_ids"] + ["attention_mask"] * self.mask
        graph = helper.make_graph(self.nodes + last, "encoder", [info(n, TensorProto.INT64, [1, self.tokens]) for n in names],
                                  [info("last_hidden_state", TensorProto.FLOAT, [1, self.tokens, self.hidden]), info("pooled", TensorProto.FLOAT, [1, self.hidden])], list(self.inits.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


# Six that agree in little. (Two layers are the least that repeat: extract refuses a loop of one.)
ODD = {"odd-24": Encoder(2, 24, 6, 4, 52, 17, "post", "Relu", mask=True),
       "odd-40": Encoder(7, 40, 5, 8, 56, 5, "pre", "Gelu"),
       "odd-60": Encoder(2, 60, 3, 20, 66, 5, "post", "Silu", mask=True),
       "odd-72": Encoder(2, 72, 6, 12, 50, 5, "pre", "Tanh", mask=True),
       "odd-45": Encoder(3, 45, 1, 20, 63, 5, "pre", "Relu"),
       "odd-20": Encoder(3, 20, 3, 4, 44, 33, "post", "Gelu")}
