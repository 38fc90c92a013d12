#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Foldings of cores with caches are searched for by what one more token costs (src/fold/step.c).

    python tests/test_step.py path/to/mlo [NAME ...]

Judges: exchanges, one kernel twice as wide and another half, none of which may be much better; Icarus or Verilator, which count the cycles of a step."""
import datetime
import json
import os
import random
import harness as t
import hardware

NEAR = 1.05                                             # times the best exchange: slower than that is too slow
BUDGETS = 16, 48, 128
TINY = ["llama-d18-eager-one", "gpt2-d18-eager-dims", "qwen3-d18-sdpa-one"]
PLACE = 9


def lowered(name, *flags):
    path = t.at("%s.lower.onnx" % name)
    if not os.path.exists(path):
        t.good("quantize", t.model(name) if name.startswith("stories") else os.path.join(t.tests, "models/context", name + ".onnx"), *flags, "-o", t.at("quantized"))
        t.good("lower", t.at("quantized"), "-o", path)
    return path


def folded(path, *flags, place=PLACE):
    """(cycles of a step, multipliers, kernels) of what the flags make of it."""
    t.good("fold", path, *flags, "-o", t.at("folded"))
    r = json.loads(t.good("show", "--json", "--position", str(place), t.at("folded")))
    return r["step"]["cycles"], r["multipliers"], r["kernels"]


def twice(kernel, knob):
    return {**kernel, knob: kernel[knob] * 2}


def half(kernel, knob):
    return {**kernel, knob: kernel[knob] // 2} if kernel[knob] % 2 == 0 else None


def given(path, kernels):
    """What a folding of ours makes of it, None if it is not legal."""
    text = json.dumps({name: {k: v for k, v in knobs.items() if v} for name, knobs in kernels.items()})
    if t.call("fold", path, "--folding", t.write("given.json", text), "-o", t.at("folded")).returncode: return None
    r = json.loads(t.good("show", "--json", "--position", str(PLACE), t.at("folded")))
    return r["step"]["cycles"], r["multipliers"]


def check_exchange():
    """What a budget buys is not bettered by doubling one kernel and halving another, as far as the budget goes."""
    rng = random.Random(str(datetime.date.today()))
    for name in TINY:
        path = lowered(name, "--context", "16")
        for budget in BUDGETS:
            mine, used, found = folded(path, "--position", str(PLACE), "--budget-macs", str(budget))
            kernels = {k["name"]: {"PE": k["pe"], "SIMD": k["simd"] if k["op"].startswith(("MVU", "Attention")) else 0} for k in found}
            moves = [(n, f(k, knob)) for n, k in kernels.items() for knob in ("PE", "SIMD") if k[knob] for f in (twice, half)]
            moves = [(n, k) for n, k in moves if k]
            tried, best, what = 0, mine, ""
            for (a, x), (b, y) in rng.sample([(p, q) for p in moves for q in moves if p[0] < q[0]], 60):
                other = given(path, {**kernels, a: x, b: y})
                if other is None or other[1] > budget: continue
                tried += 1
                if other[0] < best: best, what = other[0], "%s %s, %s %s" % (a, x, b, y)
            why = "" if used <= budget and mine <= NEAR * best else "%d cycles with %d multipliers; %d by %s" % (mine, used, best, what)
            t.case("%s: %d multipliers" % (name, budget), why or ("" if tried >= 5 else "only %d exchanges were tried" % tried))


def check_targets():
    """A target is met, by the fewer multipliers the longer it is; one out of reach is refused, and the fastest said."""
    for name in TINY:
        path = lowered(name, "--context", "16")
        fast, most, _ = folded(path, "--position", str(PLACE), "--budget-macs", "100000")
        before = most
        for factor in (1.1, 1.5, 2.5, 5):
            target = int(fast * factor)
            cycles, multipliers, _ = folded(path, "--position", str(PLACE), "--target-cycles", str(target))
            t.case("%s: a step of %.1f times the fastest" % (name, factor), "" if cycles <= target and multipliers <= before else
                   "%d cycles for %d, %d multipliers after %d" % (cycles, target, multipliers, before))
            before = multipliers
        first, _, _ = folded(path, "--position", "0", "--budget-macs", "100000", place=0)
        cycles, multipliers, _ = folded(path, "--position", "0", "--target-cycles", str(2 * first), place=0)
        t.case("%s: the first step, of twice the fastest" % name, "" if cycles <= 2 * first and multipliers < most else "%d cycles for %d, %d multipliers of %d" % (cycles, 2 * first, multipliers, most))
        p = t.call("fold", path, "--position", str(PLACE), "--target-cycles", str(fast // 2))
        t.case("%s: a step out of reach" % name, "" if p.returncode == 1 and b"cycles per token cannot be reached; the fastest folding takes" in p.stderr else p.stderr.decode()[-200:] or "it says nothing")


def check_deep():
    """Of many large layers the search looks at four; what it says of a step is what all of them take, and meets the target."""
    from models import big_llama
    big_llama.make(t.at("deep.onnx"), "llama-deep", t.write("deep.data", b""))
    t.good("lower", t.at("deep.onnx"), "--context", "64", "--sketch", "-o", t.at("deep.lower.onnx"))
    flags = "--position", "32", "--memory", "block"
    fast, _, _ = folded(t.at("deep.lower.onnx"), *flags, "--budget-macs", "200", place=32)
    for factor in (1.03, 1.3, 2.2):
        target = int(fast * factor)
        cycles, multipliers, _ = folded(t.at("deep.lower.onnx"), *flags, "--target-cycles", str(target), place=32)
        t.case("16 layers: a step of %.2f times %d cycles" % (factor, fast), "" if 0.9 * target < cycles <= target and multipliers <= 200 else
               "%d cycles for %d, with %d multipliers" % (cycles, target, multipliers))


def check_default():
    """Without a word: a prompt's folding, unless its step is slow; and what memory can bring is what limits a trained model's."""
    for name in TINY:
        path = lowered(name, "--context", "16")
        plain, _, _ = folded(path, place=8)
        best, _, _ = folded(path, "--position", "8", "--budget-macs", "1024", place=8)
        t.case("%s: the default" % name, "" if plain <= 2.5 * best else "%d cycles; %d can be had" % (plain, best))
    path = lowered("stories260k-step", "--context", "64")
    for flags in ((), ("--axi-width", "512", "--budget-macs", "2048"), ("--memory", "block", "--bandwidth", "16")):
        t.good("fold", path, *flags, "-o", t.at("folded"))
        r = json.loads(t.good("show", "--json", "--position", "32", t.at("folded")))
        beats = r["parameter_beats"]["per_iteration"] * 5
        t.case("stories260k: memory limits a step %s" % " ".join(flags), "" if beats <= 1.15 * r["step"]["cycles"] <= 1.3 * beats else "%d cycles a step, %d beats" % (r["step"]["cycles"], beats))


def check_counted():
    """The step that was searched for is that of the simulation."""
    name = TINY[0]
    path = os.path.join(t.tests, "models/context", name + ".onnx")
    core = hardware.build(path, "--context", "16", "--position", str(PLACE), "--target-cycles", "1500", at="counted")
    r = hardware.Run(core, "--jobs", "0+%d,%d+1,%d+1" % (PLACE, PLACE, PLACE), verilator=True)
    step = r.report["frame_done"][2] - r.report["frame_done"][1] if not r.why() else 0
    t.case("a step counted", r.why() or ("" if 0 < step <= 1500 else "%d cycles, at most 1500 were asked for" % step))


def check_memory():
    """With keys and values in memory the search takes none that come in beats wider than memory's: what it finds becomes Verilog, where a wide one would be refused."""
    path = lowered("stories260k-step", "--context", "64")
    flags = "--kv", "dram", "--axi-width", "32", "--memory", "resident"
    wide = t.call("compile", path, *flags, "--folding", t.write("given.json", json.dumps({"attention_0": {"PE": 2, "SIMD": 8}})), "-o", t.at("narrow"))
    t.case("8 channels of keys a beat of 32 bits", "" if wide.returncode == 4 and b"more than 32 bits of memory" in wide.stderr else "status %d" % wide.returncode)
    for more in ("--budget-macs", "100000", "--position", "9"), ("--target-cycles", "39000"):
        p = t.call("compile", path, *flags, *more, "-o", t.at("narrow"))
        kv = not p.returncode and json.loads(t.read(os.path.join(t.at("narrow"), "manifest.json")))["kv"]
        t.case("keys in beats of 32 bits, %s" % more[0], p.stderr.decode()[-200:] if p.returncode else "" if kv["lanes"] * -(-kv["bits"] // 8) * 8 <= 32 else "%d channels a beat, each of %d bits" % (kv["lanes"], kv["bits"]))


def check_refused():
    tiny, encoder = lowered(TINY[0], "--context", "16"), t.model("bert-tiny")
    for what, words, status, args in (
            ("no caches", "give --context, too", 2, ["fold", encoder, "--position", "3"]),
            ("beyond the context", "the last is 15", 2, ["fold", tiny, "--position", "16"]),
            ("no number", "position", 2, ["fold", tiny, "--position", "x"])):
        p = t.call(*args)
        t.case("refused: %s" % what, "" if p.returncode == status and words in p.stderr.decode() else "status %d: %s" % (p.returncode, p.stderr.decode()[-200:]))


if __name__ == "__main__": t.main(check_exchange, check_targets, check_deep, check_default, check_counted, check_memory, check_refused, floor=43)
