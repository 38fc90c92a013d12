/* What a build may ask for; it is the first thing that model.c includes.
 *
 * Threads: with MODEL_PARALLEL and -fopenmp they share the rows of a matrix and the heads of an attention. own: what
 * each has of its own; of heads that is on its stack: 8 bytes a key and 4 KB at most.
 *
 * What a run of the model takes, step by step: with MODEL_PROFILE (make profile) model_run adds up in model_profile
 * what MODEL_CYCLES() counts, whatever calls it; without, nothing of this is there. Define MODEL_CYCLES() to count
 * with something of your own. */
#ifndef PROFILE_H
#define PROFILE_H

#ifdef MODEL_PARALLEL
#define MODEL_PRAGMA(text) _Pragma(#text)
#define MODEL_ROWS(own) MODEL_PRAGMA(omp parallel for firstprivate(own))
#define MODEL_HEADS MODEL_PRAGMA(omp parallel for)
#define MODEL_OWN(type, name, n) type own_##name[n], *const name = own_##name;
#else
#define MODEL_ROWS(own)
#define MODEL_HEADS
#define MODEL_OWN(type, name, n)
#endif

#ifndef MODEL_PROFILE
#define MODEL_STEP(i, call) call
#else

#ifndef MODEL_CYCLES
#if defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__) || defined(__ARM_ARCH_8M_MAIN__)
#include <stdint.h>
#define MODEL_CYCLES_ARE "cycles" /* of the DWT; qemu has none, and says 0 */
#define MODEL_REGISTER(at) (*(volatile uint32_t *)(at))
#define MODEL_CYCLES() \
    (MODEL_REGISTER(0xE000EDFC) |= 1u << 24, MODEL_REGISTER(0xE0001000) |= 1u, MODEL_REGISTER(0xE0001004))
typedef uint32_t model_cycles;
#elif defined(__riscv)
#define MODEL_CYCLES_ARE "cycles"
typedef unsigned long model_cycles;
static inline model_cycles model_count(void) {
    model_cycles n;
    __asm__ volatile("rdcycle %0" : "=r"(n));
    return n;
}
#define MODEL_CYCLES() model_count()
#else
#undef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <time.h>
#define MODEL_CYCLES_ARE "ns"
typedef uint64_t model_cycles;
static inline model_cycles model_count(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (model_cycles)t.tv_sec * 1000000000u + (model_cycles)t.tv_nsec;
}
#define MODEL_CYCLES() model_count()
#endif
#else
#include <stdint.h>
#define MODEL_CYCLES_ARE "counts"
typedef uint32_t model_cycles;
#endif
#include <stdint.h>

/* A step: its name, its kernel, what it took in all, how often it ran. */
typedef struct {
    const char *name;
    const char *kernel;
    uint64_t cycles;
    uint32_t calls;
} model_step;
extern model_step model_profile[];
extern const int model_steps;

#define MODEL_STEP(i, call) \
    do { \
        const model_cycles model_from = MODEL_CYCLES(); \
        call; \
        model_profile[i].cycles += (model_cycles)(MODEL_CYCLES() - model_from); \
        model_profile[i].calls++; \
    } while (0)
#endif

#endif
