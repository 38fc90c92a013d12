#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is chosen where no flag says it: one of several loops.

    python tests/test_fold_default.py path/to/mlo [NAME ...]"""
import re
import numpy as np
import harness as t


def check_loops():
    """Of several loops one becomes hardware, and it is said which."""
    p = t.call("lower", t.model("whisper-tiny"), "-o", t.at("whisper.json"), text=True)
    want = r"mlo: lower: loop \(encoder/encoder\.layers\.0\) becomes hardware: (\d+) % of the loops' multiply-accumulates; loop_1 \(decoder/decoder\.layers\.0\) goes to post\.onnx; --loop loop_1 chooses it\n"
    said = re.search(want, p.stderr)
    t.good("scope", t.model("whisper-tiny"), "--onnx", "-o", t.at("whisper.onnx"))
    macs = scopes_macs(t.at("whisper.onnx"), "encoder/encoder.layers.", "decoder/decoder.layers.")
    share = 100 * macs["encoder/encoder.layers."] / sum(macs.values())
    t.case("whisper: the encoder becomes hardware, the decoder goes to post.onnx", "" if p.returncode == 0 and said and abs(int(said[1]) - share) <= 1 else "%s; %.1f %%" % (p.stderr, share))
    p = t.call("lower", t.model("mlp-res"), "-o", t.at("x.json"), text=True)
    t.case("one loop: nothing to say", "" if "becomes hardware" not in p.stderr else p.stderr)


def scopes_macs(path, *scopes):
    """Multiply-accumulates of the MatMul and Gemm of a model's layers, by scope, as ONNX infers its shapes."""
    import onnx
    model = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    known = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*model.graph.value_info, *model.graph.input, *model.graph.output]}
    macs = dict.fromkeys(scopes, 0)
    for n in model.graph.node:
        where = [s for s in scopes if any(p.key == "mlo.scope" and p.value.startswith(s) for p in n.metadata_props)]
        if n.op_type in ("MatMul", "Gemm") and where: macs[where[0]] += int(np.prod(known[n.output[0]])) * known[n.input[0]][-1]
    return macs


if __name__ == "__main__": t.main(check_loops)
