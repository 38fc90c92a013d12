/* table: every verb and every flag, once. Parsing, help, the man page and shell completion all
 * come from here.
 *
 * out: cli_verbs, cli_flags, and what is derived from them.
 *
 * A flag belongs to the stage that reads it and to every verb that may run that stage: `mlo emit
 * x.onnx --pe 4` runs fold, so it takes --pe.
 */
enum {
    V_READ = 1,
    V_SCOPE = 2,
    V_EXTRACT = 4,
    V_ROLL = 8,
    V_QUANTIZE = 16,
    V_LOWER = 32,
    V_FOLD = 64,
    V_EMIT = 128,
    V_COMPILE = 256,
    V_RUN = 512,
    V_SIM = 1024,
    V_CHECK = 2048,
    V_SHOW = 4096,
    V_GENERATE = 8192,
    V_HELP = 16384,
    V_MODEL = V_READ | V_SCOPE | V_EXTRACT | V_ROLL | V_QUANTIZE | V_LOWER | V_FOLD,
    V_BUILD = V_EMIT | V_COMPILE,
    V_FROM_FOLD = V_FOLD | V_BUILD,
    V_FROM_QUANTIZE = V_QUANTIZE | V_LOWER | V_FROM_FOLD,
    V_FROM_ROLL = V_ROLL | V_FROM_QUANTIZE,
    V_FROM_EXTRACT = V_EXTRACT | V_FROM_ROLL,
    V_FROM_SCOPE = V_SCOPE | V_FROM_EXTRACT,
    V_FROM_READ = V_READ | V_FROM_SCOPE,
    V_ALL = V_HELP - 1
};

typedef struct {
    const char *name;
    unsigned bit; /* of cli_flag's verbs */
    const char *takes; /* its operand, for help */
    const char *help;
    const char *example;
} cli_verb;

/* Verbs in groups, for help. */
static const struct {
    const char *title;
    unsigned verbs;
} cli_groups[] = {
    { "From a model to hardware that was tried", V_COMPILE | V_SIM | V_GENERATE },
    { "The stages of compile, one by one; each runs the earlier ones that are missing",
        V_MODEL | V_EMIT },
    { "To look, to evaluate, to prove", V_SHOW | V_RUN | V_CHECK | V_HELP },
};

static const cli_verb cli_verbs[] = {
    { "read", V_READ, "[FILE|-]",
        ".onnx or JSON in, the model out: types and shapes inferred, constants folded, weights "
        "referenced and not copied",
        "mlo read bert.onnx --dim seq=32 | jq .graph.node[0]" },
    { "scope", V_SCOPE, "[FILE|-]",
        "fills in missing scope metadata from neighbouring nodes, and says which and why",
        "mlo scope bert.onnx --report scopes.json -o scoped.json" },
    { "extract", V_EXTRACT, "[FILE|-]", "chooses the loop body: given by hierarchy, or discovered",
        "mlo extract bert.onnx --save-template layer.onnx -o marked.json" },
    { "roll", V_ROLL, "[FILE|-]",
        "every instance of the body becomes one loop; what differs per layer becomes a "
        "per-iteration input",
        "mlo roll bert.onnx --onnx -o rolled.onnx" },
    { "quantize", V_QUANTIZE, "[FILE|-]", "floats to integers, calibrated",
        "mlo quantize bert.onnx --calib x.npz --report report.json -o integers.json" },
    { "lower", V_LOWER, "[FILE|-]",
        "the integer loop becomes a dataflow graph of streaming kernels",
        "mlo lower bert.onnx | mlo show --svg -o layer.svg" },
    { "fold", V_FOLD, "[FILE|-]",
        "chooses PE, SIMD and FIFO depths per kernel; told nothing, a small core near the best "
        "cycles per multiplier, and says which",
        "mlo fold bert.onnx --budget-macs 200 | mlo show" },
    { "emit", V_EMIT, "[FILE|-]", "writes the build directory",
        "mlo fold bert.onnx --pe 4 --simd 4 | mlo emit -o build" },
    { "compile", V_COMPILE, "FILE|-", "all of the above, in one go, with a summary",
        "mlo compile bert.onnx --device xck26 -o build" },
    { "run", V_RUN, "FILE|-",
        "evaluates any stage's model on inputs; integer stages are bit-exact with the Verilog",
        "mlo run rolled.onnx --inputs x.npz --outputs y.npz" },
    { "sim", V_SIM, "DIR",
        "simulates a build directory, compares every word with the golden output, reports cycles",
        "mlo sim build --stall 20 --axi-latency 60" },
    { "generate", V_GENERATE, "DIR",
        "goes on with a text, the likeliest token after the other, in the integers of a build "
        "directory",
        "mlo generate build --prompt 'Once upon a time' --tokenizer tok512.bin" },
    { "check", V_CHECK, "ROLLED|-", "proves a rolled model equal to its original",
        "mlo check rolled.onnx --against bert.onnx" },
    { "show", V_SHOW, "[FILE|-] [OTHER]",
        "any stage's model, or the core of a build directory, as text, JSON summary, DOT, one "
        "HTML page or one picture; two cores side by side: what changed; points of a sweep "
        "(.jsonl): "
        "their Pareto fronts",
        "mlo show bert.onnx --html -o bert.html" },
    { "help", V_HELP, "[VERB]", "this, or one verb's flags", "mlo help fold" },
};
enum { CLI_VERBS = sizeof cli_verbs / sizeof *cli_verbs };

typedef struct {
    const char *name;
    const char *arg; /* what its value is, for help; NULL: a switch */
    unsigned verbs; /* bits of those that it is for */
    int to_mlo; /* 1: handed to the library under its own name */
    const char *help;
} cli_flag;

static const cli_flag cli_flags[] = {
    { "o", "FILE", V_MODEL | V_SHOW, 0,
        "write there instead of to stdout (binary ONNX when it ends in .onnx)" },
    { "o", "DIR", V_BUILD, 0, "the build directory" },
    { "onnx", NULL, V_MODEL, 0, "write binary ONNX instead of JSON" },
    { "inline", NULL, V_MODEL, 1,
        "put weights into the JSON instead of referring to the file they lie in" },
    { "keep", "DIR", V_MODEL | V_BUILD, 0,
        "save the model after every stage there, as STAGE.onnx" },
    { "config", "FILE.json", V_ALL, 0,
        "flags as keys of a JSON object; flags given on the command line win" },
    { "dim", "NAME=N", V_FROM_READ | V_RUN | V_CHECK | V_SHOW, 1,
        "bind a symbolic dimension; may be repeated" },
    { "shape", "INPUT=1x128", V_FROM_READ | V_RUN | V_CHECK | V_SHOW, 1,
        "bind the shape of an input; may be repeated" },
    { "hold", "FILE.npz", V_FROM_READ | V_RUN | V_CHECK | V_SHOW, 0,
        "inputs of the model that this file names are constants with its values: a mask, "
        "positions, rotations" },
    { "unbatch", NULL, V_FROM_READ | V_RUN | V_CHECK | V_SHOW, 1,
        "the model of one part of the batch that its export has fixed, as compile takes it where "
        "each is treated by itself" },
    { "context", "N", V_FROM_READ | V_RUN | V_CHECK | V_SHOW, 1,
        "of a decoder: it becomes the prompt of N tokens, without past and present keys and "
        "values; "
        "its open axes hold N" },
    { "hierarchy", "JSON", V_FROM_EXTRACT, 1,
        "scopes of the body, outermost first: '[[\"encoder\",\"encoder.layer.0\"]]'" },
    { "template", "FILE.onnx", V_FROM_EXTRACT, 0,
        "the body, as saved by --save-template and perhaps edited" },
    { "save-template", "FILE.onnx", V_FROM_EXTRACT, 0, "save the body as a model of its own" },
    { "nested", NULL, V_FROM_ROLL, 1, "roll what repeats within a loop's body, too" },
    { "as", "scan|finn", V_FROM_ROLL, 1, "a standard Scan, or FINN's FINNLoop" },
    { "report", "FILE.json", V_FROM_SCOPE, 1,
        "what the stages found: scopes, loops and instances; quantize measures its integers "
        "against the floats" },
    { "calib", "FILE.npz", V_FROM_QUANTIZE, 0,
        "calibration inputs by name; the first axis may be samples" },
    { "sketch", NULL, V_QUANTIZE | V_LOWER | V_FOLD, 1,
        "reads no weights and calibrates nothing: what hardware there would be, in milliseconds, "
        "for fold, --pareto and show; all operands get --activations bits" },
    { "weights", "BITS", V_FROM_QUANTIZE, 1, "bits of weights, 2 to 8; default: 8" },
    { "activations", "BITS", V_FROM_QUANTIZE, 1, "bits of matrix operands, 4 to 16; default: 8" },
    { "max-cost", "F", V_FROM_QUANTIZE, 1,
        "spend so much on multipliers, 1.15 = 15 % over operands of --activations bits, on wider "
        "operands where they help most; default: 1.15 (a decoder: 1.25), up to 11 bits; 1 where "
        "--activations or the model says widths" },
    { "max-error", "X", V_FROM_QUANTIZE, 1,
        "as little of that (2, or --max-cost) as brings the loop's output this near to the floats' "
        "on the calibration samples: max|a-b| / max|b|" },
    { "residual", "BITS", V_FROM_QUANTIZE, 1, "bits of the residual stream, 8 to 16; default: 16" },
    { "scale", "real|pow2", V_FROM_QUANTIZE, 1,
        "requantize by multiply and shift, or by shift only" },
    { "q-config", "FILE.json", V_FROM_QUANTIZE, 0,
        "fixed point: widths and fractions by op type or by node, in MASE's terms" },
    { "prefill", "PROMPT.onnx", V_LOWER | V_FROM_FOLD, 0,
        "of a step with a cache: another export of the model, of a prompt; both are to be one "
        "body, in every "
        "integer" },
    { "tokens", NULL, V_FROM_READ, 1,
        "of a decoder (--context): token ids in, ids and their logits out: a row for each id in "
        "front "
        "of the loop, norm, head and arg max behind it, all of it in hardware; of an encoder: ids "
        "in, "
        "its last hidden states out: rows of ids, positions and types of tokens, their sum and "
        "norm; or what it makes of a text's first token (a pooler, a classifier)" },
    { "best", "K", V_FROM_QUANTIZE, 1,
        "of a decoder with --tokens: for each id that is said the K likeliest with their logits, "
        "in their order, up to "
        "16; default: 1" },
    { "loop", "NAME", V_FROM_QUANTIZE, 1,
        "the loop to build; default: the one with the most multiply-accumulates; lower says which "
        "that is, and where the others go" },
    { "pe", "N", V_FROM_FOLD, 1,
        "at most N rows at once; each kernel takes the largest legal divisor (--pe 1 --simd 1: the "
        "smallest core there is)" },
    { "simd", "N", V_FROM_FOLD, 1, "at most N columns at once; likewise" },
    { "target-cycles", "N", V_FROM_FOLD, 1,
        "cycles per frame, whole loop: the cheapest folding that takes no more" },
    { "target-fps", "F", V_FROM_FOLD, 1, "frames per second, with --clock-mhz" },
    { "clock-mhz", "M", V_FROM_FOLD, 1, "the clock for --target-fps" },
    { "budget-macs", "N", V_FROM_FOLD, 1,
        "the fastest folding with at most N multipliers (of MVU and attention)" },
    { "budget-bits", "N", V_FROM_FOLD, 1,
        "... that holds at most N bits on chip: parameters (all banks), frames of keys and values, "
        "FIFOs" },
    { "pareto", NULL, V_FOLD, 1,
        "print every folding that none beats in cycles and multipliers, one JSON line each, "
        "instead of the model; --folding takes a line" },
    { "folding", "FILE.json", V_FROM_FOLD, 0,
        "PE and SIMD by kernel (FINN's keys), or a line of --pareto; a search leaves these kernels "
        "alone" },
    { "save-folding", "FILE.json", V_FROM_FOLD, 0, "write the folding that was chosen" },
    { "frames-in-flight", "G", V_FROM_FOLD, 1,
        "frames that share a layer's parameters; auto: 1 to 8, as a target or budgets need" },
    { "slots", "N", V_FROM_FOLD, 1,
        "with --context: sequences whose keys and values stay, side by side; default 1" },
    { "kv", "chip|dram", V_FROM_READ, 1,
        "with --context: keys and values stay on chip (default), or in dram, behind a port of "
        "their own" },
    { "axi-width", "BITS", V_FROM_FOLD, 1, "of the parameter bus; default 128" },
    { "bandwidth", "BYTES", V_FROM_FOLD, 1,
        "bytes per cycle that memory gives, e.g. 12.8; alone: the cheapest folding that is as fast "
        "as that allows" },
    { "axi-latency", "CYCLES", V_FROM_FOLD, 1,
        "from a read request to its first beat, in predictions; default 7" },
    { "memory", "layer|block|resident|auto", V_FROM_FOLD, 1,
        "where parameters are: layer (default, but for what fits a device only in blocks), two "
        "layers' banks on chip; block, two blocks of a matrix's rows, read for every tile of "
        "tokens; resident, all layers', read once; auto, of these (block with --tile) what saves "
        "most traffic within --budget-bits" },
    { "tile", "N", V_FROM_FOLD, 1,
        "tokens that --memory block (auto) reads a matrix for, of all frames in flight; default: "
        "a frame's, one a frame if that is more (none); auto: what serves best" },
    { "device", "NAME", V_FROM_FOLD, 1,
        "the fastest folding that fits, with two layers on chip or, unless --memory says it, in "
        "row blocks: xczu3eg, xck26, xczu7ev, xczu9eg, xcvu9p, xcu50, xcu250, .., or "
        "lut=N,ff=N,dsp=N,bram=N of another UltraScale+; 70 % of its LUTs, 50 % of its flip-flops, "
        "80 % of its DSP blocks and block RAMs are used at most" },
    { "target", "verilog|c", V_BUILD, 1,
        "what to build: Verilog (default), or C without libraries for any processor" },
    { "arena", "BYTES", V_BUILD, 1,
        "with --target c: what a network's values may take at a time; what needs more is cut into "
        "parts, a transformer's layer into blocks of tokens" },
    { "whole", NULL, V_BUILD, 1,
        "with --target c: the model's own inputs and outputs (token ids, pixels, logits), what is "
        "around the loop in "
        "floats; with --inputs a network of floats as it stands" },
    { "parameters", "c|bin", V_BUILD, 1,
        "with --target c: parameters as weights.c (default up to 16 MB of them), or as weights.bin "
        "with the weights.S that gives it to the linker: little-endian" },
    { "unrolled", NULL, V_BUILD, 1,
        "the body once for every iteration, one behind the other, for comparison: nothing goes "
        "round" },
    { "inputs", "FILE.npz", V_RUN | V_SIM | V_BUILD, 0,
        "arrays by input name, or by position when no name fits; with --target c: a network of "
        "integers is built as it stands, each input in the type of these words" },
    { "golden", "FILE.npz", V_BUILD, 0,
        "with --inputs: the outputs that the test of C compares with; default: mlo's own" },
    { "outputs", "FILE.npz", V_RUN | V_SIM, 0, "where to store the outputs" },
    { "probe", "FILE.npz", V_RUN, 0,
        "store every intermediate value too, as NAME or NAME@ITERATION" },
    { "generate", "COUNT", V_RUN | V_SIM, 0,
        "go on with --prompt for so many tokens, the likeliest one by one; prints "
        "{\"sequences\":[{\"tokens\":[..]}]}; sim plays prompts and tokens as jobs, side by side "
        "in --slots" },
    { "prompt", "IDS", V_RUN | V_SIM, 0,
        "token ids with commas, ; between sequences: '1,403;1,407'; default: 1" },
    { "prompt", "TEXT", V_GENERATE, 0, "what the text begins with" },
    { "tokenizer", "FILE", V_GENERATE, 0,
        "its tokens, in llama2.c's form; examples/tokenizer.py makes one of a tokenizer.json of "
        "SentencePiece's kind (a text begins with token 1), examples/generate.py takes any. "
        "Without "
        "it prompt and text are ids" },
    { "count", "N", V_GENERATE, 0,
        "tokens to go on for, at most; default: as far as the context goes" },
    { "stop", "ID", V_RUN | V_SIM | V_GENERATE, 0, "a token behind which a sequence ends" },
    { "simulator", "icarus|verilator|native|arm|riscv32|cortex-m", V_SIM, 0,
        "default: icarus, but verilator where Icarus would take more than 20 s, by an estimate, "
        "and Verilator less; of a build of C: native, or the others under qemu" },
    { "frames", "F", V_SIM, 0, "frames to play; those beyond the bench's own are drawn" },
    { "frame-tokens", "N,N,..", V_SIM, 0, "cut frames to so many tokens, in turn" },
    { "jobs", "START+TOKENS,..", V_SIM, 0,
        "of a core with caches: what comes, part by part; 1:0+16 is of slot 1, 2@0+16 of frame 2 "
        "of --inputs" },
    { "seed", "N", V_SIM, 0, "of stalls; default 1" },
    { "stall", "PERCENT", V_SIM, 0, "of the cycles in which each stream rests" },
    { "axi-latency", "CYCLES", V_SIM, 0,
        "from a read request to its first beat; default: what the core was folded for" },
    { "axi-error", "BEAT", V_SIM, 0,
        "memory answers this beat of parameters with an error, as a test: the run fails and says "
        "so" },
    { "bandwidth", "BYTES", V_SIM, 0, "bytes per cycle that memory gives, e.g. 12.8; likewise" },
    { "probe", NULL, V_SIM, 0,
        "compare every kernel's stream; names the first kernel, iteration, token and channel that "
        "differ" },
    { "trace", NULL, V_SIM, 0,
        "a profile as JSON lines behind the report: each token in each kernel, each loading of "
        "parameters (see below)" },
    { "window", "CYCLE", V_SIM, 0,
        "with --trace: valid and ready of each stream in the 96 cycles from this one on; default: "
        "half way" },
    { "wave", "FILE.fst", V_SIM, 0,
        "record waves (GTKWave: tb/mlo_top.gtkw); as FILE.vcd, ten times larger, for show --wave" },
    { "wave", "FILE.vcd", V_SHOW, 0,
        "on the page of a core: its streams, cycle by cycle, out of waves that its bench "
        "recorded" },
    { "window", "CYCLE", V_SHOW, 0,
        "with --wave: the first of the 96 cycles that are drawn; 1, the default: the first beat "
        "comes in" },
    { "against", "ORIGINAL.onnx", V_CHECK, 0, "the model it was rolled from" },
    { "text", NULL, V_SHOW | V_SIM, 0, "a table for people (the default; of sim: on a terminal)" },
    { "json", NULL, V_SHOW | V_SIM, 0,
        "a summary for programs (of sim: the default, but for a terminal)" },
    { "dot", NULL, V_SHOW, 0, "a graph for Graphviz" },
    { "html", NULL, V_SHOW, 0, "one self-contained page" },
    { "svg", NULL, V_SHOW, 0, "one picture, of the largest loop's body" },
    { "sim", "FILE.json", V_SHOW, 0,
        "what `mlo sim` printed of this core (with --trace, all of it): measured beside "
        "predicted" },
    { "position", "P", V_FROM_FOLD | V_SHOW, 1,
        "of a core with caches: a token that comes alone, behind so many: the folding is searched "
        "for its step (default: half way), show predicts it (the last)" },
    { "sequences", "G", V_FROM_FOLD | V_SHOW, 1,
        "of a core with caches: the step is that of a token of each of so many sequences, which go "
        "over the weights "
        "together as far as frames are in flight (default: 1)" },
    { "man", NULL, V_HELP, 0, "the manual page, as roff" },
    { "completion", "bash|zsh|fish", V_HELP, 0, "a completion script" },
};
enum { CLI_FLAGS = sizeof cli_flags / sizeof *cli_flags };

/* What a verb's output means, where a line does not say it. */
static const struct {
    unsigned verb;
    const char *text;
} cli_notes[] = {
    { V_SIM,
        "The report: busy, starved and blocked are the kernel's own counters, read over AXI-Lite: "
        "cycles in which it works, waits for input or parameters,\n"
        "waits for its output. utilization = macs / (multipliers x cycles per frame): as simulated "
        "(utilization), as predicted (predicted_utilization), and\n"
        "if the busiest kernel never rested (bound_utilization). memory: beats read, and the share "
        "of cycles in which one came. `mlo show DIR` shows it." },
    { V_SIM,
        "--trace adds a line per tile, also in DIR/sim/trace.jsonl; cycle 1 is that of the first "
        "input beat, what is loaded ahead has cycles from 0 down:\n"
        "  "
        "{\"kernel\",\"frame\",\"iteration\",\"token\",\"begin\",\"end\",\"load\",\"compute\","
        "\"store\",\"starved\",\"blocked\"}\n"
        "      begin, end: its first input beat, its last output beat; load, store: cycles from "
        "its first to its last input beat, output beat;\n"
        "      compute, starved, blocked: what the kernel did from the end of the token before to "
        "the end of this one\n"
        "  {\"kernel\",\"rest\":true,\"compute\",\"starved\",\"blocked\"}    after its last token: "
        "all of a kernel's lines add up to its counters\n"
        "  {\"kernel\",\"memory\",\"frame\",\"iteration\",\"begin\",\"end\",\"load\"}    a bank is "
        "filled, for that frame on" },
};

static const char *const cli_statuses[] = { "ok",
    "the answer is no: a mismatch, a folding that does not fit",
    "usage, or a file that cannot be read or written", "bad input", "unsupported", "a bug in mlo" };

static const cli_verb *cli_verb_of(const char *name) {
    for (int i = 0; i < CLI_VERBS; i++)
        if (!strcmp(cli_verbs[i].name, name)) return &cli_verbs[i];
    return NULL;
}

/* The flag by that name that the verb takes; with verbs = ~0u, anyone's. */
static const cli_flag *cli_flag_of(const char *name, size_t n, unsigned verbs) {
    for (int i = 0; i < CLI_FLAGS; i++)
        if (strlen(cli_flags[i].name) == n && !strncmp(cli_flags[i].name, name, n)
            && cli_flags[i].verbs & verbs)
            return &cli_flags[i];
    return NULL;
}

/* ---- the nearest name ----------------------------------------------------- */

/* The words that a flag's value is one of, a|b|c; 0 where it is anything else. */
enum { CLI_WORD = 32 };
static int cli_choices(const cli_flag *f, char words[][CLI_WORD], int most) {
    int n = 0;
    if (!f->arg || !strchr(f->arg, '|')) return 0;
    for (const char *p = f->arg; *p && n < most; p += strcspn(p, "|"), p += *p == '|')
        snprintf(words[n++], CLI_WORD, "%.*s", (int)strcspn(p, "|"), p);
    return n;
}

static const char *cli_nearest_flag(const char *name, unsigned verbs) {
    const char *best = NULL;
    for (int i = 0; i < CLI_FLAGS; i++)
        if (cli_flags[i].verbs & verbs && strlen(cli_flags[i].name) > 1)
            mlo_nearer(name, cli_flags[i].name, &best);
    return best;
}

static const char *cli_nearest_verb(const char *name) {
    const char *best = NULL;
    for (int i = 0; i < CLI_VERBS; i++) {
        const char *verb = cli_verbs[i].name;
        if (strlen(name) > 2 && !strncmp(name, verb, strlen(verb))) return verb; /* simulate: sim */
        mlo_nearer(name, verb, &best);
    }
    return best;
}

/* ---- help ----------------------------------------------------------------- */

static void cli_help_flag(FILE *out, const cli_flag *f) {
    char left[64];
    snprintf(left, sizeof left, "%s%s%s%s", strlen(f->name) > 1 ? "--" : "-", f->name,
        f->arg ? " " : "", f->arg ? f->arg : "");
    fprintf(out, "  %-26s %s", left, f->help);
    fprintf(out, "\n");
}

static void cli_help_all(FILE *out) {
    fprintf(out,
        "mlo %s: a transformer exported as ONNX in, a verified streaming Verilog accelerator "
        "out.\n\n"
        "  mlo compile bert.onnx -o build && mlo sim build\n"
        "  mlo read bert.onnx | mlo roll | mlo quantize --calib x.npz | mlo fold --pe 4 --simd 4 | "
        "mlo emit -o build\n\n",
        MLO_VERSION);
    for (size_t k = 0; k < sizeof cli_groups / sizeof *cli_groups; k++) {
        fprintf(out, "%s:\n", cli_groups[k].title);
        for (int i = 0; i < CLI_VERBS; i++)
            if (cli_verbs[i].bit & cli_groups[k].verbs)
                fprintf(out, "  mlo %-8s %-9s %s\n                         %s\n", cli_verbs[i].name,
                    cli_verbs[i].takes, cli_verbs[i].help, cli_verbs[i].example);
        fprintf(out, "\n");
    }
    fprintf(out,
        "A stage verb runs the missing earlier stages, and takes their flags. `mlo help VERB` "
        "lists them; `mlo help --man` is the manual.\nExit status:");
    for (size_t i = 0; i < sizeof cli_statuses / sizeof *cli_statuses; i++)
        fprintf(out, "%s %d %s", i ? ";" : "", (int)i, cli_statuses[i]);
    fprintf(out, ".\n");
}

static void cli_help_verb(FILE *out, const cli_verb *v) {
    fprintf(out, "mlo %s %s: %s\n\n  %s\n\n", v->name, v->takes, v->help, v->example);
    for (int i = 0; i < CLI_FLAGS; i++)
        if (cli_flags[i].verbs & v->bit) cli_help_flag(out, &cli_flags[i]);
    for (size_t i = 0; i < sizeof cli_notes / sizeof *cli_notes; i++)
        if (cli_notes[i].verb & v->bit) fprintf(out, "\n%s\n", cli_notes[i].text);
}

/* Text in roff: a leading point or apostrophe is a request, a backslash an escape, a plain minus a
 * hyphen. */
static void cli_roff(FILE *out, const char *s) {
    if (*s == '.' || *s == '\'') fputs("\\&", out);
    for (; *s; s++) {
        if (*s == '-')
            fputs("\\-", out);
        else if (*s == '\\')
            fputs("\\e", out);
        else
            fputc(*s, out);
    }
}

static void cli_help_man(FILE *out) {
    fprintf(out,
        ".TH MLO 1 \"\" \"mlo %s\" \"User Commands\"\n.SH NAME\nmlo \\- a transformer exported as "
        "ONNX in, a verified streaming Verilog accelerator out\n",
        MLO_VERSION);
    fprintf(out,
        ".SH SYNOPSIS\n.B mlo\n.I VERB\n[FILE] [FLAGS]\n.br\n.B mlo compile\n.I "
        "bert.onnx\n\\-o\n.I build\n.br\n.B mlo sim\n.I build\n");
    fprintf(out,
        ".SH DESCRIPTION\nEach stage reads a model on standard input or from a file and writes a "
        "model on standard output, so stages pipe. A stage verb runs the missing earlier stages "
        "and takes their flags.\n"
        "A failure is one line on standard error and an error document on standard output, which "
        "later stages pass on with the same status.\n.SH VERBS\n");
    for (int i = 0; i < CLI_VERBS; i++) {
        fprintf(out, ".TP\n.B mlo %s\n.I %s\n.br\n", cli_verbs[i].name, cli_verbs[i].takes);
        cli_roff(out, cli_verbs[i].help);
        fprintf(out, "\n.br\n");
        cli_roff(out, cli_verbs[i].example);
        fprintf(out, "\n");
    }
    fprintf(out, ".SH FLAGS\n");
    for (int i = 0; i < CLI_FLAGS; i++) {
        const cli_flag *f = &cli_flags[i];
        fprintf(out, ".TP\n\\fB");
        cli_roff(out, strlen(f->name) > 1 ? "--" : "-");
        cli_roff(out, f->name);
        fprintf(out, "\\fR");
        if (f->arg) {
            fprintf(out, " \\fI");
            cli_roff(out, f->arg);
            fprintf(out, "\\fR");
        }
        fprintf(out, "\n");
        cli_roff(out, f->help);
        fprintf(out, ". Verbs:");
        for (int k = 0; k < CLI_VERBS; k++)
            if (f->verbs & cli_verbs[k].bit) fprintf(out, " %s", cli_verbs[k].name);
        fprintf(out, ".\n");
    }
    for (size_t i = 0; i < sizeof cli_notes / sizeof *cli_notes; i++) {
        fprintf(out, i ? ".PP\n.nf\n" : ".SH NOTES\n.nf\n");
        for (const char *p = cli_notes[i].text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
            char line[400];
            snprintf(line, sizeof line, "%.*s", (int)strcspn(p, "\n"), p);
            cli_roff(out, line);
            fprintf(out, "\n");
        }
        fprintf(out, ".fi\n");
    }
    fprintf(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof cli_statuses / sizeof *cli_statuses; i++)
        fprintf(out, ".TP\n%d\n%s\n", (int)i, cli_statuses[i]);
}
