/* y = x by channel, with statistics that were learned. */
static void @NAME@(int pictures, int channels, int n, double epsilon, const @X@ *x, const @A@ *scale, const @B@ *bias,
    const @M@ *mean, const @D@ *variance, @Y@ *y) {
    for (int i = 0; i < pictures * channels; i++) {
        const int c = i % channels;
        const double w = (double)scale[c] / sqrt((double)variance[c] + epsilon);
        const double b = (double)bias[c] - (double)mean[c] * w;
        for (int k = 0; k < n; k++) *y++ = (@Y@)((double)*x++ * w + b);
    }
}
