/* A window over a picture: [height, width] of each channel. */
typedef struct {
    int pictures;
    int groups;
    int in; /* channels of a group */
    int out;
    int height;
    int width;
    int rows; /* of the result */
    int columns;
    int kh; /* of the window */
    int kw;
    int sh; /* from one to the next */
    int sw;
    int top; /* outside of the picture */
    int left;
    int dh; /* between its places */
    int dw;
} mlo_window;
