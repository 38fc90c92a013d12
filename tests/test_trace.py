#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `mlo sim` counts: the counters of the kernels, memory traffic, --trace. Judged by counting in the source model (shapes of weights,
iterations, tokens) and by the headers of verilog/ (cores.py), never by what mlo predicts.

    python tests/test_trace.py path/to/mlo [NAME ...]        Icarus; Verilator once"""
import json
import os
import re
import onnx
import cores
import harness as t


def reported(r): return {k: v for k, v in r.items() if k != "simulator_because"}          # a trace is a reason of its own


def build(name, *flags):
    path = t.at("_".join([name, *flags]).replace("--", ""))
    t.good("compile", t.model(name), *flags, "-o", path)
    return path


def sim(path, *flags):
    """The report, the lines behind it."""
    lines = [json.loads(line) for line in t.good("sim", path, "--trace", *flags).splitlines()]
    return lines[0], lines[1:]


def weights(path):
    """[K, N] of each matrix-vector unit of the core, in the order of the body: from the shapes in host/core.onnx."""
    m = onnx.load(os.path.join(path, "host/core.onnx"))
    scan = next(n for n in m.graph.node if n.op_type == "Scan")
    body = next(a.g for a in scan.attribute if a.name == "body")
    stacked = {i.name: o for i, o in zip(body.input, scan.input)}
    dims = {x.name: list(x.dims) for x in m.graph.initializer}
    made = {o: n for n in [*m.graph.node, *body.node] for o in n.output}
    inside = {o for n in body.node for o in n.output}
    def shape(name):
        """Without the axis of iterations; through what only moves numbers."""
        if name in stacked: return shape(stacked[name])[-2:]
        if name in dims: return dims[name]
        n = made[name]
        if n.op_type == "Transpose": return shape(n.input[0])[::-1]
        if n.op_type == "Concat" and name in inside: return [shape(n.input[0])[0], sum(shape(i)[1] for i in n.input)]        # merged projections
        return shape(n.input[0])
    return [shape(n.input[1])[-2:] for n in body.node if n.domain == "mlo" and n.op_type.startswith("MVU")]


def wrong_counters(r, manifest, path):
    """'' or which counter is not what the folding says."""
    tokens, iterations = r["frames"] * manifest["tokens"], manifest["iterations"]
    mvus = iter(weights(path))
    if r["counters"] != {"cycles": r["cycles"], "frames": r["frames"], "beats": r["counters"]["beats"]}: return "counted %s in a run of %s cycles" % (r["counters"], r["cycles"])
    for k, m in zip(r["kernels"], manifest["kernels"]):
        if k["busy"] + k["starved"] + k["blocked"] != r["cycles"]: return "%s: %s + %s + %s cycles of %s" % (k["name"], k["busy"], k["starved"], k["blocked"], r["cycles"])
        if k["op"].startswith("MVU"):
            rows, columns = next(mvus)
            work, macs = (rows // k["simd"]) * (columns // k["pe"]), rows * columns
            if k["macs"] != macs * manifest["tokens"] * iterations: return "%s: %s macs, not %s" % (k["name"], k["macs"], macs * manifest["tokens"] * iterations)
        elif k["op"].startswith("Attention"): continue        # two arrays that overlap: busy is when either works
        else: work = m["channels"] // k["pe"]
        if k["busy"] != tokens * iterations * work: return "%s busy for %s cycles, not %s x %s x %s" % (k["name"], k["busy"], tokens, iterations, work)
    return ""


def wrong_shares(r, manifest):
    macs, multipliers = sum(k["macs"] for k in r["kernels"]), sum(k["multipliers"] for k in r["kernels"])
    bound = manifest["iterations"] * manifest["tokens"] * max(m["interval"] for m in manifest["kernels"])
    g, done = manifest["frames_in_flight"], r["frame_done"]
    interval = (done[-1] - done[g - 1]) / (len(done) - g) if len(done) >= 2 * g and len(done) % g == 0 else r["cycles"] / len(done)
    for key, cycles in ("utilization", interval), ("bound_utilization", bound), ("predicted_utilization", r["predicted_interval"]):
        if abs(r[key] - macs / (multipliers * cycles)) > 1e-9: return "%s %s, not %s / (%s x %s)" % (key, r[key], macs, multipliers, cycles)
        for k in r["kernels"]:
            if k["multipliers"] and abs(k[key] - k["macs"] / (k["multipliers"] * cycles)) > 1e-9: return "%s: %s %s" % (k["name"], key, k[key])
    return "" if r["bound"] == bound and r["bound_utilization"] <= 1 else "bound %s, not %s" % (r["bound"], bound)


def wrong_memory(r, manifest, lines):
    beats = {(d["kernel"], d["port"]): cores.memory(d["word_bits"], d["words"])[0] for d in manifest["descriptors"]}
    memory, groups = r["memory"], -(-r["frames"] // manifest["frames_in_flight"])
    if memory["beats_per_iteration"] != sum(beats.values()): return "%s beats per iteration, not %s" % (memory["beats_per_iteration"], sum(beats.values()))
    least = sum(beats.values()) * manifest["iterations"] * groups
    if not least <= memory["beats"] <= least + 2 * sum(beats.values()) + 1024: return "%s beats read, %s are needed" % (memory["beats"], least)
    if abs(memory["busy_share"] - memory["busy"] / r["cycles"]) > 1e-9 or memory["busy"] > min(memory["beats"], r["cycles"]): return str(memory)
    behind = groups * (manifest["iterations"] - 2) * sum(beats.values())          # two banks may be filled before a frame is inside
    if memory["busy"] < behind: return "%s beats while a frame was inside, at least %s are" % (memory["busy"], behind)
    loads = [x for x in lines if "memory" in x]
    for key, n in beats.items():
        mine = [x for x in loads if (x["kernel"], x["memory"]) == key]
        if not groups * manifest["iterations"] <= len(mine) <= groups * manifest["iterations"] + 2: return "%s.%s is filled %s times" % (*key, len(mine))
        if any(x["load"] < n or x["load"] != x["end"] - x["begin"] + 1 for x in mine): return "%s.%s: %s beats in %s" % (*key, n, mine[:2])
    loads.sort(key=lambda x: x["begin"])
    return next(("%s begins before %s ends" % (b, a) for a, b in zip(loads, loads[1:]) if b["begin"] <= a["end"]), "")


def wrong_trace(r, manifest, lines):
    """Tokens are all there, in order; lines add up to the counters; what leaves the last kernel leaves the core."""
    g, f_n, l, t_n = manifest["frames_in_flight"], r["frames"], manifest["iterations"], manifest["tokens"]
    order = [(f, i, x) for a in range(0, f_n, g) for i in range(l) for f in range(a, min(a + g, f_n)) for x in range(t_n)]
    for k in r["kernels"]:
        mine = [x for x in lines if x["kernel"] == k["name"] and "memory" not in x and "stream" not in x]
        tiles = [x for x in mine if "token" in x]
        if [(x["frame"], x["iteration"], x["token"]) for x in tiles] != order: return "%s: %s tokens, not %s, or out of order" % (k["name"], len(tiles), len(order))
        sums = [sum(x[key] for x in mine) for key in ("compute", "starved", "blocked")]
        if sums != [k["busy"], k["starved"], k["blocked"]]: return "%s: its lines add up to %s, its counters say %s" % (k["name"], sums, [k["busy"], k["starved"], k["blocked"]])
        if any(x["begin"] + x["load"] - 1 > x["end"] or x["begin"] > x["end"] - x["store"] + 1 for x in tiles): return "%s: a token that leaves before it came" % k["name"]
        if any(b["end"] - b["store"] < a["end"] for a, b in zip(tiles, tiles[1:])): return "%s: tokens overlap on the output" % k["name"]
        beats = next(m["channels"] // m["lanes"] for m in manifest["kernels"] if m["name"] == k["name"])
        if min(x["store"] for x in tiles) < beats: return "%s: a token of %s beats in %s cycles" % (k["name"], beats, min(x["store"] for x in tiles))
    left = {x["frame"]: x["end"] for x in lines if x["kernel"] == r["kernels"][-1]["name"] and x.get("iteration") == l - 1 and x.get("token") == t_n - 1}
    late = [done - left[f] for f, done in enumerate(r["frame_done"])]
    return "" if min(late) >= 0 else "a frame is done %s cycles after its last token" % min(late)


def wrong_window(manifest, lines, first, least=2):
    """Every port in 96 cycles from the one asked for: what AXI says of valid, and a token's beats where its line says that it leaves."""
    streams = [x for x in lines if "stream" in x]
    if {x["kernel"] for x in streams} != {k["name"] for k in manifest["kernels"]}: return "streams of %s" % sorted({x["kernel"] for x in streams})
    if any(x["from"] != first or len(x["valid"]) != 96 or len(x["ready"]) != 96 for x in streams): return "not 96 cycles from %d" % first
    beat = lambda x, cycle: x["valid"][cycle - first] == x["ready"][cycle - first] == "1"
    seen = 0
    for x in streams:
        held = [i for i in range(95) if x["valid"][i] == "1" and x["ready"][i] == "0"]
        if any(x["valid"][i + 1] == "0" for i in held): return "%s.%s takes back what it offered" % (x["kernel"], x["stream"])
        if x["stream"] != "m_axis": continue
        beats = next(k["channels"] // k["lanes"] for k in manifest["kernels"] if k["name"] == x["kernel"])
        for tile in (y for y in lines if y["kernel"] == x["kernel"] and "token" in y and first <= y["end"] < first + 96):
            begin = tile["end"] - tile["store"] + 1
            passed = [c for c in range(max(first, begin), tile["end"] + 1) if beat(x, c)]
            if passed[-1:] != [tile["end"]] or begin >= first and (len(passed) != beats or passed[0] != begin): return "%s: token %s in %s beats" % (x["kernel"], tile, passed)
            seen += 1
    return "" if seen >= least else "%d tokens leave in the window" % seen


def wrong_waves(path, lines, *flags):
    """In the page each of these streams has a row, and each of its beats a box of its own."""
    page = t.good("show", "--html", path, *flags).decode().partition("Streams, cycle by cycle")[2].partition("</section>")[0]
    for x in (y for y in lines if "stream" in y):
        name = re.escape("%s.%s" % (x["kernel"], x["stream"]))
        want = [x["from"] + i for i in range(96) if x["valid"][i] == x["ready"][i] == "1"]
        got = [int(c) for c in re.findall(r"<rect class=beat [^>]*><title>%s, a beat, cycle (\d+)<" % name, page)]
        if got != want or not re.search(r"<text [^>]*>%s</text>" % name, page): return "%s: beats at %s, not %s" % (name, got[:9], want[:9])
        waits = sum(int(b or a) - int(a) + 1 for a, b in re.findall(r"<rect class=held [^>]*><title>%s, valid, not taken, cycles? (\d+)(?: to (\d+))?<" % name, page))
        if waits != sum(v == "1" and r == "0" for v, r in zip(x["valid"], x["ready"])): return "%s: %d cycles of waiting" % (name, waits)
    return ""


def arriving(path, manifest):
    """Kernel -> beats in which a token of one of its inputs comes: what it multiplies by SIMD at a time, or what it has channels by PE."""
    matrices = iter(weights(path))
    return {k["name"]: next(matrices)[0] // k["simd"] if k["op"].startswith("MVU") else k["channels"] // (k["simd"] if k["op"].startswith("Attention") else k["pe"]) for k in manifest["kernels"]}


def wrong_inputs(path, manifest, lines):
    """A token's first beat does not come before the core's, it comes in as many cycles as it has beats or more, and, where nothing else comes, behind the
    token before it."""
    alone = [k["name"] for k in manifest["kernels"] if k["op"].startswith(("MVU", "Requant", "LayerNorm"))]
    for name, beats in arriving(path, manifest).items():
        tiles = [x for x in lines if x["kernel"] == name and "token" in x]
        if min(x["begin"] for x in tiles) < 1: return "%s: a token comes in cycle %d" % (name, min(x["begin"] for x in tiles))
        if min(x["load"] for x in tiles) < beats: return "%s: a token of %d beats comes in %d cycles" % (name, beats, min(x["load"] for x in tiles))
        if name in alone and any(b["begin"] < a["begin"] + a["load"] for a, b in zip(tiles, tiles[1:])): return "%s: tokens overlap on the input" % name
    return ""


def wrong_blocks(manifest, lines, frames):
    """With row blocks, every tile of tokens of a group of frames reads the parameters anew: one line each, in the order of tokens."""
    g, l, t_n = manifest["frames_in_flight"], manifest["iterations"], manifest["tokens"]
    blocks = {k["name"]: k for k in manifest["kernels"] if k["memory"] == "block"}
    if not blocks: return "no kernel has row blocks"
    for name, k in blocks.items():
        rounds = [[(f, i, token) for f in range(a, min(a + g, frames)) for token in range(t_n)] for a in range(0, frames, g) for i in range(l)]
        begin = [first for tokens in rounds for first in tokens[::k["tile"]]]
        want = [first[:2] for first in begin]
        for port in {x["memory"] for x in lines if x["kernel"] == name and "memory" in x}:
            mine = [x for x in lines if x["kernel"] == name and x.get("memory") == port]
            if [(x["frame"], x["iteration"]) for x in mine] != want: return "%s.%s: %s, not %s" % (name, port, [(x["frame"], x["iteration"]) for x in mine][:9], want[:9])
            tokens = [x for x in lines if x["kernel"] == name and "token" in x]
            firsts = [x for x in tokens if (x["frame"], x["iteration"], x["token"]) in begin]
            if any(load["end"] > token["end"] for load, token in zip(mine, firsts)): return "%s.%s: a tile leaves before its parameters came" % (name, port)
    return ""


def wrong_page(path, r, lines):
    """`mlo show DIR`: what was simulated, beside what is predicted."""
    d = json.loads(t.good("show", "--json", path))
    if abs(d["measured_utilization"] - r["utilization"]) > 1e-6: return "measured utilisation %s, not %s" % (d["measured_utilization"], r["utilization"])
    page = t.good("show", "--html", path).decode()
    text = t.good("show", path).decode()
    section = page.partition("Simulated timeline")[2].partition("</section>")[0]
    first = 1 if d["loops"][0]["iterations"] > 2 else 0
    for k in r["kernels"]:
        mine = [x for x in lines if x["kernel"] == k["name"] and "token" in x and x["frame"] < d["frames_in_flight"] and x["iteration"] in (first, first + 1)]
        found = re.findall(r"<rect class='i\d( odd)?'[^>]*><title>%s, iteration \d+(?:, frame \d+)?, tokens? (\d+)(?: to (\d+))?:" % k["name"], section)
        drawn = sum(int(b or a) - int(a) + 1 for _, a, b in found)
        if drawn != len(mine): return "%s: %s tokens drawn, %s traced" % (k["name"], drawn, len(mine))
        share = "%.1f %%" % (100 * k["busy"] / r["frames"] / r["interval"])
        if not re.search(r"^%s .* %s " % (k["name"], re.escape(share)), text, re.M): return "%s: no %s in the table" % (k["name"], share)
    return "" if page.count("<section") == page.count("</section>") and "<script" not in t.scriptless(page) and "http" not in page else "the page is not whole, or not by itself"


def check_trace():
    if not t.have("trace", "iverilog"): return
    cases = (("bert-1", ("--pe", "4", "--simd", "4"), ()), ("mlp-res", ("--pe", "2", "--simd", "8", "--frames-in-flight", "2"), ("--frames", "4")),
             ("mlp-res", ("--pe", "1", "--simd", "16"), ("--stall", "25", "--bandwidth", "4", "--axi-latency", "64")))
    for name, how, flags in (*t.drawn(cases[:2], 2, lambda case: case[0]), cases[2]):
        path = build(name, *how)
        r, lines = sim(path, *flags)
        with open(os.path.join(path, "manifest.json")) as f: manifest = json.load(f)
        what = " ".join([name, *how, *flags])
        t.case("counters: " + what, wrong_counters(r, manifest, path))
        t.case("utilisation: " + what, wrong_shares(r, manifest))
        t.case("memory: " + what, wrong_memory(r, manifest, lines))
        t.case("trace: " + what, wrong_trace(r, manifest, lines))
        t.case("inputs: " + what, wrong_inputs(path, manifest, lines))
        kept = [json.loads(line) for line in t.read(os.path.join(path, "sim/trace.jsonl")).splitlines()]
        t.case("kept for show: " + what, "" if kept == lines and json.loads(t.read(os.path.join(path, "sim/report.json"))) == r else "sim/ holds something else than stdout")
        t.case("shown: " + what, wrong_page(path, r, lines))
        t.case("window half way: " + what, wrong_window(manifest, lines, 1 + manifest["predicted_cycles"] // 2) if not flags else "" if any("stream" in x for x in lines) else "none")
        t.case("waves: " + what, wrong_waves(path, lines))
        if name == "bert-1" and t.have("trace in Verilator", "verilator"):
            t.case("trace in Verilator", "" if sim(path, "--simulator", "verilator")[1] == lines else "another one than in Icarus")
        plain = t.good("sim", path, *flags)
        t.case("without --trace: " + what, "the report differs" if plain.count(b"\n") != 1 or reported(json.loads(plain)) != reported(r) else "an old trace is left" if os.path.exists(os.path.join(path, "sim/trace.jsonl")) else "")


def check_blocks():
    """Row blocks in the trace; tiles of two frames in flight, and those that a group's end cuts off."""
    if not t.have("row blocks", "iverilog"): return
    for tile, frames in t.drawn((("3", 3), ("2", 2)), 2, lambda case: "tiles of " + case[0]):
        path = build("mlp-res", "--pe", "2", "--simd", "8", "--frames-in-flight", "2", "--memory", "block", "--tile", tile)
        with open(os.path.join(path, "manifest.json")) as f: manifest = json.load(f)
        r, lines = sim(path, "--frames", str(frames))
        t.case("row blocks of %s tokens, %d frames: lines of parameters" % (tile, frames), wrong_blocks(manifest, lines, frames))
        t.case("row blocks of %s tokens, %d frames: lines of tokens" % (tile, frames), wrong_trace(r, manifest, lines) or wrong_inputs(path, manifest, lines))


def check_window():
    """The stretch that --window asks for; beyond the end there is none."""
    if not t.have("a window", "iverilog"): return
    path = build("mlp-res", "--pe", "2", "--simd", "8", "--frames-in-flight", "2")
    with open(os.path.join(path, "manifest.json")) as f: manifest = json.load(f)
    for first, least in (1, 0), (333, 2): t.case("a window from cycle %d" % first, wrong_window(manifest, sim(path, "--window", str(first), "--stall", "10")[1], first, least))
    t.case("beyond the end", "" if not any("stream" in x for x in sim(path, "--window", "900000")[1]) else "streams of nothing")
    p = t.call("sim", path, "--window", "5")
    t.case("a window without a trace", "" if p.returncode == 2 and b"--trace" in p.stderr else "%s %s" % (p.returncode, p.stderr))


def check_recorded():
    """Waves that a simulator recorded are drawn as what --trace counted in the same run; what is no such file is refused, by line."""
    if not t.have("recorded waves", "iverilog"): return
    path, vcd = build("mlp-res", "--pe", "2", "--simd", "8"), t.at("x.vcd")
    for first, flags in (1, ()), (700, ("--stall", "20", "--seed", "3")):
        lines = sim(path, "--window", str(first), "--wave", vcd, "--simulator", "icarus", *flags)[1]
        os.remove(os.path.join(path, "sim/trace.jsonl"))
        t.case("Icarus's, from cycle %d" % first, wrong_waves(path, lines, "--wave", vcd, "--window", str(first)))
    rows = sum("stream" in x for x in lines)
    for name in t.drawn(("Verilator's waves",), 3):                                 # it compiles for a third of this check
        if not t.have(name, "verilator"): continue
        other = t.at("v.vcd")
        t.case("Verilator's", wrong_waves(path, sim(path, "--window", "700", "--wave", other, "--simulator", "verilator", *flags)[1], "--wave", other, "--window", "700"))
    # beside a model, without a report; and as far as a run went that was stopped
    whole = t.read(vcd)
    whole = whole[:len(whole) // 4]                                                # 1 800 cycles
    cut = t.write("cut.vcd", whole)
    for name, file, operand in ("beside a folded model", vcd, t.write("core.json", t.good("fold", t.model("mlp-res"), "--pe", "2", "--simd", "8"))), ("of a run that was stopped", cut, path):
        t.case(name, wrong_waves(operand, lines, "--wave", file, "--window", "700"))
    drawn = lambda *flags: t.good("show", "--html", path, *flags).decode().partition("Streams, cycle by cycle")[2].partition("</section>")[0]
    page = drawn("--wave", cut, "--window", "700")
    t.case("the same page", "" if page == drawn("--wave", vcd, "--window", "700") and page.count("class='label'") + page.count("class=label") >= rows and "mlo show --wave --window CYCLE" in page else page[:300])
    # read piece by piece, no further than it has to be
    body = whole.index(b"$enddefinitions")
    later = whole.index(b"\n#", body + len(whole[body:]) // 2) + 1
    spoilt = t.write("spoilt.vcd", whole[:later] + b"no change\n" + whole[later:])
    t.case("not beyond the stretch", "" if drawn("--wave", spoilt, "--window", "700") == page else "others")
    t.good("sim", path, "--wave", t.at("x.fst"), "--simulator", "icarus")
    line = lambda upto: "line %d" % (1 + whole[:upto].count(b"\n"))
    bad = {"an FST": (t.at("x.fst"), 3, ("no VCD", "fst2vcd")), "a text": (t.write("text.vcd", b"no waves\n"), 3, ("line 1", "no VCD")), "nothing": (t.write("empty.vcd", b""), 3, ("line 1", "no VCD")),
           "half a list of signals": (t.write("head.vcd", whole[:body // 2]), 3, ("breaks off", line(body // 2))), "a line that is none": (spoilt, 3, (line(later), "no change", "record")),
           "waves of other hardware": (t.write("other.vcd", whole.replace(b"module u_core ", b"module u_cube ")), 3, ("u_core", "mlo sim DIR --wave")),
           "one kernel short": (t.write("short.vcd", whole.replace(b"module u_add_0 ", b"module u_add_9 ")), 1, ("add_0", "another core")),
           "nothing comes in": (t.write("idle.vcd", whole[:body + 2000]), 3, ("first beat",)), "a directory": (path, 2, ("directory",)), "no file": (t.at("none.vcd"), 2, ("No such file",))}
    for name, (file, status, says) in bad.items():
        p = t.call("show", "--html", path, "--wave", file, "--window", "100000" if file == spoilt else "700")
        t.case("refused: %s" % name, "" if p.returncode == status and all(s.encode() in p.stderr for s in says) and p.stderr.count(b"\n") == 1 else "%s %s" % (p.returncode, p.stderr))
    p = t.call("show", "--html", path, "--wave", cut, "--window", "100000")
    last = re.search(rb"--window (\d+) or less", p.stderr)
    t.case("beyond the end: what it advises works", "" if p.returncode == 2 and last and t.call("show", "--html", path, "--wave", cut, "--window", last[1].decode()).returncode == 0 else str(p.stderr))
    for name, flags, says in ("as a text", ("--wave", vcd), b"--html"), ("a stretch of nothing", ("--html", "--window", "5"), b"--wave"):
        p = t.call("show", path, *flags)
        t.case("refused: %s" % name, "" if p.returncode == 2 and says in p.stderr else "%s %s" % (p.returncode, p.stderr))
    p = t.call("show", "--html", t.model("mlp-res"), "--wave", vcd)
    t.case("refused: beside no core", "" if p.returncode == 2 and b"folded" in p.stderr else "%s %s" % (p.returncode, p.stderr))


def check_stale():
    """A report of another build is not shown; one given by name is."""
    if not t.have("stale reports", "iverilog"): return
    path = build("mlp-res", "--pe", "2", "--simd", "8", "--frames-in-flight", "2")
    report = t.write("report.json", t.good("sim", path))
    t.good("compile", t.model("mlp-res"), "--pe", "2", "--simd", "4", "--frames-in-flight", "2", "-o", path)
    p = t.call("show", "--json", path)
    t.case("a report of another build is not shown", "" if p.returncode == 0 and b"another build" in p.stderr and b"measured" not in p.stdout else "%s %s" % (p.returncode, p.stderr))
    d = json.loads(t.good("show", "--json", "--sim", report, path))
    t.case("one given by --sim is", "" if abs(d["measured_utilization"] - d["macs"] / (d["multipliers"] * json.loads(t.read(report))["interval"])) < 1e-6 else str(d))
    p = t.call("show", os.path.dirname(path))
    t.case("a directory that is no build", "" if p.returncode == 2 and b"manifest.json" in p.stderr else "%s %s" % (p.returncode, p.stderr))


def check_failing():
    """A run that fails says so, and is profiled as far as it went."""
    if not t.have("a failing run", "iverilog"): return
    path = build("mlp-res", "--pe", "2", "--simd", "8")
    golden = os.path.join(path, "tb/golden.hex")
    lines = t.read(golden).decode().split("\n")
    lines[40] = lines[40][:-1] + "%x" % (int(lines[40][-1], 16) ^ 1)
    with open(golden, "w") as f: f.write("\n".join(lines))
    p = t.call("sim", path, "--trace")
    report, *rest = [json.loads(line) for line in p.stdout.splitlines()]
    t.case("a failing run is profiled, too", "" if p.returncode == 1 and report["pass"] is False and len(rest) > 20 else "status %d, %d lines: %s" % (p.returncode, len(rest), p.stderr))


def check_short():
    """Frames of different lengths: tokens are told apart all the same."""
    if not t.have("short frames", "iverilog"): return
    path = build("mlp-res", "--pe", "2", "--simd", "8", "--frames-in-flight", "2")
    lengths = [3, 8, 1]
    r, lines = sim(path, "--frame-tokens", ",".join(map(str, lengths)))
    got = {k["name"]: [sum(x.get("frame") == f and "token" in x and x["kernel"] == k["name"] and x["iteration"] == 0 for x in lines) for f in range(3)] for k in r["kernels"]}
    t.case("frames of %s tokens" % lengths, "" if all(v == lengths for v in got.values()) else str(got))
    t.case("nothing is predicted for them", "" if r["predicted_cycles"] is None and r["predicted_utilization"] == 0 else str(r["predicted_cycles"]))


if __name__ == "__main__":
    t.main(check_trace, check_blocks, check_window, check_recorded, check_short, check_stale, check_failing, floor=50)
