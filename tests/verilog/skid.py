# SPDX-License-Identifier: MIT
"""mlo_skid: order, contract, latency 1, one word per cycle."""
import bench

STALLS = ((0, 0), (40, 0), (0, 40), (30, 50), (90, 10), (10, 90))
WORDS = 400

for width in (1, 8, 131):
    for seed, (a, b) in enumerate(STALLS, 1):
        words = bench.Rng(seed).ints(WORDS, width)
        r = bench.run("skid", {"WIDTH": width}, {"in.hex": bench.hexwords(words, width)}, words=WORDS, seed=seed, in_stall=a, out_stall=b)
        bench.check("skid", r.read_hex("out.hex") == words, "WIDTH=%d: words differ" % width)
        if a == b == 0:
            bench.check("skid", r["latency"] == 1 and r["span"] == WORDS, "WIDTH=%d: latency %d, span %d" % (width, r["latency"], r["span"]))
    bench.ok("skid", "WIDTH=%d, latency 1, full throughput" % width)
bench.end(floor=3, simulations=18)
