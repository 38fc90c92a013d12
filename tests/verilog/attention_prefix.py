#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""attention_prefix: mlo_attention_prefix against the model of mlo_attention, whose frames have the rows as their first keys and values: words, order,
sidebands, and the cycle of the last beat by mlo_attention's schedule behind that of mlo_prefix. A configuration's T is the keys' here, T + P."""
import numpy as np

import attention
import bench
import prefix

NAME = "attention_prefix"


def config(p, resident, *shape, **more):
    """shape, more: as of mlo_attention, t being tokens of a frame; a bias is of all queries alike"""
    h, d, t, *rest = shape
    c = attention.config(h, d, t + p, *rest, **more)
    return dict(c, P=p, RESIDENT=resident)


def tokens(c): return c["T"] - c["P"]
def step(c): return c["D"] // c["SIMD"]
def beats(c): return c["KVH"] * step(c)


def generics(c):
    """of attention_prefix_tb"""
    names = "H D P PE SIMD XBITS YBITS RESIDENT AXI_WIDTH STEP EBITS KVH CAUSAL BIAS BIASH SHIFT".split()
    return dict({n: c[n] for n in names}, T=tokens(c))


# ---- stimulus -----------------------------------------------------------------------------------
class Streams(attention.Streams):
    """and the rows"""
    def __init__(self, c, rng):
        super().__init__(c, rng)
        self.rows = [], []

    def iteration(self, iteration, rows):
        self.constants(iteration)
        for stream, data in zip(self.rows, rows):
            words = [b for x in data for b in bench.beats(x, self.c["SIMD"], self.c["XBITS"])]
            stream += bench.param_beats(words, self.c["SIMD"] * self.c["XBITS"], self.c["AXI_WIDTH"])

    def args(self):
        return {"n_q": len(self.q), "n_k": len(self.k), "n_c": len(self.params), "n_p": len(self.rows[0]), "n_out": len(self.m)}

    def files(self):
        return dict(super().files(), **{name: bench.hexwords(stream, self.c["AXI_WIDTH"]) for name, stream in zip(("kp.hex", "vp.hex"), self.rows)})


def pick_rows(rng, c, extreme):
    """keys and values [P, KVH * D]: any, or zeros (a sink, or what add_zero_attn puts there)"""
    rows = [attention.draw(rng, c, c["P"], c["KVH"], extreme) for _ in range(2)]
    return [0 * r for r in rows] if rng.chance(25) else rows


def stimulus(c, frames, seed, keys="mixed", extreme=False, wild=False):
    """frames: (Tq, Tk, first). The streams; first frame's beats of K"""
    rng = bench.Rng(seed)
    streams, banks, n = Streams(c, rng), [], -1
    for tq, tk, first in frames:
        if first:
            n += 1
            if not c["RESIDENT"] or n < c["RESIDENT"]:
                banks.append((attention.pick_iteration(rng, c, n, extreme, wild), pick_rows(rng, c, extreme)))
                streams.iteration(*banks[-1])
            iteration, rows = banks[n % c["RESIDENT"] if c["RESIDENT"] else n]
        q, k, v, key = attention.pick_tokens(rng, c, tq, tk, keys, extreme)
        # query j stands where its own key does, behind the rows
        whole = (np.concatenate((np.zeros((c["P"], q.shape[1]), dtype=np.int64), q)), np.concatenate((rows[0], k)), np.concatenate((rows[1], v)),
                 np.concatenate((np.ones(c["P"], dtype=bool), key)))
        streams.frame(q, k, v, key, [attention.token(c, c["P"] + j, whole, iteration) for j in range(tq)], first)
    return streams


def simulate(c, frames, seed, hold=16, s_in=0, s_p=0, s_out=0, **kw):
    """(what it says, cycles in which K's beats were taken, cycles in which beats left)"""
    streams = stimulus(c, frames, seed, **kw)
    r = bench.run(NAME, generics(c), streams.files(), seed=seed, hold=hold, s_in=s_in, s_p=s_p, s_out=s_out, **streams.args())
    rows = [line.split() for line in r.read("out.txt").splitlines()]
    for i, ((_, got), want) in enumerate(zip(rows, streams.m)):
        bench.check(NAME, got == "%0*x" % (len(got), want), "%s %s seed=%d: beat %d is %s, want %x" % (c, frames, seed, i, got, want))
    return r, [int(a) for a in r.read("in.txt").split()], [int(a) for a, _ in rows]


# ---- timing ----------------------------------------------------------------------------------------
def loaded(c):
    """when q, k and v begin: two banks, or all resident ones, are there"""
    bank = lambda words, width: len(bench.param_beats([0] * words, width, c["AXI_WIDTH"]))
    constants = bank(c["BIASH"] * -(-c["T"] // c["PE"]) + 4, 16 * c["PE"]) if c["BIAS"] else bank(1, 64)
    return 16 + max(2, c["RESIDENT"]) * max(constants, bank(c["P"] * beats(c), c["SIMD"] * c["XBITS"]))


def load_of(c):
    class Load(prefix.Prefix):
        """When the frames of K (or V) are in: through mlo_prefix, a beat as soon as the one before was taken."""
        def __init__(self, before):
            super().__init__()
            self.comes = before + 1

        def frame(self, room, own, first):
            for i in range(c["P"] * beats(c)):
                self.issue(self.comes, first and i == 0)
                self.leave(room)
            for _ in range(own):
                self.comes = self.issue(self.comes) + 1
                self.leave(room)
            return self.left[-1]
    return Load


def unstalled(c, frames, seed, **kw):
    """frames of any lengths: exactly the schedule; the first beat by the latency formula. Returns in which cycles beats leave."""
    p, ds, hold = c["P"], step(c), loaded(c)
    r, taken, left = simulate(c, frames, seed, hold=hold, **kw)
    want = attention.schedule(c, frames, [(0, 0)] * len(frames), hold, p, load_of(c))
    bench.check(NAME, left[-1] == want, "%s %s: last beat in cycle %d, the schedule says %d" % (c, frames, left[-1], want))
    busy = sum(attention.walked(p + i, p + tk, (0, 0), c) * c["H"] * ds for tq, tk, _ in frames for i in range(tq))
    bench.check(NAME, r["busy"] == busy, "%s %s: busy in %d cycles, its rows' groups take %d" % (c, frames, r["busy"], busy))
    # K's frame came in hold + 1, with `first`
    tk, last = frames[0][1], taken[frames[0][1] * beats(c) - 1]
    bench.check(NAME, last == hold + 1 + (p + tk) * beats(c), "%s %s: K's last beat is taken in %d, it came from %d on" % (c, frames, last, hold + 1))
    ahead = last + 2 - (hold + ds)
    latency = attention.latency(c, p + (1 if c["CAUSAL"] else tk), ahead) + 2
    bench.check(NAME, left[0] - last == latency, "%s %s: latency is %d, the formula says %d" % (c, frames, left[0] - last, latency))
    return left


def steady(c, tk, seed):
    """equal frames of queries enough to hide the next one's keys: every row comes exactly a row time after the one before. Returns rows"""
    ds, want = step(c), attention.row_time(c, c["P"] + tk)
    tq = -(-((c["P"] + tk) * beats(c) + 1) // (c["H"] * want))
    left = unstalled(c, [(tq, tk, i < 2) for i in range(4)], seed, keys="all")
    ends = left[ds - 1::ds]
    odd = [(i, b - a) for i, (a, b) in enumerate(zip(ends, ends[1:])) if b - a != want]
    bench.check(NAME, not odd, "%s Tk=%d: rows must be %d cycles apart, but (row, cycles): %s" % (c, tk, want, odd[:8]))
    return len(ends)


GRID = [
    config(1, 0, 2, 4, 4, 2, 2),                        # a key and a value in front, as bias_k and bias_v are
    config(1, 0, 1, 1, 1, 1, 1),                        # everything 1
    config(3, 0, 5, 12, 7, 3, 4, step=1),               # the odd one: partial groups, D = 12, H = 5
    config(16, 0, 2, 4, 6, 4, 2, axi=64),               # memory keys, more than there are tokens
    config(3, 3, 2, 6, 5, 8, 2, 4, 4),                  # resident; all keys in one group, of 4 bits
    config(16, 2, 4, 4, 9, 5, 1, kvh=2),                # heads of keys that two heads of queries share
    config(1, 1, 6, 2, 5, 3, 1, kvh=1, axi=32),         # that all do
    config(1, 0, 2, 4, 7, 2, 2, causal=1),              # keys up to the query's own, and the rows:
    config(1, 0, 1, 1, 1, 1, 1, causal=1),              # everything 1,
    config(3, 0, 3, 4, 9, 4, 4, causal=1, axi=64),      # rows end in the middle of a group,
    config(16, 2, 4, 6, 9, 8, 3, causal=1, kvh=2),      # are whole groups,
    config(3, 0, 2, 2, 17, 1, 1, 16, 16, causal=1, axi=256, step=4),
    config(4, 3, 2, 8, 4, 8, 8, causal=1),              # all keys in one group
    config(1, 0, 4, 4, 6, 2, 2, bias=(1, 0, 3)),        # a sink: a score of each head,
    config(1, 0, 1, 1, 1, 2, 1, bias=(0, 0, 0)),        # of all heads,
    config(3, 2, 3, 2, 7, 3, 1, axi=32, bias=(1, 0, 5)),
    config(1, 0, 4, 4, 8, 4, 2, kvh=2, causal=1, bias=(1, 0, 4)),
    config(16, 3, 2, 4, 5, 2, 4, causal=1, bias=(1, 0, 1), axi=256),
    config(3, 0, 2, 4, 6, 2, 2, exps=12),               # exponentials of 12 bits
    config(16, 0, 1, 2, 250, 8, 1, causal=1, exps=12),  # as many keys as have them
]


def some_frames(rng, c, n, iterations):
    """so many frames of any lengths, `first` on the first and now and then (of iterations at most)"""
    frames = []
    for i in range(n):
        tk = rng.between(1, tokens(c))
        tq = tk if c["CAUSAL"] else rng.between(1, c["T"])
        first = i == 0 or (sum(f for _, _, f in frames) < iterations and rng.chance(60))
        frames.append((tq, tk, first))
    return frames


MUTANTS = {
    "keys' rows in front of values": [("s_axis_p_tdata(s_axis_vp_tdata)", "s_axis_p_tdata(s_axis_kp_tdata)")],
    "values in place of keys": [(".s_axis_k_tdata(k_tdata)", ".s_axis_k_tdata(v_tdata)")],
    "bits of values hide keys": [(".s_axis_k_tuser(k_tuser)", ".s_axis_k_tuser(v_tuser)")],
    "queries begin in front of the rows": [("{P_32[15:0], 16'd0}", "32'd0")],
    "queries see the keys behind them": [(".CAUSAL(CAUSAL), .BIAS", ".CAUSAL(0), .BIAS"), (".PAST(CAUSAL)", ".PAST(0)")],
    "sums have bits for the frame's own": [(".T(T + P)", ".T(T)")],
    "no bias": [(".BIAS(BIAS)", ".BIAS(0)")],
}


def mutants():
    """Each is seen in two runs."""
    c = config(3, 0, 2, 4, 8, 4, 2, causal=1, bias=(1, 0, 4))
    def attempt():
        for seed in (1, 2): simulate(c, some_frames(bench.Rng(seed), c, 4, 2), seed, s_in=20, s_out=20)
    attempt()
    for name, changes in MUTANTS.items(): bench.check(NAME, bench.caught("mlo_attention_prefix", changes, attempt), "not seen: " + name)
    bench.ok(NAME, "mutants, all seen: " + "; ".join(MUTANTS))


def main():
    for n, c in bench.cases.drawn(list(enumerate(GRID)), 2, lambda row: "%d" % row[0]):
        rng, rows, t = bench.Rng(700 + n), 0, tokens(c)
        for tk in sorted({1, (t + 1) // 2, t}) if not c["CAUSAL"] and not c["BIAS"] else ():
            rows += steady(c, tk, 7 * n + tk)
        # (a third bank would be late, but of resident ones)
        for seed in range(4): unstalled(c, some_frames(rng, c, 5, 5 if c["RESIDENT"] else 2), 1000 * n + seed)
        for seed, (stall, late, kw) in enumerate(((25, 0, {}), (70, 50, {}), (0, 90, {}), (40, 20, {"extreme": True}), (10, 10, {"wild": True}))):
            simulate(c, some_frames(rng, c, 5, 5), 1000 * n + 10 + seed, s_in=stall, s_p=late, s_out=stall, **kw)
        bench.ok(NAME, "%s: %d rows on the cycle, 4 runs on the schedule, 5 with stalls" % (" ".join("%s=%d" % x for x in generics(c).items()), rows))


if __name__ == "__main__":
    main()
    mutants()
    bench.end(floor=11, simulations=99)           # of 21 and 211
