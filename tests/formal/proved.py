# SPDX-License-Identifier: MIT
"""proved: a proof stands until something that it depends on changes.

    SCRIPT [NAME ...]     what proved.txt holds is believed, but for a sample that the date picks; all else is proved
    SCRIPT --all          nothing is believed
    SCRIPT --record       what was proved goes into proved.txt. `make prove` is --all --record, of every script
    SCRIPT --list         every proof with its key; `new` before those that proved.txt does not hold

The key of a proof is a hash of what the tools are given, files and commands, and of their versions. Of Verilog
its tokens count, without what `ifdef leaves out: comments and white space do not. A line of proved.txt: KEY SCRIPT
SECONDS DATE NAME, seconds being those of a CPU. A mutant that was refuted, a state that was reached, a bench that passed (../verilog/benches.py) are proofs, too."""
import argparse
import concurrent.futures
import dataclasses
import datetime
import functools
import hashlib
import multiprocessing
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
VERILOG = os.path.join(os.path.dirname(os.path.dirname(HERE)), "verilog")
HELD = os.path.join(HERE, "proved.txt")
sys.path.insert(0, os.path.dirname(HERE))
import cases
DAYS = 10               # in about so many days each proof is made again,
BUDGET = 15             # or in as many as it takes if that is more than so many seconds a day of a script
TOKEN = re.compile(r"""
    (?P<blank> \s+ | //[^\n]* | /\*.*?\*/ )
  | (?P<condition> `(?:ifdef|ifndef)\s+\w+ | `(?:else|endif)\b )
  | `\w+[^\n]*                                          # any other directive: its line
  | "(?:\\.|[^"\\])*" | \\\S+ | [\w$']+
  | <<<|>>>|===|!==|<<|>>|<=|>=|==|!=|&&|\|\||\*\*|~&|~\||~\^|\^~|\+:|-:|->|=>|\(\*|\*\)|::
  | .""", re.X | re.S)


# ---- keys ----------------------------------------------------------------------------------------

class File(typing.NamedTuple):
    """One that the tools are given."""
    name: str
    text: str
    formal: typing.Optional[bool] = True    # it is read with FORMAL defined, or SYNTHESIS; None: by a simulator, with neither


@dataclasses.dataclass(eq=False)
class Proof:
    name: str
    module: str                         # by which it is picked
    files: list                         # Files
    commands: list                      # texts, which name the files
    prove: typing.Callable              # of the folder with the files in it: whether it holds, what to say
    wrong: str = ""                     # why there is nothing to prove: a mutant of a text that is not there


def tokens(file):
    defined = {True: {"YOSYS", "FORMAL"}, False: {"YOSYS", "SYNTHESIS"}, None: set()}[file.formal]
    words, live = [], [True]
    for match in TOKEN.finditer(file.text):
        if match.lastgroup == "condition":
            word, *name = match.group().split()
            if word == "`endif":
                live.pop()
            elif word == "`else":
                live[-1] = not live[-1]
            else:
                live.append((name[0] in defined) == (word == "`ifdef"))
        elif match.lastgroup != "blank" and all(live):
            words.append(match.group())
    return words


@functools.lru_cache(None)
def tools():
    """The versions; yosys-smtbmc has none but that of Yosys, which it comes with."""
    asked = [["yosys", "-V"], ["z3", "--version"], ["yosys-abc", "-c", "version"]]
    there = [x for x in asked if shutil.which(x[0])]
    return [subprocess.run(x, stdout=subprocess.PIPE, text=True).stdout for x in there]


@functools.lru_cache(None)
def digest(file):
    return hashlib.sha256("\n".join(tokens(file)).encode()).hexdigest()


def key(proof):
    given = [[f.name, f.formal, digest(f)] for f in proof.files]
    return hashlib.sha256(repr((given, proof.commands, tools())).encode()).hexdigest()[:20]


# ---- what is held --------------------------------------------------------------------------------

class Line(typing.NamedTuple):
    key: str
    script: str
    seconds: float
    date: str
    name: str


def read():
    """The lines of proved.txt."""
    if not os.path.exists(HELD):
        return []
    with open(HELD) as f:
        rows = [row.rstrip("\n").split(" ", 4) for row in f if not row.startswith("#")]
    return [Line(k, script, float(seconds), date, name) for k, script, seconds, date, name in rows]


def write(script, lines):
    """Puts these lines in the place of those of a script."""
    others = [x for x in read() if x.script != script]
    part = HELD + ".part"
    with open(part, "w") as f:
        f.write("# What was proved: key, script, seconds, date, name. `make prove` writes it; proved.py says why.\n")
        for x in sorted(others + lines, key=lambda x: x.script):
            f.write("%s %s %.1f %s %s\n" % x)
    os.replace(part, HELD)


def sample(lines, date):
    """Those that are proved again on a day. All stand in an order of their own, each as long as it costs; a day's window
    is a tenth of that, or BUDGET long and lies behind that of the day before: what begins within it has its turn. So
    each has one every DAYS days, or in as many windows as there are."""
    total = sum(x.seconds for x in lines)
    window = min(total / DAYS, BUDGET)
    opens = datetime.date.fromisoformat(date).toordinal() * window
    begins, picked = 0, []
    for x in sorted(lines, key=lambda x: hashlib.sha256((x.script + x.name).encode()).digest()):
        if (begins - opens) % total < window:
            picked.append(x)
        begins += x.seconds
    return picked


# ---- the scripts ---------------------------------------------------------------------------------

def arguments(doc):
    ap = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("modules", nargs="*", metavar="NAME", help="mlo_skid or skid")
    ap.add_argument("--all", action="store_true", help="prove what is in proved.txt, too")
    ap.add_argument("--record", action="store_true", help="write what was proved to proved.txt")
    ap.add_argument("--list", action="store_true", help="say the keys, prove nothing")
    ap.add_argument("-j", type=int, default=1, metavar="N", help="proofs at a time (1)")
    ap.add_argument("--keep", metavar="DIR", help="keep models and traces here")
    return ap


def attempt(number):
    """Makes a proof, in a process of its own: (it holds, CPU seconds, what to say)."""
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    proof, start = work[number], spent()
    directory = os.path.join(folder, "%03d_%s" % (number, proof.module))
    shutil.rmtree(directory, True)
    os.makedirs(directory)
    for f in proof.files:
        with open(os.path.join(directory, f.name), "w") as out:
            out.write(f.text)
    holds, said = proof.prove(directory)
    return holds, spent() - start, said


def make(proofs, j, keep):
    """Yields (proof, holds, seconds, said), as they end."""
    global work, folder                 # the processes inherit them
    work, folder = proofs, keep or tempfile.mkdtemp(prefix="mlo-formal-")
    with concurrent.futures.ProcessPoolExecutor(j, multiprocessing.get_context("fork")) as pool:
        running = {pool.submit(attempt, i): p for i, p in enumerate(proofs)}
        for f in concurrent.futures.as_completed(running):
            yield (running[f], *f.result())
    if not keep:
        shutil.rmtree(folder, True)


def main(script, proofs, args, floor):
    """Says of each proof whether it holds, and ends."""
    wanted = {m if m.startswith("mlo_") else "mlo_" + m for m in args.modules}
    today = datetime.date.today().isoformat()
    keys = {p: "" if p.wrong else key(p) for p in proofs}
    held = {x.key: x for x in read()}
    named = {x.name: x for x in held.values() if x.script == script}
    if args.list:
        print("".join("%s %s %s\n" % ("held" if keys[p] in held else "new ", keys[p], p.name) for p in proofs), end="")
        return
    asked = [p for p in proofs if not wanted or p.module in wanted]
    again = {x.key for x in sample([held[k] for k in keys.values() if k in held], today)}
    believed = [p for p in asked if keys[p] in held and keys[p] not in again and not args.all]
    for p in believed:
        cases.case("%s (proved on %s)" % (p.name, held[keys[p]].date))
    for p in asked:
        if p.wrong:
            cases.case(p.name, p.wrong)
    lines = {p: held.get(keys[p]) for p in believed}
    lines.update((p, held.get(keys[p]) or named.get(p.name)) for p in proofs if p not in asked)
    for p, holds, seconds, said in make([p for p in asked if p not in believed and not p.wrong], args.j, args.keep):
        said = "%s (%.1f s)" % (said, seconds)
        cases.case(p.name + (": " + said if holds else ""), "" if holds else said)
        lines[p] = Line(keys[p], script, seconds, today, p.name) if holds else None
    if args.record:
        write(script, [lines[p] for p in proofs if lines.get(p)])
    cases.end(floor, picked=wanted)
