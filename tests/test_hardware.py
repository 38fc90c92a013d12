#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Verilog: the third execution of the one definition, word for word, under stalls, at speed.

    python tests/test_hardware.py path/to/mlo [NAME ...]        Icarus, Verilator

Icarus takes half a minute for a frame of bert-tiny, Verilator ten seconds to compile and then no time at all: bert-tiny is in Icarus once in three
days, for the same words and cycles, and what runs often runs in Verilator. Small cores are in Icarus: test_bits, test_stalls, test_memory. That a fault is
found: tests/test_faults.py."""
import datetime
import json
import os
import numpy as np
import harness as t
from graphs import session
from hardware import Run, build, clone, copy, play, together


# ---- the same words ---------------------------------------------------------------------------------------------------------------------

def three_inputs(name):
    """Three frames in Verilator, against words from ONNX Runtime alone: mlo evaluates nothing here."""
    path = copy(build(name, "--pe", "4", "--simd", "4"), name + "-three")
    manifest, rng = json.loads(t.read(os.path.join(path, "manifest.json"))), np.random.default_rng(11)
    core, x_name, tokens = session(os.path.join(path, "host/core.onnx")), manifest["input"]["name"], manifest["tokens"]
    shape = next(i.shape for i in core.get_inputs() if i.name == x_name)
    feeds = [{x_name: x.astype(np.int16)} for x in (rng.normal(0, 6000, shape).clip(-32768, 32767), rng.integers(-32768, 32768, shape), rng.normal(0, 300, shape))]
    for f, keys in zip(feeds, (tokens, tokens * 2 // 3, 0)): f["mlo_mask"] = (np.arange(tokens) < keys)[None]
    names = [i.name for i in core.get_inputs()]
    golden = [core.run([manifest["output"]["name"]], {k: f[k] for k in names})[0] for f in feeds]
    return play(path, feeds, golden, verilator=True)


def check_words():
    if not t.have("the core in Icarus", "iverilog", "verilator"): return
    # the build is made before two threads want it; its three frames run in a copy
    tiny = build("bert-tiny", "--pe", "4", "--simd", "4")
    names = ["bert-tiny", "bert-tiny-mask", "vit-tiny"]
    due = t.drawn(("bert-tiny in Icarus", "", ""), 3)[0]                         # half a minute; bert-1 is there every day
    *three, icarus = together(*[lambda n=n: three_inputs(n) for n in names], lambda: due and Run(tiny))
    for n, why in zip(names, three): t.case("three inputs in Verilator give the words of core.onnx in ONNX Runtime: " + n, why)
    if due: t.case("bert-tiny at 4 x 4 in Icarus: all 32 x 64 words", icarus.why() or ("" if icarus.words == 2048 else "%s words" % icarus.words))
    wide = Run(build("bert-tiny-mask", "--max-cost", "1.2", "--pe", "4", "--simd", "4"), verilator=True)
    t.case("operands of 9 and 10 bits in Verilator: all words", wide.why() or ("" if wide.words == 2048 else "%s words" % wide.words))
    t.case("operands of more than 8 bits in Icarus: all words", Run(build("bert-1", "--max-cost", "1.2", "--pe", "4", "--simd", "4")).why())
    fast = Run(tiny, verilator=True)
    t.note("bert-tiny at 4 x 4: %s cycles, predicted %s" % (fast.cycles, fast.predicted_cycles))
    same = not due or fast.timing() == icarus.timing()
    t.case("Verilator: the same words and the same cycles, of every kernel" if due else "Verilator: the same words", fast.why() or ("" if same else "Verilator %s, Icarus %s" % (fast.cycles, icarus.cycles)))


def check_stalls():
    if not t.have("stalls", "verilator", "iverilog"): return
    tiny = build("bert-tiny", "--pe", "4", "--simd", "4")
    why, cycles, today = Run(tiny, verilator=True).why(), [], datetime.date.today().toordinal()
    seeds = range(today, today + (10 if t.full else 4))
    t.note("seeds %d to %d" % (seeds[0], seeds[-1]))
    runs = together(*[lambda seed=seed, latency=latency: Run(clone(tiny, seed, latency), "--stall", "30", "--seed", str(seed), "--axi-latency", str(latency), verilator=True)
                      for seed in seeds for latency in (0, 7, 64)])
    for r in runs:
        why = why or r.why()
        cycles.append(r.cycles)
    t.note("30 %% stalls: %s to %s cycles" % (min(map(str, cycles)), max(map(str, cycles))))
    t.case("--stall 30 with memory latency 0, 7, 64 over %d seeds: the same words" % len(seeds),
           why or ("" if len(set(cycles)) > 2 * len(seeds) else "only %d different runs of %d" % (len(set(cycles)), len(cycles))))
    calm = [Run(tiny, "--axi-latency", str(l), verilator=True) for l in (0, 7, 64)]
    t.case("memory latency alone: the same words", next((r.why() for r in calm if r.why()), ""))
    slow = Run(tiny, "--bandwidth", "1.5", verilator=True)
    t.case("a slow memory (--bandwidth 1.5): the same words, later", slow.why() or ("" if slow.cycles > calm[1].cycles else "%s cycles, and %s with all bandwidth" % (slow.cycles, calm[1].cycles)))
    one = build("bert-1", "--pe", "4", "--simd", "4")
    flags = [("--stall", "30", "--seed", s, "--axi-latency", l) for s, l in (("1", "0"), ("2", "64"))] + [("--stall", "80", "--seed", "3")]
    pairs = [(Run(one, *f), Run(one, *f, verilator=True)) for f in flags]
    t.case("stalls in Icarus: the same words, and the cycles of Verilator", next((a.why() or b.why() or "%s and %s cycles" % (a.cycles, b.cycles) for a, b in pairs if a.why() or b.why() or a.timing() != b.timing()), ""))


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
    cases = t.drawn(cases, 3)
    dirs = [build(name, *flags) for name, flags, _, _ in cases]
    runs = together(*[lambda d=d, how=how: Run(d, *how, verilator=True) for d, (_, _, how, _) in zip(dirs, cases)])
    for r, (name, flags, how, tokens) in zip(runs, cases):
        t.note("%s %s %s: %s cycles, predicted %s" % (name, " ".join(flags), " ".join(how), r.cycles, r.predicted_cycles))
        t.case("nothing is special: " + name, r.why(tokens))
    for flags in t.drawn([("--pe", "4", "--simd", "4"), (), ("--pe", "16", "--simd", "16", "--axi-width", "64")], 3):
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
    three, deep = (build(n, "--pe", "2", "--simd", "2", "--max-cost", "1") for n in ("3", "24"))        # 8 bits: what is wider, data say
    t.case("24 layers are the hardware of 3: the same rtl/", t.trees_differ(os.path.join(three, "rtl"), os.path.join(deep, "rtl")))
    p = t.call("compile", t.at("24.onnx"), "--unrolled", "-o", t.at("never"), text=True)
    t.case("24 layers are too many to be unrolled", "" if p.returncode == 4 and "264 kernels" in p.stderr and not os.path.exists(t.at("never")) else "status %d: %s" % (p.returncode, p.stderr))
    if not t.have("unrolled", "iverilog", "verilator"): return
    cores = ("bert-tiny", ("--pe", "4", "--simd", "4"), True), ("3", ("--pe", "2", "--simd", "2"), False), ("bert-1", ("--pe", "1", "--simd", "2"), False)
    for name, flags, verilator in t.drawn(cores, 3):
        dirs = build(name, *flags), build(name, *flags, "--unrolled")
        rolled, flat = together(*[lambda d=d: Run(d, "--frames", "1", verilator=verilator) for d in dirs])
        t.case("unrolled, the same words: " + name, rolled.why() or flat.why())
        if rolled.why() or flat.why(): continue
        extra = (rolled.cycles - flat.cycles) / (rolled.manifest["iterations"] - 1)
        t.note("%s %s: %d cycles, unrolled %d with %.0f times the multipliers" % (name, " ".join(flags), rolled.cycles, flat.cycles, flat.multipliers / rolled.multipliers))
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
    runs = {"one frame": ((), ()), "two in flight": (("--frames-in-flight", "2"), ("--frames", "4"))}
    for what in t.drawn(runs, 2):
        more, how = runs[what]
        r, alone = Run(build("bert-12", *flags, *more), *how, verilator=True), what == "one frame"
        t.case("bert-12, %s: every word" % what, r.why())
        if r.why(): continue
        l, n, ii = r.manifest["iterations"], r.manifest["tokens"], r.manifest["interval_per_token"]
        if ii < 256: t.case("the folding is slow enough to be judged", "II = %d" % ii)
        if alone: measured, bound, predicted = r.cycles, l * (n + 7) * ii + n * ii, r.predicted_cycles
        else: measured, bound, predicted = r.interval, 1.02 * l * n * ii, r.predicted_interval
        t.note("%s: II %d, %d cycles (%.3f x iterations x T x II), bound %d, predicted %d (off by %.1f %%)" % (what, ii, measured, measured / (l * n * ii), bound, predicted, 100 * off(predicted, measured)))
        t.case("%s: no slower than the issue allows" % what, "" if measured <= bound else "%d cycles, %d allowed" % (measured, bound))
        if not alone: t.case("two in flight: after the first fill no cycle is lost, of parameters or anything", "" if measured <= l * n * ii + 1 else "%d cycles, the busiest kernel's are %d" % (measured, l * n * ii))
        t.case("%s: predicted within 1 %%" % what, "" if off(predicted, measured) <= 0.01 else "predicted %d, measured %d" % (predicted, measured))
        t.case("%s: all its cycles are predicted within 1 %%, too" % what, "" if off(r.predicted_cycles, r.cycles) <= 0.01 else "predicted %d, measured %d" % (r.predicted_cycles, r.cycles))


if __name__ == "__main__": t.main(check_identical, check_unrolled, check_words, check_stalls, check_frames, check_shapes, check_speed,
                                  floor=32)
