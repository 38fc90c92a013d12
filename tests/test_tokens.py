#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--tokens: a decoder from token ids to logits in integers: a row for each id in front of the loop, norm and head behind it; an encoder from ids to hidden states, or to what it makes of a text's first token.

    python tests/test_tokens.py path/to/mlo [CHECK ...]

    text     greedy text of the trained Llama is that of the floats for 64 tokens, at two contexts; W4 says some of it
    judged   ONNX Runtime on the quantized model gives the logits of `mlo run`, to the bit, of every export that has them; no float between ids and logits
    near     logits are as near to the floats' as those of a model whose head stayed in floats, within a quarter more
    rows     the table is what the plain model's Quantize makes of each id, as numpy rounds
    places   learned positions are a table, too: numpy's roundings and sum are what enters the loop, clipped; texts, chunks and stalls in Verilog
    hardware a core of ids in and ids out: its words in Verilog, in parts; texts that go on inside until a stop id or the context's end; stalls, and a memory that fails
    cycles   lists of jobs and texts that go on inside, drawn by the date, take what was foretold, within 1 %; a step what show says
    encoder  BERT, DistilBERT, one with types of tokens: rows, positions and types are numpy's roundings, what enters the loop their norm; ONNX Runtime on host/core.onnx gives the bench's words
    inside   their words in Verilog, with stalls and with the mask; cycles as foretold; frames that are cut are refused; another row is another word
    pooled   BERT's pooler and the heads of four classifiers are integers, too: ONNX Runtime on the quantized model gives what `mlo run` does, on host/core.onnx the bench's words, near the
             floats; nothing but forms (and a softmax) is left to the host; what is nearly such a head stays the host's, and a line says why
    poured   their words in Verilog, with stalls, frame by frame; cycles as foretold, of a far memory too; the emitted cocotb bench; another weight of the head is another word
    best     the K likeliest with their logits: ONNX Runtime's TopK, words in Verilog, texts that go on with the first of them; --best where no ids are said is refused
    refused  what has no such form is refused, by node and with a remedy"""
import datetime
import json
import os
import random
import shutil
import sys
import numpy as np
import onnx
import graphs
import hardware
import harness as t
import stories
from onnx import numpy_helper
from test_jobs import drawn

STEP = "stories260k-step"
LEARNED = "gpt2-d18-eager-dims"      # positions are rows, too
NAMES = ["llama-d18-eager-one", "llama-d18-eager-static", "mistral-d18-eager-one-cropped", "qwen3-d18-sdpa-one"]


def quantized(name, context, *more, path=None):
    path = path or t.at("%s.onnx" % name)
    t.good("quantize", t.model(name) if os.path.sep not in name else name, "--context", str(context), "--onnx", "-o", path, *more)
    return path


def context(name): return os.path.join(t.tests, "models", "context", name + ".onnx")


def generated(path, count): return json.loads(t.good("run", path, "--prompt", "1", "--generate", str(count)))["sequences"][0]["tokens"]


def evaluated(path, ids):
    np.savez(t.at("in.npz"), input_ids=ids)
    t.good("run", path, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    return np.load(t.at("out.npz"))["logits"]


def alike(text): return next((k for k in range(64) if text[k] != stories.greedy()[0][k]), 64)


def check_text():
    for length in 64, 256:
        n = alike(generated(quantized(STEP, length, "--tokens"), 63))
        t.case("context %d: all 64 tokens are those of the floats" % length, "" if n == 64 else str(n))
    n = alike(generated(quantized(STEP, 64, "--tokens", "--weights", "4"), 63))
    t.note("weights of 4 bits: %d of 64 tokens are those of the floats" % n)
    t.case("weights of 4 bits: the text begins like the floats'", "" if n >= 8 else str(n))


def floats(m):
    """What is not integers between ids and logits, but for a Dequantize at the end."""
    kept = [n for n in m.graph.node if n.op_type != "Scan"]
    inits = {i.name: i for i in m.graph.initializer}
    return [n.name for n in kept if n.op_type != "Dequantize" and any(k in inits and inits[k].data_type == onnx.TensorProto.FLOAT for k in n.input) and n.output[0] not in
            [k for s in graphs.scans(m) for k in s.input] and not n.name.startswith("loop.")]


def check_judged():
    for name in NAMES:
        path = quantized(context(name), 16, "--tokens", path=t.at("x.onnx"))
        m = onnx.load(path)
        ids = np.random.default_rng(3).integers(0, m.graph.output[0].type.tensor_type.shape.dim[2].dim_value or 8, (1, 16))
        want, following = graphs.session(path).run(None, {"input_ids": ids})
        ours = evaluated(path, ids)
        t.case("%s: ONNX Runtime's logits" % name, "" if np.array_equal(want, ours) else "%g apart" % abs(want - ours).max())
        chosen = np.load(t.at("out.npz"))["mlo_next"]
        t.case("%s: what follows is ONNX Runtime's, the largest logit, the lowest of those" % name,
               "" if np.array_equal(following, chosen) and np.array_equal(chosen[..., 0], ours.argmax(-1)) else "differs")
        t.case("%s: no floats in between" % name, ", ".join(floats(m)))
        ends = [n.op_type for n in m.graph.node if n.op_type in ("LayerNorm", "MVU", "Dequantize", "Gather", "ArgMax")]
        t.case("%s: a Gather in front, norm and head behind" % name, "" if ends == ["Gather", "LayerNorm", "MVU", "Dequantize", "ArgMax"] else str(ends))


def check_near():
    rows = stories.windows(4)
    want = stories.floats(rows)
    def off(path): return float(np.sqrt(np.mean((np.concatenate([evaluated(path, r[None]) for r in rows]) - want) ** 2)))
    plain, whole = off(quantized(STEP, 64)), off(quantized(STEP, 64, "--tokens", path=t.at("whole.onnx")))
    t.note("rms of logits: %.4f with the head in floats, %.4f in integers" % (plain, whole))
    t.case("an integer head is hardly farther", "" if whole < 1.25 * plain else "%g, %g" % (whole, plain))


def check_rows():
    m, plain = onnx.load(quantized(STEP, 64, "--tokens")), onnx.load(quantized(STEP, 64, path=t.at("plain.onnx")))
    rows = numpy_helper.to_array(next(i for i in m.graph.initializer if i.name == "mlo_rows"))
    values = {i.name: numpy_helper.to_array(i) for i in plain.graph.initializer}
    edge = next(n for n in plain.graph.node if n.op_type == "Quantize")
    table = next(n for n in plain.graph.node if n.op_type == "Gather")
    want = np.clip(np.rint(values[table.input[0]].astype(np.float32) / values[edge.input[1]]), -32768, 32767)
    t.case("a row for each id", "" if rows.dtype == np.int16 and rows.shape == want.shape else "%s %s" % (rows.dtype, rows.shape))
    t.case("rows are what Quantize makes of the embedding", "" if np.array_equal(rows, want) else "%d differ" % (rows != want).sum())
    few = onnx.load(t.model("bert-tiny"))
    table = next(i for i in few.graph.initializer if 1000 in i.dims)
    table.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(table)[:2].copy(), table.name))
    t.good("quantize", t.write("few.onnx", few.SerializeToString()), "--tokens", "--onnx", "-o", t.at("few-q.onnx"))
    rows = next(numpy_helper.to_array(i) for i in onnx.load(t.at("few-q.onnx")).graph.initializer if i.name == "mlo_rows")
    t.case("two words are a vocabulary", "" if rows.shape == (2, 64) else str(rows.shape))


def check_places():
    """GPT-2, and OPT, whose table has two rows more in front: what enters the loop is the sum of two rows, of ids and of positions."""
    for name in LEARNED, "gpt2-d18-eager-stacked", "opt-d18-eager-dims":
        path = quantized(context(name), 16, "--tokens", path=t.at("x.onnx"))
        plain = onnx.load(quantized(context(name), 16, path=t.at("plain.onnx")))
        m, shallow = onnx.load(path), {i.name: numpy_helper.to_array(i) for i in plain.graph.initializer}
        edge, table = (next(n for n in plain.graph.node if n.op_type == k) for k in ("Quantize", "Gather"))
        add = next(n for n in plain.graph.node if n.output[0] == edge.input[0])
        place = next(k for k in add.input if k in shallow)
        def steps(x): return np.clip(np.rint(x.astype(np.float32) / shallow[edge.input[1]]), -32768, 32767)
        held = {i.name: numpy_helper.to_array(i) for i in m.graph.initializer}
        t.case("%s: rows of ids and of positions are rounded as numpy rounds" % name, "" if np.array_equal(held["mlo_rows"], steps(shallow[table.input[0]]))
               and np.array_equal(held["mlo_places"], steps(shallow[place])) else "they differ")
        ids = np.random.default_rng(5).integers(0, 40, (1, 16))
        enters = next(n for n in m.graph.node if n.op_type == "Scan").input[0]
        m.graph.output.append(onnx.helper.make_tensor_value_info(enters, onnx.TensorProto.INT16, None))
        onnx.save(m, t.at("seen.onnx"))
        logits, following, x = graphs.session(t.at("seen.onnx")).run(None, {"input_ids": ids})
        want = np.clip(held["mlo_rows"][ids].astype(int) + held["mlo_places"], -32768, 32767)
        t.case("%s: their sum enters the loop" % name, "" if np.array_equal(x, want) else "%d words differ" % (x != want).sum())
        exact = steps(shallow[table.input[0]][ids] + shallow[place])
        t.case("%s: which is the sum's rounding, or one step off" % name, "" if abs(x - exact).max() <= 1 else "%d off" % abs(x - exact).max())
        ours = evaluated(path, ids)
        t.case("%s: ONNX Runtime's logits, and what follows" % name, "" if np.array_equal(logits, ours) and np.array_equal(following, np.load(t.at("out.npz"))["mlo_next"]) else "differ")
        t.case("%s: no floats in between" % name, ", ".join(floats(m)))
    path = t.at("placed")
    t.good("compile", context(LEARNED), "--tokens", "--context", "16", "--slots", "2", "-o", path)
    around, size = json.loads(t.read(os.path.join(path, "manifest.json")))["around"], os.path.getsize(os.path.join(path, "params.bin"))
    rows, places = around["rows"], around["positions"]
    t.case("rows of positions lie behind those of ids", "" if rows["offset"] + rows["bytes"] == places["offset"] and places["offset"] + places["bytes"] == size else str(around))
    core = graphs.session(os.path.join(path, "host", "core.onnx"))
    run = simulated(path, "--generate", "5", "--prompt", "1,2,7;3", "--stall", "25", "--seed", "5")
    for k, text in enumerate(r["tokens"] for r in run.get("sequences", [])):
        begin, frame = (3, 1)[k], np.zeros((1, 16), np.int32)
        frame[0, :len(text)] = text
        following = core.run(["mlo_next"], {"mlo_ids": frame})[0][0]
        t.case("text %d, with stalls: each id is what ONNX Runtime says behind those before it" % k, "" if list(following[begin - 1:len(text) - 1, 0]) == text[begin:] and len(text) == begin + 5
               else "%s, not %s" % (text[begin:], list(following[begin - 1:len(text) - 1, 0])))
    chunks = simulated(path, "--jobs", "0+3,3+1,1:0+2,4+2", "--stall", "10")
    for what, r in (("texts", run), ("prompts in parts, of two sequences", chunks)): t.case("%s: Verilog's words" % what, "" if r["pass"] else r["failure"])
    image = bytearray(t.read(os.path.join(path, "params.bin")))
    image[places["offset"] + places["bytes"] // 16 * 2 + 1] ^= 0x60
    with open(os.path.join(path, "params.bin"), "wb") as f: f.write(image)
    wrong = simulated(path, "--jobs", "0+3")
    t.case("another row of the third position is another word", "" if not wrong["pass"] and "wrong word" in wrong["failure"] else "it passes")


def refused(what, code, words, *args):
    p = t.call(*args)
    error = json.loads(p.stdout)["error"] if p.returncode else {"code": "none: it went through", "message": "", "node": ""}
    text = error["node"] + ": " + error["message"]
    t.case(what, "" if error["code"] == "MLO_E_" + code and all(w in text for w in words) else "%s: %s" % (error["code"], text))


def check_masks():
    """A mask beside the ids, as default exports have one, is ones: what --hold makes of it, said in a line. So it is where keys are in memory."""
    np.savez(t.at("ones.npz"), attention_mask=np.ones((1, 16), np.int64))
    for name in "gpt2-ts17-sdpa-mask", "llama-d18-sdpa-dims-mask", "gemma3-d18-eager-dims-mask":
        asked = context(name), "--context", "16", "--tokens", "--onnx", "-o"
        p = t.call("quantize", *asked, t.at("ones.onnx"), text=True)
        t.case("%s: the mask is said to be ones" % name, "" if p.returncode == 0 and "'attention_mask' is ones" in p.stderr else "%d %s" % (p.returncode, p.stderr[-300:]))
        p = t.call("quantize", *asked, t.at("held.onnx"), "--hold", t.at("ones.npz"), text=True)
        t.case("%s: the same as with ones that are held" % name, "" if p.returncode == 0 and "is ones" not in p.stderr and t.read(t.at("ones.onnx")) == t.read(t.at("held.onnx")) else "%d %s" % (p.returncode, p.stderr[-300:]))
    p = t.call("compile", context("llama-ts17-sdpa-mask"), "--context", "16", "--kv", "dram", "-o", t.at("dram"), text=True)
    t.case("ones with a cache in memory", "" if p.returncode == 0 and "'attention_mask' is ones" in p.stderr else "%d %s" % (p.returncode, p.stderr[-300:]))
    p = t.call("compile", context("llama-ts17-sdpa-mask"), "--context", "16", "-o", t.at("chip"), text=True)
    t.case("a mask on chip stays an input", "" if p.returncode == 0 and "is ones" not in p.stderr and json.loads(t.read(t.at("chip/manifest.json")))["stream"]["masked"] else "%d %s" % (p.returncode, p.stderr[-300:]))


def check_refused():
    path = t.at("masked.onnx")
    t.good("read", context("llama-d18-sdpa-dims-mask"), "--context", "16", "-o", path)
    refused("a mask that read did not know to be ones", "UNSUPPORTED", ["attention_mask", "--hold"], "quantize", path, "--tokens")
    family = lambda name: os.path.join(t.tests, "models", "families", name + ".onnx")
    for what, name in (("positions that depend on the ids", "roberta-d18-sdpa-mask-a"), ("no norm in front of an encoder", "torch-batch-post-relu-d18-none-a")):
        refused(what, "UNSUPPORTED", ["--tokens", "in front of"], "quantize", family(name), "--tokens")
    refused("an encoder whose embedding is widened", "UNSUPPORTED", ["--tokens", "more than a norm"], "compile", family("albert-d18-sdpa-mask-a"), "--tokens", "-o", t.at("refused"))
    refused("a model without a head", "UNSUPPORTED", ["as many numbers a token"], "quantize", t.model("llama-tiny-opset23"), "--context", "16", "--tokens")
    q = t.write("q.json", json.dumps({"by": "type", "default": {"config": {"name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 6,
                                                                        "bias_width": 8, "bias_frac_width": 6}}}))
    refused("a q_config, which is about the loop", "USAGE", ["q_config"], "quantize", t.model(stories.PROMPT), "--q-config", q, "--tokens")
    path = t.at("refused")
    refused("hardware without caches", "UNSUPPORTED", ["--context"], "compile", t.model(stories.PROMPT), "--tokens", "-o", path)
    refused("one copy a layer", "UNSUPPORTED", ["--unrolled"], "compile", context("llama-d18-eager-one"), "--context", "16", "--tokens", "--unrolled", "-o", path)
    refused("several frames in flight", "UNSUPPORTED", ["one frame in flight"], "compile", context("llama-d18-eager-one"), "--context", "16", "--tokens", "--slots", "2", "--frames-in-flight", "2", "-o", path)
    device = "--context", "16", "--device", "lut=22000,ff=200000,dsp=400,bram=100"
    t.good("fold", context("llama-d18-eager-one"), *device, "-o", t.at("fits.json"))
    refused("a device that the loop alone fits", "FOLDING", ["too small", "LUTs"], "fold", context("llama-d18-eager-one"), *device, "--tokens", "-o", t.at("fits.json"))
    refused("rows that are no whole beats", "UNSUPPORTED", ["beats of memory"], "compile", context("llama-d18-eager-one"), "--context", "16", "--tokens", "--axi-width", "1024", "-o", path)


def simulated(path, *more):
    p = t.call("sim", path, *more)
    return json.loads(p.stdout)


def check_folded():
    """The head multiplies as fast as its rows come from memory, whatever the bus, and no twice as fast."""
    for axi in 64, 128, 256:
        t.good("compile", context("llama-d18-eager-one"), "--tokens", "--context", "16", "--axi-width", axi, "-o", t.at("folded"))
        m = json.loads(t.read(os.path.join(t.at("folded"), "manifest.json")))
        matrix = [k for k in m["around"]["kernels"] if "mvu" in k["name"]]
        macs, beats = m["around"]["ids"] * m["channels"], m["around"]["head"]["bytes"] * 8 // axi
        t.case("the head's multipliers, a bus of %d bits" % axi, "" if len(matrix) == 1 and macs <= matrix[0]["pe"] * matrix[0]["simd"] * beats < 2 * macs else "%s for %d products in %d beats" % (matrix, macs, beats))


def words(path, n):
    """What tb/golden.hex expects of each job: the id, its logit."""
    with open(os.path.join(path, "tb", "golden.hex")) as f: lines = [int(w, 16) for w in f.read().split()]
    return [(w & 0xffffffff, (w >> 32 & 0xffffffff) - (w >> 63 << 32 & 1 << 32)) for w in lines[:n]]


def check_hardware():
    """Ids in, ids out: every id and the logit of every winner, in Verilog, against host/core.onnx; the judge of that is ONNX Runtime."""
    path, name = t.at("core"), context("llama-d18-eager-one")
    t.good("compile", name, "--tokens", "--context", "16", "--slots", "2", "-o", path)
    manifest = json.loads(t.read(os.path.join(path, "manifest.json")))
    core = graphs.session(os.path.join(path, "host", "core.onnx"))
    with open(os.path.join(path, "tb", "input.hex")) as f: ids = [int(w, 16) & 0xffffffff for w in f.read().split()]
    jobs = manifest["jobs"]
    frame = np.zeros((1, 16), np.int32)
    frame[0, :len(ids)] = ids
    following = core.run(["mlo_next"], {"mlo_ids": frame})[0][0]
    want = [tuple(following[j["start"] + j["tokens"] - 1]) for j in jobs]
    t.case("the bench expects ONNX Runtime's ids and logits", "" if words(path, len(jobs)) == want else "%s, not %s" % (words(path, len(jobs)), want))
    around, size = manifest["around"], os.path.getsize(os.path.join(path, "params.bin"))
    shown = json.loads(t.good("show", os.path.join(path, "host", "core.onnx"), "--json"))
    parts = [shown[k] for k in ("area_around", "area_streams", "area_shell")] + [k["area"] for k in shown["kernels"]]
    t.case("areas add up, those around the loop among them", "" if all(sum(p[k] for p in parts) == shown["area"][k] for k in shown["area"]) and parts[0]["dsp"] > 0 else str(shown["area"]))
    t.case("head and rows lie behind the loop's parameters", "" if around["head"]["offset"] + around["head"]["bytes"] == around["rows"]["offset"]
           and around["rows"]["offset"] + around["rows"]["bytes"] == size else str(around))
    plain = simulated(path)
    t.case("job by job", "" if plain["pass"] else plain["failure"])
    fast = ("--simulator", "verilator") if shutil.which("verilator") else ()                 # which compiles once for four runs
    run = simulated(path, *fast, "--generate", "6", "--prompt", "1,2,7;3", "--stall", "25", "--seed", "5")
    alone = json.loads(t.good("run", name, "--context", "16", "--generate", "6", "--prompt", "1,2,7;3"))["sequences"]
    t.case("two texts that go on inside, with stalls", "" if run["pass"] else run["failure"])
    stop = run["sequences"][0]["tokens"][5]
    ended = simulated(path, *fast, "--generate", "9", "--prompt", "1,2,7", "--stop", str(stop))
    text = ended["sequences"][0]["tokens"]
    t.case("a stop id ends one", ended["failure"] if not ended["pass"] else "" if text[-1] == stop and stop not in text[3:-1] and ended["words"] == 2 * (len(text) - 3) else str(text))
    full = simulated(path, *fast, "--generate", "13", "--prompt", "1,2,7", "--stall", "5")
    t.case("the context's end ends one", "" if full["pass"] else full["failure"])
    t.note("of 16 ids, prompts among them, %d are those of the floats" % sum(a == b for x, y in zip(run["sequences"], alone) for a, b in zip(x["tokens"], y["tokens"])))
    chunks = simulated(path, *fast, "--jobs", "0+3,3+1,1:0+2,4+2", "--stall", "10")
    t.case("prompts in parts", "" if chunks["pass"] else chunks["failure"])
    for what, r in (("texts", run), ("a stop id", ended), ("a full context", full), ("parts", chunks)):
        beats = r["memory"]["delivered"], r["memory"]["predicted_delivered"]
        t.case("%s: as many beats of parameters as foretold" % what, "" if beats[0] == beats[1] else "%d, not %d" % beats)
    if hardware.has_cocotb("cocotb"): t.case("the emitted cocotb bench passes", hardware.cocotb(path)[-300:])
    late = simulated(path, "--axi-error", str(around["rows"]["offset"] * 8 // manifest["axi_bits"] + 3))
    t.case("a memory that fails is said to", "" if not late["pass"] and "bus error" in late["failure"] else str(late["pass"]))
    image = bytearray(open(os.path.join(path, "params.bin"), "rb").read())
    at = around["rows"]["offset"] + ids[0] * around["rows"]["bytes"] // around["ids"]
    image[at + 1] ^= 0x60
    with open(os.path.join(path, "params.bin"), "wb") as f: f.write(image)
    wrong = simulated(path)
    t.case("another row of the first id is another word", "" if not wrong["pass"] and "wrong word" in wrong["failure"] else "it passes")


ENCODERS = (("bert-d18-sdpa-mask-a", ()), ("distilbert-d18-sdpa-mask-a", ("--axi-width", "32")), ("bert-classes-ts17-sdpa-mask-b", ("--axi-width", "64")), ("bert-d18-eager-none-a", ("--pe", "4", "--simd", "4")))


def encoder(name, *flags):
    """A build directory of ids in, hidden states out; its manifest."""
    path = t.at("encoder-" + name)
    t.good("compile", os.path.join(t.tests, "models", "families", name + ".onnx"), "--tokens", *flags, "-o", path)
    return path, json.loads(t.read(os.path.join(path, "manifest.json")))


def hexes(path, file, bits, lanes):
    """The numbers of tb/FILE."""
    out = []
    with open(os.path.join(path, "tb", file)) as f:
        for line in f:
            word = int(line.strip()[1:], 16)
            out += [(word >> bits * k & (1 << bits) - 1) for k in range(lanes)]
    return np.array(out)


def golden(path, manifest):
    """What the bench expects."""
    made = manifest["around"].get("tail", manifest["stream"])
    return hexes(path, "golden.hex", 16, made["lanes"]).astype(np.uint16).view(np.int16)


def check_encoder():
    for name, flags in ENCODERS:
        source = onnx.load(os.path.join(t.tests, "models", "families", name + ".onnx"))
        path, plain = t.at("x.onnx"), t.at("plain.onnx")
        for to, more in (path, ("--tokens",)), (plain, ()): t.good("quantize", os.path.join(t.tests, "models", "families", name + ".onnx"), *more, "--onnx", "-o", to)
        m = onnx.load(path)
        shallow = {i.name: numpy_helper.to_array(i) for i in onnx.load(plain).graph.initializer}
        edge = next(n for n in onnx.load(plain).graph.node if n.op_type == "Quantize")
        norm = next(n for n in m.graph.node if n.op_type == "LayerNorm")
        scan = next(n for n in m.graph.node if n.op_type == "Scan")
        t.case("%s: what enters the loop is the norm's" % name, "" if norm.output[0] == scan.input[0] else "it is %s" % scan.input[0])
        step = float(next(p.value for p in norm.metadata_props if p.key == "mlo.scale"))
        t.case("%s: in the loop's own steps" % name, "" if abs(step / float(shallow[edge.input[1]]) - 1) < 1e-5 else "%g, not %g" % (step, shallow[edge.input[1]]))
        feeds = graphs.feeds(source, 7, (0, 40))
        if "token_type_ids" in feeds: feeds["token_type_ids"] %= 2
        x, y = m.graph.output.add(), onnx.load(plain)
        x.CopyFrom(onnx.helper.make_tensor_value_info(norm.input[0], onnx.TensorProto.INT16, None))
        m.graph.output.append(onnx.helper.make_tensor_value_info(norm.output[0], onnx.TensorProto.INT16, None))
        summed, entered = graphs.session(m.SerializeToString()).run([norm.input[0], norm.output[0]], feeds)
        y.graph.output.append(onnx.helper.make_tensor_value_info(edge.output[0], onnx.TensorProto.INT16, None))
        floats = next(n.input[0] for n in y.graph.node if n.output[0] == edge.input[0])
        y.graph.output.append(onnx.helper.make_tensor_value_info(floats, onnx.TensorProto.FLOAT, None))
        exact, whole = graphs.session(y.SerializeToString()).run([edge.output[0], floats], feeds)
        scale = np.abs(whole).max() / np.abs(summed).max()
        off = np.abs(summed - whole / scale).max()
        t.case("%s: rows of ids, positions and types add up to the floats' sum" % name, "" if off <= 6 else "%g steps off" % off)
        far = np.abs(entered.astype(int) - exact).max() / np.abs(exact).max()
        t.case("%s: what enters the loop is near what the floats make" % name, "" if far < 2e-3 else "%g off" % far)
        t.case("%s: no floats in between" % name, ", ".join(floats_between(m)))
        build, manifest = encoder(name, *flags)
        core, stream = graphs.session(os.path.join(build, "host", "core.onnx")), manifest["stream"]
        given = {"mlo_ids": hexes(build, "input.hex", 32, 1).astype(np.int32)[None]}
        if stream["masked"]: given["mlo_mask"] = hexes(build, "mask.hex", 8, 1).astype(bool)[None]
        want = core.run([manifest["output"]["name"]], given)[0]
        words = golden(build, manifest)
        t.case("%s: the bench expects ONNX Runtime's words" % name, "" if np.array_equal(want.ravel(), words) else "%d differ" % (want.ravel() != words).sum())
        ids, mask = given["mlo_ids"], given.get("mlo_mask")
        t.case("%s: ids from the whole table" % name, "" if len(np.unique(ids & 0xFFFFFF)) > 3 else "they are %s" % np.unique(ids & 0xFFFFFF))
        # what compile said of the floats, by ONNX Runtime, of the bench's own ids
        takes = {i.name: i.type.tensor_type.elem_type for i in source.graph.input}
        feeds = {n: {"attention_mask": mask, "token_type_ids": ids >> 24}.get(n, ids & 0xFFFFFF).astype(onnx.helper.tensor_dtype_to_np_dtype(takes[n])) for n in takes}
        post = graphs.session(os.path.join(build, "host", "post.onnx"))
        made = dict(zip([o.name for o in post.get_outputs()], post.run(None, {i.name: want for i in post.get_inputs()})))
        exact = dict(zip([o.name for o in source.graph.output], graphs.session(source.SerializeToString()).run(None, feeds)))
        said = {e["output"]: e["cosine"] for e in json.loads(t.read(os.path.join(build, "accuracy.json")))["error"]}
        off = max((abs(nears(made[n].ravel(), exact[n].ravel()) - said.get(n, 2)) for n in made), default=9)
        t.case("%s: as near the floats as compile says" % name, "" if off < 1e-4 else "%g off" % off)


def floats_between(m):
    """Kernels in front of the loop, and what they read, that are floats."""
    inits = {i.name: i.data_type for i in m.graph.initializer}
    front = [n for n in m.graph.node if "mlo.front" in graphs.meta(n) or n.op_type == "LayerNorm"]
    return [k for n in front for k in n.input if inits.get(k) == onnx.TensorProto.FLOAT]


# a model, flags; the host's operators
POOLED = (("bert-pooler-d18-sdpa-mask-a", ("--axi-width", "64"), ()), ("distilbert-classes-d18-sdpa-none-a", ("--axi-width", "32", "--pe", "2", "--simd", "4"), ()),
          ("electra-classes-d20-eager-mask-d", ("--frames-in-flight", "2"), ()), ("roberta-head-ts17-sdpa-mask-a", ("--axi-width", "64"), ()),
          ("likely-d18-sdpa-mask-a", ("--memory", "block"), ("Softmax",)), ("normed-d18-sdpa-mask-d", ("--pe", "4", "--simd", "4"), ()))
# what is nearly one: the node, why
NEARLY = (("last-d18-sdpa-mask-a", "Gather", "first token alone"), ("two-d18-sdpa-mask-a", "Slice", "first token alone"), ("mixed-d18-sdpa-mask-a", "ReduceMean", "first token alone"),
          ("twice-d18-sdpa-mask-a", "Add", "two values of a token"))


def pooled(name, *flags):
    path = t.at("pooled-" + name)
    t.good("compile", os.path.join(t.tests, "models", "pooled", name + ".onnx"), "--tokens", *flags, "-o", path)
    return path, json.loads(t.read(os.path.join(path, "manifest.json")))


def nears(a, b): return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def check_pooled():
    for name, flags, left in POOLED:
        source, path = os.path.join(t.tests, "models", "pooled", name + ".onnx"), t.at("x.onnx")
        for to, more in (path, ("--tokens",)), (t.at("plain.onnx"), ()): t.good("quantize", source, *more, "--onnx", "-o", to)
        ours, floats, shallow, seen = graphs.session(path), graphs.session(source), graphs.session(t.at("plain.onnx")), []
        for seed in range(8):
            feeds = graphs.feeds(onnx.load(source), seed, (3, 60))
            np.savez(t.at("in.npz"), **feeds)
            t.good("run", path, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
            out = np.load(t.at("out.npz"))
            got, want = ours.run(None, feeds)[0], floats.run(None, feeds)[0]
            here = out[out.files[0]]
            exact = np.array_equal(got, here) if not left else np.abs(got - here).max() < 1e-6           # (the host's softmax is one of floats)
            t.case("%s, input %d: ONNX Runtime's output is mlo run's" % (name, seed), "" if exact and got.shape == want.shape else "%g off" % abs(got - here).max())
            seen.append((got, shallow.run(None, feeds)[0], want))
        got, host, want = (np.concatenate(x) for x in zip(*seen))
        cosine, off = nears(got, want), [float(np.sqrt(np.mean((x - want) ** 2))) for x in (got, host)]
        t.note("%s: cosine %.5f; rms off %.5f, with the head in floats %.5f" % (name, cosine, *off))
        t.case("%s: near the floats, an integer head hardly farther" % name, "" if cosine >= 0.998 and off[0] < 1.25 * off[1] else "cosine %g, %g off, not %g" % (cosine, *off))
        build, manifest = pooled(name, *flags)
        post = [n.op_type for n in onnx.load(os.path.join(build, "host", "post.onnx")).graph.node]
        t.case("%s: forms alone are the host's, behind the scale" % name, "" if set(post) <= {"Dequantize", "Reshape", *left} else str(post))
        given = {"mlo_ids": hexes(build, "input.hex", 32, 1).astype(np.int32).reshape(-1, manifest["tokens"])}
        if manifest["stream"]["masked"]: given["mlo_mask"] = hexes(build, "mask.hex", 8, 1).astype(bool).reshape(-1, manifest["tokens"])
        core = graphs.session(os.path.join(build, "host", "core.onnx"))
        want = np.concatenate([core.run([manifest["output"]["name"]], {k: v[f:f + 1] for k, v in given.items()})[0].ravel() for f in range(manifest["bench_frames"])])
        words, tail = golden(build, manifest), manifest["around"]["tail"]
        t.case("%s: the bench expects ONNX Runtime's words, a vector a frame" % name, "" if np.array_equal(want, words) and len(words) == tail["channels"] * manifest["bench_frames"] else "they differ")
        size = os.path.getsize(os.path.join(build, "params.bin"))
        t.case("%s: its parameters are the last ones" % name, "" if tail["offset"] + tail["bytes"] == size else "%s of %d" % (tail, size))
        shown = json.loads(t.good("show", os.path.join(build, "host", "core.onnx"), "--json"))
        parts = [shown[k] for k in ("area_around", "area_streams", "area_shell")] + [k["area"] for k in shown["kernels"]]
        t.case("%s: areas add up" % name, "" if all(sum(p[k] for p in parts) == shown["area"][k] for k in shown["area"]) else str(shown["area"]))
    for name, op, why in NEARLY:
        source = os.path.join(t.tests, "models", "pooled", name + ".onnx")
        p = t.call("quantize", source, "--tokens", "--onnx", "-o", t.at("x.onnx"))
        lines = [line for line in p.stderr.decode().split("\n") if "last hidden states" in line]
        t.case("%s: a line says what is left to the host, and why" % name, "" if p.returncode == 0 and len(lines) == 1 and "(%s)" % op in lines[0] and why in lines[0] else str(lines))
        kept = [n.op_type for n in onnx.load(t.at("x.onnx")).graph.node]
        t.case("%s: the core makes hidden states" % name, "" if "MVU" not in kept and op in kept else str(kept))
    p = t.call("quantize", t.model("bert-tiny"), "--tokens", "--onnx", "-o", t.at("x.onnx"))
    t.case("a pooler beside the last hidden states is the host's", "" if p.returncode == 0 and b"an output beside the last hidden states" in p.stderr else p.stderr.decode()[-300:])


def check_poured():
    for name, flags, _ in t.drawn(POOLED, 6, lambda core: core[0]):
        path, manifest = pooled(name, *flags)
        plain = simulated(path)
        far = abs(plain["predicted_cycles"] - plain["cycles"]) / max(1, plain["cycles"])
        t.case("%s: Verilog's words" % name, "" if plain["pass"] else plain["failure"])
        t.case("%s: %d cycles, as foretold" % (name, plain["cycles"]), "" if far <= 0.01 else "%d predicted" % plain["predicted_cycles"])
        stalled = simulated(path, "--stall", "30", "--seed", "3")
        t.case("%s: with stalls" % name, "" if stalled["pass"] else stalled["failure"])
        more = simulated(path, "--frames", "3", "--stall", "20")
        t.case("%s: three frames, a vector of each" % name, "" if more["pass"] and more["words"] == 3 * manifest["around"]["tail"]["channels"] else str(more["failure"] if not more["pass"] else more["words"]))
        many = simulated(path, "--frames", "4", "--axi-latency", "40")
        far = abs(many["predicted_cycles"] - many["cycles"]) / max(1, many["cycles"])
        t.case("%s: four frames, a far memory: %d cycles, as foretold" % (name, many["cycles"]), "" if many["pass"] and far <= 0.01 else "%d predicted" % many["predicted_cycles"])
    if hardware.has_cocotb("cocotb"): t.case("the emitted cocotb bench passes", hardware.cocotb(path)[-300:])
    tail, image = manifest["around"]["tail"], bytearray(t.read(os.path.join(path, "params.bin")))
    for k in range(tail["offset"], len(image)): image[k] ^= 0x15
    with open(os.path.join(path, "params.bin"), "wb") as f: f.write(image)
    wrong = simulated(path)
    t.case("other weights of the head are another word", "" if not wrong["pass"] and "frame 0, token 0" in wrong["failure"] else str(wrong["pass"]))


def check_best():
    name, rng = context("llama-d18-eager-one"), np.random.default_rng(11)
    ids = rng.integers(0, 40, (1, 16))
    for k in 2, 16:
        path = t.at("best.onnx")
        t.good("quantize", name, "--context", "16", "--tokens", "--best", str(k), "--onnx", "-o", path)
        logits, following = graphs.session(path).run(None, {"input_ids": ids})
        evaluated(path, ids)
        t.case("the %d best: ONNX Runtime's" % k, "" if np.array_equal(following, np.load(t.at("out.npz"))["mlo_next"]) and following.shape == (1, 16, 2 * k) else "they differ")
        want = np.argsort(-logits, -1, kind="stable")[..., :k]
        t.case("the %d best: numpy's order, the lower id first" % k, "" if np.array_equal(following[..., ::2], want) else "they differ")
    path = t.at("best")
    t.good("compile", name, "--tokens", "--best", "3", "--context", "16", "--slots", "2", "-o", path)
    core, manifest = graphs.session(os.path.join(path, "host", "core.onnx")), json.loads(t.read(os.path.join(path, "manifest.json")))
    frame, given = np.zeros((1, 16), np.int32), hexes(path, "input.hex", 32, 1)
    frame[0, :len(given)] = given
    following = core.run(["mlo_next"], {"mlo_ids": frame})[0][0]
    want = np.concatenate([following[j["start"] + j["tokens"] - 1] for j in manifest["jobs"]])
    t.case("the bench expects ONNX Runtime's", "" if np.array_equal(want.astype(np.int64) & 0xffffffff, hexes(path, "golden.hex", 32, 2)) else "other words")
    plain, text = (simulated(path, "--simulator", "icarus", *more) for more in ((), ("--generate", "2", "--prompt", "1,2,7;3", "--stall", "30")))
    t.case("Verilog's words, job by job", "" if plain["pass"] else plain["failure"])
    t.case("%d cycles, as foretold" % plain["cycles"], "" if abs(plain["predicted_cycles"] - plain["cycles"]) <= 0.01 * plain["cycles"] else "%d predicted" % plain["predicted_cycles"])
    t.case("texts that go on, with stalls: three words for each id", "" if text["pass"] and text["words"] == 2 * 3 * 2 * 2 else "%s, %d words" % (text["failure"], text["words"]))
    refused("--best without ids", "USAGE", ["--tokens"], "quantize", name, "--context", "16", "--best", "2")
    refused("--best of an encoder", "USAGE", ["encoder"], "quantize", t.model("bert-tiny-mask"), "--tokens", "--best", "2")
    refused("more than 16", "USAGE", ["16"], "quantize", name, "--context", "16", "--tokens", "--best", "17")


def check_inside():
    for name, flags in t.drawn(ENCODERS, 4, lambda core: core[0]):
        path, manifest = encoder(name, *flags)
        plain = simulated(path)
        far = abs(plain["predicted_cycles"] - plain["cycles"]) / max(1, plain["cycles"])
        t.case("%s: Verilog's words" % name, "" if plain["pass"] else plain["failure"])
        t.case("%s: %d cycles, as foretold" % (name, plain["cycles"]), "" if far <= 0.01 else "%d predicted" % plain["predicted_cycles"])
        stalled = simulated(path, "--stall", "30", "--seed", "3")
        t.case("%s: with stalls" % name, "" if stalled["pass"] else stalled["failure"])
        more = simulated(path, "--frames", "3", "--stall", "20")
        t.case("%s: three frames, whose positions begin anew" % name, "" if more["pass"] else more["failure"])
    refused("frames that are shorter than the bench's", "UNSUPPORTED", ["--frame-tokens", "%d positions" % manifest["tokens"], "leave it out"], "sim", path, "--frame-tokens", "3")
    image, around = bytearray(t.read(os.path.join(path, "params.bin"))), manifest["around"]
    kind = int(hexes(path, "input.hex", 32, 1)[0]) >> 24
    image[around["positions"]["offset"] + kind * around["positions"]["bytes"] // around.get("types", 1) + 1] ^= 0x60
    with open(os.path.join(path, "params.bin"), "wb") as f: f.write(image)
    wrong = simulated(path)
    t.case("another row of the first position, of its type, is another word", "" if not wrong["pass"] and "wrong word" in wrong["failure"] else "it passes")


CORES = (("llama-d18-eager-one", ("--memory", "layer")), ("qwen3-d18-sdpa-one", ("--pe", "4", "--simd", "8")), ("mistral-d18-eager-one-cropped", ("--memory", "block", "--tile", "4")), (LEARNED, ()))


def foretold(what, path, *more):
    """A run in Verilator, its report; a case: its words, and its cycles within 1 %."""
    run = simulated(path, "--simulator", "verilator", *more)
    far = abs(run["predicted_cycles"] - run["cycles"]) / max(1, run["cycles"])
    t.case("%s: %s" % (what, " ".join(more)), run["failure"] if not run["pass"] else "%d cycles, %d predicted" % (run["cycles"], run["predicted_cycles"]) if far > 0.01 else "")
    return run, far


def check_cycles():
    """The loop, its head and the rows share one memory: of a slow one too, and of one that answers late."""
    if not t.have("cycles", "verilator"): return
    seed = datetime.date.today().isoformat()
    t.note("drawn from " + seed)
    for name, flags in t.drawn(CORES, 4, lambda core: core[0]):
        path, rng = t.at(name), random.Random(seed + name)
        t.good("compile", context(name), "--tokens", "--context", "16", "--slots", "2", *flags, "-o", path)
        worst = foretold(name, path, "--jobs", "0+5")[1]        # its fifth row is asked for among the head's first parameters
        for _ in range(6):
            memory = ["--axi-latency", str(rng.choice([1, 7, 7, 30, 100]))] + ["--bandwidth", rng.choice(["1.6", "4.8", "9.6"])] * rng.randrange(2)
            text = ["--generate", str(rng.randint(2, 8)), "--prompt", rng.choice(["1,2,3", "1;2,3", "5,6,7,8;1"])]
            worst = max(worst, foretold(name, path, *(text if rng.random() < 0.3 else ["--jobs", drawn(rng)]), *memory)[1])
        t.note("%s: at most %.2f %% off" % (name, 100 * worst))
        long, short = (foretold(name, path, "--prompt", "1,2,7", "--generate", n)[0]["cycles"] for n in ("8", "7"))
        step = json.loads(t.good("show", os.path.join(path, "host/core.onnx"), "--json", "--position", "9"))["step"]
        t.case("%s: show says what a step takes" % name, "" if step["position"] == 9 and abs(step["cycles"] - (long - short)) <= 0.01 * (long - short) else "%d cycles, not %s" % (long - short, step))


if __name__ == "__main__":
    t.main(check_text, check_judged, check_near, check_rows, check_places, check_folded, check_encoder, check_pooled, check_poured, check_best, check_inside, check_masks, check_refused, check_cycles, check_hardware, floor=207)
