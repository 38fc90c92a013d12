#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Deeploy's networks of integers in C, as they stand (--target c --inputs FILE --golden FILE; ../shared/deeploy, where that is).

    python tests/test_flat.py path/to/mlo [NAME ...]

    networks    every one: Deeploy's own golden words, from gcc -O3 without a warning; the two of floats are refused
    compilers   some, by date: gcc and clang, -O0 and -O3, sanitizers; 32-bit Arm, big-endian PowerPC, RISC-V under qemu; two on a Cortex-M3 and on 32-bit RISC-V without an operating system
    extremes    other words of the inputs' types, the lowest and the highest among them: ONNX Runtime's, which runs mlo's functions; nothing that C leaves undefined happens
    arena       places that are in use together do not overlap; proved the least, none of other planners is below; a run touches all of it, and nothing beyond its end
    rolled      of microLlama's layers there is one, in a loop
    profile     every call is in the table, as often as it ran
    tiled       arenas smaller than the values: golden words whenever a copy happens between START and WAIT, bytes copied as foretold, kernels on the arena alone
    sabotage    that check sees a WAIT too late, and two parts in one place
    drawn       show's picture of a plan has each part where the manifest says, and its text the cuts
    wrong       a golden word that differs is named; sim says the same
    refused     --golden without --inputs, --inputs without C, golden words that cannot be, arrays that are nobody's, an arena too small
    fused       what goes number by number behind sums is no step of its own; where it cannot be, it is one
    single      operators of one node, other shapes than Deeploy's: numpy's results"""
import ctypes
import html
import itertools
import json
import os
import re
import shutil
import subprocess
import numpy as np
import onnxruntime as ort
from onnx import TensorProto as T, helper, numpy_helper
import harness as t
import planners

deeploy = os.path.join(t.shared, "deeploy")
FLOATS = {"Models__CCT__FP32__CCT_2_32_32_128": b"(Conv): C has no text for convolutions of floats", "Models__microLlama__FP32__microLlama1": b"(RMSNorm): C has no text for this operator of floats"}
TYPES = {"int8_t": np.int8, "uint8_t": np.uint8, "int16_t": np.int16, "int32_t": np.int32, "int64_t": np.int64, "float": np.float32}
FOREIGN = (("arm-linux-gnueabihf-gcc", "qemu-arm"), ("powerpc-linux-gnu-gcc", "qemu-ppc"), ("riscv64-linux-gnu-gcc", "qemu-riscv64"))

BARE = {"cortex-m": ("arm-none-eabi-gcc", "qemu-system-arm"), "riscv32": ("riscv64-unknown-elf-gcc", "qemu-riscv32")}


def networks():
    if not t.beside("networks", "deeploy"): return []
    return sorted(d for d in os.listdir(deeploy) if os.path.exists(os.path.join(deeploy, d, "network.onnx")))
def integers(): return [n for n in networks() if n not in FLOATS]
def file(name, what): return os.path.join(deeploy, name, what)
def arrays(path): return list(np.load(path).values())
def text(path, name): return t.read(os.path.join(path, name)).decode()


def compiled(name, path, *flags):
    return t.call("compile", file(name, "network.onnx"), "--target", "c", "--inputs", file(name, "inputs.npz"), "--golden", file(name, "outputs.npz"), *flags, "-o", path)


def built(name):
    path = t.at("c-" + name)
    if not os.path.isdir(path):
        p = compiled(name, path)
        assert p.returncode == 0, name + ": " + p.stderr.decode()
    return path


def tested(path, cc, flags, run=()):
    """'' when the test, so compiled, passes without a warning, with as many words as the golden outputs have."""
    program = os.path.join(path, "test-" + re.sub(r"\W", "", cc + "".join(flags)))
    p = subprocess.run([*cc.split(), "-std=c99", "-Wall", "-Wextra", "-Werror", *flags, "-o", program, *(os.path.join(path, f) for f in ("model.c", "weights.c", "test.c"))], capture_output=True, text=True)
    if p.returncode: return p.stderr[-400:]
    p = subprocess.run([*run, program], capture_output=True, text=True)
    return "" if p.returncode == 0 and passed(path, p.stdout) else (p.stdout + p.stderr)[-400:]


def passed(path, said):
    """Whether a test says that all of its words are right."""
    words = re.fullmatch(r"MLO PASS frames=1 words=(\d+) arena=\d+ touched=\d+\n", said)
    return words and int(words[1]) == json.loads(text(path, "manifest.json"))["words"]


def golden(path):
    """The words that its test compares with."""
    return [np.array([float(v.rstrip("f")) for v in words.replace("\n", " ").split(",")]) for words in re.findall(r"golden\d+\[\d+\] = \{\n(.*?)\n\};", text(path, "test.c"), re.S)]


def check_networks():
    for name in networks():
        if name in FLOATS:
            p = compiled(name, t.at("refused"))
            t.case("%s: floats are refused" % name, "" if p.returncode == 4 and FLOATS[name] in p.stderr and b"let the host do it" in p.stderr and not os.path.exists(t.at("refused")) else p.stderr.decode() or "it says nothing")
            continue
        path, theirs = built(name), arrays(file(name, "outputs.npz"))
        t.case("%s: gcc -O3" % name, tested(path, "gcc", ["-O3"]))
        ours = golden(path)
        t.case("%s: its test has Deeploy's words" % name, "" if len(ours) == len(theirs) and all(np.array_equal(a.astype(np.float32), b.reshape(-1).astype(np.float32)) for a, b in zip(ours, theirs)) else "it has others")


def check_compilers():
    for name in t.drawn(integers(), 3, str): t.case("%s: clang under sanitizers" % name, tested(built(name), "clang", ["-O1", *t.SANITIZE]))
    for name in t.drawn(integers(), 5, str):
        for cc, flags in itertools.product(("gcc", "clang"), (["-O0"], ["-O3"])): t.case("%s: %s %s" % (name, cc, *flags), tested(built(name), cc, flags))
        t.case("%s: used from C++" % name, t.of_cpp(built(name), "model_run", "model_weights"))
        for cc, qemu in FOREIGN:
            if t.have(qemu, cc, qemu): t.case("%s: %s" % (name, qemu), tested(built(name), cc, ["-static", "-O2"], [qemu]))
    for (target, tools), name in itertools.product(BARE.items(), t.drawn(integers(), 12, str)):
        if not t.have(target, *tools): continue
        p = subprocess.run(["make", "-s", "-C", built(name), target], capture_output=True, text=True, timeout=300)
        t.case("%s: make %s" % (name, target), "" if p.returncode == 0 and passed(built(name), p.stdout) and not p.stderr else (p.stdout + p.stderr)[-400:])


# ---- other words ------------------------------------------------------------------------------------------------------------------------------

class Network:
    """The emitted C, called from here."""
    def __init__(self, path):
        library = os.path.join(path, "model.so")
        subprocess.run(["gcc", "-std=c99", "-O1", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-shared", "-fPIC", "-o", library, *(os.path.join(path, f) for f in ("model.c", "weights.c"))], check=True)
        self.run = ctypes.CDLL(library).model_run
        header = text(path, "model.h")
        signature = re.search(r"int model_run\(([^;]*)\);", header, re.S)[1]
        self.types = {name: TYPES[kind] for kind, name in re.findall(r"(\w+) \*((?:in|out)\d+)", signature)}
        self.shape = {k: tuple(map(int, re.findall(r"\d+", dims))) for k, dims in re.findall(r"/\* (\w+): .* \[(.*)\] \*/", header)}
        self.bytes = int(re.search(r"MODEL_ARENA_BYTES (\d+)", header)[1])

    def __call__(self, *inputs):
        memory = np.zeros(self.bytes + 16, np.uint8)
        arena = memory[-memory.ctypes.data % 16:]
        x = [np.ascontiguousarray(a, self.types["in%d" % i]) for i, a in enumerate(inputs)]
        y = [np.zeros(self.shape[k], self.types[k]) for k in self.types if k.startswith("out")]
        status = self.run(*(ctypes.c_void_p(a.ctypes.data) for a in (*x, *y, arena)), ctypes.c_size_t(self.bytes))
        assert status == 0, status
        return y


def check_extremes():
    """A type is all that a word has to be of: the ends of its range, and words drawn."""
    rng = np.random.default_rng(11)
    for name in integers():
        if "DeepQuant" in name or "__Pad__" in name: continue                   # floats come in; a Pad of no opset
        model = Network(built(name))
        t.good("read", file(name, "network.onnx"), "--onnx", "-o", t.at("read.onnx"))
        session = ort.InferenceSession(t.at("read.onnx"), providers=["CPUExecutionProvider"])
        kinds, wrong = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}, ""
        for draw in ("lowest", "highest", "ends", "any", "any"):
            feeds = []
            for k, i in enumerate(session.get_inputs()):
                ends = np.iinfo(model.types["in%d" % k])
                feeds.append(np.full(i.shape, ends.min if draw == "lowest" else ends.max) if draw in ("lowest", "highest") else
                             rng.choice([ends.min, ends.max], i.shape) if draw == "ends" else rng.integers(ends.min, ends.max, i.shape, endpoint=True))
            want = session.run(None, {i.name: a.astype(kinds[i.type]) for i, a in zip(session.get_inputs(), feeds)})
            for k, (a, b) in enumerate(zip(model(*feeds), want)):
                if np.max(np.abs(b)) < 2 ** 24 and not np.array_equal(a.reshape(-1), b.reshape(-1)): wrong = wrong or "%s: output %d: %d of %d differ" % (draw, k, np.sum(a.reshape(-1) != b.reshape(-1)), b.size)
        t.case("%s: words of ONNX Runtime" % name, wrong)


def check_arena():
    for name in integers():
        m = json.loads(text(built(name), "manifest.json"))
        wrong = ["%d and %d" % (i, k) for (i, a), (k, b) in itertools.combinations(enumerate(m["places"]), 2)
                 if planners.meet(a, b) and a["offset"] < b["offset"] + b["bytes"] and b["offset"] < a["offset"] + a["bytes"]]
        t.case("%s: places do not overlap" % name, "; ".join(wrong[:3]))
        bound = max((sum(p["bytes"] for p in m["places"] if p["steps"][s] == "1") for s in range(m["steps"] + 1)), default=0)
        t.case("%s: the arena is proved the least" % name, "" if m["arena_bound"] == bound <= m["arena_bytes"] and m["arena_proved"] else str(m["arena_bytes"]))
        others = planners.other_planners(m["places"]) if m["places"] else [0]
        t.case("%s: no other planner is below" % name, "" if max(p["offset"] + p["bytes"] for p in m["places"] or [dict(offset=0, bytes=16)]) == m["arena_bytes"] <= max(min(others), 16) else "%d, others %s" % (m["arena_bytes"], others))
        said = tested(built(name), "gcc", ["-O3"]) or subprocess.run([os.path.join(built(name), "test-gccO3")], capture_output=True, text=True).stdout
        touched = re.fullmatch(r"MLO PASS .* arena=(\d+) touched=(\d+)\n", said)
        slack = max([p["bytes"] for p in m["places"] if p["offset"] + p["bytes"] == m["arena_bytes"] and "scratch" in p["what"]], default=0)        # its room may be wider than what lies there
        t.case("%s: a run touches what is stated" % name, "" if touched and int(touched[1]) == m["arena_bytes"] and m["arena_bytes"] - max(slack, 15) <= max(int(touched[2]), 16 * (not m["places"])) <= m["arena_bytes"] else said)


def check_places():
    """A step of one operand, number by number, writes over it: a chain of them needs one place, also where the second of two operands is read for the last time."""
    rng, info = np.random.default_rng(12), lambda n: helper.make_tensor_value_info(n, T.FLOAT, [1, 40, 50])
    feeds = {n: rng.integers(-9, 10, (1, 40, 50)).astype(np.float32) for n in "xw"}
    chains = {"four functions": [("Relu", ["x"], "a"), ("Min", ["a", "most"], "b"), ("Relu", ["b"], "c"), ("Relu", ["c"], "y")], "sums over their second operands": [("Relu", ["x"], "a"), ("Max", ["w", "a"], "b"), ("Max", ["x", "b"], "c"), ("Relu", ["c"], "y")]}
    for what, nodes in chains.items():
        read = {i for _, inputs, _ in nodes for i in inputs}
        m = helper.make_model(helper.make_graph([helper.make_node(op, i, [o]) for op, i, o in nodes], "g", [info(n) for n in feeds if n in read], [info("y")], [numpy_helper.from_array(np.float32(7), "most")][:"most" in read]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        given = {n: v for n, v in feeds.items() if n in read}
        np.savez(t.at("in.npz"), **given)
        np.savez(t.at("out.npz"), *ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, given))
        path = t.at("places-%d" % len(read))
        p = t.call("compile", t.write("places.onnx", m.SerializeToString()), "--target", "c", "--inputs", t.at("in.npz"), "--golden", t.at("out.npz"), "-o", path)
        why = p.stderr.decode() if p.returncode else tested(path, "gcc", ["-O1", *t.SANITIZE])
        t.case("one place: %s" % what, why or "; ".join("%(what)s: %(bytes)d bytes" % p for p in json.loads(text(path, "manifest.json"))["places"][1:]))


def check_rolled():
    """What repeats is written once: of microLlama's eight layers, one."""
    for name in integers():
        loop = json.loads(text(built(name), "manifest.json"))["loop"]
        if "microLlama" not in name: continue
        body = text(built(name), "model.c").split("int model_run(")[1]
        calls = len(re.findall(r"^ +MODEL_STEP\(\d+, mlo_\w+\(", body, re.M))
        t.case("%s: eight rounds of a layer" % name, "" if loop["rounds"] == 8 and calls == json.loads(text(built(name), "manifest.json"))["steps"] - 7 * loop["steps"] else "%s, %d calls" % (loop, calls))


def check_profile():
    """A line for each call, which counts the rounds of the loop."""
    for name in "Models__microLlama__INT8__microLlama8_parallel", "Models__miniMobileNet":
        if name not in networks(): continue
        m = json.loads(text(built(name), "manifest.json"))
        p = subprocess.run(["make", "-s", "-C", built(name), "profile", "CFLAGS=-O1 -Werror"], capture_output=True, text=True)
        lines = re.findall(r"^ +\d+ +\d+ % +(\d+)  .* \((mlo_\w+)\)$", p.stdout, re.M)
        kernels = re.findall(r"MODEL_STEP\(\d+, (mlo_\w+)\(", text(built(name), "model.c"))
        t.case("%s: make profile" % name, "" if p.returncode == 0 and "\nMLO PASS" in p.stdout and sum(int(n) for n, _ in lines) == m["steps"] and [k for _, k in lines] == kernels else p.stdout[-300:] + p.stderr[-300:])


def check_wrong():
    name = "Models__miniMobileNet"
    if name not in networks(): return
    path = t.at("wrong")
    shutil.copytree(built(name), path)
    said = json.loads(t.good("sim", path))
    t.case("sim passes", "" if said["pass"] and said["target"] == "c" and said["words"] == 10 else str(said))
    other = [a.copy() for a in arrays(file(name, "outputs.npz"))]
    other[0].reshape(-1)[7] += 1
    np.savez(t.at("other.npz"), *other)
    p = t.call("compile", file(name, "network.onnx"), "--target", "c", "--inputs", file(name, "inputs.npz"), "--golden", t.at("other.npz"), "-o", t.at("differs"))
    q = t.call("sim", t.at("differs"))
    t.case("a word that differs", "" if p.returncode == 0 and q.returncode == 1 and b"output 0, word 7: expected" in q.stderr else (p.stderr + q.stderr).decode())
    ours = t.at("own")
    t.good("compile", file(name, "network.onnx"), "--target", "c", "--inputs", file(name, "inputs.npz"), "-o", ours)
    t.case("without --golden, mlo's own words", "" if all(map(np.array_equal, golden(ours), golden(built(name)))) else "they differ")


TILED = [("Models__MLPerf__ImageClassification", (18736, 32768, 65535)), ("Models__MLPerf__KeywordSpotting", (7120,)), ("Models__CCT__Int__ICCT", (65536, 131072)), ("Models__microLlama__INT8__microLlama8_parallel", (2368, 4096))]
BLOCKED = (("blocks of 64 tokens", 16000), ("blocks of 64 tokens", 65536), ("a ragged product", 4096), ("a ragged product", 6000))
SINGLE = (2368, 7120, 9000, 16384, 18736)               # of those, where something has one place, for want of room
DMA = rb"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define DMA_UNUSED __attribute__((unused))
static struct { unsigned char *to; const unsigned char *from; size_t bytes; } dma[1 << 16];
static unsigned long long dma_all DMA_UNUSED, dma_beside DMA_UNUSED;
static int dma_n DMA_UNUSED;
static void DMA_UNUSED dma_start(void *to, const void *from, size_t bytes) {
    const char mode = *getenv("DMA");                  /* f: it is there at once; l: late; s: late, and until then something else is there */
    dma_all += bytes;
    if (mode == 'f') memcpy(to, from, bytes);
    if (mode == 's') memset(to, 0xEE, bytes);
    if (mode == 'f') return;
    if (dma_n == 1 << 16) abort();
    dma[dma_n].to = to;
    dma[dma_n].from = from;
    dma[dma_n++].bytes = bytes;
}
static void DMA_UNUSED dma_wait(void) {
    for (int i = 0; i < dma_n; i++) memcpy(dma[i].to, dma[i].from, dma[i].bytes);
    dma_n = 0;
}
static void DMA_UNUSED dma_step(void) { for (int i = 0; i < dma_n; i++) dma_beside += dma[i].bytes; }
static void __attribute__((destructor)) DMA_UNUSED dma_told(void) { if (dma_all) fprintf(stderr, "%llu %llu", dma_all, dma_beside); }
#define MLO_COPY_START(to, from, bytes) dma_start(to, from, bytes)
#define MLO_COPY_WAIT() dma_wait()
"""
STEP = "#undef MODEL_STEP\n#define MODEL_STEP(i, call) (dma_step(), call)\n"


def mobilenet(rng):
    """Depthwise and pointwise convolutions as MobileNet has them, of 112 x 112: maps of 98 KB."""
    nodes, fixed, channels, x = [], {"low": np.float32(0), "high": np.float32(127)}, 3, "x"
    for n, (out, kernel, stride, groups) in enumerate(((16, 3, 2, 1), (16, 3, 1, 16), (32, 1, 1, 1), (32, 3, 2, 32), (64, 1, 1, 1), (64, 3, 2, 64), (64, 1, 1, 1), (10, 1, 1, 1))):
        fixed["w%d" % n] = rng.integers(-3, 4, (out, channels // groups, kernel, kernel)).astype(np.float32)
        fixed["b%d" % n] = rng.integers(-99, 100, out).astype(np.float32)
        nodes += [helper.make_node("Conv", [x, "w%d" % n, "b%d" % n], ["s%d" % n], group=groups, strides=[stride] * 2, pads=[kernel // 2] * 4), helper.make_node("Clip", ["s%d" % n, "low", "high"], ["x%d" % n])]
        channels, x = out, "x%d" % n
    return nodes, fixed, rng.integers(-9, 10, (1, 3, 112, 112)).astype(np.float32)


def pictures(rng):
    """Windows of every kind over pictures that are larger than the arena: steps, dilations, pads that are not alike, groups, pooling."""
    nodes, fixed, x, channels = [], {"low": np.float32(-128), "high": np.float32(127)}, "x", 3
    kinds = ((8, 3, 1, {"strides": [2, 2], "pads": [1, 1, 1, 1]}), (8, 5, 1, {"dilations": [2, 1], "pads": [4, 2, 4, 2]}), (8, 3, 8, {"pads": [0, 1, 2, 1]}), (12, 4, 2, {"strides": [3, 1], "pads": [2, 1, 1, 2]}), (5, 1, 1, {}))
    for n, (out, kernel, groups, attributes) in enumerate(kinds):
        fixed["w%d" % n] = rng.integers(-3, 4, (out, channels // groups, kernel, kernel)).astype(np.float32)
        fixed["b%d" % n] = rng.integers(-99, 100, out).astype(np.float32)
        nodes += [helper.make_node("Conv", [x, "w%d" % n, "b%d" % n], ["s%d" % n], group=groups, **attributes), helper.make_node("Clip", ["s%d" % n, "low", "high"], ["x%d" % n])]
        channels, x = out, "x%d" % n
        if n == 1: nodes += [helper.make_node("MaxPool", [x], ["pooled"], kernel_shape=[3, 2], strides=[1, 1], pads=[1, 0, 1, 1])]
        if n == 1: x = "pooled"
    return nodes, fixed, rng.integers(-9, 10, (1, 3, 150, 130)).astype(np.float32)


def blocks(rng):
    """Two blocks of 64 tokens, 256 channels, 1024 hidden ones, as a transformer has them behind its attention: matrices of 256 KB."""
    nodes, fixed, x = [], {"low": np.float32(-128), "high": np.float32(127)}, "x"
    for n in "ab":
        fixed.update({"up" + n: rng.integers(-2, 3, (256, 1024)).astype(np.float32), "down" + n: rng.integers(-2, 3, (1024, 256)).astype(np.float32)})
        nodes += [helper.make_node("MatMul", [x, "up" + n], ["s" + n]), helper.make_node("Clip", ["s" + n, "low", "high"], ["h" + n]), helper.make_node("MatMul", ["h" + n, "down" + n], ["t" + n]),
                  helper.make_node("Add", [x, "t" + n], ["r" + n]), helper.make_node("Clip", ["r" + n, "low", "high"], ["x" + n])]
        x = "x" + n
    return nodes, fixed, rng.integers(-9, 10, (64, 256)).astype(np.float32)


def made(name, path, *flags):
    """A network that is made here, with ONNX Runtime's words, compiled."""
    nodes, fixed, x = MADE[name][0](np.random.default_rng(3))
    info = lambda n, shape: helper.make_tensor_value_info(n, T.FLOAT, shape)
    m = helper.make_model(helper.make_graph(nodes, "g", [info("x", x.shape)], [info(nodes[-1].output[0], None)], [numpy_helper.from_array(v, k) for k, v in fixed.items()]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    np.savez(t.at("in.npz"), x=x)
    np.savez(t.at("out.npz"), *ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x}))
    return t.call("compile", t.write("made.onnx", m.SerializeToString()), "--target", "c", "--inputs", t.at("in.npz"), "--golden", t.at("out.npz"), *flags, "-o", path)


def ragged(rng):
    """A product of matrices neither of which fits, with a bias for each row, of sizes that nothing divides."""
    fixed = {"w": rng.integers(-9, 10, (301, 71)).astype(np.float32), "b": rng.integers(-99, 100, (53, 71)).astype(np.float32)}
    return [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Gemm", ["r", "w", "b"], ["y"])], fixed, rng.integers(-9, 10, (53, 301)).astype(np.float32)


MADE = {"MobileNet-shaped": (mobilenet, (24576, 65536, 131072)), "blocks of 64 tokens": (blocks, (16000, 65536, 131072)), "a ragged product": (ragged, (4096, 6000)), "large pictures": (pictures, (9000, 16384))}


def copied(path, what, change, modes, *flags):
    """Of each mode of the DMA: (whether the test passes, the bytes copied, those copied while a kernel runs, what is said)."""
    source = text(path, "model.c").replace("#include \"profile.h\"\n", "#include \"profile.h\"\n" + STEP)
    t.write("dma.h", DMA)
    with open(os.path.join(path, what + ".c"), "w") as f: f.write(change(source))
    p = subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", *flags, "-include", t.at("dma.h"), "-o", os.path.join(path, what), *(os.path.join(path, f) for f in (what + ".c", "weights.c", "test.c"))], capture_output=True, text=True)
    if p.returncode: return {mode: (False, 0, 0, p.stderr[-400:]) for mode in modes}
    said = {}
    for mode in modes:
        q = subprocess.run([os.path.join(path, what)], capture_output=True, text=True, env=dict(os.environ, DMA=mode))
        counts = re.fullmatch(r"(\d+) (\d+)", q.stderr)
        said[mode] = (q.returncode == 0 and bool(passed(path, q.stdout)), *(map(int, counts.groups()) if counts else (0, 0)), (q.stdout + q.stderr)[-400:])
    return said


def tiles_agree(m, most):
    """'' when what the manifest says of each step is so: arguments lie in the arena side by side, two places where it says so, and no more than were asked for."""
    for s in m["tiles"]:
        at, parts = 0, -(-s["units"] // s["tile"])
        for a in s["arguments"]:
            if a["offset"] != at or a["bytes"] % 16 or a["places"] not in (1, 2) or (a["places"] == 2 and not a["cut"]) or (a["cut"] and parts == 1): return "%s: %s" % (s["node"], a)
            at += a["bytes"] * a["places"]
        if not at <= s["bytes"] <= most: return "%s: %d of %d bytes" % (s["node"], at, s["bytes"])
        spare = most - s["bytes"]
        one = [a["bytes"] for a in s["arguments"] if a["cut"] and a["places"] == 1]
        if s["tile"] == 1 and one and min(one) <= spare: return "%s: %d bytes are left for a second place" % (s["node"], spare)
        if s["tile"] > 1 and one: return "%s: a part of one unit may have two places" % s["node"]
    return ""


def check_tiled():
    """In arenas that are smaller than the values: the same words, from a DMA that is fast, late, or late and has something else there until then; parts of what was asked for at most; the bytes copied, and those
    copied beside a kernel, are those foretold."""
    every = [(name, most) for name, sizes in [*TILED, *((n, MADE[n][1]) for n in MADE)] for most in sizes]
    for name, most in t.drawn(every, 3, lambda case: "%s in %d" % case):
        if name in MADE or name in networks():
            path, what = t.at("tiled-%s-%d" % (re.sub(r"\W", "", name), most)), "%s in %d bytes" % (name, most)
            p = (made if name in MADE else compiled)(name, path, "--arena", str(most))
            if p.returncode: t.case(what, p.stderr.decode()); continue
            m, said = json.loads(text(path, "manifest.json")), json.loads(p.stdout)
            for mode, (good, all_, beside, why) in copied(path, "dma", lambda c: c, "fls", *t.SANITIZE).items():
                t.case("%s: a DMA that is %s" % (what, {"f": "fast", "l": "late", "s": "late, and scribbles"}[mode]), "" if good else why)
                t.case("%s: traffic, %s" % (what, mode), "" if all_ == m["traffic_bytes"] == sum(s["traffic"] for s in m["tiles"]) else "%d, foretold %d" % (all_, m["traffic_bytes"]))
                if mode != "f": t.case("%s: traffic beside kernels, %s" % (what, mode), "" if beside == m["overlapped_bytes"] == sum(s["overlapped"] for s in m["tiles"]) > 0 else "%d, foretold %d" % (beside, m["overlapped_bytes"]))
            t.case("%s: no more" % what, "" if m["arena_bytes"] == max(s["bytes"] for s in m["tiles"]) <= most and m["tiles"] == said["tiles"] and m["memory_bytes"] > most else str(m["arena_bytes"]))
            t.case("%s: the plan" % what, tiles_agree(m, most))
            if (name, most) in BLOCKED: t.case("%s: blocks of rows" % what, "" if any(s["blocks"] > 1 for s in m["tiles"]) else "none")
            cut = [[a["places"] for a in s["arguments"] if a["cut"]] for s in m["tiles"] if s["tile"] < s["units"]]
            single = sum(1 in c for c in cut)
            tells = "%d of %d steps are cut, %s" % (len(cut), len(m["tiles"]), "%d of them with one place" % single if single else "with two places for every part")
            t.case("%s: what people read" % what, "" if tells.encode() in p.stderr and (single > 0) == (most in SINGLE) else "%s: %s" % (tells, p.stderr.decode()))
            wide = re.search(r"MODEL_STEP\(\d+, .*\(a \+ \d+\)", "\n".join(l for l in text(path, "model.c").splitlines() if not re.match(r" +MODEL_STEP\(\d+, mlo_(move|fill)_", l)))
            t.case("%s: kernels see the arena alone" % what, wide[0] if wide else "")


def behind(source):
    """Each part waits for its copies behind its call."""
    return re.sub(r"^ {12}MLO_COPY_WAIT\(\);\n(.*?)(^ {12}MODEL_STEP\([^\n]*\n)", r"\1\2            MLO_COPY_WAIT();\n", source, flags=re.S | re.M)


def check_sabotage():
    """What a DMA must show: a part that is used before it is there, and one that is copied over a part in use."""
    one = lambda source: re.sub(r" \+ (!b|b|1) \* \d+", " + (b & 0)", source).replace("b & 0)", "0)").replace("b = !b", "b = 0, (void)b")
    every = [("Models__MLPerf__ImageClassification", 18736), ("Models__microLlama__INT8__microLlama8_parallel", 4096), *((n, MADE[n][1][0]) for n in MADE)]
    for name, most in t.drawn(every, 2, lambda case: "%s in %d" % case):
        if name not in MADE and name not in networks(): continue
        path = t.at("sabotage-%s" % re.sub(r"\W", "", name))
        p = (made if name in MADE else compiled)(name, path, "--arena", str(most))
        for what, change in ("behind", behind), ("one", one):
            said = copied(path, what, change, "ls") if p.returncode == 0 else {"l": (True, 0, 0, p.stderr.decode())}
            t.case("%s: %s" % (name, {"behind": "waiting behind the call is seen", "one": "one place for two parts is seen"}[what]), "" if all(not good and "MLO FAIL output" in why for good, _, _, why in said.values()) else str(said))


def boxes(svg):
    """(class, x, width, name and when, first byte, last byte) of each box of a picture."""
    number = lambda s: int(s.replace("\u202f", "").replace(" ", ""))
    return [(css, int(x), int(w), html.unescape(said), number(a), number(b)) for css, x, w, said, a, b in
            re.findall(r"<rect class='(i\d(?: faded)?)' x=(\d+) y=\d+ width=(\d+) height=\d+><title>(.*?); bytes ([\d ]+) to ([\d ]+)</title>", svg)]


def drawn(m):
    """What the arena's picture has to show of a plan: (what, part or whole, how, first byte, last byte) of each argument of each step of the loop's first round."""
    want, loop = set(), m["loop"]
    again = range(loop["start"] + loop["steps"], loop["start"] + loop["steps"] * loop["rounds"])
    steps = [s for s in m["tiles"] if s["step"] not in again]
    for s in steps:
        parts = -(-s["units"] // s["tile"])
        for a in s["arguments"]:
            for p in range(min(parts, 6 if len(steps) <= 64 else 2) if a["cut"] else 1):
                at = a["offset"] + (a["bytes"] if a["places"] == 2 and p % 2 else 0)
                for how in ("", ", leaves" if a["is"] == "result" else ", comes"):
                    want.add((a["value"] or a["is"], (", part %d" % p if a["cut"] else ", whole") + how, at, at + a["bytes"] - 1))
        if s["scratch"]: want.add(("scratch", "", s["bytes"] - s["scratch"], s["bytes"] - 1))
    return want


def meet(found):
    """Two boxes that are at one time at one byte."""
    return next((a[3] + " and " + b[3] for a, b in itertools.combinations(found, 2) if a[4] <= b[5] and b[4] <= a[5] and a[1] + 1 < b[1] + b[2] and b[1] + 1 < a[1] + a[2]), "")


def check_drawn():
    """`show` of a build draws its plan: every part of every argument where the manifest says it lies, in whole values each place; nothing twice at a time; and lists the cuts."""
    for name, most in [("Models__MLPerf__ImageClassification", 18736), ("Models__microLlama__INT8__microLlama8_parallel", 4096), *((n, MADE[n][1][0]) for n in MADE), ("Models__MLPerf__KeywordSpotting", None)]:
        if name not in MADE and name not in networks(): continue
        path, what = t.at("drawn-%s" % re.sub(r"\W", "", name)), "%s, drawn" % name
        p = (made if name in MADE else compiled)(name, path, *(("--arena", str(most)) if most else ()))
        if p.returncode: t.case(what, p.stderr.decode()); continue
        m, page = json.loads(text(path, "manifest.json")), t.good("show", "--html", path).decode()
        pictures = [boxes(svg) for svg in re.findall(r"<svg class='chart arena'.*?</svg>", page, re.S)]
        t.case("%s: pictures" % what, "" if len(pictures) == (2 if most else 1) else "%d" % len(pictures))
        for k, found in enumerate(pictures): t.case("%s: nothing twice at a time, %d" % (what, k), meet(found))
        again = range(m["loop"]["start"] + m["loop"]["steps"], m["loop"]["start"] + m["loop"]["steps"] * m["loop"]["rounds"])
        places = {(a["offset"], a["offset"] + a["bytes"] - 1) for a in m["places"] if any(c == "1" for i, c in enumerate(a["steps"]) if i not in again)}
        t.case("%s: places" % what, "" if {b[4:] for b in pictures[-1]} == places else "%s" % ({b[4:] for b in pictures[-1]} ^ places))
        if not most: continue
        found = {(*re.fullmatch(r"(.*?)((?:, (?:part \d+|whole)(?:, \w+)?)?)", b[3]).groups(), *b[4:]) for b in pictures[0]}
        t.case("%s: parts" % what, "" if found == drawn(m) else "%s" % sorted(found ^ drawn(m))[:4])
        comes = [b for b in pictures[0] if b[3].endswith(", comes") and not re.search(r"part 0,|whole", b[3])]
        beside = [b for b in comes if any(o[3].startswith(b[3].split(", part")[0] + ", part") and "faded" not in o[0] and o[1] < b[1] + b[2] - 1 and b[1] < o[1] + o[2] - 1 for o in pictures[0])]
        t.case("%s: parts come while others are used" % what, "" if beside and (len(beside) == len(comes)) == (most not in SINGLE) else "%d of %d" % (len(beside), len(comes)))
        lines = t.good("show", "--text", path).decode().replace("\u202f", " ").splitlines()
        rows = [l for l in lines if re.match(r" +\d+ ", l)]
        said = [s for s in m["tiles"] if s["step"] not in again]
        spaced = lambda n: "{:,}".format(n).replace(",", " ")
        t.case("%s: a line for each step in parts" % what, "" if len(rows) >= len(said) and all(any(re.match(r" +%s .* %s +%s +%s +%s" % (spaced(s["step"]), spaced(s["units"]), spaced(s["bytes"]), spaced(s["traffic"]), spaced(s["overlapped"])), l) for l in rows) for s in said) else "\n".join(lines))
        title = next((l for l in lines if re.match(r" +step +node .* places$", l)), "")
        ends = [m.end() for m in re.finditer(r"(?:step|parts|units|bytes|copied|beside)\b", title)]
        of = [l for l in rows if lines.index(l) > lines.index(title)][:len(said)] if title else []
        one = [(sum(a["cut"] for a in s["arguments"]), sum(a["cut"] and a["places"] < 2 for a in s["arguments"])) for s in said]
        want = ["" if not cut else "%d of %d: one" % (n, cut) if n else "two" for cut, n in one]
        t.case("%s: numbers end where their titles do" % what, "" if len(ends) == 6 and all(l[e - 1].isdigit() and l[e:e + 1] in ("", " ") for l in of for e in ends) else "\n".join([title, *of]))
        t.case("%s: how many places each has" % what, "" if [l[ends[-1]:].strip() for l in of] == want else "%s instead of %s" % ([l[ends[-1]:].strip() for l in of], want))
    if "Models__MLPerf__KeywordSpotting" not in networks(): return
    path = t.at("drawn-Models__MLPerf__KeywordSpotting")
    m = json.loads(text(path, "manifest.json"))
    with open(os.path.join(path, "manifest.json"), "w") as f: json.dump({k: v for k, v in m.items() if k != "nodes"}, f)
    p = t.call("show", "--html", path)
    t.case("a manifest without steps is refused", "" if p.returncode and b"compile it anew" in p.stderr else "%d: %s" % (p.returncode, p.stderr))
    t.good("run", os.path.join(path, "host/network.onnx"), "--inputs", file("Models__MLPerf__KeywordSpotting", "inputs.npz"), "--outputs", t.at("out.npz"))
    t.case("host/network.onnx is the network", "" if all(np.array_equal(a, b) for a, b in zip(arrays(t.at("out.npz")), arrays(file("Models__MLPerf__KeywordSpotting", "outputs.npz")))) else "it gives other words")


def check_refused():
    name = "Models__miniMobileNet"
    if name not in networks(): return
    x, y = arrays(file(name, "inputs.npz")), arrays(file(name, "outputs.npz"))
    np.savez(t.at("large.npz"), y[0] + 1e12)
    np.savez(t.at("short.npz"), y[0][:, :5])
    np.savez(t.at("two.npz"), y[0], y[0])
    np.savez(t.at("spare.npz"), *x, np.arange(5))
    np.savez(t.at("none.npz"))
    c, given = ("--target", "c"), ("--inputs", file(name, "inputs.npz"))
    for what, status, says, flags in (
            ("--golden alone", 2, b"--golden needs --inputs", (*c, "--golden", t.at("large.npz"))), ("--inputs of Verilog", 2, b"--inputs is of C", given),
            ("golden words that no output holds", None, b"golden numbers, ", (*c, *given, "--golden", t.at("large.npz"))), ("golden words of another shape", 3, b"the golden array has 5 numbers, not 10", (*c, *given, "--golden", t.at("short.npz"))),
            ("golden arrays for no output", 2, b"2 golden arrays for 1 outputs", (*c, *given, "--golden", t.at("two.npz"))), ("an array that is nobody's", 2, b"array 2 in --inputs is no input's, and no parameter", (*c, "--inputs", t.at("spare.npz"))),
            ("no array", None, b"holds no array", (*c, "--inputs", t.at("none.npz"))), ("an arena too small", 4, b"--arena 16: the smallest part of its result takes ", (*c, *given, "--arena", "16"))):
        p = t.call("compile", file(name, "network.onnx"), *flags, "-o", t.at("no"))
        t.case("%s is refused" % what, "" if p.returncode and (status is None or p.returncode == status) and says in p.stderr and not os.path.exists(t.at("no")) else "%d: %s" % (p.returncode, p.stderr.decode()))


# ---- operators of one node -------------------------------------------------------------------------------------------------------------------

def single(op, inputs, fixed, **attributes):
    """A model of one node; those of `fixed` are parameters."""
    names = ["" if a is None else "i%d" % k for k, a in enumerate(inputs)]              # None: left out
    kind = lambda a: T.INT64 if a.dtype == np.int64 else T.FLOAT
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(n, kind(a), a.shape) for n, a, f in zip(names, inputs, fixed) if n and not f], [helper.make_tensor_value_info("y", attributes.get("to", T.FLOAT), None)],
                              [numpy_helper.from_array(a, n) for n, a, f in zip(names, inputs, fixed) if n and f])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def check_single():
    rng = np.random.default_rng(5)
    f = lambda *shape: rng.integers(-100, 100, shape).astype(np.float32)
    l = lambda *v: np.array(v, np.int64)
    cases = [("Add", [f(2, 3, 4, 5), f(4, 1)], [0, 0], {}), ("Add", [f(5), f(2, 3, 4, 5)], [1, 0], {}), ("Sub", [f(3, 1, 5), f(4, 1)], [0, 0], {}), ("Mul", [f(2, 3), f()], [0, 1], {}), ("Mul", [np.array([1, 2 ** 30], np.float32), np.array([3, 2], np.float32)], [0, 0], {}), ("Max", [f(6), f(6)], [0, 0], {}), ("Min", [f(6), f(6)], [0, 1], {}),
             ("Clip", [f(40), np.float32(-7), np.float32(20)], [0, 1, 1], {}), ("Relu", [f(40)], [0], {}), ("Round", [f(9)], [0], {}), ("Transpose", [f(2, 3, 4, 5)], [0], {"perm": [3, 1, 0, 2]}), ("Transpose", [f(2, 3, 2, 3, 2)], [0], {"perm": [4, 2, 0, 3, 1]}), ("Transpose", [f(3, 4)], [0], {}),
             ("Slice", [f(7, 9), l(1, -2), l(6, -8), l(0, 1), l(2, -3)], [0, 1, 1, 1, 1], {}), ("Slice", [f(7, 9), l(2), l(5)], [0, 1, 1], {}), ("Gather", [f(4, 5, 6), np.array(-2)], [0, 1], {"axis": 1}), ("Gather", [f(4, 5, 6), l(3)], [0, 1], {"axis": 2}),
             ("Concat", [f(2, 3), f(2, 1), f(2, 4)], [0, 1, 0], {"axis": -1}), ("Pad", [f(2, 3, 4), l(0, 1, 2, 1, 0, 3), np.float32(-9)], [0, 1, 1], {}), ("MatMul", [f(3, 4, 5), f(5, 6)], [0, 1], {}), ("MatMul", [f(2, 1, 4, 5), f(3, 5, 6)], [0, 0], {}),
             ("MatMul", [f(4, 5), f(3, 5, 6)], [0, 1], {}), ("Gemm", [f(4, 5), f(6, 5), f(6)], [0, 1, 1], {"transB": 1}), ("Gemm", [f(4, 5), f(5, 6), f(4, 6)], [0, 0, 0], {}), ("Conv", [f(2, 4, 9), f(6, 2, 3), f(6)], [0, 1, 1], {"group": 2, "pads": [2, 1], "strides": [2], "dilations": [2]}),
             ("Conv", [f(1, 3, 7, 9), f(5, 3, 3, 2)], [0, 1], {"pads": [1, 0, 2, 3], "strides": [2, 1], "dilations": [1, 3]}), ("Conv", [f(1, 4, 5, 5), f(8, 1, 3, 3)], [0, 1], {"group": 4}), ("MaxPool", [f(2, 3, 7, 8)], [0], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 3]}),
             ("MaxPool", [f(1, 3, 9)], [0], {"kernel_shape": [4], "ceil_mode": 1, "strides": [2]}), ("ReduceSum", [f(3, 4, 5, 6), l(1, 2)], [0, 1], {}), ("ReduceSum", [f(3, 4), l(-1)], [0, 1], {"keepdims": 0}), ("Slice", [f(7, 9), l(1), l(5), l(-1)], [0, 1, 1, 1], {}), ("Slice", [f(7, 9), l(-3, 8), l(-9, 0), l(-2, -1), l(-1, -3)], [0, 1, 1, 1, 1], {}), ("Gather", [f(4, 5, 6), np.array(4)], [0, 1], {"axis": -1}),
             ("Concat", [f(2, 3), f(2, 3)], [0, 0], {"axis": 0}), ("Pad", [f(2, 3), l(0, 1, 2, 1)], [0, 1], {}), ("Pad", [f(2, 3), l(1, 1, 0, 0), np.float32(5)], [0, 1, 1], {"mode": "constant"}), ("Gemm", [f(4, 5), f(5, 6)], [0, 1], {"alpha": 1.0, "beta": 1.0}),
             ("Gemm", [f(4, 5), f(5, 6), f(6)], [0, 1, 0], {}), ("Gemm", [f(4, 5), f(5, 6), f(4, 6)], [0, 1, 1], {}), ("Conv", [f(1, 2, 9), f(3, 2, 3)], [0, 1], {"auto_pad": "NOTSET"}), ("MatMul", [f(1, 1, 3, 4, 5), f(5, 6)], [0, 1], {}), ("Add", [f(1), f(2, 3, 4)], [0, 0], {}),
             ("Add", [f(9) / 3, f(9)], [0, 0], {}), ("Clip", [f(40) / 3, np.float32(-7), np.float32(20)], [0, 1, 1], {}), ("Clip", [f(40) / 3, np.float32(-7.5), np.float32(20)], [0, 1, 1], {}), ("Relu", [f(40) / 3], [0], {}), ("Floor", [f(9)], [0], {}), ("Div", [f(9), np.float32(4)], [0, 1], {}), ("Transpose", [f(3, 4, 5)], [0], {"perm": [0, 1, 2]}),
             ("Flatten", [f(2, 3, 4)], [0], {}), ("Squeeze", [f(2, 1, 4), l(1)], [0, 1], {})]
    for n, (op, inputs, fixed, attributes) in enumerate(cases):
        m, path, name = single(op, inputs, fixed, **attributes), t.at("single-%d" % n), "%s of %s %s" % (op, [a.shape for a in inputs], attributes)
        feeds = {"i%d" % k: a for k, (a, f_) in enumerate(zip(inputs, fixed)) if not f_}
        want = ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
        np.savez(t.at("in.npz"), **feeds)
        np.savez(t.at("out.npz"), *want)
        p = t.call("compile", t.write("single.onnx", m.SerializeToString()), "--target", "c", "--inputs", t.at("in.npz"), "--golden", t.at("out.npz"), "-o", path)
        t.case(name, p.stderr.decode() if p.returncode else tested(path, "gcc", ["-O1", *t.SANITIZE]))
    near = [("Gather", [f(4, 5), l(1, 3)], [0, 1], {}, "more than one place"), ("ReduceSum", [f(3, 4, 5), l(0, 2)], [0, 1], {}, "axes that are not neighbours"), ("Gemm", [f(4, 5), f(5, 6)], [0, 1], {"alpha": .5}, "alpha and beta"), ("Conv", [f(1, 2, 9), f(3, 2, 3)], [0, 0], {}, "what is not fixed"),
            ("Add", [f(2, 1, 2, 1, 2), f(1, 3, 1, 3, 1)], [0, 0], {}, "along more than four axes"), ("Transpose", [f(2, 3, 2, 3, 2, 2)], [0], {"perm": [4, 2, 0, 5, 3, 1]}, "move along more than four axes"), ("Transpose", [f(17, 18, 17, 19, 17)], [0], {"perm": [4, 2, 0, 3, 1]}, "move along more than four axes"), ("Relu", [f(0, 3)], [0], {}, "an output that has no elements"), ("Clip", [f(9), None, f()], [0, 1, 1], {}, "a missing operand"),
            ("Max", [f(6), f(6), f(6)], [0, 0, 0], {}, "so many operands"), ("Max", [f(6) / 3, f(6)], [0, 0], {}, "floats"), ("MatMul", [f(5), f(5, 6)], [0, 1], {}, "products of vectors"), ("MatMul", [f(5, 5), f(5)], [0, 1], {}, "products of vectors"), ("MatMul", [f(4, 4), f(4, 4) / 3], [0, 1], {}, "products of floats"),
            ("Gemm", [f(4, 5) / 3, f(5, 6)], [0, 1], {}, "products of floats"), ("Gemm", [f(4, 5), f(5, 6), f(6) / 3], [0, 1, 1], {}, "a bias of floats"), ("Gemm", [f(5, 4), f(5, 6)], [0, 1], {"transA": 1}, "transA"), ("Gemm", [f(4, 5), f(6, 5)], [0, 0], {"transB": 1}, "transB of a matrix that is not fixed"),
            ("Gemm", [f(4, 5), f(5, 6), f(6)], [0, 1, 1], {"beta": 2.0}, "alpha and beta"), ("Gemm", [f(4, 5), f(5, 6), f(6)], [0, 1, 1], {"beta": .5}, "alpha and beta"), ("Gemm", [f(4, 5), f(5, 6)], [0, 1], {"alpha": 2.0}, "alpha and beta"), ("Gemm", [f(4, 5), f(5, 6), f(4, 1)], [0, 1, 1], {}, "a bias of that shape"),
            ("Conv", [f(1, 2, 9) / 3, f(3, 2, 3)], [0, 1], {}, "convolutions of floats"), ("Conv", [f(1, 2, 9), f(3, 2, 3) / 3], [0, 1], {}, "convolutions of floats"), ("Conv", [f(1, 2, 9), f(3, 2, 3), f(3) / 3], [0, 1, 1], {}, "a bias of floats"), ("Conv", [f(1, 2, 9), f(3, 2, 3), f(3)], [0, 1, 0], {}, "by what is not fixed"),
            ("Conv", [f(1, 2, 4, 4, 4), f(3, 2, 2, 2, 2)], [0, 1], {}, "windows of that rank"), ("Conv", [f(1, 2, 9), f(3, 2, 3)], [0, 1], {"auto_pad": "SAME_UPPER"}, "auto_pad other than NOTSET"), ("ReduceSum", [f(3, 4) / 3, l(1)], [0, 1], {}, "sums of floats"), ("ReduceSum", [f(3, 4)], [0], {}, "axes that are not neighbours"),
            ("Concat", [f(2, 3), f(2, 3) / 3], [0, 0], {"axis": 0}, "parts that are floats"), ("Pad", [f(3, 4) / 3, l(1, 1, 1, 1)], [0, 1], {}, "pads around floats"), ("Pad", [f(3, 4), l(1, 1, 1, 1), np.float32(.5)], [0, 1, 1], {}, "pads of floats"), ("Pad", [f(3, 4), l(1, 1, 1, 1), np.float32(5)], [0, 1, 0], {}, "pads that are not fixed"),
            ("Pad", [f(3, 4), l(1, -1, 1, 1)], [0, 1], {}, "pads that cut"), ("Pad", [f(3, 4), l(1, 1, -1, 1)], [0, 1], {}, "pads that cut"), ("Gather", [f(4, 5), l(1)], [0, 0], {}, "more than one place"), ("Gather", [f(4, 5), np.array([[1]])], [0, 1], {}, "more than one place"),
            ("Cast", [f(9) / 3], [0], {"to": T.INT32}, "a cast that may change numbers"), ("Cast", [f(9)], [0], {"to": T.INT8}, "a cast that may change numbers"), 
            ("Pad", [f(3, 4), l(1, 1, 1, 1)], [0, 1], {"mode": "reflect"}, "a mode that is not constant"), ("Softmax", [f(3, 4)], [0], {}, "this operator"), ("MatMul", [f(4) / 3, f(4)], [0, 0], {}, "products of"), ("Mul", [f(9) * 2 ** 24 * 2 ** 20, f(9) * 2 ** 30], [0, 1], {}, "more than 64 bits hold")]
    for n, (op, inputs, fixed, attributes, says) in enumerate(near):
        m = single(op, inputs, fixed, **attributes)
        np.savez(t.at("in.npz"), **{"i%d" % k: a for k, (a, f_) in enumerate(zip(inputs, fixed)) if not f_})
        p = t.call("compile", t.write("single.onnx", m.SerializeToString()), "--target", "c", "--inputs", t.at("in.npz"), "-o", t.at("near"))
        t.case("%s %s is refused" % (op, attributes), "" if p.returncode == 4 and (b"(%s)" % op.encode() in p.stderr or "an output" in says) and says.encode() in p.stderr else "%d: %s" % (p.returncode, p.stderr.decode()))


def check_fused():
    """What goes number by number behind a sum is done with each sum, if it can be: so many steps are left, and the words are ONNX Runtime's."""
    rng, info = np.random.default_rng(11), lambda n, shape: helper.make_tensor_value_info(n, T.FLOAT, shape)
    f = lambda *shape: rng.integers(-9, 10, shape).astype(np.float32)
    x, w, image, kernel = f(6, 20), f(20, 70), f(1, 4, 7, 66), f(8, 4, 3, 3)
    conv, matmul = ("Conv", ["x", "w"], "s"), ("MatMul", ["x", "w"], "s")
    cases = [("one number for all", image, kernel, [conv, ("Relu", ["s"], "y")], {}, 1), ("one for each channel", image, kernel, [conv, ("Mul", ["s", "m"], "y")], {"m": f(8, 1, 1)}, 1), ("one for each column", x, w, [matmul, ("Mul", ["s", "m"], "y")], {"m": f(70)}, 1),
             ("a bias in front of it", x, w, [matmul, ("Add", ["m", "s"], "b"), ("Relu", ["b"], "y")], {"m": f(70)}, 1), ("a channel's own window", f(1, 4, 9, 9), f(4, 1, 3, 3), [conv, ("Relu", ["s"], "y")], {}, 1),
             ("one for each place", image, kernel, [conv, ("Mul", ["s", "m"], "y")], {"m": f(1, 1, 5, 64)}, 2), ("one for each row", x, w, [matmul, ("Mul", ["s", "m"], "y")], {"m": f(6, 1)}, 2), ("two readers", image, kernel, [conv, ("Relu", ["s"], "r"), ("Sub", ["s", "r"], "y")], {}, 3),
             ("the sum is read twice", x, w, [matmul, ("Mul", ["s", "s"], "y")], {}, 2), ("the sum is a result", x, w, [matmul, ("Relu", ["s"], "y")], {}, 2), ("another stream", x, w, [matmul, ("Add", ["s", "x2"], "y")], {}, 2),
             ("one fixed number", image, kernel, [conv, ("Mul", ["s", "m"], "y")], {"m": f(1)}, 1), ("one fixed number, of columns", x, w, [matmul, ("Mul", ["s", "m"], "y")], {"m": f(1, 1)}, 1)]
    for n, (what, x, w, nodes, fixed, steps) in enumerate(cases):
        attributes = {"group": 4} if w.shape[1:2] == (1,) else {}
        nodes = [helper.make_node(op, i, [o], **(attributes if op == "Conv" else {})) for op, i, o in nodes]
        feeds = {"x": x, **({"x2": f(6, 70)} if what == "another stream" else {})}
        outputs = [info("y", None)] + ([info("s", None)] if what == "the sum is a result" else [])
        m = helper.make_model(helper.make_graph(nodes, "g", [info(k, v.shape) for k, v in feeds.items()], outputs, [numpy_helper.from_array(v, k) for k, v in {"w": w, **fixed}.items()]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        np.savez(t.at("in.npz"), **feeds)
        np.savez(t.at("out.npz"), *ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds))
        p = t.call("compile", t.write("fused.onnx", m.SerializeToString()), "--target", "c", "--inputs", t.at("in.npz"), "--golden", t.at("out.npz"), "-o", t.at("fused-%d" % n))
        why = p.stderr.decode() if p.returncode else tested(t.at("fused-%d" % n), "gcc", ["-O1", *t.SANITIZE])
        t.case("behind a sum: %s" % what, why or ("" if json.loads(text(t.at("fused-%d" % n), "manifest.json"))["steps"] == steps else "not %d steps" % steps))
    for name, most in ("Models__MLPerf__ImageClassification", 65536), ("Models__MLPerf__KeywordSpotting", 13312), ("Models__miniMobileNet", 1792):
        if name in networks(): t.case("%s: no map of 32 bits" % name, "" if json.loads(text(built(name), "manifest.json"))["arena_bytes"] <= most else "the arena is larger")


t.main(check_networks, check_compilers, check_extremes, check_arena, check_places, check_rolled, check_profile, check_tiled, check_sabotage, check_drawn, check_wrong, check_refused, check_single, check_fused, floor=474)
