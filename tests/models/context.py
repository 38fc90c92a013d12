#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports small decoders with their caches as inputs and outputs, in the forms that are in use, for context/.

    python tests/models/context.py OUTDIR [NAME ...]     needs torch==2.13.0, transformers==5.24.*, onnxscript; no network

A name says family, exporter (d: torch.onnx.export(dynamo=True), ts: TorchScript) with opset, and the form:
    one       one Dim for the pasts of all layers
    dims      a Dim for each of them
    mask      with attention_mask [1, past + step]
    cropped   of windows of 24 tokens, whose presents are the last 23
    stacked   all pasts in one tensor [layers, 2, 1, heads, past, channels]
    static    buffers of 16 positions, written where `length` says
    single    for one new token alone: ids [1, 1]; single/ holds these
    placed    of those: with position_ids [1, 1]; without them a model counts from how long the past is
    fixed     of those: the past is 15 tokens long, whatever comes
    hand      those that are written by hand for one token at a time, class Hand:
              piled     ids [1], rows [1, channels], heads by view(heads, 1, width), all pasts in one tensor, places from how long they are
              fresh     keys and values [1, tokens, heads, width], of which the new ones alone leave; where they are is a scalar
              shifted   a window of 15 tokens, keys and values in one tensor, returned without the oldest; a mask of bools [1, 16]
tests/test_context.py reads the files. How weights become lively: families.py says so."""
import os
import pathlib
import sys
os.environ["HF_HUB_OFFLINE"] = "1"
import families
import torch
import transformers as tf
from torch import nn
from transformers.cache_utils import DynamicCache, StaticCache

WORDS, LAYERS, HIDDEN, HEADS, KEYS, WIDTH, INNER, CONTEXT, PAST, STEP = 40, 3, 16, 4, 2, 4, 24, 16, 5, 3
SIZE = dict(vocab_size=WORDS, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KEYS,
            head_dim=WIDTH, max_position_embeddings=32)
FAMILIES = {
    "llama": lambda a: tf.LlamaForCausalLM(tf.LlamaConfig(**SIZE, attn_implementation=a)),
    "qwen3": lambda a: tf.Qwen3ForCausalLM(tf.Qwen3Config(**SIZE, attn_implementation=a)),
    "gemma3": lambda a: tf.Gemma3ForCausalLM(tf.Gemma3TextConfig(**SIZE, attn_implementation=a, sliding_window=6,
                                                                 layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "mistral": lambda a: tf.MistralForCausalLM(tf.MistralConfig(**SIZE, attn_implementation=a, sliding_window=24)),
    "opt": lambda a: tf.OPTForCausalLM(tf.OPTConfig(vocab_size=WORDS, hidden_size=HIDDEN, ffn_dim=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                                                    max_position_embeddings=32, word_embed_proj_dim=HIDDEN, dropout=0.0, attn_implementation=a)),
    "gpt2": lambda a: tf.GPT2LMHeadModel(tf.GPT2Config(vocab_size=WORDS, n_positions=32, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_inner=INNER,
                                                       attn_implementation=a)),
}
MODELS = ["llama-d18-eager-one", "llama-d18-sdpa-dims-mask", "llama-ts17-sdpa-mask", "qwen3-d18-sdpa-one", "qwen3-d23-eager-dims", "gemma3-d18-eager-dims-mask",
          "gpt2-d18-eager-dims", "opt-d18-eager-dims", "gpt2-ts17-sdpa-mask", "llama-d18-eager-static", "gpt2-d18-eager-stacked", "llama-ts17-sdpa-stacked", "mistral-d18-eager-one-cropped",
          "llama-ts17-eager-static", "mistral-ts17-eager-one-cropped"]
SINGLES = ["llama-d18-sdpa-single", "llama-d18-eager-single-mask-placed", "llama-d23-sdpa-single-mask", "llama-ts17-eager-single-mask-placed", "llama-d18-sdpa-single-placed-fixed",
           "llama-d18-sdpa-single-fixed", "llama-d18-sdpa-single-static", "llama-ts17-eager-single-static", "gpt2-d18-sdpa-single", "gpt2-ts17-eager-single-mask-placed-fixed",
           "hand-d18-single-piled", "hand-d18-single-fresh", "hand-d18-single-shifted", "llama-ts17-sdpa-single", "opt-ts17-eager-single-mask-fixed", "opt-d18-eager-single-mask", "qwen3-d20-sdpa-single-mask-placed", "gemma3-d18-eager-single-placed", "gemma3-d18-sdpa-single-mask"]


class Step(nn.Module):
    """ids, a mask (where there is one), positions, pasts -> logits, presents."""
    def __init__(self, model, mask, cropped=False):
        super().__init__()
        self.model, self.mask, self.config = model, mask, model.config if cropped else None

    def forward(self, input_ids, *rest):
        mask, rest = (rest[0], rest[1:]) if self.mask else (None, rest)
        positions, past = rest[0], rest[1:]
        cache = DynamicCache([(past[2 * i], past[2 * i + 1]) for i in range(LAYERS)], config=self.config)
        y = self.model(input_ids=input_ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
        return (y.logits, *[t for layer in y.past_key_values.layers for t in (layer.keys, layer.values)])


class Single(nn.Module):
    """ids [1, 1], a mask and positions (where there are any), pasts -> logits, presents."""
    def __init__(self, model, mask, placed):
        super().__init__()
        self.model, self.mask, self.placed = model, mask, placed

    def forward(self, input_ids, *rest):
        rest = list(rest)
        mask = rest.pop(0) if self.mask else None
        positions = rest.pop(0) if self.placed else None
        cache = DynamicCache([(rest[2 * i], rest[2 * i + 1]) for i in range(LAYERS)])
        y = self.model(input_ids=input_ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
        return (y.logits, *[t for layer in y.past_key_values.layers for t in (layer.keys, layer.values)])


class Hand(nn.Module):
    """A decoder of one token at a time, as people write it: HEADS heads, places by a table (piled) or by turning pairs."""
    def __init__(self, form):
        super().__init__()
        self.form, self.words, self.places = form, nn.Embedding(WORDS, HIDDEN), nn.Embedding(32, HIDDEN)
        self.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in range(2 * LAYERS + 1))
        self.maps = nn.ModuleList(nn.ModuleList(nn.Linear(a, b) for a, b in [(HIDDEN, HIDDEN)] * 4 + [(HIDDEN, INNER), (INNER, HIDDEN)]) for _ in range(LAYERS))
        self.head = nn.Linear(HIDDEN, WORDS)

    def turned(self, x, place):
        angle = place.float() / torch.tensor([1.0, 10.0])
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)

    def piled(self, q, k, v, past):
        q, k, v = (t.view(HEADS, 1, WIDTH) for t in (q, k, v))
        k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        p = torch.softmax(q @ k.transpose(-1, -2) / WIDTH ** 0.5, -1)
        return (p @ v).view(1, HIDDEN), torch.stack([k, v])

    def fresh(self, q, k, v, past, place):
        q, k, v = (t.view(1, 1, HEADS, WIDTH) for t in (q, k, v))
        q, k = self.turned(q, place), self.turned(k, place)
        keys, values = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        p = torch.softmax(torch.einsum("bthd,bshd->bhts", q, keys) / WIDTH ** 0.5, -1)
        return torch.einsum("bhts,bshd->bthd", p, values).reshape(1, 1, HIDDEN), (k, v)

    def shifted(self, q, k, v, past, place, valid):
        q, k, v = (t.view(1, HEADS, WIDTH).transpose(0, 1) for t in (q, k, v))
        window = torch.cat([past, torch.stack([self.turned(k, place), v])], 2)
        scores = torch.einsum("htd,hsd->hts", self.turned(q, place), window[0]) / WIDTH ** 0.5
        p = torch.softmax(scores.masked_fill(~valid[None], -3e4), -1)
        return torch.einsum("hts,hsd->htd", p, window[1]).transpose(0, 1).reshape(1, HIDDEN), window[:, :, 1:]

    def forward(self, input_ids, *rest):
        rest, x, presents = list(rest), self.words(input_ids), []
        if self.form == "piled": x = x + self.places(torch.full_like(input_ids, rest[0].shape[3]))
        around = [] if self.form == "piled" else [rest.pop(0)] if self.form == "fresh" else [rest.pop(0), rest.pop(0)]
        for i, (q, k, v, o, up, down) in enumerate(self.maps):
            y = self.norms[2 * i](x)
            past = rest[0][i] if self.form == "piled" else rest[2 * i:2 * i + 2] if self.form == "fresh" else rest[i]
            y, present = getattr(self, self.form)(q(y), k(y), v(y), past, *around)
            presents += present if self.form == "fresh" else [present]
            x = x + o(y)
            x = x + down(torch.relu(up(self.norms[2 * i + 1](x))))
        logits = self.head(self.norms[-1](x))
        return (logits, torch.stack(presents)) if self.form == "piled" else (logits, *presents)


class Stacked(nn.Module):
    """ids, positions, all pasts as one -> logits, all presents as one."""
    def __init__(self, model):
        super().__init__()
        self.step = Step(model, False)

    def forward(self, input_ids, positions, past):
        logits, *present = self.step(input_ids, positions, *[past[i, k] for i in range(LAYERS) for k in (0, 1)])
        return logits, torch.stack([torch.stack(present[2 * i:2 * i + 2]) for i in range(LAYERS)])


class Static(nn.Module):
    """The same with buffers of CONTEXT positions, of which `length` are full."""
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, length, *past):
        cache = StaticCache(config=self.model.config, max_cache_len=CONTEXT)
        for i, layer in enumerate(cache.layers):
            layer.lazy_initialization(past[2 * i], past[2 * i + 1])
            layer.keys, layer.values, layer.cumulative_length = past[2 * i].clone(), past[2 * i + 1].clone(), length.clone()
        positions = (length + torch.arange(input_ids.shape[1]))[None]
        y = self.model(input_ids=input_ids, position_ids=positions, past_key_values=cache, use_cache=True)
        return (y.logits, *[t for layer in cache.layers for t in (layer.keys, layer.values)])


def names(of): return ["%s.%d.%s" % (of, i, what) for i in range(LAYERS) for what in ("key", "value")]


def make_hand(name, out):
    _, exporter, _, form = name.split("-")
    torch.manual_seed(0)
    model, open_ = families.enliven(Hand(form), families.SEED), torch.export.Dim.DYNAMIC
    one, place = torch.randint(0, WORDS, (1,)), torch.tensor(PAST)
    if form == "piled":
        args, inputs, shapes = (one, torch.randn(LAYERS, 2, HEADS, PAST, WIDTH)), ["past_key_values"], (None, ({3: open_},))
    elif form == "fresh":
        args, inputs, shapes = (one[None], place, *[torch.randn(1, PAST, HEADS, WIDTH) for _ in range(2 * LAYERS)]), ["position", *names("past_key_values")], (None, (None,) + ({1: open_},) * 2 * LAYERS)
    else:
        args = (one, place[None], torch.ones(1, CONTEXT, dtype=torch.bool), *[torch.randn(2, HEADS, CONTEXT - 1, WIDTH) for _ in range(LAYERS)])
        inputs, shapes = ["position_ids", "attention_mask", *["past_key_values.%d" % i for i in range(LAYERS)]], None
    outputs = ["logits", *[n.replace("past_key_values", "present") for n in inputs if "past" in n]]
    path = str(pathlib.Path(out) / (name + ".onnx"))
    families.save(model, args, path, exporter[0], int(exporter[1:]), ["input_ids"] + inputs, output_names=outputs, **(dict(dynamic_shapes=shapes) if shapes else {}))
    print("%s %d bytes" % (name, os.path.getsize(path)), flush=True)


def make_single(name, out):
    family, exporter, attention, *form = name.split("-")
    torch.manual_seed(0)
    model, heads = families.enliven(FAMILIES[family](attention), families.SEED), HEADS if family in ("gpt2", "opt") else KEYS
    mask, placed, fixed, static = ("mask" in form, "placed" in form, "fixed" in form, "static" in form)
    dynamo, opset, length = exporter.startswith("d"), int(exporter.strip("dts")), CONTEXT if static else CONTEXT - 1 if fixed else PAST
    past, ids = [torch.randn(1, heads, length, WIDTH) for _ in range(2 * LAYERS)], torch.randint(0, WORDS, (1, 1))
    pasts, presents = names("past_key_values"), names("present")
    if static:
        model, args, inputs = Static(model), (ids, torch.tensor(PAST), *past), ["input_ids", "length", *pasts]
    else:
        model, inputs = Single(model, mask, placed), ["input_ids", *["attention_mask"] * mask, *["position_ids"] * placed, *pasts]
        args = (ids, *[torch.ones(1, length + 1, dtype=torch.int64)] * mask, *[torch.tensor([[length]])] * placed, *past)
    options = {}
    if dynamo and not fixed and not static:
        open_ = torch.export.Dim.DYNAMIC
        options = dict(dynamic_shapes=(None, ({1: open_},) * mask + (None,) * placed + ({2: open_},) * len(past)))
    elif not fixed and not static:
        options = dict(dynamic_axes={**({"attention_mask": {1: "all"}} if mask else {}), **{n: {2: "past"} for n in pasts}, **{n: {2: "all"} for n in presents}})
    path = str(pathlib.Path(out) / (name + ".onnx"))
    families.save(model, args, path, exporter[0] if dynamo else "ts", opset, inputs, output_names=["logits"] + presents, **options)
    print("%s %d bytes" % (name, os.path.getsize(path)), flush=True)


def make(name, out):
    family, exporter, attention, *form = name.split("-")
    torch.manual_seed(0)
    model, heads = families.enliven(FAMILIES[family](attention), families.SEED), HEADS if family in ("gpt2", "opt") else KEYS
    mask, static = "mask" in form, "static" in form
    dynamo, opset = exporter.startswith("d"), int(exporter.strip("dts"))
    past = [torch.randn(1, heads, CONTEXT if static else PAST, WIDTH) for _ in range(2 * LAYERS)]
    ids = torch.randint(0, WORDS, (1, STEP))
    step = torch.export.Dim("step", min=2, max=16) if dynamo else "step"
    if static:
        args, inputs, shapes = (ids, torch.tensor(PAST), *past), ["input_ids", "length"], ({1: step}, None, ({},) * len(past))
    else:
        masks = (torch.ones(1, PAST + STEP, dtype=torch.int64),) if mask else ()
        args = (ids, *masks, torch.arange(PAST, PAST + STEP)[None], *past)
        inputs = ["input_ids"] + ["attention_mask"] * mask + ["position_ids"]
        one = torch.export.Dim("past", min=2, max=16) if dynamo else "past"
        pasts = tuple({2: torch.export.Dim.DYNAMIC if "dims" in form else one} for _ in past)
        shapes = ({1: step}, ({1: torch.export.Dim.AUTO},) * mask + ({1: step},) + pasts)
    pasts, presents = (["past_key_values"], ["presents"]) if "stacked" in form else (names("past_key_values"), names("present"))
    inputs, outputs = inputs + pasts, ["logits"] + presents
    if "stacked" in form:
        args = (*args[:-2 * LAYERS], torch.stack(past).reshape(LAYERS, 2, 1, heads, PAST, WIDTH))
        shapes = ({1: step}, {1: step}, {4: one})
    path = str(pathlib.Path(out) / (name + ".onnx"))
    if dynamo: options = dict(dynamic_shapes=shapes)
    elif static: options = dict(dynamic_axes={"input_ids": {1: "step"}})
    else: options = dict(dynamic_axes={"input_ids": {1: "step"}, "position_ids": {1: "step"}, **({"attention_mask": {1: "all"}} if mask else {}),
                                       **{n: {4 if "stacked" in form else 2: "past"} for n in pasts}, **{n: {4 if "stacked" in form else 2: "all"} for n in presents}})
    families.save(Static(model) if static else Stacked(model) if "stacked" in form else Step(model, mask, "cropped" in form), args, path, exporter[0] if dynamo else "ts", opset, inputs, output_names=outputs, **options)
    print("%s %d bytes" % (name, os.path.getsize(path)), flush=True)


if __name__ == "__main__":
    for name in sys.argv[2:] or MODELS + SINGLES: (make_hand if "hand" in name else make_single if "single" in name else make)(name, sys.argv[1])
