# SPDX-License-Identifier: MIT
"""mlo_requantize against Python's integers: one multiplier, two halves, four quarters, for DSP blocks of either width."""
import bench

NAME = "requantize"
GRID = [dict(ABITS=a, MBITS=m, YBITS=y, DEEP=deep, DSP=dsp)
        for a, m, y in ((33, 16, 8), (21, 22, 8), (23, 22, 16), (19, 19, 9), (17, 16, 8), (40, 30, 12)) for deep in (0, 1) for dsp in (18, 27)]


def draw(rng, bits, corners):
    """signed, as an integer"""
    if rng.chance(20): return corners[rng.below(len(corners))]
    x = rng.bits(bits)
    return x - (1 << bits) if x >> (bits - 1) else x


def main():
    for n, c in enumerate(GRID):
        rng = bench.Rng(n + 1)
        a, m, y = c["ABITS"], c["MBITS"], c["YBITS"]
        low, high = -(1 << (a - 1)), (1 << (a - 1)) - 1
        xs, ys = [], []
        for _ in range(1000):
            acc, mul = draw(rng, a, (low, low + 1, -1, 0, 1, high)), rng.bits(m - 1)
            if rng.chance(10): mul = ((1 << (m - 1)) - 1, 0, 1 << (m - 2))[rng.below(3)]
            s = rng.between(1, 62) if rng.chance(30) else max(1, min(62, (abs(acc) * mul).bit_length() - y + rng.below(4)))
            xs.append((acc & ((1 << a) - 1)) << (m + 6) | mul << 6 | s)
            q = (acc * mul + (1 << (s - 1))) >> s
            ys.append(min(max(q, -(1 << (y - 1))), (1 << (y - 1)) - 1) & ((1 << y) - 1))
        for stall in (0, 40):
            bench.run(NAME, c, {"x.hex": bench.hexwords(xs, a + m + 6), "y.hex": bench.hexwords(ys, y)}, seed=n, stall=stall, words=len(xs))
    bench.ok(NAME, "%d shapes of 1000 words, with and without stalls" % len(GRID))


if __name__ == "__main__":
    main()
    bench.end(floor=1, simulations=48)
