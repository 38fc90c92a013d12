
#ifdef MODEL_PROFILE
/* What each step took, a line each, and all of them together. */
static void print_profile(void) {
    double all = 0;
    for (int i = 0; i < model_steps; i++) all += (double)model_profile[i].cycles;
    printf("%12s  share  calls  step\n", MODEL_CYCLES_ARE);
    for (int i = 0; i < model_steps; i++) {
        const model_step *s = &model_profile[i];
        printf("%12.0f  %3.0f %%  %5lu  %s (%s)\n", (double)s->cycles,
            all > 0 ? 100 * (double)s->cycles / all : 0, (unsigned long)s->calls, s->name, s->kernel);
    }
    printf("%12.0f  in all\n", all);
}
#endif
