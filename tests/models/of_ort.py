#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes exports of tests/models/defaults/ that people make by default and no library makes for them: quantize_static's recipe, sounds and positions whose length is open, a fixed batch.

    python tests/models/of_ort.py [NAME ...]            (pip install torch transformers onnx onnxscript onnxruntime; random weights from seed 0, small sizes)

    columns-tab      categories, each column with a table of its own
    qdq-vit          quant_pre_process and quantize_static (QDQ, 7 bits, so that no processor saturates) of a ViT that TorchScript exported: numbers are quantized like tensors
    qdq-packed       the same of queries, keys and values out of one matrix, as timm's ViT has them: roundings in front of the cut and behind
    qdq-causal       the same, causal, by quantize_static alone: products are rounded in front of their biases, the mask by infinite steps
    qdq-gpt2         quantize_static alone of GPT-2 that torch.export made: a Split of all three
    qdq-llama        the same of Llama: rotations and gates with roundings in them
    sound-wav2vec2   samples [batch, samples], both open
    counted-roberta  positions that are counted from ids, in a table of 66: 64 tokens at most
    batch-swin       a batch of 2 by torch.export: its pooling is a view of the whole batch"""
import os
import sys
import tempfile
import numpy as np
import onnx
import torch
import transformers as tr
from defaults import HERE, stripped


class Only(torch.nn.Module):
    """One output of a model."""
    def __init__(self, model, out):
        super().__init__()
        self.model, self.out = model, out

    def forward(self, *args): return getattr(self.model(*args), self.out)


def exported(model, out, args, names, path, **options):
    torch.onnx.export(Only(model.eval(), out), args, path, input_names=names, output_names=[out], **options)
    return path


def quantized(float_path, path, feeds, prepared=True):
    """quantize_static's QDQ, with 7 bits; prepared: quant_pre_process in front, as its recipe says."""
    from onnxruntime import quantization as q

    class Reader(q.CalibrationDataReader):
        left = list(feeds)
        def get_next(self): return self.left.pop() if self.left else None
    if prepared: q.quant_pre_process(float_path, float_path := float_path + ".prepared")
    q.quantize_static(float_path, path, Reader(), quant_format=q.QuantFormat.QDQ, activation_type=q.QuantType.QInt8, weight_type=q.QuantType.QInt8, reduce_range=True)


def floats(name, *shape): return [{name: np.random.default_rng(k).standard_normal(shape).astype(np.float32)} for k in range(8)]


def vit(path):
    model = tr.ViTForImageClassification(tr.ViTConfig(hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=8, initializer_range=0.2))
    with tempfile.TemporaryDirectory() as d:
        quantized(exported(model, "logits", (torch.randn(1, 3, 32, 32),), ["pixel_values"], d + "/f.onnx", dynamo=False, opset_version=17), path, floats("pixel_values", 1, 3, 32, 32))


class Packed(torch.nn.Module):
    """A layer as timm has it."""
    def __init__(self, causal, channels=24, heads=3):
        super().__init__()
        self.causal, self.heads, self.qkv, self.out = causal, heads, torch.nn.Linear(channels, 3 * channels), torch.nn.Linear(channels, channels)
        self.norms, self.up, self.down = torch.nn.ModuleList(torch.nn.LayerNorm(channels) for _ in range(2)), torch.nn.Linear(channels, 40), torch.nn.Linear(40, channels)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norms[0](x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(b, n, c))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norms[1](x))))


class Pooled(torch.nn.Module):
    """Such layers, and a head."""
    def __init__(self, causal):
        super().__init__()
        self.layers, self.head = torch.nn.Sequential(*(Packed(causal) for _ in range(3))), torch.nn.Linear(24, 7)

    def forward(self, x): return self.head(self.layers(x).mean(1))


def packed(path, causal=False):
    model = Pooled(causal).eval()
    for p in model.parameters(): p.data += 0.1 * torch.randn_like(p)
    with tempfile.TemporaryDirectory() as d:
        torch.onnx.export(model, (torch.randn(1, 18, 24),), d + "/f.onnx", input_names=["x"], output_names=["logits"], dynamo=False, opset_version=17)
        quantized(d + "/f.onnx", path, floats("x", 1, 18, 24), prepared=not causal)


def causal(path): packed(path, True)


def decoder(model, path, **options):
    ids = torch.randint(2, 60, (1, 14))
    with tempfile.TemporaryDirectory() as d:
        exported(model, "logits", (ids,), ["input_ids"], d + "/f.onnx", **options)
        quantized(d + "/f.onnx", path, [{"input_ids": np.random.default_rng(k).integers(2, 60, (1, 14))} for k in range(8)], prepared=False)


def gpt2(path): decoder(tr.GPT2LMHeadModel(tr.GPT2Config(vocab_size=60, n_embd=24, n_layer=3, n_head=3, n_inner=40, n_positions=14, initializer_range=0.2, use_cache=False)), path, dynamo=True, opset_version=18)
def llama(path): decoder(tr.LlamaForCausalLM(tr.LlamaConfig(vocab_size=60, hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=1, max_position_embeddings=14, initializer_range=0.2, use_cache=False)), path, dynamo=True, opset_version=18)


def wav2vec2(path):
    model = tr.Wav2Vec2ForCTC(tr.Wav2Vec2Config(vocab_size=12, hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=48, conv_dim=(8, 8, 8), conv_stride=(5, 8, 8), conv_kernel=(10, 8, 8), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, initializer_range=0.2))
    exported(model, "logits", (torch.randn(1, 4000),), ["input_values"], path, dynamo=False, opset_version=17, dynamic_axes={"input_values": {0: "batch", 1: "samples"}})


def roberta(path):
    model = tr.RobertaForSequenceClassification(tr.RobertaConfig(vocab_size=60, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32, max_position_embeddings=66, initializer_range=0.2))
    ids = torch.randint(2, 60, (1, 12))
    exported(model, "logits", (ids, torch.ones_like(ids)), ["input_ids", "attention_mask"], path, dynamo=False, opset_version=17, dynamic_axes={n: {0: "batch", 1: "sequence"} for n in ("input_ids", "attention_mask")})


def swin(path):
    model = tr.SwinForImageClassification(tr.SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[4], num_heads=[2], window_size=4, mlp_ratio=2, num_labels=7, attn_implementation="eager", initializer_range=0.2))
    exported(model, "logits", (torch.randn(2, 3, 32, 32),), ["pixel_values"], path, dynamo=True, opset_version=18)


class Columns(torch.nn.Module):
    """A TabTransformer: a table of rows for each column of categories, the columns are the tokens."""
    def __init__(self, tables=(7, 3, 5, 4)):
        super().__init__()
        self.tables = torch.nn.ModuleList(torch.nn.Embedding(n, 16) for n in tables)
        self.encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True, norm_first=True), 3, enable_nested_tensor=False)
        self.out = torch.nn.Linear(16, 2)

    def forward(self, x): return self.out(self.encoder(torch.stack([table(x[:, k]) for k, table in enumerate(self.tables)], 1)).mean(1))


def columns(path):
    torch.onnx.export(Columns().eval(), (torch.ones(1, 4, dtype=torch.int64),), path, input_names=["categories"], output_names=["logits"], dynamo=False, opset_version=17)


MODELS = {"columns-tab": columns, "qdq-vit": vit, "qdq-packed": packed, "qdq-causal": causal, "qdq-gpt2": gpt2, "qdq-llama": llama, "sound-wav2vec2": wav2vec2, "counted-roberta": roberta, "batch-swin": swin}


def main(names):
    for name in names or MODELS:
        torch.manual_seed(0)
        path = os.path.join(HERE, name + ".onnx")
        MODELS[name](path)
        m = stripped(onnx.load(path))
        del m.metadata_props[:]
        onnx.save(m, path)
        for beside in os.listdir(HERE):
            if beside.startswith(name) and beside.endswith(".data"): os.remove(os.path.join(HERE, beside))


if __name__ == "__main__": main(sys.argv[1:])
