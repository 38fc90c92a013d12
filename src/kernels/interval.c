/* interval: how large the integers inside a kernel can get, and how many bits that takes.
 *
 * in:  what operands and parameters can be: widths of streams, limits of parameters.
 * out: a list of a kernel's intermediate values: name, lowest and highest value, the bits that C,
 *     ONNX and Verilog have for it.
 *
 * Where numbers depend on each other (a value and its norm, a softmax
 * and its sum), the kernel's file derives the bound.
 *
 * invariant: the intervals hold for any weights and inputs of the widths, since parameters are
 *     streamed; so widths depend on shapes alone. Some weights and inputs reach the ends of a
 *     `tight` interval. tests/test_interval.py looks for values outside, and for such inputs.
 * example: 64 products of int8 lie in -1040384..1048576; with any 32-bit bias the sum takes 33
 *     bits: ABITS of mlo_mvu.
 * cost: some dozen operations a kernel.
 */

/* ---- a kernel's intermediates --------------------------------------------- */

/* A double holds every integer of 54 bits. ONNX Runtime's ReduceSum of int64 adds doubles, too: it
 * is exact up to there. */
enum { MLO_IN_INT64 = 64, MLO_IN_INT32 = 32, MLO_IN_DOUBLE = 54, MLO_NOWHERE = 0 };

/* A number inside of a kernel, and the bits that each execution has for it: of a signed number, or
 * MLO_NOWHERE: it does not occur there in this form. */
typedef struct {
    const char *name;
    mlo_interval range;
    int tight; /* 1: some weights and inputs reach both ends */
    int c; /* bits in C */
    int onnx; /* bits in the ONNX function */
    int verilog; /* bits of the register */
    int is_signed; /* 0: the register is not signed */
    const char *reg; /* the register in the module, by its path from the module's top */
} mlo_intermediate;

enum { MLO_INTERMEDIATES = 24 };
typedef struct {
    mlo_intermediate item[MLO_INTERMEDIATES];
    int n;
    int clip; /* bits that the end is clipped to */
} mlo_intermediates;

static void mlo_note(mlo_intermediates *l, mlo_intermediate i) {
    if (l->n < MLO_INTERMEDIATES) l->item[l->n++] = i;
}
/* A number that C and ONNX have, the hardware does not. */
static void mlo_note_golden(
    mlo_intermediates *l, const char *name, mlo_interval range, int tight, int c, int onnx) {
    mlo_intermediate i = { name, range, tight, c, onnx, MLO_NOWHERE, 1, NULL };
    mlo_note(l, i);
}
/* One that all three have; 64 bits in C and ONNX. */
static void mlo_note_all(mlo_intermediates *l, const char *name, mlo_interval range, int tight,
    int verilog, int is_signed, const char *reg) {
    mlo_intermediate i = { name, range, tight, MLO_IN_INT64, MLO_IN_INT64, verilog, is_signed,
        reg };
    mlo_note(l, i);
}
/* One that only the hardware has. */
static void mlo_note_hardware(mlo_intermediates *l, const char *name, mlo_interval range, int tight,
    int verilog, int is_signed, const char *reg) {
    mlo_intermediate i = { name, range, tight, MLO_NOWHERE, MLO_NOWHERE, verilog, is_signed, reg };
    mlo_note(l, i);
}

/* The end of most kernels: acc * M, the half added, rounded down to whole steps (in ONNX: a
 * multiple of 2^S), clipped. `scaled`: acc * M, and its register in the hardware, which never adds
 * the half: it shifts by S - 1, then adds one. A step is taken off only where the half is less than
 * |acc M|, and the step is two halves. */
static void mlo_note_requantize(
    mlo_intermediates *l, mlo_interval scaled, int verilog, const char *reg, int clip) {
    mlo_note_all(l, "acc * M", scaled, 1, verilog, 1, reg);
    mlo_note_golden(l, "acc * M + 2^(S-1)", mlo_sum_of(scaled, mlo_from_to(1, mlo_two_to(61))), 1,
        MLO_IN_INT64, MLO_IN_INT64);
    mlo_note_golden(l, "whole steps",
        mlo_from_to(mlo_times_ends(2, scaled.lo), mlo_add_ends(scaled.hi, mlo_two_to(61))), 0,
        MLO_NOWHERE, MLO_IN_INT64);
    l->clip = clip;
}

/* Bits that the hardware's register of an intermediate needs. */
static int mlo_bits_needed(const mlo_intermediate *i) {
    return mlo_bits_for(i->range) - !i->is_signed;
}

/* Is there room for the number in each execution? Names the first that has none. */
static const char *mlo_no_room(const mlo_intermediate *i, int *has) {
    int bits = mlo_bits_for(i->range);
    if (i->c && bits > i->c) {
        *has = i->c;
        return "C";
    }
    if (i->onnx && bits > i->onnx) {
        *has = i->onnx;
        return "ONNX";
    }
    if (i->verilog && (mlo_bits_needed(i) > i->verilog || (!i->is_signed && i->range.lo < 0))) {
        *has = i->verilog;
        return "Verilog";
    }
    return NULL;
}

/* [{"name":"acc","lo":"-2148532032","hi":..,"bits":33,"verilog":33,"signed":true,"c":64,"onnx":64,
 *   "tight":true,"register":"lane[0].acc"}, ..].
 * Bounds are strings, as they may exceed 2^53; `bits` are needed of the register, or of a signed
 * number where there is none. */
static void mlo_intermediates_json(mlo_text *t, const mlo_intermediates *l) {
    mlo_puts(t, "[");
    for (int k = 0; k < l->n; k++) {
        const mlo_intermediate *i = &l->item[k];
        mlo_printf(t, "%s{\"name\":\"%s\",\"lo\":\"%lld\",\"hi\":\"%lld\",\"bits\":%d",
            k ? "," : "", i->name, (long long)i->range.lo, (long long)i->range.hi,
            mlo_bits_needed(i));
        if (i->verilog)
            mlo_printf(
                t, ",\"verilog\":%d,\"signed\":%s", i->verilog, i->is_signed ? "true" : "false");
        if (i->c) mlo_printf(t, ",\"c\":%d", i->c);
        if (i->onnx) mlo_printf(t, ",\"onnx\":%d", i->onnx);
        mlo_printf(t, ",\"tight\":%s", i->tight ? "true" : "false");
        if (i->reg) mlo_printf(t, ",\"register\":\"%s\"", i->reg);
        mlo_puts(t, "}");
    }
    mlo_puts(t, "]");
}
