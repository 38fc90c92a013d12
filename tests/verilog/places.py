# SPDX-License-Identifier: MIT
"""mlo_places: two indices for each id, the sum of the two rows that come back, clipped; ids and positions that are none, positions that it counts, types of
tokens; latency 1 both ways."""
import bench

STALLS = ((0, 0), (40, 0), (0, 70), (30, 50))

for beats, lanes, bits, ids, context, count, types in ((4, 4, 16, 40, 16, 0, 1), (1, 8, 16, 5, 3, 1, 2), (3, 2, 12, 9, 65535, 0, 1), (8, 1, 9, 1 << 20, 100, 1, 1),
                                                       (5, 3, 2, 2, 1, 0, 16)):
    low, high = -1 << bits - 1, (1 << bits - 1) - 1
    for seed, (a, b) in enumerate(STALLS, 1):
        rng = bench.Rng(seed)
        sent, index, rows, expected, strays = [], [], [], [], False
        for _ in range(12):
            tokens = rng.between(1, 4)
            for k in range(tokens):
                i, place, last, kind = rng.below(ids), rng.below(context), k + 1 == tokens, rng.below(types)
                if seed % 2 == 0 and rng.chance(30): i = (ids, 0xffffff, 1 << 23)[rng.below(3)]
                if seed % 2 == 0 and rng.chance(30): kind = (types, 255)[rng.below(2)]
                if context < 65535 and rng.chance(10): place = (context, 65535)[rng.below(2)]
                sent.append(last << 48 | place << 32 | kind << 24 | i)
                if count: place = k
                known = i < ids and kind < types
                strays |= not known
                index += [i if known else 0, last << 32 | ids + (kind * context if known else 0) + (place if place < context else 0)]
                first, second = rng.signed(beats * lanes, 16), rng.signed(beats * lanes, 16)
                if bits < 16 and rng.chance(60): first, second = rng.signed(beats * lanes, bits), rng.signed(beats * lanes, bits)
                total = [min(max(x + y, low), high) for x, y in zip(first, second)]
                for words, to, ends in ((first, rows, 0), (second, rows, last), (total, expected, last)):
                    out = bench.beats(words, lanes, 16)
                    to += [(ends and at + 1 == len(out)) << 16 * lanes | w for at, w in enumerate(out)]
        r = bench.run("places", {"BEATS": beats, "LANES": lanes, "BITS": bits, "IDS": ids, "CONTEXT": context, "COUNT": count, "TYPES": types},
                      {"ids.hex": bench.hexwords(sent, 49), "rows.hex": bench.hexwords(rows, 16 * lanes + 1)}, words=len(sent), outs=len(expected), seed=seed, in_stall=a, out_stall=b)
        what = "BEATS=%d LANES=%d BITS=%d TYPES=%d" % (beats, lanes, bits, types)
        bench.check("places", r.read_hex("index.hex") == index, "%s: indices differ" % what)
        bench.check("places", r.read_hex("out.hex") == expected, "%s: sums differ" % what)
        bench.check("places", r["stray"] == strays, "%s: stray %d" % (what, r["stray"]))
        if a == b == 0:
            bench.check("places", r["index"] == 1 and r["sum"] == beats + 1, "%s: an index after %d cycles, a sum after %d" % (what, r["index"], r["sum"]))
            bench.check("places", r["span"] <= max(2 * len(sent), len(rows)) + 2, "%s: span %d" % (what, r["span"]))
    bench.ok("places", what)
bench.end(floor=5, simulations=20)
