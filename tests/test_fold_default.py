#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is chosen where no flag says it: a folding, row blocks on a device, one of several loops.

    python tests/test_fold_default.py path/to/mlo [NAME ...]

The choice is held against the front that `fold --pareto` prints, and what fits a device against the shares of test_device."""
import json
import os
import re
import numpy as np
import harness as t
from test_device import PLENTY, SHARES, fits, holds, named
from test_search import large, small

MOST, PERCENT = 512, 10                                                     # src/fold/knee.c
XCZU9EG = {"lut": 274080, "ff": 548160, "dsp": 2520, "bram": 912}           # AMD's product tables
SAID = r"mlo: fold: (\d+) multipliers, (\d+) cycles a frame, (\d+) % busy: (.*); --target-cycles, --budget-macs or --device choose another\n"


def chosen(path, *flags):
    """What fold says of its choice (a match of SAID, or None), and what show says of the model."""
    p = t.call("fold", path, *flags, "-o", t.at("chosen.json"), text=True)
    if p.returncode: raise RuntimeError(p.stderr)
    return re.search(SAID, p.stderr), json.loads(t.good("show", "--json", t.at("chosen.json")))


def near(lines):
    """Those of the front that cost little, the fewest multipliers first."""
    cost = lambda x: x["steady_cycles"] * x["multipliers"]
    least = min(map(cost, lines))
    return sorted((x for x in lines if 100 * cost(x) <= (100 + PERCENT) * least), key=lambda x: x["multipliers"])


def lowered(name):
    path = t.at(name + "-lowered.json")
    if not os.path.exists(path): t.good("lower", t.model(name), "-o", path)
    return path


def check_choice():
    """On the front, near the best cycles per multiplier, and said so."""
    paths = {c.name: c.path for c in [*small()[::3], large("deit-tiny")]}
    for name, path in {**paths, **{n: lowered(n) for n in ("bert-tiny", "bert-12", "vit-tiny", "mlp-res")}}.items():
        said, core = chosen(path)
        lines, why = near([json.loads(x) for x in t.good("fold", path, "--pareto").splitlines()]), []
        mine = [x for x in lines if (x["multipliers"], x["cycles"]) == (core["multipliers"], core["predicted_interval"])]
        if not said or not mine: why.append("%s: not one of the %d lines near the best" % (said, len(lines)))
        elif (int(said[1]), int(said[2])) != (mine[0]["multipliers"], mine[0]["cycles"]) or abs(int(said[3]) - 100 * mine[0]["utilization"]) > 1: why.append("said %s of %s" % (said[0], mine[0]))
        elif "the fastest" in said[4] and [x for x in lines if x["multipliers"] <= MOST][-1] != mine[0]: why.append("not the fastest of at most %d" % MOST)
        elif "the smallest" in said[4] and mine[0]["multipliers"] > MOST: why.append("not small")
        t.case("%s: %s multipliers of a front near the best" % (name, core["multipliers"]), "; ".join(why))


def check_front():
    """The cycles that --pareto says of a folding are those that show says where it is given, whatever was foretold before; of a causal decoder, too."""
    path, wrong = lowered("gpt2-tiny"), []
    lines = [json.loads(x) for x in t.good("fold", path, "--pareto").splitlines()]
    for line in lines[::4]:
        core = chosen(path, "--folding", t.write("line.json", json.dumps(line["folding"])))[1]
        if line["cycles"] != core["predicted_interval"]: wrong.append("%d multipliers: %d, not %d" % (line["multipliers"], line["cycles"], core["predicted_interval"]))
    t.case("gpt2-tiny: cycles of %d of %d foldings of the front" % (len(lines[::4]), len(lines)), "; ".join(wrong) if len(lines) > 8 else "few lines")


def check_simulated():
    """The tiny BERT and the tiny ViT are small and soon simulated: fewer than 200 multipliers, tens of thousands of cycles."""
    for name in "bert-tiny", "vit-tiny":
        said, core = chosen(lowered(name))
        t.case("%s: soon simulated" % name, "" if said and "under a minute" in said[4] and core["multipliers"] < 200 and core["predicted_cycles"] < 100000 else "%s %d" % (said, core["predicted_cycles"]))


def check_flags():
    """Any folding flag chooses, and nothing is said; the pipe says it once and gives compile's bytes."""
    path = lowered("mlp-res")
    for flags in ("--pe", 1), ("--simd", 4), ("--target-cycles", 50000), ("--budget-macs", 16), ("--bandwidth", 4), ("--device", "xczu3eg"):
        said, core = chosen(path, *flags)
        t.case("%s: asked for, not told" % " ".join(map(str, flags)), str(said) if said else "")
    auto = "--memory", "auto", "--tile", 8, "--target-cycles", 2000000
    p = t.call("fold", lowered("bert-12"), *auto, "--budget-bits", 1, text=True)
    least = int(re.search(r"the core holds (\d+) at least", p.stderr)[1])
    p = t.call("fold", lowered("bert-12"), *auto, "--budget-bits", least, "-o", t.at("auto.json"), text=True)
    memories = {k["memory"] for k in json.loads(t.good("show", "--json", t.at("auto.json")))["kernels"]} if p.returncode == 0 else p.stderr
    t.case("--memory auto with --tile has row blocks, too: where there is little room it takes them", "" if "block" in memories and "row blocks, and none may be" not in p.stderr else "%s %s" % (memories, p.stderr))
    p = t.call("fold", lowered("bert-12"), "--memory", "layer", "--tile", 8, "-o", t.at("layer.json"), text=True)
    t.case("--tile with --memory layer has nothing to be of", "" if p.returncode == 0 and "row blocks, and none may be; give --memory block or auto" in p.stderr else p.stderr or "it says nothing")
    one = chosen(path, "--pe", 1, "--simd", 1)[1]
    t.case("--pe 1 --simd 1: the smallest there is", "" if all(k["pe"] == 1 and k["simd"] == 1 for k in one["kernels"]) else str(one["kernels"]))
    p = t.call("fold", path, "--pareto", text=True)
    t.case("--pareto chooses nothing", p.stderr)
    p = t.call("compile", t.model("mlp-res"), "-o", t.at("one"), text=True)
    model, told = b"", []
    for stage, *rest in ["read", t.model("mlp-res")], ["scope"], ["extract"], ["roll"], ["quantize"], ["lower"], ["fold"], ["emit", "-o", t.at("two")]:
        q = t.call(stage, *rest, input=model)
        model, told = q.stdout, told + re.findall(SAID, q.stderr.decode())
    t.case("the pipe says it once", "" if told == re.findall(SAID, p.stderr) and len(told) == 1 else str(told))
    t.case("the pipe gives compile's directory", t.trees_differ(t.at("one"), t.at("two")))


def check_middle():
    """What does not fit a device of middle size with two layers on chip goes into row blocks, with no more multipliers."""
    core = large("minilm")
    lines = core.front()
    said, got = chosen(core.path)
    most = [x for x in near(lines) if x["multipliers"] <= MOST][-1]
    why = []
    if any(fits(x["area"], XCZU9EG) for x in lines): why.append("layers fit")
    if not said or "xczu9eg" not in said[4] or "row blocks" not in said[4]: why.append("said %s" % said)
    if not fits(got["area"], XCZU9EG) or not any(k["memory"] == "block" for k in got["kernels"]): why.append(str(got["area"]))
    if got["multipliers"] > most["multipliers"]: why.append("%d multipliers, not %d" % (got["multipliers"], most["multipliers"]))
    t.case("minilm: row blocks where layers do not fit an xczu9eg", "; ".join(why))
    said, got = chosen(core.path, "--memory", "layer")
    t.case("... but not where --memory says layer", "" if said and got["multipliers"] == most["multipliers"] and {k["memory"] for k in got["kernels"]} == {"layer"} else str(said))


def check_device():
    """--device tries row blocks by itself: as good as the better of both modes by hand."""
    core = large("minilm")
    small_one = small()[4]
    least = min(small_one.front(), key=lambda x: x["area"]["bram"])["area"]
    for c, device in (core, "xczu9eg"), (small_one, "xczu3eg"), (small_one, named({**PLENTY, "bram": holds(least, "bram") - 1})):
        each = {}
        for mode in ("layer",), ("block", "--tile", "auto"):
            p = t.call("fold", c.path, "--device", device, "--memory", *mode, "-o", t.at("hand.json"), text=True)
            each[mode[0]] = json.loads(t.good("show", "--json", t.at("hand.json")))["predicted_interval"] if p.returncode == 0 else p.stderr
        cycles = [x for x in each.values() if isinstance(x, int)]
        p = t.call("fold", c.path, "--device", device, "-o", t.at("auto.json"), text=True)
        got = json.loads(t.good("show", "--json", t.at("auto.json"))) if p.returncode == 0 else None
        wrong = got["predicted_interval"] != min(cycles) or (device == "xczu9eg" and not fits(got["area"], XCZU9EG)) if got and cycles else bool(got) != bool(cycles)
        t.case("%s on %s: the better of both modes" % (c.name, device), "%s %s" % (each, got and got["predicted_interval"]) if wrong else "")
        if not isinstance(each["layer"], int):
            names = "--memory block --tile auto fits" in each["layer"]
            t.case("... the remedy is named where it helps", "" if names == isinstance(each["block"], int) else str(each))


def check_loops():
    """Of several loops one becomes hardware, and it is said which."""
    p = t.call("lower", t.model("whisper-tiny"), "-o", t.at("whisper.json"), text=True)
    want = r"mlo: lower: loop \(encoder/encoder\.layers\.0\) becomes hardware: (\d+) % of the loops' multiply-accumulates; loop_1 \(decoder/decoder\.layers\.0\) goes to post\.onnx; --loop loop_1 chooses it\n"
    said = re.search(want, p.stderr)
    t.good("scope", t.model("whisper-tiny"), "--onnx", "-o", t.at("whisper.onnx"))
    macs = scopes_macs(t.at("whisper.onnx"), "encoder/encoder.layers.", "decoder/decoder.layers.")
    share = 100 * macs["encoder/encoder.layers."] / sum(macs.values())
    t.case("whisper: the encoder becomes hardware, the decoder goes to post.onnx", "" if p.returncode == 0 and said and abs(int(said[1]) - share) <= 1 else "%s; %.1f %%" % (p.stderr, share))
    p = t.call("lower", t.model("mlp-res"), "-o", t.at("x.json"), text=True)
    t.case("one loop: nothing to say", "" if "becomes hardware" not in p.stderr else p.stderr or "it says nothing")


def scopes_macs(path, *scopes):
    """Multiply-accumulates of the MatMul and Gemm of a model's layers, by scope, as ONNX infers its shapes."""
    import onnx
    model = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    known = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*model.graph.value_info, *model.graph.input, *model.graph.output]}
    macs = dict.fromkeys(scopes, 0)
    for n in model.graph.node:
        where = [s for s in scopes if any(p.key == "mlo.scope" and p.value.startswith(s) for p in n.metadata_props)]
        if n.op_type in ("MatMul", "Gemm") and where: macs[where[0]] += int(np.prod(known[n.output[0]])) * known[n.input[0]][-1]
    return macs


def check_plain():
    """Wider vectors and the instructions for digests change no bit: a build of C alone makes the same directory."""
    plain = t.command_line(flags=("-O0", "-DMLO_PLAIN"))
    for name in ("bert-tiny", "vit-48"):
        for program, folder in ((t.mlo, "wide-"), (plain, "plain-")): t.good("compile", t.model(name), "-o", t.at(folder + name), program=program)
        t.case(name + ": a build without them makes the same core", t.trees_differ(t.at("wide-" + name), t.at("plain-" + name)))


def check_many():
    """Models of any number of inputs: 25 more than a BERT has, 9 more outputs."""
    import onnx
    model = onnx.load(t.model("bert-tiny"))
    graph = model.graph
    last = graph.output[0].name
    for k in range(25):
        graph.input.append(onnx.helper.make_tensor_value_info("more_%d" % k, onnx.TensorProto.FLOAT, [1]))
        graph.node.append(onnx.helper.make_node("Add", [last, "more_%d" % k], ["sum_%d" % k]))
        last = "sum_%d" % k
        if k % 3 == 0: graph.output.append(onnx.helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, None))
    onnx.save(model, t.at("many.onnx"))
    said = json.loads(t.good("compile", t.at("many.onnx"), "-o", t.at("many")))
    known = {o.name for o in graph.output}
    compared = {e["output"] for e in said["error"]}
    t.case("25 inputs more, 9 outputs more", "" if compared == known and all(e["cosine"] > 0.99 for e in said["error"]) else str(said["error"]))


if __name__ == "__main__": t.main(check_choice, check_front, check_simulated, check_flags, check_middle, check_device, check_loops, check_plain, check_many, floor=35)
