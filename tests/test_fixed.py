#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fixed point: widths of weights, operands and the residual stream; scales that are powers of two; MASE's q_config.

    python tests/test_fixed.py path/to/mlo [NAME ...]        Icarus, Yosys

Judges: ONNX Runtime executes the functions in the models that mlo writes, Icarus the Verilog; numpy says what integers and scales have to be,
from the source model's floats and the config alone."""
import json
import os
import re
import subprocess
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import harness as t
from graphs import session, tap

WIDTHS = (2, 4, 8), (3, 5, 9), (4, 8, 12), (8, 12, 16), (8, 16, 16)         # of weights, operands, the residual stream
FLAGS = {"%d-bit weights, %d-bit operands, residual %d" % w: ["--weights", str(w[0]), "--activations", str(w[1]), "--residual", str(w[2])] for w in WIDTHS}
FLAGS["powers of two"] = ["--scale", "pow2"]
FLAGS["powers of two, 4-bit weights, 6-bit operands, residual 10"] = ["--scale", "pow2", "--weights", "4", "--activations", "6", "--residual", "10"]


def compile_(model, flags, name, fold="4"):
    path = t.at("build-" + re.sub("[^a-z0-9]+", "-", name))
    if not os.path.exists(path): t.good("compile", model, *flags, "--pe", fold, "--simd", fold, "-o", path)
    return path


def stream(path): return json.loads(t.read(os.path.join(path, "manifest.json")))["stream"]


def feeds(path, n, rng):
    """Inputs of a core within the width of its stream: random ones, then extremes."""
    hi = 2 ** (stream(path)["bits"] - 1) - 1
    ins = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in onnx.load(os.path.join(path, "host/core.onnx")).graph.input}
    name = next(k for k in ins if k != "mlo_mask")
    xs = [rng.integers(-hi - 1, hi + 1, ins[name]) if k % 2 else np.clip(rng.normal(0, hi / 4, ins[name]), -hi - 1, hi) for k in range(n)]
    xs += [np.full(ins[name], v) for v in (-hi - 1, hi, 0)]
    made = [{name: x.astype(np.int16)} for x in xs]
    for f in made:
        if "mlo_mask" in ins: f["mlo_mask"] = rng.random(ins["mlo_mask"]) < 0.7
    return made


def run(path, feed):
    np.savez(t.at("in.npz"), **feed)
    t.good("run", path, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    with np.load(t.at("out.npz")) as z: return [z[k] for k in z.files]


def agree(path, n, rng):
    """'' when ONNX Runtime and mlo run agree about a core, for every input."""
    core = os.path.join(path, "host/core.onnx")
    s, seen = session(core), set()
    hi = 2 ** (stream(path)["bits"] - 1) - 1
    for k, feed in enumerate(feeds(path, n, rng)):
        want, got = s.run(None, feed)[0], run(core, feed)[0]
        if not np.array_equal(want, got): return "input %d: %d of %d words differ" % (k, (want != got).sum(), want.size)
        if want.max() > hi or want.min() < -hi - 1: return "input %d: %d..%d is beyond the stream's width" % (k, want.min(), want.max())
        seen.add(want.tobytes())
    return "" if len(seen) >= n else "only %d different outputs" % len(seen)


def simulate(path, feed):
    """'' when Icarus gives the words of `feed`. What it compares with is mlo's, which `agree` has held to ONNX Runtime's."""
    np.savez(t.at("sim.npz"), **feed)
    p = t.call("sim", path, "--inputs", t.at("sim.npz"), timeout=600)
    ok = p.returncode == 0 and json.loads(p.stdout)["pass"] is True
    return "" if ok else "status %d: %s" % (p.returncode, p.stderr.decode())


def body(model): return next(a.g for n in model.graph.node if n.op_type == "Scan" for a in n.attribute if a.name == "body")


def kernels(model, *names): return [n for n in body(model).node if n.domain == "mlo" and n.op_type in names]


def meta(node, key, otherwise=None): return next((p.value for p in node.metadata_props if p.key == key), otherwise)


def stack(model, name):
    """The initializer [layers, ..] behind a per-iteration parameter of the loop's body."""
    loop = next(n for n in model.graph.node if n.op_type == "Scan")
    outer = loop.input[[i.name for i in body(model).input].index(name)]
    return numpy_helper.to_array(next(i for i in model.graph.initializer if i.name == outer))


def values(model, names, feed):
    """Values of the loop's body, stacked over iterations, in ONNX Runtime."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    loop = next(n for n in model.graph.node if n.op_type == "Scan")
    tap(model, loop, names)
    return dict(zip(names, session(model.SerializeToString()).run(["tap." + n for n in names], feed)))


# ---- widths ---------------------------------------------------------------------------------------------------------------------------

def check_bits():
    """ONNX Runtime, mlo run and Icarus at several widths: all of them in two layers of 32 channels, bert-tiny in Icarus at the last, because it takes its time."""
    small, slow = t.write("small.onnx", encoder(2, 32, 64, 4, 2).SerializeToString()), list(FLAGS)[-1:]
    for what, flags in FLAGS.items():
        path = compile_(t.model("bert-tiny"), flags, what)
        t.case("ONNX Runtime and mlo run give the same bits: bert-tiny, " + what, agree(path, 3, np.random.default_rng(3)))
        simulated = [("two small layers", compile_(small, flags, "small " + what))] + [("bert-tiny", path)] * (what in slow)
        for name, path in simulated:
            if t.have("Icarus: %s, %s" % (name, what), "iverilog"): t.case("Icarus gives the same bits: %s, %s" % (name, what), agree(path, 1, np.random.default_rng(5)) or simulate(path, feeds(path, 1, np.random.default_rng(4))[0]))


def check_ranges():
    """What the options promise: integers within their range that use it, parameters streamed at their width."""
    for (w, a, r), (what, flags) in zip(WIDTHS, FLAGS.items()):
        path, top = compile_(t.model("bert-tiny"), flags, what), 2 ** (w - 1) - 1
        core = onnx.load(os.path.join(path, "host/core.onnx"))
        # `quantize` has a node for each projection still; its inputs are the source's
        t.good("quantize", t.model("bert-tiny"), *flags, "--onnx", "-o", t.at("q.onnx"))
        q = onnx.load(t.at("q.onnx"))
        mvus = kernels(q, "MVU", "MVUTable")
        names = [n.input[1] for n in mvus] + [n.input[0] for n in mvus] + [n.output[0] for n in kernels(q, "LayerNorm")]
        v = values(q, sorted(set(names)), {i.name: np.ones([d.dim_value for d in i.type.tensor_type.shape.dim], np.int64) for i in q.graph.input})
        # two's complement has one more below 0, which 3 to 7 bits use: of 2 it is worse, of 8 not worth it
        least, least_all = -top - (2 < w < 8), [v[n.input[1]].min() for n in mvus]
        ends = {max(v[n.input[1]].max(), -v[n.input[1]].astype(int).min() - (2 < w < 8)) for n in mvus}
        t.case("weights are within %d to %d, and some are there" % (least, top), "" if ends == {top} and min(least_all) == least else "%s, %s" % (ends, least_all))
        wide = [n for n in mvus if v[n.input[0]].max() > 2 ** (a - 1) - 1 or v[n.input[0]].min() < -2 ** (a - 1)]
        t.case("operands of %d bits" % a, "" if not wide else wide[0].input[0])
        far = max(np.abs(v[n.output[0]].astype(int)).max() for n in kernels(q, "LayerNorm"))
        t.case("a residual stream of %d bits" % r, "" if 2 ** (r - 3) <= far < 2 ** (r - 1) and stream(path)["bits"] == r else "%d, stream of %d" % (far, stream(path)["bits"]))
        words = [d["word_bits"] for d in json.loads(t.read(os.path.join(path, "manifest.json")))["descriptors"] if d["port"] == "s_axis_w"]
        t.case("weights are streamed with %d bits" % w, "" if words and set(words) == {16 * w} and len(kernels(core, "MVU", "MVUTable")) == len(words) else str(words))


def check_refusals():
    for flags, say in ((["--weights", "1"], "2 to 8"), (["--weights", "9"], "2 to 8"), (["--activations", "3"], "4 to 16"), (["--residual", "17"], "8 to 16"),
                       (["--residual", "x"], "8 to 16"), (["--scale", "pow3"], "pow2")):
        p = t.call("quantize", t.model("bert-tiny"), *flags)
        t.case("refused: " + " ".join(flags), "" if p.returncode == 2 and say.encode() in p.stderr else "status %d: %s" % (p.returncode, p.stderr.decode()))
    path = compile_(t.model("bert-tiny"), FLAGS["powers of two"], "powers of two")
    for key, name, put, say in (("mult", "MVU", 3, "no power of two"), ("add", "Add", 3, "no power of two"), ("shift", "Requant", 60, "48 places")):
        t.good("fold", t.model("bert-tiny"), *FLAGS["powers of two"], "--onnx", "-o", t.at("f.onnx"))
        m = onnx.load(t.at("f.onnx"))
        loop = next(n for n in m.graph.node if n.op_type == "Scan")
        node = kernels(m, name)[-1]
        at = {"mult": 3, "add": 2, "shift": 3}[key]
        outer = loop.input[[i.name for i in body(m).input].index(node.input[at])]
        tensor = next(i for i in m.graph.initializer if i.name == outer)
        a = numpy_helper.to_array(tensor).copy()
        a[0].flat[0] = put
        tensor.CopyFrom(numpy_helper.from_array(a, tensor.name))
        p = t.call("emit", t.write("spoiled.onnx", m.SerializeToString()), "-o", t.at("spoiled"))
        t.case("emit refuses what has no hardware without multipliers: " + key, "" if p.returncode == 3 and say.encode() in p.stderr else "status %d: %s" % (p.returncode, p.stderr.decode()))


# ---- powers of two ----------------------------------------------------------------------------------------------------------------------

def is_pow2(x): return np.all(np.asarray(x) > 0) and np.all(np.frexp(np.asarray(x, np.float64))[0] == 0.5)


def check_pow2():
    t.good("quantize", t.model("bert-tiny"), "--scale", "pow2", "--onnx", "-o", t.at("pow2.onnx"))
    m = onnx.load(t.at("pow2.onnx"))
    scales = {n.output[0]: np.array(meta(n, "mlo.scale").split(), np.float32) for n in body(m).node if meta(n, "mlo.scale")}
    scales.update((n.input[1], stack(m, n.input[1])) for n in body(m).node if n.op_type == "QuantizeLinear")
    scales.update((n.input[1], stack(m, n.input[1])) for n in body(m).node if n.op_type == "Mul")
    bad = [k for k, v in scales.items() if not is_pow2(v)]
    t.case("every scale is a power of two: %d of values, weights and shapes" % len(scales), ", ".join(bad))
    words = [(stack(m, n.input[at]), stack(m, n.input[at + 1])) for n in kernels(m, "MVU", "MVUTable", "Requant") for at in [2 if n.op_type == "Requant" else 3]]
    t.case("every multiplier is 1, or for a shift to the left a power of two", "" if all(((x == 1) | (is_pow2(x) & (s == 1))).all() and (s >= 1).all() for x, s in words) else str([np.unique(x) for x, s in words]))
    adds = [stack(m, n.input[2])[:, :2] for n in kernels(m, "Add")]
    t.case("and a power of two in sums", "" if all(is_pow2(x) for x in adds) else str(adds))
    t.good("quantize", t.model("bert-tiny"), "--onnx", "-o", t.at("real.onnx"))
    exact, rng = session(t.model("bert-tiny")), np.random.default_rng(5)
    feed = {i.name: (np.ones(i.shape, np.int64) if "mask" in i.name else rng.integers(0, 300, i.shape)) for i in exact.get_inputs()}
    want = exact.run(None, feed)[0].ravel()
    cosine = [float(want @ y / np.sqrt((want @ want) * (y @ y))) for y in [session(t.at(p)).run(None, feed)[0].ravel() for p in ("real.onnx", "pow2.onnx")]]
    t.note("bert-tiny: cosine %.5f with real scales, %.5f with powers of two" % tuple(cosine))
    t.case("powers of two are the model, too", "" if cosine[1] > 0.995 else "cosine %.4f" % cosine[1])


# ---- MASE's q_config ------------------------------------------------------------------------------------------------------------------------

def encoder(layers=3, hidden=96, inner=384, tokens=4, heads=4, seed=0):
    """An encoder as exporters write it, with weights that 3 bits of fraction can tell from zero."""
    rng, nodes, inits = np.random.default_rng(seed), [], []

    def init(name, a):
        if not any(i.name == name for i in inits): inits.append(numpy_helper.from_array(np.ascontiguousarray(a), name))
        return name

    def node(op, inputs, name=None, **attributes):
        out = name or "%s_%d" % (op.lower(), len(nodes))
        nodes.append(helper.make_node(op, inputs, [out], name=out, **attributes))
        return out

    def linear(x, name, n, k): return node("Add", [node("MatMul", [x, init(name + ".weight", rng.normal(0, 1.5 / np.sqrt(n), (n, k)).astype(np.float32))]), init(name + ".bias", rng.normal(0, 0.3, k).astype(np.float32))], name)
    def norm(x, name): return node("LayerNormalization", [x, init(name + ".weight", rng.uniform(0.5, 1.5, hidden).astype(np.float32)), init(name + ".bias", rng.normal(0, 0.2, hidden).astype(np.float32))], name, axis=-1, epsilon=1e-5)
    def shaped(x, *dims): return node("Reshape", [x, init("shape" + "_".join(map(str, dims)), np.array(dims, np.int64))])
    def number(x): return init("number_%g" % x, np.array(x, np.float32))

    x = "x"
    for i in range(layers):
        p = "layer.%d." % i
        split = lambda name, perm: node("Transpose", [shaped(linear(x, p + name, hidden, hidden), 1, tokens, heads, hidden // heads)], perm=perm)
        scores = node("Div", [node("MatMul", [split("query", [0, 2, 1, 3]), split("key", [0, 2, 3, 1])]), number(np.sqrt(hidden / heads))])
        mixed = node("MatMul", [node("Softmax", [scores], axis=-1), split("value", [0, 2, 1, 3])])
        x = norm(node("Add", [linear(shaped(node("Transpose", [mixed], perm=[0, 2, 1, 3]), 1, tokens, hidden), p + "out", hidden, hidden), x]), p + "norm1")
        h = linear(x, p + "up", hidden, inner)
        h = node("Mul", [node("Mul", [h, node("Add", [node("Erf", [node("Div", [h, number(np.sqrt(2))])]), number(1)])]), number(0.5)])
        x = norm(node("Add", [linear(h, p + "down", inner, hidden), x]), p + "norm2")
    g = helper.make_graph(nodes, "encoder", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, tokens, hidden])], [helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, tokens, hidden])], inits)
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def fixed(width=8, frac=3, **more):
    c = {"name": "integer"}
    for part in ("data_in", "weight", "bias", "data_out"): c[part + "_width"], c[part + "_frac_width"] = width, frac
    return dict(c, **more)


def everywhere(**entries): return dict({"by": "type", "default": {"config": {"name": None}}}, **{k: {"config": v} for k, v in entries.items()})


def written(name, config): return t.write(name, json.dumps(config).encode())


def tutorial():
    """The case of MASE's tutorial: width 8, fraction 3, everywhere."""
    return t.write("tutorial.onnx", encoder().SerializeToString()), written("tutorial.json", {"by": "type", "default": {"config": fixed()}})


def rounded(x, width, frac): return np.clip(np.rint(x.astype(np.float64) * 2.0 ** frac), -2 ** (width - 1), 2 ** (width - 1) - 1)


def layers_of(model, name): return np.stack([numpy_helper.to_array(next(i for i in model.graph.initializer if i.name == "layer.%d.%s" % (k, name))) for k in range(3)])


def check_tutorial():
    model, config = tutorial()
    source = onnx.load(model)
    t.good("quantize", model, "--q-config", config, "--onnx", "-o", t.at("tutorial-q.onnx"))
    q = onnx.load(t.at("tutorial-q.onnx"))
    why = ["", "", "", ""]
    v = values(q, [n.input[1] for n in kernels(q, "MVU", "MVUTable")], {"x": np.zeros((1, 4, 96), np.float32)})
    for n, name in zip(kernels(q, "MVU", "MVUTable"), ("query", "key", "value", "out", "up", "down")):
        if not np.array_equal(v[n.input[1]], rounded(layers_of(source, name + ".weight"), 8, 3)): why[0] = why[0] or name
        if not np.array_equal(stack(q, n.input[2]), rounded(layers_of(source, name + ".bias"), 8, 3) * 8): why[1] = why[1] or name    # 6 bits of fraction in the sum
        if not ((stack(q, n.input[3]) == 1).all() and (stack(q, n.input[4]) == 3).all()): why[2] = why[2] or name
    made = [n for n in body(q).node if n.domain == "mlo"]
    for n in made:
        if set(meta(n, "mlo.scale").split()) != {"0.125"} or n.op_type == "Requant": why[3] = why[3] or "%s: %s" % (n.output[0], meta(n, "mlo.scale"))
    for what, w in zip(("weights are those of numpy", "biases, too, aligned to the accumulator", "requantization is a shift by 3", "every value has fraction 3, and none needs another form"), why): t.case("tutorial: " + what, w)
    table = next(n for n in kernels(q, "MVUTable"))
    x = np.arange(-128, 128) / 8
    gelu = session(helper.make_model(helper.make_graph([helper.make_node("Gelu", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [256])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [256])]),
                                     opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()).run(None, {"x": x.astype(np.float32)})[0]
    t.case("tutorial: the table is GELU over 8 bits", "" if np.array_equal(stack(q, table.input[5])[0], rounded(gelu, 8, 3)) else "it is not")
    path = compile_(model, ["--q-config", config], "tutorial")
    t.case("tutorial: ONNX Runtime and mlo run give the same bits", agree(path, 4, np.random.default_rng(1)))
    if t.have("tutorial: Icarus", "iverilog"): t.case("tutorial: Icarus gives the same bits", simulate(path, feeds(path, 1, np.random.default_rng(2))[0]))
    # the float model with the weights that 3 bits leave of it: what else there is is the rounding of activations
    for i in source.graph.initializer:
        if i.name.startswith("layer"): i.CopyFrom(numpy_helper.from_array((rounded(numpy_helper.to_array(i), 8, 3) / 8).astype(np.float32), i.name))
    feed = {"x": np.random.default_rng(6).normal(0, 1, (1, 4, 96)).astype(np.float32)}
    exact, coarse, got = [s.run(None, feed)[0].ravel() for s in (session(model), session(source.SerializeToString()), session(t.at("tutorial-q.onnx")))]
    cosine = lambda a, b: float(a @ b / np.sqrt((a @ a) * (b @ b)))
    t.note("tutorial: cosine %.4f to the float model, %.4f to it with rounded weights, and that to the former %.4f" % (cosine(got, exact), cosine(got, coarse), cosine(coarse, exact)))
    t.case("tutorial: it is the model with the rounded weights", "" if cosine(got, coarse) > 0.95 else "cosine %.4f" % cosine(got, coarse))


def multipliers(path):
    """$mul cells by module, of the whole core, in Yosys."""
    p = subprocess.run(["yosys", "-p", "read_verilog rtl/*.v; hierarchy -top mlo_top; proc; opt_clean; stat"], cwd=path, capture_output=True, text=True, timeout=600)
    found, module = {}, None
    for line in p.stdout.splitlines():
        m = re.match(r"=== (.*) ===", line)
        if m: module = "design" if m.group(1) == "design hierarchy" else m.group(1)
        m = re.match(r"\s+\$mul\s+(\d+)", line) or re.match(r"\s+(\d+)\s+\$mul\b", line)
        if m: found[module] = int(m.group(1))
        elif module: found.setdefault(module, 0)
    return found


def owner(module):
    """mlo_requantize of $paramod$0123..\\mlo_requantize, or of $paramod\\mlo_requantize\\ABITS=.."""
    return next((w for w in module.split("\\")[::-1] if w.startswith("mlo_")), module)


def check_multipliers():
    """Yosys finds no multiplier in a requantizer of the tutorial's case; with real scales it does."""
    if not t.have("multipliers", "yosys"): return
    model, config = tutorial()
    for what, flags, none in ("real scales", [], False), ("fixed point", ["--q-config", config], True):
        path = compile_(model, flags, "tutorial" if none else "tutorial real")
        found, by = multipliers(path), {}
        for k, n in found.items(): by.setdefault(owner(k), []).append(n)
        top = t.read(os.path.join(path, "rtl/mlo_core.v")).decode()
        shifts = len(re.findall(r"\.SHIFT\(1\)", top))
        t.note("%s: $mul cells of each variant of a module: %s" % (what, ", ".join("%s %s" % (k, sorted(v)) for k, v in sorted(by.items()) if sum(v))))
        # one variant of mlo_requantize is attention's: it multiplies (in two halves) with 1 / the sum of the row's exponentials, which no scale makes a power of two
        quantizers = sorted(by["mlo_requantize"])
        if none: t.case("no multiplier in a requantizer: " + what, "" if shifts == 6 and sum(by["mlo_add"]) == 0 and sum(by["mlo_mvu"]) == 0 and "mlo_requant" not in by and sum(n > 0 for n in quantizers) == 1 and len(quantizers) > 1 else "%s, %d units without" % (by, shifts))
        else: t.case("and there are some with " + what, "" if shifts == 0 and min(by["mlo_add"]) > 0 and min(quantizers) > 0 else str(by))


def check_config():
    """By type, by name, parts of it, widths that differ; and what is refused."""
    model, _ = tutorial()
    cases = {"weights of 4 bits, sums of 6 bits": everywhere(linear=dict(fixed(6, 2), weight_width=4, weight_frac_width=2), matmul={"name": "integer", "data_in_width": 6, "data_in_frac_width": 2, "data_out_width": 6, "data_out_frac_width": 2},
                                                             gelu={"name": "integer", "data_in_width": 6, "data_in_frac_width": 2, "data_out_width": 6, "data_out_frac_width": 2}, add=fixed_data(6, 2), layer_norm=fixed_data(6, 2)),
             "linear layers alone": everywhere(linear={k: v for k, v in fixed(8, 4).items() if "out" not in k}),
             "one node": dict(by="name", **{"layer.0.up": {"config": {"name": "integer", "weight_width": 3, "weight_frac_width": 2}}})}
    for what, config in cases.items():
        path = compile_(model, ["--q-config", written("c.json", config)], "config " + what)
        t.case("q_config, %s: ONNX Runtime and mlo run give the same bits" % what, agree(path, 2, np.random.default_rng(1)))
        if t.have("q_config, %s: Icarus" % what, "iverilog"): t.case("q_config, %s: Icarus gives the same bits" % what, simulate(path, feeds(path, 1, np.random.default_rng(2))[0]))
    t.good("quantize", model, "--q-config", written("c.json", cases["one node"]), "--onnx", "-o", t.at("one.onnx"))
    m = onnx.load(t.at("one.onnx"))
    bits = {n.output[0]: meta(n, "mlo.weight_bits") for n in kernels(m, "MVU", "MVUTable")}
    w = next(n for n in kernels(m, "MVUTable"))
    got = values(m, [w.input[1]], {"x": np.zeros((1, 4, 96), np.float32)})[w.input[1]]
    shape = next((stack(m, n.input[1]) for n in body(m).node if n.op_type == "Mul" and n.output[0] == next(x.input[0] for x in body(m).node if x.op_type == "QuantizeLinear" and x.output[0].startswith(w.input[1][:-3]))), 1)
    t.case("q_config by name fixes that node alone", "" if sorted(map(str, bits.values())) == ["3"] + ["None"] * 5 and np.array_equal(got, rounded(layers_of(onnx.load(model), "up.weight") * shape, 3, 2)) else str(bits))
    for name in "layers_0_a", "layers.0.a", "model_layers_0_a":          # as torch.fx and torch call the module; one stands for all layers
        t.good("quantize", t.model("mlp-res"), "--q-config", written("c.json", dict(by="name", **{name: {"config": {"name": "integer", "weight_width": 3, "weight_frac_width": 2}}})), "--onnx", "-o", t.at("one.onnx"))
        bits = [meta(n, "mlo.weight_bits") for n in kernels(onnx.load(t.at("one.onnx")), "MVU", "MVUTable")]
        t.case("q_config by a module's name, %s" % name, "" if bits == ["3", None] else str(bits))


def fixed_data(width, frac): return {k: v for k, v in fixed(width, frac).items() if k.startswith(("name", "data"))}


def check_config_refusals():
    model, config = tutorial()
    linear = fixed()
    cases = {"not JSON": (b"{", "JSON object", 3), "no by": ({"linear": {"config": linear}}, '"by"', 3), "by regex": (dict(everywhere(), by="regex_name"), "regex_name", 3),
             "an unknown type": (everywhere(lineer=linear), "lineer", 3), "an unknown node": (dict(by="name", nobody={"config": linear}), "nobody", 3),
             "an unknown key": (everywhere(linear=dict(linear, data_in_exponent_width=3)), "data_in_exponent_width", 3),
             "an unknown arithmetic": (everywhere(linear=dict(linear, name="block_fp")), "block_fp", 4), "a width without a fraction": (everywhere(linear={"name": "integer", "weight_width": 8}), "weight_frac_width", 3),
             "a width of 9 for weights": (everywhere(linear=dict(linear, weight_width=9)), "9 bits", 4), "a width that is no number": (everywhere(linear=dict(linear, bias_width=[8])), "bias_width", 3),
             "weights of an add": (everywhere(add=fixed()), "weight_width", 4), "rounding down": (everywhere(linear=dict(linear, floor=True)), "floor", 4),
             "a contradiction": (everywhere(linear=fixed(8, 3), gelu=fixed_data(8, 4)), "contradicts itself", 4), "two widths of the residual stream": (everywhere(layer_norm=fixed_data(8, 3), add=fixed_data(9, 3)), "contradicts itself", 4),
             "more than JSON": (json.dumps(everywhere(linear=linear)).encode() + b" {}", "JSON object", 3), "a list": ([], "JSON object", 3), "by a number": (dict(everywhere(), by=4), '"by"', 3),
             "an entry that is a number": ({"by": "type", "linear": 8}, 'is not {"config"', 3), "an entry without a config": ({"by": "type", "linear": linear}, 'is not {"config"', 3),
             "a config that is a number": ({"by": "type", "linear": {"config": 8}}, 'is not {"config"', 3), "an entry with more": ({"by": "type", "linear": {"config": linear, "more": 1}}, 'is not {"config"', 3),
             "a config without a name": (everywhere(linear={k: v for k, v in linear.items() if k != "name"}), '"name" of the q_config is missing', 4), "a name that is a number": (everywhere(linear=dict(linear, name=8)), '"name" of the q_config is missing', 4),
             "a fraction without a width": (everywhere(linear={"name": "integer", "weight_frac_width": 8}), '"weight_frac_width" without "weight_width"', 3),
             "a width of one bit": (everywhere(linear=dict(linear, weight_width=1)), '"weight_width" of the q_config is no whole number from 2 to 32', 3), "a width of 33 bits": (everywhere(linear=dict(linear, data_in_width=33)), "from 2 to 32", 3),
             "a width of half a bit": (everywhere(linear=dict(linear, data_out_width=2.5)), "from 2 to 32", 3), "a fraction of 33 bits": (everywhere(linear=dict(linear, bias_frac_width=33)), "from -32 to 32", 3),
             "a fraction of -33 bits": (everywhere(linear=dict(linear, bias_frac_width=-33)), "from -32 to 32", 3), "a part that is no number's": (everywhere(linear=dict(linear, weight_size=3)), '"weight_size" of the q_config is not known', 3),
             "the root of a norm": (everywhere(layer_norm=dict(linear, isqrt_in_width=8)), "exact inside", 3), "rounding by a word": (everywhere(linear=dict(linear, floor="no")), '"floor"', 4),
             "a node without a name": ({"by": "name", "": {"config": linear}}, "names a node that the loop does not have", 3), "half of a node's name": ({"by": "name", "ayer.0.up": {"config": linear}}, "names a node", 3),
             "a default that is a number": (dict(everywhere(), default=8), 'is not {"config"', 3),
             "a shift too far to the left": (everywhere(linear=dict(fixed(8, 3), data_in_frac_width=-8, weight_frac_width=-6)), "to the left", 4)}
    for what, (c, say, status) in cases.items():
        p = t.call("quantize", model, "--q-config", t.write("bad.json", c) if isinstance(c, bytes) else written("bad.json", c))
        t.case("q_config refused: " + what, "" if p.returncode == status and say.encode() in p.stderr.splitlines()[-1] else "status %d: %s" % (p.returncode, p.stderr.decode()))
    plain = t.good("quantize", model, "--scale", "pow2")
    for what, c, words in (("nothing", {"by": "type"}, b""), ("null", {"by": "name", "default": {"config": {"name": None}}}, b""), ("a bypass", everywhere(linear=dict(linear, bypass=True)), b""),
                           ("kinds that no loop has", {"by": "type", "conv2d": {"config": linear}, "batch_norm2d": {"config": linear}}, b"batch_norm2d, of which the loop has none")):
        p = t.call("quantize", model, "--q-config", written("c.json", c))
        t.case("q_config fixes nothing: " + what, "" if p.returncode == 0 and p.stdout == plain and words in p.stderr else "status %d: %s" % (p.returncode, p.stderr.decode()))
    p = t.call("quantize", model, "--q-config", config, "--scale", "real")
    t.case("q_config refused: beside --scale real", "" if p.returncode == 2 and b"--scale real" in p.stderr else p.stderr.decode() or "it says nothing")


if __name__ == "__main__":
    t.main(check_bits, check_ranges, check_refusals, check_pow2, check_tutorial, check_multipliers, check_config, check_config_refusals,
           floor=103)
