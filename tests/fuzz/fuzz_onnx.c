/* SPDX-License-Identifier: MIT
 * fuzz_onnx: any bytes as binary ONNX, from memory or, when they are many enough for both, from a file. What is read is written and
 * read again, then rolled; what rolls is proved equal.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    fuzz_world w;
    fuzz_text binary = { NULL, 0, 0 };
    mlo *m = fuzz_start(&w, data, n);
    if (!(n & 1 ? mlo_load(m, "fuzz.onnx") : mlo_parse(m, data, n, "."))) {
        fuzz_again(m, mlo_write_onnx, "binary ONNX", &binary);
        fuzz_roll(m, data, n);
    }
    fuzz_end(m, &w);
    free(binary.text);
    return 0;
}
