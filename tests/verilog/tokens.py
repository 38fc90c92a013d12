# SPDX-License-Identifier: MIT
"""mlo_tokens with a core made of a rule: jobs and texts in any order, stop ids, counts, the context's end, stalls; which jobs go on, the position of each id, what is said, where tlast is."""
import bench

for context, depth in ((16, 4), (5, 1), (40, 2)):
    for seed, (a, b, c) in enumerate(((0, 0, 0), (50, 0, 0), (0, 60, 30), (40, 40, 40)), 1):
        rng = bench.Rng(seed)
        stop = rng.below(16) if seed % 2 else 1 << 20
        jobs, sent, went, said, places, frames = [], [], [], [], [], 0
        for _ in range(12):
            tokens = rng.between(1, min(4, context))
            slot, start, more = rng.bits(8), rng.below(context - tokens + 1), rng.below(3) and rng.between(1, 9)
            ids = [rng.below(16) for _ in range(tokens)]
            jobs.append(more << 48 | slot << 40 | start << 16 | tokens)
            sent += [(k + 1 == tokens) << 32 | i for k, i in enumerate(ids)]
            went.append(slot << 40 | start << 16 | tokens)
            places += range(start, start + tokens)
            at, last = start + tokens, ids[-1]
            while True:
                last = (7 * last + 3) % 16
                goes = more and last != stop and at < context
                said.append((not goes) << 64 | frames << 32 | last)
                frames += 1
                if not goes: break
                went.append(slot << 40 | at << 16 | 1)
                places.append(at)
                at, more = at + 1, more - 1
        r = bench.run("tokens", {"CONTEXT": context, "DEPTH": depth}, {"in.hex": bench.hexwords(sent, 33), "jobs.hex": bench.hexwords(jobs, 64)}, words=len(sent), jobs=len(jobs),
                      outs=len(said), seed=seed, in_stall=a, out_stall=b, core_stall=c, stop=stop)
        bench.check("tokens", r.read_hex("out.hex") == said, "CONTEXT=%d seed %d: said otherwise" % (context, seed))
        bench.check("tokens", r.read_hex("went.hex") == went, "CONTEXT=%d seed %d: other jobs" % (context, seed))
        bench.check("tokens", r.read_hex("places.hex") == places, "CONTEXT=%d seed %d: other positions" % (context, seed))
        if a == b == c == 0: bench.check("tokens", r["span"] <= 4 * (len(said) + len(sent)) + 8, "span %d" % r["span"])
    bench.ok("tokens", "CONTEXT=%d DEPTH=%d" % (context, depth))
bench.end(floor=3, simulations=12)
