#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The texts of share/ are what they claim to be: each, its holes filled, is read by its own tool.

    python tests/test_share.py path/to/mlo [NAME ...]"""
import glob
import json
import os
import re
import subprocess
import sys
import harness as t

SHARE = os.path.join(t.root, "share")
HOLE = re.compile(r"@([A-Z_]+)@")
# what the bench may do and a core may not: pins left open, integers as they come, a host that assigns as it goes
BENCH = ["-Wno-PINCONNECTEMPTY", "-Wno-WIDTH", "-Wno-BLKSEQ", "-Wno-UNUSEDSIGNAL"]
BUILDS = {"a loop": ("bert-tiny",), "a mask": ("bert-tiny-mask",), "unrolled": ("bert-tiny", "--unrolled"), "resident": ("bert-tiny", "--memory", "resident"), "blocks": ("bert-tiny", "--memory", "block")}


def shared(): return {os.path.relpath(os.path.join(d, f), SHARE): t.read(os.path.join(d, f)).decode() for d, _, files in os.walk(SHARE) for f in files if not f.endswith((".md", ".pyc"))}


def built(what):
    path = t.at(what.replace(" ", "-"))
    if not os.path.isdir(path): t.good("compile", t.model(BUILDS[what][0]), *BUILDS[what][1:], "-o", path)
    return path


def text(what, name): return t.read(os.path.join(built(what), name)).decode()


def ran(*command, **options):
    """'' or what a tool had to say."""
    p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **options)
    return p.stdout[:400] or (p.returncode and "status %d" % p.returncode) or ""


def check_holes():
    """Every hole has something that fills it, and nothing fills a hole that is nowhere; what has no hole comes out as it lies there."""
    source = "".join(t.read(f).decode() for f in glob.glob(os.path.join(t.root, "src/*/*.c")))
    wanted = {h for s in shared().values() for h in HOLE.findall(s)}
    filled = set(re.findall(r'\{ "([A-Z_]+)",\s*(?:mlo_integer|NULL, mlo_|NULL, c->|mlo_format|mlo_border_|mlo_example_|MLO_VERSION|c->masked|c->slots|c->dram|jobs|c->replay|e->unrolled|e->h|readers|mlo_top_|mlo_core_)', source))
    t.case("holes are filled", "" if wanted == filled and len(wanted) > 30 else str(wanted ^ filled))
    for name, s in shared().items():
        t.case("%s has a use" % name, "" if '"%s"' % name in source else "nobody asks for it")
        if not HOLE.search(s) and os.path.exists(os.path.join(built("a loop"), name)): t.case("%s comes out as it is" % name, "" if text("a loop", name) == s else "it differs")
    for what in BUILDS:
        left = ["%s: %s" % (name, h) for name in shared() if os.path.exists(os.path.join(built(what), name)) for h in HOLE.findall(text(what, name))]
        t.case("%s: no hole is left" % what, "; ".join(left))


def check_verilog():
    if not t.have("the bench's Verilog", "iverilog", "verilator"): return
    for what in BUILDS:
        sources = sorted(glob.glob(built(what) + "/rtl/*.v") + glob.glob(built(what) + "/tb/*.v"))
        t.case("%s: Icarus" % what, ran("iverilog", "-g2012", "-Wall", "-t", "null", "-s", "mlo_tb", *sources))
        t.case("%s: Verilator" % what, ran("verilator", "--lint-only", "--timing", "-Wall", *BENCH, "--top-module", "mlo_tb", *sources))


def check_python():
    """As the interpreter reads it, warnings being errors."""
    for name in "cocotb/test_mlo.py", "host/mlo_driver.py": t.case(name, ran(sys.executable, "-W", "error", "-m", "py_compile", t.write(os.path.basename(name), shared()[name])))


def check_makefile():
    """Every target is one that make can reach."""
    if not t.have("Makefile", "make"): return
    targets = re.search(r"^\.PHONY: (.*)", text("a loop", "Makefile"), re.M)[1].split()
    for target in targets:
        p = subprocess.run(["make", "-n", "-C", built("a loop"), target], capture_output=True, text=True)
        t.case("make %s" % target, p.stderr[:300] or ("" if not p.returncode and p.stdout else "status %d" % p.returncode))
    said = set(re.findall(r"\w[\w-]*", text("a loop", "Makefile").splitlines()[0].partition("make")[2]))
    t.case("the first line has the targets", "" if said == set(targets) - {"clean"} and len(said) > 5 else str(said ^ set(targets)))


def unclosed(line):
    """The brackets, braces and quotes that a line leaves open, or closes unopened."""
    open_, opening = [], {"]": "[", "}": "{", '"': '"'}
    for ch in re.findall(r'[][{}"]', line):
        if ch in opening and open_ and open_[-1] == opening[ch]: open_.pop()
        else: open_.append(ch)
    return open_


def check_tcl():
    """Each command of the script is a line."""
    lines = shared()["vivado.tcl"].splitlines()
    t.case("vivado.tcl", "; ".join(x for x in lines if unclosed(x) or not re.match(r"#|[a-z_]+ ", x)) or ("" if len(lines) > 8 and unclosed("{[}]") else "nothing was looked at"))


def check_signals():
    """GTKWave is asked for signals that there are."""
    for what in "a loop", "unrolled":
        names = re.findall(r"^mlo_tb\.(.*)", text(what, "tb/mlo_top.gtkw"), re.M)
        home = {1: "tb/mlo_tb.v", 2: "rtl/mlo_top.v", 3: "rtl/mlo_core.v", 4: "rtl/mlo_layer.v"}
        lost = [n for n in names if not re.search(r"\b(wire|reg)\b[^;]*\b%s\b" % n.split(".")[-1], text(what, home[len(n.split("."))]))]
        t.case("%s: signals for GTKWave" % what, "" if not lost and len(names) > 40 else "%d, not there: %s" % (len(names), lost[:4]))


def check_header():
    """mlo_regs.h in C and in C++; a kernel's counters lie where the manifest's order says."""
    for what in "a loop", "unrolled":
        header = built(what) + "/host/mlo_regs.h"
        user = t.write("user.c", '#include "%s"\n#include "%s"\nextern int id[MLO_REG_ID + 1], last[MLO_REG_PARAM_BEATS];\n' % (header, header))
        for language, standard in ("c", "c99"), ("c++", "c++11"): t.case("%s: mlo_regs.h, %s" % (what, standard), ran("gcc", "-x", language, "-std=" + standard, "-pedantic", "-Wall", "-Wextra", "-fsyntax-only", user))
        places = re.findall(r"^#define MLO_REG_(\w+)_(BUSY|STARVED|BLOCKED) 0x([0-9A-F]{3})$", t.read(header).decode(), re.M)
        want = [(k["name"].upper().replace(".", "_"), w, "%03X" % (0x80 + 16 * i + 4 * n)) for i, k in enumerate(json.loads(text(what, "manifest.json"))["kernels"]) for n, w in enumerate(("BUSY", "STARVED", "BLOCKED"))]
        t.case("%s: places of the counters" % what, "" if places == want and len(want) > 20 else str([p for p in zip(places, want) if p[0] != p[1]][:2]))


def check_style():
    """page.css: rules with their braces, colours that are defined, selectors of what is drawn; and the page has it as one line."""
    css = shared()["page.css"]
    flat = "".join(line.strip(" ") for line in css.splitlines())
    rule = r"[^{}]+\{[^{}:;]+:[^{};]+(;[^{}:;]+:[^{};]+)*\}"
    t.case("page.css: rules", "" if re.fullmatch(r"(%s|@media[^{}]*\{(%s)+\})+" % (rule, rule), flat) else "what is left without its rules: %r" % re.sub(rule, "", flat)[:200])
    t.case("page.css: colours", ", ".join(set(re.findall(r"var\(--(\w+)\)", flat)) - set(re.findall(r"--(\w+):", flat))))
    drawn = "".join(t.read(f).decode() for f in glob.glob(os.path.join(t.root, "src/*/*.c")))
    classes = set(re.findall(r"\.([a-z][a-z0-9]*)", re.sub(r"\{[^{}]*\}", " ", flat)))
    lost = [c for c in classes if not re.search(r"\b%s\b" % re.sub(r"^([il])\d$", r"\1%d", c).replace("%d", "(?:%d|\\d)"), drawn)]
    t.case("page.css: classes", "" if not lost and len(classes) > 50 else "%d, not drawn: %s" % (len(classes), lost))
    page = t.good("show", "--html", built("a loop")).decode()
    t.case("the page has its style", "" if page.count("<style>%s</style>" % flat) == 1 else "it is another")


t.main(check_holes, check_verilog, check_python, check_makefile, check_tcl, check_signals, check_header, check_style, floor=50)
