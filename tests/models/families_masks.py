#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports models whose layers see the keys by different masks, for families/: local and global attention, with a mask that the model gets. mask-left: padding
comes on either side.

Called as families.py is; made with transformers 5.23."""
import families
import torch
import transformers as tf
from families import sized

families.SIZES.update({"k": (4, 16, 2, 32, 9, 8), "l": (6, 16, 4, 24, 8, 8)})

# by the letter: full attention, sliding
KINDS = {"f": "full_attention", "s": "sliding_attention"}


def decoder(s, kinds):
    """What all configs know: half as many heads of keys; layers take their kinds in turn."""
    return dict(hidden_size=s.hidden, num_hidden_layers=s.layers, num_attention_heads=s.heads, num_key_value_heads=s.heads // 2, intermediate_size=s.inner,
                max_position_embeddings=s.tokens + 5, head_dim=s.hidden // s.heads, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                **({"layer_types": [KINDS[kinds[i % len(kinds)]] for i in range(s.layers)]} if kinds else {}))


def model(name, kinds, **more):
    config = getattr(tf, name + "Config")
    return sized(getattr(tf, name + "Model"), config, lambda s: decoder(s, kinds), **more)


def gemma(name, kinds, **more): return model(name, kinds, query_pre_attn_scalar=8, sliding_window=4, **more)


def capped(name, kinds, caps):
    """Each layer's attention scores under a soft cap of its own."""
    plain = gemma(name, kinds)
    def make(*said):
        made, args = plain(*said)
        layers = [m for m in made.modules() if hasattr(m, "attn_logit_softcapping")]
        for i, m in enumerate(layers): m.attn_logit_softcapping = caps[i % len(caps)]
        return made, args
    return make


def modern(s):
    return dict(hidden_size=s.hidden, num_hidden_layers=s.layers, num_attention_heads=s.heads, intermediate_size=s.inner, max_position_embeddings=s.tokens + 5,
                pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)


def neo(s): return dict(hidden_size=s.hidden, num_layers=s.layers, num_heads=s.heads, intermediate_size=s.inner, max_position_embeddings=s.tokens + 3,
                        attention_types=[[["global", "local"], s.layers // 2]])


families.FAMILIES = {
    "gemma3": gemma("Gemma3Text", "sf"), "gemma3-six": gemma("Gemma3Text", "sssssf"),
    "gemma2": gemma("Gemma2", "sf", attn_logit_softcapping=None, final_logit_softcapping=None), "gemma2-capped": gemma("Gemma2", "sf"), "gemma2-caps": capped("Gemma2", "sf", (3.0, 1.5, 5.0)),
    "modernbert": sized(tf.ModernBertModel, tf.ModernBertConfig, modern, local_attention=4, global_attn_every_n_layers=2),
    "qwen2-windows": model("Qwen2", "fs", sliding_window=3, use_sliding_window=True, max_window_layers=1),
    "qwen3-windows": model("Qwen3", "ffs", sliding_window=3, use_sliding_window=True, max_window_layers=2),
    "qwen2-some": model("Qwen2", "", sliding_window=3, use_sliding_window=True, max_window_layers=2),
    "mistral-sliding": model("Mistral", "", sliding_window=3),
    "ministral": model("Ministral", "sf", sliding_window=3),
    "cohere2": model("Cohere2", "sssf", sliding_window=3), "olmo3": model("Olmo3", "sssf", sliding_window=3),
    "gpt-neo-windows": sized(tf.GPTNeoModel, tf.GPTNeoConfig, neo, window_size=3),
    "exaone4": model("Exaone4", "sssf", sliding_window=3),
    "phi3": model("Phi3", ""),
    "starcoder2": model("Starcoder2", "", sliding_window=3),
}

families.ROWS = """
gemma3-six l d18 sdpa mask-left      gemma3-six l ts17 eager mask-left    gemma3-six l d23 sdpa mask-left      gemma2 k d20 eager mask-left
modernbert k d20 sdpa mask-left      modernbert l ts17 eager mask-left    qwen2-some k d18 sdpa mask-left      qwen2-some l ts18 sdpa mask-left
qwen3-windows k d20 eager mask-left  mistral-sliding k d18 sdpa mask-left cohere2 l d20 eager mask-left        olmo3 l d18 eager mask-left
exaone4 l ts17 sdpa mask-left        gpt-neo-windows k d18 eager mask-left ministral k ts17 sdpa mask-left     gemma2-capped k d18 eager mask-left
gemma2-capped k ts17 eager mask-left gemma2-caps k d20 eager mask-left        phi3 k ts17 sdpa mask-left
"""
families.SEED = 401

if __name__ == "__main__": families.main()
