#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate.py DIR TOKENIZER.json PROMPT [flags of mlo generate]: goes on with a text in the integers of a build directory. Hugging Face's `tokenizers`
(pip install tokenizers) cuts the prompt, whatever kind TOKENIZER.json is of, and puts together what follows. MLO: the program, if it is not in PATH.

    python3 examples/generate.py build gpt2/tokenizer.json 'Once upon a time' --count 40"""
import os
import subprocess
import sys
from tokenizers import Tokenizer


def words(stream):
    """What is between blanks, as it comes."""
    word = ""
    while c := stream.read(1):
        if not c.isspace(): word += c
        elif word:
            yield word
            word = ""


def main(directory, file, prompt, *flags):
    tokenizer = Tokenizer.from_file(file)
    ids = ",".join(map(str, tokenizer.encode(prompt).ids))
    if not ids: sys.exit("the prompt has no tokens")
    program = subprocess.Popen([os.environ.get("MLO", "mlo"), "generate", directory, "--prompt", ids, *flags], stdout=subprocess.PIPE, text=True)
    said, shown = [], ""
    for word in words(program.stdout):
        if not word.isdigit(): break                                  # an error, which stderr has, too
        said.append(int(word))
        text = tokenizer.decode(said)
        if text.endswith("\ufffd"): continue                          # a character whose bytes have not all come
        print(text[len(shown):], end="", flush=True)
        shown = text
    program.stdout.read()
    if said: print(tokenizer.decode(said)[len(shown):])
    return program.wait()


if __name__ == "__main__":
    if len(sys.argv) < 4: sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
