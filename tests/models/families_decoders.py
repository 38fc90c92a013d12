#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports decoders without rotary embedding for families/: causal masks, windows and shared key heads as people spell them.

Called as families.py is; made with transformers 5.23."""
import families
import torch
import torch.nn.functional as F
import transformers as tf
from families import Call, padded, sized
from torch import nn

WORDS = families.WORDS
families.SIZES.update({"g": (2, 24, 4, 48, 7, 8), "h": (3, 16, 4, 32, 7, 8), "i": (4, 24, 4, 40, 9, 8), "j": (4, 12, 2, 24, 10, 8)})


# ---- transformers ---------------------------------------------------------------------------------------------------

def gpt(s): return dict(n_embd=s.hidden, n_layer=s.layers, n_head=s.heads, n_inner=s.inner, n_positions=s.tokens + 3)
def first_gpt(s): return dict(n_embd=s.hidden, n_layer=s.layers, n_head=s.heads, n_positions=s.tokens + 3)
def opt(s): return dict(hidden_size=s.hidden, num_hidden_layers=s.layers, num_attention_heads=s.heads, ffn_dim=s.inner, word_embed_proj_dim=s.hidden,
                        max_position_embeddings=s.tokens + 3)
def neo(s): return dict(hidden_size=s.hidden, num_layers=s.layers, num_heads=s.heads, intermediate_size=s.inner, max_position_embeddings=s.tokens + 3,
                        attention_types=[[["global", "local"], s.layers // 2]])
def xglm(s): return dict(d_model=s.hidden, num_layers=s.layers, attention_heads=s.heads, ffn_dim=s.inner, max_position_embeddings=s.tokens + 3)


# ---- written by hand ------------------------------------------------------------------------------------------------

class Attention(nn.Module):
    """Causal self-attention. kv: heads of keys; window: how many tokens before itself a query sees, None: all."""
    def __init__(self, s, style, mask, kv, window):
        super().__init__()
        self.h, self.kv, self.d, self.style, self.mask, self.window = s.heads, kv, s.hidden // s.heads, style, mask, window
        if style in ("bloom", "neox"): self.query_key_value = nn.Linear(s.hidden, 3 * s.hidden)
        elif style in ("phi3", "falcon", "falcon-new"): self.query_key_value = nn.Linear(s.hidden, (s.heads + 2 * kv) * self.d)
        else: self.q_proj, self.k_proj, self.v_proj = nn.Linear(s.hidden, s.hidden), nn.Linear(s.hidden, kv * self.d), nn.Linear(s.hidden, kv * self.d, bias=False)
        self.dense = nn.Linear(s.hidden, s.hidden)
        keep = torch.ones(s.tokens + 2, s.tokens + 2).tril()
        self.register_buffer("bias", (keep if window is None else keep.triu(-window)).bool()[None, None], persistent=False)

    def split(self, x):
        """q [b, h, t, d], k and v [b, kv, t, d]."""
        b, t, _ = x.shape
        h, kv, d = self.h, self.kv, self.d
        if self.style in ("bloom", "neox", "phi3", "falcon", "falcon-new"): y = self.query_key_value(x)
        if self.style == "bloom":                                                      # [b, t, h, 3, d]
            y = y.view(b, t, h, 3, d)
            return tuple(y[..., i, :].transpose(1, 2) for i in range(3))
        if self.style == "neox": return tuple(p.transpose(1, 2) for p in y.view(b, t, h, 3 * d).chunk(3, -1))
        if self.style == "falcon":                                                     # [b, t, h + 2, d], one head of keys
            y = y.view(b, t, h + 2, d)
            return y[..., :-2, :].transpose(1, 2), y[..., [-2], :].transpose(1, 2), y[..., [-1], :].transpose(1, 2)
        if self.style == "falcon-new":                                                 # [b, t, kv, h / kv + 2, d]
            y = y.view(b, t, kv, h // kv + 2, d)
            q, k, v = y[:, :, :, :-2], y[:, :, :, [-2]], y[:, :, :, [-1]]
            return tuple(p.flatten(2, 3).transpose(1, 2) for p in (q, k, v))
        if self.style == "phi3": parts = y[..., :h * d], y[..., h * d:(h + kv) * d], y[..., (h + kv) * d:]
        else: parts = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        return tuple(p.view(b, t, -1, d).transpose(1, 2) for p in parts)

    def repeated(self, k):
        b, kv, t, d = k.shape
        n = self.h // kv
        if n == 1 or self.style in ("five", "gqa", "broadcast"): return k
        if self.style == "interleave": return k.repeat_interleave(n, 1)
        if self.style == "gather": return k[:, [i // n for i in range(self.h)]]
        if self.style == "tile": return k.repeat(1, 1, 1, n).view(b, kv * n, t, d) if kv == t else k.unsqueeze(2).tile(1, 1, n, 1, 1).flatten(1, 2)
        return k[:, :, None].expand(b, kv, n, t, d).reshape(b, self.h, t, d)

    def hide(self, scores, keep):
        """Hides by place, then by the keys' own mask."""
        b, t = scores.shape[0], scores.shape[-1]
        if self.mask == "where": scores = torch.where(self.bias[:, :, :t, :t], scores, torch.finfo(scores.dtype).min)
        elif self.mask == "fill": scores = scores.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        elif self.mask == "add": scores = scores + torch.full((t, t), float("-inf")).triu(1) if self.window is None else scores + torch.where(self.bias[0, 0, :t, :t], 0.0, -1e9)
        else:
            i = torch.arange(t)
            sees = i[None, :] <= i[:, None]
            if self.window is not None: sees = sees & (i[:, None] - i[None, :] <= self.window)
            if keep is not None: sees, keep = sees & (keep[:, None, None, :] > 0), None
            scores = scores.masked_fill(~sees, torch.finfo(scores.dtype).min)
        return scores if keep is None else scores + (1.0 - keep[:, None, None, :].float()) * torch.finfo(scores.dtype).min

    def forward(self, x, keep=None):
        b, t, c = x.shape
        q, k, v = self.split(x)
        k, v = self.repeated(k), self.repeated(v)
        if self.mask == "sdpa" or self.style == "gqa":
            more = dict(enable_gqa=True) if self.style == "gqa" else {}
            if keep is None and self.window is None: y = F.scaled_dot_product_attention(q, k, v, is_causal=True, **more)
            else:
                sees = self.bias[:, :, :t, :t] if keep is None else self.bias[:, :, :t, :t] & (keep[:, None, None, :] > 0)
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=sees, **more)
        elif self.style == "five":
            q = q.view(b, self.kv, self.h // self.kv, t, self.d)
            scores = (q * self.d ** -0.5) @ k[:, :, None].transpose(-2, -1)
            y = (self.hide(scores, keep).softmax(-1) @ v[:, :, None]).reshape(b, self.h, t, self.d)
        else: y = self.hide(q @ k.transpose(-2, -1) / self.d ** 0.5, keep).softmax(-1) @ v
        return self.dense(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, s, attention, parallel):
        super().__init__()
        self.norm1, self.attn, self.norm2, self.parallel = nn.LayerNorm(s.hidden), attention, nn.LayerNorm(s.hidden), parallel
        self.mlp = nn.Sequential(nn.Linear(s.hidden, s.inner), nn.GELU(), nn.Linear(s.inner, s.hidden))

    def forward(self, x, keep=None):
        if self.parallel == "gptj":                                                    # one norm for both
            y = self.norm1(x)
            return x + self.attn(y, keep) + self.mlp(y)
        if self.parallel: return self.mlp(self.norm2(x)) + self.attn(self.norm1(x), keep) + x
        x = x + self.attn(self.norm1(x), keep)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    names = None

    def __init__(self, s, style, mask, kv=None, windows=(None,), parallel=None):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, s.hidden), nn.Embedding(s.tokens, s.hidden)
        self.blocks = nn.ModuleList(Block(s, Attention(s, style, mask, kv or s.heads, windows[i % len(windows)]), parallel) for i in range(s.layers))
        self.norm = nn.LayerNorm(s.hidden)

    def forward(self, input_ids, attention_mask=None):
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        for b in self.blocks: x = b(x, attention_mask)
        return self.norm(x)


def own(style, how, **options):
    def make(s, attention, mask, batch):
        m = Decoder(s, style, how, **options)
        m.names = ["input_ids", "attention_mask"] if mask == "mask" else ["input_ids"]
        ids = torch.randint(3, WORDS, (batch, s.tokens))
        return m, (ids, padded(s.tokens, batch)) if mask == "mask" else (ids,)
    return make


families.FAMILIES = {
    "gpt2": sized(tf.GPT2Model, tf.GPT2Config, gpt),
    "gpt1": sized(tf.OpenAIGPTModel, tf.OpenAIGPTConfig, first_gpt),
    "opt": sized(tf.OPTModel, tf.OPTConfig, opt), "opt-post": sized(tf.OPTModel, tf.OPTConfig, opt, do_layer_norm_before=False, enable_bias=False),
    "gpt-neo": sized(tf.GPTNeoModel, tf.GPTNeoConfig, neo, window_size=3),
    "bigcode": sized(tf.GPTBigCodeModel, tf.GPTBigCodeConfig, gpt),
    "biogpt": sized(tf.BioGptModel, tf.BioGptConfig, families.bertlike), "xglm": sized(tf.XGLMModel, tf.XGLMConfig, xglm),
    "bert-decoder": sized(tf.BertModel, tf.BertConfig, families.bertlike, is_decoder=True),
    "clip-text-mask": families.text(tf.CLIPTextModel, tf.CLIPTextConfig, bos_token_id=1, eos_token_id=2),
    "causal-where": own("plain", "where"), "causal-fill": own("plain", "fill"), "causal-add": own("plain", "add"), "causal-range": own("plain", "range"),
    "causal-sdpa": own("plain", "sdpa"), "bloom-heads": own("bloom", "fill"), "neox-heads": own("neox", "where", parallel="neox"), "gptj-parallel": own("plain", "where", parallel="gptj"),
    "gqa-expand": own("expand", "add", kv=2), "gqa-interleave": own("interleave", "where", kv=2), "gqa-gather": own("gather", "fill", kv=2), "gqa-tile": own("tile", "range", kv=2),
    "gqa-five": own("five", "range", kv=2), "gqa-sdpa": own("gqa", "sdpa", kv=2), "gqa-packed": own("phi3", "fill", kv=2),
    "mqa-expand": own("expand", "where", kv=1), "mqa-broadcast": own("broadcast", "fill", kv=1), "falcon-heads": own("falcon", "add", kv=1), "falcon-new": own("falcon-new", "sdpa", kv=2),
    "window-range": own("plain", "range", windows=(3,)), "window-fill": own("plain", "fill", windows=(3,)), "window-sdpa": own("gqa", "sdpa", kv=2, windows=(3,)),
    "window-mixed": own("plain", "range", windows=(3, None)), "window-other": own("expand", "where", kv=2, windows=(2, None, 4)), "window-every": own("five", "add", kv=1, windows=(1, 2, 3, 0)),
}

families.ROWS = """
gpt2 a d18 sdpa none            gpt2 g ts17 eager mask          gpt2 h d20 eager none           gpt2 b d23 sdpa mask            gpt1 a d18 eager none
opt a d18 sdpa mask             opt g ts17 eager none           opt h d23 sdpa none             opt-post b d20 eager mask       biogpt a d18 sdpa mask
gpt-neo i d18 eager none        gpt-neo j ts17 eager mask       gpt-neo i d23 eager held        bigcode h d18 eager none        bigcode g d20 sdpa mask
xglm h d18 eager mask           bert-decoder a d18 eager mask   bert-decoder g ts17 sdpa none   clip-text-mask h d18 sdpa mask  clip-text-mask b ts17 eager mask
causal-where g d18 - none       causal-where h ts17 - mask      causal-fill b ts17 - none       causal-add g d18 - mask         causal-add h ts14 - none
causal-range a d18 - mask       causal-sdpa h d23 - mask        bloom-heads g d18 - none        bloom-heads h ts17 - mask       neox-heads h d18 - none
gptj-parallel g d18 - mask      gqa-expand h ts17 - mask        gqa-interleave g d18 - none     gqa-gather g d18 - mask         gqa-tile h d20 - mask
gqa-five h d18 - mask           gqa-five g ts17 - none          gqa-sdpa h d23 - none           gqa-packed g d18 - none         mqa-expand g d18 - none
mqa-broadcast h ts17 - none     falcon-heads h d18 - none       falcon-heads g ts17 - mask      falcon-new g ts17 - none
window-range h ts17 - mask      window-fill h d18 - none        window-sdpa g d23 - mask        window-mixed i d18 - mask       window-mixed j ts17 - none
window-other h d18 - none       window-every i d20 - none
"""
families.SEED = 201

if __name__ == "__main__": families.main()
