/* SPDX-License-Identifier: MIT
 * refusals: loaded before mlo (LD_PRELOAD), refuses memory once, where the program itself (not a library that it calls) asks at a place that
 * is the MLO_PLACE-th (1, 2, ..) to ask. A place is who asks, and who called that; of one through which many ask (an allocator), the first eight.
 * The file MLO_REFUSED is made when it does. What mlo starts is left alone.
 *
 *     MLO_PLACE=3 MLO_REFUSED=/tmp/refused LD_PRELOAD=./refusals.so mlo read model.onnx
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static uintptr_t from, to; /* the program's code */
static struct {
    const void *who;
    const void *caller;
} seen[512];
static int places, chosen, inside;
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

__attribute__((noinline)) static int refused(const void *who) {
    void *stack[4] = { NULL, NULL, NULL, NULL }; /* this function, malloc, who asks, who called that */
    int same = 0;
    if ((uintptr_t)who < from || (uintptr_t)who >= to || places == 512 || inside) return 0;
    inside = 1; /* the first time, it asks for memory itself */
    backtrace(stack, 4);
    inside = 0;
    for (int i = 0; i < places; i++) {
        if (seen[i].who == who && (seen[i].caller == stack[3] || ++same == 8)) return 0;
    }
    seen[places].who = who;
    seen[places++].caller = stack[3];
    if (places != chosen) return 0;
    close(open(report, O_CREAT | O_WRONLY, 0600));
    return 1;
}

void *malloc(size_t n) { return refused(__builtin_return_address(0)) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return refused(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return refused(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n); }
