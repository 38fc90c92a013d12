#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`make web`: mlo as one page in a browser says what the command line says, byte for byte, offline, by mouse or keys, in light and dark.
Its lesson draws ONNX Runtime's numbers: floats within 1e-4 of the largest of a row, shares of a softmax within 1e-5, integers as the kernel's contract has them.
`make npm`: a package for Node.js that does, too, installed where nothing else is.

    python tests/test_web.py path/to/mlo [CHECK ...]"""
import base64, io, json, os, re, shutil, subprocess, tarfile, time
import numpy as np
import onnx, onnxruntime
import harness as t
from chrome import Browser


def page():
    p = subprocess.run(["make", "-s", "web"], cwd=t.root, capture_output=True, text=True, timeout=1400)
    if p.returncode: raise RuntimeError("make web: " + p.stderr[-400:])
    return os.path.join(t.root, p.stdout.split()[-1])


READY = "document.body.dataset.state === 'ready' && !document.getElementById('save').disabled"


def check_web():
    if not t.have("the page", "emcc", "chromium", "apt-get", "dpkg-source"): return
    path = page()
    t.case("its size", "" if os.path.getsize(path) < 3 << 20 else "%d bytes" % os.path.getsize(path))
    t.note("%d bytes" % os.path.getsize(path))
    b = Browser(path)
    try: walk(b)
    finally: b.close()


def walk(b):
    b.until("document.readyState === 'complete'")
    b.until(READY)
    # what is drawn first waits for no later stage; by the clock it is a note: the machine may have other work
    marks = b.js("performance.getEntriesByType('mark').map(m => [m.name.replace(/^bert-tiny: |: .*/g, ''), m.startTime])")
    when = dict(marks[::-1])
    stages = [name for name, _ in marks if name != "drawn"]                        # of read and roll, and then of lower, there is something to draw
    t.case("rolled before it is quantized", "" if stages[:4] == ["read, roll", "quantize, lower", "folding", "writing Verilog"] and when["drawn"] < when["ready"] else str(marks))
    t.note("drawn after %.2f s, folded after %.2f s" % (when["drawn"] / 1000, when["ready"] / 1000))
    # the same bytes
    model = t.model("bert-tiny")
    for stage in "roll", "quantize", "lower", "fold":
        got, want = b.js("ask('json', { stage: '%s' })" % stage), t.good(stage, "-", input=t.read(model)).decode()
        t.case("%s: as the command line" % stage, "" if got == want else "at character %d of %d" % (next((i for i, (x, y) in enumerate(zip(got, want)) if x != y), min(len(got), len(want))), len(want)))
    t.good("compile", "-", "-o", t.at("build"), input=t.read(model))
    names = b.js("[...files.keys()]")
    t.case("the build directory's files", " ".join(set(names) ^ t.tree(t.at("build")).keys()))
    other = [f for f in names if base64.b64decode(b.js("btoa(String.fromCharCode.apply(null, files.get(%s).slice(0, 60000)))" % json.dumps(f))) != t.read(os.path.join(t.at("build"), f))[:60000]]
    t.case("and what is in them", " ".join(other))
    # tabs by keys, and what they show
    for key, name in zip("12345", ("read", "roll", "lower", "fold", "verilog")):
        b.key(key, "Digit" + key)
        t.case("key %s" % key, "" if b.js("document.querySelector('[aria-selected=true]').id") == "tab-" + name else "not " + name)
        if name == "verilog": continue
        word = {"read": "layer", "roll": "iterations", "lower": "MVU", "fold": "multipliers"}[name]
        said = "(document.getElementById('view').contentDocument.body || {innerText: ''}).innerText"
        try: b.until("%s.includes('%s')" % (said, word))                                 # till then it is the tab before
        except RuntimeError: pass
        t.case("%s: its page" % name, "" if word in b.js(said) else b.js(said)[:200] or "it says nothing")
    b.key("ArrowLeft")
    t.case("arrows", "" if b.js("document.activeElement.id") == "tab-fold" else b.js("document.activeElement.id"))
    b.key("5", "Digit5")
    kernels = b.js("[...document.querySelectorAll('#code li button')].map(x => x.textContent)")
    manifest = json.loads(t.read(os.path.join(t.at("build"), "manifest.json")))
    t.case("each kernel has its Verilog", " ".join(k["name"] for k in manifest["kernels"] if k["name"] not in kernels))
    wrong = [k["name"] for k in manifest["kernels"] if not re.search(r"^module mlo_%s" % re.sub("table$", "", k["op"].lower()), b.js("(document.querySelectorAll('#code li button')[%d].click(), document.querySelector('pre').textContent)" % kernels.index(k["name"])), re.M)]
    t.case("and shows it", " ".join(wrong))
    t.case("pages are called by the file", " ".join(k for k, heading in b.js("Object.entries(pages).map(([k, s]) => [k, new DOMParser().parseFromString(s, 'text/html').querySelector('h1').textContent])") if heading != "bert-tiny"))
    # sliders
    b.until("front.length > 1")
    before = b.js("document.getElementById('macs-said').textContent")
    b.js("document.getElementById('macs').focus()")
    b.key("ArrowRight")
    b.until("document.body.dataset.state !== 'ready' || document.getElementById('macs-said').textContent !== %s" % json.dumps(before))
    b.until(READY)
    macs = b.js("turned['budget-macs']")
    want = json.loads(t.good("show", "--json", input=t.good("fold", "-", "--budget-macs", macs, input=t.read(model))))
    t.case("a slider by keys", "" if b.js("JSON.parse(decode(files.get('manifest.json'))).multipliers") == json.loads(t.good("compile", "-", "--budget-macs", macs, "-o", t.at("turned"), input=t.read(model)))["multipliers"] > 0 and want else "others")
    # the archive
    packed = b.js("(async () => { const r = new FileReader(); const d = new Promise(f => r.onload = f); r.readAsDataURL(tar(files)); await d; return r.result.split(',')[1] })()")
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed))) as f: f.extractall(t.at("packed"))
    t.case("the archive is the build directory", t.trees_differ(t.at("packed/build"), t.at("turned")))
    # dark and light
    shades = []
    for scheme in "light", "dark":
        b("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        shades += [sum(map(int, re.findall(r"\d+", b.js("getComputedStyle(%s).backgroundColor" % e))[:3])) for e in ("document.body", "document.getElementById('view').contentDocument.body")]
    t.case("dark", "" if min(shades[:2]) > 600 and max(shades[2:]) < 200 else str(shades))
    drops(b, len(names))
    story(b)
    b.js("document.getElementById('example').click()")
    b.until(READY)
    t.case("the next one", "" if b.js("files.size") == len(names) else "%d files" % b.js("files.size"))
    lesson(b)
    asked = [m["params"]["request"]["url"] for m in b.said if m["method"] == "Network.requestWillBeSent" and not re.match("file:|blob:|data:|about:", m["params"]["request"]["url"])]
    t.case("it asks nobody", " ".join(asked))
    t.case("nothing was thrown", str([m for m in b.said if m["method"] == "Runtime.exceptionThrown"])[:300] if any(m["method"] == "Runtime.exceptionThrown" for m in b.said) else "")


def inside(path, feed):
    """What ONNX Runtime computes in the original model, layer by layer: scores, what Softmax takes, its result, the mixture, and every value by its name."""
    model = onnx.load(path)
    by = {o: n for n in model.graph.node for o in n.output}
    def back(value, op):                                                             # the nearest node of an operator, first operands first
        return by[value] if by[value].op_type == op else next((n for i in by[value].input if i in by for n in [back(i, op)] if n), None)
    given = {o.name for o in model.graph.output}
    names = [o for n in model.graph.node for o in n.output if o and o not in given]
    model.graph.output.extend(onnx.ValueInfoProto(name=o) for o in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    values = dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))
    layers = []
    for n in model.graph.node:
        if n.op_type != "Softmax": continue
        scores, mix = back(n.input[0], "MatMul"), next(m for m in model.graph.node if m.op_type == "MatMul" and n.output[0] in m.input)
        layers.append({"q": values[scores.input[0]][0], "k": values[scores.input[1]][0].swapaxes(-1, -2), "v": values[mix.input[1]][0], "scores": values[scores.output[0]][0],
                       "scaled": values[n.input[0]][0], "softmax": values[n.output[0]][0], "mixed": values[mix.output[0]][0]})
    return layers, values


# the exact numbers of a picture: those of the marks in its group
def drawn(b, of): return np.array(b.js("[...document.querySelectorAll('#lesson [data-of=\"%s\"] [data-v]')].map(x => Number(x.dataset.v))" % of))


def far(got, want, at_most=1e-4):
    """'' or how far numbers are from ONNX Runtime's, beyond a part of the largest."""
    want = np.asarray(want, float).ravel()
    if got.shape != want.shape: return "%d numbers and not %d" % (got.size, want.size)
    off = np.abs(got - want).max() / max(np.abs(want).max(), 1e-9)
    return "" if off <= at_most else "%g of the largest" % off


def to_step(b, k): b.js("document.querySelector('#lesson .line [data-step=\"%d\"]').click()" % (k - 1))


def choose(b, **what):
    for name, value in what.items():
        b.js("(x => (x.value = %d, x.dispatchEvent(new Event('change', { bubbles: true }))))(document.getElementById('lesson-%s'))" % (value, name))
        b.until("lesson.state.n.layer === lesson.state.layer")


def layer_is(b, want, token, head):
    """What the lesson draws of a layer is ONNX Runtime's, within 1e-4 of the largest; its integers are near it, and are what the attention kernel's contract says."""
    layers = b.js("lesson.state.n.layer")
    what = "token %d, head %d, layer %d: " % (token, head, layers)
    w, wrong = want[layers], {}
    to_step(b, 3)
    for x in "qkv": wrong[x] = far(np.sort(drawn(b, x + ".float")), np.sort(w[x][head][token]))                   # (sorted: pairs that turn may lie side by side)
    wrong["in full"] = "" if drawn(b, "v.int").size and b.js("Number(document.querySelector('#lesson [data-of=full]').dataset.v)") == drawn(b, "v.int")[0] else "others"
    to_step(b, 4)
    wrong["scores"] = far(drawn(b, "scores.float"), w["scores"][head][token])
    whole = drawn(b, "scores.int")
    to_step(b, 5)
    seen = w["scaled"][head][token] > -1e30
    wrong["scaled"] = far(drawn(b, "scaled.float"), w["scaled"][head][token][seen])
    to_step(b, 6)
    shares = drawn(b, "softmax.float")
    wrong["softmax"] = far(shares, w["softmax"][head][token][seen], 1e-5) or ("" if abs(shares.sum() - 1) < 1e-5 else "sum %g" % shares.sum())
    wrong["the core's"] = far(drawn(b, "softmax.int"), w["softmax"][head][token][seen], 0.12)
    to_step(b, 7)
    wrong["mixture"] = far(drawn(b, "mixed.float"), w["mixed"][head][token])
    t.case(what + "ONNX Runtime's floats", "; ".join(k + ": " + v for k, v in wrong.items() if v))
    # the integers, anew from q and k: s = q . k, t in 1/64 octave below the largest, e = 255 2^(-t/64)
    ints = json.loads(b.js("JSON.stringify((n => ({ q: [...n.int[n.q].data], k: [...n.int[n.k].data], p: [...n.int[n.mixed + '_p'].data], heads: n.heads, kv: n.kv_heads, e: [...n.integers.e.data], tokens: n.tokens }))(lesson.state.n))"))
    q, k = (np.array(ints[x], np.int64).reshape(ints["tokens"], ints[h], -1) for x, h in (("q", "heads"), ("k", "kv")))
    s = k[:, head * ints["kv"] // ints["heads"]] @ q[token, head]
    below = np.minimum(((s[seen].max() - s[seen]) * ints["p"][0] + (1 << ints["p"][1] - 1)) >> ints["p"][1], 4095)
    e = np.array(ints["e"]).reshape(ints["heads"], ints["tokens"], -1)[head, token]
    t.case(what + "the contract's integers", ("" if np.array_equal(s, whole) else "scores") + ("" if np.abs(e[seen] - 255 * 2 ** (-below / 64)).max() <= 1 and not e[~seen].any() else "weights"))


def lesson(b):
    """The lesson on the page's own model: every step, by keys, wide and narrow, light and dark, printed; its numbers."""
    b.key("6", "Digit6")
    b.until("lesson.state.n")
    titles, dull = [], []
    for _ in range(12):
        titles.append(b.js("document.querySelector('#lesson h2').lastChild.textContent"))
        said = b.js("document.querySelector('#lesson article').innerText")
        if len(said) < 200 or re.search(r"undefined|NaN|null", said) or not b.js("document.querySelectorAll('#lesson figure svg, #lesson .chips').length"): dull.append(titles[-1])
        b.key("ArrowRight")
    t.case("the lesson: each step draws", " ".join(dull) or ("" if len(set(titles)) == 12 else " ".join(titles)))
    b.key("ArrowLeft")
    at = b.js("lesson.state.step")
    b.js("document.getElementById('lesson-back').focus()")
    b.key("ArrowLeft")
    t.case("by keys", "" if (at, b.js("lesson.state.step")) == (10, 9) and b.js("document.activeElement.id") == "lesson-back" else "at step %d, then %d" % (at, b.js("lesson.state.step")))
    to_step(b, 1)
    ids = b.js("[...document.querySelectorAll('#lesson .chips button')].map(x => Number(x.lastChild.textContent))")
    want, values = inside(t.model("bert-tiny"), {"input_ids": np.array([ids])})
    layer_is(b, want, 0, 0)
    choose(b, token=21, head=3, layer=1)
    layer_is(b, want, 21, 3)
    # rows: into each layer and out of it, and behind each kernel that floats have, too
    rows = [values["layer_norm%s" % x][0][21] for x in ("", "_2", "_4")]
    to_step(b, 10)
    ends = far(drawn(b, "in.float"), rows[1]) + far(drawn(b, "out.float"), rows[2])
    final = drawn(b, "out.int")
    core = onnxruntime.InferenceSession(t.good("lower", t.model("bert-tiny"), "--onnx")).run(["layer_norm_4"], {"input_ids": np.array([ids])})[0][0][21]
    t.case("rows into a layer and out of it", ends or far(final * b.js("lesson.state.n.rows.scales[2]"), core, 1e-6))
    choose(b, layer=0)
    wrong = {}
    for step, names in (8, ("linear_3", "add_3", "layer_norm_1")), (9, ("gelu", "linear_5", "add_4", "layer_norm_2")):
        to_step(b, step)
        wrong.update((x, far(drawn(b, x + ".float"), values[x][0][21])) for x in names)
    t.case("rows behind each kernel", "; ".join(k + ": " + v for k, v in wrong.items() if v))
    to_step(b, 12)
    t.case("its cycles", "" if b.js("Number(document.querySelector('#lesson [data-of=cycles]').dataset.v)") == json.loads(t.read(t.at("build/manifest.json")))["predicted_cycles"] else "others")
    to_step(b, 6)
    b.js("document.querySelector('#lesson .where [data-verilog*=softmax]').click()")
    t.case("where it is in the Verilog", "" if b.js("shown") == "verilog" and "module mlo_attention_softmax" in b.js("document.querySelector('pre').textContent") else b.js("file"))
    b.key("6", "Digit6")
    looks(b)


def looks(b):
    """The lesson on a telephone, in the dark, on paper."""
    wide, contrast = [], []
    light = lambda colour: sum(int(x) * y for x, y in zip(re.findall(r"\d+", colour), (0.3, 0.59, 0.11)))
    for width in 1280, 390:
        b("Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=False)
        for scheme in "light", "dark":
            b("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            for k in range(1, 13):
                to_step(b, k)
                b.js("document.querySelectorAll('#lesson details').forEach(x => x.open = true)")
                over = b.js("(x => [x.scrollWidth - x.clientWidth, document.documentElement.scrollWidth - innerWidth, ...[...x.querySelectorAll('figure, figure svg, h2, p, .bar')].map(y => Math.round(y.getBoundingClientRect().right - x.getBoundingClientRect().right))])(document.getElementById('lesson'))")
                if max(over) > 0: wide.append("step %d at %d pixels: %s" % (k, width, max(over)))
                text = b.js("[...document.querySelectorAll('#lesson h2, #lesson p, #lesson svg text')].map(x => getComputedStyle(x)[x.namespaceURI.endsWith('svg') ? 'fill' : 'color'])")
                ground = light(b.js("getComputedStyle(document.body).backgroundColor"))
                if min(abs(light(c) - ground) for c in set(text)) < 60: contrast.append("step %d, %s" % (k, scheme))
    t.case("nothing sticks out", "; ".join(wide[:4]))
    t.case("legible in the light and in the dark", "; ".join(contrast[:4]))
    b("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    ink = light(b.js("getComputedStyle(document.querySelector('#lesson p')).color"))
    b("Emulation.setEmulatedMedia", media="", features=[])
    b("Emulation.clearDeviceMetricsOverride")
    b.js("dispatchEvent(new Event('beforeprint'))")
    printed = b.js("document.querySelectorAll('#lesson article').length")
    b.js("dispatchEvent(new Event('afterprint'))")
    paper = base64.b64decode(b("Page.printToPDF")["data"])
    t.case("printed whole", "" if ink < 100 and printed == 12 and paper.count(b"/Type /Page\n") >= 4 and b.js("document.querySelectorAll('#lesson article').length") == 1 else "%d steps on %d pages, ink %d" % (printed, paper.count(b"/Type /Page\n"), ink))


def story(b):
    """The lesson on the trained model, dropped with its words: the text it tells itself, as ONNX Runtime says, its numbers in the last layer; one without attention says so."""
    drop(b, [t.model("stories260k-prompt"), os.path.join(t.root, "examples/tok512.bin")], HEADER)
    b.until("document.title === 'mlo: stories260k-prompt.onnx' && " + READY)
    b.key("6", "Digit6")
    b.until("lesson.state.n")
    words = b.js("[...document.querySelectorAll('#lesson .chips button')].map(x => x.lastChild.textContent)")
    t.case("a story's words", "" if "".join(words[1:10]).startswith("␣Once␣upon␣a␣time,␣there") else "".join(words))
    ids = b.js("lesson.state.n.ids")
    want, values = inside(t.model("stories260k-prompt"), {"input_ids": np.array([ids])})
    t.case("it tells it", "" if values["logits"][0].argmax(-1)[:-1].tolist() == ids[1:] else "others")
    choose(b, token=40, head=5, layer=4)
    layer_is(b, want, 40, 5)
    drop(b, t.model("mlp-res"), HEADER)
    b.until("document.title === 'mlo: mlp-res.onnx' && " + READY)
    b.until("lesson.state.wrong")
    t.case("without attention", "" if "no attention" in b.js("document.getElementById('lesson').innerText") else b.js("document.getElementById('lesson').innerText"))


HEADER, DRAWING = (300, 20), (600, 500)                       # where on the page


def drop(b, path, where):
    """A file from the desktop, or several, as a hand does it: three moves, between which the drawing below may change only while the page is at work; then
    once more, as a hand does whose file was not taken."""
    busy = b.js("document.body.dataset.state") == "busy"
    if not busy: b.until("document.getElementById('view').style.pointerEvents === ''")         # what was to be drawn is
    opened = b.js("opened")
    for _ in range(5 if busy else 1):
        for kind in "dragEnter", "dragOver", "drop":
            b("Input.dispatchDragEvent", type=kind, x=where[0], y=where[1], data={"items": [], "files": [path] if isinstance(path, str) else path, "dragOperationsMask": 1})
            if kind == "dragOver": seen = b.js("document.body.className")
        try: b.until("opened > %d" % opened, 2)
        except RuntimeError: continue
        return seen
    raise RuntimeError("dropped in vain")


# what of a model is on the page
LEFT = """[...document.querySelectorAll('nav button')].filter(x => !x.disabled).map(x => x.textContent).concat(view.srcdoc || !view.hidden ? ['drawing'] : [], document.querySelector('#code ul').children.length ? ['list'] : [],
    document.querySelector('pre').textContent ? ['code'] : [], save.disabled ? [] : ['archive'], turn.hidden ? [] : ['sliders']).join(' ')""".replace("view.", "document.getElementById('view').").replace("save.", "document.getElementById('save').").replace("turn.", "document.getElementById('turn').")


def wrong_build(b, name, path, *flags):
    """'' or in what the page differs from what the command line makes of the file."""
    there = {"input": t.read(path), "cwd": os.path.dirname(path)}                         # where its weights may be, too
    b.until(READY)
    if b.js("document.title") != "mlo: " + name: return b.js("document.title")
    t.good("compile", "-", "-o", t.at("dropped"), *flags, **there)
    got = json.loads(b.js("JSON.stringify([...files].map(([f, bytes]) => [f, btoa(Array.from(bytes, x => String.fromCharCode(x)).join(''))]))"))
    want = t.tree(t.at("dropped"))
    differ = [f for f, bytes in got if base64.b64decode(bytes) != t.read(os.path.join(t.at("dropped"), f))]
    lowered = flags or b.js("ask('json', { stage: 'lower' })") == t.good("lower", "-", **there).decode()
    return " ".join(differ or set(want) ^ {f for f, _ in got} or ([] if lowered else ["another model"]))


def drops(b, n_files):
    """A file dropped beside the drawing and on it, another one after it, one that is no model: what is on the page is of the last one, whole, or nothing."""
    status = "document.getElementById('status').textContent"
    first, second = t.model("bert-1"), t.model("mlp-res")
    before = b.js("opened")
    seen = drop(b, first, HEADER)
    t.case("dropped on the header", wrong_build(b, "bert-1.onnx", first) or ("" if "over" in seen and not b.js("document.body.className") else "it does not show that it takes files"))
    for name, key in ("drawing", "2"), ("Verilog", "5"):
        b.key(key, "Digit" + key)
        drop(b, second if name == "drawing" else first, DRAWING)
        t.case("another one on the %s" % name, wrong_build(b, "mlp-res.onnx", second) if name == "drawing" else wrong_build(b, "bert-1.onnx", first))
    outside = t.model("bert-tiny-external")                                             # with the file of its weights, which come in either order
    for order, where in (1, HEADER), (-1, DRAWING):
        drop(b, [outside, outside.replace(".onnx", ".data")][::order], where)
        t.case("dropped with its weights, %s" % ("the model first" if order > 0 else "they first"), wrong_build(b, "bert-tiny-external.onnx", outside))
    b.js("(x => (x.value = '4', x.onchange()))(document.getElementById('weights'))")             # until it is ready
    t.case("and again with 4 bits", wrong_build(b, "bert-tiny-external.onnx", outside, "--weights", 4))
    b.js("document.getElementById('weights').value = ''")
    t.case("each is opened once", "" if b.js("opened") == before + 6 else "%d times" % (b.js("opened") - before))
    t.case("the tab stays", "" if b.js("shown") == "verilog" and "Verilog" in b.js(LEFT) else b.js("shown"))
    # bad ones, from the tab that shows most and from the first
    whole = t.read(first)
    os.makedirs(t.at("folder.onnx"))
    bad = {"text.onnx": (b"no model", "MLO_E_FORMAT", ""), "cut.onnx": (whole[:len(whole) // 2], "MLO_E_FORMAT", ""), "empty.onnx": (b"", "MLO_E_FORMAT", ""), "folder.onnx": (None, "drop one .onnx file", ""),
           "outside.onnx": (t.read(t.model("bert-tiny-external")), "bert-tiny-external.data'; open or drop it together with the model", ""), "deberta.onnx": (t.read(t.model("deberta-tiny")), "MLO_E_UNSUPPORTED", "Read Rolled drawing")}
    for k, (name, (bytes, says, left)) in enumerate(bad.items()):
        b.key("25"[k % 2], "Digit" + "25"[k % 2])
        drop(b, t.write(name, bytes) if bytes is not None else t.at(name), DRAWING)
        b.until("document.body.dataset.state === 'failed' && document.title === 'mlo: %s'" % name)
        line = b.js(status)
        t.case("%s: one line" % name, "" if line.startswith(name + ": ") and says in line and "\n" not in line and len(line) < 400 else line)
        t.case("%s: nothing is left half" % name, "" if b.js(LEFT) == left else "left: %s" % b.js(LEFT))
        if k == 1:
            drop(b, second, HEADER)
            t.case("a good one after a bad one", wrong_build(b, "mlp-res.onnx", second))
    # one that comes while another is at work: the last one counts, whichever fails
    for name, one, other in ("a bad one", t.at("text.onnx"), first), ("a larger one", t.model("bert-tiny"), first):
        drop(b, one, HEADER)
        drop(b, first, DRAWING)
        t.case("%s overtaken" % name, wrong_build(b, "bert-1.onnx", first))
    drop(b, first, HEADER)
    drop(b, t.at("cut.onnx"), HEADER)
    b.until("document.body.dataset.state === 'failed'")
    b.js("ask('front')['catch'](() => 0)")
    t.case("a bad one overtakes", "" if b.js(status).startswith("cut.onnx: ") and not b.js(LEFT) else b.js(status) + b.js(LEFT))


# prints a line for each thing that is not as it should be
SCRIPT = r"""
const fs = require('fs'), [model, outside, folder] = process.argv.slice(2)
const same = (what, got, want) => { if (JSON.stringify(got) !== JSON.stringify(want)) console.log(what + ':', JSON.stringify(got)?.slice(0, 200), 'and not', JSON.stringify(want)?.slice(0, 200)) }
async function main() {
  const said = [], mlo = await require('mlo-compiler')({ warned: line => said.push(line) })
  const fails = (code, f, ...words) => {
    try { f() } catch (e) {
      same('code', e.code, code)
      for (const w of words) if (!(e.what + e.remedy).includes(w)) console.log(w, 'is not in', e.message)
      return e
    }
    console.log(code, 'was not thrown')
  }
  for (const stage of mlo.STAGES) fs.writeFileSync(`${folder}/${stage}.json`, mlo[stage](model).text)
  fs.writeFileSync(folder + '/outside.json', mlo.fold(outside).text)                 // weights in a file beside it
  same('warned', said.length > 0, true)
  const rolled = mlo.roll(model), x = mlo.draw(model), core = mlo.fold(mlo.lower(rolled, { calib: mlo.draw(model, 3) }), { pe: 2, simd: 2 })
  same('of bytes', Buffer.from(mlo.roll(fs.readFileSync(model)).onnx()).equals(Buffer.from(rolled.onnx())), true)
  same('check', mlo.check(rolled, model), true)
  const [[name, { type, dims }]] = Object.entries(mlo.signature(model)), outputs = mlo.signature(model, true), [out] = Object.keys(outputs)
  same('drawn', [Object.keys(x), x[name].type, x[name].dims, x[name].data.length], [[name], type, dims, dims.reduce((a, b) => a * b)])
  const y = mlo.run(rolled, x)
  same('run', Object.entries(y).map(([k, a]) => [k, a.type, a.dims]), Object.entries(outputs).map(([k, a]) => [k, a.type, a.dims]))
  const seen = new Map(), again = mlo.watch(rolled, x, (name, iteration, value) => { if (iteration < 0) seen.set(name, [...value().data]) })
  same('watched', [seen.get(out), [...again[out].data]], [[...y[out].data], [...y[out].data]])
  same('of floats', [...mlo.run(model, [x[name]])[out].data], [...y[out].data])
  fs.writeFileSync(folder + '/x.json', JSON.stringify({ x: [...x[name].data].map(Number), y: [...mlo.run(core, x)[out].data] }))
  const manifest = mlo.emit(core, folder + '/build', {})
  same('manifest', manifest.predicted_cycles, mlo.report(core, 'cycles').cycles)
  mlo.emit(core, folder + '/build')                                                  // over the one before
  fs.writeFileSync(folder + '/core.json', core.text)
  const e = fails('MLO_E_FOLDING', () => mlo.fold(rolled, { targetCycles: 1 }), 'target-cycles')
  same('stage', [e.stage, e.status, e instanceof mlo.MloError], ['fold', 1, true])
  fails('MLO_E_USAGE', () => mlo.fold(model, { noSuch: 1 }), 'no-such')
  fails('MLO_E_IO', () => mlo.read('/nowhere.onnx'), '/nowhere.onnx')
  fails('MLO_E_IO', () => mlo.read(folder))
  fails('MLO_E_FORMAT', () => mlo.read(Buffer.from('not a model')))
  fails('MLO_E_MISMATCH', () => mlo.check(core, model))
  for (const bad of [{ data: ['x'] }, { dims: [7], data: new Float32Array(8) }]) try { mlo.run(model, [bad]); console.log('was taken') } catch (e) { same('an array', e instanceof TypeError, true) }
}
main().catch(e => console.log(e.stack))
"""


def check_npm():
    """In a folder with nothing else in it: every stage's bytes are the command line's, arrays come and go, failures are exceptions; and the page's examples run.
    Every fourth day: the page's compiler is of the same C."""
    if not t.drawn(["the npm package"], 4): return
    if not t.have("the package", "emcc", "node", "apt-get", "dpkg-source"): return
    p = subprocess.run(["make", "-s", "npm"], cwd=t.root, capture_output=True, text=True, timeout=1400)
    if p.returncode: return t.case("make npm", p.stderr[-400:])
    made = os.path.join(t.root, p.stdout.split()[-1])
    first = t.read(made)
    t.case("make npm", "" if len(first) < 2 << 20 else "%d bytes" % len(first))
    subprocess.run(["make", "-s", "npm"], cwd=t.root, capture_output=True)
    t.case("the same package again", "" if t.read(made) == first else "others")
    where = t.at("project")
    os.makedirs(where + "/out")
    t.write("project/package.json", '{"private": true}')
    if shutil.which("npm"): p = subprocess.run(["npm", "install", "--offline", "--no-audit", "--no-fund", made], cwd=where, capture_output=True, text=True, timeout=300)
    else:                                                                            # what npm does of a package without dependencies
        os.makedirs(where + "/node_modules")
        with tarfile.open(made) as f: f.extractall(where)
        os.rename(where + "/package", where + "/node_modules/mlo-compiler")
    t.case("installed", "" if os.path.exists(where + "/node_modules/mlo-compiler/index.js") else p.stderr[-300:])
    node = lambda *args: subprocess.run(["node", *args], cwd=where, capture_output=True, text=True, timeout=300)
    model, outside = t.model("bert-1"), t.at("outside.onnx")
    onnx.save_model(onnx.load(t.model("bert-1")), outside, save_as_external_data=True, location="outside.bin")
    p = node(t.write("project/script.js", SCRIPT), model, outside, where + "/out")
    t.case("what JavaScript says", p.stdout + p.stderr[-500:])
    got = lambda name: t.read(where + "/out/" + name) if os.path.exists(where + "/out/" + name) else b""
    for stage in "read", "scope", "extract", "roll", "quantize", "lower", "fold": t.case("%s: as the command line" % stage, "" if got(stage + ".json") == t.good(stage, model) else "others")
    t.case("weights in a file: as the command line", "" if got("outside.json") == t.good("fold", outside) else "others")
    t.good("emit", where + "/out/core.json", "-o", t.at("emitted"))
    t.case("the build directory", t.trees_differ(where + "/out/build", t.at("emitted")))
    session = onnxruntime.InferenceSession(t.good("fold", where + "/out/core.json", "--onnx"))
    said, one = json.loads(got("x.json")), session.get_inputs()[0]
    kind = np.int64 if "int64" in one.type else np.float32
    want = session.run(None, {one.name: np.array(said["x"], kind).reshape(one.shape)})[0]
    t.case("its numbers are ONNX Runtime's", "" if np.array_equal(np.float32(said["y"]), want.ravel()) else "up to %g away" % np.abs(np.float32(said["y"]) - want.ravel()).max())
    os.symlink(os.path.join(t.root, "examples"), where + "/examples")
    for n, block in enumerate(re.findall(r"^```js\n(.*?)^```$", t.read(os.path.join(t.root, "docs/javascript.md")).decode(), re.M | re.S)):
        p = node(t.write("project/page%d.js" % n, block))
        t.case("docs/javascript.md, block %d" % (n + 1), p.stderr[-300:] if p.returncode else "" if len(p.stdout.splitlines()) > 2 else p.stdout)


t.main(check_web, check_npm, floor=65)
