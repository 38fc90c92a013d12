#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports models of which something behind the layers reads several layers' hidden states, or whose outputs those are, for every/.

Called as families.py is (OUTDIR is every/); made with transformers 5.23."""
import families
import torch
import transformers as tf
from families import bertlike, padded
from torch import nn

WORDS = families.WORDS


class Reads(nn.Module):
    """A model, and what is done with the hidden states of its layers."""
    def __init__(self, model, how, layers, channels, **more):
        super().__init__()
        self.m, self.how, self.more = model, how, more
        self.weight = nn.Parameter(torch.zeros(layers + 1))
        self.heads = nn.ModuleList(nn.Linear(channels, 3 + k) for k in range(layers))

    def forward(self, *inputs):
        states = self.m(*inputs, output_hidden_states=True, **self.more).hidden_states
        if self.how == "states": return states
        if self.how == "mix": return (torch.stack(states, 1) * self.weight.softmax(0).view(1, -1, 1, 1)).sum(1)
        if self.how == "cat": return torch.cat(states[-3:], -1)
        if self.how == "heads": return tuple(head(x) for head, x in zip(self.heads, states[1:]))
        return states[1] + states[-1]                                                                   # ends


def text(model, config, how, layers=4, **more):
    def make(s, attention, mask, batch):
        s.layers = layers
        c = config(vocab_size=WORDS, attn_implementation=attention, pad_token_id=0, **more, **families.NAMES.get(config.__name__, bertlike)(s))
        ids = torch.randint(3, WORDS, (batch, s.tokens))
        return Reads(model(c), how, layers, s.hidden), (ids, padded(s.tokens, batch)) if mask == "mask" else (ids,)
    return make


def t5(how):
    def make(s, attention, mask, batch):
        c = tf.T5Config(vocab_size=WORDS, d_model=s.hidden, d_kv=s.hidden // s.heads, d_ff=s.inner, num_layers=4, num_heads=s.heads, feed_forward_proj="gated-gelu", attn_implementation=attention)
        return Reads(tf.T5EncoderModel(c), how, 4, s.hidden), (torch.randint(3, WORDS, (batch, s.tokens)),)
    return make


def llama(how):
    def make(s, attention, mask, batch):
        c = tf.LlamaConfig(vocab_size=WORDS, hidden_size=s.hidden, intermediate_size=s.inner, num_hidden_layers=4, num_attention_heads=s.heads, num_key_value_heads=s.heads // 2,
                           max_position_embeddings=s.tokens, attn_implementation=attention)
        return Reads(tf.LlamaModel(c), how, 4, s.hidden, use_cache=False), (torch.randint(3, WORDS, (batch, s.tokens)), padded(s.tokens, batch))
    return make


def gpt2(how):
    def make(s, attention, mask, batch):
        c = tf.GPT2Config(vocab_size=WORDS, n_embd=s.hidden, n_layer=3, n_head=s.heads, n_inner=s.inner, n_positions=s.tokens, attn_implementation=attention)
        return Reads(tf.GPT2Model(c), how, 3, s.hidden, use_cache=False), (torch.randint(3, WORDS, (batch, s.tokens)),)
    return make


class Named(nn.Module):
    """The output of this name alone."""
    def __init__(self, m, name):
        super().__init__()
        self.m, self.name = m, name

    def forward(self, *inputs): return getattr(self.m(*inputs), self.name)


def backbone(s, layers):
    return dict(hidden_size=s.hidden, num_hidden_layers=layers, num_attention_heads=s.heads, image_size=s.image, patch_size=4)


def depth_anything(s, attention, mask, batch):
    c = tf.Dinov2Config(**backbone(s, 5), mlp_ratio=2, out_features=["stage2", "stage3", "stage4", "stage5"], reshape_hidden_states=False, attn_implementation=attention)
    c = tf.DepthAnythingConfig(backbone_config=c, patch_size=4, reassemble_hidden_size=s.hidden, neck_hidden_sizes=[4, 4, 6, 6], fusion_hidden_size=4, head_hidden_size=4)
    return Named(tf.DepthAnythingForDepthEstimation(c), "predicted_depth"), (torch.randn(batch, 3, s.image, s.image),)


def dpt(s, attention, mask, batch):
    c = tf.DPTConfig(**backbone(s, 4), intermediate_size=s.inner, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[4, 4, 6, 6], fusion_hidden_size=4, attn_implementation=attention)
    return Named(tf.DPTForDepthEstimation(c), "predicted_depth"), (torch.randn(batch, 3, s.image, s.image),)


def wav2vec2(s, attention, mask, batch):
    c = tf.Wav2Vec2Config(hidden_size=s.hidden, num_hidden_layers=4, num_attention_heads=s.heads, intermediate_size=s.inner, conv_dim=[8, 8], conv_stride=[5, 4], conv_kernel=[10, 8],
                          num_feat_extract_layers=2, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, use_weighted_layer_sum=True, classifier_proj_size=8, num_labels=3,
                          attn_implementation=attention)
    return Named(tf.Wav2Vec2ForSequenceClassification(c), "logits"), (torch.randn(batch, 190),)


def llava(s, attention, mask, batch):
    """Features of the last layer but one, and of two others."""
    c = tf.SiglipVisionConfig(hidden_size=s.hidden, num_hidden_layers=5, num_attention_heads=s.heads, intermediate_size=s.inner, image_size=s.image, patch_size=4, vision_use_head=False,
                              attn_implementation=attention)

    class Features(nn.Module):
        def __init__(self):
            super().__init__()
            self.m, self.project = tf.SiglipVisionModel(c), nn.Linear(3 * s.hidden, 10)

        def forward(self, x):
            states = self.m(x, output_hidden_states=True).hidden_states
            return self.project(torch.cat([states[k] for k in (-2, 1, 3)], -1))
    return Features(), (torch.randn(batch, 3, s.image, s.image),)


class Unetr(nn.Module):
    """UNETR: what goes up again is added to hidden states of layers 2 and 4, each made larger."""
    def __init__(self, s, layers=6):
        super().__init__()
        c, self.side = s.hidden, s.image // 4
        self.patches, self.places = nn.Conv2d(1, c, 4, 4), nn.Parameter(torch.zeros(1, self.side ** 2, c))
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(c, s.heads, s.inner, activation="gelu", batch_first=True, norm_first=True) for _ in range(layers))
        self.norm, self.up, self.out = nn.LayerNorm(c), nn.ModuleList(nn.ConvTranspose2d(c, 4, 4, 4) for _ in range(3)), nn.Conv2d(13, 2, 1)

    def forward(self, image):
        x, kept = self.patches(image).flatten(2).transpose(1, 2) + self.places, []
        for k, layer in enumerate(self.layers):
            x = layer(x)
            if k in (1, 3): kept.append(x)
        maps = [up(y.transpose(1, 2).unflatten(-1, (self.side, self.side))) for up, y in zip(self.up, kept + [self.norm(x)])]
        return self.out(torch.cat([image] + maps, 1))


class Probes(nn.Module):
    """Sequence first; each layer's output goes through one norm and one head: deep supervision."""
    def __init__(self, s, layers=4):
        super().__init__()
        self.words, self.norm, self.head = nn.Embedding(WORDS, s.hidden), nn.LayerNorm(s.hidden), nn.Linear(s.hidden, 5)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(s.hidden, s.heads, s.inner) for _ in range(layers))

    def forward(self, ids):
        x, said = self.words(ids).transpose(0, 1), []
        for layer in self.layers:
            x = layer(x)
            said.append(self.head(self.norm(x)))
        return torch.stack(said)


families.FAMILIES = {
    "bert-states": text(tf.BertModel, tf.BertConfig, "states"), "bert-mix": text(tf.BertModel, tf.BertConfig, "mix"), "bert-cat": text(tf.BertModel, tf.BertConfig, "cat", 5),
    "distilbert-heads": text(tf.DistilBertModel, tf.DistilBertConfig, "heads"), "roberta-ends": text(tf.RobertaModel, tf.RobertaConfig, "ends"),
    "gpt2-states": gpt2("states"), "t5-mix": t5("mix"), "llama-states": llama("states"), "depth-anything": depth_anything, "dpt": dpt, "wav2vec2-sum": wav2vec2, "llava": llava,
    "unetr": lambda s, attention, mask, batch: (Unetr(s), (torch.randn(batch, 1, s.image, s.image),)),
    "probes": lambda s, attention, mask, batch: (Probes(s), (torch.randint(3, WORDS, (batch, s.tokens)),))}
families.ROWS = """
bert-states a d18 sdpa mask     bert-states d ts17 sdpa mask    bert-mix a d18 eager none       bert-mix b ts17 sdpa mask       bert-cat a d20 sdpa mask
distilbert-heads a d18 sdpa mask  roberta-ends d d18 sdpa none  gpt2-states b d18 sdpa none     gpt2-states a d23 eager none    depth-anything a d18 sdpa none
depth-anything c ts17 sdpa none  dpt a d18 sdpa none            dpt a ts17 eager none           wav2vec2-sum a d18 sdpa none    wav2vec2-sum a ts17 eager none
llava c d18 sdpa none           llava a ts17 sdpa none          unetr a d18 - none              probes d d18 - none             probes a ts17 - none
t5-mix d ts17 eager none-dynamic  llama-states d ts17 sdpa mask-dynamic
"""
families.SEED = 1611

if __name__ == "__main__": families.main()
