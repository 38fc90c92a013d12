/* emit: the build directory.
 *
 * in:  a folded model.    out: rtl/, tb/, host/, params.bin, params.hex, a Makefile and scripts,
 *     manifest.json last.
 * invariant: the Verilog depends on shapes, widths and folding alone; everything learned is in
 *      params.* and host/. Nothing is a text template with holes for logic: the top is wires and
 * instances, the logic is in verilog/. --unrolled: for comparison, the loop's body as often as it
 *      has iterations, one behind the other, each with parameters of its own; nothing goes round.
 *      The body is a module then, rtl/mlo_layer.v, with ports named as the wires of a rolled top;
 *      its lines are the same.
 * example: mlo compile bert.onnx --pe 4 --simd 4 -o build && make -C build sim
 * cost: one layer's parameters in memory at a time; the parameter image is written as it is made.
 */

/* ---- files ---------------------------------------------------------------- */

typedef struct {
    const char *name, *digest;
    uint64_t size;
} mlo_emitted;

typedef struct {
    mlo *m;
    mlo_sink sink;
    void *user;
    mlo_core *c;
    mlo_sha sha;
    const char *file;
    uint64_t size;
    mlo_emitted *done;
    size_t n_done;
    /* bodies in hardware: 1, or unrolled, one for each iteration */
    int unrolled, layers;
    mlo_text t; /* the file being composed */
} mlo_emitter;

static int mlo_file_begin(mlo_emitter *e, const char *name) {
    mlo_sha_begin(&e->sha);
    e->file = mlo_intern(e->m, name);
    e->size = 0;
    return mlo_failed(e->m);
}
static int mlo_file_write(mlo_emitter *e, const void *bytes, size_t n) {
    if (e->m->error.code) return mlo_failed(e->m);
    mlo_sha_add(&e->sha, bytes, n);
    e->size += n;
    return e->sink(e->user, e->file, bytes, n)
        ? mlo_fail_at(e->m, MLO_E_IO, e->file,
              "could not be written; is the disk full or the directory read-only?")
        : 0;
}
static int mlo_file_end(mlo_emitter *e) {
    char hex[65];
    mlo_sha_end(&e->sha, hex);
    mlo_emitted d = { e->file, mlo_intern(e->m, hex), e->size };
    return !e->m->error.code && MLO_PUSH(e->m, e->done, e->n_done, d) ? 0 : mlo_failed(e->m);
}

/* What was composed in e->t, as a file. */
static int mlo_file_text(mlo_emitter *e, const char *name) {
    int r = mlo_file_begin(e, name) || mlo_file_write(e, e->t.text ? e->t.text : "", e->t.n)
        || mlo_file_end(e);
    e->t.n = 0;
    return r ? mlo_failed(e->m) : 0;
}

static void mlo_line(mlo_emitter *e, const char *format, ...) {
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    mlo_puts(&e->t, line);
    mlo_puts(&e->t, "\n");
}

/* A text of share/ as the file of the same name. */
static int mlo_emit_shared(mlo_emitter *e, const char *name, const mlo_hole *holes, void *user) {
    MLO_TRY(mlo_share_copy(&e->t, name, holes, user));
    return mlo_file_text(e, name);
}

/* ---- the Verilog library: embedded in texts.c, one array of lines a module ---- */

static int mlo_module_at(const char *name, size_t n) {
    for (int i = 0; i < MLO_N_VERILOG; i++)
        if (!strncmp(mlo_verilog[i].name, name, n) && mlo_eq(mlo_verilog[i].name + n, ".v"))
            return i;
    return -1;
}

/* Marks a module and all it mentions outside of comments. */
static void mlo_module_need(int at, unsigned char *need) {
    if (at < 0 || need[at]) return;
    need[at] = 1;
    for (const char *const *line = mlo_verilog[at].lines; *line; line++) {
        const char *end = strstr(*line, "//"), *p = *line;
        size_t limit = end ? (size_t)(end - *line) : strlen(*line);
        while ((p = strstr(p, "mlo_")) != NULL && (size_t)(p - *line) < limit) {
            size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_");
            mlo_module_need(mlo_module_at(p, n), need);
            p += n;
        }
    }
}

static int mlo_emit_modules(mlo_emitter *e, const unsigned char *need, const char *folder) {
    for (int i = 0; i < MLO_N_VERILOG && !e->m->error.code; i++)
        if (need[i]) {
            for (const char *const *line = mlo_verilog[i].lines; *line; line++) {
                mlo_puts(&e->t, *line);
                mlo_puts(&e->t, "\n");
            }
            mlo_file_text(e, mlo_format(e->m, "%s/%s", folder, mlo_verilog[i].name));
        }
    return mlo_failed(e->m);
}

static int mlo_emit_library(mlo_emitter *e) {
    static const char *const always[] = { "mlo_entry", "mlo_exit", "mlo_loop", "mlo_loader",
        "mlo_regs", "mlo_fifo" };
    unsigned char need[MLO_N_VERILOG] = { 0 }, sim[MLO_N_VERILOG] = { 0 };
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        mlo_module_need(mlo_module_at(always[i], strlen(always[i])), need);
    for (int i = 0; i < e->c->n_element; i++) {
        const char *name = e->c->element[i].kernel ? e->c->element[i].unit.module : "mlo_split";
        mlo_module_need(mlo_module_at(name, strlen(name)), need);
        if (mlo_is_block(&e->c->element[i])) {
            mlo_module_need(mlo_module_at("mlo_refill", 10), need);
            mlo_module_need(mlo_module_at("mlo_axi_share", 13), need);
        }
    }
    mlo_module_need(mlo_module_at("mlo_fork", 8), need);
    mlo_module_need(mlo_module_at("mlo_width", 9), need);
    for (int i = 0; i < MLO_N_VERILOG; i++)
        if (mlo_starts(mlo_verilog[i].name, "mlo_sim_")) {
            sim[i] = 1;
            need[i] = 0;
        }
    return mlo_emit_modules(e, need, "rtl") || mlo_emit_modules(e, sim, "tb") ? mlo_failed(e->m)
                                                                              : 0;
}

/* ---- the top -------------------------------------------------------------- */

static int mlo_padded(int bits) { return (bits + 7) / 8 * 8; }

static void mlo_emit_wires(mlo_emitter *e, const char *bus, int bits) {
    mlo_line(e, "    wire [%d:0] %s_tdata;", bits - 1, bus);
    mlo_line(e, "    wire [2:0] %s_tuser;", bus);
    mlo_line(e, "    wire %s_tvalid, %s_tready;", bus, bus);
}
/* .PORT_tdata(BUS_tdata), ... */
static void mlo_emit_bus(mlo_emitter *e, const char *port, const char *bus, const char *end) {
    mlo_line(e,
        "        .%s_tdata(%s_tdata), .%s_tvalid(%s_tvalid), .%s_tready(%s_tready), "
        ".%s_tuser(%s_tuser)%s",
        port, bus, port, bus, port, bus, port, bus, end);
}

static void mlo_emit_top_ports(mlo_emitter *e) {
    const mlo_core *c = e->c;
    int io = c->lanes * mlo_padded(c->bits), axi = c->axi_bits;
    mlo_line(e, "module mlo_top (");
    mlo_line(e, "    (* X_INTERFACE_INFO = \"xilinx.com:signal:clock:1.0 clk CLK\" *)");
    mlo_line(e,
        "    (* X_INTERFACE_PARAMETER = \"ASSOCIATED_BUSIF s_axis:m_axis%s:m_axi:s_axil, "
        "ASSOCIATED_RESET rst\" *)",
        c->masked ? ":s1_axis" : "");
    mlo_line(e, "    input  wire         clk,");
    mlo_line(e, "    (* X_INTERFACE_INFO = \"xilinx.com:signal:reset:1.0 rst RST\" *)");
    mlo_line(e, "    (* X_INTERFACE_PARAMETER = \"POLARITY ACTIVE_HIGH\" *)");
    mlo_line(e, "    input  wire         rst,");
    mlo_line(e,
        "    // activations in: %d channels of %d bits a beat, %lld beats a token; tlast ends a "
        "frame",
        c->lanes, c->bits, (long long)(c->channels / c->lanes));
    mlo_line(e,
        "    input  wire [%d:0] s_axis_tdata,\n    input  wire         s_axis_tvalid,\n    output "
        "wire         s_axis_tready,\n    input  wire         s_axis_tlast,",
        io - 1);
    if (c->masked) {
        mlo_line(e, "    // attention mask in: a beat a token, bit 0 = this key counts");
        mlo_line(e,
            "    input  wire [7:0]   s1_axis_tdata,\n    input  wire         s1_axis_tvalid,\n    "
            "output wire         s1_axis_tready,\n    input  wire         s1_axis_tlast,");
    }
    mlo_line(e, "    // activations out, in the same form");
    mlo_line(e,
        "    output wire [%d:0] m_axis_tdata,\n    output wire         m_axis_tvalid,\n    input  "
        "wire         m_axis_tready,\n    output wire         m_axis_tlast,",
        io - 1);
    mlo_line(e, "    // parameters: AXI4 read master");
    mlo_line(e,
        "    output wire         m_axi_arid,\n    output wire [63:0]  m_axi_araddr,\n    output "
        "wire [7:0]   m_axi_arlen,\n    output wire [2:0]   m_axi_arsize,\n    output wire [1:0]   "
        "m_axi_arburst,");
    mlo_line(e,
        "    output wire         m_axi_arvalid,\n    input  wire         m_axi_arready,\n    input "
        " wire         m_axi_rid,\n    input  wire [%d:0] m_axi_rdata,\n    input  wire [1:0]   "
        "m_axi_rresp,",
        axi - 1);
    mlo_line(e,
        "    input  wire         m_axi_rlast,\n    input  wire         m_axi_rvalid,\n    output "
        "wire         m_axi_rready,");
    mlo_line(e, "    // registers: AXI4-Lite, see host/mlo_regs.h");
    mlo_line(e,
        "    input  wire [11:0]  s_axil_awaddr,\n    input  wire         s_axil_awvalid,\n    "
        "output wire         s_axil_awready,\n    input  wire [31:0]  s_axil_wdata,\n    input  "
        "wire [3:0]   s_axil_wstrb,");
    mlo_line(e,
        "    input  wire         s_axil_wvalid,\n    output wire         s_axil_wready,\n    "
        "output wire [1:0]   s_axil_bresp,\n    output wire         s_axil_bvalid,\n    input  "
        "wire         s_axil_bready,");
    mlo_line(e,
        "    input  wire [11:0]  s_axil_araddr,\n    input  wire         s_axil_arvalid,\n    "
        "output wire         s_axil_arready,\n    output wire [31:0]  s_axil_rdata,\n    output "
        "wire [1:0]   s_axil_rresp,");
    mlo_line(
        e, "    output wire         s_axil_rvalid,\n    input  wire         s_axil_rready\n);");
}

static int mlo_core_kernels(const mlo_core *c) {
    int n = 0;
    for (int i = 0; i < c->n_element; i++) n += c->element[i].kernel != NULL;
    return n;
}
/* What the loader serves: all parameter memories but those of row blocks, whose kernels have
 * readers of their own. */
static int mlo_loaded_memories(const mlo_element *e) {
    return mlo_is_block(e) ? 0 : e->unit.n_memory;
}
static int mlo_core_memories(const mlo_core *c) {
    int n = 0;
    for (int i = 0; i < c->n_element; i++) n += mlo_loaded_memories(&c->element[i]);
    return n;
}
static int mlo_core_readers(const mlo_core *c) {
    int n = 1;
    for (int i = 0; i < c->n_element; i++) n += mlo_is_block(&c->element[i]);
    return n;
}

/* The name of a kernel in manifest and registers; the place of its wires below mlo_top. */
static const char *mlo_copy_name(mlo_emitter *e, int layer, const char *name) {
    return e->unrolled ? mlo_format(e->m, "layer_%d.%s", layer, name) : name;
}

/* What registers, loader and bench have room for. */
static int mlo_emit_copies(mlo_emitter *e) {
    int64_t n = e->c->scan.iterations, kernels = mlo_core_kernels(e->c);
    e->unrolled = mlo_opt(e->m, "unrolled") != NULL;
    if (e->unrolled && n * kernels > 240)
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "--unrolled makes %lld kernels of %lld iterations of %lld; there are counters for 240",
            (long long)(n * kernels), (long long)n, (long long)kernels);
    if (e->unrolled && mlo_core_resident_beats(e->c))
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "--unrolled with resident parameters; each copy has its own anyway: leave --memory "
            "out");
    if (e->unrolled && mlo_core_readers(e->c) > 1)
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "--unrolled with parameters in row blocks; it is for comparison with a loop: leave "
            "--memory out");
    if (!mlo_core_memories(e->c))
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "all parameters are in row blocks; the loader needs a kernel whose parameters are not: "
            "give one memory layer");
    e->layers = e->unrolled ? (int)n : 1;
    return 0;
}

/* How often loop and loader go round: unrolled, every iteration's parameters are a part of the one
 * round. */
static const char *mlo_emit_rounds(const mlo_emitter *e) {
    return e->unrolled ? "16'd1" : "iterations";
}

/* The wires of reader n's AXI port: with row blocks a part of what mlo_axi_share shares out, else
 * the top's own. */
static void mlo_emit_reader(mlo_emitter *e, int n) {
    if (mlo_core_readers(e->c) == 1) {
        mlo_line(e,
            "        .m_axi_arid(m_axi_arid), .m_axi_araddr(m_axi_araddr), "
            ".m_axi_arlen(m_axi_arlen), .m_axi_arsize(m_axi_arsize), "
            ".m_axi_arburst(m_axi_arburst),");
        mlo_line(e,
            "        .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(m_axi_arready), "
            ".m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(m_axi_rresp),");
        mlo_line(e,
            "        .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid), "
            ".m_axi_rready(m_axi_rready),");
        return;
    }
    mlo_line(e,
        "        .m_axi_arid(ar_id[%d]), .m_axi_araddr(ar_addr[%d:%d]), "
        ".m_axi_arlen(ar_len[%d:%d]), .m_axi_arsize(ar_size[%d:%d]), "
        ".m_axi_arburst(ar_burst[%d:%d]),",
        n, 64 * n + 63, 64 * n, 8 * n + 7, 8 * n, 3 * n + 2, 3 * n, 2 * n + 1, 2 * n);
    mlo_line(e,
        "        .m_axi_arvalid(ar_valid[%d]), .m_axi_arready(ar_ready[%d]), .m_axi_rid(1'b0), "
        ".m_axi_rdata(r_data), .m_axi_rresp(r_resp),",
        n, n);
    mlo_line(e,
        "        .m_axi_rlast(r_last), .m_axi_rvalid(r_valid[%d]), .m_axi_rready(r_ready[%d]),", n,
        n);
}

/* Readers share the memory: the loader, and one for each kernel in row blocks, whose part of the
 * image is behind the loader's. */
static void mlo_emit_share(mlo_emitter *e) {
    const mlo_core *c = e->c;
    const int n = mlo_core_readers(c), size = mlo_clog2(c->axi_bits / 8);
    if (n == 1) return;
    mlo_line(e,
        "\n    // ---- the memory, shared by the loader and a reader for each matrix in row "
        "blocks");
    mlo_line(e,
        "    wire [%d:0] ar_id, ar_valid, ar_ready, r_valid, r_ready, errors, idles;\n    wire "
        "[%d:0] ar_addr;\n    wire [%d:0] ar_len;\n    wire [%d:0] ar_size;\n    wire [%d:0] "
        "ar_burst;",
        n - 1, 64 * n - 1, 8 * n - 1, 3 * n - 1, 2 * n - 1);
    mlo_line(e,
        "    wire [%d:0] r_data;\n    wire [1:0] r_resp;\n    wire r_last;\n    assign bus_error = "
        "|errors;\n    assign loader_idle = &idles;",
        c->axi_bits - 1);
    mlo_line(e,
        "    reg [63:0] block_base;      // behind what the loader reads; settled long before it "
        "is used\n    always @(posedge clk) block_base <= base + {%d'd0, loop_beats, %d'd0};",
        16 - size, size);
    mlo_line(e, "    mlo_axi_share #(.PORTS(%d), .ADDR_WIDTH(64), .DATA_WIDTH(%d)) u_share (", n,
        c->axi_bits);
    mlo_line(e, "        .clk(clk), .rst(rst),");
    mlo_line(e,
        "        .s_araddr(ar_addr), .s_arlen(ar_len), .s_arsize(ar_size[2:0]), "
        ".s_arburst(ar_burst[1:0]), .s_arvalid(ar_valid), .s_arready(ar_ready),");
    mlo_line(e,
        "        .s_rdata(r_data), .s_rresp(r_resp), .s_rlast(r_last), .s_rvalid(r_valid), "
        ".s_rready(r_ready),");
    mlo_line(e,
        "        .m_axi_arid(m_axi_arid), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen), "
        ".m_axi_arsize(m_axi_arsize), .m_axi_arburst(m_axi_arburst),");
    mlo_line(e,
        "        .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(m_axi_arready), "
        ".m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(m_axi_rresp),");
    mlo_line(e,
        "        .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid), "
        ".m_axi_rready(m_axi_rready));");
    mlo_line(e, "    wire unused_share = &{1'b0, ar_id, ar_size, ar_burst};");
}

static void mlo_emit_registers(mlo_emitter *e) {
    const mlo_core *c = e->c;
    int kernels = e->layers * mlo_core_kernels(c);
    int ports = e->layers * mlo_core_memories(c);
    int readers = mlo_core_readers(c);
    int shared = readers > 1;
    mlo_line(e, "\n    // ---- registers");
    mlo_line(e,
        "    wire core_rst, enable, bus_error;\n    wire [%d:0] param_beat;\n    wire [63:0] "
        "base;\n    wire [15:0] iterations;\n    wire [7:0] frames;\n    wire [%d:0] stat;",
        readers - 1, 3 * kernels - 1);
    mlo_line(e,
        "    mlo_regs #(.KERNELS(%d), .ITERATIONS(1), .DEEPEST(%lld), .FRAMES(%d), .READERS(%d), "
        ".VERSION(32'h0001_0000)) u_regs (",
        kernels, (long long)mlo_core_deepest(c), c->frames, readers);
    mlo_line(e, "        .clk(clk), .rst(rst),");
    mlo_line(e,
        "        .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), "
        ".s_axil_awready(s_axil_awready), .s_axil_wdata(s_axil_wdata), "
        ".s_axil_wstrb(s_axil_wstrb),");
    mlo_line(e,
        "        .s_axil_wvalid(s_axil_wvalid), .s_axil_wready(s_axil_wready), "
        ".s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid), "
        ".s_axil_bready(s_axil_bready),");
    mlo_line(e,
        "        .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid), "
        ".s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), "
        ".s_axil_rresp(s_axil_rresp),");
    mlo_line(e, "        .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready),");
    mlo_line(e,
        "        .core_rst(core_rst), .enable(enable), .base(base), .iterations(iterations), "
        ".frames(frames),");
    mlo_line(e,
        "        .in_beat(s_axis_tvalid && s_axis_tready), .in_last(s_axis_tlast), "
        ".out_last(m_axis_tvalid && m_axis_tready && m_axis_tlast),");
    mlo_line(e, "        .param_beat(param_beat), .bus_error(bus_error), .stat(stat));");
    mlo_line(e,
        "\n    // ---- parameters: every iteration reads the memories below in this order, one "
        "after the other%s",
        mlo_core_resident_beats(c) ? "; those of RESIDENT in the first round only" : "");
    mlo_printf(&e->t, "    localparam [%d:0] BEATS = {", 32 * ports - 1);
    int n = 0;
    for (int layer = e->layers; layer--;)
        for (int i = c->n_element; i--;)
            for (int k = mlo_loaded_memories(&c->element[i]); k--;)
                mlo_printf(&e->t, "%s32'd%lld", n++ ? ", " : "",
                    (long long)mlo_memory_beats(&c->element[i].unit.memory[k], c->axi_bits));
    mlo_line(e, "};");
    mlo_printf(&e->t, "    localparam [%d:0] RESIDENT = %d'b", ports - 1, ports);
    for (int layer = e->layers; layer--;)
        for (int i = c->n_element; i--;)
            for (int k = mlo_loaded_memories(&c->element[i]); k--;)
                mlo_puts(&e->t, mlo_is_resident(&c->element[i]) ? "1" : "0");
    mlo_line(e,
        ";\n    wire [%d:0] p_tdata;\n    wire [%d:0] p_tvalid, p_tready;\n    wire p_tlast, "
        "loader_idle;\n    wire [47:0] loop_beats;",
        c->axi_bits - 1, ports - 1);
    mlo_line(e,
        "    mlo_loader #(.ADDR_WIDTH(64), .DATA_WIDTH(%d), .PORTS(%d), .BEATS(BEATS), "
        ".RESIDENT(RESIDENT)) u_loader (",
        c->axi_bits, ports);
    mlo_line(e,
        "        .clk(clk), .rst(rst), .flush(core_rst), .enable(enable), .base(base), "
        ".iterations(%s), .beat(%s), .error(%s), .idle(%s), .total(loop_beats),",
        mlo_emit_rounds(e), shared ? "param_beat[0]" : "param_beat",
        shared ? "errors[0]" : "bus_error", shared ? "idles[0]" : "loader_idle");
    mlo_emit_reader(e, 0);
    mlo_line(e,
        "        .m_axis_tdata(p_tdata), .m_axis_tlast(p_tlast), .m_axis_tvalid(p_tvalid), "
        ".m_axis_tready(p_tready));");
    mlo_line(e, "    wire unused = &{1'b0, loader_idle%s%s};", shared ? "" : ", loop_beats",
        e->unrolled ? ", iterations" : "");
}

static void mlo_emit_feedback(mlo_emitter *e, int w) {
    long long depth = (long long)(e->c->feedback * (e->c->channels / e->c->lanes));
    if (e->unrolled) {
        mlo_line(e, "    assign {fed_tuser, fed_tdata, fed_tvalid, feed_tready} = %d'd0;", w + 5);
        mlo_line(
            e, "    wire unused_feed = &{1'b0, feed_tuser, feed_tdata, feed_tvalid, fed_tready};");
        return;
    }
    mlo_line(e, "    wire [%d:0] feed_level;", mlo_clog2(depth + 1) - 1);
    mlo_line(e, "    mlo_fifo #(.WIDTH(%d), .DEPTH(%lld)) u_feedback (        // %lld tokens",
        w + 3, depth, (long long)e->c->feedback);
    mlo_line(e,
        "        .clk(clk), .rst(core_rst), .s_tdata({feed_tuser, feed_tdata}), "
        ".s_tvalid(feed_tvalid), .s_tready(feed_tready),");
    mlo_line(e,
        "        .m_tdata({fed_tuser, fed_tdata}), .m_tvalid(fed_tvalid), .m_tready(fed_tready), "
        ".level(feed_level));");
    mlo_line(e, "    wire unused_level = &{1'b0, feed_level};");
}

static void mlo_emit_loop(mlo_emitter *e) {
    const mlo_core *c = e->c;
    int w = c->lanes * c->bits;
    mlo_line(e,
        e->unrolled ? "\n    // ---- the doors; nothing goes round, mlo_loop marks the first token"
                    : "\n    // ---- the loop: iteration 0 comes from outside, the last one "
                      "leaves, the rest goes round");
    static const char *const buses[] = { "entry", "body", "result", "leaving", "feed", "fed" };
    for (size_t i = 0; i < sizeof buses / sizeof *buses; i++) mlo_emit_wires(e, buses[i], w);
    if (!c->masked) mlo_line(e, "    wire s1_axis_tready;");
    mlo_line(e,
        "    mlo_entry #(.C(%lld), .LANES(%d), .BITS(%d), .MASK(%d)) u_entry (\n        .clk(clk), "
        ".rst(core_rst),",
        (long long)c->channels, c->lanes, c->bits, c->masked);
    mlo_line(e,
        "        .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), "
        ".s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast),");
    mlo_line(e,
        c->masked ? "        .s1_axis_tdata(s1_axis_tdata), .s1_axis_tvalid(s1_axis_tvalid), "
                    ".s1_axis_tready(s1_axis_tready), .s1_axis_tlast(s1_axis_tlast),"
                  : "        .s1_axis_tdata(8'd0), .s1_axis_tvalid(1'b0), "
                    ".s1_axis_tready(s1_axis_tready), .s1_axis_tlast(1'b0),");
    mlo_emit_bus(e, "m_axis", "entry", ");");
    if (!c->masked) mlo_line(e, "    wire unused_mask = &{1'b0, s1_axis_tready};");
    mlo_line(e,
        "    mlo_loop #(.WIDTH(%d), .BEATS(%lld)) u_loop (\n        .clk(clk), .rst(core_rst), "
        ".iterations(%s), .frames(frames),",
        w, (long long)(c->channels / c->lanes), mlo_emit_rounds(e));
    mlo_emit_bus(e, "s_ext", "entry", ",");
    mlo_emit_bus(e, "m_body", "body", ",");
    mlo_emit_bus(e, "s_body", "result", ",");
    mlo_emit_bus(e, "m_fb", "feed", ",");
    mlo_emit_bus(e, "s_fb", "fed", ",");
    mlo_emit_bus(e, "m_ext", "leaving", ");");
    mlo_emit_feedback(e, w);
    mlo_line(e,
        "    mlo_exit #(.C(%lld), .LANES(%d), .BITS(%d)) u_exit (\n        .clk(clk), "
        ".rst(core_rst),",
        (long long)c->channels, c->lanes, c->bits);
    mlo_emit_bus(e, "s_axis", "leaving", ",");
    mlo_line(e,
        "        .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), "
        ".m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast));");
}

/* The bus an element (or the loop) puts its tokens on. */
static const char *mlo_source_bus(mlo *m, const mlo_core *c, int from, int port) {
    if (from == MLO_OUTSIDE) return "body";
    return c->element[from].kernel ? c->element[from].name
                                   : mlo_format(m, "%s_%d", c->element[from].name, port);
}
/* Edge k's bus at its consumer: behind fork, FIFO and width converter, whichever it has. */
static const char *mlo_edge_bus(mlo *m, const mlo_core *c, int k) {
    const mlo_edge *g = &c->edge[k];
    int readers = 0;
    for (int i = 0; i < c->n_edge; i++)
        readers += c->edge[i].from == g->from && c->edge[i].from_port == g->from_port;
    if (readers == 1 && !g->fifo && g->lanes_from == g->lanes_to && g->to != MLO_OUTSIDE)
        return mlo_source_bus(m, c, g->from, g->from_port);
    if (g->to == MLO_OUTSIDE) return "result";
    return mlo_format(m, "%s_in%d", c->element[g->to].name, g->to_port);
}

/* Fork, where several read. Its outputs are named <source>_f0, _f1, ... */
static void mlo_emit_fork(mlo_emitter *e, int from, int port, const char *bus, int width, int n) {
    (void)from;
    (void)port;
    mlo_line(e, "    wire [%d:0] %s_fork_tdata;\n    wire [%d:0] %s_fork_tvalid, %s_fork_tready;",
        width + 2, bus, n - 1, bus, bus);
    mlo_line(e, "    mlo_fork #(.WIDTH(%d), .N(%d)) u_%s_fork (", width + 3, n, bus);
    mlo_line(e,
        "        .clk(clk), .rst(core_rst), .s_tdata({%s_tuser, %s_tdata}), .s_tvalid(%s_tvalid), "
        ".s_tready(%s_tready),",
        bus, bus, bus, bus);
    mlo_line(e,
        "        .m_tdata(%s_fork_tdata), .m_tvalid(%s_fork_tvalid), .m_tready(%s_fork_tready));",
        bus, bus, bus);
    for (int i = 0; i < n; i++) {
        const char *out = mlo_format(e->m, "%s_f%d", bus, i);
        mlo_emit_wires(e, out, width);
        mlo_line(e, "    assign {%s_tuser, %s_tdata} = %s_fork_tdata;", out, out, bus);
        mlo_line(e,
            "    assign %s_tvalid = %s_fork_tvalid[%d];\n    assign %s_fork_tready[%d] = "
            "%s_tready;",
            out, bus, i, bus, i, out);
    }
}

/* One edge, from bus `from` on: FIFO, width converter, or plain wires, ending on the consumer's bus. */
static void mlo_emit_edge(mlo_emitter *e, int k, const char *from) {
    const mlo_edge *g = &e->c->edge[k];
    const char *to = mlo_edge_bus(e->m, e->c, k);
    int w = g->lanes_from * g->bits, convert = g->lanes_from != g->lanes_to;
    if (to == from || mlo_eq(to, from)) return;
    if (g->to != MLO_OUTSIDE) mlo_emit_wires(e, to, g->lanes_to * g->bits);
    if (g->fifo) {
        const char *out = convert ? mlo_format(e->m, "%s_q", to) : to;
        long long depth = (long long)(g->fifo * (g->channels / g->lanes_from));
        if (convert) mlo_emit_wires(e, out, w);
        mlo_line(e, "    wire [%d:0] %s_level;", mlo_clog2(depth + 1) - 1, to);
        mlo_line(e, "    mlo_fifo #(.WIDTH(%d), .DEPTH(%lld)) u_%s_fifo (        // %lld tokens",
            w + 3, depth, to, (long long)g->fifo);
        mlo_line(e,
            "        .clk(clk), .rst(core_rst), .s_tdata({%s_tuser, %s_tdata}), "
            ".s_tvalid(%s_tvalid), .s_tready(%s_tready),",
            from, from, from, from);
        mlo_line(e,
            "        .m_tdata({%s_tuser, %s_tdata}), .m_tvalid(%s_tvalid), .m_tready(%s_tready), "
            ".level(%s_level));",
            out, out, out, out, to);
        mlo_line(e, "    wire %s_unused = &{1'b0, %s_level};", to, to);
        from = out;
    }
    if (convert) {
        mlo_line(e,
            "    mlo_width #(.BITS(%d), .IN(%d), .OUT(%d)) u_%s_width (\n        .clk(clk), "
            ".rst(core_rst),",
            g->bits, g->lanes_from, g->lanes_to, to);
        mlo_emit_bus(e, "s_axis", from, ",");
        mlo_emit_bus(e, "m_axis", to, ");");
    } else if (!g->fifo) {
        mlo_line(e, "    assign %s_tdata = %s_tdata;\n    assign %s_tuser = %s_tuser;", to, from,
            to, from);
        mlo_line(e, "    assign %s_tvalid = %s_tvalid;\n    assign %s_tready = %s_tready;", to,
            from, from, to);
    }
}

/* Everything behind one output: fork, then each reader's edge. */
static void mlo_emit_fanout(mlo_emitter *e, int from, int port) {
    const mlo_core *c = e->c;
    int readers[MLO_CORE_MOST], n = 0;
    for (int k = 0; k < c->n_edge && n < MLO_CORE_MOST; k++)
        if (c->edge[k].from == from && c->edge[k].from_port == port) readers[n++] = k;
    const char *bus = mlo_source_bus(e->m, c, from, port);
    if (n > 1)
        mlo_emit_fork(
            e, from, port, bus, c->edge[readers[0]].lanes_from * c->edge[readers[0]].bits, n);
    for (int i = 0; i < n; i++)
        mlo_emit_edge(e, readers[i], n > 1 ? mlo_format(e->m, "%s_f%d", bus, i) : bus);
}

static const char *mlo_input_bus(mlo_emitter *e, int element, int port) {
    for (int k = 0; k < e->c->n_edge; k++)
        if (e->c->edge[k].to == element && e->c->edge[k].to_port == port)
            return mlo_edge_bus(e->m, e->c, k);
    return "";
}

/* What brings a kernel its row blocks, for every tile that it asks for. */
static void mlo_emit_refill(mlo_emitter *e, int i) {
    const mlo_core *c = e->c;
    const mlo_element *el = &c->element[i];
    const int n = el->unit.n_memory;
    int reader = 1;
    int64_t offset = 0;
    for (int k = 0; k < i; k++)
        if (mlo_is_block(&c->element[k])) {
            reader++;
            offset += mlo_unit_beats(&c->element[k].unit, c->axi_bits);
        }
    mlo_line(e,
        "    wire %s_tile_valid, %s_tile_next, %s_tile_ready;\n    wire [%d:0] %s_p_tdata;\n    "
        "wire [%d:0] %s_p_tvalid, %s_p_tready;",
        el->name, el->name, el->name, c->axi_bits - 1, el->name, n - 1, el->name, el->name);
    mlo_printf(&e->t, "    mlo_refill #(.ADDR_WIDTH(64), .DATA_WIDTH(%d), .PORTS(%d), .BEATS({",
        c->axi_bits, n);
    for (int k = n; k--;)
        mlo_printf(&e->t, "32'd%lld%s",
            (long long)mlo_memory_beats(&el->unit.memory[k], c->axi_bits), k ? ", " : "})");
    mlo_line(e, ", .BLOCKS(%lld), .OFFSET(48'd%lld), .STRIDE(48'd%lld)) u_%s_refill (",
        (long long)el->unit.blocks, (long long)offset, (long long)mlo_core_block_beats(c),
        el->name);
    mlo_line(e,
        "        .clk(clk), .rst(rst), .flush(core_rst), .base(block_base), "
        ".iterations(iterations), .error(errors[%d]), .idle(idles[%d]),",
        reader, reader);
    mlo_line(e,
        "        .tile_valid(%s_tile_valid), .tile_next(%s_tile_next), .tile_ready(%s_tile_ready),",
        el->name, el->name, el->name);
    mlo_emit_reader(e, reader);
    mlo_line(e,
        "        .m_axis_tdata(%s_p_tdata), .m_axis_tvalid(%s_p_tvalid), "
        ".m_axis_tready(%s_p_tready));",
        el->name, el->name, el->name);
    mlo_line(
        e, "    assign param_beat[%d] = |(%s_p_tvalid & %s_p_tready);", reader, el->name, el->name);
}

static void mlo_emit_kernel(mlo_emitter *e, int i, int *memory, int *number) {
    const mlo_element *el = &e->c->element[i];
    const mlo_unit *u = &el->unit;
    mlo_line(e,
        "\n    // %s: %lld -> %lld channels, a token every %lld cycles (which layer's part it is: "
        "see manifest.json)",
        el->name, (long long)u->in[0].channels, (long long)u->out.channels, (long long)u->interval);
    mlo_emit_wires(e, el->name, u->out.lanes * u->out.bits);
    if (u->idle)
        mlo_line(e, "    wire %s_idle;\n    wire unused_%s = &{1'b0, %s_idle};", el->name, el->name,
            el->name);
    if (mlo_is_block(el)) mlo_emit_refill(e, i);
    mlo_printf(&e->t, "    %s #(", u->module);
    for (int k = 0; k < u->n_param; k++)
        mlo_printf(&e->t, ".%s(%lld), ", u->param[k].name, (long long)u->param[k].value);
    mlo_line(e,
        ".AXI_WIDTH(%d), .RESIDENT(%lld)) u_%s (\n        .clk(clk), .rst(core_rst), "
        ".params_last(p_tlast), .stat(stat[%d:%d]),",
        e->c->axi_bits, (long long)(mlo_is_resident(el) ? e->c->scan.iterations : 0), el->name,
        3 * *number + 2, 3 * *number);
    for (int k = 0; k < u->n_in; k++) mlo_emit_bus(e, u->in[k].port, mlo_input_bus(e, i, k), ",");
    for (int k = 0; k < u->n_memory; k++) {
        const char *from = mlo_is_block(el) ? mlo_format(e->m, "%s_", el->name) : "";
        const int at = mlo_is_block(el) ? k : (*memory)++;
        mlo_line(e,
            "        .%s_tdata(%sp_tdata), .%s_tvalid(%sp_tvalid[%d]), .%s_tready(%sp_tready[%d]),",
            u->memory[k].port, from, u->memory[k].port, from, at, u->memory[k].port, from, at);
    }
    if (mlo_is_block(el))
        mlo_line(e,
            "        .tile_valid(%s_tile_valid), .tile_next(%s_tile_next), "
            ".tile_ready(%s_tile_ready),",
            el->name, el->name, el->name);
    if (u->idle)
        mlo_line(e, "        .%s_tdata({%d{1'b0}}), .%s_tvalid(1'b0), .%s_tready(%s_idle),",
            u->idle, e->c->axi_bits, u->idle, u->idle, el->name);
    mlo_emit_bus(e, u->out.port, el->name, ");");
    ++*number;
    mlo_emit_fanout(e, i, 0);
}

static void mlo_emit_split(mlo_emitter *e, int i) {
    const mlo_element *el = &e->c->element[i];
    int64_t part[3] = { 0 };
    int bits = el->unit.out.bits, lanes = el->unit.out.lanes;
    for (size_t k = 0; k < el->node->n_output && k < 3; k++) part[k] = mlo_last_dim(&el->site.out);
    mlo_line(e, "");
    for (int k = 0; k < 3; k++)
        mlo_emit_wires(e, mlo_format(e->m, "%s_%d", el->name, k), lanes * bits);
    mlo_line(e,
        "    mlo_split #(.BITS(%d), .LANES(%d), .C0(%lld), .C1(%lld), .C2(%lld)) u_%s (\n        "
        ".clk(clk), .rst(core_rst),",
        bits, lanes, (long long)part[0], (long long)part[1], (long long)part[2], el->name);
    mlo_emit_bus(e, "s_axis", mlo_input_bus(e, i, 0), ",");
    for (int k = 0; k < 3; k++)
        mlo_emit_bus(e, mlo_format(e->m, "m%d_axis", k), mlo_format(e->m, "%s_%d", el->name, k),
            k == 2 ? ");" : ",");
    for (int k = 0; k < 3; k++) mlo_emit_fanout(e, i, k);
}

/* The layer, from bus `body` to bus `result`. */
static void mlo_emit_body(mlo_emitter *e) {
    int memory = 0, number = 0;
    mlo_emit_fanout(e, MLO_OUTSIDE, 0);
    for (int i = 0; i < e->c->n_element; i++) {
        if (e->c->element[i].kernel)
            mlo_emit_kernel(e, i, &memory, &number);
        else
            mlo_emit_split(e, i);
    }
}

static void mlo_emit_head(mlo_emitter *e) {
    mlo_line(e,
        "// Made by mlo %s from shapes, widths and folding; structure only, the logic is in the "
        "modules beside this file.",
        MLO_VERSION);
}

/* Unrolled: the layer as a module, and the chain of its copies. */
static void mlo_emit_chain(mlo_emitter *e) {
    const mlo_core *c = e->c;
    int kernels = mlo_core_kernels(c), memories = mlo_core_memories(c);
    mlo_line(e, "\n    // ---- %d layers, one behind the other", e->layers);
    for (int l = 0; l < e->layers; l++) {
        const char *to = l + 1 < e->layers ? mlo_format(e->m, "result_%d", l) : "result";
        const char *from = l ? mlo_format(e->m, "result_%d", l - 1) : "body";
        if (l + 1 < e->layers) mlo_emit_wires(e, to, c->lanes * c->bits);
        mlo_line(e,
            "    mlo_layer layer_%d (\n        .clk(clk), .core_rst(core_rst), .stat(stat[%d:%d]),",
            l, 3 * kernels * (l + 1) - 1, 3 * kernels * l);
        mlo_line(e,
            "        .p_tdata(p_tdata), .p_tlast(p_tlast), .p_tvalid(p_tvalid[%d:%d]), "
            ".p_tready(p_tready[%d:%d]),",
            memories * (l + 1) - 1, memories * l, memories * (l + 1) - 1, memories * l);
        mlo_emit_bus(e, "body", from, ",");
        mlo_emit_bus(e, "result", to, ");");
    }
}
static int mlo_emit_layer(mlo_emitter *e) {
    const mlo_core *c = e->c;
    int w = c->lanes * c->bits, memories = mlo_core_memories(c);
    mlo_emit_head(e);
    mlo_line(e,
        "// One layer, for a core that is not rolled: each copy has parameter memories of its "
        "own.\n`default_nettype none\nmodule mlo_layer (");
    mlo_line(e,
        "    input  wire         clk,\n    input  wire         core_rst,\n    output wire [%d:0] "
        "stat,",
        3 * mlo_core_kernels(c) - 1);
    mlo_line(e,
        "    input  wire [%d:0] p_tdata,\n    input  wire         p_tlast,\n    input  wire [%d:0] "
        "p_tvalid,\n    output wire [%d:0] p_tready,",
        c->axi_bits - 1, memories - 1, memories - 1);
    mlo_line(e,
        "    input  wire [%d:0] body_tdata,\n    input  wire [2:0] body_tuser,\n    input  wire    "
        "     body_tvalid,\n    output wire         body_tready,",
        w - 1);
    mlo_line(e,
        "    output wire [%d:0] result_tdata,\n    output wire [2:0] result_tuser,\n    output "
        "wire         result_tvalid,\n    input  wire         result_tready\n);",
        w - 1);
    mlo_emit_body(e);
    mlo_line(e, "endmodule\n`default_nettype wire");
    return mlo_file_text(e, "rtl/mlo_layer.v");
}

static int mlo_emit_top(mlo_emitter *e) {
    const mlo_core *c = e->c;
    mlo_emit_head(e);
    mlo_line(e,
        "// %s of hardware; frames of up to %lld tokens of %lld channels; up to %d frames in "
        "flight; %lld multipliers;",
        e->unrolled ? mlo_format(e->m, "%d layers", e->layers) : "One layer", (long long)c->tokens,
        (long long)c->channels, c->frames, (long long)(e->layers * mlo_core_multipliers(c)));
    mlo_line(e, "// a token every %lld cycles; %lld parameter beats of %d bits per iteration.",
        (long long)mlo_core_interval(c), (long long)mlo_core_layer_beats(c), c->axi_bits);
    if (mlo_core_resident_beats(c))
        mlo_line(e,
            "// Parameters of %lld beats per iteration are resident: they are read once, and there "
            "is room for %lld iterations.",
            (long long)mlo_core_resident_beats(c), (long long)mlo_core_deepest(c));
    mlo_line(e, "`default_nettype none");
    mlo_emit_top_ports(e);
    mlo_emit_registers(e);
    mlo_emit_share(e);
    mlo_emit_loop(e);
    if (e->unrolled)
        mlo_emit_chain(e);
    else {
        mlo_line(e, "\n    // ---- the layer");
        mlo_emit_body(e);
    }
    mlo_line(e, "endmodule\n`default_nettype wire");
    if (mlo_file_text(e, "rtl/mlo_top.v")) return mlo_failed(e->m);
    return e->unrolled ? mlo_emit_layer(e) : 0;
}
