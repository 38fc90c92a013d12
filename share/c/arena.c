/* The arena, and behind it what nobody must touch. */
enum { GUARD = 64, PAINT = 0xA5 };
static _Alignas(MODEL_ALIGN) unsigned char arena[MODEL_ARENA_BYTES + GUARD];

/* How much of it was written; -1: a byte behind it was, too. */
static int touched(void) {
    int bytes = MODEL_ARENA_BYTES;
    for (int i = 0; i < GUARD; i++)
        if (arena[MODEL_ARENA_BYTES + i] != PAINT) {
            printf("MLO FAIL a byte behind the arena was written\n");
            return -1;
        }
    while (bytes && arena[bytes - 1] == PAINT) bytes--;
    return bytes;
}
