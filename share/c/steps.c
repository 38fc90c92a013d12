#ifdef MODEL_PROFILE
model_step model_profile[] = {
@STEPS@
};
const int model_steps = (int)(sizeof model_profile / sizeof *model_profile);
#endif

