/* The layers, in integers: they take all tokens of a frame. */
static void @NAME@(@TAKES@, @Y@ *y, int64_t *scratch) {
    (void)model_run(@GIVES@, y, scratch, MODEL_ARENA_BYTES);
}
