#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""show: every stage of every model as text, JSON, DOT and HTML; the JSON held against the model itself and against the manifest.

Builds show_driver.c with ASan and UBSan in a temporary folder.
Usage: python tests/test_show.py path/to/mlo [NAME ...]
"""
import html, itertools, json, math, os, re, shutil, subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree
import onnx
from onnx import TensorProto as T, helper
import cores
import harness as t
from harness import case

COLUMNS = 112
STAGES = ["read", "scope", "extract", "roll", "quantize", "lower", "fold"]
FORMATS = ["text", "json", "dot", "html", "svg"]


def build():
    if t.counted("show_driver"): return t.counted("show_driver")
    why = t.compile_c(t.at("driver"), [os.path.join(t.tests, "show_driver.c"), t.amalgamation()], ["-std=c99", *t.WATCHED])
    if why: raise RuntimeError(why)
    return t.at("driver")


def run(model, stage, fmt, *options, **env):
    return subprocess.run([driver, model, stage, fmt, *options], capture_output=True, env=dict(os.environ, **env))


def quantized(path, *options):
    """A model as `quantize` leaves it, made once: later stages begin there, and do not calibrate anew. None when it does not become hardware."""
    to = t.at("quantized-%s.onnx" % os.path.basename(path)[:-5])
    if not os.path.exists(to):
        r = run(path, "quantize", "onnx", *options)
        if r.returncode: return None
        with open(to, "wb") as f: f.write(r.stdout)
    return to


def save(m, name):
    path = t.at(name + ".onnx")
    onnx.save(m, path)
    return path


# ---- what a page, a text and a graph must be ----------------------------------------------------------------------------------------

class Page(HTMLParser):
    """Balanced tags; nothing from elsewhere; no script but its own."""
    VOID, OPTIONAL = {"meta", "br"}, {"tr", "td", "th", "li", "p"}

    def __init__(self, text):
        super().__init__()
        self.open, self.why, self.shown, self.tags = [], "", [], []
        self.feed(t.scriptless(text))
        self.close()
        rest = [t for t in self.open if t not in self.OPTIONAL]
        if rest: self.why = self.why or f"not closed: {rest[-3:]}"
        ids = [v["id"] for _, v in self.tags if "id" in v]
        used = [v["href"] for tag, v in self.tags if tag == "use"]               # strips of a long picture: what the page has itself, once
        if not {h[1:] for h in used} <= set(ids) or not all(h.startswith("#") for h in used) or len(set(ids)) < len(ids): self.why = self.why or f"<use> of {used[:3]}, ids {ids[:9]}"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "link", "iframe", "img", "object", "a", "embed"): self.why = self.why or f"a <{tag}>"
        for k, v in attrs:
            if k.startswith("on") or k in ("src", "href") and tag != "use" or (v and "url(" in v and "url(#" not in v): self.why = self.why or f"<{tag} {k}={v}>"
        if tag not in self.VOID: self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        while self.open and self.open[-1] != tag and self.open[-1] in self.OPTIONAL: self.open.pop()
        if not self.open or self.open[-1] != tag: self.why = self.why or f"</{tag}> closes {self.open[-3:]}"
        else: self.open.pop()

    def handle_data(self, data): self.shown.append(data)


def wrong_html(b):
    text = b.decode()
    page = Page(text)
    if not text.startswith("<!doctype html>"): return "no doctype"
    if "@import" in text or "http" in text: return "something from the network"
    return page.why


def wrong_text(b):
    lines = b.decode().split("\n")
    for n, line in enumerate(lines, 1):
        if len(line) > COLUMNS: return f"line {n} has {len(line)} columns"
        if line != line.rstrip(): return f"line {n} ends in blanks"
        if any(ord(c) < 32 or ord(c) == 127 for c in line): return f"line {n} holds a control character"
        if line[:1] in "|+" and line and len(line) != COLUMNS: return f"line {n}: the box is not straight"
    return "" if lines[-1] == "" and len(lines) > 5 else "no text"


def wrong_dot(b):
    if not b.startswith(b"digraph") or not b.endswith(b"\n}\n"): return "no digraph"
    if not shutil.which("nop"): return ""
    r = subprocess.run(["nop"], input=b, capture_output=True)
    return r.stderr.decode()[:200] if r.returncode or r.stderr else ""


def wrong_json(b):
    d = json.loads(b, parse_constant=lambda s: 1 / 0)
    missing = {"stage", "nodes", "inputs", "outputs", "opsets", "loops", "scopes_inferred"} - set(d)
    if missing: return f"without {sorted(missing)}"
    for l in d["loops"]:
        missing = {"name", "iterations", "body_nodes", "carried", "invariant", "per_iteration", "taps", "scope"} - set(l)
        if missing: return f"a loop without {sorted(missing)}"
    if "kernels" in d:
        missing = {"multipliers", "interval_per_token", "predicted_cycles", "predicted_interval", "parameter_bytes_per_iteration", "fifo"} - set(d)
        if missing: return f"kernels, but no {sorted(missing)}"
    return ""


def wrong_svg(b):
    """XML by itself, which names SVG and loads nothing."""
    try: top = ElementTree.fromstring(b)
    except ElementTree.ParseError as e: return str(e)
    if top.tag != "{http://www.w3.org/2000/svg}svg": return top.tag
    return "something from elsewhere" if b"url(" in b.replace(b"url('#tip')", b"").replace(b"url(#tip)", b"") or b"href" in b else ""


WRONG = {"text": wrong_text, "json": wrong_json, "dot": wrong_dot, "html": wrong_html, "svg": wrong_svg}


def shown(path, stage, *options):
    """Every format of a model in one run: {format: what is wrong with it}; or the run that failed."""
    r = run(path, stage, "all", *options)
    if r.returncode: return None, r
    texts = dict(zip(FORMATS + ["again"], r.stdout.split(b"\0")))
    wrong = {fmt: WRONG[fmt](texts[fmt]) for fmt in FORMATS}
    if texts["again"] != texts["json"]: wrong["json"] = wrong["json"] or "showing changed the model"
    return wrong, r


def all_formats(name, path, stage="read"):
    wrong, r = shown(path, stage)
    for fmt in FORMATS: case(f"{name}/{fmt}", wrong[fmt] if wrong else f"status {r.returncode}: {r.stderr.decode()[-300:]}")


# ---- text and page against the JSON ----------------------------------------------------------------------------------------------------

def thousands(n): return f"{n:,}".replace(",", " ")


def size(n):
    """Bytes, as people read them: of 1024, a tenth that is cut."""
    for unit in ("B", "KiB", "MiB"):
        if n < 1024: return "%d %s" % (n, unit) if unit == "B" else "%d.%d %s" % (n, int(n * 10) % 10, unit)
        n /= 1024


def share(part, whole):
    """Percent, and what it may be rounded to."""
    return {"%.1f %%" % (100 * part / whole + e) for e in (-0.001, 0.001)}


def below(text, *titles):
    """The lines of a text's table, in cells that end where their titles do."""
    header = next(l for l in text.splitlines() if all(w in l for w in titles))
    ends = [0, *(header.index(w) + len(w) for w in titles)]
    lines = itertools.takewhile(bool, text.partition(header + "\n")[2].split("\n"))
    return [[l[a:b].strip() for a, b in zip(ends, ends[1:])] for l in lines]


def area(a): return [thousands(a[k]) for k in ("lut", "ff", "dsp", "bram")]


def wrong_tables(d, text):
    """Kernels, their sum and areas, each below its title."""
    kernels = below(text, "kernel     ", "channels", "PE x SIMD", "mults", "cyc/token", "busy", "parameters")
    want = [[k["name"], f"{k['channels_in']} -> {k['channels_out']}", f"{k['pe']} x {k['simd']}", thousands(k["multipliers"]) if k["multipliers"] else "-", thousands(k["interval"]), size(k["parameter_bytes"])]
            for k in d["kernels"]] + [["", "", "", thousands(d["multipliers"]), thousands(d["interval_per_token"]), size(d["parameter_bytes_per_iteration"])]]
    got = [[name, what.split("  ")[-1].strip() if name else "", fold, multipliers, interval, bytes.lstrip("# ")] for name, what, fold, multipliers, interval, _, bytes in kernels]
    if got != want: return f"{next((g, w) for g, w in zip(got, want) if g != w)}"
    titles = re.findall(r"^(FIFOs)? +\S+ +-> \S+ +[\d ]+ tokens, ", text, re.M)
    if titles != ["FIFOs", *[""] * (len(titles) - 1)][:len(titles)]: return f"FIFOs below {titles}"
    got = below(text, "area of an UltraScale+, estimate", "LUT", "FF", "DSP", "BRAM")[:len(d["kernels"]) + 3]
    want = [[name, *area(a)] for name, a in [*((k["name"], k["area"]) for k in d["kernels"]), ("streams between them", d["area_streams"]), ("loop, loader, registers", d["area_shell"]), ("all", d["area"])]]
    return "" if got == want else f"{got} instead of {want}"


def wrong_folding(d, section):
    """A kernel's row of a page, and its bar: as wide as it says."""
    rows = re.findall(r"<tr><td>(\w+)</td><td>[^<]*</td>(.*?)</tr>", section)
    if [r[0] for r in rows] != [k["name"] for k in d["kernels"]]: return f"rows of {[r[0] for r in rows]}"
    for k, (name, row) in zip(d["kernels"], rows):
        cells = re.findall(r"<td class=r>([^<]*)</td>", row)
        want = [thousands(k[w]) for w in ("interval", "latency")] + [size(k["parameter_bytes"])] + area(k["area"])
        if cells[3:10] != want: return f"{name}: {cells} instead of {want}"
        (busy, held), = bars_of(row)
        if busy not in share(k["predicted"]["busy"], d["predicted_interval"] * d["frames_in_flight"]) or held != "0.0 %" or cells[10] != busy: return f"{name}: {busy}, {held}, {cells[10]}"
    return ""


def bars_of(row):
    """Busy and blocked of each bar, which is as wide as it says."""
    found = re.findall(r"title='([\d.]+ %) busy, ([\d.]+ %) blocked'><i style='width:([\d.]+)%'></i><i class=held style='width:([\d.]+)%'", row)
    return [(a, b) for a, b, wide, then in found if (a, b) == (wide + " %", then + " %")]


def wrong_memory(d, section):
    """What an iteration's parameters take of the memory's cycles."""
    facts = dict(re.findall(r"<tr><td>([^<]*)</td><td class=r>([^<]*)</td>", section.partition(">Memory</h3>")[2]))
    if facts.get("per iteration") != size(d["parameter_bytes_per_iteration"]): return str(facts)
    return "" if facts["predicted"] in share(d["parameter_beats"]["per_frame"], d["predicted_interval"]) else str(facts)


# ---- the JSON against the model ------------------------------------------------------------------------------------------------------

def outside(graph, bound=frozenset()):
    """Names a graph reads and does not make."""
    made, read = set(bound) | {i.name for i in graph.input} | {i.name for i in graph.initializer}, []
    for n in graph.node:
        read += [i for i in n.input if i and i not in made]
        for a in n.attribute:
            for g in ([a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs): read += outside(g, made)
        made |= set(n.output)
    read += [o.name for o in graph.output if o.name not in made]
    return list(dict.fromkeys(read))


def facts(m):
    """Loops of a model by Python's own counting."""
    loops = []
    for n in m.graph.node:
        if n.op_type != "Scan": continue
        body = next(a.g for a in n.attribute if a.name == "body")
        k = next(a.i for a in n.attribute if a.name == "num_scan_inputs")
        meta = {p.key: p.value for p in n.metadata_props}
        loops.append({"name": n.name, "iterations": int(meta["mlo.iterations"]), "body_nodes": len(body.node), "carried": len(n.input) - k, "invariant": len(outside(body)), "per_iteration": k,
                      "taps": len(n.output) - (len(n.input) - k), "scope": meta.get("mlo.scope", "")})
    return loops


def nodes(graph):
    """Those of a graph and of all graphs inside."""
    for n in graph.node:
        yield n
        for a in n.attribute:
            for g in ([a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs): yield from nodes(g)


def cut(name, most):
    """As a cell of a text shows a name: one that is longer loses its middle."""
    head = (most - 2) // 2
    return name if len(name) <= most else name[:head] + ".." + name[2 + head - most:]


def edges(m):
    """What goes into a model's loops and comes out, as text and page list it: (carried, invariants, taps) of each."""
    for n in m.graph.node:
        if n.op_type != "Scan": continue
        body = next(a.g for a in n.attribute if a.name == "body")
        carried = len(n.input) - next(a.i for a in n.attribute if a.name == "num_scan_inputs")
        yield [x.name for x in body.input[:carried]], len(outside(body)), [(x.name, y) for x, y in zip(body.output[carried:], n.output[carried:])]


def wrong_edges(m, text, page):
    """The lists of each loop. Invariants that are constants are only counted."""
    boxes = [x.split("\n+-")[0] for x in re.split(r"^\+-- .*\n", text, flags=re.M)[1:]]
    tables = re.findall(r"At the loop's edge</h3><table>(.*?)</table>", page)
    if not len(boxes) == len(tables) == len(list(edges(m))): return f"{len(boxes)} boxes, {len(tables)} tables"
    for (carried, invariants, taps), box, table in zip(edges(m), boxes, tables):
        rows, label = {}, ""
        for line in box.splitlines():
            label = line[2:17].strip() or label
            rows.setdefault(label, []).append(line[17:-2].strip())
        got = [r.split("  ")[0] for r in rows.get("carried", [])[::2]], sum(int((re.match(r"(\d+) constants?: ", r) or [1, 1])[1]) for r in rows.get("invariant", []) if r.split(":")[0].endswith(("constant", "constants")) or "[" in r)
        if got[0] != [cut(c, 30) for c in carried] or [r.split("  ")[0] for r in rows.get("taps", [])] != [cut(x, 30) for x, _ in taps]: return f"text: {rows}"
        cells = [(kind, html.unescape(what)) for kind, what in re.findall(r"<tr><td>(\w+)</?td>(?:<td>)?([^<]*)<", table)]
        if [w for k, w in cells if k == "carried"] != carried or [w for k, w in cells if k == "tap"] != [y for _, y in taps]: return f"page: {cells}"
        counted = [int((re.match(r"(\d+) constants?$", w) or [1, 1])[1]) for k, w in cells if k == "invariant"]
        if sum(counted) != invariants or got[1] != invariants: return f"{invariants} invariants; {rows.get('invariant')}; {cells}"
    return ""


def against_model(name, path, stage):
    out = run(path, stage, "json").stdout
    m = onnx.ModelProto()
    m.ParseFromString(run(path, stage, "onnx").stdout)
    d, want = json.loads(out), facts(m)
    got = [{k: l[k] for k in want[0]} for l in d["loops"]] if want else d["loops"]
    case(f"{name}/loops", "" if got == want else f"{got} instead of {want}")
    case(f"{name}/nodes", "" if d["nodes"] == len(m.graph.node) and d["stage"] == stage else f"{d['nodes']} at {d['stage']}")
    init = {i.name for i in m.graph.initializer}
    names = [i.name for i in m.graph.input if i.name not in init]
    case(f"{name}/inputs", "" if [i["name"] for i in d["inputs"]] == names and [o["name"] for o in d["outputs"]] == [o.name for o in m.graph.output] else str(d["inputs"]))
    shapes = [[x.dim_param or x.dim_value for x in i.type.tensor_type.shape.dim] for i in m.graph.input if i.name not in init]
    case(f"{name}/shapes", "" if [i["shape"] for i in d["inputs"]] == shapes else f"{[i['shape'] for i in d['inputs']]} instead of {shapes}")
    case(f"{name}/edges", wrong_edges(m, *(run(path, stage, fmt).stdout.decode() for fmt in ("text", "html"))))
    inferred = sum(p.key == "mlo.scope_from" for n in nodes(m.graph) for p in n.metadata_props)
    case(f"{name}/inferred", "" if d["scopes_inferred"] == inferred else f"{d['scopes_inferred']} of {inferred}")
    case(f"{name}/opsets", "" if d["opsets"] == {o.domain or "ai.onnx": o.version for o in m.opset_import} else str(d["opsets"]))
    case(f"{name}/summary", "" if run(path, stage, "summary").stdout == out else "mlo_summary says something else than show --json")
    case(f"{name}/again", "" if run(path, stage, "json").stdout == out else "twice is not the same")
    piped = t.at("piped.json")
    with open(piped, "wb") as f:
        f.write(run(path, stage, "model").stdout)
    case(f"{name}/piped", "" if run(piped, "-", "json").stdout == out else "a piped model shows differently")


def bars(section):
    """(kernel, iteration, frame, first token, last token or -1, begin, end) of each bar that is not faded, from its title."""
    found = re.findall(r"<rect class='(i\d[^']*)'[^>]*><title>(\w+), iteration (\d+)(?:, frame (\d+))?(?:, tokens? (\d+)(?: to (\d+))?| loads parameters): cycles (-?\d+) to (-?\d+)</title>", section)
    return [(k, int(i), int(f or 0), int(a or -1), int(b or a or -1), int(x), int(y)) for c, k, i, f, a, b, x, y in found if "faded" not in c]


def wrong_bars(section):
    """Names stand left of all bars; no bar is narrower than a pixel; one of a single token that has room for a number, a pixel less than 17, has its token's."""
    found = re.findall(r"<rect class='(i\d[^']*)' x=(\d+) y=\d+ width=(\d+)[^>]*><title>[^<]*?(?:, token (\d+))?: [^<]*</title></rect>(?:<text class=inside[^>]*>(\d+)<)?", section)
    names = [int(x) for x in re.findall(r"<text class='label' text-anchor=end x=(\d+)", section)]
    if not found or not names or max(names) >= min(int(x) for _, x, *_ in found): return "no bars, or names in them"
    for kind, x, width, token, inside in found:
        wide = token and int(width) >= 16 and "faded" not in kind
        if int(width) < 1 or inside != (token if wide else ""): return f"a bar of token '{token}' at {x}, {width} wide, says '{inside}'"
    return ""


def wrong_timeline(d, section):
    """Every token of two iterations once; a matrix-vector unit works (K/SIMD)(N/PE) cycles on each, on one at a time; every bank is loaded."""
    if wrong_bars(section): return wrong_bars(section)
    shown, iterations = bars(section), d["loops"][0]["iterations"]
    first = 1 if iterations > 2 else 0
    for k in d["kernels"]:
        mine = [b for b in shown if b[0] == k["name"] and b[3] >= 0]
        tokens = sorted((i, f, t) for _, i, f, a, b, _, _ in mine for t in range(a, b + 1))
        want = [(i, f, t) for i in range(first, min(first + 2, iterations)) for f in range(d["frames_in_flight"]) for t in range(d["tokens"])]
        if tokens != want: return f"{k['name']}: {len(tokens)} tokens instead of {len(want)}"
        if not k["op"].startswith("MVU"): continue
        work = k["channels_in"] // k["simd"] * (k["channels_out"] // k["pe"])
        for _, _, _, a, b, begin, end in mine:
            if end - begin < (b - a + 1) * work or (a == b and end - begin != work): return f"{k['name']}: {b - a + 1} tokens of {work} cycles from {begin} to {end}"
        times = sorted((b[5], b[6]) for b in mine)
        if any(b[0] < a[1] for a, b in zip(times, times[1:])): return f"{k['name']}: bars overlap"
    loads = {b[0] for b in shown if b[3] < 0}
    return "" if loads or not first else "no loading of parameters"


def wrong_labels(section):
    """Labels stand in the order of their points, and as near to them as 16 pixels from one to the next allow: the regression that keeps an
    order, by its formula, the largest of the smallest means."""
    leads = sorted((int(label), int(y), int(x)) for x, y, label in re.findall(r"<path class=lead d='M(-?\d+),(-?\d+)L\d+,(-?\d+)H", section))
    height, n = int(re.search(r"viewBox='0 0 \d+ (\d+)'", section)[1]), len(leads)
    order = [(y, -x) for _, y, x in leads]
    if order != sorted(order): return f"labels in another order than their points: {leads}"
    wish = [y - 16 * i for i, (_, y, _) in enumerate(leads)]
    mean = lambda a, b: sum(wish[a:b + 1]) / (b + 1 - a)
    for i, (label, _, _) in enumerate(leads):
        near = max(min(mean(a, b) for b in range(i, n)) for a in range(i + 1))
        want = min(max(near, 16) + 16 * i, height - 44 - 16 * (n - 1 - i))
        if abs(label - want) > 1: return f"label {i} of {leads} at {label}, should be at {want}"
    return "" if n else "no label"


def wrong_axis(marks):
    """Numbers of an axis in octaves: as far apart as their logarithms are, to a pixel's rounding."""
    marks = sorted((math.log2(1 / float(n[2:].replace(" ", "")) if n[:2] == "1/" else float(n.replace(" ", ""))), int(at)) for at, n in marks)
    if len(marks) < 2: return "an axis without numbers"
    (a, x), (b, y) = marks[0], marks[-1]
    return "" if all(abs(x + (y - x) * (k - a) / (b - a) - at) <= 1 for k, at in marks) else f"an axis of {marks}"


def wrong_roofline(d, section):
    """Each kernel's multiply-accumulates per cycle, from the interval; the whole; what there is of both resources."""
    number = r">((?:1/)?\d[\d ]*)<"
    for axis in re.findall(r"class=['\"]?axis['\"]? text-anchor=middle x=(\d+) y=\d+" + number, section), re.findall(r"class=['\"]?axis['\"]? text-anchor=end x=\d+ y=(\d+)" + number, section):
        if wrong_axis(axis): return wrong_axis(axis)
    marks = sorted((math.log2(1 / float(n[2:].replace(" ", "")) if n[:2] == "1/" else float(n.replace(" ", ""))), int(at)) for at, n in axis)      # of the upright axis
    for cy, name in re.findall(r"<circle class=['\"]?ring['\"]? cx=\d+ cy=(-?\d+) r=4.5><title>([^:<]+):", section):
        (a, y), (b, z), octaves = marks[0], marks[-1], math.log2(next(k["macs"] for k in d["kernels"] if k["name"] == name) / d["predicted_interval"])
        want = y - 3 + (z - y) * (octaves - a) / (b - a)                    # numbers stand 3 below their lines
        if abs(want - int(cy)) > 2: return f"{name} is at {cy}, should be at {want:.1f}"
    (a, y), (b, z), bottom = marks[0], marks[-1], int(re.search(r"viewBox='0 0 \d+ (\d+)'", section)[1]) - 44
    slow = min([k["macs"] / d["predicted_interval"] for k in d["kernels"] if k["macs"]] + [d["multipliers"] / 16])
    below = math.log2(slow) - a - (bottom + 3 - y) * (b - a) / (z - y)
    if abs(below - 0.5) > 0.1: return f"the picture ends {below:.2f} octaves below its slowest point, not half a one"
    total = sum(k["macs"] for k in d["kernels"])
    for name, macs, multipliers in [(k["name"], k["macs"], k["multipliers"]) for k in d["kernels"] if k["macs"]] + [("the core", total, d["multipliers"])]:
        found = re.search(rf">{name}: ([\d.]+) of ([\d ]+) = ([\d.]+) %<", section)
        if not found: return f"{name} is not there"
        pace = macs / d["predicted_interval"]
        if abs(float(found[1]) - pace) > 0.051 or int(found[2].replace(" ", "")) != multipliers or abs(float(found[3]) - 100 * pace / multipliers) > 0.051: return f"{found[0]}: {pace} of {multipliers}"
    ys = [int(y) for y in re.findall(r"class='label[^']*' text-anchor=start x=\d+ y=(\d+)", section)]
    if min((b - a for a, b in zip(sorted(ys), sorted(ys)[1:])), default=16) < 16: return f"labels overlap: {ys}"
    if wrong_labels(section): return wrong_labels(section)
    return "" if f">{d['multipliers']:,} multipliers<".replace(",", " ") in section and ">16 bytes/cycle<" in section else "a roof is missing"


def check_best():
    """The best utilisation that legal foldings allow: by trying them all."""
    b = cores.Body(tokens=6, channels=12)
    y = b.add(b.mvu(b.mvu(b.requant(b.x), 20, 8), 12), b.x)
    path = save(b.model(y, 3), "best")
    tables = [list(zip(*(k.foldings()[key] for key in ("interval", "multipliers", "beats")))) for k in b.kernels]
    macs = 6 * 3 * (12 * 20 + 20 * 12)
    for frames, pe, simd in ((1, 2, 3), (2, 1, 5), (1, 5, 4)):
        r = run(path, "fold", "json", "pe", str(pe), "simd", str(simd), "frames-in-flight", str(frames))
        d = json.loads(r.stdout)
        best = min(max(6 * max(c[0] for c in choice), cores.ceil(sum(int(c[2]) for c in choice), frames)) for choice in itertools.product(*tables) if sum(c[1] for c in choice) <= d["multipliers"])
        own = 6 * max(k["interval"] for k in d["kernels"])
        case(f"best/{frames} frames {pe}x{simd}", "" if d["best"] == 3 * best and abs(d["best_utilization"] - macs / (d["multipliers"] * 3 * best)) < 1e-6 and d["bound"] >= 3 * own and d["utilization"] <= d["bound_utilization"] <= d["best_utilization"] + 1e-6
             else f"best {d['best']} instead of {3 * best}; {d['utilization']} {d['bound_utilization']} {d['best_utilization']}")
    for what, layer, want in (("all that multiplies is always busy", lambda b: b.mvu(b.requant(b.x), 12), 1), ("nothing multiplies", lambda b: b.add(b.requant(b.x), b.x), 0)):
        b = cores.Body(tokens=6, channels=12)
        d = json.loads(run(save(b.model(layer(b), 3), "only"), "fold", "json", "pe", "2", "simd", "3").stdout)
        case(f"best/{what}", "" if bool(d["multipliers"]) == bool(want) and d["bound_utilization"] == d["best_utilization"] == want >= d["utilization"] >= 0 else f"{d['utilization']} {d['bound_utilization']} {d['best_utilization']}")


def check_progress():
    """What a long stage says of itself: what goes on, from 0 to 1, and that it is over; foldings are searched, samples gone through."""
    for stage, fmt, wanted in ("quantize", "json", {"calibrates", "rounds parameters"}), ("lower", "pareto", {"calibrates", "searches foldings", "makes room in FIFOs"}):
        r = run(t.model("bert-1"), stage, fmt, MLO_TEST_PROGRESS="1")
        said = [(float(l[:5]), l[6:]) for l in r.stderr.decode().splitlines() if re.match(r"[01]\.\d{3} ", l)]
        parts = {what: [done for done, w in said if w == what] for what in wanted}
        why = [what for what, done in parts.items() if len(done) < 2 or done != sorted(done) or min(done) > 0.5]
        case(f"progress/{fmt} behind {stage}", f"{r.returncode}: {why}, {said[:20]}" if why or r.returncode or said[-1][1] != "over" or not all(0 <= done <= 1 for done, _ in said) else "")


def check_simulation():
    """What a simulation counted, beside the prediction; what is none, refused."""
    b = cores.Body(tokens=4, channels=8)
    path = save(b.model(b.mvu(b.requant(b.x), 8), 2), "simulated")
    options = ["pe", "2", "simd", "2"]
    kernels = [k["name"] for k in json.loads(run(path, "fold", "json", *options).stdout)["kernels"]]
    report = {"frames": 1, "interval": 400, "counters": {"cycles": 400}, "memory": {"busy_share": 0.25}, "kernels": [{"name": n, "busy": x, "starved": 370 - x, "blocked": 30} for n, x in zip(kernels, (32, 128))]}
    trace = [{"kernel": kernels[1], "frame": 0, "iteration": i, "token": t, "begin": 50 * t + 200 * i, "end": 50 * t + 200 * i + 49, "compute": 16, "starved": 30, "blocked": 4} for i in (0, 1) for t in range(4)]
    lines = lambda *rows: "\n".join(json.dumps(r) for r in rows) + "\n"
    d = json.loads(run(path, "fold", "json", *options, "simulation", lines(report)).stdout)
    macs = 8 * 8 * 4 * 2
    case("simulation/json", "" if d["measured_utilization"] == macs / (4 * 400) else str(d["measured_utilization"]))
    text = run(path, "fold", "text", *options, "simulation", lines(report)).stdout
    case("simulation/text", wrong_text(text) or ("" if b" 32.0 %" in text and b" 8.0 %" in text and b"25.0 %" in text else text.decode()[-900:]))
    page = run(path, "fold", "html", *options, "simulation", lines(report, *trace)).stdout
    section = page.decode().partition("Simulated timeline")[2].partition("</section>")[0]
    got = sorted(b[1:2] + b[3:4] + b[5:7] for b in bars(section))
    want = sorted((x["iteration"], x["token"], x["end"] - 20, x["end"] - 4) for x in trace)
    case("simulation/html", wrong_html(page) or ("" if got == want else f"{got} instead of {want}"))
    case("simulation/folding", "" if bars_of(page.decode()) == [("8.0 %", "7.5 %"), ("32.0 %", "7.5 %")] else str(bars_of(page.decode())))
    for name, bad in (("no JSON", "{"), ("another core", lines(dict(report, kernels=report["kernels"][:1]))), ("other names", lines(dict(report, kernels=report["kernels"][::-1]))), ("no cycles", lines(dict(report, counters={}))),
                      *((f"{key} of {value}", lines(dict(report, **{key: value}))) for key, value in (("frames", 0), ("frames", 1e9), ("frames", "one"), ("interval", 0), ("counters", {"cycles": 0}), ("counters", {"cycles": 1e15}), ("kernels", 5), ("kernels", [*report["kernels"], {}]))),
                      *((f"a kernel's {key} of {value}", lines(dict(report, kernels=[dict(report["kernels"][0], **{key: value}), report["kernels"][1]]))) for key, value in (("name", 5), ("busy", -1), ("starved", -1), ("blocked", -1), ("busy", 1e16)))):
        r = run(path, "fold", "json", *options, "simulation", bad)
        case(f"simulation/{name}", "" if r.returncode == 3 and b"MLO_E_FORMAT" in r.stderr else f"{r.returncode} {r.stderr.decode()[-200:]}")
    line = trace[3]
    others = [dict(line, **{key: value}) for key, value in (("kernel", 5), ("kernel", "nobody"), ("iteration", -1), ("iteration", 1e10), ("iteration", "one"), ("frame", -1), ("frame", 1e10), ("frame", 5), ("token", -1), ("token", 1e10), ("begin", "now"), ("begin", 1e16), ("end", None), ("end", -1e16))]
    junk = "\n".join(["{", "", "[]", *map(json.dumps, others)]) + "\n\n"
    other = run(path, "fold", "html", *options, "simulation", lines(report) + junk + lines(*trace)[:-1]).stdout
    case("simulation/lines that cannot be", "" if other == page else "they are drawn")
    for key, value in (("compute", -1), ("blocked", -1), ("compute", 1e16)):        # of such a tile it is known when it was
        got = run(path, "fold", "html", *options, "simulation", lines(report, *trace[:-1], dict(trace[-1], **{key: value}))).stdout.decode().partition("Simulated timeline")[2].partition("</section>")[0]
        want = sorted([*((x["iteration"], x["token"], x["end"] - 20, x["end"] - 4) for x in trace[:-1]), (1, 3, trace[-1]["begin"], trace[-1]["end"])])
        got = sorted(b[1:2] + b[3:4] + b[5:7] for b in bars(got))
        case(f"simulation/a tile whose {key} is {value}", "" if got == want else f"{got} instead of {want}")
    wave = {"kernel": kernels[0], "stream": "in0", "from": 7, "valid": "0110110", "ready": "0101011"}
    page = run(path, "fold", "html", *options, "simulation", lines(report, *trace, wave)).stdout
    drawn = re.findall(r"<rect class=(\w+) [^>]*><title>%s.in0, [^<]*, cycles? (\d+)(?: to (\d+))?</title>" % kernels[0], page.decode())
    want = [(kind, str(7 + i), "") for i, kind in enumerate({"00": None, "10": "held", "01": "open", "11": "beat"}[v + r] for v, r in zip(wave["valid"], wave["ready"])) if kind]
    case("simulation/waves", wrong_html(page) or ("" if drawn == want else f"{drawn} instead of {want}"))
    others = [dict(wave, **more) for more in ({"valid": "01"}, {"valid": ""}, {"valid": "", "ready": ""}, {"valid": "1" * 1001, "ready": "0" * 1001}, {"ready": 5}, {"from": "now"}, {"from": None}, {"from": 1e15}, {"from": -1e15}, {"kernel": "nobody"})]
    other = run(path, "fold", "html", *options, "simulation", lines(report, *others, *trace, wave)).stdout
    case("simulation/waves that cannot be", "" if other == page else "they are drawn")
    empty = run(path, "fold", "html", *options, "simulation", lines(report)).stdout.decode()
    case("simulation/no trace", "" if "Simulated timeline" not in empty and "Predicted timeline" in empty else "an empty picture")
    once = run(save(b.model("mvu_0_y", 1), "once"), "fold", "html", *options).stdout.decode()
    case("simulation/one iteration", "" if ">Predicted timeline: iteration 0<" in once and ">Predicted timeline: iterations 0 and 1<" in page.decode() else re.findall("timeline: [^<]*", once))
    r = run(t.model("mlp-res"), "read", "json", "simulation", lines(report))
    case("simulation/not folded", "" if r.returncode == 2 else f"{r.returncode} {r.stderr.decode()[-200:]}")


def check_device():
    """How full a device is; a core with caches, a token at a time; what the model was folded for is said again."""
    b = cores.Body(tokens=4, channels=8)
    path = save(b.model(b.mvu(b.requant(b.x), 8), 2), "device")
    device = {"lut": 100000, "ff": 200000, "dsp": 500, "bram": 300}
    named = ",".join(f"{k}={v}" for k, v in device.items())
    d = json.loads(run(path, "fold", "json", "device", named).stdout)
    case("device/json", "" if {k: d["device"][k] for k in device} == device and d["device"]["name"] == "given" and d["device"]["most_percent"] == {"lut": 70, "ff": 50, "dsp": 80, "bram": 80} else str(d.get("device")))
    text = run(path, "fold", "text", "device", named).stdout.decode()
    share = lambda k: 100 * (d["area"][k] if k != "bram" else math.ceil(d["area"][k])) / device[k]
    line = next((l for l in text.splitlines() if "of the device, given" in l), "")
    got = re.findall(r"<?([\d.]+) %", line)
    case("device/text", "" if len(got) == 4 and all(abs(float(g) - share(k)) <= 0.11 for g, k in zip(got, device)) else f"{line!r}: {[share(k) for k in device]}")
    r = run(path, "fold", "json", "pe", "2", "simd", "2", "device", "xczu99")
    case("device/none of that name", "" if r.returncode == 2 and b"there is no device xczu99" in r.stderr else r.stderr.decode()[-200:] or "it says nothing")
    r = run(path, "fold", "json", "position", "3")
    case("device/a position without caches", "" if r.returncode == 2 and b"--position is of a core with caches" in r.stderr else r.stderr.decode()[-200:] or "it says nothing")
    decoder, options = os.path.join(t.tests, "models/context/llama-d18-eager-one.onnx"), ("context", "16", "slots", "2", "sequences", "2", "frames-in-flight", "2", "position", "9", "pe", "2", "simd", "2")
    wrong, r = shown(decoder, "fold", *options)
    case("device/a decoder", f"status {r.returncode}: {r.stderr.decode()[-300:]}" if not wrong else "; ".join(f"{fmt}: {w}" for fmt, w in wrong.items() if w))
    d, text = json.loads(run(decoder, "fold", "json", *options).stdout), run(decoder, "fold", "text", *options).stdout.decode()
    step, grouped = d["step"], lambda n: f"{n:,}".replace(",", " ")
    case("device/a token at a time", "" if (d["context"], d["slots"], step["position"], step["sequences"]) == (16, 2, 9, 2) and 0 < step["first"] <= step["cycles"]
         and "a token of each of 2 sequences: %s cycles at the first position, %s at number 9" % (grouped(step["first"]), grouped(step["cycles"])) in text else f"{step} {text[-1500:]}")


def against_manifest(name, path, *options):
    d, man = json.loads(run(path, "fold", "json", *options).stdout), json.loads(run(path, "fold", "manifest", *options).stdout)
    keys = ["name", "op", "value", "scope", "pe", "simd", "multipliers", "macs", "interval"]
    pick = lambda ks: [{k: x[k] for k in keys} for x in ks]
    case(f"{name}/kernels", "" if pick(d["kernels"]) == pick(man["kernels"]) else f"{pick(d['kernels'])} instead of {pick(man['kernels'])}")
    for key in ("multipliers", "interval_per_token", "predicted_cycles", "predicted_interval", "tokens", "channels", "frames_in_flight"):
        case(f"{name}/{key}", "" if d[key] == man[key] else f"{d[key]}, manifest {man[key]}")
    case(f"{name}/bytes", "" if d["parameter_bytes_per_iteration"] == man["iteration_bytes"] == sum(k["parameter_bytes"] for k in d["kernels"]) else str(d["parameter_bytes_per_iteration"]))
    case(f"{name}/busiest", "" if d["interval_per_token"] == max(k["interval"] for k in d["kernels"]) else "")
    for k in d["kernels"]:
        if not k["op"].startswith("MVU"): continue
        cycles = k["channels_in"] // k["simd"] * (k["channels_out"] // k["pe"])
        case(f"{name}/{k['name']}", "" if k["interval"] == cycles and k["multipliers"] == k["pe"] * k["simd"] else str(k))
    source = run(path, "fold", "html", *options).stdout.decode()
    page = Page(source)
    page.text = source
    ends = [a["data-end"] for t, a in page.tags if "data-end" in a]
    case(f"{name}/chart", "" if ends == [str(d["predicted_cycles"])] else f"the chart ends at {ends}, the prediction is {d['predicted_cycles']}")
    bars = sum(t == "rect" and "height" in a and a["height"] == "15" for t, a in page.tags)
    want = len(d["kernels"]) * d["loops"][0]["iterations"] * d["frames_in_flight"]
    case(f"{name}/bars", "" if bars == want else f"{bars} bars instead of {want}")
    sections = dict(zip((x.partition("</h2>")[0] for x in page.text.split("<h2>")[1:]), page.text.split("<h2>")[1:]))
    case(f"{name}/timeline", wrong_timeline(d, next(v for k, v in sections.items() if k.startswith("Predicted timeline"))))
    case(f"{name}/roofline", wrong_roofline(d, sections["Roofline"]) or wrong_memory(d, sections["Roofline"]))
    case(f"{name}/folding", wrong_folding(d, sections["Folding"]))
    text = run(path, "fold", "text", *options).stdout.decode()
    grouped = f"{d['predicted_cycles']:,}".replace(",", " ")
    case(f"{name}/text", "" if all(re.search(rf"^{k['name']} ", text, re.M) for k in d["kernels"]) and grouped in text else "a kernel or the prediction is missing")
    case(f"{name}/tables", wrong_tables(d, text))


# ---- models made here ------------------------------------------------------------------------------------------------------------------

def info(name, *dims, t=T.FLOAT): return helper.make_tensor_value_info(name, t, dims)


def model(nodes, inputs, outputs, init=(), name="g", **kw):
    return helper.make_model(helper.make_graph(nodes, name, inputs, outputs, list(init)), opset_imports=[helper.make_opsetid("", 18)], ir_version=10, **kw)


def scan(name, x, stack, y, extra=(), inner=(), steps="stack"):
    body = helper.make_graph([*inner, helper.make_node("Add", ["s", "p"], ["t"], name=name + "_add")], name + "_body", [info("s", 4), info("p", 4)], [info("t", 4), *extra])
    return helper.make_node("Scan", [x, stack], [y] + [name + "_" + e.name for e in extra], name=name, num_scan_inputs=1, body=body)


EVIL = "\"<script>alert(1)</script>&'\\ \u00dc\u2192\U0001f600 \x1b[31m\n\x7f{}|#end"


def odd_models():
    yield "empty", model([], [info("x", 2)], [info("x", 2)])
    yield "one-node", model([helper.make_node("Relu", ["x"], ["y"])], [info("x", "n", 4)], [info("y", "n", 4)])
    yield "no-inputs", model([helper.make_node("Identity", ["c"], ["y"])], [], [info("y", 1)], [helper.make_tensor("c", T.FLOAT, [1], [1.0])])
    rank = helper.make_tensor_value_info("x", T.FLOAT, None)
    yield "no-shape", model([helper.make_node("Mystery", ["x"], ["y"], domain="far.away")], [rank], [helper.make_tensor_value_info("y", T.FLOAT, None)])
    n = helper.make_node("Add", [EVIL, EVIL], [EVIL + "y"], name=EVIL)
    n.metadata_props.add(key="namespace", value=EVIL)
    n.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'a<b>', '" + EVIL.replace("\\", "").replace("'", "") + "']")
    yield "evil", model([n], [info(EVIL, EVIL, 2)], [info(EVIL + "y", EVIL, 2)], name=EVIL, producer_name=EVIL, producer_version=EVIL)
    then = helper.make_graph([helper.make_node("Neg", ["x"], ["a"])], "then", [], [info("a", 2)])
    other = helper.make_graph([helper.make_node("Abs", ["x"], ["b"])], "else", [], [info("b", 2)])
    yield "if", model([helper.make_node("If", ["c"], ["y"], name="branch", then_branch=then, else_branch=other)], [info("c", t=T.BOOL), info("x", 2)], [info("y", 2)])
    yield "scan", model([scan("l", "x", "w", "y", extra=[info("t", 4)][:0])], [info("x", 4)], [info("y", 4)], [helper.make_tensor("w", T.FLOAT, [3, 4], range(12))])
    yield "scan-live", model([scan("l", "x", "w", "y")], [info("x", 4), info("w", "steps", 4)], [info("y", 4)])
    inner = scan("inner", "s", "v", "u")
    body = helper.make_graph([inner, helper.make_node("Add", ["u", "q"], ["r"]), helper.make_node("Mul", ["r", "z"], ["r2"])], "outer_body", [info("s", 4), info("q", 4)], [info("r2", 4), info("u", 4)])
    inner.attribute[1 if inner.attribute[0].name != "body" else 0].g.input[0].name = "s_in"
    inner_body = next(a.g for a in inner.attribute if a.name == "body")
    inner_body.node[0].input[0] = "s_in"
    outer = helper.make_node("Scan", ["x", "w"], ["y", "taps"], name="outer", num_scan_inputs=1, body=body)
    yield "nested", model([helper.make_node("Relu", ["k"], ["z"]), outer], [info("x", 4), info("k", 4)], [info("y", 4), info("taps", 3, 4)],
                          [helper.make_tensor("w", T.FLOAT, [3, 4], range(12)), helper.make_tensor("v", T.FLOAT, [2, 4], range(8))])
    body = helper.make_graph([helper.make_node("Add", ["s", "p"], ["t"]), helper.make_node("ReduceSum", ["t"], ["u"], keepdims=0), helper.make_node("Neg", ["t"], ["v"])], "b", [info("s", 4), info("p", 4)],
                             [info("t", 4), info("u"), info("v", 4)])
    yield "taps", model([helper.make_node("Scan", ["x", "w"], ["y", "sums", "more"], name="l", num_scan_inputs=1, body=body)], [info("x", 4)], [info("y", 4), info("sums", 3), info("more", 3, 4)],
                        [helper.make_tensor("w", T.FLOAT, [3, 4], range(12))])
    yield "unknown", model([helper.make_node("Relu", ["x"], ["y"])], [info("x", None, 4)], [info("y", None, 4)])
    wide = [helper.make_node("Neg", ["x"], [f"n{i}"]) for i in range(60)] + [helper.make_node("Sum", [f"n{i}" for i in range(60)], ["y"])]
    yield "wide", model(wide, [info("x", 2)], [info("y", 2)])
    chain = [helper.make_node("Add", ["x" if i == 0 else f"n{i - 1}", "x"], [f"n{i}"]) for i in range(400)]
    yield "long", model(chain, [info("x", 2)], [info("n399", 2)])
    many = [helper.make_node("Neg", ["x" if i == 0 else f"n{i - 1}"], [f"n{i}"]) for i in range(4000)]
    mib = [helper.make_tensor("w", T.INT8, [3, 1 << 20], bytes(3 << 20), raw=True), helper.make_tensor("v", T.FLOAT, [4], range(4)), helper.make_tensor("s", T.FLOAT, [], [1.0])]
    yield "listed", model([helper.make_node("Add", ["x", "v"], ["y"]), helper.make_node("Cast", ["w"], ["z"], to=T.FLOAT)], [info("x", 4), info("w", 3, 1 << 20, t=T.INT8), info("v", 4)], [info("y", 4), info("v", 4), info("z", 3, 1 << 20), info("s")], mib, name="")
    for n in 17, 16, 201, 200, 1:
        rounds = scan("l", "x", "w", "y")
        rounds.metadata_props.add(key="mlo.instances", value=" ".join(f"net/layer.{i}" for i in range(n)))
        yield f"rounds-{n}", model([rounds], [info("x", 4)], [info("y", 4)], [helper.make_tensor("w", T.FLOAT, [n, 4], [0.5] * 4 * n)])
    nodes = [helper.make_node("Neg", ["x" if i == 0 else f"n{i - 1}"], [f"n{i}"]) for i in range(60)]
    for i, n in enumerate(nodes): n.metadata_props.add(key="mlo.scope", value=f"top.{i % 25}/a/b.{i}")
    yield "scopes", model(nodes, [info("x", 2)], [info("n59", 2)])
    yield "large", model(many, [info("x", 2)], [info("n3999", 2)])


def check_odd():
    for name, m in odd_models():
        path = save(m, name)
        all_formats(f"odd/{name}", path)
    d = json.loads(run(t.at("evil.onnx"), "read", "json").stdout)
    case("odd/evil/names", "" if d["inputs"][0]["name"] == EVIL and d["inputs"][0]["shape"] == [EVIL, 2] and d["graph"] == EVIL else str(d["inputs"]))
    page = run(t.at("evil.onnx"), "read", "html").stdout.decode()
    case("odd/evil/page", "" if "<script" not in t.scriptless(page) and "\x1b" not in page and "alert(1)" in "".join(Page(page).shown) else "the page runs a name, or lost it")
    text, page = (run(t.at("taps.onnx"), "read", fmt).stdout.decode() for fmt in ("text", "html"))
    columns = [re.match(r"\| \w* +", l).end() for l in text.splitlines() if re.match(r"\| (carried|taps)? +[suv] ", l)]
    case("odd/taps/text", "" if len(columns) == 3 and len(set(columns)) == 1 else text or "it says nothing")
    forms = re.findall(r"^\| (?:taps)? +([uv]) +(float \[[\d,]*\])", text, re.M)
    case("odd/taps/forms", "" if forms == [("u", "float [3]"), ("v", "float [3,4]")] else text)
    for fmt in "text", "html":
        said = run(t.at("wide.onnx"), "read", fmt).stdout.decode()
        case(f"odd/wide/{fmt} counts operators", "" if re.search(r"\b60 Neg\b", said) and not re.search(r"\d Sum\b", said) else said[:900])
    for n, want in (60, ["top.%d" % i for i in range(25)]), (24, ["b.%d" % i for i in range(24)]):          # scopes as deep as 24 groups have room for them
        m = onnx.load(t.at("scopes.onnx"))
        del m.graph.node[n:]
        m.graph.output[0].name = f"n{n - 1}"
        said = run(save(m, "grouped"), "read", "text").stdout.decode()
        case(f"odd/scopes/{n}", "" if re.findall(r"^ +(\S+) +\d+ +(?:\d )?Neg", said, re.M) == want else said[-900:])
    case("odd/taps/page", "" if re.findall(r"<td>tap</td><td>(\w+)</td><td>(float \[[\d,]+\])", page) == [("sums", "float [3]"), ("more", "float [3,4]")] else page[-900:])
    for producer, version, want in (("", "", "model          g"), ("p", "", "model          g, made by p "), ("p", "2.0", "model          g, made by p 2.0"), ("", "2.0", "model          g"), ("a" * 12 + "b" * 9 + "c" * 12, "", "model          g, made by " + "a" * 11 + ".." + "c" * 11)):
        m = onnx.load(t.at("one-node.onnx"))
        m.producer_name, m.producer_version = producer, version
        got = run(save(m, "made"), "read", "text").stdout.decode().splitlines()[0]
        case(f"odd/made by '{producer}' '{version}'", "" if got == want.rstrip() else got or "it says nothing")
    case("odd/unknown", "" if run(t.at("unknown.onnx"), "read", "text").stdout.count(b"float [?,4]") == 2 else "no [?,4]")
    d = json.loads(run(t.at("nested.onnx"), "read", "json").stdout)
    got = [(l["name"], l["iterations"], l["depth"], l["body_nodes"], l["carried"], l["per_iteration"], l["taps"], l["invariant"]) for l in d["loops"]]
    case("odd/nested/loops", "" if got == [("outer", 3, 0, 3, 1, 1, 1, 2), ("inner", 2, 1, 1, 1, 1, 0, 0)] else str(got))
    dot, said, inside = run(t.at("nested.onnx"), "read", "dot").stdout.decode(), {}, []
    for line in dot.splitlines():                                                 # which box lies in which
        loop, box = re.search(r'label="(\w+): \d+ iterations', line), re.match(r'(g\d+v\d+) \[label="([^"\\]*(?:\\n\w+)?)', line)
        if loop: inside.append(loop[1])
        if box: said[box[1]] = "/".join(inside) + "/" + box[2].replace("\\n", " ")
        if line == "}": inside = inside[:-1]
    arrows = sorted((said[a], said[b], bool(again)) for a, b, again in re.findall(r"^(g\d+v\d+) -> (g\d+v\d+) \[(style=dashed)?", dot, re.M))
    of, to = "outer/", "outer/inner/"
    want = sorted([("/x input", of + "s carried", False), ("/k input", "/Relu z", False), ("/Relu z", of + "z the", False), (of + "r2 carried", "/y output", False), (of + "u tap", "/taps output", False),
                   (of + "s carried", to + "s carried", False), (to + "t carried", of + "Add r", False), (of + "Add r", of + "Mul r2", False), (of + "z the", of + "Mul r2", False), (of + "Mul r2", of + "r2 carried", False),
                   (to + "t carried", of + "u tap", False), (of + "r2 carried", of + "s carried", True), (to + "s carried", to + "Add inner_add", False), (to + "Add inner_add", to + "t carried", False), (to + "t carried", to + "s carried", True)])
    case("odd/nested/graph", "" if arrows == want else str([a for a in arrows if a not in want] or [w for w in want if w not in arrows]))
    d = json.loads(run(t.at("listed.onnx"), "read", "json").stdout)
    case("odd/listed/json", "" if ([x["name"] for x in d["inputs"]], [x["name"] for x in d["outputs"]]) == (["x"], ["y", "v", "z", "s"]) else f"{d['inputs']} {d['outputs']}")
    text, page = (run(t.at("listed.onnx"), "read", fmt).stdout.decode() for fmt in ("text", "html"))
    case("odd/listed/text", "" if re.search(r"^inputs? +x +float \[4\]\noutputs? +y +float \[4\]\n +v +float \[4\]\n +z +.*\n +s +float \[\]\n", text, re.M) and "(unnamed)" in text and "3.0 MiB" in text else text or "it says nothing")
    case("odd/listed/page", "" if re.findall(r"<td>(input|output)</td><td>(\w+)</td>", page) == [("input", "x"), *(("output", n) for n in "yvzs")] else re.findall(r"<td>(input|output)</td>.*", page)[:1])
    for n in 17, 16, 201, 200, 1:
        text, page = (run(t.at(f"rounds-{n}.onnx"), "read", fmt).stdout.decode() for fmt in ("text", "html"))
        shown = lambda said: (len(re.findall(r"\blayer\.\d+", said)), [int(k) for k in re.findall(r"and (\d+) more", said)])
        case(f"odd/{n} rounds/text", "" if shown(text) == (min(n, 16), [n - 16][:n > 16]) else f"{shown(text)}")
        chips = page.partition("<h3>Instances</h3>")[2].partition("</div>")[0]
        case(f"odd/{n} rounds/page", "" if shown(chips) == (min(n, 200), [n - 200][:n > 200]) else f"{shown(chips)}")
    d = json.loads(run(t.at("scan-live.onnx"), "read", "json").stdout)
    case("odd/scan-live/iterations", "" if d["loops"][0]["iterations"] is None else str(d["loops"]))
    for n in 0, 7:
        m = onnx.load(t.at("scan-live.onnx"))
        m.graph.node[0].metadata_props.add(key="mlo.iterations", value=str(n))
        d = json.loads(run(save(m, "said"), "read", "json").stdout)
        case(f"odd/scan-live/{n} iterations are said", "" if d["loops"][0]["iterations"] == n else str(d["loops"]))


def check_refusals():
    path = t.model("mlp-res")
    for name, fmt, env, code in (("format", "pdf", {}, "MLO_E_USAGE"), ("cancel", "text", {"MLO_TEST_CANCEL": "1"}, "MLO_E_IO")):
        r = run(path, "read", fmt, **env)
        case(f"refuse/{name}", "" if r.returncode == 2 and code.encode() in r.stderr and not r.stdout else f"{r.returncode} {r.stderr.decode()[-200:]}")
    for k in (-1, 3, 1 << 40):
        m = dict(odd_models())["scan"]
        next(a for a in m.graph.node[0].attribute if a.name == "num_scan_inputs").i = k
        r = run(save(m, "badscan"), "-", "json")
        case(f"refuse/num_scan_inputs={k}", "" if r.returncode == 3 and b"MLO_E_" in r.stderr else f"{r.returncode} {r.stderr.decode()[-200:]}")
    r = run(t.at("no-such.onnx"), "-", "json")
    case("refuse/no-file", "" if r.returncode == 2 and not r.stdout else str(r.returncode))
    for name, stage in (("mlp-res", "fold"), ("mlp-res", "extract")):
        r = run(quantized(t.model(name)) if stage == "fold" else t.model(name), stage, "starve")
        case(f"refuse/memory/{stage}", "" if r.returncode == 0 and int(r.stdout or 0) > 50 else (r.stdout + r.stderr).decode()[-400:])


def check_locale():
    env = t.locale("locale")
    if not env: return
    path = quantized(t.model("bert-tiny"))
    for fmt in FORMATS:
        a, b = run(path, "fold", fmt), run(path, "fold", fmt, MLO_TEST_LOCALE="de_DE.UTF-8", LOCPATH=env["LOCPATH"])
        case(f"locale/{fmt}", "" if a.stdout == b.stdout else "differs")
    two_builds()
    points = t.write("points.jsonl", "".join(json.dumps({"cycles": 12.5 * k, "multipliers": 8.5 / k, "cosine": 0.9 + k / 99}) + "\n" for k in (1, 2, 3)))
    for what, shown in ("two builds", (t.at("two/eight"), t.at("two/four"))), ("a sweep", (points,)):
        for fmt in (), ("--html",):
            a, b = t.good("show", *shown, *fmt), t.good("show", *shown, *fmt, env=env)
            case("locale/%s%s" % (what, "".join(fmt)), "" if a == b and b"." in a else "differs")


def check_command():
    path = t.model("mlp-res")
    p = t.call("show", "--json", path)
    case("command/json", "" if p.stdout == run(path, "extract", "json").stdout else f"{p.returncode} {p.stderr.decode()[-200:]}")
    nowhere = ["hierarchy", '[["no.such"]]'], ["title", "named"]           # options of the library, of which the first makes that nothing rolls
    first, second = (run(path, "-", "json", *sum(order, [])) for order in (nowhere, nowhere[::-1]))
    case("command/a model that does not roll as asked, asked first or last", "" if first.stdout == second.stdout and b'"stage":"read"' in first.stdout and not second.returncode else f"{second.returncode} {second.stderr.decode()[-200:]}")
    page = t.good("show", "--html", path).decode()
    after = page.partition(">Rolled</h1>")[2]
    case("command/before and after", "" if "which instance of a loop" in page and "6 iterations of 7 nodes" in after else "no picture of both")
    rolled = t.good("roll", path)
    for fmt in FORMATS:
        p = t.call("show", "--" + fmt, input=rolled)
        case(f"command/{fmt}", WRONG[fmt](p.stdout) if p.returncode == 0 else p.stderr.decode()[-200:])


# ---- two cores --------------------------------------------------------------------------------------------------------------------------

def two_builds():
    """bert-1 in 8 and in 4 bits, and what compile said of each."""
    said = {}
    for name, flags in ("eight", ("--pe", 2, "--simd", 2)), ("four", ("--pe", 4, "--simd", 4, "--weights", 4, "--axi-width", 64)):
        said[name] = json.loads(t.good("compile", t.model("bert-1"), *flags, "-o", t.at("two/" + name)))
    return said


def check_two():
    """What two builds have side by side is what each of them says alone; what is alike is told so; two that are no cores are refused."""
    said, names = two_builds(), ("eight", "four")
    paths = [t.at("two/" + n) for n in names]
    got = json.loads(t.good("show", *paths, "--json"))
    alone = [json.loads(t.good("show", path, "--json")) for path in paths]
    numbers = {(n["key"], n.get("output")): n["values"] for n in got["numbers"]}
    case("two/titles", "" if got["titles"] == list(names) else str(got["titles"]))
    manifests = [json.loads(t.read(path + "/manifest.json")) for path in paths]
    for key, value in (("interval", lambda i: manifests[i]["predicted_interval"]), ("multipliers", lambda i: manifests[i]["multipliers"]), ("axi_bits", lambda i: manifests[i]["axi_bits"]),
                       ("iteration_bytes", lambda i: manifests[i]["iteration_bytes"]), ("lut", lambda i: alone[i]["area"]["lut"]), ("ff", lambda i: alone[i]["area"]["ff"]),
                       ("dsp", lambda i: alone[i]["area"]["dsp"]), ("bram", lambda i: alone[i]["area"]["bram"])):
        want = [value(i) for i in (0, 1)]
        case(f"two/{key}", "" if numbers.get((key, None)) == want else f"{numbers.get((key, None))}, not {want}")
    case("two/what is the same is no setting", "" if ("tokens", None) not in numbers and ("simulated", None) not in numbers else str(numbers))
    for error in said["eight"]["error"]:
        want = [next(e for e in said[n]["error"] if e["output"] == error["output"]) for n in names]
        for key in "cosine", "relative":
            shown = numbers.get((key, error["output"]), [0, 0])
            case(f"two/{key} of {error['output']}", "" if all(math.isclose(a, w[key], rel_tol=1e-5) for a, w in zip(shown, want)) else f"{shown}, not {want}")
    sides = {k["name"]: k["sides"] for k in got["kernels"]}
    for k, m in enumerate(manifests): case(f"two/kernels of {names[k]}", "" if {n: s[k]["pe"] for n, s in sides.items() if s[k]} == {x["name"]: x["pe"] for x in m["kernels"]} else str(sides)[:300])
    text = t.good("show", *paths).decode()
    lines = {re.split(r"  +", l)[0]: re.split(r"  +", l)[1:] for l in text.splitlines() if "  " in l}
    wide = {a: f"{manifests[i]['multipliers']:,}".replace(",", " ") for i, a in enumerate(names)}
    case("two/text", "" if lines["multipliers"][:2] == [wide["eight"], wide["four"]] and re.match(r"[-+x]", lines["multipliers"][2]) else text[:600])
    page = t.good("show", *paths, "--html").decode()
    case("two/page", WRONG["html"](page.encode()) or ("" if "<title>mlo: eight and four</title>" in page and page.count("<tbody class=quiet>") == sum(k["alike"] for k in got["kernels"]) else page[:300]))
    same = t.good("show", paths[0], paths[0]).decode()
    case("two/the same twice", "" if f"{len(manifests[0]['kernels'])} kernels are alike" in same and not re.search(r"[+-]\d[\d.]* %|x \d\.\d\d$", same, re.M) else same[:600])
    foreign = t.at("two/foreign")
    shutil.copytree(paths[1], foreign)
    shutil.copy(paths[0] + "/accuracy.json", foreign)
    keys = {n["key"] for n in json.loads(t.good("show", foreign, foreign, "--json"))["numbers"]}
    case("two/accuracy of another build", "" if "interval" in keys and "cosine" not in keys else str(keys))
    for what, args, word in (("a model of floats", (paths[0], t.model("bert-1")), "cores are compared"), ("first one is none", (t.model("bert-1"), paths[0]), "cores are compared"), ("nothing there", (paths[0], t.at("nix")), "nix"),
                             ("a picture of two", (*paths, "--svg"), "not as 'svg'"), ("three", (*paths, paths[0]), "two at most"), ("stdin as second", (paths[0], "-"), "has to be a file")):
        p = t.call("show", *args)
        err = p.stderr.decode()
        case(f"two/{what}", "" if p.returncode in (1, 2) and word in err and len(err.splitlines()) == 1 else f"{p.returncode} {err[-300:]}")


def check_titles():
    """A page is called by its file or directory; that of a build is at its last stage."""
    path = t.at("two/eight")
    if not os.path.exists(path): two_builds()
    page = t.good("show", "--html", path).decode()
    case("title/a build", "" if "<title>mlo: eight</title>" in page and "<li class=now>emit</li>" in page else page[:400])
    page = t.good("show", "--html", t.model("bert-1")).decode()
    case("title/a model", "" if "<title>mlo: bert-1</title>" in page and "<li class=now>read</li>" not in page.split("<li class=now>extract</li>")[-1] else page[:400])
    page = t.good("show", "--html", input=t.read(t.model("bert-1"))).decode()
    case("title/stdin", "" if re.search(r"<title>mlo: [^<]+</title>", page) else page[:400])


# ---- every model ------------------------------------------------------------------------------------------------------------------------

def check_models():
    """Each stage of a third of the models a day, and of the others the rolled, the quantized and the folded one; skips.txt lists those that do not become hardware."""
    t.beside("stories260k", "models")
    whole = t.drawn(t.models(), 6)                       # fold in one go, from the source: as from what quantize left
    every = t.drawn(t.models(), 3)
    for name, path in t.models().items():
        options = ["dim", "seq=32"] if "dynamic" in name else []
        for stage in STAGES if name in every else ("roll", "quantize", "fold"):
            later = STAGES.index(stage) > STAGES.index("quantize")
            wrong, r = shown(quantized(path, *options) if later else path, stage, *([] if later else options))
            why = r.stderr.decode().strip()
            if r.returncode == 4 and stage in STAGES[4:]: t.skip(f"{name}/{stage}", why.split(": ", 2)[-1][:90]); break
            case(f"{name}/{stage}", f"status {r.returncode}: {why[-300:]}" if not wrong else "; ".join(f"{fmt}: {w}" for fmt, w in wrong.items() if w))
        if "dynamic" not in name: against_model(f"{name}/model", path, "roll")
        if name in whole and r.returncode == 0: case(f"{name}/in one go", "" if run(path, "fold", "all", *options).stdout == r.stdout else "fold shows something else than from what quantize left")


def check_sizes():
    """What an iteration gets of its own: a slice of every initializer that a Scan goes through."""
    for name in ("bert-tiny", "mlp-res", "whisper-tiny"):
        m = onnx.ModelProto()
        m.ParseFromString(run(t.model(name), "roll", "onnx").stdout)
        bytes_of, want = {i.name: onnx.numpy_helper.to_array(i).nbytes for i in m.graph.initializer}, []
        for v in onnx.shape_inference.infer_shapes(m).graph.value_info:
            tt = v.type.tensor_type
            bytes_of[v.name] = math.prod(x.dim_value for x in tt.shape.dim) * helper.tensor_dtype_to_np_dtype(tt.elem_type).itemsize
        for n, loop in zip((n for n in m.graph.node if n.op_type == "Scan"), facts(m)):
            own = [bytes_of[i] // loop["iterations"] for i in n.input[loop["carried"]:]]
            want.append((str(len(own)), size(sum(own))))
        got = re.findall(r"per iteration +(\d+) values?, ([\d.]+ \w+)", run(t.model(name), "roll", "text").stdout.decode())
        case(f"{name}/sizes", "" if got == want else f"{got} instead of {want}")


def check_chip():
    """An attention keeps two frames of keys and values, in groups of PE tokens: what a PE that does not divide the tokens adds to the bits."""
    path, bits = quantized(t.model("bert-tiny")), {}
    for pe in (4, 3, 5, 7):
        t.write("pe.json", json.dumps({"attention_0": {"PE": pe, "SIMD": 2}}))
        t.good("fold", path, "--folding", t.at("pe.json"), "--onnx", "-o", t.at("pe.onnx"))
        d = json.loads(run(t.at("pe.onnx"), "-", "json").stdout)
        bits[pe] = d["on_chip_bits"] - sum(f["bits"] for f in d["fifo"])
    tokens, channels = d["tokens"], 2 * d["channels"]                         # of keys, of values: bytes
    want = {pe: 2 * (-(-tokens // pe) * pe - tokens) * 8 * channels for pe in (3, 5, 7)}
    got = {pe: bits[pe] - bits[4] for pe in want}
    case("chip/keys and values", "" if got == want else f"{got} instead of {want}")


def check_picture():
    """A picture has a box for each of DOT's vertices, an arrow for each of its edges; boxes are apart, arrows lead down, what a box makes is said below it on the right of its line."""
    far = model([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["b"], name="two words"), helper.make_node("Add", ["b", "far"], ["y"])], [info("x", 2), info("far", 2)], [info("y", 2)])
    for name, path in (("mlp-res", t.model("mlp-res")), ("bert-1", t.model("bert-1")), ("far", save(far, "far"))):
        dot, top = t.good("show", "--dot", path).decode(), ElementTree.fromstring(t.good("show", "--svg", path))
        tag = lambda x: x.tag.rpartition("}")[2]
        boxes = [[int(r.get(k)) for k in ("x", "y", "width", "height")] for g in top.iter() if tag(g) == "g" and g.get("class", "").startswith("v ") for r in g if tag(r) == "rect" and "rx" in r.attrib]
        lines = [[[int(v) for v in xy] for xy in re.findall(r"(-?\d+),(-?\d+)", x.get("d"))] for x in top.iter() if tag(x) == "path" and x.get("d").startswith("M") and x.get("d") != "M0,0L8,4L0,8z"]
        heads, said = sum(tag(x) == "path" and "marker-end" in x.attrib for x in top.iter()), [(int(x.get("x")), int(x.get("y"))) for x in top.iter() if x.get("class") == "shape"]
        why = [] if len(boxes) == len(re.findall(r"^ *g\d+v\d+ \[", dot, re.M)) > 2 else ["%d boxes" % len(boxes)]
        if heads != len(re.findall(r" -> ", dot)): why.append("%d arrows, %d in DOT" % (heads, dot.count(" -> ")))
        if any(a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3] for a, b in itertools.combinations(boxes, 2)): why.append("boxes overlap")
        if any(b[1] <= a[1] for line in lines for a, b in zip(line, line[1:]) if len(line) > 1 and b[1] != a[1]): why.append("a line leads up")
        own = [[x - left - width // 2 for left, y, width, height in boxes if y + height + 14 == below and left <= x <= left + width + 60] for x, below in said]
        if not said or any(not any(d >= 5 for d in some) for some in own) or any(all(d < 5 for d in some) for some in own): why.append("shapes at %s of their lines" % own)
        case(f"{name}/picture", "; ".join(why))
    case("far/a name of two words", "" if "two words" in dot else dot)
    check_layout()


def drawn(m, name):
    """(boxes: title -> left, top, width, height; arrows: points of each path with a head; bends: points of those without) of a model's picture."""
    top = ElementTree.fromstring(t.good("show", "--svg", save(m, name)))
    tag = lambda x: x.tag.rpartition("}")[2]
    boxes, arrows, bends = {}, [], []
    for g in top.iter():
        if tag(g) == "g" and g.get("class", "").startswith("v "):
            title = next(x.text for x in g if tag(x) == "title")
            boxes[title] = next([int(r.get(k)) for k in ("x", "y", "width", "height")] for r in g if tag(r) == "rect" and "rx" in r.attrib)
        if tag(g) == "path" and g.get("d").startswith("M") and g.get("d") != "M0,0L8,4L0,8z":
            points, last = [], None
            for kind, numbers in re.findall(r"([MCV])([-\d, ]+)", g.get("d")):
                flat = [int(v) for v in re.findall(r"-?\d+", numbers)]
                last = (last[0], flat[0]) if kind == "V" else tuple(flat[-2:])
                points.append(last)
            (arrows if "marker-end" in g.attrib else bends).append(points)
    return boxes, arrows, bends


def check_layout():
    """What a picture in layers is: what comes in stands just above its first reader; a value that flows past ranks has one chain of bends for all its readers;
    no lines cross where none have to; a chain is one straight line; arrows end side by side, about the middle of a box."""
    node, middle = lambda op, ins, out: helper.make_node(op, ins, [out], name=out + "_"), lambda box: box[0] + box[2] // 2
    below = lambda boxes: {y: r for r, y in enumerate(sorted({b[1] for b in boxes.values()}))}                # y -> rank
    late = model([node("Relu", ["x"], "a"), node("Neg", ["a"], "b"), node("Add", ["b", "late"], "c"), node("Neg", ["c"], "d"), node("Add", ["d", "a"], "e"), node("Add", ["e", "a"], "f"), node("Sub", ["last", "f"], "y")],
                 [info("x", 2), info("last", 2), info("late", 2)], [info("y", 2)])
    boxes, arrows, bends = drawn(late, "late")
    rank = {name: below(boxes)[b[1]] for name, b in boxes.items()}
    case("layout/what comes in is just above its first reader", "" if all(rank[of] == rank[r + "_"] - 1 for of, r in (("x", "a"), ("late", "c"), ("last", "y"))) else str(rank))
    chains = sum(max(rank[r + "_"] for r in readers) - rank[of] - 1 for of, readers in (("a_", "bef"), ("c_", "d")))
    case("layout/one chain of bends for all readers", "" if len(bends) == chains else "%d bends, %d ranks are passed" % (len(bends), chains))
    into = {name: [p[-1][0] - middle(b) for p in arrows if p[-1][1] == b[1] and b[0] <= p[-1][0] <= b[0] + b[2]] for name, b in boxes.items()}
    case("layout/arrows end side by side, about the middle of a box", "; ".join("%s: %s" % (name, xs) for name, xs in into.items()
                                                                               if len(set(xs)) < len(xs) or abs(sum(xs)) > len(xs) or len(xs) != {"x": 0, "late": 0, "last": 0, "c_": 2, "e_": 2, "f_": 2, "y_": 2}.get(name, 1)))
    twist = model([node("Relu", ["r"], "a"), node("Abs", ["q"], "b"), node("Neg", ["b"], "c"), node("Exp", ["a"], "d"), node("Erf", ["c"], "e"), node("Sin", ["d"], "f")],
                  [info("q", 2), info("r", 2)], [info("e", 2), info("f", 2)])
    boxes, arrows, bends = drawn(twist, "twist")
    ends = [(p[0], p[-1]) for p in arrows + bends]
    case("layout/no lines cross where none have to", "; ".join("%s and %s" % (p, q) for p, q in itertools.combinations(ends, 2) if p[0][1] == q[0][1] and (p[0][0] - q[0][0]) * (p[1][0] - q[1][0]) < 0))
    three = model([node("Relu", ["x"], "a"), node("Abs", ["x"], "b"), node("Exp", ["x"], "c"), *[node("Neg", [i], o) for i, o in ("ad", "cf", "dg", "fi", "gj", "il")]], [info("x", 2)], [info(o, 2) for o in "bjl"])
    boxes, arrows, bends = drawn(three, "three")
    case("layout/a chain is one straight line", "; ".join("%s at %s" % (chain, xs) for chain in ("adgj", "cfil") for xs in [[middle(boxes[o + "_"]) for o in chain]] if max(xs) - min(xs) > 1))


def check_manifests():
    for name in ("bert-tiny", "bert-tiny-mask", "vit-tiny", "mlp-res"):
        against_manifest(f"{name}/1x1", quantized(t.model(name)))
        against_manifest(f"{name}/4x4", quantized(t.model(name)), "pe", "4", "simd", "4", "frames-in-flight", "2")
    t.good("fold", quantized(t.model("mlp-res")), "--bandwidth", "16.04", "--onnx", "-o", t.at("bus.onnx"))
    page = t.good("show", t.at("bus.onnx"), "--html").decode()
    case("mlp-res/a bus of 128 bits brings 16 bytes a cycle, no more", "" if ">16 bytes/cycle<" in page else str(re.findall(r">([^<]*bytes/cycle)<", page)))
    d = json.loads(run(t.model("bert-tiny-dynamic"), "read", "json").stdout)
    case("dynamic/symbol", "" if "seq" in d["inputs"][0]["shape"] else str(d["inputs"]))


driver = build()
t.main(check_models, check_sizes, check_chip, check_picture, check_manifests, check_odd, check_refusals, check_locale, check_best, check_progress, check_simulation, check_device,
       check_command, check_two, check_titles, floor=860)
