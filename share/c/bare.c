/* Where there is no operating system: what the test (make cortex-m, make riscv32) begins and prints with, under
 * qemu. A board of yours has its own; model.c, exact.h and weights.c need nothing of this. */
#if defined(__riscv)
#include <stdio.h>
#include <string.h>

/* A call of the system: of user mode, Linux's numbers. */
enum { WRITE = 64, EXIT = 93 };
static long system_call(long number, long a, const void *b, long c) {
    register long a0 __asm__("a0") = a;
    register const void *a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    register long a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

/* picolibc asks its user for the output. */
static int put(char c, FILE *file) {
    (void)file;
    return system_call(WRITE, 1, &c, 1) == 1 ? 0 : EOF;
}
static FILE console = FDEV_SETUP_STREAM(put, NULL, NULL, _FDEV_SETUP_WRITE);
FILE *const stdout = &console;

extern char __bss_start[], __bss_size[]; /* picolibc.ld's */
int main(void);
void begin(void);
void begin(void) {
    memset(__bss_start, 0, (size_t)__bss_size);
    system_call(EXIT, main(), NULL, 0);
}
__asm__(".globl _start\n"
        "_start:\n"
        ".option push\n"
        ".option norelax\n"
        "la gp, __global_pointer$\n"
        ".option pop\n"
        "la tp, __tls_base\n"
        "j begin\n");
#else
#include <stdint.h>

/* What a Cortex-M reads first: the stack's end, where to begin. newlib's _start goes on from there. */
extern void _start(void);
typedef struct {
    uintptr_t stack;
    void (*reset)(void);
} vector_table;
__attribute__((section(".vectors"), used)) static const vector_table vectors = { 0x20400000, _start };
#endif
