#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `quantize --report` says about numbers is so.

    python tests/test_report.py path/to/mlo [NAME ...]

The judge is ONNX Runtime, which runs the rolled float model and the integer model on the samples of the calibration, all values of their
loops exposed; numpy makes the report's numbers of those, by the definitions in mlo.h."""
import json
import math
import random
import re
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import harness as t
from decoders import Decoder
from graphs import body, execute, meta, scans, tap

KERNELS = "MVU", "MVUTable", "Attention", "Add", "LayerNorm", "Requant"


# ---- models ----------------------------------------------------------------------------------------------------------------------

def odd(change=lambda layer, name, w: w):
    """x [1, 7, 15] through three pre-norm encoder layers of 3 heads and 22 hidden units."""
    rng, nodes, inits, tokens, c, heads, hidden = np.random.default_rng(4), [], [], 7, 15, 3, 22

    def init(name, a):
        if name not in {i.name for i in inits}: inits.append(numpy_helper.from_array(np.asarray(a), name))
        return name

    def node(op, inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, ["%s_%d" % (op.lower(), len(nodes))], **attributes))
        return nodes[-1].output[0]

    def learned(layer, name, *shape):
        w = rng.standard_normal(shape) / np.sqrt(shape[0]) if len(shape) > 1 else rng.standard_normal(shape) * 0.2 + ("gamma" in name)
        return init("%d.%s" % (layer, name), change(layer, name, w.astype(np.float32)))

    def linear(i, x, name, n, m): return node("Add", [node("MatMul", [x, learned(i, name + ".w", n, m)]), learned(i, name + ".b", m)])
    def norm(i, x, name): return node("LayerNormalization", [x, learned(i, name + ".gamma", c), learned(i, name + ".beta", c)], axis=-1)
    def shaped(x, *dims): return node("Reshape", [x, init("to_%d" % len(dims), np.array(dims))])

    x = "x"
    for i in range(3):
        h = norm(i, x, "norm1")
        q, k, v = (node("Transpose", [shaped(linear(i, h, name, c, c), 1, tokens, heads, c // heads)], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]) for name in "qkv")
        scores = node("Mul", [node("MatMul", [q, k]), init("scale", np.float32((c / heads) ** -0.5))])
        mix = shaped(node("Transpose", [node("MatMul", [node("Softmax", [scores], axis=-1), v])], perm=[0, 2, 1, 3]), 1, tokens, c)
        x = node("Add", [x, linear(i, mix, "o", c, c)])
        x = node("Add", [x, linear(i, node("Relu", [linear(i, norm(i, x, "norm2"), "up", c, hidden)]), "down", hidden, c)])
    shape = [1, tokens, c]
    graph = helper.make_graph(nodes, "odd", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)], inits)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def case_of(name):
    """A model's path, and its calibration's."""
    if name != "odd": return t.model(name), t.calibration(name, 16)
    np.savez(t.at("odd.npz"), x=np.random.default_rng(6).standard_normal((12, 7, 15)).astype(np.float32))
    return t.write("odd.onnx", odd().SerializeToString()), t.at("odd.npz")


# ---- the judge's values ------------------------------------------------------------------------------------------------------------

def seen(model, loop, names, feeds):
    """name -> its values, [samples, iterations, rest]."""
    taps = onnx.ModelProto()
    taps.CopyFrom(model)
    tap(taps, next(n for n in scans(taps) if n.name == loop.name), names)
    outs = [dict(zip([o.name for o in taps.graph.output], execute(taps, f))) for f in feeds]
    return {n: np.stack([o["tap." + n] for o in outs]) for n in names}


class Case:
    """A model's report, and the values of its loop in both models."""
    def __init__(self, path, calibration, flags=()):
        t.good("quantize", path, "--calib", calibration, "--report", t.at("r.json"), "--onnx", "-o", t.at("q.onnx"), *flags)
        t.good("roll", path, "--onnx", "-o", t.at("f.onnx"))
        with open(t.at("r.json")) as f: self.report = json.load(f)["quantize"]
        with np.load(calibration) as z: feeds = [{k: z[k][i:i + 1] for k in z.files} for i in range(len(z[z.files[0]]))]
        ints, floats = onnx.load(t.at("q.onnx")), onnx.load(t.at("f.onnx"))
        self.loop = next(n for n in scans(ints) if any(b.domain == "mlo" for b in body(n).node))
        self.model, self.samples = ints, len(feeds)
        self.keep = np.concatenate([f["attention_mask"].ravel() for f in feeds]).astype(bool) if "attention_mask" in feeds[0] else None       # hidden tokens do not count
        self.kernels = [n for n in body(self.loop).node if n.domain == "mlo"]
        twin, weights = next(n for n in scans(floats) if n.name == self.loop.name), [n.input[1] for n in self.kernels if n.op_type.startswith("MVU")]
        there = {o for n in body(twin).node for o in n.output}
        self.state = body(self.loop).input[0].name
        self.source = {n.output[0]: n.output[0] if n.output[0] in there else re.sub("_8$", "", n.output[0]) for n in self.kernels}
        self.y = seen(ints, self.loop, [self.state] + list(self.source) + weights, feeds)
        self.v = {k: x.astype(np.float64) for k, x in seen(floats, twin, [self.state] + list(set(self.source.values()) - {self.state}), feeds).items()}
        self.layers = self.y[self.state].shape[1]
        first = next(n for n in ints.graph.node if self.loop.input[0] in n.output)
        self.input_scale = self.initializer(first.input[1]).reshape(-1)[0]
        self.said = {v["name"]: v for v in self.report["values"]}

    def initializer(self, name): return numpy_helper.to_array(next(i for i in self.model.graph.initializer if i.name == name)).astype(np.float64)

    def stack(self, name):
        """A per-iteration parameter of the body."""
        return self.initializer(self.loop.input[[i.name for i in body(self.loop).input].index(name)])

    def stands(self, name, i):
        """What the integers of a value stand for in iteration i, by the report's own scales: [rows, channels]."""
        v, y = self.said[name], self.rows(self.y[name], i).astype(np.float64)
        return np.array(v["zeros"][i] if "zeros" in v else 0) + v["scales"][i] * np.array(v["shapes"][i] if "shapes" in v else 1) * y

    def rows(self, y, i):
        """A value's tokens in iteration i, those that count."""
        y = y[:, i].reshape(-1, y.shape[-1])
        return y if self.keep is None else y[self.keep]

    def exact(self, name, i): return self.rows(self.v[name], i)

    def pair(self, node, i):
        y = self.stands(node.output[0], i)
        return y, self.exact(self.source[node.output[0]], i).reshape(y.shape)

    def entering(self, i):
        """The carried value as it comes into iteration i."""
        scale = self.input_scale if i == 0 else self.said[body(self.loop).output[0].name]["scales"][i - 1]
        return scale * self.rows(self.y[self.state], i).astype(np.float64), self.exact(self.state, i)


def decibels(noise): return -10 * math.log10(noise) if noise > 0 else math.inf
def noise(pair): return ((pair[0] - pair[1]) ** 2).sum() / (pair[1] ** 2).sum()
def cosine(pair): return (pair[0] * pair[1]).sum() / np.sqrt((pair[0] ** 2).sum() * (pair[1] ** 2).sum())
def near(got, want, relative=0.02, absolute=0.0): return abs(got - want) <= relative * abs(want) + absolute


def numbers(c, node, i):
    """What the report has to say of a value in iteration i."""
    name = node.output[0]
    v, (a, x), y = c.said[name], c.pair(node, i), c.rows(c.y[name], i)
    e, end = a - x, 2 ** (v["bits"] - 1)
    step = v["scales"][i] * np.array(v["shapes"][i] if "shapes" in v else 1) * np.ones(x.shape[1])
    y = y.reshape(x.shape)
    lost = ((y == end - 1) & (x - a > step / 2)) | ((y == -end) & (a - x > step / 2))
    return {"low": x.min(), "high": x.max(), "least": int(y.min()), "largest": int(y.max()), "saturated": lost.mean(), "rounding_db": decibels((step ** 2 / 12).mean() / (x ** 2).mean()),
            "max": np.abs(e).max(), "mean": np.abs(e).mean(), "cosine": cosine((a, x)), "sqnr_db": decibels(noise((a, x)))}


# Float models differ by their last bits in two programs, which a 16-bit step sees a little of: of 80 dB, half of one.
def wrong(key, got, want):
    if key.endswith("_db"): return abs(got - want) > (0.05 if want < 60 else 0.5)
    if key == "cosine": return abs(got - want) > 1e-5
    if key == "saturated": return abs(got - want) > 1e-4
    if key in ("least", "largest"): return not near(got, want, 0.002, 1)
    return not near(got, want, 0.02, 1e-5)


def check_numbers(c, name):
    bad, count = [], 0
    if set(c.said) != {n.output[0] for n in c.kernels}: bad.append("values are %s" % sorted(c.said))
    for n in c.kernels:
        v = c.said[n.output[0]]
        for i in range(c.layers):
            for key, want in numbers(c, n, i).items():
                got = (v["error"] if key in v["error"] else v)[key][i]
                count += 1
                if wrong(key, got, want): bad.append("%s of %s in iteration %d is %g, should be %g" % (key, n.output[0], i, got, want))
    t.case("ranges and errors are ONNX Runtime's: %s, %d numbers" % (name, count), "; ".join(bad[:3]))


def check_ends(c, name):
    out = next(n for n in c.kernels if n.output[0] == body(c.loop).output[0].name)
    bad = ["of %s samples" % c.report["samples"]] if c.report["samples"] != c.samples else []
    for key, (a, x) in ("input", c.entering(0)), ("output", c.pair(out, c.layers - 1)):
        e = np.abs(a - x)
        want = {"max": e.max(), "relative": e.max() / np.abs(x).max(), "mean": e.mean(), "cosine": cosine((a, x)), "sqnr_db": decibels(noise((a, x)))}
        bad += ["%s of the %s is %g, should be %g" % (k, key, c.report[key][k], w) for k, w in want.items() if wrong(k, c.report[key][k], w)]
    for i, layer in enumerate(c.report["layers"]):
        if wrong("sqnr_db", layer["sqnr_db"], decibels(noise(c.pair(out, i)))): bad.append("layer %d has %g dB" % (i, layer["sqnr_db"]))
    t.case("the loop's ends are ONNX Runtime's: " + name, "; ".join(bad) if len(c.report["layers"]) == c.layers else "other layers")


def check_scales(c, name):
    """The report's scales and zeros by what the model does with them: constants of Requant; means that are the floats'."""
    bad, count = [], 0
    for n in c.kernels:
        v = c.said[n.output[0]]
        if v["scales"] != [float(s) for s in meta(n)["mlo.scale"].split()]: bad.append("scales of %s" % n.output[0])
        if n.op_type == "Requant":
            bias, mult, shift = (c.stack(x) for x in n.input[1:4])
            for i in range(c.layers):
                source = c.input_scale if i == 0 and n.input[0] == c.state else c.said[body(c.loop).output[0].name]["scales"][i - 1] if n.input[0] == c.state else c.said[n.input[0]]["scales"][i]
                step, zero = source * 2 ** shift[i] / mult[i], -bias[i] * source
                said = v["scales"][i] * np.array(v["shapes"][i] if "shapes" in v else 1)
                count += len(step)
                if np.abs(step / said - 1).max() > 2 ** -13: bad.append("steps of %s" % n.output[0])
                if np.abs(np.array(v["zeros"][i]) - zero).max() > source / 2: bad.append("zeros of %s" % n.output[0])
        for i in range(c.layers):
            a, x = c.pair(n, i)
            count += a.shape[1]
            off = np.abs((a - x).mean(0)) / x.std(0)
            if off.max() > 0.1: bad.append("the mean of %s is off by %.2f standard deviations" % (n.output[0], off.max()))
    t.case("scales, shapes and zeros are the model's: %s, %d channels" % (name, count), "; ".join(bad[:3]))


def check_accumulators(c, name):
    bad, count = [], 0
    for n in c.kernels:
        v = c.said[n.output[0]]
        if ("accumulator" in v) != n.op_type.startswith("MVU"): bad.append("of %s" % n.op_type)
        if not n.op_type.startswith("MVU"): continue
        bias = c.stack(n.input[2])
        for i in range(c.layers):
            x, w = c.y[n.input[0]][:, i], c.y[n.input[1]][0, i]
            acc = x.reshape(-1, w.shape[0]).astype(np.int64) @ w.astype(np.int64) + bias[i].astype(np.int64)
            bits = 1 + max(int(acc.max()).bit_length(), int(-acc.min() - 1).bit_length() if acc.min() < 0 else 0)
            worst = (len(w) * 128 * 2 ** (c.said[n.input[0]]["bits"] - 1) + 2 ** 31 - 1).bit_length() + 1
            count += 1
            if v["accumulator"] != {"bits": worst, "used": v["accumulator"]["used"]} or v["accumulator"]["used"][i] != bits: bad.append("%s in iteration %d: %s, should be %d" % (n.output[0], i, v["accumulator"], bits))
    t.case("accumulators need the bits it says: %s, %d of them" % (name, count), "; ".join(bad[:3]) if count else "none seen")


def anchors(c):
    """value -> the value whose tokens weigh its errors: what its last reader's result is weighed by, or itself before a norm."""
    out = body(c.loop).output[0].name
    found = {out: out}
    for n in reversed(c.kernels):
        for r in n.input:
            if r == c.state or r in c.said: found.setdefault(r, r if n.op_type == "LayerNorm" else found[n.output[0]])
    return found


def gains(c, n, i, steps, metric, moves):
    """The metrics in which a kernel sees its operands."""
    name, x = n.output[0], n.input[0]
    if n.op_type.startswith("MVU"):
        w = c.y[n.input[1]][0, i].astype(np.float64) * c.stack(n.input[3])[i] / 2 ** c.stack(n.input[4])[i] / steps[x][:, None]
        if n.op_type == "MVU": w = w * steps[name]
        reach = moves[name] / ((w * w) * moves[x][:, None]).sum(0) if n.op_type == "MVUTable" else 1
        return {x: (w * w) @ (metric * reach)}
    if n.op_type == "LayerNorm": return {x: metric * (c.stack(n.input[1])[i] * steps[name]) ** 2}
    return {r: metric for r in n.input if r in steps}


def shares(c):
    """(name, iteration) -> the part of the output's noise that comes in there; the loop's input is (None, 0). See src/integer/numerics.c."""
    out, share, metric, flow, by = body(c.loop).output[0].name, {}, None, 1.0, anchors(c)
    for i in reversed(range(c.layers)):
        pairs = {n.output[0]: c.pair(n, i) for n in c.kernels}
        pairs[c.state] = c.entering(i)
        steps = {k: c.said[k]["scales"][i] * np.array(c.said[k]["shapes"][i] if "shapes" in c.said[k] else 1) * np.ones(c.y[k].shape[-1]) for k in c.said}
        steps[c.state] = np.ones(c.y[c.state].shape[-1])                   # nobody multiplies it by weights
        weigh = {k: 1 / pairs[by[k]][1].var(1, keepdims=True) for k in pairs}
        errors = {k: (weigh[k] * (a - x) ** 2).sum(0) for k, (a, x) in pairs.items()}
        squares = {k: (weigh[k] * x ** 2).sum(0) for k, (a, x) in pairs.items()}
        moves = {k: squares[k] - (weigh[k] * x).sum(0) ** 2 / weigh[k].sum() for k, (a, x) in pairs.items()}
        metrics, flows = {k: 0 * moves[k] for k in pairs}, {k: 0.0 for k in pairs}
        metrics[out], flows[out] = np.ones(len(moves[out])) if metric is None else metric, flow
        for n in reversed(c.kernels):
            name, here = n.output[0], flows[n.output[0]]
            m = metrics[name]
            mine, seen_as = (m @ errors[name]) / (m @ moves[name]), gains(c, n, i, steps, m, moves)
            if n.op_type == "Attention": seen_as.update({n.input[0]: squares[n.input[1]], n.input[1]: squares[n.input[0]]})
            parts = {r: g @ errors[r] / (m @ moves[name] if n.op_type == "Add" else g @ moves[r]) for r, g in seen_as.items()}
            own = max(0.0, 1 - sum(parts.values()) / mine)
            if n.op_type in ("Add", "LayerNorm", "Requant"): own = min(own, m @ (steps[name] ** 2 / 12) * weigh[name].sum() / (m @ errors[name]))
            share[name, i] = here * own
            for r, p in parts.items():
                through = here * (1 - own) * p / sum(parts.values())
                flows[r] += through
                metrics[r] = metrics[r] + seen_as[r] * through / (seen_as[r] @ moves[r])
        metric, flow = metrics[c.state], flows[c.state]
    share[None, 0] = flow
    return share


def check_shares(c, name):
    want, r = shares(c), c.report
    said = {(v["name"], i): v["share"][i] for v in r["values"] for i in range(c.layers)}
    said[None, 0] = r["input"]["share"]
    bad = ["%s: %.4f, should be %.4f" % (k, said[k], want[k]) for k in want if abs(said[k] - want[k]) > 0.005]
    if abs(sum(said.values()) - 1) > 1e-6: bad.append("they sum to %g" % sum(said.values()))
    for i, layer in enumerate(r["layers"]):
        mine = {k: s for k, s in said.items() if k[1] == i}
        if abs(layer["share"] - sum(mine.values())) > 1e-6: bad.append("layer %d has %g" % (i, layer["share"]))
        if abs(layer["worst"]["share"] - max(mine.values())) > 1e-6 or said.get((layer["worst"]["name"], i)) != layer["worst"]["share"]: bad.append("the worst of layer %d is %s" % (i, layer["worst"]))
    worst = max(range(c.layers), key=lambda i: r["layers"][i]["share"])
    if r["worst"] != {"iteration": worst, **r["layers"][worst]["worst"]}: bad.append("worst is %s" % r["worst"])
    t.case("shares follow the noise, and sum to one: " + name, "; ".join(bad[:3]))


def check_models():
    for name in "bert-tiny", "bert-tiny-mask", "vit-tiny", "odd":
        c = Case(*case_of(name))
        t.case("%s: the report says of which loop it is, and over how many samples" % name, "" if (c.report["loop"], c.report["samples"]) == (c.loop.name, c.samples) else "%s, %s" % (c.report["loop"], c.report["samples"]))
        for check in check_numbers, check_ends, check_scales, check_accumulators, check_shares: check(c, name)
    c = Case(*case_of("bert-tiny"), ["--max-cost", "1.3"])
    t.case("operands of 9 to 16 bits are there", "" if any(8 < v["bits"] < 16 for v in c.report["values"]) else "none")
    for check in check_numbers, check_ends, check_scales, check_accumulators, check_shares: check(c, "bert-tiny, wider operands")


def check_still():
    """A projection of nothing adds its biases alone: of none, two rows of zeros are alike; of biases that fill a power of two, the sum takes the next bit, too."""
    def still(bias):
        def change(layer, name, w): return w if layer or name[0] != "o" else np.zeros_like(w) if name == "o.w" else np.full_like(w, bias)
        c = Case(t.write("still.onnx", odd(change).SerializeToString()), case_of("odd")[1])
        last = next(n.output[0] for n in c.kernels if n.op_type == "Attention")
        return c, next(n for n in c.kernels if n.op_type == "MVU" and n.input[0] == last)
    c, o = still(0)
    error = {k: v[0] for k, v in c.said[o.output[0]]["error"].items()}
    a, x = c.pair(o, 0)
    t.case("zeros are like zeros", "" if not a.any() and not x.any() and error["cosine"] == 1 and error["max"] == 0 else str(error))
    small = odd(lambda layer, name, w: w / 2 ** 12 if name in ("o.w", "o.b") else w)               # .. nor are small numbers, whose squares add up to less than 1, unlike themselves
    check_numbers(Case(t.write("small.onnx", small.SerializeToString()), case_of("odd")[1]), "small ones")
    c, o = still(1)
    one = int(c.stack(o.input[2])[0].max())
    k = one.bit_length() - 1
    c, o = still(2 ** k / one)
    acc = c.stack(o.input[2])[0]
    t.case("a sum of 2^%d" % k, "" if acc.max() == acc.min() == 2 ** k else str(acc))
    check_accumulators(c, "biases of 2^%d" % k)


def check_around():
    """Each value of the loop once, however many nodes are behind it."""
    for behind in range(8):
        m = onnx.load(t.model("mlp-res"))
        x = m.graph.output[0].name
        for k in range(behind): m.graph.node.append(helper.make_node("Neg", [x if not k else "neg_%d" % (k - 1)], ["neg_%d" % k]))
        if behind: m.graph.output[0].name = "neg_%d" % (behind - 1)
        t.good("quantize", t.write("behind.onnx", m.SerializeToString()), "--report", t.at("behind.json"), "--onnx", "-o", t.at("behind-q.onnx"))
        with open(t.at("behind.json")) as f: said = [v["name"] for v in json.load(f)["quantize"]["values"]]
        have = [n.output[0] for n in body(scans(onnx.load(t.at("behind-q.onnx")))[0]).node if n.domain == "mlo"]
        t.case("%d nodes behind the loop: its %d values" % (behind, len(have)), "" if have and said == have else str(said))


class Spread(Decoder):
    """Rotated queries and keys whose products are the same numbers: a pair of channels of each head is `by` times larger in keys and smaller in queries,
    all of both are `small`, and the scores take it back. All of it powers of two, which floats do not notice."""
    def __init__(self, by, small):
        super().__init__(random.Random(1))
        self.layers, self.hidden, self.heads, self.kv, self.head, self.inner, self.tokens, self.norm, self.act, self.mask = 2, 24, 2, 2, 12, 24, 12, "pre", "Silu", False
        self.biased, self.rms, self.gated, self.sees, self.biases, self.turning, self.neighbours, self.qk = False, True, True, "all", None, 12, False, None
        self.by, self.small = by, small

    def number(self, v): return super().number(v / self.small ** 2 if v == self.head ** -0.5 else v)

    def draw(self, name, *shape, by=1.0):
        super().draw(name, *shape, by=by)
        if not name.endswith(("query.weight", "key.weight")): return name
        w = self.small * numpy_helper.to_array(self.inits[name])
        w[:, [0, 6, 12, 18]] *= self.by if "key" in name else 1 / self.by              # a channel and the one that it turns with, of two heads
        return self.init(name, w.astype(np.float32))


def check_spread():
    """Factors between queries and keys are chosen by what scores lose: where both stand for the same scores, they lose the same."""
    lost = []
    for by, small in (1.0, 1.0), (2.0 ** 6, 1.0), (2.0 ** -6, 1.0), (1.0, 2.0 ** -8), (2.0 ** 6, 2.0 ** -8):
        t.good("quantize", t.write("spread.onnx", Spread(by, small).model().SerializeToString()), "--max-cost", "1", "--report", t.at("spread.json"), "--onnx", "-o", t.at("spread-q.onnx"))
        with open(t.at("spread.json")) as f: report = json.load(f)["quantize"]
        lost.append([report["output"]["sqnr_db"]] + [x for v in report["values"] if v["op"].startswith("Attention") for x in v["error"]["sqnr_db"]])
        t.case("a pair %g times larger in keys, both %g times: %.1f dB of %.1f are left" % (by, small, lost[-1][0], lost[0][0]), "" if len(lost[0]) == 3 and lost[-1] == lost[0] else "%s, not %s" % (lost[-1], lost[0]))


# ---- it names who is to blame -----------------------------------------------------------------------------------------------------------

def check_blame():
    """What is planted in one layer is found there. A hidden unit that is always zero may have any weights: huge ones take the steps of all
    others' away, and change no float."""
    def spoil(at):
        def change(layer, name, w):
            if layer != at: return w
            if name == "up.b": w[5] = -50
            if name == "down.w": w[5] = 30
            return w
        return change
    _, calibration = case_of("odd")
    for at in range(3):
        path = t.write("spoiled.onnx", odd(spoil(at)).SerializeToString())
        c = Case(path, calibration)
        worst = c.report["worst"]
        last = next(n.output[0] for n in c.kernels if n.op_type == "MVU" and c.y[n.input[1]].shape[2:] == (22, 15))
        t.case("weights spoiled in layer %d are to blame" % at, "" if (worst["iteration"], worst["name"], worst["cause"]) == (at, last, "weights") else str(worst))
        told = [a for a in c.report["advice"] if "iteration %d, %s" % (at, last) in a]
        t.case("... and it says so", "" if told and c.report["output"]["sqnr_db"] < 25 else "%s at %s dB" % (c.report["advice"], c.report["output"]["sqnr_db"]))


# ---- asking for it ---------------------------------------------------------------------------------------------------------------------

def check_asking():
    path, calibration = case_of("odd")
    plain = t.call("quantize", path, "--calib", calibration)
    asked = t.call("quantize", path, "--calib", calibration, "--report", t.at("r.json"))
    with open(t.at("r.json")) as f: report = json.load(f)["quantize"]
    t.case("without --report: warnings alone on stderr", "" if plain.returncode == 0 and all(l.startswith("mlo: warning: ") for l in plain.stderr.decode().splitlines()) else plain.stderr.decode())
    t.case("the model is the same with it", "" if asked.returncode == 0 and asked.stdout == plain.stdout else "it differs")
    table = asked.stderr.decode().splitlines()
    missing = [v["name"] for v in report["values"] if not any(v["name"] in l.split() and "%.1f" % v["error"]["sqnr_db"][0] in l for l in table)]
    missing += ["layer %d" % i for i, l in enumerate(report["layers"]) if not any(x.startswith("  %d " % i) and "%.1f" % l["sqnr_db"] in x for x in table)]
    t.case("the table has every value and layer", ", ".join(missing) if table else "no table")
    t.case("enough samples, little noise: no advice", "" if report["advice"] == [] and report["output"]["sqnr_db"] > 25 else str(report["advice"]))
    p = t.call("quantize", path, "--report", t.at("r.json"))
    with open(t.at("r.json")) as f: report = json.load(f)["quantize"]
    t.case("drawn samples: it says so", "" if "--calib" in report["advice"][0] and report["advice"][0] in p.stderr.decode() else str(report["advice"]))
    np.savez(t.at("three.npz"), x=np.random.default_rng(6).standard_normal((3, 7, 15)).astype(np.float32))
    t.good("quantize", path, "--calib", t.at("three.npz"), "--report", t.at("r.json"))
    with open(t.at("r.json")) as f: report = json.load(f)["quantize"]
    t.case("three samples: it says so", "" if "3 samples" in report["advice"][0] and report["samples"] == 3 else str(report["advice"]))
    steps = []
    for times in 1, 2:                                   # the same statistics; eight samples are enough
        np.savez(t.at("times.npz"), x=np.tile(np.random.default_rng(6).standard_normal((4, 7, 15)).astype(np.float32), (times, 1, 1)))
        t.good("quantize", path, "--calib", t.at("times.npz"), "--report", t.at("r.json"))
        with open(t.at("r.json")) as f: steps.append(np.concatenate([np.ravel(v["scales"]) for v in json.load(f)["quantize"]["values"]]))
    few, many = steps
    t.case("few samples: more room, so coarser steps", "" if (few > 0.99 * many).all() and (few > 1.3 * many).sum() > 3 else str(few / many))
    p = t.call("compile", path, "--calib", calibration, "--report", t.at("c.json"), "-o", t.at("build"))
    with open(t.at("c.json")) as f: compiled = json.load(f)["quantize"]
    t.good("quantize", path, "--calib", calibration, "--report", t.at("r.json"))
    with open(t.at("r.json")) as f: report = json.load(f)["quantize"]
    t.case("compile reports the same", "" if compiled == report and "noise added" in p.stderr.decode() else "it differs")


# ---- searching -------------------------------------------------------------------------------------------------------------------------

def check_search():
    path, calibration = case_of("bert-tiny")
    plain, wide = (Case(path, calibration, ["--max-cost", n]) for n in "12")
    bits = lambda c: sum(v["bits"] for v in c.report["values"])
    off = lambda c: c.report["output"]["relative"]
    if off(wide) > 0.98 * off(plain): return t.case("wider operands help at all", "%g, %g" % (off(plain), off(wide)))
    middle = (off(plain) + off(wide)) / 2
    c = Case(path, calibration, ["--max-error", str(middle)])
    t.case("--max-error is kept", "" if off(c) <= middle else "%g is above %g" % (off(c), middle))
    check_ends(c, "--max-error")
    t.case("... by some wider operands", "" if bits(plain) < bits(c) <= bits(wide) and 1 < c.report["max_cost"] <= 2 else "%s bits at %s" % (bits(c), c.report["max_cost"]))
    model = t.read(t.at("q.onnx"))
    t.good("quantize", path, "--calib", calibration, "--max-cost", c.report["max_cost"], "--onnx", "-o", t.at("same.onnx"))
    t.case("... as --max-cost of that much", "" if t.read(t.at("same.onnx")) == model else "another model")
    if c.report["max_cost"] > 1 + 1 / 32:
        less = Case(path, calibration, ["--max-cost", str(c.report["max_cost"] - 1 / 32)])
        t.case("... and a step less does not do", "" if off(less) > middle else "%g" % off(less))
    easy = Case(path, calibration, ["--max-error", str(off(plain) * 1.01)])
    t.case("what 8 bits reach costs nothing", "" if bits(easy) == bits(plain) and easy.report["max_cost"] == 1 else "%s bits" % bits(easy))
    for flags, figure in ((["--max-error", str(off(wide) / 2)], off(wide)), (["--max-error", str(middle), "--max-cost", "1"], off(plain))):
        p = t.call("quantize", path, "--calib", calibration, *flags)
        t.case("beyond reach: %s" % " ".join(flags[2:] or ["a cost of 2"]), "" if p.returncode == 1 and b"%.3g" % figure in p.stderr and p.stderr.count(b"\n") == 1 else "status %d: %s" % (p.returncode, p.stderr.decode()))
    for bad in "0", "x", "-1", "nan": t.case("--max-error " + bad, "" if t.call("quantize", path, "--max-error", bad).returncode == 2 else "taken")
    p = t.call("quantize", path, "--max-error", "0.9")
    t.case("warned once", "" if p.returncode == 0 and p.stderr.count(b"no calibration") == 1 else p.stderr.decode() or "it says nothing")


def check_channels():
    """--weights 4: a channel's weights are clipped for themselves: where hidden channels come the other way round, so do their words, and no word is another."""
    def turned(layer, name, w): return np.ascontiguousarray(w[..., ::-1] if name in ("up.w", "up.b") else w[::-1] if name == "down.w" else w)
    words = []
    for name, model in ("odd", odd()), ("turned", odd(turned)):
        t.good("quantize", t.write(name + ".onnx", model.SerializeToString()), "--calib", case_of("odd")[1], "--weights", "4", "--onnx", "-o", t.at("four.onnx"))
        m = onnx.load(t.at("four.onnx"))
        words.append([numpy_helper.to_array(i) for i in m.graph.initializer if tuple(i.dims) == (3, 15, 22)])
    t.case("weights of 4 bits do not depend on which channel comes first", "" if [len(w) for w in words] == [1, 1] and np.array_equal(words[0][0], words[1][0][..., ::-1])
           else "%s, columns %s" % ([len(w) for w in words], sorted({int(c) for c in np.argwhere(words[0][0] != words[1][0][..., ::-1])[:, 2]})))


if __name__ == "__main__": t.main(check_models, check_still, check_around, check_spread, check_blame, check_asking, check_search, check_channels, floor=59)
