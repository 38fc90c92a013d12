#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes mlo as one page, same files same bytes: python3 tools/web.py mlo.wasm mlo.js MODEL.onnx > mlo.html

The library and the example lie in it compressed; what runs is web/page.js and, beside it in a worker, Emscripten's mlo.js, web/library.js and web/worker.js."""
import base64, gzip, os, re, sys

web = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "web")


def read(path):
    with open(path, "rb") as f: return f.read()


def packed(path): return base64.b64encode(gzip.compress(read(path), 9, mtime=0)).decode()


wasm, glue, model = sys.argv[1:]
parts = {"wasm": packed(wasm), "model": packed(model), "worker": read(glue).decode() + read(os.path.join(web, "library.js")).decode() + read(os.path.join(web, "worker.js")).decode(), "page": read(os.path.join(web, "page.js")).decode()}
for name in "worker", "page":
    if "</script" in parts[name]: sys.exit("web: %s would end its element" % name)
sys.stdout.write(re.sub("@(%s)@" % "|".join(parts), lambda m: parts[m[1]], read(os.path.join(web, "page.html")).decode()))
