#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh [path/to/mlo]: a real BERT encoder (2 layers, hidden 64, 4 heads, 32 tokens), from .onnx to Verilog that is simulated. It stays in demo/.
mlo=${1:-./mlo}
model=$(dirname "$0")/bert-tiny.onnx

echo "\$ $mlo compile $model --target-cycles 40000 -o demo"
"$mlo" compile "$model" --target-cycles 40000 -o demo > /dev/null || exit 1

echo "\$ $mlo sim demo            # every word compared with what mlo computes (some seconds)"
"$mlo" sim demo --text || exit 1

cat << END

Next: $mlo sim demo --stall 30 --probe
      $mlo show $model --html -o bert.html
      $mlo compile $model --pe 4 --simd 4 -o demo-4x4
      $mlo help compile
      make -C demo lint
END
