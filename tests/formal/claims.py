# SPDX-License-Identifier: MIT
"""claims: what is claimed of each module, one file each: claims/mlo_NAME.txt. A line is one claim:

    proof DEPTH [FLAG ...] [PARAM=VALUE ...]              its own properties, `ifdef FORMAL: run.py says which flags there are
    mutant DEPTH [FLAG ...] [PARAM=VALUE ...] | OLD | NEW      with NEW for OLD they must fail              (\\| stands for |)
    contract [deep:N] [PARAM=VALUE ...]                   the stream contract in contract/mlo_NAME.v: contract.py
    mutant contract [deep:N] [PARAM=VALUE ...] | OLD | NEW
    synth [PARAM=VALUE ...]                               it is routed, and reaches 100 MHz: ../synth.py

Blank lines and those that begin with # are for people. What begins with another word is an error."""
import collections
import glob
import os
import re
import sys
HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("proof", "mutant", "contract", "mutant contract", "synth")

# where: FILE:LINE; text: what stands behind the kind, up to the first |
Claim = collections.namedtuple("Claim", "where module kind text old new")


def claim(path, number, line):
    """One line."""
    where, module = "%s:%d" % (os.path.basename(path), number), os.path.basename(path)[:-len(".txt")]
    head, *change = [x.strip().replace("\\|", "|") for x in re.split(r" \|(?: |$)", line)]
    kind = max((k for k in KINDS if (head + " ").startswith(k + " ")), key=len, default="")
    if not kind or len(change) != (2 if kind.startswith("mutant") else 0):
        sys.exit("%s: what is '%s'? (claims.py says)" % (where, line))
    return Claim(where, module, kind, " ".join(head[len(kind):].split()), *(change or [None, None]))


def read(kind):
    """All claims of a kind, module by module."""
    found = []
    for path in sorted(glob.glob(os.path.join(HERE, "claims", "mlo_*.txt"))):
        with open(path) as f:
            lines = [(n, line.strip()) for n, line in enumerate(f, 1)]
        found += [claim(path, n, line) for n, line in lines if line and not line.startswith("#")]
    return [c for c in found if c.kind == kind]
