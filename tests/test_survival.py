#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What people ran before mlo: simplifiers, converters, ONNX Runtime's optimizers and quantizers, functions. Every variant rolls as the plain
export does, is proved, and equals itself in ONNX Runtime; every fused operator, alone, is expanded to what ONNX Runtime makes of it.

Usage: python tests/test_survival.py path/to/mlo [CHECK ...]     (matrix, operators, near, kept, expanded, flattened, lifted, functions, casts)
"""
import copy, logging, os, re, warnings
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
import harness as t
from graphs import difference, execute, feeds, session

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
ort.set_default_logger_severity(4)
MS = "com.microsoft"


# ---- running ---------------------------------------------------------------------------------------------------------------------

def evaluate(path, f):
    """What `mlo run` makes of a model, in the order of its outputs; None when it cannot evaluate an operator."""
    np.savez(t.at("in.npz"), **f)
    p = t.call("run", path, "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"), text=True)
    if p.returncode == 4: return None
    if p.returncode: raise RuntimeError(p.stderr.strip()[-300:])
    with np.load(t.at("out.npz")) as z: return [z[o.name] for o in onnx.load(path).graph.output if o.name in z]


def fused(m): return sorted({n.op_type for n in m.graph.node if n.domain == MS or n.op_type == "SimplifiedLayerNormalization"})


# ---- the tools -------------------------------------------------------------------------------------------------------------------
# Each takes a path and returns a model.

def simplify(path):
    import onnxsim
    return onnxsim.simplify(onnx.load(path))[0]


def slim(path):
    import onnxslim
    return onnxslim.slim(onnx.load(path))


def convert(version): return lambda path: onnx.version_converter.convert_version(onnx.load(path), version)


def optimize(level):
    def run(path):
        session(path, "ENABLE_" + level, t.at("optimized.onnx"))
        return onnx.load(t.at("optimized.onnx"))
    return run


def fuse(kind, half=False):
    def run(path):
        from onnxruntime.transformers import optimizer
        o = optimizer.optimize_model(path, model_type=kind, num_heads=4, hidden_size=64, opt_level=0, use_gpu=False)
        if half: o.convert_float_to_float16()
        o.save_model_to_file(t.at("fused.onnx"))                            # which imports the domain
        return onnx.load(t.at("fused.onnx"))
    return run


def halve(path):
    from onnxruntime.transformers import float16
    return float16.convert_float_to_float16(onnx.load(path), keep_io_types=True)


def dynamic(path):
    from onnxruntime.quantization import quantize_dynamic
    quantize_dynamic(path, t.at("dynamic.onnx"), reduce_range=True)        # 7 bits: see integers()
    return onnx.load(t.at("dynamic.onnx"))


def static(form, **options):
    def run(path):
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
        class Reader(CalibrationDataReader):
            def __init__(self): self.rows = iter([feeds(onnx.load(path), 1), feeds(onnx.load(path), 2)])
            def get_next(self): return next(self.rows, None)
        quantize_static(path, t.at("static.onnx"), Reader(), quant_format=getattr(QuantFormat, form), **options)
        return onnx.load(t.at("static.onnx"))
    return run


def then(*tools):
    def run(path):
        for i, tool in enumerate(tools): onnx.save(tool(path), path := t.at("step%d.onnx" % i))
        return onnx.load(path)
    return run


LAYERS = {"bert-12": [12], "bert-12-torchscript": [12], "llama-tiny-opset23": [4], "gpt2-tiny": [4], "vit-tiny": [4], "whisper-tiny": [3, 3], "t5-tiny": [3, 4]}     # as export.py made them
ALL = ("bert-12", "llama-tiny-opset23")
EXACT, HALF, STEPS, QUANTIZED = "exact", "half", "steps", "quantized"
TOOLS = [   # name, tool, models, how its numbers compare, operators that may stay
    ("onnxsim", simplify, ALL + ("bert-12-torchscript", "whisper-tiny"), EXACT, ()),
    ("onnxslim", slim, ALL + ("gpt2-tiny",), EXACT, ()),
    ("opset 17", convert(17), ("bert-12", "vit-tiny"), EXACT, ()),
    ("opset 21", convert(21), ("bert-12", "bert-12-torchscript"), EXACT, ()),
    ("opset 24", convert(24), ALL, EXACT, ()),
    ("basic", optimize("BASIC"), ALL + ("vit-tiny",), EXACT, ()),
    ("extended", optimize("EXTENDED"), ALL + ("bert-12-torchscript", "gpt2-tiny", "vit-tiny", "whisper-tiny"), EXACT, ()),
    ("all", optimize("ALL"), ALL + ("vit-tiny",), EXACT, ("Conv", "ReorderInput", "ReorderOutput")),        # nchwc, where the machine has it
    ("transformers bert", fuse("bert"), ("bert-12", "bert-12-torchscript"), EXACT, ()),
    ("transformers gpt2", fuse("gpt2"), ("gpt2-tiny", "llama-tiny-opset23"), EXACT, ()),
    ("transformers vit", fuse("vit"), ("vit-tiny",), EXACT, ()),
    ("transformers bart", fuse("bart"), ("whisper-tiny",), EXACT, ()),
    ("transformers t5", fuse("t5"), ("t5-tiny",), EXACT, ()),
    ("float16", halve, ALL, HALF, ()),
    ("transformers float16", fuse("bert", True), ("bert-12",), HALF, ()),
    ("quantize_dynamic", dynamic, ALL, STEPS, ()),
    ("quantize_static", static("QDQ"), ALL, QUANTIZED, ()),
    ("quantize_static per channel", static("QDQ", per_channel=True), ("llama-tiny-opset23",), QUANTIZED, ()),
    ("quantize_static operators", static("QOperator"), ALL, QUANTIZED, ("QGemm", "QLinearAdd", "QLinearMul", "QLinearSoftmax", "QLinearSigmoid", "QLinearConcat")),
    ("onnxsim, extended", then(simplify, optimize("EXTENDED")), ALL + ("bert-12-torchscript",), EXACT, ()),
    ("quantize_dynamic, extended", then(dynamic, optimize("EXTENDED")), ALL, STEPS, ()),
]


def survives(path, source, layers, how, may_stay):
    """'' or why the variant at `path` of the plain export `source` is not rolled as it should be."""
    m = onnx.load(path)
    t.good("roll", path, "--onnx", "-o", t.at("rolled.onnx"))
    rolled = onnx.load(t.at("rolled.onnx"))
    loops = sorted(int({p.key: p.value for p in n.metadata_props}["mlo.iterations"]) for n in rolled.graph.node if n.op_type == "Scan")
    if loops != layers: return "%s iterations, the plain export has %s" % (loops, layers)
    bodies = [a.g for n in rolled.graph.node if n.op_type == "Scan" for a in n.attribute if a.name == "body"]
    left = {n.op_type for g in [rolled.graph] + bodies for n in g.node if n.domain.startswith(MS) or n.op_type == "SimplifiedLayerNormalization"}
    if left - set(may_stay): return "not expanded: %s" % sorted(left)
    p = t.call("check", t.at("rolled.onnx"), "--against", path, text=True)
    if p.returncode: return "check: " + p.stderr.strip()
    f = feeds(m)
    right, got = execute(path, f), execute(t.at("rolled.onnx"), f)
    if how == HALF:       # ONNX Runtime makes 16-bit values through casts, and not the same ones inside of a loop: the truth is the plain export
        truth = execute(source, {k: v.astype(np.float32) if v.dtype == np.float16 else v for k, v in f.items()})
        own = [difference(truth, [x.astype(np.float32) for x in y]) for y in (right, got)]
        return "" if own[1] < 2 * own[0] + 1e-3 else "off by %.3g from the plain export, the variant by %.3g" % (own[1], own[0])
    d = difference(right, got)
    if d >= 1e-4: return "differs by %.3g" % d
    if how == QUANTIZED: return ""                                          # a product that rounds the other way is a step, and steps grow through layers
    mine = evaluate(path, f)
    if mine is None: return "" if left else "mlo run cannot evaluate it"
    d = difference(right, mine)
    return "" if d < (1e-4 if how == EXACT else 5e-2) else "mlo run differs by %.3g" % d


def check_matrix():
    for name, tool, models, how, may_stay in TOOLS:
        for model in models:
            try: m = tool(t.model(model))
            except ModuleNotFoundError as e: t.absent("%s of %s" % (name, model), "%s not installed" % e.name); continue
            except Exception as e: t.case("%s of %s" % (name, model), "the tool fails: %s: %s" % (type(e).__name__, str(e)[:120])); continue
            onnx.save(m, t.at("variant.onnx"))
            t.case("%s of %s" % (name, model), survives(t.at("variant.onnx"), t.model(model), LAYERS[model], how, may_stay))


# ---- fused operators, one at a time --------------------------------------------------------------------------------------------------

def one(op, inputs, outputs=("y",), opset=18, domain=MS, constant=(), types=None, free=False, **attributes):
    """A model of one node. inputs: arrays, None for an absent one; constant: which are initializers; free: sizes have names."""
    names = ["" if a is None else "x%d" % i for i, a in enumerate(inputs)]
    node = helper.make_node(op, names, list(outputs), name="the_node", domain=domain, **attributes)
    values = [helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(a.dtype), ["d%d_%d" % (i, k) for k in range(a.ndim)] if free else a.shape)
              for i, a in enumerate(inputs) if a is not None and i not in constant]
    held = [numpy_helper.from_array(a, names[i]) for i, a in enumerate(inputs) if a is not None and i in constant]
    float_type = helper.np_dtype_to_tensor_dtype(next(a.dtype for a in inputs if a is not None and a.dtype in (np.float32, np.float16)))
    out = [helper.make_tensor_value_info(o, (types or {}).get(o, float_type), None) for o in outputs if o]
    return helper.make_model(helper.make_graph([node], "g", values, out, held), opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)], ir_version=8), \
        {names[i]: a for i, a in enumerate(inputs) if a is not None and i not in constant}


def expands(op, inputs, *rest, **options):
    """'' or why the expansion of a node is not what ONNX Runtime makes of the node."""
    m, f = one(op, inputs, *rest, **options)
    onnx.save(m, t.at("one.onnx"))
    right = execute(t.at("one.onnx"), f)
    p = t.call("read", t.at("one.onnx"), "--onnx", "-o", t.at("plain.onnx"), text=True)
    if p.returncode: return p.stderr.strip()
    plain = onnx.load(t.at("plain.onnx"))
    if fused(plain): return "stays: " + p.stderr.strip()
    onnx.checker.check_model(plain, full_check=True)
    first, kept = m.graph.node[0].output[0], {o.name for o in m.graph.output}
    odd = [o for n in plain.graph.node for o in n.output if not o.startswith(first) and o not in kept]
    if odd: return "values that are not called after %s: %s" % (first, odd[:3])
    half = any(a is not None and a.dtype == np.float16 for a in inputs)
    d = difference(right, execute(t.at("plain.onnx"), f))
    if d >= (5e-3 if half else 1e-5): return "differs by %.3g" % d         # 16 bits round after every operator
    mine = evaluate(t.at("one.onnx"), f)
    d = difference(right, mine) if mine is not None else 1
    return "" if d < (5e-3 if half else 1e-4) else "mlo run differs by %.3g" % d


class Draw:
    """Random shapes, attributes and arrays."""
    def __init__(self, seed): self.r = np.random.default_rng(seed)
    def size(self, low=1, high=7): return int(self.r.integers(low, high))
    def floats(self, *shape): return self.r.standard_normal(shape).astype(np.float32)
    def scale(self, *shape): return np.asarray(self.r.random(shape) * 0.1 + 0.01, np.float32)
    def bits(self, *shape): return (self.r.random(shape) < 0.6).astype(np.int32)
    def ints(self, dtype, *shape): i = np.iinfo(dtype); return np.asarray(self.r.integers(max(i.min, -128), min(i.max, 255), shape), dtype)
    def flip(self): return bool(self.r.integers(2))
    def maybe(self, x): return x if self.flip() else None
    def choose(self, *list): return list[int(self.r.integers(len(list)))]
    def shape(self, last): return tuple(self.size() for _ in range(self.size(1, 4))) + (last,)


def gelus(d):
    n, op = d.size(), d.choose("Gelu", "BiasGelu", "FastGelu", "QuickGelu")
    x = d.floats(*d.shape(n)) * 2
    if op == "BiasGelu": return op, [x, d.floats(n)], {}
    if op == "FastGelu": return op, [x] + ([d.floats(n)] if d.flip() else []), {}
    return op, [x], {"alpha": float(d.r.random() * 2)} if op == "QuickGelu" and d.flip() else {}


def norms(d):
    op, n = d.choose("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization"), d.size(2, 9)
    b, s = d.size(), d.size()
    if op.startswith("Simp"): return op, [d.floats(b, s, n), d.floats(n)], {"domain": "", "epsilon": d.choose(1e-5, 0.1)}
    skip = d.choose((b, s, n), (1, s, n), (s, n)) if op == "SkipLayerNormalization" else (b, s, n)
    rest = [d.floats(n), d.maybe(d.floats(n)), d.maybe(d.floats(n))] if op == "SkipLayerNormalization" else [d.floats(n), d.maybe(d.floats(n))]
    return op, [d.floats(b, s, n), d.floats(*skip)] + rest, {"outputs": d.choose(("y",), ("y", "", "", "sum")), "epsilon": d.choose(1e-12, 1e-5, 0.1)}


def embeddings(d):
    b, s, n = d.size(), d.size(), d.size(2, 9)
    ids, segments = d.r.integers(0, 9, (b, s)).astype(np.int32), d.maybe(d.r.integers(0, 2, (b, s)).astype(np.int32))
    inputs = [ids, segments, d.floats(9, n), d.floats(8, n), None if segments is None else d.floats(2, n), d.floats(n), d.floats(n), d.maybe(d.bits(b, s)),
              d.maybe(d.r.integers(0, 8, (b, s)).astype(np.int32))]
    return "EmbedLayerNormalization", inputs, {"outputs": d.choose(("y", "mask"), ("y", "mask", "sum")), "types": {"mask": T.INT32}, "mask_index_type": 1, "epsilon": d.choose(1e-12, 0.1)}


def products(d):
    m, k, n, lead = d.size(), d.size(), d.size(), [d.size() for _ in range(d.size(0, 3))]
    def stored(shape, batch, swap):           # what FusedMatMul turns into `shape`
        shape = list(shape)
        if swap: shape[-1], shape[-2] = shape[-2], shape[-1]
        return [shape[-2]] + shape[:-2] + [shape[-1]] if batch else shape
    flags = {f: d.size(0, 2) for f in ("transA", "transB")}
    flags.update((f, d.size(0, 2)) for f in ("transBatchA", "transBatchB") if lead)
    return "FusedMatMul", [d.floats(*stored(lead + [m, k], flags.get("transBatchA"), flags["transA"])), d.floats(*stored(lead + [k, n], flags.get("transBatchB"), flags["transB"]))], \
        {"alpha": d.choose(1.0, 0.37), **flags}


def gemms(d):
    m, k, n, ta, tb = d.size(), d.size(), d.size(), d.size(0, 2), d.size(0, 2)
    inputs = [d.floats(*((k, m) if ta else (m, k))), d.floats(*((n, k) if tb else (k, n))), d.maybe(d.floats(*d.choose((n,), (1, n), (m, n))))]
    attributes = {"activation": d.choose("Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"), "activation_alpha": 0.3, "activation_beta": 0.4}
    return "FusedGemm", inputs, {"transA": ta, "transB": tb, "alpha": d.choose(1.0, 0.5), "beta": d.choose(1.0, 2.0), **attributes}


def convolutions(d):
    c, n, size = d.size(), d.size(), d.size(4, 8)
    act = d.choose(("Relu", []), ("LeakyRelu", [0.2]), ("HardSigmoid", [0.3, 0.4]), ("Tanh", []))
    inputs = [d.floats(1, c, size, size), d.floats(n, c, 3, 3), d.floats(n), d.maybe(d.floats(1, n, size, size))]
    return "FusedConv", inputs, {"activation": act[0], "pads": [1] * 4, **({"activation_params": act[1]} if act[1] else {})}


def integers(d):
    m, k, n = d.size(), d.size(), d.size()
    each = d.flip()
    a, b = d.choose((np.uint8, np.int8), (np.uint8, np.uint8))
    # on processors without VNNI ONNX Runtime adds pairs of uint8 x int8 in 16 bits, and saturates: weights of 7 bits
    weights, scale, zero, bias = d.ints(b, k, n) // (2 if b == np.int8 else 1), d.scale(*[n][:each]), d.maybe(d.ints(b, *[n][:each])), d.maybe(d.floats(n))
    if d.flip(): return "DynamicQuantizeMatMul", [d.floats(2, m, k), weights, scale, zero, bias], {"constant": (1,)}
    return "MatMulIntegerToFloat", [d.ints(a, 2, m, k), weights, d.scale(), scale, d.maybe(d.ints(a)), zero, bias], {"constant": (1,)}


def few_bits(d):
    """Weights of 2, 4 and 8 bits in blocks; K may end within one."""
    bits, block, k, n = d.choose(2, 4, 4, 8), d.choose(16, 32), d.size(1, 80), d.size()
    blocks, type_ = -(-k // block), d.choose(np.float32, np.float32, np.float16)
    flat, zeros = d.flip(), d.choose(None, d.ints(np.uint8, n, -(-blocks * bits // 8)), d.floats(n, blocks).astype(type_) if bits == 4 else None)
    weights, scale, bias = d.ints(np.uint8, n, blocks, block * bits // 8), d.scale(n, blocks).astype(type_), d.maybe(d.floats(n).astype(type_))
    if flat: scale, zeros = scale.reshape(-1), zeros if zeros is None else zeros.reshape(-1)
    return "MatMulNBits", [d.floats(*d.shape(k)).astype(type_), weights, scale, zeros, None, bias], {"K": k, "N": n, "bits": bits, "block_size": block, "constant": (1, 2, 3)}


def block_tables(d):
    bits, block, rows = d.choose(4, 8), d.choose(16, 32), d.size(2, 9)
    k = block * d.size(1, 4)
    inputs = [d.ints(np.uint8, rows, k * bits // 8), d.r.integers(0, rows, [d.size() for _ in range(d.size(1, 4))]), d.scale(rows, k // block), d.maybe(d.ints(np.uint8, rows, -(-(k // block) * bits // 8)))]
    return "GatherBlockQuantized", inputs, {"bits": bits, "block_size": block, "quantize_axis": d.choose(1, -1), "gather_axis": 0, "constant": (0, 2, 3)}


def attentions(d):
    b, s, heads, c, v, past = d.size(), d.size(), d.size(1, 4), d.size(1, 5), d.size(1, 5), d.choose(0, 0, d.size())
    if past or d.flip(): v = c
    n, total = heads * c, s + past
    inputs = [d.floats(b, s, 6), d.floats(6, 2 * n + heads * v), d.floats(2 * n + heads * v)]
    ends = d.r.integers(0, total + 1, b).astype(np.int32)
    mask = d.choose(None, d.bits(b, total), d.bits(b, s, total), ends, np.concatenate([ends, d.r.integers(0, total + 1, b).astype(np.int32)]))
    inputs += [mask, d.floats(2, b, heads, past, c) if past else None, None if past else d.maybe(d.floats(d.choose(1, b), d.choose(1, heads), s, total))]
    attributes = {"num_heads": heads, "unidirectional": d.size(0, 2), "outputs": ("y", "present") if past else ("y",), "constant": d.choose((), (1, 2))}
    if v != c or d.flip(): attributes["qkv_hidden_sizes"] = [n, n, heads * v]
    if d.flip(): attributes["scale"] = 0.6
    if d.flip(): attributes["mask_filter_value"] = -40.0
    return "Attention", inputs, attributes


def multi_heads(d):
    b, s, heads, c, past = d.size(), d.size(), d.size(1, 4), d.size(1, 5), d.choose(0, 0, d.size())
    n, kept = heads * c, not past and d.flip()
    keys = s if past else d.size()
    v = c if past or kept else d.size(1, 5)
    total = keys + past
    inputs = [d.floats(b, s, n)] + ([d.floats(b, heads, keys, c) for _ in range(2)] if kept else [d.floats(b, keys, n), d.floats(b, keys, heads * v)])
    inputs += [d.maybe(d.floats(2 * n + heads * v)), d.choose(None, d.bits(b, total), d.bits(b, s, total)), d.maybe(d.floats(d.choose(1, b), d.choose(1, heads), s, total))]
    inputs += [d.floats(b, heads, past, c) for _ in range(2)] if past else []
    attributes = {"num_heads": heads, "outputs": ("y", "present_k", "present_v") if past else ("y",), "unidirectional": int(keys == s and d.flip())}
    if d.flip(): attributes["scale"] = 0.6
    return "MultiHeadAttention", inputs, attributes


def rotations(d):
    b, s, heads, turned = d.size(), d.size(), d.size(1, 4), 8 * d.size(1, 3)             # ONNX Runtime's kernels want pairs in eights
    partial = d.flip()
    c = turned + (8 if partial else 0)
    flat, places = d.flip(), d.flip()
    at = d.r.integers(0, 9, (b, s)) if places else d.r.integers(0, 3, (1,))
    attributes = {"interleaved": d.size(0, 2), "constant": (2, 3)}
    if partial: attributes["rotary_embedding_dim"] = turned
    if partial or (flat and d.flip()): attributes["num_heads"] = heads
    return "RotaryEmbedding", [d.floats(b, s, heads * c) if flat else d.floats(b, heads, s, c), at.astype(np.int64), d.floats(9, turned // 2), d.floats(9, turned // 2)], attributes


def group_queries(d):
    """A prompt: nothing is past, and every key counts."""
    b, s, kept, times, half = d.size(), d.size(), d.size(1, 3), d.size(1, 4), 8 * d.size(1, 3)
    heads, turns, packed = kept * times, d.flip(), d.flip()
    c = 2 * half
    n, nk = heads * c, kept * c
    inputs = [d.floats(b, s, n + 2 * nk), None, None] if packed else [d.floats(b, s, n), d.floats(b, s, nk), d.floats(b, s, nk)]
    inputs += [None, None, np.full(b, s - 1, np.int32), np.array(s, np.int32)]
    if turns: inputs += [d.floats(s + 3, half), d.floats(s + 3, half)]
    attributes = {"num_heads": heads, "kv_num_heads": kept, "do_rotary": int(turns), "constant": (7, 8) if turns else ()}
    attributes["outputs"] = ("y", "present_k", "present_v")
    if turns: attributes["rotary_interleaved"] = d.size(0, 2)
    if d.flip(): attributes["scale"] = 0.4
    if d.flip(): attributes["softcap"] = 1.5
    if d.flip(): attributes["local_window_size"] = d.size(1, 4)
    return "GroupQueryAttention", inputs, attributes


# ---- near misses: a fused operator, one thing changed -------------------------------------------------------------------------------------

FAMILIES = {f.__name__: f for f in (gelus, norms, embeddings, products, gemms, convolutions, integers, few_bits, block_tables, attentions, multi_heads, rotations, group_queries)}
SAID = {"axis": (0, 1, -1), "num_heads": (0, 3), "kv_num_heads": (0, 3), "scale": (0.5, 0.0), "qk_output": (1,), "is_packed_batching": (1,), "mask_index_type": (0,), "smooth_softmax": (1,),
        "local_window_size": (0, -1, 2), "do_rotary": (1,), "unidirectional": (1,), "rotary_embedding_dim": (2, 4, 16), "softcap": (2.0,), "activation": ("", "Elu", "Relu"), "transA": (1,),
        "activation_alpha": (0.5,), "bits": (1, 3, 8), "block_size": (0, 24, 64), "K": (0, 7), "N": (0, 1 << 60), "quantize_axis": (0,), "gather_axis": (1,), "qkv_hidden_sizes": ([8, 8], [0, 8, 8], [8, 4, 8], [8, 8, 0], [8, 8, 8]), "epsilon": (0.0, 0.5), "other": (1,)}


def changes(op, inputs, options):
    """(what is changed, the operator, its inputs, its options) of each near miss."""
    with_ = lambda **more: {**options, **more}
    for name, values in SAID.items():
        for v in values:
            if options.get(name) != v: yield "%s is %s" % (name, v), op, inputs, with_(**{name: v})
        if name in options: yield "no " + name, op, inputs, {k: v for k, v in options.items() if k != name}
    for i, x in enumerate(inputs):
        put = lambda v, i=i: inputs[:i] + [v] + inputs[i + 1:]
        if x is None: continue
        yield "no input %d" % i, op, put(None), options
        yield "input %d with an axis more" % i, op, put(x[None]), options
        yield "input %d flat" % i, op, put(x.reshape(-1)), options
        for k in range(x.ndim):
            yield "input %d, axis %d one more" % (i, k), op, put(np.concatenate([x, np.take(x, [0], k)], k) if x.shape[k] else x), options
            if x.shape[k] > 1: yield "input %d, axis %d one" % (i, k), op, put(np.take(x, [0], k)), options
        if x.dtype == np.float32: yield "input %d of doubles" % i, op, put(x.astype(np.float64)), options
        if i not in options.get("constant", ()): yield "input %d a constant" % i, op, inputs, with_(constant=(*options.get("constant", ()), i))
    for i in (1, 2, 3, 6, 8, 9):
        if i >= len(inputs) or inputs[i] is None: yield "a new input %d" % i, op, (inputs + [None] * (i - len(inputs)) + [np.ones(inputs[0].shape[-1], np.float32)] if i >= len(inputs) else inputs[:i] + [inputs[0]] + inputs[i + 1:]), options
    outputs = options.get("outputs", ("y",))
    yield "an output more", op, inputs, with_(outputs=(*outputs, "more"))
    yield "two outputs more", op, inputs, with_(outputs=(*outputs, "", "more"))
    yield "one output", op, inputs, with_(outputs=("y",))
    yield "all of 16 bits", op, [x.astype(np.float16) if x is not None and x.dtype == np.float32 else x for x in inputs], options
    for version in (10, 12, 17, 20, 23): yield "opset %d" % version, op, inputs, with_(opset=version)
    yield "free sizes", op, inputs, with_(free=True)


def missed(op, inputs, options):
    """Why a near miss is wrong. Where ONNX Runtime computes it, it becomes what computes the same, stays and a warning names it, or is refused in one line; where ONNX
    Runtime refuses it, mlo has no more to say than that."""
    m, f = one(op, inputs, **options)
    p = t.call("read", t.write("near.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"), text=True)
    if p.returncode: return "" if p.returncode in (3, 4) and p.stderr.count("[MLO_E_") == 1 and re.search("the_node|more:", p.stderr) else "status %d: %s" % (p.returncode, p.stderr)
    if fused(onnx.load(t.at("plain.onnx"))): return "" if "the_node" in p.stderr else "stays without a word"
    try: right = execute(t.at("near.onnx"), f)
    except Exception: return ""
    d = difference(right, execute(t.at("plain.onnx"), f))
    return "" if d < (5e-3 if any(x is not None and x.dtype == np.float16 for x in inputs) else 1e-4) else "differs by %.3g" % d


NEAR = {        # family -> the seed of a random operator -> what is changed: those, of all changes of a hundred, that no other test stands for
    "norms": {100: ["axis is 0", "no input 0", "input 1 of doubles"], 101: ["two outputs more"]},
    "embeddings": {100: ["no input 2", "a new input 1"]},
    "products": {100: ["input 1 flat"]},
    "gemms": {100: ["activation is ", "no activation", "no activation_alpha"]},
    "convolutions": {100: ["input 0 of doubles"]},
    "integers": {100: ["input 0 of doubles"]},
    "few_bits": {100: ["bits is 3", "block_size is 0", "block_size is 24", "K is 0", "N is %d" % (1 << 60), "input 1 flat", "a new input 3", "free sizes"], 101: ["no K", "input 2, axis 0 one more"]},
    "block_tables": {100: ["bits is 3", "quantize_axis is 0", "gather_axis is 1", "input 0 flat", "input 2 flat", "free sizes"], 101: ["no block_size"]},
    "attentions": {100: ["num_heads is 0", "qkv_hidden_sizes is [8, 8]", "qkv_hidden_sizes is [8, 4, 8]", "qkv_hidden_sizes is [8, 8, 0]", "input 1 flat", "input 3 flat", "free sizes"], 101: ["no input 1"]},
    "multi_heads": {100: ["input 1 with an axis more", "input 2 with an axis more", "a new input 8", "a new input 9", "free sizes"], 101: ["an output more"], 103: ["a new input 6", "an output more"]},
    "rotations": {100: ["is_packed_batching is 1", "rotary_embedding_dim is 2", "input 0, axis 3 one", "free sizes"], 101: ["input 0, axis 2 one more"], 103: ["input 0, axis 3 one"], 107: ["input 0, axis 2 one more"]},
    "group_queries": {100: ["num_heads is 0", "kv_num_heads is 0", "qk_output is 1", "do_rotary is 1", "an output more"], 101: ["num_heads is 0", "no input 8", "a new input 9"], 109: ["input 1, axis 2 one"]},
    "gelus": {105: ["opset 20"]}}


def check_operators():
    families = {gelus: 12, norms: 16, embeddings: 8, products: 16, gemms: 10, convolutions: 6, integers: 12, few_bits: 24, block_tables: 12, attentions: 36, multi_heads: 20, rotations: 18, group_queries: 30}
    for family, count in families.items():
        bad, made = "", 0
        for seed in range(count):
            d = Draw(seed)
            op, inputs, options = family(d)
            while inputs[-1] is None: inputs.pop()
            options.setdefault("opset", (11, 13, 17, 18, 20, 23)[seed % 6])
            try: why = expands(op, inputs, **options)
            except Exception as e: why = "%s: %s" % (type(e).__name__, str(e)[:300])
            made += not why
            bad = bad or (why and "%s, seed %d, %s, %s: %s" % (op, seed, [None if a is None else a.shape for a in inputs], options, why))
        t.case("%d random %s" % (count, family.__name__), bad)


def check_group_norm():
    """The norm of each head that GroupQueryAttention may have within, which ONNX Runtime does not compute on a processor: as the same norms in front of it."""
    for seed in range(6):
        d, b, s, heads, kept, c = Draw(seed), 2, 5, 4, 2, 16
        q, k, v, gains, tables = d.floats(b, s, heads * c), d.floats(b, s, kept * c), d.floats(b, s, kept * c), [d.floats(c), d.floats(c)], [d.floats(s, c // 2), d.floats(s, c // 2)]
        within = [q, k, v, None, None, np.full(b, s - 1, np.int32), np.array(s, np.int32), *tables, None, None, None, None, None, *gains]
        said = d.choose({}, {"qk_norm_epsilon": 0.5}, {"qk_norm_epsilon": 0.5, "k_norm_epsilon": 0.1})
        options = {"num_heads": heads, "kv_num_heads": kept, "do_rotary": 1, "constant": (7, 8, 14, 15), "opset": (13, 18, 23)[seed % 3]}
        m, f = one("GroupQueryAttention", within, **options, **said)
        p = t.call("read", t.write("within.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"), text=True)
        front, _ = one("GroupQueryAttention", within[:9], **options)
        for i, n in ((1, kept), (0, heads)):
            epsilon = said.get("qk_norm_epsilon", 1e-6) if not i else said.get("k_norm_epsilon", said.get("qk_norm_epsilon", 1e-6))
            for name, x in ("gain%d" % i, gains[i]), ("apart%d" % i, np.array([b, s, n, c])), ("joined%d" % i, np.array([b, s, n * c])): front.graph.initializer.append(numpy_helper.from_array(x, name))
            front.graph.node[-1].input[i] = "y%d" % i
            for node in (helper.make_node("Reshape", ["z%d" % i, "joined%d" % i], ["y%d" % i]), helper.make_node("SimplifiedLayerNormalization", ["w%d" % i, "gain%d" % i], ["z%d" % i], axis=-1, epsilon=epsilon),
                         helper.make_node("Reshape", ["x%d" % i, "apart%d" % i], ["w%d" % i])): front.graph.node.insert(0, node)
        onnx.save(front, t.at("front.onnx"))
        d = difference(execute(t.at("front.onnx"), f), execute(t.at("plain.onnx"), f)) if not p.returncode else 9
        t.case("norms within a group's attention, %d" % seed, "" if d < 1e-5 and not fused(onnx.load(t.at("plain.onnx"))) else "differs by %.3g: %s" % (d, p.stderr))


def check_group_open():
    """GroupQueryAttention that is not causal, which older runtimes do not know: as MultiHeadAttention of as many heads, keys repeated."""
    for seed in range(4):
        d, b, s, heads, kept, c = Draw(seed), 2, 5, 4, 2, 8
        q, k, v = d.floats(b, s, heads * c), d.floats(b, s, kept * c), d.floats(b, s, kept * c)
        m, f = one("GroupQueryAttention", [q, k, v, None, None, np.full(b, s - 1, np.int32), np.array(s, np.int32)], num_heads=heads, kv_num_heads=kept, causal=0, opset=(13, 18, 20, 23)[seed])
        p = t.call("read", t.write("open.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"), text=True)
        wide = lambda x: np.repeat(x.reshape(b, s, kept, c), heads // kept, 2).reshape(b, s, heads * c)
        other, g = one("MultiHeadAttention", [q, wide(k), wide(v)], num_heads=heads)
        onnx.save(other, t.at("other.onnx"))
        e = difference(execute(t.at("other.onnx"), g), execute(t.at("plain.onnx"), f)) if not p.returncode else 9
        t.case("a group's attention to all keys, %d" % seed, "" if e < 1e-5 and not fused(onnx.load(t.at("plain.onnx"))) else "differs by %.3g: %s" % (e, p.stderr))


def check_near():
    for family, seeds in NEAR.items():
        wrong = []
        for seed, names in seeds.items():
            op, inputs, options = FAMILIES[family](Draw(seed))
            while inputs[-1] is None: inputs.pop()
            options.setdefault("opset", (11, 13, 17, 18, 20, 23)[seed % 6])
            found = {what: rest for what, *rest in changes(op, inputs, options)}
            wrong += ["%s, %s: %s" % (op, what, why) for what in names for why in [missed(*found[what])] if why]
        t.case("%s, one thing changed" % family, "; ".join(wrong))


def check_half():
    d = Draw(1)
    h = lambda *shape: d.floats(*shape).astype(np.float16)
    for opset in (13, 18, 23):
        t.case("16 bits, opset %d: SkipLayerNormalization" % opset, expands("SkipLayerNormalization", [h(2, 3, 8), h(2, 3, 8), h(8), h(8)], opset=opset))
        t.case("16 bits, opset %d: SimplifiedLayerNormalization" % opset, expands("SimplifiedLayerNormalization", [h(2, 3, 8), h(8)], opset=opset, domain=""))
        t.case("16 bits, opset %d: BiasGelu" % opset, expands("BiasGelu", [h(2, 3, 8), h(8)], opset=opset))
        t.case("16 bits, opset %d: Attention" % opset, expands("Attention", [h(2, 5, 8), h(8, 24), h(24)], opset=opset, num_heads=2, unidirectional=1))


def check_free():
    """Sizes that nobody gave: the expansion computes them."""
    d = Draw(2)
    x, w, b = d.floats(2, 5, 8), d.floats(8, 24), d.floats(24)
    t.case("free sizes: causal Attention", expands("Attention", [x, w, b], num_heads=2, unidirectional=1, constant=(1, 2), free=True))
    t.case("free sizes: masked Attention", expands("Attention", [x, w, b, d.bits(2, 5)], num_heads=2, constant=(1, 2), free=True))
    ids = d.r.integers(0, 9, (2, 5)).astype(np.int32)
    t.case("free sizes: EmbedLayerNormalization", expands("EmbedLayerNormalization", [ids, ids % 2, d.floats(9, 8), d.floats(7, 8), d.floats(2, 8), d.floats(8), d.floats(8)],
           outputs=("y", "mask"), types={"mask": T.INT32}, constant=(2, 3, 4, 5, 6), free=True))


def check_kept():
    """What cannot be expanded exactly stays, and a warning names node and reason."""
    d = Draw(3)
    x, w, b = d.floats(2, 5, 8), d.floats(8, 24), d.floats(24)
    def stays(name, reason, *args, before=(), **options):
        m, _ = one(*args, **options)
        for i in m.graph.input:                                                         # those of `before` become results of an operator that nobody knows
            if i.name not in before: continue
            m.graph.node.append(helper.make_node("unknown", ["from_" + i.name], [i.name], domain="elsewhere"))
            i.name = "from_" + i.name
        m.graph.node.sort(key=lambda n: n.domain == MS)
        p = t.call("read", t.write("kept.onnx", m.SerializeToString()), "--onnx", "-o", t.at("still.onnx"), text=True)
        still = [n for n in onnx.load(t.at("still.onnx")).graph.node if n.domain == MS or n.op_type == "SimplifiedLayerNormalization"] if not p.returncode else []
        t.case("stays: " + name, "" if len(still) == 1 and still[0].SerializeToString() == m.graph.node[-1].SerializeToString() and "the_node" in p.stderr and reason in p.stderr
               else "status %d: %s" % (p.returncode, p.stderr))
    stays("rotary", "do_rotary", "Attention", [x, w, b], num_heads=2, do_rotary=1)
    stays("scaled rotary embedding", "a scale", "RotaryEmbedding", [x, np.zeros(1, np.int64), d.floats(9, 4), d.floats(9, 4)], scale=0.5)
    stays("mask of rank 4", "rank 4", "Attention", [x, w, b, d.bits(2, 1, 5, 5)], num_heads=2)
    stays("lengths of an unknown batch", "--dim", "Attention", [x, w, b, np.array([3, 5], np.int32)], num_heads=2, free=True, constant=(1, 2))
    group = dict(num_heads=2, kv_num_heads=1, constant=())
    prompt = [x, d.floats(2, 5, 4), d.floats(2, 5, 4), None, None, np.full(2, 4, np.int32), np.array(5, np.int32)]
    stays("past keys of a group", "a prompt has none", "GroupQueryAttention", prompt[:3] + [d.floats(2, 1, 3, 4)] * 2 + [np.full(2, 7, np.int32), np.array(8, np.int32)], **group)
    stays("sinks", "it has sinks", "GroupQueryAttention", prompt + [None] * 4 + [d.floats(2)], **group)
    stays("a norm of queries alone", "not of both", "GroupQueryAttention", prompt + [None] * 7 + [d.floats(4)], **group)
    stays("an input of tomorrow", "its input 16 is not known", "GroupQueryAttention", prompt + [None] * 9 + [np.full(2, 3, np.int32)], **group)
    stays("an attribute of tomorrow", "its attribute other is not known", "GroupQueryAttention", prompt, other=1, **group)
    stays("weights in another order", "weight_prepacked is not known", "MatMulNBits", [d.floats(2, 32), d.ints(np.uint8, 3, 1, 16), d.scale(3)], K=32, N=3, block_size=32, weight_prepacked=1)
    stays("rows in another order", "g_idx", "MatMulNBits", [d.floats(2, 32), d.ints(np.uint8, 3, 1, 16), d.scale(3), None, np.zeros(32, np.int32)], K=32, N=3, block_size=32)
    stays("3 bits", "3 bits", "MatMulNBits", [d.floats(2, 32), d.ints(np.uint8, 3, 1, 12), d.scale(3)], K=32, N=3, bits=3, block_size=32)
    stays("a smooth softmax", "smooth_softmax", "GroupQueryAttention", prompt, smooth_softmax=1, **group)
    stays("an empty window", "window is empty", "GroupQueryAttention", prompt, local_window_size=0, **group)
    stays("groups that do not divide", "3 heads of queries, 2 of keys", "GroupQueryAttention", prompt, num_heads=3, kv_num_heads=2)
    stays("keys without values", "not both", "GroupQueryAttention", prompt[:2] + [None] + prompt[3:], **group)
    stays("heads that do not divide", "8 channels are not 3 heads", "Attention", [x, w, b], num_heads=3)
    stays("packed keys and values", "no input 2", "MultiHeadAttention", [x, d.floats(2, 5, 2, 2, 4), None], num_heads=2)
    stays("an activation nobody knows", "Elu", "FusedGemm", [d.floats(2, 3), d.floats(3, 4)], activation="Elu")
    stays("statistics that are used", "mean", "SkipLayerNormalization", [x, x, d.floats(8), d.floats(8)], outputs=("y", "mean"))
    stays("a deviation that is used", "inv_std_var", "SimplifiedLayerNormalization", [x, d.floats(8)], outputs=("y", "inv"), domain="")
    stays("an old opset", "opset 6", "BiasGelu", [x, d.floats(8)], opset=6)
    stays("no input", "no input 1", "BiasGelu", [x, None])
    stays("no first output", "no first output", "SkipLayerNormalization", [x, x, d.floats(8), d.floats(8)], outputs=("", "mean"))
    stays("lengths of an open batch", "--dim", "Attention", [x, w, b, np.array([3, 5], np.int32)], num_heads=2, free=True, constant=(1, 2, 3))
    stays("too many channels of queries", "cannot be told", "Attention", [x, w, b], num_heads=2, qkv_hidden_sizes=[1 << 41, 1 << 41, 8])
    stays("a statistic over another axis", "axis 1 is not known to be the last", "SimplifiedLayerNormalization", [x, d.floats(8)], axis=1, domain="")
    stays("a table of unknown width", "cannot be told apart", "RotaryEmbedding", [x, np.zeros(1, np.int64), d.floats(9, 4), d.floats(9, 4)], free=True)
    stays("a table that an unknown operator makes", "element type undefined", "EmbedLayerNormalization", [np.zeros((2, 3), np.int32), None, d.floats(5, 8), d.floats(3, 8), None, d.floats(8), d.floats(8)],
          outputs=("y", ""), opset=11, before=("x2",))
    stays("an input of strings", "element type string", "BiasGelu", [np.full((2, 3), "word", object), d.floats(3)], opset=11, types={"y": T.STRING})
    m, _ = one("MultiHeadAttention", [x, x, x, d.floats(24)], num_heads=2)
    m.graph.input[2].type.tensor_type.shape.dim[2].dim_param = "wide"
    p = t.call("read", t.write("kept.onnx", m.SerializeToString()), "--onnx", "-o", t.at("still.onnx"), text=True)
    t.case("stays: values of unknown width with a bias", "" if not p.returncode and "channels of k and v are unknown" in p.stderr and fused(onnx.load(t.at("still.onnx"))) else p.stderr or "it says nothing")
    m, _ = one("BiasGelu", [x, d.floats(8)], opset=6)
    for k, op in enumerate(("FastGelu", "BiasGelu", "FastGelu")): m.graph.node.append(helper.make_node(op, ["x0", "x1"], ["more%d" % k], name="node%d" % k, domain=MS))
    m.graph.node.append(helper.make_node("BiasGelu", ["x0", ""], ["more3"], name="node3", domain=MS))
    m.graph.output.extend(helper.make_tensor_value_info("more%d" % k, T.FLOAT, None) for k in range(4))
    p = t.call("read", t.write("kept.onnx", m.SerializeToString()), "-o", t.at("still.json"), text=True)
    told = [l for l in p.stderr.splitlines() if "opset 6" in l]
    t.case("stays: a warning for each operator and reason", "" if len(told) == 2 and "node3 (BiasGelu) stays as it is: it has no input 1" in p.stderr and all(any(name in l and "and 1 more" in l for l in told) for name in ("the_node (BiasGelu)", "node0 (FastGelu)")) else p.stderr)


def check_expanded():
    """Other spellings that are expanded as well: equal to ONNX Runtime."""
    d = Draw(6)
    x, gain = d.floats(2, 5, 8), d.floats(8)
    t.case("SimplifiedLayerNormalization, the last axis counted from the front", expands("SimplifiedLayerNormalization", [x, gain], domain="", axis=2))
    for opset in 15, 16: t.case("LayerNormalization before it was ONNX's, opset %d" % opset, expands("LayerNormalization", [x, gain, d.floats(8)], domain="", opset=opset))
    t.case("CastLike, another type", expands("CastLike", [np.arange(6, dtype=np.int64), gain], domain=""))
    m, f = one("SkipLayerNormalization", [x, x, gain, d.floats(8), d.floats(8)], constant=(2, 3, 4))
    m.graph.node[0].output.append("mean")                                        # a name for what nobody reads
    p = t.call("read", t.write("one.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"), text=True)
    plain = onnx.load(t.at("plain.onnx")) if not p.returncode else m
    off = difference(execute(one("SkipLayerNormalization", [x, x, *map(numpy_helper.to_array, m.graph.initializer)])[0], {"x0": x, "x1": x, **{i.name: numpy_helper.to_array(i) for i in m.graph.initializer}}), execute(plain, f)) if not fused(plain) else 1
    t.case("SkipLayerNormalization with a mean that nobody reads", "" if off < 1e-5 else p.stderr or "differs by %.3g" % off)
    m, f = one("SkipLayerNormalization", [x, x, gain, d.floats(8), d.floats(8)], constant=(2, 3, 4))
    for k in range(2):                                                           # x and skip are products both: whose bias it is, is not told
        m.graph.initializer.append(numpy_helper.from_array(d.floats(8, 8), "w%d" % k))
        m.graph.node.insert(k, helper.make_node("MatMul", ["x%d" % k, "w%d" % k], ["p%d" % k]))
        m.graph.node[-1].input[k] = "p%d" % k
    t.good("read", t.write("one.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"))
    off = difference(execute(m, f), execute(t.at("plain.onnx"), f))
    t.case("SkipLayerNormalization of two products", "" if off < 1e-5 and not fused(onnx.load(t.at("plain.onnx"))) else "differs by %.3g" % off)
    s, heads = 5, 4
    group = [d.floats(2, s, 8 * heads), d.floats(2, s, 16), d.floats(2, s, 16), np.zeros((2, 2, 0, 8), np.float32), np.zeros((2, 2, 0, 8), np.float32), np.full(2, s - 1, np.int32), np.array(s, np.int32)]
    t.case("GroupQueryAttention with an empty past", expands("GroupQueryAttention", group, outputs=("y", "k", "v"), num_heads=heads, kv_num_heads=2))


def flattened(shape, rows, columns, to, bias=None, matrix=None, **attributes):
    """Reshape(Gemm(Reshape(x), w, c)), and x."""
    d = Draw(8)
    held = [numpy_helper.from_array(np.array(a, np.int64), n) for n, a in (("rows", [rows, columns]), ("to", to))]
    held += [numpy_helper.from_array(d.floats(*(matrix or (columns, to[-1]))), "w")] + ([] if bias is None else [numpy_helper.from_array(d.floats(*bias), "c")])
    nodes = [helper.make_node("Reshape", ["x", "rows"], ["flat"]), helper.make_node("Gemm", ["flat", "w"] + ["c"] * (bias is not None), ["product"], name="the_gemm", **attributes), helper.make_node("Reshape", ["product", "to"], ["y"])]
    io = [helper.make_tensor_value_info("x", T.FLOAT, shape)], [helper.make_tensor_value_info("y", T.FLOAT, None)]
    return helper.make_model(helper.make_graph(nodes, "g", *io, held), opset_imports=[helper.make_opsetid("", 18)], ir_version=8), {"x": d.floats(*shape)}


FLATTENED = [   # what, how, 1: it stays a Gemm
    ("as it was", dict(shape=[2, 3, 4], rows=6, columns=4, to=[2, 3, 5]), 0), ("with a bias", dict(shape=[2, 3, 4], rows=6, columns=4, to=[2, 3, 5], bias=(5,)), 0),
    ("of more axes", dict(shape=[2, 3, 2, 2], rows=6, columns=4, to=[2, 3, 5], bias=(5,)), 0), ("of other axes", dict(shape=[3, 2, 4], rows=6, columns=4, to=[2, 3, 5], bias=(5,)), 0),
    ("a matrix that is turned", dict(shape=[2, 3, 4], rows=6, columns=4, to=[2, 3, 5], matrix=(5, 4), transB=1, bias=(5,)), 0),
    ("a bias of rank 2", dict(shape=[2, 3, 4], rows=6, columns=4, to=[2, 3, 5], bias=(6, 5)), 1), ("one number as bias", dict(shape=[2, 3, 4], rows=6, columns=4, to=[2, 3, 5], bias=(1,)), 1),
    ("rows turned", dict(shape=[2, 3, 4], rows=4, columns=6, to=[2, 3, 5], matrix=(4, 5), transA=1), 1), ("a factor", dict(shape=[2, 3, 4], rows=6, columns=4, to=[2, 3, 5], alpha=0.5), 1),
    ("a factor of the bias", dict(shape=[2, 3, 4], rows=6, columns=4, to=[2, 3, 5], bias=(5,), beta=0.5), 1), ("flat in the end", dict(shape=[2, 3, 4], rows=6, columns=4, to=[6, 5]), 1),
    ("cut otherwise in the end", dict(shape=[2, 3, 4], rows=6, columns=4, to=[2, 5, 3], matrix=(4, 5)), 1)]


def check_flattened():
    """A product of more than two axes, written as a Gemm of two, is a MatMul; what only looks like one stays; all equal ONNX Runtime."""
    judged = lambda m, f, stays: (t.good("read", t.write("flat.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx")), difference(execute(t.at("flat.onnx"), f), execute(t.at("plain.onnx"), f)),
                                  [n.op_type for n in onnx.load(t.at("plain.onnx")).graph.node].count("Gemm"))[1:]
    for what, how, stays in FLATTENED:
        off, left = judged(*flattened(**how), stays)
        t.case("a flattened product, %s" % what, "" if off < 1e-5 and left == stays else "differs by %.3g, %d of it left" % (off, left))
    m, f = flattened([2, 3, 4], 6, 4, [2, 3, 5], bias=(5,))
    m.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    off, left = judged(m, f, 1)
    t.case("a flattened product, of an open batch", "" if off < 1e-5 else "differs by %.3g" % off)
    m, f = flattened([2, 3, 4], 6, 4, [2, 3, 5], bias=(5,))
    m.graph.input.append(helper.make_tensor_value_info("to", T.INT64, [3]))
    m.graph.initializer.remove(next(i for i in m.graph.initializer if i.name == "to"))
    off, left = judged(m, {**f, "to": np.array([2, 3, 5], np.int64)}, 1)
    t.case("a flattened product, of a shape that is an input", "" if off < 1e-5 and left == 1 else "differs by %.3g, %d left" % (off, left))
    m, f = flattened([2, 3, 4], 6, 4, [2, 3, 5], bias=(5,))
    w = next(i for i in m.graph.initializer if i.name == "w")
    m.graph.input.append(onnx.ValueInfoProto(name="w"))
    m.graph.input[-1].type.tensor_type.elem_type = T.FLOAT
    m.graph.initializer.remove(w)
    off, left = judged(m, {**f, "w": numpy_helper.to_array(w)}, 1)
    t.case("a flattened product, by an input of no known form", "" if off < 1e-5 and left == 1 else "differs by %.3g, %d left" % (off, left))
    m, f = flattened([2, 3, 4], 6, 4, [2, 3, 5], bias=(5,))
    last = m.graph.node.pop()
    inside = helper.make_graph([helper.make_node("Reshape", ["product", "to"], ["r"])], "then", [], [helper.make_tensor_value_info("r", T.FLOAT, None)])
    other = helper.make_graph([helper.make_node("Reshape", ["product", "to"], ["r0"]), helper.make_node("Neg", ["r0"], ["r"])], "else", [], [helper.make_tensor_value_info("r", T.FLOAT, None)])
    m.graph.input.append(helper.make_tensor_value_info("which", T.BOOL, []))
    m.graph.node.append(helper.make_node("If", ["which"], [last.output[0]], then_branch=inside, else_branch=other))
    worst = max(judged(m, {**f, "which": np.array(w)}, 1)[0] for w in (True, False))
    t.case("a flattened product, made again inside of a branch", "" if worst < 1e-5 else "differs by %.3g" % worst)
    m, f = flattened([2, 3, 4], 6, 4, [2, 3, 5])
    m.graph.node.append(helper.make_node("Reshape", ["product", "to"], [], name="idle"))
    t.good("read", t.write("flat.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"))
    t.case("a flattened product, again, for nobody", "" if all(list(n.output) for n in onnx.load(t.at("plain.onnx")).graph.node) else "it is still there")


EQUATIONS = [  # (equation, shapes, why it stays)
    ("ij,jkl->ikl", [(2, 3), (3, 4, 5)], ""), ("ij,j->i", [(2, 3), (3,)], ""), ("j,jk->k", [(3,), (3, 4)], ""), ("ij,jk,kl->il", [(2, 3), (3, 4)], "a letter for each axis"), ("ij-jk->ik", [(2, 3), (3, 4)], "a letter for each axis"),
    ("ij,jk-", [(2, 3), (3, 4)], "a letter for each axis"), ("ij,jk-ik", [(2, 3), (3, 4)], "a letter for each axis"), ("ij->jk", [(2, 3), (3, 4)], "a letter for each axis"), ("i{,{k->ik", [(2, 3), (3, 4)], "a letter for each axis"), ("i_,_k->ik", [(2, 3), (3, 4)], "a letter for each axis"),
    ("i@,@k->ik", [(2, 3), (3, 4)], "a letter for each axis"), ("abcdefghi,i->abcdefgh", [(1, 2, 1, 1, 1, 1, 1, 3), (3,)], "a letter for each axis"), ("", [(2, 3), (3, 4)], "a letter for each axis"),
    ("AbC,CD->AbD", [(2, 3, 4), (4, 5)], ""), ("i j , j k -> k i", [(2, 3), (3, 4)], ""), ("ij,jk->ik", [(1, 3), (3, 1)], ""), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)], ""), ("bi,bj->bij", [(2, 3), (2, 4)], ""),
    ("i,j->ij", [(3,), (4,)], ""), ("ab,ab->ab", [(2, 3), (2, 3)], ""), ("ij,ij->", [(2, 3), (2, 3)], ""), ("abcd,abed->abce", [(2, 1, 3, 4), (2, 1, 5, 4)], ""),
    ("bhid,bjd->bhij", [(1, 3, 5, 4), (1, 6, 4)], ""), ("bhij,bjd->bihd", [(2, 3, 5, 6), (2, 6, 4)], ""), ("bihd,bjd->bjih", [(2, 5, 3, 4), (2, 6, 4)], ""), ("abcd,ade->aecb", [(2, 3, 1, 4), (2, 4, 5)], ""),
    ("abcd,ade->abce", [(2, 1, 3, 4), (2, 4, 5)], ""), ("abc,ad->abcd", [(2, 3, 4), (2, 5)], ""), ("abcd,a->abcd", [(2, 3, 4, 2), (2,)], ""),
    ("ii,ij->j", [(3, 3), (3, 4)], "a letter for each axis"), ("ij,jk", [(2, 3), (3, 4)], "a letter for each axis"), ("...i,ij->...j", [(2, 3), (3, 4)], ""), ("...i,ij->...j", [(5, 2, 3), (3, 4)], ""), ("...qhd,...khd->...hqk", [(2, 4, 3, 5), (2, 6, 3, 5)], ""), ("...hqk,...khd->...qhd", [(2, 3, 4, 6), (2, 6, 3, 5)], ""), ("i...,ij->j...", [(3, 2, 5), (3, 4)], ""), ("...ij,jk->...ik", [(2, 3), (3, 4)], ""), ("...i,...ij->...j", [(2, 3), (3, 4)], "a letter for each axis"), ("..i,ij->..j", [(2, 3), (3, 4)], "a letter for each axis"), ("ij->ji", [(2, 3)], ""),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], ""), ("bhid,bhjd,bj->bhij", [(2, 3, 5, 4), (2, 3, 6, 4), (2, 6)], ""), ("bnc,hcd,h->bhnd", [(2, 5, 6), (3, 6, 4), (3,)], ""), ("h,hcd,bnc->bnhd", [(3,), (3, 6, 4), (2, 5, 6)], ""),
    ("ab,bc,cd,de->ea", [(2, 3), (3, 4), (4, 5), (5, 6)], ""), ("a,b,c->cab", [(2,), (3,), (4,)], ""), ("ab,ab,ab->a", [(2, 3)] * 3, ""), ("i,i,i->", [(5,)] * 3, ""), ("a,a,a,a,a,a,a,a,a,a,a,a->a", [(3,)] * 12, ""),
    ("bhij,bjd,hd->bihd", [(2, 3, 5, 6), (2, 6, 4), (3, 4)], ""), ("abcd,efgh,ae->bcdfgh", [(2, 1, 2, 3), (2, 3, 1, 2), (2, 2)], ""), ("abcde,fghij,af->bg", [(2, 1, 2, 1, 1), (2, 3, 1, 1, 1), (2, 2)], "one operand alone"),
    ("abcde,cfghi,bdfg->aehi", [(2, 3, 2, 3, 2), (2, 2, 3, 2, 1), (3, 3, 2, 3)], ""), ("abcdei,fghije,aj->bcdfgh", [(2,) * 6, (2,) * 6, (2, 2)], ""), ("abcdefgh,abcdijkl,efghijkl->abei", [(1, 2) * 4] * 3, "more than 8 axes"), ("abcdefgh,abcdefgh->abcdefg", [(1, 2, 1, 1, 1, 1, 1, 3)] * 2, "more than 8 axes"),
    ("cd,bnc->bnd", [(3, 4), (2, 5, 3)], ""), ("bnc,c->bnc", [(2, 5, 3), (3,)], ""), ("abcdefgh,abcdefgh->hgfedcba", [(1, 2, 1, 1, 3, 1, 1, 2)] * 2, ""),
    ("a,a,a,a,a,a,a,a,a,a,a,a,a->a", [(3,)] * 13, "12 operands at most"), ("ij,jk,kl", [(2, 3), (3, 4), (4, 5)], "a letter for each axis"), ("...i,ij,jk->...k", [(2, 3), (3, 4), (4, 5)], ""), ("ii,ij,jk->k", [(3, 3), (3, 4), (4, 5)], "a letter for each axis"),
    ("ij,jk,kl->kl", [(2, 3), (3, 4), (4, 5)], "one operand alone"), ("ij,jk,k->ikz", [(2, 3), (3, 4), (4,)], "result's axis 'z'"), ("bij,bjk,b->bik", [(2, 3, 4), (2, 4, 5), (1,)], "axis 'b' broadcasts"),
    ("nhwpqc->nchpwq", [(1, 2, 3, 2, 2, 4)], ""), ("...ij->...ji", [(2, 3, 4)], ""), ("ij->ij", [(2, 3)], ""), ("ij->i", [(2, 3)], "one operand alone"), ("i->ij", [(3,)], "result's axis 'j'"), ("ii->i", [(3, 3)], "a letter for each axis"),
    ("ij,kl->kl", [(2, 3), (4, 5)], "one operand alone"), ("bij,bjk->bik", [(2, 3, 4), (1, 4, 5)], "broadcasts")]


KNOWN = [  # (equation, shapes, which the model knows, the products that are left)
    ("bnc,hcd,h->bnhd", [(1, 5, 6), (3, 6, 4), (3,)], (1, 2), ["MatMul by what is known"]), ("h,hcd,bnc->bnhd", [(3,), (3, 6, 4), (1, 5, 6)], (0, 1), ["MatMul by what is known"]),
    ("bnc,cr,rd->bnd", [(1, 50, 8), (8, 2), (2, 8)], (1, 2), ["MatMul by what is known"] * 2), ("hcd,bnc->bnhd", [(3, 6, 4), (1, 5, 6)], (0,), ["MatMul by what is known"]), ("c,bnc->bnc", [(6,), (1, 5, 6)], (0,), ["Mul by what is known"]),
    ("bhid,bhjd,j->bhij", [(1, 2, 5, 4), (1, 2, 5, 4), (5,)], (2,), ["Mul by what is known", "MatMul"])]


def check_einsum():
    """Einsum is what ONNX Runtime makes of it, or stays and a warning says why; what the model knows is made when it is compiled, where that does not grow."""
    d = Draw(9)
    for equation, sizes, reason in EQUATIONS:
        m, f = one("Einsum", [d.floats(*s) for s in sizes], domain="", equation=equation)
        p = t.call("read", t.write("einsum.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"), text=True)
        left = "Einsum" in [n.op_type for n in onnx.load(t.at("plain.onnx")).graph.node] if not p.returncode else None
        right = "reason not told: %s" % p.stderr if bool(reason) != bool(left) or reason not in p.stderr else ""
        off = 0 if left or p.returncode else difference(execute(t.at("einsum.onnx"), f), execute(t.at("plain.onnx"), f))
        t.case("Einsum %s of %s" % (equation, sizes), "status %d: %s" % (p.returncode, p.stderr) if p.returncode else right or ("" if off < 1e-5 else "differs by %.3g" % off))
    for equation, sizes, given, ops in KNOWN:
        m, f = one("Einsum", [d.floats(*s) for s in sizes], domain="", constant=given, equation=equation)
        t.good("read", t.write("einsum.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"))
        plain = onnx.load(t.at("plain.onnx"))
        known, made = {i.name for i in plain.graph.initializer}, []
        for n in plain.graph.node:      # what the model knows by itself is made when it is compiled
            if set(n.input) <= known: known |= set(n.output)
            elif n.op_type in ("MatMul", "Mul"): made.append(n.op_type + " by what is known" * (n.input[1] in known))
        off = difference(execute(m, f), execute(plain, f))
        t.case("Einsum %s, %s known" % (equation, given), "%s, not %s" % (made, ops) if made != ops else "" if off < 1e-5 else "differs by %.3g" % off)
    m, _ = one("Einsum", [d.floats(2, 3), d.floats(3, 4)], domain="")
    p = t.call("read", t.write("einsum.onnx", m.SerializeToString()), "-o", t.at("plain.json"), text=True)
    t.case("Einsum without an equation stays", "" if not p.returncode and "a letter for each axis" in p.stderr else p.stderr or "it says nothing")
    m, _ = one("Einsum", [d.floats(2, 3), d.floats(3, 4)], domain="", equation="ij,jk->ik")
    m.graph.input[1].type.tensor_type.ClearField("shape")
    p = t.call("read", t.write("einsum.onnx", m.SerializeToString()), "-o", t.at("plain.json"), text=True)
    t.case("Einsum of one unknown form stays", "" if not p.returncode and "shape of an operand is not known" in p.stderr else p.stderr or "it says nothing")
    m, _ = one("Einsum", [d.floats(2, 3), d.floats(3, 4)], domain="", equation="ij,jk->ik")
    for v in m.graph.input: v.type.tensor_type.ClearField("shape")
    p = t.call("read", t.write("einsum.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"), text=True)
    t.case("Einsum of unknown forms stays", "" if not p.returncode and "shape of an operand is not known" in p.stderr else p.stderr or "it says nothing")


def check_lifted():
    """Models of opset 7 to 12 become models of opset 13, node by node: equal in ONNX Runtime, right for onnx's checker; what opset 13 cannot say keeps them, and says so."""
    d = Draw(23)
    x, grid = d.floats(2, 3, 4), d.floats(1, 2, 5, 6)
    def lifted(m):
        p = t.call("read", t.write("old.onnx", m.SerializeToString()), "--onnx", "-o", t.at("new.onnx"), text=True)
        if p.returncode: return None, p.stderr
        return onnx.load(t.at("new.onnx")), p.stderr
    def same(what, op, inputs, versions, outputs=("y",), **attributes):
        for opset in versions:
            m, feed = one(op, inputs, outputs, opset, "", **attributes)
            new, said = lifted(m)
            why = said
            if new and not said:
                for o in new.graph.output: o.type.tensor_type.shape.SetInParent()      # (the checker asks for one)
                onnx.checker.check_model(new)
                why = "" if new.opset_import[0].version == 13 and [o.name for o in new.graph.output] == [o.name for o in m.graph.output] else "opset %d" % new.opset_import[0].version
                if not why and not all(np.array_equal(a, b) for a, b in zip(execute(m, feed), execute(new, feed))): why = "other results"
            t.case("lifted from opset %d: %s" % (opset, what), why)
    same("Clip from both sides", "Clip", [x], (7, 9, 10), min=-0.5, max=0.25)
    same("Clip from above", "Clip", [x], (7, 10), max=0.25)
    same("Clip of halves, from below", "Clip", [x.astype(np.float16)], (7, 10), min=-0.5)
    same("Clip with its bounds as inputs", "Clip", [x, np.array(-0.5, np.float32), np.array(0.25, np.float32)], (11, 12))
    same("Pad with a number", "Pad", [x], (7, 10), pads=[0, 1, 2, 1, 0, 0], value=1.5)
    same("Pad by reflection", "Pad", [x], (7, 10), pads=[0, 1, 2, 0, 0, 1], mode="reflect")
    same("ReduceSum over one axis", "ReduceSum", [x], (7, 11, 12), axes=[1], keepdims=0)
    same("ReduceSum over all", "ReduceSum", [x], (7, 11))
    same("Slice of one axis", "Slice", [x], (7, 9), starts=[-3], ends=[9223372036854775807], axes=[2])
    same("Slice of the first axes", "Slice", [x], (7, 9), starts=[0, 1], ends=[1, -1])
    same("Slice by inputs", "Slice", [x, np.array([3]), np.array([0]), np.array([2]), np.array([-2])], (10, 12))
    same("Split with sizes", "Split", [x], (7, 11, 12), ("a", "b"), axis=2, split=[1, 3])
    same("Split in equal parts", "Split", [x], (7, 12), ("a", "b"), axis=2)
    same("Squeeze", "Squeeze", [grid], (7, 11), axes=[0])
    same("Squeeze of all there is", "Squeeze", [grid], (7, 11))
    same("Unsqueeze", "Unsqueeze", [x], (7, 11, 12), axes=[0, 3])
    same("TopK", "TopK", [x], (7, 9), ("y", "i"), types={"i": T.INT64}, axis=1, k=2)
    same("TopK by an input", "TopK", [x, np.array([2])], (10, 12), ("y", "i"), types={"i": T.INT64}, axis=1)
    same("Dropout", "Dropout", [x], (7, 10), ratio=0.3)
    same("BatchNormalization", "BatchNormalization", [grid, *(d.floats(2) for _ in range(3)), abs(d.floats(2)) + 1], (7, 9, 12))
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        same(op + " over the last axis", op, [x], (7, 11, 12), axis=2)
        same(op + " over what follows axis 1", op, [x], (7, 11, 12))
        same(op + " over all", op, [x], (7, 12), axis=0)
    same("Softmax over the last axis, from the end", "Softmax", [x], (11, 12), axis=-1)
    same("Softmax over what follows, from the end", "Softmax", [x], (11, 12), axis=-2)
    def keeps(what, words, op, inputs, opset, *rest, change=None, **attributes):
        m, _ = one(op, inputs, *rest, opset=opset, domain="", **attributes)
        if change: change(m)
        new, said = lifted(m)
        t.case("not lifted: " + what, "" if new and new.opset_import[0].version == opset and "the_node (%s) keeps the model in opset %d: " % (op, opset) in said and words in said else said or "it says nothing")
    keeps("Upsample", "something else", "Upsample", [grid, f32(1, 1, 2, 2)], 9)
    keeps("Scatter", "something else", "Scatter", [x, np.zeros((1, 1, 1), np.int64), x[:1, :1, :1]], 9)
    def unknown(m):
        m.graph.node.insert(0, helper.make_node("unknown", ["x0"], ["from_unknown"], domain="elsewhere"))
        m.opset_import.append(helper.make_opsetid("elsewhere", 1))
        m.graph.node[1].input[0] = "from_unknown"
    keeps("Clip of what an unknown operator makes", "element type of its input is unknown", "Clip", [x], 9, change=unknown, min=0.0)
    keeps("BatchNormalization of each place", "one for each place", "BatchNormalization", [grid, *(d.floats(2, 5, 6) for _ in range(4))], 8, spatial=0)


def f32(*v): return np.array(v, np.float32)


def check_unknown():
    """A fused operator whose inputs have no form, or a rank alone: what it becomes computes the same, or it stays and a warning names it."""
    for k, draw in enumerate((gelus, norms, embeddings, products, gemms, convolutions, integers, attentions, multi_heads, rotations, group_queries)):
        for how in "no form", "a rank":
            op, inputs, options = draw(Draw(70 + k))
            while inputs[-1] is None: inputs.pop()
            m, f = one(op, inputs, free=True, **options)
            for v in m.graph.input if how == "no form" else []: v.type.tensor_type.ClearField("shape")
            p = t.call("read", t.write("unknown.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"), text=True)
            why = "status %d: %s" % (p.returncode, p.stderr) if p.returncode else ""
            if not why and fused(onnx.load(t.at("plain.onnx"))): why = "" if "the_node" in p.stderr else "stays without a word"
            elif not why:
                off = difference(execute(t.write("known.onnx", one(op, inputs, **options)[0].SerializeToString()), f), execute(t.at("plain.onnx"), f))
                why = "" if off < 1e-5 else "differs by %.3g" % off
            t.case("%s of inputs with %s" % (op, how), why)
    for what, count in ("no parts", 0), ("more parts than mlo counts", 30):
        node = helper.make_node("QLinearConcat", ["s", "z", *["x", "s", "z"] * count], ["y"], name="the_node", domain=MS, axis=1)
        g = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", T.UINT8, [2, 3])], [helper.make_tensor_value_info("y", T.UINT8, None)], [helper.make_tensor("s", T.FLOAT, [], [0.5]), helper.make_tensor("z", T.UINT8, [], [3])])
        p = t.call("read", t.write("parts.onnx", helper.make_model(g, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(MS, 1)], ir_version=8).SerializeToString()), "--onnx", "-o", t.at("plain.onnx"), text=True)
        t.case("QLinearConcat of %s is carried" % what, "" if not p.returncode and [n.op_type for n in onnx.load(t.at("plain.onnx")).graph.node] == ["QLinearConcat"] else p.stderr or "it is gone")
    d, ids = Draw(5), np.zeros((2, 5), np.int32)
    m, _ = one("EmbedLayerNormalization", [ids, ids, d.floats(9, 8), d.floats(7, 8), d.floats(2, 8), d.floats(8), d.floats(8)], outputs=("y", "mask"), types={"mask": T.INT32}, constant=(2, 4, 5, 6))
    m.graph.input[2].type.tensor_type.ClearField("shape")
    t.good("read", t.write("places.onnx", m.SerializeToString()), "--onnx", "-o", t.at("plain.onnx"))
    sizes = [v.dim_value for v in onnx.load(t.at("plain.onnx")).graph.output[0].type.tensor_type.shape.dim]
    t.case("EmbedLayerNormalization of positions with no form is as wide as its words", "" if sizes == [2, 5, 8] else str(sizes))
    m, given = one("Gemm", [d.floats(2, 3, 4), d.floats(4, 5), d.floats(5)], domain="")                # of more than two axes, which ONNX does not know: a product and a sum
    onnx.save(m, t.at("deep.onnx"))
    mine, right = evaluate(t.at("deep.onnx"), given), given["x0"] @ given["x1"] + given["x2"]
    t.case("Gemm of matrices in a row is a product and a sum", "" if mine is not None and mine[0].shape == right.shape and np.allclose(mine[0], right, atol=1e-5) else str(mine))
    m, _ = one("RotaryEmbedding", [np.float32(1), d.floats(1, 1, 2), d.floats(1, 1, 2)], domain="", opset=23)
    p = t.call("read", t.write("scalar.onnx", m.SerializeToString()), text=True)
    t.case("RotaryEmbedding of a number", "" if p.returncode == 3 and "rank 0; 3 or 4 is needed" in p.stderr else "status %d: %s" % (p.returncode, p.stderr))
    for options in ({"activation": "LeakyRelu", "activation_alpha": 0.3}, {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4}, {"activation": "Relu"}):
        t.case("FusedGemm, %s" % options, expands("FusedGemm", [d.floats(2, 3), d.floats(3, 4), d.floats(4)], **options))


# ---- functions -----------------------------------------------------------------------------------------------------------------------

def layered(layers=4, width=8):
    """A residual MLP whose layers are calls: Layer calls Linear twice and Act, which has an attribute with a default."""
    d, dom = Draw(4), "my.functions"
    o18, own = helper.make_opsetid("", 18), helper.make_opsetid(dom, 1)
    linear = helper.make_function(dom, "Linear", ["x", "w", "b"], ["y"], [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])], [o18])
    slope = helper.make_node("LeakyRelu", ["x"], ["y"])
    slope.attribute.append(onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope"))
    act = helper.make_function(dom, "Act", ["x"], ["y"], [slope], [o18], attributes=[], attribute_protos=[helper.make_attribute("slope", 0.25)])
    again = helper.make_node("Act", ["h"], ["a"], domain=dom)
    again.attribute.append(onnx.AttributeProto(name="slope", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope"))
    layer = helper.make_function(dom, "Layer", ["x", "w1", "b1", "w2", "b2"], ["y", "h"], [
        helper.make_node("Linear", ["x", "w1", "b1"], ["h"], domain=dom, name="first"), again,
        helper.make_node("Linear", ["a", "w2", "b2"], ["o"], domain=dom), helper.make_node("Add", ["x", "o"], ["y"])], [o18, own], attributes=["slope"])
    nodes, held = [], []
    for i in range(layers):
        held += [numpy_helper.from_array(d.floats(*s), "%s_%d" % (n, i)) for n, s in (("w1", (width, 16)), ("b1", (16,)), ("w2", (16, width)), ("b2", (width,)))]
        n = helper.make_node("Layer", ["x%d" % i] + ["%s_%d" % (k, i) for k in ("w1", "b1", "w2", "b2")], ["x%d" % (i + 1), ""], domain=dom, name="layer%d" % i, slope=0.1)
        n.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'layer.%d']" % i)
        nodes.append(n)
    io = [helper.make_tensor_value_info(n, T.FLOAT, [1, 3, width]) for n in ("x0", "x%d" % layers)]
    return helper.make_model(helper.make_graph(nodes, "g", io[:1], io[1:], held), opset_imports=[o18, own], functions=[linear, act, layer], ir_version=10)


def inlined(name, m, judge=execute):
    """Reads a model with functions: the calls are gone, and ONNX Runtime (or another judge) says it computes the same."""
    path = t.write("functions.onnx", m.SerializeToString())
    p = t.call("read", path, "--onnx", "-o", t.at("inlined.onnx"), text=True)
    if p.returncode: return t.case(name, p.stderr)
    plain, f = onnx.load(t.at("inlined.onnx")), feeds(m)
    calls = [n.op_type for n in plain.graph.node if n.domain]
    if calls or plain.functions: return t.case(name, "calls %s, %d functions" % (calls, len(plain.functions)))
    onnx.checker.check_model(plain, full_check=True)
    d = difference(judge(path, f), judge(t.at("inlined.onnx"), f))
    t.case(name, "" if d < 1e-6 else "differs by %.3g" % d)
    return plain


def function_model(nodes, functions, inputs=("x",), outputs=("y",), function_opset=18):
    io = [[helper.make_tensor_value_info(n, T.FLOAT, [2, 4]) for n in names] for names in (inputs, outputs)]
    for f in functions: del f.opset_import[:]; f.opset_import.extend([helper.make_opsetid("", function_opset), helper.make_opsetid("f", 1)])
    return helper.make_model(helper.make_graph(nodes, "g", *io), opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("f", 1)], functions=functions, ir_version=10)


def check_functions():
    m = layered()
    plain = inlined("functions: nested calls, attributes handed on", m)
    if plain is not None:
        t.case("functions: metadata of the call", "" if all(any(p.value == "['', 'layer.2']" for p in n.metadata_props) for n in plain.graph.node if n.name.startswith("layer2")) and
               sum(n.name.startswith("layer2") for n in plain.graph.node) == 6 else str([n.name for n in plain.graph.node]))
        t.case("functions: defaults and values", "" if sorted({round(a.f, 3) for n in plain.graph.node for a in n.attribute}) == [0.1] else str(plain.graph.node))
    path = t.write("functions.onnx", m.SerializeToString())
    t.case("functions: rolls", survives(path, path, [4], EXACT, ()))
    node, fn = helper.make_node, helper.make_function
    f = lambda name, i, o, nodes: fn("f", name, i, o, nodes, [])
    call = lambda name, i, o, **a: node(name, i, o, domain="f", **a)
    inlined("functions: default of an attribute", function_model([call("Act", ["x"], ["y"])], [copy.deepcopy(x) for x in m.functions if x.name == "Act"] and
            [fn("f", "Act", ["x"], ["y"], list(m.functions[1].node), [], attributes=[], attribute_protos=[helper.make_attribute("slope", 0.25)])]))
    inlined("functions: an attribute that nobody gives", function_model([call("Act", ["x"], ["y"])], [fn("f", "Act", ["x"], ["y"], list(m.functions[1].node), [], attributes=["slope"])]),
            lambda path, f: [np.where(f["x"] < 0, np.float32(0.01) * f["x"], f["x"])])
    clip = f("Clip", ["x", "low"], ["y"], [node("Constant", [], ["c"], value_float=0.5), node("Clip", ["x", "low", "c"], ["y"])])
    inlined("functions: an input left out", function_model([call("Clip", ["x"], ["y"])], [clip]))
    inlined("functions: an input handed out", function_model([call("Two", ["x"], ["p", "q"]), node("Add", ["p", "q"], ["y"])], [f("Two", ["a"], ["a2", "a"], [node("Exp", ["a"], ["a2"])])]),
            lambda path, f: ReferenceEvaluator(path).run(None, f))          # ONNX Runtime refuses such a function
    inlined("functions: an output nobody wants", function_model([call("Two", ["x"], ["", "y"])], [f("Two", ["a"], ["u", "v"], [node("Neg", ["a"], ["u"]), node("Exp", ["u"], ["v"])])]))
    inlined("functions: names that are taken", function_model([node("Neg", ["x"], ["y_u"]), call("G", ["y_u"], ["y"])], [f("G", ["a"], ["r"], [node("Exp", ["a"], ["u"]), node("Neg", ["u"], ["r"])])]))
    both = [helper.make_function("f", "Act", ["a"], ["r"], [node(op, ["a"], ["r"])], [], overload=which) for op, which in (("Neg", "minus"), ("Exp", "power"))]
    calls = [call("Act", ["a"], ["u"], overload="power"), call("Act", ["u"], ["r"], overload="minus")]
    inlined("functions: overloads, called by another", function_model([call("G", ["x"], ["y"])], [*both, f("G", ["a"], ["r"], calls)]), lambda path, f: execute(path, f) if "inlined" in path else [-np.exp(f["x"])])
    branch = lambda op: helper.make_graph([node(op, ["h"], ["r"])], op, [], [helper.make_tensor_value_info("r", T.FLOAT, [2, 4])])
    cond = f("Cond", ["a"], ["o"], [node("Exp", ["a"], ["h"]), node("ReduceSum", ["a"], ["s"], keepdims=0), node("Constant", [], ["z"], value_float=0.0),
                                   node("Greater", ["s", "z"], ["c"]), node("If", ["c"], ["o"], then_branch=branch("Neg"), else_branch=branch("Sqrt"))])
    inlined("functions: subgraphs inside", function_model([call("Cond", ["x"], ["m"]), call("Cond", ["m"], ["y"])], [cond]))
    stays = t.call("read", t.write("old.onnx", function_model([call("G", ["x"], ["y"])], [f("G", ["a"], ["r"], [node("Exp", ["a"], ["r"])])], function_opset=13).SerializeToString()),
                   "--onnx", "-o", t.at("old-read.onnx"), text=True)
    t.case("functions: another opset stays", "" if not stays.returncode and "opset 13" in stays.stderr and len(onnx.load(t.at("old-read.onnx")).functions) == 1 else stays.stderr or "it says nothing")
    old = [f("G", ["a"], ["r"], [call("H", ["a"], ["r"])]), f("H", ["a"], ["r"], [node("Exp", ["a"], ["r"])])]
    mixed = function_model([call("G", ["x"], ["u"]), call("H", ["u"], ["v"]), call("G", ["v"], ["w"]), node("foo", ["w"], ["y"], domain="elsewhere")], old)
    old[0].opset_import[0].version = mixed.functions[0].opset_import[0].version = 13
    p = t.call("read", t.write("old.onnx", mixed.SerializeToString()), "--onnx", "-o", t.at("old-read.onnx"), text=True)
    plain = onnx.load(t.at("old-read.onnx")) if not p.returncode else mixed
    kept = [n.op_type for n in plain.graph.node], sorted(x.name for x in plain.functions)
    t.case("functions: what one that stays calls is kept", "" if kept == (["G", "Exp", "G", "foo"], ["G", "H"]) and p.stderr.count("opset 13") == 1 else "%s %s" % (kept, p.stderr))
    spelled = function_model([call("G", ["x"], ["y"])], [f("G", ["a"], ["r"], [node("Exp", ["a"], ["r"], domain="ai.onnx", name="")])])
    spelled.functions[0].opset_import.extend([helper.make_opsetid("ai.onnx", 18), helper.make_opsetid("unused", 3)])
    spelled.functions[0].opset_import[1].version = 2
    spelled.functions[0].node[0].name = ""
    p = t.call("read", t.write("spelled.onnx", spelled.SerializeToString()), "--onnx", "-o", t.at("spelled-read.onnx"), text=True)
    plain = onnx.load(t.at("spelled-read.onnx")) if not p.returncode else spelled
    domains = {o.domain: o.version for o in plain.opset_import}
    t.case("functions: opsets of other domains, and the standard one by name", "" if [n.op_type for n in plain.graph.node] == ["Exp"] and domains.get("unused") == 3 and domains.get("f") == 1 else "%s %s" % (domains, p.stderr))
    own = fn(MS, "QuickGelu", ["a"], ["r"], [node("Neg", ["a"], ["r"])], [helper.make_opsetid("", 18)])
    known = helper.make_model(helper.make_graph([node("QuickGelu", ["x"], ["y"], domain=MS)], "g", *([helper.make_tensor_value_info(n, T.FLOAT, [2, 4])] for n in "xy")), opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(MS, 1)], functions=[own], ir_version=10)
    t.good("read", t.write("known.onnx", known.SerializeToString()), "--onnx", "-o", t.at("known-read.onnx"))
    x = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)
    off = abs(execute(t.at("known-read.onnx"), {"x": x})[0] - x / (1 + np.exp(-1.702 * x))).max()
    t.case("functions: an operator that is known is no call", "" if off < 1e-5 else "off by %.3g" % off)
    inlined("functions: a call for nobody", function_model([node("Neg", ["x"], ["y"]), call("G", ["x"], [])], [f("G", ["a"], ["r"], [node("Exp", ["a"], ["r"])])]), lambda path, f: [-f["x"]])
    for what, words, m in (
            ("more inputs than it takes", ["2 inputs", "at most 1"], function_model([call("G", ["x", "x"], ["y"])], [f("G", ["a"], ["r"], [node("Exp", ["a"], ["r"])])])),
            ("more outputs than it gives", ["2 outputs", "at most 1"], function_model([call("G", ["x"], ["y", "z"])], [f("G", ["a"], ["r"], [node("Exp", ["a"], ["r"])])])),
            ("no name", ["a function has no name"], function_model([call("G", ["x"], ["y"])], [f("", ["a"], ["r"], [node("Exp", ["a"], ["r"])])])),
            ("a node without an operator", ["node 0 of function G has no operator"], function_model([call("G", ["x"], ["y"])], [f("G", ["a"], ["r"], [node("", ["a"], ["r"])])]))):
        p = t.call("read", t.write("bad.onnx", m.SerializeToString()), text=True)
        t.case("functions: %s" % what, "" if p.returncode == 3 and all(w in p.stderr for w in words) else "status %d: %s" % (p.returncode, p.stderr))
    for field in "name", "op":
        m = function_model([call("G", ["x"], ["y"])], [f("G", ["a"], ["r"], [node("Exp", ["a"], ["r"])])])
        m.functions[0].ClearField("name") if field == "name" else m.functions[0].node[0].ClearField("op_type")
        p = t.call("read", t.write("bad.onnx", m.SerializeToString()), text=True)
        t.case("functions: a %s that is left out" % field, "" if p.returncode == 3 and ("no name" if field == "name" else "no operator") in p.stderr else "status %d: %s" % (p.returncode, p.stderr))
    loop = function_model([call("A", ["x"], ["y"])], [f("A", ["a"], ["r"], [call("B", ["a"], ["r"])]), f("B", ["a"], ["r"], [call("A", ["a"], ["r"])])])
    p = t.call("read", t.write("cycle.onnx", loop.SerializeToString()), text=True)
    t.case("functions: calls in a circle are refused", "" if p.returncode == 3 and "call" in p.stderr else "status %d: %s" % (p.returncode, p.stderr))
    double = [f("D0", ["a"], ["r"], [node("Exp", ["a"], ["r"])])] + [f("D%d" % i, ["a"], ["r"], [call("D%d" % (i - 1), ["a"], ["h"]), call("D%d" % (i - 1), ["h"], ["r"])]) for i in range(1, 28)]
    p = t.call("read", t.write("many.onnx", function_model([call("D27", ["x"], ["y"])], double).SerializeToString()), text=True)
    t.case("functions: 2^27 nodes are refused", "" if p.returncode == 3 and "more than" in p.stderr else "status %d: %s" % (p.returncode, p.stderr[-300:]))


def check_circular():
    """A function that calls itself, here from a loop's body, is refused at once."""
    body = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["keep"], ["keep_out"]), onnx.helper.make_node("foo", ["a"], ["b"], domain="local")], "body",
                                  [onnx.ValueInfoProto(name=n) for n in ("i", "keep", "a")], [onnx.ValueInfoProto(name=n) for n in ("keep_out", "b")])
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("local", 1)]
    foo = onnx.helper.make_function("local", "foo", ["x"], ["y"], [onnx.helper.make_node("Loop", ["", "", "x"], ["y"], body=body)], opsets)
    x, y = (onnx.helper.make_tensor_value_info(n, 1, [2]) for n in "xy")
    m = onnx.helper.make_model(onnx.helper.make_graph([onnx.helper.make_node("foo", ["x"], ["y"], domain="local")], "g", [x], [y]), functions=[foo], opset_imports=opsets)
    onnx.save(m, t.at("circular.onnx"))
    p = t.call("read", t.at("circular.onnx"), text=True, timeout=20)
    t.case("a function that calls itself", "" if p.returncode == 3 and "calls itself" in p.stderr else "%d %s" % (p.returncode, p.stderr))


def distances(to):
    """Distances as Falcon's ALiBi counts them: whole numbers become `to`, times slopes in bfloat16, become floats."""
    slopes = helper.make_tensor("slopes", T.BFLOAT16, [3, 1], helper.make_tensor("s", T.FLOAT, [3], [0.3, 0.07, 0.011]).float_data)
    nodes = [helper.make_node("Cast", ["places"], ["cast"], "cast", to=to), helper.make_node("Mul", ["slopes", "cast"], ["product"]), helper.make_node("Cast", ["product"], ["y"], to=T.FLOAT)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("places", T.INT64, [1, 9])], [info("y", T.FLOAT, [3, 9])], [slopes])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def check_casts():
    """TorchScript's exporter writes 15, torch's number of bfloat16, which is ONNX's of complex128; other complex numbers stay what they are."""
    places = np.array([[0, 1, 2, 3, 255, 256, 257, 301, 999]])
    want = ReferenceEvaluator(distances(T.BFLOAT16)).run(None, {"places": places})[0]
    onnx.save(distances(T.COMPLEX128), t.at("cast.onnx"))
    got = evaluate(t.at("cast.onnx"), {"places": places})
    t.case("a cast to bfloat16 by torch's number", "" if got and np.array_equal(got[0], want) else "%s, should be %s" % (got, want))
    p = t.call("read", t.at("cast.onnx"), "--onnx", "-o", t.at("mended.onnx"), text=True)
    said = [n.attribute[0].i for n in onnx.load(t.at("mended.onnx")).graph.node if n.name == "cast"]
    t.case("... is written as ONNX's, with a warning", "" if said == [T.BFLOAT16] and "cast (Cast) says complex128" in p.stderr else "%s %s" % (said, p.stderr))
    onnx.save(distances(T.COMPLEX64), t.at("complex.onnx"))
    p = t.call("read", t.at("complex.onnx"), text=True)
    t.case("a cast to other complex numbers is refused", "" if p.returncode == 3 and "complex64" in p.stderr else "%d %s" % (p.returncode, p.stderr))


if __name__ == "__main__":
    t.main(check_circular, check_casts, check_operators, check_group_norm, check_group_open, check_near, check_half, check_free, check_kept, check_expanded, check_flattened, check_einsum, check_lifted, check_unknown, check_functions, check_matrix,
           floor=358)
