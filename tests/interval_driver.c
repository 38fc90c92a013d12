/* SPDX-License-Identifier: MIT
 * What test_interval.py drives: the arithmetic of src/kernels/interval.c, which no command line reaches at its ends.
 *
 * stdin: a question a line, a word and its numbers; stdout: the answer, a line each.
 *     sum A B C D, product A B C D   of the intervals A..B and C..D        -> two ends
 *     many N A B                     N numbers of A..B added up            -> two ends
 *     signed BITS                    all numbers of so many bits           -> two ends
 *     bits A B                       of a signed number that is any of A..B
 *     clog2 N
 *     room A B C ONNX VERILOG SIGNED which execution has no room for A..B  -> its name, its bits
 */
#include "../src/mlo.c"

static void driver_ends(mlo_interval i) { printf("%lld %lld\n", (long long)i.lo, (long long)i.hi); }

static void driver_room(mlo_interval range, const int64_t *bits) {
    const mlo_intermediate i = { "x", range, 0, (int)bits[0], (int)bits[1], (int)bits[2], (int)bits[3], NULL };
    int has = 0;
    const char *where = mlo_no_room(&i, &has);
    printf("%s %d\n", where ? where : "all", has);
}

static void driver_answer(const char *word, const int64_t *n) {
    const mlo_interval a = { n[0], n[1] }, b = { n[2], n[3] };
    if (!strcmp(word, "sum")) driver_ends(mlo_sum_of(a, b));
    else if (!strcmp(word, "product")) driver_ends(mlo_product_of(a, b));
    else if (!strcmp(word, "many")) driver_ends(mlo_sum_of_many(n[0], mlo_from_to(n[1], n[2])));
    else if (!strcmp(word, "signed")) driver_ends(mlo_signed_bits((int)n[0]));
    else if (!strcmp(word, "bits")) printf("%d\n", mlo_bits_for(a));
    else if (!strcmp(word, "clog2")) printf("%d\n", mlo_clog2(n[0]));
    else if (!strcmp(word, "room")) driver_room(a, n + 2);
    else printf("what is %s?\n", word);
}

int main(void) {
    char line[256], word[16];
    while (fgets(line, sizeof line, stdin)) {
        long long n[6] = { 0 };
        int64_t given[6];
        if (sscanf(line, "%15s %lld %lld %lld %lld %lld %lld", word, n, n + 1, n + 2, n + 3, n + 4, n + 5) < 2) return 2;
        for (int i = 0; i < 6; i++) given[i] = n[i];
        driver_answer(word, given);
    }
    return 0;
}
