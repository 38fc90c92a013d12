#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--context N: a decoder with its cache as inputs and outputs becomes a prompt of N tokens; run --generate goes on with a text.

    python tests/test_context.py path/to/mlo [CHECK ...]

    steps      every export in models/context/, the trained one, and operators with a cache of their own (caches.py): ONNX Runtime steps through the *original*, at once, token by token and in chunks,
               and hands present back as past: these are the rows of `mlo run` on what `mlo read --context` makes, and after roll, where all layers are one loop
    merged     the same exports as Optimum merges decoders, one If whose branches have a past and none: with --context what the step is, without it a prompt, whichever branch is held
    stages     mlo.context is in the metadata of every stage, in JSON and ONNX, and in the core; quantize, lower and fold take the model
    buffers    buffers of fixed length that are written otherwise than from their beginning on, or are of another length, are refused
    near       what is nearly a cache, or none at all, is refused, by node or input and with a remedy
    caches     operators with a cache of their own, one thing changed, and other inputs beside the ids: what their own steps say by ONNX Runtime, or a refusal
    changed    exports with one thing changed or two (context.txt): what their own steps say by ONNX Runtime, or a refusal in one line
    options    --context is read once, within limits, and what was read keeps it
    mixing     encoders, convolutions and cross-attention are refused by node
    generate   greedy text of the trained Llama is that of PyTorch (stories260k.json) in floats; several prompts, a stop id; what cannot go on is refused
    generate_forms   ids, masks, positions and logits in every form there is: the text is numpy's, of a decoder that is a table
    prefill    --prefill: exports of one model, whatever exporter, opset, attention and form of cache, are one body in every integer; one number,
               layer or word changed in one of them, and the first difference is named
    integers   the quantized one says the same text, whatever the context: at least 40 of 64 tokens; where it parts, floats hardly tell the two; a folded one says what the quantized one does

The judge is ONNX Runtime on the export. How the models were made: models/context.py."""
import glob
import json
import os
import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper
import alike
import caches
import graphs
import harness as t
import stories

STEP = "stories260k-step"
N = 16


# ---- stepping through an export ------------------------------------------------------------------------------------------------------------

class Steps:
    """An export with past and present: tokens in, rows of logits out, its cache kept."""
    def __init__(self, path):
        self.session, self.path = graphs.session(path), path
        self.past = [i for i in self.session.get_inputs() if "past" in i.name]
        self.words = self.session.get_outputs()[0].shape[2]

    def rows(self, ids, sizes):
        cache = {i.name: np.zeros([0 if isinstance(d, str) else d for d in i.shape], np.float32) for i in self.past}
        rows, at = [], 0
        for size in sizes:
            feed = dict(cache, input_ids=ids[:, at:at + size])
            for i in self.session.get_inputs():
                if i.name == "attention_mask": feed[i.name] = np.ones((1, at + size), np.int64)
                if i.name == "position_ids": feed[i.name] = np.arange(at, at + size)[None]
                if i.name == "length": feed[i.name] = np.array(at)
                if i.name in caches.feeds(at, size): feed[i.name] = caches.feeds(at, size)[i.name]
            logits, *present = self.session.run(None, feed)
            cache = {i.name: value for i, value in zip(self.past, present)}
            rows.append(logits)
            at += size
        return np.concatenate(rows, 1)


def given(path, ids):
    """What the model without a cache takes."""
    ins = [i.name for i in onnx.load(path).graph.input]
    return {n: np.ones_like(ids) if n == "attention_mask" else ids for n in ins}, ins


def evaluated(path, ids):
    feed, _ = given(path, ids)
    np.savez(t.at("in.npz"), **feed)
    t.good("run", path, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    return np.load(t.at("out.npz"))["logits"]


def far(a, b): return float(abs(a - b).max() / abs(b).max())


def check_steps():
    fused = [t.write(form + ".onnx", caches.model(form).SerializeToString()) for form in caches.FORMS]
    for path in sorted(glob.glob(os.path.join(t.tests, "models", "context", "*.onnx"))) + [t.model(STEP)] + fused:
        name, steps = os.path.basename(path)[:-5], Steps(path)
        ids = np.random.default_rng(1).integers(0, steps.words, (1, N))
        read, rolled = t.at("read.onnx"), t.at("rolled.onnx")
        t.good("read", path, "--context", str(N), "--onnx", "-o", read)
        _, ins = given(read, ids)
        outs = [o.name for o in onnx.load(read).graph.output]
        t.case("%s: neither past nor present nor positions" % name, "" if set(ins) <= {"input_ids", "attention_mask"} and outs == ["logits"] else "%s %s" % (ins, outs))
        t.good("roll", read, "--onnx", "-o", rolled)
        layers = len(steps.past) // 2 or steps.past[0].shape[0]            # all in one tensor
        loops = [n for n, _ in graphs.shapes(onnx.load(rolled))]
        t.case("%s: all layers are one loop" % name, "" if loops == [layers] else "%d layers, loops %s" % (layers, loops))
        want = {sizes: steps.rows(ids, sizes) for sizes in ((N,), (1,) * N, (5, 1, 7, 3), (2, 14))}
        for what, model in (("read", read), ("rolled", rolled)):
            got = evaluated(model, ids)
            worst = max(far(got, w) for w in want.values())
            t.case("%s, %s: the rows that its steps give, in any chunks" % (name, what), "" if worst < 1e-5 else "%.3g" % worst)
        p = t.call("check", rolled, "--against", path, "--context", str(N))
        t.case("%s: check proves the loop" % name, "" if p.returncode == 0 and json.loads(p.stdout)["equal"] else p.stderr.decode() or "it says nothing")


# ---- decoders that are merged --------------------------------------------------------------------------------------------------------------

def merged(path, also=()):
    """A step as Optimum merges it: an If on use_cache_branch, of the step and of a decoder whose past is empty; names as in the step, in both. also: nodes beside it."""
    m = onnx.load(path)
    g = m.graph
    past = [i for i in g.input if "past" in i.name]
    empty = [helper.make_tensor(i.name + "_none", i.type.tensor_type.elem_type, [0 if d.dim_param else d.dim_value for d in i.type.tensor_type.shape.dim], []) for i in past]
    def branch(name, rename, init=()):
        b = helper.make_graph(list(g.node), name, [], list(g.output), list(init))
        for n in b.node: n.input[:] = [rename.get(k, k) for k in n.input]
        return b
    branches = branch("with_past", {}), branch("no_past", {i.name: i.name + "_none" for i in past}, empty)
    node = helper.make_node("If", ["use_cache_branch"], [o.name for o in g.output], name="optimum::if", then_branch=branches[0], else_branch=branches[1])
    choice = helper.make_tensor_value_info("use_cache_branch", onnx.TensorProto.BOOL, [1])
    outs = list(g.output) + [helper.make_empty_tensor_value_info(o) for n in also for o in n.output]
    whole = helper.make_graph([node, *also], "merged", [*g.input, choice], outs, list(g.initializer))
    return helper.make_model(whole, opset_imports=list(m.opset_import), ir_version=m.ir_version, functions=list(m.functions))


def check_merged():
    both, read = t.at("merged.onnx"), t.at("read.onnx")
    for path in sorted(glob.glob(os.path.join(t.tests, "models", "context", "*.onnx"))) + [t.model(STEP)]:
        name, steps = os.path.basename(path)[:-5], Steps(path)
        if not all("." in i.name and any(isinstance(d, str) for d in i.shape) for i in steps.past): continue                               # one input of all pasts, buffers: nothing that Optimum makes
        t.write("merged.onnx", merged(path).SerializeToString())
        ids = np.random.default_rng(2).integers(0, steps.words, (1, N))
        want = steps.rows(ids, (5, 1, N - 6))
        for what, flags in ("as it is", []), ("with a past", ["--hold", t.at("yes.npz")]), ("without one", ["--hold", t.at("no.npz")]):
            np.savez(t.at("yes.npz"), use_cache_branch=np.array([True]))
            np.savez(t.at("no.npz"), use_cache_branch=np.array([False]))
            p = t.call("read", both, "--context", str(N), *flags, "--onnx", "-o", read)
            warned = "'use_cache_branch' is held 0" in p.stderr.decode()
            worst = far(evaluated(read, ids), want) if p.returncode == 0 else None
            t.case("%s, merged, %s: --context, the rows of its steps" % (name, what), p.stderr.decode()[-300:] if p.returncode else "it %s that it chose" % ("says" if warned else "does not say") if warned != (not flags) else "" if worst < 1e-5 else "%.3g" % worst)
        t.good("read", both, "--onnx", "-o", read)
        _, ins = given(read, ids)
        feed = {n: np.arange(N)[None] if n == "position_ids" else np.ones_like(ids) if n == "attention_mask" else ids for n in ins}
        session = graphs.session(read)
        worst = far(session.run(None, feed)[0], want) if not any("past" in n for n in ins) else None
        t.case("%s, merged: a prompt, without inputs for a past" % name, "" if worst is not None and worst < 1e-5 else "%s, inputs %s" % (worst, ins))
    t.write("merged.onnx", merged(t.model(STEP), [helper.make_node("Not", ["use_cache_branch"], ["other"])]).SerializeToString())
    p = t.call("read", both, "--onnx", "-o", read)
    left = [n.op_type for n in onnx.load(read).graph.node] if p.returncode == 0 else p.stderr.decode()[-300:]
    t.case("use_cache_branch does more than choose: it stays an input", "" if "If" in left else str(left))


# ---- metadata, options -----------------------------------------------------------------------------------------------------------------------

def said(model): return {p.key: p.value for p in model.metadata_props}.get("mlo.context")


def check_stages():
    path = t.model(STEP)
    for stage in ("read", "scope", "extract", "roll", "quantize", "lower", "fold"):
        text = t.at(stage + ".json")
        t.good(stage, path, *(["--context", str(N)] if stage == "read" else []), "-o", text)
        t.good(stage, text, "--onnx", "-o", t.at(stage + ".onnx"))
        entries = {e["key"]: e["value"] for e in json.loads(t.read(text))["metadataProps"]}
        there = entries.get("mlo.context"), said(onnx.load(t.at(stage + ".onnx")))
        t.case("%s: mlo.context in JSON and ONNX" % stage, "" if there == (str(N),) * 2 else str(there))
        path = text
    t.good("emit", path, "-o", t.at("build"))
    t.case("... and in the core", "" if said(onnx.load(t.at("build/host/core.onnx"))) == str(N) else "not there")
    fused = [t.write(form + ".onnx", caches.model(form).SerializeToString()) for form in caches.FORMS]
    for name in sorted(glob.glob(os.path.join(t.tests, "models", "context", "*.onnx"))) + fused:
        p = t.call("fold", name, "--context", str(N), "-o", t.at("x.json"))
        t.case("%s: integers, folded" % os.path.basename(name)[:-5], "" if p.returncode == 0 else p.stderr.decode() or "it says nothing")


def refused(what, code, words, *args):
    p = t.call(*args)
    error = json.loads(p.stdout)["error"] if p.returncode else {"code": "none: it went through", "message": "", "node": ""}
    text = error["node"] + ": " + error["message"]
    t.case(what, "" if error["code"] == "MLO_E_" + code and all(w in text for w in words) else "%s: %s" % (error["code"], text))


def check_options():
    path, read = t.model(STEP), t.at("context.json")
    for value in ("0", "1", "-4", "x", "1.5", "65537"): refused("--context %s" % value, "USAGE", ["--context"], "read", path, "--context", value)
    t.good("read", path, "--context", "12", "-o", read)
    again = t.good("read", read, "--context", "12")
    t.case("the same context again", "" if again == t.good("read", read) else "differs")
    refused("another context", "USAGE", ["12"], "read", read, "--context", "13")
    t.good("roll", read, "-o", t.at("rolled.json"))
    refused("another context, later", "USAGE", ["12", "roll"], "lower", t.at("rolled.json"), "--context", "13")
    t.good("roll", t.model(stories.PROMPT), "-o", t.at("prompt.json"))
    refused("a context for what was read without", "USAGE", ["roll"], "lower", t.at("prompt.json"), "--context", "64")
    p = t.call("read", t.model(stories.PROMPT), "--context", "64", "--onnx", "-o", t.at("prompt.onnx"))
    t.case("a prompt of N tokens has a context of N", "" if p.returncode == 0 and said(onnx.load(t.at("prompt.onnx"))) == "64" else p.stderr.decode() or "it says nothing")
    refused("a prompt of another length", "SHAPE", ["input_ids", "64", "dynamic"], "read", t.model(stories.PROMPT), "--context", "32")
    refused("a past of fixed length", "SHAPE", ["past_0", "5", "dynamic"], "read", t.model("gpt2-cache"), "--context", "16")
    refused("more than there are positions", "DATA", ["32", "a smaller --context"], "read", form("gpt2-d18-eager-dims"), "--context", "33")
    t.good("read", path, "--dim", "step=16", "--context", "16", "-o", t.at("dim.json"))
    refused("--dim says otherwise", "SHAPE", ["input_ids", "8"], "read", path, "--dim", "step=8", "--context", "16")
    refused("taps without a context name the remedy", "UNSUPPORTED", ["--context"], "quantize", path, "--dim", "step=2", "--dim", "past=4")


# ---- what is none -----------------------------------------------------------------------------------------------------------------------------

def joined(m, past="past_key_values.1.key"): return next(n for n in m.graph.node if n.op_type == "Concat" and past in n.input)


def perturbed(edit, name="llama-d18-eager-one"):
    m = onnx.load(os.path.join(t.tests, "models", "context", name + ".onnx"))
    edit(m)
    return t.write("near.onnx", m.SerializeToString())


def behind(m): n = joined(m); n.input[:] = list(n.input)[::-1]
def other_present(m):
    n = joined(m)
    present = n.output[0]
    for u in m.graph.node:
        for k, name in enumerate(u.input):
            if name == present: u.input[k] = "all_keys"
    n.output[0] = "all_keys"
    m.graph.node.insert(list(m.graph.node).index(n) + 1, helper.make_node("Neg", ["all_keys"], [present]))
def no_present(m): m.graph.output.remove(next(o for o in m.graph.output if o.name == "present.1.key"))
def twice(m):
    at = list(m.graph.node).index(joined(m))
    m.graph.node.insert(at, helper.make_node("Neg", ["past_key_values.1.key"], ["minus"]))
    m.graph.output.append(helper.make_empty_tensor_value_info("minus"))
def stacked_parts(m): return [n for n in m.graph.node if n.op_type == "Concat" and n.input[0].startswith("select_")]
def stacked_behind(m): n = stacked_parts(m)[2]; n.input[:] = list(n.input)[::-1]
def stacked_twice(m):
    m.graph.node.append(helper.make_node("Neg", [stacked_parts(m)[3].input[0]], ["minus"]))
    m.graph.output.append(helper.make_empty_tensor_value_info("minus"))
def stacked_inside(m): m.graph.output.remove(next(o for o in m.graph.output if o.name == "presents"))
def cropped(which, value, of="present"):
    """The number at such a place of the Slices that make presents, or that take what is joined of pasts, is another one."""
    def edit(m):
        own = onnx.numpy_helper.from_array(np.atleast_1d(np.array(value, np.int64)), "another")
        m.graph.initializer.append(own)
        pasts = {o for n in m.graph.node if n.input and n.input[0].startswith("past_key_values") for o in n.output}
        for n in m.graph.node:
            if n.op_type == "Slice" and (n.output[0].startswith("present.") if of == "present" else n.input[0] in pasts): n.input[which] = "another"
    return edit
def of_slices(change, of):
    """The Slices that make presents, or that take what is joined of pasts, are changed."""
    def edit(m):
        pasts = {o for n in m.graph.node if n.input and n.input[0].startswith("past_key_values") for o in n.output}
        for n in list(m.graph.node):
            if n.op_type == "Slice" and (n.output[0].startswith("present.") if of == "present" else n.input[0] in pasts):
                change(n) if change.__code__.co_argcount == 1 else change(n, m)
    return edit
def computed(which):
    """Such an input of a node is what another one computes."""
    def change(n, m):
        name = "%s_computed" % n.output[0]
        m.graph.node.insert(list(m.graph.node).index(n), helper.make_node("Abs" if which == 4 else "Neg", [n.input[which]], [name]))
        n.input[which] = name
    return change
def minus_behind(n, m):
    m.graph.node.insert(list(m.graph.node).index(n) + 1, helper.make_node("Neg", [n.output[0] + "_plus"], [n.output[0]]))
    n.output[0] += "_plus"
def unused(n, m):
    for u in m.graph.node:
        for k, name in enumerate(u.input):
            if name == n.output[0]: u.input[k] = n.input[0]
def shared(m):
    n = joined(m, "past_key_values.2.key"); n.input[0] = "past_key_values.1.key"
    for i in m.graph.input:
        if i.name == "past_key_values.2.key": m.graph.input.remove(i); break
def three(m): joined(m).input.append(joined(m).input[1])
def unread(m): n = joined(m); n.op_type = "Identity"; del n.attribute[:], n.input[0]
def squared(m):
    at = list(m.graph.node).index(joined(m))
    m.graph.node.insert(at, helper.make_node("Mul", ["past_key_values.1.key"] * 2, ["square"]))
    joined(m).input[0] = "square"


def written(m): return [n for n in m.graph.node if n.op_type == "ScatterND" or n.op_type == "ScatterElements" and n.input[0].startswith("past_key_values")][2]
def rewritten(op, *more):
    """The third buffer is written elsewhere."""
    def edit(m):
        n = written(m)
        at = list(m.graph.node).index(n)
        m.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "one"))
        m.graph.node.insert(at, helper.make_node(op, [*more, n.input[1]][:2] if more else [n.input[1], "one"], ["elsewhere"]))
        n.input[1] = "elsewhere"
    return edit
def summed(m): written(m).attribute.append(helper.make_attribute("reduction", "add"))
def kept(m): m.graph.output.remove(next(o for o in m.graph.output if o.name == "present.1.key"))


def along(m): next(a for a in written(m).attribute if a.name == "axis").i = 1
def open_length(m):
    for v in list(m.graph.input) + list(m.graph.output):
        if "key_values" in v.name or "present" in v.name: v.type.tensor_type.shape.dim[2].dim_param = "places"


def before_writing(m, *nodes):
    """Nodes come before the third buffer is written, which reads what the last of them makes."""
    n = written(m)
    at = list(m.graph.node).index(n)
    for k, node in enumerate(nodes): m.graph.node.insert(at + k, node)
    n.input[0] = nodes[-1].output[0]
def turned_first(m): before_writing(m, helper.make_node("Transpose", [written(m).input[0]], ["turned"], perm=[0, 1, 2, 3]))
def turned_again(m): before_writing(m, helper.make_node("Transpose", [written(m).input[0]], ["turned"], perm=[0, 1, 2, 3]))
def mover(m): return next(n for n in m.graph.node if written(m).input[0] in n.output)
def turned_about(m): del mover(m).attribute[:]
def turned_beyond(m): mover(m).attribute[0].ints[0] = 4
def counted_first(m): m.graph.node.insert(0, helper.make_node("Shape", [mover(m).input[0]], ["sizes"]))
def counted_behind(m): m.graph.node.insert(list(m.graph.node).index(mover(m)) + 1, helper.make_node("Shape", [mover(m).output[0]], ["sizes"]))
def read_twice(m):
    m.graph.node.insert(0, helper.make_node("Neg", [mover(m).input[0]], ["minus"]))
    m.graph.output.append(helper.make_empty_tensor_value_info("minus"))
def an_input_less(m): del written(m).input[2]
def deprecated(m): written(m).op_type = "Scatter"
def beyond(m): next(a for a in written(m).attribute if a.name == "axis").i = 9
def from_the_end(m): next(a for a in written(m).attribute if a.name == "axis").i = -2
def lengths(shape):
    """How much is past comes as numbers of another shape."""
    def edit(m):
        length = next(i for i in m.graph.input if i.name == "length")
        length.type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto(dim=[onnx.TensorShapeProto.Dimension(**d) for d in shape])) if shape is not None else length.type.tensor_type.ClearField("shape")
    return edit


def check_buffers():
    for static, op, edits in (
            ("llama-d18-eager-static", "ScatterND", (("moved by no order", turned_about), ("moved by an axis that is none", turned_beyond), ("moved twice", turned_again), ("whose sizes are read, too", counted_first),
                                                      ("whose sizes are read as it is moved", counted_behind), ("that something else reads", read_twice))),
            ("llama-ts17-eager-static", "ScatterElements", (("that is moved", turned_first), ("along an axis that is none", beyond), ("written by what ONNX has no more", deprecated)))):
        for what, edit in (*edits, ("written with nothing", an_input_less)):
            refused("%s, a buffer %s" % (op, what), "UNSUPPORTED", ["DynamicCache"], "read", perturbed(edit, static), "--context", N)
    want = Steps(form("llama-ts17-eager-static")).rows(np.arange(N)[None], (N,))
    t.good("read", perturbed(from_the_end, "llama-ts17-eager-static"), "--context", N, "--onnx", "-o", t.at("end.onnx"))
    t.case("a buffer's axis from the end", "" if far(evaluated(t.at("end.onnx"), np.arange(N)[None]), want) < 1e-5 else "differs")
    for what, shape in ("no shape", None), ("two axes", [{"dim_value": 1}, {"dim_value": 1}]), ("two numbers", [{"dim_value": 2}]), ("an open size", [{"dim_param": "some"}]):
        p = t.call("read", perturbed(lengths(shape), "llama-d18-eager-static"), "--context", N, text=True)
        t.case("how much is past has %s" % what, "" if p.returncode in (3, 4) and p.stderr.count("[MLO_E_") == 1 else "status %d: %s" % (p.returncode, p.stderr))
    for static, op in ("llama-d18-eager-static", "ScatterND"), ("llama-ts17-eager-static", "ScatterElements"):
        for what, edit, words in (
                ("rows behind the first", rewritten("Add"), [op, "positions"]),
                ("rows in another order", rewritten("Sub", "one"), [op, "positions"]),
                ("rows that are added", summed, [op, "DynamicCache"]),
                ("a buffer that stays inside", kept, ["past_key_values.1.key", "DynamicCache"])):
            refused("%s, %s" % (op, what), "UNSUPPORTED", words, "read", perturbed(edit, static), "--context", N)
        refused("%s, another length" % op, "SHAPE", ["past_key_values.0.key", "--context 16"], "read", perturbed(lambda m: None, static), "--context", "12")
    refused("rows along the heads", "SHAPE", ["past_key_values.1.key", "2 positions"], "read", perturbed(along, "llama-ts17-eager-static"), "--context", N)
    t.good("read", perturbed(open_length, "llama-ts17-eager-static"), "--context", N, "--onnx", "-o", t.at("open.onnx"))
    ids = np.random.default_rng(2).integers(0, 40, (1, N))
    want = Steps(os.path.join(t.tests, "models", "context", "llama-ts17-eager-static.onnx")).rows(ids, (5, 1, 7, 3))
    worst = far(evaluated(t.at("open.onnx"), ids), want)
    t.case("buffers of any length hold the context", "" if worst < 1e-5 else "%.3g" % worst)


def check_near():
    for what, edit, words in (
            ("a past behind what comes in", behind, ["past_key_values.1.key", "in front"]),
            ("a present that is not what is attended to", other_present, ["past_key_values.1.key", "output"]),
            ("a present that stays inside", no_present, ["past_key_values.1.key", "output"]),
            ("a past that something else reads, too", twice, ["past_key_values.1.key", "readers"]),
            ("a past for two layers", shared, ["past_key_values.1.key", "readers"]),
            ("a past with two behind it", three, ["past_key_values.1.key", "alone"]),
            ("a past that nothing reads", unread, ["past_key_values.1.key"]),
            ("a past that is not joined as it came", squared, ["past_key_values.1.key"])):
        refused(what, "UNSUPPORTED", words, "read", perturbed(edit), "--context", str(N))
    for what, edit in (
            ("all pasts in one tensor, one of them behind what comes in", stacked_behind),
            ("all pasts in one tensor, one of which something else reads, too", stacked_twice),
            ("all pasts in one tensor, whose layers are told by what is computed", stacked_open), ("all pasts in one tensor, three joined", stacked_three),
            ("all pasts in one tensor, whose presents stay inside", stacked_inside)):
        refused(what, "UNSUPPORTED", ["past_key_values"], "read", perturbed(edit, "gpt2-d18-eager-stacked"), "--context", str(N))
    ids, path = np.random.default_rng(1).integers(0, 16, (1, N)), perturbed(split_and_squeezed(), "gpt2-d18-eager-stacked")
    t.good("read", path, "--context", str(N), "--onnx", "-o", t.at("split.onnx"))
    worst = far(evaluated(t.at("split.onnx"), ids), Steps(path).rows(ids, (5, 1, N - 6)))
    t.case("all pasts in one tensor, taken apart by a Split", "" if worst < 1e-5 else "%.3g" % worst)
    p = t.call("read", perturbed(split_and_squeezed(1), "gpt2-d18-eager-stacked"), "--context", str(N), text=True)
    t.case("all pasts in one tensor, of which a part has no name", "" if p.returncode in (3, 4) and p.stderr.count("[MLO_E_") == 1 else "status %d: %s" % (p.returncode, p.stderr))
    window, export = os.path.join(t.tests, "models", "context", "mistral-d18-eager-one-cropped.onnx"), "mistral-d18-eager-one-cropped"
    refused("a window that is shorter than the context", "UNSUPPORTED", ["past_key_values.0.key", "the last 23 tokens", "--context 24"], "read", window, "--context", "25")
    t.good("read", window, "--context", "24", "-o", t.at("window.json"))
    for what, which, value in ("the first tokens", 1, 0), ("all but the last tokens", 2, -1), ("the last channels", 3, 3):
        refused("a present of %s" % what, "UNSUPPORTED", ["past_key_values.0.key", "output"], "read", perturbed(cropped(which, value), export), "--context", str(N))
    window, export = os.path.join(t.tests, "models", "context", "mistral-ts17-eager-one-cropped.onnx"), "mistral-ts17-eager-one-cropped"
    refused("a past that is cropped, too, of a window shorter than the context", "UNSUPPORTED", ["past_key_values.0.key", "the last 23 tokens", "--context 24"], "read", window, "--context", "25")
    for what, which, value in ("the first tokens", 1, 0), ("all but the last tokens", 2, -1), ("the last channels", 3, 3):
        refused("%s of a past" % what, "UNSUPPORTED", ["past_key_values.0.key"], "read", perturbed(cropped(which, value, "past_key_values"), export), "--context", str(N))
    refused("a past of fewer tokens than the context", "UNSUPPORTED", ["past_key_values.0.key", "the last 9 tokens", "--context 10"], "read",
            perturbed(cropped(1, -9, "past_key_values"), export), "--context", str(N))
    refused("a past of the last tokens, and a present of fewer", "UNSUPPORTED", ["past_key_values.0.key", "the last 9 tokens", "--context 10"], "read", perturbed(cropped(1, -9), export), "--context", str(N))
    for of in "present", "past_key_values":
        for what, edit in (
                ("along two axes", cropped(1, [-9, -2], of)), ("to an end that is two numbers", cropped(2, [99, 99], of)), ("of no axis", of_slices(lambda n: n.input.__delitem__(slice(3, None)), of)),
                ("from what is computed", of_slices(computed(1), of)), ("to what is computed", of_slices(computed(2), of)), ("along what is computed", of_slices(computed(3), of)), ("in steps that are computed", of_slices(computed(4), of))):
            refused("%s cropped %s" % (of, what), "UNSUPPORTED", ["past_key_values.0.key"], "read", perturbed(edit, export), "--context", str(N))
    refused("the last tokens of a past, which are not joined as they are", "UNSUPPORTED", ["past_key_values.0.key"], "read", perturbed(of_slices(minus_behind, "past_key_values"), export), "--context", str(N))
    refused("the last tokens of a past, for nobody", "UNSUPPORTED", ["past_key_values.0.key"], "read", perturbed(of_slices(unused, "past_key_values"), export), "--context", str(N))
    for axis, code, words in (3, "SHAPE", "fixed length of 4"), (4, "UNSUPPORTED", "no Concat joins it"), (-5, "UNSUPPORTED", "no Concat joins it"):
        refused("a past joined along axis %d" % axis, code, ["past_key_values.1.key", words], "read", perturbed(lambda m: setattr(joined(m).attribute[0], "i", axis)), "--context", str(N))
    def renamed(m):
        names = {v.name: "v%d" % k for k, v in enumerate(list(m.graph.input) + list(m.graph.output)) if "key_values" in v.name or "present" in v.name}
        for n in m.graph.node:
            for group in n.input, n.output:
                for k, name in enumerate(group): group[k] = names.get(name, name)
        for v in list(m.graph.input) + list(m.graph.output): v.name = names.get(v.name, v.name)
    p = t.call("read", perturbed(renamed), "--context", str(N), "--onnx", "-o", t.at("renamed.onnx"))
    ins = [i.name for i in onnx.load(t.at("renamed.onnx")).graph.input] if not p.returncode else p.stderr
    t.case("names say nothing", "" if ins == ["input_ids"] else str(ins))


# ---- operators with a cache of their own, one thing changed --------------------------------------------------------------------------------

def reader(m, name): return next(n for n in m.graph.node if name in n.input)
def first_seen(m, op, *inputs, **attributes):
    """A node in front of all others, whose result is an output."""
    m.graph.node.insert(0, helper.make_node(op, inputs, ["seen"], **attributes))
    m.graph.output.append(helper.make_empty_tensor_value_info("seen"))
def in_a_branch(m):
    then, other = (helper.make_graph([helper.make_node(op, ["past.1.key"], ["r"])], op, [], [helper.make_empty_tensor_value_info("r")]) for op in ("Neg", "Abs"))
    m.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "which"))
    first_seen(m, "If", "which", then_branch=then, else_branch=other)
def sized(m): m.graph.node.insert(0, helper.make_node("Size", ["past.1.key"], ["size"]))
def stays_inside(m): m.graph.output.remove(next(o for o in m.graph.output if o.name == "present.1.key"))
def open_heads(m): next(i for i in m.graph.input if i.name == "past.1.key").type.tensor_type.shape.dim[1].dim_param = "heads"
def scatters(m): return [n for n in m.graph.node if n.op_type == "TensorScatter"]
def in_a_circle(m):
    for n in scatters(m): n.attribute.append(helper.make_attribute("mode", "circular"))
def in_a_line(m):
    for n in scatters(m): n.attribute.append(helper.make_attribute("mode", "linear"))
def written_at(value, shape=None):
    """Where rows are written is a constant, or nothing, or said in another form."""
    def edit(m):
        given = next(i for i in m.graph.input if i.name == "written")
        if shape is not None: given.type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto(dim=[onnx.TensorShapeProto.Dimension(**d) for d in shape])); return
        m.graph.input.remove(given)
        if value is not None: m.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value), "written"))
        for n in scatters(m) if value is None else []: del n.input[2:]
    return edit
def computed_place(m):
    for n in scatters(m): n.input[2] = "elsewhere"
    m.graph.node.insert(0, helper.make_node("Abs", ["written"], ["elsewhere"]))
def counted(name):
    """How many keys there are is computed."""
    def edit(m):
        m.graph.node.insert(0, helper.make_node("Abs", [name], ["of_" + name]))
        for n in list(m.graph.node)[1:]:
            for k, i in enumerate(n.input): n.input[k] = "of_" + name if i == name else i
    return edit
def said_as(name, shape):
    def edit(m):
        s = next(i for i in m.graph.input if i.name == name).type.tensor_type
        s.ClearField("shape") if shape is None else s.shape.CopyFrom(onnx.TensorShapeProto(dim=[onnx.TensorShapeProto.Dimension(**d) for d in shape]))
    return edit


def beside(name, kind, dims, nodes, held=()):
    """Another input of a decoder, of which nodes make what is added to its words' rows, [1, step, 64]."""
    def edit(m):
        m.graph.input.append(helper.make_tensor_value_info(name, kind, dims))
        m.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in held)
        words = next(n for n in m.graph.node if n.op_type == "Gather" and n.input[1] == "input_ids")
        at, was = list(m.graph.node).index(words) + 1, words.output[0]
        words.output[0] = "words"
        for k, n in enumerate([*nodes, helper.make_node("Add", ["words", nodes[-1].output[0]], [was])]): m.graph.node.insert(at + k, n)
        if dims is None: m.graph.input[-1].type.tensor_type.ClearField("shape")
    return edit


def check_caches():
    """Decoders whose attention keeps its cache (caches.py), one thing changed: the rows that their own steps give, or a refusal; and beside their ids other inputs."""
    F, I, n = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, helper.make_node
    ids = np.random.default_rng(3).integers(0, caches.WORDS, (1, N))
    def changed(which, edit):
        m = caches.model(which)
        edit(m)
        return t.write("near.onnx", m.SerializeToString())
    for which in caches.FORMS[:3]:
        for what, edit, code, words in (
                ("a past that something else reads before", lambda m: first_seen(m, "Neg", "past.1.key"), "UNSUPPORTED", ["past.1.key", "readers"]),
                ("a past that a branch reads, too", in_a_branch, "UNSUPPORTED", ["past.1.key", "readers"]),
                ("a present that stays inside", stays_inside, "UNSUPPORTED", ["past.1.key", "no output"]),
                ("an open number of heads", open_heads, "SHAPE", ["past.1.key", "--dim"])):
            refused("%s: %s" % (which, what), code, words, "read", changed(which, edit), "--context", N)
    for what, edit in (
            ("a circle", in_a_circle), ("at a place that is computed", computed_place), ("at a constant place that is not the first", written_at([3])), ("at places of two sequences", written_at([0, 3])),
            ("at a place that is no list", written_at(0, []))):
        refused("scatter: written %s" % what, "UNSUPPORTED", ["past.0.key", "is written"], "read", changed("scatter", edit), "--context", N)
    def holds(which, what, edit, more={}, chunks=((N,), (5, 1, N - 6)), steps=None):
        path = changed(which, edit)
        p = t.call("read", path, "--context", str(N), "--onnx", "-o", t.at("read.onnx"), text=True)
        if p.returncode: return t.case("%s: %s" % (which, what), p.stderr)
        feed = {i.name: more[i.name](0, N) if i.name in more else caches.feeds(0, N).get(i.name, ids) for i in onnx.load(t.at("read.onnx")).graph.input}
        got = graphs.execute(t.at("read.onnx"), feed)[0]
        off = max(far(got, stepped(steps or path, ids, sizes, more)) for sizes in chunks)
        t.case("%s: %s" % (which, what), "" if off < 1e-5 and not any("past" in i for i in feed) else "differs by %.3g, takes %s" % (off, list(feed)))
    plain = t.write("plain.onnx", caches.model("scatter").SerializeToString())
    holds("scatter", "written in a line", in_a_line)
    holds("scatter", "written at 0, always", written_at([0]), chunks=((N,),), steps=plain)
    holds("scatter", "written at no place", written_at(None), chunks=((N,),), steps=plain)
    holds("scatter", "at a place of open sequences", written_at(0, [{"dim_param": "batch"}]))
    holds("scatter", "a number of keys that is computed", counted("full"))
    for shape in [{"dim_param": "batch"}], []: holds("gqa", "a number of keys in a list, %s" % shape, said_as("seqlens_k", shape or [{"dim_value": 1}]))
    for name in "seqlens_k", "total": holds("gqa", "%s, computed" % name, counted(name))
    holds("gqa", "a total of no known shape", said_as("total", None))
    holds("attention", "a past whose size is read", sized)
    rows = lambda at, size, *shape: (0.1 * np.arange(at, at + size)).reshape(shape).astype(np.float32)
    wide = ("wide", np.ones((1, 1, caches.HEADS * caches.WIDTH), np.float32))
    spread = lambda x: n("Mul", [x, "wide"], ["spread"])
    others = (     # what, its input, what is added of it, what it is fed with
        ("a number for each token", beside("gains", F, [1, "step"], [n("Unsqueeze", ["gains", "two"], ["g3"]), spread("g3")], [wide, ("two", [2])]), {"gains": lambda at, size: rows(at, size, 1, size)}),
        ("features of each token, joined to others", beside("features", F, [1, "step", 3], [n("Concat", ["features", "features"], ["both"], axis=-1), n("ReduceSum", ["both", "two"], ["g3"]), spread("g3")], [wide, ("two", [2])]),
         {"features": lambda at, size: np.repeat(rows(at, size, 1, size, 1), 3, 2)}),
        ("types of each token", beside("types", I, [1, "step", 1], [n("Cast", ["types"], ["g3"], to=F), spread("g3")], [wide]), {"types": lambda at, size: np.arange(at, at + size).reshape(1, size, 1)}),
        ("a picture of five axes", beside("picture", F, [1, 1, 2, 2, 1], [n("ReduceSum", ["picture", "axes"], ["g3"], keepdims=0), n("Unsqueeze", ["g3", "zero"], ["g4"]), spread("g4")], [wide, ("axes", [1, 2, 3]), ("zero", [0])]),
         {"picture": lambda at, size: rows(0, 4, 1, 1, 2, 2, 1)}),
        ("a floating position scale", beside("position_scale", F, [1, "step"], [n("Unsqueeze", ["position_scale", "two"], ["g3"]), spread("g3")], [wide, ("two", [2])]), {"position_scale": lambda at, size: np.full((1, size), 0.5, np.float32)}),
        ("positions from a number on", beside("position_offset", I, [], [n("Cast", ["position_offset"], ["g3"], to=F), spread("g3")], [wide]), {"position_offset": lambda at, size: np.array(2)}),
        ("a list of positions of another length", beside("positions_held", I, [3], [n("Cast", ["positions_held"], ["g3"], to=F), n("ReduceSum", ["g3"], ["g4"]), spread("g4")], [wide]), {"positions_held": lambda at, size: np.array([1, 0, 2])}),
        ("positions of no known shape", beside("positions_open", I, None, [n("Cast", ["positions_open"], ["g3"], to=F), n("ReduceSum", ["g3"], ["g4"]), spread("g4")], [wide]), {"positions_open": lambda at, size: np.array([[1, 2]])}),
        ("positions as ids are", beside("position_ids", I, [1, "step"], [n("Cast", ["position_ids"], ["g2"], to=F), n("Unsqueeze", ["g2", "two"], ["g3"]), spread("g3")], [wide, ("two", [2])]), {"position_ids": lambda at, size: np.arange(at, at + size)[None]}))
    for what, edit, more in others: holds("attention", what, edit, more)
    column = beside("column", I, [N, 1], [n("Cast", ["column"], ["g2"], to=F), n("Unsqueeze", ["g2", "zero"], ["g3"]), spread("g3")], [wide, ("zero", [0])])
    holds("attention", "tokens in a column", column, {"column": lambda at, size: np.arange(N)[:, None]}, chunks=((N,),))
    def masked(m):
        m.graph.input.append(helper.make_tensor_value_info("mask", F, [1, 1, "step", "total"]))
        for a in m.graph.node:
            if a.op_type == "Attention": a.input[3] = "mask"
    near = lambda at, size: (0.2 * np.arange(at + size)[None] - 0.2 * np.arange(at, at + size)[:, None]).astype(np.float32)[None, None]
    holds("attention", "a mask of floats, both of whose lengths are open", masked, {"mask": near})
    wide_open = beside("features", F, [1, "step", "many"], [n("Concat", ["features", "features"], ["both"], axis=-1), n("ReduceSum", ["both", "two"], ["g3"]), spread("g3")], [wide, ("two", [2])])
    refused("attention: features of an open number, joined", "UNSUPPORTED", ["features", "no output"], "read", changed("attention", wide_open), "--context", N)
    short = beside("others", I, [1, 7], [n("Cast", ["others"], ["g2"], to=F), n("ReduceSum", ["g2"], ["g3"]), spread("g3")], [wide])
    refused("attention: other tokens, fewer of them", "SHAPE", ["others", "7 tokens"], "read", changed("attention", short), "--context", N)
    for value in "1", "65537", "-3", "x":
        m = caches.model("attention")
        m.metadata_props.add(key="mlo.context", value=value)
        refused("metadata that say a context of %s" % value, "DATA", ["mlo.context", value], "read", t.write("near.onnx", m.SerializeToString()), "--context", N)


def stepped(path, ids, sizes, more):
    """The rows of a decoder of caches.py, step by step in ONNX Runtime; `more`: input -> what it is fed with for tokens [at, at + size)."""
    session, past, rows, at = graphs.session(path), {}, [], 0
    for size in sizes:
        feed = {}
        for i in session.get_inputs():
            if i.name.startswith("past"): feed[i.name] = past.get(i.name, np.zeros([0 if isinstance(d, str) else d for d in i.shape], np.float32))
            else: feed[i.name] = more[i.name](at, size) if i.name in more else caches.feeds(at, size).get(i.name, ids[:, at:at + size])
        names = [o.name for o in session.get_outputs()]
        out = dict(zip(names, session.run(None, feed)))
        past = {o.replace("present", "past"): v for o, v in out.items() if o.startswith("present")}
        rows.append(out["logits"])
        at += size
    return np.concatenate(rows, 1)


def split_and_squeezed(*outs):
    """All pasts in one tensor, whose layers a Split takes apart, and a Squeeze each."""
    def edit(m):
        taken = [n for n in m.graph.node if n.op_type == "Gather" and n.input[0] == "past_key_values"]
        at = list(m.graph.node).index(taken[0])
        m.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "layers"))
        for n in taken: m.graph.node.remove(n)
        m.graph.node.insert(at, helper.make_node("Split", ["past_key_values"], ["part_%d" % k for k in range(len(taken))], axis=0, num_outputs=len(taken)))
        for k, n in enumerate(taken): m.graph.node.insert(at + 1 + k, helper.make_node("Squeeze", ["part_%d" % k, "layers"], [n.output[0]]))
        for k in outs: next(n for n in m.graph.node if n.op_type == "Squeeze" and n.input[0] == "part_%d" % k).input[1] = ""; m.graph.node[at].output[k] = ""
    return edit
def stacked_open(m):
    n = next(n for n in m.graph.node if n.op_type == "Gather" and n.input[0] == "past_key_values")
    m.graph.node.insert(list(m.graph.node).index(n), helper.make_node("Abs", [n.input[1]], ["layer"]))
    n.input[1] = "layer"
def stacked_three(m): stacked_parts(m)[2].input.append(stacked_parts(m)[2].input[1])


def check_changed():
    """An export with one thing changed or two: read with a context it says what its own steps say, by ONNX Runtime, or it is refused in one line; so does a core of
    ids, in integers, or it is refused, where a row says `ids`."""
    with open(os.path.join(t.tests, "context.txt")) as f: rows = [[w.strip() for w in l.split("|")] for l in f if not l.startswith("#")]
    ids = np.random.default_rng(1).integers(0, 16, (1, N))
    refusal = lambda p: "" if p.returncode in (3, 4) and p.stderr.count("[MLO_E_") == 1 else "status %d: %s" % (p.returncode, p.stderr)
    for name in dict.fromkeys(name for name, *_ in rows):
        wrong = []
        for what, *core in [row for model, *row in rows if model == name]:
            c = alike.made(onnx.load(form(name)), what, alike.whole)
            if not c: wrong.append("there is no '%s' any more; write context.txt anew" % what)
            else:
                path = t.write("near.onnx", c.SerializeToString())
                p = t.call("quantize" if core else "read", path, "--context", str(N), *(["--tokens"] if core else []), "--onnx", "-o", t.at("without.onnx"), text=True)
                why = refusal(p) if p.returncode else ""
                if not p.returncode and core:
                    got, want = (np.asarray(x).ravel() for x in (graphs.session(t.at("without.onnx")).run(None, {"input_ids": ids})[0], Steps(path).rows(ids, [N])))
                    cosine = got @ want / np.linalg.norm(got) / np.linalg.norm(want)
                    why = "" if cosine > 0.999 else "integers, cosine %.4f" % cosine
                elif not p.returncode:
                    off = far(graphs.execute(t.at("without.onnx"), given(t.at("without.onnx"), ids)[0])[0], Steps(path).rows(ids, [N]))
                    why = "" if off < 1e-4 else "differs by %.3g" % off
                if why: wrong.append("%s: %s" % (what, why))
        t.case("%s, changed" % name, "; ".join(wrong[:3]))


def check_mixing():
    family = lambda name: os.path.join(t.tests, "models", "families", name + ".onnx")
    for what, path, n, words in (
            ("an encoder", t.model("bert-tiny-dynamic"), N, ["node_matmul_1", "later keys", "decoder"]),
            ("an encoder, quantized", t.model("bert-tiny-qdq"), 32, ["later keys"]),
            ("cross-attention", family("whisper-decoder-d18-sdpa-none-m"), 6, ["encoder's output"]),
            ("no attention", t.model("mlp-res"), 8, ["loop", "attentions"])):
        refused(what, "UNSUPPORTED", words, "quantize", path, "--context", n)
    t.good("roll", t.model("convnext-tiny"), "--onnx", "-o", t.at("conv.onnx"))
    m = onnx.load(t.at("conv.onnx"))
    m.metadata_props.add(key="mlo.context", value="16")
    refused("a convolution", "UNSUPPORTED", ["convolution"], "quantize", t.write("conv.onnx", m.SerializeToString()))
    m.metadata_props[-1].value = "many"
    refused("metadata that are no number", "DATA", ["mlo.context", "many"], "quantize", t.write("conv.onnx", m.SerializeToString()))
    refused("no tokens at all", "SHAPE", ["tokens"], "read", t.model("vit-tiny"), "--context", N)


def called(m, name, old="position_ids"):
    """An input by another name."""
    for n in m.graph.node: n.input[:] = [name if i == old else i for i in n.input]
    next(i for i in m.graph.input if i.name == old).name = name


def check_positions():
    """Positions are known by what is made of them, or by their name where they pick rows that are added, as ids do. What else is whole numbers stays an input."""
    node, I = helper.make_node, onnx.TensorProto.INT64
    def left(edit, name):
        p = t.call("read", perturbed(edit, name), "--context", str(N), "--onnx", "-o", t.at("placed.onnx"), text=True)
        return p.stderr or "status %d" % p.returncode if p.returncode else {i.name for i in onnx.load(t.at("placed.onnx")).graph.input}
    for name in ("gemma3-d18-eager-dims-mask", "llama-d18-eager-one", "llama-ts17-sdpa-mask", "mistral-ts17-eager-one-cropped", "qwen3-d18-sdpa-one", "qwen3-d23-eager-dims", "gpt2-d18-eager-dims", "gpt2-ts17-sdpa-mask"):
        rows = name.startswith("gpt2")
        rest = {"input_ids", "attention_mask"} if "mask" in name else {"input_ids"}
        wrong = ["%s: %s" % (new, got) for new in ("input_pos", "pos", "at", "tokens") if (got := left(lambda m: called(m, new), name)) != (rest | {new} if rows and new in ("at", "tokens") else rest)]
        t.case("%s: positions by another name" % name, "; ".join(wrong))
    def beside(*nodes, **held):
        """Whole numbers of which a factor of the ids' rows is made."""
        def edit(m):
            word = next(n for n in m.graph.node if n.op_type == "Gather" and n.input[1] == "input_ids")
            at = list(m.graph.node).index(word) + 1
            for n in m.graph.node:
                for k, i in enumerate(n.input): n.input[k] = "k_rows" if i == word.output[0] else i
            for k, n in enumerate([*nodes, node("Mul", [word.output[0], "k_factor"], ["k_rows"])]): m.graph.node.insert(at + k, n)
            m.graph.input.append(helper.make_tensor_value_info("kinds", I, [1, "step"]))
            m.graph.initializer.extend(onnx.numpy_helper.from_array(np.array(v), k) for k, v in held.items())
        return edit
    wide, table = [2], np.ones((40, 1), np.float32)
    for what, edit in (("that scale rows", beside(node("Cast", ["kinds"], ["k_f"], to=onnx.TensorProto.FLOAT), node("Unsqueeze", ["k_f", "k_two"], ["k_factor"]), k_two=wide)),
                       ("that are compared with a number", beside(node("Equal", ["kinds", "k_pad"], ["k_b"]), node("Cast", ["k_b"], ["k_f"], to=onnx.TensorProto.FLOAT), node("Unsqueeze", ["k_f", "k_two"], ["k_factor"]), k_two=wide, k_pad=0)),
                       ("that are compared with each other", beside(node("Unsqueeze", ["kinds", "k_two"], ["k_a"]), node("Unsqueeze", ["kinds", "k_one"], ["k_c"]), node("Equal", ["k_a", "k_c"], ["k_b"]),
                                                                    node("Cast", ["k_b"], ["k_f"], to=onnx.TensorProto.FLOAT), node("ReduceMean", ["k_f"], ["k_factor"], axes=[2], keepdims=1), k_two=wide, k_one=[1])),
                       ("of a table that are normed", beside(node("Gather", ["k_table", "kinds"], ["k_g"]), node("Tanh", ["k_g"], ["k_factor"]), k_table=table)),
                       ("that pick rows to add", beside(node("Gather", ["k_table", "kinds"], ["k_g"]), node("Add", ["k_g", "k_table"], ["k_factor"]), k_table=table[:1]))):
        got = left(edit, "llama-d18-eager-one")
        t.case("whole numbers %s" % what, "" if got == {"input_ids", "kinds"} else str(got))


def check_rows():
    """A rotary embedding's table has as many rows as there may be tokens: what compile assumes fits, and what does not fit is refused by the table's rows."""
    m = caches.model("attention")
    angle = np.arange(32)[:, None] / 10.0 ** np.arange(caches.WIDTH // 2)[None]
    m.graph.initializer.extend(onnx.numpy_helper.from_array(f(angle).astype(np.float32), k) for k, f in (("cos", np.cos), ("sin", np.sin)))
    m.graph.input.append(helper.make_tensor_value_info("position_ids", onnx.TensorProto.INT64, [1, "step"]))
    for n in [n for n in m.graph.node if n.op_type == "Attention"]:
        for k, heads in (0, caches.HEADS), (1, caches.KEYS):
            turned = "%s_%d_turned" % (n.output[0], k)
            m.graph.node.insert(list(m.graph.node).index(n), helper.make_node("RotaryEmbedding", [n.input[k], "cos", "sin", "position_ids"], [turned], name=turned, num_heads=heads))
            n.input[k] = turned
    path = t.write("turned.onnx", m.SerializeToString())
    refused("more tokens than angles", "SHAPE", ["reach 32", "the table has 32", "--context"], "read", path, "--context", "33")
    t.good("read", path, "--context", "32", "--onnx", "-o", t.at("turned.read.onnx"))
    p = t.call("compile", path, "-o", t.at("turned"), text=True)
    t.case("compile assumes as many as there are", "" if not p.returncode and "keeps 32 tokens" in p.stderr else p.stderr or "it says nothing")


def last_row(m, *nodes, behind=False, held=()):
    """What the head reads, or what it gives, goes through nodes from `row` to `last`."""
    head = next(n for n in m.graph.node if "logits" in n.output)
    if behind: row, last, head.output[0] = "rows", "logits", "rows"
    else: row, last, head.input[0] = head.input[0], "last", "last"
    rename = {"row": row, "last": last}
    at = list(m.graph.node).index(head) + behind
    for k, n in enumerate(nodes):
        n.input[:], n.output[:] = ([rename.get(name, name) for name in names] for names in (n.input, n.output))
        m.graph.node.insert(at + k, n)
    m.graph.initializer.extend(onnx.numpy_helper.from_array(np.array(v), k) for k, v in dict(held).items())
    next(o for o in m.graph.output if o.name == "logits").type.tensor_type.ClearField("shape")


def check_last():
    """Logits of the last token alone: with a cache that is each token in turn, so there is a row for each, those of the export that gives all. What mixes rows stays."""
    node, ids = helper.make_node, np.random.default_rng(3).integers(0, 16, (1, N))
    cut, ends = node("Slice", ["row", "k_from", "k_to", "k_axis"], ["last"]), {"k_from": [-1], "k_to": [2 ** 63 - 1], "k_axis": [1]}
    one, number = node("Gather", ["row", "k_last"], ["last"], axis=1), {"k_last": -1}
    counted = [node("Shape", ["row"], ["k_sizes"], start=1, end=2), node("Sub", ["k_sizes", "k_one"], ["k_at"]), node("Gather", ["row", "k_at"], ["last"], axis=1)]
    for name in "llama-d18-eager-one", "gpt2-d18-eager-dims", "llama-ts17-eager-static":
        path = form(name)
        t.good("read", path, "--context", str(N), "--onnx", "-o", t.at("all.onnx"))
        want = graphs.execute(t.at("all.onnx"), given(t.at("all.onnx"), ids)[0])[0]
        for what, behind, nodes, held in (("in front of the head", False, [cut], ends), ("behind it", True, [cut], ends), ("by its number", False, [one], number), ("by its number, behind", True, [one], number), ("by a count", False, counted, {"k_one": [1]})):
            edit = lambda m: last_row(m, *(onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes), behind=behind, held=held)
            p = t.call("read", perturbed(edit, name), "--context", str(N), "--onnx", "-o", t.at("last.onnx"), text=True)
            got = None if p.returncode else graphs.execute(t.at("last.onnx"), given(t.at("last.onnx"), ids)[0])[0]
            off = "" if p.returncode or got.size == want.size and far(got.reshape(want.shape), want) < 1e-5 else "shape %s" % (got.shape,)
            t.case("%s: the last row %s" % (name, what), off or (p.stderr if p.returncode else "" if "'logits' is of the last token alone" in p.stderr else "it says nothing"))
    for what, nodes, held in (("the first row", [node("Gather", ["row", "k_first"], ["last"], axis=1)], {"k_first": 0}), ("the last two rows", [cut], dict(ends, k_from=[-2])),
                              ("the last row's largest", [node("Slice", ["row", "k_from", "k_to", "k_axis"], ["k_row"]), node("ReduceMax", ["k_row", "k_axis"], ["last"])], ends)):
        refused("logits of %s" % what, "UNSUPPORTED", ["no output is logits"], "run", perturbed(lambda m: last_row(m, *nodes, held=held)), "--context", str(N), "--prompt", "1", "--generate", "1")


# ---- text -------------------------------------------------------------------------------------------------------------------------------------

def generated(path, prompt, count, *more):
    return [s["tokens"] for s in json.loads(t.good("run", path, "--prompt", prompt, "--generate", str(count), *more))["sequences"]]


def greedy(): return stories.greedy()[0].tolist()


def check_generate():
    text, path = greedy(), t.at("story.onnx")
    t.good("read", t.model(STEP), "--context", "64", "--onnx", "-o", path)
    t.case("the trained step export says PyTorch's text", "" if generated(t.model(STEP), "1", 63, "--context", "64") == [text] else "another")
    t.case("so does the prompt export", "" if generated(t.model(stories.PROMPT), "1", 63) == [text] else "another")
    prompts = [text[:5], text[:20], [3, 4]]
    alone = [generated(path, ",".join(map(str, p)), 12)[0] for p in prompts]
    t.case("a prompt's text is what follows it", "" if alone[:2] == [text[:17], text[:32]] else str(alone))
    steps = Steps(t.model(STEP))
    ids = prompts[2][:]
    for _ in range(12): ids.append(int(steps.rows(np.array([ids]), (1,) * len(ids))[0, -1].argmax()))
    t.case("... as ONNX Runtime says token by token", "" if alone[2] == ids else "%s, not %s" % (alone[2], ids))
    t.case("several prompts are each alone", "" if generated(path, ";".join(",".join(map(str, p)) for p in prompts), 12) == alone else "differ")
    stop = text.index(text[9], 1)
    t.case("a stop id ends it", "" if generated(path, "1", 40, "--stop", str(text[9])) == [text[:stop + 1]] else "another")
    bare = json.loads(t.good("run", path, "--generate", "9"))["sequences"]
    t.case("without a prompt it begins with 1", "" if bare == [{"tokens": text[:10]}] else str(bare))
    t.case("the whole context", "" if generated(path, ",".join(map(str, text[:63])), 1) == [text] else "another")
    for what, words, more in (
            ("a long prompt", ["65", "64", "--context"], ("--prompt", ",".join(["1"] * 65), "--generate", "1")),
            ("a prompt and count", ["60", "5", "64"], ("--prompt", ",".join(["1"] * 60), "--generate", "5")),
            ("an id beyond the words", ["512", "511"], ("--prompt", "1,512", "--generate", "1")),
            ("no id", ["'x'"], ("--prompt", "1,x", "--generate", "1")),
            ("a negative id", ["'-1'"], ("--prompt", "-1", "--generate", "1")),
            ("an empty sequence", ["''"], ("--prompt", "1;", "--generate", "1")),
            ("no count", ["--generate"], ("--prompt", "1")),
            ("a count of none", ["--generate"], ("--prompt", "1", "--generate", "0")),
            ("a stop alone", ["--generate"], ("--inputs", t.at("x.npz"), "--stop", "1")),
            ("inputs beside it", ["--inputs"], ("--prompt", "1", "--generate", "1", "--inputs", t.at("x.npz")))):
        refused(what, "USAGE", words, "run", path, *more)
    refused("a model with its cache", "UNSUPPORTED", ["past_key_values.0.key"], "run", t.model(STEP), "--prompt", "1", "--generate", "1")
    refused("a model without a head", "UNSUPPORTED", ["logits"], "run", t.model("gpt2-tiny"), "--prompt", "1", "--generate", "1")
    def sees_later(m):
        for n in m.graph.node:
            if n.op_type == "LessOrEqual": n.op_type = "GreaterOrEqual"
    refused("a model whose rows change with later tokens", "UNSUPPORTED", ["causal"], "run", perturbed(sees_later), "--context", str(N), "--prompt", "1,2", "--generate", "12")


def bigrams(words=23, tokens=40, ids=("ids", onnx.TensorProto.INT64, None), before=(), more=(), outputs=None, seed=4):
    """A decoder that is a table: row `id` are the logits of what follows it. Nodes before the Gather, other inputs and outputs; a file, and the table."""
    table = np.random.default_rng(seed).standard_normal((words, words)).astype(np.float32)
    name, kind, dims = ids
    node, value = helper.make_node, helper.make_tensor_value_info
    outputs = outputs or [("logits", [node("Gather", ["table", before[-1].output[0] if before else name], ["logits"])], onnx.TensorProto.FLOAT, [1, tokens, words])]
    inputs = [value(name, kind, dims or [1, tokens])] if name else []
    g = helper.make_graph([*before, *(n for _, nodes, *_ in outputs for n in nodes)], "bigrams", inputs + [value(n, k, d) for n, k, d in more], [value(n, k, d) for n, _, k, d in outputs],
                          [onnx.numpy_helper.from_array(a, k) for k, a in (("table", table), ("axis", np.int64([2])), ("shape", np.int64([1, tokens])), ("short", table[:, :words - 1].copy()))])
    return t.write("bigrams.onnx", helper.make_model(g, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()), table


def follows(table, prompt, count, stop=-1):
    """The text that the table says, token by token."""
    text = list(prompt)
    while len(text) < len(prompt) + count and (len(text) == len(prompt) or text[-1] != stop): text.append(int(table[text[-1]].argmax()))
    return text


def check_generate_forms():
    """Inputs and outputs of decoders: what text is generated of, by numpy, and what is refused."""
    node, f, i64, i32 = helper.make_node, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.INT32
    def logits(index, out="logits", kind=f, dims=(1, 40, 23), table="table", after=()): return out, [node("Gather", [table, index], [after[0].input[0] if after else out]), *after], kind, list(dims)
    masked = [node("Cast", ["attention_mask"], ["m"], to=f), node("Unsqueeze", ["m", "axis"], ["m3"]), node("Cast", ["position_ids"], ["p"], to=f), node("Unsqueeze", ["p", "axis"], ["p3"]), node("Gather", ["table", "ids"], ["said"]), node("Mul", ["said", "m3"], ["seen"])]
    beside = [("attention_mask", i64, [1, 40]), ("position_ids", i32, [1, 40])]
    takes = {"ids": {}, "ids of 32 bits": {"ids": ("input_ids", i32, None)}, "a mask of ones and positions": {"more": beside, "outputs": [("logits", [*masked, node("Add", ["seen", "p3"], ["logits"])], f, [1, 40, 23])]},
             "ids behind nodes that keep them": {"before": [node("Cast", ["ids"], ["i"], to=i32), node("Reshape", ["i", "shape"], ["j"])]},
             "logits behind other outputs": {"outputs": [("row", [node("ReduceMax", ["logits"], ["row"], axes=[2], keepdims=0)], f, [1, 40]), logits("ids", "other", table="short", dims=(1, 40, 22)), logits("ids", "whole", i64, after=[node("Cast", ["raw"], ["whole"], to=i64)]), logits("ids")]}}
    takes["rows of logits without a batch"] = {"outputs": [logits("ids", dims=(40, 23), after=[node("Squeeze", ["raw", "first"], ["logits"])])], "before": [node("Constant", [], ["first"], value_ints=[0]), node("Identity", ["ids"], ["again"])]}
    for kind in onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE: takes["logits of type %s" % onnx.TensorProto.DataType.Name(kind)] = {"outputs": [logits("ids", kind=kind, after=[node("Cast", ["raw"], ["logits"], to=kind)])]}
    for what, how in takes.items():
        path, table = bigrams(**how)
        got, want = [generated(path, "3,1,4", 30), generated(path, "5", 39, "--stop", "0")], [[follows(table, [3, 1, 4], 30)], [follows(table, [5], 39, 0)]]
        t.case("text of %s" % what, "" if got == want else "%s, not %s" % (got, want))
    none, odd = "what this input is to hold is not known", "no list of token ids"
    refusals = {"ids that are floats": (odd, {"ids": ("ids", f, None), "before": [node("Cast", ["ids"], ["i"], to=i64)]}), "ids without a batch": (odd, {"ids": ("ids", i64, [40]), "before": [node("Reshape", ["ids", "shape"], ["i"])]}),
                "ids of two sequences": ("[2,40]", {"ids": ("ids", i64, [2, 40]), "outputs": [logits("ids", dims=(2, 40, 23))]}), "ids of an open length": ("--context N", {"ids": ("ids", i64, [1, "n"]), "outputs": [logits("ids", dims=(1, "n", 23))]}),
                "two lists of ids": ("beside 'ids'", {"more": [("others", i64, [1, 40])], "outputs": [("logits", [node("Add", ["ids", "others"], ["i"]), node("Gather", ["table", "i"], ["logits"])], f, [1, 40, 23])]}),
                "a mask alone": ("no input of token ids", {"ids": (None, None, None), "more": [("attention_mask", i64, [1, 40])], "outputs": [logits("attention_mask")]}),
                "a mask of floats": (none, {"more": [("mask", f, [1, 40])], "outputs": [logits("ids"), ("kept", [node("Neg", ["mask"], ["kept"])], f, [1, 40])]}), "a mask of others": (none, {"more": [("mask", i64, [1, 41])], "outputs": [logits("ids"), ("kept", [node("Neg", ["mask"], ["kept"])], i64, [1, 41])]}),
                "a mask of an open length": (none, {"more": [("mask", i64, [1, "n"])], "outputs": [logits("ids"), ("kept", [node("Neg", ["mask"], ["kept"])], i64, [1, "n"])]}),
                "logits of fewer words than ids": ("no output is logits", {"outputs": [logits("ids", table="short", dims=(1, 40, 22))]}),
                "logits of fewer tokens": ("no output is logits", {"outputs": [logits("ids", dims=(1, 39, 23), after=[node("Slice", ["raw", "zero", "last", "one"], ["logits"])])], "before": [node("Constant", [], ["zero"], value_ints=[0]), node("Constant", [], ["last"], value_ints=[39]), node("Constant", [], ["one"], value_ints=[1])]}),
                "one row of logits": ("no output is logits", {"outputs": [logits("ids", dims=(1, 23), after=[node("ReduceMax", ["raw"], ["logits"], axes=[1], keepdims=0)])]})}
    for what, (words, how) in refusals.items(): refused(what, "SHAPE" if words[0] in "[-" else "UNSUPPORTED", [words], "run", bigrams(**how)[0], "--prompt", "1", "--generate", "1")


def check_dynamic():
    """Weights of 8 bits and roundings by the range of all tokens (quantize_dynamic): the text is that of the weights in floats, whatever stands behind it. Where such a
    rounding is of something else the refusal names it."""
    from onnxruntime.quantization import quantize_dynamic, QuantType
    node, array = helper.make_node, onnx.numpy_helper.to_array
    for name in "llama-d18-eager-one", "llama-ts17-sdpa-mask":
        quantize_dynamic(form(name), t.at("dynamic.onnx"), weight_type=QuantType.QInt8)
        held = {i.name: array(i) for i in onnx.load(t.at("dynamic.onnx")).graph.initializer}
        def rounded(m):
            for i in m.graph.initializer:
                q = held.get(i.name + "_quantized")
                if q is not None: i.CopyFrom(onnx.numpy_helper.from_array(((q.astype(np.float32) - held[i.name + "_zero_point"]) * held[i.name + "_scale"]).astype(np.float32), i.name))
        want = generated(perturbed(rounded, name), "1,2,3", N - 3, "--context", str(N))
        p = t.call("run", t.at("dynamic.onnx"), "--context", str(N), "--prompt", "1,2,3", "--generate", str(N - 3), text=True)
        got = [s["tokens"] for s in json.loads(p.stdout)["sequences"]] if not p.returncode else p.stderr
        t.case("%s, quantized dynamically" % name, "%s, not %s" % (got, want) if got != want else "" if "DynamicQuantizeLinear" in p.stderr else "it says nothing")
    # one row is large: what was said before it is rounded to 0 when it comes
    table = np.zeros((23, 23), np.float32)
    for k in range(22): table[k, k + 1] = 1e-3
    table[5] = 1e3
    made = [node("Constant", [], ["rows"], value=onnx.numpy_helper.from_array(table)), node("Gather", ["rows", "ids"], ["raw"]), node("DynamicQuantizeLinear", ["raw"], ["q", "by", "zero"]), node("DequantizeLinear", ["q", "by", "zero"], ["logits"])]
    refused("logits that are rounded by their range", "UNSUPPORTED", ["changes with later tokens", "DynamicQuantizeLinear"], "run", bigrams(outputs=[("logits", made, onnx.TensorProto.FLOAT, [1, 40, 23])])[0], "--prompt", "1", "--generate", "9")


def parts(path, context):
    """How many tokens are said as in floats; where the texts part, how far apart the two floats' logits are that change places, and how far the integers' are from them (rms)."""
    text, ours, steps = greedy(), generated(path, "1", 63)[0], Steps(t.model(STEP))
    alike = next((k for k in range(64) if ours[k] != text[k]), 64)
    if alike == 64: return ours, alike, 0, 1
    ids = np.array([text[:alike] + [0] * (context - alike)])
    logits = steps.rows(ids[:, :alike], (alike,))[0, -1]
    return ours, alike, float(logits[text[alike]] - logits[ours[alike]]), float(np.sqrt(np.mean((evaluated(path, ids)[0, alike - 1] - logits) ** 2)))


# exports of the same weights (models/context.py); each is the step of the one that comes next
ALIKE = [["llama-d18-eager-one", "llama-d18-sdpa-dims-mask", "llama-ts17-sdpa-mask", "llama-d18-eager-static", "llama-ts17-sdpa-stacked"],
         ["gpt2-d18-eager-dims", "gpt2-ts17-sdpa-mask", "gpt2-d18-eager-stacked"], ["qwen3-d18-sdpa-one", "qwen3-d23-eager-dims"]]


def form(name): return os.path.join(os.path.dirname(os.path.abspath(__file__)), "models/context", name + ".onnx")


def edited(name, change):
    """An export with one thing changed, which ONNX Runtime takes."""
    m = onnx.load(form(name))
    change(m.graph)
    path = t.write("edited.onnx", m.SerializeToString())
    graphs.session(path)
    return path


def heavier(name, shape):
    """The first number of the first parameter of such a name and shape is another."""
    def change(g):
        tensor = next(i for i in g.initializer if name in i.name and list(i.dims) == shape)
        x = onnx.numpy_helper.to_array(tensor).copy()
        x.flat[0] += 1
        tensor.CopyFrom(onnx.numpy_helper.from_array(x, tensor.name))
    return change


def exchanged(g):
    """The first two layers' gates change places."""
    a, _, b = [i for i in g.initializer if list(i.dims) == [16, 24]][:3]
    x, y = (onnx.numpy_helper.to_array(i) for i in (a, b))
    a.CopyFrom(onnx.numpy_helper.from_array(y, a.name))
    b.CopyFrom(onnx.numpy_helper.from_array(x, b.name))


CHANGES = {"a weight": heavier("", [16, 24]), "a gain": heavier("input_layernorm.weight", [16]), "an angle": heavier("inv_freq", [2]), "two layers' gates": exchanged}


def check_prefill():
    pairs = [(form(a), form(b), N) for names in ALIKE for a, b in zip(names, names[1:] + names[:1])] + [(t.model(STEP), t.model(stories.PROMPT), 64)]
    one, other = form(ALIKE[0][0]), form(ALIKE[0][1])
    for step, prompt, context in pairs:
        p = t.call("lower", step, "--context", str(context), "--prefill", prompt)
        t.case("%s and %s are one body" % (os.path.basename(step), os.path.basename(prompt)),
               "" if p.returncode == 0 and b"same body" in p.stderr and b"every integer equal" in p.stderr else p.stderr.decode()[-300:] or "it says nothing")
    for what, change in CHANGES.items():
        refused("%s, another" % what, "MISMATCH", ["not of one"], "lower", other, "--context", str(N), "--prefill", edited(ALIKE[0][0], change))
    p = t.call("lower", one, "--context", str(N), "--weights", "4", "--prefill", other)
    t.case("weights of 4 bits, which make up for each other", "" if p.returncode == 0 and b"every integer equal" in p.stderr else p.stderr.decode()[-300:] or "it says nothing")
    p = t.call("lower", t.model(STEP), "--context", "64", "--tokens", "--prefill", t.model(stories.PROMPT))
    t.case("with the head in the core, too", "" if p.returncode == 0 and b"same body" in p.stderr else p.stderr.decode()[-300:] or "it says nothing")
    refused("another family", "MISMATCH", ["norm", "rotary"], "lower", form(ALIKE[2][0]), "--context", str(N), "--prefill", one)
    refused("more layers", "MISMATCH", ["4 layers", "3"], "lower", form(ALIKE[1][0]), "--context", str(N), "--prefill", t.model("gpt2-tiny"))
    refused("a prompt of another length", "SHAPE", ["64"], "lower", t.model(STEP), "--context", "32", "--prefill", t.model(stories.PROMPT))
    t.good("quantize", t.model(STEP), "--context", "64", "-o", t.at("quantized.json"))
    refused("what is quantized already", "USAGE", ["--prefill", "floats"], "lower", t.at("quantized.json"), "--prefill", t.model(stories.PROMPT))
    refused("no such file", "IO", ["nowhere"], "lower", t.model(STEP), "--context", "64", "--prefill", t.at("nowhere.onnx"))
    with_errors = t.call("compile", t.model(STEP), "--context", "64", "--prefill", t.model(stories.PROMPT), "--max-error", "0.2", "-o", t.at("proved"))
    t.case("compile, with a search for widths", "" if with_errors.returncode == 0 and b"same body" in with_errors.stderr else with_errors.stderr.decode()[-300:] or "it says nothing")


def check_integers():
    path, folded = t.at("integers.onnx"), t.at("folded.onnx")
    for context in 256, 128, 64:
        t.good("quantize", t.model(STEP), "--context", str(context), "--onnx", "-o", path)
        ours, alike, apart, error = parts(path, context)
        t.note("context %d: %d of 64 tokens are those of the floats" % (context, alike))
        t.case("context %d: at least 40 tokens as in floats" % context, "" if alike >= 40 else "%d" % alike)
        t.case("context %d: where they part, floats are as near as the error" % context, "" if apart <= 2 * error else "%.3f apart, error %.3f" % (apart, error))
    t.good("fold", path, "--onnx", "-o", folded)
    t.case("folded it says the same", "" if generated(folded, "1", 63) == [ours] else "another")


if __name__ == "__main__":
    t.main(check_steps, check_merged, check_stages, check_buffers, check_near, check_caches, check_changed, check_options, check_mixing, check_positions, check_rows, check_last, check_generate, check_generate_forms, check_dynamic, check_prefill, check_integers, floor=375)
