#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--sketch: the hardware of a model before anybody has looked at its numbers.

    python tests/test_sketch.py path/to/mlo [NAME ...]

The core of a sketch and the one that is folded of the calibrated model (--activations 8, as a sketch has it): the same kernels, widths, folding, FIFOs,
cycles and areas, as `mlo show --json` says them, of exports of every folder. No matrix is read: NaN in all of them changes no byte. What is not a sketch's
is refused, and leaves nothing behind."""
import glob
import json
import os
import subprocess
import numpy as np
import onnx
from onnx import numpy_helper
import harness as t

EACH, FOLDED = 3, ("--pe", "2", "--simd", "2")              # one export in EACH
STORED = "sketch", "nodes", "parameters", "parameter_bytes" # what is stored of the model


def shown(*args):
    """What fold makes, as a dict; a str: why it does not."""
    p = subprocess.run([t.mlo, "fold", *args], capture_output=True)
    if p.returncode: return json.loads(p.stdout)["error"]["message"]
    q = subprocess.run([t.mlo, "show", "-", "--json"], input=p.stdout, capture_output=True)
    return json.loads(q.stdout)


def kept(core): return core if isinstance(core, str) else {key: value for key, value in core.items() if key not in STORED}


def parts(a, b):
    """The keys whose values differ."""
    if isinstance(a, str) or isinstance(b, str): return [str(a)[:100], str(b)[:100]] if a != b else []
    return [key for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)]


def near(a, b):
    """Cycles and areas within a hundredth, the same kernels in the same folding."""
    same = [k for k in a["kernels"] if k] and [(k["name"], k["op"], k.get("pe"), k.get("simd")) for k in a["kernels"]] == [(k["name"], k["op"], k.get("pe"), k.get("simd")) for k in b["kernels"]]
    return same and all(abs(x - y) <= 0.01 * y for x, y in [(a["predicted_cycles"], b["predicted_cycles"])] + [(a["area"][r], b["area"][r]) for r in ("lut", "ff", "dsp")])


def check_hardware():
    """What is sketched is what is built."""
    files = sorted(glob.glob(os.path.join(t.tests, "models", "**", "*.onnx"), recursive=True))
    equal, cores = 0, 0
    for path in files[::EACH]:
        name = os.path.basename(path)[:-5]
        sketch, core = shown(path, *FOLDED, "--sketch"), shown(path, *FOLDED, "--activations", "8")
        cores += not isinstance(core, str)
        what = parts(kept(sketch), kept(core))
        equal += not what and not isinstance(core, str)
        if what and isinstance(core, dict) and isinstance(sketch, dict) and near(sketch, core): what = []
        t.case("%s: a sketch has the hardware" % name, ", ".join(what[:4]))
    t.note("%d of %d cores are the same in everything" % (equal, cores))
    t.case("nearly all are the same in everything", "" if equal >= 0.85 * cores and cores >= 40 else "%d of %d" % (equal, cores))


def check_tokens():
    """Of a decoder whole: the head is a matrix like the others."""
    path = t.model("stories260k-step")
    sketch, core = (kept(shown(path, "--context", "64", "--tokens", *FOLDED, *flags)) for flags in (["--sketch"], ["--activations", "8"]))
    t.case("--tokens: a sketch has the hardware", str(core) if isinstance(core, str) or len(core["kernels"]) < 10 else ", ".join(parts(sketch, core)))


def check_unread():
    """Weights that are no numbers: what comes out is the same to the byte."""
    m = onnx.load(t.model("bert-tiny"))
    for i, x in enumerate(m.graph.initializer):
        a = numpy_helper.to_array(x)
        if a.dtype == np.float32 and a.ndim == 2 and a.shape[0] in (64, 256) and a.shape[1] in (64, 256) and "pooler" not in x.name: m.graph.initializer[i].CopyFrom(numpy_helper.from_array(np.full_like(a, np.nan), x.name))
    outs = [t.good("fold", "-", *FOLDED, "--sketch", input=model) for model in (t.read(t.model("bert-tiny")), m.SerializeToString())]
    t.case("NaN for every weight of the layers changes no byte", "" if outs[0] == outs[1] and len(outs[0]) > 10000 else "they differ")
    path = t.write("sketch.json", outs[0])
    onnx_path = t.at("sketch.onnx")
    t.good("fold", path, "-o", onnx_path)
    onnx.checker.check_model(onnx.load(onnx_path), full_check=False)
    t.case("a sketch is a model that onnx takes", "")
    by_stages = t.call("fold", "-", *FOLDED, input=t.call("lower", "-", input=t.call("quantize", "-", "--sketch", input=t.read(t.model("bert-tiny"))).stdout).stdout).stdout
    t.case("stage by stage: the same", "" if by_stages == outs[0] else "it differs")


def check_refused():
    """What needs numbers says so, and leaves nothing behind."""
    model = t.model("bert-tiny")
    sketch = t.write("refused.json", t.call("fold", model, *FOLDED, "--sketch").stdout)
    np.savez(t.at("ids.npz"), input_ids=np.zeros((1, 32), np.int64))
    step, prompt = (t.model("stories260k-" + kind) for kind in ("step", "prompt"))
    for args, says in ((("emit", sketch, "-o", t.at("no")), "a sketch"), (("compile", sketch, "-o", t.at("no")), "a sketch"),
                       (("compile", sketch, "--target", "c", "-o", t.at("no")), "a sketch"),
                       (("run", sketch, "--inputs", t.at("ids.npz")), "a sketch"), (("compile", model, "--sketch", "-o", t.at("no")), "--sketch belongs to"),
                       (("quantize", model, "--sketch", "--calib", t.at("ids.npz")), "--calib"), (("quantize", model, "--sketch", "--report", t.at("no")), "--report"),
                       (("quantize", model, "--sketch", "--max-error", "0.1"), "--max-error"), (("quantize", model, "--sketch", "--max-cost", "1.5"), "--max-cost"),
                       (("fold", step, "--context", "64", "--prefill", prompt, "--sketch"), "--prefill")):
        p = t.call(*args)
        t.case("%s: refused" % " ".join(a for a in args if not a.startswith("/")), "" if p.returncode == 2 and says in p.stderr.decode() and p.stderr.count(b"\n") == 1 and not os.path.exists(t.at("no")) else "status %d: %s" % (p.returncode, p.stderr.decode()[-200:]))


# emit runs the stages that are missing, quantize among them
GUEST = """#include "mlo.h"
#include <stdio.h>
static int sink(void *user, const char *name, const void *bytes, size_t n) { (void)name; (void)bytes; (void)n; ++*(int *)user; return 0; }
int main(int argc, char **argv) {
    int files = 0;
    mlo *m = mlo_open(NULL);
    mlo_set(m, "sketch", "1");
    if (argc > 2) mlo_set(m, "target", argv[2]);
    mlo_load(m, argv[1]);
    const int code = mlo_emit(m, sink, &files);
    printf("%d %d %s", code == MLO_E_USAGE, files, mlo_failure(m) ? mlo_failure(m)->message : "");
    mlo_close(m);
    return 0;
}
"""


def check_library():
    """A guest that asks for a sketch and emits it without a stage in between: refused before the first file."""
    if not t.have("library", "gcc"): return
    wrong = t.compile_c(t.at("guest"), [t.write("guest.c", GUEST), t.amalgamation()], ["-std=c99", *t.WATCHED])
    for target in [], ["c"]:
        said = wrong or subprocess.run([t.at("guest"), t.model("bert-tiny"), *target], capture_output=True, text=True).stdout
        t.case("mlo_emit of a sketch%s: refused, no file" % (" in C" * bool(target)), "" if said.startswith("1 0 the model is a sketch") else said[-300:])


t.main(check_hardware, check_tokens, check_unread, check_refused, check_library, floor=162)
