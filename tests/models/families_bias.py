#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports models whose attention adds a bias that is a parameter, for bias/: by distance, ALiBi, learned for each pair of tokens.

Called as families.py is (OUTDIR is bias/); made with transformers 5.23."""
import families
import torch
import transformers as tf
from families import Call, padded, sized
from torch import nn

WORDS = families.WORDS


def enliven(model, seed):
    """As families does; tables of biases are small numbers, other ones for each distance."""
    model = lively(model, seed)
    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        if "relative" in name: p.data = 1.5 * torch.randn(p.shape, generator=g)
    return model.requires_grad_(False)                          # torch.export has no decomposition of sdpa with a bias that learns


lively, families.enliven = families.enliven, enliven


# ---- transformers ---------------------------------------------------------------------------------------------------

def t5(s): return dict(d_model=s.hidden, d_kv=s.hidden // s.heads, d_ff=s.inner, num_layers=s.layers, num_heads=s.heads, relative_attention_num_buckets=8, relative_attention_max_distance=12)
def bloom(s): return dict(hidden_size=s.hidden, n_layer=s.layers, n_head=s.heads)
def mpt(s): return dict(d_model=s.hidden, n_layers=s.layers, n_heads=s.heads, expansion_ratio=s.inner // s.hidden, max_seq_len=s.tokens + 3)


def beit(**more):
    def make(s, attention, mask, batch):
        c = tf.BeitConfig(hidden_size=s.hidden, num_hidden_layers=s.layers, num_attention_heads=s.heads, intermediate_size=s.inner, image_size=s.image, patch_size=4,
                          use_absolute_position_embeddings=True, attn_implementation=attention, **more)
        return Call(tf.BeitModel(c), ["pixel_values"]), (torch.randn(batch, 3, s.image, s.image),)
    return make


# ---- written by hand ------------------------------------------------------------------------------------------------

class Attention(nn.Module):
    def __init__(self, s, style):
        super().__init__()
        self.h, self.d, self.style, t = s.heads, s.hidden // s.heads, style, s.tokens
        self.q_proj, self.k_proj, self.v_proj, self.out = (nn.Linear(s.hidden, s.hidden) for _ in range(4))
        far = torch.arange(t) - torch.arange(t)[:, None]
        if style == "window":                                                         # Swin's: a table of the window's differences, and an index
            self.relative = nn.Parameter(torch.zeros(2 * t - 1, s.heads))
            self.register_buffer("index", far + t - 1, persistent=False)
        if style == "full": self.relative = nn.Parameter(torch.zeros(1, s.heads, t, t))
        if style == "distance": self.relative = nn.Embedding(2 * t - 1, s.heads)       # of each layer its own
        self.register_buffer("far", far, persistent=False)
        self.register_buffer("slopes", 2.0 ** -(8.0 / s.heads * torch.arange(1, s.heads + 1)).reshape(s.heads, 1, 1), persistent=False)

    def bias(self):
        if self.style == "window": return self.relative[self.index.reshape(-1)].view(*self.index.shape, -1).permute(2, 0, 1).unsqueeze(0)
        if self.style == "full": return self.relative
        if self.style == "distance": return self.relative(self.far + self.far.shape[0] - 1).permute(2, 0, 1)[None]
        return -self.slopes * self.far.abs()                                            # ALiBi, both ways

    def forward(self, x, keep):
        b, t, c = x.shape
        q, k, v = (p(x).view(b, t, self.h, self.d).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        bias = self.bias()
        if self.style == "full":                                                      # in the scores' own scale: the sum is scaled
            scores = (q @ k.transpose(-1, -2) + bias * self.d ** 0.5) / self.d ** 0.5
            if keep is not None: scores = scores.masked_fill(~keep, torch.finfo(x.dtype).min)
            y = scores.softmax(-1) @ v
        else:
            if keep is not None: bias = bias.masked_fill(~keep, torch.finfo(x.dtype).min)
            y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self, s, style):
        super().__init__()
        self.attention, self.one, self.two = Attention(s, style), nn.LayerNorm(s.hidden), nn.LayerNorm(s.hidden)
        self.mlp = nn.Sequential(nn.Linear(s.hidden, s.inner), nn.GELU(), nn.Linear(s.inner, s.hidden))

    def forward(self, x, keep):
        x = x + self.attention(self.one(x), keep)
        return x + self.mlp(self.two(x))


class Encoder(nn.Module):
    def __init__(self, s, style, mask):
        super().__init__()
        self.names = ["input_ids", "attention_mask"][:1 + (mask == "mask")]
        self.words, self.layers = nn.Embedding(WORDS, s.hidden), nn.ModuleList(Layer(s, style) for _ in range(s.layers))

    def forward(self, input_ids, attention_mask=None):
        x, keep = self.words(input_ids), None if attention_mask is None else attention_mask[:, None, None, :].bool()
        for layer in self.layers: x = layer(x, keep)
        return x


def own(style):
    def make(s, attention, mask, batch):
        ids = torch.randint(3, WORDS, (batch, s.tokens))
        return Encoder(s, style, mask), (ids, padded(s.tokens, batch)) if mask == "mask" else (ids,)
    return make


families.FAMILIES = {
    "t5-encoder": sized(tf.T5EncoderModel, tf.T5Config, t5), "t5-gated": sized(tf.T5EncoderModel, tf.T5Config, t5, feed_forward_proj="gated-gelu"),
    "umt5-encoder": sized(tf.UMT5EncoderModel, tf.UMT5Config, t5),
    "bloom": sized(tf.BloomModel, tf.BloomConfig, bloom), "mpt": sized(tf.MptModel, tf.MptConfig, mpt),
    "beit-shared": beit(use_shared_relative_position_bias=True), "beit-relative": beit(use_relative_position_bias=True),
    "window": own("window"), "full": own("full"), "distance": own("distance"), "alibi-encoder": own("alibi"),
}
families.ROWS = """
t5-encoder d d18 eager mask     t5-encoder b d23 sdpa none      t5-gated a d18 sdpa mask        umt5-encoder a d18 eager none   umt5-encoder d d23 sdpa mask
bloom d d18 eager none          bloom a d23 eager none          bloom b d18 eager mask          mpt d d18 eager none
mpt a d23 eager mask            beit-shared a d18 eager none    beit-relative b d23 sdpa none   window b d18 - none             window a d23 - mask
full d d18 - mask               full b ts17 - none              distance a d18 - mask           distance d ts17 - none          alibi-encoder d d18 - mask
"""
families.SEED = 601

if __name__ == "__main__": families.main()
