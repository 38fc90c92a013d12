#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Deeploy's networks (../shared/deeploy, where that is): run gives every one's golden outputs, or refuses it with
the reason below; microLlama rolls, and the rolled one gives them too.

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
deeploy = os.path.join(t.shared, "deeploy")
KERNELS = """Add__Regular_RQ Attention Concat Conv__DW_2D_RQ Conv__PW_2D_RQ__Regular_RQ Conv__Regular_1D_RQ
    Conv__Regular_2D_RQ GEMM__Batch_RQ GEMM__Regular_RQPerColumn Hardswish__Regular_RQ MatMul__Regular_RQ
    MaxPool__Regular_2D Pad__Regular_2D RMSNorm ReduceSum Slice Softmax__Regular iNoNorm"""
MODELS = """CCT__FP32__CCT_2_32_32_128 CCT__Int__ICCT EEGFormer MLPerf__ImageClassification MLPerf__KeywordSpotting
    Transformer_DeepQuant microLlama__FP32__microLlama1 microLlama__INT8__microLlama1
    microLlama__INT8__microLlama8_parallel miniMobileNet"""
NETWORKS = ["Kernels__Integer__" + k for k in KERNELS.split()] + ["Models__" + k for k in MODELS.split()]
REFUSED = {}                # network: what the refusal says
INTEGERS = {"RequantShift", "iSoftmax", "iRMSNorm", "iLayerNorm", "iGELU", "iHardswish", "ITAMax", "ITAPartialMax",
            "IntegerMean", "TrueIntegerDiv", "iNoNorm"}


def networks():
    if not t.beside("networks", "deeploy"): return []
    return sorted(d for d in os.listdir(deeploy) if os.path.exists(os.path.join(deeploy, d, "network.onnx")))


def arrays(path): return list(np.load(path).values())
def golden(name): return arrays(os.path.join(deeploy, name, "outputs.npz"))
def network(name): return onnx.load(os.path.join(deeploy, name, "network.onnx"))
def integers(name): return any(n.op_type in INTEGERS for n in network(name).graph.node)
def exact(name): return all(np.array_equal(a, np.round(a)) for a in golden(name))


def given(name):
    """The arrays for the graph's inputs. What Deeploy gives beyond those are initializers again."""
    g, there = network(name).graph, arrays(os.path.join(deeploy, name, "inputs.npz"))
    own = {i.name: numpy_helper.to_array(i) for i in g.initializer}
    inputs = [i.name for i in g.input if i.name not in own]
    spare = [a for a in there[len(inputs):] if not any(np.array_equal(a, w) for w in own.values())]
    assert not spare, name + " is given inputs that it does not have"
    return dict(zip(inputs, there))


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
    np.savez(at("in.npz"), **given(name))
    p = t.call("run", path, "--inputs", at("in.npz"), "--outputs", at("out.npz"), text=True)
    return p.stderr if p.returncode else compared(name, arrays(at("out.npz")), golden(name))


def in_onnxruntime(name, m):
    """'' when ONNX Runtime, with mlo's functions, gives the golden outputs."""
    s = ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])
    kinds = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}
    inputs = given(name)
    got = s.run(None, {i.name: inputs[i.name].astype(kinds[i.type]) for i in s.get_inputs()})
    return compared(name, got, golden(name))


def check_run():
    there = networks()
    if os.path.isdir(deeploy): case("the networks there are known", ", ".join(sorted(set(there) ^ set(NETWORKS))))
    for name in there:
        said, reason = ran(name, os.path.join(deeploy, name, "network.onnx")), REFUSED.get(name)
        if not reason: case("%s: run gives the golden outputs" % name, said)
        elif said.startswith("mlo: ") and reason in said: case("%s is refused" % name)
        else: case("%s is refused" % name, "not for the reason %r: %s" % (reason, said or "equal now"))


def check_functions():
    """What read makes of them is legal ONNX that ONNX Runtime runs."""
    for name in networks():
        if not integers(name) or name in REFUSED: continue
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


def no_norm(x, w, b, D, mul, n_levels): return clipped(np.floor((x * w + b) * mul / D), n_levels)


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


def i_softmax(x, coeffA, coeffB, coeffC, log2, n_levels):
    """e^x by halving: 2^-z times a parabola."""
    most = x.max(-1, keepdims=True)
    z = np.minimum(np.trunc((most - x) / log2), 31)
    e = np.floor((coeffA * (x - most + z * log2 + coeffB) ** 2 + coeffC) / 2 ** z)
    return np.floor(e * (n_levels - 1) / e.sum(-1, keepdims=True))


def integer_mean(x, axes, keepdims):
    n = int(np.prod([x.shape[a] for a in axes]))
    return np.floor((2 * x.sum(tuple(axes), keepdims=bool(keepdims)) + n) / (2 * n))


def requant(x, mul, add, div, n_levels, signed):
    by_channel = [mul.size] + [1] * (x.ndim - 2) if mul.size == x.shape[1] and x.ndim >= 3 else mul.shape
    return clipped(np.floor((x * mul.reshape(by_channel) + add.reshape(by_channel) + div / 2) / div), n_levels, signed)


def single(op, inputs, attributes, opset, domain="", dims=None, to=T.FLOAT):
    """A model of one such node: the first input from outside, dims if not its own; the domain; the output's type."""
    names = ["i%d" % i for i in range(len(inputs))]
    given = [helper.make_tensor_value_info("i0", T.FLOAT, dims or inputs[0].shape)]
    node = helper.make_node(op, names, ["y"], name="node", domain=domain, **attributes)
    own = [numpy_helper.from_array(x.astype(np.float32), n) for x, n in zip(inputs[1:], names[1:])]
    g = helper.make_graph([node], "one", given, [helper.make_tensor_value_info("y", to, None)], own)
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1)] * bool(domain)
    return helper.make_model(g, opset_imports=imports, ir_version=8)


def check_formulas():
    r = np.random.default_rng(4)
    x = r.integers(-128, 128, (2, 5, 16)).astype(float)
    tensor = lambda v: numpy_helper.from_array(np.array([v], np.float32))
    cases = [("iLayerNorm", layer_norm, [x, r.integers(-50, 50, 16).astype(float), r.integers(-900, 900, 16).astype(float)], {"D": 64, "n_levels": 256}),
             ("iNoNorm", no_norm, [x, np.round(r.uniform(-128, 127, (5, 16))), np.round(r.uniform(-9000, 9000, 16))],
              {"D": 4096, "mul": 97, "n_levels": 256}),
             ("iGELU", gelu, [x], {"b": -60, "one": 3800}), ("iGELU", gelu, [x], {"b": -200, "one": 41000}), ("iGELU", gelu, [x], {"b": 60, "one": 3800}),
             ("iSoftmax", i_softmax, [x], {"coeffA": 3, "coeffB": 40, "coeffC": 900, "log2": 22, "n_levels": 256}), ("iSoftmax", i_softmax, [x], {"coeffA": 1, "coeffB": 0, "coeffC": -2000, "log2": 9, "n_levels": 256}), ("ITAMax", ita_max, [x], {"n_levels": 256}),
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
            ("a divisor of zero", "RequantShift", [x, one, one], {**numbers, "div": tensor(0)}, "divides by zero"), ("a divisor of zero", "iRMSNorm", [x, one], {"D": 0, "n_levels": 256}, "divides by zero"),
            ("a divisor of zero", "iLayerNorm", [x, one, one], {"D": 0, "n_levels": 256}, "divides by zero"), ("a divisor of zero", "iNoNorm", [x, one, one], {"D": 0, "mul": 1, "n_levels": 256}, "divides by zero"),
            ("a divisor of zero", "TrueIntegerDiv", [x], {"Delta": 1, "eps": 0, "eta": 0, "y": 1}, "divides by zero"), ("halves of nothing", "iSoftmax", [x], {"coeffA": 1, "coeffB": 1, "coeffC": 1, "log2": 0, "n_levels": 256}, "divides by zero"),
            ("halves below nothing", "iSoftmax", [x], {"coeffA": 1, "coeffB": 1, "coeffC": 1, "log2": -2, "n_levels": 256}, "its log2 is negative"), ("a sum of zero", "iSoftmax", [x], {"coeffA": 0, "coeffB": 0, "coeffC": 0, "log2": 2, "n_levels": 256}, "divides by zero"),
            ("no levels", "ITAMax", [x], {"n_levels": 0}, "n_levels is less than 1"), ("one level", "ITAPartialMax", [x], {"n_levels": 1, "group_width": 4}, "n_levels is less than 2"), ("no group", "ITAPartialMax", [x], {"n_levels": 256, "group_width": 0}, "or group_width than 1"),
            ("levels beyond 32 bits", "ITAMax", [x], {"n_levels": 2 ** 33}, "its n_levels is 8589934592, more than 32 bits hold"), ("a number below 32 bits", "iGELU", [x], {"b": -2 ** 33, "one": 1}, "its b is -8589934592, more than 32 bits hold"),
            ("a product beyond 64 bits", "RequantShift", [x * 2.0 ** 19, one * 2.0 ** 50, one], numbers, "more than 64 bits hold")]:
        np.savez(at("one.npz"), i0=inputs[0].astype(np.float32))
        p = t.call("run", t.write("one.onnx", single(op, inputs, attributes, 13).SerializeToString()), "--inputs", at("one.npz"), "--outputs", at("out.npz"), text=True)
        case("%s of %s is refused" % (op, what), "" if p.returncode and said in p.stderr and p.stderr.count("\n") == 1 else "status %d: %s" % (p.returncode, p.stderr))


def called(model, x):
    np.savez(at("one.npz"), i0=x.astype(np.float32))
    path = t.write("one.onnx", model.SerializeToString())
    return t.call("run", path, "--inputs", at("one.npz"), "--outputs", at("out.npz"), text=True)


def tensors(**numbers): return {k: numpy_helper.from_array(np.array([v], np.float32)) for k, v in numbers.items()}


def parameters():
    """x's shape, that of mul and add, how they lie along it: as lists, in x's rank, as behind a Conv of one axis."""
    yield from (((1, 6, 9), own, (6, 1)) for own in ((6,), (6, 1), (1, 6, 1), (6, 1, 1)))
    yield from (((6, 6, 9), own, (6, 1)) for own in ((6,), (6, 1), (1, 6, 1), (6, 1, 1)))
    yield from (((2, 6, 5, 9), own, (6, 1, 1)) for own in ((6,), (6, 1, 1), (1, 6, 1, 1), (6, 1, 1, 1)))
    yield from (((2, 6, 9), own, (9,)) for own in ((9,), (1, 9), (1, 1, 9)))
    yield from (((2, 6, 9), own, ()) for own in ((), (1,), (1, 1, 1)))
    yield (7, 6), (6,), (6,)


def check_parameters():
    """RequantShift's parameters lie along channels or columns; the result has x's shape and the declared type."""
    r = np.random.default_rng(7)
    attributes = tensors(div=64, n_levels=256, signed=1)
    for shape, own, along in parameters():
        x, mul, add = (r.integers(-99, 100, s).astype(float) for s in (shape, own, own))
        y = clipped(np.floor((x * mul.reshape(along) + add.reshape(along) + 32) / 64), 256)
        assert y.shape == shape
        for domain, to in (("", T.FLOAT), ("", T.INT32), ("ai.onnx.contrib", T.FLOAT), ("ai.onnx.contrib", T.INT8)):
            name = "RequantShift of %s by %s, domain %r, to %s" % (shape, own, domain, T.DataType.Name(to))
            want = y.astype(helper.tensor_dtype_to_np_dtype(to))
            same = lambda got: "" if got.dtype == want.dtype and np.array_equal(got, want) else "differs"
            p = called(single("RequantShift", [x, mul, add], attributes, 13, domain, to=to), x)
            case(name, p.stderr or same(arrays(at("out.npz"))[0]))
            t.good("read", at("one.onnx"), "--onnx", "-o", at("read.onnx"))
            got = ort.InferenceSession(at("read.onnx")).run(None, {"i0": x.astype(np.float32)})[0]
            case(name + " in ONNX Runtime", same(got))


def check_widening():
    """Parameters that would widen x by broadcasting are an error."""
    shift, no_norm = tensors(div=64, n_levels=256, signed=1), {"D": 64, "mul": 3, "n_levels": 256}
    for op, x, w, attributes in (("RequantShift", (1, 6, 9), (5, 1, 1), shift), ("RequantShift", (1, 9), (6, 1), shift),
                                 ("RequantShift", (1, 9), (1, 1, 9), shift), ("iNoNorm", (1, 9), (4, 9), no_norm),
                                 ("iRMSNorm", (3, 9), (2, 1, 9), {"D": 64, "n_levels": 256}),
                                 ("RMSNorm", (3, 9), (2, 1, 9), {})):
        p = called(single(op, [np.ones(x), np.ones(w), np.ones(1)][:3 - ("RMS" in op)], attributes, 13), np.ones(x))
        good = p.returncode == 3 and "node (%s)" % op in p.stderr and "would broadcast" in p.stderr
        case("%s of %s by %s is refused" % (op, x, w), "" if good else "status %d: %s" % (p.returncode, p.stderr))


def check_open():
    """Six numbers lie along the channels or the columns: not used before it is known whether there are six channels."""
    x, attributes = np.ones((1, 6, 6)), tensors(div=64, n_levels=256, signed=1)
    for own in ((6,), (6, 1, 1)):
        inputs = [x, np.arange(6.0).reshape(own), np.ones(1)]
        p = called(single("RequantShift", inputs, attributes, 13, dims=["n", "length", 6]), x)
        good = p.returncode == 4 and "is unknown" in p.stderr and "--dim" in p.stderr
        why = "" if good else "status %d: %s" % (p.returncode, p.stderr)
        case("RequantShift by %s, channels open, is refused" % (own,), why)
        case("the same with --dim", t.call("read", at("one.onnx"), "--dim", "length=6", text=True).stderr)


def check_stays():
    """What is no integer where Deeploy has one, or not known, stays as it is, and a warning says which; the standard domain may be said by its name."""
    x, six, one = np.arange(12.0).reshape(1, 6, 2), np.arange(6.0), np.array([1.0])
    shift, tensor = tensors(div=64, n_levels=256, signed=1), lambda v, kind=np.float32: numpy_helper.from_array(np.array(v, kind))
    strings = helper.make_tensor("strings", T.STRING, [1], [b"64"])
    for what, op, inputs, attributes, said in [
            *(("%s as div" % name, "RequantShift", [x, six, six], {**shift, "div": v}, "its attribute div is no integer") for name, v in
              (("half a number", tensor([0.5])), ("a large number", tensor([1e17])), ("a large number below zero", tensor([-1e17])), ("no number", tensor([np.nan])), ("two numbers", tensor([64, 64])), ("a string", "64"), ("strings", strings), ("half a number alone", 0.5))),
            ("no div", "RequantShift", [x, six, six], {k: v for k, v in shift.items() if k != "div"}, "its attribute div is no integer"),
            ("an attribute more", "RequantShift", [x, six, six], {**shift, "rounds": 1}, "its attribute rounds is not known"), ("a part of a name", "RequantShift", [x, six, six], {**shift, "n_level": 1}, "its attribute n_level is not known"),
            ("an input less", "RequantShift", [x, six], shift, "it has no input 2")]:
        p = t.call("read", t.write("one.onnx", single(op, inputs, attributes, 13).SerializeToString()), "-o", at("read.json"), text=True)
        case("%s of %s stays" % (op, what), "" if not p.returncode and said in p.stderr and "node (%s)" % op in p.stderr else "status %d: %s" % (p.returncode, p.stderr))
    for op, inputs, attributes, said in (("RequantShift", [x, six, six], shift, "the shape of x or of input 1 is unknown"), ("IntegerMean", [x], {"axes": list(range(9))}, "its axes are unknown"), ("IntegerMean", [x], {}, "its axes are unknown")):
        m = single(op, inputs, attributes, 13)
        m.graph.input[0].type.tensor_type.ClearField("shape")
        p = t.call("read", t.write("one.onnx", m.SerializeToString()), "-o", at("read.json"), text=True)
        case("%s of what has no known shape stays, %s" % (op, list(attributes)), "" if not p.returncode and said in p.stderr else "status %d: %s" % (p.returncode, p.stderr))
    for what, dims in ("open", [1, "many", 2]), ("too large", [1, 2 ** 31, 2]), ("in their product too large", [2 ** 16, 2 ** 16, 2]):
        p = t.call("read", t.write("one.onnx", single("IntegerMean", [x], {"axes": [0, 1]}, 13, dims=dims).SerializeToString()), "-o", at("read.json"), text=True)
        case("IntegerMean over sizes that are %s stays" % what, "" if not p.returncode and "the size of axis 1 is unknown, or too large" in p.stderr else "status %d: %s" % (p.returncode, p.stderr))
    for name, v in ("an integer", 64), ("a float", 64.0), ("a tensor of a whole number", tensor([64], np.int64)), ("a number alone", tensor(64)):
        m = single("RequantShift", [x, six, six], {**shift, "div": v}, 13)
        m.graph.node[0].domain = "ai.onnx"
        p = called(m, x)
        want = clipped(np.floor((x * six.reshape(6, 1) + six.reshape(6, 1) + 32) / 64), 256)
        case("RequantShift of ai.onnx, its div %s" % name, p.stderr if p.returncode else "" if np.array_equal(arrays(at("out.npz"))[0], want) else "differs")
    m = single("IntegerMean", [x], {}, 13)
    p = called(m, x)
    case("IntegerMean over all axes", p.stderr if p.returncode else "" if np.array_equal(arrays(at("out.npz"))[0].ravel(), integer_mean(x, [0, 1, 2], 1).ravel()) else "differs")
    hard = helper.make_graph([helper.make_node("ITAMax", ["x"], ["s"], n_levels=256), helper.make_node("Softmax", ["s"], ["q"], name="named", axis=1), helper.make_node("Softmax", ["q"], ["r"], name="unnamed"),
                              helper.make_node("HardSwish", ["r"], ["y"])], "twins", [helper.make_tensor_value_info("x", T.FLOAT, [1, 6, 2])], [helper.make_tensor_value_info("y", T.FLOAT, [1, 6, 2])])
    for opset in 11, 13, 14:
        m = helper.make_model(hard, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        t.good("read", t.write("twins.onnx", m.SerializeToString()), "--onnx", "-o", at("twins-read.onnx"))
        made = onnx.load(at("twins-read.onnx")).graph.node
        axes = [[n.op_type, *(a.i for a in n.attribute)] for n in made if n.op_type in ("Flatten", "Softmax")]
        want = [["Flatten", 1], ["Softmax", -1], ["Softmax", -1]] if opset < 13 else [["Softmax", 1], ["Softmax"]]       # named, it is ONNX's, over all that follows
        case("Softmax and HardSwish beside Deeploy's, opset %d" % opset, "" if axes == want and [n.domain for n in made if n.op_type == "HardSwish"] == ["mlo" if opset < 14 else ""] else "%s" % axes)


def check_square():
    """RMSNorm's weight lies along the last axis, even where the axis before it is as long."""
    x, w = np.random.default_rng(0).standard_normal((1, 8, 8)).astype(np.float32), np.arange(1, 9).astype(np.float32)
    np.savez(at("one.npz"), i0=x)
    p = t.call("run", t.write("one.onnx", single("RMSNorm", [x, w], {}, 13).SerializeToString()), "--inputs", at("one.npz"), "--outputs", at("out.npz"), text=True)
    want = x / np.sqrt((x * x).mean(-1, keepdims=True)) * w
    case("RMSNorm of a square", p.stderr if p.returncode else "" if np.max(np.abs(arrays(at("out.npz"))[0] - want)) < 1e-4 * np.max(np.abs(want)) else "differs")


t.main(check_square, check_stays, check_guards, check_parameters, check_widening, check_open, check_run, check_functions,
       check_rolled, check_formulas,
       floor=330)
