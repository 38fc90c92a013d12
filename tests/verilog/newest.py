# SPDX-License-Identifier: MIT
"""mlo_newest: of each frame its last token, the first one marked; latency 2 behind the frame's last beat, BEATS cycles a token that goes on."""
import bench

STALLS = ((0, 0), (40, 0), (0, 80), (30, 50), (90, 10))

for beats, width in ((1, 8), (2, 4), (3, 16), (8, 128), (5, 1)):
    for seed, (a, b) in enumerate(STALLS, 1):
        rng = bench.Rng(seed)
        sent, expected, taken = [], [], []
        lengths = [1, 1] + [rng.between(1, 6) for _ in range(30)]
        for frame, tokens in enumerate(lengths):
            words = rng.ints(tokens * beats, width)
            sent += [(i + 1 == len(words)) << width | w for i, w in enumerate(words)]
            expected += [(6 + (frame == 0)) << width | w for w in words[-beats:]]
        r = bench.run("newest", {"WIDTH": width, "BEATS": beats}, {"in.hex": bench.hexwords(sent, 1 + width)}, words=len(sent), outs=len(expected), seed=seed, in_stall=a, out_stall=b)
        what = "WIDTH=%d BEATS=%d" % (width, beats)
        bench.check("newest", r.read_hex("out.hex") == expected, "%s: differs" % what)
        # a frame is taken, then a cycle for each beat that goes on; its first beat stands two cycles behind the last one taken
        span = len(sent) + len(expected)
        if a == b == 0: bench.check("newest", r["latency"] == beats + 1 and r["span"] == span, "%s: latency %d, span %d, not %d" % (what, r["latency"], r["span"], span))
    bench.ok("newest", "WIDTH=%d BEATS=%d, latency 2" % (width, beats))
bench.end(floor=5, simulations=25)
