/* A user's file with headers and names of its own, which takes mlo in whole. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
typedef struct node { int op; } node;
typedef struct { int rank; } tensor, model, graph, value, kernel, map, text, array;
enum { READ = 1, SCOPE, ROLL, FOLD, EMIT, FLOAT, INT8 };
int fold(int x);
int emit(void);
int fold(int x) { return x + FOLD; }
int emit(void) { node n = { EMIT }; tensor t = { n.op }; return t.rank; }
#include "layers.c"
#include "mlo.c"
