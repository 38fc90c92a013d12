#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The model as a whole in C (--target c --whole): its own inputs and outputs, floats around the loop in integers; networks of floats.

    python tests/test_whole.py path/to/mlo [NAME ...]

    around      encoders, decoders, masks, pixels, two loops: inputs drawn here; host/pre.onnx, core.onnx, post.onnx in ONNX Runtime judge within 1e-4 of the largest, and the model itself by its cosine
    compilers   gcc and clang, -O0 and -O3, sanitizers, no warnings, 32-bit Arm under qemu: the build's own test, which looks behind the arena's end
    floats      Deeploy's CCT and microLlama in FP32, their golden arrays (../shared/deeploy, where that is)
    operators   operators of floats, each form of them an output: ONNX Runtime's numbers
    tiled       networks of floats in arenas smaller than their values: the same numbers, the bytes copied as foretold, down to the least that any arena may have, which is said
    alone       without --inputs what cannot be integers is written as it stands, with drawn words or those of --calib
    limits      NaN and infinity, softmax below opset 13, names that end a comment, memory for large weights
    index       an id outside of its table is said, and nothing else is read
    cache       decoders that go on from call to call (--context): each call's rows are those of the prompt as a whole in ONNX Runtime, in parts of any size; the trained one tells mlo's text;
                what is beyond the context, outside of a table, in too small an arena; Arm, big-endian PowerPC, sanitizers
    masks       those with a mask that comes with the tokens: padding in front, behind and between is ONNX Runtime's; one that tells of other tokens is refused
    tokens      operators behind such a loop, each an output: ONNX Runtime's rows; what mixes tokens is refused by name
    again       two arenas, two calls at a time in turn: no state but theirs
    refused     --whole without C, operators and types that C has no text for; nothing is written
    wrong       a golden number that differs by more than the tolerance is named; by less it is not"""
import ctypes
import glob
import json
import os
import re
import resource
import subprocess
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper, numpy_helper
import harness as t
from graphs import session

AROUND = ["bert-tiny", "bert-tiny-mask", "bert-tiny-qdq", "albert-tiny", "bart-tiny-opset23", "clip-tiny", "gpt2-tiny", "mlp-res", "modernbert-tiny-opset23", "qwen3-tiny-opset23", "swin-tiny",
          "t5-tiny", "vit-tiny", "whisper-tiny"]
FLOATS = {"Models__CCT__FP32__CCT_2_32_32_128": 10, "Models__microLlama__FP32__microLlama1": 64}
TYPES = {"int8_t": np.int8, "uint8_t": np.uint8, "int16_t": np.int16, "int32_t": np.int32, "int64_t": np.int64, "float": np.float32}
TOLERANCE = 1e-4


def text(path, name): return t.read(os.path.join(path, name)).decode()
def sources(path): return [os.path.join(path, f) for f in ("model.c", "whole.c", "weights.c", "test.c") if os.path.exists(os.path.join(path, f))]


def built(name, *flags):
    path = t.at("-".join(["whole", name, *flags]).replace("--", ""))
    if not os.path.isdir(path): t.good("compile", t.model(name), "--target", "c", "--whole", *flags, "-o", path)
    return path


class Model:
    """model_whole of a build directory, called from here."""
    def __init__(self, path):
        library = os.path.join(path, "whole.so")
        subprocess.run(["gcc", "-std=c99", "-O1", "-shared", "-fPIC", "-o", library, *sources(path)[:-1], "-lm"], check=True)
        self.run = ctypes.CDLL(library).model_whole
        header = text(path, "model.h")
        signature = re.search(r"int model_whole\(([^;]*)\);", header, re.S)[1]
        self.kinds = {name: TYPES[kind] for kind, name in re.findall(r"(\w+) \*((?:in|out)\d+)", signature)}
        self.shape = {k: tuple(map(int, re.findall(r"\d+", dims))) for k, dims in re.findall(r"numbers of (\w+), '.*' \[(.*)\](?:, of a token)? \*/", header)}
        self.bytes = int(re.search(r"MODEL_WHOLE_BYTES (\d+)", header)[1])

    def arena(self):
        memory = np.full(self.bytes + 80, 0xA5, np.uint8)
        return memory[-memory.ctypes.data % 16:][:self.bytes + 64]

    def __call__(self, inputs, arena=None, status=0):
        arena = self.arena() if arena is None else arena
        x = [np.ascontiguousarray(a, self.kinds["in%d" % i]) for i, a in enumerate(inputs)]
        y = [np.zeros(self.shape["out%d" % i], self.kinds["out%d" % i]) for i in range(len(self.kinds) - len(x))]
        got = self.run(*[ctypes.c_void_p(a.ctypes.data) for a in [*x, *y, arena]], ctypes.c_size_t(self.bytes))
        assert got == status and (arena[self.bytes:] == 0xA5).all(), "status %d" % got
        return y


def far(got, want):
    """'' when they are near enough: floats by the largest, others as they are."""
    want = np.asarray(want)
    if got.shape != want.shape: return "%s against %s" % (got.shape, want.shape)
    if want.dtype.kind != "f": return "" if np.array_equal(got, want.astype(got.dtype)) else "other numbers"
    finite = np.abs(want[np.isfinite(want)])
    with np.errstate(invalid="ignore"): off = np.abs(got - want)
    wrong = ~((off <= TOLERANCE * (finite.max() if finite.size else 0)) | (got == want) | (np.isnan(got) & np.isnan(want)))
    return "%d of %d are off, by %g" % (wrong.sum(), wrong.size, off[wrong].max()) if wrong.any() else ""


def drawn(graph, seed):
    """Inputs for an ONNX graph: ids below 16, masks of a run of ones, floats."""
    r, feeds = np.random.default_rng(seed), {}
    for i in graph.graph.input:
        dims, kind = [d.dim_value for d in i.type.tensor_type.shape.dim], i.type.tensor_type.elem_type
        ones = np.broadcast_to(np.arange(dims[-1]) < dims[-1] - seed, dims) if dims else np.ones(())
        feeds[i.name] = r.standard_normal(dims).astype(np.float32) if kind == T.FLOAT else (ones if "mask" in i.name or i.name == "a_1" else r.integers(1, 16, dims)).astype(helper.tensor_dtype_to_np_dtype(kind))
    return feeds


def words(path, feeds, theirs):
    """What mlo itself makes of host/pre.onnx: ONNX Runtime's, but for some words in a hundred that one of the two rounds to the next."""
    np.savez(os.path.join(path, "feeds.npz"), **feeds)
    t.good("run", os.path.join(path, "host", "pre.onnx"), "--inputs", os.path.join(path, "feeds.npz"), "--outputs", os.path.join(path, "pre.npz"))
    made = dict(np.load(os.path.join(path, "pre.npz")))
    for name, x in theirs.items():
        off = np.abs(made[name].astype(float) - x.astype(float))
        if x.dtype.kind == "f": off = off > 1e-5 * np.abs(x).max()
        assert off.max() <= 1 and (off > 0).mean() < .04, "%s: %d of %d words, by %g" % (name, (off > 0).sum(), off.size, off.max())
    return made


def check_around():
    for name in t.drawn(AROUND, 2, str):
        path, original, wrong, cosine = built(name), onnx.load(t.model(name)), "", 1
        model, source = Model(path), session(t.model(name))
        parts = [session(os.path.join(path, "host", p + ".onnx")) for p in ("pre", "core", "post")]
        outputs = [o.name for o in original.graph.output]
        for seed in range(3):
            feeds = drawn(original, seed)
            values = dict(feeds)
            for k, p in enumerate(parts):
                made = dict(zip([o.name for o in p.get_outputs()], p.run(None, {i.name: values[i.name] for i in p.get_inputs()})))
                if not k: made = words(path, feeds, made)
                values.update(made)
            got = model(list(feeds.values()))
            for o, y in zip(outputs, got): wrong = wrong or far(y, values[o]) and "%s: %s" % (o, far(y, values[o]))
            for y, z in zip(got, source.run(outputs, feeds)):
                y, z = y.ravel().astype(float), z.ravel().astype(float)
                if z.any() and np.isfinite(z).all(): cosine = min(cosine, y @ z / np.linalg.norm(y) / np.linalg.norm(z))
        t.case("%s: host/*.onnx" % name, wrong)
        t.case("%s: the model itself" % name, "" if cosine > .97 else "a cosine of %.4f" % cosine)


def tested(path, cc, flags, run=()):
    """'' when the build's own test, so compiled, passes without a warning, and says how much it compared."""
    program = os.path.join(path, "test-" + re.sub(r"\W", "", cc + "".join(flags)))
    p = subprocess.run([*cc.split(), "-std=c99", "-Wall", "-Wextra", "-Werror", *flags, "-o", program, *sources(path), "-lm"], capture_output=True, text=True)
    if p.returncode: return p.stderr[-400:]
    p = subprocess.run([*run, program], capture_output=True, text=True)
    said = re.search(r"(?:whole: (\d+) numbers of \d+ frames; an arena of (\d+) bytes, (\d+)|words=(\d+) arena=(\d+) touched=(\d+))", p.stdout)
    n, arena, touched = (int(v) for v in said.groups() if v) if said else (0, 0, 1)
    return "" if p.returncode == 0 and n and touched <= arena and re.search(r"^MLO PASS [^\n]*\n\Z", p.stdout, re.M) else (p.stdout + p.stderr)[-400:]


def check_compilers():
    for name in t.drawn(AROUND, 14, str):
        for cc, level in ("gcc", "-O0"), ("gcc", "-O3"), ("clang", "-O0"), ("clang", "-O3"): t.case("%s: %s %s" % (name, cc, level), tested(built(name), cc, [level]))
        t.case("%s: sanitizers" % name, tested(built(name), "clang", ["-O0", *t.SANITIZE]))
    if t.have("arm", "arm-linux-gnueabihf-gcc", "qemu-arm"): t.case("bert-tiny: 32-bit Arm", tested(built("bert-tiny"), "arm-linux-gnueabihf-gcc", ["-static", "-O2"], ["qemu-arm"]))
    path = built("bert-tiny", "--arena", "12000")
    p = subprocess.run(["make", "-s", "-C", path, "test", "CFLAGS=-O1"], capture_output=True, text=True)
    t.case("a layer in a small arena", "" if p.returncode == 0 and "arena=12000" in p.stdout or re.search(r"MLO PASS .*arena=1[01]\d\d\d", p.stdout) else p.stdout + p.stderr)
    t.case("bert-tiny: used from C++", t.of_cpp(built("bert-tiny"), "model_run", "model_whole", "model_layers", "model_weights"))
    p = t.call("sim", path)
    t.case("sim", "" if p.returncode == 0 and b'"pass":true' in p.stdout.replace(b" ", b"") else p.stderr.decode())


def check_floats():
    if not t.beside("floats", "deeploy"): return
    for name, n in FLOATS.items():
        at = os.path.join(t.shared, "deeploy", name)
        path = t.at("floats-" + name)
        t.good("compile", os.path.join(at, "network.onnx"), "--target", "c", "--whole", "--inputs", os.path.join(at, "inputs.npz"), "--golden", os.path.join(at, "outputs.npz"), "-o", path)
        golden = np.load(os.path.join(at, "outputs.npz"))
        ours = np.array([float(v.strip().rstrip("f")) for v in re.search(r"whole_golden0\[WHOLE_FRAMES\]\[\d+\] = \{\n    \{ (.*?) \},", text(path, "test.c"), re.S)[1].split(",")], np.float32)
        t.case("%s: Deeploy's numbers" % name, "" if len(ours) == n and np.array_equal(ours, golden[golden.files[0]].ravel()) else "others")
        for cc, flags in ("gcc", ["-O3"]), ("clang", ["-O0", *t.SANITIZE]): t.case("%s: %s %s" % (name, cc, flags[0]), tested(path, cc, flags))
    t.case("floats: used from C++", t.of_cpp(path, "model_whole", "model_weights"))


# ---- operators --------------------------------------------------------------------------------------------------------------------------------

def floats(*dims): return np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32)
def ints(*values): return np.array(values, np.int64)


# name: operands ("x": the input [2,3,4,5], "p": its absolute value, "w": a picture [1,4,9,7], "i": int64 [2,3], "b": bool [2,3,4,5], arrays: constants), attributes, outputs
UNARY = "Abs Ceil Celu Cos Elu Erf Exp Floor HardSigmoid HardSwish LeakyRelu Mish Neg Relu Round Selu Shrink Sigmoid Sign Sin Softplus Softsign Tanh ThresholdedRelu IsNaN Gelu Identity".split()
CASES = [*((op, ["x"], {}) for op in UNARY), *((op, ["p"], {}) for op in ("Log", "Sqrt", "Reciprocal")), ("Gelu", ["x"], {"approximate": "tanh"}), ("Celu", ["x"], {"alpha": 1.7}), ("Shrink", ["x"], {"lambd": .4, "bias": .2}),
    *((op, ["x", floats(4, 1)], {}) for op in ("Add", "Sub", "Mul", "Div", "PRelu", "Max", "Min")), ("Sum", ["x", floats(5), floats(3, 1, 1)], {}), ("Max", ["x", floats(5), floats(3, 1, 1), "p"], {}), ("Pow", ["p", np.float32(1.7)], {}), ("Pow", ["x", np.float32(2)], {}),
    *((op, ["x", floats(5)], {}) for op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")), *((op, ["i", ints(2)], {}) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Less", "Greater")), ("Abs", ["i"], {}), ("Neg", ["i"], {}), ("Mod", ["i", ints(3)], {}), ("Mod", ["i", ints(-3)], {}),
    ("Not", ["b"], {}), *((op, ["b", np.array([1, 0, 0, 1, 1], bool)], {}) for op in ("And", "Or", "Xor")), ("Where", ["b", "x", np.float32(-3)], {}), ("Where", ["b", ints(1), ints(7)], {}), ("Clip", ["x", np.float32(-.5), np.float32(.5)], {}), ("Clip", ["x", "", np.float32(.5)], {}), ("Clip", ["x"], {}),
    *(("Cast", [v], {"to": to}) for v in ("x", "i", "b") for to in (T.FLOAT, T.INT64, T.INT32, T.BOOL, T.INT8) if (v, to) != ("x", T.INT8)),
    ("QuantizeLinear", ["x", np.float32(.02), np.uint8(100)], {}), ("QuantizeLinear", ["x", np.float32([.02, .03, .05]), np.int8([0, 3, -5])], {"axis": 1}), ("DequantizeLinear", [np.int8([[3, 4], [5, -6]]), np.float32([.5, .25]), np.int8([1, 2])], {"axis": 0}),
    ("Reshape", ["x", ints(6, -1)], {}), ("Flatten", ["x"], {"axis": 2}), ("Unsqueeze", ["x", ints(0, 3)], {}), ("Transpose", ["x"], {"perm": [2, 0, 3, 1]}), ("Transpose", ["x"], {}), ("Slice", ["x", ints(1, 3), ints(3, -9), ints(2, 3), ints(1, -2)], {}), ("Slice", ["x", ints(1), ints(2), ints(0)], {}),
    ("Split", ["x", ints(1, 3)], {"axis": 2}, 2), ("Concat", ["x", "p", floats(2, 3, 4, 1)], {"axis": -1}), ("Expand", ["i", ints(4, 2, 3)], {}), ("Pad", ["x", ints(0, 1, 0, 2, 0, 0, 1, 0), np.float32(9)], {}), ("Gather", ["x", ints(0)], {"axis": 2}), ("Gather", ["x", np.int64(-1)], {"axis": 1}),
    ("Gather", [floats(9, 2, 3), "i"], {}), ("Gather", ["x", ints(1, -1, 0)], {"axis": 1}), ("Gather", ["x", "k"], {"axis": 2}), ("GatherND", ["x", np.int64([[0, 1], [1, -1]])], {}), ("GatherND", ["x", "n"], {"batch_dims": 1}),
    ("MatMul", ["x", floats(5, 70)], {}), ("MatMul", ["x", floats(2, 1, 5, 3)], {}), ("MatMul", [floats(3, 4), "x"], {}), ("MatMul", ["x", floats(5)], {}), ("MatMul", ["f", floats(150, 66)], {}), ("Gemm", ["f", floats(150, 66), floats(66)], {"alpha": .5}), ("Gemm", ["f", floats(7, 150), floats(3, 1)], {"transB": 1}), ("Gemm", ["f", floats(3, 4)], {"transA": 1}), ("Gemm", ["f", "f", floats(1)], {"transB": 1}),
    ("Conv", ["w", floats(6, 4, 3, 3), floats(6)], {"pads": [1, 0, 2, 1], "strides": [2, 1]}), ("Conv", ["w", floats(8, 2, 3, 2)], {"group": 2, "dilations": [2, 2]}), ("Conv", ["w", floats(4, 1, 1, 3), floats(4)], {"group": 4}), ("Conv", [floats(1, 30, 9), floats(5, 30, 3)], {}),
    ("MaxPool", ["w"], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}), ("AveragePool", ["w"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}), ("AveragePool", ["w"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("Softmax", ["x"], {}), ("Softmax", ["x"], {"axis": 1}), ("LogSoftmax", ["x"], {"axis": 2}), ("LayerNormalization", ["x", floats(5), floats(5)], {}), ("LayerNormalization", ["x", floats(4, 5)], {"axis": 2, "epsilon": .01}), ("RMSNormalization", ["x", floats(5)], {}),
    ("GroupNormalization", ["w", floats(4), floats(4)], {"num_groups": 2}), ("InstanceNormalization", ["w", floats(4), floats(4)], {}), ("BatchNormalization", ["w", floats(4), floats(4), floats(4), np.abs(floats(4))], {}),
    *((op, ["x", ints(*axes)], {"keepdims": keep}) for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2") for axes, keep in (((-1,), 1), ((0, 2), 0))), ("ReduceSum", ["x"], {}), ("ReduceSum", ["i", ints(1)], {}), ("ReduceMax", ["i", ints(0)], {}),
    ("Max", ["i"], {}), ("Min", ["x"], {}), ("Clip", ["i", "", np.int64(3)], {}), ("Pow", ["x", ints(3)], {}), ("Where", [np.array([[True], [False], [True], [True]]), "x", floats(3, 1, 1)], {}), ("Transpose", ["r"], {"perm": [4, 2, 0, 3, 1]}), ("Concat", ["x", np.zeros((2, 3, 0, 5), np.float32), "p"], {"axis": 2}),
    ("Slice", ["x", ints(100, -1), ints(0, 0), ints(-1, -2), ints(-2, -1)], {}), ("Slice", ["x", ints(-100), ints(100), ints(-1), ints(3)], {}), ("Split", ["x"], {"axis": -1, "num_outputs": 3}, 3), ("Gather", ["x", "k"], {"axis": -1}), ("MatMul", [floats(5), floats(2, 5, 3)], {}), ("Pad", ["i", ints(0, 1, 2, 0), np.int64(1 << 40)], {}),
    ("LayerNormalization", ["x", floats(3, 4, 5), floats(3, 4, 5)], {"axis": -3}), ("RMSNormalization", ["x", floats(4, 5)], {"axis": -2}), ("ReduceSum", ["x"], {"noop_with_empty_axes": 1}), ("ReduceSum", ["x", ints()], {}), ("ArgMax", [np.zeros((2, 3), np.float32)], {"axis": 1, "select_last_index": 1}),
    ("ReduceLogSum", ["p", ints(1)], {}), ("ArgMax", ["x"], {"axis": 1}), ("ArgMin", ["x"], {"axis": -1, "keepdims": 0}), ("ArgMax", ["i"], {"axis": 1, "select_last_index": 1}), ("CumSum", ["x", np.int64(2)], {}), ("CumSum", ["i", np.int64(1)], {"exclusive": 1, "reverse": 1})]
INPUTS = {"x": floats(2, 3, 4, 5), "w": floats(1, 4, 9, 7), "f": floats(3, 150), "i": np.int64([[5, 0, 3], [-2, 8, 8]]), "k": ints(3, 0), "n": np.int64([[[1, 2]], [[0, -1]]]), "r": floats(2, 3, 2, 3, 2), "b": floats(2, 3, 4, 5) > .3}


def network(cases, inputs):
    """One model of many operators, each an output or more of its own. (A constant operand goes through an input of its own where all are constants.)"""
    nodes, constants, outputs, feeds = [helper.make_node("Abs", ["x"], ["p"])], [], [], dict(inputs)
    for k, (op, operands, attributes, *n) in enumerate(cases):
        names = []
        for i, v in enumerate(operands):
            names.append(v if isinstance(v, str) else "c%d_%d" % (k, i))
            if not isinstance(v, str) and not i and not any(isinstance(o, str) for o in operands): feeds[names[-1]] = v
            elif not isinstance(v, str): constants.append(numpy_helper.from_array(np.asarray(v), names[-1]))
        made = ["y%d_%d" % (k, i) for i in range(n[0] if n else 1)]
        nodes.append(helper.make_node(op, names, made, **attributes))
        outputs += made
    value = lambda k, v: helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
    graph = helper.make_graph(nodes, "g", [value(k, v) for k, v in feeds.items()], [onnx.ValueInfoProto(name=o) for o in outputs], constants)
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)), feeds


def whole(model, feeds, name):
    """The build directory of a network as it stands; a process."""
    file, npz, path = t.at(name + ".onnx"), t.at(name + ".npz"), t.at("c-" + name)
    onnx.save(model, file)
    np.savez(npz, **feeds)
    return path, t.call("compile", file, "--target", "c", "--whole", "--inputs", npz, "-o", path)


def check_operators():
    model, feeds = network(CASES, INPUTS)
    path, p = whole(model, feeds, "operators")
    if p.returncode: return t.case("operators", p.stderr.decode())
    t.case("operators: its own test", tested(path, "gcc", ["-O2"]))
    t.case("operators: sanitizers", tested(path, "clang", ["-O0", *t.SANITIZE]))
    got = Model(path)(list(feeds.values()))
    judge = session(t.at("operators.onnx"))
    want = dict(zip([o.name for o in judge.get_outputs()], judge.run(None, feeds)))
    made = iter(zip([o.name for o in model.graph.output], got))
    for op, operands, attributes, *n in CASES:
        wrong = ""
        for name, y in [next(made) for _ in range(n[0] if n else 1)]: wrong = wrong or far(y, want[name])
        t.case("%s %s %s" % (op, [v if isinstance(v, str) else list(np.shape(v)) for v in operands], attributes), wrong)


COUNTED = """#include <stdio.h>
#include <string.h>
__attribute__((weak)) size_t copied;
__attribute__((weak)) int said;
__attribute__((weak, destructor)) void say(void) { if (!said++) fprintf(stderr, "%zu", copied); }
#define MLO_COPY_START(to, from, bytes) (copied += (bytes), memcpy(to, from, bytes))
#define MLO_COPY_WAIT() ((void)0)
"""


def wide():
    """Operators over more than a part has: pictures, rows, matrices of sizes that nothing divides."""
    fixed = {"w": floats(301, 71), "b": floats(71), "k": floats(9, 4, 3, 3), "d": floats(9, 1, 3, 3), "s": floats(9), "v": np.abs(floats(9)), "g": floats(71), "one": ints(1), "last": ints(-1), "form": ints(9, 32, 71), "steps": floats(71, 71)}
    nodes = [("Conv", ["p", "k"], ["c"], {"pads": [1, 1, 1, 1], "strides": [2, 1]}), ("Conv", ["c", "d", "s"], ["e"], {"group": 9, "pads": [1, 1, 1, 1]}), ("BatchNormalization", ["e", "s", "s", "s", "v"], ["n"], {}), ("MaxPool", ["n"], ["m"], {"kernel_shape": [3, 3], "strides": [2, 2]}),
             ("AveragePool", ["n"], ["a"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}), ("InstanceNormalization", ["n", "s", "s"], ["i"], {}), ("ReduceMean", ["i", "last"], ["f"], {}), ("Gemm", ["x", "w", "b"], ["h"], {}), ("Softmax", ["h"], ["z"], {}),
             ("LayerNormalization", ["h", "g", "g"], ["l"], {}), ("ArgMax", ["l"], ["t"], {"axis": 1}), ("CumSum", ["l", "one"], ["u"], {}), ("MatMul", ["q", "r"], ["o"], {}), ("MatMul", ["o", "w2"], ["o2"], {}), ("ReduceSum", ["o", "one"], ["y"], {}), ("Gather", ["l", "t2"], ["j"], {})]
    fixed["w2"], fixed["t2"] = floats(60, 130), ints(5, 0, 7)
    feeds = {"p": floats(1, 4, 61, 47), "x": floats(53, 301), "q": floats(6, 50, 40), "r": floats(6, 40, 60)}
    value = lambda k, v: helper.make_tensor_value_info(k, T.FLOAT, v.shape)
    read = {i for n in nodes for i in n[1]}
    outputs = [n[2][0] for n in nodes if n[2][0] not in read]
    graph = helper.make_graph([helper.make_node(op, i, o, **a) for op, i, o, a in nodes], "g", [value(k, v) for k, v in feeds.items()], [onnx.ValueInfoProto(name=o) for o in outputs], [numpy_helper.from_array(v, k) for k, v in fixed.items()])
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)), feeds


def judged(name, model, feeds):
    """The flags of compile for a network, with ONNX Runtime's numbers."""
    onnx.save(model, t.at(name + ".onnx"))
    np.savez(t.at(name + "-in.npz"), **feeds)
    judge = session(t.at(name + ".onnx"))
    np.savez(t.at(name + "-out.npz"), **dict(zip([o.name for o in judge.get_outputs()], judge.run(None, feeds))))
    return [t.at(name + ".onnx"), "--inputs", t.at(name + "-in.npz"), "--golden", t.at(name + "-out.npz")]


def small():
    """Those that parts of 720 bytes can be made of, and a value that no such arena holds as a whole."""
    cases = [c for c in CASES if c[0] != "Transpose" or c[1] != ["r"]]
    while True:
        p = t.call("compile", *judged("tiled-operators", *network([*cases, ("Exp", ["h"], {}), ("Log", ["y%d_0" % len(cases)], {})], {**INPUTS, "h": floats(40, 50)})), "--target", "c", "--whole", "--arena", 720, "-o", t.at("some"))
        node = re.search(rb"y(\d+)_\d+ \(\w+\): --arena 720", p.stderr)
        if not node: break
        cases.pop(int(node[1]))         # (ten of them)
    assert len(cases) > .8 * len(CASES), "%d are left: %s" % (len(cases), p.stderr)
    return [*cases, ("Exp", ["h"], {}), ("Log", ["y%d_0" % len(cases)], {})]


def tiled(flags, most, path):
    """The least arena from `most` on that is taken, its build directory, and what was said on the way."""
    said = []
    while True:
        p = t.call("compile", *flags, "--target", "c", "--whole", "--arena", most, "-o", path)
        less = re.search(rb"\((\w+)\): --arena (\d+): (?:the smallest part of its result takes|all values take) (\d+) bytes.*give as much", p.stderr)
        if not less: return most, "" if p.returncode == 0 else p.stderr.decode()[-300:], said
        assert p.returncode == 4 and int(less[2]) == most < int(less[3]) and not os.path.exists(path)
        said.append(less[1].decode())
        most = int(less[3])


def check_tiled():
    networks = {"operators": lambda: judged("tiled-operators", *network(small(), {**INPUTS, "h": floats(40, 50)})), "wide": lambda: judged("wide", *wide())}
    for name in FLOATS if t.beside("floats in parts", "deeploy") else ():
        given = [os.path.join(t.shared, "deeploy", name, f) for f in ("network.onnx", "inputs.npz", "outputs.npz")]
        networks[name] = lambda given=given: [given[0], "--inputs", given[1], "--golden", given[2]]
    header = t.write("counted.h", COUNTED)
    for name in t.drawn(networks, 2):
        flags = networks[name]()
        for most in t.drawn((720,) if name == "operators" else (16, 16384, 40000), 1 if name in ("operators", "wide") else 3, lambda most: name + str(most)):
            path = t.at("tiled-%s-%d" % (name, most))
            least, wrong, said = tiled(flags, most, path)
            what = "%s, --arena %d" % (name, most)
            if wrong: t.case(what, wrong); continue
            t.note("%s: %d bytes%s" % (what, least, ", once refused by " + ", ".join(said) if said else ""))
            m = json.loads(text(path, "manifest.json"))
            t.case("%s: its own test" % what, tested(path, "gcc", ["-O2"]))
            t.case("%s: sanitizers" % what, tested(path, "clang", ["-O0", *t.SANITIZE]))
            if "tiles" not in m: continue
            p = subprocess.run(["gcc", "-std=c99", "-O1", "-include", header, "-o", path + "/counted", *sources(path), "-lm"], capture_output=True, text=True)
            p = subprocess.run([path + "/counted"], capture_output=True, text=True) if not p.returncode else p
            t.case("%s: the bytes copied" % what, "" if p.stderr == str(m["traffic_bytes"]) and m["arena_bytes"] <= least < m["memory_bytes"] else "%s, not %s; %d" % (p.stderr[-300:], m["traffic_bytes"], m["arena_bytes"]))
            if most < 1000: t.case("%s: steps that are cut" % what, "" if sum(s["tile"] < s["units"] for s in m["tiles"]) >= (10 if name == "wide" else 3) else str([(s["node"], s["tile"], s["units"]) for s in m["tiles"]]))


def check_alone():
    """Without --inputs what cannot be integers is written as it stands, with drawn words, or those of --calib: the C that --inputs gives, the test passes."""
    model, feeds = wide()
    path, p = whole(model, feeds, "alone")
    sample = t.at("alone-calib.npz")
    np.savez(sample, **{k: np.stack([v, v + 1]) for k, v in feeds.items()})
    for what, flags in ("drawn", []), ("of --calib", ["--calib", sample]):
        to = "%s-%d" % (path, len(flags))
        q = t.call("compile", t.at("alone.onnx"), "--target", "c", "--whole", *flags, "-o", to)
        said = q.returncode or p.returncode or b"as it stands" not in q.stderr
        t.case("alone, %s: the C that --inputs gives" % what, q.stderr.decode()[-300:] if said else ", ".join(f for f in ("model.c", "weights.c", "model.h") if t.read(os.path.join(to, f)) != t.read(os.path.join(path, f))))
        if said: continue
        t.case("alone, %s: its own test" % what, tested(to, "gcc", ["-O2"]))
        if flags: t.case("alone: those are the test's words", "" if text(to, "test.c").replace(" ", "") == text(path, "test.c").replace(" ", "") else "others")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    feeds["p"] = floats(3, *feeds["p"].shape[1:])
    del model.graph.value_info[:]
    for o in model.graph.output: o.type.tensor_type.ClearField("shape")
    path, p = whole(model, feeds, "batch")
    t.case("alone: words say how many there are of what is left open", p.stderr.decode() if p.returncode else far(Model(path)(list(feeds.values()))[0], session(t.at("batch.onnx")).run(None, feeds)[0]))
    p = t.call("compile", os.path.join(t.tests, "models/single/llama-d18-sdpa-single.onnx"), "--hold", sample, "--target", "c", "--whole", "-o", t.at("held"))
    t.case("what fails otherwise fails", "" if p.returncode and not os.path.exists(t.at("held")) else "it goes through")


def check_limits():
    """What no number is, what is larger than any, softmax as it was below opset 13, names that end a comment; memory."""
    x = INPUTS["x"].copy()
    x.ravel()[[3, 17, 40]] = np.nan, np.inf, -np.inf
    cases = [*((op, ["x"], {}) for op in UNARY if op != "HardSigmoid"), *((op, ["x", ints(1)], {}) for op in ("ReduceMax", "ReduceMin", "ReduceSum")), *((op, ["x", floats(5)], {}) for op in ("Max", "Min", "Mul", "LayerNormalization")), ("Softmax", ["x"], {}), ("Clip", ["x", np.float32(-1), np.float32(1)], {}), ("Where", ["b", "x", np.float32(0)], {}),
             ("Cast", ["x"], {"to": T.BOOL})]
    rows = [("Softmax", ["x"], {}), ("Softmax", ["x"], {"axis": 2}), ("LogSoftmax", ["x"], {"axis": -1}), ("Softmax", ["x"], {"axis": 0})]
    for name, cases, inputs, opset in ("nan", cases, {"x": x, "b": INPUTS["b"]}, 23), ("below opset 13", rows, {"x": INPUTS["x"]}, 12):
        model, feeds = network(cases, inputs)
        if opset < 23: model.opset_import[0].version, model.ir_version = opset, 7
        path, p = whole(model, feeds, name)
        if p.returncode: t.case(name, p.stderr.decode())
        else:
            want = session(t.at(name + ".onnx")).run(None, feeds)
            for (op, operands, attributes), y, z in zip(cases, Model(path)(list(feeds.values())), want): t.case("%s: %s %s" % (name, op, attributes), far(y, z))
    model, feeds = network([("Erf", ["x"], {})], {"x": INPUTS["x"]})
    said = {"x": 'a*/b"\n\\%s', "y0_0": 'out/*"%d??/', "": "no\"de\n*/\\ \u00e4"}
    for n in model.graph.node: n.name, n.input[:], n.output[:] = said[""], [said.get(i, i) for i in n.input], [said.get(o, o) for o in n.output]
    for v in [*model.graph.input, *model.graph.output]: v.name = said[v.name]
    path, p = whole(model, {said["x"]: feeds["x"]}, "names")
    t.case("names that end a comment", p.stderr.decode() if p.returncode else tested(path, "gcc", ["-O0"]) or tested(path, "clang", ["-O0"]))
    model, feeds = network([("Gather", ["w", "i"], {})], {"i": ints(3, 0), "x": floats(2)})
    model.graph.initializer.append(numpy_helper.from_array(np.random.default_rng(1).standard_normal((1 << 20, 2)).astype(np.float32), "w"))
    onnx.save(model, t.at("large.onnx"))
    np.savez(t.at("large.npz"), **feeds)
    if b"__asan_init" in t.read(t.mlo): return t.note("memory: sanitizers have a shadow of their own")
    p = t.call("compile", t.at("large.onnx"), "--target", "c", "--whole", "--inputs", t.at("large.npz"), "-o", t.at("large"), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (56 << 20, 56 << 20)))
    t.case("8 MB of weights are written in 56 MB", p.stderr.decode() if p.returncode else "")


def check_index():
    model = Model(built("bert-tiny"))
    ids = np.full((1, 32), 5)
    for bad in -1001, 1000, 1 << 40, -(1 << 62):
        try:
            model([np.where(np.arange(32) == 7, bad, ids)], status=3)
            t.case("id %d" % bad, "")
        except AssertionError as e: t.case("id %d" % bad, str(e))
    t.case("id -1 counts from the end", "" if np.array_equal(model([np.full((1, 32), -1)])[0], model([np.full((1, 32), 999)])[0]) else "other numbers")
    y = np.zeros(1)
    p = [ctypes.c_void_p(ids.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_void_p(y.ctypes.data)]
    small, odd = model.run(*p, ctypes.c_void_p(model.arena().ctypes.data), ctypes.c_size_t(model.bytes - 1)), model.run(*p, ctypes.c_void_p(model.arena().ctypes.data + 4), ctypes.c_size_t(model.bytes))
    t.case("arenas too small, misaligned, none", "" if (small, odd, model.run(*p, None, ctypes.c_size_t(model.bytes))) == (2, 2, 2) else "%d, %d" % (small, odd))


# ---- decoders that go on from call to call ---------------------------------------------------------------------------------------------------

class Decoder(Model):
    """model_whole with a cache."""
    def begin(self): self.cache = np.zeros(1 << 22, np.uint8)

    def __call__(self, inputs, status=0, bytes=None):
        """inputs: what some tokens take, [tokens, ..] each. Their rows, of each output."""
        n, arena = len(inputs[0]), self.arena()
        x = [np.ascontiguousarray(a, self.kinds["in%d" % i]) for i, a in enumerate(inputs)]
        y = [np.zeros((n, *self.shape["out%d" % i]), self.kinds["out%d" % i]) for i in range(len(self.kinds) - len(x))]
        p = lambda a: ctypes.c_void_p(a.ctypes.data)
        got = self.run(p(self.cache), *map(p, x), ctypes.c_int(n), *map(p, y), p(arena), ctypes.c_size_t(bytes or self.bytes))
        assert got == status and (arena[self.bytes:] == 0xA5).all(), "status %d" % got
        return y

    def parts(self, inputs, sizes):
        self.begin()
        made = [self([a[at:at + n] for a in inputs]) for at, n in zip(np.cumsum([0, *sizes]), sizes)]
        return [np.concatenate(rows) for rows in zip(*made)]


def prompt(path, feeds):
    """What host/*.onnx make of a prompt as a whole, in ONNX Runtime, by name."""
    values = dict(feeds)
    for p in "pre", "core", "post":
        judge = session(os.path.join(path, "host", p + ".onnx"))
        made = dict(zip([o.name for o in judge.get_outputs()], judge.run(None, {i.name: values[i.name] for i in judge.get_inputs()})))
        values.update(words(path, feeds, made) if p == "pre" else made)
    return values


def differ(path, *sizes):
    """For calls of so many tokens each: {output: which of its rows are not those of the prompt as a whole}."""
    pre, post = (onnx.load(os.path.join(path, "host", p + ".onnx")) for p in ("pre", "post"))
    feeds, decoder = drawn(pre, 1), Decoder(path)
    feeds = {i.name: feeds[i.name] for i in pre.graph.input}
    want, inputs = prompt(path, feeds), [a.reshape(a.shape[1:]) for a in feeds.values()]
    rows = lambda a, n: rows(a[0], n) if a.shape[0] == 1 else a[:n]
    return [{o.name: why for o, y in zip(post.graph.output, decoder.parts(inputs, s)) for w in [rows(want[o.name], sum(s))] for why in [far(y.reshape(w.shape), w)] if why} for s in sizes]


def cached(name, n):
    file, path = os.path.join(t.tests, "models", "context", name + ".onnx"), t.at("cached-" + name)
    if not os.path.exists(file): file = t.model(name)
    if not os.path.isdir(path): t.good("compile", file, "--context", n, "--target", "c", "--whole", "-o", path)
    return path


def check_cache():
    exports = sorted(os.path.basename(f)[:-5] for f in glob.glob(os.path.join(t.tests, "models", "context", "*.onnx")) if "-mask" not in f)
    for name, n in (("gpt2-tiny", 16), ("stories260k-step", 64), *((name, 16) for name in t.drawn(exports, 6, str))):
        path = cached(name, n)
        sizes = (n,), (1,) * n, (3, 1, n - 7)
        for s, wrong in zip(sizes, differ(path, *sizes)): t.case("%s: calls of %s tokens" % (name, s if len(s) < 9 else 1), str(wrong) if wrong else "")
        t.case("%s: its own test" % name, tested(path, *(("gcc", ["-O3"]) if n > 16 else ("clang", ["-O1", *t.SANITIZE]))))
    path, name, wrong = cached("stories260k-step", 64), t.at("story.json"), []
    for cc, qemu in ("arm-linux-gnueabihf-gcc", "qemu-arm"), ("powerpc-linux-gnu-gcc", "qemu-ppc"):
        if t.have(qemu, cc, qemu): t.case("a story, %s" % qemu, tested(path, cc, ["-static", "-O2"], [qemu]))
    t.case("a story, used from C++", t.of_cpp(path, "model_run", "model_whole", "model_layers", "model_weights"))
    t.good("lower", t.model("stories260k-step"), "--context", "64", "-o", name)
    said = json.loads(t.good("run", name, "--generate", "63", "--prompt", "1"))["sequences"][0]["tokens"]
    decoder, ids = Decoder(path), [1]
    decoder.begin()
    for _ in range(63): ids.append(int(decoder([ids[-1:]])[0].argmax()))
    t.case("the text that mlo tells", "" if ids == said else "%s, mlo: %s" % (ids[:8], said[:8]))
    for what, status, tokens, bytes in (("a token beyond the context", 1, [5, 5], None), ("no token", 1, [], None), ("an id outside of the table", 3, [1 << 40], None), ("an arena a byte short", 2, [5], decoder.bytes - 1)):
        try: decoder([np.array(tokens, np.int64)], status, bytes)
        except AssertionError as e: wrong.append("%s: %s" % (what, e))
    t.case("what calls refuse", "; ".join(wrong))


def reversed_mask(name):
    """An export whose mask counts from the end."""
    m = onnx.load(os.path.join(t.tests, "models", "context", name + ".onnx"))
    for n in m.graph.node: n.input[:] = ["turned" if i == "attention_mask" else i for i in n.input]
    m.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in (("from", ints(-1)), ("to", ints(-1 << 60)), ("along", ints(1)), ("by", ints(-1))))
    m.graph.node.insert(0, helper.make_node("Slice", ["attention_mask", "from", "to", "along", "by"], ["turned"], name="turn"))
    onnx.save(m, t.at("turned.onnx"))
    return t.at("turned.onnx")


def check_masks():
    """Exports with a mask that is an input: each token's comes with it."""
    for name in sorted(os.path.basename(f)[:-5] for f in glob.glob(os.path.join(t.tests, "models", "context", "*-mask.onnx"))):
        path = cached(name, 16)
        t.case("%s: its own test" % name, tested(path, "clang", ["-O1", *t.SANITIZE]))
        pre, decoder, wrong = onnx.load(os.path.join(path, "host/pre.onnx")), Decoder(path), []
        for what, hidden in ("no padding", ()), ("behind", (13, 14, 15)), ("in front", (0, 1)), ("between", (3, 7, 8)):
            feeds = drawn(pre, 0)
            feeds = {i.name: feeds[i.name] for i in pre.graph.input}
            feeds["attention_mask"][:, list(hidden)] = 0
            want, inputs = prompt(path, feeds), [a.reshape(a.shape[1:]) for a in feeds.values()]
            for sizes in (16,), (1,) * 16, (3, 1, 12):
                for o, y in zip(onnx.load(os.path.join(path, "host/post.onnx")).graph.output, decoder.parts(inputs, sizes)):
                    why = far(y.reshape(want[o.name].shape), want[o.name])
                    if why: wrong.append("padding %s, calls of %s, %s: %s" % (what, sizes, o.name, why))
            if hidden: same = all(np.array_equal(a, b) for a, b in zip(first, decoder.parts(inputs, (16,))))
            else: first, same = decoder.parts(inputs, (16,)), False
            if same: wrong.append("padding %s changes nothing" % what)
        t.case("%s: masks" % name, "; ".join(wrong[:3]))
    p = t.call("compile", reversed_mask("gpt2-ts17-sdpa-mask"), "--context", 16, "--target", "c", "--whole", "-o", t.at("turned"))
    t.case("a mask that counts from the end", "" if p.returncode == 4 and b"makes a token at a time" in p.stderr and not os.path.exists(t.at("turned")) else p.stderr.decode()[-300:] or "it is taken")


def behind(*nodes, constants=(), outputs=("y",)):
    """gpt2-tiny with nodes behind its hidden states "h" [1,16,64], whose outputs are the model's."""
    m = onnx.load(t.model("gpt2-tiny"))
    last = m.graph.output[0].name
    m.graph.node.extend(helper.make_node(op, [last if i == "h" else i for i in inputs], made, **attributes) for op, inputs, made, attributes in nodes)
    m.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in constants)
    m.graph.output.extend(onnx.ValueInfoProto(name=o) for o in outputs)
    return onnx.shape_inference.infer_shapes(m)


BEHIND = [("Softmax", ["h"], {"axis": -1}), ("LogSoftmax", ["h"], {"axis": 2}), ("ReduceMean", ["h", ints(-1)], {"keepdims": 0}), ("ReduceMax", ["h", ints(2)], {}), ("ArgMax", ["h"], {"axis": 2, "keepdims": 0}), ("Split", ["h", ints(10, 54)], {"axis": -1}, 2), ("Slice", ["h", ints(60), ints(3), ints(2), ints(-5)], {}),
    ("Slice", ["h", ints(0, 8), ints(16, 20), ints(1, 2)], {}), ("Concat", ["h", floats(1, 16, 3), "h"], {"axis": 2}), ("Mul", ["h", floats(16, 1)], {}), ("Add", [floats(1, 16, 64), "h"], {}), ("Where", [np.arange(16)[:, None] % 3 == 0, "h", floats(64)], {}), ("Clip", ["h", np.float32(-.3), np.float32(.4)], {}), ("Tanh", ["h"], {}),
    ("Greater", ["h", floats(1)], {}), ("Cast", ["h"], {"to": T.INT32}), ("MatMul", ["h", floats(64, 7)], {}), ("Gather", ["h", ints(5, -1)], {"axis": 2}), ("Reshape", ["h", ints(16, 8, 8)], {}), ("Reshape", ["h", ints(0, 0, 2, -1)], {}), ("Unsqueeze", ["h", ints(0)], {}), ("Expand", ["h", ints(1, 1, 16, 64)], {}),
    ("Transpose", ["q"], {"perm": [0, 1, 3, 2]}), ("Gemm", ["s", floats(64, 5), floats(16, 1)], {}), ("Gemm", ["s", floats(64, 5), floats(5)], {}), ("LayerNormalization", ["h", floats(64)], {}), ("Max", ["h", floats(1), floats(16, 1)], {}), ("Squeeze", ["h", ints(0)], {})]
LAST = [("Slice", ["h", ints(-1), ints(99), ints(1)], {}), ("Gather", ["h", np.int64(-1)], {"axis": 1})]
MIXED = [("the first of them", "what it makes is not of each token", ("Gather", ["h", np.int64(0)], {"axis": 1})), ("a mean", "what it makes is not of each token", ("ReduceMean", ["h", ints(1)], {})), ("a sum of all", "what it makes is not of each token", ("ReduceSum", ["h"], {"keepdims": 1})),
    ("a softmax", "it mixes tokens", ("Softmax", ["h"], {"axis": 1})), ("from the last", "it takes tokens in another order", ("Slice", ["h", ints(-1), ints(-99), ints(1), ints(-1)], {})), ("a running sum", "what it makes of several tokens is not known", ("CumSum", ["h", np.int64(1)], {})), ("turned", "what it makes is not of each token", ("Transpose", ["h"], {"perm": [0, 2, 1]})),
    ("products with each other", "it mixes tokens", ("MatMul", [floats(1, 16, 16), "h"], {})), ("one more", "what it makes is not of each token", ("Concat", ["h", floats(1, 1, 64)], {"axis": 1}))]


def check_tokens():
    nodes, constants, outputs = [("Reshape", ["h", "four"], ["q"], {}), ("Reshape", ["h", "two"], ["s"], {})], [("four", ints(1, 16, 4, 16)), ("two", ints(16, 64))], []
    for k, (op, operands, attributes, *n) in enumerate(BEHIND):
        constants += [("c%d_%d" % (k, i), v) for i, v in enumerate(operands) if not isinstance(v, str)]
        made = ["y%d_%d" % (k, i) for i in range(n[0] if n else 1)]
        nodes.append((op, [v if isinstance(v, str) else "c%d_%d" % (k, i) for i, v in enumerate(operands)], made, attributes))
        outputs += made
    onnx.save(behind(*nodes, constants=constants, outputs=outputs), t.at("behind.onnx"))
    path = t.at("behind")
    t.good("compile", t.at("behind.onnx"), "--context", "16", "--target", "c", "--whole", "-o", path)
    t.case("behind the loop: its own test", tested(path, "clang", ["-O1", *t.SANITIZE]))
    wrong = differ(path, (5, 1, 1, 8))[0]
    for k, (op, operands, attributes, *n) in enumerate(BEHIND):
        t.case("behind the loop: %s %s" % (op, [v if isinstance(v, str) else list(np.shape(v)) for v in operands]), "; ".join(w for name, w in wrong.items() if name.startswith("y%d_" % k)))
    for what, said, (op, operands, attributes) in [("the last of them", None, one) for one in LAST] + MIXED:
        onnx.save(behind((op, [v if isinstance(v, str) else "c%d" % i for i, v in enumerate(operands)], ["y"], attributes), constants=[("c%d" % i, v) for i, v in enumerate(operands) if not isinstance(v, str)]), t.at("mixed.onnx"))
        path = t.at("mixed")
        if said is None:
            t.good("compile", t.at("mixed.onnx"), "--context", "16", "--target", "c", "--whole", "-o", t.at("last"))
            t.case("tokens: %s, by %s: of each call's token its own" % (what, op), tested(t.at("last"), "gcc", ["-O1"]))
            continue
        refused("tokens: %s" % what, t.call("compile", t.at("mixed.onnx"), "--context", "16", "--target", "c", "--whole", "-o", path), path, "(%s): %s" % (op, said), "leave --whole out")


def check_again():
    model, r = Model(built("bert-tiny-mask")), np.random.default_rng(5)
    frames = [[r.integers(0, 999, (1, 32)), np.broadcast_to(np.arange(32) < n, (1, 32))] for n in (32, 9, 20)]
    first = [model(f) for f in frames]
    arena = model.arena()
    t.case("one arena for all", "" if all(np.array_equal(a, b) for f, y in zip(frames[::-1], first[::-1]) for a, b in zip(model(f, arena), y)) else "other numbers")
    path = built("bert-tiny-mask")
    subprocess.run(["gcc", "-std=c99", "-fno-pic", "-c", "-o", os.path.join(path, "alone.o"), os.path.join(path, "whole.c")], check=True)
    symbols = subprocess.run(["nm", os.path.join(path, "alone.o")], capture_output=True, text=True, check=True).stdout
    state = re.findall(r" [bBdDC] (\w+)", symbols)
    t.case("no state", str(state) if state else "")
    t.case("no malloc", "" if "malloc" not in symbols else "malloc")


def refused(name, p, path, *words):
    said = p.stderr.decode()
    t.case(name, "" if p.returncode and all(w in said for w in words) and not os.path.exists(path) else "status %d: %s" % (p.returncode, said))


def check_refused():
    path = t.at("nothing")
    refused("without C", t.call("compile", t.model("bert-tiny"), "--whole", "-o", path), path, "--whole is of C; give --target c, too")
    x = INPUTS["x"]
    near = [("GatherElements", ["x", np.zeros((2, 3, 4, 5), np.int64)], {}, "(GatherElements): C has no text for this operator"), ("Tile", ["x", ints(1, 2, 1, 1)], {}, "(Tile): C has no text for this operator"), ("Gemm", ["f", floats(150, 2), floats(2)], {"beta": .5}, "(Gemm): C has no text for a beta that is not 1"),
            ("Conv", ["w", floats(6, 4, 3, 3)], {"auto_pad": "SAME_UPPER"}, "(Conv): C has no text for auto_pad other than NOTSET"), ("Pad", ["x", ints(0, 0, 0, 1, 0, 0, 0, 1), np.float32(0)], {"mode": "reflect"}, "(Pad): C has no text for a mode that is not constant"),
            ("Pad", ["x", ints(0, 0, 0, -1, 0, 0, 0, 1), np.float32(0)], {}, "(Pad): C has no text for pads that cut"), ("ReduceMean", ["i", ints(1)], {}, "(ReduceMean): C has no text for it of whole numbers"), ("Cast", ["x"], {"to": T.DOUBLE}, "C has no text for"), ("Mod", ["x", "p"], {"fmod": 1}, "(Mod): C has no text for this operator of floats"), ("Mod", ["i", ints(3)], {"fmod": 1}, "(Mod): C has no text for a rest with the sign of what is divided")]
    nothing = ("Slice", ["x", ints(2), ints(2), ints(2)], {})
    near += [("Dropout", ["x"], {}, "(Dropout): C has no text for its result 1", 2), ("MaxPool", ["w"], {"kernel_shape": [2, 2]}, "(MaxPool): C has no text for its result 1", 2), ("LayerNormalization", ["x", floats(5)], {}, "C has no text for its result 1", 3),
             *((op, ["x", *more, "k"], {}, "(%s): C has no text for operand %d that is no constant" % (op, len(more) + 1)) for op, more in (("ReduceSum", []), ("Unsqueeze", []), ("Slice", [ints(0, 0), ints(2, 2)]), ("Slice", [ints(0, 0), ints(1, 1), ints(0, 1)])))]
    for op, operands, attributes, said, *n in near:
        model, feeds = network([(op, operands, attributes, *n)], {**INPUTS, "k": ints(1, 2)})
        where, p = whole(model, feeds, "near-" + op)
        refused("%s %s %s" % (op, [v if isinstance(v, str) else list(np.shape(v)) for v in operands], attributes or ""), p, where, said, "let the host do it")
    empty = np.zeros((0, 3), np.float32)
    for name, cases, inputs, said in (("an input of no elements", [("Relu", ["z"], {})], {"x": x, "z": empty}, "y0_0: C has no text for an output that has no elements; leave it out"), ("an output of none", [nothing], {"x": x}, "y0_0: C has no text for an output that has no elements; leave it out"),
                                      ("a sum of none", [nothing, ("ReduceSum", ["y0_0", ints(2)], {})], {"x": x}, "(ReduceSum): C has no text for operands that have no elements"),
                                      ("a product of none", [nothing, ("MatMul", ["t", "y0_0"], {})], {"x": x, "t": x}, "(MatMul): C has no text for")):
        model, feeds = network(cases, inputs)
        if len(cases) > 1: model.graph.output.pop(0)
        if "t" in inputs: model.graph.node.insert(2, helper.make_node("Slice", ["x", "c0_1", "c0_1", "three"], ["t"])), model.graph.initializer.append(numpy_helper.from_array(ints(3), "three")), model.graph.input.pop(1), feeds.pop("t")
        where, p = whole(model, feeds, name.replace(" ", "-"))
        refused(name, p, where, said)
    model, feeds = network([("Relu", ["x"], {})], {"x": x})
    path = t.at("c-unsaid")
    onnx.save(model, t.at("unsaid.onnx"))
    p = t.call("compile", t.at("unsaid.onnx"), "--target", "c", "--whole", "-o", path + "-so")
    t.case("no loop, and no words: as it stands, in a line", p.stderr.decode() if p.returncode else "" if p.stderr.count(b"so the network is written as it stands, in floats (--whole)") == 1 else "it says nothing")
    p = t.call("compile", t.at("unsaid.onnx"), "--target", "c", "-o", path + "-not")
    refused("no loop, and no --whole", p, path + "-not", "loop")
    t.case("no loop, and no --whole: what would do", "" if b"--whole writes a network that cannot be integers as it stands" in p.stderr else p.stderr.decode())
    np.savez(t.at("unsaid.npz"), **feeds)
    model, feeds = network([("Erf", ["x"], {})], {"x": x})
    onnx.save(model, t.at("erf.onnx"))
    refused("floats without --whole", t.call("compile", t.at("erf.onnx"), "--target", "c", "--inputs", t.at("unsaid.npz"), "-o", path), path, "(Erf)", "is built with --whole")
    np.savez(t.at("short.npz"), y=np.zeros(7, np.float32))
    refused("a golden array of another size", t.call("compile", t.at("unsaid.onnx"), "--target", "c", "--whole", "--inputs", t.at("unsaid.npz"), "--golden", t.at("short.npz"), "-o", path), path, "the golden array has 7 numbers, not 120")
    model, feeds = network([("Erf", ["p"], {})], {"x": x})
    onnx.save(model, t.at("small.onnx"))
    refused("an arena too small", t.call("compile", t.at("small.onnx"), "--target", "c", "--whole", "--inputs", t.at("unsaid.npz"), "--arena", "16", "-o", path), path, "p (Abs): --arena 16: the smallest part of its result takes 32 bytes", "give as much")


def check_wrong():
    path = t.at("wrong")
    model, feeds = network([("Mul", ["x", np.float32(1)], {})], {"x": INPUTS["x"]})
    onnx.save(model, t.at("wrong.onnx"))
    np.savez(t.at("wrong.npz"), **feeds)
    for off, said in (3e-5, b"MLO PASS"), (3e-4, b"MLO FAIL output 0, frame 0, number 17"), (np.nan, b"MLO FAIL output 0"):
        golden = INPUTS["x"].copy()
        golden.ravel()[17] += off * np.abs(golden).max()
        np.savez(t.at("wrong-golden.npz"), golden)
        t.good("compile", t.at("wrong.onnx"), "--target", "c", "--whole", "--inputs", t.at("wrong.npz"), "--golden", t.at("wrong-golden.npz"), "-o", path + str(off))
        p = subprocess.run(["make", "-s", "-C", path + str(off), "test", "CFLAGS=-O0"], capture_output=True)
        t.case("off by %g of the largest" % off, "" if said in p.stdout and (p.returncode == 0) == (b"PASS" in said) else p.stdout.decode() + p.stderr.decode())


t.main(check_around, check_compilers, check_floats, check_operators, check_tiled, check_alone, check_limits, check_index, check_cache, check_masks, check_tokens, check_again, check_refused, check_wrong, floor=307)
