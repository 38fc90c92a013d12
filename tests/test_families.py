#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models as people export them become hardware: families x exporters x opsets x attention x masks, models/families/.

    python tests/test_families.py path/to/mlo [CHECK ...]                Icarus, Verilator
    python tests/test_families.py path/to/mlo NAME ...                   the models whose names contain one of these: all of them judged, whatever the day
    python tests/test_families.py path/to/mlo --table                    the table of README.md, between its marks

Of each model: `mlo compile`; the words of its core in `mlo run` and in ONNX Runtime on host/core.onnx, which must be the
same; and how near ONNX Runtime comes on pre.onnx, core.onnx and post.onnx to the float model, with inputs that calibration
never saw. One export in TURN a day; compiled are all. Of a day's exports whose cores are the same Verilog, byte for byte, one has it
simulated: the same words again. What cannot be built has to say so in a person's words: REFUSED.
models/families.py, families_more.py, families_gates.py, families_decoders.py, families_norms.py, families_masks.py, families_cross.py and families_fresh.py made the files.

README.md has a table of all exports that the tests try, family by family: these, those of test_bias.py, test_conv.py, test_every.py, test_moved.py, test_positions.py and
test_prefix.py, and models of which no hardware comes. Its words are ROWS, the verdicts are what the checks hold the exports to, and it has to stand there as it is made here."""
import datetime
import functools
import glob
import json
import os
import re
import sys
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
import harness as t
from graphs import session
from hardware import Run, key, together

FLAGS = ("--pe", "4", "--simd", "4")
OPEN = {"batch": 1, "sequence": 8}                          # what people leave open, bound by --dim
NEAR, FRAMES, LEAST = 0.97, 8, 220
# random weights without norms: of one frame of eight, 0.78 (nothing saturates; other calibrations have it at 0.77 to 0.997), of all 0.969 to 0.996
# (hidden states: 0.992 and more; behind them a head of random weights, whose last layer is a Relu)
FAR = {"dpt-d18-sdpa-none-a": 0.94, "mobilebert-d18-sdpa-none-a": 0.96}
picked = []                                                 # words of the command line: models by parts of their names
TURN = 8                                                    # days in which each export is judged once

# by a part of the name: what the refusal's line has to say
REFUSED = {"-square-": "mask",
           "series-conv": "a convolution over several frames at a time", "vit-mae": "cannot evaluate RandomUniformLike"}
# the same for the README's table
WHY = {"mask": "a mask [T, T] from outside", 
       "a convolution over several frames at a time": "a convolution over each sequence of several",
       "cannot evaluate RandomUniformLike": "places drawn at random",
       "Conv1 (Conv): a convolution with a dilation": "dilation", "Conv1 (Conv): a convolution of several channels with each other": "channels in groups"}
# rows of the table: a family, and what its exports are called; those of other folders by these
ROWS = """ALBERT: albert
Average pooling, PoolFormer: conv/pooling conv/poolformer
BART's and Marian's encoders: bart-encoder marian-encoder
BEiT, with its relative positions: beit bias/beit-relative bias/beit-shared
BERT, sentence transformers: bert bert-classes sentence tutorial
BERT as a decoder: bert-decoder
BLOOM, MPT, ALiBi: bloom-heads bias/bloom bias/mpt bias/alibi-encoder
CLIP, BLIP: clip-text clip-text-mask clip-vision clip-vision-embedding openai-clip blip-vision
ConvNeXt, SegFormer, depthwise convolutions: conv/convnext conv/segformer conv/mixer conv/dilated conv/grouped
Conformers: conv/conformer
DeiT: deit
DETR's encoder and decoder: detr detr-decoder
Decoders of BART, Marian, T5 and Whisper, with cross-attention: bart-decoder marian-decoder t5-decoder whisper-decoder
DINOv2, DINOv3: dinov2 dinov2-registers dinov2-swiglu positions/dinov3
DistilBERT: distilbert distilbert-answers
ELECTRA, MPNet: electra mpnet
ESM, RoFormer: positions/esm positions/roformer
Falcon's heads: falcon-heads falcon-new
FlauBERT, XLM: flaubert xlm
GPT-1: gpt1
GPT-2, nanoGPT: gpt2 nanogpt nanogpt-causal nanogpt-sdpa
GPT-J's, GPT-NeoX's blocks, GPT-NeoX-Japanese: gptj-parallel neox-heads neoxj
GPT-Neo, windows in every other layer: gpt-neo window-every window-fill window-mixed window-other window-range window-sdpa
MobileBERT: mobilebert
PatchTST, series of several channels: patchtst patchtst-post patchtst-channels patchtst-two-layernorm patchtst-mixed series-causal series-conv
Multi-query heads, StarCoder: bigcode mqa-broadcast mqa-expand
OPT, XGLM, BioGPT: opt opt-post xglm biogpt
RoBERTa, XLM-R, CamemBERT: roberta roberta-pre xlmr xlmr-tokens camembert-words
SigLIP: siglip-text siglip-vision
SqueezeBERT: squeezebert
T5's and UMT5's encoders: t5-encoder bias/t5-encoder bias/t5-gated bias/umt5-encoder
timm's ViT: timm timm-sdpa
`torch.nn.TransformerEncoder`: torch-batch-post-gelu torch-batch-post-relu torch-batch-pre-gelu torch-batch-pre-relu torch-seq-post-gelu torch-seq-post-relu torch-seq-pre-gelu torch-seq-pre-relu bare-batch-pre-gelu bare-seq-post-relu unbatched-post unbatched-pre
`torch.nn.TransformerDecoder`: decoder-batch-post decoder-batch-pre decoder-seq-post decoder-seq-pre
ViT: vit vit-classes vit-msn
ViT-MAE: vit-mae
YOLOS: yolos yolos-first
Whisper's encoder, audio: whisper-encoder audio
wav2vec 2.0: wav2vec2
Grouped heads (Llama, Mistral, Phi 3): phi3 gqa-expand gqa-five gqa-gather gqa-interleave gqa-packed gqa-sdpa gqa-tile
Local and global layers (Gemma 2 and 3, ModernBERT, OLMo 3, Cohere 2, EXAONE 4): gemma2 gemma2-capped gemma2-caps gemma3-six modernbert olmo3 cohere2 exaone4
Sliding windows (Mistral, Ministral, Qwen 2 and 3, GPT-Neo): mistral-sliding ministral qwen2-some qwen3-windows gpt-neo-windows
HunYuan: hunyuan
Norms of queries and keys (OLMo 2, Qwen 3, Cohere, StableLM 2, Apertus): qk-cohere qk-cosine qk-olmo2 qk-qwen3 qk-timm qk-vit22b stablelm apertus
Rotary embedding, in both layouts, partial: positions/complex positions/flash positions/neighbours positions/partial
Latent attention (MiniCPM3, DeepSeek V3's dense layers): positions/minicpm3 positions/deepseek3
Gates (SwiGLU, GeGLU, ..): gates-interleaved geglu glu reglu-packed relu-squared silu-packed swiglu
RMS and layer norms by hand, sandwiched: rms-norm rms-rsqrt rms-sqrt rms-torch ln-rsqrt ln-sqrt ln-var sandwich
Causal masks by hand: causal-add causal-fill causal-range causal-sdpa causal-where
Biases by distance, by pair, Swin's table: bias/distance bias/full bias/window
Rows beside keys and values, sinks (memory keys, bias_k, rows of zeros, GPT-OSS' sinks): prefix/memory prefix/memory-causal prefix/behind prefix/behind-causal prefix/turned prefix/turned-causal prefix/torch-bias prefix/torch-bias-causal prefix/torch-zero prefix/torch-zero-causal prefix/torch-both prefix/sink prefix/sink-causal prefix/quiet prefix/quiet-causal
Hidden states of several layers, or of all (DPT, Depth Anything, UNETR, LLaVA's features, weighted sums, deep supervision): every/bert-states every/bert-mix every/bert-cat every/distilbert-heads every/roberta-ends every/gpt2-states every/llama-states every/t5-mix every/depth-anything every/dpt every/wav2vec2-sum every/llava every/unetr every/probes
Swin, windows, shifted windows: moved/swin moved/classes moved/stages moved/torchvision moved/strip moved/line
Swin V2: moved/v2 moved/v2-whole moved/packed
Attention and FFN side by side (PaLM, ViT-22B): beside
Tutorials (a lecture's GPT, the annotated transformer): lecture annotated
Attention by hand (Megatron, fairseq, einsum): chunk einsum fairseq index inner megatron series slice"""
# models of tests/models that roll and do not become hardware: what the table says, and what the refusal does
OTHERS = {"GPT-2 with a past of fixed length": ("gpt2-cache", "keys of another length than the queries", "3 queries and 8 keys"),
          "DeBERTa": ("deberta-tiny", "disentangled attention", "a softmax over something")}
BEGIN, END = "<!-- families: tests/test_families.py --table -->\n", "<!-- families end -->\n"
# a mask [1, 1, 1, keys] at an Attention, which ONNX Runtime 1.31 does not broadcast: onnx's own evaluator judges
REFERENCE = ("torch-batch-pre-relu-d24-mask-d",)
# these go through Verilator, too
COMPILED = ("bert-d18-sdpa-mask-a", "swiglu-d18-none-a", "vit-ts17-sdpa-none-b", "torch-seq-pre-relu-d20-mask-a", "window-other-d18-none-h")


# ---- one model ------------------------------------------------------------------------------------------------------

def draw(graph, rng, left=False):
    """Inputs as people give them: words, pixels, a mask that keeps the first half at least (of padding: what it drops); left: the last half."""
    feed, held = {}, {i.name for i in graph.initializer}
    for i in graph.input:
        if i.name in held: continue
        shape = [d.dim_value or OPEN[d.dim_param] for d in i.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        if "mask" in i.name:
            kept = np.arange(shape[-1]) < rng.integers(shape[-1] // 2, shape[-1] + 1)
            if left: kept = kept[::-1]
            x = np.broadcast_to(~kept if "padding" in i.name else kept, shape)
        elif "token_type" in i.name: x = np.zeros(shape)
        else: x = rng.standard_normal(shape) if np.issubdtype(dtype, np.floating) else rng.integers(3, 60, shape)
        feed[i.name] = x.astype(dtype)
    return feed


def step(s, values):
    """One part of the model: its outputs join the values."""
    if s is None: return
    if isinstance(s, ReferenceEvaluator): inputs, outputs = s.input_names, s.output_names
    else: inputs, outputs = [i.name for i in s.get_inputs()], [o.name for o in s.get_outputs()]
    values.update(zip(outputs, s.run(None, {n: values[n] for n in inputs})))


def cosine(a, b):
    a, b = (np.concatenate([x.ravel() for x in xs]).astype(float) for xs in (a, b))
    return float(a @ b / max(np.sqrt((a @ a) * (b @ b)), 1e-30))


def other(path, values, names):
    """'' or the first of these values that a file has otherwise, bit for bit."""
    with np.load(path) as z:
        same = lambda a, b: a.dtype == b.dtype and np.array_equal(a.ravel(), b.ravel())
        return next((n for n in names if not same(z[n], values[n])), "")


def apart(feed, first):
    """The inputs of each sequence of a batch: as many as its first part takes at a time."""
    count = {feed[i.name].shape[0] // i.shape[0] for i in first.get_inputs() if i.name in feed}
    return [{n: v[k:k + 1] for n, v in feed.items()} for k in range(max(count))] if max(count) > 1 else [dict(feed)]


class Model:
    """One of families/: name, and what its name says."""
    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)[:-5]
        said = re.match(r"(.*?)-(d|ts)(\d+)-(?:(eager|sdpa)-)?(?:(.*)-)?[a-z]$", self.name)
        family, exporter, opset, attention, mask = said.groups()
        self.said = (family, "dynamo" if exporter == "d" else "TorchScript", opset, attention or "-", mask or "none")
        self.sides = "-mask-left" in self.name              # every other frame is padded on the left; padding's own rows, which may see no key, say nothing
        self.words = next((w for part, w in REFUSED.items() if part in self.name), "")
        self.why = self.near = self.cycles = self.iterations = self.out = self.core = ""
        self.simulated = self.due = True

    def compile(self):
        """Its build directory and what its Verilog is called by; or why it was refused."""
        out = t.at(self.name)
        named = {d.dim_param for i in onnx.load(self.path).graph.input for d in i.type.tensor_type.shape.dim} & OPEN.keys()
        bound = [w for n in sorted(named) for w in ("--dim", "%s=%d" % (n, OPEN[n]))]
        p = t.call("compile", self.path, "-o", out, *FLAGS, *bound, text=True)
        if p.returncode == 0: self.out, self.core = out, key(out)
        else: self.why = "status %d: %s" % (p.returncode, next((l for l in p.stderr.splitlines() if "[MLO_E_" in l), ""))

    def halves(self, out):
        """FRAMES inputs through the float model, and through pre, core and post: (values of one, values of the other) of each."""
        parts = [os.path.join(out, "host", part + ".onnx") for part in ("pre", "core", "post")]
        parts = [session(p) if os.path.exists(p) else None for p in parts]
        whole = (ReferenceEvaluator if self.name in REFERENCE else session)(self.path)
        graph, rng = onnx.load(self.path).graph, np.random.default_rng(2026)
        for i in range(FRAMES):
            feed = draw(graph, rng, self.sides and i % 2)
            left, ones = dict(feed), apart(feed, next(part for part in parts if part))
            step(whole, left)
            for one in ones:
                for part in parts: step(part, one)
            if len(ones) > 1: ones[0].update({o.name: np.concatenate([one[o.name] for one in ones]) for o in graph.output})
            yield left, ones[0]

    def agree(self, values):
        """'' or where the core's words in Icarus, in `mlo run` and in ONNX Runtime differ."""
        out = self.out
        core = session(os.path.join(out, "host", "core.onnx"))
        inputs, outputs = [i.name for i in core.get_inputs()], [o.name for o in core.get_outputs()]
        given, got = out + "/given.npz", out + "/got.npz"
        for v in reversed(values):                                                          # the first one goes on to Icarus
            np.savez(given, **{n: v[n] for n in inputs})
            t.good("run", out + "/host/core.onnx", "--inputs", given, "--outputs", got)
            if other(got, v, outputs): return "mlo run and ONNX Runtime differ in " + other(got, v, outputs)
        if not self.simulated: return ""
        sim = Run(out, "--inputs", given, "--outputs", got, verilator=None)
        self.cycles, self.iterations = sim.cycles, sim.manifest["iterations"]
        if sim.why(): return sim.why()
        return "Icarus and ONNX Runtime differ" if other(got, values[0], [sim.manifest["output"]["name"]]) else ""

    def distance(self, pairs):
        """The least cosine of any float output of the model."""
        names = [o.name for o in onnx.load(self.path).graph.output]
        kept = lambda x, values: x[:, values["attention_mask"][0] > 0] if self.sides else x
        return min(cosine(*zip(*[(kept(l[n], l), kept(r[n], l)) for l, r in pairs])) for n in names if np.issubdtype(pairs[0][0][n].dtype, np.floating))

    def judge(self):
        if not self.out: return
        pairs = list(self.halves(self.out))
        self.near = self.distance(pairs)
        self.why = self.agree([r for _, r in pairs])
        if not self.why and self.near < FAR.get(self.name, NEAR): self.why = "cosine %.4f with the float model" % self.near

    def verdict(self):
        """'' or what is wrong with the outcome."""
        if not self.words: return self.why
        if not self.why.startswith("status 4: mlo: quantize: "): return "not refused: " + (self.why or "it is hardware now")
        return "" if self.words in self.why else "%s; it should say '%s'" % (self.why, self.words)

    def row(self):
        outcome = "%.4f" % self.near if self.near != "" else "-"
        if self.words and not self.verdict(): outcome = "refused: " + self.words
        return (*self.said, str(self.iterations), str(self.cycles), outcome)


def exports(folder, also=lambda m: ""):
    """Those of another script: all are compiled, one in three a day is judged. also: what else is wrong with one that was."""
    if not t.have("exports", "iverilog"): return
    found = [Model(p) for p in sorted(glob.glob(os.path.join(t.tests, "models", folder, "*.onnx")))]
    due = t.drawn(found, 3, name=lambda m: m.name)
    for m in found:
        m.compile()
        if m in due: m.judge()
        if m.near != "": t.note("%-32s cosine %.4f" % (m.name, m.near))
        t.case("export %s" % m.name, m.verdict() or also(m))


# ---- tables ---------------------------------------------------------------------------------------------------------

def every():
    """All exports, by what ROWS calls them: those of seven scripts."""
    import test_conv
    found = {}
    for folder in "families", "bias", "conv", "every", "moved", "positions", "prefix":
        for path in sorted(glob.glob(os.path.join(t.tests, "models", folder, "*.onnx"))):
            m = Model(path)
            if folder in ("bias", "every", "moved", "prefix"): m.words = ""
            if folder == "conv": m.words = next((words for part, words in test_conv.REFUSED.items() if part in m.name), "")
            found.setdefault((folder + "/") * (folder != "families") + m.said[0], []).append(m)
    return found


def tried(models):
    """Exporters with their opsets, and spellings of attention, in a few words."""
    said = []
    for exporter in "dynamo", "TorchScript":
        opsets = sorted({int(m.said[2]) for m in models if m.said[1] == exporter})
        if opsets: said.append("%s %s" % (exporter, ", ".join(map(str, opsets))))
    said += [kind for kind in ("eager", "sdpa") if any(m.said[3] == kind for m in models)]
    return "; ".join(said)


def readme_table():
    """The table of README.md. What is refused comes from REFUSED: it was rolled, and stage quantize said why."""
    found, lines = every(), ["| family | exports tried | rolls | hardware | why not |", "|---|---|---|---|---|"]
    for row in ROWS.splitlines():
        label, names = row.split(": ")
        models = [m for name in names.split() for m in found.pop(name)]
        refused = [m.words for m in models if m.words]
        rolls = "all %d" % len(models) if len(models) > 1 else "yes"
        hardware = rolls if not refused else "%d of %d" % (len(models) - len(refused), len(models)) if len(models) > len(refused) else "no"
        lines.append("| %s |" % " | ".join((label, tried(models), rolls, hardware, "; ".join(WHY[w] for w in dict.fromkeys(refused)))))
    for label, (names, why, _) in OTHERS.items(): lines.append("| %s |" % " | ".join((label, "%d of dynamo" % len(names.split()), "yes", "no", why)))
    return BEGIN + "\n" + "\n".join(lines).replace("|  |", "| |") + "\n\n" + END, sorted(found)


def check_table():
    want, unsaid = readme_table()
    text = t.read(os.path.join(t.root, "README.md")).decode()
    t.case("every export has its place in a row of the table", ", ".join(unsaid))
    t.case("README.md has the table as it is", "" if text.count(want) == text.count(BEGIN) == 1 else "python tests/test_families.py ./mlo --table makes it; put it between the marks")
    turned = [m for name, models in every().items() if name.startswith("positions/") for m in models]
    for m in turned: m.compile()                            # near the floats, too: test_positions.py
    t.case("%d exports with rotary embedding become hardware" % len(turned), "; ".join("%s: %s" % (m.name, m.why) for m in turned if not m.out))
    for label, (names, _, words) in OTHERS.items():
        for name in names.split():
            rolled, p = t.call("roll", t.model(name), "-o", t.at("rolled.json")), t.call("compile", t.model(name), "-o", t.at(name), text=True)
            said = [l for l in p.stderr.splitlines() if "mlo: quantize: " in l and words in l]
            t.case("%s: rolled, and refused for what the table says" % name, "" if rolled.returncode == 0 and p.returncode == 4 and said else "status %d, %d: %s" % (rolled.returncode, p.returncode, p.stderr[-200:]))


def models():
    found = [Model(p) for p in sorted(glob.glob(os.path.join(t.tests, "models", "families", "*.onnx")))]
    for pick in picked:
        if not any(pick in m.name for m in found): t.case(pick, "no check is called so, and no model")
    return [m for m in found if not picked or any(p in m.name for p in picked)]


def table(found):
    rows = [("family", "exporter", "opset", "attention", "mask", "layers", "cycles", "cosine")] + [m.row() for m in found]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for r in rows: t.note("  ".join(x.ljust(w) for x, w in zip(r, widths)).rstrip())


def choose(found):
    """Of the models that share a core, one is simulated, another one every day."""
    cores, day = {}, datetime.date.today().toordinal()
    for m in found: cores.setdefault(m.core, []).append(m)
    cores.pop("", None)
    turn = 0
    for same in cores.values():                          # of each core, and of the cores that only one has
        for m in same:
            m.due = t.full or bool(picked) or turn % TURN == day % TURN
            turn += 1
        for k, m in enumerate(x for x in same if x.due): m.simulated = t.full or k == day // TURN % sum(x.due for x in same)
    t.note("%d different cores; simulated today: %s" % (len(cores), " ".join(m.name for m in found if m.core and m.due and m.simulated)))


def check_families():
    if not t.have("families", "iverilog"): return
    found = models()
    together(*[m.compile for m in found])
    choose(found)
    together(*[m.judge for m in found if m.due])
    table(found)
    for m in found: t.case(m.name + (": refused, and why" if m.words else "" if m.due else ": compiled; its words are judged another day"), m.verdict())
    good = [m for m in found if not m.words and not m.why]
    refused = [m for m in found if m.words and not m.verdict()]
    t.note("%d of %d exports are hardware; %d say why not" % (len(good), len(found), len(refused)))
    if not picked: t.case("at least %d exports become hardware" % LEAST, "" if len(good) >= LEAST else str(len(good)))


# of a model whose layers take turns in reading two masks, one layer's is other: where queries i and keys j see each other anew, or no more
OTHER = {"another window": (lambda i, j: i - j > 1, -3.4e38, ""), "one key seen": (lambda i, j: (i == 6) & (j == 1), 0.0, "in layer 1 query 6 "),
         "one key hidden": (lambda i, j: (i == 6) & (j == 5), -3.4e38, "")}


def one_layer(path, layer, where, number, out):
    """The mask that the softmax of one layer adds gets a number where the places say so."""
    m = onnx.load(path)
    made = {o: n for n in m.graph.node for o in n.output}
    add = [made[n.input[0]] for n in m.graph.node if n.op_type == "Softmax"][layer]
    shape = [d.dim_value for d in m.graph.input[0].type.tensor_type.shape.dim]
    places = where(*np.indices((shape[-1], shape[-1])))[None, None]
    held = [onnx.numpy_helper.from_array(x, n) for x, n in ((places, "places"), (np.float32(number), "number"))]
    m.graph.initializer.extend(held)
    m.graph.node.insert(list(m.graph.node).index(add), onnx.helper.make_node("Where", ["places", "number", add.input[1]], ["other_mask"]))
    add.input[1] = "other_mask"
    onnx.save(m, out)


def check_one_layer():
    if not t.have("one layer's mask", "iverilog"): return
    path = os.path.join(t.tests, "models", "families", "olmo3-d18-eager-mask-left-l.onnx")
    for title, (where, number, said) in OTHER.items():
        other = t.at(title.replace(" ", "") + "-d20-eager-mask-left-k.onnx")
        one_layer(path, 1, where, number, other)
        m = Model(other)
        m.words = said
        m.compile()
        m.judge()
        t.case("one layer's mask: " + title, m.verdict())


# of FlauBERT, whose layers multiply padding by 0 at their end: what keys are hidden by, or what is multiplied by, is something else
BLANKS = {"keys that count": ("Equal", 1), "no key": ("Equal", 2), "keys below 0": ("Equal", -1), "half": ("Mul", np.float32(0.5)), "another token's": ("Gather", np.arange(7, -1, -1))}


def blanked(graph, op, number):
    """What compares the mask reads this number; what multiplies reads the mask's product with it, or the mask in this order."""
    graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(number), "other"))
    for n in graph.node:
        if n.op_type == op == "Equal": n.input[1] = "other"
        if n.op_type == "Mul" and op != "Equal" and n.input[1] == "_to_copy": n.input[1] = "by_other"
    if op == "Equal": return
    cast = next(i for i, n in enumerate(graph.node) if n.output[0] == "_to_copy")
    graph.node.insert(cast + 1, onnx.helper.make_node(op, ["_to_copy", "other"], ["by_other"], **(dict(axis=1) if op == "Gather" else {})))


def beside(graph):
    """A convolution over three tokens is added in front of each product."""
    arrays = {"window": np.full((16, 1, 1, 3), 0.3, np.float32), "grid": np.array([1, 1, 8, 16]), "line": np.array([1, 8, 16])}
    graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in arrays.items())
    for n in [n for n in graph.node if n.op_type == "Mul" and n.input[1] == "_to_copy" and n.output[0] != "mul"]:
        x = n.input[0]
        for op, more, how in (("Reshape", ["grid"], {}), ("Transpose", [], dict(perm=[0, 3, 1, 2])), ("Conv", ["window"], dict(group=16, pads=[0, 1, 0, 1])), ("Transpose", [], dict(perm=[0, 2, 3, 1])),
                              ("Reshape", ["line"], {}), ("Add", [n.input[0]], {})):
            made = onnx.helper.make_node(op, [x, *more], [x + "_" + op], **how)
            graph.node.insert(list(graph.node).index(n), made)
            x = made.output[0]
        n.input[0] = x


def one_more(graph):
    """XLM counts the words itself: what is multiplied by counts one more than what hides keys."""
    at = next(i for i, n in enumerate(graph.node) if n.op_type == "Less")
    graph.node.insert(at, onnx.helper.make_node("LessOrEqual", graph.node[at].input, ["more"]))
    next(n for n in graph.node if n.output[0] == "unsqueeze_1").input[0] = "more"


def check_blank():
    """Padding that layers set to 0 goes behind the loop where its keys are hidden; where something else says what is hidden it is refused."""
    flaubert, xlm = "flaubert-d18-eager-mask-a", "xlm-d18-eager-none-a"
    cases = [(title, flaubert, functools.partial(blanked, op=op, number=number), "which is neither 1") for title, (op, number) in BLANKS.items()]
    cases += [("read by a convolution", flaubert, beside, "a convolution reads tokens beside"), ("one word more", xlm, one_more, "which is neither 1")]
    for title, name, change, words in cases:
        m = onnx.load(os.path.join(t.tests, "models", "families", name + ".onnx"))
        change(m.graph)
        p = t.call("compile", t.write("blank.onnx", m.SerializeToString()), "-o", t.at("blank"), text=True)
        said = "each layer multiplies its tokens by", words
        t.case("padding is set to 0, and something else is hidden, or multiplied by: %s: refused" % title, "" if p.returncode == 4 and all(x in p.stderr for x in said) else "status %d: %s" % (p.returncode, p.stderr[-300:]))


def other_keys(graph):
    """The layer without rotary embedding projects its keys from another value than its queries, as from an encoder's output."""
    node = next(n for n in graph.node if n.output[0] == "linear_22")
    node.input[0] = next(n.output[0] for n in graph.node if n.op_type == "Gather" and "embed" in n.input[0])


def other_heads(graph):
    """The layer without rotary embedding has twice the heads, of half the channels."""
    held, at = {i.name: i for i in graph.initializer}, [k for k, n in enumerate(graph.node) if n.op_type == "Softmax"]
    for n in graph.node[at[2] + 20:at[3]]:
        if n.op_type not in ("Reshape", "Expand"): continue
        old = onnx.numpy_helper.to_array(held[n.input[1]])
        new = {(1, 8, -1, 4): (1, 8, -1, 2), (1, 2, 2, 8, 4): (1, 4, 2, 8, 2), (1, 4, 8, 4): (1, 8, 8, 2)}.get(tuple(old))
        if not new: continue
        n.input[1] = n.output[0] + "_narrow"
        graph.initializer.append(onnx.numpy_helper.from_array(np.array(new, np.int64), n.input[1]))
    del graph.value_info[:]


def iterations(path):
    """Of each loop that roll makes."""
    t.good("roll", path, "-o", t.at("turned.json"), "--report", t.at("turned-report.json"))
    return [loop["iterations"] for loop in json.loads(t.read(t.at("turned-report.json")))["loops"]]


def check_unturned():
    """Layers without rotary embedding among others turn by no angle: one loop of all layers, and the floats are what they were, bit for bit."""
    for name in "cohere2-d20-eager-mask-left-l", "exaone4-ts17-sdpa-mask-left-l":
        path = os.path.join(t.tests, "models", "families", name + ".onnx")
        t.good("read", path, "--onnx", "-o", t.at("read.onnx"))
        feed = draw(onnx.load(path).graph, np.random.default_rng(5))
        a, b = (session(p).run(None, feed)[0] for p in (path, t.at("read.onnx")))
        t.case("%s: turned by no angle, floats stay" % name, "" if np.abs(a - b).max() < 1e-5 else "largest difference %g" % np.abs(a - b).max())
        layers = sum(n.op_type == "Softmax" for n in onnx.load(path).graph.node)
        t.case("%s: one loop of all layers" % name, "" if iterations(path) == [layers] else str(iterations(path)))
    for what, change in ("keys of another value than queries", other_keys), ("heads of another width", other_heads):
        m = onnx.load(os.path.join(t.tests, "models", "families", "cohere2-d20-eager-mask-left-l.onnx"))
        change(m.graph)
        feed = draw(m.graph, np.random.default_rng(5))
        t.good("read", t.write("other.onnx", m.SerializeToString()), "--onnx", "-o", t.at("read.onnx"))
        far = np.abs(session(t.at("other.onnx")).run(None, feed)[0] - session(t.at("read.onnx")).run(None, feed)[0]).max()
        t.case("%s are not turned" % what, ", ".join(n.name for n in onnx.load(t.at("read.onnx")).graph.node if "_turn" in n.name) or ("" if far < 1e-5 else "largest difference %g" % far))


def check_verilator():
    if not t.have("families in Verilator", "verilator"): return
    for name in t.drawn(COMPILED, 5):
        out = t.at(name + "-verilator")
        t.good("compile", os.path.join(t.tests, "models", "families", name + ".onnx"), "-o", out, *FLAGS)
        t.case("the same words in Verilator: " + name, Run(out, "--frames", "3", verilator=True).why())


if __name__ == "__main__":
    if "--table" in sys.argv: sys.exit(sys.stdout.write(readme_table()[0]) and None)
    checks = check_table, check_families, check_one_layer, check_blank, check_unturned, check_verilator
    picked = [word for word in sys.argv[2:] if not any(word in check.__name__ for check in checks)]          # models; harness.py knows the names of checks alone
    if picked: sys.argv[2:] = ["families"]
    t.main(*checks, floor=272)
