# SPDX-License-Identifier: MIT
"""alike: every layer of a model changed alike: the body of its rolled loop, one thing at a time, or two; or a whole model. test_alike.py and test_context.py judge
what becomes of it."""
import copy
import itertools
import numpy as np
from onnx import AttributeProto as A, TensorProto as T, helper, numpy_helper, shape_inference
from graphs import attribute, body, scans

OTHER = {"Relu": ("Tanh", "Abs", "Neg"), "Tanh": ("Relu", "Sigmoid"), "Erf": ("Tanh",), "Sigmoid": ("Tanh", "Relu"), "Gelu": ("Relu", "Identity"), "Add": ("Sub", "Mul"), "Sub": ("Add",), "Mul": ("Add", "Div"),
         "Div": ("Mul",), "Sqrt": ("Abs", "Identity"), "Reciprocal": ("Identity",), "ReduceMean": ("ReduceSum", "ReduceMax"), "ReduceSum": ("ReduceMean",), "Pow": ("Mul",), "Max": ("Min",), "Min": ("Max",),
         "Softmax": ("LogSoftmax", "Identity"), "Neg": ("Identity", "Abs"), "Exp": ("Identity",), "Where": (), "Cos": ("Sin",), "Sin": ("Cos",), "Abs": ("Identity",)}


def forms(b):
    """value of the body -> (type, shape), where the model says them."""
    known = {v.name: (v.type.tensor_type.elem_type, tuple(d.dim_value if d.HasField("dim_value") else d.dim_param for d in v.type.tensor_type.shape.dim)) for v in [*b.input, *b.value_info, *b.output]}
    return {**known, **{i.name: (i.data_type, tuple(i.dims)) for i in b.initializer}}


def others(a):
    """Other values of an attribute."""
    def made(value):
        b = A(name=a.name, type=a.type)
        if a.type == A.INT: b.i = value
        elif a.type == A.FLOAT: b.f = value
        else: b.ints.extend(value)
        return b
    if a.type == A.INT: return [made(a.i + 1), made(a.i - 1), made(0 if a.i else 2)]
    if a.type == A.FLOAT: return [made(a.f * 2 + 0.5), made(-a.f)]
    if a.type == A.INTS and len(a.ints) > 1: return [made(list(a.ints)[::-1]), made([a.ints[1], a.ints[0], *a.ints[2:]]), made(list(a.ints)[:-1])]
    return []


SAID = {"Conv": {"strides": [2, 2], "dilations": [2, 2], "group": 2, "auto_pad": "SAME_LOWER"}, "AveragePool": {"strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1, "auto_pad": "SAME_UPPER"},
        "Gemm": {"alpha": 0.5, "beta": 0.5, "transA": 1, "transB": 1}, "LayerNormalization": {"axis": 1, "epsilon": 0.5}, "RMSNormalization": {"axis": 1, "epsilon": 0.5}, "Softmax": {"axis": 1},
        "ReduceMean": {"keepdims": 0, "noop_with_empty_axes": 1}, "Reshape": {"allowzero": 1}, "Gelu": {"approximate": "tanh"}, "Attention": {"is_causal": 1, "scale": 0.5, "softcap": 2.0, "softmax_precision": 1},
        "RotaryEmbedding": {"interleaved": 1, "num_heads": 1, "rotary_embedding_dim": 2}, "Concat": {"axis": 0}, "Split": {"axis": 1}, "Gather": {"axis": 1}, "Transpose": {"perm": [1, 0, 2]},
        "DequantizeLinear": {"axis": 0}, "QuantizeLinear": {"axis": 0, "saturate": 0}, "LogSoftmax": {"axis": 1}}


def behind(b, k, nodes):
    """Nodes behind the k-th one: all that read it read the last of them."""
    name = b.node[k].output[0]
    for n in list(b.node)[k + 1:]: n.input[:] = ["alike_last" if i == name else i for i in n.input]
    for o in b.output:
        if o.name == name: nodes = nodes + [helper.make_node("Identity", ["alike_last"], ["alike_out"])]; o.name = "alike_out"
    for j, n in enumerate(nodes): b.node.insert(k + 1 + j, n)


def layers(model): return body(scans(model)[0])
def whole(model): return model.graph


def changes(model, part=layers):
    """(name, function that changes a copy's part) of every change, in order."""
    b = part(model)
    known, order = forms(b), {o: k for k, n in enumerate(b.node) for o in n.output}
    constant = {i.name: k for k, i in enumerate(b.initializer)}
    N = helper.make_node
    for k, n in enumerate(b.node):
        say = "%d %s" % (k, n.op_type)
        for a in n.attribute:
            if a.type == A.GRAPH: continue
            yield "%s.%s left out" % (say, a.name), lambda c, k=k, a=a: c.node[k].attribute.remove(attribute(c.node[k], a.name))
            for j, v in enumerate(others(a)): yield "%s.%s %d" % (say, a.name, j), lambda c, k=k, v=v: attribute(c.node[k], v.name).CopyFrom(v)
        for name, value in SAID.get(n.op_type, {}).items():
            def said(c, k=k, name=name, value=value):
                if attribute(c.node[k], name): c.node[k].attribute.remove(attribute(c.node[k], name))
                c.node[k].attribute.append(helper.make_attribute(name, value))
            yield "%s.%s %s said" % (say, name, value), said
        for a in n.attribute:
            if a.type == A.INTS and a.ints:
                for how, v in ("all one more", [i + 1 for i in a.ints]), ("first one more, last one less", [a.ints[0] + 1, *a.ints[1:-1], a.ints[-1] - 1]), ("one of them", a.ints[:1]), ("all nothing", [0] * len(a.ints)):
                    yield "%s.%s %s" % (say, a.name, how), lambda c, k=k, a=a, v=v: attribute(c.node[k], a.name).ints.__setitem__(slice(None), list(v))
        for op in OTHER.get(n.op_type, ()):
            def other(c, k=k, op=op):
                if op in ("Identity", "Abs", "Neg", "Tanh", "Sigmoid"): del c.node[k].attribute[:]
                c.node[k].op_type = op
            yield "%s to %s" % (say, op), other
        if len(n.input) == 2: yield "%s turned" % say, lambda c, k=k: c.node[k].input.extend([c.node[k].input.pop(0)])
        for j, x in enumerate(n.input):
            if x in constant and b.initializer[constant[x]].data_type in (T.FLOAT, T.INT64):
                v = numpy_helper.to_array(b.initializer[constant[x]])
                for how, y in ("twice", v.clip(-2**61, 2**61) * 2), ("less one", v - 1), ("negated", -v), ("a list of it", v[None]), ("last changed", np.where(np.arange(v.size).reshape(v.shape) == v.size - 1, v + 1, v)):
                    def put(c, k=k, j=j, y=y):
                        c.initializer.append(numpy_helper.from_array(np.asarray(y).astype(np.float32 if y.dtype.kind == "f" else np.int64), "alike_c"))
                        c.node[k].input[j] = "alike_c"
                    yield "%s constant %d %s" % (say, j, how), put
            fits = [v for v, form in known.items() if v and v != x and form == known.get(x) and order.get(v, -1) < k and v not in constant]
            for v in fits[:1] + fits[-1:]: yield "%s input %d from %s" % (say, j, v), lambda c, k=k, j=j, v=v: c.node[k].input.__setitem__(j, v)
            if j > 1: yield "%s without input %d" % (say, j), lambda c, k=k, j=j: c.node[k].input.__setitem__(j, "")
        kind, dims = known.get(n.output[0], (0, ()))
        if kind != T.FLOAT: continue
        y, rank = n.output[0], len(dims)
        yield "%s, Neg behind" % say, lambda c, k=k, y=y: behind(c, k, [N("Neg", [y], ["alike_last"])])
        yield "%s, Abs behind" % say, lambda c, k=k, y=y: behind(c, k, [N("Abs", [y], ["alike_last"])])
        yield "%s, its square behind" % say, lambda c, k=k, y=y: behind(c, k, [N("Mul", [y, y], ["alike_last"])])
        yield "%s, Identity behind" % say, lambda c, k=k, y=y: behind(c, k, [N("Identity", [y], ["alike_last"])])

        def scaled(c, k=k, y=y, shape=(), op="Mul"):
            c.initializer.append(numpy_helper.from_array((np.arange(int(np.prod(shape))).reshape(shape) % 3 * 0.25 + 0.5).astype(np.float32), "alike_c"))
            behind(c, k, [N(op, [y, "alike_c"], ["alike_last"])])
        for op in "Mul", "Add":
            yield "%s, %s behind" % (say, op), lambda c, s=scaled, op=op: s(c, op=op)
            if rank and all(isinstance(d, int) for d in dims):
                yield "%s, %s of channels behind" % (say, op), lambda c, s=scaled, op=op, d=dims: s(c, op=op, shape=(d[-1],))
                yield "%s, %s of all behind" % (say, op), lambda c, s=scaled, op=op, d=dims: s(c, op=op, shape=d)
        if rank > 1: yield "%s, turned over and back behind" % say, lambda c, k=k, y=y, r=rank: behind(c, k, [N("Transpose", [y], ["alike_t"], perm=list(range(r))[::-1]), N("Transpose", ["alike_t"], ["alike_last"], perm=list(range(r))[::-1])])
        if rank > 1 and dims[-1] == dims[-2]: yield "%s, turned behind" % say, lambda c, k=k, y=y, r=rank: behind(c, k, [N("Transpose", [y], ["alike_last"], perm=[*range(r - 2), r - 1, r - 2])])
        yield from around(b, k, say, y, dims)
    yield from parameters(b)


def constant(c, value, kind=np.int64):
    """The name of a new initializer."""
    name = "alike_k%d" % len(c.initializer)
    c.initializer.append(numpy_helper.from_array(np.asarray(value, kind), name))
    return name


def around(b, k, say, y, dims):
    """The k-th node's value taken through more nodes, or used once more."""
    N, rank = helper.make_node, len(dims)

    def through(*steps):
        """Nodes behind, (operator, constants, attributes) each."""
        def made(c):
            nodes, at = [], y
            for j, (op, inputs, how) in enumerate(steps):
                to = "alike_last" if j == len(steps) - 1 else "alike_%d" % j
                nodes.append(N(op, [at, *(constant(c, v, kind) for v, kind in inputs)], [to], **how))
                at = to
            behind(c, k, nodes)
        return made
    whole, real = lambda *v: (v, np.int64), lambda v: (v, np.float32)
    yield "%s, Max behind" % say, through(("Max", [real(0.125)], {}))
    yield "%s, Clip behind" % say, through(("Clip", [real(-0.5), real(0.75)], {}))
    yield "%s, Sub behind" % say, through(("Sub", [real(0.25)], {}))
    yield "%s, Div behind" % say, through(("Div", [real(2)], {}))
    yield "%s, Softmax behind" % say, through(("Softmax", [], {"axis": -1}))
    yield "%s, its root behind" % say, through(("Abs", [], {}), ("Sqrt", [], {}))
    yield "%s, double and back behind" % say, through(("Cast", [], {"to": T.DOUBLE}), ("Cast", [], {"to": T.FLOAT}))
    yield "%s, what nobody knows behind" % say, through(("Mystery", [], {"domain": "example"}))
    yield "%s, repeated as it says behind" % say, lambda c: behind(c, k, [N("ReduceMax", [y], ["alike_0"], keepdims=0), N("Cast", ["alike_0"], ["alike_1"], to=T.INT64), N("Unsqueeze", ["alike_1", constant(c, [0])], ["alike_2"]), N("Expand", [y, "alike_2"], ["alike_last"])])
    yield "%s, one more axis behind" % say, through(("Unsqueeze", [whole(0)], {}))
    if not rank or not all(isinstance(d, int) for d in dims): return
    yield "%s, LayerNormalization behind" % say, through(("LayerNormalization", [real(np.full(dims[-1], 0.5))], {"axis": -1}))
    yield "%s, flat and back behind" % say, through(("Reshape", [whole(-1)], {}), ("Reshape", [whole(*dims)], {}))
    yield "%s, last axis apart behind" % say, through(("Reshape", [whole(*dims, 1)], {}))
    yield "%s, channels backwards behind" % say, through(("Gather", [(np.arange(dims[-1])[::-1], np.int64)], {"axis": -1}))
    yield "%s, padded and cut behind" % say, through(("Pad", [whole(*[0] * (2 * rank - 1), 1)], {}), ("Slice", [whole(0), whole(dims[-1]), whole(-1)], {}))
    yield "%s, twice and halved behind" % say, lambda c: behind(c, k, [N("Concat", [y, y], ["alike_0"], axis=-1), N("Slice", ["alike_0", constant(c, [dims[-1]]), constant(c, [2 * dims[-1]]), constant(c, [-1])], ["alike_last"])])

    def once_more(c, same):
        out = c.output[0].name
        read = y if same else "alike_sum"
        if not same: c.node.append(N("ReduceMax", [y], [read], keepdims=0))
        c.node.append(N("Add", [out, read], ["alike_out"]))
        c.output[0].name = "alike_out"
    if y != b.output[0].name:
        same = dims == forms(b).get(b.output[0].name, (0, ()))[1]
        yield "%s, added to what the layer makes" % say, lambda c: once_more(c, same)


def parameters(b):
    """Each layer's parameters, changed where they come in."""
    N = helper.make_node
    for v in b.input[1:]:
        if v.type.tensor_type.elem_type != T.FLOAT: continue
        used = [n.op_type for n in b.node if v.name in n.input]
        for how, op, by in ("negated", "Neg", None), ("nothing", "Mul", 0), ("a thousand times", "Mul", 1000), ("a number that is none", "Mul", np.nan), ("one more axis", "Unsqueeze", [0]), ("its square", "Mul", v.name):
            def put(c, name=v.name, op=op, by=by):
                for n in c.node: n.input[:] = ["alike_p" if i == name else i for i in n.input]
                second = [] if by is None else [by] if isinstance(by, str) else [constant(c, by, np.int64 if isinstance(by, list) else np.float32)]
                c.node.insert(0, N(op, [name, *second], ["alike_p"]))
            yield "%s of %s %s" % (v.name, "/".join(dict.fromkeys(used)), how), put


def changed(model, change, part=layers):
    """A copy whose layers are all changed; what it says of the forms of values is what ONNX infers now, or what it said where that infers nothing."""
    c = copy.deepcopy(model)
    change(part(c))
    bare = copy.deepcopy(c)
    del part(bare).value_info[:]
    inferred = forms(part(shape_inference.infer_shapes(bare, data_prop=True)))
    for v in list(part(c).value_info):
        kind, dims = inferred.get(v.name, (0, ()))
        if kind and all(isinstance(d, int) and d for d in dims): v.CopyFrom(helper.make_tensor_value_info(v.name, kind, dims))
    return c


def again(model, part=layers):
    """A changed model whose new names are out of the way of the next change."""
    c = copy.deepcopy(model)
    b, fresh = part(c), lambda name: name.replace("alike_", "first_") if name.startswith("alike_") else name
    for n in b.node: n.input[:], n.output[:] = list(map(fresh, n.input)), list(map(fresh, n.output))
    for v in [*b.initializer, *b.output, *b.value_info]: v.name = fresh(v.name)
    return c


def made(model, what, part=layers):
    """The model with what a row says, `change` or `change ; another`; None if there is no such change (any more)."""
    for k, each in enumerate(what.split(" ; ")):
        model = again(model, part) if k else model
        change = dict(changes(model, part)).get(each)
        if not change: return None
        model = changed(model, change, part)
    return model
