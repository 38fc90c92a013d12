/* y += x at one place of the window, by w. Columns outside of the picture are 0. */
static void @NAME@_place(const mlo_window *s, const @X@ *x, int row, int column, int32_t w, @Y@ *y) {
    const int first = row * s->dh - s->top, shift = column * s->dw - s->left;
    int from = 0, to = s->columns;
    while (from < to && from * s->sw + shift < 0) from++;
    while (to > from && (to - 1) * s->sw + shift >= s->width) to--;
    for (int r = 0; r < s->rows; r++) {
        const int at = r * s->sh + first;
        if (at < 0 || at >= s->height) continue;
        const @X@ *line = x + at * s->width;
        for (int c = from; c < to; c++) y[r * s->columns + c] += (@Y@)w * line[c * s->sw + shift];
    }
}

/* y = x, convolved with w [out, in, kh, kw], + bias (NULL: none). */
static void @NAME@(const mlo_window *s, const @X@ *x, const @A@ *w, const @B@ *bias, @Y@ *y) {
    const int area = s->height * s->width, size = s->rows * s->columns;
    const int each = s->in * s->kh * s->kw;
    for (int i = 0; i < s->pictures * s->groups; i++, x += s->in * area)
        for (int o = 0; o < s->out; o++, y += size) {
            const int channel = i % s->groups * s->out + o;
            for (int k = 0; k < size; k++) y[k] = bias ? (@Y@)bias[channel] : 0;
            for (int k = 0; k < each; k++)
                @NAME@_place(s, x + k / (s->kh * s->kw) * area, k / s->kw % s->kh, k % s->kw,
                    w[channel * each + k], y);
        }
}
