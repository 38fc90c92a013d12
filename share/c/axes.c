/* What stays and what is combined: up to four axes each; sizes, and elements from one to the next. */
typedef struct {
    int n[4];
    int x[4];
    int m[4];
    int r[4];
} mlo_axes;
