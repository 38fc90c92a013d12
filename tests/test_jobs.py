# SPDX-License-Identifier: MIT
"""test_jobs: cores that keep keys and values (compile --context): parts of sequences come as jobs, one token or many, in any slot, and give in Verilog
what ONNX Runtime makes of host/core.onnx for the whole sequence.

Judges: hardware.parted (ONNX Runtime at what each slot holds, behind it anything); `mlo run --generate` of the folded model, another way to the text;
stories260k.json, the text that the trained model says."""
import json
import os
import re
import subprocess
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
    t.case("the story that the floats tell", "" if len(told) > 100 and said["text"].startswith(told) else told)
    r = run(path, "--prompt", ",".join(map(str, said["greedy"][:5])), "--generate", "12")
    judged("its first words, in Verilog", r)
    t.case("a step reads each weight once", "" if r.cycles <= 1.03 * r.memory["beats_per_iteration"] * 5 * r.frames else "%s cycles in %d jobs" % (r.cycles, r.frames))
    alone = json.loads(t.good("run", t.model("stories260k-step"), "--context", "24", "--generate", "16"))["sequences"]
    t.case("without a prompt, a story from its beginning", "" if alone == [{"tokens": said["greedy"][:17]}] else str(alone))
    t.case("the ids of the floats' story", "" if r.sequences and r.sequences[0]["tokens"] == said["greedy"][:17] else str(r.sequences))
    shown = json.loads(t.good("show", os.path.join(path, "host/core.onnx"), "--json", "--position", "40"))
    t.case("show says how fast a token is", "" if shown["step"]["position"] == 40 and shown["step"]["cycles"] >= shown["step"]["first"] > 18000 else str(shown.get("step")))


def check_refused():
    gpt2, tiny = model(MODELS[0]), build(MODELS[0])
    encoder = t.model("bert-tiny")
    cases = [
        ("compile", [gpt2, "--context", "16", "--frames-in-flight", "2", "-o", t.at("no")], 4, "in which one job is at a time"),
        ("compile", [gpt2, "--context", "16", "--unrolled", "-o", t.at("no")], 4, "leave --unrolled out"),
        ("compile", [t.model("gpt2-tiny"), "--slots", "2", "-o", t.at("no")], 2, "give --context, too"),
        ("compile", [encoder, "--context", "32", "-o", t.at("no")], 4, "causal"),
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
        ("generate", [tiny, "--prompt", "x"], 2, "--tokenizer FILE is needed"),
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
        t.case("a job %s" % what, "" if p.returncode and re.search("MLO FAIL .*" + words, p.stdout) else p.stdout[-300:])


if __name__ == "__main__": t.main(check_models, check_slots, check_text, check_story, check_refused, check_registers, floor=49)
