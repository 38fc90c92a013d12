#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports more models for families/, of kinds that the compiler had not met when they were made: called as families.py is
(transformers==5.24.*).

yolos: positions are added in front of every layer, interpolated in the graph; yolos-first: in front of the first one alone;
mobilebert: factors and offsets in place of norms, bottlenecks; hunyuan: norms over heads behind the rotation; vit-mae: places drawn at random in the graph;
stablelm: heads split, normed one by one and joined; apertus: another function on either side of 0;
unbatched: torch.nn.TransformerEncoder of one sequence without a batch, [T, C]; patchtst: batch norms over [1, C, T]; patchtst-post: behind each sum; patchtst-channels, -two-layernorm: of several
channels the model makes a batch; patchtst-mixed: channels attend to each other, too; series: such a batch by hand;
neoxj: of all layers the last alone has a bias behind its attention;
lecture: a GPT as lectures write it, whose heads are modules of their own, side by side; annotated: an encoder as the annotated transformer has it, with its norm;
beside: attention and an FFN behind one norm and in front of one projection, as PaLM's and ViT-22B's;
flaubert, xlm: layers set padding to 0 at their end, which xlm without a mask counts itself; squeezebert: channels first, projections are convolutions in groups."""
import families
import torch
import transformers as tf
from families import WORDS, Call


def yolos(**more):
    def make(s, attention, mask, batch):
        c = tf.YolosConfig(hidden_size=s.hidden, num_hidden_layers=s.layers, num_attention_heads=s.heads, intermediate_size=s.inner, image_size=[s.image, s.image + 4],
                           patch_size=4, num_detection_tokens=3, attn_implementation=attention, **more)
        return Call(tf.YolosModel(c), ["pixel_values"]), (torch.randn(batch, 3, s.image, s.image + 4),)
    return make


def speech(s, attention, mask, batch):
    c = tf.Wav2Vec2Config(vocab_size=WORDS, conv_dim=(10, 10), conv_stride=(5, 4), conv_kernel=(9, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=4,
                          num_conv_pos_embedding_groups=2, attn_implementation=attention, **families.bertlike(s))
    return Call(tf.Wav2Vec2Model(c), ["input_values"]), (torch.randn(batch, 180),)


class Written(torch.nn.Module):
    """Words and places, layers, a norm; for a lecture the logits."""
    names = ["ids"]

    def __init__(self, s, layer, norm, words=0):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(WORDS, s.hidden), torch.nn.Embedding(s.tokens, s.hidden)
        self.layers, self.norm = torch.nn.Sequential(*[layer(s) for _ in range(s.layers)]), norm(s.hidden)
        self.logits = torch.nn.Linear(s.hidden, words) if words else torch.nn.Identity()

    def forward(self, ids): return self.logits(self.norm(self.layers(self.words(ids) + self.places(torch.arange(ids.shape[1])))))


class Head(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.key, self.query, self.value = (torch.nn.Linear(s.hidden, s.hidden // s.heads, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.tril(torch.ones(s.tokens, s.tokens)))

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(self.tril[:x.shape[1], :x.shape[1]] == 0, float("-inf")), -1) @ v


class Lecture(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads, self.proj = torch.nn.ModuleList([Head(s) for _ in range(s.heads)]), torch.nn.Linear(s.hidden, s.hidden)
        self.ffn = torch.nn.Sequential(torch.nn.Linear(s.hidden, s.inner), torch.nn.ReLU(), torch.nn.Linear(s.inner, s.hidden))
        self.ln1, self.ln2 = torch.nn.LayerNorm(s.hidden), torch.nn.LayerNorm(s.hidden)

    def forward(self, x):
        y = self.ln1(x)
        x = x + self.proj(torch.cat([head(y) for head in self.heads], dim=-1))
        return x + self.ffn(self.ln2(x))


class AnnotatedNorm(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.a_2, self.b_2 = torch.nn.Parameter(torch.ones(features)), torch.nn.Parameter(torch.zeros(features))

    def forward(self, x): return self.a_2 * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + self.b_2


class Annotated(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.linears = torch.nn.ModuleList([torch.nn.Linear(s.hidden, s.hidden) for _ in range(4)])
        self.norms, self.h = torch.nn.ModuleList([AnnotatedNorm(s.hidden) for _ in range(2)]), s.heads
        self.w_1, self.w_2 = torch.nn.Linear(s.hidden, s.inner), torch.nn.Linear(s.inner, s.hidden)

    def forward(self, x):
        y = self.norms[0](x)
        q, k, v = (f(y).view(x.size(0), -1, self.h, x.size(-1) // self.h).transpose(1, 2) for f in self.linears[:3])
        p = torch.softmax(q @ k.transpose(-2, -1) / (x.size(-1) // self.h) ** 0.5, dim=-1)
        x = x + self.linears[3]((p @ v).transpose(1, 2).contiguous().view(x.size(0), -1, x.size(-1)))
        return x + self.w_2(torch.relu(self.w_1(self.norms[1](x))))


class Beside(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.norm, self.gamma, self.h, self.parts = torch.nn.LayerNorm(s.hidden), torch.nn.Parameter(torch.ones(s.hidden)), s.heads, [s.hidden] * 3 + [s.inner]
        self.fused, self.q_norm, self.k_norm = torch.nn.Linear(s.hidden, sum(self.parts)), torch.nn.LayerNorm(s.hidden // s.heads), torch.nn.LayerNorm(s.hidden // s.heads)
        self.out = torch.nn.Linear(s.hidden + s.inner, s.hidden)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v, inner = self.fused(self.norm(x)).split(self.parts, dim=-1)
        q, k, v = (t.view(b, n, self.h, c // self.h).transpose(1, 2) for t in (q, k, v))
        y = torch.nn.functional.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v).transpose(1, 2).flatten(2)
        return x + self.gamma * self.out(torch.cat([y, torch.nn.functional.gelu(inner)], dim=-1))


def written(layer, norm, words=0): return lambda s, attention, mask, batch: (Written(s, layer, norm, words), (torch.randint(3, WORDS, (batch, s.tokens)),))


class Unbatched(torch.nn.Module):
    """A text without a batch."""
    names = ["ids"]

    def __init__(self, s, norm_first):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(s.hidden, s.heads, s.inner, activation="gelu", norm_first=norm_first)
        self.words, self.encoder = torch.nn.Embedding(WORDS, s.hidden), torch.nn.TransformerEncoder(layer, s.layers, enable_nested_tensor=False)

    def forward(self, ids): return self.encoder(self.words(ids))


def unbatched(norm_first): return lambda s, attention, mask, batch: (Unbatched(s, norm_first), (torch.randint(3, WORDS, (s.tokens,)),))


def patches(channels=1, **more):
    """A series of so many channels; of its norms the statistics are drawn, too."""
    def make(s, attention, mask, batch):
        c = tf.PatchTSTConfig(num_input_channels=channels, context_length=4 * s.tokens, patch_length=4, patch_stride=4, d_model=s.hidden, num_hidden_layers=s.layers,
                              num_attention_heads=s.heads, ffn_dim=s.inner, attn_implementation=attention, **more)
        m = tf.PatchTSTModel(c)
        for norm in (n for n in m.modules() if isinstance(n, torch.nn.BatchNorm1d)):
            norm.running_mean.normal_(0, 0.3)
            norm.running_var.uniform_(0.5, 2)
        return Call(m, ["past_values"]), (torch.randn(batch, 4 * s.tokens, channels),)
    return make


class SeriesLayer(torch.nn.Module):
    def __init__(self, s, how):
        super().__init__()
        self.how, self.heads = how, s.heads
        self.qkv, self.out = torch.nn.Linear(s.hidden, 3 * s.hidden), torch.nn.Linear(s.hidden, s.hidden)
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(s.hidden) for _ in range(2))
        self.up, self.down = torch.nn.Linear(s.hidden, s.inner), torch.nn.Linear(s.inner, s.hidden)
        if how == "conv": self.conv = torch.nn.Conv1d(s.hidden, s.hidden, 3, padding=1, groups=s.hidden)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.how == "causal")
        x = x + self.out(a.transpose(1, 2).reshape(b, t, c))
        y = self.norms[1](x)
        if self.how == "conv": y = self.conv(y.transpose(1, 2)).transpose(1, 2)
        return x + self.down(torch.nn.functional.gelu(self.up(y)))


class Series(torch.nn.Module):
    """Three channels of a series, each a sequence of its own; with a convolution over its tokens, the last of one must not see the next one's first."""
    names = ["series"]

    def __init__(self, s, how):
        super().__init__()
        self.tokens, self.patch = s.tokens, torch.nn.Linear(4, s.hidden)
        self.layers = torch.nn.ModuleList(SeriesLayer(s, how) for _ in range(s.layers))

    def forward(self, series):
        x = self.patch(series.view(1, self.tokens, 4, 3).permute(0, 3, 1, 2).reshape(3, self.tokens, 4))
        for layer in self.layers: x = layer(x)
        return x.unsqueeze(0)


def series(how): return lambda s, attention, mask, batch: (Series(s, how), (torch.randn(1, 4 * s.tokens, 3),))


families.FAMILIES = {
    "mobilebert": families.sized(tf.MobileBertModel, tf.MobileBertConfig, lambda s: dict(
        embedding_size=s.hidden, true_hidden_size=s.hidden // 2, intra_bottleneck_size=s.hidden // 2, num_feedforward_networks=2, **families.bertlike(s))),
    "yolos": yolos(), "yolos-first": yolos(use_mid_position_embeddings=False), "wav2vec2": speech,
    "hunyuan": families.sized(tf.HunYuanDenseV1Model, tf.HunYuanDenseV1Config, lambda s: dict(num_key_value_heads=1, head_dim=s.hidden // s.heads, **families.bertlike(s))),
    "stablelm": families.sized(tf.StableLmModel, tf.StableLmConfig, lambda s: dict(num_key_value_heads=2, use_parallel_residual=True, qk_layernorm=True, partial_rotary_factor=0.5, **families.bertlike(s))),
    "apertus": families.sized(tf.ApertusModel, tf.ApertusConfig, lambda s: dict(num_key_value_heads=1, **families.bertlike(s))),
    "flaubert": families.sized(tf.FlaubertModel, tf.FlaubertConfig, lambda s: dict(
        emb_dim=s.hidden, n_layers=s.layers, n_heads=s.heads, max_position_embeddings=s.tokens + 4, pad_index=0, pad_token_id=0)),
    "xlm": families.sized(tf.XLMModel, tf.XLMConfig, lambda s: dict(
        emb_dim=s.hidden, n_layers=s.layers, n_heads=s.heads, max_position_embeddings=s.tokens + 4, pad_index=0, pad_token_id=0)),
    "squeezebert": families.sized(tf.SqueezeBertModel, tf.SqueezeBertConfig, lambda s: dict(embedding_size=s.hidden, **families.bertlike(s))),
    "patchtst": patches(), "patchtst-post": patches(pre_norm=False),
    "series-causal": series("causal"), "series-conv": series("conv"),
    "patchtst-channels": patches(3), "patchtst-two-layernorm": patches(2, norm_type="layernorm", use_cls_token=True), "patchtst-mixed": patches(3, channel_attention=True),
    "lecture": written(Lecture, torch.nn.LayerNorm, WORDS), "annotated": written(Annotated, AnnotatedNorm), "beside": written(Beside, torch.nn.LayerNorm),
    "unbatched-post": unbatched(False), "unbatched-pre": unbatched(True),
    "neoxj": families.sized(tf.GPTNeoXJapaneseModel, tf.GPTNeoXJapaneseConfig, lambda s: dict(
        intermediate_multiple_size=2, **{k: v for k, v in families.bertlike(s).items() if k != "intermediate_size"})),
    "vit-mae": families.vision(tf.ViTMAEModel, tf.ViTMAEConfig, mask_ratio=0.0),
}
families.ROWS = """
yolos d ts17 sdpa none                yolos d d18 sdpa none                 yolos-first d ts17 sdpa none          wav2vec2 d d18 sdpa none
hunyuan d d18 sdpa none               vit-mae a ts17 sdpa none              mobilebert a d18 sdpa none            mobilebert a ts17 sdpa mask
stablelm d d18 sdpa none              apertus a d18 sdpa none
flaubert b ts17 eager mask            flaubert a d18 eager mask
squeezebert a d18 eager mask          squeezebert a ts17 eager none
xlm a d18 eager none                  xlm b ts17 eager none
patchtst a d20 sdpa none              patchtst b ts17 eager none            patchtst-post d d18 sdpa none
unbatched-post a d20 - none           unbatched-pre b ts17 - none
lecture a d18 - none                  lecture d ts17 - none                 annotated a d18 - none                annotated b ts17 - none
beside a d18 - none                   beside d ts17 - none
neoxj a d18 eager none                neoxj d d20 eager none
patchtst-channels a d18 sdpa none     patchtst-channels d d20 eager none     patchtst-two-layernorm b d20 sdpa none
patchtst-mixed a d18 sdpa none        series-causal c d18 - none            series-conv b d18 - none
"""
families.SEED = 1201

if __name__ == "__main__": families.main()
