# SPDX-License-Identifier: MIT
"""mlo_job against a model in Python: good jobs and bad ones, frames longer and shorter than said, slots, resets amid frames, stalls; latency and throughput."""
import bench

NAME = "job"


class Door:
    """What the module says of itself, job by job."""
    def __init__(self, p):
        self.p, self.length = p, {}
        self.begins, self.out, self.keys, self.taken = [], [], [], 0
        self.flags = [0, 0]

    def job(self, slot, start, tokens, frame, keys):
        """frame: its tokens' beats; keys: its tokens' mask beats; whether the job is good"""
        good = slot < self.p["SLOTS"] and 1 <= tokens and start <= self.length.get(slot, self.p.get("GIVEN", 0)) and start + tokens <= self.p["CONTEXT"]
        if not good:
            self.flags[0] = 1
            return False
        on = frame[:tokens]
        self.begins.append((start, slot * self.p["DEEPEST"]))
        for t, token in enumerate(on):
            for b, beat in enumerate(token):
                self.out.append((int(t == len(on) - 1 and b == len(token) - 1), beat))
            self.keys.append((int(t == len(on) - 1), keys[t] & 1))
        self.length[slot] = start + len(on)
        if len(frame) != tokens: self.flags[1] = 1
        return True


def drawn(rng, door, p):
    """a job, good or bad, of the tokens of its frame, likewise"""
    slot = rng.below(p["SLOTS"])
    length, room = door.length.get(slot, p.get("GIVEN", 0)), p["CONTEXT"]
    start = [length, length, 0, rng.between(0, length)][rng.below(4)]
    most = room - start
    tokens = min(most, [1, 1, most, rng.between(1, 5)][rng.below(4)])
    kind = rng.below(10)
    if kind == 0: start = [length + 1, length + rng.between(1, 9), 1 << 23, 65536 + length][rng.below(4)]
    if kind == 1: tokens = min(65535, [0, most + 1, 65535, most + rng.between(1, 5)][rng.below(4)])
    if kind == 2: slot = [p["SLOTS"], 255, rng.below(256)][rng.below(3)]
    frame = max(1, min(tokens, 40))
    if rng.chance(25): frame = max(1, [frame - 1, frame + 1, 1, frame + rng.between(1, 4)][rng.below(4)])
    return slot, start, tokens, frame


def part(rng, p, jobs, cut=False):
    """jobs with their frames, and what comes of them; cut: of the last frame some beats are missing, and the whole of its tlast"""
    door = Door(p)
    lines, fin, masks, good, ends = [], [], [], [], []
    for n in range(jobs):
        slot, start, tokens, long = drawn(rng, door, p)
        frame = [rng.ints(p["BEATS"], p["WIDTH"]) for _ in range(long)]
        keys = [rng.bits(8) for _ in range(long)]
        if cut and n == jobs - 1:
            whole = Door(p)
            whole.length = dict(door.length)
            good.append(whole.job(slot, start, tokens, frame, keys))
            kept = rng.below(long * p["BEATS"])
            beats = [(0, b) for token in frame for b in token][:kept]
            if good[-1]:
                door.begins += whole.begins
                for i, (_, b) in enumerate(beats[:tokens * p["BEATS"]]):
                    last = (i + 1) == tokens * p["BEATS"]
                    door.out.append((int(last), b))
                    if (i + 1) % p["BEATS"] == 0: door.keys.append((int(last), keys[i // p["BEATS"]] & 1))
                if kept >= tokens * p["BEATS"]: door.flags[1] = 1
            else:
                door.flags[0] = 1
            keys = keys[:kept // p["BEATS"]]
        else:
            good.append(door.job(slot, start, tokens, frame, keys))
            beats = [(int(t == long - 1 and b == p["BEATS"] - 1), x) for t, token in enumerate(frame) for b, x in enumerate(token)]
        lines.append(slot << 40 | start << 16 | tokens)
        fin += beats
        ends.append(len(fin))
        masks += [rng.bits(1) << 8 | k for k in keys]
    return door, lines, fin, masks, good, ends


def run(p, seed, jobs, cut, **how):
    rng = bench.Rng(seed)
    parts = [part(rng, p, jobs, cut), part(rng, p, jobs)]
    words = lambda beats: [last << p["WIDTH"] | b for last, b in beats]
    files = {"jobs.hex": bench.hexwords(parts[0][1] + parts[1][1], 48), "in.hex": bench.hexwords(words(parts[0][2]) + words(parts[1][2]), p["WIDTH"] + 1),
             "mask.hex": bench.hexwords(parts[0][3] + parts[1][3] if p["MASK"] else [], 9)}
    r = bench.run(NAME, p, files, seed=seed, jobs=len(parts[0][1]), beats=len(parts[0][2]), masks=len(parts[0][3]) if p["MASK"] else 0, **how)
    rows = [line.split() for line in r.read("log.txt").splitlines()]
    rows = [(int(c), what, int(a, 16), int(b, 16)) for c, what, a, b in rows]
    split = next(i for i, row in enumerate(rows) if row[1] == "E") + 1
    what = "%s seed=%d %s" % (p, seed, how)
    for number, ((door, lines, fin, masks, good, ends), log) in enumerate(zip(parts, (rows[:split], rows[split:]))):
        said = lambda letter: [row[2:] for row in log if row[1] == letter]
        for letter, want in (("B", door.begins), ("M", door.out), ("K", door.keys if p["MASK"] else []), ("E", [tuple(door.flags)])):
            got = said(letter)
            at = next((i for i, (g, w) in enumerate(zip(got, want)) if g != w), min(len(got), len(want)))
            bench.check(NAME, got == want, "%s: part %d, %s %d: %s, want %s of %d and %d" % (what, number, letter, at, got[at:at + 3], want[at:at + 3], len(got), len(want)))
        bench.check(NAME, len(said("I")) == len(fin) and len(said("P")) == len(lines), "%s: part %d: %d beats of %d taken" % (what, number, len(said("I")), len(fin)))
    return parts, (rows[:split], rows[split:])


def times(p, parts, logs):
    """the cycles of a run without stalls are those that the header foretells"""
    queue = 2 if p["DEPTH"] > 2 else 1
    for (door, lines, fin, masks, good, ends), log in zip(parts, logs):
        at = {letter: [row[0] for row in log if row[1] == letter] for letter in "PIBML"}
        free, left, begun, first = 0, 0, 0, 0                   # when the module looks at the queue, when the core is empty
        for job, fine in enumerate(good):
            judged = max(free, at["P"][job] + queue) + 1
            opens = max(judged + 1, left) + 1 if fine else judged + 1
            taken = at["I"][first:ends[job]]
            bench.check(NAME, taken == list(range(opens, opens + len(taken))), "%s: job %d is taken at %s, not from %d on" % (p, job, taken[:9], opens))
            if fine:
                bench.check(NAME, at["B"][begun] == opens, "%s: job %d begins at %d, not %d" % (p, job, at["B"][begun], opens))
                left = at["L"][begun] + 1 if begun < len(at["L"]) else 0
                begun += 1
            free, first = opens + len(taken), ends[job]
        where = {}
        for cycle, what, last, data in log:
            if what == "I": where.setdefault(data, []).append(cycle)
        for cycle, what, last, data in log:
            if what == "M": bench.check(NAME, cycle - 1 in where[data], "%s: a beat that leaves at %d was taken at %s" % (p, cycle, where[data]))


SHAPES = [dict(), dict(MASK=1), dict(BEATS=3, SLOTS=3, DEEPEST=2), dict(BEATS=3, SLOTS=3, DEEPEST=2, MASK=1), dict(BEATS=2, DEPTH=1, SLOTS=5, CONTEXT=7), dict(BEATS=5, DEPTH=2, WIDTH=20, MASK=1, CONTEXT=40),
          dict(SLOTS=255, DEEPEST=12, DEPTH=7, CONTEXT=5, MASK=1), dict(CONTEXT=1, SLOTS=2, BEATS=8, DEPTH=3), dict(CONTEXT=65535, SLOTS=8, DEEPEST=32, BEATS=4, WIDTH=32), dict(CONTEXT=64, SLOTS=4, BEATS=1, DEPTH=255, WIDTH=1, MASK=1),
          dict(CONTEXT=12, SLOTS=2, BEATS=2, GIVEN=7)]
SHAPES = [dict(dict(CONTEXT=16, SLOTS=1, DEEPEST=1, BEATS=1, WIDTH=16, DEPTH=4, MASK=0, GIVEN=0), **shape) for shape in SHAPES]


def main():
    seen = [0, 0, 0, 0]
    for n, p in enumerate(SHAPES):
        for seed in range(6):
            rng = bench.Rng(100 * n + seed)
            rate = {s: [0, 20, 50, 90][rng.below(4)] for s in ("s_job", "s_in", "s_mask", "s_out", "s_key")}
            parts, _ = run(p, 100 * n + seed, 60, seed % 2 == 0, delay=1 + rng.below(40), spread=rng.below(30), **rate)
            for door, _, _, _, good, _ in parts: seen = [a + b for a, b in zip(seen, (len(good) - sum(good), sum(good), *door.flags))]
    bench.check(NAME, min(seen) >= 60, "few cases: %s" % seen)
    bench.ok(NAME, "%d jobs refused and %d begun, words, mask, places and flags with stalls and resets" % tuple(seen[:2]))
    for n, p in enumerate(SHAPES):
        if p["WIDTH"] < 16: continue
        for delay in (1, 30): times(p, *run(p, 5000 + n, 50, False, delay=delay))
        r = bench.run(NAME, p, {"jobs.hex": bench.hexwords([1] * 300, 48), "in.hex": "", "mask.hex": ""}, jobs=300)
        bench.check(NAME, r["pushed"] == 2 * (p["DEPTH"] + 1) or p["DEPTH"] > 100, "%s: room for %d jobs" % (p, r["pushed"]))
    bench.ok(NAME, "a beat per cycle, latency 1; 5 cycles from a job to its beginning, 2 behind the frame before it; room for DEPTH")


if __name__ == "__main__":
    main()
    bench.end(floor=2, simulations=85)
