#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports 6 more encoders for families/: feed-forward layers with gates, of every shape that they come in. Called as families.py is."""
import families
import torch
import torch.nn.functional as F
from families import Own, WORDS, padded
from torch import nn


class Gate(nn.Module):
    """act(x Wg) * (x Wu), then back. packed: how gate and up lie in one projection; None: in two."""
    def __init__(self, c, inner, act, packed=None, bias=False):
        super().__init__()
        self.act, self.packed, self.down = act, packed, nn.Linear(inner, c, bias=bias)
        if packed: self.gate_up = nn.Linear(c, 2 * inner, bias=bias)
        else: self.gate, self.up = nn.Linear(c, inner, bias=bias), nn.Linear(c, inner, bias=bias)

    def forward(self, x):
        if self.packed == "glu": return self.down(F.glu(self.gate_up(x), -1))
        if self.packed is None: gate, up = self.gate(x), self.up(x)
        elif self.packed == "chunk": gate, up = self.gate_up(x).chunk(2, dim=-1)
        elif self.packed == "interleaved": gate, up = (self.gate_up(x)[..., i::2] for i in range(2))
        elif self.packed == "pairs": gate, up = self.gate_up(x).view(*x.shape[:-1], 2, -1).unbind(-2)
        return self.down(self.act(gate) * up)


class Squared(nn.Module):
    """Primer: the square of ReLU, a function of one value."""
    def __init__(self, c, inner):
        super().__init__()
        self.up, self.down = nn.Linear(c, inner), nn.Linear(inner, c)

    def forward(self, x):
        y = F.relu(self.up(x))
        return self.down(y * y)


def with_mlp(mlp, style="separate", norm="rms-rsqrt", post=False):
    def make(s, attention, mask, batch):
        model = Own(s, style, norm=norm, post=post)
        for b in model.blocks: b.mlp = mlp(s)
        x = torch.randint(0, WORDS, (batch, s.tokens))
        return model, (x, padded(s.tokens, batch) == 1) if mask == "mask" else (x,)
    return make


def gelu_tanh(x): return F.gelu(x, approximate="tanh")


families.FAMILIES = {
    "geglu": with_mlp(lambda s: Gate(s.hidden, s.inner, F.gelu)),
    "reglu-packed": with_mlp(lambda s: Gate(s.hidden, s.inner, F.relu, "chunk", True), norm=""),
    "glu": with_mlp(lambda s: Gate(s.hidden, s.inner, None, "glu", True), norm="", post=True),
    "silu-packed": with_mlp(lambda s: Gate(s.hidden, s.inner, F.silu, "pairs")),
    "gates-interleaved": with_mlp(lambda s: Gate(s.hidden, s.inner, gelu_tanh, "interleaved", True)),
    "relu-squared": with_mlp(lambda s: Squared(s.hidden, s.inner)),
}

families.ROWS = """
geglu a d18 - none         reglu-packed b ts17 - none         glu c d20 - mask
silu-packed d d24 - none   gates-interleaved e ts17 - none    relu-squared f ts17 - none
"""
families.SEED = 201

if __name__ == "__main__": families.main()
