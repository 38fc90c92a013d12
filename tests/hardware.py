# SPDX-License-Identifier: MIT
"""hardware: what tests of emitted Verilog share: build directories, `mlo sim`, frames of one's own through the emitted Makefile.

    import hardware
    r = hardware.Run(hardware.build("bert-tiny", "--pe", "4", "--simd", "4"), "--frames", "3", verilator=True)
    t.case("three frames", r.why())                         # '' when it passed and every word was compared

Two simulations run at a time (MLO_JOBS)."""
import concurrent.futures
import glob
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import numpy as np
import harness as t
from graphs import session
from models.big import SIZES

JOBS = int(os.environ.get("MLO_JOBS", "2"))
lock = threading.Lock()

PROGRAMS = os.path.join(t.cache, "benches")                # Verilator's, by the hash of their sources: what differs from run to run are plusargs


def big(name):
    """A model that models/big.py makes."""
    subprocess.run([sys.executable, os.path.join(t.tests, "models/big.py"), t.at(name + ".onnx"), name], stdout=subprocess.DEVNULL, check=True)
    return t.at(name + ".onnx")


def build(name, *flags, at=None):
    """A build directory; made once for the same arguments."""
    path = t.at("_".join([at or name, *flags]).replace("--", "").replace("/", "_"))
    with lock:
        if not os.path.exists(path):
            if "--loop" not in flags and name == "whisper-tiny": flags += ("--loop", "loop")
            t.good("compile", name if os.path.isfile(name) else big(name) if name in SIZES else t.model(name), *flags, "-o", path)
    return path


def copy(path, name):
    """A build directory to spoil, without what was simulated in it."""
    to = t.at(name)
    shutil.rmtree(to, True)
    shutil.copytree(path, to, ignore=shutil.ignore_patterns("sim"))
    return to


def clone(path, *key):
    """A build directory of its own for runs side by side; what was compiled is shared."""
    to = t.at(os.path.basename(path) + "-".join(map(str, ("-run",) + key)))
    os.makedirs(os.path.join(to, "sim"))
    for f in os.listdir(path):
        if f != "sim": os.symlink(os.path.join(path, f), os.path.join(to, f))
    for f in glob.glob(os.path.join(path, "sim/verilator-*")) + glob.glob(os.path.join(path, "sim/icarus-*")):
        os.symlink(os.path.realpath(f), os.path.join(to, "sim", os.path.basename(f)))
    return to


def key(path):
    """What mlo sim calls a compiled bench by: the digests of the Verilog that manifest.json lists, as it lies there."""
    listed = json.loads(t.read(os.path.join(path, "manifest.json")))["files"]
    each = [hashlib.sha256(t.read(os.path.join(path, f))).hexdigest() for f in listed if f.endswith(".v")]
    return hashlib.sha256("".join(each).encode()).hexdigest()[:12]


def program(path): return glob.glob(os.path.join(path, "sim/verilator-%s-*[0-9]/mlo_tb" % key(path)))[0]


def borrow(path):
    """What any script has compiled for Verilator lies in a build directory, too: mlo sim takes it by the hash of its sources."""
    os.makedirs(os.path.join(path, "sim"), exist_ok=True)
    for folder in glob.glob(os.path.join(PROGRAMS, "verilator-%s-*[0-9]" % key(path))):
        to = os.path.join(path, "sim", os.path.basename(folder))
        if not os.path.lexists(to): os.symlink(folder, to)
        os.utime(folder)


def lend(path):
    """And what was compiled here is there for the others: the program alone, not what it was made of."""
    for made in glob.glob(os.path.join(path, "sim/verilator-*[0-9]/mlo_tb")):
        folder = os.path.dirname(made)
        to = os.path.join(PROGRAMS, os.path.basename(folder))
        if os.path.islink(folder) or os.path.exists(to): continue
        part = "%s.%d" % (to, os.getpid())
        os.makedirs(part, exist_ok=True)
        shutil.copy(made, part)
        try: os.rename(part, to)
        except OSError: shutil.rmtree(part, True)              # somebody else was faster


def frames(path, file, lanes, bits):
    """The frames of a file of beats, each a flat array: what beats() wrote."""
    pad, found, rows = (bits + 7) // 8 * 2, [], []
    for line in t.read(os.path.join(path, file)).decode().split():
        rows.append([int(line[at:at + pad], 16) for at in range(len(line) - pad, 0, -pad)])
        if line[0] == "1":
            v = np.array(rows, np.int64) & ((1 << bits) - 1)
            found.append(np.where(v >> (bits - 1), v - (1 << bits), v).ravel())
            rows = []
    return found


judged = {}                                     # digest of core and words -> what ONNX Runtime said


def misjudged(path, flags):
    """'' or where the words that `mlo sim` held a core to are not ONNX Runtime's, of host/core.onnx. (Frames shorter than the core's it cannot run.)"""
    m, given = json.loads(t.read(os.path.join(path, "manifest.json"))), dict(zip(flags, flags[1:]))
    own = not given.keys() & {"--inputs", "--frame-tokens", "--jobs", "--generate"} and int(given.get("--frames", m["bench_frames"])) == m["bench_frames"]
    again = m.get("replay", {})
    names = ["input.hex", "golden.hex"] + ["mask.hex"] * m["stream"]["masked"] + ["replay.hex"] * bool(again) + ["replay_mask.hex"] * again.get("masked", False) + ["jobs.hex"] * ("slots" in m)
    files = [os.path.join("tb" if own else "sim", name) for name in names]
    key = hashlib.sha256(b"".join(t.read(os.path.join(path, f)) for f in ["host/core.onnx", *files])).hexdigest()
    if key not in judged: judged[key] = differing(path, m, files)
    return judged[key]


def differing(path, m, files):
    lanes, bits = m["stream"]["lanes"], m["stream"]["bits"]
    x, y = (frames(path, f, lanes, bits) for f in files[:2])
    found = {os.path.basename(f): f for f in files}
    masks = frames(path, found["mask.hex"], 1, 8) if "mask.hex" in found else [None] * len(x)
    again, more = m.get("replay"), {}
    if again: more[again["name"]] = frames(path, found["replay.hex"], again["lanes"], again["bits"])
    if "replay_mask.hex" in found: more["mlo_memory_mask"] = [v != 0 for v in frames(path, found["replay_mask.hex"], 1, 8)]
    core = session(os.path.join(path, "host/core.onnx"))
    form = {i.name: (i.shape, np.int16 if "16" in i.type else np.bool_ if "bool" in i.type else np.int8) for i in core.get_inputs()}
    if not x or len(x) != len(y) or len(x) != len(masks): return "%d frames go in, with %d masks, and %d come out" % (len(x), len(masks), len(y))
    if "slots" in m: return parted(path, m, core, form, found["jobs.hex"], x, masks, y)
    for k, (a, b, mask) in enumerate(zip(x, y, masks)):
        shape, dtype = form[m["input"]["name"]]
        if a.size != np.prod(shape): continue
        feed = {m["input"]["name"]: a.reshape(shape).astype(dtype)}
        if mask is not None: feed["mlo_mask"] = (mask != 0).reshape(form["mlo_mask"][0])
        feed.update({n: v[k].reshape(form[n][0]).astype(form[n][1]) for n, v in more.items()})
        want = core.run([m["output"]["name"]], feed)[0].ravel()
        if not np.array_equal(want, b): return "frame %d: %d of the words that mlo compares with are not ONNX Runtime's" % (k, (want != b).sum() if want.size == b.size else want.size)
    return ""


def jobs(path, file):
    """{slot, start, tokens} of each job of a file, as registers take them."""
    return [(v >> 40, v >> 16 & 0xFFFFFF, v & 0xFFFF) for v in (int(line, 16) for line in t.read(os.path.join(path, file)).split())]


def parted(path, m, core, form, file, x, masks, y):
    """'' or the job whose words are not rows of ONNX Runtime's whole frame: of what its slot holds by then, and anything behind it."""
    shape, dtype = form[m["input"]["name"]]
    order, slots = jobs(path, file), {}
    if len(order) != len(x): return "%d jobs, and words of %d" % (len(order), len(x))
    for k, ((slot, start, tokens), a, mask, b) in enumerate(zip(order, x, masks, y)):
        held, keys = slots.setdefault(slot, (np.full((m["tokens"], m["channels"]), 3, np.int64), np.ones(m["tokens"], bool)))
        if a.size != tokens * m["channels"]: return "job %d has %d words for %d tokens" % (k, a.size, tokens)
        held[start:start + tokens] = a.reshape(tokens, -1)
        if mask is not None: keys[start:start + tokens] = mask != 0
        feed = {m["input"]["name"]: held.reshape(shape).astype(dtype)}
        if mask is not None: feed["mlo_mask"] = keys.reshape(form["mlo_mask"][0])
        want = core.run([m["output"]["name"]], feed)[0].reshape(m["tokens"], -1)[start:start + tokens].ravel()
        if not np.array_equal(want, b): return "job %d (slot %d, %d + %d): %d of the words that mlo compares with are not ONNX Runtime's" % (k, slot, start, tokens, (want != b).sum())
    return ""


class Run:
    """One call of `mlo sim`, in Icarus, in Verilator, or (verilator=None) as mlo chooses; the words that it compares with are held to ONNX Runtime's."""
    def __init__(self, path, *flags, verilator=False):
        which = [] if verilator is None else ["--simulator", "verilator" if verilator else "icarus"]
        if os.path.exists(os.path.join(path, "manifest.json")) and verilator is not False: borrow(path)
        p = t.call("sim", path, *flags, *which, timeout=1400)
        lend(path)
        self.status, self.error = p.returncode, p.stderr.decode(errors="replace").strip()
        try: self.report = json.loads(p.stdout)
        except ValueError: self.report = {}
        self.manifest = json.loads(t.read(os.path.join(path, "manifest.json")))
        self.wrong = misjudged(path, tuple(map(str, flags))) if self.status == 0 else ""
        if "slots" in self.manifest: self.jobs = jobs(path, "sim/jobs.hex" if {"--jobs", "--inputs", "--generate"} & set(flags) else "tb/jobs.hex")

    def __getattr__(self, key): return self.__dict__["report"].get(key)

    def why(self, tokens=None):
        """'' when it passed and every word of so many tokens (default: of full frames) was compared."""
        if self.status or self.report.get("pass") is not True: return "status %d: %s" % (self.status, self.error or self.report)
        if "slots" in self.manifest: tokens = sum(n for _, _, n in self.jobs)
        words = (tokens or self.frames * self.manifest["tokens"]) * self.manifest["channels"] * self.manifest["output"].get("times", 1)
        if self.words != words: return "%s words compared, not %d" % (self.words, words)
        if self.wrong: return self.wrong
        if len(self.frame_done) != self.frames or sorted(self.frame_done) != self.frame_done or self.frame_done[-1] != self.cycles: return "frames done at %s of %s cycles" % (self.frame_done, self.cycles)
        return ""

    def timing(self): return [self.cycles, self.frame_done, self.weight_beats] + [[k["busy"], k["starved"], k["blocked"]] for k in self.kernels or []]


def together(*jobs):
    """Calls functions, JOBS at a time."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool: return [f.result() for f in [pool.submit(j) for j in jobs]]


def has_cocotb(name):
    """Whether Icarus, cocotb and cocotbext-axi are here; if not, `name` is absent."""
    if not t.have(name, "iverilog"): return False
    if importlib.util.find_spec("cocotb") and importlib.util.find_spec("cocotbext.axi"): return True
    t.absent(name, "cocotb or cocotbext-axi not installed")
    return False


def cocotb(path):
    """'' when the emitted cocotb/test_mlo.py of a build passes, or what it says."""
    env = dict(os.environ, PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])
    p = subprocess.run([sys.executable, "cocotb/test_mlo.py"], cwd=path, capture_output=True, text=True, timeout=600, env=env)
    return "" if p.returncode == 0 and "PASS=1 FAIL=0" in p.stdout else "status %d: %s" % (p.returncode, p.stdout + p.stderr)


def beats(arrays, lanes, bits):
    """Frames as the bench's hexadecimal words: tlast, then the lanes, the last one first."""
    lines, pad = [], (bits + 7) // 8 * 8
    for a in arrays:
        rows = a.reshape(-1, lanes).astype(np.int64) & ((1 << pad) - 1)
        lines += ["%d%s" % (i + 1 == len(rows), "".join("%0*x" % (pad // 4, v) for v in row[::-1])) for i, row in enumerate(rows)]
    return "".join(line + "\n" for line in lines)


def play(path, feeds, golden, verilator=False):
    """Frames through the emitted Makefile and Icarus, or the bench as Verilator compiled it, against words from elsewhere: mlo evaluates
    nothing here. '' or what went wrong."""
    m = json.loads(t.read(os.path.join(path, "manifest.json")))
    lanes, bits = m["stream"]["lanes"], m["stream"]["bits"]
    words = {"x.hex": beats([f[m["input"]["name"]] for f in feeds], lanes, bits), "y.hex": beats(golden, lanes, bits), "m.hex": beats([f["mlo_mask"] for f in feeds if "mlo_mask" in f], 1, 8)}
    for file, content in words.items():
        with open(os.path.join(path, file), "w") as f: f.write(content)
    count, masks = (words[k].count("\n") for k in ("x.hex", "m.hex"))
    said = "+input=x.hex +golden=y.hex +mask=m.hex +beats=%d +mask_beats=%d" % (count, masks)
    command = ["make", "-C", path, "sim", "VFLAGS=-Pmlo_tb.WORDS=%d" % count, "ARGS=" + said]
    if verilator:
        why = Run(path, verilator=True).why()
        if why: return why
        command = [program(path), *said.split()]
    p = subprocess.run(command, cwd=path, capture_output=True, text=True, timeout=3000)
    last = [l for l in p.stdout.splitlines() if l.startswith(("MLO PASS", "MLO FAIL"))]
    return "" if p.returncode == 0 and last and last[0].startswith("MLO PASS words %d " % count) else "status %d: %s %s" % (p.returncode, last, p.stderr[-200:])
