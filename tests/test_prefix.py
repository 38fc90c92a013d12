#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention to rows of keys and values that are parameters, beside a frame's own, and sinks: memory keys, bias_k and bias_v, rows of zeros, GPT-OSS' sinks.

    python tests/test_prefix.py path/to/mlo [CHECK ...]

    kernels   ONNX Runtime and mlo run give the words of the bench's model (tests/verilog/attention.py) on the rows and what is behind them
    errors    what cannot be says so
    cores     whole cores: every word is that of mlo run and of ONNX Runtime on host/core.onnx, frames of any length, in flight together, with stalls;
              cycles are as predicted
    exports   models/prefix/ (families_prefix.py made it) become hardware, as test_families.py has it: words in Icarus, `mlo run` and ONNX Runtime, and how
              near they come to the floats
    plain     the same in plain C: its own test, every word
    near      exports of which one thing is wrong are refused, and why, or are what ONNX Runtime makes of them
    before    in a causal core later tokens change no word before, and rows change words of all"""
import itertools
import os
import subprocess
import numpy as np
import onnx
from onnx import helper, numpy_helper
import harness as t
import test_families
from graphs import session
from test_causal import Core, bench, judge, judged, model, one_kernel

MODELS = os.path.join(t.tests, "models", "prefix")


def check_kernels():
    words = 0
    for causal, sink in itertools.product((0, 1), (0, 1)):
        rng, why = bench.Rng(31 + 2 * causal + sink), ""
        for h, kvh, rows, tokens in (4, 4, 3, 9), (4, 2, 1, 7), (6, 1, 16, 12), (2, 2, 5, 1):
            c = model.config(h, 4, rows + tokens, 1, 1, kvh=kvh, causal=causal, bias=(1, 0, 4) if sink else ())
            for tq, tk in (tokens, tokens), (1, (tokens + 1) // 2):
                for key in np.ones(tk, bool), np.zeros(tk, bool), np.arange(tk) >= tk // 2, np.array([rng.chance(50) for _ in range(tk)]):
                    why = why or judged(rng, "AttentionSink" if sink else "AttentionPrefix", c, tq, tk, key, (0, 0), model.pick_bias(rng, c, False) if sink else None, rows)
                    words += tq * h * 4
        t.case("rows%s%s: ONNX Runtime and mlo run give the model's words" % (", with numbers of their own" * sink, ", causal" * causal), why)
    t.note("%d words" % words)


def check_errors():
    q = np.zeros((1, 4, 8), np.int8)
    feed = {"q": q, "k": q, "v": q, "mask": np.ones((1, 4), bool), "p": np.array([1, 1, 1, 1], np.int32)}
    rows = lambda *shape, dtype=np.int8: np.zeros(shape, dtype)
    for what, keys, values, attributes, status, words in (
            ("fewer rows of values", rows(3, 8), rows(2, 8), {}, 3, b"rows of values are [2, 8]; prefix and channels are 3 and 8"),
            ("rows of other channels", rows(3, 4), rows(3, 8), {}, 3, b"rows of keys are [3, 4]"),
            ("rows of another number than said", rows(3, 8), rows(3, 8), {"prefix": 2}, 3, b"prefix and channels are 2 and 8"),
            ("rows of other integers", rows(3, 8, dtype=np.int16), rows(3, 8), {}, 3, b"rows of keys must be int8"),
            ("rows of three dimensions", rows(1, 3, 8), rows(3, 8), {}, 3, b"rows of keys must be int8 [rows, channels]"),
            ("no rows", rows(3, 8), rows(3, 8), {"prefix": 0}, 3, b"prefix 0 is below 1")):
        f = dict(feed, keys=keys, values=values)
        np.savez(t.at("in.npz"), **f)
        m = one_kernel("AttentionPrefix", f, dict({"heads": 4, "lt": 3, "prefix": 3}, **attributes))
        r = t.call("run", t.write("kernel.onnx", m.SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        t.case(what + ": an error", "" if r.returncode == status and words in r.stderr else "status %d: %s" % (r.returncode, r.stderr.decode()))


def check_cores():
    if not t.have("cores", "iverilog"): return
    cases = [
        (Core("prefix-1", tokens=1, rows=1), 1, 2, 1, None),
        (Core("prefix-7", tokens=7, rows=3, heads=3, masked=True), 3, 2, 2, [7, 1, 4, 6]),
        (Core("prefix-causal", tokens=18, layers=3, rows=5, causal=1, masked=True), 4, 4, 2, [18, 2, 9]),
        (Core("prefix-long", tokens=6, layers=4, rows=40, heads=4, kv=2), 8, 1, 1, [6, 1]),
        (Core("prefix-shared", tokens=20, layers=3, rows=16, heads=4, kv=1, causal=1), 2, 4, 2, [20, 1, 7]),
        (Core("sink", tokens=12, layers=3, rows=1, bias=(1, 0, 5), heads=4, kv=2, masked=True), 8, 1, 2, [12, 3]),
        (Core("sink-causal", tokens=16, rows=2, bias=(1, 0, 3), causal=1), 4, 2, 1, [16, 5]),
    ]
    for core, *how in cases: t.case("core %s: words, stalls, short frames, cycles" % core.name, judge(core, *how))


def check_exports(): test_families.exports("prefix")


def check_plain():
    for name in "memory-d18-mask-d", "turned-causal-d18-none-d", "sink-d18-mask-d", "behind-d18-none-b":
        out = t.at("c-" + name)
        t.good("compile", os.path.join(MODELS, name + ".onnx"), "--target", "c", "-o", out)
        p = subprocess.run(["make", "-s", "-C", out, "test"], capture_output=True, text=True)
        t.case("plain C of %s: its test" % name, "" if p.returncode == 0 and "MLO PASS" in p.stdout else (p.stdout + p.stderr)[-400:])


# ---- near misses --------------------------------------------------------------------------------------------------

def whole(m):
    """Constants as initializers: what a change looks for."""
    for n in [n for n in m.graph.node if n.op_type == "Constant"]:
        m.graph.initializer.append(helper.make_tensor(n.output[0], n.attribute[0].t.data_type, n.attribute[0].t.dims, n.attribute[0].t.raw_data, raw=True))
        m.graph.node.remove(n)
    return m


def softmaxes(graph): return [n for n in graph.node if n.op_type == "Softmax"]


def insert(graph, at, op, inputs, array=None, **attributes):
    """A node in front of `at`, which reads its output in place of inputs[0]."""
    n = helper.make_node(op, list(inputs), ["new%d" % len(graph.node)], **attributes)
    if array is not None:
        graph.initializer.append(numpy_helper.from_array(array, n.output[0] + "_c"))
        n.input.append(n.output[0] + "_c")
    for i, name in enumerate(at.input): at.input[i] = n.output[0] if name == inputs[0] else name
    graph.node.insert(list(graph.node).index(at), n)
    return n


def adds(array):
    """The scores of every layer get this array, too."""
    def change(m):
        for n in softmaxes(m.graph): insert(m.graph, n, "Add", [n.input[0]], array)
    return change


def adds_before(array):
    """The same, before they are scaled."""
    def change(m):
        for n in [n for n in m.graph.node if n.op_type == "Mul" and any(n.input[0] in x.output and x.op_type == "MatMul" for x in m.graph.node)]: insert(m.graph, n, "Add", [n.input[0]], array)
    return change


def scales_keys(m):
    """Keys of the frame are halved, the rows beside them are not."""
    for n in [n for n in m.graph.node if n.op_type == "Concat" and n.input[0].startswith("expand")][::2]: insert(m.graph, n, "Mul", [n.input[1]], np.array(0.5, np.float32))


def one(shape, at, x):
    a = np.zeros(shape, np.float32)
    a[at] = x
    return a


def moves(order):
    """The joined keys of every layer change places, queries' and values' do not."""
    def change(m):
        for n in [n for n in m.graph.node if n.op_type == "Concat" and len(n.input) == 2 and [a.i for a in n.attribute] in ([2], [-2])][::2]:
            reader = next(x for x in m.graph.node if n.output[0] in x.input)
            insert(m.graph, reader, "Gather", [n.output[0]], np.array(order, np.int64), axis=2)
    return change


def takes_the_sink(m):
    """Behind the softmax the sink's column stays, and the first key's goes."""
    for n in softmaxes(m.graph):
        s = next(x for x in m.graph.node if n.output[0] in x.input)
        ends = [numpy_helper.to_array(i).shape for i in m.graph.initializer if i.name == s.input[1]][0]
        for k, x in (1, 1), (2, 2 ** 31 - 1):
            m.graph.initializer.append(numpy_helper.from_array(np.full(ends, x, np.int64), "%s_%d" % (n.name, k)))
            s.input[k] = "%s_%d" % (n.name, k)


def fills_with_one(m):
    """The row of zeros is one of ones."""
    m.graph.initializer.append(numpy_helper.from_array(np.array(1, np.float32), "one"))
    for n in m.graph.node:
        if n.op_type == "Pad" and any(x in n.input[0] for x in ("cat", "Concat")):
            del n.input[2:]
            n.input.append("one")


def larger(m):
    """Rows that reach farther than any key or value of a frame."""
    for i in m.graph.initializer:
        if i.name.startswith("expand"): i.CopyFrom(numpy_helper.from_array(6 * numpy_helper.to_array(i), i.name))


def more_rows(m):
    """One row more behind the repetition of heads, of each head its own."""
    rng = np.random.default_rng(5)
    for n in [n for n in m.graph.node if n.op_type == "Reshape" and n.output[0].startswith("repeat_interleave")]:
        row = rng.standard_normal((1, 4, 1, 4)).astype(np.float32)
        insert(m.graph, next(x for x in m.graph.node if n.output[0] in x.input), "Concat", [n.output[0]], row, axis=2)
    for i in [i for i in m.graph.initializer if i.data_type == onnx.TensorProto.BOOL]:
        i.CopyFrom(numpy_helper.from_array(np.pad(numpy_helper.to_array(i), ((0, 0), (0, 1))), i.name))


def near(path, out, feed):
    """The cosine of the integers and the floats, both by ONNX Runtime."""
    floats, integers = dict(feed), dict(feed)
    test_families.step(session(path), floats)
    for part in "pre", "core", "post": test_families.step(session(os.path.join(out, "host", part + ".onnx")), integers)
    y = onnx.load(path).graph.output[0].name
    return test_families.cosine([floats[y]], [integers[y]])


def check_near():
    rng = np.random.default_rng(11)
    hide = -1e9
    for what, name, change, words in (
            ("one query does not see one row", "memory-causal-d18-none-d", adds(one((9, 12), (3, 1), hide)), "hides rows"),
            ("a row's number is another one for one query", "memory-d18-none-a", adds(one((1, 1, 8, 11), (0, 0, 5, 2), 0.5)), "another number for each query"),
            ("a key of the frame gets a number", "memory-d18-none-a", adds(one((1, 1, 1, 11), (0, 0, 0, 7), 0.5)), "adds a number to keys"),
            ("all rows are hidden", "memory-d18-none-a", adds(np.array([hide] * 3 + [0] * 8, np.float32)), "hides rows"),
            ("a row has a number of each head", "memory-d18-none-a", adds(rng.normal(0, 1, (1, 2, 1, 1)).astype(np.float32) * (np.arange(11) < 3).astype(np.float32)), None),
            ("a row has a number of each head, before scores are scaled", "memory-d18-none-a", adds_before(np.array([12, 9], np.float32).reshape(1, 2, 1, 1) * (np.arange(11) < 3).astype(np.float32)), None),
            ("keys that are scaled, and rows that are not", "memory-d18-none-a", scales_keys, None),
            ("large rows beside keys that are turned", "turned-d18-none-d", larger, None),
            ("a query sees a later key", "memory-causal-d18-none-d", adds(one((9, 12), (slice(None), 11), 3e38)), ""),
            ("keys that changed places beside the rows", "memory-d18-none-a", moves([0, 1, 2, 4, 3, 5, 6, 7, 8, 9, 10]), "not laid out alike"),
            ("rows between the frame's keys", "memory-d18-none-a", moves([0, 1, 3, 2, 4, 5, 6, 7, 8, 9, 10]), "not laid out alike"),
            ("rows that changed places among themselves", "memory-d18-none-a", moves([2, 0, 1, 3, 4, 5, 6, 7, 8, 9, 10]), None),
            ("rows that reach farther than keys", "memory-d18-none-a", larger, None),
            ("a row of each head, of those that share keys", "memory-causal-d18-none-d", more_rows, "share a row (repeat_interleave)"),
            ("the sink's column that stays", "sink-d18-mask-d", takes_the_sink, ""),
            ("a row of ones for one of zeros", "behind-d18-none-b", fills_with_one, "")):
        m = whole(onnx.load(os.path.join(MODELS, name + ".onnx")))
        change(m)
        path, out = t.write("near.onnx", m.SerializeToString()), t.at("near-" + what.replace(" ", "-"))
        p = t.call("compile", path, "-o", out, text=True)
        if words is None:
            feed = {i.name: rng.integers(3, 60, [d.dim_value for d in i.type.tensor_type.shape.dim]) for i in m.graph.input}
            got = 0 if p.returncode else near(path, out, feed)
            t.case("%s: computed, cosine %.4f" % (what, got), "" if got > 0.99 else p.stderr[-300:] or "more than 0.99 was expected")
        else: t.case("%s: refused" % what, "" if p.returncode == 4 and words in p.stderr else "status %d: %s" % (p.returncode, p.stderr[-400:]))


def check_before():
    core = Core("prefix-before", tokens=12, layers=3, heads=4, kv=2, rows=4, causal=1)
    out, rng, seen = core.build(4, 2), np.random.default_rng(2), {}
    x = rng.integers(-9000, 9000, (1, 12, 8)).astype(np.int16)
    s = session(os.path.join(out, "host", "core.onnx"))
    for at in 12, 7, 1:
        y = x.copy()
        y[0, at:] = rng.integers(-9000, 9000, y[0, at:].shape)
        seen[at] = s.run(None, {s.get_inputs()[0].name: y})[0]
    for at in 7, 1:
        before, behind = np.array_equal(seen[at][0, :at], seen[12][0, :at]), np.array_equal(seen[at][0, at:], seen[12][0, at:])
        t.case("tokens from %d on change no word before, and some behind" % at, "" if before and not behind else "before the same: %s, behind the same: %s" % (before, behind))


if __name__ == "__main__":
    t.main(check_kernels, check_errors, check_cores, check_exports, check_plain, check_near, check_before, floor=55)
