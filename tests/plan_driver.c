/* SPDX-License-Identifier: MIT
 * plan_driver: the planner of the arena (src/c/plan.c) on places from stdin: for each set "N STEPS", then N lines "BYTES 0101.."; of each set it
 * prints "BYTES BOUND PROVED", the offsets, and "| " with what people are told. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct mlo mlo;
enum { MLO_CORE_MOST = 96 };
static int64_t mlo_max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t mlo_parts(int64_t a, int64_t b) { return (a + b - 1) / b; }
static const char *mlo_format(mlo *m, const char *format, ...) {
    static char text[200];
    va_list values;
    (void)m;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return text;
}
static const char *mlo_decimal(mlo *m, const char *format, double x) { return mlo_format(m, format, x); }
#include "src/c/plan.c"

int main(void) {
    static mlo_arena p;
    char steps[256];
    while (scanf("%d %d", &p.n, &p.steps) == 2) {
        memset(p.place, 0, sizeof p.place);
        for (int i = 0; i < p.n; i++) {
            long long bytes;
            if (scanf("%lld %255s", &bytes, steps) != 2) return 2;
            p.place[i].bytes = bytes;
            for (int s = 0; s < p.steps; s++) p.place[i].live[s] = steps[s] == '1';
        }
        mlo_plan_solve(&p);
        printf("%lld %lld %d", (long long)p.bytes, (long long)p.bound, mlo_plan_proved(&p));
        for (int i = 0; i < p.n; i++) printf(" %lld", (long long)p.place[i].at);
        printf(" | %s\n", mlo_plan_text(NULL, &p));
    }
    return 0;
}
