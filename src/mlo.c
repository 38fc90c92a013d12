/* SPDX-License-Identifier: MIT
 * mlo.c: the whole library, in the order data flows through it. This list is the table of contents. */
#include "mlo.h"
#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pb_decode.h>
#include <pb_encode.h>
#include <cjson/cJSON.h>
#ifdef __cplusplus
#include <initializer_list>
#endif

/* The same bits from every compiler: a product and a sum stay two roundings, whatever the machine
 * could fuse. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

/* clang-format off */
/* ground: what everything stands on */
#include "ground/base.c"            /* memory, failure, strings, maps */
#include "ground/keys.c"            /* the metadata that mlo writes */
#include "ground/model.c"           /* ONNX messages as C structs; the index of a graph */
#include "ground/op.c"              /* what an operator is: name, shape rule, evaluation */
#include "ground/interval.c"        /* arithmetic with ranges of integers */

/* onnx: models in and out */
#include "onnx/wire.c"              /* the schema of ONNX; binary protobuf; source files that tensor bytes stay in */
#include "onnx/tensor.c"            /* elements of a tensor, whatever their encoding */
#include "onnx/json.c"              /* protobuf's JSON mapping */

/* exact: what operators compute, as emitted C has it, too */
#include "exact/round.c"            /* rounding, */
#include "exact/norm.c"             /* norms, */
#include "exact/softmax.c"          /* softmax, */
#include "exact/deeploy.c"          /* Deeploy's integer operators, */
#include "exact/real.c"             /* standard ones in floats */

/* ops: operators, and running them */
#include "ops/traits.c"             /* what operators have in common */
#include "ops/array.c"              /* dense arrays: converting, walking, broadcasting */
#include "ops/math.c"               /* element by element */
#include "ops/shape.c"              /* moving elements, speaking of shapes */
#include "ops/nn.c"                 /* products, convolution, norms, softmax */
#include "ops/transposed.c"         /* a convolution backwards */
#include "ops/resize.c"            /* grids at other points */
#include "ops/reduce.c"             /* sums, extremes */
#include "ops/quant.c"              /* quantize, dequantize */
#include "ops/table.c"              /* the table; calling one */
#include "ops/qonnx.c"              /* QONNX's quantizers */
#include "ops/function.c"           /* ONNX functions from text */
#include "ops/deeploy.c"            /* Deeploy's integer operators, as functions */
#include "ops/eval.c"               /* running a graph */
#include "ops/infer.c"              /* types and shapes of all values */
#include "ops/constants.c"          /* folding; dead nodes */

/* read: the first stage */
#include "read/inline.c"            /* calls of the model's own functions become their bodies */
#include "read/builder.c"           /* nodes that take the place of another one */
#include "read/lift.c"              /* what old opsets say, as opset 13 does */
#include "read/expand_norm.c"       /* norms, alone and behind sums */
#include "read/expand_attention.c"  /* attention and rotary embedding, fused, to standard operators */
#include "read/expand_einsum.c"     /* products in index notation */
#include "read/expand_packed.c"     /* products with packed weights */
#include "read/expand.c"            /* fused operators to the standard ones they stand for */
#include "read/bind.c"              /* sizes for dimensions left open */
#include "read/held.c"              /* inputs that are constants */
#include "read/branch.c"            /* an If whose condition is known becomes a branch */
#include "read/scanned.c"           /* a Loop over stacks of weights becomes a Scan */
#include "read/sequence.c"          /* lists of tensors become the tensors in them */
#include "read/select.c"            /* choices that are written as arithmetic */
#include "read/wrapped.c"           /* rows that are counted from the end by hand */
#include "read/cache.c"             /* which inputs are past keys and values, and how they go */
#include "read/hot.c"               /* rows that one-hot masks write into buffers */
#include "read/unstacked.c"         /* pasts of all layers in one tensor become one of each */
#include "read/lanes.c"             /* where the parts of a batch, or tokens, lie in each value */
#include "read/instants.c"           /* what depends on a token's place alone, at each of them */
#include "read/step.c"              /* a step that was exported for one new token */
#include "read/ungrouped.c"         /* heads of one token that are rows of their group */
#include "read/prompt.c"            /* such a step becomes the prompt of many */
#include "read/places.c"            /* which inputs say where tokens are */
#include "read/context.c"           /* a decoder with a cache becomes the prompt that fills it */
#include "read/unbatch.c"           /* a batch that an export has fixed becomes one sequence */
#include "read/leading.c"           /* constants that differ in dimensions of 1 in front alone */
#include "read/lastrow.c"           /* logits of the last token alone become those of every token */
#include "read/reach.c"             /* how many tokens a model has counted positions for */
#include "read/unturned.c"          /* layers without rotary embedding among those that have it */
#include "read/read.c"              /* from bytes to a model to work on */

/* loop: the layer that repeats; scope, extract, roll, check */
#include "loop/match.c"             /* the graph as a net; which nodes are alike */
#include "loop/discover.c"          /* repeated bodies, by structure */
#include "loop/scope.c"             /* scopes said and inferred */
#include "loop/unbiased.c"          /* layers without a bias among those that have it */
#include "loop/extract.c"           /* which nodes are whose layer's */
#include "loop/roll.c"              /* layers to a Scan */
#include "loop/template.c"          /* a body written, and found again */
#include "loop/finn.c"              /* Scans to the loops FINN knows */
#include "loop/check.c"             /* a rolled model proved equal to its original */

/* kernels: one file each */
#include "kernels/interval.c"       /* how large integers get, how many bits that takes */
#include "kernels/area.c"           /* what circuits take of an FPGA, from what they are made of */
#include "kernels/kernel.c"         /* what a kernel is; the rounding rule */
#include "kernels/requant.c"        /* a stream with another scale, or through a table */
#include "kernels/add.c"            /* the sum of two streams */
#include "kernels/mul.c"            /* the product of two streams */
#include "kernels/mvu.c"            /* the matrix-vector unit */
#include "kernels/attention.c"      /* scores, softmax, weighted sums */
#include "kernels/attention_table.c" /* the same of a network of integers, as it rounds */
#include "kernels/attention_prefix.c" /* to rows that are parameters, too, in front of a frame's keys */
#include "kernels/layernorm.c"      /* the norm of a token */
#include "kernels/framenorm.c"      /* the norm of a frame */
#include "kernels/exactnorm.c"      /* the norms of Deeploy's dialect */
#include "kernels/rotary.c"         /* pairs of channels, turned by position */
#include "kernels/place.c"          /* a row of a table for each position, added */
#include "kernels/conv.c"           /* depthwise convolution over a grid of tokens */
#include "kernels/replay.c"         /* a stream that every iteration reads */
#include "kernels/argmax.c"         /* the largest channel of a token */
#include "kernels/edge.c"           /* floats to integers and back, at the ends of the loop */
#include "kernels/table.c"          /* the table */
#include "ops/run.c"                /* evaluating the model as it stands: operators and kernels */

/* integer: floats to integers; quantize */
#include "integer/scan.c"           /* a loop as stages see it; its parameters, one iteration at a time */
#include "integer/given.c"          /* what a quantized source model fixes */
#include "ops/generate.c"           /* a decoder goes on with a text */
#include "integer/unrounded.c"      /* the same without its roundings of values */
#include "integer/widen.c"          /* 16-bit floats to 32 */
#include "integer/layout.c"         /* the inside of a loop; which element of a value is which of another */
#include "integer/respell_linear.c" /* one spelling of projections and their parts, */
#include "integer/rotation.c"       /* rotary embedding, proved element by element */
#include "integer/respell_rotary.c" /* of rotary embedding, */
#include "integer/respell_norm.c"   /* of norms; */
#include "integer/respell_reduced.c" /* of means and softmaxes by hand; */
#include "integer/respell_grid.c"   /* of grids of tokens, */
#include "integer/respell_moved.c"    /* of tokens that move, between windows, say; */
#include "integer/respell_memory.c" /* of an encoder's output with positions; */
#include "integer/respell_frame.c" /* of norms over a frame; */
#include "integer/respell_batch.c" /* of batch norms; */
#include "integer/respell_rows.c" /* of tokens without frames; */
#include "integer/respell_heads.c" /* of what stands side by side; */
#include "integer/respell_inside.c" /* of what stands on heads; */
#include "integer/respell_width.c" /* of heads of several values, and widths; */
#include "integer/respell.c"        /* of masks; all of them, in turn */
#include "integer/symbol.c"         /* what each element of a value is computed from */
#include "integer/band.c"           /* which keys a mask hides by their places, */
#include "integer/bias.c"           /* what it adds to scores; */
#include "integer/counted.c"        /* places that are counted from a mask */
#include "integer/blank.c"          /* padding that layers set to 0 */
#include "integer/mask.c"           /* what is left is one number per key, in front of the loop */
#include "integer/refusal.c"        /* what has no hardware, in a person's terms */
#include "integer/recognise.c"      /* the body as a short list of sublayers */
#include "integer/calibrate.c"      /* what the values of a loop look like */
#include "integer/said.c"           /* texts to calibrate a decoder with */
#include "integer/qconfig.c"        /* what a q_config fixes of them */
#include "integer/scales.c"         /* what the integers stand for */
#include "integer/body.c"           /* pieces of the integer body */
#include "integer/sketch.c"         /* what there is to say before anybody has looked */
#include "integer/taps.c"           /* what leaves every layer */
#include "integer/unary.c"          /* a kind of sublayer each: functions of one value, */
#include "integer/seen.c"           /* what a calibration saw, for another export */
#include "integer/feedback.c"         /* rounding weights of few bits */
#include "integer/linear.c"         /* linear layers, */
#include "integer/aim.c"            /* weights of few bits, rounded at what the floats make */
#include "integer/window.c"         /* convolutions, */
#include "integer/prefix.c"         /* rows of parameters beside a frame's keys, sinks; */
#include "integer/attention.c"      /* attentions, */
#include "integer/norm.c"           /* norms, */
#include "integer/rotary.c"         /* rotary embedding, */
#include "integer/place.c"          /* what is added by position, */
#include "integer/residual.c"       /* sums, */
#include "integer/gate.c"           /* products */
#include "integer/affine.c"         /* factors and offsets of channels */
#include "integer/exact.c"          /* integers as they stand: kernels, */
#include "integer/exact_heads.c"    /* attention, */
#include "integer/exact_loop.c"     /* a loop of them */
#include "integer/quantize.c"       /* floats to integers */
#include "integer/head.c"           /* what is around the loop of a decoder, as integers */
#include "integer/tail.c"           /* what an encoder makes of its first token, likewise */
#include "integer/front.c"          /* what is in front of an encoder's, likewise */
#include "integer/numerics.c"       /* how far the integers are from the floats */

/* core: the loop as hardware, and when things happen in it; lower */
#include "core/core.c"              /* elements, edges, parameters, FIFOs */
#include "core/around.c"             /* what is around a decoder's loop, as hardware */
#include "core/schedule.c"          /* tokens, streams */
#include "core/schedule_beat.c"     /* when there is room for a beat, when it leaves */
#include "core/schedule_fifo.c"     /* how full its FIFOs get */
#include "core/schedule_memory.c"   /* when parameters come */
#include "core/schedule_jobs.c"     /* what goes through the iterations together */
#include "core/schedule_around.c"   /* rows in front of a loop, a head behind it */
#include "core/schedule_fire.c"     /* what all elements do with tokens; and each kind: */
#include "core/flow_beats.c"        /* pipelines, */
#include "core/flow_matrix.c"       /* matrix-vector units, */
#include "core/flow_tiles.c"        /* those in row blocks, */
#include "core/flow_window.c"       /* convolutions, */
#include "core/flow_norm.c"         /* norms, */
#include "core/flow_rows.c"         /* attention */
#include "core/flow_replay.c"       /* what every iteration reads again */
#include "core/predict.c"           /* cycles, and why kernels wait */
#include "core/estimate.c"          /* what it takes of an FPGA */
#include "core/lower.c"             /* integers to streaming kernels */
#include "core/prefill.c"           /* a prompt and a step proved to be one body */

/* fold: how much hardware each kernel gets */
#include "fold/search.c"            /* the best folding there is */
#include "fold/device.c"            /* the fastest that fits a device */
#include "fold/knee.c"              /* what is chosen where nobody says */
#include "fold/step.c"              /* what is chosen for one more token */
#include "fold/fold.c"              /* the stage */
#include "stages.c"                 /* the table of stages; mlo_to */

/* texts of other languages */
#include "texts.c"                  /* verilog/ and share/ as arrays of lines (generated) */
#include "share.c"                  /* a text of share/, its holes filled */

/* emit: the build directory */
#include "emit/sha.c"               /* SHA-256 for the manifest */
#include "emit/emit.c"              /* files, the module library */
#include "emit/top.c"               /* the top, the core, its layer */
#include "emit/border.c"            /* where floats become words */
#include "emit/data.c"              /* the parameter image, the bench's words */
#include "emit/around.c"             /* what is around the loop: mlo_head.v */
#include "emit/bench.c"             /* what is in the holes of the bench and the scripts */
#include "emit/driver.c"            /* what a host drives the core with */
#include "emit/guide.c"             /* README.md of a build directory */
#include "emit/host.c"              /* the model in three parts, registers, manifest; mlo_emit */

/* c: the same integers as C, for any processor */
#include "c/plan.c"                 /* what lies where in the arena: the least bytes */
#include "c/blocks.c"               /* which of a layer's kernels may go in blocks of tokens */
#include "c/body.c"                 /* the layer's values in places */
#include "c/fit.c"                  /* a layer in a small arena */
#include "c/weights.c"              /* its parameters */
#include "c/narrow.c"               /* which of its sums are of 32 bits */
#include "c/calls.c"                /* its kernels, called one after the other */
#include "c/write.c"                /* the files */
#include "c/flat.c"                 /* networks of integers, as they stand: values in places, */
#include "c/flat_ops.c"             /* operators, */
#include "c/flat_fuse.c"            /* what is done with each sum, */
#include "c/flat_tile.c"            /* parts of steps, in a small arena, */
#include "c/flat_roll.c"            /* what repeats, once, */
#include "c/flat_write.c"           /* files */
#include "c/real.c"                 /* operators of floats, number by number, */
#include "c/real_rows.c"            /* by rows, */
#include "c/whole.c"                /* a model as a whole, */
#include "c/token.c"                /* of a decoder's, a token, */
#include "c/whole_write.c"          /* its files */
#include "c/emit.c"                 /* target c */
#include "emit/target.c"            /* Verilog or C; mlo_emit */

/* show: for people */
#include "show/view.c"              /* what there is to show: loops, scopes, the core */
#include "show/figure.c"            /* a graph as vertices with a few words */
#include "show/cuts.c"              /* the plan of a build of C */
#include "show/text.c"              /* for terminals; for Graphviz */
#include "show/picture.c"           /* a figure laid out in layers, as SVG */
#include "show/page.c"              /* pieces of a page */
#include "show/chart.c"             /* roofline, timeline, run */
#include "show/arena.c"             /* an arena's bytes over time */
#include "show/html.c"              /* one page */
#include "show/compare.c"           /* two cores side by side */
#include "show/sweep.c"             /* points of a sweep, and their Pareto fronts */
#include "show/show.c"              /* JSON; mlo_show */

/* the public functions */
#include "api.c"
