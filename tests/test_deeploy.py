#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Deeploy's networks (../shared/deeploy, where that is): run gives their golden outputs, microLlama rolls, and the rolled one gives them too.

Integers have to be equal, floats within 1e-4. ONNX Runtime knows none of these operators; it runs mlo's functions for them, and agrees.
The operators that no network there has are compared with their formulas, written in numpy.
"""
import os
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper, numpy_helper
import harness as t
from harness import at, case

ort.set_default_logger_severity(4)
deeploy = os.path.join(t.root, "..", "shared", "deeploy")
INTEGERS = {"RequantShift", "iSoftmax", "iRMSNorm", "iLayerNorm", "iGELU", "iHardswish", "ITAMax", "ITAPartialMax", "IntegerMean", "TrueIntegerDiv"}


def networks():
    if not os.path.isdir(deeploy): t.skip("deeploy", "no ../shared/deeploy here"); return []
    return sorted(d for d in os.listdir(deeploy) if os.path.exists(os.path.join(deeploy, d, "network.onnx")))


def arrays(path): return list(np.load(path).values())
def golden(name): return arrays(os.path.join(deeploy, name, "outputs.npz"))
def exact(name): return any(n.op_type in INTEGERS for n in onnx.load(os.path.join(deeploy, name, "network.onnx")).graph.node)


def compared(name, got, expected):
    """'' when the outputs are the golden ones."""
    if len(got) != len(expected): return "%d outputs, not %d" % (len(got), len(expected))
    for i, (a, b) in enumerate(zip(got, expected)):
        a, b = a.astype(float), b.astype(float)
        if a.shape != b.shape: return "output %d is %s, not %s" % (i, a.shape, b.shape)
        if exact(name) and not np.array_equal(a, b): return "output %d: %d of %d differ, first by %g" % (i, np.sum(a != b), a.size, (a - b)[a != b][0])
        if not np.max(np.abs(a - b), initial=0) <= 1e-4 * np.max(np.abs(b), initial=0): return "output %d differs by %g" % (i, np.max(np.abs(a - b)))
    return ""


def ran(name, path):
    p = t.call("run", path, "--inputs", os.path.join(deeploy, name, "inputs.npz"), "--outputs", at("out.npz"), text=True)
    return p.stderr if p.returncode else compared(name, arrays(at("out.npz")), golden(name))


def in_onnxruntime(name, m):
    """'' when ONNX Runtime, with mlo's functions, gives the golden outputs."""
    s = ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])
    given = arrays(os.path.join(deeploy, name, "inputs.npz"))
    kinds = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}
    return compared(name, s.run(None, {i.name: x.astype(kinds[i.type]) for i, x in zip(s.get_inputs(), given)}), golden(name))


def check_run():
    for name in networks(): case("%s: run gives the golden outputs" % name, ran(name, os.path.join(deeploy, name, "network.onnx")))


def check_functions():
    """What read makes of them is legal ONNX that ONNX Runtime runs."""
    for name in networks():
        if not exact(name): continue
        t.good("read", os.path.join(deeploy, name, "network.onnx"), "--onnx", "-o", at("read.onnx"))
        try: case("%s: ONNX Runtime gives the golden outputs" % name, in_onnxruntime(name, onnx.load(at("read.onnx"))))
        except Exception as e: case("%s: ONNX Runtime gives the golden outputs" % name, e)


def check_rolled():
    for name in networks():
        if "microLlama" not in name: continue
        path = os.path.join(deeploy, name, "network.onnx")
        nodes = len(onnx.load(path).graph.node)
        body_nodes = (nodes - 1) // 8
        p = t.call("roll", path, "--onnx", "-o", at("rolled.onnx"), text=True)
        if p.returncode: case("%s rolls" % name, p.stderr); continue
        m = onnx.load(at("rolled.onnx"))
        scan = [n for n in m.graph.node if n.op_type == "Scan"]
        body = [a.g for a in scan[0].attribute if a.name == "body"][0]
        rounds = {p.key: p.value for p in scan[0].metadata_props}["mlo.iterations"]
        case("%s rolls to 8 iterations of %d nodes, and 1" % (name, body_nodes), "" if (len(scan), rounds, len(body.node), nodes) == (1, "8", body_nodes, 8 * body_nodes + 1) else "%d loops, %s iterations of %d of %d nodes" % (len(scan), rounds, len(body.node), nodes))
        p = t.call("check", at("rolled.onnx"), "--against", path, text=True)
        case("%s rolled is proved" % name, p.stderr if p.returncode else "")
        case("%s rolled: run gives the golden outputs" % name, ran(name, at("rolled.onnx")))
        try: case("%s rolled: ONNX Runtime gives the golden outputs" % name, in_onnxruntime(name, m))
        except Exception as e: case("%s rolled: ONNX Runtime gives the golden outputs" % name, e)


# ---- the formulas ----------------------------------------------------------------------------------------------------------------

def clipped(y, n, signed=1): return np.clip(y, -(n // 2) * signed, n - 1 - (n // 2) * signed)


def layer_norm(x, w, b, D, n_levels):
    mean = np.trunc(x.sum(-1, keepdims=True) / x.shape[-1])
    c = x - mean
    s = np.trunc((c * c).sum(-1, keepdims=True) / x.shape[-1]) + 1
    return clipped(np.floor((np.trunc(c * w / np.floor(np.sqrt(s))) + b) / D), n_levels)


def gelu(x, b, one):
    q = np.minimum(np.abs(x), -b)
    return x * np.floor((one + np.sign(x) * (one - (q + b) ** 2)) / 2)


def ita_max(x, n_levels):
    shift = np.floor((x.max(-1, keepdims=True) - x + 16) / 32)
    return np.floor(np.floor((n_levels - 1) * 256 / np.floor(256 / 2 ** shift).sum(-1, keepdims=True)) / 2 ** shift)


def ita_partial_max(x, n_levels, group_width):
    """Row by row, group by group, in Python's integers: the maximum so far, the sum so far in its steps."""
    step = lambda v, d: int(v) >> ((int(d) + 16) >> 5)
    y = np.zeros(x.shape)
    for row, out in zip(x.reshape(-1, x.shape[-1]), y.reshape(-1, x.shape[-1])):
        most, total = None, 0
        for i in range(0, len(row), group_width):
            group = row[i:i + group_width]
            new = max(group) if most is None else max(most, *group)
            total = (step(total, new - most) if most is not None else 0) + sum(step(256, new - v) for v in group)
            most = new
        out[:] = [step((n_levels // 2 - 1) * 256 // total, most - v) for v in row]
    return y


def integer_mean(x, axes, keepdims):
    n = int(np.prod([x.shape[a] for a in axes]))
    return np.floor((2 * x.sum(tuple(axes), keepdims=bool(keepdims)) + n) / (2 * n))


def requant(x, mul, add, div, n_levels, signed):
    by_channel = [mul.size] + [1] * (x.ndim - 2) if mul.size > 1 and x.ndim >= 3 else mul.shape
    return clipped(np.floor((x * mul.reshape(by_channel) + add.reshape(by_channel) + div / 2) / div), n_levels, signed)


def single(op, inputs, attributes, opset):
    """A model of one such node, the first input from outside."""
    g = helper.make_graph([helper.make_node(op, ["i%d" % i for i in range(len(inputs))], ["y"], name="node", **attributes)], "one", [helper.make_tensor_value_info("i0", T.FLOAT, inputs[0].shape)],
                          [helper.make_tensor_value_info("y", T.FLOAT, None)], [numpy_helper.from_array(x.astype(np.float32), "i%d" % i) for i, x in enumerate(inputs) if i])
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def check_formulas():
    r = np.random.default_rng(4)
    x = r.integers(-128, 128, (2, 5, 16)).astype(float)
    tensor = lambda v: numpy_helper.from_array(np.array([v], np.float32))
    cases = [("iLayerNorm", layer_norm, [x, r.integers(-50, 50, 16).astype(float), r.integers(-900, 900, 16).astype(float)], {"D": 64, "n_levels": 256}),
             ("iGELU", gelu, [x], {"b": -60, "one": 3800}), ("ITAMax", ita_max, [x], {"n_levels": 256}),
             ("RequantShift", requant, [x, r.integers(1, 900, 5).astype(float), r.integers(-9000, 9000, 5).astype(float)], {"div": 512, "n_levels": 256, "signed": 1}),
             ("RequantShift", requant, [x, np.array([77.0]), np.array([-40.0])], {"div": 128, "n_levels": 32, "signed": 0}),
             ("ITAPartialMax", ita_partial_max, [x], {"n_levels": 256, "group_width": 4}), ("ITAPartialMax", ita_partial_max, [x], {"n_levels": 256, "group_width": 7}),
             ("IntegerMean", integer_mean, [x], {"axes": [1], "keepdims": 0}), ("IntegerMean", integer_mean, [x], {"axes": [-1, 1], "keepdims": 1})]
    for op, formula, inputs, numbers in cases:
        for opset in (10, 13, 18):
            m = single(op, inputs, {k: tensor(v) if op == "RequantShift" else v for k, v in numbers.items()}, opset)
            path = t.write("one.onnx", m.SerializeToString())
            np.savez(at("one.npz"), i0=inputs[0].astype(np.float32))
            want, name = formula(*inputs, **numbers), "%s with %s at opset %d" % (op, numbers, opset)
            p = t.call("run", path, "--inputs", at("one.npz"), "--outputs", at("out.npz"), text=True)
            case(name + " is its formula", p.stderr if p.returncode else "" if np.array_equal(arrays(at("out.npz"))[0], want) else "differs")
            if op == "ITAPartialMax": continue                                  # a loop over groups: it has no function of standard operators
            t.good("read", path, "--onnx", "-o", at("read.onnx"))
            try: got = ort.InferenceSession(at("read.onnx")).run(None, {"i0": inputs[0].astype(np.float32)})[0]
            except Exception as e: case(name + " in ONNX Runtime", e); continue
            case(name + " in ONNX Runtime", "" if np.array_equal(got, want) else "differs")


def check_guards():
    """Where 64 bits would wrap, a value be cut to fit, or a divisor be zero, run refuses: what it would give is not what Deeploy means."""
    x, one = np.arange(16.0).reshape(1, 16), np.array([1.0])
    tensor = lambda v: numpy_helper.from_array(np.array([v], np.float32))
    numbers = {k: tensor(v) for k, v in {"div": 1, "n_levels": 256, "signed": 1}.items()}
    for what, op, inputs, attributes, said in [
            ("a fraction", "ITAMax", [x + 0.5], {"n_levels": 256}, "not a whole number"), ("a NaN", "ITAMax", [x * np.nan], {"n_levels": 256}, "not a whole number"),
            ("a float that may be rounded", "ITAMax", [x + 2.0 ** 25], {"n_levels": 256}, "may have been rounded"),
            ("a divisor of zero", "RequantShift", [x, one, one], {**numbers, "div": tensor(0)}, "divides by zero"),
            ("a product beyond 64 bits", "RequantShift", [x * 2.0 ** 19, one * 2.0 ** 50, one], numbers, "more than 64 bits hold")]:
        np.savez(at("one.npz"), i0=inputs[0].astype(np.float32))
        p = t.call("run", t.write("one.onnx", single(op, inputs, attributes, 13).SerializeToString()), "--inputs", at("one.npz"), "--outputs", at("out.npz"), text=True)
        case("%s of %s is refused" % (op, what), "" if p.returncode and said in p.stderr and p.stderr.count("\n") == 1 else "status %d: %s" % (p.returncode, p.stderr))


def check_square():
    """RMSNorm's weight lies along the last axis, even where the axis before it is as long."""
    x, w = np.random.default_rng(0).standard_normal((1, 8, 8)).astype(np.float32), np.arange(1, 9).astype(np.float32)
    np.savez(at("one.npz"), i0=x)
    p = t.call("run", t.write("one.onnx", single("RMSNorm", [x, w], {}, 13).SerializeToString()), "--inputs", at("one.npz"), "--outputs", at("out.npz"), text=True)
    want = x / np.sqrt((x * x).mean(-1, keepdims=True)) * w
    case("RMSNorm of a square", p.stderr if p.returncode else "" if np.max(np.abs(arrays(at("out.npz"))[0] - want)) < 1e-4 * np.max(np.abs(want)) else "differs")


t.main(check_square, check_guards, check_run, check_functions, check_rolled, check_formulas)
