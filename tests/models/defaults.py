#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/models/defaults/: what Optimum exports when nobody says anything: every dimension open, decoders of two parts merged, keys and values handed out.

    python tests/models/defaults.py [NAME ...]          (pip install optimum-onnx; random weights from seed 0, small sizes)

encoder-decoders: encoder_model, decoder_model and decoder_model_merged, which has an If on use_cache_branch; decoders alone: model, a step with a past."""
import os
import sys
import tempfile
import onnx
import torch
import transformers as tr

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "defaults")
ENCODER = dict(vocab_size=60, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32, max_position_embeddings=128)
BOTH = dict(vocab_size=60, d_model=16, encoder_layers=3, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, pad_token_id=1)
SEQ, GEN = "text2text-generation-with-past", "text-generation-with-past"
MODELS = {
    "bert": ("feature-extraction", lambda: tr.BertModel(tr.BertConfig(**ENCODER))),
    "distilbert": ("feature-extraction", lambda: tr.DistilBertModel(tr.DistilBertConfig(vocab_size=60, dim=16, n_layers=3, n_heads=2, hidden_dim=32, max_position_embeddings=512))),
    "bart": (SEQ, lambda: tr.BartForConditionalGeneration(tr.BartConfig(max_position_embeddings=128, **BOTH))),
    "marian": (SEQ, lambda: tr.MarianMTModel(tr.MarianConfig(max_position_embeddings=64, decoder_vocab_size=60, decoder_start_token_id=1, **BOTH))),
    "t5": (SEQ, lambda: tr.T5ForConditionalGeneration(tr.T5Config(vocab_size=60, d_model=16, d_kv=8, d_ff=32, num_layers=3, num_heads=2, decoder_start_token_id=0))),
    "vit": ("image-classification", lambda: tr.ViTForImageClassification(tr.ViTConfig(hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32, image_size=96, patch_size=16))),
    "gpt2": (GEN, lambda: tr.GPT2LMHeadModel(tr.GPT2Config(vocab_size=60, n_positions=64, n_embd=16, n_layer=3, n_head=2))),
    "llama": (GEN, lambda: tr.LlamaForCausalLM(tr.LlamaConfig(vocab_size=60, hidden_size=16, intermediate_size=32, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64))),
}
ALIKE = "marian-decoder", "marian-decoder-merged", "t5-decoder"       # as BART's, or as the merged one


def stripped(m):
    """No stack traces, no paths."""
    def graph(g):
        for n in g.node:
            n.ClearField("doc_string")
            del n.metadata_props[:]
            for a in n.attribute:
                if a.HasField("g"): graph(a.g)
    graph(m.graph)
    m.ClearField("doc_string")
    return m


def main(names):
    from optimum.exporters.onnx import onnx_export_from_model
    os.makedirs(HERE, exist_ok=True)
    for name in names or MODELS:
        task, make = MODELS[name]
        torch.manual_seed(0)
        with tempfile.TemporaryDirectory() as d:
            onnx_export_from_model(make().eval(), d, task=task, do_validation=False, opset=18)
            for f in sorted(os.listdir(d)):
                part = f[:-5]
                to = "%s-%s" % (name, part.replace("_model", "").replace("_", "-"))
                if f.endswith(".onnx") and "with_past" not in f and to not in ALIKE: onnx.save(stripped(onnx.load(os.path.join(d, f))), os.path.join(HERE, to + ".onnx"))


if __name__ == "__main__": main(sys.argv[1:])
