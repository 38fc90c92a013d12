#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh [path/to/mlo]: a real BERT encoder (2 layers, hidden 64, 4 heads, 32 tokens), from .onnx to Verilog that Icarus checks.
mlo=${1:-./mlo}
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
model=$here/bert-tiny.onnx

echo "\$ mlo compile examples/bert-tiny.onnx --target-cycles 40000 -o build"
"$mlo" compile "$model" --target-cycles 40000 -o "$out/build" > "$out/compile.json" 2> "$out/compile.txt" || { cat "$out/compile.txt"; exit 1; }
sed -e "s|$out/||g" -e "s|$here/|examples/|g" "$out/compile.txt"

echo "\$ mlo sim build            # Icarus, every word compared with what mlo computes (some seconds)"
start=$(date +%s)
"$mlo" sim "$out/build" > "$out/sim.json" || exit 1
end=$(date +%s)

jq -r --argjson seconds $((end - start)) -n '
    input as $c | input as $s
    | "  PASS        \($s.words) words compared, all equal; \($s.frames) frame, \($c.iterations) iterations",
      "  cycles      \($s.cycles) simulated, \($s.predicted_cycles) predicted (\(100 * ($s.predicted_cycles - $s.cycles) / $s.cycles * 10 | round / 10) %)",
      "  multipliers \($s.multipliers), busy \(1000 * $s.utilization | round / 10) % of the time with one frame in flight (try --frames-in-flight 2)",
      "  parameters  \($s.weight_beats) beats of 128 bits read",
      "  the model   integers and floats agree: cosine \($c.error | map(.cosine) | min | . * 100000 | round / 100000)",
      "  simulated   in \($seconds) s",
      "",
      "Next: mlo help compile; --pe 4 --simd 4; mlo sim build --stall 30 --probe; mlo show examples/bert-tiny.onnx --html -o bert.html; make -C build synth"' \
    "$out/compile.json" "$out/sim.json"
