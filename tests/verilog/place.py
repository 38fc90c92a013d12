#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo_place against Python integers: every shift, extremes, positions over frames of all lengths and from any on, order, sideband, throughput and latency."""
import numpy as np
import bench
from rotary import high, low, numbers

NAME = "place"


def placed(x, row, mults, shifts, bits):
    """one token at one position, on Python integers"""
    sums = ((int(a) + int(b)) * int(m) + (1 << (int(s) - 1)) >> int(s) for a, b, m, s in zip(x, row, mults, shifts))
    return [max(low(bits), min(high(bits), y)) for y in sums]


def bank(rng, C, T, PE, YBITS, SHIFT, AXI_WIDTH, shift):
    """an iteration's parameters: their beats, and what they say"""
    mults = rng.choice([0, 1, (1 << 15) - 1, 1 << 14, *rng.integers(0, 1 << 15, 4)], C)
    shifts = np.clip(shift + rng.integers(-2, 3, C), 1, 62) if shift else np.clip(32 - YBITS + rng.integers(-3, 4, C), 1, 62)
    table = numbers(rng, 16, (T, C))
    words = [int(m) | int(s) << 16 | int(rng.integers(0, 1 << 10)) << 22 for m, s in zip(mults, shifts)]
    c = [bench.pack(words[at:at + PE], 32) for at in range(0, C, PE)]
    t = [bench.pack(table.ravel()[at:at + PE].tolist(), 16) for at in range(0, T * C, PE)]
    if SHIFT: mults = np.full(C, 1 << 14)                           # and the bits of M said anything
    return bench.param_beats(c, PE * 32, AXI_WIDTH), bench.param_beats(t, PE * 16, AXI_WIDTH), (mults, shifts, table)


def run(seed, iterations, frames, C=8, T=4, PE=2, XBITS=16, YBITS=8, SHIFT=0, RESIDENT=0, AXI_WIDTH=128, shifts=None, lengths=None, jobs=False, **how):
    """frames of each iteration, of any length up to T unless lengths says which; jobs: from any position on"""
    rng = np.random.default_rng(seed)
    lines_in, lines_c, lines_t, lines_j, want, banks = [], [], [], [], [], []
    for it in range(iterations):
        if not RESIDENT or it < RESIDENT:
            c, t, said = bank(rng, C, T, PE, YBITS, SHIFT, AXI_WIDTH, shifts[it % len(shifts)] if shifts else 0)
            lines_c += c
            lines_t += t
            banks.append(said)
        mults, places, table = banks[it % RESIDENT if RESIDENT else it]
        for frame in range(frames):
            tokens = lengths[(it * frames + frame) % len(lengths)] if lengths else 1 + int(rng.integers(0, T))
            start = int(rng.integers(0, T - tokens + 1)) if jobs else 0
            lines_j += [start << 16 | int(rng.integers(0, 1 << 16))]
            for token in range(tokens):
                x = numbers(rng, XBITS, C)
                user = (token == 0 and frame == 0) | (token == tokens - 1) << 1 | int(rng.integers(0, 2)) << 2
                lines_in += [b | user << (PE * XBITS) for b in bench.beats(x, PE, XBITS)]
                want += [b | user << (PE * YBITS) for b in bench.beats(placed(x, table[start + token], mults, places, YBITS), PE, YBITS)]
    plus = dict(s_in=0, s_c=0, s_t=0, s_out=0, hold=0, gap=0)
    plus.update(how)
    p = dict(C=C, T=T, PE=PE, XBITS=XBITS, YBITS=YBITS, SHIFT=SHIFT, RESIDENT=RESIDENT, AXI_WIDTH=AXI_WIDTH)
    files = {"in.hex": bench.hexwords(lines_in, PE * XBITS + 3), "c.hex": bench.hexwords(lines_c, AXI_WIDTH), "t.hex": bench.hexwords(lines_t, AXI_WIDTH),
             "jobs.hex": bench.hexwords(lines_j, 32)}
    r = bench.run(NAME, p, files, seed=seed, n_in=len(lines_in), n_c=len(lines_c), n_t=len(lines_t), n_out=len(want), jobs=len(lines_j) if jobs else 0, **plus)
    rows = [line.split() for line in r.read("out.txt").splitlines()]
    got = [int(b, 16) if "x" not in b else b for _, b in rows]
    for i, (g, w) in enumerate(zip(got, want)):
        bench.check(NAME, g == w, "%s seed=%d: beat %d is %s, want %x" % (p, seed, i, g, w))
    bench.check(NAME, len(got) == len(want) and r["busy"] == len(want), "%s: %d beats, busy %d" % (p, len(got), r["busy"]))
    return r, [int(a) for a in r.read("in.txt").split()], [int(a) for a, _ in rows], [len(lines_c), len(lines_t)]


SHAPES = [dict(C=8, T=4, PE=2), dict(C=1, T=1, PE=1), dict(C=12, T=3, PE=4, YBITS=16), dict(C=15, T=5, PE=3, XBITS=12, YBITS=9),
          dict(C=24, T=6, PE=4, YBITS=16, AXI_WIDTH=32), dict(C=8, T=4, PE=2, SHIFT=1), dict(C=8, T=3, PE=8, RESIDENT=3, AXI_WIDTH=64)]


def main():
    for n, shape in enumerate(SHAPES):
        run(n, 62, 2, shifts=range(1, 63), **shape)
        for seed in range(2):
            rng = bench.Rng(seed + 10 * n)
            rate = {s: [0, 20, 50, 90][rng.below(4)] for s in ("s_in", "s_c", "s_t", "s_out")}
            run(100 + seed, 12, 3, **rate, **shape)
            run(200 + seed, 12, 4, jobs=True, **rate, **shape)
    bench.ok(NAME, "words at every shift and position, frames from 0 and from any position on, order and sideband with stalls, with multipliers and without, two banks and resident ones")
    for n, shape in enumerate(SHAPES):
        beats, T = shape["C"] // shape["PE"], shape["T"]
        _, _, _, loads = run(n, 1, 1, **shape)
        hold = 20 + 4 * sum(loads)
        frames = max(1, -(-(sum(loads) + 60) // (T * beats)))     # that take as long as the next table
        _, at, out, _ = run(n, 5, frames, lengths=[T], hold=hold, **shape)
        want = [at[0] + 10 + g + g // (beats * T * frames) for g in range(len(out))]
        bench.check(NAME, out == want, "%s: beats leave at %s, want %s" % (shape, out[:80], want[:80]))
        r, at, out, _ = run(n, 4, 1, lengths=[T], hold=hold, gap=hold, **shape)
        want = [a + 9 + (i % (T * beats) == 0) for i, a in enumerate(at)]
        bench.check(NAME, out == want, "%s: beats taken at %s leave at %s" % (shape, at[:40], out[:40]))
        bench.check(NAME, r["blocked"] == 0, "blocked without a stall")
        r, _, _, _ = run(n, 5, frames, s_out=80, **shape)
        bench.check(NAME, r["blocked"] > 0, "never blocked behind a slow sink")
    bench.ok(NAME, "a beat per cycle, latency 9, one more at a change of iteration; stat")


if __name__ == "__main__":
    main()
    bench.end(floor=2, simulations=63)
