/* SPDX-License-Identifier: MIT
 * tokenizer_driver FILE: of each text on stdin, which ends with a byte 0, a line of its token numbers, and of them, a second, the bytes
 * in hexadecimal that they say. Without FILE: on stderr, what a terminal is told of parts of a work, each a line (cli/tick.c). */
#define main mlo_command_line
#include "main.c"
#undef main

static void say(const cli_tokenizer *t, const char *text) {
    int64_t *ids = (int64_t *)malloc((strlen(text) + 3) * sizeof *ids);
    const int n = cli_token_encode(t, text, ids);
    for (int i = 0; i < n; i++) printf("%lld ", (long long)ids[i]);
    puts("");
    for (int i = 0; i < n; i++) {
        char bytes[512];
        const int k = cli_token_decode(t, i ? ids[i - 1] : -1, ids[i], bytes);
        for (int j = 0; j < k; j++) printf("%02x", (unsigned char)bytes[j]);
    }
    puts("");
    free(ids);
}

/* Long work, to a clock that says each time that its line is due. */
static int tick(void) {
    static const double parts[] = { 0, 0.25, 0.25, 0.5, 0.125, 0.25 };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        cli_ticked.next = 0;
        cli_tick(NULL, "works", parts[i]);
        fputs("\n", stderr);
    }
    cli_tick(NULL, NULL, 1);
    return 0;
}

int main(int argc, char **argv) {
    static cli c;
    cli_tokenizer t;
    char text[4096];
    int n = 0;
    if (argc < 2) return tick();
    c.m = mlo_open(NULL);
    if (argc != 2 || cli_tokenizer_open(&c, argv[1], &t)) return 1;
    for (int ch; (ch = getchar()) != EOF && n < (int)sizeof text;) {
        text[n++] = (char)ch;
        if (ch) continue;
        say(&t, text);
        n = 0;
    }
    cli_tokenizer_free(&t);
    mlo_close(c.m);
    return 0;
}
