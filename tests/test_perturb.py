#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One layer changed on purpose, everything in turn: what `roll` makes of it equals the changed model, or it refuses and says why.

Usage: python tests/test_perturb.py path/to/mlo [MODEL|KIND ...] [--all] [--seed N]

A mutant is a copy of an exported model with one change: an attribute, an edge, a constant, a shape, an op, a node more, an output more. ONNX Runtime
says whether it is a model, and what it computes. Then `roll` must refuse it (status 3 or 4, one line), or give a model that computes the same there
and that `check` proves. Where an attribute is the cause, node, attribute and both values are told. Metadata that is lost or lies changes nothing.
Then the other way round: rolled models are sabotaged, and `check` must refuse whatever ONNX Runtime computes otherwise.
A mutant is named model/kind/what. By default a sample runs whose seed is the date; --all runs every one.
"""
import copy, datetime, itertools, multiprocessing, os, random, re, subprocess, sys
all_of_them = "--all" in sys.argv
seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else int(datetime.date.today().strftime("%Y%m%d"))
picked = [a for i, a in enumerate(sys.argv[2:], 2) if not a.startswith("--") and sys.argv[i - 1] != "--seed"]
sys.argv[2:] = []
import numpy as np
import onnx
from onnx import AttributeProto as A, TensorProto as T, helper, numpy_helper
import harness as t
import graphs
from graphs import attribute, body, difference, feeds, meta, scans, shapes as sizes

SCOPES, CLASSES, NAMESPACE = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy", "namespace"
SAMPLE = {"attributes": 14}              # mutants per model, layer and kind, unless --all; FEW of the other kinds
FEW = 5
LOOPS = {                                # (iterations, nodes of a layer) of each loop, counted in the exported models
    "bert-tiny": [(2, 34)], "vit-tiny": [(4, 33)], "gpt2-tiny": [(4, 38)], "llama-tiny-opset23": [(4, 48)], "mlp-res": [(6, 7)],
    "t5-tiny": [(3, 35), (4, 59)], "whisper-tiny": [(3, 32), (3, 54)]}
LAYERS = {                               # the layer to change: its scope, with a number to come
    "mlp-res": [("layers.%d", 3)], "bert-tiny": [("encoder.layer.%d", 1)], "gpt2-tiny": [("h.%d", 2)], "llama-tiny-opset23": [("m.layers.%d", 1)],
    "vit-tiny": [("vit.encoder.layer.%d", 3)], "whisper-tiny": [("encoder.layers.%d", 0), ("decoder.layers.%d", 1)], "t5-tiny": [("m.encoder.block.%d", 1), ("m.decoder.block.%d", 2)]}


# ---- models in ONNX Runtime -----------------------------------------------------------------------------------------------------------



def lively(m):
    """The model with weights that matter: exported ones are zeros, ones, and small enough for a layer not to show in the result."""
    r = np.random.default_rng(5)
    for i in m.graph.initializer:
        a = numpy_helper.to_array(i)
        if a.dtype != np.float32 or a.size < 8 or not np.all(np.abs(a) < 100): continue
        a = a * (0.15 / max(a.std(), 1e-3)) if a.ndim > 1 else a + 0.2 * r.standard_normal(a.shape)
        i.CopyFrom(numpy_helper.from_array(a.astype(np.float32), i.name))
    return m


def run(m, f):
    try: return graphs.execute(m, f)
    except Exception: return None


class Runtime:
    """ONNX Runtime in a process of its own: some mutants bring it down."""
    def __init__(self): self.worker = None

    def serve(self, pipe):
        self.pipe.close()                                               # the other end: else this process would outlive a killed script
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            while True: pipe.send(run(*pipe.recv()))
        except (EOFError, OSError): pass

    def __call__(self, m, f):
        """The outputs, None when it refuses the model."""
        if not self.worker or not self.worker.is_alive():
            self.pipe, theirs = multiprocessing.Pipe()
            self.worker = multiprocessing.get_context("fork").Process(target=self.serve, args=(theirs,), daemon=True)
            self.worker.start()
            theirs.close()
        try:
            self.pipe.send((m if isinstance(m, bytes) else m.SerializeToString(), f))
            if self.pipe.poll(60): return self.pipe.recv()
            self.worker.kill()
        except (EOFError, OSError): pass
        self.worker.join()
        return None


execute = Runtime()



def call(*args):
    try: p = t.call(*args, text=True, timeout=120)
    except subprocess.TimeoutExpired: return "", -999
    return p.stderr, p.returncode


# ---- one layer and its neighbours -------------------------------------------------------------------------------------------------------

class Layer:
    """Layer k of a stack: indices of its nodes, and what corresponds in the layers before and after."""
    def __init__(self, m, pattern, k, f):
        self.m, self.k, self.pattern, g = m, k, pattern, m.graph
        self.nodes = self.span(k)
        self.order = {o: i for i, n in enumerate(g.node) for o in n.output}
        self.init = {i.name: i for i in g.initializer}
        whole = copy.deepcopy(m)
        del whole.graph.output[:]
        names = [o for n in g.node for o in n.output if o]
        whole.graph.output.extend(onnx.ValueInfoProto(name=o) for o in names)
        self.form = {o: (v.dtype.str, v.shape) for o, v in zip(names, execute(whole, f))}                   # every value's type and shape, as run
        self.form.update((n, (helper.tensor_dtype_to_np_dtype(i.data_type).str, tuple(i.dims))) for n, i in self.init.items())
        self.form.update((n, (v.dtype.str, v.shape)) for n, v in f.items())
        self.twin = {}                                                                                     # value of this layer -> the same in others
        for other in (k - 1, k + 1):
            theirs = self.span(other)
            if [g.node[i].op_type for i in theirs] != [g.node[i].op_type for i in self.nodes]: continue
            for i, j in zip(self.nodes, theirs):
                for x, y in zip(list(g.node[i].input) + list(g.node[i].output), list(g.node[j].input) + list(g.node[j].output)):
                    if x and y and x != y: self.twin.setdefault(x, []).append(y)

    def span(self, k):
        """The nodes from the first to the last that say they are in layer k."""
        mine = [i for i, n in enumerate(self.m.graph.node) if f"'{self.pattern % k}'" in meta(n).get(SCOPES, "")]
        others = [i for i, n in enumerate(self.m.graph.node) if re.search("'" + re.escape(self.pattern).replace("%d", r"\d+") + "'", meta(n).get(SCOPES, "")) and i not in mine]
        return [i for i in range(mine[0], mine[-1] + 1) if i not in others] if mine else []

    def below(self, i):
        """The nodes that depend on node i: they cannot feed it."""
        seen, g = {i}, self.m.graph
        for k in range(i + 1, len(g.node)):
            if any(self.order.get(x, -1) in seen for x in g.node[k].input): seen.add(k)
        return seen


def sort(g):
    """The nodes in an order that runs, which a new edge may have broken."""
    known = {""} | {i.name for i in g.input} | {i.name for i in g.initializer}
    made = {o for n in g.node for o in n.output}
    rest, out = list(g.node), []
    while rest:
        ready = [n for n in rest if all(x in known or x not in made for x in n.input)]
        if not ready: return
        first = ready[0]
        out.append(first); rest.remove(first); known.update(first.output)
    order = [copy.deepcopy(n) for n in out]
    del g.node[:]
    g.node.extend(order)


def fresh(c, name, array):
    c.graph.initializer.append(numpy_helper.from_array(np.array(array), name))
    return name


# ---- the mutants: (what, edit of a copy, facts) -----------------------------------------------------------------------------------------------

def other_values(a):
    """Plausible other values of an attribute."""
    def made(**fields):
        b = copy.deepcopy(a)
        for k, v in fields.items():
            b.ClearField(k)
            if isinstance(v, list): getattr(b, k).extend(v)
            else: setattr(b, k, v)
        return b
    if a.type == A.INT: return [made(i=v) for v in sorted({a.i + 1, a.i - 1, 0, 1, -1, -2, 1 - a.i} - {a.i})]
    if a.type == A.FLOAT: return [made(f=v) for v in (a.f * 4 + 0.5, a.f * 1.0001, 0.0, -a.f) if np.float32(v) != np.float32(a.f)]
    if a.type == A.STRING: return [made(s=v) for v in (b"tanh", b"none", b"linear", b"SAME_UPPER", b"NOTSET", a.s + b"x") if v != a.s]
    if a.type == A.INTS:
        v = list(a.ints)
        return [made(ints=list(w)) for w in sorted({tuple(w) for w in (v[1:] + v[:1], v[::-1], [x + 1 for x in v], v[:-1], v[:-2] + v[:-3:-1])} - {tuple(v)})]
    if a.type == A.FLOATS: return [made(floats=[x * 2 + 0.5 for x in a.floats])]
    if a.type == A.TENSOR:
        x = numpy_helper.to_array(a.t)
        return [made(t=numpy_helper.from_array(np.asarray(y, x.dtype), a.t.name)) for y in other_arrays(x)]
    return []


def other_arrays(x):
    if x.dtype == bool: return [~x]
    if np.issubdtype(x.dtype, np.integer):
        found = [x + 1, x - 1, x[::-1] if x.ndim else x * 0, x * 0, -x]
        if x.ndim == 1 and x.size > 1: found += [np.where(np.arange(x.size) == k, -1, x) for k in range(x.size)]          # a shape told otherwise
        return [y for k, y in enumerate(found) if not np.array_equal(x, y)]
    first = x.copy()
    first[(0,) * x.ndim] += 0.25
    return [np.clip(x, -1e30, 1e30) * np.asarray(1.5, x.dtype) + np.asarray(0.25, x.dtype), -x, first]


def attributes(l):
    for i in l.nodes:
        n = l.m.graph.node[i]
        schema = None
        try: schema = onnx.defs.get_schema(n.op_type, l.m.opset_import[0].version, n.domain)
        except Exception: pass
        def replace(c, i=i, name=None, new=None):
            node = c.graph.node[i]
            kept = [copy.deepcopy(a) for a in node.attribute if a.name != name]
            del node.attribute[:]
            node.attribute.extend(kept + ([new] if new else []))
        for a in n.attribute:
            for k, new in enumerate(other_values(a)): yield f"{n.name}.{a.name} {k}", lambda c, e=replace, a=a, new=new: e(c, name=a.name, new=new), (l.k, n.name, a, new)
            yield f"{n.name}.{a.name} removed", lambda c, e=replace, a=a: e(c, name=a.name), (l.k, n.name, a, None)
        for name, s in (schema.attributes.items() if schema else ()):
            if attribute(n, name) is not None or not s.default_value.type: continue
            default, absent = copy.deepcopy(s.default_value), A(name=name)
            default.name = name
            for k, new in enumerate([default] + other_values(default)): yield f"{n.name}.{name} added {k}", lambda c, e=replace, name=name, new=new: e(c, name=name, new=new), (l.k, n.name, absent, new)


def edges(l):
    r = random.Random(7)
    for i in l.nodes:
        n, below = l.m.graph.node[i], l.below(i)
        for k, x in enumerate(n.input):
            if not x: continue
            fits = lambda names: sorted({v for v in names if v != x and l.form.get(v) == l.form.get(x) and l.order.get(v, -1) not in below})
            near = fits([v for j in l.nodes for v in list(l.m.graph.node[j].output) + list(l.m.graph.node[j].input)])
            twins = fits(l.twin.get(x, []))
            before = fits([v for y in near for v in l.twin.get(y, []) if l.order.get(v, -1) < i])
            far = fits([v for v in l.form if l.order.get(v, -1) > max(l.nodes) and v in l.order])
            for v in twins + r.sample(near, min(4, len(near))) + r.sample(before, min(3, len(before))) + r.sample(far, min(1, len(far))):
                yield f"{n.name} input {k} from {v}", lambda c, i=i, k=k, v=v: (c.graph.node[i].input.__setitem__(k, v), sort(c.graph)), None
            if k >= 2: yield f"{n.name} input {k} absent", lambda c, i=i, k=k: c.graph.node[i].input.__setitem__(k, ""), None
        for a, b in itertools.combinations(range(len(n.input)), 2):
            def swap(c, i=i, a=a, b=b):
                node = c.graph.node[i]
                node.input[a], node.input[b] = node.input[b], node.input[a]
            yield f"{n.name} operands {a} and {b} swapped", swap, None
        if len(n.output) > 1:
            def crossed(c, i=i): c.graph.node[i].output[:] = list(c.graph.node[i].output)[::-1]
            yield f"{n.name} outputs reversed", crossed, None


def constants(l):
    for i in l.nodes:
        n = l.m.graph.node[i]
        for k, x in enumerate(n.input):
            if x not in l.init: continue
            for j, y in enumerate(other_arrays(numpy_helper.to_array(l.init[x]))):
                yield f"{n.name} input {k} value {j}", lambda c, i=i, k=k, y=y, x=x: c.graph.node[i].input.__setitem__(k, fresh(c, "perturbed", y)), None
            def alone(c, i=i, k=k, x=x): c.graph.node[i].input[k] = fresh(c, "perturbed", numpy_helper.to_array(l.init[x]))
            yield f"{n.name} input {k} a copy", alone, None
            def node(c, i=i, k=k, x=x):
                c.graph.node.insert(i, helper.make_node("Constant", [], ["perturbed"], name="perturbed", value=l.init[x]))
                c.graph.node[i + 1].input[k] = "perturbed"
            yield f"{n.name} input {k} a Constant node", node, None
            for y in l.twin.get(x, []):
                def tied(c, x=x, y=y):
                    for m in c.graph.node: m.input[:] = [y if v == x else v for v in m.input]
                if l.form.get(y) == l.form[x]: yield f"{x} tied to {y}", tied, None


def shapes(l):
    """Every dimension of the layer's parameters wider, where that leaves a model."""
    mine = {x for i in l.nodes for x in l.m.graph.node[i].input if x in l.init and l.twin.get(x) and len(l.form[x][1]) and l.form[x][0] == "<f4"}
    for d in sorted({d for x in mine for d in l.form[x][1]}):
        for more in (4, -4):
            def wide(c, d=d, more=more):
                for i in l.nodes:                                     # sizes told in constants, for this layer only
                    for k, x in enumerate(c.graph.node[i].input):
                        if x not in l.init or l.form[x][0] != "<i8": continue
                        a = numpy_helper.to_array(l.init[x])
                        if d in a: c.graph.node[i].input[k] = fresh(c, f"perturbed {i} {k}", np.where(a == d, d + more, a))
                for i in c.graph.initializer:
                    if i.name not in mine: continue
                    a = numpy_helper.to_array(i)
                    for axis, e in enumerate(a.shape):
                        if e == d: a = np.take(a, np.arange(d + more) % d, axis)
                    i.CopyFrom(numpy_helper.from_array(np.array(a), i.name))
            if d > 4: yield f"width {d} to {d + more}", wide, None


def inserted(l):
    """An op behind every value of the layer, and between it and the layer before."""
    g = l.m.graph
    edge = {x for i in l.nodes for x in g.node[i].input if x in l.order and l.order[x] not in l.nodes}
    for x in sorted(edge) + [o for i in l.nodes for o in g.node[i].output if o]:
        if not l.form[x][0].endswith("f4"): continue
        for op in ("Identity", "Neg", "Relu"):
            def put(c, x=x, op=op):
                for i, n in enumerate(c.graph.node):
                    if i in l.nodes or x not in edge: n.input[:] = ["perturbed" if v == x else v for v in n.input]
                c.graph.node.insert(l.order[x] + 1, helper.make_node(op, [x], ["perturbed"], name="perturbed"))
            yield f"{op} {'before the layer, on' if x in edge else 'behind'} {x}", put, None


REPLACED = {"Add": ("Sub", "Mul"), "Sub": ("Add",), "Mul": ("Div", "Add"), "Div": ("Mul",), "Relu": ("Tanh", "Identity"), "Tanh": ("Sigmoid",), "Sigmoid": ("Tanh",), "Erf": ("Tanh",), "Gelu": ("Relu",),
            "Softmax": ("LogSoftmax", "Hardmax"), "Neg": ("Abs",), "Sqrt": ("Abs",), "Reciprocal": ("Neg",), "Pow": ("Add",), "Cos": ("Sin",), "Sin": ("Cos",), "ReduceMean": ("ReduceMax",), "MatMul": ("Add", "Mul"),
            "Where": (), "Transpose": ("Identity",), "LayerNormalization": ("Add",), "And": ("Or",), "Equal": ("Greater",), "Less": ("Greater",), "Max": ("Min",), "Min": ("Max",)}


def replaced(l):
    for i in l.nodes:
        n = l.m.graph.node[i]
        for op in REPLACED.get(n.op_type, ()):
            def other(c, i=i, op=op):
                node = c.graph.node[i]
                if op in ("Add", "Identity") or node.op_type in ("Gelu",): del node.attribute[:]
                if op == "Add": del node.input[2:]
                node.op_type = op
            yield f"{n.name}: {n.op_type} to {op}", other, None
        def foreign(c, i=i): c.graph.node[i].domain = "com.example"
        yield f"{n.name}: of another domain", foreign, None


def exported(l):
    """Values of the layer, and of all layers, as outputs of the model."""
    for i in l.nodes:
        for o in l.m.graph.node[i].output:
            if not o or o in {x.name for x in l.m.graph.output}: continue
            def add(c, names):
                for x in names: c.graph.output.append(helper.make_tensor_value_info(x, helper.np_dtype_to_tensor_dtype(np.dtype(l.form[x][0])), l.form[x][1]))
            yield f"output {o}", lambda c, o=o, e=add: e(c, [o]), None
            both = [o] + [x for x in l.twin.get(o, []) if x not in {y.name for y in l.m.graph.output}]
            if len(both) > 1: yield f"outputs {' '.join(both)}", lambda c, b=both, e=add: e(c, b), None
            def other(c, o=o): c.graph.output[0].CopyFrom(helper.make_tensor_value_info(o, helper.np_dtype_to_tensor_dtype(np.dtype(l.form[o][0])), l.form[o][1]))
            yield f"output {o} in place of the first", other, None


def metadata(l):
    """Lost in eleven ways, and told wrong: no change at all in what is computed."""
    first = lambda k: l.span(k)[0]
    last = lambda k: l.span(k)[-1]
    every = range(len(l.m.graph.node))
    k, middle = l.k, l.nodes[len(l.nodes) // 2]
    stack = [i for j in range(64) for i in l.span(j)]
    lost = {"a node inside": [middle], "the last node": [last(k)], "the first node of layer 0": [first(0)], "the first node of layer 1": [first(1)], "the head": range(stack[0] + 3),
            "a whole layer": l.nodes, "the first layer": l.span(0), "a border": [last(0), first(1)], "every second": every[::2], "all but a layer": [i for i in every if i not in l.nodes], "everything": every}
    def lose(c, nodes, keys=(SCOPES, CLASSES, NAMESPACE, "pkg.torch.onnx.fx_node")):
        for i in nodes:
            kept = [copy.deepcopy(p) for p in c.graph.node[i].metadata_props if p.key not in keys]
            del c.graph.node[i].metadata_props[:]
            c.graph.node[i].metadata_props.extend(kept)
    for what, nodes in lost.items(): yield f"lost: {what}", lambda c, nodes=nodes: lose(c, nodes), None
    for what, keys in (("name_scopes", (SCOPES,)), ("class_hierarchy", (CLASSES,)), ("all but the namespace", (SCOPES, CLASSES)), ("all but name_scopes", (CLASSES, NAMESPACE))):
        yield f"lost: {what}", lambda c, keys=keys: lose(c, every, keys), None
    def moved(c):
        for n in c.graph.node:
            for p in n.metadata_props: n.attribute.append(helper.make_attribute(p.key, p.value)) if p.key in (SCOPES, CLASSES) else None
        lose(c, every)
    yield "moved into attributes", moved, None
    def say(c, nodes, tell):
        for i in nodes:
            for p in c.graph.node[i].metadata_props:
                if p.key in (SCOPES, NAMESPACE): p.value = tell(i, p.value)
    renumber = lambda s, to: re.sub(re.escape(l.pattern).replace("%d", r"(\d+)") + r"(?!\d)", lambda x: l.pattern % to(int(x.group(1))), s)
    shifted = {i: meta(l.m.graph.node[stack[max(0, j - 3)]]).get(SCOPES, "") for j, i in enumerate(stack)}
    r = random.Random(3)
    mixed = [meta(l.m.graph.node[i]).get(SCOPES, "") for i in every]
    r.shuffle(mixed)
    for what, nodes, tell in (("all in layer 0", every, lambda i, s: renumber(s, lambda x: 0)), ("a layer said to be the next", l.nodes, lambda i, s: renumber(s, lambda x: x + 1)),
                              ("layers numbered backwards", every, lambda i, s: renumber(s, lambda x: 63 - x)), ("pairs of layers", every, lambda i, s: renumber(s, lambda x: x // 2)),
                              ("borders three nodes late", stack, lambda i, s: shifted[i]), ("shuffled", every, lambda i, s: mixed[i]), ("one scope for all", every, lambda i, s: "['', 'x.0', 'y']"),
                              ("no list", every, lambda i, s: "["), ("half a list", l.nodes, lambda i, s: s[:len(s) // 2]), ("empty", every, lambda i, s: ""), ("numbers", every, lambda i, s: "[1, 2, 3]"),
                              ("huge numbers", every, lambda i, s: renumber(s, lambda x: 10 ** 30 + x)), ("deep", l.nodes, lambda i, s: "[" + ", ".join(["'a'"] * 5000) + "]")):
        yield f"lies: {what}", lambda c, nodes=nodes, tell=tell: say(c, nodes, tell), None


KINDS = {"attributes": attributes, "edges": edges, "constants": constants, "shapes": shapes, "inserted": inserted, "replaced": replaced, "exported": exported, "metadata": metadata}


# ---- judging a mutant ---------------------------------------------------------------------------------------------------------------------

def told(a, err):
    """Does the text hold the attribute's value? Of no attribute: that it is absent."""
    if a is None or not a.type: return "absent" in err
    numbers = [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", err)]
    if a.type == A.INT: return a.i in numbers
    if a.type == A.FLOAT: return any(np.float32(x) == np.float32(a.f) for x in numbers)
    if a.type == A.STRING: return a.s.decode() in err
    if a.type == A.INTS: return "[" + ",".join(map(str, a.ints[:8])) in err
    return True


def judge(base, kind, c, facts, f):
    """'' or what is wrong; None when the mutant is no model. facts: of attributes, what changed; of metadata, the outputs."""
    blob = c.SerializeToString()
    want = facts if kind == "metadata" else execute(blob, f)          # metadata changes nothing, in whatever form ONNX Runtime takes it
    if want is None: return None
    source = t.write("mutant.onnx", blob)
    rolled_path = t.at("rolled.onnx")
    if os.path.exists(rolled_path): os.remove(rolled_path)
    err, status = call("roll", source, "--onnx", "-o", rolled_path)
    loops = LOOPS[base]
    if status:
        if status not in (3, 4): return f"status {status}: {err.strip()[-300:]}"
        if len([x for x in err.splitlines() if "[MLO_E_" in x]) != 1: return f"not one line: {err.strip()[-300:]}"
        got = []
    else:
        blob = t.read(rolled_path)
        rolled = onnx.load_from_string(blob)
        have = execute(blob, f)
        if have is None: return "what was rolled does not run"
        d = difference(want, have)
        if not d < 1e-5: return f"WRONG: differs by {d:.3g}; {err.strip()[-200:]}"
        why, proved = call("check", rolled_path, "--against", source)
        if proved: return f"not proved: {why.strip()[-300:]}"
        got = sizes(rolled)
    if kind == "metadata" and [x[0] for x in got] != [x[0] for x in loops]: return f"rolls to {got}, without the change to {loops}: {err.strip()[-200:]}"
    if kind == "attributes" and [x[0] for x in got] != [x[0] for x in loops] and "MLO_E_SHAPE" not in err:
        k, node, old, new = facts
        op = next(n.op_type for n in c.graph.node if n.name == node)
        if op in ("Gemm", "Reshape") and f"layer {k}: " in err: return ""       # a flattened product that read no longer knows as one: another structure, told as such
        line = re.search(rf"layer (\d+): \w+ {re.escape(node)}: {old.name} (.*?), (others|layer \d+) (.*)", err)
        for what, good in (("node and attribute", line), ("layer", line and int(line[1]) == k), ("new value", line and told(new, line[2])), ("old value", line and told(old, line[4]))):
            if not good: return f"the {what} is not told: {err.strip()[-400:]}"
    return ""


def tidy(c, kind):
    """Shapes noted in the model may no longer be true."""
    if kind in ("exported", "metadata"): return
    del c.graph.value_info[:]


def check_mutants():
    for base in LAYERS:
        m = lively(onnx.load(t.model(base)))
        f = feeds(m)
        expected = execute(m, f)
        for pattern, k in LAYERS[base]:
            layer = Layer(m, pattern, k, f)
            for kind, make in KINDS.items():
                name = f"{base}/{kind}/{pattern % k}"
                if picked and not any(p in name for p in picked): continue
                found, bad, tried = list(make(layer)), [], 0
                if not all_of_them: random.Random(f"{seed} {name}").shuffle(found)
                for what, edit, facts in found:
                    if not all_of_them and tried >= SAMPLE.get(kind, FEW): break
                    c = copy.deepcopy(m)
                    edit(c)
                    tidy(c, kind)
                    why = judge(base, kind, c, expected if kind == "metadata" else facts, f)
                    tried += why is not None
                    if why:
                        bad.append(f"{what}: {why}")
                        if all_of_them: print(f"  {name}: {what}: {' '.join(why.split())}", flush=True)
                t.case(f"{name}: {tried} of {len(found)} changed one by one" if tried < len(found) else f"{name}: {tried} changed one by one", f"seed {seed}, {len(bad)}: " + " | ".join(bad[:3]) if bad else "" if tried else f"none of {len(found)} is a model")


# ---- sabotage of rolled models ---------------------------------------------------------------------------------------------------------------

def body_forms(m, scan):
    """Type and shape of every value in a body, as ONNX Runtime infers them: a value rewired to another of the same form leaves a model."""
    inferred = onnx.shape_inference.infer_shapes(m)
    g, forms = body(scan(inferred)), {}
    for v in list(g.value_info) + list(g.input) + list(g.output):
        forms[v.name] = (v.type.tensor_type.elem_type, tuple(d.dim_value if d.HasField("dim_value") else d.dim_param for d in v.type.tensor_type.shape.dim))
    forms.update((i.name, (i.data_type, tuple(i.dims))) for i in g.initializer)
    return forms


def in_body(m, scan, f):
    """Every attribute, edge and op of a body changed."""
    g, r = body(scan(m)), random.Random(9)
    forms = body_forms(m, scan)
    order = {o: i for i, n in enumerate(g.node) for o in n.output}
    for i, n in enumerate(g.node):
        def to(c, i=i): return body(scan(c)).node[i]
        for a in n.attribute:
            for k, new in enumerate(other_values(a)): yield f"{n.name}.{a.name} {k}", lambda c, to=to, a=a, new=new: attribute(to(c), a.name).CopyFrom(new)
            yield f"{n.name}.{a.name} removed", lambda c, to=to, a=a: to(c).attribute.remove(attribute(to(c), a.name))
        for op in REPLACED.get(n.op_type, ()):
            def other(c, to=to, op=op):
                if op in ("Add", "Identity") or to(c).op_type == "Gelu": del to(c).attribute[:]
                if op == "Add": del to(c).input[2:]
                to(c).op_type = op
            yield f"{n.name} to {op}", other
        for k, x in enumerate(n.input):
            fits = sorted(v for v, form in forms.items() if v and v != x and form == forms.get(x) and order.get(v, -1) < i)
            for v in r.sample(fits, min(4, len(fits))): yield f"{n.name} input {k} from {v}", lambda c, to=to, k=k, v=v: to(c).input.__setitem__(k, v)
            if k >= 2: yield f"{n.name} input {k} absent", lambda c, to=to, k=k: to(c).input.__setitem__(k, "")
        for a, b in itertools.combinations(range(len(n.input)), 2):
            def swap(c, to=to, a=a, b=b): x = to(c).input; x[a], x[b] = x[b], x[a]
            yield f"{n.name} operands {a} and {b} swapped", swap
        if len(n.output) > 1: yield f"{n.name} outputs reversed", lambda c, to=to: to(c).output.__setitem__(slice(None), list(to(c).output)[::-1])
        if forms.get(n.output[0], (0,))[0] == T.FLOAT:
            def negate(c, i=i):
                b = body(scan(c))
                x = b.node[i].output[0]
                b.node[i].output[0] = "sabotaged"
                b.node.insert(i + 1, helper.make_node("Neg", ["sabotaged"], [x], name="sabotage"))
            yield f"{n.name} negated", negate
    for i, t_ in enumerate(g.initializer):
        for k, y in enumerate(other_arrays(numpy_helper.to_array(t_))):
            yield f"constant {t_.name} {k}", lambda c, i=i, y=y: (lambda x: x.CopyFrom(numpy_helper.from_array(np.array(y), x.name)))(body(scan(c)).initializer[i])


def around(m, scan, f):
    """What a loop is given, in which order, and what it hands out."""
    s, g = scan(m), body(scan(m))
    states = len(s.input) - attribute(s, "num_scan_inputs").i
    form = lambda v: (v.type.tensor_type.elem_type, tuple(d.dim_value for d in v.type.tensor_type.shape.dim))
    for a, b in itertools.combinations(range(len(s.input)), 2):
        if form(g.input[a]) != form(g.input[b]): continue
        def swap(c, a=a, b=b): x = scan(c).input; x[a], x[b] = x[b], x[a]
        yield f"inputs {a} and {b} of the loop swapped", swap
        def same(c, a=a, b=b): scan(c).input[b] = scan(c).input[a]
        yield f"input {b} of the loop from {a}", same
        def formal(c, a=a, b=b): x, y = body(scan(c)).input[a].name, body(scan(c)).input[b].name; body(scan(c)).input[a].name, body(scan(c)).input[b].name = y, x
        yield f"inputs {a} and {b} of the body renamed", formal
    made = {o for n in g.node for o in n.output}
    for k, o in enumerate(g.output):
        for v in [x for x in sorted(made) if x and x != o.name][:12]: yield f"output {k} of the body from {v}", lambda c, k=k, v=v: setattr(body(scan(c)).output[k], "name", v)
    for a, b in itertools.combinations(range(len(s.output)), 2):
        def cross(c, a=a, b=b): x = scan(c).output; x[a], x[b] = x[b], x[a]
        yield f"outputs {a} and {b} of the loop swapped", cross
    n_scan, n_out = len(s.input) - states, len(s.output) - states
    for name, n in (("scan_input_directions", n_scan), ("scan_input_axes", n_scan), ("scan_output_directions", n_out), ("scan_output_axes", n_out)):
        for k in range(n):
            yield f"{name}[{k}]", lambda c, name=name, n=n, k=k: scan(c).attribute.append(helper.make_attribute(name, [int(x == k) for x in range(n)]))
    for change in (1, -1):
        yield f"num_scan_inputs {change:+d}", lambda c, d=change: setattr(attribute(scan(c), "num_scan_inputs"), "i", attribute(scan(c), "num_scan_inputs").i + d)


def stacks(m, scan, f):
    """The nodes and weights outside of the loop."""
    for i, n in enumerate(m.graph.node):
        if n.op_type == "Concat":
            for a, b in itertools.combinations(range(len(n.input)), 2):
                def swap(c, i=i, a=a, b=b): x = c.graph.node[i].input; x[a], x[b] = x[b], x[a]
                yield f"{n.name} parts {a} and {b} swapped", swap
                yield f"{n.name} part {b} from {a}", lambda c, i=i, a=a, b=b: c.graph.node[i].input.__setitem__(b, c.graph.node[i].input[a])
            yield f"{n.name} without its last part", lambda c, i=i: c.graph.node[i].input.pop()
        for a in n.attribute:
            if a.type != A.GRAPH:
                for k, new in enumerate(other_values(a)): yield f"{n.name}.{a.name} {k}", lambda c, i=i, a=a, new=new: attribute(c.graph.node[i], a.name).CopyFrom(new)
    for i, w in enumerate(m.graph.initializer):
        for k, y in enumerate(other_arrays(numpy_helper.to_array(w))):
            yield f"{w.name} value {k}", lambda c, i=i, y=y, w=w: c.graph.initializer[i].CopyFrom(numpy_helper.from_array(np.array(y), w.name))


def check_sabotage():
    """A rolled model made wrong on purpose: whenever ONNX Runtime shows another result, check says so."""
    for base in LAYERS:
        m = lively(onnx.load(t.model(base)))
        f, source = feeds(m), t.write("source.onnx", m.SerializeToString())
        want, path = execute(m, f), t.at("to-sabotage.onnx")
        err, status = call("roll", source, "--onnx", "-o", path)
        if status: t.case(f"{base}/sabotage", err); continue
        rolled = onnx.load(path)
        for number in range(len(scans(rolled))):
            scan = lambda c, number=number: scans(c)[number]              # this loop, in any copy of the model
            for make in (in_body, around, stacks):
                name = f"{base}/sabotage/{make.__name__}/{number}"
                if (picked and not any(p in name for p in picked)) or (make is stacks and number): continue
                found, missed, tried, harmless = list(make(rolled, scan, f)), [], 0, 0
                if not all_of_them: random.Random(f"{seed} {name}").shuffle(found)
                for what, edit in found:
                    if not all_of_them and tried >= 2 * FEW: break
                    c = copy.deepcopy(rolled)
                    edit(c)
                    blob = c.SerializeToString()
                    have = execute(blob, f)
                    if have is None: continue
                    d = difference(want, have)
                    err, status = call("check", t.write("sabotaged.onnx", blob), "--against", source)
                    good = status in (1, 3, 4) and len([x for x in err.splitlines() if "[MLO_E_" in x]) == 1
                    harmless += d == 0
                    tried += d > 0
                    if good or (status == 0 and d < 1e-7): continue
                    missed.append(f"{what}: status {status}, differs by {d:.3g}: {err.strip()[-200:]}")
                    if all_of_them: print(f"  {name}: {missed[-1]}", flush=True)
                t.case(f"{name}: {tried} refused" + (f", {harmless} harmless" if harmless else ""), f"seed {seed}, {len(missed)}: " + " | ".join(missed[:3]) if missed else "" if tried else f"nothing of {len(found)} changed a result")


t.main(check_mutants, check_sabotage, floor=93)
