# SPDX-License-Identifier: MIT
"""ONNX's node tests as one model: every operator that mlo evaluates, each with the inputs and attributes of each of its tests.

What one process says of it, a thousand would have to be asked for. Who uses it: test_ops.py (what is known of forms that are open) and
library/places.txt (each place that asks for memory)."""
import functools
import warnings
import numpy as np
import onnx
import onnx.compose
from onnx import TensorProto as T, numpy_helper

# ---- what mlo does with them: test_ops.py holds each node test against it ----
EVALUATED = """
Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Concat Constant
ConstantOfShape Conv ConvInteger ConvTranspose Cos Cosh CumSum DequantizeLinear Div Dropout DynamicQuantizeLinear Elu Equal Erf Exp Expand EyeLike Flatten Floor Gather GatherElements GatherND
Gelu Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Identity If InstanceNormalization IsInf IsNaN LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Loop MatMul
MatMulInteger Max MaxPool Mean Min Mish Mod Mul Neg Not Or PRelu Pad Pow QuantizeLinear RMSNormalization Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum
ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize RotaryEmbedding Round Scan ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh
Size Slice Softmax Softplus Softsign Split Sqrt Squeeze Sub Sum Swish Tan Tanh ThresholdedRelu Tile Transpose Trilu Unsqueeze Where Xor""".split()
CARRIED = ["QLinearConv", "QLinearMatMul"]
RESPELLED = "test_einsum_transpose", "test_einsum_batch_matmul", "test_einsum_scalar"       # node tests of an operator that is not evaluated, but these are made of others
REFUSED = "training", "tf_crop", "scan_sum"          # in the names of node tests that mlo refuses though it evaluates the operator (skips.txt)
NPZ_TYPES = {T.FLOAT, T.UINT8, T.INT8, T.UINT16, T.INT16, T.INT32, T.INT64, T.BOOL, T.FLOAT16, T.DOUBLE, T.UINT32, T.UINT64}


@functools.lru_cache
def node_tests():
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return collect_testcases(None)          # (a second call gives them twice)


def operators(model): return [n.op_type if n.domain in ("", "ai.onnx") else n.domain + "." + n.op_type for n in model.graph.node]
def holds(model): return all(i.type.WhichOneof("value") == "tensor_type" and i.type.tensor_type.elem_type in NPZ_TYPES for i in [*model.graph.input, *model.graph.output])
def array(a): return numpy_helper.to_array(a) if isinstance(a, onnx.TensorProto) else np.asarray(a)


@functools.lru_cache
def single():
    """The tests of one evaluated node each, but those that mlo refuses."""
    tests = [test for test in node_tests() if len(test.model.graph.node) == 1 and operators(test.model)[0] in EVALUATED and holds(test.model)]
    return [test for test in tests if not any(word in test.name for word in REFUSED)]


def takes(node, kind):
    """May this node's floats be of that type? What ONNX says of the operator's inputs."""
    schema = onnx.defs.get_schema(node.op_type)
    types = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    floats = [types.get(i.type_str, [i.type_str]) for i in schema.inputs]
    return all(kind in f for f in floats if "tensor(float)" in f) and not any(a.name in ("to", "dtype", "stash_type", "softmax_precision") or a.type == onnx.AttributeProto.GRAPH for a in node.attribute)


def widened(test, kind):
    """The inputs of a test, those of floats in another type."""
    return [array(a).astype(kind) if array(a).dtype == np.float32 else array(a) for a in test.data_sets[0][0]]


def merged(tests, form, constant=False, kind=np.float32):
    """One model of all nodes. form(value, array) changes what is said of an input. constant: inputs are constants, but matrices of floats, which may be any.
    kind: what float32 inputs are. The second result: output -> what the node tests expect."""
    g, want = onnx.GraphProto(name="operators"), {}
    for k, test in enumerate(tests):
        part = onnx.compose.add_prefix_graph(test.model.graph, "%d_" % k)
        ins, outs = widened(test, kind), [array(a) for a in test.data_sets[0][1]]
        for value, a in zip(part.input, ins):
            if constant and (a.dtype.kind != "f" or a.ndim < 2): g.initializer.append(numpy_helper.from_array(a, value.name)); continue
            if form: form(value, a)
            value.type.tensor_type.elem_type = onnx.helper.np_dtype_to_tensor_dtype(a.dtype)
            g.input.append(value)
        g.initializer.extend(part.initializer)
        g.node.extend(part.node)
        for value, a in zip(part.output, outs):
            want[value.name] = a
            g.output.append(onnx.ValueInfoProto(name=value.name) if kind != np.float32 else value)
            if kind == np.float32: g.output[-1].type.tensor_type.ClearField("shape")
    return onnx.helper.make_model(g, opset_imports=[onnx.helper.make_opsetid("", max(t.model.opset_import[0].version for t in tests))], ir_version=10), want


def write(path):
    """Every operator, in floats of each size, on any floats: a file."""
    model, _ = merged(single(), None, True)
    for k, (kind, name) in enumerate(((np.float64, "tensor(double)"), (np.float16, "tensor(float16)"))):
        more = onnx.compose.add_prefix_graph(merged([test for test in single() if takes(test.model.graph.node[0], name)], None, True, kind)[0].graph, "kind%d_" % k)
        for field in "node", "initializer", "input", "output": getattr(model.graph, field).extend(getattr(more, field))
    with open(path, "wb") as f: f.write(model.SerializeToString())
