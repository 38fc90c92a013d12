#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports the models that lie here and in examples/: small transformers with random but lively weights. (All but bert-tiny-qdq,
bert-tiny as ONNX Runtime's static quantization writes it, and bert-tiny-qonnx, a BERT as Brevitas exports it.)

    python tests/models/export.py OUTDIR [NAME ...]       needs torch==2.13.0, transformers==4.57.*, onnx, onnxscript; no network
                                                          (brevitas-qonnx: brevitas==0.13.4, onnxoptimizer, too)

Nothing in the project runs this: it documents where the files come from, and makes more of them.

A freshly initialised transformer is a bad test: its attention is uniform and its sublayers hardly change the residual stream, so a
core that drops attention still looks right. `enliven` gives every matrix unit gain (queries and keys more, so that softmax rows are
sharp), and distinct biases and norms per layer (equal initializers are merged across layers by the exporter). Stack traces, which
hold local paths, are stripped.
"""
import os, pathlib, sys, warnings
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")
import onnx, torch
import transformers as tf

SHARP = ("query", "key", "q_proj", "k_proj", ".q.", ".k.", "c_attn")        # parameters whose gain decides how sharp a softmax row is


def enliven(model, seed):
    """Unit-gain matrices, sharp attention, distinct biases and norms."""
    g = torch.Generator().manual_seed(seed)
    transposed = {id(m.weight) for m in model.modules() if type(m).__name__ == "Conv1D"}        # GPT-2 keeps its matrices inputs first
    for name, p in model.named_parameters():
        if p.ndim == 1: p.data += (0.2 if "weight" in name else 0.1) * torch.randn(p.shape, generator=g)
        elif p.ndim == 2 and "embed" in name: p.data = torch.randn(p.shape, generator=g)
        elif p.ndim == 2: p.data = (2.0 if any(s in name for s in SHARP) else 1.0) * torch.randn(p.shape, generator=g) / p.shape[0 if id(p) in transposed else 1] ** 0.5
    return model.eval()


def save(model, args, path, opset=18, dynamo=True, external=False, lean=False, **options):
    """lean: of the metadata only the name scopes; no types and shapes but those of inputs and outputs."""
    if options.pop("qonnx", False):
        from brevitas.export import export_qonnx
        model.train()
        for _ in range(40): model(torch.randn(args[0].shape))                               # activations find their scales
        export_qonnx(model.eval(), args=args[0], export_path=path, dynamo=False, opset_version=17)
    elif dynamo: torch.onnx.export(model, args, dynamo=True, opset_version=opset, verbose=False, **options).save(path, external_data=False)
    else: torch.onnx.export(model, args, path, dynamo=False, opset_version=17, **options)
    m = onnx.load(path)
    for field in (m.metadata_props, m.graph.metadata_props, m.graph.value_info) if lean else (): del field[:]
    for n in m.graph.node:
        keep = [p for p in n.metadata_props if (p.key == "pkg.torch.onnx.name_scopes" if lean else p.key != "pkg.torch.onnx.stack_trace")]
        del n.metadata_props[:]
        n.metadata_props.extend(keep)
        n.doc_string = ""
    where = dict(save_as_external_data=True, location=pathlib.Path(path).stem + ".data", size_threshold=0) if external else {}
    onnx.save(m, path, **where)


# ---- the families ----------------------------------------------------------------------------------------------------------------

class First(torch.nn.Module):
    """The first output only, without caches."""
    def __init__(self, m, **options):
        super().__init__()
        self.m, self.options = m, options

    def forward(self, *a): return self.m(*a, return_dict=False, **self.options)[0]


class Masked(torch.nn.Module):
    """attention_mask as a runtime input; the first output only."""
    def __init__(self, m):
        super().__init__()
        self.m = m

    def forward(self, input_ids, attention_mask): return self.m(input_ids=input_ids, attention_mask=attention_mask, return_dict=False)[0]


class Blk(torch.nn.Module):
    """One layer of mlp-res: x + b(relu(a(norm(x))))."""
    def __init__(self):
        super().__init__()
        self.n, self.a, self.b = torch.nn.LayerNorm(32), torch.nn.Linear(32, 64), torch.nn.Linear(64, 32)

    def forward(self, x): return x + self.b(torch.relu(self.a(self.n(x))))


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = torch.nn.ModuleList(Blk() for _ in range(6)), torch.nn.Linear(32, 10)

    def forward(self, x):
        for layer in self.layers: x = layer(x)
        return self.head(x)


def ids(n, vocabulary=500): return torch.randint(0, vocabulary, (1, n))


def bert(layers, hidden, heads, intermediate, sequence):
    config = tf.BertConfig(vocab_size=1000, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=intermediate,
                           max_position_embeddings=64, attn_implementation="eager")
    return tf.BertModel(config), (ids(sequence),)


def masked():
    mask = torch.ones(1, 32, dtype=torch.int64)
    mask[0, 20:] = 0
    return Masked(bert(2, 64, 4, 256, 32)[0]), (ids(32), mask)


def vit(hidden, layers, heads, intermediate, image, patch):
    return dict(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=intermediate, image_size=image, patch_size=patch,
                attn_implementation="eager")


def whisper():
    return tf.WhisperModel(tf.WhisperConfig(
        vocab_size=300, num_mel_bins=20, encoder_layers=3, encoder_attention_heads=4, decoder_layers=3, decoder_attention_heads=4, encoder_ffn_dim=128,
        decoder_ffn_dim=128, d_model=64, max_source_positions=20, max_target_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1, use_cache=False, attn_implementation="eager")), (torch.randn(1, 20, 40), None, ids(8, 100))


def gpt2():
    return tf.GPT2Model(tf.GPT2Config(vocab_size=500, n_positions=64, n_embd=64, n_layer=4, n_head=4, attn_implementation="eager", use_cache=False)), (ids(16),)


def llama():
    return First(tf.LlamaModel(tf.LlamaConfig(
        vocab_size=500, hidden_size=64, intermediate_size=176, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, attn_implementation="eager", use_cache=False)), use_cache=False), (ids(16),)


def t5():
    return First(tf.T5Model(tf.T5Config(vocab_size=500, d_model=64, d_kv=16, d_ff=128, num_layers=3, num_decoder_layers=4, num_heads=4, use_cache=False)),
                 use_cache=False), (ids(12), torch.ones(1, 12, dtype=torch.int64), ids(8))


# ---- one small model for each structure that a loop can have: 16 wide, 50 words -------------------------------------------------------

class Call(torch.nn.Module):
    """Inputs by name; the first output only, or what `pick` makes of the outputs."""
    def __init__(self, m, names, pick=lambda o: o[0], **options):
        super().__init__()
        self.m, self.names, self.pick, self.options = m, names.split(), pick, options

    def forward(self, *a): return self.pick(self.m(**dict(zip(self.names, a)), **self.options))


class Cached(torch.nn.Module):
    """input_ids and each layer's past keys and values; the first output and each layer's present keys and values."""
    def __init__(self, m):
        super().__init__()
        self.m = m

    def forward(self, input_ids, *past):
        cache = tf.DynamicCache.from_legacy_cache(tuple(zip(past[::2], past[1::2])))
        o = self.m(input_ids=input_ids, past_key_values=cache, use_cache=True, return_dict=True)
        return (o.last_hidden_state, *(x for pair in o.past_key_values.to_legacy_cache() for x in pair))


def config(kind, layers, attention="eager", **more):
    return kind(**{**dict(vocab_size=50, hidden_size=16, num_hidden_layers=layers, num_attention_heads=2, num_key_value_heads=1, intermediate_size=32, max_position_embeddings=32,
                          pad_token_id=0, bos_token_id=1, eos_token_id=2, attn_implementation=attention), **more})


def padded(n):
    mask = torch.ones(1, n, dtype=torch.int64)
    mask[0, n * 3 // 4:] = 0
    return mask


def words(n): return torch.randint(3, 50, (1, n))
IMAGE = dict(image_size=16, patch_size=4)


def gemma():         # local, local, global, local, local, global: masks and rotary tables take turns, the layer is one
    return Call(tf.Gemma3TextModel(config(tf.Gemma3TextConfig, 6, head_dim=8, intermediate_size=16, sliding_window=4, sliding_window_pattern=3)), "input_ids", use_cache=False), (words(8),)


def gpt2_cache():    # 2 x 4 inputs and outputs beside the layers
    return Cached(tf.GPT2Model(tf.GPT2Config(vocab_size=50, n_positions=32, n_embd=16, n_layer=4, n_head=2, attn_implementation="eager"))), (words(3), *(torch.randn(1, 2, 5, 8) for _ in range(8)))


def llama_states():  # every layer's output is an output
    return Call(tf.LlamaModel(config(tf.LlamaConfig, 4)), "input_ids", lambda o: (o.last_hidden_state, *o.hidden_states), use_cache=False, output_hidden_states=True), (words(8),)


def albert(): return Call(tf.AlbertModel(config(tf.AlbertConfig, 4, embedding_size=8)), "input_ids"), (words(8),)        # one layer's weights, four times


def deberta():       # relative positions: a table that all layers read, and its products with each layer's own weights
    return Call(tf.DebertaV2Model(config(tf.DebertaV2Config, 3, None, relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"], share_att_key=True,
                                         norm_rel_ebd="layer_norm", position_biased_input=False)), "input_ids attention_mask"), (words(8), padded(8))


def neox(): return Call(tf.GPTNeoXModel(config(tf.GPTNeoXConfig, 4, rotary_pct=0.5)), "input_ids", use_cache=False), (words(8),)        # attention and MLP side by side


def modernbert():    # the first layer has no norm before its attention
    return Call(tf.ModernBertModel(config(tf.ModernBertConfig, 6, "sdpa", global_attn_every_n_layers=3, local_attention=4, reference_compile=False, cls_token_id=1, sep_token_id=2)),
                "input_ids attention_mask"), (words(8), padded(8))


def clip():          # two towers
    options = dict(hidden_size=16, num_attention_heads=2, intermediate_size=32, projection_dim=8)
    c = tf.CLIPConfig(text_config=dict(vocab_size=50, max_position_embeddings=8, num_hidden_layers=2, eos_token_id=2, bos_token_id=1, **options),
                      vision_config=dict(num_hidden_layers=3, **IMAGE, **options), projection_dim=8, attn_implementation="eager")
    return Call(tf.CLIPModel(c), "input_ids pixel_values", lambda o: (o.logits_per_text, o.text_embeds, o.image_embeds)), (torch.cat([words(7), torch.tensor([[2]])], 1), torch.randn(1, 3, 16, 16))


def bart():          # encoder and decoder; every decoder layer reads the encoder's memory
    c = tf.BartConfig(vocab_size=50, max_position_embeddings=32, encoder_layers=2, encoder_ffn_dim=32, encoder_attention_heads=2, decoder_layers=3, decoder_ffn_dim=32,
                      decoder_attention_heads=2, d_model=16, use_cache=False, attn_implementation="sdpa")
    return Call(tf.BartModel(c), "input_ids attention_mask decoder_input_ids", use_cache=False, decoder_attention_mask=torch.ones(1, 6, dtype=torch.int64)), (words(8), padded(8), words(6))


def swin():          # stages of pairs: plain window, shifted window
    return Call(tf.SwinModel(tf.SwinConfig(image_size=16, patch_size=2, embed_dim=4, depths=[4, 4], num_heads=[2, 2], window_size=2, mlp_ratio=2.0)), "pixel_values"), (torch.randn(1, 3, 16, 16),)


def convnext():      # stages without attention
    return Call(tf.ConvNextModel(tf.ConvNextConfig(num_stages=3, hidden_sizes=[4, 8, 12], depths=[2, 4, 3], patch_size=2, image_size=16)), "pixel_values"), (torch.randn(1, 3, 16, 16),)


def qwen(): return Call(tf.Qwen3Model(config(tf.Qwen3Config, 4, "sdpa", head_dim=8)), "input_ids", use_cache=False), (words(8),)        # RMSNormalization and Attention as nodes


def distilbert():
    return Call(tf.DistilBertModel(tf.DistilBertConfig(vocab_size=50, max_position_embeddings=32, n_layers=5, n_heads=2, dim=16, hidden_dim=32, attn_implementation="sdpa")),
                "input_ids attention_mask"), (words(8), padded(8))


def brevitas(n, c, h, f):
    """An encoder that Brevitas trains quantized: 8 bits, weights of the MLP 4 and per channel; queries, keys and values rounded behind the projection."""
    from brevitas import nn as qnn
    from brevitas.quant import Int8WeightPerTensorFloat, Int8ActPerTensorFloat, Uint8ActPerTensorFloat

    class Weight4(Int8WeightPerTensorFloat): bit_width, scaling_per_output_channel = 4, True

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            rounded = lambda: qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat)
            self.query, self.key, self.value, self.dense = (qnn.QuantLinear(c, c, bias=True, weight_quant=Int8WeightPerTensorFloat) for _ in range(4))
            self.up, self.down = (qnn.QuantLinear(i, o, bias=True, weight_quant=Weight4) for i, o in ((c, f), (f, c)))
            self.input, self.qq, self.qk, self.qv, self.mix, self.mid = (rounded() for _ in range(6))
            self.ln1, self.ln2, self.relu = torch.nn.LayerNorm(c), torch.nn.LayerNorm(c), qnn.QuantReLU(act_quant=Uint8ActPerTensorFloat)

        def forward(self, x):
            split, i = lambda y: y.reshape(*y.shape[:2], h, c // h).transpose(1, 2), self.input(x)
            q, k, v = self.qq(split(self.query(i)) / (c // h) ** 0.5), self.qk(split(self.key(i))), self.qv(split(self.value(i)))
            x = self.ln1(x + self.dense(self.mix((torch.softmax(q @ k.transpose(-1, -2), -1) @ v).transpose(1, 2).reshape(x.shape))))
            return self.ln2(x + self.down(self.relu(self.up(self.mid(x)))))

    return torch.nn.Sequential(*(Layer() for _ in range(n))), (torch.randn(1, 8, c),)


SEQ = torch.export.Dim("seq", min=2, max=64)
MODELS = {   # name: (what makes the model and example inputs, options of `export` and `save`)
    "bert-tiny": (lambda: bert(2, 64, 4, 256, 32), {}),
    "bert-tiny-b": (lambda: bert(2, 64, 4, 256, 32), {"seed": 2}),                          # other weights, same shapes
    "bert-tiny-mask": (masked, {}),
    "bert-tiny-dynamic": (masked, {"dynamic_shapes": ({1: SEQ}, {1: SEQ})}),
    "bert-tiny-external": (lambda: bert(2, 64, 4, 256, 32), {"external": True}),
    "bert-tiny-shared-biases": (lambda: bert(2, 64, 4, 256, 32), {"zero_bias": True}),
    "bert-12-torchscript": (lambda: bert(12, 64, 4, 256, 32), {"dynamo": False}),
    "bert-12": (lambda: bert(12, 64, 4, 256, 32), {}),
    "bert-96": (lambda: bert(3, 96, 3, 384, 20), {}),                                       # shapes that are no powers of two
    "bert-60": (lambda: bert(5, 60, 5, 150, 13), {}),
    "bert-1": (lambda: bert(2, 32, 2, 64, 1), {}),                                          # a sequence of one token
    "vit-tiny": (lambda: (tf.ViTForImageClassification(tf.ViTConfig(**vit(64, 4, 4, 128, 32, 8))), (torch.randn(1, 3, 32, 32),)), {}),
    "vit-48": (lambda: (tf.ViTModel(tf.ViTConfig(**vit(48, 3, 3, 96, 16, 4)), add_pooling_layer=False), (torch.randn(1, 3, 16, 16),)), {}),
    "mlp-res": (lambda: (M(), (torch.randn(1, 8, 32),)), {}),
    "whisper-tiny": (whisper, {}),
    "gpt2-tiny": (gpt2, {}),                                                                # decoders: these roll, and quantize refuses them so far
    "llama-tiny-opset23": (llama, {"opset": 23}),
    "t5-tiny": (t5, {}),
    "albert-tiny": (albert, {"lean": True}), "bart-tiny-opset23": (bart, {"opset": 23, "lean": True}), "clip-tiny": (clip, {"lean": True}), "convnext-tiny": (convnext, {"lean": True}),
    "deberta-tiny": (deberta, {"lean": True}), "gemma3-tiny": (gemma, {"lean": True}), "gpt2-cache": (gpt2_cache, {"lean": True}), "llama-states": (llama_states, {"lean": True}),
    "modernbert-tiny-opset23": (modernbert, {"opset": 23, "lean": True}), "neox-tiny": (neox, {"lean": True}), "qwen3-tiny-opset23": (qwen, {"opset": 23, "lean": True}), "swin-tiny": (swin, {"lean": True}),
    "brevitas-qonnx": (lambda: brevitas(3, 16, 2, 32), {"qonnx": True, "lean": True}),
    "distilbert-torchscript-dynamic": (distilbert, {"dynamo": False, "lean": True, "input_names": ["input_ids", "attention_mask"],
                                                    "dynamic_axes": {"input_ids": {1: "seq"}, "attention_mask": {1: "seq"}}}),
}


def export(name, path):
    make, options = MODELS[name]
    options = dict(options)
    torch.manual_seed(0)
    model, args = make()
    model = enliven(model, options.pop("seed", 1))
    if options.pop("zero_bias", False):
        for key, p in model.named_parameters():
            if key.endswith("bias"): p.data.zero_()
    save(model, args, str(path), **options)


if __name__ == "__main__":
    if len(sys.argv) < 2: sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    out.mkdir(exist_ok=True)
    for each in sys.argv[2:] or MODELS:
        export(each, out / f"{each}.onnx")
        print(each, flush=True)
