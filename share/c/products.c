/* Matrices [m, k] and [k, n], along two more axes: elements from one to the next, 0 where all share one. */
typedef struct {
    int batch[2];
    int m;
    int k;
    int n;
    int x[2];
    int w[2];
    int bias_row; /* elements from a row's bias to the next one's */
} mlo_products;
