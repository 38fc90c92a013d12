/* What a DMA of yours may do: copies begin in their order, at MLO_COPY_START or later, while kernels run, and have
 * ended behind MLO_COPY_WAIT(). */
#ifndef MLO_COPY_START
#include <string.h>
#define MLO_COPY_START(to, from, bytes) memcpy(to, from, bytes)
#define MLO_COPY_WAIT() ((void)0)
#endif

/* Of rows of a picture, those that it has. */
#define MLO_LEAST(row) ((row) > 0 ? (row) : 0)
#define MLO_MOST(row, rows) ((row) < (rows) ? (row) : (rows))
