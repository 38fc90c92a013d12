# SPDX-License-Identifier: MIT
"""attention_table: mlo_attention_table against the formulas of its header, in Python's integers: words, order, sidebands, the cycle of the last beat.

Tables are drawn: rising ones for scores, any for weights. Keys are hidden by their bits, by their place, or not at all. PAST: keys are in front of a frame's own."""
import bench

NAME = "attention_table"


def clog2(n):
    return max(0, (n - 1).bit_length())


def clipped(x, bits): return max(-(1 << bits - 1), min((1 << bits - 1) - 1, x))


def config(h, d, t, pe, simd, xbits=8, ybits=8, ebits=13, least=None, hide=0, kvh=None, axi=128, step=2, past=0):
    return dict(H=h, KVH=kvh or h, PAST=past, D=d, T=t, PE=pe, SIMD=simd, XBITS=xbits, YBITS=ybits, EBITS=ebits, LEAST=least or ebits, HIDE=hide, AXI_WIDTH=axi, STEP=step)


# ---- the model ----------------------------------------------------------------------------
class Layer:
    """The constants and tables of an iteration."""

    def __init__(self, c, rng, wild):
        spread = 2 * c["XBITS"] - 3 + clog2(c["D"]) // 2            # bits of a usual score
        self.n = rng.between(1, 255) if wild else (255, 127, 15)[rng.below(3)]
        self.mr, self.sr = (rng.bits(18), rng.between(1, 62)) if wild else (rng.between(1 << 14, (1 << 15) - 1), max(1, spread + 15 - 8 + rng.between(-1, 2)))
        self.mp, self.sp, self.hp = (rng.bits(16), rng.between(1, 62), rng.bits(8)) if wild else (rng.between(20000, 65535), 16, (127, 255)[rng.below(2)])
        self.mo, self.so = (rng.bits(15), rng.between(1, 62)) if wild else (rng.between(1 << 14, (1 << 15) - 1), max(1, 15 + 7 + c["XBITS"] - c["YBITS"] - rng.below(3)))
        rows = 2 if c["HIDE"] else 1
        steps = [[rng.below(3) if wild else rng.below(2) for _ in range(256)] for _ in range(rows)]
        self.score = [[clipped(start + sum(row[:i]), 8) for i in range(256)] for row, start in zip(steps, (rng.between(-128, 0), rng.between(-128, 20)))]
        e0 = rng.between(1 << c["LEAST"] - 1, (1 << c["EBITS"]) - 1)
        self.weight = [e0] + [rng.below(e0 + 1) * (255 - i) // 255 if not wild else rng.bits(c["EBITS"]) for i in range(1, 256)]

    def beats(self, c):
        word = self.n | self.mo << 32 | self.so << 48 | self.mp << 64 | self.sp << 80 | self.hp << 88 | self.mr << 96 | self.sr << 114
        axi = c["AXI_WIDTH"]
        return (bench.param_beats([word], 128, axi), bench.param_beats([x & 255 for row in self.score for x in row], 8, axi),
                bench.param_beats(self.weight, c["EBITS"], axi))


def row(c, layer, q, keys, values, hidden):
    r = []
    for k, h in zip(keys, hidden):
        s = sum(a * b for a, b in zip(q, k))
        r.append(layer.score[h if c["HIDE"] else 0][clipped(s * layer.mr + (1 << layer.sr - 1) >> layer.sr, 8) + 128])
    e = [layer.weight[max(r) - x] for x in r]
    w = [min((x * layer.n // sum(e) * layer.mp + (1 << layer.sp - 1)) >> layer.sp, layer.hp) for x in e]
    return [clipped(sum(a * v[d] for a, v in zip(w, values)) * layer.mo + (1 << layer.so - 1) >> layer.so, c["YBITS"]) for d in range(len(q))]


# ---- stimulus --------------------------------------------------------------------------------
def draw(rng, c, n, heads, extreme):
    low = -(1 << c["XBITS"] - 1)
    if extreme: return [[low if rng.chance(70) else -low - 1 for _ in range(heads * c["D"])] for _ in range(n)]
    return [rng.signed(heads * c["D"], c["XBITS"]) for _ in range(n)]


def stimulus(c, frames, seed, extreme=False, wild=False):
    """frames: (Tq, Tk, first); PAST: keys are the past's and then the queries' own"""
    rng, d, simd, xb, yb = bench.Rng(seed), c["D"], c["SIMD"], c["XBITS"], c["YBITS"]
    streams, words = {"q": [], "k": [], "v": [], "c": [], "s": [], "e": [], "golden": []}, []
    for tq, tk, first in frames:
        start = tk - tq if c["PAST"] else 0
        words.append(start << 16 | rng.bits(16))
        if first:
            layer = Layer(c, rng, wild)
            for name, beats in zip("cse", layer.beats(c)): streams[name] += beats
        data = {"q": draw(rng, c, tq, c["H"], extreme), "k": draw(rng, c, tk, c["KVH"], extreme), "v": draw(rng, c, tk, c["KVH"], extreme)}
        some = rng.below(4)                     # of the keys are shown: all, none, and between
        bits = [some == 0 or (some < 3 and rng.chance(60)) for _ in range(tk)]
        for name, tokens in data.items():
            for j, x in enumerate(tokens):
                user = int(first and j == 0) | int(j == len(tokens) - 1) << 1 | int(bits[j] if name == "k" else rng.bits(1)) << 2
                streams[name] += [user << simd * xb | b for b in bench.beats(x, simd, xb)]
                if name != "q": continue
                hidden = [not bits[i] or (c["HIDE"] == 2 and i > start + j) for i in range(tk)]
                y = []
                for h in range(c["H"]):
                    own, kv = slice(h * d, (h + 1) * d), slice(h // (c["H"] // c["KVH"]) * d, (h // (c["H"] // c["KVH"]) + 1) * d)
                    y += row(c, layer, x[own], [k[kv] for k in data["k"]], [v[kv] for v in data["v"]], hidden)
                streams["golden"] += [user << simd * yb | b for b in bench.beats(y, simd, yb)]
    wide = lambda name: c["AXI_WIDTH"] if name in "cse" else simd * (yb if name == "golden" else xb) + 3
    files = {name + ".hex": bench.hexwords(beats, wide(name)) for name, beats in streams.items()}
    if c["PAST"]: files["j.hex"] = bench.hexwords(words, 32)
    args = {"nm" if name == "golden" else "n" + name: len(beats) for name, beats in streams.items() if name != "v"}
    args["nj"] = len(words) if c["PAST"] else 0
    return files, dict(args, kbeats=frames[0][1] * c["KVH"] * d // simd, start=loaded(c))


def loaded(c):
    """when q, k and v begin: two banks of all tables are there"""
    return 40 + 2 * 512 * 32 // c["AXI_WIDTH"]


# ---- the header's formulas ---------------------------------------------------------------------
def places(c): return 2 * c["EBITS"] + clog2(c["T"])
def division(c): return -(-(places(c) + 9 - c["LEAST"]) // c["STEP"])


def schedule(c, frames):
    """When does the last beat leave if nothing stalls? (The stages are those of mlo_attention: attention.py says more.)"""
    H, PE, simd, T = c["H"], c["PE"], c["SIMD"], c["T"]
    ds, cy = c["D"] // simd, division(c)
    es = -(-PE // -(-PE // ds))
    most = -(-T // PE)
    score_queue, later = most + (12 + clog2(simd)) // ds + 2, 18
    ring = min(4 * most + 2, 2 * most + 2 * ((cy + ds) // ds) + (14 + later) // ds + 2)
    before = loaded(c)
    k_free, v_free, load_k, load_v = [before + 1] * 2, [before + 1] * 2, before, before
    q, score = [before], [before]
    taken, row_taken, freed, accept = [], [], [], []
    step = softmax_free = finish = mix = before
    for n, (tq, tk, first) in enumerate(frames):
        load_k = max(load_k + 1, k_free[n % 2]) + tk * c["KVH"] * ds - 1
        load_v = max(load_v + 1, v_free[n % 2]) + tk * c["KVH"] * ds - 1
        for r in range(tq * H):
            groups = -(-tk // PE)
            q.append(max(q[-1], score[-2] if len(score) > 2 else before) + ds)
            ready = max(q[-1], load_k)
            constants = max(q[-1], score[-1]) + 3 if first and r == 0 else 0
            for g in range(groups):
                step = max(step, ready) + 1
                if len(taken) + g >= score_queue:
                    i = len(taken) + g - score_queue
                    step = max(step, (taken[i] if i < len(taken) else 1 << 60) + 1)
                step += ds - 1
            step = max(step, constants, row_taken[-4] + 1 if len(row_taken) >= 4 else 0)
            score.append(step)
            top = step + 8 + clog2(simd)
            if first and r == 0: top = max(top, softmax_free + 11 if row_taken else 0) + 1        # tables move
            for g in range(groups):
                t = max(top, softmax_free)
                if len(taken) >= ring: t = max(t, freed[len(taken) - ring] + 1)
                if len(accept) >= 8: t = max(t, accept[-8] + 1)
                taken.append(t)
                softmax_free = t + es
            row_taken.append(t)
            accept.append(max(t + 16 + es, finish + 1))
            finish = max(accept[-1] + cy, mix)
            mix = max(finish, mix, load_v) + groups * ds
            freed += [mix] * groups
        k_free[n % 2] = score[-1] + 1
        v_free[n % 2] = mix + 1
    return mix + 22 + clog2(PE)


GRID = [
    config(2, 4, 4, 2, 2),
    config(1, 1, 1, 1, 1, ebits=2, least=1),                        # everything 1
    config(1, 6, 7, 3, 3, ebits=18, least=3, hide=1),               # weights of 18 bits
    config(5, 12, 7, 3, 4, step=1, hide=2, axi=64),                 # the odd one: partial groups, D = 12, H = 5
    config(2, 32, 12, 4, 8, axi=64, hide=2),
    config(1, 4, 9, 9, 4, ybits=16, axi=32, step=3, hide=1),        # all keys in one group
    config(2, 6, 5, 5, 2, 4, 4, ebits=9),                           # 4 bits; 2 lanes for 5 keys
    config(2, 2, 33, 1, 1, 16, 16, axi=256, step=4, hide=2),        # 16 bits, long rows, one key at a time
    config(1, 8, 32, 8, 8, hide=2),                                 # one step per group
    config(1, 24, 3, 3, 1),                                         # one group, many steps
    config(4, 4, 12, 5, 1, hide=2, kvh=2),                          # 2 lanes for 5 keys, 4 steps
    config(6, 2, 5, 2, 1, kvh=3, hide=1, ebits=14, least=11),
    config(16, 4, 8, 4, 2, hide=2),                                 # microLlama's
    config(2, 4, 9, 2, 2, hide=2, past=1),                          # a past in front
    config(3, 2, 16, 8, 1, hide=2, past=1, axi=64),
    config(2, 3, 5, 1, 3, past=1),                                  # nothing is hidden
    config(4, 4, 6, 4, 4, hide=1, kvh=2, past=1),
]


def main():
    for n, c in bench.cases.drawn(list(enumerate(GRID)), 2, lambda row: "%d" % row[0]):
        rng = bench.Rng(300 + n)
        for seed in (1, 2, 3):
            keys = [rng.between(1, c["T"]) for _ in range(5)]
            frames = [(rng.between(1, tk), tk, i in (0, 2)) for i, tk in enumerate(keys)]         # (a third bank would be late)
            if seed == 1: frames = [(c["T"], c["T"], i == 0) for i in range(3)]
            files, args = stimulus(c, frames, 1000 * n + seed)
            r = bench.run(NAME, c, files, seed=seed, stall=0, **args)
            last, want = int(r.read("cycles.txt").split()[-1]), schedule(c, frames)
            bench.check(NAME, last == want, "%s %s: last beat in cycle %d, the schedule says %d" % (c, frames, last, want))
            busy = sum(tq * c["H"] * -(-tk // c["PE"]) * c["D"] // c["SIMD"] for tq, tk, _ in frames)
            bench.check(NAME, r["busy"] == busy, "%s %s: busy in %d cycles, its rows' groups take %d" % (c, frames, r["busy"], busy))
        for seed, stall, kw in ((4, 25, {}), (5, 70, {}), (6, 40, {"extreme": True}), (7, 10, {"wild": True}), (8, 30, {"wild": True, "extreme": True})):
            frames = [(rng.between(1, tk), tk, i == 0 or rng.chance(60)) for i, tk in enumerate(rng.between(1, c["T"]) for _ in range(5))]
            files, args = stimulus(c, frames, 1000 * n + seed, **kw)
            bench.run(NAME, c, files, seed=1000 * n + seed, stall=stall, **args)
        bench.ok(NAME, "%s: 3 runs on the schedule, 5 with stalls" % " ".join("%s=%d" % x for x in c.items()))


if __name__ == "__main__":
    main()
    bench.end(floor=8, simulations=64)
