# SPDX-License-Identifier: MIT
"""mlo_width: lane order, sideband, latency UP, one beat per cycle on the narrower side."""
import math

import bench

STALLS = ((0, 0), (40, 0), (0, 40), (30, 50), (90, 10), (10, 90))
GRID = ((1, 1), (1, 2), (2, 1), (1, 8), (8, 1), (4, 8), (8, 4), (2, 3), (3, 2), (4, 6), (6, 4), (5, 7), (7, 5), (8, 12), (12, 8), (16, 16))

for n_in, n_out in GRID:
    lcm = n_in * n_out // math.gcd(n_in, n_out)
    up, down = lcm // n_in, lcm // n_out
    for bits in (1, 8, 13):
        for seed, (a, b) in enumerate(STALLS if bits == 8 else STALLS[3:4], 1):
            rng = bench.Rng(seed)
            groups = rng.between(1, 3)                      # a token is some groups of lcm lanes
            tokens = max(4, 150 // (groups * max(up, down)))
            sent, expected = [], []
            for _ in range(tokens):
                channels, user = rng.signed(groups * lcm, bits), rng.bits(3)
                sent += [user << (n_in * bits) | x for x in bench.beats(channels, n_in, bits)]
                expected += [user << (n_out * bits) | x for x in bench.beats(channels, n_out, bits)]
            r = bench.run("width", {"BITS": bits, "IN": n_in, "OUT": n_out}, {"in.hex": bench.hexwords(sent, 3 + n_in * bits)},
                          words=len(sent), expect=len(expected), seed=seed, in_stall=a, out_stall=b)
            what = "IN=%d OUT=%d BITS=%d" % (n_in, n_out, bits)
            bench.check("width", r.read_hex("out.hex") == expected, what + ": words differ")
            if a == b == 0:
                bench.check("width", r["latency"] == up, "%s: latency %d, not %d" % (what, r["latency"], up))
                # the last group's first beat follows the first one's in groups * max(up, down) cycles
                span = up + (tokens * groups - 1) * max(up, down) + down - 1
                bench.check("width", r["span"] == span, "%s: span %d, not %d" % (what, r["span"], span))
    bench.ok("width", "%d -> %d lanes, BITS 1 8 13, latency %d, %d cycles per %d lanes" % (n_in, n_out, up, max(up, down), lcm))
bench.end(floor=16, simulations=128)
