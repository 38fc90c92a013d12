#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo_mvu against numpy: words, order, sideband, throughput and latency of its header, over shapes, tables, widths, iterations and stalls."""
import numpy as np
import bench

NAME = "mvu"


def clog2(n):
    return (n - 1).bit_length()


def requantize(acc, m, s, bits):
    """the rule of the specification on Python integers"""
    y = (int(acc) * int(m) + (1 << (int(s) - 1))) >> int(s)
    return max(-(1 << (bits - 1)), min((1 << (bits - 1)) - 1, y))


class Layer:
    """The parameters of an iteration: weights W[k][n], of each channel bias, M and S, the table."""

    def __init__(self, rng, K, N, XBITS, WBITS, ABITS, YBITS, TABLE, TBITS, SHIFT):
        self.abits, self.ybits, self.tbits = ABITS, YBITS, TBITS
        self.W = rng.integers(-(1 << (WBITS - 1)), 1 << (WBITS - 1), (K, N))
        self.bias = rng.integers(-(1 << 17), 1 << 17, N) if ABITS > 24 else rng.integers(-2000, 2000, N)
        self.M = rng.integers(0, 1 << 15, N)
        typical = XBITS + WBITS - 3 + clog2(K) // 2 + 14 - (TBITS if TABLE else YBITS)
        self.S = np.where(rng.random(N) < 0.9, np.clip(rng.integers(typical - 2, typical + 4, N), 1, 62), rng.integers(1, 63, N))
        self.T = rng.integers(-(1 << (YBITS - 1)), 1 << (YBITS - 1), 1 << TBITS) if TABLE else None
        self.shift = SHIFT

    def beats(self, rng, channels, PE, SIMD, WBITS, AXI_WIDTH):
        """what loads the banks of these channels: weights, channel words, table"""
        KF = len(self.W) // SIMD
        lanes = PE // bench.turns(PE, KF)
        words = [bench.pack([self.W[kf * SIMD + s][at + p] for p in range(PE) for s in range(SIMD)], WBITS) for at in channels[::PE] for kf in range(KF)]
        w = bench.param_beats(words, PE * SIMD * WBITS, AXI_WIDTH)
        # the ten unused bits of a channel word are noise
        words = [bench.pack([(int(self.bias[n]) & 0xffffffff) | int(self.M[n]) << 32 | int(self.S[n]) << 48 | int(rng.integers(0, 1024)) << 54
                             for n in range(at, at + lanes)], 64) for at in channels[::lanes]]
        c = bench.param_beats(words, lanes * 64, AXI_WIDTH)
        t = [] if self.T is None else bench.param_beats([int(v) & ((1 << self.ybits) - 1) for v in self.T], self.ybits, AXI_WIDTH)
        return w, c, t

    def apply(self, x):
        acc = x.astype(np.int64) @ self.W.astype(np.int64) + self.bias
        acc = ((acc + (1 << (self.abits - 1))) & ((1 << self.abits) - 1)) - (1 << (self.abits - 1))
        bits = self.ybits if self.T is None else self.tbits
        M = np.full(len(self.M), 1 << 14) if self.shift else self.M         # whatever the word says
        y = [requantize(a, m, s, bits) for a, m, s in zip(acc, M, self.S)]
        return y if self.T is None else [int(self.T[v + (1 << (bits - 1))]) for v in y]


def draw_token(rng, K, bits):
    if rng.random() < 0.15:                     # the extremes, now and then
        return np.full(K, -(1 << (bits - 1)))
    return rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), K)


class Case:
    """Parameters and tokens of a run: `iterations` parameter sets, `tokens` tokens in each."""

    def __init__(self, seed, iterations, tokens, K, N, PE, SIMD, XBITS=8, WBITS=8, ABITS=32, YBITS=8, TABLE=0, TBITS=8, SHIFT=0, PACK=1, AXI_WIDTH=128):
        self.p = dict(K=K, N=N, PE=PE, SIMD=SIMD, XBITS=XBITS, WBITS=WBITS, ABITS=ABITS, YBITS=YBITS, TABLE=TABLE, TBITS=TBITS, SHIFT=SHIFT, PACK=PACK, AXI_WIDTH=AXI_WIDTH)
        self.KF, self.NF = K // SIMD, N // PE
        self.turns = bench.turns(PE, self.KF)
        self.iterations, self.tokens = iterations, tokens
        rng = np.random.default_rng(seed)
        lines_w, lines_c, lines_t, lines_in, self.want = [], [], [], [], []
        for _ in range(iterations):
            layer = Layer(rng, K, N, XBITS, WBITS, ABITS, YBITS, TABLE, TBITS, SHIFT)
            for lines, beats in zip((lines_w, lines_c, lines_t), layer.beats(rng, range(N), PE, SIMD, WBITS, AXI_WIDTH)):
                lines += beats
            for token in range(tokens):
                x = draw_token(rng, K, XBITS)
                user = (token == 0) | int(rng.integers(0, 4)) << 1
                lines_in += [b | user << (SIMD * XBITS) for b in bench.beats(x, SIMD, XBITS)]
                self.want += [b | user << (PE * YBITS) for b in bench.beats(layer.apply(x), PE, YBITS)]
        hw = bench.hexwords
        self.files = {"in.hex": hw(lines_in, SIMD * XBITS + 3), "w.hex": hw(lines_w, AXI_WIDTH), "c.hex": hw(lines_c, AXI_WIDTH)}
        if TABLE:
            self.files["t.hex"] = hw(lines_t, AXI_WIDTH)
        self.counts = dict(n_in=len(lines_in), n_w=len(lines_w), n_c=len(lines_c), n_t=len(lines_t), n_out=len(self.want))
        bench.check(NAME, len(lines_in) <= 16384 and len(lines_w) <= 65536 and len(lines_c) <= 16384, "vectors too long")
        self.load = max(len(lines_w), len(lines_c), len(lines_t)) // iterations   # beats of the largest bank
        self.latency = self.KF + (clog2(SIMD) + 1) // 2 + 11 + self.turns + TABLE

    def run(self, seed=1, s_in=0, s_w=0, s_c=0, s_t=0, s_out=0, hold=0, gap=0):
        r = bench.run(NAME, self.p, self.files, seed=seed, s_in=s_in, s_w=s_w, s_c=s_c, s_t=s_t, s_out=s_out, hold=hold, gap=gap, **self.counts)
        what = "%s seed=%d" % (self.p, seed)
        rows = [line.split() for line in r.read("out.txt").splitlines()]
        self.out_cycle = [int(a) for a, _ in rows]
        got = [int(b, 16) if "x" not in b else b for _, b in rows]
        for i, (g, w) in enumerate(zip(got, self.want)):
            bench.check(NAME, g == w, "%s: beat %d is %s, want %x" % (what, i, g, w))
        bench.check(NAME, len(got) == len(self.want), "%s: %d beats" % (what, len(got)))
        ii = self.KF * self.NF
        bench.check(NAME, r["busy"] == self.iterations * self.tokens * ii, "%s: busy for %d cycles" % (what, r["busy"]))
        self.in_cycle = [int(a) for a in r.read("in.txt").split()]
        return r

    def stalled(self, seeds):
        """every stream stalls, each at its own rate; sometimes one of them crawls"""
        for seed in seeds:
            rng = bench.Rng(seed)
            rate = {s: [0, 20, 50, 80][rng.below(4)] for s in ("s_in", "s_w", "s_c", "s_t", "s_out")}
            crawl = ("s_in", "s_w", "s_c", "s_t", "s_out", "none")[rng.below(6)]
            if crawl != "none":
                rate[crawl] = 93
            self.run(seed=seed, **rate)

    def throughput(self):
        """no stall, parameters always ahead: a beat every KF cycles, one cycle more at a change of iteration"""
        ii = self.KF * self.NF
        bench.check(NAME, self.tokens * ii >= self.load + 2, "%s: %d tokens do not cover loading" % (self.p, self.tokens))
        r = self.run(hold=2 * self.load + 20)
        bench.check(NAME, r["blocked"] == 0, "blocked without a stall")
        first = self.in_cycle[self.KF - 1] + self.latency + 1
        want = [first + g * self.KF + g // (self.NF * self.tokens) for g in range(len(self.want))]
        bench.check(NAME, self.out_cycle == want, "%s: output cycles %s, want %s" % (self.p, self.out_cycle[:20], want[:20]))

    def single(self):
        """one token at a time: the latency formula"""
        self.run(hold=2 * self.load + 20, gap=self.KF * self.NF + self.KF + 60 + self.turns + 2 * self.load)
        for t in range(self.iterations * self.tokens):
            first = t % self.tokens == 0
            at = self.in_cycle[(t + 1) * self.KF - 1]
            want = [at + self.latency + first + g * self.KF for g in range(self.NF)]
            got = self.out_cycle[t * self.NF:(t + 1) * self.NF]
            bench.check(NAME, got == want, "%s: token %d taken at %d leaves at %s, want %s" % (self.p, t, at, got, want))


SHAPES = [
    dict(K=8, N=8, PE=2, SIMD=2),
    dict(K=4, N=12, PE=3, SIMD=4),                          # K/SIMD = 1
    dict(K=12, N=4, PE=4, SIMD=3),                          # N/PE = 1
    dict(K=5, N=3, PE=3, SIMD=5),                           # both: a token per cycle
    dict(K=1, N=1, PE=1, SIMD=1, ABITS=17),
    dict(K=7, N=5, PE=1, SIMD=1),
    dict(K=7, N=6, PE=6, SIMD=7, ABITS=20),
    dict(K=6, N=10, PE=5, SIMD=3, XBITS=16, WBITS=4, ABITS=24),
    dict(K=12, N=6, PE=3, SIMD=6, AXI_WIDTH=64),
    dict(K=9, N=4, PE=2, SIMD=3, AXI_WIDTH=32),
]


def main():
    for table, ybits in ((0, 8), (0, 16), (1, 8), (1, 16), (0, 5), (1, 11)):
        for n, shape in enumerate(SHAPES if ybits in (8, 16) else SHAPES[:3]):
            Case(100 * ybits + n, 5, 3, YBITS=ybits, TABLE=table, **shape).stalled(range(n + 1, n + 4))
        bench.ok(NAME, "TABLE=%d YBITS=%d: words, order and sideband with stalls on every stream" % (table, ybits))
    for tbits, n in ((10, 0), (6, 7), (10, 9)):
        Case(tbits + n, 4, 3, YBITS=10, TABLE=1, TBITS=tbits, **SHAPES[n]).stalled(range(n + 1, n + 3))
    bench.ok(NAME, "tables of 10-bit and 6-bit indices")
    for n, (wbits, xbits) in enumerate(((2, 4), (3, 5), (4, 8), (5, 12), (8, 16))):
        for table in (0, 1):
            Case(70 + n, 4, 3, WBITS=wbits, XBITS=xbits, YBITS=xbits, TABLE=table, SHIFT=(n + table) & 1, PACK=(n >> 1 ^ table) & 1, **dict(SHAPES[n], ABITS=32)).stalled(range(n + 1, n + 3))
    bench.ok(NAME, "weights of 2 to 8 bits; requantization without a multiplier; multipliers of their own or shared")
    for simd in (6, 5, 3):
        Case(simd, 2, 2, K=150, N=60, PE=5, SIMD=simd, TABLE=simd & 1, PACK=simd & 1).stalled([simd])
    for simd, pe in ((17, 2), (21, 3)):
        Case(simd, 2, 2, K=2 * simd, N=6, PE=pe, SIMD=simd).stalled([simd])
    bench.ok(NAME, "K=150 N=60 PE=5 SIMD=6, 5, 3; a tree of three stages")
    for table in (0, 1):
        for n, shape in enumerate(SHAPES):
            kf, nf = shape["K"] // shape["SIMD"], shape["N"] // shape["PE"]
            axi = shape.get("AXI_WIDTH", 128)
            load = max(256 * 16 // axi if table else 1, kf * nf * -(-shape["PE"] * shape["SIMD"] * 16 // axi) , nf * -(-shape["PE"] * 64 // axi)) + 4
            tokens = -(-load // (kf * nf)) + 1
            Case(n, 4, tokens, TABLE=table, PACK=table, **shape).throughput()
            Case(n, 3, 2, TABLE=table, PACK=1 - table, **shape).single()
            r = Case(n, 3, 6, TABLE=table, **shape).run(s_out=95)
            bench.check(NAME, r["blocked"] > r["starved"] // 4, "never blocked behind a slow sink")
    bench.ok(NAME, "II = K/SIMD * N/PE back to back, one cycle per iteration; the latency formula")
    # an iteration of one token each, parameters always late: nothing may mix
    for table in (0, 1):
        for n, shape in enumerate(SHAPES[:6]):
            Case(50 + n, 12, 1, TABLE=table, **shape).stalled(range(10, 13))
    bench.ok(NAME, "iterations of one token")


if __name__ == "__main__":
    main()
    bench.end(floor=11, simulations=265)
