# SPDX-License-Identifier: MIT
"""mlo_sim_check_axis, _axi, _axi_write, _lite: legal traces are silent; each rule, broken once, is named, with its port and cycle, and nothing else is."""
import bench

CYCLES = 400
# where a signal lies in a cycle's word: check_tb.v
FIELDS = {"rst": (0, 1)}
for _name, _bits in (("tdata", 8), ("tvalid", 1), ("tready", 1), ("tlast", 1), ("araddr", 16), ("arlen", 8), ("arsize", 3), ("arburst", 2), ("arid", 1), ("arvalid", 1), ("arready", 1),
                     ("rdata", 32), ("rresp", 2), ("rid", 1), ("rlast", 1), ("rvalid", 1), ("rready", 1), ("l_awaddr", 12), ("l_awvalid", 1), ("l_awready", 1), ("l_wdata", 32), ("l_wstrb", 4),
                     ("l_wvalid", 1), ("l_wready", 1), ("l_bresp", 2), ("l_bvalid", 1), ("l_bready", 1), ("l_araddr", 12), ("l_arvalid", 1), ("l_arready", 1), ("l_rdata", 32), ("l_rresp", 2),
                     ("l_rvalid", 1), ("l_rready", 1), ("awaddr", 16), ("awlen", 8), ("awsize", 3), ("awburst", 2), ("awid", 1), ("awvalid", 1), ("awready", 1), ("wdata", 32), ("wstrb", 4),
                     ("wlast", 1), ("wvalid", 1), ("wready", 1), ("bresp", 2), ("bid", 1), ("bvalid", 1), ("bready", 1)):
    FIELDS[_name] = (max(at + bits for at, bits in FIELDS.values()), _bits)
RESET = 4


class Channel:
    """Offers beats with random gaps; a beat stays until taken. `taken` sees each beat and its cycle."""
    def __init__(self, rng, prefix, valid, ready, beats, taken=lambda beat: None):
        self.rng, self.prefix, self.valid, self.ready, self.beats, self.taken, self.now = rng, prefix, valid, ready, beats, taken, None

    def step(self, word):
        if self.now is None and self.rng.chance(60): self.now = self.beats()
        ready = self.rng.chance(50)
        word[self.valid], word[self.ready] = int(self.now is not None), int(ready)
        # while nothing is offered the payload may be anything
        word.update({self.prefix + k: v for k, v in (self.now or {}).items()})
        if self.now is not None and ready:
            self.taken(self.now)
            self.now = None


def legal(seed):
    """A trace of all three ports: a list of cycles, each a dict of fields."""
    rng, words, owed, left = bench.Rng(seed), [], [], {"aw": 0, "w": 0, "ar": 0}
    state = {"beat": 0, "frame": 3 * rng.between(1, 4)}

    def stream():
        last = state["beat"] == state["frame"] - 1
        beat = {"data": rng.bits(8), "last": int(last)}
        state["beat"] = 0 if last else state["beat"] + 1
        if last: state["frame"] = 3 * rng.between(1, 4)
        return beat

    def request(owed=owed, most=64):
        if len(owed) == 7: return None
        length = rng.between(1, most)
        page = rng.below(16) * 4096
        return {"addr": page + 4 * rng.between(0, 1024 - length), "len": length - 1, "size": 2, "burst": 1, "id": rng.bits(1)}

    def answer():
        if not owed: return None
        number, name, sent = owed[0]
        return {"data": rng.bits(32), "resp": 0, "id": name, "last": int(sent == number)}

    def answered(beat):
        if beat["last"]: owed.pop(0)
        else: owed[0][2] += 1

    written, sent = [], [0, 0]          # bursts {beats - 1, id}, not yet answered; of them: all of whose data came; beats of the next

    def data():
        if sent[0] == len(written): return None
        return {"data": rng.bits(32), "strb": rng.bits(4), "last": int(sent[1] == written[sent[0]][0])}

    def came(beat):
        sent[1] = 0 if beat["last"] else sent[1] + 1
        sent[0] += beat["last"]

    def answered_write(_):
        written.pop(0)
        sent[0] -= 1

    def count(name):
        def seen(_): left[name] += 1
        return seen

    def response():
        return {"resp": rng.bits(1) * 2} if left["aw"] and left["w"] else None

    def responded(_):
        left["aw"] -= 1
        left["w"] -= 1

    def read(_): left["ar"] -= 1
    channels = [Channel(rng, "t", "tvalid", "tready", stream), Channel(rng, "r", "rvalid", "rready", answer, answered),
                Channel(rng, "ar", "arvalid", "arready", request, lambda b: owed.append([b["len"], b["id"], 0])),
                Channel(rng, "b", "bvalid", "bready", lambda: {"resp": rng.bits(2), "id": written[0][1]} if sent[0] else None, answered_write),
                Channel(rng, "w", "wvalid", "wready", data, came),
                Channel(rng, "aw", "awvalid", "awready", lambda: request(written, 6), lambda b: written.append([b["len"], b["id"]])),
                Channel(rng, "l_b", "l_bvalid", "l_bready", response, responded), Channel(rng, "l_r", "l_rvalid", "l_rready", lambda: {"data": rng.bits(32), "resp": 0} if left["ar"] else None, read),
                Channel(rng, "l_aw", "l_awvalid", "l_awready", lambda: {"addr": rng.bits(12)}, count("aw")), Channel(rng, "l_w", "l_wvalid", "l_wready", lambda: {"data": rng.bits(32), "strb": 15}, count("w")),
                Channel(rng, "l_ar", "l_arvalid", "l_arready", lambda: {"addr": rng.bits(12)}, count("ar"))]
    for c in range(CYCLES):
        word = {name: "x" if bits > 1 else 0 for name, (_, bits) in FIELDS.items()}
        if c < RESET:
            word["rst"] = 1
        else:
            for ch in channels: ch.step(word)
        words.append(word)
    return words


def text(words):
    def bits(value, n): return "x" * n if value == "x" else format(value, "0%db" % n)
    top = max(at + n for at, n in FIELDS.values())
    lines = []
    for word in words:
        line = [bits(word[name], n) for name, (at, n) in sorted(FIELDS.items(), key=lambda f: -f[1][0])]
        lines.append("0" * (288 - top) + "".join(line))
    return "\n".join(lines) + "\n"


def lines_of(words):
    r = bench.run("check", {"CYCLES": CYCLES}, {"trace.txt": text(words)})
    said = [x for x in r.text.splitlines() if x.startswith("PROTOCOL")]
    # (two rules of a channel in one cycle count as one; of a channel the first 20 are said)
    bench.check("check", bool(said) == bool(r["breaches"]) and min(r["breaches"], 20) <= len(said), "%d breaches counted, %d lines" % (r["breaches"], len(said)))
    return said


def find(words, want, after=60):
    """A cycle, not an early one, where this holds of the cycle and the next one."""
    return next(c for c in range(after, CYCLES - 2) if want(words[c], words[c + 1]))


CHANNELS = {"stream": ("tvalid", "tready", "tdata"), "mem_ar": ("arvalid", "arready", "araddr"), "mem_r": ("rvalid", "rready", "rdata"), "mem_aw": ("awvalid", "awready", "awaddr"), "mem_w": ("wvalid", "wready", "wdata"),
            "mem_b": ("bvalid", "bready", "bresp"), "s_axil_aw": ("l_awvalid", "l_awready", "l_awaddr"),
            "s_axil_w": ("l_wvalid", "l_wready", "l_wdata"), "s_axil_b": ("l_bvalid", "l_bready", "l_bresp"), "s_axil_ar": ("l_arvalid", "l_arready", "l_araddr"), "s_axil_r": ("l_rvalid", "l_rready", "l_rdata")}


def expect(words, said, what):
    got = lines_of(words)
    bench.check("check", got == said, "%s: says %s, not %s" % (what, got, said))


def silent():
    for seed in range(1, 9): expect(legal(seed), [], "a legal trace")
    bench.ok("check", "8 legal traces of all ports are silent")


def channel_rules():
    for n, (port, (valid, ready, data)) in enumerate(CHANNELS.items(), 1):
        # a beat that waits two cycles (taken in the third at the earliest), to be spoiled in the second
        waits = lambda a, b: a[valid] and not a[ready] and b[valid] and not b[ready]
        for rule in "hold", "stable", "unknown", "reset":
            words = legal(n)
            c = find(words, waits)
            if rule == "hold":
                words[c + 1][valid] = 0
                said = ["PROTOCOL %s hold at cycle %d" % (port, c + 1)]
            elif rule == "stable":             # from here on it is the other beat
                kept, at = words[c][data], c + 1
                while words[at][valid]:
                    words[at][data] = kept ^ (4096 if port in ("mem_ar", "mem_aw") else 1)
                    at += 1
                    if words[at - 1][ready]: break
                said = ["PROTOCOL %s stable at cycle %d" % (port, c + 1)]
            elif rule == "unknown":            # X in one cycle: not what it was before, nor after
                words[c + 1][data] = "x"
                said = ["PROTOCOL %s %s at cycle %d" % (port, r, at) for at, r in ((c + 1, "stable"), (c + 1, "unknown"), (c + 2, "stable"))]
                got = lines_of(words)
                bench.check("check", sorted(got) == sorted(said) and len(got) > len({x.split(" at ")[1] for x in got}), "%s unknown: says %s" % (port, got))
                said = None
            else:
                for at in range(c - 2, CYCLES):
                    for f in words[at]: words[at][f] = 0 if FIELDS[f][1] == 1 else words[at][f]
                    if at < c + 3: words[at]["rst"] = 1
                words[c + 1].update({valid: 1, data: 0})
                if port == "stream": words[c + 1]["tlast"] = 0
                for f, (_, bits) in FIELDS.items():
                    if words[c + 1][f] == "x": words[c + 1][f] = 0
                said = ["PROTOCOL %s reset at cycle %d" % (port, c + 1)]
            if said is not None: expect(words, said, port + " " + rule)
            if rule == "unknown":
                words = legal(n)
                words[c + 1][ready] = "x"
                got = lines_of(words)
                bench.check("check", "PROTOCOL %s unknown at cycle %d" % (port, c + 1) in got, "%s, ready is X: says %s" % (port, got))
        bench.ok("check", "%s: hold, stable, reset and unknown are named, with the cycle" % port)


def own_rules():
    taken = lambda valid, ready: lambda a, b: a[valid] and a[ready] and not b[valid]

    def first_wait(c, words, valid, ready):
        """The first cycle in which the beat taken in cycle c was offered."""
        while words[c - 1][valid] and not words[c - 1][ready]: c -= 1
        return c

    def spoil(seed, valid, ready, want, changes, rule):
        words = legal(seed)
        c = find(words, lambda a, b: a[valid] and a[ready] and want(a))
        for at in range(first_wait(c, words, valid, ready), c + 1): words[at].update(changes(words[at]))
        got = lines_of(words)
        bench.check("check", got[:1] == ["PROTOCOL %s at cycle %d" % (rule, c)], "%s: says %s, not in cycle %d" % (rule, got, c))
        return got

    anything = lambda a: True
    for rule, change, want in (("boundary", lambda a: {"araddr": 8192 - 4, "arlen": 1}, anything), ("size", lambda a: {"arsize": 1}, anything), ("kind", lambda a: {"arburst": 2}, anything),
                               ("align", lambda a: {"araddr": a["araddr"] + 2}, lambda a: a["araddr"] % 4096 + 4 * a["arlen"] + 6 <= 4096), ("length", lambda a: {"arlen": 64, "araddr": 0}, anything)):
        spoil(21, "arvalid", "arready", want, change, "mem_ar " + rule)
    spoil(22, "rvalid", "rready", lambda a: not a["rlast"], lambda a: {"rlast": 1}, "mem_r rlast")
    spoil(23, "rvalid", "rready", lambda a: a["rlast"], lambda a: {"rlast": 0}, "mem_r rlast")
    got = spoil(24, "rvalid", "rready", anything, lambda a: {"rid": 1 - a["rid"]}, "mem_r id")
    bench.check("check", len(got) == 1, "another id: says %s" % got)
    # a beat nobody asked for: the first of all, before any request
    words = legal(25)
    for word in words: word.update({"arvalid": 0, "rvalid": 0})
    words[99].update({"rvalid": 1, "rready": 1, "rlast": 1, "rid": 0, "rdata": 1, "rresp": 0})
    expect(words, ["PROTOCOL mem_r unasked at cycle 99"], "r unasked")
    words = legal(26)
    for word in words: word.update({v: 0 for v in ("l_awvalid", "l_wvalid", "l_bvalid", "l_arvalid", "l_rvalid")})
    words[70].update({"l_bvalid": 1, "l_bready": 1, "l_bresp": 0})
    words[80].update({"l_rvalid": 1, "l_rready": 1, "l_rresp": 0, "l_rdata": 3})
    expect(words, ["PROTOCOL s_axil_b unasked at cycle 70", "PROTOCOL s_axil_r unasked at cycle 80"], "lite unasked")
    # more requests under way than can be followed: nine
    words = legal(27)
    for word in words: word.update({"arvalid": 0, "rvalid": 0})
    for c in range(50, 59): words[c].update({"arvalid": 1, "arready": 1, "araddr": 64 * c, "arlen": 0, "arsize": 2, "arburst": 1, "arid": 0})
    expect(words, ["PROTOCOL mem_ar length at cycle 58"], "nine requests")
    bench.ok("check", "requests: boundary, size, kind, align, length; data: unasked, rlast, id; answers unasked")
    for rule, change, want in (("boundary", lambda a: {"awaddr": 8192 - 4, "awlen": 1}, anything), ("size", lambda a: {"awsize": 1}, anything), ("kind", lambda a: {"awburst": 0}, anything),
                               ("align", lambda a: {"awaddr": a["awaddr"] + 1}, lambda a: a["awaddr"] % 4096 + 4 * a["awlen"] + 6 <= 4096), ("length", lambda a: {"awlen": 64, "awaddr": 0}, anything)):
        spoil(31, "awvalid", "awready", want, change, "mem_aw " + rule)
    spoil(32, "wvalid", "wready", lambda a: not a["wlast"], lambda a: {"wlast": 1}, "mem_w wlast")
    spoil(33, "wvalid", "wready", lambda a: a["wlast"], lambda a: {"wlast": 0}, "mem_w wlast")
    got = spoil(34, "bvalid", "bready", anything, lambda a: {"bid": 1 - a["bid"]}, "mem_b id")
    bench.check("check", len(got) == 1, "an answer with another id: says %s" % got)
    # data before their request, and an answer before the last of them: a burst of two beats
    request = {"awaddr": 0, "awlen": 1, "awsize": 2, "awburst": 1, "awid": 0, "awvalid": 1, "awready": 1}
    beat = {"wvalid": 1, "wready": 1, "wdata": 5, "wstrb": 15}
    for what, at, said in (("early", (101, 100, 102, 103), "mem_w early at cycle 100"), ("with their request", (100, 100, 101, 102), ""), ("answered too soon", (100, 101, 103, 102), "mem_b unasked at cycle 102")):
        words = legal(35)
        for word in words: word.update({"awvalid": 0, "wvalid": 0, "bvalid": 0})
        words[at[0]].update(request)
        words[at[1]].update(beat, wlast=0)
        words[at[2]].update(beat, wlast=1)
        words[at[3]].update({"bvalid": 1, "bready": 1, "bid": 0, "bresp": 0})
        got = lines_of(words)
        bench.check("check", got[:1] == (["PROTOCOL " + said] if said else []), "data %s: says %s" % (what, got))
    bench.ok("check", "writes: the rules of requests; data: early, wlast; answers: unasked, id")
    for want, last in ((lambda a: not a["tlast"], 1), (lambda a: a["tlast"], 0)):
        words, beat, token = legal(28), 0, 0
        for c in range(RESET, CYCLES):
            if words[c]["tvalid"] and words[c]["tready"]:
                # early: not on a token's final beat; missing: where the frame has four tokens
                if c > 60 and ((last and beat % 3 != 2) or (not last and words[c]["tlast"] and beat == 11)): break
                beat = 0 if words[c]["tlast"] else beat + 1
        for at in range(first_wait(c, words, "tvalid", "tready"), c + 1): words[at]["tlast"] = last
        got = lines_of(words)
        bench.check("check", got[:1] == ["PROTOCOL stream last at cycle %d" % c], "tlast = %d in cycle %d: says %s" % (last, c, got))
    bench.ok("check", "tlast within a token, and missing at the longest frame's end")


silent()
channel_rules()
own_rules()
bench.end(floor=15, simulations=87)
