#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlo.Rotary: pairs of channels, turned by position.

    python tests/test_rotary.py path/to/mlo [NAME ...]

    words     ONNX Runtime and mlo run give the words of Python integers, at opsets from 13 on
    angles    a table of cosines and sines turns vectors as floats do, within what the essay says
    refusals  shapes and numbers that there is no hardware for
    cores     whole cores with rotations between projections and attention: the words of ONNX Runtime on host/core.onnx, the cycles predicted; stalls,
              frames in flight, frames shorter than the table, tables that differ per iteration, resident ones, scales that are powers of two
    foldings  PE of rotations, as options, --folding and searches choose it; what is refused"""
import json
import os
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import harness as t
from encoders import Encoder
from graphs import attribute, body, execute, iterations, scans
from hardware import Run

OPSETS = 13, 14, 17, 18, 21, 23


def low(bits): return -(1 << (bits - 1))
def high(bits): return (1 << (bits - 1)) - 1


# ---- the kernel alone ------------------------------------------------------------------------------------------------------------------

def functions(opset):
    """A model with the kernels' functions as mlo writes them at an opset."""
    m = onnx.load(t.model("bert-1"))
    m.opset_import[0].version = opset
    if not hasattr(functions, "made"): functions.made = {}
    if opset not in functions.made:
        path = t.at("functions-%d.onnx" % opset)
        t.good("quantize", t.write("opset-%d.onnx" % opset, m.SerializeToString()), "--onnx", "-o", path)
        functions.made[opset] = onnx.load(path)
    return functions.made[opset]


def kernel(feed, heads, bits, opset=18, **more):
    """One node, and its function, as a model."""
    base, to = functions(opset), TensorProto.INT8 if bits <= 8 else TensorProto.INT16
    node = helper.make_node("Rotary", list(feed), ["y"], domain="mlo", to=to, lo=low(bits), hi=high(bits), heads=heads, **more)
    kind = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(k, kind(v), v.shape) for k, v in feed.items()], [helper.make_tensor_value_info("y", to, None)])
    return helper.make_model(graph, opset_imports=base.opset_import, functions=[f for f in base.functions if f.name == "Rotary"], ir_version=9 if opset < 23 else base.ir_version)


def ran(model, feed):
    np.savez(t.at("in.npz"), **feed)
    t.good("run", t.write("kernel.onnx", model.SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    with np.load(t.at("out.npz")) as z: return z["y"]


def turn(x, table, m, s, heads, bits):
    """The definition, in Python's integers."""
    y = np.empty(x.shape, object)
    d = table.shape[1]
    for b, row, h, k in np.ndindex(x.shape[0], x.shape[1], heads, d // 2):
        at = h * d + 2 * k
        p, q = int(x[b, row, at]), int(x[b, row, at + 1])
        c, n = int(table[row, 2 * k]), int(table[row, 2 * k + 1])
        for i, acc in enumerate((p * c - q * n, p * n + q * c)):
            y[b, row, at + i] = max(low(bits), min(high(bits), (acc * m + (1 << (s - 1))) >> s))
    return y.astype(np.int64)


def feed_of(rng, frames, tokens, rows, heads, d, xbits, m, s, partial=False):
    """Numbers of all sizes, and the ends."""
    pick = lambda bits, shape: np.where(rng.random(shape) < 0.2, rng.choice([low(bits), high(bits), 0, 1, -1], shape), rng.integers(low(bits), high(bits) + 1, shape) >> rng.integers(0, bits, shape))
    table = pick(16, (rows, d)).astype(np.int16)
    if partial: table[:, d // 2 // 2 * 2:] = np.tile([1 << 14, 0], d)[:d - d // 2 // 2 * 2]
    return {"x": pick(xbits, (frames, tokens, heads * d)).astype(np.int8 if xbits <= 8 else np.int16), "table": table, "p": np.array([m, s], np.int32)}


def check_words():
    rng = np.random.default_rng(5)
    shapes = [(1, 1, 1, 1, 2), (1, 7, 7, 1, 8), (2, 5, 9, 3, 4), (1, 32, 32, 2, 6), (3, 1, 4, 4, 2)]     # frames, tokens, rows, heads, channels of a head
    for opset in OPSETS:
        for n, (frames, tokens, rows, heads, d) in enumerate(shapes):
            why = ""
            for xbits, bits, m, s in ((8, 8, 16384, 28), (16, 16, 32767, 29), (16, 8, 1, 1), (8, 16, 32767, 1), (16, 16, 32767, 62), (12, 8, 20011, 33), (16, 16, 0, 5), (16, 16, 16384, 28)):
                feed = feed_of(rng, frames, tokens, rows, heads, d, xbits, m, s, partial=n % 2 == 1)
                model = kernel(feed, heads, bits, opset)
                want = turn(feed["x"], feed["table"], m, s, heads, bits)
                for who, got in ("ONNX Runtime", execute(model, feed)[0]), ("mlo run", ran(model, feed)):
                    if got.shape != want.shape or got.dtype != (np.int8 if bits <= 8 else np.int16): why = why or "%s makes %s %s" % (who, got.dtype, got.shape)
                    elif not np.array_equal(got, want): why = why or "%s, %d to %d bits, M %d, S %d: %d of %d words" % (who, xbits, bits, m, s, (got != want).sum(), want.size)
            t.case("words at opset %d: %d frames of %d tokens, %d positions, %d heads of %d channels" % (opset, frames, tokens, rows, heads, d), why)


def check_angles():
    rng = np.random.default_rng(6)
    tokens, heads, d, theta = 32, 3, 16, 10000.0
    angle = np.outer(np.arange(tokens), theta ** (-np.arange(0, d, 2) / d))
    for factor in 1.0, 1.9:
        table = np.stack([np.cos(angle), np.sin(angle)], -1).reshape(tokens, d) * factor
        steps = np.round(table * 2 ** 14).astype(np.int16)
        x = rng.integers(low(16), high(16) + 1, (1, tokens, heads * d)).astype(np.int16)
        z = (x.reshape(1, tokens, heads, d // 2, 2) * [1, 1j]).sum(-1) * np.exp(1j * angle)[None, :, None] * factor
        want = np.stack([z.real, z.imag], -1).reshape(x.shape) / 4
        feed = {"x": x, "table": steps, "p": np.array([1, 16], np.int32)}
        got = execute(kernel(feed, heads, 16), feed)[0]
        most = 0.5 + 2 * 2 ** 15 * 2 ** -15 / 4
        t.case("a table of cosines and sines, times %g, turns as floats do" % factor, "" if np.abs(got - want).max() <= most else "off by %g steps, %g at most" % (np.abs(got - want).max(), most))


def check_refusals():
    rng = np.random.default_rng(7)
    good = feed_of(rng, 1, 4, 6, 2, 4, 16, 16384, 28)
    def refuses(name, word, heads=2, bits=16, **change):
        feed = dict(good, **change)
        np.savez(t.at("in.npz"), **feed)
        p = t.call("run", t.write("kernel.onnx", kernel(feed, heads, bits).SerializeToString()), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        said = p.stderr.decode().strip()
        t.case("refused: " + name, "" if p.returncode in (3, 4) and word in said and said.count("\n") == 0 else "status %d: %s" % (p.returncode, said))
    refuses("a frame longer than the table", "a frame of 4 tokens, and a table of 3 positions", table=good["table"][:3])
    refuses("heads that do not make the channels", "3 heads of 4 channels make no token of 8", heads=3)
    refuses("no head", "0 heads of 4 channels", heads=0)
    refuses("a head of an odd number of channels", "2 heads of 3 channels make no token of 8; heads must be of an even number", table=good["table"][:, :3])
    refuses("a head of no channels", "2 heads of 0 channels", table=good["table"][:, :0])
    refuses("x of two dimensions", "takes x of 3 dimensions", x=good["x"][0])
    refuses("a table of three dimensions", "and a table of 2", table=good["table"][None])
    refuses("a multiplier of 16 bits", "multiplier 32768 is not within 0..32767", p=np.array([32768, 5], np.int32))
    refuses("a shift of 0", "shift 0 is not within 1..62", p=np.array([5, 0], np.int32))
    refuses("a table of 32 bits", "input 1 is int32; it must be INT8 or INT16", table=good["table"].astype(np.int32))
    refuses("a table of floats", "input 1 is float; it must be of integers", table=good["table"].astype(np.float32))
    refuses("x of 32 bits", "input 0 is int32; it must be INT8 or INT16", x=good["x"].astype(np.int32))
    refuses("p of one member", "input 2 has 1 elements, needs 2", p=np.array([5], np.int32))


# ---- whole cores -----------------------------------------------------------------------------------------------------------------------

def turned(name, encoder, between="qk", partial=False, wide=False, pow2=False, flags=()):
    """The quantized encoder with rotations in front of attention's queries and keys; tables and scales differ in each iteration. wide: projections leave
    16 bits to them."""
    path = t.at(name + "-quantized.onnx")
    t.good("quantize", t.write(name + "-float.onnx", encoder.model().SerializeToString()), *flags, "--onnx", "-o", path)
    m, rng = onnx.load(path), np.random.default_rng(8)
    scan = scans(m)[0]
    b, layers = body(scan), iterations(scan)
    mix = next(n for n in b.node if n.op_type == "Attention")
    made = {n.output[0]: n for n in b.node}
    if wide:
        for x in mix.input[:3]:
            for key, value in ("to", TensorProto.INT16), ("lo", low(9)), ("hi", high(9)): attribute(made[x], key).i = value
            made[x].metadata_props.add(key="mlo.bits", value="9")
            kept = [v for v in b.value_info if v.name != x]
            del b.value_info[:]
            b.value_info.extend(kept)
    heads, d, nodes = encoder.heads, encoder.head, []
    for k, which in enumerate("qk"):
        if which not in between: continue
        x, y = mix.input[k], mix.input[k] + "_turned"
        angle = np.outer(np.arange(encoder.tokens), 50.0 ** (-np.arange(0, d, 2) / d))
        table = np.stack([np.stack([np.cos(angle * (1 + i)), np.sin(angle * (1 + i))], -1).reshape(-1, d) * rng.uniform(0.5, 1.9) for i in range(layers)])
        table = np.round(table * 2 ** 14).astype(np.int16)
        if partial: table[:, :, d // 4 * 2:] = np.tile([1 << 14, 0], d)[:d - d // 4 * 2]
        p = np.stack([[1 << 14, 28] if pow2 else [rng.integers(1 << 13, 1 << 15), 28] for _ in range(layers)]).astype(np.int32)
        for kind, a in ("table", table), ("p", p):
            m.graph.initializer.append(numpy_helper.from_array(a, "%s_%s_stack" % (y, kind)))
            scan.input.append("%s_%s_stack" % (y, kind))
            b.input.append(helper.make_tensor_value_info("%s_%s" % (y, kind), helper.np_dtype_to_tensor_dtype(a.dtype), a.shape[1:]))
        to = TensorProto.INT16 if wide else TensorProto.INT8
        n = helper.make_node("Rotary", [x, y + "_table", y + "_p"], [y], domain="mlo", name=y, to=to, lo=low(9 if wide else 8), hi=high(9 if wide else 8), heads=heads)
        meta = {"mlo.scale": " ".join(["0.05"] * layers), **({"mlo.bits": "9"} if wide else {}), **({"mlo.pow2": "1"} if pow2 else {})}
        for key, value in meta.items(): n.metadata_props.add(key=key, value=value)
        mix.input[k] = y
        nodes.append((made[x], n))
        attribute(scan, "num_scan_inputs").i += 2
    for maker, n in nodes: b.node.insert(list(b.node).index(maker) + 1, n)      # lower merges the three projections in spite of what is between
    return t.write(name + ".onnx", m.SerializeToString())


SMALL = Encoder(2, 8, 1, 4, 8, 1, "post", "Relu")
CORES = {   # encoder, how rotations are put in, flags of compile, runs of the bench
    "a token": (SMALL, {}, ["--pe", 2, "--simd", 2], [[], ["--stall", 40, "--seed", 3]]),
    "a head of 2": (Encoder(2, 8, 4, 2, 12, 7, "pre", "Relu"), {}, ["--pe", 1, "--simd", 1], [[]]),
    "PE = D": (Encoder(3, 12, 3, 4, 12, 7, "post", "Relu", mask=True), {}, ["--pe", 4, "--simd", 4], [[], ["--stall", 30, "--seed", 5, "--frames", 2], ["--frames", 5, "--frame-tokens", "3,7,1,5,2"]]),
    "two frames in flight": (Encoder(2, 8, 2, 4, 8, 32, "post", "Relu"), dict(partial=True), ["--pe", 2, "--simd", 4, "--frames-in-flight", 2],
                             [["--frames", 4], ["--frames", 4, "--stall", 20, "--seed", 6, "--frame-tokens", "31,4,1,9"]]),
    "queries alone": (Encoder(2, 12, 2, 6, 16, 7, "pre", "Relu"), dict(between="q"), ["--pe", 6, "--simd", 2], [[], ["--axi-latency", 60]]),
    "keys alone": (Encoder(2, 12, 2, 6, 16, 7, "pre", "Relu"), dict(between="k", wide=True), ["--pe", 2, "--simd", 6], [[]]),
    "resident": (Encoder(3, 12, 1, 12, 12, 7, "post", "Relu"), {}, ["--pe", 4, "--simd", 2, "--memory", "resident"], [[], ["--frames", 3, "--stall", 30, "--seed", 7]]),
    "powers of two": (Encoder(2, 8, 2, 4, 8, 7, "post", "Relu"), dict(pow2=True, flags=["--scale", "pow2"]), ["--pe", 2, "--simd", 2], [[]]),
    "a narrow bus": (Encoder(2, 16, 2, 8, 16, 7, "post", "Relu"), {}, ["--pe", 8, "--simd", 2, "--axi-width", 32], [[], ["--frames", 2, "--stall", 50, "--seed", 9]]),
}


def check_cores():
    if not t.have("cores with rotations", "iverilog"): return
    exact = runs = 0
    for name, (encoder, how, flags, plays) in CORES.items():
        path = t.at("core-" + name.replace(" ", "-"))
        t.good("compile", turned(name.replace(" ", "-"), encoder, **how), *flags, "-o", path)
        with open(os.path.join(path, "manifest.json")) as f: manifest = json.load(f)
        kernels = [k for k in manifest["kernels"] if k["op"] == "Rotary"]
        shifts = t.read(os.path.join(path, "rtl/mlo_core.v")).decode().count(".SHIFT(1)) u_rotary") if how.get("pow2") else 0
        want = len(how.get("between", "qk"))
        merged = len([k for k in manifest["kernels"] if k["op"] == "MVU"])
        t.case("rotations in the core, projections merged: " + name, "" if len(kernels) == want and merged <= 4 else "%d rotations, %d matrices" % (len(kernels), merged))
        for play in plays:
            r = Run(path, *play)
            given = dict(zip(play, play[1:]))
            tokens = sum(map(int, given["--frame-tokens"].split(","))) if "--frame-tokens" in given else None
            why = r.why(tokens)
            if not why and not {"--stall", "--frame-tokens"} & given.keys():
                runs += 1
                exact += r.cycles == r.predicted_cycles
                if abs(r.cycles - r.predicted_cycles) > r.cycles // 100: why = "%d cycles, predicted %d" % (r.cycles, r.predicted_cycles)
                t.note("%s %s: %s cycles, predicted %s" % (name, " ".join(map(str, play)), r.cycles, r.predicted_cycles))
            t.case("core with rotations: %s %s" % (name, " ".join(map(str, play))), why)
    t.note("predicted to the cycle: %d of %d" % (exact, runs))


# ---- foldings --------------------------------------------------------------------------------------------------------------------------

def check_foldings():
    model = turned("foldings", Encoder(2, 12, 2, 12, 12, 7, "post", "Relu"))
    def folded(*flags):
        shown = json.loads(t.call("show", "--json", input=t.good("fold", model, *flags)).stdout)
        return [k["pe"] for k in shown["kernels"] if k["op"] == "Rotary"]
    for flags, want in ((("--pe", 1), 2), (("--pe", 2), 2), (("--pe", 5), 4), (("--pe", 11), 6), (("--pe", 24), 12), (("--target-cycles", 100000), 2)):
        got = folded(*flags)
        t.case("PE of rotations in heads of 12 channels, %s %d" % flags, "" if got == [want] * 2 else "%s, not %d" % (got, want))
    lines = [json.loads(line) for line in t.good("fold", model, "--pareto").decode().splitlines()]
    used = {line["folding"][k]["PE"] for line in lines for k in line["folding"] if k.startswith("rotary")}
    t.case("foldings of the front have whole pairs of one head", "" if len(lines) > 3 and used and all(p % 2 == 0 and 12 % p == 0 for p in used) else "%d lines, PE %s" % (len(lines), used))
    for entry, word in (({"PE": 3}, "PE=3 does not divide the channels of a head, in pairs; the nearest that do are 2 or 4"), ({"PE": 1}, "the nearest that do are 2 "),
                        ({"PE": 24}, "the nearest that do are 12 "), ({"memory": "block"}, "memory block is of the rows of a matrix")):
        p = t.call("fold", model, "--folding", t.write("folding.json", json.dumps({"rotary_1": entry})), "-o", t.at("folded.json"))
        t.case("refused: a folding %s" % entry, "" if p.returncode == 1 and word in p.stderr.decode() else "status %d: %s" % (p.returncode, p.stderr.decode()))
    m = onnx.load(model)
    for i in m.graph.initializer:
        if i.name.endswith("_table_stack"): i.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(i)[:, :5], i.name))
    for v in body(scans(m)[0]).input:
        if v.name.endswith("_table"): v.type.tensor_type.shape.dim[0].dim_value = 5
    p = t.call("lower", t.write("short.onnx", m.SerializeToString()), "-o", t.at("lowered.json"))
    t.case("refused: frames longer than the table", "" if p.returncode == 3 and "7 tokens, and a table of 5 positions" in p.stderr.decode() else "status %d: %s" % (p.returncode, p.stderr.decode()))
    m = onnx.load(turned("odd-shift", Encoder(2, 12, 2, 12, 12, 7, "post", "Relu")))
    for i in m.graph.initializer:
        if i.name.endswith("_turned_p_stack"): i.CopyFrom(numpy_helper.from_array(np.array([[20000, 28]] * 2, np.int32), i.name))
    for n in body(scans(m)[0]).node:
        if n.op_type == "Rotary": n.metadata_props.add(key="mlo.pow2", value="1")
    p = t.call("compile", t.write("odd.onnx", m.SerializeToString()), "-o", t.at("odd"))
    t.case("refused: a multiplier that is no power of two where metadata say so", "" if p.returncode == 3 and "multiplier 20000 is no power of two" in p.stderr.decode() else "status %d: %s" % (p.returncode, p.stderr.decode()))


t.main(check_words, check_angles, check_refusals, check_cores, check_foldings, floor=83)
