#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports more models for families/, of kinds that the compiler had not met when they were made: called as families.py is
(transformers==5.24.*).

yolos: positions are added in front of every layer, interpolated in the graph; yolos-first: in front of the first one alone."""
import families
import torch
import transformers as tf
from families import Call


def yolos(**more):
    def make(s, attention, mask, batch):
        c = tf.YolosConfig(hidden_size=s.hidden, num_hidden_layers=s.layers, num_attention_heads=s.heads, intermediate_size=s.inner, image_size=[s.image, s.image + 4],
                           patch_size=4, num_detection_tokens=3, attn_implementation=attention, **more)
        return Call(tf.YolosModel(c), ["pixel_values"]), (torch.randn(batch, 3, s.image, s.image + 4),)
    return make


families.FAMILIES = {"yolos": yolos(), "yolos-first": yolos(use_mid_position_embeddings=False)}
families.ROWS = """
yolos d ts17 sdpa none                yolos d d18 sdpa none                 yolos-first d ts17 sdpa none
"""
families.SEED = 1201

if __name__ == "__main__": families.main()
