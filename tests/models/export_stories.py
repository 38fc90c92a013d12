#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trained Llama to test decoders with: stories260K (A. Karpathy, llama2.c, MIT licence), 5 layers, 64 channels, 8 heads on 4 key/value heads, 512 tokens.

    HF_HUB_OFFLINE=1 python export_stories.py stories260K.bin tok512.bin OUTDIR        needs torch==2.13.0, "transformers<5", onnx, onnxscript, onnxruntime

Writes: stories260k-prompt.onnx   input_ids [1,T] -> logits [1,T,512]; T = 64 tokens at once, no cache
        stories260k-step.onnx     input_ids [1,S], position_ids [1,S], past_key_values.L.key/value [1,4,P,8] -> logits, present.L.key/value [1,4,P+S,8]; S, P open
        stories260k.json          the tokenizer's 512 pieces; a prompt, and the 255 tokens and the text that float32 gives greedily (its beginning is the text that llama2.c documents)
The file's layout is llama2.c's version 0; its rotary pairs are adjacent, Hugging Face's are halves: rows of wq and wk are permuted."""
import sys, os, struct, json, pathlib, warnings
os.environ["HF_HUB_OFFLINE"] = "1"; warnings.filterwarnings("ignore")
import numpy as np, torch, onnx, transformers as tf
from transformers.cache_utils import DynamicCache

raw = open(sys.argv[1], "rb").read()
dim, hidden, layers, heads, kv, vocab, context = struct.unpack("7i", raw[:28]); shared = vocab > 0; vocab = abs(vocab)
flat = np.frombuffer(raw, np.float32, offset=28); at = 0
def take(*shape):
    global at
    n = int(np.prod(shape)); a = flat[at:at + n].reshape(shape).copy(); at += n; return torch.from_numpy(a)
D = dim // heads
emb = take(vocab, dim); att_norm = take(layers, dim); wq = take(layers, dim, dim); wk = take(layers, kv * D, dim); wv = take(layers, kv * D, dim); wo = take(layers, dim, dim)
ffn_norm = take(layers, dim); w1 = take(layers, hidden, dim); w2 = take(layers, dim, hidden); w3 = take(layers, hidden, dim); norm = take(dim); assert shared
def halves(w, n): return w.view(n, D // 2, 2, dim).transpose(1, 2).reshape(n * D, dim)
m = tf.LlamaForCausalLM(tf.LlamaConfig(vocab_size=vocab, hidden_size=dim, intermediate_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv,
        max_position_embeddings=context, rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=True, attn_implementation="eager")).eval()
sd = {"model.embed_tokens.weight": emb, "model.norm.weight": norm, "lm_head.weight": emb}
for i in range(layers):
    p = f"model.layers.{i}."
    sd |= {p + "input_layernorm.weight": att_norm[i], p + "self_attn.q_proj.weight": halves(wq[i], heads), p + "self_attn.k_proj.weight": halves(wk[i], kv), p + "self_attn.v_proj.weight": wv[i],
           p + "self_attn.o_proj.weight": wo[i], p + "post_attention_layernorm.weight": ffn_norm[i], p + "mlp.gate_proj.weight": w1[i], p + "mlp.down_proj.weight": w2[i], p + "mlp.up_proj.weight": w3[i]}
missing, unexpected = m.load_state_dict(sd, strict=False); assert not unexpected and all("inv_freq" in k for k in missing), (missing, unexpected)

tok = open(sys.argv[2], "rb").read(); pieces, o = [], 4
while o < len(tok):
    score, n = struct.unpack("fi", tok[o:o + 8]); pieces.append(tok[o + 8:o + 8 + n].decode("latin-1")); o += 8 + n
ids = [1]
with torch.no_grad():
    cache = None; x = torch.tensor([ids])
    for _ in range(255):
        y = m(input_ids=x, past_key_values=cache, use_cache=True); cache = y.past_key_values; ids.append(int(y.logits[0, -1].argmax())); x = torch.tensor([[ids[-1]]])
def piece(i): return chr(int(pieces[i][3:5], 16)) if pieces[i].startswith("<0x") else pieces[i]
text = "".join(piece(i) for i in ids[1:]).strip()
assert text.startswith("Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red ball."), text[:200]   # doc/stories260K.md of llama2.c

class Prompt(torch.nn.Module):
    def __init__(s): super().__init__(); s.m = m
    def forward(s, input_ids): return s.m(input_ids=input_ids, use_cache=False).logits
class Step(torch.nn.Module):
    def __init__(s): super().__init__(); s.m = m
    def forward(s, input_ids, position_ids, past):
        y = s.m(input_ids=input_ids, position_ids=position_ids, past_key_values=DynamicCache.from_legacy_cache(past), use_cache=True)
        return (y.logits, *[t for l in y.past_key_values.to_legacy_cache() for t in l])
def strip(path):
    g = onnx.load(path)
    for n in g.graph.node:
        keep = [p for p in n.metadata_props if p.key != "pkg.torch.onnx.stack_trace"]
        del n.metadata_props[:]; n.metadata_props.extend(keep); n.doc_string = ""
    onnx.save(g, path)
out = pathlib.Path(sys.argv[3]); out.mkdir(exist_ok=True)
torch.onnx.export(Prompt(), (torch.tensor([ids[:64]]),), dynamo=True, opset_version=18, verbose=False, input_names=["input_ids"], output_names=["logits"]).save(str(out / "stories260k-prompt.onnx"), external_data=False)
S, P = torch.export.Dim("step", min=1, max=context), torch.export.Dim("past", min=1, max=context)
past = tuple((torch.randn(1, kv, 7, D), torch.randn(1, kv, 7, D)) for _ in range(layers))
names = [f"past_key_values.{i}.{k}" for i in range(layers) for k in ("key", "value")]
torch.onnx.export(Step(), (torch.tensor([ids[:3]]), torch.tensor([[7, 8, 9]]), past), dynamo=True, opset_version=18, verbose=False, input_names=["input_ids", "position_ids"] + names,
    output_names=["logits"] + [n.replace("past_key_values", "present") for n in names],
    dynamic_shapes=({1: S}, {1: S}, tuple(({2: P}, {2: P}) for _ in range(layers)))).save(str(out / "stories260k-step.onnx"), external_data=False)
for f in ("stories260k-prompt.onnx", "stories260k-step.onnx"): strip(str(out / f))

import onnxruntime as ort                                            # both exports say what torch says, token by token
a = ort.InferenceSession(str(out / "stories260k-prompt.onnx")).run(None, {"input_ids": np.array([ids[:64]], np.int64)})[0]
assert list(a[0].argmax(-1)[:63]) == ids[1:64]
s = ort.InferenceSession(str(out / "stories260k-step.onnx")); c = {n: np.zeros((1, kv, 0, D), np.float32) for n in names}; got = [1]
for k in range(255):
    r = s.run(None, {"input_ids": np.array([[got[-1]]], np.int64), "position_ids": np.array([[k]], np.int64), **c}); got.append(int(r[0][0, -1].argmax())); c = dict(zip(names, r[1:]))
assert got == ids, "the step export differs"
json.dump({"licence": "MIT, A. Karpathy, llama2.c", "pieces": pieces, "begin": 1, "greedy": ids, "text": text}, open(out / "stories260k.json", "w"), indent=0)
