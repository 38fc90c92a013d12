#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention in networks of integers (Deeploy's dialect): the network's own numbers, every one.

Drawn networks of layers with iSoftmax, beside numpy's formulas: quantize, then lower, are run by mlo and by ONNX Runtime; the core is compiled, and
simulated with pauses, as C and as Verilog. Networks with a past: keys and values of earlier tokens come in, and all of them go out; both lie in the
core's memory. What has no exact form in hardware is refused, with the node and what would help.
"""
import json, os, re
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper, numpy_helper
import harness as t
from harness import at, case

ort.set_default_logger_severity(4)


class Net:
    """Nodes, and beside each what it is by numpy."""

    def __init__(self, seed, x):
        self.r, self.nodes, self.own, self.value = np.random.default_rng(seed), [], [], {"x": x.astype(np.int64)}
        self.given, self.made = ["x"], []               # inputs; outputs beside the last value

    def add(self, op, inputs, value, **attributes):
        name = "v%d" % len(self.nodes)
        self.nodes.append(helper.make_node(op, inputs, [name], name="n%d" % len(self.nodes), **attributes))
        self.value[name] = value
        return name

    def number(self, value, kind=np.float32):
        name = "p%d" % len(self.own)
        self.own.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def shift(self, x, mul, add=0, div=65536, n=256, signed=1):
        tensor = lambda v: numpy_helper.from_array(np.array([v], np.float32))
        low = -(n // 2) if signed else 0
        y = (self.value[x] * np.asarray(mul, np.int64) + np.asarray(add, np.int64) + div // 2) // div
        return self.add("RequantShift", [x, self.number(mul), self.number(add)], np.clip(y, low, low + n - 1), div=tensor(div), n_levels_out=tensor(n), signed=tensor(signed))

    def linear(self, x, n, bias=900):
        w = self.r.integers(-128, 128, (self.value[x].shape[-1], n))
        y = self.add("MatMul", [x, self.number(w)], self.value[x] @ w)
        b = self.r.integers(-bias, bias, n)
        return self.add("Add", [self.number(b), y], self.value[y] + b)

    def product(self, a, b): return self.add("MatMul", [a, b], self.value[a] @ self.value[b])
    def sum(self, a, b): return self.add("Add", [a, b], self.value[a] + self.value[b])
    def plus(self, x, c): return self.add("Add", [x, self.number(c)], self.value[x] + np.asarray(c, np.int64))
    def reshape(self, x, shape): return self.add("Reshape", [x, self.number(shape, np.int64)], self.value[x].reshape(shape))
    def transpose(self, x, perm): return self.add("Transpose", [x], self.value[x].transpose(perm), perm=perm)

    def divided(self, x, Delta=16384, eps=1, eta=200000, y=2):
        return self.add("TrueIntegerDiv", [x], (Delta * eta * self.value[x]) // (eta * y + eps), Delta=Delta, eps=eps, eta=eta, y=y)

    def softmax(self, x, a=1, b=68, c=2418, log2=50, levels=256):
        v = self.value[x]
        far = v - v.max(-1, keepdims=True)
        z = np.clip(-far // log2, 0, 31)
        e = (a * (far + z * log2 + b) ** 2 + c) >> z
        tensor = lambda number: numpy_helper.from_array(np.array([number], np.float32))
        return self.add("iSoftmax", [x], e * (levels - 1) // np.maximum(e.sum(-1, keepdims=True), 1), coeffA=tensor(a), coeffB=tensor(b), coeffC=tensor(c), log2=tensor(log2), n_levels=tensor(levels))

    def takes(self, value):
        self.given.append("i%d" % len(self.given))
        self.value[self.given[-1]] = value
        return self.given[-1]

    def save(self, y, path):
        info = lambda n: helper.make_tensor_value_info(n, T.FLOAT, self.value[n].shape)
        g = helper.make_graph(self.nodes, "heads", [info(n) for n in self.given], [info(n) for n in [y] + self.made], self.own)
        return t.write(path, helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString())


def heads(n, x, h, by=300):
    """[1, T, H D] as [1, H, T, D], rounded"""
    b, tokens, c = n.value[x].shape
    y = n.shift(n.linear(x, c), by)
    return n.transpose(n.reshape(y, [1, tokens, h, c // h]), [0, 2, 1, 3])


def causal(n, x, number=-128):
    size = n.value[x].shape[1]
    return np.triu(np.full((1, 1, size, size), number), 1)


def weighed(n, scores, mask, mul=900, probs=32921, **softmax):
    """scores to probabilities, as Deeploy's microLlama rounds them on the way"""
    y = n.shift(n.divided(n.shift(scores, mul)), 4)
    if mask is not None: y = n.shift(n.plus(y, mask), 65536)
    y = n.softmax(y, **softmax)
    return n.shift(y, probs) if probs else y


def turns(tokens, d, pairs, seed=5, most=127):
    """[1, T, D, D]: of each pair of channels an angle by place, in steps of 1/127"""
    w = np.zeros((1, tokens, d, d), np.int64)
    for i in range(d): w[0, :, i, i] = most
    for n, (a, b) in enumerate(pairs):
        angle = np.arange(tokens) * (seed + 3.0) / 10 ** n
        c, s = np.round(most * np.cos(angle)).astype(int), np.round(most * np.sin(angle)).astype(int)
        w[0, :, a, a], w[0, :, b, b], w[0, :, a, b], w[0, :, b, a] = c, c, s, -s
    return w


def halves(d): return [(i, i + d // 2) for i in range(d // 2)]


def turned(n, x, h, matrix, by=300, gain=520):
    """heads, each token's turned by its matrix"""
    b, tokens, c = n.value[x].shape
    y = n.reshape(n.shift(n.linear(x, c), by), [1, tokens, h, c // h])
    y = n.shift(n.add("MatMul", [y, n.number(matrix)], n.value[y] @ matrix), gain)
    return n.transpose(y, [0, 2, 1, 3])


def behind_nothing(n, x):
    """a past without elements in front, as microLlama has it for a prompt"""
    b, h, tokens, d = n.value[x].shape
    return n.add("Concat", [n.number(np.zeros((b, h, 0, d))), x], n.value[x], axis=-2)


def attended(n, x, h=2, mask=None, by=(300, 300, 300), mul=900, mixed=900, inside=(), matrix=None, **how):
    q, k, v = (heads(n, x, h, b) if matrix is None or i == 2 else turned(n, x, h, matrix, b) for i, b in enumerate(by))
    for _ in inside: k, v = (n.shift(behind_nothing(n, n.shift(y, 65536)), 65536) for y in (k, v))
    p = weighed(n, n.product(q, n.transpose(k, [0, 1, 3, 2])), mask, mul, **how)
    y = n.transpose(n.shift(n.product(p, v), mixed), [0, 2, 1, 3])
    return n.reshape(y, list(n.value[x].shape))


def layer(n, x, gain=250, **how):
    y = n.shift(n.linear(attended(n, x, **how), n.value[x].shape[-1]), gain)
    return n.shift(n.sum(n.shift(x, 55896), y), 58499)


def without_views(n, x):
    """One head: nothing is laid out anew."""
    q, k, v = (n.shift(n.linear(x, 6), 300) for _ in range(3))
    p = weighed(n, n.product(q, n.transpose(k, [0, 2, 1])), None)
    return n.shift(n.sum(x, n.shift(n.product(p, v), 900)), 58499)


NETWORKS = {
    "two heads": (lambda n, x, i: layer(n, x), (1, 5, 16)),
    "behind": (lambda n, x, i: layer(n, x, mask=causal(n, x)), (1, 7, 12)),
    "microllama": (lambda n, x, i: layer(n, x, h=16, mask=causal(n, x), inside=(1,)), (1, 8, 64)),
    "one of six": (lambda n, x, i: layer(n, x, h=1, mask=causal(n, x, -40)), (1, 6, 6)),
    "one token": (lambda n, x, i: layer(n, x, h=2), (1, 1, 8)),
    "no views": (lambda n, x, i: without_views(n, x), (1, 4, 6)),
    "each its own": (lambda n, x, i: layer(n, x, mask=causal(n, x, [-128, -60, -90][i]), mul=[900, 700, 1200][i], probs=[32921, 20001, 65001][i], b=[68, 40, 90][i], c=[2418, 900, 4000][i], log2=[50, 22, 61][i], mixed=[900, 800, 1100][i], levels=[256, 256, 128][i]), (1, 7, 8)),
    "turned": (lambda n, x, i: layer(n, x, h=4, mask=causal(n, x), inside=(1,), matrix=turns(7, 4, halves(4))), (1, 7, 16)),
    "turned beside": (lambda n, x, i: layer(n, x, matrix=turns(5, 6, [(0, 1), (2, 3), (4, 5)], 5 + i)), (1, 5, 12)),
    "turned in part": (lambda n, x, i: layer(n, x, matrix=turns(6, 8, [(1, 3), (0, 6)])), (1, 6, 16)),
    "one for all": (lambda n, x, i: layer(n, x, h=1, matrix=turns(1, 4, halves(4))), (1, 3, 4)),
    "not rounded": (lambda n, x, i: layer(n, x, probs=0, levels=64, mixed=4000), (1, 5, 8)),
    "levels": (lambda n, x, i: n.shift(layer(n, x, mask=np.full((1, 1, 1, 1), 7)), 60000, n=200), (1, 5, 8)),
}


def network(name, layers=3, seed=0):
    make, shape = NETWORKS[name]
    n = Net(seed, np.random.default_rng(seed + 1).integers(-128, 128, shape))
    y = "x"
    for i in range(layers): y = make(n, y, i)
    path = n.save(y, "net.onnx")
    np.savez(at("net.npz"), x=n.value["x"].astype(np.float32))
    return path, n.value["x"], n.value[y]


def differs(got, want): return "" if got.shape == want.shape and np.array_equal(got, want) else "%s of %s differ" % (np.sum(got != want) if got.shape == want.shape else got.shape, want.shape)
def of(path): return list(np.load(path).values())[0]


def check_words():
    """Four executions of one network: mlo, ONNX Runtime, Icarus, C; numpy judges."""
    simulated = t.drawn(list(NETWORKS), 3, str) if t.have("simulation", "iverilog") else []
    for name in NETWORKS:
        path, x, want = network(name)
        assert len(np.unique(want)) > 3, "a network that makes next to nothing"
        for stage in ("quantize", "lower"):
            said = t.call(stage, path, "--onnx", "-o", at("stage.onnx"), text=True)
            if said.returncode: case("%s: %s" % (name, stage), said.stderr); continue
            t.good("run", at("stage.onnx"), "--inputs", at("net.npz"), "--outputs", at("out.npz"))
            case("%s: %s is the network's integers" % (name, stage), differs(of(at("out.npz")), want))
            got = ort.InferenceSession(at("stage.onnx")).run(None, {"x": x.astype(np.float32)})[0]
            case("%s: %s in ONNX Runtime" % (name, stage), differs(got, want))
        t.good("compile", path, "--target", "c", "-o", at("c"))
        p = t.call("sim", at("c"), text=True)
        case("%s: C makes what mlo does" % name, p.stderr if p.returncode or not json.loads(p.stdout)["pass"] else "")
        if name not in simulated: continue
        t.good("compile", path, "-o", at("core"))
        p = t.call("sim", at("core"), "--inputs", at("net.npz"), "--outputs", at("out.npz"), "--simulator", "icarus", "--stall", "30", "--seed", "3")
        case("%s: the core makes the network's integers" % name, p.stderr.decode() if p.returncode else differs(of(at("out.npz")).reshape(want.shape), want))
        s = json.loads(t.call("sim", at("core"), "--simulator", "icarus").stdout)
        case("%s: its bench passes, in the cycles foretold" % name, "" if s["pass"] and abs(s["cycles"] - s["predicted_cycles"]) <= 0.01 * s["cycles"] else str(s)[:300])


# ---- keys and values that come in and go out -----------------------------------------------------------------------------------------------

def kept(n, x, past, h=2, mask=None, by=(300, 300, 300), matrix=None, narrow=256, leaves=(1, 2), comes=(1, 2), change=65536, tap=lambda n, y, all_: all_, **how):
    """A layer as microLlama has it, whose keys and values have so many of earlier tokens in front."""
    b, tokens, c = n.value[x].shape
    q, k, v = (heads(n, x, h, g) if matrix is None or i == 2 else turned(n, x, h, matrix, g) for i, g in enumerate(by))
    parts = []
    if narrow < 256: q = n.shift(q, 65536, n=narrow)
    for i, y in ((1, k), (2, v)):
        y = n.shift(y, 65536, n=narrow)
        own = n.r.integers(-(narrow // 2), narrow // 2, (b, h, past, c // h))
        all_ = n.add("Concat", [n.takes(own) if i in comes else n.number(own), y], np.concatenate([own, n.value[y]], 2), axis=-2)
        all_ = n.shift(all_, change, n=narrow)
        if i in leaves: n.made.append(tap(n, y, all_))
        parts.append(all_)
    k, v = parts
    p = weighed(n, n.product(q, n.transpose(k, [0, 1, 3, 2])), mask, **how)
    y = n.transpose(n.shift(n.product(p, v), 900), [0, 2, 1, 3])
    y = n.shift(n.linear(n.reshape(y, [b, tokens, c]), c), 250)
    return n.shift(n.sum(n.shift(x, 55896), y), 58499)


def behind(tokens, past, number=-128):
    """The mask of a frame behind a past: key past + i is query i's own."""
    return np.triu(np.full((1, 1, tokens, tokens + past), number), 1 + past)


CACHES = {
    "a past of two": (lambda n, x, i: kept(n, x, 2, mask=behind(3, 2)), (1, 3, 12)),
    "a token behind one": (lambda n, x, i: kept(n, x, 1, h=4, mask=np.zeros((2,))), (1, 1, 16)),
    "a prompt": (lambda n, x, i: kept(n, x, 0, mask=behind(5, 0)), (1, 5, 12)),
    "turned behind three": (lambda n, x, i: kept(n, x, 3, h=4, mask=behind(4, 3, [-128, -60, -90][i]), matrix=turns(4, 4, halves(4))), (1, 4, 16)),
    "hidden a little": (lambda n, x, i: kept(n, x, 4, mask=behind(3, 4, -20), mul=[900, 700, 1200][i], levels=[256, 128, 64][i]), (1, 3, 8)),
    "no mask": (lambda n, x, i: kept(n, x, 2), (1, 2, 8)),
    "of six bits": (lambda n, x, i: kept(n, x, 2, narrow=64, mask=behind(2, 2), mul=4000), (1, 2, 12)),
}


def cached(name, layers=3, seed=0):
    make, shape = CACHES[name]
    n = Net(seed, np.random.default_rng(seed + 1).integers(-128, 128, shape))
    y = "x"
    for i in range(layers): y = make(n, y, i)
    path = n.save(y, "net.onnx")
    feed = {i: n.value[i].astype(np.float32) for i in n.given}
    np.savez(at("net.npz"), **feed)
    return path, feed, {o: n.value[o] for o in [y] + n.made}


def parts(core, feed):
    """What ONNX Runtime makes with host/pre, core and post.onnx of a core, each fed by name."""
    values = dict(feed)
    for part in "pre", "core", "post":
        s = ort.InferenceSession(os.path.join(core, "host", part + ".onnx"))
        values.update(zip([o.name for o in s.get_outputs()], s.run(None, {i.name: values[i.name] for i in s.get_inputs()})))
    return values


def differ(got, want):
    return "; ".join("%s: %s" % (o, d) for o, v in want.items() for d in ["is not there" if o not in got else differs(np.asarray(got[o]).reshape(v.shape), v)] if d)


def in_verilog(what, core, simulator, want):
    """With pauses: each word that leaves, and each that is to lie in memory."""
    p = t.call("sim", core, "--inputs", at("net.npz"), "--outputs", at("out.npz"), "--simulator", simulator, "--stall", "30", "--seed", "3", text=True)
    said, words = json.loads(p.stdout or "{}"), sum(v.size for v in want.values())
    case("%s: %d words in Verilog, with pauses" % (what, words), p.stderr[-400:] if p.returncode else differ(np.load(at("out.npz")), want) or ("" if said["pass"] and said["words"] == words else str(said)[:300]))


def check_caches():
    """Keys and values of earlier tokens come in, all go out: mlo, ONNX Runtime with the core's parts, Icarus; numpy judges."""
    simulated = t.drawn(list(CACHES), 3, str) if t.have("simulation", "iverilog") else []
    for name in CACHES:
        path, feed, want = cached(name)
        for stage in "quantize", "lower":
            said = t.call(stage, path, "--onnx", "-o", at("stage.onnx"), text=True)
            if said.returncode: case("%s: %s" % (name, stage), said.stderr); continue
            t.good("run", at("stage.onnx"), "--inputs", at("net.npz"), "--outputs", at("out.npz"))
            case("%s: %s is the network's integers" % (name, stage), differ(np.load(at("out.npz")), want))
        t.good("compile", path, "-o", at("core"))
        case("%s: the core's parts in ONNX Runtime" % name, differ(parts(at("core"), feed), want))
        if name not in simulated: continue
        in_verilog(name, at("core"), "icarus", want)
        p = t.call("sim", at("core"), "--simulator", "icarus", text=True)
        s = json.loads(p.stdout or "{}")
        case("%s: its bench passes, in the cycles foretold" % name, p.stderr[-300:] if p.returncode else "" if abs(s["cycles"] - s["predicted_cycles"]) <= 0.01 * s["cycles"] else str(s)[:300])


def check_kept():
    """What memory is to hold is compared: a number of the past changed, a number that is to be there, and the run fails."""
    if not t.have("simulation", "iverilog"): return
    t.good("compile", cached("a past of two")[0], "-o", at("core"))
    for file in "past", "kept":
        t.good("sim", at("core"), "--inputs", at("net.npz"), "--simulator", "icarus")
        path = os.path.join(at("core"), "tb", file + ".hex")
        words = open(path).read()
        open(path, "w").write(words[:-2] + "%x\n" % (int(words[-2], 16) ^ 1))
        p = t.call("sim", at("core"), "--simulator", "icarus", text=True)
        open(path, "w").write(words)
        case("another number in %s.hex" % file, "" if p.returncode == 1 and "FAIL: " in p.stderr else "status %d: %s" % (p.returncode, p.stderr[-300:]))
    for what, args, said, status in (("on chip", ["--kv", "chip"], "leave --context, --slots and --kv out", 2), ("of two slots", ["--slots", "2"], "", 2), ("at a position", ["--position", "1"], "--position is of a core with caches", 2)):
        p = t.call("compile", at("net.onnx"), "-o", at("other"), *args, text=True)
        case("keys and values of the model's own %s are refused" % what, "" if p.returncode == status and said in p.stderr else "status %d: %s" % (p.returncode, p.stderr[-300:]))
    for option, value in ("--jobs", "0+1"), ("--frames", "2"), ("--probe", None):
        p = t.call("sim", at("core"), option, *[value] * (value is not None), text=True)
        case("sim %s beside keys and values of the model's own is refused" % option, "" if p.returncode == 4 and "leave it out" in p.stderr else "status %d: %s" % (p.returncode, p.stderr[-300:]))
    n = Net(1, np.random.default_rng(2).integers(-100, 100, (1, 3, 8)))
    y = "x"
    for _ in range(3): y = kept(n, y, 2, leaves=(1,))
    p = t.call("lower", n.save(y, "half.onnx"), text=True)
    case("keys that leave without values are refused", "" if p.returncode == 4 and "both keys and values of one attention" in p.stderr else "status %d: %s" % (p.returncode, p.stderr[-300:]))


def check_refusals():
    def bad(what, make, said, x=(1, 4, 8), status=4):
        n = Net(1, np.random.default_rng(2).integers(-100, 100, x))
        y = "x"
        for _ in range(3): y = make(n, y)
        p = t.call("quantize", n.save(y, "bad.onnx"), text=True)
        ok = p.returncode == status and said in p.stderr and re.search("mlo: quantize: (n[0-9]+|loop) ", p.stderr)
        case(what + " is refused", "" if ok else "status %d: %s" % (p.returncode, p.stderr))

    def of_scores(make, probs=lambda n, p: n.shift(p, 32921), turn=lambda n, v: v):
        """A layer whose scores become what `make` says in front of the softmax."""
        def one(n, x):
            q, k, v = (heads(n, x, 2) for _ in range(3))
            p = probs(n, n.softmax(make(n, n.product(q, n.transpose(turn(n, k), [0, 1, 3, 2])))))
            y = n.reshape(n.transpose(n.shift(n.product(p, v), 900), [0, 2, 1, 3]), list(n.value[x].shape))
            return n.shift(n.sum(n.shift(x, 55896), y), 58499)
        return one

    def falling(n, s):
        y = n.shift(s, 900)
        return n.shift(n.add("iGELU", [y], gelu(n.value[y]), b=-60, one=3800), 20, div=65536)

    def gelu(v):
        q = np.minimum(np.abs(v), 60)
        return v * ((3800 + np.sign(v) * (-(q - 60) ** 2 + 3800)) >> 1)

    def swapped(n, k):
        """Of each head the channels the other way round"""
        order = list(range(n.value[k].shape[-1]))[::-1]
        return n.add("Gather", [k, n.number(order, np.int64)], n.value[k][..., order], axis=3)

    def by(matrix, keys=None):
        """Scores of queries and keys that such matrices turn."""
        def one(n, x):
            q, k = turned(n, x, 2, matrix(n, x)), turned(n, x, 2, (keys or matrix)(n, x))
            y = n.reshape(n.transpose(n.shift(n.product(weighed(n, n.product(q, n.transpose(k, [0, 1, 3, 2])), None), heads(n, x, 2)), 900), [0, 2, 1, 3]), list(n.value[x].shape))
            return n.shift(n.sum(n.shift(x, 55896), y), 58499)
        return one

    def bare(n, x):
        """Queries that no linear layer makes."""
        def head(y): return n.transpose(n.shift(n.add("MatMul", [n.reshape(y, [1, 4, 2, 4]), n.number(halved)], n.value[y].reshape(1, 4, 2, 4) @ halved), 520), [0, 2, 1, 3])
        q, k = head(x), turned(n, x, 2, halved)
        y = n.reshape(n.transpose(n.shift(n.product(weighed(n, n.product(q, n.transpose(k, [0, 1, 3, 2])), None), heads(n, x, 2)), 900), [0, 2, 1, 3]), [1, 4, 8])
        return n.shift(n.sum(n.shift(x, 55896), y), 58499)

    halved, beside = turns(4, 4, halves(4)), turns(4, 4, [(0, 1), (2, 3)])
    noise = lambda n, x: np.random.default_rng(4).integers(-9, 9, (1, 4, 4, 4))
    def changed(at_, to):
        w = halved.copy()
        w[at_] = to
        return lambda n, x: w
    bad("matrices of any numbers", by(noise), "mixes channel 0 of a head with channels ")
    bad("a matrix that is no rotation", by(changed((0, 2, 0, 2), 99)), "a rotation has c, s, -s, c")
    bad("a matrix of two cosines", by(changed((0, 2, 0, 0), 99)), "a rotation has c, s, -s, c")
    bad("a rotation of 17 bits", by(lambda n, x: halved * 600), "of 16 bits")
    bad("queries and keys in other pairs", by(lambda n, x: halved, lambda n, x: beside), "turned in other pairs: channel 1 of a head with 2, 1")
    bad("heads of three channels that are turned", lambda n, x: layer(n, x, matrix=turns(4, 3, [(0, 1)])), "pairs take an even number", x=(1, 4, 6))
    bad("a rotation of what no linear layer makes", bare, "which no linear layer makes")
    def past(n, x):
        q, k, v = (heads(n, x, 2) for _ in range(3))
        own = np.random.default_rng(5).integers(-99, 99, (1, 2, 4, 4))
        k, v = (n.add("Concat", [n.number(own[:, :, :2]), n.add("Slice", [y, n.number([0], np.int64), n.number([2], np.int64), n.number([2], np.int64)], n.value[y][:, :, :2])], np.concatenate([own[:, :, :2], n.value[y][:, :, :2]], 2), axis=-2) for y in (k, v))
        y = n.reshape(n.transpose(n.shift(n.product(weighed(n, n.product(q, n.transpose(k, [0, 1, 3, 2])), None), v), 900), [0, 2, 1, 3]), [1, 4, 8])
        return n.shift(n.sum(n.shift(x, 55896), y), 58499)

    wrong = lambda **how: lambda n, x: kept(n, x, 2, **how)
    bad("a past of keys alone", wrong(comes=(1,)), "values that are no heads of a token's channels", x=(1, 3, 8))
    bad("a past that is changed on the way", wrong(change=40000), "integers that are changed behind it", x=(1, 3, 8))
    bad("keys that leave before they are joined", wrong(tap=lambda n, y, all_: y), "leaves every layer", x=(1, 3, 8))
    bad("what leaves is not what is read", wrong(tap=lambda n, y, all_: n.shift(all_, 30000)), "leaves every layer of a network of integers", x=(1, 3, 8))
    bad("a mask that hides the past", wrong(mask=np.array([-128, -128, 0, 0, 0])), "for query 0 and key 2", x=(1, 3, 8))
    bad("keys behind a past", past, "keys that are no heads of a token's channels")
    square = lambda n, x: np.random.default_rng(3).integers(-9, 9, (1, 1, 4, 4))
    bad("a mask of any numbers", lambda n, x: layer(n, x, mask=square(n, x)), "hardware adds one number to scores of keys up to the query")
    bad("a mask of each head", lambda n, x: layer(n, x, mask=np.stack([causal(n, x)[0], causal(n, x, -50)[0]], 1)), "hardware adds one number to scores")
    bad("a mask of keys", lambda n, x: layer(n, x, mask=np.array([0, 0, -128, -128]).reshape(1, 1, 1, 4)), "for query 0 and key 2")
    bad("scores of 16 bits", of_scores(lambda n, s: n.shift(s, 900, n=65536)), "attention of integers rounds them to 8 bits")
    bad("scores of 0..255", of_scores(lambda n, s: n.shift(s, 900, signed=0)), "scores of 0..255")
    bad("scores that nothing rounds", of_scores(lambda n, s: s), "scores that no RequantShift rounds to 8 bits")
    bad("scores with an add", of_scores(lambda n, s: n.shift(s, 900, add=900)), "mul 900, add 900, div 65536 inside an attention")
    bad("scores that are divided alone", of_scores(lambda n, s: n.divided(n.shift(s, 900))), "has 8 bits there: round it (RequantShift)")
    bad("scores that a function turns down", of_scores(falling), "functions that never fall")
    bad("probabilities that are rounded twice", of_scores(lambda n, s: n.shift(s, 900), lambda n, p: n.shift(n.shift(p, 32921), 50000)), "2 functions of its probabilities")
    bad("probabilities of 10 bits", of_scores(lambda n, s: n.shift(s, 900), lambda n, p: n.shift(p, 65536, n=1024)), "probabilities of -512..511")
    bad("probabilities by an odd mul of 17 bits", of_scores(lambda n, s: n.shift(s, 900), lambda n, p: n.shift(p, 70001, div=1 << 17)), "is at most 65535")
    bad("a softmax of 512 levels", lambda n, x: layer(n, x, levels=512), "hardware has 2..256")
    bad("a softmax whose largest score weighs nothing", lambda n, x: layer(n, x, a=1, c=0, b=0, log2=6), "of the largest score more than 0")
    bad("a softmax that weighs less than nothing", lambda n, x: layer(n, x, a=-1, b=2, c=40), "hardware has weights of 0..")
    bad("a softmax of 20 bits", lambda n, x: layer(n, x, a=100, b=90), "hardware has weights of 0..262143")
    bad("keys whose channels are turned round", of_scores(lambda n, s: n.shift(s, 900), turn=swapped), "keys that are no heads of a token's channels")
    bad("a mix that nothing rounds", unrounded, "RequantShift has to follow")
    bad("heads that stay apart", apart, "not joined back into the token's channels", x=(1, 4, 8))


def unrounded(n, x):
    q, k, v = (heads(n, x, 2) for _ in range(3))
    y = n.product(weighed(n, n.product(q, n.transpose(k, [0, 1, 3, 2])), None), v)
    y = n.reshape(n.transpose(y, [0, 2, 1, 3]), list(n.value[x].shape))
    return n.shift(n.linear(y, 8), 300)


def apart(n, x):
    """The heads' tokens one behind the other, as if they were the channels."""
    q, k, v = (heads(n, x, 2) for _ in range(3))
    y = n.shift(n.product(weighed(n, n.product(q, n.transpose(k, [0, 1, 3, 2])), None), v), 900)
    return n.shift(n.linear(n.reshape(y, list(n.value[x].shape)), 8), 300)


def held(folder):
    """Deeploy's microLlama, its mask and rotations in a file of their own, which --hold takes; its other inputs; what it is to make."""
    path = os.path.join(folder, "network.onnx")
    m, given = onnx.load(path), list(np.load(os.path.join(folder, "inputs.npz")).values())
    g, own = m.graph, {i.name for i in m.graph.initializer}
    inputs = {i.name: v.astype(np.float32) for i, v in zip([i for i in g.input if i.name not in own], given)}
    np.savez(at("hold.npz"), **{i.name: inputs.pop(i.name) for i in list(g.input)[1:3]})
    with np.load(os.path.join(folder, "outputs.npz")) as golden: want = {o.name: golden[k].astype(np.float32) for o, k in zip(g.output, golden.files)}
    np.savez(at("net.npz"), **inputs)
    return path, inputs, want


def check_microllama():
    """The eight layers of Deeploy's microLlama, a prompt of eight tokens and a token behind one: its 17 golden outputs, in mlo, ONNX Runtime and Verilog."""
    if not t.beside("microLlama", "deeploy"): return
    for name, words in ("microLlama8_parallel", 8704), ("microLlama1", 2112):
        path, feed, want = held(os.path.join(t.shared, "deeploy", "Models__microLlama__INT8__" + name))
        assert len(want) == 17 and sum(v.size for v in want.values()) == words
        hold = "--hold", at("hold.npz")
        t.good("run", path, *hold, "--inputs", at("net.npz"), "--outputs", at("out.npz"))
        case("%s: mlo run gives the golden words" % name, differ(np.load(at("out.npz")), want))
        t.good("quantize", path, *hold, "--onnx", "-o", at("stage.onnx"))
        t.good("run", at("stage.onnx"), "--inputs", at("net.npz"), "--outputs", at("out.npz"))
        case("%s: quantize is the network's integers" % name, differ(np.load(at("out.npz")), want))
        s = ort.InferenceSession(at("stage.onnx"))
        case("%s: quantize in ONNX Runtime" % name, differ(dict(zip([o.name for o in s.get_outputs()], s.run(None, {i.name: feed[i.name] for i in s.get_inputs()}))), want))
        t.good("compile", path, *hold, "-o", at("llama"))
        case("%s: the core's parts in ONNX Runtime" % name, differ(parts(at("llama"), feed), want))
        if t.have("simulation", "verilator"): in_verilog(name, at("llama"), "verilator", want)


if __name__ == "__main__": t.main(check_words, check_caches, check_kept, check_refusals, check_microllama, floor=137)
