#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a person gets wrong: one line on stderr, the right status, and advice that works when it is followed.

    python tests/test_wrong_usage.py path/to/mlo [CHECK ...]

A row of WRONG is a command, its status, what the line says, and what a reader does then. NEAR: takes the word that the line asks about ("did you mean X?") in place of
the one that it names before; LOW, HIGH: the bound that the line names in place of the number; a command otherwise. Whatever it is has to succeed."""
import json, os, pty, re, shutil, subprocess
import numpy as np
import hardware
import harness as t

NEAR, LOW, HIGH = "near", "low", "high"
B, DYNAMIC, TEXT, STEP = "bert.onnx", "dynamic.onnx", "notes.txt", "step.onnx"


def place():
    """A folder with a model, the same quantized and folded, builds of it, and inputs."""
    d = t.at("place")
    if os.path.isdir(d): return d
    os.mkdir(d)
    for to, name in (B, "bert-tiny"), (DYNAMIC, "bert-tiny-dynamic"), (STEP, "stories260k-step"), ("one.onnx", "bert-1"): shutil.copy(t.model(name), os.path.join(d, to))
    shutil.copy(os.path.join(t.tests, "models/families/bert-d18-eager-none-a.onnx"), os.path.join(d, "little.onnx"))        # 8 tokens of 16 channels: Icarus takes no time
    shutil.copy(os.path.join(t.root, "examples", "tok512.bin"), d)
    with open(os.path.join(d, TEXT), "w") as f: f.write("a note\n" * 50)
    for name, lines in ("points", '{"cycles":9,"lut":7}\n'), ("broken", '{"cycles":9}\n{"cycles":\n'):
        with open(os.path.join(d, name + ".jsonl"), "w") as f: f.write(lines)
    np.savez(os.path.join(d, "x.npz"), input_ids=np.arange(32).reshape(1, 32))
    np.savez(os.path.join(d, "short.npz"), input_ids=np.arange(31).reshape(1, 31))
    for args in (["quantize", B, "-o", "q.json"], ["lower", "q.json", "-o", "l.json"], ["fold", "l.json", "--pe", "4", "--simd", "4", "--save-folding", "f.json", "-o", "folded.json"], ["compile", "little.onnx", *F, "-o", "build"],
                 ["compile", "q.json", "--target", "c", "-o", "plain"], ["quantize", STEP, "--context", "64", "-o", "sq.json"], ["emit", "sq.json", "--pe", "8", "--simd", "8", "-o", "teller"],
                 ["roll", B, "-o", "rolled.json"], ["extract", B, "--save-template", "layer.onnx", "-o", "marked.json"]): t.good(*args, cwd=d)
    with open(os.path.join(d, "keys.json"), "w") as f: json.dump({"pee": 4}, f)
    return d


F, S = ["--pe", "4", "--simd", "4"], ["sim", "build", "--simulator", "icarus", "--frame-tokens", "2"]
WRONG = [
    # verbs
    ("compil q.json -o o", 2, ["compil", "did you mean 'compile'?"], NEAR), ("simulate build --frame-tokens 2", 2, ["did you mean 'sim'?"], NEAR), ("chek rolled.json --against bert.onnx", 2, ["'check'?"], NEAR),
    ("help foldd", 2, ["'fold'?"], NEAR), ("xyzzy", 2, ["`mlo help` lists them"], "help"), ("help fold roll", 2, ["one [VERB] at a time"], "help roll"),
    # flags
    ("fold l.json --pee 4 --simd 4", 2, ["did you mean --pe?"], NEAR), ("fold l.json --pe 4 --smid 4", 2, ["--simd?"], NEAR), ("fold l.json -pe 4 --simd 4", 2, ["did you mean --pe?"], NEAR), ("fold l.json --target-cycle 60000", 2, ["--target-cycles?"], NEAR),
    ("fold l.json --xyzzy", 2, ["`mlo help fold` lists them"], "help fold"), ("fold l.json --stall 3", 2, ["belongs to: sim"], " ".join(S) + " --stall 3"), ("read bert.onnx --pe 4", 2, ["belongs to: fold, emit, compile"], "fold l.json --pe 4 --simd 4"),
    ("fold l.json --simd 4 --pe", 2, ["--pe needs a value: --pe N"], "fold l.json --simd 4 --pe 4"), ("read bert.onnx --onnx=1", 2, ["takes no value"], "read bert.onnx --onnx"), ("read bert.onnx one.onnx", 2, ["one [FILE|-] at a time"], "read bert.onnx"),
    ("show bert.onnx --dot --html", 2, ["exclude each other; give one"], "show bert.onnx --dot"), ("sim build --text --json", 2, ["exclude each other; give one"], " ".join(S) + " --text"),
    ("fold l.json --config keys.json --simd 4", 2, ["'pee'", "did you mean 'pe'?"], "fold l.json --pe 4 --simd 4"),
    # words
    ("fold l.json --pe 4 --simd 4 --memory blok", 2, ["did you mean block?", "layer, block, resident and auto"], NEAR), ("fold l.json --memory chip --pe 4 --simd 4", 2, ["layer, block, resident and auto"], "fold l.json --memory layer --pe 4 --simd 4"),
    ("fold sq.json --pe 8 --simd 8 --kv drm", 2, ["did you mean dram?"], NEAR), ("roll bert.onnx --as fin", 2, ["did you mean finn?", "scan and finn"], NEAR), ("quantize bert.onnx --scale pow", 2, ["did you mean pow2?"], NEAR),
    ("compile q.json --pe 4 --simd 4 --target verlog -o o", 2, ["did you mean verilog?"], NEAR), ("compile q.json --target rust -o o", 2, ["there are verilog and c"], "compile q.json --target c -o o"),
    ("sim build --simulator icarsu --frame-tokens 2", 2, ["did you mean icarus?"], NEAR), ("help --completion bsh", 2, ["did you mean bash?"], NEAR), ("fold l.json --device xczu9", 2, ["did you mean xczu9eg?"], NEAR),
    ("fold q.json --pe 4 --simd 4 --loop decoder", 4, ["there are: loop"], "fold q.json --pe 4 --simd 4 --loop loop"), ("read bert.onnx --shape ids=1x32", 2, ["'input_ids'"], "read bert.onnx --shape input_ids=1x32"),
    ("read bert.onnx --shape input_id=1x32", 2, ["did you mean 'input_ids'?"], "read bert.onnx --shape input_ids=1x32"),
    # numbers
    ("fold l.json --pe 0 --simd 4", 2, ["whole number from 1 to 65536"], LOW), ("fold l.json --pe 4.5 --simd 4", 2, ["whole number from 1 to 65536"], LOW), ("fold l.json --pe 99999999999 --simd 4", 2, ["from 1 to 65536"], HIGH),
    ("fold l.json --target-cycles 0", 2, ["whole number of 1 or more"], "fold l.json --target-cycles 100000"), ("fold l.json --target-cycles -5", 2, ["of 1 or more"], "fold l.json --target-cycles 100000"), ("fold l.json --budget-macs none", 2, ["of 1 or more"], "fold l.json --budget-macs 100"),
    ("quantize bert.onnx --weights 9", 2, ["from 2 to 8"], HIGH), ("quantize bert.onnx --activations 2", 2, ["from 4 to 16"], LOW), ("quantize bert.onnx --residual 32", 2, ["from 8 to 16"], HIGH), ("quantize bert.onnx --max-cost 0.5", 2, ["number from 1 to 2"], HIGH),
    ("fold l.json --pe 4 --simd 4 --axi-width 8192", 2, ["from 32 to 1024"], HIGH), ("fold l.json --pe 4 --simd 4 --axi-width 100", 2, ["power of two"], "fold l.json --pe 4 --simd 4 --axi-width 64"), ("fold l.json --pe 4 --simd 4 --frames-in-flight 999", 2, ["from 1 to 255"], LOW),
    ("sim build --frame-tokens 33", 2, ["from 1 to 8"], LOW), ("sim build --frame-tokens 2 --stall 100", 2, ["from 0 to 99"], LOW), ("sim build --frame-tokens 2 --frames 0", 2, ["from 1 to 256"], LOW), ("sim build --frame-tokens 2 --seed x", 2, ["whole number of 0 or more"], " ".join(S) + " --seed 0"),
    ("read dynamic.onnx --dim seq=x", 2, ["whole number of 1 or more"], "read dynamic.onnx --dim seq=32"), ("read dynamic.onnx --dim seq", 2, ["--dim seq=32"], "read dynamic.onnx --dim seq=32"), ("run step.onnx --context 64 --generate 400", 2, ["longer --context"], "run step.onnx --context 512 --generate 4"),
    # what belongs together
    ("compile q.json --pe 4 --simd 4", 2, ["-o DIR is needed"], "compile q.json --pe 4 --simd 4 -o o"), ("check rolled.json", 2, ["--against ORIGINAL.onnx is needed"], "check rolled.json --against bert.onnx"), ("fold l.json --target-fps 100", 2, ["needs --clock-mhz"], "fold l.json --target-fps 100 --clock-mhz 100"),
    ("fold l.json --target-cycles 60000 --pe 4", 2, ["exclude each other"], "fold l.json --target-cycles 60000"), ("fold l.json --budget-bits 9000000", 2, ["give --budget-macs"], "fold l.json --budget-bits 9000000 --budget-macs 200"),
    ("fold l.json --target-cycles 10", 1, ["the fastest folding takes"], "fold l.json --target-cycles 60000"), ("fold l.json --budget-macs 1", 1, ["the smallest folding has 6"], "fold l.json --budget-macs 6"),
    ("compile q.json --arena 20000 -o o", 2, ["give --target c, too"], "compile q.json --target c --arena 20000 -o o"), ("compile q.json --target c --arena 10 -o o", 4, ["take 16384 bytes"], "compile q.json --target c --arena 16384 -o o"),
    ("roll bert.onnx --hierarchy [[\"encoder.layer.0\"]]", 2, ["encoder (68)"], "roll bert.onnx --hierarchy [[\"encoder\",\"encoder.layer.0\"]]"),
    # files
    ("read nope.onnx", 2, ["nope.onnx: No such file"], "read bert.onnx"), ("read notes.txt", 3, ["this is text", "give the .onnx file"], "read bert.onnx"), ("read .", 2, ["is a directory; give a file"], "read bert.onnx"), ("read bert.onnx -o no/where.json", 2, ["cannot be written"], "read bert.onnx -o where.json"),
    ("sim", 2, ["mlo sim DIR"], " ".join(S)), ("sim bert.onnx", 2, ["mlo compile -o DIR"], " ".join(S)), ("sim nowhere", 2, ["mlo compile MODEL -o nowhere"], " ".join(S)), ("quantize bert.onnx --calib bert.onnx", 3, ["numpy.savez"], "quantize bert.onnx --calib x.npz"),
    ("run bert.onnx --inputs short.npz", 3, ["[1,32]"], "run bert.onnx --inputs x.npz"), ("sim plain --stall 10", 4, ["leave it out"], "sim plain"), ("sim build --jobs 0+2", 2, ["--context N makes one"], " ".join(S)),
    ("show points.jsonl --dot", 2, ["text or html"], "show points.jsonl --html"), ("show points.jsonl build", 2, ["shown alone", "leave build out"], "show points.jsonl"), ("show broken.jsonl --html", 3, ["line 2", "sweep.sh"], "show points.jsonl --html"),
    ("show l.json --position 3", 2, ["of a core with caches"], "show l.json"),
    ("sim teller --jobs 0-2", 2, ["[FRAME@][SLOT:]START+TOKENS"], "sim teller --jobs 0+1"), ("generate teller --prompt hi", 2, ["begins with no token id"], "generate teller --prompt hi --tokenizer tok512.bin --count 2"),
]


def followed(args, line, then):
    """The command that the line advises."""
    if then == NEAR:
        word = re.search(r"did you mean '?([\w-]+)'?\?", line)[1]
        before = line.split("did you mean")[0]
        places = {a: [m.start() for m in re.finditer(r"(?<![\w-])%s(?![\w-])" % re.escape(a), before)] for a in args}
        wrong = max((a for a in args if places[a]), key=lambda a: places[a][-1])
        return [word if a == wrong else a for a in args]
    if then in (LOW, HIGH):
        low, high = re.search(r"from ([\d.]+) to ([\d.]+)", line).groups()
        wrong = re.search(r"--[\w-]+:? '?(\S+?)'?(?: is|:| )", line)[1] if "max-cost" not in line else "0.5"
        return [(low if then == LOW else high) if a == wrong else a for a in args]
    return then.split()


def check_table():
    d = place()
    for command, status, words, then in WRONG:
        args = command.split()
        p = t.call(*args, cwd=d)
        err = re.sub(r"(?m)^mlo: (warning: .*|fold: .* choose another|lower: .* chooses it)\n", "", p.stderr.decode())
        why = ""
        if p.returncode != status: why = f"status {p.returncode}, not {status}: {err}"
        elif not re.fullmatch(r"mlo: [^\n]*\[MLO_E_[A-Z]+\]\n", err): why = "not one line: " + err
        elif len(err) > 420: why = f"{len(err)} characters: " + err
        elif any(w not in err for w in words): why = f"no {[w for w in words if w not in err]}: " + err
        elif re.search(r"\d{10}", err.replace("99999999999", "")): why = "a bound that is no person's: " + err
        else:
            good = followed(args, err, then)
            q = t.call(*good, cwd=d)
            if good == args or q.returncode: why = f"mlo {' '.join(good)}: status {q.returncode}: {q.stderr.decode()[-200:]}"
        t.case(command, why)


def on_terminal(*args):
    """What comes to a terminal that is stdout, while stderr is another file."""
    master, slave = pty.openpty()
    p = subprocess.Popen([t.mlo, *args], stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE, cwd=place())
    os.close(slave)
    said = b""
    while True:
        try: more = os.read(master, 65536)
        except OSError: break
        if not more: break
        said += more
    err = p.stderr.read().decode()
    os.close(master)
    return p.wait(), said.decode(), err


def check_terminal():
    """A person gets the line alone; the next stage of a pipe, the document."""
    for args, status in (["read", "nope.onnx"], 2), (["fold", "l.json", "--target-cycles", "10"], 1), (["compil"], 2), (["quantize", B, "--weights", "9"], 2):
        code, out, err = on_terminal(*args)
        t.case("on a terminal: " + " ".join(args), "" if code == status and out == "" and err.count("\n") == 1 else f"{code} {out[:100]!r} {err!r}")
        p = t.call(*args, cwd=place())
        t.case("in a pipe: " + " ".join(args), "" if "error" in json.loads(p.stdout) else p.stdout[:100] or "it says nothing")


def check_person():
    """On a terminal a stage says what `show` says of its model, and where the model itself goes; a page is written to a file."""
    for verb, model, word in ("read", B, "input_ids"), ("roll", B, "loop: 2 iterations"), ("quantize", "q.json", "loop: 2 iterations"), ("lower", "q.json", "mlo.MVU"):
        code, out, err = on_terminal(verb, model)
        want = t.good("show", input=t.good(verb, model, cwd=place()), cwd=place()).decode().splitlines()[-5:]
        t.case("on a terminal: %s %s" % (verb, model), "" if code == 0 and word in out and out.splitlines()[-5:] == want and err.endswith("mlo %s .. -o FILE\n" % verb) else f"{code} {out[-300:]!r} {err!r}")
    code, out, err = on_terminal("read", B, "-o", "there.json")
    t.case("on a terminal: -o", "" if code == 0 and not out and not err and t.good("show", "there.json", cwd=place()) else f"{out[:100]!r} {err!r}")
    for kind in "html", "svg":
        code, out, err = on_terminal("show", B, "--" + kind)
        t.case("on a terminal: show --" + kind, "" if code == 2 and not out and err.count("\n") == 1 and "add -o FILE." + kind in err else f"{code} {out[:100]!r} {err!r}")
        code, out, err = on_terminal("show", B, "--" + kind, "-o", "page." + kind)
        t.case("on a terminal: show --%s -o" % kind, "" if code == 0 and not out and os.path.getsize(os.path.join(place(), "page." + kind)) > 2000 else f"{code} {err}")


def screen(said):
    """The lines that a terminal shows in the end."""
    return [line.rpartition("\r\x1b[K")[2] for line in said.replace("\r\n", "\n").split("\n")]


def check_progress():
    """Long work says on a terminal's stderr how far it is, and leaves nothing there; elsewhere it says nothing."""
    model, build = hardware.big("base-2"), t.at("two layers")
    p = t.on_terminal([t.mlo, "compile", model, "--pe", "8", "--simd", "8", "-o", build], stdout=subprocess.DEVNULL)
    lines = re.findall(r"\r\x1b\[K  ([a-z ]+(?:params\.\w+)?) \((\d+) %\): about ([\w ]+) left", p.stdout)
    t.case("progress: compile says how far it is", "" if p.returncode == 0 and len(lines) >= 2 and all(0 <= int(x) <= 100 for _, x, _ in lines) else p.stdout[:300])
    for a, b in zip(lines, lines[1:]):
        if a[0] == b[0] and int(a[1]) > int(b[1]) and b[0] != "calibrates": t.case("progress: no way back", f"{a} and then {b}")
    left = [l for l in screen(p.stdout) if "left" in l]
    t.case("progress: nothing is left on the terminal", "" if not left and any("multipliers" in l for l in screen(p.stdout)) else str(left)[:300])
    p = t.call("compile", model, "--pe", "8", "--simd", "8", "-o", build)
    t.case("progress: not in a pipe", "" if p.returncode == 0 and b"left" not in p.stderr and b"\x1b" not in p.stderr else p.stderr.decode()[:300])


def check_help():
    """Groups; an example a verb, whose flags are the verb's."""
    out = t.good("help").decode()
    verbs = re.findall(r"^  mlo (\w+) +[\[A-Z]", out, re.M)
    t.case("help: groups", "" if len(re.findall(r"^[A-Z].*:$", out, re.M)) == 3 and len(verbs) == len(set(verbs)) == 15 else f"{verbs}")
    for v in verbs:
        page = t.good("help", v).decode()
        example = next((l.strip() for l in page.splitlines()[1:] if l.startswith("  mlo")), "")
        mine = next((part for part in example.split("|") if f"mlo {v}" in part), "")
        lost = [f for f in re.findall(r" (--?[a-z][\w-]*)", mine) if not re.search(r"^  %s " % re.escape(f), page, re.M)]
        t.case(f"help {v}: an example", f"{example}: {lost}" if not mine or lost else "")


# ---- completion ----------------------------------------------------------------------------------------------------------------------

SHELLS = {
    "bash": lambda script, line: script + "\nCOMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _mlo; printf '%%s\\n' \"${COMPREPLY[@]}\"" % " ".join(w or "''" for w in line),
    "zsh": lambda script, line: "compdef() { :; }\n_files() { echo FILES $1; }\ncompadd() { shift; print -l -- \"$@\"; }\n" + script + "\nwords=(%s); CURRENT=${#words}; _mlo" % " ".join(w or "''" for w in line),
    "fish": lambda script, line: script + "\ncomplete -C '%s' | string replace -r '\\t.*' ''" % " ".join(line),
}
COMPLETED = [(["mlo", "com"], {"compile"}), (["mlo", "fold", "--target-c"], {"--target-cycles"}), (["mlo", "fold", "--memory", ""], {"layer", "block", "resident", "auto"}), (["mlo", "sim", "build", "--simulator", "v"], {"verilator"}),
             (["mlo", "compile", "x.onnx", "--target", ""], {"verilog", "c"}), (["mlo", "roll", "x.onnx", "--as", "f"], {"finn"}), (["mlo", "fold", "--device", "xczu3"], {"xczu3eg"}), (["mlo", "help", "qu"], {"quantize"}), (["mlo", "quantize", "x.onnx", "--scale", "p"], {"pow2"}),
             (["mlo", "help", "--completion", ""], {"bash", "zsh", "fish"})]


def check_completion():
    """Verbs, flags and values in three shells. What zsh does with the current word is zsh's: every word is offered to it."""
    for shell, asked in SHELLS.items():
        if not t.have("completion in " + shell, shell): continue
        script = t.good("help", "--completion", shell).decode()
        for line, want in COMPLETED:
            p = subprocess.run([shell, "-c", asked(script, line)], capture_output=True, text=True, cwd=t.tmp, env=dict(os.environ, HOME=t.tmp))
            got = {w for w in p.stdout.split() if w.startswith(line[-1])}
            t.case(f"{shell}: {' '.join(line)}", "" if got == want and not p.stderr else f"{sorted(got)} {p.stderr[:200]}")
    p = t.call("fold", "l.json", "--device", "none", cwd=place())
    devices = re.search(r"they are (.*), or lut=", p.stderr.decode())[1].split(", ")
    t.case("completion: all devices", "" if " ".join(devices) in t.good("help", "--completion", "bash").decode() else str(devices))


t.main(check_table, check_terminal, check_person, check_progress, check_help, check_completion, floor=135)
