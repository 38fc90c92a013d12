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
    lists = re.findall(r"\bmlo_hole \w+\[\w*\] = \{(.*?)\};", source, re.S)
    filled = {name for entries in lists for name in re.findall(r'\{ "([A-Z_]+)",', entries)}
    t.case("holes are filled", "" if wanted == filled and len(wanted) > 30 else str(wanted ^ filled))
    for name, s in shared().items():
        t.case("%s has a use" % name, "" if '"%s"' % name in source else "nobody asks for it")
        if not HOLE.search(s) and os.path.exists(os.path.join(built("a loop"), name)): t.case("%s comes out as it is" % name, "" if text("a loop", name) == s else "it differs")
    for what in BUILDS:
        left = ["%s: %s" % (name, h) for name in shared() if os.path.exists(os.path.join(built(what), name)) for h in HOLE.findall(text(what, name))]
        t.case("%s: no hole is left" % what, "; ".join(left))


def check_verilog():
    if not t.have("the bench's Verilog", "iverilog", "verilator"): return
    for what in [b for b in BUILDS if "--target" not in BUILDS[b]]:
        sources = sorted(glob.glob(built(what) + "/rtl/*.v") + glob.glob(built(what) + "/tb/*.v"))
        t.case("%s: Icarus" % what, ran("iverilog", "-g2012", "-Wall", "-t", "null", "-s", "mlo_tb", *sources))
        t.case("%s: Verilator" % what, ran("verilator", "--lint-only", "--timing", "-Wall", *BENCH, "--top-module", "mlo_tb", *sources))


def check_python():
    """As the interpreter reads it, warnings being errors."""
    for name in "cocotb/test_mlo.py", "host/mlo_driver.py", "mlo_litex.py": t.case(name, ran(sys.executable, "-W", "error", "-m", "py_compile", t.write(os.path.basename(name), shared()[name])))


def check_makefile():
    """Every target is one that make can reach."""
    if not t.have("Makefile", "make"): return
    targets = re.search(r"^\.PHONY: (.*)", text("a loop", "Makefile"), re.M)[1].split()
    for target in targets:
        p = subprocess.run(["make", "-n", "-C", built("a loop"), target], capture_output=True, text=True)
        t.case("make %s" % target, p.stderr[:300] or ("" if not p.returncode and p.stdout else "status %d" % p.returncode))
    said = set(re.findall(r"\w[\w-]*", text("a loop", "Makefile").splitlines()[0].partition("make")[2]))
    t.case("the first line has the targets", "" if said == set(targets) - {"clean"} and len(said) > 5 else str(said ^ set(targets)))


LITTLE = """
module mlo_mvu #(parameter PACK = 1)(input a, output b); assign b = a ^ PACK; endmodule
module mlo_top(input c, input d, output reg q);
    wire e;
    mlo_mvu m(d, e);
    always @(posedge c) q <= e ^ q;
endmodule
"""
BROKEN = LITTLE.replace("mlo_mvu m(d, e)", "mlo_mvu m(d, e); mlo_nothing n(d)")
YOSYS = """#!/bin/sh
case " $* " in *" -q "*) exit 0;; esac
echo "51.1. Executing A pass."; sleep 3.2; echo "51.30. Executing B pass."; echo "51.30.1. Executing C pass."; echo "51.50. Printing statistics."
"""


def check_synth():
    """Yosys takes what make says, on a terminal and elsewhere, and its count is left; a broken design fails. Of a small design: the commands count here."""
    if not t.have("make synth", "make", "yosys"): return
    BUILDS.update(GUIDES)
    folder = built("a loop")
    for target, cell in ("synth", "FDRE"), ("synth-ecp5", "TRELLIS_FF"):
        for terminal in False, True:
            for what, rtl, status, words in ("a design", LITTLE, 0, cell), ("a broken one", BROKEN, 2, "ERROR: "):
                command = ["make", "-C", folder, target, "RTL=" + t.write("little.v", rtl)]
                p = t.on_terminal(command) if terminal else subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                said = p.stdout if status else t.read(folder + "/synth.txt").decode()
                t.case("make %s%s: %s" % (target, " on a terminal" * terminal, what), "" if p.returncode == status and words in said else "status %d: %s" % (p.returncode, p.stdout[-300:]))
                if not status: os.remove(folder + "/synth.txt")
    os.remove(folder + "/mlo_top.json")
    bin = t.at("bin")
    os.makedirs(bin)
    os.chmod(t.write("bin/yosys", YOSYS), 0o755)
    command, env = ["make", "-C", folder, "synth"], dict(os.environ, PATH=bin + ":" + os.environ["PATH"])
    p, piped = t.on_terminal(command, env=env), subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    lines = re.findall(r"\r\x1b\[K  yosys, step (\d+) of about \d+ \((\d+) %\): about (\d+) s left", p.stdout)
    t.case("make synth: how far it is", "" if p.returncode == 0 and [int(step) for step, _, _ in lines] == [30, 50] and int(lines[0][1]) < int(lines[1][1]) <= 100 else p.stdout[-300:])
    t.case("make synth: not in a pipe", "" if piped.returncode == 0 and "left" not in piped.stdout and "\x1b" not in piped.stdout else piped.stdout[-300:])


def check_clean():
    """What make and sim leave in a build directory, make clean takes away; nothing else."""
    if not t.have("make clean", "make", "iverilog", "cc"): return
    BUILDS.update(GUIDES, small=("mlp-res",))
    for what in "small", "C":
        folder, before = built(what), t.tree(built(what))
        t.good("sim", folder, *([] if what == "C" else ["--simulator", "icarus", "--frame-tokens", "2"]))
        p = [subprocess.run(["make", "-C", folder, target], capture_output=True, text=True) for target in (["test"] if what == "C" else ["sim.vvp", "wave"])]
        made = set(t.tree(folder)) - set(before)
        q = subprocess.run(["make", "-C", folder, "clean"], capture_output=True, text=True)
        t.case("%s: make clean" % what, "" if not any(x.returncode for x in p) and made and not q.returncode and t.tree(folder) == before else "%s %s" % ([x.stderr[-200:] for x in p], sorted(set(t.tree(folder)) ^ set(before))[:5]))


# Tcl's own interpreter with Vivado's commands as what writes down how it was called; pins and interfaces are those of mlo_top.v, every port has 16 bits
STUBS = r"""
set interfaces [lassign $argv argv0 argv argc]
set argc [llength $argv]
proc unknown args {puts $args; return [lindex $args 0]}
proc get_property args {return 15}
foreach command {get_bd_pins get_ipdefs get_files get_ports} {proc $command args {return [lindex $args end]}}
proc get_bd_intf_pins args {set pin [lindex $args end]; if {[lindex $args 0] ne "-quiet" || $pin in $::interfaces} {return $pin}}
source vivado.tcl
"""


def check_tcl():
    """vivado.tcl, each of its three ways: Tcl runs it to its end; in the block design every interface of mlo_top.v is connected, once."""
    if not t.have("vivado.tcl", "tclsh"): return
    BUILDS.update(GUIDES)
    stubs = t.write("stubs.tcl", STUBS)
    for what in "a loop", "a mask", "kv":
        ports = re.findall(r"^ *(?:input|output) +wire +(?:\[\d+:0\])? *(\w+)", text(what, "rtl/mlo_top.v"), re.M)
        faces = {"core/" + re.sub(r"_(t(data|valid|ready|last)|[aw]?[wrb][a-z]+|a[rw][a-z]+)$", "", p) for p in ports} - {"core/clk", "core/rst"}
        vivado = lambda *args: subprocess.run(["tclsh", stubs, "x", " ".join(args), "0", *faces], cwd=built(what), capture_output=True, text=True)
        for mode, last in ("synth", "report_timing_summary"), ("ip", "ipx::save_core"), ("zynq", "wait_on_run"):
            p = vivado("xck26-sfvc784-2LV-c", mode)
            t.case("%s: vivado.tcl, %s" % (what, mode), p.stderr[-300:] if p.returncode else "" if p.stdout.splitlines()[-1].startswith(last) and "xck26" in p.stdout else p.stdout[-200:])
        calls = p.stdout.splitlines()
        ends = [pin for c in calls if c.startswith(("connect_bd_intf_net", "connect_bd_net", "apply_bd_automation")) for pin in (c.split()[-1:] if c[0] == "a" else c.split()[1:]) if pin.startswith("core/")]
        t.case("%s: every port is connected, once" % what, "" if sorted(ends) == sorted(faces | {"core/clk", "core/rst"}) and len(faces) > 3 else "%s and not %s" % (sorted(ends), sorted(faces)))
    t.case("vivado.tcl: of itself it synthesizes", "" if vivado().stdout == vivado("xczu7ev-ffvc1156-2-e", "synth").stdout else "something else")
    p = vivado("x", "board")
    t.case("vivado.tcl: another word", "" if p.returncode and "there is no 'board'; say synth, ip or zynq" in p.stderr else p.stderr[-200:] or "it is taken")


def check_signals():
    """GTKWave is asked for signals that there are."""
    for what in "a loop", "unrolled":
        names = re.findall(r"^mlo_tb\.(.*)", text(what, "tb/mlo_top.gtkw"), re.M)
        home = {1: "tb/mlo_tb.v", 2: "rtl/mlo_top.v", 3: "rtl/mlo_core.v", 4: "rtl/mlo_layer.v"}
        lost = [n for n in names if not re.search(r"\b(wire|reg)\b[^;]*\b%s\b" % n.split(".")[-1], text(what, home[len(n.split("."))]))]
        t.case("%s: signals for GTKWave" % what, "" if not lost and len(names) > 40 else "%d, not there: %s" % (len(names), lost[:4]))


def check_names():
    """A stream of the core that goes from one kernel to the next has one name; what a fork hands on, and what leaves, has another in front of who reads it."""
    for what in [b for b in BUILDS if "--target" not in BUILDS[b]]:
        core = text(what, "rtl/mlo_layer.v" if what == "unrolled" else "rtl/mlo_core.v")
        twice = ["%s is %s" % (a, b) for a, b in re.findall(r"assign (\w+_in\d)_tdata = (\w+)_tdata;", core) if not re.search(r"_f\d+$", b)]
        t.case("%s: a stream has one name" % what, "; ".join(twice) if re.search(r"\.s_axis_tdata\(mvu_\d+_tdata\)", core) else "no stream is found")


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
    """picture.css, page.css: rules with their braces, colours that are defined, selectors of what is drawn; and the page has it as one line."""
    css = shared()["picture.css"] + shared()["page.css"]
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


GUIDES = {**{what: args for what, args in BUILDS.items() if what != "blocks"}, "decoder": ("stories260k-step", "--context", "64", "--slots", "2", "--pe", "8", "--simd", "8"), "kv": ("stories260k-step", "--context", "64", "--kv", "dram", "--pe", "8", "--simd", "8"),
          "ids": ("stories260k-step", "--context", "64", "--tokens", "--pe", "8", "--simd", "8"), "whisper": ("whisper-tiny", "--loop", "loop_1", "--pe", "4", "--simd", "4"), "C": ("bert-tiny", "--target", "c"), "a decoder's C": ("stories260k-step", "--context", "64", "--target", "c")}


def check_guide():
    """README.md of a build directory: what it says is what the manifest, the ports, the registers and the files are; and the C for hosts is C."""
    BUILDS.update(GUIDES)
    for what in GUIDES:
        page, m = text(what, "README.md"), json.loads(text(what, "manifest.json"))
        wrong = ["a line is empty of what it says: %r" % l for l in page.splitlines() if re.search(r"@[A-Z_]+@|\(null\)", l)]
        files = re.findall(r"^\| `([\w./]+)` \| (\d+) \|$", page, re.M)
        wrong += ["%s has not %s bytes" % (f, n) for f, n in files if os.path.getsize(os.path.join(built(what), f)) != int(n)]
        rest = [f for f in m["files"] if f not in dict(files) and f != "README.md"]
        counted = re.search(r"^\| (\d+) modules, in `rtl/` and `tb/` \| (\d+) \|$", page, re.M)
        if counted: wrong += [] if (len(rest), sum(m["files"][f]["bytes"] for f in rest)) == tuple(map(int, counted.groups())) else ["modules: %s" % counted[0]]
        elif rest: wrong.append("without %s" % rest[:3])
        for source in glob.glob(built(what) + "/host/*.c"):
            said = ran("gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", source)
            if said: wrong.append("host/%s: %s" % (os.path.basename(source), said))
        for border in "input", "output":
            scale = m.get(border, {}).get("scale")
            if scale and not re.search(r"\b%s\b" % re.escape(json.dumps(scale)), page): wrong.append("no scale %s" % scale)
        if m.get("target") != "c": wrong += ports(what, page, m)
        else: wrong += [] if "int model_run(" in page and all(l.strip() in text(what, "model.h") for l in re.findall(r"^    (int model_run.*?);$", page, re.M | re.S)) else ["another model_run"]
        sizes = [m["tokens"], m["channels"], m["iterations"], *([m["multipliers"], m["predicted_cycles"]] if "multipliers" in m else [m["arena_bytes"]])]
        wrong += ["%s is not said" % n for n in sizes if n is not None and not re.search(r"\b%d\b" % n, page)]
        t.case("%s: README.md" % what, "; ".join(wrong[:3]))


def ports(what, page, m):
    """What is wrong with the tables of ports and registers."""
    said = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", page.split("## Files")[0], re.M))
    top = text(what, "rtl/mlo_top.v")
    real = {p: int(w) + 1 for w, p in re.findall(r"\[(\d+):0\]\s+(\w+?)_(?:tdata|rdata)\b", top.split(");")[0])}
    wrong = ["ports %s, and %s" % (said, real)] if {p: int(w) for p, w in said.items()} != real else []
    registers = dict(re.findall(r"^#define MLO_REG_(\w+)\s+0x([0-9A-F]{3})\b", text(what, "host/mlo_regs.h"), re.M))
    wrong += ["register %s" % n for n, at in re.findall(r"`(\w+)` \(0x([0-9A-F]{3})\)", page) if registers.get(n) != at]
    if ("KV_BASE_LOW" in page) != ("kv" in m) or ("JOB_A" in page) != ("context" in m) or ("STOP" in page) != ("around" in m): wrong.append("registers that it has not, or none that it has")
    if os.path.exists(os.path.join(built(what), "host/mlo_driver.c")) != ("mlo_driver.c` (bare" in page): wrong.append("a driver")
    return wrong


t.main(check_guide, check_clean, check_holes, check_verilog, check_python, check_makefile, check_synth, check_tcl, check_signals, check_names, check_header, check_style, floor=99)
