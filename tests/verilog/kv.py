# SPDX-License-Identifier: MIT
"""mlo_kv against a model in Python: jobs on banks, at the end of what was written or before it; every beat that attention gets, the whole memory with canaries
around it, beats read and written; faults injected into either channel: never a wrong word without `error`; flushes in the midst."""
import bench

NAME = "kv"
BEFORE = 16                     # words of the memory in front of the cache


class Shape:
    def __init__(self, **p):
        self.p = dict(dict(CONTEXT=8, BEATS=4, LANES=2, BITS=8, AXI_WIDTH=32, FIFO_BEATS=16, MAX_BURST=8), **p)
        self.pad = (self.p["BITS"] + 7) // 8 * 8
        self.per = self.p["AXI_WIDTH"] // (self.p["LANES"] * self.pad)
        self.row = -(-self.p["BEATS"] // self.per)
        self.banks = 6
        self.words = self.banks * 2 * self.p["CONTEXT"] * self.row
        self.p["DEPTH"] = BEFORE + self.words + 16

    def place(self, bank, which, position):
        return BEFORE + ((bank * 2 + which) * self.p["CONTEXT"] + position) * self.row

    def rows(self, token):
        """a token's steps (lists of channels) -> words of memory"""
        steps = [bench.pack(step, self.pad) for step in token]
        return [sum(s << i * self.p["LANES"] * self.pad for i, s in enumerate(steps[a:a + self.per])) for a in range(0, len(steps), self.per)]


def play(s, seed, jobs, iterations, **how):
    """Returns (result, whether each word is as it must be)."""
    rng, p = bench.Rng(seed), s.p
    memory = rng.ints(p["DEPTH"], p["AXI_WIDTH"])
    files = {"ram.hex": bench.hexwords(memory, p["AXI_WIDTH"])}
    known, orders, sent, want, reads, writes = {}, [], ([], []), ([], []), 0, 0
    word = lambda user, step: user << p["LANES"] * p["BITS"] | bench.pack(step, p["BITS"])
    length = [0] * (s.banks // iterations)
    for _ in range(jobs):
        slot = rng.below(len(length))
        start = min([length[slot], length[slot], rng.between(0, length[slot])][rng.below(3)], p["CONTEXT"] - 1)
        tokens = [1, 1, rng.between(1, p["CONTEXT"] - start)][rng.below(3)]
        length[slot] = start + tokens
        orders.append(start << 48 | slot * iterations << 32 | (start + tokens) * p["BEATS"] * iterations)
        for i in range(iterations):
            bank = slot * iterations + i
            for which in (0, 1):
                past = [known[bank, which, t] for t in range(start)]
                want[which].extend(word(4, step) for token in past for step in token)
                for t in range(tokens):
                    token = [rng.signed(p["LANES"], p["BITS"]) for _ in range(p["BEATS"])]
                    known[bank, which, start + t] = token
                    user = 4 | (t == tokens - 1) << 1 | (t == 0)
                    for out in (sent[which], want[which]): out.extend(word(user, step) for step in token)
                    memory[s.place(bank, which, start + t):s.place(bank, which, start + t) + s.row] = s.rows(token)
        reads += 2 * iterations * start * s.row
        writes += 2 * iterations * tokens * s.row
    width = p["LANES"] * p["BITS"] + 3
    files.update({"jobs.hex": bench.hexwords(orders, 64), "k.hex": bench.hexwords(sent[0], width), "v.hex": bench.hexwords(sent[1], width)})
    r = bench.run(NAME, p, files, seed=seed, jobs=jobs, iterations=iterations, **how)
    out = (r.read_hex("k_out.hex"), r.read_hex("v_out.hex"))
    held = r.read_hex("mem.hex")
    flushed = "flush_at" in how
    if flushed:                 # what left is right as far as it came, and nothing was written but what was to be, where it was to be
        right = all(o == w[:len(o)] for o, w in zip(out, want))
        outside = held[:BEFORE] == memory[:BEFORE] and held[BEFORE + s.words:] == memory[BEFORE + s.words:]
        return r, right and outside
    bench.check(NAME, (r["read"], r["written"]) == (reads, writes), "%s: %d beats read, %d written; %d and %d are needed" % (p, r["read"], r["written"], reads, writes))
    return r, list(out) == list(want) and held == memory


SHAPES = [dict(), dict(BEATS=3, LANES=3, AXI_WIDTH=64), dict(BEATS=1, LANES=4, AXI_WIDTH=32), dict(BEATS=9, LANES=2, BITS=12, AXI_WIDTH=128, CONTEXT=40), dict(BEATS=5, LANES=1, BITS=6, AXI_WIDTH=128, CONTEXT=16, MAX_BURST=64, FIFO_BEATS=64),
          dict(BEATS=70, LANES=4, AXI_WIDTH=32, CONTEXT=5, MAX_BURST=16), dict(BEATS=40, LANES=1, BITS=4, AXI_WIDTH=32, CONTEXT=9, MAX_BURST=4, FIFO_BEATS=4)]


def plain(seeds):
    for n, shape in enumerate(SHAPES):
        s = Shape(**shape)
        for seed in range(seeds):
            rng = bench.Rng(1000 * n + seed)
            how = {k: [0, 0, 30, 70][rng.below(4)] for k in ("stall_k", "stall_v", "stall_out", "stall_ram")}
            _, right = play(s, 1000 * n + seed, 12, 1 + seed % 3, latency=[1, 5, 60][rng.below(3)], **how)
            bench.check(NAME, right, "%s seed %d %s: other words" % (shape, seed, how))
    bench.ok(NAME, "%d shapes: what attention gets, the whole memory, beats read and written" % len(SHAPES))


def faults(runs):
    """In a third of the runs nothing is hit."""
    hit = 0
    shapes = [Shape(**shape) for shape in SHAPES[:5]]
    for seed in range(runs):
        rng = bench.Rng(77 + seed)
        how = {k: [0, 30, 70][rng.below(3)] for k in ("stall_k", "stall_v", "stall_out", "stall_ram")}
        for channel in ("fault_r", "fault_b"): how[channel] = rng.between(1, 150) if rng.below(2) else 0
        r, right = play(shapes[seed % 5], 77 + seed, 6, 1 + seed % 2, latency=1 + rng.below(20), **how)
        due = 0 < how["fault_r"] <= r["read"] or (how["fault_b"] > 0 and r["error"])
        bench.check(NAME, right and (r["error"] == 1 or not due) and (not r["error"] or how["fault_r"] or how["fault_b"]), "seed %d %s: error %d" % (seed, how, r["error"]))
        hit += r["error"]
    bench.check(NAME, hit >= runs // 6, "%d of %d runs were hit" % (hit, runs))
    bench.ok(NAME, "%d runs with stalls, of which %d got a wrong answer of the memory: each is said" % (runs, hit))


def flushes(runs):
    for seed in range(runs):
        rng = bench.Rng(7000 + seed)
        how = {k: [0, 30, 70][rng.below(3)] for k in ("stall_k", "stall_v", "stall_out", "stall_ram")}
        r, right = play(Shape(**SHAPES[seed % len(SHAPES)]), 7000 + seed, 6, 2, latency=1 + rng.below(20), flush_at=10 + rng.below(600), **how)
        bench.check(NAME, right and r["error"] == 0, "seed %d %s: after a flush" % (seed, how))
    bench.ok(NAME, "%d flushes: no breach of AXI, nothing outside the cache" % runs)


if __name__ == "__main__":
    plain(9)
    faults(RUNS := 150)
    flushes(60)
    bench.end(floor=3, simulations=270)
