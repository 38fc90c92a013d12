#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention's exponentials have 8 bits where a row has at most 256 keys, and 12 where it may have more: which it is, in C and in cores, to the word and to the cycle.

    python tests/test_exponentials.py path/to/mlo [NAME ...]

Judges: ONNX Runtime of host/core.onnx, for every word; a simulator, which counts cycles. How near either width is to floats: test_numerics."""
import json
import os
import random
import subprocess
import numpy as np
import onnx
import harness as t
import hardware
from decoders import Decoder
from graphs import session

CLOSE = 2                                               # cycles that a prediction may be off
LLAMA = os.path.join(t.tests, "models/context/llama-d18-eager-one.onnx")


def drawn(tokens, sees="all", **more):
    """A small decoder of so many tokens."""
    d = Decoder(random.Random(12))
    d.tokens, d.sees, d.layers, d.hidden, d.heads, d.kv, d.head, d.inner, d.norm, d.act, d.rms, d.gated, d.biased = tokens, sees, 2, 8, 2, 1, 4, 10, "pre", "Relu", True, False, False
    d.windows, d.biases, d.turning, d.qk, d.mask = [tokens] * 2, None, 0, None, False
    for name, value in more.items(): setattr(d, name, value)
    return t.write("%d-%s-%s.onnx" % (tokens, sees, "".join(c for c in str(more) if c.isalnum())), d.model().SerializeToString())


def attentions(path):
    """The attention kernels of a model, wherever they are."""
    def of(graph):
        for n in graph.node:
            if n.domain == "mlo" and n.op_type.startswith("Attention"): yield n
            for a in n.attribute:
                if a.HasField("g"): yield from of(a.g)
    return list(of(onnx.load(path).graph))


def widths(source, *flags):
    """Of the attentions that a model is quantized to: operator, bits of an exponential."""
    t.good("quantize", source, *flags, "--onnx", "-o", t.at("quantized.onnx"))
    return [(n.op_type, next((a.i for a in n.attribute if a.name == "exp_bits"), 8)) for n in attentions(t.at("quantized.onnx"))]


def check_choice():
    """What counts is how many keys a row can have, in whichever layer."""
    for what, want, source in (("256 keys", 8, drawn(256)), ("257 keys", 12, drawn(257)), ("257 keys, causal", 12, drawn(257, "causal")), ("256 keys, a mask", 8, drawn(256, mask=True)),
                               ("windows of 256 keys of 300", 8, drawn(300, "causal window", windows=[128, 256])), ("windows of 128 and of 257 keys of 300", 12, drawn(300, "causal window", windows=[128, 257])),
                               ("128 keys on either side", 8, drawn(300, "window", windows=[128, 128])), ("129 keys on either side", 12, drawn(300, "window", windows=[128, 130])),
                               ("a bias of 257 keys", 12, drawn(257, biases="layers'"))):
        got = widths(source)
        t.case("%s: exponentials of %d bits" % (what, want), "" if got and all(bits == want for _, bits in got) else str(got))
    for context, want in (256, 8), (257, 12):
        got = widths(LLAMA, "--context", context)
        t.case("a context of %d: exponentials of %d bits" % (context, want), "" if got == [("Attention", want)] else str(got))


def check_cores():
    """Every word and the cycle of the last one, of rows that have more than 256 keys; what shorter ones had is what they have."""
    if not t.have("cores", "verilator"): return
    for what, source, pe, simd in t.drawn((("a mask", drawn(260, mask=True), 2, 2), ("causal", drawn(258, "causal", heads=4, kv=2), 4, 1), ("a window", drawn(290, "causal window", windows=[300, 270]), 2, 4),
                                           ("a bias", drawn(257, "causal", biases="alibi"), 8, 2)), 2, lambda row: row[0]):
        path = built(what, source, pe, simd)
        said = t.read(os.path.join(path, "rtl/mlo_core.v")).decode()
        t.case("%s: attention has EBITS = 12" % what, "" if said.count(".EBITS(12)") == 1 else "it has not")
        r = hardware.Run(path, "--frames", 1, verilator=True)
        t.case("%s: words" % what, r.why())
        t.case("%s: %s cycles foretold to %d" % (what, r.cycles, CLOSE), "" if abs(r.predicted_cycles - r.cycles) <= CLOSE else "predicted %d" % r.predicted_cycles)
    path = built("short", drawn(64), 2, 2)
    t.case("64 keys: no word of it in Verilog", "" if ".EBITS" not in t.read(os.path.join(path, "rtl/mlo_core.v")).decode() else "it has")


def check_said():
    """Registers are as wide as intermediates.json says, the manifest and show say 12."""
    path = built("said", drawn(257, "causal"), 2, 2)
    m = json.loads(t.read(os.path.join(path, "manifest.json")))
    shown = json.loads(t.good("show", "--json", path))
    for what, kernels in ("manifest", m["kernels"]), ("show", shown["kernels"]):
        t.case("%s says 12 bits, of attention alone" % what, "" if [(k["op"], k["exp_bits"]) for k in kernels if "exp_bits" in k] == [("Attention", 12)] else str([k.get("exp_bits") for k in kernels]))
    if not t.have("registers", "iverilog"): return
    claims = [c for k in json.loads(t.read(os.path.join(path, "intermediates.json")))["kernels"] if k["name"] == "attention_0" for c in k["intermediates"] if "register" in c]
    probe = t.write("widths.v", "module widths; mlo_top top (); initial begin\n%s$finish; end endmodule\n" % "".join('$display("%%0d", $bits(top.u_core.u_attention_0.%s));\n' % c["register"] for c in claims))
    subprocess.run(["iverilog", "-g2012", "-s", "widths", "-y", os.path.join(path, "rtl"), "-o", t.at("widths.vvp"), probe], check=True, capture_output=True)
    have = subprocess.run(["vvp", "-n", t.at("widths.vvp")], check=True, capture_output=True, text=True).stdout.split()
    wrong = ["%s has %s bits, %d are said" % (c["register"], n, c["verilog"]) for c, n in zip(claims, have) if int(n) != c["verilog"]]
    t.case("%d registers are as wide as is said" % len(claims), "; ".join(wrong) or ("" if len(have) == len(claims) > 8 and [c["verilog"] for c in claims if c["name"] == "e"] == [12] else str(have)))


def built(what, source, pe, simd):
    path = t.at(what.replace(" ", "-"))
    t.good("compile", source, "--max-cost", 1, "--pe", pe, "--simd", simd, "--memory", "resident", "-o", path)
    return path


def check_cache():
    """A prompt of 270 tokens, five more, one more: rows of up to 276 keys that stay on chip."""
    if not t.have("cache", "verilator"): return
    path = hardware.build(LLAMA, "--context", "300", "--pe", "2", "--simd", "4", at="long")
    r = hardware.Run(path, "--jobs", "0+270,270+5,275+1", verilator=True)
    t.case("270, 5 and 1 tokens: words", r.why())
    t.case("270, 5 and 1 tokens: %s cycles" % r.cycles, "" if abs(r.predicted_cycles - r.cycles) <= 1e-3 * r.cycles else "predicted %d" % r.predicted_cycles)


def check_c():
    """The same in C, whose golden words are those of ONNX Runtime; scores and sums of 32 bits, and of 64 where 2,100 keys need that."""
    if not t.have("c", "gcc"): return
    for what, source, flags, sums in ("a mask", drawn(260, mask=True), (), "int32_t"), ("causal", drawn(300, "causal"), (), "int32_t"), ("a cache", LLAMA, ("--context", "300"), "int32_t"), ("2,100 keys", LLAMA, ("--context", "2100"), "int64_t"):
        path = t.at("c-" + what.replace(" ", "-"))
        t.good("compile", source, *flags, "--target", "c", "-o", path)
        code = t.read(os.path.join(path, "model.c")).decode()
        wide = ".bits = 12" in code and "%s *restrict sum) {" % sums in code.split("_mix(")[1]
        made = subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", *t.SANITIZE, *(os.path.join(path, f) for f in ("model.c", "weights.c", "test.c")), "-o", t.at("c-test")], capture_output=True, text=True)
        p = subprocess.run([t.at("c-test")], capture_output=True, text=True) if not made.returncode else made
        t.case("%s: the C says its golden words" % what, "" if p.returncode == 0 and "MLO PASS" in p.stdout else (p.stdout + p.stderr)[-300:])
        t.case("%s: sums of %s" % (what, sums), "" if wide else "they are others")
        if "2,100" in what: continue
        core = session(os.path.join(path, "host/core.onnx"))
        rng, feed = np.random.default_rng(5), {}
        for i in core.get_inputs(): feed[i.name] = rng.random(i.shape) < 0.8 if "bool" in i.type else rng.integers(-9000, 9000, i.shape).astype(np.int16)
        np.savez(t.at("c.npz"), **feed)
        t.good("run", os.path.join(path, "host/core.onnx"), "--inputs", t.at("c.npz"), "--outputs", t.at("y.npz"))
        with np.load(t.at("y.npz")) as z: got = [z[k] for k in z.files][0]
        want = core.run(None, feed)[0]
        t.case("%s: mlo run is ONNX Runtime" % what, "" if np.array_equal(got, want) else "%d words differ" % (got != want).sum())


if __name__ == "__main__": t.main(check_choice, check_cores, check_said, check_cache, check_c, floor=33)
