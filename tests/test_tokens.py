#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--tokens: a decoder from token ids to logits in integers: a row for each id in front of the loop, norm and head behind it.

    python tests/test_tokens.py path/to/mlo [CHECK ...]

    text     greedy text of the trained Llama is that of the floats for 64 tokens, at two contexts; W4 says some of it
    judged   ONNX Runtime on the quantized model gives the logits of `mlo run`, to the bit, of every export that has them; no float between ids and logits
    near     logits are as near to the floats' as those of a model whose head stayed in floats, within a quarter more
    rows     the table is what the plain model's Quantize makes of each id, as numpy rounds
    refused  what has no such form is refused, by node and with a remedy"""
import glob
import json
import os
import numpy as np
import onnx
import graphs
import harness as t
import stories
from onnx import numpy_helper

STEP = "stories260k-step"
NAMES = ["llama-d18-eager-one", "llama-d18-eager-static", "mistral-d18-eager-one-cropped", "qwen3-d18-sdpa-one"]


def quantized(name, context, *more, path=None):
    path = path or t.at("%s.onnx" % name)
    t.good("quantize", t.model(name) if os.path.sep not in name else name, "--context", str(context), "--onnx", "-o", path, *more)
    return path


def context(name): return os.path.join(t.tests, "models", "context", name + ".onnx")


def generated(path, count): return json.loads(t.good("run", path, "--prompt", "1", "--generate", str(count)))["sequences"][0]["tokens"]


def evaluated(path, ids):
    np.savez(t.at("in.npz"), input_ids=ids)
    t.good("run", path, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    return np.load(t.at("out.npz"))["logits"]


def alike(text): return next((k for k in range(64) if text[k] != stories.greedy()[0][k]), 64)


def check_text():
    for length in 64, 256:
        n = alike(generated(quantized(STEP, length, "--tokens"), 63))
        t.case("context %d: all 64 tokens are those of the floats" % length, "" if n == 64 else str(n))
    n = alike(generated(quantized(STEP, 64, "--tokens", "--weights", "4"), 63))
    t.note("weights of 4 bits: %d of 64 tokens are those of the floats" % n)
    t.case("weights of 4 bits: the text begins like the floats'", "" if n >= 8 else str(n))


def floats(m):
    """What is not integers between ids and logits, but for a Dequantize at the end."""
    kept = [n for n in m.graph.node if n.op_type != "Scan"]
    inits = {i.name: i for i in m.graph.initializer}
    return [n.name for n in kept if n.op_type != "Dequantize" and any(k in inits and inits[k].data_type == onnx.TensorProto.FLOAT for k in n.input) and n.output[0] not in
            [k for s in graphs.scans(m) for k in s.input] and not n.name.startswith("loop.")]


def check_judged():
    for name in NAMES:
        path = quantized(context(name), 16, "--tokens", path=t.at("x.onnx"))
        m = onnx.load(path)
        ids = np.random.default_rng(3).integers(0, m.graph.output[0].type.tensor_type.shape.dim[2].dim_value or 8, (1, 16))
        want, following = graphs.session(path).run(None, {"input_ids": ids})
        ours = evaluated(path, ids)
        t.case("%s: ONNX Runtime's logits" % name, "" if np.array_equal(want, ours) else "%g apart" % abs(want - ours).max())
        chosen = np.load(t.at("out.npz"))["mlo_next"]
        t.case("%s: what follows is ONNX Runtime's, the largest logit, the lowest of those" % name,
               "" if np.array_equal(following, chosen) and np.array_equal(chosen[..., 0], ours.argmax(-1)) else "differs")
        t.case("%s: no floats in between" % name, ", ".join(floats(m)))
        ends = [n.op_type for n in m.graph.node if n.op_type in ("LayerNorm", "MVU", "Dequantize", "Gather", "ArgMax")]
        t.case("%s: a Gather in front, norm and head behind" % name, "" if ends == ["Gather", "LayerNorm", "MVU", "Dequantize", "ArgMax"] else str(ends))


def check_near():
    rows = stories.windows(4)
    want = stories.floats(rows)
    def off(path): return float(np.sqrt(np.mean((np.concatenate([evaluated(path, r[None]) for r in rows]) - want) ** 2)))
    plain, whole = off(quantized(STEP, 64)), off(quantized(STEP, 64, "--tokens", path=t.at("whole.onnx")))
    t.note("rms of logits: %.4f with the head in floats, %.4f in integers" % (plain, whole))
    t.case("an integer head is hardly farther", "" if whole < 1.25 * plain else "%g, %g" % (whole, plain))


def check_rows():
    m, plain = onnx.load(quantized(STEP, 64, "--tokens")), onnx.load(quantized(STEP, 64, path=t.at("plain.onnx")))
    rows = numpy_helper.to_array(next(i for i in m.graph.initializer if i.name == "mlo_rows"))
    values = {i.name: numpy_helper.to_array(i) for i in plain.graph.initializer}
    edge = next(n for n in plain.graph.node if n.op_type == "Quantize")
    table = next(n for n in plain.graph.node if n.op_type == "Gather")
    want = np.clip(np.rint(values[table.input[0]].astype(np.float32) / values[edge.input[1]]), -32768, 32767)
    t.case("a row for each id", "" if rows.dtype == np.int16 and rows.shape == want.shape else "%s %s" % (rows.dtype, rows.shape))
    t.case("rows are what Quantize makes of the embedding", "" if np.array_equal(rows, want) else "%d differ" % (rows != want).sum())


def refused(what, code, words, *args):
    p = t.call(*args)
    error = json.loads(p.stdout)["error"] if p.returncode else {"code": "none: it went through", "message": "", "node": ""}
    text = error["node"] + ": " + error["message"]
    t.case(what, "" if error["code"] == "MLO_E_" + code and all(w in text for w in words) else "%s: %s" % (error["code"], text))


def check_refused():
    refused("learned positions", "UNSUPPORTED", ["position", "--tokens"], "quantize", context("gpt2-d18-eager-dims"), "--context", "16", "--tokens")
    refused("a mask beside the ids", "UNSUPPORTED", ["attention_mask", "--tokens"], "quantize", context("llama-d18-sdpa-dims-mask"), "--context", "16", "--tokens")
    refused("an encoder", "UNSUPPORTED", ["--tokens"], "quantize", t.model("bert-tiny"), "--tokens")
    refused("a model without a head", "UNSUPPORTED", ["as many numbers a token"], "quantize", t.model("llama-tiny-opset23"), "--context", "16", "--tokens")
    q = t.write("q.json", json.dumps({"by": "type", "default": {"config": {"name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 6,
                                                                        "bias_width": 8, "bias_frac_width": 6}}}))
    refused("a q_config, which is about the loop", "USAGE", ["q_config"], "quantize", t.model(stories.PROMPT), "--q-config", q, "--tokens")
    refused("hardware", "UNSUPPORTED", ["--tokens"], "lower", quantized(STEP, 64, "--tokens"))


if __name__ == "__main__":
    t.main(check_text, check_judged, check_near, check_rows, check_refused, floor=28)
