# SPDX-License-Identifier: MIT
"""mlo_first: of each frame its first token, the first one marked; latency 1, a beat per cycle, and what is dropped waits for nothing."""
import bench

STALLS = ((0, 0), (40, 0), (0, 80), (30, 50), (90, 10))

for beats, width in ((1, 8), (2, 4), (3, 16), (8, 128), (5, 1)):
    for seed, (a, b) in enumerate(STALLS, 1):
        rng = bench.Rng(seed)
        sent, expected, last = [], [], 0
        lengths = [1, 1] + [rng.between(1, 6) for _ in range(30)]
        for frame, tokens in enumerate(lengths):
            words = rng.ints(tokens * beats, width)
            last = len(sent) + beats                # beats in, up to the last one that goes on
            sent += [(i + 1 == len(words)) << width | w for i, w in enumerate(words)]
            expected += [(6 + (frame == 0)) << width | w for w in words[:beats]]
        r = bench.run("first", {"WIDTH": width, "BEATS": beats}, {"in.hex": bench.hexwords(sent, 1 + width)}, words=len(sent), outs=len(expected), seed=seed, in_stall=a, out_stall=b)
        what = "WIDTH=%d BEATS=%d" % (width, beats)
        bench.check("first", r.read_hex("out.hex") == expected, "%s: differs" % what)
        # a beat is taken each cycle; each that goes on stands a cycle later
        if a == b == 0: bench.check("first", r["latency"] == 1 and r["span"] == last, "%s: latency %d, span %d, not %d" % (what, r["latency"], r["span"], last))
    bench.ok("first", "WIDTH=%d BEATS=%d, latency 1" % (width, beats))
bench.end(floor=5, simulations=25)
