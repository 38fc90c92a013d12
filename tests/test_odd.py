#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Odd graphs: what ONNX allows and nobody exports, and what it does not allow. Right, or refused by name; never a crash, never another answer.

    python tests/test_odd.py path/to/mlo [NAME ...]

    pairs        two models that `mlo check` must call equal, or whose difference it must name

Judges: the definitions of ONNX, ONNX Runtime, google.protobuf."""
import numpy as np
import onnx
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


if __name__ == "__main__": t.main(check_pairs, check_unrolled, floor=70)
