#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/sweep: every point is what mlo says, a sweep that was killed goes on where it was; `mlo show` draws each point and the fronts.

    python tests/test_sweep.py path/to/mlo [CHECK ...]"""
import html, json, os, re, shutil, signal, subprocess, sys, time
import numpy as np
import harness as t

SWEEP = os.path.join(t.root, "examples/sweep/sweep.sh")
GRID = dict(WEIGHTS="8 4", TARGETS="300 9000 20000", MEMORY="layer")


def sweep(out, path=None, wait=True):
    p = subprocess.Popen(["sh", SWEEP, t.model("bert-1"), t.at(out), "1"], env=dict(os.environ, MLO=t.mlo, PATH=path or os.environ["PATH"], **GRID), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    return (p.communicate(timeout=300)[1] if p.wait(300) or True else "", p.returncode) if wait else p


def lines(out):
    path = os.path.join(t.at(out), "points.jsonl")
    return [json.loads(l) for l in t.read(path).decode().splitlines()] if os.path.exists(path) else []


def without_parallel():
    """A PATH on which GNU parallel is not: links to what the script calls."""
    folder = t.at("tools")
    os.makedirs(folder, exist_ok=True)
    for tool in "sh jq mktemp mkdir mv rm cat xargs".split():
        if not os.path.lexists(os.path.join(folder, tool)): os.symlink(shutil.which(tool), os.path.join(folder, tool))
    return folder


def check_snakemake():
    """The same points by Snakemake, which is installed for that, in a folder of its own; again: nothing is made anew."""
    if not t.drawn(("points by Snakemake", "", "", "", "", ""), 6)[0]: return
    folder = t.at("snakemake")
    p = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--target", folder, "snakemake==9.27.1"], capture_output=True, text=True)
    if p.returncode: return t.absent("points by Snakemake", "pip install snakemake: " + p.stderr.strip()[-200:])
    command = [sys.executable, "-m", "snakemake", "-s", os.path.join(os.path.dirname(SWEEP), "Snakefile"), "-j", "2", "--config", "model=" + t.model("bert-1"), "out=" + t.at("snaked"),
               *("%s=%s" % (name.lower(), values) for name, values in GRID.items())]
    env = dict(os.environ, MLO=t.mlo, PYTHONPATH=folder)
    p = subprocess.run(command, cwd=t.tmp, env=env, capture_output=True, text=True, timeout=300)
    said, status = sweep("beside")
    t.case("points, by Snakemake", "" if not p.returncode and not status and len(lines("snaked")) == 6 and lines("snaked") == lines("beside") else "%s %s" % (p.stderr[-300:], said[-300:]))
    p = subprocess.run(command, cwd=t.tmp, env=env, capture_output=True, text=True, timeout=300)
    t.case("points, by Snakemake again", "" if not p.returncode and "Nothing to be done" in p.stderr + p.stdout else p.stderr[-300:])


def check_sweep():
    if not t.have("a sweep", "jq", "xargs"): return
    said, status = sweep("plain", without_parallel())
    points = lines("plain")
    t.case("points, by xargs", "" if not status and len(points) == 6 else "%s %s" % (status, said[-300:]))
    t.case("in the order of the grid", "" if [(p["weights"], p["target"]) for p in points] == [(w, c) for w in (8, 4) for c in (300, 9000, 20000)] else str(points)[:300])
    for p in points:
        name = "%d bits, %d cycles" % (p["weights"], p["target"])
        r = t.call("compile", t.model("bert-1"), "--weights", p["weights"], "--target-cycles", p["target"], "--memory", "layer", "-o", t.at("one"))
        want = json.loads(r.stdout)
        if r.returncode: t.case(name, "" if p.get("refused") == want["error"]["message"] else str(p))
        else: t.case(name, "" if (p["cycles"], p["multipliers"], p["cosine"]) == (want["predicted_cycles"], want["multipliers"], want["error"][0]["cosine"]) and p["lut"] > 0 and p["cycles"] <= p["target"] else str(p))
    if shutil.which("parallel"):
        said, status = sweep("parallel")
        t.case("points, by GNU parallel", "" if not status and lines("parallel") == points else "%s %s" % (status, said[-300:]))
    else: t.absent("points, by GNU parallel", "parallel not installed")
    # killed when a point or two are there
    p, folder, end = sweep("killed", wait=False), t.at("killed/points"), time.monotonic() + 120
    while not (os.path.isdir(folder) and any(f.endswith(".json") for f in os.listdir(folder))) and time.monotonic() < end: time.sleep(0.05)
    os.killpg(p.pid, signal.SIGKILL)
    p.wait(30)
    there = {f: os.stat(os.path.join(folder, f)).st_mtime_ns for f in os.listdir(folder) if f.endswith(".json")}
    t.case("killed with part of it done", "" if 0 < len(there) < 6 and not lines("killed") else "%d points" % len(there))
    said, status = sweep("killed")
    t.case("it goes on", "" if not status and lines("killed") == points else "%s %s" % (status, said[-300:]))
    t.case("what was there stays", " ".join(f for f, at in there.items() if os.stat(os.path.join(folder, f)).st_mtime_ns != at))
    plots(points)


COSTS = ("multipliers", "lut", "dsp", "bram", "relative")


def front(points, key):
    """Those that no other one beats, by comparing all with all; of points alike, their numbers."""
    has = [p for p in points if p.get(key) is not None]
    beaten = lambda p: any(q["cycles"] <= p["cycles"] and q[key] <= p[key] and (q["cycles"] < p["cycles"] or q[key] < p[key]) for q in has)
    return {(p["cycles"], p[key]) for p in has if not beaten(p)}


def line_of(place, values):
    """The largest distance, in pixels, of places from the straight line, over the logarithms of what they show, from the least to the most."""
    at, by = np.array(place, float), np.log(values)
    a, b = by.argmin(), by.argmax()
    return 0 if by[b] - by[a] < 1e-9 else np.abs(at[a] + (by - by[a]) / (by[b] - by[a]) * (at[b] - at[a]) - at).max()


def drawn(body, points, key):
    """What is wrong with one plot: each point of it is there once, says its line, lies where its numbers are; the line is the front, and nothing else."""
    marks = re.findall(r"<(circle|rect) class='i(\d)( on)?' (?:cx|x)=(\d+) (?:cy|y)=(\d+) [^>]*><title>(.*?)</title>", body, re.S)
    marks = [(shape, on, int(x) + 5 * (shape == "rect"), int(y) + 5 * (shape == "rect"), json.loads(html.unescape(said))) for shape, _, on, x, y, said in marks]
    want = [p for p in points if p.get(key)]
    texts = lambda some: sorted(json.dumps(p, sort_keys=True) for p in some)
    if texts(m[-1] for m in marks) != texts(want): return "%d marks, %d points" % (len(marks), len(want))
    if any((shape == "rect") != (p.get("memory") == "block") for shape, *_, p in marks): return "squares"
    off = line_of([m[2] for m in marks], [m[-1]["cycles"] for m in marks]), line_of([m[3] for m in marks], [m[-1][key] for m in marks])
    if max(off) > 1.5: return "%.1f and %.1f pixels off" % off
    best = {b for b in front(points, key) if b[1] > 0}
    on = [(m[-1]["cycles"], m[-1][key]) for m in marks if m[1]]
    if set(on) != best or len(on) != len(best): return "front: %s, not %s" % (sorted(on), sorted(best))
    joined = re.search(r"class=front d='(?:M(.*?))?'", body)[1]
    path = [tuple(map(int, j.split(","))) for j in joined.split("L")] if joined else []
    return "" if path == [m[2:4] for m in sorted((m for m in marks if m[1]), key=lambda m: m[-1]["cycles"])] else "the line: %s" % path


def page(name, points):
    """The page of points, judged; its text."""
    said = t.good("show", "--html", t.at(name)).decode()
    good = [p for p in points if "refused" not in p]
    figures = dict(zip(COSTS, re.findall(r"<section><h2>[^<]*</h2>(<svg class=chart.*?)</section>", said, re.S)))
    t.case(name + ": five plots", "" if len(figures) == 5 else "%d" % len(figures))
    for key, body in figures.items(): t.case("%s: %s" % (name, key), drawn(body, good, key))
    # as text: a row for each place on a front, stars where it is
    rows = [l + " " * 99 for l in t.good("show", t.at(name)).decode().splitlines()[2:] if not l.startswith("refused: ")]
    for k, key in enumerate(COSTS):
        starred = [float(l[:13].replace(" ", "")) for l in rows if l[14 * k + 14:14 * k + 27].endswith(" *")]
        t.case("%s as text: %s" % (name, key), "" if starred == sorted(c for c, _ in front(good, key)) else str(starred))
    return said


def check_front():
    """Points with ties, zeros, some that do not say all, in any order; and words that would be markup."""
    rng = np.random.default_rng(4)
    points = [{"weights": int(rng.integers(2, 9)), "target": 9000, "memory": ["layer", "block"][k % 2], "cycles": int(rng.integers(20, 60)) * 1000, "multipliers": int(rng.integers(1, 40)), "lut": int(rng.integers(1, 12)) * 10 ** int(rng.integers(3, 6)),
               "dsp": int(rng.integers(0, 9)), "bram": int(rng.integers(1, 99)) / 2, "relative": None if k % 7 == 0 else float(rng.random())} for k in range(120)]
    bad = "</title><script>alert(1)</script>'\" onload=x &amp; \u001b[31m"
    points += [{"memory": bad, "cycles": 19000, "multipliers": 1, "note": bad}, {"cycles": 70000, "lut": 1}, {"weights": 5, "target": 3, "memory": bad, "refused": bad}, {"refused": ""}]
    t.write("points.jsonl", "\r\n\n".join(json.dumps(p) for p in points))
    said = page("points.jsonl", points)
    key = {int(bits): colour for colour, bits in re.findall(r"<i class=i(\d)></i></span>weights of (\d) bits", said)}
    t.case("weights of 2 to 8 bits have a colour each", "" if sorted(key) == list(range(2, 9)) and len(set(key.values())) == 7 else str(key))
    worn = {(json.loads(html.unescape(line)).get("weights"), colour) for colour, line in re.findall(r"<(?:circle|rect) class='i(\d)[^>]*><title>(.*?)</title>", said, re.S)}
    t.case("... which their points have", "" if {(w, c) for w, c in worn if w} == set(key.items()) else str(worn))
    t.case("no markup comes of words", "" if "<script>alert" not in said and said.count("<script>") == 1 and "\x1b" not in said and html.escape(bad[:20]) in said else "some does")
    text = t.good("show", t.at("points.jsonl"))
    t.case("no control characters, either", "" if b"\x1b" not in text and b"<script>" in text else "some")
    t.case("what there is none of is said", "" if "%d points with none of it" % sum(p.get("dsp") == 0 for p in points) in said else "not")
    for name, some in ("one", [dict(points[1], dsp=3)]), ("alike", [dict(points[1], weights=w) for w in (8, 4)]), ("far", [dict(points[2], cycles=10 ** k, lut=10 ** (14 - k), multipliers=1) for k in range(1, 15)]):
        t.write(name + ".jsonl", "\n".join(map(json.dumps, some)) + "\n")
        page(name + ".jsonl", some)
    t.write("front.jsonl", t.good("fold", t.good("lower", t.model("bert-1"), "-o", t.at("l.json")) and "" or t.at("l.json"), "--pareto"))
    said = t.good("show", "--html", t.at("front.jsonl")).decode()
    t.case("what fold --pareto prints are points", "" if said.count("<svg class=chart") == 4 else "%d plots" % said.count("<svg class=chart"))


WRONG = (("", "no point in 0 lines"), ("\n \r\n", "no point in 2 lines"), ('{"cycles":1}\n[1]', "line 2 is no JSON object"), ('{"cycles":1}\n\n{"cycles":1', "line 3 is no JSON object"), ('{"cycles":1} {"cycles":2}', "line 1 is no JSON object"),
         ('{"cycles":1}\0', "line 1 is no JSON object"), ('{"cycles":1}\n{"weights":8}', "line 2 says neither"), ('{"cycles":"9"}', "line 1 says neither"), ('{"cycles":0}', "line 1 says neither"), ('{"cycles":-1e9}', "line 1 says neither"), ('{"cycles":1e999}', "line 1 says neither"),
         (b'{"cycles":1,"memory":"\xff"}', "line 1 is no JSON object"), ("[" * 5000, "line 1 is no JSON object"))


def check_wrong():
    """What is no sweep: one line with the number of that line, and nothing written."""
    for text, word in WRONG:
        t.write("wrong.jsonl", text)
        for flags in (), ("--html",):
            p = t.call("show", *flags, t.at("wrong.jsonl"), "-o", t.at("nothing.html"))
            err = p.stderr.decode()
            t.case("%r %s" % (text[-40:], " ".join(flags)), "" if p.returncode == 3 and word in err and err.count("\n") == 1 and "sweep.sh" in err and "MLO_E_FORMAT" in err and not os.path.exists(t.at("nothing.html")) else "%d %s" % (p.returncode, err[:300]))
    t.write("right.jsonl", '{"cycles":1}\n')
    for flags in ("--json",), ("--dot",), ("--svg",), ("--html", "--sim", t.at("right.jsonl")), (t.at("right.jsonl"),):
        p = t.call("show", t.at("right.jsonl"), *flags)
        t.case("a sweep with " + " ".join(flags), "" if p.returncode == 2 and "sweep" in p.stderr.decode() else "%d %s" % (p.returncode, p.stderr.decode()[:300]))


def plots(points):
    """The sweep above, drawn."""
    shutil.copy(os.path.join(t.at("plain"), "points.jsonl"), t.at("swept.jsonl"))
    said = page("swept.jsonl", points)
    t.case("what was refused is said", "" if said.count("cannot be reached") == 2 else "not")


t.main(check_front, check_wrong, check_snakemake, check_sweep, floor=104)
