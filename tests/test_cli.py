#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line: flags and help, files in and out, npz, run, the pipe, compile, sim and its judgements.

    python tests/test_cli.py path/to/mlo [NAME ...]"""
import hashlib, io, json, os, re, shutil, struct, subprocess, zipfile, zlib
import numpy as np
import onnx
import harness as t

BERT = t.model("bert-tiny")
VERBS = "read scope extract roll quantize lower fold emit compile run sim check show help".split()


def text(p): return p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")


def refused(name, status, words, *args, **options):
    """Fails with that status, one line on stderr that holds all words, and an error document on stdout that says the same."""
    p = t.call(*args, **options)
    out, err = text(p)
    err = re.sub(r"(?m)^mlo: (warning: .*|fold: .* choose another|lower: .* chooses it)\n", "", err)
    why = ""
    if p.returncode != status: why = "status %d, not %d" % (p.returncode, status)
    elif err.count("\n") != 1 or not re.match(r"mlo: .*\[MLO_E_[A-Z]+\]\n$", err): why = "stderr is not one line"
    else:
        missing = [w for w in words if w not in err]
        if missing: why = "no '%s'" % missing[0]
        else:
            try: e = json.loads(out)["error"]; why = "" if e["message"] in err and "[%s]" % e["code"] in err else "the document says something else"
            except Exception: why = "no error document: " + out[:100]
    t.case(name, why and why + ": " + err)


def ids(name, shape=(1, 32), seed=0, save=np.savez, words=1000, **more):
    path = t.at(name)
    save(path, input_ids=np.random.default_rng(seed).integers(0, words, shape), **more)
    return path


# ---- the table -------------------------------------------------------------------------------------------------------------------

def check_help():
    out = t.good("help").decode()
    t.case("help lists every verb", " ".join(v for v in VERBS if "mlo " + v not in out))
    for v in VERBS: t.case("help " + v, "" if t.good("help", v).decode().startswith("mlo " + v) else "odd")
    t.case("VERB --help", " ".join(v for v in VERBS[:-1] if t.good(v, "--help") != t.good("help", v)))
    man = t.good("help", "--man").decode()
    t.case("man page", "" if man.startswith(".TH MLO 1") and "\\-\\-target\\-cycles" in man and ".SH EXIT STATUS" in man else man[:80] or "it says nothing")
    verbs = re.search(r"\\-\\-onnx\\fR\n.*\. Verbs:(.*)\.\n", man)
    t.case("man page: a flag's verbs", "" if verbs and verbs[1].split() == ["read", "scope", "extract", "roll", "quantize", "lower", "fold"] else man[man.find("onnx"):][:200])
    told = {flag for v in re.findall(r"^  mlo (\w+)", out, re.M) for flag in re.findall(r"^  (--?[\w-]+(?: \S+)?)", t.good("help", v).decode(), re.M)}
    manual = {re.sub(r"\\(f.|(.))", r"\2", line).strip() for line in re.findall(r"^\.TP\n\\fB(\\-.*)$", man, re.M)}
    t.case("man page: every flag, with what it takes", "" if told and told == manual else str(sorted(told ^ manual)))
    header = set(re.findall(r"X\(MLO_E_\w+, +(\d)", t.read(os.path.join(t.root, "mlo.h")).decode()))
    status = re.findall(r"(\d) ([^;\n]+?)(?=; \d|\.$)", out[out.index("Exit status:"):], re.M)
    manual = re.findall(r"^\.TP\n(\d)\n(.*)$", man[man.index(".SH EXIT STATUS"):], re.M)
    t.case("help: every status that mlo.h has, as the man page says them", "" if {n for n, _ in status} == header | {"0"} and status == manual else "%s; %s; %s" % (status, manual, header))
    if t.have("man page renders", "groff"):
        p = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=man.encode(), capture_output=True)
        t.case("man page renders", p.stderr.decode())
    done = t.good("help", "--completion", "bash")
    p = subprocess.run(["bash", "-c", done.decode() + "\nCOMP_WORDS=(mlo fold --target-c); COMP_CWORD=2; _mlo; echo ${COMPREPLY[@]}"], capture_output=True, text=True)
    t.case("completion", "" if p.stdout == "--target-cycles\n" else p.stdout + p.stderr)
    t.case("version", "" if re.match(rb"mlo \d+\.\d+\.\d+\n$", t.good("--version")) else "odd")
    p = t.call()
    t.case("no verb: usage on stderr, status 2", "" if p.returncode == 2 and not p.stdout and b"mlo compile" in p.stderr else "no")


def check_flags():
    refused("unknown verb", 2, ["compil", "compile"], "compil", BERT)
    refused("unknown flag, with a suggestion", 2, ["--target-cycle", "--target-cycles"], "fold", BERT, "--target-cycle", "3")
    refused("unknown flag, half of it another's", 2, ["--tixx", "--tile"], "fold", BERT, "--tixx", "3")
    refused("unknown flag, far from all", 2, ["--xyzzy", "mlo help fold"], "fold", BERT, "--xyzzy")
    refused("another verb's flag", 2, ["--stall", "sim"], "fold", BERT, "--stall", "3")
    refused("flag without its value", 2, ["--pe", "needs a value"], "fold", BERT, "--pe")
    refused("switch with a value", 2, ["--onnx"], "read", BERT, "--onnx=1")
    refused("two files", 2, ["one"], "read", BERT, BERT)
    refused("not a number", 2, ["--pe x"], "fold", BERT, "--pe", "x")
    refused("a width there is not", 2, ["--weights 9", "2 to 8"], "quantize", BERT, "--weights", "9")
    refused("a device there is not", 2, ["no device x", "xczu3eg"], "fold", BERT, "--device", "x")
    refused("contradicting targets", 2, ["exclude"], "fold", BERT, "--pe", "2", "--target-cycles", "9000", "--calib", t.calibration("bert-tiny"))
    a, b = t.good("fold", BERT, "--pe", "2", "--simd=4"), t.good("fold", "--simd", "4", "--pe=2", "--", BERT)
    t.case("order and form of flags do not matter", "" if a == b else "differs")


def check_config():
    config = t.write("c.json", json.dumps({"pe": 2, "simd": "4", "stall": 30, "onnx": False, "hierarchy": [["encoder", "encoder.layer.0"]], "weights": 8}))
    t.case("config equals flags", "" if t.good("fold", BERT, "--config", config) == t.good("fold", BERT, "--pe", "2", "--simd", "4", "--hierarchy", '[["encoder","encoder.layer.0"]]') else "differs")
    t.case("the command line wins", "" if t.good("fold", BERT, "--config", config, "--pe", "4") == t.good("fold", BERT, "--pe", "4", "--simd", "4") else "differs")
    refused("config: unknown key", 2, ["pee", "pe"], "fold", BERT, "--config", t.write("c2.json", '{"pee": 1}'))
    refused("config: no JSON", 3, ["c3.json"], "fold", BERT, "--config", t.write("c3.json", "pe=1"))
    refused("config: not there", 2, ["nope.json"], "fold", BERT, "--config", "nope.json")
    dims = t.write("c4.json", '{"dim": ["seq=32"]}')
    t.case("config: a list", "" if t.good("read", t.model("bert-tiny-dynamic"), "--config", dims) == t.good("read", t.model("bert-tiny-dynamic"), "--dim", "seq=32") else "differs")


# ---- files -----------------------------------------------------------------------------------------------------------------------

def check_input():
    refused("no such file", 2, ["nope.onnx", "No such file"], "read", "nope.onnx")
    refused("a directory", 2, ["is a directory"], "read", t.tmp)
    refused("an empty file", 3, ["empty"], "read", t.write("empty.onnx", b""))
    refused("a text file", 3, ["MLO_E_FORMAT"], "read", t.write("text.onnx", b"hello, this is no model\n" * 20))
    refused("a truncated file", 3, ["MLO_E"], "read", t.write("cut.onnx", t.read(BERT)[:100000]))
    if os.getuid():
        os.chmod(t.write("locked.onnx", b"x"), 0)
        refused("an unreadable file", 2, ["Permission denied"], "read", t.at("locked.onnx"))
    os.symlink(BERT, t.at("link.onnx"))
    t.case("a model behind a symlink, in a pipe", "" if t.call("roll", input=t.good("read", t.at("link.onnx"))).returncode == 0 else "refused")
    folder = t.at("sym")
    os.mkdir(folder)
    shutil.copy(t.model("bert-tiny-external"), folder)
    os.symlink(os.path.join(os.path.dirname(t.model("bert-tiny-external")), "bert-tiny-external.data"), os.path.join(folder, "bert-tiny-external.data"))
    refused("external data behind a symlink", 2, ["bert-tiny-external.data"], "read", os.path.join(folder, "bert-tiny-external.onnx"))
    t.case("stdin equals a file", "" if t.good("read", "--onnx", "-", input=t.read(BERT)) == t.good("read", BERT, "--onnx") else "differs")
    refused("stdin that is no model", 3, ["MLO_E_FORMAT"], "read", input=b"{}x")


def check_output():
    out = t.at("m.json")
    t.good("read", BERT, "-o", out)
    t.case("-o equals stdout", "" if t.read(out) == t.good("read", BERT) else "differs")
    t.good("read", BERT, "-o", t.at("m.onnx"))
    t.case("-o x.onnx is binary", "" if t.read(t.at("m.onnx")) == t.good("read", BERT, "--onnx") else "differs")
    refused("-o is a directory", 2, ["is a directory"], "read", BERT, "-o", t.tmp)
    refused("-o in no directory", 2, ["cannot be written"], "read", BERT, "-o", t.at("no/where.json"))
    before = t.read(out)
    p = t.call("roll", t.model("whisper-tiny"), "--hierarchy", '[["nothing"]]', "-o", out)
    t.case("a failure leaves the old output", "" if p.returncode and t.read(out) == before else "it is gone")
    p = subprocess.run([t.mlo, "read", BERT], stdout=open("/dev/full", "wb"), stderr=subprocess.PIPE)
    t.case("a full device", "" if p.returncode == 2 and p.stderr == b"mlo: read: stdout: No space left on device [MLO_E_IO]\n" else "%d %s" % (p.returncode, p.stderr))
    r, w = os.pipe(); os.close(r)
    p = subprocess.run([t.mlo, "read", BERT], stdout=w, stderr=subprocess.PIPE); os.close(w)
    t.case("a closed pipe", "" if p.returncode == 2 and p.stderr == b"mlo: read: stdout: Broken pipe [MLO_E_IO]\n" else "%d %s" % (p.returncode, p.stderr))
    t.case("nothing is left over", "" if not [f for f in os.listdir(t.tmp) if ".mlo-" in f] else "temporary files")
    kept = t.at("kept")
    t.good("fold", BERT, "--keep", kept)
    t.case("--keep", "" if sorted(os.listdir(kept)) == sorted(s + ".onnx" for s in "read scope extract roll quantize lower fold".split()) else str(os.listdir(kept)))
    t.case("--keep holds what the stage writes", "" if t.read(os.path.join(kept, "roll.onnx")) == t.good("roll", BERT, "--onnx") else "differs")
    t.good("quantize", BERT, "--report", t.at("r.json"))
    r = json.loads(t.read(t.at("r.json")))
    t.case("--report", "" if r["loops"][0]["iterations"] == 2 and r["scopes"]["nodes"] == 75 and r["quantize"]["values"] else str(r)[:200])


def check_pipe():
    failed = t.call("read", t.write("bad.onnx", b"hello hello hello"))
    p = t.call("emit", "-o", t.at("never"), input=t.call("fold", input=t.call("roll", input=failed.stdout).stdout).stdout)
    t.case("an error document is passed on", "" if p.returncode == failed.returncode == 3 and p.stdout == failed.stdout and not p.stderr else str(p))
    t.case("... and nothing is made of it", "" if not os.path.exists(t.at("never")) else "a directory")
    p = t.call("roll", "--onnx", input=failed.stdout)
    t.case("... also in --onnx pipes", "" if p.stdout == failed.stdout else str(p))
    flags = ["--pe", "2", "--simd", "2"]
    t.good("compile", BERT, *flags, "-o", t.at("one"))
    model = t.read(BERT)
    for stage in "read roll quantize lower".split(): model = t.good(stage, input=model) if stage != "read" else t.good(stage, BERT)
    t.good("emit", "-o", t.at("two"), input=t.good("fold", *flags, input=model))
    t.case("the pipe gives compile's directory", t.trees_differ(t.at("one"), t.at("two")))


# ---- npz -------------------------------------------------------------------------------------------------------------------------

def check_npz():
    import onnx
    from onnx import helper, TensorProto as T
    kinds = {"b": (T.BOOL, np.bool_), "i1": (T.INT8, np.int8), "u1": (T.UINT8, np.uint8), "i2": (T.INT16, np.int16), "u2": (T.UINT16, np.uint16), "i4": (T.INT32, np.int32), "u4": (T.UINT32, np.uint32),
             "i8": (T.INT64, np.int64), "u8": (T.UINT64, np.uint64), "f2": (T.FLOAT16, np.float16), "f4": (T.FLOAT, np.float32), "f8": (T.DOUBLE, np.float64)}
    shape, rng = [2, 3, 5], np.random.default_rng(0)
    nodes = [helper.make_node("Identity", [k], [k + "_out"]) for k in kinds]
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(k, v[0], shape) for k, v in kinds.items()], [helper.make_tensor_value_info(k + "_out", v[0], shape) for k, v in kinds.items()])
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), t.at("id.onnx"))
    data = {k: (rng.standard_normal(shape) * 50).astype(v[1]) for k, v in kinds.items()}
    for name, save, change in (("stored", np.savez, lambda a: a), ("deflated", np.savez_compressed, lambda a: a), ("Fortran order", np.savez_compressed, np.asfortranarray)):
        save(t.at("in.npz"), **{k: change(a) for k, a in data.items()})
        t.good("run", t.at("id.onnx"), "--inputs", t.at("in.npz"), "--outputs", t.at("out.npz"))
        got = np.load(t.at("out.npz"))
        t.case("npz, all types, " + name, " ".join(k for k, a in data.items() if got[k + "_out"].dtype != a.dtype or not np.array_equal(got[k + "_out"], a)))
    t.case("npz written is a good zip", zipfile.ZipFile(t.at("out.npz")).testzip() or "")
    with zipfile.ZipFile(t.at("out.npz")) as z: heads = [data[:10 + int.from_bytes(data[8:10], "little")] for data in map(z.read, z.namelist())]
    t.case("npz written has headers of whole 64 bytes that end a line", "" if heads and all(len(h) % 64 == 0 and h.endswith(b"}" + b" " * (len(h) - 1 - h.rindex(b"}") - 1) + b"\n") for h in heads) else str(heads))
    with zipfile.ZipFile(t.at("out.npz")) as z:            # APPNOTE 4.4.3.2: 4.5 has ZIP64's extensions; 4.4.4: bit 11, names are UTF-8; both headers of a file say so
        versions = {(i.extract_version, i.flag_bits) for i in z.infolist()} | {struct.unpack_from("<HH", t.read(t.at("out.npz")), i.header_offset + 4) for i in z.infolist()}
    t.case("npz written asks for version 4.5, and has its names in UTF-8", "" if versions == {(45, 0x800)} else str(versions))
    whole = t.read(t.at("out.npz"))
    last = struct.unpack("<IIQI", whole[-42:-22])            # APPNOTE 4.3.15: on the disk 0 of 1, where the end record of ZIP64 lies
    t.case("npz written is on one disk", "" if last == (0x07064b50, 0, whole.rfind(b"PK\x06\x06"), 1) else str(last))
    np.savez(t.at("pos.npz"), *data.values())
    t.good("run", t.at("id.onnx"), "--inputs", t.at("pos.npz"), "--outputs", t.at("out2.npz"))
    t.case("by position when no name fits", "" if np.array_equal(np.load(t.at("out2.npz"))["f4_out"], data["f4"]) else "differs")
    t.good("run", t.at("id.onnx"), "--inputs", t.at("out.npz"), "--outputs", t.at("out3.npz"))
    t.case("what mlo wrote, read again", "" if np.array_equal(np.load(t.at("out3.npz"))["u8_out"], data["u8"]) else "differs")
    p = t.call("run", t.at("id.onnx"), "--inputs", t.at("pos.npz"), "--outputs", "-")
    t.case("--outputs -", "" if np.array_equal(np.load(io.BytesIO(p.stdout))["i8_out"], data["i8"]) else "differs")


def check_hostile():
    good = t.read(ids("h.npz", save=np.savez_compressed, more=np.arange(1000)))
    run = lambda data: t.call("run", BERT, "--inputs", t.write("bad.npz", data))
    refused("npz: not a zip", 3, ["npz"], "run", BERT, "--inputs", t.write("x.npz", b"not a zip at all, but long enough to look"))
    refused("npz: a directory", 2, ["directory"], "run", BERT, "--inputs", t.tmp)
    refused("npz: big-endian", 3, [">i8"], "run", BERT, "--inputs", ids("be.npz", save=lambda p, input_ids: np.savez(p, input_ids=input_ids.astype(">i8"))))
    refused("npz: wrong names and too many", 2, ["arrays"], "run", BERT, "--inputs", ids("n.npz", save=lambda p, input_ids: np.savez(p, a=input_ids, b=input_ids)))
    refused("npz: wrong shape", 3, ["[1,32]"], "run", BERT, "--inputs", ids("s.npz", (1, 31)))
    refused("npz: wrong type", 3, ["int64"], "run", BERT, "--inputs", ids("ty.npz", save=lambda p, input_ids: np.savez(p, input_ids=input_ids.astype(np.float32))))
    refused("calib: wrong name", 3, ["ids"], "quantize", BERT, "--calib", ids("cn.npz", save=lambda p, input_ids: np.savez(p, ids=input_ids)))
    refused("calib: wrong shape", 3, ["input_ids"], "quantize", BERT, "--calib", ids("cs.npz", (4, 31)))
    odd = [n for n in list(range(0, len(good), 7)) if run(good[:n]).returncode not in (2, 3)]
    t.case("npz: cut off anywhere", "" if not odd else "at %s" % odd[:5])
    rng, bad = np.random.default_rng(1), []
    for i in range(150):
        data = bytearray(good)
        for at in rng.integers(0, len(data), 1 + i % 3): data[at] ^= 1 << rng.integers(0, 8)
        if run(bytes(data)).returncode not in (0, 2, 3, 4): bad.append(i)
    t.case("npz: bits flipped", "" if not bad else str(bad[:5]))
    big = bytearray(zipped("input_ids.npy", npy("(1000000, 1000000, 1000000)", b"")))
    t.case("npz: a shape beyond memory", "" if run(bytes(big)).returncode == 3 else "accepted")


def npy(shape, data, descr="<i8"):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)).ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + data


def zipped(name, data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z: z.writestr(name, data)
    return out.getvalue()


def archive(*members, comment=b"", record=None, count=None, at=None, tail=b""):
    """A zip file with its every number in the open. A member: name, data and, by keyword, what differs from a good one:
    method, flags, bytes (as they lie there), whole, packed, crc, place, extra (of the directory), magic (local, directory)."""
    body, directory = b"", b""
    le = lambda v, n: int(v).to_bytes(n, "little")
    for name, data, odd in members:
        name = name.encode()
        method, held = odd.get("method", 0), odd.get("bytes", data)
        local, central = odd.get("magic", (b"PK\x03\x04", b"PK\x01\x02"))
        sizes = le(odd.get("crc", zlib.crc32(data)), 4) + le(odd.get("packed", len(held)), 4) + le(odd.get("whole", len(data)), 4)
        place, extra = odd.get("place", len(body)), odd.get("extra", b"")
        body += local + le(20, 2) + le(0, 2) + le(method, 2) + bytes(4) + sizes + le(len(name), 2) + le(0, 2) + name + held
        directory += (central + le(20, 2) + le(20, 2) + le(odd.get("flags", 0), 2) + le(method, 2) + bytes(4) + sizes + le(len(name), 2)
                      + le(len(extra), 2) + le(0, 2) + bytes(8) + le(place, 4) + name + extra)
    start = len(body) if at is None else at
    end = b"PK\x05\x06" + bytes(6) + le(len(members) if count is None else count, 2) + le(len(directory), 4) + le(start, 4) + le(len(comment), 2) + comment
    if record is not None:          # zip64: where its record is said to be; the end record is all ones
        where = len(body) + len(directory)
        big = b"PK\x06\x06" + le(44, 8) + le(45, 2) * 2 + bytes(8) + le(len(members), 8) * 2 + le(len(directory), 8) + le(start, 8)
        end = big + b"PK\x06\x07" + bytes(4) + le(where if record is True else record, 8) + le(1, 4) + end[:8] + b"\xff" * 12 + end[20:]
    return body + directory + end + tail


def zip64(*numbers): return b"\x01\0" + (8 * len(numbers)).to_bytes(2, "little") + b"".join(n.to_bytes(8, "little") for n in numbers)


def deflated(data):
    z = zlib.compressobj(9, zlib.DEFLATED, -15)
    return z.compress(data) + z.flush()


def check_archives():
    """What NumPy and the zip format allow is read; what breaks them is refused, for what is wrong."""
    from onnx import helper, TensorProto as T
    import onnx
    v = lambda name: helper.make_tensor_value_info(name, T.INT64, [2, 3])
    onnx.save(helper.make_model(helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [v("x")], [v("y")]), opset_imports=[helper.make_opsetid("", 18)], ir_version=8), t.at("copy.onnx"))
    x = np.arange(6, dtype="<i8").reshape(2, 3)
    array = npy("(2, 3)", x.tobytes())
    def saved(version, a=x):
        f = io.BytesIO()
        np.lib.format.write_array(f, a, version)
        return f.getvalue()
    def header(text, data=x.tobytes(), magic=b"\x93NUMPY\x01\x00"): return magic + len(text).to_bytes(2, "little") + text.encode() + data
    one = lambda name="x.npy", data=array, **odd: archive((name, data, odd))
    fields = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }"
    small = deflated(array)
    for what, data in (("made by hand", one()), ("version 2", one(data=saved((2, 0)))), ("version 3", one(data=saved((3, 0)))), ("one .npy", saved((1, 0))), ("one .npy in Fortran order", saved((1, 0), np.asfortranarray(x))),
                       ("a name without .npy", one("x")), ("a folder in it", archive(("x/", b"", {}), ("x.npy", array, {}))), ("a comment behind it", archive(("x.npy", array, {}), comment=b"made by hand" * 40)),
                       ("deflated", one(method=8, bytes=small)), ("a zip64 directory", archive(("x.npy", array, {}), record=True)),
                       ("zip64 sizes", one(whole=2**32 - 1, packed=2**32 - 1, extra=b"\xff\xff\x02\0ab" + zip64(len(array), len(array)))), ("a zip64 place", one(place=2**32 - 1, extra=zip64(0))),
                       ("other extra fields", one(extra=b"UT\x05\0\x01abcd" + b"\0\0")),
                       ("double quotes", one(data=header(fields.replace("'", '"')))), ("sizes of Python 2", one(data=header(fields.replace("(2, 3)", "(2L, 3L)")))), ("other order, other blanks", one(data=header("{'shape':(2,3),'fortran_order':False,'descr':'<i8'}")))):
        p = t.call("run", t.at("copy.onnx"), "--inputs", t.write("a.npz", data), "--outputs", t.at("y.npz"))
        t.case("npz: " + what, p.stderr.decode() if p.returncode else "" if np.array_equal(np.load(t.at("y.npz"))["y"], x) else "differs")
    for what, words, data in (
            ("damaged local header", ["x.npy", "no local header"], one(magic=(b"PK\x03\x05", b"PK\x01\x02"))), ("a place behind the end", ["no local header"], one(place=10**6)), ("a place at the end", ["no local header"], one(place=len(array) + 60)),
            ("damaged directory", ["directory is damaged"], one(magic=(b"PK\x03\x04", b"PK\x01\x03"))), ("a directory behind the end", ["directory is damaged"], archive(("x.npy", array, {}), at=10**6)), ("more members than there are", ["directory is damaged"], archive(("x.npy", array, {}), count=2)),
            ("a member longer than the file", ["cut off"], one(whole=10**6, packed=10**6)), ("stored in two sizes", ["x.npy", "stored", str(len(array)), "5000"], one(whole=5000)), ("another checksum", ["checksum"], one(crc=1)),
            ("too much for deflate", ["cannot come out of"], one(method=8, bytes=small, whole=10**9)), ("deflated and cut", ["does not inflate"], one(method=8, bytes=small[:-4])), ("deflated to more than it says", ["does not inflate"], one(method=8, bytes=small, whole=len(array) - 1)),
            ("deflated to less than it says", ["does not inflate"], one(method=8, bytes=small, whole=len(array) + 1)), ("a NUL in a name", ["directory is damaged"], one("x\0y.npy")), ("a very long name", ["longer than"], one("x" * 1030)), ("two of one name", ["two arrays"], archive(("x.npy", array, {}), ("x", array, {}))),
            ("an extra field that is cut", ["directory is damaged"], one(extra=b"UT\x09\0\x01")), ("zip64 without its sizes", ["directory is damaged"], one(whole=2**32 - 1, packed=2**32 - 1, extra=zip64(len(array)))),
            ("a zip64 record behind the end", ["zip64 directory is damaged"], archive(("x.npy", array, {}), record=10**6)), ("a zip64 record that is none", ["zip64 directory is damaged"], archive(("x.npy", array, {}), record=0)),
            ("no directory", ["no directory"], array.join([b"PK\x03\x04", b""])), ("no .npy inside", ["no .npy array"], one(data=b"\x93NUMPX\x01\x00" + array[8:])), ("an .npy of version 9", ["no .npy array"], one(data=array[:6] + b"\x09" + array[7:])), ("an .npy of version 0", ["no .npy array"], one(data=array[:6] + b"\0" + array[7:])), ("an .npy of five bytes", ["no .npy array"], one(data=array[:5])),
            ("an .npy header longer than the file", ["header is cut off"], one(data=array[:8] + b"\xff\x7f" + array[10:])), ("an .npy header beyond all use", ["too long"], one(data=array[:6] + b"\x02\0" + (70000).to_bytes(4, "little") + b" " * 70000)),
            ("no order", ["not as it should be"], one(data=header(fields.replace("fortran_order", "order")))), ("an order that is neither", ["not as it should be"], one(data=header(fields.replace("False", "None")))), ("no shape", ["not as it should be"], one(data=header(fields.replace("'shape'", "shape")))),
            ("a shape that is no tuple", ["not as it should be"], one(data=header(fields.replace("(2, 3)", "6")))), ("a size that is no number", ["not as it should be"], one(data=header(fields.replace("3)", "x)")))), ("a size below zero", ["not as it should be"], one(data=header(fields.replace("3)", "-3)")))),
            ("a size without end", ["not as it should be"], one(data=header(fields.replace("3)", "9" * 30 + ")")))), ("too many dimensions", ["not as it should be"], one(data=header(fields.replace("(2", "(" + "1, " * 40 + "2")))), ("sizes whose product has no name", ["too large"], one(data=header(fields.replace("3)", "1000000000, 1000000000, 1000000000)")))),
            ("data cut off", ["48 bytes", "47"], one(data=array[:-1])), ("no element type", ["are not supported"], one(data=header(fields.replace("descr", "type")))), ("records", ["[('a'", "are not supported"], one(data=header(fields.replace("'<i8'", "[('a' '<i8')]")))),
            ("strings", ["'<U3'", "are not supported"], one(data=header(fields.replace("<i8", "<U3")))), ("complex numbers", ["'<c16'"], one(data=header(fields.replace("<i8", "<c16")))), ("a type whose name is longer", ["'<i88'"], one(data=header(fields.replace("<i8", "<i88"))))):
        refused("npz: " + what, 3, words, "run", t.at("copy.onnx"), "--inputs", t.write("a.npz", data))
    for what, words, data in (("encrypted", ["x.npy", "encrypted"], one(flags=1)), ("bzip2", ["zip method 12", "numpy.savez"], one(method=12))):
        refused("npz: " + what, 4, words, "run", t.at("copy.onnx"), "--inputs", t.write("a.npz", data))


# ---- run, check --------------------------------------------------------------------------------------------------------------------

def check_run():
    import onnxruntime as ort
    inputs = ids("r.npz")
    t.good("run", BERT, "--inputs", inputs, "--outputs", t.at("ro.npz"))
    s = ort.InferenceSession(BERT)
    want, got = s.run(None, dict(np.load(inputs))), np.load(t.at("ro.npz"))
    worst = max(np.abs(got[o.name] - w).max() / np.abs(w).max() for o, w in zip(s.get_outputs(), want))
    t.case("run equals ONNX Runtime", "" if worst < 1e-5 else str(worst))
    refused("run without inputs says what it takes", 2, ["input_ids int64 [1, 32]"], "run", BERT)
    out = json.loads(t.good("run", BERT, "--inputs", inputs))
    t.case("run prints a summary", "" if [o["shape"] for o in out["outputs"]] == [[1, 32, 64], [1, 64]] else str(out))
    folded = t.at("f.onnx")
    t.good("fold", BERT, "-o", folded, "--calib", inputs)
    t.good("run", folded, "--inputs", inputs, "--probe", t.at("p.npz"), "--outputs", t.at("fo.npz"))
    p, o = np.load(t.at("p.npz")), np.load(t.at("fo.npz"))
    t.case("--probe holds every iteration", "" if "linear_qkv@0" in p.files and "linear_qkv@1" in p.files and p["linear_qkv@1"].dtype == np.int8 and np.array_equal(p["layer_norm_4"], o["layer_norm_4"]) else str(p.files)[:200])
    p = t.call("check", "-", "--against", BERT, input=t.good("roll", BERT))
    t.case("check", "" if p.returncode == 0 and json.loads(p.stdout) == {"equal": True} else str(p))
    refused("check: another model", 1, ["check"], "check", "-", "--against", t.model("bert-tiny-mask"), input=t.good("roll", BERT))
    refused("check without --against", 2, ["--against"], "check", BERT)


# ---- odd paths, odd values -----------------------------------------------------------------------------------------------------------

MLP = t.model("mlp-res")


def check_paths():
    """Files where none can be, and what is in their way; all that refuses says which, and leaves nothing."""
    folder = t.at("paths")
    os.makedirs(folder)
    here = lambda *args, **more: t.call(*args, cwd=folder, **more)
    def said(name, p, status, *words):
        t.case(name, "" if p.returncode == status and all(w in text(p)[1] for w in words) else "%d: %s" % (p.returncode, text(p)[1][-300:]))
    external = t.model("bert-tiny-external")
    for link, to in ("external.onnx", external), ("gone.onnx", t.at("gone")): os.symlink(to, os.path.join(folder, link))
    p, q = here("read", "external.onnx"), t.call("read", external)
    t.case("a link to a model, whose data lie beside it", "" if p.returncode == 0 and len(p.stdout) > 10000 and p.returncode == q.returncode else text(p)[1])
    said("a link to nothing", here("read", "gone.onnx"), 2, "gone.onnx", "No such file")
    os.mkfifo(os.path.join(folder, "pipe"))
    said("a pipe by its name", here("read", "pipe"), 2, "is not a plain file; pipe it in")
    shutil.copy(external, os.path.join(folder, "copied.onnx"))
    data = os.path.join(folder, "bert-tiny-external.data")
    for name, put, words in (("is not there", lambda: None, "bert-tiny-external.data"), ("is a folder", lambda: os.mkdir(data), "bert-tiny-external.data"), ("is a link", lambda: os.symlink(os.path.join(os.path.dirname(external), "bert-tiny-external.data"), data), "bert-tiny-external.data"), ("is empty", lambda: open(data, "w").close(), "bert-tiny-external.data")):
        put()
        said("data that " + name, here("run", "copied.onnx", "--inputs", ids("p.npz")), 3 if name == "is empty" else 2, words)
        if os.path.islink(data) or os.path.isfile(data): os.remove(data)
        elif os.path.isdir(data): os.rmdir(data)
    long = "./" * 2030
    said("-o of a name that is too long beside it", here("read", MLP, "-o", long + "x" * 30 + ".json"), 2, "the name is too long")
    said("-o of a name that is too long", here("read", MLP, "-o", "x" * 300), 2, "cannot be written")
    said("-o of a binary whose data file's name is too long", here("read", MLP, "-o", long + "y" * 25 + ".onnx"), 2, "too long")
    said("a build directory of a name that is too long", here("compile", MLP, "-o", long + "x" * 60), 2, "the name is too long")
    said("--keep of a name that is too long", here("fold", MLP, "--keep", long + "kept" * 9), 2, "")
    said("--keep beneath a file", here("fold", MLP, "--keep", MLP + "/x"), 2, "cannot be made")
    said("-o beneath a file", here("compile", MLP, "-o", MLP + "/x"), 2, "cannot be made")
    for name in "built", "built/", "built//", "./deep/er/", "deep/../deep/er", "deep/er/..", ".":
        p = here("compile", MLP, "--pe", 2, "--simd", 8, "-o", name)
        t.case("-o %s" % name, "" if p.returncode == 0 and os.path.exists(os.path.join(folder, name, "manifest.json")) and not [f for _, d, fs in os.walk(folder) for f in d + fs if ".mlo-" in f] else "%d: %s" % (p.returncode, text(p)[1]))
    os.makedirs(os.path.join(folder, "empty"))
    p = t.call("compile", MLP, "--pe", 2, "--simd", 8, "-o", "..", cwd=os.path.join(folder, "empty"))
    t.case("-o ..", "" if p.returncode == 0 else text(p)[1])
    outside = [t.write(name, "mine") for name in ("mine-1", "mine-2")]
    manifest = json.loads(t.read(os.path.join(folder, "built/manifest.json")))
    manifest["files"].update({outside[0]: {"sha256": "0"}, "../../" + os.path.basename(outside[1]): {"sha256": "0"}, "tb/gone.v": {"sha256": "0"}})
    for text_ in json.dumps(manifest), json.dumps({"files": [1]}), "{", "[]":
        with open(os.path.join(folder, "built/manifest.json"), "w") as f: f.write(text_)
        p = here("compile", MLP, "--pe", 2, "--simd", 8, "-o", "built")
        t.case("over a directory whose manifest says %.20s" % text_, "" if p.returncode == 0 and all(os.path.exists(f) for f in outside) else "%d, %s" % (p.returncode, [os.path.exists(f) for f in outside]))
    os.remove(os.path.join(folder, "built/tb/input.hex"))
    os.makedirs(os.path.join(folder, "built/tb/input.hex/in-the-way"))
    said("a folder in a file's place", here("compile", MLP, "--pe", 2, "--simd", 8, "-o", "built"), 2, "tb/input.hex")
    for flag in "--folding", "--q-config", "--template", "--calib", "--prefill", "--config":
        for name, words in ("nowhere", "No such file"), (".", "is a directory"): said("%s %s" % (flag, name), here("fold", MLP, flag, name), 2, words)
    said("--inputs of nothing", here("run", MLP, "--inputs", "nowhere"), 2, "No such file")
    said("check --against a folder", here("check", MLP, "--against", "."), 2, "is a directory")
    said("check --against what is no model", here("check", MLP, "--against", t.write("text.onnx", "hello")), 3, "neither binary ONNX nor JSON")
    said("check without --against", here("check", MLP), 2, "--against ORIGINAL.onnx is needed")
    said("check of equals", here("check", MLP, "--against", MLP), 0)
    for name in "report", "save-template", "save-folding": said("--%s in no directory" % name, here("fold", MLP, "--" + name, "no/where"), 2, "cannot be written")
    with open("/dev/full", "wb") as full:
        for args in (("run", t.at("paths/x.onnx"), "--help"), ("--version",), ("help", "--man"), ("show", "--html", MLP), ("fold", MLP, "--pareto", "--budget-macs", 64)):
            p = subprocess.run([t.mlo, *map(str, args)], stdout=full, stderr=subprocess.PIPE)
            t.case("%s to a full device" % " ".join(map(os.path.basename, map(str, args))), "" if p.returncode == 2 and b"No space left on device" in p.stderr else "%d %s" % (p.returncode, p.stderr))


def check_words():
    """Words that are nearly right, in flags, --config and help."""
    def said(name, status, words, *args):
        p = t.call(*args)
        t.case(name, "" if p.returncode == status and all(w in text(p)[0 if not status else 1] for w in words) else "%d: %s" % (p.returncode, text(p)[1][-300:]))
    config = lambda **flags: t.write("w.json", json.dumps(flags))
    same = lambda name, flags, *args: t.case("config: " + name, "" if t.good("fold", MLP, "--config", config(**flags)) == t.good("fold", MLP, *args) else "another folding")
    same("null and false say nothing", {"pe": None, "onnx": False, "simd": 8}, "--simd", 8)
    same("a switch", {"onnx": True, "pe": 2, "simd": 8}, "--onnx", "--pe", 2, "--simd", 8)
    same("a fraction", {"bandwidth": 2.5, "target-cycles": 90000}, "--bandwidth", 2.5, "--target-cycles", 90000)
    same("another verb's flag", {"stall": 3, "simd": 8}, "--simd", 8)
    same("an object", {"hierarchy": [["layers.0"]], "simd": 8}, "--hierarchy", '[["layers.0"]]', "--simd", 8)
    same("a list of nothing", {"dim": [], "simd": 8}, "--simd", 8)
    for name, flags, words in (("a switch of a number", {"onnx": 1}, ["'onnx' is true or false"]), ("a switch of text", {"onnx": "yes"}, ["'onnx' is true or false"]), ("a value of true", {"pe": True}, ["'pe' needs a value"]), ("a key that is near none", {"xyzzyplugh": 1}, ["no flag 'xyzzyplugh'"]), ("a number far off", {"pe": 1e20}, ["--pe 1e+20"]),
                               ("a number far below", {"pe": -1e20}, ["--pe -1e+20"]), ("a list of mixed things", {"dim": ["x=1", 2]}, ["x=1"]), ("many flags", {"dim": ["a=%d" % k for k in range(500)]}, ["more than"])):
        said("config: " + name, 2, words, "fold", MLP, "--config", config(**flags))
    said("help --help", 0, ["mlo compile"], "help", "--help")
    for args in ("--help",), ("-h",), ("help",): said("mlo %s" % args, 0, ["mlo compile"], *args)
    for args in ("fold", "-h"), ("fold", "--help"), ("fold", MLP, "--pe", 2, "-h"): said("mlo %s" % " ".join(map(str, args[-1:])), 0, ["mlo fold"], *args)
    said("mlo version", 0, ["mlo 0."], "version")
    said("one dash", 2, ["-pe: did you mean --pe?"], "fold", MLP, "-pe", 2)
    said("two dashes before a letter", 2, ["--o"], "fold", MLP, "--o", "x")
    said("a letter that is none", 2, ["-z"], "fold", MLP, "-z")
    said("a flag of many verbs", 2, ["--pe", "fold"], "sim", t.tmp, "--pe", 2)
    said("a flag of one letter more than there can be", 2, ["unknown flag ---x-x"], "fold", MLP, "--" + "-x" * 60)
    said("a value that is near another", 2, ["did you mean auto? there are"], "fold", MLP, "--memory", "auot")
    said("a value that is near none", 2, ["there are layer, block, resident and auto"], "fold", MLP, "--memory", "xyzzyplugh")
    said("a shell that there is none of", 2, ["bash"], "help", "--completion", "cmd")
    said("a verb near another, in help", 2, ["did you mean 'fold'?"], "help", "fld")
    said("a verb near none, in help", 2, ["there is no verb 'xyzzyplugh'"], "help", "xyzzyplugh")
    said("a verb near none", 2, ["`mlo help` lists them"], "xyzzyplugh")
    for value in "", "x", "2x", "-1", "1000000000000000000000": said("--frames %r" % value, 2, ["--frames"], "sim", built_once(), "--frames", value)
    said("two formats", 2, ["exclude each other"], "show", MLP, "--json", "--dot")
    stages = {}
    for stage in "read", "scope", "extract", "roll", "quantize": stages[stage] = t.good(stage, stages.get("roll", MLP) if stage == "quantize" else MLP, "-o", t.at("st-%s.json" % stage)) or t.at("st-%s.json" % stage)
    for verb, before, keys in (("scope", "read", {"scopes"}), ("roll", "extract", {"loops"}), ("quantize", "roll", {"quantize"})):
        t.good(verb, t.at("st-%s.json" % before), "--report", t.at("st-r.json"), "-o", os.devnull)
        r = json.loads(t.read(t.at("st-r.json")))
        t.case("--report of %s alone" % verb, "" if keys <= set(r) and not (set(r) & ({"scopes", "quantize"} - keys)) else str(list(r)))
    said("--report where no stage ran that reports", 2, ["no stage that reports had to run"], "lower", t.at("st-quantize.json"), "--report", t.at("no.json"))


def built_once():
    if not os.path.exists(t.at("once")): t.good("compile", MLP, "--pe", 2, "--simd", 8, "-o", t.at("once"))
    return t.at("once")


def check_needs():
    """run says which inputs are needed, and what came out."""
    from onnx import helper, TensorProto as T
    def made(name, types, shape, n=1):
        names = ["in_%s_%d" % (k, i) for k in types for i in range(n)]
        g = helper.make_graph([helper.make_node("Identity", [x], [x + "_out"]) for x in names], "g", [helper.make_tensor_value_info(x, types[x.split("_")[1]], shape) for x in names], [helper.make_tensor_value_info(x + "_out", types[x.split("_")[1]], shape) for x in names])
        onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), t.at(name))
        return t.at(name), names
    kinds = {"bool": np.bool_, "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32, "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64, "float": np.float32, "double": np.float64}
    types = {k: getattr(T, k.upper()) for k in kinds}
    path, names = made("kinds.onnx", types, [2, 3])
    data = {x: (np.arange(6).reshape(2, 3) * 7 % 5).astype(kinds[x.split("_")[1]]) for x in names}
    np.savez(t.at("kinds.npz"), **data)
    out = {o["name"]: o for o in json.loads(t.good("run", path, "--inputs", t.at("kinds.npz")))["outputs"]}
    for x, a in data.items():
        o = out[x + "_out"]
        t.case("what came out of %s" % x, "" if o["type"] == a.dtype.name and o["shape"] == [2, 3] and (o["min"], o["max"]) == (a.min(), a.max()) and abs(o["mean"] - a.mean()) < 1e-9 else str(o))
    p = t.call("run", path)
    t.case("what is needed", "" if p.returncode == 2 and all("%s %s [2, 3]" % (x, np.dtype(kinds[x.split("_")[1]]).name) in text(p)[1] for x in names[:3]) else text(p)[1])
    path, names = made("many.onnx", {"float": T.FLOAT}, ["rows", None, 3], 60)
    p = t.call("run", path)
    t.case("many that are needed, of sizes that nobody knows", "" if p.returncode == 2 and "in_float_0 float32 [?, ?, 3]; " in text(p)[1] and "in_float_59" not in text(p)[1] else text(p)[1])
    g = helper.make_graph([helper.make_node("Constant", [], ["y"], value_float=2.5)], "g", [], [helper.make_tensor_value_info("y", T.FLOAT, [])])
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), t.at("nothing.onnx"))
    p = t.call("run", t.at("nothing.onnx"))
    t.case("nothing is needed, and it is said so", "" if "the model has no inputs" in text(p)[1] or p.returncode == 0 and json.loads(p.stdout)["outputs"][0]["mean"] == 2.5 else "%d %s" % (p.returncode, text(p)))


# ---- compile, sim --------------------------------------------------------------------------------------------------------------------

def check_compile():
    out = t.at("build")
    p = t.call("compile", BERT, "--pe", "8", "--simd", "8", "-o", out)
    summary = json.loads(p.stdout)
    t.case("compile: JSON", "" if summary["iterations"] == 2 and summary["multipliers"] == 64 * 4 + 64 * 2 and summary["error"][0]["cosine"] > 0.99 else p.stdout[:300] or "it says nothing")
    t.case("compile: the summary", "" if all(w in p.stderr.decode() for w in ("mvu_0", "2 iterations", "Next: %s sim" % t.mlo, "cosine")) else p.stderr.decode() or "it says nothing")
    rows = re.findall(r"^  (\S+) +\w+ +\d+ +\d+ +\d+ +(\d+) +(#*)$", p.stderr.decode(), re.M)
    most = max(int(cycles) for _, cycles, _ in rows)
    wrong = [name for name, cycles, bar in rows if len(bar) != int(8 * int(cycles) / most + 0.5)]
    t.case("compile: a bar for each kernel, 8 long for the busiest", "" if len(rows) > 5 and not wrong else str(wrong or rows))
    wide = max(len(line) for line in p.stderr.decode().split("\n") if re.match(r"^  (kernel|\S+_\d+) ", line))
    t.case("compile: its table is 80 columns wide at most", "" if 60 < wide <= 80 else str(wide))
    first = t.tree(out)
    t.good("compile", BERT, "--pe", "8", "--simd", "8", "-o", out)
    t.case("compile again, same bytes", "" if t.tree(out) == first else "differs")
    manifest = json.loads(t.read(t.at("build/manifest.json")))
    named = re.findall(r"#define MLO_REG_(\w+)_BUSY ", t.read(t.at("build/host/mlo_regs.h")).decode())
    t.case("compile: registers of every kernel, by its name", "" if named == [k["name"].upper() for k in manifest["kernels"]] else str(named))
    core = onnx.load(t.at("build/host/core.onnx")).graph
    t.case("compile: the core's own input and output", "" if all(manifest[k]["name"] in [v.name for v in g] for k, g in (("input", core.input), ("output", core.output))) else str(manifest["input"]))
    rows = dict(re.findall(r"^\| `([^`]+)` \| (\d+) \|$", t.read(t.at("build/README.md")).decode(), re.M))
    modules = re.search(r"^\| (\d+) modules, in `rtl/` and `tb/` \| (\d+) \|$", t.read(t.at("build/README.md")).decode(), re.M)
    sizes = {f: os.path.getsize(os.path.join(out, f)) for f in first if f not in ("README.md", "manifest.json")}
    counted = [size for f, size in sizes.items() if f not in rows and f.endswith(".v")]
    t.case("compile: the guide's table has every file with its bytes, modules as one", "" if rows == {f: str(size) for f, size in sizes.items() if f in rows} and len(rows) + len(counted) == len(sizes)
           and modules and modules.groups() == (str(len(counted)), str(sum(counted))) else "%s %s %s" % (rows, modules and modules[0], sizes))
    os.mkdir(t.at("build/keepme"))
    t.write("build/rtl/mlo_old.v", b"x")
    manifest["files"]["rtl/mlo_old.v"] = {"bytes": 1, "sha256": "0"}
    t.write("build/manifest.json", json.dumps(manifest))
    t.good("compile", BERT, "--pe", "8", "--simd", "8", "-o", out)
    t.case("what an older state left is removed, the rest stays", "" if t.tree(out) == first and os.path.isdir(t.at("build/keepme")) else "differs")
    before = t.tree(out)
    t.call("compile", BERT, "--target-cycles", "1", "-o", out)
    t.case("a failed compile changes nothing", "" if t.tree(out) == before and not [f for f in os.listdir(t.tmp) if ".mlo-" in f] else "it did")
    m = onnx.load(BERT)
    lost = next(n for n in m.graph.node if n.op_type == "Softmax")
    del lost.metadata_props[:]
    p = t.call("compile", t.write("lost.onnx", m.SerializeToString()), "-o", t.at("lost"))
    t.case("compile: one scope was inferred", "" if re.search(r"^  model +%d nodes; the scopes of 1 inferred$" % len(m.graph.node), p.stderr.decode(), re.M) else p.stderr.decode() or "it says nothing")
    os.makedirs(t.at("to/closed"))                             # DIR is what `closed` lies in, and is made beside it: by somebody who may not write into `closed`
    os.chmod(t.at("to/closed"), 0o500)
    shutil.copy(t.mlo, t.at("to/mlo"))
    nobody = {} if os.getuid() else {"user": 65534, "group": 65534, "extra_groups": []}
    for name in ("to", "to/closed") if nobody else (): os.chown(t.at(name), 65534, 65534)
    p = subprocess.run(["./mlo", "compile", "-", "-o", "closed/.."], input=t.read(t.model("mlp-res")), cwd=t.at("to"), capture_output=True, **nobody)
    t.case("compile -o closed/.. writes nothing into closed", "" if p.returncode == 0 and os.path.exists(t.at("to/rtl")) and not os.listdir(t.at("to/closed")) else "status %d: %s" % (p.returncode, p.stderr.decode()[-200:]))
    refused("compile without -o", 2, ["-o DIR"], "compile", BERT)
    refused("-o is a file", 2, ["not a directory"], "compile", BERT, "-o", BERT)
    if os.getuid():
        os.mkdir(t.at("ro")); os.chmod(t.at("ro"), 0o500)
        refused("unwritable directory", 2, ["Permission denied"], "compile", BERT, "-o", t.at("ro/x"))
    t.good("fold", BERT, "--pe", "2", "--simd", "8", "--save-folding", t.at("folding.json"))
    a = t.good("fold", BERT, "--folding", t.at("folding.json"))
    t.case("a folding saved and given back", "" if a == t.good("fold", BERT, "--pe", "2", "--simd", "8") else "differs")
    refused("a folding that does not divide", 1, ["mvu_0", "SIMD=7", "nearest"], "fold", BERT, "--folding", t.write("fb.json", '{"mvu_0": {"PE": 1, "SIMD": 7}}'), "--calib", t.calibration("bert-tiny"))


def simulate(*args): return t.call("sim", *args, timeout=1200)


def verdict(name, p, status, words):
    out, err = text(p)
    t.case(name, "" if p.returncode == status and all(w in err for w in words) and (status > 1 or json.loads(out)["pass"] == (status == 0)) else "%d: %s %s" % (p.returncode, err, out[:300]))


def check_digests():
    """manifest.json has the SHA-256 of every file, from a processor with instructions for it and from one without: Python's judges both."""
    made = []
    for name, command in ("this processor", []), ("a processor without instructions for SHA-256", ["qemu-x86_64", "-cpu", "Nehalem"]):
        if os.uname().machine != "x86_64" or not t.have("digests", *command[:1]): return
        out = t.at("digests%d" % len(command))
        p = subprocess.run([*command, os.path.join(t.root, "mlo"), "compile", t.model("bert-1"), "-o", out], capture_output=True)
        files = json.loads(t.read(out + "/manifest.json"))["files"] if not p.returncode else {}
        made.append({f: said["sha256"] for f, said in files.items()})
        wrong = [f for f in files if hashlib.sha256(t.read(os.path.join(out, f))).hexdigest() != made[-1][f]]
        t.case("digests from %s" % name, "" if files and not wrong and made[-1] == made[0] else "status %d: %s %s" % (p.returncode, wrong, p.stderr.decode()[-200:]))


def check_foretold():
    """The cycles that manifest.json foretells for the bench are those that it takes, and that its report foretells; no fewer than memory needs."""
    t.good("compile", t.model("bert-1"), "--pe", "8", "--simd", "8", "--axi-width", "32", "--bandwidth", "2", "-o", t.at("slow"))
    slow = json.loads(t.read(t.at("slow/manifest.json")))
    least = slow["parameter_beats"]["per_frame"] * 32 / 8 / 2
    t.case("foretold, where memory is slow", "" if least <= slow["predicted_cycles"] < 1.02 * least else "%d; memory alone takes %d" % (slow["predicted_cycles"], least))
    if not t.have("foretold", "iverilog", "vvp"): return
    t.good("compile", t.model("bert-1"), "-o", t.at("foretold"))
    manifest, r = json.loads(t.read(t.at("foretold/manifest.json"))), json.loads(simulate(t.at("foretold")).stdout)
    off = manifest["predicted_cycles"] / r["cycles"] - 1
    t.case("foretold in manifest.json", "" if abs(off) < 0.02 and manifest["predicted_cycles"] == r["predicted_cycles"] else "%d; %d of %d" % (manifest["predicted_cycles"], r["predicted_cycles"], r["cycles"]))


def check_sim():
    if not t.have("sim", "iverilog", "vvp"): return
    out, mask = t.at("s"), t.at("sm")
    bert, masked = (os.path.join(t.tests, "models/families/bert-d18-%s-a.onnx" % s) for s in ("eager-none", "sdpa-mask"))       # 8 tokens of 16 channels
    t.good("compile", bert, "--pe", "4", "--simd", "4", "-o", out)
    t.good("compile", masked, "--pe", "4", "--simd", "4", "-o", mask)
    short = ["--frame-tokens", "2,3"]
    p = simulate(out, *short)
    verdict("sim passes", p, 0, [])
    if p.returncode: return
    r = json.loads(p.stdout)
    t.case("sim: the report", "" if r["words"] == 5 * 16 and r["frames"] == 2 and len(r["frame_done"]) == 2 and r["cycles"] == r["frame_done"][-1] and r["kernels"][1]["busy"] > 0 else str(r)[:300])
    q = simulate(out, *short, "--stall", "30", "--axi-latency", "64", "--seed", "3", "--probe", "--bandwidth", "8")
    verdict("sim with stalls, latency, little bandwidth, probed", q, 0, [])
    t.case("... says so", "" if json.loads(q.stdout)["probe"] == "every kernel's stream is right" and "probe" not in r else str(r)[:300])
    m = json.loads(t.read(os.path.join(out, "manifest.json")))
    beats = {m["channels"] // m["stream"]["lanes"], *(k["channels"] // k["lanes"] for k in m["kernels"])}
    t.case("sim: FIFOs hold tokens of as many beats as lanes need for the channels", "" if r["fifos"] and all(f["beats_per_token"] in beats for f in r["fifos"]) else "%s: %s" % (beats, r["fifos"]))
    t.case("... is slower", "" if json.loads(q.stdout)["cycles"] > r["cycles"] else "no")
    verdict("sim with a mask", simulate(mask, "--frame-tokens", "3", "--frames", "2"), 0, [])
    # inputs and outputs
    inputs = ids("si.npz", (1, 8), 5, words=40)
    folded = t.at("sf.onnx")
    t.good("fold", bert, "--pe", "4", "--simd", "4", "-o", folded)
    t.good("run", folded, "--inputs", inputs, "--probe", t.at("sp.npz"))
    want = np.load(t.at("sp.npz"))
    core = json.loads(t.read(t.at("s/manifest.json")))
    np.savez(t.at("core.npz"), **{core["input"]["name"]: want[core["input"]["name"]]})
    verdict("sim on the core's inputs", simulate(out, "--inputs", t.at("core.npz"), "--frame-tokens", "2", "--outputs", t.at("so.npz")), 0, [])
    t.case("... stores the core's outputs", "" if np.load(t.at("so.npz"))[core["output"]["name"]].shape == (1, 2, 16) else "shape")
    verdict("sim --frame-tokens beyond the maximum", simulate(out, "--frame-tokens", "9"), 2, ["1 to 8"])
    # it fails when it should
    def broken(name, change, words, *args):
        shutil.copytree(out, t.at("b"))
        change(t.at("b"))
        p = simulate(t.at("b"), *short, *args)
        t.case(name, "" if p.returncode == 1 and all(w in text(p)[1] for w in words) and b'"pass":true' not in p.stdout else "%d: %s" % (p.returncode, text(p)[1]))
        shutil.rmtree(t.at("b"))
    flip = lambda file, at: lambda d: poke(os.path.join(d, file), at)
    append = lambda what: lambda d: open(os.path.join(d, "rtl/mlo_top.v"), "a").write(what)
    at = next(d["offset"] for d in core["descriptors"] if (d["kernel"], d["port"]) == ("mvu_0", "s_axis_w")) + 4           # the fifth weight
    broken("a bit flipped in params.bin", flip("params.bin", at), ["first wrong word", "params.bin", "token", "channel"])
    broken("a bit flipped in params.hex, probed", flip("params.hex", at // 16 * 33 + 30 - 2 * (at % 16)), ["kernel mvu_0", "iteration 0"], "--probe")
    broken("an output bit inverted", invert, ["first wrong word: frame 0, token 0, channel 0"])
    broken("a comment changed", append("// hello\n"), ["mixture"])
    broken("Verilog that does not compile", append("module\n"), ["compile"])
    os.remove(t.at("s/tb/golden.hex"))
    verdict("a file missing", simulate(out), 2, ["golden.hex"])
    verdict("no build directory", simulate(t.tmp), 2, ["manifest.json"])
    verdict("nothing there", simulate(t.at("nowhere")), 2, ["No such file"])
    env = dict(os.environ, PATH="/nonexistent")
    p = subprocess.run([t.mlo, "sim", mask], env=env, capture_output=True)
    verdict("no simulator", p, 2, ["apt install iverilog"])


def poke(path, at):
    data = bytearray(t.read(path))
    data[at] = data[at] ^ 64 if path.endswith(".bin") else ord("1") if data[at] != ord("1") else ord("2")
    with open(path, "wb") as f: f.write(data)


def invert(d):
    path = os.path.join(d, "rtl", "mlo_exit.v")
    source = t.read(path).decode()
    changed = source.replace(", s_axis_tdata}", ", s_axis_tdata ^ 1'b1}", 1)
    if changed == source: raise RuntimeError("mlo_exit.v reads otherwise than this test thinks")
    with open(path, "w") as f: f.write(changed)


t.main(check_help, check_flags, check_config, check_input, check_output, check_pipe, check_npz, check_hostile, check_archives, check_run, check_paths, check_words, check_needs, check_compile, check_digests, check_foretold, check_sim,
       floor=295)
