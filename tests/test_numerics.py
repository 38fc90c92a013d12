#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Numbers: floats equal ONNX Runtime's, integers are one definition however they are executed, and the integer model is the model.

    python tests/test_numerics.py path/to/mlo [NAME ...]        no simulator; tests/test_bits.py holds the executions to the same words

Judges are ONNX Runtime, which executes the functions that mlo writes into its models, and numpy, which knows the kernels' essays only."""
import json
import logging
import os
import re
import numpy as np
import onnx
import onnxruntime as ort
import onnxruntime.quantization
from onnx import TensorProto, helper, numpy_helper
import graphs
import harness as t

# every encoder: flags it needs. whisper-tiny has two loops; the first is its encoder
ENCODERS = {"bert-tiny": [], "bert-tiny-mask": [], "bert-tiny-dynamic": ["--dim", "seq=32"], "bert-tiny-external": [], "bert-tiny-shared-biases": [],
            "bert-12-torchscript": [], "vit-tiny": [], "whisper-tiny": ["--loop", "loop"], "mlp-res": []}
BEFORE_QUANTIZE = lambda flags: flags if flags[:1] == ["--dim"] else []
I16 = np.iinfo(np.int16)


# ---- executing -----------------------------------------------------------------------------------------------------------------------

def session(model, plain=False):
    """An ONNX Runtime session. plain: no rewriting, so that two models with the same nodes do the same float operations."""
    if isinstance(model, str): model = onnx.load(model)             # ONNX Runtime itself cannot infer shapes that lie in external data
    return graphs.session(model, "DISABLE_ALL" if plain else "ENABLE_ALL")


def give(model, name):
    """Makes a value one of the model's outputs."""
    if name not in {o.name for o in model.graph.output}: model.graph.output.append(onnx.ValueInfoProto(name=name))


def outputs(s, feed):
    names = [o.name for o in s.get_outputs()]
    return dict(zip(names, s.run(names, {i.name: feed[i.name] for i in s.get_inputs()})))


def run(path, feed, *flags):
    """`mlo run` on one set of inputs."""
    np.savez(t.at("in.npz"), **feed)
    t.good("run", path, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"), *flags)
    with np.load(t.at("out.npz")) as z: return {k: z[k] for k in z.files}


def differ(got, want, tolerance=None):
    """'' or the first output that differs; exactly, or by more than a relative difference (max|a-b| / max|b|)."""
    if got.keys() != want.keys(): return "outputs %s, expected %s" % (sorted(got), sorted(want))
    for k in want:
        a, b = got[k], want[k]
        if a.shape != b.shape or a.dtype != b.dtype: return "%s is %s %s, expected %s %s" % (k, a.dtype, a.shape, b.dtype, b.shape)
        if tolerance is None and not np.array_equal(a, b): return "%s: %d of %d words differ, the first at %s" % (k, (a != b).sum(), a.size, np.argwhere(a != b)[0])
        if tolerance is not None and np.abs(a - b).max() > tolerance * np.abs(b).max(): return "%s: relative difference %.2g" % (k, np.abs(a - b).max() / np.abs(b).max())
    return ""


def samples(name, n, seed):
    """n sets of inputs of a model, as the exports take them."""
    with np.load(t.calibration(name, n, seed)) as z: return [{k: z[k][i:i + 1] for k in z.files} for i in range(n)]


def made(stage, name, flags=(), calibrate=True):
    """The model after a stage, as an .onnx file."""
    path = t.at("%s-%s.onnx" % (name, stage))
    if not os.path.exists(path): t.good(stage, t.model(name), *flags, *(["--calib", t.calibration(name, 16)] if calibrate else []), "--onnx", "-o", path)
    return path


def built(name):
    """A build directory of a model, with the calibration of `made`."""
    path = t.at("build-" + name)
    if not os.path.exists(path): t.good("compile", t.model(name), *ENCODERS.get(name, []), "--calib", t.calibration(name, 16), "-o", path)
    return path


# ---- stages (tests/test_bits.py holds the executions to each other) ----------------------------------------------------------------------

def check_stages():
    for name in "bert-tiny", "bert-tiny-mask", "vit-tiny", "whisper-tiny", "bert-60":
        flags, why = ENCODERS.get(name, []), ""
        whole = {stage: session(made(stage, name, flags), plain=True) for stage in ("quantize", "lower", "fold")}
        for feed in samples(name, 4, 5):
            want = outputs(whole["quantize"], feed)
            for stage in "lower", "fold": why = why or differ(outputs(whole[stage], feed), want)
        t.case("quantized, lowered and folded models give the same bits: " + name, why)


# ---- it is the model -------------------------------------------------------------------------------------------------------------------

def body(loop): return next(a.g for a in loop.attribute if a.name == "body")


def loops(model): return [n for n in model.graph.node if n.op_type == "Scan"]


def core_loop(model): return next(n for n in loops(model) if any(b.domain == "mlo" for b in body(n).node))


def sublayers(loop):
    """What goes into residual adds: the values that matrix-vector units make."""
    made_by = {o: n for n in body(loop).node for o in n.output}
    adds = [n for n in body(loop).node if (n.domain, n.op_type) == ("mlo", "Add")]
    return [i for n in adds for i in n.input[:2] if i in made_by and made_by[i].op_type.startswith("MVU")]


def stack(model, loop, name):
    """The initializer behind a per-iteration parameter of the body."""
    outer = loop.input[[i.name for i in body(loop).input].index(name)]
    return next(i for i in model.graph.initializer if i.name == outer)


def cosine(a, b):
    a, b = np.asarray(a, np.float64).ravel(), np.asarray(b, np.float64).ravel()
    return float(a @ b / max(np.sqrt((a @ a) * (b @ b)), 1e-300))


def layer_by_layer(model, loop):
    """Every iteration gets its state from a new input, `states` [iterations, ..]: no layer's error reaches another."""
    b = body(loop)
    state = b.input[0].name
    b.input.append(helper.make_tensor_value_info("state", TensorProto.INT16, None))
    for n in b.node:
        for i, x in enumerate(n.input):
            if x == state: n.input[i] = "state"
    loop.input.append("states")
    model.graph.input.append(helper.make_tensor_value_info("states", TensorProto.INT16, None))
    next(a for a in loop.attribute if a.name == "num_scan_inputs").i += 1


def scales(loop):
    """value -> its scale in each iteration."""
    return {n.output[0]: np.array(p.value.split(), np.float32) for n in body(loop).node for p in n.metadata_props if p.key == "mlo.scale"}


class Judge:
    """A float model, and samples; holds integer models against them."""
    def __init__(self, name, flags, n=8):
        self.feeds = samples(name, n, 77)
        ints, exact = onnx.load(made("quantize", name, flags)), onnx.load(made("roll", name, BEFORE_QUANTIZE(flags), False))
        loop = core_loop(ints)
        self.names, twin = sublayers(loop), next(n for n in loops(exact) if n.name == loop.name)
        state, leaving = body(loop).input[0].name, body(loop).output[0].name
        body(twin).node.append(helper.make_node("Identity", [body(twin).input[0].name], [state + ".in"]))
        graphs.tap(exact, twin, self.names + [state + ".in"])
        self.result = twin.output[0]
        give(exact, self.result)
        s = session(exact)
        self.want = [outputs(s, f) for f in self.feeds]
        self.layers = len(self.want[0]["tap." + self.names[0]])
        # what each layer gets in the float model, as the integers it would be
        first = next(n for n in ints.graph.node if loop.input[0] in n.output)
        scale = np.concatenate([numpy_helper.to_array(next(i for i in ints.graph.initializer if i.name == first.input[1])).reshape(1), scales(loop)[leaving][:-1]])
        for w in self.want:
            x = w.pop("tap." + state + ".in")
            w["states"] = np.clip(np.rint(x / scale.reshape([-1] + [1] * (x.ndim - 1))), I16.min, I16.max).astype(np.int16)

    def __call__(self, ints, n=None):
        """The worst cosines, of any sample: of a sublayer in any layer, of one in a layer by itself, of a whole output."""
        whole, alone = onnx.ModelProto(), onnx.ModelProto()
        whole.CopyFrom(ints)
        alone.CopyFrom(ints)
        layer_by_layer(alone, core_loop(alone))
        worst, results = [1.0, 1.0, 1.0], {}
        for m in whole, alone: graphs.tap(m, core_loop(m), self.names)
        give(whole, self.result)
        whole, alone = session(whole), session(alone)
        for f, w in list(zip(self.feeds, self.want))[:n]:
            a, b = outputs(whole, f), outputs(alone, dict(f, states=w["states"]))
            for i in range(self.layers):
                for k in self.names: worst[0], worst[1] = min(worst[0], cosine(w["tap." + k][i], a["tap." + k][i])), min(worst[1], cosine(w["tap." + k][i], b["tap." + k][i]))
            for k in a:
                if not k.startswith("tap."): results.setdefault(k, []).append((w[k], a[k]))
        for pairs in results.values():
            # the direction of two logits is luck: outputs that small are judged together, and the loop's result by itself
            if pairs[0][0].size < 16: pairs = [tuple(map(np.array, zip(*pairs)))]
            worst[2] = min([worst[2]] + [cosine(w, a) for w, a in pairs])
        return worst


# Errors add up over layers, so sublayers behind several others may be at 0.98. By itself a layer has to be better: at 0.98 nobody would
# notice a ReLU where a GELU should be (0.988 in the BERTs here).
LIMITS = 0.985, 0.998, 0.99


def passes(worst): return all(w >= l for w, l in zip(worst, LIMITS))


def text(worst): return "a sublayer %.4f, by itself %.4f, an output %.4f" % tuple(worst)


def edit(tensor, rows, change):
    a = numpy_helper.to_array(tensor).copy()
    for r in rows: a[r] = change(a[r])
    tensor.CopyFrom(numpy_helper.from_array(a, tensor.name))


def relu(table):
    """A GELU's table made a ReLU's. GELU(x) = x where x is large, so the last entries tell the line; and 0 where x is small."""
    t, far = table.astype(np.float64), len(table) // 16
    return np.rint(np.maximum(t[-1] - (t[-1] - t[-1 - far]) / far * np.arange(len(t))[::-1], t[0])).astype(table.dtype)


def sabotages(model):
    """What is done -> the tensor of the integer model, and how a layer's row of it changes."""
    loop, found = core_loop(model), {}
    for n in body(loop).node:
        if (n.domain, n.op_type) == ("mlo", "Attention"):
            p = stack(model, loop, n.input[4])
            found["attention zeroed"] = p, lambda v: v * np.array([1, 1, 0, 1], v.dtype)
            found["softmax uniform"] = p, lambda v: v * np.array([0, 1, 1, 1], v.dtype)
        if (n.domain, n.op_type) == ("mlo", "MVUTable"): found["GELU a ReLU"] = stack(model, loop, n.input[5]), relu
    return found


def check_model():
    for name, flags in ENCODERS.items():
        ints, judge = onnx.load(made("quantize", name, flags)), Judge(name, flags)
        worst = judge(ints)
        t.note("%-24s %d sublayers x %2d layers: cosine >= %.4f; layers by themselves >= %.4f; whole output >= %.4f" % (name, len(judge.names), judge.layers, *worst))
        t.case("it is the model: " + name, "" if passes(worst) else text(worst))
        if name == "mlp-res": continue                     # no attention and a real ReLU: nothing below applies
        lame, whats = [], sorted(sabotages(ints))
        for what in whats:
            for where, rows in ("everywhere", range(judge.layers)), ("in the first layer", [0]):
                m = onnx.ModelProto()
                m.CopyFrom(ints)
                tensor, change = sabotages(m)[what]
                edit(tensor, rows, change)
                worst = judge(m, 2)
                t.note("%-24s %s %s: %s" % ("", what, where, text(worst)))
                if passes(worst): lame.append("%s %s" % (what, where))
        t.case("and a broken one is noticed: " + name, "these are not: " + ", ".join(lame) if lame else "" if len(whats) == 3 else "found only " + str(whats))


def check_silence():
    """What is 0 for every input has no noise of its own: the report has no dB of it, in the layer where it is so."""
    m = onnx.load(t.model("bert-tiny"))
    weights = [i for i in m.graph.initializer if tuple(i.dims) == (64, 256) or i.name.endswith("intermediate.dense.bias")]
    for kind in (lambda i: len(i.dims) == 2), (lambda i: ".layer.0." in i.name):           # the first layer's
        i = next(i for i in weights if kind(i))
        i.CopyFrom(numpy_helper.from_array(np.zeros(i.dims, np.float32), i.name))
    t.good("quantize", t.write("silent.onnx", m.SerializeToString()), "--report", t.at("silent.json"), "-o", t.at("x.json"))
    said = {v["name"]: v["rounding_db"] for v in json.loads(t.read(t.at("silent.json")))["quantize"]["values"]}
    none = {name: [x is None for x in db] for name, db in said.items() if None in db}
    t.case("rounding of what is always 0", "" if none == {"gelu": [True, False]} else str(none))


def faint(op, rng, stream=False, channels=96, tokens=12, layers=4):
    """x + norm(x W) in each layer, where x W is far below the root of the norm's epsilon: the norm brings up what it makes of it. stream: x + norm(x) W, where
    x is: what goes from layer to layer."""
    nodes, held, x = [], [], "x"
    for i in range(layers):
        w, g, b = (5e-4 / (1 + i), (10, 1), 90) if stream else (3e-5 / (1 + i), (400 * (1 + i), 80), 9)
        for name, a in ("w", w * rng.standard_normal((channels, channels))), ("g", g[0] + g[1] * rng.standard_normal(channels)), ("b", rng.standard_normal(channels) / b):
            held.append(numpy_helper.from_array(a.astype(np.float32), "%s%d" % (name, i)))
        weights = ["g%d" % i, "b%d" % i] if op == "LayerNormalization" else ["g%d" % i]
        first, second = ("n%d" % i, "p%d" % i) if stream else ("p%d" % i, "n%d" % i)
        product = helper.make_node("MatMul", [first if stream else x, "w%d" % i], ["p%d" % i], name="/layer.%d/product" % i)
        norm = helper.make_node(op, [x if stream else first, *weights], ["n%d" % i], name="/layer.%d/norm" % i, axis=-1, epsilon=1e-3)
        nodes += [*((norm, product) if stream else (product, norm)), helper.make_node("Add", [x, second], ["x%d" % i], name="/layer.%d/sum" % i)]
        x = "x%d" % i
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, tokens, channels]) for name in ("x", x)]
    return helper.make_model(helper.make_graph(nodes, "faint", info[:1], info[1:], held), opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def check_faint():
    """Norms of what is nearly nothing: epsilon is more than the variance, and in squares of fine steps more than a word holds."""
    rng = np.random.default_rng(2)
    for stream, scale, op in [(*kind, op) for kind in ((True, 1e-4), (False, 1)) for op in ("LayerNormalization", "RMSNormalization")]:
        model, feeds = faint(op, rng, stream), [{"x": scale * rng.standard_normal((1, 12, 96)).astype(np.float32)} for _ in range(8)]
        np.savez(t.at("faint.npz"), x=np.concatenate([f["x"] for f in feeds]))
        t.good("quantize", t.write("faint.onnx", model.SerializeToString()), "--calib", t.at("faint.npz"), "--onnx", "-o", t.at("faint-q.onnx"))
        pairs = [(outputs(exact, f)["x3"] - f["x"], outputs(made, f)["x3"] - f["x"]) for exact, made in [(session(model), session(t.at("faint-q.onnx")))] for f in feeds]
        worst = min(cosine(*p) for p in pairs)
        length = min(np.linalg.norm(b) / np.linalg.norm(a) for a, b in pairs)
        t.case("norms of %s far below the root of epsilon: %s" % ("a stream" if stream else "values", op), "" if worst > 0.999 and abs(length - 1) < 0.01 else "cosine %.5f, %.3f as long" % (worst, length))
    p = t.call("quantize", t.write("faint.onnx", stepped(model, 1e-9).SerializeToString()))
    said = b": epsilon is 0.001, and 'p0', which it normalises, has steps of 1e-09; over 96 channels steps of 2.5"
    t.case("steps that a source model gives, too fine for epsilon", "" if not p.returncode and said in p.stderr and b"1 roundings of values are left out" in p.stderr else "status %d: %s" % (p.returncode, p.stderr.decode()))


def stepped(model, step):
    """The products of `faint`, in steps that the model gives."""
    held = [numpy_helper.from_array(np.float32(step), "step"), numpy_helper.from_array(np.int16(0), "zero")]
    nodes = []
    for n in model.graph.node:
        if "axis" in {a.name for a in n.attribute}:
            x, n.input[0] = n.input[0], n.input[0] + "_stepped"
            nodes += [helper.make_node(op + "Linear", [a, "step", "zero"], [b], name=n.name.replace("norm", op)) for op, a, b in (("Quantize", x, x + "_q"), ("Dequantize", x + "_q", n.input[0]))]
        nodes.append(n)
    graph = helper.make_graph(nodes, "stepped", model.graph.input, model.graph.output, [*model.graph.initializer, *held])
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=10)


def planted(name, big=25):
    """bert-tiny-mask with what trained BERTs have: two channels of the residual stream far out in every token, two hidden units likewise,
    weights that make little of the former and nothing of the latter, and norms that bring the other channels back up."""
    m = onnx.load(t.model(name))
    for i in m.graph.initializer:
        a, shape = numpy_helper.to_array(i).copy(), tuple(i.dims)
        if i.name.endswith("attention.output.LayerNorm.bias"): a[[3, 40]] += big, -big / 2
        elif i.name.endswith("attention.output.LayerNorm.weight"): a[[3, 40]] *= big / 5
        elif i.name.endswith("output.LayerNorm.weight"):
            a *= np.sqrt(1 + big * big * 1.25 / 64)
            a[[3, 40]] *= 0.02
        elif i.name.endswith("intermediate.dense.bias"): a[[7, 99]] += big / 2, big / 4
        elif shape == (64, 256): a[[3, 40]] /= big
        elif shape == (256, 64):
            a *= 4
            a[[7, 99]] = 0
        i.CopyFrom(numpy_helper.from_array(a, i.name))
    return t.write("planted.onnx", m.SerializeToString())


def cost(model):
    """Products of a loop's body, weighted with the bits of the operand / 8, over products."""
    loop, spent, all = core_loop(model), 0, 0
    bits = {n.output[0]: int(p.value) for n in body(loop).node for p in n.metadata_props if p.key == "mlo.bits"}
    for n in body(loop).node:
        if n.op_type.startswith("MVU"):
            w = np.prod(stack(model, loop, n.input[2]).dims[1:]) * np.prod(shapes(model)[n.input[0]][-1:])
            spent, all = spent + w * bits.get(n.input[0], 8) / 8, all + w
        if n.op_type == "Attention":
            both = 2 * np.prod(shapes(model)[n.input[1]])
            spent, all = spent + both, all + both
    return spent / all


def shapes(model): return {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in body(core_loop(model)).value_info}


class Samples(ort.quantization.CalibrationDataReader):
    def __init__(self, feeds): self.feeds = iter(feeds)
    def get_next(self): return next(self.feeds, None)


def check_outliers():
    """Outliers that one scale per tensor does not survive: 0.977 with the scales of the largest magnitudes, as ONNX Runtime's static quantization takes them."""
    name, flags = "bert-tiny-mask", ["--calib", t.calibration("bert-tiny-mask", 16)]
    path, reached = planted(name), {}
    exact, feeds = session(path), samples(name, 16, 77)
    want = [outputs(exact, f) for f in feeds]
    ways = {"8 bits": [*flags, "--max-cost", "1"], "at 1.15 times the cost": [*flags, "--max-cost", "1.15"], "by default": flags, "by default, inputs drawn": []}
    for what, more in ways.items():
        t.good("quantize", path, *more, "--onnx", "-o", t.at("outliers.onnx"))
        model = onnx.load(t.at("outliers.onnx"))
        got = [outputs(s, f) for s in [session(model)] for f in feeds]
        reached[what] = float(np.mean([cosine(w[k], g[k]) for w, g in zip(want, got) for k in w])), cost(model)
        if "default" in what: continue
        t.good("compile", path, *more, "-o", t.at("build-outliers"))
        core = os.path.join(t.at("build-outliers"), "host/core.onnx")
        s = session(core)
        t.case("outliers, %s: mlo run gives the bits of ONNX Runtime" % what, next(filter(None, (differ(run(core, f), outputs(s, f)) for f in graphs.core_inputs(core, 4, np.random.default_rng(9)))), ""))
    ort.quantization.quantize_static(path, t.at("static.onnx"), Samples(samples(name, 16, 1)), per_channel=True, op_types_to_quantize=["MatMul", "Gemm"],
                                     activation_type=ort.quantization.QuantType.QInt8, weight_type=ort.quantization.QuantType.QInt8)
    static = float(np.mean([cosine(w[k], g[k]) for w, g in zip(want, [outputs(s, f) for s in [session(t.at("static.onnx"))] for f in feeds]) for k in w]))
    t.note("outliers: cosine %.4f with 8 bits, %.4f at %.3f times the cost; ONNX Runtime's static quantization %.4f" % (reached["8 bits"][0], *reached["at 1.15 times the cost"], static))
    t.case("outliers do not hurt: 8 bits", "" if reached["8 bits"][0] >= 0.995 and reached["8 bits"][1] == 1 else "cosine %.4f, cost %.3f" % reached["8 bits"])
    t.case("outliers do not hurt: wider operands within a budget", "" if reached["at 1.15 times the cost"][0] >= 0.998 and 1.05 < reached["at 1.15 times the cost"][1] <= 1.15 else "cosine %.4f, cost %.3f" % reached["at 1.15 times the cost"])
    for what in list(ways)[2:]:
        t.note("outliers, %s: cosine %.4f at %.3f times the cost" % (what, *reached[what]))
        t.case("outliers do not hurt: " + what, "" if reached[what][0] >= 0.998 and 1.05 < reached[what][1] <= 1.15 else "cosine %.4f, cost %.3f" % reached[what])
    t.case("outliers: closer than static quantization by ONNX Runtime", "" if 4 * (1 - reached["8 bits"][0]) < 1 - static else "%.4f and %.4f" % (reached["8 bits"][0], static))
    p = t.call("quantize", path, "--max-cost", "0.5")
    t.case("--max-cost below 1 is refused", "" if p.returncode == 2 and b"max-cost" in p.stderr else "status %d: %s" % (p.returncode, p.stderr.decode()))


def bits(path, *flags):
    """The widths of a quantized model's values."""
    t.good("quantize", path, *flags, "--onnx", "-o", t.at("widths.onnx"))
    return {int(p.value) for n in body(core_loop(onnx.load(t.at("widths.onnx")))).node for p in n.metadata_props if p.key == "mlo.bits"} | {8}


def check_default():
    """What nobody asks for: wider operands, but not where somebody says how wide they are; tokens that the mask hides have no say."""
    path, flags = t.model("bert-tiny-mask"), ["--calib", t.calibration("bert-tiny-mask", 16)]
    got = bits(path, *flags)
    t.case("by default some operands have 9 to 11 bits", "" if 8 < max(got - {16}) <= 11 else str(got))
    got = [bits(path, *flags, "--max-cost", "1"), bits(path, *flags, "--activations", "8"), bits(t.model("bert-tiny-qdq"), "--max-cost", "1") ^ bits(t.model("bert-tiny-qdq")) | {8}]
    t.case("none where widths are said: --max-cost 1, --activations 8, a QDQ model", "" if all(g - {10} == {8} for g in got) else str(got))
    with np.load(flags[1]) as z: feed = {k: z[k] for k in z.files}
    models = []
    for n in 0, 1:
        hidden = np.where(feed["attention_mask"] != 0, feed["input_ids"], np.random.default_rng(n).integers(0, 300, feed["input_ids"].shape))
        np.savez(t.at("hidden.npz"), input_ids=hidden, attention_mask=feed["attention_mask"])
        t.good("quantize", path, "--calib", t.at("hidden.npz"), "--onnx", "-o", t.at("hidden%d.onnx" % n))
        models.append(t.read(t.at("hidden%d.onnx" % n)))
    shown = (feed["attention_mask"] == 0).any()
    t.case("tokens that the mask hides do not count", "" if shown and models[0] == models[1] else "they do" if shown else "none is hidden")


def check_pictures():
    """Without samples an image of bytes is drawn as one, and not as a mask; what has 16 bits, too."""
    for dtype in np.uint8, np.int16:
        m = onnx.load(t.model("vit-tiny"))
        pixels, bits = m.graph.input[0], 8 * np.dtype(dtype).itemsize
        for n in m.graph.node: n.input[:] = ["scaled" if x == "pixel_values" else x for x in n.input]
        front = [helper.make_node("Cast", ["pixel_values"], ["as_float"], to=TensorProto.FLOAT), helper.make_node("Div", ["as_float", "most"], ["part"]), helper.make_node("Sub", ["part", "mean"], ["scaled"])]
        for n in reversed(front): m.graph.node.insert(0, n)
        m.graph.initializer.extend([numpy_helper.from_array(np.float32(2 ** bits / 8), "most"), numpy_helper.from_array(np.float32(4 if dtype == np.uint8 else 0), "mean")])
        pixels.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        path = t.write("pictures.onnx", m.SerializeToString())
        info = np.iinfo(dtype)
        t.good("quantize", path, "-o", t.at("pictures.json"))
        judge, pairs = ort.InferenceSession(path), []
        for seed in range(6):
            feed = {"pixel_values": np.random.default_rng(seed).integers(info.min, info.max, (1, 3, 32, 32), endpoint=True).astype(dtype)}
            np.savez(t.at("picture.npz"), **feed)
            t.good("run", t.at("pictures.json"), "--inputs", t.at("picture.npz"), "--outputs", t.at("seen.npz"))
            with np.load(t.at("seen.npz")) as z: pairs.append((judge.run(None, feed)[0], z[m.graph.output[0].name]))
        near = cosine(*map(np.concatenate, zip(*pairs)))
        t.case("an image of %s without samples" % np.dtype(dtype), "" if near > 0.99 else "cosine %.4f" % near)


# ---- floats -----------------------------------------------------------------------------------------------------------------------------

def check_float():
    for name, flags in ENCODERS.items():
        flags, why = BEFORE_QUANTIZE(flags), ["", "", ""]
        rolled = made("roll", name, flags, False)
        original, s = session(t.model(name)), session(rolled)
        for feed in samples(name, 2, 3):
            want = outputs(original, feed)
            why[0] = why[0] or differ(run(t.model(name), feed, *flags), want, 1e-5)
            why[1] = why[1] or differ(outputs(s, feed), want, 1e-5)
            why[2] = why[2] or differ(run(rolled, feed), want, 1e-5)
        t.case("float mlo run equals ONNX Runtime: " + name, why[0])
        t.case("the rolled model equals the original in ONNX Runtime: " + name, why[1])
        t.case("mlo run on the rolled model, too: " + name, why[2])


def swap_two(model, loop):
    """Two per-iteration stacks of one shape, exchanged."""
    dims = {i.name: tuple(i.dims) for i in model.graph.initializer}
    made_by = {o: n for n in model.graph.node for o in n.output}
    parts = lambda v: [dims.get(x) for x in made_by[made_by[v].input[0]].input] if v in made_by and made_by[v].op_type == "Reshape" else v
    for i in range(1, len(loop.input)):
        for k in range(i + 1, len(loop.input)):
            if isinstance(parts(loop.input[i]), list) and parts(loop.input[i]) == parts(loop.input[k]):
                loop.input[i], loop.input[k] = loop.input[k], loop.input[i]
                return
    raise AssertionError("no two stacks of one shape")


def one_weight(model, loop):
    """One element of one layer's largest matrix, by the smallest step."""
    used = {x for n in model.graph.node for x in n.input}
    i = max((i for i in model.graph.initializer if i.name in used and len(i.dims) == 2 and i.data_type == TensorProto.FLOAT and i.dims[0] < 300), key=lambda i: np.prod(i.dims))
    a = numpy_helper.to_array(i).copy()
    a.flat[a.size // 2] = np.nextafter(a.flat[a.size // 2], np.float32(9), dtype=np.float32)
    i.CopyFrom(numpy_helper.from_array(a, i.name))


def epsilon(model, loop):
    next(a for n in body(loop).node if n.op_type == "LayerNormalization" for a in n.attribute if a.name == "epsilon").f *= 2


def check_check():
    for name, flags in ENCODERS.items():
        flags = BEFORE_QUANTIZE(flags)
        p = t.call("check", made("roll", name, flags, False), "--against", t.model(name), *flags)
        t.case("check proves what was rolled: " + name, "" if p.returncode == 0 else p.stderr.decode() or "it says nothing")
    for name in "bert-tiny", "vit-tiny":
        for spoil in swap_two, one_weight, epsilon:
            m = onnx.load(made("roll", name, [], False))
            spoil(m, loops(m)[0])
            p = t.call("check", t.write("spoiled.onnx", m.SerializeToString()), "--against", t.model(name))
            t.case("check refuses %s: %s" % (spoil.__name__, name), "" if p.returncode == 1 and b"MLO_E_MISMATCH" in p.stderr else "status %d: %s" % (p.returncode, p.stderr.decode()))


# ---- kernels: the essays' formulas in numpy, and their error bounds -----------------------------------------------------------------------

def requantize(acc, m, s, lo, hi):
    acc, m, s = np.asarray(acc, np.int64), np.asarray(m, np.int64), np.asarray(s, np.int64)
    return np.clip((acc * m + (np.int64(1) << (s - 1))) >> s, lo, hi)


def fixed(real, most=62):
    """M / 2^S, M of 15 bits."""
    f, e = np.frexp(real)
    m, s = int(np.floor(f * 32768 + 0.5)), 15 - int(e)
    if m == 32768: m, s = 16384, s - 1
    return (m, s) if s <= most else (int(round(real * 2.0 ** most)), most)


def kernel(op, feed, out, **attributes):
    """One kernel on its own, in ONNX Runtime and in mlo, which must agree."""
    core = onnx.load(os.path.join(built("bert-tiny-mask"), "host/core.onnx"))
    inputs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feed.items()]
    result = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(out)), None)
    info = np.iinfo(out)
    low, high = (-128, 127) if op.endswith("Table") else (int(info.min), int(info.max))
    node = helper.make_node(op, list(feed), ["y"], domain="mlo", to=int(helper.np_dtype_to_tensor_dtype(np.dtype(out))), lo=low, hi=high, **attributes)
    m = helper.make_model(helper.make_graph([node], op, inputs, [result]), opset_imports=core.opset_import, functions=[f for f in core.functions if f.name == op], ir_version=core.ir_version)
    want = outputs(session(m), feed)
    got = run(t.write("kernel.onnx", m.SerializeToString()), feed)
    assert not differ(got, want), "mlo run and ONNX Runtime: " + differ(got, want)
    return want["y"]


def equal(got, want): return "" if np.array_equal(got, want) else "%d of %d words are not the formula's" % ((np.asarray(got) != want).sum(), np.size(want))


def check_requantize():
    rng, why, worst = np.random.default_rng(1), "", 0
    for k in range(6):
        x = rng.integers(I16.min, I16.max + 1, (1, 9, 40)).astype(np.int16)
        ms = [fixed(2.0 ** rng.uniform(-12, 1)) for _ in range(40)]
        mult, shift = (np.array([v[i] for v in ms], np.int32) for i in (0, 1))
        offset = rng.integers(I16.min, I16.max + 1, 40).astype(np.int32) * (np.arange(40) % 2).astype(np.int32)
        y = kernel("Requant", {"x": x, "bias": offset, "mult": mult, "shift": shift}, np.int8)
        why = why or equal(y, requantize(x.astype(np.int64) + offset, mult, shift, -128, 127))
        table = rng.integers(I16.min, I16.max + 1, 256).astype(np.int16)
        why = why or equal(kernel("RequantTable", {"x": x, "bias": offset, "mult": mult, "shift": shift, "table": table}, np.int16), table[y.astype(int) + 128])
        worst = max(worst, np.abs(y - np.clip((x.astype(np.int64) + offset) * (mult / 2.0 ** shift), -128, 127)).max())
    for out, bits in (np.int8, 7), (np.int16, 15):
        x, w = rng.integers(-128, 128, (1, 7, 96)).astype(np.int8), rng.integers(-128, 128, (96, 24)).astype(np.int8)
        bias, ms = rng.integers(-2 ** 22, 2 ** 22, 24).astype(np.int32), [fixed(2.0 ** rng.uniform(bits - 24, bits - 20)) for _ in range(24)]
        mult, shift = (np.array([v[i] for v in ms], np.int32) for i in (0, 1))
        acc = x.astype(np.int64) @ w.astype(np.int64) + bias
        y = kernel("MVU", {"x": x, "w": w, "bias": bias, "mult": mult, "shift": shift}, out)
        why = why or equal(y, requantize(acc, mult, shift, -2 ** bits, 2 ** bits - 1))
        worst = max(worst, np.abs(y - np.clip(acc * (mult / 2.0 ** shift), -2 ** bits, 2 ** bits - 1)).max())
        table = rng.integers(-128, 128, 256).astype(np.int8)
        q = requantize(acc, mult, shift, -128, 127)
        why = why or equal(kernel("MVUTable", {"x": x, "w": w, "bias": bias, "mult": mult, "shift": shift, "table": table}, np.int8), table[q + 128])
        a, b = (rng.integers(I16.min, I16.max + 1, (1, 9, 40)).astype(np.int16) for _ in "ab")
        ma, mb, s = int(rng.integers(1, 2 ** 15)), int(rng.integers(1, 2 ** 15)), 15
        y = kernel("Add", {"a": a, "b": b, "p": np.array([ma, mb, s], np.int32)}, np.int16)
        sums = a.astype(np.int64) * ma + b.astype(np.int64) * mb
        why = why or equal(y, requantize(sums, 1, s, I16.min, I16.max))
        worst = max(worst, np.abs(y - np.clip(sums / 2.0 ** s, I16.min, I16.max)).max())
        m, s = fixed(2.0 ** rng.uniform(-20, -10))
        y = kernel("Mul", {"a": a, "b": b, "p": np.array([m, s], np.int32)}, out)
        products = a.astype(np.int64) * b
        why = why or equal(y, requantize(products, m, s, -2 ** bits, 2 ** bits - 1))
        worst = max(worst, np.abs(y - np.clip(products * (m / 2.0 ** s), -2 ** bits, 2 ** bits - 1)).max())
    t.note("requantization: off by at most %.4f" % worst)
    t.case("Requant, RequantTable, MVU, MVUTable, Add and Mul are their formulas", why)
    t.case("requantization is within half a step", "" if worst <= 0.5 else "off by %.4f" % worst)


def normed(row, g, b, eps, sh, center):
    """One norm: its words, what is normalised, and that as it should be."""
    c, total = len(row), sum(row) * center
    v, k = c * sum(e * e for e in row) - total * total + eps, 0
    exact = np.array([c * e - total for e in row]) / np.sqrt(float(v))
    while v < 1 << 60: v, k = v * 4, k + 1
    r = (1 << 31) // int(np.sqrt(float(v >> 30)))
    n = np.array([((c * e - total) * r + (1 << (31 - k))) >> (32 - k) for e in row])
    return np.clip(n * g.astype(np.int64) + b >> sh, I16.min, I16.max), n, exact


def several_norms(rng):
    """A token of `groups` norms, which share their scale or have each its own, with a mean and without."""
    for groups, c, center, own in (2, 8, 0, 0), (4, 5, 1, 0), (3, 16, 0, 1), (6, 4, 1, 1), (5, 1, 0, 0):
        x = rng.integers(I16.min, I16.max + 1, (1, 7, groups * c)).astype(np.int16) >> rng.integers(0, 14, (1, 7, 1)).astype(np.int16)
        shape = (groups, c) if own else (c,)
        g, b, p = rng.integers(-32768, 32768, shape).astype(np.int32), rng.integers(-2 ** 29, 2 ** 29, shape).astype(np.int32), np.array([int(rng.integers(1, 2 ** 30)), 20], np.int64)
        y = kernel("LayerNorm", {"x": x, "g": g, "b": b, "p": p}, np.int16, center=center, groups=groups)[0]
        each = lambda v, k: v[k] if own else v
        want = [np.concatenate([normed(row[k].tolist(), each(g, k), each(b, k), int(p[0]), 20, center)[0] for k in range(groups)]) for row in x.reshape(7, groups, c)]
        if equal(y, want): return "%d norms of %d channels: %s" % (groups, c, equal(y, want))


def check_layernorm():
    rng, why, n_bound, y_bound = np.random.default_rng(2), "", 0, 0
    for c in 20, 64, 768:
        rows = np.concatenate([rng.normal(0, s, (4, c)) + m for s, m in ((3, 0), (300, 1000), (9000, -5000), (1, 30000))] + [np.zeros((1, c)), np.full((1, c), -32768), np.where(np.arange(c) % 2, 32767, -32768)[None]])
        x = np.clip(np.rint(rows), I16.min, I16.max).astype(np.int16)
        eps, sh = int(rng.integers(1, 2 ** 30)), 24
        g, b = rng.integers(-32768, 32768, c).astype(np.int32), (rng.integers(-2 ** 29, 2 ** 29, c) + 2 ** (sh - 1)).astype(np.int32)
        y = kernel("LayerNorm", {"x": x[None], "g": g, "b": b, "p": np.array([eps, sh], np.int64)}, np.int16, center=1)[0]
        for row, got in zip(x.tolist(), y):
            want, n, exact = normed(row, g, b, eps, sh, 1)
            why = why or equal(got, want)
            n_bound = max(n_bound, float((np.abs(n / 2.0 ** 14 - exact) / (np.abs(exact) * 2 ** -13.9 + 2 ** -15)).max()))
            y_bound = max(y_bound, float(np.abs(got - np.clip((n * g.astype(np.float64) + b - 2 ** (sh - 1)) / 2.0 ** sh, I16.min, I16.max)).max()))
    t.note("layernorm: normalised values use %.0f %% of their error bound" % (100 * n_bound))
    t.case("LayerNorm is its formula", why)
    t.case("LayerNorm of several norms a token is their formulas", several_norms(rng))
    t.case("LayerNorm keeps its error bounds", "" if n_bound <= 1 and y_bound <= 0.5 + 1e-6 else "n at %.3f of its bound, y off by %.4f" % (n_bound, y_bound))


def rom(text): return [int(x) for x in re.findall(r"\d+", text)]


def defined(name):
    """The numbers of a macro in C."""
    return rom(re.search(r"#define %s((?:.*\\\n)*.*)" % name, t.read(os.path.join(t.root, "src/exact/softmax.c")).decode()).group(1))


def check_exp2():
    want = [round(65280 * 2 ** (-f / 64)) for f in range(64)]
    c = defined("MLO_EXP2_ROM")
    v = t.read(os.path.join(t.root, "verilog/mlo_exp2.v")).decode().split("ROM = {")[1].split("}")[0].replace("16'd", "")
    t.case("the table of 2^-x in C is round(65280 * 2^(-f/64))", equal(c, want))
    t.case("the table of 2^-x in Verilog is the same", equal(rom(v)[::-1], want))
    want = [round(262143 * 2 ** (-f / 64)) for f in range(65)]
    c = defined("MLO_EXP2_FINE")
    v = t.read(os.path.join(t.root, "verilog/mlo_exp2_fine.v")).decode().split("ROM = {")[1].split("}")[0].replace("18'd", "")
    t.case("the fine table of 2^-x in C is round(262143 * 2^(-f/64))", equal(c, want))
    t.case("the fine table of 2^-x in Verilog is the same", equal(rom(v)[::-1], want))
    want = [round(65535 * np.tanh(f / 32)) for f in range(257)]
    c = defined("MLO_TANH_ROM")
    v = t.read(os.path.join(t.root, "verilog/mlo_attention_cap.v")).decode().split("ROM = {")[1].split("}")[0].replace("16'd", "")
    t.case("the table of tanh in C is round(65535 * tanh(f/32))", equal(c, want))
    t.case("the table of tanh in Verilog is the same", equal(rom(v)[::-1], want))


def check_attention():
    rng, why, r_most, y_most = np.random.default_rng(3), "", 0, 0
    table, e_most = np.array([round(65280 * 2 ** (-f / 64)) for f in range(64)]), {8: 0, 12: 0}
    for tokens, heads, d, sharp, bits in (32, 4, 16, 1.0, 8), (32, 2, 8, 0.05, 8), (1, 1, 4, 1.0, 8), (45, 3, 12, 6.0, 8), (16, 4, 16, 0.3, 8), (32, 4, 16, 1.0, 12), (1, 1, 4, 1.0, 12), (300, 1, 8, 3.0, 12):
        q, k, v = (rng.integers(-128, 128, (1, tokens, heads * d)).astype(np.int8) for _ in "qkv")
        lt = (tokens - 1).bit_length()
        scale, out = sharp / (64 * 64 * d ** 0.5), 2.0 ** rng.uniform(-1, 1)
        (ms, ss), (mo, so) = fixed(scale * 64 / np.log(2), 40), fixed(out, 62 - lt - bits)
        masks = [np.ones(tokens, bool), np.zeros(tokens, bool), np.arange(tokens) == tokens // 2, rng.random(tokens) < 0.6]
        for mask in masks:
            got = kernel("Attention", {"q": q, "k": k, "v": v, "mask": mask[None], "p": np.array([ms, ss, mo, so + lt + bits], np.int32)}, np.int8, heads=heads, lt=lt, **({} if bits == 8 else {"exp_bits": bits}))[0]
            for h in range(heads):
                cut = slice(h * d, (h + 1) * d)
                s = q[0, :, cut].astype(np.int64) @ k[0, :, cut].astype(np.int64).T
                counts = mask if mask.any() else np.ones(tokens, bool)
                if not mask.any(): s = s * 0
                far = np.where(counts, s, -2 ** 40).max(1, keepdims=True) - s
                dist = np.minimum((np.maximum(far, 0) * ms + (1 << (ss - 1))) >> ss, 4095)
                down = 16 - bits + np.minimum(dist >> 6, 20)
                e = np.where(counts, (table[dist & 63] + (1 << (down - 1))) >> down, 0)
                total = e.sum(1, keepdims=True)
                r, acc = (mo << (lt + bits)) // total, e @ v[0, :, cut].astype(np.int64)
                why = why or equal(got[:, cut], requantize(acc, r, so + lt + bits, -128, 127))
                e_most[bits] = max(e_most[bits], float(np.abs(e - np.where(counts, 255 * 2 ** (bits - 8) * np.exp(-scale * far), 0)).max()))
                r_most = max(r_most, float((1 - r / (mo * 2.0 ** (lt + bits) / total)).max()))
                y_most = max(y_most, float(np.abs(got[:, cut] - np.clip(acc * (r / 2.0 ** (so + lt + bits)), -128, 127)).max()))
    t.note("attention: weights off by at most %.2f of 255, %.2f of 4080, 1/sum by 2^%.1f" % (e_most[8], e_most[12], np.log2(max(r_most, 1e-9))))
    t.case("Attention is its formula", why)
    bound = e_most[8] <= 1.9 and e_most[12] <= 23 and r_most <= 2 ** -14 and y_most <= 0.5
    t.case("Attention keeps its error bounds", "" if bound else "e off by %s, R by %.2g, y by %.3f" % (e_most, r_most, y_most))
    for wrong, lt, says in (10, 5, "exp_bits 10 is neither 8 nor 12"), (12, 20, "lt 20 is not within 0..19"), (8, 25, "lt 25 is not within 0..24"):
        try: kernel("Attention", {"q": q[:, :4], "k": k[:, :4], "v": v[:, :4], "mask": np.ones((1, 4), bool), "p": np.array([ms, ss, mo, so], np.int32)}, np.int8, heads=1, lt=lt, exp_bits=wrong)
        except Exception as e: said = str(e)
        else: said = "taken"
        t.case("exponentials of %d bits in frames of up to 2^%d keys are refused" % (wrong, lt), "" if says in said else said[-200:])


# Attention over many keys. What ONNX Runtime makes of the same words in floats (softmax(scale q k^T) v) is what is right; scores are random, their
# deviation 2, in steps so fine that the exponentials' widths are what is seen: y has 16 bits. keys: the mix may be as far off (relative, in L2) with 8, with 12 bits
MIXED = {128: (0.015, 0.004), 512: (0.03, 0.004), 2048: (0.08, 0.004), 8192: (0.2, 0.01)}


def mixed(q, k, v, scale):
    """softmax(scale q k^T) v in floats, by ONNX Runtime."""
    info = lambda n, a: helper.make_tensor_value_info(n, 1, a.shape)
    floats = {n: a.astype(np.float32) for n, a in (("q", q), ("k", k), ("v", v))}
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), helper.make_node("MatMul", ["q", "kt"], ["s"]), helper.make_node("Mul", ["s", "scale"], ["z"]),
             helper.make_node("Softmax", ["z"], ["a"], axis=-1), helper.make_node("MatMul", ["a", "v"], ["y"])]
    graph = helper.make_graph(nodes, "float", [info(n, a) for n, a in floats.items()], [helper.make_tensor_value_info("y", 1, None)], [numpy_helper.from_array(np.float32(scale), "scale")])
    return outputs(session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)), floats)["y"]


def check_wide_exponentials():
    """8-bit exponentials lose small weights, of which many keys make much; 12 bits keep them. The width costs the more the more keys a row has."""
    rng, d = np.random.default_rng(7), 64
    for keys, limits in MIXED.items():
        q, k = (np.clip(np.rint(32 * rng.standard_normal((1, n, d))), -128, 127).astype(np.int8) for n in (16, keys))
        v = rng.integers(-128, 128, (1, keys, d)).astype(np.int8)
        scale, lt, off = 2 / (32 * 32 * d ** 0.5), (keys - 1).bit_length(), {}
        want = mixed(q, k, v, scale)
        step = np.abs(want).max() / 32000
        for bits in 8, 12:
            (ms, ss), (mo, so) = fixed(scale * 64 / np.log(2), 40), fixed(1 / step, 62 - lt - bits)
            got = kernel("Attention", {"q": q, "k": k, "v": v, "mask": np.ones((1, keys), bool), "p": np.array([ms, ss, mo, so + lt + bits], np.int32)}, np.int16, heads=1, lt=lt, exp_bits=bits)
            off[bits] = float(np.linalg.norm(got * step - want) / np.linalg.norm(want))
        t.note("attention over %d keys: the mix is off by %.2f %% with exponentials of 8 bits, %.2f %% with 12" % (keys, 100 * off[8], 100 * off[12]))
        gains = keys <= 256 or off[12] < off[8] / 2
        t.case("attention over %d keys is as near to floats as it says" % keys, "" if off[8] <= limits[0] and off[12] <= limits[1] and gains else str(off))


def check_capped_attention():
    """Scores under a soft cap: the formula, how near it is to tanh for all numbers that it can be of, and that it never falls."""
    rng, why, table = np.random.default_rng(5), "", np.array([round(65535 * np.tanh(f / 32)) for f in range(257)])
    def tanh(u):
        f, g = np.abs(u) >> 8, np.abs(u) & 255
        return np.sign(u) * (table[f] + (((table[np.minimum(f + 1, 256)] - table[f]) * g + 128) >> 8))
    u = np.arange(-65535, 65536)
    off = max(np.abs(tanh(u) / 65535 - np.tanh((u + half) / 8192)).max() for half in (-0.5, 0.5))
    t.case("a capped score is within 1.5e-4 of the cap", "" if off < 1.5e-4 and (np.diff(tanh(u)) >= 0).all() else "%.3g" % off)
    exps, near = np.array([round(65280 * 2 ** (-f / 64)) for f in range(64)]), 0
    for tokens, heads, d, cap, bits in (32, 4, 16, 50.0, 8), (33, 2, 8, 3.0, 8), (1, 1, 4, 50.0, 8), (16, 3, 12, 0.5, 8), (45, 1, 16, 20.0, 8), (280, 1, 16, 20.0, 12):
        q, k, v = (rng.integers(-128, 128, (1, tokens, heads * d)).astype(np.int8) for _ in "qkv")
        lt, scale = (tokens - 1).bit_length(), 6 / (64 * 64 * d ** 0.5)
        (ms, ss), (mo, so), (mc, sc) = fixed(cap / 65535 * 64 / np.log(2), 40), fixed(0.7, 62 - lt - bits), fixed(8192 * scale / cap, 40)
        for mask in np.ones(tokens, bool), np.zeros(tokens, bool), rng.random(tokens) < 0.6:
            got = kernel("AttentionCap", {"q": q, "k": k, "v": v, "mask": mask[None], "p": np.array([ms, ss, mo, so + lt + bits, mc, sc], np.int32)}, np.int8, heads=heads, lt=lt, exp_bits=bits)[0]
            for h in range(heads):
                cut = slice(h * d, (h + 1) * d)
                s = q[0, :, cut].astype(np.int64) @ k[0, :, cut].astype(np.int64).T
                counts = mask if mask.any() else np.ones(tokens, bool)
                if not mask.any(): s = s * 0
                c = tanh(np.clip((s * mc + (1 << (sc - 1))) >> sc, -65535, 65535))
                near = max(near, float(np.abs(c / 65535 - np.tanh(s * scale / cap)).max()))
                far = np.where(counts, np.where(counts, c, -2 ** 40).max(1, keepdims=True) - c, 0)
                dist = np.minimum((far * ms + (1 << (ss - 1))) >> ss, 4095)
                down = 16 - bits + np.minimum(dist >> 6, 20)
                e = np.where(counts, (exps[dist & 63] + (1 << (down - 1))) >> down, 0)
                r = (mo << (lt + bits)) // e.sum(1, keepdims=True)
                why = why or equal(got[:, cut], requantize(e @ v[0, :, cut].astype(np.int64), r, so + lt + bits, -128, 127))
    t.note("scores under a soft cap: off by at most %.2g of it" % near)
    t.case("AttentionCap is its formula", why)
    t.case("AttentionCap keeps its error bound", "" if near <= 1.7e-4 else "%.3g" % near)


def check_rounded_attention():
    """Attentions with 8-bit probabilities (and scores): their formula, and how often floats round to another probability."""
    rng, why, off, count, off_s, count_s, y_most = np.random.default_rng(4), "", 0, 0, 0, 0, 0
    table = np.array([round(262143 * 2 ** (-f / 64)) for f in range(65)])
    for tokens, heads, d, sharp, step, hp, rounds in (32, 4, 16, 1.0, 1 / 255, 255, 0), (32, 4, 16, 1.0, 1 / 127, 127, 1), (1, 1, 4, 1.0, 1 / 255, 255, 1), (45, 3, 12, 6.0, 1 / 200, 127, 1), (64, 2, 8, 0.3, 1 / 15, 15, 0):
        q, k, v = (rng.integers(-128, 128, (1, tokens, heads * d)).astype(np.int8) for _ in "qkv")
        lt, scale, coarse, zero = (tokens - 1).bit_length(), sharp / (64 * 64 * d ** 0.5), 0.07 * sharp, int(rng.integers(-40, 40))
        (ms, ss), (mo, so) = fixed((coarse if rounds else scale) * 4096 / np.log(2), 40), fixed(step * 2.0 ** rng.uniform(-1, 1), 62)
        mp, sp = fixed(1 / step, 62 - lt - 18)
        mr, sr = int(round(scale / coarse * 2 ** 24)), 24
        p = [ms, ss, mo, so, mp, sp + lt + 18, hp] + [mr, sr, zero] * rounds
        for mask in np.ones(tokens, bool), np.zeros(tokens, bool), np.arange(tokens) == tokens // 2, rng.random(tokens) < 0.6:
            got = kernel("AttentionRounded" if rounds else "AttentionProbs", {"q": q, "k": k, "v": v, "mask": mask[None], "p": np.array(p, np.int32)}, np.int8, heads=heads, lt=lt)[0]
            for h in range(heads):
                cut = slice(h * d, (h + 1) * d)
                s = q[0, :, cut].astype(np.int64) @ k[0, :, cut].astype(np.int64).T
                counts = mask if mask.any() else np.ones(tokens, bool)
                if not mask.any(): s = s * 0
                real = s * scale
                if rounds:
                    s = np.clip(((s * mr + (1 << (sr - 1))) >> sr) + zero, -128, 127)
                    exact = np.clip(np.rint(real / coarse) + zero, -128, 127)
                    off_s, count_s, real = off_s + (s != exact).sum(), count_s + s.size, s * coarse
                largest = np.where(counts, s, -2 ** 40).max(1, keepdims=True)
                dist = np.minimum((np.maximum(largest - s, 0) * ms + (1 << (ss - 1))) >> ss, 2 ** 17 - 1)
                i, f, g = dist >> 12, dist >> 6 & 63, dist & 63
                a = table[f] - (((table[f] - table[f + 1]) * g + 32) >> 6)
                e = np.where(counts, (2 * a + (1 << i)) >> (i + 1), 0)
                share = (mp << (lt + 18)) // e.sum(1, keepdims=True)
                w = np.minimum((e * share + (1 << (sp + lt + 17))) >> (sp + lt + 18), hp)
                acc = w @ v[0, :, cut].astype(np.int64)
                why = why or equal(got[:, cut], requantize(acc, mo, so, -128, 127))
                x = np.where(counts, np.exp(real - np.where(counts, real, -1e9).max(1, keepdims=True)), 0)
                exact = np.minimum(np.rint(x / x.sum(1, keepdims=True) / step), hp)
                off, count, y_most = off + (w != exact).sum(), count + w.size, max(y_most, int(np.abs(w - exact).max()))
    t.note("attention as sources round it: %.3f %% of the probabilities, %.3f %% of the scores are rounded otherwise" % (100 * off / count, 100 * off_s / count_s))
    t.case("AttentionProbs and AttentionRounded are their formulas", why)
    t.case("they round as floats do", "" if off < 0.001 * count and off_s < 0.0005 * count_s and y_most <= 1 else "%d of %d probabilities off, by %d, and %d of %d scores" % (off, count, y_most, off_s, count_s))


# op: its operands; parameter, which of its members (a slice), from, to. What mlo_requantize and the modules take: M of 15 bits, shifts that keep 63.
M, S, FAR = (0, 2 ** 15 - 1), (1, 62), (1, 40)
RANGES = {
    "Requant": ("x", {"bias": 8, "mult": 8, "shift": 8}, [("bias", None, -2 ** 15, 2 ** 15 - 1), ("mult", None, *M), ("shift", None, *S)]),
    "MVU": ("xw", {"bias": 8, "mult": 8, "shift": 8}, [("mult", None, *M), ("shift", None, *S)]),
    "Add": ("ab", {"p": 3}, [("p", 0, *M), ("p", 1, *M), ("p", 2, *S)]),
    "Mul": ("ab", {"p": 2}, [("p", 0, *M), ("p", 1, *S)]),
    "LayerNorm": ("x", {"g": 8, "b": 8, "p": 2}, [("g", None, -2 ** 15, 2 ** 15 - 1), ("p", 0, 1, 2 ** 47), ("p", 1, 0, 40)]),
    "Attention": ("qkv", {"p": 4}, [("p", 0, *M), ("p", 1, *FAR), ("p", 2, *M), ("p", 3, *S)]),
    "AttentionCap": ("qkv", {"p": 6}, [("p", 4, *M), ("p", 5, *FAR)]),
    "AttentionProbs": ("qkv", {"p": 7}, [("p", 0, *M), ("p", 1, *FAR), ("p", 2, *M), ("p", 3, *S), ("p", 4, *M), ("p", 5, *S), ("p", 6, 0, 255)]),
    "AttentionRounded": ("qkv", {"p": 10}, [("p", 5, *S), ("p", 6, 0, 255), ("p", 7, 0, 2 ** 18 - 1), ("p", 8, *FAR), ("p", 9, -128, 127)]),
}


def check_limits():
    """A parameter one below what the hardware takes, or one above, in its first place or its last, is refused and said; the ends are not."""
    attributes = {"LayerNorm": {"center": 1, "groups": 1}, **{op: {"heads": 2, "lt": 2} for op in RANGES if op.startswith("Attention")}}
    for op, (operands, sizes, rows) in RANGES.items():
        why, tried = "", 0
        for name, member, low, high in rows:
            for at in (member,) if member is not None else (0, sizes[name] - 1):
                for value, good in (low, 1), (high, 1), (low - 1, 0), (high + 1, 0):
                    feed = {x: np.ones((1, 4, 8), np.int8 if op == "MVU" or op.startswith("Attention") else np.int16) for x in operands}
                    if "w" in operands: feed["w"] = np.ones((8, 8), np.int8)
                    if op.startswith("Attention"): feed["mask"] = np.ones((1, 4), bool)
                    for p, n in sizes.items(): feed[p] = np.ones(n, np.int64 if op == "LayerNorm" and p == "p" else np.int32)
                    feed[name][at] = value
                    inputs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feed.items()]
                    node = helper.make_node(op, list(feed), ["y"], domain="mlo", to=5, lo=-2 ** 15, hi=2 ** 15 - 1, **attributes.get(op, {}))
                    m = helper.make_model(helper.make_graph([node], op, inputs, [helper.make_tensor_value_info("y", 5, None)]), opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("mlo", 1)], ir_version=8)
                    np.savez(t.at("limits.npz"), **feed)
                    r = t.call("run", t.write("limits.onnx", m.SerializeToString()), "--inputs", t.at("limits.npz"), "--outputs", t.at("y.npz"), text=True)
                    refused = r.returncode == 3 and "%d is not within %d..%d" % (value, low, high) in r.stderr
                    if (r.returncode if good else not refused): why = why or "%s[%d] = %d: status %d %s" % (name, at, value, r.returncode, r.stderr.strip())
                    tried += 1
        t.case("%s: what its parameters may be (%d tried)" % (op, tried), why)


def check_constants():
    """Multiplier and shift of every plain linear layer bring scale(x) scale(w) / (scale(y) shape(y)), to 15 bits. Values have the shape
    that their attention's result has; the shape of x is in the scale of w."""
    worst, count = 0, 0
    for name in "bert-tiny", "vit-tiny", "bert-60":
        m = onnx.load(made("quantize", name))
        loop = core_loop(m)
        scale = {n.output[0]: np.array(p.value.split(), np.float64) for n in body(loop).node for p in n.metadata_props if p.key == "mlo.scale"}
        inputs = {i.name for i in body(loop).input}
        mixed = {n.input[2]: n.output[0] for n in body(loop).node if n.op_type == "Attention"}
        for n in body(loop).node:
            if (n.domain, n.op_type) != ("mlo", "MVU") or n.input[0] not in scale: continue
            shape = mixed.get(n.output[0], n.output[0]) + "_shape"
            shape = numpy_helper.to_array(stack(m, loop, shape)).astype(np.float64)[:, :, 0] if shape in inputs else 1
            values = [numpy_helper.to_array(stack(m, loop, x)).astype(np.float64) for x in (n.input[3], n.input[4])]
            w = numpy_helper.to_array(stack(m, loop, n.output[0] + "_w_scale")).astype(np.float64)
            want = scale[n.input[0]][:, None] * w / (scale[n.output[0]][:, None] * shape)
            worst = max(worst, float(np.abs(values[0] / 2 ** values[1] / want - 1).max()))
            count += want.size
    t.case("requantization constants are the scales' ratios to 2^-15: %d of them" % count, "" if count > 1000 and worst <= 2 ** -15 + 2e-8 else "off by %.3g" % worst)


# ---- the mask ------------------------------------------------------------------------------------------------------------------------------

def check_mask():
    b = built("bert-tiny-mask")
    core = os.path.join(b, "host/core.onnx")
    ins = {i.name: i.type.tensor_type for i in onnx.load(core).graph.input}
    manifest = json.loads(t.read(os.path.join(b, "manifest.json")))
    mask = ins.get("mlo_mask")
    one_bit = mask is not None and mask.elem_type == TensorProto.BOOL and [d.dim_value for d in mask.shape.dim] == [1, 32]
    t.case("the mask stays a runtime input, one bit per key", "" if one_bit and manifest["stream"]["masked"] and b"s1_axis_tdata" in t.read(os.path.join(b, "rtl/mlo_top.v")) else "inputs %s" % list(ins))
    s, rng, why = session(core), np.random.default_rng(5), ""
    x_name = next(k for k in ins if k != "mlo_mask")
    for keys in [np.arange(32) < n for n in (1, 5, 20, 31)] + [rng.random(32) < 0.5 for _ in range(4)]:
        x = rng.normal(0, 8000, (1, 32, 64)).astype(np.int16)
        other = np.where(keys[None, :, None], x, rng.integers(-32768, 32768, x.shape)).astype(np.int16)
        y, z = (next(iter(outputs(s, {x_name: v, "mlo_mask": keys[None]}).values())) for v in (x, other))
        if not np.array_equal(y[0, keys], z[0, keys]): why = why or "%d valid tokens of %d change" % ((y[0, keys] != z[0, keys]).any(1).sum(), keys.sum())
        if (run(core, {x_name: other, "mlo_mask": keys[None]}).popitem()[1][0, keys] != y[0, keys]).any(): why = why or "in mlo run"
        flipped = keys ^ (np.arange(32) == 3)
        if np.array_equal(next(iter(outputs(s, {x_name: x, "mlo_mask": flipped[None]}).values())), y): why = why or "the mask changes nothing"
    t.case("what lies at padded positions does not reach valid tokens", why)
    ids = {"input_ids": rng.integers(0, 300, (1, 32)), "attention_mask": (np.arange(32) < 13).astype(np.int64)[None]}
    pre = outputs(session(os.path.join(b, "host/pre.onnx")), ids)
    t.case("pre.onnx makes the mask's bits from attention_mask", equal(pre["mlo_mask"], ids["attention_mask"] != 0))


def check_dynamic():
    a, b = t.at("fixed"), t.at("bound")
    t.good("compile", t.model("bert-tiny-mask"), "-o", a)
    t.good("compile", t.model("bert-tiny-dynamic"), "--dim", "seq=32", "-o", b)
    different = [f for f in t.tree(a) if not f.startswith(("host/", "manifest", "README")) and t.tree(a)[f] != t.tree(b).get(f)]
    t.case("--dim seq=32 gives the core of the fixed export", "differ: " + ", ".join(different[:5]) if different else "")
    p = t.call("fold", t.model("bert-tiny-dynamic"))
    t.case("without --dim: stages name the dimension", "" if p.returncode == 3 and b"seq" in p.stderr and b"--dim" in p.stderr else "status %d: %s" % (p.returncode, p.stderr.decode()[-300:]))
    p = t.call("compile", t.model("bert-tiny-dynamic"), "-o", t.at("unbound"))
    t.good("compile", t.model("bert-tiny-dynamic"), "--dim", "seq=64", "-o", t.at("bound"))
    different = [f for f in t.tree(t.at("bound")) if t.tree(t.at("bound"))[f] != t.tree(t.at("unbound")).get(f)] if p.returncode == 0 else ["all"]
    t.case("without --dim: compile takes what its positions allow", "" if not different and b"'seq' is 64" in p.stderr else "%s %s" % (different, p.stderr.decode()[-300:]))



def check_four_bits():
    """Weights of 4 bits of a matrix with more rows than are aimed at once (256), after as many tokens as that wants: near the floats."""
    rng, m, x = np.random.default_rng(3), graphs.Written(), "x"
    add = m.add
    for _ in range(2):
        n = add("LayerNormalization", x, rng.uniform(0.5, 1.5, 16), rng.standard_normal(16) / 9)
        x = add("Add", x, add("MatMul", add("Relu", add("MatMul", n, rng.standard_normal((16, 288)) / 4)), rng.standard_normal((288, 16)) / 12))
    model = m.model([1, 256, 16], x)
    np.savez(t.at("four.npz"), x=rng.standard_normal((37, 256, 16)).astype(np.float32))
    t.good("quantize", t.write("four.onnx", model.SerializeToString()), "--weights", 4, "--calib", t.at("four.npz"), "--onnx", "-o", t.at("four-q.onnx"))
    made, exact, feeds = session(t.at("four-q.onnx")), session(model), [{"x": rng.standard_normal((1, 256, 16)).astype(np.float32)} for _ in range(4)]
    want, got = (np.stack([outputs(s, f)[x] - f["x"] for f in feeds]) for s in (exact, made))
    far = np.linalg.norm(got - want) / np.linalg.norm(want)
    t.case("weights of 4 bits, 288 rows: %.3f of what the layers add" % far, "" if far < 0.1 else "too far off")


def check_gains_of_heads():
    """Of norms of heads, whose queries' share a gain in the float model, it is kept once; where each head has its own, all of them are."""
    for name, shared in (("qk-qwen3-d18-none-d", True), ("qk-timm-d18-none-a", True), ("qk-vit22b-d23-none-d", True), ("qk-cohere-d18-none-a", False)):
        t.good("quantize", os.path.join(t.tests, "models", "families", name + ".onnx"), "--onnx", "-o", t.at("gains.onnx"))
        layer = graphs.body(graphs.scans(onnx.load(t.at("gains.onnx")))[0])
        forms = {i.name: len(i.type.tensor_type.shape.dim) for i in layer.input}
        gains = [forms[n.input[1]] for n in layer.node if n.op_type == "LayerNorm" and graphs.attribute(n, "groups") and graphs.attribute(n, "groups").i > 1]
        t.case("%s: gains of heads" % name, "" if len(gains) == 2 and (1 in gains) == shared else "ranks %s" % gains)


if __name__ == "__main__":
    logging.disable(logging.WARNING)                        # of ONNX Runtime's quantizer
    t.main(check_stages, check_model, check_outliers, check_silence, check_faint, check_default, check_pictures, check_float, check_check, check_exp2, check_requantize, check_layernorm, check_attention, check_wide_exponentials, check_capped_attention, check_rounded_attention, check_limits, check_constants, check_gains_of_heads, check_four_bits, check_mask, check_dynamic,
           floor=120)
