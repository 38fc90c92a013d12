
    .globl NAME(@NAME@)
    .balign 16
#if defined(__ELF__)
    .type NAME(@NAME@), %object
    .size NAME(@NAME@), @BYTES@
#endif
NAME(@NAME@):
    .incbin @FILE@
