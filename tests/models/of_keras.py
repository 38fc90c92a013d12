#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes models of tests/models/defaults/ that Keras exports on TensorFlow (tf2onnx): attention in index notation with five axes, norms as a slope and a shift, convolutions of lines as such of grids,
GELU by Erfc, which is no ONNX operator.

    python tests/models/of_keras.py [NAME ...]          (pip install tensorflow-cpu tf2onnx keras; every weight drawn from seed 1, small sizes)
"""
import os
import sys
import numpy as np
np.object, np.bool, np.cast = object, bool, {}          # which tf2onnx still asks for
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import onnx
import tensorflow as tf
from keras import layers

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "defaults")
T, C, HEADS, INNER, LAYERS = 16, 16, 2, 32, 3


def norm(): return layers.LayerNormalization(epsilon=1e-6)


def attention(x, causal=False, **more): return layers.MultiHeadAttention(num_heads=HEADS, key_dim=C // HEADS, **more)(x, x, use_causal_mask=causal)


def behind(x, act="relu", causal=False):
    """keras.io's text classification: a norm behind each sum."""
    x = norm()(x + layers.Dropout(0.1)(attention(x, causal)))
    return norm()(x + layers.Dense(C)(layers.Dense(INNER, activation=act)(x)))


def before(x, act="gelu", causal=False):
    """keras.io's vision transformer: a norm in front of each part."""
    x = layers.Add()([attention(norm()(x), causal), x])
    return layers.Add()([layers.Dense(C)(layers.Dense(INNER, activation=act)(norm()(x))), x])


def lines(x):
    """keras.io's time series: convolutions of size 1, dropout of attention's weights."""
    r = norm()(attention(x, dropout=0.1)) + x
    return norm()(layers.Conv1D(C, 1)(layers.Conv1D(INNER // 4, 1, activation="relu")(r))) + r


class Places(layers.Layer):
    def __init__(self):
        super().__init__()
        self.words, self.places = layers.Embedding(50, C), layers.Embedding(T, C)
    def call(self, x): return self.words(x) + self.places(tf.range(tf.shape(x)[-1]))


def text(block, classes=5, **how):
    i = keras.Input((T,), dtype="int32")
    x = Places()(i)
    for _ in range(LAYERS): x = block(x, **how)
    return keras.Model(i, layers.Dense(classes)(x if how.get("causal") else layers.GlobalAveragePooling1D()(x)))


def vit():
    i = keras.Input((32, 32, 3))
    x = layers.Reshape((T, C))(layers.Conv2D(C, 8, strides=8)(i))
    x = x + layers.Embedding(T, C)(tf.range(T))
    for _ in range(LAYERS): x = before(x)
    return keras.Model(i, layers.Dense(5)(layers.Flatten()(norm()(x))))


def series():
    i = x = keras.Input((64, C))
    for _ in range(LAYERS): x = lines(x)
    return keras.Model(i, layers.Dense(2, activation="softmax")(layers.GlobalAveragePooling1D()(x)))


MODELS = {"keras-text": lambda: text(behind), "keras-gpt": lambda: text(before, 50, act=lambda x: keras.activations.gelu(x, approximate=True), causal=True), "keras-vit": vit, "keras-series": series}


def main(names):
    for name in names or MODELS:
        model, rng, path = MODELS[name](), np.random.default_rng(1), os.path.join(HERE, name + ".onnx")
        model(np.zeros([1, *model.input_shape[1:]], model.inputs[0].dtype))
        for w in model.weights:
            if w.dtype == "float32": w.assign(rng.standard_normal(w.shape) * (0.2 if len(w.shape) > 1 else 0.1) + (w.path.endswith("gamma")))
        model.export(path, format="onnx", verbose=False)
        m = onnx.load(path)
        for n in m.graph.node: n.ClearField("doc_string")
        onnx.save(m, path)
        print(name, os.path.getsize(path))


if __name__ == "__main__": main(sys.argv[1:])
