#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Odd graphs: what ONNX allows and nobody exports, and what it does not allow. Right, or refused by name; never a crash, never another answer.

    python tests/test_odd.py path/to/mlo [NAME ...]

    pairs        two models that `mlo check` must call equal, or whose difference it must name
    unrolled     a Scan over a stack of each spelling, against its layers written out
    unknown      what no rule of check covers, equal to itself alone; and loops in odd places
    places       large constants, which check first compares by where they lie
    layers       layers that differ in one thing: one loop, or none
    json         JSON that google.protobuf reads, or refuses
    wire         the same of the binary form
    branches     Ifs whose condition is a constant become a branch: no If is left, ONNX Runtime's result is the same; and those that are not
    subgraphs    Scan, Loop and If whose parts do not fit: refused by name; or fit though they look odd: ONNX Runtime's result
    operators    one node each, with ranks, types, sizes, attributes that fit badly or not: ONNX Runtime's result, or a refusal that names the node

Judges: the definitions of ONNX, ONNX Runtime, google.protobuf."""
import os
import pickle
import re
import numpy as np
import onnx
from google.protobuf import json_format
from onnx import TensorProto as T, helper as h, numpy_helper
import harness as t
from graphs import difference, execute, shapes
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
    t.case("check: " + name, wrong(p, code, words, document=True) if words else "" if p.returncode == 0 else p.stderr.decode()[-300:] or "it says nothing")


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
    twice = (lambda m: (m.graph.node[0].attribute.append(h.make_attribute("a", 1)), m)[1])(strange(1, b=2))
    compared("an attribute said twice", twice, twice)
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
    bends = lambda alpha, *order: model([*(node(op, ["x"], [op], name=op.lower(), alpha=alpha) for op in order), node("Add", list(order), ["y"], name="sum")], [x], [y])
    compared("both operands of a sum differ, in their order", bends(0.1, "Elu", "LeakyRelu"), bends(0.2, "Elu", "LeakyRelu"), "elu", "attributes here")
    compared("both operands of a sum differ, exchanged", bends(0.1, "Elu", "LeakyRelu"), bends(0.2, "LeakyRelu", "Elu"), "attributes here")
    compared("both operands of a sum are others", bends(0.1, "Elu", "LeakyRelu"), bends(0.1, "Celu", "ThresholdedRelu"), "Elu elu here, Celu celu in the original")
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
    custom = lambda version: (lambda m: (setattr(m.opset_import[1], "version", version), m)[1])(strange(1))
    compared("another version of a person's own operators", strange(1), custom(2), "version 2 of the operators 'custom'")
    said = lambda: (lambda m: (setattr(m.opset_import[0], "domain", "ai.onnx"), m)[1])(strange(1))
    compared("the standard's domain, said in one", strange(1), said())
    compared("the standard's domain, said in the other", said(), strange(1))
    def nibbles(kind, *casts):
        """A constant of 4 bits that goes through these types."""
        names = ["w", *("c%d" % k for k in range(len(casts)))]
        return model([*(node("Cast", [names[k]], [names[k + 1]], to=to) for k, to in enumerate(casts)), node("Strange", [names[-1]], ["y"], name="only", domain="custom")],
                     [], [f32("y", 4)], [h.make_tensor("w", kind, [4], [1, 2, 3, 7])], opset=21)
    for kind, other in (T.INT4, T.UINT4), (T.UINT4, T.INT4):
        compared("4 bits (type %d) as 8, and back" % kind, nibbles(kind, T.INT8, kind), nibbles(kind))
        compared("4 bits (type %d) as 8, and as the other 4" % kind, nibbles(kind, T.INT8, other), nibbles(kind), "only")
        compared("4 bits (type %d) as 8, and as 16" % kind, nibbles(kind, T.INT8, T.INT16), nibbles(kind, T.INT8), "differs")
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
    compared("all taps", scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True), scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True))
    def taps_of(op, read):
        """What op makes in each iteration, all of it an output, or read by a node."""
        b = h.make_graph([node("Add", ["s", "e"], ["z"], name="inner"), node(op, ["e"], ["tap"], name="aside")], "body", [f32("s", 2), f32("e", 2)], [f32("z", 2), f32("tap", 2)])
        m = scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True, body=b)
        return ends(m) if read else m
    ends = lambda m: (m.graph.node.append(node("Neg", ["taps"], ["all"])), m.graph.output.pop(), m.graph.output.append(f32("all", 3, 2)), m)[3]
    compared("all taps, read by a node", ends(scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True)), ends(scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True)))
    for read in False, True: compared("all taps%s, of another operator" % (", read by a node" if read else ""), taps_of("Neg", read), taps_of("Exp", read), "aside", "Neg aside here, Exp aside in")
    out = written()
    for k in range(3): out.graph.node.extend([node("Neg", ["r%d" % k], ["g%d" % k]), node("Unsqueeze", ["g%d" % k, "axes"], ["h%d" % k])])
    out.graph.node.append(node("Concat", ["h0", "h1", "h2"], ["taps"], axis=0))
    out.graph.output.append(f32("taps", 3, 2))
    out.graph.initializer.append(array(axes[1], "axes"))
    tapped = scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True)
    compared("taps, written out", out, tapped, "differs: .*all iterations of scan")
    compared("taps, against those written out", tapped, out, "differs: .*all iterations of scan")
    def resumed(op):
        """All taps are the state that another Scan begins with."""
        m, over = scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True), [f32("s", 3, 2), f32("e", 2)]
        m.graph.node.append(node("Scan", ["taps", "stack"], ["all"], name="second", num_scan_inputs=1, body=h.make_graph([node(op, ["s", "e"], ["z"])], "second", over, [f32("z", 3, 2)])))
        m.graph.output.pop(), m.graph.output.append(f32("all", 3, 2))
        return m
    compared("all taps, a state", resumed("Add"), resumed("Add"))
    compared("all taps, a state of something else", resumed("Add"), resumed("Mul"), "differs")
    numbered = lambda kind=T.INT64, shape=(): h.make_graph([node("Cast", ["e"], ["f"], to=T.FLOAT), node("Add", ["s", "f"], ["z"])], "body", [f32("s", 2), h.make_tensor_value_info("e", kind, list(shape))], [f32("z", 2)])
    steps = lambda order: model([node("Add", ["x" if not k else "a%d" % k, "n%d" % n], ["a%d" % (k + 1) if k < 2 else "y"]) for k, n in enumerate(order)], [f32("x", 2)], [f32("y", 2)], [("n%d" % n, np.float32(n)) for n in set(order)])
    same = lambda: scanned("ks", [("ks", i64(0, 1, 2))], body=numbered())
    compared("a stack of numbers", same(), same())
    compared("a stack of other numbers", same(), scanned("ks", [("ks", i64(0, 1, 3))], body=numbered()), "constant")
    scalars = [h.make_tensor_value_info("r%d" % k, T.FLOAT, []) for k in range(3)]
    inner = lambda *e: h.make_graph([node("Add", ["s", "e"], ["z"])], "body", [f32("s", 2), f32("e", *e)], [f32("z", 2)])
    of_scalars = lambda m: (m.graph.ClearField("input"), m.graph.input.extend([f32("x", 2), *scalars]), m)[2]
    rows_of = lambda target: [node("Reshape", ["r%d" % k, "one"], ["u%d" % k]) for k in range(3)] + [node("Concat", ["u0", "u1", "u2"], [target], axis=0)]
    compared("a stack of scalars", scanned("stack", [("one", i64(1))], nodes=rows_of("stack"), inputs=scalars, body=inner()), of_scalars(written()))
    compared("a stack of scalars, exchanged", scanned("stack", [("one", i64(1))], nodes=rows_of("stack"), inputs=scalars, body=inner()), of_scalars(written(order=(0, 2, 1))), "input r2 here, input r1 in")
    singles = [f32("r%d" % k, 1) for k in range(3)]
    of_singles = lambda m: (m.graph.ClearField("input"), m.graph.input.extend([f32("x", 2), *singles]), m)[2]
    compared("a stack of single rows, which have no axis to lose", scanned("stack", [("one", i64(1))], nodes=rows_of("stack"), inputs=singles, body=inner()), of_singles(written()), "differs")
    old = lambda axis: [node("Unsqueeze", ["r%d" % k], ["u%d" % k], axes=axis) for k in range(3)]
    eleven = lambda m: (setattr(m.opset_import[0], "version", 11), m)[1]
    compared("a stack of Unsqueezes whose axes are an attribute", eleven(scanned("stack", nodes=[*old([0]), joined], inputs=ins)), eleven(written()))
    compared("a stack of rows turned into columns", eleven(scanned("stack", nodes=[*old([1]), joined], inputs=ins, body=inner(1))), eleven(written()), "differs")
    two = eleven(scanned("stack", nodes=[*old([0, 1]), joined], inputs=scalars, body=inner(1)))
    compared("a stack of parts with two new axes, an attribute, and itself", two, two)
    compared("a stack of parts with two new axes, an attribute, written out", two, eleven(of_scalars(written())), "differs")
    compared("a stack that is repeated along a row", scanned("stack", [("shape", i64(3, 2))], nodes=[node("Expand", ["r0", "shape"], ["stack"])], inputs=singles, body=inner(2)), of_singles(written(order=(0, 0, 0))), "differs")
    compared("a stack of numbers of 32 bits", scanned("ks", [("ks", np.int32([0, 1, 2]))], body=numbered(T.INT32)), steps((0, 1, 2)), "differs")
    compared("a stack of columns of numbers", scanned("ks", [("ks", i64([0], [1], [2]))], body=numbered(T.INT64, [1])), steps((0, 1, 2)), "differs")
    def gathers(at, k, shape=(2,), **more):
        """Taps gathered by an index of any kind, against tap k: (a, b)"""
        a, b = scanned("stack", [axes], nodes=[*raised, joined], inputs=ins, taps=True, gather=0), written()
        b.graph.node.append(node("Neg", ["r%d" % k], ["g"]))
        b.graph.output.append(f32("g", 2))
        a.graph.output[-1].CopyFrom(f32("g", *shape))
        a.graph.initializer[-1].CopyFrom(array(np.asarray(at, np.int64), "at"))
        for key, value in more.items(): a.graph.node[-1].attribute[0].CopyFrom(h.make_attribute(key, value))
        return a, b
    compared("taps, the one row of them gathered as a stack of one", *gathers([1], 1, (1, 2)), "differs")
    compared("taps, gathered along another axis", *gathers(1, 1, (3,), axis=1), "differs")
    compared("taps, gathered from behind", *gathers(-1, 2), "differs")
    compared("taps, gathered beyond the last", *gathers(3, 2), "differs")
    del stack, parts, want


def check_unknown():
    """What no rule of check covers is compared as it stands: equal to itself alone; and a Scan wherever it stands."""
    axes, ins = ("axes", i64(0)), [f32("r%d" % k, 2) for k in range(3)]
    raised = [node("Unsqueeze", ["r%d" % k, "axes"], ["u%d" % k]) for k in range(3)]
    joined = node("Concat", ["u0", "u1", "u2"], ["stack"], axis=0)
    inner = lambda *e: h.make_graph([node("Add", ["s", "e"], ["z"])], "body", [f32("s", 2), f32("e", *e)], [f32("z", 2)])
    def sums(of, order=(0, 1, 2)):
        """x + r0 + r1 + .., of inputs like that"""
        names = ["x", *("a%d" % k for k in range(len(order) - 1)), "y"]
        return model([node("Add", [names[k], "r%d" % r], [names[k + 1]]) for k, r in enumerate(order)], [f32("x", 2), *of], [f32("y", 2)])
    def alone(name, a, b):
        """b: its layers, or what is like it of other parts"""
        compared(name + ", and itself", a, a)
        compared(name + ", and another", a, b, "differs")
    uneven = [f32("r0", 1), f32("r1", 3), f32("r2", 2)]
    flat = lambda *order: scanned("stack", [("shape", i64(3, 2))], nodes=[node("Concat", list(order), ["long"], axis=0), node("Reshape", ["long", "shape"], ["stack"])], inputs=uneven)
    alone("a stack of parts whose sizes only add up", flat("r0", "r1", "r2"), flat("r1", "r0", "r2"))
    rows = [f32("r%d" % k, 1, 2) for k in range(3)]
    repeated = lambda row: scanned("stack", [("shape", i64(3, 2))], nodes=[node("Expand", [row, "shape"], ["stack"])], inputs=rows)
    alone("a row that is repeated, not stacked", repeated("r0"), repeated("r1"))
    mixed = lambda *order: scanned("stack", [axes], nodes=[*raised[:2], node("Concat", list(order), ["stack"], axis=0)], inputs=[*ins[:2], f32("r2", 1, 2)])
    alone("a stack of which a part has its axis already", mixed("u0", "u1", "r2"), mixed("u1", "u0", "r2"))
    scalars = [h.make_tensor_value_info("r%d" % k, T.FLOAT, []) for k in range(3)]
    alone("a stack of parts with two new axes", scanned("stack", [("axes", i64(0, 1))], nodes=[*raised, joined], inputs=scalars, body=inner(1)), sums(scalars))
    sizes = h.make_tensor_value_info("shape", T.INT64, [2])
    alone("a stack as high as an input says", scanned("stack", nodes=[node("Expand", ["r0", "shape"], ["stack"])], inputs=[ins[0], sizes]), sums([ins[0], sizes], (0, 0, 0)))
    alone("a stack reshaped as an input says", scanned("stack", nodes=[node("Concat", ["r0", "r1", "r2"], ["long"], axis=0), node("Reshape", ["long", "shape"], ["stack"])], inputs=[*ins, sizes]), sums([*ins, sizes]))
    reshaped = lambda order, of, front=(): scanned("stack", [("shape", i64(3, 2))], nodes=[*front, node("Concat", list(order), ["long"], axis=0), node("Reshape", ["long", "shape"], ["stack"])], inputs=of)
    unknown = [node("Strange", ["r%d" % k], ["q%d" % k], domain="custom") for k in range(3)]
    alone("a stack of parts of unknown shape", reshaped(("q0", "q1", "q2"), ins, unknown), reshaped(("q1", "q0", "q2"), ins, unknown))
    alone("a stack of rows that are reshaped to rows", reshaped(("r0", "r1", "r2"), rows), reshaped(("r1", "r0", "r2"), rows))
    columns = lambda *order: scanned("stack", nodes=[node("Concat", list(order), ["stack"], axis=1)], inputs=[f32("r0", 3, 1), f32("r1", 3, 1)])
    alone("a stack made of columns", columns("r0", "r1"), columns("r1", "r0"))
    high = lambda row: scanned("stack", [("shape", i64(2000000, 2))], nodes=[node("Expand", [row, "shape"], ["stack"])], inputs=ins, n=2000000)
    alone("a row repeated more often than layers are", high("r0"), high("r1"))
    def fewer(op):
        """A Scan with a state that it does not give back."""
        b = h.make_graph([node(op, ["s", "e"], ["z"])], "body", [f32("s", 2), f32("u", 2), f32("e", 2)], [f32("z", 2)])
        return model([node("Scan", ["x", "v", "rows"], ["y"], name="scan", body=b, num_scan_inputs=1)], [f32("x", 2), f32("v", 2), f32("rows", 3, 2)], [f32("y", 2)])
    alone("a Scan of fewer outputs than states", fewer("Add"), fewer("Mul"))
    body = lambda bias=0.5: h.make_graph([node("Cast", ["e"], ["f"], to=T.FLOAT), node("Add", ["s", "f"], ["p"]), node("Add", ["p", "b"], ["z"])], "body",
                                         [f32("s", 2), h.make_tensor_value_info("e", T.INT64, [])], [f32("z", 2)], [array(np.float32(bias), "b")])
    long = lambda last, bias=0.5, n=20000: scanned("ks", [("ks", i64(*range(n), last))], body=body(bias))
    compared("a loop too long to be written out", long(0), long(0))
    compared("a loop too long, another constant in it", long(0), long(0, 1.5), "scan", "attributes here")
    compared("a loop of too many nodes", long(0, n=4000), long(0, n=4000))
    compared("a loop of too many nodes, another number at its end", long(0, n=4000), long(1, n=4000), "scan", "constant ks")
    compared("a loop too long, another number at its end", long(0), long(1), "scan", "constant ks")
    def branch(nodes, front=()):
        then, other = h.make_graph(list(nodes), "then", [], [f32("y", 2)]), h.make_graph([node("Neg", ["x"], ["n"])], "else", [], [f32("n", 2)])
        return model([*front, node("If", ["c"], ["w"], name="if", then_branch=then, else_branch=other)], [f32("x", 2), h.make_tensor_value_info("c", T.BOOL, []), *ins], [f32("w", 2)], [axes])
    loop = lambda: branch(scanned("stack").graph.node, [*raised, joined])
    compared("a Scan in a branch", loop(), branch(sums(ins).graph.node))
    compared("a Scan in a branch, layers exchanged", loop(), branch(sums(ins, (0, 2, 1)).graph.node), "if", "attributes here")
    picked = lambda **axis: model([node("Gather", ["x", "i"], ["y"], name="only", **axis)], [f32("x", 2, 2)], [f32("y", 2, 2)], [("i", i64(1, 0))])
    compared("an attribute that says what its operator does without", picked(), picked(axis=0))
    compared("an attribute that says what another operator does without", picked(), picked(axis=1), "only", "attributes here")
    twice = lambda *operands: model([node("Add", list(operands), ["y"], name="only")], [f32("x", 2)], [f32("y", 2)], [("w", np.float32([1, 2])), ("v", np.float32([3, 4]))])
    compared("a value twice, or once", twice("x", "x"), twice("x", "w"), "only", "input x here, constant w")
    compared("a value once, or twice", twice("v", "x"), twice("x", "x"), "only", "constant v .* here, input x")
    compared("a constant twice, or once", twice("w", "w"), twice("w", "x"), "constant w .* here, input x")
    straight = lambda name: model([node("Identity", [name], ["y"])], [f32("x", 2), f32("z", 2)], [f32("y", 2)])
    compared("an output that is an input", straight("x"), straight("x"))
    compared("an output that is another input", straight("x"), straight("z"), "output 'y' differs: input x here, input z")
    ghost = looped()
    ghost.graph.node[0].attribute[0].g.node[0].input[1] = "ghost"
    compared("an original that reads what nobody makes", looped(), ghost, "ghost", code="GRAPH")


def large(name, where, offset, size=40000, shown="w"):
    """x + a constant that lies in a file, large enough for check to compare places first."""
    w = onnx.TensorProto(name=shown, data_type=T.FLOAT, dims=[size], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in ("location", where), ("offset", str(offset)), ("length", str(4 * size)): w.external_data.add(key=key, value=value)
    return model([node("Add", ["x", shown], ["y"], name=name)], [f32("x", size)], [f32("y", size)], [w])


def check_places():
    """Large constants, of which check first asks where they lie: their elements decide, not the place."""
    a = np.random.default_rng(1).standard_normal(40000).astype(np.float32)
    b = a.copy()
    b[-1] += 1
    t.write("one.data", np.concatenate([a, a, b]).tobytes())
    t.write("two.data", np.concatenate([a, b]).tobytes())
    size = a.nbytes
    compared("a large constant in its place", large("sum", "one.data", 0), large("sum", "one.data", 0))
    compared("the same in another place of its file", large("sum", "one.data", size), large("sum", "one.data", 0))
    compared("the same in another file", large("sum", "two.data", 0), large("sum", "one.data", 0))
    compared("another in its file", large("sum", "one.data", 2 * size), large("sum", "one.data", 0), "sum", "constant w .float .40000.. here")
    compared("another in another file, at the same place", large("sum", "two.data", size), large("sum", "one.data", size), "sum", "constant w")
    within = large("sum", "one.data", 0)
    within.graph.initializer[0].CopyFrom(array(a, "w"))
    compared("the same within the model", within, large("sum", "one.data", 0))
    within.graph.initializer[0].CopyFrom(array(b, "w"))
    compared("another within the model", within, large("sum", "one.data", 0), "sum", "constant w")


# ---- layers that look alike ------------------------------------------------------------------------------------------------------------------

def layered(*layers, more=(), init=(), inputs=(), outputs=(), **kw):
    """x -> what a layer makes of it -> tanh(. m + w), layer after layer; each is called with its number, its input and its output."""
    nodes, w = list(more), [v for k in range(len(layers)) for v in (("w%d" % k, np.float32([k + 1, k - 2])), ("m%d" % k, np.float32([[1, k], [0.5, -k]])))]
    for k, layer in enumerate(layers):
        made = layer(k, "x%d" % k, "s%d" % k)
        nodes += [*(made if isinstance(made, list) else [made]), node("MatMul", ["s%d" % k, "m%d" % k], ["t%d" % k]), node("Add", ["t%d" % k, "w%d" % k], ["a%d" % k]), node("Tanh", ["a%d" % k], ["x%d" % (k + 1)])]
    return model(nodes, [f32("x0", 2), *inputs], [f32("x%d" % len(layers), 2), *outputs], [*w, *init], **kw)


def rolled(name, m, times, feeds=None):
    """A case: so many layers become one loop, which computes what the layers do (feeds: for ONNX Runtime); or (0) none is found."""
    p = t.call("roll", saved("layers.onnx", m), "--onnx")
    if not times: return t.case("layers: " + name, wrong(p, "LOOP", document=False))
    if p.returncode: return t.case("layers: " + name, p.stderr.decode()[-300:])
    got = onnx.load_from_string(p.stdout)
    why = "" if [n for n, _ in shapes(got)] == [times] else "loops of %s" % shapes(got)
    if feeds and not why: why = "" if difference(execute(m, feeds), execute(got, feeds)) < 1e-6 else "ONNX Runtime computes something else"
    q = t.call("check", saved("rolled.onnx", got), "--against", saved("layers.onnx", m))
    t.case("layers: " + name, why or (q.stderr.decode()[-300:] if q.returncode else ""))


def check_layers():
    """Layers whose operators differ in one thing are no layers of one loop; in a thing that means nothing, they are."""
    def odd(value, op="Strange", **more):
        def make(k, x, y):
            n = node(op, [x], [y], name="odd%d" % k, domain="custom")
            if value is not None: n.attribute.append(h.make_attribute("a", value() if callable(value) else value))
            for key, v in more.items(): setattr(n, key, v)
            return n
        return make
    tensor = lambda *v: array(np.float32(v), "t")
    kinds = [("a float", 1.5, 2.5), ("an integer", 3, 4), ("a text", "ab", "ac"), ("a text of another length", "ab", "abc"), ("a tensor", tensor(1, 2), tensor(1, 3)), ("floats", [1.5, 2.5], [1.5, 2.25]),
             ("fewer floats", [1.5, 2.5], [1.5]), ("integers", [1, 2], [2, 1]), ("fewer integers", [1, 2], [1]), ("texts", ["a", "b"], ["a", "c"]), ("fewer texts", ["a", "b"], ["a"]), ("tensors", [tensor(1), tensor(2)], [tensor(1), tensor(3)]),
             ("fewer tensors", [tensor(1), tensor(2)], [tensor(1)]), ("a graph", subgraph(), subgraph(2.0)), ("a graph of another operator", subgraph(), subgraph(op="Mul")), ("graphs", [subgraph(), subgraph()], [subgraph(), subgraph(2.0)]),
             ("fewer graphs", [subgraph(), subgraph()], [subgraph()]), ("a value of another type", 3, "3"), ("an attribute that only one has", 3, None)]
    for name, a, b in kinds:
        rolled("alike in " + name, layered(odd(a), odd(a), odd(a)), 3)
        rolled("other in " + name, layered(odd(a), odd(b), odd(a)), 0)
    rolled("a graph with names of its own", layered(odd(subgraph()), odd(subgraph(name="other", inputs=("k", "go", "state"))), odd(subgraph())), 3)
    rolled("another operator", layered(odd(1), odd(1, "Other"), odd(1)), 0)
    rolled("another domain", layered(odd(1), odd(1, domain="elsewhere"), odd(1)), 0)
    rolled("another overload", layered(odd(1), odd(1, overload="b"), odd(1)), 0)
    x = {"x0": np.float32([0.5, -0.25])}
    relu = lambda domain: lambda k, x, y: node("Relu", [x], [y], domain=domain)
    rolled("the standard domain by both its names", layered(relu(""), relu("ai.onnx"), relu("")), 3)
    def alike(states=1, opset=18):
        """Three layers tanh(s m + r) that share m: nothing is of one layer alone. r is s; or (states=2) of the first layer another input."""
        nodes = []
        for k in range(3): nodes += [node("MatMul", ["s%d" % k, "m"], ["p%d" % k]), node("Add", ["p%d" % k, "r" if states > 1 and not k else "s%d" % k], ["a%d" % k]), node("Tanh", ["a%d" % k], ["s%d" % (k + 1)])]
        return model(nodes, [f32("s0", 2), *([f32("r", 2)] if states > 1 else [])], [f32("s3", 2)], [("m", np.float32([[0.5, -1], [2, 0.25]]))], opset=opset)
    def passed(k, x, y):
        """One branch hands on what is outside of it."""
        then, other = h.make_graph([], "then", [], [f32(x, 2)]), h.make_graph([node("Neg", [x], ["e%d" % k])], "else", [], [f32("e%d" % k, 2)])
        return node("If", ["c"], [y], name="if%d" % k, then_branch=then, else_branch=other)
    rolled("a branch that hands on an outer value", layered(passed, passed, passed, inputs=[h.make_tensor_value_info("c", T.BOOL, [])]), 3)
    beside = layered(*[lambda k, x, y: node("Sub", [x, "c%d" % k], [y])] * 4, inputs=[f32("c%d" % k, 2) for k in (0, 1, 2)])
    beside.graph.node.insert(6, node("Exp", ["x1"], ["c3"], name="beside"))
    rolled("a node beside them, of the first for the last", beside, 3, {"x0": np.float32([0.5, -0.25]), **{"c%d" % k: np.float32([k, 1]) for k in range(3)}})
    s0, r = np.float32([0.5, -0.25]), np.float32([1, 2])
    rolled("of which none has anything of its own", alike(), 3, {"s0": s0})
    rolled("two states that go on as one", alike(2), 3, {"s0": s0, "r": r})
    rolled("of an opset that has another Scan", alike(opset=8), 3, {"s0": s0})
    p = t.call("roll", saved("layers.onnx", alike(opset=6)), "--onnx")
    t.case("layers: of an opset before those that are read", wrong(p, "UNSUPPORTED", ["a loop takes opset 13; convert the model from 6"], document=False))
    two = lambda *outs: lambda k, x, y: node("Dropout", [x], [o % k if o else o for o in (y.replace("%d" % k, "%d"), *outs)])
    rolled("an output left out", layered(two(""), two(""), two("")), 3, x)
    clip = lambda low: lambda k, x, y: node("Clip", [x, "low" if low else "", "high"], [y])
    limits = [("low", np.float32(-0.25)), ("high", np.float32(0.25))]
    rolled("an input left out", layered(clip(0), clip(0), clip(0), init=limits), 3, x)
    rolled("an input that one leaves out", layered(clip(0), clip(1), clip(0), init=limits), 0)
    scale = lambda k, x, y: node("Mul", [x, "q%d" % k], [y])
    for opset in 12, 18:            # axes of Unsqueeze are an attribute, or an input
        fed = layered(scale, scale, scale, more=[node("Exp", ["e%d" % k], ["q%d" % k]) for k in range(3)], inputs=[f32("e%d" % k, 2) for k in range(3)], opset=opset)
        rolled("values that come in, opset %d" % opset, fed, 3, {**x, **{"e%d" % k: np.float32([k, -k]) for k in range(3)}})
    small = lambda k, x, y: [node("DequantizeLinear", ["i%d" % k, "step"], ["d%d" % k]), node("MatMul", [x, "d%d" % k], [y])]
    nibbles = [h.make_tensor("i%d" % k, T.INT4, [2, 2], [k, -3, 7, -8]) for k in range(3)]
    rolled("4-bit integers", layered(small, small, small, init=[("step", np.float32(0.5)), *nibbles], opset=21), 3, x)
    for kind in T.INT4, T.UINT4:
        def turns(k, x, y): return [node("DequantizeLinear", ["i%d" % k, "steps", "zero%d" % (k % 2)], ["d%d" % k], axis=1), node("MatMul", [x, "d%d" % k], [y])]
        each = [h.make_tensor("i%d" % k, kind, [2, 2], [k, 3, 7, 5]) for k in range(4)] + [h.make_tensor("zero%d" % k, kind, [2], [2 + k, 5 - k]) for k in range(2)]
        rolled("4-bit zero points that layers take turns in, %s" % T.DataType.Name(kind), layered(turns, turns, turns, turns, init=[("steps", np.float32([0.5, 0.25])), *each], opset=21), 4, x)
    said = [node("Constant", [], ["c"], value=array(np.float32([1, 2]), "c"))]
    mul = lambda k, x, y: node("Mul", [x, "c"], [y])
    rolled("a constant that is an output, too", layered(mul, mul, mul, more=said, outputs=[f32("c", 2)]), 3, x)
    deep = lambda k, x, y: node("Strange", [x, "d%d" % k], [y], domain="custom")
    dims = lambda *d: [("d%d" % k, np.float32(np.arange(np.prod(n))).reshape(n)) for k, n in enumerate(d)]
    rolled("constants of twelve dimensions, of one shape or not", layered(deep, deep, deep, init=dims([1] * 12, [1] * 11 + [2], [1] * 12)), 0)
    def branches(k, x, y, inner="i"):
        """If: what its branches read from outside differs from layer to layer."""
        yes = h.make_graph([node("Mul", [x, "v%d" % k], [inner + "m"]), node("Clip", [inner + "m", "", "high"], [inner])], "yes", [], [f32(inner, 2)])
        no = h.make_graph([node("If", ["c"], [inner + "n"], then_branch=h.make_graph([node("Neg", [x], [inner + "o"])], "in", [], [f32(inner + "o", 2)]), else_branch=h.make_graph([node("Add", [x, "v%d" % k], [inner + "p"])], "out", [], [f32(inner + "p", 2)]))],
                          "no", [], [f32(inner + "n", 2)])
        return node("If", ["c"], [y], name="if%d" % k, then_branch=yes, else_branch=no)
    v = [("v%d" % k, np.float32([k + 0.5, 1])) for k in range(3)]
    flag = h.make_tensor_value_info("c", T.BOOL, [])
    for c in True, False:
        rolled("graphs that read from outside, %s" % c, layered(branches, branches, branches, init=v + limits, inputs=[flag]), 3, {**x, "c": np.array(c)})
    def listed(k, x, y):
        """A list of graphs, which read the layer's input and what is the layer's own."""
        n = node("Strange", [x], [y], domain="custom")
        n.attribute.append(h.make_attribute("a", [h.make_graph([node("Mul", [x, v], ["g"])], "inner", [], [f32("g", 2)]) for v in ("v%d" % k, "high")]))
        return n
    rolled("lists of graphs that read from outside", layered(listed, listed, listed, init=v + limits), 3)
    named = lambda k, x, y: branches(k, x, y, "j%d" % k)
    rolled("graphs that read from outside, names of their own", layered(named, named, named, init=v + limits, inputs=[flag]), 3, {**x, "c": np.array(True)})


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
    for text in ('"AACAPwAAAEA"', '"AACAPwAAAE A="', '"AACA"', '"A"', '"AACAPwAAAEA=="', '"AACAPw__-_8="', '"AACAPw//+/8="', '"AACA*wAAAEA="', '""', '7', '"AACAPwAAAEA=AACA"', '"AACA~wAAAEA="'):
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
           ("an object with nothing in it", b"{}", "graph"), ("an error beside something else", b'{"error": {"code": "MLO_E_LOOP"}, "graph": {}}', "no such field"),
           ("much text behind", BASE.encode() + b" more than twenty characters", "more text follows"), ("brackets without an end", b'{"graph": ' + b"[" * 5000, "nested more than"), ("objects in objects", b'{"graph": ' * 200 + b"{}" + b"}" * 200, "no such field")]
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
    # numbers that somebody reads: those of google.protobuf
    text = BASE.replace('"input": ["x"], "output": ["y"], "name": "n", "opType": "Elu", "attribute": [{"name": "alpha", "f": 1.5, "type": "FLOAT"}]', '"input": ["x", "w", "d", "u", "i"], "output": ["y"], "opType": "Thing", "domain": "odd"')
    p, got = copied(t.write("read.json", text))
    arrays = lambda m: {i.name: (i.data_type, numpy_helper.to_array(i).tolist()) for i in m.graph.initializer}
    t.case("json: numbers of every list", wrong(p, None) if got is None else "" if arrays(got) == arrays(google(text)) and len(arrays(got)) == 4 else str(arrays(got)))


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


# ---- operators ---------------------------------------------------------------------------------------------------------------------------------

def zeros(*dims): return np.zeros(dims, np.float32)
def x(*dims): return (np.arange(int(np.prod(dims)), dtype=np.float32) - 2).reshape(dims)
def f(*v): return np.array(v, np.float32)
def u8(*v): return np.array(v, np.uint8)
def i8(*v): return np.array(v, np.int8)
def i32(*v): return np.array(v, np.int32)


NONE = None
N64 = np.zeros(0, np.int64)
LONG = i64(*[1] * 70)
ROWS = [
    ("Reshape", [(x(2, 3), v) for v in (i64(6), i64(-1), i64(-1, -1), i64(4, -1), i64(0, -1), i64(0, 0), i64(2, 3, 0), i64(-2, 3), i64(7), N64, i64(1, 1, 1, 1, 1, 1, 6), i64(*[1] * 9), LONG, i32(6), i64([2, 3]), f(6), i64(1 << 62, 4))]
        + [(zeros(0, 3), v) for v in (i64(-1), i64(0, 3), i64(0, -1), i64(3, 0))] + [(f(5).reshape(()), i64(1)), (f(5).reshape(()), N64), (x(2, 3),)], [{}]),
    ("Reshape", [(x(2, 3), i64(3, 2)), (zeros(0, 3), i64(0, 3)), (zeros(0, 3), i64(3, 0))], [{"allowzero": 1}]),
    ("Flatten", [(x(2, 3, 4),), (f(5).reshape(()),), (zeros(0, 3),)], [{"axis": a} for a in (0, 1, 2, 3, 4, -1, -3, -4)]),
    ("Squeeze", [(x(1, 3, 1),), (x(1, 3, 1), i64(0)), (x(1, 3, 1), i64(0, 2)), (x(1, 3, 1), i64(-1)), (x(1, 3, 1), i64(1)), (x(1, 3, 1), i64(3)), (x(1, 3, 1), i64(0, 0)), (x(1, 3, 1), N64), (x(1, 3, 1), f(0)), (zeros(0, 1), i64(0)), (zeros(0, 1),)], [{}]),
    ("Unsqueeze", [(x(2), v) for v in (i64(0), i64(1), i64(-1), i64(0, 3), i64(2, 0), i64(3), i64(0, 0), i64(-1, 1), N64, i64(*range(8)), i64(-4))], [{}]),
    ("Transpose", [(x(2, 3, 4),)], [{}, *({"perm": p} for p in ([2, 0, 1], [0, 1], [0, 1, 1], [0, 1, 3], [-1, 0, 1], [0, 1, 2, 3]))]),
    ("Transpose", [(f(5).reshape(()),), (zeros(2, 0),)], [{}]),
    ("Slice", [(x(4, 5), *v) for v in ((i64(1), i64(3)), (i64(-3), i64(-1)), (i64(-9), i64(99)), (i64(9), i64(10)), (i64(3), i64(1)), (i64(0), i64(4), i64(2)), (i64(0), i64(4), i64(-1)), (i64(0), i64(4), i64(-3)), (i64(0, 1), i64(4)), (i64(0), i64(4), i64(0, 1)),
        (i64(0), i64(4), i64(0), i64(0)), (i64(3), i64(0), i64(0), i64(-1)), (i64(-1), i64(-9), i64(0), i64(-2)), (i64(-9), i64(-99), i64(0), i64(-1)), (i64(3), i64(-99), NONE, i64(-1)), (i64(0), i64(4), i64(0), i64(1, 2)), (i64(0), i64((1 << 63) - 1), i64(1), i64((1 << 63) - 1)),
        (i64(-(1 << 63)), i64((1 << 63) - 1)), (i64(4), i64(-(1 << 63)), i64(0), i64(-(1 << 63))), (i32(1), i32(3)), (i32(1), i32(3), i32(-1), i32(2)), (f(1), f(3)), (i64(1),), (i64(0, 0), i64(2, 2), i64(0, 0)), (LONG, LONG))], [{}]),
    ("Concat", [(x(2, 3), x(2, 3)), (x(2, 3), x(3, 3)), (x(2, 3), x(2, 3, 1)), (x(2, 3), zeros(0, 3)), (x(2, 3), i32(1)), (x(2, 3),), (f(5).reshape(()), f(5).reshape(())), ()], [{"axis": a} for a in (0, 1, -1, -2, 2, -3)] + [{}]),
    ("Expand", [(x(2, 1), v) for v in (i64(2, 3), i64(3, 2, 3), i64(1), i64(2, 0), i64(3, 3), i64(-1, 3), N64, i64(*[1] * 9), i64([2, 3]), f(2, 3), i64(1 << 40, 1 << 40, 1))] + [(x(2, 1),)], [{}]),
    ("Tile", [(x(2, 3), v) for v in (i64(1, 2), i64(2, 0), i64(2), i64(1, 2, 1), i64(-1, 1), i64([1, 2]), i32(1, 2), N64)] + [(f(5).reshape(()), N64), (f(5).reshape(()), i64(2)), (zeros(2, 0), i64(2, 2))], [{}]),
    ("Gather", [(x(3, 4), i64(0, 2)), (x(3, 4), i64(-1)), (x(3, 4), i64(3)), (x(3, 4), i64(-4)), (x(3, 4), i32([0, 1], [2, 0])), (x(3, 4), N64), (x(3, 4), f(0)), (zeros(0, 4), i64(0)), (f(5).reshape(()), i64(0)), (x(3, 4), np.int64(1)), (x(3, 4),), (x(3, 1, 1, 1, 1, 1, 1), i64([[0]]))],
        [{}, {"axis": 1}, {"axis": -1}, {"axis": 2}, {"axis": -3}]),
    ("GatherElements", [(x(3, 4), i64([0, 2, 1, -1])), (x(3, 4), i64([0], [1])), (x(3, 4), i64(0)), (x(3, 4), i64([0, 2, 1, 3, 0])), (x(3, 4), i64([9, 2, 1, -1])), (x(3, 4), zeros(0, 4).astype(np.int64))], [{}, {"axis": 1}, {"axis": -1}, {"axis": 2}]),
    ("GatherND", [(x(2, 3), i64([0, 1], [1, 2])), (x(2, 3), i64([1], [0])), (x(2, 3), i64([0, -1])), (x(2, 3), i64([0, 3])), (x(2, 3), i64([-3, 0])), (x(2, 3), i64([0, 1, 1])), (x(2, 3), zeros(1, 0).astype(np.int64)), (x(2, 3), np.int64(0)), (zeros(0, 3), zeros(0, 1).astype(np.int64))],
        [{}, {"batch_dims": 1}, {"batch_dims": 2}, {"batch_dims": -1}]),
    ("ScatterND", [(x(4), i64([1], [3]), f(8, 9)), (x(4), i64([1], [-1]), f(8, 9)), (x(4), i64([4]), f(8)), (x(4), i64([1], [3]), f(8)), (x(4), i64([1]), i32(8)), (x(2, 2), i64([1]), f([8, 9])), (i64(1, 2, 3), i64([0], [0]), i64(5, 6)), (x(4), i64(1), f(8)), (x(4), i64([1], [3]),)],
        [{}, *({"reduction": r} for r in ("none", "add", "mul", "max", "min", "nope"))]),
    ("EyeLike", [(x(3, 4),), (x(2, 3, 3),), (x(4),), (zeros(0, 3),), (i64([1, 2], [3, 4]),)], [{}, {"k": 2}, {"k": -1}, {"k": 99}, {"k": -(1 << 62)}, {"k": (1 << 63) - 1}, {"dtype": T.BOOL}, {"dtype": T.INT64, "k": 1}]),
    ("Trilu", [(x(3, 4),), (x(2, 3, 3), np.int64(1)), (x(3, 4), np.int64(-1)), (x(3, 4), np.int64(99)), (x(3, 4), np.int64(-(1 << 62))), (x(4),), (zeros(0, 3),), (x(3, 4), i64(1, 2)), (x(3, 4), f(1))], [{}, {"upper": 0}]),
    ("Pad", [(x(2, 3), v) for v in (i64(0, 1, 0, 1), i64(1, 1, 1, 1), i64(0, -1, 0, 0), i64(-1, 0, -1, 0), i64(-2, 0, -1, 0), i64(0, 1), i64(0, 5, 0, 5), i64(1, 0, 0, 1 << 50), i64(*[0] * 70), f(0, 1, 0, 1))]
        + [(x(2, 3), i64(0, 1, 0, 1), np.float32(7)), (x(2, 3), i64(1, 1), NONE, i64(0)), (x(2, 3), i64(1, 1), NONE, i64(-1)), (x(2, 3), i64(1, 1), NONE, i64(2)), (x(2, 3), i64(1, 1), NONE, i64(0, 1)), (zeros(0, 3), i64(1, 0, 1, 0)), (x(2, 3),)],
        [{}, *({"mode": m} for m in ("constant", "edge", "reflect", "wrap"))]),
    ("Split", [(x(4, 6),), (x(4, 6), i64(1, 3)), (x(4, 6), i64(4)), (x(4, 6), i64(1, 1)), (x(4, 6), i64(-1, 5)), (x(4, 6), i64(9, -5)), (x(4, 6), i64(1, 1, 2)), (x(4, 6), f(2, 2)), (f(5).reshape(()),)], [{}, {"axis": 1}, {"axis": -1}, {"axis": 2}, {"num_outputs": 2}, {"num_outputs": 3}]),
    ("Shape", [(x(2, 3, 4),), (f(5).reshape(()),)], [{}, *({"start": a, "end": b} for a, b in ((1, 2), (-1, 99), (2, 1), (-9, -1), (5, 9)))]),
    ("Range", [(np.int64(a), np.int64(b), np.int64(c)) for a, b, c in ((0, 5, 1), (5, 0, -2), (0, 5, 0), (0, 5, -1), (0, 0, 1), (-(1 << 63), (1 << 63) - 1, 1 << 62))] + [(np.float32(0), np.float32(1), np.float32(.3)), (np.int64(0), np.float32(1), np.int64(1)), (i64(0, 1), np.int64(3), np.int64(1)), (np.float32("nan"), np.float32(1), np.float32(1)), (np.float32(0), np.float32("inf"), np.float32(1))], [{}]),
    ("ConstantOfShape", [(i64(2, 3),), (i64(0),), (N64,), (i64(-1),), (i64(1 << 40, 1 << 40),), (i64([2]),), (f(2),), (i64(*[1] * 9),)], [{}, {"value": array(i32(7), "v")}, {"value": array(f(), "v")}, {"value": array(f(1, 2), "v")}]),
    ("CumSum", [(x(2, 3), v) for v in (np.int64(0), np.int64(-1), np.int64(2), i64(1), i64(0, 1), f(0))] + [(i32(1, 2, 3), np.int32(0)), (zeros(0, 3), np.int64(0)), (np.float64([1, 2]), np.int64(0)), (f(5).reshape(()), np.int64(0))], [{}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}]),
    *[(op, [(x(2, 3),), (x(2, 3), i64(0)), (x(2, 3), i64(-1)), (x(2, 3), i64(0, 1)), (x(2, 3), i64(2)), (x(2, 3), i64(1, 1)), (x(2, 3), N64), (x(2, 3), f(0)), (zeros(0, 3), i64(0)), (zeros(0, 3), i64(1)), (i32([3, -4], [5, 6]), i64(1)), (f(5).reshape(()),)], [{}, {"keepdims": 0}, {"noop_with_empty_axes": 1}])
      for op in ("ReduceMean", "ReduceMax", "ReduceProd", "ReduceLogSumExp", "ReduceL2", "ReduceMin")],
    *[(op, [(x(2, 3),), (zeros(0, 3),), (i32(3, 1, 3),), (f(float("nan"), 1),), (f(5).reshape(()),)], [{}, {"axis": 1}, {"axis": -1}, {"axis": 2}, {"axis": 0, "keepdims": 0}, {"axis": 0, "select_last_index": 1}]) for op in ("ArgMax", "ArgMin")],
    *[(op, [(x(2, 3),), (zeros(0, 3),), (x(2, 3, 2),), (f(5).reshape(()),), (i32(1, 2),), (np.float64([1, 2]),)], [{}, {"axis": 0}, {"axis": -1}, {"axis": 3}, {"axis": -4}]) for op in ("Softmax", "LogSoftmax")],
    ("LayerNormalization", [(x(2, 3), f(1, 2, 3)), (x(2, 3), f(1, 2, 3), f(0, 1, 0)), (x(2, 3), f(1, 2)), (x(2, 3), np.float32(2)), (x(2, 3), f([1, 2, 3], [4, 5, 6])), (zeros(0, 3), f(1, 2, 3)), (x(2, 3), i32(1, 2, 3)), (x(2, 3),), (x(2, 3), f(1, 2, 3), f(1))], [{}, {"axis": 0}, {"axis": 2}, {"axis": -3}]),
    ("MatMul", [(a, b) for a, b in ((x(2, 3), x(3, 2)), (x(2, 3), x(2, 3)), (x(3), x(3)), (x(3), x(3, 2)), (x(2, 3), x(3)), (x(4, 2, 3), x(3, 2)), (x(4, 2, 3), x(5, 3, 2)), (x(4, 1, 2, 3), x(5, 3, 2)), (x(2, 3), f(5).reshape(())), (x(2, 3), i32([1], [2], [3])), (zeros(2, 0), zeros(0, 3)), (zeros(0, 3), x(3, 2)), (i32([1, 2]), i32([3], [4])), (np.float64([[1, 2]]), np.float64([[3], [4]])))], [{}]),
    ("Gemm", [(x(2, 3), x(3, 2)), (x(2, 3), x(3, 2), f(1, 2)), (x(2, 3), x(3, 2), f([1], [2])), (x(2, 3), x(3, 2), f(1, 2, 3)), (x(2, 3), x(3, 2), x(2, 2, 1)), (x(2, 3), x(2, 2)), (x(2, 3, 1), x(3, 2)), (zeros(0, 3), x(3, 2)), (x(2, 3), i32([1], [2], [3])), (x(2, 3), x(3, 2), np.float32(1))], [{}, {"transA": 1}, {"transB": 1}, {"alpha": .5, "beta": 2.}]),
    ("MatMulInteger", [(u8([1, 2]), i8([3], [-4])), (u8([1, 2]), i8([3], [-4]), u8(1).reshape(()), i8(-1).reshape(())), (u8([1, 2]), i8([3], [-4]), u8(1)), (u8([1, 2], [3, 4]), u8([3, 1], [4, 1]), u8(1, 2), u8(3, 4)), (u8([1, 2]), i8([3], [-4]), u8(1, 2, 3)), (u8([1, 2]), i8([3, 4])), (i32([1, 2]), i8([3], [-4]))], [{}]),
    ("Conv", [(x(1, 2, 5), x(3, 2, 3)), (x(1, 2, 5), x(3, 2, 3), f(1, 2, 3)), (x(1, 2, 5), x(3, 2, 3), f(1, 2)), (x(1, 2, 5), x(3, 1, 3)), (x(2, 5), x(3, 2, 3)), (x(1, 2, 5), x(3, 2)), (x(1, 2, 5), x(2, 1, 3)), (zeros(0, 2, 5), x(3, 2, 3)), (x(1, 2, 2), x(3, 2, 3))],
        [{}, {"group": 2}, {"group": 0}, {"group": -1}, {"pads": [1, 1]}, {"pads": [1]}, {"pads": [-1, 0]}, {"strides": [2]}, {"strides": [0]}, {"strides": [2, 2]}, {"dilations": [2]}, {"dilations": [0]}, {"kernel_shape": [3]}, {"kernel_shape": [2]}, {"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}, {"auto_pad": "VALID"}, {"strides": [1 << 40]}]),
    ("MaxPool", [(x(1, 2, 6),), (x(2, 6),), (zeros(0, 2, 6),), (x(1, 1, 4, 4),), (u8([[1, 9, 3]]),)], [{"kernel_shape": [2]}, {"kernel_shape": [2, 2]}, {"kernel_shape": [0]}, {}, {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}, {"kernel_shape": [2], "pads": [1, 1]}, {"kernel_shape": [2], "pads": [0, 3]}, {"kernel_shape": [9]}, {"kernel_shape": [1 << 40]}, {"kernel_shape": [2], "auto_pad": "SAME_LOWER"}]),
    ("AveragePool", [(x(1, 2, 6),), (x(2, 6),), (zeros(0, 2, 6),), (x(1, 1, 4, 4),)], [{"kernel_shape": [2]}, {"kernel_shape": [2, 2]}, {}, {"kernel_shape": [2], "pads": [1, 1]}, {"kernel_shape": [2], "pads": [1, 1], "count_include_pad": 1}, {"kernel_shape": [9]}, {"kernel_shape": [2], "auto_pad": "SAME_LOWER"}]),
    ("Where", [(np.array([True, False]), f(1, 2), f(3, 4)), (np.array([[True], [False]]), f(1, 2), np.float32(9)), (f(1, 0), f(1, 2), f(3, 4)), (np.array([True]), f(1, 2), i32(3, 4)), (np.array([True, False]), f(1, 2, 3), f(1))], [{}]),
    ("Clip", [(x(4),), (x(4), np.float32(0)), (x(4), NONE, np.float32(0)), (x(4), np.float32(1), np.float32(0)), (x(4), np.float32("nan"), np.float32(0)), (i32(1, 9), np.int32(3), np.int32(5)), (i8(1, 9), np.int8(3)), (x(4), i32(1).reshape(())), (x(4), f(1, 2)), (x(4), f(1))], [{}]),
    ("Cast", [(f(1.7, -1.7, 300, -300, float("inf"), float("nan"))[:4],), (i64(1, -1, 300),), (np.array([True, False]),), (zeros(0),)], [{"to": k} for k in (T.INT8, T.UINT8, T.BOOL, T.FLOAT16, T.DOUBLE, T.INT32, T.UINT64, T.STRING, T.COMPLEX64, 0, 99)] + [{}]),
    *[(op, [(x(2, 3), x(2, 3)), (x(2, 3), f(1, 2)), (x(2, 3), zeros(0, 3)), (x(2, 3), i32(1, 2, 3)), (zeros(0, 3), x(1, 3)), (i32(7, -7, 0), i32(2, 2, 3)), (x(2, 1, 1, 1, 1, 1, 1, 2), x(2)), (x(2), NONE)], [{}]) for op in ("Add", "Sub", "Mul", "Pow", "Less", "PRelu", "Max")],
    ("Div", [(f(1, -1, 0), f(0, 0, 0)), (i32(7, -7), i32(2, 2)), (i64(-(1 << 63)), i64(-1))], [{}]),
    ("Mod", [(i32(7, -7, 7, -7), i32(3, 3, -3, -3)), (f(7.5, -7.5), f(2, 2)), (u8(7), u8(3))], [{}, {"fmod": 1}]),
    ("Pow", [(f(2, -2, 0), f(.5, .5, -1)), (i32(2, -3), i32(3, 2)), (f(2), i32(3)), (i32(2), f(.5)), (i64(2, -1), i64(3, 5))], [{}]),
    ("BitShift", [(u8(1, 255), u8(3, 9)), (i32(1), i32(1))], [{"direction": "LEFT"}, {"direction": "RIGHT"}, {"direction": "UP"}, {}]),
    ("QuantizeLinear", [(f(1, -300, 300), np.float32(.5)), (f(1, -300, 300), np.float32(.5), u8(3).reshape(())), (f(1, 2), np.float32(0), i8(0).reshape(())), (x(2, 3), f(.1, .2, .3), i8(0, 1, 2)), (x(2, 3), f(.1, .2)), (x(2, 3), f(.1, .2, .3), i8(0, 1)), (x(2, 3), np.float32(.1), f(1).reshape(())), (i32(1, 2), np.float32(.5)), (f(1), f(-.5))], [{}, {"axis": 0}, {"axis": -1}, {"axis": 2}]),
    ("DequantizeLinear", [(u8(1, 2), np.float32(.5)), (u8(1, 2), np.float32(.5), u8(1).reshape(())), (u8(1, 2), np.float32(.5), i8(1).reshape(())), (i8([1, 2], [3, 4]), f(.1, .2), i8(0, 1)), (i8([1, 2], [3, 4]), f(.1, .2, .3)), (f(1, 2), np.float32(.5)), (i32(1, 2), np.float32(.5)), (u8(1, 2), np.float64(.5))], [{}, {"axis": 0}, {"axis": 5}]),
    ("DynamicQuantizeLinear", [(x(2, 3),), (zeros(3),), (zeros(0),), (i32(1),)], [{}]),
    ("Constant", [()], [{"value_int": 3}, {"value_float": 1.5}, {"value_ints": [1, 2]}, {"value_floats": [1.5]}, {"value_floats": [1.5, -2.25, 0.5]}, {"value": array(f(1, 2), "v")}, {"value_string": "a"}, {"value_strings": ["a"]}, {}, {"value_int": 3, "value_float": 1.}, {"value_nope": 3}]),
    ("Dropout", [(x(3),), (x(3), np.float32(.5)), (x(3), np.float32(.5), np.array(False)), (x(3), NONE, np.array(True))], [{}]),
    ("Identity", [(x(3),), (NONE,), (x(3), x(3)), ()], [{}]),
    ("Size", [(x(2, 3),), (zeros(0, 3),)], [{}]),
    ("Gelu", [(x(3),), (i32(1, 2),)], [{}, {"approximate": "tanh"}, {"approximate": "nope"}]),
    ("Not", [(np.array([True]),), (x(3),), (i32(1),)], [{}]), ("And", [(np.array([True]), np.array([False])), (x(3), x(3)), (np.array([True]), x(1))], [{}]), ("IsInf", [(f(float("inf"), -float("inf"), 1),), (i32(1),)], [{}, {"detect_negative": 0}, {"detect_positive": 0}]),
    ("Sqrt", [(f(4, -1, 0),), (i32(4),), (np.array([True]),)], [{}]), ("Round", [(f(.5, 1.5, -.5, 2.5),), (i32(1),)], [{}])]
# what must not be computed, though it could be: parts of names
REFUSED = re.compile(r"'reduction': 'nope'|'direction': 'UP'|^BitShift.*\{\}|^MaxPool.*\{\}|^Concat.*\] \{\}|^Gather.*'float32\[1\] \[0.0\]'|^Arg.*\[0, 3\]'\] (\{\}|.*0)|^Conv.*\{'kernel_shape': \[2\]\}|"
                     r"^Trilu.*\[1, 2\]'|^Slice.*\[2, 2\]', 'int64\[2\] \[0, 0\]'|^Expand.*\[-1, 3\]|^(Reshape|Tile|Expand).*'int64\[1, 2\]|^Reshape\['float32\[0, 3\]', 'int64\[2\] \[0, -1\]")
# Where the two disagree for a reason, by parts of a case's name: no axes given at all is not an empty list of them; blocks addressed by nothing; the mean
# of nothing is no number; a dimension that keepdims keeps is 1; NaN as a bound, or among what is compared; parts fewer than num_outputs; far strides; a shape of
# two dimensions; a list of one scale along an axis that there is not; Constants of two values, or of a value that ONNX does not know
ELSE = ["Squeeze['float32[1, 3, 1]', 'int64[0] []']", "GatherND['float32[2, 3]', 'int64[1, 0] []']", "'batch_dims': -1", "ReduceMean['float32[0, 3]'", "['float32[0, 3]'] {'axis': -1}", "'select_last_index': 1", "'float32[] [nan]'", "'num_outputs': 3",
        "'strides': [1099511627776]", "'int64[1, 2] [2, 3]'] {} constant", "QuantizeLinear['float32[1]', 'float32[1] [-0.5]']", "'value_int': 3, 'value_float'", "'value_nope'"]


def asked(op, inputs, attributes, constant, outs=1):
    """A model of one node, its inputs beyond the first (all, or none) constants; and what to feed."""
    names = ["i%d" % k if v is not None else "" for k, v in enumerate(inputs)]
    given = {n: np.asarray(v) for n, v in zip(names, inputs) if n}
    held = [(n, v) for n, v in given.items() if constant and n != "i0"]
    outs = ["y%d" % k for k in range(outs)]
    feed = {n: v for n, v in given.items() if n not in dict(held)}
    value = lambda n, v: h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(v.dtype), v.shape)
    opset = 20 if op == "Gelu" else 18
    return model([node(op, names, outs, name="odd", **attributes)], [value(n, v) for n, v in feed.items()], [h.make_empty_tensor_value_info(o) for o in outs], held, opset=opset), feed


def judged(m, feed):
    """ONNX Runtime's arrays, or None."""
    m = onnx.load_from_string(m.SerializeToString())
    try:
        for o, k in zip(m.graph.output, onnx.shape_inference.infer_shapes(m).graph.output): o.CopyFrom(k)
        if all(o.type.tensor_type.HasField("shape") for o in m.graph.output): onnx.checker.check_model(m, full_check=True)
        for o in m.graph.output: o.CopyFrom(h.make_tensor_value_info(o.name, o.type.tensor_type.elem_type or T.FLOAT, None))
        return execute(m, feed)
    except Exception: return None


class Judge:
    """The same for many models, in a process of its own, since some of them end ONNX Runtime's: it is started again at the next."""
    def __init__(self, asked): self.asked, self.pipe = asked, None

    def start(self, at):
        there, here = os.pipe()
        self.child = os.fork()
        if self.child:
            os.close(here)
            self.pipe = os.fdopen(there, "rb")
            return
        try:
            with os.fdopen(here, "wb") as out:
                for m, feed in self.asked[at:]:
                    out.write(pickle.dumps(judged(m, feed)))
                    out.flush()
        finally: os._exit(0)

    def answer(self, at):
        if not self.pipe: self.start(at)
        try: return pickle.load(self.pipe)
        except EOFError:
            self.end()
            return None

    def end(self):
        if self.pipe: self.pipe.close(), os.waitpid(self.child, 0)
        self.pipe = None


def near(a, b):
    if a.shape != b.shape or a.dtype != b.dtype: return "%s %s, ONNX Runtime has %s %s" % (a.dtype, list(a.shape), b.dtype, list(b.shape))
    if a.dtype.kind in "biuf": return "" if np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-4, atol=1e-5, equal_nan=True) else "%s, ONNX Runtime has %s" % (a.ravel()[:6], b.ravel()[:6])
    return "" if np.array_equal(a, b) else "differs"


def check_operators():
    """Where both compute, they agree; what mlo refuses, it refuses as it should, and ONNX Runtime too, or the hardware's limits are why. Cases are counted
    by operator, in one line; those that are wrong get their own."""
    cases = [(op, ins, more, constant) for op, inputs, attributes in ROWS for k, more in enumerate(attributes) for ins in inputs for constant in ((False, True) if len(ins) > 1 and not k else (False,))]
    models = [asked(op, ins, more, constant, 2 if op == "Split" else 1) for op, ins, more, constant in cases]
    judge, wrongs, counts = Judge(models), {}, {}
    for k, ((op, ins, more, constant), (m, feed)) in enumerate(zip(cases, models)):
        shown = ["%s%s%s" % (np.asarray(v).dtype, list(np.shape(v)), " " + str(np.ravel(v).tolist()) if n and np.size(v) < 6 else "") if v is not None else "-" for n, v in enumerate(ins)]
        name = "%s%s %s%s" % (op, shown, {a: v for a, v in more.items() if not isinstance(v, onnx.TensorProto)}, " constant" * constant)
        np.savez(t.at("in.npz"), **feed)
        p, want = t.call("run", saved("odd.onnx", m), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz")), judge.answer(k)
        counts[op] = counts.get(op, 0) + 1
        if p.returncode == 0:
            with np.load(t.at("out.npz")) as z: got = [z[o.name] for o in m.graph.output]
            why = "; ".join(filter(None, map(near, got, want))) if want is not None else ""
            if REFUSED.search(name) and not why: why = "is not refused"
        else:
            why = "" if p.returncode in (3, 4) and re.search(rb"^mlo: [a-z]+: (odd \(|odd:|i\d|y\d)", p.stderr, re.M) else "status %d: %s" % (p.returncode, p.stderr.decode()[-250:])
            if not why and want is not None and p.returncode == 3: why = "ONNX Runtime computes %s, mlo: %s" % ([w.ravel()[:6].tolist() for w in want], p.stderr.decode()[-200:].strip())
        if why and not any(part in name for part in ELSE): wrongs.setdefault(op, []).append("%s: %s" % (name, why))
    judge.end()
    for op, n in counts.items(): t.case("%s, asked in %d ways" % (op, n), "; ".join(wrongs.get(op, [])))


# ---- subgraphs ---------------------------------------------------------------------------------------------------------------------------------

def value(name, kind=T.FLOAT, dims=None): return h.make_tensor_value_info(name, kind, dims)


def scan(nodes, ins, outs, xs=(2,), stack=(3, 2), results=1, name="odd", more=(), **attributes):
    """A Scan of one state and one stack; its body's nodes, inputs and outputs."""
    attributes = {"num_scan_inputs": 1, **attributes}
    body = {"body": h.make_graph(nodes, "body", ins, outs)} if nodes is not None else {}
    made = ["y%d" % k for k in range(results)]
    return model([node("Scan", ["x", "stack", *more], made, name=name, **body, **{k: v for k, v in attributes.items() if v is not None})], [value("x", T.FLOAT, xs), value("stack", T.FLOAT, stack)], [value(k) for k in made])


def check_branches():
    """Ifs that a constant chooses: `read` writes a model without them, and ONNX Runtime says the same of both."""
    two = lambda name: h.make_tensor_value_info(name, T.FLOAT, [2])
    def deal(tag, nodes, *outs, init=()): return h.make_graph(list(nodes), tag, [], [h.make_empty_tensor_value_info(o) for o in outs], [array(np.asarray(v), k) for k, v in init])
    def chosen(then, other, outs=("y",), front=(), back=(), init=(), c="c", inputs=("x", "z"), more=()):
        made = [node("If", [c], list(outs), name="if", then_branch=then, else_branch=other)]
        return model([*front, *made, *back], [*map(two, inputs), *more], [h.make_tensor_value_info(o, T.FLOAT, None) for o in (back[-1].output if back else outs)], init)
    def case(name, m, left=0, ins=None, words=(), flags=(), more=None, judged=None):
        feed = {i.name: np.float32([1.5, -2]) * (k + 1) for k, i in enumerate(m.graph.input) if i.type.tensor_type.elem_type == T.FLOAT}
        out = t.at("straight.onnx")
        p = t.call("read", saved("branch.onnx", m), "--onnx", "-o", out, *flags)
        if p.returncode or words: return t.case("branch: " + name, wrong(p, "GRAPH", words) if words else p.stderr.decode()[-300:])
        got = onnx.load(out)
        ifs, names = sum(n.op_type == "If" for n in got.graph.node), [i.name for i in got.graph.input]
        right = execute(judged or m, {**feed, **(more or {})})
        far = difference(right, execute(got, {k: v for k, v in {**feed, **(more or {})}.items() if k in names}))
        t.case("branch: " + name, "%d Ifs, not %d" % (ifs, left) if ifs != left else "inputs %s" % names if ins is not None and names != ins else "differs by %g" % far if far else "")
    yes, no = ("c", np.array(True)), ("c", np.array([False]))
    neg, absolute = deal("t", [node("Neg", ["x"], ["a"])], "a"), deal("e", [node("Abs", ["z"], ["b"])], "b")
    case("the first", chosen(neg, absolute, init=[yes]), ins=["x"])
    case("the second", chosen(neg, absolute, init=[no]), ins=["z"])
    case("what the other read is read elsewhere", chosen(neg, absolute, init=[yes], back=[node("Add", ["y", "z"], ["w"])]), ins=["x", "z"])
    said = h.make_tensor_value_info("c", T.BOOL, [])
    case("an input chooses: it stays", chosen(neg, absolute, more=[said]), left=1, more={"c": np.array(True)})
    np.savez(t.at("held.npz"), c=np.array(True))
    case("an input chooses that is held", chosen(neg, absolute, more=[said]), flags=("--hold", t.at("held.npz")), more={"c": np.array(True)})
    size = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]), node("Equal", ["n", "twice"], ["c"])]
    case("a size chooses, as TorchScript's squeeze writes it", chosen(neg, absolute, front=size, init=[("zero", np.int64(0)), ("twice", np.int64(2))]))
    case("a size chooses the other", chosen(neg, absolute, front=size, init=[("zero", np.int64(0)), ("twice", np.int64(3))]))
    same = [deal(op, [node(op, ["x"], ["v"]), node("Add", ["v", "k"], ["r"])], "r", init=[("k", np.float32([v, 2]))]) for op, v in (("Neg", 1), ("Abs", 5))]
    case("branches whose names are alike", chosen(*same, init=[yes]))
    both = chosen(*same, init=[yes, ("d", np.array(False))], back=[node("If", ["d"], ["u"], name="again", then_branch=same[0], else_branch=same[1]), node("Mul", ["y", "u"], ["w"])])
    case("two Ifs of the same branches", both)
    case("names that something outside has, too", chosen(*same, init=[yes], back=[node("Exp", ["y"], ["v"]), node("Add", ["v", "y"], ["w"])]))
    case("outputs whose names are the If's", chosen(deal("t", [node("Neg", ["x"], ["y"])], "y"), deal("e", [node("Abs", ["x"], ["y"])], "y"), init=[no]))
    twin = deal("t", [node("Neg", ["x"], ["a"])], "a", "a"), deal("e", [node("Abs", ["x"], ["b"]), node("Exp", ["x"], ["d"])], "b", "d")
    apart = deal("t", [node("Neg", ["x"], ["a"]), node("Identity", ["a"], ["a2"])], "a", "a2")
    case("an output twice, of which ONNX Runtime loses one", chosen(*twin, outs=("y", "y2"), init=[yes]), judged=chosen(apart, twin[1], outs=("y", "y2"), init=[yes]))
    used = deal("t", [node("Neg", ["x"], ["a"]), node("Exp", ["a"], ["b"])], "a", "b"), deal("e", [node("Abs", ["x"], ["b"]), node("Exp", ["x"], ["d"])], "b", "d")
    left_out = [chosen(*used, outs=(o, "y"), init=[yes], back=[node("Neg", ["y"], ["w"])]) for o in ("", "unused")]
    case("an output that nobody wants, of which another is made", left_out[0], judged=left_out[1])
    case("two outputs", chosen(*twin, outs=("y", "y2"), init=[no]))
    case("a branch that hands out a constant", chosen(deal("t", [], "k", init=[("k", np.float32([3, 4]))]), absolute, init=[yes], back=[node("Add", ["y", "x"], ["w"])]))
    inner = deal("in", [node("If", ["c2"], ["q"], name="inner", then_branch=deal("it", [node("Neg", ["v"], ["g"])], "g"), else_branch=deal("ie", [node("Exp", ["v"], ["g"])], "g")), node("Add", ["q", "x"], ["r"])], "r", init=[("c2", np.array(False))])
    inner.node.insert(0, node("Abs", ["z"], ["v"]))
    case("an If in the branch", chosen(inner, absolute, init=[yes]))
    open_inner = deal("in", [node("If", ["c2"], ["q"], name="inner", then_branch=deal("it", [node("Neg", ["x"], ["g"])], "g"), else_branch=deal("ie", [node("Exp", ["z"], ["g"])], "g")), node("Add", ["q", "v"], ["r"])], "r")
    open_inner.node.insert(0, node("Abs", ["z"], ["v"]))
    case("an If in the branch that an input chooses", chosen(open_inner, absolute, init=[yes], more=[h.make_tensor_value_info("c2", T.BOOL, [])], back=[node("Sub", ["y", "x"], ["v"]), node("Mul", ["v", "y"], ["w"])]), left=1, more={"c2": np.array(True)})
    rows = h.make_graph([node("Add", ["s", "e"], ["v"])], "body", [two("s"), two("e")], [two("v")])
    case("a Scan in the branch, whose body has a name that is taken", chosen(deal("t", [node("Scan", ["x", "k"], ["b0"], name="scan", body=rows, num_scan_inputs=1)], "b0", init=[("k", np.float32([[1, 2], [3, 4]]))]), absolute, init=[yes], back=[node("Neg", ["y"], ["v"]), node("Mul", ["v", "y"], ["w"])]))
    case("a branch without the other", model([node("If", ["c"], ["y"], name="if", then_branch=neg)], [two("x")], [two("y")], [yes]), words=["if"])


def check_subgraphs():
    ins, add = [value("s"), value("e")], [node("Add", ["s", "e"], ["z"])]
    tapped = [*add, node("Neg", ["e"], ["tap"])]
    def odd(name, m, *words, code="GRAPH", feed=None):
        """A case: refused with these words, by read or by run; without words it is ONNX Runtime's result."""
        np.savez(t.at("in.npz"), **(feed or {}))
        p = t.call("run", saved("odd.onnx", m), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        if words: return t.case("subgraph: " + name, wrong(p, code, words))
        if p.returncode: return t.case("subgraph: " + name, p.stderr.decode()[-300:])
        want = judged(m, feed)                                                                # it slices nothing: a Scan of no iterations
        with np.load(t.at("out.npz")) as z: t.case("subgraph: " + name, "ONNX Runtime refuses it" if want is None and "no iterations" not in name else "; ".join(filter(None, (near(z[o.name], w) for o, w in zip(m.graph.output, want or [])))))
    feed = {"x": f(1, 2), "stack": f([1, 2], [3, 4], [5, 6])}
    odd("a Scan", scan(add, ins, [value("z")]), feed=feed)
    odd("a Scan with taps along its last axis, said from behind", scan(tapped, ins, [value("z"), value("tap")], results=2, scan_output_axes=[-1]), feed=feed)
    odd("a Scan along its last axis, said from behind", scan(add, ins, [value("z")], stack=(2, 3), scan_input_axes=[-1]), feed={"x": f(1, 2), "stack": f([1, 3, 5], [2, 4, 6])})
    odd("a Scan of no iterations", scan(tapped, [value("s", T.FLOAT, [2]), value("e", T.FLOAT, [2])], [value("z", T.FLOAT, [2]), value("tap", T.FLOAT, [2])], stack=(0, 2), results=2), feed={"x": f(1, 2), "stack": zeros(0, 2)})
    odd("a Scan over what has an open size", scan(add, ins, [value("z")], stack=("n", 2)), feed=feed)
    odd("a Scan over what has open sizes only", scan(add, ins, [value("z")], xs=("k",), stack=("n", "k")), feed=feed)
    odd("a Scan without a body", scan(None, ins, []), "odd", "do not fit the body")
    odd("a Scan whose body takes one input", scan([node("Neg", ["s"], ["z"])], ins[:1], [value("z")]), "odd", "2 inputs and 1 outputs do not fit the body's 1 and 1")
    odd("a Scan whose body makes one output more", scan(tapped, ins, [value("z"), value("tap")]), "odd", "do not fit the body's 2 and 2")
    odd("a Scan of stacks fewer than none", scan(add, ins, [value("z")], num_scan_inputs=-1), "odd", "has 2 inputs, of which -1 are said to be scanned")
    odd("a Scan of more stacks than inputs", scan(add, ins, [value("z")], num_scan_inputs=3), "odd", "has 2 inputs, of which 3 are said to be scanned")
    odd("a Scan of two states that makes one output", scan([node("Add", ["s", "o"], ["z"])], [*ins, value("o")], [value("z")], more=["stack"]), "odd", "has 2 states and 1 outputs", feed=feed)
    odd("a Scan of -1 stacks", scan(add, ins, [value("z")], num_scan_inputs=-1), "odd")
    odd("a Scan along an axis that there is not", scan(add, ins, [value("z")], scan_input_axes=[2]), "odd", "'stack' has rank 2 and no axis 2", code="SHAPE")
    odd("a Scan along an axis that there is not, from behind", scan(add, ins, [value("z")], scan_input_axes=[-3]), "odd", "rank 2 and no axis -", code="SHAPE")
    odd("taps along an axis that there is not", scan(tapped, ins, [value("z"), value("tap")], results=2, scan_output_axes=[2]), "odd", "no axis 2", code="SHAPE")
    odd("taps along an axis that there is not, from behind", scan(tapped, ins, [value("z"), value("tap")], results=2, scan_output_axes=[-3]), "odd", "no axis -3", code="SHAPE")
    odd("a stack that is a number", scan(add, ins, [value("z")], stack=()), "odd", "rank 0 and no axis 0", code="SHAPE")
    odd("a state that grows", scan([node("Concat", ["s", "e"], ["z"], axis=0)], ins, [value("z")]), "odd", "state 'x' comes in as float .2. and leaves as float .4.", code="SHAPE")
    odd("a state that was empty", scan([node("Concat", ["s", "e"], ["z"], axis=0)], ins, [value("z")], xs=(0,)), "odd", "state 'x' comes in as float .0. and leaves as float .2.", code="SHAPE")
    odd("a state that changes its type", scan([node("Cast", ["s"], ["z"], to=T.DOUBLE)], ins, [value("z", T.DOUBLE)]), "odd", "float .2. and leaves as double .2.", code="SHAPE")
    two = model([node("Scan", ["x", "stack", "other"], ["y"], name="odd", num_scan_inputs=2, body=h.make_graph([node("Sum", ["s", "e", "o"], ["z"])], "body", [*ins, value("o")], [value("z")]))],
                [value("x", T.FLOAT, [2]), value("stack", T.FLOAT, [3, 2]), value("other", T.FLOAT, [4, 2])], [value("y")])
    odd("stacks of unequal lengths", two, "odd", "'other' has 4 iterations, others 3", code="SHAPE")
    late = onnx.load_from_string(two.SerializeToString())
    for k, n in (1, "n"), (2, "m"): late.graph.input[k].type.tensor_type.shape.dim[0].dim_param = n
    odd("stacks of unequal lengths, which a run tells", late, "odd", "'other' has 4 iterations, others 3", code="SHAPE", feed={**feed, "other": zeros(4, 2)})
    whole = [value("s", T.FLOAT, [2]), value("e", T.FLOAT, [2])], [value("z", T.FLOAT, [2]), value("tap", T.FLOAT, [2])]
    def stacked_of(before, dims, init=(), **attributes):
        """A Scan over `stack`, which nodes before it make of inputs of these sizes, or which is a constant."""
        return model([*before, node("Scan", ["x", "stack"], ["y", "t"], name="odd", num_scan_inputs=1, body=h.make_graph(tapped, "body", *whole), **attributes)], [value(k, T.FLOAT, list(d)) for k, d in {"x": (2,), **dims}.items()], [value("y"), value("t")], init)
    def joined(axis, *parts): return [node("Concat", list(parts), ["all"], axis=axis), node("Reshape", ["all", "two"], ["stack"])]
    odd("a Scan over a constant", stacked_of([], {}, [("stack", f([1, 2], [3, 4], [5, 6]))]), feed={"x": f(1, 2)})
    odd("a Scan over a constant, backwards", stacked_of([], {}, [("stack", f([1, 2], [3, 4], [5, 6]))], scan_input_directions=[1]), feed={"x": f(1, 2)})
    for what, axis, parts in (("a part for each iteration", 0, {"a": f([1, 2]), "b": f([3, 4])}), ("unequal parts", 0, {"a": f(1), "b": f(2, 3, 4)}), ("parts side by side", 1, {"a": f([1], [2]), "b": f([3], [4])}), ("more parts than iterations", 0, {"a": f(1), "b": f(2), "d": f(3, 4)})):
        odd("a Scan over %s" % what, stacked_of(joined(axis, *parts), {k: a.shape for k, a in parts.items()}, [("two", i64(2, 2))]), feed={"x": f(1, 2), **parts})
    odd("a Scan over a part for each iteration, backwards", stacked_of(joined(0, "a", "b"), {"a": (1, 2), "b": (1, 2)}, [("two", i64(2, 2))], scan_input_directions=[1]), feed={"x": f(1, 2), "a": f([1, 2]), "b": f([3, 4])})
    loops = [value("i", T.INT64, []), value("c", T.BOOL, []), value("s")]
    def loop(nodes, outs, ins=loops, args=("n", "", "x"), results=1, body=True, held=()):
        made = ["y%d" % k for k in range(results)]
        return model([node("Loop", list(args), made, name="odd", **({"body": h.make_graph(nodes, "body", list(ins), list(outs), [array(a, k) for k, a in held])} if body else {}))], [value("x", T.FLOAT, [2])], [value(k) for k in made], [("n", np.int64(3)), ("no", np.array(False)), ("zero", np.int64(0)), ("less", np.int64(-3)), ("two", i64(1, 2)), ("both", np.array([True, True])), ("twelve", np.int64(12))])
    twice = [node("Identity", ["c"], ["c2"]), node("Add", ["s", "s"], ["z"]), node("Neg", ["s"], ["tap"])]
    ends = [value("c2", T.BOOL, []), value("z"), value("tap")]
    typed = [*loops[:2], value("s", T.FLOAT, [2])], [ends[0], value("z", T.FLOAT, [2]), value("tap", T.FLOAT, [2])]
    x1 = {"x": f(1, 2)}
    odd("a Loop", loop(twice, ends, results=2), feed=x1)
    odd("a Loop that is told not to begin", loop(twice, typed[1], typed[0], args=("n", "no", "x"), results=2), feed=x1)
    odd("a Loop of no iterations", loop(twice, typed[1], typed[0], args=("zero", "", "x"), results=2), feed=x1)
    odd("a Loop of less than none", loop(twice, typed[1], typed[0], args=("less", "", "x"), results=2), feed=x1)
    odd("a Loop whose state grows", loop([twice[0], node("Concat", ["s", "s"], ["z"], axis=0)], ends[:2]), feed=x1)
    odd("a Loop without a body", loop([], [], body=False), "odd", "do not fit the body")
    odd("a Loop whose body lacks the state", loop([twice[0], node("Cast", ["i"], ["z"], to=T.FLOAT)], ends[:2], loops[:2]), "odd", "3 inputs and 1 outputs do not fit the body")
    odd("a Loop whose body lacks its condition", loop([twice[1]], [ends[1]]), "odd", "do not fit the body")
    odd("a Loop without a state's value", loop(twice, ends, args=("n", "", ""), results=2), "odd", "state 0 has no initial value", feed=x1)
    odd("a Loop that stacks what changes its shape", loop([twice[0], node("Concat", ["s", "s"], ["z"], axis=0), node("Neg", ["s"], ["tap"])], ends, results=2), "odd", "iteration 1 stacks .4., the first .2.", code="SHAPE", feed=x1)
    odd("a Loop of one input", loop([twice[0], node("Cast", ["i"], ["z"], to=T.FLOAT)], ends[:2], loops[:2], args=("n",)), "odd", "has 1 inputs, needs 2")
    odd("a Loop of two states that makes one output", loop(twice, ends[:2], [*loops, value("s1")], args=("n", "", "x", "x")), "odd", "has 2 states and 1 outputs", feed=x1)
    odd("a Loop that is told its end twice", loop(twice, ends, args=("two", "", "x"), results=2), "odd", "its trip count has 2 elements; one is needed", code="SHAPE", feed=x1)
    odd("a Loop that is told twice whether to begin", loop(twice, ends, args=("n", "both", "x"), results=2), "odd", "its condition has 2 elements; one is needed", code="SHAPE", feed=x1)
    odd("a Loop without states, of more rounds than it had room for", loop([twice[0], node("Cast", ["i"], ["z"], to=T.FLOAT)], [ends[0], value("z", T.FLOAT, [])], loops[:2], args=("twelve", "")), feed=x1)
    odd("a Loop that hands on what came in, and a constant", loop([node("Add", ["s", "kept"], ["z"])], [loops[1], typed[1][1], value("s", T.FLOAT, [2]), value("kept", T.FLOAT, [2])], typed[0], results=3, held=[("kept", f(1, 2))]), feed=x1)
    odd("a Loop that ends when its state is large", loop([node("Add", ["s", "s"], ["z"]), node("ReduceMax", ["z"], ["m"], keepdims=0), node("Less", ["m", "hundred"], ["c2"])], typed[1][:2], typed[0], args=("", "", "x"), held=[("hundred", np.float32(100))]), feed=x1)
    def deal(op, *args): return h.make_graph([node(op, list(args), [op])], op, [], [value(op, T.FLOAT, [2])])
    odd("an If in a Loop, of the state and of what is outside", loop([twice[0], node("Less", ["i", "second"], ["first"]), node("If", ["first"], ["z"], then_branch=deal("Neg", "s"), else_branch=deal("Add", "s", "x"))], typed[1][:2], typed[0], held=[("second", np.int64(1))]), feed=x1)
    deep = [value("s", T.FLOAT, [1] * 8)]
    stacked = model([node("Loop", ["n", "", "x"], ["y0", "y1"], name="odd", body=h.make_graph(twice, "body", [*loops[:2], *deep], ends))], [value("x", T.FLOAT, [1] * 8)], [value("y0"), value("y1")], [("n", np.int64(3))])
    odd("a Loop that stacks what has eight dimensions", stacked, "odd", "stacked output of rank 8|rank 9", code="SHAPE", feed={"x": zeros(*[1] * 8)})
    def branch(op, outs=1, **more): return h.make_graph([node(op, ["x"], ["b%d" % k], **more) for k in range(outs)], op, [], [value("b%d" % k) for k in range(outs)])
    def either(a, b, kind=T.BOOL, dims=(), **k):
        parts = {n: g for n, g in (("then_branch", a), ("else_branch", b)) if g is not None}
        return model([node("If", ["c"], ["y"], name="odd", **parts)], [value("x", T.FLOAT, [2]), value("c", kind, list(dims))], [value("y")])
    yes, no = {"c": np.array(True), **x1}, {"c": np.array(False), **x1}
    for what, given in ("then", yes), ("else", no):
        odd("an If of two ranks, %s" % what, either(branch("Neg"), h.make_graph([node("Unsqueeze", ["x", "zero"], ["b0"])], "b", [], [value("b0")], [array(i64(0), "zero")])), feed=given)
        odd("an If of two sizes, %s" % what, either(branch("Neg"), h.make_graph([node("Concat", ["x", "x"], ["b0"], axis=0)], "b", [], [value("b0")])), feed=given)
        odd("an If that is told one element, %s" % what, either(branch("Neg"), branch("Exp"), dims=[1]), feed={**given, "c": given["c"].reshape(1)})
    odd("an If without its else", either(branch("Neg"), None), "odd", "1 inputs and 1 outputs do not fit the else_branch's 0 and 0", feed=yes)
    odd("an If whose else makes two", either(branch("Neg"), branch("Neg", 2)), "odd", "1 inputs and 1 outputs do not fit the else_branch's 0 and 2", feed=yes)
    odd("an If of floats", either(branch("Neg"), branch("Exp"), T.FLOAT), "odd", "must be one bool", code="TYPE", feed={"c": np.float32(1), **x1})
    odd("an If of two", either(branch("Neg"), branch("Exp"), dims=[2]), "odd", "must be one bool", code="TYPE", feed={"c": np.array([True, False]), **x1})
    odd("a branch that is a constant", either(h.make_graph([], "b", [], [value("k", T.FLOAT, [2])], [array(f(7, 8), "k")]), branch("Neg")), feed=yes)
    both = lambda op: h.make_graph([node(op, ["x"], ["a"]), node("Identity", ["a"], ["b"])], op, [], [value(k, T.FLOAT, [2]) for k in "ab"])
    odd("branches that make what they go on with", model([node("If", ["c"], ["y", "z"], name="odd", then_branch=both("Neg"), else_branch=both("Exp"))], [value("x", T.FLOAT, [2]), value("c", T.BOOL, [])], [value("y"), value("z")]), feed=no)
    odd("a branch that hands on what is outside", either(branch("Identity"), branch("Neg")), feed=yes)
    shadow = h.make_graph([node("Neg", ["x"], ["t"]), node("Identity", ["t"], ["b0"])], "b", [], [value("b0")])
    odd("a branch that reads what nobody makes", either(branch("Neg"), h.make_graph([node("Add", ["x", "ghost"], ["b0"], name="inner")], "b", [], [value("b0")])), "inner|odd", "ghost", feed=yes)
    odd("names that both branches use", either(shadow, h.make_graph([node("Exp", ["x"], ["t"]), node("Identity", ["t"], ["b0"])], "b", [], [value("b0")])), feed=no)
    odd("too few inputs", model([node("Add", ["x"], ["y"], name="odd")], [value("x", T.FLOAT, [2])], [value("y")]), "odd", "has 1 inputs, needs 2")
    odd("a value whose type nobody says", model([node("Strange", ["x"], ["q"], domain="custom", name="odd"), node("Neg", ["q"], ["y"], name="other")], [value("x", T.FLOAT, [2])], [value("y")], info=[value("q", 0, [2])]), "odd", code="UNSUPPORTED", feed=x1)
    big = model([node("ConstantOfShape", ["c"], ["q"], name="odd"), node("Neg", ["q"], ["y"])], [value("x", T.FLOAT, [2])], [value("y")], [("c", i64(1 << 61))])
    odd("a dimension beyond all", big, "odd", "2305843009213693952", code="SHAPE", feed=x1)


if __name__ == "__main__": t.main(check_pairs, check_unrolled, check_unknown, check_places, check_layers, check_json, check_wire, check_branches, check_subgraphs, check_operators, floor=489)
