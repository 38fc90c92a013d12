# SPDX-License-Identifier: MIT
"""mlo_exactnorm against plain Python integers: extreme tokens and parameters, quotients beside whole numbers, tokens of any number of channels, several
iterations, stalls, late parameters, latency and throughput."""
from math import isqrt

import bench


def trunc(a, b): return abs(a) // b * (1 if a >= 0 else -1)


def model(x, center, sh, g, b, ybits):
    """The dialect's formula, as it is written."""
    mean = trunc(sum(x), len(x)) if center else 0
    c = [a - mean for a in x]
    r = isqrt(sum(a * a for a in c) // len(x) + 1)
    lo, hi = -2**(ybits - 1), 2**(ybits - 1) - 1
    return [min(hi, max(lo, (trunc(ci * gi, r) + bi) // 2**sh)) for ci, gi, bi in zip(c, g, b)]


def tokens(rng, c, xbits, count):
    """The extremes first, in an order of their own per seed; then random tokens of all sizes."""
    lo, hi = -2**(xbits - 1), 2**(xbits - 1) - 1
    hot = rng.below(c)
    some = [[lo] * c, [hi] * c, [0] * c, [1] * c, [-1] * c,
            [lo if i % 2 else hi for i in range(c)], [hi if i % 2 else lo for i in range(c)],
            [lo if i == hot else 0 for i in range(c)], [hi if i == hot else 0 for i in range(c)], [hi if i == hot else lo for i in range(c)],
            [lo if i == hot else hi for i in range(c)], [1 if i == hot else 0 for i in range(c)],
            [lo if i < c // 2 else hi for i in range(c)], [i % 2 for i in range(c)], [-(i % 2) for i in range(c)]]
    for i in range(len(some) - 1, 0, -1):
        j = rng.below(i + 1)
        some[i], some[j] = some[j], some[i]
    while len(some) < count:
        bits = rng.between(2, xbits)
        mean = rng.between(lo, hi) >> rng.below(xbits)
        some.append([min(hi, max(lo, mean + a)) for a in rng.signed(c, bits)])
    return some[:count]


def parameters(rng, c, wbits, center):
    """One iteration's: any legal value, the ends, few different weights (quotients that are whole), or values of a real network (y about 2^6)."""
    lo, hi = -2**(wbits - 1), 2**(wbits - 1) - 1
    kind = rng.below(4)
    if kind == 0: sh, g, b = rng.between(0, 31), rng.signed(c, wbits), rng.signed(c, 32)
    elif kind == 1: sh, g, b = rng.between(0, wbits), [(lo, hi)[rng.below(2)] for _ in range(c)], [(-2**31, 2**31 - 1, 0)[rng.below(3)] for _ in range(c)]
    elif kind == 2: sh, g, b = rng.between(0, 3), rng.signed(c, min(7, wbits)), rng.signed(c, 8)
    else:
        sh = max(0, wbits - 7)
        g, b = [min(hi, abs(v)) for v in rng.signed(c, wbits)], rng.signed(c, wbits)
    return sh, g, b if center else [0] * c


def run(cfg, seed, stall, counts, late=False, alone=False):
    """counts: tokens of each iteration. late: an iteration's parameters come when the iteration before has left. alone: a token comes when the one before has
    left. Returns the cycles of all beats, in and out."""
    rng = bench.Rng(seed)
    c, pe, xbits, ybits, wbits, center = (cfg[k] for k in ("C", "PE", "XBITS", "YBITS", "WBITS", "CENTER"))
    axi = cfg.get("AXI_WIDTH", 128)
    lane, nb = 64 if center else 32, c // pe
    todo = tokens(rng, c, xbits, sum(counts))
    xs, cs, es, ys = [], [], [], []
    done = 0
    for n in counts:
        sh, g, b = parameters(rng, c, wbits, center)
        hold = len(ys) if late else 0
        fill = (1 << 32) - (1 << wbits)         # bits of a lane that nothing reads
        lanes = [(gi & (1 << wbits) - 1) | rng.bits(32) & fill | (bi & 0xFFFFFFFF) << 32 & (1 << lane) - 1 for gi, bi in zip(g, b)]
        words = [bench.pack(lanes[i:i + pe], lane) for i in range(0, len(lanes), pe)]
        cs += [hold << axi | w for w in bench.param_beats(words, lane * pe, axi)]
        es += [hold << axi | w for w in bench.param_beats([sh | rng.bits(26) << 6], 32, axi)]
        for i in range(n):
            x = todo[done]
            user = (i == 0) | rng.below(4) << 1
            hold = done * nb if alone else 0
            xs += [hold << pe * xbits + 3 | user << pe * xbits | w for w in bench.beats(x, pe, xbits)]
            ys += [user << pe * ybits | w for w in bench.beats(model(x, center, sh, g, b, ybits), pe, ybits)]
            done += 1
    files = {"x.hex": bench.hexwords(xs, 35 + pe * xbits), "y.hex": bench.hexwords(ys, 3 + pe * ybits),
             "c.hex": bench.hexwords(cs, 32 + axi), "e.hex": bench.hexwords(es, 32 + axi)}
    limit = 1000 + (done * (nb + 150) + len(cs)) * 100 // (100 - stall) * 3
    r = bench.run("exactnorm", cfg, files, seed=seed, stall=stall, beats=len(ys), limit=limit)
    return [int(t) for t in r.read("in.txt").split()], [int(t) for t in r.read("out.txt").split()]


def timing(cfg, seed):
    """The header's latency and throughput, to the cycle."""
    nb, center, xbits = cfg["C"] // cfg["PE"], cfg["CENTER"], cfg["XBITS"]
    finish = 3 * xbits + 4 if center else 2 * xbits + 1
    latency = finish + xbits + cfg["YBITS"] + 15 + center + (cfg["PE"] - 1).bit_length()
    ii = max(nb, finish + 1)
    tin, tout = run(cfg, seed, 0, [1, 4], alone=True)
    for t in range(2, 5):                          # (the first two may have waited for their parameters)
        got, last = tout[t * nb] - tin[t * nb + nb - 1], tout[t * nb + nb - 1] - tout[t * nb]
        bench.check("exactnorm", got == latency, "%s: latency %d, the header says %d" % (cfg, got, latency))
        bench.check("exactnorm", last == nb - 1, "%s: a token's beats are not consecutive" % cfg)
    tin, tout = run(cfg, seed, 0, [8, 8, 8])
    starts = tout[::nb]
    for t in range(5, 24):
        steps, switches = starts[t] - starts[4], t // 8
        bench.check("exactnorm", (t - 4) * ii <= steps <= (t - 4) * ii + switches, "%s: %d tokens in %d cycles, the header says %d each" % (cfg, t - 4, steps, ii))
    starts = tin[::nb]
    bench.check("exactnorm", starts[16] - starts[8] <= 8 * ii + 1, "%s: input slower than the header says" % cfg)
    return "latency %d, II %d" % (latency, ii)


def cfg(c, pe, xbits=8, ybits=8, wbits=32, center=1, **more):
    return dict(C=c, PE=pe, XBITS=xbits, YBITS=ybits, WBITS=wbits, CENTER=center, **more)


def main():
    small = [cfg(1, 1), cfg(1, 1, center=0), cfg(2, 1, 2, 2, 2), cfg(2, 2, 3, 16, 8, 0), cfg(3, 3, 16, 16), cfg(5, 1, 9, 8, 16), cfg(6, 2, 8, 8, 32, 0), cfg(7, 7, 8, 9, 8, 0),
             cfg(7, 1, 16, 8, 16), cfg(15, 5, 16, 16, 32, 0), cfg(16, 4, MULBITS=27), cfg(33, 11, 9, 12, AXI_WIDTH=64), cfg(64, 2, center=0), cfg(80, 4, center=0),
             cfg(28, 1, AXI_WIDTH=32), cfg(12, 12, 4, 5, 24)]
    for i, c in enumerate(small):
        n = 60 if c["C"] < 40 else 30
        run(c, 10 + i, 0, [5, 1, 1, 3, n])
        run(c, 30 + i, 30, [2, n // 2, 1, 4])
        run(c, 50 + i, 70, [1, 2, n // 3])
        run(c, 70 + i, 20, [3, 1, 4, 2], late=True)
    bench.ok("exactnorm", "%d configurations, extremes and random tokens, stalls 0/30/70 %%, late parameters" % len(small))
    for c in (cfg(768, 8), cfg(768, 8, 16, 16, 32, 0, MULBITS=27), cfg(769, 1, 10, 8), cfg(384, 64)):
        run(c, 90, 0, [6, 7])
        run(c, 91, 30, [3, 3])
    bench.ok("exactnorm", "C = 768, 769, 384 up to PE = 64")
    for c in (cfg(1, 1), cfg(8, 1, center=0), cfg(64, 64, center=0), cfg(64, 2), cfg(17, 1, center=0), cfg(18, 1, center=0), cfg(19, 1, center=0), cfg(29, 1), cfg(10, 1), cfg(12, 1), cfg(13, 1),
              cfg(48, 2, 16, 16), cfg(2, 2, 16, 16, center=0), cfg(256, 4, 2, 2), cfg(768, 8)):
        bench.ok("exactnorm", "C=%d PE=%d: %s" % (c["C"], c["PE"], timing(c, 7)))


if __name__ == "__main__":
    main()
    bench.end(floor=17, simulations=102)
