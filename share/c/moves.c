/* Elements that move: sizes, and in x and y the elements from one to the next. */
typedef struct {
    int n[4];
    int x[4];
    int y[4];
} mlo_moves;
