"""Drives mlo_top with cocotb and cocotbext-axi: make cocotb (needs cocotb >= 2, cocotbext-axi and Icarus)."""
import itertools, json, pathlib, random, sys
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiRamRead, AxiReadBus, AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

HERE = pathlib.Path(__file__).resolve().parent.parent

def frames(name, width):
    """The frames of a hex file of {tlast, tdata} words, as bytes."""
    out, now = [], bytearray()
    for line in (HERE / 'tb' / name).read_text().split():
        now += int(line[1:], 16).to_bytes(width, 'little')
        if line[0] == '1':
            out.append(bytes(now)); now = bytearray()
    return out

def rows(manifest, name, positions):
    """Keys and values of so many positions in a hex file of words of memory: where they lie, and as bytes."""
    wide = manifest['axi_bits'] // 8
    row = manifest['kv']['row_beats'] * wide
    data = b''.join(int(line, 16).to_bytes(wide, 'little') for line in (HERE / 'tb' / name).read_text().split()) if positions else b''
    for k in range(len(data) // max(row * positions, 1)):
        yield k * row * manifest['context'], data[k * row * positions:(k + 1) * row * positions]

def pauses(seed, percent):
    r = random.Random(seed)
    return (r.randrange(100) < percent for _ in itertools.count())

@cocotb.test()
async def golden(dut):
    manifest = json.loads((HERE / 'manifest.json').read_text())
    around = manifest.get('around', {})         # of a core of token ids: ids come in; of a decoder's {id, logit} of what follows a job out
    tail = around.get('tail')                   # of an encoder's, that makes a vector of each frame: its beats
    width, made = 4 if around else manifest['stream']['bytes'], 8 if 'head' in around else manifest['stream']['bytes']
    if tail: made = tail['lanes'] * -(-tail['bits'] // 8)
    masked = manifest['stream']['masked']
    cocotb.start_soon(Clock(dut.clk, 10, 'ns').start())
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, 's_axis'), dut.clk, dut.rst)
    again = manifest.get('replay', {})          # what every iteration reads again, and its mask
    more = [('s1_axis', 'mask.hex', 1)] * masked + [('s2_axis', 'replay.hex', again and again['lanes'] * -(-again['bits'] // 8))] * bool(again)
    more += [('s3_axis', 'replay_mask.hex', 1)] * again.get('masked', False)
    others = [AxiStreamSource(AxiStreamBus.from_prefix(dut, port), dut.clk, dut.rst) for port, _, _ in more]
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, 'm_axis'), dut.clk, dut.rst)
    host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, 's_axil'), dut.clk, dut.rst)
    image = (HERE / 'params.bin').read_bytes()
    ram = AxiRamRead(AxiReadBus.from_prefix(dut, 'm_axi'), dut.clk, dut.rst, size=max(4096, 1 << (len(image) - 1).bit_length()))
    ram.write(0, image)
    kv = manifest.get('kv')                     # keys and values that lie in memory; a model's own begin with a past
    if kv:
        cache = AxiRam(AxiBus.from_prefix(dut, 'm_axi_kv'), dut.clk, dut.rst, size=max(4096, 1 << (kv['bytes'] - 1).bit_length()))
        for at, data in rows(manifest, 'past.hex', kv.get('past', 0)): cache.write(at, data)
    # everybody stalls now and then: streams, memory, registers
    stalling = [source, sink, ram.ar_channel, ram.r_channel, host.write_if.aw_channel, host.write_if.w_channel, host.write_if.b_channel, host.read_if.ar_channel, host.read_if.r_channel]
    if kv: stalling += [cache.read_if.ar_channel, cache.read_if.r_channel, cache.write_if.aw_channel, cache.write_if.w_channel, cache.write_if.b_channel]
    for seed, channel in enumerate(stalling + others): channel.set_pause_generator(pauses(seed, 20))
    dut.rst.value = 1
    for _ in range(5): await RisingEdge(dut.clk)
    dut.rst.value = 0
    for _ in range(5): await RisingEdge(dut.clk)
    assert await host.read_dword(0) == 0x4D4C4F31
    await host.write_dword(0x10, 0); await host.write_dword(0x14, 0)
    await host.write_dword(0x18, manifest['iterations']); await host.write_dword(0x1c, manifest['frames_in_flight'])
    await host.write_dword(0x08, 2)             # a soft reset follows settings
    for _ in range(20): await RisingEdge(dut.clk)
    await host.write_dword(0x08, 1)
    for f in frames('input.hex', width): await source.send(AxiStreamFrame(f))
    for channel, (_, file, wide) in zip(others, more):
        for f in frames(file, wide): await channel.send(AxiStreamFrame(f))
    for job in manifest.get('jobs', []):        # of a core with caches: where each frame belongs
        while not await host.read_dword(0x28): pass
        await host.write_dword(0x20, job['slot'] << 24 | job['start']); await host.write_dword(0x24, job['tokens'])
    golden = frames('golden.hex', made)
    loop = around.get('head', around.get('front'))['offset'] if around else len(image)          # the part of the image that is counted
    for i, f in enumerate(golden):
        got = await sink.recv()
        assert bytes(got.tdata) == f, f'frame {i} differs'
    assert await host.read_dword(0x0c) & 0x16 == 0, 'bus error, or a job was refused'
    for at, data in rows(manifest, 'kept.hex', manifest['context']) if kv and 'kept' in kv else []:
        assert cache.read(at, len(data)) == data, f'keys and values that are kept differ, from byte {at} of their memory on'
    # the counters: frames, parameters read, and of each kernel how it spent its cycles
    cycles, done, beats = [await host.read_dword(a) for a in (0x40, 0x44, 0x48)]
    groups = -(-len(golden) // manifest['frames_in_flight'])
    assert done == len(golden), f'{done} frames counted'
    assert beats * manifest['axi_bits'] // 8 >= groups * loop, f'{beats} beats of parameters counted'
    for k, kernel in enumerate(manifest['kernels']):
        busy, starved, blocked = [await host.read_dword(0x80 + 16 * k + 4 * i) for i in range(3)]
        assert 0 < busy and busy + starved + blocked <= cycles, f'{kernel["name"]}: {busy} + {starved} + {blocked} of {cycles} cycles'
        tokens = sum(job['tokens'] for job in manifest['jobs']) / manifest['tokens'] if 'jobs' in manifest else len(golden)
        work = kernel['macs'] / max(kernel['multipliers'], 1) * tokens
        # (behind a vector of the first token the others are not counted to the end: no frame is inside)
        if kernel['op'].startswith('MVU'): assert busy == work or tail and busy < work, f'{kernel["name"]}: busy for {busy} cycles, {work} are its work'

if __name__ == '__main__':
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner
    runner = get_runner('icarus')
    runner.build(sources=sorted((HERE / 'rtl').glob('*.v')), hdl_toplevel='mlo_top', build_dir=str(HERE / 'cocotb' / 'build'), timescale=('1ns', '1ps'), always=True)
    results = runner.test(hdl_toplevel='mlo_top', test_module='test_mlo', test_dir=str(HERE / 'cocotb'), build_dir=str(HERE / 'cocotb' / 'build'))
    tests, failed = get_results(results)
    sys.exit(failed > 0 or tests == 0)
