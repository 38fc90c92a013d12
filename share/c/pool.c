/* y = the largest of each window; what is outside of the picture does not count. */
static void @NAME@(const mlo_window *s, const @X@ *x, @Y@ *y) {
    for (int i = 0; i < s->pictures * s->groups; i++, x += s->height * s->width)
        for (int o = 0; o < s->rows * s->columns; o++, y++) {
            int any = 0;
            for (int k = 0; k < s->kh * s->kw; k++) {
                const int r = o / s->columns * s->sh - s->top + k / s->kw * s->dh;
                const int c = o % s->columns * s->sw - s->left + k % s->kw * s->dw;
                if (r < 0 || c < 0 || r >= s->height || c >= s->width) continue;
                if (!any++ || x[r * s->width + c] > *y) *y = (@Y@)x[r * s->width + c];
            }
        }
}
