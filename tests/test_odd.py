#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Odd graphs: what ONNX allows and nobody exports, and what it does not allow. Right, or refused by name; never a crash, never another answer.

    python tests/test_odd.py path/to/mlo [NAME ...]

    pairs        two models that `mlo check` must call equal, or whose difference it must name
    unrolled     a Scan over a stack of each spelling, against its layers written out
    json         JSON that google.protobuf reads, or refuses
    wire         the same of the binary form

Judges: the definitions of ONNX, ONNX Runtime, google.protobuf."""
import re
import numpy as np
import onnx
from google.protobuf import json_format
from onnx import TensorProto as T, helper as h, numpy_helper
import harness as t
from test_errors import wrong

node, array = h.make_node, numpy_helper.from_array


def f32(name, *dims): return h.make_tensor_value_info(name, T.FLOAT, list(dims) if dims != (None,) else None)
def i64(*v): return np.array(v, np.int64)


def model(nodes, inputs=(), outputs=(), init=(), opset=18, info=(), functions=()):
    g = h.make_graph(list(nodes), "odd", list(inputs), list(outputs), [i if isinstance(i, onnx.TensorProto) else array(np.asarray(i[1]), i[0]) for i in init], value_info=list(info))
    return h.make_model(g, opset_imports=[h.make_opsetid("", opset), h.make_opsetid("custom", 1)], functions=list(functions), ir_version=9)


def saved(name, m): return t.write(name, m if isinstance(m, bytes) else m.SerializeToString())


# ---- check: two models -------------------------------------------------------------------------------------------------------------------

def subgraph(bias=1.0, name="z", op="Add", inputs=("i", "c", "s")):
    """x' = x op bias, as the body of a Loop."""
    kinds = {"i": (T.INT64, []), "c": (T.BOOL, []), "s": (T.FLOAT, [2])}
    return h.make_graph([node(op, [inputs[2], "b"], [name]), node("Identity", [inputs[1]], ["c2"])], "body", [h.make_tensor_value_info(k, *kinds["ics"[n]]) for n, k in enumerate(inputs)],
                        [h.make_tensor_value_info("c2", T.BOOL, []), f32(name, 2)], [array(np.float32(bias), "b")])


def strange(value, **more):
    """A node nobody knows, with one attribute of any kind."""
    a = h.make_attribute("a", value) if not isinstance(value, onnx.AttributeProto) else value
    n = node("Strange", ["x"], ["y"], name="strange", domain="custom", **more)
    n.attribute.append(a)
    return model([n], [f32("x", 2)], [f32("y", 2)])


def looped(**kw): return model([node("Loop", ["n", "", "x"], ["y"], name="loop", body=subgraph(**kw))], [f32("x", 2)], [f32("y", 2)], [("n", np.int64(3))])


def scanned(stack, w=(), body=None, nodes=(), taps=False, n=3, gather=None, info=(), inputs=(), **attributes):
    """x + each slice of `stack`, a Scan; w: initializers; gather: the node that reads the tap."""
    b = body or h.make_graph([node("Add", ["s", "e"], ["z"], name="inner")] + ([node("Neg", ["e"], ["tap"])] if taps else []), "body", [f32("s", 2), f32("e", 2)], [f32("z", 2)] + ([f32("tap", 2)] if taps else []))
    outs = ["y"] + (["taps"] if taps else [])
    nodes = [*nodes, node("Scan", ["x", stack], outs, name="scan", body=b, num_scan_inputs=1, **attributes)]
    final = [f32("y", 2)]
    if gather is not None: nodes.append(node("Gather", ["taps", "at"], ["g"], axis=0)), final.append(f32("g", 2))
    elif taps: final.append(f32("taps", n, 2))
    return model(nodes, [f32("x", 2), *inputs], final, [*w, *([("at", np.int64(gather))] if gather is not None else [])], info=info)


def unrolled(rows, names=None, tap=None):
    """The same, written out."""
    nodes, init, at = [], [], "x"
    for k, r in enumerate(rows):
        init.append(("r%d" % k, np.float32(r)))
        nodes.append(node("Add", [at, "r%d" % k], ["y" if k == len(rows) - 1 else "a%d" % k]))
        at = nodes[-1].output[0]
    outs = [f32("y", 2)]
    if tap is not None: nodes.append(node("Neg", ["r%d" % tap], ["g"])), outs.append(f32("g", 2))
    return model(nodes, [f32("x", 2)], outs, init)


def compared(name, a, b, *words, code="MISMATCH", flags=()):
    """A case: check says that a is b (no words), or the words."""
    p = t.call("check", saved("a.onnx", a), "--against", saved("b.onnx", b), *flags)
    t.case("check: " + name, wrong(p, code, words, document=True) if words else "" if p.returncode == 0 else p.stderr.decode()[-300:])


def check_pairs():
    tensor = lambda *v: array(np.float32(v), "t")
    graphs = lambda *g: h.make_attribute("a", list(g))
    kinds = [("a float", 1.5, 2.5), ("an integer", 3, 4), ("a text", "ab", "ac"), ("a tensor", tensor(1, 2), tensor(1, 3)), ("floats", [1.5, 2.5], [1.5, 2.25]), ("integers", [1, 2], [2, 1]),
             ("texts", ["a", "b"], ["a", "c"]), ("tensors", [tensor(1), tensor(2)], [tensor(1), tensor(3)]), ("a graph", subgraph(), subgraph(2.0)), ("graphs", [subgraph(), subgraph()], [subgraph(), subgraph(2.0)])]
    for name, a, b in kinds:
        compared("an attribute that is %s" % name, strange(a), strange(a))
        compared("another attribute that is %s" % name, strange(a), strange(b), "strange", "attributes here")
    typed = onnx.AttributeProto(name="a", type=onnx.AttributeProto.TYPE_PROTO, tp=h.make_tensor_type_proto(T.FLOAT, [2]))
    compared("an attribute that is a type", strange(typed), strange(typed), "attributes of type 13", code="UNSUPPORTED")
    compared("attributes in another order", strange(1, b=2), (lambda m: (m.graph.node[0].attribute.reverse(), m)[1])(strange(1, b=2)))
    compared("an operator of another name", strange(1), (lambda m: (setattr(m.graph.node[0], "op_type", "Other"), m)[1])(strange(1)), "strange", "Strange strange here, Other")
    compared("an operator of another domain", strange(1), (lambda m: (setattr(m.graph.node[0], "domain", ""), m)[1])(strange(1)), "strange")
    x, y = f32("x", 2), f32("y", 2)
    two = lambda op, *ins, init=(("w", np.float32([1, 2])), ("v", np.float32([3, 4]))), **kw: model([node(op, list(ins), ["y"], name="only")], [x], [y], init, **kw)
    compared("operands that commute", two("Add", "x", "w"), two("Add", "w", "x"))
    compared("operands that do not", two("Sub", "x", "w"), two("Sub", "w", "x"), "only", "input x here, constant w")
    compared("another constant", two("Add", "x", "w"), two("Add", "x", "v"), "only", "constant w \\(float \\[2\\]\\) here, constant v")
    compared("another constant, operands exchanged", two("Add", "w", "x"), two("Add", "x", "v"), "constant w")
    compared("constants that commute", two("Add", "w", "v"), two("Add", "v", "w"))
    compared("both operands another", two("Add", "w", "w"), two("Add", "v", "v"), "constant w \\(float \\[2\\]\\) here, constant v")
    compared("one operand fewer", model([node("Clip", ["x", "lo", "hi"], ["y"], name="only")], [x], [y], [("lo", np.float32(0)), ("hi", np.float32(1))]),
             model([node("Clip", ["x", "lo"], ["y"], name="only")], [x], [y], [("lo", np.float32(0))]), "only")
    compared("an operand left out", model([node("Clip", ["x", "", "hi"], ["y"], name="only")], [x], [y], [("hi", np.float32(1))]),
             model([node("Clip", ["x", "hi", "hi"], ["y"], name="only")], [x], [y], [("hi", np.float32(1))]), "only", "nothing here, constant hi")
    chain = lambda order: model([node("Neg", ["x"], ["n"], name="neg"), node("Exp", ["x"], ["e"], name="exp"), node("Add", ["n", "e"][::order], ["y"], name="sum")], [x], [y])
    compared("operators that commute", chain(1), chain(-1))
    other = chain(1)
    other.graph.node[1].op_type = "Tanh"
    compared("an operator below a sum", chain(-1), other, "exp", "Exp exp here, Tanh exp in the original")
    compared("an Identity between", model([node("Identity", ["x"], ["i"]), node("Neg", ["i"], ["y"])], [x], [y]), model([node("Neg", ["x"], ["y"])], [x], [y]))
    compared("another output of one node", model([node("Split", ["x"], ["y", "q"], name="halves", num_outputs=2)], [x], [f32("y", 1)]), model([node("Split", ["x"], ["q", "y"], name="halves", num_outputs=2)], [x], [f32("y", 1)]), "halves")
    compared("one input more", model([node("Neg", ["x"], ["y"])], [x, f32("z", 2)], [y]), model([node("Neg", ["x"], ["y"])], [x], [y]), "2 inputs here, 1 in the original")
    compared("an input by another name", model([node("Neg", ["x"], ["y"])], [x], [y]), model([node("Neg", ["q"], ["y"])], [f32("q", 2)], [y]), "input 0 is called 'q'")
    compared("an input of another shape", model([node("Neg", ["x"], ["y"])], [x], [y]), model([node("Neg", ["x"], ["y"])], [f32("x", 3)], [f32("y", 3)]), "type or shape is not")
    compared("an input of another rank", model([node("Neg", ["x"], ["y"])], [x], [y]), model([node("Neg", ["x"], ["y"])], [f32("x", 2, 1)], [f32("y", 2, 1)]), "type or shape is not")
    integers = h.make_tensor_value_info("x", T.INT32, [2]), h.make_tensor_value_info("y", T.INT32, [2])
    compared("an input of another type", model([node("Neg", ["x"], ["y"])], [x], [y]), model([node("Neg", ["x"], ["y"])], integers[:1], integers[1:]), "type or shape is not")
    compared("one output more", model([node("Neg", ["x"], ["y"]), node("Exp", ["x"], ["e"])], [x], [y, f32("e", 2)]), model([node("Neg", ["x"], ["y"])], [x], [y]), "2 outputs here, 1")
    compared("an output by another name", model([node("Neg", ["x"], ["y"])], [x], [y]), model([node("Neg", ["x"], ["z"])], [x], [f32("z", 2)]), "output 0 is called 'z'")
    compared("another opset", model([node("Neg", ["x"], ["y"])], [x], [y]), model([node("Neg", ["x"], ["y"])], [x], [y], opset=17), "version 17")
    constants = {"another type": np.float64([1, 2]), "another shape": np.float32([[1, 2]]), "other elements": np.float32([1, 3])}
    for what, value in constants.items():
        casts = lambda v: model([node("Strange", ["x", "w"], ["y"], name="only", domain="custom")], [x], [y], [("w", v)])
        compared("a constant of %s" % what, casts(np.float32([1, 2])), casts(value), "only", "constant w .float .2.. here, constant w .(double|float) ")
    deep = lambda v: model([node("Strange", ["x", "w"], ["y"], name="only", domain="custom")], [x], [y], [("w", np.float32(v).reshape([1] * 12))])
    compared("a constant of twelve dimensions", deep(1), deep(1))
    compared("another constant of twelve dimensions", deep(1), deep(2), "only", "constant w .float of unknown rank. here")
    compared("no difference in a loop", looped(), looped())
    compared("names of a body's own", looped(), looped(name="other", inputs=("k", "go", "state")))
    compared("a constant of a loop", looped(), looped(bias=2.0), "loop", "attributes here")
    compared("an operator of a loop", looped(), looped(op="Mul"), "loop", "attributes here")
    ghost = looped()
    ghost.graph.node[0].attribute[0].g.node[0].input[1] = "ghost"
    compared("a body that reads what nobody makes", ghost, looped(), "ghost", code="GRAPH")


def check_unrolled():
    """A Scan against what it stands for: stacks of every spelling that check knows, and those that it does not."""
    rows = [[1, 2], [3, 4], [5, 6]]
    stack = np.float32(rows)
    parts = [("r%d" % k, np.float32(r)) for k, r in enumerate(rows)]
    axes = ("axes", i64(0))
    raised = [node("Unsqueeze", ["r%d" % k, "axes"], ["u%d" % k]) for k in range(3)]
    joined = node("Concat", ["u0", "u1", "u2"], ["stack"], axis=0)
    shape = ("shape", i64(3, 2))
    flat = [node("Concat", ["r0", "r1", "r2"], ["long"], axis=0), node("Reshape", ["long", "shape"], ["stack"])]
    want = unrolled(rows)
    # read folds small constants, so that parts come from outside: from inputs
    ins = [f32("r%d" % k, 2) for k in range(3)]
    def written(n=3, order=(0, 1, 2)):
        nodes, at = [], "x"
        for k in order[:n]: nodes.append(node("Add", [at, "r%d" % k], ["a%d" % len(nodes)])); at = nodes[-1].output[0]
        nodes[-1].output[0] = "y"
        return model(nodes, [f32("x", 2), *ins], [f32("y", 2)])
    compared("a stack of Unsqueezes", scanned("stack", [axes], nodes=[*raised, joined], inputs=ins), written())
    compared("a stack of Unsqueezes, exchanged", scanned("stack", [axes], nodes=[*raised, node("Concat", ["u1", "u0", "u2"], ["stack"], axis=0)], inputs=ins), written(), "input r\\d here, input r\\d in")
    compared("a stack that is reshaped", scanned("stack", [shape], nodes=flat, inputs=ins), written())
    compared("a stack that repeats", scanned("stack", [shape], nodes=[node("Expand", ["r0", "shape"], ["stack"])], inputs=ins), written(order=(0, 0, 0)))
    for what, more in (("from behind", {"scan_input_directions": [1]}), ("along its only axis, said", {"scan_input_axes": [0]})):
        compared("a stack read %s" % what, scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, **more), written(), "Scan scan|scan")
    open_ = [("sizes that do not come from the parts", [node("Concat", ["r0", "r1"], ["long"], axis=0), node("Reshape", ["long", "shape"], ["stack"])], [("shape", i64(2, 2))], 2),
             ("one part fewer than rows", [node("Concat", ["r0", "r1", "r2", "r0"], ["long"], axis=0), node("Reshape", ["long", "shape"], ["stack"])], [("shape", i64(4, -1))], 4)]
    for what, nodes, init, n in open_: compared("a stack of %s" % what, scanned("stack", init, nodes=nodes, inputs=ins, n=n), written(), "scan|differs|Add")
    compared("a stack that is an input", scanned("stack", inputs=[f32("stack", 3, 2)]), scanned("stack", inputs=[f32("stack", 3, 2)]))
    compared("a stack along another axis", scanned("stack", [("axes", i64(1))], nodes=[*raised, node("Concat", ["u0", "u1", "u2"], ["wide"], axis=1), node("Transpose", ["wide"], ["stack"], perm=[1, 0])], inputs=ins), written(), "differs")
    compared("taps, gathered", scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True, gather=1),
             (lambda m: (m.graph.node.append(node("Neg", ["r1"], ["g"])), m.graph.output.append(f32("g", 2)), m)[2])(written()))
    compared("taps, another gathered", scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True, gather=2),
             (lambda m: (m.graph.node.append(node("Neg", ["r1"], ["g"])), m.graph.output.append(f32("g", 2)), m)[2])(written()), "input r2 here, input r1")
    compared("all taps", scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True), scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True), "output that check cannot follow")
    ends = lambda m: (m.graph.node.append(node("Neg", ["taps"], ["all"])), m.graph.output.pop(), m.graph.output.append(f32("all", 3, 2)), m)[3]
    compared("all taps, read by a node", ends(scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True)), ends(scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True)))
    numbered = lambda: h.make_graph([node("Cast", ["e"], ["f"], to=T.FLOAT), node("Add", ["s", "f"], ["z"])], "body", [f32("s", 2), h.make_tensor_value_info("e", T.INT64, [])], [f32("z", 2)])
    steps = lambda order: model([node("Add", ["x" if not k else "a%d" % k, "n%d" % n], ["a%d" % (k + 1) if k < 2 else "y"]) for k, n in enumerate(order)], [f32("x", 2)], [f32("y", 2)], [("n%d" % n, np.float32(n)) for n in set(order)])
    same = lambda: scanned("ks", [("ks", i64(0, 1, 2))], body=numbered())
    compared("a stack of numbers", same(), same())
    compared("a stack of other numbers", same(), scanned("ks", [("ks", i64(0, 1, 3))], body=numbered()), "constant")
    del steps, stack, parts, want


# ---- the two forms of a file ---------------------------------------------------------------------------------------------------------------

BASE = """{"irVersion": "8", "opsetImport": [{"version": "18"}], "metadataProps": [{"key": "k", "value": "v"}], "graph": {"name": "g",
 "node": [{"input": ["x"], "output": ["y"], "name": "n", "opType": "Elu", "attribute": [{"name": "alpha", "f": 1.5, "type": "FLOAT"}]}],
 "initializer": [{"dims": ["2"], "dataType": 1, "rawData": "AACAPwAAAEA=", "name": "w"}, {"dims": ["2"], "dataType": 11, "doubleData": [1.5, 2.5], "name": "d"},
  {"dims": ["2"], "dataType": 13, "uint64Data": ["1", "2"], "name": "u"}, {"dims": ["1"], "dataType": 6, "int32Data": [7], "name": "i"}],
 "input": [{"name": "x", "type": {"tensorType": {"elemType": 1, "shape": {"dim": [{"dimValue": "2"}]}}}}],
 "output": [{"name": "y", "type": {"tensorType": {"elemType": 1, "shape": {"dim": [{"dimValue": "2"}]}}}}]}}"""


def google(text):
    try: return json_format.Parse(text, onnx.ModelProto())
    except Exception: return None


def copied(path):
    """The model as mlo writes it when it only copies: the stages that a flag asks for none of."""
    p = t.call("read", path, "--onnx", "-o", t.at("copy.onnx"))
    return p, onnx.load(t.at("copy.onnx")) if p.returncode == 0 else None


def parts(m):
    """What read keeps of BASE: its attributes, initializers, dimensions."""
    return ([(a.name, a.type, a.f if a.f == a.f else "nan", a.i, a.s) for n in m.graph.node for a in n.attribute],
            [(n.op_type, n.name, n.doc_string) for n in m.graph.node], [(p.key, p.value) for p in m.metadata_props if not p.key.startswith("mlo.")], m.ir_version, m.opset_import[0].version)


# what Python's json_format reads and neither its specification nor mlo does: whole numbers that a double has lost, booleans as numbers, '_' in digits; and
# the other way round: the shortest text of FLT_MAX, a type that only an attribute's value tells
STRICTER = ["irVersion 9007199254740993", 'irVersion "8_0"', 'a float "1e39"', "a float true", "an enumeration 1.5", "an enumeration true", "a field by both its names", "a NUL"]
LOOSER = ["a float 3.4028235e38", "an enumeration null"]


def check_json():
    def edited(name, old, new):
        """A case: BASE with a text in place of another is what google.protobuf makes of it."""
        if old not in BASE: raise ValueError(old)
        text = BASE.replace(old, new, 1)
        path, want = t.write("edited.json", text), google(text)
        p, got = copied(path)
        if name in LOOSER: return t.case("json: " + name, p.stderr.decode()[-300:])
        if want is None or name in STRICTER: return t.case("json: " + name, wrong(p, "FORMAT"))
        t.case("json: " + name, p.stderr.decode()[-300:] if got is None else "" if parts(got) == parts(want) else "%s is not %s" % (parts(got), parts(want)))
    edited("as it is", '"8"', '"8"')
    for number in ('8', '8.0', '"8.0"', '"8e0"', '"0.8e1"', '80e-1', '"+8"', '"08"', '" 8"', '"8 "', '"0x8"', '8.5', '"8.5"', '"1e999"', '1e300', '-8', '"-8"', 'true', '[]', '{}', '"nan"', '""', '9007199254740993', '"9223372036854775807"',
                   '"9223372036854775808"', '"-9223372036854775808"', '"-9223372036854775809"', '"99999999999999999999999"', '1e', '"1e"', '"8_0"'):
        edited("irVersion %s" % number, '"irVersion": "8"', '"irVersion": %s' % number)
    for number in ('1.5', '"1.5"', '2', '-0', '-0.0', '"NaN"', '"Infinity"', '"-Infinity"', '1e39', '-1e39', '"1e39"', '3.4028235e38', '1e-60', 'true', '"x"', '""', '[1.5]', 'null', 'NaN', '1e400'):
        edited("a float %s" % number, '"f": 1.5', '"f": %s' % number)
    for name in ('"FLOAT"', '1', '"1"', '"float"', '"DOUBLE"', '99', '-1', '1.5', 'true', '"NOPE"', 'null'):
        edited("an enumeration %s" % name, '"type": "FLOAT"', '"type": %s' % name)
    for text in ('"AACAPwAAAEA"', '"AACAPwAAAE A="', '"AACA"', '"A"', '"AACAPwAAAEA=="', '"AACAPw__-_8="', '"AACAPw//+/8="', '"AACA*wAAAEA="', '""', '7', '"AACAPwAAAEA=AACA"'):
        path, want = t.write("edited.json", BASE.replace('"AACAPwAAAEA="', text)), google(BASE.replace('"AACAPwAAAEA="', text))
        p, got = copied(path)
        if want is not None and len(want.graph.initializer[0].raw_data) == 8 and " " not in text and "=A" not in text: t.case("json: bytes %s" % text, p.stderr.decode()[-200:])
        else: t.case("json: bytes %s" % text, "" if p.returncode == 3 else "status %d: %s" % (p.returncode, p.stderr.decode()[-200:]))
    for name, old, new in (("null for a list", '"metadataProps": [{"key": "k", "value": "v"}]', '"metadataProps": null'), ("null in a list", '[{"key": "k", "value": "v"}]', '[null]'), ("an object for a list", '[{"key": "k", "value": "v"}]', '{"key": "k"}'),
                           ("a text for an object", '[{"key": "k", "value": "v"}]', '["k"]'), ("a list for a text", '"key": "k"', '"key": ["k"]'), ("a number for a text", '"key": "k"', '"key": 3'), ("null for a text", '"key": "k"', '"key": null'),
                           ("a field twice", '"key": "k"', '"key": "k", "key": "l"'), ("a field by both its names", '"opType": "Elu"', '"opType": "Elu", "op_type": "Neg"'), ("a field by its other name", '"opType": "Elu"', '"op_type": "Elu"'),
                           ("a field in capitals", '"opType": "Elu"', '"OPTYPE": "Elu"'), ("a field cut short", '"opType": "Elu"', '"opTyp": "Elu"'), ("a field with a tail", '"opType": "Elu"', '"opTypes": "Elu"'), ("a field without a name", '"name": "n"', '"": "n"'),
                           ("a capital after an underline", '"opType": "Elu"', '"op_Type": "Elu"'), ("escapes", '"value": "v"', '"value": "\\u00e9\\ud83d\\ude00\\/\\b\\f\\n\\r\\t\\"\\\\"'), ("half of a pair", '"value": "v"', '"value": "\\ud83d"'),
                           ("the other half", '"value": "v"', '"value": "\\ude00"'), ("a NUL", '"value": "v"', '"value": "a\\u0000b"'), ("a newline in a text", '"value": "v"', '"value": "a\nb"'), ("an escape there is not", '"value": "v"', '"value": "\\q"'),
                           ("an escape cut short", '"value": "v"', '"value": "\\u12"'), ("a comma too many", '"value": "v"}', '"value": "v",}'), ("a comma too few", '"key": "k", ', '"key": "k" '), ("a comment", '"graph"', '/* */ "graph"'),
                           ("single quotes", '"key": "k"', "'key': 'k'"), ("text behind", '"dimValue": "2"}]}}}}]}}', '"dimValue": "2"}]}}}}]}} x'), ("a graph that is null", '"name": "n", ', '"name": null, '), ("a graph that is a list", '"graph": {', '"graph": [{'),
                           ("DEL and more", '"value": "v"', '"value": "\x7f\u20ac"')):
        if name == "text behind": t.case("json: " + name, wrong(t.call("read", t.write("edited.json", BASE + " x")), "FORMAT"))
        else: edited(name, old, new)
    bad = [("no UTF-8", BASE.encode().replace(b'"v"', b'"\xff"'), "not UTF-8"), ("a byte NUL", BASE.encode().replace(b'"v"', b'"\x00"'), "NUL"), ("UTF-8 that is longer than needed", BASE.encode().replace(b'"v"', b'"\xc0\xaf"'), "not UTF-8"),
           ("surrogates in UTF-8", BASE.encode().replace(b'"v"', b'"\xed\xa0\x80"'), "not UTF-8"), ("UTF-8 beyond Unicode", BASE.encode().replace(b'"v"', b'"\xf4\x90\x80\x80"'), "not UTF-8"),
           ("brackets without an end", b'{"graph": ' + b"[" * 5000, "nested more than"), ("objects in objects", b'{"graph": ' * 200 + b"{}" + b"}" * 200, "no such field")]
    attribute = '{"name": "b", "type": "GRAPH", "g": {"node": [{"opType": "If", "attribute": [%s]}]}}'
    deep = '{"name": "b", "type": "INT", "i": "1"}'
    for _ in range(40): deep = attribute % deep
    bad.append(("graphs in graphs", BASE.replace('{"name": "alpha", "f": 1.5, "type": "FLOAT"}', deep).encode(), "nested"))
    for name, data, words in bad: t.case("json: " + name, wrong(t.call("read", t.write("bad.json", data)), "FORMAT", [words]))
    typed = [("doubles", '[1.5, 2.5]', '["1.5", "Infinity"]'), ("doubles that are NaN", '[1.5, 2.5]', '["NaN", "-Infinity"]'), ("uint64 at their end", '["1", "2"]', '["18446744073709551615", 0]'), ("int32 at its end", "[7]", "[2147483647]"), ("int32 at its other end", "[7]", '["-2147483648"]')]
    for name, old, new in typed:
        text = BASE.replace(old, new)
        p, got = copied(t.write("edited.json", text))
        t.case("json: " + name, p.stderr.decode()[-300:])
    for name, old, new in (("uint64 beyond", '["1", "2"]', '["18446744073709551616", 0]'), ("uint64 below", '["1", "2"]', '["-1", 0]'), ("int32 beyond", "[7]", "[2147483648]"), ("int32 below", "[7]", "[-2147483649]"), ("a double beyond", '[1.5, 2.5]', '[1e309, 2.5]')):
        text = BASE.replace(old, new)
        t.case("json: " + name, "google takes it" if google(text) is not None else wrong(t.call("read", t.write("edited.json", text)), "FORMAT"))


def varint(n):
    out = b""
    while n > 127: out += bytes([n & 127 | 128]); n >>= 7
    return out + bytes([n])


def field(number, kind, data): return varint(number << 3 | kind) + (varint(len(data)) + data if kind == 2 else data)


def check_wire():
    """Models with bytes put in. protobuf judges, but for strings that are no text, and for duplicated messages, which it merges as the format says."""
    m = onnx.load_from_string(json_format.Parse(BASE, onnx.ModelProto()).SerializeToString())
    whole = m.SerializeToString()
    def protobuf(data):
        try: return onnx.load_from_string(data)
        except Exception: return None
    more = {"a field of the future": field(300, 0, varint(5)), "a text of the future": field(301, 2, b"hello"), "32 bits of the future": field(302, 5, b"abcd"), "64 bits of the future": field(303, 1, b"abcdefgh"),
            "a field of the future, cut": field(302, 5, b"ab"), "a text that ends beyond the file": varint(301 << 3 | 2) + varint(99) + b"x", "a field number 0": varint(2) + varint(1) + b"x", "a wire type 6": varint(300 << 3 | 6) + b"x",
            "a wire type 7": varint(300 << 3 | 7), "a varint without an end": b"\xff" * 11, "a tag without an end": b"\x80", "a version of another wire type": field(1, 2, b"8"), "a version that comes twice": field(1, 0, varint(9)),
            "a name that is a number": field(2, 0, varint(7)), "a name that is no text": field(2, 2, b"\xff\xfe"), "a name with a NUL": field(2, 2, b"a\0b"), "a second graph that adds nothing": field(7, 2, b""),
            "a second graph that adds a text": field(7, 2, field(10, 2, b"doc")), "a graph that is a number": field(7, 0, varint(3)), "a graph that ends beyond it": field(7, 2, field(1, 2, b"abc")[:-1]),
            "a varint longer than it must be": varint(1 << 3) + b"\x88\x80\x80\x00", "metadata with nothing in it": field(14, 2, b"")}
    for name, data in more.items():
        want = protobuf(whole + data)
        text = name in ("a name that is no text", "a name with a NUL")                        # ONNX's strings are text
        p, got = copied(t.write("edited.onnx", whole + data))
        if want is None or text: t.case("wire: " + name, wrong(p, "FORMAT"))
        else: t.case("wire: " + name, p.stderr.decode()[-300:] if got is None else "" if parts(got)[:2] == parts(want)[:2] and got.ir_version == want.ir_version else "%s is not %s" % (parts(got), parts(want)))
    tensors = {"floats, packed": (field(1, 0, varint(2)) + field(2, 0, varint(1)) + field(4, 2, np.float32([1, 2]).tobytes()), True), "floats, one by one": (field(1, 0, varint(2)) + field(2, 0, varint(1)) + field(4, 5, np.float32(1).tobytes()) + field(4, 5, np.float32(2).tobytes()), True),
               "floats, packed and not": (field(1, 0, varint(2)) + field(2, 0, varint(1)) + field(4, 2, np.float32([1]).tobytes()) + field(4, 5, np.float32(2).tobytes()), True), "dimensions, packed": (field(1, 2, varint(2)) + field(2, 0, varint(1)) + field(9, 2, bytes(8)), True),
               "doubles, packed": (field(1, 0, varint(2)) + field(2, 0, varint(11)) + field(10, 2, np.float64([1, 2]).tobytes()), True), "doubles, one by one": (field(1, 0, varint(1)) + field(2, 0, varint(11)) + field(10, 1, np.float64(3).tobytes()), True),
               "floats, packed, cut": (field(1, 0, varint(2)) + field(2, 0, varint(1)) + field(4, 2, bytes(7)), False), "integers, packed, cut": (field(1, 0, varint(1)) + field(2, 0, varint(7)) + field(7, 2, b"\x80"), False),
               "a packed list that ends beyond it": (field(1, 0, varint(1)) + varint(7 << 3 | 2) + varint(50) + b"x", False), "a place of data that there is not": (field(1, 0, varint(2)) + field(2, 0, varint(1)) + field(14, 0, varint(7)) + field(9, 2, bytes(8)), True),
               "a name of another wire type": (field(1, 0, varint(2)) + field(2, 0, varint(1)) + field(8, 5, bytes(4)) + field(9, 2, bytes(8)), True), "a negative dimension": (field(1, 0, varint((1 << 64) - 1)) + field(2, 0, varint(1)), False)}
    for name, (data, right) in tensors.items():
        p = t.call("read", t.write("edited.onnx", whole + field(7, 2, field(5, 2, data + field(8, 2, b"extra")))))
        t.case("wire: " + name, p.stderr.decode()[-300:] if right else "" if p.returncode == 3 and re.search(rb"MLO_E_(FORMAT|SHAPE|DATA)", p.stderr) else "status %d: %s" % (p.returncode, p.stderr.decode()[-300:]))
    deep = onnx.AttributeProto(name="b", type=onnx.AttributeProto.INT, i=1).SerializeToString()
    for _ in range(40): deep = field(1, 2, b"b") + field(6, 2, field(1, 2, field(4, 2, b"If") + field(5, 2, deep)))
    t.case("wire: graphs in graphs", wrong(t.call("read", t.write("edited.onnx", whole + field(7, 2, field(1, 2, field(4, 2, b"If") + field(5, 2, deep))))), "FORMAT", ["nested more than"]))


if __name__ == "__main__": t.main(check_pairs, check_unrolled, check_json, check_wire, floor=227)
