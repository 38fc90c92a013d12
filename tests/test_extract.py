#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""extract: bodies by template and by hierarchy. Whatever is chosen, roll's result runs in ONNX Runtime like the original, and check proves it.

What a body should hold is counted in the model: nodes by the scopes that the exporter wrote.
"""
import ast, random
import numpy as np
import onnx
from onnx import helper, numpy_helper, utils
import harness as t
from harness import at, case
from graphs import session, shapes

MODELS = ["bert-tiny", "bert-tiny-mask", "bert-tiny-shared-biases", "bert-12-torchscript", "vit-tiny", "gpt2-tiny", "llama-tiny-opset23", "mlp-res", "t5-tiny", "whisper-tiny", "bert-tiny-qdq"]
SCOPES = "pkg.torch.onnx.name_scopes"


def roll(path, *options): return t.call("roll", path, "--onnx", "-o", at("rolled.onnx"), *options, text=True)


def proven(path, name):
    """'' when the rolled model is proved and runs like the original."""
    p = t.call("check", at("rolled.onnx"), "--against", path, text=True)
    if p.returncode: return p.stderr
    feeds = {k: v[:1] for k, v in np.load(t.calibration(name)).items()}
    if name == "t5-tiny": feeds["a_1"] = np.ones_like(feeds["a_1"])
    for a, b in zip(session(onnx.load(path)).run(None, feeds), session(onnx.load(at("rolled.onnx"))).run(None, feeds)):
        if np.max(np.abs(a - b)) > 1e-5 * np.max(np.abs(a)): return "ONNX Runtime differs"
    return ""


def rolls(name, path, *options):
    p = roll(path, *options)
    return p.stderr if p.returncode else proven(path, name)


def refused(what, p, *words):
    case(what, "" if p.returncode in (2, 3, 4) and "[MLO_E_" in p.stderr and all(w in p.stderr for w in words) else "status %d: %s" % (p.returncode, p.stderr))


def template_of(name):
    t.good("extract", t.model(name), "--save-template", at("template.onnx"), "-o", at("marked.json"))
    return onnx.load(at("template.onnx"))


def given(template, name):
    onnx.save(template, at("edited.onnx"))
    return roll(t.model(name), "--template", at("edited.onnx"))


# ---- templates -------------------------------------------------------------------------------------------------------------------

def check_template():
    """Saved and given back: the same loop as found without, or, of several loops, the largest."""
    for name in MODELS:
        template = template_of(name)
        onnx.checker.check_model(template, full_check=True)
        roll(t.model(name))
        free = shapes(onnx.load(at("rolled.onnx")))
        why = rolls(name, t.model(name), "--template", at("template.onnx"))
        largest = max(free, key=lambda s: s[0] * s[1])
        case("%s: its template finds its loop" % name, why or ("" if shapes(onnx.load(at("rolled.onnx"))) == [largest] else "%s, not %s" % (shapes(onnx.load(at("rolled.onnx"))), largest)))


def disguised(template, seed=3):
    """Other names, no metadata, nodes in another legal order, commutative operands swapped."""
    r, names = random.Random(seed), {}
    new = lambda x: names.setdefault(x, "t%d" % len(names)) if x else x
    for n in template.graph.node:
        n.name = ""
        del n.metadata_props[:]
        n.input[:] = [new(x) for x in n.input]
        n.output[:] = [new(x) for x in n.output]
        if n.op_type in ("Add", "Mul"): n.input[:] = n.input[::-1]
    for x in list(template.graph.input) + list(template.graph.output) + list(template.graph.initializer): x.name = new(x.name)
    del template.graph.value_info[:]
    nodes, ready, left = [], {x.name for x in template.graph.input} | {x.name for x in template.graph.initializer} | {""}, list(template.graph.node)
    while left:
        n = r.choice([n for n in left if set(n.input) <= ready])
        nodes.append(n); left.remove(n); ready |= set(n.output)
    del template.graph.node[:]
    template.graph.node.extend(nodes)
    return template


def check_disguised():
    for name in "bert-tiny", "gpt2-tiny", "llama-tiny-opset23", "whisper-tiny":
        p = given(disguised(template_of(name)), name)
        case("%s: a template with other names and another order" % name, p.stderr if p.returncode else proven(t.model(name), name))


def check_given():
    """Templates as people leave them: constants as nodes, outputs forgotten or one too many, parts that hang together nowhere."""
    def told(name, template, loop, *words):
        p = given(template, name)
        r = None if p.returncode else onnx.load(at("rolled.onnx"))
        q = t.call("check", at("rolled.onnx"), "--against", t.model(name), text=True) if r else p
        return q.stderr if q.returncode else str(shapes(r)) if shapes(r) != [loop] else "; ".join("does not say %s: %s" % (w, p.stderr) for w in words if w not in p.stderr)
    for name in "gpt2-cache", "llama-states", "clip-tiny":                   # what leaves each layer; and the larger of two loops, the first
        template = template_of(name)
        t.good("roll", t.model(name), "--onnx", "-o", at("rolled.onnx"))
        largest = max(shapes(onnx.load(at("rolled.onnx"))), key=lambda s: s[0] * s[1])
        case("%s: its template finds its loop" % name, told(name, template, largest))
    name = "bert-12"
    m = template_of(name)
    held = list(m.graph.initializer)
    for k, i in enumerate(held):
        m.graph.node.insert(k, helper.make_node("Constant", [], [i.name], value=i))
        m.graph.initializer.remove(i)
    size = len(m.graph.node) - len(held)
    case("constants as nodes", told(name, m, (12, size)) if held else "it holds no constants")
    m = template_of(name)
    inner = next(n for n in m.graph.node if n.op_type == "Softmax").output[0]
    m.graph.output.append(helper.make_empty_tensor_value_info(inner))
    case("an output that nobody uses", told(name, m, (12, size), "'%s' is an output of the template that nobody uses" % inner))
    m = template_of(name)
    last = m.graph.output[0].name
    m.graph.output[0].name = inner
    case("an output that is used, and not said", told(name, m, (12, size), "'%s' is no output of the template, but used outside" % last))
    m = template_of(name)
    del m.graph.output[:]
    case("no outputs at all", told(name, m, (12, size), "is no output of the template"))
    m = template_of(name)
    m.graph.output.insert(0, helper.make_empty_tensor_value_info(m.graph.input[0].name))
    case("an output that is an input", told(name, m, (12, size)))
    two = template_of("mlp-res")
    size = len(two.graph.node)
    stray = helper.make_node("Relu", ["far"], ["away"], name="stray")
    two.graph.node.append(stray)
    two.graph.input.append(helper.make_tensor_value_info("far", 1, [1, 8, 32]))
    refused("a node that hangs together with nothing", given(two, "mlp-res"), "stray", "a template is of one piece")
    del two.graph.node[:]
    del two.graph.output[:]
    refused("a template of nothing", given(two, "mlp-res"), "has no nodes")
    two.graph.node.append(helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.float32(1))))
    refused("a template of a constant", given(two, "mlp-res"), "has no nodes")


def between(name, first, last):
    """The nodes from value `first` to value `last` as a template; weights become inputs."""
    path = t.model(name)
    utils.extract_model(path, at("cut.onnx"), [first], [last], check_model=False)
    m = onnx.load(at("cut.onnx"))
    learned = [i for i in m.graph.initializer if len(i.dims) and i.data_type == 1]
    for i in learned:
        m.graph.input.append(helper.make_tensor_value_info(i.name, i.data_type, i.dims))
        m.graph.initializer.remove(i)
    return m


def check_moved():
    """A template may cut the layers elsewhere: here from the middle of one to the middle of the next."""
    m = onnx.load(t.model("bert-12"))
    norms = [n.output[0] for n in m.graph.node if n.op_type == "LayerNormalization"]           # the embedding's, then two a layer
    template = between("bert-12", norms[1], norms[3])
    p = given(template, "bert-12")
    r = None if p.returncode else onnx.load(at("rolled.onnx"))
    case("a cut in the middle of layers", p.stderr if r is None else proven(t.model("bert-12"), "bert-12") or ("" if shapes(r) == [(11, len(template.graph.node))] else str(shapes(r))))
    template = between("bert-12", norms[0], norms[4])
    p = given(template, "bert-12")
    r = None if p.returncode else onnx.load(at("rolled.onnx"))
    case("two layers as one body", p.stderr if r is None else proven(t.model("bert-12"), "bert-12") or ("" if shapes(r) == [(6, len(template.graph.node))] else str(shapes(r))))


def check_wrong():
    """Templates that do not fit say where, and why."""
    name = "bert-12"
    m = template_of(name)
    norm = [n for n in m.graph.node if n.op_type == "LayerNormalization"][-1]
    next(a for a in norm.attribute if a.name == "epsilon").f = 0.5
    refused("an attribute that no layer has", given(m, name), "epsilon", "0.5", "1e-12", "closest")
    m = template_of(name)
    m.graph.node[5].op_type = "Selu"
    refused("an op that the model lacks", given(m, name), "Selu", "no counterpart")
    m = template_of(name)
    last = m.graph.node[-1]
    m.graph.node.remove(last)
    m.graph.output[0].name = last.input[0]
    refused("the last node taken away", given(m, name), "between", "LayerNormalization")
    onnx.save(onnx.load(t.model("mlp-res")), at("edited.onnx"))
    refused("another model", roll(t.model(name), "--template", at("edited.onnx")), "no counterpart")
    open(at("edited.onnx"), "wb").write(b"\x08")
    refused("no ONNX", roll(t.model(name), "--template", at("edited.onnx")))
    refused("a template that is not there", roll(t.model(name), "--template", at("nowhere.onnx")), "nowhere.onnx")
    template_of(name)
    refused("a hierarchy as well", roll(t.model(name), "--template", at("template.onnx"), "--hierarchy", '[["encoder","encoder.layer.0"]]'), "give one")


def check_leftover():
    """An instance that only almost matches is left outside, and said."""
    m = onnx.load(t.model("bert-12"))
    template_of("bert-12")
    queries = [n for n in m.graph.node if n.op_type == "Reshape"][-4]
    next(a for a in queries.attribute if a.name == "allowzero").i = 0
    onnx.save(m, at("odd.onnx"))
    p = roll(at("odd.onnx"), "--template", at("template.onnx"))
    case("11 of 12 are rolled", p.stderr if p.returncode else proven(at("odd.onnx"), "bert-12") or ("" if shapes(onnx.load(at("rolled.onnx")))[0][0] == 11 else "other iterations"))
    case("the twelfth is named", "" if all(w in p.stderr for w in ("matched 11 of 12", queries.name, "allowzero is 0")) else p.stderr or "it says nothing")
    two = onnx.load(t.model("bert-tiny"))
    norm = [n for n in two.graph.node if n.op_type == "LayerNormalization"][-1]
    next(a for a in norm.attribute if a.name == "epsilon").f = 0.5
    onnx.save(two, at("odd.onnx"))
    template_of("bert-tiny")
    refused("one instance is no loop", roll(at("odd.onnx"), "--template", at("template.onnx")), "matches once")
    two = onnx.load(t.model("bert-tiny"))
    norm = [n for n in two.graph.node if n.op_type == "LayerNormalization"][2]             # the last of layer 0
    for n in two.graph.node: n.input[:] = ["between" if v == norm.output[0] else v for v in n.input]
    two.graph.node.insert(list(two.graph.node).index(norm) + 1, helper.make_node("Elu", norm.output, ["between"], name="elu"))
    onnx.save(two, at("odd.onnx"))
    refused("a node between two instances", roll(at("odd.onnx"), "--template", at("template.onnx")), "elu (Elu): lies between the instances of the template", "reads 'between' of it")


def leftover(change, layer=11):
    """What is said of bert-12, whose layer was changed, by its own template; an empty text where all others are rolled."""
    m = onnx.load(t.model("bert-12"))
    change(m, [n for n in m.graph.node if nodes_below_one(n, "encoder.layer.%d" % layer)])
    onnx.save(m, at("odd.onnx"))
    p = roll(at("odd.onnx"), "--template", at("template.onnx"))
    return p.stderr


def nodes_below_one(n, scope): return any(scope in ast.literal_eval(p.value) for p in n.metadata_props if p.key == SCOPES)


def check_anywhere():
    """An instance that differs in one node is told wherever that is, with the node: one more between two others, another operator, another constant, a wire that leads elsewhere."""
    template = template_of("bert-12")
    size = sum(n.op_type != "Constant" for n in template.graph.node)
    for layer in (11, 4):
        for k in range(size - 1):
            def more(m, nodes):
                n = nodes[k]
                made = n.output[0]
                n.output[0] = "before_neg"
                m.graph.node.insert(list(m.graph.node).index(n) + 1, helper.make_node("Neg", ["before_neg"], [made], name="a_neg"))
            told = leftover(more, layer)
            case("layer %d, one node more behind node %d" % (layer, k), "" if "matched 11 of 12: a place (up to " in told and "a_neg" in told else told or "it says nothing")
    def op(m, nodes): nodes[-2].op_type = "Sub"
    def erf(m, nodes): next(n for n in nodes if n.op_type == "Erf").op_type = "Tanh"
    def constant(m, nodes):
        n = next(n for n in nodes if n.op_type == "Div")
        m.graph.initializer.append(numpy_helper.from_array(np.float32(7), "seven"))
        n.input[1] = "seven"
    def wire(m, nodes): nodes[-2].input[1] = nodes[0].input[0]
    def two(m, nodes):
        for x in [n for n in nodes if n.op_type == "LayerNormalization"]: next(a for a in x.attribute if a.name == "epsilon").f = 0.25
    name = lambda op, k=-1: [n.name for n in onnx.load(t.model("bert-12")).graph.node if n.op_type == op and nodes_below_one(n, "encoder.layer.11")][k]
    for what, change, words in (("the last sum is a difference", op, ["Sub %s stands where the template has Add" % name("Add")]),
                                ("another function", erf, ["Tanh %s stands where the template has Erf" % name("Erf")]),
                                ("another constant", constant, ["Div %s: input 1 is constant seven" % name("Div", 0)]),
                                ("a sum past the norm", wire, ["Add %s: input 1 is LayerNormalization" % name("Add")]),
                                ("two that differ: the first is told", two, ["LayerNormalization %s: epsilon is 0.25" % name("LayerNormalization", 0)])):
        told = leftover(change)
        case(what, "" if "matched 11 of 12: a place (up to " in told and all(w in told for w in words) else told or "it says nothing")
    made, turned = {o for n in template.graph.node for o in n.output}, 0
    for n in template.graph.node:
        if n.op_type == "Add" and n.input[0] in made and n.input[1] not in made: n.input[:], turned = n.input[::-1], turned + 1
    onnx.save(template, at("template.onnx"))
    told = leftover(erf)
    case("another function, behind sums whose operands the template has in the other order", "" if turned > 4 and "Tanh %s stands where the template has Erf" % name("Erf") in told else "%d turned: %s" % (turned, told))


def check_almost():
    """Three layers, and behind them two that differ from each other in one node: the three are rolled, and nothing of the two."""
    kinds = [["MatMul", "Relu", "MatMul", "Tanh", "Add"]] * 3
    kinds += [["MatMul", one, "MatMul", "Abs", "MatMul", "Erf", "MatMul", "Neg", "MatMul", "Add"] for one in ("Elu", "Softplus")]
    nodes, inits, x, r = [], [], "x", np.random.default_rng(1)
    for i, ops in enumerate(kinds):
        y = x
        for k, op in enumerate(ops):
            made, more = "v%d_%d" % (i, k), []
            if op == "MatMul": inits.append(numpy_helper.from_array(r.standard_normal((8, 8)).astype(np.float32), "w" + made))
            if op in ("MatMul", "Add"): more = ["w" + made] if op == "MatMul" else [x]
            nodes.append(helper.make_node(op, [y, *more], [made]))
            y = made
        x = y
    form = lambda name: [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4, 8])]
    m = helper.make_model(helper.make_graph(nodes, "almost", form("x"), form(x), inits), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(m, at("almost.onnx"))
    p = roll(at("almost.onnx"))
    feeds = {"x": r.standard_normal((1, 4, 8)).astype(np.float32)}
    why = p.stderr if p.returncode else "" if shapes(onnx.load(at("rolled.onnx")))[0] == (3, 5) else str(shapes(onnx.load(at("rolled.onnx"))))
    if not why: why = "" if np.allclose(*(session(onnx.load(at(name))).run(None, feeds)[0] for name in ("almost.onnx", "rolled.onnx")), rtol=1e-5) else "ONNX Runtime differs"
    case("three layers are rolled, two that almost repeat are not", why)
    m = onnx.load(t.model("whisper-tiny"))                   # the encoder is rolled; the second of the decoder's three layers is another
    norm = [n for n in m.graph.node if n.op_type == "LayerNormalization"][-5]
    next(a for a in norm.attribute if a.name == "epsilon").f = 0.5
    onnx.save(m, at("almost.onnx"))
    p = roll(at("almost.onnx"))
    case("layers that almost repeat beside a loop are told, and where they differ", "" if all(w in p.stderr for w in ("not rolled: two layers share 53 of 54 nodes", norm.name, "epsilon 0.5, layer 0 1e-05")) else "it says: " + p.stderr)


# ---- hierarchies -----------------------------------------------------------------------------------------------------------------

def nodes_below(m, scope):
    """Nodes whose scope path holds `scope`."""
    return sum(scope in ast.literal_eval(p.value) for n in m.graph.node for p in n.metadata_props if p.key == SCOPES)


def check_hierarchy():
    name = "bert-12"
    m = onnx.load(t.model(name))
    size = nodes_below(m, "encoder.layer.0")
    layer = '"encoder","encoder.layer.%d"'
    for what, option, expected in (
            ("two levels", '[[%s]]' % (layer % 0), (12, size)), ("with the empty root", '[["",%s]]' % (layer % 0), (12, size)), ("any layer", '[[%s]]' % (layer % 7), (12, size)),
            ("three levels and more", '[[%s,"encoder.layer.0.attention"],[%s,"encoder.layer.0.intermediate"],[%s,"encoder.layer.0.output"]]' % ((layer % 0,) * 3), (12, size)),
            ("two layers as one body", '[[%s],[%s]]' % (layer % 0, layer % 1), (6, 2 * size)), ("three layers", '[[%s],[%s],[%s]]' % (layer % 0, layer % 1, layer % 2), (4, 3 * size)),
            ("the same group twice", '[[%s],[%s]]' % ((layer % 0,) * 2), (12, size)), ("FINN's older form", '[%s]' % (layer % 0), (12, size)), ("a bare name", 'encoder.layer.0', (12, size))):
        p = roll(t.model(name), "--hierarchy", option)
        r = None if p.returncode else onnx.load(at("rolled.onnx"))
        case("hierarchy: " + what, p.stderr if r is None else proven(t.model(name), name) or ("" if shapes(r) == [expected] else "%s, not %s" % (shapes(r), expected)))
    refused("hierarchy: half a layer", roll(t.model(name), "--hierarchy", '[[%s,"encoder.layer.0.attention"]]' % (layer % 0)), "add its scope", "encoder.layer.0.intermediate")
    refused("hierarchy: all layers at once", roll(t.model(name), "--hierarchy", '[["encoder"]]'), "12", "1 iteration")
    refused("hierarchy: no such scope", roll(t.model(name), "--hierarchy", '[["encoder","encoder.layers.0"]]'), "encoder.layer.0", "(%d)" % size)
    refused("hierarchy: no list", roll(t.model(name), "--hierarchy", '[["encoder"'), "list")


def check_scopes():
    """A scope that no node has: those as deep are told, six at most, with their nodes, the first and the last node's, too."""
    name = lambda k: "block.%d" % (k // 2)
    nodes = [helper.make_node(op, ["x%d" % k], ["x%d" % (k + 1)], name="n%d" % k) for k, op in enumerate(("Neg", "Exp", "Tanh") * 5)]
    for k, n in enumerate(nodes[:-1]): n.metadata_props.add(key=SCOPES, value=str(["", name(k), name(k) + ".inner"]))
    nodes[-1].metadata_props.add(key=SCOPES, value=str(["", "tail", "tail.inner"]))
    info = lambda v: helper.make_tensor_value_info(v, onnx.TensorProto.FLOAT, [2])
    for few in (nodes, nodes[:5]):
        onnx.save(helper.make_model(helper.make_graph(few, "scopes", [info("x0")], [info(few[-1].output[0])]), opset_imports=[helper.make_opsetid("", 18)], ir_version=9), at("scopes.onnx"))
        there = list(dict.fromkeys(ast.literal_eval(n.metadata_props[0].value)[1] for n in few))
        m = onnx.load(at("scopes.onnx"))
        p = roll(at("scopes.onnx"), "--hierarchy", '[["elsewhere"]]')
        want = ", ".join("%s (%d)" % (scope, nodes_below(m, scope)) for scope in there[:6])
        refused("hierarchy: no such scope of %d" % len(there), p, "'elsewhere'; scopes as deep, with their nodes: %s [" % want)


def hinted(metadata, name="node", output="y", attributes={}):
    """The scope that mlo gives a model's only node."""
    n = helper.make_node("Relu", ["x"], [output], name=name)
    for k, v in metadata.items(): n.metadata_props.add(key=k, value=v)
    info = lambda v: helper.make_tensor_value_info(v, onnx.TensorProto.FLOAT, [2])
    onnx.save(helper.make_model(helper.make_graph([n], "one", [info("x")], [info(output)]), opset_imports=[helper.make_opsetid("", 18)], ir_version=9), at("one.onnx"))
    p = t.call("scope", at("one.onnx"), "--onnx", "-o", at("said.onnx"), text=True)
    if p.returncode: return p.stderr
    return next((m.value for m in onnx.load(at("said.onnx")).graph.node[0].metadata_props if m.key == "mlo.scope"), None)


def check_said():
    """Scopes as exporters write them, and what is none."""
    classes, space = "pkg.torch.onnx.class_hierarchy", "namespace"
    rows = [("a list", {SCOPES: "['', 'm', 'm.layers.0', 'relu']"}, "m/m.layers.0"),
            ("a list of the module itself", {SCOPES: "['', 'm', 'm.layers.0']"}, "m/m.layers.0"),
            ("a list with other quotes, tabs and new lines", {SCOPES: ' ["",\t"m",\n "m.a", "relu" ]'}, "m/m.a"),
            ("a list with an escape", {SCOPES: r"['m', 'm.it\'s', 'relu']"}, "m/m.it's"),
            ("a list of nothing", {SCOPES: "[]"}, None),
            ("a list of one level", {SCOPES: "['relu']"}, ""),
            ("a list of one module", {SCOPES: "['act.0']"}, "act.0"),
            ("a list of what the node makes", {SCOPES: "['act.0']"}, "", "node", "act.0"),
            ("a module right below the root, by its class", {SCOPES: "['', 'act.0']", classes: "['', 'torch.nn.ReLU']"}, "act.0"),
            *[("an operation right below the root, by its class %s" % c, {SCOPES: "['', 'act.0']", classes: "['', '%s']" % c}, "") for c in ("aten.relu.default", "prims.mul", "_operator.add", "<built-in function>", "torch.ops.x")],
            ("classes of another length", {SCOPES: "['', 'act.0']", classes: "['aten.relu.default']"}, "act.0"),
            ("classes that are no list", {SCOPES: "['', 'act.0']", classes: "aten.relu.default"}, "act.0"),
            ("a path", {SCOPES: "m/layers.0/mlp"}, "m/m.layers.0/m.layers.0.mlp"),
            ("a path of full names", {SCOPES: "m/m.layers.0"}, "m/m.layers.0"),
            ("a list that does not end", {SCOPES: "['m', 'm.a'", space: "m: M/node_relu: aten.relu"}, "['m', 'm.a'"),
            ("an empty text", {SCOPES: "", space: "m: M/m.a: A/node_relu: aten.relu"}, "m/m.a"),
            ("no modules", {SCOPES: "['_empty_nn_module_stack_from_metadata_hook', 'relu']"}, None),
            ("a namespace without modules", {space: "_empty_nn_module_stack_from_metadata_hook: relu"}, None),
            ("an empty namespace", {space: ""}, None),
            ("a namespace of one level", {space: "m: M"}, "m"),
            ("a namespace of a node below the root", {space: ": M/node_relu: aten.relu"}, ""),
            ("seventy levels: the first 64", {SCOPES: "/".join("abcdefghij"[k % 10] for k in range(70))}, None),
            ("mlo's own first", {"mlo.scope": "a/a.b", SCOPES: "['c', 'relu']"}, "a/a.b"),
            ("a name as TorchScript writes it", {}, "m/m.layers.0", "/m/layers.0/Relu_1"),
            ("a name below the root", {}, None, "/Relu_1"), ("a name", {}, None, "Relu_1"), ("a number", {}, None, "0.5"),
            ("a parameter's name", {}, "encoder/encoder.layer.0", "encoder.layer.0.bias_DequantizeLinear"),
            ("a parameter's name, numbers below numbers", {}, "a.0.1", "a.0.1.w_Relu"),
            ("a name that begins with a number", {}, "0/0.a", "0.a.w_Relu"),
            ("a name that begins with a dot", {}, ".a", ".a.w_Relu")]
    for what, metadata, want, *more in rows:
        got = hinted(metadata, *more)
        if what.startswith("seventy"): case("scope: " + what, "" if got.count("/") == 63 else str(got))
        else: case("scope: " + what, "" if got == want else "%r, not %r" % (got, want))


def check_inferred():
    """Layers that lost their scopes get those of the others, moved on by their numbers where these are numbers."""
    def layers(name, lost, n=4, number=lambda k: k):
        """A scope of layer k is name(k) or below; those of layer `lost` are gone."""
        nodes, inits, x, truth = [], [], "x", {}
        for k in range(n):
            top = name(number(k))
            last = top.rsplit("/", 1)[-1]
            for i, (op, below) in enumerate((("MatMul", "/%s.mlp" % last), ("Relu", "/%s.mlp/%s.mlp.act" % (last, last)), ("MatMul", "/%s_norm" % last), ("Tanh", "/other"), ("Neg", "/%s/x" % last), ("Add", ""))):
                made = "v%d_%d" % (k, i)
                more = [x] if op == "Add" else []
                if op == "MatMul":
                    inits.append(numpy_helper.from_array(np.eye(4, dtype=np.float32) * (k + i + 1), "w" + made))
                    more = ["w" + made]
                nodes.append(helper.make_node(op, [nodes[-1].output[0] if i else x, *more], [made], name="n%d_%d" % (k, i)))
                truth[nodes[-1].name] = top + below
                if k != lost: nodes[-1].metadata_props.add(key="mlo.scope", value=top + below)
            x = nodes[-1].output[0]
        info = lambda v: helper.make_tensor_value_info(v, onnx.TensorProto.FLOAT, [2, 4])
        onnx.save(helper.make_model(helper.make_graph(nodes, "layers", [info("x")], [info(x)], inits), opset_imports=[helper.make_opsetid("", 18)], ir_version=9), at("layers.onnx"))
        t.good("scope", at("layers.onnx"), "--onnx", "-o", at("scoped.onnx"))
        got = {m.name: {p.key: p.value for p in m.metadata_props}.get("mlo.scope") for m in onnx.load(at("scoped.onnx")).graph.node}
        return {k: (got[k], truth[k]) for k in got if k.startswith("n%d_" % lost)}
    exact = lambda got: "" if all(a == b or b.endswith("_norm") and a.endswith("_norm") for a, b in got.values()) else str(got)      # a longer name is none of the layer's
    within = lambda got, whole: "" if all(a is not None and (a + "/").startswith(whole) for a, _ in got.values()) else str(got)
    for lost in range(4): case("layer %d of four, numbered" % lost, exact(layers(lambda k: "enc/enc.h.%d" % k, lost)))
    case("a number of several digits", exact(layers(lambda k: "enc/enc.h.%d" % k, 1, number=lambda k: k + 9)))
    case("a number with letters behind", exact(layers(lambda k: "h%db" % k, 2)))
    case("numbers that go down: below 0 there is none", within(layers(lambda k: "enc/enc.h.%d" % k, 3, number=lambda k: 2 - k), "enc/"))
    case("no numbers", within(layers(lambda k: "enc/" + "abcd"[k], 2), "enc/"))
    case("a number above the last level", within(layers(lambda k: "enc.%d/body" % k, 2), ""))
    case("numbers that no layer has", within(layers(lambda k: "enc/h.%d" % k, 1, number=lambda k: 99999999999 + k), "enc/"))


def check_asked():
    """A hierarchy in its spellings, and what is none."""
    name = "mlp-res"
    for option in ('[["layers.0"]]', ' [ [ "" , "layers.1" ] ]', "[['layers.2']]", '[["layers.0"],\n["layers.0"]]', "layers.3", '["layers.4"]', '[[""],["layers.0"]]'):
        p = roll(t.model(name), "--hierarchy", option)
        if option.startswith('[[""]'): case("hierarchy: the whole model is no layer", "" if p.returncode else "is rolled")
        else: case("hierarchy: %r" % option, p.stderr if p.returncode else "" if shapes(onnx.load(at("rolled.onnx"))) == [(6, 7)] else str(shapes(onnx.load(at("rolled.onnx")))))
    for option in "", "   ", "[ ]": refused("hierarchy: %r names none" % option, roll(t.model(name), "--hierarchy", option), "names no scope")
    for option in '[[]]', '[["layers.0"', '[["layers.0"],[]]', '[["layers.0"],3]', '[[3]]', '[["layers.0]]': refused("hierarchy: %r is no list" % option, roll(t.model(name), "--hierarchy", option), "is not a list of lists")
    for option in '[["layers"]]', '[["layers.00"]]', '[["layers.0x"]]', '[["layers.0","layers.0.a.b"]]': refused("hierarchy: %r is no scope" % option, roll(t.model(name), "--hierarchy", option), "no node has the scope")
    m = onnx.load(t.model(name))
    for n in m.graph.node: del n.metadata_props[:]
    for k, n in enumerate(m.graph.node): n.name = "n%d" % k
    onnx.save(m, at("blank.onnx"))
    refused("hierarchy: of a model without scopes", roll(at("blank.onnx"), "--hierarchy", "layers.0"), "no scopes in this model")
    t.good("extract", t.model(name), "--onnx", "-o", at("marked.onnx"))
    t.good("extract", at("marked.onnx"), "--onnx", "-o", at("again.onnx"))
    case("marks of an earlier extract are replaced", "" if onnx.load(at("again.onnx")).graph == onnx.load(at("marked.onnx")).graph else "another graph")


t.main(check_said, check_inferred, check_asked, check_template, check_disguised, check_given, check_moved, check_wrong, check_leftover, check_anywhere, check_almost, check_hierarchy, check_scopes, floor=194)
