#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Big BERTs for measuring: bert-12.onnx of this folder, node by node, with other sizes and more layers.

    python tests/models/big.py OUT.onnx NAME        (NAME: one of SIZES)

Weights are drawn anew, from a seed. An `external` model keeps them in a sparse file OUT.data: random first bytes, then a hole, so that
gigabytes cost no disk."""
import os
import sys
import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
FIRST, BODY = 4, 34                                     # nodes before layer 0; nodes of a layer
SIZES = {                                               # layers, hidden, intermediate, heads, vocabulary, tokens, external
    "base": (12, 768, 3072, 12, 30522, 128, False),     # BERT-base: 438 MB
    "48": (48, 96, 384, 3, 1000, 32, False),            # 1639 nodes
    "480": (480, 96, 384, 3, 1000, 32, False),          # 16327 nodes
    "base-2": (2, 768, 3072, 12, 1000, 128, False),     # two layers of BERT-base: 63 MB
    "minilm": (6, 384, 1536, 12, 30522, 128, False),
    "minilm-2": (2, 384, 1536, 12, 1000, 128, False),   # two layers of MiniLM
    "3": (3, 16, 32, 2, 50, 5, False),                  # small ones of one body
    "24": (24, 16, 32, 2, 50, 5, False),
    "6gb": (8, 4096, 16384, 32, 1000, 128, True),
}


def size_map(hidden, intermediate, heads, vocabulary, tokens):
    """Every size in bert-12 says what it is: hidden 64, intermediate 256, 4 heads of 16, vocabulary 1000, 32 tokens."""
    return {64: hidden, 256: intermediate, 4: heads, 16: hidden // heads, 1000: vocabulary, 32: tokens}


def resize_info(info, sizes, inits):
    if info.name in inits and inits[info.name].data_type == onnx.TensorProto.INT64: return      # a list of sizes keeps its length
    for d in info.type.tensor_type.shape.dim: d.dim_value = sizes.get(d.dim_value, d.dim_value)


class Weights:
    """Gives tensors their new sizes and data."""

    def __init__(self, sizes, data):
        self.sizes, self.data, self.at, self.rng = sizes, data, 0, np.random.default_rng(0)

    def resize(self, t):
        a = onnx.numpy_helper.to_array(t)
        if a.dtype == np.int64: return t.CopyFrom(onnx.numpy_helper.from_array(np.array([self.sizes.get(v, v) for v in a.flat], np.int64).reshape(a.shape), t.name))     # shapes
        if a.ndim == 0: return None if t.name != "val_61" else t.CopyFrom(onnx.numpy_helper.from_array(np.float32(self.sizes[16] ** 0.5), t.name))      # 1/2, sqrt 2, ...
        dims = [self.sizes.get(d, d) for d in a.shape]
        n = int(np.prod(dims))
        t.ClearField("raw_data")
        t.dims[:] = dims
        if a.ndim > 2 and not a.any(): t.raw_data = bytes(4 * n)         # the mask of a model without one
        elif self.data is None: t.raw_data = (self.rng.standard_normal(n, np.float32) * np.float32(0.02)).tobytes()
        else: self.external(t, 4 * n)

    def external(self, t, n):
        self.data.seek(self.at)
        self.data.write(self.rng.bytes(min(n, 256)))
        for key, value in (("location", os.path.basename(self.data.name)), ("offset", self.at), ("length", n)): t.external_data.add(key=key, value=str(value))
        t.data_location = onnx.TensorProto.EXTERNAL
        self.at += (n + 4095) // 4096 * 4096
        self.data.truncate(self.at)


def stretch(g, layers):
    """Appends copies of layer 1 until there are that many layers, or drops the last ones. The pooler reads the last layer."""
    body, tail = list(g.node)[FIRST + BODY:FIRST + 2 * BODY], list(g.node)[FIRST + 12 * BODY:]
    inits, infos, users = {t.name: t for t in g.initializer}, {v.name: v for v in g.value_info}, {}
    for i, n in enumerate(g.node):
        for name in n.input: users.setdefault(name, set()).add((i - FIRST) // BODY)
    own = {o for n in body for o in n.output} | {name for n in body for name in n.input if name in inits and users[name] == {1}}
    kept = list(g.node)[:FIRST + BODY]
    wanted = {name for n in kept + tail for name in [*n.input, *n.output]}
    new_inits, new_infos, last = [t for name, t in inits.items() if name in wanted], [v for name, v in infos.items() if name in wanted], kept[-1].output[0]
    entry, shown = last, lambda text, k: text.replace("layer.1", "layer.%d" % k).replace("layer_1_", "layer_%d_" % k)
    for k in range(1, layers):
        name_of = lambda name: last if name == entry else shown(name, k) + ("" if shown(name, k) != name else "_of_layer_%d" % k) if name in own else name
        for n in body:
            n = type(n).FromString(n.SerializeToString())
            n.name = "%s_of_layer_%d" % (n.name, k)
            n.input[:], n.output[:] = [name_of(x) for x in n.input], [name_of(x) for x in n.output]
            for p in n.metadata_props: p.value = shown(p.value, k)
            kept.append(n)
        for source, to in (inits, new_inits), (infos, new_infos):
            for name in own & source.keys():
                to.append(type(source[name]).FromString(source[name].SerializeToString()))
                to[-1].name = name_of(name)
        last = kept[-1].output[0]
    rename = {g.output[0].name: last}
    for n in tail: n.input[:] = [rename.get(x, x) for x in n.input]
    g.output[0].name = last
    for field, items in (g.node, kept + tail), (g.initializer, sorted(new_inits, key=lambda t: t.name)), (g.value_info, sorted(new_infos, key=lambda v: v.name)):
        items = [type(x).FromString(x.SerializeToString()) for x in items]
        del field[:]
        field.extend(items)


def make(path, name):
    """Writes the model (and its .data); returns the number of its nodes."""
    layers, *sizes, external = SIZES[name]
    sizes = size_map(*sizes)
    m = onnx.load(os.path.join(HERE, "bert-12.onnx"))
    stretch(m.graph, layers)
    inits = {t.name: t for t in m.graph.initializer}
    for v in [*m.graph.input, *m.graph.output, *m.graph.value_info]: resize_info(v, sizes, inits)
    data = open(os.path.splitext(path)[0] + ".data", "wb") if external else None
    weights = Weights(sizes, data)
    for t in m.graph.initializer: weights.resize(t)
    if data: data.close()
    with open(path, "wb") as f: f.write(m.SerializeToString())
    return len(m.graph.node)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in SIZES: sys.exit(__doc__)
    print(make(sys.argv[1], sys.argv[2]), "nodes")
