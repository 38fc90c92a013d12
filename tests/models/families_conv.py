#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes models/conv/: bodies with convolutions over a grid of tokens, tiny, with random weights, exported by both exporters.

    python tests/models/families_conv.py tests/models/conv [NAME ...]       (torch, transformers)

convnext: a stage of the model; segformer: its layers, whose FFN has a window; mixer: a window over tokens, ReLU6, 1 x 1, all channels first; dilated,
grouped: convnext's block with another window, which has no hardware; pooling: an average over 3 x 3, zeros beyond the border, less the token itself;
poolformer: the model, whose averages are over fewer tokens there; conformer: blocks for sound, whose gate's halves lie one behind the other, channels first."""
import families
import torch
import transformers as tf
from families import Call
from torch import nn
from transformers.models.segformer.modeling_segformer import SegformerLayer


def convnext(model, config):
    def make(s, attention, mask, batch):
        c = config(num_channels=3, patch_size=4, hidden_sizes=[s.hidden // 2], depths=[s.layers], num_stages=1, layer_scale_init_value=0.5)
        return Call(model(c), ["pixel_values"]), (torch.randn(batch, 3, 20, 24),)
    return make


class Layers(nn.Module):
    """Layers of a kind, behind a projection to patches."""
    def __init__(self, s, layer, tokens):
        super().__init__()
        self.patches, self.tokens = nn.Conv2d(3, s.hidden // 2, 4, 4), tokens
        self.layers = nn.ModuleList(layer(s.hidden // 2) for _ in range(s.layers))

    def forward(self, x):
        x = self.patches(x)
        height, width = x.shape[-2:]
        if self.tokens: x = x.flatten(2).transpose(1, 2)
        for layer in self.layers: x = layer(x, height, width)
        return x


class Segformer(SegformerLayer):
    def forward(self, x, height, width):
        x = super().forward(x, height, width)
        return x[0] if isinstance(x, tuple) else x


class Block(nn.Module):
    """ConvNeXt's, with any window."""
    def __init__(self, c, window):
        super().__init__()
        self.window, self.norm, self.up, self.down = window(c), nn.LayerNorm(c), nn.Linear(c, 2 * c), nn.Linear(2 * c, c)

    def forward(self, x, height, width):
        y = self.norm(self.window(x).permute(0, 2, 3, 1))
        return x + self.down(torch.relu(self.up(y))).permute(0, 3, 1, 2)


class Pooling(nn.Module):
    """PoolFormer's block, but for norms of each token and zeros beyond the border."""
    def __init__(self, c):
        super().__init__()
        self.pool, self.one, self.two, self.up, self.down = nn.AvgPool2d(3, 1, 1), nn.LayerNorm(c), nn.LayerNorm(c), nn.Linear(c, 2 * c), nn.Linear(2 * c, c)

    def forward(self, x, height, width):
        y = self.one(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = x + (self.pool(y) - y)
        return x + self.down(torch.relu(self.up(self.two(x.permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)


class Mixer(nn.Module):
    """All of it channels first."""
    def __init__(self, c):
        super().__init__()
        self.up, self.window, self.down = nn.Conv2d(c, 2 * c, 1), nn.Conv2d(2 * c, 2 * c, (5, 3), padding=(2, 1), groups=2 * c, bias=False), nn.Conv2d(2 * c, c, 1)

    def forward(self, x, height, width): return x + self.down(nn.functional.relu6(self.window(nn.functional.relu6(self.up(x)))))


class Conformer(nn.Module):
    """As people write them: half an FFN, attention, a gate by 1 x 1 and a window over time with a batch norm, half an FFN, a norm."""
    def __init__(self, s):
        super().__init__()
        c = s.hidden
        half = lambda: nn.Sequential(nn.LayerNorm(c), nn.Linear(c, s.inner), nn.SiLU(), nn.Linear(s.inner, c))
        self.first, self.second, self.one, self.two, self.end = half(), half(), nn.LayerNorm(c), nn.LayerNorm(c), nn.LayerNorm(c)
        self.attention = nn.MultiheadAttention(c, s.heads, batch_first=True)
        self.gate, self.window, self.norm, self.down = nn.Conv1d(c, 2 * c, 1), nn.Conv1d(c, c, 5, padding=2, groups=c), nn.BatchNorm1d(c), nn.Conv1d(c, c, 1)

    def forward(self, x):
        x = x + 0.5 * self.first(x)
        y = self.one(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        y = nn.functional.glu(self.gate(self.two(x).transpose(1, 2)), dim=1)
        x = x + self.down(nn.functional.silu(self.norm(self.window(y)))).transpose(1, 2)
        return self.end(x + 0.5 * self.second(x))


class Sound(nn.Module):
    names = ["sound"]

    def __init__(self, s):
        super().__init__()
        self.start, self.layers = nn.Linear(6, s.hidden), nn.Sequential(*[Conformer(s) for _ in range(s.layers)])

    def forward(self, sound): return self.layers(self.start(sound))


def layers(layer, tokens=False):
    def make(s, attention, mask, batch): return Layers(s, layer, tokens), (torch.randn(batch, 3, 20, 24),)
    return make


def segformer(c):
    config = tf.SegformerConfig(attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0, _attn_implementation="eager")
    return Segformer(config, c, 2, 0.0, 1, 2)


def poolformer(s, attention, mask, batch):
    c = tf.PoolFormerConfig(mlp_ratio=2.0, depths=[s.layers], hidden_sizes=[s.hidden // 2], patch_sizes=[4], strides=[4], padding=[0], num_encoder_blocks=1)
    return Call(tf.PoolFormerModel(c), ["pixel_values"]), (torch.randn(batch, 3, 20, 24),)


families.FAMILIES = {
    "conformer": lambda s, attention, mask, batch: (Sound(s), (torch.randn(batch, s.tokens, 6),)),
    "pooling": layers(Pooling), "poolformer": poolformer,
    "convnext": convnext(tf.ConvNextModel, tf.ConvNextConfig), "segformer": layers(segformer, True), "mixer": layers(Mixer),
    "dilated": layers(lambda c: Block(c, lambda c: nn.Conv2d(c, c, 3, padding=2, dilation=2, groups=c))),
    "grouped": layers(lambda c: Block(c, lambda c: nn.Conv2d(c, c, 3, padding=1, groups=c // 2))),
}
families.ROWS = """
convnext d d18 - none   convnext d ts17 - none  segformer a d18 - none  mixer d d18 - none  mixer a ts17 - none
dilated a d18 - none    grouped a d18 - none    pooling d d18 - none    pooling a ts17 - none   poolformer d d18 - none
poolformer a ts17 - none        poolformer d d20 - none  poolformer a d21 - none
conformer a d18 - none  conformer d ts17 - none
"""
families.SEED = 701

if __name__ == "__main__": families.main()
