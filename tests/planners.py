# SPDX-License-Identifier: MIT
"""planners: what others would make of the places of an arena, as a manifest of C has them ({"bytes", "steps"}).

    meet(a, b)               not 0: both are in use at some step
    packed(places)           bytes of the arena when each, in this order, lies as low as it goes
    other_planners(places)   bytes by first fit by size, as TFLM's greedy planner has it, by when they come into use"""


def meet(a, b): return int(a["steps"], 2) & int(b["steps"], 2)


def lowest(place, put):
    """The lowest offset that is free of those put that it meets."""
    at = 0
    for o in sorted((o for o in put if meet(o, place)), key=lambda o: o["offset"]):
        if at + place["bytes"] <= o["offset"]: break
        at = max(at, o["offset"] + o["bytes"])
    return at


def packed(places):
    put = []
    for p in places: put.append(dict(p, offset=lowest(p, put)))
    return max(p["offset"] + p["bytes"] for p in put)


def other_planners(places):
    """First fit by size; TFLM's greedy (by size, those in use earlier first); by when they come into use."""
    return [packed(sorted(places, key=key)) for key in (lambda p: -p["bytes"], lambda p: (-p["bytes"], p["steps"].find("1")), lambda p: (p["steps"].find("1"), -p["bytes"]))]
