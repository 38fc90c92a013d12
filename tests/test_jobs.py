# SPDX-License-Identifier: MIT
"""test_jobs: cores that keep keys and values (compile --context): parts of sequences come as jobs, one token or many, in any slot, and give in Verilog
what ONNX Runtime makes of host/core.onnx for the whole sequence.

Judges: hardware.parted (ONNX Runtime at what each slot holds, behind it anything); `mlo run --generate` of the folded model, another way to the text;
stories260k.json, the text that the trained model says."""
import datetime
import json
import os
import random
import re
import subprocess
import numpy as np
import onnx
import onnxruntime
import harness as t
import hardware

MODELS = ["gpt2-d18-eager-dims", "qwen3-d23-eager-dims", "gemma3-d18-eager-dims-mask", "llama-d18-eager-static"]
TODAY = t.drawn(MODELS, 2)                                     # a program of Verilator's each
STEPS = ",".join("%d+1" % i for i in range(16))
PARTS = "0+5,5+1,6+7,13+3"
TURNS = "0+5,1:0+2,0:5+1,1:2+9,0:6+10,1:11+1,1:12+4"          # two slots in turn
BACK = "0+4,1@4+8,4+12,2+3,1@0+6,3@6+10"                      # what other sequences left behind is overwritten, and read where it was not


def model(name): return os.path.join(t.tests, "models/context", name + ".onnx")


def build(name, *flags):
    return hardware.build(model(name), "--context", "16", *flags, at=name)


def run(path, *flags): return hardware.Run(path, *flags, verilator=True)


def judged(what, r, paced=True):
    why = r.why()
    if not why and paced and abs(r.cycles - r.predicted_cycles) > 0.01 * r.cycles: why = "%d cycles, %d predicted" % (r.cycles, r.predicted_cycles)
    t.case(what, why)


def check_models():
    """Whole, token by token, in parts: the same words; within 1 % as predicted."""
    for name in TODAY:
        path = build(name, "--slots", "2")
        for what, jobs in (("the bench's own", []), ("whole", ["--jobs", "0+16"]), ("16 x 1", ["--jobs", STEPS]), ("5 + 1 + 7 + 3", ["--jobs", PARTS])):
            judged("%s: %s" % (name, what), run(path, *jobs))


def check_slots():
    """Two sequences in turn are each as if alone; after a job is taken back, it never was."""
    for name in TODAY:
        path = build(name, "--slots", "2")
        judged("%s: two slots" % name, run(path, "--jobs", TURNS))
        judged("%s: two slots, stalled" % name, run(path, "--jobs", TURNS, "--stall", "30", "--seed", "7"), paced=False)
        judged("%s: back, over others' tokens" % name, run(path, "--jobs", BACK))
        judged("%s: back, stalled" % name, run(path, "--jobs", BACK, "--stall", "30", "--seed", "8"), paced=False)
    others = ("row blocks", MODELS[3], ("--memory", "block", "--tile", "4")), ("resident parameters", MODELS[2], ("--memory", "resident"))
    for what, name, flags in t.drawn(others, 2, lambda other: other[0]): judged(what, run(build(name, *flags), "--jobs", PARTS), paced=False)


GROUPS = (("four in step", "0+1,1:0+1,2:0+1,3:0+1,0:1+1,1:1+1,2:1+1,3:1+1"), ("of other lengths", "0+5,1:0+2,2:0+7,3:0+1,0:5+1,1:2+1,2:7+1,3:1+1,0:6+1,1:3+1,2:8+1,3:2+1"),
          ("a slot twice in a row", "0+3,0:3+2,1:0+4,1:4+1,1:5+1,0:5+3"), ("taken back", "0+4,1:0+6,2:0+2,0:2+3,1:6+1,2:2+5,1:3+2,0:5+1,2:1+2"))


def drawn(rng, slots=2):
    """A list of jobs for slots of 16 positions: one after the other, in turn, taken back; of one token, of a few, of as many as fit."""
    held, list_ = [0] * slots, []
    for _ in range(rng.randint(3, 14)):
        slot = rng.randrange(slots)
        start = held[slot] if held[slot] < 16 and rng.random() < 0.8 else rng.randrange(min(held[slot] + 1, 16))
        tokens = min(16 - start, rng.choice([1, 1, 1, 2, rng.randint(1, 6), 16]))
        held[slot] = start + tokens
        list_.append("%d:%d+%d" % (slot, start, tokens))
    return ",".join(list_)


def check_groups():
    """Sequences that share a pass over the weights are each as if alone, and weights are read once for all of them."""
    for name, most in ((TODAY[0], 4), (TODAY[1], 2)):
        path = build(name, "--slots", "4", "--frames-in-flight", str(most))
        for what, jobs in GROUPS:
            judged("%s: groups of %d: %s" % (name, most, what), run(path, "--jobs", jobs))
            judged("%s: groups of %d: %s, stalled" % (name, most, what), run(path, "--jobs", jobs, "--stall", "30", "--seed", "11"), paced=False)
        beats = lambda jobs: run(path, "--jobs", jobs).memory["beats"]
        t.case("%s: a step of %d reads weights as often as a step of one" % (name, most),
               "" if beats(",".join("%d:0+1" % k for k in range(most))) == beats("0+1") else "more beats")
        shown = json.loads(t.good("show", os.path.join(path, "host/core.onnx"), "--json", "--position", "1", "--sequences", str(most)))["step"]
        r = run(path, "--jobs", ",".join("%d:%d+1" % (k, p) for p in range(2) for k in range(most)))
        step = r.frame_done[-1] - r.frame_done[most - 1] if r.frame_done else 0
        t.case("%s: show says what a step of %d takes" % (name, most), "" if abs(step - shown["cycles"]) <= 0.01 * step and shown["sequences"] == most else "%d cycles, said %s" % (step, shown))
        rng = random.Random(datetime.date.today().isoformat() + name + "groups")
        for k in range(10):                                     # who joins a group, and who misses it, is foretold
            jobs = drawn(rng, 4)
            judged("%s: groups of %d, drawn, %d: %s" % (name, most, k, jobs), run(path, "--jobs", jobs))


def check_drawn():
    """Sixty lists of jobs, drawn by the date: the words, and cycles within 1 % of those foretold."""
    seed = datetime.date.today().isoformat()
    t.note("drawn from " + seed)
    for name in TODAY:
        path, rng, worst = build(name, "--slots", "2"), random.Random(seed + name), 0
        for k in range(60 // len(TODAY)):
            jobs = drawn(rng)
            r = run(path, "--jobs", jobs)
            worst = max(worst, abs(r.cycles - r.predicted_cycles) / r.cycles) if r.cycles else 1
            judged("%s: drawn, %d: %s" % (name, k, jobs), r)
        t.note("%s: at most %.2f %% off" % (name, 100 * worst))


def check_text():
    """sim --generate: texts side by side, those of `mlo run --generate` on the folded model."""
    name, prompts = TODAY[0], "1,2,3;7;30,4"
    path = build(name, "--slots", "2")
    folded = t.at("folded.json")
    t.good("fold", model(name), "--context", "16", "-o", folded)
    want = json.loads(t.good("run", folded, "--prompt", prompts, "--generate", "9"))["sequences"]
    r = run(path, "--prompt", prompts, "--generate", "9")
    judged("three texts in two slots", r)
    t.case("the texts are those of mlo run", "" if r.sequences == want and [len(s["tokens"]) for s in want] == [12, 10, 11] else "%s, not %s" % (r.sequences, want))
    stop = want[0]["tokens"][5]
    r = run(path, "--prompt", "1,2,3", "--generate", "9", "--stop", str(stop))
    t.case("a stop id ends it", r.why() or ("" if r.sequences[0]["tokens"] == want[0]["tokens"][:want[0]["tokens"].index(stop, 3) + 1] else str(r.sequences)))


def check_story():
    """The trained model, with 64 tokens of context: text in, text out."""
    path = hardware.build("stories260k-step", "--context", "64")
    said = json.loads(t.read(t.model("stories260k-step").replace("-step.onnx", ".json")))
    tokenizer = os.path.join(t.tests, "../examples/tok512.bin")
    told = t.call("generate", path, "--prompt", "Once upon a time", "--tokenizer", tokenizer).stdout.decode().rstrip("\n")
    t.case("the story that the floats tell", "" if len(told) > 100 and said["text"].startswith(told) else told or "it says nothing")
    r = run(path, "--prompt", ",".join(map(str, said["greedy"][:5])), "--generate", "12")
    judged("its first words, in Verilog", r)
    t.case("a step reads each weight once", "" if r.cycles <= 1.03 * r.memory["beats_per_iteration"] * 5 * r.frames else "%s cycles in %d jobs" % (r.cycles, r.frames))
    alone = json.loads(t.good("run", t.model("stories260k-step"), "--context", "24", "--generate", "16"))["sequences"]
    t.case("without a prompt, a story from its beginning", "" if alone == [{"tokens": said["greedy"][:17]}] else str(alone))
    t.case("the ids of the floats' story", "" if r.sequences and r.sequences[0]["tokens"] == said["greedy"][:17] else str(r.sequences))
    shown = json.loads(t.good("show", os.path.join(path, "host/core.onnx"), "--json", "--position", "40"))
    t.case("show says how fast a token is", "" if shown["step"]["position"] == 40 and shown["step"]["cycles"] >= shown["step"]["first"] > 17500 else str(shown.get("step")))
    kept = [(d["kernel"], d["port"]) for d in json.loads(t.read(os.path.join(path, "manifest.json")))["descriptors"] if d["banks"] == 1]
    t.case("both tables of angles have one bank", "" if kept == [("rotary_0", "s_axis_t"), ("rotary_1", "s_axis_t")] else str(kept))
    text = t.good("show", os.path.join(path, "host/core.onnx"), "--text").decode()
    t.case("they are what stays on chip: 64 positions, 8 channels a head, 16 bits, twice", "" if "2.0 KiB of parameters are read once and stay on chip" in text else text[:600])


def cached(path):
    """Keys and values of each iteration, (iterations, 2, tokens, channels), as ONNX Runtime has them of the sequence that one job brought whole."""
    m = json.loads(t.read(os.path.join(path, "manifest.json")))
    core = onnx.load(os.path.join(path, "host/core.onnx"))
    scan = next(n for n in core.graph.node if n.op_type == "Scan")
    body = next(a.g for a in scan.attribute if a.name == "body")
    attention = next(n for n in body.node if n.domain == "mlo" and n.op_type.startswith("Attention"))
    for name in attention.input[1:3]:
        body.node.append(onnx.helper.make_node("Identity", [name], [name + "_kept"]))
        body.output.append(onnx.helper.make_value_info(name + "_kept", next(v.type for v in [*body.value_info, *body.output] if v.name == name)))
        scan.output.append(name + "_all")
        core.graph.output.append(onnx.helper.make_empty_tensor_value_info(name + "_all"))
    session = onnxruntime.InferenceSession(core.SerializeToString())
    x = hardware.frames(path, "sim/input.hex", m["stream"]["lanes"], m["stream"]["bits"])[0]
    given = session.get_inputs()[0]
    outs = session.run([o + "_all" for o in attention.input[1:3]], {given.name: x.reshape(given.shape).astype(np.int16 if "16" in given.type else np.int8)})
    return np.stack([o.reshape(m["iterations"], m["tokens"], m["kv"]["channels"]) for o in outs], 1)


def held(path):
    """The same, out of the memory that the core wrote, in slot 0."""
    m = json.loads(t.read(os.path.join(path, "manifest.json")))
    kv, bits = m["kv"], (m["kv"]["bits"] + 7) // 8 * 8
    per = m["axi_bits"] // (kv["lanes"] * bits) * kv["lanes"]               # channels of a beat
    words = [int(line, 16) for line in t.read(os.path.join(path, "sim/kv.hex")).split()]
    lanes = np.array([[w >> n * bits & (1 << bits) - 1 for n in range(per)] for w in words], np.int64)
    lanes = np.where(lanes >> (bits - 1), lanes - (1 << bits), lanes)
    rows = lanes.reshape(m["slots"], m["iterations"], 2, m["tokens"], kv["row_beats"] * per)
    return rows[0, ..., :kv["channels"]]


def check_dram():
    """--kv dram: the same words, wherever jobs begin; the whole region is what ONNX Runtime says, and beside it nothing is written; errors are said."""
    for name in t.drawn((MODELS[0], MODELS[1], MODELS[3]), 2):
        path = build(name, "--slots", "2", "--kv", "dram")
        m = json.loads(t.read(os.path.join(path, "manifest.json")))
        r = run(path, "--jobs", "0+16")
        judged("%s: whole" % name, r)
        t.case("%s: the region is what ONNX Runtime says" % name, "" if np.array_equal(held(path), cached(path)) else "other keys or values")
        for what, jobs in (("16 x 1", STEPS), ("5 + 1 + 7 + 3", PARTS), ("two slots", TURNS), ("back, over others' tokens", BACK)):
            r = run(path, "--jobs", jobs)
            judged("%s: %s" % (name, what), r)
            per = 2 * m["iterations"] * m["kv"]["row_beats"]
            want = [per * sum(job[1] for job in r.jobs), per * sum(job[2] for job in r.jobs)]
            t.case("%s: %s: each row is read once a job, and written once" % (name, what), "" if [r.kv_read, r.kv_written] == want else "%s, not %s" % ([r.kv_read, r.kv_written], want))
        judged("%s: stalled" % name, run(path, "--jobs", TURNS, "--stall", "30", "--seed", "9"), paced=False)
    for name in TODAY:
        if name == MODELS[2]: continue
        path = build(name, "--slots", "4", "--kv", "dram", "--frames-in-flight", "4")
        for what, jobs in GROUPS:
            judged("%s: groups: %s" % (name, what), run(path, "--jobs", jobs))
            for seed in range(3): judged("%s: groups: %s, stalled, %d" % (name, what, seed), run(path, "--jobs", jobs, "--stall", "30", "--seed", str(seed)), paced=False)
    for channel in "rb":
        p = subprocess.run([hardware.program(path), "+kv_fault_%s=3" % channel], cwd=path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        t.case("a wrong answer at %s is said" % channel.upper(), "" if p.returncode and "MLO FAIL bus error" in p.stdout else p.stdout[-300:] or "it says nothing")
    t.good("lower", model(MODELS[2]), "--context", "16", "-o", t.at("no.json"))        # it did not know
    p = t.call("compile", t.at("no.json"), "--kv", "dram", "-o", t.at("no"))
    t.case("keys' mask bits are not kept in memory", "" if p.returncode == 4 and b"--kv dram: a mask" in p.stderr else p.stderr.decode()[-300:] or "it says nothing")


MEMORY_ERRS = (                                                # a failed read brings what no memory held; a failed write is lost
    ("tb/mlo_sim_ram.v", "== fault) s_axi_rresp <= 2'b10;", "== fault) begin s_axi_rresp <= 2'b10; s_axi_rdata <= ~mem[word[31:0]]; end"),
    ("tb/mlo_sim_ram_write.v", "    reg [7:0]  beat;\n", "    reg [7:0]  beat;\n    reg [31:0] bursts = 32'd0;\n"),
    ("tb/mlo_sim_ram_write.v", "(take && word < DEPTH) ?", "(take && word < DEPTH && bursts + 32'd1 != fault) ?"),
    ("tb/mlo_sim_ram_write.v", "open <= open + 5'd1;\n            end", "open <= open + 5'd1;\n                bursts <= bursts + 32'd1;\n            end"))


def erring(path):
    """A core beside memories whose errors cost data."""
    path = hardware.copy(path, "erring")
    for file, old, new in MEMORY_ERRS:
        text = t.read(os.path.join(path, file)).decode()
        assert text.count(old) == 1, "%s holds %d times: %s" % (file, text.count(old), old)
        with open(os.path.join(path, file), "w") as f: f.write(text.replace(old, new))
    return path


def check_errors():
    """Memory answers reads (of parameters, of keys and values) and writes with errors, at any beat, under any stalls: never a wrong word, never a stop, without the
    status bit; no bit without an error. Lists of jobs as drawn; 40 runs, or with all grids 1,000."""
    path, seed = build(TODAY[0], "--slots", "4", "--kv", "dram", "--frames-in-flight", "4"), datetime.date.today().isoformat()
    errs, words = erring(path), os.path.join(path, "sim/")
    t.call("sim", errs, "--simulator", "verilator", timeout=1400)              # it fails, as of files that are not mlo's; but the bench is compiled
    m, rng = json.loads(t.read(os.path.join(path, "manifest.json"))), random.Random(seed + TODAY[0] + "errors")
    lanes, runs, said, wrong = m["channels"] // m["stream"]["lanes"], 1000 if os.environ.get("MLO_FULL") else 40, {}, []
    for k in range(10):
        list_ = drawn(rng, 4)
        r = run(path, "--jobs", list_)
        judged("without an error: %s" % list_, r)
        counts = {"fault": r.memory["beats"], "kv_fault_r": r.kv_read, "kv_fault_b": sum(job[2] for job in r.jobs) * m["iterations"] * 2}
        base = ["+input=%sinput.hex" % words, "+golden=%sgolden.hex" % words, "+orders=%sjobs.hex" % words, "+jobs=%d" % len(r.jobs), "+beats=%d" % (lanes * sum(job[2] for job in r.jobs)),
                "+frames_in_flight=4", "+iterations=%d" % m["iterations"], "+timeout=200000"]
        for _ in range(runs // 10):
            which = rng.choice([["fault"], ["kv_fault_r"], ["kv_fault_b"], ["kv_fault_r", "kv_fault_b"], []])
            how = {w: rng.randint(1, max(1, counts[w] * 11 // 10)) for w in which}
            how.update(seed=rng.randrange(1, 1 << 30), latency=rng.choice([1, 7, 64, 300]), **{"stall_" + who: rng.choice([0, 5, 30, 60]) for who in ("source", "sink", "memory", "host")})
            p = subprocess.run([hardware.program(errs), *base, *("+%s=%d" % kv for kv in how.items())], cwd=errs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            verdict = ([line for line in p.stdout.splitlines() if line.startswith(("MLO PASS", "MLO FAIL"))] or [p.stdout[-300:]])[0]
            kind = "passed" if verdict.startswith("MLO PASS") else "bit" if verdict.startswith("MLO FAIL bus error") else "wrong"
            late = not any(how[w] <= counts[w] for w in which)                # no answer has this number (parameters read ahead may come to it)
            if kind == "wrong" or kind == "bit" and not which or kind == "passed" and not late: wrong.append("%s with %s: %s" % (list_, how, verdict))
            said[kind] = said.get(kind, 0) + 1
    t.note("drawn from %s: %s" % (seed, said))
    t.case("%d runs with errors of memory: no wrong word without the status bit" % runs, "; ".join(wrong[:2]) or ("" if min(said.get("passed", 0), said.get("bit", 0)) >= runs // 8 else "too few of a kind: %s" % said))


def check_canaries():
    """Rows of values that lie a place farther on: attention gets the right words, for it looks for them there, too. The canaries say it."""
    path, said = hardware.copy(build(MODELS[0], "--slots", "2", "--kv", "dram"), "spoilt"), []
    for old, new in (("", ""), ("origin + HALF_A;", "origin + HALF_A + ROW_A;")):
        with open(os.path.join(path, "rtl/mlo_kv.v")) as f: text = f.read()
        with open(os.path.join(path, "rtl/mlo_kv.v"), "w") as f: f.write(text.replace(old, new) if old else text)
        p = subprocess.run(["make", "-C", path, "sim"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said.append(next((line for line in p.stdout.splitlines() if line.startswith(("MLO PASS", "MLO FAIL"))), p.stdout[-300:]))
    t.case("the core as it is", "" if said[0].startswith("MLO PASS") else said[0])
    t.case("a skipped canary is seen", "" if said[1].startswith("MLO FAIL keys and values") else said[1])


def check_past():
    """--kv dram where nothing hides how long the past takes (parameters are resident): a step far behind, within 1 %."""
    if not t.drawn(["a long past"], 2): return
    path = hardware.build(t.model("stories260k-step"), "--context", "128", "--kv", "dram", "--memory", "resident", at="past")
    one, more = (run(path, "--jobs", jobs) for jobs in ("0+100", "0+100,100+1,101+1,102+1"))
    judged("a long past: the words", more)
    step, foretold = more.cycles - one.cycles, more.predicted_cycles - one.predicted_cycles
    t.case("a long past: a step", "" if abs(step - foretold) <= 0.01 * step else "%d cycles for three, %d predicted" % (step, foretold))


def check_refused():
    gpt2, tiny = model(MODELS[0]), build(MODELS[0])
    encoder = t.model("bert-tiny")
    cases = [
        ("compile", [gpt2, "--context", "16", "--unrolled", "-o", t.at("no")], 4, "leave --unrolled out"),
        ("compile", [t.model("gpt2-tiny"), "--slots", "2", "-o", t.at("no")], 2, "give --context, too"),
        ("compile", [encoder, "--context", "32", "-o", t.at("no")], 4, "causal"),
        ("fold", [gpt2, "--context", "16", "--sequences", "4", "-o", t.at("no.json")], 2, "give --frames-in-flight, too"),
        ("sim", [tiny, "--jobs", "0+17"], 2, "does not lie within the context of 16 tokens"),
        ("sim", [tiny, "--jobs", "0+4,5+1"], 2, "begins beyond the 4 tokens that slot 0 holds"),
        ("sim", [tiny, "--jobs", "1:0+4"], 2, "slot 1; the core has 1"),
        ("sim", [tiny, "--jobs", "0-4"], 2, "START+TOKENS"),
        ("sim", [tiny, "--jobs", "0+0"], 2, "does not lie within"),
        ("sim", [tiny, "--jobs", "0+4", "--frame-tokens", "3"], 4, "give --jobs"),
        ("sim", [tiny, "--probe"], 4, "give --jobs"),
        ("sim", [tiny, "--prompt", "1,2", "--generate", "15"], 2, "do not fit the model's 16"),
        ("sim", [tiny, "--prompt", "1,99", "--generate", "2"], 2, "the model knows 0 to 39"),
        ("sim", [tiny, "--prompt", "1"], 2, "give that, too"),
        ("run", [t.model("stories260k-step"), "--context", "8", "--prompt", "1"], 2, "give that, too"),
        ("sim", [tiny, "--prompt", "1", "--generate", "2", "--jobs", "0+3"], 2, "leave --jobs out"),
        ("sim", [hardware.build("gpt2-tiny"), "--jobs", "0+3"], 2, "compile --context N makes one"),
        ("generate", [tiny, "--prompt", "x", "--tokenizer", gpt2], 3, "is no tokenizer"),
        ("generate", [tiny, "--prompt", "x"], 2, "begins with no token id"),
    ]
    for verb, args, status, words in cases:
        p = t.call(verb, *args)
        line = p.stderr.decode().strip().splitlines()[-1:] or [""]
        t.case("refused: %s %s" % (verb, " ".join(map(os.path.basename, args[1:]))), "" if p.returncode == status and words in line[0] else "status %d: %s" % (p.returncode, line[0]))


def check_registers():
    """A host's mistakes: the core refuses, says so in its status register, and waits for nothing."""
    path = hardware.clone(build(MODELS[0]), "registers")
    for what, orders, words in (("beyond what the slot holds", "000000030004\n", "one was refused"), ("beyond the context", "000000000011\n", "one was refused"),
                                ("a slot that is not there", "010000000004\n", "one was refused"), ("fewer tokens than come", "000000000004\n", "had not the tokens")):
        with open(os.path.join(path, "sim/bad.hex"), "w") as f: f.write(orders)
        p = subprocess.run(["make", "-C", path, "sim", "ARGS=+orders=sim/bad.hex +jobs=1 +timeout=3000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        t.case("a job %s" % what, "" if p.returncode and re.search("MLO FAIL .*" + words, p.stdout) else p.stdout[-300:] or "it says nothing")


if __name__ == "__main__": t.main(check_models, check_slots, check_groups, check_drawn, check_text, check_story, check_dram, check_errors, check_canaries, check_past, check_refused, check_registers, floor=194)
