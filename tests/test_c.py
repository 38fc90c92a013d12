#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same integers in C (--target c): equal to ONNX Runtime's, from every compiler, in an arena that none undercuts.

    python tests/test_c.py path/to/mlo [NAME ...]

    words       encoders, decoders without a cache, two with an encoder's output: inputs drawn here through host/pre.onnx; host/core.onnx in ONNX Runtime judges
    compilers   gcc and clang, -O0 to -O3, sanitizers, no warnings: the build's own test
    foreign     32-bit Arm, big-endian PowerPC, RISC-V, under qemu, through mlo sim
    bare        a Cortex-M3 and 32-bit RISC-V without an operating system, under qemu: every word, and that one that differs is seen; the Cortex-M's code of 12 layers is that of 2
    families    one export in 24 that has integers, and decoders with a cache: their own tests
    depth       the code of 12 layers is that of 2
    profile     every step is in the table, as often as it ran: by the clock, by RISC-V's counter, by one of the caller's
    threads     share the rows of matrices, and heads, where that is asked for: the same words; and nothing of them is there where it is not
    own         a kernel of the caller's stands in for one of the build, and is what makes the words
    arena       no two places that are in use together overlap; proved the least in less than a second, none of other planners is below
    blocks      layers in arenas down to the least, in blocks of tokens: words of ONNX Runtime, frames of any length, the bytes that a run touches; below the least: refused
    kept        values that attention reads in every block, and a sum behind it reads last, are not written over: words of ONNX Runtime
    packing     sets of places, drawn: the least of all orders
    story       stories260k with a cache, a token at a time: its words and its text are ONNX Runtime's and mlo's
    bytes       parameters as weights.bin: what gcc makes of weights.c in memory, here and on 32-bit Arm; its test from gcc and clang, under qemu, and from flash of its own; a big-endian one refuses it; large ones by default
    parts       a sequence in parts of any size is the sequence
    refused     arenas too small (at run time, and --arena), and misaligned, too many tokens, a target that there is none of
    sim         passes, and fails where a word differs
    narrow      sums requantized in 32 bits: all that mlo_requantize_narrow takes, judged by Python's integers
    sums        mlo_add_one, of 32 bits, at all that it is said to take, judged by Python's integers
    weights     rows of scores of 32 bits: all that mlo_softmax_weigh_narrow takes, judged by Python's integers
    one         a rounding changed in one place changes `mlo run`, the golden words of Verilog, and C, alike"""
import concurrent.futures
import ctypes
import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import time
import numpy as np
import onnx
from onnx import helper
import harness as t
import planners
import stories
from graphs import session

BODIES = ["bert-tiny", "bert-tiny-mask", "bert-tiny-qdq", "albert-tiny", "clip-tiny", "convnext-tiny", "gemma3-tiny", "gpt2-tiny", "llama-tiny-opset23", "modernbert-tiny-opset23", "mlp-res",
          "neox-tiny", "qwen3-tiny-opset23", "swin-tiny", "t5-tiny", "vit-tiny", "whisper-tiny"]
TYPES = {"int8_t": np.int8, "int16_t": np.int16, "uint8_t": np.uint8}
STORY = (stories.PROMPT, "--context", "64")


def built(name, *flags):
    path = t.at("-".join([name, *flags]).replace("--", ""))
    if not os.path.isdir(path): t.good("compile", t.model(name), "--target", "c", *flags, "-o", path)
    return path


def text(path, name): return t.read(os.path.join(path, name)).decode()
def manifest(path): return json.loads(text(path, "manifest.json"))


class Model:
    """The emitted C, called from here."""
    def __init__(self, path):
        library = os.path.join(path, "model.so")
        subprocess.run(["gcc", "-std=c99", "-O2", "-shared", "-fPIC", "-o", library, *(os.path.join(path, f) for f in ("model.c", "weights.c"))], check=True)
        self.run_ = ctypes.CDLL(library).model_run
        header = text(path, "model.h")
        self.number = {k: int(v) for k, v in re.findall(r"#define MODEL_(\w+) (\d+)", header)}
        self.takes = re.findall(r"(\w+) (\*?)(\w+)(?=[,)])", re.search(r"int model_run\(([^;]*\));", header, re.S)[1])
        self.memory = np.zeros(self.number["ARENA_BYTES"] + 64, np.uint8)
        self.arena = self.memory[-self.memory.ctypes.data % 16:][:self.number["ARENA_BYTES"]]
        self.cache = np.zeros(1 << 22, np.uint8)

    def __call__(self, x, **others):
        """x: [tokens, channels]; others: mask, memory, memory_mask, arena_bytes, arena. The result, or the status."""
        kinds = {name: TYPES.get(kind) for kind, _, name in self.takes}
        out = np.zeros(x.shape, kinds["out"])
        given = dict(tokens=len(x), arena=self.arena, arena_bytes=len(self.arena), cache=self.cache, memory_tokens=len(others.get("memory", [])), out=out, **{"in": x})
        given.update(others)
        arrays = {k: np.ascontiguousarray(v, kinds.get(k) or v.dtype) if isinstance(v, np.ndarray) and k not in ("arena", "cache", "out") else v for k, v in given.items()}
        value = lambda a: ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_size_t(a)
        status = self.run_(*(value(arrays[name]) for _, _, name in self.takes))
        return status or out


def core_feeds(path, feeds):
    """What the core gets for a model's inputs."""
    pre, core = (session(os.path.join(path, "host/%s.onnx" % p)) for p in ("pre", "core"))
    made = dict(zip((o.name for o in pre.get_outputs()), pre.run(None, {i.name: feeds[i.name] for i in pre.get_inputs()})), **feeds)
    return core, {i.name: made[i.name] for i in core.get_inputs()}


def drawn(path, seed):
    """Inputs of the model, drawn."""
    rng, feeds = np.random.default_rng(seed), {}
    for part in "pre", "post":
        for i in session(os.path.join(path, "host/%s.onnx" % part)).get_inputs():
            if i.type == "tensor(float)": feeds[i.name] = rng.standard_normal(i.shape).astype(np.float32)
            elif "mask" in i.name: feeds[i.name] = (np.arange(i.shape[-1]) < rng.integers(1, i.shape[-1])).astype(np.int64).reshape(i.shape)
            elif i.type == "tensor(int64)": feeds[i.name] = rng.integers(0, 16, i.shape)
    return feeds


def called(path, feeds):
    """The core's inputs, as the C has them: the first is the stream, another one that is no mask the encoder's output."""
    x, *others = manifest(path)["inputs"]
    kind = lambda name: {"mlo_mask": "mask", "mlo_memory_mask": "memory_mask"}.get(name, "memory")
    shaped = lambda a: a.reshape(a.shape[-2:]) if a.ndim > 2 else a.reshape(-1)
    return feeds[x].reshape(feeds[x].shape[-2:]), {kind(name): shaped(feeds[name]) for name in others}


def differ(got, want):
    if not isinstance(got, np.ndarray): return "status %d" % got
    return "" if np.array_equal(got.reshape(-1), want.reshape(-1)) else "%d of %d words" % (np.count_nonzero(got.reshape(-1) != want.reshape(-1)), want.size)


def check_words():
    for name in BODIES:
        path = built(name)
        model, wrong = Model(path), ""
        for seed in range(3):
            core, feeds = core_feeds(path, drawn(path, seed))
            x, others = called(path, feeds)
            wrong = wrong or differ(model(x, **others), core.run(None, feeds)[0])
        t.case("%s: words of ONNX Runtime" % name, wrong)
        t.case("%s: no hole is left" % name, ", ".join(re.findall(r"@[A-Z]+@", text(path, "model.c") + text(path, "model.h") + text(path, "test.c"))))


def tested(path, cc, flags, env=None):
    """'' or what `make test` says in the place of its line."""
    folder = os.path.join(path, "made")
    os.makedirs(folder, exist_ok=True)
    sources = [os.path.join(path, f) for f in ("model.c", "weights.c", "test.c")]
    p = subprocess.run([cc, "-std=c99", "-Wall", "-Wextra", "-Werror", *flags, *sources, "-o", folder + "/test"], capture_output=True, text=True)
    if p.returncode: return p.stderr[:300]
    p = subprocess.run([folder + "/test"], capture_output=True, text=True, env=env)
    return "" if re.fullmatch(r"MLO PASS .*\n", p.stdout) and p.returncode == 0 and not p.stderr else (p.stdout + p.stderr)[:300]


def check_compilers():
    if not t.have("compilers", "gcc", "clang"): return
    bodies = t.drawn([("bert-tiny",), ("vit-tiny",), ("whisper-tiny",), ("convnext-tiny",), ("gemma3-tiny",), STORY], 2, lambda body: body[0])
    for cc, flags in itertools.product(t.drawn(("gcc", "clang"), 2), (["-O0"], ["-O1"], ["-O2"], ["-O3"], ["-O1", *t.SANITIZE])):
        t.case("%s %s" % (cc, " ".join(flags)), "; ".join("%s: %s" % (b[0], why) for b in bodies for why in [tested(built(*b), cc, flags)] if why))
    path = built("bert-tiny")
    p = subprocess.run(["make", "-s", "-C", path, "test"], capture_output=True, text=True)
    t.case("make test", "" if p.returncode == 0 and p.stdout.splitlines()[-1].startswith("MLO PASS ") else p.stdout + p.stderr)


FOREIGN = {"32-bit Arm": ("arm-linux-gnueabihf-gcc", "qemu-arm"), "big-endian PowerPC": ("powerpc-linux-gnu-gcc", "qemu-ppc"), "RISC-V": ("riscv64-linux-gnu-gcc", "qemu-riscv64")}


def check_foreign():
    for what, (cc, qemu) in FOREIGN.items():
        if not t.have(what, cc, qemu): continue
        for body in [("bert-tiny",), ("whisper-tiny",), STORY]:
            path = t.at("%s-%s" % (qemu, body[0]))
            shutil.copytree(built(*body), path, ignore=shutil.ignore_patterns("*.o", "model_test", "sim", "made"))
            p = t.call("sim", path, env=dict(os.environ, CC=cc + " -static", RUN=qemu, CFLAGS="-O2"))
            t.case("%s: %s" % (what, body[0]), "" if p.returncode == 0 and json.loads(p.stdout)["pass"] else p.stderr.decode()[-300:] or "it says nothing")


BARE = {"cortex-m": ("arm-none-eabi-gcc", "qemu-system-arm"), "riscv32": ("riscv64-unknown-elf-gcc", "qemu-riscv32")}
CORTEX = "arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"


def bared(path, target):
    """'' when its test passes as that target; what it says else."""
    p = subprocess.run(["make", "-s", "-C", path, target], capture_output=True, text=True, timeout=300)
    said = re.fullmatch(r"MLO PASS frames=\d+ words=(\d+) arena=\d+ touched=\d+\n", p.stdout)
    return "" if p.returncode == 0 and said and int(said[1]) == manifest(path)["words"] and not p.stderr else (p.stdout + p.stderr)[-300:]


def check_sim_foreign():
    """mlo sim --simulator: each processor; what is no such thing, and what is not installed, is said."""
    path = built("bert-tiny")
    for name in "native", "arm", "riscv32", "cortex-m":
        p = t.call("sim", path, "--simulator", name)
        said = json.loads(p.stdout) if p.returncode == 0 else {}
        t.case("sim --simulator %s" % name, "" if said.get("pass") and said["simulator"] == name and said["words"] == manifest(path)["words"] else p.stderr.decode()[-300:] or str(said))
    for what, flags, env, status, words in (("verilator of a build of C", ("verilator",), {}, 2, b"native, arm, riscv32 or cortex-m"), ("a processor that there is not", ("z80",), {}, 2, b"cortex-m"),
                                            ("a tool that is absent", ("arm",), {"PATH": "/nonexistent"}, 2, b"apt-get install")):
        p = t.call("sim", path, "--simulator", *flags, env=dict(os.environ, **env))
        t.case("sim: " + what, "" if p.returncode == status and words in p.stderr else "%d %s" % (p.returncode, p.stderr.decode()[-300:]))


def check_bare():
    for target, (cc, qemu) in BARE.items():
        if not t.have(target, cc, qemu): continue
        for body in [("bert-tiny",), STORY]: t.case("make %s: %s" % (target, body[0]), bared(built(*body), target))
        path = t.at("bare-" + target)
        shutil.copytree(built("mlp-res"), path)
        words = re.sub(r"(golden\[FRAMES\]\[\d+\] = \{\n    \{ )(-?\d+)", lambda m: "%s%d" % (m[1], int(m[2]) - 1), text(path, "test.c"))
        with open(os.path.join(path, "test.c"), "w") as f: f.write(words)
        why = bared(path, target)
        t.case("make %s: a word that differs" % target, "" if "MLO FAIL frame 0, token 0, channel 0: expected " in why and "Error 1" in why else why or "it passed")
    if t.have("the Cortex-M's code", CORTEX[0]):
        two, twelve = code(built("bert-tiny"), *CORTEX), code(built("bert-12"), *CORTEX)
        t.note("model.o of a Cortex-M3 at -Os: %d bytes" % two[0])
        t.case("Cortex-M3: the code of 12 layers is that of 2", "" if two == twelve and two[1:] == [0, 0] else "%s and %s" % (two, twelve))


def check_families():
    """What quantize refuses has no integers in C either."""
    folders = lambda *names: sorted(f for n in names for f in glob.glob(os.path.join(t.tests, "models", n, "*.onnx")))
    some = t.drawn(folders("families", "bias", "conv", "moved", "positions"), 24, os.path.basename)
    wrong, judged = [], 0
    for file, *flags in [(f,) for f in some] + [(f, "--context", 16) for f in t.drawn(folders("context"), 4, os.path.basename)]:
        path = t.at("family-" + os.path.basename(file))
        p = t.call("compile", file, "--target", "c", *flags, "-o", path)
        why = p.stderr.decode()[-200:] if p.returncode else tested(path, "gcc", ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"])
        if p.returncode and p.returncode < 5 and b"mlo: quantize: " in p.stderr: continue
        judged += 1
        if why: wrong.append("%s: %s" % (os.path.basename(file), why))
    t.case("exports of families", "; ".join(wrong) if wrong or judged >= 9 else "%d were judged" % judged)


def code(path, *cc):
    """Bytes of code of the model, and of everything else that is no weight."""
    subprocess.run([*(cc or ["gcc"]), "-std=c99", "-Os", "-c", os.path.join(path, "model.c"), "-o", os.path.join(path, "os.o")], check=True)
    return [int(n) for n in subprocess.run(["size", os.path.join(path, "os.o")], capture_output=True, text=True, check=True).stdout.splitlines()[1].split()[:3]]


def check_depth():
    two, twelve = code(built("bert-tiny")), code(built("bert-12"))
    t.note("model.o at -Os: %d bytes" % two[0])
    t.case("the code of 12 layers is that of 2", "" if two == twelve else "%s and %s" % (two, twelve))
    t.case("no global state", "" if two[1:] == [0, 0] else str(two))
    names = [subprocess.run(["nm", "-u", os.path.join(built(n), "os.o")], capture_output=True, text=True).stdout.split()[1::2] for n in ("bert-tiny", "bert-12")]
    t.case("nothing is called but memcpy and memset", "" if all(set(n) <= {"memcpy", "memset", "model_layers", "model_depth", "model_common", "U"} for n in names) else str(names))


def needs(path): return subprocess.run(["nm", "-u", os.path.join(path, "made/test")], capture_output=True, text=True).stdout


def check_threads():
    """MODEL_PARALLEL: rows of matrices of any length are shared by threads."""
    for name in ("bert-tiny",), ("whisper-tiny",), STORY:
        path = built(*name)
        for cc in "gcc", "clang":
            if cc == "clang" and not glob.glob("/usr/lib/llvm-*/lib/clang/*/include/omp.h"): continue              # libomp is another package, and no test needs it
            flags = ["-O2", "-DMODEL_PARALLEL", "-fopenmp"]
            t.case("%s: by threads, %s" % (name[0], cc), tested(path, cc, flags, dict(os.environ, OMP_NUM_THREADS="3")))
            asked = "_parallel" in needs(path)
            shared = subprocess.run([cc, "-E", "-P", "-DMODEL_PARALLEL", os.path.join(path, "model.c")], capture_output=True, text=True).stdout
            t.case("%s: heads are shared, too, %s" % (name[0], cc), "" if re.search(r"#pragma omp parallel for\s+for \(int i = 0; i < a->tokens \* a->heads; i\+\+\)", shared) else "they are not")
            tested(path, cc, ["-O2"])
            t.case("%s: threads only where they are asked for, %s" % (name[0], cc), "" if asked and "omp" not in needs(path).lower() else needs(path))


OWN = """static void own_mvu(const int16_t *x, int x_row, int8_t *y, int y_row, int tokens, int k, int n, const int8_t *w, const int32_t *bias,
    const int16_t *mult, const int8_t *shift, const int8_t *table, int part, int lo, int hi) {
    (void)part;
    for (int t = 0; t < tokens; t++)
        for (int c = 0; c < n; c++) {
            int64_t sum = bias[c];
            for (int i = 0; i < k; i++) sum += x[t * x_row + i] * w[c * k + i];
            sum = mlo_requantize(sum, mult[c], shift[c], lo, hi);
            y[t * y_row + c] = (int8_t)((table ? table[sum - lo] : sum) + OWN_OFF);
        }
}
#define mlo_mvu_16_8 own_mvu
"""


def check_own():
    """MODEL_KERNELS: a macro of a kernel's name."""
    path, mine = built("bert-tiny"), t.write("mine.h", OWN)
    for off, what in (0, ""), (1, "MLO FAIL"):
        said = tested(path, "gcc", ["-O1", "-DOWN_OFF=%d" % off, '-DMODEL_KERNELS="%s"' % mine])
        t.case("a kernel of one's own%s" % (", wrong by one" if off else ""), "" if said.startswith(what) and bool(said) == bool(what) else said)


def check_profile():
    """A line for each step, as often as it ran, by the clock or by what the caller counts; nothing of it is in the code that is not asked for it."""
    path = built("bert-tiny")
    for what, count, flags, total in ("by the clock", r"ns", "", None), ("by a count of the caller's", "counts", "", 3 * 44):
        if total: flags = " '-DMODEL_CYCLES()=(model_counter+=3)' -include %s" % t.write("counter.h", b"static unsigned model_counter;\n")
        p = subprocess.run(["make", "-s", "-C", path, "profile", "CFLAGS=-O1 -Werror -Wno-unused-variable" + flags], capture_output=True, text=True)
        lines = re.findall(r"^ +(\d+) +\d+ % +(\d+)  (\w+) \((mlo_\w+)\)$", p.stdout, re.M)
        names = re.findall(r"MODEL_STEP\(\d+, (mlo_\w+)\(", text(path, "model.c"))
        sums = sum(int(n) for n, *_ in lines), int((re.findall(r"^ +(\d+)  in all$", p.stdout, re.M) or [0])[0])
        good = [k for *_, k in lines] == names and len(names) == 11 and all(int(n) == 4 for _, n, *_ in lines) and sums[0] == sums[1] > 0 and total in (None, sums[0])
        t.case("a profile %s" % what, "" if p.returncode == 0 and good and p.stdout.lstrip().startswith(count) and p.stdout.splitlines()[-1].startswith("MLO PASS ") else p.stdout[-600:] + p.stderr[-300:])
    if t.have("a profile of RISC-V", *BARE["riscv32"]):
        p = subprocess.run(["make", "-s", "-C", path, "riscv32", "SMALL=-O1 -DMODEL_PROFILE"], capture_output=True, text=True)
        cycles = [int(n) for n in re.findall(r"^ +(\d+) +\d+ % +4  ", p.stdout, re.M)]
        t.case("a profile by rdcycle", "" if len(cycles) == 11 and all(cycles) else p.stdout + p.stderr)


# ---- parameters as a file ---------------------------------------------------------------------------------------------------------------------

IMAGE = """#include "%s/weights.c"
#include <stdio.h>
int main(void) { %s return 0; }
"""
FLASH = """#include <fcntl.h>
#include <sys/mman.h>
__attribute__((constructor)) static void burn(void) {
    int file = open(IMAGE, O_RDONLY);
    if (mmap((void *)ADDRESS, SIZE, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) != (void *)ADDRESS) __builtin_trap();
}
"""
PACKED = {"bert-tiny": ("bert-tiny",), "whisper-tiny --whole": ("whisper-tiny", "--whole"), "stories260k": STORY, "swin-tiny --whole": ("swin-tiny", "--whole")}


def packed(name, *flags): return built(name, *flags, "--parameters", "bin")


def imaged(path, symbols, cc, run):
    """The structs of weights.c, one behind the other, as a compiler lays them into memory."""
    program = t.at("image-" + cc)
    code = t.write("image.c", IMAGE % (path, " ".join("fwrite(&%s, sizeof %s, 1, stdout);" % (s, s) for s in symbols)))
    subprocess.run([cc, "-std=c99", "-I", path, "-static", code, "-o", program], check=True)
    return subprocess.run([*run, program], capture_output=True, check=True).stdout


def float_net(path, n, k):
    """A product of floats by a matrix of k x n."""
    rng = np.random.default_rng(n)
    w = onnx.numpy_helper.from_array(rng.standard_normal((k, n), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], "g", [helper.make_tensor_value_info("x", 1, [1, k])], [helper.make_tensor_value_info("y", 1, [1, n])], [w])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path + ".onnx")
    x = rng.standard_normal((1, k), np.float32)
    np.savez(path + ".npz", x=x)
    np.savez(path + "-golden.npz", y=session(path + ".onnx").run(None, {"x": x})[0])
    t.good("compile", path + ".onnx", "--target", "c", "--whole", "--inputs", path + ".npz", "--golden", path + "-golden.npz", "-o", path)
    return path


def made(path, target="test", **variables):
    """'' when the Makefile's test passes; what it says else."""
    subprocess.run(["make", "-s", "-C", path, "clean"], check=True)
    p = subprocess.run(["make", "-s", "-C", path, target, *("%s=%s" % v for v in variables.items())], capture_output=True, text=True, timeout=300)
    return "" if p.returncode == 0 and p.stdout.splitlines()[-1].startswith("MLO PASS ") and not p.stderr else (p.stdout + p.stderr)[-400:]


def check_bytes():
    for what, body in PACKED.items():
        path, words = packed(*body), built(*body)
        symbols = re.findall(r"^ \*     (\w+): (\d+)$", text(path, "weights.S"), re.M)
        image = t.read(os.path.join(path, "weights.bin"))
        for cc, run in ("gcc", ()), ("arm-linux-gnueabihf-gcc", ("qemu-arm",)):
            if not t.have(cc, cc, *run): continue
            t.case("%s: weights.bin is what %s makes of weights.c" % (what, cc), "" if imaged(words, [s for s, _ in symbols], cc, run) == image and len(symbols) == 2 + ("--whole" in body) else "it differs")
        t.case("%s: the code is the same" % what, "" if text(path, "model.c") == text(words, "model.c") and text(path, "model.h") == text(words, "model.h") else "it differs")
        for cc in "gcc", "clang":
            if t.have(cc, cc): t.case("%s: make test CC=%s" % (what, cc), made(path, CC=cc, CFLAGS="-O1 -Werror"))
        t.case("%s: make profile" % what, made(path, "profile"))
    for target, tools in [("arm", ("arm-linux-gnueabihf-gcc", "qemu-arm")), *BARE.items()]:
        if t.have(target, *tools): t.case("make %s" % target, made(packed("bert-tiny"), target))
    flash()
    cc, qemu = FOREIGN["big-endian PowerPC"]
    if t.have("big-endian PowerPC", cc, qemu):
        said = made(packed("bert-tiny"), CC=cc, LDFLAGS="-static", RUN=qemu)
        t.case("a big-endian processor refuses it", "" if "weights.bin is little-endian" in said and "--parameters c" in said else said or "it passes")
    for n, file in (2048, "weights.bin"), (2047, "weights.c"):
        path = float_net(t.at("floats-%d" % n), n, 2048)
        t.case("%d bytes are in %s" % (8192 * n + 8, file), "" if os.path.exists(os.path.join(path, file)) != os.path.exists(os.path.join(path, "weights.c" if n == 2048 else "weights.bin")) else "they are not")
        if n == 2048: t.case("16 MB of floats: make test", made(path))
    for words, flags in (b"there are c and bin", ("--target", "c", "--parameters", "hex")), (b"--parameters is of C", ("--parameters", "bin")):
        p = t.call("compile", t.model("bert-tiny"), *flags, "-o", t.at("hex"))
        t.case("refused: %s" % words.decode(), "" if p.returncode == 2 and words in p.stderr and not os.path.exists(t.at("hex")) else p.stderr.decode() or "it says nothing")


def flash():
    """weights.bin at an address of its own, which is told to the linker."""
    path, at = packed("bert-tiny"), 0x41000000
    symbols = re.findall(r"^ \*     (\w+): (\d+)$", text(path, "weights.S"), re.M)
    image = os.path.join(path, "weights.bin")
    burn = t.write("burn.c", FLASH.replace("IMAGE", '"%s"' % image).replace("ADDRESS", "%#xL" % at).replace("SIZE", str(os.path.getsize(image))))
    files = [os.path.join(path, f) for f in ("model.c", "weights.S", "test.c")]
    p = subprocess.run(["gcc", "-O1", "-static", "-no-pie", "-DMODEL_WEIGHTS_ELSEWHERE", *("-Wl,--defsym=%s=%#x" % (s, at + int(d)) for s, d in symbols), burn, *files, "-o", t.at("flash")], capture_output=True, text=True)
    said = p.stderr or subprocess.run([t.at("flash")], capture_output=True, text=True).stdout
    t.case("weights.bin in flash", "" if said.startswith("MLO PASS ") else said[-300:] or "it says nothing")


# ---- the arena --------------------------------------------------------------------------------------------------------------------------------

def check_arena():
    driver = t.at("planned")
    why = t.compile_c(driver, [os.path.join(t.tests, "plan_driver.c")], ["-std=c99", "-O1", "-I", t.root], libs=[])
    if why: return t.case("the planner by itself", why)
    for name, *flags in [(b,) for b in BODIES] + [STORY]:
        m = manifest(built(name, *flags))
        places = m["places"]
        wrong = ["%d and %d" % (i, k) for (i, a), (k, b) in itertools.combinations(enumerate(places), 2)
                 if planners.meet(a, b) and a["offset"] < b["offset"] + b["bytes"] and b["offset"] < a["offset"] + a["bytes"]]
        bound = max(sum(p["bytes"] for p in places if p["steps"][s] == "1") for s in range(len(places[0]["steps"])))
        ends = max(p["offset"] + p["bytes"] for p in places)
        t.case("%s: places do not overlap" % name, "; ".join(wrong))
        t.case("%s: the arena ends where the last place does" % name, "" if ends == m["arena_bytes"] else "%d" % ends)
        t.case("%s: proved" % name, "" if m["arena_proved"] and m["arena_bound"] == bound <= ends else "%s of %s" % (bound, ends))
        given, begin = "%d %d\n" % (len(places), len(places[0]["steps"])) + "".join("%(bytes)d %(steps)s\n" % p for p in places), time.perf_counter()
        again = subprocess.run([driver], input=given, capture_output=True, text=True, check=True).stdout.split()
        took = time.perf_counter() - begin
        t.case("%s: proved in less than a second" % name, "" if again[:3] == [str(ends), str(bound), "1"] and took < 1 else "%s, %.1f s" % (again[:3], took))
        t.case("%s: no other planner is below" % name, "" if ends <= min(planners.other_planners(places)) else "%d, others %s" % (ends, planners.other_planners(places)))


def least(name, *flags):
    """What --arena takes at least, as is said where that is too little."""
    p = t.call("compile", t.model(name), "--target", "c", *flags, "--arena", 1, "-o", t.at("none"))
    said = re.search(rb"--arena 1: the layer's values take (\d+) bytes at a time, and (\d+) at least, .*; give as much", p.stderr)
    return int(said[2]) if p.returncode == 4 and said and int(said[1]) == manifest(built(name, *flags))["arena_bytes"] else p.stderr.decode()[-200:]


def painted(path, x, others):
    """Bytes of the arena that a run touches, up to the last; -1: more than it has."""
    model = Model(path)
    model.memory[:] = 0xA5
    model(x, **others)
    behind = model.arena.ctypes.data - model.memory.ctypes.data + len(model.arena)
    return -1 if (model.memory[behind:] != 0xA5).any() else int(np.flatnonzero(model.arena != 0xA5)[-1]) + 1


def in_blocks(name, size, low, most):
    """'' or what is wrong with a layer in `size` bytes: its words, those of shorter frames, the plan, the bytes that a run touches."""
    path = t.at("blocks-%s-%d" % (name, size))
    t.good("compile", t.model(name), "--target", "c", "--arena", size, "-o", path)
    core, feeds = core_feeds(path, drawn(path, 5))
    x, others = called(path, feeds)
    model, m = Model(path), manifest(path)
    top = [p for p in m["places"] if p["offset"] + p["bytes"] == m["arena_bytes"]]
    slack = max(max([p["bytes"] for p in top if "scratch" in p["what"]], default=0), 15)     # sums may be half as wide as their room; places are aligned
    touched, bound = painted(path, x, others), max(sum(p["bytes"] for p in m["places"] if p["steps"][s] == "1") for s in range(len(m["nodes"]) + 1))
    short = {} if "memory" in others or "mask" in others else {n: differ(model(x[:n]), Model(built(name))(x[:n])) for n in (1, len(x) // 2, len(x) - 1)}
    kept = [k["what"] for k in m.get("blocks", []) if not 0 < k["tokens"] < m["tokens"]]
    return "; ".join("%d: %s" % (size, why) for why in (
        differ(model(x, **others), core.run(None, feeds)[0]), next((v for v in short.values() if v), ""), tested(path, "gcc", ["-O1", *t.SANITIZE]) if size == low else "",
        "" if m["arena_bytes"] <= size and m["arena_bytes"] == model.number["ARENA_BYTES"] and m["arena_bound"] == bound else "the arena has %d bytes" % m["arena_bytes"],
        "" if m["arena_bytes"] - slack <= touched <= m["arena_bytes"] else "%d bytes are touched of %d" % (touched, m["arena_bytes"]),
        "" if ("blocks" in m) == (low < most) and not kept else "the blocks are %s" % m.get("blocks")) if why)


def check_blocks():
    fewest, today = {}, t.drawn(BODIES, 6)          # every body is asked for its least; a sixth of them a day is compiled and run
    for name in BODIES:
        whole, low = built(name), least(name)
        most = manifest(whole)["arena_bytes"]
        p = t.call("compile", t.model(name), "--target", "c", "--arena", low - 1, "-o", t.at("below")) if isinstance(low, int) else None
        said = p and low <= most and "blocks" not in manifest(whole) and p.returncode == 4 and b" and %d at least" % low in p.stderr and not os.path.exists(t.at("below"))
        t.case("%s: a byte below the least" % name, "" if said else "%s of %d: %s" % (low, most, p.stderr.decode()[-200:] if p else ""))
        if not said: continue
        fewest[name] = low / most
        if name not in today: continue
        wrong = [in_blocks(name, size, low, most) for size in sorted({low, (low + most) // 2, most - 1} if low < most else {most})]
        t.case("%s: in blocks, down to %d bytes of %d" % (name, low, most), "; ".join(filter(None, wrong)))
    t.note("the least arena, of that of whole values: " + ", ".join("%s %.0f %%" % (k, 100 * v) for k, v in fewest.items()))
    some = sum(v < 0.75 for v in fewest.values())
    t.case("blocks spare a quarter of most arenas", "" if 2 * some > len(fewest) else "%d of %d" % (some, len(fewest)))
    path = built("bert-tiny", "--arena", str(least("bert-tiny")))
    said = t.good("show", "--text", path).decode() + t.good("show", "--html", path).decode()
    t.case("show tells the blocks", "" if said.count("attention_0 to layernorm_1 token by token") == 2 else said[-300:])
    low = least(*STORY)
    t.case("a decoder's step is a token already", "" if low == manifest(built(*STORY))["arena_bytes"] else str(low))


def keeps_values():
    """bert-tiny-qdq whose attention's result and its values, the same 8-bit words that attention reads, are added: in blocks of tokens the sum may not lie over those."""
    m = onnx.load(t.model("bert-tiny-qdq"))
    nodes, made = list(m.graph.node), {o: n for n in m.graph.node for o in n.output}
    def above(name, *ops):
        n = made[name]
        while n.op_type not in ops: n = made[n.input[0]]
        return n
    def below(name, *ops):
        n = next(n for n in nodes if name in n.input)
        while n.op_type not in ops: n = next(r for r in nodes if n.output[0] in r.input)
        return n
    for k, softmax in enumerate(n for n in nodes if n.op_type == "Softmax"):
        product = below(softmax.output[0], "MatMul")
        values, joined = above(product.input[1], "Reshape").input[0], below(product.output[0], "Reshape")
        reader, scale = below(joined.output[0], "QuantizeLinear"), made[made[values].input[0]].input[1:]
        names = ["kept%d_%d" % (k, i) for i in range(3)]
        new = [helper.make_node("Add", [values, joined.output[0]], names[:1]), helper.make_node("QuantizeLinear", [names[0], *scale], [names[1]]), helper.make_node("DequantizeLinear", [names[1], *scale], [names[2]])]
        for n in new: n.metadata_props.extend(reader.metadata_props)
        at = list(m.graph.node).index(reader)
        for i, n in enumerate(new): m.graph.node.insert(at + i, n)
        m.graph.node[at + 3].input[0] = names[2]
    return t.write("keeps.onnx", m.SerializeToString())


def check_kept():
    """What all blocks of a chain read is not written over by the first of them."""
    file, path = keeps_values(), t.at("keeps")
    said = re.search(rb"take (\d+) bytes at a time, and (\d+) at least", t.call("compile", file, "--target", "c", "--arena", 1, "-o", path).stderr)
    most, low = map(int, said.groups())
    for size in (low, low + (most - low) // 8, low + (most - low) // 6):
        path = t.at("keeps-%d" % size)
        t.good("compile", file, "--target", "c", "--arena", size, "-o", path)
        core, feeds = core_feeds(path, drawn(path, 5))
        x, others = called(path, feeds)
        m = manifest(path)
        attends = [k for k, name in enumerate(m["nodes"]) if name.startswith("attention")]
        blocked = any(b["start"] <= k < b["start"] + b["steps"] for b in m["blocks"] for k in attends)
        t.case("values that are added behind attention, in %d bytes of %d" % (size, most), differ(Model(path)(x, **others), core.run(None, feeds)[0]) or ("" if blocked else "attention is in no block"))


def check_packing():
    """Some order, each place as low as it goes, makes the least there is: all orders of six are tried."""
    driver, rng, sets = t.at("plan"), np.random.default_rng(3), []
    why = t.compile_c(driver, [os.path.join(t.tests, "plan_driver.c")], ["-std=c99", "-O1", *t.SANITIZE, "-I", t.root], libs=[])
    if why: return t.case("the planner by itself", why)
    for _ in range(60):
        steps, begin = 7, rng.integers(0, 6, 6)
        use = [np.isin(np.arange(steps), np.arange(b, min(steps, b + rng.integers(1, 4)))) for b in begin]
        use[0] |= np.arange(steps) == steps - 1                             # the carried value: two stretches
        sets.append([dict(bytes=16 * int(rng.integers(1, 9)), steps="".join("01"[int(v)] for v in u)) for u in use])
    many = [dict(bytes=16 * int(n), steps="".join("01"[int(b <= s < b + k)] for s in range(12))) for n, b, k in zip(rng.integers(1, 40, 24), rng.integers(0, 10, 24), rng.integers(2, 5, 24))]
    given = "".join("%d %d\n" % (len(s), len(s[0]["steps"])) + "".join("%(bytes)d %(steps)s\n" % p for p in s) for s in [*sets, many])
    lines = [line.split(" | ") for line in subprocess.run([driver], input=given, capture_output=True, text=True, check=True).stdout.splitlines()]
    said, texts = [list(map(int, numbers.split())) for numbers, _ in lines], [text for _, text in lines]
    best, bound, proved = said.pop()[:3]
    gap = "at most %.1f %% above the least there is" % (100 * (best - bound) / bound)
    t.case("24 places have more orders than are tried: the gap is told, " + gap, "" if not proved and best > bound and texts.pop() == gap else "%d of %d, proved: %d, %s" % (best, bound, proved, texts[-1:]))
    wants = ["the least there is: " + ("so much is in use at one step" if s[0] == s[1] else "all packings were looked at") for s in said]
    t.case("people are told why there is no smaller one", "" if texts == wants else next("%s: %s" % (s[:3], text) for s, text, want in zip(said, texts, wants) if text != want))
    least = [min(planners.packed(order) for order in itertools.permutations(s)) for s in sets]
    above = sum(n > s[1] for n, s in zip(least, said))
    t.note("%d of 60 sets need more than is in use at any step" % above)
    t.case("the least of all orders", "; ".join("%s, least %d" % (s[:3], n) for s, n in zip(said, least) if s[0] != n or not s[2]) if len(said) == 60 else "%d sets" % len(said))
    apart = lambda s, at: all(not planners.meet(a, b) or x + a["bytes"] <= y or y + b["bytes"] <= x for (a, x), (b, y) in itertools.combinations(zip(s, at), 2))
    t.case("places do not overlap", "" if all(apart(s, got[3:]) for s, got in zip(sets, said)) else "they do")
    t.case("some sets are hard", "" if above else "none")


def check_sim():
    path = t.at("sim")
    shutil.copytree(built("bert-tiny"), path)
    said = json.loads(t.good("sim", path))
    t.case("sim passes", "" if said["pass"] and said["target"] == "c" and said["words"] == 4096 and said["arena_bytes"] == manifest(path)["arena_bytes"] else str(said))
    p = t.call("sim", path, "--stall", "3")
    t.case("sim has no stalls of C", "" if p.returncode == 4 and b"there is no --stall" in p.stderr else p.stderr.decode() or "it says nothing")
    changed = text(path, "model.c").replace("p->add_1_p, -32768", "p->add_1_p, -300")
    with open(os.path.join(path, "model.c"), "w") as f: f.write(changed)
    p = t.call("sim", path)
    t.case("a word that differs", "" if p.returncode == 1 and b"FAIL: first wrong word: frame 0, token 0, channel " in p.stderr and not json.loads(p.stdout)["pass"] else p.stderr.decode() or "it says nothing")
    with open(os.path.join(path, "model.c"), "w") as f: f.write(text(built("bert-tiny"), "model.c") + "\n")
    p = t.call("sim", path)
    t.case("a file that is not the manifest's", "" if p.returncode == 1 and b"model.c is not the file" in p.stderr else p.stderr.decode() or "it says nothing")


def judged(what, name, call, cases, want):
    """What a function of src/exact/round.c makes of rows of numbers, `call` of a[0], a[1], ..: with sanitizers, and in lanes."""
    code = t.write(name + ".c", '#include <stdint.h>\n#include "%s"\nvoid all(int n, const int32_t *a, int32_t *y) {\n'
                   "    for (int i = 0; i < n; i++, a += %d) y[i] = %s;\n}\n" % (os.path.join(t.root, "src/exact/round.c"), len(cases[0]), call))
    given, got = np.array(cases, np.int32), np.zeros(len(cases), np.int32)
    for flags in ["-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"], ["-O3", "-march=native"]:
        library = t.at("%s%s.so" % (name, flags[0]))
        subprocess.run(["gcc", "-std=c99", *flags, "-shared", "-fPIC", "-o", library, code], check=True)
        ctypes.CDLL(library).all(len(cases), ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(got.ctypes.data))
        t.case("%s, %s" % (what, flags[0]), differ(got, np.array(want)))


def check_narrow():
    """mlo_requantize_narrow against Python's integers, at all that it is said to take: the ends of each, and numbers drawn."""
    rng, cases = np.random.default_rng(9), []
    for part in range(1, 17):
        most = min(1 << 15 + part, (1 << 31) - 1)
        for shift in range(part + 1, part + 31):
            accs = [-most, 1 - most, -1, 0, 1, most - 1, most, *rng.integers(-most, most + 1, 12), *(rng.integers(-most, most + 1, 8) >> rng.integers(1, 24, 8))]
            cases += [(int(acc), int(mult), shift, part, lo, hi) for acc in accs for mult in (0, 1, 16384, 32767, rng.integers(0, 32768)) for lo, hi in ((-128, 127), (-(1 << 30), 1 << 30))]
    want = [max(lo, min(hi, (acc * mult + (1 << shift - 1)) >> shift)) for acc, mult, shift, _, lo, hi in cases]
    judged("requantized in 32 bits", "narrow", "mlo_requantize_narrow(a[0], a[1], a[2], a[3], a[4], a[5])", cases, want)


def check_sums():
    """mlo_add_one against Python's integers: operands of 16 bits, multipliers of 15, every shift; the ends of each, and numbers drawn."""
    rng, cases = np.random.default_rng(13), []
    for shift in range(1, 63):
        pairs = [(a, b) for a in (-32768, -1, 0, 1, 32767) for b in (-32768, 0, 32767)] + list(zip(rng.integers(-32768, 32768, 20), rng.integers(-32768, 32768, 20) >> rng.integers(0, 16, 20)))
        cases += [(int(a), int(b), int(ma), int(mb), shift, lo, hi) for a, b in pairs for ma, mb in ((0, 1), (32767, 32767), (16384, 0), rng.integers(0, 32768, 2), rng.integers(0, 32768, 2)) for lo, hi in ((-128, 127), (-32768, 32767))]
    want = [max(lo, min(hi, a * ma + b * mb + (1 << shift - 1) >> shift)) for a, b, ma, mb, shift, lo, hi in cases]
    judged("sums of 32 bits", "sums", "mlo_add_one(a[0], a[1], a + 2, a[5], a[6])", cases, want)


def weighed(scores, mult, shift, all, bits):
    """A row's weights, as kernels/attention.c defines them; None: a key that does not count."""
    rom = [int(65280 * 2 ** (-f / 64) + 0.5) for f in range(64)]
    weight = lambda t: rom[t & 63] + (1 << 15 - bits + (t >> 6)) >> 16 - bits + (t >> 6)
    counting = [s for s in scores if s is not None]
    if not counting: return [weight(0) * all] * len(scores)
    return [0 if s is None else weight(min((max(counting) - s) * mult + (1 << shift - 1) >> shift, 4095)) for s in scores]


def unlike(library, rows):
    """Rows whose words or share are not Python's integers."""
    call, wrong = ctypes.CDLL(library).row, []
    call.restype = ctypes.c_int64
    for part, shift, mult, all, bits, scores in rows:
        e, p = np.array([-(1 << 30) if s is None else s for s in scores], np.int32), np.array([mult, shift, 30000, 26], np.int32)
        share = call(ctypes.c_void_p(p.ctypes.data), 5, all, bits, part, ctypes.c_void_p(e.ctypes.data), len(e))
        want = weighed(scores, mult, shift, all, bits)
        if list(e) != want or share != (30000 << 5 + bits) // (sum(want) or 255 << bits - 8): wrong.append("%d bits, part %d, shift %d, mult %d, %d keys" % (bits, part, shift, mult, len(e)))
    return wrong


def check_weights():
    """mlo_softmax_weigh_narrow against Python's integers: rows of scores as far apart as it is said to take, of keys of which some do not count."""
    texts = "".join('#include "%s"\n' % os.path.join(t.root, "src/exact/%s.c" % f) for f in ("round", "softmax"))
    code = t.write("weights.c", "#include <stdint.h>\n%sint64_t row(int32_t *p, int lt, int all, int bits, int part, int32_t *e, int n) {\n    const mlo_row_rounding r = { p, lt, 0, 0, 0, all, bits };\n"
                   "    return mlo_softmax_weigh_narrow(&r, part, e, n);\n}\n" % texts)
    rng, rows = np.random.default_rng(11), []
    for part in range(1, 17):
        most = min((1 << 14 + part) - 1, (1 << 30) - 1)
        for shift in (part + 1, part + 2, int(rng.integers(part + 1, part + 31)), part + 30):
            for mult, seen, all in (32767, 1, 1), (int(rng.integers(1, 32768)), 0.7, 0), (int(rng.integers(16384, 32768)), 0.5, 1), (16384, 0, 0), (16384, 0, 1):
                n = int(rng.integers(1, 70))
                scores = rng.integers(-most, most + 1, n) >> rng.integers(0, 30, n)
                scores[:2] = (most, -most)[:n]
                rows.append((part, shift, mult, all, (8, 12)[len(rows) % 2], [int(s) if rng.random() < seen else None for s in scores]))
    for flags in ["-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"], ["-O3"], ["-O3", "-march=native"]:
        library = t.at("weights%s.so" % flags[-1])
        subprocess.run(["gcc", "-std=c99", *flags, "-shared", "-fPIC", "-o", library, code], check=True)
        with concurrent.futures.ProcessPoolExecutor(1) as child: wrong = child.submit(unlike, library, rows).result()      # what crashes is a failed check, and not the end of all
        t.case("weights in 32 bits, %s" % " ".join(flags[:2]), "; ".join(wrong[:3]) if wrong or len(rows) < 300 else "")


def check_one():
    """src/exact is what mlo computes with, and what it emits: with another rounding there, all of it moves, but not ONNX Runtime."""
    tree, other, run = t.at("tree"), t.at("other"), lambda *c, **o: subprocess.run(c, check=True, **o)
    for folder in "src", "verilog", "share", "cli": shutil.copytree(os.path.join(t.root, folder), os.path.join(tree, folder))
    for file in "mlo.h", "main.c": shutil.copy(os.path.join(t.root, file), tree)
    half, path = "((type)1 << ((shift) - 1))", os.path.join(tree, "src/exact/round.c")
    rounding = t.read(path).decode()
    t.case("the rounding is in one place", "" if rounding.count(half) == 1 else "%d" % rounding.count(half))
    with open(path, "w") as f: f.write(rounding.replace(half, half.replace("1 <<", "0 *")))      # down, no longer to the nearest
    with open(os.path.join(tree, "texts.c"), "wb") as f: run("sh", os.path.join(t.root, "tools/embed.sh"), "verilog", "share", "src/exact", cwd=tree, stdout=f)
    run("gcc", "-std=c99", "-w", "-O0", "-I.", "-o", other, "main.c", "src/mlo.c", *t.LIBS, "-lz", cwd=tree)
    lowered, words = t.at("lowered.onnx"), {}
    t.good("lower", t.model("bert-tiny"), "--onnx", "-o", lowered)                                # the same integers for both
    for name, program in ("before", t.mlo), ("after", other):
        c, v = t.at("c-" + name), t.at("v-" + name)
        t.good("emit", lowered, "--target", "c", "-o", c, program=program)
        t.good("emit", lowered, "-o", v, program=program)
        golden = np.array(re.findall(r"-?\d+", text(c, "test.c").split("golden[FRAMES]")[1].split("};")[0].split("= {")[1]), np.int64)
        lanes = [int(line[1 + 4 * i:5 + 4 * i], 16) for line in text(v, "tb/golden.hex").split() for i in reversed(range((len(line) - 1) // 4))]
        core, feeds = core_feeds(c, drawn(c, 1))
        x, others = called(c, feeds)
        np.savez(t.at("core.npz"), **feeds)
        t.good("run", os.path.join(c, "host/core.onnx"), "--inputs", t.at("core.npz"), "--outputs", t.at("y.npz"), program=program)
        ours = list(np.load(t.at("y.npz")).values())[0]
        t.case("%s: the test passes" % name, tested(c, "gcc", ["-O1"]))
        t.case("%s: C's golden words are Verilog's" % name, "" if np.array_equal(golden[:len(lanes)] & 65535, lanes) else "they differ")
        t.case("%s: C's words are those of mlo run" % name, differ(Model(c)(x, **others), ours))
        t.case("%s: exact.h is src/exact" % name, "" if text(c, "exact.h") == "".join(t.read(os.path.join(t.root if name == "before" else tree, "src/exact/%s.c" % f)).decode() for f in ("round", "norm", "softmax")) else "it differs")
        words[name] = golden, ours, core.run(None, feeds)[0]
    t.case("the rounding matters", "" if not np.array_equal(words["before"][0], words["after"][0]) and not np.array_equal(words["before"][1], words["after"][1]) else "no word differs")
    t.case("ONNX Runtime tells", "" if np.array_equal(words["before"][1], words["before"][2]) and not np.array_equal(words["after"][1], words["after"][2]) else "it does not")


def check_refused():
    path = built("bert-tiny")
    model = Model(path)
    x = np.zeros((model.number["TOKENS"], model.number["CHANNELS"]), np.int16)
    want = lambda status, what, got: t.case("%s is refused" % what, "" if not isinstance(got, np.ndarray) and got == status else str(got))
    want(2, "an arena a byte short", model(x, arena_bytes=len(model.arena) - 1))
    want(2, "a misaligned arena", model(x, arena=model.arena[1:]))
    want(1, "a frame of no tokens", model(x, tokens=0))
    want(1, "a frame of too many tokens", model(np.concatenate([x, x[:1]])))
    t.case("a frame of fewer tokens is taken", "" if isinstance(model(x[:5]), np.ndarray) else "refused")
    for bytes, flags, status, says in (8000, ["--target", "c"], 4, b"--arena 8000: the layer's values take 16384 bytes at a time, and 10752 at least"), (16384, ["--target", "c"], 0, b""), (16384, [], 2, b"--arena is of C"):
        p = t.call("compile", t.model("bert-tiny"), *flags, "--arena", bytes, "-o", t.at("small-%d" % len(flags)))
        t.case("--arena %d %s" % (bytes, " ".join(flags)), "" if p.returncode == status and says in p.stderr else p.stderr.decode() or "it says nothing")
    p = t.call("compile", t.model(STORY[0]), "--context", "64", "--tokens", "--target", "c", "-o", t.at("ids"))
    t.case("ids have no C", "" if p.returncode == 4 and b"leave --tokens out" in p.stderr and not os.path.exists(t.at("ids")) else p.stderr.decode() or "it says nothing")
    p = t.call("compile", t.model("bert-tiny"), "--target", "rust", "-o", t.at("rust"))
    t.case("a target that there is none of", "" if p.returncode == 2 and b"--target rust: there are verilog and c" in p.stderr and not os.path.exists(t.at("rust")) else p.stderr.decode() or "it says nothing")


# ---- decoders -----------------------------------------------------------------------------------------------------------------------------------

def check_story():
    path = built(*STORY)
    pre, core, post = (session(os.path.join(path, "host/%s.onnx" % p)) for p in ("pre", "core", "post"))
    model, ids, wrong = Model(path), [1], ""
    rows = np.zeros((1, 64, model.number["CHANNELS"]), np.int16)
    for at in range(63):
        x = pre.run(None, {"input_ids": np.array([ids + [0] * (64 - len(ids))])})[0]
        y = model(x[0, at:at + 1])
        want = core.run(None, {core.get_inputs()[0].name: x})[0]
        wrong = wrong or differ(y, want[0, at]) and "token %d: %s" % (at, differ(y, want[0, at]))
        rows[0, at] = y
        ids.append(int(post.run(None, {post.get_inputs()[0].name: rows})[0][0, at].argmax()))
    t.case("words of every step", wrong)
    lowered = t.at("story.json")
    t.good("lower", t.model(STORY[0]), *STORY[1:], "-o", lowered)
    said = json.loads(t.good("run", lowered, "--generate", "63", "--prompt", "1"))["sequences"][0]["tokens"]
    t.case("the text that mlo tells", "" if said == ids else "%s, mlo: %s" % (ids[:8], said[:8]))
    t.case("a token beyond the context is refused", "" if isinstance(model(x[0, :1]), np.ndarray) and model(x[0, :1]) == 1 else "taken")


def check_parts():
    path = built(*STORY)
    core = session(os.path.join(path, "host/core.onnx"))
    x = np.random.default_rng(7).integers(-9000, 9000, (1, 64, 64)).astype(np.int16)
    want = core.run(None, {core.get_inputs()[0].name: x})[0][0]
    for parts in (64,), (1, 63), (20, 1, 1, 30), (7,) * 9:
        model, at, got = Model(path), 0, []
        for n in parts:
            got.append(model(x[0, at:at + n]))
            at += n
        t.case("parts of %s" % (parts,), differ(np.concatenate(got), want[:at]))


t.main(check_words, check_compilers, check_foreign, check_bare, check_families, check_depth, check_threads, check_own, check_profile, check_bytes, check_arena, check_blocks, check_kept, check_packing, check_sim, check_sim_foreign, check_narrow, check_sums, check_weights, check_one, check_refused, check_story, check_parts, floor=214)
