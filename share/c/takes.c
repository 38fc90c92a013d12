/* Places of up to four axes, of each part of x by itself: sizes, and elements from one to the next. */
typedef struct {
    int parts;
    int part; /* elements of one */
    int count; /* places in each */
    int axes;
    int inner; /* numbers that lie together */
    int n[4];
    int step[4];
} mlo_takes;
