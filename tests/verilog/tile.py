#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo_tile and mlo_untile: words, order, sideband, requests, the cycle of each beat, alone and one into the other; requests through mlo_ahead."""
import bench

NAME = "tile"
DO, UNDO, BOTH = 0, 1, 2              # WHAT of tile_tb: mlo_tile, mlo_untile


class Case:
    """Iterations of frames (their lengths) that share tiles, tokens of random words; `passes` has what leaves mlo_tile, `whole` what leaves
    mlo_untile."""

    def __init__(self, seed, what, frames, BEATS, TILE, BLOCKS, WIDTH=9, ITERATIONS=0):
        self.what, self.p = what, dict(WHAT=what, WIDTH=WIDTH, BEATS=BEATS, TILE=TILE, BLOCKS=BLOCKS, ITERATIONS=ITERATIONS)
        self.iterations = []                                            # of each tile, the number of its iteration
        rng = bench.Rng(seed)
        self.tiles, self.asks, self.ends, tokens, passes, whole = [], [], [], [], [], []
        for iteration, lengths in enumerate(frames):
            self.ends += [int(f == len(lengths) - 1) for f in range(len(lengths))]
            lasts = [int(t == length - 1) for length in lengths for t in range(length)]
            for start in range(0, len(lasts), TILE):
                last = lasts[start:start + TILE]
                n = len(last)
                self.tiles.append(n)
                self.asks.append(int(start == 0))
                self.iterations.append(iteration)
                key = [rng.below(2) for _ in range(n)]
                first = [int(start + t == 0) for t in range(n)]
                words = [[rng.ints(BEATS, WIDTH) for t in range(n)] for _ in range(BLOCKS)]       # of each pass
                if what != UNDO:
                    words = words[:1] * BLOCKS
                for t in range(n):
                    tokens += [w | (key[t] << 2 | last[t] << 1 | first[t]) << WIDTH for w in words[0][t]]
                    whole += [w | (key[t] << 2 | last[t] << 1 | first[t]) << WIDTH for b in range(BLOCKS) for w in words[b][t]]
                for b in range(BLOCKS):
                    for t in range(n):
                        user = (key[t] << 2 | (t == n - 1) << 1, last[t] << 2 | first[t] << 1, 0)[min(b, 2)] | (t == 0)
                        passes += [w | user << WIDTH for w in words[b][t]]
        self.sent = passes if what == UNDO else tokens
        self.want = passes if what == DO else whole

    def run(self, seed=1, s_in=0, s_out=0, s_ask=0, s_ends=0, tiles=None):
        """tiles: how many of them pass"""
        p, what = self.p, "%s seed=%d" % (self.p, seed)
        want = self.want if tiles is None else self.want[:sum(self.tiles[:tiles]) * p["BEATS"] * p["BLOCKS"]]
        r = bench.run(NAME, p, {"in.hex": bench.hexwords(self.sent, p["WIDTH"] + 3), "ends.hex": bench.hexwords(self.ends, 1)}, seed=seed, s_in=s_in, s_out=s_out,
                      s_ask=s_ask, s_ends=s_ends, n_out=len(want))
        if tiles is None:
            bench.check(NAME, self.what == UNDO or r["ends"] == len(self.ends), "%s: %d words of ends taken" % (p, r["ends"]))
        rows = [line.split() for line in r.read("out.txt").splitlines()]
        self.out_cycle = [int(a) for a, _ in rows]
        for i, ((_, g), w) in enumerate(zip(rows, want)):
            bench.check(NAME, "x" not in g and int(g, 16) == w, "%s: beat %d is %s, want %x" % (what, i, g, w))
        rows = [line.split() for line in r.read("ask.txt").splitlines()]
        self.ask_cycle = [int(a) for a, _ in rows]
        if self.what != UNDO and s_ask < 100:
            bench.check(NAME, [int(b) for _, b in rows] == self.asks, "%s: requests %s, want %s" % (what, rows, self.asks))
        self.in_cycle = [int(a) for a in r.read("in.txt").split()]
        return r

    def stalled(self, seeds):
        for seed in seeds:
            rng = bench.Rng(seed)
            rate = {s: [0, 20, 50, 80][rng.below(4)] for s in ("s_in", "s_out", "s_ask", "s_ends")}
            self.run(seed=seed, **rate)

    def schedule(self):
        """of mlo_tile or mlo_untile: the cycle of each output beat from those of the input beats"""
        B, N = self.p["BEATS"], self.p["BLOCKS"]
        left, at, want = -1, 0, []
        for length in self.tiles:
            if self.what == DO:
                ready = [self.in_cycle[at + (t + 1) * B - 1] for t in range(length)] * N
                each, at = B, at + length * B
            else:
                ready = [self.in_cycle[at + ((N - 1) * length + t + 1) * B - 1] for t in range(length)]
                each, at = B * N, at + length * B * N
            for r in ready:
                left = max(left + 1, r + 2)
                want += range(left, left + each)
                left += each - 1
        return want

    def asked(self, i):
        """the cycle of tile i's request: with its first beat; through mlo_ahead behind the tile before it, but for the first one of iteration 0"""
        beat, rounds = sum(self.tiles[:i]) * self.p["BEATS"], self.p["ITERATIONS"]
        if not rounds or (self.asks[i] and self.iterations[i] % rounds == 0): return self.in_cycle[beat] + 1
        return self.in_cycle[beat - 1] + 2

    def timed(self):
        what = str(self.p)
        for s_in in (0, 30, 85):
            self.run(s_in=s_in, seed=s_in + 1)
            bench.check(NAME, self.out_cycle == self.schedule(), "%s s_in=%d: beats leave at %s, want %s" % (what, s_in, self.out_cycle[:30], self.schedule()[:30]))
            if self.what == DO:
                at = [self.asked(i) for i in range(len(self.tiles))]
                bench.check(NAME, self.ask_cycle == at, "%s: requests at %s, want %s" % (what, self.ask_cycle, at))
            if s_in == 0:                       # no gap: the output of mlo_tile; the input of mlo_untile, if tiles are equal
                line = self.out_cycle if self.what == DO else self.in_cycle
                if self.what == DO or len(set(self.tiles)) == 1:
                    bench.check(NAME, line == list(range(line[0], line[0] + len(line))), "%s: gaps: %s" % (what, line))


SHAPES = [dict(BEATS=4, TILE=4, BLOCKS=2), dict(BEATS=1, TILE=1, BLOCKS=2), dict(BEATS=3, TILE=1, BLOCKS=3), dict(BEATS=1, TILE=5, BLOCKS=4),
          dict(BEATS=5, TILE=3, BLOCKS=3), dict(BEATS=2, TILE=16, BLOCKS=2, WIDTH=1), dict(BEATS=7, TILE=2, BLOCKS=5)]
FRAMES = [[[5, 3], [1], [4, 4, 2]], [[1], [1], [2], [1]], [[7], [3, 1, 1]], [[9, 1], [1, 9], [3]]]


def main():
    for what, name in ((DO, "mlo_tile"), (UNDO, "mlo_untile"), (BOTH, "both")):
        for n, shape in enumerate(SHAPES):
            for f, frames in enumerate(FRAMES):
                Case(10 * n + f, what, frames, **shape).stalled(range(4 * n + f, 4 * n + f + 2))
        bench.ok(NAME, "%s: words, order, sideband with stalls on every stream" % name)
    for what, name in ((DO, "mlo_tile"), (UNDO, "mlo_untile")):
        for n, shape in enumerate(SHAPES):
            for frames in FRAMES[n % 2::2] + [[[shape["TILE"]] * 3, [2 * shape["TILE"]]]]:
                Case(n, what, frames, **shape).timed()
        bench.ok(NAME, "%s: the cycle of each beat; no gap" % name)
    for n, shape in enumerate(SHAPES):
        for rounds, frames in ((3, FRAMES[0]), (2, FRAMES[1]), (1, FRAMES[2]), (4, FRAMES[1])):
            case = Case(20 * n + rounds, DO, frames, ITERATIONS=rounds, **shape)
            case.stalled(range(4 * n + rounds, 4 * n + rounds + 2))
            if shape["BEATS"] > 2: case.timed()
    bench.ok(NAME, "mlo_ahead: the same requests; as soon as a tile is sure to come")
    for n, shape in enumerate(SHAPES):
        case = Case(n, DO, FRAMES[0], **shape)
        r = case.run(s_ask=100, tiles=2)
        # (a beat of the source's may wait; it is not taken)
        bench.check(NAME, r["taken"] == sum(case.tiles[:2]) * shape["BEATS"], "%s: %d beats taken" % (shape, r["taken"]))
    bench.ok(NAME, "mlo_tile: two requests wait, and no tile begins")


main()
bench.end(floor=7, simulations=404)
