#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Decoders whose layers read an encoder's output: a second stream of the core, which every iteration reads again.

    python tests/test_cross.py path/to/mlo [CHECK ...]

    cores     every word is that of mlo run and of ONNX Runtime on host/core.onnx, for several frames, with stalls; cycles are as predicted
    mask      what the encoder's mask hides changes no word
    blocks    --memory block leaves the matrices of the encoder's tokens whole, and says which, why and what helps; the others are in row blocks
    refused   near misses say what they are: two encoders' outputs, one with positions that an input gives, a mask of places between two sequences, an output that each layer changes,
              or that meets the decoder's tokens outside of attention; two frames in flight; an unrolled core

The exports are tests/models/families_cross.py's; test_families.py has all of them."""
import json
import os
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import harness as t
from graphs import session
from hardware import Run

FLAGS = ("--pe", "4", "--simd", "4")


def model(name): return os.path.join(t.tests, "models", "families", name + ".onnx")


def built(path, name, *flags):
    out = t.at(name)
    t.good("compile", path, "-o", out, *(flags or FLAGS))
    return out


def close(r): return "" if abs(r.predicted_cycles / r.cycles - 1) <= 0.01 else "%d cycles, %d predicted" % (r.cycles, r.predicted_cycles)


def check_cores():
    if not t.have("cores", "iverilog"): return
    cases = {"bart": (t.model("bart-tiny-opset23"), "--loop", "loop_1", *FLAGS), "longer": (model("t5-decoder-d18-eager-none-m"),), "shorter": (model("marian-decoder-ts17-sdpa-none-n"),),
             "positions": (model("detr-decoder-ts17-eager-none-n"),)}
    for name in t.drawn(cases, 3):
        path, *flags = cases[name]
        out = built(path, name, *flags)
        again = Run(out, "--frames", "3")
        t.case("%s: three frames, one after the other" % name, again.why() or close(again))
        t.case("%s: with stalls" % name, Run(out, "--frames", "2", "--stall", "30", "--seed", "7").why())


def check_blocks():
    """Every word, and who is where; the same asked of one matrix by a folding is refused in the same words."""
    path, out, why = model("marian-decoder-d18-eager-mask-m"), t.at("blocks"), "its tokens are the encoder's"
    p = t.call("compile", path, "--memory", "block", "-o", out, text=True)
    kernels = [k for k in json.loads(t.read(os.path.join(out, "manifest.json")))["kernels"] if k["op"].startswith("MVU")]
    whole = [k["name"] for k in kernels if k["memory"] == "layer"]
    t.case("row blocks: two matrices are whole", "" if len(whole) == 2 < len(kernels) and {k["memory"] for k in kernels} == {"layer", "block"} else str([(k["name"], k["memory"]) for k in kernels]))
    t.case("and the manifest says why of those", "" if [k["name"] for k in kernels if why in k.get("memory_why", "")] == whole else str([k.get("memory_why") for k in kernels]))
    lines = [l for l in p.stderr.splitlines() if ", ".join(whole) in l and why in l and "--weights 4" in l]
    t.case("a warning and the summary do", "" if len(lines) == 2 else p.stderr[-600:] or "it says nothing")
    quiet = t.call("compile", path, "-o", t.at("no-blocks"), text=True)
    t.case("who asks for none is told nothing", "" if quiet.returncode == 0 and why not in quiet.stderr else quiet.stderr[-300:] or "it says nothing")
    one = t.call("compile", path, "--folding", t.write("one.json", '{"%s": {"memory": "block"}}' % whole[0]), "-o", t.at("one"), text=True)
    t.case("a folding that asks it of one is refused", "" if one.returncode and why in one.stderr else "status %d: %s" % (one.returncode, one.stderr[-300:]))
    if t.have("blocks", "iverilog"):
        r = Run(out)
        t.case("every word", r.why() or close(r))


def check_near():
    """The integers of a decoder beside its encoder, as `mlo run` evaluates them, come near the floats."""
    made = json.loads(t.good("compile", t.model("t5-tiny"), "-o", t.at("near")))
    t.case("t5-tiny: near the floats", "" if made["error"][0]["cosine"] > 0.9 else str(made["error"]))


def check_mask():
    """Keys that the mask hides: other numbers there, the same words from pre.onnx and core.onnx."""
    out = built(model("bart-decoder-d18-sdpa-mask-m"), "mask")
    rng = np.random.default_rng(1)
    feed = {"input_ids": rng.integers(4, 60, (1, 6)), "encoder_hidden_states": rng.standard_normal((1, 9, 16)).astype(np.float32), "encoder_attention_mask": (np.arange(9) < 6).astype(np.int64)[None]}
    other = dict(feed, encoder_hidden_states=feed["encoder_hidden_states"].copy())
    other["encoder_hidden_states"][:, 6:] *= -3
    seen = dict(other, encoder_attention_mask=np.ones((1, 9), np.int64))

    def words(f):
        pre, core = (session(os.path.join(out, "host", part + ".onnx")) for part in ("pre", "core"))
        values = dict(f, **dict(zip([o.name for o in pre.get_outputs()], pre.run(None, {i.name: f[i.name] for i in pre.get_inputs()}))))
        return core.run(None, {i.name: values[i.name] for i in core.get_inputs()})[0]

    a, b, c = map(words, (feed, other, seen))
    t.case("what is hidden changes no word", "" if np.array_equal(a, b) else "%d words differ" % (a != b).sum())
    t.case("what is not hidden does", "" if not np.array_equal(b, c) else "none differs")


# ---- near misses ------------------------------------------------------------------------------------------------------

def projections(m): return [n for n in m.graph.node if n.op_type == "MatMul" and n.input[0] == "encoder_hidden_states"]


def crossed(m):
    """The softmaxes over the encoder's tokens: every second one."""
    return [n for n in m.graph.node if n.op_type == "Softmax"][1::2]


def before(m, node, new): m.graph.node.insert(list(m.graph.node).index(node), new)


def two_encoders(m):
    m.graph.input.append(helper.make_tensor_value_info("other_states", TensorProto.FLOAT, [1, 9, 16]))
    for n in projections(m)[1::2]: n.input[0] = "other_states"


def places(m):
    m.graph.initializer.append(numpy_helper.from_array(np.where(np.arange(9) <= np.arange(6)[:, None], 0, -1e9).astype(np.float32), "places"))
    for k, n in enumerate(crossed(m)):
        before(m, n, helper.make_node("Add", [n.input[0], "places"], ["placed%d" % k]))
        n.input[0] = "placed%d" % k


def changed(m):
    """Each layer scales the encoder's output by numbers of its own."""
    for k, n in enumerate(projections(m)):
        if k % 2 == 0:
            m.graph.initializer.append(numpy_helper.from_array(np.random.default_rng(k).standard_normal(16).astype(np.float32), "scale%d" % (k // 2)))
            before(m, n, helper.make_node("Mul", ["encoder_hidden_states", "scale%d" % (k // 2)], ["scaled%d" % (k // 2)]))
        n.input[0] = "scaled%d" % (k // 2)


def mixed(m):
    """The values that a query mixes get the encoder's mean added, which is no layer's projection."""
    means = [n for n in m.graph.node if n.op_type == "MatMul" and any(s.output[0] == n.input[0] for s in crossed(m))]
    m.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "axis1"))
    m.graph.node.insert(0, helper.make_node("ReduceMean", ["encoder_hidden_states", "axis1"], ["all_mean"], keepdims=1))
    readers = [n for n in m.graph.node if n.op_type == "Relu"]
    for k, n in enumerate(readers):
        m.graph.initializer.append(numpy_helper.from_array(np.random.default_rng(k).standard_normal((16, 32)).astype(np.float32), "mix%d" % k))
        before(m, n, helper.make_node("MatMul", ["all_mean", "mix%d" % k], ["mixes%d" % k]))
        before(m, n, helper.make_node("Add", [n.input[0], "mixes%d" % k], ["mixed%d" % k]))
        n.input[0] = "mixed%d" % k
    return means


NEAR = {"two encoders' outputs": (two_encoders, "two values from around the loop"), "a mask of places": (places, "hides keys by one bit each"),
        "an output that each layer changes": (changed, "cross-attention to keys and values that no layer"), "an output in the residual stream": (mixed, "around the loop")}
OPTIONS = {"two frames in flight": (("--frames-in-flight", "2"), "one frame"), "unrolled": (("--unrolled",), "leave --unrolled out")}


def asked(m):
    """Keys read the encoder's output with positions that an input gives."""
    m.graph.input.append(helper.make_tensor_value_info("positions", TensorProto.FLOAT, [1, 9, 16]))
    n = next(n for n in m.graph.node if n.op_type == "Add" and "encoder_hidden_states" in n.input)
    n.input[1 - list(n.input).index("encoder_hidden_states")] = "positions"


def refused(title, path, words, *flags):
    p = t.call("compile", path, "-o", t.at("refused"), *FLAGS, *flags, text=True)
    said = [l for l in p.stderr.splitlines() if words in l and "[MLO_E_UNSUPPORTED]" in l]
    t.case("%s: refused, and why" % title, "" if p.returncode == 4 and said else "status %d: %s" % (p.returncode, p.stderr[-300:]))


def check_refused():
    name = model("t5-decoder-d18-eager-none-m")
    for title, (change, words) in NEAR.items():
        m = onnx.load(name)
        change(m)
        path = t.at("near.onnx")
        onnx.save(m, path)
        t.good("roll", path, "-o", t.at("near-rolled.onnx"))
        refused(title, path, words)
    m = onnx.load(model("detr-decoder-d18-sdpa-none-m"))
    asked(m)
    refused("positions that an input gives", t.write("asked.onnx", m.SerializeToString()), "two values from around the loop")
    for title, (flags, words) in OPTIONS.items(): refused(title, name, words, *flags)
    p = t.call("sim", built(name, "short"), "--frame-tokens", "3", text=True)
    t.case("short frames: refused, and why", "" if p.returncode == 4 and "comes whole" in p.stderr else "status %d: %s" % (p.returncode, p.stderr[-300:]))


if __name__ == "__main__": t.main(check_cores, check_blocks, check_near, check_mask, check_refused, floor=18)
