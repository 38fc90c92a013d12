/* What the window sees at a place of the result, 16 bits each; what is outside of the picture is 0. */
static void @NAME@_patch(const mlo_window *s, const @X@ *x, int at, int16_t *patch) {
    const int top = at / s->columns * s->sh - s->top, left = at % s->columns * s->sw - s->left;
    for (int k = 0; k < s->in * s->kh; k++) {
        const int row = top + k % s->kh * s->dh;
        const @X@ *line = x + (k / s->kh * s->height + row) * s->width;
        for (int i = 0, column = left; i < s->kw; i++, column += s->dw) {
            const int outside = row < 0 || row >= s->height || column < 0 || column >= s->width;
            *patch++ = outside ? 0 : (int16_t)line[column];
        }
    }
}

/* sum[j] += patch j . w, of n numbers: of two factors of 16 bits compilers know the sum of products. */
static void @NAME@_dots(const int16_t *const *patch, const @A@ *w, int n, @S@ *sum) {
    for (int from = 0; from < n; from += 256) {
        const int size = n - from < 256 ? n - from : 256;
        const int16_t *p0 = patch[0] + from, *p1 = patch[1] + from, *p2 = patch[2] + from, *p3 = patch[3] + from;
        @S@ s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        int16_t wide[256];
        for (int i = 0; i < size; i++) wide[i] = w[from + i];
        for (int i = 0; i < size; i++) {
            s0 += p0[i] * wide[i];
            s1 += p1[i] * wide[i];
            s2 += p2[i] * wide[i];
            s3 += p3[i] * wide[i];
        }
        sum[0] += s0;
        sum[1] += s1;
        sum[2] += s2;
        sum[3] += s3;
    }
}

/* y = @EXACT@ of x, convolved with w [out, in, kh, kw], + bias (NULL: none); mul, add: a number for all channels,
 * or one for each. Four places share a row of weights (the last one stands in for those that there are not); e:
 * room for what the window sees there. */
static void @NAME@(const mlo_window *s, int mul_step, int add_step, const @X@ *x, const @A@ *w, const @B@ *bias,
    const @M@ *mul, const @D@ *add, @Y@ *y, const int64_t *p, int64_t *e) {
    const int size = s->rows * s->columns, each = s->in * s->kh * s->kw;
    int16_t *const room = (int16_t *)e;
    for (int i = 0; i < s->pictures * s->groups; i++, x += s->in * s->height * s->width, y += s->out * size)
        for (int at = 0; at < size; at += 4) {
            const int last = size - at - 1 < 3 ? size - at - 1 : 3;
            const int16_t *const patch[4] = { room, room + (last < 1 ? last : 1) * each,
                room + (last < 2 ? last : 2) * each, room + last * each };
            for (int j = 0; j <= last; j++) @NAME@_patch(s, x, at + j, room + j * each);
            for (int o = 0; o < s->out; o++) {
                const int channel = i % s->groups * s->out + o;
                const int64_t m = mul ? mul[channel * mul_step] : 0, d = add ? add[channel * add_step] : 0;
                const @S@ b = bias ? (@S@)bias[channel] : 0;
                @S@ sum[4] = { b, b, b, b };
                @NAME@_dots(patch, w + channel * each, each, sum);
                for (int j = 0; j <= last; j++) y[o * size + at + j] = (@Y@)@EXACT@(sum[j], m, d, p);
            }
        }
}
