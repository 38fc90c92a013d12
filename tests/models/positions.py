#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports the encoders in positions/: rotary position embedding as people export it, small, with random but lively weights.

    python tests/models/positions.py OUTDIR [NAME ...]     needs torch==2.13.0, transformers (latent attention: 5.24), onnxscript; no network

A name says family, exporter (d: torch.onnx.export(dynamo=True), ts: TorchScript) with opset, size. Nothing in the project runs this:
tests/test_positions.py reads the files. How weights become lively: families.py says so."""
import argparse
import pathlib
import torch
import torch.nn.functional as F
import transformers as tf
from torch import nn
from families import WORDS, Call, Size, bertlike, enliven, save


def text(model, config, **more):
    def make(s):
        c = config(vocab_size=WORDS, pad_token_id=0, **more, **bertlike(s))
        return Call(model(c), ["input_ids"]), (torch.randint(3, WORDS, (1, s.tokens)),)
    return make


def dino(s):
    c = tf.DINOv3ViTConfig(hidden_size=s.hidden, num_hidden_layers=s.layers, num_attention_heads=s.heads, intermediate_size=s.inner, image_size=s.image, patch_size=4, num_register_tokens=2)
    return Call(tf.DINOv3ViTModel(c), ["pixel_values"]), (torch.randn(1, 3, s.image, s.image),)


def latent(model, config, value, **more):
    """Latent attention: queries and keys of 8 channels a head, of which 4 turn, keys and values out of 10; every token is seen (a mask that is held: the older exporter has no aten::diff)."""
    def make(s):
        c = config(vocab_size=WORDS, pad_token_id=0, q_lora_rank=12, kv_lora_rank=10, qk_nope_head_dim=4, qk_rope_head_dim=4, v_head_dim=value, use_cache=False, **more, **bertlike(s))
        return Call(model(c), ["input_ids"], torch.ones(1, s.tokens, dtype=torch.int64), position_ids=torch.arange(s.tokens)[None]), (torch.randint(3, WORDS, (1, s.tokens)),)
    return make


class Attention(nn.Module):
    """Rotary embedding in the styles of people's own code; head is a multiple of four."""
    def __init__(self, s, style):
        super().__init__()
        self.heads, self.head, self.style = s.heads, s.hidden // s.heads, style
        self.q_proj, self.k_proj, self.v_proj, self.out = (nn.Linear(s.hidden, s.hidden) for _ in range(4))
        self.turning = self.head // 2 if style == "partial" else self.head
        a = torch.arange(s.tokens)[:, None] * 20.0 ** (-torch.arange(0, self.turning, 2) / self.turning)
        self.register_buffer("cos", a.cos())
        self.register_buffer("sin", a.sin())

    def complex(self, x):
        """Llama's own: pairs are complex numbers."""
        y = x.reshape(*x.shape[:-1], -1, 2)
        c, s = self.cos[None, :, None], self.sin[None, :, None]
        return torch.stack([y[..., 0] * c - y[..., 1] * s, y[..., 0] * s + y[..., 1] * c], -1).flatten(3)

    def flash(self, x):
        """flash-attn: x1 cos - x2 sin, x1 sin + x2 cos, halves."""
        a, b = x.chunk(2, dim=-1)
        c, s = self.cos[:, None], self.sin[:, None]
        return torch.cat((a * c - b * s, a * s + b * c), dim=-1)

    def neighbours(self, x):
        """GPT-J, lucidrains: every two, tables repeated."""
        c, s = (y.repeat_interleave(2, 1)[None, :, None] for y in (self.cos, self.sin))
        return x * c + torch.stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape) * s

    def partial(self, x):
        """GPT-NeoX, Phi."""
        y, rest = x[..., :self.turning], x[..., self.turning:]
        c, s = (torch.cat((t, t), -1)[:, None] for t in (self.cos, self.sin))
        half = self.turning // 2
        return torch.cat((y * c + torch.cat((-y[..., half:], y[..., :half]), -1) * s, rest), -1)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = (f(x).view(b, n, self.heads, self.head) for f in (self.q_proj, self.k_proj, self.v_proj))
        turn = getattr(self, self.style)
        y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (turn(q), turn(k), v)))
        return self.out(y.transpose(1, 2).reshape(b, n, c))


class Own(nn.Module):
    def __init__(self, s, style):
        super().__init__()
        self.words, self.norm = nn.Embedding(WORDS, s.hidden), nn.LayerNorm(s.hidden)
        self.layers = nn.ModuleList(nn.ModuleDict({"norm1": nn.LayerNorm(s.hidden), "attn": Attention(s, style), "norm2": nn.LayerNorm(s.hidden),
                                                   "mlp": nn.Sequential(nn.Linear(s.hidden, s.inner), nn.GELU(), nn.Linear(s.inner, s.hidden))}) for _ in range(s.layers))

    def forward(self, ids):
        x = self.words(ids)
        for b in self.layers:
            x = x + b["attn"](b["norm1"](x))
            x = x + b["mlp"](b["norm2"](x))
        return self.norm(x)


def own(style): return lambda s: (Own(s, style), (torch.randint(0, WORDS, (1, s.tokens)),))


FAMILIES = {"esm": text(tf.EsmModel, tf.EsmConfig, position_embedding_type="rotary", token_dropout=False, mask_token_id=1), "roformer": text(tf.RoFormerModel, tf.RoFormerConfig),
            "minicpm3": latent(tf.MiniCPM3Model, tf.MiniCPM3Config, 6), "deepseek3": latent(tf.DeepseekV3Model, tf.DeepseekV3Config, 8, first_k_dense_replace=9), "dinov3": dino, **{k: own(k) for k in ("complex", "flash", "neighbours", "partial")}}
ROWS = ["esm-d18-a", "esm-ts17-a", "roformer-d18-a", "roformer-ts17-d", "dinov3-d18-a", "complex-d18-a", "complex-ts17-d", "flash-d18-a", "flash-ts17-a", "neighbours-d18-d",
        "neighbours-ts17-a", "partial-d18-a", "partial-ts17-a", "flash-d23-a", "dinov3-d23-a", "minicpm3-d18-d", "minicpm3-ts17-d", "deepseek3-d18-d"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(ROWS):
        if a.names and name not in a.names: continue
        family, exporter, size = name.split("-")
        kind = exporter.rstrip("0123456789")
        torch.manual_seed(seed)
        model, args = FAMILIES[family](Size(size))
        save(enliven(model, seed), args, str(a.out / (name + ".onnx")), kind, int(exporter[len(kind):]), getattr(model, "names", ["x"]))


if __name__ == "__main__": main()
