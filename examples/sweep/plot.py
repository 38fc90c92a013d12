#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Scatter plots of a sweep, one page: python3 plot.py points.jsonl > sweep.html

Each plot has cycles to the right, and what a core costs (or how near its integers are) upwards, both logarithmic. The line joins the points that no other
point beats in both: the Pareto front. Colours are bits of weights, shapes where parameters lie."""
import html, json, math, sys

PLOTS = (("multipliers", "multipliers"), ("lut", "LUTs"), ("dsp", "DSP blocks"), ("bram", "block RAMs (36 Kbit)"), ("relative", "largest error over largest value"))
COLOURS = {8: "#2f7ed8", 7: "#2aa6a6", 6: "#3a9f5b", 5: "#d4a017", 4: "#e0742b", 3: "#d0457c", 2: "#8d5fd3"}
STYLE = """:root{--ink:#1c2733;--soft:#5c6b7a;--line:#d9e0e7;--page:#f4f6f8;--card:#fff;color-scheme:light dark}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa8b5;--line:#30393f;--page:#11161b;--card:#1a2127}}
body{margin:0;padding:22px;background:var(--page);color:var(--ink);font:14px/1.45 system-ui,'DejaVu Sans',sans-serif}h1{font-size:22px}h2{font-size:15px;margin:0}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(420px,100%),1fr));gap:16px}figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px}
text{font:11px system-ui,'DejaVu Sans',sans-serif;fill:var(--soft)}line{stroke:var(--line)}.front{fill:none;stroke:var(--ink);stroke-width:1.4}table{border-collapse:collapse}td,th{padding:2px 12px 2px 0;text-align:right}
@media print{body{padding:0}.plots{grid-template-columns:1fr 1fr}figure{break-inside:avoid}}"""


def front(points, y):
    """Those that no other one beats: fewer cycles, and less of y."""
    best, kept = math.inf, []
    for p in sorted(points, key=lambda p: (p["cycles"], p[y])):
        if p[y] < best: kept.append(p); best = p[y]
    return kept


def scale(values, low, high):
    a, b = math.log(min(values)), math.log(max(values))
    return lambda v: (low + high) / 2 if a == b else low + (math.log(v) - a) / (b - a) * (high - low)


def ticks(values):
    """1, 2 and 5 times powers of ten, and the ends where these are too few."""
    low, high = min(values), max(values)
    some = [m * 10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for m in (1, 2, 5) if low <= m * 10.0 ** e <= high]
    return some if len(some) > 1 else [low, high]


def shape(p, x, y):
    colour, title = COLOURS.get(p["weights"], "#777"), "<title>%s</title>" % html.escape(json.dumps(p))
    if p["memory"] == "block": return "<rect x='%.1f' y='%.1f' width='9' height='9' fill='%s'>%s</rect>" % (x - 4.5, y - 4.5, colour, title)
    return "<circle cx='%.1f' cy='%.1f' r='5' fill='%s'>%s</circle>" % (x, y, colour, title)


def plot(points, y, name):
    points = [p for p in points if p.get(y) and p[y] > 0]
    if not points: return ""
    xs, ys = [p["cycles"] for p in points], [p[y] for p in points]
    at_x, at_y = scale(xs, 60, 430), scale(ys, 260, 20)
    axes = "".join("<line x1='%.1f' x2='%.1f' y1='16' y2='268'/><text x='%.1f' y='284' text-anchor='middle'>%s</text>" % (at_x(v), at_x(v), at_x(v), format(v, ",.0f")) for v in ticks(xs))
    axes += "".join("<line x1='54' x2='436' y1='%.1f' y2='%.1f'/><text x='48' y='%.1f' text-anchor='end'>%s</text>" % (at_y(v), at_y(v), at_y(v) + 4, format(v, ",.0f") if v >= 10 else format(v, ".3g")) for v in ticks(ys))
    line = "<path class='front' d='M%s'/>" % "L".join("%.1f %.1f" % (at_x(p["cycles"]), at_y(p[y])) for p in front(points, y))
    return "<figure><h2>%s</h2><svg viewBox='0 0 450 305' width='100%%' role='img'>%s%s%s<text x='245' y='302' text-anchor='middle'>cycles a frame</text></svg></figure>" % (name, axes, line, "".join(shape(p, at_x(p["cycles"]), at_y(p[y])) for p in points))


def main():
    with open(sys.argv[1]) as f: every = [json.loads(l) for l in f if l.strip()]
    points, refused = [p for p in every if "refused" not in p], [p for p in every if "refused" in p]
    key = " ".join("<b style='color:%s'>%d bits</b>" % (COLOURS.get(w, "#777"), w) for w in sorted({p["weights"] for p in points}, reverse=True))
    print("<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width,initial-scale=1'><title>mlo: a sweep</title><style>%s</style><h1>%d points</h1>" % (STYLE, len(points)))
    print("<p>Weights of %s; squares: parameters in row blocks. The line: no other point has both fewer cycles and less of the rest. A point says what it is.</p><div class=plots>" % key)
    for y, name in PLOTS: print(plot(points, y, name))
    print("</div>")
    if refused:
        print("<h2>Refused</h2><table>%s</table>" % "".join("<tr><td>%d bits<td>%s cycles<td>%s<td style='text-align:left'>%s" % (p["weights"], format(p["target"], ","), p["memory"], html.escape(p["refused"])) for p in refused))


main()
