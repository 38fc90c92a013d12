# SPDX-License-Identifier: MIT
"""test_tokenizer: examples/tokenizer.py makes of a Hugging Face tokenizer.json a file from which `mlo generate` takes the same tokens of a text, and says
the same text of tokens.

Judge: the `tokenizers` package, as models/tokenizer-said.json has it of models/tokenizer.json (models/make_tokenizer.py)."""
import json
import os
import re
import subprocess
import sys
import harness as t

SOURCE = os.path.join(t.tests, "models/tokenizer.json")


def converted(source, to):
    """'' or what examples/tokenizer.py had to say."""
    p = subprocess.run([sys.executable, os.path.join(t.root, "examples/tokenizer.py"), source, to], capture_output=True, text=True)
    return p.stderr if p.returncode else ""


def program():
    """The tokenizer of the command line, watched."""
    if t.counted("tokenizer_driver"): return t.counted("tokenizer_driver")
    out = t.at("tokenizer")
    flags = ["-std=c99", *t.WATCHED, "-I", t.root]             # with which the library is compiled for others, too
    why = t.compile_c(out, [os.path.join(t.tests, "tokenizer_driver.c"), t.amalgamation()], flags, libs=t.LIBS + ["-lz"])
    if why: raise RuntimeError(why)
    return out


def tokens(file, texts):
    """[(numbers, bytes)] of texts."""
    p = subprocess.run([program(), file], input="".join(x + "\0" for x in texts).encode(), capture_output=True)
    if p.returncode: raise RuntimeError(p.stderr.decode()[-300:])
    lines = p.stdout.decode().split("\n")
    return [([int(n) for n in ids.split()], bytes.fromhex(said)) for ids, said in zip(lines[::2], lines[1::2])]


def check_same():
    said = json.loads(t.read(os.path.join(t.tests, "models/tokenizer-said.json")))
    why = converted(SOURCE, t.at("made.bin"))
    t.case("examples/tokenizer.py", why)
    for x, (ids, back) in zip(said, tokens(t.at("made.bin"), [x["text"] for x in said])):
        t.case("tokens of %r" % x["text"], "" if ids == x["ids"] else "%s, not %s" % (ids, x["ids"]))
        t.case("text of %r" % x["text"], "" if back.decode() == x["decoded"] == x["text"] else repr(back))


def check_generate():
    """examples/generate.py with a byte-level tokenizer (GPT-2's kind): the prompt's ids are that package's, and the text is what it makes of the ids that mlo says."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    made, path, prompt = Tokenizer(models.BPE()), t.at("story"), "It's a test, naïve 🐍 12"
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.train_from_iterator([t.read(os.path.join(t.root, "README.md")).decode()], trainers.BpeTrainer(vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    made.save(t.at("bytes.json"))
    ids = made.encode(prompt).ids
    t.good("compile", t.model("stories260k-step"), "--context", 64, "-o", path)
    said = t.good("generate", path, "--prompt", ",".join(map(str, ids)), "--count", 12).split()
    told = lambda *args: subprocess.run([sys.executable, os.path.join(t.root, "examples/generate.py"), path, t.at("bytes.json"), *args], capture_output=True, text=True, env={**os.environ, "MLO": t.mlo})
    p = told(prompt, "--count", "12")
    t.case("generate.py: the tokenizer's text of mlo's ids", "" if p.returncode == 0 and len(said) == len(ids) + 12 and p.stdout == made.decode([int(k) for k in said]) + "\n" and p.stdout.startswith(prompt) else "%r %s" % (p.stdout, p.stderr[-200:]))
    p = told(prompt, "--count", "99")
    t.case("generate.py: what mlo refuses", "" if p.returncode == 2 and p.stdout == "" and "--count 99" in p.stderr else "%d %r %s" % (p.returncode, p.stdout, p.stderr[-200:]))


def check_refused():
    """Tokenizers of other kinds are not taken for this one."""
    good = json.loads(t.read(SOURCE))
    no_bytes = {**good["model"], "vocab": {k: v for k, v in good["model"]["vocab"].items() if k != "<0x00>"}}
    moved = {**good["model"], "vocab": {**good["model"]["vocab"], "<0x00>": 4}}
    for what, model, words in (("another kind", {**good["model"], "type": "Unigram"}, "no byte-pair encoding"), ("no byte pieces", no_bytes, "no byte-pair encoding"), ("bytes elsewhere", moved, "<0x00> is token 4")):
        why = converted(t.write("bad.json", json.dumps({**good, "model": model})), t.at("bad.bin"))
        t.case("refused: " + what, "" if words in why and not os.path.exists(t.at("bad.bin")) else why or "it was taken")


def check_tick():
    """The line on a terminal, of parts of a work: once it is due each part has it, also one that was told before; work that goes back begins anew, and has none yet."""
    p = subprocess.run([program()], capture_output=True)
    said = p.stderr.decode().split("\n")
    shown = [re.findall(r"works \((\d+) %\)", line) for line in said]
    t.case("the line of long work", "" if not p.returncode and shown == [[], ["25"], ["25"], ["50"], [], ["25"], []] and said[4] == said[6] == "\r\x1b[K" else repr(p.stderr))


if __name__ == "__main__": t.main(check_same, check_generate, check_refused, check_tick, floor=123)
