#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports the encoders in families/: what people export by default, small, with random but lively weights.

    python tests/models/families.py OUTDIR [NAME ...]     needs torch==2.13.0, transformers==4.57.*, onnxscript; no network

A name says family, exporter (d: torch.onnx.export(dynamo=True), ts: TorchScript) with opset, attention and mask:
`bert-d18-sdpa-mask`. Nothing in the project runs this: tests/test_families.py reads the files. How weights become
lively: export.py says so."""
import argparse
import os
import pathlib
import warnings
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")
import onnx
import torch
import torch.nn.functional as F
import transformers as tf
from torch import nn

# layers, hidden, heads, inner, tokens, pixels a side (in patches of 4): small enough that Icarus takes a second for a frame
SIZES = {"a": (2, 16, 2, 32, 8, 8), "b": (2, 20, 2, 40, 7, 8), "c": (2, 28, 2, 56, 6, 12), "d": (3, 16, 4, 32, 9, 8),
         "e": (2, 20, 5, 60, 5, 12), "f": (4, 12, 1, 24, 10, 8)}
WORDS, SEED = 60, 1


class Size:
    def __init__(self, key): self.layers, self.hidden, self.heads, self.inner, self.tokens, self.image = SIZES[key]


# ---- weights, files ------------------------------------------------------------------------------------------------

SHARP = ("query", "key", "q_proj", "k_proj", "q_lin", "k_lin", ".q.", ".k.", "to_q", "to_k")
PACKED = ("qkv", "in_proj", "c_attn", "to_qkv")


def enliven(model, seed):
    """Unit-gain matrices, sharp attention, biases and norms that differ from layer to layer."""
    g = torch.Generator().manual_seed(seed)
    tables = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=g)
        gain = 2.0 if any(s in name for s in SHARP) else 1.4 if any(s in name for s in PACKED) else 1.0
        if p.ndim == 1: p.data += (0.2 if "weight" in name else 0.1) * noise
        elif id(p) in tables: p.data = noise
        elif p.ndim == 2 and "embed" not in name.split(".")[-1]: p.data = gain * noise / p.shape[1] ** 0.5
        elif p.ndim == 4 and p.shape[0] > 1: p.data = noise / p[0].numel() ** 0.5
        else: p.data = 0.5 * noise                                                  # class tokens, learned positions
    return model.eval()


def save(model, args, path, exporter, opset, names, **options):
    """Exports, and drops all metadata but the scopes' names: stack traces hold local paths."""
    if exporter == "d":
        program = torch.onnx.export(model, args, dynamo=True, opset_version=opset, verbose=False, input_names=names, **options)
        program.save(path, external_data=False)
    else:
        torch.onnx.export(model, args, path, dynamo=False, opset_version=opset, input_names=names, **options)
    m = onnx.load(path)
    for field in m.metadata_props, m.graph.metadata_props, m.graph.value_info: del field[:]
    for n in m.graph.node:
        keep = [p for p in n.metadata_props if p.key == "pkg.torch.onnx.name_scopes"]
        del n.metadata_props[:]
        n.metadata_props.extend(keep)
        n.doc_string = ""
    m.doc_string = m.graph.doc_string = ""
    onnx.save(m, path)


# ---- transformers --------------------------------------------------------------------------------------------------

class Call(nn.Module):
    """Inputs by name; the first output only. A mask that is held is a constant of the graph."""
    def __init__(self, m, names, held=None, **options):
        super().__init__()
        self.m, self.names, self.held, self.options = m, names, held, options

    def forward(self, *a):
        more = {} if self.held is None else {"attention_mask": self.held}
        return self.m(**dict(zip(self.names, a)), **more, **self.options, return_dict=False)[0]


def padded(n, batch=1):
    mask = torch.ones(batch, n, dtype=torch.int64)
    mask[:, n * 3 // 4:] = 0
    return mask


def text(model, config, **more):
    """A text model. mask: none, mask (an input), held (a constant), square (an input, which keys each query sees)."""
    def make(s, attention, mask, batch):
        c = config(vocab_size=WORDS, attn_implementation=attention, pad_token_id=0, **more, **NAMES.get(config.__name__, bertlike)(s))
        ids = torch.randint(3, WORDS, (batch, s.tokens))
        keys = padded(s.tokens, batch)
        if mask == "mask": return Call(model(c), ["input_ids", "attention_mask"]), (ids, keys)
        if mask == "square": return Call(model(c), ["input_ids", "attention_mask"]), (ids, torch.tril(torch.ones(batch, s.tokens, s.tokens, dtype=torch.int64)))
        return Call(model(c), ["input_ids"], keys if mask == "held" else None), (ids,)
    return make


def sized(model, config, size, **more):
    """As text, without a cache; its config takes the sizes that `size` names."""
    def make(s, attention, mask, batch):
        m = model(config(vocab_size=WORDS, attn_implementation=attention, use_cache=False, **more, **size(s)))
        ids = torch.randint(3, WORDS, (batch, s.tokens))
        if mask == "mask": return Call(m, ["input_ids", "attention_mask"]), (ids, padded(s.tokens, batch))
        return Call(m, ["input_ids"], padded(s.tokens, batch) if mask == "held" else None), (ids,)
    return make


def bertlike(s):
    return dict(hidden_size=s.hidden, num_hidden_layers=s.layers, num_attention_heads=s.heads, intermediate_size=s.inner,
                max_position_embeddings=s.tokens + 4)


NAMES = {"DistilBertConfig": lambda s: dict(dim=s.hidden, n_layers=s.layers, n_heads=s.heads, hidden_dim=s.inner,
                                            max_position_embeddings=s.tokens + 4),
         "ElectraConfig": lambda s: dict(embedding_size=s.hidden // 2, **bertlike(s)),
         "AlbertConfig": lambda s: dict(embedding_size=s.hidden // 2, **bertlike(s))}


def vision(model, config, **more):
    def make(s, attention, mask, batch):
        c = config(hidden_size=s.hidden, num_hidden_layers=s.layers, num_attention_heads=s.heads, intermediate_size=s.inner,
                   mlp_ratio=s.inner // s.hidden, image_size=s.image, patch_size=4, attn_implementation=attention, **more)
        return Call(model(c), ["pixel_values"]), (torch.randn(batch, 3, s.image, s.image),)
    return make


# ---- torch.nn ------------------------------------------------------------------------------------------------------

class Torch(nn.Module):
    """nn.TransformerEncoder behind a table of words, as PyTorch's tutorials have it."""
    def __init__(self, s, batch_first, norm_first, act):
        super().__init__()
        layer = nn.TransformerEncoderLayer(s.hidden, s.heads, s.inner, activation=act, batch_first=batch_first,
                                           norm_first=norm_first)
        self.batch_first = batch_first
        self.words, self.places = nn.Embedding(WORDS, s.hidden), nn.Parameter(torch.zeros(1, s.tokens, s.hidden))
        self.encoder = nn.TransformerEncoder(layer, s.layers, nn.LayerNorm(s.hidden) if norm_first else None)

    def forward(self, ids, src_key_padding_mask=None):
        x = self.words(ids) + self.places
        if not self.batch_first: x = x.transpose(0, 1)
        x = self.encoder(x, src_key_padding_mask=src_key_padding_mask)
        return x if self.batch_first else x.transpose(0, 1)


class Bare(nn.Module):
    """nn.TransformerEncoder alone, its input the activations."""
    def __init__(self, s, batch_first, norm_first, act):
        super().__init__()
        layer = nn.TransformerEncoderLayer(s.hidden, s.heads, s.inner, activation=act, batch_first=batch_first,
                                           norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, s.layers)

    def forward(self, src): return self.encoder(src)


def encoder(batch_first, norm_first, act, bare=False):
    def make(s, attention, mask, batch):
        if bare: return Bare(s, batch_first, norm_first, act), (torch.randn((batch, s.tokens, s.hidden) if batch_first else (s.tokens, batch, s.hidden)),)
        ids = torch.randint(0, WORDS, (batch, s.tokens))
        return Torch(s, batch_first, norm_first, act), (ids, padded(s.tokens, batch) == 0) if mask == "mask" else (ids,)
    return make


# ---- written by hand -----------------------------------------------------------------------------------------------

class LayerNorm(nn.Module):
    """By sub-steps: pow and sqrt, or the product with itself and rsqrt."""
    def __init__(self, c, form):
        super().__init__()
        self.weight, self.bias, self.form = nn.Parameter(torch.ones(c)), nn.Parameter(torch.zeros(c)), form

    def forward(self, x):
        d = x - x.mean(-1, keepdim=True)
        if self.form == "sqrt": return self.weight * (d / torch.sqrt(d.pow(2).mean(-1, keepdim=True) + 1e-5)) + self.bias
        if self.form == "var": return d / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt() * self.weight + self.bias
        return d * torch.rsqrt((d * d).mean(-1, keepdim=True) + 1e-6) * self.weight + self.bias


class RMSNorm(nn.Module):
    def __init__(self, c, form):
        super().__init__()
        self.weight, self.form, self.c = nn.Parameter(torch.ones(c)), form, c

    def forward(self, x):
        if self.form == "sqrt": return x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + 1e-6) * self.weight
        if self.form == "norm": return F.normalize(x, dim=-1) * self.c ** 0.5 * self.weight           # lucidrains
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))                # Llama


NORMS = {"": nn.LayerNorm, "torch-rms": lambda c: nn.RMSNorm(c, eps=1e-6)}
for kind in "sqrt", "var", "rsqrt": NORMS["ln-" + kind] = lambda c, kind=kind: LayerNorm(c, kind)
for kind in "sqrt", "norm", "rsqrt": NORMS["rms-" + kind] = lambda c, kind=kind: RMSNorm(c, kind)


class Attention(nn.Module):
    """Self-attention in the styles of people's own code. Takes and gives [batch, tokens, channels]."""
    def __init__(self, s, style):
        super().__init__()
        self.heads, self.head, self.style = s.heads, s.hidden // s.heads, style
        if style in ("separate", "einsum", "fairseq"):
            self.to_q, self.to_k, self.to_v = (nn.Linear(s.hidden, s.hidden) for _ in range(3))
        else: self.qkv = nn.Linear(s.hidden, 3 * s.hidden, bias=style != "chunk")
        self.proj = nn.Linear(s.hidden, s.hidden)

    def packed(self, x):
        """q, k and v as [batch, heads, tokens, head], from one product."""
        b, n, c = x.shape
        y, h, d = self.qkv(x), self.heads, self.head
        if self.style in ("timm", "timm-sdpa"): return y.reshape(b, n, 3, h, d).permute(2, 0, 3, 1, 4).unbind(0)
        if self.style == "index":                                                   # qkv[0], qkv[1], qkv[2]
            y = y.reshape(b, n, 3, h, d).permute(2, 0, 3, 1, 4)
            return y[0], y[1], y[2]
        if self.style == "inner":                                                   # qkv[:, :, 0], and heads go first later
            y = y.view(b, n, 3, h, d)
            return tuple(y[:, :, i].transpose(1, 2) for i in range(3))
        if self.style == "megatron":                                                # each head's q, k, v lie side by side
            return tuple(p.transpose(1, 2) for p in y.view(b, n, h, 3 * d).chunk(3, -1))
        if self.style == "slice": parts = y[..., :c], y[..., c:2 * c], y[..., 2 * c:]
        elif self.style == "chunk": parts = y.chunk(3, dim=-1)                       # lucidrains' vit-pytorch
        else: parts = y.split(c, dim=2)                                             # nanoGPT
        return tuple(p.view(b, n, h, d).transpose(1, 2) for p in parts)

    def forward(self, x, mask=None):
        b, n, c = x.shape
        if self.style == "fairseq": return self.fairseq(x, mask)
        if self.style == "einsum": return self.einsum(x, mask)
        if self.style == "separate": q, k, v = (f(x).view(b, n, self.heads, self.head).transpose(1, 2) for f in (self.to_q, self.to_k, self.to_v))
        else: q, k, v = self.packed(x)
        if self.style == "causal": y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif self.style in ("timm-sdpa", "split-sdpa"):
            y = F.scaled_dot_product_attention(q, k, v, None if mask is None else mask[:, None, None, :])
        else:
            scores = q @ k.transpose(-2, -1) * self.head ** -0.5
            if mask is not None: scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
            y = scores.softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(b, n, c))

    def einsum(self, x, mask):
        b, n, c = x.shape
        q, k, v = (f(x).view(b, n, self.heads, self.head) for f in (self.to_q, self.to_k, self.to_v))
        scores = torch.einsum("bthd,bshd->bhts", q, k) / self.head ** 0.5
        if mask is not None: scores = scores + (1.0 - mask[:, None, None, :].float()) * -10000.0
        return self.proj(torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v).reshape(b, n, c))

    def fairseq(self, x, mask):
        """Tokens first; heads beside the batch, bmm."""
        x = x.transpose(0, 1)
        n, b, c = x.shape
        q, k, v = (f(x).contiguous().view(n, b * self.heads, self.head).transpose(0, 1) for f in (self.to_q, self.to_k, self.to_v))
        p = torch.softmax(torch.bmm(q * self.head ** -0.5, k.transpose(1, 2)), -1)
        return self.proj(torch.bmm(p, v).transpose(0, 1).contiguous().view(n, b, c)).transpose(0, 1)


class Gated(nn.Module):
    def __init__(self, c, inner):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(c, inner, bias=False), nn.Linear(inner, c, bias=False), nn.Linear(c, inner, bias=False)

    def forward(self, x): return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, s, style, norm, post, act):
        super().__init__()
        self.norm1, self.attn, self.norm2, self.post = NORMS[norm](s.hidden), Attention(s, style), NORMS[norm](s.hidden), post
        self.mlp = Gated(s.hidden, s.inner) if act == "swiglu" else nn.Sequential(nn.Linear(s.hidden, s.inner), act(), nn.Linear(s.inner, s.hidden))

    def forward(self, x, mask=None):
        if self.post:
            x = self.norm1(x + self.attn(x, mask))
            return self.norm2(x + self.mlp(x))
        x = x + self.attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Own(nn.Module):
    """Words or an image's patches, blocks, norm."""
    def __init__(self, s, style, norm="", post=False, act=nn.GELU, image=False):
        super().__init__()
        count = (s.image // 4) ** 2 + 1 if image else s.tokens
        if image: self.patch_embed, self.cls_token = nn.Conv2d(3, s.hidden, 4, 4), nn.Parameter(torch.zeros(1, 1, s.hidden))
        else: self.words = nn.Embedding(WORDS, s.hidden)
        self.image, self.pos_embed = image, nn.Parameter(torch.zeros(1, count, s.hidden))
        self.blocks, self.norm = nn.ModuleList(Block(s, style, norm, post, act) for _ in range(s.layers)), NORMS[norm](s.hidden)

    def forward(self, x, mask=None):
        if self.image: x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), self.patch_embed(x).flatten(2).transpose(1, 2)], 1)
        else: x = self.words(x)
        x = x + self.pos_embed
        for b in self.blocks: x = b(x, mask)
        return self.norm(x)


def own(style, **options):
    def make(s, attention, mask, batch):
        x = torch.randn(batch, 3, s.image, s.image) if options.get("image") else torch.randint(0, WORDS, (batch, s.tokens))
        return Own(s, style, **options), (x, padded(s.tokens, batch) == 1) if mask == "mask" else (x,)
    return make


class QuickGELU(nn.Module):
    def forward(self, x): return x * torch.sigmoid(1.702 * x)


class OpenAI(nn.Module):
    """CLIP's vision tower as OpenAI wrote it: tokens first, nn.MultiheadAttention."""
    def __init__(self, s):
        super().__init__()
        self.conv1, self.ln_pre, self.ln_post = nn.Conv2d(3, s.hidden, 4, 4, bias=False), nn.LayerNorm(s.hidden), nn.LayerNorm(s.hidden)
        self.class_embedding, self.positional_embedding = nn.Parameter(torch.zeros(s.hidden)), nn.Parameter(torch.zeros((s.image // 4) ** 2 + 1, s.hidden))
        self.resblocks = nn.ModuleList(nn.ModuleDict({
            "ln_1": nn.LayerNorm(s.hidden), "attn": nn.MultiheadAttention(s.hidden, s.heads), "ln_2": nn.LayerNorm(s.hidden),
            "mlp": nn.Sequential(nn.Linear(s.hidden, s.inner), QuickGELU(), nn.Linear(s.inner, s.hidden))}) for _ in range(s.layers))

    def forward(self, x):
        x = self.conv1(x)
        x = x.reshape(x.shape[0], x.shape[1], -1).permute(0, 2, 1)
        x = torch.cat([self.class_embedding + torch.zeros(x.shape[0], 1, x.shape[-1]), x], dim=1)
        x = self.ln_pre(x + self.positional_embedding).permute(1, 0, 2)
        for b in self.resblocks:
            y = b["ln_1"](x)
            x = x + b["attn"](y, y, y, need_weights=False)[0]
            x = x + b["mlp"](b["ln_2"](x))
        return self.ln_post(x.permute(1, 0, 2))


def openai(s, attention, mask, batch): return OpenAI(s), (torch.randn(batch, 3, s.image, s.image),)


# ---- the table -----------------------------------------------------------------------------------------------------

FAMILIES = {
    "bert": text(tf.BertModel, tf.BertConfig),
    "roberta": text(tf.RobertaModel, tf.RobertaConfig),
    "xlmr": text(tf.XLMRobertaModel, tf.XLMRobertaConfig),
    "mpnet": text(tf.MPNetModel, tf.MPNetConfig),
    "distilbert": text(tf.DistilBertModel, tf.DistilBertConfig),
    "electra": text(tf.ElectraModel, tf.ElectraConfig),
    "albert": text(tf.AlbertModel, tf.AlbertConfig),
    "siglip-text": text(tf.SiglipTextModel, tf.SiglipTextConfig),
    "clip-text": text(tf.CLIPTextModel, tf.CLIPTextConfig, bos_token_id=1, eos_token_id=2),
    "vit": vision(tf.ViTModel, tf.ViTConfig),
    "deit": vision(tf.DeiTModel, tf.DeiTConfig),
    "beit": vision(tf.BeitModel, tf.BeitConfig, use_absolute_position_embeddings=True),
    "dinov2": vision(tf.Dinov2Model, tf.Dinov2Config),
    "siglip-vision": vision(tf.SiglipVisionModel, tf.SiglipVisionConfig),
    "clip-vision": vision(tf.CLIPVisionModel, tf.CLIPVisionConfig),
    "openai-clip": openai,
    "bare-seq-post-relu": encoder(False, False, "relu", bare=True),
    "bare-batch-pre-gelu": encoder(True, True, "gelu", bare=True),
    "timm": own("timm", image=True), "timm-sdpa": own("timm-sdpa", image=True), "index": own("index", image=True),
    "nanogpt": own("split"), "nanogpt-sdpa": own("split-sdpa"), "nanogpt-causal": own("causal"), "slice": own("slice", post=True), "chunk": own("chunk", image=True),
    "inner": own("inner"), "megatron": own("megatron"), "einsum": own("einsum", post=True), "fairseq": own("fairseq", post=True, act=nn.ReLU),
    "ln-sqrt": own("separate", norm="ln-sqrt"), "ln-var": own("separate", norm="ln-var", post=True), "ln-rsqrt": own("separate", norm="ln-rsqrt", post=True),
    "rms-rsqrt": own("separate", norm="rms-rsqrt"), "rms-sqrt": own("separate", norm="rms-sqrt"),
    "rms-norm": own("chunk", norm="rms-norm"), "rms-torch": own("split-sdpa", norm="torch-rms"),
    "swiglu": own("separate", norm="rms-rsqrt", act="swiglu"),
}
for first in True, False:
    for pre in True, False:
        for act in "relu", "gelu":
            FAMILIES["torch-%s-%s-%s" % ("batch" if first else "seq", "pre" if pre else "post", act)] = encoder(first, pre, act)

ROWS = """
bert a d18 eager none          bert b d18 sdpa none           bert a d18 sdpa mask            bert c d20 eager mask
bert a ts17 eager mask         bert b ts17 sdpa mask          bert a ts14 sdpa none           bert d d23 sdpa mask
bert c d24 sdpa none           bert b d21 sdpa held           roberta a d18 sdpa mask         roberta b ts17 sdpa mask
roberta d d23 sdpa none        distilbert a d18 sdpa mask     distilbert b ts17 sdpa mask     distilbert c d18 eager none
electra a d18 eager mask       electra d ts17 eager mask      albert a d18 sdpa mask          albert b ts17 sdpa none
xlmr a d22 sdpa mask           mpnet a d18 eager mask         siglip-text a d18 sdpa none     siglip-text b ts17 sdpa mask
clip-text a d18 sdpa none      vit a d18 sdpa none            vit b ts17 sdpa none            vit c d24 sdpa none
vit e d18 eager none           deit a d18 sdpa none           deit b ts17 sdpa none           beit a d18 eager none
dinov2 a d18 sdpa none         dinov2 b ts17 eager none       siglip-vision a d18 sdpa none   siglip-vision b ts17 sdpa none
clip-vision a d18 sdpa none    clip-vision b ts17 eager none  openai-clip a d18 - none        openai-clip b ts17 - none
torch-batch-post-relu a d18 - none   torch-batch-post-relu b ts17 - none  torch-batch-post-relu a d18 - mask  torch-batch-pre-gelu a d18 - none
torch-batch-pre-gelu b ts17 - mask   torch-seq-post-relu a d18 - none     torch-seq-post-gelu b ts17 - none   torch-seq-pre-relu a d20 - mask
torch-seq-pre-gelu b ts17 - none     torch-batch-post-gelu c d23 - none   torch-batch-pre-relu d d24 - mask   bare-seq-post-relu a d18 - none
bare-batch-pre-gelu b ts17 - none    torch-seq-post-relu b ts17 - mask
timm a d18 - none              timm-sdpa b d18 - none         timm-sdpa a ts17 - none         timm a ts17 - none
timm-sdpa e d23 - none         index b d18 - none             nanogpt a d18 - none            nanogpt b ts17 - mask
nanogpt-sdpa a d20 - none      nanogpt-sdpa b ts17 - mask     slice a d18 - none              slice b ts17 - none
chunk a d18 - none             chunk b ts17 - none            inner a d18 - none              inner b ts17 - none
megatron a d18 - none          megatron b ts17 - none         einsum a d18 - mask             einsum b ts17 - none
fairseq a d18 - none           fairseq b ts17 - none          ln-sqrt a d18 - none            ln-var b ts17 - none
ln-rsqrt a ts17 - none         rms-rsqrt a d18 - none         rms-sqrt b ts17 - none          rms-torch a d23 - none
rms-torch b d18 - none         rms-norm a d18 - none
bert a d18 sdpa mask-dynamic   bert a ts17 sdpa mask-dynamic  vit a ts17 sdpa none-dynamic    distilbert d d20 sdpa mask-dynamic
roberta e d24 sdpa mask        deit f d20 sdpa none           dinov2 a d23 sdpa none          siglip-vision e d24 sdpa none
bert a d18 sdpa none-batch2    vit a ts17 sdpa none-batch2    bert a d18 sdpa none-half       vit a ts17 eager none-half
bert a d18 sdpa square         nanogpt-causal a d18 - none    nanogpt-causal a d23 - none     clip-text a ts17 eager none
swiglu a d18 - none               nanogpt a ts9 - mask            slice a ts10 - none             inner b ts11 - none
megatron a ts12 - none            vit a ts9 eager none            bert a ts11 eager mask
"""


def rows(text):
    """name -> family, size, exporter, opset, attention, mask."""
    words = text.split()
    for i in range(0, len(words), 5):
        family, size, exporter, attention, mask = words[i:i + 5]
        kind = exporter.rstrip("0123456789")
        yield "-".join(w for w in (family, exporter, attention, mask, size) if w != "-"), (family, size, kind, int(exporter[len(kind):]), attention, mask)


def dynamic(exporter, names, args):
    """Options that leave batch and sequence open, as people give them."""
    axes = [{0: "batch", 1: "sequence"} if x.ndim < 4 else {0: "batch"} for x in args]
    return dict(dynamic_axes=dict(zip(names, axes))) if exporter == "ts" else dict(dynamic_shapes=(tuple(axes),))


def export(row, path, seed):
    family, size, exporter, opset, attention, mask = row
    mask, _, how = mask.partition("-")
    torch.manual_seed(seed)
    # torch.export takes an example's axis of one for a constant
    model, args = FAMILIES[family](Size(size), attention, mask, 2 if how == "batch2" or (how == "dynamic" and exporter == "d") else 1)
    model = enliven(model, seed)
    if how == "half": model, args = model.half(), tuple(x.half() if x.is_floating_point() else x for x in args)
    names = getattr(model, "names", None) or (["ids", "src_key_padding_mask"] if "torch" in family else ["x", "mask"])[:len(args)]
    save(model, args, str(path), exporter, opset, names, **(dynamic(exporter, names, args) if how == "dynamic" else {}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    given.out.mkdir(exist_ok=True)
    for i, (name, row) in enumerate(rows(ROWS)):
        if given.names and not any(n in name for n in given.names): continue
        try:
            export(row, given.out / (name + ".onnx"), SEED + i)
            print(name, flush=True)
        except Exception as e: print("FAILED", name, type(e).__name__, str(e)[:300].replace("\n", " "), flush=True)


if __name__ == "__main__": main()
