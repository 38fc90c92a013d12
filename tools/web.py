#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes mlo as one page, same files same bytes: python3 tools/web.py mlo.wasm mlo.js MODEL.onnx > mlo.html

The library and the example lie in it compressed; what runs is web/page.js and web/lesson.js and, beside them in a worker, Emscripten's mlo.js, web/library.js,
web/numbers.js and web/worker.js."""
import base64, gzip, os, re, sys

web = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "web")


def read(path):
    with open(path, "rb") as f: return f.read()


def packed(path): return base64.b64encode(gzip.compress(read(path), 9, mtime=0)).decode()


def script(*names): return "".join(read(os.path.join(web, name + ".js")).decode() for name in names)


wasm, glue, model = sys.argv[1:]
parts = {"wasm": packed(wasm), "model": packed(model), "worker": read(glue).decode() + script("library", "numbers", "worker"), "page": script("lesson", "page")}
for name in "worker", "page":
    if "</script" in parts[name]: sys.exit("web: %s would end its element" % name)
sys.stdout.write(re.sub("@(%s)@" % "|".join(parts), lambda m: parts[m[1]], read(os.path.join(web, "page.html")).decode()))
