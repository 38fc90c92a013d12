#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models larger than memory: what their weights take while they are compiled.

    python tests/test_large.py path/to/mlo [NAME ...]

Encoders of 512 channels with weights in external data, 12.6 MB a layer in floats, 3.1 MB in integers. Peak memory is what the system counted of the
process. Reading to roll looks at no weight; compiling holds the integers of all layers once, the floats of one matrix at a time."""
import os
import struct
import subprocess
import sys
import zlib
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import harness as t
from encoders import Encoder

CHANNELS, INNER, FEW, MANY = 512, 2048, 4, 12
INTEGERS = (4 * CHANNELS * CHANNELS + 2 * CHANNELS * INNER) / 1e6      # MB a layer


def external(layers, channels=CHANNELS):
    """An encoder whose weights lie beside it."""
    path = t.at("%d.onnx" % layers)
    if not os.path.exists(path):
        onnx.save_model(Encoder(layers, channels, 8, channels // 8, channels * INNER // CHANNELS, 4, "pre", "Gelu").model(), path, save_as_external_data=True, location="%d.data" % layers, size_threshold=1024)
    return path


# A process counts what the one had that made it: this one is large, so a small one is between.
BETWEEN = "import resource, subprocess, sys; p = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(p.returncode)"


def peak(*args):
    """Runs mlo: the most memory that it had at once, in MB."""
    p = subprocess.run([sys.executable, "-S", "-c", BETWEEN, t.mlo, *args], capture_output=True, text=True, timeout=300)
    if p.returncode: raise RuntimeError("mlo %s: status %d: %s" % (" ".join(args), p.returncode, p.stderr[-400:]))
    return int(p.stdout) / 1e3


def growth(*args):
    """MB that each layer more takes."""
    few, many = (peak(args[0], external(n), *args[1:], "-o", t.at(args[0])) for n in (FEW, MANY))
    t.note("%s: %.1f MB of %d layers, %.1f MB of %d" % (args[0], few, FEW, many, MANY))
    return (many - few) / (MANY - FEW)


def check_untouched():
    """What needs no number reads none: a megabyte a layer would be a twelfth of its weights."""
    for verb in "read", "roll":
        more = growth(verb)
        t.case("%s: a layer more takes no weights" % verb, "" if more < 1 else "%.2f MB" % more)


def check_floats():
    """Calibration holds no weights of another layer; the values that it saw, at most 24 MB of them, are about 1 MB a layer here."""
    more = growth("quantize")
    t.case("quantize: a layer more takes no weights", "" if more < 2.5 else "%.2f MB" % more)


def check_llama():
    """1.1 billion parameters: what is in front of quantize reads none of them. The file beside has holes alone, which cost no disk."""
    from models import big_llama
    path, beside = t.at("llama.onnx"), t.write("llama.data", b"")
    big_llama.make(path, "llama-1.1b", beside)
    t.case("a Llama of 22 layers: its weights are 3.8 GB", "" if os.path.getsize(beside) > 3.8e9 else str(os.path.getsize(beside)))
    for verb in "read", "roll":
        most = peak(verb, path, "--context", "64", "-o", t.at("llama-" + verb))
        t.note("%s: %.1f MB of 22 layers of 2 048 channels" % (verb, most))
        t.case("%s: a Llama of 22 layers takes 32 MB at most" % verb, "" if most <= 32 else "%.1f MB" % most)
    for verb, flags in ("quantize", ()), ("lower", ()), ("fold", ("--pe", "8", "--simd", "8")), ("fold", ()):
        most = peak(verb, path, "--context", "64", "--sketch", *flags, "-o", t.at("sketch.json"))
        what = " ".join((verb, "--sketch") + flags)
        t.note("%s: %.1f MB" % (what, most))
        t.case("%s: it takes 64 MB at most" % what, "" if most <= 64 else "%.1f MB" % most)


def check_integers():
    """A byte a weight, and what else a layer's graph takes."""
    more = growth("compile")
    t.case("compile: a layer more takes its integers once", "" if more < 1.25 * INTEGERS + 1 else "%.2f MB, its integers are %.2f" % (more, INTEGERS))


def check_mapped():
    """Where the weights lie changes nothing: the build of a model that holds them, at offsets that nothing aligns, has the same parameters."""
    inside = t.at("inside.onnx")
    onnx.save_model(onnx.load(external(FEW)), inside)
    trees = []
    for path in external(FEW), inside:
        t.good("compile", path, "-o", t.at("same"))
        trees.append({name: digest for name, digest in t.tree(t.at("same")).items() if name.startswith(("params", "tb/", "rtl/"))})
    t.case("external or inside: the same words", "" if trees[0] == trees[1] and len(trees[0]) > 10 else "%s differ" % [n for n in trees[0] if trees[0][n] != trees[1].get(n)][:4])


def check_archive():
    """An .npz says the checksum of an array in front of it: Python's of as many zeros, where they are more than a gibibyte. Nobody waits for the zeros."""
    count, zeros = (1 << 27) + 1, bytes(1 << 26)
    node = helper.make_node("ConstantOfShape", ["shape"], ["y"], value=helper.make_tensor("zero", TensorProto.INT64, [1], [0]))
    graph = helper.make_graph([node], "zeros", [], [helper.make_tensor_value_info("y", TensorProto.INT64, [count])], [numpy_helper.from_array(np.array([count]), "shape")])
    np.savez(t.at("none.npz"))
    p = subprocess.Popen([t.mlo, "run", t.write("zeros.onnx", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()),
                          "--inputs", t.at("none.npz"), "--outputs", "/dev/stdout"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    said = p.stdout.read(1024)
    p.stdout.close()
    p.wait()
    crc, name, extra = struct.unpack("<14xI8xHH", said[:30])
    begin = 30 + name + extra
    want = zlib.crc32(said[begin:begin + 10 + struct.unpack("<H", said[begin + 8:begin + 10])[0]])          # the header of .npy
    for at in range(0, 8 * count, len(zeros)): want = zlib.crc32(zeros[:8 * count - at], want)
    t.case("the checksum of more than a gibibyte", "" if crc == want and said[:4] == b"PK\3\4" else "%08x, not %08x" % (crc, want))


t.main(check_untouched, check_llama, check_floats, check_integers, check_mapped, check_archive, floor=13)
