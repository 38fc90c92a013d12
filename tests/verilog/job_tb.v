// SPDX-License-Identifier: MIT
// job_tb: mlo_job between stalling sources and sinks, before a model of a core: a frame leaves it some cycles after its last beat went in
//
// jobs.hex: {slot, start, tokens}; in.hex: {tlast, tdata}; mask.hex: {tlast, tdata}. All three come in two parts, the first `jobs`, `beats`
// and `masks` long: when nothing moves any more the module is reset, and the second part follows.
// plusargs: s_job s_in s_mask s_out s_key    percent of stalls    delay, spread: of the core, in cycles, at least and more    seed
// log.txt: cycle, what, two hexadecimal numbers. P a job is pushed, I a beat is taken, B a job begins (start, bank), M a beat goes on (tlast,
// tdata), K a mask beat does, L a frame leaves the core, E the end of a part (refused, mismatch).
`default_nettype none
module job_tb;

parameter CONTEXT = 16, SLOTS = 1, DEEPEST = 1, BEATS = 1, WIDTH = 8, DEPTH = 4, MASK = 0, GIVEN = 0;
localparam QUIET = 500;

reg     clk = 1'b0, rst = 1'b1, core_rst = 1'b1, second = 1'b0, bad = 1'b0;
integer cycle = 0, still = 0, seed, jobs, beats, masks, s_job, s_in, s_mask, s_out, s_key, delay, spread, file;
initial begin
    if (!$value$plusargs("seed=%d", seed))     seed = 1;
    if (!$value$plusargs("jobs=%d", jobs))     jobs = 0;
    if (!$value$plusargs("beats=%d", beats))   beats = 0;
    if (!$value$plusargs("masks=%d", masks))   masks = 0;
    if (!$value$plusargs("s_job=%d", s_job))   s_job = 0;
    if (!$value$plusargs("s_in=%d", s_in))     s_in = 0;
    if (!$value$plusargs("s_mask=%d", s_mask)) s_mask = 0;
    if (!$value$plusargs("s_out=%d", s_out))   s_out = 0;
    if (!$value$plusargs("s_key=%d", s_key))   s_key = 0;
    if (!$value$plusargs("delay=%d", delay))   delay = 5;
    if (!$value$plusargs("spread=%d", spread)) spread = 0;
    file = $fopen("log.txt", "w");
end
always #1 clk = !clk;

// ---- streams; the second part waits
wire [47:0]      job;
wire             job_valid, s_valid, s_ready, s1_valid, s1_ready, m_valid, m_ready, m_last, k_valid, k_ready, k_last, s_last, s1_last;
wire [WIDTH-1:0] s_data, m_data;
wire [7:0]       s1_data, k_data, room;
wire [31:0]      n_job, n_in, n_mask, n_out, n_key;
wire [1:0]       broken;
wire             job_open = second || n_job < jobs, in_open = second || n_in < beats, mask_open = second || n_mask < masks;
wire             push = job_valid && job_open && room != 8'd0;
tb_source #(.WIDTH(48), .FILE("jobs.hex")) u_jobs (.clk(clk), .rst(rst), .seed(seed), .stall(s_job),
    .tdata(job), .tvalid(job_valid), .tready(job_open && room != 8'd0), .beats(n_job));
tb_source #(.WIDTH(WIDTH + 1), .FILE("in.hex")) u_in (.clk(clk), .rst(rst), .seed(seed + 1), .stall(s_in),
    .tdata({s_last, s_data}), .tvalid(s_valid), .tready(in_open && s_ready), .beats(n_in));
tb_source #(.WIDTH(9), .FILE("mask.hex")) u_mask (.clk(clk), .rst(rst), .seed(seed + 2), .stall(s_mask),
    .tdata({s1_last, s1_data}), .tvalid(s1_valid), .tready(mask_open && s1_ready), .beats(n_mask));

reg         out_last;
wire        job_begin, refused, mismatch;
wire [15:0] job_start, job_bank;
mlo_job #(.CONTEXT(CONTEXT), .SLOTS(SLOTS), .DEEPEST(DEEPEST), .BEATS(BEATS), .WIDTH(WIDTH), .DEPTH(DEPTH), .MASK(MASK), .GIVEN(GIVEN)) dut (
    .clk(clk), .rst(core_rst),
    .push(push), .push_slot(job[47:40]), .push_start(job[39:16]), .push_tokens(job[15:0]), .room(room),
    .s_axis_tdata(s_data), .s_axis_tvalid(s_valid && in_open), .s_axis_tready(s_ready), .s_axis_tlast(s_last),
    .s1_axis_tdata(s1_data), .s1_axis_tvalid(s1_valid && mask_open), .s1_axis_tready(s1_ready), .s1_axis_tlast(s1_last),
    .m_axis_tdata(m_data), .m_axis_tvalid(m_valid), .m_axis_tready(m_ready), .m_axis_tlast(m_last),
    .m1_axis_tdata(k_data), .m1_axis_tvalid(k_valid), .m1_axis_tready(k_ready), .m1_axis_tlast(k_last),
    .out_last(out_last), .job_begin(job_begin), .job_start(job_start), .job_bank(job_bank), .refused(refused), .mismatch(mismatch));

tb_sink #(.WIDTH(WIDTH + 1), .FILE("out.hex")) u_out (.clk(clk), .rst(core_rst), .seed(seed + 3), .stall(s_out),
    .tdata({m_last, m_data}), .tvalid(m_valid), .tready(m_ready), .beats(n_out), .bad(broken[0]));
tb_sink #(.WIDTH(9), .FILE("key.hex")) u_key (.clk(clk), .rst(core_rst), .seed(seed + 4), .stall(s_key),
    .tdata({k_last, k_data}), .tvalid(k_valid), .tready(k_ready), .beats(n_key), .bad(broken[1]));

// ---- the core, and what it relies on: one frame at a time, and where it lies does not change
reg         inside;
reg  [31:0] leaves;
reg  [31:0] place;
always @(posedge clk) begin
    out_last <= 1'b0;
    if (leaves != 0) leaves <= leaves - 1;
    if (leaves == 1) out_last <= 1'b1;
    if (m_valid && m_ready && m_last) leaves <= delay + (spread == 0 ? 0 : $unsigned($random) % spread);
    if (job_begin) begin
        inside <= 1'b1;
        place  <= {job_start, job_bank};
        if (inside && !out_last) bad <= 1'b1;
    end else if (out_last) inside <= 1'b0;
    if (inside && !job_begin && place !== {job_start, job_bank}) bad <= 1'b1;
    if (m_valid && !inside) bad <= 1'b1;                // begun a cycle before the first beat is offered
    if (core_rst) {inside, leaves, out_last} <= 0;
end

wire moves = push || (s_valid && s_ready && in_open) || (s1_valid && s1_ready && mask_open) || job_begin || m_valid || k_valid || leaves != 0;
always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) {rst, core_rst} <= 2'b00;
    if (!core_rst) begin
        if (push)                       $fdisplay(file, "%0d P 0 0", cycle);
        if (s_valid && s_ready && in_open) $fdisplay(file, "%0d I %h %h", cycle, s_last, s_data);
        if (job_begin)                  $fdisplay(file, "%0d B %h %h", cycle, job_start, job_bank);
        if (m_valid && m_ready)         $fdisplay(file, "%0d M %h %h", cycle, m_last, m_data);
        if (k_valid && k_ready)         $fdisplay(file, "%0d K %h %h", cycle, k_last, k_data);
        if (out_last)                   $fdisplay(file, "%0d L 0 0", cycle);
        still <= moves ? 0 : still + 1;
        if (still == QUIET) begin
            $fdisplay(file, "%0d E %h %h", cycle, refused, mismatch);
            still    <= 0;
            core_rst <= 1'b1;
            if (second) begin
                $fclose(file);
                if (bad || broken != 2'b00) $display("FAIL contract: %b %b", bad, broken);
                else                        $display("PASS pushed=%0d", n_job);
                $finish;
            end
        end
    end else if (cycle > 3) {second, core_rst} <= 2'b10;
end

endmodule
`default_nettype wire
