#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports models whose tokens move between windows, for moved/: one stage of Swin, spelt as transformers and as torchvision do, plain windows of a sequence, two stages.

    python tests/models/families_moved.py tests/models/moved [NAME ...]       (torch, transformers)

swin: SwinModel; classes: SwinForImageClassification; stages: two of them; torchvision: a block over a grid, packed queries, keys, values; strip: its windows as
wide as the grid, shifted along it; line: windows of a sequence, each token in its own place; v2: Swin V2, whose scores are cosines (whole: of one window); packed: such scores of packed
queries, keys, values, as timm and torchvision write them."""
import families
import torch
import transformers as tf
from families import WORDS, Call
from families_bias import enliven                           # noqa: F401  families' is this one now: tables of biases are lively, too
from torch import nn


def swin(model, depths, config=tf.SwinConfig, side=8, window=4):
    """One patch is 2 x 2 pixels."""
    def make(s, attention, mask, batch):
        c = config(image_size=2 * side, patch_size=2, embed_dim=s.hidden // 2, depths=depths, num_heads=[s.heads] * len(depths), window_size=window, mlp_ratio=2.0)
        return Call(model(c), ["pixel_values"]), (torch.randn(batch, 3, 2 * side, 2 * side),)
    return make


# ---- written by hand ------------------------------------------------------------------------------------------------

class Windows(nn.Module):
    """torchvision's shifted_window_attention: a grid [B, H, W, C] in windows of m x n."""
    def __init__(self, s, size, shift, cosines=False):
        super().__init__()
        (m, n), self.size, self.shift, self.h = size, size, shift, s.heads
        self.scale = nn.Parameter(torch.linspace(1.5, 2.2, s.heads)[:, None, None]) if cosines else None
        self.qkv, self.out = nn.Linear(s.hidden, 3 * s.hidden), nn.Linear(s.hidden, s.hidden)
        self.relative = nn.Parameter(torch.zeros((2 * m - 1) * (2 * n - 1), s.heads))
        row, column = torch.arange(m * n) // n, torch.arange(m * n) % n
        self.register_buffer("index", (row[:, None] - row + m - 1) * (2 * n - 1) + column[:, None] - column + n - 1, persistent=False)

    def regions(self, height, width):
        """-100 between tokens that are neighbours by the shift alone."""
        (m, n), (down, right) = self.size, self.shift
        of = torch.zeros(height, width)
        for i, rows in enumerate((slice(0, height - m), slice(height - m, height - down), slice(height - down, None)) if down else (slice(None),)):
            for j, columns in enumerate((slice(0, width - n), slice(width - n, width - right), slice(width - right, None)) if right else (slice(None),)): of[rows, columns] = 3 * i + j
        of = of.view(height // m, m, width // n, n).transpose(1, 2).reshape(-1, m * n)
        return (of[:, None] != of[:, :, None]) * -100.0

    def forward(self, x):
        (b, height, width, c), (m, n) = x.shape, self.size
        if any(self.shift): x = torch.roll(x, [-s for s in self.shift], (1, 2))
        x = x.view(b, height // m, m, width // n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, m * n, c)
        q, k, v = self.qkv(x).reshape(*x.shape[:2], 3, self.h, c // self.h).permute(2, 0, 3, 1, 4)
        q, k = (q * (c // self.h) ** -0.5, k) if self.scale is None else (nn.functional.normalize(v, dim=-1) for v in (q, k))
        scores = q @ k.transpose(-2, -1)
        if self.scale is not None: scores = scores * self.scale.clamp(max=4.6).exp()
        scores = scores + self.relative[self.index.view(-1)].view(m * n, m * n, -1).permute(2, 0, 1)[None]
        if any(self.shift):
            count = height // m * (width // n)
            scores = scores.view(x.shape[0] // count, count, self.h, m * n, m * n) + self.regions(height, width)[None, :, None]
            scores = scores.view(-1, self.h, m * n, m * n)
        x = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(*x.shape))
        x = x.view(b, height // m, width // n, m, n, c).permute(0, 1, 3, 2, 4, 5).reshape(b, height, width, c)
        return torch.roll(x, self.shift, (1, 2)) if any(self.shift) else x


class Line(nn.Module):
    """Windows of a sequence: each token stays where it is."""
    def __init__(self, s):
        super().__init__()
        self.h = s.heads
        self.q_proj, self.k_proj, self.v_proj, self.out = (nn.Linear(s.hidden, s.hidden) for _ in range(4))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p(x).view(t // 4, 4, self.h, c // self.h).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        return self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, s, attention):
        super().__init__()
        self.attention, self.one, self.two = attention, nn.LayerNorm(s.hidden), nn.LayerNorm(s.hidden)
        self.mlp = nn.Sequential(nn.Linear(s.hidden, 2 * s.hidden), nn.GELU(), nn.Linear(2 * s.hidden, s.hidden))

    def forward(self, x):
        x = x + self.attention(self.one(x))
        return x + self.mlp(self.two(x))


class Stage(nn.Module):
    def __init__(self, s, attention):
        super().__init__()
        self.patches, self.layers = nn.Conv2d(3, s.hidden, 2, 2), nn.ModuleList(Block(s, attention(i)) for i in range(4))

    def forward(self, x):
        x = self.patches(x).permute(0, 2, 3, 1)
        for layer in self.layers: x = layer(x)
        return x


class Text(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.words, self.layers = nn.Embedding(WORDS, s.hidden), nn.ModuleList(Block(s, Line(s)) for _ in range(s.layers))

    def forward(self, input_ids):
        x = self.words(input_ids)
        for layer in self.layers: x = layer(x)
        return x


def stage(size, side, shift=None, cosines=False):
    half = shift or [n // 2 for n in size]
    def make(s, attention, mask, batch):
        return Stage(s, lambda i: Windows(s, size, half if i % 2 else [0, 0], cosines)), (torch.randn(batch, 3, 2 * side[0], 2 * side[1]),)
    return make


families.FAMILIES = {
    "swin": swin(tf.SwinModel, [4]), "classes": swin(tf.SwinForImageClassification, [6], side=4, window=2), "seven": swin(tf.SwinModel, [4], side=14, window=7),
    "stages": swin(tf.SwinModel, [2, 4], window=2), "v2": swin(tf.Swinv2Model, [4], tf.Swinv2Config, side=4, window=2),
    "v2-whole": swin(tf.Swinv2Model, [3], tf.Swinv2Config, side=4, window=4),
    "torchvision": stage((4, 4), (8, 8)), "packed": stage((4, 4), (8, 8), cosines=True), "strip": stage((2, 6), (6, 6), [1, 0]),
    "line": lambda s, attention, mask, batch: (Text(s), (torch.randint(3, WORDS, (batch, 8)),)),
}
families.ROWS = """
swin a d18 - none        swin a ts17 - none       classes a d18 - none     stages a d18 - none      v2 a d18 - none
v2-whole a ts17 - none
packed f d18 - none      packed a ts17 - none
torchvision a d18 - none strip f d18 - none       line a d18 - none        swin a d18 - none-batch2
"""
families.SEED = 811

if __name__ == "__main__": families.main()
