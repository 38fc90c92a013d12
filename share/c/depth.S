
    .globl NAME(@NAME@)
    .balign 4
#if defined(__ELF__)
    .type NAME(@NAME@), %object
    .size NAME(@NAME@), 4
#endif
NAME(@NAME@):
    .4byte @DEPTH@
