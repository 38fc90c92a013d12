#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where parameters are, and how they come: resident, layer and row blocks, bus widths, the count of beats, an error on the bus.

    python tests/test_memory.py path/to/mlo [NAME ...]        Icarus; Verilator where a core runs more than once, or for long

The words are those of host/core.onnx in ONNX Runtime; the beats are reckoned here from the packing rules in mlo_param's header and from what a
mode means: layer parameters are read in every iteration of every group of frames, and loaded ahead for one more; resident ones once; row blocks for
every tile of every group."""
import json
import os
import re
import subprocess
import harness as t
from encoders import Encoder
from hardware import Run, build
from test_causal import Core

MODELS = {"memory-20": Encoder(3, 20, 3, 4, 44, 5, "post", "Gelu", mask=True), "memory-one": Encoder(2, 12, 2, 4, 22, 1, "pre", "Relu"), "memory-100": Encoder(100, 6, 1, 4, 10, 2, "post", "Relu")}
MIXED = '{"mvu_0": {"memory": "resident"}, "mvu_2": {"memory": "resident"}, "layernorm_0": {"memory": "resident"}, "add_1": {"memory": "resident"}}'


def made(name, *flags):
    """A build directory of a model of this file, or of the project."""
    if name not in MODELS: return build(name, *flags)
    path, to = t.at(name + ".onnx"), t.at("_".join([name, *map(os.path.basename, flags)]).replace("--", ""))
    if not os.path.exists(path): t.write(name + ".onnx", MODELS[name].model().SerializeToString())
    if not os.path.exists(to): t.good("compile", path, *flags, "-o", to)
    return to


def ceil(a, b): return -(-a // b)


def expected_beats(m, frames):
    """What the kernels are given of parameters in a run of so many frames, all in all, and in each iteration."""
    axi, kinds, group = m["axi_bits"], {k["name"]: (k["memory"], k.get("tile")) for k in m["kernels"]}, m["frames_in_flight"]
    count = {"layer": 0, "resident": 0, "block": 0, "group": 0}
    groups = [group] * (frames // group) + [frames % group] if m["iterations"] > 1 else [1] * frames      # whose frames share tiles
    full = [group] if m["iterations"] > 1 else [1] * group
    for d in m["descriptors"]:
        padded, (kind, tile) = max(8, 1 << (d["word_bits"] - 1).bit_length()), kinds[d["kernel"]]
        beats = (ceil(d["words"], axi // padded) if padded <= axi else d["words"] * ceil(d["word_bits"], axi)) * d.get("blocks", 1)
        count[kind] += beats * (sum(ceil(g * m["tokens"], tile) for g in groups) if kind == "block" else 1)
        if kind == "block": count["group"] += beats * sum(ceil(g * m["tokens"], tile) for g in full)
    iterations = ceil(frames, group) * m["iterations"]
    return count["layer"] * (iterations + 1 if m["iterations"] > 1 else 2) + (count["resident"] + count["block"]) * m["iterations"], count["layer"] + count["group"]


def why(r, path):
    """'' if the run passed with the right count of beats (its words are held to ONNX Runtime's, as any Run's)."""
    m = r.manifest
    if r.why(): return r.why()
    total, each = expected_beats(m, r.frames)
    said = r.memory
    if (said["delivered"], said["predicted_delivered"]) != (total, total): return "%s beats were counted, %s said, %d expected" % (said["delivered"], said["predicted_delivered"], total)
    if abs(said["beats_per_frame"] - each * m["iterations"] / m["frames_in_flight"]) > 1e-6 or m["parameter_beats"]["per_iteration"] != each: return "%s beats per frame" % said["beats_per_frame"]
    if not 0 <= r.weight_beats - total <= 512: return "%d beats on the bus, %d delivered" % (r.weight_beats, total)
    return ""


def check_modes():
    """Every mode, mixed ones too: the same image; of those simulated today the right words, the beats that were foretold."""
    if not t.have("memory modes", "verilator"): return
    real = t.drawn(("resident", "mixed"), 2)             # of bert-tiny
    simulated = {"bert-tiny": real, "memory-20": t.drawn(("layer", "resident", "mixed", "mixed the other way"), 2)}
    mixed = t.write("mixed.json", MIXED)
    for name, flags in (("bert-tiny", ("--pe", "8", "--simd", "8")), ("memory-20", ("--pe", "4", "--simd", "5", "--frames-in-flight", "2"))):
        image = None
        for mode, how in (("layer", ()), ("resident", ("--memory", "resident")), ("mixed", ("--folding", mixed)), ("mixed the other way", ("--memory", "resident", "--folding", t.write("layers.json", MIXED.replace("resident", "layer"))))):
            if name == "bert-tiny" and mode not in real: continue
            path = made(name, *flags, *how)
            said = ""
            if mode in simulated[name]: said = why(Run(path, *(("--frames", "5") if name == "memory-20" else ()), verilator=True), path)
            if name == "memory-20" and mode in simulated[name]: said = said or why(Run(path, verilator=True), path) or Run(path, "--frames", "5", "--stall", "30", "--seed", "4", "--axi-latency", "40", verilator=True).why()
            same = image in (None, t.read(os.path.join(path, "params.bin")))
            image = t.read(os.path.join(path, "params.bin"))
            t.case("%s, parameters %s" % (name, mode), said or ("" if same else "the image is another one"))


def check_widths():
    """The bus from 32 to 512 bits; slow memory, too."""
    if not t.have("bus widths", "iverilog"): return
    mixed = t.write("mixed.json", MIXED)
    for width in t.drawn(("32", "64", "256", "512"), 2):
        path = made("memory-20", "--pe", "4", "--simd", "5", "--frames-in-flight", "2", "--folding", mixed, "--axi-width", width)
        r = Run(path, "--frames", "4", *(("--axi-latency", "64", "--bandwidth", "3") if width == "64" else ()))
        t.case("%s bits of bus" % width, why(r, path))


def check_latency():
    """A far memory: what a core was folded for is what it is simulated with, foretold with both."""
    if not t.have("a far memory", "verilator"): return
    for how in t.drawn(((), ("--memory", "block", "--tile", "2")), 2):
        near, far = (made("memory-20", "--pe", "4", "--simd", "5", "--frames-in-flight", "2", *how, *latency) for latency in ((), ("--axi-latency", "150")))
        runs = [Run(*x, verilator=True) for x in ((far,), (near, "--axi-latency", "150"), (near,), (far, "--axi-latency", "7"))]
        cycles, foretold, folded = [r.cycles for r in runs], [r.predicted_cycles for r in runs], [runs[0].manifest["predicted_cycles"]] * 2 + [runs[2].manifest["predicted_cycles"]] * 2
        said = next((r.why() for r in runs if r.why()), "") or ("" if cycles[1] > cycles[2] else "no slower")
        t.case("memory-20 %s, 150 cycles from memory: %s" % (" ".join(how), cycles), said or ("" if foretold == folded and all(abs(a - b) <= 1 for a, b in zip(cycles, foretold)) else "by sim %s, by fold %s foretold" % (foretold, folded)))


def check_sizes():
    """One token; a hundred layers."""
    if not t.have("odd sizes", "iverilog", "verilator"): return
    for name, flags in (("memory-one", ()), ("memory-one", ("--memory", "resident", "--frames-in-flight", "3")), ("memory-100", ("--pe", "2", "--simd", "6")), ("memory-100", ("--pe", "2", "--simd", "6", "--memory", "resident"))):
        path = made(name, *flags)
        r = Run(path, verilator=name == "memory-100")
        t.case("%s %s" % (name, " ".join(flags)), why(r, path))
    m = json.loads(t.read(os.path.join(made("memory-100", "--pe", "2", "--simd", "6", "--memory", "resident"), "manifest.json")))
    t.case("resident memories bound the iterations", "" if m["most_iterations"] == 100 and ".DEEPEST(100)" in t.read(os.path.join(made("memory-100", "--pe", "2", "--simd", "6", "--memory", "resident"), "rtl/mlo_top.v")).decode() else str(m["most_iterations"]))


def check_once():
    """A loop of one iteration: its parameters are loaded once for each bank, and no two frames share a tile."""
    if not t.have("one iteration", "iverilog"): return
    t.good("compile", Core("once", tokens=3, layers=1).path, "--pe", "2", "--simd", "2", "--memory", "block", "--tile", "2", "--frames-in-flight", "2", "-o", t.at("once"))
    r = Run(t.at("once"), "--frames", "6", verilator=False)
    said, want = r.memory, expected_beats(r.manifest, 6)[0]
    t.case("one iteration, two frames of three tokens in tiles of two", r.why() or ("" if said["delivered"] == said["predicted_delivered"] == want else "%s, %s foretold, %d expected" % (said["delivered"], said["predicted_delivered"], want)))


def check_blocks():
    """Tiles of one token, of some that a frame's end cuts off, of a frame; mixed with resident memories; and the cycles that were foretold."""
    if not t.have("row blocks", "iverilog", "verilator"): return
    mixed = t.write("blocks.json", '{"mvu_0": {"memory": "block", "tile": 3}, "mvu_2": {"memory": "resident"}, "mvu_3": {"memory": "block", "tile": 2}, "layernorm_0": {"memory": "resident"}}')
    for how in t.drawn((("--memory", "block", "--tile", "1"), ("--memory", "block", "--tile", "2"), ("--folding", mixed), ("--memory", "block")), 2):
        path = made("memory-20", "--pe", "4", "--simd", "5", "--frames-in-flight", "2", *how)
        kinds = [k["memory"] for k in json.loads(t.read(os.path.join(path, "manifest.json")))["kernels"] if k["op"].startswith("MVU")]
        said = "" if "block" in kinds else str(kinds)
        often = "2" in how or mixed in how
        said = said or why(Run(path, verilator=often), path)
        if not said and often: said = why(Run(path, "--frames", "3", verilator=True), path) or Run(path, "--frames", "3", "--stall", "30", "--seed", "4", "--axi-latency", "40", "--bandwidth", "4", verilator=True).why()
        t.case("memory-20, row blocks: %s" % " ".join(map(os.path.basename, how)), said)
    path = made("memory-20", "--pe", "2", "--simd", "5", "--memory", "block", "--tile", "2", "--axi-width", "32")
    t.case("row blocks over 32 bits of bus", why(Run(path), path))
    for tile, frames in t.drawn((("8", "1"), ("32", "2")), 2):
        path = made("bert-tiny", "--pe", "12", "--simd", "12", "--memory", "block", "--tile", tile, "--frames-in-flight", frames)
        r = Run(path, verilator=True)
        t.case("bert-tiny in tiles of %s, %s in flight" % (tile, frames), why(r, path) or ("" if abs(r.report["predicted_cycles"] / r.report["cycles"] - 1) <= 0.01 else "%d cycles, %d foretold" % (r.report["cycles"], r.report["predicted_cycles"])))


def check_group():
    """Frames shorter than a tile: those in flight share one pass over the weights, with no more cycles than beats; a group that is not full closes."""
    if not t.have("tiles of a group", "verilator"): return
    path = made("memory-one", "--pe", "2", "--simd", "2", "--memory", "block", "--frames-in-flight", "4")
    for frames in 16, 14:
        r = Run(path, "--frames", str(frames), verilator=True)
        t.case("%d frames of a token in tiles of four" % frames, why(r, path) or ("" if abs(r.predicted_cycles / r.cycles - 1) <= 0.01 else "%d cycles, %d foretold" % (r.cycles, r.predicted_cycles)))
    for seed in "4", "5": t.case("stalled, %s" % seed, Run(path, "--frames", "14", "--stall", "40", "--seed", seed, "--axi-latency", "40", verilator=True).why())
    path = made("bert-tiny", "--pe", "8", "--simd", "8", "--frames-in-flight", "4", "--memory", "block", "--tile", "4")
    r = Run(path, "--frames", "24", "--frame-tokens", "1", verilator=True)
    t.case("bert-tiny, frames of a token: no more cycles than a fourth of the beats takes, and 5 %", r.why(24) or ("" if r.frame_done[-1] - r.frame_done[11] <= 12 * 1870 else "%.0f cycles a frame" % ((r.frame_done[-1] - r.frame_done[11]) / 12)))
    path = made("memory-20", "--pe", "4", "--simd", "5", "--frames-in-flight", "4", "--memory", "block", "--tile", "7")
    t.case("tiles across frames", why(Run(path, "--frames", "9", verilator=True), path) or Run(path, "--frames", "9", "--stall", "30", "--seed", "6", verilator=True).why())


def check_lint():
    if not t.have("lint", "iverilog", "verilator", "yosys"): return
    for flags in ("--memory", "resident"), ("--memory", "block", "--tile", "2"), ("--folding", t.write("mixed.json", MIXED)):
        p = subprocess.run(["make", "-C", made("memory-20", "--pe", "4", "--simd", "5", "--frames-in-flight", "2", *flags), "lint"], capture_output=True, text=True, timeout=600)
        said = [l for l in (p.stdout + p.stderr).splitlines() if l.strip() and not re.match(r"(iverilog|verilator|yosys|make)\b", l)]
        t.case("make lint is clean: %s" % flags[0], "status %d: %s" % (p.returncode, "; ".join(said)[:300]) if p.returncode or said else "")


def check_errors():
    """A read of parameters that fails is told, whatever became of the words."""
    if not t.have("bus errors", "iverilog"): return
    path = made("memory-one")
    total = Run(path).memory["delivered"]
    for beat in 1, total // 2:
        r = Run(path, "--axi-error", str(beat))
        t.case("beat %d comes with an error" % beat, "" if r.status == 1 and r.report.get("pass") is False and "bus error" in r.error and r.error.count("\n") == 0 else "status %d: %s" % (r.status, r.error))
    t.case("none does", Run(path, "--axi-error", "0").why())


if __name__ == "__main__": t.main(check_modes, check_widths, check_latency, check_sizes, check_once, check_blocks, check_group, check_lint, check_errors,
                                  floor=28)
