#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Verilog: the third execution of the one definition, word for word, under stalls, at speed; and that a fault is found.

    python tests/test_hardware.py path/to/mlo [NAME ...]        Icarus, Verilator, Yosys; cocotb where it is installed

Icarus takes some ten seconds for a frame of bert-tiny, Verilator that long to compile and then no time at all: what runs often runs in
Verilator, faults are looked for in bert-1, one token of 32 channels. Two simulations run at a time (MLO_JOBS)."""
import concurrent.futures
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import numpy as np
import onnx
import onnxruntime as ort
import harness as t
from models.big import SIZES

JOBS = int(os.environ.get("MLO_JOBS", "2"))
# what verilator gives to make: compiling takes longer than running here
os.environ["MAKEFLAGS"] = "-j2 -- OPT_FAST=-O1 OPT_GLOBAL=-O1"
lock = threading.Lock()


def note(text): print("    " + text, flush=True)


# ---- building, simulating -----------------------------------------------------------------------------------------------------------

def big(name):
    """A model that models/big.py makes."""
    subprocess.run([sys.executable, os.path.join(t.tests, "models/big.py"), t.at(name + ".onnx"), name], stdout=subprocess.DEVNULL, check=True)
    return t.at(name + ".onnx")


def build(name, *flags, at=None):
    """A build directory; made once for the same arguments."""
    path = t.at("_".join([at or name, *flags]).replace("--", "").replace("/", "_"))
    with lock:
        if not os.path.exists(path):
            if "--loop" not in flags and name == "whisper-tiny": flags += ("--loop", "loop")
            t.good("compile", big(name) if name in SIZES else t.model(name), *flags, "-o", path)
    return path


def copy(path, name):
    """A build directory to spoil, without what was simulated in it."""
    to = t.at(name)
    shutil.rmtree(to, True)
    shutil.copytree(path, to, ignore=shutil.ignore_patterns("sim"))
    return to


class Run:
    """One call of `mlo sim`."""
    def __init__(self, path, *flags, verilator=False):
        p = t.call("sim", path, *flags, *(["--simulator", "verilator"] if verilator else []), timeout=1400)
        self.status, self.error = p.returncode, p.stderr.decode(errors="replace").strip()
        try: self.report = json.loads(p.stdout)
        except ValueError: self.report = {}
        self.manifest = json.loads(t.read(os.path.join(path, "manifest.json")))

    def __getattr__(self, key): return self.__dict__["report"].get(key)

    def why(self, tokens=None):
        """'' when it passed and every word of so many tokens (default: of full frames) was compared."""
        if self.status or self.report.get("pass") is not True: return "status %d: %s" % (self.status, self.error or self.report)
        words = (tokens or self.frames * self.manifest["tokens"]) * self.manifest["channels"]
        if self.words != words: return "%s words compared, not %d" % (self.words, words)
        if len(self.frame_done) != self.frames or sorted(self.frame_done) != self.frame_done or self.frame_done[-1] != self.cycles: return "frames done at %s of %s cycles" % (self.frame_done, self.cycles)
        return ""

    def timing(self): return [self.cycles, self.frame_done, self.weight_beats] + [[k["busy"], k["starved"], k["blocked"]] for k in self.kernels or []]


def together(*jobs):
    """Calls functions, JOBS at a time."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool: return [f.result() for f in [pool.submit(j) for j in jobs]]


def session(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return ort.InferenceSession(path, options)


def beats(arrays, lanes, bits):
    """Frames as the bench's hexadecimal words: tlast, then the lanes, the last one first."""
    lines, pad = [], (bits + 7) // 8 * 8
    for a in arrays:
        rows = a.reshape(-1, lanes).astype(np.int64) & ((1 << pad) - 1)
        lines += ["%d%s" % (i + 1 == len(rows), "".join("%0*x" % (pad // 4, v) for v in row[::-1])) for i, row in enumerate(rows)]
    return "\n".join(lines) + "\n"


# ---- the same words ---------------------------------------------------------------------------------------------------------------------

def three_inputs(name):
    """Three frames through the emitted Makefile and Icarus, against words from ONNX Runtime alone: mlo evaluates nothing here."""
    path = copy(build(name, "--pe", "4", "--simd", "4"), name + "-three")
    manifest, rng = json.loads(t.read(os.path.join(path, "manifest.json"))), np.random.default_rng(11)
    core, x_name, tokens = session(os.path.join(path, "host/core.onnx")), manifest["input"]["name"], manifest["tokens"]
    shape = next(i.shape for i in core.get_inputs() if i.name == x_name)
    feeds = [{x_name: x.astype(np.int16)} for x in (rng.normal(0, 6000, shape).clip(-32768, 32767), rng.integers(-32768, 32768, shape), rng.normal(0, 300, shape))]
    for f, keys in zip(feeds, (tokens, tokens * 2 // 3, 0)): f["mlo_mask"] = (np.arange(tokens) < keys)[None]
    names = [i.name for i in core.get_inputs()]
    golden = [core.run([manifest["output"]["name"]], {k: f[k] for k in names})[0] for f in feeds]
    lanes, bits = manifest["stream"]["lanes"], manifest["stream"]["bits"]
    words = {"x.hex": beats([f[x_name] for f in feeds], lanes, bits), "y.hex": beats(golden, lanes, bits), "m.hex": beats([f["mlo_mask"].astype(np.int64) for f in feeds], 1, 8)}
    for file, content in words.items():
        with open(os.path.join(path, file), "w") as f: f.write(content)
    count = words["x.hex"].count("\n")
    p = subprocess.run(["make", "-C", path, "sim", "VFLAGS=-Pmlo_tb.WORDS=%d" % count, "ARGS=+input=x.hex +golden=y.hex +mask=m.hex +beats=%d +mask_beats=%d" % (count, 3 * tokens)],
                       capture_output=True, text=True, timeout=1400)
    last = [l for l in p.stdout.splitlines() if l.startswith(("MLO PASS", "MLO FAIL"))]
    return "" if p.returncode == 0 and last and last[0].startswith("MLO PASS words %d " % count) else "status %d: %s %s" % (p.returncode, last, p.stderr[-200:])


def check_words():
    if not t.have("the core in Icarus", "iverilog", "verilator"): return
    # the build is made before two threads want it; its three frames run in a copy
    tiny = build("bert-tiny", "--pe", "4", "--simd", "4")
    names = ["bert-tiny", "bert-tiny-mask", "vit-tiny"]
    *three, icarus = together(*[lambda n=n: three_inputs(n) for n in names], lambda: Run(tiny))
    for n, why in zip(names, three): t.case("three inputs in Icarus give the words of core.onnx in ONNX Runtime: " + n, why)
    t.case("bert-tiny at 4 x 4 in Icarus: all 32 x 64 words", icarus.why() or ("" if icarus.words == 2048 else "%s words" % icarus.words))
    wide = Run(build("bert-tiny-mask", "--max-cost", "1.2", "--pe", "4", "--simd", "4"))
    t.case("operands of 9 and 10 bits in Icarus: all words", wide.why() or ("" if wide.words == 2048 else "%s words" % wide.words))
    fast = Run(tiny, verilator=True)
    note("bert-tiny at 4 x 4: %s cycles, predicted %s" % (fast.cycles, fast.predicted_cycles))
    t.case("Verilator: the same words and the same cycles, of every kernel", fast.why() or ("" if fast.timing() == icarus.timing() else "Verilator %s, Icarus %s" % (fast.cycles, icarus.cycles)))


def check_stalls():
    if not t.have("stalls", "verilator", "iverilog"): return
    tiny = build("bert-tiny", "--pe", "4", "--simd", "4")
    why, cycles = Run(tiny, verilator=True).why(), []
    runs = together(*[lambda seed=seed, latency=latency: Run(clone(tiny, seed, latency), "--stall", "30", "--seed", str(seed), "--axi-latency", str(latency), verilator=True)
                      for seed in range(1, 11) for latency in (0, 7, 64)])
    for r in runs:
        why = why or r.why()
        cycles.append(r.cycles)
    note("30 %% stalls: %s to %s cycles" % (min(map(str, cycles)), max(map(str, cycles))))
    t.case("--stall 30 with memory latency 0, 7, 64 over 10 seeds: the same words", why or ("" if len(set(cycles)) > 20 else "only %d different runs of 30" % len(set(cycles))))
    calm = [Run(tiny, "--axi-latency", str(l), verilator=True) for l in (0, 7, 64)]
    t.case("memory latency alone: the same words", next((r.why() for r in calm if r.why()), ""))
    slow = Run(tiny, "--bandwidth", "1.5", verilator=True)
    t.case("a slow memory (--bandwidth 1.5): the same words, later", slow.why() or ("" if slow.cycles > calm[1].cycles else "%s cycles, and %s with all bandwidth" % (slow.cycles, calm[1].cycles)))
    one = build("bert-1", "--pe", "4", "--simd", "4")
    flags = [("--stall", "30", "--seed", s, "--axi-latency", l) for s, l in (("1", "0"), ("2", "64"))] + [("--stall", "80", "--seed", "3")]
    pairs = [(Run(one, *f), Run(one, *f, verilator=True)) for f in flags]
    t.case("stalls in Icarus: the same words, and the cycles of Verilator", next((a.why() or b.why() or "%s and %s cycles" % (a.cycles, b.cycles) for a, b in pairs if a.why() or b.why() or a.timing() != b.timing()), ""))


def clone(path, *key):
    """A build directory of its own for runs side by side; what was compiled is shared."""
    to = t.at(os.path.basename(path) + "-".join(map(str, ("-run",) + key)))
    os.makedirs(os.path.join(to, "sim"))
    for f in os.listdir(path):
        if f != "sim": os.symlink(os.path.join(path, f), os.path.join(to, f))
    for f in os.listdir(os.path.join(path, "sim")):
        if f.startswith(("verilator-", "icarus-")): os.symlink(os.path.join(path, "sim", f), os.path.join(to, "sim", f))
    return to


def check_frames():
    """Several frames, in flight together, shorter than the maximum, padded."""
    if not t.have("frames", "verilator"): return
    tiny, masked = (build(n, "--pe", "4", "--simd", "4", "--frames-in-flight", "2") for n in ("bert-tiny", "bert-tiny-mask"))
    five = Run(tiny, "--frames", "5", verilator=True)
    t.case("--frames-in-flight 2 --frames 5: every word", five.why() or ("" if five.words == 5 * 2048 else "%s words" % five.words))
    for lengths in [32, 7, 1, 20, 31], [1, 1, 1, 2, 1], [5, 32, 32, 32, 3]:
        r = Run(tiny, "--frame-tokens", ",".join(map(str, lengths)), verilator=True)
        t.case("frames of %s tokens, two in flight: every word" % lengths, r.why(sum(lengths)))
    r = Run(tiny, "--frame-tokens", "32,7,1,20,31", "--stall", "40", "--seed", "9", "--axi-latency", "64", verilator=True)
    t.case("and with stalls", r.why(91))
    rng, keys = np.random.default_rng(3), [13, 32, 0, 1, 20]
    np.savez(t.at("padded.npz"), input_ids=rng.integers(0, 300, (5, 32)), attention_mask=(np.arange(32) < np.array(keys)[:, None]).astype(np.int64))
    r = Run(masked, "--inputs", t.at("padded.npz"), "--outputs", t.at("padded-out.npz"), verilator=True)
    why = r.why() or ("" if r.frames == 5 else "%s frames" % r.frames)
    if not why:
        with np.load(t.at("padded.npz")) as z, np.load(t.at("padded-out.npz")) as out:
            s = session(t.model("bert-tiny-mask"))
            names, y = [i.name for i in s.get_inputs()], out["layer_norm_4"]
            for i, n in enumerate(keys):
                want = s.run(None, {k: z[k][i:i + 1] for k in names})[0][0][:n or 32]
                c = float((want * y[i][:n or 32]).sum() / np.sqrt((want ** 2).sum() * (y[i][:n or 32] ** 2).sum()))
                if n and c < 0.99: why = why or "frame %d of %d words has cosine %.4f with the float model" % (i, n, c)
    t.case("padded sentences in hardware, and --outputs is the model's", why)
    r = Run(masked, "--frames", "5", "--stall", "25", "--seed", "5", verilator=True)
    t.case("drawn masks with stalls", r.why())
    r = Run(masked, "--frame-tokens", "9,32,4,4,30", verilator=True)
    t.case("short frames with masks", r.why(79))


def check_shapes():
    """Nothing is special."""
    if not t.have("other shapes", "verilator", "iverilog"): return
    cases = [("bert-96", ("--pe", "6", "--simd", "8"), (), None), ("bert-60", ("--pe", "5", "--simd", "6", "--frames-in-flight", "3"), ("--frame-tokens", "13,5,1,13,2,12,13"), 59),
             ("vit-48", ("--target-cycles", "12000", "--frames-in-flight", "2"), ("--frames", "3"), None), ("whisper-tiny", ("--pe", "8", "--simd", "8"), (), None), ("mlp-res", ("--pe", "2", "--simd", "8"), (), None)]
    dirs = [build(name, *flags) for name, flags, _, _ in cases]
    runs = together(*[lambda d=d, how=how: Run(d, *how, verilator=True) for d, (_, _, how, _) in zip(dirs, cases)])
    for r, (name, flags, how, tokens) in zip(runs, cases):
        note("%s %s %s: %s cycles, predicted %s" % (name, " ".join(flags), " ".join(how), r.cycles, r.predicted_cycles))
        t.case("nothing is special: " + name, r.why(tokens))
    for flags in ("--pe", "4", "--simd", "4"), (), ("--pe", "32", "--simd", "32", "--axi-width", "64"):
        r = Run(build("bert-1", *flags))
        t.case("nothing is special: bert-1 %s in Icarus" % " ".join(flags), r.why())


def check_identical():
    """The Verilog depends on shapes, widths and folding alone."""
    flags = ("--pe", "4", "--simd", "4")
    dirs = {n: build(n, *flags) for n in ("bert-tiny", "bert-tiny-b", "bert-12", "bert-12-torchscript")}
    for n in ("bert-tiny-b", "bert-12", "bert-12-torchscript"):
        same = t.read(os.path.join(dirs[n], "params.bin")) == t.read(os.path.join(dirs["bert-tiny"], "params.bin"))
        t.case("the rtl/ of bert-tiny and %s is identical" % n, t.trees_differ(os.path.join(dirs["bert-tiny"], "rtl"), os.path.join(dirs[n], "rtl")) or ("so are their parameters" if same else ""))


def check_unrolled():
    """The body once for every iteration: the same words, and what going round costs."""
    three, deep = (build(n, "--pe", "2", "--simd", "2") for n in ("3", "24"))
    t.case("24 layers are the hardware of 3: the same rtl/", t.trees_differ(os.path.join(three, "rtl"), os.path.join(deep, "rtl")))
    p = t.call("compile", t.at("24.onnx"), "--unrolled", "-o", t.at("never"), text=True)
    t.case("24 layers are too many to be unrolled", "" if p.returncode == 4 and "264 kernels" in p.stderr and not os.path.exists(t.at("never")) else "status %d: %s" % (p.returncode, p.stderr))
    if not t.have("unrolled", "iverilog", "verilator"): return
    for name, flags, verilator in ("bert-tiny", ("--pe", "4", "--simd", "4"), True), ("3", ("--pe", "2", "--simd", "2"), False), ("bert-1", ("--pe", "1", "--simd", "2"), False):
        dirs = build(name, *flags), build(name, *flags, "--unrolled")
        rolled, flat = together(*[lambda d=d: Run(d, "--frames", "1", verilator=verilator) for d in dirs])
        t.case("unrolled, the same words: " + name, rolled.why() or flat.why())
        if rolled.why() or flat.why(): continue
        extra = (rolled.cycles - flat.cycles) / (rolled.manifest["iterations"] - 1)
        note("%s %s: %d cycles, unrolled %d with %.0f times the multipliers" % (name, " ".join(flags), rolled.cycles, flat.cycles, flat.multipliers / rolled.multipliers))
        t.case("an iteration more costs no more than 8 cycles of going round: " + name, "" if 0 <= extra <= 8 else "%.1f cycles" % extra)
        lost = Run(dirs[1], "--probe") if name == "bert-1" else None
        if lost: t.case("--probe of an unrolled core is refused", "" if lost.status == 4 and "unrolled" in lost.error else "status %d: %s" % (lost.status, lost.error))
    r = Run(build("bert-1", "--pe", "1", "--simd", "2", "--unrolled"), "--frames", "3", "--stall", "30")
    t.case("three frames, one behind the other through all layers, with stalls: every word", r.why())


# ---- speed ---------------------------------------------------------------------------------------------------------------------------------

def off(a, b): return abs(a - b) / b


def check_speed():
    if not t.have("speed", "verilator"): return
    flags = ("--target-cycles", "143360")                 # 12 x (32 + 12) x 256 + 32 x 256, and less comes out
    dirs = [build("bert-12", *flags), build("bert-12", *flags, "--frames-in-flight", "2")]
    one, two = together(lambda: Run(dirs[0], verilator=True), lambda: Run(dirs[1], "--frames", "4", verilator=True))
    t.case("bert-12, one frame and two in flight: every word", one.why() or two.why())
    if one.why() or two.why(): return
    for r, what in (one, "one frame"), (two, "two in flight"):
        l, n, ii = r.manifest["iterations"], r.manifest["tokens"], r.manifest["interval_per_token"]
        if ii < 256: t.case("the folding is slow enough to be judged", "II = %d" % ii)
        if r is one: measured, bound, predicted = r.cycles, l * (n + 7) * ii + n * ii, r.predicted_cycles
        else: measured, bound, predicted = r.interval, 1.02 * l * n * ii, r.predicted_interval
        note("%s: II %d, %d cycles (%.3f x iterations x T x II), bound %d, predicted %d (off by %.1f %%)" % (what, ii, measured, measured / (l * n * ii), bound, predicted, 100 * off(predicted, measured)))
        t.case("%s: no slower than the issue allows" % what, "" if measured <= bound else "%d cycles, %d allowed" % (measured, bound))
        if r is two: t.case("two in flight: after the first fill no cycle is lost, of parameters or anything", "" if measured <= l * n * ii + 1 else "%d cycles, the busiest kernel's are %d" % (measured, l * n * ii))
        t.case("%s: predicted within 1 %%" % what, "" if off(predicted, measured) <= 0.01 else "predicted %d, measured %d" % (predicted, measured))
        t.case("%s: all its cycles are predicted within 1 %%, too" % what, "" if off(r.predicted_cycles, r.cycles) <= 0.01 else "predicted %d, measured %d" % (r.predicted_cycles, r.cycles))


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


def bench_fails(path):
    """The emitted Makefile by itself: one FAIL line, and make's status."""
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
    text = t.read(os.path.join(d, "rtl/mlo_top.v")).decode()
    d2 = re.sub(r"(mlo_add #\([^;]*?\) u_add_1 \([^;]*?\.s_axis_b_tdata\()(\w+)\)", r"\1\2 ^ 1'b1)", text, flags=re.S)
    assert d2 != text, "no u_add_1 in mlo_top.v"
    with open(os.path.join(d, "rtl/mlo_top.v"), "w") as f: f.write(d2)
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
    dirs = [build("bert-1", "--pe", "4", "--simd", "4"), build("bert-tiny-mask", "--pe", "4", "--simd", "4", "--frames-in-flight", "2"), build("mlp-res", "--pe", "2", "--simd", "8"), build("bert-1"), build("bert-1", "--unrolled")]
    if not t.have("lint", "iverilog", "verilator", "yosys"): return
    for d in dirs:
        p = subprocess.run(["make", "-C", d, "lint"], capture_output=True, text=True, timeout=300)
        said = [l for l in (p.stdout + p.stderr).splitlines() if l.strip() and not re.match(r"(iverilog|verilator|yosys|make)\b", l)]
        t.case("make lint is clean: " + os.path.basename(d), "status %d: %s" % (p.returncode, "; ".join(said)[:300]) if p.returncode or said else "")


def check_cocotb():
    if not t.have("cocotb", "iverilog"): return
    if not importlib.util.find_spec("cocotb") or not importlib.util.find_spec("cocotbext.axi"): return t.skip("cocotb", "cocotb or cocotbext-axi not installed")
    d = copy(build("bert-1", "--pe", "4", "--simd", "4"), "cocotb")
    go = lambda: subprocess.run([sys.executable, "cocotb/test_mlo.py"], cwd=d, capture_output=True, text=True, timeout=600, env=dict(os.environ, PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"]))
    p = go()
    t.case("the emitted cocotb bench passes", "" if p.returncode == 0 and "PASS=1 FAIL=0" in p.stdout else "status %d: %s" % (p.returncode, (p.stdout + p.stderr)[-300:]))
    golden = os.path.join(d, "tb/golden.hex")
    lines = t.read(golden).decode().split("\n")
    lines[2] = lines[2][:-1] + "%x" % (int(lines[2][-1], 16) ^ 8)
    with open(golden, "w") as f: f.write("\n".join(lines))
    p = go()
    t.case("and fails on a wrong word", "" if p.returncode else "status 0")


def check_wave():
    if not t.have("waves", "iverilog"): return
    r = Run(build("bert-1", "--pe", "4", "--simd", "4"), "--wave", t.at("w.fst"))
    t.case("--wave writes an FST", r.why() or ("" if os.path.getsize(t.at("w.fst")) > 1000 else "it is empty"))


if __name__ == "__main__":
    ort.set_default_logger_severity(4)
    t.main(check_identical, check_unrolled, check_lint, check_faults, check_mixture, check_cocotb, check_wave, check_words, check_stalls, check_frames, check_shapes, check_speed)
