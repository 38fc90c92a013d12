#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes models of tests/models/defaults/ that torch.onnx.export makes of PyTorch's libraries: norms of heads behind views, masks of two ranks, a batch of 2.

    python tests/models/of_torch.py [NAME ...]        (pip install timm x-transformers open_clip_torch litgpt; every weight drawn from seed 1, small sizes)
"""
import os
import sys
import onnx
import torch

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "defaults")
WORDS = 50


def ids(*shape): return torch.randint(2, WORDS, shape)


def timm_eva():
    import timm
    return timm.create_model("eva02_base_patch14_224", img_size=28, patch_size=7, embed_dim=32, depth=2, num_heads=2, num_classes=6), torch.randn(2, 3, 28, 28), {"dynamo": True}


def x_decoder():
    from x_transformers import Decoder, TransformerWrapper
    layers = Decoder(dim=24, depth=2, heads=2, attn_dim_head=8, attn_qk_norm=True, attn_qk_norm_dim_scale=True, rotary_pos_emb=True)
    return TransformerWrapper(num_tokens=WORDS, max_seq_len=32, attn_layers=layers), ids(1, 12), {"dynamo": True}


def open_clip_text():
    from open_clip.transformer import TextTransformer
    return TextTransformer(context_length=12, vocab_size=WORDS, width=24, heads=2, layers=2, output_dim=8), ids(1, 12), {"dynamo": True}


def litgpt_gemma2():
    from litgpt import GPT, Config
    return GPT(Config(block_size=32, vocab_size=WORDS, padded_vocab_size=WORDS, n_layer=2, n_head=2, n_embd=24, norm_class_name="RMSNorm", mlp_class_name="GemmaMLP", bias=False, parallel_residual=False, rotary_percentage=1.0,
                      intermediate_size=40, n_query_groups=1, head_size=12, scale_embeddings=True, gelu_approximate="tanh", attention_logit_softcapping=50.0, final_logit_softcapping=30.0, post_attention_norm=True,
                      post_mlp_norm=True, attention_scores_scalar=12, sliding_window_size=4, sliding_window_indices=[1, 0])), ids(1, 12), {"dynamo": True}


def min_gpt():
    """Two sequences at a time, as tutorials export them."""
    from torch import nn

    class Block(nn.Module):
        def __init__(self, c=24, heads=2, tokens=12):
            super().__init__()
            self.ln_1, self.c_attn, self.c_proj, self.ln_2, self.heads = nn.LayerNorm(c), nn.Linear(c, 3 * c), nn.Linear(c, c), nn.LayerNorm(c), heads
            self.mlp = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c))
            self.register_buffer("bias", torch.tril(torch.ones(tokens, tokens)).view(1, 1, tokens, tokens))

        def forward(self, x):
            b, t, c = x.size()
            q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).split(c, dim=2))
            a = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
            a = a.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf")).softmax(-1)
            x = x + self.c_proj((a @ v).transpose(1, 2).contiguous().view(b, t, c))
            return x + self.mlp(self.ln_2(x))

    class Net(nn.Module):
        def __init__(self, c=24, tokens=12):
            super().__init__()
            self.wte, self.wpe, self.h, self.ln_f, self.head = nn.Embedding(WORDS, c), nn.Embedding(tokens, c), nn.ModuleList(Block() for _ in range(2)), nn.LayerNorm(c), nn.Linear(c, WORDS, bias=False)

        def forward(self, x):
            y = self.wte(x) + self.wpe(torch.arange(x.size(1)).unsqueeze(0))
            for block in self.h: y = block(y)
            return self.head(self.ln_f(y))
    return Net(), ids(2, 12), {"dynamo": True}


MODELS = {"timm-eva": timm_eva, "x-decoder": x_decoder, "open-clip-text": open_clip_text, "litgpt-gemma2": litgpt_gemma2, "min-gpt": min_gpt}


@torch.no_grad()
def enliven(model):
    """What libraries begin with ones or zeros is drawn."""
    for name, p in model.named_parameters():
        if p.dim() < 2 and torch.equal(p, torch.ones_like(p)): p.copy_(1 + 0.1 * torch.randn_like(p))
        elif p.abs().max() < 1e-3: p.copy_(0.05 * torch.randn_like(p))
        elif p.dim() < 2: p.add_(0.05 * torch.randn_like(p))


def main(names):
    for name in names or MODELS:
        torch.manual_seed(1)
        model, example, how = MODELS[name]()
        enliven(model.eval())
        path = os.path.join(HERE, name + ".onnx")
        torch.onnx.export(model, (example,), path, **how, **({"external_data": False} if how["dynamo"] else {}))
        m = onnx.load(path)
        m.ClearField("doc_string")
        for n in m.graph.node:
            n.ClearField("doc_string")
            del n.metadata_props[:]
        for v in (*m.graph.value_info, *m.graph.input, *m.graph.output): del v.metadata_props[:]
        del m.metadata_props[:]
        del m.graph.metadata_props[:]
        onnx.save(m, path)
        print(name, os.path.getsize(path))


if __name__ == "__main__": main(sys.argv[1:])
