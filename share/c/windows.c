/* sum += x at one place of the window, by w, for n columns. Those outside of the picture are 0. */
static void @NAME@_place(const mlo_window *s, const @X@ *line, int shift, int n, @P@ w, @S@ *sum) {
    int from = 0, to = n;
    while (from < to && from * s->sw + shift < 0) from++;
    while (to > from && (to - 1) * s->sw + shift >= s->width) to--;
    if (s->sw == 1)
        for (int c = from; c < to; c++) sum[c] += w * (@P@)line[c + shift];
    else
        for (int c = from; c < to; c++) sum[c] += w * (@P@)line[c * s->sw + shift];
}

/* Up to 64 columns of a row from `begin` on: sums over all places of the window. */
static void @NAME@_row(const mlo_window *s, const @X@ *x, int row, int begin, int n, const @A@ *w, @S@ *sum) {
    for (int k = 0; k < s->in * s->kh * s->kw; k++) {
        const int at = row * s->sh - s->top + k / s->kw % s->kh * s->dh;
        const int shift = begin * s->sw - s->left + k % s->kw * s->dw;
        if (at < 0 || at >= s->height) continue;
        @NAME@_place(s, x + (k / (s->kh * s->kw) * s->height + at) * s->width, shift, n, w[k], sum);
    }
}

/* y = @EXACT@ of x, convolved with w [out, in, kh, kw], + bias (NULL: none); mul, add: a number for all channels,
 * or one for each. */
static void @NAME@(const mlo_window *s, int mul_step, int add_step, const @X@ *x, const @A@ *w, const @B@ *bias,
    const @M@ *mul, const @D@ *add, @Y@ *y, const int64_t *p) {
    const int each = s->in * s->kh * s->kw;
    for (int i = 0; i < s->pictures * s->groups; i++, x += s->in * s->height * s->width)
        for (int o = 0; o < s->out * s->rows; o++)
            for (int begin = 0; begin < s->columns; begin += 64) {
                const int n = s->columns - begin < 64 ? s->columns - begin : 64;
                const int channel = i % s->groups * s->out + o / s->rows;
                const int64_t m = mul ? mul[channel * mul_step] : 0, d = add ? add[channel * add_step] : 0;
                @S@ sum[64];
                for (int c = 0; c < n; c++) sum[c] = bias ? (@S@)bias[channel] : 0;
                @NAME@_row(s, x, o % s->rows, begin, n, w + channel * each, sum);
                for (int c = 0; c < n; c++) *y++ = (@Y@)@EXACT@(sum[c], m, d, p);
            }
}
