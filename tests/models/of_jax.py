#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes models of tests/models/defaults/ that jax2onnx exports of Flax and of plain JAX: norms by mean squares, masks that multiply probabilities, layers in jax.lax.scan (a Loop over stacks of weights).

    python tests/models/of_jax.py [NAME ...]          (pip install jax2onnx; every weight drawn from seed 1, small sizes)
"""
import os
import sys
os.environ["JAX_PLATFORMS"] = "cpu"
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax2onnx import to_onnx

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "defaults")
T, C, HEADS, INNER, LAYERS, WORDS = 16, 16, 2, 32, 3, 50


class Block(nnx.Module):
    def __init__(self, rngs, causal):
        self.norm1, self.norm2, self.causal = nnx.LayerNorm(C, rngs=rngs), nnx.LayerNorm(C, rngs=rngs), causal
        self.attention = nnx.MultiHeadAttention(num_heads=HEADS, in_features=C, decode=False, deterministic=True, rngs=rngs)
        self.up, self.down = nnx.Linear(C, INNER, rngs=rngs), nnx.Linear(INNER, C, rngs=rngs)
    def __call__(self, x):
        x = x + self.attention(self.norm1(x), mask=nnx.make_causal_mask(x[..., 0]) if self.causal else None)
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class Net(nnx.Module):
    def __init__(self, words=0, causal=False):
        rngs = nnx.Rngs(0)
        self.words = nnx.Embed(words, C, rngs=rngs) if words else None
        self.blocks = nnx.List([Block(rngs, causal) for _ in range(LAYERS)])
        self.norm, self.head = nnx.LayerNorm(C, rngs=rngs), nnx.Linear(C, 10, rngs=rngs)
    def __call__(self, x):
        x = self.words(x) if self.words else x
        for b in self.blocks: x = b(x)
        return self.head(self.norm(x))


def drawn(model):
    """Every weight other than what a fresh model has: biases, too."""
    rng, state = np.random.default_rng(1), nnx.state(model, nnx.Param)
    nnx.update(model, jax.tree.map(lambda a: jnp.asarray(a + 0.1 * rng.standard_normal(a.shape), a.dtype), state))
    return model


def scanned():
    """A llama's layers without rotary embedding, weights in stacks."""
    rng = np.random.default_rng(1)
    w = {n: jnp.asarray(rng.standard_normal((LAYERS, *s)) * 0.2, jnp.float32) for n, s in dict(q=(C, C), k=(C, C // 2), v=(C, C // 2), o=(C, C), gate=(C, INNER), up=(C, INNER), down=(INNER, C)).items()}
    w.update({n: jnp.asarray(1 + 0.1 * rng.standard_normal((LAYERS, C)), jnp.float32) for n in ("norm1", "norm2")})

    def norm(x, gain): return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * gain

    def layer(x, p):
        h, d = norm(x, p["norm1"]), C // HEADS
        q, k, v = ((h @ p[n]).reshape(1, T, -1, d) for n in "qkv")
        x = x + jax.nn.dot_product_attention(q, jnp.repeat(k, 2, 2), jnp.repeat(v, 2, 2)).reshape(1, T, C) @ p["o"]
        h = norm(x, p["norm2"])
        return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"], None
    return lambda x: jax.lax.scan(layer, x, w)[0]


MODELS = {"jax-encoder": (lambda: drawn(Net()), [("B", T, C)]), "jax-gpt": (lambda: drawn(Net(WORDS, True)), [jax.ShapeDtypeStruct((1, T), jnp.int32)]), "jax-scan": (scanned, [(1, T, C)])}


def main(names):
    for name in names or MODELS:
        make, inputs = MODELS[name]
        m = to_onnx(make(), inputs=inputs)
        m.ClearField("doc_string")
        for n in m.graph.node:
            n.ClearField("doc_string")
            del n.metadata_props[:]
        del m.metadata_props[:]
        onnx.save(m, path := os.path.join(HERE, name + ".onnx"))
        print(name, os.path.getsize(path))


if __name__ == "__main__": main(sys.argv[1:])
