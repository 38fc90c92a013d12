#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pages of `mlo show --html` in a browser: nothing is wider than a phone's screen but what scrolls by itself, and paper holds them.

    python tests/test_layout.py path/to/mlo [CHECK ...]

`shots` leaves every page as pictures in build/shots, to be looked at: wide and narrow, light and dark, printed."""
import html, json, os, re, shutil, subprocess, zlib
import numpy as np
from onnx import TensorProto, helper, numpy_helper
import harness as t
from chrome import Browser

WIDTHS = (390, 768, 1280)
# in the page, once it is laid out: its width, that of all its content, and what sticks out that no box around it scrolls
MEASURE = """<script>addEventListener('load', () => {
    const root = document.documentElement, out = []
    const scrolled = e => { for (e = e.parentElement; e && e !== document.body; e = e.parentElement) if (getComputedStyle(e).overflowX !== 'visible') return true }
    for (const e of document.querySelectorAll('body *')) { const r = e.getBoundingClientRect(); if (r.width && r.right > root.clientWidth + 1 && !scrolled(e)) out.push(e.tagName) }
    parent.postMessage(JSON.stringify({ width: root.clientWidth, content: root.scrollWidth, out: out.slice(0, 9) }), '*') })</script>"""


def pages():
    """A page of each kind: before roll, rolled, folded (tables, roofline, timelines), of an arena."""
    made = {}
    for kind, stage in ("as it was read", None), ("rolled", "roll"), ("folded", "fold"):
        model = t.model("bert-tiny")
        source = t.good(stage, model, *(["--pe", "4", "--simd", "4"] if stage == "fold" else [])) if stage else t.read(model)
        made[kind] = t.good("show", "--html", input=source).decode()
    for k, flags in ("one", ()), ("other", ("--weights", "4", "--pe", "8")): t.good("compile", t.model("bert-tiny"), *flags, "-o", t.at(k))
    made["two builds"] = t.good("show", "--html", t.at("one"), t.at("other")).decode()
    made["C in parts"] = t.good("show", "--html", in_parts()).decode()
    return made


def in_parts():
    """A build of C of two matrices, in parts, with names as long as exporters make them."""
    names = ["/model/layers.%d/mlp/down_proj/__QL_REPLACED__INTEGERIZE_PACT_LINEAR_PASS_%d.weight" % (n, n) for n in range(3)]
    nodes = [helper.make_node("MatMul", [["x", *names][k], "w%d" % k], [names[k]], name="MatMul of " + names[k]) for k in range(3)]
    w = np.random.default_rng(1).integers(-2, 3, (3, 64, 64)).astype(np.float32)
    info = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, [32, 64])
    m = helper.make_model(helper.make_graph(nodes, "g", [info("x")], [info(names[2])], [numpy_helper.from_array(a, "w%d" % k) for k, a in enumerate(w)]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    shutil.rmtree(t.at("parts"), ignore_errors=True)
    np.savez(t.at("x.npz"), x=np.ones((32, 64), np.float32))
    t.good("compile", t.write("parts.onnx", m.SerializeToString()), "--target", "c", "--inputs", t.at("x.npz"), "--arena", "9000", "-o", t.at("parts"))
    return t.at("parts")


def browser(*flags):
    return subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + t.at("profile"), *flags], capture_output=True, text=True, timeout=300)


def measured(kind, page):
    """The page in a frame of each width, as it measures itself."""
    frames = "".join("<iframe width=%d height=900 srcdoc=\"%s\"></iframe>" % (w, html.escape(page.replace("</body>", MEASURE + "</body>"))) for w in WIDTHS)
    path = t.write("frames.html", "<!doctype html><body><pre id=out></pre><script>const said = []; addEventListener('message', e => { said.push(JSON.parse(e.data)); document.getElementById('out').textContent = JSON.stringify(said) })</script>%s</body>" % frames)
    p = browser("--virtual-time-budget=20000", "--dump-dom", "file://" + path)
    found = re.search(r'<pre id="out">(.*?)</pre>', p.stdout, re.S)
    return sorted(json.loads(html.unescape(found[1]) or "[]"), key=lambda m: m["width"]) if found else []


def check_widths():
    if not t.have("pages at every width", "chromium"): return
    for kind, page in pages().items():
        said = measured(kind, page)
        t.case("%s: measured" % kind, "" if len(said) == len(WIDTHS) else str(said))
        for w, m in zip(WIDTHS, said): t.case("%s, %d pixels" % (kind, w), "" if m["content"] <= m["width"] and not m["out"] else str(m))
    wide = measured("wide", "<!doctype html><html><body><div style='width:2000px'>wide</div></body></html>")
    t.case("what is too wide is seen", "" if wide and all(m["content"] > m["width"] and m["out"] == ["DIV"] for m in wide) else str(wide))


def check_paper():
    """Printed, a page has a page or more, in landscape."""
    if not t.have("pages on paper", "chromium"): return
    for kind, page in pages().items():
        path, pdf = t.write("print.html", page), t.at("print.pdf")
        browser("--print-to-pdf=" + pdf, "file://" + path)
        # a picture leaves no sheet empty before it: of the folded 12 otherwise, of a long one in one piece 18
        most = {"folded": 10, "as it was read": 14}.get(kind)
        sheets = len(re.findall(rb"/Type\s*/Page\b", t.read(pdf))) if os.path.exists(pdf) else 0
        if most: t.case("%s: few sheets" % kind, "" if 4 <= sheets <= most else "%d" % sheets)
        boxes = set(re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", t.read(pdf))) if os.path.exists(pdf) else set()
        t.case("%s: on paper" % kind, "" if boxes and all(float(w) > float(h) for w, h in boxes) else str(boxes))


def strips(page):
    """(height of a picture, [(y, height) of each of its strips], [(y, height) of each box]) for each that has strips."""
    for m in re.finditer(r"<svg class='picture' [^>]*viewBox='0 0 \d+ (\d+)'[^>]*><g id='([^']+)'((?:(?!<svg).)*)</svg></div><div class=sheets>(.*?)</div>", page, re.S):
        boxes = [(int(y), int(h)) for y, h in re.findall(r"<rect x='[-\d]+' y='(\d+)' width='\d+' height='(\d+)' rx", m[3])]
        yield int(m[1]), [(int(y), int(h)) for y, h, of in re.findall(r"viewBox='0 (\d+) \d+ (\d+)'[^>]*><use href='#([^']+)'", m[4]) if of == m[2]], boxes


def check_strips():
    """Strips of a long picture show all of it once, and cut no box."""
    found = list(strips(pages()["as it was read"] + t.good("show", "--html", input=t.read(t.model("bert-12"))).decode()))
    t.case("long pictures have strips", "" if len(found) >= 3 else str(len(found)))
    for k, (height, cut, boxes) in enumerate(found):
        ends = [y + h for y, h in cut]
        t.case("picture %d: strips follow each other to its end" % k, "" if len(cut) > 1 and [0, *ends] == [*(y for y, _ in cut), height] else "%s of %d" % (cut, height))
        through = [b for b in boxes for y in ends[:-1] if b[0] < y < b[0] + b[1]]
        t.case("picture %d: no box is cut" % k, "" if len(boxes) > 20 and not through else "%d boxes, through %s" % (len(boxes), through[:5]))


# what a reader does, and what the page then is; `__said` collects errors from its first line on
READER = """<script>addEventListener('load', () => setTimeout(() => {
    const $ = (s, from = document) => [...from.querySelectorAll(s)], said = { errors: window.__said }
    const box = $('.draw').find(b => b.offsetParent && b.querySelector('svg.picture')), svg = box.querySelector('svg.picture')
    const wide = () => svg.getBoundingClientRect().width, [larger, smaller, all] = $('button', box.previousSibling)
    said.folded = $('details').map(e => e.open)
    const was = wide()
    larger.click()
    said.larger = wide() / was
    smaller.click()
    said.again = wide() / was
    all.click()
    said.all = svg.getBoundingClientRect().height <= innerHeight && wide() <= box.clientWidth
    const field = $('.find input')[0]
    field.value = 'SoftMax'
    field.dispatchEvent(new Event('input'))
    said.found = $('.find output')[0].textContent
    said.marked = $('.found').length
    field.form.requestSubmit()
    const here = $('.here')[0].getBoundingClientRect()
    said.first = $('.find output')[0].textContent
    said.seen = here.top >= 0 && here.bottom <= innerHeight && here.width > 0
    said.unfolded = $('details').map(e => e.open)
    const out = document.createElement('pre')
    out.id = 'out'
    out.textContent = JSON.stringify(said)
    document.body.append(out) }, 300))</script>"""


def check_reader():
    """A model of twelve layers opens folded; its pictures are zoomed; a search marks each node once, and shows the first one."""
    if not t.have("a reader's page", "chromium"): return
    page = t.good("show", "--html", t.model("bert-12")).decode()
    watch = "<script>window.__said = []; addEventListener('error', e => window.__said.push(e.message))</script>"
    path = t.write("reader.html", page.replace("<head>", "<head>" + watch).replace("</body>", READER + "</body>"))
    p = browser("--window-size=1280,900", "--virtual-time-budget=20000", "--dump-dom", "file://" + path)
    found = re.search(r'<pre id="out">(.*?)</pre>', p.stdout, re.S)
    if not found: return t.case("reader", p.stdout[-300:] + p.stderr[-300:])
    said = json.loads(html.unescape(found[1]))
    t.case("reader: no error", ", ".join(said["errors"]))
    t.case("reader: the whole model is folded away", "" if said["folded"] and not any(said["folded"]) else str(said["folded"]))
    t.case("reader: larger, and back", "" if abs(said["larger"] - 1.25) < 0.01 and abs(said["again"] - 1) < 0.01 else str(said))
    t.case("reader: all of it", "" if said["all"] else str(said))
    # twelve layers, and the body of the loop
    t.case("reader: every softmax is found", "" if said["found"] == "13 found" and said["marked"] == 13 else str(said))
    t.case("reader: the first one is unfolded and in sight", "" if said["first"] == "1 of 13" and said["seen"] and any(said["unfolded"]) else str(said))


# texts whose colour is too near to that of what lies behind them: a third of WCAG's scale for large ones, the whole for small ones
PALE = """(() => {
    const parts = c => (c.match(/[\\d.]+/g) || []).map(Number), lum = c => { const [r, g, b] = parts(c).map(x => (x /= 255) <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b }
    const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor, p = parts(c); if (p.length === 3 || p[3] === 1) return c } return 'rgb(255,255,255)' }
    const out = {}
    for (const e of document.querySelectorAll('main *')) {
        if (!e.offsetParent || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue
        const s = getComputedStyle(e), [a, b] = [lum(s.color), lum(behind(e))].sort((x, y) => y - x), ratio = (a + .05) / (b + .05)
        if (ratio < 4) out[e.tagName + '.' + e.className + ' ' + s.color + ' on ' + behind(e)] = ratio.toFixed(1)
    }
    return out })()"""


def sheets(pdf):
    """Of each page of a PDF of Chromium's: how many operators draw something on it."""
    bodies = {int(n): b for n, b in re.findall(rb"\n(\d+) 0 obj\n(.*?)\nendobj", b"\n" + pdf, re.S)}
    for b in bodies.values():
        if not re.search(rb"/Type\s*/Page\b", b): continue
        stream = bodies[int(re.search(rb"/Contents (\d+) 0 R", b)[1])]
        data = stream[stream.index(b"stream\n") + 7:stream.rindex(b"\nendstream")]
        yield len(re.findall(rb"\b(?:TJ|Tj|f|S|Do)\b", zlib.decompress(data) if b"/FlateDecode" in stream else data))


def pictured():
    """The pages above; twelve layers, the same with what a simulation said, and a sweep's."""
    made = {**pages(), "twelve layers": t.good("show", "--html", t.model("bert-12")).decode()}
    little = os.path.join(t.tests, "models/families/bert-d18-eager-none-a.onnx")
    t.good("compile", little, "--pe", "4", "--simd", "4", "-o", t.at("little"))
    if shutil.which("iverilog"):
        t.good("sim", t.at("little"), "--simulator", "icarus", "--wave", t.at("little.vcd"))
        made["simulated"] = t.good("show", "--html", t.at("little"), "--wave", t.at("little.vcd")).decode()
    row = dict(weights=8, memory="layer", multipliers=96, lut=9000, ff=9000, dsp=10, bram=4, cosine=.999, relative=.02)
    t.write("points.jsonl", "".join(json.dumps({**row, "target": 1000 * k, "cycles": 900 * k, "multipliers": 900 // k, "lut": 20000 // k, "relative": .02 * k}) + "\n" for k in range(1, 9)))
    made["a sweep"] = t.good("show", "--html", t.at("points.jsonl")).decode()
    return made


def wrong(b, width, scheme, path):
    """What is wrong with a page on a screen; the picture stays at path."""
    high, empty, edge = b.looked_at(b.shot(width, scheme, path))
    over, pale = b.js("document.documentElement.scrollWidth - innerWidth"), b.js(PALE)
    return ["%d rows of %d are empty" % (empty, high)] * (empty > 300) + ["%d pixels too wide" % over] * (over > 0) + ["the edge is %s" % edge] * ((sum(edge) < 200) != (scheme == "dark")) + ["pale: %s" % pale] * bool(pale)


# everything that a page must not be: empty for long, too wide, pale, white in the dark, and on paper a sheet of nothing
BAD = """<!doctype html><html><body style='background:#fff;color:#ccc'><main><p>pale</p><div style='height:600px'></div><p style='width:2000px'>wide</p><div style='break-before:page;height:9px'></div>
<p style='break-before:page'>a last sheet</p></main></body></html>"""


def check_shots():
    """On screens wide and narrow, light and dark: something in every stretch of a page, legible; on paper no sheet is empty."""
    if not t.have("pictures of pages", "chromium"): return
    folder = os.path.join(t.root, "build", "shots")
    os.makedirs(folder, exist_ok=True)
    for kind, page in {**pictured(), "a bad page": BAD}.items():
        path, at = t.write(kind.replace(" ", "-") + ".html", page), os.path.join(folder, kind.replace(" ", "-"))
        b = Browser(path)
        try:
            b.until("document.readyState === 'complete'")
            found = {"%s, %d pixels, %s" % (kind, w, s): wrong(b, w, s, "%s-%d-%s.png" % (at, w, s)) for w in (1280, 390) for s in ("light", "dark")}
            drawn = list(sheets(b.paper(at + ".pdf")))
            if page == BAD:
                for name, why in found.items(): t.case(name + " is seen", "" if len(why) == (4 if "dark" in name else 3) else str(why))
                t.case("an empty sheet is seen", "" if 0 in drawn else str(drawn))
                continue
            for name, why in found.items(): t.case(name, "; ".join(why))
            t.case("%s: something on every sheet" % kind, "" if drawn and min(drawn) >= 2 else str(drawn))
            t.case("%s: no errors" % kind, [m for m in b.said if m["method"] != "Network.requestWillBeSent"])
        finally: b.close()


t.main(check_widths, check_paper, check_strips, check_reader, check_shots, floor=93)
