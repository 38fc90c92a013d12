# SPDX-License-Identifier: MIT
"""bench: what the Verilog benches share. Compile and run Icarus, write vectors, draw numbers.

A bench NAME is tests/verilog/NAME_tb.v (top module NAME_tb) driven by tests/verilog/NAME.py:

    import bench
    rng = bench.Rng(1)
    words = rng.ints(100, 8)                                   # 100 unsigned 8-bit numbers
    r = bench.run("fifo", {"WIDTH": 8, "DEPTH": 3},            # parameters of fifo_tb
                  {"in.hex": bench.hexwords(words, 8)},        # files in the simulation's directory
                  seed=1, stall=30)                            # plusargs: $value$plusargs("seed=%d", seed)
    assert r["latency"] == 2                                   # from the line `PASS latency=2 ...`
    bench.ok("fifo", "WIDTH=8")                                # a group of such runs is done
    bench.end(floor=1, simulations=1)                          # so many groups and runs there are, at least: fewer are a failure

The simulation runs in a directory of its own, so NAME_tb.v reads "in.hex" by that name and may write "out.hex" (`r.read("out.hex")`).
It must print exactly one line that starts with PASS and none that starts with FAIL; anything else, or a timeout, ends the script with status 1.
"""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
VERILOG = os.path.join(ROOT, "verilog")

sys.path.insert(0, os.path.dirname(HERE))
import cases

_work = tempfile.mkdtemp(prefix="mlo-bench-")
atexit.register(shutil.rmtree, _work, True)
_compiled = {}                  # (name, parameters) -> vvp file: seeds share one compilation
_runs = 0
_mutants = None                 # a folder of modules that stand for those of verilog/


class Rng:
    """xorshift64*: the same numbers on every machine and numpy version."""

    def __init__(self, seed=1):
        self.s = (seed * 0x9E3779B97F4A7C15 + 0x1234567) & (2**64 - 1) or 1
        for _ in range(4):
            self.u64()

    def u64(self):
        s = self.s
        s ^= s >> 12
        s ^= (s << 25) & (2**64 - 1)
        s ^= s >> 27
        self.s = s
        return (s * 0x2545F4914F6CDD1D) & (2**64 - 1)

    def below(self, n):
        """0 .. n-1"""
        return (self.u64() >> 11) * n >> 53

    def between(self, lo, hi):
        """lo .. hi, both included"""
        return lo + self.below(hi - lo + 1)

    def bits(self, n):
        """unsigned number of n bits, n as large as you like"""
        v = 0
        for i in range(0, n, 32):
            v |= (self.u64() >> 32) << i
        return v & ((1 << n) - 1)

    def ints(self, count, bits):
        return [self.bits(bits) for _ in range(count)]

    def signed(self, count, bits):
        return [self.bits(bits) - (1 << (bits - 1)) for _ in range(count)]

    def chance(self, percent):
        return self.below(100) < percent


def pack(lanes, bits):
    """lanes (signed or unsigned, lane 0 lowest) -> one unsigned word"""
    v = 0
    for i, x in enumerate(lanes):
        v |= (int(x) & ((1 << bits) - 1)) << (i * bits)
    return v


def unpack(word, lanes, bits, signed=True):
    """one unsigned word -> list of lanes"""
    out = []
    for i in range(lanes):
        x = (word >> (i * bits)) & ((1 << bits) - 1)
        out.append(x - (1 << bits) if signed and x >> (bits - 1) else x)
    return out


def beats(channels, lanes, bits):
    """a token's channels -> its stream beats, lowest channel in lane 0 of the first beat"""
    channels = [int(x) for x in channels]
    assert len(channels) % lanes == 0
    return [pack(channels[i:i + lanes], bits) for i in range(0, len(channels), lanes)]


def turns(pe, cycles):
    """that requantizers take for a group of PE sums, which is done every so many cycles"""
    return max(d for d in range(1, pe + 1) if pe % d == 0 and d <= cycles)


def param_beats(words, width, axi_width=128):
    """the words of one mlo_param bank -> the beats that load it (padding is zero)"""
    pw = 8
    while pw < width:
        pw *= 2
    if pw <= axi_width:
        per = axi_width // pw
        return [pack(words[i:i + per], pw) for i in range(0, len(words), per)]
    n = -(-width // axi_width)
    return [(w >> (axi_width * i)) & ((1 << axi_width) - 1) for w in words for i in range(n)]


def hexwords(words, bits):
    """text for $readmemh: one word of `bits` bits per line"""
    digits = (bits + 3) // 4
    mask = (1 << bits) - 1
    return "".join("%0*x\n" % (digits, int(w) & mask) for w in words)


class Result(dict):
    """The name=value pairs of the PASS line, as integers where they are; .text is the whole output."""

    def __init__(self, text, directory):
        super().__init__()
        self.text = text
        self.directory = directory

    def read(self, name):
        with open(os.path.join(self.directory, name)) as f:
            return f.read()

    def read_hex(self, name):
        """words of a file written with %h, one per line; x or z raises ValueError"""
        return [int(line, 16) for line in self.read(name).split()]


class Caught(Exception):
    """What fail says of a mutant."""


def caught(module, changes, attempt):
    """Whether attempt() fails with a module in which NEW stands for OLD; changes is a list of (OLD, NEW)."""
    global _mutants
    with open(os.path.join(VERILOG, module + ".v")) as f: text = f.read()
    for old, new in changes:
        if text.count(old) != 1: fail(module, "found %d times: %s" % (text.count(old), old))
        text = text.replace(old, new)
    _mutants = tempfile.mkdtemp(dir=_work)
    with open(os.path.join(_mutants, module + ".v"), "w") as f: f.write(text)
    try: attempt()
    except Caught: return True
    finally: _mutants = None
    return False


def fail(name, why, text=""):
    if _mutants: raise Caught(why)
    tail = "\n".join(text.splitlines()[-20:])
    if tail:
        print(tail)
    cases.case(name, why)
    sys.exit(1)


def compile_tb(name, params=None, defines=()):
    """Icarus-compile NAME_tb with parameter overrides; returns the vvp file. Cached."""
    params = dict(params or {})
    key = (name, tuple(sorted(params.items())), tuple(defines), _mutants)
    if key in _compiled:
        return _compiled[key]
    out = os.path.join(_work, "%s_%d.vvp" % (name, len(_compiled)))
    cmd = ["iverilog", "-g2005", "-o", out, "-s", name + "_tb", *(["-y", _mutants] if _mutants else []), "-y", VERILOG, "-y", HERE]
    cmd += ["-P%s_tb.%s=%s" % (name, k, int(v)) for k, v in params.items()]
    cmd += ["-D" + d for d in defines]
    cmd += [os.path.join(HERE, name + "_tb.v")]
    if os.environ.get("MLO_USED"): cmd[1:1] = ["-Mall=" + out + ".used"]
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if p.returncode or "warning" in p.stdout:
        fail(name, "iverilog %s" % params, p.stdout)
    if os.environ.get("MLO_USED"): note_used(out + ".used")
    _compiled[key] = out
    return out


def note_used(path):
    """The files that Icarus has read, for benches.py; a mutant stands for the module of its name."""
    with open(path) as f, open(os.environ["MLO_USED"], "a") as out: out.write(f.read())


def run(name, params=None, files=None, timeout=600, defines=(), **plusargs):
    """Compile NAME_tb with `params`, write `files` (name -> text), simulate with +key=value plusargs. Returns a Result or exits 1."""
    global _runs
    vvp = compile_tb(name, params, defines)
    directory = os.path.join(_work, "run%d" % (_runs % 4))      # the last four stay for .read()
    shutil.rmtree(directory, True)
    os.makedirs(directory)
    _runs += 1
    for f, text in (files or {}).items():
        with open(os.path.join(directory, f), "w") as h:
            h.write(text)
    what = "%s %s" % (params or {}, plusargs)
    cmd = ["vvp", "-n", vvp] + ["+%s=%s" % kv for kv in plusargs.items()]
    try:
        p = subprocess.run(cmd, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        fail(name, "no end after %d s: %s" % (timeout, what))
    lines = p.stdout.splitlines()
    passed = [x for x in lines if x.startswith("PASS")]
    failed = [x for x in lines if x.startswith("FAIL")]
    if p.returncode or len(passed) != 1 or failed:
        fail(name, what, p.stdout)
    r = Result(p.stdout, directory)
    for word in passed[0].split()[1:]:
        if "=" in word:
            k, v = word.split("=", 1)
            r[k] = int(v) if v.lstrip("-").isdigit() else v
    return r


def check(name, condition, what):
    """assert that survives python -O and says what it was about"""
    if not condition:
        fail(name, what)


_start = time.time()


def ok(name, what):
    """The line a bench script prints per configuration group."""
    cases.case("%s: %s (%d simulations, %.1f s)" % (name, what, _runs, time.time() - _start))


def end(floor, simulations):
    """The last line of a bench script: it has so many configuration groups, and ran so many simulations, at least."""
    if _runs < simulations: cases.case("simulations", "%d; there are %d at least" % (_runs, simulations))
    cases.end(floor)
