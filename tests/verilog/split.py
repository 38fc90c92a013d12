# SPDX-License-Identifier: MIT
"""mlo_split: every channel to its stream, sideband copied, latency 1, one beat per cycle."""
import bench

STALLS = ((0, 0), (40, 0), (0, 40), (30, 50), (90, 10), (10, 80))
GRID = ((1, 1, 1, 1), (2, 4, 4, 4), (4, 16, 16, 16), (2, 6, 2, 10), (2, 4, 4, 0), (1, 5, 3, 0), (8, 8, 8, 0), (3, 9, 3, 6))

for lanes, c0, c1, c2 in GRID:
    for bits in (4, 8):
        for seed, (a, b) in enumerate(STALLS, 1):
            rng = bench.Rng(seed)
            sent, expected = [], [[], [], []]
            for _ in range(max(4, 200 * lanes // (c0 + c1 + c2))):
                channels, user = rng.signed(c0 + c1 + c2, bits), rng.bits(3) << (lanes * bits)
                sent += [user | x for x in bench.beats(channels, lanes, bits)]
                for k, part in enumerate((channels[:c0], channels[c0:c0 + c1], channels[c0 + c1:])):
                    expected[k] += [user | x for x in bench.beats(part, lanes, bits)]
            r = bench.run("split", {"BITS": bits, "LANES": lanes, "C0": c0, "C1": c1, "C2": c2}, {"in.hex": bench.hexwords(sent, 3 + lanes * bits)},
                          words=len(sent), seed=seed, in_stall=a, out_stall=b)
            what = "LANES=%d C=%d,%d,%d" % (lanes, c0, c1, c2)
            for k in range(3):
                bench.check("split", r.read_hex("out%d.hex" % k) == expected[k], "%s: m%d differs" % (what, k))
            if a == b == 0:
                bench.check("split", r["latency"] == 1 and r["span"] == len(sent), "%s: latency %d, span %d" % (what, r["latency"], r["span"]))
    bench.ok("split", "LANES=%d, C=%d+%d+%d, BITS 4 8, latency 1, full throughput" % (lanes, c0, c1, c2))
bench.end(floor=8, simulations=96)
