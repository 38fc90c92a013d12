#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""roll --as finn: loops in FINN's form.

Who judges: qonnx reads them (its ModelWrapper is what FINN works on); each is executed by FINN's rule - for i in range(iteration): x =
body(x, stacks[i]) - with ONNX Runtime doing the body and what lies around it; `mlo check` proves them, `mlo run` evaluates them.
"""
import json
import onnx
import numpy as np
from onnx import helper
import harness as t
from harness import at, case
from graphs import session

DOMAIN = "finn.custom_op.fpgadataflow.rtl"
MODELS = ["bert-tiny", "bert-tiny-mask", "bert-tiny-shared-biases", "bert-12-torchscript", "vit-tiny", "gpt2-tiny", "llama-tiny-opset23", "mlp-res", "t5-tiny", "whisper-tiny"]


def attributes(node): return {a.name: helper.get_attribute_value(a) for a in node.attribute}
def loops(m): return [n for n in m.graph.node if n.op_type == "FINNLoop"]


def rolled(name):
    t.good("roll", t.model(name), "--as", "finn", "--onnx", "-o", at("finn.onnx"))
    return onnx.load(at("finn.onnx"))


def form(m):
    """'' when each loop has FINN's attributes, names and edges, and a body that needs nothing from around it."""
    for i, n in enumerate(loops(m)):
        a = attributes(n)
        if (n.domain, n.name) != (DOMAIN, "FINNLoop_%d" % i): return "%s %s" % (n.domain, n.name)
        if sorted(a) != ["backend", "body", "inputDataType", "iteration", "outputDataType"]: return str(sorted(a))
        if (a["backend"], a["inputDataType"], a["outputDataType"]) != (b"fpgadataflow", b"FLOAT32", b"FLOAT32"): return str(a["backend"])
        body = a["body"]
        if len(n.output) != 1 or len(body.output) != 1 or len(n.input) != len(body.input): return "edges"
        made = {x.name for x in body.input} | {x.name for x in body.initializer}
        for k in body.node:
            if not k.name.startswith(n.name + "_" + k.op_type + "_"): return k.name
            if any(x and x not in made for x in k.input): return "%s reads from outside" % k.name
            made |= set(k.output)
        if len({k.name for k in body.node}) != len(body.node): return "a name twice"
    return ""


def seen_by_qonnx(m):
    """'' when qonnx's ModelWrapper takes the model and each body, and knows all shapes."""
    from qonnx.core.modelwrapper import ModelWrapper
    whole = ModelWrapper(m)
    for n in whole.get_nodes_by_op_type("FINNLoop"):
        a = attributes(n)
        body = ModelWrapper(helper.make_model(a["body"], opset_imports=m.opset_import))
        for outer, inner in list(zip(n.input, body.graph.input))[1:]:
            if whole.get_tensor_shape(outer) != [a["iteration"]] + body.get_tensor_shape(inner.name): return "%s: %s and %s" % (n.name, whole.get_tensor_shape(outer), body.get_tensor_shape(inner.name))
        for k in body.graph.node:
            if body.get_tensor_shape(k.output[0]) is None: return "no shape for %s" % k.output[0]
    return ""


def execute(m, feeds):
    """Every value of the model: ONNX Runtime node by node around the loops, FINN's rule for the loops."""
    values = {i.name: onnx.numpy_helper.to_array(i) for i in m.graph.initializer}
    values.update(feeds)
    opsets = [o for o in m.opset_import if o.domain != DOMAIN]
    def run(graph, given):
        r = session(helper.make_model(graph, opset_imports=opsets, ir_version=m.ir_version)).run(None, {i.name: given[i.name] for i in graph.input})
        return dict(zip([o.name for o in graph.output], r))
    for n in m.graph.node:
        if n.op_type != "FINNLoop":
            ins = [x for x in dict.fromkeys(n.input) if x]
            infos = [helper.make_tensor_value_info(x, helper.np_dtype_to_tensor_dtype(values[x].dtype), values[x].shape) for x in ins]
            values.update(run(helper.make_graph([n], "one", infos, [onnx.ValueInfoProto(name=o) for o in n.output if o]), values))
            continue
        a = attributes(n)
        body, x = a["body"], values[n.input[0]]
        once = session(helper.make_model(body, opset_imports=opsets, ir_version=m.ir_version))
        for i in range(a["iteration"]):
            x = once.run(None, dict({b.name: values[k][i] for k, b in list(zip(n.input, body.input))[1:]}, **{body.input[0].name: x}))[0]
        values[n.output[0]] = x
    return [values[o.name] for o in m.graph.output]


def check_models():
    for name in MODELS:
        m, original = rolled(name), onnx.load(t.model(name))
        case("%s has FINN's form" % name, form(m) or ("" if loops(m) else "no loop"))
        case("%s is read by qonnx" % name, seen_by_qonnx(m))
        t.good("roll", t.model(name), "--onnx", "-o", at("scan.onnx"))
        said = [[(p.key, p.value) for p in n.metadata_props] for n in onnx.load(at("scan.onnx")).graph.node if n.op_type == "Scan"]
        case("%s: a loop says of its layers what a Scan does" % name, "" if said and said == [[(p.key, p.value) for p in n.metadata_props] for n in loops(m)] else str(said)[:200])
        p = t.call("check", at("finn.onnx"), "--against", t.model(name), text=True)
        case("%s is proved" % name, p.stderr if p.returncode else "")
        feeds = {k: v[:1] for k, v in np.load(t.calibration(name)).items()}
        if name == "t5-tiny": feeds["a_1"] = np.ones_like(feeds["a_1"])             # its attention mask
        want, got = session(original).run(None, feeds), execute(m, feeds)
        worst = max(float(np.max(np.abs(a - b)) / np.max(np.abs(a))) for a, b in zip(want, got))
        case("%s by FINN's rule" % name, "" if worst < 1e-5 else "differs by %g" % worst)
        np.savez(at("in.npz"), **feeds)
        t.good("run", at("finn.onnx"), "--inputs", at("in.npz"), "--outputs", at("out.npz"))
        mine = list(np.load(at("out.npz")).values())
        worst = max(float(np.max(np.abs(a - b)) / np.max(np.abs(a))) for a, b in zip(want, mine))
        case("%s in mlo run" % name, "" if worst < 1e-4 else "differs by %g" % worst)


def check_sabotage():
    """A FINNLoop that was tampered with is not proved."""
    for what in "iteration", "epsilon", "stack", "constant":
        m = rolled("bert-tiny")
        n = loops(m)[0]
        body = next(a for a in n.attribute if a.name == "body").g
        if what == "iteration": next(a for a in n.attribute if a.name == "iteration").i = 1
        if what == "epsilon": next(a for k in body.node if k.op_type == "LayerNormalization" for a in k.attribute if a.name == "epsilon").f = 0.5
        if what == "stack": n.input[1], n.input[3] = n.input[3], n.input[1]
        if what == "constant":
            c = next(k for k in body.node if k.op_type == "Constant").attribute[0].t
            c.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(c) + 1, c.name))
        onnx.save(m, at("bad.onnx"))
        p = t.call("check", at("bad.onnx"), "--against", t.model("bert-tiny"), text=True)
        case("tampered %s is refused" % what, "" if p.returncode in (1, 3) and "[MLO_E_" in p.stderr else "status %d: %s" % (p.returncode, p.stderr))


def check_refusals():
    """What a FINNLoop cannot say."""
    m = onnx.load(t.model("mlp-res"))
    second = [n for n in m.graph.node if n.op_type == "Add"][2]
    m.graph.output.append(helper.make_tensor_value_info(second.output[0], 1, [1, 8, 32]))
    onnx.save(m, at("tapped.onnx"))
    p = t.call("roll", at("tapped.onnx"), "--as", "finn", text=True)
    case("a tap is refused", "" if p.returncode == 4 and "--as scan" in p.stderr else p.stderr or "it says nothing")
    p = t.call("roll", t.model("mlp-res"), "--as", "brainsmith", text=True)
    case("another form is refused", "" if p.returncode == 2 and "scan and finn" in p.stderr else p.stderr or "it says nothing")


def layers(kind=onnx.TensorProto.FLOAT, dims=(2, 4), between=(), shared=None, branches=False, inputs=()):
    """x = tanh(x w_k + x) four times; each reads `shared`, too, by itself or in both branches of an If."""
    r, nodes, inits, x = np.random.default_rng(2), list(between), [], "x"
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    info = lambda name: helper.make_tensor_value_info(name, kind, dims)
    for k in range(4):
        inits.append(onnx.numpy_helper.from_array((0.3 * r.standard_normal((4, 4))).astype(dtype), "w%d" % k))
        nodes += [helper.make_node("MatMul", [x, "w%d" % k], ["m%d" % k]), helper.make_node("Add", ["m%d" % k, x], ["a%d" % k]), helper.make_node("Tanh", ["a%d" % k], ["t%d" % k])]
        x = "t%d" % k
        if branches: nodes.append(helper.make_node("If", ["go"], ["s%d" % k], **{way + "_branch": helper.make_graph([helper.make_node(op, [x, shared], [op + str(k)])], way, [], [info(op + str(k))]) for way, op in (("then", "Mul"), ("else", "Sub"))}))
        elif shared: nodes.append(helper.make_node("Mul", [x, shared], ["s%d" % k]))
        if shared: x = "s%d" % k
    ins = [info("x"), *inputs]
    m = helper.make_model(helper.make_graph(nodes, "layers", ins, [helper.make_tensor_value_info(x, kind, None)], inits), opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(m, at("layers.onnx"))
    return m


def check_shared():
    """What all iterations read: a constant goes into the body, what is computed is repeated, for branches, too."""
    tanh = helper.make_node("Sin", ["x"], ["q"])
    go = helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, [])
    x = np.random.default_rng(3).standard_normal((2, 4)).astype(np.float32)
    for what, more in (("a computed value", {}), ("a computed value, in branches", {"branches": True, "inputs": [go]})):
        m = layers(between=[tanh], shared="q", **more)
        p = t.call("roll", at("layers.onnx"), "--as", "finn", "--onnx", "-o", at("finn.onnx"), text=True)
        if p.returncode: case(what, p.stderr); continue
        f, feeds = onnx.load(at("finn.onnx")), {"x": x, **({"go": np.array(True)} if more else {})}
        p = t.call("check", at("finn.onnx"), "--against", at("layers.onnx"), text=True)
        loop = loops(f)[0]
        own = {i.name for i in attributes(loop)["body"].input} | {o for n in attributes(loop)["body"].node for o in n.output}
        outer = [i for n in attributes(loop)["body"].node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH for k in a.g.node for i in k.input if i not in own and i not in {o for q in a.g.node for o in q.output}]
        case(what, (p.stderr if p.returncode else "") or ("branches read %s" % outer if outer else ""))
        np.savez(at("in.npz"), **feeds)
        t.good("run", at("finn.onnx"), "--inputs", at("in.npz"), "--outputs", at("out.npz"))
        want, got = session(m).run(None, feeds)[0], list(np.load(at("out.npz")).values())[0]
        case(what + ", in mlo run", "" if np.max(np.abs(want - got)) < 1e-5 else "differs")
    for what, words, how in (("of doubles", "carries double", {"kind": onnx.TensorProto.DOUBLE}), ("of an open dimension, which all iterations read", "whose shape is not known", {"dims": ("n", 4), "between": [tanh], "shared": "q"}),
                             ("of an open dimension", "", {"dims": ("n", 4)})):
        layers(**how)
        p = t.call("roll", at("layers.onnx"), "--as", "finn", "--onnx", "-o", at("finn.onnx"), text=True)
        case("a loop " + what, "" if (p.returncode in (3, 4) and words in p.stderr if words else p.returncode == 0) else "%d %s" % (p.returncode, p.stderr))
    layers()
    case("--as scan says what is said anyway", "" if t.good("roll", at("layers.onnx"), "--as", "scan", "--onnx") == t.good("roll", at("layers.onnx"), "--onnx") else "another model")


def check_folding():
    """Both of FINN's ways to name a kernel of the loop, and mlo's own, mean the same one."""
    saved = []
    for key in "mvu_2", "FINNLoop_0_MVAU_rtl_2", "FINNLoop_0_body_FINNLoop_0_MVAU_rtl_2", "FINNLoop_0_MVAU_hls_2", "FINNLoop_0_MVAU_2":
        t.write("folding.json", json.dumps({"Defaults": {}, key: {"PE": 4, "SIMD": 8}}))
        t.good("fold", t.model("bert-tiny"), "--folding", at("folding.json"), "--save-folding", at("saved.json"), "-o", at("folded.json"))
        saved.append(json.loads(t.read(at("saved.json"))))
    folded = [k for k, v in saved[0].items() if isinstance(v, dict) and (v.get("PE"), v.get("SIMD")) == (4, 8)]
    case("both styles of FINN's folding keys", "" if all(s == saved[0] for s in saved) and len(folded) == 1 else str(saved))
    for key in "FINNLoop_0_MVAU_rtl_77", "FINNLoop_0_MVAU_xyz_2", "FINNLoop_0_MVAV_rtl_2", "FINNLoop_0_XMVAU_rtl_2", "FINNLoop_2", "MVAU_rtl_2", "FINNLoop_0_MVAU_rtl", "FINNLoop_0_Requant_rtl_2":
        t.write("folding.json", json.dumps({key: {"PE": 4}}))
        p = t.call("fold", t.model("bert-tiny"), "--folding", at("folding.json"), text=True)
        case("%s, a key of no kernel, is refused" % key, "" if p.returncode == 1 and key in p.stderr and "does not have" in p.stderr else "%d %s" % (p.returncode, p.stderr))


t.main(check_models, check_sabotage, check_refusals, check_shared, check_folding, floor=73)
