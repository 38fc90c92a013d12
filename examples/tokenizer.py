#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tokenizer.py TOKENIZER.json OUT.bin: a Hugging Face tokenizer of SentencePiece's kind (byte-pair encoding with byte pieces <0x00> .., as Llama's) in the
form of llama2.c, which `mlo generate --tokenizer` reads: the longest piece's length, then score, length and bytes of each piece."""
import json
import struct
import sys


def pieces(tokenizer):
    """(score, bytes) of each id. A piece is joined the sooner, the earlier its merge stands in the list."""
    model = tokenizer["model"]
    if model.get("type") != "BPE" or "<0x00>" not in model["vocab"]: sys.exit("it is no byte-pair encoding with byte pieces (<0x00> ..), as SentencePiece makes them; examples/generate.py takes any")
    if model["vocab"]["<0x00>"] != 3: sys.exit("<0x00> is token %d; mlo generate expects 3" % model["vocab"]["<0x00>"])
    vocab = {**model["vocab"], **{a["content"]: a["id"] for a in tokenizer.get("added_tokens", [])}}
    merged = {"".join(m if isinstance(m, list) else m.split(" ")): -1.0 - i for i, m in enumerate(model["merges"])}
    by_id = {i: text for text, i in vocab.items()}
    for i in range(max(by_id) + 1):
        text = by_id.get(i, "")
        yield merged.get(text, -1e9), text.replace("\u2581", " ").encode()


def main(source, to):
    with open(source, encoding="utf-8") as f: found = list(pieces(json.load(f)))
    with open(to, "wb") as f:
        f.write(struct.pack("<i", max(len(b) for _, b in found)))
        for score, text in found: f.write(struct.pack("<fi", score, len(text)) + text)


if __name__ == "__main__":
    if len(sys.argv) != 3: sys.exit(__doc__)
    main(*sys.argv[1:])
