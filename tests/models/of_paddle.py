#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes models of tests/models/defaults/ that Paddle exports: sums with 0, arrays of -inf where a mask hides.

    python tests/models/of_paddle.py [NAME ...]          (pip install paddlepaddle paddle2onnx; every weight drawn from seed 1, small sizes)
"""
import os
import sys
import tempfile
import numpy as np
import onnx
import paddle
from paddle import nn

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "defaults")
T, C, HEADS, INNER, LAYERS, WORDS = 16, 16, 2, 32, 3, 50


class Encoder(nn.Layer):
    """paddle.nn.TransformerEncoder behind an embedding."""
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, C), nn.Linear(C, 5)
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(C, HEADS, INNER, dropout=0.1, activation="gelu"), LAYERS)
    def forward(self, x): return self.head(self.body(self.words(x)))


class Block(nn.Layer):
    """minGPT's."""
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.out, self.up, self.down = nn.Linear(C, 3 * C), nn.Linear(C, C), nn.Linear(C, INNER), nn.Linear(INNER, C)
    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).reshape([-1, T, 3, HEADS, C // HEADS]).transpose([2, 0, 3, 1, 4])
        hidden = paddle.triu(paddle.ones([T, T], "bool"), 1)
        s = paddle.matmul(q, k, transpose_y=True) * (C // HEADS) ** -0.5
        s = paddle.where(hidden, paddle.full_like(s, -1e9), s)
        x = x + self.out(paddle.matmul(nn.functional.softmax(s), v).transpose([0, 2, 1, 3]).reshape([-1, T, C]))
        return x + self.down(nn.functional.relu(self.up(self.norm2(x))))


class Gpt(nn.Layer):
    def __init__(self):
        super().__init__()
        self.words, self.blocks, self.norm, self.head = nn.Embedding(WORDS, C), nn.LayerList([Block() for _ in range(LAYERS)]), nn.LayerNorm(C), nn.Linear(C, WORDS)
    def forward(self, x):
        x = self.words(x)
        for b in self.blocks: x = b(x)
        return self.head(self.norm(x))


MODELS = {"paddle-encoder": Encoder, "paddle-gpt": Gpt}


def main(names):
    for name in names or MODELS:
        model, rng = MODELS[name](), np.random.default_rng(1)
        model.eval()
        for n, p in model.named_parameters():
            gain = "norm" in n and n.endswith("weight")
            p.set_value((rng.standard_normal(p.shape) * (0.1 if len(p.shape) < 2 else 0.2) + gain).astype("float32"))
        with tempfile.TemporaryDirectory() as d:
            paddle.onnx.export(model, d + "/m", input_spec=[paddle.static.InputSpec([None, T], "int64", "ids")], opset_version=14)
            m = onnx.load(d + "/m.onnx")
        for n in m.graph.node: n.ClearField("doc_string")
        onnx.save(m, path := os.path.join(HERE, name + ".onnx"))
        print(name, os.path.getsize(path))


if __name__ == "__main__": main(sys.argv[1:])
