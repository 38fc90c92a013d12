# SPDX-License-Identifier: MIT
"""Layers of the newer kinds, of odd sizes, drawn from a random generator and written node by node: grouped heads, causal attention, windows of a layer's own,
biases, rotations of all or some channels in both layouts, norms of queries and keys, RMS, gates, blocks side by side.

    d = Decoder(random.Random(7))
    d.name, d.model()           # what was drawn, and the model: input_ids [1, tokens] (and attention_mask) -> last_hidden_state"""
import numpy as np
from onnx import TensorProto, helper
from encoders import Encoder, WORDS


class Decoder(Encoder):
    def __init__(self, rng):
        pick, chance = rng.choice, rng.random
        kv, shared, head, tokens = pick([1, 1, 2, 3]), pick([1, 2, 3, 4]), pick([4, 6, 6, 8, 10]), pick([1, 3, 5, 7, 9, 11, 13])
        super().__init__(pick([2, 2, 3]), pick([8, 12, 18, 20, 24]), kv * shared, head, pick([10, 16, 18, 30, 36]), tokens, pick(["pre", "pre", "post", "parallel", "around"]), pick(["Silu", "Gelu", "Relu"]), chance() < 0.2)
        self.kv, self.biased, self.rms, self.gated, self.seed = kv, chance() < 0.4, chance() < 0.6, chance() < 0.6, rng.getrandbits(30)
        self.sees = pick(["all", "causal", "causal", "causal window", "window"])
        self.windows = [pick([1, 3, tokens]) for _ in range(self.layers)]
        self.biases = pick([None, None, None, "alibi", "layers'", "keys'"])
        self.turning = pick([0, head, head, head // 4 * 2 or 2])
        self.neighbours, self.qk = chance() < 0.4, pick([None, None, "all", "a head"])
        said = ["%dx%d" % (self.layers, self.hidden), "%d/%dx%d" % (self.heads, kv, head), "%d" % self.inner, "%dt" % tokens, self.norm, "rms" if self.rms else "ln", self.act + "-gate" * self.gated, self.sees]
        if "window" in self.sees: said.append("".join("/%d" % w for w in self.windows))
        if self.biases: said.append("bias of " + self.biases)
        if self.turning: said.append("turns %d %s" % (self.turning, "neighbours" if self.neighbours else "halves"))
        self.name = " ".join(said + ["qk-norm of %s" % self.qk] * bool(self.qk) + ["mask"] * self.mask)

    def ints(self, *v): return self.init("ints" + "_".join(map(str, v)), np.array(v, np.int64))
    def number(self, v): return self.init("number%r" % v, np.float32(v))
    def gain(self, name, n): return self.init(name + ".weight", (1 + 0.3 * self.rng.standard_normal(n)).astype(np.float32))
    def linear(self, x, k, n, name): return super().linear(x, k, n, name) if self.biased else self.node("MatMul", x, self.draw(name + ".weight", k, n, by=k ** -0.5))
    def slice(self, x, start, end, step=1): return self.node("Slice", x, self.ints(start), self.ints(end), self.ints(-1), self.ints(step))

    def root(self, x, name, n):
        power = self.node("Add", self.node("ReduceMean", self.node("Mul", x, x), self.ints(-1)), self.number(1e-6))
        return self.node("Mul", self.node("Div", x, self.node("Sqrt", power)), self.gain(name, n))

    def layernorm(self, x, name): return self.root(x, name, self.hidden) if self.rms else super().layernorm(x, name)

    # ---- attention ----

    def turned(self, x, heads):
        """[1, heads, T, D] by position; what does not turn stays behind."""
        n, rest = self.turning, self.head - self.turning
        if not n: return x
        part = self.slice(x, 0, n) if rest else x
        angle = np.arange(self.tokens)[:, None] * 30.0 ** (-np.arange(n // 2) / (n // 2))
        angle = np.repeat(angle, 2, 1) if self.neighbours else np.concatenate([angle, angle], 1)
        if self.neighbours:
            a, b = self.slice(part, 0, n, 2), self.slice(part, 1, n, 2)
            pair = [self.node("Unsqueeze", y, self.ints(-1)) for y in (self.node("Neg", b), a)]
            other = self.shaped(self.node("Concat", *pair, axis=-1), 1, heads, self.tokens, n)
        else: other = self.node("Concat", self.node("Neg", self.slice(part, n // 2, n)), self.slice(part, 0, n // 2), axis=-1)
        cos, sin = (self.init(f.__name__, f(angle).astype(np.float32)) for f in (np.cos, np.sin))
        y = self.node("Add", self.node("Mul", part, cos), self.node("Mul", other, sin))
        return self.node("Concat", y, self.slice(x, n, self.head), axis=-1) if rest else y

    def heads_of(self, x, heads, p, which):
        """[1, T, C] -> [1, heads, T, D], normed and turned where it is a query or a key"""
        wide = heads * self.head
        y = self.linear(x, self.hidden, wide, p + which)
        if self.qk == "all" and which != "value": y = self.root(y, p + which + ".norm", wide)
        y = self.node("Transpose", self.shaped(y, 1, self.tokens, heads, self.head), perm=[0, 2, 1, 3])
        if which == "value": return y
        return self.turned(self.root(y, p + which + ".norm", self.head) if self.qk == "a head" else y, heads)

    def repeated(self, y):
        n, t, d = self.heads // self.kv, self.tokens, self.head
        return self.shaped(self.node("Expand", self.node("Unsqueeze", y, self.ints(2)), self.ints(1, self.kv, n, t, d)), 1, self.heads, t, d) if n > 1 else y

    def added(self, layer):
        """What a layer's scores get: a bias, and far below where a key does not count."""
        far = np.arange(self.tokens)[:, None] - np.arange(self.tokens)
        near = far < (self.windows[layer] if "window" in self.sees else self.tokens)
        hidden = ~near | ((far < 0) if "causal" in self.sees else (-far >= (self.windows[layer] if "window" in self.sees else self.tokens)))
        bias = np.zeros((1, 1) + far.shape)
        if self.biases == "alibi": bias = -(2.0 ** -np.arange(1, self.heads + 1)).reshape(-1, 1, 1)[None] * np.abs(far)
        if self.biases == "layers'": bias = self.rng.standard_normal((1, self.heads) + far.shape)
        if self.biases == "keys'": bias = np.broadcast_to(self.rng.standard_normal((1, 1, 1, self.tokens)), bias.shape)
        partly = hidden.any() or self.biases or "window" in self.sees              # the same nodes in all layers
        return np.where(hidden, np.finfo(np.float32).min, bias).astype(np.float32) if partly else None

    def attention(self, x, bias, p):
        wide, layer = self.heads * self.head, int(p.split(".")[1])
        q, k, v = (self.heads_of(x, n, p, which) for n, which in ((self.heads, "query"), (self.kv, "key"), (self.kv, "value")))
        k, v = self.repeated(k), self.repeated(v)
        scores = self.node("Mul", self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2])), self.number(self.head ** -0.5))
        more = self.added(layer)
        if more is not None: scores = self.node("Add", scores, self.init(p + "added", more))
        if bias: scores = self.node("Add", scores, bias)
        mixed = self.node("Transpose", self.node("MatMul", self.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.linear(self.shaped(mixed, 1, self.tokens, wide), wide, self.hidden, p + "output")

    # ---- the layer ----

    def mlp(self, x, p):
        y = self.activation(self.linear(x, self.hidden, self.inner, p + "gate"))
        if self.gated: y = self.node("Mul", y, self.linear(x, self.hidden, self.inner, p + "up"))
        return self.linear(y, self.inner, self.hidden, p + "down")

    def layer(self, x, bias, p):
        if self.norm == "parallel":
            y = self.layernorm(x, p + "norm")
            return self.node("Add", self.node("Add", self.attention(y, bias, p), self.mlp(y, p)), x)
        if self.norm != "around": return super().layer(x, bias, p)
        for part, name in (lambda y: self.attention(y, bias, p), "one"), (lambda y: self.mlp(y, p), "two"):
            x = self.node("Add", x, self.layernorm(part(self.layernorm(x, p + name)), p + name + ".behind"))
        return x

    def model(self):
        info, bias = helper.make_tensor_value_info, None
        self.nodes, self.inits, self.rng = [], {}, np.random.default_rng(self.seed)
        x = self.node("Add", self.node("Gather", self.draw("words", WORDS, self.hidden), "input_ids"), self.draw("places", 1, self.tokens, self.hidden))
        if self.mask:
            keep = self.node("Cast", self.shaped("attention_mask", 1, 1, 1, self.tokens), to=TensorProto.FLOAT)
            bias = self.node("Mul", self.node("Sub", self.number(1.0), keep), self.init("far", np.finfo(np.float32).min))
        for i in range(self.layers): x = self.layer(x, bias, "layer.%d." % i)
        self.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"], name="result"))
        inputs = [info(n, TensorProto.INT64, [1, self.tokens]) for n in ["input_ids"] + ["attention_mask"] * self.mask]
        graph = helper.make_graph(self.nodes, "decoder", inputs, [info("last_hidden_state", TensorProto.FLOAT, None)], list(self.inits.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
