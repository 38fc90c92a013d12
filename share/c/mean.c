/* y = the mean of each window; what is outside of the picture counts as zeros (all), or not at all. */
static void @NAME@(const mlo_window *s, int all, const @X@ *x, @Y@ *y) {
    for (int i = 0; i < s->pictures * s->groups; i++, x += s->height * s->width)
        for (int o = 0; o < s->rows * s->columns; o++) {
            double sum = 0;
            int count = 0;
            for (int k = 0; k < s->kh * s->kw; k++) {
                const int r = o / s->columns * s->sh - s->top + k / s->kw * s->dh;
                const int c = o % s->columns * s->sw - s->left + k % s->kw * s->dw;
                const int inside = r >= 0 && c >= 0 && r < s->height && c < s->width;
                if (inside) sum += (double)x[r * s->width + c];
                count += inside || all;
            }
            *y++ = (@Y@)(sum / (double)count);
        }
}
