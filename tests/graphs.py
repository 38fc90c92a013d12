# SPDX-License-Identifier: MIT
"""graphs: what test scripts ask of models: their parts, inputs for them, what ONNX Runtime makes of those, and how far two results are apart."""
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ort.set_default_logger_severity(4)


def meta(n): return {p.key: p.value for p in n.metadata_props}
def attribute(n, name): return next((a for a in n.attribute if a.name == name), None)
def scans(m): return [n for n in m.graph.node if n.op_type == "Scan"]
def body(scan): return attribute(scan, "body").g
def iterations(scan): return int(meta(scan)["mlo.iterations"])
def shapes(m): return [(iterations(s), len(body(s).node)) for s in scans(m)]         # of each loop: iterations, nodes of the body


class Written:
    """A model of floats, written node by node: of inputs of a node that are no names constants are made."""
    def __init__(self): self.nodes, self.held = [], []

    def constant(self, a):
        self.held.append(numpy_helper.from_array(np.asarray(a, np.float32), "c%d" % len(self.held)))
        return self.held[-1].name

    def add(self, op, *inputs, **given):
        """The name of what this node makes."""
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        self.nodes.append(helper.make_node(op, names, ["v%d" % len(self.nodes)], name="n%d" % len(self.nodes), **given))
        return self.nodes[-1].output[0]

    def model(self, shape, last, opset=18):
        """From x to `last`, both of this shape."""
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", last))
        return helper.make_model(helper.make_graph(self.nodes, "written", [x], [y], self.held), opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def tap(model, loop, names):
    """Makes values of the loop's body outputs of the model, stacked over iterations: tap.NAME. One that is an input or output of the body already gets a name
    of its own: of a body that returns a name twice, ONNX Runtime leaves parts of one unwritten."""
    b = body(loop)
    for n in names:
        if n in {i.name for i in b.input} | {o.name for o in b.output}:
            b.node.append(helper.make_node("Identity", [n], [n + ".tapped"]))
            b.output.append(helper.make_empty_tensor_value_info(n + ".tapped"))
        else: b.output.append(helper.make_empty_tensor_value_info(n))
        loop.output.append("tap." + n)
        model.graph.output.append(helper.make_empty_tensor_value_info("tap." + n))


def feeds(m, seed=0, ints=(0, 100)):
    """Random inputs; attention masks (a_1 is T5's) keep the first two thirds; open dimensions are 16."""
    r, out, held = np.random.default_rng(seed), {}, {i.name for i in m.graph.initializer}
    for i in m.graph.input:
        if i.name in held: continue
        shape = [d.dim_value if d.HasField("dim_value") else 16 for d in i.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        whole = np.issubdtype(dtype, np.integer)
        x = r.integers(*ints, shape) if whole else r.standard_normal(shape)
        if "mask" in i.name or (i.name == "a_1" and whole): x = np.ones(shape); x[..., shape[-1] * 2 // 3:] = 0
        out[i.name] = x.astype(dtype)
    return out


def core_inputs(path, n, rng):
    """Inputs of a core: n random ones, of two spreads; then all minimum, all maximum, zeros, one hot; then less common extremes. A mask goes through its own beside them."""
    ins, most = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in onnx.load(path).graph.input}, np.iinfo(np.int16)
    x_name = next(k for k in ins if k != "mlo_mask")
    shape, tokens = ins[x_name], ins[x_name][-2]
    hot = lambda at, value: np.where(np.arange(np.prod(shape)) == at % np.prod(shape), value, 0).reshape(shape)
    xs = [rng.integers(most.min, most.max + 1, shape) if k % 2 else np.clip(rng.normal(0, 8000, shape), most.min, most.max) for k in range(n)]
    xs += [np.full(shape, most.min), np.full(shape, most.max), np.zeros(shape), hot(0, most.max), hot(-1, most.min), np.full(shape, -1)]
    xs.append(np.where(np.arange(np.prod(shape)).reshape(shape) % 2, most.max, most.min))
    feeds = [{x_name: x.astype(np.int16)} for x in xs]
    if "mlo_mask" in ins:
        one = lambda at: np.arange(tokens) == at
        masks = [np.zeros(tokens, bool), np.ones(tokens, bool), one(0), one(tokens - 1), one(tokens // 2), np.arange(tokens) < 5]
        for k, f in enumerate(feeds): f["mlo_mask"] = (masks[k] if k < len(masks) else rng.random(tokens) < rng.random())[None]
    return feeds


def session(m, level="DISABLE_ALL", save=None):
    """ONNX Runtime on a model, a file or bytes, as the model stands unless a level says otherwise."""
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, "ORT_" + level)
    options.intra_op_num_threads = 1
    if save: options.optimized_model_filepath = save
    return ort.InferenceSession(m if isinstance(m, (str, bytes)) else m.SerializeToString(), options, providers=["CPUExecutionProvider"])


def execute(m, f): return session(m).run(None, f)


def difference(right, got):
    """max|a-b| / max|a| of the worst output, over what is finite in a; infinite where form or type differ, or only one of them is no number."""
    worst = 0.0
    for a, b in zip(right, got):
        if a.shape != b.shape or a.dtype != b.dtype: return float("inf")
        if not a.size: continue
        a, b = a.astype(float), b.astype(float)
        finite = np.isfinite(a)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.all(np.isfinite(b[finite])): return float("inf")
        if finite.any(): worst = max(worst, float(np.max(np.abs(a[finite] - b[finite])) / max(np.max(np.abs(a[finite])), 1e-30)))
    return worst
