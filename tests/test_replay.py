#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""replay.py: a run is replayed when all that it depends on is the same, and only then.

    python tests/test_replay.py path/to/mlo

The bench here says what it read, and that it ran: into a file that nobody asks for."""
import os, shutil, subprocess, sys
import harness as t

BENCH = """module mlo_tb; // a comment
    parameter WORDS = 1;
    integer seed, ran, file, words;
    initial begin
        if (!$value$plusargs("seed=%d", seed)) seed = 0;
        file = $fopen("tb/golden.hex", "r");
        if ($fscanf(file, "%d", words) != 1) words = 0;
        ran = $fopen("../ran.txt", "a");
        $fdisplay(ran, "ran");
        $fclose(ran);
        $display("MLO PASS words %0d cycles %0d", words, seed);
        $finish(0);
    end
endmodule
"""
ENV = dict(os.environ, MLO_REPLAY=t.at("store"), MLO_REPLAYED=t.at("replayed.txt"), MLO_DAY="1")
BIN = t.at("store/bin")


def python(*words, **env): return subprocess.run([sys.executable, *words], env=dict(ENV, **env), capture_output=True, text=True)


def simulated(*args, bench=BENCH, golden="7", flags=(), tool="iverilog", **env):
    """(what it said, how often it ran, the status)."""
    shutil.rmtree(t.at("build"), True)
    os.makedirs(t.at("build/tb"))
    t.write("build/tb/mlo_tb.v", bench)
    t.write("build/tb/golden.hex", golden)
    t.write("ran.txt", "")
    made = ["iverilog", "-g2012", "-s", "mlo_tb", "-Pmlo_tb.WORDS=4", "-o", "program", *flags, "tb/mlo_tb.v"] if tool == "iverilog" else ["verilator", "--binary", "--timing", "-Wno-fatal", "-Wno-lint", "--top-module", "mlo_tb", "-GWORDS=4", "--Mdir", "obj", "-o", "mlo_tb", *flags, "tb/mlo_tb.v"]
    env = dict(ENV, PATH=BIN + os.pathsep + os.environ["PATH"], **env)
    p = subprocess.run(made, cwd=t.at("build"), env=env, capture_output=True, text=True)
    if not p.returncode: p = subprocess.run(["vvp", "-n", "program", *args] if tool == "iverilog" else ["obj/mlo_tb", *args], cwd=t.at("build"), env=env, capture_output=True, text=True, timeout=60)
    return [l for l in p.stdout.splitlines() if l.startswith("MLO")], t.read(t.at("ran.txt")).decode().count("ran"), p.returncode


def record():
    p = python(os.path.join(t.tests, "replay.py"), "--record")
    return p.stdout + p.stderr


def held(name, tool, *args):
    """The same again says the same, and does not run; whatever else is another run."""
    said = ["MLO PASS words 7 cycles 5"]
    t.case(name + ": the first time it runs", "" if simulated("+seed=5", tool=tool) == (said, 1, 0) else "no")
    t.case(name + ": recorded", "" if "new" in record() else "no")
    again = simulated("+seed=5", tool=tool)
    t.case(name + ": the second time it does not", "" if again == (said, 0, 0) else str(again))
    again = simulated("+seed=5", tool=tool, bench=BENCH.replace("a comment", "another"))
    t.case(name + ": a comment is nothing", "" if again == (said, 0, 0) else str(again))
    for what, args, more in ("another argument", ["+seed=6"], {}), ("another bench", ["+seed=5"], {"bench": BENCH.replace("cycles %0d", "cycles %1d")}), ("another file", ["+seed=5"], {"golden": "8"}), ("another option", ["+seed=5"], {"flags": ["-Pmlo_tb.WORDS=5" if tool == "iverilog" else "-GWORDS=5"]}):
        t.case("%s: %s runs" % (name, what), "" if simulated(*args, tool=tool, **more)[1:] == (1, 0) else "no")


def check_icarus():
    if not t.have("replay", "iverilog", "vvp"): return
    python("-c", "import sys; sys.path.insert(0, %r); import replay; replay.links()" % t.tests)
    held("Icarus", "iverilog")
    broken = simulated(bench=BENCH.replace("endmodule", ""))
    t.case("what does not compile says so", "" if broken[1] == 0 and broken[2] else str(broken))
    t.case("a wave is made each time", "" if [simulated("+seed=5", "+wave=wave.fst")[1] for _ in range(2)] == [1, 1] else "no")


def check_due():
    """Once in so many days it runs all the same, and has to say what is recorded."""
    if not t.have("replay", "iverilog", "vvp"): return
    python("-c", "import sys; sys.path.insert(0, %r); import replay; replay.links()" % t.tests)
    simulated("+seed=5")
    record()
    days = [simulated("+seed=5", MLO_DAY=str(day)) for day in range(20)]
    t.case("on one day of twenty it runs", "" if sum(ran for _, ran, _ in days) == 1 and all(said == ["MLO PASS words 7 cycles 5"] for said, _, _ in days) else str(days))
    t.write("replayed.txt", t.read(t.at("replayed.txt")).decode().replace("words 7", "words 9"))
    days = [simulated("+seed=5", MLO_DAY=str(day)) for day in range(20)]
    t.case("and finds a record that is wrong", "" if [status for _, _, status in days].count(1) == 1 and any("it said otherwise" in " ".join(said) for said, _, _ in days) else str(days))


def check_verilator():
    if not t.have("replay", "verilator", "make", "g++"): return
    python("-c", "import sys; sys.path.insert(0, %r); import replay; replay.links()" % t.tests)
    held("Verilator", "verilator")


if __name__ == "__main__": t.main(check_icarus, check_due, check_verilator, floor=20)
