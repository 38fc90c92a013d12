/* part[c] += w x at the places of a line that the window's column lies on, of n of them: those beyond its ends are 0. */
static inline void @NAME@_tap(const @X@ *line, int left, int step, int width, @A@ w, int n, float *restrict part) {
    const int begin = left < 0 ? (step - 1 - left) / step : 0, all = left < width ? (width - left + step - 1) / step : 0;
    const int end = n < all ? n : all;
    if (step == 1)
        for (int c = begin; c < end; c++) part[c] += w * line[left + c];
    else
        for (int c = begin; c < end; c++) part[c] += w * line[left + c * step];
}

/* y = x under windows, times w; 64 places of a row at a time, 64 products added up before they are added to what is
 * there. Where the window is one place, all rows are one. */
static void @NAME@(const mlo_window *s, const @X@ *x, const @A@ *w, @Y@ *y) {
    const int area = s->height * s->width, taps = s->in * s->kh * s->kw, size = s->rows * s->columns;
    const int one = taps == s->in && s->sh == 1 && s->sw == 1 && !s->top && !s->left && size == area;
    const int rows = one ? 1 : s->rows, columns = one ? size : s->columns, height = one ? 1 : s->height;
    const int width = one ? area : s->width;
    for (int i = 0; i < s->pictures * s->groups * s->out * rows; i++) {
        const int channel = i / rows, row = i % rows * s->sh - s->top;
        const @X@ *from = x + (ptrdiff_t)(channel / s->out) * s->in * area;
        const @A@ *own = w + (ptrdiff_t)(channel % (s->groups * s->out)) * taps;
        for (int begin = 0; begin < columns; begin += 64) {
            const int n = columns - begin < 64 ? columns - begin : 64;
            float sum[64] = { 0 }, part[64] = { 0 };
            for (int k = 0, t = 0; k < s->in * s->kh; k++) {
                const int r = row + k % s->kh * s->dh, left = begin * s->sw - s->left;
                const @X@ *line = from + k / s->kh * area + r * width;
                for (int j = 0; j < s->kw; j++, t++) {
                    if (r >= 0 && r < height) @NAME@_tap(line, left + j * s->dw, s->sw, width, own[t], n, part);
                    if (t % 64 < 63 && t + 1 < taps) continue;
                    for (int c = 0; c < n; c++) sum[c] += part[c];
                    for (int c = 0; c < n; c++) part[c] = 0;
                }
            }
            for (int c = 0; c < n; c++) *y++ = sum[c];
        }
    }
}
