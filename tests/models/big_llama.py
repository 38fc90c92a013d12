#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Big Llamas for measuring: stories260k-step.onnx of this folder (a step of PyTorch's, with past and present), with other sizes and more layers.

    python tests/models/big_llama.py OUT.onnx NAME      (NAME: one of SIZES)

Weights are drawn anew, from a seed. Of shapes, what a number is for is told by who reads it: 8 is heads there, and channels of a head; 4 is half of
those, and heads of keys."""
import os
import sys
import numpy as np
import onnx
from onnx import numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
MADE = 64, 172, 32                                  # what it was made of: channels, intermediate, channels of keys
SIZES = {                                           # layers, channels, intermediate, heads, heads of keys
    "llama-deep": (16, 512, 1408, 8, 4),            # many layers of a middle size
    "llama-15m": (6, 288, 768, 6, 6),               # stories15M's shape
    "llama-15m-2": (2, 288, 768, 6, 6),             # two layers of it
    "llama-1b-2": (2, 2048, 8192, 32, 8),           # two layers of Llama-3.2-1B: 486 MB
    "llama-1.1b": (22, 2048, 5632, 32, 4),          # TinyLlama's shape, but for its words
}


def layers_of(g):
    """The nodes of each layer, from the first square of its norm on (layer 0 also makes what all read); what is in front, and behind."""
    begin = [k for k, n in enumerate(g.node) if n.op_type == "Pow"][::2]
    return [list(g.node)[a:b] for a, b in zip(begin[:5], begin[1:] + [len(g.node)])], list(g.node)[:begin[0]], list(g.node)[begin[5]:]


def stretch(g, layers):
    """Layers behind the first are copies of layer 2."""
    (first, second, third, *_), front, tail = layers_of(g)
    inits, entry, exit_ = {i.name: i for i in g.initializer}, third[0].input[0], layers_of(g)[0][3][0].input[0]
    before = {o for n in front + first + second for o in n.output}
    readers = {x for n in front + first + second for x in n.input}
    own = {o for n in third for o in n.output} | {x for n in third for x in n.input if x in inits and x not in readers} | {x for n in third for x in n.input if x.startswith("past_")}
    nodes, last = front + first, second[0].input[0]
    for k in range(1, layers):
        name_of = lambda x: last if x == entry else x.replace(".2.", ".%d." % k) if x in own and ".2." in x else "%s_of_%d" % (x, k) if x in own else x
        for n in third:
            n = type(n).FromString(n.SerializeToString())
            n.name, n.input[:], n.output[:] = "%s_of_%d" % (n.name, k), [name_of(x) for x in n.input], [name_of(x) for x in n.output]
            nodes.append(n)
        for x in own & inits.keys():
            if name_of(x) in inits: continue
            g.initializer.append(type(inits[x]).FromString(inits[x].SerializeToString()))
            g.initializer[-1].name = name_of(x)
        last = name_of(exit_)
    final = tail[0].input[0]
    for n in tail: n.input[:] = [last if x == final else x for x in n.input]
    for n in front:                                             # the length of the past is read off layer 2's; there may be none
        n.input[:] = [x.replace(".2.", ".0.") if x.startswith("past_") else x for x in n.input]
    del g.node[:]
    g.node.extend(nodes + tail)
    for values, what in (g.input, "past_key_values.%d.%s"), (g.output, "present.%d.%s"):
        kept, pair = [v for v in values if not v.name.startswith(what[:4])], [v for v in values if v.name.startswith(what[:4])][:2]
        for k in range(layers):
            for v, kind in zip(pair, ("key", "value")):
                kept.append(type(v).FromString(v.SerializeToString()))
                kept[-1].name = what % (k, kind)
        del values[:]
        values.extend(kept)
    del g.value_info[:]


def declared(name, shape, beside):
    """A matrix of zeros in a file beside the model, which grows by a hole."""
    at, size = os.path.getsize(beside), 4 * int(np.prod(shape))
    os.truncate(beside, at + size)
    x = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=shape, data_location=onnx.TensorProto.EXTERNAL)
    for key, value in ("location", os.path.basename(beside)), ("offset", at), ("length", size):
        x.external_data.add(key=key, value=str(value))
    return x


def resize(g, hidden, inner, heads, kv, beside=None):
    """Sizes: of weights by their own, of shapes by what they are for. With `beside`: matrices are declared there, not drawn."""
    head, rng = hidden // heads, np.random.default_rng(0)
    sizes, read = {MADE[0]: hidden, MADE[1]: inner, MADE[2]: kv * head}, {x for n in g.node for x in n.input}
    shapes = {"heads": [1, -1, heads, head], "keys": [1, -1, kv, head], "shared": [1, heads, -1, head], "wide": [1, -1, hidden], "half": [head // 2], "of keys": [kv], "each": [heads // kv], "head": [head]}
    made = {(1, -1, 8, 8): "heads", (1, -1, 4, 8): "keys", (1, 8, -1, 8): "shared", (1, -1, 64): "wide"}
    inits = {i.name: numpy_helper.to_array(i) for i in g.initializer if i.name in read}
    for n in g.node:
        if n.op_type == "Reshape" and n.input[1] in inits: n.input[1] = made.get(tuple(inits[n.input[1]]), n.input[1])
        if n.op_type == "Slice": n.input[1:3] = ["half" if x in inits and list(inits[x]) == [4] else x for x in n.input[1:3]]
        if n.op_type == "Concat" and len(n.input) == 5: n.input[1:3], n.input[4] = ["of keys", "each"], "head"
    read = {x for n in g.node for x in n.input}
    inits = {name: a for name, a in inits.items() if name in read}
    del g.initializer[:]
    for name, a in inits.items():
        if a.dtype == np.float32 and a.ndim and name != "expand_4":
            shape = [sizes.get(d, d) for d in a.shape]
            if beside and len(shape) == 2:
                g.initializer.append(declared(name, shape, beside))
                continue
            a = (1 + 0.1 * rng.standard_normal(shape, np.float32)) if len(shape) == 1 else rng.standard_normal(shape, np.float32) * np.float32(shape[0] ** -0.5)
        elif name == "expand_4": a = (10000.0 ** (-np.arange(head // 2) * 2 / head)).astype(np.float32).reshape(1, -1, 1)
        elif a.dtype == np.float32 and abs(a - 8 ** -0.5) < 1e-6: a = np.float32(head ** -0.5)
        g.initializer.append(numpy_helper.from_array(np.asarray(a), name))
    g.initializer.extend(numpy_helper.from_array(np.array(v, np.int64), k) for k, v in shapes.items())
    for v in [*g.input, *g.output]:
        if v.name[:4] in ("past", "pres"): v.type.tensor_type.shape.dim[1].dim_value, v.type.tensor_type.shape.dim[3].dim_value = kv, head


def make(path, name, beside=None):
    """Writes the model; returns the number of its nodes. beside: a file, there is nothing in it yet, for matrices of zeros."""
    layers, *sizes = SIZES[name]
    m = onnx.load(os.path.join(HERE, "stories260k-step.onnx"))
    stretch(m.graph, layers)
    resize(m.graph, *sizes, beside=beside)
    with open(path, "wb") as f: f.write(m.SerializeToString())
    return len(m.graph.node)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in SIZES: sys.exit(__doc__)
    print(make(sys.argv[1], sys.argv[2]), "nodes")
