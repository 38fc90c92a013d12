# SPDX-License-Identifier: MIT
"""attention: mlo_attention against a numpy model: words, order, sidebands, throughput and latency formulas of its header.

With a cache, what must come of a job is rows of the whole sequence's attention, however it is cut into jobs."""
import numpy as np

import bench

NAME = "attention"


def clog2(n):
    return max(0, (n - 1).bit_length())


# ---- the model: written from the definition, shares nothing with the Verilog -------------
ROM = [int(np.floor(65280 * 2.0 ** (-f / 64) + 0.5)) for f in range(64)]
FINE = [int(np.floor(262143 * 2.0 ** (-f / 64) + 0.5)) for f in range(65)]
TANH = [int(np.floor(65535 * np.tanh(f / 32) + 0.5)) for f in range(257)]


def share(x, n, d, lo, hi):
    """x * n / 2^d, halves up, within lo .. hi (Python's integers: of any size)"""
    return min(hi, max(lo, (int(x) * n + (1 << (d - 1))) >> d))


def fine(x):
    i, f, g = x >> 12, x >> 6 & 63, x & 63
    a = FINE[f] - ((FINE[f] - FINE[f + 1]) * g + 32 >> 6)
    return 2 * a + 2 ** i >> i + 1


def capped(x, mc, sc):
    """a score under its soft cap: 65535 tanh(s / c), between two points on a straight line"""
    u = share(x, mc, sc, -65535, 65535)
    f, g = abs(u) >> 8, abs(u) & 255
    y = TANH[f] + ((TANH[f + 1] - TANH[f]) * g + 128 >> 8) if g else TANH[f]
    return y if u >= 0 else -y


def rounded_row(s, v, counts, par, lt, ybits, rounds):
    """as row, of scores s, with probabilities (and scores) rounded as a source does"""
    ms, ss, mo, so, mp, sp, hp, mr, sr, zr = par
    if rounds:
        s = np.array([min(127, max(-128, share(x, mr, sr, -1 << 80, 1 << 80) + zr)) for x in s.tolist()])
    diff = np.where(counts, s[counts].max() - s, 0).tolist()
    e = [fine(share(x, ms, ss, 0, 2 ** 17 - 1)) * int(c) for x, c in zip(diff, counts)]
    r = (mp << (lt + 18)) // sum(e)
    w = [share(x, r, sp, 0, hp) for x in e]
    return [share(a, mo, so, -1 << (ybits - 1), (1 << (ybits - 1)) - 1) for a in np.array(w) @ v]


def ends(i, tk, reach, c):
    """the first and the last key of tk that may count for query i; reach: BACK, AHEAD"""
    back, ahead = reach if c["BAND"] else (i, tk)
    return max(0, i - back), min(tk - 1, i if c["CAUSAL"] else i + ahead)


def seen(i, key, reach, c):
    """which keys count for query i, as far as positions say"""
    first, last = ends(i, len(key), reach, c)
    at = np.arange(len(key))
    return key & (at >= first) & (at <= last)


HIDDEN = -1 << 15                                               # of a bias: the key does not count


def row(q, k, v, key, par, c, bias=None):
    """q [D], k and v [Tk, D], key [Tk] bool, bias [Tk] or None -> y [D]"""
    ms, ss, mo, so = par[:4]
    if bias is not None: key = key & (bias != HIDDEN)
    if (c["CAUSAL"] or c["BAND"] or bias is not None) and not key.any():
        return [0] * len(q)
    lt, ybits = clog2(c["T"]), c["YBITS"]
    if key.any():
        s = k @ q if bias is None else k @ q + (bias << c["SHIFT"])
        counts = key
    else:
        s = np.zeros(len(k), dtype=np.int64)
        counts = np.ones(len(k), dtype=bool)
    if c["CAP"]: s = np.array([capped(x, *par[4:]) for x in s.tolist()])
    if c["PROB"]:
        return rounded_row(s, v, counts, par, lt, ybits, c["ROUND"])
    diff = np.where(counts, s[counts].max() - s, 0)
    t = np.array([min(4095, (int(x) * ms + (1 << (ss - 1))) >> ss) for x in diff])
    # (Python's integers: 8 + i goes to 71)
    e = np.array([(ROM[x & 63] + (1 << (15 - c["EBITS"] + (x >> 6)))) >> (16 - c["EBITS"] + (x >> 6)) for x in t.tolist()]) * counts
    r = (mo << (lt + c["EBITS"])) // int(e.sum())
    lo, hi = -(1 << (ybits - 1)), (1 << (ybits - 1)) - 1
    return [min(hi, max(lo, (int(a) * r + (1 << (so - 1))) >> so)) for a in e @ v]


# ---- stimulus ------------------------------------------------------------------------------
def pick_rounding(rng, c, spread, wild):
    """MP, SP, HP, MR, SR, ZR; the scores' steps are 1/64 octave or so"""
    if wild:
        return rng.bits(15), rng.between(1, 62), rng.bits(8), rng.bits(18), rng.between(1, 62), rng.between(-128, 127)
    hp, lt = (127, 255, 15)[rng.below(3)], clog2(c["T"])
    return rng.between(1 << 14, (1 << 15) - 1), 15 + lt + 18 - hp.bit_length(), hp, rng.between(1 << 17, (1 << 18) - 1), max(1, spread + 18 - 8), rng.between(-60, 60)


def pick_params(rng, c, n, wild):
    """constants that spread t and y over their ranges, or now and then (wild) any legal ones"""
    spread = 2 * c["XBITS"] - 3 + clog2(c["D"]) // 2        # bits of a usual difference of scores
    if c["CAP"]:
        return pick_capped(rng, c, spread, wild)
    if not c["PROB"]:
        return pick_plain(rng, c, spread, wild)
    more = pick_rounding(rng, c, spread, wild)
    ms, ss, mo, so = pick_plain(rng, c, 8 if c["ROUND"] else spread, wild)
    if not wild:
        ss, so = max(1, ss - 6), max(1, min(62, 15 + 7 + c["XBITS"] - c["YBITS"] - rng.below(3)))
    return (ms, ss, mo, so) + more


def pick_capped(rng, c, spread, wild):
    """MS, SS, MO, SO, MC, SC: a usual score is a tenth of the cap to ten times it, and the cap 2 to 50 octaves or so"""
    mc, sc = (rng.bits(15), rng.between(1, 62)) if wild else (rng.between(1 << 14, (1 << 15) - 1), max(1, min(62, spread + 15 - 13 - rng.between(-3, 3))))
    return pick_plain(rng, c, 16 - rng.between(0, 3), wild) + (mc, sc)


def pick_reach(rng, c):
    """BACK, AHEAD of an iteration: near, far, all"""
    return tuple((0, rng.below(c["T"]), rng.below(c["T"]), min(2, c["T"] - 1), c["T"] - 1)[rng.below(5)] for _ in range(2))


def pick_bias(rng, c, extreme):
    """[BIASH, BIAST, T]: as large as scores are, a tenth of it hidden; one row in eight is hidden all but for some"""
    bits = max(2, min(16, 2 * c["XBITS"] + clog2(c["D"]) // 2 - 1 - c["SHIFT"]))
    def one(hidden):
        if rng.chance(hidden): return HIDDEN
        return (HIDDEN + 1, -HIDDEN - 1)[rng.below(2)] if extreme else max(HIDDEN + 1, rng.signed(1, bits)[0])
    rows = [[one(hidden) for _ in range(c["T"])] for hidden in (90 if rng.chance(12) else 10 for _ in range(c["BIASH"] * c["BIAST"]))]
    return np.array(rows, dtype=np.int64).reshape(c["BIASH"], c["BIAST"], c["T"])


def bias_of(bias, head, i, tk):
    """what a row adds to the scores of tk keys"""
    return None if bias is None else bias[head % len(bias), i % bias.shape[1], :tk]


def words_of(par, reach, bias, c):
    """the words of an iteration and the bits of each"""
    word, bits = param_word(par, reach, c)
    if bias is None: return [word], bits
    wide = 16 * c["PE"]
    groups = -(-c["T"] // c["PE"])
    rows = np.zeros((bias.shape[0] * bias.shape[1], groups * c["PE"]), dtype=np.int64)
    # a token's heads one behind the other
    rows[:, :c["T"]] = bias.transpose(1, 0, 2).reshape(-1, c["T"])
    words = [sum((int(x) & 0xffff) << 16 * n for n, x in enumerate(w)) for w in rows.reshape(-1, c["PE"])]
    return words + [word >> at & (1 << wide) - 1 for at in range(0, bits, wide)], wide


def param_word(par, reach, c):
    """the word of an iteration and its bits"""
    bits = 128 if c["PROB"] or c["CAP"] else 64
    word = sum((x & mask) << at for x, at, mask in zip(par, (0, 16, 32, 48, 64, 80, 88, 96, 114, 120), [2 ** 20 - 1] * 9 + [255]))
    if not c["BAND"]:
        return word, bits
    back, ahead = reach[0], 0 if c["CAUSAL"] else reach[1]
    return word | (back | ahead // c["PE"] << 24 | ahead % c["PE"] << 48) << bits, 2 * bits


def pick_plain(rng, c, spread, wild):
    """MS, SS, MO, SO"""
    if wild:
        return rng.bits(16 - c["PROB"]), rng.between(1, 62), rng.bits(16 - c["PROB"]), rng.between(1, 62)
    lt = clog2(c["T"])
    ms = rng.between(1 << 14, (1 << 15) - 1)
    ss = max(1, min(62, spread + 15 - rng.between(7, 10)))
    mo = rng.between(1 << 14, (1 << 15) - 1)
    so = max(1, min(62, lt + c["EBITS"] + 15 - (c["YBITS"] - c["XBITS"]) - rng.between(0, 2)))
    return ms, ss, mo, so


def draw(rng, c, n, heads, extreme):
    """[n, heads * D] of XBITS: any, or (extreme) the corners of every width"""
    low = -(1 << (c["XBITS"] - 1))
    if extreme:
        return np.array([[low if rng.chance(70) else -low - 1 for _ in range(heads * c["D"])] for _ in range(n)], dtype=np.int64)
    return np.array(rng.signed(n * heads * c["D"], c["XBITS"]), dtype=np.int64).reshape(n, heads * c["D"])


def pick_tokens(rng, c, tq, tk, keys, extreme):
    """q [tq, H * D], k and v [tk, KVH * D], key [tk]: which keys are valid"""
    q, k, v = draw(rng, c, tq, c["H"], extreme), draw(rng, c, tk, c["KVH"], extreme), draw(rng, c, tk, c["KVH"], extreme)
    mode = keys if keys != "mixed" else ("all", "some", "none", "one")[rng.below(4)]
    key = np.array([mode == "all" or (mode == "some" and rng.chance(60)) for _ in range(tk)])
    if mode == "one":
        key[rng.below(tk)] = True
    return q, k, v, key


def pick_iteration(rng, c, n, extreme, wild):
    """constants, BACK and AHEAD, bias"""
    return (pick_params(rng, c, n, wild), pick_reach(rng, c) if c["BAND"] else (0, 0), pick_bias(rng, c, extreme) if c["BIAS"] else None)


def token(c, j, tokens, iteration):
    """y [H * D] of query j"""
    q, k, v, key = tokens
    par, reach, bias = iteration
    y = []
    for h in range(c["H"]):
        kv = h // (c["H"] // c["KVH"]) * c["D"]
        kv = slice(kv, kv + c["D"])
        y += row(q[j, h * c["D"]:(h + 1) * c["D"]], k[:, kv], v[:, kv], seen(j, key, reach, c), par, c, bias_of(bias, h, j, len(key)))
    return y


class Streams:
    """what goes in and must come out, beat by beat"""
    def __init__(self, c, rng):
        self.c, self.rng = c, rng
        self.q, self.k, self.v, self.params, self.m = [], [], [], [], []

    def constants(self, iteration):
        self.params += bench.param_beats(*words_of(*iteration, self.c), self.c["AXI_WIDTH"])

    def frame(self, q, k, v, key, y, first):
        """y: a row for each of q"""
        simd, xb, yb = self.c["SIMD"], self.c["XBITS"], self.c["YBITS"]
        for stream, data in ((self.q, q), (self.k, k), (self.v, v)):
            for j in range(len(data)):
                # q and v carry a key bit too: attention must not look at it, and q's goes through
                bit = key[j] if stream is self.k else self.rng.bits(1)
                user = int(first and j == 0) | int(j == len(data) - 1) << 1 | int(bit) << 2
                stream += [user << simd * xb | b for b in bench.beats(data[j], simd, xb)]
                if stream is self.q:
                    self.m += [user << simd * yb | b for b in bench.beats(y[j], simd, yb)]

    def ends(self):
        """beats of m, of k (and v), of q so far"""
        return len(self.m), len(self.k), len(self.q)

    def files(self):
        x, y = self.c["SIMD"] * self.c["XBITS"] + 3, self.c["SIMD"] * self.c["YBITS"] + 3
        return {"q.hex": bench.hexwords(self.q, x), "k.hex": bench.hexwords(self.k, x), "v.hex": bench.hexwords(self.v, x),
                "c.hex": bench.hexwords(self.params, self.c["AXI_WIDTH"]), "golden.hex": bench.hexwords(self.m, y)}

    def args(self, first_keys):
        """first_keys: of the first frame"""
        return {"nq": len(self.q), "nk": len(self.k), "nc": len(self.params), "nm": len(self.m),
                "kbeats": first_keys * self.c["KVH"] * self.c["D"] // self.c["SIMD"], "start": start_of(self.c)}


def stimulus(c, frames, seed, keys="some", extreme=False, wild=False):
    """frames: list of (Tq, Tk, first). Returns files, golden beats and counts, and of each frame BACK and AHEAD."""
    rng = bench.Rng(seed)
    streams, reaches, iteration = Streams(c, rng), [], None
    for n, (tq, tk, first) in enumerate(frames):
        if first:
            iteration = pick_iteration(rng, c, n, extreme, wild)
            streams.constants(iteration)
        reaches.append(iteration[1])
        tokens = pick_tokens(rng, c, tq, tk, keys, extreme)
        streams.frame(*tokens, [token(c, j, tokens, iteration) for j in range(tq)], first)
    return streams.files(), streams.args(frames[0][1]), reaches


# ---- jobs: pieces of sequences whose keys and values stay ---------------------------------------
def begins_iteration(c, depth, job):
    """has each frame of that job `first`? A bias is large: where all frames have the same it comes once"""
    return depth > 1 or not c["BIAS"] or job == 0


def groups_of(rng, jobs, most):
    """the same jobs, one after the other, in groups of up to so many, of a slot each"""
    groups = [[]]
    for job in jobs:
        if len(groups[-1]) == most or job[0] in [j[0] for j in groups[-1]] or (groups[-1] and rng.chance(20)): groups.append([])
        groups[-1].append(job)
    return groups


def jobs_stimulus(c, depth, jobs, seed, most=1, keys="some", extreme=False, wild=False):
    """jobs: (slot, start, tokens, kept) of depth iterations each, which groups of up to `most` go through together. The kept ones are pieces of one sequence for each slot and
    iteration, and what must come is rows of that whole sequence's attention. The others are of tokens of their own behind the
    sequence's first `start`: a job that goes back behind them must not see them. Returns files, counts, and BACK, AHEAD of each iteration."""
    rng = bench.Rng(seed)
    streams, lines, words = Streams(c, rng), [], []
    iterations = [pick_iteration(rng, c, n, extreme, wild) for n in range(depth)]
    fresh = lambda: pick_tokens(rng, c, c["T"], c["T"], keys, extreme)
    whole = {(slot, n): fresh() for slot in sorted({j[0] for j in jobs}) for n in range(depth)}
    for number, group in enumerate(groups_of(rng, jobs, most)):
        first = begins_iteration(c, depth, number)
        for n, iteration in enumerate(iterations):
            if first: streams.constants(iteration)
            for at, (slot, start, tokens, kept) in enumerate(group):
                sequence = whole[slot, n]
                if not kept:
                    sequence = tuple(np.concatenate((old[:start], new[start:])) for old, new in zip(sequence, fresh()))
                piece = [x[start:start + tokens] for x in sequence]
                streams.frame(*piece, [token(c, j, sequence, iteration) for j in range(start, start + tokens)], first and not at)
                words.append(start << 16 | slot * depth + n)
        m, k, q = streams.ends()
        lines.append(m << 64 | k << 32 | q)
    files = dict(streams.files(), **{"jobs.hex": bench.hexwords(lines, 96), "words.hex": bench.hexwords(words, 32)})
    return files, dict(streams.args(jobs[0][2]), jobs=len(lines), words=len(words)), [i[1] for i in iterations]


def start_of(c):
    """when attention_tb begins with q, k and v: two banks of a bias are there by then"""
    return 16 + (2 * len(bench.param_beats([0] * (-(-c["T"] // c["PE"]) * c["BIASH"] * c["BIAST"] + 4), 16 * c["PE"], c["AXI_WIDTH"])) if c["BIAS"] else 0)


def begins(c, i):
    """does frame i of those that nothing stalls begin an iteration? A third bank of a bias would be late"""
    return i < 2 if c["BIAS"] else i % 2 == 0


# ---- the header's formulas -------------------------------------------------------------------
def row_time(c, tk):
    ds, cy = c["D"] // c["SIMD"], -(-(17 + clog2(c["T"])) // c["STEP"])
    return max(-(-tk // c["PE"]) * ds, cy + 1)


def later(c):
    """cycles that rounding takes: of exponentials, of the mix"""
    return 2 * c["PROB"] + 7 * c["ROUND"] + 10 * c["CAP"], 7 * c["PROB"]


def constants_time(c):
    """cycles from an iteration's first row to its constants"""
    return 3 + (-(-64 // (16 * c["PE"])) if c["BIAS"] else 0)


def latency(c, tk, ahead=None):
    """ahead: cycles by which the first row is there before its last key"""
    ds, cy = c["D"] // c["SIMD"], -(-(17 + clog2(c["T"])) // c["STEP"])
    es = -(-c["PE"] // -(-c["PE"] // ds))
    groups = -(-tk // c["PE"])
    head_start = tk * c["KVH"] * ds - ds if ahead is None else ahead        # (in this bench they begin together)
    # the first row of an iteration waits for its constants: to end, with a bias to begin
    fetch = max(0, constants_time(c) - (1 if c["BIAS"] else groups * ds) - head_start)
    return groups * (ds + es + 1) + fetch + cy + 28 + sum(later(c)) + clog2(c["SIMD"]) + clog2(c["PE"])


def walked(i, tk, reach, c):
    """groups that a row of query i walks"""
    first, last = ends(i, tk, reach, c)
    return last // c["PE"] - first // c["PE"] + 1


class Load:
    """When the frames of K (or V) are in: a beat a cycle, from when there is room."""
    def __init__(self, before): self.last = before

    def frame(self, room, beats, first):
        self.last = max(self.last + 1, room) + beats - 1
        return self.last


def schedule(c, frames, reaches, opens=None, at=0, load=Load):
    """When does the last beat leave if nothing stalls, frames of any lengths? Every stage starts a unit of work when its input
    is there, when it is done with the unit before, and when the queue behind it has room. All numbers are cycles.
    opens: when the bench begins, nothing being under way; at: the position of the frames' first token; load: how K and V come in."""
    D, H, PE, simd, T = c["D"], c["H"], c["PE"], c["SIMD"], c["T"]
    ds, cy = D // simd, -(-(17 + clog2(T)) // c["STEP"])
    es = -(-PE // -(-PE // ds))
    most = -(-T // PE)                                          # groups of the longest frame
    score_queue = most + (12 + clog2(simd)) // ds + 2           # groups
    ring = min(4 * most + 2, 2 * most + 2 * ((cy + ds) // ds) + (14 + sum(later(c))) // ds + 2)
    waiting = 8 if c["PROB"] or c["CAP"] else 4                             # rows between exponentials and division
    start = (start_of(c) if opens is None else opens) + 1
    before = start - 1
    k_free, v_free, k, v = [start] * 2, [start] * 2, load(before), load(before)
    q, score = [before], [before]                               # per row: query is in, last step of its scores
    taken, row_taken, freed = [], [], []                        # per group: softmax took it; per row; per group: ring is free
    step = softmax_free = before
    accept, finish, mix = [], before, before                    # division begins, ends; last step of mix
    for n, (tq, tk, first) in enumerate(frames):
        load_k, load_v = (x.frame(free[n % 2], tk * c["KVH"] * ds, first) for x, free in ((k, k_free), (v, v_free)))
        for r in range(tq * H):
            groups = walked(at + r // H, at + tk, reaches[n], c)
            q.append(max(q[-1], score[-2] if len(score) > 2 else before) + ds)
            ready = max(q[-1], load_k)
            constants = max(q[-1], score[-1]) + constants_time(c) if first and r == 0 else 0
            if c["BAND"] or c["BIAS"]: ready = max(ready, constants - 1)    # they say where the row begins, with what its scores do
            if c["BAND"] and c["CACHE"] and r == 0: ready = max(ready, max(q[-1], score[-1]) + 1, constants)
            for g in range(groups):                             # stage 1, a group at a time
                step = max(step, ready) + 1
                if len(taken) + g >= score_queue:
                    i = len(taken) + g - score_queue
                    step = max(step, (taken[i] if i < len(taken) else 1 << 60) + 1)
                step += ds - 1
            step = max(step, constants, row_taken[-4] + 1 if len(row_taken) >= 4 else 0)
            score.append(step)
            top = step + 8 + clog2(simd)                        # the maximum is known
            for g in range(groups):                             # stage 2
                t = max(top, softmax_free)
                if len(taken) >= ring:
                    t = max(t, freed[len(taken) - ring] + 1)
                if len(accept) >= waiting:
                    t = max(t, accept[-waiting] + 1)
                taken.append(t)
                softmax_free = t + es
            row_taken.append(t)
            accept.append(max(t + 8 + later(c)[0] + es, finish + 1))
            finish = max(accept[-1] + cy, mix)                  # the result's register is free when mix is done with the row
            mix = max(finish, mix, load_v) + groups * ds        # stage 3
            freed += [mix] * groups
        k_free[n % 2] = score[-1] + 1
        v_free[n % 2] = mix + 1
    return mix + 12 + later(c)[1] + clog2(PE)


def simulate(c, frames, seed, stall=0, **kw):
    files, args, reaches = stimulus(c, frames, seed, **kw)
    r = bench.run(NAME, c, files, seed=seed, stall=stall, **args)
    return r, [int(x) for x in r.read("cycles.txt").split()], reaches


def timing(c, tk, frames, seed):
    """equal frames, nothing stalls: every row comes exactly a row time after the one before"""
    r, cycles, _ = simulate(c, [(tk, tk, begins(c, i)) for i in range(frames)], seed, keys="all")
    ds = c["D"] // c["SIMD"]
    ends = cycles[ds - 1::ds]
    want = row_time(c, tk)
    steps = [b - a for a, b in zip(ends, ends[1:])]
    odd = [(i, s) for i, s in enumerate(steps) if s != want]
    bench.check(NAME, not odd, "%s Tk=%d: rows must be %d cycles apart, but (row, cycles): %s" % (c, tk, want, odd[:8]))
    bench.check(NAME, cycles[0] - r["ready"] == latency(c, tk), "%s Tk=%d: latency is %d, the formula says %d"
                % (c, tk, cycles[0] - r["ready"], latency(c, tk)))
    return len(ends)


def config(h, d, t, pe, simd, xbits=8, ybits=8, axi=128, step=2, prob=0, rounds=0, kvh=None, causal=0, band=0, bias=(), cap=0, cache=0, exps=8):
    """bias: its heads and queries (0: one for all), its shift"""
    biash, biast, shift = (h if bias[0] else 1, t if bias[1] else 1, bias[2]) if bias else (1, 1, 0)
    return dict(BIAS=int(bool(bias)), BIASH=biash, BIAST=biast, SHIFT=shift, H=h, KVH=kvh or h, D=d, T=t, PE=pe, SIMD=simd, XBITS=xbits, YBITS=ybits, AXI_WIDTH=axi, STEP=step, PROB=prob, ROUND=rounds, CAP=cap, EBITS=exps, CAUSAL=causal, BAND=band, CACHE=cache)


GRID = [
    config(2, 4, 4, 2, 2),
    config(1, 1, 1, 1, 1),                          # everything 1
    config(1, 4, 6, 4, 4),                          # one step per group
    config(5, 12, 7, 3, 4, step=1),                 # the odd one: partial groups, D = 12, H = 5
    config(2, 32, 12, 4, 8, axi=64),                # D = 32
    config(1, 4, 9, 9, 4, ybits=16, axi=32, step=3),  # all keys in one group
    config(2, 6, 5, 5, 2, 4, 4),                    # 4 bits; exponentials 2 lanes for 5 keys
    config(2, 2, 33, 1, 1, 16, 16, axi=256, step=4),  # 16 bits, long rows, one key at a time
    config(1, 8, 32, 8, 8),                         # one step per group, longer than a division
    config(1, 24, 3, 3, 1),                         # one group, many steps: a beat of y in every cycle
    config(4, 4, 12, 5, 1),                         # exponentials 2 lanes for 5 keys, 4 steps
    config(2, 4, 4, 2, 2, prob=1),                  # and rounded as a source does: probabilities,
    config(1, 1, 1, 1, 1, prob=1, rounds=1),        # scores too
    config(5, 12, 7, 3, 4, axi=64, step=1, prob=1, rounds=1),
    config(2, 2, 33, 1, 1, 16, 16, axi=256, step=4, prob=1, rounds=1),
    config(1, 8, 32, 8, 8, prob=1, rounds=1),
    config(4, 4, 12, 5, 1, axi=32, step=3, prob=1),
    config(2, 6, 5, 5, 2, 4, 4, step=4, prob=1, rounds=1),
    config(4, 4, 6, 2, 2, kvh=2),                   # heads of keys that two heads of queries share,
    config(6, 4, 7, 3, 4, kvh=1, prob=1),           # that all do
    config(6, 2, 5, 2, 1, kvh=3, prob=1, rounds=1),
    config(2, 4, 7, 3, 2, causal=1),                # keys up to the query's own: partial groups,
    config(1, 1, 1, 1, 1, causal=1),                # everything 1,
    config(3, 4, 33, 4, 4, causal=1, axi=64),       # one step per group, rows shorter than a division
    config(1, 8, 32, 2, 1, causal=1, step=5),       # rows longer than a division
    config(4, 6, 9, 2, 3, causal=1, kvh=2, prob=1, rounds=1),
    config(1, 2, 12, 12, 2, causal=1, prob=1),      # all keys in one group
    config(2, 4, 9, 2, 2, band=1),                  # keys near the query's own,
    config(1, 1, 1, 1, 1, band=1),
    config(3, 4, 17, 3, 4, band=1, axi=32, step=3),
    config(4, 6, 12, 5, 2, band=1, kvh=1, prob=1),
    config(1, 8, 33, 1, 2, band=1, prob=1, rounds=1, step=4),
    config(2, 4, 13, 4, 1, band=1, causal=1),       # and not behind it
    config(2, 4, 10, 3, 4, band=1, causal=1, kvh=1, prob=1, rounds=1),
    config(2, 4, 4, 2, 2, bias=(1, 1, 0)),          # a bias of each head and query,
    config(1, 1, 1, 1, 1, bias=(1, 1, 3)),          # everything 1,
    config(3, 4, 9, 4, 4, axi=64, bias=(0, 1, 2)),  # of all heads: partial groups, one step per group
    config(3, 2, 7, 3, 1, axi=32, bias=(1, 0, 5)),  # of each head, the same for all queries
    config(2, 4, 6, 6, 2, bias=(0, 0, 1), step=4),  # one row for all
    config(4, 6, 12, 5, 2, kvh=2, causal=1, bias=(1, 1, 4)),
    config(2, 2, 33, 1, 1, 16, 16, axi=256, step=4, causal=1, bias=(1, 0, 23)),
    config(5, 12, 7, 3, 4, 4, 4, step=1, bias=(1, 1, 7)),
    config(2, 4, 4, 2, 2, cap=1),                   # scores under a soft cap:
    config(1, 1, 1, 1, 1, cap=1, step=3),           # everything 1,
    config(3, 4, 7, 3, 4, cap=1, kvh=1, axi=32, step=3),    # one step per group, 3 lanes,
    config(4, 6, 9, 2, 3, cap=1, causal=1, kvh=2),
    config(2, 4, 11, 4, 2, cap=1, band=1, axi=64),
    config(2, 2, 33, 1, 1, 16, 16, axi=256, step=4, cap=1, band=1, causal=1),
    config(4, 4, 12, 5, 1, 4, 4, cap=1),            # exponentials 2 lanes for 5 keys
    config(2, 4, 4, 2, 2, exps=12),                 # exponentials of 12 bits:
    config(1, 1, 1, 1, 1, exps=12),                 # everything 1,
    config(5, 12, 7, 3, 4, step=1, exps=12),        # partial groups, 3 lanes
    config(2, 2, 33, 1, 1, 16, 16, axi=256, step=4, exps=12),
    config(1, 8, 32, 8, 8, exps=12),                # one step per group, longer than a division
    config(4, 6, 12, 5, 2, kvh=2, causal=1, axi=64, exps=12),
    config(2, 4, 13, 4, 1, band=1, causal=1, exps=12),
    config(3, 4, 9, 4, 4, axi=64, bias=(0, 1, 2), exps=12),
    config(4, 6, 9, 2, 3, cap=1, causal=1, kvh=2, exps=12),
    config(1, 2, 260, 8, 1, causal=1, exps=12),     # as many keys as have them
]


def unstalled(c, frames, seed, **kw):
    """frames of any lengths: exactly the schedule"""
    r, cycles, reaches = simulate(c, frames, seed, **kw)
    want = schedule(c, frames, reaches)
    bench.check(NAME, cycles[-1] == want, "%s %s %s: last beat in cycle %d, the schedule says %d" % (c, frames, reaches, cycles[-1], want))
    busy = sum(walked(i, tk, reach, c) * c["H"] * c["D"] // c["SIMD"] for (tq, tk, _), reach in zip(frames, reaches) for i in range(tq))
    bench.check(NAME, r["busy"] == busy, "%s %s: busy in %d cycles, its rows' groups take %d" % (c, frames, r["busy"], busy))
    return busy


def partly(c): return c["CAUSAL"] or c["BAND"]
def together(c): return partly(c) or c["BIAST"] > 1


def some_frames(rng, c, n):
    """lengths 1..T for K and V and, independently (not above K's if not all keys count), for Q; `first` now and then (always on the first)"""
    keys = [rng.between(1, c["T"]) for _ in range(n)]
    return [(rng.between(1, tk if together(c) else c["T"]), tk, i == 0 or rng.chance(50)) for i, tk in enumerate(keys)]


def before(c, seed):
    """no output word of a token changes when later tokens do: their queries, keys and values, and the mask"""
    tk = c["T"]
    files, args, _ = stimulus(c, [(tk, tk, True)], seed, keys="mixed")
    other = stimulus(c, [(tk, tk, True)], seed + 1, keys="mixed")[0]
    ds = c["D"] // c["SIMD"]
    at = tk // 2
    for name, heads in ("q.hex", c["H"]), ("k.hex", c["KVH"]), ("v.hex", c["KVH"]):
        lines, new, cut = files[name].split(), other[name].split(), at * heads * ds
        files[name] = "\n".join(lines[:cut] + new[cut:]) + "\n"
    # what is compared are the words in front; what follows differs, and is taken as it comes
    bench.run(NAME, c, files, seed=seed, stall=20, **dict(args, judged=at * c["H"] * ds))


# ---- caches -------------------------------------------------------------------------------------
def pieces(slot, lengths):
    """the jobs of a sequence in pieces of such lengths"""
    starts = [sum(lengths[:n]) for n in range(len(lengths))]
    return [(slot, start, tokens, True) for start, tokens in zip(starts, lengths)]


def cut(rng, n):
    """lengths that add up to n"""
    lengths = []
    while sum(lengths) < n: lengths.append(rng.between(1, n - sum(lengths)))
    return lengths


def in_turn(rng, lists):
    """one list of all jobs: those of a slot in their order, slots as it comes"""
    lists, jobs = [list(x) for x in lists], []
    while any(lists):
        waiting = [x for x in lists if x]
        jobs.append(waiting[rng.below(len(waiting))].pop(0))
    return jobs


def tried(rng, c, jobs):
    """before each job, now and then, some of other tokens in its place, of any length"""
    for slot, start, tokens, kept in jobs:
        while rng.chance(50):
            yield slot, start, rng.between(1, c["T"] - start), False
        yield slot, start, tokens, kept


def job_lists(rng, c, depth):
    """of all slots in turn: a sequence whole, token by token, in pieces; and with jobs between them that are taken back"""
    slots, t = c["CACHE"] // depth, c["T"]
    lengths = [[t], [1] * t, cut(rng, t)]
    yield in_turn(rng, [pieces(slot, lengths[slot % 3]) for slot in range(slots)])
    yield in_turn(rng, [pieces(slot, lengths[(slot + 1) % 3]) for slot in range(slots)])
    yield in_turn(rng, [tried(rng, c, pieces(slot, cut(rng, t))) for slot in range(slots)])
    yield in_turn(rng, [tried(rng, c, pieces(slot, cut(rng, t))) for slot in range(slots)] + [pieces(0, [t])])


CACHES = [                                          # and iterations; the banks are those of so many slots
    (config(2, 4, 16, 4, 2, causal=1, cache=6), 3),
    (config(1, 1, 1, 1, 1, causal=1, cache=1), 1),  # everything 1,
    (config(1, 1, 5, 1, 1, causal=1, cache=2), 2),
    (config(1, 8, 8, 8, 8, causal=1, cache=2, axi=64), 1),      # all keys in one group
    (config(6, 6, 13, 4, 3, causal=1, kvh=3, prob=1, cache=3), 1),
    (config(4, 3, 11, 2, 1, causal=1, kvh=1, prob=1, rounds=1, cache=5, step=5), 5),
    (config(2, 4, 13, 4, 1, causal=1, band=1, cache=4), 2),
    (config(2, 4, 10, 2, 4, causal=1, band=1, kvh=1, prob=1, rounds=1, cache=3), 3),
    (config(1, 8, 9, 1, 2, causal=1, band=1, cache=2), 1),
    (config(2, 2, 33, 8, 1, 16, 16, causal=1, band=1, cap=1, axi=256, step=4, cache=2), 1),
    (config(4, 6, 12, 4, 2, causal=1, kvh=2, bias=(1, 1, 4), cache=2), 1),
    (config(3, 2, 9, 2, 1, causal=1, bias=(1, 0, 5), cache=2, axi=256), 2),
    (config(2, 4, 7, 4, 4, causal=1, bias=(0, 1, 2), cache=4, axi=256), 2),
    (config(2, 4, 13, 4, 2, causal=1, kvh=1, cache=4, exps=12), 2),
    (config(2, 4, 10, 2, 4, causal=1, band=1, cap=1, cache=3, exps=12), 3),
]


def jobs_unstalled(c, depth, jobs, seed, **kw):
    """each job on the schedule, two cycles behind the one before"""
    files, args, reaches = jobs_stimulus(c, depth, jobs, seed, **kw)
    r = bench.run(NAME, c, files, seed=seed, stall=0, **args)
    cycles = [int(x) for x in r.read("cycles.txt").split()]
    last, opens = -1, start_of(c)
    for number, (slot, start, tokens, kept) in enumerate(jobs):
        last += depth * tokens * c["H"] * c["D"] // c["SIMD"]
        want = schedule(c, [(tokens, tokens, begins_iteration(c, depth, number))] * depth, reaches, opens, start)
        bench.check(NAME, cycles[last] == want, "%s depth %d, job %d of %s: last beat in cycle %d, the schedule says %d" % (c, depth, number, jobs, cycles[last], want))
        opens = cycles[last] + 2


def of_the_day(grid):
    """(n, what stands there) of a third of a grid; after three days it was whole"""
    return bench.cases.drawn(list(enumerate(grid)), 3, lambda row: "%d" % row[0])


def caches():
    for n, (c, depth) in of_the_day(CACHES):
        rng = bench.Rng(500 + n)
        jobs = 0
        for seed, (stall, kw) in enumerate(((25, {}), (70, {}), (40, {"extreme": True}), (10, {"wild": True}))):
            for some in job_lists(rng, c, depth):
                files, args, _ = jobs_stimulus(c, depth, some, 1000 * n + seed, most=[1, 3][seed % 2], keys="mixed", **kw)
                bench.run(NAME, c, files, seed=1000 * n + seed, stall=stall, **args)
                jobs += len(some)
        exact = not c["BIAS"] or depth == 1             # (another bank of a bias would be late)
        for seed, some in enumerate(job_lists(rng, c, depth) if exact else []):
            jobs_unstalled(c, depth, some, 1000 * n + 10 + seed, keys="mixed")
            jobs += len(some)
        bench.ok(NAME, "%s: %d iterations, %d jobs: 16 runs with stalls%s" % (" ".join("%s=%d" % x for x in c.items()), depth, jobs, ", 4 on the schedule" if exact else ""))


def main():
    for n, c in of_the_day(GRID):
        rng = bench.Rng(100 + n)
        rows = 0
        for tk in sorted({1, c["PE"], (c["T"] + 1) // 2, c["T"]}):
            if partly(c):                               # rows differ in length: the schedule alone says when
                unstalled(c, [(tk, tk, begins(c, i)) for i in range(3)], 7 * n + tk, keys="all")
                rows += 3 * tk * c["H"]
                continue
            rows += timing(c, tk, 3 if tk * c["H"] > 8 else 6, 7 * n + tk)
        for seed in (1, 2):
            frames = some_frames(rng, c, 5)
            if c["BIAS"]: frames = [(tq, tk, begins(c, i)) for i, (tq, tk, _) in enumerate(frames)]
            unstalled(c, frames, 1000 * n + seed, keys="mixed")
        for seed, stall, kw in ((2, 25, {}), (3, 70, {}), (4, 40, {"extreme": True}), (5, 10, {"wild": True})):
            simulate(c, some_frames(rng, c, 5), 1000 * n + seed, stall=stall, keys="mixed", **kw)
        if c["CAUSAL"]: before(c, 1000 * n + 6)
        bench.ok(NAME, "%s: %d rows on the cycle, 2 runs on the schedule, 4 with stalls" % (" ".join("%s=%d" % x for x in c.items()), rows))


if __name__ == "__main__":
    main()
    caches()
    bench.end(floor=20, simulations=227)          # of 62 and 721
