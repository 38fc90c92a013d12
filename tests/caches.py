# SPDX-License-Identifier: MIT
"""caches: small decoders whose attention is one operator that takes past keys and values and gives present ones; for test_context.

    model("attention")   opset 23's Attention                          model("scatter")   opset 24's TensorScatter into buffers, Attention over what is full
    model("mha")         com.microsoft.MultiHeadAttention              model("gqa")       com.microsoft.GroupQueryAttention, which turns queries and keys itself
    feeds(...)           what such a model takes beside ids and pasts, for tokens [at, at + size)"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

FORMS = ("attention", "mha", "gqa", "scatter")
WORDS, LAYERS, HEADS, KEYS, WIDTH, INNER, BUFFER = 30, 3, 4, 2, 16, 24, 20
ORT = "com.microsoft"


def feeds(at, size):
    return {"written": np.array([at]), "full": np.array([at + size]), "seqlens_k": np.array([at + size - 1], np.int32), "total": np.array([at + size], np.int32)}


class Graph:
    def __init__(self): self.rng, self.nodes, self.held = np.random.default_rng(0), [], []

    def init(self, a):
        self.held.append(numpy_helper.from_array(np.asarray(a), "c%d" % len(self.held)))
        return self.held[-1].name

    def weight(self, *dims, gain=1.0): return self.init((gain * self.rng.standard_normal(dims) / dims[0] ** 0.5).astype(np.float32))
    def vector(self, n, mean): return self.init((mean + 0.2 * self.rng.standard_normal(n)).astype(np.float32))

    def nodes_of(self, n, op, *ins, domain="", **attributes):
        outs = ["%s_%d_%d" % (op, len(self.nodes), k) for k in range(n)]
        self.nodes.append(helper.make_node(op, ins, outs, name=outs[0], domain=domain, **attributes))
        return outs

    def node(self, op, *ins, **attributes): return self.nodes_of(1, op, *ins, **attributes)[0]

    def heads(self, x, n): return self.node("Transpose", self.node("Reshape", x, self.init(np.array([1, -1, n, WIDTH]))), perm=[0, 2, 1, 3])


def attended(g, form, q, k, v, past, kv, tables):
    """The attention's result, and its present keys and values."""
    if form == "attention": return g.nodes_of(3, "Attention", q, k, v, "", *past, is_causal=1, q_num_heads=HEADS, kv_num_heads=kv)
    if form == "mha": return g.nodes_of(3, "MultiHeadAttention", q, k, v, "", "", "", *past, domain=ORT, num_heads=HEADS, unidirectional=1)
    if form == "gqa": return g.nodes_of(3, "GroupQueryAttention", q, k, v, *past, "seqlens_k", "total", *tables, domain=ORT, num_heads=HEADS, kv_num_heads=kv, do_rotary=1)
    present = [g.node("TensorScatter", p, g.heads(x, kv), "written", axis=-2) for p, x in zip(past, (k, v))]
    y = g.node("Transpose", g.node("Attention", g.heads(q, HEADS), *present, "", "", "", "full", is_causal=1), perm=[0, 2, 1, 3])
    return [g.node("Reshape", y, g.init(np.array([1, -1, HEADS * WIDTH]))), *present]


def layer(g, form, x, past, kv, tables):
    C = HEADS * WIDTH
    h = g.node("LayerNormalization", x, g.vector(C, 1), g.vector(C, 0))
    q, k, v = (g.node("MatMul", h, g.weight(C, n * WIDTH, gain=gain)) for n, gain in ((HEADS, 2.0), (kv, 2.0), (kv, 1.0)))
    y, *present = attended(g, form, q, k, v, past, kv, tables)
    x = g.node("Add", x, g.node("MatMul", y, g.weight(C, C)))
    return g.node("Add", x, g.node("MatMul", g.node("Relu", g.node("MatMul", x, g.weight(C, INNER))), g.weight(INNER, C))), present


def model(form):
    g, info = Graph(), helper.make_tensor_value_info
    kv = HEADS if form == "mha" else KEYS
    inputs, outputs = [info("input_ids", TensorProto.INT64, [1, "step"])], [info("logits", TensorProto.FLOAT, [1, "step", WORDS])]
    if form == "scatter": inputs += [info(n, TensorProto.INT64, [1]) for n in ("written", "full")]
    if form == "gqa": inputs += [info(n, TensorProto.INT32, [1]) for n in ("seqlens_k", "total")]
    angle = np.arange(32)[:, None] / 10.0 ** np.arange(WIDTH // 2)[None]
    tables = [g.init(f(angle).astype(np.float32)) for f in (np.cos, np.sin)] if form == "gqa" else []
    x = g.node("Gather", g.weight(WORDS, HEADS * WIDTH, gain=5.0), "input_ids")
    for i in range(LAYERS):
        past = ["past.%d.%s" % (i, what) for what in ("key", "value")]
        inputs += [info(n, TensorProto.FLOAT, [1, kv, BUFFER if form == "scatter" else "past", WIDTH]) for n in past]
        x, present = layer(g, form, x, past, kv, tables)
        for n, p in zip(present, past):
            g.nodes.append(helper.make_node("Identity", [n], [p.replace("past", "present")]))
            outputs.append(info(p.replace("past", "present"), TensorProto.FLOAT, [1, kv, None, WIDTH]))
    g.nodes.append(helper.make_node("MatMul", [x, g.weight(HEADS * WIDTH, WORDS)], ["logits"]))
    opset = {"attention": 23, "scatter": 24}.get(form, 18)
    return helper.make_model(helper.make_graph(g.nodes, form, inputs, outputs, g.held), ir_version=10,
                             opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(ORT, 1)])
