#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Predicted cycles against simulated ones: the whole run and every kernel, on combinations of model, folding, frames and memory that are drawn by
the date of the run (SEED=N repeats one).

    python tests/test_predict.py path/to/mlo [NAME ...]

A prediction p of c simulated cycles is off by |p - c| / c, which must be at most 1 %; so must every kernel's busy cycles. Why the others wait is a
matter of beats, and the prediction's schedule is of tokens: on average over the kernels, starved and blocked cycles may differ by 5 % of the run.
Fourteen fixed runs must be foretold to two cycles, those of two of six cores a day. make bench (predict) draws more than sixty.

    DECODERS=60 python tests/test_predict.py path/to/mlo decoders       three a day: layers of the newer kinds (decoders.py), in Icarus, every word, too"""
import datetime
import json
import os
import random
import shutil
import encoders
import harness as t
import hardware
from decoders import Decoder

SEED = int(os.environ.get("SEED") or datetime.date.today().strftime("%Y%m%d"))
MOST, CAUSES, CLOSE = 0.01, 0.05, 2
GIVEN = "bert-tiny", "bert-tiny-mask", "vit-tiny"


def draw_model(rng, small):
    """A path, and what it is."""
    if rng.random() < 0.3 and not small:
        name = rng.choice(GIVEN)
        return t.model(name), name
    heads, head = rng.choice([1, 2, 3, 5]), rng.choice([4, 6, 8, 12])
    e = encoders.Encoder(rng.choice([2, 3, 5]), rng.choice([20, 24, 30, 45, 48]), heads, head, rng.choice([36, 44, 50, 64]), rng.choice([1, 2, 5, 9] + [17, 24] * (not small)),
                         rng.choice(["pre", "post"]), rng.choice(["Relu", "Gelu", "Silu"]), rng.random() < 0.3)
    name = "%dx%d-%dx%d-%d-%dt-%s-%s" % (e.layers, e.hidden, e.heads, e.head, e.inner, e.tokens, e.norm, e.act) + "-mask" * e.mask
    return t.write(name + ".onnx", e.model().SerializeToString()), name


def draw_fold(rng):
    pe, simd = rng.choice([2, 3, 4, 5, 6, 8, 12]), rng.choice([2, 3, 4, 6, 8, 12])
    memory = rng.choice(["layer", "layer", "resident", "block", "block"])
    return ["--pe", pe, "--simd", simd, "--frames-in-flight", rng.choice([1, 1, 2, 2, 3]), "--axi-width", rng.choice([32, 64, 128, 128, 256]), "--memory", memory] + ["--tile", rng.choice([1, 2, 3, 5, 8, 100])] * (memory == "block")


def draw_run(rng, group, axi):
    """Frames and a memory: half of them without limit, the others from scarce to ample."""
    flags = ["--frames", rng.choice([1, group, 2 * group, 2 * group + 1]), "--axi-latency", rng.choice([1, 7, 7, 30, 64, 150])]
    return flags + (["--bandwidth", "%.3g" % (axi / 8 * rng.choice([0.03, 0.06, 0.1, 0.2, 0.4, 0.8]))] if rng.random() < 0.6 else [])


class Build:
    """One core and the runs drawn for it."""
    def __init__(self, rng, runs, small):
        path, name = draw_model(rng, small)
        fold = draw_fold(rng)
        self.at, self.name = t.at("b%d" % rng.getrandbits(40)), name + " " + " ".join(str(f).replace("--", "").replace("frames-in-flight", "g").replace("axi-width", "axi") for f in fold)
        t.good("compile", path, *fold, "-o", self.at)
        self.manifest = json.loads(t.read(os.path.join(self.at, "manifest.json")))
        self.runs = [draw_run(rng, self.manifest["frames_in_flight"], self.manifest["axi_bits"]) for _ in range(runs)]

    def simulator(self):
        """Icarus, unless what it would take is longer than compiling."""
        cost = self.manifest["predicted_cycles"] * len(self.runs) * sum(k["area"]["ff"] for k in self.manifest["kernels"])
        return ["--simulator", "verilator"] if shutil.which("verilator") and (cost > 2e8 or not shutil.which("iverilog")) else ["--simulator", "icarus"]

    def simulated(self):
        for flags in self.runs:
            p = t.call("sim", self.at, *flags, *self.simulator(), timeout=1800)
            if p.returncode: raise RuntimeError("%s: %s: status %d: %s" % (self.name, flags, p.returncode, p.stderr.decode(errors="replace")[-300:]))
            yield flags, json.loads(p.stdout)
        shutil.rmtree(self.at, True)


def off(p, c): return abs(p - c) / max(1, c)


def why(r):
    """'' or what the prediction says otherwise."""
    wrong = []
    if off(r["predicted_cycles"], r["cycles"]) > MOST: wrong.append("cycles %d, predicted %d" % (r["cycles"], r["predicted_cycles"]))
    for k in r["kernels"]:
        if off(k["predicted"], k["busy"]) > MOST: wrong.append("%s busy %d, predicted %d" % (k["name"], k["busy"], k["predicted"]))
    for cause, parts in ("starved", ("predicted_starved_parameters", "predicted_starved_input")), ("blocked", ("predicted_blocked",)):
        each = [abs(sum(k[p] for p in parts) - k[cause]) for k in r["kernels"]]
        if sum(each) > CAUSES * r["cycles"] * len(each): wrong.append("%s: off by %s" % (cause, each))
    return "; ".join(wrong)


def compare(builds, runs, small, seed):
    """Yields name, flags, report and complaint of every combination: of the builds with these numbers."""
    for i in builds:
        b = Build(random.Random(seed * 1000 + i), runs, small)
        for flags, r in b.simulated(): yield b.name, " ".join(map(str, flags)), r, why(r)


def check_predictions():
    if not shutil.which("iverilog") and not shutil.which("verilator"): return t.absent("predictions", "no simulator")
    print("    SEED=%d" % SEED, flush=True)
    for name, flags, r, complaint in compare(range(3 if t.full else 2), 2, True, SEED): t.case("predicted %d, simulated %d cycles: %s, %s" % (r["predicted_cycles"], r["cycles"], name, flags), complaint)


def check_cycles():
    """A memory of each mode, where nothing but the schedule's own constants could make a difference: 1 % of a run would hide dozens of cycles. In the fourth
    two readers ask for memory within a cycle: two cycles more or less of a kernel, and they are served the other way round, and the run takes 5 % longer. In the
    one behind it a matrix has to wait in the middle of a token, for one that waits for its parameters; in the last one tokens of three beats wait in a norm
    and behind it, where straight lines from first to last beat had them elsewhere. FIFOs are as full as foretold, or by a beat less (add_1_in1 of the second
    core, which has 73 of 74: not known why)."""
    if not shutil.which("iverilog") and not shutil.which("verilator"): return t.absent("cycles", "no simulator")
    cores = t.drawn(((777, 6, 2), (777, 9, 2), (888, 5, 2), (4242, 2, 2), (4242, 8, 3), (5151, 1, 3)), 3)           # seed, number, runs
    for name, flags, r, complaint in [x for seed, number, runs in cores for x in compare([number], runs, True, seed)]:
        t.case("%d cycles foretold to %d: %s, %s" % (r["cycles"], CLOSE, name, flags), complaint or ("predicted %d" % r["predicted_cycles"]) * (abs(r["predicted_cycles"] - r["cycles"]) > CLOSE))
        t.case("FIFOs to a beat: %s, %s" % (name, flags), ", ".join("%s: %d, foretold %d" % (f["name"], f["peak"], f["predicted_peak"]) for f in r["fifos"] if not 0 <= f["predicted_peak"] - f["peak"] <= 1))


def check_causes():
    """Many tiles for little memory: where it was known too late what a kernel takes that waits for room, kernels in front of it asked for parameters too late, and
    were said to wait for those (8 % of the run). In the second core a fork gives no beat to one reader while the other one's FIFO is full (32 % of a kernel's)."""
    if not shutil.which("iverilog") and not shutil.which("verilator"): return t.absent("causes", "no simulator")
    cores = (20261122, 6, ["--frames", 2, "--axi-latency", 7, "--bandwidth", 6.4], True), (20261123, 0, ["--frames", 2, "--axi-latency", 7, "--bandwidth", 0.96], False)
    for seed, number, flags, each in t.drawn(cores, 2):
        b = Build(random.Random(seed * 1000 + number), 1, False)
        b.runs = [flags]
        for _, r in b.simulated():
            t.case("causes of %d cycles: %s" % (r["cycles"], b.name), why(r))
            wrong = [abs(k["predicted_blocked"] - k["blocked"]) for k in r["kernels"]]
            if each: t.case("all of them to 1 %", ", ".join(k["name"] for k, far in zip(r["kernels"], wrong) if far > MOST * r["cycles"]))
            t.case("of the kernels' time 2 %", "%d of %d cycles" % (sum(wrong), len(wrong) * r["cycles"]) * (sum(wrong) > 0.02 * len(wrong) * r["cycles"]))


def check_forks():
    """A norm between whose readers, a matrix and the sum that goes past it, a FIFO is full at times: how long it waits for room is foretold to 2 % of the run."""
    if not t.have("forks", "iverilog"): return
    out = t.at("forks")
    t.good("compile", os.path.join(t.tests, "models", "families", "xlmr-d22-sdpa-mask-a.onnx"), "--pe", 2, "--simd", 4, "-o", out)
    r = json.loads(t.good("sim", out, "--simulator", "icarus"))
    norm = next(k for k in r["kernels"] if k["name"] == "layernorm_0")
    t.case("forks: %d cycles of waiting" % norm["blocked"], why(r) or ("foretold are %d" % norm["predicted_blocked"]) * (norm["blocked"] < 0.03 * r["cycles"] or abs(norm["predicted_blocked"] - norm["blocked"]) > 0.02 * r["cycles"]))


def check_room():
    """Three frames of one token: a kernel that makes beats slower than the one behind it takes them waits for room in the middle of a token."""
    if not t.have("room", "iverilog"): return
    e = encoders.Encoder(5, 24, 2, 8, 36, 1, "post", "Gelu", True)
    path, out = t.write("room.onnx", e.model().SerializeToString()), t.at("room")
    t.good("compile", path, "--pe", 5, "--simd", 6, "--frames-in-flight", 3, "--axi-width", 256, "--memory", "resident", "-o", out)
    r = json.loads(t.good("sim", out, "--frames", 3, "--axi-latency", 150, "--simulator", "icarus"))
    t.case("room: %d cycles foretold to %d" % (r["cycles"], CLOSE), why(r) or ("predicted %d" % r["predicted_cycles"]) * (abs(r["predicted_cycles"] - r["cycles"]) > CLOSE))


def check_queries():
    """Nine heads: of a token's queries attention takes two heads as they come, the third and those behind it as heads are scored. The FIFO in front is as full as foretold, to the beat."""
    if not t.have("queries", "iverilog"): return
    d, out = Decoder(random.Random(50141)), t.at("queries")
    d.tokens, d.layers = 7, 2
    path = t.write("queries.onnx", d.model().SerializeToString())
    t.good("compile", path, "--max-cost", 1, "--pe", 5, "--simd", 2, "--frames-in-flight", 1, "--axi-width", 64, "--memory", "resident", "-o", out)
    r = json.loads(t.good("sim", out, "--frames", 1, "--simulator", "icarus"))
    t.case("%d heads: %d cycles foretold to %d" % (d.heads, r["cycles"], CLOSE), why(r) or ("predicted %d" % r["predicted_cycles"]) * (abs(r["predicted_cycles"] - r["cycles"]) > CLOSE))
    t.case("%d heads: FIFOs to the beat" % d.heads, ", ".join("%s: %d, foretold %d" % (f["name"], f["peak"], f["predicted_peak"]) for f in r["fifos"] if f["peak"] != f["predicted_peak"]) or "" * bool(r["fifos"]))


DECODERS, SOON = int(os.environ.get("DECODERS", 4 if t.full else 3)), 4e5                  # so many; cycles x multipliers that Icarus is soon through with


def draw_decoder(rng, number):
    """A build directory of a small core, what it is, and flags of a run."""
    while True:
        d, fold = Decoder(rng), draw_fold(rng)
        fold[1] = rng.choice([1, fold[1]])
        out, name = t.at("d%d-%d" % (number, rng.getrandbits(30))), d.name + " " + " ".join(map(str, fold)).replace("--", "")
        p = t.call("compile", t.write("decoder.onnx", d.model().SerializeToString()), *fold, "-o", out, text=True)
        if p.returncode == 4:                        # said, and another one is drawn
            t.note("refused: %s: %s" % (name, p.stderr.strip().splitlines()[-1][:200]))
            continue
        if p.returncode: raise RuntimeError("%s: status %d: %s" % (name, p.returncode, p.stderr[-300:]))
        m = json.loads(t.read(os.path.join(out, "manifest.json")))
        flags = ["--frames", rng.choice([1, m["frames_in_flight"], 2]), "--axi-latency", rng.choice([1, 7, 7, 30])]
        if m["predicted_cycles"] * flags[1] * (m["multipliers"] + 100) < SOON: return out, name, flags
        shutil.rmtree(out, True)


CAUSAL = 12 if t.full else 6


def causal(rng, number):
    """A build directory of a causal decoder that a budget folds: matrices get most of it, and attention one multiplier for scores and one for sums."""
    d = Decoder(rng)
    d.sees, d.biases, d.mask, d.tokens = "causal", None, False, rng.choice([7, 9, 12, 16])
    path, budget, out = t.write("causal.onnx", d.model().SerializeToString()), rng.choice([[], ["--budget-macs", 24], ["--budget-macs", 48], ["--budget-macs", 96]]), t.at("c%d" % number)
    t.good("compile", path, *budget, "-o", out)
    return out, "%dx%d %d/%dx%d %dt %s" % (d.layers, d.hidden, d.heads, d.kv, d.head, d.tokens, " ".join(map(str, budget)))


def check_causal():
    """Rows of few keys are summed soon, and wait in the queue of results for a matrix that is slower than they: those that had no place there go at the rows' own
    pace, later by 37 cycles with each key (gpt2-tiny as it is folded by itself; 3 % of the run, once)."""
    if t.have("gpt2-tiny", "verilator"):
        t.good("compile", t.model("gpt2-tiny"), "-o", t.at("gpt2"))
        r = json.loads(t.good("sim", t.at("gpt2"), "--simulator", "verilator", timeout=600))
        t.case("gpt2-tiny: %d cycles, predicted %d" % (r["cycles"], r["predicted_cycles"]), why(r) or "%g %%" % (100 * off(r["predicted_cycles"], r["cycles"])) * (off(r["predicted_cycles"], r["cycles"]) > MOST / 5))
    if not t.have("causal", "iverilog"): return
    for i in range(CAUSAL):
        out, name = causal(random.Random(SEED * 1000 + 700 + i), i)
        r = json.loads(t.good("sim", out, "--simulator", "icarus", timeout=600))
        t.case("causal %d: %d cycles, predicted %d: %s" % (i, r["cycles"], r["predicted_cycles"], name), why(r))
        shutil.rmtree(out, True)


def check_decoders():
    """Grouped heads, causal attention and windows, biases, rotations, norms of heads, gates, blocks side by side: words and cycles."""
    if not t.have("decoders", "iverilog"): return
    far = []
    # in front: a path that holds a token less than another may wait for, which fold refused in its own FIFO; columns of one number, negated, that get an axis
    for i, seed in enumerate([4711500, 20261130507] + [SEED * 1000 + 500 + i for i in range(DECODERS)]):
        out, name, flags = draw_decoder(random.Random(seed), i)
        r = hardware.Run(out, *flags, verilator=False)
        wrong = r.why() or why(r.report)
        if r.cycles: far.append(100 * (r.predicted_cycles - r.cycles) / r.cycles)
        t.case("decoder %d: words, predicted %s, simulated %s cycles: %s, %s" % (i, r.predicted_cycles, r.cycles, name, " ".join(map(str, flags))), wrong)
        shutil.rmtree(out, True)
    far.sort(key=abs)
    t.note("to the cycle %d of %d, to 0.1 %% %d, the worst %+.2f %%" % (far.count(0), len(far), sum(abs(x) <= 0.1 for x in far), far[-1] if far else 0))


def check_held():
    """Results that cannot leave: of a matrix in front of a norm of heads, whose last sums were said to wait for a result too early; of one whose short tokens are
    all in the skids of a product; of a norm whose token a fork and converters hold, for one of five readers that waits for its parameters (7 % of the run, once).
    Blocks for a lone token, behind as many requests of the loader as it can make: each is a command of its own there, a cycle later than a burst (3 %).
    One of five readers that has no place for more of a token than its first beat: the others get what a fork has let pass (5.7 %). And a reader that waits for
    its turn, behind which its next request is ready (1.5 %)."""
    if not t.have("held", "iverilog"): return
    for seed in 20261127502, 99012, 99029, 20261203545, 20261204505, 20261204507:
        out, name, flags = draw_decoder(random.Random(seed), seed)
        r = json.loads(t.good("sim", out, *flags, "--simulator", "icarus", timeout=600))
        t.case("held: %d cycles foretold to %d: %s" % (r["cycles"], CLOSE, name), why(r) or ("predicted %d" % r["predicted_cycles"]) * (abs(r["predicted_cycles"] - r["cycles"]) > CLOSE))
        shutil.rmtree(out, True)


if __name__ == "__main__": t.main(check_predictions, check_cycles, check_causes, check_forks, check_room, check_queries, check_held, check_causal, check_decoders, floor=33)
