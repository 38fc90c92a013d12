# SPDX-License-Identifier: MIT
"""mlo_rsqrt against math.isqrt: every root at its smallest and largest W, all small numbers, all powers of two and their neighbours, random ones."""
from math import isqrt

import bench


def model(v):
    """{k, root, R} of the contract, packed for the bench"""
    k = (62 - v.bit_length()) // 2
    root = isqrt((v << 2 * k) >> 30)
    assert 2**15 <= root < 2**16
    return k << 34 | root << 18 | 2**31 // root


def run(vs, stall, seed):
    bench.run("rsqrt", {}, {"v.hex": bench.hexwords(vs, 62), "y.hex": bench.hexwords([model(v) for v in vs], 39)},
              seed=seed, stall=stall, words=len(vs), limit=len(vs) * (50 if not stall else 60) + 1000, timeout=200)


def main():
    rng = bench.Rng(1)
    corners = list(range(1, 1500))
    for j in range(2, 62):
        corners += [2**j - 1, 2**j, 2**j + 1]
    corners += [2**62 - 1, 2**62 - 2]
    run(corners, 0, 1)
    run(corners[::3] + [rng.bits(62) or 1 for _ in range(300)], 40, 2)
    bench.ok("rsqrt", "%d corners; with stalls" % len(corners))
    edges = []
    for root in range(2**15, 2**16):
        for w in (root * root, (root + 1)**2 - 1):
            k = rng.below(16)
            edges.append((w << 30 | rng.bits(30)) >> 2 * k)
    run(edges, 0, 3)
    bench.ok("rsqrt", "all %d roots (so all quotients), each at its smallest and its largest W" % (len(edges) // 2))
    random = [rng.bits(rng.between(1, 62)) or 1 for _ in range(35000)]
    run(random, 0, 4)
    bench.ok("rsqrt", "%d random numbers of 1 to 62 bits" % len(random))


if __name__ == "__main__":
    main()
    bench.end(floor=3, simulations=4)
