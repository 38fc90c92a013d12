#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Steps that were exported for one new token alone, ids [1, 1]: `mlo read --context` makes the prompt of them whose rows ONNX Runtime's steps are.

    python tests/test_single.py path/to/mlo [CHECK ...]

    steps      every export in models/single/ (models/context.py made them), rolled into one loop: the rows that its own steps give, token by token; where the past has a fixed length a mask
               hides what is not there, or the last row alone is asked, behind pasts that another export made
    kept       all keys in one tensor and all values in another; opset 24's TensorScatter, one-hot masks: the rows that their own steps give
    changed    the trained Llama's step at one token, with one thing added that its place decides (a window, a bias by distance, a scale by position, sines): the rows its own steps give
    drawn      exports with something drawn put behind a value drawn (the date is the seed): the rows that the changed steps give, or a refusal
    refused    what would be another function of several tokens, or is not known to be one: by node or input, with a remedy
    context    the option's limits for it, and metadata; what was read keeps it
    compiled   without a flag a core with a cache of as many tokens as said; of a context of 16 the bench passes, word by word
"""
import datetime
import glob
import json
import os
import random
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import caches
import graphs
import harness as t

N = 16
EXPORTS = sorted(glob.glob(os.path.join(t.tests, "models", "single", "*.onnx")))


def named(name): return os.path.join(t.tests, "models", "single", name + ".onnx")


# ---- stepping through an export ------------------------------------------------------------------------------------------------------------

def session_of(model): return graphs.session(model) if isinstance(model, str) else graphs.session(t.write("stepped.onnx", model.SerializeToString()))


def feed_of(session, at, ids, cache, fixed):
    """What a step takes behind so many tokens. Where the past has a fixed length what is not there yet is hidden, on its left."""
    feed = dict(cache)
    for i in session.get_inputs():
        if i.name == "input_ids": feed[i.name] = ids[:, at:at + 1].reshape(i.shape)
        if i.name == "attention_mask": feed[i.name] = np.ones((1, at + 1), np.int64) if not fixed else (np.arange(N) >= N - 1 - at)[None].astype(bool if i.type == "tensor(bool)" else np.int64)
        if i.name in ("position_ids", "position", "length"): feed[i.name] = np.full(i.shape, at)
    return feed


def grown(value, before, shape):
    """What a step keeps: its past with what is new, which may leave alone; of a past of fixed length the last ones."""
    axis = next((d for d, size in enumerate(shape) if isinstance(size, str)), None)
    fixed = axis is None
    if fixed: axis = next((d for d in range(before.ndim) if value.shape[d] != before.shape[d]), None)
    if axis is None: return value
    whole = value if value.shape[axis] == before.shape[axis] + 1 else np.concatenate([before, value], axis)
    return np.delete(whole, 0, axis) if fixed else whole


def rows(model, ids):
    """Logits of all tokens, and the pasts of the last one."""
    session = session_of(model)
    past = [i for i in session.get_inputs() if "past" in i.name]
    fixed = not any(i.name == "length" for i in session.get_inputs()) and all(isinstance(d, int) for i in past for d in i.shape)
    cache, logits = {i.name: np.zeros([0 if isinstance(d, str) else d for d in i.shape], np.float32) for i in past}, []
    for at in range(ids.shape[1]):
        before = cache
        row, *present = session.run(None, feed_of(session, at, ids, cache, fixed))
        cache = {i.name: grown(value, before[i.name], i.shape) for i, value in zip(past, present)}
        logits.append(row.reshape(1, 1, -1))
    return np.concatenate(logits, 1), before


def far(a, b): return float(abs(a - b).max() / abs(b).max())


def evaluated(path, ids):
    feed = prompt_feed(path, ids)
    np.savez(t.at("in.npz"), **feed)
    t.good("run", path, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    return np.load(t.at("out.npz"))["logits"].reshape(1, ids.shape[1], -1), set(feed)


def prompt_feed(path, ids):
    """All tokens at once, nothing hidden."""
    feed = {}
    for i in onnx.load(path).graph.input:
        shape, kind = [d.dim_value for d in i.type.tensor_type.shape.dim], helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        feed[i.name] = np.ones(shape, kind) if i.name == "attention_mask" else ids.reshape(shape)
    return feed


def check_steps():
    ids = np.random.default_rng(1).integers(0, 40, (1, N))
    _, pasts = rows(named("llama-d18-sdpa-single"), ids)
    read, rolled = t.at("read.onnx"), t.at("rolled.onnx")
    for path in EXPORTS:
        name = os.path.basename(path)[:-5]
        if name.endswith("single-fixed"): continue                               # refused: below
        t.good("read", path, "--context", str(N), "--onnx", "-o", read)
        t.good("roll", read, "--onnx", "-o", rolled)
        loops = [n for n, _ in graphs.shapes(onnx.load(rolled))]
        t.case("%s: all layers are one loop" % name, "" if loops == [3] else "loops %s" % loops)
        blind = "fixed" in name and "mask" not in name
        if blind:
            session = session_of(path)
            want = session.run(None, feed_of(session, N - 1, ids, pasts, True))[0]
        else:
            want, _ = rows(path, ids)
        for what, model in ("read", read), ("rolled", rolled):
            got, ins = evaluated(model, ids)
            worst = far(got[:, -1:] if blind else got, want)
            t.case("%s, %s: the rows of its steps" % (name, what), "" if worst < 1e-5 else "%.3g" % worst)
            t.case("%s, %s: nothing but ids and a mask comes in" % (name, what), "" if ins <= {"input_ids", "attention_mask"} else str(ins))
        by_ort = graphs.session(read).run(None, prompt_feed(read, ids))[0].reshape(1, N, -1)
        t.case("%s: ONNX Runtime says the same of what was read" % name, "" if far(by_ort, evaluated(read, ids)[0]) < 1e-5 else "%.3g" % far(by_ort, got))
        p = t.call("check", rolled, "--against", path, "--context", str(N))
        t.case("%s: check proves the loop" % name, "" if p.returncode == 0 and json.loads(p.stdout)["equal"] else p.stderr.decode() or "it says nothing")
    masked = named("llama-d18-eager-single-mask-placed")
    t.good("read", masked, "--context", str(N), "--onnx", "-o", read)
    mask = (np.arange(N) >= 5).astype(np.int64)[None]
    session = graphs.session(read)
    late = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    every = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
    t.case("a mask hides keys of all tokens", "" if far(late, every) > 1e-2 else "it hides nothing")
    changed = ids.copy()
    changed[0, 9] = (changed[0, 9] + 1) % 40
    other = session.run(None, {"input_ids": changed, "attention_mask": np.ones_like(ids)})[0]
    t.case("a token changes no row before it, and its own", "" if np.array_equal(other[:, :9], every[:, :9]) and not np.array_equal(other[:, 9], every[:, 9]) else "it does")


# ---- how keys and values are kept ----------------------------------------------------------------------------------------------------------

def stacked(name):
    """The export with all keys in one tensor, and all values in another."""
    m = onnx.load(named(name))
    g, whole = m.graph, numpy_helper.from_array(np.array([0]), "front")
    g.initializer.append(whole)
    for kind in "key", "value":
        past, present = ([v for v in ends if v.name.endswith("." + kind)] for ends in (g.input, g.output))
        shape = [len(past), *(d.dim_value for d in past[0].type.tensor_type.shape.dim)]
        for i, (before, after) in enumerate(zip(past, present)):
            g.initializer.append(numpy_helper.from_array(np.array(i), "%s_%d" % (kind, i)))
            g.node.insert(0, helper.make_node("Gather", ["past_%ss" % kind, "%s_%d" % (kind, i)], [before.name], axis=0))
            g.node.append(helper.make_node("Unsqueeze", [after.name, "front"], ["%s_out_%d" % (kind, i)]))
            g.input.remove(before)
            g.output.remove(after)
        g.node.append(helper.make_node("Concat", ["%s_out_%d" % (kind, i) for i in range(len(past))], ["present_%ss" % kind], axis=0))
        g.input.append(helper.make_tensor_value_info("past_%ss" % kind, TensorProto.FLOAT, shape))
        g.output.append(helper.make_tensor_value_info("present_%ss" % kind, TensorProto.FLOAT, shape))
    return m


def scattered(hot=False, place=(1,)):
    """Opset 24's TensorScatter into buffers that are outputs as they are, and a mask of what is full; or a Where that writes by a one-hot mask."""
    g, info, heads, keys, width = caches.Graph(), helper.make_tensor_value_info, caches.HEADS, caches.KEYS, caches.WIDTH
    inputs, outputs = [info("input_ids", TensorProto.INT64, [1, 1]), info("position", TensorProto.INT64, place)], [info("logits", TensorProto.FLOAT, [1, 1, 40])]
    one = g.node("Unsqueeze", g.node("Equal", "position", g.init(np.arange(N))), g.init(np.array([1]))) if hot else ""
    keep = g.node("Reshape", g.node("LessOrEqual", g.init(np.arange(N)), "position"), g.init(np.array([1, 1, 1, N])))
    x = g.node("Gather", g.weight(40, heads * width, gain=5.0), "input_ids")
    for i in range(3):
        h = g.node("LayerNormalization", x, g.vector(heads * width, 1), g.vector(heads * width, 0))
        q, *new = (g.heads(g.node("MatMul", h, g.weight(heads * width, n * width)), n) for n in (heads, keys, keys))
        for kind, value in zip(("key", "value"), new):
            inputs.append(info("past.%d.%s" % (i, kind), TensorProto.FLOAT, [1, keys, N, width]))
            outputs.append(info("present.%d.%s" % (i, kind), TensorProto.FLOAT, [1, keys, N, width]))
            write = ("Where", [one, value, inputs[-1].name], {}) if hot else ("TensorScatter", [inputs[-1].name, value, "position"], {"axis": -2})
            g.nodes.append(helper.make_node(*write[:2], [outputs[-1].name], name=outputs[-1].name, **write[2]))
        y = g.node("Transpose", g.node("Attention", q, outputs[-2].name, outputs[-1].name, keep), perm=[0, 2, 1, 3])
        x = g.node("Add", x, g.node("MatMul", g.node("Reshape", y, g.init(np.array([1, 1, heads * width]))), g.weight(heads * width, heads * width)))
        x = g.node("Add", x, g.node("MatMul", g.node("Relu", g.node("MatMul", x, g.weight(heads * width, 24))), g.weight(24, heads * width)))
    g.nodes.append(helper.make_node("MatMul", [x, g.weight(heads * width, 40)], ["logits"]))
    return helper.make_model(helper.make_graph(g.nodes, "scattered", inputs, outputs, g.held), ir_version=11, opset_imports=[helper.make_opsetid("", 24)])


def check_kept():
    ids, read = np.random.default_rng(6).integers(0, 40, (1, N)), t.at("read.onnx")
    for what, m in (("keys in one tensor, values in another", stacked("llama-d18-sdpa-single-static")), ("TensorScatter", scattered()),
                    ("one-hot masks", scattered(True)), ("one-hot masks of a scalar", scattered(True, ()))):
        want, _ = rows(m, ids)
        p = t.call("read", t.write("kept.onnx", m.SerializeToString()), "--context", str(N), "--onnx", "-o", read)
        t.case("%s: the rows of its steps" % what, p.stderr.decode()[-300:] if p.returncode else "" if far(evaluated(read, ids)[0], want) < 1e-5 else "%.3g" % far(evaluated(read, ids)[0], want))


# ---- one thing changed ---------------------------------------------------------------------------------------------------------------------

OPEN = "llama-d18-sdpa-single"


def constant(g, name, value, kind=np.float32):
    g.initializer.append(numpy_helper.from_array(np.asarray(value, kind), name))
    return name


def changed(name, change):
    """The export with one thing changed: change(graph, insert), insert(before, nodes)."""
    m = onnx.load(named(name))
    def insert(before, nodes):
        at = next(i for i, n in enumerate(m.graph.node) if n is before or n == before)
        for k, n in enumerate(nodes): m.graph.node.insert(at + k, n)
    change(m.graph, insert)
    return m


def node(op, inputs, output, **attributes): return helper.make_node(op, inputs, [output], name="new_" + output, **attributes)


def past_length(g, name):
    """Nodes that make how much is past, [1]."""
    past = next(i.name for i in g.input if "past" in i.name)
    return [node("Shape", [past], name + "_shape"), node("Gather", [name + "_shape", constant(g, name + "_two", [2], np.int64)], name, axis=0)]


def before_softmax(make):
    """The scores of each layer: what make(graph, scores, layer, place) makes of them, `place` [1] (floats)."""
    def change(g, insert):
        for layer, softmax in enumerate([n for n in g.node if n.op_type == "Softmax"]):
            p = "x%d" % layer
            nodes = past_length(g, p + "_past") + [node("Cast", [p + "_past"], p + "_place", to=TensorProto.FLOAT)]
            nodes += make(g, softmax.input[0], p, p + "_place")
            insert(softmax, nodes)
            softmax.input[0] = nodes[-1].output[0]
    return change


def keys(g, p):
    """Nodes that make the place of each key, [keys], floats."""
    zero, one = constant(g, p + "_0", 0, np.int64), constant(g, p + "_1", 1, np.int64)
    return [node("Squeeze", [p + "_past"], p + "_p"), node("Add", [p + "_p", one], p + "_n"), node("Range", [zero, p + "_n", one], p + "_r"), node("Cast", [p + "_r"], p + "_k", to=TensorProto.FLOAT)]


def window(g, scores, p, place):
    """Keys of the last five tokens."""
    return keys(g, p) + [node("Sub", [place, p + "_k"], p + "_d"), node("Less", [p + "_d", constant(g, p + "_w", 5.0)], p + "_l"),
                         node("Where", [p + "_l", scores, constant(g, p + "_m", -1e30)], p + "_y")]


def by_distance(g, scores, p, place):
    """ALiBi: less for each token that lies between, another slope for each head."""
    slopes = constant(g, p + "_s", [[[-0.5]], [[-0.25]], [[-0.125]], [[-0.0625]]])
    return keys(g, p) + [node("Sub", [place, p + "_k"], p + "_d"), node("Mul", [slopes, p + "_d"], p + "_b"), node("Add", [scores, p + "_b"], p + "_y")]


def by_place(g, scores, p, place):
    """Scores times 1 + place / 16."""
    return [node("Mul", [place, constant(g, p + "_s", 1 / 16)], p + "_f"), node("Add", [p + "_f", constant(g, p + "_1", 1.0)], p + "_a"), node("Mul", [scores, p + "_a"], p + "_y")]


def learned(g, insert):
    """A row of a table for each place, added to embeddings, and a sine of it."""
    first = next(n for n in g.node if n.op_type == "Gather" and "embed" in n.input[0])
    rows_ = constant(g, "rows", np.random.default_rng(3).normal(size=(32, 16)))
    following = g.node[list(g.node).index(first) + 1]
    made = first.output[0]
    first.output[0] = "words"
    insert(following, past_length(g, "e_past") + [node("Gather", [rows_, "e_past"], "e_row"), node("Cast", ["e_past"], "e_place", to=TensorProto.FLOAT), node("Sin", ["e_place"], "e_sine"),
                                                 node("Add", ["words", "e_row"], "e_sum"), node("Add", ["e_sum", "e_sine"], made)])


CHANGED = {"a window of five tokens": before_softmax(window), "a bias by distance": before_softmax(by_distance), "a scale by place": before_softmax(by_place), "learned positions and a sine": learned}


def check_changed():
    ids, read = np.random.default_rng(4).integers(0, 40, (1, N)), t.at("read.onnx")
    plain, _ = rows(named(OPEN), ids)
    for what, change in CHANGED.items():
        m = changed(OPEN, change)
        want, _ = rows(m, ids)
        p = t.call("read", t.write("changed.onnx", m.SerializeToString()), "--context", str(N), "--onnx", "-o", read)
        t.case("%s: the rows of its steps" % what, p.stderr.decode()[-300:] if p.returncode else "" if far(evaluated(read, ids)[0], want) < 1e-5 else "%.3g" % far(evaluated(read, ids)[0], want))
        t.case("%s: it is another model" % what, "" if far(want, plain) > 1e-3 else "it changes nothing")


# ---- something drawn -----------------------------------------------------------------------------------------------------------------------

def reduced(m, op, x, axis, out):
    """A reduction, its axis where the opset has it."""
    new = dict(ReduceMax=18, ReduceMean=18, ReduceL2=18)[op] <= m.opset_import[0].version
    return node(op, [x, constant(m.graph, out + "_axis", [axis], np.int64)] if new else [x], out, keepdims=1, **({} if new else {"axes": [axis]}))


def slice_of(m, x, out, start, end, axis, step=1):
    return node("Slice", [x, *(constant(m.graph, out + "_%d" % i, [v], np.int64) for i, v in enumerate((start, end, axis, step)))], out)


FAR = 1 << 62
DRAWN = {
    "Softmax": lambda m, x, a, d, y: [node("Softmax", [x], y, axis=a)],
    "CumSum": lambda m, x, a, d, y: [node("CumSum", [x, constant(m.graph, y + "_a", a, np.int64)], y)],
    "the largest less": lambda m, x, a, d, y: [reduced(m, "ReduceMax", x, a, y + "_r"), node("Sub", [x, y + "_r"], y)],
    "the mean added": lambda m, x, a, d, y: [reduced(m, "ReduceMean", x, a, y + "_r"), node("Add", [x, y + "_r"], y)],
    "times its length": lambda m, x, a, d, y: [reduced(m, "ReduceL2", x, a, y + "_r"), node("Mul", [x, y + "_r"], y)],
    "turned round": lambda m, x, a, d, y: [slice_of(m, x, y, -1, -FAR, a, -1)],
    "moved on by one": lambda m, x, a, d, y: [slice_of(m, x, y + "_b", 1, FAR, a), slice_of(m, x, y + "_c", 0, 1, a), node("Concat", [y + "_b", y + "_c"], y, axis=a)],
    "the last added": lambda m, x, a, d, y: [slice_of(m, x, y + "_b", -1, FAR, a), node("Add", [x, y + "_b"], y)],
    "at least 0.1": lambda m, x, a, d, y: [node("Max", [x, constant(m.graph, y + "_m", 0.1)], y)],
    "times 1.3": lambda m, x, a, d, y: [node("Mul", [x, constant(m.graph, y + "_m", 1.3)], y)],
    "a vector added": lambda m, x, a, d, y: [node("Add", [x, constant(m.graph, y + "_v", np.random.default_rng(1).normal(size=d))], y)],
}


def with_drawn(path, rng):
    """An export with something put behind a value of floats; what that is. None: nothing is read behind it. (Of one number for each token, a variance, a root may be taken: no number.)"""
    m = onnx.shape_inference.infer_shapes(onnx.load(path))
    types = {v.name: v.type.tensor_type for v in m.graph.value_info}
    at, n, x = rng.choice([(i, n, o) for i, n in enumerate(m.graph.node) for o in n.output if o in types and types[o].elem_type == TensorProto.FLOAT and len(types[o].shape.dim) > 1 and types[o].shape.dim[-1].dim_value != 1])
    dims = [d.dim_value for d in types[x].shape.dim]
    axis, what, readers = rng.randrange(len(dims)), rng.choice(sorted(DRAWN)), 0
    if what == "a vector added" and not dims[axis]: return None, ""
    for other in list(m.graph.node)[at + 1:]:
        for i, name in enumerate(other.input):
            if name == x:
                other.input[i] = "drawn"
                readers += 1
    for k, new in enumerate(DRAWN[what](m, x, axis, [d if i == axis else 1 for i, d in enumerate(dims)], "drawn")): m.graph.node.insert(at + 1 + k, new)
    del m.graph.value_info[:]
    return m if readers else None, "%s: %s along axis %d behind %s (%s)" % (os.path.basename(path)[:-5], what, axis, n.name, n.op_type)


def check_drawn():
    rng, taken, refusals = random.Random(datetime.date.today().toordinal()), 0, 0
    exports = [p for p in EXPORTS if "fixed" not in p and "shifted" not in p]       # what is hidden is there: of another number of tokens
    for _ in range(400 if t.full else 60):
        m, what = with_drawn(rng.choice(exports), rng)
        if not m: continue
        ids = np.array([[rng.randrange(40) for _ in range(N)]])
        want, _ = rows(m, ids)
        if not np.isfinite(want).all() or not want.any(): continue
        p = t.call("read", t.write("drawn.onnx", m.SerializeToString()), "--context", str(N), "--onnx", "-o", t.at("read.onnx"))
        refusals += p.returncode in (3, 4)
        taken += p.returncode == 0
        if p.returncode: wrong = "" if p.returncode in (3, 4) else p.stderr.decode()[-300:]
        else: wrong = far(evaluated(t.at("read.onnx"), ids)[0], want)
        if wrong and (isinstance(wrong, str) or not wrong < 1e-4): t.case(what, str(wrong))
    t.case("%d drawn, taken, are their own steps, others are refused" % taken, "" if taken >= 25 else "too few to believe")
    t.note("%d taken, %d refused" % (taken, refusals))


# ---- what is refused -----------------------------------------------------------------------------------------------------------------------

def scores_through(make):
    """The first layer's scores go through these nodes in front of their softmax."""
    def change(g, insert):
        softmax = next(n for n in g.node if n.op_type == "Softmax")
        nodes = make(g, softmax.input[0])
        insert(softmax, nodes)
        softmax.input[0] = nodes[-1].output[0]
    return change


def no_softmax(g, insert):
    """What weighs values is no softmax."""
    softmax = next(n for n in g.node if n.op_type == "Softmax")
    softmax.op_type = "Relu"
    del softmax.attribute[:]


def behind(op, make):
    """What the first node of this op makes goes through a node: make(graph, its name, what the node has to be called)."""
    def change(g, insert):
        first = next(n for n in g.node if n.op_type == op)
        following, made = g.node[list(g.node).index(first) + 1], first.output[0]
        first.output[0] = "before"
        insert(following, [make(g, "before", made)])
    return change


def seen_again(g, x, y):
    """What a softmax gives each key is 0.1 at least, those that are hidden from a token, too."""
    return node("Max", [x, constant(g, "least", 0.1)], y)


def last_alone(g, scores):
    """A mask of a constant that hides the first eight keys of sixteen: of the last token, or of all?"""
    return [node("Add", [scores, constant(g, "row", np.where(np.arange(N) < 8, -1e30, 0)[None, None, None])], "masked")]


def mean_of_keys(g, scores): return [node("ReduceMean", [scores, constant(g, "axis", [-1], np.int64)], "mean_scores"), node("Sub", [scores, "mean_scores"], "centred")]


def best_key(g, scores): return [node("ReduceMax", [scores, constant(g, "axis", [-1], np.int64)], "best"), node("Sub", [scores, "best"], "less")]


def turned(g, scores): return [node("Softmax", [scores], "once", axis=-1)]


def another_place(g, insert):
    """Rows are written one further."""
    scatter = next(n for n in g.node if n.op_type == "ScatterND")
    insert(scatter, [node("Add", [scatter.input[1], constant(g, "further", [[1]], np.int64)], "further_on")])
    scatter.input[1] = "further_on"


def a_number(g, insert):
    """A scalar that is called nothing that is known, in front of all scores."""
    g.input.append(helper.make_tensor_value_info("total", TensorProto.INT64, []))
    softmax = next(n for n in g.node if n.op_type == "Softmax")
    insert(softmax, [node("Cast", ["total"], "total_float", to=TensorProto.FLOAT), node("Mul", [softmax.input[0], "total_float"], "scaled")])
    softmax.input[0] = "scaled"


def hidden_mean(g, insert):
    """The mean of all keys that are kept is added to the first of them."""
    joint = next(n for n in g.node if n.op_type == "Concat" and "past" in n.input[0])
    following = g.node[list(g.node).index(joint) + 1]
    for n in g.node:
        for i, name in enumerate(n.input):
            if name == joint.output[0]: n.input[i] = "more"
    insert(following, [node("ReduceMean", [joint.output[0], constant(g, "axis", [2], np.int64)], "mean_kept"), node("Add", [joint.output[0], "mean_kept"], "more")])


def kept_otherwise(g, x, y):
    """What a buffer keeps is a tenth more with each step."""
    return node("Mul", [x, constant(g, "tenth", 1.1)], y)


def some_channels(g, insert):
    """Each token's channels times the mean of as many of them as tokens are past, and one."""
    last = next(n for n in g.node if n.op_type == "MatMul" and n.output[0] == "logits")
    x = last.input[0]
    insert(last, past_length(g, "p") + [node("Add", ["p", constant(g, "p_1", [1], np.int64)], "p_n"), node("Slice", [x, constant(g, "p_0", [0], np.int64), "p_n", constant(g, "p_2", [2], np.int64)], "some"),
                                       node("ReduceMean", ["some", constant(g, "p_a", [2], np.int64)], "some_mean"), node("Mul", [x, "some_mean"], "some_x")])
    last.input[0] = "some_x"


FIXED = "llama-d18-sdpa-single-placed-fixed"
REFUSED = {
    "a past of fixed length, and no position": ("llama-d18-sdpa-single-fixed", None, "UNSUPPORTED", ["fixed length", "position_ids"]),
    "weights that are no softmax": (OPEN, no_softmax, "UNSUPPORTED", ["keys and values", "(MatMul)", "dynamic"]),
    "channels, as many as are past": (OPEN, some_channels, "UNSUPPORTED", ["new_some (Slice)"]),
    "weights that no key is without": (OPEN, behind("Softmax", seen_again), "UNSUPPORTED", ["(Max)", "keys and values"]),
    "two softmaxes": (OPEN, scores_through(turned), "UNSUPPORTED", ["keys and values", "(Softmax)"]),
    "a mean of keys' scores": (OPEN, scores_through(mean_of_keys), "UNSUPPORTED", ["new_mean_scores (ReduceMean)"]),
    "the best key": (OPEN, scores_through(best_key), "UNSUPPORTED", ["new_best (ReduceMax)"]),
    "a mean of what is kept": (OPEN, hidden_mean, "UNSUPPORTED", ["new_mean_kept (ReduceMean)"]),
    "a constant mask of a fixed past": (FIXED, scores_through(last_alone), "UNSUPPORTED", ["new_masked (Add)"]),
    "a buffer that is written one further": ("llama-d18-sdpa-single-static", another_place, "UNSUPPORTED", ["(ScatterND)"]),
    "a buffer that is kept otherwise than it is written": ("llama-d18-sdpa-single-static", behind("ScatterND", kept_otherwise), "UNSUPPORTED", ["(ScatterND)", "buffer"]),
    "a number that says nothing": (OPEN, a_number, "UNSUPPORTED", ["total", "position"]),
}


def refused(what, path, code, words, *flags):
    out = t.at("refused.onnx")
    p = t.call("read", path, "--context", str(N), *flags, "--onnx", "-o", out)
    said = p.stderr.decode()
    wrong = p.returncode == 0 or "[MLO_E_%s]" % code not in said or said.count("\n") != 1 or any(w not in said for w in words)
    t.case("%s: refused" % what, said[-400:] or "status %d" % p.returncode if wrong else "a file is left" if os.path.exists(out) else "")


def check_refused():
    for what, (name, change, code, words) in REFUSED.items():
        path = named(name) if not change else t.write("changed.onnx", changed(name, change).SerializeToString())
        if change: onnx.checker.check_model(path)
        refused(what, path, code, words)


# ---- contexts, cores -----------------------------------------------------------------------------------------------------------------------

def check_context():
    for name, length in (FIXED, 16), ("llama-ts17-eager-single-static", 16):
        p = t.call("read", named(name), "--context", "12", "-o", t.at("twelve.json"))
        said = p.stderr.decode()
        t.case("%s: a context of another length" % name, "" if p.returncode == 3 and "--context %d" % length in said and "MLO_E_SHAPE" in said else said)
    for context in 2, 7, 32:
        t.good("read", named(OPEN), "--context", str(context), "--onnx", "-o", t.at("read.onnx"))
        ids = np.random.default_rng(5).integers(0, 40, (1, context))
        worst = far(evaluated(t.at("read.onnx"), ids)[0], rows(named(OPEN), ids)[0])
        t.case("a context of %d" % context, "" if worst < 1e-5 else "%.3g" % worst)
    t.good("read", named(OPEN), "--context", str(N), "-o", t.at("read.json"))
    said = {e["key"]: e["value"] for e in json.loads(t.read(t.at("read.json")))["metadataProps"]}
    t.case("the context is in the metadata", "" if said.get("mlo.context") == str(N) else str(said))
    t.case("it is read once", "" if b"another" in t.call("read", t.at("read.json"), "--context", "12").stderr or t.call("read", t.at("read.json"), "--context", "12").returncode == 2 else "again")
    t.good("read", named(OPEN), "--onnx", "-o", t.at("step.onnx"))
    t.case("without a context a step is a step", "" if len(onnx.load(t.at("step.onnx")).graph.input) == 7 else "it is not")


def in_one_tensor(g, insert):
    """All pasts come in one tensor [layers, 2, 1, heads, past, channels], all presents leave in one."""
    past, present = [i for i in g.input if "past" in i.name], list(g.output)[1:]
    dims = [d.dim_value for d in past[0].type.tensor_type.shape.dim]
    for i in past: g.input.remove(i)
    for o in present: g.output.remove(o)
    g.input.append(helper.make_tensor_value_info("past_all", TensorProto.FLOAT, [len(past) // 2, 2, *dims]))
    g.output.append(helper.make_tensor_value_info("present_all", TensorProto.FLOAT, None))
    places = [constant(g, "place_%d" % k, k, np.int64) for k in range(len(past))]
    front = constant(g, "front", [0], np.int64)
    for k, i in enumerate(past): insert(g.node[0], [node("Gather", ["past_all", places[k // 2]], "layer_%d" % k, axis=0), node("Gather", ["layer_%d" % k, places[k % 2]], i.name, axis=0)])
    for k, o in enumerate(present): g.node.append(node("Unsqueeze", [o.name, front], "one_%d" % k))
    for k in range(len(past) // 2): g.node.extend([node("Concat", ["one_%d" % (2 * k), "one_%d" % (2 * k + 1)], "two_%d" % k, axis=0), node("Unsqueeze", ["two_%d" % k, front], "layer_of_%d" % k)])
    g.node.append(node("Concat", ["layer_of_%d" % k for k in range(len(past) // 2)], "present_all", axis=0))


KEPT = {OPEN: 128, FIXED: 16, "gpt2-d18-sdpa-single": 32, "llama-ts17-eager-single-static": 16, "gemma3-d18-sdpa-single-mask": 128, "hand-d18-single-piled": 32, "hand-d18-single-fresh": 128,
        "hand-d18-single-shifted": 16, "llama-ts17-sdpa-single": 128, "opt-ts17-eager-single-mask-fixed": 16}
SIMULATED = OPEN, "gpt2-d18-sdpa-single", "hand-d18-single-piled", "hand-d18-single-shifted"


def check_compiled():
    for name, kept in KEPT.items():
        p = t.call("compile", named(name), "-o", t.at(name))
        said = p.stderr.decode()
        t.case("%s: compile takes it" % name, said[-300:] if p.returncode else "")
        t.case("%s: it keeps %d tokens, and says so" % (name, kept), "" if "the core keeps %d tokens" % kept in said else said[:300])
        if name == FIXED:
            piled = t.write("piled.onnx", changed(FIXED, in_one_tensor).SerializeToString())
            p = t.call("compile", piled, "-o", t.at("piled"))
            t.case("%s, pasts in one tensor: the same core" % name, p.stderr.decode()[-300:] if p.returncode else "" if t.read(t.at(name) + "/params.bin") == t.read(t.at("piled/params.bin")) else "another")
        if name not in SIMULATED: continue
        t.good("compile", named(name), "--context", str(N), "-o", t.at(name + "-16"))
        p = t.call("sim", t.at(name + "-16"), "--stall", "30")
        t.case("%s: its bench passes" % name, "" if p.returncode == 0 else p.stderr.decode()[-300:])
    for path in t.drawn([e for e in EXPORTS if "mask" in e], 3, os.path.basename):
        p = t.call("compile", path, "--context", str(N), "--tokens", "-o", t.at("ids"))
        t.case("%s: ids alone come in, a mask is ones" % os.path.basename(path), p.stderr.decode()[-300:] if p.returncode else "" if b"'attention_mask' is ones" in p.stderr else "nobody says so")


if __name__ == "__main__":
    t.main(check_steps, check_kept, check_changed, check_drawn, check_refused, check_context, check_compiled, floor=170)
