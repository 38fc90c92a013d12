# SPDX-License-Identifier: MIT
"""mlo_param: packing, bank order, ready and tready in every cycle, one beat and one read per cycle."""
import bench

STALLS = ((0, 0, 0), (0, 0, 200), (50, 0, 0), (0, 50, 30), (80, 20, 0), (20, 90, 0))
GRID = ((8, 1, 128), (8, 256, 128), (16, 5, 128), (64, 1, 128), (64, 2, 128), (64, 7, 128), (24, 9, 128), (1, 17, 128), (100, 3, 128), (128, 4, 128),
        (129, 3, 128), (256, 5, 128), (512, 1, 128), (300, 6, 128), (1024, 8, 128), (8, 9, 32), (40, 3, 32), (64, 3, 32), (8, 3, 8), (48, 10, 512))
# width, depth, axi, RESIDENT, banks that are loaded
KEPT = ((8, 1, 128, 1, 1), (64, 7, 128, 3, 3), (64, 7, 128, 5, 2), (8, 256, 128, 12, 12), (129, 3, 128, 4, 3), (300, 6, 128, 7, 7), (8, 9, 32, 16, 1), (48, 10, 512, 2, 2), (64, 1, 64, 100, 100))
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

for width, depth, axi, resident, banks in KEPT:
    iterations = 2 * banks + 3
    for seed, (a, b, delay) in enumerate(STALLS, 1):
        rng, sent = bench.Rng(seed), []
        words = [rng.ints(depth, width) for _ in range(banks)]
        beats = [bench.param_beats(w, width, axi) for w in words]
        sent = [x for b in beats for x in b] + [0] * 3 * len(beats[0])      # what comes afterwards is not taken
        expected = [x for i in range(iterations) for x in words[i % banks][::1 if i % 2 == 0 else -1]]
        r = bench.run("param", {"WIDTH": width, "DEPTH": depth, "AXI_WIDTH": axi, "BEATS": len(beats[0]), "RESIDENT": resident}, {"in.hex": bench.hexwords(sent, axi)},
                      iterations=iterations, banks=banks, seed=seed, in_stall=a, read_stall=b, delay=delay)
        bench.check("param", r.read_hex("out.hex") == expected, "WIDTH=%d DEPTH=%d AXI_WIDTH=%d RESIDENT=%d, %d banks: words differ" % (width, depth, axi, resident, banks))
    bench.ok("param", "WIDTH=%d, DEPTH=%d, AXI_WIDTH=%d, RESIDENT=%d: %d banks loaded once, %d iterations" % (width, depth, axi, resident, banks, iterations))
bench.end(floor=29, simulations=174)
