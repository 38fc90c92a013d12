# SPDX-License-Identifier: MIT
"""mlo_mul against plain Python integers, in mlo_add's bench: extremes, ties, every S, several iterations, stalls, late parameters, latency and throughput."""
import add
import bench
from add import cfg


class Mul:
    name, latency, width = "mul", 9, 32

    def draw(self, rng, i, cfg):
        """S goes through 1..62; the multiplier is extreme, tiny or anything. SHIFT: it is 2^14, whatever the word says."""
        pick = [0, 1, 2**15 - 1, 2**14, rng.bits(15), rng.bits(15), rng.bits(8)]
        m, s = pick[rng.below(len(pick))], i % 62 + 1 if rng.chance(60) else rng.between(8, 40)
        by = 2**14 if cfg.get("SHIFT") else m
        def becomes(a, b):
            y, top = (a * b * by + 2**(s - 1)) >> s, 2**(cfg["YBITS"] - 1)
            return min(top - 1, max(-top, y))
        return m | s << 16 | rng.bits(10) << 22, becomes


def main():
    grid = [cfg(1, 1), cfg(4, 4, 8, 8, 8), cfg(5, 1, 16, 8, 16), cfg(15, 3, 16, 16, 8, AXI_WIDTH=32), cfg(64, 8, 12, 9, 16, AXI_WIDTH=64),
            cfg(6, 2, 2, 3, 2), cfg(8, 2, 16, 16, 8, SHIFT=1), cfg(5, 5, 8, 8, 8, SHIFT=1)]
    for i, c in enumerate(grid):
        for seed, stall in ((1, 0), (2, 30), (3, 70), (4, 10)):
            add.run(c, 100 * i + seed, stall, [1 + (j * 7 + seed) % 5 for j in range(64)], late=seed == 4, kernel=Mul())
    bench.ok("mul", "%d configurations x 64 iterations, S 1..62, stalls 0/30/70 %%, late parameters" % len(grid))
    for c in (cfg(1, 1), cfg(3, 1), cfg(64, 8, 16, 16, 8)):
        add.timing(c, 5, kernel=Mul())
    bench.ok("mul", "latency 9, one beat per cycle, iteration switch +1")


if __name__ == "__main__":
    main()
    bench.end(floor=2, simulations=38)
