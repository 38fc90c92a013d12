"""The standard operators: evaluation and shape inference against ONNX's own node tests and ONNX Runtime.

    python tests/test_ops.py path/to/mlo [NAME ...]      NAME: part of a case's name, which begins with its operator

Uses `mlo run MODEL --inputs X.npz --outputs Y.npz` and `mlo read MODEL --onnx -o FILE`.
Which operators mlo evaluates stands in nodes.py (EVALUATED), and of which it knows just the forms of outputs (CARRIED). Each of ONNX's node tests is held against
that: right where all its operators are evaluated, refused where one is not. An operator that gets lost in C fails; a new one has to be listed.
"""
import collections, datetime, pathlib, subprocess, warnings
import numpy as np, onnx, onnx.reference
import corners
import harness as t
from onnx import TensorProto as T, helper as h, numpy_helper
from graphs import session
from nodes import CARRIED, EVALUATED, RESPELLED, array, holds, merged, node_tests, operators, single, takes, widened

warnings.filterwarnings("ignore")
REFUSED = {"Resize": "tf_crop_and_resize", "Dropout": "training_mode", "BatchNormalization": "training_mode", "Scan": "opset 8"}          # what mlo says it does not do, though it evaluates the operator: skips.txt

class Failed(Exception): pass

class Mlo:
    def __init__(self): self.dir = pathlib.Path(t.tmp)
    def call(self, *args):
        p = subprocess.run([t.mlo, *map(str, args)], capture_output=True, text=True)
        if p.returncode: raise Failed("status %d: %s" % (p.returncode, p.stderr.strip().split("\n")[-1]))
        return p.stdout
    def save(self, model):
        path = self.dir / "model.onnx"
        if isinstance(model, (str, pathlib.Path)): return model
        onnx.save(model, path)
        return path
    def run(self, model, feeds, *args):
        x, y = self.dir / "x.npz", self.dir / "y.npz"
        np.savez(x, **feeds)
        self.call("run", self.save(model), "--inputs", x, "--outputs", y, *args)
        with np.load(y) as z: return {k: z[k] for k in z.files}
    def read(self, model, *args):
        out = self.dir / "read.onnx"
        self.call("read", self.save(model), "--onnx", "-o", out, *args)
        return onnx.load(out)

def relative(a, b):
    """max|a-b| / max|b|"""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-30)) if a.size else 0.0

def model_of(nodes, inputs, outputs, opset=18, init=(), info=()):
    value = lambda name, t, dims: h.make_tensor_value_info(name, t, dims)
    g = h.make_graph(nodes, "g", [value(*i) for i in inputs], [value(*o) for o in outputs], [numpy_helper.from_array(np.asarray(v), k) for k, v in init], value_info=[value(*i) for i in info])
    return h.make_model(g, opset_imports=[h.make_opsetid("", opset)], ir_version=9)

# ---- ONNX's node tests -----------------------------------------------------------------------------------------------------------

def evaluated(model): return all(op in EVALUATED for op in operators(model))
def is_run(test): return evaluated(test.model) or test.name in RESPELLED
def feeds_in(model, values): return {i.name: array(a) for i, a in zip(model.graph.input, values)}

def node_cases():
    """(name, model, inputs, outputs, rtol, atol) of the node tests made of evaluated operators whose types npz can hold. Those of one node run all in one
    model (forms/said-run), and one of four a day by itself."""
    alone = {test.name for test in (single() if t.full else single()[datetime.date.today().toordinal() % 4::4])}
    for test in node_tests():
        if not is_run(test) or not holds(test.model) or test in single() and test.name not in alone: continue
        op = test.model.graph.node[0].op_type if len(test.model.graph.node) == 1 else "expanded"
        for ins, outs in test.data_sets: yield op + "/" + test.name, test.model, feeds_in(test.model, ins), [array(a) for a in outs], test.rtol, test.atol

def other_cases():
    """(operator, model, inputs) of the first node test of each operator that is not evaluated."""
    first = {}
    for test in node_tests():
        if is_run(test) or not holds(test.model): continue
        first.setdefault(next(op for op in operators(test.model) if op not in EVALUATED), (test.model, feeds_in(test.model, test.data_sets[0][0])))
    return first.items()

def form_cases():
    """(name, model) of ONNX's node tests of operators that are carried through: mlo knows their forms only."""
    return [(test.name, test.model) for test in node_tests() if len(test.model.graph.node) == 1 and operators(test.model)[0] in CARRIED]

def form(value): return [d.dim_value if d.HasField("dim_value") else None for d in value.type.tensor_type.shape.dim] if value.type.tensor_type.HasField("shape") else None

def without_forms(model):
    blank = onnx.ModelProto(); blank.CopyFrom(model)
    for o in blank.graph.output: o.type.tensor_type.ClearField("shape")
    return blank

def check_form_case(mlo, model):
    """Forms of outputs, found without what the model says of them, are what it says (or, but for the first, unknown)."""
    for i, (o, want) in enumerate(zip(mlo.read(without_forms(model)).graph.output, model.graph.output)):
        if form(o) != form(want) and (form(o) is not None or not i): raise Failed("%s: %s, should be %s" % (o.name, form(o), form(want)))

def check_other_case(mlo, op, model, feeds):
    """What is not evaluated is refused, by name; what is not carried either has outputs of unknown form."""
    try: mlo.run(model, feeds)
    except Failed as e:
        if "status 4" not in str(e) or "cannot evaluate %s " % op not in str(e): raise
    else: raise Failed("is evaluated; EVALUATED does not list it")
    known = form(mlo.read(without_forms(model)).graph.output[0])
    if known is not None and op not in (*CARRIED, "Einsum"): raise Failed("its form is known, as %s; CARRIED does not list it" % known)

def every_operator_has_a_case(mlo):
    """No name stands in a list for nothing."""
    seen = {op for test in node_tests() for op in operators(test.model)}
    lost = [op for op in EVALUATED + CARRIED if op not in seen]
    if lost: raise Failed("no node test of %s" % lost)

def check_node_case(mlo, model, feeds, outs, rtol, atol):
    got = mlo.run(model, feeds)
    for o, want in zip(model.graph.output, outs):
        a = got[o.name]
        if a.dtype != want.dtype or a.shape != want.shape: raise Failed("%s: %s %s, should be %s %s" % (o.name, a.dtype, a.shape, want.dtype, want.shape))
        loose = 1e-2 if want.dtype == np.float16 else 0
        if not np.allclose(a.astype(np.float64), want.astype(np.float64), rtol=max(rtol, loose), atol=max(atol, loose * 0.1, 1e-7), equal_nan=True):
            raise Failed("%s: %s, should be %s" % (o.name, a.ravel()[:6], want.ravel()[:6]))

# ---- whole models ----------------------------------------------------------------------------------------------------------------

def feeds_of(s, seed, sizes):
    r = np.random.default_rng(seed); feeds = {}
    for i in s.get_inputs():
        shape = [d if isinstance(d, int) else sizes[d] for d in i.shape]
        if i.type != "tensor(int64)": feeds[i.name] = r.standard_normal(shape).astype(np.float32)
        elif "mask" in i.name or i.name == "a_1": feeds[i.name] = (np.arange(shape[1])[None] < shape[1] * 0.7).astype(np.int64).repeat(shape[0], 0)
        else: feeds[i.name] = r.integers(0, 290, shape)
    return feeds

def whole_model(mlo, path, limit, *args):
    """Evaluation equals ONNX Runtime; so does the folded model, whose values all have known shapes."""
    model = onnx.load(path); s = session(model); worst = 0.0
    folded = mlo.read(path, *args); f = session(folded)
    for seed in range(3):
        feeds = feeds_of(s, seed, {"seq": 32}); want = s.run(None, feeds)
        got = mlo.run(path, feeds, *args)
        for o, w, v in zip(s.get_outputs(), want, f.run(None, feeds)):
            if got[o.name].shape != w.shape: raise Failed("%s has shape %s, should be %s" % (o.name, got[o.name].shape, w.shape))
            worst = max(worst, relative(got[o.name], w))
            if relative(v, w) > 1e-5: raise Failed("the folded model differs by %.1e in ONNX Runtime" % relative(v, w))
    if worst > limit: raise Failed("differs by %.1e" % worst)
    onnx.checker.check_model(folded)
    known = {v.name for v in [*folded.graph.value_info, *folded.graph.output] if all(d.HasField("dim_value") for d in v.type.tensor_type.shape.dim)}
    open_ = [o for n in folded.graph.node for o in n.output if o and o not in known]
    if open_: raise Failed("no shape for %s" % open_[:3])
    return "%.1e, %d nodes" % (worst, len(folded.graph.node))

# t5-tiny is ill-conditioned: ONNX Runtime itself is 8e-5 away from the same model in double, mlo 1.2e-4.
LIMITS = {"t5-tiny": 3e-4}
ENCODERS = ["bert-tiny", "bert-tiny-mask", "bert-tiny-dynamic", "bert-tiny-external", "bert-tiny-shared-biases", "bert-12-torchscript", "vit-tiny", "whisper-tiny",
            "t5-tiny", "gpt2-tiny", "llama-tiny-opset23", "mlp-res", "bert-tiny-qdq"]

def dynamic_is_static(mlo):
    """With its dimension bound, the dynamic export is as static as the one exported with a mask."""
    a = mlo.read(t.model("bert-tiny-dynamic"), "--dim", "seq=32").graph.node
    b = mlo.read(t.model("bert-tiny-mask")).graph.node
    if len(a) != len(b): raise Failed("%d nodes, should be %d" % (len(a), len(b)))
    if collections.Counter(n.op_type for n in a) != collections.Counter(n.op_type for n in b): raise Failed("other operators")

# ---- subgraphs -------------------------------------------------------------------------------------------------------------------

def scan(**attrs):
    """x' = x * outer + a[i];  taps: x', a[i]; two states that swap."""
    f = lambda n, d: h.make_tensor_value_info(n, T.FLOAT, d)
    body = h.make_graph([h.make_node("Mul", ["x", "outer"], ["p"]), h.make_node("Add", ["p", "a"], ["q"]), h.make_node("Add", ["a", "bias"], ["t"]), h.make_node("Identity", ["x"], ["z"])],
                        "body", [f("x", [3]), f("y", [3]), f("a", [3])], [f("z", None), f("q", [3]), f("t", None)], [numpy_helper.from_array(np.float32([1, 2, 3]), "bias")])
    return model_of([h.make_node("Neg", ["o"], ["outer"]), h.make_node("Scan", ["x0", "y0", "A"], ["x1", "y1", "taps"], body=body, num_scan_inputs=1, **attrs)],
                    [("x0", T.FLOAT, [3]), ("y0", T.FLOAT, [3]), ("A", T.FLOAT, [4, 3] if not attrs.get("scan_input_axes") else [3, 4]), ("o", T.FLOAT, [3])],
                    [("x1", T.FLOAT, None), ("y1", T.FLOAT, None), ("taps", T.FLOAT, None)])

def against_runtime(mlo, model, feeds, static=True):
    s = session(model)
    want = s.run(None, feeds); got = mlo.run(model, feeds)
    for o, w in zip(s.get_outputs(), want):
        if got[o.name].shape != w.shape or got[o.name].dtype != w.dtype or relative(got[o.name], w) > 1e-6: raise Failed("%s: %s, should be %s" % (o.name, got[o.name], w))
    if static:
        for o, w in zip(mlo.read(model).graph.output, want):
            dims = [d.dim_value for d in o.type.tensor_type.shape.dim]
            if dims != list(w.shape): raise Failed("%s is inferred as %s, is %s" % (o.name, dims, w.shape))

def scan_case(**attrs):
    r = np.random.default_rng(0).standard_normal
    a = r((4, 3)).astype(np.float32)
    feeds = {"x0": r(3), "y0": r(3), "A": a if not attrs.get("scan_input_axes") else a.T.copy(), "o": r(3)}
    return lambda mlo: against_runtime(mlo, scan(**attrs), {k: v.astype(np.float32) for k, v in feeds.items()})

def scan_of_4_bits(mlo):
    """A Scan over a tensor of 4 bits: rows of odd length begin within a byte and are read in parts of 1024; numpy_helper is the judge."""
    rows = h.make_tensor("rows", T.INT4, [3, 2051], np.random.default_rng(0).integers(-8, 8, 3 * 2051).tolist())
    body = h.make_graph([h.make_node("Cast", ["row"], ["y"], to=T.FLOAT)], "body", [h.make_tensor_value_info("row", T.INT4, [2051])], [h.make_tensor_value_info("y", T.FLOAT, [2051])])
    model = model_of([h.make_node("Scan", ["rows"], ["ys"], body=body, num_scan_inputs=1)], [], [("ys", T.FLOAT, [3, 2051])], opset=21)
    model.graph.initializer.append(rows)
    if not np.array_equal(mlo.run(model, {})["ys"], numpy_helper.to_array(rows).astype(np.float32)): raise Failed("other elements")

def constants_of_all_types(mlo):
    """Numbers of each type, as bytes and in the field that its type has; numpy_helper is the judge. (Floats of 8 bits: each code there is.)"""
    made, codes = {}, list(range(256))
    for name in "FLOAT DOUBLE INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8 BOOL FLOAT16 BFLOAT16 INT4 UINT4 INT2 UINT2 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ FLOAT8E8M0 FLOAT4E2M1".split():
        kind = getattr(T, name, None)
        if kind is None: continue
        eight, small = "FLOAT8" in name, name in ("INT4", "UINT4", "INT2", "UINT2", "FLOAT4E2M1")
        values = [0, 1, 1, 0, 1] if name in ("BOOL", "UINT2", "INT2") else [0, 1, 2, 3, 5]
        fields = {"raw_data": bytes(codes)} if eight else {}
        if name in ("FLOAT16", "BFLOAT16"): fields = {"int32_data": [0, 0x3C00, 0x4000, 0x7C00, 0xFC00]}
        elif eight: made[name + "_typed"] = onnx.TensorProto(data_type=kind, dims=[256], int32_data=codes)
        elif small: fields = {"int32_data": [0x21, 0x43, 0x05]} if "2" not in name or "FLOAT" in name else {"int32_data": [0x1B, 0x02]}
        else: fields = {{"FLOAT": "float_data", "DOUBLE": "double_data", "INT64": "int64_data", "UINT64": "uint64_data", "UINT32": "uint64_data"}.get(name, "int32_data"): values}
        made[name] = onnx.TensorProto(data_type=kind, dims=[256 if eight else 5], **fields)
    model = model_of([h.make_node("Cast", [name], ["y" + name], to=T.FLOAT) for name in made], [("x", T.FLOAT, [1])], [("y" + name, T.FLOAT, None) for name in made], opset=24)
    for name, tensor in made.items():
        tensor.name = name
        model.graph.initializer.append(tensor)
    got, wrong = mlo.run(model, {"x": np.float32([0])}), []
    for name, tensor in made.items():
        want = numpy_helper.to_array(tensor).astype(np.float32)
        if not np.array_equal(got["y" + name], want, equal_nan=True): wrong.append("%s: %s, should be %s" % (name, got["y" + name][:6], want[:6]))
    if wrong: raise Failed("; ".join(wrong[:4]))
    return "%d tensors" % len(made)

def long_tensors(mlo):
    """Constants of more than 256 KiB stay in their file, wherever in it they begin: rows of some, elements of others, by numpy."""
    r = np.random.default_rng(5)
    table, codes, shorts = r.standard_normal((9000, 9)).astype(np.float32), r.integers(-8, 8, 700_001), r.integers(-999, 999, 150_000).astype(np.int16)
    packed = np.append(codes, 0).reshape(-1, 2) & 15
    for shift in range(4):
        model = model_of([h.make_node("Gather", ["table", "i"], ["y"]), h.make_node("Cast", ["codes"], ["wide"], to=T.INT32), h.make_node("Gather", ["wide", "i"], ["z"]), h.make_node("Gather", ["shorts", "i"], ["w"]),
                          h.make_node("Concat", ["table", "table"], ["both"], axis=0), h.make_node("Gather", ["both", "i"], ["v"])], [("i", T.INT64, [2, 2])], [("y", T.FLOAT, None), ("z", T.INT32, None), ("w", T.INT16, None), ("v", T.FLOAT, None)],
                         opset=21, init=[("table", table), ("shorts", shorts)])
        model.graph.initializer.append(onnx.TensorProto(name="codes", data_type=T.INT4, dims=codes.shape, raw_data=(packed[:, 0] | packed[:, 1] << 4).astype(np.uint8).tobytes()))
        model.graph.name = "g" * (shift + 1)
        i = np.int64([[0, 8999], [-1, 4500]])
        got = mlo.run(model, {"i": i})
        if not all(np.array_equal(got[name], a[i]) for name, a in (("y", table), ("z", codes), ("w", shorts), ("v", np.concatenate([table, table])))): raise Failed("other elements, shifted by %d" % shift)

def stack_of_open_rank(axis, rank):
    """A Scan whose body says the rank of what it stacks only when it runs."""
    f = lambda n, d: h.make_tensor_value_info(n, T.FLOAT, d)
    body = h.make_graph([h.make_node("Reshape", ["a", "shape"], ["t"])], "body", [f("a", [3])], [f("t", None)])
    model = model_of([h.make_node("Scan", ["A"], ["taps"], body=body, num_scan_inputs=1, scan_output_axes=[axis])], [("A", T.FLOAT, [4, 3]), ("shape", T.INT64, ["n"])], [("taps", T.FLOAT, None)])
    return model, {"A": np.zeros((4, 3), np.float32), "shape": np.int64([1] * (rank - 1) + [3])}

def if_case(flag):
    f = lambda n: h.make_tensor_value_info(n, T.FLOAT, [2])
    branch = lambda op: h.make_graph([h.make_node(op, ["x"], [op])], op, [], [f(op)])
    model = model_of([h.make_node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Exp"))], [("c", T.BOOL, []), ("x", T.FLOAT, [2])], [("y", T.FLOAT, None)])
    return lambda mlo: against_runtime(mlo, model, {"c": np.array(flag), "x": np.float32([1, -2])})

def loop_case(mlo, limit=3.2):
    f = lambda n, t, d: h.make_tensor_value_info(n, t, d)
    body = h.make_graph([h.make_node("Add", ["x", "step"], ["x1"]), h.make_node("Less", ["x1", "limit"], ["more"]), h.make_node("Identity", ["x1"], ["tap"])], "body",
                        [f("i", T.INT64, []), f("go", T.BOOL, []), f("x", T.FLOAT, [])], [f("more", T.BOOL, []), f("x1", T.FLOAT, []), f("tap", T.FLOAT, [])])
    model = model_of([h.make_node("Loop", ["n", "", "x0"], ["y", "taps"], body=body)], [("n", T.INT64, []), ("x0", T.FLOAT, []), ("step", T.FLOAT, []), ("limit", T.FLOAT, [])],
                     [("y", T.FLOAT, None), ("taps", T.FLOAT, None)])
    against_runtime(mlo, model, {"n": np.array(100), "x0": np.array(0, np.float32), "step": np.array(0.5, np.float32), "limit": np.array(limit, np.float32)}, static=False)

def zeros_of_no_value(mlo):
    model = model_of([h.make_node("ConstantOfShape", ["n"], ["y"])], [("n", T.INT64, [2])], [("y", T.FLOAT, None)])
    feeds = {"n": np.int64([2, 3])}
    if not np.array_equal(mlo.run(model, feeds)["y"], session(model).run(None, feeds)[0]): raise Failed("no zeros")

def stack_refused(axis, rank, word):
    def case(mlo):
        try: mlo.run(*stack_of_open_rank(axis, rank))
        except Failed as e:
            if word in str(e) and "MLO_E_SHAPE" in str(e): return
            raise Failed("says only: %s" % e)
        raise Failed("is run")
    return case

# ---- numbers that node tests leave out ---------------------------------------------------------------------------------------------

def as_the_reference(node, *arrays):
    """One node on arrays, of the types that they have, as ONNX's reference evaluator has it."""
    types = [h.np_dtype_to_tensor_dtype(a.dtype) for a in arrays]
    model = model_of([node], [(name, kind, a.shape) for name, kind, a in zip(node.input, types, arrays)], [("y", types[0], None)], opset=24 if node.op_type == "Swish" else 22)
    feeds = dict(zip(node.input, arrays))
    def case(mlo):
        want, got = onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0], mlo.run(model, feeds)["y"]
        if got.dtype != want.dtype or not np.allclose(got, want, rtol=1e-12, atol=1e-12): raise Failed("%s, should be %s" % (got, want))
    return case

def numbers():
    x = np.linspace(-4, 4, 33)                            # (of Erf, Gelu and HardSwish the reference has no more digits than a float)
    for op in "Celu Elu HardSigmoid LeakyRelu Mish Selu Shrink Sigmoid Softplus Softsign Swish Tanh ThresholdedRelu".split():
        yield "double/" + op, as_the_reference(h.make_node(op, ["x"], ["y"]), x)
    for kind, values in ((np.uint64, [1, 3, 2**63 + 5]), (np.int64, [1, 3, -5])):
        for direction in "LEFT", "RIGHT":
            yield "shift/%s %s" % (direction, kind.__name__), as_the_reference(h.make_node("BitShift", ["x", "n"], ["y"], direction=direction), np.array(values, kind), np.array([64, 63, 1], kind))
    a = np.arange(6.0).reshape(2, 3)
    yield "gemm/beta 2", as_the_reference(h.make_node("Gemm", ["a", "b", "c"], ["y"], alpha=0.5, beta=2.0), a, a.T.copy(), np.array([1.0, 7]))

def faint_softmax(mlo):
    """Of numbers far below the largest: each within half a step of the smallest float."""
    x = np.float32([[0, -100, -102.5, -103.25, -103.9, -104.5, -1000, -np.inf]])
    y = mlo.run(model_of([h.make_node("Softmax", ["x"], ["y"])], [("x", T.FLOAT, x.shape)], [("y", T.FLOAT, x.shape)]), {"x": x})["y"]
    off = np.abs(y.astype(np.float64) - np.exp(x.astype(np.float64)))
    if off[0, 0] or off.max() > 2.0 ** -150 * 1.05: raise Failed("off by %s" % off)

# ---- corners -----------------------------------------------------------------------------------------------------------------------

def judges(model, feeds):
    """What ONNX Runtime makes of a model, and what onnx's reference evaluator does: of those that know its operators."""
    for judge in (lambda: session(model).run(None, feeds)), (lambda: onnx.reference.ReferenceEvaluator(model).run(None, feeds)):
        try: yield judge()
        except Exception: pass

def alike(got, want): return got.dtype == want.dtype and got.shape == want.shape and np.allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-5, atol=1e-6, equal_nan=True)

def legal_corners(opset):
    """All of one opset as one model, in one process."""
    def case(mlo):
        tests = [(name, nodes, feeds) for name, (version, nodes, feeds) in corners.legal() if version == opset]
        whole, given = onnx.GraphProto(name="corners"), {}
        for k, (_, nodes, feeds) in enumerate(tests):
            part = onnx.compose.add_prefix_graph(corners.model(nodes, opset, feeds).graph, "%d_" % k)
            for field in "node", "input", "output": getattr(whole, field).extend(getattr(part, field))
            given.update({"%d_%s" % (k, name): a for name, a in feeds.items()})
        got, wrong = mlo.run(h.make_model(whole, opset_imports=[h.make_opsetid("", opset)], ir_version=10), given), []
        for k, (name, nodes, feeds) in enumerate(tests):
            model = corners.model(nodes, opset, feeds)
            mine, theirs = [got["%d_%s" % (k, o.name)] for o in model.graph.output], list(judges(model, feeds))
            if not any(all(map(alike, mine, want)) for want in theirs): wrong.append("%s: %s, should be one of %s" % (name, mine, theirs))
        if wrong: raise Failed("; ".join(wrong[:3]))
        return "%d results" % len(tests)
    return case

def refused_corner(code, words, opset, nodes, feeds, init):
    def case(mlo):
        try: mlo.run(corners.model(nodes, opset, feeds, init=init), feeds)
        except Failed as e:
            node = "wrong (%s)" % nodes[0].op_type if ": " not in words else words
            if "status %d" % corners.STATUS[code] in str(e) and "[MLO_E_%s]" % code in str(e) and words in str(e) and node in str(e): return
            raise Failed("says only: %s" % e)
        raise Failed("is run")
    return case

# ---- inference -------------------------------------------------------------------------------------------------------------------

def symbolic_reshape(mlo):
    """[batch,32,64] -> Reshape(Concat(Shape[0], 32, 4, -1)) keeps batch open and finds the rest."""
    model = model_of([h.make_node("Shape", ["x"], ["s"]), h.make_node("Gather", ["s", "zero"], ["b"]), h.make_node("Unsqueeze", ["b", "axes"], ["b1"]), h.make_node("Concat", ["b1", "rest"], ["t"], axis=0),
                      h.make_node("Reshape", ["x", "t"], ["y"]), h.make_node("Transpose", ["y"], ["z"], perm=[0, 2, 1, 3])],
                     [("x", T.FLOAT, ["batch", 32, 64])], [("z", T.FLOAT, None)], init=[("zero", np.int64(0)), ("axes", np.int64([0])), ("rest", np.int64([32, 4, 16]))])
    dims = lambda m: [d.dim_value if d.HasField("dim_value") else None for d in m.graph.output[0].type.tensor_type.shape.dim]
    if dims(mlo.read(model)) != [None, 4, 32, 16]: raise Failed("open: %s" % dims(mlo.read(model)))
    bound = mlo.read(model, "--dim", "batch=2")
    if dims(bound) != [2, 4, 32, 16]: raise Failed("bound: %s" % dims(bound))
    if [n.op_type for n in bound.graph.node] != ["Reshape", "Transpose"]: raise Failed("not folded: %s" % [n.op_type for n in bound.graph.node])

def gather_by_scalar(mlo):
    """An index without axes takes the axis away, and is one whose form is known."""
    model = model_of([h.make_node("Gather", ["x", "i"], ["y"], axis=1)], [("x", T.FLOAT, [5, 3, 2]), ("i", T.INT64, [])], [("y", T.FLOAT, None)])
    against_runtime(mlo, model, {"x": np.arange(30, dtype=np.float32).reshape(5, 3, 2), "i": np.array(2)})

def refuses(model, *words):
    def case(mlo):
        try: mlo.read(model)
        except Failed as e:
            if all(w in str(e) for w in words): return
            raise Failed("says only: %s" % e)
        raise Failed("is accepted")
    return case

def none_of_a_named_axis(mlo):
    """A slice that holds nothing: 0 is known, whatever the model calls that axis."""
    slices = h.make_node("Slice", ["x", "two", "two", "axis"], ["y"])
    model = model_of([slices], [("x", T.FLOAT, [2, 3])], [("y", T.FLOAT, ["rows", 3])], init=[("two", np.int64([2])), ("axis", np.int64([0]))])
    dims = mlo.read(model).graph.output[0].type.tensor_type.shape.dim
    if [d.WhichOneof("value") and (d.dim_param or d.dim_value) for d in dims] != [0, 3]: raise Failed("has the axes %s" % dims)

def powers_of_integers(mlo):
    """Exact where a double is not."""
    got = mlo.run(model_of([h.make_node("Pow", ["x", "n"], ["y"])], [("x", T.INT64, [3]), ("n", T.INT64, [3])], [("y", T.INT64, [3])]), {"x": np.int64([3, -7, 2]), "n": np.int64([39, 21, 62])})["y"]
    if got.tolist() != [3 ** 39, -7 ** 21, 2 ** 62]: raise Failed("is %s" % got)

def sum_of_no_first(mlo):
    """An input of a list that is left out: refused where it is added up."""
    try: mlo.run(model_of([h.make_node("Sum", ["", "x"], ["y"], name="none")], [("x", T.FLOAT, [2])], [("y", T.FLOAT, [2])]), {"x": np.float32([1, 2])})
    except Failed as e:
        if "none (Sum): has no first input" in str(e) and "MLO_E_GRAPH" in str(e): return
        raise Failed("says only: %s" % e)
    raise Failed("is accepted")

def too_few_inputs(mlo):
    """An input less than an operator takes at least, in whatever opset."""
    wrong, newest = [], onnx.defs.onnx_opset_version()
    for op in EVALUATED + CARRIED:
        least = min(onnx.defs.get_schema(op, v).min_input for v in range(1, newest + 1) if known(op, v))
        if not least: continue
        try: mlo.read(model_of([h.make_node(op, ["x"] * (least - 1), ["y"], name="few")], [("x", T.FLOAT, [1, 2, 3])], [("y", T.FLOAT, None)], opset=newest))
        except Failed as e: why = "" if "few (%s): " % op in str(e) and "MLO_E_GRAPH" in str(e) else str(e)
        else: why = "%s of %d is accepted" % (op, least - 1)
        if why: wrong.append(why)
    if wrong: raise Failed("; ".join(wrong[:20]))

def known(op, version):
    try: return onnx.defs.get_schema(op, version)
    except onnx.defs.SchemaError: return None

INFERENCE = {
    "infer-symbolic-reshape": symbolic_reshape,
    "infer-gather-by-scalar": gather_by_scalar,
    "infer-matmul-mismatch": refuses(model_of([h.make_node("MatMul", ["x", "w"], ["y"], name="mm")], [("x", T.FLOAT, [2, 3])], [("y", T.FLOAT, None)], init=[("w", np.zeros((4, 5), np.float32))]), "mm (MatMul)", "[2,3] x [4,5]", "MLO_E_SHAPE"),
    "infer-broadcast-mismatch": refuses(model_of([h.make_node("Add", ["x", "w"], ["y"])], [("x", T.FLOAT, [2, 3])], [("y", T.FLOAT, None)], init=[("w", np.zeros(4, np.float32))]), "y (Add)", "3 against 4", "MLO_E_SHAPE"),
    "infer-type-mismatch": refuses(model_of([h.make_node("Add", ["x", "w"], ["y"])], [("x", T.FLOAT, [2])], [("y", T.FLOAT, None)], init=[("w", np.zeros(2, np.int64))]), "float", "int64", "MLO_E_TYPE"),
    "infer-output-contradicts": refuses(model_of([h.make_node("Neg", ["x"], ["y"])], [("x", T.FLOAT, [2, 3])], [("y", T.FLOAT, [2, 4])]), "[2,4]", "[2,3]", "MLO_E_SHAPE"),
    "infer-none-of-a-named-axis": none_of_a_named_axis,
    **{"infer-auto-pad-%s" % pad: refuses(model_of([h.make_node("MaxPool", ["x"], ["y"], name="pool", kernel_shape=[2], auto_pad=pad)], [("x", T.FLOAT, [1, 2, 6])], [("y", T.FLOAT, None)]),
                                          "pool (MaxPool)", "auto_pad", "MLO_E_GRAPH") for pad in ("SAME", "SAME_UPPE", "SAME_LOWER_", "VALI")},
    "infer-endless-window": refuses(model_of([h.make_node("Conv", ["x", "w"], ["y"], name="conv")], [("x", T.FLOAT, [1, 1, 5]), ("w", T.FLOAT, [1, 1, 2 ** 33])], [("y", T.FLOAT, None)]), "conv (Conv)", "a kernel of 8589934592", "MLO_E_SHAPE"),
    "infer-reshape-count": refuses(model_of([h.make_node("Reshape", ["x", "s"], ["y"])], [("x", T.FLOAT, [2, 3])], [("y", T.FLOAT, None)], init=[("s", np.int64([4, -1]))]), "6 elements", "MLO_E_SHAPE"),
}

def one_for_a_list(mlo):
    """One integer as an attribute where a list is meant, as careless tools write it, is the list of it. (ONNX Runtime refuses that.)"""
    got = mlo.run(model_of([h.make_node("Unsqueeze", ["x"], ["y"], axes=1)], [("x", T.FLOAT, [2, 3])], [("y", T.FLOAT, None)], opset=11), {"x": np.ones((2, 3), np.float32)})["y"]
    if got.shape != (2, 1, 3): raise Failed("is %s" % (got.shape,))

# ---- forms that are open, and forms that are wrong -----------------------------------------------------------------------------------

def no_form(value, a, r): value.type.tensor_type.ClearField("shape")
def rank_alone(value, a, r):
    for k, d in enumerate(value.type.tensor_type.shape.dim): d.dim_param = "%s_%d" % (value.name, k)
def some_of_both(value, a, r):
    for d in value.type.tensor_type.shape.dim:
        if r.integers(2): d.Clear()
    if not r.integers(3): no_form(value, a, r)

def open_forms(how, seed, least):
    """All node tests as one model whose inputs say less of themselves: what is known of outputs is what the node tests have there, and of some it is known."""
    def case(mlo):
        r = np.random.default_rng(seed)
        model, want = merged(list(single()), lambda value, a: how(value, a, r))
        got = mlo.read(model).graph.output
        wrong = [o.name for o in got if o.type.tensor_type.elem_type != h.np_dtype_to_tensor_dtype(want[o.name].dtype)
                 or form(o) is not None and (len(form(o)) != want[o.name].ndim or any(d not in (None, n) for d, n in zip(form(o), want[o.name].shape)))]
        known = sum(form(o) is not None for o in got)
        if wrong or known < least: raise Failed("wrong: %s; %d of %d are known" % (wrong[:5], known, len(got)))
        return "%d of %d known" % (known, len(got))
    return case

def all_values(how, without=(), kind=np.float32):
    """The same, run in one process: each result is the node test's, whether forms are known before or only then, and whatever type its floats have."""
    def case(mlo):
        small = lambda test: kind != np.float16 or all(not a.size or np.abs(a).max() < 100 for side in test.data_sets[0] for a in map(array, side) if a.dtype == np.float32)
        tests = [test for test in single() if operators(test.model)[0] not in without and small(test) and (kind == np.float32 or takes(test.model.graph.node[0], "tensor(%s)" % np.dtype(kind).name.replace("float64", "double")))]
        model, want = merged(tests, lambda value, a: how(value, a, None), kind=kind)
        names = iter([i.name for i in model.graph.input])
        got = mlo.run(model, {name: a for test in tests for a, name in zip(widened(test, kind), names)})
        wrong = []
        for name, w in want.items():
            test, a, loose = tests[int(name.partition("_")[0])], got[name], 1e-2 if np.float16 in (w.dtype, kind) else 0
            same = (a.dtype == w.dtype or a.dtype == kind) and a.shape == w.shape and np.allclose(a.astype(np.float64), w.astype(np.float64), rtol=max(test.rtol, loose), atol=max(test.atol, loose * 0.1, 1e-7), equal_nan=True)
            if not same: wrong.append(test.name)
        if wrong: raise Failed("%d of %d differ: %s" % (len(wrong), len(want), wrong[:5]))
        return "%d results" % len(want)
    return case

WRONG = {"scalar": lambda s: [], "more": lambda s: [2] + s, "longer": lambda s: [d + 1 for d in s], "less": lambda s: s[1:] if len(s) > 1 else s + [3]}
UNCHECKED = "Attention", "PRelu"              # ONNX infers an output from one input, mlo from another, where both contradict each other

def wrong_forms(op):
    """An input of another form, one at a time: mlo refuses that by the node's name, or has the form that ONNX infers, if that does not refuse it."""
    def case(mlo):
        bad, tried = [], 0
        for test in {(len(x.model.graph.input), *sorted(a.name for a in x.model.graph.node[0].attribute)): x for x in single() if operators(x.model) == [op]}.values():
            if tried > 60: break
            values = [array(a) for a in test.data_sets[0][0]]
            for i, (what, change) in ((i, c) for i in range(len(values)) for c in WRONG.items()):
                model = onnx.ModelProto.FromString(without_forms(test.model).SerializeToString())
                model.graph.node[0].name, tried = "wrong", tried + 1
                model.graph.input[i].CopyFrom(h.make_tensor_value_info(model.graph.input[i].name, model.graph.input[i].type.tensor_type.elem_type, change(list(values[i].shape))))
                model.graph.initializer.extend(numpy_helper.from_array(v, x.name) for k, (x, v) in enumerate(zip(model.graph.input, values)) if k != i and v.dtype == np.int64 and v.ndim < 2)
                try: mine = [form(o) for o in mlo.read(model).graph.output]
                except Failed as e:
                    if op not in EXPANDED and "wrong (%s)" % op not in str(e): bad.append("%s, input %d %s: %s" % (test.name, i, what, e))
                    continue
                try: theirs = [form(o) for o in onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True).graph.output]
                except Exception: continue
                if any(d is not None and d < 0 for f in theirs for d in f or []): continue          # Split in more parts than there are: of -1 rows
                if op not in UNCHECKED and any(a is not None and b is not None and (len(a) != len(b) or any(None not in (x, y) and x != y for x, y in zip(a, b))) for a, b in zip(mine, theirs)):
                    bad.append("%s, input %d %s: %s, should be %s" % (test.name, i, what, mine, theirs))
        if bad: raise Failed("%d of %d: %s" % (len(bad), tried, "; ".join(bad[:3])))
        return "%d forms" % tried
    return case

FORMS = {"forms/none": open_forms(no_form, 0, 20), "forms/rank-alone": open_forms(rank_alone, 0, 900), "forms/some": open_forms(some_of_both, 1, 400), "forms/others": open_forms(some_of_both, 2, 400),
         "forms/none-run": all_values(no_form, ("Attention", "GroupNormalization", "GlobalAveragePool", "GlobalMaxPool")), "forms/said-run": all_values(lambda *_: None),
         "forms/double-run": all_values(lambda *_: None, kind=np.float64), "forms/float16-run": all_values(lambda *_: None, ("Tan",), np.float16)}          # (their expansion reads forms)
EXPANDED = {"Attention", "RMSNormalization", "LayerNormalization", "RotaryEmbedding", "GroupNormalization", "InstanceNormalization", "Gelu", "HardSwish", "Mish", "Celu", "GlobalAveragePool", "GlobalMaxPool"}

# ---- folding ---------------------------------------------------------------------------------------------------------------------

def folds(nodes, left, outputs=("y",), **kw):
    def case(mlo):
        model = model_of(nodes, [("x", T.FLOAT, [2, 3])], [(name, T.FLOAT, None) for name in outputs], **kw)
        got = [n.op_type for n in mlo.read(model).graph.node]
        if got != left: raise Failed("leaves %s, should leave %s" % (got, left))
        against_runtime(mlo, model, {"x": np.arange(6, dtype=np.float32).reshape(2, 3)})
    return case

N = h.make_node

def nameless(mlo):
    """An output without a name is one that nobody reads."""
    left = [n.op_type for n in mlo.read(model_of([N("Identity", ["x"], [""]), N("Neg", ["x"], ["y"])], [("x", T.FLOAT, [2, 3])], [("y", T.FLOAT, None)])).graph.node]
    if left != ["Neg"]: raise Failed("leaves %s" % left)

FOLDING = {
    "fold-identity-chain": folds([N("Identity", ["x"], ["a"]), N("Identity", ["a"], ["b"]), N("Neg", ["b"], ["c"]), N("Identity", ["c"], ["y"])], ["Neg"]),
    "fold-identity-input-to-output": folds([N("Identity", ["x"], ["y"])], ["Identity"]),
    "fold-dropout": folds([N("Neg", ["x"], ["a"]), N("Dropout", ["a"], ["y"])], ["Neg"]),
    "fold-constants": folds([N("Add", ["w", "w"], ["a"]), N("Mul", ["x", "a"], ["y"])], ["Mul"], init=[("w", np.float32([1, 2, 3]))]),
    "fold-dead-node": folds([N("Exp", ["x"], ["dead"]), N("Neg", ["x"], ["y"])], ["Neg"]),
    "fold-size": folds([N("Size", ["x"], ["n"]), N("Cast", ["n"], ["f"], to=T.FLOAT), N("Div", ["x", "f"], ["y"])], ["Div"]),
    "fold-keeps-quantization": folds([N("DequantizeLinear", ["w", "s"], ["d"]), N("Mul", ["x", "d"], ["y"])], ["DequantizeLinear", "Mul"], init=[("w", np.int8([1, 2, 3])), ("s", np.float32(0.5))]),
    "fold-nameless": nameless,
    **{"fold-product-%s" % what: folds([*nodes, N("Mul", ["x", "a"], ["y"])], ["Mul"], init=[("v", np.float32([1, 2, 3])), ("w", np.arange(9, dtype=np.float32).reshape(3, 3)), ("p", np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)), ("k", np.ones((1, 1, 1, 1), np.float32)), ("u", np.uint8([[1, 2], [3, 4]]))])
       for what, nodes in {"of matrices": [N("MatMul", ["w", "w"], ["b"]), N("ReduceSum", ["b"], ["a"], keepdims=0)], "of a vector and a matrix": [N("MatMul", ["v", "w"], ["a"])], "of vectors": [N("MatMul", ["v", "v"], ["a"])], "and sum": [N("Gemm", ["w", "w", "v"], ["b"], transB=1), N("ReduceMax", ["b"], ["a"], keepdims=0)],
                           "of windows": [N("Conv", ["p", "k"], ["b"]), N("ReduceMax", ["b"], ["a"], keepdims=0)], "of integers": [N("MatMulInteger", ["u", "u"], ["b"]), N("Cast", ["b"], ["c"], to=T.FLOAT), N("ReduceMin", ["c"], ["a"], keepdims=0)], "whose second result is unwanted": [N("MaxPool", ["p"], ["b", ""], kernel_shape=[1, 3]), N("ReduceMax", ["b"], ["a"], keepdims=0)]}.items()},
    "fold-product-of-none": folds([N("MatMul", ["w", "none"], ["a"]), N("Concat", ["x", "a"], ["y"], axis=1)], ["Concat"], init=[("w", np.ones((2, 3), np.float32)), ("none", np.zeros((3, 0), np.float32))]),
    **{"fold-scatter-%s" % what: folds([N(op, ["x", "i", "x"], ["a"], **more), N("Neg", ["a"], ["y"])], ["Neg"] if away else [op, "Neg"], init=[("i", i)]) for what, away, op, i, more in (
        ("rows", True, "ScatterElements", np.int64([[0] * 3, [1] * 3]), {}), ("columns", True, "ScatterElements", np.int64([[0, 1, 2]] * 2), {"axis": -1}), ("rows, none said", True, "ScatterElements", np.int64([[0] * 3, [1] * 3]), {"reduction": "none"}), ("rows that change places", False, "ScatterElements", np.int64([[1] * 3, [0] * 3]), {}),
        ("rows of which one is twice", False, "ScatterElements", np.int64([[0] * 3, [0] * 3]), {}), ("rows that add up", False, "ScatterElements", np.int64([[0] * 3, [1] * 3]), {"reduction": "add"}), ("rows by 32 bits", False, "ScatterElements", np.int32([[0] * 3, [1] * 3]), {}),
        ("by numbers", True, "ScatterND", np.int64([[0], [1]]), {}), ("by numbers, none said", True, "ScatterND", np.int64([[0], [1]]), {"reduction": "none"}), ("by numbers that change places", False, "ScatterND", np.int64([[1], [0]]), {}), ("by numbers, added", False, "ScatterND", np.int64([[0], [1]]), {"reduction": "add"}))},
    "fold-scatter-of-others": folds([N("ScatterElements", ["x", "i", "w"], ["a"]), N("Neg", ["a"], ["y"])], ["ScatterElements", "Neg"], init=[("i", np.int64([[0] * 3, [1] * 3])), ("w", np.ones((2, 3), np.float32))]),
    "fold-scatter-one-row": folds([N("Slice", ["x", "zero", "one"], ["r"]), N("ScatterElements", ["r", "i", "r"], ["y"])], ["Slice"], init=[("i", np.int64([[0] * 3])), ("zero", np.int64([0])), ("one", np.int64([1]))]),
    "fold-dropout-not-training": folds([N("Dropout", ["x", "r", "t"], ["a"]), N("Neg", ["a"], ["y"])], ["Neg"], init=[("r", np.float32(0.5)), ("t", np.array(False))]),
    "fold-dropout-mask-unread": folds([N("Dropout", ["x"], ["a", "m"]), N("Neg", ["a"], ["y"])], ["Neg"]),
    "fold-dropout-mask": folds([N("Dropout", ["x"], ["a", "m"]), N("Neg", ["a"], ["b"]), N("Where", ["m", "b", "x"], ["y"])], ["Dropout", "Neg", "Where"]),
    "fold-identity-of-an-output": folds([N("Neg", ["x"], ["y"]), N("Identity", ["y"], ["z"])], ["Neg", "Identity"], outputs=("y", "z")),
    "fold-identity-of-a-constant": folds([N("Identity", ["w"], ["y"]), N("Neg", ["x"], ["z"])], ["Identity", "Neg"], outputs=("y", "z"), init=[("w", np.float32([1, 2]))]),
    "fold-output": folds([N("Add", ["w", "w"], ["a"]), N("Mul", ["a", "w"], ["y"])], ["Mul"], init=[("w", np.float32([1, 2, 3]))]),
    "fold-big-stays": folds([N("Transpose", ["w"], ["t"]), N("MatMul", ["x", "t"], ["y"])], ["Transpose", "MatMul"], init=[("w", np.ones((100000, 3), np.float32))]),
}

def cases():
    """(name, function of mlo)"""
    for name in ENCODERS:
        yield name, lambda mlo, name=name: whole_model(mlo, t.model(name), LIMITS.get(name, 1e-5), *(["--dim", "seq=32"] if "dynamic" in name else []))
    yield "dynamic-is-static", dynamic_is_static
    yield "scan", scan_case()
    yield "scan-reverse", scan_case(scan_input_directions=[1], scan_output_directions=[1])
    yield "scan-axes", scan_case(scan_input_axes=[1], scan_output_axes=[1])
    yield "scan-of-4-bits", scan_of_4_bits
    yield "long-tensors", long_tensors
    yield "constants-of-all-types", constants_of_all_types
    yield "scan-axis-beyond", stack_refused(3, 1, "axis 3 of rank 2")
    yield "scan-rank-beyond", stack_refused(0, 8, "rank 8")
    yield from numbers()
    yield "softmax-faint", faint_softmax
    yield "one-for-a-list", one_for_a_list
    yield "powers-of-integers", powers_of_integers
    yield "sum-of-no-first", sum_of_no_first
    yield "too-few-inputs", too_few_inputs
    yield "if-true", if_case(True)
    yield "if-false", if_case(False)
    yield "loop", loop_case
    yield "loop-of-many-rounds", lambda mlo: loop_case(mlo, 12.2)
    yield "zeros-of-no-value", zeros_of_no_value
    for opset in sorted({version for _, (version, *_) in corners.legal()}): yield "corners/opset %d" % opset, legal_corners(opset)
    for name, case in corners.refused(): yield "refused/%s" % name, refused_corner(*case)
    yield from INFERENCE.items()
    yield from FOLDING.items()
    yield "every-operator-has-a-case", every_operator_has_a_case
    yield from FORMS.items()
    for op in sorted({op for test in single() for op in operators(test.model)}): yield "wrong-forms/%s" % op, wrong_forms(op)
    for name, model in form_cases(): yield "form/%s" % name, lambda mlo, model=model: check_form_case(mlo, model)
    for op, other in other_cases(): yield "other/%s" % op, lambda mlo, op=op, other=other: check_other_case(mlo, op, *other)
    for name, *case in node_cases(): yield name, lambda mlo, case=case: check_node_case(mlo, *case)

def check(mlo, name, case):
    def one():
        try: note = case(mlo)
        except Failed as e:
            expected = REFUSED.get(name.split("/")[0])
            return t.skip(name, e) if expected and expected in str(e) else t.case(name, e)
        t.case(name + ("  (%s)" % note if note else ""))
    one.__name__ = name
    return one

t.main(*[check(Mlo(), *case) for case in cases()], floor=966)
