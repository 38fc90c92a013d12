/* Matrices [m, k] and [k, n] along two more axes: elements from one to the next, by batch, and by row and column. */
typedef struct {
    int batch[2];
    int m;
    int k;
    int n;
    int x[2];
    int w[2];
    int xs[2];
    int ws[2];
} mlo_matrices;
