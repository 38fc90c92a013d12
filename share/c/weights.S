/* What was learned: weights.bin, which has the structs of model.h as they lie in memory, little-endian.
 *
 * -DMODEL_WEIGHTS_ELSEWHERE: it is not linked, but in flash, say, which is written by itself; the linker is told where
 * (ld: --defsym=NAME=ADDRESS) each of these is, in bytes behind its first one:
@DISTANCES@
 *
 * -DMODEL_WEIGHTS_FILE='"flash/weights.bin"': where it lies, if that is not the assembler's directory. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "weights.bin is little-endian, this processor is not: mlo compile --parameters c writes weights.c in its place"
#endif
#ifndef MODEL_WEIGHTS_FILE
#define MODEL_WEIGHTS_FILE "weights.bin"
#endif

/* Names as the C compiler spells them. */
#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)
#define NAME(name) JOIN(__USER_LABEL_PREFIX__, name)

#if defined(__APPLE__)
    .const
#elif defined(_WIN32)
    .section .rdata, "dr"
#else
    .section .rodata
#endif
#ifndef MODEL_WEIGHTS_ELSEWHERE
@SYMBOLS@
#endif
@DEPTH@
#if defined(__linux__)
    .section .note.GNU-stack, "", %progbits
#endif
