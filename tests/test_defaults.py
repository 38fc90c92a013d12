#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What exporters do when nobody says anything becomes hardware without a flag: models/defaults/, which Optimum, PyTorch's libraries, Keras, jax2onnx and Paddle made.

    python tests/test_defaults.py path/to/mlo [CHECK ...]

    whole      `mlo compile FILE` of every export: dimensions that are open have sizes, with a word; keys and values that every layer hands out are left out, with a word; of a merged decoder
               one of the two is built. pre, core and post in ONNX Runtime are near the float model there, with inputs that calibration never saw; the words of the core are those of `mlo run`
    context    decoders that export a past are refused in a line that says --context; with it they are built
    open       which sizes dimensions get, by the place and the name they have; what nothing tells stays open, and is refused; what --dim, --shape or --hold say is so; stages alone bind nothing
    sample     with --calib the summary is of its first sample
    left       outputs that depend on what every layer makes are left out, wherever they stand among the outputs; a model of nothing else is refused

The judge is ONNX Runtime on the export. How they were made: models/defaults.py, genai.py, of_torch.py, of_keras.py, of_jax.py, of_paddle.py, of_ort.py."""
import glob
import json
import os
import re
import numpy as np
import onnx
from onnx import helper, numpy_helper
import harness as t
from encoders import Encoder
from graphs import session

FOLDER = os.path.join(t.tests, "models", "defaults")
NEAR = 0.99


def known(m):
    """tf2onnx leaves Erfc of a GELU, which is no ONNX operator: for the judge it is 1 - Erf."""
    if any(n.op_type == "Erfc" for n in m.graph.node): m.graph.initializer.append(numpy_helper.from_array(np.float32(1), "judge.one"))
    nodes = []
    for n in m.graph.node:
        nodes += [helper.make_node("Erf", n.input, [n.output[0] + ".erf"]), helper.make_node("Sub", ["judge.one", n.output[0] + ".erf"], n.output)] if n.op_type == "Erfc" else [n]
    del m.graph.node[:]
    m.graph.node.extend(nodes)
    return m


def compiled(path, *flags, d="core"):
    """What compile says on stderr; what is wrong with it."""
    p = t.call("compile", path, *flags, "-o", t.at(d))
    said = p.stderr.decode()
    return said, "" if p.returncode == 0 else said[-300:]


def manifest(d="core"): return json.loads(t.read(t.at(d + "/manifest.json")))


def fed(ins, rng, sizes):
    """Inputs of a session: ids, masks that hide the last, hidden states."""
    feed = {}
    for i in ins:
        shape = [d if isinstance(d, int) else sizes.get(d, 0) for d in i.shape]               # a past is empty
        if i.type == "tensor(bool)": feed[i.name] = np.zeros(shape, bool)
        elif "mask" in i.name: feed[i.name] = np.ones(shape, np.int64)
        elif "type" in i.name or "position" in i.name: feed[i.name] = np.zeros(shape, np.int64) if "type" in i.name else np.arange(shape[-1])[None]
        elif i.type == "tensor(int32)": feed[i.name] = rng.integers(0, 50, shape).astype(np.int32)
        elif i.type == "tensor(int64)": feed[i.name] = rng.integers(2, sizes.get("words", 60), shape)
        else: feed[i.name] = rng.standard_normal(shape).astype(np.float16 if "16" in i.type else np.float32)
    return feed


def through(d, feed):
    """pre, core and post, one behind the other, in ONNX Runtime; and what goes into the core."""
    values = dict(feed)
    for part in "pre", "core", "post":
        path = t.at("%s/host/%s.onnx" % (d, part))
        if not os.path.exists(path): continue
        s = session(onnx.load(path))
        into = {i.name: values[i.name] for i in s.get_inputs()}
        if part == "core": words = into
        values.update(zip([o.name for o in s.get_outputs()], s.run(None, into)))
        if part == "core": made = {o.name: values[o.name] for o in s.get_outputs()}
    return values, words, made


def cosine(a, b):
    a, b = (np.asarray(v, np.float64).ravel() for v in (a, b))
    return float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30))


def judged(path, d, sizes, out, batch=1):
    """What is wrong with a core: words that are not those of mlo run, or results far from the floats. batch: sequences that the export takes at a time, the core one by one."""
    original, rng = session(known(onnx.load(path))), np.random.default_rng(7)
    feed = fed(original.get_inputs(), rng, sizes)
    want = dict(zip([o.name for o in original.get_outputs()], original.run(None, feed)))[out]
    feed = {k: v for k, v in feed.items() if not k.startswith("past")}
    frames = [through(d, {k: v[b:b + 1] for k, v in feed.items()} if batch > 1 else feed) for b in range(batch)]
    values, words, made = frames[0]
    if batch > 1: values[out] = np.concatenate([v[out] for v, _, _ in frames])
    np.savez(t.at("words.npz"), **words)
    t.good("run", t.at(d + "/host/core.onnx"), "--inputs", t.at("words.npz"), "--outputs", t.at("made.npz"))
    with np.load(t.at("made.npz")) as z: wrong = [k for k in made if not np.array_equal(z[k], made[k])]
    near = cosine(values[out], want)
    return "other words: %s" % wrong if wrong else "" if near >= NEAR else "cosine %.4f" % near


# an export: what its dimensions become, what comes out of it, how many outputs are left out
WHOLE = {"bert-model": ({"batch_size": 1, "sequence_length": 128}, "last_hidden_state", 0), "distilbert-model": ({"batch_size": 1, "sequence_length": 128}, "last_hidden_state", 0),
         "bart-encoder": ({"batch_size": 1, "encoder_sequence_length": 128}, "last_hidden_state", 0), "t5-encoder": ({"batch_size": 1, "encoder_sequence_length": 128}, "last_hidden_state", 0),
         "vit-model": ({"batch_size": 1, "num_channels": 3, "height": 96, "width": 96}, "logits", 0),
         "sound-wav2vec2": ({"batch": 1, "samples": 16000}, "logits", 0), "counted-roberta": ({"batch": 1, "sequence": 64}, "logits", 0),
         "marian-encoder": ({"batch_size": 1, "encoder_sequence_length": 64}, "last_hidden_state", 0),
         **{n: ({"batch_size": 1, "encoder_sequence_length": 128, "decoder_sequence_length": 128}, "logits", 12) for n in ("bart-decoder", "bart-decoder-merged", "t5-decoder-merged")}}
STEPS = {"gpt2-model": 64, "llama-model": 128}           # tokens that their positions allow, 128 at most


def check_whole():
    there = sorted(os.path.basename(f)[:-5] for f in glob.glob(os.path.join(FOLDER, "*.onnx")))
    t.case("every export has a check", "" if there == sorted([*WHOLE, *STEPS, *GENAI, *OTHERS]) else str(there))
    for name, (sizes, out, left) in WHOLE.items():
        path = os.path.join(FOLDER, name + ".onnx")
        said, wrong = compiled(path)
        t.case(name + ": compile, without a flag", wrong)
        if wrong: continue
        words = dict(re.findall(r"'(\w+)' is (\d+)", said))
        t.case(name + ": it says what open dimensions are", "" if words == {k: str(v) for k, v in sizes.items()} else said[:300])
        t.case(name + ": it says what it leaves out", "" if (re.findall(r"(\d+) outputs of the model are left out, 'present", said) or ["0"])[0] == str(left) else said[:600])
        t.case(name + ": it says which decoder it builds", "" if ("'use_cache_branch' is held 0" in said) == ("merged" in name) else said[:300])
        t.case(name + ": its words are those of mlo run, its results near the floats", judged(path, "core", sizes, out))


def check_context():
    for name in STEPS:
        path = os.path.join(FOLDER, name + ".onnx")
        said, wrong = compiled(path)
        t.case(name + ": without a flag it keeps as many tokens as it has positions, with a word", wrong or ("" if "the core keeps %d tokens of it; --context N says otherwise" % STEPS[name] in said and manifest()["context"] == STEPS[name] else said[:300]))
        said, wrong = compiled(path, "--context", "16")
        t.case(name + ": --context 16", wrong)
        if not wrong: t.case(name + ": its words are those of mlo run, its results near the floats", judged(path, "core", {"batch_size": 1, "sequence_length": 16, "past_sequence_length + sequence_length": 16}, "logits"))


# what ONNX Runtime's builder of decoders writes (tests/models/genai.py): the judge's sizes
GENAI = {"genai-llama-int4": {}, "genai-llama-fp16": {}, "genai-gemma2-int4": {"past_sliding_length": 16}, "genai-qwen3-fp16": None}


def check_genai():
    """No flag; a core with a cache. ONNX Runtime judges what it runs on a processor; of norms within an attention, what `read` makes of them (test_survival judges that)."""
    sizes = {"batch_size": 1, "sequence_length": 16, "total_sequence_length": 16, "kv_cache_dim": 16}
    for name, more in GENAI.items():
        path = os.path.join(FOLDER, name + ".onnx")
        said, wrong = compiled(path)
        t.case(name + ": compile, without a flag", wrong or ("" if "the core keeps 64 tokens of it; --context N says otherwise" in said and manifest()["context"] == 64 else said[:300]))
        said, wrong = compiled(path, "--context", "16")
        if more is None: t.good("read", path, "--context", "16", "--onnx", "-o", path := t.at("read.onnx"))
        t.case(name + ": its words are those of mlo run, its results near the floats", wrong or judged(path, "core", {**sizes, **(more or {})}, "logits"))
    t.good("compile", os.path.join(FOLDER, "genai-gemma2-int4.onnx"), "--context", "16", "-o", t.at("core"))
    p = t.call("sim", t.at("core"), "--stall", "30", "--text", text=True) if t.have("genai", "iverilog") else None
    if p: t.case("4-bit weights, rows in blocks, windows of 8: simulated", "" if not p.returncode and "PASS" in p.stderr + p.stdout else p.stderr[-300:])


# what Keras, jax2onnx and Paddle export: the open batch's name, the result's; whether it is simulated
BATCHES = {"timm-eva": 2, "min-gpt": 2, "batch-swin": 2}                  # as exported
OTHERS = {**{n: (None, None) for n in ("timm-eva", "x-decoder", "open-clip-text", "litgpt-gemma2", "min-gpt", "qdq-vit", "qdq-packed", "qdq-causal", "qdq-gpt2", "qdq-llama", "batch-swin", "columns-tab")},
          "keras-text": ("unk__\\d+", "Identity:0"), "keras-gpt": ("unk__\\d+", "Identity:0"), "keras-vit": ("unk__\\d+", "Identity:0"), "keras-series": ("unk__\\d+", "Identity:0"),
          "paddle-encoder": (r"DynamicDimension\.0", None), "paddle-gpt": (r"DynamicDimension\.0", None),
          "jax-encoder": ("B", None), "jax-gpt": (None, None), "jax-scan": (None, None)}
FEW = {"columns-tab": 3}                                  # rows of its smallest table
SIMULATED = "qdq-packed", "qdq-llama", "min-gpt", "keras-series", "paddle-gpt", "jax-gpt", "jax-scan"


def meant(m):
    """Leaves out what quantize_static rounds beside weights: ONNX Runtime judges what was meant. How many of the steps are infinite, which it gives a mask of -inf: nothing is hidden by that any more."""
    steps = {x.name for x in m.graph.initializer if x.data_type == onnx.TensorProto.FLOAT and np.isinf(numpy_helper.to_array(x)).any()}
    makers = {o: n for n in m.graph.node for o in n.output}
    rounded = [n for n in m.graph.node if n.op_type == "DequantizeLinear" and n.input[0] in makers]
    ends = {n.output[0]: makers[n.input[0]].input[0] for n in rounded}
    for n in m.graph.node:
        for k, name in enumerate(n.input):
            while name in ends: name = ends[name]
            n.input[k] = name
    return sum(n.input[1] in steps for n in rounded)


def check_others():
    """No flag: norms, attention and GELU in the words of PyTorch's libraries, TensorFlow, JAX and Paddle, layers in jax.lax.scan. Each weight is random, biases and gains, too."""
    for name, (batch, out) in OTHERS.items():
        path = os.path.join(FOLDER, name + ".onnx")
        said, wrong = compiled(path)
        open_as = re.findall(r"leaves open: '([^']*)' is 1;", said)
        t.case(name + ": compile, without a flag", wrong or ("" if (not batch and not open_as) or (open_as and re.fullmatch(batch, open_as[0])) else said[:300]))
        m = onnx.load(path)
        for v in (*m.graph.input, *m.graph.output):
            for d in v.type.tensor_type.shape.dim:
                if d.dim_param: d.dim_value = 1
        for v in m.graph.output: v.type.tensor_type.ClearField("shape")
        endless = meant(m) if name.startswith("qdq") and name != "qdq-vit" else 0
        t.case(name + ": infinite steps are said", "" if ("%d roundings of the model have an infinite scale" % endless in said) == (endless > 0) and (endless > 0) == (name == "qdq-causal") else said[:300])
        t.write("bound.onnx", m.SerializeToString())
        t.case(name + ": its words are those of mlo run, its results near the floats", wrong or judged(t.at("bound.onnx"), "core", {"words": FEW.get(name, 50)}, out or m.graph.output[0].name, BATCHES.get(name, 1)))
        p = t.call("sim", t.at("core"), "--stall", "30", "--text", text=True) if name in SIMULATED and t.have("others", "iverilog") else None
        if p: t.case(name + ": simulated", "" if not p.returncode and "PASS" in p.stderr + p.stdout else p.stderr[-300:])


def check_halves():
    """Steps that a tool made 16-bit floats of: pasts and presents are cast on their way."""
    from onnxruntime.transformers import float16
    for name in STEPS:
        for keep in (True, False):
            path = t.at("half.onnx")
            onnx.save(float16.convert_float_to_float16(onnx.load(os.path.join(FOLDER, name + ".onnx")), keep_io_types=keep), path)
            said, wrong = compiled(path, "--context", "16")
            t.case("%s in 16 bits%s" % (name, ", cast at its ends" if keep else ""), wrong or judged(path, "core", {"batch_size": 1, "sequence_length": 16, "past_sequence_length + sequence_length": 16}, "logits"))


def shaped(**dims):
    """bert-tiny with an open batch and length, whose dimensions are called so."""
    m = onnx.load(os.path.join(FOLDER, "bert-model.onnx"))
    for i in m.graph.input:
        for d, name in zip(i.type.tensor_type.shape.dim, dims.values()): d.dim_param = name
    for v in [*m.graph.output, *m.graph.value_info]: v.type.tensor_type.ClearField("shape")
    return t.write("shaped.onnx", m.SerializeToString())


def check_open():
    path = os.path.join(FOLDER, "bert-model.onnx")
    for batch, length in ("b", "t"), ("unk__0", "unk__1"), ("batch", "seq"):
        said, wrong = compiled(shaped(batch=batch, length=length))
        t.case("ids [%s, %s]" % (batch, length), wrong or ("" if "'%s' is 1, '%s' is 128;" % (batch, length) in said and manifest()["tokens"] == 128 else said[:300]))
    for what, flags, said_so, tokens in (("--dim of one", ["--dim", "sequence_length=24"], "'batch_size' is 1;", 24), ("--dim of both", ["--dim", "sequence_length=24", "--dim", "batch_size=1"], "", 24),
                                         ("--shape", ["--shape", "input_ids=1x40"], "", 40)):
        said, wrong = compiled(path, *flags)
        t.case(what, wrong or ("" if (said_so in said if said_so else "leaves open" not in said) and manifest()["tokens"] == tokens else said[:300]))
    np.savez(t.at("held.npz"), attention_mask=np.ones((1, 20), np.int64))
    said, wrong = compiled(path, "--hold", t.at("held.npz"))
    t.case("--hold, a mask of 20", wrong or ("" if "leaves open" not in said and manifest()["tokens"] == 20 else said[:300]))
    for verb in "quantize", "fold":
        p = t.call(verb, path)
        t.case("%s binds nothing" % verb, "" if p.returncode == 3 and b"--dim NAME=N" in p.stderr and b"leaves open" not in p.stderr else p.stderr.decode()[-300:])
    p = t.call("compile", t.model("bert-1"), "-o", t.at("fixed"))
    t.case("nothing is open: not a word", "" if p.returncode == 0 and b"leaves open" not in p.stderr else p.stderr.decode()[:300])
    traced = Encoder(2, 24, 3, 8, 40, 20, "post", "Gelu").model()                              # its reshapes say 20, its input nothing
    traced.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "seq"
    del traced.graph.value_info[:]
    said, wrong = compiled(t.write("traced.onnx", traced.SerializeToString()))
    t.case("a length that a trace has fixed", wrong or ("" if "'seq' is 20;" in said and manifest()["tokens"] == 20 else said[:300]))
    states = onnx.load(os.path.join(FOLDER, "bart-decoder.onnx"))
    for d, name in zip(next(i for i in states.graph.input if "states" in i.name).type.tensor_type.shape.dim, ("p", "q")): d.dim_param = name
    said, wrong = compiled(t.write("states.onnx", states.SerializeToString()))
    t.case("hidden states [p, q, 16]", wrong or ("" if "'p' is 1" in said and "'q' is 128" in said else said[:300]))
    open_image = onnx.load(t.model("vit-tiny"))
    for d, name in zip(open_image.graph.input[0].type.tensor_type.shape.dim, ("batch_size", "num_channels", "height", "width")): d.dim_param = name
    said, wrong = compiled(t.write("image.onnx", open_image.SerializeToString()))
    t.case("an image of any size has the sides that its positions allow", wrong or ("" if "'num_channels' is 3, 'height' is 32, 'width' is 32;" in said and manifest()["tokens"] == 17 else said[:300]))
    table = next(x for x in open_image.graph.initializer if x.dims[:] == [1, 17, 64])          # 19 places are those of no square
    table.CopyFrom(numpy_helper.from_array(np.concatenate([numpy_helper.to_array(table)] * 2, 1)[:, :19], table.name))
    for v in (*open_image.graph.value_info, *open_image.graph.output): v.type.tensor_type.ClearField("shape")
    p = t.call("compile", t.write("image.onnx", open_image.SerializeToString()), "-o", t.at("image"))
    t.case("positions of no image are refused, and nothing is written", "" if p.returncode == 3 and b"[MLO_E_SHAPE]" in p.stderr and not os.path.exists(t.at("image")) else p.stderr.decode()[-300:])


def taps(model, where, op="LayerNormalization"):
    """A model with what every layer hands on (or makes on the way: op) as outputs, too, in front of the others or behind; or joined, and that alone."""
    m = onnx.load(model)
    made = [n.output[0] for n in m.graph.node if n.op_type == op]
    made = made[2:-1:2] if op == "LayerNormalization" else made
    more = [helper.make_empty_tensor_value_info(x) for x in made]
    outs = list(m.graph.output)
    del m.graph.output[:]
    m.graph.node.append(helper.make_node("Concat", made, ["joined"], axis=1))
    m.graph.output.extend(more + outs if where == "in front" else outs + more if where == "behind" else [helper.make_empty_tensor_value_info("joined")])
    return t.write("taps.onnx", m.SerializeToString()), len(more)


def compared():
    """What the last build compares with the floats, and how near the farthest is."""
    errors = json.loads(t.read(t.at("core/accuracy.json")))["error"]
    return [e["output"] for e in errors], min(e["cosine"] for e in errors)


def check_sample():
    """With --calib the summary is of its first sample."""
    model, rng = t.model("bert-tiny"), np.random.default_rng(3)
    ids = session(model).get_inputs()[0]
    frames = rng.integers(0, 40, (5, *ids.shape))
    np.savez(t.at("frames.npz"), **{ids.name: frames})
    p = t.call("compile", model, "--calib", t.at("frames.npz"), "-o", t.at("core"))
    made = json.loads(p.stdout)
    np.savez(t.at("first.npz"), **{ids.name: frames[0]})
    t.good("quantize", model, "--calib", t.at("frames.npz"), "-o", t.at("q.json"))
    t.good("run", t.at("q.json"), "--inputs", t.at("first.npz"), "--outputs", t.at("y.npz"))
    exact, far = dict(zip([o.name for o in session(model).get_outputs()], session(model).run(None, {ids.name: frames[0]}))), []
    with np.load(t.at("y.npz")) as got:
        for e in made["error"]:
            a, b = (v[e["output"]].astype(np.float64).ravel() for v in (got, exact))
            far.append(abs(e["cosine"] - a @ b / np.sqrt((a @ a) * (b @ b))) + abs(e["max"] - abs(a - b).max()))
    t.case("with --calib its first sample is measured", "" if far and max(far) < 1e-4 else "%s off" % far)
    t.case("the summary says so", "" if b"on a sample of --calib" in p.stderr else p.stderr.decode()[-300:])


def check_left():
    model = t.model("bert-12")
    t.good("compile", model, "-o", t.at("plain"))
    outs = [o.name for o in onnx.load(model).graph.output]
    for where in "in front", "behind":
        path, n = taps(model, where)
        said, wrong = compiled(path)
        same = not wrong and t.read(t.at("core/params.bin")) == t.read(t.at("plain/params.bin"))
        t.case("%d hidden states %s: the same parameters, and nothing is left out" % (n, where), wrong or ("" if same and "left out" not in said else said[:300]))
        names, far = compared() if not wrong else ([], 0)
        t.case("%d hidden states %s: all are compared with the floats" % (n, where), "" if names == [o.name for o in onnx.load(path).graph.output] and far > NEAR else "%s %s" % (names, far))
        path, n = taps(model, where, "Softmax")
        said, wrong = compiled(path)
        same = not wrong and all(t.read(t.at("core/" + f)) == t.read(t.at("plain/" + f)) for f in ("params.bin", "rtl/mlo_top.v", "rtl/mlo_core.v"))
        t.case("%d attentions %s: the same core" % (n, where), wrong or ("" if same and "%d outputs of the model are left out" % n in said else said[:300]))
        names, far = compared() if not wrong else ([], 0)
        t.case("%d attentions %s: what is compared with the floats is what is there" % (n, where), "" if names == outs and far > NEAR else "%s %s" % (names, far))
    both = onnx.load(taps(model, "behind")[0])
    seen = [n.output[0] for n in both.graph.node if n.op_type == "Softmax"]
    kept = [o.name for o in both.graph.output]
    for k, name in enumerate(seen): both.graph.output.insert(k, helper.make_empty_tensor_value_info(name))
    said, wrong = compiled(t.write("both.onnx", both.SerializeToString()))
    t.case("attentions in front of hidden states: those alone are left out", wrong or ("" if "%d outputs of the model are left out, '%s' the first" % (len(seen), seen[0]) in said and compared()[0] == kept and compared()[1] > NEAR else said[:300]))
    said, wrong = compiled(taps(model, "alone")[0])
    t.case("hidden states alone: of the layers that there are in front of the last", wrong or ("" if compared()[1] > NEAR else str(compared())))
    p = t.call("compile", taps(model, "alone", "Softmax")[0], "-o", t.at("none"))
    t.case("attentions alone are refused", "" if p.returncode == 4 and b"all outputs of the model are made of them" in p.stderr and not os.path.exists(t.at("none")) else p.stderr.decode()[-300:])


if __name__ == "__main__": t.main(check_whole, check_context, check_genai, check_others, check_halves, check_open, check_sample, check_left, floor=172)
