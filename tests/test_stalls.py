#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random stalls on every port, random foldings: the same words, no breach of AXI, no hang. And a hang is told from its cause.

    python tests/test_stalls.py path/to/mlo [random|hangs|protocol|depths|fifos|least|tiles ...]

Foldings and stalls are drawn from the date (or MLO_SEED), which is printed. Words are those of host/core.onnx in ONNX Runtime. A build is compiled
once and run often: what differs are plusargs. A thousand runs: python tests/bench.py path/to/mlo stalls."""
import datetime
import glob
import json
import os
import re
import shutil
import subprocess
import time
import numpy as np
import onnx
import encoders
import graphs
import harness as t

SEED = int(os.environ.get("MLO_SEED", datetime.date.today().strftime("%Y%m%d")))
SMALL = encoders.Encoder(3, 12, 2, 6, 24, 6, "post", "Relu", mask=True)           # 6 tokens of 12 channels, with a mask stream
LONG = encoders.Encoder(2, 8, 1, 8, 8, 16, "post", "Relu")                        # frames that no pipeline holds
FIFOS = "fifos", "least"                                                          # one of the two a day


def model(name):
    if name not in ("small", "long"): return t.model(name)
    path = t.at(name + ".onnx")
    if not os.path.exists(path): onnx.save({"small": SMALL, "long": LONG}[name].model(), path)
    return path


def emitted(path, *flags):
    """A directory of the flags' own, made anew."""
    to = t.at("build-%d" % len(os.listdir(t.tmp)))
    t.good("compile", path, *flags, "-o", to)
    with open(os.path.join(to, "manifest.json")) as f: return to, json.load(f)


# ---- random foldings, random stalls --------------------------------------------------------------------------------------------------------

def random_flags(rng, manifest):
    """A folding of each kernel for itself, frames in flight, the width of the bus. manifest: of any build of the model."""
    t_n, c, l = manifest["tokens"], manifest["channels"], manifest["iterations"]
    pick = lambda options: int(rng.choice(options))
    # a big model is not folded to a multiplier or two: that would be simulated for ever
    divisors = lambda n: [d for d in range(1, n + 1) if n % d == 0 and (d >= 4 or c < 32)]
    entries = {"Defaults": {}}
    for k in manifest["kernels"]:
        if k["op"].startswith("MVU"):
            n = k["channels"]
            entries[k["name"]] = {"PE": pick(divisors(np.gcd(n, c) if n % 3 == 0 else n)), "SIMD": pick(divisors(k["macs"] // (t_n * l * n)))}
        elif k["op"] == "Attention": entries[k["name"]] = {"PE": pick(range(1, t_n + 1)), "SIMD": pick([d for d in divisors(k["channels"]) if manifest["head"] % d == 0])}
        else: entries[k["name"]] = {"PE": pick(divisors(k["channels"]))}
    flags = ["--folding", t.write("folding.json", json.dumps(entries)), "--frames-in-flight", pick([1, 2, 3]), "--axi-width", pick([32, 64, 128, 256])]
    memory, tile = str(rng.choice(["layer", "resident", "block"])), pick([1, 2, 3, 5, 100])
    return flags + ["--memory", memory] + ["--tile", tile] * (memory == "block")


class Design:
    """A random folding of a model, compiled for a simulator, with frames and what ONNX Runtime makes of them."""
    feeds = {}

    def __init__(self, name, rng, simulator, head, frames=None):
        _, plain = emitted(model(name), "--pe", 1, "--simd", 1) if name not in Design.feeds else (None, Design.feeds[name][0])
        plain["head"] = head
        self.flags = random_flags(rng, plain)
        self.path, self.manifest = emitted(model(name), *self.flags)
        if name not in Design.feeds: Design.feeds[name] = (plain, *self.golden())
        _, ins, outs = Design.feeds[name]
        self.frames, m = frames or min(int(rng.integers(1, 6)), len(ins)), self.manifest
        lanes, bits = m["stream"]["lanes"], m["stream"]["bits"]
        self.beats = self.frames * m["tokens"] * m["channels"] // lanes
        words = {"x.hex": self.hexadecimal([f[m["input"]["name"]] for f in ins], lanes, bits), "y.hex": self.hexadecimal(outs, lanes, bits)}
        if m["stream"]["masked"]: words["m.hex"] = self.hexadecimal([f["mlo_mask"].astype(np.int64) for f in ins], 1, 8)
        for file, text in words.items():
            with open(os.path.join(self.path, file), "w") as f: f.write(text)
        self.program, self.simulator = self.compiled(simulator), simulator

    def golden(self):
        path, name = os.path.join(self.path, "host/core.onnx"), self.manifest["output"]["name"]
        session, feeds = graphs.session(path), graphs.core_inputs(path, 5, np.random.default_rng(1))[:5]
        return feeds, [session.run([name], f)[0] for f in feeds]

    def hexadecimal(self, arrays, lanes, bits):
        """Frames as the bench's words: tlast, then the lanes, the last one first."""
        lines, pad = [], (bits + 7) // 8 * 8
        for a in arrays[:self.frames]:
            rows = a.reshape(-1, lanes).astype(np.int64) & ((1 << pad) - 1)
            lines += ["%d%s" % (i + 1 == len(rows), "".join("%0*x" % (pad // 4, v) for v in row[::-1])) for i, row in enumerate(rows)]
        return "\n".join(lines) + "\n"

    def compiled(self, simulator):
        if simulator == "verilator":
            p = t.call("sim", self.path, "--simulator", "verilator", timeout=1500)
            if p.returncode: raise RuntimeError(p.stderr.decode()[-300:])
            return [glob.glob(os.path.join(self.path, "sim/verilator-*/mlo_tb"))[0]]
        out = os.path.join(self.path, "tb.vvp")
        sources = sorted(glob.glob(os.path.join(self.path, "rtl/*.v")) + glob.glob(os.path.join(self.path, "tb/*.v")))
        subprocess.run(["iverilog", "-g2012", "-s", "mlo_tb", "-Pmlo_tb.WORDS=16384", "-o", out, *sources], check=True, timeout=300)
        return ["vvp", "-n", out]

    def run(self, rng):
        """'' or how a run with random stalls went wrong, and its cycles."""
        m, pick = self.manifest, lambda *options: int(rng.choice(options))
        how = {"seed": int(rng.integers(1, 1 << 30)), "latency": pick(0, 1, 7, 20, 64, 300), "rate": pick(0, 0, 40, 100, 200), "timeout": 100000}
        how.update({"stall_" + who: pick(0, 0, 5, 30, 60, 90) for who in ("source", "mask", "sink", "memory", "host")})
        how.update(input="x.hex", golden="y.hex", mask="m.hex", beats=self.beats, mask_beats=self.frames * m["tokens"] if m["stream"]["masked"] else 0, frames_in_flight=pick(*range(1, m["frames_in_flight"] + 1)))
        p = subprocess.run([*self.program, *("+%s=%s" % kv for kv in how.items())], cwd=self.path, capture_output=True, text=True, errors="replace", timeout=1500)
        lines = p.stdout.splitlines()
        verdict, breaches = [x for x in lines if x.startswith(("MLO PASS", "MLO FAIL"))], [x for x in lines if x.startswith("PROTOCOL")]
        passed = re.fullmatch(r"MLO PASS words %d cycles (\d+)" % self.beats, verdict[0]) if len(verdict) == 1 else None
        if p.returncode == 0 and passed and not breaches: return "", int(passed[1])
        return "%s with %s: status %d, %s" % (" ".join(map(str, self.flags[2:])), how, p.returncode, "; ".join(breaches[:2] or verdict or lines[-2:])), 0


def campaign(name, head, foldings, runs, simulator, seed, frames=None, say=lambda folding, runs: None):
    """'' or the first failure; foldings, runs, cycles."""
    cycles = []
    for k in range(foldings):
        rng = np.random.default_rng([seed, len(name), k])
        design = Design(name, rng, simulator, head, frames)
        for _ in range(runs):
            why, n = design.run(rng)
            if why: return "folding %d: %s; kept: %s" % (k, why, t.read(os.path.join(t.tmp, "folding.json")).decode()), cycles
            cycles.append(n)
        say(k, len(cycles))
        shutil.rmtree(design.path, True)
    return "", cycles


def stalled(runs, simulator, frames=None):
    if not t.have("random stalls", "iverilog", "verilator"): return
    start = time.monotonic()
    why, cycles = campaign("small", 6, 1, runs, simulator, SEED, frames)
    print("    drawn from %d (MLO_SEED sets it): %d cycles, %.0f s" % (SEED, sum(cycles), time.monotonic() - start), flush=True)
    t.case("a random folding in %s, %d runs with random stalls on every port: every word, no breach of AXI, no hang" % (simulator, runs), why)


def check_icarus(): stalled(2, "icarus", 1)
def check_verilator(): stalled(12, "verilator")


# ---- a hang has a cause ---------------------------------------------------------------------------------------------------------------------

def edit(path, old, new):
    text = t.read(path).decode()
    assert text.count(old) == 1, "%s holds %d times: %s" % (path, text.count(old), old)
    with open(path, "w") as f: f.write(text.replace(old, new))


def spoiled(good, file, old, new):
    to = t.at("spoiled")
    shutil.rmtree(to, True)
    shutil.copytree(good, to, ignore=shutil.ignore_patterns("sim"))
    edit(os.path.join(to, file), old, new)
    return to


def says(path, pattern, *flags):
    """'' when sim fails with status 1 and one line that says this."""
    p = t.call("sim", path, *flags)
    error = p.stderr.decode().strip()
    return "" if p.returncode == 1 and error.count("\n") == 0 and re.search(pattern, error) else "status %d: %s" % (p.returncode, error)


def check_hangs():
    if not t.have("hangs", "iverilog"): return
    good, m = emitted(model("small"), "--pe", 4, "--simd", 4)
    t.case("a memory that never answers is named", says(good, r"nothing moved.*waits for parameters.*took a read request and does not answer", "--axi-latency", 100000))
    hangs = (
            ("a memory that takes no request", "tb/mlo_sim_ram.v", "assign s_axi_arready = open &&", "assign s_axi_arready = 1'b0 && open &&", "takes no read request: m_axi_arready"),
            ("a sink that takes nothing", "tb/mlo_sim_sink.v", "s_axis_tready <= (percent >= stall);", "s_axis_tready <= 1'b0;", "m_axis_tready stays low"),
            ("a source that ends in the middle of a frame", "tb/mlo_sim_source.v", "if (enable && next < count &&", "if (enable && next < count - 1 &&", "waits for data.*(s_axis|s1_axis) brings no more"))
    for what, file, old, new, pattern in t.drawn(hangs, 3, name=lambda hang: hang[0]):          # 50000 cycles in which nothing moves
        t.case(what + " is named", says(spoiled(good, file, old, new), pattern))


def depths(path):
    return {name: (old, int(old[1])) for name, old in ((n, re.search(r"\.DEPTH\((\d+)\)\) u_%s " % n, t.read(os.path.join(path, "rtl/mlo_core.v")).decode())) for n in ("attention_0_in0_fifo", "add_0_in1_fifo"))}


def check_depths():
    """A depth in the model that could deadlock is refused, with the least that cannot."""
    folded = t.at("folded.json")
    t.good("fold", model("long"), "--pe", 2, "--simd", 2, "-o", folded)
    text = t.read(folded).decode()
    for tokens, refused in (15, True), (16, False):
        found = [m for m in re.finditer(r'("key": *"mlo\.fifo\.1",\s*"value": *")(\d+)"', text) if int(m[2]) > 16]        # the residual path around attention: a frame of 16 tokens
        edited = text[:found[0].start()] + found[0][1] + str(tokens) + '"' + text[found[0].end():] if found else text
        p = t.call("compile", t.write("edited.json", edited), "-o", t.at("edited-%d" % tokens))
        said = p.stderr.decode()
        t.case("a residual FIFO of %d tokens around attention's frame of 16" % tokens, "" if len(found) == 1 and bool(p.returncode) == refused and (not refused or "less than 16 can deadlock" in said) else "%d, %d: %s" % (len(found), p.returncode, said[-200:]))


def check_fifos():
    """What FIFOs hold at most: with a beat less they run full, which holds somebody up; far too shallow is a deadlock, which is named."""
    if not t.due("fifos", FIFOS, 2) or not t.have("FIFOs", "iverilog"): return
    good, m = emitted(model("long"), "--pe", 4, "--simd", 4, "--frames-in-flight", 4)
    flags = ("--frames", 4)
    whole = json.loads(t.good("sim", good, *flags))
    peaks = {f["name"]: f["peak"] for f in whole["fifos"]}
    print("    peaks %s" % {f["name"]: "%d of %d" % (f["peak"], f["depth"]) for f in whole["fifos"]}, flush=True)
    res, _ = emitted(model("mlp-res"), "--pe", 4, "--simd", 4)
    for name, report in ("long", whole), ("mlp-res", json.loads(t.good("sim", res, "--frames", 2))):
        each = {f["name"]: (f["predicted_peak"], f["peak"]) for f in report["fifos"]}
        # a token's beats are predicted to be evenly spaced; there are four more in skids
        wrong = [f["name"] for f in report["fifos"] if abs(f["predicted_peak"] - f["peak"]) > max(4, f["beats_per_token"]) or f["predicted_peak"] > f["depth"]]
        t.case("%s: the most that FIFOs hold, predicted and measured: %s" % (name, each), ", ".join(wrong))
        t.case("%s: a FIFO that runs full is predicted to, and no other one" % name, ", ".join(f["name"] for f in report["fifos"] if (f["predicted_peak"] == f["depth"]) != (f["peak"] == f["depth"])))
    for name, bus in t.drawn((("attention_0_in0_fifo", "attention_0_in0"), ("add_0_in1_fifo", "add_0_in1")), 2, name=lambda fifo: fifo[0]):
        found, depth = depths(good)[name]
        less = lambda n: spoiled(good, "rtl/mlo_core.v", found[0], found[0].replace("(%d)" % depth, "(%d)" % n))
        p = t.call("sim", less(peaks[bus] - 1), *flags)
        report = json.loads(p.stdout)
        full = any(f["name"] == bus and f["peak"] == f["depth"] == peaks[bus] - 1 for f in report["fifos"])
        words = "words" in report and report["words"] == whole["words"]
        t.case("%s, a beat less than its peak of %d: it fills up" % (bus, peaks[bus]), "" if full else "%s: %s" % (p.stderr.decode()[-200:], report["fifos"]))
        print("    %s at %d beats: %s" % (bus, peaks[bus] - 1, "%d cycles, %d without" % (report["cycles"], whole["cycles"]) if words else "it comes to a stop"), flush=True)
        t.case("%s, far too shallow: a deadlock that names it" % bus, says(less(3), r"nothing moved.*full with 3 beats.*: a deadlock; FIFO %s of 3 beats is too shallow" % bus, *flags))


def check_least():
    """FIFOs as fold makes them: deeper ones save no cycle; with a token less one runs full, or could deadlock and is refused."""
    if not t.due("least", FIFOS, 2) or not t.have("FIFOs", "iverilog"): return
    cores = ("long", ("--pe", 4, "--simd", 4, "--frames-in-flight", 2)), ("mlp-res", ("--pe", 4, "--simd", 4)), ("long", ("--pe", 2, "--simd", 4, "--memory", "block", "--tile", 3))
    for name, flags in t.drawn(cores, 3):
        folded = t.good("fold", model(name), "--max-cost", 1, *flags).decode()       # 8-bit operands: cores whose peaks are told to the beat
        found = list(re.finditer(r'"key": *"mlo\.fifo\.\d",\s*"value": *"(\d+)"', folded))

        def simulated(change):
            """A report with depths changed, the k-th FIFO's by change(k, tokens); or a refusal."""
            text, to = folded, t.at("depths")
            for k, m in reversed(list(enumerate(found))): text = text[:m.start(1)] + str(change(k, int(m[1]))) + text[m.end(1):]
            shutil.rmtree(to, True)
            p = t.call("compile", t.write("depths.json", text), "-o", to, text=True)
            return p.stderr if p.returncode else json.loads(t.call("sim", to, "--frames", 4, text=True).stdout)
        whole, deep = simulated(lambda k, n: n), simulated(lambda k, n: n + 64)
        t.case("%s %s: %d FIFOs, %s tokens: no cycle longer than with 64 more" % (name, " ".join(map(str, flags)), len(found), [int(m[1]) for m in found]), "" if found and whole["cycles"] <= deep["cycles"] and whole["pass"] and deep["pass"] else "%s, %s" % (whole, deep))
        for less in range(len(found)):
            said = simulated(lambda k, n: n - (k == less))
            full = isinstance(said, dict) and any(f["peak"] == f["depth"] < was["depth"] for f, was in zip(said["fifos"], whole["fifos"]))
            print("    the %dth a token less: %s" % (less, "%d cycles, %d without" % (said["cycles"], whole["cycles"]) if full else said))
            t.case("%s: the %dth, a token less: full, or refused" % (name, less), "" if full or "can deadlock" in said else str(said["fifos"]))


def check_tiles():
    """Two frames share tiles. Queries, keys and values leave one matrix, so that what a query waits for is the rest of its frame: its FIFO holds a frame, and no more."""
    if not t.have("FIFOs of tiles", "iverilog"): return
    path, to = t.at("tiles.onnx"), t.at("tiles")
    onnx.save(encoders.Encoder(2, 20, 3, 4, 36, 5, "post", "Relu").model(), path)
    folded = t.good("fold", path, "--max-cost", 1, "--pe", 2, "--simd", 4, "--memory", "block", "--tile", 5, "--frames-in-flight", 2).decode()
    t.case("queries wait for the keys of their frame", "" if re.findall(r'"key": *"mlo\.fifo\.0",\s*"value": *"(\d+)"', folded)[0] == "5" else str(re.findall(r'"key": *"mlo\.fifo\.\d",\s*"value": *"(\d+)"', folded)))
    t.good("compile", t.write("tiles.json", folded), "-o", to)
    report = json.loads(t.call("sim", to, "--frames", 4, "--simulator", "icarus", text=True).stdout)
    t.case("and the run does not stop", "" if report["pass"] else str(report))


# ---- a breach of AXI is seen ------------------------------------------------------------------------------------------------------------------

def check_protocol():
    """In the whole top: what a module at a door does wrong is said, with the port and the rule. (Each rule by itself: tests/verilog/check.py.)"""
    if not t.have("breaches of AXI", "iverilog"): return
    good, _ = emitted(model("small"), "--pe", 4, "--simd", 4)
    stalls = ("--stall", 40)
    for what, file, old, new, rule, flags in (
            ("an output that is withdrawn", "rtl/mlo_exit.v", ".m_tvalid(m_axis_tvalid),", ".m_tvalid(offered),", "m_axis hold", stalls),
            ("a request that changes while it waits", "rtl/mlo_axi_reader.v", "assign m_axi_araddr  = {ar_addr,", "assign m_axi_araddr  = {addr,", "m_axi_ar stable", stalls),
            ("requests across 4 KB", "rtl/mlo_axi_reader.v", "wire [8:0]    offset   = {1'b0, addr[7:0]} &", "wire [8:0]    offset   = {1'b0, addr[7:0] + 8'd1} &", "m_axi_ar boundary", ()),
            ("an answer nobody asked for", "rtl/mlo_regs.v", "if (s_axil_bready) s_axil_bvalid <= 1'b0;", "if (1'b0) s_axil_bvalid <= 1'b0;", "s_axil_b unasked", ()),
            ("RLAST on every beat", "tb/mlo_sim_ram.v", "s_axi_rlast  <= (beat == queue_len[head[5:0]]);", "s_axi_rlast  <= 1'b1;", "m_axi_r rlast", ()),
            ("tlast in the middle of a token", "rtl/mlo_exit.v", "s_axis_tuser[1] && (beat == FINAL)", "s_axis_tuser[1]", "m_axis last", ())):
        d = spoiled(good, file, old, new)
        if "offered" in new: edit(os.path.join(d, file), "    wire [W-1:0] data;\n", "    wire [W-1:0] data;\n    wire offered;\n    assign m_axis_tvalid = offered && (m_axis_tready || beat[0]);\n")
        p = t.call("sim", d, *flags)
        said = [x for x in t.read(os.path.join(d, "sim/run.log")).decode().splitlines() if x.startswith("PROTOCOL")]
        t.case("%s: %s" % (what, rule), "" if p.returncode == 1 and any(re.fullmatch(r"PROTOCOL %s at cycle \d+" % rule, x) for x in said) else "status %d, %s, %s" % (p.returncode, said[:3], p.stderr.decode()[-200:]))


if __name__ == "__main__": t.main(check_icarus, check_verilator, check_hangs, check_protocol, check_depths, check_fifos, check_least, check_tiles,
                                  floor=16)
