# SPDX-License-Identifier: MIT
"""stories: a trained Llama to judge decoders with: tests/models/stories260k-prompt.onnx (llama2.c's stories260K by A. Karpathy, MIT licence;
5 layers, 64 channels, 8 heads on 4, 512 tokens; input_ids [1,64] -> logits [1,64,512]) and stories260k.json (its greedy text);
stories260k-step.onnx is the same with its cache as inputs and outputs (test_context).

    windows(8)                  texts that it says at temperature 1: [8, 64] token ids, seeds 0 to 7
    cross_entropy(logits, ids)  of the next tokens, nats a token, over windows
    greedy()                    the committed text's first 64 tokens: of its 63 next tokens float32's arg max gives every one"""
import functools
import json
import os
import numpy as np
import harness as t
from graphs import session

PROMPT = "stories260k-prompt"


def ids_of(rows): return np.asarray(rows, np.int64).reshape(-1, 64)


@functools.lru_cache
def reference(): return session(t.model(PROMPT))


def floats(rows): return np.concatenate([reference().run(None, {"input_ids": row[None]})[0] for row in ids_of(rows)])


@functools.lru_cache
def windows(count):
    """The model is causal: what stands behind a token has no say in what it says next."""
    rows = []
    for seed in range(count):
        rng, row = np.random.default_rng(seed), np.ones(64, np.int64)         # 1: where texts begin
        for k in range(1, 64):
            logits = floats(row)[0, k - 1].astype(np.float64)
            p = np.exp(logits - logits.max())
            row[k] = rng.choice(len(p), p=p / p.sum())
        rows.append(row)
    return ids_of(rows)


def greedy():
    with open(os.path.join(os.path.dirname(t.model(PROMPT)), "stories260k.json")) as f: return ids_of(json.load(f)["greedy"][:64])


def foretold(logits):
    """[rows, 63, words]: the logarithm of how likely each word is to be the next"""
    x = logits.astype(np.float64)[:, :-1]
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def cross_entropy(logits, rows):
    return float(-np.mean(np.take_along_axis(foretold(logits), ids_of(rows)[:, 1:, None], -1)))


def divergence(logits, others):
    """Kullback and Leibler's, nats a token: far less noisy than a ratio of cross entropies over as many tokens"""
    p, q = foretold(logits), foretold(others)
    return float((np.exp(p) * (p - q)).sum(-1).mean())


def said_alike(logits, rows): return int((logits[:, :-1].argmax(-1) == ids_of(rows)[:, 1:]).sum())
