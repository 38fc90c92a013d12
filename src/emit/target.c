/* target: what a build directory is of: Verilog, or C (option target).
 *
 * in:  a model of any stage.    out: the files, to a sink.
 * invariant: both have the same integers: golden words come from the same evaluation.
 * example: mlo_set(m, "target", "c"), then mlo_emit.
 */
static int mlo_target_is_c(mlo *m) {
    const char *target = mlo_opt(m, "target");
    if (target && !mlo_eq(target, "verilog") && !mlo_eq(target, "c"))
        mlo_fail_at(m, MLO_E_USAGE, NULL, "--target %s: there are verilog and c", target);
    const int c = target && mlo_eq(target, "c");
    static const char *const of_c[] = { "arena", "whole", "parameters" };
    for (size_t i = 0; i < sizeof of_c / sizeof *of_c && !c && !m->error.code; i++)
        if (mlo_opt(m, of_c[i]))
            mlo_fail_at(m, MLO_E_USAGE, NULL, "--%s is of C; give --target c, too", of_c[i]);
    return c;
}

int mlo_emit(mlo *m, mlo_sink sink, void *user) {
    const int c = mlo_target_is_c(m);
    if (m->error.code) return mlo_failed(m);
    return c ? mlo_emit_c(m, sink, user) : mlo_emit_verilog(m, sink, user);
}
