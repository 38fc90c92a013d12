/* What goes along which axis: sizes, and elements from one to the next, 0 where it is the same for all. */
typedef struct {
    int n[4];
    int x[4];
    int a[4];
    int b[4];
} mlo_grid;
