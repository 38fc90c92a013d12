# SPDX-License-Identifier: MIT
"""What blocks of parameters come by: mlo_refill on its own; two of them and mlo_loader at one memory, through mlo_axi_share."""
import bench


def requests(rng, tiles, longest):
    """tile_next of so many tiles: iterations of 1..longest tiles"""
    out = []
    while len(out) < tiles:
        out += [1] + [0] * rng.below(longest)
    return out[:tiles]


def wanted(ram, base, beats, blocks, offset, stride, iterations, tiles):
    """(port, word) of every beat that these tiles ask for"""
    out, iteration = [], -1
    for begins in tiles:
        if begins:
            iteration = (iteration + 1) % max(iterations, 1)
        at = base + offset + iteration * stride
        for _ in range(blocks):
            for port, n in enumerate(beats):
                out += [(port, w) for w in ram[at:at + n]]
                at += n
    return out


def refill():
    runs, faults, dropped = 0, 0, 0
    for ports, beats, blocks, offset, gap, fifo, burst, width in (
            (2, (5, 1), 2, 0, 0, 512, 64, 128), (1, (37,), 3, 11, 5, 512, 64, 128), (3, (40, 3, 1), 4, 100, 0, 64, 16, 64), (2, (3, 2), 5, 7, 1, 4, 4, 32),
            (3, (1, 1, 1), 2, 1, 9, 1, 1, 128), (2, (300, 9), 2, 255, 3, 512, 256, 512), (1, (1,), 2, 3, 0, 8, 8, 256), (1, (1,), 1, 0, 0, 64, 16, 128)):
        rng = bench.Rng(ports + blocks)
        ram = rng.ints(4096, width)
        total = sum(beats) * blocks
        stride = total + gap
        params = {"PORTS": ports, "BLOCKS": blocks, "OFFSET": offset, "STRIDE": stride, "FIFO_BEATS": fifo, "MAX_BURST": burst, "DATA_WIDTH": width}
        params.update(("B%d" % p, b) for p, b in enumerate(beats))
        for seed, base, iterations, longest, latency, stall, stall_in, stall_out, rate, flush in (
                (1, 0, 3, 3, 1, 0, 0, 0, 0, None), (2, 57, 4, 1, 64, 0, 0, 0, 0, None), (3, 255, 0, 4, 200, 0, 0, 0, 0, None), (4, 3, 5, 2, 20, 30, 30, 30, 0, None),
                (5, 1, 1, 2, 7, 0, 0, 70, 0, None), (6, 100, 3, 3, 30, 0, 0, 0, 64, None), (7, 9, 2, 2, 40, 20, 95, 20, 0, 0), (8, 9, 3, 3, 90, 0, 60, 90, 0, 1),
                (9, 2, 2, 1, 60, 0, 0, 0, 0, total + total // 2), (10, 31, 3, 2, 5, 60, 0, 0, 0, 2 * total - 1)):
            tiles = requests(rng, max(3, min(20, 400 // total)), longest)
            golden = wanted(ram, base, beats, blocks, offset, stride, iterations, tiles)
            files = {"ram.hex": bench.hexwords(ram, width), "tiles.hex": bench.hexwords(tiles, 1), "golden.hex": bench.hexwords([p << width | w for p, w in golden], width + 8)}
            args = dict(seed=seed, base_word=base, iterations=iterations, tiles=len(tiles), count=len(golden), latency=latency, stall=stall, stall_in=stall_in,
                        stall_out=stall_out, rate=rate, **({} if flush is None else {"flush_at": flush}))
            r = bench.run("refill", params, files, fault=seed % 2 * rng.between(1, len(golden)), **args)
            what = "%s latency %d: %s for %d beats" % (params, latency, dict(r), len(golden))
            if stall == rate == 0 and flush is None:
                # (the memory model takes 2 cycles at least)
                bench.check("refill", r["latency"] == 4 + max(latency, 2) + (3 if fifo > 2 else 2), "latency " + what)
                if not stall_out and total >= 64 and latency + burst + 4 <= fifo:
                    bench.check("refill", r["longest"] <= 2, "throughput " + what)
                if total == 1 and latency == 1:
                    bench.check("refill", r["longest"] == 3, "tiles of one beat " + what)
            if rate:
                bench.check("refill", r["span"] >= (len(golden) - 4) * 256 // rate - 5, "the memory's bandwidth limit " + what)
            faults, dropped, runs = faults + r["faults"], dropped + r["dropped"], runs + 1
    bench.check("refill", faults > 0 and dropped > 0, "some faults, some beats dropped")
    bench.ok("refill", "%d runs, %d bus errors, %d beats forgotten in flushes" % (runs, faults, dropped))


def share():
    runs, full, dropped, faults = 0, 0, 0, 0
    # of two mlo_refill: the beats of the ports, blocks, offset, stride; the loader's beats
    for one, two, three, fifo, burst, depth in (
            (((5, 1), 2, 0, 24), ((9, 2), 3, 12, 57), (7, 3), 512, 64, 32), (((60, 20), 2, 3, 163), ((90, 2), 1, 170, 95), (30, 31), 512, 64, 32),
            (((6, 2), 2, 0, 17), ((9, 2), 3, 40, 33), (3, 1), 64, 2, 5), (((6, 2), 2, 0, 16), ((1, 1), 1, 40, 2), (3, 1), 4, 1, 2)):
        shapes, size = (one, two, three), 240 if burst > 2 else 90      # beats
        rng = bench.Rng(fifo + burst)
        ram = rng.ints(4096, 128)
        params = {"B20": shapes[2][0], "B21": shapes[2][1], "FIFO_BEATS": fifo, "MAX_BURST": burst, "DEPTH": depth}
        for i in (0, 1):
            (a, b), blocks, offset, stride = shapes[i]
            params.update({"B%d0" % i: a, "B%d1" % i: b, "BLOCKS%d" % i: blocks, "OFFSET%d" % i: offset, "STRIDE%d" % i: stride})
        for seed, base, iterations, latency, stall, stall_in, stall_out, rate, held, flush, mask in (
                (1, 0, 3, 1, 0, 0, 0, 0, -1, 0, 7), (2, 57, 2, 64, 0, 0, 0, 0, -1, 0, 7), (3, 255, 3, 20, 30, 30, 30, 0, -1, 0, 7), (4, 3, 1, 90, 0, 0, 0, 100, -1, 0, 7),
                (5, 9, 2, 30, 0, 0, 0, 0, 0, 0, 7), (6, 7, 2, 30, 20, 0, 20, 0, 1, 0, 7), (7, 100, 3, 10, 0, 50, 40, 0, 2, 0, 7),
                (8, 20, 2, 120, 0, 0, 0, 0, -1, 160, 7), (9, 2, 2, 40, 20, 20, 60, 0, -1, 130, 1), (10, 5, 3, 60, 0, 0, 90, 0, -1, 300, 6), (11, 5, 3, 12, 0, 0, 0, 0, 1, 200, 5)):
            of_round = sum(shapes[2]) * iterations
            tiles, golden, args = [], [], {}
            for i in (0, 1):
                beats, blocks, offset, stride = shapes[i]
                tiles.append(requests(rng, max(3, min(20, size // (sum(beats) * blocks))), 3))
                golden.append(wanted(ram, base + of_round, beats, blocks, offset, stride, iterations, tiles[i]))
                args.update({"tiles%d" % i: len(tiles[i]), "count%d" % i: len(golden[i])})
            loaded = wanted(ram, base, shapes[2], 1, 0, sum(shapes[2]), iterations, [1] * 300)[:size]
            files = {"ram.hex": bench.hexwords(ram, 128)}
            for i, words in enumerate(golden + [loaded]):
                files["golden%d.hex" % i] = bench.hexwords([1 << 128 + p | w for p, w in words], 136)
            for i in (0, 1):
                files["tiles%d.hex" % i] = bench.hexwords(tiles[i], 1)
            args.update(seed=seed, base_word=base, iterations=iterations, latency=latency, stall=stall, stall_in=stall_in, stall_out=stall_out, rate=rate,
                        count2=len(loaded), **({"flush_at": flush, "flush_mask": mask} if flush else {}))
            if held >= 0:
                args.update(held=held, hold=3000 if burst > 2 else 20000)
            r = bench.run("share", params, files, fault=0 if flush else rng.between(1, size), **args)
            faults, full, dropped, runs = faults + r["faults"], full + r["full"], dropped + r["dropped"], runs + 1
            what = "%s: %s" % (params, dict(r))
            if stall == rate == stall_in == 0 and held < 0 and not flush and burst > 2:
                bench.check("refill", r["longest"] == 1, "a beat a cycle " + what)
            if seed == 1 and burst > 2 and sum(shapes[2]) > 60:
                bench.check("refill", 28 <= r["share"] <= 40, "a third each while all ask " + what)
    bench.ok("refill", "shared memory, %d runs, %d bus errors, %d cycles in which DEPTH requests were under way, %d beats forgotten in flushes" % (runs, faults, full, dropped))


refill()
share()
bench.end(floor=2, simulations=124)
