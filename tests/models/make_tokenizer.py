# SPDX-License-Identifier: MIT
"""make_tokenizer.py OUT.json SAID.json: a small tokenizer of SentencePiece's kind, as Llama's tokenizer.json is, and what the `tokenizers` package (0.23) makes
of some texts with it. Trained on README.md; merges are all pairs that make a piece, in the order of pieces, as conversions from SentencePiece have them."""
import json
import os
import random
import sys
import tokenizers

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
TEXTS = ["Once upon a time", "mlo turns a transformer exported as ONNX into Verilog.", "a", " a", "  two  spaces  ", "hidden states, hidden layers; the layer's weights",
         "0x4D4C4F31 = 1 297 436 465", "Übergrößenträger, naïve café", "日本語のテキスト", "emoji \U0001f600 and \U0001f468\u200d\U0001f469\u200d\U0001f467", "a line\nand another\tone",
         "aaaaaaaaaaaa", "thethethe kernels kernels", "~`!@#$%^&*()_+", "e\u0301 is not é"]


def trained():
    made = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f: lines = [line for line in f if line.isascii()]
    special = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)]
    made.train_from_iterator(lines, tokenizers.trainers.BpeTrainer(vocab_size=len(special) + 350, special_tokens=special, limit_alphabet=70))
    vocab = made.get_vocab()
    return sorted(vocab, key=vocab.get)


def main(out, said):
    pieces = trained()
    vocab = {p: i for i, p in enumerate(pieces)}
    merges = [[p[:k], p[k:]] for p in pieces[259:] for k in range(1, len(p)) if p[:k] in vocab and p[k:] in vocab]
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [tuple(m) for m in merges], byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    n, d = tokenizers.normalizers, tokenizers.decoders
    made.normalizer = n.Sequence([n.Prepend("\u2581"), n.Replace(" ", "\u2581")])
    made.decoder = d.Sequence([d.Replace("\u2581", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    made.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    with open(out, "w") as f: json.dump(json.loads(made.to_str()), f, separators=(",", ":"))
    rng, parts = random.Random(8), [p.replace("\u2581", " ") for p in pieces[259:]] + ["\u00e9", "\n", "\u8a9e"]
    texts = TEXTS + ["".join(rng.choices(parts, k=rng.randint(1, 20))) for _ in range(45)]
    ids = [made.encode(text).ids for text in texts]
    with open(said, "w") as f: json.dump([{"text": t, "ids": i, "decoded": made.decode(i)} for t, i in zip(texts, ids)], f, separators=(",", ":"))


main(*sys.argv[1:])
