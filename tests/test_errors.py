#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What mlo does with what it cannot do: one clear line, the documented status, nothing half-written.

Usage: python tests/test_errors.py path/to/mlo [CHECK ...]     (CHECK: a part of a check's name below, without check_)
"""
import errno, glob, io, json, os, re, shutil, signal, subprocess, sys, zipfile
import numpy as np
import onnx
from onnx import TensorProto as T, helper
import graphs
import harness as t
from harness import at, case

STATUS = {"MEMORY": 2, "USAGE": 2, "IO": 2, "FORMAT": 3, "GRAPH": 3, "SHAPE": 3, "TYPE": 3, "DATA": 3, "UNSUPPORTED": 4, "LOOP": 4, "FOLDING": 1, "MISMATCH": 1, "BUG": 5}


def listing(folder):
    """Every file below, and its size."""
    return sorted((os.path.join(d, f), os.lstat(os.path.join(d, f)).st_size) for d, folders, files in os.walk(folder) for f in folders + files)


def wrong(p, code, mentions=(), document=True, stage=None):
    """What is wrong with the way a command failed; '' when nothing is."""
    lines = [l for l in p.stderr.decode(errors="replace").split("\n")[:-1] if not re.match(r"mlo: (warning: |fold: .* choose another$|lower: .* chooses it$)", l)]
    if p.returncode != STATUS[code]: return f"status {p.returncode} and not {STATUS[code]}: {p.stderr.decode(errors='replace')[-300:]}"
    if not p.stderr.endswith(b"\n") or len(lines) != 1: return f"{len(lines)} lines: {lines}"
    if not lines[0].startswith("mlo: ") or not lines[0].endswith(f" [MLO_E_{code}]"): return "says " + lines[0]
    for m in mentions:
        if not re.search(m, lines[0]): return f"does not mention {m!r}: {lines[0]}"
    if not document: return ""
    try: error = json.loads(p.stdout)["error"]
    except Exception as e: return f"stdout holds no error document but {p.stdout[:100]!r}"
    if set(error) != {"stage", "code", "node", "op", "message"}: return f"the document has {sorted(error)}"
    if error["code"] != "MLO_E_" + code or error["message"] not in lines[0] or not error["message"]: return f"the document says {error} and the line {lines[0]}"
    if stage is not None and error["stage"] != stage: return f"the stage is {error['stage']!r} and not {stage!r}"
    return ""


def fails(name, code, *args, mentions=(), document=True, stage=None, **options):
    """A case: this command fails with this code, says one line that mentions all these, and leaves no file behind."""
    os.makedirs(at("here"), exist_ok=True)
    before = listing(at("here"))
    p = t.call(*args, cwd=at("here"), **options)
    left = [f for f in listing(at("here")) if f not in before]
    case(name, wrong(p, code, mentions, document, stage) or (f"left {left[:3]} behind" if left else ""))
    return p


def bert(): return t.read(t.model("bert-1"))


# ---- files that are no models ---------------------------------------------------------------------------------------------------------

def check_not_a_model():
    whole = bert()
    files = {"truncated in the middle": whole[:len(whole) // 2], "a byte short": whole[:-1], "cut after 100 bytes": whole[:100], "a text file": b"This is a text file.\nNot a model.\n",
             "a PNG": b"\x89PNG\r\n\x1a\n" + bytes(range(200)), "noise": np.random.default_rng(1).bytes(5000), "truncated JSON": b'{"irVersion": "8", "graph": {"node": [',
             "blanks": b" " * 64, "JSON of something else": b'[1, 2, 3]\n', "JSON with an unknown field": b'{"irVersion": "8", "grape": {}}', "a zip": zipped({"x.txt": b"hello"})}
    for what, data in files.items():
        path = t.write("bad.onnx", data)
        fails(f"{what}, read", "FORMAT", "read", path, stage="read")
        fails(f"{what}, compile", "FORMAT", "compile", path, "-o", "out")
        fails(f"{what}, by a pipe", "FORMAT", "roll", "-o", "out.onnx", input=data)
    fails("a text file, called so", "FORMAT", "read", t.write("text.onnx", files["a text file"]), mentions=["this is text, 'This is a text file"])
    fails("an empty file", "FORMAT", "read", t.write("empty.onnx", b""), mentions=["empty"])
    fails("an empty pipe", "FORMAT", "read", input=b"", mentions=["empty"])
    fails("a model without a graph", "FORMAT", "read", t.write("nograph.onnx", onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 18)]).SerializeToString()))
    for verb, more in (("read", []), ("compile", ["-o", "out"]), ("show", []), ("run", ["--inputs", t.calibration("bert-1", 1), "--outputs", "y.npz"])):
        fails(f"{verb} of a directory", "IO", verb, t.tmp, *more, mentions=["directory"])
        fails(f"{verb} of nothing", "IO", verb, "/nowhere/x.onnx", *more, mentions=["/nowhere/x.onnx", "[Nn]o such file"])
        fails(f"{verb} of a device", "IO", verb, "/dev/zero", *more, mentions=["/dev/zero"])
    os.mkfifo(at("fifo"))
    fails("a FIFO that nobody writes", "IO", "read", at("fifo"), timeout=10)


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, data in files.items(): z.writestr(name, data)
    return out.getvalue()


def graph(nodes, inputs, outputs, init=(), opset=18):
    from onnx import numpy_helper
    g = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in init])
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("custom", 1)], ir_version=9).SerializeToString()


def tensor(name, *dims): return helper.make_tensor_value_info(name, T.FLOAT, list(dims))


def check_graphs():
    x, y, node = tensor("x", 2, 4), tensor("y", 2, 4), helper.make_node
    single = t.write("single.onnx", graph([node("MatMul", ["x", "w"], ["h"], name="only"), node("Relu", ["h"], ["y"])], [x], [y], [("w", np.eye(4, dtype=np.float32))]))
    for verb, more in (("roll", []), ("quantize", []), ("compile", ["-o", "out"])): fails(f"a model without a repeated layer, {verb}", "LOOP", verb, single, *more, mentions=["repeat"])
    bad = {"a cycle": ("GRAPH", [node("Relu", ["b"], ["a"], name="n1"), node("Relu", ["a"], ["b"], name="n2"), node("Relu", ["x"], ["y"])], []),
           "a cycle that another node leads to": ("GRAPH", [node("Relu", ["b"], ["y"], name="n0"), node("Relu", ["c"], ["b"], name="n1"), node("Relu", ["b"], ["c"], name="n2")], ["'n1' -> 'n2' -> 'n1'|'n2' -> 'n1' -> 'n2'"]),
           "a value nobody makes": ("GRAPH", [node("Add", ["x", "ghost"], ["y"], name="n1")], ["ghost"]),
           "a value made twice": ("GRAPH", [node("Relu", ["x"], ["y"], name="n1"), node("Tanh", ["x"], ["y"], name="n2")], ["y"]),
           "shapes that do not fit": ("SHAPE", [node("MatMul", ["x", "w3"], ["y"], name="n1")], ["n1"]),
           "num_outputs that contradicts": ("SHAPE", [node("Split", ["x"], ["y", "z"], name="n1", num_outputs=3)], ["n1", "num_outputs is 3", "2 outputs"]),
           "num_outputs that contradicts, sizes given": ("SHAPE", [node("Split", ["x", "two"], ["y", "z"], name="n1", num_outputs=3)], ["n1", "num_outputs is 3", "2 outputs"]),
           "sizes for fewer parts than there are": ("SHAPE", [node("Split", ["x", "two"], ["y", "z", "v"], name="n1")], ["n1", "split has 2 entries for 3 outputs"]),
           "types that do not fit": ("TYPE", [node("Add", ["x", "i"], ["y"], name="n1")], ["n1"])}
    for what, (code, nodes, mentions) in bad.items():
        path = t.write("bad.onnx", graph(nodes, [x], [y], [("w3", np.zeros((3, 4), np.float32)), ("i", np.zeros((2, 4), np.int64)), ("two", np.ones(2, np.int64))]))
        fails(what, code, "read", path, mentions=mentions, stage="read")


def check_shapes():
    """What operators that move elements cannot do: the node, and what was asked."""
    x, y, node = tensor("x", 2, 4), tensor("y"), helper.make_node
    i64 = lambda *v: np.array(v, np.int64)
    bad = {"Reshape to two open dimensions": (["x", "c"], "Reshape", i64(-1, -1), {}, "two dimensions are -1"),
           "Reshape to what does not divide": (["x", "c"], "Reshape", i64(3, -1), {}, "does not divide"),
           "Reshape to more elements": (["x", "c"], "Reshape", i64(3, 4), {}, "8 elements"),
           "Reshape that copies a dimension there is not": (["x", "c"], "Reshape", i64(2, 4, 0), {}, "dimension 2 is copied from an input of rank 2"),
           "Reshape to a negative dimension": (["x", "c"], "Reshape", i64(-3, 4), {}, "dimension 0 is -3"),
           "Flatten behind the rank": (["x"], "Flatten", i64(0), {"axis": 3}, "axis 3 is outside of rank 2"),
           "Squeeze of a dimension that is not 1": (["x", "c"], "Squeeze", i64(1), {}, "dimension 1 of"),
           "Unsqueeze twice at one place": (["x", "c"], "Unsqueeze", i64(0, 0), {}, "axis 0 is given twice"),
           "Split into parts that are not all": (["x", "c"], "Split", i64(3), {"axis": 1}, "3")}
    for what, (inputs, op, c, attributes, words) in bad.items():
        path = t.write("bad.onnx", graph([node(op, inputs, ["y"], name="n1", **attributes)], [x], [y], [("c", c)]))
        fails(what, "SHAPE", "read", path, mentions=["n1", words], stage="read")
    path = t.write("bad.onnx", graph([node("Tile", ["s", "c"], ["y"], name="n1")], [tensor("s")], [y], [("c", i64(2))]))
    fails("Tile of a number, by an axis it has not", "SHAPE", "read", path, mentions=["n1", "1 repeats for rank 0"], stage="read")


def sine_layers():
    """Four layers x + Sin(x W): they roll, but no kernel computes a sine."""
    node, nodes, init = helper.make_node, [], []
    for k in range(4):
        init.append((f"w{k}", np.random.default_rng(k).standard_normal((4, 4)).astype(np.float32)))
        nodes += [node("MatMul", [f"x{k}", f"w{k}"], [f"h{k}"], name=f"mul{k}"), node("Sin", [f"h{k}"], [f"s{k}"], name=f"sine{k}"), node("Add", [f"x{k}", f"s{k}"], [f"x{k + 1}"], name=f"add{k}")]
    return t.write("sine.onnx", graph(nodes, [tensor("x0", 1, 2, 4)], [tensor("x4", 1, 2, 4)], init))


def check_unsupported():
    """Legal models that the hardware does not do yet: refused at quantize, with the op or the loop; and operators nobody knows."""
    for name in ("sine-layers", "gpt2-cache"):
        path = t.model(name) if name != "sine-layers" else sine_layers()
        for verb, more in (("quantize", []), ("compile", ["-o", "out", "--keep", "kept"])):
            os.makedirs(at("here"), exist_ok=True)
            p = t.call(verb, path, *more, cwd=at("here"))
            case(f"{name} is refused, {verb}", wrong(p, "UNSUPPORTED", document=True, stage="quantize") or ("out/ was made" if os.path.exists(at("here/out")) else ""))
            case(f"{name}: --keep kept what was good", "" if verb == "quantize" or os.path.exists(at("here/kept/roll.onnx")) else "no roll.onnx")
            shutil.rmtree(at("here"), True)
    x, y = tensor("x", 2, 4), tensor("y", 2, 4)
    path = t.write("foreign.onnx", graph([helper.make_node("Frobnicate", ["x"], ["y"], domain="custom", name="strange")], [x], [y]))
    np.savez(at("x.npz"), x=np.zeros((2, 4), np.float32))
    fails("an operator nobody knows, run", "UNSUPPORTED", "run", path, "--inputs", at("x.npz"), "--outputs", "y.npz", mentions=["strange", "Frobnicate"])
    fails("--device", "USAGE", "compile", t.model("bert-1"), "--device", "x", "-o", "out", mentions=["no device x"])


# ---- dimensions, data ---------------------------------------------------------------------------------------------------------------

def declared(nodes, x, y, info=(), others=(), init=()):
    """A model with these value_infos, in a file."""
    m = onnx.load_from_string(graph(nodes, [x, *others], [y], init))
    m.graph.value_info.extend(info)
    return t.write("declared.onnx", m.SerializeToString())


def typed(name, kind, *dims): return helper.make_tensor_value_info(name, kind, list(dims))



def chain():
    return [helper.make_node("Relu", ["x"], ["a"], name="first"), helper.make_node("Neg", ["a"], ["y"], name="last")]


def runs(path):
    """The first output of a model that has to run, on at("in.npz")."""
    t.good("run", path, "--inputs", at("in.npz"), "--outputs", at("out.npz"))
    return np.load(at("out.npz"))["y"]


RUN = ("--inputs", at("in.npz"), "--outputs", "out.npz")


def check_declared():
    """What is declared of a value is what inference makes of it, or it is refused; ONNX Runtime warns and goes on."""
    x, y = tensor("x", 2, 4), tensor("y", 2, 4)
    for dims in ((1, 4), (2, 4, 1), ("n", 5), ("n", 4, 1)):
        path, said = declared(chain(), x, y, [tensor("a", *dims)]), ["first", "'a'", r"\[2,4\]", "declaration"]
        fails(f"a value declared {dims}", "SHAPE", "read", path, mentions=said, stage="read")
        path, said = declared(chain(), x, tensor("y", *dims)), ["last", "'y'", r"\[2,4\]", "declaration"]
        fails(f"an output declared {dims}", "SHAPE", "read", path, mentions=said, stage="read")
    path = declared(chain(), x, y, [typed("a", T.INT32, 2, 4)])
    fails("a value declared int32", "TYPE", "read", path, mentions=["first", "'a'", "int32", "float"], stage="read")
    for made, dims in ((2, 0), (0, 2)):
        path = declared(chain(), tensor("x", made, 4), tensor("y", made, 4), [tensor("a", dims, 4)])
        fails(f"{made} rows declared to be {dims}", "SHAPE", "read", path, mentions=["first", "'a'", rf"\[{made},4\]", rf"\[{dims},4\]"], stage="read")
    path, both = declared(chain(), tensor("x", "n", 4), tensor("y", 3, 4)), ["last", r"\[3,4\]", r"\[2,4\]"]
    fails("an output declared otherwise than --dim", "SHAPE", "read", path, "--dim", "n=2", mentions=both)


def check_declared_run():
    """The same of what only a run can tell: sizes of the inputs, a shape that is an input."""
    ones = np.ones((2, 4), np.float32)
    np.savez(at("in.npz"), x=ones)
    opened, y = tensor("x", "n", 4), tensor("y", "n", 4)
    path = declared(chain(), opened, y, [tensor("a", 1, 4)])
    both = ["first", r"\[1,4\]", r"\[2,4\]"]
    fails("a value declared for another input", "SHAPE", "run", path, *RUN, mentions=both, stage="run")
    path = declared(chain(), opened, tensor("y", 3, 4))
    both = ["last", r"\[3,4\]", r"\[2,4\]"]
    fails("an output declared for another input", "SHAPE", "run", path, *RUN, mentions=both, stage="run")
    for what, path in (("other symbols", declared(chain(), opened, tensor("y", "k", "k"), [tensor("a", "l", "l")])),
                       ("no shape", declared(chain(), opened, helper.make_tensor_value_info("y", T.FLOAT, None)))):
        case("agrees with anything: " + what, "" if np.array_equal(runs(path), -ones) else "differs")
    for to in ([4, 2], [8, 1], [2, 2, 2]):
        np.savez(at("in.npz"), x=ones, to=np.array(to))
        reshape = [helper.make_node("Reshape", ["x", "to"], ["y"], name="fold")]
        path = declared(reshape, tensor("x", 2, 4), tensor("y", 4, 2), others=[typed("to", T.INT64, len(to))])
        if to == [4, 2]: case("a shape that is an input", "" if runs(path).shape == (4, 2) else "differs")
        else: fails(f"a shape that is an input, {to}", "SHAPE", "run", path, *RUN, mentions=["fold|'y'", r"\[4,2\]"])


def check_declared_state():
    """A state of a Loop may grow, unless its body declares one size."""
    node = helper.make_node
    np.savez(at("in.npz"), x=np.ones(1, np.float32))
    for size in ("n", 1):
        body = helper.make_graph(
            [node("Concat", ["s", "s"], ["s2"], axis=0, name="twice"), node("Identity", ["c"], ["c2"])], "body",
            [typed("i", T.INT64), typed("c", T.BOOL), tensor("s", size)], [typed("c2", T.BOOL), tensor("s2", "m")])
        loop = [node("Loop", ["trips", "", "x"], ["y"], body=body, name="again")]
        path = declared(loop, tensor("x", 1), tensor("y", "k"), init=[("trips", np.array(3))])
        if size == "n": case("a state that grows", "" if runs(path).shape == (8,) else "is not 8 long")
        said = ["again", "'s'", r"\[1\]", r"\[2\]"]
        if size == 1: fails("a state that outgrows its declaration", "SHAPE", "run", path, *RUN, mentions=said)


def check_dimensions():
    dynamic = t.model("bert-tiny-dynamic")
    for verb in ("quantize", "fold"): fails(f"an open dimension, {verb}", "SHAPE", verb, dynamic, mentions=[r"\bseq\b", "--dim"])
    fails("a dimension that is not there", "USAGE", "read", dynamic, "--dim", "sequence=32", mentions=["sequence", r"\bseq\b"])
    for value in ("seq", "seq=", "seq=0", "seq=-3", "seq=x", "=3", "seq=99999999999999999999"): fails(f"--dim {value}", "USAGE", "read", dynamic, "--dim", value, mentions=["--dim"])
    fails("a dimension bound twice", "USAGE", "read", dynamic, "--dim", "seq=32", "--dim", "seq=16", mentions=[r"\bseq\b", "twice|already|32"])
    for value in ("ids", "=1x2", "ids=1xx2", "ids=x", "ids=1x2x", "ids=1x-3", "ids=1xn", "ids=1x4294967296", "ids=1x123456789012345678901", "ids=" + "x".join("123456789")):
        fails(f"--shape {value}", "USAGE", "read", dynamic, "--shape", value.replace("ids", "input_ids"), mentions=["--shape"])
    fails("a shape of no sizes", "SHAPE", "read", dynamic, "--shape", "input_ids=", mentions=["rank 0"])
    many = [helper.make_tensor_value_info("x", T.FLOAT, ["", "some", "some"])] + [helper.make_tensor_value_info("y%d" % k, T.FLOAT, ["a_long_name_of_a_dimension_%d" % k, "some"]) for k in range(40)]
    path = t.write("many.onnx", helper.make_model(helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "g", many, [helper.make_tensor_value_info("z", T.FLOAT, None)])).SerializeToString())
    p = fails("many open dimensions", "USAGE", "read", path, "--dim", "other=3", mentions=["'some', 'a_long_name_of_a_dimension_0', "])
    case("each of them once, and not all of forty", "" if p.stderr.count(b"'some'") == 1 and b"dimension_39" not in p.stderr and b"''" not in p.stderr else str(p.stderr))
    for what, edit, good in (("none", lambda v: v.type.tensor_type.ClearField("shape"), True), ("a list of tensors", lambda v: v.type.CopyFrom(helper.make_tensor_sequence_value_info("x", T.FLOAT, None).type), False),
                             ("no type", lambda v: v.ClearField("type"), None)):
        m = helper.make_model(helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "g", many[:1], [helper.make_tensor_value_info("z", T.FLOAT, None)]))
        edit(m.graph.input[0])
        p = t.call("read", t.write("one.onnx", m.SerializeToString()), "--shape", "x=2x3x4", "--onnx", "-o", at("shaped.onnx"), text=True)
        sizes = [] if p.returncode else [d.dim_value for d in onnx.load(at("shaped.onnx")).graph.input[0].type.tensor_type.shape.dim]
        case("--shape of an input whose shape is %s" % what, "" if (sizes == [2, 3, 4] if good else p.returncode == 3 and p.stderr.count("[MLO_E_") == 1) or good is None and sizes in ([2, 3, 4], []) and p.returncode in (0, 3, 4) else "status %d: %s %s" % (p.returncode, sizes, p.stderr))
    fails("a shape against the model", "SHAPE", "read", t.model("bert-1"), "--shape", "input_ids=1x7", mentions=["input_ids"])
    fails("a shape for nobody", "USAGE", "read", t.model("bert-1"), "--shape", "nobody=1x7", mentions=["nobody", "input_ids"])
    fails("more tokens than positions", "SHAPE", "read", dynamic, "--dim", "seq=65")


def external(edit):
    """bert-tiny-external with its locations edited, in a folder of its own; the path of the model."""
    folder = at("ext")
    shutil.rmtree(folder, True)
    os.makedirs(folder + "/inner")
    shutil.copy(t.model("bert-tiny-external")[:-5] + ".data", folder + "/inner/bert-tiny-external.data")
    m = onnx.load(t.model("bert-tiny-external"), load_external_data=False)
    for i in m.graph.initializer:
        for e in i.external_data: edit(e)
    with open(folder + "/inner/m.onnx", "wb") as f: f.write(m.SerializeToString())
    return folder + "/inner/m.onnx"


def set_location(value):
    def edit(e):
        if e.key == "location": e.value = value
    return edit


def check_external_data():
    data = "inner/bert-tiny-external.data"
    path = external(lambda e: None)
    os.unlink(at("ext/" + data))
    fails("external data missing", "IO", "read", path, mentions=["bert-tiny-external.data"])
    fails("external data missing, compile", "IO", "compile", path, "-o", "out", mentions=["bert-tiny-external.data"])
    path = external(lambda e: None)
    with open(at("ext/" + data), "r+b") as f: f.truncate(1000)
    fails("external data too short", "DATA", "read", path, mentions=["bert-tiny-external.data"])
    for what, location in (("outside", "../outside.data"), ("absolute", at("ext/outside.data")), ("hidden in the middle", "sub/../../outside.data"), ("empty", "")):
        path = external(set_location(location))
        shutil.copy(t.model("bert-tiny-external")[:-5] + ".data", at("ext/outside.data"))
        fails(f"a path that escapes: {what}", "DATA", "read", path)
    path = external(set_location("link.data"))
    os.symlink("bert-tiny-external.data", at("ext/inner/link.data"))
    fails("a symlink", "IO", "read", path, mentions=["link.data"])
    def far(e):
        if e.key == "offset": e.value = "18446744073709551000"
    fails("an offset that wraps around", "DATA", "read", external(far))
    def changed(**values):
        """The first tensor that lies outside: fields of it, or entries of where it lies (None: no such entry)."""
        path = external(lambda e: None)
        m = onnx.load(path, load_external_data=False)
        one = next(i for i in m.graph.initializer if i.external_data)
        where = {e.key: e.value for e in one.external_data} | {k: v for k, v in values.items() if k in ("location", "offset", "length")}
        del one.external_data[:]
        for k, v in where.items():
            if v is not None: one.external_data.add(key=k, value=v)
        if "type" in values: one.data_type = values["type"]
        if "dims" in values: one.dims[:] = values["dims"]
        with open(path, "wb") as f: f.write(m.SerializeToString())
        return path
    for name in ".", "..", None: fails(f"external data in {name}", "DATA", "read", changed(location=name), mentions=["plain file name"])
    for what in "offset", "length": fails(f"an {what} that is no number", "FORMAT", "read", changed(**{what: "12x"}), mentions=["12x", "no number"])
    fails("external data without an offset and a length", "TYPE", "read", changed(offset=None, length=None, type=99), mentions=["cannot be external"])
    fails("external data of a negative shape", "TYPE", "read", changed(dims=[-4]), mentions=["cannot be external"])
    case("external data that begin where nobody says", t.call("read", changed(offset=None, length=None)).stderr.decode())
    shutil.copy(t.model("bert-1"), at("source.onnx"))
    text = t.good("roll", at("source.onnx"))
    with open(at("source.onnx"), "r+b") as f:
        f.seek(0, 2)
        f.truncate(f.tell() - 1)
    fails("the source changed between stages", "DATA", "quantize", input=text, mentions=["source.onnx"])
    os.unlink(at("source.onnx"))
    fails("the source went away between stages", "IO", "quantize", input=text, mentions=["source.onnx"])


def check_calibration():
    ids = np.zeros((2, 1), np.int64)
    def npz(name, **arrays):
        np.savez(at(name + ".npz"), **arrays)
        return at(name + ".npz")
    whole = t.read(npz("good", input_ids=ids))
    quantize = lambda name, code, path, **more: fails(name, code, "quantize", t.model("bert-1"), "--calib", path, **more)
    quantize("calibration file missing", "IO", "/nowhere/x.npz", mentions=["/nowhere/x.npz"])
    quantize("calibration by a directory", "IO", t.tmp, mentions=["directory"])
    quantize("calibration by a text file", "FORMAT", t.write("text.npz", b"hello\n"))
    quantize("calibration by an empty file", "FORMAT", t.write("none.npz", b""))
    for cut in (10, len(whole) // 2, len(whole) - 1): quantize(f"npz cut after {cut} bytes", "FORMAT", t.write("cut.npz", whole[:cut]))
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 64
    quantize("npz with a bit flipped", "FORMAT", t.write("flip.npz", bytes(flipped)))
    quantize("npz of text files", "FORMAT", t.write("t.npz", zipped({"input_ids.npy": b"hello"})))
    quantize("npz without arrays", "FORMAT", t.write("e.npz", zipped({})))
    two = npz("two", wrong=ids, names=ids)
    quantize("calibration with wrong names", "FORMAT", two, mentions=["it has 'input_ids' \\[", "wrong"])
    fails("calibration with wrong names, of two inputs", "FORMAT", "quantize", t.model("bert-tiny-mask"), "--calib", two, mentions=["it has 'input_ids' and more", "wrong"])
    known, other = npz("known", input_ids=np.arange(2)[:, None]), npz("other", input_ids=np.arange(2)[:, None], position_ids=ids)
    p = t.call("quantize", t.model("bert-1"), "--calib", other)
    t.case("calibration with an array more: left out, in a line", "" if p.returncode == 0 and p.stderr.count(b"'position_ids', which is no input") == 1 and p.stdout == t.good("quantize", t.model("bert-1"), "--calib", known) else p.stderr.decode()[-300:] or "it says nothing")
    quantize("calibration with a wrong shape", "SHAPE", npz("shape", input_ids=np.zeros((2, 7), np.int64)), mentions=["input_ids", r"\b7\b.*\b1\b"])
    quantize("calibration with a wrong rank", "SHAPE", npz("rank", input_ids=np.zeros((2, 1, 1, 1), np.int64)), mentions=["input_ids"])
    quantize("calibration with a wrong type", "TYPE", npz("type", input_ids=np.zeros((2, 1), np.float32)), mentions=["input_ids"])
    quantize("calibration without a sample", "SHAPE", npz("zero", input_ids=np.zeros((0, 1), np.int64)), mentions=["input_ids"])
    quantize("tokens beyond the vocabulary", "DATA", npz("beyond", input_ids=np.full((2, 1), 5000)), mentions=["5000", "1000"])
    quantize("tokens below zero", "DATA", npz("below", input_ids=np.full((2, 1), -5000)), mentions=["1000"])
    one = npz("mask", input_ids=np.zeros((1, 32), np.int64))
    fails("calibration that lacks an input", "FORMAT", "quantize", t.model("bert-tiny-mask"), "--calib", one, mentions=["attention_mask"])
    for bad in (np.nan, np.inf): fails(f"calibration with {bad}", "DATA", "quantize", t.model("vit-48"), "--calib", npz("bad", pixel_values=np.full((1, 3, 16, 16), bad, np.float32)))
    fails("calibration with 2e30, which no activation is", "DATA", "quantize", t.model("mlp-res"), "--calib", npz("far", x=np.full((1, 8, 32), 2e30, np.float32)))
    run = lambda name, code, path, **more: fails("run: " + name, code, "run", t.model("bert-1"), "--inputs", path, "--outputs", "y.npz", **more)
    run("a wrong shape", "SHAPE", npz("shape", input_ids=np.zeros((1, 7), np.int64)), mentions=["input_ids"])
    run("a wrong type", "TYPE", npz("type", input_ids=np.zeros((1, 1), np.float32)), mentions=["input_ids"])
    run("tokens beyond the vocabulary", "DATA", npz("beyond", input_ids=np.full((1, 1), 5000)))
    run("cut off", "FORMAT", t.write("cut.npz", whole[:50]))
    fails("run without inputs", "USAGE", "run", t.model("bert-1"), mentions=["--inputs", "input_ids", "int64"])


# ---- outputs ------------------------------------------------------------------------------------------------------------------------

def check_outputs():
    os.makedirs(at("here"), exist_ok=True)
    calib = ["--calib", t.calibration("bert-1", 1)]
    file = t.write("here/file", b"precious")
    fails("a file where the directory should be", "IO", "compile", t.model("bert-1"), *calib, "-o", "file", mentions=["file", "directory"])
    fails("a file on the way to the directory", "IO", "compile", t.model("bert-1"), *calib, "-o", "file/out")
    fails("a directory in /proc", "IO", "compile", t.model("bert-1"), *calib, "-o", "/proc/mlo-test", mentions=["/proc/mlo-test"])
    fails("a file in /proc", "IO", "roll", t.model("bert-1"), "-o", "/proc/mlo-test.onnx", mentions=["/proc/mlo-test.onnx"])
    fails("a model into a directory", "IO", "roll", t.model("bert-1"), "-o", ".", mentions=["directory"])
    fails("outputs of run into a directory that is not there", "IO", "run", t.model("bert-1"), "--inputs", t.calibration("bert-1", 1), "--outputs", "none/y.npz", mentions=["none/y.npz"])
    fails("emit without a directory", "USAGE", "emit", t.model("bert-1"), *calib, mentions=["-o"])
    def long(n, name): return ("./" * 2100)[:(n - len(name)) // 2 * 2] + name              # of n bytes, and where `name` is
    fails("a model's name that is too long", "IO", "read", t.model("bert-1"), "--onnx", "-o", long(4093, "long.onnx"), mentions=["too long"])
    fails("a directory's name that is too long", "IO", "compile", t.model("bert-1"), *calib, "-o", long(4090, "long"), mentions=["too long"])
    fails("a directory in which names are too long", "IO", "compile", t.model("bert-1"), *calib, "-o", long(4060, "long"), mentions=["too long"])
    os.makedirs(at("here/stages"))
    fails("stages whose names are too long", "IO", "compile", t.model("bert-1"), *calib, "--keep", long(4090, "stages"), "-o", "long", mentions=["too long"])
    for what, name in (("a directory", "Makefile"), ("a file", "rtl")):
        shutil.rmtree(at("way"), True)
        os.makedirs(at("way/Makefile/inner") if what == "a directory" else at("way"))
        if what == "a file": t.write("way/rtl", b"mine")
        p = t.call("compile", t.model("bert-1"), *calib, "-o", at("way"))
        case("%s where a build has another" % what, wrong(p, "IO", ["way/" + name]) or ("it has a manifest" if os.path.exists(at("way/manifest.json")) else "" if glob.glob(at("way*")) == [at("way")] else "leaves %s" % glob.glob(at("way*"))))
    case("what was there is still there", "" if t.read(file) == b"precious" else "it is gone")
    for stage in ("read", "roll", "fold"):
        with open("/dev/full", "wb") as full:
            p = t.call(stage, t.model("bert-1"), *(calib if stage == "fold" else []), stdout=full, stderr=subprocess.PIPE)
        case(f"{stage} > /dev/full", wrong(p, "IO", ["stdout"], document=False))
    fails("-o /dev/full", "IO", "read", t.model("bert-1"), "-o", "/dev/full", mentions=["/dev/full"])
    for args in (["help"], ["help", "--man"], ["--version"], ["show", t.model("bert-1")], ["show", t.model("bert-1"), "--html"]):
        with open("/dev/full", "wb") as full: p = t.call(*args, stdout=full, stderr=subprocess.PIPE)
        case(" ".join(args[:1] + args[2:]) + " > /dev/full", wrong(p, "IO", ["stdout"], document=False))
    p = subprocess.run([t.mlo, "read", t.model("bert-1")], stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    case("stdout closed", wrong(p, "IO", document=False))
    p = subprocess.run([t.mlo, "read"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(0))
    case("stdin closed", wrong(p, "IO"))


def check_closed_pipe():
    """The reader goes away: one line, status 2, no signal."""
    for stage in ("read", "roll"):
        p = subprocess.Popen([t.mlo, stage, "--inline", t.model("bert-tiny")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.read(10)
        p.stdout.close()
        p.stderr_text = p.stderr.read()
        p.wait()
        done = subprocess.CompletedProcess([], p.returncode, b"", p.stderr_text)
        case(f"{stage} | head -c 10", wrong(done, "IO", ["stdout"], document=False))


def check_full_disk():
    """A file system without room: an error, and what was there before still is."""
    os.makedirs(at("disk"), exist_ok=True)
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", at("disk")], capture_output=True).returncode: return t.absent("a full disk", "this user may not mount a tmpfs")
    try:
        calib = ["--calib", t.calibration("bert-1", 1)]
        p = t.call("compile", t.model("bert-1"), *calib, "-o", at("disk/out"))
        case("compile onto a full disk", wrong(p, "IO", ["[Nn]o space"]) or (f"left {listing(at('disk'))[:3]}" if listing(at("disk")) else ""))
        p = t.call("roll", "--onnx", t.model("bert-tiny"), "-o", at("disk/out.onnx"))
        case("roll -o onto a full disk", wrong(p, "IO", ["[Nn]o space"]) or (f"left {listing(at('disk'))[:3]}" if listing(at("disk")) else ""))
        p = t.call("run", t.model("bert-1"), "--inputs", t.calibration("bert-1", 1), "--outputs", at("disk/y.npz"))
        case("and there is room again", "" if p.returncode == 0 else p.stderr.decode() or "it says nothing")
    finally:
        subprocess.run(["umount", at("disk")])


def check_nothing_half_written():
    """A build that fails leaves the build that was there; a killed one leaves no manifest, or the old build whole."""
    calib = ["--calib", t.calibration("bert-1", 1)]
    t.good("compile", t.model("bert-1"), *calib, "-o", at("built"))
    before = t.tree(at("built"))
    fails("a folding that fails", "FOLDING", "compile", t.model("bert-1"), *calib, "--target-cycles", "1", "-o", at("built"))
    case("the old build is still there", "" if t.tree(at("built")) == before else "it changed")
    fails("a bad model over a build", "FORMAT", "compile", t.write("bad.onnx", bert()[:1000]), "-o", at("built"))
    case("and still", "" if t.tree(at("built")) == before and not glob.glob(at("built*")) != [at("built")] else f"{glob.glob(at('built*'))}")
    other = []
    for delay in (0.001, 0.005, 0.01, 0.02, 0.03, 0.05):
        p = subprocess.Popen([t.mlo, "compile", t.model("bert-tiny"), "-o", at("built")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try: p.wait(delay)
        except subprocess.TimeoutExpired: p.send_signal(signal.SIGKILL)
        p.wait()
        now = t.tree(at("built"))
        if now != before and "manifest.json" in now:
            manifest = json.loads(t.read(at("built/manifest.json")))
            other += [f for f, digest in manifest.get("files", {}).items() if now.get(f) != (digest if isinstance(digest, str) else digest.get("sha256"))]
    case("killed at any time: no directory that lies", ", ".join(other[:5]))


# ---- the command line -------------------------------------------------------------------------------------------------------------------

def check_usage():
    b = t.model("bert-1")
    fails("an unknown flag", "USAGE", "fold", b, "--target-cycle", "4", mentions=["--target-cycle", "--target-cycles"])
    fails("a flag of another verb", "USAGE", "read", b, "--pe", "4", mentions=["--pe"])
    fails("a flag without its value", "USAGE", "fold", b, "--pe", mentions=["--pe"])
    fails("an unknown verb", "USAGE", "compil", b, mentions=["compil", "compile"])
    fails("two files", "USAGE", "read", b, b, mentions=[os.path.basename(b)])
    for flag, value in (("--pe", "0"), ("--pe", "four"), ("--pe", "-1"), ("--simd", "1.5"), ("--pe", "99999999999999999999"), ("--target-cycles", "0"), ("--target-cycles", "-5"), ("--frames-in-flight", "0"),
                        ("--axi-width", "100"), ("--clock-mhz", "fast"), ("--hierarchy", "[]"), ("--hierarchy", "[["), ("--hierarchy", ""), ("--hierarchy", "foo"), ("--hierarchy", '[["no","such"]]'),
                        ("--target-cycles", "99999999999999999999"), ("--budget-macs", "99999999999999999999")):
        fails(f"{flag} {value}", "USAGE", "fold", b, flag, value, mentions=[flag])
    fails("--loop nosuch", "LOOP", "fold", b, "--loop", "nosuch", mentions=["such"])
    fails("sim without a directory", "USAGE", "sim", document=False)
    fails("sim of nothing", "IO", "sim", "/nowhere", document=False)
    fails("sim of a directory that is no build", "IO", "sim", os.path.join(t.root, "src"), document=False, mentions=["manifest.json"])
    fails("check without the original", "USAGE", "check", b, mentions=["--against"])
    fails("a config that is not there", "IO", "read", b, "--config", "/nowhere.json", mentions=["/nowhere.json"])
    fails("a config that is no JSON", "FORMAT", "read", b, "--config", t.write("c.json", b"{pe: 4}"))
    fails("a config with an unknown key", "USAGE", "read", b, "--config", t.write("c.json", b'{"pee": 4}'), mentions=["pee"])
    p = t.call()
    case("no arguments: help on stderr, status 2", "" if p.returncode == 2 and b"mlo compile" in p.stderr and not p.stdout else f"{p.returncode} {p.stdout[:100]}")
    p = t.call("--version")
    case("--version", "" if p.returncode == 0 and re.fullmatch(rb"mlo \d+\.\d+\.\d+\n", p.stdout) else f"{p.stdout}")


def check_ranges():
    """Numbers that flags take: the least and the most are taken, what is one less or one more is refused and told the range."""
    source, lowered = t.model("bert-1"), at("ranged.onnx")
    t.good("lower", source, "--calib", t.calibration("bert-1", 1), "-o", lowered)
    quantize, fold = ("quantize", source, "--calib", t.calibration("bert-1", 1)), ("fold", lowered)
    for stage, flag, low, high, *more in ((quantize, "--weights", 2, 8), (quantize, "--activations", 4, 16), (quantize, "--residual", 8, 16), (fold, "--pe", 1, 65536), (fold, "--simd", 1, 65536),
                                          (fold, "--tile", 1, 65536, "--memory", "block"), (fold, "--clock-mhz", 1, 100000, "--target-fps", "1"), (fold, "--frames-in-flight", 1, 255),
                                          (fold, "--axi-width", 32, 1024), (fold, "--axi-latency", 0, 100000)):
        for value in (low, high):
            p = t.call(*stage, flag, value, *more, "-o", at("ranged.json"))
            t.case(f"{flag} {value}", "" if p.returncode == 0 else p.stderr.decode()[-200:] or "it says nothing")
        for value in (low - 1, high + 1): fails(f"{flag} {value}", "USAGE", *stage, flag, value, *more, mentions=[f"{flag} {value} is not a whole number from {low} to {high}"])


def check_folding():
    b, calib = t.model("bert-1"), ["--calib", t.calibration("bert-1", 1)]
    t.good("fold", b, *calib, "--save-folding", at("folding.json"), "-o", at("folded.onnx"))
    folding = json.loads(t.read(at("folding.json")))
    name = next(k for k, v in folding.items() if "mvu" in k.lower() and isinstance(v, dict))
    def with_(kernel, key, value): return t.write("f.json", json.dumps({**folding, kernel: {**folding.get(kernel, {}), key: value}}).encode())
    case("a folding that was saved is taken", "" if t.call("fold", b, *calib, "--folding", at("folding.json"), "-o", at("again.onnx")).returncode == 0 else "refused")
    case("and gives the same", "" if t.read(at("again.onnx")) == t.read(at("folded.onnx")) else "it differs")
    fails("a folding that does not divide", "FOLDING", "fold", b, *calib, "--folding", with_(name, "PE", 7), mentions=[name, "7", "PE"])
    fails("a folding for no kernel", "FOLDING", "fold", b, *calib, "--folding", with_("MVAU_99", "PE", 1), mentions=["MVAU_99"])
    fails("a folding of halves", "FOLDING", "fold", b, *calib, "--folding", with_(name, "PE", 1.5), mentions=[name, "whole number"])
    t.good("lower", b, *calib, "-o", at("lowered.onnx"))
    def odd(what, folding, *mentions): fails("a folding " + what, "FOLDING", "fold", at("lowered.onnx"), "--folding", t.write("f.json", json.dumps(folding).encode() if isinstance(folding, dict) else folding), mentions=mentions)
    odd("that is a number", {name: 4}, name, '"PE": 4')
    for key, right in (("pe", "PE"), ("Simd", "SIMD"), ("Memory", "memory"), ("TILE", "tile")): odd("with %s" % key, {name: {key: 2}}, name, "%s is written %s" % (key, right))
    odd("with a kernel twice", b'{"mvu_0": {"PE": 2}, "mvu_0": {"PE": 4}}', "mvu_0 twice", "also as 'mvu_0'")
    odd("with a kernel by two names", {"mvu_0": {"PE": 2}, "add_0": {"PE": 2}, "FINNLoop_0_MVAU_rtl_0": {"PE": 4}}, "FINNLoop_0_MVAU_rtl_0", "mvu_0 twice", "also as 'mvu_0'")
    for frames in (0, 256, 1.5, "2", None): odd("for %r frames" % frames, {"folding": {name: {"PE": 2}}, "cycles": 1, "frames_in_flight": frames}, "frames_in_flight", "1 to 255")
    odd("in memory 4", {name: {"memory": 4}}, name, '"layer", "block", "resident" or "auto"')
    odd("with row blocks of what has no rows", {"layernorm_0": {"memory": "block"}}, "layernorm_0", "take memory layer or resident")
    odd("with row blocks of one group", {"mvu_1": {"PE": 32, "memory": "block"}}, "mvu_1", "take a smaller PE, or memory layer")
    odd("with a tile of text", {name: {"tile": "x"}}, name, "tile must be a whole number")
    odd("with a PE of 65537", {name: {"PE": 65537}}, name, "PE must be a whole number from 1 to 65536")
    odd("with SIMD that does not divide", {name: {"SIMD": 5}}, name, "SIMD=5 does not divide the input channels; the nearest that do are 4 or 8")
    odd("with SIMD of a kernel that has PE only", {"add_0": {"SIMD": 3}}, "add_0", "PE=3 does not divide the channels; the nearest that do are 2 or 4")
    for key in ("FINNLoop_0_MVAU_hls_9", "FINNLoop_MVAU", "FINNLoop_0_XMVAU_rtl_0", "FINNLoop_0_MVAU_rtlx_0", "MVAU_rtl_0"): odd("of %s" % key, {key: {"PE": 2}}, key, "mlo show")
    fails("a folding in no memory", "USAGE", "fold", at("lowered.onnx"), "--folding", t.write("f.json", json.dumps({name: {"memory": "rows"}}).encode()), mentions=[name, "no memory rows", "layer, block, resident, auto"])
    fails("a folding and more", "FORMAT", "fold", at("lowered.onnx"), "--folding", t.write("f.json", b"{} {}"), mentions=["JSON object of kernels"])
    fails("a folding of text", "FOLDING", "fold", b, *calib, "--folding", with_(name, "PE", "many"), mentions=[name])
    fails("a folding that is no JSON", "FORMAT", "fold", b, *calib, "--folding", t.write("f.json", b"PE = 4"))
    fails("a target out of reach", "FOLDING", "fold", b, *calib, "--target-cycles", "1", mentions=["cycles"])
    fails("a rate without a clock", "USAGE", "fold", b, *calib, "--target-fps", "100", mentions=["--clock-mhz"])
    fails("two targets", "USAGE", "fold", b, *calib, "--target-cycles", "1000", "--target-fps", "100", "--clock-mhz", "100", mentions=["--target-cycles", "--target-fps"])


def check_kernels():
    """Attributes of kernels in a folded model, edited."""
    t.good("fold", t.model("bert-1"), "--calib", t.calibration("bert-1", 1), "-o", at("kernels.onnx"))
    for op, name, values, code in ("Attention", "heads", (0, -1, 3, 1 << 40), "SHAPE"), ("LayerNorm", "center", (-1, 2, (1 << 63) - 1), "DATA"), ("MVUTable", "hi", (-1, 1000, (1 << 63) - 1), "UNSUPPORTED"):
        for value in values:
            m = onnx.load(at("kernels.onnx"))
            graphs.attribute(next(n for n in graphs.body(graphs.scans(m)[0]).node if n.op_type == op), name).i = value
            fails(f"{op} with {name} = {value}", code, "emit", t.write("edited.onnx", m.SerializeToString()), "-o", "out", mentions=[op])


def check_loops():
    """A loop whose parts do not fit each other, or whose parameters nobody can compute, is refused where it is looked at."""
    t.good("roll", t.model("mlp-res"), "--onnx", "-o", at("loop.onnx"))
    number = lambda scan: graphs.attribute(scan, "num_scan_inputs")

    def weights(scan):
        body = graphs.body(scan)
        return next(k for k, i in enumerate(body.input) for n in body.node if k and n.op_type in ("MatMul", "Gemm") and i.name == n.input[1])

    def input_of_model(m, scan):
        k = weights(scan)
        kind = graphs.body(scan).input[k].type.tensor_type
        m.graph.input.append(helper.make_tensor_value_info("stack", kind.elem_type, [graphs.iterations(scan), *(d.dim_value for d in kind.shape.dim)]))
        scan.input[k] = "stack"

    def before(*nodes):
        def made(m, scan):
            body = graphs.body(scan)
            name = body.input[weights(scan)].name
            body.value_info.add().CopyFrom(body.input[weights(scan)])
            body.value_info[-1].name = "made"
            for n in body.node: n.input[:] = ["made" if i == name else i for i in n.input]
            for op, more in reversed(nodes): body.node.insert(0, helper.make_node(op, [name], ["made"], name="before", **more))
        return made
    fits = r"num_scan_inputs \d+ does not fit \d+ inputs"
    for name, code, words, edit in (
            ("that does not say how many stacks it reads", "GRAPH", fits, lambda m, scan: scan.attribute.remove(number(scan))), ("of no stacks", "GRAPH", fits, lambda m, scan: setattr(number(scan), "i", 0)),
            ("of more stacks than inputs", "GRAPH", fits, lambda m, scan: setattr(number(scan), "i", len(scan.input) + 1)), ("of an input less", "GRAPH", fits, lambda m, scan: scan.input.pop()),
            ("of an input more", "GRAPH", fits, lambda m, scan: scan.input.append(scan.input[-1])), ("whose weights come in when it runs", "UNSUPPORTED", "only constants|comes from around the loop", input_of_model),
            ("whose weights are made by what nobody knows", "UNSUPPORTED", "before .Mystery.", before(("Mystery", {"domain": "example"}))),
            ("whose weights are made by what is not evaluated", "UNSUPPORTED", "before .Bernoulli.", before(("Bernoulli", {})))):
        m = onnx.load(at("loop.onnx"))
        edit(m, graphs.scans(m)[0])
        fails("a loop " + name, code, "quantize", t.write("odd-loop.onnx", m.SerializeToString()), mentions=[words], stage="quantize")


def check_operands():
    """A kernel of two streams takes INT8 and INT16 on both."""
    for op, numbers in ("Add", 3), ("Mul", 2):
        for k in range(2):
            kinds = [T.INT32 if i == k else T.INT8 for i in range(2)]
            node = helper.make_node(op, ["x", "y", "p"], ["z"], domain="mlo", to=T.INT8, lo=-128, hi=127)
            g = helper.make_graph([node], "g", [helper.make_tensor_value_info(n, kind, [1, 2, 3]) for n, kind in zip("xy", kinds)], [helper.make_tensor_value_info("z", T.INT8, [1, 2, 3])],
                                  [helper.make_tensor("p", T.INT32, [numbers], [1] * numbers)])
            m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("mlo", 1)], ir_version=10)
            np.savez(at("operands.npz"), **{n: np.ones((1, 2, 3), np.int32 if kind == T.INT32 else np.int8) for n, kind in zip("xy", kinds)})
            fails(f"{op} of an INT32 operand {k}", "TYPE", "run", t.write("operands.onnx", m.SerializeToString()), "--inputs", at("operands.npz"), "--outputs", at("z.npz"), mentions=[op, f"input {k} is int32", "INT8 or INT16"])
    path = t.write("scales.onnx", graph([helper.make_node("QuantizeLinear", ["x", "c"], ["y"], name="n1", axis=0)], [tensor("x", 6)], [helper.make_tensor_value_info("y", T.UINT8, [6])], [("c", np.ones(3, np.float32))]))
    np.savez(at("six.npz"), x=np.ones(6, np.float32))
    fails("scales for half of the channels, which are no blocks", "SHAPE", "run", path, "--inputs", at("six.npz"), "--outputs", at("z.npz"), mentions=["3 scales for 6 channels"])


def check_metadata():
    """What a folded model's metadata say may have been edited: each number within its limits, each name a name; what a Split deals out, all parts alike."""
    t.good("fold", t.model("bert-1"), "--calib", t.calibration("bert-1", 1), "--pe", "4", "--simd", "4", "--memory", "block", "--tile", "1", "--bandwidth", "8", "--axi-latency", "20",
           "--weights", "7", "--activations", "7", "-o", at("noted.json"))
    text = t.read(at("noted.json")).decode()
    numbers = {"mlo.frames": (1, 255), "mlo.axi_width": (32, 1024), "mlo.axi_latency": (0, 100000), "mlo.fifo.1": (0, 1 << 20), "mlo.tile": (1, (1 << 31) - 1), "mlo.bits": (1, 8), "mlo.weight_bits": (2, 8)}
    words = {"mlo.axi_width": ["48"], "mlo.bandwidth": ["0", "fast"], "mlo.memory": ["", "rows"], "mlo.kernel": ["", "a b", "x1" * 1500, "loader", "mvu_2"]}
    for key, values in [(k, [low - 1, high + 1, 10 ** 20, "", "x", "4x"]) for k, (low, high) in numbers.items()] + [*words.items()]:
        last = [*re.finditer(r'"key":"%s","value":"([^"]*)"' % re.escape(key), text)][-1]
        for value in values:
            edited = t.write("edited.json", text[:last.start(1)] + str(value) + text[last.end(1):])
            fails("metadata say %s = '%s'" % (key, str(value)[:30]), "DATA", "emit", edited, "-o", "out", mentions=[key])
    t.good("fold", t.model("bert-1"), "--calib", t.calibration("bert-1", 1), "-o", at("uneven.onnx"))
    m = onnx.load(at("uneven.onnx"))
    scan = graphs.scans(m)[0]
    body = graphs.body(scan)
    split, attention = (next(n for n in body.node if n.op_type == op) for op in ("Split", "Attention"))
    def replace(tensor, change): tensor.CopyFrom(onnx.numpy_helper.from_array(change(onnx.numpy_helper.to_array(tensor)), tensor.name))
    replace(next(i for g in (body, m.graph) for i in g.initializer if i.name == split.input[1]), lambda a: np.array([64, 16, 16]))
    graphs.attribute(attention, "heads").i = 4                                          # that share one of keys and values: all else fits
    attention.attribute.append(helper.make_attribute("kv_heads", 1))
    for v in body.value_info:
        if v.name in (*split.output, *attention.output): v.type.tensor_type.shape.dim[-1].dim_value = 16 if v.name in split.output[1:] else 64
    weights = next(k for k, i in enumerate(body.input) if i.name == next(n for n in body.node if attention.output[0] in n.input).input[1])
    body.input[weights].type.tensor_type.shape.dim[0].dim_value = 64
    replace(next(i for i in m.graph.initializer if i.name == scan.input[weights]), lambda a: np.concatenate([a, a], 1))
    fails("a Split into unequal parts", "UNSUPPORTED", "emit", t.write("edited.onnx", m.SerializeToString()), "-o", "out", mentions=["Split", "size"])


def check_contexts():
    """What a core keeps from one part of a sequence to the next: keys and values of attention that looks back, and nothing else."""
    plain = at("plain.json")
    t.good("lower", t.model("mlp-res"), "-o", plain)
    for flags in (["--slots", "2"], ["--kv", "dram"], ["--kv", "chip"]): fails(" ".join(flags) + " without a context", "USAGE", "fold", plain, *flags, mentions=[flags[0], "--context"], stage="fold")
    def with_context(name):
        t.good("lower", t.model(name), "--onnx", "-o", at("context.onnx"))
        m = onnx.load(at("context.onnx"))
        m.metadata_props.add(key="mlo.context", value="16")
        return t.write("context.onnx", m.SerializeToString())
    for name, kernel in ("bert-1", "attention_0"), ("t5-tiny", "replay_0"), ("convnext-tiny", "conv_0"):
        fails(f"a context for {name}", "UNSUPPORTED", "fold", with_context(name), mentions=[kernel, "tokens that come later", "leave --context out"], stage="fold")
    fails("keys and values of no attention", "UNSUPPORTED", "fold", with_context("mlp-res"), "--kv", "dram", mentions=["a layer with 0 attentions", "leave --kv out"], stage="fold")
    t.good("fold", t.model("t5-tiny"), "-o", at("crossed.json"))
    text = t.read(at("crossed.json")).decode()
    edited = re.sub(r'("key":"mlo.frames","value":)"1"', r'\1"2"', text)
    fails("two frames that cross-attention shares", "UNSUPPORTED", "emit", t.write("crossed.json", edited), "-o", "out", mentions=["frames"], stage="emit") if edited != text else case("two frames that cross-attention shares", "no mlo.frames")


def check_carried():
    """Tensors that mlo only carries through, of texts and of a type from the future: the same as long as each byte and number is."""
    def carried(name, tensor_):
        tensor_.name = "f"
        m = onnx.load_from_string(graph([helper.make_node("Strange", ["x", "f"], ["y"], domain="custom")], [tensor("x", 2)], [tensor("y", 2)]))
        m.graph.initializer.append(tensor_)
        return t.write(name, m.SerializeToString())
    nodes = [n for k in range(4) for n in (helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"h{k}"]), helper.make_node("Strange", [f"h{k}"], [f"s{k}"], domain="custom", name=f"strange{k}", words=helper.make_tensor("t", T.STRING, [1], [b"b" if k == 3 else b"a"])), helper.make_node("Add", [f"x{k}", f"s{k}"], [f"x{k + 1}"]))]
    p = t.call("extract", t.write("words.onnx", graph(nodes, [tensor("x0", 1, 2, 4)], [tensor("x4", 1, 2, 4)], [(f"w{k}", np.random.default_rng(k).standard_normal((4, 4)).astype(np.float32)) for k in range(4)])), "-o", at("words.json"))
    case("layers of which one has another text", "" if p.returncode == 0 and b"matched 3 of 4" in p.stderr and b"words a tensor of 1" in p.stderr else p.stderr.decode())
    def future(**data): return onnx.TensorProto(data_type=99, dims=[2], **data)
    def texts(*words): return helper.make_tensor("f", T.STRING, [len(words)], [w.encode() for w in words])
    for what, a, b, same in (("bytes", future(raw_data=b"1234"), future(raw_data=b"1234"), True), ("another byte", future(raw_data=b"1234"), future(raw_data=b"1235"), False), ("more bytes", future(raw_data=b"1234"), future(raw_data=b"12345"), False),
                             ("the last of many bytes", future(raw_data=b"x" * 2000), future(raw_data=b"x" * 1999 + b"y"), False), ("many bytes", future(raw_data=b"x" * 2000), future(raw_data=b"x" * 2000), True),
                             *(("another of %s" % k, future(**{k: [1, 2]}), future(**{k: [1, 3]}), False) for k in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")),
                             ("numbers", future(int32_data=[1]), future(int32_data=[1]), True), ("more numbers", future(int32_data=[1]), future(int32_data=[1, 2]), False),
                             ("texts", texts("a", "b"), texts("a", "b"), True), ("another text", texts("a", "b"), texts("a", "c"), False), ("fewer texts", texts("a", "b"), texts("a"), False)):
        p = t.call("check", carried("a.onnx", a), "--against", carried("b.onnx", b))
        case(f"carried through: {what}", wrong(p, "MISMATCH", ["Strange", "constant f"]) if not same else "" if p.returncode == 0 else p.stderr.decode())


# ---- errors in pipes ------------------------------------------------------------------------------------------------------------------

def check_pipes():
    """An error runs through a pipe: its status at the end, its line once, its document unchanged; in JSON pipes and in binary ones."""
    bad = t.write("bad.onnx", b"not a model")
    for onnx_flag in ("", "--onnx"):
        os.makedirs(at("pipe"), exist_ok=True)
        command = " | ".join(f"$MLO {s} {onnx_flag}" for s in (f"read {bad}", "scope", "extract", "roll", "quantize", "lower", "fold")) + " | $MLO emit -o out"
        p = subprocess.run(["sh", "-c", command], capture_output=True, cwd=at("pipe"), env=dict(os.environ, MLO=t.mlo))
        case(f"read fails, emit says so {onnx_flag}", wrong(p, "FORMAT", stage="read") or (f"left {listing(at('pipe'))}" if listing(at("pipe")) else ""))
    single = t.write("single.onnx", graph([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", 2)], [tensor("y", 2)]))
    for last, extra in (("emit -o out", ""), ("run --inputs x.npz --outputs y.npz", ""), ("show --json", ""), ("show --html -o p.html", ""), ("check --against " + single, ""), ("compile - -o out", ""), ("fold -o f.onnx", "")):
        p = subprocess.run(["sh", "-c", f"$MLO roll {single} | $MLO lower | $MLO {last}"], capture_output=True, cwd=at("pipe"), env=dict(os.environ, MLO=t.mlo))
        case(f"nothing repeats, {last.split()[0]} says so", wrong(p, "LOOP", stage="extract") or (f"left {listing(at('pipe'))}" if listing(at("pipe")) else ""))
    p = subprocess.run(["sh", "-c", f"$MLO roll {single} | jq . | $MLO lower"], capture_output=True, env=dict(os.environ, MLO=t.mlo))
    if t.have("an error through jq", "jq"): case("an error through jq", wrong(p, "LOOP", stage="extract"))
    document = {"error": {"stage": "roll", "code": "MLO_E_NOT_YET_KNOWN", "node": "n", "op": "", "message": "from another version"}}
    p = t.call("lower", input=json.dumps(document).encode())
    case("an error with a code of another version", "" if p.returncode in (1, 2, 3, 4, 5) and b"from another version" in p.stdout + p.stderr else f"{p.returncode} {p.stdout[:200]}")


def check_check():
    """check says no: status 1."""
    other = t.model("bert-tiny-b")
    t.good("roll", t.model("bert-tiny"), "--onnx", "-o", at("rolled.onnx"))
    fails("check against other weights", "MISMATCH", "check", at("rolled.onnx"), "--against", other)


def check_warnings():
    """Warnings never change the status, and never touch stdout."""
    p = t.call("quantize", t.model("bert-1"))
    lines = p.stderr.decode().splitlines()
    case("no calibration: a warning", "" if p.returncode == 0 and len(lines) == 1 and lines[0].startswith("mlo: warning: ") and "--calib" in lines[0] and json.loads(p.stdout)["graph"] else f"{p.returncode} {lines}")


if __name__ == "__main__":
    t.main(check_not_a_model, check_graphs, check_shapes, check_unsupported, check_declared, check_declared_run, check_declared_state,
           check_dimensions, check_external_data, check_calibration, check_outputs, check_closed_pipe, check_full_disk,
           check_nothing_half_written, check_usage, check_ranges, check_folding, check_kernels, check_loops, check_operands, check_metadata, check_contexts, check_carried, check_pipes, check_check, check_warnings,
           floor=414)
