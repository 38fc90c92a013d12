# SPDX-License-Identifier: MIT
"""mlo_rows: the row of each id, read once, tlast with its last beat; ids that are none; a memory that answers late, stalls, fails."""
import bench

RUNS = ((0, 0, 0, 1), (0, 0, 0, 60), (50, 0, 20, 9), (0, 70, 0, 3), (30, 30, 30, 40))

for c, lanes, ids, axi, fifo, burst in ((16, 4, 5, 128, 64, 32), (64, 8, 40, 128, 64, 32), (64, 16, 9, 128, 8, 8), (32, 1, 17, 64, 16, 4), (96, 12, 11, 256, 64, 32), (2, 2, 7, 32, 4, 4), (4096, 32, 2, 512, 256, 64)):
    row = c * 16 // axi
    for seed, (a, b, r, latency) in enumerate(RUNS, 1):
        rng = bench.Rng(seed)
        base = rng.between(0, 5)
        table = [rng.signed(c, 16) for _ in range(ids)]
        ram = rng.ints(base, axi) + [w for x in table for w in bench.beats(x, axi // 16, 16)]
        lengths = [rng.between(1, 4) for _ in range(8)]
        stray = seed % 2 == 0
        sent, expected = [], []
        for n in lengths:
            for i in range(n):
                k = rng.below(ids)
                if stray and rng.chance(30): k = (ids, 0xffffffff, 1 << 24)[rng.below(3)]
                sent.append((i + 1 == n) << 32 | k)
                out = bench.beats(table[k if k < ids else 0], lanes, 16)
                expected += [(i + 1 == n and at + 1 == len(out)) << (16 * lanes) | w for at, w in enumerate(out)]
        fault = rng.between(1, row * len(sent)) if seed == 5 else 0
        got = bench.run("rows", {"C": c, "LANES": lanes, "IDS": ids, "AXI_WIDTH": axi, "FIFO_BEATS": fifo, "MAX_BURST": burst, "BASE": base * axi // 8},
                        {"in.hex": bench.hexwords(sent, 33), "ram.hex": bench.hexwords(ram, axi)}, words=len(sent), outs=len(expected), seed=seed, in_stall=a, out_stall=b,
                        ram_stall=r, latency=latency, fault=fault)
        what = "C=%d LANES=%d IDS=%d AXI_WIDTH=%d" % (c, lanes, ids, axi)
        bench.check("rows", got.read_hex("out.hex") == expected, "%s: differs" % what)
        bench.check("rows", got["read"] == row * len(sent), "%s: %d beats read, not %d" % (what, got["read"], row * len(sent)))
        bench.check("rows", got["error"] == (fault != 0), "%s: error %d" % (what, got["error"]))
        bench.check("rows", got["stray"] == any((w & 0xffffffff) >= ids for w in sent), "%s: stray %d" % (what, got["stray"]))
        if a == b == r == 0:
            bench.check("rows", got["ar"] == 4, "%s: a request %d cycles behind the id" % (what, got["ar"]))
            if lanes * 16 == axi and latency == 1:
                bench.check("rows", got["span"] <= got["latency"] + max(4, row) * len(sent) + row, "%s: span %d" % (what, got["span"]))
    bench.ok("rows", "C=%d LANES=%d AXI_WIDTH=%d" % (c, lanes, axi))
bench.end(floor=7, simulations=35)
