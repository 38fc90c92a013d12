/* SPDX-License-Identifier: MIT
 * fuzz_json: any bytes as the JSON of a model. What is read is written as JSON and as binary ONNX; both are read again, and say the
 * same; then it is rolled; what rolls is proved equal.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    fuzz_world w;
    fuzz_text json = { NULL, 0, 0 }, binary = { NULL, 0, 0 };
    mlo *m = fuzz_start(&w, data, n);
    if (!(n & 1 ? mlo_load(m, "fuzz.onnx") : mlo_parse(m, data, n, "."))) {
        fuzz_again(m, mlo_write_json, "JSON", &json);
        fuzz_again(m, mlo_write_onnx, "binary ONNX", &binary);
        fuzz_roll(m, data, n);
    }
    fuzz_end(m, &w);
    free(json.text);
    free(binary.text);
    return 0;
}
