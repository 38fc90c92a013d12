#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trained Llama (stories.py) in integers says what it says in floats.

    python tests/test_stories.py path/to/mlo [CHECK ...]

    default   no flags, no calibration file: cross entropy at most 1.01 of float's, at least 61 of 63 greedy tokens
    four      --weights 4: what is reached (1.034, 60 and 0.046 nats a token; 1.029 and 0.042 on 72 windows)
    start     --weights 4: these texts begin where the model's own do
    words     what it is calibrated on are texts of its own: each word but the first follows from those before
    core      the core in Verilog on the greedy text: every word is that of mlo and of ONNX Runtime; a token changes no word before it

The judge of the floats is ONNX Runtime; the integers are `mlo run` of what `mlo lower` makes."""
import json
import os
import re
import numpy as np
import onnx
import harness as t
import hardware
import stories


def integers(path, rows):
    out = []
    for row in stories.ids_of(rows):
        np.savez(t.at("ids.npz"), input_ids=row[None])
        t.good("run", path, "--inputs", t.at("ids.npz"), "--outputs", t.at("logits.npz"))
        out.append(np.load(t.at("logits.npz"))["logits"])
    return np.concatenate(out)


def judged(what, most, least, apart, *flags):
    path, texts, greedy = t.at(what + ".onnx"), stories.windows(8), stories.greedy()
    p = t.call("lower", t.model(stories.PROMPT), "-o", path, "--onnx", *flags)
    said = p.stderr.decode()
    t.case("%s: it says what it was calibrated on" % what, "" if not p.returncode and re.search("calibrated on (8|128) texts that the model says itself", said) else said or "status %d, and it says nothing" % p.returncode)
    spoken, said = stories.floats(texts), integers(path, texts)
    floats, ours, far = stories.cross_entropy(spoken, texts), stories.cross_entropy(said, texts), stories.divergence(spoken, said)
    alike = stories.said_alike(integers(path, greedy), greedy)
    t.note("%s: cross entropy %.4f of float's %.4f, divergence %.4f nats a token; %d of 63 greedy tokens" % (what, ours / floats, floats, far, alike))
    t.case("%s: at most %g nats a token from what floats foretell" % (what, apart), "" if far <= apart else "%.4f" % far)
    t.case("%s: cross entropy at most %g of float's" % (what, most), "" if ours <= most * floats else "%.4f" % (ours / floats))
    t.case("%s: at least %d of 63 greedy tokens" % (what, least), "" if alike >= least else "%d" % alike)


def check_default():
    text = stories.greedy()
    t.case("floats say every greedy token", "" if stories.said_alike(stories.floats(text), text) == 63 else "not all")
    judged("default", 1.01, 61, 0.003)


def check_inputs():
    """Beside the ids only masks, three at most: else no text can be said, and the ids are random."""
    for what, inputs, says in (("three masks", ["mask_%d" % i for i in range(3)], 1), ("four masks", ["mask_%d" % i for i in range(4)], 0),
                               ("something else", ["places"], 0)):
        m = onnx.load(t.model(stories.PROMPT))
        for name in inputs: m.graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, [1, 64]))
        p = t.call("quantize", t.write("inputs.onnx", m.SerializeToString()), "-o", t.at("x.json"))
        said = b"that the model says itself" in p.stderr
        t.case("ids and %s: %s" % (what, "it says texts" if says else "it says none"), "" if p.returncode == 0 and said == says else p.stderr.decode() or "it says nothing")


def loud(m, at, word):
    """A word other than that stands out at one place of a text."""
    g, node, array = m.graph, onnx.helper.make_node, onnx.numpy_helper.from_array
    words, channels = next(list(i.dims) for i in g.initializer if i.name == "m.lm_head.weight")
    others, place = np.zeros((words, channels), np.float32), np.zeros((64, 1), np.float32)
    others[:, 0], others[word, 0], place[at] = 1, 0, 1000
    g.initializer.extend((array(others, "others"), array(place, "place")))
    embedding = g.node[0]
    embedding.output[0] = "plain"
    made = [embedding, node("Gather", ["others", "input_ids"], ["other"]), node("Mul", ["other", "place"], ["loud"]), node("Add", ["plain", "loud"], ["embedding"]), *g.node[1:]]
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in made]
    del g.node[:]
    g.node.extend(nodes)
    return m


def is_loud(m, *flags):
    """Does a word of the texts stand out?"""
    t.good("quantize", t.write("loud.onnx", m.SerializeToString()), "--report", t.at("report.json"), "-o", t.at("x.json"), *flags)
    return max(json.loads(t.read(t.at("report.json")))["quantize"]["values"][-1]["high"]) > 500


def talker(at):
    """The model, of which every word is followed by word 0, where another one is loud."""
    m = loud(onnx.load(t.model(stories.PROMPT)), at, 0)
    first = np.zeros(512, np.float32)
    first[0] = 1000
    m.graph.initializer.extend(onnx.numpy_helper.from_array(v, name) for v, name in ((first, "first"), (np.float32(0), "nothing")))
    m.graph.node[-1].output[0] = "free"
    m.graph.node.extend([onnx.helper.make_node("Mul", ["free", "nothing"], ["none"]), onnx.helper.make_node("Add", ["none", "first"], ["logits"])])
    return m


def check_words():
    """Each word of a text but the first is one that the model says: what would stand out if it were another one does not."""
    for at in 0, 1, 63:
        t.case("word %d of the texts is %s" % (at, "drawn" if not at else "the model's"), "" if is_loud(talker(at)) == (not at) else "the other way round")


def check_start():
    """Of few bits' models texts begin with the word that stands between the model's texts, whichever that is: here words 1 and 300 have changed places."""
    m = onnx.load(t.model(stories.PROMPT))
    rows = next(i for i in m.graph.initializer if i.name == "m.lm_head.weight")
    table = onnx.numpy_helper.to_array(rows).copy()
    table[[1, 300]] = table[[300, 1]]
    rows.CopyFrom(onnx.numpy_helper.from_array(table, rows.name))
    t.case("texts of few bits' models begin with word 300", "some begin otherwise" if is_loud(loud(m, 0, 300), "--weights", "4") else "")


def check_four(): judged("four", 1.045, 58, 0.048, "--weights", "4")


def check_core():
    if not t.have("core", "verilator"): return
    path, seen = hardware.build(stories.PROMPT), []
    stream = json.loads(t.read(os.path.join(path, "manifest.json")))["stream"]
    for at in 64, 40, 3:
        row = stories.greedy()
        row[0, at:at + 1] = (row[0, at:at + 1] + 7) % 512
        np.savez(t.at("ids.npz"), input_ids=row)
        r = hardware.Run(path, "--inputs", t.at("ids.npz"), "--stall", "20", "--seed", str(at), verilator=True)
        words = hardware.frames(path, "sim/golden.hex", stream["lanes"], stream["bits"])
        t.case("core, %s: every word is mlo's and ONNX Runtime's" % ("token %d another" % at if at < 64 else "the greedy text"), r.why())
        seen.append((at, words[0].reshape(64, -1) if words else np.zeros((64, 1))))
    for at, words in seen[1:]:
        differs = (words != seen[0][1]).any(-1)
        t.case("token %d changes no word before it, and some of its own" % at, "" if not differs[:at].any() and differs[at] else "tokens %s differ" % np.flatnonzero(differs))


if __name__ == "__main__":
    t.main(check_default, check_inputs, check_words, check_start, check_four, check_core, floor=21)
