#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes models of tests/models/defaults/ that ONNX Runtime's own builder of decoders writes: fused attention with norms and rotary embedding within, weights of 4 bits in blocks, tables of rows in
blocks, 16-bit floats, keys and values of any length and width.

    python tests/models/genai.py [NAME ...]          (pip install onnxruntime-genai transformers torch; random weights from seed 1, small sizes)
"""
import os
import subprocess
import sys
import tempfile
import onnx
import torch
import transformers as tr
from tokenizers import Tokenizer, models

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "defaults")
SIZES = dict(vocab_size=80, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, head_dim=16, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)
MODELS = {
    "genai-llama-int4": ("int4", "cpu", lambda: tr.LlamaForCausalLM(tr.LlamaConfig(**SIZES))),
    "genai-llama-fp16": ("fp16", "cuda", lambda: tr.LlamaForCausalLM(tr.LlamaConfig(**SIZES))),
    "genai-gemma2-int4": ("int4", "cpu", lambda: tr.Gemma2ForCausalLM(tr.Gemma2Config(sliding_window=8, query_pre_attn_scalar=16, **SIZES))),       # layers that see 8 tokens, layers that see all
    "genai-qwen3-fp16": ("fp16", "cuda", lambda: tr.Qwen3ForCausalLM(tr.Qwen3Config(**SIZES))),                                                 # norms within the attention
}


def make(name):
    precision, provider, build = MODELS[name]
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as d:
        build().eval().save_pretrained(d + "/from")
        words = {"<unk>": 0, "<s>": 1, "</s>": 2, **{"w%d" % i: i for i in range(3, SIZES["vocab_size"])}}
        tr.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="<unk>")), bos_token="<s>", eos_token="</s>", unk_token="<unk>").save_pretrained(d + "/from")
        subprocess.run([sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", d + "/from", "-o", d + "/to", "-p", precision, "-e", provider, "-c", d + "/cache"], check=True, stdout=subprocess.DEVNULL)
        m = onnx.load(d + "/to/model.onnx")
    onnx.save(m, os.path.join(HERE, name + ".onnx"))
    print(name, os.path.getsize(os.path.join(HERE, name + ".onnx")))


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS: make(name)
