#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scope, extract, roll, check: every loop found, rolled, run in ONNX Runtime, and proved. (test_perturb.py: every change on purpose.)

Usage: python tests/test_roll.py path/to/mlo [CHECK ...]
"""
import ast, copy, json, os, random, re
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
import graphs
import harness as t
from harness import at, case
from graphs import attribute, body, difference, execute, meta, scans

QONNX = "qonnx.custom_op.general"
SCOPES, CLASSES = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy"


# ---- helpers -------------------------------------------------------------------------------------------------------------------

def call(*args): return t.call(*args, text=True)


def save(m, name="in.onnx"):
    onnx.save(m, at(name))
    return at(name)


def load(name): return onnx.load(t.model(name))
def sizes(m):
    """Per loop: iterations x body nodes, carried, per-iteration inputs, taps."""
    out = []
    for s in scans(m):
        k = attribute(s, "num_scan_inputs").i
        states = len(s.input) - k
        out.append((int(meta(s)["mlo.iterations"]), len(body(s).node), states, k, len(s.output) - states))
    return out


def feeds(m): return graphs.feeds(m, ints=(3, 50))


def roll(m, *options, name="in.onnx"):
    """Rolls a model; (rolled model or None, stderr, status)."""
    path = m if isinstance(m, str) else save(m, name)
    if os.path.exists(at("rolled.onnx")): os.remove(at("rolled.onnx"))
    r = call("roll", path, "--onnx", "-o", at("rolled.onnx"), *options)
    return (onnx.load(at("rolled.onnx")) if not r.returncode else None), r.stderr, r.returncode


def quantizer():
    """QONNX's Quant with ROUND, as a function of the model's own: ONNX Runtime does not know the operator."""
    said = lambda name: helper.make_node("Constant", [], [name])
    def given(name):
        n = said(name)
        n.attribute.append(onnx.AttributeProto(name="value_int", ref_attr_name=name, type=onnx.AttributeProto.INT))
        return [n, helper.make_node("Cast", [name], [name + "_f"], to=T.FLOAT)]
    lines = """low_bits Sub bits signed_f | two Add one1 one1 | span Pow two low_bits | unsigned Sub one1 signed_f | less Mul narrow_f unsigned | top Sub span one1 | hi Sub top less
        under Sub narrow_f span | lo Mul signed_f under | steps Div x scale | moved Add steps zero | capped Min moved hi | held Max capped lo | whole Round held | back Sub whole zero | y Mul back scale"""
    nodes = [*given("signed"), *given("narrow"), helper.make_node("Constant", [], ["one1"], value_float=1.0)]
    for line in re.split(r"[|\n]", lines):
        out, op, *ins = line.split()
        nodes.append(helper.make_node(op, ins, [out]))
    return helper.make_function(QONNX, "Quant", ["x", "scale", "zero", "bits"], ["y"], nodes, [helper.make_opsetid("", 17)], ["signed", "narrow"])


def run(m, f):
    """What ONNX Runtime makes of a model, QONNX's, too."""
    if any(o.domain == QONNX for o in m.opset_import):
        m = copy.deepcopy(m)
        for n in [n for g in [m.graph, *map(body, scans(m))] for n in g.node if n.domain == QONNX]:
            mode = attribute(n, "rounding_mode")
            if n.op_type != "Quant" or mode.s != b"ROUND": raise ValueError("%s %s is not run here" % (n.op_type, mode.s))
            n.attribute.remove(mode)
        m.functions.append(quantizer())
    return execute(m, f)


def truth(m, f):
    """What ONNX Runtime makes of a model, or, when there is an Attention, ONNX itself: in a mask ONNX Runtime takes the
    lowest number for -infinity, so that it has queries without any key where ONNX (and PyTorch) mix all of them."""
    if any(n.op_type == "Attention" for n in m.graph.node): return ReferenceEvaluator(m).run(None, f)
    return run(m, f)


def proven(m, rolled, original_path=None, tolerance=1e-5):
    """Why a rolled model is not as good as its original; "" when it is."""
    original_path = original_path or save(m, "original.onnx")
    onnx.checker.check_model(m, full_check=True)
    try: onnx.checker.check_model(rolled, full_check=True)
    except Exception as e: return f"onnx.checker: {e}"[:300]
    r = call("check", save(rolled, "again.onnx"), "--against", original_path)
    if r.returncode: return f"check: {r.stderr.strip()[:300]}"
    f = feeds(m)
    a = truth(m, f)
    try: b = run(rolled, f)
    except Exception as e: return f"does not run: {e}"[:300]
    d = difference(a, b)
    return "" if d < tolerance else f"differs by {d:.3g}"


# ---- the models ------------------------------------------------------------------------------------------------------------------

EXPECTED = {   # (iterations, body nodes, carried, per-iteration inputs, taps) of each loop
    "bert-tiny": [(2, 34, 1, 16, 0)], "bert-tiny-mask": [(2, 34, 1, 16, 0)], "bert-tiny-dynamic": [(2, 34, 1, 16, 0)],
    "bert-tiny-external": [(2, 34, 1, 16, 0)], "bert-tiny-shared-biases": [(2, 34, 1, 16, 0)], "bert-12-torchscript": [(12, 34, 1, 16, 0)],
    "vit-tiny": [(4, 33, 1, 16, 0)], "gpt2-tiny": [(4, 35, 1, 12, 0)], "llama-tiny-opset23": [(4, 48, 1, 9, 0)], "mlp-res": [(6, 7, 1, 6, 0)],
    "t5-tiny": [(3, 35, 1, 8, 0), (4, 59, 1, 13, 0)], "whisper-tiny": [(3, 32, 1, 15, 0), (3, 54, 1, 24, 0)],
    "bert-tiny-qdq": [(2, 116, 1, 57, 0)], "bert-tiny-qonnx": [(2, 49, 1, 30, 0)], "brevitas-qonnx": [(3, 49, 1, 29, 0)],
}


def anonymous(m, seed=1):
    """No metadata, no names that tell anything, commutative operands in random order."""
    m, r, names = copy.deepcopy(m), random.Random(seed), {}
    kept = {i.name for i in m.graph.input} | {o.name for o in m.graph.output}
    def new(n): return n if not n or n in kept else names.setdefault(n, f"v{len(names)}")
    for i, n in enumerate(m.graph.node):
        n.name = f"n{i}"
        del n.metadata_props[:]
        n.input[:] = [new(x) for x in n.input]
        n.output[:] = [new(x) for x in n.output]
        if n.op_type in ("Add", "Mul") and r.random() < 0.5: n.input[:] = n.input[::-1]
    for x in list(m.graph.initializer) + list(m.graph.value_info): x.name = new(x.name)
    return m


def check_models():
    for name, expected in EXPECTED.items():
        path, m = t.model(name), load(name)
        rolled, err, _ = roll(path)
        case(f"{name} rolls", err if rolled is None else "" if sizes(rolled) == expected else f"{sizes(rolled)}, expected {expected}")
        if rolled is None: continue
        first = open(at("rolled.onnx"), "rb").read()
        case(f"{name} is proved and runs", proven(m, rolled, path))
        roll(path)
        case(f"{name} twice the same bytes", "" if open(at("rolled.onnx"), "rb").read() == first else "differ")
        if "qonnx" in name: continue
        blank = anonymous(m)
        rolled, err, _ = roll(blank)
        case(f"{name} without names and metadata", err if rolled is None else f"{sizes(rolled)}" if sizes(rolled) != expected else proven(blank, rolled))


STACKS = {   # what the source model says: each stack's scope, its layers, how many make one body; (carried, taps) of every loop; ops that only the first layer owns, or that are another's
    "albert-tiny": ([("", 4, 1)], (1, 0), ()),                                            # one layer's scope, four times
    "bart-tiny-opset23": ([("m.encoder.layers", 2, 1), ("m.decoder.layers", 3, 1)], (1, 0), ()),
    "clip-tiny": ([("m.vision_model.encoder.layers", 3, 1), ("m.text_model.encoder.layers", 2, 1)], (1, 0), ("Add",)),        # an Add of two masks
    "convnext-tiny": ([(f"m.encoder.stages.{k}.layers", n, 1) for k, n in enumerate((2, 4, 3))], (1, 0), ()),
    "deberta-tiny": ([("m.encoder.layer", 3, 1)], (1, 0), ("Cast", "Not")),               # the mask, as bool, inverted
    "distilbert-torchscript-dynamic": ([("m.transformer.layer", 5, 1)], (1, 0), ("Equal",)),
    "gemma3-tiny": ([("m.layers", 6, 1)], (1, 0), ()),                                    # local and global attention: one body, not three or six
    "gpt2-cache": ([("m.h", 4, 1)], (1, 2), ()),
    "llama-states": ([("m.layers", 4, 1)], (1, 1), ()),
    "modernbert-tiny-opset23": ([("m.layers", 6, 1)], (1, 0), "first"),                           # layer 0 has no norm before its attention: outside
    "neox-tiny": ([("m.layers", 4, 1)], (1, 0), ()),
    "qwen3-tiny-opset23": ([("m.layers", 4, 1)], (1, 0), ()),
    "swin-tiny": ([("m.encoder.layers.0.blocks", 4, 2), ("m.encoder.layers.1.blocks", 4, 2)], (1, 0), ()),        # plain and shifted windows take turns
}


def scopes_of(n):
    """From metadata, or from TorchScript's names: /m/encoder/layer.0/attention/MatMul."""
    said = meta(n).get(SCOPES)
    return ast.literal_eval(said) if said else n.name.split("/")[1:-1]


def layer_in(n, stacks):
    """(stack, layer) that a node belongs to, or None."""
    path = ".".join(s for s in scopes_of(n)) if SCOPES not in meta(n) else None
    for s in stacks:
        for full in [path] if path is not None else scopes_of(n):
            if full.startswith(s + ".") and full[len(s) + 1:].split(".")[0].isdigit(): return s, int(full[len(s) + 1:].split(".")[0])
    return None


def misplaced(path, stacks, own):
    """What the marks of extract do not agree with the scopes about: layers of one stack in one loop, in order, complete."""
    if call("extract", path, "--onnx", "-o", at("marked.onnx")).returncode: return "extract refuses it"
    loops, outside, inside = {}, [], 0
    for n in onnx.load(at("marked.onnx")).graph.node:
        layer, mark = layer_in(n, stacks), meta(n)
        if layer and "mlo.loop" in mark: loops.setdefault((mark["mlo.loop"], int(mark["mlo.instance"])), set()).add(layer); inside += 1
        elif layer: outside.append((layer, n.op_type))
    for (loop, k), layers in sorted(loops.items()):
        stack, per = next(iter(layers))[0], stacks[next(iter(layers))[0]]
        first = min(l for (name, _), others in loops.items() if name == loop for _, l in others)
        if layers != {(stack, first + k * per + i) for i in range(per)}: return f"{loop}, iteration {k}: {sorted(layers)}"
    odd = [o for o in outside if o[0][1] or (own != "first" and o[1] not in own)]
    return f"{len(odd)} nodes of layers outside of the loops: {odd[:4]}" if odd or not inside else ""


def check_stacks():
    """Loops are the layers that the source model has: as many, whole, in order; and so without names and metadata."""
    for name, (stacks, roles, own) in STACKS.items():
        path = t.model(name)
        m, iterations = load(name), sorted(n // per - (own == "first") for _, n, per in stacks)
        truth(m, feeds(m))
        for what, one in (("as exported", m), ("without names and metadata", anonymous(m))):
            rolled, err, _ = roll(one)
            got = sizes(rolled) if rolled else []
            why = err if rolled is None else "" if sorted(s[0] for s in got) == iterations and all((s[2], s[4]) == roles for s in got) else f"{got}, expected {iterations}, {roles}"
            case(f"{name} {what}: {len(stacks)} x {iterations}", why or proven(one, rolled, tolerance=1e-4))
            if own == "first": case(f"{name} {what}: says why a layer stays outside", "" if all(f"matched {i} of {i + 1}: layer 0: " in err for i in iterations) else err or "silent")
        if stacks[0][0]: case(f"{name}: each iteration is its layer", misplaced(path, {s: per for s, _, per in stacks}, own))


def shape_of_body(m):
    """The body without names: ops, attributes, wiring by position, forms of inputs."""
    out = []
    for s in scans(m):
        g, number, ops = body(s), {}, []
        for i in g.input: number[i.name] = len(number)
        for n in g.node:
            ops.append((n.op_type, [number.get(x, -1) for x in n.input], sorted(a.SerializeToString() for a in n.attribute)))
            for x in n.output: number[x] = len(number)
        out.append(([i.type.SerializeToString() for i in g.input], ops))
    return out


def check_learned():
    """Whether two biases happen to be equal does not show in the body."""
    a, _, _ = roll(t.model("bert-tiny"))
    b, _, _ = roll(t.model("bert-tiny-shared-biases"))
    case("shared biases: the same body", "" if a and b and shape_of_body(a) == shape_of_body(b) else "bodies differ")


# ---- changes on purpose ----------------------------------------------------------------------------------------------------------

def residual(layers=5, width=8, scale=None, tweak=None, opset=18):
    """x + W2 relu(W1 norm(x)) per layer, with hooks for what should differ."""
    r, nodes, init, x = np.random.default_rng(3), [], [], "x"
    def const(name, a): init.append(numpy_helper.from_array(np.asarray(a), name)); return name
    for k in range(layers):
        p = f"layers.{k}."
        f = lambda *s: r.standard_normal(s).astype(np.float32)
        own = [helper.make_node("LayerNormalization", [x, const(p + "n.w", f(width)), const(p + "n.b", f(width))], [p + "n"], name=p + "norm", epsilon=1e-5, axis=-1),
               helper.make_node("MatMul", [p + "n", const(p + "a.w", f(width, 2 * width))], [p + "a"], name=p + "a"),
               helper.make_node("Relu", [p + "a"], [p + "r"], name=p + "relu"),
               helper.make_node("MatMul", [p + "r", const(p + "b.w", f(2 * width, width))], [p + "b"], name=p + "b"),
               helper.make_node("Mul", [p + "b", const(p + "s", np.float32(scale(k) if scale else 0.5))], [p + "m"], name=p + "scale"),
               helper.make_node("Add", [x, p + "m"], [p + "y"], name=p + "add")]
        if tweak: own = tweak(k, own, const, x) or own
        nodes += own
        x = own[-1].output[0]
    nodes.append(helper.make_node("Identity", [x], ["y"], name="out"))
    form = lambda n: helper.make_tensor_value_info(n, T.FLOAT, [3, width])
    g = helper.make_graph(nodes, "residual", [form("x")], [form("y")], init)
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def normed(layers=2, width=6, tweak=None):
    """x + softmax(norm(a) norm(b)') a + relu(c): all read norm(x), and the branches a and b are alike as far as one sees from inside them; hooks as above."""
    r, nodes, init, x = np.random.default_rng(5), [], [], "x"
    def const(name, a):
        init.append(numpy_helper.from_array(np.asarray(a, np.float32), name))
        return name
    def root(x, p, own):
        for out, op, *ins in ("sq", "Mul", x, x), ("mean", "ReduceMean", p + "sq"), ("more", "Add", p + "mean", "tiny"), ("root", "Sqrt", p + "more"), ("div", "Div", x, p + "root"), ("y", "Mul", p + "div", const(p + "w", 1 + r.random(width))):
            own.append(helper.make_node(op, ins, [p + out], name=p + out, **({"axes": [-1]} if op == "ReduceMean" else {})))
        return p + "y"
    def add(own, op, ins, out, **how):
        own.append(helper.make_node(op, ins, [out], name=out, **how))
        return out
    const("tiny", 1e-3)
    for k in range(layers):
        p, own = f"layers.{k}.", []
        y = root(x, p + "in.", own)
        a, b, c = [add(own, "MatMul", [y, const(p + n + ".w", r.standard_normal((width, width)))], p + n) for n in "abc"]
        q, t = root(a, p + "norm_a.", own), root(b, p + "norm_b.", own)
        for op in "Tanh", "Neg", "Erf", "Sin": q, t = add(own, op, [q], q + op), add(own, op, [t], t + op)
        s = add(own, "Softmax", [add(own, "MatMul", [q, add(own, "Transpose", [t], p + "turned", perm=[1, 0])], p + "scores")], p + "soft")
        o = add(own, "MatMul", [s, add(own, "Relu", [c], p + "relu")], p + "mixed")
        own.append(helper.make_node("Add", [o, x], [p + "y"], name=p + "y"))
        if tweak: own = tweak(k, own, const, x) or own
        nodes += own
        x = own[-1].output[0]
    nodes.append(helper.make_node("Identity", [x], ["y"], name="out"))
    form = lambda n: helper.make_tensor_value_info(n, T.FLOAT, [3, width])
    return helper.make_model(helper.make_graph(nodes, "normed", [form("x")], [form("y")], init), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def expect(name, m, loops=None, says=(), status=None, options=()):
    """Rolls to these (iterations, body nodes) and is proved; or refuses with the status; stderr holds what it should say."""
    rolled, err, code = roll(m, *options)
    why = "; ".join(f"does not say '{s}': {err.strip()[:300]}" for s in says if s not in err)
    if status is not None: why = why or ("" if code == status else f"status {code}, expected {status}: {err[:200]}")
    elif rolled is None: why = f"status {code}: {err.strip()[:300]}"
    else:
        got = [s[:2] for s in sizes(rolled)]
        why = why or ("" if loops is None or got == loops else f"{got}, expected {loops}") or proven(m, rolled)
    case(name, why)
    return rolled


def check_roles():
    expect("plain", residual(), [(5, 6)])
    r = expect("per-layer scalar constants become a parameter", residual(scale=lambda k: 0.1 * k + 0.1), [(5, 6)])
    if r: case("its stack holds all layers' values", "" if sizes(r)[0][3] == 5 else f"{sizes(r)}")
    def commuted(k, own, const, x):
        if k % 2: own[-1].input[:] = own[-1].input[::-1]
    expect("commuted operands", residual(tweak=commuted), [(5, 6)])
    def epsilon(k, own, const, x):
        if k == 2: attribute(own[0], "epsilon").f = 0.5
    expect("an epsilon that differs splits the loop and is told", residual(tweak=epsilon), [(2, 6), (2, 6)],
           ["matched 4 of 5: layer 2: LayerNormalization layers.2.norm: epsilon 0.5, others 1e-05"])
    expect("an epsilon that differs in the last of twelve layers is told", residual(12, tweak=lambda k, own, c, x: setattr(attribute(own[0], "epsilon"), "f", 0.5 if k == 11 else 1e-5)), [(11, 6)],
           ["matched 11 of 12: layer 11: LayerNormalization layers.11.norm: epsilon 0.5, others 1e-05"])
    def other(k, own, const, x):
        if k == 3: own[2].op_type = "Tanh"
    expect("an op that differs is told", residual(4, tweak=other), [(3, 6)], ["matched 3 of 4: layer 3: MatMul layers.3.b: input 0 is Tanh layers.3.relu; others (layers.2.b) Relu layers.2.relu"])
    expect("two layers that differ in epsilon: no loop", residual(2, tweak=lambda k, own, c, x: setattr(attribute(own[0], "epsilon"), "f", 0.5 if k else 1e-5)),
           status=4, says=["5 of 6 nodes", "layer 1: LayerNormalization layers.1.norm: epsilon 0.5, layer 0 1e-05", "[MLO_E_LOOP]"])
    def between(k, own, const, x):
        if k == 2: return [helper.make_node("Tanh", [x], ["t"], name="between")] + [*map(lambda n: (n.input.__setitem__(0, "t") if n.input[0] == x else None) or n, own)]
    expect("an op between two layers", residual(tweak=between), [(2, 6), (3, 6)])
    def wide(k, own, const, x):
        if k == 4: own[1].input[1] = const("wide.a", np.ones((8, 20), np.float32)); own[3].input[1] = const("wide.b", np.ones((20, 8), np.float32))
    expect("a last layer of another width stays outside and is told", residual(tweak=wide), [(4, 6)], ["matched 4 of 5: layer 4: MatMul layers.4.a: input 1 is float[8,20], others float[8,16]"])
    for n in 2, 3, 5: expect(f"two branches that look alike from inside, {n} layers", normed(n), [(n, len(normed(1).graph.node) - 1)])
    def swapped(k, own, const, x):
        if k == 2: next(n for n in own if n.name == "layers.2.norm_b.mean").op_type = "ReduceMax"
    expect("of two that look alike one differs in the last layer", normed(3, tweak=swapped), [(2, len(normed(1).graph.node) - 1)], ["matched 2 of 3: layer 2", "layers.2.norm_b.mean"])
    def tied(k, own, const, x):
        own[0].input[2] = own[0].input[1]
    expect("a parameter with two consumers", residual(tweak=tied), [(5, 6)])
    def same(k, own, const, x):
        own[1].input[1] = "layers.0.a.w"; own[3].input[1] = "layers.0.b.w"
    expect("weights shared by all layers", residual(tweak=same), [(5, 6)])
    def optional(k, own, const, x):
        return own[:4] + [helper.make_node("Clip", [own[3].output[0], "", f"cap"], [f"layers.{k}.c"], name=f"layers.{k}.clip")] + [own[4], own[5]] if not own[4].input.__setitem__(0, f"layers.{k}.c") else None
    m = residual(tweak=optional)
    m.graph.initializer.append(numpy_helper.from_array(np.float32(1.5), "cap"))
    expect("an absent optional input", m, [(5, 7)])
    def deep(k, own, const, x):      # as many axes as mlo knows: a stack of them has one more
        own[4].input[1], own[5].input[1] = const(f"layers.{k}.deep", np.full([1] * 7 + [8], 0.1 * k + 0.1, np.float32)), f"layers.{k}.flat"
        shape = const("shape", np.array([3, 8])) if not k else "shape"
        return own[:5] + [helper.make_node("Reshape", [own[4].output[0], shape], [f"layers.{k}.flat"]), own[5]]
    expect("a parameter of eight axes", residual(tweak=deep), [(5, 7)])
    m = residual()
    m.graph.output.extend(helper.make_tensor_value_info(f"layers.{k}.y", T.FLOAT, [3, 8]) for k in range(5))
    r = expect("hidden states as outputs", m, [(5, 7)])          # an Identity: one value is a state and a tap
    if r: case("they are taps", "" if sizes(r)[0][4] == 1 else f"{sizes(r)}")
    m = residual()
    m.graph.output.append(helper.make_tensor_value_info("layers.1.r", T.FLOAT, [3, 16]))
    expect("a value inside one layer as output", m, [(5, 6)])
    def cache(k, own, const, x):
        own[4].input[1] = f"past{k}"
    m = residual(tweak=cache)
    m.graph.input.extend(helper.make_tensor_value_info(f"past{k}", T.FLOAT, [3, 8]) for k in range(5))
    expect("per-layer graph inputs are stacked", m, [(5, 6)])
    def alternate(k, own, const, x):
        own[4].input[1] = "maskA" if k % 2 else "maskB"
    m = residual(6, tweak=alternate)
    m.graph.input.append(helper.make_tensor_value_info("mask", T.FLOAT, [3, 8]))
    m.graph.node.insert(0, helper.make_node("Tanh", ["mask"], ["maskA"], name="ma")); m.graph.node.insert(0, helper.make_node("Sin", ["mask"], ["maskB"], name="mb"))
    r = expect("layers that differ only in the mask they read: one body with a selection", m, [(6, 7)])
    def pair(k, own, const, x):
        if k % 2: own[2].op_type = "Sigmoid"
    expect("A B A B: a body of two layers", residual(6, tweak=pair), [(3, 12)])
    def first(k, own, const, x):
        own[4].input[1] = "bias0"
        if not k: return [helper.make_node("Exp", ["x"], ["bias0"], name="layers.0.bias")] + own
    expect("nodes only the first layer owns are hoisted", residual(tweak=first), [(5, 6)])
    expect("opset 23", residual(opset=23), [(5, 6)])
    m = residual()
    m.opset_import[0].domain = "ai.onnx"
    expect("the standard operators by their long name", m, [(5, 6)])
    def wide_heads(heads):
        """norm(x) is read by more heads than one looks forward from."""
        def heads_of(k, own, const, x):
            n, made, sums = heads(k), [], own[0].output[0]
            for h in range(n):
                made.append(helper.make_node("MatMul", [own[0].output[0], const(f"layers.{k}.h{h}", np.eye(8, dtype=np.float32) * (h + 1) * 0.01)], [f"layers.{k}.h{h}.y"], name=f"layers.{k}.h{h}"))
                made.append(helper.make_node("Add", [sums, f"layers.{k}.h{h}.y"], [f"layers.{k}.s{h}"], name=f"layers.{k}.s{h}"))
                sums = f"layers.{k}.s{h}"
            own[1].input[0] = sums
            return [own[0], *made, *own[1:]]
        return heads_of
    expect("a value with 66 readers in each layer", residual(3, tweak=wide_heads(lambda k: 65)), [(3, 6 + 130)])
    expect("a value with 66 readers in all layers but the last, which has 64", residual(4, tweak=wide_heads(lambda k: 63 if k == 3 else 65)), [(3, 6 + 130), (63, 2)])          # in the last layer its heads repeat
    m = residual()
    m.graph.node[1].input[0] = m.graph.node[1].output[0]
    expect("a node that reads itself", m, status=3, says=["layers.0.a", "[MLO_E_GRAPH]"])
    expect("no layer repeats", residual(1), status=4, says=["[MLO_E_LOOP]"])
    def iterate(k, own, const, x):
        own[1].input[0] = x; own[1].input[1] = "w"
        return [own[1], helper.make_node("Tanh", [own[1].output[0]], [f"layers.{k}.y"], name=f"layers.{k}.t")]
    m = residual(tweak=iterate)
    m.graph.initializer.append(numpy_helper.from_array(np.eye(8, dtype=np.float32)[::-1].copy() * 0.3, "w"))
    expect("no per-iteration value but a shared weight", m, [(5, 2)])
    def two(k, own, const, x):      # y1 = x + f(z); z1 = z + g(y1): two carried values
        p, z = f"layers.{k}.", "z" if not k else f"layers.{k - 1}.z"
        own[0].input[0] = z
        return own + [helper.make_node("MatMul", [p + "y", const(p + "g", np.eye(8, dtype=np.float32) * (k + 1))], [p + "g"], name=p + "g")
                      , helper.make_node("Add", [z, p + "g"], [p + "z"], name=p + "zadd"), ][:2]
    m = residual(tweak=lambda k, own, c, x: two(k, own, c, "x" if not k else f"layers.{k - 1}.y"))
    for k in range(5): next(n for n in m.graph.node if n.name == f"layers.{k}.add").input[0] = "x" if not k else f"layers.{k - 1}.y"
    m.graph.input.append(helper.make_tensor_value_info("z", T.FLOAT, [3, 8]))
    for k in range(5):
        next(i for i in m.graph.initializer if i.name == f"layers.{k}.g").name = f"layers.{k}.gw"
        next(n for n in m.graph.node if n.name == f"layers.{k}.g").input[1] = f"layers.{k}.gw"
    r = expect("two carried values", m, [(5, 8)])
    if r: case("both are states", "" if sizes(r)[0][2] == 2 else f"{sizes(r)}")


# ---- hierarchies and scopes ---------------------------------------------------------------------------------------------------------

def check_hierarchies():
    bert = t.model("bert-12-torchscript")
    for given, loops in (('[["encoder","encoder.layer.0"]]', [(12, 34)]), ('[["","encoder","encoder.layer.0"]]', [(12, 34)]), ('[["encoder","layer.0"]]', [(12, 34)]),
                         ('["encoder","encoder.layer.3"]', [(12, 34)]), ('encoder.layer.1', [(12, 34)]),
                         ('[["encoder","encoder.layer.0"],["encoder","encoder.layer.1"]]', [(6, 68)]),
                         ('[["encoder","encoder.layer.0"],["encoder","encoder.layer.1"],["encoder","encoder.layer.2"]]', [(4, 102)])):
        rolled, err, _ = roll(bert, "--hierarchy", given)
        case(f"hierarchy {given}", err[:300] if rolled is None else "" if [s[:2] for s in sizes(rolled)] == loops else f"{sizes(rolled)}")
    for given, says in (('[["encoder","encoder.layer.12"]]', "encoder.layer.0 ("), ('[["encoder"]]', "1 iteration"), ('[["encoder","encoder.layer.0","encoder.layer.0.attention"]]', "34 nodes"),
                        ('[["encoder",', "list of lists")):
        rolled, err, code = roll(bert, "--hierarchy", given)
        case(f"hierarchy {given} is refused", "" if rolled is None and says in err and code in (2, 4) else err[:300] or "it says nothing")
    rolled, err, _ = roll(t.model("t5-tiny"), "--hierarchy", '[["m","m.decoder","m.decoder.block.0"]]')
    case("hierarchy picks one loop of two", err[:300] if rolled is None else "" if [s[:2] for s in sizes(rolled)] == [(4, 59)] else f"{sizes(rolled)}")
    rolled, err, _ = roll(t.model("t5-tiny"), "--hierarchy", '[["m","m.encoder","m.encoder.block.0"],["m","m.decoder","m.decoder.block.0"]]')
    case("hierarchy with a group in each stack", err[:300] if rolled is None else "" if [s[:2] for s in sizes(rolled)] == [(3, 35), (4, 59)] else f"{sizes(rolled)}")


def without(m, pick, keys=(SCOPES, CLASSES, "namespace", "pkg.torch.onnx.fx_node")):
    m = copy.deepcopy(m)
    for i, n in enumerate(m.graph.node):
        if not pick(i, n): continue
        kept = [p for p in n.metadata_props if p.key not in keys]
        del n.metadata_props[:]; n.metadata_props.extend(kept)
    return m


def scoped(m):
    path = save(m)
    r = call("scope", path, "--onnx", "-o", at("scoped.onnx"))
    return (onnx.load(at("scoped.onnx")) if not r.returncode else None), r.stderr


def check_scopes():
    name, layer = "mlp-res", lambda k: lambda n: f"'layers.{k}'" in meta(n).get(SCOPES, "")
    m = load(name)
    full, _ = scoped(m)
    truth = {n.name: meta(n).get("mlo.scope") for n in full.graph.node}
    case("scope: as a path of full names", "" if truth["node_MatMul_1"] == "layers.0/layers.0.a" else str(truth["node_MatMul_1"]))
    first = {k: next(n.name for n in m.graph.node if layer(k)(n)) for k in range(6)}
    last = {k: [n.name for n in m.graph.node if layer(k)(n)][-1] for k in range(6)}
    ways = {"first node of layer 0": lambda i, n: n.name == first[0], "first node of layer 1": lambda i, n: n.name == first[1], "last node of layer 2": lambda i, n: n.name == last[2],
            "whole layer 1": lambda i, n: layer(1)(n), "whole first layer": lambda i, n: layer(0)(n), "whole last layer": lambda i, n: layer(5)(n), "every second node": lambda i, n: i % 2,
            "a node between two layers": lambda i, n: n.name in (last[2], first[3]), "the head of the graph": lambda i, n: i < 4, "the tail": lambda i, n: i > 38, "all but one layer": lambda i, n: not layer(3)(n)}
    for what, pick in ways.items():
        c = without(m, pick)
        got, err = scoped(c)
        wrong = [] if got is None else [f"{n.name}: {meta(n).get('mlo.scope')} for {truth[n.name]}" for n in got.graph.node
                                        if truth[n.name].startswith("layers.") and meta(n).get("mlo.scope") != truth[n.name]]
        case(f"scope lost: {what}", err if got is None else "; ".join(wrong[:3]))
        if got is not None: case(f"scope lost: {what}: says why", "" if any("mlo.scope_from" in meta(n) for n in got.graph.node) and "inferred" in err else err or "silent")
    for what, keep in (("name_scopes only", (CLASSES, "namespace")), ("namespace only", (SCOPES, CLASSES))):
        got, err = scoped(without(m, lambda i, n: True, keep))
        wrong = [] if got is None else [f"{n.name}: {meta(n).get('mlo.scope')}" for n in got.graph.node if meta(n).get("mlo.scope") != truth[n.name]]
        case(f"scope from {what}", err if got is None else "; ".join(wrong[:3]))
    c = without(m, lambda i, n: True)
    for n, o in zip(c.graph.node, m.graph.node): n.attribute.append(helper.make_attribute(SCOPES, meta(o)[SCOPES]))
    got, err = scoped(c)
    wrong = [] if got is None else [f"{n.name}: {meta(n).get('mlo.scope')}" for n in got.graph.node if meta(n).get("mlo.scope") != truth[n.name]]
    case("scope from node attributes", err if got is None else "; ".join(wrong[:3]))
    c = without(m, lambda i, n: True, ("namespace", "pkg.torch.onnx.fx_node"))
    for n in c.graph.node:
        for p in n.metadata_props: p.value = str(ast.literal_eval(p.value)[:2])             # a module below the root, whose class says that it is no operation
    got, err = scoped(c)
    wrong = [] if got is None else [f"{n.name}: {meta(n).get('mlo.scope')}" for n in got.graph.node if truth[n.name].startswith("layers.") and meta(n).get("mlo.scope") != truth[n.name].partition("/")[0]]
    case("scope of modules right below the root", err if got is None else "; ".join(wrong[:3]))


def check_instances():
    """A loop says its instances' scopes, as the exporter has them, and has that of the first. Layers may be numbered from anywhere: they are part of a model."""
    later = load("mlp-res")
    for p in (p for n in later.graph.node for p in n.metadata_props): p.value = re.sub(r"\blayers\.(\d+)", lambda k: f"layers.{int(k[1]) + 1000}", p.value)
    for name, m, stacks in (("mlp-res", t.model("mlp-res"), [("layers.%d", range(6))]), ("t5-tiny", t.model("t5-tiny"), [("m/m.encoder/m.encoder.block.%d", range(3)), ("m/m.decoder/m.decoder.block.%d", range(4))]),
                            ("mlp-res, from layer 1000", later, [("layers.%d", range(1000, 1006))])):
        rolled, err, status = roll(m)
        got = [(meta(s).get("mlo.scope"), meta(s).get("mlo.instances")) for s in scans(rolled)] if rolled else err or f"status {status}"
        case(f"instances of {name}", "" if got == [(s % some[0], " ".join(s % k for k in some)) for s, some in stacks] else f"{got}")


def check_marks():
    """What extract marks can be edited; roll does not believe it."""
    call("extract", t.model("mlp-res"), "--onnx", "-o", at("marked.onnx"))
    m = onnx.load(at("marked.onnx"))
    def edit(pick, key, value):
        c = copy.deepcopy(m)
        for n in c.graph.node:
            for p in n.metadata_props:
                if p.key == key and pick(n): p.value = value
        return c
    ops = [n for n in m.graph.node if meta(n).get("mlo.instance") == "2"]
    for what, c in (("an instance missing", edit(lambda n: n.name == ops[0].name, "mlo.instance", "9")), ("a position twice", edit(lambda n: n.name == ops[0].name, "mlo.position", "1")),
                    ("no number", edit(lambda n: n.name == ops[0].name, "mlo.position", "x")),
                    *[(f"'{value}' for {key}", edit(lambda n: n.name == ops[0].name, f"mlo.{key}", value)) for key in ("instance", "position") for value in ("", "-1", "2 ", "99999999999", "2000")]):
        _, err, code = roll(c)
        case(f"marks with {what} are refused", "" if code == 4 and "MLO_E_LOOP" in err else f"{code} {err[:200]}")
    def without(pick):
        c = copy.deepcopy(m)
        for n in c.graph.node:
            if pick(n):
                kept = [p for p in n.metadata_props if p.key not in ("mlo.loop", "mlo.instance", "mlo.position")]
                del n.metadata_props[:]
                n.metadata_props.extend(kept)
        return c
    def only(lost):
        c = copy.deepcopy(m)
        n = next(n for n in c.graph.node if n.name == ops[0].name)
        kept = [p for p in n.metadata_props if p.key != lost]
        del n.metadata_props[:]
        n.metadata_props.extend(kept)
        return c
    exchanged = edit(lambda n: n.name == ops[0].name, "mlo.position", meta(ops[1])["mlo.position"])
    next(p for n in exchanged.graph.node if n.name == ops[1].name for p in n.metadata_props if p.key == "mlo.position").value = meta(ops[0])["mlo.position"]
    for what, c, word in (("of nothing", without(lambda n: True), "no node is marked"), ("of one layer", without(lambda n: meta(n).get("mlo.instance", "0") != "0"), "has 1 iteration; a loop needs two"),
                          ("of a node without position", only("mlo.position"), "no number in range"), ("of a node without instance", only("mlo.instance"), "no number in range"),
                    ("of two nodes exchanged", exchanged, "not as in the other layers")):
        _, err, code = roll(c)
        case(f"marks {what} are refused", "" if code == 4 and "MLO_E_LOOP" in err and word in err else f"{code} {err[:200]}")


def check_report():
    _, err, code = roll(t.model("t5-tiny"), "--report", at("report.json"))
    try: r = json.load(open(at("report.json")))
    except Exception as e: return case("report", str(e))
    case("report lists the loops", "" if [(l["iterations"], l["body_nodes"]) for l in r["loops"]] == [(3, 35), (4, 59)] and r["loops"][0]["instances"][1].endswith("block.1") else json.dumps(r)[:300])


# ---- attributes --------------------------------------------------------------------------------------------------------------------

def attributes():
    """Of each kind of attribute two values, and how the second one is named where people read it."""
    numbers = lambda *v: numpy_helper.from_array(np.array(v, np.float32))
    inner = lambda *v: helper.make_graph([helper.make_node("Constant", [], ["c"], value=numbers(*v))], "inner", [], [helper.make_tensor_value_info("c", T.FLOAT, [len(v)])])
    return {"a float": (0.5, 0.25, "0.25"), "an integer": (3, 4, "4"), "a string": ("tanh", "none", "'none'"), "floats": ([0.5, 1.5], [0.5, 1.25], "[0.5,1.25]"),
            "integers": ([1, 2], [1, 3], "[1,3]"), "more integers": ([1, 2], [1, 2, 3], "[1,2,3]"), "strings": (["a", "bc"], ["a", "bd"], "how"),
            "many integers": (list(range(9)), list(range(8)) + [9], "[0,1,2,3,4,5,6,7]"), "many floats": ([0.5] * 9, [0.5] * 8 + [0.25], "[0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5]"),
            "a tensor of five": (numbers(1, 2, 3, 4, 5), numbers(1, 2, 3, 4, 6), "a tensor of 5"), "a tensor of nothing": (numbers(1), numbers(), "a tensor of 0"),
            "a tensor of texts": tuple(numpy_helper.from_array(np.array([w], object)) for w in "ab") + ("a tensor of 1",),
            "a tensor of doubles": (numpy_helper.from_array(np.float64([0.1])), numpy_helper.from_array(np.float64([0.2])), "[0.2]"),
            "a tensor": (numbers(1, 1), numbers(0, 1), "[0,1]"), "tensors": ([numbers(1), numbers(2)], [numbers(1), numbers(3)], "how"),
            "a graph": (inner(1), inner(2), "how"), "a graph, other names": (lambda k: branch(f"layer{k}."), lambda k: branch(f"layer{k}.", op="Neg"), "how"),
            "a graph, an initializer": (lambda k: branch(f"layer{k}."), lambda k: branch(f"layer{k}.", 3.0), "how"), "a graph, a node more": (branch(), branch(more=1), "how"),
            "a graph, wired otherwise": (branch(more=2), branch(more=2, crossed=1), "how"), "a graph, an output more": (branch(), branch(outputs=2), "how"),
            "a graph, an input fewer": (branch(), branch(inputs=1), "how"), "graphs": ([inner(1), inner(2)], [inner(1), inner(3)], "how"), "a negative zero": (0.0, -0.0, "-0")}


def branch(prefix="", number=2.0, op="Relu", more=0, crossed=0, outputs=1, inputs=2):
    """A graph in an attribute: y = op(a + number * b), and what it may have besides."""
    form, n = lambda x: helper.make_tensor_value_info(prefix + x, T.FLOAT, [2]), lambda *names: [prefix + x for x in names]
    nodes = [helper.make_node("Mul", n("b" if inputs == 2 else "a", "c"), n("m")), helper.make_node("Add", n("m", "a"), n("s0"))]
    for k in range(more): nodes.append(helper.make_node("Sub", n("m", f"s{k}") if not crossed else n(f"s{k}", "m"), n(f"s{k + 1}")))
    nodes.append(helper.make_node(op, n(f"s{more}"), n("y")))
    held = [numpy_helper.from_array(np.float32([number, 1]), prefix + "c")]
    return helper.make_graph(nodes, "branch", [form("a"), form("b")][:inputs], [form("y"), form("m")][:outputs], held)


def things(value, second=None, layers=3):
    """x + Thing(x W) per layer: an operator that nobody knows, with an attribute `how`; in the second layer another one."""
    nodes, init = [], []
    form = lambda n: helper.make_tensor_value_info(n, T.FLOAT, [1, 2, 4])
    for k in range(layers):
        init.append(numpy_helper.from_array(np.random.default_rng(k).standard_normal((4, 4)).astype(np.float32), f"w{k}"))
        how = value if second is None or k != 1 else second
        if callable(how): how = how(k)
        nodes += [helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"h{k}"], name=f"mul{k}"), helper.make_node("Thing", [f"h{k}"], [f"t{k}"], name=f"thing{k}", domain="custom", how=how),
                  helper.make_node("Add", [f"x{k}", f"t{k}"], [f"x{k + 1}"], name=f"add{k}")]
    g = helper.make_graph(nodes, "things", [form("x0")], [form(f"x{layers}")], init, value_info=[form(f"t{k}") for k in range(layers)])
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("custom", 1)], ir_version=9)


def check_attributes():
    """Layers are alike when their attributes are, of whatever kind; check sees one that is not, and says whose it is."""
    for what, (value, other, said) in attributes().items():
        same, odd = save(things(value), "same.onnx"), save(things(value, other), "odd.onnx")
        rolled, err, _ = roll(same)
        case(f"attributes: {what}, alike", "" if rolled and [s[:2] for s in sizes(rolled)] == [(3, 3)] else err[:300] or "it says nothing")
        r = call("check", at("rolled.onnx"), "--against", same)
        case(f"attributes: {what}, equal", "" if not r.returncode else r.stderr[:300] or "it says nothing")
        r = call("check", at("rolled.onnx"), "--against", odd)
        case(f"attributes: {what}, not equal", "" if r.returncode == 1 and all(w in r.stderr for w in ("thing1", "how", "MLO_E_MISMATCH")) else f"{r.returncode} {r.stderr[:300]}")
        _, err, code = roll(odd)
        case(f"attributes: {what}, another in a layer", "" if code == 4 and all(w in err for w in ("thing1", "how", said)) else f"{code} {err[:300]}")
    named = lambda x: helper.make_tensor_value_info(x, T.FLOAT, [2])
    asks = [helper.make_graph([helper.make_node("Neg", [x], [x + "_"])], x, [], [named(x + "_")]) for x in ("first", "second", "made")]
    nodes = [helper.make_node("Neg", ["third"], ["made"]), helper.make_node("Neg", ["fourth"], ["lost"]), helper.make_node("Thing", ["x"], ["y"], domain="custom", how=asks)]
    m = helper.make_model(helper.make_graph(nodes, "asked", [named("x")], [named("y")], [numpy_helper.from_array(np.ones(2, np.float32), n) for n in ("first", "second", "third", "fourth")]),
                          opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("custom", 1)], ir_version=9)
    t.good("read", save(m, "asked.onnx"), "--onnx", "-o", at("asking.onnx"))
    kept = onnx.load(at("asking.onnx")).graph
    have = {x.name for x in kept.initializer} | {x for n in kept.node for x in n.output}
    case("attributes: what only a graph in a list of them reads stays", "" if {"first", "second", "made"} <= have and not {"fourth", "lost"} & have else str(sorted(have)))


def biased(which, form=lambda b, k: b, product="a", flip=(), gemm=False, **how):
    """The layers that `which` names have a bias behind product a or b (or both), as a Gemm's third input or as a sum."""
    def tweak(k, own, const, x):
        out = []
        for n in own:
            out.append(n)
            letter = n.name[-1]
            if n.op_type != "MatMul" or letter not in product: continue
            width, has = (16, k in which) if letter == "a" else (8, (k + product.index("b")) % 5 in which)
            b = np.linspace(-1, 1, width, dtype=np.float32) + np.float32(k)
            if gemm:
                n.op_type = "Gemm"
                for key, value in how.items(): n.attribute.append(helper.make_attribute(key, value))
                if has: n.input.append(const(n.name + ".bias", b))
            elif has:
                y, c = n.output[0], form(b, k)
                n.output[0] = y + "_bare"
                c = const(n.name + ".bias", c) if isinstance(c, np.ndarray) else c
                out.append(helper.make_node("Add", [c, y + "_bare"] if k in flip else [y + "_bare", c], [y], name=n.name + "_bias"))
        return out
    return tweak


def zeros(m):
    """The constants that hold -0 alone."""
    each = [(x, numpy_helper.to_array(x)) for x in m.graph.initializer if x.data_type == T.FLOAT and x.dims]
    return [x for x, a in each if (np.signbit(a) & (a == 0)).all()]


def check_biases():
    """Layers that lack a bias which others have get one of -0, where more repeats by that; what is no bias stays where it is."""
    grid = {"the last alone has one": dict(which={4}), "the first alone lacks it": dict(which={1, 2, 3, 4}), "every other one lacks it": dict(which={0, 2, 4}),
            "the middle one lacks it, one adds the other way round": dict(which={0, 1, 3, 4}, flip={1}), "as many rows as tokens, all alike": dict(which={1, 4}, form=lambda b, k: np.tile(b, (3, 1))),
            "rows in one layer, a row in another": dict(which={1, 4}, form=lambda b, k: np.tile(b, (1, 3, 1))[0] if k == 1 else b)}
    for what, how in grid.items(): expect(f"biases: {what}", residual(tweak=biased(**how)), [(5, 7)])
    expect("biases: of two products, each in another layer", residual(tweak=biased({2}, product="ab")), [(5, 8)])
    expect("biases: a Gemm's", residual(tweak=biased({0, 3}, gemm=True)), [(5, 6)])
    expect("biases: of two layers", residual(layers=2, tweak=biased({1})), [(2, 7)])

    r = expect("biases: layers that lack it in turn repeat by twos, as they are", residual(layers=4, tweak=biased({0, 2})), [(2, 13)])
    if r: case("biases: nothing is added there", ", ".join(x.name for x in zeros(r)))
    one = lambda b, k: np.stack([b, b, b + np.float32([0] * 15 + [1e-6])])
    expect("biases: rows of which one element differs", residual(layers=2, tweak=biased({1}, form=one)), status=4, says=["no layer repeats"])
    expect("biases: a row for each token in the last of five", residual(tweak=biased({4}, form=one)), [(4, 6)], says=["matched 4 of 5", "layers.4."])
    expect("biases: a computed value is added", residual(layers=2, tweak=biased({1}, form=lambda b, k: "layers.1.r2")), status=3)
    def computed(k, own, const, x):
        if k < 4: return own
        own[1].output[0] = "bare"
        return own[:2] + [helper.make_node("Add", ["bare", "layers.3.a"], ["layers.4.a"], name="layers.4.sum")] + own[2:]
    expect("biases: what another layer computed is added", residual(tweak=computed), [(4, 6)], says=["matched 4 of 5", "layers.4."])
    expect("biases: one number for all channels", residual(layers=2, tweak=biased({1}, form=lambda b, k: np.float32([0.5]))), status=4, says=["no layer repeats"])
    expect("biases: a Gemm's, turned round", residual(layers=2, tweak=biased({1}, gemm=True, beta=-1.0)), status=4, says=["no layer repeats"])

    m = residual(tweak=biased({1, 3}))
    rolled, _, _ = roll(m)
    none = zeros(rolled) if rolled else []
    case("biases: as many of zeros as layers lack one", "" if [list(x.dims) for x in none] == 3 * [[16]] else str([(x.name, list(x.dims)) for x in none]))
    for what, bits in ("0 in place of -0", 0), ("the least number there is", 1):
        edited = onnx.ModelProto.FromString(rolled.SerializeToString())
        x = zeros(edited)[1]
        a = numpy_helper.to_array(x).copy()
        a.view(np.uint32)[7] = bits
        x.CopyFrom(numpy_helper.from_array(a, x.name))
        p = call("check", save(edited, "edited.onnx"), "--against", save(m, "original.onnx"))
        case(f"biases: {what}: not proved", "" if p.returncode == 1 and "MLO_E_MISMATCH" in p.stderr else f"{p.returncode} {p.stderr[:200]}")


t.main(check_attributes, check_biases, check_roles, check_models, check_stacks, check_learned, check_hierarchies, check_scopes, check_instances, check_marks, check_report, floor=310)
