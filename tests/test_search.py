#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The search for foldings: against all foldings of small cores, and against random ones of large cores.

    python tests/test_search.py path/to/mlo [NAME ...]

What a folding costs is reckoned here from the documents (tests/cores.py), not taken from mlo. The model (src/fold/search.c):
steady = max(T x cycles per token of the slowest kernel, beats to load / (what memory gives x frames in flight)), per iteration and frame."""
import json
import re
import numpy as np
import harness as t
from cores import AXI, Body, ceil, encoder


class Core:
    """A lowered model, and what each kernel may do."""

    def __init__(self, name, body, y, layers):
        self.name, self.layers, self.tokens, self.kernels = name, layers, body.tokens, body.kernels
        self.path = t.write(name + ".onnx", body.model(y, layers).SerializeToString())
        self.menus = [k.foldings() for k in body.kernels]

    def fold(self, *flags):
        """What mlo makes of it: `show --json` of the folded model."""
        t.good("fold", self.path, *flags, "-o", t.at("folded.json"))
        return json.loads(t.good("show", "--json", t.at("folded.json")))

    def front(self, *flags): return [json.loads(line) for line in t.good("fold", self.path, "--pareto", *flags).splitlines()]

    def given(self, picks, *flags):
        """The same of a folding of ours."""
        entries = {k.name: {"PE": int(m["pe"][i]), "SIMD": int(m["simd"][i])} for k, m, i in zip(self.kernels, self.menus, picks)}
        return self.fold("--folding", t.write("given.json", json.dumps(entries)), *flags)

    def refusal(self, *flags):
        p = t.call("fold", self.path, *flags, text=True)
        return p.stderr if p.returncode == 1 else "status %d" % p.returncode

    def fifo_bits(self, *flags):
        """What FIFOs take that are as deep as their paths: budgets count these, and no folding changes it."""
        return int(re.search(r"(\d+) in FIFOs as deep", self.refusal("--budget-macs", 10 ** 9, "--budget-bits", 1, *flags))[1])

    def held(self, said):
        """What kernels hold, and the feedback."""
        return said["on_chip_bits"] - sum(f["bits"] for f in said["fifo"])

    def chosen(self, kernels):
        """Indices into the menus of what mlo chose; an exception if it is not legal, or if mlo says of it what the documents do not."""
        at = []
        for k, menu, said in zip(self.kernels, self.menus, kernels, strict=True):
            i = np.flatnonzero((menu["pe"] == said["pe"]) & (menu["simd"] == said["simd"]))
            if said["name"] != k.name or len(i) != 1: raise RuntimeError("%s: %s is not legal" % (k.name, said))
            for key in "interval", "multipliers":
                if menu[key][i[0]] != said.get(key, menu[key][i[0]]): raise RuntimeError("%s: %s" % (k.name, said))
            at.append(i[0])
        return at

    def total(self, picks):
        """Sums over kernels, and the slowest: picks has an index, or an array of them, per kernel."""
        get = lambda key: [m[key][i] for m, i in zip(self.menus, picks)]
        return {"multipliers": sum(get("multipliers")), "beats": sum(get("beats")), "bits": sum(get("bits")), "way": sum(get("way")), "pace": np.maximum.reduce(get("interval"))}

    def everything(self):
        """The totals of all foldings."""
        grid = np.indices([len(m["pe"]) for m in self.menus]).reshape(len(self.menus), -1)
        return self.total(grid)

    def steady(self, total, frames=1, rate=256): return np.maximum(self.tokens * total["pace"], ceil(ceil(total["beats"] * 256, rate), frames))


def rate_of(bandwidth): return max(1, min(256, int(float(bandwidth) * 8 * 256 / AXI + 0.5)))


def small():
    """Ten bodies, of odd and even sizes, with all kinds of kernels."""
    def chain(tokens, channels, *widths):
        b = Body(tokens, channels)
        x = b.requant(b.x)
        for w in widths[:-1]: x = b.mvu(x, w, 8, table=w % 2 == 0)
        return b, b.add(b.mvu(x, channels), b.x)

    def attended(tokens, channels, heads):
        b = Body(tokens, channels)
        return b, b.add(b.mvu(b.attention(b.mvu(b.requant(b.x), 3 * channels, 8, 3), heads), channels), b.x)

    def normed(tokens, channels, inner):
        b = Body(tokens, channels)
        return b, b.norm(b.add(b.mvu(b.mvu(b.norm(b.x, 8), inner, 8, table=True), channels), b.x))
    return [Core("small-%d" % i, *made, layers) for i, (made, layers) in enumerate([
        (chain(4, 6, 12, 6), 2), (chain(5, 12, 24, 12), 3), (chain(3, 8, 9, 15, 8), 1), (chain(1, 10, 30, 10), 12), (attended(4, 4, 2), 2),
        (attended(7, 6, 1), 4), (attended(12, 8, 2), 3), (attended(3, 9, 3), 100), (normed(4, 12, 20), 2), (normed(9, 16, 18), 5)])]


def compare(core, every, said, frames, rate, within, spare=False):
    """'' or how the best of all foldings differs from what mlo says: the fastest within limits, and of those the one with the fewest multipliers;
    with one frame in flight and a budget, the one whose tokens are through soonest."""
    steady = core.steady(every, frames, rate)
    best = steady[within].min()
    fast = within & (steady == best)
    if not spare: want = best, 0, every["multipliers"][fast].min()
    else: want = best, every["way"][fast].min(), every["multipliers"][fast & (every["way"] == every["way"][fast].min())].min()
    mine = core.total(core.chosen(said["kernels"]))
    got = core.steady(mine, frames, rate), mine["way"] if spare else 0, mine["multipliers"]
    return "" if got == want and said["multipliers"] == want[2] else "%s; the best of %d: %s" % (got, len(steady), want)


def check_brute_force():
    for core in small():
        every, why, rng = core.everything(), [], np.random.default_rng(len(core.name))
        macs, fifo = every["multipliers"], core.fifo_bits()
        for budget in sorted({int(macs.min()), int(macs.min() * 2), int(np.exp(rng.uniform(np.log(macs.min()), np.log(macs.max()))))}):
            for frames, bandwidth in (1, None), (2, "1.5"), (3, "0.4"):
                flags = ["--budget-macs", budget, "--frames-in-flight", frames, *(["--bandwidth", bandwidth] if bandwidth else [])]
                why.append(compare(core, every, core.fold(*flags), frames, rate_of(bandwidth or 16), macs <= budget, frames == 1))
        why.append(compare(core, every, core.fold("--bandwidth", "0.7"), 1, rate_of("0.7"), macs >= 0))
        few = int(np.sort(every["bits"])[len(macs) // 5])           # a fifth of all foldings is so small, or smaller
        budget = int(np.median(macs[every["bits"] <= few]))
        why.append(compare(core, every, core.fold("--budget-macs", budget, "--budget-bits", few + fifo, "--bandwidth", "1"), 1, rate_of("1"), (macs <= budget) & (every["bits"] <= few), True))
        t.case("%s: the best of %d foldings, within budgets" % (core.name, len(macs)), "; ".join(w for w in why if w))


def staircase(steady, macs):
    """The front: (steady, multipliers) that nothing beats, fast ones first."""
    order, front = np.lexsort((macs, steady)), []
    for s, n in zip(steady[order], macs[order]):
        if not front or n < front[-1][1]: front.append((int(s), int(n)))
    return front


def kernels_of(line): return [{"name": name, "pe": f["PE"], "simd": f.get("SIMD", 1)} for name, f in line["folding"].items() if name != "Defaults"]


def check_front():
    for core in small():
        every, fifo = core.everything(), core.fifo_bits()
        for frames, bandwidth in (1, "16"), (2, "0.9"):
            lines, why = core.front("--frames-in-flight", frames, "--bandwidth", bandwidth), []
            want, got = staircase(core.steady(every, frames, rate_of(bandwidth)), every["multipliers"]), []
            for line in lines:
                mine = core.total(core.chosen(kernels_of(line)))
                got.append((int(core.steady(mine, frames, rate_of(bandwidth))), int(mine["multipliers"])))
                if got[-1] != (line["steady_cycles"] // core.layers, line["multipliers"]) or mine["beats"] != line["parameter_beats"]: why.append("said %s, is %s" % (line, mine))
            if set(got) - set(want): why.append("beaten: %s" % (set(got) - set(want)))
            cycles, macs = [line["cycles"] for line in lines], [line["multipliers"] for line in lines]
            if cycles != sorted(set(cycles)) or macs != sorted(set(macs), reverse=True): why.append("not sorted: %s %s" % (cycles, macs))
            for steady, n in sorted(set(want) - set(got))[:4]:          # filling and draining make it slower than one with fewer multipliers
                at = np.flatnonzero((every["multipliers"] == n) & (core.steady(every, frames, rate_of(bandwidth)) == steady))[0]
                said = core.given(np.unravel_index(at, [len(m["pe"]) for m in core.menus]), "--frames-in-flight", frames, "--bandwidth", bandwidth)["predicted_interval"]
                if said < 0.99 * min(c for c, m in zip(cycles, macs) if m <= n): why.append("missing: %s, %d cycles" % ((steady, n), said))
            t.case("%s: the front of %d, %d in flight, %s bytes a cycle" % (core.name, len(got), frames, bandwidth), "; ".join(why))


def check_frames():
    """The front with any number of frames in flight: lines of the fronts of each number; what one or two frames reach, a line reaches with no more multipliers."""
    for core in t.drawn(small()[1::3], 3, name=lambda core: core.name):
        for bandwidth in "16", "0.9":
            each = [core.front("--frames-in-flight", g, "--bandwidth", bandwidth) for g in range(1, 9)]
            said = core.front("--frames-in-flight", "auto", "--bandwidth", bandwidth)
            no_worse = lambda a, b: all(a[k] <= b[k] for k in ("cycles", "multipliers"))
            lost = [(b["cycles"], b["multipliers"]) for b in each[0] + each[1] if not any(no_worse(a, b) for a in said)]
            foreign = [(a["cycles"], a["multipliers"]) for a in said if a not in each[a["frames_in_flight"] - 1]]
            wrong = "in no front: %s" % foreign if foreign else "lost: %s" % lost if lost else ""
            t.case("%s, any number of frames, %s bytes a cycle: %d lines of %d" % (core.name, bandwidth, len(said), sum(map(len, each))), wrong)


# ---- large cores: nothing random beats it -------------------------------------------------------------------------------------------------

LARGE = {                          # tokens, hidden, inner, heads, norms first; layers; multipliers
    "bert-base": ((128, 768, 3072, 12), 12, 1024), "minilm": ((128, 384, 1536, 12), 6, 1024), "vit-base": ((197, 768, 3072, 12, True), 12, 2048),
    "bert-large": ((384, 1024, 4096, 16), 24, 4096), "deit-tiny": ((197, 192, 768, 3, True), 12, 300)}


def large(name): return Core(name, *encoder(*LARGE[name][0]), LARGE[name][1])


def draw(core, rng, n, budget):
    """n foldings within the budget: for each, a random share of it for every kernel, and of the foldings of that price or less, a random one of the dearer half."""
    picks, prices = [], [m["multipliers"] for m in core.menus]
    work = np.array([float(np.max(m["multipliers"] * m["interval"])) if m["multipliers"].any() else 0 for m in core.menus])
    share = work * np.exp(rng.normal(0, rng.choice([0.05, 0.3, 1.0], (n, 1)), (n, len(work))))
    share *= budget * rng.uniform(0.9, 1.6, (n, 1)) / share.sum(1, keepdims=True)
    for menu, price, most in zip(core.menus, prices, share.T):
        order = np.argsort(price, kind="stable")
        end = np.maximum(np.searchsorted(price[order], most, "right"), 1)
        picks.append(order[(end - 1 - (rng.random(n) ** 3 * end / 2).astype(int))])
    total = core.total(picks)
    keep = total["multipliers"] <= budget
    return [p[keep] for p in picks]


def check_random():
    settings = [(name, frames, bandwidth) for frames, bandwidth in ((1, "16"), (2, "16"), (2, "3.5")) for name in LARGE]
    for name, frames, bandwidth in t.drawn(settings, 4, lambda setting: "%s with %d frames at %s" % setting):
        (_, layers, budget), core, rng, picks, why = LARGE[name], large(name), np.random.default_rng(6), None, []
        while picks is None or len(picks[0]) < 10000:
            more = draw(core, rng, 20000, budget)
            picks = more if picks is None else [np.concatenate(p) for p in zip(picks, more)]
        every = core.total([p[:10000] for p in picks])
        said = core.fold("--budget-macs", budget, "--frames-in-flight", frames, "--bandwidth", bandwidth)
        mine = core.total(core.chosen(said["kernels"]))
        steady, best = core.steady(every, frames, rate_of(bandwidth)), core.steady(mine, frames, rate_of(bandwidth))
        if mine["multipliers"] > budget: why.append("%d multipliers" % mine["multipliers"])
        worse = every["multipliers"] < mine["multipliers"] if frames > 1 else every["way"] < mine["way"]
        if ((steady < best) | ((steady == best) & worse)).any(): why.append("%d: %d and %d" % (best, steady.min(), every["multipliers"][steady.argmin()]))
        near = np.argsort(steady, kind="stable")[:6]                # as mlo predicts the best of them, filling and draining included; 1 %: what a prediction may be off by
        for i in near:
            cycles = core.given([p[i] for p in picks], "--frames-in-flight", frames, "--bandwidth", bandwidth)["predicted_interval"]
            if cycles < 0.99 * said["predicted_interval"]: why.append("predicted %d, another %d" % (said["predicted_interval"], cycles))
        t.case("%s: 10000 random foldings of %d multipliers, %d in flight, do not beat %d cycles" % (name, budget, frames, said["predicted_interval"]), "; ".join(why))


def check_targets():
    """A target is met with the fewest multipliers, as the front says; what cannot be met is refused, with what can."""
    targets = {"bert-base": 12000000, "vit-base": 30000000, "minilm": 2000000}
    for name in t.drawn(targets, 3):
        core, why, target = large(name), [], targets[name]
        for frames in t.drawn((1, 2), 2):
            lines, said = core.front("--frames-in-flight", frames), core.fold("--target-cycles", target, "--frames-in-flight", frames)
            fewest = min(line["multipliers"] for line in lines if line["cycles"] <= target)
            if said["predicted_interval"] > target or said["multipliers"] != fewest: why.append("%d cycles, %d multipliers; the front has %d" % (said["predicted_interval"], said["multipliers"], fewest))
            line = [line for line in lines if line["multipliers"] == fewest][0]
            back = core.fold("--folding", t.write("line.json", json.dumps(line)))
            if [back[k] for k in ("predicted_interval", "multipliers", "frames_in_flight")] != [line["cycles"], fewest, frames] or back["on_chip_bits"] != line["on_chip_bits"]: why.append("a line given back: %s" % back)
        same = core.fold("--target-fps", 10, "--clock-mhz", target // 100000)["kernels"] == core.fold("--target-cycles", target // 100000 * 100000)["kernels"]
        t.case("%s: %d cycles with the fewest multipliers" % (name, target), "; ".join(why) or ("" if same else "--target-fps differs"))
        again = [t.good("fold", core.path, "--target-cycles", target) for _ in range(2)]
        t.case("%s: twice the same" % name, "" if again[0] == again[1] else "differs")


def check_refusals():
    core = small()[0]
    wants = {"too few multipliers": (["1 multipliers is too small", "has 2"], "--budget-macs", 1), "too few bits": (["100 bits on chip is too small", "holds"], "--budget-macs", 9, "--budget-bits", 100),
             "too few cycles": (["10 cycles per frame cannot be reached", "fastest", "raise --target-cycles"], "--target-cycles", 10),
             "too few cycles within a budget": (["within the budget", "with 4 multipliers"], "--target-cycles", 300, "--budget-macs", 4),
             "too many frames per second": (["--target-fps"], "--target-fps", 1000000, "--clock-mhz", 10)}
    for kernel, words in ("add_0", "has none"), ("mvu_0", "there is one"):
        wants["row blocks of " + kernel] = ([kernel, words, "memory layer"], "--folding", t.write("%s.json" % kernel, json.dumps({kernel: {"PE": core.kernels[[k.name for k in core.kernels].index(kernel)].legal[-1][0], "memory": "block"}})))
    for name, (words, *flags) in wants.items():
        said = core.refusal(*flags)
        t.case("refused: " + name, "" if all(w in said for w in words) else said or "it says nothing")
    least = int(re.search(r"the core holds (\d+) at least", core.refusal("--budget-macs", 9, "--budget-bits", 100))[1])
    p = t.call("fold", core.path, "--budget-macs", 9, "--budget-bits", least, "-o", t.at("least.json"), text=True)
    t.case("the least bits that it says are enough, a bit less is not", p.stderr or ("" if "holds %d at least" % least in core.refusal("--budget-macs", 9, "--budget-bits", least - 1) else "%d are too many" % least))
    for name, status, *flags in (("bits alone", 2, "--budget-bits", 100000), ("caps and budgets", 2, "--pe", 2, "--budget-macs", 9), ("tiles of none", 2, "--memory", "block", "--tile", 0), ("no mode", 2, "--memory", "some"),
                                 ("no frames", 2, "--frames-in-flight", "some"), ("no bandwidth", 2, "--bandwidth", "much")):
        p = t.call("fold", core.path, *flags, text=True)
        t.case("refused: " + name, "" if p.returncode == status and "mlo: " in p.stderr else "%d %s" % (p.returncode, p.stderr))


def check_around():
    """What --folding names stays; frames in flight are chosen, too."""
    core = large("minilm")
    fixed = t.write("fixed.json", '{"mvu_0": {"PE": 2, "SIMD": 8}, "attention_0": {"PE": 3, "SIMD": 2}}')
    said = core.fold("--budget-macs", 500, "--folding", fixed, "--frames-in-flight", 2)
    kernels = {k["name"]: k for k in said["kernels"]}
    slowest = kernels["mvu_0"]["interval"]
    fewest = sum(m["multipliers"][m["interval"] <= slowest].min() for k, m in zip(core.kernels, core.menus) if k.name not in ("mvu_0", "attention_0")) + 2 * 8 + 2 * 3 * 2
    t.case("kernels that are named stay as they are", "" if (kernels["mvu_0"]["pe"], kernels["attention_0"]["pe"]) == (2, 3) and said["multipliers"] == fewest and said["interval_per_token"] == slowest else str(said))
    one, auto = core.fold("--target-cycles", 2000000), core.fold("--target-cycles", 2000000, "--frames-in-flight", "auto")
    t.case("--frames-in-flight auto", "" if auto["multipliers"] < one["multipliers"] and auto["frames_in_flight"] > 1 and auto["predicted_interval"] <= 2000000 else "%s %s" % (one["multipliers"], auto["multipliers"]))
    slow = [core.fold("--bandwidth", "0.5", "--frames-in-flight", g) for g in (1, 2, 4)]
    t.case("frames in flight share the traffic", "" if slow[0]["predicted_interval"] > 1.8 * slow[1]["predicted_interval"] > 3.2 * slow[2]["predicted_interval"] else str([s["predicted_interval"] for s in slow]))


# ---- where parameters are -----------------------------------------------------------------------------------------------------------------

def resident(core, menu):
    """A menu with each folding twice: two banks that are loaded in each iteration, or a bank for each iteration, loaded once."""
    both = {k: np.concatenate([v, v]) for k, v in menu.items()}
    n = len(menu["pe"])
    both["resident"] = np.repeat([0, 1], n)
    both["bits"][n:] += (core.layers - 2) * menu["bank"]
    both["beats"][n:] = 0
    both["lanes"], both["skew"] = np.where(both["multipliers"], 0, both["pe"]), np.where(both["multipliers"], np.maximum(both["simd"], 4 * both["pe"]), 0)
    return both


def check_memories():
    """Of all sets of resident kernels within --budget-bits, the one with the least traffic; the foldings are given."""
    for name in t.drawn(LARGE, 3):
        core, rng, why = large(name), np.random.default_rng(len(name)), []
        picks = [rng.integers(len(m["pe"])) for m in core.menus]
        given = t.write("given.json", json.dumps({k.name: {"PE": int(m["pe"][i]), "SIMD": int(m["simd"][i])} for k, m, i in zip(core.kernels, core.menus, picks)}))
        plain, deep = core.fold("--folding", given), core.fifo_bits()
        kernels = sum(int(m["bits"][i]) for m, i in zip(core.menus, picks))
        fixed, feedback = kernels + deep, core.held(plain) - kernels
        if sum(f["bits"] for f in plain["fifo"]) > deep - feedback: why.append("FIFOs deeper than their paths: %s" % plain["fifo"])
        bank, beats = (np.array([m[key][i] for m, i in zip(core.menus, picks)]) for key in ("bank", "beats"))
        sets = (np.arange(1 << len(bank))[:, None] >> np.arange(len(bank))) & 1
        bits, traffic = fixed + sets @ bank * (core.layers - 2), (1 - sets) @ beats
        for budget in [fixed, *(int(b) for b in np.exp(rng.uniform(np.log(fixed), np.log(bits.max()), 4))), int(bits.max())]:
            said = core.fold("--folding", given, "--memory", "auto", "--budget-bits", budget)
            chosen = sum((k["memory"] == "resident") << i for i, k in enumerate(said["kernels"]))
            want, got = traffic[bits <= budget].min(), said["parameter_beats"]["per_iteration"]
            if (want, bits[chosen], traffic[chosen]) != (got, core.held(said) + deep - feedback, got) or said["on_chip_bits"] > budget: why.append("%d bits: %d beats, not %d; %s" % (budget, got, want, said["on_chip_bits"]))
        whole = core.fold("--folding", given, "--memory", "resident")
        if whole["parameter_beats"] != {"per_iteration": 0, "per_frame": 0, "once": int(beats.sum()) * core.layers} or core.held(whole) != bits[-1] - deep + feedback: why.append("all: %s" % whole["parameter_beats"])
        t.case("%s: the least traffic of %d sets of resident kernels, within bits" % (name, len(sets)), "; ".join(why))
    for core in small():
        both, rng, why = [resident(core, m) for m in core.menus], np.random.default_rng(core.layers), []
        if np.prod([float(len(m["pe"])) for m in both]) > 2e6: continue
        grid, fifo = np.indices([len(m["pe"]) for m in both]).reshape(len(both), -1), core.fifo_bits("--frames-in-flight", 2)
        sums = {k: sum(m[k][i] for m, i in zip(both, grid)) for k in ("multipliers", "beats", "bits", "lanes", "skew")}
        sums["pace"] = np.maximum.reduce([m["interval"][i] for m, i in zip(both, grid)])
        for bandwidth in "16", "1", "0.3":
            steady = core.steady(sums, 2, rate_of(bandwidth))
            bits, macs = int(np.quantile(sums["bits"], rng.uniform(0.02, 0.6))), int(np.quantile(sums["multipliers"], rng.uniform(0.3, 0.9)))
            within = np.flatnonzero((sums["bits"] <= bits) & (sums["multipliers"] <= macs))
            if not len(within): continue
            order = [sums["beats"], sums["skew"], sums["lanes"], sums["multipliers"], steady]
            best = within[np.lexsort([o[within] for o in order])[0]]
            said = core.fold("--memory", "auto", "--budget-bits", bits + fifo, "--budget-macs", macs, "--frames-in-flight", 2, "--bandwidth", bandwidth)
            at = [int(np.flatnonzero((m["pe"] == k["pe"]) & (m["simd"] == k["simd"]) & (m["resident"] == (k["memory"] == "resident")))[0]) for m, k in zip(both, said["kernels"])]
            mine = int(np.ravel_multi_index(at, [len(m["pe"]) for m in both]))
            if [o[mine] for o in order] != [o[best] for o in order] or sums["bits"][mine] > bits: why.append("%s: %s, not %s" % (bandwidth, [int(o[mine]) for o in order], [int(o[best]) for o in order]))
        t.case("%s: the best of %d foldings with both kinds of memories" % (core.name, grid.shape[1]), "; ".join(why))
    core = small()[4]
    one = core.fold("--folding", t.write("some.json", '{"mvu_0": {"memory": "resident"}, "add_0": {"PE": 2, "memory": "layer"}}'), "--memory", "resident")
    kinds = {k["name"]: k["memory"] for k in one["kernels"]}
    t.case("a folding says it kernel by kernel", "" if kinds.pop("add_0") == "layer" and set(kinds.values()) == {"resident"} else str(one["kernels"]))
    saved = t.at("saved.json")
    t.good("fold", core.path, "--memory", "auto", "--budget-bits", one["on_chip_bits"] + core.fifo_bits(), "--save-folding", saved, "-o", t.at("x.json"))
    back = core.fold("--folding", saved)
    t.case("a folding that was saved says it, too", "" if [k["memory"] for k in back["kernels"]] == [k["memory"] for k in json.loads(t.good("show", "--json", t.at("x.json")))["kernels"]] else str(back["kernels"]))


def check_blocks():
    """With tiles given, the best of all sets of resident kernels and of matrices in row blocks: bits and traffic of each kernel in each mode alone add up."""
    for name, tile, frames in t.drawn([(list(LARGE)[0], 16, 1), (list(LARGE)[1], 50, 2)], 2, lambda case: case[0]):
        core, rng = large(name), np.random.default_rng(tile)
        given = {k.name: {"PE": int(m["pe"][i]), "SIMD": int(m["simd"][i])} for k, m in zip(core.kernels, core.menus) for i in [rng.integers(len(m["pe"]))]}
        flags = "--tile", tile, "--frames-in-flight", frames
        fold = lambda modes, *more: core.fold("--folding", t.write("given.json", json.dumps({k: dict(v, **({"memory": modes[k]} if k in modes else {})) for k, v in given.items()})), *flags, *more)
        parts = lambda said: (core.held(said), said["parameter_beats"]["per_iteration"])
        base, beats = parts(fold({}))
        feedback = base - sum(int(m["bits"][(m["pe"] == given[k.name]["PE"]) & (m["simd"] == given[k.name].get("SIMD", 1))][0]) for k, m in zip(core.kernels, core.menus))
        kinds, deep = {k["name"]: k["memory"] for k in fold({}, "--memory", "block")["kernels"]}, core.fifo_bits("--folding", t.at("given.json"), "--memory", "auto", *flags) - feedback
        bits, traffic = np.array([base + deep]), np.array([beats])
        for k in given:
            modes = [parts(fold({k: m})) for m in ["resident"] + ["block"] * (kinds[k] == "block")]
            bits = np.concatenate([bits] + [bits + b - base for b, _ in modes])
            traffic = np.concatenate([traffic] + [traffic + x - beats for _, x in modes])
        why = []
        for budget in [int(bits.min()), *(int(b) for b in np.exp(rng.uniform(np.log(bits.min()), np.log(bits.max()), 4))), int(bits.max())]:
            said = fold({}, "--memory", "auto", "--budget-bits", budget)
            want = traffic[bits <= budget].min()
            if said["parameter_beats"]["per_iteration"] != want or said["on_chip_bits"] > budget: why.append("%d bits: %d beats, not %d; %d bits" % (budget, said["parameter_beats"]["per_iteration"], want, said["on_chip_bits"]))
        t.case("%s: the least traffic of %d sets of memories, row blocks among them" % (name, len(bits)), "; ".join(why))


def check_tiles():
    """--tile auto: as fast as the best of sizes of tiles, one by one; within bits of the budget; a target with the fewest multipliers."""
    for name in t.drawn(["minilm", "deit-tiny"], 2):
        core = large(name)
        sizes = [ceil(core.tokens, n) for n in (1, 2, 3, 4, 5, 7, 10, 16, 30)]            # as even as can be
        whole = core.fold("--memory", "block", "--budget-macs", 300)
        bits, cycles = whole["on_chip_bits"], whole["predicted_cycles"]
        for what, flags, key in t.drawn((("caps", ("--memory", "block", "--pe", 8, "--simd", 8, "--bandwidth", 2), "predicted_cycles"),
                                 ("bits", ("--memory", "block", "--budget-macs", 300, "--budget-bits", bits * 3 // 4, "--bandwidth", 4), "predicted_cycles"),
                                 ("auto", ("--memory", "auto", "--budget-macs", 300, "--budget-bits", bits // 2, "--bandwidth", 4, "--frames-in-flight", 2), "predicted_interval"),
                                 ("target", ("--memory", "block", "--target-cycles", 2 * cycles, "--bandwidth", 8), "multipliers")), 4, lambda case: case[0]):
            each = {}
            for size in sizes:
                if t.call("fold", core.path, *flags, "--tile", size, "-o", t.at("tile.json")).returncode == 0: each[size] = json.loads(t.good("show", "--json", t.at("tile.json")))[key]
            if not each:
                t.case("%s, tiles of any size, %s: none fits" % (name, what), "" if "too small" in core.refusal(*flags, "--tile", "auto") or "cannot be reached" in core.refusal(*flags, "--tile", "auto") else "some does")
                continue
            said = core.fold(*flags, "--tile", "auto")
            tiles = {k.get("tile") for k in said["kernels"] if k.get("memory") == "block"}
            wrong = said[key] > min(each.values()) or (what in ("bits", "auto") and said["on_chip_bits"] > flags[flags.index("--budget-bits") + 1]) or len(tiles) > 1
            t.case("%s, tiles of any size, %s: %s %d, of %d sizes %d to %d" % (name, what, key, said[key], len(each), min(each.values()), max(each.values())), "tiles of %s; %s" % (tiles, each) if wrong else "")
    text = core.fold("--memory", "layer", "--tile", 4)["kernels"]
    p = t.call("fold", core.path, "--tile", 4, text=True)
    t.case("a tile that no kernel has is said", "" if p.returncode == 0 and "warning" in p.stderr and "--tile" in p.stderr and not any(k.get("memory") == "block" for k in text) else p.stderr or "it says nothing")
    p = t.call("fold", core.path, "--memory", "block", "--tile", "auto", "--pareto", text=True)
    t.case("a front is of one size of tiles", "" if p.returncode == 2 and "--pareto" in p.stderr else p.stderr or "it says nothing")


if __name__ == "__main__": t.main(check_brute_force, check_front, check_frames, check_random, check_targets, check_refusals, check_around, check_memories, check_blocks, check_tiles,
                                  floor=68)
