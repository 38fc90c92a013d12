/* The arena, and behind it what nobody must touch. */
enum { GUARD = 64, PAINT = 0xA5 };
@ARENA@static _Alignas(MODEL_ALIGN) unsigned char arena[MODEL_ARENA_BYTES + GUARD];

/* How much of it was written; -1: a byte behind it was, too. */
static int touched(const unsigned char *room, int bytes) {
    for (int i = 0; i < GUARD; i++)
        if (room[bytes + i] != PAINT) {
            printf("MLO FAIL a byte behind the arena was written\n");
            return -1;
        }
    while (bytes && room[bytes - 1] == PAINT) bytes--;
    return bytes;
}
