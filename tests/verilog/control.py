# SPDX-License-Identifier: MIT
"""The outside of the core: doors (entry, exit), loader (reader, router), loop and registers, with the simulation models; jobs."""
import bench
import job

SEEDS = 3


def frames_of(rng, tokens, longest):
    """lengths of frames, `tokens` tokens in all"""
    out = []
    while sum(out) < tokens:
        out.append(min(rng.between(1, longest), tokens - sum(out)))
    return out


def door():
    for c, lanes, bits, mask in ((8, 2, 8, 0), (8, 2, 8, 1), (4, 4, 8, 1), (3, 3, 16, 0), (6, 2, 12, 1), (5, 1, 4, 0), (12, 4, 3, 1), (2, 1, 20, 0)):
        pad, n = (bits + 7) // 8 * 8, c // lanes
        for seed in range(1, SEEDS + 1):
            rng = bench.Rng(seed)
            fin, inside, out, keys = [], [], [], []
            lengths = frames_of(rng, 40, 6)
            for f in lengths:
                for t in range(f):
                    x = rng.signed(c, bits)
                    junk = [v & ((1 << bits) - 1) | rng.bits(pad) >> bits << bits for v in x]      # what pads a lane is ignored
                    key = rng.bits(1)
                    keys.append(rng.bits(1) << 8 | rng.bits(7) << 1 | key)                         # nor does tlast of the mask matter
                    last = t == f - 1
                    user = (key if mask else 1) << 2 | last << 1
                    for b in range(n):
                        end = int(last and b == n - 1)
                        part = slice(b * lanes, (b + 1) * lanes)
                        fin.append(end << lanes * pad | bench.pack(junk[part], pad))
                        inside.append(user << lanes * bits | bench.pack(x[part], bits))
                        out.append(end << lanes * pad | bench.pack(x[part], pad))
            files = {"in.hex": bench.hexwords(fin, lanes * pad + 1), "mask.hex": bench.hexwords(keys, 9),
                     "inside.hex": bench.hexwords(inside, lanes * bits + 4), "out.hex": bench.hexwords(out, lanes * pad + 1)}
            params = {"C": c, "LANES": lanes, "BITS": bits, "MASK": mask}
            for si, sm, so in ((0, 0, 0), (50, 0, 0), (0, 80, 0), (0, 0, 60), (40, 40, 40)):
                r = bench.run("control_door", params, files, seed=seed * 10 + si, stall_in=si, stall_mask=sm, stall_out=so, count=len(fin), tokens=len(keys))
                bench.check("control", r["frames"] == len(lengths), "frames")
                if si == sm == so == 0:
                    what = "%s: %s" % (params, dict(r))
                    bench.check("control", r["latency"] == n + 2, "entry latency " + what)
                    bench.check("control", r["span"] == len(fin) - 1, "entry throughput " + what)
                    bench.check("control", r["exit"] == 1, "exit latency " + what)
    bench.ok("control", "doors, 8 shapes x %d seeds x 5 stalls" % SEEDS)


def loader():
    runs = 0
    for ports, beats, fifo, burst, width, once in ((3, (5, 1, 70), 512, 64, 128, 0), (1, (37,), 512, 64, 128, 0), (4, (1, 1, 1, 1), 64, 16, 128, 0),
                                                   (2, (300, 9), 512, 256, 64, 0), (2, (2, 33), 4, 4, 32, 0), (2, (8, 3), 1, 1, 128, 0), (3, (40, 40, 41), 256, 256, 512, 0),
                                                   (3, (5, 1, 70), 512, 64, 128, 2), (4, (1, 2, 1, 9), 64, 16, 64, 5), (4, (30, 2, 1, 9), 64, 16, 32, 9), (3, (1, 4, 3), 512, 64, 512, 6),
                                                   (2, (8, 3), 1, 1, 128, 1), (2, (20, 33), 512, 64, 256, 2), (2, (20, 33), 512, 64, 128, 3), (1, (9,), 64, 16, 128, 1)):
        rng = bench.Rng(ports)
        ram = rng.ints(4096, width)
        params = {"PORTS": ports, "RESIDENT": once, "FIFO_BEATS": fifo, "MAX_BURST": burst, "DATA_WIDTH": width}
        params.update(("B%d" % p, b) for p, b in enumerate(beats))
        total = sum(beats)
        for seed, base, iterations, latency, stall, stall_out, rate, flush in (
                (1, 0, 3, 1, 0, 0, 0, 0), (2, 57, 4, 64, 0, 0, 0, 0), (3, 255, 2, 200, 0, 0, 0, 0), (4, 3, 5, 20, 30, 30, 0, 0), (5, 1, 1, 7, 0, 70, 0, 0),
                (6, 100, 3, 30, 0, 0, 64, 0), (7, 9, 3, 40, 20, 20, 0, 77), (8, 9, 3, 90, 0, 90, 0, 11), (9, 2, 3, 60, 0, 0, 0, 150)):
            count = min(3 * total * iterations + 5, 600 if fifo > 4 else 100)
            kept = sum(b for p, b in enumerate(beats) if once >> p & 1)
            if kept == total:                       # all of it comes once
                count = min(count, total * iterations)
            golden, i, later = [], 0, 0
            while len(golden) < count:
                for p, b in enumerate(beats):
                    for _ in range(b):
                        if not (later and once >> p & 1):
                            golden.append(int(i // total == iterations - 1 and not later) << width + 7 | p << width | ram[base + i])
                        i += 1
                if i == total * iterations:
                    i, later = 0, 1
            files = {"ram.hex": bench.hexwords(ram, width), "golden.hex": bench.hexwords(golden, width + 8)}
            r = bench.run("control_loader", params, files, seed=seed, base_word=base, iterations=iterations, latency=latency, stall=stall, stall_out=stall_out,
                          rate=rate, flush_at=flush, count=count)
            runs += 1
            # a beat per cycle, unless commands (3 cycles) or bursts (2) are too short; a short first burst costs a cycle or two, once
            bursts_long = burst >= 16 and total * iterations >= 64
            if not kept and bursts_long and stall == stall_out == rate == 0 and latency + burst + 4 <= fifo:
                bench.check("control", r["span"] <= count - 1 + 2 * (base % burst != 0), "loader throughput %s latency %d: %s for %d" % (params, latency, dict(r), count))
            if rate:
                bench.check("control", r["span"] >= count * 256 // rate - 4 * 256 // rate - 5, "the memory's bandwidth limit")
        r = bench.run("control_loader", params, {"ram.hex": bench.hexwords(ram, width), "golden.hex": bench.hexwords([(1 << width + 7) | p << width for p, b in enumerate(beats) for _ in range(b)], width + 8)},
                      wrong_base=1, count=1, iterations=1)
    bench.ok("control", "loader, %d runs, %d bus errors" % (runs, 7))


def body(x, ram, iterations):
    for i in range(iterations):
        x = [3 * v + (ram[4 * i] & 255) + 5 * (ram[4 * i + 3] & 255) for v in x]
    return x


def core():
    runs = 0
    for c, lanes, t, g in ((4, 2, 4, 2), (2, 2, 5, 3), (2, 2, 1, 2), (6, 2, 3, 1), (4, 1, 8, 4)):
        n = c // lanes
        for seed, iterations, frames, si, so, sr, latency, gaps, equal in (
                (1, 3, g, 0, 0, 0, 10, 0, 1), (2, 2, g, 30, 30, 30, 5, 0, 0), (3, 1, g, 0, 0, 0, 10, 0, 0), (4, 4, 1, 0, 50, 0, 10, 0, 0), (5, 5, g, 80, 0, 0, 30, 0, 0),
                (6, 3, g, 0, 0, 0, 10, 500, 0), (7, 2, g, 20, 0, 80, 70, 0, 0), (8, 1, 1, 40, 40, 0, 10, 300, 0), (9, 6, max(g - 1, 1), 0, 0, 0, 10, 0, 0)):
            rng = bench.Rng(seed * 100 + c)
            ram = rng.ints(64, 128)
            lengths = [t] * (6 * g) if equal else [rng.between(1, t) for _ in range(rng.between(1, 8 * g))]
            fin, out = [], []
            for f in lengths:
                for k in range(f * n):
                    x = rng.signed(lanes, 8)
                    end = int(k == f * n - 1) << 8 * lanes
                    fin.append(end | bench.pack(x, 8))
                    out.append(end | bench.pack(body(x, ram, iterations), 8))
            files = {"ram.hex": bench.hexwords(ram, 128), "in.hex": bench.hexwords(fin, 8 * lanes + 1), "out.hex": bench.hexwords(out, 8 * lanes + 1)}
            params = {"C": c, "LANES": lanes, "T": t, "G": g, **({"DEEPEST": 12} if g == 1 else {})}
            r = bench.run("control_core", params, files, seed=seed, stall_in=si, stall_out=so, stall_ram=sr, latency=latency, gaps=gaps,
                          count=len(fin), iterations=iterations, frames=frames)
            runs += 1
            what = "%s: %s" % (params, dict(r))
            bench.check("control", r["frames"] == len(lengths), "frames " + what)
            if equal:
                # `first` comes once per group and iteration (and once in all, where there is one iteration only)
                bench.check("control", r["firsts"] == (6 * iterations * n), "first flags " + what)
            if equal and g > 1 and t > 3:
                # two frames or more in flight: nothing idles, a group takes just its beats
                bench.check("control", r["interval"] == g * iterations * t * n, "steady interval of a group " + what)
            if seed < 4:                # a body that holds one frame is enough, with a feedback of (G-1)*T tokens
                bench.run("control_core", dict(params, BODY=1), files, seed=seed, stall_in=si, stall_out=so, stall_ram=sr, count=len(fin), iterations=iterations, frames=frames)
                runs += 1
            if equal and g == 3:        # but not with less (registers hold a few beats more, so: much less)
                bench.run("control_core", dict(params, BODY=1, FEEDBACK=1), files, count=len(fin), iterations=iterations, stuck=1)
                runs += 1
    bench.ok("control", "loop, registers and all, %d runs" % runs)


def jobs():
    runs = refused = 0
    for c, lanes, t, slots in ((4, 2, 4, 1), (2, 2, 7, 3), (6, 1, 5, 255)):
        p = {"CONTEXT": t, "SLOTS": slots, "DEEPEST": 12, "BEATS": c // lanes}
        for seed, iterations, si, so, sr in ((1, 3, 0, 0, 0), (2, 2, 30, 30, 30), (3, 1, 0, 60, 0), (4, 5, 80, 0, 0)):
            rng = bench.Rng(seed * 100 + c)
            ram = rng.ints(64, 128)
            gate, fin, lines = job.Door(p), [], []
            for _ in range(40):
                slot, start, tokens, long = job.drawn(rng, gate, p)
                frame = [[tuple(rng.signed(lanes, 8)) for _ in range(c // lanes)] for _ in range(long)]
                gate.job(slot, start, tokens, frame, [0] * long)
                lines.append(slot << 40 | start << 16 | tokens)
                fin += [int(token is frame[-1] and b == len(token) - 1) << 8 * lanes | bench.pack(x, 8) for token in frame for b, x in enumerate(token)]
            out = [last << 8 * lanes | bench.pack(body(x, ram, iterations), 8) for last, x in gate.out]
            files = {"ram.hex": bench.hexwords(ram, 128), "in.hex": bench.hexwords(fin, 8 * lanes + 1), "out.hex": bench.hexwords(out, 8 * lanes + 1), "jobs.hex": bench.hexwords(lines, 48)}
            params = {"C": c, "LANES": lanes, "T": t, "G": 2, "CONTEXT": t, "SLOTS": slots}
            r = bench.run("control_core", params, files, seed=seed, stall_in=si, stall_out=so, stall_ram=sr, count=len(out), count_in=len(fin),
                          iterations=iterations, frames=1, jobs=len(lines), status=gate.flags[0] << 2 | gate.flags[1] << 4)
            bench.check("control", r["frames"] == len(gate.begins), "frames %s: %s" % (params, dict(r)))
            refused += len(lines) - len(gate.begins)
            runs += 1
    bench.check("control", refused >= 60, "%d jobs refused" % refused)
    bench.ok("control", "jobs through registers into a core, %d runs, %d refused" % (runs, refused))


if __name__ == "__main__":
    door()
    loader()
    core()
    jobs()
    bench.end(floor=4, simulations=343)
