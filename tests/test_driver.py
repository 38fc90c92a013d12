# SPDX-License-Identifier: MIT
"""test_driver: a host's drivers, host/mlo_driver.c and .py, as they are emitted: strict and free-standing C, numbers as ONNX Runtime rounds them, and both
against the simulated core (cocotb, Icarus): their test passes, and a host's mistakes (no registers, another scale, other parameters, memory that is not
there or silent, jobs that do not fit) end with a status and a clear line.

Judges: gcc, g++, nm; ONNX Runtime; the simulated core."""
import ctypes as c
import glob
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
import harness as t
import test_heads
import hardware
import replay

HERE = os.path.dirname(os.path.abspath(__file__))
BUILDS = {"an encoder": ("families/bert-d18-sdpa-mask-a.onnx", "--pe", "4", "--simd", "4"),
          "a cache": ("context/gpt2-d18-eager-dims.onnx", "--context", "16", "--slots", "2"),
          "a cache in memory": ("context/gpt2-d18-eager-dims.onnx", "--context", "16", "--slots", "2", "--kv", "dram"),
          "token ids": ("context/llama-d18-eager-one.onnx", "--context", "16", "--slots", "2", "--tokens"),
          "a first token": ("pooled/distilbert-classes-d18-sdpa-none-a.onnx", "--pe", "4", "--simd", "4", "--tokens"),
          "a past of its own": (lambda: test_heads.cached("turned behind three")[0], "--pe", "2", "--simd", "2"),
          "every layer's tokens": ("every/bert-states-d18-sdpa-mask-a.onnx", "--pe", "4", "--simd", "4"),
          "an encoder's output": ("families/bart-decoder-d18-sdpa-mask-m.onnx", "--pe", "2", "--simd", "4")}
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-ffreestanding"]


def build(what):
    model, *flags = BUILDS[what]
    return hardware.build(model() if callable(model) else os.path.join(HERE, "models", model), *flags, at=what.replace(" ", "-").replace("'", ""))


def gcc(*args):
    p = subprocess.run(["gcc", *args], capture_output=True, text=True)
    return p.stderr[-400:] or ("status %d" % p.returncode if p.returncode else "")


def library(path, name, change=lambda header: header):
    """The C driver of a build directory as a shared library; change: what to do to its header."""
    host = shutil.copytree(os.path.join(path, "host"), t.at(name))
    header = os.path.join(host, "mlo_driver.h")
    text = change(t.read(header).decode())
    with open(header, "w") as f: f.write(text)
    why = gcc(*STRICT, "-O1", "-shared", "-fPIC", "-o", host + ".so", host + "/mlo_driver.c", host + "/mlo_frame.c")
    if why: raise RuntimeError(why)
    return host + ".so"


def check_c():
    for what in BUILDS:
        host = build(what) + "/host/"
        for flags in (STRICT, ["-x", "c++", "-std=c++11", *STRICT[1:]]):
            said = gcc(*flags, "-c", "-o", t.at("d.o"), host + "mlo_driver.c") or gcc(*flags, "-c", "-o", t.at("f.o"), host + "mlo_frame.c")
            t.case("%s: %s" % (what, "C++" if "-x" in flags else "C"), said)
        undefined = subprocess.run(["nm", "-u", t.at("d.o"), t.at("f.o")], capture_output=True, text=True).stdout
        t.case("%s: needs no library" % what, "" if re.findall(r"U (\w+)", undefined) == ["mlo_driver_example"] else undefined)
        listed = json.loads(t.read(build(what) + "/manifest.json"))["files"]
        t.case("%s: the manifest lists them" % what, str({"host/mlo_driver.h", "host/mlo_driver.c", "host/mlo_driver.py", "host/mlo_frame.c"} - set(listed)).replace("set()", ""))


class Border(c.Structure): _fields_ = [("scale", c.c_float), ("low", c.c_int32), ("high", c.c_int32), ("bytes", c.c_uint32)]


def rounded(x, scale, low, high):
    """As ONNX Runtime has it: Div, Round, Max, Min; and Mul back."""
    info = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, None)
    held = [helper.make_tensor(n, TensorProto.FLOAT, [], [v]) for n, v in (("s", scale), ("l", low), ("h", high))]
    nodes = [helper.make_node(*n) for n in (("Div", ["x", "s"], ["d"]), ("Round", ["d"], ["r"]), ("Max", ["r", "l"], ["m"]), ("Min", ["m", "h"], ["w"]), ("Mul", ["w", "s"], ["y"]))]
    model = helper.make_model(helper.make_graph(nodes, "g", [info("x")], [info("w"), info("y")], held), opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})


def module(path):
    spec = importlib.util.spec_from_file_location("mlo_driver", path + "/host/mlo_driver.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def check_numbers():
    """Numbers to words and back, halves and what is beyond the bounds among them."""
    path = build("an encoder")
    driver, python = c.CDLL(library(path, "numbers")), module(path)
    core = python.Core.__new__(python.Core)
    rng = np.random.default_rng(3)
    for bits, low, high, scale in ((8, -128, 127, 0.25), (12, -2048, 2047, 0.013), (16, -32768, 32767, 2.0 ** -9), (16, -32767, 32767, 1.9e-4)):
        x = np.float32(np.concatenate([rng.normal(0, high * scale / 2, 4000), (np.arange(-300, 300) / 2) * scale, [0, -0.0, 1e30, -1e30, high * scale, low * scale, (high + .5) * scale]]))
        words, back = rounded(x, scale, low, high)
        border, width = Border(scale, low, high, (bits + 7) // 8), (bits + 7) // 8
        room, numbers = (c.c_uint8 * (x.size * width))(), (c.c_float * x.size)()
        driver.mlo_driver_quantize(c.byref(border), x.ctypes.data_as(c.c_void_p), x.size, room)
        driver.mlo_driver_dequantize(c.byref(border), room, x.size, numbers)
        read = [driver.mlo_driver_word(c.byref(border), room, i) for i in range(x.size)]
        t.case("C: %d bits, scale %g" % (bits, scale), "" if read == words.astype(int).tolist() and np.array_equal(np.array(numbers), back) else "words differ")
        core.manifest = {"input": dict(scale=scale, low=low, high=high), "output": dict(scale=scale)}
        w = core.words(x)
        packed = python.packed(w, bits)
        good = np.array_equal(w, words) and packed == bytes(room) and np.array_equal(python.unpacked(packed, bits), w) and np.array_equal(core.numbers(w), back)
        t.case("Python: %d bits, scale %g" % (bits, scale), "" if good else "words differ")


def check_borders():
    """Of what is quantized, a node's result or the model's own input, there are numbers, whose words come first."""
    bare = hardware.build(os.path.join(HERE, "models/families/bare-batch-pre-gelu-ts17-none-b.onnx"), at="bare")
    for what, path in [(w, build(w)) for w in BUILDS] + [("floats come in", bare)]:
        m = json.loads(t.read(path + "/manifest.json"))
        if "around" in m:                            # ids are no numbers
            said = m["output"]["scale"] is None          # a vector of a frame is numbers
            t.case("%s: no scales" % what, "" if m["input"]["scale"] is None and said != ("tail" in m["around"]) else str(m["input"]))
            continue
        room = int(re.search(r"#define MLO_TEST_BYTES +(\d+)", t.read(path + "/host/mlo_driver.h").decode())[1])
        longest = max(n for _, _, n in hardware.jobs(path, "tb/jobs.hex")) if "slots" in m else m["tokens"]
        t.case("%s: room for the longest of its test's results" % what, "" if room == longest * m["output"].get("times", 1) * m["channels"] * m["stream"]["bits"] // 8 else "%d bytes for %d tokens" % (room, longest))
        streams = [("input", "input", m["stream"]), ("output", "golden", m["stream"])] + [("replay", "replay", m.get("replay"))] * ("replay" in m)
        for name, file, form in streams:
            if "times" in m[name]:                   # each layer has a scale of its own: host/post.onnx multiplies by it
                y, held = onnx.load(path + "/host/post.onnx").graph, np.float32(m[name]["scales"])
                by = [x for n in y.node if n.op_type == "Mul" for x in y.initializer if x.name == n.input[1] and list(x.dims) == [m["iterations"], 1, 1, 1]]
                core, words = module(path).Core.__new__(module(path).Core), hardware.frames(path, "tb/golden.hex", form["lanes"], form["bits"])[0]
                core.manifest = m
                own = words.reshape(len(held), -1).astype(np.float32) * held[:, None]
                good = m[name]["scale"] is None and [np.array_equal(onnx.numpy_helper.to_array(x).ravel(), held) for x in by] == [True]
                t.case("%s: each layer's scale of the %s" % (what, name), "" if good and np.array_equal(core.numbers(words), own.ravel()) else str(m[name]))
                continue
            b, words = m[name], hardware.frames(path, "tb/%s.hex" % file, form["lanes"], form["bits"])[0][:16]
            x = np.float32(b["numbers"])
            good = np.array_equal(words.astype(np.float32) * np.float32(b["scale"]), x) if name == "output" else np.array_equal(rounded(x, b["scale"], b["low"], b["high"])[0], words)
            t.case("%s: numbers of the %s" % (what, name), "" if len(x) == 16 and good else str(b))


def another_scale(header): return re.sub(r"(#define MLO_INPUT +\{ )([\d.e-]+)f", lambda m: "%s%.9ef" % (m[1], float(m[2]) * 1.01), header)


def cocotb(sources, top, module, folder, **env):
    """A module of cocotb's tests beside a simulation; what it said at last."""
    run = "import sys; from cocotb_tools.runner import get_runner; r = get_runner('icarus'); top, module, folder, *sources = sys.argv[1:]; " \
          "r.build(sources=sources, hdl_toplevel=top, build_dir=folder, timescale=('1ns', '1ps')); r.test(hdl_toplevel=top, test_module=module, test_dir=folder, build_dir=folder)"
    env = dict(os.environ, COCOTB_LOG_LEVEL="WARNING", PYTHONPATH=HERE, PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"], **env)
    p = subprocess.run([sys.executable, "-c", run, top, module, folder, *sources], env=env, capture_output=True, text=True, timeout=1200)
    return (p.stdout + p.stderr)[-500:]


def stands(path, sources, top, module, made, wrote, good, **env):
    """What a module of cocotb's tests wrote of a simulation of a build directory, read as JSON; good(that): whether it may be held (replay.py)."""
    def make():
        why = cocotb(sources, top, module, made, **env)
        if not os.path.exists(wrote): raise RuntimeError("it did not end: " + why)
        text = t.read(wrote).decode().strip()
        return (0 if good(json.loads(text)) else 2), text
    if not replay.replayed(): return json.loads(make()[1])
    files = sorted(f for pattern in ("host/*", "tb/*.hex", "params.bin", "manifest.json", "mlo_litex.py") for f in glob.glob(os.path.join(path, pattern)))
    icarus = subprocess.run([replay.real("iverilog"), "-V"], stdout=subprocess.PIPE, text=True).stdout.split("\n")[0]
    tools = icarus, *map(importlib.metadata.version, ("cocotb", "cocotbext-axi"))
    key = replay.digest(tools, [replay.bare(f) for f in sources], [(os.path.relpath(f, path), replay.content(f)) for f in files], replay.content("%s/%s.py" % (HERE, module)), replay.content(__file__))
    return json.loads(replay.stands(key, key, make)[1])


def driven(what):
    path = build(what)
    made = t.at("sim-" + os.path.basename(path))
    env = dict(DRIVE_BUILD=path, DRIVE_OUT=made + ".json", DRIVE_C=library(path, made + "-c"), DRIVE_SCALE=library(path, made + "-scale", another_scale))
    well = lambda steps: len(steps) >= 18 and not any(why for _, why in steps)
    steps = stands(path, sorted(glob.glob(path + "/rtl/*.v")), "mlo_top", "drive", made, made + ".json", well, **env)
    for name, why in steps: t.case("%s: %s" % (what, name), why)
    t.case("%s: all was tried" % what, "" if len(steps) >= 18 else "%d steps" % len(steps))


def check_simulated():
    if not hardware.has_cocotb("drivers"): return
    hardware.together(*(lambda what=what: driven(what) for what in t.drawn(BUILDS, 3)))


def check_emitted():
    """cocotb/test_mlo.py of a core whose keys and values are the model's own: they lie in memory, and every word that is kept is compared."""
    if not hardware.has_cocotb("cocotb"): return
    path = hardware.copy(build("a past of its own"), "emitted")
    t.case("the emitted cocotb bench passes", hardware.cocotb(path)[-300:])
    kept = t.read(path + "/tb/kept.hex").split()
    kept[-1] = b"%x" % (int(kept[-1], 16) ^ 1)
    with open(path + "/tb/kept.hex", "wb") as f: f.write(b"\n".join(kept))
    said = hardware.cocotb(path)
    t.case("it sees a word that is kept, and is another", "" if "keys and values that are kept differ" in said else said[-300:] or "it passes")


def in_soc(name, *flags):
    """The core in a SoC of LiteX's, which the emitted Python driver tests by its bus."""
    path, made = hardware.build(os.path.join(HERE, "models", name), *flags, at="soc-core"), t.at("soc")
    os.makedirs(made)
    p = subprocess.run([sys.executable, HERE + "/soc.py", path, made], capture_output=True, text=True)
    if not os.path.exists(made + "/soc.v"): return t.case("LiteX: elaborates", p.stderr[-400:] or "no Verilog")
    t.case("LiteX: elaborates")
    said = stands(path, [made + "/soc.v", *sorted(glob.glob(path + "/rtl/*.v"))], "soc", "soc", made, made + "/said.json", lambda why: not why, SOC_BUILD=path, SOC_OUT=made)
    t.case("LiteX: a frame by the SoC's bus", said)


def check_soc():
    if not t.have("LiteX", "iverilog"): return
    if not all(map(importlib.util.find_spec, ("litex", "cocotb"))): return t.absent("LiteX", "litex or cocotb not installed")
    in_soc("families/bare-batch-pre-gelu-ts17-none-b.onnx", "--pe", "4", "--simd", "4")


def check_image():
    """The Python driver loads no parameters but the ones that were made for this core."""
    path = hardware.copy(build("an encoder"), "spoilt")
    data = bytearray(t.read(path + "/params.bin"))
    t.case("params.bin as it was made", "" if module(path).image(path) == data else "it differs")
    data[100] ^= 4
    with open(path + "/params.bin", "wb") as f: f.write(data)
    try: why = "it was taken: %s" % module(path).image(path)[:4]
    except Exception as e: why = "" if "params.bin is not the one" in str(e) else str(e)
    t.case("params.bin, a bit is another", why)


if __name__ == "__main__": t.main(check_c, check_numbers, check_borders, check_simulated, check_emitted, check_soc, check_image, floor=70)
