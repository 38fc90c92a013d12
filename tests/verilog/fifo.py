# SPDX-License-Identifier: MIT
"""mlo_fifo: order, exact capacity, level, latency 1 (DEPTH <= 2) or 2, one word per cycle."""
import bench

STALLS = ((0, 0), (40, 0), (0, 40), (30, 50), (90, 10), (10, 90))
WORDS = 300

for depth in (1, 2, 3, 4, 5, 7, 16, 33):
    for width in (1, 8, 67):
        params = {"WIDTH": width, "DEPTH": depth}
        for seed, (a, b) in enumerate(STALLS if width == 8 else STALLS[3:4], 1):
            words = bench.Rng(seed).ints(WORDS, width)
            for hold in (0, 1):
                r = bench.run("fifo", params, {"in.hex": bench.hexwords(words, width)}, words=WORDS, seed=seed, in_stall=a, out_stall=b, hold=hold)
                bench.check("fifo", r.read_hex("out.hex") == words, "%s: words differ" % params)
                if hold:
                    bench.check("fifo", r["capacity"] == depth, "%s: capacity %d" % (params, r["capacity"]))
                elif a == b == 0:
                    latency = 1 if depth <= 2 else 2
                    bench.check("fifo", r["latency"] == latency, "%s: latency %d" % (params, r["latency"]))
                    bench.check("fifo", r["span"] == latency + WORDS - 1, "%s: span %d" % (params, r["span"]))
    bench.ok("fifo", "DEPTH=%d, WIDTH 1 8 67, capacity exact, full throughput" % depth)
bench.end(floor=8, simulations=128)
