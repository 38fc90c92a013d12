#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the seeds of the fuzz targets, tiny models of every kind that mlo reads: tests/fuzz/onnx/*.onnx, tests/fuzz/json/*.json and the dictionary.

    python tests/fuzz/seeds.py [FOLDER]"""
import json
import os
import sys
import numpy as np
import onnx
from google.protobuf import json_format
from onnx import TensorProto as T, helper as h, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
N = h.make_node
f32 = lambda *dims: (np.arange(np.prod(dims), dtype=np.float32).reshape(dims) % 7 - 3) / 4
ints = lambda *v: np.array(v, np.int64)
info = lambda name, *dims, t=T.FLOAT: h.make_tensor_value_info(name, t, dims)


def model(nodes, inputs, outputs, init=(), opset=18, functions=(), **more):
    g = h.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(np.asarray(v), k) for k, v in init], **more)
    return h.make_model(g, opset_imports=[h.make_opsetid("", opset), h.make_opsetid("own", 1)], functions=functions, ir_version=9, producer_name="")


def scoped(node, layer, name):
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'l.%d', 'l.%d.%s', '%s']" % (layer, layer, name, node.name))
    node.metadata_props.add(key="pkg.torch.onnx.class_hierarchy", value="['M', 'L', 'F', 'aten']")
    return node


def residual(layers=3, scopes=False, taps=False, between=False, differs=None):
    """x + relu(x W + b), layer after layer."""
    nodes, init, outputs = [], [], []
    for k in range(layers):
        init += [("w%d" % k, f32(4, 4) + k), ("b%d" % k, f32(4) * (k + 1))]
        made = [N("MatMul", ["x%d" % k, "w%d" % k], ["m%d" % k], "mm%d" % k), N("Add", ["b%d" % k, "m%d" % k] if k == 1 else ["m%d" % k, "b%d" % k], ["a%d" % k], "ad%d" % k),
                N("LeakyRelu", ["a%d" % k], ["r%d" % k], "re%d" % k, alpha=0.5 if k == differs else 0.25), N("Add", ["x%d" % k, "r%d" % k], ["x%d" % (k + 1)], "su%d" % k)]
        nodes += [scoped(n, k, n.op_type) for n in made] if scopes else made
        if taps: outputs.append(info("r%d" % k, 1, 2, 4))
    if between: nodes.append(N("Softmax", ["x%d" % layers], ["y"], "last", axis=-1))
    return model(nodes, [info("x0", 1, 2, 4)], [info("y" if between else "x%d" % layers, 1, 2, 4)] + outputs, init)


def numbers():
    """A layer's number that has no successor."""
    m = residual(2)
    m.graph.node[0].name = "m.9223372036854775807." + m.graph.node[0].name
    return m


def empty():
    """Layers whose parameters have no elements."""
    nodes = [n for k in range(3) for n in (N("MatMul", ["x%d" % k, "w%d" % k], ["m%d" % k]), N("Concat", ["m%d" % k, "x%d" % k], ["x%d" % (k + 1)], axis=1))]
    return model(nodes, [info("x0", 1, 4)], [info("x3", 1, 4)], [("w%d" % k, np.zeros((4, 0), np.float32)) for k in range(3)])


def dotted():
    """An operator that is called like another one with its domain before it."""
    return model([N("mlo.iHardswish", ["s", "z"], ["h"]), N("Mul", ["h", "x"], ["y"])], [info("x", 1, 2)], [info("y", 1, 2)], [("s", np.float32(2)), ("z", np.int8(0))])


def deep():
    """Layers whose weights have as many axes as mlo knows, so that a stack of them has one more."""
    nodes, init = [], []
    for k in range(3):
        nodes += [N("MatMul", ["x%d" % k, "w%d" % k], ["m%d" % k]), N("Relu", ["m%d" % k], ["r%d" % k]), N("Add", ["r%d" % k, "x%d" % k], ["x%d" % (k + 1)])]
        init.append(("w%d" % k, f32(1, 1, 1, 1, 1, 1, 2, 2) + k))
    return model(nodes, [info("x0", *[1] * 6, 2, 2)], [info("x3", *[1] * 6, 2, 2)], init)


def attention(layers=2, cache=False):
    """One head: softmax(q k^T / 2 + mask) v, with what a cache adds as inputs and outputs of each layer."""
    nodes, init, inputs, outputs = [], [("half", np.float32(0.5)), ("eps", np.float32(1e-5)), ("shape", ints(1, -1, 4))], [info("x0", 1, 2, 4), info("keep", 1, 2, t=T.BOOL)], []
    nodes += [N("Not", ["keep"], ["drop"]), N("Cast", ["drop"], ["dropf"], to=T.FLOAT), N("Mul", ["dropf", "low"], ["mask"])]
    init.append(("low", np.float32(-1e4)))
    for k in range(layers):
        i = str(k)
        init += [(w + i, f32(4, 4) * (k + 2)) for w in "qkvo"] + [("g" + i, f32(4)), ("h" + i, f32(4))]
        nodes += [N("LayerNormalization", ["x" + i, "g" + i, "h" + i], ["n" + i], epsilon=1e-5)] + [N("MatMul", ["n" + i, w + i], [w + "m" + i]) for w in "qkv"]
        key, value = "km" + i, "vm" + i
        if cache:
            for w in "kv":
                nodes.append(N("Concat", ["p" + w + i, w + "m" + i], ["c" + w + i], axis=1))
                inputs.append(info("p" + w + i, 1, 0, 4))
                outputs.append(info("c" + w + i, 1, 2, 4))
            key, value = "ck" + i, "cv" + i
        nodes += [N("Transpose", [key], ["t" + i], perm=[0, 2, 1]), N("MatMul", ["qm" + i, "t" + i], ["s" + i]), N("Mul", ["s" + i, "half"], ["z" + i]), N("Add", ["z" + i, "mask"], ["a" + i]),
                  N("Softmax", ["a" + i], ["e" + i], axis=-1), N("MatMul", ["e" + i, value], ["f" + i]), N("Reshape", ["f" + i, "shape"], ["j" + i]), N("MatMul", ["j" + i, "o" + i], ["u" + i]),
                  N("Add", ["x" + i, "u" + i], ["x%d" % (k + 1)])]
    return model(nodes, inputs, [info("x%d" % layers, 1, 2, 4)] + outputs, init)


def control():
    """If, Loop and Scan, which read from outside."""
    body = h.make_graph([N("Add", ["s", "e"], ["s2"]), N("Mul", ["s2", "two"], ["o"])], "scan", [info("s", 2), info("e", 2)], [info("s2", 2), info("o", 2)])
    step = h.make_graph([N("Add", ["c", "two"], ["c2"]), N("Identity", ["on"], ["on2"]), N("Identity", ["c2"], ["l"])], "loop", [info("i", t=T.INT64), info("on", t=T.BOOL), info("c", 2)], [info("on2", t=T.BOOL), info("c2", 2), info("l", 2)])
    yes, no = (h.make_graph([N(op, ["c3", "two"], [o])], o, [], [info(o, 2)]) for op, o in (("Add", "yes"), ("Sub", "no")))
    nodes = [N("Scan", ["a", "xs"], ["b", "bs"], num_scan_inputs=1, body=body, scan_input_axes=[0], scan_output_axes=[-1]), N("Loop", ["trips", "", "b"], ["c3", "ls"], body=step), N("If", ["cond"], ["d"], then_branch=yes, else_branch=no)]
    return model(nodes, [info("a", 2), info("xs", 3, 2), info("cond", t=T.BOOL)], [info("d", 2), info("bs", 2, 3), info("ls", "n", 2)], [("two", np.float32(2)), ("trips", np.int64(3))])


def repeated_scan():
    """Layers that are loops themselves."""
    nodes, init = [], []
    for k in range(3):
        body = h.make_graph([N("Mul", ["s", "w%d" % k], ["q%d" % k]), N("Add", ["q%d" % k, "e"], ["s2"])], "b", [info("s", 2), info("e", 2)], [info("s2", 2)])
        nodes += [N("Scan", ["x%d" % k, "xs"], ["y%d" % k], num_scan_inputs=1, body=body), N("MatMul", ["y%d" % k, "m%d" % k], ["x%d" % (k + 1)])]
        init += [("w%d" % k, f32(2) + k), ("m%d" % k, f32(2, 2) + k)]
    return model(nodes, [info("x0", 2), info("xs", 3, 2)], [info("x3", 2)], init)


def functions():
    f = h.make_function("own", "F", ["a", "b"], ["c"], [N("Add", ["a", "b"], ["t"]), N("Relu", ["t"], ["c"])], [h.make_opsetid("", 18)], ["alpha"])
    return model([N("F", ["x", "w"], ["h"], domain="own"), N("F", ["h", "w"], ["k"], domain="own"), N("Unknown", ["k", ""], ["y"], domain="own", strength=3, words=["a", "b"])], [info("x", 2)], [info("y", 2)], [("w", f32(2))], functions=[f])


def inlined():
    """Functions that call each other, with attributes given, by default and left out, a graph inside, an overload and metadata."""
    imports, two = [h.make_opsetid("", 18), h.make_opsetid("own", 1)], numpy_helper.from_array(np.float32(2), "two")
    leaky, inner = N("LeakyRelu", ["a"], ["l"], "leaky"), N("Softmax", ["l"], ["s"], "soft")
    leaky.attribute.append(onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope"))
    inner.attribute.append(onnx.AttributeProto(name="axis", type=onnx.AttributeProto.INT, ref_attr_name="along"))
    inner.metadata_props.add(key="own", value="kept")
    yes = h.make_graph([N("Mul", ["s", "two"], ["t"])], "yes", [], [info("t", "r", "n")], [two])
    no = h.make_graph([N("Identity", ["s"], ["u"])], "no", [], [info("u", "r", "n")])
    f = h.make_function("own", "F", ["a", "c"], ["b"], [leaky, inner, N("If", ["c"], ["b"], "choose", then_branch=yes, else_branch=no)], imports, ["along"], [h.make_attribute("slope", 0.25)])
    g = h.make_function("own", "G", ["x", "c", "more"], ["y", "z"], [N("F", ["x", "c"], ["v"], "first", domain="own", along=-1), N("F", ["v", "c"], ["w"], "again", domain="own", slope=0.5), N("Add", ["w", "x"], ["y"]), N("Neg", ["y"], ["z"])], imports)
    calls = [N("G", ["x0", "c", ""], ["x1", ""], "one", domain="own"), N("G", ["x1", "c"], ["x2", "z2"], "two", domain="own"), N("G", ["x2", "c"], ["x3"], "three", domain="own")]
    for k, call in enumerate(calls): call.metadata_props.add(key="namespace", value=": M/l.%d: L" % k)
    return model(calls, [info("x0", 2, 4), info("c", t=T.BOOL)], [info("x3", 2, 4), info("z2", 2, 4)], functions=[f, g])


def fused():
    """ONNX Runtime's fused operators, one after the other."""
    ms = lambda op, ins, outs, **a: N(op, ins, outs, outs[0] + "_" + op, domain="com.microsoft", **a)
    init = [("w", f32(4, 4)), ("b", f32(4)), ("g", f32(4) + 2), ("e0", f32(5, 4)), ("e1", f32(3, 4)), ("e2", f32(2, 4)), ("wq", f32(4, 12)), ("bq", f32(12)), ("k", f32(1, 1, 3, 3)), ("ws", np.array([[1, -2, 3, 4]] * 4, np.int8)), ("sc", np.float32(0.1)), ("sv", f32(4) + 2), ("zp", np.uint8(3)), ("img4", ints(1, 1, 2, 4)), ("tok", ints(1, 2, 4)),
            ("cosines", f32(4, 1)), ("sines", f32(4, 1)), ("pos", ints(0, 1).reshape(1, 2))]
    nodes = [ms("EmbedLayerNormalization", ["ids", "seg", "e0", "e1", "e2", "g", "b", "keep"], ["x0", "count"], epsilon=1e-5), ms("Attention", ["x0", "wq", "bq"], ["a0"], num_heads=2), ms("SkipLayerNormalization", ["x0", "a0", "g", "b", "b"], ["n0", "", "", "sum"], epsilon=1e-5),
             ms("FusedMatMul", ["n0", "w"], ["m0"], alpha=0.5, transB=1), ms("BiasGelu", ["m0", "b"], ["g0"]), ms("FastGelu", ["g0", "b"], ["g1"]), ms("QuickGelu", ["g1"], ["g2"], alpha=1.5), ms("Gelu", ["g2"], ["g3"]),
             N("SimplifiedLayerNormalization", ["g3", "g"], ["r0"], "rms", axis=-1, epsilon=1e-5), ms("SkipSimplifiedLayerNormalization", ["r0", "sum", "g", "b"], ["r1"]), ms("MultiHeadAttention", ["r1", "r0", "n0"], ["h0"], num_heads=2),
             ms("RotaryEmbedding", ["h0", "pos", "cosines", "sines"], ["h1"], num_heads=2), ms("GroupQueryAttention", ["h1", "h0", "n0", "", "", "len", "all"], ["h2"], num_heads=2, kv_num_heads=2), N("Einsum", ["h2", "w"], ["h3"], "sums", equation="bij,kj->bik"),
             N("Reshape", ["h3", "flat"], ["f0"]), ms("FusedGemm", ["f0", "w", "b"], ["f1"], activation="Relu", alpha=1.0, beta=1.0, transB=1), N("DynamicQuantizeLinear", ["f1"], ["u", "us", "uz"]), ms("MatMulIntegerToFloat", ["u", "ws", "us", "sv", "uz", "", "b"], ["f2"]),
             ms("DynamicQuantizeMatMul", ["f2", "ws", "sv", "", "b"], ["f3"]), N("Reshape", ["f3", "img4"], ["i0"]), ms("FusedConv", ["i0", "k"], ["i1"], activation="LeakyRelu", activation_params=[0.25], pads=[1, 1, 1, 1]), N("Reshape", ["i1", "tok"], ["y"])]
    init += [("flat", ints(2, 4)), ("len", np.array([1], np.int32)), ("all", np.array([2], np.int32))]
    m = model(nodes, [info("ids", 1, 2, t=T.INT32), info("seg", 1, 2, t=T.INT32), info("keep", 1, 2, t=T.INT32)], [info("y", 1, 2, 4)], init)
    m.opset_import.append(h.make_opsetid("com.microsoft", 1))
    return m


def shapes():
    """What exporters compute about shapes, all of it constant."""
    init = [("zero", ints(0)), ("one", ints(1)), ("two", ints(2)), ("axes", ints(0, 1)), ("big", ints(2, 3)), ("pads", ints(0, 1, 0, 1)), ("dep", np.int64(3)), ("hot", f32(2)), ("s0", np.int64(0)), ("s9", np.int64(9)), ("s2", np.int64(2))]
    nodes = [N("Shape", ["x"], ["sh"]), N("Gather", ["sh", "one"], ["ga"]), N("Concat", ["two", "ga"], ["co"], axis=0), N("ConstantOfShape", ["big"], ["cs"], value=h.make_tensor("v", T.FLOAT, [1], [2.0])), N("Range", ["s0", "s9", "s2"], ["ra"]),
             N("Unsqueeze", ["ra", "zero"], ["un"]), N("Expand", ["un", "big2"], ["ex"]), N("Tile", ["cs", "big"], ["ti"]), N("Pad", ["cs", "pads"], ["pa"]), N("OneHot", ["ra", "dep", "hot"], ["oh"]), N("Slice", ["ra", "zero", "two", "zero", "one"], ["sl"]),
             N("Where", ["le", "ra", "sl1"], ["wh"]), N("Less", ["ra", "s2"], ["le"]), N("ReduceSum", ["ra", "zero"], ["sl1"], keepdims=1), N("CumSum", ["ra", "s0"], ["cu"]), N("Trilu", ["cs"], ["tr"], upper=0), N("Split", ["cs"], ["p1", "p2"], axis=0, num_outputs=2),
             N("Cast", ["ti"], ["ca"], to=T.FLOAT16), N("Constant", [], ["big2"], value_ints=[2, 5]), N("Reshape", ["x", "co"], ["y"]), N("Resize", ["x4", "", "scales"], ["rz"], mode="nearest")]
    nodes += [N("ReduceMax", [v], ["o%d" % i], keepdims=0) for i, v in enumerate(("ex", "pa", "oh", "wh", "cu", "tr", "p2", "ca"))]
    order = {"Less": 0, "ReduceSum": 0, "Constant": 0}
    nodes = sorted(nodes, key=lambda n: order.get(n.op_type, 1))
    return model(nodes, [info("x", 2, 3), info("x4", 1, 1, 2, 2)], [info("y", "p", "q"), info("rz", 1, 1, 4, 4)] + [info("o%d" % i, t=T.FLOAT16 if i == 7 else T.INT64 if i in (0, 3, 4) else T.FLOAT) for i in range(8)], init + [("scales", np.array([1, 1, 2, 2], np.float32))])


def tensors():
    """Every element type, raw and typed; sparse and string tensors; attributes of every kind."""
    t = [h.make_tensor("t%d" % k, k, [2], [1, 0]) for k in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)]
    t += [numpy_helper.from_array(np.array([1, 2], d), "r" + d) for d in ("f2", "f4", "f8", "i1", "i8", "u8", "?", "c8")] + [h.make_tensor("str", T.STRING, [2], [b"a", b"\xff"])]
    sparse = h.make_sparse_tensor(h.make_tensor("sv", T.FLOAT, [1], [3.0]), h.make_tensor("si", T.INT64, [1], [1]), [4])
    n = N("Odd", ["x"], ["y"], domain="own", f=1.5, i=-3, s="txt", fs=[1.0, float("nan")], js=[1, -2], ss=["a", ""], t=t[0])
    n.attribute.append(h.make_attribute("sp", sparse))
    n.attribute.append(h.make_attribute("ty", h.make_sequence_type_proto(h.make_tensor_type_proto(1, ["a", 2, None]))))
    m = model([n], [info("x", "n"), h.make_value_info("mp", h.make_map_type_proto(7, h.make_tensor_type_proto(1, [1]))), h.make_value_info("op", h.make_optional_type_proto(h.make_tensor_type_proto(1, [1])))], [info("y", "n")])
    m.graph.initializer.extend(t)
    m.graph.sparse_initializer.append(sparse)
    m.graph.quantization_annotation.add(tensor_name="x").quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="t1")
    m.metadata_props.add(key="k", value="v \u00e9\n\"")
    m.doc_string = "words"
    return m


def external():
    m = residual(2)
    for t in m.graph.initializer:
        t.ClearField("raw_data")
        for k, v in ("location", "a.data"), ("offset", "64"), ("length", str(4 * int(np.prod(t.dims)))): t.external_data.add(key=k, value=v)
        t.data_location = T.EXTERNAL
    return m


def quantized():
    nodes, init, q = [], [("s", np.float32(0.1)), ("z", np.int8(0))], lambda x, y: [N("QuantizeLinear", [x, "s", "z"], [y + "q"]), N("DequantizeLinear", [y + "q", "s", "z"], [y])]
    for k in range(2):
        init.append(("w%d" % k, np.array([[1, -2], [3, k]], np.int8)))
        nodes += [N("DequantizeLinear", ["w%d" % k, "s", "z"], ["d%d" % k])] + q("x%d" % k, "y%d" % k) + [N("MatMul", ["y%d" % k, "d%d" % k], ["m%d" % k]), N("Gelu", ["m%d" % k], ["x%d" % (k + 1)])]
    return model(nodes, [info("x0", 1, 2)], [info("x2", 1, 2)], init, 20)


def products():
    """Products, norms and windows of constants, so that they are folded."""
    init = [("a", f32(2, 3)), ("b", f32(3, 2)), ("c", f32(2)), ("img", f32(1, 1, 4, 4)), ("k", f32(1, 1, 2, 2)), ("i", ints(1, 0)), ("u8", np.array([[1, 2, 3], [4, 5, 6]], np.uint8)), ("i8", np.array([[1], [-2], [3]], np.int8))]
    nodes = [N("MatMul", ["a", "b"], ["p0"]), N("Gemm", ["a", "b", "c"], ["p1"], alpha=2.0, transB=0), N("Conv", ["img", "k"], ["p2"], pads=[1, 0, 1, 0]), N("Einsum", ["a", "b"], ["p3"], equation="ij,jk->ki"), N("MatMulInteger", ["u8", "i8"], ["p4"]),
             N("Softmax", ["a"], ["p5"]), N("GatherElements", ["b", "i2"], ["p6"], axis=0), N("ScatterND", ["b", "i3", "s3"], ["p7"]), N("ArgMax", ["a"], ["p8"], axis=1), N("AveragePool", ["img"], ["p9"], kernel_shape=[2, 2], strides=[2, 2]), N("Pow", ["a", "c2"], ["p10"])]
    init += [("i2", np.zeros((1, 2), np.int64)), ("i3", np.array([[0], [2]], np.int64)), ("s3", f32(2, 2)), ("c2", np.float32(2))]
    outs = ["p%d" % i for i in range(11)]
    return model(nodes + [N("Unknown", outs, ["y"], domain="own")], [info("x", 1)], [info("y")], init)


def integers():
    """A network of integers (mlo_words): most operators that C has a text for."""
    i32 = lambda *dims: (np.arange(np.prod(dims)).reshape(dims) % 5 - 2).astype(np.float32)
    init = [("w", i32(4, 2, 3, 3)), ("b", i32(4)), ("m", i32(9, 6)), ("c", i32(6)), ("low", np.float32(-20)), ("high", np.float32(20)), ("begin", ints(-1)), ("end", ints(-5)), ("axis", ints(1)), ("step", ints(-2)), ("at", np.array(1)), ("pads", ints(0, 1, 0, 0, 2, 0)),
            ("flat", ints(4, 9)), ("more", ints(1, 4, 6)), ("two", np.float32(2))]
    nodes = [N("Cast", ["x"], ["x0"], to=T.FLOAT), N("Conv", ["x0", "w", "b"], ["x1"], pads=[1, 1, 1, 1]), N("Relu", ["x1"], ["x2"]), N("MaxPool", ["x2"], ["x3"], kernel_shape=[2, 2], strides=[2, 2]), N("Reshape", ["x3", "flat"], ["x4"]), N("MatMul", ["x4", "m"], ["x5"]), N("Add", ["x5", "c"], ["x6"]),
             N("Clip", ["x6", "low", "high"], ["x7"]), N("Gemm", ["x4", "m", "c"], ["x8"]), N("Concat", ["x7", "x8"], ["x9"], axis=1), N("Slice", ["x9", "begin", "end", "axis", "step"], ["x10"]), N("Transpose", ["x10"], ["x11"]), N("Gather", ["x8", "at"], ["x12"], axis=0), N("Reshape", ["x7", "more"], ["x13"]),
             N("Pad", ["x13", "pads"], ["x14"]), N("ReduceSum", ["x14", "axis"], ["x15"]), N("Div", ["x12", "two"], ["x16"]), N("Round", ["x16"], ["x17"])]
    return model(nodes, [info("x", 1, 2, 6, 6, t=T.INT32)], [info("x11", 2, 4), info("x15", 1, 1, 6), info("x17", 6)], init)


def layers():
    """Layers of integers that become kernels: convolutions, sums and products of two streams, tables."""
    nodes, init, flat = [], [], (8, 1, 1)
    number = lambda v: h.make_tensor("", T.FLOAT, [1], [v])
    def own(op, inputs, **attributes):
        nodes.append(N(op, inputs, ["y%d" % len(nodes)], "n%d" % len(nodes), **attributes))
        return nodes[-1].output[0]
    def parameter(v):
        init.append(("p%d" % len(init), np.asarray(v, np.float32)))
        return init[-1][0]
    def shift(x, mul, n=256, signed=1): return own("RequantShift", [x, parameter(mul), parameter(0 * np.asarray(mul))], div=number(65536), n_levels_out=number(n), signed=number(signed))
    y, whole = "x", lambda *dims: (np.arange(np.prod(dims)).reshape(dims) * 37 % 201 - 100)
    for _ in range(2):
        a = own("Relu", [shift(own("Conv", [y, parameter(whole(8, 1, 3, 3))], group=8, pads=[1, 1, 1, 1], kernel_shape=[3, 3]), np.full(flat, 500))])
        b = shift(own("iHardswish", [shift(own("Conv", [a, parameter(whole(8, 8, 1, 1)), parameter(whole(8))], kernel_shape=[1, 1]), np.full(flat, 300), signed=0)], one_over_six=42, three=181, six=362), 2)
        y = shift(own("Add", [shift(y, 40000), shift(own("Mul", [a, b]), 700)]), 65536, n=200)
    return model(nodes, [info("x", 1, 8, 2, 3)], [info(y, 1, 8, 2, 3)], init, 13)


SEEDS = {"residual": residual, "scoped": lambda: residual(3, True), "numbers": numbers, "empty": empty, "deep": deep, "dotted": dotted, "taps": lambda: residual(3, False, True, True), "differs": lambda: residual(4, True, differs=1), "attention": attention, "cache": lambda: attention(2, True), "control": control,
         "repeated_scan": repeated_scan, "inlined": inlined, "fused": fused, "functions": functions, "shapes": shapes, "tensors": tensors, "external": external, "quantized": quantized, "products": products, "integers": integers, "layers": layers}


def words():
    """Words of the format: operators, attributes, keys."""
    ops = sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == ""})
    attrs = sorted({a for s in onnx.defs.get_all_schemas() if s.domain == "" for a in s.attributes})
    fields = sorted({f.json_name for d in (onnx.ModelProto, onnx.GraphProto, onnx.NodeProto, onnx.AttributeProto, onnx.TensorProto, onnx.ValueInfoProto, onnx.TypeProto, onnx.FunctionProto, onnx.SparseTensorProto) for f in d.DESCRIPTOR.fields})
    keys = ["pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy", "namespace", "mlo.stage", "mlo.loop", "mlo.data_dir", "mlo.digest", "location", "offset", "length", "com.microsoft", "Infinity", "NaN", "18446744073709551615", "-9223372036854775808", "1e999", "\\\\u0000", "\\\\ud800"]
    return ops, attrs, fields, keys


def make(folder):
    for kind in "onnx", "json": os.makedirs(os.path.join(folder, kind), exist_ok=True)
    for name, seed in SEEDS.items():
        m = seed()
        with open(os.path.join(folder, "onnx", name + ".onnx"), "wb") as f: f.write(m.SerializeToString(deterministic=True))
        with open(os.path.join(folder, "json", name + ".json"), "w") as f: json.dump(json_format.MessageToDict(m), f, separators=(",", ":"))
    ops, attrs, fields, keys = words()
    with open(os.path.join(folder, "onnx.dict"), "w") as f: f.writelines('"%s"\n' % w for w in ops + attrs + keys)
    with open(os.path.join(folder, "json.dict"), "w") as f: f.writelines('"%s"\n' % w for w in ops + attrs + keys + ['\\"%s\\":' % w for w in fields])


if __name__ == "__main__":
    make(sys.argv[1] if len(sys.argv) > 1 else HERE)
