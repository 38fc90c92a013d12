#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Integer models that somebody edited: what a kernel's definition allows is computed as ONNX Runtime does, all else is refused by name.

    python tests/test_edited.py path/to/mlo [NAME ...]

    kernels   a model of one kernel, one thing changed: an attribute, the type, shape or numbers of an input, an input left out
    cores     a lowered model of a whole loop, one thing changed: fold and emit refuse it, neither believes what is declared

What is allowed is said by the essay that opens each file of src/kernels. What is not is refused, whatever ONNX Runtime makes of it, which broadcasts and
wraps around."""
import copy
import os
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper
import harness as t
from graphs import attribute, body, execute, scans
from test_errors import wrong

MOST = (1 << 63) - 1


# ---- one kernel ------------------------------------------------------------------------------------------------------------------------

def i8(*shape, seed=1): return np.random.default_rng(seed).integers(-100, 101, shape).astype(np.int8)
def i16(*shape, most=30000): return np.random.default_rng(3).integers(-most, most, shape).astype(np.int16)
def i32(*values): return np.array(values, np.int32)
def i64(*values): return np.array(values, np.int64)
def all_(n, value): return np.full(n, value, np.int32)


TABLE = np.arange(-128, 128).astype(np.int8)[::-1]
CHANNELS = {"bias": all_(6, 5), "mult": all_(6, 300), "shift": all_(6, 14)}
LANES = {"bias": all_(4, 5), "mult": all_(4, 300), "shift": all_(4, 9)}
QKV = {"q": i8(2, 3, 8), "k": i8(2, 3, 8, seed=2), "v": i8(2, 3, 8, seed=3), "mask": np.array([[1, 1, 1], [1, 0, 1]], bool)}
PROBS = (100, 12, 200, 14, 3000, 20, 255)
BASE = {"MVU": ({"x": i8(1, 3, 4), "w": i8(4, 6), **CHANNELS}, {}),
        "MVUTable": ({"x": i8(1, 3, 4), "w": i8(4, 6), **CHANNELS, "table": TABLE}, {}),
        "Requant": ({"x": i8(1, 3, 4), **LANES}, {}),
        "RequantTable": ({"x": i8(1, 3, 4), **LANES, "table": TABLE}, {}),
        "Add": ({"a": i8(1, 3, 4), "b": i8(1, 3, 4, seed=2), "p": i32(100, 120, 8)}, {}),
        "Mul": ({"a": i8(1, 3, 4), "b": i8(1, 3, 4, seed=2), "p": i32(100, 12)}, {}),
        "LayerNorm": ({"x": i8(1, 3, 4), "g": all_(4, 300), "b": all_(4, 7), "p": i64(5, 12)}, {"center": 1, "groups": 1}),
        "FrameNorm": ({"x": i8(2, 3, 4), "g": i32(300, 200, 100, 50), "b": i32(1, 2, 3, 4), "p": i64(5, 12)}, {"center": 1}),
        "ExactNorm": ({"x": i8(1, 3, 4), "w": i32(3000000, -2000000, 900, 2 ** 31 - 1), "b": i32(-70000, 2, 3 * 10 ** 6, -2 ** 31), "p": i32(16)}, {"center": 1}),
        "Rotary": ({"x": i8(1, 3, 8), "table": i16(3, 4), "p": i32(200, 22)}, {"heads": 2}),
        "Place": ({"x": i8(1, 3, 4), "table": i16(5, 4, most=900), "mult": all_(4, 300), "shift": all_(4, 12)}, {}),
        "Attention": ({**QKV, "p": i32(100, 12, 200, 14)}, {"heads": 2, "kv_heads": 2, "lt": 2, "causal": 0, "band": 0}),
        "AttentionBias": ({**QKV, "p": i32(100, 12, 200, 14), "bias": i16(2, 3, 3, most=900)}, {"heads": 2, "kv_heads": 2, "lt": 2, "causal": 0, "band": 0, "bias_shift": 2}),
        "AttentionCap": ({**QKV, "p": i32(100, 12, 200, 14, 300, 5)}, {"heads": 2, "kv_heads": 2, "lt": 2, "causal": 0, "band": 0}),
        "AttentionProbs": ({**QKV, "p": i32(*PROBS)}, {"heads": 2, "kv_heads": 2, "lt": 2, "causal": 0, "band": 0}),
        "AttentionRounded": ({**QKV, "p": i32(*PROBS, 200, 14, 3)}, {"heads": 2, "kv_heads": 2, "lt": 2, "causal": 0, "band": 0}),
        "AttentionTable": ({**QKV, "p": i32(255, 200, 14, 32921, 16, 127, 900, 12), "score": np.arange(-128, 128).repeat(2).astype(np.int8), "weight": np.arange(256, 0, -1).astype(np.int32)},
                           {"heads": 2, "kv_heads": 2, "weight_bits": 9, "least_bits": 9, "hide": 2}),
        "AttentionPrefix": ({**QKV, "p": i32(100, 12, 200, 14), "keys": i8(2, 8), "values": i8(2, 8, seed=3)}, {"heads": 2, "kv_heads": 2, "lt": 3, "causal": 0, "prefix": 2}),
        "AttentionSink": ({**QKV, "p": i32(100, 12, 200, 14), "bias": i16(2, 1, 5, most=900), "keys": i8(2, 8), "values": i8(2, 8, seed=3)},
                          {"heads": 2, "kv_heads": 2, "lt": 3, "causal": 0, "bias_shift": 2, "prefix": 2}),
        "Conv": ({"x": i8(2, 7, 6), "w": i8(6, 3, 2), **CHANNELS}, {"width": 3, "top": 1, "left": 0}),
        "Replay": ({"x": i8(1, 3, 4)}, {}),
        "ArgMax": ({"x": np.int8([[[3, -1, 3, 2], [-5, -7, -5, -6], [1, 2, 3, 4]]])}, {"to": T.INT32}),
        "Best": ({"x": np.int8([[[3, -1, 3, 2], [-5, -7, -5, -6], [1, 2, 3, 4]]])}, {"to": T.INT32, "best": 3}),
        "Quantize": ({"x": np.float32([[1, -2, 30]]), "scale": np.float32(0.1)}, {}),
        "Dequantize": ({"x": i8(1, 3), "scale": np.float32(0.1)}, None)}
LOOKED = ("MVUTable", "RequantTable")     # in a table behind
WORDS = ("ArgMax", "Best")            # what they make are ids and logits
INTEGERS = [op for op in BASE if op not in ("Quantize", "Dequantize", *WORDS)]


def functions():
    """The kernels' functions as mlo writes them."""
    path = t.at("functions.onnx")
    if not os.path.exists(path): t.good("quantize", t.model("bert-1"), "--onnx", "-o", path)
    return onnx.load(path)


def one(op, attributes, inputs):
    """A model of one kernel, in a file, its inputs in another. An input that is None is left out."""
    base, attributes = functions(), dict(attributes)
    if op != "Dequantize": attributes = {"to": T.INT8, "lo": -128, "hi": 127, **attributes}
    node = helper.make_node(op, [k if v is not None else "" for k, v in inputs.items()], ["y"], name="the_kernel", domain="mlo", **{k: v for k, v in attributes.items() if v is not None})
    feed = {k: np.asarray(v) for k, v in inputs.items() if v is not None}
    ins = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feed.items()]
    graph = helper.make_graph([node], op, ins, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=base.opset_import, functions=[f for f in base.functions if f.name == op], ir_version=base.ir_version)
    np.savez(t.at("in.npz"), **feed)
    return t.write("kernel.onnx", model.SerializeToString()), feed


def run(path): return t.call("run", path, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))


def same(name, op, attributes={}, inputs={}):
    """A case: mlo run gives ONNX Runtime's words."""
    base, more = BASE[op]
    path, feed = one(op, {**(more or {}), **attributes}, {**base, **inputs})
    p = run(path)
    if p.returncode: return t.case(name, p.stderr.decode()[-300:])
    g = onnx.load(path)
    kind = T.FLOAT if op == "Dequantize" else {**(more or {}), **attributes}.get("to", T.INT8)
    g.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", kind, None))
    want = execute(g, feed)[0]
    with np.load(t.at("out.npz")) as z: got = z["y"]
    t.case(name, "" if got.dtype == want.dtype and np.array_equal(got, want) else "%s, ONNX Runtime has %s" % (got.ravel()[:8], want.ravel()[:8]))


def refused(name, op, code, mentions, attributes={}, inputs={}):
    """A case: mlo run names the kernel and says what is wrong with it."""
    base, more = BASE[op]
    path, _ = one(op, {**(more or {}), **attributes}, {**base, **inputs})
    t.case("%s: %s" % (op, name), wrong(run(path), code, ["the_kernel", *mentions]))


def check_definitions():
    """Before anything is changed, and what may be changed."""
    for op in BASE: same(op, op)
    for op in INTEGERS:
        same(op + " to 16 bits", op, {"to": T.INT16, "lo": -2000, "hi": 2000} if op not in LOOKED else {"to": T.INT16}, {"table": i16(256)} if op in LOOKED else {})
        if op not in LOOKED: same(op + " clipped on one side", op, {"lo": 3})
    same("LayerNorm without a mean", "LayerNorm", {"center": 0})
    same("LayerNorm, two in a token", "LayerNorm", {"groups": 2}, {"g": all_(2, 300), "b": all_(2, 7)})
    same("LayerNorm, two in a token, each its own", "LayerNorm", {"groups": 2}, {"g": i32(300, 200, 100, 50).reshape(2, 2), "b": i32(1, 2, 3, 4).reshape(2, 2)})
    same("FrameNorm without a mean", "FrameNorm", {"center": 0})
    same("ExactNorm without a mean", "ExactNorm", {"center": 0}, {"b": i32(0)})
    same("ExactNorm of 16 bits, by weights of 16", "ExactNorm", {"to": T.INT16, "lo": -32768, "hi": 32767}, {"x": i16(2, 5, 7), "w": i16(7), "b": i32(*range(-3, 4)), "p": i32(0)})
    same("ExactNorm by weights of 8 bits", "ExactNorm", {}, {"x": i8(4, 1), "w": i8(1), "b": i32(-5), "p": i32(31)})
    for shape in ((1, 1, 4), (3, 7, 1), (1, 8192, 4)):
        c = shape[-1]
        same("FrameNorm of %d frames of %d tokens of %d channels" % shape, "FrameNorm", {}, {"x": i8(*shape), "g": i32(*range(200, 200 + c)), "b": i32(*range(c))})
    for op in [op for op in INTEGERS if op.startswith("Attention")]:
        more = op not in ("AttentionBias", "AttentionTable", "AttentionPrefix", "AttentionSink")
        rows = lambda a: {"keys": a, "values": a[::-1]} if "prefix" in BASE[op][1] else {}
        same(op + ", heads that share keys", op, {"kv_heads": 1}, {"k": i8(2, 3, 4), "v": i8(2, 3, 4), **rows(i8(2, 4))})
        if op != "AttentionTable": same(op + ", causal", op, {"causal": 1})
        if more: same(op + ", a band", op, {"band": 1}, {"p": np.append(BASE[op][0]["p"], i32(1, 0))})
        same(op + ", operands of 16 bits", op, {}, {"q": i16(2, 3, 8, most=900), "k": i16(2, 3, 8, most=900), "v": i16(2, 3, 8), **rows(i16(2, 8, most=900))})
        same(op + ", more keys than queries", op, {}, {"q": i8(2, 2, 8), **({"bias": i16(2, 2, 3, most=900)} if op == "AttentionBias" else {})})
        same(op + ", no key counts", op, {}, {"mask": np.zeros((2, 3), bool)})
    same("AttentionBias, one for all heads and queries", "AttentionBias", {}, {"bias": i16(1, 1, 3, most=900)})
    same("AttentionBias hides", "AttentionBias", {}, {"bias": np.where(np.eye(3, dtype=bool)[None], np.int16(-32768), np.int16(5)).repeat(2, 0)})
    for hide in 0, 1: same("AttentionTable that hides %d" % hide, "AttentionTable", {"hide": hide})
    same("AttentionSink, one number for all heads", "AttentionSink", {"causal": 1}, {"bias": i16(1, 1, 5, most=900)})
    same("AttentionPrefix, more rows than keys", "AttentionPrefix", {"prefix": 9, "lt": 4, "causal": 1}, {"keys": i8(9, 8), "values": i8(9, 8)})
    same("no tokens", "MVU", {}, {"x": i8(1, 0, 4)})
    for top, left in ((0, 0), (2, 1), (1, 1)): same("Conv, a window that begins %d above and %d before" % (top, left), "Conv", {"top": top, "left": left})
    for width in (1, 7, 9, 65536): same("Conv, rows of %d" % width, "Conv", {"width": width})
    for best in (1, 2, 4): same("Best, %d of 4" % best, "Best", {"best": best})
    for op in WORDS: same(op + " of 16 bits", op, {}, {"x": i16(2, 3, 20)})
    same("Best, 16 of 20 with ties", "Best", {"best": 16}, {"x": np.int8(i8(1, 3, 20) // 30)})


def check_kernels():
    """What has no words."""
    for op in INTEGERS + ["Quantize"]:
        for to in (T.FLOAT, T.INT32, 99): refused("makes type %d" % to, op, "TYPE", ["makes .*; it must be INT8 or INT16"], {"to": to})
        for lo, hi in ((5, -5), (-128, MOST), (-MOST - 1, 127), (-32769, 0), (0, 32768)):
            refused("clips to %d..%d" % (lo, hi), op, "DATA", ["clips to %d\\.\\.%d" % (lo, hi)], {"lo": lo, "hi": hi})
    for op in INTEGERS:
        for k, (name, value) in enumerate(BASE[op][0].items()):
            floats = np.asarray(value).astype(np.float32)
            refused("%s of floats" % name, op, "TYPE", ["input %d is float" % k], inputs={name: floats})
            code, words = ("GRAPH", "has no first input") if not k else ("SHAPE", "is an input missing") if name == "w" and op.startswith("MVU") else ("GRAPH", "has no input %d" % k)
            refused("%s left out" % name, op, code, [words], inputs={name: None})
    wide = np.int32
    rows = [("MVU", "W of three dimensions", "SHAPE", ["W has 3 dimensions"], {}, {"w": i8(1, 4, 6)}),
            ("MVU", "W of 16 bits", "SHAPE", ["W is int16 \\[4, 6\\]; it must be INT8"], {}, {"w": i16(4, 6)}),
            ("MVU", "W without rows", "SHAPE", ["W is int8 \\[0, 6\\]", "a row at least"], {}, {"x": i8(1, 3, 0), "w": i8(0, 6)}),
            ("MVU", "W of other rows", "SHAPE", ["x has 4 channels, W has 5 rows"], {}, {"w": i8(5, 6)}),
            ("MVU", "x is a number", "SHAPE", ["form of its output"], {}, {"x": i8()}),
            ("MVU", "x of 32 bits", "TYPE", ["input 0 is int32; it must be INT8 or INT16"], {}, {"x": i8(1, 3, 4).astype(wide)}),
            ("MVUTable", "a table too short", "SHAPE", ["input 5 has 255 elements, needs 256"], {}, {"table": TABLE[:255]}),
            ("RequantTable", "a table too short", "SHAPE", ["input 4 has 16 elements, needs 256"], {}, {"table": TABLE[:16]}),
            ("RequantTable", "a table for another index", "SHAPE", ["input 4 has 256 elements, needs 65536"], {"lo": -32768, "hi": 32767}, {}),
            ("Requant", "x of 32 bits", "TYPE", ["input 0 is int32"], {}, {"x": i8(1, 3, 4).astype(wide)}),
            ("Requant", "an offset beyond x's width", "DATA", ["offset 128 is not within -128\\.\\.127"], {}, {"bias": all_(4, 128)}),
            ("LayerNorm", "neither with nor without a mean", "DATA", ["center is 2"], {"center": 2}, {}),
            ("LayerNorm", "groups that do not divide", "DATA", ["groups is 3", "4 channels"], {"groups": 3}, {}),
            ("LayerNorm", "no groups", "DATA", ["groups is 0"], {"groups": 0}, {}),
            ("LayerNorm", "a scale for one and a half", "SHAPE", ["its scale has 3 elements; 2 norms of 2 channels"], {"groups": 2}, {"g": all_(3, 1)}),
            ("LayerNorm", "scales of more norms", "SHAPE", ["its scale has 8 elements; 2 norms"], {"groups": 2}, {"g": all_((4, 2), 1), "b": all_(8, 1)}),
            ("LayerNorm", "scales of three dimensions", "SHAPE", ["its scale has 4 elements"], {"groups": 2}, {"g": all_((2, 2, 1), 1)}),
            ("LayerNorm", "too few offsets", "SHAPE", ["input 2 has 2 elements, needs 4"], {}, {"b": all_(2, 1)}),
            ("LayerNorm", "a scale too many", "SHAPE", ["input 1 has 5 elements, needs 4"], {}, {"g": all_(5, 1)}),
            ("LayerNorm", "no shift", "SHAPE", ["input 3 has 1 elements, needs 2"], {}, {"p": i64(5)}),
            ("LayerNorm", "no epsilon", "DATA", ["epsilon 0 is not within 1"], {}, {"p": i64(0, 12)}),
            ("LayerNorm", "a scale of 17 bits", "DATA", ["scale 32768 is not within"], {}, {"g": all_(4, 32768)}),
            ("LayerNorm", "more channels than the circuit squares", "UNSUPPORTED", ["32769 channels", "32768"], {}, {"x": i8(1, 1, 32769), "g": all_(32769, 1), "b": all_(32769, 1)}),
            ("ExactNorm", "neither with nor without a mean", "DATA", ["center is 2"], {"center": 2}, {}),
            ("ExactNorm", "an offset and no mean", "DATA", ["offset 0 is -70000", "it must be 0"], {"center": 0}, {}),
            ("ExactNorm", "a weight too few", "SHAPE", ["input 1 has 3 elements, needs 4"], {}, {"w": all_(3, 1)}),
            ("ExactNorm", "too few offsets", "SHAPE", ["input 2 has 2 elements, needs 4"], {}, {"b": all_(2, 1)}),
            ("ExactNorm", "a shift of 32", "DATA", ["shift 32 is not within 0"], {}, {"p": i32(32)}),
            ("ExactNorm", "no channels", "UNSUPPORTED", ["0 channels; the integer norm takes 1 to 32768"], {}, {"x": i8(1, 3, 0)}),
            ("ExactNorm", "more channels than the circuit sums", "UNSUPPORTED", ["32769 channels"], {}, {"x": i8(1, 32769), "w": all_(32769, 1), "b": all_(32769, 1)}),
            ("FrameNorm", "neither with nor without a mean", "DATA", ["center is 2"], {"center": 2}, {}),
            ("FrameNorm", "an x of two dimensions", "SHAPE", ["takes x of 3 dimensions", "it has 2"], {}, {"x": i8(3, 4)}),
            ("FrameNorm", "an x of four dimensions", "SHAPE", ["takes x of 3 dimensions", "it has 4"], {}, {"x": i8(1, 3, 1, 4)}),
            ("FrameNorm", "a frame without tokens", "UNSUPPORTED", ["a norm over 0 tokens of 4 channels", "1 to 32768 numbers"], {}, {"x": i8(2, 0, 4)}),
            ("FrameNorm", "a scale too few", "SHAPE", ["input 1 has 3 elements, needs 4"], {}, {"g": all_(3, 1)}),
            ("FrameNorm", "too few offsets", "SHAPE", ["input 2 has 2 elements, needs 4"], {}, {"b": all_(2, 1)}),
            ("FrameNorm", "no shift", "SHAPE", ["input 3 has 1 elements, needs 2"], {}, {"p": i64(5)}),
            ("FrameNorm", "no epsilon", "DATA", ["epsilon 0 is not within 1"], {}, {"p": i64(0, 12)}),
            ("FrameNorm", "a shift of 41", "DATA", ["shift 41 is not within 0"], {}, {"p": i64(5, 41)}),
            ("FrameNorm", "more numbers than the circuit squares", "UNSUPPORTED", ["a norm over 8193 tokens of 4 channels", "32768 numbers"], {}, {"x": i8(1, 8193, 4)}),
            ("FrameNorm", "more channels than the circuit squares", "UNSUPPORTED", ["a norm over 1 tokens of 32769 channels"], {}, {"x": i8(1, 1, 32769), "g": all_(32769, 1), "b": all_(32769, 1)}),
            ("Rotary", "an x of two dimensions", "SHAPE", ["x of 3 dimensions"], {}, {"x": i8(3, 8)}),
            ("Rotary", "a table of three", "SHAPE", ["a table of 2"], {}, {"table": i16(1, 3, 4)}),
            ("Rotary", "heads of one channel", "SHAPE", ["make no token of 8"], {"heads": 8}, {"table": i16(3, 1)}),
            ("Rotary", "heads of three channels", "SHAPE", ["make no token of 6"], {"heads": 2}, {"x": i8(1, 3, 6), "table": i16(3, 3)}),
            ("Rotary", "no heads", "SHAPE", ["0 heads"], {"heads": 0}, {}),
            ("Rotary", "more heads than channels", "SHAPE", ["heads of 4 channels"], {"heads": 1 << 62}, {}),
            ("Rotary", "fewer positions than tokens", "SHAPE", ["a frame of 3 tokens, and a table of 2"], {}, {"table": i16(2, 4)}),
            ("Rotary", "no shift", "SHAPE", ["input 2 has 1 elements"], {}, {"p": i32(200)}),
            ("Rotary", "a table of 32 bits", "TYPE", ["input 1 is int32"], {}, {"table": i16(3, 4).astype(wide)}),
            ("Place", "an x of two dimensions", "SHAPE", ["x of 3 dimensions"], {}, {"x": i8(3, 4)}),
            ("Place", "a table of three", "SHAPE", ["a table of 2"], {}, {"table": i16(1, 5, 4)}),
            ("Place", "a table of other channels", "SHAPE", ["tokens of 4 channels, and a table of 3"], {}, {"table": i16(5, 3)}),
            ("Place", "fewer positions than tokens", "SHAPE", ["a frame of 3 tokens, and a table of 2"], {}, {"table": i16(2, 4)}),
            ("Place", "a table of 32 bits", "TYPE", ["input 1 is int32"], {}, {"table": i16(5, 4).astype(wide)}),
            ("Place", "a multiplier too few", "SHAPE", ["input 2 has 3 elements, needs 4"], {}, {"mult": all_(3, 300)}),
            ("Place", "a shift too few", "SHAPE", ["input 3 has 3 elements, needs 4"], {}, {"shift": all_(3, 12)}),
            ("Attention", "q of two dimensions", "TYPE", ["input 0 must be"], {}, {"q": i8(3, 8)}),
            ("Attention", "k of 32 bits", "TYPE", ["input 1 must be"], {}, {"k": i8(2, 3, 8).astype(wide)}),
            ("Attention", "heads that do not divide", "SHAPE", ["do not make 3 heads"], {"heads": 3, "kv_heads": 3}, {}),
            ("Attention", "no heads", "SHAPE", ["do not make 0 heads"], {"heads": 0}, {}),
            ("Attention", "no heads of keys", "SHAPE", ["heads, 0 of keys"], {"kv_heads": 0}, {}),
            ("Attention", "heads shared unevenly", "SHAPE", ["4 heads, 3 of keys"], {"heads": 4, "kv_heads": 3}, {"k": i8(2, 3, 6), "v": i8(2, 3, 6)}),
            ("Attention", "more channels of values", "SHAPE", ["8, 8, 16 channels"], {}, {"v": i8(2, 3, 16)}),
            ("Attention", "more values than keys", "SHAPE", ["do not make"], {}, {"v": i8(2, 4, 8)}),
            ("Attention", "values of one frame", "SHAPE", ["2, 2, 1 frames"], {}, {"v": i8(1, 3, 8)}),
            ("Attention", "keys of one frame", "SHAPE", ["2, 1, 2 frames"], {}, {"k": i8(1, 3, 8)}),
            ("Attention", "a mask of one dimension", "SHAPE", ["the mask is bool \\[6\\]", "\\[2, 3\\]"], {}, {"mask": np.ones(6, bool)}),
            ("Attention", "a mask of one frame", "SHAPE", ["the mask is bool \\[1,3\\]"], {}, {"mask": np.ones((1, 3), bool)}),
            ("Attention", "a mask of more keys", "SHAPE", ["the mask is bool \\[2,4\\]"], {}, {"mask": np.ones((2, 4), bool)}),
            ("Attention", "a mask of numbers", "SHAPE", ["the mask is int8"], {}, {"mask": np.ones((2, 3), np.int8)}),
            ("Attention", "frames longer than an address", "DATA", ["lt 25 is not within 0\\.\\.24"], {"lt": 25}, {}),
            ("Attention", "frames of less than a token", "DATA", ["lt -1"], {"lt": -1}, {}),
            ("Attention", "a band without ends", "SHAPE", ["input 4 has 4 elements, needs 6"], {"band": 1}, {}),
            ("Attention", "a band that ends before it begins", "DATA", ["keys back -1"], {"band": 1}, {"p": i32(100, 12, 200, 14, -1, 0)}),
            ("Attention", "heads of 513 channels of 16 bits", "UNSUPPORTED", ["513 channels; up to 512"], {"heads": 1, "kv_heads": 1}, {"q": i16(2, 3, 513), "k": i8(2, 3, 513), "v": i8(2, 3, 513)}),
            ("Attention", "keys of 513 channels of 16 bits", "UNSUPPORTED", ["513 channels; up to 512"], {"heads": 1, "kv_heads": 1}, {"q": i8(2, 3, 513), "k": i16(2, 3, 513), "v": i8(2, 3, 513)}),
            ("AttentionBias", "a bias of 8 bits", "TYPE", ["the bias must be INT16"], {}, {"bias": i8(2, 3, 3)}),
            ("AttentionBias", "a bias of two dimensions", "TYPE", ["the bias must be INT16 \\[heads"], {}, {"bias": i16(3, 3)}),
            ("AttentionBias", "a bias for more heads", "SHAPE", ["shape \\[3,3,3\\] for 2 heads"], {}, {"bias": i16(3, 3, 3)}),
            ("AttentionBias", "a bias for fewer queries", "SHAPE", ["shape \\[2,2,3\\]"], {}, {"bias": i16(2, 2, 3)}),
            ("AttentionBias", "a bias for fewer keys", "SHAPE", ["shape \\[2,3,2\\]"], {}, {"bias": i16(2, 3, 2)}),
            ("AttentionBias", "a shift down", "DATA", ["bias_shift -1"], {"bias_shift": -1}, {}),
            ("AttentionBias", "a shift too far", "DATA", ["bias_shift 24 is not within 0\\.\\.23"], {"bias_shift": 24}, {}),
            ("AttentionBias", "a band as well", "UNSUPPORTED", ["a band beside a bias"], {"band": 1}, {"p": i32(100, 12, 200, 14, 1, 1)}),
            ("AttentionProbs", "a probability of 9 bits", "DATA", ["largest probability 256"], {}, {"p": i32(*PROBS[:6], 256)}),
            ("AttentionRounded", "a zero point of 9 bits", "DATA", ["zero point of scores 128"], {}, {"p": i32(*PROBS, 200, 14, 128)}),
            ("AttentionTable", "scores that fall", "DATA", ["score -128 follows 127"], {}, {"score": np.int8([-128, 127, -128] + [127] * 509)}),
            ("AttentionTable", "a table of shown keys alone", "SHAPE", ["input 5 has 256 elements, needs 512"], {}, {"score": np.int8(range(-128, 128))}),
            ("AttentionTable", "a weight of 10 bits", "DATA", ["weight 512 is not within 0\\.\\.511"], {}, {"weight": all_(256, 512)}),
            ("AttentionTable", "a weight below nothing", "DATA", ["weight -1 is not within"], {}, {"weight": all_(256, -1)}),
            ("AttentionTable", "a largest score that weighs less", "DATA", ["weight 255 of a row's largest score; by least_bits it is 256 at least"], {}, {"weight": all_(256, 255)}),
            ("AttentionTable", "weights of 19 bits", "DATA", ["weight_bits 19, least_bits 9"], {"weight_bits": 19}, {}),
            ("AttentionTable", "weights of less bits than the largest", "DATA", ["weight_bits 8, least_bits 9"], {"weight_bits": 8}, {}),
            ("AttentionTable", "hiding in a third way", "DATA", ["hide 3 is not 0, 1 or 2"], {"hide": 3}, {}),
            ("AttentionTable", "quotients of nothing", "DATA", ["largest quotient 0"], {}, {"p": i32(0, 200, 14, 32921, 16, 127, 900, 12)}),
            ("Conv", "x of two dimensions", "SHAPE", ["they have 2 and 3"], {}, {"x": i8(3, 6)}),
            ("Conv", "w of two dimensions", "SHAPE", ["they have 3 and 2"], {}, {"w": i8(6, 3)}),
            ("Conv", "w of other channels", "SHAPE", ["x has 6 channels, w 5"], {}, {"w": i8(5, 3, 2)}),
            ("Conv", "w of 16 bits", "TYPE", ["w is int16; it must be INT8"], {}, {"w": i16(6, 3, 2)}),
            *[("Conv", "rows of %d" % n, "SHAPE", ["a window of 3 x 2 over rows of width = %d" % n], {"width": n}, {}) for n in (0, -3, 65537)],
            *[("Conv", "a window of %d x %d" % d, "SHAPE", ["a window of %d x %d over rows of width = 3 tokens; each must be 1 to 65536" % d], {"top": 0, "left": 0}, {"w": np.zeros((6, *d), np.int8)}) for d in ((0, 2), (2, 0), (65537, 1), (1, 65537))],
            *[("Conv", "a token %d below and %d behind the window's corner" % d, "SHAPE", ["top = %d, left = %d in a window of 3 x 2" % d], {"top": d[0], "left": d[1]}, {}) for d in ((-1, 0), (3, 0), (0, -1), (0, 2))],
            *[("Conv", "one %s too few" % what, "SHAPE", ["has 5 elements, needs 6"], {}, {what: all_(5, 9)}) for what in CHANNELS],
            *[(op, "x of %s" % kind, "TYPE", ["input 0 is %s; it must be INT8 or INT16" % kind], {}, {"x": np.ones((1, 3, 4), dtype)}) for op in WORDS for kind, dtype in (("float", np.float32), ("int32", np.int32))],
            *[(op, "x left out", "GRAPH", ["has no first input"], {}, {"x": None}) for op in WORDS],
            *[(op, "x without channels", "SHAPE", ["x has no channels"], {}, {"x": i8(1, 3, 0)}) for op in WORDS],
            *[(op, "x is a number", "SHAPE", ["form of its output"], {}, {"x": i8()}) for op in WORDS],
            *[("Best", "%d of 20" % n, "SHAPE", ["the %d best of 20 channels" % n], {"best": n}, {"x": i8(1, 3, 20)}) for n in (0, 17, 21)],
            ("Best", "5 of 4", "SHAPE", ["the 5 best of 4 channels"], {"best": 5}, {}),
            ("Quantize", "x of integers", "TYPE", ["must be FLOAT"], {}, {"x": i8(3)}),
            ("Quantize", "a scale of doubles", "TYPE", ["must be FLOAT"], {}, {"scale": np.float64(0.1)}),
            ("Quantize", "scales, none of them", "SHAPE", ["input 1 has 0 elements"], {}, {"scale": np.zeros(0, np.float32)}),
            ("Quantize", "no scale", "GRAPH", ["has no input 1"], {}, {"scale": None}),
            ("Dequantize", "no scale", "GRAPH", ["has no input 1"], {}, {"scale": None}),
            ("Dequantize", "scales, none of them", "SHAPE", ["input 1 has 0 elements"], {}, {"scale": np.zeros(0, np.float32)}),
            ("Dequantize", "a scale of integers", "TYPE", ["scale FLOAT"], {}, {"scale": np.int8(3)}),
            ("Dequantize", "a scale of doubles", "TYPE", ["scale FLOAT"], {}, {"scale": np.float64(0.1)}),
            ("Dequantize", "x of floats", "TYPE", ["x must be of integers"], {}, {"x": np.float32([1])})]
    for op, name, code, mentions, attributes, inputs in rows: refused(name, op, code, mentions, attributes, inputs)
    for op in ("Add", "Mul"):
        for shape in ((1, 3, 1), (3, 4), (1, 4, 3), (4, 3, 1), (1, 1, 3, 4)):
            refused("operands of shapes [1,3,4] and %s" % (shape,), op, "SHAPE", ["one shape"], inputs={"b": i8(*shape)})
        for name in "ab": refused("%s of 32 bits" % name, op, "TYPE", ["is int32; it must be INT8 or INT16"], inputs={name: i8(1, 3, 4).astype(wide)})
        refused("no shift", op, "SHAPE", ["input 2 has 1 elements"], inputs={"p": i32(1)})
    limits = [("MVU", "mult", -1, "multiplier"), ("MVU", "mult", 32768, "multiplier"), ("MVU", "shift", 0, "shift"), ("MVU", "shift", 63, "shift"),
              ("Conv", "mult", 32768, "multiplier"), ("Conv", "shift", 0, "shift"), ("Requant", "mult", 32768, "multiplier"), ("Place", "mult", 32768, "multiplier"), ("Place", "shift", 0, "shift"), ("Requant", "shift", 0, "shift"), ("LayerNorm", "g", -32769, "scale"), ("FrameNorm", "g", 32768, "scale")]
    for op, name, value, what in limits:
        n = BASE[op][0][name].size
        refused("a %s of %d, the last" % (what, value), op, "DATA", ["%s %d is not within" % (what, value)], inputs={name: np.where(np.arange(n) == n - 1, value, 1).astype(np.int32)})
        refused("one %s too few" % what, op, "SHAPE", ["has %d elements, needs %d" % (n - 1, n)], inputs={name: BASE[op][0][name][:-1]})


# ---- a whole core ----------------------------------------------------------------------------------------------------------------------

class Core:
    """A lowered model, to be changed in place."""
    def __init__(self, model):
        self.model, self.scan = model, scans(model)[0]
        self.body = body(self.scan)

    def of(self, op): return next(n for n in self.body.node if n.op_type == op)

    def meta(self, op, key, value):
        """Metadata of the first node of this kind; None: without."""
        n = self.of(op)
        kept = [p for p in n.metadata_props if p.key != key]
        del n.metadata_props[:]
        n.metadata_props.extend(kept)
        if value is not None: n.metadata_props.add(key=key, value=value)

    def stack(self, op, k):
        """The constant that the loop scans for input k of the first node of this kind."""
        at = [i.name for i in self.body.input].index(self.of(op).input[k])
        return next(i for i in self.model.graph.initializer if i.name == self.scan.input[at])

    def number(self, op, k, value):
        """The first number of that, of all iterations."""
        to = self.stack(op, k)
        a = numpy_helper.to_array(to).copy()
        a[..., 0] = value
        to.CopyFrom(numpy_helper.from_array(a, to.name))

    def again(self, op, k, change):
        to = self.stack(op, k)
        to.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(to)), to.name))

    def behind(self, op, node, declared=False):
        """Another node behind the first of this kind, which all read in its place."""
        maker = self.of(op)
        for n in self.body.node: n.input[:] = [node.output[0] if i == maker.output[0] else i for i in n.input]
        node.input.append(maker.output[0])
        nodes = list(self.body.node)
        nodes.insert(nodes.index(maker) + 1, node)
        del self.body.node[:]
        self.body.node.extend(nodes)
        if declared: self.body.value_info.append(helper.make_tensor_value_info(node.output[0], T.INT16, [1, 1, 32]))

    def tap(self, op):
        self.body.output.append(helper.make_empty_tensor_value_info(self.of(op).output[0]))
        self.scan.output.append("tapped")
        self.model.graph.output.append(helper.make_empty_tensor_value_info("tapped"))

    def from_outside(self, op, k):
        """The constant becomes an input of the model."""
        old = self.stack(op, k)
        self.model.graph.input.append(helper.make_tensor_value_info(old.name, old.data_type, list(old.dims)))
        self.model.graph.initializer.remove(old)

    def declare(self, op, k, *dims):
        for i in self.body.input:
            if i.name == self.of(op).input[k]:
                for d, size in zip(i.type.tensor_type.shape.dim, dims): d.dim_value = size


def swap(n): n.input[0], n.input[1] = n.input[1], n.input[0]
def neg(): return helper.make_node("Neg", [], ["minus"], name="a_neg")


def check_cores():
    plain, shifts = ((t.good("lower", t.model("bert-1"), *more, "--onnx", "-o", t.at("lowered.onnx")), onnx.load(t.at("lowered.onnx")))[1] for more in ([], ["--scale", "pow2"]))
    both, last = ("fold", "emit"), ("emit",)
    rows = [("without a name", plain, both, "GRAPH", ["MVU", "has no name; run `mlo lower`"], lambda c: c.meta("MVU", "mlo.kernel", None)),
            ("for longer frames", plain, both, "DATA", ["Attention", "lt is 5; for frames of 1 tokens it is 0"], lambda c: setattr(attribute(c.of("Attention"), "lt"), "i", 5)),
            ("of a PE that does not divide", plain, both, "FOLDING", ["mvu_0 cannot be folded to PE=3"], lambda c: c.meta("MVU", "mlo.pe", "3")),
            ("of no PE", plain, both, "FOLDING", ["mvu_0 cannot be folded to PE=0"], lambda c: c.meta("MVU", "mlo.pe", "0")),
            ("of a PE below none", plain, both, "FOLDING", ["cannot be folded to PE=-2"], lambda c: c.meta("LayerNorm", "mlo.pe", "-2")),
            ("of no SIMD", plain, both, "FOLDING", ["mvu_0 cannot be folded to PE=[0-9]+ SIMD=0"], lambda c: c.meta("MVU", "mlo.simd", "0")),
            ("that scans nothing", plain, both, "SHAPE", ["Scan"], lambda c: setattr(attribute(c.scan, "num_scan_inputs"), "i", 0)),
            ("that scans more than it has", plain, both, "GRAPH", ["Scan", "99"], lambda c: setattr(attribute(c.scan, "num_scan_inputs"), "i", 99)),
            ("that scans what it carries", plain, both, "SHAPE", ["Scan"], lambda c: setattr(attribute(c.scan, "num_scan_inputs"), "i", len(c.scan.input))),
            ("that carries a parameter", plain, both, "SHAPE", ["Scan"], lambda c: setattr(attribute(c.scan, "num_scan_inputs"), "i", len(c.scan.input) - 2)),
            ("without a body", plain, both, "GRAPH", ["Scan", "body"], lambda c: c.scan.attribute.remove(attribute(c.scan, "body"))),
            ("with a result of each iteration", plain, both, "UNSUPPORTED", ["1 values leave every layer"], lambda c: c.tap("Attention")),
            ("with an operator between kernels", plain, both, "UNSUPPORTED", ["a_neg", "there is no hardware for what makes 'minus'"], lambda c: c.behind("LayerNorm", neg())),
            ("with an operator between kernels, declared", plain, both, "UNSUPPORTED", ["a_neg", "there is no hardware"], lambda c: c.behind("LayerNorm", neg(), True)),
            ("with a kernel that nobody knows", plain, both, "UNSUPPORTED", ["no hardware for what makes"], lambda c: setattr(c.of("MVU"), "op_type", "MVUX")),
            ("whose kernel lacks its last input", plain, both, "GRAPH", ["MVU", "has 4 inputs, needs 5"], lambda c: c.of("MVU").input.pop()),
            ("whose kernel lacks an input by name", plain, both, "SHAPE", ["LayerNorm", "input 3, '', has no known shape"], lambda c: c.of("LayerNorm").input.__setitem__(3, "")),
            ("that reads what nobody makes", plain, both, "GRAPH", ["MVU", "ghost"], lambda c: c.of("MVU").input.__setitem__(2, "ghost")),
            ("of x and W exchanged", plain, both, "SHAPE", ["MVU", "W has 3 dimensions"], lambda c: swap(c.of("MVU"))),
            ("of a norm to 8 bits", plain, both, "TYPE", ["LayerNorm", "int16", "int8"], lambda c: setattr(attribute(c.of("LayerNorm"), "to"), "i", T.INT8)),
            ("split along tokens", plain, both, "SHAPE", ["Split"], lambda c: setattr(attribute(c.of("Split"), "axis"), "i", 1)),
            ("that declares weights of no size", plain, both, "SHAPE", ["\\[0,0\\]", "\\[32,96\\]"], lambda c: c.declare("MVU", 1, 0, 0)),
            ("with a parameter of three times the iterations", plain, both, "SHAPE", ["has 6 iterations, others 2"], lambda c: c.again("MVU", 3, lambda a: np.concatenate([a] * 3))),
            ("with a parameter of floats", plain, both, "TYPE", ["int32", "float"], lambda c: c.again("MVU", 2, lambda a: a.astype(np.float32))),
            ("with a parameter that is an input of the model", plain, last, "UNSUPPORTED", ["comes from a model input"], lambda c: c.from_outside("MVU", 2)),
            ("with a negative multiplier", plain, last, "DATA", ["MVU", "multiplier -1 is not within"], lambda c: c.number("MVU", 3, -1)),
            ("with no shift", plain, last, "DATA", ["MVU", "shift 0 is not within"], lambda c: c.number("MVU", 4, 0)),
            ("with a negative score multiplier", plain, last, "DATA", ["Attention", "score multiplier -3"], lambda c: c.number("Attention", 4, -3)),
            ("of weights of fewer bits than there are", plain, last, "DATA", ["MVU", "does not fit 7 bits"], lambda c: c.meta("MVU", "mlo.weight_bits", "7")),
            ("of shifts, with a multiplier of 3", shifts, last, "DATA", ["multiplier 3 is no power of two up to 16384"], lambda c: c.number("MVU", 3, 3)),
            ("of shifts, with a multiplier of 0", shifts, last, "DATA", ["multiplier 0 is no power of two"], lambda c: c.number("MVU", 3, 0)),
            ("of shifts, with a multiplier of 2^15", shifts, last, "DATA", ["multiplier 32768 is no(t within| power)"], lambda c: c.number("MVU", 3, 32768)),
            ("of shifts, with more than 48 places", shifts, last, "DATA", ["shift 60 of multiplier 1; 48 places"], lambda c: (c.number("MVU", 3, 1), c.number("MVU", 4, 60))),
            ("of shifts, with a sum's multiplier of 3", shifts, last, "DATA", ["Add", "multiplier 3 is no power"], lambda c: c.number("Add", 2, 3))]
    for name, base, verbs, code, mentions, change in rows:
        core = Core(copy.deepcopy(base))
        change(core)
        path = t.write("core.onnx", core.model.SerializeToString())
        for verb in verbs: t.case("a core %s: %s" % (name, verb), wrong(t.call(verb, path, "-o", t.at("never")), code, mentions))


def check_left_out():
    """A core whose norm does not say that it takes off the mean is the core that says it."""
    t.good("lower", t.model("bert-1"), "--onnx", "-o", t.at("lowered.onnx"))
    model, made = onnx.load(t.at("lowered.onnx")), []
    for left in False, True:
        for n in body(scans(model)[0]).node:
            if left and n.op_type == "LayerNorm": n.attribute.remove(attribute(n, "center"))
        folder = t.at("left" if left else "said")
        t.good("emit", t.write("core.onnx", model.SerializeToString()), "-o", folder)
        made.append([t.read(os.path.join(folder, name)) for name in ("intermediates.json", "rtl/mlo_core.v", "params.hex")])
    t.case("LayerNorm without center", "" if made[0] == made[1] and b"(sum x)^2" in made[0][0] else "another core")


if __name__ == "__main__": t.main(check_definitions, check_kernels, check_cores, check_left_out, floor=606)
