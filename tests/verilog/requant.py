#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo_requant (and with it mlo_requantize) against numpy: words at every shift and at the borders, order, sideband, throughput and latency."""
import numpy as np
import bench

NAME = "requant"


def requantize(x, b, m, s, bits):
    """the rule of the specification on Python integers"""
    y = ((int(x) + int(b)) * int(m) + (1 << (int(s) - 1))) >> int(s)
    return max(-(1 << (bits - 1)), min((1 << (bits - 1)) - 1, y))


def run(seed, iterations, tokens, C=8, PE=2, XBITS=16, YBITS=8, TABLE=0, TBITS=8, SHIFT=0, AXI_WIDTH=128, shifts=None, **how):
    rng = np.random.default_rng(seed)
    lines_in, lines_c, lines_t, want, bits = [], [], [], [], TBITS if TABLE else YBITS
    lo, hi = -(1 << (XBITS - 1)), (1 << (XBITS - 1)) - 1
    for it in range(iterations):
        B = rng.integers(lo, hi + 1, C) * rng.integers(0, 2, C)             # half of the channels have no offset
        M = rng.choice([0, 1, (1 << 15) - 1, 1 << 14, *rng.integers(0, 1 << 15, 4)], C)
        S = np.full(C, shifts[it % len(shifts)]) if shifts else np.clip(XBITS + 14 - bits + rng.integers(-4, 4, C), 1, 62)
        words = [(int(b) & 0xffffffff) | int(m) << 32 | int(s) << 48 | int(rng.integers(0, 1024)) << 54 for b, m, s in zip(B, M, S)]
        if SHIFT:
            M = np.full(C, 1 << 14)              # and the bits of M said anything
        lines_c += bench.param_beats([bench.pack(words[n:n + PE], 64) for n in range(0, C, PE)], PE * 64, AXI_WIDTH)
        T = rng.integers(-(1 << (YBITS - 1)), 1 << (YBITS - 1), 1 << TBITS)
        if TABLE:
            lines_t += bench.param_beats([int(v) & ((1 << YBITS) - 1) for v in T], YBITS, AXI_WIDTH)
        for token in range(tokens):
            x = rng.integers(lo, hi + 1, C)
            for border in (lo, hi, 0, -1, 1):
                x[rng.integers(0, C)] = border
            c = rng.integers(0, C)
            if M[c]:                            # a product next to a tie
                x[c] = max(lo, min(hi, ((1 << int(S[c])) * int(rng.integers(-3, 4)) + (1 << (int(S[c]) - 1))) // int(M[c]) - int(B[c])))
            user = (token == 0) | int(rng.integers(0, 4)) << 1
            lines_in += [b | user << (PE * XBITS) for b in bench.beats(x, PE, XBITS)]
            y = [requantize(*v, bits) for v in zip(x, B, M, S)]
            if TABLE:
                y = [int(T[v + (1 << (TBITS - 1))]) for v in y]
            want += [b | user << (PE * YBITS) for b in bench.beats(y, PE, YBITS)]
    plus = dict(s_in=0, s_c=0, s_t=0, s_out=0, hold=0, gap=0)
    plus.update(how)
    p = dict(C=C, PE=PE, XBITS=XBITS, YBITS=YBITS, TABLE=TABLE, TBITS=TBITS, SHIFT=SHIFT, AXI_WIDTH=AXI_WIDTH)
    files = {"in.hex": bench.hexwords(lines_in, PE * XBITS + 3), "c.hex": bench.hexwords(lines_c, AXI_WIDTH), "t.hex": bench.hexwords(lines_t, AXI_WIDTH)}
    r = bench.run(NAME, p, files, seed=seed, n_in=len(lines_in), n_c=len(lines_c), n_t=len(lines_t), n_out=len(want), **plus)
    rows = [line.split() for line in r.read("out.txt").splitlines()]
    got = [int(b, 16) if "x" not in b else b for _, b in rows]
    for i, (g, w) in enumerate(zip(got, want)):
        bench.check(NAME, g == w, "%s seed=%d: beat %d is %s, want %x" % (p, seed, i, g, w))
    bench.check(NAME, len(got) == len(want) and r["busy"] == len(want), "%s: %d beats, busy %d" % (p, len(got), r["busy"]))
    return r, [int(a) for a in r.read("in.txt").split()], [int(a) for a, _ in rows]


SHAPES = [dict(C=8, PE=2), dict(C=6, PE=6), dict(C=5, PE=1, XBITS=8, YBITS=16), dict(C=12, PE=3, XBITS=16, YBITS=16), dict(C=9, PE=3, XBITS=24, YBITS=5),
          dict(C=1, PE=1, XBITS=8, AXI_WIDTH=32), dict(C=4, PE=2, XBITS=32, YBITS=8, AXI_WIDTH=64),
          dict(C=8, PE=2, SHIFT=1), dict(C=9, PE=3, XBITS=12, YBITS=4, SHIFT=1), dict(C=2, PE=1, XBITS=8, YBITS=8, SHIFT=1),
          dict(C=8, PE=2, TABLE=1), dict(C=6, PE=6, TABLE=1, TBITS=5, YBITS=16), dict(C=4, PE=1, XBITS=12, TABLE=1, TBITS=6, YBITS=3, SHIFT=1, AXI_WIDTH=32)]


def main():
    for n, shape in enumerate(SHAPES):
        run(n, 62, 2, shifts=range(1, 63), **shape)
        for seed in range(3):
            rng = bench.Rng(seed + 10 * n)
            rate = {s: [0, 20, 50, 90][rng.below(4)] for s in ("s_in", "s_c", "s_t", "s_out")}
            run(100 + seed, 20, 4, **rate, **shape)
    bench.ok(NAME, "words at every shift, order and sideband with stalls, with multipliers and without, with tables and without")
    for n, shape in enumerate(SHAPES):
        beats = shape["C"] // shape["PE"]
        table = shape.get("TABLE", 0)
        load = table * (1 << shape.get("TBITS", 8)) * 16 // shape.get("AXI_WIDTH", 128)     # beats of a table, at most
        tokens = -(-max(6, load + 2) // beats)
        _, at, out = run(n, 5, tokens, hold=20 + 2 * load, **shape)
        want = [at[0] + 10 + table + g + g // (beats * tokens) for g in range(len(out))]
        bench.check(NAME, out == want, "%s: beats leave at %s, want %s" % (shape, out, want))
        r, at, out = run(n, 4, 2, hold=20 + 2 * load, gap=20 + load, **shape)
        want = [a + 9 + table + (i % (2 * beats) == 0) for i, a in enumerate(at)]
        bench.check(NAME, out == want, "%s: beats taken at %s leave at %s" % (shape, at, out))
        bench.check(NAME, r["blocked"] == 0, "blocked without a stall")
        r, _, _ = run(n, 5, tokens, s_out=80, **shape)
        bench.check(NAME, r["blocked"] > 0, "never blocked behind a slow sink")
    bench.ok(NAME, "a beat per cycle, latency 9 (with a table 10), one more at a change of iteration; stat")


main()
bench.end(floor=2, simulations=91)
