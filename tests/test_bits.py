#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One definition, three executions, the same bits: host/core.onnx in ONNX Runtime, mlo run, the Verilog.

    python tests/test_bits.py path/to/mlo [NAME ...]

Nine encoders: bert-tiny, vit-tiny, bert-12-torchscript, six of odd sizes (encoders.py); and bert-tiny-mask. Every core gets 100 random inputs and the
extremes, in ONNX Runtime and in C. Verilator gets 3 and the extremes of the nine, Icarus one of these of each of the six, by the date; its words come
from ONNX Runtime, mlo evaluates nothing there.
`make bench BENCH=bits` leaves nothing out: all inputs of the nine in Verilator, 3 and the extremes in Icarus."""
import concurrent.futures
import datetime
import json
import os
import numpy as np
import onnx
import encoders
import graphs
import harness as t
from hardware import JOBS, borrow, lend, play

RANDOM, EXTREMES = 100, 4                                # all minimum, all maximum, zeros, one hot; C gets three more
LARGE = ["bert-tiny", "vit-tiny", "bert-12-torchscript"]
NINE = LARGE + [*encoders.ODD]


def source(name): return t.write(name + ".onnx", encoders.ODD[name].model().SerializeToString()) if name in encoders.ODD else t.model(name)


class Core:
    """A build directory, and what ONNX Runtime makes of its core."""
    made = {}

    def __init__(self, name):
        self.path = t.at("build-" + name)
        lanes = 4 if name in LARGE else 8                # test_hardware's cores, too: compiled once
        t.good("compile", source(name), "--pe", lanes, "--simd", lanes, "-o", self.path)
        with open(os.path.join(self.path, "manifest.json")) as f: self.manifest = json.load(f)
        self.onnx, self.x, self.y = os.path.join(self.path, "host/core.onnx"), self.manifest["input"]["name"], self.manifest["output"]["name"]
        self.session = graphs.session(self.onnx)
        self.feeds = graphs.core_inputs(self.onnx, RANDOM, np.random.default_rng(7))
        self.golden = [self.session.run([self.y], f)[0] for f in self.feeds]

    @classmethod
    def of(cls, name):
        if name not in cls.made: cls.made[name] = cls(name)
        return cls.made[name]

    def few(self): return [*range(3), *range(RANDOM, RANDOM + EXTREMES)]


def differ(a, b):
    if a.shape != b.shape or a.dtype != b.dtype: return "%s %s, not %s %s" % (a.dtype, a.shape, b.dtype, b.shape)
    return "" if np.array_equal(a, b) else "%d of %d words differ, the first at %s" % ((a != b).sum(), a.size, np.argwhere(a != b)[0])


# ---- the host's parts -------------------------------------------------------------------------------------------------------------------

BIND = {"stories260k-step": ["--context", "16"], "bert-tiny-dynamic": ["--dim", "seq=16"], "distilbert-torchscript-dynamic": ["--dim", "seq=16"]}


def chain(parts, feed):
    """pre | core | post: each gets what it asks for by name, of the model's inputs and of what came before."""
    values = dict(feed)
    for s in parts: values.update(zip([o.name for o in s.get_outputs()], s.run(None, {i.name: values[i.name] for i in s.get_inputs()})))
    return values


def parts_differ(name, whole, path):
    """'' or how pre | core | post differs from the quantized whole; and what mlo makes of pre from what ONNX Runtime does, in steps of the core's input."""
    model, parts = graphs.session(whole), [graphs.session(os.path.join(path, "host/%s.onnx" % p)) for p in ("pre", "core", "post")]
    with open(os.path.join(path, "manifest.json")) as f: x = json.load(f)["input"]["name"]
    original, steps = onnx.load(whole), 0
    for seed in range(3):
        feed = graphs.feeds(original, seed, ints=(0, encoders.WORDS))
        values = chain(parts, feed)
        for o, want in zip(model.get_outputs(), model.run(None, feed)):
            why = differ(values[o.name], want)
            if why: return "%s: %s" % (o.name, why), steps
        pre = run(os.path.join(path, "host/pre.onnx"), feed)
        steps = max(steps, np.abs(pre[x].astype(int) - values[x].astype(int)).max())
        if "mlo_mask" in pre and not np.array_equal(pre["mlo_mask"], values["mlo_mask"]): return "mlo makes another mask of pre", steps
    return "", steps


def check_parts():
    """Every model that quantizes; whisper-tiny's other loop is on the host, BERTs look words up there and pool."""
    found = 0
    for name in t.drawn([*t.models(), *encoders.ODD], 2):
        path, whole = t.at("parts-" + name), t.at("whole-" + name + ".onnx")
        if t.call("compile", source(name), *BIND.get(name, []), "-o", path).returncode: continue
        t.good("quantize", source(name), *BIND.get(name, []), "--onnx", "-o", whole)
        why, steps = parts_differ(name, whole, path)
        found += 1
        t.case("pre | core | post in ONNX Runtime gives the bits of the quantized whole: " + name, why)
        t.case("mlo's pre is within a step of the core's input: %s, off by %d" % (name, steps), "" if steps <= 1 else "%d steps" % steps)
    t.case("models that quantize: %d" % found, "" if found >= (20 if t.full else 8) else "20 of all did")


# ---- in C -------------------------------------------------------------------------------------------------------------------------------

def run(path, feed):
    np.savez(t.at("in.npz"), **feed)
    t.good("run", path, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    with np.load(t.at("out.npz")) as z: return {k: z[k] for k in z.files}


def check_run():
    for name in t.drawn(NINE + ["bert-tiny-mask"], 4):
        core, why = Core.of(name), ""
        for k, (feed, want) in enumerate(zip(core.feeds, core.golden)):
            why = differ(run(core.onnx, feed)[core.y], want)
            if why: why = "input %d: %s" % (k, why); break
        distinct = len({y.tobytes() for y in core.golden})
        t.case("core.onnx in ONNX Runtime and mlo run give the same bits: %s, %d inputs" % (name, len(core.feeds)), why or ("" if distinct >= len(core.feeds) - 1 else "only %d distinct outputs" % distinct))


# ---- in Verilog -------------------------------------------------------------------------------------------------------------------------

def icarus(core, which):
    """Some of a core's inputs through the emitted Makefile, against words from ONNX Runtime alone. '' or what went wrong."""
    return play(core.path, [core.feeds[k] for k in which], [core.golden[k] for k in which])


def verilator(core, which):
    """Some of a core's inputs in Verilator. '' or what went wrong, and the report."""
    feeds, golden = [core.feeds[k] for k in which], [core.golden[k] for k in which]
    np.savez(os.path.join(core.path, "x.npz"), **{k: np.concatenate([f[k] for f in feeds]) for k in feeds[0]})
    borrow(core.path)
    p = t.call("sim", core.path, "--simulator", "verilator", "--inputs", os.path.join(core.path, "x.npz"), "--outputs", os.path.join(core.path, "y.npz"), timeout=3000)
    lend(core.path)
    if p.returncode: return p.stderr.decode(errors="replace"), {}
    report = json.loads(p.stdout)
    with np.load(os.path.join(core.path, "y.npz")) as z: why = differ(z[core.y], np.concatenate(golden))
    return why or ("" if report["pass"] and report["words"] == sum(y.size for y in golden) else "%s words compared" % report["words"]), report


def check_icarus():
    if not t.have("cores in Icarus", "iverilog"): return
    cores = {name: Core.of(name) for name in encoders.ODD}
    # a frame takes Icarus a quarter of a minute: one of the seven by date, another one for each core
    day, few = datetime.date.today().toordinal(), next(iter(cores.values())).few()
    which = {name: few if t.full else [few[(day + k) % len(few)]] for k, name in enumerate(cores)}
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool: whys = pool.map(lambda name: icarus(cores[name], which[name]), cores)
    for name, why in zip(cores, whys): t.case("core.onnx in ONNX Runtime and Icarus give the same bits: %s, inputs %s" % (name, which[name]), why)


def check_verilator():
    if not t.have("cores in Verilator", "verilator"): return
    for name in t.drawn(NINE, 2):
        core = Core.of(name)
        t.case("core.onnx in ONNX Runtime and Verilator give the same bits: %s, 3 inputs and %d extremes" % (name, EXTREMES), verilator(core, core.few())[0])


if __name__ == "__main__":
    t.main(check_run, check_parts, check_icarus, check_verilator, floor=28)
