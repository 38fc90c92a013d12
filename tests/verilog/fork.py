# SPDX-License-Identifier: MIT
"""mlo_fork: every output gets every word once, in order; latency 1, one word per cycle."""
import bench

STALLS = ((0, 0), (40, 0), (0, 20), (30, 30), (70, 10))
WORDS = 250

for n in (1, 2, 3, 4):
    for width in (1, 8, 70):
        for seed, (a, b) in enumerate(STALLS, 1):
            words = bench.Rng(seed).ints(WORDS, width)
            what = "N=%d WIDTH=%d" % (n, width)
            r = bench.run("fork", {"WIDTH": width, "N": n}, {"in.hex": bench.hexwords(words, width)}, words=WORDS, seed=seed, in_stall=a, out_stall=b)
            got = [[] for _ in range(n)]
            for x in r.read_hex("out.hex"):
                got[x >> width].append(x & ((1 << width) - 1))
            bench.check("fork", all(g == words for g in got), what + ": words differ")
            if a == b == 0:
                bench.check("fork", r["latency"] == 1 and r["span"] == WORDS, "%s: latency %d, span %d" % (what, r["latency"], r["span"]))
    bench.ok("fork", "N=%d, WIDTH 1 8 70, latency 1, full throughput" % n)
bench.end(floor=4, simulations=60)
