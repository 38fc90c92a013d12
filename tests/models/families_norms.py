#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports encoders for families/ that norm more than the residual stream: queries and keys of each head, whole projections, what
sublayers make. Called as families.py is."""
import families
import torch
import torch.nn.functional as F
from families import WORDS
from torch import nn


class Llama(nn.Module):
    """Hugging Face's: in float32, and back."""
    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape))

    def forward(self, x):
        y = x.to(torch.float32)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


class Gemma(nn.Module):
    """Zeros are no change: 1 + w."""
    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(c))

    def forward(self, x):
        y = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        return (y * (1.0 + self.weight.float())).type_as(x)


class Cohere(nn.Module):
    """A mean, no bias, and a scale of its own for each head: [heads, channels], before heads go first."""
    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        return self.weight * ((x - mean) * torch.rsqrt((x - mean).pow(2).mean(-1, keepdim=True) + 1e-5))


class Cosine(nn.Module):
    """lucidrains' vit-pytorch: F.normalize, and a gain of its own for each head, behind heads that went first."""
    def __init__(self, heads, d):
        super().__init__()
        self.d, self.gamma = d, nn.Parameter(torch.ones(heads, 1, d))

    def forward(self, x): return F.normalize(x, dim=-1) * self.d ** 0.5 * self.gamma


class Attention(nn.Module):
    def __init__(self, s, kind):
        super().__init__()
        self.heads, self.head, self.kind = s.heads, s.hidden // s.heads, kind
        if kind in ("timm", "vit22b"): self.qkv = nn.Linear(s.hidden, 3 * s.hidden)
        else: self.q_proj, self.k_proj, self.v_proj = (nn.Linear(s.hidden, s.hidden, bias=kind == "cosine") for _ in range(3))
        self.proj = nn.Linear(s.hidden, s.hidden)
        norm = {"timm": lambda: nn.LayerNorm(self.head, eps=1e-6), "vit22b": lambda: nn.LayerNorm(self.head, bias=False), "qwen3": lambda: Llama(self.head),
                "cohere": lambda: Cohere(s.heads, self.head), "cosine": lambda: Cosine(s.heads, self.head), "olmo2": lambda: Llama(s.hidden), "gemma2": nn.Identity}[kind]
        self.q_norm, self.k_norm = norm(), norm()

    def forward(self, x):
        b, n, c = x.shape
        shape = b, n, self.heads, self.head
        if self.kind in ("timm", "vit22b"):                                         # heads go first, then norms
            q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, self.head).permute(2, 0, 3, 1, 4).unbind(0)
            q, k = self.q_norm(q), self.k_norm(k)
        elif self.kind in ("qwen3", "cohere"):                                      # norms, then heads go first
            q, k = self.q_norm(self.q_proj(x).view(shape)).transpose(1, 2), self.k_norm(self.k_proj(x).view(shape)).transpose(1, 2)
            v = self.v_proj(x).view(shape).transpose(1, 2)
        elif self.kind == "cosine":
            q, k, v = (f(x).view(shape).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
            q, k = self.q_norm(q), self.k_norm(k)
        else:                                                                       # norms of whole projections
            q, k, v = (f.view(shape).transpose(1, 2) for f in (self.q_norm(self.q_proj(x)), self.k_norm(self.k_proj(x)), self.v_proj(x)))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    """norm: before sublayers (pre), behind them (post: OLMo 2), both (sandwich: Gemma 2)."""
    def __init__(self, s, kind, norm, where):
        super().__init__()
        self.attn, self.mlp = Attention(s, kind), nn.Sequential(nn.Linear(s.hidden, s.inner), nn.GELU(), nn.Linear(s.inner, s.hidden))
        none = nn.Identity
        before, behind = none if where == "post" else norm, none if where == "pre" else norm
        self.norm1, self.norm2, self.norm3, self.norm4 = (f() if f is none else f(s.hidden) for f in (before, behind, before, behind))

    def forward(self, x):
        x = x + self.norm2(self.attn(self.norm1(x)))
        return x + self.norm4(self.mlp(self.norm3(x)))


class Encoder(nn.Module):
    def __init__(self, s, kind, norm, where="pre", image=False):
        super().__init__()
        self.image, count = image, (s.image // 4) ** 2 if image else s.tokens
        self.embed = nn.Conv2d(3, s.hidden, 4, 4) if image else nn.Embedding(WORDS, s.hidden)
        self.pos_embed = nn.Parameter(torch.zeros(1, count, s.hidden))
        self.blocks, self.norm = nn.ModuleList(Block(s, kind, norm, where) for _ in range(s.layers)), norm(s.hidden)

    def forward(self, x):
        x = (self.embed(x).flatten(2).transpose(1, 2) if self.image else self.embed(x)) + self.pos_embed
        for b in self.blocks: x = b(x)
        return self.norm(x)


def encoder(*kind, **options):
    def make(s, attention, mask, batch):
        x = torch.randn(batch, 3, s.image, s.image) if options.get("image") else torch.randint(0, WORDS, (batch, s.tokens))
        return Encoder(s, *kind, **options), (x,)
    return make


families.FAMILIES = {
    "qk-timm": encoder("timm", nn.LayerNorm, image=True), "qk-vit22b": encoder("vit22b", lambda c: nn.LayerNorm(c, bias=False), image=True),
    "qk-qwen3": encoder("qwen3", Llama), "qk-cohere": encoder("cohere", Cohere), "qk-cosine": encoder("cosine", nn.LayerNorm),
    "qk-olmo2": encoder("olmo2", Llama, where="post"), "sandwich": encoder("gemma2", Gemma, where="sandwich"),
}

families.ROWS = """
qk-timm a d18 - none         qk-timm b ts17 - none        qk-vit22b d d23 - none       qk-vit22b a ts17 - none
qk-qwen3 d d18 - none        qk-qwen3 a ts17 - none       qk-qwen3 a d23 - none        qk-cohere a d18 - none
qk-cohere d ts17 - none      qk-cosine a d18 - none       qk-cosine d ts17 - none      qk-olmo2 a d18 - none
qk-olmo2 b ts17 - none       sandwich a d18 - none        sandwich b ts17 - none
"""
families.SEED = 301

if __name__ == "__main__": families.main()
