#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports decoders whose layers read an encoder's output, for families/: causal self-attention, cross-attention to encoder_hidden_states (more tokens than the
decoder has, or fewer). mask: the encoder's padding mask is an input. detr-decoder (transformers 5.24): no mask of its own, positions.

Called as families.py is; made with transformers 5.23."""
import families
import torch
import torch.nn as nn
import transformers as tf

families.SIZES.update({"m": (3, 16, 2, 32, 6, 9), "n": (4, 16, 4, 24, 8, 5)})     # the last: tokens of the encoder


class Decoder(nn.Module):
    """The decoder of a model, by name."""
    def __init__(self, m, names): super().__init__(); self.m, self.names = m.get_decoder(), names

    def forward(self, *a): return self.m(**dict(zip(self.names, a)), use_cache=False, return_dict=False)[0]


def decoder(model, size, masked=True):
    def make(s, attention, mask, batch):
        m = getattr(tf, model + "Model")(getattr(tf, model + "Config")(vocab_size=families.WORDS, attn_implementation=attention, pad_token_id=1, bos_token_id=2,
                                                                     eos_token_id=3, decoder_start_token_id=2, **size(s)))
        names = ["input_ids", "encoder_hidden_states"] + ["encoder_attention_mask"] * (mask == "mask")
        args = torch.randint(4, families.WORDS, (batch, s.tokens)), torch.randn(batch, s.image, s.hidden), families.padded(s.image, batch)
        return Decoder(m, names), args[:len(names)]
    return make


def bart(s): return dict(d_model=s.hidden, encoder_layers=1, decoder_layers=s.layers, encoder_attention_heads=s.heads, decoder_attention_heads=s.heads,
                         encoder_ffn_dim=s.inner, decoder_ffn_dim=s.inner, max_position_embeddings=s.tokens + 3)


def whisper(s):
    d = bart(s)
    del d["max_position_embeddings"]
    return dict(d, max_target_positions=s.tokens + 3, num_mel_bins=4, max_source_positions=s.image)


def t5(s): return dict(d_model=s.hidden, d_kv=s.hidden // s.heads, num_layers=1, num_decoder_layers=s.layers, num_heads=s.heads, d_ff=s.inner)


class Torch(nn.Module):
    """torch.nn.TransformerDecoder under a causal mask."""
    names = ["tgt", "memory", "memory_key_padding_mask"]

    def __init__(self, s, batch_first, norm_first):
        super().__init__()
        layer = nn.TransformerDecoderLayer(s.hidden, s.heads, s.inner, dropout=0, batch_first=batch_first, norm_first=norm_first)
        self.m = nn.TransformerDecoder(layer, s.layers)
        self.register_buffer("mask", torch.triu(torch.full((s.tokens, s.tokens), float("-inf")), 1))

    def forward(self, tgt, memory, pad=None): return self.m(tgt, memory, tgt_mask=self.mask, tgt_is_causal=True, memory_key_padding_mask=pad)


def plain(batch_first, norm_first):
    def make(s, attention, mask, batch):
        x, y = torch.randn(batch, s.tokens, s.hidden), torch.randn(batch, s.image, s.hidden)
        if not batch_first: x, y = x.transpose(0, 1).contiguous(), y.transpose(0, 1).contiguous()
        m = Torch(s, batch_first, norm_first)
        m.names = Torch.names[:3 if mask == "mask" else 2]
        return m, (x, y, families.padded(s.image, batch) == 0)[:len(m.names)]
    return make


class Detr(nn.Module):
    """transformers' own DETR from an encoder's output on: keys have its positions, values have none; queries have learned ones in every layer."""
    names = ["encoder_hidden_states"]

    def __init__(self, s, attention):
        super().__init__()
        from transformers.models.detr import modeling_detr
        self.m = modeling_detr.DetrDecoder(tf.DetrConfig(d_model=s.hidden, decoder_layers=s.layers, decoder_attention_heads=s.heads, decoder_ffn_dim=s.inner,
                                                         num_queries=s.tokens, attn_implementation=attention))
        self.queries, self.places = nn.Embedding(s.tokens, s.hidden), nn.Parameter(torch.zeros(1, s.image, s.hidden))

    def forward(self, memory):
        queries = self.queries.weight[None]
        return self.m(inputs_embeds=torch.zeros_like(queries), encoder_hidden_states=memory, spatial_position_embeddings=self.places, object_queries_position_embeddings=queries)[0]


def detr(s, attention, mask, batch): return Detr(s, attention), (torch.randn(batch, s.image, s.hidden),)


families.FAMILIES = {
    "detr-decoder": detr,
    "bart-decoder": decoder("Bart", bart), "marian-decoder": decoder("Marian", bart), "t5-decoder": decoder("T5", t5), "whisper-decoder": decoder("Whisper", whisper),
    "decoder-batch-post": plain(True, False), "decoder-batch-pre": plain(True, True), "decoder-seq-post": plain(False, False), "decoder-seq-pre": plain(False, True),
}

families.ROWS = """
bart-decoder m d18 sdpa mask        bart-decoder n ts17 eager none      marian-decoder m d18 eager mask     marian-decoder n ts17 sdpa none
t5-decoder m d18 eager none         t5-decoder n ts17 eager mask        whisper-decoder m d18 sdpa none     whisper-decoder n d20 eager none
decoder-batch-post m d18 - none     decoder-batch-pre n ts17 - mask     decoder-seq-post n d20 - none       decoder-seq-pre m ts17 - mask
detr-decoder m d18 sdpa none        detr-decoder n ts17 eager none
"""
families.SEED = 501

if __name__ == "__main__": families.main()
