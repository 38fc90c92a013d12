/* Each channel's own window over the grid of tokens; w: a row of channels for each place of the window, and
 * for each part of it that a frame can have, if it has `edges`.
 * What is outside of the frame is 0. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int channels, int kh,
    int kw, int width, int top, int left, int edges, const int8_t *w, const int32_t *bias, const int16_t *mult,
    const int8_t *shift, int lo, int hi, @SUM@ *sum) {
    for (int t = 0; t < tokens; t++, y += y_row) {
        const int edge = edges > 1 ? (int)mlo_window_edge(t, tokens, kh, kw, width, top, left) : 0;
        for (int c = 0; c < channels; c++) sum[c] = 0;
        for (int i = 0; i < kh * kw; i++) {
            const int row = t / width - top + i / kw, column = t % width - left + i % kw;
            const int at = row * width + column;
            if (row < 0 || column < 0 || column >= width || at >= tokens) continue;
            const @X@ *from = x + (ptrdiff_t)at * x_row;
            const int8_t *tap = w + ((ptrdiff_t)i * edges + edge) * channels;
            for (int c = 0; c < channels; c++) sum[c] += from[c] * tap[c];
        }
        for (int c = 0; c < channels; c++)
            y[c] = (@Y@)mlo_requantize((int64_t)sum[c] + bias[c], mult[c], shift[c], lo, hi);
    }
}
