# SPDX-License-Identifier: MIT
"""cores: lowered models of any size in a few kilobytes, and what the documents say of their foldings.

    body = Body(tokens=8, channels=6)
    y = body.add(body.mvu(body.requant(body.x), 6), body.x)
    model = body.model(y, layers=3)          # an ONNX model as `mlo lower` leaves it; parameters are inputs of the model: fold needs no values
    body.kernels[1].foldings()               # {pe, simd, interval, multipliers, beats, bits, way, bank}: arrays over all legal foldings

The rules are those of the headers in verilog/ (mlo_mvu, mlo_attention, mlo_layernorm, mlo_param, ...), written down anew."""
import numpy as np
import onnx
from onnx import TensorProto as T, helper

AXI = 128


def divisors(n): return [d for d in range(1, n + 1) if n % d == 0]
def ceil(a, b): return -(-a // b)
def clog2(n): return (n - 1).bit_length()


def memory(width, depth):
    """Beats to load a parameter memory, and bits that its two banks have (the header of mlo_param: packing)."""
    padded = max(8, 1 << clog2(width))
    if padded > AXI: return depth * ceil(width, AXI), 2 * depth * width
    words = AXI // padded
    return ceil(depth, words), 2 * ceil(depth, words) * min(depth, words) * width


class Kernel:
    """name, its legal (pe, simd), and for one of them: cycles per token, multipliers, memories (width, depth), bits of frames."""

    def __init__(self, name, legal, interval, multipliers, memories, frames=lambda p, s: 0, latency=None):
        self.name, self.legal, self.interval, self.multipliers, self.memories, self.frames, self.latency = name, legal, interval, multipliers, memories, frames, latency

    def foldings(self):
        rows = []
        for p, s in self.legal:
            loads = [memory(w, d) for w, d in self.memories(p, s)]
            rows.append((p, s, self.interval(p, s), self.multipliers(p, s), sum(b for b, _ in loads), sum(b for _, b in loads) + self.frames(p, s), self.interval(p, s) + self.latency(p, s) if self.latency else 0,
                         sum(b for _, b in loads) // 2))
        return dict(zip(("pe", "simd", "interval", "multipliers", "beats", "bits", "way", "bank"), np.array(rows, np.int64).T))


class Body:
    def __init__(self, tokens, channels):
        self.tokens, self.channels, self.x = tokens, channels, "x"
        self.nodes, self.kernels, self.parameters, self.constants, self.count = [], [], [], [], {}
        self.width = {"x": (channels, 16)}            # of every value: channels, bits

    def node(self, op, inputs, channels, bits, meta=(), **attributes):
        k = self.count[op] = self.count.get(op, -1) + 1
        name = "%s_%d" % ({"MVUTable": "mvu"}.get(op, op.lower()), k if "MVU" not in op else self.count.get("MVU", -1) + self.count.get("MVUTable", -1) + 1)
        n = helper.make_node(op, inputs, [name + "_y"], domain="mlo", to=T.INT16 if bits == 16 else T.INT8, lo=-(1 << bits - 1), hi=(1 << bits - 1) - 1, **attributes)
        for key, value in {"mlo.kernel": name, **dict(meta)}.items(): n.metadata_props.add(key=key, value=value)
        self.nodes.append(n)
        self.width[name + "_y"] = (channels, bits)
        return name, name + "_y"

    def parameter(self, kind, *dims):
        self.parameters.append(("p%d" % len(self.parameters), kind, dims))
        return self.parameters[-1][0]

    def channel_parameters(self, n, kinds=3): return [self.parameter(T.INT32, n) for _ in range(kinds)]

    def lanes(self, op, x, others, memories, least=0, bits=16, **attributes):
        c = self.width[x][0]
        name, y = self.node(op, [x, *others], c, bits, **attributes)
        self.kernels.append(Kernel(name, [(p, 1) for p in divisors(c)], lambda p, s: max(c // p, least), lambda p, s: 0, lambda p, s: memories(c, p)))
        return y

    def requant(self, x): return self.lanes("Requant", x, self.channel_parameters(self.width[x][0]), lambda c, p: [(64 * p, c // p)], bits=8)
    def add(self, x, y): return self.lanes("Add", x, [y, self.parameter(T.INT32, 3)], lambda c, p: [(64, 1)])
    def norm(self, x, bits=16):
        c = self.width[x][0]
        return self.lanes("LayerNorm", x, [*self.channel_parameters(c, 2), self.parameter(T.INT64, 2)], lambda c, p: [(64 * p, c // p), (64, 1)], least=43, bits=bits, center=1)

    def mvu(self, x, n, bits=16, parts=1, table=False):
        k = self.width[x][0]
        more = [self.parameter(T.INT8, 256)] if table else []
        turns = lambda p, s: max(d for d in divisors(p) if d <= k // s)        # that requantizers take
        name, y = self.node("MVUTable" if table else "MVU", [x, self.parameter(T.INT8, k, n), *self.channel_parameters(n), *more], n, bits, {"mlo.parts": str(parts)} if parts > 1 else {})
        self.kernels.append(Kernel(name, [(p, s) for p in divisors(n // parts) for s in divisors(k)], lambda p, s: (k // s) * (n // p), lambda p, s: p * s,
                                   lambda p, s: [(8 * p * s, (n // p) * (k // s)), (64 * p // turns(p, s), n // p * turns(p, s))] + ([(bits, 256)] if table else []),
                                   latency=lambda p, s: (clog2(s) + 1) // 2 + 12 + turns(p, s) + table))
        return y

    def attention(self, x, heads):
        """Of the three thirds of x."""
        c, t = self.width[x][0] // 3, self.tokens
        d, divider = c // heads, ceil(17 + clog2(t), 2)
        parts = ["%s_%d" % (x, i) for i in range(3)]
        self.constants.append(helper.make_tensor(x + "_parts", T.INT64, [3], [c, c, c]))
        self.nodes.append(helper.make_node("Split", [x, x + "_parts"], parts, axis=-1))
        for p in parts: self.width[p] = (c, 8)
        def latency(p, s):        # of the last head's row, beyond a row: to its first beat, and all beats of its channels
            groups, steps = ceil(t, p), d // s
            return groups * (steps + ceil(p, ceil(p, steps)) + 1) + divider + 28 + clog2(s) + clog2(p) - max(groups * steps, divider + 1) + steps
        name, y = self.node("Attention", [*parts, "mask", self.parameter(T.INT32, 4)], c, 8, heads=heads, lt=clog2(t))
        self.kernels.append(Kernel(name, [(p, s) for p in range(1, t + 1) for s in divisors(d)], lambda p, s: heads * max(ceil(t, p) * (d // s), divider + 1),
                                   lambda p, s: 2 * p * s, lambda p, s: [(64, 1)], lambda p, s: 2 * 2 * ceil(t, p) * p * c * 8, latency))
        return y

    def model(self, y, layers):
        info = lambda name, kind, dims: helper.make_tensor_value_info(name, kind, dims)
        carried = [1, self.tokens, self.channels]
        inside = [info(v, T.INT16 if bits == 16 else T.INT8, [1, self.tokens, c]) for v, (c, bits) in self.width.items() if v not in ("x", y)]
        graph = helper.make_graph(self.nodes, "body", [info("x", T.INT16, carried)] + [info(*p) for p in self.parameters], [info(y, T.INT16, carried)], self.constants, value_info=inside)
        scan = helper.make_node("Scan", ["x0"] + ["all_" + name for name, _, _ in self.parameters], ["y0"], name="loop", body=graph, num_scan_inputs=len(self.parameters))
        scan.metadata_props.add(key="mlo.core", value="1")
        mask = helper.make_tensor("mask", T.BOOL, [1, self.tokens], [True] * self.tokens)
        outer = helper.make_graph([scan], "g", [info("x0", T.INT16, carried)] + [info("all_" + name, kind, [layers, *dims]) for name, kind, dims in self.parameters], [info("y0", T.INT16, carried)], [mask])
        m = helper.make_model(outer, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("mlo", 1)], ir_version=10)
        m.metadata_props.add(key="mlo.stage", value="lower")
        return m


def encoder(tokens, hidden, inner, heads, before=False):
    """BERT's layer; before: norms stand before the sublayers, as in ViT. Returns the body and what it makes."""
    b = Body(tokens, hidden)
    norm = lambda x: b.norm(x, 8)
    x = norm(b.x) if before else b.requant(b.x)
    x = b.add(b.mvu(b.attention(b.mvu(x, 3 * hidden, 8, 3), heads), hidden), b.x)
    if not before: x = b.norm(x)
    y = b.add(b.mvu(b.mvu(norm(x) if before else b.requant(x), inner, 8, table=True), hidden), x)
    return b, y if before else b.norm(y)
