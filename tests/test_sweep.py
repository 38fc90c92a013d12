#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/sweep: every point is what mlo says, a sweep that was killed goes on where it was, the plots show each point and the front.

    python tests/test_sweep.py path/to/mlo [CHECK ...]"""
import json, os, re, shutil, signal, subprocess, sys, time
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


def plots(points):
    p = subprocess.run([sys.executable, os.path.join(t.root, "examples/sweep/plot.py"), os.path.join(t.at("plain"), "points.jsonl")], capture_output=True, text=True)
    drawn = p.stdout
    good = [p for p in points if "refused" not in p]
    figures = re.findall(r"<figure><h2>(.*?)</h2>(.*?)</figure>", p.stdout, re.S)
    t.case("five plots", p.stderr[-300:] or ("" if len(figures) == 5 else "%d" % len(figures)))
    for (name, body), key in zip(figures, ("multipliers", "lut", "dsp", "bram", "relative")):
        shown = re.findall(r"<circle cx='([\d.]+)' cy='([\d.]+)'", body)
        best = [p for p in good if not any((q["cycles"] <= p["cycles"] and q[key] <= p[key]) and (q["cycles"] < p["cycles"] or q[key] < p[key]) for q in good)]
        best = {(p["cycles"], p[key]) for p in best}
        joined = re.search(r"class='front' d='M(.*?)'", body)[1].split("L")
        t.case(name + ": each point, and the front", "" if len(shown) == len(good) and len(joined) == len(best) and all(tuple(j.split()) in shown for j in joined) else "%d of %d, %d of %d" % (len(shown), len(good), len(joined), len(best)))
    p = t.call("show", "--html", os.path.join(t.at("plain"), "points.jsonl"))
    said = re.search(r"give them to (\S+),", p.stderr.decode())
    t.case("show says who draws points", "" if p.returncode == 2 and said and os.path.exists(os.path.join(t.root, said[1])) else p.stderr.decode()[:200])
    t.case("what was refused is said", "" if drawn.count("cannot be reached") == 2 else "not")


t.main(check_snakemake, check_sweep, floor=18)
