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

/* The same bits from every compiler: a product and a sum stay two roundings, whatever the machine
 * could fuse. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

/* ground */
#include "base.c" /* memory, failure, strings, maps */
#include "model.c" /* ONNX messages as C structs; the index of a graph */
#include "op.c" /* what an operator is: name, shape rule, evaluation */

/* models in and out */
#include "wire.c" /* the schema of ONNX; binary protobuf; source files that tensor bytes stay in */
#include "tensor.c" /* elements of a tensor, whatever their encoding */
#include "json.c" /* protobuf's JSON mapping */

/* operators */
#include "array.c" /* dense arrays: converting, walking, broadcasting */
#include "ops_math.c" /* element by element */
#include "ops_shape.c" /* moving elements, speaking of shapes */
#include "ops_nn.c" /* products, convolution, norms, softmax */
#include "ops_reduce.c" /* sums, extremes */
#include "ops_quant.c" /* quantize, dequantize */
#include "ops.c" /* the table; calling one */
#include "ops_qonnx.c" /* QONNX's quantizers */
#include "function.c" /* ONNX functions from text */
#include "ops_deeploy.c" /* Deeploy's integer operators, as functions */
#include "eval.c" /* running a graph */
#include "infer.c" /* types and shapes of all values */
#include "constants.c" /* folding; dead nodes */

/* the stages */
#include "inline.c" /* calls of the model's own functions become their bodies */
#include "expand.c" /* fused operators to the standard ones they stand for */
#include "read.c" /* from bytes to a model to work on */
#include "match.c" /* the graph as a net; which nodes are alike */
#include "discover.c" /* repeated bodies, by structure */
#include "scope.c" /* scopes said and inferred */
#include "extract.c" /* which nodes are whose layer's */
#include "roll.c" /* layers to a Scan */
#include "template.c" /* a body written, and found again */
#include "finn.c" /* Scans to the loops FINN knows */
#include "check.c" /* a rolled model proved equal to its original */

/* kernels: each is its own file; kernels.c is the table */
#include "interval.c" /* how large integers get, how many bits that takes */
#include "area.c" /* what circuits take of an FPGA, from what they are made of */
#include "kernel.c" /* what a kernel is; the rounding rule */
#include "kernel_requant.c"
#include "kernel_add.c"
#include "kernel_mvu.c"
#include "kernel_attention.c"
#include "kernel_layernorm.c"
#include "kernel_edge.c"
#include "kernels.c"

#include "run.c" /* evaluating the model as it stands */

/* quantize to fold */
#include "scan.c" /* a loop as stages see it; its parameters, one iteration at a time */
#include "given.c" /* what a quantized source model fixes */
#include "layout.c" /* the inside of a loop; which element of a value is which of another */
#include "respell.c" /* one spelling of attention, norms, masks */
#include "mask.c" /* an attention mask: one bit per key, proved */
#include "recognise.c" /* the body as a short list of sublayers */
#include "calibrate.c" /* what the values of a loop look like */
#include "qconfig.c" /* what a q_config fixes of them */
#include "scales.c" /* what the integers stand for */
#include "quantize.c" /* floats to integers */
#include "numerics.c" /* how far the integers are from the floats */
#include "core.c" /* the loop as hardware: elements, edges, parameters, FIFOs */
#include "schedule.c" /* when things happen in it: tokens, streams */
#include "schedule_beat.c" /* when there is room for a beat, when it leaves */
#include "schedule_fifo.c" /* how full its FIFOs get */
#include "schedule_memory.c" /* when parameters come */
#include "schedule_fire.c" /* how tokens go through an element */
#include "predict.c" /* cycles, and why kernels wait */
#include "estimate.c" /* what it takes of an FPGA */
#include "lower.c" /* integers to streaming kernels */
#include "search.c" /* the best folding there is */
#include "device.c" /* the fastest that fits a device */
#include "knee.c" /* what is chosen where nobody says */
#include "fold.c" /* how much hardware each kernel gets */
#include "stages.c" /* the table of stages; mlo_to */

/* the build directory */
#include "sha.c" /* SHA-256 for the manifest */
#include "verilog.c" /* the Verilog modules as text (generated from verilog/) */
#include "emit.c" /* files, the module library, the top */
#include "emit_data.c" /* the parameter image, the bench's words */
#include "emit_bench.c" /* the bench and the scripts */
#include "emit_host.c" /* the model in three parts, registers, manifest; mlo_emit */

/* showing */
#include "show_view.c" /* what there is to show: loops, scopes, the core */
#include "show_sketch.c" /* a graph as vertices with a few words */
#include "show_text.c" /* for terminals; for Graphviz */
#include "show_picture.c" /* a sketch laid out in layers, as SVG */
#include "show_page.c" /* pieces of a page */
#include "show_chart.c" /* roofline, timeline, run */
#include "show_html.c" /* one page */
#include "show.c" /* JSON; mlo_show */

#include "api.c" /* the public functions */
