#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hostile input: files that are wrong on purpose, cut short anywhere, or ask for more than they are worth; and half a minute of libFuzzer for each target.

Usage: python tests/test_fuzz.py path/to/mlo [CHECK ...]     (CHECK: a part of a check's name below, without check_)

Everything runs through tests/fuzz/fuzz_*.c under ASan and UBSan: no crash, no leak, memory at most 64 MB + 16 x the input; what is read is written and
read again as the same bytes; what rolls is proved equal. For longer: make fuzz, then build/fuzz/onnx -dict=tests/fuzz/onnx.dict corpus tests/fuzz/onnx"""
import datetime, glob, os, shutil, subprocess, sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h
import harness as t
from harness import at, case

FUZZ = os.path.join(t.tests, "fuzz")
sys.path.insert(0, FUZZ)
import seeds
from seeds import N, f32, info, ints, model

SECONDS = 10                                            # for one input of some megabytes, watched; they take a tenth of it


def replay(kind):
    """The target as a program of its own."""
    out = t.counted("replay-" + kind) or at("replay-" + kind)
    if not os.path.exists(out):
        why = t.compile_c(out, [os.path.join(FUZZ, "replay.c"), os.path.join(FUZZ, "fuzz_%s.c" % kind), t.amalgamation()], ["-std=c99", *t.WATCHED])
        if why: raise RuntimeError(why)
    return out


def runs(name, kind, how, files, timeout=SECONDS):
    """A case: the target survives these files."""
    try: p = subprocess.run([replay(kind), how, *files], capture_output=True, text=True, errors="replace", timeout=timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as e: return case(name, f"hangs at {os.path.basename((e.stderr or b'?').decode(errors='replace').split()[-1])}")
    said = [l for l in p.stderr.splitlines() if l.startswith("fuzz:") or "runtime error" in l or "ERROR: " in l]
    at_file = [os.path.basename(l) for l in p.stderr.splitlines() if l in files]
    case(f"{name}, {p.stdout.strip()} runs", "" if p.returncode == 0 and len(files) and not said else f"status {p.returncode} at {at_file[-1:]}: {'; '.join(said)[:300]}")


def check_seeds():
    """The committed seeds are what seeds.py makes; each holds for itself, cut anywhere, and in a file that is cut while it is read."""
    seeds.make(at("seeds"))
    for kind in "onnx", "json":
        case(f"seeds, {kind}: as seeds.py makes them", t.trees_differ(os.path.join(FUZZ, kind), at("seeds/" + kind)))
        files = sorted(glob.glob(os.path.join(FUZZ, kind, "*")))
        runs(f"seeds, {kind}", kind, "run", files)
        small = [f for f in files if os.path.splitext(os.path.basename(f))[0] in ("residual", "control", "tensors", "external")]
        runs(f"cut at every byte, {kind}", kind, "cut", small, 300)
        runs(f"cut at every byte while it is read, {kind}", kind, "shrink", small, 300)
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(FUZZ) for f in fs)
    case("seeds are small", "" if size < 200_000 else f"{size} bytes")


def check_invalid():
    """The invalid models of ONNX's own tests: refused with one line and status 3 or 4, or read."""
    folder = t.beside("invalid models", "onnx-invalid", "bad")
    if not folder: return
    files, wrong, read = sorted(glob.glob(os.path.join(folder, "*.onnx"))), [], 0
    runs("invalid models", "onnx", "run", files, 300)
    for path in files:
        for verb in ["quantize"], ["show", "--html"]:
            p = t.call(*verb, path, timeout=SECONDS)
            lines = [l for l in p.stderr.decode().splitlines() if not l.startswith("mlo: warning: ")]
            read += verb[0] == "show" and not p.returncode
            if p.returncode not in (0, 3, 4) or len(lines) != (p.returncode != 0): wrong.append(f"{os.path.basename(path)}, {verb[0]}: status {p.returncode}, {lines[:2]}")
    case(f"{len(files)} invalid models are refused with a line, or read ({read})", "; ".join(wrong[:3]) or ("" if len(files) >= 271 else "there are 271 at least"))


def repeated(op, k, init, inputs=("a", "b"), **attributes):
    """k nodes that are constant, for one that is not."""
    made = ["o%d" % i for i in range(k)]
    return model([N(op, list(inputs), [o], **attributes) for o in made] + [N("Unknown", made + ["x"], ["y"], domain="own")], [info("x", 1)], [info("y")], init)


def late(op, inputs, init):
    """A node whose size only a hundred numbers' sum tells."""
    return model([N("ReduceSum", ["many"], ["n"], keepdims=0), N("Unsqueeze", ["n", "zero"], ["ns"]), N(op, inputs, ["r"]), N("Unknown", ["r", "x"], ["y"], domain="own")], [info("x", 1)], [info("y")],
                 [("many", np.full(100, 1 << 30, np.int64)), ("zero", ints(0)), *init])


def nested(depth):
    """If in If in If."""
    g = h.make_graph([N("Neg", ["x"], ["y%d" % depth])], "g", [], [info("y%d" % depth, 1)])
    for k in range(depth - 1, 0, -1):
        g = h.make_graph([N("If", ["c"], ["y%d" % k], then_branch=g, else_branch=h.make_graph([N("Identity", ["x"], ["z%d" % k])], "e", [], [info("z%d" % k, 1)]))], "g", [], [info("y%d" % k, 1)])
    return model(list(g.node), [info("x", 1), info("c", t=T.BOOL)], [info("y1", 1)])


def nested_scans(depth, rounds):
    """Loops in loops: rounds to the power of depth, were they unrolled."""
    value = lambda name: info(name, t=T.INT64)
    inner = [N("Add", ["s0", "e0"], ["r0"])]
    for k in range(depth):
        body = h.make_graph(inner, "b%d" % k, [value("s%d" % k), value("e%d" % k)], [value("r%d" % k)])
        inner = [N("Scan", ["s%d" % (k + 1), "xs"], ["r%d" % (k + 1)], num_scan_inputs=1, body=body)]
    inner[0].input[0], inner[0].output[0] = "x", "r"
    last = N("Neg", ["r"], ["y"])
    return model([*inner, last], [value("x")], [value("y")], [("xs", np.arange(rounds, dtype=np.int64))])


def many(field):
    """A million of something that takes two bytes."""
    m = seeds.residual(2)
    if field == "int64": m.graph.initializer.append(h.make_tensor("many", T.INT64, [1000000], np.zeros(1000000, np.int64)))
    if field == "half": m.graph.initializer.append(h.make_tensor("many", T.FLOAT16, [1000000], np.zeros(1000000, np.float16)))
    if field == "strings": m.graph.initializer.append(h.make_tensor("many", T.STRING, [500000], [b""] * 500000))
    if field == "nodes": m.graph.node.extend([onnx.NodeProto(op_type="A")] * 200000)
    if field == "infos": m.graph.value_info.extend([onnx.ValueInfoProto()] * 300000)
    if field == "dims": m.graph.input.append(h.make_tensor_value_info("many", 1, [1] * 300000))
    if field == "inputs": m.graph.node.append(N("Odd", [""] * 300000, ["odd"], domain="own"))
    if field == "readers": m.graph.node.extend([N("Relu", ["x0"], ["v%d" % i]) for i in range(20000)] + [N("Sum", ["v%d" % i for i in range(20000)], ["w"])])
    if field == "chain": m.graph.node.extend([N("Relu", ["x0" if i == 0 else "c%d" % (i - 1)], ["c%d" % i]) for i in range(20000)])
    return m


def varint(v):
    out = b""
    while v > 127: out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


def field(number, data): return varint(number << 3 | 2) + varint(len(data)) + data


GREEDY = {"ConstantOfShape": lambda: repeated("ConstantOfShape", 500, [("a", ints(512, 256))], ("a",)), "MatMul": lambda: repeated("MatMul", 300, [("a", f32(256, 256)), ("b", f32(256, 256))]),
          "outer products": lambda: repeated("MatMul", 500, [("a", f32(1024, 1)), ("b", f32(1, 256))]), "Expand": lambda: repeated("Expand", 3, [("a", f32(1)), ("b", ints(1 << 31, 1 << 31))]),
          "Tile": lambda: repeated("Tile", 3, [("a", f32(1)), ("b", ints(1 << 40))]), "Conv": lambda: repeated("Conv", 50, [("a", f32(1, 1, 256, 256)), ("b", f32(4, 1, 128, 128))], pads=[64, 64, 63, 63]),
          "late Range": lambda: late("Range", ["z", "n", "o"], [("z", np.int64(0)), ("o", np.int64(1))]), "late ConstantOfShape": lambda: late("ConstantOfShape", ["ns"], []), "late Expand": lambda: late("Expand", ["z", "ns"], [("z", ints(0))]),
          "If 20 deep": lambda: nested(20), "If 31 deep": lambda: nested(31), "Scan 9 deep": lambda: nested_scans(9, 60), **{"many " + k: (lambda k=k: many(k)) for k in ("int64", "half", "strings", "nodes", "infos", "dims", "inputs", "readers", "chain")}}


def check_greedy():
    """Small files that ask for much: folding, depth, counts. Memory and time stay in proportion."""
    for name, make in GREEDY.items():
        m = make()
        path = t.write(name.replace(" ", "-") + ".onnx", m.SerializeToString())
        runs(name, "onnx", "run", [path])


def damaged():
    """Sizes, counts, depths and offsets that do not fit, as (name, bytes)."""
    m = seeds.residual(2)
    whole, graph = m.SerializeToString(), m.graph.SerializeToString()
    for v in 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, (1 << 64) - 1: yield f"a graph of {v:#x} bytes", varint(7 << 3 | 2) + varint(v) + graph
    for v in 1 << 31, (1 << 32) - 1, (1 << 64) - 1: yield f"raw data of {v:#x} bytes", field(7, graph + varint(5 << 3 | 2) + varint(40) + varint(9 << 3 | 2) + varint(v) + bytes(20))
    yield "a varint without end", b"\x08" + b"\xff" * 20
    yield "field number 0", b"\x02\x00" + whole
    yield "a group without end", b"\x0b" * 1000
    deep = b""
    for _ in range(3000): deep = field(7, field(1, field(5, field(6, deep)))) if len(deep) < 60000 else deep
    yield "graphs 3000 deep", deep
    kind = b""
    for _ in range(5000): kind = field(4, field(1, kind))
    yield "sequences 5000 deep", field(7, field(11, field(1, b"x") + field(2, kind)) + graph)
    for dims in [-1], [1 << 62, 1 << 62], [(1 << 63) - 1], [0, -1], [1 << 31, 1 << 31, 4], [1] * 100:
        n = seeds.residual(2)
        n.graph.initializer[0].dims[:] = dims
        yield f"a tensor of {str(dims)[:40]}", n.SerializeToString()
        n = seeds.residual(2)
        n.graph.input[0].CopyFrom(h.make_tensor_value_info("x0", 1, [d % (1 << 63) for d in dims]))
        yield f"an input of {str(dims)[:40]}", n.SerializeToString()
    for key, value in ("offset", 1 << 63), ("offset", (1 << 64) - 1), ("offset", -1), ("length", (1 << 64) - 1), ("length", 1 << 64), ("length", 0), ("location", "../a"), ("location", "\n"), ("location", ""):
        n = seeds.external()
        for e in n.graph.initializer[0].external_data:
            if e.key == key: e.value = str(value)
        yield f"{key} {value}", n.SerializeToString()


def check_damaged():
    """Sizes, counts, depths, offsets: one line, status 2 (a file that is not there), 3 or 4."""
    files = []
    for name, data in damaged():
        files.append(t.write("damaged-%d.onnx" % len(files), data))
        p = t.call("roll", files[-1], timeout=SECONDS)
        lines = [l for l in p.stderr.decode().splitlines() if not l.startswith("mlo: warning: ")]
        case("damaged: " + repr(name)[1:-1], "" if p.returncode in (0, 2, 3, 4) and len(lines) == (p.returncode != 0) else f"status {p.returncode}, {lines[:3]}")
    runs("damaged, all", "onnx", "run", files, 60)
    texts = ['{"graph":' * 100000, "[" * 100000, '{"graph":{"node":[' + '{"attribute":[{"g":{"node":[' * 5000, '{"irVersion":1e999}', '{"irVersion":"99999999999999999999"}', '{"graph":{"initializer":[{"dims":["9223372036854775807","9223372036854775807"],"dataType":1}]}}',
             '{"graph":{"node":[null,{}]}}', '{"graph":{}}\x00', '{"graph":{"name":"\\ud800"}}', '{"graph":{"name":"\\u0000x"}}', '{"graph":{"initializer":[{"rawData":"===="}]}}', '{"graph":{"name":"' + "x" * 1000000 + '"}}']
    files = [t.write("damaged-%d.json" % i, x) for i, x in enumerate(texts)]
    for path, text in zip(files, texts):
        p = t.call("roll", path, timeout=SECONDS)
        case("damaged: " + repr(text[:40])[1:-1], "" if p.returncode in (0, 2, 3, 4) and p.stderr.decode().count("\n") >= (p.returncode != 0) else f"status {p.returncode}, {p.stderr[-300:]}")
    runs("damaged JSON, all", "json", "run", files, 60)


def check_allocations():
    """Every allocation of load, roll, check and writing fails in turn (a sixth of them a day): a model with a subgraph in each layer, one with caches,
    one as JSON."""
    why = t.compile_c(at("allocations"), [os.path.join(t.tests, "library/allocations.c"), t.amalgamation()], ["-std=gnu99", "-w", "-O0", "-DMLO_SMALL_BLOCK=64", *t.SANITIZE], "clang")          # the object is test_library's, too
    if why: return case("allocations", why)
    day, step = datetime.date.today().toordinal(), 1 if t.full else 6
    t.note("one allocation in %d, by the date" % step)
    for path in "onnx/repeated_scan.onnx", "onnx/cache.onnx", "json/scoped.json":
        for sticky in 0, 1:
            first = 1 + (day + sticky) % step
            p = subprocess.run([at("allocations"), os.path.join(FUZZ, path), str(first), str(step), str(sticky), "roll"], capture_output=True, text=True)
            n = (p.stdout.split() or ["0"])[0]
            case(f"{path}: an allocation fails{' and all after it' if sticky else ''}, {n} times", p.stderr[-400:] if p.returncode else "" if int(n) * step >= 1000 else "too few to believe")


def check_libfuzzer():
    """Twelve seconds of a target, from the seeds; the other one gets the seeds alone, its day is tomorrow."""
    if not t.have("libFuzzer", "clang"): return
    flags = ["-std=c99", "-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    env = dict(os.environ, ASAN_OPTIONS="malloc_context_size=0:max_malloc_fill_size=0:quarantine_size_mb=4")         # three times as many runs
    why = t.compile_c(at("fuzzed.o"), ["-c", t.amalgamation()], [*flags, "-fsanitize=fuzzer-no-link", "-fno-sanitize-coverage=trace-cmp"], "clang", ())
    if why: return case("libFuzzer", why)
    due = t.drawn(["onnx", "json"], 2)
    for kind in ["onnx", "json"]:
        limit = "-max_total_time=12" if kind in due else "-runs=0"
        why = t.compile_c(at("fuzz-" + kind), [os.path.join(FUZZ, "fuzz_%s.c" % kind), at("fuzzed.o")], [*flags, "-fsanitize=fuzzer"], "clang")
        if "libclang_rt" in why: return t.absent("libFuzzer", "clang's runtime is not installed: " + why[:100])
        if why: case("libFuzzer, " + kind, why); continue
        os.makedirs(at("corpus-" + kind), exist_ok=True)
        p = subprocess.run([at("fuzz-" + kind), "-dict=%s/%s.dict" % (FUZZ, kind), "-seed=1", "-entropic=0", limit, "-timeout=%d" % SECONDS, "-rss_limit_mb=2048", "-max_len=8192", "-print_final_stats=1",
                            "-artifact_prefix=" + at(""), at("corpus-" + kind), os.path.join(FUZZ, kind)], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, env=env)
        done = next((l.split()[-1] for l in p.stderr.splitlines() if l.startswith("stat::number_of_executed_units")), "0")
        said = [l for l in p.stderr.splitlines() if l.startswith("fuzz:") or "runtime error" in l or "ERROR: " in l]
        found = next((t.read(f) for pattern in ("crash-*", "timeout-*", "oom-*", "leak-*") for f in glob.glob(at(pattern))), b"")
        least = 100 if kind in due else len(os.listdir(os.path.join(FUZZ, kind)))
        case(f"libFuzzer, {kind}, {done} runs", "" if not p.returncode and int(done) >= least else f"{'; '.join(said)[:300]}; input {found[:3000].hex()}")


if __name__ == "__main__":
    t.main(check_seeds, check_invalid, check_greedy, check_damaged, check_allocations, check_libfuzzer, floor=88)
