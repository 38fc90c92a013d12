# SPDX-License-Identifier: MIT
"""mlo_compiler: a transformer exported as ONNX in, a verified streaming Verilog accelerator out; the library mlo by way of ctypes.

    import mlo_compiler as mlo
    core = mlo.fold("bert.onnx", target_cycles=40000)      # a Model; stages that are missing run first
    build = mlo.emit(core, "build")                        # or all at once: mlo.compile("bert.onnx", "build", target_cycles=40000)
    print(build.manifest["predicted_cycles"], build.sim()["pass"])

in:  a path, bytes (ONNX or JSON), an onnx.ModelProto or a Model; arrays: numpy's, or whatever else has Python's buffer protocol.
out: a Model: a value that no later call changes, the JSON that stages of the command line pipe to each other, byte for byte.
Options are the command line's flags, `-` as `_`: `mlo help fold` lists them. A failure is an Error, a warning a MloWarning.
numpy and onnx are used where they are installed, and nothing needs them. Each call has a handle of its own: threads may call at a time.
"""
import ctypes as C
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
try: import numpy
except ImportError: numpy = None

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("MLO_PROGRAM") or os.path.join(HERE, "mlo")
STAGES = ("read", "scope", "extract", "roll", "quantize", "lower", "fold")
REPORTS = {"scope": "scope", "roll": "roll", "quantize": "quantize", "folding": "fold", "pareto": "lower", "cycles": "fold"}
# ONNX's number of an element type -> the letter of memoryview and struct, numpy's name
TYPES = {1: "f float32", 2: "B uint8", 3: "b int8", 4: "H uint16", 5: "h int16", 6: "i int32", 7: "q int64", 9: "? bool", 10: "e float16", 11: "d float64", 12: "I uint32", 13: "Q uint64"}
LETTERS = {v[0]: k for k, v in TYPES.items()}
LETTERS.update({"l": 7, "L": 13} if C.sizeof(C.c_long) == 8 else {"l": 6, "L": 12})


class MloWarning(UserWarning):
    """What mlo decided where no option says it, or what may be meant otherwise."""


class Error(Exception):
    """A failure, whole: code ("MLO_E_SHAPE"), status (1 to 5, as the command line exits), stage, node, op ("" where none is to blame),
    message, in two halves: what (what went wrong, with its values) and remedy."""

    def __init__(self, code, status, stage, node, op, message, text):
        super().__init__(text)
        self.code, self.status, self.stage, self.node, self.op, self.message = code, status, stage, node, op, message
        self.what, _, self.remedy = message.partition("; ")

    def __reduce__(self): return type(self), (self.code, self.status, self.stage, self.node, self.op, self.message, self.args[0])


# ---- the library, as mlo.h declares it ---------------------------------------------------------------------------------------------

class Failure(C.Structure):
    _fields_ = [("number", C.c_int), ("status", C.c_int), *((f, C.c_char_p) for f in ("code", "stage", "node", "op", "message", "text"))]


class Array(C.Structure):
    _fields_ = [("name", C.c_char_p), ("dtype", C.c_int), ("rank", C.c_int), ("dims", C.c_int64 * 8), ("data", C.c_void_p)]


Warn = C.CFUNCTYPE(None, C.c_void_p, C.c_char_p)
Sink = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_char_p, C.c_void_p, C.c_size_t)
Says = C.CFUNCTYPE(None, C.c_void_p, C.c_int64)


class Desc(C.Structure):
    _fields_ = [("user", C.c_void_p), ("alloc", C.c_void_p), ("release", C.c_void_p), ("warn", Warn), *((f, C.c_void_p) for f in ("open", "read", "close", "map", "unmap", "forget", "crew", "progress"))]


def _library():
    lib = C.CDLL(os.environ.get("MLO_LIBRARY") or os.path.join(HERE, "libmlo.so"))
    handle, text, arrays, count = C.c_void_p, C.c_char_p, C.POINTER(C.POINTER(Array)), C.POINTER(C.c_size_t)
    for name, *takes in (("set", text, text), ("load", text), ("parse", C.c_char_p, C.c_size_t, text), ("to", text), ("template", C.c_char_p, C.c_size_t), ("calibrate", C.POINTER(Array), C.c_size_t), ("hold", C.POINTER(Array), C.c_size_t),
                         ("words", C.POINTER(Array), C.c_size_t, C.POINTER(Array), C.c_size_t), ("prefill", handle), ("run", C.POINTER(Array), C.c_size_t, arrays, count), ("signature", C.c_int, arrays, count),
                         ("draw", C.c_uint64, arrays, count), ("write_json", Sink, handle), ("write_onnx", Sink, handle), ("emit", Sink, handle), ("check", handle),
                         ("show", text, Sink, handle), ("generate", C.POINTER(handle), C.c_size_t, C.POINTER(C.c_int64), C.c_size_t, C.c_size_t, C.c_int64, Says, handle, C.POINTER(C.POINTER(C.c_int64)), count)):
        getattr(lib, "mlo_" + name).argtypes = [handle, *takes]
    for name, gives in ("open", handle), ("failure", C.POINTER(Failure)), ("report", text), ("stage", text): getattr(lib, "mlo_" + name).restype = gives
    lib.mlo_open.argtypes, lib.mlo_close.argtypes, lib.mlo_close.restype = [C.POINTER(Desc)], [handle], None
    lib.mlo_failure.argtypes, lib.mlo_report.argtypes, lib.mlo_stage.argtypes = [handle], [handle, text], [handle]
    return lib


LIB = _library()


def _bytes(arrays):
    """Arrays for mlo, from {name: array} or a list of arrays; what they point to is kept beside them."""
    items = list(arrays.items()) if hasattr(arrays, "items") else [("", a) for a in arrays]
    made, kept = (Array * max(1, len(items)))(), []
    for to, (name, value) in zip(made, items):
        view = memoryview(value)
        letter = view.format.lstrip("@=<")
        if letter not in LETTERS or view.ndim > 8: raise TypeError("%s: elements of type %r in %d axes are not what mlo takes" % (name or "an array", view.format, view.ndim))
        data = C.create_string_buffer(view.tobytes(), max(1, view.nbytes))
        to.name, to.dtype, to.rank, to.data = name.encode(), LETTERS[letter], view.ndim, C.addressof(data)
        to.dims[:view.ndim] = view.shape
        kept.append(data)
    return made, len(items), kept


def _array(a):
    """One of mlo's arrays: numpy's, or without numpy a memoryview."""
    letter, name = TYPES[a.dtype].split()
    shape = tuple(a.dims[:a.rank])
    size = C.sizeof(getattr(C, {"f": "c_float", "d": "c_double", "e": "c_int16", "?": "c_bool"}.get(letter, "c_" + name)))
    for d in shape: size *= d
    data = bytearray(C.string_at(a.data, size) if size else b"")
    if numpy: return numpy.frombuffer(data, name).reshape(shape)
    return memoryview(data).cast(letter, shape) if size and shape else memoryview(data).cast(letter)


class Handle:
    """One of mlo's handles, from open to close. Every call that fails raises what the handle says, or what a callback raised."""

    def __init__(self):
        self.lines, self.raised, self.kept = [], None, []
        self.desc = Desc(warn=Warn(lambda _, line: self.lines.append(line.decode(errors="replace"))))
        self.h = LIB.mlo_open(C.byref(self.desc))
        if not self.h: raise MemoryError("mlo_open")

    def __enter__(self): return self

    def __exit__(self, *_):
        LIB.mlo_close(self.h)
        for other in self.kept:
            if isinstance(other, Handle): other.__exit__()
        for line in self.lines: warnings.warn(line, MloWarning, stacklevel=4)

    def __call__(self, name, *args):
        r = getattr(LIB, "mlo_" + name)(self.h, *args)
        if self.raised: raise self.raised
        f = LIB.mlo_failure(self.h)
        if f:
            e = f.contents
            raise Error(e.code.decode(), e.status, *((x or b"").decode(errors="replace") for x in (e.stage, e.node, e.op, e.message, e.text)))
        return r

    def load(self, model, options):
        """The options, and the model from wherever it is."""
        options = dict(options)
        for name, value in options.items():
            key = name.replace("_", "-")
            if key == "calib": self("calibrate", *self.keep(_bytes(value)))
            elif key == "hold": self("hold", *_bytes(value)[:2])
            elif key == "template": self("template", *self.keep((value, len(value))))
            elif key == "prefill":
                other = Handle()
                self.kept.append(other)
                other.load(value, {k: v for k, v in options.items() if k in ("context", "dim", "shape")})
                self("prefill", other.h)
            else: self.set(key, value)
        if isinstance(model, Model): model = model.text
        if hasattr(model, "SerializeToString"): model = model.SerializeToString()
        if isinstance(model, (bytes, bytearray)): self("parse", *self.keep((bytes(model), len(model))), b".")
        else: self("load", os.path.realpath(os.fsencode(model)))
        return self

    def keep(self, what):
        """What mlo borrows until the handle is closed."""
        self.kept.append(what)
        return what[:2]

    def set(self, key, value):
        if value is None or value is False: return
        if key in ("folding", "q-config"):
            key, value = key + "-json", value if isinstance(value, dict) else open(value).read()
        if key in ("dim", "shape") and isinstance(value, dict):
            value = ["%s=%s" % (k, "x".join(map(str, v)) if isinstance(v, (list, tuple)) else v) for k, v in value.items()]
        if isinstance(value, dict) or key == "hierarchy" and not isinstance(value, str): value = json.dumps(value)
        for one in value if isinstance(value, (list, tuple)) else [value]:
            self("set", key.encode(), b"1" if one is True else str(one).encode())

    def pull(self, name, put, *args):
        """What a function of mlo.h writes, piece by piece, into put(file, bytes)."""
        def sink(_, file, data, n):
            try: put(file.decode(), C.string_at(data, n))
            except BaseException as e: self.raised = e
            return int(self.raised is not None)
        self(name, *args, Sink(sink), None)

    def text(self, name, *args):
        pieces = []
        self.pull(name, lambda _, b: pieces.append(b), *args)
        return b"".join(pieces)

    def arrays(self, name, *args):
        found, n = C.POINTER(Array)(), C.c_size_t()
        self(name, *args, C.byref(found), C.byref(n))
        return [found[i] for i in range(n.value)]


# ---- models ------------------------------------------------------------------------------------------------------------------------

class Model:
    """A model of some stage: .text is its JSON, where weights of files stay in these files; .stage, .onnx() (binary), .proto(), .json()."""

    def __init__(self, text, stage): self.text, self.stage = text, stage
    def __repr__(self): return "<mlo model, stage %s, %d bytes of JSON>" % (self.stage, len(self.text))
    def json(self): return json.loads(self.text)

    def onnx(self):
        with Handle() as m: return m.load(self, {}).text("write_onnx")

    def proto(self):
        import onnx
        return onnx.load_model_from_string(self.onnx())


def _verb(stage):
    def verb(model, **options):
        with Handle() as m:
            m.load(model, options)("to", stage.encode())
            return Model(m.text("write_json"), m("stage").decode())
    verb.__name__ = verb.__qualname__ = stage
    verb.__doc__ = "The model behind stage `%s`; the stages before it run first where they have not. Options: `mlo help %s`%s." % (stage, stage, ", calib={input: array}" if STAGES.index(stage) > 3 else "")
    return verb


read, scope, extract, roll, quantize, lower, fold = map(_verb, STAGES)


def report(model, what, **options):
    """What a stage found: "scope", "roll", "quantize" (measured against the floats), "folding", "cycles"; "pareto": a list of foldings."""
    if what not in REPORTS: raise ValueError("%r is no report; there are %s" % (what, ", ".join(REPORTS)))
    if what == "quantize": options.setdefault("report", True)
    with Handle() as m:
        m.load(model, options)("to", REPORTS[what].encode())
        text = m("report", what.encode()).decode()
    return [json.loads(l) for l in text.splitlines()] if what == "pareto" else json.loads(text)


def run(model, inputs, **options):
    """{output: array} for {input: array}, or for arrays in their order. Models of integers are bit-exact with the Verilog."""
    with Handle() as m:
        m.load(model, options)
        return {a.name.decode(): _array(a) for a in m.arrays("run", *m.keep(_bytes(inputs)))}


def draw(model, k=1000, **options):
    """{input: array}: the k-th of an endless row of inputs of the declared types; from 1000 on those of the bench."""
    with Handle() as m:
        m.load(model, options)("to", b"read")
        return {a.name.decode(): _array(a) for a in m.arrays("draw", k)}


def signature(model, outputs=False, **options):
    """{input: (type, shape)}, or of outputs; -1: not known."""
    with Handle() as m:
        m.load(model, options)
        return {a.name.decode(): (TYPES.get(a.dtype, "? other").split()[1], tuple(a.dims[:max(0, a.rank)])) for a in m.arrays("signature", int(outputs))}


def generate(model, prompt, count, stop=-1, says=None, **options):
    """Token ids of a decoder: the prompt's, and up to `count` that follow, the likeliest one by one. says(id) hears of each."""
    with Handle() as m:
        m.load(model, options)("to", b"read")
        ids, found, n = (C.c_int64 * len(prompt))(*prompt), C.POINTER(C.c_int64)(), C.c_size_t()
        m("generate", None, 0, ids, len(prompt), count, stop, Says(lambda _, token: says(token)) if says else Says(), None, C.byref(found), C.byref(n))
        return found[:n.value]


def check(rolled, original, **options):
    """True where the rolled model is proved equal to its original; an Error MLO_E_MISMATCH with the first difference where not."""
    with Handle() as a, Handle() as b:
        a.load(rolled, options)("check", b.load(original, options).h)
        return True


def show(model, format="text", **options):
    """Any stage's model as "text", "json", "dot", "html" (one page) or "svg"."""
    with Handle() as m: return m.load(model, options).text("show", format.encode()).decode()


# ---- build directories ---------------------------------------------------------------------------------------------------------------

class Build:
    """A build directory: .directory, .manifest; sim() plays it."""

    def __init__(self, directory):
        self.directory = os.fspath(directory)
        with open(os.path.join(directory, "manifest.json")) as f: self.manifest = json.load(f)

    def sim(self, **flags): return sim(self.directory, **flags)


def emit(model, directory, inputs=None, golden=None, **options):
    """Writes the build directory, all of it or nothing, and returns a Build. inputs, golden: of a network of integers (target="c")."""
    directory = os.path.abspath(os.fspath(directory))
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    made, files = tempfile.mkdtemp(prefix=os.path.basename(directory) + ".mlo-", dir=os.path.dirname(directory)), []

    def put(file, data):
        path = os.path.join(made, file)
        if file not in files:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            files.append(file)
        with open(path, "ab") as f: f.write(data)

    try:
        with Handle() as m:
            m.load(model, options)
            if inputs is not None: m("words", *m.keep(_bytes(inputs)), *m.keep(_bytes(golden or {})))
            m("to", b"read" if inputs is not None else b"lower" if options.get("target") == "c" else b"fold")
            m.pull("emit", put)
        old = Build(directory).manifest["files"] if os.path.exists(os.path.join(directory, "manifest.json")) else {}
        for gone in set(old) - set(files):
            if os.path.lexists(os.path.join(directory, gone)): os.remove(os.path.join(directory, gone))
        for file in files:                               # manifest.json is the last: what it lists is there
            os.makedirs(os.path.dirname(os.path.join(directory, file)), exist_ok=True)
            os.replace(os.path.join(made, file), os.path.join(directory, file))
    finally: shutil.rmtree(made, ignore_errors=True)
    return Build(directory)


compile = emit


def sim(directory, **flags):
    """What `mlo sim` says of a build directory, as a dict: the flags are its own. Icarus or Verilator has to be installed."""
    given = [x for k, v in flags.items() if v is not None and v is not False for x in (["--" + k.replace("_", "-")] + ([] if v is True else [str(v)]))]
    p = subprocess.run([PROGRAM, "sim", os.fspath(directory), *given], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    said = json.loads(p.stdout.splitlines()[0]) if p.stdout.startswith("{") else {}
    if p.returncode and "pass" not in said:
        e = said.get("error", {})
        raise Error(e.get("code", ""), p.returncode, e.get("stage", "sim"), e.get("node", ""), e.get("op", ""), e.get("message", p.stderr.strip()), p.stderr.strip())
    return said


def main():
    """The command line: `mlo` of an environment that the wheel was installed into."""
    os.execv(PROGRAM, ["mlo", *sys.argv[1:]])
