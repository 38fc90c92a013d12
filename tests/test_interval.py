#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Overflow cannot happen: every kernel with the worst weights, inputs and parameters there are.

    python tests/test_interval.py path/to/mlo [NAME ...]

The judge is Python, whose integers do not overflow: it computes every intermediate as the kernels' essays define them. ONNX Runtime, mlo run
and Icarus must give its words."""
import os
import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper
import harness as t

SIZES, BITS = (1, 7, 64, 255, 3072), (8, 10, 12, 16)
BIAS = (-2 ** 31, 2 ** 31 - 1, 0)


def low(bits): return -(1 << (bits - 1))
def high(bits): return (1 << (bits - 1)) - 1
def dtype(bits): return np.int8 if bits <= 8 else np.int16


# ---- one kernel, in ONNX Runtime and in mlo ------------------------------------------------------------------------------------------

def functions():
    """The kernels' functions as mlo writes them into a model."""
    path = t.at("functions.onnx")
    if not os.path.exists(path): t.good("quantize", t.model("bert-1"), "--onnx", "-o", path)
    return onnx.load(path)


def kernel(op, feed, bits, clip=None, **attributes):
    """What ONNX Runtime and mlo run make of one kernel: two arrays."""
    base, to = functions(), helper.np_dtype_to_tensor_dtype(np.dtype(dtype(bits)))
    inputs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feed.items()]
    node = helper.make_node(op, list(feed), ["y"], domain="mlo", to=to, lo=low(clip or bits), hi=high(clip or bits), **attributes)
    graph = helper.make_graph([node], op, inputs, [helper.make_tensor_value_info("y", to, None)])
    model = helper.make_model(graph, opset_imports=base.opset_import, functions=[f for f in base.functions if f.name == op], ir_version=base.ir_version)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    want = ort.InferenceSession(model.SerializeToString(), options).run(None, feed)[0]
    np.savez(t.at("in.npz"), **feed)
    t.good("run", t.write("kernel.onnx", model.SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    with np.load(t.at("out.npz")) as z: return {"ONNX Runtime": want, "mlo run": z["y"]}


def wrong(results, want):
    want = np.array(want)
    return next(("%s: %d of %d words, the first at %s" % (who, (y.reshape(want.shape) != want).sum(), want.size, np.argwhere(y.reshape(want.shape) != want)[0])
                 for who, y in results.items() if not np.array_equal(y.reshape(want.shape), want)), "")


# ---- the judge -----------------------------------------------------------------------------------------------------------------------

def requantize(acc, m, s, bits): return max(low(bits), min(high(bits), (acc * m + (1 << (s - 1))) >> s))


def patterns(n, bits):
    """Vectors that reach what n numbers of so many bits can do."""
    lo, hi = low(bits), high(bits)
    return [[lo] * n, [hi] * n, [lo if i % 2 else hi for i in range(n)], [hi if i % 2 else lo for i in range(n)], [-hi] * n, [0] * (n - 1) + [hi], [0] * n]


def mvu_columns(k, xbits, ybits):
    """Weights, bias, multiplier, shift of each column: extremes, with each other; and a shift where nothing is clipped."""
    middle = max(1, (k * (1 << (xbits + 6)) + (1 << 31)).bit_length() + 16 - ybits)
    return [(w, b, m, s) for w in patterns(k, 8)[:5] for b in BIAS for m, s in ((32767, 1), (32767, 62), (1, 1), (32767, middle))]


def mvu(x, columns, bits):
    return [[requantize(sum(a * b for a, b in zip(row, w)) + bias, m, s, bits) for w, bias, m, s in columns] for row in x]


def check_mvu():
    for k in SIZES:
        why = ""
        for bits in BITS:
            x, columns = patterns(k, bits), mvu_columns(k, bits, 16)
            feed = {"x": np.array([x], dtype(bits)), "w": np.array([c[0] for c in columns], np.int8).T.copy(), **{n: np.array([c[i] for c in columns], np.int32) for i, n in ((1, "bias"), (2, "mult"), (3, "shift"))}}
            why = why or wrong(kernel("MVU", feed, 16), mvu(x, columns, 16))
            table = np.arange(-128, 128).astype(np.int8)
            why = why or wrong(kernel("MVUTable", dict(feed, table=table), 8), mvu(x, columns, 8))
        t.case("MVU and MVUTable, %d channels of %s bits: the worst sums with the worst biases" % (k, BITS), why)


if __name__ == "__main__":
    ort.set_default_logger_severity(4)
    t.main(check_mvu)
