# SPDX-License-Identifier: MIT
"""What ram.py has cocotbext-axi's master do to ram_tb: random writes and reads against a bytearray, faults, addresses beyond the memory."""
import itertools
import os
import random
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiMaster, AxiResp

BASE, BYTES, BEAT = 0x10000000, 2048 * 8, 8
SEED, STALL, LATENCY, RUNS = (int(os.environ[name]) for name in ("MLO_SEED", "MLO_STALL", "MLO_LATENCY", "MLO_RUNS"))


async def begun(dut, fault_r=0, fault_b=0):
    """The master of a memory that comes out of reset."""
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.seed.value, dut.stall.value, dut.latency.value, dut.fault_r.value, dut.fault_b.value = SEED, STALL, LATENCY, fault_r, fault_b
    master = AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
    channels = master.write_if.aw_channel, master.write_if.w_channel, master.write_if.b_channel, master.read_if.ar_channel, master.read_if.r_channel
    for n, channel in enumerate(channels):
        rng = random.Random(SEED * 8 + n)
        channel.set_pause_generator(rng.randrange(100) < STALL for _ in itertools.count())
    dut.rst.value = 1
    for _ in range(4): await RisingEdge(dut.clk)
    dut.rst.value = 0
    for _ in range(4): await RisingEdge(dut.clk)
    return master


async def judged(dut):
    """Nobody broke a rule, nobody waits any more."""
    for _ in range(4): await RisingEdge(dut.clk)
    assert int(dut.breaches.value) == 0, "the judges have counted %d breaches" % int(dut.breaches.value)
    assert int(dut.owing.value) == 0, "somebody waits for an answer"


@cocotb.test()
async def bytes_come_back(dut):
    """Whole and partial words: what lies in the memory is what lies in a bytearray, written and read in any order."""
    master, rng, kept, beats = await begun(dut), random.Random(SEED), bytearray(BYTES), 0
    await master.write(BASE, bytes(BYTES))
    for _ in range(RUNS):
        at = BEAT * rng.randrange(BYTES // BEAT)
        length = rng.choice([rng.randint(1, 8), rng.randint(1, 400), rng.randint(1, 4000)])
        length = min(length, BYTES - at)
        if rng.random() < 0.5:
            data = rng.randbytes(length)
            kept[at:at + length] = data
            answer = await master.write(BASE + at, data)
            assert answer.resp == AxiResp.OKAY
        else:
            answer = await master.read(BASE + at, length)
            assert answer.resp == AxiResp.OKAY and answer.data == bytes(kept[at:at + length]), "%d bytes at %d" % (length, at)
    answer = await master.read(BASE, BYTES)
    assert answer.data == bytes(kept)
    await judged(dut)
    assert int(dut.beats_w.value) >= BYTES // BEAT and int(dut.beats_r.value) >= BYTES // BEAT


@cocotb.test()
async def answers_in_order(dut):
    """Many writes under way at once."""
    master, rng = await begun(dut), random.Random(SEED)
    blocks = [rng.randbytes(BEAT * rng.randint(1, 30)) for _ in range(RUNS)]
    writes = [cocotb.start_soon(master.write(BASE + 256 * (n % 64), block)) for n, block in enumerate(blocks)]
    for write in writes: assert (await write).resp == AxiResp.OKAY
    for n in range(max(0, RUNS - 64), RUNS):
        answer = await master.read(BASE + 256 * (n % 64), len(blocks[n]))
        assert answer.data == blocks[n]
    await judged(dut)


@cocotb.test()
async def faults(dut):
    """The third answer is SLVERR, and what was written is there; the fourth beat read is SLVERR, too."""
    master = await begun(dut, fault_r=4, fault_b=3)
    answers = [(await master.write(BASE + BEAT * n, bytes([n] * BEAT))).resp for n in range(5)]
    assert answers == [AxiResp.OKAY, AxiResp.OKAY, AxiResp.SLVERR, AxiResp.OKAY, AxiResp.OKAY], answers
    reads = [await master.read(BASE + BEAT * n, BEAT) for n in range(5)]
    assert [r.resp for r in reads] == [AxiResp.OKAY] * 3 + [AxiResp.SLVERR, AxiResp.OKAY]
    assert all(r.data == bytes([n] * BEAT) for n, r in enumerate(reads))
    await judged(dut)


@cocotb.test()
async def beyond(dut):
    """An address beyond the memory: DECERR, and nothing is changed; a burst across its end is written as far as it goes."""
    master = await begun(dut)
    await master.write(BASE, bytes([7] * BYTES))
    assert (await master.write(BASE + BYTES + 64, bytes(BEAT))).resp == AxiResp.DECERR
    assert (await master.write(BASE - 64, bytes(BEAT))).resp == AxiResp.DECERR
    assert (await master.read(BASE + BYTES, BEAT)).resp == AxiResp.DECERR
    answer = await master.read(BASE, BYTES)
    assert answer.resp == AxiResp.OKAY and answer.data == bytes([7] * BYTES)
    await judged(dut)
