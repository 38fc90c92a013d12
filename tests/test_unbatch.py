#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A batch that an export has fixed: `mlo read --unbatch` makes the model of one of its parts, or says which node mixes them.

    python tests/test_unbatch.py path/to/mlo [CHECK ...]

    taken      graphs of a few nodes, one for each way in which an operator treats a batch part by part: what ONNX Runtime makes of each part alone is that part of what it makes of all
    refused    their near misses, which are another function of the batch: the node is named, and compile leaves the model as it was
    models     exports of two sequences, in front and behind their tokens, compile without a flag; of those that nothing mixes, two are what one is"""
import os
import numpy as np
import onnx
from onnx import parser
import graphs
import harness as t

# inputs, outputs, constants, nodes; [2,5,4] is a batch of two sequences of five tokens of four channels
LIKE = "{1, 2, 3, 4, 1, 2, 3, 4}"
X, Y = "float[2,5,4] x", "float[2,5,4] y"
TAKEN = {
    "a number for each channel": (X, Y, "float[4] b = {1, 2, 3, 4}", "y = Add(x, b)"),
    "positions, expanded": (X, Y, "float[2,1,4] b = %s" % LIKE, "y = Add(x, b)"),
    "a constant that is the same for all": (X, "float[2,5,4] y, float[4] z", "float[4] b = {1, 2, 3, 4}", "z = Neg(b) y = Mul(x, z)"),
    "weights": (X, "float[2,5,2] y", "float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}", "y = MatMul(x, w)"),
    "rows of one matrix": (X, "float[2,5,2] y", "float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[2] c = {1, 2}, int64[2] f = {-1, 4}, int64[3] s = {2, 5, 2}", "r = Reshape(x, f) g = Gemm(r, w, c) y = Reshape(g, s)"),
    "heads": (X, Y, "int64[4] h = {2, 5, 2, 2}, int64[3] s = {2, 5, 4}",
              "r = Reshape(x, h) q = Transpose<perm = [0, 2, 1, 3]>(r) k = Transpose<perm = [0, 2, 3, 1]>(r) a = MatMul(q, k) p = Softmax<axis = -1>(a) v = MatMul(p, q) j = Transpose<perm = [0, 2, 1, 3]>(v) y = Reshape(j, s)"),
    "heads folded into the batch": (X, Y, "int64[4] h = {2, 5, 2, 2}, int64[3] m = {4, 5, 2}, int64[4] o = {2, 2, 5, 2}, int64[3] s = {2, 5, 4}",
                                    "r = Reshape(x, h) q = Transpose<perm = [0, 2, 1, 3]>(r) b = Reshape(q, m) k = Transpose<perm = [0, 2, 1]>(b) a = MatMul(b, k) p = Softmax<axis = -1>(a) v = MatMul(p, b) u = Reshape(v, o) j = Transpose<perm = [0, 2, 1, 3]>(u) y = Reshape(j, s)"),
    "behind the tokens": ("float[5,2,4] x", "float[5,2,4] y", "int64[3] m = {5, 4, 2}, int64[3] s = {5, 2, 4}",
                          "r = Reshape(x, m) q = Transpose<perm = [1, 0, 2]>(r) k = Transpose<perm = [1, 2, 0]>(r) a = MatMul(q, k) p = Softmax<axis = -1>(a) v = MatMul(p, q) j = Transpose<perm = [1, 0, 2]>(v) y = Reshape(j, s)"),
    "ids behind each other": ("int64[5,2] x", "float[2,5,4] y", "float[3,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, int64[1] n = {0}", "e = Gather(w, x) q = Transpose<perm = [1, 0, 2]>(e) y = Softmax<axis = 1>(q)"),
    "ids": ("int64[2,5] x", Y, "float[3,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}", "y = Gather(w, x)"),
    "the first token": (X, "float[2,4] y", "int64 i = {0}", "y = Gather<axis = 1>(x, i)"),
    "a mask that counts the batch": ("int64[2,3] x", "bool[2,1,3] y", "int64[2,1,3,2] i = {0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2}", "c = Cast<to = 9>(x) y = GatherND(c, i)"),
    "the best of each, counted on": ("float[2,5,4] x, int64[2,5] k", "float[2,4] y", "int64[2] b = {0, 5}, int64[2] s = {10, 4}", "i = ArgMax<axis = -1, keepdims = 0>(k) p = Add(i, b) f = Reshape(x, s) y = Gather(f, p)"),
    "the best of each, or the last": ("float[2,5,4] x, int64[2,5] k", "float[2,4] y", "int64[2] b = {0, 5}, int64 z = {0}, int64 e = {4}", "i = ArgMax<axis = -1, keepdims = 0>(k) c = Equal(i, z) j = Where(c, e, i) f = Flatten<axis = 2>(x) p = Add(b, j) y = Gather(f, p)"),
    "the best of each, behind it": ("float[2,5,4] x, int64[2,5] k", "float[2,4] y", "int64[2] b = {0, 5}", "i = ArgMax<axis = -1, keepdims = 0>(k) f = Flatten<axis = 2>(x) p = Add(b, i) y = Gather(f, p)"),
    "the last of each": ("float[2,5,4] x, int64[2,5] k", "float[2,4] y", "int64[2,1] b = {0, 1}", "i = ArgMax<axis = 1, keepdims = 1>(k) p = Concat<axis = -1>(b, i) y = GatherND(x, p)"),
    "elements of tokens": ("float[2,5] b, int64[2,5] x", "float[2,5] y", "", "y = GatherElements<axis = 1>(b, x)"),
    "elements of what is the same for all": ("int64[2,3] x", "float[2,3] y", "float[2,4] b = {1, 2, 3, 4, 1, 2, 3, 4}", "y = GatherElements<axis = 1>(b, x)"),
    "a sum of tokens so far": (X, Y, "int64 a = {1}", "y = CumSum(x, a)"),
    "sounds": ("float[2,9] x", "float[2,2,8] y", "int64[1] a = {1}, float[2,1,2] w = {1, 2, 3, 4}", "u = Unsqueeze(x, a) y = Conv<kernel_shape = [2]>(u, w)"),
    "some of the tokens": (X, "float[2,3,4] y", "int64[1] a = {1}, int64[1] b = {4}, int64[1] c = {1}", "y = Slice(x, a, b, c)"),
    "all of the batch": (X, "float[2,3,4] y", "int64[2] a = {0, 1}, int64[2] b = {9223372036854775807, 4}", "y = Slice(x, a, b)"),
    "halves of channels": (X, "float[2,5,2] y", "int64[2] n = {2, 2}", "a, b = Split<axis = 2>(x, n) y = Mul(a, b)"),
    "a token in front": (X, "float[2,6,4] y", "float[2,1,4] b = %s" % LIKE, "y = Concat<axis = 1>(b, x)"),
    "a token in front, expanded": ("float[2,5,4] x, float[1,1,4] c", "float[2,6,4] y", "int64[3] s = {2, 1, 4}", "n = Neg(c) b = Expand(n, s) y = Concat<axis = 1>(b, x)"),
    "tokens expanded": ("float[2,1,4] v, float[2,5,4] x", Y, "int64[3] s = {2, 5, 4}", "e = Expand(v, s) y = Add(e, x)"),
    "tokens repeated": (X, "float[2,10,4] y", "int64[3] s = {1, 2, 1}", "y = Tile(x, s)"),
    "tokens padded": (X, "float[2,7,4] y", "int64[6] s = {0, 1, 0, 0, 1, 0}", "y = Pad(x, s)"),
    "a mean of tokens": (X, "float[2,4] y", "int64[1] a = {1}", "y = ReduceMean<keepdims = 0>(x, a)"),
    "a mean in front of the batch": ("float[5,2,4] x", "float[2,4] y", "int64[1] a = {0}", "y = ReduceMean<keepdims = 0>(x, a)"),
    "a norm": (X, Y, "float[4] g = {1, 2, 3, 4}", "y = LayerNormalization(x, g)"),
    "images": ("float[2,3,4,4] x", "float[2,2,1,1] y", "float[2,3,2,2] w = {%s}" % ", ".join(map(str, range(24))), "c = Conv<kernel_shape = [2, 2]>(x, w) y = GlobalAveragePool(c)"),
    "a mask of each sequence": ("float[2,5,4] x, bool[2,1,4] m", Y, "float f = {-7}", "y = Where(m, x, f)"),
    "one dimension more and less": (X, "float[2,20] y", "int64[1] a = {0}", "u = Unsqueeze(x, a) s = Squeeze(u, a) y = Flatten<axis = 1>(s)"),
    "a view of the whole": (X, "float[2,4,1] y", "int64[1] a = {1}, int64[1] f = {-1}, int64[2,4,1] i = {0, 1, 3, 3, 4, 5, 7, 7}", "m = ReduceMean<keepdims = 0>(x, a) r = Reshape(m, f) y = Gather(r, i)"),
    "in steps": (X, Y, "float s = {0.5}, int8 z = {3}", "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)"),
    "in steps of each channel": (X, Y, "float[4] s = {0.5, 0.25, 1, 2}, int8[4] z = {3, 0, 0, 1}", "q = QuantizeLinear<axis = 2>(x, s, z) y = DequantizeLinear<axis = 2>(q, s, z)"),
}
# what a node of this op makes of the batch is not of each part alone
REFUSED = {
    "softmax over it": (X, Y, "", "y = Softmax<axis = 0>(x)"),
    "a mean of it": (X, "float[1,5,4] y", "int64[1] a = {0}", "y = ReduceMean(x, a)"),
    "a mean of all": (X, "float[1,1,1] y", "", "y = ReduceMean(x)"),
    "each with each": ("float[2,5,4] x", "float[2,2] y", "int64[1] a = {1}", "m = ReduceMean<keepdims = 0>(x, a) k = Transpose<perm = [1, 0]>(m) y = MatMul(m, k)"),
    "a sum over it": (X, "float[5,4,1] y", "float[2,1] w = {1, 2}", "k = Transpose<perm = [1, 2, 0]>(x) y = MatMul(k, w)"),
    "a sum over it, as many": (X, "float[5,4,2] y", "float[2,2] w = {1, 1, 3, 3}", "k = Transpose<perm = [1, 2, 0]>(x) y = MatMul(k, w)"),
    "a mean of it, of as many": ("float[2,2,4] x", "float[2,4] y", "int64[1] a = {0}", "y = ReduceMean<keepdims = 0>(x, a)"),
    "others for the second": (X, Y, "float[2,1,4] b = {1, 2, 3, 4, 1, 2, 3, 5}", "y = Add(x, b)"),
    "another token in front of the second": (X, "float[2,6,4] y", "float[2,1,4] b = {1, 2, 3, 4, 1, 2, 3, 5}", "y = Concat<axis = 1>(b, x)"),
    "rows of another of it": ("int64[2,3] x", "bool[2,1,3] y", "int64[2,1,3,2] i = {1, 0, 1, 1, 1, 2, 0, 0, 0, 1, 0, 2}", "c = Cast<to = 9>(x) y = GatherND(c, i)"),
    "other places of the second": ("int64[2,3] x", "bool[2,1,3] y", "int64[2,1,3,2] i = {0, 0, 0, 1, 0, 2, 1, 0, 1, 2, 1, 1}", "c = Cast<to = 9>(x) y = GatherND(c, i)"),
    "the best of the other, counted on": ("float[2,5,4] x, int64[2,5] k", "float[2,4] y", "int64[2] b = {5, 0}, int64[2] s = {10, 4}", "i = ArgMax<axis = -1, keepdims = 0>(k) p = Add(i, b) f = Reshape(x, s) y = Gather(f, p)"),
    "counted on by less": ("float[2,5,4] x, int64[2,4] k", "float[2,4] y", "int64[2] b = {0, 4}, int64[2] s = {10, 4}", "i = ArgMax<axis = -1, keepdims = 0>(k) p = Add(i, b) f = Reshape(x, s) y = Gather(f, p)"),
    "counted on, of more": ("float[2,5,4] x, int64[2,6] k", "float[2,4] y", "int64[2] b = {0, 5}, int64[2] s = {10, 4}", "i = ArgMax<axis = -1, keepdims = 0>(k) p = Add(i, b) f = Reshape(x, s) y = Gather(f, p)"),
    "counted on in a table of each": ("int64[2,5] x", "float[2] y", "int64[2] b = {0, 5}, float[10] w = {%s}" % ", ".join(map(str, range(10))), "i = ArgMax<axis = -1, keepdims = 0>(x) p = Add(i, b) y = Gather(w, p)"),
    "counted on, or beyond": ("float[2,5,4] x, int64[2,5] k", "float[2,4] y", "int64[2] b = {0, 5}, int64 z = {0}, int64 e = {5}", "i = ArgMax<axis = -1, keepdims = 0>(k) c = Equal(i, z) j = Where(c, e, i) f = Flatten<axis = 2>(x) p = Add(b, j) y = Gather(f, p)"),
    "counted on, of any number": ("float[2,5,4] x, int64[2,1] k", "float[2,1,4] y", "int64[2,1] b = {0, 5}, int64[2] s = {10, 4}", "p = Add(k, b) f = Reshape(x, s) y = Gather(f, p)"),
    "counted on for another, too": ("float[2,5,4] x, int64[2,5] k", "float[2,4] y, int64[2] p", "int64[2] b = {0, 5}, int64[2] s = {10, 4}", "i = ArgMax<axis = -1, keepdims = 0>(k) p = Add(i, b) f = Reshape(x, s) y = Gather(f, p)"),
    "the last of the other": ("float[2,5,4] x, int64[2,5] k", "float[2,4] y", "int64[2,1] b = {1, 0}", "i = ArgMax<axis = 1, keepdims = 1>(k) p = Concat<axis = -1>(b, i) y = GatherND(x, p)"),
    "the last of the first": ("float[2,5,4] x, int64[2,5] k", "float[2,4] y", "int64[2,1] b = {0, 0}", "i = ArgMax<axis = 1, keepdims = 1>(k) p = Concat<axis = -1>(b, i) y = GatherND(x, p)"),
    "pairs that another reads": ("float[2,5,4] x, int64[2,5] k", "float[2,4] y, int64[2,2] p", "int64[2,1] b = {0, 1}", "i = ArgMax<axis = 1, keepdims = 1>(k) p = Concat<axis = -1>(b, i) y = GatherND(x, p)"),
    "elements of others": ("int64[2,3] x", "float[2,3] y", "float[2,4] b = {1, 2, 3, 4, 1, 2, 3, 5}", "y = GatherElements<axis = 1>(b, x)"),
    "elements along it": ("int64[2,3] x", "float[2,3] y", "float[2,3] b = {1, 2, 3, 1, 2, 3}", "y = GatherElements<axis = 0>(b, x)"),
    "the largest of it": ("int64[2,5] x", "int64[5] y", "", "y = ArgMax<axis = 0, keepdims = 0>(x)"),
    "the first of it": (X, "float[1,5,4] y", "int64[1] a = {0}, int64[1] b = {1}", "y = Slice(x, a, b)"),
    "backwards": (X, Y, "int64[1] a = {1}, int64[1] b = {-3}, int64[1] c = {0}, int64[1] d = {-1}", "y = Slice(x, a, b, c, d)"),
    "the second": (X, "float[5,4] y", "int64 i = {1}", "y = Gather(x, i)"),
    "behind itself": (X, "float[4,5,4] y", "", "y = Concat<axis = 0>(x, x)"),
    "apart": (X, "float[1,5,4] y", "int64[2] n = {1, 1}", "a, b = Split<axis = 0>(x, n) y = Add(a, b)"),
    "one more": (X, "float[3,5,4] y", "int64[6] s = {1, 0, 0, 0, 0, 0}", "y = Pad(x, s)"),
    "twice": (X, "float[4,5,4] y", "int64[3] s = {2, 1, 1}", "y = Tile(x, s)"),
    "a norm of all": (X, Y, "float[2,5,4] g = {%s}" % ", ".join(["1"] * 40), "y = LayerNormalization<axis = 0>(x, g)"),
    "in other rows": ("float[2,5,4] x", "float[5,8] y", "int64[2] s = {5, 8}", "y = Reshape(x, s)"),
    "a view of the other": (X, "float[2,4,1] y", "int64[1] a = {1}, int64[1] f = {-1}, int64[2,4,1] i = {4, 5, 6, 7, 0, 1, 2, 3}", "m = ReduceMean<keepdims = 0>(x, a) r = Reshape(m, f) y = Gather(r, i)"),
    "a view of the first alone": (X, "float[2,4,1] y", "int64[1] a = {1}, int64[1] f = {-1}, int64[2,4,1] i = {0, 1, 2, 3, 0, 1, 2, 3}", "m = ReduceMean<keepdims = 0>(x, a) r = Reshape(m, f) y = Gather(r, i)"),
    "a view of other places of the second": (X, "float[2,4,1] y", "int64[1] a = {1}, int64[1] f = {-1}, int64[2,4,1] i = {0, 1, 2, 3, 4, 6, 5, 7}", "m = ReduceMean<keepdims = 0>(x, a) r = Reshape(m, f) y = Gather(r, i)"),
    "columns of the left": (X, "float[20,2] y", "float[2,2] w = {1, 2, 3, 4}, int64[2] s = {2, 20}", "r = Reshape(x, s) y = Gemm<transA = 1>(r, w)"),
    "columns of the right": (X, "float[5,3,2] y", "float[3,4] w = {%s}" % ", ".join(map(str, range(12))), "k = Transpose<perm = [1, 2, 0]>(x) y = MatMul(w, k)"),
    "in steps of its own": (X, Y, "float[2] s = {0.5, 0.25}, int8[2] z = {3, 0}", "q = QuantizeLinear<axis = 0>(x, s, z) y = DequantizeLinear<axis = 0>(q, s, z)"),
    "a sum so far": (X, Y, "int64 a = {0}", "y = CumSum(x, a)"),
    "statistics of it": (X, "float[2,5,4] y, float[5] p, float[5] q", "float[5] a = {1, 1, 1, 1, 1}, float[5] b = {0, 0, 0, 0, 0}", "y, p, q = BatchNormalization<training_mode = 1>(x, a, b, b, a)"),
    "dimensions of 1, whichever": (X, "float[2,5] y", "int64[1] a = {2}", "m = ReduceMean(x, a) y = Squeeze(m)"),
    "places of the largest": ("float[2,5,4] x", "float[2,5,2] y, int64[2,5,2] i", "", "y, i = MaxPool<kernel_shape = [2], strides = [2]>(x)"),
    "what a branch makes of it": ("float[2,5,4] x, bool k", Y, "", "y = If(k) <then_branch = t () => (float[2,5,4] u) { u = Neg(x) }, else_branch = e () => (float[2,5,4] v) { v = Exp(x) }>"),
}


def model(inputs, outputs, constants, nodes):
    graph = "agraph (%s) => (%s) <%s> { %s }" % (inputs, outputs, constants, nodes)
    m = onnx.helper.make_model(parser.parse_graph(graph), opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(m, t.at("m.onnx"))
    return m


def fed(m, seed=3): return graphs.feeds(m, seed, ints=(0, 3))


def differs(m, one):
    """'' or what of each part alone is not that part of all."""
    feed, whole, single = fed(m), graphs.session(m), graphs.session(one)
    sizes = {i.name: i.shape for i in single.get_inputs()}
    axis = {n: next((k for k, (a, b) in enumerate(zip(v.shape, sizes[n])) if a != b), None) for n, v in feed.items()}
    if all(k is None for k in axis.values()): return "its inputs are as they were"
    want = whole.run(None, feed)
    for b in range(2):
        got = single.run(None, {n: v if axis[n] is None else v.take([b], axis[n]) for n, v in feed.items()})
        for w, g in zip(want, got):
            cut = next((k for k, (p, q) in enumerate(zip(w.shape, g.shape)) if p != q), None)
            part = w if cut is None else np.split(w, 2, cut)[b]
            if part.shape != g.shape or not np.allclose(part, g, atol=1e-6): return "part %d: %s" % (b, np.abs(part.astype(float) - g).max() if part.shape == g.shape else g.shape)
    return ""


def check_taken():
    for name, parts in TAKEN.items():
        m = model(*parts)
        p = t.call("read", t.at("m.onnx"), "--unbatch", "--onnx", "-o", t.at("one.onnx"))
        said = p.stderr.decode()
        t.case(name, said[-300:] if p.returncode or "for a batch of 2" not in said else differs(m, onnx.load(t.at("one.onnx"))))


def check_refused():
    for name, (inputs, outputs, constants, nodes) in REFUSED.items():
        m = model(inputs, "float[%s] t0, " % inputs.split("[")[1].split("]")[0] + outputs, constants, "c0 = Cast<to = 1>(x) t0 = Softmax<axis = 1>(c0) " + nodes)       # nor are its tokens a batch
        ops = [n.op_type for n in m.graph.node][2:]
        p = t.call("read", t.at("m.onnx"), "--unbatch", "--onnx", "-o", t.at("none.onnx"))
        said = p.stderr.decode().strip()
        fits = p.returncode == 4 and "--unbatch: what this node makes of each of a batch of 2" in said and any("(%s)" % op in said for op in ops)
        t.case("refused: " + name, "" if fits and not os.path.exists(t.at("none.onnx")) else "status %d: %s" % (p.returncode, said[-300:]))
        t.good("read", t.at("m.onnx"), "--onnx", "-o", t.at("as.onnx"))
        t.case("as it is without being asked: " + name, "" if [i.type for i in onnx.load(t.at("as.onnx")).graph.input] == [i.type for i in m.graph.input] else "other inputs")


    model("float[3,2,4] x", "float[2,12] y", "int64[2] s = {2, 12}", "y = Reshape(x, s)")
    p = t.call("read", t.at("m.onnx"), "--unbatch", "--onnx", "-o", t.at("none.onnx"))
    t.case("refused: rows across a batch behind the tokens", "" if p.returncode == 4 and b"y (Reshape): --unbatch:" in p.stderr else p.stderr.decode()[-300:])


def check_models():
    """Two sequences or images of exports; what nothing was asked of stays in stages, and what is one already stays."""
    folder = os.path.join(t.tests, "models")
    for name, batch in (("families/bert-d18-sdpa-none-batch2-a", 2), ("families/vit-ts17-sdpa-none-batch2-a", 2), ("moved/swin-d18-none-batch2-a", 2)):
        path = os.path.join(folder, name + ".onnx")
        m = onnx.load(path)
        t.good("read", path, "--unbatch", "--onnx", "-o", t.at("one.onnx"))
        t.case("%s: each alone" % name, differs(m, onnx.load(t.at("one.onnx"))))
        p = t.call("compile", path, "-o", t.at("built"))
        t.case("%s: compile" % name, "" if p.returncode == 0 and b"for a batch of 2; its parts do not depend on each other" in p.stderr else p.stderr.decode()[-300:])
    for name in "bert-tiny-opset23", "vit-tiny", "llama-tiny-opset23":
        path = next((f for f in (os.path.join(folder, name + ".onnx"), os.path.join(t.root, "examples", name + ".onnx")) if os.path.exists(f)), None)
        if not path: continue
        texts = [t.good("read", path, *flags, "--onnx", "-o", t.at("m.onnx")) or t.read(t.at("m.onnx")) for flags in ((), ("--unbatch",))]
        t.case("%s: one is one" % name, "" if texts[0] == texts[1] else "another model")


if __name__ == "__main__":
    t.main(check_taken, check_refused, check_models, floor=127)
