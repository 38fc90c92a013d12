# SPDX-License-Identifier: MIT
"""mlo_param: packing, bank order, ready and tready in every cycle, one beat and one read per cycle."""
import bench

STALLS = ((0, 0, 0), (0, 0, 200), (50, 0, 0), (0, 50, 30), (80, 20, 0), (20, 90, 0))
GRID = ((8, 1, 128), (8, 256, 128), (16, 5, 128), (64, 1, 128), (64, 2, 128), (64, 7, 128), (24, 9, 128), (1, 17, 128), (100, 3, 128), (128, 4, 128),
        (129, 3, 128), (256, 5, 128), (512, 1, 128), (300, 6, 128), (1024, 8, 128), (8, 9, 32), (40, 3, 32), (64, 3, 32), (8, 3, 8), (48, 10, 512))
ITERATIONS = 7

for width, depth, axi in GRID:
    for seed, (a, b, delay) in enumerate(STALLS, 1):
        rng = bench.Rng(seed)
        sent, expected = [], []
        for i in range(ITERATIONS):
            words = rng.ints(depth, width)
            beats = bench.param_beats(words, width, axi)
            sent += beats
            expected += words if i % 2 == 0 else words[::-1]
        r = bench.run("param", {"WIDTH": width, "DEPTH": depth, "AXI_WIDTH": axi, "BEATS": len(beats)}, {"in.hex": bench.hexwords(sent, axi)},
                      iterations=ITERATIONS, seed=seed, in_stall=a, read_stall=b, delay=delay)
        what = "WIDTH=%d DEPTH=%d AXI_WIDTH=%d" % (width, depth, axi)
        bench.check("param", r.read_hex("out.hex") == expected, what + ": words differ")
        if a == b == 0:
            bench.check("param", r["load"] == 2 * len(beats), "%s: two banks took %d cycles" % (what, r["load"]))
    bench.ok("param", "WIDTH=%d, DEPTH=%d, AXI_WIDTH=%d: %d beats, %d cycles" % (width, depth, axi, len(beats), len(beats)))
