# SPDX-License-Identifier: MIT
"""mlo_layernorm against plain Python integers: extreme tokens, one norm of each or several, norms of frames of any length, several iterations, stalls, late
parameters, latency and throughput."""
from math import isqrt

import bench

ROOT_II = 43                    # the header's constant


def model(x, center, eps, sh, g, b, ybits):
    """The formula of the header, with integers of any size and a division."""
    c = len(x)
    s1 = sum(x) if center else 0
    v = c * sum(a * a for a in x) - s1 * s1 + eps
    assert 1 <= v < 2**62
    k = next(k for k in range(31) if v << 2 * k >= 1 << 60)
    root = isqrt((v << 2 * k) >> 30)
    r = 2**31 // root
    n = [((c * a - s1) * r + 2**(31 - k)) >> (32 - k) for a in x]
    lo, hi = -2**(ybits - 1), 2**(ybits - 1) - 1
    return [min(hi, max(lo, (ni * gi + bi) >> sh)) for ni, gi, bi in zip(n, g, b)]


def tokens(rng, c, xbits, count):
    """The extremes first, in an order of their own per seed; then random tokens of all sizes."""
    lo, hi = -2**(xbits - 1), 2**(xbits - 1) - 1
    hot = rng.below(c)
    some = [[lo] * c, [hi] * c, [0] * c, [1] * c, [-1] * c,
            [lo if i % 2 else hi for i in range(c)], [hi if i % 2 else lo for i in range(c)],
            [lo if i == hot else 0 for i in range(c)], [hi if i == hot else 0 for i in range(c)], [hi if i == hot else lo for i in range(c)],
            [lo if i == hot else hi for i in range(c)], [1 if i == hot else 0 for i in range(c)],
            [lo if i < c // 2 else hi for i in range(c)], [i % 2 for i in range(c)]]
    for i in range(len(some) - 1, 0, -1):
        j = rng.below(i + 1)
        some[i], some[j] = some[j], some[i]
    while len(some) < count:
        bits = rng.between(2, xbits)
        mean = rng.between(lo, hi) >> rng.below(xbits)
        some.append([min(hi, max(lo, mean + a)) for a in rng.signed(c, bits)])
    return some[:count]


def parameters(rng, c, ybits):
    """One iteration's: any legal value, or values of a real network (y about G*n)."""
    if rng.chance(40):
        eps = rng.bits(rng.between(1, 48)) or 1
        return eps, rng.between(0, 40), rng.signed(c, 16), rng.signed(c, 32)
    sh = 14 + 14 - (ybits - 5)
    return 1 if rng.chance(50) else rng.between(1, 1000), sh, rng.signed(c, 15), [a + (1 << (sh - 1)) for a in rng.signed(c, 24)]


def run(cfg, seed, stall, counts, late=False, alone=False, whole=False):
    """counts: tokens (or frames, whole: as long as they may be) of each iteration. late: an iteration's parameters come when the iteration before has left.
    alone: a token comes when the one before has left. Returns the cycles of all beats, in and out."""
    rng = bench.Rng(seed)
    c, pe, xbits, ybits = cfg["C"], cfg["PE"], cfg["XBITS"], cfg["YBITS"]
    groups, own, frame = cfg.get("GROUPS", 1), cfg.get("OWN", 0), cfg.get("FRAME", 1)
    width = c // groups         # channels of a norm
    axi = cfg.get("AXI_WIDTH", 128)
    nb = c // pe
    todo = tokens(rng, width, xbits, sum(counts) * groups)
    xs, cs, es, ys = [], [], [], []
    done = 0
    for n in counts:
        eps, sh, g, b = parameters(rng, c if own else width, ybits)
        hold = len(ys) if late else 0
        lanes = [(gi & 0xFFFF) | (bi & 0xFFFFFFFF) << 32 | rng.bits(16) << 16 for gi, bi in zip(g, b)]
        words = [bench.pack(lanes[i:i + pe], 64) for i in range(0, len(lanes), pe)]
        cs += [hold << axi | w for w in bench.param_beats(words, 64 * pe, axi)]
        es += [hold << axi | w for w in bench.param_beats([eps | sh << 48 | rng.bits(10) << 54], 64, axi)]
        for i in range(n if frame > 1 else 0):
            long = frame if whole or rng.chance(40) else rng.between(1, frame)
            some = tokens(rng, c, xbits, 99)
            x = sum((some[rng.below(99)] for _ in range(long)), []) if rng.chance(80) else tokens(rng, c * long, xbits, 14)[rng.below(14)]
            y = model(x, cfg["CENTER"], eps, sh, g * long, b * long, ybits)
            hold = len(ys) if alone else 0
            for k in range(long):
                user = (i == k == 0) | (k == long - 1) << 1 | rng.below(2) << 2
                xs += [hold << pe * xbits + 3 | user << pe * xbits | w for w in bench.beats(x[k * c:k * c + c], pe, xbits)]
                ys += [user << pe * ybits | w for w in bench.beats(y[k * c:k * c + c], pe, ybits)]
            done += 1
        for i in range(n if frame == 1 else 0):
            norms = todo[done * groups:done * groups + groups]
            x = sum(norms, [])
            user = (i == 0) | rng.below(4) << 1
            part = lambda v, k: v[k * width:k * width + width] if own else v
            y = sum((model(a, cfg["CENTER"], eps, sh, part(g, k), part(b, k), ybits) for k, a in enumerate(norms)), [])
            hold = done * nb if alone else 0
            xs += [hold << pe * xbits + 3 | user << pe * xbits | w for w in bench.beats(x, pe, xbits)]
            ys += [user << pe * ybits | w for w in bench.beats(y, pe, ybits)]
            done += 1
    files = {"x.hex": bench.hexwords(xs, 35 + pe * xbits), "y.hex": bench.hexwords(ys, 3 + pe * ybits),
             "c.hex": bench.hexwords(cs, 32 + axi), "e.hex": bench.hexwords(es, 32 + axi)}
    limit = 1000 + (done * (max(nb * frame, ROOT_II * groups) + 100) + len(cs)) * 100 // (100 - stall) * 3
    r = bench.run("layernorm", cfg, files, seed=seed, stall=stall, beats=len(ys), limit=limit)
    return [int(t) for t in r.read("in.txt").split()], [int(t) for t in r.read("out.txt").split()]


def timing(cfg, seed):
    """The header's latency and throughput, to the cycle."""
    groups = cfg.get("GROUPS", 1)
    nb = cfg["C"] // groups // cfg["PE"]           # beats of a norm
    lp = (cfg["PE"] - 1).bit_length()
    latency = (65 if cfg["CENTER"] else 62) + lp
    ii = max(nb, ROOT_II)
    tin, tout = run(cfg, seed, 0, [1, 4], alone=True)
    for t in range(2 * groups, 5 * groups):        # (the first two may have waited for their parameters)
        first, last = tout[t * nb], tout[t * nb + nb - 1]
        got = first - tin[t * nb + nb - 1]
        waits = first - tout[t * nb - nb] if t % groups else ii
        bench.check("layernorm", got == latency or (got > latency and waits == ii), "%s: latency %d, the header says %d" % (cfg, got, latency))
        bench.check("layernorm", last - first == nb - 1, "%s: a token's beats are not consecutive" % cfg)
    tin, tout = run(cfg, seed, 0, [8, 8, 8])
    per = 8 * groups
    starts = tout[::nb]
    for t in range(5, 3 * per):
        steps, switches = starts[t] - starts[4], t // per
        bench.check("layernorm", (t - 4) * ii <= steps <= (t - 4) * ii + switches,
                    "%s: %d tokens in %d cycles, the header says %d each" % (cfg, t - 4, steps, ii))
    extra = starts[-1] - starts[4] - (3 * per - 5) * ii
    starts = tin[::nb]
    bench.check("layernorm", starts[2 * per] - starts[per] <= per * ii + 1, "%s: input slower than the header says" % cfg)
    return "latency %d, II %d, two iteration switches +%d" % (latency, ii * groups, extra)


def frame_timing(cfg, seed):
    """As timing, of frames."""
    nb = cfg["C"] // cfg["PE"] * cfg["FRAME"]      # beats of a frame
    latency = (65 if cfg["CENTER"] else 62) + (cfg["PE"] - 1).bit_length()
    ii = max(nb, ROOT_II)
    tin, tout = run(cfg, seed, 0, [1, 4], alone=True, whole=True)
    for t in range(2, 5):
        got, last = tout[t * nb] - tin[t * nb + nb - 1], tout[t * nb + nb - 1] - tout[t * nb]
        bench.check("layernorm", got == latency, "%s: latency %d, the header says %d" % (cfg, got, latency))
        bench.check("layernorm", last == nb - 1, "%s: a frame's beats are not consecutive" % cfg)
    starts = run(cfg, seed, 0, [8, 8], whole=True)[1][::nb]
    for t in range(5, 16):
        steps = starts[t] - starts[4]
        bench.check("layernorm", (t - 4) * ii <= steps <= (t - 4) * ii + t // 8, "%s: %d frames in %d cycles, the header says %d each" % (cfg, t - 4, steps, ii))
    return "latency %d, II %d" % (latency, ii)


def cfg(c, pe, xbits=16, ybits=16, center=1, **more):
    return dict(C=c, PE=pe, XBITS=xbits, YBITS=ybits, CENTER=center, **more)


def main():
    small = [cfg(1, 1), cfg(1, 1, 8, 8, 0), cfg(2, 1, 16, 8), cfg(2, 2, 8, 16, 0), cfg(3, 3, 16, 16), cfg(5, 1, 12, 8), cfg(7, 7, 8, 8, 0),
             cfg(15, 5, 16, 8), cfg(16, 4, 16, 16, 1, MULBITS=27), cfg(16, 16, 16, 16, 0), cfg(33, 11, 9, 16, 1, AXI_WIDTH=64),
             cfg(64, 2, 16, 16, 0), cfg(42, 1, 8, 16), cfg(45, 1, 16, 8, 0, AXI_WIDTH=32), cfg(128, 8, 16, 8),
             cfg(2, 1, 8, 8, 1, GROUPS=2), cfg(6, 2, 16, 8, 0, GROUPS=3), cfg(8, 4, 16, 8, 0, GROUPS=2, OWN=1), cfg(20, 1, 12, 16, 1, GROUPS=5, OWN=1),
             cfg(64, 2, 16, 8, 0, GROUPS=4), cfg(96, 1, 16, 8, 1, GROUPS=2, AXI_WIDTH=64), cfg(12, 4, 16, 8, 0, GROUPS=3, MULBITS=27),
             cfg(1, 1, FRAME=2), cfg(2, 2, 16, 8, FRAME=3), cfg(8, 2, 16, 8, 1, FRAME=30), cfg(6, 3, 9, 16, 0, FRAME=5, AXI_WIDTH=64), cfg(4, 1, 16, 8, FRAME=11),
             cfg(5, 5, 16, 8, FRAME=16)]
    for i, c in enumerate(small):
        n = 60 if c["C"] < 40 else 30
        run(c, 10 + i, 0, [5, 1, 1, 3, n])
        run(c, 30 + i, 30, [2, n // 2, 1, 4])
        run(c, 50 + i, 70, [1, 2, n // 3])
        run(c, 70 + i, 20, [3, 1, 4, 2], late=True)
    bench.ok("layernorm", "%d configurations, extremes and random tokens, stalls 0/30/70 %%, late parameters" % len(small))
    for c in (cfg(768, 8), cfg(768, 8, 16, 8, 0, MULBITS=27), cfg(769, 1, 10, 8), cfg(384, 64, 16, 16), cfg(64, 16, 16, 8, FRAME=512)):
        run(c, 90, 0, [6, 7])
        run(c, 91, 30, [3, 3])
    bench.ok("layernorm", "C = 768, 769, 384 up to PE = 64")
    for c in (cfg(1, 1), cfg(8, 1, 16, 8, 0), cfg(64, 2), cfg(41, 1), cfg(42, 1), cfg(43, 1), cfg(44, 1), cfg(45, 1), cfg(88, 2, 8, 8), cfg(256, 4),
              cfg(128, 32), cfg(768, 8), cfg(64, 2, 16, 8, 0, GROUPS=4), cfg(8, 4, 16, 8, 1, GROUPS=2), cfg(90, 1, 16, 8, 0, GROUPS=2, OWN=1)):
        bench.ok("layernorm", "C=%d PE=%d%s: %s" % (c["C"], c["PE"], " GROUPS=%d" % c["GROUPS"] if "GROUPS" in c else "", timing(c, 7)))
    for c in cfg(1, 1, FRAME=2), cfg(8, 2, FRAME=30), cfg(6, 3, 16, 8, 0, FRAME=21), cfg(6, 3, 16, 8, 0, FRAME=22), cfg(16, 1, FRAME=9):
        bench.ok("layernorm", "C=%d PE=%d FRAME=%d: %s" % (c["C"], c["PE"], c["FRAME"], frame_timing(c, 7)))


if __name__ == "__main__":
    main()
    bench.end(floor=22, simulations=162)
