# SPDX-License-Identifier: MIT
"""mlo_kv against a model in Python: jobs on banks, at the end of what was written or before it; every beat that attention gets, the whole memory with canaries
around it, beats read and written; faults injected into either channel, beats that are wrong and bursts that are lost: never a wrong word without `error`;
flushes in the midst; mutants of the modules, each of which must be seen here."""
import bench
import cases

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
    may = [{word} for word in memory]                   # what each word may ever have been
    word = lambda user, step: user << p["LANES"] * p["BITS"] | bench.pack(step, p["BITS"])
    length = [0] * (s.banks // iterations)
    left, through = 0, []                               # beats of a stream that have left when each frame is through
    free = [0] * len(length)                            # when a slot's last job has left
    while jobs > 0:
        group = []                                      # jobs of other slots, that go through the iterations together
        first, many = rng.below(len(length)), min(jobs, len(length), rng.between(1, p.get("FRAMES", 1)))
        for slot in [(first + k) % len(length) for k in range(many)]:
            start = min([length[slot], length[slot], rng.between(0, length[slot])][rng.below(3)], p["CONTEXT"] - 1)
            tokens = [1, 1, rng.between(1, p["CONTEXT"] - start)][rng.below(3)]
            length[slot] = start + tokens
            group.append((slot, start, tokens))
            jobs -= 1
        for i, (slot, start, tokens) in [(i, job) for i in range(iterations) for job in group]:
            bank = slot * iterations + i
            ahead = 2 * p.get("FRAMES", 1)
            needs = max(through[-ahead] if len(through) >= ahead else 0, 0 if i else free[slot])
            orders.append(start << 48 | bank << 32 | (i == 0) << 31 | needs)
            for which in (0, 1):
                past = [known[bank, which, t] for t in range(start)]
                want[which].extend(word(4, step) for token in past for step in token)
                for t in range(tokens):
                    token = [rng.signed(p["LANES"], p["BITS"]) for _ in range(p["BEATS"])]
                    known[bank, which, start + t] = token
                    user = 4 | (t == tokens - 1) << 1 | (t == 0)
                    for out in (sent[which], want[which]): out.extend(word(user, step) for step in token)
                    for at, row in enumerate(s.rows(token), s.place(bank, which, start + t)):
                        memory[at] = row
                        may[at].add(row)
            left += (start + tokens) * p["BEATS"]
            through.append(left)
            free[slot] = left
            reads += 2 * start * s.row
            writes += 2 * tokens * s.row
    width = p["LANES"] * p["BITS"] + 3
    files.update({"words.hex": bench.hexwords(orders, 64), "k.hex": bench.hexwords(sent[0], width), "v.hex": bench.hexwords(sent[1], width)})
    r = bench.run(NAME, p, files, seed=seed, jobs=len(orders), all=left, **how)
    out = (r.read_hex("k_out.hex"), r.read_hex("v_out.hex"))
    held = r.read_hex("mem.hex")
    flushed = "flush_at" in how
    if flushed:                 # what left is right as far as it came, and nothing was written but what was to be, where it was to be
        return r, all(o == w[:len(o)] for o, w in zip(out, want)) and all(word in m for word, m in zip(held, may))
    bench.check(NAME, (r["read"], r["written"]) == (reads, writes), "%s: %d beats read, %d written; %d and %d are needed" % (p, r["read"], r["written"], reads, writes))
    if r["error"]:              # what left before it was said is right
        return r, all(len(o) == len(w) and o[:n] == w[:n] for o, w, n in zip(out, want, (r["k_before"], r["v_before"])))
    return r, list(out) == list(want) and held == memory


SHAPES = [dict(), dict(BEATS=3, LANES=3, AXI_WIDTH=64, FRAMES=2), dict(BEATS=1, LANES=4, AXI_WIDTH=32, FRAMES=4), dict(BEATS=9, LANES=2, BITS=12, AXI_WIDTH=128, CONTEXT=40), dict(BEATS=5, LANES=1, BITS=6, AXI_WIDTH=128, CONTEXT=16, MAX_BURST=64, FIFO_BEATS=64, FRAMES=3),
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


def fault(seed):
    """One run, of three in which two are hit; whether it was."""
    rng, s = bench.Rng(77 + seed), Shape(**SHAPES[seed % 5])
    how = {k: [0, 30, 70][rng.below(3)] for k in ("stall_k", "stall_v", "stall_out", "stall_ram")}
    for channel in ("fault_r", "fault_b"): how[channel] = rng.between(1, 150) if rng.below(2) else 0
    r, right = play(s, 77 + seed, 6, 1 + seed % 2, latency=1 + rng.below(20), **how)
    # a row is a burst at least, so bursts are answered as often as rows, or oftener
    due = 0 < how["fault_r"] <= r["read"] or 0 < how["fault_b"] <= r["written"] // s.row
    bench.check(NAME, right, "seed %d %s: other words, error %d" % (seed, how, r["error"]))
    bench.check(NAME, r["error"] or not due, "seed %d %s: no error" % (seed, how))
    bench.check(NAME, due or not r["error"] or 0 < how["fault_b"], "seed %d %s: an error from nowhere" % (seed, how))
    return r["error"]


def faults(runs, days):
    """All of them in so many days."""
    some = [seed for turn in cases.drawn(range(days), days, lambda k: "runs %d, %d .." % (k, k + days)) for seed in range(turn, runs, days)]
    hit = sum(map(fault, some))
    bench.check(NAME, hit >= len(some) // 6, "%d of %d runs were hit" % (hit, len(some)))
    bench.ok(NAME, "%d runs of %d with stalls, of which %d got a wrong answer of the memory: no word is wrong before that is said" % (len(some), runs, hit))


def flush(seeds):
    for seed in seeds:
        rng = bench.Rng(7000 + seed)
        how = {k: [0, 30, 70][rng.below(3)] for k in ("stall_k", "stall_v", "stall_out", "stall_ram")}
        r, right = play(Shape(**SHAPES[seed % len(SHAPES)]), 7000 + seed, 6, 2, latency=1 + rng.below(20), flush_at=10 + rng.below(600), **how)
        bench.check(NAME, right and r["error"] == 0, "seed %d %s: after a flush" % (seed, how))


def flushes(runs):
    flush(range(runs))
    bench.ok(NAME, "%d flushes: no breach of AXI, nothing outside the cache" % runs)


MUTANTS = {
    "a stale length": ("mlo_kv", (".s_tdata({past != {WA{1'b0}}, bank_at, past}), .s_tvalid(begins)", ".s_tdata({stale != {WA{1'b0}}, bank_at, stale}), .s_tvalid(begins)"), ("    wire [WA-1:0]     bank, length;", "    wire [WA-1:0]     bank, length; reg [WA-1:0] stale; always @(posedge clk) if (begins) stale <= past;")),
    "rows as if there were no past": ("mlo_kv", ("bank_at + past), .s_tvalid(begins)", "bank_at), .s_tvalid(begins)")),
    "rows where those of the frame before ended": ("mlo_kv", ("write_at <= from + to;", "if (!written) write_at <= from + to;")),
    "a skipped canary: values are kept a row farther on": ("mlo_kv", ("origin + HALF_A;", "origin + HALF_A + ROW_A;")),
    "a skipped canary: what a flush ends is written": ("mlo_axi_writer", ("m_axi_wstrb  <= {DATA_WIDTH/8{!drain}};", "m_axi_wstrb  <= {DATA_WIDTH/8{1'b1}};")),
    "no fence": ("mlo_kv", ("!first || (writer_idle && !sending && empty == 2'b11);", "1'b1;")),
    "a wrong answer to a write is not said": ("mlo_kv", ("assign error = writer_error || reader_error != 2'b00;", "assign error = reader_error != 2'b00;")),
    "a wrong answer to a read of values is not said": ("mlo_kv", ("assign error = writer_error || reader_error != 2'b00;", "assign error = writer_error || reader_error[0];")),
    "a wrong answer to a read is forgotten": ("mlo_axi_reader", ("error <= 1'b1;", "error <= 1'b0;")),
}


def mutants():
    """Each is seen within a few of the runs above."""
    def attempt():
        for seed in range(45): fault(seed)
        flush(range(30))
    for name, (module, *changes) in MUTANTS.items(): bench.check(NAME, bench.caught(module, changes, attempt), "not seen: " + name)
    bench.ok(NAME, "mutants, all seen: " + "; ".join(MUTANTS))


if __name__ == "__main__":
    plain(9)
    faults(1000, 7)
    flushes(60)
    mutants()
    bench.end(floor=4, simulations=270)
