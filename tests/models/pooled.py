#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports encoders whose output is made of a text's first token, and some whose output is nearly that: called as families.py is, for pooled/.

bert-pooler: BERT's pooler_output alone; distilbert-classes: DistilBERT's head (dense, ReLU, dense) over three classes; electra-classes: ELECTRA's (dense, GELU,
dense); roberta-head: RoBERTa's (dense, tanh, dense) on BERT, the first token sliced; likely: with a softmax behind it; normed: a norm of all tokens in front.
Near misses: last: of the last token; two: of the first two; mixed: the mean over tokens is added; twice: the first token added to what is made of it."""
import families
import torch
import transformers as tf
from families import WORDS, Call, bertlike, padded, text
from torch import nn

families.NAMES["ElectraConfig"] = lambda s: dict(embedding_size=s.hidden, **bertlike(s))


class Pooler(nn.Module):
    names = ["input_ids", "attention_mask"]

    def __init__(self, m):
        super().__init__()
        self.m = m

    def forward(self, input_ids, attention_mask): return self.m(input_ids=input_ids, attention_mask=attention_mask).pooler_output


class Head(nn.Module):
    """BERT's last hidden states, and what `made` makes of them with two matrices and a norm."""
    names = ["input_ids", "attention_mask"]

    def __init__(self, m, hidden, classes, made):
        super().__init__()
        self.m, self.dense, self.out, self.norm, self.made = m, nn.Linear(hidden, hidden), nn.Linear(hidden, classes), nn.LayerNorm(hidden), made

    def two(self, x): return self.out(torch.tanh(self.dense(x)))

    def forward(self, input_ids, attention_mask): return self.made(self, self.m(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state)


def config(s, attention): return tf.BertConfig(vocab_size=WORDS, attn_implementation=attention, pad_token_id=0, **bertlike(s))


def pooler(s, attention, mask, batch):
    return Pooler(tf.BertModel(config(s, attention))), (torch.randint(3, WORDS, (batch, s.tokens)), padded(s.tokens, batch))


def head(classes, made):
    def make(s, attention, mask, batch):
        m = Head(tf.BertModel(config(s, attention), add_pooling_layer=False), s.hidden, classes, made)
        return m, (torch.randint(3, WORDS, (batch, s.tokens)), padded(s.tokens, batch))
    return make


families.FAMILIES = {
    "bert-pooler": pooler,
    "distilbert-classes": text(tf.DistilBertForSequenceClassification, tf.DistilBertConfig, num_labels=3),
    "electra-classes": text(tf.ElectraForSequenceClassification, tf.ElectraConfig, num_labels=4),
    "roberta-head": head(6, lambda h, x: h.two(x[:, :1].flatten(1))),
    "likely": head(5, lambda h, x: torch.softmax(h.two(x[:, 0]), -1)),
    "normed": head(3, lambda h, x: h.two(h.norm(x)[:, 0])),
    "last": head(3, lambda h, x: h.two(x[:, -1])),
    "two": head(3, lambda h, x: h.two(x[:, :2]).flatten(1)),
    "mixed": head(3, lambda h, x: h.two(x[:, 0] + x.mean(1))),
    "twice": head(16, lambda h, x: x[:, 0] + h.two(x[:, 0])),
}
families.ROWS = """
bert-pooler a d18 sdpa mask         distilbert-classes a d18 sdpa none  electra-classes d d20 eager mask    roberta-head a ts17 sdpa mask
likely a d18 sdpa mask              normed d d18 sdpa mask              last a d18 sdpa mask                two a d18 sdpa mask
mixed a d18 sdpa mask               twice a d18 sdpa mask
"""
families.SEED = 951

if __name__ == "__main__": families.main()
