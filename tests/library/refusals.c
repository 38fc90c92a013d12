/* SPDX-License-Identifier: MIT
 * refusals: loaded before mlo (LD_PRELOAD), refuses memory once, where the program itself (not a library that it calls) asks at a place that
 * is the MLO_PLACE-th (1, 2, ..) to ask. The file MLO_REFUSED is made when it does. What mlo starts is left alone.
 *
 *     MLO_PLACE=3 MLO_REFUSED=/tmp/refused LD_PRELOAD=./refusals.so mlo read model.onnx
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static uintptr_t from, to; /* the program's code */
static const void *seen[256];
static int places, chosen;
static char report[4096];

static int program(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, to = from + info->dlpi_phdr[i].p_memsz;
    return 1; /* the first one is it */
}

__attribute__((constructor)) static void begin(void) {
    const char *place = getenv("MLO_PLACE"), *path = getenv("MLO_REFUSED");
    for (size_t i = 0; path && path[i] && i < sizeof report - 1; i++) report[i] = path[i];
    chosen = place ? atoi(place) : 0;
    unsetenv("LD_PRELOAD");
    dl_iterate_phdr(program, NULL);
}

static int refused(const void *caller) {
    if ((uintptr_t)caller < from || (uintptr_t)caller >= to || places == 256) return 0;
    for (int i = 0; i < places; i++)
        if (seen[i] == caller) return 0;
    seen[places++] = caller;
    if (places != chosen) return 0;
    close(open(report, O_CREAT | O_WRONLY, 0600));
    return 1;
}

void *malloc(size_t n) { return refused(__builtin_return_address(0)) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return refused(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return refused(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n); }
