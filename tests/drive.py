# SPDX-License-Identifier: MIT
"""drive: what test_driver runs in a simulator, by cocotb: the emitted drivers against the simulated core, and a host's mistakes.

Environment: DRIVE_BUILD, the build directory; DRIVE_C and DRIVE_SCALE, its C driver as a library, and one with another scale; DRIVE_OUT, a file for
[what, '' or what is wrong] of each step. Drivers block, so they run in a thread beside the simulation (cocotb's bridge and resume)."""
import ctypes as c
import importlib.util
import json
import os
import pathlib
import sys
import traceback
import types
import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.task import bridge, resume
from cocotb.triggers import ClockCycles
from cocotbext.axi import AddressSpace, AxiLiteBus, AxiLiteMaster, AxiBus, AxiReadBus, AxiSlave, AxiSlaveRead, AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource, MemoryRegion, SparseMemoryRegion

BUILD = pathlib.Path(os.environ["DRIVE_BUILD"])
MEMORY = 0x1_2000_0000                                      # where memory is: the upper half of addresses counts, and below it there is nothing
CACHE = MEMORY + (1 << 20)                                  # where keys and values may lie, in memory of its own
OK, NO_CORE, OTHER_CORE, BUS_ERROR, REFUSED, MISCOUNTED, NO_ROOM, NOT_SENT, TIMED_OUT, OTHER_SCALE, OTHER_WORDS, NO_MEMORY = range(12)


class Board:
    """The core with what is around it, for drivers: registers, streams, memory."""

    def __init__(self, dut):
        self.dut, self.nowhere = dut, False
        ports = [p for p in ("s_axis", "s1_axis", "s2_axis", "s3_axis") if hasattr(dut, p + "_tdata")]
        self.sources = {p: AxiStreamSource(AxiStreamBus.from_prefix(dut, p), dut.clk, dut.rst) for p in ports}
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        self.host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        self.space, self.ram = AddressSpace(), SparseMemoryRegion(1 << 24)
        self.space.register_region(self.ram, MEMORY)
        self.memories = [self.ram]
        self.port = AxiSlaveRead(AxiReadBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, target=self.space)
        if hasattr(dut, "m_axi_kv_araddr"):
            self.cached, self.kv = AddressSpace(), MemoryRegion(1 << 24)
            self.cached.register_region(self.kv, MEMORY)
            self.memories.append(self.kv)
            self.kv_port = AxiSlave(AxiBus.from_prefix(dut, "m_axi_kv"), dut.clk, dut.rst, target=self.cached)
        self.read, self.write, self.send, self.received, self.restart = map(resume, (self._read, self._write, self._send, self._received, self._restart))

    async def _restart(self):
        """As if switched off and on; memory stays."""
        self.dut.rst.value = 1
        self.port.r_channel.pause = False
        for source in self.sources.values(): source.clear()
        self.sink.clear()
        await ClockCycles(self.dut.clk, 5)
        self.dut.rst.value = 0
        await ClockCycles(self.dut.clk, 5)

    async def _read(self, offset): return 0 if self.nowhere else await self.host.read_dword(offset)
    async def _write(self, offset, value):
        if not self.nowhere: await self.host.write_dword(offset, value)
    async def _send(self, streams):
        for port, data in streams.items(): self.sources[port].send_nowait(AxiStreamFrame(data))

    async def _received(self):
        await ClockCycles(self.dut.clk, 100)
        return None if self.sink.empty() else bytes(self.sink.recv_nowait().tdata)


# ---- the C driver

class Stream(c.Structure): _fields_ = [("data", c.c_void_p), ("bytes", c.c_uint32)]
class Frame(c.Structure): _fields_ = [("into", Stream * 4), ("out", c.c_void_p)]
class Job(c.Structure): _fields_ = [(n, c.c_uint32) for n in ("slot", "start", "tokens", "more")]


READ, WRITE, HOOK = c.CFUNCTYPE(c.c_uint32, c.c_void_p, c.c_uint32), c.CFUNCTYPE(None, c.c_void_p, c.c_uint32, c.c_uint32), c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Frame))


class Driver(c.Structure):
    _fields_ = [("base", c.c_void_p), ("read", READ), ("write", WRITE), ("send", HOOK), ("done", HOOK), ("user", c.c_void_p), ("cache", c.c_uint64), ("kv", c.c_void_p), ("patience", c.c_uint32), ("line", c.c_char * 160)]


class InC:
    """mlo_driver.c, with hooks into the board."""

    def __init__(self, board, library=os.environ["DRIVE_C"]):
        self.board, self.c, self.got = board, c.CDLL(library), []
        self.d = Driver(None, READ(lambda user, at: board.read(at)), WRITE(lambda user, at, v: board.write(at, v)), HOOK(self.send), HOOK(self.done), None, CACHE, self.seen(), 2000)

    def seen(self):
        """The memory of keys and values, as the driver's processor has it."""
        return c.addressof(c.c_char.from_buffer(self.board.kv.mem, CACHE - MEMORY)) if hasattr(self.board, "kv") else None

    def send(self, user, frame):
        self.board.send({port: c.string_at(s.data, s.bytes) for port, s in zip(("s_axis", "s1_axis", "s2_axis", "s3_axis"), frame.contents.into) if s.bytes})
        return 0

    def done(self, user, frame):
        data = self.board.received()
        if data is None: return 0
        self.got.append(data)
        c.memmove(frame.contents.out, data, len(data))
        return 1

    def call(self, name, *args): return getattr(self.c, "mlo_driver_" + name)(c.byref(self.d), *args), self.d.line.decode()
    def open(self, at=MEMORY): return self.call("open", c.c_uint64(at))
    def test(self): return self.call("test", c.create_string_buffer(1 << 20))
    def reset(self): return self.call("reset")
    def order(self, *job): return self.call("order", c.byref(Job(*job)))

    def job(self, slot, start, tokens, data, more=0):
        frame, out = Frame(), c.create_string_buffer(1 << 16)
        held = [c.create_string_buffer(data, len(data)), c.create_string_buffer(b"\1" * tokens, tokens)]
        for k in range(2):
            if k == 0 or "s1_axis" in self.board.sources: frame.into[k] = Stream(c.cast(held[k], c.c_void_p), len(held[k]))
        frame.out = c.cast(out, c.c_void_p)
        return self.call("job", c.byref(Job(slot, start, tokens, more)), c.byref(frame))


# ---- the Python driver, on what looks like PYNQ

class Buffer(np.ndarray):
    streamed = False

    def flush(self):
        for memory in self.board.memories: memory[self.at:self.at + self.size] = self.tobytes()

    def invalidate(self):
        if not self.streamed: self[:] = np.frombuffer(self.board.kv[self.at:self.at + self.size], np.uint8)

    @property
    def device_address(self): return MEMORY + self.at


class Channel:
    def __init__(self, board, port): self.board, self.port, self.idle_, self.buffer = board, port, True, None

    def transfer(self, buffer):
        if self.port != "m_axis": return self.board.send({self.port: buffer.tobytes()})
        self.buffer, buffer.streamed = buffer, True

    @property
    def idle(self):
        data = self.board.received()
        if data is not None: self.buffer[:len(data)] = np.frombuffer(data, np.uint8)
        self.transferred = len(data or b"")
        return data is not None


def pynq(board):
    """A module like pynq, whose bit file is the simulation."""
    made, at = types.ModuleType("pynq"), [0]

    def allocate(size, dtype):
        buffer = np.zeros(size, dtype).view(Buffer)
        buffer.board, buffer.at = board, at[0]
        at[0] += -(-buffer.nbytes // 4096) * 4096
        return buffer

    dma = {"dma_" + p: types.SimpleNamespace(sendchannel=Channel(board, p), recvchannel=Channel(board, p)) for p in (*board.sources, "m_axis")}
    made.allocate, made.MMIO = allocate, lambda base, size: board if (base, size) == (0xA000_0000, 4096) else None
    made.Overlay = lambda bitfile: types.SimpleNamespace(ip_dict={"mlo_top_0": {"phys_addr": 0xA000_0000, "addr_range": 4096}}, **dma)
    return made


def in_python(board, build=BUILD):
    spec = importlib.util.spec_from_file_location("mlo_driver", build / "host/mlo_driver.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)                         # without pynq
    sys.modules["pynq"] = pynq(board)
    return module, lambda: module.pynq_core(str(build), "x.bit", "mlo_top_0", **{p: "dma_" + p for p in (*board.sources, "m_axis")})


# ---- what is tried

class Steps:
    def __init__(self): self.list = []
    def step(self, what, why): self.list.append([what, why])

    def said(self, what, answer, status, *words):
        """A C function's answer: its status, and words of its line."""
        self.step("C: " + what, "" if answer[0] == status and (not status or all(w in answer[1] for w in words)) else "%d: %s" % answer)

    def raises(self, what, call, *words):
        try: call()
        except Exception as e: return self.step("Python: " + what, "" if type(e).__name__ == "DriverError" and all(w in str(e) for w in words) else "%s: %s" % (type(e).__name__, e))
        self.step("Python: " + what, "nothing was raised")


def corrupt(board, image, at=0):
    """Another image of parameters in memory: every sixteenth byte is another."""
    data = bytearray(image)
    for i in range(0, len(data), 16): data[i] ^= 1
    board.ram[at:at + len(data)] = bytes(data)


def stream(file):
    """The bytes of a file of beats {tlast, lanes}."""
    return b"".join(int(line[1:], 16).to_bytes(len(line) // 2, "little") for line in (BUILD / "tb" / file).read_text().split())


def first_other(got, width):
    """The word of the golden frames at which what came out differs."""
    want = stream("golden.hex")
    return next((i // width for i, (a, b) in enumerate(zip(b"".join(got), want)) if a != b), None)


def c_steps(s, board, m, image):
    around = m.get("around", {})
    d, width = InC(board), -(-around["tail"]["bits"] // 8) if "tail" in around else 4 if around else -(-m["stream"]["bits"] // 8)
    loop = around.get("head", around.get("front"))["offset"] if around else len(image)       # what is counted of the image
    board.ram[0:len(image)] = image
    board.nowhere = True
    s.said("no registers", d.open(), NO_CORE, "no core", "is the base address right")
    board.nowhere = False
    s.said("open", d.open(), OK)
    s.said("test", d.test(), OK)
    frames = len(m.get("jobs", [0]))
    done, beats = board.read(0x44), board.read(0x48)
    s.step("C: counters", "" if done == frames and beats * m["axi_bits"] // 8 >= loop else "%d frames, %d beats" % (done, beats))
    if "around" not in m: s.said("another scale", InC(board, os.environ["DRIVE_SCALE"]).test(), OTHER_SCALE, "the input's scale is another core's")
    corrupt(board, image)
    s.said("open, other parameters", d.open(), OK)
    d.got.clear()
    s.said("test, other parameters", (answer := d.test()), OTHER_WORDS, "are the parameters those of this core?")
    at = first_other(d.got, width)
    s.step("C: the first word that differs", "" if at is not None and answer[1].startswith("word %d of the frame" % at) else "word %s: %s" % (at, answer[1]))
    board.restart()
    board.ram[0:len(image)] = image
    d.open(at=0)
    s.said("parameters where there is no memory", d.test(), BUS_ERROR, "memory answered")
    board.restart()
    board.port.r_channel.pause = True
    d.open()
    d.d.patience = 100
    s.said("memory that does not answer", d.test(), TIMED_OUT, "no answer: looked 100 times, 0 beats of parameters were read and 0 frames finished")
    d.d.patience = 2000
    board.restart()
    s.said("open once more", d.open(), OK)
    if "past" in m.get("kv", {}): past_steps(s, board, m, d)
    elif "slots" in m: job_steps(s, board, m, d, width)


def job_steps(s, board, m, d, width):
    token = width if "around" in m else m["channels"] * width
    s.said("a job", d.job(0, 0, 3, bytes(3 * token)), OK)
    s.said("a job behind its slot's end", d.job(0, 5, 2, bytes(2 * token)), REFUSED, "a job was refused")
    s.said("reset", d.reset(), OK)
    s.said("a frame without its job's tokens", d.job(0, 0, 3, bytes(2 * token)), MISCOUNTED, "had not the tokens")
    d.reset()
    d.d.patience = 50
    answers = [d.order(0, 0, 1) for _ in range(9)]
    s.said("jobs without frames", answers[-1], NO_ROOM, "no room for a job")
    s.step("C: some wait", "" if answers[0][0] == OK else str(answers[0]))
    d.d.patience = 2000
    d.reset()
    s.said("test after all that", d.test(), OK)
    if "around" in m: text_steps(s, d)


def past_steps(s, board, m, d):
    """Keys and values that are the model's own: what is put in, what is kept, and that memory has to be the core's."""
    layers, past, rows, channels = m["iterations"], m["kv"]["past"], m["context"], m["kv"]["channels"]
    kept = [np.zeros((layers, rows, channels), np.int8) for _ in range(2)]
    of = lambda arrays: [a.ctypes.data_as(c.c_void_p) for a in arrays]
    s.said("what is kept, after the test", (d.test(), d.call("kept", *of(kept)))[1], OK)
    put = [np.ascontiguousarray(a[:, :past]) ^ 1 for a in kept]
    s.said("another past", d.call("past", *of(put)), OK)
    again = [np.zeros_like(a) for a in kept]
    d.call("kept", *of(again))
    s.step("C: it lies in front, and nothing else is another", "" if all(np.array_equal(a[:, :past], b) and np.array_equal(a[:, past:], k[:, past:]) for a, b, k in zip(again, put, kept)) else "it does not")
    width = -(-m["stream"]["bits"] // 8)
    data = stream("input.hex")
    d.reset()
    d.got.clear()
    s.said("a frame behind another past", d.job(0, past, m["tokens"], data), OK)
    s.step("C: its words are others", "" if first_other(d.got, width) is not None else "they are those behind the bench's own")
    d.call("kept", *of(again))
    s.step("C: it is kept", "" if all(np.array_equal(a[:, :past], b) for a, b in zip(again, put)) else "it is not")
    d.reset()
    s.said("a job behind its slot's end", d.job(0, past + 1, 1, data[:m["channels"] * width]), REFUSED, "a job was refused")
    d.reset()
    s.said("test after all that", d.test(), OK)
    d.d.kv, elsewhere = None, c.create_string_buffer(m["kv"]["bytes"])
    s.said("no memory", d.test(), NO_MEMORY, "kv is not set")
    d.d.kv = c.addressof(elsewhere)
    d.reset()
    board.kv[CACHE - MEMORY:CACHE - MEMORY + m["kv"]["bytes"]] = bytes(m["kv"]["bytes"])
    s.said("another memory", d.test(), OTHER_WORDS)
    d.d.kv = d.seen()
    d.reset()
    s.said("the right one again", d.test(), OK)


def text_steps(s, d):
    """Ids that go on inside are those that jobs of one token each say; a stop id ends them."""
    def words(data): return np.frombuffer(data, "<i4").reshape(-1, 2)
    ids = np.array([1, 2, 7], "<i4")
    d.got.clear()
    for k in range(4): s.said("a job of a token, %d" % k, d.job(0, 3 + k - 1 if k else 0, 1 if k else 3, words(d.got[-1])[:, 0].tobytes() if k else ids.tobytes()), OK)
    want = np.concatenate([words(g) for g in d.got])
    s.said("a text", d.job(1, 0, 3, ids.tobytes(), 3), OK)
    s.step("C: the text's ids and logits", "" if np.array_equal(words(d.got[-1]), want) else "%s, not %s" % (words(d.got[-1]).tolist(), want.tolist()))
    d.c.mlo_driver_stop(c.byref(d.d), c.c_uint32(int(want[1, 0])))
    s.said("a text with a stop id", d.job(1, 0, 3, ids.tobytes(), 3), OK)
    ends = 1 + next(k for k in range(4) if want[k, 0] == want[1, 0])
    s.step("C: it ends behind it", "" if np.array_equal(words(d.got[-1]), want[:ends]) else str(words(d.got[-1]).tolist()))


def python_steps(s, board, m, image):
    module, make = in_python(board)
    board.restart()
    board.nowhere = True
    s.raises("no registers", make, "no core there", "is the base address right")
    board.nowhere = False
    core = make()
    core.timeout = 600
    core.test()
    s.step("Python: test", "")
    count = core.counters()
    s.step("Python: counters", "" if count["frames"] == len(m.get("jobs", [0])) and list(count["kernels"]) == [k["name"] for k in m["kernels"]] and all(v[0] for v in count["kernels"].values()) else str(count))
    if core.ids:
        text = core.job(0, 0, [1, 2, 7], more=2)
        one = core.job(1, 0, [1, 2, 7])
        two = core.job(1, 3, one[:, 0])
        s.step("Python: a text", "" if text.shape == (3, 2) and np.array_equal(text[:2], np.concatenate([one, two])) else "%s, %s, %s" % (text, one, two))
    if "around" in m: s.raises("scales of ids", lambda: core.words([0.0]), "host/pre.onnx")
    else:
        scale, core.manifest["input"]["scale"] = m["input"]["scale"], m["input"]["scale"] * 1.01
        s.raises("another scale", core.test, "the input's scale is another core's")
        core.manifest["input"]["scale"] = scale
    corrupt(board, image, core.memory.at)
    core.reset()
    s.raises("test, other parameters", core.test, "of the frame is", "are the parameters those of this core?")
    core.memory.flush()
    board.restart()
    core.parameters, right = 0, core.parameters
    core.open()
    s.raises("parameters where there is no memory", core.test, "memory answered")
    core.parameters = right
    board.restart()
    board.port.r_channel.pause = True
    core.open()
    core.timeout = 0.5
    s.raises("memory that does not answer", core.test, "no answer in 0.5 s: 0 beats of parameters were read and 0 frames finished")
    board.restart()
    core.timeout = 600
    core.open()
    x = np.zeros((2, core.channels))
    if "past" in m.get("kv", {}):
        kept = core.kept()
        s.step("Python: what is kept", "" if all(np.array_equal(a, b) for a, b in zip(kept, core.lying("kept.hex", m["context"]))) else "other words")
        core.keys_and_values, held = None, core.keys_and_values
        s.raises("no memory", core.test, "Core wants keys_and_values")
        core.keys_and_values = held
        core.reset()
        core.test()
        s.step("Python: test once more", "")
    elif "slots" in m:
        s.raises("a job behind its slot's end", lambda: core.job(0, 5, x, [1, 1] if m["stream"]["masked"] else None), "a job was refused")
    else: s.raises("a stream that the core has not, or needs", lambda: core.run(x, None if m["stream"]["masked"] else [1, 1]), "s1_axis")


@cocotb.test()
async def drivers(dut):
    m, s = json.loads((BUILD / "manifest.json").read_text()), Steps()
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    await ClockCycles(dut.clk, 5)
    board, image = Board(dut), (BUILD / "params.bin").read_bytes()

    def everything():
        board.restart()
        for steps in (c_steps, python_steps):
            try: steps(s, board, m, image)
            except Exception: s.step(steps.__name__, traceback.format_exc()[-600:].replace("\n", " | "))

    await bridge(everything)()
    pathlib.Path(os.environ["DRIVE_OUT"]).write_text(json.dumps(s.list))
