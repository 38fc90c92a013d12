# SPDX-License-Identifier: MIT
"""soc: the core in a SoC of LiteX's, for test_driver: a host, memory of the SoC's, the core with its DMAs, all on one bus of 32 bits.

    python tests/soc.py BUILD FOLDER        the SoC of LiteX as Verilog, FOLDER/soc.v, and the places of its registers, FOLDER/csr.json; params.bin is in its memory
    cocotb (SOC_BUILD, SOC_OUT)             host/mlo_driver.py's test against it, as a host does it: registers, DMAs and memory by the bus"""
import importlib.util
import json
import os
import pathlib
import re
import sys
import traceback

MEMORY, CORE, ROOM = 0x4000_0000, 0x9000_0000, 1 << 18


def for_icarus(block):
    """A block of LiteX's Verilog, which is written for Verilator: run at the start, too, and without values that it makes only to replace them."""
    return re.sub(r"^( +[\w:\[\]]+) <= (?=.*;$)", r"\1 = ", block[0].replace(" begin\n", " begin\n    if (started) begin end\n", 1), flags=re.M)


def soc(build, folder):
    sys.path.insert(0, str(build))
    from litex.build.generic_platform import GenericPlatform, Pins
    from litex.gen import ClockDomain, LiteXModule
    from litex.soc.integration.builder import Builder
    from litex.soc.integration.soc_core import SoCMini
    from litex.soc.interconnect import wishbone
    from mlo_litex import add_mlo

    class Platform(GenericPlatform):
        def build(self, *args, **kwargs): pass

    platform = Platform("", [("clk", 0, Pins(1)), ("rst", 0, Pins(1))], name="soc")
    host = wishbone.Interface(data_width=32, address_width=32, addressing="word")
    platform.add_extension(host.get_ios("host"))

    class Clocks(LiteXModule):
        def __init__(self):
            self.cd_sys = ClockDomain()
            self.comb += [self.cd_sys.clk.eq(platform.request("clk")), self.cd_sys.rst.eq(platform.request("rst"))]

    image = (build / "params.bin").read_bytes()          # as software would have loaded it
    words = [int.from_bytes(image[i:i + 4], "little") for i in range(0, len(image), 4)]
    made = SoCMini(platform, clk_freq=100e6, integrated_main_ram_size=ROOM, integrated_main_ram_init=words)
    made.crg = Clocks()
    made.bus.add_master("host", master=host)
    made.comb += host.connect_to_pads(platform.request("host"), mode="slave")
    add_mlo(made, origin=CORE)
    Builder(made, output_dir=folder, compile_software=False, compile_gateware=False, csr_json=os.path.join(folder, "csr.json")).build()
    os.chdir(folder)                                       # where it writes what is in memory
    made.platform.get_verilog(made, name="soc", regular_comb=False).write("soc.v")
    text = pathlib.Path("soc.v").read_text().replace(");\n", ");\nreg started = 1'd0;\ninitial started <= 1'd1;\n", 1)
    pathlib.Path("soc.v").write_text(re.sub(r"^always @\(\*\) begin\n.*?^end\n", for_icarus, text, flags=re.M | re.S))


async def drive(dut, build, csr):
    import cocotb
    from cocotb.clock import Clock
    from cocotb.task import bridge, resume
    from cocotb.triggers import ClockCycles, RisingEdge
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    for name in "cyc", "stb", "we", "cti", "bte": getattr(dut, "host_" + name).value = 0
    dut.host_sel.value = 15
    dut.rst.value = 1
    await ClockCycles(dut.clk, 5)
    dut.rst.value = 0
    place = {name: entry["addr"] for name, entry in csr["csr_registers"].items()}

    async def cycle(address, value=None):
        """One of the bus, from request to answer."""
        dut.host_adr.value, dut.host_we.value, dut.host_dat_w.value = address >> 2, value is not None, value or 0
        dut.host_cyc.value = dut.host_stb.value = 1
        await RisingEdge(dut.clk)
        while not dut.host_ack.value: await RisingEdge(dut.clk)
        read = 0 if value is not None else int(dut.host_dat_r.value)
        dut.host_cyc.value = dut.host_stb.value = 0
        await RisingEdge(dut.clk)
        return read

    async def put(data, at):
        for i in range(0, len(data), 4): await cycle(MEMORY + at + i, int.from_bytes(data[i:i + 4], "little"))

    async def begin(stream, at, size):
        for name, value in ("enable", 0), ("base", 0), ("base_low", MEMORY + at), ("length", size), ("enable", 1):
            register = place["mlo_%s_%s" % (stream, name.replace("_low", ""))]
            await cycle(register + 4 * (name == "base_low"), value)           # of 64 bits the high word comes first

    class Registers:
        read = staticmethod(resume(lambda offset: cycle(CORE + offset)))
        write = staticmethod(resume(lambda offset, value: cycle(CORE + offset, value)))

    class Dma:
        at = ROOM // 2

        async def sent(self, streams, size):
            self.size, self.out = size, self.at
            await begin("m_axis", self.out, size)
            at = self.at + size
            for name, data in streams.items():
                await put(data, at)
                await begin(name, at, len(data))
                at += -(-len(data) // 64) * 64

        async def taken(self):
            if not await cycle(place["mlo_m_axis_done"]): return None
            return b"".join([(await cycle(MEMORY + self.out + i)).to_bytes(4, "little") for i in range(0, self.size, 4)])

        def send(self, streams, size): resume(self.sent)(streams, size)
        def received(self): return resume(self.taken)()

    spec = importlib.util.spec_from_file_location("mlo_driver", build / "host/mlo_driver.py")
    driver = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(driver)
    def everything():
        try:
            core = driver.Core(build, Registers, Dma(), MEMORY, timeout=200)
            core.test()
            return "" if core.counters()["frames"] == 1 else str(core.counters())
        except Exception: return traceback.format_exc()[-600:].replace("\n", " | ")

    return await bridge(everything)()


if __name__ == "__main__": soc(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2])
elif "SOC_BUILD" in os.environ:
    import cocotb

    @cocotb.test()
    async def in_soc(dut):
        build, out = pathlib.Path(os.environ["SOC_BUILD"]), pathlib.Path(os.environ["SOC_OUT"])
        why = await drive(dut, build, json.loads((out / "csr.json").read_text()))
        (out / "said.json").write_text(json.dumps(why))
