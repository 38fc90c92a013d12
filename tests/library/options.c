/* SPDX-License-Identifier: MIT
 * options: mlo_set knows every flag that the command line hands on, what such flags' files go by, and nothing else. Says what is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "mlo.h"
#include "cli/table.c"
#include "mlo.c"

static mlo_code set(const char *key) {
    mlo *m = mlo_open(NULL);
    mlo_code code = (mlo_code)mlo_set(m, key, "1");
    if (code && (code != MLO_E_USAGE || !strstr(mlo_failure(m)->text, key))) printf("'%s': %s\n", key, mlo_failure(m)->text);
    mlo_close(m);
    return code;
}

int main(void) {
    static const char *const others[] = { "folding-json", "q-config-json", "simulation", "waves", "plan", "frames", "jobs", "data-file", "data-limit", "title", "built", "accuracy", "open" };
    static const char *const unknown[] = { "target-cycle", "pee", "PE", "--pe", "pe ", "o", "config", "folding" };
    size_t known = sizeof others / sizeof *others, all = sizeof mlo_option_names / sizeof *mlo_option_names;
    for (size_t i = 0; i < known; i++) if (set(others[i])) printf("%s is not known\n", others[i]);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) if (!set(unknown[i])) printf("'%s' is taken\n", unknown[i]);
    for (int i = 0; i < CLI_FLAGS; i++) {
        int before = 0;
        for (int k = 0; k < i; k++) before |= cli_flags[k].to_mlo && !strcmp(cli_flags[k].name, cli_flags[i].name);
        if (cli_flags[i].to_mlo && set(cli_flags[i].name)) printf("--%s is not known\n", cli_flags[i].name);
        known += cli_flags[i].to_mlo && !before;
    }
    if (known != all) printf("%zu options have a meaning, %zu are known\n", known, all);
    return 0;
}
