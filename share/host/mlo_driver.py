# SPDX-License-Identifier: MIT
"""mlo_driver: this core from Python, on PYNQ or anywhere with something that reads and writes its registers.

    from mlo_driver import pynq_core
    core = pynq_core("build", "design.bit", core="mlo_top_0", s_axis="axi_dma_0", m_axis="axi_dma_0")
    core.test()                                           # raises DriverError unless every word of a frame is right
    y = core.numbers(core.run(core.words(x)))             # floats [tokens, channels] to floats
    y = core.job(0, 0, core.words(prompt))                # of a core with a cache: tokens 0.. of the sequence in slot 0
    said = core.job(0, 0, ids, more=20)                   # of a core of token ids (--tokens): rows {id, logit}, of up to 20 that go on inside

Words are the core's integers; scales, widths and shapes are those of manifest.json in the build directory. On one's own, Core takes
    registers       read(offset) and write(offset, value), as pynq.MMIO has them
    dma             send({"s_axis": bytes, ...}, size) begins all transfers, of `size` bytes out; received() is None, or these bytes
    parameters      where params.bin lies in the core's memory"""
import hashlib
import json
import pathlib
import time
import numpy as np

ID, VERSION, CONTROL, STATUS, BASE_LOW, BASE_HIGH, ITERATIONS, FRAMES = range(0, 32, 4)
JOB_A, JOB_B, JOB_ROOM, CACHE, CYCLES, DONE, BEATS, KERNELS = 0x20, 0x24, 0x28, 0x3C, 0x40, 0x44, 0x48, 0x80
KV_LOW, KV_HIGH, STOP = 0x2C, 0x30, 0x5C
ERRORS = {2: "memory answered a read of parameters with an error: is their address right?",
          4: "a job was refused: it began behind its slot's end, or did not fit",
          16: "a frame had not the tokens of its job"}


class DriverError(Exception):
    """What went wrong."""


def image(build):
    """params.bin, if it is the one that was made for this core."""
    build = pathlib.Path(build)
    data, listed = (build / "params.bin").read_bytes(), json.loads((build / "manifest.json").read_text())["files"]["params.bin"]
    if hashlib.sha256(data).hexdigest() != listed["sha256"]: raise DriverError("params.bin is not the one of manifest.json")
    return data


def width(bits): return -(-bits // 8)                      # bytes of a word


def packed(words, bits):
    """Words as the streams take them: so many bytes each, the low one first."""
    return np.asarray(words).astype("<i4").reshape(-1, 1).view(np.uint8)[:, :width(bits)].tobytes()


def unpacked(data, bits):
    rows = np.frombuffer(data, np.uint8).reshape(-1, width(bits))
    wide = np.zeros((len(rows), 4), np.uint8)
    wide[:, 4 - width(bits):] = rows                       # at the top, from where the sign comes down
    return wide.view("<i4").ravel() >> 32 - 8 * width(bits)


class Core:
    def __init__(self, build, registers, dma, parameters, timeout=2.0, cache=0, keys_and_values=None):
        self.cache = cache                                 # where keys and values may lie, if the manifest has a kv: in the memory behind m_axi_kv
        self.keys_and_values = keys_and_values             # that memory as bytes of numpy's, if they are the model's own: if kv has `kept`
        self.build, self.registers, self.dma, self.parameters, self.timeout = pathlib.Path(build), registers, dma, parameters, timeout
        self.manifest = m = json.loads((self.build / "manifest.json").read_text())
        self.ids = "head" in m.get("around", {})           # token ids come in, {id, logit} out
        self.bits, self.channels = (32, 1) if "around" in m else (m["stream"]["bits"], m["channels"])
        tail = m.get("around", {}).get("tail")             # a vector of each frame comes out
        self.once = self.ids or tail is not None           # not one of each token
        made = tail or {"bits": m["stream"]["bits"], "channels": m["channels"]}
        self.times = m["output"].get("times", 1)           # how often each token comes out: once of every layer, or once
        self.out_bits, self.out = (32, 2 * m["around"]["best"]) if self.ids else (made["bits"], made["channels"])
        self.open()

    # ---- control

    def differs(self, what, offset, want):
        got = self.registers.read(offset)
        if got != want: raise DriverError("%s: register 0x%02X reads 0x%X, not 0x%X" % (what, offset, got, want))

    def open(self):
        """Is this the core? Then settings, a soft reset, and it runs."""
        m, write = self.manifest, self.registers.write
        self.differs("no core there, is the base address right", ID, 0x4D4C4F31)
        if self.registers.read(VERSION) >> 16 != 1: raise DriverError("another core: its registers are of version 0x%X" % self.registers.read(VERSION))
        self.differs("another core", CACHE, m.get("slots", 0) << 24 | m.get("context", 0))
        write(FRAMES, 255)                                 # it takes as many as it was made for
        self.differs("another core", FRAMES, m["frames_in_flight"])
        write(ITERATIONS, m["iterations"])
        self.differs("another core", ITERATIONS, m["iterations"])
        write(BASE_LOW, self.parameters & 0xFFFFFFFF)
        write(BASE_HIGH, self.parameters >> 32)
        if "kv" in m:
            write(KV_LOW, self.cache & 0xFFFFFFFF)
            write(KV_HIGH, self.cache >> 32)
        self.reset()

    def reset(self):
        """Frames, jobs and errors are forgotten, slots are empty, counters begin at 0. First stop what is left of transfers."""
        self.registers.write(CONTROL, 2)
        for _ in range(8): self.registers.read(STATUS)     # a reset takes 16 cycles, a read three or more
        self.registers.write(CONTROL, 1)
        self.check()

    def check(self):
        status = self.registers.read(STATUS)
        for bit, what in ERRORS.items():
            if status & bit: raise DriverError(what)

    def counters(self):
        """Cycles with frames inside, frames finished, beats of parameters; of each kernel its busy, starved and blocked cycles."""
        read = self.registers.read
        kernels = {k["name"]: [read(KERNELS + 16 * i + 4 * n) for n in range(3)] for i, k in enumerate(self.manifest["kernels"])}
        return {"cycles": read(CYCLES), "frames": read(DONE), "parameter_beats": read(BEATS), "kernels": kernels}

    # ---- numbers

    def words(self, x, border="input"):
        """Floats to words, as host/pre.onnx makes them. border "replay": those of what every iteration reads again."""
        b = self.border(border)
        return np.clip(np.rint(np.asarray(x, np.float32) / np.float32(b["scale"])), b["low"], b["high"]).astype(np.int32)

    def numbers(self, words):
        scales = self.manifest["output"].get("scales") or [self.border("output")["scale"]]     # of each layer's tokens, or one
        words = np.asarray(words).astype(np.float32)
        return (words.reshape(len(scales), -1) * np.float32(scales)[:, None]).reshape(words.shape)

    def border(self, name):
        b = self.manifest[name]
        if b["scale"] is None: raise DriverError("%s: the model's own part on the host makes or takes words, host/pre.onnx or host/post.onnx" % name)
        return b

    # ---- frames

    def run(self, words, mask=None, memory=None, memory_mask=None, more=0):
        """A frame of words [tokens, channels] (or ids) through the core. mask: of each token, whether it counts as a key; memory, memory_mask: what
        every iteration reads again; more: ids that may go on inside."""
        again = self.manifest.get("replay", {})
        streams = {"s_axis": packed(words, self.bits)}
        for port, there, given, bits in (("s1_axis", self.manifest["stream"]["masked"], mask, 8), ("s2_axis", bool(again), memory, again.get("bits", 8)),
                                         ("s3_axis", again.get("masked"), memory_mask, 8)):
            if bool(there) != (given is not None): raise DriverError("%s: %s" % (port, "it needs a value" if there else "the core has none"))
            if there: streams[port] = packed(given, bits)
        self.dma.send(streams, (1 + more if self.once else len(words) * self.times) * self.out * width(self.out_bits))
        return unpacked(self.received(), self.out_bits).reshape(-1, self.out)

    def received(self):
        end = time.monotonic() + self.timeout
        while True:
            data = self.dma.received()
            self.check()
            if data is not None: return data
            if time.monotonic() > end:
                raise DriverError("no answer in %g s: %d beats of parameters were read and %d frames finished" % (self.timeout, self.registers.read(BEATS), self.registers.read(DONE)))

    def order(self, slot, start, tokens, more=0):
        end = time.monotonic() + self.timeout
        while not self.registers.read(JOB_ROOM):
            if time.monotonic() > end: raise DriverError("no room for a job: those that wait have no frames")
        self.registers.write(JOB_A, slot << 24 | start)
        self.registers.write(JOB_B, more << 16 | tokens)

    def job(self, slot, start, words, mask=None, more=0):
        """Of a core with a cache: words [tokens, channels] are tokens start.. of the sequence in a slot. Of a core of token ids: up to `more` ids
        that it says become its next tokens."""
        self.order(slot, start, len(words), more)
        return self.run(words, mask, more=more)

    def stop(self, id):
        """Of a core of token ids: no text goes on behind this one."""
        self.registers.write(STOP, id)

    # ---- keys and values that are the model's own

    def places(self, positions, room):
        """Where in their memory words [layers, keys or values, positions, channels] lie, which has room for so many positions."""
        m, kv, beat = self.manifest, self.manifest["kv"], self.manifest["axi_bits"] // 8
        used, i = beat - beat % kv["lanes"], np.arange(kv["channels"])
        row = np.arange(2 * m["iterations"]).reshape(-1, 2, 1, 1) * room + np.arange(positions).reshape(-1, 1)
        return row * kv["row_beats"] * beat + i // used * beat + i % used

    def memory_of_keys(self):
        if self.keys_and_values is None: raise DriverError("keys and values are the model's own: Core wants keys_and_values, the memory where they lie")
        return np.asarray(self.keys_and_values)

    def past(self, keys, values):
        """Into memory, before the job behind it: words [layers, .., past, channels], as host/pre.onnx makes what kv.given names."""
        at = self.places(self.manifest["kv"]["past"], self.manifest["context"])
        words = [np.reshape(x, at[:, 0].shape).astype(np.int8) for x in (keys, values)]
        self.memory_of_keys()[at] = np.stack(words, 1).view(np.uint8)
        if hasattr(self.keys_and_values, "flush"): self.keys_and_values.flush()

    def kept(self):
        """Keys and values of the past and of the job, [layers, positions, channels] each, as host/post.onnx takes what kv.kept names."""
        if hasattr(self.keys_and_values, "invalidate"): self.keys_and_values.invalidate()
        words = self.memory_of_keys()[self.places(self.manifest["context"], self.manifest["context"])].view(np.int8)
        return words[:, 0], words[:, 1]

    # ---- the test

    def beats(self, file, bits):
        """The first frame of a file of beats {tlast, lanes}, or of a core with a cache all of them, as words."""
        data = bytearray()
        for line in (self.build / "tb" / file).read_text().split():
            data += int(line[1:], 16).to_bytes(len(line) // 2, "little")
            if line[0] == "1" and "jobs" not in self.manifest: break
        return unpacked(data, bits)

    def test(self):
        """Holds the borders, and every word of a frame (of a cache, of some jobs), to what they should be."""
        m, again = self.manifest, self.manifest.get("replay", {})
        x, y = (self.beats(file, bits).reshape(-1, n) for file, n, bits in (("input.hex", self.channels, self.bits), ("golden.hex", self.out, self.out_bits)))
        mask = self.beats("mask.hex", 8) if m["stream"]["masked"] else None
        memory = self.beats("replay.hex", again["bits"]) if again else None
        memory_mask = self.beats("replay_mask.hex", 8) if again.get("masked") else None
        self.test_borders(x.ravel(), memory, y.ravel())
        own = "kept" in m.get("kv", {})
        if own and m["kv"]["past"]: self.past(*self.lying("past.hex", m["kv"]["past"]))
        at = 0
        for k, job in enumerate(m.get("jobs", [None])):
            part = slice(at, at + (job["tokens"] if job else len(x)))
            now = mask if mask is None else mask[part]
            got = self.job(job["slot"], job["start"], x[part], now) if job else self.run(x, now, memory, memory_mask)
            want = slice(k, k + 1) if self.once else slice(part.start * self.times, part.stop * self.times)
            self.compare("word %d of the frame is %d, not %d: are the parameters those of this core?", got, y[want], want.start * self.out)
            at = part.stop
        if own: self.compare("word %d of keys and values that are kept is %d, not %d: are they in the memory behind m_axi_kv?", self.kept(), self.lying("kept.hex", m["context"]))

    def lying(self, file, positions):
        """Keys and values of a file of beats, as `kept` has them."""
        beats = [int(line, 16).to_bytes(len(line) // 2, "little") for line in (self.build / "tb" / file).read_text().split()]
        words = np.frombuffer(b"".join(beats), np.int8)[self.places(positions, positions)]
        return words[:, 0], words[:, 1]

    def test_borders(self, *streams):
        for name, words in zip(("input", "replay", "output"), streams):
            known = np.float32(self.manifest.get(name, {}).get("numbers", []))
            if not len(known): continue
            if name == "output": self.compare("word %d becomes %g, not %g: the output's scale is another core's", self.numbers(words[:len(known)]), known)
            else: self.compare("number %d becomes word %d, not %d: the input's scale is another core's", self.words(known, name), words[:len(known)])

    def compare(self, text, got, want, before=0):
        got, want = np.ravel(got), np.ravel(want)
        wrong = np.flatnonzero(got != want)
        if len(wrong): raise DriverError(text % (before + wrong[0], got[wrong[0]], want[wrong[0]]))


# ---- PYNQ

class PynqDma:
    """AXI DMAs in simple mode: of each stream's name the DMA that it is at."""

    def __init__(self, allocate, dmas): self.allocate, self.dmas = allocate, dmas

    def send(self, streams, size):
        self.out, self.sent = self.allocate(size, np.uint8), []
        self.dmas["m_axis"].recvchannel.transfer(self.out)
        for port, data in streams.items():
            buffer = self.allocate(len(data), np.uint8)
            buffer[:] = np.frombuffer(data, np.uint8)
            buffer.flush()
            self.sent.append(buffer)                       # it stays as long as the transfer
            self.dmas[port].sendchannel.transfer(buffer)

    def received(self):
        if not self.dmas["m_axis"].recvchannel.idle: return None
        self.out.invalidate()
        return bytes(self.out)[:self.dmas["m_axis"].recvchannel.transferred]       # a text may end sooner


def pynq_core(build, bitfile, core, **dmas):
    """A bit file loaded, parameters in memory, and the core running. core, dmas: names in the block design, s_axis="axi_dma_0", ..."""
    from pynq import MMIO, Overlay, allocate
    overlay = Overlay(bitfile)
    data, at = image(build), overlay.ip_dict[core]
    parameters = allocate(len(data), np.uint8)
    parameters[:] = np.frombuffer(data, np.uint8)
    parameters.flush()
    kv = json.loads((pathlib.Path(build) / "manifest.json").read_text()).get("kv")
    cache = allocate(kv["bytes"], np.uint8) if kv else None
    made = Core(build, MMIO(at["phys_addr"], at["addr_range"]), PynqDma(allocate, {port: getattr(overlay, name) for port, name in dmas.items()}), parameters.device_address,
                cache=cache.device_address if kv else 0, keys_and_values=cache)
    made.memory = parameters                               # which lies there as long as the core
    return made
