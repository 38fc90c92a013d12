/* y = x under windows, times w; 64 places of a row at a time, 64 products added up before they are added to what is
 * there. */
static void @NAME@(const mlo_window *s, const @X@ *x, const @A@ *w, @Y@ *y) {
    const int area = s->height * s->width, taps = s->in * s->kh * s->kw;
    for (int i = 0; i < s->pictures * s->groups * s->out * s->rows; i++) {
        const int channel = i / s->rows, row = i % s->rows * s->sh - s->top;
        const @X@ *from = x + (ptrdiff_t)(channel / s->out) * s->in * area;
        const @A@ *own = w + (ptrdiff_t)(channel % (s->groups * s->out)) * taps;
        for (int begin = 0; begin < s->columns; begin += 64) {
            const int n = s->columns - begin < 64 ? s->columns - begin : 64;
            float sum[64] = { 0 }, part[64] = { 0 };
            for (int t = 0; t < taps; t++) {
                const int r = row + t / s->kw % s->kh * s->dh;
                const int left = begin * s->sw - s->left + t % s->kw * s->dw;
                const @X@ *line = from + t / s->kw / s->kh * area + r * s->width;
                for (int c = 0; c < n && r >= 0 && r < s->height; c++) {
                    const int at = left + c * s->sw;
                    if (at >= 0 && at < s->width) part[c] += own[t] * line[at];
                }
                if (t % 64 < 63 && t + 1 < taps) continue;
                for (int c = 0; c < n; c++) sum[c] += part[c];
                for (int c = 0; c < n; c++) part[c] = 0;
            }
            for (int c = 0; c < n; c++) *y++ = sum[c];
        }
    }
}
