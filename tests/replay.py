#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""replay: a simulation stands until something that it simulates changes.

    replay.py --record        what was simulated since the last time goes into replayed.txt; what no script has asked for in so many days goes out of it
    iverilog, verilator, vvp  by these names (links in build/tests/replay/bin, which run.py puts in front of the PATH of scripts that simulate cores)

`mlo sim` and `make sim` make frames and golden words, compile the bench and judge what it says as ever; what stands between is a function of its files
and its arguments, so the same ones get the same lines. The key of a run: the simulator and its version, its options, the Verilog without comments
(together: the program), the arguments, and every file that these name or that the bench reads by itself. A run whose key replayed.txt holds says what
it said then, and its program is not even compiled. All else is simulated: new keys; runs that write files (waves, traces, probes); programs that the
date picks, whose lines have then to be those of replayed.txt; everything with run.py --full, and where a script is called by itself.

A line of replayed.txt: KEY PROGRAM DATE STATUS LINES, the day when it was asked for last (of those when somebody recorded), the lines of the bench with | between them."""
import contextlib
import datetime
import fcntl
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
HELD = os.environ.get("MLO_REPLAYED") or os.path.join(HERE, "replayed.txt")
STORE = os.environ.get("MLO_REPLAY") or os.path.join(os.path.dirname(HERE), "build/tests/replay")
BIN = os.path.join(STORE, "bin")
DAYS = 20                                               # in so many days each program is compiled and run again
FORGOTTEN = 40                                          # days: what scripts draw by the date came up more than once
ICARUS = re.compile(r"-g20\d\d|-Pmlo_tb\.\w+=\d+")      # options that take no word of their own
WRITES = re.compile(r"-(fst|vcd)$|\+(wave|trace|probe|kv|progress)=")


# ---- what there is -----------------------------------------------------------------------------------------------------------------

def real(name):
    """The simulator itself."""
    return shutil.which(name, path=os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if os.path.realpath(p) != os.path.realpath(BIN)))


def digest(*parts): return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


def content(path):
    with open(path, "rb") as f: return f.read()


def bare(path):
    """Verilog without comments; strings stay."""
    text = content(path).decode()
    return re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda m: m[1] or " ", text, flags=re.S)


def held():
    """key -> (program, date, status, what it said)."""
    if not os.path.exists(HELD): return {}
    rows = [line.rstrip("\n").split(" ", 4) for line in open(HELD) if not line.startswith("#")]
    return {key: (program, date, int(status), text.replace("|", "\n")) for key, program, date, status, text in rows}


def due(program):
    """Whether the date picks it."""
    day = int(os.environ.get("MLO_DAY") or datetime.date.today().toordinal())
    return int(program[:8], 16) % DAYS == day % DAYS


@contextlib.contextmanager
def locked(name):
    os.makedirs(STORE, exist_ok=True)
    with open(os.path.join(STORE, name + ".lock"), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


# ---- programs ----------------------------------------------------------------------------------------------------------------------

def asked(name, args):
    """(options, sources, where the program goes), or None: nothing that is replayed."""
    options, sources, to, words = [], [], {}, iter(args)
    for word in words:
        if word in ("-o", "--Mdir"): to[word] = next(words)
        elif word == "--build-jobs": next(words)
        elif word.endswith(".v"): sources.append(word)
        elif name == "verilator" or ICARUS.fullmatch(word): options.append(word)
        elif word == "-s": options += [word, next(words)]
        else: return None
    good = sources and to.keys() == ({"-o"} if name == "iverilog" else {"-o", "--Mdir"}) and not any(w.startswith("--trace") for w in options)
    return (options, sources, to) if good and (name == "iverilog" or "--binary" in options) else None


def kept(name, options, sources):
    """The program's own folder, which has what it is made of, whatever becomes of the build directory."""
    version = subprocess.run([real(name), "-V" if name == "iverilog" else "--version"], stdout=subprocess.PIPE, text=True).stdout.split("\n")[0]
    program = digest(name, version, options, [(os.path.basename(s), bare(s)) for s in sources])
    folder = os.path.join(STORE, program)
    with locked(program):
        if not os.path.exists(folder):
            part = folder + ".part"
            shutil.rmtree(part, True)
            os.makedirs(part)
            for s in sources: shutil.copy(s, part)
            with open(part + "/how.json", "w") as f: json.dump([name, options, [os.path.basename(s) for s in sources]], f)
            os.rename(part, folder)
    return program


def build(program):
    """Compiles it, once. subprocess's result, or None where it was there."""
    folder = os.path.join(STORE, program)
    name, options, sources = json.loads(content(folder + "/how.json"))
    made = {"iverilog": ["-o", "program"], "verilator": ["--build-jobs", "2", "--Mdir", "obj", "-o", "../program"]}[name]
    with locked(program):
        if os.path.exists(folder + "/program"): return None
        p = subprocess.run([real(name), *options, *made, *sources], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        shutil.rmtree(folder + "/obj", True)
        if p.returncode and os.path.exists(folder + "/program"): os.remove(folder + "/program")
        return p


def compiles(name, args):
    """Makes a program that says which one it is. What is not held is compiled at once: a mistake is found where it is looked for."""
    wanted = asked(name, args)
    if not wanted: os.execv(real(name), [name, *args])
    options, sources, to = wanted
    program = kept(name, options, sources)
    if due(program) or all(p != program for p, *_ in held().values()):
        p = build(program)
        if p:
            print(p.stdout, end="")
            if p.returncode: return p.returncode
    file = to["-o"] if name == "iverilog" else os.path.join(to["--Mdir"], to["-o"])
    os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
    with open(file, "w") as f: f.write("#!/bin/sh\nexec %s %s run %s \"$@\"\n" % (sys.executable, os.path.realpath(__file__), program))
    os.chmod(file, 0o755)
    return 0


# ---- runs --------------------------------------------------------------------------------------------------------------------------

def key_of(program, args):
    """What the run reads, by what is in it: files that arguments name, and those that the bench reads where none does."""
    named = [(w.split("=", 1)[0], digest(content(w.split("=", 1)[1]))) if "=" in w and os.path.isfile(w.split("=", 1)[1]) else w for w in args]
    own = sorted(glob.glob("tb/*.hex") + glob.glob("*.hex"))
    return digest(program, named, [(f, digest(content(f))) for f in own])


def simulates(program, args):
    build(program)
    name = json.loads(content(os.path.join(STORE, program, "how.json")))[0]
    return [*([real("vvp"), "-n"] if name == "iverilog" else []), os.path.join(STORE, program, "program"), *args]


def verdict(text): return [l for l in text.splitlines() if l.startswith(("MLO ", "PROTOCOL "))]    # others have numbers of lines, which comments move


def replayed():
    """Whether run.py says so to this process."""
    return BIN in os.environ["PATH"].split(os.pathsep)


def stands(program, key, make, heart=str):
    """(status, text): what was said of a key when it was recorded; where it was not, or on the program's day, what make() says, whose heart is the same then."""
    os.makedirs(os.path.join(STORE, "asked"), exist_ok=True)
    mark = os.path.join(STORE, "asked", key)
    program_then, _, status, text = held().get(key, (None, "", 0, ""))
    if program_then and not due(program):
        open(mark, "a").close()
        return status, text
    now = make()
    if program_then and (now[0], heart(now[1])) != (status, heart(text)): return 1, now[1] + "MLO FAIL it said otherwise when it was recorded (%s of replayed.txt)\n" % key
    with open(mark, "w") as f: json.dump([program, *now], f)
    return now


def runs(program, args):
    """Says what the program says of these arguments."""
    if any(WRITES.match(w) for w in args):
        command = simulates(program, args)
        os.execv(command[0], command)
    def make():
        p = subprocess.run(simulates(program, args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return p.returncode, p.stdout
    status, text = stands(program, key_of(program, args), make, verdict)
    sys.stdout.write(text)
    return status


def record():
    """replayed.txt anew: with what was asked for since the last time, without what is forgotten."""
    today, old = datetime.date.today(), held()
    lines = {key: line for key, line in old.items() if (today - datetime.date.fromisoformat(line[1])).days <= FORGOTTEN}
    for path in glob.glob(os.path.join(STORE, "asked", "*")):
        key, said = os.path.basename(path), content(path)
        program, status, text = json.loads(said) if said else (old[key][0], *old[key][2:])
        if status in (0, 1) and "|" not in text: lines[key] = program, today.isoformat(), status, text
    with open(HELD + ".part", "w") as f:
        f.write("# what simulations said (replay.py): KEY PROGRAM DATE STATUS LINES\n")
        for key in sorted(lines): f.write("%s %s %s %d %s\n" % (key, *lines[key][:3], lines[key][3].replace("\n", "|")))
    os.replace(HELD + ".part", HELD)
    shutil.rmtree(os.path.join(STORE, "asked"), True)
    print("%d runs, %d of them new" % (len(lines), len(lines.keys() - old.keys())))
    return 0


def links():
    """BIN, with what of the simulators is here."""
    os.makedirs(BIN, exist_ok=True)
    with locked("links"):
        for name in "iverilog", "verilator", "vvp":
            if real(name) and not os.path.lexists(os.path.join(BIN, name)): os.symlink(os.path.realpath(__file__), os.path.join(BIN, name))
    return BIN


def main(name, args):
    if name in ("iverilog", "verilator"): return compiles(name, args)
    if name == "vvp":
        file = next((w for w in args if w[0] not in "-+"), "")
        line = content(file)[:400].split(b"\n")[1:2] if os.path.isfile(file) else []
        program = re.match(rb"exec \S+ \S+ run (\w+) ", line[0]) if line else None
        if not program: os.execv(real(name), [name, *args])
        return runs(program[1].decode(), [w for w in args if w != file and w != "-n"])
    if args[:1] == ["run"]: return runs(args[1], args[2:])
    return record() if args == ["--record"] else print(__doc__) or 2


if __name__ == "__main__":
    sys.exit(main(os.path.basename(sys.argv[0]), sys.argv[1:]))
