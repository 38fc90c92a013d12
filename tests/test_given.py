#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Given: models that are quantized already become integers with the scales, widths and weights that the source fixed.

    python tests/test_given.py path/to/mlo [NAME ...]

Judges: ONNX Runtime executes QDQ models, qonnx's executor QONNX ones; their values at each rounding, as integers, are what the kernels are
held to, each kernel on the source's own inputs. Of an attention its result is compared, behind scores and probabilities that it rounds as
the source does."""
import datetime
import logging
import os
import re
import numpy as np
import onnx
import onnxruntime.quantization as oq
from onnxruntime.quantization import matmul_nbits_quantizer as nbits
from onnx import helper, numpy_helper
import harness as t
from graphs import session
from hardware import Run

INPUTS = 10


def outputs(s, feed): return dict(zip([o.name for o in s.get_outputs()], s.run(None, {i.name: feed[i.name] for i in s.get_inputs()})))


def with_all_values(model):
    have = {o.name for o in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=o) for n in model.graph.node for o in n.output if o not in have)
    return model


def quantized(path, name):
    out = t.at(name + "-q.onnx")
    t.good("quantize", path, "--onnx", "-o", out)
    return onnx.load(out)


def loop_of(model):
    scan = next(n for n in model.graph.node if n.op_type == "Scan")
    return scan, next(a.g for a in scan.attribute if a.name == "body")


# ---- kernels of one iteration, one by one ------------------------------------------------------------------------------------------

class Kernels:
    """The kernels of the loop's body in iteration 0, each reading inputs of its own (a sum and the Requant behind it count as one)."""
    def __init__(self, model, feed):
        scan, body = loop_of(model)
        self.nodes = [n for n in body.node if n.domain == "mlo"]
        made = {o for n in self.nodes for o in n.output}
        g, self.cuts = onnx.GraphProto(name="kernels"), []
        types = {n.output[0]: next(a.i for a in n.attribute if a.name == "to") for n in self.nodes}
        for n in body.node:
            g.node.add().CopyFrom(n)
            for k, v in enumerate(n.input if n.domain == "mlo" else []):
                if (v in made or v == body.input[0].name) and not v.endswith("_sum"):
                    g.node[-1].input[k] = "%s.%d" % (n.output[0], k)
                    self.cuts.append((g.node[-1].input[k], v, types.get(v, 5)))
                    g.input.append(onnx.helper.make_tensor_value_info(g.node[-1].input[k], self.cuts[-1][2], None))
            if n.domain == "mlo" or n.op_type in ("QuantizeLinear", "Clip"): g.output.append(onnx.ValueInfoProto(name=n.output[0]))
        g.input.extend(body.input[1:])
        g.initializer.extend(body.initializer)
        own = {i.name for i in body.initializer} | {o for n in body.node for o in n.output} | {i.name for i in body.input}
        read = {i for n in g.node for i in n.input} - own
        g.initializer.extend(i for i in model.graph.initializer if i.name in read)
        whole = onnx.ModelProto()
        whole.CopyFrom(model)
        whole.graph.output.extend(onnx.ValueInfoProto(name=s) for s in scan.input[1:])
        values = outputs(session(whole), feed)
        self.parameters = {v.name: np.asarray(values[s][0]) for v, s in zip(body.input[1:], scan.input[1:])}
        m = onnx.helper.make_model(g, opset_imports=list(model.opset_import), functions=list(model.functions))
        m.ir_version = model.ir_version
        self.session = session(m)

    def run(self, source, tables=()):
        """source(value) -> the integers that the source model has for it. tables: kernels that are to hand out what they look up."""
        feed = dict(self.parameters)
        feed.update((n.input[-1], np.arange(feed[n.input[-1]].size).astype(feed[n.input[-1]].dtype) + np.iinfo(np.int8).min) for n in tables)
        feed.update((cut, source(v).astype(np.int8 if to == 3 else np.int16)) for cut, v, to in self.cuts)
        return outputs(self.session, feed)


def points(name, kernels, sources, loose, least=9):
    """Every kernel within a step of the source and equal in 99.5 %; `loose`: value -> (share, steps) where it cannot be, None where the source's
    numbers are not taken over."""
    off = {}
    for source in sources:
        got = kernels.run(source)
        for n in kernels.nodes:
            want = source(n.output[0])
            if want is not None and loose.get(n.output[0], ()) is not None and not n.output[0].endswith("_sum"): off.setdefault(n.output[0], []).append(np.abs(got[n.output[0]].astype(int) - want.reshape(got[n.output[0]].shape)))
    for v, d in off.items():
        d = np.concatenate(d)
        share, steps = loose.get(v, (0.995, 1))
        print("    %s %s: equal %.2f %%, at most %d steps apart" % (name, v, 100 * (d == 0).mean(), d.max()), flush=True)
        judge("%s is what the source rounds to: %s" % (v, name), d, share, steps)
    t.case("points were compared: " + name, "" if len(off) >= least else "only %s" % sorted(off))
    return got


def judge(name, d, share=0.995, steps=1): t.case(name, "" if (d == 0).mean() >= share and d.max() <= steps else "equal in %.4f, %d steps" % ((d == 0).mean(), d.max()))


def mixes(name, apart):
    """What attention's exponentials of 8 bits cost, in steps from the source's value before it is rounded: rounding alone is 0.5 at most, 0.29 in root mean
    square; a scale that is 1 % off is 1.2 and 0.35."""
    d = np.concatenate([a.ravel() for a in apart])
    most, mean = np.abs(d).max(), np.sqrt((d ** 2).mean())
    t.case("attention is the source's, before it is rounded: " + name, "" if most < 1 and mean < 0.33 and abs(d.mean()) < 0.02 else "%.3f steps apart at most, %.3f in the mean" % (most, mean))


def activation(name, kernels, sources):
    """The two roundings of GELU one by one: the index of its table is what the source rounds to before it, and the table is the function."""
    tables = [n for n in kernels.nodes if n.op_type == "RequantTable"]
    t.case("GELU has a table of the source's steps: " + name, "" if len(tables) == 1 else "%d tables" % len(tables))
    for n in tables:
        y, at = n.output[0], re.sub("_sum$", "", n.input[0])
        x = [kernels.run(s, tables)[y].astype(int) - s(at) for s in sources]
        f = [kernels.run(s)[y].astype(int) - s(y) for s in sources]
        judge("%s, before the activation, is what the source rounds to: %s" % (at, name), np.abs(np.concatenate(x)))
        judge("%s of an equal %s is the source's: %s" % (y, at, name), np.abs(np.concatenate(f))[np.concatenate(x) == 0], 1, 0)
        print("    %s index %s: equal %.2f %%" % (name, at, 100 * (np.concatenate(x) == 0).mean()), flush=True)


# ---- QDQ ---------------------------------------------------------------------------------------------------------------------------

def qdq_source(model, feed, s):
    """value of the loop's body -> its integers in the source, by the name that iteration 0 has there."""
    values, inits = outputs(s, feed), {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    zeros = {n.output[0]: inits[n.input[2]] for n in model.graph.node if n.op_type == "QuantizeLinear"}

    def of(v):
        base = re.sub("_8$|_16$", "", v)
        q = ("layer_norm" if base == "loop.carried" else base) + "_QuantizeLinear_Output"
        if q not in values: return None
        x, zero = values[q].astype(int), zeros[q]
        wide = v.endswith("_16") or v == "loop.carried"
        return x - int(zero) if wide else x - 128 if zero.dtype == np.uint8 else x
    return of


def token_feeds(n, seed=1):
    rng = np.random.default_rng(seed)
    return [{"input_ids": rng.integers(0, 1000, (1, 32))} for _ in range(n)]


def cosine(a, b): return float(a.ravel() @ b.ravel() / np.linalg.norm(a) / np.linalg.norm(b))


def whole(name, model, s, q, feeds, least):
    s2 = session(q)
    a, b = ([np.concatenate([outputs(x, f)[o.name].ravel() for f in feeds]) for o in model.graph.output[:1]][0] for x in (s, s2))
    t.case("end to end: " + name, "" if cosine(a, b) >= least else "cosine %.5f" % cosine(a, b))
    print("    %s end to end: cosine %.5f, largest difference %.2f %% of the largest value" % (name, cosine(a, b), 100 * np.abs(a - b).max() / np.abs(a).max()), flush=True)


def qdq(name, path, loose, inputs=INPUTS):
    model, feeds = onnx.load(path), token_feeds(inputs)
    q, s = quantized(path, name), session(with_all_values(model))
    kernels = Kernels(q, feeds[0])
    sources = [qdq_source(model, f, s) for f in feeds]
    got = points(name, kernels, sources, loose)
    activation(name, kernels, sources)
    whole(name, model, s, q, feeds, 0.998)
    return model, got


# one step before the activation is up to so many of those behind it
LOOSE = {"gelu": (0.995, 2)}


def check_qdq():
    model, got = qdq("bert-tiny-qdq", t.model("bert-tiny-qdq"), LOOSE, 100)
    inits = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    pairs = {"linear_sum_w8": "val_37", "linear_1_sum_w8": "val_45", "linear_2_sum_w8": "val_53", "linear_3_sum_w8": "val_67", "linear_4_sum_w8": "val_71", "linear_5_sum_w8": "val_80"}
    wrong = [k for k, v in pairs.items() if not np.array_equal(got[k], inits[v + "_quantized"])]
    t.case("weights are the source's integers, bit for bit", ", ".join(wrong))


def check_lowest():
    """The lowest integer of a weight's type, which symmetric quantization never gives, is taken over, too."""
    m, name = onnx.load(t.model("bert-tiny-qdq")), "val_37_quantized"
    tensor = next(i for i in m.graph.initializer if i.name == name)
    weights = numpy_helper.to_array(tensor).copy()
    weights[3, 5] = weights[7, :4] = -128
    tensor.CopyFrom(numpy_helper.from_array(weights, name))
    q = quantized(t.write("lowest.onnx", m.SerializeToString()), "lowest")
    made = Kernels(q, token_feeds(1)[0]).run(lambda v: np.zeros((1, 32, 256 if v.startswith("gelu") else 64)))
    got = made.get("linear_sum_wc", made["linear_sum_w8"])
    t.case("weights of -128 are the source's", "" if np.array_equal(got, weights) else "%d of %d differ" % ((got != weights).sum(), got.size))


def check_zero_points():
    """Scores are rounded as in the source if they are products of its own integers, probabilities if they weigh those: a zero point of any size hides them."""
    source = onnx.load(t.model("bert-tiny-qdq"))
    for what, layers, op in ("queries", (0, 6), "AttentionProbs"), ("keys", (1, 7), "AttentionProbs"), ("values", (2, 8), "Attention"):
        names = ["linear%s_zero_point" % ("_%d" % k if k else "") for k in layers]
        for zero in 1, -1:
            m = onnx.ModelProto.FromString(source.SerializeToString())
            for i in m.graph.initializer:
                if i.name in names: i.CopyFrom(numpy_helper.from_array(np.int8(zero), i.name))
            q = quantized(t.write("zero.onnx", m.SerializeToString()), "zero")
            got = [n.op_type for n in loop_of(q)[1].node if n.op_type.startswith("Attention")]
            t.case("%s with a zero point of %d: %s" % (what, zero, op), "" if got == [op] else str(got))


def check_tops():
    """Steps that a model clips at a number of them: the fewest bits that hold it, the power of two itself among them."""
    h, layers, c, hidden = onnx.helper, 3, 8, 12
    for top in 15, 16, 17:
        rng, nodes, x = np.random.default_rng(3), [], "x0"
        inits = {"step": np.float32(0.125), "lo": np.float32(-top), "hi": np.float32(top), "one": np.ones(c, np.float32), "none": np.zeros(c, np.float32)}
        for i in range(layers):
            inits["up%d" % i], inits["down%d" % i] = (rng.standard_normal(s).astype(np.float32) / 3 for s in ((c, hidden), (hidden, c)))
            for op, ins, out in (("LayerNormalization", [x, "one", "none"], "n"), ("Div", ["n", "step"], "s"), ("Round", ["s"], "r"), ("Clip", ["r", "lo", "hi"], "k"), ("Mul", ["k", "step"], "q"),
                                 ("MatMul", ["q", "up%d" % i], "h"), ("Relu", ["h"], "a"), ("MatMul", ["a", "down%d" % i], "y"), ("Add", [x, "y"], "x%d" % (i + 1))):
                name = lambda v: v if v in inits or v[0] == "x" else "%s.%d" % (v, i)
                nodes.append(h.make_node(op, [name(v) for v in ins], [name(out)]))
            x = "x%d" % (i + 1)
        form = lambda n: h.make_tensor_value_info(n, 1, [1, 5, c])
        m = h.make_model(h.make_graph(nodes, "tops", [form("x0")], [form(x)], [numpy_helper.from_array(a, k) for k, a in inits.items()]), opset_imports=[h.make_opsetid("", 18)], ir_version=9)
        norm = next(n for n in loop_of(quantized(t.write("tops.onnx", m.SerializeToString()), "tops"))[1].node if n.op_type == "LayerNorm")
        said, bits = {a.name: a.i for a in norm.attribute}, 1 + top.bit_length()
        t.case("clipped at %d steps: %d bits" % (top, bits), "" if (said["lo"], said["hi"]) == (-(1 << bits - 1), (1 << bits - 1) - 1) else str(said))


class Reader(oq.CalibrationDataReader):
    def __init__(self): self.feeds = iter(token_feeds(4, 3))
    def get_next(self): return next(self.feeds, None)


def variant(name, opset=18, **options):
    """bert-tiny as ONNX Runtime's static quantization writes it."""
    logging.disable(logging.CRITICAL)
    m = onnx.load(t.model("bert-tiny"))
    m.opset_import[0].version = opset                     # from 18 to 21 none of its operators changed
    source, path = t.write(name + "-float.onnx", m.SerializeToString()), t.at(name + ".onnx")
    options.setdefault("quant_format", oq.QuantFormat.QDQ)
    oq.quantize_static(source, path, Reader(), **options)
    return path


S8, U8, S4 = oq.QuantType.QInt8, oq.QuantType.QUInt8, oq.QuantType.QInt4
BOTH = {"ActivationSymmetric": True, "WeightSymmetric": True}


def check_variants():
    qdq("per tensor", variant("per-tensor", activation_type=S8, weight_type=S8, extra_options=BOTH), dict(LOOSE, linear_3=(0.995, 2)))       # one step of its sum is more than one of its own
    # zero points of queries, values and their mix are not taken over: those three are other numbers than the source's
    own = {"linear": None, "linear_2": None, "view_3": None, "linear_3": None, "gelu": (0.995, 3)}
    qdq("asymmetric", variant("asymmetric", activation_type=U8, weight_type=S8, extra_options={"WeightSymmetric": True}), own)
    for name, options in (("4-bit weights", dict(opset=21, activation_type=S8, weight_type=S4)), ("quantized operators", dict(quant_format=oq.QuantFormat.QOperator, activation_type=S8, weight_type=S8))):
        path = variant(name.replace(" ", "-"), op_types_to_quantize=["MatMul"], extra_options=BOTH, **options)
        model = onnx.load(path)
        whole(name, model, session(model), quantized(path, name.replace(" ", "-")), token_feeds(INPUTS), 0.998)
    for block, form, anew in (256, oq.QuantFormat.QDQ, 0), (32, oq.QuantFormat.QDQ, 12), (32, oq.QuantFormat.QOperator, 0):
        for symmetric in (True, False):
            model = onnx.load(t.model("bert-tiny"))
            model.opset_import[0].version = 21
            nbits.MatMulNBitsQuantizer(model, algo_config=nbits.DefaultWeightOnlyQuantConfig(block_size=block, is_symmetric=symmetric, quant_format=form, op_types_to_quantize=("MatMul",))).process()
            path = t.write("blocks.onnx", model.SerializeToString())
            name = "%s%s weights in blocks of %d" % ("" if symmetric else "asymmetric ", form.name, block)
            said = anew_said(path)
            whole(name, model, session(model), quantized(path, "blocks"), token_feeds(INPUTS), 0.998)
            if anew: t.case("... are quantized anew, with a word", "" if said == (anew // 2, "its scales are neither one per tensor nor one per channel") else str(said))
            else: t.case("... go as they came", "" if not said or not symmetric else str(said))
    path = variant("offset-weights", activation_type=U8, weight_type=U8)
    whole("weights that need 9 bits", onnx.load(path), session(onnx.load(path)), quantized(path, "nine"), token_feeds(INPUTS), 0.998)
    said = anew_said(path)
    t.case("... are quantized anew, with a word", "" if said and said[1] == "less their zero point its integers take more than 8 bits" else str(said))
    # on processors without VNNI ONNX Runtime adds pairs of uint8 x int8 in 16 bits, and saturates: weights of 7 bits
    for name, options in ("signed", dict(weight_type=S8, reduce_range=True)), ("unsigned", dict(weight_type=U8)), ("per channel", dict(weight_type=S8, per_channel=True, reduce_range=True)):
        oq.quantize_dynamic(t.model("bert-tiny"), t.at("dynamic.onnx"), **options)
        model = onnx.load(t.at("dynamic.onnx"))
        whole("dynamic quantization, " + name, model, session(model), quantized(t.at("dynamic.onnx"), "dynamic"), token_feeds(INPUTS), 0.998)
    pixels = [{"pixel_values": np.random.default_rng(k).standard_normal((1, 3, 96, 96)).astype(np.float32)} for k in range(INPUTS)]
    for name, options in ("signed", dict(weight_type=S8, reduce_range=True)), ("unsigned", dict(weight_type=U8)):
        oq.quantize_dynamic(os.path.join(t.tests, "models/defaults/vit-model.onnx"), t.at("dynamic.onnx"), **options)
        vit = onnx.load(t.at("dynamic.onnx"))
        t.case("... its image goes through a ConvInteger", "" if any(n.op_type == "ConvInteger" for n in vit.graph.node) else "it does not")
        t.good("quantize", t.at("dynamic.onnx"), "--shape", "pixel_values=1x3x96x96", "--onnx", "-o", t.at("images.onnx"))
        whole("dynamic quantization of images, " + name, vit, session(vit), onnx.load(t.at("images.onnx")), pixels, 0.99)
    by = {n.output[0]: n for n in model.graph.node if n.op_type == "DynamicQuantizeLinear"}
    for n in [n for n in model.graph.node if n.op_type == "Add"]:                                 # residual sums read the rounded value, too
        for d in by.values():
            if d.input[0] not in n.input: continue
            model.graph.node.insert(list(model.graph.node).index(n), helper.make_node("DequantizeLinear", list(d.output), ["rounded_" + n.name], "rounded_" + n.name))
            n.input[list(n.input).index(d.input[0])] = "rounded_" + n.name
    p = t.call("quantize", t.write("rounded.onnx", model.SerializeToString()))
    t.case("a dynamic rounding that something else reads is refused", "" if p.returncode == 4 and b"its scale depends on the data" in p.stderr else p.stderr.decode()[-200:] or "it says nothing")


def anew_said(path):
    """(how many weights are quantized anew, why the first is); None: none."""
    p = t.call("quantize", path, "-o", t.at("anew.json"), text=True)
    found = re.search(r"(\d+) weights are quantized anew.*: (.*)", p.stderr)
    return (int(found[1]), found[2]) if found else None


def integer_products(model):
    """The same with MatMulInteger, Cast and Mul for each product of quantized values and weights, scales known."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    inits, by, N, n_made = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}, {o: n for n in model.graph.node for o in n.output}, onnx.helper.make_node, 0
    for n in model.graph.node:
        a, w = (by.get(v) for v in n.input[:2]) if n.op_type == "MatMul" else (None, None)
        if not a or not w or {a.op_type, w.op_type} != {"DequantizeLinear"} or w.input[0] not in inits: out.graph.node.add().CopyFrom(n); continue
        y, n_made = n.output[0], n_made + 1
        scale = numpy_helper.from_array(inits[a.input[1]] * inits[w.input[1]], y + "_scales")
        out.graph.initializer.append(scale)
        out.graph.node.extend([N("MatMulInteger", [a.input[0], w.input[0], a.input[2], w.input[2]], [y + "_i"], y + "_i"), N("Cast", [y + "_i"], [y + "_f"], y + "_f", to=1), N("Mul", [y + "_f", scale.name], [y], y)])
    return out, n_made


def check_integer_products():
    for name, options in ("per tensor", {}), ("per channel", {"per_channel": True}):
        path = variant("products-" + name.replace(" ", "-"), op_types_to_quantize=["MatMul"], activation_type=S8, weight_type=S8, extra_options=BOTH, **options)
        (model, n), feeds = integer_products(onnx.load(path)), token_feeds(INPUTS)
        q = quantized(t.write("products.onnx", model.SerializeToString()), "products")
        whole("MatMulInteger, " + name, model, session(model), q, feeds, 0.998)
        plain = session(quantized(path, "plain"))
        why = "" if all(np.array_equal(list(outputs(plain, f).values())[0], list(outputs(session(q), f).values())[0]) for f in feeds[:3]) else "they differ"
        t.case("%d products become the integers of QDQ: %s" % (n, name), why if n >= 12 else "%d products" % n)
        for node in (x for x in model.graph.node if x.op_type == "MatMulInteger"):                 # one zero for all columns is none, too
            model.graph.initializer.append(numpy_helper.from_array(np.int8(0), node.output[0] + "_zero"))
            node.input[3] = node.output[0] + "_zero"
        t.good("quantize", "-", "--onnx", "-o", t.at("one-q.onnx"), input=model.SerializeToString())     # in memory another tensor is right behind it
        one = onnx.load(t.at("one-q.onnx"))
        same = all(np.array_equal(list(outputs(session(one), f).values())[0], list(outputs(session(q), f).values())[0]) for f in feeds[:2])
        t.case("and with one zero point for all columns: " + name, "" if same else "they differ")


# ---- QONNX -------------------------------------------------------------------------------------------------------------------------

MODES = "ROUND", "HALF_EVEN", "FLOOR", "CEIL", "UP", "DOWN", "HALF_UP", "HALF_DOWN", "floor"
OPSETS = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("qonnx.custom_op.general", 1)]


def operators(x, cases):
    """mlo run of many operators on x: (op, parameters, attributes) -> arrays."""
    g, names = onnx.GraphProto(name="operators"), {}
    g.input.append(onnx.helper.make_tensor_value_info("x", 1, x.shape))
    for k, (op, parameters, attributes) in enumerate(cases):
        for v in parameters:
            if v.tobytes() + bytes(v.shape) not in names:
                names[v.tobytes() + bytes(v.shape)] = "p%d" % len(names)
                g.initializer.append(numpy_helper.from_array(v, "p%d" % (len(names) - 1)))
        g.node.append(onnx.helper.make_node(op, ["x"] + [names[v.tobytes() + bytes(v.shape)] for v in parameters], ["y%d" % k], domain="qonnx.custom_op.general", **attributes))
        g.output.append(onnx.helper.make_tensor_value_info("y%d" % k, 1, None))
    m = onnx.helper.make_model(g, opset_imports=OPSETS, ir_version=10)
    np.savez(t.at("x.npz"), x=x)
    t.good("run", t.write("operators.onnx", m.SerializeToString()), "--inputs", t.at("x.npz"), "--outputs", t.at("y.npz"))
    with np.load(t.at("y.npz")) as z: return [z["y%d" % k] for k in range(len(cases))]


def check_operators():
    from qonnx.custom_op.general.quant import quant
    from qonnx.custom_op.general.bipolar_quant import binary_quant
    from qonnx.custom_op.general.trunc import trunc_v1, trunc_v2
    rng, f = np.random.default_rng(3), np.float32
    x = (rng.standard_normal((2, 3, 40)) * 3).astype(f)
    x[0, :, :20] = rng.integers(-40, 40, (3, 20)) / f(8)                                # ties at scales that are powers of two
    scales, zeros = [np.array(0.25, f), np.array([[0.5], [0.125], [0.3]], f), np.array([0.7], f)], [np.array(0, f), np.array([[1], [0], [-2]], f)]
    cases, want = [], []
    for mode in MODES:
        for signed in (0, 1):
            for narrow in (0, 1):
                for bits in (1, 2, 3.5, 4, 6.25, 8):
                    s, z = scales[rng.integers(3)], zeros[rng.integers(2)]
                    cases.append((("Quant", "IntQuant")[narrow], [s, z, np.array(bits, f)], dict(signed=signed, narrow=narrow, rounding_mode=mode)))
                    want.append(quant(x, s, z, np.array(bits, f), signed, narrow, mode))
                for bits in (2, 5):
                    s, z, o = scales[rng.integers(3)], zeros[rng.integers(2)], f(4)
                    cases.append(("Trunc", [s, z, np.array(8, f), s * o, np.array(bits, f)], dict(rounding_mode=mode, signed=signed, narrow=narrow)))
                    want.append(trunc_v2(x, s, z, np.array(8, f), narrow, signed, s * o, np.array(bits, f), mode))
        for bits in (4, 7):
            s, z = scales[rng.integers(3)], zeros[rng.integers(2)]
            cases.append(("Trunc", [s, z, np.array(8, f), np.array(bits, f)], dict(rounding_mode=mode)))
            want.append(trunc_v1(x, s, z, np.array(8, f), np.array(bits, f), mode))
    for s in scales:
        cases.append(("BipolarQuant", [s], {}))
        want.append(binary_quant(x, s))
    for name in "Quant", "IntQuant", "Trunc", "BipolarQuant":
        got = [(c, a, b) for c, a, b in zip(cases, operators(x, cases), want) if c[0] == name]
        wrong = ["%s %s: %d of %d, e.g. %g not %g" % (c[1], c[2], (a != b).sum(), a.size, a[a != b][0], b[a != b][0]) for c, a, b in got if not np.array_equal(a, b)]
        t.case("mlo run of %s is qonnx's: %d cases" % (name, len(got)), "; ".join(wrong[:3]))

def qonnx_values(path, feeds):
    """Every value of a model on these inputs, by qonnx's executor."""
    import qonnx.core.onnx_exec as executor
    from qonnx.core.modelwrapper import ModelWrapper
    from qonnx.transformation.infer_shapes import InferShapes
    make = executor.qonnx_make_model

    def older(*args, **options):                            # onnx writes a newer IR than ONNX Runtime reads
        m = make(*args, **options)
        m.ir_version = 10
        return m
    executor.qonnx_make_model = older
    try: return [executor.execute_onnx(ModelWrapper(path).transform(InferShapes()), f, return_full_exec_context=True) for f in feeds]
    finally: executor.qonnx_make_model = make


def chains(model):
    """Quant as the chain of standard operators that it is documented as."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    inits = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    for n in model.graph.node:
        if n.op_type != "Quant": out.graph.node.add().CopyFrom(n); continue
        y, a, bits = n.output[0], {x.name: x.i for x in n.attribute}, float(inits[n.input[3]])
        hi = 2 ** (bits - a["signed"]) - 1 - (0 if a["signed"] else a["narrow"])
        lo = (-2 ** (bits - 1) + a["narrow"]) if a["signed"] else 0
        for k, v in (("lo", lo), ("hi", hi)): out.graph.initializer.append(numpy_helper.from_array(np.float32(v), y + k))
        N = onnx.helper.make_node
        out.graph.node.extend([N("Div", [n.input[0], n.input[1]], [y + "d"], y + "d"), N("Round", [y + "d"], [y + "r"], y + "r"), N("Clip", [y + "r", y + "lo", y + "hi"], [y + "c"], y + "c"), N("Mul", [y + "c", n.input[1]], [y], y)])
    return out


def other_weights(model, version):
    """bert-tiny-qonnx with weights that are bipolar, cut off by Trunc, or rounded otherwise; and the values of the first layer's weights, in order."""
    out, order = onnx.ModelProto(), []
    out.CopyFrom(model)
    del out.graph.node[:]
    next(o for o in out.opset_import if o.domain).version = version
    inits = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}

    def number(name, v):
        out.graph.initializer.append(numpy_helper.from_array(np.float32(v), name))
        return name
    for n in model.graph.node:
        if n.op_type != "Quant" or n.input[0] not in inits: out.graph.node.add().CopyFrom(n); continue
        k, y, N = len(order) % 6, n.output[0], onnx.helper.make_node
        order.append(y)
        attributes = {"signed": 1, "narrow": 1, "rounding_mode": ("HALF_UP", "FLOOR", "DOWN", "ROUND", "ROUND", "ROUND")[k]}
        if k == 4: out.graph.node.append(N("BipolarQuant", [n.input[0], number(y + "s", inits[n.input[1]] * 30)], [y], y, domain=n.domain)); continue
        truncated = k == (3 if version == 2 else 5)
        out.graph.node.append(N("Quant", n.input, [y + "_q" if truncated else y], y + "_q", domain=n.domain, **attributes))
        if truncated and version == 2: out.graph.node.append(N("Trunc", [y + "_q", n.input[1], n.input[2], n.input[3], number(y + "o", inits[n.input[1]] * 8), number(y + "b", 5)], [y], y, domain=n.domain, rounding_mode="FLOOR", signed=1, narrow=0))
        if truncated and version == 1: out.graph.node.append(N("Trunc", [y + "_q", number(y + "s", inits[n.input[1]] * 4), n.input[2], n.input[3], number(y + "b", 6)], [y], y, domain=n.domain, rounding_mode="CEIL"))
    return out, order[:6]


def check_other_weights():
    path = t.model("bert-tiny-qonnx")
    for version in 1, 2:                                                            # of Trunc
        model, weights = other_weights(onnx.load(path), version)
        name = "other-weights-%d" % version
        file = t.write(name + ".onnx", model.SerializeToString())
        q = quantized(file, name)
        feeds = [{"x": np.random.default_rng(1).standard_normal((1, 32, 64)).astype(np.float32)}]
        values = qonnx_values(file, feeds)
        inits = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
        body, why = Kernels(q, feeds[0]), []
        got = body.run(lambda v: np.zeros((1, 32, 256 if v == "relu" else 64)))
        by = {n.output[0]: n for n in model.graph.node}
        for k, y in enumerate(weights):
            n, layer = by[y], "linear" + ("_%d" % k if k else "")
            scale = inits[n.input[4]] if n.op_type == "Trunc" and len(n.input) == 6 else inits[n.input[1]]
            want, mine = np.rint(values[0][y] / scale).T, got.get(layer + "_wc", got[layer + "_w8"])
            if not np.array_equal(want, mine): why.append("%s %s: %d of %d" % (layer, n.op_type, (want != mine).sum(), want.size))
        t.case("weights are qonnx's integers, with BipolarQuant and Trunc %d" % version, "; ".join(why))
        a, b = values[0]["layer_norm_3"], outputs(session(q), feeds[0])["layer_norm_3"]
        t.case("end to end: " + name, "" if cosine(a, b) > 0.999 else "cosine %.5f" % cosine(a, b))


def check_qonnx():
    path = t.model("bert-tiny-qonnx")
    model, q = onnx.load(path), quantized(path, "qonnx")
    rng = np.random.default_rng(1)
    feeds = [{"x": rng.standard_normal((1, 32, 64)).astype(np.float32)} for _ in range(100)]
    scale = next(numpy_helper.to_array(i) for i in q.graph.initializer if i.name.endswith("x_q_mlo_scale"))
    by = {n.output[0]: n for n in model.graph.node}
    heads, keys, same = (lambda x: x.transpose(0, 2, 1, 3)), (lambda x: x.transpose(0, 3, 1, 2)), (lambda x: x)
    where = {"loop.carried_8": ("_symbolic", same), "linear": ("_symbolic_6", heads), "linear_1": ("_symbolic_7", keys), "linear_2": ("_symbolic_9", heads),
             "_unsafe_view": ("_symbolic_10", same), "layer_norm_8": ("_symbolic_12", same), "relu": ("_symbolic_14", same)}
    steps = {n.output[0]: float(p.value.split()[0]) for n in loop_of(q)[1].node for p in n.metadata_props if p.key == "mlo.scale"}

    def source(values):
        def of(v):
            if v in where:
                x, move = values[where[v][0]], where[v][1]
                return move(np.rint(x / values[by[where[v][0]].input[1]])).reshape(1, 32, -1).astype(int)
            x = values["x"] / scale if v == "loop.carried" else values[v] / steps[v]
            return np.clip(np.rint(x), -32768, 32767).astype(int)
        return of
    fake = chains(model)
    fake.ir_version = min(fake.ir_version, 10)
    plain = fake.SerializeToString()
    s2, s3 = session(with_all_values(fake)), session(quantized(t.write("chains.onnx", plain), "chains"))
    inits = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    values = [{**inits, **f, **outputs(s2, f)} for f in feeds]                  # as qonnx's executor, which takes longer: the first five tell
    of_qonnx, few = qonnx_values(path, feeds[:5]), feeds[:5]
    t.case("a chain of Div, Round, Clip, Mul is what qonnx executes", ", ".join(k for k in by for a, b in zip(of_qonnx, values) if not np.allclose(a[k], b[k], atol=1e-4)))
    kernels = Kernels(q, feeds[0])
    kernels.nodes = [n for n in kernels.nodes if n.output[0] in where]              # the others are float in the source
    sources = [source(v) for v in values]
    got = [kernels.run(f) for f in sources]
    for v in where:
        d = np.concatenate([np.abs(g[v].astype(int).reshape(1, 32, -1) - f(v)) for g, f in zip(got, sources)])
        inside = d[d < 100]                                                         # what the 16-bit stream clips is not about rounding
        print("    bert-tiny-qonnx %s: equal %.2f %%, at most %d steps apart" % (v, 100 * (d == 0).mean(), inside.max()), flush=True)
        t.case("%s is what the source rounds to: bert-tiny-qonnx" % v, "" if (d == 0).mean() >= 0.995 and inside.max() <= 1 and (d >= 100).mean() < 1e-4 else "equal in %.3f, %d steps" % ((d == 0).mean(), d.max()))
    s = session(q)
    a, b = (np.concatenate([x.ravel() for x in y]) for y in ([v["layer_norm_3"] for v in of_qonnx], [outputs(s, f)["layer_norm_3"] for f in few]))
    t.case("end to end: bert-tiny-qonnx", "" if cosine(a, b) > 0.999 else "cosine %.5f" % cosine(a, b))
    t.case("and becomes the same integers", "" if all(np.array_equal(outputs(s3, f)["layer_norm_3"], outputs(s, f)["layer_norm_3"]) for f in few) else "they differ")
    for n in model.graph.node:                                                      # without a sign narrow takes the top: 254 of 255
        if n.op_type == "Quant" and not next(a.i for a in n.attribute if a.name == "signed"): next(a for a in n.attribute if a.name == "narrow").i = 1
    less, want = (session(quantized(t.write("narrow.onnx", m.SerializeToString()), "narrow")) for m in (model, chains(model)))
    t.case("without a sign, and narrow: the same integers as of the chain", "" if all(np.array_equal(outputs(less, f)["layer_norm_3"], outputs(want, f)["layer_norm_3"]) for f in few) else "they differ")
    np.savez(t.at("x.npz"), **few[0])
    for stage in "read", "roll":
        t.good(stage, path, "--onnx", "-o", t.at("stage.onnx"))
        t.good("run", t.at("stage.onnx"), "--inputs", t.at("x.npz"), "--outputs", t.at("y.npz"))
        with np.load(t.at("y.npz")) as z: off = np.abs(z["layer_norm_3"] - of_qonnx[0]["layer_norm_3"]).max()
        t.case("mlo run of bert-tiny-qonnx is what qonnx executes, after " + stage, "" if off < 1e-3 else "%g apart" % off)


def check_brevitas():
    """Brevitas' export through TorchScript: 8-bit activations, 8-bit weights, 4-bit ones per channel."""
    path = t.model("brevitas-qonnx")
    model, q = onnx.load(path), quantized(path, "brevitas")
    x, y = model.graph.input[0].name, model.graph.output[0].name
    feeds = [{x: np.random.default_rng(k).standard_normal((1, 8, 16)).astype(np.float32)} for k in range(20)]
    values, inits, by = qonnx_values(path, feeds), {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}, {n.output[0]: n for n in model.graph.node}
    body = loop_of(q)[1]
    steps = {n.output[0]: float(p.value.split()[0]) for n in body.node for p in n.metadata_props if p.key == "mlo.scale"}
    steps["loop.carried"] = float(next(numpy_helper.to_array(i) for i in q.graph.initializer if i.name.endswith(x + "_q_mlo_scale")))
    where = dict(zip(("loop.carried_8", "/0/query/Add_output_0", "/0/key/Add_output_0", "/0/value/Add_output_0", "/0/Reshape_3_output_0", "/0/ln1/LayerNormalization_output_0_8",
                      "/0/relu/act_quant/activation_impl/Relu_output_0"), ("input", "qq", "qk", "qv", "mix", "mid", "relu")))

    def source(values):
        def of(v):
            if v not in where: return np.clip(np.rint(values[x if v == "loop.carried" else v] / steps[v]), -32768, 32767).astype(int)
            n = by["/0/%s/act_quant/export_handler/Quant_output_0" % where[v]]
            i = np.rint(values[n.output[0]] / inits[n.input[1]]).astype(int)
            return (i.transpose(0, 2, 1, 3) if i.ndim == 4 else i).reshape(1, 8, -1) - (0 if next(a.i for a in n.attribute if a.name == "signed") else 128)
        return of
    kernels = Kernels(q, feeds[0])
    sources = [source(v) for v in values]
    loose = {n.output[0]: None for n in kernels.nodes if n.output[0] not in where}
    # an attention's own arithmetic, which mixes() judges before rounding; and a float bias is rounded to steps of the sum, which 4-bit weights make coarse
    loose.update({"/0/Reshape_3_output_0": (0.9, 1), "/0/relu/act_quant/activation_impl/Relu_output_0": (0.98, 1)})
    got = points("brevitas", kernels, sources, loose, len(where))
    n = by["/0/%s/act_quant/export_handler/Quant_output_0" % where["/0/Reshape_3_output_0"]]
    exact = [np.clip(v[n.input[0]].reshape(1, 8, -1) / inits[n.input[1]], -128, 127) for v in values]
    mixes("brevitas", [kernels.run(s)["/0/Reshape_3_output_0"].reshape(1, 8, -1) - x for s, x in zip(sources, exact)])
    wrong = []
    for name, bits in ("query", 8), ("key", 8), ("value", 8), ("dense", 8), ("up", 4), ("down", 4):
        n = by["/0/%s/weight_quant/export_handler/Quant_output_0" % name]
        want = np.rint(values[0][n.output[0]] / inits[n.input[1]]).T
        if not np.array_equal(got["/0/%s/Add_output_0_wc" % name], want) or np.abs(want).max() != 2 ** (bits - 1) - 1: wrong.append(name)
    t.case("weights are the source's integers, bit for bit: brevitas", ", ".join(wrong))
    s = session(q)
    a, b = np.concatenate([v[y].ravel() for v in values]), np.concatenate([outputs(s, f)[y].ravel() for f in feeds])
    t.case("end to end: brevitas", "" if cosine(a, b) > 0.999 else "cosine %.5f" % cosine(a, b))
    print("    brevitas end to end: cosine %.5f" % cosine(a, b), flush=True)


def check_refusals():
    """Activations have one scale, and zero points that are whole steps: what has others is told, with its node."""
    def brevitas(at, value, where):
        """brevitas-qonnx whose Quants after `where`, in all layers, have this as their input `at`."""
        m = onnx.load(t.model("brevitas-qonnx"))
        m.graph.initializer.append(numpy_helper.from_array(np.asarray(value, np.float32), "other"))
        for n in m.graph.node:
            if n.op_type == "Quant" and where in n.output[0]: n.input[at] = "other"
        return t.write("other.onnx", m.SerializeToString())
    for what, at, value, words in (("a scale per channel", 1, np.full(16, 0.05), "scale per channel"), ("a zero point per channel", 2, np.zeros(16), "scale per channel"),
                                   ("half a step as a zero point", 2, 0.5, "a zero point of 0.5")):
        p = t.call("quantize", brevitas(at, value, "/mid/act"), "-o", t.at("never.onnx"), text=True)
        told = "/mid/act_quant" in p.stderr and words in p.stderr
        t.case("activations with %s" % what, "" if p.returncode == 4 and told else "status %d: %s" % (p.returncode, p.stderr[-300:]))
    def refused(what, where, words, change):
        """A case: brevitas-qonnx, each Quant after `where` changed (change gets which layer's it is), is refused by the node."""
        m = onnx.load(t.model("brevitas-qonnx"))
        for layer, n in enumerate(n for n in m.graph.node if n.op_type == "Quant" and where in n.output[0]): change(m, n, layer)
        p = t.call("quantize", t.write("other.onnx", m.SerializeToString()), "-o", t.at("never.onnx"), text=True)
        t.case("a Quant with %s" % what, "" if p.returncode == 4 and where in p.stderr and words in p.stderr else "status %d: %s" % (p.returncode, p.stderr[-300:]))
    def constant(at, value):
        def change(m, n, layer):
            m.graph.initializer.append(numpy_helper.from_array(np.asarray(value(layer) if callable(value) else value, np.float32), "other_%d" % layer))
            n.input[at] = "other_%d" % layer
        return change
    def sideways(m, n, layer): next(a for a in n.attribute if a.name == "rounding_mode").s = b"SIDEWAYS"
    refused("a rounding mode of its own", "/mid/act", "its rounding mode is unknown; ROUND, FLOOR", sideways)
    for bits in (0, 25, 4.5): refused("%s bits" % bits, "/mid/act", "a width of %s bits; whole numbers from 1 to 24" % bits, constant(3, bits))
    for bits in (1, 24):
        p = t.call("quantize", brevitas(3, bits, "/mid/act"), "-o", t.at("never.onnx"), text=True)
        t.case("a Quant with %d bits is none of those" % bits, "" if "a width of" not in p.stderr else p.stderr[-300:])
    refused("another width in each layer", "/mid/act", "input 3 is not one constant for all layers", constant(3, lambda layer: 4 + layer % 2))
    m = onnx.load(t.model("brevitas-qonnx"))
    for layer, n in enumerate(n for n in m.graph.node if n.op_type == "Quant" and "/dense/weight" in n.output[0]): constant(1, np.linspace(0.01, 0.1, 16)[None])(m, n, layer)
    said = anew_said(t.write("other.onnx", m.SerializeToString()))
    t.case("weights with a scale per input channel are quantized anew, with a word", "" if said and said[1] == "it has a scale per input channel" else str(said))
    for k in range(4): refused("no input %d" % k, "/mid/act", "it has no input %d" % k, lambda m, n, layer, k=k: n.input.__setitem__(k, ""))


def check_chain():
    """Sums of a value with itself, one behind the other, rounded: what a mask might be made of is looked at once, not along each of 2^60 ways."""
    m = onnx.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", "defaults", "qdq-gpt2.onnx"))
    sums = [helper.make_node("Cast", [m.graph.input[0].name], ["sum_0"], to=1)] + [helper.make_node("Add", ["sum_%d" % k] * 2, ["sum_%d" % (k + 1)]) for k in range(60)]
    sums += [helper.make_node("QuantizeLinear", ["sum_60", "step", "none"], ["ints"]), helper.make_node("DequantizeLinear", ["ints", "step", "none"], ["rounded"])]
    m.graph.initializer.extend([numpy_helper.from_array(np.float32(1), "step"), numpy_helper.from_array(np.int8(0), "none")])
    m.graph.output.append(helper.make_tensor_value_info("rounded", 1, [1, 14]))
    nodes = sums + list(m.graph.node)
    del m.graph.node[:]
    m.graph.node.extend(nodes)
    p = t.call("quantize", t.write("chain.onnx", m.SerializeToString()), "-o", t.at("chain.json"), text=True, timeout=60)
    t.case("a chain of sums, rounded", p.stderr[-300:] if p.returncode else "")


# exports that ONNX Runtime's quantizer makes QDQ of, some a day: masks that are rounded, Relus that are left to a rounding, layers that are not known with roundings in them
STATIC = ["families/reglu-packed-ts17-none-b", "families/roberta-ts17-sdpa-mask-b", "families/beit-d18-eager-none-a", "families/detr-decoder-d18-sdpa-none-m", "families/gqa-five-ts17-none-g",
          "families/flaubert-ts17-eager-mask-b", "families/siglip-text-ts17-sdpa-mask-b", "families/patchtst-mixed-d18-sdpa-none-a", "conv/mixer-d18-none-d", "families/series-d20-none-c",
          "families/rms-norm-d18-none-a", "families/qwen2-some-ts18-sdpa-mask-left-l", "families/gpt2-ts17-eager-mask-g", "families/gpt-neo-windows-d18-eager-mask-left-k",
          "families/falcon-heads-ts17-mask-g", "positions/esm-d18-a", "moved/torchvision-d18-none-a", "families/torch-seq-post-relu-d18-none-a"]


def drawn_for(s, seed):
    """Inputs: numbers, words of the smallest vocabulary, masks that keep all."""
    rng, feed = np.random.default_rng(seed), {}
    for i in s.get_inputs():
        if "float" in i.type: feed[i.name] = rng.standard_normal(i.shape).astype(np.float32)
        elif "mask" in i.name: feed[i.name] = np.ones(i.shape, bool if "bool" in i.type else np.int64)
        else: feed[i.name] = rng.integers(0, 8, i.shape)
    return feed


def check_static():
    """quantize_static alone, no preparation: as near to the floats as ONNX Runtime is with the quantized model, or nearer."""
    day = datetime.date.today().toordinal()
    for name in STATIC if t.full else STATIC[:1] + [STATIC[1 + (day * 5 + k) % (len(STATIC) - 1)] for k in range(5)]:     # the first: Relus are left to roundings
        path, out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", name + ".onnx"), t.at("static.onnx")
        floats = session(onnx.load(path))
        class Feeds(oq.CalibrationDataReader):
            left = [drawn_for(floats, k) for k in range(4)]
            def get_next(self): return self.left.pop() if self.left else None
        oq.quantize_static(path, out, Feeds(), reduce_range=True, activation_type=oq.QuantType.QInt8, weight_type=oq.QuantType.QInt8)
        feed, first = drawn_for(floats, 9), floats.get_outputs()[0].name
        want, judged = outputs(floats, feed)[first], outputs(session(onnx.load(out)), feed)[first]
        np.savez(t.at("static.npz"), **feed)
        own = cosine(judged.astype(float), want.astype(float))
        for flags in ((), ("--scale", "pow2")):          # of which no scale of the model's is one
            p = t.call("quantize", out, *flags, "-o", t.at("static.json"), text=True)
            if not p.returncode: t.good("run", t.at("static.json"), "--inputs", t.at("static.npz"), "--outputs", t.at("made.npz"))
            with np.load(t.at("made.npz")) as z: near = 0 if p.returncode else cosine(z[first].astype(float), want.astype(float))
            told = "cosine %.4f with the floats, ONNX Runtime's own %.4f" % (near, own)
            t.case("static: %s %s: %s" % (name, " ".join(flags), told), p.stderr[-300:] if p.returncode else told * (near < min(0.985, own - 0.02) - 0.02 * bool(flags)))
            t.case("static: %s %s: each warning once" % (name, " ".join(flags)), "" if len(said := re.findall("warning: quantize: .*", p.stderr)) == len(set(said)) else p.stderr[-300:])


def edits():
    """(name, change of bert-tiny-qdq, what is said when it is refused; None: it becomes the integers of the model as it stands; a number: as near as that)."""
    N = onnx.helper.make_node
    def held(m): return {i.name: i for i in m.graph.initializer}
    def weights(m): return [n for n in m.graph.node if n.op_type == "DequantizeLinear" and n.input[0] in held(m) and len(held(m)[n.input[0]].dims) == 2]
    def pairs(m): return [n for n in m.graph.node if n.op_type == "DequantizeLinear" and n.input[0] not in held(m)]
    def again(m, name, change=lambda a: a):
        new = "%s_again_%d" % (name, len(m.graph.initializer))
        m.graph.initializer.append(numpy_helper.from_array(np.asarray(change(numpy_helper.to_array(held(m)[name]))), new))
        return new
    def copies(m):
        for n in pairs(m): n.input[1:] = [again(m, name) for name in n.input[1:]]
    def bare(m):
        for n in m.graph.node:
            if n.op_type in ("QuantizeLinear", "DequantizeLinear") and len(n.input) > 2 and held(m)[n.input[2]].data_type == onnx.TensorProto.INT8 and not numpy_helper.to_array(held(m)[n.input[2]]).any():
                if n.op_type == "DequantizeLinear": del n.input[2:]
    def along(n, axis):
        del n.attribute[:]
        n.attribute.append(onnx.helper.make_attribute("axis", axis))
    def last(m):
        for n in weights(m): along(n, -1)
    def through(op, change=lambda a: a, **attributes):
        def edit(m):
            for n in weights(m):
                y = n.output[0]
                n.input[0], n.output[0] = again(m, n.input[0], change), y + "_" + op
                if op == "Transpose": along(n, 0)
                m.graph.node.insert(list(m.graph.node).index(n) + 1, N(op, [n.output[0]], [y], y + "_edit", **attributes))
        return edit
    def shifted(columns):
        def edit(m):
            for n in weights(m):
                w = numpy_helper.to_array(held(m)[n.input[0]]) // 2
                zero = (np.arange(w.shape[1]) % 9 - 4).astype(np.int8) if columns else np.array(5, np.int8)
                n.input[0] = again(m, n.input[0], lambda a: (a // 2 + zero).astype(np.int8))
                n.input[1] = again(m, n.input[1], lambda s: np.broadcast_to(s, w.shape[1]).copy() if columns else s.max())
                m.graph.initializer.append(numpy_helper.from_array(zero, n.input[0] + "_zero"))
                n.input[2:] = [n.input[0] + "_zero"]
        return edit
    def other(at, change):
        def edit(m):
            for n in pairs(m): n.input[at] = again(m, n.input[at], change)
        return edit
    return [("scales and zero points twice", copies, None), ("weights without zero points", bare, None), ("scales along the last axis", last, None),
            ("weights behind Identity", through("Identity"), None), ("weights turned", through("Transpose", lambda a: a.T.copy()), None), ("weights turned, said so", through("Transpose", lambda a: a.T.copy(), perm=[1, 0]), None),
            ("weights with a zero point", shifted(False), 0.99), ("weights with zero points", shifted(True), 0.99), ("values stretched behind a rounding", other(1, lambda s: s * np.float32(1.01)), "a reshape that changes the channels")]


def check_edits():
    """bert-tiny-qdq written otherwise: the same integers, or integers as near to what ONNX Runtime makes of it as the others are."""
    path = t.model("bert-tiny-qdq")
    feed = token_feeds(1)[0]
    plain = list(outputs(session(quantized(path, "as-it-stands")), feed).values())[0]
    for name, edit, near in edits():
        m = onnx.load(path)
        edit(m)
        p = t.call("quantize", t.write("edited.onnx", m.SerializeToString()), "--onnx", "-o", t.at("edited-q.onnx"), text=True)
        if p.returncode or isinstance(near, str): t.case("written otherwise: %s" % name, "" if p.returncode == 4 and near and near in p.stderr else p.stderr[-300:]); continue
        got = list(outputs(session(t.at("edited-q.onnx")), feed).values())[0]
        want = list(outputs(session(m), feed).values())[0]
        t.case("written otherwise: %s" % name, ("" if np.array_equal(got, plain) else "other integers") if near is None else "" if cosine(got, want) >= near else "cosine %.4f" % cosine(got, want))


# ---- three executions --------------------------------------------------------------------------------------------------------------

def check_executions():
    names = "bert-tiny-qdq", "bert-tiny-qonnx", "brevitas-qonnx"
    simulated = t.drawn(names, 3)
    for name in names:
        build = t.at("build-" + name)
        t.good("compile", t.model(name), "--target-cycles", "20000", "-o", build)
        core = onnx.load(build + "/host/core.onnx")
        s, rng, why = session(core), np.random.default_rng(5), ""
        for k in range(5):
            low, high = ((-128, 128) if "qdq" in name else (-32768, 32768))
            feed = {i.name: rng.integers(low, high, [d for d in i.shape]).astype(np.int16) for i in s.get_inputs()}
            np.savez(t.at("in.npz"), **feed)
            t.good("run", build + "/host/core.onnx", "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
            with np.load(t.at("out.npz")) as z: why = why or ", ".join(n for n, v in outputs(s, feed).items() if not np.array_equal(v, z[n]))
        t.case("core.onnx in ONNX Runtime and mlo run give the same bits: " + name, why)
        if name in simulated and t.have("simulation: " + name, "iverilog", "vvp"):
            t.case("simulation gives the same words: " + name, Run(build).why())


t.main(check_qdq, check_tops, check_lowest, check_zero_points, check_variants, check_integer_products, check_operators, check_other_weights, check_qonnx, check_brevitas, check_refusals, check_chain, check_static, check_edits, check_executions,
       floor=171)
