# SPDX-License-Identifier: MIT
"""stalls: kernels of decoders under stalls that are drawn: mlo_attention, mlo_attention_prefix, mlo_prefix, mlo_rotary, mlo_place, mlo_mul, mlo_add, mlo_layernorm, in the
benches and against the models of their own scripts; shapes, words, frames, how often who stalls: all of it comes from the seed.

    python tests/verilog/stalls.py [RUNS [SEED]]            20 runs, seed: the date; MLO_STALLS=1000 says as much where nobody gives arguments

A failure names the seed's number and the run; the same seed has it again."""
import datetime
import os
import sys

import add
import attention
import attention_prefix
import bench
import layernorm
import mul
import place
import prefix
import rotary

RUNS = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("MLO_STALLS", 20))
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int(datetime.date.today().strftime("%Y%m%d"))


def pick(rng, *some): return some[rng.below(len(some))]
def divisor(rng, n): return pick(rng, *(d for d in range(1, n + 1) if n % d == 0))


def stalls_add(rng, seed, kernel=None):
    c = rng.between(1, 24)
    shape = add.cfg(c, divisor(rng, c), rng.between(2, 16), rng.between(2, 16), rng.between(2, 16), AXI_WIDTH=pick(rng, 32, 64, 128), SHIFT=int(rng.chance(30)))
    counts = [rng.between(1, 6) for _ in range(rng.between(2, 24))]
    add.run(shape, seed, rng.between(5, 80), counts, late=rng.chance(25), kernel=kernel or add.Add())


def stalls_mul(rng, seed): stalls_add(rng, seed, mul.Mul())


def stalls_rotary(rng, seed):
    d = 2 * rng.between(1, 6)
    shape = dict(C=d * rng.between(1, 4), D=d, T=rng.between(1, 9), PE=2 * divisor(rng, d // 2), XBITS=rng.between(2, 16), YBITS=rng.between(2, 16), SHIFT=int(rng.chance(30)), AXI_WIDTH=pick(rng, 32, 64, 128))
    if rng.chance(25): shape["RESIDENT"] = rng.between(2, 4)
    rates = {s: pick(rng, 0, 20, 50, 90) for s in ("s_in", "s_c", "s_t")}
    rotary.run(seed, rng.between(2, 8), rng.between(1, 3), s_out=rng.between(5, 90), **rates, **shape)


def stalls_place(rng, seed):
    c = rng.between(1, 24)
    shape = dict(C=c, T=rng.between(1, 9), PE=divisor(rng, c), XBITS=rng.between(2, 16), YBITS=rng.between(2, 16), SHIFT=int(rng.chance(30)), AXI_WIDTH=pick(rng, 32, 64, 128))
    if rng.chance(25): shape["RESIDENT"] = rng.between(2, 4)
    rates = {s: pick(rng, 0, 20, 50, 90) for s in ("s_in", "s_c", "s_t")}
    place.run(seed, rng.between(2, 8), rng.between(1, 3), s_out=rng.between(5, 90), jobs=rng.chance(50), **rates, **shape)


def stalls_layernorm(rng, seed):
    groups, width = pick(rng, 1, 1, 2, 3, 5), rng.between(1, 16)
    pe, some = divisor(rng, width), dict(AXI_WIDTH=pick(rng, 32, 64, 128))
    if groups > 1: some.update(GROUPS=groups, OWN=rng.below(2))
    shape = layernorm.cfg(groups * width, pe, rng.between(8, 16), pick(rng, 8, 16), rng.below(2), **some)
    layernorm.run(shape, seed, rng.between(5, 80), [rng.between(1, 8) for _ in range(rng.between(2, 6))], late=rng.chance(25))


def drawn_attention(rng):
    kv, d, t = rng.between(1, 3), pick(rng, 1, 2, 4, 6, 10), pick(rng, 1, 2, 3, 5, 7, 9, 13, 17)
    shape = dict(axi=pick(rng, 32, 64, 128), kvh=kv, causal=rng.below(2))
    if rng.chance(40): shape["bias"] = rng.below(2), rng.below(2), rng.between(0, 7)
    else: shape["band"] = rng.below(2)
    if "band" in shape: shape.update(prob=rng.below(2))
    if shape.get("prob"): shape.update(rounds=rng.below(2))
    return attention.config(kv * rng.between(1, 3), d, t, rng.between(1, min(t, 6)), divisor(rng, d), **shape)


def stalls_attention(rng, seed):
    c = pick(rng, *attention.GRID) if rng.chance(30) else drawn_attention(rng)
    more = pick(rng, {}, {}, {"extreme": True}, {"wild": True})
    attention.simulate(c, attention.some_frames(rng, c, rng.between(2, 5)), seed, stall=rng.between(5, 80), keys="mixed", **more)


def stalls_attention_prefix(rng, seed):
    kv, d, t, p, causal = rng.between(1, 3), pick(rng, 1, 2, 4, 6), rng.between(1, 12), pick(rng, 1, 1, 2, 3, 5, 16), rng.below(2)
    more = {"bias": (rng.below(2), 0, rng.between(0, 7))} if rng.chance(40) else {}
    pe = pick(rng, *(n for n in ((1, 2, 4, 8) if causal else (1, 2, 3, 5, 6)) if n <= t + p))
    c = attention_prefix.config(p, pick(rng, 0, 0, 1, 3), kv * rng.between(1, 3), d, t, pe, divisor(rng, d), axi=pick(rng, 32, 64, 128), kvh=kv, causal=causal, **more)
    how = pick(rng, {}, {}, {"extreme": True}, {"wild": True})
    attention_prefix.simulate(c, attention_prefix.some_frames(rng, c, rng.between(2, 5), 4), seed, s_in=rng.between(0, 80), s_p=rng.between(0, 90), s_out=rng.between(0, 80), **how)


def stalls_prefix(rng, seed):
    shape = dict(BEATS=rng.between(1, 9), WIDTH=rng.between(1, 70), P=rng.between(1, 17), RESIDENT=pick(rng, 0, 0, 1, 3), AXI_WIDTH=pick(rng, 8, 32, 128))
    rates = {s: pick(rng, 0, 20, 50, 90) for s in ("s_in", "s_p", "s_out")}
    prefix.run(seed, prefix.some_frames(rng, rng.between(2, 8), 6), **rates, **shape)


def main():
    for k, (name, share) in enumerate((("attention", 30), ("attention_prefix", 10), ("prefix", 5), ("rotary", 10), ("place", 10), ("mul", 10), ("add", 10), ("layernorm", 15))):
        runs = RUNS * share // 100
        for n in range(runs):
            print("# %s %d of seed %d" % (name, n, SEED), flush=True) if RUNS > 100 else None
            seed = (SEED * 8 + k) * 100000 + n
            globals()["stalls_" + name](bench.Rng(seed), seed % (1 << 31))
        bench.ok("stalls", "%s: %d runs, seed %d" % (name, runs, SEED))


if __name__ == "__main__":
    main()
    bench.end(floor=8, simulations=RUNS)
