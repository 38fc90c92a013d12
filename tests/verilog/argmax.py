# SPDX-License-Identifier: MIT
"""mlo_argmax: the largest channel, the lowest of those, sideband of the first beat; latency 1 behind the final beat, a beat per cycle."""
import bench

STALLS = ((0, 0), (40, 0), (0, 90), (30, 50), (90, 10))

for c, bits in ((2, 1), (2, 16), (3, 2), (5, 8), (64, 3), (257, 16), (8, 31)):
    for seed, (a, b) in enumerate(STALLS, 1):
        rng = bench.Rng(seed)
        sent, expected = [], []
        for token in range(max(6, 600 // c)):
            x, user = rng.signed(c, bits), rng.bits(3)
            if token % 3 == 0: x = [x[0]] * c                                              # all alike: the first
            if token % 3 == 1: x[rng.below(c)] = -(1 << (bits - 1)) if token % 2 else (1 << (bits - 1)) - 1
            sent += [user << bits | w for w in bench.beats(x, 1, bits)]
            expected.append(user << 64 | bench.pack([x.index(max(x)), max(x)], 32))
        r = bench.run("argmax", {"C": c, "XBITS": bits}, {"in.hex": bench.hexwords(sent, 3 + bits)}, words=len(sent), seed=seed, in_stall=a, out_stall=b)
        what = "C=%d XBITS=%d" % (c, bits)
        bench.check("argmax", r.read_hex("out.hex") == expected, "%s: differs" % what)
        if a == b == 0: bench.check("argmax", r["latency"] == c and r["span"] == len(sent), "%s: latency %d, span %d" % (what, r["latency"], r["span"]))
    bench.ok("argmax", "C=%d XBITS=%d, latency 1, full throughput" % (c, bits))
bench.end(floor=7, simulations=35)
