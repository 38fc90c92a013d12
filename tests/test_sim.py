#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sim on a terminal: which simulator it takes, how far it says it is, its summary, and what is left when it is stopped.

Usage: python tests/test_sim.py path/to/mlo [CHECK ...]

Most of it with simulators that only keep time: scripts that print the bench's lines, so that a minute is a second, and what comes next is known."""
import concurrent.futures
import hashlib
import json
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import numpy as np
from onnx import helper
import harness as t
from graphs import session
from hardware import clone

BERT = t.model("bert-tiny")
SLEEPER = """#!%s
import os, re, sys, time
%%s
""" % sys.executable

# Icarus: the compiler writes a file; the run tells cycles for SECONDS and passes.
IVERILOG = "open(sys.argv[sys.argv.index('-o') + 1], 'w').write('x')"
RUN = """
flags = dict(a[1:].split('=') for a in sys.argv if a[:1] == '+')
start = time.monotonic()
for k in range(100):
    if 'progress' in flags: print('MLO AT', CYCLES * k // 100, flush=True)
    time.sleep(max(start + SECONDS * (k + 1) / 100 - time.monotonic(), 0))   # what a busy machine takes is caught up
for f in range(FRAMES): print('MLO FRAME', f, CYCLES * (f + 1) // FRAMES)
print('MLO PASS words 2048 cycles', CYCLES)
"""
# Verilator: C++ appears, then one object after the other, then a program that runs as the other one does.
VERILATOR = """
words = sys.argv
folder, program = words[words.index('--Mdir') + 1], words[words.index('-o') + 1]
os.makedirs(folder, exist_ok=True)
time.sleep(BUILD / 6)
for k in range(20): open('%s/part_%d.cpp' % (folder, k), 'w').write('x' * 200000)
open(folder + '/Vmlo_tb.mk', 'w')
for name, weight in [('verilated', 2.4), ('verilated_timing', 0.8), ('verilated_threads', 0.8)] + [('part_%d' % k, 0.2) for k in range(20)]:
    time.sleep(BUILD * 5 / 6 * weight / 8)
    open('%s/%s.o' % (folder, name), 'w')
open(folder + '/' + program, 'w').write(PROGRAM)
os.chmod(folder + '/' + program, 0o755)
"""


def tools(name, cycles, frames=1, seconds=0.0, build=0.0, have=("iverilog", "vvp", "verilator", "make")):
    """A folder of programs for PATH."""
    folder = t.at("tools-" + name)
    os.makedirs(folder, exist_ok=True)
    run = RUN.replace("CYCLES", str(cycles)).replace("FRAMES", str(frames)).replace("SECONDS", str(seconds))
    text = {"iverilog": IVERILOG, "vvp": run, "make": "", "verilator": VERILATOR.replace("BUILD", str(build)).replace("PROGRAM", repr(SLEEPER % run))}
    for tool in have:
        with open(os.path.join(folder, tool), "w") as f: f.write(SLEEPER % text[tool])
        os.chmod(os.path.join(folder, tool), stat.S_IRWXU)
    return dict(os.environ, PATH=folder)


def core(name, *flags, model=BERT):
    """A build directory, and what it says of itself."""
    path = t.at(name)
    if not os.path.exists(path): t.good("compile", model, *flags, "-o", path)
    return path, json.loads(t.read(os.path.join(path, "manifest.json")))


def forget(path):
    """Nothing has been simulated."""
    subprocess.run(["rm", "-rf", os.path.join(path, "sim")], check=True)


class Terminal:
    """A command whose stdout, stderr or both are a terminal; all that it wrote there, with the time."""
    def __init__(self, command, env, stdout=True, stderr=True, leave=None):
        self.master, slave = pty.openpty()
        self.begun, self.said = time.monotonic(), []
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=slave if stdout else subprocess.PIPE, stderr=slave if stderr else subprocess.PIPE, start_new_session=True,
                                        preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL) for s in (signal.SIGINT, signal.SIGHUP)])          # who runs tests in the background ignores them
        os.close(slave)
        self.pipe = b""
        reader = threading.Thread(target=self.drain)
        reader.start()
        if leave: leave(self)
        for p in (self.process.stdout, self.process.stderr):
            if p: self.pipe += p.read()
        self.status = self.process.wait()
        reader.join()
        self.seconds = time.monotonic() - self.begun

    def drain(self):
        while True:
            try: data = os.read(self.master, 4096)
            except OSError: data = b""
            if not data: break
            self.said.append((time.monotonic() - self.begun, data.decode(errors="replace")))
        os.close(self.master)

    @property
    def text(self): return "".join(s for _, s in self.said)

    @property
    def screen(self):
        """What stands there at the end: a line that was erased does not."""
        return [re.sub(r".*\x1b\[K", "", l.rstrip("\r")) for l in self.text.replace("\r\n", "\n").split("\n")]

    def estimates(self):
        """(seconds since the beginning, seconds that were said to be left)"""
        found = []
        for at, text in self.said:
            m = re.findall(r"about (?:(\d+) h )?(?:(\d+) min )?(?:(\d+) s )?left", text)
            if m: found.append((at, sum(int(x or 0) * k for x, k in zip(m[-1], (3600, 60, 1)))))
        return found


def wrong_estimates(terminal, after, end=None):
    """Whether what was said from a part of the run on is off by more than a quarter; a second, rounding and the start of a script, is
    allowed, and one in twenty, when a busy machine lets somebody else go first."""
    end = end or terminal.seconds
    found = [(at, left) for at, left in terminal.estimates() if at >= after * end]
    bad = ["at %.1f s: %d s left of %.1f" % (at, left, end - at) for at, left in found if abs(left - (end - at)) > max(0.25 * (end - at), 1)]
    if len(found) < 8: return "%d estimates only: %r" % (len(found), terminal.text[:300])
    return "%d of %d: %s" % (len(bad), len(found), "; ".join(bad[:4])) if len(bad) > len(found) / 20 else ""


# ---- which one -----------------------------------------------------------------------------------------------------------------------------

def taken(path, env, *flags):
    forget(path)
    p = t.call("sim", path, *flags, env=env)
    if p.returncode: return "status %d: %s" % (p.returncode, p.stderr.decode()[-200:]), ""
    r = json.loads(p.stdout)
    return r["simulator"], r["simulator_because"]


def check_choice():
    """Icarus for what it does soon, Verilator for the rest, as far as they are there; --simulator has the last word."""
    slow, said = core("slow", "--pe", "1", "--simd", "1")
    fast, little = core("fast", "--pe", "2", "--simd", "2", model=t.model("bert-1"))
    both = tools("both", said["predicted_cycles"])
    cases = ((slow, "both", both, (), "verilator", "Icarus"), (slow, "no Verilator", tools("no-verilator", said["predicted_cycles"], have=("iverilog", "vvp")), (), "icarus", "verilator is not installed"),
             (slow, "no make", tools("no-make", said["predicted_cycles"], have=("iverilog", "vvp", "verilator")), (), "icarus", "not installed"),
             (slow, "--simulator icarus", both, ("--simulator", "icarus"), "icarus", "--simulator"), (slow, "--simulator verilator", both, ("--simulator", "verilator"), "verilator", "--simulator"),
             (fast, "both", tools("both-fast", little["predicted_cycles"]), (), "icarus", "Verilator"),
             (fast, "no Icarus", tools("no-icarus", little["predicted_cycles"], have=("verilator", "make")), (), "verilator", "iverilog is not installed"))
    for path, what, env, flags, want, because in cases:
        got, why = taken(path, env, *flags)
        t.case("%s core, %s: %s" % (os.path.basename(path), what, want), "" if got == want and because in why else got + " " + why)
    made = lambda: [(f, os.stat(os.path.join(slow, "sim", f)).st_mtime_ns) for f in sorted(os.listdir(slow + "/sim")) if f.startswith(("icarus-", "verilator-"))]
    for name in ("icarus", "verilator"):
        forget(slow)
        t.good("sim", slow, "--simulator", name, env=both)
        before = made()
        t.good("sim", slow, "--simulator", name, env=both)
        t.case("what %s compiled is not compiled again" % name, "" if len(before) == 1 and made() == before else "%s %s" % (before, made()))
    sized, seconds = shutil.copytree(fast, t.at("sized"), ignore=lambda *_: ["sim"]), []
    for registers in 12791, 83462:                                        # bert-tiny's of 96 multipliers, a BERT-base's of 1536: measured: 29 s more of one processor, 17 s of two
        one = {**little["kernels"][0], "area": {"ff": registers}}
        with open(os.path.join(sized, "manifest.json"), "w") as f: json.dump({**little, "kernels": [one]}, f)
        chosen, because = taken(sized, tools("both-fast", little["predicted_cycles"]))
        seconds.append(int(re.search(r"%s (\d+) s" % ("estimate" if chosen == "verilator" else "Verilator"), because)[1]))
    more, cores = seconds[1] - seconds[0], min(max(os.cpu_count(), 1), 8)
    t.case("more flip-flops take Verilator longer", "" if 3 + 25 / cores - 1 <= more <= 4 + 30 / cores + 1 else str(seconds))
    p = t.call("sim", slow, "--simulator", "modelsim", env=both)
    t.case("a simulator that there is not", "" if p.returncode == 2 and b"icarus, verilator" in p.stderr else str(p.stderr))
    p = t.call("sim", slow, "--simulator", "arm", env=both)
    t.case("a simulator of C's", "" if p.returncode == 2 and b"icarus or verilator" in p.stderr else str(p.stderr))
    many, none = shutil.copytree(fast, t.at("many"), ignore=lambda *_: ["sim"]), {"bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    more = ["rtl/%s/%d.v" % ("/".join(["d" * 200] * 2), k) for k in range(400)]
    os.makedirs(os.path.dirname(os.path.join(many, more[0])))
    for name in more: open(os.path.join(many, name), "w").close()
    with open(os.path.join(many, "manifest.json"), "w") as f: json.dump({**little, "files": {**little["files"], **{name: none for name in more}}}, f)
    p = t.call("sim", many, "--simulator", "icarus", env=both)
    t.case("more sources than a command has room for", "" if p.returncode == 4 and b"its command is too long" in p.stderr else "status %d: %s" % (p.returncode, p.stderr[-200:]))


# ---- how far -------------------------------------------------------------------------------------------------------------------------------

def check_progress():
    """Counted down: within a quarter from a tenth of the way on, though the machine is not the one that the estimate was made on."""
    path, said = core("slow", "--pe", "1", "--simd", "1")
    cycles = said["predicted_cycles"]
    own = lambda k: clone(path, "progress", k)               # these four wait, side by side
    run = lambda seconds, turn=0: Terminal([t.mlo, "sim", own((seconds, turn)), "--simulator", "icarus"], tools("run-%d-%d" % (seconds, turn), cycles, seconds=seconds))
    def warm(path):                                          # what one simulator compiled spares the other nothing
        t.good("sim", path, "--simulator", "icarus", env=tools("warm", cycles))
        return path
    build = lambda build, run, turn=0: Terminal([t.mlo, "sim", warm(own((build, run, turn)))], tools("build-%d-%d" % (build, turn), cycles, seconds=run, build=build))
    forget(path)
    runs, builds = (8, 20), ((12, 3), (20, 5))               # of one to the other as on a machine (9.5 s and 2.4 s), not as long
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        seen = {what: pool.submit(f) for what, f in [(s, lambda s=s: run(s)) for s in runs] + [(b, lambda b=b: build(*b)) for b in builds]}
        seen = {what: f.result() for what, f in seen.items()}
    for seconds in runs:
        x = seen[seconds]
        if wrong_estimates(x, 0.1): x = run(seconds, turn=1)  # others took the processors: once more, alone
        t.case("a run of %d s is counted down" % seconds, ("status %d: %s" % (x.status, x.text[-300:]) if x.status else "") or wrong_estimates(x, 0.1))
        t.case("... with cycles", "" if re.search(r"Icarus, cycle [\d ]+ of 1 500 688 \(\d+ %\): about", x.text) else x.text[:300])
        t.case("... and the line is gone at the end", "" if not re.search("left|cycle \\d", "\n".join(x.screen)) and re.match("  PASS  ", x.screen[0]) else str(x.screen[:3]))
    for length in builds:
        x = seen[length]
        t.case("a build of %d s is told" % length[0], "" if x.status == 0 and re.search(r"Verilator compiles: C\+\+ \(\d\d %\): about", x.text) and "Verilator, cycle" in x.text else "%d %s" % (x.status, x.text[:500]))
        wrong = wrong_estimates(x, 0.25)
        if wrong:                                            # others took the processors: once more, alone
            forget(path)
            wrong = wrong_estimates(build(*length, turn=1), 0.25)
        t.case("... and counted down, with the run behind it", wrong)
    forget(path)
    x = Terminal([t.mlo, "sim", path, "--simulator", "icarus"], tools("quiet", cycles, seconds=2), stderr=False)
    t.case("no line where stderr is no terminal", "" if x.status == 0 and not x.pipe and "\x1b" not in x.text else "%r %r" % (x.pipe, x.text[:100]))
    t.case("a summary where stdout is one", "" if "2 048 words compared, all equal; 1 frame, 2 iterations" in x.text and "{" not in x.text else x.text[:300])
    x = Terminal([t.mlo, "sim", path, "--simulator", "icarus"], tools("quiet", cycles, seconds=2), stdout=False)
    t.case("JSON where stdout is none, though stderr is", "" if x.status == 0 and json.loads(x.pipe)["pass"] and x.text.count("\x1b") else "%r %r" % (x.pipe[:200], x.text[:100]))
    x = Terminal([t.mlo, "sim", path, "--simulator", "icarus", "--json"], tools("quiet", cycles, seconds=0), stderr=False)
    t.case("--json", "" if x.status == 0 and json.loads(x.text)["pass"] else x.text[:100])
    p = t.call("sim", path, "--simulator", "icarus", "--text", env=tools("quiet", cycles, seconds=0))
    t.case("--text", "" if p.returncode == 0 and p.stdout.startswith(b"  PASS  ") and not p.stderr else "%s %s" % (p.stdout[:100], p.stderr[:100]))
    p = t.call("sim", path, "--text", "--json")
    t.case("--text and --json", "" if p.returncode == 2 and b"exclude" in p.stderr else str(p.stderr))


# ---- stopped -------------------------------------------------------------------------------------------------------------------------------

def alive(folder):
    """Processes that run programs of a folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try: words = t.read("/proc/%s/cmdline" % pid).split(b"\0")
        except OSError: continue
        if any(w.startswith(folder.encode()) for w in words[:2]): found.append(pid)
    return found


def check_stopped():
    """Ctrl-C, and a signal to mlo alone: no temporary file, no line, no process, and the shell hears of the signal."""
    path, said = core("slow", "--pe", "1", "--simd", "1")
    cycles = said["predicted_cycles"]
    for what, number, after, flags in (("Ctrl-C in a run", signal.SIGINT, "cycle", ["--simulator", "icarus"]), ("Ctrl-C in a build", signal.SIGINT, "C++ (", []), ("SIGTERM in a build", signal.SIGTERM, "Verilog to", []),
                                       ("SIGHUP in a run", signal.SIGHUP, "cycle", ["--simulator", "icarus"])):
        forget(path)
        env = tools("long", cycles, seconds=100, build=60)

        def stop(x):
            end = time.monotonic() + 60
            while after not in x.text and time.monotonic() < end: time.sleep(0.05)
            os.kill(x.process.pid, number)
        x = Terminal([t.mlo, "sim", path, *flags], env, leave=stop)
        left = [f for f in os.listdir(path + "/sim") if ".part" in f or ".mlo-" in f or f.startswith("verilator-")]
        time.sleep(0.3)
        t.case(what, "" if x.status == -number and not left and not alive(env["PATH"]) and x.screen == [""] and x.seconds < 70 else "%s %s %s %s %.0f s" % (x.status, left, alive(env["PATH"]), x.screen, x.seconds))
    forget(path)
    env = tools("broken", cycles)
    with open(env["PATH"] + "/verilator", "w") as f: f.write(SLEEPER % (VERILATOR.replace("BUILD", "1").replace("PROGRAM", "''") + "\nsys.exit('%Error: no')"))
    x = Terminal([t.mlo, "sim", path], env)
    left = [f for f in os.listdir(path + "/sim") if "verilator" in f]
    t.case("a build that fails", "" if x.status == 5 and not left and "verilator does not compile the Verilog" in x.screen[0] else "%s %s %s" % (x.status, left, x.screen[:2]))


# ---- a real one ----------------------------------------------------------------------------------------------------------------------------

def check_icarus():
    """The bench itself tells how far it is, and nothing when nobody asks."""
    if not t.have("sim on a terminal", "iverilog", "vvp"): return
    path, said = core("fast", "--pe", "2", "--simd", "2", model=t.model("bert-1"))
    forget(path)
    x = Terminal([t.mlo, "sim", path, "--simulator", "icarus"], dict(os.environ))
    log = t.read(path + "/sim/run.log").decode()
    cycles = [int(v) for v in re.findall(r"^MLO AT (\d+)$", log, re.M)]
    t.case("the bench tells cycles", "" if x.status == 0 and 150 < len(cycles) < 400 and cycles == sorted(set(cycles)) else "%s %s" % (x.status, cycles[:9]))
    t.case("a summary read", "" if re.match(r"  PASS +[\d ]+ words compared, all equal", x.screen[0]) and "simulated, " in x.screen[1] else str(x.screen))
    t.good("sim", path, "--simulator", "icarus")
    t.case("nobody asks", "" if "MLO AT" not in t.read(path + "/sim/run.log").decode() else "it tells all the same")


def check_fusesoc():
    """mlo.core under FuseSoC: the bench finds what it reads, passes, and fails when a word is another."""
    env = dict(os.environ, PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"], **{"XDG_%s_HOME" % x: t.at("fusesoc-home") for x in ("CONFIG", "DATA", "CACHE")})
    if not t.have("mlo.core under FuseSoC", "iverilog", "vvp", "make"): return
    if not shutil.which("fusesoc", path=env["PATH"]): return t.skip("mlo.core under FuseSoC", "fusesoc not installed")
    path, _ = core("fused", "--pe", "2", "--simd", "2", model=t.model("bert-1"))

    def run(name):
        os.makedirs(t.at(name))
        return subprocess.run(["fusesoc", "--cores-root", path, "run", "--target", "sim", "mlo:core:mlo_top"], cwd=t.at(name), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    p = run("fuse-pass")
    t.case("mlo.core under FuseSoC passes", "" if p.returncode == 0 and re.search(r"^MLO PASS words \d+", p.stdout, re.M) else p.stdout[-400:] or "it says nothing")
    listed = set(re.findall(r"^      - ([^:\n]+)", t.read(path + "/mlo.core").decode(), re.M))
    read = {os.path.relpath(os.path.join(d, f), path) for d, _, files in os.walk(path) for f in files if f.endswith((".v", ".hex"))}
    t.case("mlo.core lists what there is", "" if listed == read and len(read) > 20 else str(listed ^ read))
    words = t.read(path + "/tb/golden.hex").decode().split("\n")
    words[3] = words[3][:-1] + ("0" if words[3][-1] != "0" else "1")
    with open(path + "/tb/golden.hex", "w") as f: f.write("\n".join(words))
    p = run("fuse-fail")
    t.case("another golden word fails under FuseSoC", "" if p.returncode and "MLO FAIL word 3" in p.stdout else "%d %s" % (p.returncode, p.stdout[-400:]))


def check_outputs():
    """--outputs of several frames: an array each, frame behind frame, of what the three parts make in ONNX Runtime."""
    if not t.have("outputs", "iverilog"): return
    path, ids, got = t.at("outputs"), np.array([[3], [141], [59]]), t.at("y.npz")
    t.good("compile", t.model("bert-1"), "--pe", "4", "--simd", "4", "-o", path)
    np.savez(t.at("x.npz"), input_ids=ids)
    t.good("sim", path, "--inputs", t.at("x.npz"), "--outputs", got, "--simulator", "icarus")
    parts = [session(os.path.join(path, "host", part + ".onnx")) for part in ("pre", "core", "post")]
    want = []
    for row in ids:
        values = {"input_ids": row[None]}
        for part in parts: values.update(zip([o.name for o in part.get_outputs()], part.run(None, {i.name: values[i.name] for i in part.get_inputs()})))
        want.append(values)
    with np.load(got) as z: off = [n for n in z.files if not np.allclose(z[n], np.concatenate([v[n] for v in want]), atol=1e-5)] or ([] if set(z.files) == {"layer_norm_4", "tanh"} else z.files)
    t.case("--outputs of three frames are the model's, stacked", ", ".join(off))
    os.remove(got)
    t.good("compile", t.model("mlp-res"), "--pe", "2", "--simd", "8", "-o", t.at("lengths"))
    p = t.call("sim", t.at("lengths"), "--frame-tokens", "3,8", "--outputs", got, "--simulator", "icarus", text=True)
    t.case("frames of different lengths are not stacked", "" if p.returncode == 3 and "different lengths" in p.stderr and not os.path.exists(got) else "status %d: %s" % (p.returncode, p.stderr))


def check_wide():
    """A beat of more bits than a simulator prints at once (8,192 in Verilator): words, probes, and where a beat differs."""
    if not t.have("wide", "verilator"): return
    path, channels, inner, rng = t.at("wide"), 520, 1, np.random.default_rng(1)
    nodes, weights, x = [], [], "x"
    for i in range(2):
        for name, shape in ("up", (channels, inner)), ("down", (inner, channels)): weights.append(helper.make_tensor("%s_%d" % (name, i), 1, shape, rng.normal(0, 0.3, shape).ravel()))
        nodes += [helper.make_node("MatMul", [x, "up_%d" % i], ["a_%d" % i], name="/layers.%d/up" % i), helper.make_node("Relu", ["a_%d" % i], ["b_%d" % i], name="/layers.%d/act" % i),
                  helper.make_node("MatMul", ["b_%d" % i, "down_%d" % i], ["c_%d" % i], name="/layers.%d/down" % i), helper.make_node("Add", [x, "c_%d" % i], ["x_%d" % i], name="/layers.%d/add" % i)]
        x = "x_%d" % i
    ends = [[helper.make_tensor_value_info(n, 1, (1, 1, channels))] for n in ("x", x)]
    wide = helper.make_model(helper.make_graph(nodes, "wide", *ends, weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    t.good("compile", t.write("wide.onnx", wide.SerializeToString()), "--pe", channels, "--simd", 1, "-o", path)
    stream = json.loads(t.read(path + "/manifest.json"))["stream"]
    r = json.loads(t.good("sim", path, "--simulator", "verilator", "--probe"))
    t.case("a beat of %d bits, probed" % (stream["lanes"] * stream["bits"]), "" if stream["lanes"] * stream["bits"] > 8192 and r["probe"] == "every kernel's stream is right" else str(r)[:300])
    words = t.read(path + "/tb/golden.hex").decode().split("\n")
    with open(path + "/tb/golden.hex", "w") as f: f.write("\n".join(["%x" % (int(words[0], 16) ^ 1 << 16 * 512 + 3)] + words[1:]))
    p = t.call("sim", path, "--simulator", "verilator", text=True)
    told = re.search("token 0, channel 512: expected (-?[0-9]+), got (-?[0-9]+)", p.stderr)
    t.case("of a beat that differs the channel is said", "" if p.returncode == 1 and told and abs(int(told[1]) - int(told[2])) == 8 else "status %d: %s" % (p.returncode, p.stderr[-300:]))


t.main(check_choice, check_progress, check_stopped, check_icarus, check_fusesoc, check_outputs, check_wide, floor=42)
