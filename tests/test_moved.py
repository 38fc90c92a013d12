#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tokens that change places: windows, shifted windows (Swin), any permutation that is undone.

    python tests/test_moved.py path/to/mlo [CHECK ...]

    drawn     layers whose tokens go through a random permutation into windows, attend there and go back: what hardware hides and adds for each head, query and key
              is what numpy says; `mlo run` and ONNX Runtime agree, and come near the floats
    near      near misses: an index with two elements exchanged, a shift that is not undone, a token twice, a mask with one element that is other: refused, or computed as
              they are
    exports   models/moved/ (families_moved.py made it: Swin as transformers and torchvision spell it, one stage and two) become hardware, as test_families.py has
              it: words in Icarus, `mlo run` and ONNX Runtime, and how near they come to the floats; one of them under stalls"""
import glob
import os
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import harness as t
import test_families
from hardware import Run

NEAR = 0.99


# ---- layers that move tokens ---------------------------------------------------------------------------------------------------------

class Moving:
    """Two layers: tokens in another order, in windows of n; attention in each; back; a residual. Fields are changed before `made`.
    form: what has masks of its own."""

    def __init__(self, seed, windows=4, n=4, heads=2, d=4, form="both"):
        self.rng = np.random.default_rng(seed)
        self.windows, self.n, self.heads, self.d, self.t, self.c, self.layers = windows, n, heads, d, windows * n, heads * d, 2
        self.there = [self.rng.permutation(self.t)] * self.layers
        self.back = [np.argsort(p) for p in self.there]
        self.keys = [np.arange(n)] * self.layers                                    # of a window, in the order that they are read
        shape = {"both": (windows, heads), "heads": (1, heads), "windows": (windows, 1)}[form] + (n, n)
        self.mask = [self.rng.standard_normal(shape).astype(np.float32) for _ in range(self.layers)]

    def bias(self, layer):
        """[H, T, T] in the stream's order; -inf: hidden. Of heads that are alike, one."""
        out = np.full((self.heads, self.t, self.t), -np.inf)
        mask = np.broadcast_to(self.mask[layer], (self.windows, self.heads, self.n, self.n))
        for w in range(self.windows):
            at = self.there[layer][w * self.n:(w + 1) * self.n]
            for h in range(self.heads): out[h][np.ix_(at, at)] = mask[w, h]
        return out[:self.mask[layer].shape[1]]

    def made(self, name):
        """As a file."""
        nodes, held = [], []

        def put(x, dtype=np.float32):
            held.append(numpy_helper.from_array(np.asarray(x, dtype), "c%d" % len(held)))
            return held[-1].name

        def node(op, *inputs, **attributes):
            nodes.append(helper.make_node(op, list(inputs), ["v%d" % len(nodes)], **attributes))
            return nodes[-1].output[0]

        def matrix(): return put(self.rng.standard_normal((self.c, self.c)) / self.c ** 0.5)
        tokens, split = put([1, self.t, self.c], np.int64), put([self.windows, self.n, self.heads, self.d], np.int64)
        inside = put([self.windows, self.n, self.c], np.int64)
        x = "x"
        for i in range(self.layers):
            y = node("LayerNormalization", x, put(1 + 0.1 * self.rng.standard_normal(self.c)), put(0.1 * self.rng.standard_normal(self.c)), axis=-1)
            y = node("Reshape", node("Gather", y, put(self.there[i], np.int64), axis=1), inside)
            k_from = y if (self.keys[i] == np.arange(self.n)).all() else node("Gather", y, put(self.keys[i], np.int64), axis=1)
            q, k, v = (node("Transpose", node("Reshape", node("MatMul", z, matrix()), split), perm=p) for z, p in ((y, [0, 2, 1, 3]), (k_from, [0, 2, 3, 1]), (y, [0, 2, 1, 3])))
            s = node("Add", node("Mul", node("MatMul", q, k), put(self.d ** -0.5)), put(self.mask[i]))
            y = node("Transpose", node("MatMul", node("Softmax", s, axis=-1), v), perm=[0, 2, 1, 3])
            y = node("MatMul", node("Reshape", y, inside), matrix())
            x = node("Add", x, node("Gather", node("Reshape", y, tokens), put(self.back[i], np.int64), axis=1))
        ends = [helper.make_tensor_value_info(v, TensorProto.FLOAT, [1, self.t, self.c]) for v in ("x", x)]
        m = helper.make_model(helper.make_graph(nodes, "moving", ends[:1], ends[1:], held), opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        path = t.at(name + "-d18-none-a.onnx")
        onnx.save(m, path)
        return path


def differs(m, moving):
    """'' or where the core's bias is not the layers'."""
    core = onnx.load(os.path.join(m.out, "host", "core.onnx"))
    shape = [moving.layers, *moving.bias(0).shape]
    found = [numpy_helper.to_array(i) for i in core.graph.initializer if list(i.dims) == shape and i.data_type == TensorProto.INT16]
    if len(found) != 1: return "%d biases of shape %s" % (len(found), shape)
    for i in range(moving.layers):
        want, got = moving.bias(i), found[0][i].astype(float)
        if ((got == -2 ** 15) != np.isinf(want)).any(): return "layer %d hides others: %s" % (i, np.argwhere((got == -2 ** 15) != np.isinf(want))[0])
        seen = ~np.isinf(want)
        row = lambda x: np.where(seen, x - np.sum(x, -1, where=seen, keepdims=True) / seen.sum(-1, keepdims=True), 0)
        want, got = row(np.where(seen, want, 0)), row(got)
        far = np.abs(got - (got * want).sum() / (want * want).sum() * want)
        if far.max() > 1.5: return "layer %d adds %g steps more at %s" % (i, far.max(), np.unravel_index(far.argmax(), far.shape))
    return ""


def judged(moving, name):
    """'' or what is wrong with a model that has to become hardware."""
    m = test_families.Model(moving.made(name))
    m.simulated = False
    m.compile()
    m.judge()
    return m.why or differs(m, moving) or ("" if m.near >= NEAR else "cosine %.4f" % m.near)


def check_drawn():
    rng = np.random.default_rng(5)
    for seed in range(8):
        how = dict(windows=int(rng.integers(1, 6)), n=int(rng.integers(2, 7)), heads=int(rng.integers(1, 4)), d=int(rng.integers(1, 3)) * 4, form=("both", "heads", "windows")[seed % 3])
        t.case("drawn: %(windows)d windows of %(n)d tokens, %(heads)d heads of %(d)d, a mask for %(form)s" % how, judged(Moving(seed, **how), "drawn%d" % seed))


# ---- near misses -------------------------------------------------------------------------------------------------------------------------

def exchanged(index, a=2, b=9):
    index = index.copy()
    index[[a, b]] = index[[b, a]]
    return index


def one_back(m): m.back = [exchanged(m.back[0])] * 2
def one_layer_back(m): m.back = [m.back[0], exchanged(m.back[1])]
def both_ways(m): m.there, m.back = [exchanged(m.there[0])] * 2, [np.argsort(exchanged(m.there[0]))] * 2
def not_undone(m): m.there, m.back = [(np.arange(m.t) + 3) % m.t] * 2, [np.arange(m.t)] * 2
def undone_twice(m): m.there, m.back = [(np.arange(m.t) + 3) % m.t] * 2, [(np.arange(m.t) - 6) % m.t] * 2
def twice(m): m.there = [np.where(np.arange(m.t) == 5, m.there[0][6], m.there[0])] * 2
def other_keys(m): m.keys = [exchanged(m.keys[0], 0, 1)] * 2
def last_keys(m): m.keys = [exchanged(m.keys[0], 2, 3)] * 2


def one_element(m):
    m.mask[1] = m.mask[1].copy()
    m.mask[1][2, 1, 0, 3] += 3


def hidden(m):
    m.mask[1] = m.mask[1].copy()
    m.mask[1][2, 1, 0, 3] = -np.inf


REFUSED = {"two tokens exchanged on the way back": one_back, "two tokens of one layer exchanged on the way back": one_layer_back, "a shift that is not undone": not_undone, "a shift that is undone twice": undone_twice,
           "a token twice, another one never": twice, "keys in another order than values": other_keys, "the last keys of one window in another order than values": last_keys}
COMPUTED = {"two tokens exchanged there and back": both_ways, "one pair of a window hidden": hidden}


def check_near():
    for k, (what, change) in enumerate(REFUSED.items()):
        moving = Moving(20, **({"windows": 1, "heads": 1} if change == last_keys else {}))
        change(moving)
        p = t.call("compile", moving.made("refused%d" % k), "-o", t.at("refused%d" % k), "--pe", "4", "--simd", "4", text=True)
        said = next((l for l in p.stderr.splitlines() if "[MLO_E_UNSUPPORTED]" in l), "")
        t.case(what + ": refused", "" if p.returncode == 4 and "mlo: quantize: " in said else "status %d: %s" % (p.returncode, p.stderr[-200:]))
        t.note("%s: %s" % (what, said[15:140]))
    for k, (what, change) in enumerate(COMPUTED.items()):
        moving = Moving(20)
        change(moving)
        t.case(what + ": computed as it is", judged(moving, "computed%d" % k))
    p = t.call("compile", Moving(20, windows=512, form="heads").made("large"), "-o", t.at("large"), text=True)
    t.case("too many pairs: refused, with their number", "" if p.returncode == 4 and "2 heads, each query and key, here 8388608 numbers; 4194304 are supported" in p.stderr else p.stderr[-300:] or "it says nothing")
    right, other = Moving(20), Moving(20)
    one_element(other)
    t.case("one element of a mask that is other: computed as it is", judged(other, "other"))
    m = test_families.Model(right.made("right"))
    m.compile()
    t.case("the bias of one mask is not that of another one", "" if not differs(m, right) and differs(m, other).startswith("layer 1 adds") else differs(m, right) or "it is")


# ---- exports -------------------------------------------------------------------------------------------------------------------------

# by a part of the name: what the refusal's line has to say


def check_exports():
    if not t.have("exports", "iverilog"): return
    paths = sorted(glob.glob(os.path.join(t.tests, "models", "moved", "*.onnx")))
    due = t.drawn(paths, 3, name=os.path.basename)              # compiled are all
    for path in paths:
        m = test_families.Model(path)
        m.words = ""
        m.compile()
        if path in due: m.judge()
        if m.near != "" and not m.why and m.near < NEAR: m.why = "cosine %.4f" % m.near
        if m.near != "" and not m.why and m.name.startswith("swin-d18"):
            stalled = m.out + "/stalled.npz"
            m.why = Run(m.out, "--inputs", m.out + "/given.npz", "--outputs", stalled, "--stall", "30", verilator=None).why()
            with np.load(m.out + "/got.npz") as a, np.load(stalled) as b: m.why = m.why or ("" if all(np.array_equal(a[k], b[k]) for k in a.files) else "other words under stalls")
        if m.near != "" or m.words: t.note("%-28s %s" % (m.name, "cosine %.4f, %s cycles" % (m.near, m.cycles) if m.near != "" else "refused: " + m.words))
        t.case("export %s" % m.name, m.verdict())


# ---- cosines -------------------------------------------------------------------------------------------------------------------------

def scales(m): return [i for i in m.graph.initializer if list(i.dims) == [2, 1, 1]]
def set_to(i, x): i.CopyFrom(onnx.numpy_helper.from_array(np.float32(x), i.name))
def one_head(m): set_to(scales(m)[1], [[[9.0]], [[0.5]]])
def each_query(m):
    for k, i in enumerate(scales(m)): set_to(i, np.linspace(1, 4 + k, 8).reshape(2, 4, 1))
def each_key(m):
    for k, i in enumerate(scales(m)): set_to(i, np.linspace(1, 4 + k, 8).reshape(2, 1, 4))
def higher_floor(m):
    m.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(2.0), "two"))
    for n in m.graph.node:
        if n.op_type == "Clip" and n.input[0].startswith("linalg_vector_norm"): n.input[1] = "two"


def check_cosine():
    """Swin V2's queries and keys of length 1, with a scale for each head: other scales are computed, other functions refused by node."""
    for what, edit, words in (("other scales in one layer", one_head, ""), ("a scale for each query", each_query, "node_matmul"), ("a scale for each key", each_key, "node_matmul"),
                              ("lengths that are 2 at least", higher_floor, "node_")):
        model = onnx.load(os.path.join(t.tests, "models", "moved", "v2-d18-none-a.onnx"))
        edit(model)
        path = t.at("cosine-d18-none-a.onnx")
        onnx.save(model, path)
        m = test_families.Model(path)
        m.words = words
        m.compile()
        m.judge()
        t.case("cosines: " + what, m.verdict())


if __name__ == "__main__":
    t.main(check_drawn, check_near, check_exports, check_cosine, floor=34)
