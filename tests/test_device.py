#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Areas, and the fastest folding that fits a device.

    python tests/test_device.py path/to/mlo [NAME ...]

What fits is reckoned here, from the areas that `fold --pareto` and `show --json` print and the shares that src/fold/device.c documents; what is
fastest, from the cycles they print. How near the areas are to synthesis: areas.txt, which Yosys made; of other cores `make synth SYNTH=estimate`."""
import argparse
import itertools
import json
import random
import tempfile
import numpy as np
import harness as t
import synth
from cores import Body, ceil
from decoders import Decoder
from test_search import Core, large, small

SHARES = {"lut": 70, "ff": 50, "dsp": 80, "bram": 80}
PLENTY = {k: 10 ** 8 for k in SHARES}


def named(limits): return ",".join("%s=%d" % (k, n) for k, n in limits.items())
def fits(area, limits): return all(np.ceil(area[k]) <= limits[k] * SHARES[k] // 100 for k in SHARES)
def holds(area, k): return ceil(int(np.ceil(area[k])) * 100, SHARES[k])      # the smallest device in this that holds it


def check_parts():
    """Areas add up, depend on no folding but their own, and are the same in all that prints them."""
    for core in small()[:10:3]:
        lines, why = core.front("--frames-in-flight", 2), []
        for line in lines[::max(len(lines) // 3, 1)]:
            said = core.fold("--folding", t.write("line.json", json.dumps(line)))
            if said["area"] != line["area"]: why.append("the front says %s, show %s" % (line["area"], said["area"]))
            for k in SHARES:
                parts = [a[k] for a in (said["area_streams"], said["area_shell"], *(x["area"] for x in said["kernels"]))]
                if sum(parts) != said["area"][k]: why.append("%s: %s are not %s" % (k, parts, said["area"][k]))
        t.case("%s: areas add up" % core.name, "; ".join(why))
    one, two = core.fold("--pe", 1, "--simd", 1), core.fold("--pe", 4, "--simd", 8)
    grows = all(b["area"][k] > a["area"][k] for a, b in zip(one["kernels"], two["kernels"]) if b["multipliers"] > 1 for k in ("lut", "ff", "dsp"))
    t.case("more multipliers take more", "" if grows and two["area"]["dsp"] > one["area"]["dsp"] else "%s %s" % (one["kernels"], two["kernels"]))


def far(name, real, said, before):
    """'' or what an estimate is too far off: more than synth.py says it may be of a kernel, or more than when areas.txt was made."""
    why = []
    for r, counted, now, then in zip(synth.RESOURCES, real, said, before):
        off, large = abs(now - counted), max(counted, now) >= synth.SOME_SIZE[r]
        if name not in ("streams", "shell", "around", "all") and large and off > synth.WORST[r] * counted: why.append("%s %s: %g, Yosys counts %g" % (name, r, now, counted))
        if off > abs(then - counted): why.append("%s %s: %g, further from Yosys's %g than the %g when it was measured; `make synth SYNTH=areas`" % (name, r, now, counted, then))
    return "; ".join(why)


def check_synthesized():
    """Areas are what Yosys counts, within the error that synth.py states, and no further from it than they were."""
    known, options = synth.recorded(), argparse.Namespace(mlo=t.mlo)
    for line in synth.AREAS:
        with tempfile.TemporaryDirectory(dir=t.tmp) as where:
            said = synth.parts(synth.estimated(t.mlo, where, synth.core_of(line, options, where)))
        t.case("areas.txt has the kernels of %s" % line, "" if [n for n, _ in said] == [n for n, *_ in known[line]] else "`make synth SYNTH=areas`")
        for (name, area), (_, real, before) in zip(said, known[line]): t.case("area of %s in %s" % (name, line), far(name, real, [area[r.lower()] for r in synth.RESOURCES], before))


def check_slots():
    """Where a slot's banks begin (verilog/mlo_job.v) is a product with the layers, and only bits of the slot's number where these are a power of two."""
    shell = {}
    for layers in 3, 4, 8:
        d = Decoder(random.Random(1))
        d.layers, d.hidden, d.heads, d.kv, d.head, d.inner, d.tokens, d.norm, d.act, d.mask = layers, 16, 2, 1, 8, 16, 16, "pre", "Silu", False
        d.biased, d.rms, d.gated, d.sees, d.biases, d.turning, d.qk = False, True, True, "causal", None, 0, None
        t.good("lower", t.write("slots.onnx", d.model().SerializeToString()), "--context", 16, "--max-cost", 1, "--onnx", "-o", t.at("lowered.onnx"))
        t.good("fold", t.at("lowered.onnx"), "--slots", 4, "--pe", 1, "--simd", 2, "--onnx", "-o", t.at("slots-folded.onnx"))
        shell[layers] = json.loads(t.good("show", "--json", t.at("slots-folded.onnx")))["area_shell"]
    t.case("4 slots: 8 layers take what 4 take", "" if shell[8] == shell[4] else str(shell))
    t.case("4 slots: 3 layers take a product more", "" if all(shell[3][k] > shell[4][k] for k in ("lut", "ff")) else str(shell))


def check_front():
    """The folding chosen fits; what the front has that is faster does not."""
    big = [(large(name), flags) for name, flags in t.drawn((("deit-tiny", ["--frames-in-flight", 2]), ("minilm", [])), 4, name=lambda large: large[0])]
    for core, flags in [(c, ["--frames-in-flight", g]) for c, g in zip(small()[::3], (1, 2, 1, 2))] + big:
        flags += ["--memory", "layer"]          # of which the front is
        lines, why, rng = core.front(*flags), [], np.random.default_rng(core.layers)
        limited = range(6) if core.layers < 6 else t.drawn(range(6), 6)          # what is to be scarce
        for n in limited:
            line, k = lines[rng.integers(len(lines))], list(SHARES)[n % 4]
            limits = {**PLENTY, k: max(holds(line["area"], k) - (n > 3), 1)}
            every = [x for x in lines if fits(x["area"], limits)]
            if not every: continue
            said = core.fold("--device", named(limits), *flags)
            if not fits(said["area"], limits): why.append("%s: %s does not fit" % (limits, said["area"]))
            if said["predicted_interval"] > every[0]["cycles"]: why.append("%s: %d cycles, %d fit" % (limits, said["predicted_interval"], every[0]["cycles"]))
            some = core.front("--device", named(limits), *flags)
            if some[0]["cycles"] != said["predicted_interval"] or not all(fits(x["area"], limits) for x in some) or any(x not in some for x in every): why.append("%s: the front that fits: %s" % (limits, some[0]))
            if said["device"] != {"name": "given", **limits, "most_percent": SHARES}: why.append(str(said["device"]))
        t.case("%s: the fastest of %d that fits" % (core.name, len(lines)), "; ".join(why))


def check_brute_force():
    """All foldings of a tiny core, one by one: of those with the fewest multipliers (then lanes, then skew) for their speed, the fastest that fits."""
    body = Body(3, 4)
    core = Core("tiny", body, body.add(body.mvu(body.requant(body.x), 4), body.x), 2)
    grid, every = list(itertools.product(*(range(len(m["pe"])) for m in core.menus))), []
    for picks in grid:
        said = core.given(picks, "--frames-in-flight", 2)
        price = [(m["multipliers"][i], 0 if m["multipliers"][i] else m["pe"][i], max(m["simd"][i], 4 * m["pe"][i]) if m["multipliers"][i] else 0) for m, i in zip(core.menus, picks)]
        every.append((tuple(int(sum(x)) for x in zip(*price)), int(core.steady({k: v for k, v in core.total(picks).items()}, 2)), said["predicted_interval"], said["area"]))
    front = [e for e in every if not any(o[1] <= e[1] and o[0] < e[0] for o in every)]
    why = []
    for line in front:
        for k in SHARES:
            limits = {**PLENTY, k: max(holds(line[3], k), 1)}
            want = min(e[2] for e in front if fits(e[3], limits))
            got = core.fold("--device", named(limits), "--frames-in-flight", 2, "--memory", "layer")
            if got["predicted_interval"] != want: why.append("%s: %d cycles, not %d" % (limits, got["predicted_interval"], want))
    t.case("the best of %d foldings, one by one" % len(grid), "; ".join(why))


def check_targets():
    """With a target: the cheapest that meets it and fits; with frames to be chosen, as fast as with any number of them (but for what the ends of a run differ by)."""
    core = large("deit-tiny")
    lines = core.front("--device", "xczu9eg", "--frames-in-flight", 2)
    target = lines[len(lines) // 2]["cycles"]
    said = core.fold("--device", "xczu9eg", "--frames-in-flight", 2, "--target-cycles", target, "--memory", "layer")
    t.case("a target within a device", "" if said["predicted_interval"] <= target and said["multipliers"] == min(x["multipliers"] for x in lines if x["cycles"] <= target) else str(said["multipliers"]))
    some = [core.fold("--device", "XCZU9EG-ffvb1156-2-e", "--frames-in-flight", g, "--memory", "layer")["predicted_interval"] for g in (1, 2, 3)]
    auto = core.fold("--device", "xczu9eg", "--frames-in-flight", "auto", "--memory", "layer")
    t.case("frames in flight are chosen for a device", "" if auto["predicted_interval"] <= 1.001 * min(some) and auto["device"]["lut"] == 274080 else "%s %s" % (some, auto["predicted_interval"]))
    text = t.good("show", "--text", t.at("folded.json"))
    text = text if isinstance(text, str) else text.decode()
    share = "%.1f %%" % (100 * auto["area"]["dsp"] / 2520)
    t.case("show says how full the device is", "" if any("xczu9eg" in x and share in x for x in text.splitlines()) else share)


def check_refusals():
    core = small()[4]
    for name, status, words, *flags in (
            ("a device that is not known", 2, ["there is no device xc9", "xczu3eg", "lut=N"], "--device", "xc9"), ("numbers without one of them", 2, ["all four"], "--device", "lut=5,ff=5,dsp=5"),
            ("numbers that are none", 2, ["lut=70560"], "--device", "lut=a,ff=5,dsp=5,bram=5"), ("a number twice", 2, ["lut=70560"], "--device", "lut=5,lut=5,dsp=5,bram=5"),
            *(("numbers: " + text, 2, ["lut=70560"], "--device", text) for text in ("=5", "lut=", "lut=-5,ff=5,dsp=5,bram=5", "lut=0,ff=5,dsp=5,bram=5", "lut=1000000001,ff=5,dsp=5,bram=5", "lut=5x,ff=5,dsp=5,bram=5",
                                                                                     "lut=5,", "lu=5,ff=5,dsp=5,bram=5", "lutt=5,ff=5,dsp=5,bram=5", "lut=5,ff=5,dsp=5,bram=5,")),
            *(("a device called " + text, 2, ["there is no device " + text], "--device", text) for text in ("xczu3", "xczu3egx", "XCZU3EG_1")),
            ("a target and caps", 2, ["exclude each other"], "--target-cycles", 9999, "--pe", 2), ("a rate and caps", 2, ["exclude each other"], "--target-fps", 9, "--clock-mhz", 9, "--simd", 2),
            ("caps and multipliers", 2, ["exclude budgets"], "--pe", 2, "--budget-macs", 9999), ("caps and bits", 2, ["--memory auto takes --budget-bits"], "--simd", 2, "--budget-bits", 999999),
            ("a clock alone", 2, ["--target-fps needs --clock-mhz"], "--clock-mhz", 9), ("bits alone", 2, ["does not limit the multipliers"], "--budget-bits", 9999999),
            ("more than a frame per cycle", 1, ["more than a frame per cycle"], "--target-fps", 2000001, "--clock-mhz", 2), ("a bus of 96 bits", 2, ["not a power of two"], "--axi-width", 96),
            ("one multiplier", 1, ["budget of 1 multipliers is too small; the smallest folding has"], "--budget-macs", 1), ("ten bits", 1, ["budget of 10 bits on chip is too small", "in FIFOs"], "--budget-bits", 10, "--budget-macs", 99999),
            ("tiles of any size in a front", 2, ["give --tile a number"], "--pareto", "--memory", "block", "--tile", "auto"), ("a front that no device has", 1, ["too small"], "--pareto", "--device", named({**PLENTY, "lut": 1000})),
            ("a front of one multiplier", 1, ["budget of 1 multipliers is too small"], "--pareto", "--budget-macs", 1),
            ("caps", 2, ["--pe and --simd"], "--device", "xczu3eg", "--pe", 2), ("memory auto without bits", 2, ["--budget-bits"], "--device", "xczu3eg", "--memory", "auto"),
            ("a small device", 1, ["too small", "LUTs", "70 % of the 1000 there are 700"], "--device", named({**PLENTY, "lut": 1000})),
            ("few block RAMs", 1, ["too small", "block RAMs"], "--device", named({**PLENTY, "bram": 1})),
            ("a target that no folding in it meets", 1, ["within the device", "the fastest folding takes"], "--device", named(PLENTY), "--target-cycles", 9)):
        p = t.call("fold", core.path, *flags, text=True)
        t.case("refused: " + name, "" if p.returncode == status and all(w in p.stderr for w in words) else "%d %s" % (p.returncode, p.stderr))
    for frames in (0, -1, 1.5, 256, "2"):
        line = t.write("line.json", json.dumps({"cycles": 1, "frames_in_flight": frames, "folding": {}}))
        p = t.call("fold", core.path, "--folding", line, text=True)
        t.case("refused: a line for %r frames" % frames, "" if p.returncode == 1 and "no whole number of frames from 1 to 255" in p.stderr else "%d %s" % (p.returncode, p.stderr))
        p = t.call("fold", core.path, "--folding", line, "--frames-in-flight", 2, "-o", t.at("two.json"), text=True)
        t.case("a line for %r frames, and --frames-in-flight" % frames, p.stderr if p.returncode else "")
    for what, line, status in (("of one frame", {"cycles": 1, "frames_in_flight": 1, "folding": {}}, 0), ("of 255 frames", {"cycles": 1, "frames_in_flight": 255, "folding": {}}, 0), ("that says nothing of frames", {"cycles": 1, "folding": {}}, 0),
                               ("without cycles, which has a kernel called folding", {"folding": {}}, 1), ("whose folding is a list", {"cycles": 1, "folding": []}, 1)):
        p = t.call("fold", core.path, "--folding", t.write("line.json", json.dumps(line)), "-o", t.at("line.out"), text=True)
        t.case("a line " + what, "" if p.returncode == status else "%d %s" % (p.returncode, p.stderr))
    for text in "XCZU3EG", "xczu3eg-sbva484-1-e": t.case("a device by %s" % text, "" if core.fold("--device", text) == core.fold("--device", "xczu3eg") else "another folding")
    # AMD's product tables, in thousands of LUTs; an UltraScale+ CLB has 8 LUTs and 16 flip-flops
    for name, lut, dsp, bram in (("xczu1eg", 37, 216, 108), ("xczu3eg", 71, 360, 216), ("xck26", 117, 1248, 144), ("xczu7ev", 230, 1728, 312), ("xczu9eg", 274, 2520, 912), ("xczu28dr", 425, 4272, 1080),
                                 ("xcvu9p", 1182, 6840, 2160), ("xcu50", 872, 5952, 1344), ("xcu280", 1304, 9024, 2016), ("xcu250", 1728, 12288, 2688)):
        has = core.fold("--device", name)["device"]
        right = round(has["lut"] / 1000) == lut and has["lut"] % 8 == 0 and has["ff"] == 2 * has["lut"] and (has["dsp"], has["bram"]) == (dsp, bram)
        t.case("what there is in an %s" % name, "" if right else str(has))
    both = core.fold("--device", "xczu3eg", "--memory", "auto", "--budget-bits", 200000)
    t.case("memory auto within bits and a device", "" if both["on_chip_bits"] <= 200000 and any(k["memory"] == "resident" for k in both["kernels"]) else str(both["on_chip_bits"]))


if __name__ == "__main__": t.main(check_parts, check_synthesized, check_slots, check_front, check_brute_force, check_targets, check_refusals, floor=171)
