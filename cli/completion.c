/* completion: scripts for bash, zsh and fish, from the table.
 *
 * out: a script that completes verbs, the verb's flags, and values: words where a flag has a list
 *     (cli_choices, the devices), folders for DIR, files elsewhere.
 *
 * invariant: what is completed is what cli_parse takes; nothing is listed twice.
 * example: mlo fold --memory <TAB>: layer block resident auto
 */

/* Names that a flag's value may have beside others that are not listed. */
static const char *cli_some(const cli_flag *f) {
    return !strcmp(f->name, "device")
        ? "xczu1eg xczu3eg xck26 xczu7ev xczu9eg xczu28dr xcvu9p xcu50 xcu280 xcu250"
        : !strcmp(f->name, "tile") || !strcmp(f->name, "frames-in-flight") ? "auto"
                                                                           : NULL;
}

/* The words of a flag's value, with blanks between them; 0: any value. */
static int cli_value_words(const cli_flag *f, char *to, size_t room) {
    char words[8][CLI_WORD];
    int n = cli_choices(f, words, 8);
    size_t at = 0;
    *to = 0;
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(to + at, room - at, "%s%s", i ? " " : "", words[i]);
    if (!n && cli_some(f)) snprintf(to, room, "%s", cli_some(f));
    return *to != 0;
}

static void cli_verb_words(FILE *out) {
    for (int i = 0; i < CLI_VERBS; i++) fprintf(out, "%s%s", i ? " " : "", cli_verbs[i].name);
}

static const char *cli_dashes(const cli_flag *f) { return strlen(f->name) > 1 ? "--" : "-"; }

/* -o is a folder to emit, a file to read. */
static void cli_folder_cases(FILE *out, const cli_flag *f) {
    for (int i = 0; i < CLI_VERBS; i++)
        if (f->verbs & cli_verbs[i].bit)
            fprintf(out, "        %s,%s%s) kind=folder ;;\n", cli_verbs[i].name, cli_dashes(f),
                f->name);
}

/* A case of the shell for each flag with words: VERB,--FLAG) words='..' ;; */
static void cli_value_cases(FILE *out) {
    char words[200];
    for (int k = 0; k < CLI_FLAGS; k++) {
        const cli_flag *f = &cli_flags[k];
        if (f->arg && !strcmp(f->arg, "DIR"))
            cli_folder_cases(out, f);
        else if (f->arg && cli_value_words(f, words, sizeof words))
            fprintf(out, "        *,--%s) words='%s' ;;\n", f->name, words);
    }
    for (int k = 0; k < CLI_FLAGS; k++)
        if (!cli_flags[k].arg && strlen(cli_flags[k].name) > 1
            && !(cli_flags[k].verbs & V_SIM && !strcmp(cli_flags[k].name, "probe")))
            fprintf(out, "        *,--%s) kind=flags ;;\n", cli_flags[k].name);
    fprintf(out, "        *,--*|*,-o) kind=file ;;\n        *) kind=flags ;;\n");
}

static void cli_flag_cases(FILE *out) {
    for (int i = 0; i < CLI_VERBS; i++) {
        fprintf(out, "        %s) words='", cli_verbs[i].name);
        for (int k = 0, n = 0; k < CLI_FLAGS; k++)
            if (cli_flags[k].verbs & cli_verbs[i].bit)
                fprintf(
                    out, "%s%s%s", n++ ? " " : "", cli_dashes(&cli_flags[k]), cli_flags[k].name);
        fprintf(out, "' ;;\n");
    }
}

/* _mlo_words VERB PREVIOUS CURRENT: sets words, or kind to file or folder. Plain enough for both. */
static void cli_completion_words(FILE *out) {
    fprintf(out, "_mlo_words() {\n    words= kind=\n    case $1,$2 in\n");
    cli_value_cases(out);
    fprintf(out,
        "    esac\n    if [ -n \"$words\" ] || [ \"$kind\" = folder ] || [ \"$kind\" = file ]; "
        "then "
        "return; fi\n    case $3 in\n    -*) case $1 in\n");
    cli_flag_cases(out);
    fprintf(out, "        esac ;;\n    *) case $1 in help) words='");
    cli_verb_words(out);
    fprintf(out, "' ;; sim|generate) kind=folder ;; *) kind=file ;; esac ;;\n    esac\n}\n");
}

static void cli_completion_bash(FILE *out) {
    fprintf(out, "# bash completion for mlo: eval \"$(mlo help --completion bash)\"\n");
    cli_completion_words(out);
    fprintf(out,
        "_mlo() {\n    local cur=${COMP_WORDS[COMP_CWORD]} words= kind=\n    if [ \"$COMP_CWORD\" "
        "= 1 "
        "]; then words='");
    cli_verb_words(out);
    fprintf(out,
        " --version --help'\n    else _mlo_words \"${COMP_WORDS[1]}\" "
        "\"${COMP_WORDS[COMP_CWORD-1]}\" "
        "\"$cur\"; fi\n    if [ -n \"$words\" ]; then COMPREPLY=($(compgen -W \"$words\" -- "
        "\"$cur\"))\n    elif [ \"$kind\" = folder ]; then COMPREPLY=($(compgen -d -- \"$cur\"))\n"
        "    else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n}\ncomplete -o filenames -F _mlo "
        "mlo\n");
}

static void cli_completion_zsh(FILE *out) {
    fprintf(out,
        "#compdef mlo\n# zsh completion for mlo: eval \"$(mlo help --completion zsh)\", behind "
        "compinit; or a file _mlo of $fpath\n");
    cli_completion_words(out);
    fprintf(out,
        "_mlo() {\n    local cur=${words[CURRENT]} verb=${words[2]} before=${words[CURRENT-1]}\n   "
        " "
        "local words= kind=\n    if [ \"$CURRENT\" = 2 ]; then words='");
    cli_verb_words(out);
    fprintf(out,
        " --version --help'\n    else _mlo_words \"$verb\" \"$before\" \"$cur\"; fi\n    if [ -n "
        "\"$words\" ]; then compadd -- ${=words}\n    elif [ \"$kind\" = folder ]; then _files "
        "-/\n "
        "   else _files; fi\n}\nif [ \"$funcstack[1]\" = _mlo ]; then _mlo \"$@\"; else compdef "
        "_mlo "
        "mlo; fi\n");
}

/* Text within single quotes of fish. */
static void cli_fish_text(FILE *out, const char *s) {
    fputc('\'', out);
    for (; *s; s++) {
        if (*s == '\'' || *s == '\\') fputc('\\', out);
        fputc(*s, out);
    }
    fputc('\'', out);
}

static void cli_fish_flag(FILE *out, const cli_flag *f) {
    char words[200];
    fprintf(out, "complete -c mlo -n '__fish_seen_subcommand_from");
    for (int i = 0; i < CLI_VERBS; i++)
        if (f->verbs & cli_verbs[i].bit) fprintf(out, " %s", cli_verbs[i].name);
    fprintf(out, "' -%c %s", strlen(f->name) > 1 ? 'l' : 's', f->name);
    if (f->arg && cli_value_words(f, words, sizeof words))
        fprintf(out, " -x -a '%s'", words);
    else if (f->arg && !strcmp(f->arg, "DIR"))
        fprintf(out, " -x -a '(__fish_complete_directories)'");
    else if (f->arg)
        fprintf(out, " -r");
    fprintf(out, " -d ");
    cli_fish_text(out, f->help);
    fprintf(out, "\n");
}

static void cli_completion_fish(FILE *out) {
    fprintf(out, "# fish completion for mlo: mlo help --completion fish | source\n");
    for (int i = 0; i < CLI_VERBS; i++) {
        fprintf(out, "complete -c mlo -n __fish_use_subcommand -f -a %s -d ", cli_verbs[i].name);
        cli_fish_text(out, cli_verbs[i].help);
        fprintf(out, "\n");
    }
    fprintf(out, "complete -c mlo -n '__fish_seen_subcommand_from help' -f -a '");
    cli_verb_words(out);
    fprintf(out, "'\n");
    for (int k = 0; k < CLI_FLAGS; k++) cli_fish_flag(out, &cli_flags[k]);
}

static void cli_help_completion(FILE *out, const char *shell) {
    if (!strcmp(shell, "zsh"))
        cli_completion_zsh(out);
    else if (!strcmp(shell, "fish"))
        cli_completion_fish(out);
    else
        cli_completion_bash(out);
}
