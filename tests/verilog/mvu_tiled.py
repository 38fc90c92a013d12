#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo_mvu_tiled against numpy: words, order, sideband, requests; the schedule of its header to the cycle. Parameters go to it when requested."""
import numpy as np
import bench
from mvu import Layer, clog2, draw_token

NAME = "mvu_tiled"


class Case:
    """Iterations of frames: `frames` has, for each iteration, the lengths of its frames."""

    def __init__(self, seed, frames, TILE, BLOCKS, K, N, PE, SIMD, XBITS=8, WBITS=8, ABITS=32, YBITS=8, TABLE=0, TBITS=8, SHIFT=0, PACK=1, AXI_WIDTH=128):
        self.p = dict(K=K, N=N, PE=PE, SIMD=SIMD, XBITS=XBITS, WBITS=WBITS, ABITS=ABITS, YBITS=YBITS, TABLE=TABLE, TBITS=TBITS, SHIFT=SHIFT, PACK=PACK,
                      AXI_WIDTH=AXI_WIDTH, TILE=TILE, BLOCKS=BLOCKS)
        self.KF, self.NF = K // SIMD, N // PE
        self.group = self.NF // BLOCKS              # beats of a token in a pass
        self.BLOCKS = BLOCKS
        rng = np.random.default_rng(seed)
        lines = [], [], []
        lines_in, self.want, self.tiles, self.asks = [], [], [], []
        for lengths in frames:
            layer = Layer(rng, K, N, XBITS, WBITS, ABITS, YBITS, TABLE, TBITS, SHIFT)
            for f, length in enumerate(lengths):
                for start in range(0, length, TILE):
                    self.tiles.append(min(TILE, length - start))
                    self.asks.append(int(f == 0 and start == 0))
                    self.beats = [0, 0, 0]          # of a request
                    for b in range(BLOCKS):
                        block = range(b * N // BLOCKS, (b + 1) * N // BLOCKS)
                        for i, beats in enumerate(layer.beats(rng, block, PE, SIMD, WBITS, AXI_WIDTH)):
                            lines[i].extend(beats)
                            self.beats[i] += len(beats)
                for n in range(length):
                    x = draw_token(rng, K, XBITS)
                    user = (f == 0 and n == 0) | (n == length - 1) << 1 | int(rng.integers(0, 2)) << 2
                    lines_in += [b | user << (SIMD * XBITS) for b in bench.beats(x, SIMD, XBITS)]
                    self.want += [b | user << (PE * YBITS) for b in bench.beats(layer.apply(x), PE, YBITS)]
        hw = bench.hexwords
        self.files = {"in.hex": hw(lines_in, SIMD * XBITS + 3), "w.hex": hw(lines[0], AXI_WIDTH), "c.hex": hw(lines[1], AXI_WIDTH)}
        if TABLE:
            self.files["t.hex"] = hw(lines[2], AXI_WIDTH)
        self.tokens = sum(self.tiles)
        self.counts = dict(n_in=len(lines_in), n_w=len(lines[0]), n_c=len(lines[1]), n_t=len(lines[2]), n_out=len(self.want),
                           t_w=self.beats[0], t_c=self.beats[1], t_t=self.beats[2])
        bench.check(NAME, len(lines_in) <= 16384 and len(lines[0]) <= 65536 and len(lines[1]) <= 16384 and len(lines[2]) <= 16384, "vectors too long")
        self.load = max(self.beats) // BLOCKS       # beats of the largest bank
        # from the cycle in which the first products of a token are begun to its first beat of a pass
        self.depth = self.KF + (clog2(SIMD) + 1) // 2 + 10 + bench.turns(PE, self.KF) + TABLE

    def run(self, seed=1, s_in=0, s_w=0, s_c=0, s_t=0, s_out=0, s_ask=0, hold=0, gap=0, group=1, ahead=0):
        r = bench.run("mvu", self.p, self.files, seed=seed, s_in=s_in, s_w=s_w, s_c=s_c, s_t=s_t, s_out=s_out, s_ask=s_ask, hold=hold, gap=gap, group=group,
                      ahead=ahead, **self.counts)
        what = "%s seed=%d" % (self.p, seed)
        rows = [line.split() for line in r.read("out.txt").splitlines()]
        self.out_cycle = [int(a) for a, _ in rows]
        got = [int(b, 16) if "x" not in b else b for _, b in rows]
        for i, (g, w) in enumerate(zip(got, self.want)):
            bench.check(NAME, g == w, "%s: beat %d is %s, want %x" % (what, i, g, w))
        bench.check(NAME, len(got) == len(self.want), "%s: %d beats" % (what, len(got)))
        bench.check(NAME, r["busy"] == self.tokens * self.KF * self.NF, "%s: busy for %d cycles" % (what, r["busy"]))
        asks = [int(line.split()[1]) for line in r.read("ask.txt").splitlines()]
        bench.check(NAME, asks == self.asks, "%s: requests %s, want %s" % (what, asks, self.asks))
        self.in_cycle = [int(a) for a in r.read("in.txt").split()]
        self.loaded = [[int(a) for a in r.read(n + ".txt").split()][k - 1::k] if k else [] for n, k in zip("wct", (k // self.BLOCKS for k in self.beats))]
        return r

    def stalled(self, seeds):
        """every stream stalls, each at its own rate; sometimes one of them crawls"""
        names = ("s_in", "s_w", "s_c", "s_t", "s_out", "s_ask")
        for seed in seeds:
            rng = bench.Rng(seed)
            rate = {s: [0, 20, 50, 80][rng.below(4)] for s in names}
            crawl = (names + ("none",))[rng.below(len(names) + 1)]
            if crawl != "none":
                rate[crawl] = 93
            self.run(seed=seed, ahead=7 if rng.below(3) == 0 else 0, **rate)

    def schedule(self):
        """The cycle of each output beat, from those of the input beats and of the last weights of each bank, if nothing else is waited for:
        channel words, the table, room in mlo_untile. And whether that is so."""
        KF, II = self.KF, self.KF * self.group
        entry = KF + 2 + (clog2(self.p["SIMD"]) + 1) // 2           # when channel words are needed first
        turns = bench.turns(self.p["PE"], KF)
        stored = [a + 1 for a in self.in_cycle[KF - 1::KF]]         # each token: from then on it may be read
        taken = over = left = -1                    # last beat into the matrix unit; last products begun; last beat out
        done = [-1, -1]                             # products of the two vectors before
        gone = [-1, -1]                             # the two tiles before
        want, token, number, exact = [], 0, 0, True
        for length in self.tiles:
            ends = [0] * length
            for b in range(self.BLOCKS):
                for n in range(length):
                    for k in range(KF):             # a word is read, offered a cycle later, taken if a vector is free
                        taken = max(taken, stored[token + n]) + 1
                        if k == 0:
                            taken = max(taken, done[0] + 1)
                    begin = max(taken, over) + 1
                    if n == 0:                      # the mark; and the pass has its weights
                        begin = max(begin + 1, self.loaded[0][number] + 1)
                        exact &= self.loaded[1][number] < begin + entry
                        exact &= self.p["TABLE"] == 0 or self.loaded[2][number] < begin + entry + 7 + turns
                        exact &= b > 0 or gone[0] <= begin + self.depth
                        number += 1
                    over = begin + II - 1
                    done = [done[1], over]
                    ends[n] = begin + self.depth + (self.group - 1) * KF        # the last beat of the pass, at mlo_untile
            for n in range(length):
                left = max(left + 1, ends[n] + 2)
                want += range(left, left + self.NF)
                left += self.NF - 1
            gone = [gone[1], left]                  # its last word was read the cycle before
            token += length
        return want, exact

    def timed(self, **how):
        """the schedule, exactly: True, unless it does not apply: then it is a bound"""
        self.run(**how)
        want, exact = self.schedule()
        for i, (g, w) in enumerate(zip(self.out_cycle, want)):
            bench.check(NAME, g == w or (g > w and not exact), "%s %s: beat %d leaves at %d, want %d" % (self.p, how, i, g, w))
        return exact

    def throughput(self):
        """tokens and parameters always there: BLOCKS*(L*KF*NF/BLOCKS + 1) cycles a tile"""
        bench.check(NAME, min(self.tiles) * self.KF * self.group >= self.load + 2, "%s: a tile does not cover loading" % self.p)
        exact = self.timed(hold=2 * self.load + 20, ahead=7)
        L, KF, B, II = self.tiles, self.KF, self.BLOCKS, self.KF * self.group
        equal = len(set(L)) == 1
        NB = self.group
        free = all((B - KF) * a * NB + KF * NB <= B * (b * KF * NB + 1) + KF for a, b in zip(L, L[1:]))
        bench.check(NAME, exact == free or (exact and KF < B), "%s: tiles wait" % self.p)
        bench.check(NAME, free or not (equal or KF >= B), "%s: the header's condition" % self.p)
        last = [self.out_cycle[sum(L[:i + 1]) * self.NF - 1] for i in range(len(L))]
        for i in range(1, len(L) if free else 0):
            bench.check(NAME, last[i] - last[i - 1] == B * (L[i] * II + 1), "%s: tile %d takes %d cycles" % (self.p, i, last[i] - last[i - 1]))

    def single(self):
        """one tile at a time, its tokens without a gap, parameters there: the latency formula of the header"""
        L, KF, NF, B = self.tiles[0], self.KF, self.NF, self.BLOCKS
        exact = self.timed(hold=2 * self.load + 20, ahead=7, group=L, gap=B * (L * KF * self.group + 1) + L * KF + L * NF + 80 + 2 * self.load)
        bench.check(NAME, exact, "%s: tiles wait" % self.p)
        turns = bench.turns(self.p["PE"], KF)
        for i in range(len(self.tiles)):
            t = self.in_cycle[i * L * KF + KF - 1]  # the first token's last beat
            first = t + (B - 1) * (L * KF * NF // B + 1) + (NF // B + 1) * KF + (clog2(self.p["SIMD"]) + 1) // 2 + 15 + turns + self.p["TABLE"]
            for n in range(L):
                at = first + n * max(KF * NF // B, NF)
                got = self.out_cycle[(i * L + n) * NF:][:NF]
                bench.check(NAME, got == list(range(at, at + NF)), "%s: token %d of tile %d leaves at %s, want %d.." % (self.p, n, i, got, at))


SHAPES = [
    dict(K=8, N=8, PE=2, SIMD=2, TILE=4, BLOCKS=2),         # requantizers take two turns
    dict(K=4, N=12, PE=3, SIMD=4, TILE=3, BLOCKS=4),        # K/SIMD = 1, N/PE = BLOCKS
    dict(K=12, N=8, PE=4, SIMD=3, TILE=5, BLOCKS=2),        # N/PE = BLOCKS
    dict(K=5, N=6, PE=3, SIMD=5, TILE=2, BLOCKS=2),         # both: a beat a cycle
    dict(K=1, N=2, PE=1, SIMD=1, ABITS=17, TILE=1, BLOCKS=2),
    dict(K=7, N=6, PE=1, SIMD=1, TILE=3, BLOCKS=3),
    dict(K=7, N=12, PE=2, SIMD=7, ABITS=20, TILE=16, BLOCKS=3),                     # no frame fills a tile
    dict(K=6, N=20, PE=5, SIMD=3, XBITS=16, WBITS=4, ABITS=24, TILE=2, BLOCKS=4),
    dict(K=12, N=18, PE=3, SIMD=6, AXI_WIDTH=64, TILE=1, BLOCKS=3),
    dict(K=9, N=8, PE=2, SIMD=3, AXI_WIDTH=32, TILE=4, BLOCKS=2),
    dict(K=12, N=12, PE=6, SIMD=2, TILE=3, BLOCKS=2),       # six turns
]
FRAMES = [[[5, 3], [1], [4, 4, 2]], [[1], [1], [2], [1]], [[7], [3, 1, 1]], [[9, 1], [1, 9]]]


def main():
    for table in (0, 1):
        for n, shape in enumerate(SHAPES):
            for f in range(2):
                Case(10 * n + f, FRAMES[(n + f) % len(FRAMES)], TABLE=table, TBITS=(4, 6, 8, 5)[n % 4], YBITS=(8, 16, 5)[n % 3], SHIFT=n & 1, PACK=(n >> 1) & 1, **shape).stalled(range(n + 1, n + 3 - table))
        bench.ok(NAME, "TABLE=%d: words, order, sideband, requests with stalls on every stream" % table)
    for table in (0, 1):
        exact = []
        for n, shape in enumerate(SHAPES):
            frames = FRAMES[(n + table) % len(FRAMES)]
            for how in (dict(hold=300, ahead=7), dict(hold=300, ahead=7, s_in=80), dict(ahead=6, s_w=90), dict(ahead=6, s_w=20, s_in=40, s_ask=60)):
                exact.append(Case(n, frames, TABLE=table, TBITS=4, **shape).timed(seed=len(exact) + 1, **how))
        bench.check(NAME, sum(exact) * 2 > len(exact), "the schedule applies to %d of %d" % (sum(exact), len(exact)))
        bench.ok(NAME, "TABLE=%d: each beat's cycle, tokens and weights early and late (%d runs; a bound in %d)" % (table, sum(exact), len(exact) - sum(exact)))
    for n, shape in enumerate(SHAPES + SHAPES[:5]):
        table = n & 1
        case = Case(n, [[1]], TABLE=table, **shape)
        load = -(-(case.load + 2) // (case.KF * case.group))        # tokens that cover loading a bank
        shape = dict(shape, TILE=max(shape["TILE"], load))
        Case(n, [[shape["TILE"]] * 2, [shape["TILE"]]], TABLE=table, **shape).single()
        Case(n, [[2 * shape["TILE"], shape["TILE"] + load]] * 2, TABLE=table, **shape).throughput()
        Case(n, [[3 * shape["TILE"]]] * 2, TABLE=table, **shape).throughput()
    bench.ok(NAME, "BLOCKS*(L*KF*NF/BLOCKS + 1) cycles a tile; the latency formula")


if __name__ == "__main__":
    main()
    bench.end(floor=5, simulations=202)
