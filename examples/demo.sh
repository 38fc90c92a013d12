#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh [path/to/mlo]: a real BERT encoder (2 layers, hidden 64, 4 heads, 32 tokens), from .onnx to Verilog that is simulated, and a page about it. It stays in demo/.
mlo=${1:-./mlo}
model=$(dirname "$0")/bert-tiny.onnx

echo "\$ $mlo compile $model --target-cycles 40000 -o demo"
"$mlo" compile "$model" --target-cycles 40000 -o demo > /dev/null || exit 1

echo "\$ $mlo sim demo            # every word compared with what mlo computes (some seconds)"
"$mlo" sim demo --text || exit 1

echo
echo "\$ $mlo show demo --html -o demo/demo.html"
"$mlo" show demo --html -o demo/demo.html || exit 1

cat << END

Look: demo/demo.html, in a browser: the layer, its kernels, what they did when
Next: $mlo sim demo --stall 30 --probe
      $mlo compile $model --pe 4 --simd 4 -o demo-4x4
      $mlo help compile
      make -C demo lint
END
