#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""read, wire, json, tensor: everything that brings a model in and out.

Python's onnx and json_format are the judges. Builds read_driver.c with ASan and UBSan in a temporary folder.
Usage: python tests/test_read.py [path/to/mlo]
"""
import glob, json, os, shutil, subprocess
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_model
from google.protobuf import json_format
import harness as t
from harness import case, write


def run(*args, env=None, cwd=None): return subprocess.run([driver, *args], capture_output=True, env=env, cwd=cwd)


def build():
    return t.counted("read_driver") or t.inside("read_driver")


def tensors_of(message):
    """Every TensorProto in a message."""
    if isinstance(message, T):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type:
            for item in value if field.is_repeated else [value]:
                yield from tensors_of(item)


def plain(model):
    """The model without what external data leaves behind."""
    for t in tensors_of(model):
        if t.HasField("data_location") and t.data_location == T.DEFAULT:
            t.ClearField("data_location")
        keep = [e for e in t.metadata_props if e.key != "mlo.digest"]
        del t.metadata_props[:]
        t.metadata_props.extend(keep)
    keep = [e for e in model.metadata_props if e.key != "mlo.data_dir"]
    del model.metadata_props[:]
    model.metadata_props.extend(keep)
    model.DiscardUnknownFields()
    return model


def differ(a, b):
    """Why two models differ, "" when they do not. NaNs compare by their text."""
    if a == b or a.SerializeToString(deterministic=True) == b.SerializeToString(deterministic=True):
        return ""
    x, y = str(a).splitlines(), str(b).splitlines()
    for i, (p, q) in enumerate(zip(x, y)):
        if p != q:
            return f"line {i}: {p.strip()[:80]} / {q.strip()[:80]}"
    return "" if len(x) == len(y) else f"{len(x)} / {len(y)} lines"


def parsed(r, kind):
    """What the driver wrote, as a ModelProto: from JSON with its references resolved the way a user would."""
    if r.returncode:
        raise ValueError(r.stderr.decode()[-300:])
    if kind == "onnx":
        return plain(onnx.ModelProto.FromString(r.stdout))
    model = json_format.Parse(r.stdout, onnx.ModelProto())
    folder = [e.value for e in model.metadata_props if e.key == "mlo.data_dir"]
    if folder:
        load_external_data_for_model(model, folder[0])
    return plain(model)


def round_trips(path, want):
    """Every way in and out gives the same model."""
    yield "file -> onnx", lambda: parsed(run("copy", path, "onnx"), "onnx")
    yield "memory -> onnx", lambda: parsed(run("copy", "mem:" + path, "onnx", "dir=" + os.path.dirname(path)), "onnx")
    yield "file -> JSON", lambda: parsed(run("copy", path, "json"), "json")
    yield "file -> inline JSON", lambda: parsed(run("copy", path, "json", "inline=1"), "json")
    js = write("a.json", run("copy", path, "json").stdout)
    yield "JSON file -> onnx", lambda: parsed(run("copy", js, "onnx"), "onnx")
    yield "JSON memory -> onnx", lambda: parsed(run("copy", "mem:" + js, "onnx"), "onnx")
    inline = write("b.json", run("copy", path, "json", "inline=1").stdout)
    yield "inline JSON -> onnx", lambda: parsed(run("copy", inline, "onnx"), "onnx")
    if t.have("jq JSON -> onnx", "jq"):
        jq = write("c.json", subprocess.run(["jq", ".", js], capture_output=True).stdout)
        yield "jq JSON -> onnx", lambda: parsed(run("copy", jq, "onnx"), "onnx")
    google = write("d.json", json_format.MessageToJson(want))
    yield "json_format -> onnx", lambda: parsed(run("copy", google, "onnx"), "onnx")
    snake = write("e.json", json_format.MessageToJson(want, preserving_proto_field_name=True, ensure_ascii=False))
    yield "snake_case -> onnx", lambda: parsed(run("copy", snake, "onnx"), "onnx")


def trips(name, path):
    want = plain(onnx.load(path))
    for what, make in round_trips(path, want):
        try:
            why = differ(make(), want)
        except Exception as e:
            why = f"{type(e).__name__}: {e}"[:300]
        case(f"{name}: {what}", why)
    a, b = run("copy", path, "json").stdout, run("copy", t.at("a.json"), "json").stdout
    case(f"{name}: JSON of JSON is the same text", "" if a == b and a else "texts differ")


def all_types():
    """One tensor of each element type and encoding."""
    rng = np.random.default_rng(1)
    out = []
    for name, number in T.DataType.items():
        if name in ("UNDEFINED", "FLOAT6E2M3", "FLOAT6E3M2"):
            continue
        for raw in (0, 1):
            if name == "STRING":
                if not raw:
                    out.append(helper.make_tensor("STRING", T.STRING, [3], [b"a", b"\x00\xff", b""]))
                continue
            bits = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}.get(name, 0)
            size = np.dtype(helper.tensor_dtype_to_np_dtype(number)).itemsize
            t = T(name=f"{name}_{raw}", data_type=number, dims=[7, 3] if not raw else [3, 7])
            data = rng.integers(0, 256, (21 * bits + 7) // 8 if bits else 21 * size, dtype=np.uint8)
            if bits:
                data[-1] &= (1 << (21 * bits % 8 or 8)) - 1
            if name == "BOOL":
                data &= 1
            if raw:
                t.raw_data = data.tobytes()
            elif name in ("FLOAT", "COMPLEX64"):
                t.float_data.extend(data.view("<f4").tolist())
            elif name in ("DOUBLE", "COMPLEX128"):
                t.double_data.extend(data.view("<f8").tolist())
            elif name == "INT64":
                t.int64_data.extend(data.view("<i8").tolist())
            elif name == "UINT64":
                t.uint64_data.extend(data.view("<u8").tolist())
            elif name == "UINT32":
                t.uint64_data.extend(data.view("<u4").tolist())
            else:
                t.int32_data.extend(data.view({1: "<i1" if name == "INT8" else "u1", 2: "<i2" if name == "INT16" else "<u2", 4: "<i4"}[1 if bits else size]).tolist())
            out.append(t)
    return out


def node_device(node):
    """Says where a node runs, in every way there is; returns the configuration's name."""
    d = node.device_configurations.add(configuration_id="two", pipeline_stage=0)
    spec = d.sharding_spec.add(tensor_name="x", device=[0, -1])
    spec.index_to_device_group_map.add(key=-1, value=[0, 1])
    spec.sharded_dim.add(axis=1).simple_sharding.add(dim_value=3, num_shards=2)
    spec.sharded_dim.add(axis=0).simple_sharding.add(dim_param="batch", num_shards=1)
    return "two"


def kitchen_sink():
    """A small model that sets every field mlo knows."""
    extreme = [0.0, -0.0, 1e-45, 3.4028234663852886e38, -3.4028234663852886e38, float("inf"), float("-inf"), float("nan"), 0.1, 1 / 3, 16777216, 1e-12]
    x = helper.make_tensor_value_info("x", T.FLOAT, ["batch", 3, None], "doc \u00e4\u20ac\U0001f600 \"quoted\" \\ \n\t\x01\x7f")
    x.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    x.type.denotation = "TENSOR"
    x.metadata_props.add(key="k", value="")
    others = [onnx.ValueInfoProto(name=f"v{i}") for i in range(5)]
    others[0].type.sequence_type.elem_type.map_type.key_type = T.INT64
    others[0].type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = T.FLOAT
    others[1].type.optional_type.elem_type.sparse_tensor_type.elem_type = T.FLOAT
    others[1].type.optional_type.elem_type.sparse_tensor_type.shape.dim.add().dim_value = -1
    others[2].type.opaque_type.domain, others[2].type.opaque_type.name = "d", "n"
    others[3].type.tensor_type.elem_type = T.FLOAT
    others[3].type.tensor_type.shape.SetInParent()
    sub = helper.make_graph([helper.make_node("Identity", ["x"], ["inner"])], "sub", [], [onnx.ValueInfoProto(name="inner")])
    sparse = onnx.SparseTensorProto(values=helper.make_tensor("sv", T.FLOAT, [2], [1, 2]), indices=helper.make_tensor("si", T.INT64, [2], [0, 5]), dims=[2, 3])
    a = onnx.AttributeProto
    attrs = [a(name="f", type=a.FLOAT, f=extreme[4]), a(name="f0", type=a.FLOAT, f=0), a(name="i", type=a.INT, i=-(2**63)), a(name="s", type=a.STRING, s=b"\x00\xff\xfe"),
             a(name="e", type=a.STRING, s=b""), a(name="t", type=a.TENSOR, t=helper.make_tensor("at", T.FLOAT, [], [1])), a(name="g", type=a.GRAPH, g=sub),
             a(name="floats", type=a.FLOATS, floats=extreme), a(name="ints", type=a.INTS, ints=[2**63 - 1, -(2**63), 0, 2**53 + 1]), a(name="strings", type=a.STRINGS, strings=[b"a", b"", b"\x00"]),
             a(name="tensors", type=a.TENSORS, tensors=[helper.make_tensor("at2", T.STRING, [1], [b"z"])]), a(name="graphs", type=a.GRAPHS, graphs=[]),
             a(name="tp", type=a.TYPE_PROTO, tp=others[0].type), a(name="tps", type=a.TYPE_PROTOS, type_protos=[others[1].type, others[2].type]),
             a(name="sp", type=a.SPARSE_TENSOR, sparse_tensor=sparse), a(name="sps", type=a.SPARSE_TENSORS, sparse_tensors=[sparse, sparse]),
             a(name="ref", ref_attr_name="outer", doc_string="d", type=a.INT)]
    node = onnx.NodeProto(input=["x", "", "w"], output=["y", ""], name="n\u00e9", op_type="Everything", domain="test.domain", overload="o", doc_string="", attribute=attrs)
    node.metadata_props.add(key="a", value="b")
    w = numpy_helper.from_array(np.arange(300, dtype=np.float32), "w")
    w.doc_string = "weights"
    w.metadata_props.add(key="wk", value="wv")
    w.segment.begin, w.segment.end = 1, 2
    typed = helper.make_tensor("typed", T.FLOAT, [len(extreme)], extreme)
    twice = helper.make_tensor("twice", T.DOUBLE, [4], [1e300, 5e-324, 0.1, float("nan")])
    big = helper.make_tensor("big", T.UINT64, [2], [2**64 - 1, 2**53 + 1])
    g = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")], [w, typed, twice, big, *all_types()], "graph doc", others)
    sparse2 = onnx.SparseTensorProto()
    sparse2.CopyFrom(sparse)
    g.sparse_initializer.append(sparse2)
    g.quantization_annotation.add(tensor_name="x").quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    g.metadata_props.add(key="gk", value="gv")
    f = helper.make_function("fd", "F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 18)], ["alpha"], [a(name="beta", type=a.FLOAT, f=1)], overload="ov",
                             value_info=[onnx.ValueInfoProto(name="b")])
    f.doc_string = "fdoc"
    f.metadata_props.add(key="fk", value="fv")
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 23), helper.make_opsetid("test.domain", 2**53 + 1)], functions=[f], ir_version=11, producer_name="p", producer_version="pv", doc_string="d")
    m.domain, m.model_version = "dom", -1
    where = node_device(m.graph.node[0])
    m.configuration.add(name=where, num_devices=2, device=["a", "b"])
    training = m.training_info.add(initialization=sub, algorithm=sub)
    training.initialization_binding.add(key="w", value="inner")
    training.update_binding.add(key="w", value="inner")
    m.metadata_props.add(key="mk", value="mv")
    return m


def check_elements():
    """Elements as mlo reads them, against numpy_helper."""
    m = helper.make_model(helper.make_graph([], "g", [], [], all_types()))
    path = write("types.onnx", m.SerializeToString())
    r = run("dump", path)
    lines = r.stdout.decode().splitlines()
    case("elements: every type can be loaded", "" if r.returncode == 0 and len(lines) == len(m.graph.initializer) else r.stderr.decode()[-200:] + " " + str(lines[-1:]))
    for line, t in zip(lines, m.graph.initializer):
        name, number, count, *values = line.split()
        if name.startswith(("STRING", "COMPLEX")):
            continue
        a = numpy_helper.to_array(t)
        want = a.astype(np.float64).ravel()
        got = np.array([float(v) for v in values])
        case(f"elements: {name}", "" if got.shape == want.shape and np.array_equal(got, want, equal_nan=True) else f"{got[:4]} / {want[:4]}")
    r = run("equal", path)
    rows = r.stdout.decode().split()
    same = all((c == "1") == (i == k) for i, row in enumerate(rows) for k, c in enumerate(row))
    case("elements: tensors equal themselves and no other", "" if rows and same and r.returncode == 0 else r.stdout.decode()[:200] + r.stderr.decode()[-200:])


def unpacked():
    """Repeated numbers one by one, where the schema packs them; and fields in odd order, merged, doubled."""
    def varint(v):
        v &= (1 << 64) - 1
        out = b""
        while v > 127:
            out += bytes([v & 127 | 128])
            v >>= 7
        return out + bytes([v])
    key = lambda n, w: varint(n << 3 | w)
    ln = lambda n, b: key(n, 2) + varint(len(b)) + b
    tensor = b"".join(key(7, 0) + varint(v) for v in (1, -2, 3)) + ln(8, b"a") + key(2, 0) + varint(7) + ln(1, varint(3)) + key(2, 0) + varint(7)
    floats = b"".join(key(4, 5) + np.float32(v).tobytes() for v in (1.5, -2.5)) + ln(4, np.float32(4).tobytes()) + ln(8, b"b") + key(2, 0) + varint(1) + key(1, 0) + varint(3)
    attr = ln(1, b"ints") + ln(8, varint(5) + varint(-6)) + key(8, 0) + varint(7) + key(20, 0) + varint(7) + key(20, 0) + varint(99)
    node = ln(5, attr) + ln(4, b"Op") + ln(2, b"y") + ln(1, b"a") + ln(10, b"\x0a\x01z") + key(99, 0) + varint(2**63) + key(98, 5) + b"abcd" + key(97, 1) + b"abcdefgh"
    dim = ln(2, b"sym") + key(1, 0) + varint(4)
    info = ln(1, b"x") + ln(2, ln(1, key(1, 0) + varint(1) + ln(2, ln(1, dim)))) + ln(2, ln(1, ln(2, ln(1, ln(2, b"t")))))
    graph = ln(2, b"old") + ln(5, tensor) + ln(2, b"new") + ln(11, info)
    return ln(7, graph) + ln(7, ln(1, node) + ln(5, floats)) + key(1, 0) + varint(8)


def refuses(name, path, words, code, options=(), what="read"):
    r = run(what, path, "json", *options)
    err = r.stderr.decode().strip()
    status = {"MLO_E_FORMAT": 3, "MLO_E_GRAPH": 3, "MLO_E_DATA": 3, "MLO_E_SHAPE": 3, "MLO_E_TYPE": 3, "MLO_E_IO": 2, "MLO_E_USAGE": 2, "MLO_E_LOOP": 4}[code]
    try:
        doc = json.loads(r.stdout)["error"]
        why = "" if doc["code"] == code and sorted(doc) == ["code", "message", "node", "op", "stage"] else f"document {doc}"
    except Exception as e:
        why = f"no error document: {e} {r.stdout[:80]}"
    if r.returncode != status:
        why = f"status {r.returncode}, not {status}: {err[-300:]}"
    elif not err.startswith("mlo: ") or "\n" in err or not err.endswith(f"[{code}]"):
        why = f"message: {err[-300:]}"
    missing = [w for w in words if w not in err]
    case(f"refuses {name}", why or (f"says '{err}', without {missing}" if missing else ""))
    return r


def small(nodes, inits=(), inputs=None, output=None):
    x = inputs or [helper.make_tensor_value_info("x", T.FLOAT, ["batch", "seq"])]
    return helper.make_model(helper.make_graph(nodes, "g", x, [onnx.ValueInfoProto(name=output or nodes[-1].output[0])], list(inits)), opset_imports=[helper.make_opsetid("", 18)])


def check_refusals():
    data = open(sample, "rb").read()
    node = helper.make_node
    refuses("a truncated file", write("cut.onnx", data[:5000]), ["cut short", "5000"], "MLO_E_FORMAT")
    refuses("a text file", write("text.onnx", "hello, world\nthis is no model\n"), ["text", "hello, world"], "MLO_E_FORMAT")
    refuses("an empty file", write("empty.onnx", b""), ["empty"], "MLO_E_FORMAT")
    refuses("blanks", write("blank.onnx", b" \n\n"), ["text"], "MLO_E_FORMAT")
    refuses("a directory", t.tmp, ["plain file"], "MLO_E_IO")
    refuses("a missing file", t.at("nothing.onnx"), ["nothing.onnx"], "MLO_E_IO")
    refuses("a model without a graph", write("nograph.onnx", onnx.ModelProto(ir_version=8).SerializeToString()), ["graph"], "MLO_E_FORMAT")
    relu = write("relu.onnx", small([node("Relu", ["x"], ["y"])]).SerializeToString())
    refuses("an unknown --dim", relu, ["'sequence'", "'batch'", "'seq'"], "MLO_E_USAGE", ["dim=sequence=32"])
    refuses("a --dim without a number", relu, ["seq=thirty"], "MLO_E_USAGE", ["dim=seq=thirty"])
    refuses("an unknown --shape", relu, ["'y'", "'x'"], "MLO_E_USAGE", ["shape=y=1x2"])
    refuses("a --shape of another rank", relu, ["rank 3"], "MLO_E_SHAPE", ["shape=x=1x2x3"])
    refuses("a --shape that is none", relu, ["1x128"], "MLO_E_USAGE", ["shape=x=1xx2"])
    cycle = small([node("Add", ["x", "b"], ["a"], "first"), node("Relu", ["a"], ["b"], "second")])
    refuses("a cycle", write("cycle.onnx", cycle.SerializeToString()), ["cycle", "'first'", "'second'"], "MLO_E_GRAPH")
    refuses("a missing value", write("missing.onnx", small([node("Add", ["x", "nowhere"], ["a"], "adder")]).SerializeToString()), ["nowhere", "adder"], "MLO_E_GRAPH")
    w = numpy_helper.from_array(np.zeros(100, np.float32), "w")
    short = T()
    short.CopyFrom(w)
    short.raw_data = short.raw_data[:-1]
    refuses("a tensor with too few bytes", write("short.onnx", small([node("Add", ["x", "w"], ["a"])], [short]).SerializeToString()), ["399", "400"], "MLO_E_DATA")
    for where, code in (("../w.data", "MLO_E_DATA"), ("/etc/passwd", "MLO_E_DATA"), ("", "MLO_E_DATA"), ("no.data", "MLO_E_IO"), ("few.data", "MLO_E_DATA")):
        write("few.data", b"x" * 100)
        e = T(name="w", data_type=T.FLOAT, dims=[100], data_location=T.EXTERNAL)
        e.external_data.add(key="location", value=where)
        refuses(f"external data at '{where}'", write("ext.onnx", small([node("Add", ["x", "w"], ["a"])], [e]).SerializeToString()), [where], code)
    bad = small([node("Relu", ["x"], ["y"])]).SerializeToString().replace(b"Relu", b"Re\xfflu"[:4])
    refuses("a string that is not UTF-8", write("utf8.onnx", bad), ["UTF-8"], "MLO_E_FORMAT")
    refuses("a string with NUL", write("nul.onnx", small([node("Relu", ["x"], ["y"])]).SerializeToString().replace(b"Relu", b"Re\0u")), ["UTF-8"], "MLO_E_FORMAT")


def check_json_refusals():
    good = json_format.MessageToJson(small([helper.make_node("Relu", ["x"], ["y"], doc_string="d")]))
    for name, text, words in (
            ("JSON cut short", good[:200], ["200"]), ("text after JSON", good + " x", ["more text follows"]), ("two JSON models", good + good, ["more text follows"]),
            ("\\u0000 in JSON", good.replace('"d"', '"a\\u0000b"'), ["u0000"]), ("a lone surrogate in JSON", good.replace('"d"', '"\\ud800"'), ["goes wrong"]),
            ("bad UTF-8 in JSON", good.encode().replace(b'"d"', b'"\xff"'), ["UTF-8"]), ("an unknown field", good.replace('"opType"', '"optype"'), ["graph.node[0].optype", "NodeProto"]),
            ("a field twice", good.replace('"opType"', '"op_type":"a","opType"'), ["twice"]), ("a number that JSON rounds", good.replace('"irVersion": "', '"irVersion": 9007199254740993, "x": "'), ["irVersion", "string"]),
            ("a string for a list", good.replace('"input": [\n          "x"\n        ]', '"input": "x"'), ["graph.node[0].input", "array"]), ("null in a list", good.replace('"x"\n', 'null\n', 1), ["null"]),
            ("depth without end", '{"graph":' + "[" * 5000, ["nested"]), ("objects without end", '{"graph":' + '{"node":[{"attribute":[{"g":' * 60 + "{}" + "}]}]}" * 60 + "}", ["nested too deep"]), ("an array", "[]", ["text"]),
            *[(f"irVersion: {x}", good.replace('"irVersion": "', f'"irVersion": {x}, "x": "'), ["irVersion", "whole number"]) for x in ("9.5", '"9.5"', "-0.5", '"9.5e0"', "1e-1")],
            ("half an axis", good.replace('"doc', '"attribute":[{"name":"axis","type":"INT","i":0.5}],"doc'), ["graph.node[0].attribute[0].i", "whole number"]),
            ("half a type", good.replace('"elemType": 1', '"elemType": 1.5', 1), ["elemType", "whole number"]),
            ("half a size", good.replace('"dimParam": "batch"', '"dimValue": 2.5', 1), ["dimValue", "whole number"]),
            ("an empty object", "{}", ["graph"]), ("a list of errors", '{"error":[]}', ["error"])):
        refuses(name, write("bad.json", text), words, "MLO_E_FORMAT")
    doc = {"error": {"stage": "roll", "code": "MLO_E_LOOP", "node": "node_7", "op": "Add", "message": "layer 2 differs \u00e4; look"}}
    r = refuses("what an earlier stage refused", write("error.json", json.dumps(doc)), ["mlo: roll: node_7 (Add): layer 2 differs \u00e4; look [MLO_E_LOOP]"], "MLO_E_LOOP")
    case("passes an error document on unchanged", "" if json.loads(r.stdout) == doc else str(r.stdout))


def check_changed_source():
    """Weights that changed under a reference are an error."""
    data = bytearray(open(sample, "rb").read())
    path = write("changing.onnx", bytes(data))
    js = write("changing.json", run("copy", path, "json").stdout)
    case("a source that did not change is read", "" if run("copy", js, "onnx").returncode == 0 else "refused")
    ref = next(t for t in json.loads(open(js).read())["graph"]["initializer"] if t.get("dataLocation") == "EXTERNAL")
    offset = int(next(e["value"] for e in ref["externalData"] if e["key"] == "offset"))
    data[offset + 3] ^= 1
    write("changing.onnx", bytes(data))
    refuses("a source with a weight changed", js, ["changed", "changing.onnx"], "MLO_E_DATA")
    data[offset + 3] ^= 1
    write("changing.onnx", bytes(data[:-1]))
    refuses("a source that was cut", js, ["changing.onnx"], "MLO_E_DATA")
    os.remove(path)
    refuses("a source that is gone", js, ["changing.onnx"], "MLO_E_IO")


def check_data_file():
    """What is larger than the limit goes to one file beside the model, whether it lies in a file or in memory (as of JSON that holds it)."""
    held = write("held.json", json_format.MessageToJson(onnx.load(sample)))
    for name, path in ("data file", sample), ("data file, of data in memory", held):
        r = run("copy", path, "onnx", "data-limit=1000", "data-file=two.data", cwd=t.tmp)
        write("two.onnx", r.stdout)
        try:
            why = differ(plain(onnx.load(t.at("two.onnx"))), plain(onnx.load(sample)))
        except Exception as e:
            why = f"{e} {r.stderr.decode()[-300:]}"
        case(name, why or ("" if len(r.stdout) < 100000 else "the model still holds the data"))
    trips("data file", t.at("two.onnx"))


def check_stage():
    """What the read stage does to a graph."""
    node = helper.make_node
    def read(model, *options):
        return parsed(run("read", write("stage.onnx", model.SerializeToString()), "onnx", *options), "onnx")
    m = read(small([node("Relu", ["b"], ["c"], "third"), node("Relu", ["a"], ["b"], "second"), node("Relu", ["x"], ["a"], "first")], output="c"))
    case("sorts nodes", "" if [n.name for n in m.graph.node] == ["first", "second", "third"] else str([n.name for n in m.graph.node]))
    case("sets mlo.stage", "" if [(e.key, e.value) for e in m.metadata_props] == [("mlo.stage", "read")] else str(m.metadata_props))
    branch = lambda name: helper.make_graph([node("Identity", ["late"], [name])], name, [], [onnx.ValueInfoProto(name=name)])
    m = read(small([node("If", ["c"], ["y"], "if", then_branch=branch("t"), else_branch=branch("e")), node("Relu", ["x"], ["late"], "late")],
                   output="y", inputs=[helper.make_tensor_value_info("c", T.BOOL, []), helper.make_tensor_value_info("x", T.FLOAT, [2])]))
    case("sorts by what subgraphs use", "" if [n.name for n in m.graph.node] == ["late", "if"] else str([n.name for n in m.graph.node]))
    x = [helper.make_tensor_value_info("x", T.FLOAT, ["batch", "seq"])]
    consts = small([node("Constant", [], ["k"], value=numpy_helper.from_array(np.float32([1, 2]))), node("Constant", [], ["i"], value_int=3), node("Constant", [], ["l"], value_floats=[1.0, 2.0]),
                    node("Test", ["x", "k", "i", "l", "w"], ["y"], domain="t")], [numpy_helper.from_array(np.float32(1), "w")], x + [helper.make_tensor_value_info("w", T.FLOAT, [])])
    consts.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    m = read(consts, "dim=seq=7", "shape=x=2x7")
    inits = {t.name: numpy_helper.to_array(t).tolist() for t in m.graph.initializer}
    case("Constant nodes become initializers", "" if [n.op_type for n in m.graph.node] == ["Test"] and inits == {"w": 1.0, "k": [1, 2], "i": 3, "l": [1, 2]} else str(inits))
    case("inputs with initializers are no inputs", "" if [i.name for i in m.graph.input] == ["x"] else str(m.graph.input))
    case("--dim and --shape bind", "" if [d.dim_value for d in m.graph.input[0].type.tensor_type.shape.dim] == [2, 7] else str(m.graph.input))
    js = write("later.json", run("read", write("stage.onnx", consts.SerializeToString()), "json").stdout)
    m = parsed(run("read", js, "onnx", "dim=seq=9", "dim=batch=1"), "onnx")
    r = run("twice", write("stage.onnx", consts.SerializeToString()), "onnx", "dim=seq=9")
    case("--dim is used up once bound", "" if r.returncode == 0 else r.stderr.decode() or "it says nothing")
    case("--dim binds in what was read before", "" if [d.dim_value for d in m.graph.input[0].type.tensor_type.shape.dim] == [1, 9] else str(m.graph.input))


def check_held():
    """Inputs that are constants of the model (--hold): ONNX Runtime's numbers of both are the same."""
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["x", "mask"], ["a"], "adder"), helper.make_node("Gather", ["a", "at"], ["y"], "picks", axis=1)]
    model = small(nodes, inputs=[info("x", T.FLOAT, ["batch", "seq"]), info("mask", T.FLOAT, [1, "seq"]), info("at", T.INT64, ["picked"])], output="y")
    model.ir_version = 8
    path, r = write("held.onnx", model.SerializeToString()), np.random.default_rng(1)
    given = {"mask": r.normal(size=(1, 5)).astype(np.float32), "at": np.int64([4, 0, 2])}
    x = r.normal(size=(2, 5)).astype(np.float32)
    held = lambda **arrays: (np.savez(t.at("given.npz"), **arrays), t.at("given.npz"))[1]
    m = onnx.load_from_string(t.good("read", path, "--hold", held(**given), "--onnx"))
    case("held inputs are initializers", "" if [i.name for i in m.graph.input] == ["x"] and {i.name for i in m.graph.initializer} == {"mask", "at"} else str(m.graph))
    case("... and bind what was open", "" if [d.dim_value or d.dim_param for d in m.graph.input[0].type.tensor_type.shape.dim] == ["batch", 5] else str(m.graph.input))
    numbers = lambda model, **more: ort.InferenceSession(model.SerializeToString()).run(None, {"x": x, **more})[0]
    case("... with the numbers of the model that gets them", "" if np.array_equal(numbers(m), numbers(model, **given)) else "others")
    write("unheld.json", t.good("read", path))
    piped = json_format.Parse(t.good("read", t.at("unheld.json"), "--hold", t.at("given.npz")), onnx.ModelProto(), ignore_unknown_fields=True)
    case("what was read before holds them, too", "" if [i.name for i in piped.graph.input] == ["x"] else str(piped.graph.input))
    np.savez(t.at("x.npz"), x=x)
    t.good("run", path, "--hold", t.at("given.npz"), "--inputs", t.at("x.npz"), "--outputs", t.at("y.npz"))
    with np.load(t.at("y.npz")) as z: case("run with them", "" if np.array_equal(z["y"], numbers(m)) else "others")
    for name, arrays, words in (("of no input", {"masc": given["mask"]}, ["'masc'", "'mask'"]), ("of another type", {"mask": given["mask"].astype(np.float64)}, ["mask", "double", "float"]),
                                ("of another rank", {"mask": given["mask"][0]}, ["mask", "[5]"]), ("of another size", {"mask": np.repeat(given["mask"], 2, 0)}, ["mask", "[2,5]", "[1,?]"])):
        p = t.call("read", path, "--hold", held(**arrays), text=True)
        case("refuses to hold what is " + name, "" if p.returncode in (2, 3) and p.stderr.count("\n") == 1 and all(w in p.stderr for w in words) else "%d: %s" % (p.returncode, p.stderr))


def check_hostile():
    for name, data in (("binary", abuse_model().SerializeToString()), ("JSON", json_format.MessageToJson(abuse_model(), indent=None))):
        r = run("abuse", write("abuse." + name, data), "-", "dir=" + t.tmp)
        case(f"abused {name}: truncated, mutated, out of memory", "" if r.returncode == 0 else (r.stdout + r.stderr).decode()[-600:])
        print("  " + r.stdout.decode().strip().replace("\n", "; "))


def check_invalid():
    """The invalid models of ONNX's own tests."""
    folder = t.beside("invalid models", "onnx-invalid", "bad")
    if not folder: return
    files, crashed, read = sorted(glob.glob(os.path.join(folder, "*.onnx"))), [], 0
    for way in t.drawn(("from files", "from memory"), 2):
        for path in files:
            r = run("read", path if way == "from files" else "mem:" + path, "json")
            read += r.returncode == 0
            if r.returncode not in (0, 2, 3, 4) or (r.returncode and r.stderr.count(b"\n") != 1):
                crashed.append(os.path.basename(path) + ": " + r.stderr.decode()[-200:])
    case(f"{len(files)} invalid models are refused with a line or read ({read} read)", "; ".join(crashed[:3]) or ("" if len(files) >= 271 else "there are 271 at least"))


def abuse_model():
    m = kitchen_sink()
    del m.graph.initializer[5:]
    m.graph.initializer[0].dims[0] = 80
    m.graph.initializer[0].raw_data = m.graph.initializer[0].raw_data[:320]
    return m


def check_locale():
    """Numbers are the same text everywhere; the second locale's point is two bytes long."""
    want = run("copy", sink, "json").stdout
    for lang in ("de_DE", "ps_AF"):
        env = t.locale(f"numbers in {lang}", lang)
        if not env: continue
        lines = run("numbers", env=env).stdout.decode(errors="replace").splitlines()
        case(f"numbers in {lang}", "" if lines[0].startswith(lang) and all(l.endswith(" ok") and "," not in l for l in lines[1:]) else str(lines))
        case(f"JSON in {lang}", "" if run("copy", sink, "json", env=env).stdout == want else "differs")
        case(f"JSON read in {lang}", "" if run("copy", write("l.json", want), "onnx", env=env).stdout == run("copy", sink, "onnx").stdout else "differs")


def check_round_trips():
    trips("every field", sink)
    trips("odd encodings", write("odd.onnx", unpacked()))
    for name, path in t.drawn(t.models().items(), 3, lambda model: model[0]): trips(name, path)


driver = build()
sink = write("sink.onnx", kitchen_sink().SerializeToString())
sample = t.model("mlp-res")
t.main(check_elements, check_round_trips, check_refusals, check_json_refusals, check_changed_source, check_data_file, check_stage, check_held, check_locale, check_hostile, check_invalid,
       floor=285)
