#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo_replay: each frame as often as there are iterations, its words, order and sideband, the cycle of each beat."""
import bench

NAME = "replay"


class Case:
    """Frames (their lengths) of random words, each to leave so many times."""

    def __init__(self, seed, frames, iterations, BEATS, T, WIDTH=9):
        self.frames, self.iterations, self.p = frames, iterations, dict(WIDTH=WIDTH, BEATS=BEATS, T=T)
        rng, passes = bench.Rng(seed), max(1, iterations)
        self.sent, self.want, self.beats = [], [], [n * BEATS for n in frames]
        for f, length in enumerate(frames):
            tokens = [(rng.ints(BEATS, WIDTH), rng.below(2), int(t == length - 1)) for t in range(length)]
            self.sent += [w | (key << 2 | last << 1 | rng.below(2)) << WIDTH for words, key, last in tokens for w in words]
            for k in range(passes):
                for t, (words, key, last) in enumerate(tokens):
                    first = t == 0 and (passes > 1 or f == 0)
                    self.want += [w | (key << 2 | last << 1 | first) << WIDTH for w in words]

    def run(self, seed=1, s_in=0, s_out=0):
        what = "%s %s iterations=%d seed=%d" % (self.p, self.frames, self.iterations, seed)
        files = {"in.hex": bench.hexwords(self.sent, self.p["WIDTH"] + 3)}
        r = bench.run(NAME, self.p, files, seed=seed, s_in=s_in, s_out=s_out, iterations=self.iterations, n_out=len(self.want))
        rows = [line.split() for line in r.read("out.txt").splitlines()]
        self.out_cycle, self.in_cycle = [int(a) for a, _ in rows], [int(a) for a in r.read("in.txt").split()]
        for i, ((_, g), w) in enumerate(zip(rows, self.want)):
            bench.check(NAME, "x" not in g and int(g, 16) == w, "%s: beat %d is %s, want %x" % (what, i, g, w))
        bench.check(NAME, len(rows) == len(self.want), "%s: %d beats" % (what, len(rows)))

    def stalled(self, seeds):
        for seed in seeds:
            rng = bench.Rng(seed)
            self.run(seed=seed, **{s: [0, 20, 50, 80][rng.below(4)] for s in ("s_in", "s_out")})

    def schedule(self):
        """the cycle of each output beat from those of the input beats: two later; then beat after beat"""
        left, at, want = -1, 0, []
        for n in self.beats:
            for k in range(max(1, self.iterations)):
                for b in range(n):
                    left = max(left + 1, self.in_cycle[at + b] + 2)
                    want.append(left)
            at += n
        return want

    def timed(self):
        for s_in in (0, 30, 85):
            self.run(s_in=s_in, seed=s_in + 1)
            want = self.schedule()
            bench.check(NAME, self.out_cycle == want, "%s s_in=%d: beats leave at %s, want %s" % (self.p, s_in, self.out_cycle[:30], want[:30]))
            if s_in: continue
            # a frame is taken from the cycle on after its forerunner's last beat was read, which is the cycle before that left
            begins = [sum(self.beats[:f]) for f in range(1, len(self.beats))]
            done = [sum(self.beats[:f]) * max(1, self.iterations) - 1 for f in range(1, len(self.beats))]
            for b, d in zip(begins, done):
                bench.check(NAME, self.in_cycle[b] == self.out_cycle[d], "%s: a frame is taken at %d, the one before left at %d" % (self.p, self.in_cycle[b], self.out_cycle[d]))


SHAPES = [dict(BEATS=4, T=4), dict(BEATS=1, T=2), dict(BEATS=3, T=1), dict(BEATS=1, T=5), dict(BEATS=5, T=3), dict(BEATS=2, T=16, WIDTH=1)]


def frames(n, T): return [1 + (7 * n + 3 * f) % T for f in range(3)] + [T, 1, T]


def main():
    for n, shape in enumerate(SHAPES):
        for iterations in (0, 1, 2, 5):
            Case(n, frames(n, shape["T"]), iterations, **shape).stalled(range(3 * n, 3 * n + 3))
    bench.ok(NAME, "words, order, sideband with stalls on both streams")
    for n, shape in enumerate(SHAPES):
        for iterations in (1, 3):
            Case(n, frames(n, shape["T"]), iterations, **shape).timed()
    bench.ok(NAME, "the cycle of each beat; no gap between passes; when the next frame is taken")


main()
bench.end(floor=2, simulations=108)
