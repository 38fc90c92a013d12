# SPDX-License-Identifier: MIT
"""mlo_sim_ram with mlo_sim_ram_write: cocotbext-axi's master writes, reads and is answered; the judges are silent, and count what they are not to like."""
import glob
import importlib.util
import os
import sys
import bench

sys.path.append(os.path.join(bench.HERE, "cocotb"))          # the runner hands it on
SETTINGS = [(1, 0, 1, 40), (2, 30, 20, 30), (3, 60, 3, 10)]         # seed, percent of stalls, latency, transfers
TESTS = 4


def simulated(runner, folder, seed, stall, latency, runs):
    """(tests, failures) that cocotb counts, and what the simulation said."""
    from cocotb_tools.check_results import get_results
    log = os.path.join(folder, "log%d" % seed)
    settings = dict(MLO_SEED=str(seed), MLO_STALL=str(stall), MLO_LATENCY=str(latency), MLO_RUNS=str(runs))
    results = runner.test(hdl_toplevel="ram_tb", test_module="ram_cocotb", test_dir=folder, build_dir=folder, extra_env=settings, log_file=log)
    with open(log) as f: return get_results(results), f.read()


def master():
    from cocotb_tools.runner import get_runner
    runner, folder = get_runner("icarus"), bench._work
    sources = [os.path.join(bench.HERE, "ram_tb.v"), *sorted(glob.glob(os.path.join(bench.VERILOG, "mlo_sim_*.v")))]
    runner.build(sources=sources, hdl_toplevel="ram_tb", build_dir=folder, timescale=("1ns", "1ps"), log_file=os.path.join(folder, "build"))
    for seed, stall, latency, runs in SETTINGS:
        counts, said = simulated(runner, folder, seed, stall, latency, runs)
        bench.check("ram", counts == (TESTS, 0) and "PROTOCOL" not in said, "seed %d: %s of %d; %s" % (seed, counts, TESTS, said[-1500:]))
        bench.ok("ram", "seed %d, stalls %d %%, latency %d: what cocotbext-axi writes comes back; faults and what lies beyond are answered so" % (seed, stall, latency))


if not importlib.util.find_spec("cocotb") or not importlib.util.find_spec("cocotbext.axi"): bench.cases.absent("ram", "cocotb or cocotbext-axi not installed")
else: master()
bench.end(floor=len(SETTINGS), simulations=0)
