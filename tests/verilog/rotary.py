#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo_rotary against Python integers: every shift, extremes, positions over frames of all lengths and from any on, several heads, order, sideband, throughput and latency."""
import numpy as np
import bench

NAME = "rotary"


def low(bits): return -(1 << (bits - 1))
def high(bits): return (1 << (bits - 1)) - 1


def turn(x, table, m, s, D, bits):
    """one token at one position, on Python integers"""
    y = []
    for at in range(0, len(x), 2):
        a, b, c, n = (int(v) for v in (x[at], x[at + 1], table[at % D], table[at % D + 1]))
        y += [max(low(bits), min(high(bits), (acc * m + (1 << (s - 1))) >> s)) for acc in (a * c - b * n, a * n + b * c)]
    return y


def numbers(rng, bits, shape):
    ends = rng.choice([low(bits), high(bits), 0, 1, -1], shape)
    return np.where(rng.random(shape) < 0.25, ends, rng.integers(low(bits), high(bits) + 1, shape) >> rng.integers(0, bits, shape))


def run(seed, iterations, frames, C=8, D=4, T=4, PE=2, XBITS=16, YBITS=8, SHIFT=0, RESIDENT=0, KEPT=0, AXI_WIDTH=128, shifts=None, lengths=None, jobs=False, **how):
    """frames of each iteration, of any length up to T unless lengths says which; jobs: from any position on"""
    rng = np.random.default_rng(seed)
    lines_in, lines_c, lines_t, lines_j, want, banks = [], [], [], [], [], []
    for it in range(iterations):
        if not RESIDENT or it < RESIDENT:
            m = int(rng.choice([0, 1, (1 << 15) - 1, 1 << 14, *rng.integers(0, 1 << 15, 4)]))
            s = shifts[it % len(shifts)] if shifts else int(np.clip(XBITS + 28 - YBITS + rng.integers(-3, 4), 1, 62))
            table = numbers(rng, 16, (T, D))
            if it % 3 == 2: table[:, D // 2 // 2 * 2:] = np.tile([1 << 14, 0], (T, (D + 2) // 4))[:, :D - D // 2 // 2 * 2]     # half of the pairs stay
            lines_c += bench.param_beats([m | int(rng.integers(0, 1 << 16)) << 16 | s << 32 | int(rng.integers(0, 1 << 26)) << 38], 64, AXI_WIDTH)
            words = [bench.pack(table.ravel()[at:at + PE].tolist(), 16) for at in range(0, T * D, PE)]
            lines_t += bench.param_beats(words, PE * 16, AXI_WIDTH)
            banks.append((1 << 14 if SHIFT else m, s, table))       # and the bits of M said anything
        m, s, table = banks[it % RESIDENT if RESIDENT else it]
        if KEPT: table = banks[0][2]                                # whatever came since
        for frame in range(frames):
            tokens = lengths[(it * frames + frame) % len(lengths)] if lengths else 1 + int(rng.integers(0, T))
            start = int(rng.integers(0, T - tokens + 1)) if jobs else 0
            lines_j += [start << 16 | int(rng.integers(0, 1 << 16))]
            for token in range(tokens):
                x = numbers(rng, XBITS, C)
                user = (token == 0 and frame == 0) | (token == tokens - 1) << 1 | int(rng.integers(0, 2)) << 2
                lines_in += [b | user << (PE * XBITS) for b in bench.beats(x, PE, XBITS)]
                want += [b | user << (PE * YBITS) for b in bench.beats(turn(x, table[start + token], m, s, D, YBITS), PE, YBITS)]
    plus = dict(s_in=0, s_c=0, s_t=0, s_out=0, hold=0, gap=0)
    plus.update(how)
    p = dict(C=C, D=D, T=T, PE=PE, XBITS=XBITS, YBITS=YBITS, SHIFT=SHIFT, RESIDENT=RESIDENT, KEPT=KEPT, AXI_WIDTH=AXI_WIDTH)
    files = {"in.hex": bench.hexwords(lines_in, PE * XBITS + 3), "c.hex": bench.hexwords(lines_c, AXI_WIDTH), "t.hex": bench.hexwords(lines_t, AXI_WIDTH),
             "jobs.hex": bench.hexwords(lines_j, 32)}
    r = bench.run(NAME, p, files, seed=seed, n_in=len(lines_in), n_c=len(lines_c), n_t=len(lines_t), n_out=len(want), jobs=len(lines_j) if jobs else 0, **plus)
    rows = [line.split() for line in r.read("out.txt").splitlines()]
    got = [int(b, 16) if "x" not in b else b for _, b in rows]
    for i, (g, w) in enumerate(zip(got, want)):
        bench.check(NAME, g == w, "%s seed=%d: beat %d is %s, want %x" % (p, seed, i, g, w))
    bench.check(NAME, len(got) == len(want) and r["busy"] == len(want), "%s: %d beats, busy %d" % (p, len(got), r["busy"]))
    return r, [int(a) for a in r.read("in.txt").split()], [int(a) for a, _ in rows], [len(lines_c), len(lines_t)]


SHAPES = [dict(C=8, D=4, T=4, PE=2), dict(C=2, D=2, T=1, PE=2), dict(C=12, D=4, T=3, PE=4, YBITS=16), dict(C=8, D=8, T=7, PE=8, XBITS=8), dict(C=18, D=6, T=5, PE=2, XBITS=12, YBITS=9),
          dict(C=24, D=8, T=6, PE=4, XBITS=16, YBITS=16, AXI_WIDTH=32), dict(C=4, D=2, T=32, PE=2, XBITS=8, AXI_WIDTH=64), dict(C=16, D=16, T=2, PE=16, YBITS=5, AXI_WIDTH=64),
          dict(C=8, D=4, T=4, PE=2, SHIFT=1), dict(C=12, D=12, T=3, PE=6, XBITS=8, YBITS=8, SHIFT=1), dict(C=8, D=4, T=3, PE=4, RESIDENT=3), dict(C=6, D=2, T=5, PE=2, RESIDENT=2, SHIFT=1),
          dict(C=8, D=4, T=5, PE=2, KEPT=1), dict(C=12, D=12, T=3, PE=6, KEPT=1, RESIDENT=3, AXI_WIDTH=32)]


def main():
    for n, shape in enumerate(SHAPES):
        run(n, 62, 2, shifts=range(1, 63), **shape)
        for seed in range(3):
            rng = bench.Rng(seed + 10 * n)
            rate = {s: [0, 20, 50, 90][rng.below(4)] for s in ("s_in", "s_c", "s_t", "s_out")}
            run(100 + seed, 12, 3, **rate, **shape)
            run(200 + seed, 12, 4, jobs=True, **rate, **shape)
    bench.ok(NAME, "words at every shift and position, frames from 0 and from any position on, order and sideband with stalls, with multipliers and without, two banks, resident ones, and one table for all")
    for n, shape in enumerate(SHAPES):
        beats, T = shape["C"] // shape["PE"], shape["T"]
        frames = max(1, -(-(T * shape["D"] * 16 // shape.get("AXI_WIDTH", 128) + 60) // (T * beats)))     # that take as long as the next table
        _, _, _, loads = run(n, 1, 1, **shape)
        hold = 20 + 4 * sum(loads)
        _, at, out, _ = run(n, 5, frames, lengths=[T], hold=hold, **shape)
        want = [at[0] + 12 + g + g // (beats * T * frames) for g in range(len(out))]
        bench.check(NAME, out == want, "%s: beats leave at %s, want %s" % (shape, out[:80], want[:80]))
        r, at, out, _ = run(n, 4, 1, lengths=[T], hold=hold, gap=hold, **shape)
        want = [a + 11 + (i % (T * beats) == 0) for i, a in enumerate(at)]
        bench.check(NAME, out == want, "%s: beats taken at %s leave at %s" % (shape, at[:40], out[:40]))
        bench.check(NAME, r["blocked"] == 0, "blocked without a stall")
        r, _, _, _ = run(n, 5, frames, s_out=80, **shape)
        bench.check(NAME, r["blocked"] > 0, "never blocked behind a slow sink")
    bench.ok(NAME, "a beat per cycle, latency 11, one more at a change of iteration; stat")


if __name__ == "__main__":
    main()
    bench.end(floor=2, simulations=154)
