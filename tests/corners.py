# SPDX-License-Identifier: MIT
"""Corners of operators that ONNX's node tests leave out: attributes, types and values that are legal (ONNX Runtime judges them, or onnx's reference
evaluator where that knows them not), and what an operator cannot do (its node and its words). Who uses it: test_ops.py, which runs all legal ones of one
opset as one model."""
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

N = h.make_node
F32, F64, I64 = np.float32, np.float64, np.int64
NAN, INF = np.nan, np.inf
STATUS = {"SHAPE": 3, "TYPE": 3, "DATA": 3, "GRAPH": 3, "UNSUPPORTED": 4}


def model(nodes, opset, feeds, init=()):
    """One model of these nodes; its outputs are the last node's."""
    inputs = [h.make_tensor_value_info(k, h.np_dtype_to_tensor_dtype(a.dtype), a.shape) for k, a in feeds.items()]
    init = [a if isinstance(a, onnx.TensorProto) else numpy_helper.from_array(np.asarray(a), k) for k, a in dict(init).items()]
    g = h.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=o) for o in nodes[-1].output if o], init)
    return h.make_model(g, opset_imports=[h.make_opsetid("", opset)], ir_version=10)


def through(kind, **cast):
    """Floats to a small type and back."""
    return [N("Cast", ["x"], ["small"], to=kind, **cast), N("Cast", ["small"], ["y"], to=T.FLOAT)]


def again(op, x, *more, opset=22, names=("y",), **attributes):
    """One node on these arrays."""
    arrays = [x, *more]
    inputs = ["" if a is None else "abcde"[k] for k, a in enumerate(arrays)]
    return opset, [N(op, inputs, list(names), **attributes)], {k: a for k, a in zip(inputs, arrays) if k}


WIDE = F32([0.3, -0.3, 1.7, -2.5, 5, -5, 400, -400, 1e9, -1e9, 1e-9, -1e-9, 0, -0.0])
WHOLE = F32([0, 1, -1, 3, -3, 7, -8])
ROW = F32([[1, NAN, 3], [4, 5, 6]])
SEVEN = np.arange(7, dtype=F32).reshape(1, 1, 7)


def legal():
    """name -> (opset, nodes, feeds)"""
    small = [k for k in ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")]
    for k in small:
        yield "Cast to %s" % k, (22, through(getattr(T, k)), {"x": np.append(WIDE, F32([NAN, INF, -INF]))})
        yield "Cast to %s, unsaturated" % k, (22, through(getattr(T, k), saturate=0), {"x": np.append(WIDE, F32([NAN, INF, -INF]))})
    for k in ("FLOAT16", "BFLOAT16"): yield "Cast to %s" % k, (22, through(getattr(T, k)), {"x": np.append(WIDE, F32([NAN, INF, -INF]))})
    for k in ("INT4", "UINT4"): yield "Cast to %s" % k, (22, through(getattr(T, k)), {"x": WHOLE if k == "INT4" else np.abs(WHOLE)})
    yield "Cast of what int64 does not hold", (22, [N("Cast", ["x"], ["y"], to=T.UINT64)], {"x": F64([3, 9.3e18, 1.2e19])})
    yield "Pow of integers, negative", again("Pow", I64([1, -1, -1, 5, -5]), I64([-3, -3, -2, -1, -2]))
    for op, kind in (("Max", np.int8), ("Max", np.int32), ("Min", np.int64), ("SumSquare", np.int32), ("L1", np.int32), ("Mean", np.int32), ("Prod", np.int64)):
        yield "Reduce%s of %s" % (op, kind.__name__), again("Reduce" + op, np.array([[3, -4, 5], [-6, 7, 1]], kind), I64([1]))
    yield "ReduceMax of no number", again("ReduceMax", ROW, I64([1]))
    yield "ReduceMin of no number", again("ReduceMin", ROW, I64([1]))
    yield "ReduceSum of axes that are none", again("ReduceSum", ROW[1:], I64([]), noop_with_empty_axes=1)
    yield "ReduceSum of an empty axis", again("ReduceSum", np.zeros((2, 0), F32), I64([1]))
    yield "Softmax of no number", again("Softmax", ROW)
    yield "Softmax of doubles, no number", again("Softmax", ROW.astype(F64))
    yield "Softmax below opset 13", again("Softmax", np.arange(12, dtype=F32).reshape(2, 3, 2), opset=12, axis=1)
    yield "LogSoftmax below opset 13", again("LogSoftmax", np.arange(12, dtype=F32).reshape(2, 3, 2), opset=12, axis=2)
    yield "Clip by attributes", again("Clip", WIDE, opset=10, min=-2.0, max=4.0)
    yield "Clip to no less", again("Clip", WIDE, F32(-1))
    yield "Clip to no more", again("Clip", WIDE, None, F32(1))
    yield "Slice by attributes", again("Slice", np.arange(12, dtype=F32).reshape(3, 4), opset=9, starts=[1, -3], ends=[9, 3], axes=[0, 1])
    yield "Slice that ends before it begins", again("Slice", np.arange(4, dtype=F32), I64([2]), I64([-100]))
    yield "Slice backwards beyond the end", again("Slice", np.arange(4, dtype=F32), I64([9]), I64([-9]), I64([0]), I64([-2]))
    yield "Squeeze of all that is 1", again("Squeeze", np.ones((1, 2, 1), F32))
    yield "Pad of one by its edge", again("Pad", np.full((1, 2), 5, F32), I64([1, 0, 2, 1]), mode="edge")
    yield "Pad that cuts", again("Pad", np.arange(6, dtype=F32).reshape(2, 3), I64([0, -1, 0, 1]))
    yield "Pad of some axes", again("Pad", np.arange(6, dtype=F32).reshape(2, 3), I64([1, 1]), F32(7), I64([-1]))
    for how in ("max", "min", "add", "mul"):
        for kind in (F32, np.int32):
            x = np.array([1, 5, -3, 2], kind)
            yield "ScatterElements %s of %s" % (how, kind.__name__), again("ScatterElements", x, I64([0, 1, 2, 0]), np.array([3, 2, -5, 0], kind), reduction=how)
            yield "ScatterND %s of %s" % (how, kind.__name__), again("ScatterND", x, I64([[0], [1], [2], [0]]), np.array([3, 2, -5, 0], kind), reduction=how)
    yield "Gather by int32, from behind", again("Gather", np.arange(6, dtype=F32).reshape(2, 3), np.array([-1, 0], np.int32), axis=1)
    yield "Gather of nothing", again("Gather", np.arange(6, dtype=F32).reshape(2, 3), I64([]), axis=0)
    yield "GatherND of batches", again("GatherND", np.arange(12, dtype=F32).reshape(2, 3, 2), I64([[[1]], [[2]]]), batch_dims=1)
    yield "MaxPool whose window is padding on one side", again("MaxPool", SEVEN, kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1)
    yield "MaxPool of equal numbers: the first one's place", again("MaxPool", F32([[[2, 2, 2, 1, 3, 3]]]), kernel_shape=[3], names=("y", "i"))
    yield "MaxPool, indices unwanted", again("MaxPool", SEVEN, kernel_shape=[2], names=("y", ""))
    yield "MaxPool, SAME_UPPER of a window less than its step", again("MaxPool", SEVEN, kernel_shape=[1], strides=[3], auto_pad="SAME_UPPER")
    yield "LayerNormalization, its sum left out", again("LayerNormalization", ROW[1:], F32([1, 2, 3]), None)
    yield "AveragePool, SAME_LOWER", again("AveragePool", SEVEN, kernel_shape=[2], strides=[3], auto_pad="SAME_LOWER")
    yield "Conv, SAME_LOWER", again("Conv", SEVEN, np.ones((2, 1, 2), F32), strides=[2], auto_pad="SAME_LOWER")
    yield "Conv, kernel_shape said", again("Conv", SEVEN, np.ones((2, 1, 2), F32), F32([1, -1]), kernel_shape=[2], auto_pad="VALID")
    three, kernel = np.arange(1, 4, dtype=F32).reshape(1, 1, 3), F32([[[1, 10, 100, 1000], [2, 20, 200, 2000]]])
    for how in "SAME_UPPER", "SAME_LOWER", "VALID": yield "ConvTranspose, %s" % how, again("ConvTranspose", three, kernel[:, :, :3], strides=[2], auto_pad=how)
    for upper in False, True: yield "ConvTranspose to seven%s" % (", SAME_UPPER" if upper else ""), again("ConvTranspose", three, kernel, F32([0.5, -1]), strides=[2], output_shape=[7], **({"auto_pad": "SAME_UPPER"} if upper else {}))
    yield "ConvTranspose, cut on one side, longer on the other", again("ConvTranspose", three, kernel, strides=[3], dilations=[2], pads=[2, 0], output_padding=[1])
    yield "Conv of groups", again("Conv", np.arange(8, dtype=F32).reshape(1, 4, 2), np.ones((4, 2, 1), F32), group=2)
    yield "LayerNormalization, mean unwanted", again("LayerNormalization", ROW[1:], F32([1, 2, 3]), names=("y", "", "deviation"))
    yield "LayerNormalization of an earlier axis", again("LayerNormalization", np.arange(12, dtype=F32).reshape(2, 3, 2), np.ones((3, 2), F32), np.full((3, 2), 2, F32), axis=1)
    yield "DynamicQuantizeLinear, scale unwanted", again("DynamicQuantizeLinear", WIDE[:6], names=("y", "", "zero"))
    yield "DynamicQuantizeLinear of zeros", again("DynamicQuantizeLinear", np.zeros(3, F32), names=("y", "", "zero"))
    yield "Dropout, mask unwanted", again("Dropout", WIDE, names=("y", ""))
    yield "Dropout with a mask", again("Dropout", WIDE, names=("y", "mask"))
    yield "QuantizeLinear of one by one", again("QuantizeLinear", F32([3.3]), F32([0.5]), np.int8([1]), axis=0)
    yield "QuantizeLinear of a row, one scale", again("QuantizeLinear", WIDE, F32([0.5]), np.uint8([1]), axis=0)
    yield "QuantizeLinear to int16", again("QuantizeLinear", WIDE[:8], F32(0.01), np.int16(3))
    yield "QuantizeLinear along the first axis", again("QuantizeLinear", np.arange(6, dtype=F32).reshape(2, 3), F32([0.5, 0.25]), np.int8([1, 2]), axis=0)
    yield "DequantizeLinear of int32", again("DequantizeLinear", np.int32([70000, -3]), F32(0.5))
    yield "DequantizeLinear along the last axis", again("DequantizeLinear", np.int8([[1, 2, 3], [4, 5, 6]]), F32([1, 2, 3]), np.int8([1, 0, -1]), axis=-1)
    yield "MatMulInteger, a zero point for each row", again("MatMulInteger", np.uint8([[1, 2], [3, 4]]), np.int8([[5, 6], [7, 8]]), np.uint8(1), np.int8([3, 4]))
    bytes_ = lambda seed, *shape: np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)
    yield "ConvInteger, a zero point for each channel", again("ConvInteger", bytes_(1, 2, 3, 5, 6), bytes_(2, 4, 3, 3, 2), np.uint8(7), np.uint8([3, 250, 0, 128]), pads=[1, 0, 1, 1], strides=[2, 1])
    yield "ConvInteger in groups, without zero points", again("ConvInteger", bytes_(3, 1, 4, 4, 4), bytes_(4, 6, 2, 2, 2).astype(np.int8), group=2, dilations=[2, 1])
    yield "ConvInteger, largest sums", again("ConvInteger", np.full((1, 64, 8, 8), 255, np.uint8), np.full((2, 64, 8, 8), 255, np.uint8))
    yield "Gemm without what is added", again("Gemm", ROW[1:], np.ones((3, 2), F32), alpha=0.5, beta=3.0)
    yield "Gemm whose sum is scaled", again("Gemm", ROW[1:], np.ones((3, 2), F32), F32([1, 2]), beta=0.5)
    yield "Gemm whose product is none of the sum's", again("Gemm", ROW[1:].T.copy(), np.ones((2, 3), F32), F32(1), transA=1, transB=1)
    yield "MatMul of a vector and a matrix", again("MatMul", F32([1, 2, 3]), np.arange(6, dtype=F32).reshape(3, 2))
    yield "MatMul of two vectors", again("MatMul", F32([1, 2, 3]), F32([4, 5, 6]))
    yield "MatMul of batches that broadcast", again("MatMul", np.arange(12, dtype=F32).reshape(2, 1, 2, 3), np.arange(18, dtype=F32).reshape(3, 3, 2))
    yield "MatMul of nothing", again("MatMul", np.zeros((2, 0), F32), np.zeros((0, 3), F32))
    yield "Add of an empty row", again("Add", np.zeros((2, 0), F32), np.ones((2, 1), F32))
    for how in ("none", "tanh"): yield "Gelu, %s" % how, again("Gelu", WIDE[:6], approximate=how)
    yield "Mod of floats", again("Mod", F32([5.5, -5.5, 5.5]), F32([2, 2, -2]), fmod=1)
    yield "Mod of integers", again("Mod", I64([5, -5, 5, -5]), I64([3, 3, -3, -3]))
    yield "Div of integers", again("Div", I64([7, -7, 7, -7]), I64([2, 2, -2, -2]))
    yield "IsInf, positive", again("IsInf", F32([INF, -INF, 1, NAN]), detect_negative=0)
    yield "IsInf, negative", again("IsInf", F64([INF, -INF, 1, NAN]), detect_positive=0)
    yield "Where of integers", again("Where", np.array([True, False]), I64([1, 2]), I64([3, 4]))
    yield "CumSum, exclusive and backwards", again("CumSum", F32([1, 2, 3]), np.int32(0), exclusive=1, reverse=1)
    yield "ArgMax of the last that is largest", again("ArgMax", F32([[3, 1, 3], [2, 2, 1]]), axis=-1, select_last_index=1, keepdims=0)
    yield "ArgMin of integers", again("ArgMin", np.int32([[3, 1, 1], [2, 5, 2]]), axis=1)
    yield "Trilu above by two", again("Trilu", np.arange(9, dtype=F32).reshape(3, 3), I64(2), upper=1)
    yield "Tile none", again("Tile", np.ones((2, 1), F32), I64([0, 3]))
    yield "Expand to more axes", again("Expand", F32([[1], [2]]), I64([3, 1, 4]))
    yield "Range of floats", again("Range", F32(1), F32(3), F32(0.5))
    yield "Range that is empty", again("Range", I64(3), I64(1), I64(1))
    yield "Concat with an empty one", again("Concat", np.ones((0, 2), F32), np.ones((1, 2), F32), axis=0)
    yield "Split into unequal last", (22, [N("Split", ["a"], ["p", "q", "r"], num_outputs=3)], {"a": np.arange(7, dtype=F32)})
    yield "Resize to nearest of sizes", (22, [N("Resize", ["a", "", "", "s"], ["y"], mode="nearest")], {"a": np.arange(4, dtype=F32).reshape(1, 1, 2, 2), "s": I64([1, 1, 3, 4])})
    yield "Resize, corners aligned", (22, [N("Resize", ["a", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="align_corners")], {"a": np.arange(4, dtype=F32).reshape(1, 1, 2, 2), "s": F32([1, 1, 2, 2])})
    yield "Resize, no mode said", (22, [N("Resize", ["a", "", "s"], ["y"])], {"a": np.arange(4, dtype=F32).reshape(1, 1, 2, 2), "s": F32([1, 1, 2, 3])})
    yield "Resize by nothing", (22, [N("Resize", ["a", "", "s"], ["y"], mode="cubic")], {"a": np.arange(4, dtype=F32).reshape(1, 1, 2, 2), "s": F32([1, 1, 1, 1])})


def many(n): return I64([1] * n)


def refused():
    """name -> (code, words, opset, nodes, feeds, initializers): the run fails so, and names the node."""
    x23, x4 = np.ones((2, 3), F32), np.ones(4, F32)
    one = lambda code, words, op, *arrays, opset=22, init=(), names=("y",), **attributes: (code, words, opset, [N(op, ["" if a is None else "abcde"[k] for k, a in enumerate(arrays)], list(names), name="wrong", **attributes)],
                                                                             {"abcde"[k]: a for k, a in enumerate(arrays) if a is not None}, init)
    yield "Squeeze of 65 axes", one("SHAPE", "axes has 65 elements, at most 64", "Squeeze", x23, opset=11, axes=[0] * 65)
    yield "Reshape by 65 numbers", one("SHAPE", "is not a short list of integers", "Reshape", x23, many(65))
    yield "Add of none and two", one("SHAPE", "do not broadcast", "Add", np.ones((0, 2), F32), np.ones((2, 2), F32))
    yield "Add of two and none", one("SHAPE", "do not broadcast", "Add", np.ones((2, 2), F32), np.ones((0, 2), F32))
    yield "Transpose by an axis before the first", one("SHAPE", "perm", "Transpose", x23, perm=[-1, 0])
    yield "Split in 65", one("SHAPE", "the form of its output cannot be told", "Split", np.ones(65, F32), names=["y%d" % k for k in range(65)], num_outputs=65)
    yield "Split into less than none", one("SHAPE", "", "Split", x4, I64([5, -1]), names=("y", "z"))
    yield "Pad by too much", one("SHAPE", "a pad of 2199023255552", "Pad", x4, I64([2 ** 41, 0]))
    yield "Pad by too little", one("SHAPE", "or -2199023255552", "Pad", x4, I64([0, -2 ** 41]))
    yield "Pad to less than nothing", one("SHAPE", "becomes negative", "Pad", x4, I64([-3, -3]))
    yield "Pad in a way there is not", one("UNSUPPORTED", "mode is none of constant, reflect, edge, wrap", "Pad", x4, I64([1, 1]), mode="mirror")
    yield "ScatterElements in a way there is not", one("UNSUPPORTED", "reduction is none of", "ScatterElements", x4, I64([0]), F32([1]), reduction="avg")
    yield "ScatterND in a way there is not", one("UNSUPPORTED", "reduction is none of", "ScatterND", x4, I64([[0]]), F32([1]), reduction="mean")
    yield "ScatterElements of another rank", one("SHAPE", "do not fit", "ScatterElements", x23, I64([0]), F32([1]))
    yield "ScatterElements, updates of another rank", one("SHAPE", "do not fit", "ScatterElements", x23, I64([[0]]), F32([1]))
    yield "ScatterElements, updates of another size", one("SHAPE", "do not fit", "ScatterElements", x23, I64([[0]]), F32([[1, 2]]))
    yield "ScatterElements, more rows than there are", one("SHAPE", "do not fit", "ScatterElements", x23, I64([[0], [0], [0]]), F32([[1], [1], [1]]), axis=1)
    yield "ScatterElements of another type", one("TYPE", "updates are double, the data float", "ScatterElements", x4, I64([0]), F64([1]))
    yield "ScatterND, too few updates", one("SHAPE", "1 updates; 2 are needed", "ScatterND", x4, I64([[0], [1]]), F32([1]))
    yield "GatherND by no list", one("SHAPE", "the form of its output cannot be told", "GatherND", x23, I64(1))
    yield "GatherND before the first batch", one("SHAPE", "the form of its output cannot be told", "GatherND", x23, I64([[0]]), batch_dims=-1)
    yield "GatherND deeper than the data", one("SHAPE", "the form of its output cannot be told", "GatherND", x23, I64([[0, 0, 0]]))
    yield "GatherND of batches there are not", one("SHAPE", "indices of rank 1 do not fit data of rank 2 with 1 batch axes", "GatherND", x23, I64([0]), batch_dims=1)
    yield "ScatterND by no list", one("SHAPE", "indices of rank 0", "ScatterND", x23, I64(1), F32([1]))
    yield "ScatterND deeper than the data", one("SHAPE", "do not fit data of rank 2", "ScatterND", x23, I64([[0, 0, 0]]), F32([1]))
    yield "ScatterND of another type", one("SHAPE", "1 updates; 1 are needed", "ScatterND", x4, I64([[0]]), F64([1]))
    yield "GatherND by nothing", one("SHAPE", "do not fit data of rank 2", "GatherND", x23, np.zeros((2, 0), I64))
    yield "GatherND of batches that differ", one("SHAPE", "batch axis 0 is 2 and 3", "GatherND", x23, I64([[0], [0], [0]]), batch_dims=1)
    yield "GatherND of rank 9", one("UNSUPPORTED", "rank 9; at most 8", "GatherND", np.ones((1, 1, 1, 1, 1), F32), np.zeros((1, 1, 1, 1, 1, 1), I64))
    yield "Gather beyond the end", one("DATA", "", "Gather", x4, I64([4]))
    for groups, scales, biases in ((0, 4, 4), (3, 4, 4), (2, 4, 3), (2, 3, 3)):
        yield "GroupNormalization of %d groups, %d scales, %d biases" % (groups, scales, biases), one("SHAPE", "%d groups and %d scales do not fit [1,4,2]" % (groups, scales), "GroupNormalization", np.ones((1, 4, 2), F32), np.ones(scales, F32), np.ones(biases, F32), num_groups=groups)
    for k in range(1, 5):
        parts = [np.ones(5 if i == k else 4, F32) for i in range(1, 5)]
        yield "BatchNormalization, input %d of another size" % k, one("SHAPE", "5 numbers of input %d do not fit the channels of [1,4,2]" % k, "BatchNormalization", np.ones((1, 4, 2), F32), *parts)
    yield "BatchNormalization of a row", one("SHAPE", "do not fit the channels of [4]", "BatchNormalization", x4, *[F32([1])] * 4)
    yield "InstanceNormalization of a row", one("SHAPE", "do not fit [4]", "InstanceNormalization", x4, F32([1]), F32([1]))
    for what, words, more in (("too many groups", "4294967296 groups", {"group": 2 ** 32}), ("no groups", "0 groups", {"group": 0}), ("channels that the groups do not divide", "1 groups", {}), ("strides for two axes", "strides has 2 entries, 1 are needed", {"strides": [1, 1], "group": 2}),
                              ("a stride of 2^33", "strides has an entry of 8589934592", {"strides": [2 ** 33], "group": 2}), ("a stride of -2^33", "strides has an entry of -8589934592", {"strides": [-2 ** 33], "group": 2}), ("a stride of 0", "must be at least 1", {"strides": [0], "group": 2}),
                              ("a dilation of 0", "must be at least 1", {"dilations": [0], "group": 2}), ("a kernel_shape of two", "kernel_shape is not that of the weights", {"kernel_shape": [1, 1], "group": 2}), ("another kernel_shape", "kernel_shape is not that of the weights", {"kernel_shape": [2], "group": 2})):
        yield "Conv with %s" % what, one("SHAPE", words, "Conv", np.ones((1, 4, 2), F32), np.ones((4, 2, 1), F32), **more)
    yield "Conv of a matrix", one("SHAPE", "input of rank 2 with weights of rank 3", "Conv", x23, np.ones((4, 2, 1), F32))
    yield "Conv, weights of another rank", one("SHAPE", "input of rank 3 with weights of rank 2", "Conv", np.ones((1, 4, 2), F32), x23)
    yield "Conv, weights that groups do not divide", one("SHAPE", "2 groups", "Conv", np.ones((1, 4, 2), F32), np.ones((3, 2, 1), F32), group=2)
    yield "Conv, biases of other channels", one("SHAPE", "3 biases for 4 channels", "Conv", np.ones((1, 4, 2), F32), np.ones((4, 4, 1), F32), np.ones(3, F32))
    yield "MaxPool of a window of 2^33", one("SHAPE", "", "MaxPool", SEVEN, kernel_shape=[2 ** 33])
    rope = lambda words, *arrays, code="SHAPE", **more: one(code, words, "RotaryEmbedding", *arrays, opset=23, **more)
    x3, t2 = np.ones((1, 2, 8), F32), np.ones((5, 2), F32)
    yield "RotaryEmbedding of a matrix", rope("input of rank 2; 3 or 4 is needed", x23, t2, t2)
    yield "RotaryEmbedding of heads that are not said", rope("8 channels in 0 heads", x3, t2, t2, I64([[0, 1]]))
    yield "RotaryEmbedding of heads that do not divide", rope("8 channels in 3 heads", x3, t2, t2, I64([[0, 1]]), num_heads=3)
    yield "RotaryEmbedding of odd channels", rope("of which 3 turn", x3, t2, t2, I64([[0, 1]]), num_heads=2, rotary_embedding_dim=3)
    yield "RotaryEmbedding of channels less than none", rope("of which -2 turn", x3, t2, t2, I64([[0, 1]]), num_heads=2, rotary_embedding_dim=-2)
    yield "RotaryEmbedding of more channels than there are", rope("of which 6 turn", x3, t2, t2, I64([[0, 1]]), num_heads=2, rotary_embedding_dim=6)
    yield "RotaryEmbedding, positions of others", rope("positions [1,3] for 2 tokens", x3, t2, t2, I64([[0, 1, 2]]), num_heads=2)
    yield "RotaryEmbedding, a position behind the table", rope("position 5 of a table of 5", x3, t2, t2, I64([[0, 5]]), num_heads=2, code="DATA")
    yield "RotaryEmbedding, a position before it", rope("position -1 of a table of 5", x3, t2, t2, I64([[-1, 0]]), num_heads=2, code="DATA")
    yield "RotaryEmbedding, a table of another rank", rope("a table [1,2,2] for 2 tokens with 2 pairs", x3, np.ones((1, 2, 2), F32), np.ones((1, 2, 2), F32), I64([[0, 1]]), num_heads=2)
    yield "RotaryEmbedding, a table of other pairs", rope("a table [5,3] for 2 tokens with 2 pairs", x3, np.ones((5, 3), F32), t2, I64([[0, 1]]), num_heads=2)
    yield "RotaryEmbedding, a second table of other pairs", rope("a table [5,3] for 2 tokens with 2 pairs", x3, t2, np.ones((5, 3), F32), I64([[0, 1]]), num_heads=2)
    yield "RotaryEmbedding, rows of another batch", rope("a table [2,2,2] for 2 tokens", x3, np.ones((2, 2, 2), F32), np.ones((2, 2, 2), F32), num_heads=2)
    yield "RotaryEmbedding, rows of other tokens", rope("a table [1,3,2] for 2 tokens", x3, np.ones((1, 3, 2), F32), np.ones((1, 3, 2), F32), num_heads=2)
    image = np.ones((1, 1, 2, 2), F32)
    resize = lambda words, a, scales=None, sizes=None, code="SHAPE", opset=22, **more: one(code, words, "Resize", a, None, scales, sizes, opset=opset, **more)
    yield "Resize by 0", resize("a scale of 0", image, F32([1, 1, 0, 1]))
    yield "Resize by 1e20", resize("a scale of 1e+20", image, F32([1, 1, 1e20, 1]))
    yield "Resize to -1", resize("a size of -1", image, sizes=I64([1, 1, -1, 2]))
    yield "Resize to 2^41", resize("a size of 2199023255552", image, sizes=I64([1, 1, 2 ** 41, 2]))
    yield "Resize of nothing to something", resize("a size of 2", image[:, :, :0], sizes=I64([1, 1, 2, 2]))
    yield "Resize in a way there is not", resize("mode is none of", image, F32([1, 1, 2, 2]), code="UNSUPPORTED", mode="area")
    yield "Resize by coordinates of old", resize("tf_half_pixel_for_nn", image, F32([1, 1, 2, 2]), code="UNSUPPORTED", coordinate_transformation_mode="tf_half_pixel_for_nn")
    yield "DynamicQuantizeLinear of doubles", one("TYPE", "is not defined for double", "DynamicQuantizeLinear", F64([1, 2]), names=("y", "s", "z"))
    yield "Softmax of integers", one("TYPE", "is not defined for int32", "Softmax", np.int32([1, 2]))
    yield "QuantizeLinear, zero points for other scales", one("SHAPE", "2 zero points for 1 scales", "QuantizeLinear", x4, F32([0.5]), np.int8([1, 2]))
    yield "QuantizeLinear, scales for other channels", one("SHAPE", "3 scales for 4 channels of axis 0", "QuantizeLinear", x4, F32([1, 2, 3]), axis=0)
    yield "DequantizeLinear, scales for other channels", one("SHAPE", "3 scales for 4 channels of axis 0", "DequantizeLinear", np.int8([1, 2, 3, 4]), F32([1, 2, 3]), axis=0)
    yield "BitShift to nowhere", one("GRAPH", "direction must be LEFT or RIGHT", "BitShift", np.uint8([1]), np.uint8([1]), direction="UP")
    yield "BitShift that is not said", one("GRAPH", "direction must be LEFT or RIGHT", "BitShift", np.uint8([1]), np.uint8([1]))
    yield "ConstantOfShape of no value", one("SHAPE", "value has no element", "ConstantOfShape", I64([2]), value=numpy_helper.from_array(np.zeros(0, F32), "v"))
    yield "ConstantOfShape that is too large", one("SHAPE", "too large to evaluate", "ConstantOfShape", I64([2 ** 30, 2 ** 30]))
    yield "Max without its second", one("SHAPE", "is an input missing?", "Max", x4, None, x4)
    yield "Mul without its second", one("SHAPE", "is an input missing?", "Mul", x4, None)
    yield "QuantizeLinear without a scale", one("GRAPH", "has no input 1; it takes at least 2", "QuantizeLinear", x4, None, np.int8(1))
    yield "Clip by a list", one("SHAPE", "", "Clip", x4, F32([1, 2]))
    yield "Clip by a list above", one("SHAPE", "", "Clip", x4, None, F32([1, 2]))
    future = onnx.TensorProto(name="f", data_type=99, dims=[2], raw_data=b"1234")
    texts = h.make_tensor("s", T.STRING, [2], [b"a", b"b"])
    yield "texts", ("TYPE", "s: string tensors cannot be evaluated", 22, [N("Identity", ["s"], ["y"], name="wrong")], {}, {"s": texts})
    yield "a type from the future", ("TYPE", "f: unknown tensors cannot be evaluated", 22, [N("Identity", ["f"], ["y"], name="wrong")], {}, {"f": future})
    yield "a Constant of a text", ("UNSUPPORTED", "", 22, [N("Constant", [], ["y"], name="wrong", value_string="a")], {}, {})
