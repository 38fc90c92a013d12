#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports models whose attention has rows of keys and values beside those of the tokens, or a sink, for prefix/.

Called as families.py is (OUTDIR is prefix/); made with transformers 5.23."""
import families
import torch
from families import padded
from torch import nn

WORDS = families.WORDS


class Attention(nn.Module):
    """style: memory (learned rows in front), behind (learned rows, then one of zeros), sink (a score of each head), quiet (a sink of 0), turned (rotary embedding, and rows in front)."""
    def __init__(self, s, style, causal):
        super().__init__()
        self.h, self.d, self.style, self.causal = s.heads, s.hidden // s.heads, style, causal
        self.kv = self.h // 2 if causal and self.h % 2 == 0 else self.h
        self.q_proj, self.out = nn.Linear(s.hidden, s.hidden), nn.Linear(s.hidden, s.hidden)
        self.k_proj, self.v_proj = nn.Linear(s.hidden, self.kv * self.d), nn.Linear(s.hidden, self.kv * self.d)
        rows = {"memory": 3, "behind": 2, "turned": 5}.get(style, 0)
        if rows: self.memory = nn.Parameter(torch.zeros(2, 1, self.kv, rows, self.d))
        if style == "sink": self.sink = nn.Parameter(torch.zeros(s.heads))
        if style == "turned":
            angle = torch.arange(s.tokens)[:, None] * 10000.0 ** (-torch.arange(0, self.d, 2) / self.d)
            self.register_buffer("cos", torch.cat((angle, angle), -1).cos(), persistent=False)
            self.register_buffer("sin", torch.cat((angle, angle), -1).sin(), persistent=False)

    def turn(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat((-b, a), -1) * self.sin

    def beside(self, x, k):
        if self.style in ("memory", "turned"): return torch.cat((self.memory[k].expand(x.shape[0], -1, -1, -1), x), 2)
        if self.style == "behind": return nn.functional.pad(torch.cat((x, self.memory[k].expand(x.shape[0], -1, -1, -1)), 2), (0, 0, 0, 1))
        return x

    def forward(self, x, keep):
        b, t, c = x.shape
        q, k, v = (p(x).view(b, t, -1, self.d).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        if self.style == "turned": q, k = self.turn(q), self.turn(k)
        k, v = (self.beside(y, i).repeat_interleave(self.h // self.kv, 1) for i, y in enumerate((k, v)))
        scores = q @ k.transpose(-1, -2) * self.d ** -0.5
        seen = torch.ones(t, t, dtype=torch.bool).tril() if self.causal else torch.ones(1, t, dtype=torch.bool)
        if keep is not None: seen = seen & keep
        rows = k.shape[2] - t
        sides = (0, rows) if self.style == "behind" else (rows, 0)
        if self.causal or keep is not None: scores = scores.masked_fill(~nn.functional.pad(seen, sides, value=True), torch.finfo(x.dtype).min)
        if self.style in ("sink", "quiet"):                                             # GPT-OSS', and softmax1
            sink = self.sink.view(1, -1, 1, 1).expand(b, -1, t, -1) if self.style == "sink" else torch.zeros(b, self.h, t, 1)
            scores = torch.cat((scores, sink), -1)
            y = (scores - scores.max(-1, keepdim=True).values).softmax(-1)[..., :-1] @ v
        else: y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Torch(nn.Module):
    """PyTorch's own, with bias_k and bias_v (bias), a row of zeros (zero), or both."""
    def __init__(self, s, style, causal):
        super().__init__()
        self.a = nn.MultiheadAttention(s.hidden, s.heads, batch_first=True, add_bias_kv=style != "zero", add_zero_attn=style != "bias")
        self.causal = causal

    def forward(self, x, keep):
        t = x.shape[1]
        later = torch.ones(t, t, dtype=torch.bool).triu(1) if self.causal else None
        return self.a(x, x, x, need_weights=False, attn_mask=later, key_padding_mask=None if keep is None else ~keep[:, 0, 0])[0]


class Layer(nn.Module):
    def __init__(self, s, attention):
        super().__init__()
        self.attention, self.one, self.two = attention, nn.LayerNorm(s.hidden), nn.LayerNorm(s.hidden)
        self.mlp = nn.Sequential(nn.Linear(s.hidden, s.inner), nn.GELU(), nn.Linear(s.inner, s.hidden))

    def forward(self, x, keep):
        x = x + self.attention(self.one(x), keep)
        return x + self.mlp(self.two(x))


class Model(nn.Module):
    def __init__(self, s, make):
        super().__init__()
        self.words, self.layers = nn.Embedding(WORDS, s.hidden), nn.ModuleList(Layer(s, make()) for _ in range(s.layers))

    def forward(self, input_ids, attention_mask=None):
        x, keep = self.words(input_ids), None if attention_mask is None else attention_mask[:, None, None, :].bool()
        for layer in self.layers: x = layer(x, keep)
        return x


def own(kind, style, causal=False):
    def make(s, attention, mask, batch):
        ids = torch.randint(3, WORDS, (batch, s.tokens))
        return Model(s, lambda: kind(s, style, causal)), (ids, padded(s.tokens, batch)) if mask == "mask" else (ids,)
    return make


families.FAMILIES = {"%s%s" % (name, "-causal" * causal): own(kind, style, causal) for causal in (False, True) for name, kind, style in (
    ("memory", Attention, "memory"), ("behind", Attention, "behind"), ("sink", Attention, "sink"), ("quiet", Attention, "quiet"), ("turned", Attention, "turned"),
    ("torch-bias", Torch, "bias"), ("torch-zero", Torch, "zero"), ("torch-both", Torch, "both"))}
families.ROWS = """
memory a d18 - none             memory d d18 - mask             memory-causal d d18 - none      memory e ts17 - none            behind b d18 - none
behind-causal d d20 - none      sink d d18 - mask               sink-causal d d18 - none        quiet a d18 - none              quiet-causal b d23 - none
turned d d18 - none             turned-causal d d18 - none      torch-bias a d18 - none         torch-bias d ts17 - mask        torch-zero b d23 - none
torch-both d d18 - mask         torch-bias-causal a d18 - none  torch-zero-causal d ts17 - none
"""
families.SEED = 1511

if __name__ == "__main__": families.main()
