#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo.Rotary: pairs of channels, turned by position.

    python tests/test_rotary.py path/to/mlo [NAME ...]

    words     ONNX Runtime and mlo run give the words of Python integers, at opsets from 13 on
    angles    a table of cosines and sines turns vectors as floats do, within what the essay says
    refusals  shapes and numbers that there is no hardware for"""
import numpy as np
import onnx
from onnx import TensorProto, helper
import harness as t
from graphs import execute

OPSETS = 13, 14, 17, 18, 21, 23


def low(bits): return -(1 << (bits - 1))
def high(bits): return (1 << (bits - 1)) - 1


# ---- the kernel alone ------------------------------------------------------------------------------------------------------------------

def functions(opset):
    """A model with the kernels' functions as mlo writes them at an opset."""
    m = onnx.load(t.model("bert-1"))
    m.opset_import[0].version = opset
    if not hasattr(functions, "made"): functions.made = {}
    if opset not in functions.made:
        path = t.at("functions-%d.onnx" % opset)
        t.good("quantize", t.write("opset-%d.onnx" % opset, m.SerializeToString()), "--onnx", "-o", path)
        functions.made[opset] = onnx.load(path)
    return functions.made[opset]


def kernel(feed, heads, bits, opset=18, **more):
    """One node, and its function, as a model."""
    base, to = functions(opset), TensorProto.INT8 if bits <= 8 else TensorProto.INT16
    node = helper.make_node("Rotary", list(feed), ["y"], domain="mlo", to=to, lo=low(bits), hi=high(bits), heads=heads, **more)
    kind = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(k, kind(v), v.shape) for k, v in feed.items()], [helper.make_tensor_value_info("y", to, None)])
    return helper.make_model(graph, opset_imports=base.opset_import, functions=[f for f in base.functions if f.name == "Rotary"], ir_version=9 if opset < 23 else base.ir_version)


def ran(model, feed):
    np.savez(t.at("in.npz"), **feed)
    t.good("run", t.write("kernel.onnx", model.SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    with np.load(t.at("out.npz")) as z: return z["y"]


def turn(x, table, m, s, heads, bits):
    """The definition, in Python's integers."""
    y = np.empty(x.shape, object)
    d = table.shape[1]
    for b, row, h, k in np.ndindex(x.shape[0], x.shape[1], heads, d // 2):
        at = h * d + 2 * k
        p, q = int(x[b, row, at]), int(x[b, row, at + 1])
        c, n = int(table[row, 2 * k]), int(table[row, 2 * k + 1])
        for i, acc in enumerate((p * c - q * n, p * n + q * c)):
            y[b, row, at + i] = max(low(bits), min(high(bits), (acc * m + (1 << (s - 1))) >> s))
    return y.astype(np.int64)


def feed_of(rng, frames, tokens, rows, heads, d, xbits, m, s, partial=False):
    """Numbers of all sizes, and the ends."""
    pick = lambda bits, shape: np.where(rng.random(shape) < 0.2, rng.choice([low(bits), high(bits), 0, 1, -1], shape), rng.integers(low(bits), high(bits) + 1, shape) >> rng.integers(0, bits, shape))
    table = pick(16, (rows, d)).astype(np.int16)
    if partial: table[:, d // 2 // 2 * 2:] = np.tile([1 << 14, 0], d)[:d - d // 2 // 2 * 2]
    return {"x": pick(xbits, (frames, tokens, heads * d)).astype(np.int8 if xbits <= 8 else np.int16), "table": table, "p": np.array([m, s], np.int32)}


def check_words():
    rng = np.random.default_rng(5)
    shapes = [(1, 1, 1, 1, 2), (1, 7, 7, 1, 8), (2, 5, 9, 3, 4), (1, 32, 32, 2, 6), (3, 1, 4, 4, 2)]     # frames, tokens, rows, heads, channels of a head
    for opset in OPSETS:
        for n, (frames, tokens, rows, heads, d) in enumerate(shapes):
            why = ""
            for xbits, bits, m, s in ((8, 8, 16384, 28), (16, 16, 32767, 29), (16, 8, 1, 1), (8, 16, 32767, 1), (16, 16, 32767, 62), (12, 8, 20011, 33), (16, 16, 0, 5), (16, 16, 16384, 28)):
                feed = feed_of(rng, frames, tokens, rows, heads, d, xbits, m, s, partial=n % 2 == 1)
                model = kernel(feed, heads, bits, opset)
                want = turn(feed["x"], feed["table"], m, s, heads, bits)
                for who, got in ("ONNX Runtime", execute(model, feed)[0]), ("mlo run", ran(model, feed)):
                    if got.shape != want.shape or got.dtype != (np.int8 if bits <= 8 else np.int16): why = why or "%s makes %s %s" % (who, got.dtype, got.shape)
                    elif not np.array_equal(got, want): why = why or "%s, %d to %d bits, M %d, S %d: %d of %d words" % (who, xbits, bits, m, s, (got != want).sum(), want.size)
            t.case("words at opset %d: %d frames of %d tokens, %d positions, %d heads of %d channels" % (opset, frames, tokens, rows, heads, d), why)


def check_angles():
    rng = np.random.default_rng(6)
    tokens, heads, d, theta = 32, 3, 16, 10000.0
    angle = np.outer(np.arange(tokens), theta ** (-np.arange(0, d, 2) / d))
    for factor in 1.0, 1.9:
        table = np.stack([np.cos(angle), np.sin(angle)], -1).reshape(tokens, d) * factor
        steps = np.round(table * 2 ** 14).astype(np.int16)
        x = rng.integers(low(16), high(16) + 1, (1, tokens, heads * d)).astype(np.int16)
        z = (x.reshape(1, tokens, heads, d // 2, 2) * [1, 1j]).sum(-1) * np.exp(1j * angle)[None, :, None] * factor
        want = np.stack([z.real, z.imag], -1).reshape(x.shape) / 4
        feed = {"x": x, "table": steps, "p": np.array([1, 16], np.int32)}
        got = execute(kernel(feed, heads, 16), feed)[0]
        most = 0.5 + 2 * 2 ** 15 * 2 ** -15 / 4
        t.case("a table of cosines and sines, times %g, turns as floats do" % factor, "" if np.abs(got - want).max() <= most else "off by %g steps, %g at most" % (np.abs(got - want).max(), most))


def check_refusals():
    rng = np.random.default_rng(7)
    good = feed_of(rng, 1, 4, 6, 2, 4, 16, 16384, 28)
    def refuses(name, word, heads=2, bits=16, **change):
        feed = dict(good, **change)
        np.savez(t.at("in.npz"), **feed)
        p = t.call("run", t.write("kernel.onnx", kernel(feed, heads, bits).SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        said = p.stderr.decode().strip()
        t.case("refused: " + name, "" if p.returncode in (3, 4) and word in said and said.count("\n") == 0 else "status %d: %s" % (p.returncode, said))
    refuses("a frame longer than the table", "a frame of 4 tokens, and a table of 3 positions", table=good["table"][:3])
    refuses("heads that do not make the channels", "3 heads of 4 channels make no token of 8", heads=3)
    refuses("no head", "0 heads of 4 channels", heads=0)
    refuses("a head of an odd number of channels", "2 heads of 3 channels make no token of 8; heads must be of an even number", table=good["table"][:, :3])
    refuses("a head of no channels", "2 heads of 0 channels", table=good["table"][:, :0])
    refuses("x of two dimensions", "takes x of 3 dimensions", x=good["x"][0])
    refuses("a table of three dimensions", "and a table of 2", table=good["table"][None])
    refuses("a multiplier of 16 bits", "multiplier 32768 is not within 0..32767", p=np.array([32768, 5], np.int32))
    refuses("a shift of 0", "shift 0 is not within 1..62", p=np.array([5, 0], np.int32))
    refuses("a table of 32 bits", "input 1 is int32; it must be INT8 or INT16", table=good["table"].astype(np.int32))
    refuses("a table of floats", "input 1 is float; it must be INT8 or INT16", table=good["table"].astype(np.float32))
    refuses("x of 32 bits", "input 0 is int32; it must be INT8 or INT16", x=good["x"].astype(np.int32))
    refuses("p of one member", "input 2 has 1 elements, needs 2", p=np.array([5], np.int32))


t.main(check_words, check_angles, check_refusals, floor=45)
