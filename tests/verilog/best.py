# SPDX-License-Identifier: MIT
"""mlo_best: the K largest channels in their order, of equal ones the lowest first, sideband of the first beat; latency 2 behind the final beat, a beat per cycle."""
import bench

STALLS = ((0, 0), (40, 0), (0, 90), (30, 50), (90, 10))

for c, bits, k in ((2, 1, 1), (2, 16, 1), (3, 2, 1), (5, 8, 1), (64, 3, 1), (257, 16, 1), (8, 31, 1), (2, 16, 2), (3, 2, 2), (5, 8, 5), (64, 3, 16), (257, 16, 3)):
    for seed, (a, b) in enumerate(STALLS, 1):
        rng = bench.Rng(seed)
        sent, expected = [], []
        for token in range(max(6, 600 // c)):
            x, user = rng.signed(c, bits), rng.bits(3)
            if token % 3 == 0: x = [x[0]] * c                                              # all alike: the first ones
            if token % 3 == 1: x[rng.below(c)] = -(1 << (bits - 1)) if token % 2 else (1 << (bits - 1)) - 1
            order = sorted(range(c), key=lambda i: (-x[i], i))[:k]
            sent += [user << bits | w for w in bench.beats(x, 1, bits)]
            expected.append(user << 64 * k | bench.pack([w for i in order for w in (i, x[i])], 32))
        r = bench.run("best", {"C": c, "XBITS": bits, "K": k}, {"in.hex": bench.hexwords(sent, 3 + bits)}, words=len(sent), seed=seed, in_stall=a, out_stall=b)
        what = "C=%d XBITS=%d K=%d" % (c, bits, k)
        bench.check("best", r.read_hex("out.hex") == expected, "%s: differs" % what)
        if a == b == 0: bench.check("best", r["latency"] == c + 1 and r["span"] == len(sent) + 1, "%s: latency %d, span %d" % (what, r["latency"], r["span"]))
    bench.ok("best", "C=%d XBITS=%d K=%d, latency 2, full throughput" % (c, bits, k))
bench.end(floor=12, simulations=60)
