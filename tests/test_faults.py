#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The emitted bench fails when it should: a fault anywhere is found and named, a mixture of builds is refused; and other tools take the directory.

    python tests/test_faults.py path/to/mlo [NAME ...]        Icarus, Verilator, Yosys; cocotb where it is installed

Faults are looked for in bert-1, one token of 32 channels. That it passes when it should: tests/test_hardware.py."""
import json
import os
import re
import shutil
import subprocess
import sys
import numpy as np
import harness as t
from hardware import Run, build, cocotb, copy, has_cocotb


# ---- it fails when it should ------------------------------------------------------------------------------------------------------------

def flip(path, offset, bit):
    with open(path, "r+b") as f:
        f.seek(offset)
        b = f.read(1)[0] ^ 1 << bit
        f.seek(offset)
        f.write(bytes([b]))


def edit(path, old, new):
    text = t.read(path).decode()
    assert text.count(old) == 1, "%s holds %d times: %s" % (path, text.count(old), old)
    with open(path, "w") as f: f.write(text.replace(old, new))


def refused(r, *patterns):
    """'' when the run failed as it should, and said all this."""
    if r.status != 1 or r.report.get("pass") is not False: return "status %d, pass %s: %s" % (r.status, r.report.get("pass"), r.error)
    if r.error.count("\n") or "FAIL" not in r.error: return "says: " + r.error
    return next(("does not say '%s': %s" % (p, r.error) for p in patterns if not re.search(p, r.error)), "")


# what the emitted Makefile plays by itself, too, a third of them a day
PLAYED = t.drawn(["fault-" + what for what in ("hex", "golden", "drop-3", "drop-7", "surplus", "last", "rounding")], 3)


def bench_fails(path):
    """The emitted Makefile by itself: one FAIL line, and make's status."""
    if os.path.basename(path) not in PLAYED: return ""
    p = subprocess.run(["make", "-C", path, "sim"], capture_output=True, text=True, timeout=300)
    verdict = [l for l in p.stdout.splitlines() if l.startswith(("MLO PASS", "MLO FAIL"))]
    return "" if p.returncode and len(verdict) == 1 and verdict[0].startswith("MLO FAIL") else "make sim: status %d, %s" % (p.returncode, verdict)


def memory(path, kernel, port, iteration=0):
    """Where a kernel's parameters of an iteration lie in params.bin."""
    m = json.loads(t.read(os.path.join(path, "manifest.json")))
    return iteration * m["iteration_bytes"] + next(d["offset"] for d in m["descriptors"] if (d["kernel"], d["port"]) == (kernel, port))


def probed(path):
    """Every value of host/core.onnx on the bench's frame, by mlo run."""
    m = json.loads(t.read(os.path.join(path, "manifest.json")))
    lanes, pad = m["stream"]["lanes"], m["stream"]["bytes"] * 8 // m["stream"]["lanes"]
    words = [line[1:] for line in t.read(os.path.join(path, "tb/input.hex")).decode().split()]
    values = np.array([int(w[len(w) - (k + 1) * pad // 4:len(w) - k * pad // 4], 16) for w in words for k in range(lanes)], np.uint16).astype(np.int16)
    np.savez(t.at("frame.npz"), **{m["input"]["name"]: values.reshape(1, m["tokens"], m["channels"])})
    t.good("run", os.path.join(path, "host/core.onnx"), "--inputs", t.at("frame.npz"), "--probe", t.at("values.npz"), "--outputs", t.at("frame-out.npz"))
    with np.load(t.at("values.npz")) as z: return {k: z[k] for k in z.files}, {k["name"]: k["value"] for k in m["kernels"]}


def check_faults():
    if not t.have("faults", "iverilog"): return
    good = build("bert-1", "--pe", "4", "--simd", "4")
    values, value_of = probed(good)
    place = "frame 0, token 0, channel "
    first = "first wrong word: " + place

    d = copy(good, "fault-bin")                           # beta of the last norm, channel 5: bit 20 of its 32
    flip(os.path.join(d, "params.bin"), memory(d, "layernorm_1", "s_axis_c", 1) + 5 * 8 + 4 + 2, 4)
    r = Run(d)
    t.case("a bit flipped in params.bin", refused(r, first + "5: expected -?\\d+, got -?\\d+"))

    d = copy(good, "fault-weight")                        # a weight that meets an activation other than 0
    x = values[value_of["attention_0"] + "@0"].ravel()[:4]
    s = int(np.flatnonzero(x)[0])
    at = memory(d, "mvu_1", "s_axis_w", 0) + s            # word 0: PE rows of SIMD weights; row 0 is output channel 0
    flip(os.path.join(d, "params.bin"), at, 6)
    r = Run(d, "--probe")
    t.case("a weight's bit flipped in params.bin, with --probe", refused(r, first + "\\d+: expected", "kernel mvu_1, frame 0, iteration 0, token 0, channel 0: expected %d, got" % values[value_of["mvu_1"] + "@0"].ravel()[0]))

    d = copy(good, "fault-hex")
    lines = t.read(os.path.join(d, "params.hex")).decode().split("\n")
    line, nibble = at // 16, 31 - 2 * (at % 16) - 1
    lines[line] = lines[line][:nibble] + "%x" % (int(lines[line][nibble], 16) ^ 4) + lines[line][nibble + 1:]
    with open(os.path.join(d, "params.hex"), "w") as f: f.write("\n".join(lines))
    t.case("the same bit in params.hex", refused(Run(d), first) or bench_fails(d))

    d = copy(good, "fault-golden")
    lines = t.read(os.path.join(d, "tb/golden.hex")).decode().split("\n")
    lines[3] = lines[3][:-1] + "%x" % (int(lines[3][-1], 16) ^ 1)
    with open(os.path.join(d, "tb/golden.hex"), "w") as f: f.write("\n".join(lines))
    t.case("one golden word changed", refused(Run(d), first + "12: expected") or bench_fails(d))

    for which, what, says in (3, "one output beat dropped", first + "12: expected"), (7, "the last output beat dropped", "7 of 8 words came|missing"):
        d = copy(good, "fault-drop-%d" % which)
        edit(os.path.join(d, "rtl/mlo_exit.v"), ".s_tvalid(s_axis_tvalid), .s_tready(s_axis_tready),", ".s_tvalid(s_axis_tvalid && count != %d), .s_tready(s_axis_tready)," % which)
        edit(os.path.join(d, "rtl/mlo_exit.v"), "    reg [BW-1:0] beat;\n", "    reg [BW-1:0] beat;\n    integer count = 0;\n    always @(posedge clk) if (s_axis_tvalid && s_axis_tready) count <= count + 1;\n")
        t.case(what, refused(Run(d), says) or bench_fails(d))

    d = copy(good, "fault-surplus")                       # a ninth beat, after the last
    edit(os.path.join(d, "rtl/mlo_exit.v"), ".m_tdata({m_axis_tlast, data}), .m_tvalid(m_axis_tvalid),", ".m_tdata({m_axis_tlast, data}), .m_tvalid(held),")
    edit(os.path.join(d, "rtl/mlo_exit.v"), "    wire [W-1:0] data;\n", "    wire [W-1:0] data;\n    wire held;\n    integer count = 0;\n    always @(posedge clk) if (m_axis_tvalid && m_axis_tready) count <= count + 1;\n    assign m_axis_tvalid = held || count == 8;\n")
    t.case("a surplus output beat", refused(Run(d)) or bench_fails(d))

    d = copy(good, "fault-last")
    edit(os.path.join(d, "rtl/mlo_exit.v"), "s_axis_tuser[1] && (beat == FINAL)", "s_axis_tuser[1] && (beat == FINAL) && 1'b0")
    t.case("tlast missing", refused(Run(d)) or bench_fails(d))

    d = copy(good, "fault-rounding")                      # down instead of to the nearest
    edit(os.path.join(d, "rtl/mlo_requantize.v"), "wire             up5 = t5[0] && t5[YBITS:1] != largest;", "wire             up5 = 1'b0;")
    r = Run(d, "--probe")
    named = re.search(r"kernel (\w+), frame 0, iteration (\d), token 0, channel (\d+): expected (-?\d+), got (-?\d+)", r.error)
    t.case("a kernel's rounding changed, with --probe", refused(r, first) or bench_fails(d) or ("names no kernel: " + r.error if not named else
           "" if values[value_of[named[1]] + "@" + named[2]].ravel()[int(named[3])] == int(named[4]) == int(named[5]) + 1 and named[1] == "requant_0" else "names " + named[0]))

    d = copy(good, "fault-add")                           # a kernel in the middle
    text = t.read(os.path.join(d, "rtl/mlo_core.v")).decode()
    d2 = re.sub(r"(mlo_add #\([^;]*?\) u_add_1 \([^;]*?\.s_axis_b_tdata\()(\w+)\)", r"\1\2 ^ 1'b1)", text, flags=re.S)
    assert d2 != text, "no u_add_1 in mlo_core.v"
    with open(os.path.join(d, "rtl/mlo_core.v"), "w") as f: f.write(d2)
    r = Run(d, "--probe")
    t.case("a wire into one kernel changed, with --probe", refused(r, first, "kernel add_1, frame 0, iteration 0, token 0, channel \\d+: expected"))


def check_mixture():
    """A directory whose files are not the manifest's never passes, even where all words are right."""
    if not t.have("mixtures", "iverilog"): return
    good, other = build("bert-1", "--pe", "4", "--simd", "4"), build("bert-1", "--calib", t.calibration("bert-1", 2), "--pe", "4", "--simd", "4", at="other")
    said = "mixture"
    d = copy(good, "mixed-params")
    for f in "params.bin", "params.hex": shutil.copy(os.path.join(other, f), d)
    t.case("sim refuses another build's parameters", refused(Run(d), said, "params"))
    d = copy(good, "mixed-words")
    for f in "tb/input.hex", "tb/golden.hex", "params.hex", "params.bin": shutil.copy(os.path.join(other, f), os.path.join(d, f))
    r = Run(d)
    t.case("sim refuses a consistent mixture, though its words are right", refused(r, said))
    d = copy(good, "mixed-comment")
    with open(os.path.join(d, "rtl/mlo_top.v"), "a") as f: f.write("// by hand\n")
    t.case("sim refuses an edited comment", refused(Run(d), "rtl/mlo_top.v"))
    d = copy(good, "mixed-missing")
    os.remove(os.path.join(d, "rtl/mlo_fork.v"))
    r = Run(d)
    t.case("a missing file is an error that names it", "" if r.status == 2 and "mlo_fork.v" in r.error else "status %d: %s" % (r.status, r.error))
    d = copy(good, "mixed-core")
    shutil.copy(os.path.join(other, "host/core.onnx"), os.path.join(d, "host/core.onnx"))
    t.case("sim refuses another build's core.onnx", refused(Run(d), "core.onnx"))


# ---- other tools ----------------------------------------------------------------------------------------------------------------------------

def check_lint():
    dirs = [build("bert-1", "--pe", "4", "--simd", "4"), build("bert-tiny-mask", "--pe", "4", "--simd", "4", "--frames-in-flight", "2"), build("mlp-res", "--pe", "2", "--simd", "8"), build("bert-1", "--pe", "1", "--simd", "1"), build("bert-1", "--pe", "1", "--simd", "1", "--unrolled")]
    if not t.have("lint", "iverilog", "verilator", "yosys"): return
    for d in dirs:
        p = subprocess.run(["make", "-C", d, "lint"], capture_output=True, text=True, timeout=300)
        said = [l for l in (p.stdout + p.stderr).splitlines() if l.strip() and not re.match(r"(iverilog|verilator|yosys|make)\b", l)]
        t.case("make lint is clean: " + os.path.basename(d), "status %d: %s" % (p.returncode, "; ".join(said)[:300]) if p.returncode or said else "")


def check_cocotb():
    if not has_cocotb("cocotb"): return
    d = copy(build("bert-1", "--pe", "4", "--simd", "4"), "cocotb")
    t.case("the emitted cocotb bench passes", cocotb(d)[-300:])
    golden = os.path.join(d, "tb/golden.hex")
    lines = t.read(golden).decode().split("\n")
    lines[2] = lines[2][:-1] + "%x" % (int(lines[2][-1], 16) ^ 8)
    with open(golden, "w") as f: f.write("\n".join(lines))
    said = cocotb(d)
    t.case("and fails on a wrong word", "" if "frame 0 differs" in said else said[-300:] or "it passes")


def check_wave():
    if not t.have("waves", "iverilog"): return
    r = Run(build("bert-1", "--pe", "4", "--simd", "4"), "--wave", t.at("w.fst"))
    t.case("--wave writes an FST", r.why() or ("" if os.path.getsize(t.at("w.fst")) > 1000 else "it is empty"))


if __name__ == "__main__": t.main(check_lint, check_faults, check_mixture, check_cocotb, check_wave, floor=23)
