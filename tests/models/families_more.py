#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports 20 more encoders for families/, of kinds that the compiler had not met when they were made: called as families.py is."""
import families
import torch
import torch.nn.functional as F
import transformers as tf
from families import Call, Size, bertlike, padded, text, vision
from torch import nn

WORDS = families.WORDS


def classic(s, attention, mask, batch):
    """The three inputs of BERT's tokenizer; two classes."""
    c = tf.BertConfig(vocab_size=WORDS, attn_implementation=attention, num_labels=2, **bertlike(s))
    ids = torch.randint(3, WORDS, (batch, s.tokens))
    return Call(tf.BertForSequenceClassification(c), ["input_ids", "attention_mask", "token_type_ids"]), (ids, padded(s.tokens, batch), torch.zeros_like(ids))


class Sentence(nn.Module):
    """sentence-transformers: the mean over real tokens, of length one."""
    names = ["input_ids", "attention_mask"]

    def __init__(self, m):
        super().__init__()
        self.m = m

    def forward(self, input_ids, attention_mask):
        x, keep = self.m(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state, attention_mask.unsqueeze(-1).float()
        return F.normalize((x * keep).sum(1) / keep.sum(1).clamp(min=1e-9), p=2, dim=1)


def sentence(s, attention, mask, batch):
    model, args = text(tf.BertModel, tf.BertConfig)(s, attention, "mask", batch)
    return Sentence(model.m), args


class Answers(Call):
    def forward(self, *a):
        y = self.m(**dict(zip(self.names, a)))
        return y.start_logits, y.end_logits


def answers(s, attention, mask, batch):
    model, args = text(tf.DistilBertForQuestionAnswering, tf.DistilBertConfig)(s, attention, "mask", batch)
    return Answers(model.m, model.names), args


def audio(s, attention, mask, batch):
    c = tf.ASTConfig(hidden_size=s.hidden, num_hidden_layers=s.layers, num_attention_heads=s.heads, intermediate_size=s.inner, patch_size=4,
                     frequency_stride=3, time_stride=3, max_length=13, num_mel_bins=8, attn_implementation=attention)
    return Call(tf.ASTModel(c), ["input_values"]), (torch.randn(batch, 13, 8),)


def seq2seq(s, attention):
    return dict(vocab_size=WORDS, d_model=s.hidden, encoder_layers=s.layers, encoder_attention_heads=s.heads, encoder_ffn_dim=s.inner, decoder_layers=1,
                decoder_attention_heads=s.heads, decoder_ffn_dim=s.inner, max_position_embeddings=s.tokens + 4, pad_token_id=0, decoder_start_token_id=0,
                attn_implementation=attention)


def speech(s, attention, mask, batch):
    c = tf.WhisperConfig(num_mel_bins=6, max_source_positions=s.tokens, **seq2seq(s, attention))
    return Call(tf.WhisperModel(c).get_encoder(), ["input_features"]), (torch.randn(batch, 6, 2 * s.tokens),)


def half(model, config, **more):
    """The encoder of a pair."""
    def make(s, attention, mask, batch):
        c = config(**seq2seq(s, attention), **more)
        ids = torch.randint(3, WORDS, (batch, s.tokens))
        return Call(model(c).get_encoder(), ["input_ids", "attention_mask"]), (ids, padded(s.tokens, batch))
    return make


def t5(s, attention, mask, batch):
    c = tf.T5Config(vocab_size=WORDS, d_model=s.hidden, d_kv=s.hidden // s.heads, d_ff=s.inner, num_layers=s.layers, num_heads=s.heads)
    return Call(tf.T5EncoderModel(c), ["input_ids", "attention_mask"]), (torch.randint(3, WORDS, (batch, s.tokens)), padded(s.tokens, batch))


class Layer(nn.Module):
    """Post-norm around nn.MultiheadAttention; DETR's when positions join queries and keys in every layer."""
    def __init__(self, s, batch_first):
        super().__init__()
        self.attn = nn.MultiheadAttention(s.hidden, s.heads, dropout=0.1, batch_first=batch_first)
        self.linear1, self.linear2, self.dropout = nn.Linear(s.hidden, s.inner), nn.Linear(s.inner, s.hidden), nn.Dropout(0.1)
        self.norm1, self.norm2 = nn.LayerNorm(s.hidden), nn.LayerNorm(s.hidden)

    def forward(self, x, padding=None, pos=None):
        q = x if pos is None else x + pos
        y, _ = self.attn(q, q, x, key_padding_mask=padding)
        x = self.norm1(x + self.dropout(y))
        return self.norm2(x + self.dropout(self.linear2(self.dropout(F.relu(self.linear1(x))))))


class Tutorial(nn.Module):
    names = ["ids", "padding_mask"]

    def __init__(self, s):
        super().__init__()
        self.s, self.words, self.places = s, nn.Embedding(WORDS, s.hidden), nn.Embedding(s.tokens, s.hidden)
        self.layers, self.head = nn.ModuleList(Layer(s, True) for _ in range(s.layers)), nn.Linear(s.hidden, 5)

    def forward(self, ids, padding_mask):
        x = self.words(ids) * self.s.hidden ** 0.5 + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers: x = layer(x, padding_mask)
        return self.head(x)


def tutorial(s, attention, mask, batch): return Tutorial(s), (torch.randint(3, WORDS, (batch, s.tokens)), padded(s.tokens, batch) == 0)


class Detr(nn.Module):
    """DETR's encoder on a small map of features, pixels first."""
    def __init__(self, s):
        super().__init__()
        self.s, self.input_proj, self.pos = s, nn.Conv2d(8, s.hidden, 1), nn.Parameter(torch.zeros(9, 1, s.hidden))
        self.layers = nn.ModuleList(Layer(s, False) for _ in range(s.layers))

    def forward(self, x):
        x = self.input_proj(x).flatten(2).permute(2, 0, 1)
        for layer in self.layers: x = layer(x, pos=self.pos)
        return x


def detr(s, attention, mask, batch): return Detr(s), (torch.randn(batch, 8, 3, 3),)


class Series(nn.Module):
    """A forecaster: values in, sinusoidal positions, nn.TransformerEncoder, the mean, one number."""
    def __init__(self, s):
        super().__init__()
        angle = torch.arange(s.tokens)[:, None] / 10000 ** (torch.arange(0, s.hidden, 2) / s.hidden)
        self.register_buffer("pe", torch.stack([angle.sin(), angle.cos()], -1).reshape(1, s.tokens, s.hidden))
        layer = nn.TransformerEncoderLayer(d_model=s.hidden, nhead=s.heads, dim_feedforward=s.inner, dropout=0.2, activation="gelu", batch_first=True)
        self.input, self.encoder, self.head = nn.Linear(3, s.hidden), nn.TransformerEncoder(layer, num_layers=s.layers), nn.Linear(s.hidden, 1)

    def forward(self, x): return self.head(self.encoder(self.input(x) + self.pe[:, :x.size(1)]).mean(dim=1))


def series(s, attention, mask, batch): return Series(s), (torch.randn(batch, s.tokens, 3),)


families.FAMILIES = {
    "bert-classes": classic, "sentence": sentence, "distilbert-answers": answers, "audio": audio, "whisper-encoder": speech, "t5-encoder": t5,
    "xlmr-tokens": text(tf.XLMRobertaForTokenClassification, tf.XLMRobertaConfig, num_labels=5),
    "camembert-words": text(tf.CamembertForMaskedLM, tf.CamembertConfig),
    "roberta-pre": text(tf.RobertaPreLayerNormModel, tf.RobertaPreLayerNormConfig),
    "bart-encoder": half(tf.BartModel, tf.BartConfig), "marian-encoder": half(tf.MarianModel, tf.MarianConfig, activation_function="swish"),
    "vit-classes": vision(tf.ViTForImageClassification, tf.ViTConfig, num_labels=7),
    "dinov2-registers": vision(tf.Dinov2WithRegistersModel, tf.Dinov2WithRegistersConfig, num_register_tokens=2),
    "dinov2-swiglu": vision(tf.Dinov2Model, tf.Dinov2Config, use_swiglu_ffn=True),
    "vit-msn": vision(tf.ViTMSNModel, tf.ViTMSNConfig),
    "blip-vision": vision(tf.BlipVisionModel, tf.BlipVisionConfig),
    "clip-vision-embedding": vision(tf.CLIPVisionModelWithProjection, tf.CLIPVisionConfig, projection_dim=12),
    "tutorial": tutorial, "detr": detr, "series": series,
}

families.ROWS = """
bert-classes b ts17 sdpa mask         xlmr-tokens c d18 sdpa mask           distilbert-answers f ts17 sdpa mask   sentence a d20 sdpa mask
vit-classes c ts17 sdpa none          dinov2-registers b d18 sdpa none      vit-msn d d23 sdpa none               audio f d18 sdpa none
whisper-encoder b d18 sdpa none       bart-encoder a ts17 sdpa mask         marian-encoder c d18 eager mask       t5-encoder d ts17 eager mask
tutorial b ts17 - mask                detr a d18 - none                     roberta-pre f ts17 eager mask         series c d20 - none
blip-vision d ts17 eager none         clip-vision-embedding a d24 sdpa none dinov2-swiglu e d18 sdpa none         camembert-words e d23 sdpa mask
"""
families.SEED = 101

if __name__ == "__main__": families.main()
