#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What sim makes of what a bench says, of a directory that is not what mlo wrote, and of inputs that do not fit.

    python tests/test_verdicts.py path/to/mlo [NAME ...]

The simulator is a shell script that prints the lines of a case: so every line can be had, wrong ones too, in no time. What mlo has to say to it is
worked out here, from the manifest's numbers, or is in mlo.h and docs/."""
import hashlib
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import numpy as np
import harness as t

CAT, CP = shutil.which("cat"), shutil.which("cp")


def tools(name, **programs):
    """A PATH of shell scripts."""
    folder = t.at("tools-" + name)
    os.makedirs(folder, exist_ok=True)
    for program, text in programs.items():
        with open(os.path.join(folder, program), "w") as f: f.write("#!/bin/sh\n" + text + "\n")
        os.chmod(os.path.join(folder, program), stat.S_IRWXU)
    return dict(os.environ, PATH=folder)


COMPILES = 'while [ "$1" != -o ]; do shift; done; echo x > "$2"'


def spoken(lines, status=0, probe=None, trace=None):
    """An Icarus that says these lines, and leaves these files."""
    said, run = t.write("said.log", "".join(l + "\n" for l in lines)), ""
    for name, text in ("probe.txt", probe), ("trace.txt", trace):
        if text is not None: run += "%s %s sim/%s\n" % (CP, t.write("left-" + name, text), name)
    return tools("spoken", iverilog=COMPILES, vvp="%s%s %s\nexit %d" % (run, CAT, said, status))


def built(name, model="mlp-res", *flags):
    path = t.at(name)
    if not os.path.exists(path): t.good("compile", t.model(model), *flags, "-o", path)
    return path, json.loads(t.read(os.path.join(path, "manifest.json")))


def small(): return built("small", "mlp-res", "--pe", "2", "--simd", "8")


def judged(name, p, status, *words, absent=()):
    """The status, these words on stderr, and not those; where a word was compared, a report that says as much."""
    said = p.stderr.decode(errors="replace")
    why = ["status %d, not %d" % (p.returncode, status)] if p.returncode != status else []
    why += ["no '%s'" % w for w in words if w not in said] + ["'%s'" % w for w in absent if w in said]
    if p.returncode < 2 and status < 2 and json.loads(p.stdout.splitlines()[0])["pass"] != (status == 0): why.append("the report says otherwise")
    t.case(name, "%s: %s" % (", ".join(why), said[-300:]) if why else "")


def passes(m, frames=1): return "MLO PASS words %d cycles 7000" % (m["tokens"] * m["channels"] // m["stream"]["lanes"] * frames)


# ---- what it says ------------------------------------------------------------------------------------------------------------------

def check_verdicts():
    path, m = small()
    lanes, channels, tokens, iterations = m["stream"]["lanes"], m["channels"], m["tokens"], m["iterations"]
    per, beats = channels // lanes, tokens * channels // lanes
    word = lambda last, *values: str(last) + "".join("%04x" % (v & 65535) for v in reversed(values))            # the last lane first
    wrong = lambda at, expected, got: "MLO FAIL word %d expected %s got %s" % (at, expected, got)
    where = lambda at, lane=0: "frame 0, token %d, channel %d" % (at // per, at % per * lanes + lane)
    cases = (("nothing is said", [], 0, ["without a verdict, status 0", "run.log"]), ("nothing, and a status", ["hello"], 3, ["without a verdict, status 3"]),
             ("a status behind PASS", [passes(m)], 4, ["status 4 after PASS"]), ("PASS twice", [passes(m)] * 2, 0, ["after PASS"]), ("PASS that is cut off", ["MLO PASS words 12"], 0, ["without a verdict"]),
             ("PASS and FAIL", [passes(m), "MLO FAIL because"], 0, ["FAIL: because"]), ("the first of two", ["MLO FAIL one", "MLO FAIL two"], 1, ["FAIL: one"]), ("FAIL without a word", ["MLO FAIL"], 1, ["FAIL: "]),
             ("a breach of AXI", ["PROTOCOL s_axis_tvalid fell", "PROTOCOL other", "MLO FAIL protocol 2"], 1, ["a breach of AXI: s_axis_tvalid fell;"]),
             ("missing words, no cause", ["MLO FAIL missing 7 of 128 words (none for 50000 cycles)"], 1, ["missing 7 of 128 words (none"]),
             *(("lane %d" % lane, [wrong(37, word(0, 5, -3), word(0, *((9, -3), (5, 4))[lane]))], 1, ["first wrong word: %s: expected %d, got %d" % (where(37, lane), (5, -3)[lane], (9, 4)[lane])]) for lane in (0, 1)),
             ("a word of x", [wrong(20, word(0, 5, 6), "0xxxx0005")], 1, [where(20, 1), "expected 00060005, got xxxx0005"]), ("a word that is cut off", [wrong(0, word(0, 5, 6), "0005")], 1, ["got 005"]),
             ("a surplus word", [wrong(beats, word(0, 5, 6), word(0, 5, 6))], 1, ["a surplus word after the %d that were due" % beats]),
             ("no end of the frame", [wrong(beats - 1, word(1, 5, 6), word(0, 5, 6))], 1, [where(beats - 1), "the end of the frame is missing"]),
             ("an end too early", [wrong(3, word(0, 5, 6), word(1, 5, 6))], 1, [where(3), "marked too early"]), ("a word without its half", ["MLO FAIL word 3 expected 1"], 1, ["FAIL: word 3 expected 1"]))
    for name, lines, status, words in cases: judged(name, t.call("sim", path, env=spoken(lines, status)), 1, *words)
    lines = ["MLO FRAME 1 9", "MLO FRAME 0 6990", "MLO FRAME 0 7", "MLO KERNEL 1 10 20 30", "MLO KERNEL -1 1 1 1", "MLO KERNEL 99 1 1 1", "MLO KERNEL 2 7", "MLO COUNTERS 7100 1 2", "MLO CHANNEL 3550 128", "MLO KV 5 6", "MLO WEIGHTS 77", "MLO FIFO mvu_0_in0 3 8 16",
             "MLO FIFO half 3", "MLO BEATS 88", "MLO WHAT", "more", passes(m)]
    r = json.loads(t.good("sim", path, env=spoken(lines)))
    said = {"pass": True, "words": tokens * channels, "cycles": 7000, "interval": 7000, "frame_done": [6990], "weight_beats": 77, "counters": {"cycles": 7100, "frames": 1, "beats": 2}}
    t.case("every line is taken", "" if all(r[k] == v for k, v in said.items()) else str({k: r[k] for k in said}))
    t.case("... and lines of kernels there are not left", "" if [(k["busy"], k["starved"], k["blocked"]) for k in r["kernels"]] == [(0, 0, 0), (10, 20, 30)] + [(0, 0, 0)] * (len(m["kernels"]) - 2) else str(r["kernels"]))
    t.case("... of FIFOs, too", "" if [(f["name"], f["peak"], f["depth"], f["beats_per_token"]) for f in r["fifos"]] == [("mvu_0_in0", 3, 8, 16)] else str(r["fifos"]))
    t.case("... of memory", "" if (r["memory"]["delivered"], r["memory"]["busy"], r["memory"]["busy_share"], r["memory"]["offered_share"]) == (88, 3550, 0.5, 0.5) else str(r["memory"]))
    frames = [*("MLO FRAME %d %d" % (f, 7000 + 6000 * f) for f in range(3)), "MLO PASS words %d cycles 19000" % (3 * beats)]
    r = json.loads(t.good("sim", path, "--frames", 3, env=spoken(frames)))
    t.case("the interval of three frames", "" if r["interval"] == 6000 and r["frame_done"] == [7000, 13000, 19000] else str((r["interval"], r["frame_done"])))
    many = json.loads(t.good("sim", path, env=spoken(["MLO FIFO f%d 1 2 3" % k for k in range(300)] + ["MLO FRAME %d 9" % k for k in range(300)] + [passes(m)])))
    t.case("more lines than there is room for", "" if len(many["fifos"]) == 256 and many["pass"] else "%d" % len(many["fifos"]))
    p = t.call("sim", path, "--text", "--bandwidth", 4, "--stall", 20, env=spoken(["MLO FRAME 0 7000", passes(m)]))
    t.case("for people", "" if p.returncode == 0 and b"%d words compared, all equal; 1 frame, %d iterations" % (tokens * channels, iterations) in p.stdout.replace(b"\xc2\xa0", b" ").replace(b"\xe2\x80\xaf", b"") else p.stdout.decode() or "it says nothing")
    p = t.call("sim", path, "--text", env=spoken(["MLO FAIL because"], 1))
    t.case("for people, a failure", "" if p.returncode == 1 and not p.stdout and b"FAIL: because" in p.stderr else "%d %s" % (p.returncode, p.stdout))


def check_causes():
    """Who waits for whom: the way from the sink to the cause (docs/board.md tells of it), from lines that are made up here."""
    path, m = small()
    edge = lambda a, b, fifo="f", level=0, depth=0, begin="00", end="00": "MLO EDGE %s %s %s %s %s %d %d %s %s" % (a, b, fifo, *begin, level, depth, *end)
    loop = [edge("a", "sink", end="01"), edge("b", "a", end="01")]
    memory = "MLO MEMORY %s %s %s %s %s"
    idle = memory % tuple("00000")
    port = lambda node, bits: "MLO PARAM %s s_axis_w %s %s" % (node, *bits)
    fail = "MLO FAIL missing 5 of 128 words (none for 50000 cycles)"
    cases = (("nobody takes the output", [edge("a", "sink", end="10"), idle], ["nobody takes the output"]),
             ("input that does not come", [*loop, edge("source", "b", end="01"), idle], ["b waits for data from source; s_axis brings no more"]),
             ("a second stream that does not come", [*loop, edge("source_1", "b", end="01"), idle], ["s1_axis brings no more"]),
             ("parameters: memory that takes no request", [*loop, edge("source", "b", end="10"), port("b", "01"), port("a", "10"), memory % tuple("10000")], ["the parameter loader waits until a frees a bank of s_axis_w"]),
             ("parameters: no request is taken", [*loop, edge("source", "b", end="10"), port("b", "01"), memory % tuple("10000")], ["b waits for parameters (s_axis_w); the memory takes no read request"]),
             ("parameters: no answer", [*loop, edge("source", "b", end="10"), port("b", "01"), memory % tuple("01100")], ["does not answer"]), ("parameters: nothing was owed", [*loop, edge("source", "b", end="10"), port("b", "01"), memory % tuple("01010")], ["control bit 0 (enable)"]),
             ("parameters: an answer that waits", [*loop, edge("source", "b", end="10"), port("b", "01"), memory % tuple("11110")], ["control bit 0 (enable)"]),
             ("a kernel that does nothing", [*loop, edge("source", "b", end="10"), port("b", "11"), port("c", "01"), idle], ["b has input, parameters and room, and does nothing"]),
             ("room in a full FIFO, behind which a kernel waits for another", [edge("a", "sink", end="01"), edge("b", "a", end="01"), edge("b", "c", "c_in0", 8, 8, begin="10", end="10"), edge("c", "d", begin="10", end="10"), idle],
              ["b waits for room in FIFO c_in0, full with 8 beats, in front of c; c waits until d takes its output; d has input"]),
             ("a deadlock round a full FIFO", [edge("a", "sink", end="01"), edge("s", "a", end="01"), edge("s", "a", "a_in1", 8, 8, begin="10", end="10"), idle],
              ["s waits for room in FIFO a_in1, full with 8 beats, in front of a", "a deadlock; FIFO a_in1 of 8 beats is too shallow"]),
             ("a FIFO that is not full", [edge("a", "sink", end="01"), edge("s", "a", end="01"), edge("s", "t", "t_in0", 3, 8, begin="10", end="10"), edge("t", "u", begin="00", end="00"), idle], ["s waits until t takes its output; t has input"]),
             ("a circle without a full FIFO", [edge("a", "sink", end="01"), edge("b", "a", end="01"), edge("a", "b", end="01"), idle], ["a deadlock without a full FIFO: a bug in mlo"]),
             ("what is ready for data comes first", [edge("a", "sink", end="01"), edge("x", "a", end="00"), edge("y", "a", end="01"), edge("z", "a", end="01"), edge("source", "y", end="00"), idle], ["a waits for data from y"]),
             ("the loop's first round", ["MLO LOOP 0", edge("loop_in", "sink", end="01"), edge("loop_out", "loop_in", end="01"), edge("source", "loop_in", end="01"), idle], ["loop_in waits for data from source"]),
             ("the loop's second round", ["MLO LOOP 1", edge("loop_in", "sink", end="01"), edge("loop_out", "loop_in", end="01"), edge("source", "loop_in", end="01"), idle], ["loop_in waits for data from loop_out"]),
             ("x counts as low", [edge("a", "sink", end="xx"), edge("source", "a", end="xx"), memory % tuple("xxxxx")], ["a waits for data from source"]))
    for name, lines, words in cases: judged(name, t.call("sim", path, env=spoken([*lines, fail], 1)), 1, "FAIL: missing 5 of 128 words: ", *words)
    judged("no line of memory: no cause", t.call("sim", path, env=spoken([*loop, fail], 1)), 1, "(none for 50000 cycles)")
    far = [edge("n%d" % k, "n%d" % (k - 1) if k else "sink", end="01") for k in range(300)] + [port("n%d" % k, "11") for k in range(300)]
    judged("a long way", t.call("sim", path, env=spoken([*far, idle, fail], 1)), 1, "n61 waits for data from n62; n62 waits for data from n63; n63 waits for data from n64")


def check_probes():
    """--probe: the first kernel in time whose stream is wrong. Its words come from host/core.onnx, which ONNX Runtime evaluates here, too."""
    path, m = small()
    names, words = [k["name"] for k in m["kernels"]], kernels(path, m)
    lines = lambda k, upto=None: [beat for r in words[names[k]] for beat in r][:upto]
    every = [l for k in range(len(names)) for l in lines(k)]
    judge = lambda name, text, said, words, status=1: judged(name, t.call("sim", path, "--probe", env=spoken(said, status and 1, probe="".join(l + "\n" for l in text))), status, *words)
    p = t.call("sim", path, "--probe", env=spoken([passes(m)], probe="".join(l + "\n" for l in every + ["nobody 12", "nothing"])))
    t.case("every stream is right", "" if p.returncode == 0 and json.loads(p.stdout)["probe"] == "every kernel's stream is right" else p.stderr.decode()[-300:] or "it says nothing")
    if p.returncode: return
    k = m["kernels"][1]
    per = k["channels"] // k["lanes"]
    n, at = len(lines(1)), 3 * per + 2
    digit = lambda line, to: line[:-1] + to(line[-1])
    flipped = [*lines(1, at), digit(lines(1)[at], lambda c: "%x" % (int(c, 16) ^ 1))]
    x = [*lines(1, at), digit(lines(1)[at], lambda c: "x")]
    place = "kernel %s, frame 0, iteration 0, token 3, channel %d: expected" % (k["name"], 2 * k["lanes"])
    judge("a wrong word inside, the output right", flipped + lines(1)[at + 1:], [passes(m)], ["a stream inside is not", place], 1)
    judge("x inside", x, ["MLO FAIL because"], ["because", place, "got x"])
    judge("of two the first in time", [*flipped, *lines(0, 2), digit(lines(0)[2], lambda c: "x")], ["MLO FAIL because"], ["kernel %s, frame 0, iteration 0, token 0" % names[0]])
    judge("a surplus word", every + [lines(1)[0]], ["MLO FAIL because"], ["kernel %s: a surplus word" % names[1]])
    judge("it stopped", [*lines(0), *lines(1, n // m["iterations"] + per + 1)], ["MLO FAIL because"], ["kernel %s: all words right until it stopped in frame 0, iteration 1, token 1" % names[1]])
    judge("a line that is cut off", [*every[:-1]], [], ["without a verdict", "kernel %s: all words right until it stopped" % names[-1]])
    judged("no probe", t.call("sim", path, "--probe", env=spoken([passes(m)])), 2, "sim/probe.txt: No such file")


def kernels(path, m):
    """name -> iteration -> lines of sim/probe.txt, as the bench writes them: lanes of so many bits, the last one first."""
    import onnx
    from graphs import session
    x = np.array([[int(l[1 + 4 * i:5 + 4 * i], 16) for i in reversed(range(m["stream"]["lanes"]))] for l in t.read(os.path.join(path, "tb/input.hex")).decode().split()], np.uint16).view(np.int16)
    model = onnx.load(os.path.join(path, "host/core.onnx"))
    scan = next(n for n in model.graph.node if n.op_type == "Scan")
    body = next(a.g for a in scan.attribute if a.name == "body")
    values = [k["value"] for k in m["kernels"]]
    typed = {v.name: v for v in body.value_info}
    state = sum(1 for o in scan.output)
    for v in values:                                         # every kernel's value is scanned out
        if v not in typed: typed[v] = onnx.helper.make_tensor_value_info(v, onnx.TensorProto.UNDEFINED, None)
        body.output.append(onnx.helper.make_tensor_value_info("probe_" + v, onnx.TensorProto.INT64, None))
        body.node.append(onnx.helper.make_node("Cast", [v], ["probe_" + v], to=onnx.TensorProto.INT64))
        scan.output.append("probed_" + v)
        model.graph.output.append(onnx.helper.make_tensor_value_info("probed_" + v, onnx.TensorProto.INT64, None))
    s = session(model.SerializeToString())
    feed = {i.name: x.reshape([d if isinstance(d, int) else 1 for d in i.shape]) for i in s.get_inputs()}
    got = dict(zip([o.name for o in s.get_outputs()], s.run(None, feed)))
    found = {}
    for k in m["kernels"]:
        digits = -(-k["bits"] * k["lanes"] // 4)
        found[k["name"]] = [["%s %0*x" % (k["name"], digits, sum((int(v) & ((1 << k["bits"]) - 1)) << (i * k["bits"]) for i, v in enumerate(row))) for row in a.reshape(-1, k["lanes"])] for a in got["probed_" + k["value"]]]
    return found


def check_traces():
    """--trace: tiles as the bench tells them become JSON lines; lines it cannot have written are left, or refused."""
    path, m = small()
    one = "B 11\nO 0 1 m_axis\nI 1 1 s_axis\nI 2 1 s1_axis\nP 3 1 s_axis_w\nO 4 99 m_axis\nO 5\nO 4 -1 m_axis\nI 4 0 s_axis\nT 1 21 25\nT 2 19 27\nT 4 1 99\nT 9 1 1\nT -1 1 1\nT 1\nK 0 30 33 5 2 1\nK 9 1 1 1 1 1\nK -1 1 1 1 1 1\nK 0 1\nT 3 2 8\nR 1 4 3 2\nR 99 1 1 1\nR -1 1 1 1\nR 1\nhello\nT 1 1 1"
    p = t.call("sim", path, "--trace", env=spoken([passes(m)], trace=one))
    lines = [json.loads(l) for l in p.stdout.splitlines()[1:]]
    name = m["kernels"][1]["name"]
    want = [{"kernel": name, "frame": 0, "iteration": 0, "token": 0, "begin": 9, "end": 23, "load": 9, "compute": 5, "store": 4, "starved": 2, "blocked": 1}, {"kernel": name, "rest": True, "compute": 4, "starved": 3, "blocked": 2},
            {"kernel": name, "memory": "s_axis_w", "frame": 0, "iteration": 0, "begin": -8, "end": -2, "load": 7}]
    t.case("tiles", "" if p.returncode == 0 and lines == want else "%d %s" % (p.returncode, lines))
    t.case("... in a file, too", "" if [json.loads(l) for l in t.read(path + "/sim/trace.jsonl").splitlines()] == want else "others")
    p = t.call("sim", path, "--trace", "--text", env=spoken([passes(m)], trace=one))
    t.case("... and not among what people read", "" if p.returncode == 0 and b"trace.jsonl" in p.stdout and b'"kernel"' not in p.stdout else p.stdout.decode()[-200:] or "it says nothing")
    judged("a stream out of turn", t.call("sim", path, "--trace", env=spoken([passes(m)], trace="O 1 1 m_axis\n")), 3, "stream 1 out of turn")
    judged("no trace", t.call("sim", path, "--trace", env=spoken([passes(m)])), 2, "sim/trace.txt: No such file")
    judged("no trace of a run that fails", t.call("sim", path, "--trace", env=spoken(["MLO FAIL because"], 1)), 1, "because", absent=["trace.txt"])
    many = "B 1\nO 0 1 m_axis\n" + "K 0 1 2 3 4 5\n" * 1000
    p = t.call("sim", path, "--trace", env=spoken([passes(m)], trace=many))
    t.case("more tokens than a run has", "" if p.returncode == 0 and len(p.stdout.splitlines()) == 1 + m["tokens"] * m["iterations"] + 1 else "%d, %d lines" % (p.returncode, len(p.stdout.splitlines())))


def check_blocks():
    """--trace of row blocks: a line of parameters for each tile of tokens, in each frame and iteration."""
    path, m = built("blocks", "mlp-res", "--memory", "block", "--tile", "3", "--pe", "2", "--simd", "8")
    k = next(i for i, x in enumerate(m["kernels"]) if x.get("tile"))
    trace = "B 1\nP 0 %d s_axis_w\n" % k + "".join("T 0 %d %d\n" % (10 * n + 1, 10 * n + 5) for n in range(10))
    p = t.call("sim", path, "--trace", env=spoken([passes(m)], trace=trace))
    got = [(l["frame"], l["iteration"], l["begin"], l["end"], l["load"]) for l in map(json.loads, p.stdout.splitlines()[1:]) if "memory" in l]
    tiles = -(-m["tokens"] // 3)
    t.case("tiles of row blocks", "" if p.returncode == 0 and got == [(0, n // tiles, 10 * n + 1, 10 * n + 5, 5) for n in range(10)] else str(got))
    r = json.loads(p.stdout.splitlines()[0])
    beats = m["parameter_beats"]
    t.case("... what will have been delivered", "" if r["memory"]["predicted_delivered"] > beats["per_frame"] else str((r["memory"], beats)))


def check_others():
    """Cores of other kinds: unrolled, several frames in flight, caches in memory; what people read of them."""
    path, m = built("unrolled", "mlp-res", "--unrolled", "--pe", "2", "--simd", "8")
    for flag in "--probe", "--trace": judged("%s of an unrolled core" % flag, t.call("sim", path, flag, env=spoken([passes(m)])), 4, "an unrolled core has no --probe and no --trace")
    r = json.loads(t.good("sim", path, env=spoken(["MLO FRAME 0 900", passes(m)])))
    t.case("an unrolled core passes", "" if r["pass"] and r["predicted_cycles"] is None and r["cycles"] == 7000 else str(r)[:300])
    path, m = built("two", "mlp-res", "--frames-in-flight", "2", "--pe", "2", "--simd", "8")
    say = lambda n: spoken([*("MLO FRAME %d %d" % (f, 1000 + 100 * f) for f in range(n)), "MLO PASS words 9 cycles %d" % (1000 + 100 * (n - 1))])
    for n, interval in (4, 100), (3, 400), (2, 550), (1, 1000):
        r = json.loads(t.good("sim", path, "--frames", n, env=say(n)))
        t.case("%d frames, two in flight: the interval" % n, "" if r["interval"] == interval else str(r["interval"]))
    p = t.call("sim", path, "--frames", 2, "--text", env=say(2))
    t.case("... for people", "" if p.returncode == 0 and b"2 frames, 6 iterations" in p.stdout and b"with 2 frames in flight\n" in p.stdout else p.stdout.decode() or "it says nothing")
    p = t.call("sim", path, "--frame-tokens", "3,2", "--text", env=say(2))
    t.case("... short ones: nothing is foretold", "" if p.returncode == 0 and b"predicted" not in p.stdout and b"multipliers" not in p.stdout else p.stdout.decode() or "it says nothing")
    path, m = decoder("--kv", "dram")
    r = json.loads(t.good("sim", path, env=spoken(["MLO KV 5 6", "MLO CHANNEL 10 256", "MLO PASS words 9 cycles 9"])))
    t.case("beats of keys and values", "" if (r["kv_read"], r["kv_written"], r["memory"]["offered_share"]) == (5, 6, 1) else str(r)[:300])


def check_outputs():
    """--outputs: what host/*.onnx make in ONNX Runtime."""
    from graphs import session
    path, m = small()
    pre, core, post = (session(os.path.join(path, "host", part + ".onnx")) for part in ("pre", "core", "post"))
    x = np.random.default_rng(3).standard_normal((2, m["tokens"], m["channels"])).astype(np.float32)
    np.savez(t.at("x.npz"), x=x)
    p = t.call("sim", path, "--inputs", t.at("x.npz"), "--outputs", t.at("y.npz"), env=spoken([passes(m, 2)]))
    names = [o.name for o in post.get_outputs()]
    def told(row):
        q = dict(zip([o.name for o in pre.get_outputs()], pre.run(None, {"x": row})))
        q.update(zip([o.name for o in core.get_outputs()], core.run(None, {i.name: q[i.name] for i in core.get_inputs()})))
        return post.run(None, {i.name: q[i.name] for i in post.get_inputs()})
    want = [np.concatenate(z) for z in zip(*(told(row[None]) for row in x))]
    t.case("--outputs of two frames", "" if p.returncode == 0 and all(np.allclose(np.load(t.at("y.npz"))[n], w, atol=1e-6) for n, w in zip(names, want)) else p.stderr.decode()[-300:] or "it says nothing")
    p = t.call("sim", path, "--outputs", t.at("own.npz"), env=spoken([passes(m)]))
    hexes = np.array([[int(l[1 + 4 * i:5 + 4 * i], 16) for i in reversed(range(m["stream"]["lanes"]))] for l in t.read(path + "/tb/golden.hex").decode().split()], np.uint16).view(np.int16).reshape(1, m["tokens"], -1)
    t.case("--outputs of the bench's own frame: its golden words", "" if p.returncode == 0 and np.array_equal(np.load(t.at("own.npz"))[m["output"]["name"]], hexes) else p.stderr.decode()[-300:] or "it says nothing")
    judged("--outputs of lengths that differ", t.call("sim", path, "--frame-tokens", "2,3", "--outputs", t.at("z.npz"), env=spoken([passes(m)])), 3, "different lengths")
    judged("--outputs in no directory", t.call("sim", path, "--outputs", t.at("no/where.npz"), env=spoken([passes(m)])), 2, "cannot be written")
    judged("--outputs of a run that fails", t.call("sim", path, "--outputs", t.at("z.npz"), env=spoken(["MLO FAIL because"], 1)), 1, "because")
    t.case("... are not written", "" if not os.path.exists(t.at("z.npz")) else "they are")
    other = manifest(path, lambda m: put(m, "files", "host/post.onnx", "sha256", hashlib.sha256(b"nothing").hexdigest()))
    t.write("other/host/post.onnx", "nothing")
    judged("--outputs without host/post.onnx", t.call("sim", other, "--inputs", t.at("x.npz"), "--outputs", t.at("z.npz"), env=spoken([passes(m, 2)])), 3, "neither binary ONNX nor JSON")


def check_shown():
    """show of a directory: what the last simulation of this build counted."""
    path, m = small()
    name = m["kernels"][1]["name"]
    counted = ["MLO FRAME 0 7000", *("MLO KERNEL %d 100 50 10" % k for k in range(len(m["kernels"]))), "MLO COUNTERS 7000 1 2", "MLO CHANNEL 3500 256", passes(m)]
    shown = lambda folder, *flags: t.call("show", *flags, folder)
    shutil.rmtree(path + "/sim", True)
    t.case("nothing was simulated", "" if "measured_utilization" not in json.loads(shown(path, "--json").stdout) else "it was")
    report = t.good("sim", path, env=spoken(counted))
    d = json.loads(shown(path, "--json").stdout)
    t.case("what it counted", "" if abs(d["measured_utilization"] - d["macs"] / (d["multipliers"] * 7000)) < 1e-6 else str(d.get("measured_utilization")))
    t.case("... no trace, no picture of it", "" if b"Simulated timeline" not in shown(path, "--html").stdout else "there is")
    t.good("sim", path, "--trace", env=spoken(counted, trace="B 1\nO 0 1 m_axis\nI 1 1 s_axis\n" + "".join("T 1 %d %d\nK 0 %d %d 3 1 0\n" % (9 * k + 2, 9 * k + 5, 9 * k + 7, 9 * k + 9) for k in range(20))))
    p = shown(path, "--html")
    page = p.stdout.decode()
    t.case("... a trace, and its picture", p.stderr.decode()[-300:] if p.returncode else "" if "Simulated timeline" in page and name in page.partition("Simulated timeline")[2] else str(re.findall("timeline[^<]*<", page)))
    other = manifest(path, lambda m: put(m, "mlo", "0"))
    p = shown(other, "--json")
    t.case("of another build", "" if p.returncode == 0 and b"is of another build; it is not shown" in p.stderr and b"measured_utilization" not in p.stdout else p.stderr.decode() or "it says nothing")
    p = shown(other, "--json", "--sim", t.write("report.json", report))
    t.case("... by its name it is", "" if p.returncode == 0 and b"measured_utilization" in p.stdout and not p.stderr else p.stderr.decode() or "it says nothing")
    os.remove(other + "/sim/report.json")
    os.makedirs(other + "/sim/report.json")
    for what, status, words, args in (("a folder for a report", 2, "is a directory", (other,)), ("a report that is not there", 2, "No such file", ("--sim", t.at("gone"), path)), ("a report that is none", 3, "is not what `mlo sim` prints", ("--sim", t.write("bad.json", "{}"), path)), ("a directory that is no build", 2, "is a directory without a manifest.json", (t.tmp,)),
                                      ("no directory and no model", 2, "No such file", (t.at("gone"),))):
        p = t.call("show", *args)
        t.case("show: " + what, "" if p.returncode == status and words in p.stderr.decode() else "%d %s" % (p.returncode, p.stderr.decode()))


def check_image():
    """A params.bin that was changed is what is simulated, beat by beat, the last byte first, as benches read it; whatever comes out, it is told."""
    path, m = small()
    other = shutil.copytree(path, t.at("spoilt"), ignore=lambda *_: ["sim"])
    data = bytearray(t.read(other + "/params.bin"))
    data[1] ^= 0xA5
    t.write("spoilt/params.bin", bytes(data))
    p, beat = t.call("sim", other, env=spoken([passes(m)])), m["axi_bits"] // 8
    want = "".join(data[k:k + beat][::-1].hex() + "\n" for k in range(0, len(data), beat))
    t.case("a params.bin that was changed", "status %d: %s" % (p.returncode, p.stderr.decode()) if p.returncode != 1 or b"params.bin is not the file that manifest.json lists" not in p.stderr else
           "" if t.read(other + "/sim/params.hex").decode() == want else "another image")


# ---- the directory -----------------------------------------------------------------------------------------------------------------

def manifest(path, change):
    """The directory with another manifest, as a copy."""
    m = json.loads(t.read(os.path.join(path, "manifest.json")))
    other = t.at("other")
    shutil.rmtree(other, True)
    shutil.copytree(path, other)
    said = change(m)
    t.write("other/manifest.json", said if isinstance(said, str) else json.dumps(m if said is None else said))
    return other


def put(m, *way):
    *way, key, value = way
    for k in way: m = m[k]
    m[key] = value


def check_manifests():
    path, m = small()
    env = spoken([passes(m)])
    k = m["kernels"]
    bad = [("iterations", 0), ("tokens", 0), ("tokens", (1 << 24) + 1), ("channels", 1), ("channels", (1 << 24) + 2), ("channels", 33), ("stream", "lanes", 0), ("stream", "bits", 0), ("stream", "bits", 33), ("frames_in_flight", 0), ("bench_frames", 0),
           ("bench_frames", 257), ("slots", -1), ("slots", 256), ("axi_bits", 4), ("kernels", []), ("kernels", k * 65), ("stream", 3), ("kernels", "many")]
    for way in bad: judged("a manifest whose %s are %s" % (way[-2], str(way[-1])[:20]), t.call("sim", manifest(path, lambda m: put(m, *way)), env=env), 3, "is not what mlo 0.1.0 writes")
    for name, text in ("a list", "[1]"), ("no JSON", "{"), ("nothing", ""): judged("a manifest that is " + name, t.call("sim", manifest(path, lambda m: text), env=env), 3, "is not what mlo 0.1.0 writes")
    for name in "/etc/passwd", "rtl/../../x", "..": judged("a file called " + name, t.call("sim", manifest(path, lambda m: put(m, "files", name, {"sha256": "0"})), env=env), 3, "lists '%s', which is no file of a build directory" % name)
    judged("files without names", t.call("sim", manifest(path, lambda m: put(m, "files", [{"sha256": "0"}])), env=env), 3, "which is no file of a build directory")
    judged("a file that is not there", t.call("sim", manifest(path, lambda m: put(m, "files", "gone.v", {"sha256": "0"})), env=env), 2, "gone.v", "emit the directory anew")
    judged("a file that is a folder", t.call("sim", manifest(path, lambda m: put(m, "files", "rtl", {"sha256": "0"})), env=env), 2, "rtl")
    judged("a digest that is another", t.call("sim", manifest(path, lambda m: put(m, "files", "params.bin", "sha256", "0")), env=env), 1, "params.bin is not the file that manifest.json lists: a mixture")
    judged("many more sources", t.call("sim", manifest(path, lambda m: [put(m, "files", "./" * k + "rtl/mlo_top.v", m["files"]["rtl/mlo_top.v"]) for k in range(1, 140)] and None), env=env), 0)
    judged("more sources than a command has room for", t.call("sim", manifest(path, lambda m: [put(m, "files", "./" * k + "rtl/mlo_top.v", m["files"]["rtl/mlo_top.v"]) for k in range(1, 470)] and None), env=tools("fresh", iverilog=COMPILES, vvp="")), 4, "is not started: its command is too long")
    for name, other in ("a file", t.write("file", "x")), ("nothing", t.at("no")): judged("a directory that is " + name, t.call("sim", other, env=env), 2, "mlo compile")
    judged("no directory", t.call("sim"), 2, "the build directory is needed")
    other = manifest(path, lambda m: None)
    shutil.rmtree(other + "/sim", True)
    t.write("other/sim", "a file")
    judged("no folder for what sim makes", t.call("sim", other, env=env), 2, "sim")
    for part in "core", "pre":
        other = manifest(path, lambda m: None)
        t.write("other/host/%s.onnx" % part, "nothing")
        judged("host/%s.onnx that is none" % part, t.call("sim", other, env=env), 3, "neither binary ONNX nor JSON")
    other = manifest(path, lambda m: None)
    shutil.copy(other + "/host/post.onnx", other + "/host/pre.onnx")
    judged("another's host/pre.onnx", t.call("sim", other, "--frames", 2, env=env), 3, "host/pre.onnx does not make this input of the core")
    lines = t.read(path + "/tb/input.hex").decode().split("\n")
    for name, text in ("shorter", "\n".join(lines[:5])), ("not hexadecimal", "\n".join(["hello", *lines[1:]])), ("narrower", "\n".join(["01", *lines[1:]])):
        other = manifest(path, lambda m: None)
        t.write("other/tb/input.hex", text)
        p = t.call("sim", other, "--seed", 2, "--frames", 2, env=env)
        judged("words that are " + name, p, 3, "does not hold the 1 frames that manifest.json speaks of")
    other = manifest(path, lambda m: put(m, "input", "name", "else"))
    judged("an input of another name", t.call("sim", other, "--frames", 2, env=env), 3, "tb/input.hex")
    judged("an output of another name", t.call("sim", manifest(path, lambda m: put(m, "output", "name", "else")), "--frames", 2, env=env), 3, "is no output of host/core.onnx, though manifest.json says so")


def check_again():
    """What a second stream's entry in the manifest may not be."""
    path = t.at("cross")
    t.good("compile", os.path.join(t.tests, "models/families/bart-decoder-d18-sdpa-mask-m.onnx"), "--pe", 2, "--simd", 2, "-o", path)
    env = spoken([])
    for key, value in ("tokens", 0), ("tokens", (1 << 24) + 1), ("lanes", 0), ("channels", 0), ("channels", (1 << 24) + 1), ("channels", 3), ("lanes", 5), ("bits", 0), ("bits", 33):
        judged("a second stream whose %s are %d" % (key, value), t.call("sim", manifest(path, lambda m: put(m, "replay", key, value)), env=env), 3, "is not what mlo 0.1.0 writes")
    judged("--frame-tokens beside it", t.call("sim", path, "--frame-tokens", 2, env=env), 4, "which comes whole; leave it out")
    judged("its words", t.call("sim", path, "--frames", 2, env=env), 1, "without a verdict")


# ---- what it is given ------------------------------------------------------------------------------------------------------------------

def check_inputs():
    path, m = small()
    tokens, channels = m["tokens"], m["channels"]
    x = np.random.default_rng(1).standard_normal((1, tokens, channels)).astype(np.float32)

    def given(*flags, frames=1, **arrays):
        np.savez(t.at("given.npz"), **arrays)
        return t.call("sim", path, "--inputs", t.at("given.npz"), *flags, env=spoken([passes(m, frames)]))
    name, core = "x", m["input"]["name"]
    p = given(**{name: x})
    judged("an input by its name", p, 0)
    hexes = lambda: np.array([[int(l[1 + 4 * i:5 + 4 * i], 16) for i in reversed(range(m["stream"]["lanes"]))] for l in t.read(path + "/sim/input.hex").decode().split()], np.uint16).view(np.int16).reshape(-1, channels)
    from graphs import session
    pre = session(os.path.join(path, "host/pre.onnx"))
    want = lambda *rows: np.concatenate([pre.run([core], {name: r})[0].reshape(-1, channels) for r in rows])
    t.case("... its words are those of host/pre.onnx", "" if np.array_equal(hexes(), want(x)) else "others")
    judged("an input without a name", given(**{"arr_0": x}), 0)
    t.case("... the same words", "" if np.array_equal(hexes(), want(x)) else "others")
    three = np.concatenate([x, -x, x / 2])
    judged("three along the first axis", given(frames=3, **{name: three}), 0)
    t.case("... frame behind frame", "" if np.array_equal(hexes(), want(x, -x, x / 2)) else "others")
    judged("three, behind an array of another name", given(frames=3, also=np.zeros(5, np.float32), **{name: three}), 0)
    t.case("... all three", "" if np.array_equal(hexes(), want(x, -x, x / 2)) else "others")
    judged("three in an axis of their own", given(frames=3, **{"arr_0": three[:, None]}), 0)
    t.case("... frame behind frame, too", "" if np.array_equal(hexes(), want(x, -x, x / 2)) else "others")
    judged("the second of three", given("--frames", 2, frames=2, **{name: three}), 0)
    judged("a fourth of three", given("--frames", 4, **{name: three}), 3, "holds 3 frames; frame 4 is asked for")
    judged("none of an empty one", given(**{name: three[:0]}), 3, "holds 0 frames; frame 1 is asked for")
    judged("of another type", given(**{name: x.astype(np.float64)}), 3, "is float64 in --inputs; float32 is needed")
    judged("an archive of none", given(), 2, "is missing in --inputs")
    judged("the core's own", given(**{core: want(x).reshape(1, tokens, channels)}), 0)
    t.case("... its words", "" if np.array_equal(hexes(), want(x)) else "others")
    judged("no such file", t.call("sim", path, "--inputs", t.at("gone.npz"), env=spoken([])), 2, "gone.npz")
    for text in "x", "", "0", "9", "2;3", "2,,3", ",", "2x": judged("--frame-tokens %r" % text, t.call("sim", path, "--frame-tokens", text, env=spoken([])), 2, "--frame-tokens %s: numbers from 1 to %d with commas" % (text, tokens))
    judged("frames of every length", t.call("sim", path, "--frame-tokens", ",".join(str(1 + k % tokens) for k in range(20)), env=spoken(["MLO PASS words 9 cycles 9"])), 0)
    for text in "x", "", "1y", "0", "-1", "nan": judged("--bandwidth %r" % text, t.call("sim", path, "--bandwidth", text, env=spoken([])), 2, "--bandwidth")
    args = t.at("args")
    speaks = tools("args", iverilog=COMPILES, vvp='echo "$@" > %s\necho "%s"' % (args, passes(m)))
    for flags, word in ((("--bandwidth", "0.001"), " +rate=1 "), (("--bandwidth", "9999"), " +rate=256 "), (("--bandwidth", str(m["axi_bits"] / 16)), " +rate=128 "), (("--wave", "/dev/null"), "-fst "), (("--wave", "w.fst"), "+wave=%s/w.fst" % os.path.realpath(t.tmp)), (("--stall", 5), "+stall=5 "),
                        (("--axi-latency", 7), "+latency=7 "), (("--axi-error", 3), " +fault=3 "), (("--seed", 8), "+seed=8 ")):
        p = t.call("sim", path, *flags, env=speaks, cwd=t.tmp)
        said = t.read(args).decode().replace("\n", " ")
        t.case("%s %s: %s" % (*flags, word.strip()), "" if p.returncode == 0 and word in said + " " else "%d %s %s" % (p.returncode, said, p.stderr.decode()[-200:]))
    p = subprocess.run(["/bin/sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$0" sim "$1" --wave w.fst', t.mlo, path], cwd=t.tmp, env=dict(speaks, PATH=speaks["PATH"] + ":" + os.environ["PATH"]), capture_output=True)
    judged("--wave where the working directory is gone", p, 2, "the working directory: No such file")


# ---- a core with caches ------------------------------------------------------------------------------------------------------------------

LLAMA = os.path.join(t.tests, "models/context/llama-d18-eager-one.onnx")           # 40 ids


def decoder(*flags):
    path = t.at("decoder" + "".join(flags))
    if not os.path.exists(path): t.good("compile", LLAMA, "--context", 16, "--pe", 2, "--simd", 2, *flags, "-o", path)
    return path, json.loads(t.read(path + "/manifest.json"))


def parts(path):
    from graphs import session
    return [session(os.path.join(path, "host", part + ".onnx")) for part in ("pre", "core", "post")]


def told(path, prompt, count, stop=None):
    """The likeliest ids behind a prompt: host/pre, core and post in ONNX Runtime, all of the context anew for each."""
    ids, models = list(prompt), parts(path)
    for _ in range(count):
        x = {models[0].get_inputs()[0].name: np.array([ids + [0] * (16 - len(ids))])}
        for s in models: x = dict(zip([o.name for o in s.get_outputs()], s.run(None, {i.name: x[i.name] for i in s.get_inputs()})))
        ids.append(int(next(iter(x.values()))[0, len(ids) - 1].argmax()))
        if ids[-1] == stop: break
    return ids


def check_jobs():
    """What comes into it, as the bench reads it: sim/jobs.hex, the words of each part; and what may not come."""
    path, m = decoder("--slots", "2")
    lanes, per = m["stream"]["lanes"], m["channels"] // m["stream"]["lanes"]
    env = spoken(["MLO PASS words 9 cycles 9"])
    rows = lambda: np.array([[int(l[1 + 4 * i:5 + 4 * i], 16) for i in reversed(range(lanes))] for l in t.read(path + "/sim/input.hex").decode().split()], np.uint16).reshape(-1, m["channels"])
    for jobs, want in (("0+5,5+1,1:0+16,6+10", [(0, 0, 5), (0, 5, 1), (1, 0, 16), (0, 6, 10)]), ("1@0:0+4,0@0:4+2,0@1:0+3", [(0, 0, 4), (0, 4, 2), (1, 0, 3)]), ("0:0+4,0:2+3,", [(0, 0, 4), (0, 2, 3)]), ("3@1:0+16", [(1, 0, 16)])):
        p = t.call("sim", path, "--jobs", jobs, env=env)
        got = [(int(l[4:6], 16), int(l[6:12], 16), int(l[12:16], 16)) for l in t.read(path + "/sim/jobs.hex").decode().split()]
        t.case("--jobs %s" % jobs, "" if p.returncode == 0 and got == want and len(rows()) == sum(n for _, _, n in want) else "%d %s %s" % (p.returncode, got, p.stderr.decode()[-200:]))
    again = rows()
    t.good("sim", path, "--jobs", "3@0:0+7,3@0:7+9", env=env)
    t.case("a frame in two parts, in another slot: its words", "" if np.array_equal(rows(), again) else "others")
    judged("the bench's own jobs", t.call("sim", path, env=env), 0)
    for jobs, words in (("2:0+1", "slot 2; the core has 2"), ("-1:0+1", "slot -1"), ("256@0:0+1", "frame 256; there can be 256"), ("-2@0:0+1", ""), ("-1+2", "does not lie within"), ("0+0", "does not lie within"), ("0+17", "does not lie within the context of 16"), ("3+14", "does not lie within"), ("0+4,5+1", "begins beyond the 4 tokens that slot 0"), ("", "can be 1 to 256"),
                        ("0+4;", "START+TOKENS"), ("x", "START+TOKENS"), ("0", "START+TOKENS"), ("1:", "START+TOKENS"), ("0+", "START+TOKENS"), (",".join(["0+1"] * 257), "257 jobs")):
        judged("--jobs %.20s" % (jobs or "of nothing"), t.call("sim", path, "--jobs", jobs, env=env), 0 if jobs[:2] == "-2" else 2, words)
    for flags in ("--frames", 2), ("--frame-tokens", 3), ("--outputs", t.at("o.npz")), ("--probe",): judged("%s beside jobs" % flags[0], t.call("sim", path, *flags, env=env), 4, "is of whole frames; to a core with caches come jobs")
    judged("jobs of a core without caches", t.call("sim", small()[0], "--jobs", "0+1", env=env), 2, "compile --context N makes one")
    for bad in {"slot": 2}, {"start": 15, "tokens": 2}, {"tokens": 0}: judged("a manifest whose job has %s" % bad, t.call("sim", manifest(path, lambda m: m["jobs"][0].update(bad)), env=env), 2, "--jobs of the manifest:")
    judged("a manifest without jobs", t.call("sim", manifest(path, lambda m: put(m, "jobs", [])), env=env), 2, "0 jobs; there can be 1 to 256")
    r = json.loads(t.good("sim", path, "--jobs", "0+4,4+1", env=spoken(["MLO FRAME 0 10", "MLO FRAME 1 20", "MLO PASS words %d cycles 20" % (5 * per)])))
    share = 5 / (2 * m["tokens"])
    t.case("a job is a share of a frame's work", "" if r["frames"] == 2 and all(abs(got["macs"] - k["macs"] * share) < 1e-6 for got, k in zip(r["kernels"], m["kernels"])) else str(r["kernels"])[:300])
    p = t.call("sim", path, "--text", "--jobs", "0+4,4+1", env=spoken(["MLO PASS words 9 cycles 20"]))
    t.case("jobs, for people", "" if p.returncode == 0 and b"2 jobs" in p.stdout and b"--frames-in-flight" not in p.stdout else p.stdout.decode() or "it says nothing")


def check_texts():
    """sim --generate, run --generate: the texts that host/*.onnx tell in ONNX Runtime; which jobs they become."""
    path, m = decoder("--slots", "2")
    env = spoken(["MLO PASS words 9 cycles 9"])
    want = [told(path, p, 4) for p in ((1, 2, 3), (7,), (30, 4))]
    r = json.loads(t.good("sim", path, "--prompt", "1,2,3;7;30,4", "--generate", 4, env=env))
    t.case("three texts", "" if [s["tokens"] for s in r["sequences"]] == want else "%s, not %s" % (r["sequences"], want))
    p = t.call("sim", path, "--prompt", "1,2,3;7", "--generate", 4, "--text", env=env, text=True)
    lines = ["sequence " + " -> ".join(" ".join(map(str, ids)) for ids in (text[:n], text[n:])) for text, n in zip(want, (3, 1))]
    t.case("--text says them, too", "" if p.returncode == 0 and [" ".join(l.split()) for l in p.stdout.splitlines() if "sequence" in l] == lines else p.stdout[:300] + str(lines))
    t.good("sim", path, "--prompt", "1,2,3;7;30,4", "--generate", 4, env=env)
    got = [(int(l[4:6], 16), int(l[6:12], 16), int(l[12:16], 16)) for l in t.read(path + "/sim/jobs.hex").decode().split()]
    two = [(0, 0, 3), (1, 0, 1), *((s, n + k, 1) for k in range(3) for s, n in ((0, 3), (1, 1))), (0, 0, 2), *((0, 2 + k, 1) for k in range(3))]
    t.case("their jobs: two side by side, then the third", "" if got == two else "%s, not %s" % (got, two))
    stop = want[0][4]
    r = json.loads(t.good("sim", path, "--prompt", "1,2,3", "--generate", 9, "--stop", stop, env=env))
    t.case("--stop", "" if r["sequences"][0]["tokens"] == told(path, (1, 2, 3), 9, stop) else str(r["sequences"]))
    r = json.loads(t.good("sim", path, "--generate", 3, env=env))
    t.case("without a prompt: token 1", "" if r["sequences"][0]["tokens"] == told(path, (1,), 3) else str(r["sequences"]))
    inside, said = decoder("--tokens")
    r = json.loads(t.good("sim", inside, "--prompt", "1,2,3;7", "--generate", 4, "--stop", 39, env=env))
    t.case("ids in and out: texts", "" if [s["tokens"] for s in r["sequences"]] == [told(inside, p, 4, 39) for p in ((1, 2, 3), (7,))] else str(r["sequences"]))
    got = [tuple(int(l[a:b], 16) for a, b in ((0, 4), (4, 6), (6, 12), (12, 16))) for l in t.read(inside + "/sim/jobs.hex").decode().split()]
    t.case("... a job each, which goes on inside", "" if got == [(3, 0, 0, 3), (3, 0, 0, 1)] else str(got))
    judged("... jobs that are given", t.call("sim", inside, "--jobs", "0+3,3+1", env=env), 0)
    some = t.at("some.npz")
    np.savez(some, x=np.zeros(1))
    for words, status, *flags in (("do not fit the model's 16", 2, "--prompt", "1,2", "--generate", 15), ("the model knows 0 to 39", 2, "--prompt", "1,40", "--generate", 2), ("give that, too", 2, "--prompt", "1"), ("give that, too", 2, "--stop", "1"), ("leave --jobs out", 2, "--generate", 2, "--jobs", "0+3"),
                                  ("exclude it", 2, "--generate", 2, "--inputs", some), ("exclude it", 2, "--generate", 2, "--outputs", t.at("none.npz")), ("exclude it", 2, "--generate", 2, "--probe"), ("--generate 0 is not", 2, "--generate", 0), ("--stop x", 2, "--generate", 2, "--stop", "x"),
                                  *(("begins with no token id", 2, "--generate", 2, "--prompt", text) for text in ("", "x", "1,", "1;", ";1", "1 2", "-1", "1x", "99999999999999999999")), ("more than 256 jobs", 2, "--generate", 14, "--prompt", ";".join("1" * 30))):
        judged("--generate: %s" % " ".join(map(str, flags))[:40], t.call("sim", path, *flags, env=env), status, words)
        if "leave" in words or "256" in words: continue
        if "--probe" in flags: flags = [*flags, t.at("p.npz")]
        p = t.call("run", LLAMA, "--context", 16, *flags)
        t.case("run %s: the same" % " ".join(map(str, flags))[:40], "" if p.returncode == status and words in p.stderr.decode() else "%d %s" % (p.returncode, p.stderr.decode()[-200:]))
    judged("--generate of a core without caches", t.call("sim", small()[0], "--generate", 2, env=env), 2, "--generate is of a core with caches")
    long = t.write("long.json", json.dumps({"generate": 2, "prompt": ",".join("1" * 65537)}))            # an argument could not be as long
    p = t.call("run", LLAMA, "--context", 16, "--config", long)
    t.case("a prompt of too many tokens", "" if p.returncode == 2 and b"too many tokens" in p.stderr else p.stderr.decode()[-200:] or "it says nothing")
    floats = json.loads(t.good("run", LLAMA, "--context", 16, "--prompt", "1,2,3;7", "--generate", 2))["sequences"]
    t.case("run: two texts of floats", "" if [s["tokens"][:3 - 2 * k] for k, s in enumerate(floats)] == [[1, 2, 3], [7]] and [len(s["tokens"]) for s in floats] == [5, 3] else str(floats))


def check_teller():
    """The verb generate: a text in, its bytes out as they come. The vocabulary: 256 bytes and a few pieces, in llama2.c's form."""
    path, m = decoder("--slots", "2")

    def vocabulary(pieces, longest=16):
        name = t.at("vocabulary.bin")
        with open(name, "wb") as f: f.write(struct.pack("<i", longest) + b"".join(struct.pack("<fi", score, len(piece)) + piece for score, piece in pieces))
        return name
    bytes_of = [(0.0, b"<unk>"), (0.0, b"\n<s>\n"), (0.0, b"\n</s>\n"), *((0.0, b"<0x%02X>" % k) for k in range(256))]
    say = lambda prompt, *flags, file=None: t.call("generate", path, "--prompt", prompt, "--tokenizer", file or vocabulary(bytes_of), *flags)
    pieces = {0: b"<unk>", 2: b"\n</s>\n"}
    said = lambda ids: b"".join(pieces.get(k, b"" if k == 1 else bytes([k - 3]) if k > 2 else b"") for k in ids) + b"\n"
    for prompt in "!", "#$!", "":
        ids = [1, *(3 + k for k in prompt.encode())]
        for count in 1, 5, 16 - len(ids):
            p = say(prompt, "--count", count)
            t.case("%r and %d more" % (prompt, count), "" if p.returncode == 0 and p.stdout == said(told(path, ids, count)) else "%d %r %r %s" % (p.returncode, p.stdout, said(told(path, ids, count)), p.stderr.decode()[-200:]))
    p = say("!")
    t.case("to the end of the context", "" if p.returncode == 0 and p.stdout == said(told(path, [1, 36], 14)) else repr(p.stdout))
    stop = told(path, [1, 36], 14)[5]
    p = say("!", "--stop", stop)
    t.case("generate --stop", "" if p.returncode == 0 and p.stdout == said(told(path, [1, 36], 14, stop)) else repr(p.stdout))
    for name, words, prompt, *flags in (("too many tokens", "has 16 tokens; the context is 16: leave room for one", "!" * 15), ("more than there is room for", "--count 15 is not", "!", "--count", 15), ("a token that the model does not know", "the model knows 0 to 39", "A")):
        judged("generate: " + name, say(prompt, *flags), 2, words)
    p = say("!!", file=vocabulary([*bytes_of, (1.0, b"!"), (5.0, b"!!"), (0.0, b" ")]))
    judged("generate: pieces beyond the model's ids", p, 2, "the model knows 0 to 39")
    t.case("nothing is said of them but that", "" if p.stdout.startswith(b"{\"error") else repr(p.stdout))
    p = t.call("generate", path, "--prompt", "1,36", "--count", 5)
    t.case("generate of ids", "" if p.returncode == 0 and p.stdout.decode().split() == [str(k) for k in told(path, [1, 36], 5)] else "%d %r" % (p.returncode, p.stdout))
    judged("generate of two sequences", t.call("generate", path, "--prompt", "1,36;2"), 2, "one sequence")
    good = t.read(vocabulary(bytes_of))
    for name, data in ("nothing", b""), ("cut off", good[:-1]), ("a length beyond its end", good[:4] + struct.pack("<fi", 0.0, 1 << 30) + good[12:]), ("too few pieces", t.read(vocabulary(bytes_of[:258]))), ("too much", good + b"1234567"):
        judged("a vocabulary that is " + name, say("!", file=t.write("bad.bin", data)), 3, "is no tokenizer in llama2.c's form")
    judged("no vocabulary", say("!", file=t.at("gone.bin")), 2, "gone.bin")
    for args in (path, "--prompt", "!"), (path, "--tokenizer", t.at("vocabulary.bin")), ("--prompt", "!", "--tokenizer", t.at("vocabulary.bin")): judged("generate without %s" % "".join({"DIR": "a directory", "--prompt": "a prompt", "--tokenizer": "a tokenizer"}[k] for k in ("DIR", "--prompt", "--tokenizer") if k not in args and not (k == "DIR" and path in args)), t.call("generate", *args), 2, "begins with no token id" if path in args and "!" in args else "is needed")
    for part in "pre", "core", "post":
        other = manifest(path, lambda m: None)
        t.write("other/host/%s.onnx" % part, "nothing")
        judged("generate: host/%s.onnx that is none" % part, t.call("generate", other, "--prompt", "!", "--tokenizer", vocabulary(bytes_of)), 3, "neither binary ONNX nor JSON")


# ---- its programs ------------------------------------------------------------------------------------------------------------------------

def check_programs():
    path, m = small()
    fresh = lambda: shutil.rmtree(path + "/sim", True)
    run = "echo '%s'" % passes(m)
    verilator = 'while [ "$1" != --Mdir ]; do shift; done; %s -p "$2"; printf "#!/bin/sh\\n%%s\\n" "echo \\"%s\\"" > "$2/mlo_tb"; %s +x "$2/mlo_tb"' % (shutil.which("mkdir"), passes(m), shutil.which("chmod"))
    for name, programs, flags, status, words in (
            ("a compiler that says why", {"iverilog": "echo one; echo 'x.v:3: error: no such module'; echo three; exit 1", "vvp": run}, (), 5, ["iverilog does not compile the Verilog: x.v:3: error: no such module; see"]),
            ("a compiler that says something", {"iverilog": "echo hello; exit 1", "vvp": run}, (), 5, ["does not compile the Verilog: hello; see"]), ("a compiler that says nothing", {"iverilog": "exit 1", "vvp": run}, (), 5, ["does not compile the Verilog: ; see"]),
            ("a compiler that makes nothing", {"iverilog": "exit 0", "vvp": run}, (), 2, ["cannot be written"]), ("no vvp", {"iverilog": COMPILES}, (), 1, ["without a verdict, status 127"]), ("no simulator", {}, (), 2, ["iverilog", "is not installed: apt install iverilog"]),
            ("no Verilator", {"iverilog": COMPILES, "vvp": run}, ("--simulator", "verilator"), 2, ["verilator", "is not installed: apt install verilator"]), ("Verilator", {"verilator": verilator, "make": ""}, (), 0, []),
            ("Verilator with a wave", {"verilator": verilator, "make": ""}, ("--wave", "w"), 0, [])):
        fresh()
        judged(name, t.call("sim", path, *flags, env=tools("p-" + name.replace(" ", "-"), **programs), cwd=t.tmp), status, *words)
        t.case("... and nothing half made is left", "" if not [f for f in os.listdir(path + "/sim") if ".part" in f] else str(os.listdir(path + "/sim")))
    fresh()
    other = manifest(path, lambda m: put(m, "files", "rtl/mlo_top.v", "sha256", "0"))
    shutil.rmtree(other + "/sim", True)
    p = t.call("sim", other, env=tools("mixed", iverilog="exit 1", vvp=""))
    t.case("a mixture that does not compile", "" if p.returncode == 1 and b"iverilog does not compile the Verilog" in p.stderr else "%d %s" % (p.returncode, p.stderr))
    env = spoken([passes(m)])
    env["PATH"] = "::/nowhere:" + "x" * 5000 + ":" + env["PATH"]
    judged("an odd PATH", t.call("sim", path, env=env), 0)
    env = {k: v for k, v in os.environ.items() if k != "PATH"}
    judged("no PATH", t.call("sim", path, env=env), 2, "is not installed")


def check_native():
    """sim of C: the verdict of its test."""
    path = t.at("native")
    t.good("compile", t.model("mlp-res"), "--target", "c", "-o", path)
    m = json.loads(t.read(path + "/manifest.json"))
    make = lambda lines, status=0: tools("make", make="%s %s\nexit %d" % (CAT, t.write("made.log", "".join(l + "\n" for l in lines)), status))
    for name, lines, code, status, words in (("nothing is said", [], 0, 1, ["the test ended with status 0; see"]), ("a status", ["hello"], 7, 1, ["status 7"]), ("a wrong word", ["one", "MLO FAIL frame 0, token 2", "MLO FAIL frame 1"], 1, 1, ["first wrong word: frame 1"]),
                                             ("PASS and a status", ["MLO PASS 9"], 3, 1, ["status 3"]), ("PASS twice", ["MLO PASS 9", "MLO PASS 9"], 0, 1, ["status 0"]), ("PASS", ["cc ..", "MLO PASS 9"], 0, 0, []), ("PASS and FAIL", ["MLO FAIL x", "MLO PASS 9"], 0, 1, ["first wrong word: x"])):
        p = t.call("sim", path, env=make(lines, code))
        judged("C: " + name, p, status, *words)
    said = json.loads(t.call("sim", path, env=make(["MLO PASS 9"])).stdout)
    t.case("C: the report", "" if said == {"pass": True, "simulator": "native", **{k: m[k] for k in ("target", "iterations", "frames", "words", "arena_bytes")}} else str(said))
    p = t.call("sim", path, "--text", env=make(["MLO PASS 9"]))
    t.case("C: for people", "" if p.returncode == 0 and p.stdout.decode() == "\nPASS: %d words of %d frames are equal (native); an arena of %d bytes\n\n" % (m["words"], m["frames"], m["arena_bytes"]) else p.stdout.decode() or "it says nothing")
    p = t.call("sim", path, "--text", env=make(["MLO FAIL x"]))
    t.case("C: for people, a failure", "" if p.returncode == 1 and not p.stdout else p.stdout.decode() or "it says nothing")
    judged("C: no make", t.call("sim", path, "--json", env=tools("none")), 2, "make", "is not installed")
    judged("C: a mixture", t.call("sim", manifest(path, lambda m: put(m, "files", "model.c", "sha256", "0")), env=make(["MLO PASS 9"])), 1, "model.c is not the file that manifest.json lists")
    judged("C: a file that is not there", t.call("sim", manifest(path, lambda m: put(m, "files", "gone.c", {"sha256": "0"})), env=make(["MLO PASS 9"])), 2, "gone.c")
    p = t.call("generate", path, "--prompt", "x", "--tokenizer", t.at("no.json"))
    t.case("C: generate", "" if p.returncode == 4 and b"it holds C, not Verilog; mlo sim runs its test" in p.stderr else p.stderr.decode() or "it says nothing")


def check_memory():
    """Memory that is refused once, at each place of the command line that asks for some (library/refusals.c): status 2 and one line, or files are as ever; and nothing half made is left."""
    shim, plain = t.at("refusals.so"), t.mlo if b"__asan_init" not in t.read(t.mlo) and t.read(t.mlo)[:4] == b"\x7fELF" else os.path.join(t.root, "mlo")
    p = subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", os.path.join(t.tests, "library/refusals.c"), "-o", shim], capture_output=True, text=True)
    if p.returncode: return t.case("refusals.c compiles", p.stderr[-300:])
    path, m = small()
    x, out, refused = t.at("few.npz"), t.at("kept"), t.at("refused")
    np.savez_compressed(x, x=np.random.default_rng(3).standard_normal((1, m["tokens"], m["channels"])).astype(np.float32), other=np.asfortranarray(np.zeros((2, 3))))
    model, tree = t.model("mlp-res"), dict(os.environ)
    talks = spoken([passes(m)], trace="B 1\nP 0 0 s_axis_w\n" + "".join("T 0 %d %d\n" % (10 * n + 1, 10 * n + 5) for n in range(10)))
    decodes, letters = decoder("--slots", "2")[0], t.at("letters.bin")
    with open(letters, "wb") as f: f.write(struct.pack("<i", 16) + b"".join(struct.pack("<fi", 0.0, len(piece)) + piece for piece in (b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % k for k in range(256)))))
    calls = (("a read", tree, None, ("read", model, "--onnx", "-o", out + "/r.onnx")), ("a read by a pipe", tree, t.good("read", model), ("roll", "-o", out + "/r.json")), ("a run", tree, None, ("run", model, "--inputs", x, "--outputs", out + "/y.npz", "--probe", out + "/p.npz")),
             ("a compile", tree, None, ("compile", model, "--pe", "2", "--simd", "8", "-o", out + "/tree", "--keep", out + "/stages")), ("a report", tree, None, ("quantize", model, "--report", out + "/q.json", "-o", out + "/q.onnx", "--onnx")), ("a check", tree, None, ("check", t.at("rolled.onnx"), "--against", model)),
             ("a show", tree, None, ("show", path, "--html", "-o", out + "/page.html")), ("a simulation", talks, None, ("sim", path, "--inputs", x, "--outputs", out + "/o.npz", "--trace")), ("a text", talks, None, ("sim", decodes, "--prompt", "1,2;3", "--generate", "2")), ("words", talks, None, ("generate", decodes, "--prompt", "!", "--count", "2", "--tokenizer", letters)),
             ("a text of a model", tree, None, ("run", LLAMA, "--context", "16", "--prompt", "1,2;3", "--generate", "2")))
    t.good("roll", model, "--onnx", "-o", t.at("rolled.onnx"))
    shutil.rmtree(path + "/sim", True)                     # what other checks left there
    for name, env, given, args in calls:
        def one(place):
            shutil.rmtree(out, True)
            os.makedirs(out)
            if os.path.exists(refused): os.unlink(refused)
            p = t.call(*args, input=given, program=plain, env=dict(env, LD_PRELOAD=shim, MLO_PLACE=str(place), MLO_REFUSED=refused))
            return p.returncode, sorted((f, "" if f.endswith((".npz", ".html")) else t.read(os.path.join(d, f))) for d, _, files in os.walk(out) for f in files if f != "accuracy.json"), p.stderr.decode(errors="replace"), os.path.exists(refused)
        whole, wrong, place = one(0), [], 1
        while place < 100:
            status, left, error, was = one(place)
            if not was: break
            lines = [l for l in error.splitlines() if "[MLO_E_" in l]
            if status == 2 and (len(lines) != 1 or not lines[0].endswith(("[MLO_E_MEMORY]", "[MLO_E_IO]"))): wrong.append("place %d: says %s" % (place, error[-200:]))
            if status != 2 and (status, left) != whole[:2]: wrong.append("place %d: status %d, %s %s" % (place, status, [f for f, _ in left], error[-200:]))
            if status == 2 and any(".part" in f or ".mlo-" in f for f, _ in left): wrong.append("place %d leaves %s" % (place, [f for f, _ in left]))
            place += 1
        t.case("no memory, once, for %s" % name, "; ".join(wrong[:3]) if wrong or whole[0] == 0 else "status %d: %s" % (whole[0], whole[2][-200:]))
        t.note("%d places" % (place - 1))


t.main(check_verdicts, check_causes, check_probes, check_traces, check_blocks, check_others, check_outputs, check_shown, check_image, check_manifests, check_again, check_inputs, check_jobs, check_texts, check_teller, check_programs, check_native, check_memory, floor=335)
