#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hidden states of every layer: what the layers hand on leaves the core layer by layer, where something behind them reads several of these, or where they are the model's outputs.

    python tests/test_every.py path/to/mlo [CHECK ...]

    exports   models/every/ (families_every.py made it) become hardware, as test_families.py has it: words in Icarus, `mlo run` and ONNX Runtime, and how
              near they come to the floats, each output of them
    frames    frames of any length, one behind the other, with stalls everywhere: a frame leaves as one transfer, all its layers behind each other; Verilator, too
    scales    each output is as large as the floats: every layer's tokens have steps of their own
    limits    what such a core has not says so: frames in flight, --unrolled
    plain     the same in plain C, with what is around the loop and without: its own test, every word
    near      near misses: what a layer makes on the way is refused; a value that a layer scales, one layer's taken twice, is what ONNX Runtime makes of it"""
import json
import os
import re
import subprocess
import numpy as np
import onnx
from onnx import helper, numpy_helper
import hardware
import harness as t
import test_families

MODELS = os.path.join(t.tests, "models", "every")


def path(name): return os.path.join(MODELS, name + ".onnx")


def once(m):
    made = json.loads(t.read(os.path.join(m.out, "manifest.json")))
    return "" if made["output"].get("times") == made["iterations"] else "one layer's tokens leave"


def check_exports(): test_families.exports("every", once)


def check_frames():
    if not t.have("frames", "iverilog"): return
    for name, flags, lengths in (("bert-states-ts17-sdpa-mask-d", ("--pe", "4", "--simd", "2"), (9, 1, 4, 9)), ("gpt2-states-d18-sdpa-none-b", ("--pe", "2", "--simd", "4"), (7, 2, 1, 6)),
                                 ("depth-anything-d18-sdpa-none-a", ("--pe", "8", "--simd", "8", "--memory", "block"), (5, 3))):
        out = hardware.build(path(name), *flags, at=name)
        r = hardware.Run(out)
        times = r.manifest["iterations"]
        t.case("%s: a frame's words, all layers'" % name, r.why() or ("" if r.manifest["output"]["times"] == times > 2 else "they leave %s times" % r.manifest["output"].get("times")))
        ahead = abs(r.cycles - r.report["predicted_cycles"])
        t.case("%s: cycles as predicted" % name, "" if ahead <= 0.01 * r.cycles else "%d, predicted %d" % (r.cycles, r.report["predicted_cycles"]))
        r = hardware.Run(out, "--frames", "3", "--stall", "60", "--seed", "7", "--axi-latency", "40")
        t.case("%s: three frames, everything stalls" % name, r.why())
        r = hardware.Run(out, "--frame-tokens", ",".join(map(str, lengths)), "--stall", "25", "--seed", "3")
        t.case("%s: frames of %s tokens" % (name, lengths), r.why(sum(lengths)))
    if t.have("frames", "verilator"):
        t.case("Verilator: %s" % name, hardware.Run(out, "--stall", "30", verilator=True).why())


def check_scales():
    for name in "bert-states-ts17-sdpa-mask-d", "gpt2-states-d23-eager-none-a", "llava-ts17-sdpa-none-a":
        m = test_families.Model(path(name))
        m.compile()
        pairs, far = list(m.halves(m.out)), {}
        for x in onnx.load(m.path).graph.output:
            a, b = (np.concatenate([p[k][x.name].ravel() for p in pairs]).astype(float) for k in (0, 1))
            far[x.name] = round(float(a @ b / (a @ a)), 4)
        t.case("%s: every output is as large as the floats'" % name, "" if far and all(abs(x - 1) <= 0.03 for x in far.values()) else str(far))


def check_limits():
    for flags, status, words in ((("--frames-in-flight", "2"), 4, b"2 frames in flight where every layer's tokens leave"), (("--unrolled",), 4, b"--unrolled where every layer's tokens leave")):
        p = t.call("compile", path("bert-mix-d18-eager-none-a"), *flags, "-o", t.at("limit"))
        t.case(" ".join(flags) + ": refused", "" if p.returncode == status and words in p.stderr and not os.path.exists(t.at("limit")) else "status %d: %s" % (p.returncode, p.stderr.decode()[-300:]))
    said = t.call("compile", path("gpt2-states-d18-sdpa-none-b"), "--context", "7", "-o", t.at("context"), text=True)
    t.case("with a cache the hidden states are left out, and that is said", "" if said.returncode == 0 and "outputs of the model are left out" in said.stderr else said.stderr[-300:])


def check_plain():
    for name, whole in (("bert-states-d18-sdpa-mask-a", True), ("depth-anything-ts17-sdpa-none-c", False), ("wav2vec2-sum-d18-sdpa-none-a", True), ("gpt2-states-d23-eager-none-a", True)):
        out = t.at("c-" + name)
        t.good("compile", path(name), "--target", "c", *["--whole"] * whole, "-o", out)
        p = subprocess.run(["make", "-s", "-C", out, "test"], capture_output=True, text=True)
        t.case("plain C of %s%s: its test" % (name, ", whole" * whole), "" if p.returncode == 0 and "MLO PASS" in p.stdout else (p.stdout + p.stderr)[-400:])
    p = t.call("compile", path("bert-states-d18-sdpa-mask-a"), "-o", t.at("said"), text=True)
    t.case("compile's summary says what leaves", "" if "; every layer's tokens leave" in p.stderr else p.stderr[-400:])
    said, scales = t.read(t.at("c-bert-states-d18-sdpa-mask-a/README.md")).decode(), json.loads(t.read(t.at("said/manifest.json")))["output"]["scales"]
    listed = re.search(r"layer after layer: number = word x the layer's scale, (.*)", said)
    t.case("plain C: README.md says each layer's scale", "" if listed and np.allclose([float(x) for x in listed[1].split(",")], scales, rtol=1e-6) and len(scales) > 1 else said[:300])
    model = t.read(os.path.join(out, "model.c")).decode()
    t.case("plain C: a layer's tokens leave in the loop", "" if "memcpy(out + (size_t)l * (size_t)tokens * MODEL_CHANNELS" in model else "not there")


# ---- near misses --------------------------------------------------------------------------------------------------

def norms(m): return [n for n in m.graph.node if n.op_type == "LayerNormalization"]


def rereads(m, made):
    """The model's outputs are these values."""
    del m.graph.output[:]
    m.graph.output.extend(helper.make_empty_tensor_value_info(x) for x in made)


def inner(m):
    """What attention adds to, of every layer, joined: no layer hands it on."""
    made = [n.output[0] for n in norms(m)[1::2]]
    m.graph.node.append(helper.make_node("Concat", made, ["joined"], axis=1))
    rereads(m, ["joined"])


def scaled(m):
    """Each layer's, times a number of its own."""
    for k, n in enumerate(norms(m)[2::2]):
        m.graph.initializer.append(numpy_helper.from_array(np.array(0.5 + k, np.float32), "factor%d" % k))
        m.graph.node.append(helper.make_node("Mul", [n.output[0], "factor%d" % k], ["scaled%d" % k]))
    m.graph.node.append(helper.make_node("Sum", ["scaled%d" % k for k in range(len(norms(m)[2::2]))], ["sum_of_all"]))
    rereads(m, ["sum_of_all"])


def swapped(m):
    """The layers' in another order, one of them twice."""
    made = [n.output[0] for n in norms(m)[2::2]]
    m.graph.node.append(helper.make_node("Concat", [made[k] for k in (2, 0, 3, 1, 0)], ["joined"], axis=2))
    rereads(m, ["joined"])


def first(m):
    """The first layer's alone, beside what goes into it: the other layers are nobody's."""
    made = [n.output[0] for n in norms(m)]
    rereads(m, [made[0], made[2], made[4]])


def fed(m):
    """What one layer hands on goes into a later one once more: no layer is like the others."""
    made = norms(m)[2].output[0]
    late = norms(m)[6]
    m.graph.node.insert(list(m.graph.node).index(late), helper.make_node("Add", [late.input[0], made], ["fed"]))
    late.input[0] = "fed"


def check_near():
    for what, change, refused in (("on the way", inner, "all outputs of the model are made of them"), ("each layer's times a number", scaled, ""), ("in another order", swapped, ""),
                                  ("two layers' alone", first, ""), ("into a later layer", fed, None)):
        m = onnx.load(path("bert-states-d18-sdpa-mask-a"))
        change(m)
        onnx.save(m, t.at("near-d18-none-a.onnx"))
        one = test_families.Model(t.at("near-d18-none-a.onnx"))
        one.simulated = False
        one.compile()
        if one.out: one.judge()
        if refused: t.case("%s: refused" % what, "" if refused in one.why else one.why or "not refused")
        else: t.case("%s: what ONNX Runtime makes of it" % what, one.why if refused == "" or one.out else "")
        if one.out: hardware.shutil.rmtree(one.out)
    t.good("roll", path("bert-states-d18-sdpa-mask-a"), "-o", t.at("rolled.onnx"))
    m = onnx.load(t.at("rolled.onnx"))
    scan = next(n for n in m.graph.node if n.op_type == "Scan")
    scan.attribute.append(helper.make_attribute("scan_output_directions", [1] * (len(scan.output) - 1)))
    p = t.call("compile", t.write("reversed.onnx", m.SerializeToString()), "-o", t.at("reversed"), text=True)
    t.case("stacked from the end: not taken for the others", "" if p.returncode == 0 and "3 outputs of the model are left out" in p.stderr else p.stderr[-300:])


if __name__ == "__main__": t.main(check_exports, check_frames, check_scales, check_limits, check_plain, check_near, floor=53)
