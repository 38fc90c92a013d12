#!/bin/sh
# SPDX-License-Identifier: MIT
# story.sh [path/to/mlo]: a trained Llama of 260 000 parameters (A. Karpathy, llama2.c, MIT licence) tells its story: from an export with past and present
# keys and values to Verilog that is simulated, token by token. It stays in story/.
mlo=${1:-./mlo}
here=$(dirname "$0")
model=$here/../tests/models/stories260k-step.onnx

echo "\$ $mlo compile $model --context 128 -o story"
"$mlo" compile "$model" --context 128 -o story > /dev/null || exit 1

echo "\$ $mlo generate story --prompt 'Once upon a time' --tokenizer $here/tok512.bin --count 59"
"$mlo" generate story --prompt 'Once upon a time' --tokenizer "$here/tok512.bin" --count 59 || exit 1

echo
echo "\$ $mlo sim story --prompt 1,403,407,261,378 --generate 59     # the same in Verilog: a prompt, and a token at a time; every word compared"
"$mlo" sim story --prompt 1,403,407,261,378 --generate 59 --text || exit 1
