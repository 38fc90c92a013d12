#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""roll --nested: loops whose bodies hold loops, in ONNX Runtime, in mlo run, and proved; and what was tampered with, refused.

The models say how they are nested by how they are made: from the inside out, out of blocks with random weights.
"""
import json
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper
import harness as t
from harness import at, case
from graphs import execute as run_in_onnxruntime

DIM = 8


class Model:
    """A chain of blocks on one value of 4 x DIM."""
    def __init__(self, seed=0):
        self.rng, self.nodes, self.inits, self.at, self.n = np.random.default_rng(seed), [], [], "x", 0

    def weight(self, *shape, gain=1.0):
        self.n += 1
        self.inits.append(numpy_helper.from_array((gain * self.rng.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32), "w%d" % self.n))
        return self.inits[-1].name

    def op(self, kind, *inputs, **attributes):
        self.n += 1
        self.nodes.append(h.make_node(kind, list(inputs), ["v%d" % self.n], name="n%d" % self.n, **attributes))
        return self.nodes[-1].output[0]

    def block(self, act="Relu"):
        """x + act(x W) V"""
        y = self.op("MatMul", self.op(act, self.op("Add", self.op("MatMul", self.at, self.weight(DIM, 2 * DIM)), self.weight(2 * DIM))), self.weight(2 * DIM, DIM))
        self.at = self.op("Add", self.at, y)

    def norm(self): self.at = self.op("LayerNormalization", self.at, self.weight(DIM), self.weight(DIM), epsilon=1e-5)
    def down(self): self.at = self.op("Tanh", self.op("MatMul", self.at, self.weight(DIM, DIM)))

    def done(self):
        g = h.make_graph(self.nodes, "nested", [h.make_tensor_value_info("x", T.FLOAT, [4, DIM])], [h.make_tensor_value_info(self.at, T.FLOAT, [4, DIM])], self.inits)
        return h.make_model(g, opset_imports=[h.make_opsetid("", 18)], ir_version=10)


def stages(n=3, blocks=4):
    """n stages of equal blocks, with a norm and a projection behind each."""
    m = Model(1)
    for _ in range(n):
        for _ in range(blocks): m.block()
        m.norm(); m.down()
    return m.done(), n, blocks


def fives(n=4, blocks=5):
    """n times five layers of one structure and one of another."""
    m = Model(2)
    for _ in range(n):
        for _ in range(blocks): m.block()
        m.norm(); m.block("Sigmoid"); m.norm()
    return m.done(), n, blocks


def three():
    """Loops three deep."""
    m = Model(3)
    for _ in range(2):
        for _ in range(3):
            for _ in range(4): m.block()
            m.down()
        m.norm(); m.block("Tanh")
    return m.done()


def scans(g):
    """All Scans of a graph, outer ones first: (iterations, body, depth)."""
    out = []
    def walk(g, depth):
        for n in g.node:
            a = {x.name: x for x in n.attribute}
            if n.op_type == "Scan":
                out.append((int({p.key: p.value for p in n.metadata_props}["mlo.iterations"]), a["body"].g, depth))
                walk(a["body"].g, depth + 1)
    walk(g, 0)
    return out


def execute(m, x): return run_in_onnxruntime(m, {"x": x})[0]


def rolled(m, name, *options):
    onnx.save(m, at(name + ".onnx"))
    t.good("roll", at(name + ".onnx"), "--onnx", "-o", at("rolled.onnx"), *options)
    return onnx.load(at("rolled.onnx"))


def proven(m, r, name):
    """'' when r is valid, proved, and gives m's result in ONNX Runtime and in mlo run."""
    onnx.checker.check_model(r, full_check=True)
    p = t.call("check", at("rolled.onnx"), "--against", at(name + ".onnx"), text=True)
    if p.returncode: return p.stderr
    x = np.random.default_rng(5).standard_normal((4, DIM)).astype(np.float32)
    want = execute(m, x)
    if np.max(np.abs(want - execute(r, x))) > 1e-5 * np.max(np.abs(want)): return "ONNX Runtime differs"
    np.savez(at("in.npz"), x=x)
    t.good("run", at("rolled.onnx"), "--inputs", at("in.npz"), "--outputs", at("out.npz"))
    got = list(np.load(at("out.npz")).values())[0]
    return "" if np.max(np.abs(want - got)) <= 1e-5 * np.max(np.abs(want)) else "mlo run differs"


def check_two():
    for make in stages, fives:
        m, outer, inner = make()
        name = make.__name__
        r = rolled(m, name, "--nested")
        found = [(n, d) for n, _, d in scans(r.graph)]
        case("%s: %d x (%d x ..)" % (name, outer, inner), "" if found == [(outer, 0), (inner, 1)] else str(found))
        case("%s is proved and runs" % name, proven(m, r, name))
        summary = json.loads(t.good("show", at("rolled.onnx"), "--json"))["loops"]
        case("%s is shown" % name, "" if [(l["iterations"], l["parent"]) for l in summary] == [(outer, None), (inner, summary[0]["name"])] else str(summary))
        t.good("roll", at(name + ".onnx"), "--nested", "--report", at("report.json"), "-o", at("rolled.json"))
        report = json.loads(t.read(at("report.json")))["loops"]
        case("%s is reported" % name, "" if [(l["iterations"], l["parent"]) for l in report] == [(outer, None), (inner, report[0]["name"])] else str(report))
        flat = rolled(m, name)
        case("%s without --nested" % name, proven(m, flat, name) or ("" if [n for n, _, _ in scans(flat.graph)] == [outer] else "another choice"))


def check_three():
    m = three()
    r = rolled(m, "three", "--nested")
    found = [(n, d) for n, _, d in scans(r.graph)]
    case("three deep: 2 x (3 x (4 x ..))", "" if found == [(2, 0), (3, 1), (4, 2)] else str(found))
    case("three deep is proved and runs", proven(m, r, "three"))


def check_none():
    """Two loops, and nothing that repeats in either: as without --nested."""
    path = t.model("t5-tiny")
    case("two loops without others in them", "" if t.good("roll", path, "--nested", "--onnx") == t.good("roll", path, "--onnx") else "another model")


def check_captured():
    """Blocks with an If, whose branches read a constant of the block's own, the same in all stages: from within the outer body it lies outside."""
    m = Model(4)
    for k in range(3): m.inits.append(numpy_helper.from_array(np.float32(0.5 + k), "own%d" % k))
    info = lambda name: h.make_tensor_value_info(name, T.FLOAT, [4, DIM])
    for stage in range(3):
        for k in range(3):
            m.block()
            yes = h.make_graph([h.make_node("Mul", [m.at, "own%d" % k], ["yes%d_%d" % (stage, k)])], "yes", [], [info("yes%d_%d" % (stage, k))])
            no = h.make_graph([h.make_node("Sub", [m.at, "own%d" % k], ["no%d_%d" % (stage, k)])], "no", [], [info("no%d_%d" % (stage, k))])
            m.at = m.op("If", "go", then_branch=yes, else_branch=no)
        m.norm(); m.down()
    m.inits.append(numpy_helper.from_array(np.array(True), "go"))
    m = m.done()
    r = rolled(m, "captured", "--nested")
    found = [(n, d) for n, _, d in scans(r.graph)]
    case("branches that read from outside of the outer body: 3 x (3 x ..)", "" if found == [(3, 0), (3, 1)] else str(found))
    case("branches that read from outside are proved and run", proven(m, r, "captured"))


def check_sabotage():
    """Whatever is changed in the inner body, check says so."""
    m, _, _ = stages()
    for what in "op", "operands", "constant", "stack":
        r = rolled(m, "stages", "--nested")
        body = scans(r.graph)[1][1]
        if what == "op": next(n for n in body.node if n.op_type == "Relu").op_type = "Sigmoid"
        if what == "operands":
            n = next(n for n in body.node if n.op_type == "Add")
            n.input[1] = n.input[0]
        if what == "constant":
            c = r.graph.initializer[0]
            c.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(c) + np.float32(1), c.name))
        if what == "stack":
            outer = scans(r.graph)[0][1]
            n = next(n for n in outer.node if n.op_type == "Concat")
            n.input[0], n.input[1] = n.input[1], n.input[0]
        onnx.save(r, at("bad.onnx"))
        p = t.call("check", at("bad.onnx"), "--against", at("stages.onnx"), text=True)
        case("tampered %s is refused" % what, "" if p.returncode in (1, 3) and "[MLO_E_" in p.stderr else "status %d: %s" % (p.returncode, p.stderr))


t.main(check_two, check_three, check_none, check_captured, check_sabotage, floor=19)
