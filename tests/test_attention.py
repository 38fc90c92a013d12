#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ONNX's operators for transformers (Attention, RMSNormalization, Swish): ONNX's node tests judge what `mlo run` makes
of each; ONNX Runtime judges random attentions, what `mlo read` makes of them, and encoders written with them, down to a
simulated core.

Usage: python tests/test_attention.py path/to/mlo [CHECK ...]     (nodes, random, windows, stays, encoder)
"""
import collections, json, shutil, warnings
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper
import harness as t
from encoders import Encoder
from graphs import difference, execute, shapes
from hardware import Run

warnings.filterwarnings("ignore")
LEAST = {"Attention": 93, "RMSNormalization": 19, "Swish": 1}       # node tests of onnx 1.23; fewer: some went missing


def evaluate(model, feeds):
    """What `mlo run` makes of a model, in the order of its outputs."""
    np.savez(t.at("in.npz"), **feeds)
    path = t.write("model.onnx", model.SerializeToString())
    t.good("run", path, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
    with np.load(t.at("out.npz")) as z: return [z[o.name] for o in model.graph.output]


# ---- ONNX's node tests ----------------------------------------------------------------------------------------------

def widened(model):
    """The model with float where it has bfloat16 outside, which npz cannot hold; inside nothing changes."""
    m = onnx.ModelProto(); m.CopyFrom(model)
    for v in m.graph.input:
        if v.type.tensor_type.elem_type != T.BFLOAT16: continue
        for n in m.graph.node: n.input[:] = [i + ".narrow" if i == v.name else i for i in n.input]
        m.graph.node.insert(0, helper.make_node("Cast", [v.name], [v.name + ".narrow"], to=T.BFLOAT16))
        v.type.tensor_type.elem_type = T.FLOAT
    for v in m.graph.output:
        if v.type.tensor_type.elem_type != T.BFLOAT16: continue
        for n in m.graph.node: n.output[:] = [o + ".narrow" if o == v.name else o for o in n.output]
        m.graph.node.append(helper.make_node("Cast", [v.name + ".narrow"], [v.name], to=T.FLOAT))
        v.type.tensor_type.elem_type = T.FLOAT
    return m


def array(a):
    a = numpy_helper.to_array(a) if isinstance(a, onnx.TensorProto) else np.asarray(a)
    return a.astype(np.float32) if a.dtype.name == "bfloat16" else a


def node_differs(test, ins, outs):
    """'' or how `mlo run` is off from what the node test expects."""
    narrow = {v.type.tensor_type.elem_type for v in test.model.graph.output} & {T.FLOAT16, T.BFLOAT16}
    model, limit = widened(test.model), 2e-2 if T.BFLOAT16 in narrow else 2e-3 if narrow else 1e-5
    got = evaluate(model, {v.name: array(a) for v, a in zip(model.graph.input, ins)})
    for v, a, want in zip(model.graph.output, got, map(array, outs)):
        if a.dtype != want.dtype or a.shape != want.shape:
            return "%s is %s %s, should be %s %s" % (v.name, a.dtype, a.shape, want.dtype, want.shape)
        if not np.allclose(a.astype(float), want.astype(float), rtol=limit, atol=limit, equal_nan=True):
            return "%s: %s, should be %s" % (v.name, a.ravel()[:4], want.ravel()[:4])
    return ""


def form_differs(model):
    """'' or which output's form, found without what the model says of it, is not what it says."""
    blank = onnx.ModelProto(); blank.CopyFrom(model)
    for o in blank.graph.output: o.type.tensor_type.ClearField("shape")
    t.good("read", t.write("blank.onnx", blank.SerializeToString()), "--onnx", "-o", t.at("formed.onnx"))
    forms = lambda m: [(o.name, [d.dim_value for d in o.type.tensor_type.shape.dim]) for o in m.graph.output]
    got = forms(onnx.load(t.at("formed.onnx")))
    return "" if got == forms(model) else "%s, should be %s" % (got, forms(model))


def check_nodes():
    from onnx.backend.test.case.node import collect_testcases
    found = collections.Counter()
    for test in collect_testcases(None):
        op = test.model.graph.node[0].op_type
        if len(test.model.graph.node) > 1 or op not in LEAST or test.model.opset_import[0].version > 25: continue
        found[op] += 1
        why = form_differs(test.model)
        for ins, outs in test.data_sets: why = why or node_differs(test, ins, outs)
        t.case("%s: %s" % (op, test.name), why)
    enough = all(found[op] >= n for op, n in LEAST.items())
    t.case("as many node tests as onnx 1.23 has", "" if enough else "%s, should be %s" % (dict(found), LEAST))


# ---- random attentions ----------------------------------------------------------------------------------------------

def attention(inputs, outputs, free=False, opset=23, constant=(), **attributes):
    """A model of one Attention, and its inputs. inputs: arrays, None for an absent one; constant: which of them are
    initializers; free: batch and lengths have names."""
    names = ["" if a is None else "qkvmpwn"[i] for i, a in enumerate(inputs)]
    given = {n: a for i, (n, a) in enumerate(zip(names, inputs)) if a is not None and i not in constant}
    named = lambda n, a, i: free and (n in "mn" or i in (0, a.ndim - 2))
    shape = lambda n, a: ["%s%d" % (n, i) if named(n, a, i) else d for i, d in enumerate(a.shape)]
    kind = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
    values = [helper.make_tensor_value_info(n, kind(a), shape(n, a)) for n, a in given.items()]
    held = [numpy_helper.from_array(inputs[i], names[i]) for i in constant]
    node = helper.make_node("Attention", names, outputs, name="the_node", **attributes)
    result = [helper.make_tensor_value_info(o, values[0].type.tensor_type.elem_type, None) for o in outputs if o]
    graph = helper.make_graph([node], "g", values, result, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), given


def drawn(seed):
    """A random attention, as ONNX Runtime implements it."""
    r = np.random.default_rng(seed)
    pick = lambda *list: list[int(r.integers(len(list)))]
    floats = lambda *shape: r.standard_normal(shape).astype(np.float32)
    b, s, keys, c, v, heads = (int(n) for n in r.integers(1, 7, 6))
    all_heads, past = heads * pick(1, 1, 2, 3), pick(0, 0, 3)
    if past: keys = s
    total, flat, causal = keys + past, pick(True, False), pick(0, 0, 1)
    sizes = [(b, all_heads, s, c), (b, heads, keys, c), (b, heads, keys, v)]
    inputs = [floats(n, l, h * w) if flat else floats(n, h, l, w) for n, h, l, w in sizes]
    mask = pick(None, (s, total), (pick(1, all_heads), s, total), (pick(1, b), pick(1, all_heads), s, total))
    if mask: mask = floats(*mask) if pick(0, 1) else r.random(mask) < 0.7
    if mask is not None and mask.dtype != bool and pick(0, 1): mask[r.random(mask.shape) < 0.4] = -np.inf
    inputs += [mask] + ([floats(b, heads, past, c), floats(b, heads, past, v)] if past else [])
    while inputs[-1] is None: inputs.pop()
    attributes = {"is_causal": causal, **pick({}, {"scale": 0.3}), **pick({}, {"softcap": 2.0})}
    if flat: attributes.update(q_num_heads=all_heads, kv_num_heads=heads)
    outputs = ["y", "present_k", "present_v"] if past else ["y"]
    if pick(0, 0, 1): outputs, attributes["qk_matmul_output_mode"] = (outputs + ["", ""])[:3] + ["qk"], pick(0, 3)
    constant = (3,) if mask is not None and pick(0, 1) else ()
    return inputs, outputs, {**attributes, "opset": pick(23, 24), "free": pick(False, True), "constant": constant}


def expansion_differs(inputs, outputs, **options):
    """'' or how an attention's expansion, or `mlo run`, is off from ONNX Runtime's Attention."""
    m, feeds = attention(inputs, outputs, **options)
    right = execute(m, feeds)
    t.good("read", t.write("one.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"))
    plain = onnx.load(t.at("plain.onnx"))
    onnx.checker.check_model(plain, full_check=True)
    if any(n.op_type == "Attention" for n in plain.graph.node): return "stays"
    d = difference(right, execute(plain, feeds))
    if d >= 1e-5: return "expanded, it differs by %.3g" % d
    d = difference(right, evaluate(m, feeds))
    return "" if d < 1e-5 else "mlo run differs by %.3g" % d


def check_random():
    for start in range(0, 160, 16):
        bad = []
        for seed in range(start, start + 16):
            inputs, outputs, options = drawn(seed)
            try: why = expansion_differs(inputs, outputs, **options)
            except Exception as e: why = "%s: %s" % (type(e).__name__, str(e)[-300:])
            shapes_of = [None if a is None else (a.shape, a.dtype) for a in inputs]
            if why: bad.append("seed %d, %s, %s, %s: %s" % (seed, shapes_of, outputs, options, why))
        t.case("random attentions, seeds %d to %d" % (start, start + 15), bad and "%d bad; %s" % (len(bad), bad[0]))


def check_windows():
    """Windows before and behind a query, without order too: as ONNX's reference says, for ONNX Runtime has none yet."""
    from onnx.reference import ReferenceEvaluator
    r = np.random.default_rng(3)
    q, k, v = (r.standard_normal((2, 2, 6, 4)).astype(np.float32) for _ in range(3))
    for left, right, causal in (-1, 1, 0), (-1, 0, 0), (2, -1, 0), (1, 2, 0), (0, 0, 0), (2, -1, 1), (-1, 3, 1):
        m, feeds = attention([q, k, v], ("y",), opset=25, left_window_size=left, right_window_size=right, is_causal=causal)
        want, name = ReferenceEvaluator(m).run(None, feeds), "a window of %d and %d%s" % (left, right, ", in order" if causal else "")
        t.good("read", t.write("one.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"))
        plain = onnx.load(t.at("plain.onnx"))
        off = difference(want, evaluate(m, feeds))
        t.case(name, "stays" if any(n.op_type == "Attention" for n in plain.graph.node) else "" if off < 1e-5 else "differs by %.3g" % off)


# ---- what stays -----------------------------------------------------------------------------------------------------

def microsoft(more, options):
    """A model of ONNX Runtime's own Attention; more: inputs behind its fifth."""
    r = np.random.default_rng(5)
    init = [numpy_helper.from_array(r.standard_normal(s).astype(np.float32), n) for n, s in (("w", (12, 36)), ("b", (36,)))]
    if more: init.append(numpy_helper.from_array(np.array([2], np.int32), more[0]))
    node = helper.make_node("Attention", ["x", "w", "b"] + (["", "", ""] + more if more else []), ["y"], name="the_node", domain="com.microsoft", num_heads=4, **options)
    v = lambda n: helper.make_tensor_value_info(n, T.FLOAT, [2, 5, 12])
    return helper.make_model(helper.make_graph([node], "g", [v("x")], [v("y")], init), opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)], ir_version=9)


def check_stays():
    """What cannot be expanded exactly stays, and a warning names node and reason."""
    r = np.random.default_rng(0)
    floats = lambda *shape: r.standard_normal(shape).astype(np.float32)
    q, flat, heads = floats(2, 4, 5, 3), floats(2, 5, 12), {"q_num_heads": 4, "kv_num_heads": 4}
    def stays(name, reason, inputs, outputs=("y",), unknown=None, which=(0, 1, 2), shapeless=(), **options):
        m, _ = attention(inputs, outputs, **options)
        for k in shapeless: m.graph.input[k].type.tensor_type.ClearField("shape")
        for v in [m.graph.input[k] for k in which] if unknown else (): v.type.tensor_type.shape.dim[unknown].dim_param = v.name
        before = m.graph.node[0].SerializeToString()
        p = t.call("read", t.write("kept.onnx", m.SerializeToString()), "--onnx", "-o", t.at("still.onnx"), text=True)
        after = [] if p.returncode else onnx.load(t.at("still.onnx")).graph.node
        said = "the_node" in p.stderr and reason in p.stderr
        good = said and [n.SerializeToString() for n in after] == [before]
        t.case("stays: " + name, "" if good else "status %d: %s" % (p.returncode, p.stderr))
    stays("an old opset", "opset 22", [q, q, q], opset=22)
    stays("no heads", "0 heads of queries", [flat, flat, flat])
    stays("heads that do not divide", "4 heads of queries, 3 of", [flat, flat, flat], q_num_heads=4, kv_num_heads=3)
    stays("an unknown number of heads", "bind it with --dim", [q, q, q], unknown=1)
    stays("unknown channels", "bind them with --dim", [q, q, q], unknown=3)
    stays("another type of values", "input 2 is float16", [q, q, q.astype(np.float16)])
    stays("a past of values alone", "input 4 is", [flat, flat, flat, None, None, floats(2, 4, 2, 3)], **heads)
    stays("a negative scale", "scale is -1", [q, q, q], scale=-1.0)
    stays("an unknown rank", "the rank of q is unknown", [q, q, q], shapeless=(0,))
    stays("two axes", "q has rank 2", [q[0, 0], q[0, 0], q[0, 0]])
    stays("five axes", "q has rank 5", [q[None], q[None], q[None]])
    stays("keys of another rank", "ranks 4, 3 and 4", [q, flat, q])
    stays("values of another rank", "ranks 4, 4 and 3", [q, q, flat])
    stays("an unknown number of heads of keys", "bind it with --dim", [q, q, q], unknown=1, which=(1,))
    stays("an unknown number of heads of values", "bind it with --dim", [q, q, q], unknown=1, which=(2,))
    stays("no heads of keys", "4 heads of queries, 0 of keys", [flat, flat, flat], q_num_heads=4)
    stays("keys and values of different heads", "4 heads of queries, 2 of keys, 4 of values", [q, q[:, :2], q])
    stays("past keys, and a number of keys", "past keys and a number", [q, q, q, None, floats(2, 4, 2, 3), floats(2, 4, 2, 3), np.array([5, 5])], opset=24)
    stays("a negative mode", "mode is -1", [q, q, q], qk_matmul_output_mode=-1)
    stays("an attribute nobody knows", "attribute sinks", [q, q, q], sinks=1)
    stays("a mode nobody knows", "mode is 4", [q, q, q], qk_matmul_output_mode=4)
    for what, options, more, kept in (("alone", {}, [], 0), ("a buffer of its own", {"past_present_share_buffer": 0}, [], 0), ("shared", {"past_present_share_buffer": 1}, [], 1),
                                      ("with a length", {}, ["length"], 1)):
        m = microsoft(more, options)
        p = t.call("read", t.write("kept.onnx", m.SerializeToString()), "--onnx", "-o", t.at("still.onnx"), text=True)
        left = [n.op_type for n in onnx.load(t.at("still.onnx")).graph.node].count("Attention") if p.returncode == 0 else -1
        said = "past and present share a buffer" in p.stderr
        why = "" if left == kept == said else "%d of them left: %s" % (left, p.stderr)
        if not kept and not why:
            feeds = {"x": floats(2, 5, 12)}
            d = difference(execute(m, feeds), evaluate(m, feeds))
            why = "" if d < 1e-5 else "differs by %.3g" % d
        t.case("Microsoft's attention: a past, " + what, why)
    m, _ = attention([q, q, q, np.ones((5, 5), bool)], ("y",))
    m.graph.node.insert(0, helper.make_node("foo", ["m"], ["from_foo"], domain="elsewhere"))
    m.graph.node[1].input[3] = "from_foo"
    p = t.call("read", t.write("kept.onnx", m.SerializeToString()), "--onnx", "-o", t.at("still.onnx"), text=True)
    t.case("stays: a mask that an unknown operator makes", "" if not p.returncode and "element type of its mask is unknown" in p.stderr else p.stderr or "it says nothing")
    stays("a softmax in integers", "softmax_precision", [q, q, q], softmax_precision=7)


# ---- through to hardware --------------------------------------------------------------------------------------------

class Fused(Encoder):
    """An encoder whose attention is the operator: on [B, T, heads x C], or, as PyTorch exports it, on [B, heads, T, C]
    with a mask that closes nothing. With a mask of its own, it is of booleans, for every query and key."""
    flat = True
    def attention(self, x, bias, p):
        wide, heads = self.heads * self.head, self.heads
        q, k, v = (self.linear(x, self.hidden, wide, p + n) for n in ("query", "key", "value"))
        if self.mask:
            keep = self.node("Cast", self.shaped("attention_mask", 1, 1, 1, self.tokens), to=T.BOOL)
            bias = self.node("Expand", keep, self.init("all", np.array([1, 1, self.tokens, self.tokens], np.int64)))
        if self.flat: mixed = self.node("Attention", q, k, v, *[bias] * self.mask, q_num_heads=heads, kv_num_heads=heads)
        else:
            apart = lambda y: self.node("Transpose", self.shaped(y, 1, -1, heads, self.head), perm=[0, 2, 1, 3])
            q, k, v = apart(q), apart(k), apart(v)
            mask = self.init("open", np.zeros((1, 1, self.tokens, self.tokens), np.float32))
            mixed = self.node("Transpose", self.node("Attention", q, k, v, mask), perm=[0, 2, 1, 3])
            mixed = self.shaped(mixed, 1, self.tokens, wide)
        return self.linear(mixed, wide, self.hidden, p + "output")


def becomes_hardware(name, encoder, m):
    """A model equals ONNX Runtime in `mlo run`, rolls, and its core, near to float, simulates."""
    source = t.write("encoder.onnx", m.SerializeToString())
    onnx.checker.check_model(m, full_check=True)
    places = np.arange(encoder.tokens, dtype=np.int64)[None]
    feeds = {"input_ids": places * 5 % 50, **({"attention_mask": (places < 4).astype(np.int64)} if encoder.mask else {})}
    d = difference(execute(m, feeds), evaluate(m, feeds))
    t.case(name + ": run is ONNX Runtime's", "" if d < 1e-5 else "differs by %.3g" % d)
    t.good("roll", source, "--onnx", "-o", t.at("rolled.onnx"))
    p = t.call("check", t.at("rolled.onnx"), "--against", source, text=True)
    loops = [n for n, _ in shapes(onnx.load(t.at("rolled.onnx")))]
    t.case(name + ": rolled, it is the same", p.stderr if p.returncode else "" if loops == [encoder.layers] else loops)
    made = json.loads(t.good("compile", source, "--pe", 4, "--simd", 4, "-o", t.at("core")))
    near = all(e["cosine"] > 0.97 for e in made["error"])
    t.case(name + ": the core is near to float", "" if near else made["error"])
    t.case(name + ": the core simulates, with ONNX Runtime's words", Run(t.at("core")).why())
    shutil.rmtree(t.at("core"))


def check_encoder():
    for name, opset, flat, sizes in (("heads side by side", 23, True, (2, 24, 6, 4, 32, 7, "post", "Gelu")),
                                     ("masked", 23, True, (2, 16, 4, 4, 24, 6, "post", "Gelu", True)),
                                     ("heads apart", 24, False, (3, 16, 2, 8, 32, 6, "pre", "Relu"))):
        encoder = Fused(*sizes)
        encoder.flat = flat
        m = encoder.model()
        m.opset_import[0].version, m.ir_version = opset, 10
        becomes_hardware("encoder, " + name, encoder, m)


if __name__ == "__main__": t.main(check_nodes, check_random, check_windows, check_stays, check_encoder, floor=161)
