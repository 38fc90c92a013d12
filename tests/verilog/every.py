# SPDX-License-Identifier: MIT
"""mlo_every: what goes round leaves as well, each word once on either side, in order; no latency, a beat per cycle."""
import bench

STALLS = ((0, 0, 0), (40, 0, 0), (0, 80, 10), (10, 20, 80), (30, 50, 50), (90, 10, 10))

for width in 1, 8, 64:
    for seed, (a, b, c) in enumerate(STALLS, 1):
        rng = bench.Rng(seed)
        sent, round_, left = [], [], []
        for word in rng.ints(300, width + 3):                   # {tuser, tdata}
            leaves = rng.chance(30)
            sent.append(leaves << width + 3 | word)
            if not leaves: round_.append(word)
            left.append(word if leaves else word & ~(1 << width + 1))
        r = bench.run("every", {"WIDTH": width}, {"in.hex": bench.hexwords(sent, width + 4)}, words=len(sent), rounds=len(round_), seed=seed, in_stall=a, round_stall=b, out_stall=c)
        what = "WIDTH=%d" % width
        bench.check("every", r.read_hex("round.hex") == round_, "%s: what goes round differs" % what)
        bench.check("every", r.read_hex("out.hex") == left, "%s: what leaves differs" % what)
        if a == b == c == 0: bench.check("every", r["latency"] == 0 and r["span"] == len(sent) - 1, "%s: latency %d, span %d" % (what, r["latency"], r["span"]))
    bench.ok("every", "WIDTH=%d, latency 0" % width)
bench.end(floor=3, simulations=18)
