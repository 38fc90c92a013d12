#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo_prefix: rows in front of each frame, word by word, of the iteration that is on, frames of all lengths, with stalls; and each beat in its cycle."""
import bench

NAME = "prefix"


def stimulus(rng, frames, BEATS, WIDTH, P, RESIDENT):
    """frames: (tokens, first). The beats that go in, the banks' words, and what comes out: (word, whether it is the frame's own)"""
    lines_in, banks, want, iteration = [], [], [], -1
    for tokens, first in frames:
        if first:
            iteration += 1
            if not RESIDENT or iteration < RESIDENT: banks.append(rng.ints(P * BEATS, WIDTH))
        want += [(4 << WIDTH | word, False) for word in banks[iteration % RESIDENT if RESIDENT else iteration]]
        for token in range(tokens):
            user = int(first and token == 0) | (token == tokens - 1) << 1 | rng.below(2) << 2
            beats = [user << WIDTH | word for word in rng.ints(BEATS, WIDTH)]
            lines_in += beats
            want += [(word, True) for word in beats]
    return lines_in, banks, want


def run(seed, frames, BEATS=4, WIDTH=16, P=1, RESIDENT=0, AXI_WIDTH=128, **how):
    """Returns in which cycles beats were taken, and left, of those whether they are a frame's own."""
    shape = dict(BEATS=BEATS, WIDTH=WIDTH, P=P, RESIDENT=RESIDENT)
    lines_in, banks, want = stimulus(bench.Rng(seed), frames, **shape)
    lines_p = [b for bank in banks for b in bench.param_beats(bank, WIDTH, AXI_WIDTH)]
    plus = dict(dict(s_in=0, s_p=0, s_out=0, hold=0, gap=0), **how)
    files = {"in.hex": bench.hexwords(lines_in, WIDTH + 3), "p.hex": bench.hexwords(lines_p, AXI_WIDTH)}
    r = bench.run(NAME, dict(shape, AXI_WIDTH=AXI_WIDTH), files, seed=seed, n_in=len(lines_in), n_p=len(lines_p), n_out=len(want), **plus)
    rows = [line.split() for line in r.read("out.txt").splitlines()]
    for i, ((_, got), (word, _)) in enumerate(zip(rows, want)):
        bench.check(NAME, got == "%0*x" % (len(got), word), "%s seed=%d: beat %d is %s, want %x" % (shape, seed, i, got, word))
    bench.check(NAME, len(rows) == len(want), "%s: %d beats, %d expected" % (shape, len(rows), len(want)))
    return [int(a) for a in r.read("in.txt").split()], [int(a) for a, _ in rows], [own for _, own in want]


class Prefix:
    """When beats go in and out: each is issued (a row's word read, a frame's own beat taken), and leaves 2 cycles later or when it can; three are inside."""

    def __init__(self):
        self.issued, self.left = -1, [-1, -1, -1]

    def issue(self, comes, changes=False):
        """A beat that is there from `comes` on; changes: the iteration's change is in front of it."""
        self.issued = max(max(self.issued + 1, comes) + changes, self.left[-3] + 1)
        return self.issued

    def leave(self, ready):
        """And it leaves, if the receiver is ready from then on; returns when."""
        self.left.append(max(self.issued + 2, self.left[-1] + 1, ready))
        return self.left[-1]


def schedule(frames, words, beats, opens, left=None):
    """In which cycles beats are taken and leave, when each comes as soon as the one before is taken; left: when they did, behind a sink that stalls."""
    model, taken, out, comes = Prefix(), [], [], opens
    ready = lambda: left[len(out)] if left else 0
    for tokens, first in frames:
        for i in range(words):
            model.issue(comes, first and i == 0)
            out.append(model.leave(ready()))
        for _ in range(tokens * beats):
            taken.append(model.issue(comes))
            out.append(model.leave(ready()))
            comes = taken[-1] + 1
    return taken, out


SHAPES = [dict(BEATS=4, WIDTH=16, P=1), dict(BEATS=1, WIDTH=1, P=1), dict(BEATS=1, WIDTH=8, P=3, AXI_WIDTH=32), dict(BEATS=3, WIDTH=24, P=16, AXI_WIDTH=64),
          dict(BEATS=2, WIDTH=64, P=3, AXI_WIDTH=32), dict(BEATS=5, WIDTH=12, P=2, RESIDENT=3), dict(BEATS=1, WIDTH=7, P=1, RESIDENT=1, AXI_WIDTH=8),
          dict(BEATS=8, WIDTH=32, P=16, RESIDENT=2)]


def some_frames(rng, iterations, most):
    """so many iterations of 1 to 3 frames of any length up to most"""
    return [(rng.between(1, most), i == 0) for _ in range(iterations) for i in range(rng.between(1, 3))]


def on_the_cycle(n, shape):
    """nothing stalls, or the sink; two iterations (any number, of resident rows), as a third one's rows would be late"""
    words, beats, hold = shape["P"] * shape["BEATS"], shape["BEATS"], 40 + 2 * shape["P"] * shape["BEATS"] * max(2, shape.get("RESIDENT", 0)) * (1 + shape["WIDTH"] // shape.get("AXI_WIDTH", 128))
    rng = bench.Rng(n)
    frames = [(tokens, first) for tokens, first in some_frames(rng, 6 if shape.get("RESIDENT") else 2, 5)]
    taken, left, own = run(n, frames, hold=hold, **shape)
    first = hold + 1                            # in which the frame's first beat comes
    bench.check(NAME, (taken, left) == schedule(frames, words, beats, first), "%s: taken in %s, left in %s; the schedule says %s" % (shape, taken, left, schedule(frames, words, beats, first)))
    bench.check(NAME, left[0] == first + 3 and taken[0] == first + 1 + words, "%s: it came in %d; the rows leave from %d on, it is taken in %d" % (shape, first, left[0], taken[0]))
    total = sum(words + tokens * beats + f for tokens, f in frames)
    bench.check(NAME, left[-1] - first + 1 == total + 2, "%s: %d cycles, they have %d" % (shape, left[-1] - first + 1, total))
    bench.check(NAME, [t for t, o in zip(left, own) if o] == [t + 2 for t in taken], "%s: own beats taken in %s leave in %s" % (shape, taken, left))
    for seed, stall in (1, 30), (2, 70), (3, 95):
        taken, left, _ = run(100 * n + seed, frames, hold=hold, s_out=stall, **shape)
        want, out = schedule(frames, words, beats, first, left)
        bench.check(NAME, out == left and want == taken, "%s: behind a sink beats are taken in %s, the schedule says %s" % (shape, taken, want))
    # beats that come one by one: each leaves 2 cycles after it came; a frame's first one behind the rows
    taken, left, own = run(n, frames, hold=hold, gap=words + 20, **shape)
    bench.check(NAME, [t for t, o in zip(left, own) if o] == [t + 2 for t in taken], "%s: beats taken in %s leave in %s" % (shape, taken, left))
    starts = [i for i, o in enumerate(own) if not o and (i == 0 or own[i - 1])]
    for (tokens, changes), i in zip(frames, starts):
        came = taken[sum(own[:i])] - words - changes
        bench.check(NAME, left[i:i + words] == [came + changes + 2 + j for j in range(words)], "%s: rows leave in %s; the frame came in %d" % (shape, left[i:i + words], came))


def main():
    for n, shape in enumerate(SHAPES):
        for seed in range(6):
            rng = bench.Rng(seed + 10 * n)
            rate = {s: [0, 20, 50, 90][rng.below(4)] for s in ("s_in", "s_p", "s_out")}
            run(100 * n + seed, some_frames(rng, 8, 6), **rate, **shape)
    bench.ok(NAME, "rows of each iteration in front of frames of any length, order and sideband with stalls, two banks and resident ones")
    for n, shape in enumerate(SHAPES): on_the_cycle(n, shape)
    bench.ok(NAME, "each beat in its cycle: one a cycle, latency 2, one more at a change of iteration, three inside behind a sink that stalls")


if __name__ == "__main__":
    main()
    bench.end(floor=2, simulations=88)
