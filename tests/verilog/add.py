# SPDX-License-Identifier: MIT
"""mlo_add against plain Python integers: extremes, ties, every S, several iterations, stalls, late parameters, latency and throughput."""
import bench


def model(a, b, ma, mb, s, ybits):
    y = (a * ma + b * mb + 2**(s - 1)) >> s
    return min(2**(ybits - 1) - 1, max(-2**(ybits - 1), y))


def parameters(rng, i, shift):
    """S goes through 1..62; the scales are extreme, tiny or anything."""
    if shift:
        return 1 << rng.below(15), 1 << rng.below(15), i % 62 + 1 if rng.chance(40) else rng.between(1, 18)
    pick = [0, 1, 2**15 - 1, 2**14, rng.bits(15), rng.bits(15), rng.bits(8)]
    return pick[rng.below(len(pick))], pick[rng.below(len(pick))], i % 62 + 1 if rng.chance(60) else rng.between(8, 20)


def values(rng, n, bits):
    some = [-2**(bits - 1), 2**(bits - 1) - 1, 0, 1, -1]
    return [some[rng.below(5)] if rng.chance(30) else v >> rng.below(bits) for v in rng.signed(n, bits)]


class Add:
    """What two streams become: the name, cycles from a beat in to a beat out, bits of the parameter word."""
    name, latency, width = "add", 7, 64

    def draw(self, rng, i, cfg):
        """(the parameter word of an iteration, what its a and b become)"""
        shift = cfg.get("SHIFT")
        ma, mb, s = parameters(rng, i, shift)
        scales = ma | mb << 16 if not shift else ma.bit_length() - 1 | mb.bit_length() - 1 << 16 | rng.bits(12) << 4 | rng.bits(12) << 20
        return scales | s << 32 | rng.bits(26) << 38, lambda a, b: model(a, b, ma, mb, s, cfg["YBITS"])


def run(cfg, seed, stall, counts, late=False, alone=False, kernel=Add()):
    """counts: tokens of each iteration. late: an iteration's parameters come when the iteration before has left.
    alone: a token comes when the one before has left. Returns the cycles of all beats, in and out."""
    rng = bench.Rng(seed)
    c, pe, ab, bb, yb = (cfg[k] for k in ("C", "PE", "ABITS", "BBITS", "YBITS"))
    axi = cfg.get("AXI_WIDTH", 128)
    nb = c // pe
    fa, fb, fc, fy = [], [], [], []
    done = 0
    for i, n in enumerate(counts):
        word, becomes = kernel.draw(rng, i + seed, cfg)
        hold = done * nb if late else 0
        fc += [hold << axi | w for w in bench.param_beats([word], kernel.width, axi)]
        for t in range(n):
            a, b = values(rng, c, ab), values(rng, c, bb)
            user = (t == 0) | rng.below(4) << 1
            hold = done * nb if alone else 0
            fa += [hold << pe * ab + 3 | user << pe * ab | w for w in bench.beats(a, pe, ab)]
            fb += [hold << pe * bb + 3 | rng.bits(3) << pe * bb | w for w in bench.beats(b, pe, bb)]
            fy += [user << pe * yb | w for w in bench.beats([becomes(p, q) for p, q in zip(a, b)], pe, yb)]
            done += 1
    files = {"a.hex": bench.hexwords(fa, 35 + pe * ab), "b.hex": bench.hexwords(fb, 35 + pe * bb),
             "c.hex": bench.hexwords(fc, 32 + axi), "y.hex": bench.hexwords(fy, 3 + pe * yb)}
    limit = 1000 + (len(fy) + 40 * len(fc) + 20 * done) * 100 // (100 - stall) * 3
    r = bench.run("add", cfg, files, defines=("KERNEL=mlo_" + kernel.name,), seed=seed, stall=stall, beats=len(fy), limit=limit)
    return [int(t) for t in r.read("in.txt").split()], [int(t) for t in r.read("out.txt").split()]


def timing(cfg, seed, kernel=Add()):
    """The header's latency and throughput, to the cycle."""
    nb = cfg["C"] // cfg["PE"]
    tin, tout = run(cfg, seed, 0, [1, 4, 1], alone=True, kernel=kernel)
    for t in range(1, 6):
        first = t in (1, 5)
        got = tout[t * nb] - tin[t * nb]
        bench.check(kernel.name, got == kernel.latency + first, "%s: latency %d, the header says %d" % (cfg, got, kernel.latency + first))
    per = 8
    tin, tout = run(cfg, seed, 0, [per, per, per], kernel=kernel)
    for i in range(nb + 1, 3 * per * nb):
        want = 2 if i % (per * nb) == 0 else 1
        bench.check(kernel.name, tout[i] - tout[i - 1] == want, "%s: beat %d after %d cycles, the header says %d" % (cfg, i, tout[i] - tout[i - 1], want))


def cfg(c, pe, ab=16, bb=16, yb=16, **more):
    return dict(C=c, PE=pe, ABITS=ab, BBITS=bb, YBITS=yb, **more)


def main():
    grid = [cfg(1, 1), cfg(4, 4, 8, 8, 8), cfg(5, 1, 16, 8, 16), cfg(12, 4, 8, 16, 8), cfg(15, 3, 16, 16, 8, AXI_WIDTH=32), cfg(64, 8, 12, 9, 16, AXI_WIDTH=64),
            cfg(6, 2, 2, 3, 2), cfg(8, 2, 16, 16, 16, SHIFT=1), cfg(6, 3, 8, 12, 8, SHIFT=1), cfg(5, 5, 8, 8, 8, SHIFT=1)]
    for i, c in enumerate(grid):
        for seed, stall in ((1, 0), (2, 30), (3, 70), (4, 10)):
            run(c, 100 * i + seed, stall, [1 + (j * 7 + seed) % 5 for j in range(64)], late=seed == 4)
    bench.ok("add", "%d configurations x 64 iterations, S 1..62, stalls 0/30/70 %%, late parameters" % len(grid))
    for c in (cfg(1, 1), cfg(3, 1), cfg(64, 8, 8, 8, 8)):
        timing(c, 5)
    bench.ok("add", "latency 7, one beat per cycle, iteration switch +1")


if __name__ == "__main__":
    main()
    bench.end(floor=2, simulations=46)
