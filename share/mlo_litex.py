# SPDX-License-Identifier: MIT
"""mlo_litex: this core in a LiteX SoC.

    sys.path.append("build")                              # the build directory
    from mlo_litex import add_mlo
    add_mlo(self, origin=0x9000_0000)                     # in the SoC's __init__

add_mlo gives the core registers at `origin`, the SoC's memory for parameters (and for keys and values), and each stream a DMA with registers of LiteX:
base and length in bytes, then enable, until done. Software loads params.bin into memory, writes its address to the core (host/mlo_regs.h, or
host/mlo_driver.c with these DMAs), starts the DMAs, and finds the results in memory.

MLO alone is the module: streams and buses are LiteX's, to be connected as you like: `params` may go to a port of LiteDRAM (LiteDRAMAXI2Native), where
bursts run at the memory's own width; the way through the SoC's bus is the simple one, and takes some cycles for each word."""
import pathlib
import re
from litex.gen import ClockSignal, Instance, LiteXModule, ResetSignal, Signal
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import axi, stream, wishbone
from litex.soc.cores.dma import WishboneDMAReader, WishboneDMAWriter

PORT = re.compile(r"^ *(input|output) +wire +(?:\[(\d+):0\])? *(\w+)", re.M)
AXI = {"m_axi_kv": "cache", "m_axi": "params", "s_axil": "registers"}         # the longer prefix first


class MLO(LiteXModule):
    """mlo_top of a build directory. Attributes: s_axis, m_axis, .. (stream.Endpoint of `data`, by their names in Verilog), registers (AXI-Lite, 4 KiB),
    params (AXI, only read), and of a core with a cache in memory `cache` (AXI, read and written); of addresses the low `address_width` bits."""

    def __init__(self, platform, build=pathlib.Path(__file__).parent, address_width=32):
        self.address_width = address_width
        rtl = pathlib.Path(build).resolve() / "rtl"
        for source in sorted(rtl.glob("*.v")): platform.add_source(str(source))
        ports = {name: (way, int(msb or 0) + 1) for way, msb, name in PORT.findall((rtl / "mlo_top.v").read_text())}
        wires = {"i_clk": ClockSignal("sys"), "i_rst": ResetSignal("sys")}
        for name, (way, bits) in ports.items():
            if name in ("clk", "rst"): continue
            wire, signal = Signal(bits, name=name), self.of(name, ports)
            self.comb += wire.eq(signal) if way == "input" else signal.eq(wire)
            wires[way[0] + "_" + name] = wire
        self.specials += Instance("mlo_top", name="mlo_top", **wires)

    def of(self, name, ports):
        """The signal of a stream or bus, made when its first port comes by."""
        for prefix, bus in AXI.items():
            if name.startswith(prefix + "_"):
                channel, field = re.fullmatch(r"(aw|ar|w|r|b)(\w+)", name[len(prefix) + 1:]).groups()
                if not hasattr(self, bus):
                    bits = ports[prefix + "_rdata"][1]
                    setattr(self, bus, (axi.AXILiteInterface if bus == "registers" else axi.AXIInterface)(bits, self.address_width))
                return getattr(getattr(getattr(self, bus), channel), field)
        name, field = name.rsplit("_t", 1)
        if not hasattr(self, name): setattr(self, name, stream.Endpoint([("data", ports[name + "_tdata"][1])]))
        return getattr(getattr(self, name), field)

    def streams(self): return {name: s for name, s in vars(self).items() if isinstance(s, stream.Endpoint)}


def add_dma(soc, name, port, way):
    """Memory to a stream of the core's (way "in"), or back, by a master of the SoC's bus."""
    bus = wishbone.Interface(data_width=soc.bus.data_width, address_width=soc.bus.address_width, addressing="word")
    soc.bus.add_master(name, master=bus)
    dma = (WishboneDMAReader if way == "in" else WishboneDMAWriter)(bus, endianness="big", with_csr=True)     # "big": words as they lie there
    soc.add_module(name, dma)
    wide, narrow = bus.data_width, len(port.data)
    steps = [wide, narrow] if max(wide, narrow) % min(wide, narrow) == 0 else [wide, 8, narrow]         # by bytes, where words do not fit one another
    parts = [stream.Converter(*pair) for pair in zip(steps, steps[1:])] if way == "in" else [stream.Converter(*pair) for pair in zip(steps[::-1], steps[-2::-1])]
    for n, part in enumerate(parts): soc.add_module("%s_width%d" % (name, n), part)
    chain = [dma.source, *parts, port] if way == "in" else [port, *parts, dma.sink]
    soc.submodules += stream.Pipeline(*chain)


def add_mlo(soc, build=pathlib.Path(__file__).parent, origin=None, name="mlo"):
    """The core on the SoC's bus. Returns it; its DMAs are soc.mlo_s_axis, soc.mlo_m_axis, .."""
    core = MLO(soc.platform, build, soc.bus.address_width)
    soc.add_module(name, core)
    soc.bus.add_slave(name, core.registers, SoCRegion(origin=origin, size=0x1000, cached=False))
    for bus in "params", "cache":
        if hasattr(core, bus): soc.bus.add_master("%s_%s" % (name, bus), master=getattr(core, bus))
    for stream_name, port in core.streams().items(): add_dma(soc, "%s_%s" % (name, stream_name), port, "in" if stream_name[0] == "s" else "out")
    return core
