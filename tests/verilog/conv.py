#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo_conv against Python integers: windows of all forms over grids of all forms, borders, frames of any length that follow each other, stalls; throughput and latency
of its header."""
import numpy as np
import bench

NAME = "conv"


def low(bits): return -(1 << (bits - 1))
def high(bits): return (1 << (bits - 1)) - 1


def numbers(rng, bits, shape):
    ends = rng.choice([low(bits), high(bits), 0, 1, -1], shape)
    return np.where(rng.random(shape) < 0.25, ends, rng.integers(low(bits), high(bits) + 1, shape))


def parts(p): return (p["TOP"] + 1) * (p["KH"] - p["TOP"]) * (p["LEFT"] + 1) * (p["KW"] - p["LEFT"]) if p["EDGES"] else 1


def part(p, t, tokens):
    """Which part of its window token t has, row by row and column by column."""
    row, column = divmod(t, p["W"])
    u, d = sum(row + i - p["TOP"] < 0 for i in range(p["KH"])), sum(t + (i - p["TOP"]) * p["W"] >= tokens for i in range(p["TOP"] + 1, p["KH"]))
    l, r = sum(column + j - p["LEFT"] < 0 for j in range(p["KW"])), sum(column + j - p["LEFT"] >= p["W"] for j in range(p["KW"]))
    return ((u * (p["KH"] - p["TOP"]) + d) * (p["LEFT"] + 1) + l) * (p["KW"] - p["LEFT"]) + r if p["EDGES"] else 0


class Layer:
    """The parameters of an iteration."""

    def __init__(self, rng, p):
        taps = p["KH"] * p["KW"]
        self.p, self.w = p, numbers(rng, p["WBITS"], (p["C"], p["KH"], p["KW"], parts(p)))
        self.bias = rng.integers(-(1 << 31), 1 << 31, p["C"]) if rng.random() < 0.2 else rng.integers(-(1 << 12), 1 << 12, p["C"])
        typical = p["XBITS"] + p["WBITS"] + taps.bit_length() // 2 + 12 - p["YBITS"]
        self.m = rng.integers(0, 1 << 15, p["C"])
        self.s = np.where(rng.random(p["C"]) < 0.9, np.clip(rng.integers(typical - 2, typical + 4, p["C"]), 1, 62), rng.integers(1, 63, p["C"]))

    def beats(self, rng):
        p = self.p
        kf = p["KH"] * p["KW"] // p["SIMD"]
        lanes = p["PE"] // bench.turns(p["PE"], kf)
        flat = self.w.reshape(p["C"], -1, parts(p))
        words = [bench.pack([flat[at + k][f * p["SIMD"] + s][e] for k in range(p["PE"]) for s in range(p["SIMD"])], p["WBITS"])
                 for at in range(0, p["C"], p["PE"]) for f in range(kf) for e in range(parts(p))]
        w = bench.param_beats(words, p["PE"] * p["SIMD"] * p["WBITS"], p["AXI_WIDTH"])
        words = [bench.pack([(int(self.bias[n]) & 0xffffffff) | int(self.m[n]) << 32 | int(self.s[n]) << 48 | int(rng.integers(0, 1024)) << 54 for n in range(at, at + lanes)], 64)
                 for at in range(0, p["C"], lanes)]
        return w, bench.param_beats(words, lanes * 64, p["AXI_WIDTH"])

    def apply(self, x):
        """of a frame, [tokens, C]"""
        p, y = self.p, []
        for t in range(len(x)):
            acc, e = self.bias.astype(object), part(p, t, len(x))
            for i in range(p["KH"]):
                for j in range(p["KW"]):
                    r, q = t // p["W"] + i - p["TOP"], t % p["W"] + j - p["LEFT"]
                    if r >= 0 and 0 <= q < p["W"] and r * p["W"] + q < len(x): acc = acc + x[r * p["W"] + q].astype(object) * self.w[:, i, j, e].astype(object)
            m = np.full(p["C"], 1 << 14) if p["SHIFT"] else self.m         # whatever the word says
            y.append([max(low(p["YBITS"]), min(high(p["YBITS"]), (int(a) * int(k) + (1 << (int(s) - 1))) >> int(s))) for a, k, s in zip(acc, m, self.s)])
        return y


def shape(C=4, KH=3, KW=3, W=5, TOP=1, LEFT=1, PE=2, SIMD=1, XBITS=8, WBITS=8, YBITS=8, SHIFT=0, RESIDENT=0, AXI_WIDTH=128, EDGES=0):
    most = KH * KW * (1 << (XBITS + WBITS - 2)) + (1 << 31)
    return dict(C=C, KH=KH, KW=KW, W=W, TOP=TOP, LEFT=LEFT, PE=PE, SIMD=SIMD, XBITS=XBITS, WBITS=WBITS, ABITS=most.bit_length() + 1, YBITS=YBITS, SHIFT=SHIFT,
                RESIDENT=RESIDENT, AXI_WIDTH=AXI_WIDTH, EDGES=EDGES)


def behind(p): return (p["KH"] - 1 - p["TOP"]) * p["W"] + p["KW"] - 1 - p["LEFT"]


def run(seed, p, iterations, lengths, s_in=0, s_w=0, s_c=0, s_out=0, hold=0, gap=0):
    """lengths: of the frames of each iteration"""
    rng = np.random.default_rng(seed)
    lines_in, lines_w, lines_c, want, layers, tokens = [], [], [], [], [], []
    for it in range(iterations):
        if not p["RESIDENT"] or it < p["RESIDENT"]:
            layers.append(Layer(rng, p))
            for lines, beats in zip((lines_w, lines_c), layers[-1].beats(rng)): lines += beats
        layer = layers[it % p["RESIDENT"] if p["RESIDENT"] else it]
        for n, length in enumerate(lengths):
            x = numbers(rng, p["XBITS"], (length, p["C"]))
            for t, y in enumerate(layer.apply(x)):
                user = (t == 0 and n == 0) | (t == length - 1) << 1 | int(rng.integers(0, 2)) << 2
                lines_in += [b | user << (p["PE"] * p["XBITS"]) for b in bench.beats(x[t], p["PE"], p["XBITS"])]
                want += [b | user << (p["PE"] * p["YBITS"]) for b in bench.beats(y, p["PE"], p["YBITS"])]
                tokens.append((t, length, t == 0 and n == 0))
    files = {"in.hex": bench.hexwords(lines_in, p["PE"] * p["XBITS"] + 3), "w.hex": bench.hexwords(lines_w, p["AXI_WIDTH"]), "c.hex": bench.hexwords(lines_c, p["AXI_WIDTH"])}
    r = bench.run(NAME, p, files, seed=seed, n_in=len(lines_in), n_w=len(lines_w), n_c=len(lines_c), n_out=len(want), s_in=s_in, s_w=s_w, s_c=s_c, s_out=s_out, hold=hold, gap=gap)
    rows = [line.split() for line in r.read("out.txt").splitlines()]
    got = [int(b, 16) if "x" not in b else b for _, b in rows]
    for i, (g, w) in enumerate(zip(got, want)): bench.check(NAME, g == w, "%s seed=%d: beat %d is %s, want %x" % (p, seed, i, g, w))
    kf, nf = p["KH"] * p["KW"] // p["SIMD"], p["C"] // p["PE"]
    bench.check(NAME, len(got) == len(want) and r["busy"] == len(tokens) * kf * nf, "%s: %d beats, busy %d" % (p, len(got), r["busy"]))
    return r, [int(a) for a in r.read("in.txt").split()], [int(a) for a, _ in rows], tokens, max(len(lines_w), len(lines_c))


# forms, and lengths of frames: whole grids, parts of rows, single tokens, less than a window reaches
SHAPES = [(shape(), [15, 5, 7, 1, 3]), (shape(C=3, KH=5, KW=5, W=7, TOP=2, LEFT=2, PE=3, SIMD=5), [49, 7, 12]), (shape(C=6, KH=7, KW=7, W=7, TOP=3, LEFT=3, PE=3, SIMD=7, XBITS=4, YBITS=16), [7, 49, 1, 2]),
          (shape(C=2, KH=7, KW=7, W=9, TOP=3, LEFT=3, PE=1, SIMD=1), [45]), (shape(C=5, KH=1, KW=1, W=4, TOP=0, LEFT=0, PE=5), [4, 9, 1, 1, 1]), (shape(C=2, KH=1, KW=1, W=1, TOP=0, LEFT=0, PE=1), [1, 3]),
          (shape(C=4, KH=4, KW=1, W=1, TOP=3, LEFT=0, PE=4, XBITS=16), [9, 1, 4]), (shape(C=4, KH=1, KW=6, W=6, TOP=0, LEFT=0, PE=2, SIMD=3), [12, 5, 6]), (shape(C=4, KH=2, KW=2, W=3, TOP=0, LEFT=1, PE=1, SIMD=2), [9, 1, 6]),
          (shape(C=4, KH=3, KW=5, W=2, TOP=2, LEFT=4, PE=2, SIMD=5, WBITS=4), [6, 3, 1]), (shape(C=8, KH=3, KW=3, W=1, TOP=1, LEFT=1, PE=8, SIMD=3, AXI_WIDTH=32), [7, 2]),
          (shape(C=4, KH=3, KW=3, W=4, PE=4, SIMD=3, SHIFT=1), [16, 4, 4]), (shape(C=2, KH=3, KW=3, W=3, PE=1, SIMD=3, RESIDENT=2), [9, 2, 9]), (shape(C=2, KH=6, KW=1, W=2, TOP=0, LEFT=0, PE=2, WBITS=2, XBITS=2), [6, 14, 1]),
          (shape(EDGES=1), [15, 5, 7, 1, 3]), (shape(C=2, KH=5, KW=4, W=7, TOP=3, LEFT=1, PE=1, SIMD=2, EDGES=1), [35, 9, 17]), (shape(C=4, W=1, PE=4, SIMD=3, EDGES=1), [1, 5, 2])]


def main():
    for n, (p, lengths) in enumerate(SHAPES):
        for seed in range(4):
            rng = bench.Rng(seed + 10 * n)
            rate = {s: [0, 20, 50, 90][rng.below(4)] if seed else 0 for s in ("s_in", "s_w", "s_c", "s_out")}
            run(100 * n + seed, p, 4, lengths, **rate)
    bench.ok(NAME, "words at all borders, frames of any length one after the other, order and sideband with stalls, two banks and resident ones")
    for n, (p, lengths) in enumerate(SHAPES):
        kf, nf = p["KH"] * p["KW"] // p["SIMD"], p["C"] // p["PE"]
        latency = kf + ((p["SIMD"] - 1).bit_length() + 1) // 2 + 13 + bench.turns(p["PE"], kf)
        _, _, _, _, load = run(n, p, 1, lengths)
        frames = lengths * max(1, -(-(load + 60) // (sum(lengths) * kf * nf)))          # that take as long as the next parameters
        r, at, out, tokens, load = run(n, p, 3, frames, hold=2 * load + 20)
        bench.check(NAME, r["blocked"] == 0, "blocked without a stall")
        want, free = [], 0
        for token, (t, length, first) in enumerate(tokens):     # begun when what it reaches is there, and the one in front is done
            begin = max(free, at[(token + min(behind(p), length - 1 - t)) * nf + nf - 1] + 2) + first
            want += [begin + kf * g + latency - 2 for g in range(nf)]
            free = begin + kf * nf
        bench.check(NAME, out == want, "%s: beats leave at %s, want %s" % (p, out[:60], want[:60]))
        steps = len(tokens) * kf * nf + 2 - kf                  # two changes of iteration behind the first beat
        bench.check(NAME, out[-1] - out[0] == steps, "%s: %d cycles, want %d" % (p, out[-1] - out[0], steps))
        r, _, _, _, _ = run(n, p, 3, frames, s_out=80)
        bench.check(NAME, r["blocked"] > 0, "never blocked behind a slow sink")
    bench.ok(NAME, "a step per cycle from frame to frame, one more at a change of iteration; latency; stat")


if __name__ == "__main__":
    main()
    bench.end(floor=2, simulations=119)
