// SPDX-License-Identifier: MIT
// mlo_vector: two input vectors: one is read, in any order and as often as needed, while the next one is stored
//
// Contract   s_axis: DEPTH beats per vector; the sideband is taken with them. full: there is a vector to read, `user` is
//            its sideband. `data` is its word `addr` the cycle after `en`, and stays while en is low. `done` ends it
//            (it may come with the last `en`); only while full.
// Throughput stores one beat and reads one word per cycle; a vector that takes DEPTH cycles to read and one that takes
//            DEPTH cycles to store follow each other without a gap.
// Latency    full rises the cycle after the last beat was taken; read: 1 cycle.
// Stall      s_axis_tready (a register) is low while both vectors are stored and not done.
// Legal      WIDTH >= 1, DEPTH >= 1.
`default_nettype none

module mlo_vector #(
    parameter WIDTH = 8,            // bits of a beat
    parameter DEPTH = 4,            // beats of a vector
    // derived, do not set: bits of addr
    parameter AW    = (DEPTH > 1) ? $clog2(DEPTH) : 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire [2:0]       s_axis_tuser,
    output wire             full,
    output wire [2:0]       user,
    input  wire [AW-1:0]    addr,
    input  wire             en,
    output reg  [WIDTH-1:0] data,
    input  wire             done
);
    localparam MA = $clog2(2 * DEPTH);
    localparam [AW-1:0] LAST = DEPTH[AW-1:0] - 1'b1;

    generate
        if (WIDTH < 1) mlo_error_WIDTH_must_be_at_least_1 u_width ();
        if (DEPTH < 1) mlo_error_DEPTH_must_be_at_least_1 u_depth ();
    endgenerate

    (* no_rw_check *)    // never read where it is written in the same cycle
    reg  [WIDTH-1:0] mem [0:2*DEPTH-1];
    reg  [AW-1:0]    load;                          // where the next beat goes
    reg              load_half, read_half;
    reg  [2:0]       user_0, user_1;                // sideband of the vector in each half
    reg  [1:0]       count;                         // vectors stored and not done: 0..2

    wire          take      = s_axis_tvalid && s_axis_tready;
    wire          take_last = take && load == LAST;
    // the half is the lowest address bit: no adder, and exactly 2*DEPTH words whatever DEPTH is
    wire [AW:0]   waddr = {load, load_half};
    wire [AW:0]   raddr = {addr, read_half};
    wire          unused = &{1'b0, waddr, raddr};
    assign s_axis_tready = !count[1];
    assign full          = count != 2'd0;
    assign user          = read_half ? user_1 : user_0;

    always @(posedge clk) begin
        if (take) begin
            mem[waddr[MA-1:0]] <= s_axis_tdata;
            if (load_half) user_1 <= s_axis_tuser;
            else           user_0 <= s_axis_tuser;
        end
        if (en) data <= mem[raddr[MA-1:0]];
    end
    always @(posedge clk) begin
        if (take)      load      <= take_last ? {AW{1'b0}} : load + 1'b1;
        if (take_last) load_half <= !load_half;
        if (done)      read_half <= !read_half;
        if (take_last != done) count <= done ? count - 2'd1 : count + 2'd1;
        if (rst) begin
            load      <= {AW{1'b0}};
            load_half <= 1'b0;
            read_half <= 1'b0;
            count     <= 2'd0;
        end
    end

`ifdef FORMAL
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);
    // The solver picks one half and one word of it; what is read there must be what was stored there last.
    (* anyconst *) wire          f_half;
    (* anyconst *) wire [AW-1:0] f_addr;
    reg              f_have;                        // the half holds the word, of a vector not done
    reg  [WIDTH-1:0] f_word, f_expect;
    reg  [2:0]       f_user, f_constant;
    reg              f_read = 1'b0;                 // the last read was of that word
    wire [AW:0]      f_where = {f_addr, f_half};
    always @(posedge clk) begin
        if (take && load_half == f_half && load == f_addr) begin
            f_word <= s_axis_tdata;
            f_user <= s_axis_tuser;
            f_have <= 1'b1;
        end
        if (done && read_half == f_half) f_have <= 1'b0;
        if (take && load == {AW{1'b0}}) f_constant <= s_axis_tuser;
        if (en) begin
            f_read   <= full && read_half == f_half && addr == f_addr;
            f_expect <= f_word;
        end
        if (rst) {f_have, f_read} <= 2'b00;
    end
    always @(*) begin
        assume (f_addr <= LAST && addr <= LAST);
        if (!full) assume (!done);
        if (load != {AW{1'b0}}) assume (s_axis_tuser == f_constant);    // as every stream here has it
        if (f_past) begin
            assert (count <= 2'd2 && load <= LAST);
            assert (load_half == (read_half ^ count[0]));
            if (count[1]) assert (load == {AW{1'b0}});
            assert (f_have == ((load_half == f_half && !count[1]) ? load > f_addr
                                                                  : count[1] || (full && read_half == f_half)));
            if (f_have) assert (mem[f_where[MA-1:0]] == f_word);
            if (f_have) assert ((f_half ? user_1 : user_0) == f_user);
            if (load != {AW{1'b0}} && load_half == f_half) assert ((f_half ? user_1 : user_0) == f_constant);
            if (f_have && load_half == f_half && count != 2'd2) assert (f_user == f_constant);
            if (f_read) assert (data == f_expect);
        end
    end
    always @(posedge clk) begin
        cover (f_past && !rst && count == 2'd2 && done);
        cover (f_past && !rst && count == 2'd1 && done && take_last);
    end
`endif
endmodule

`default_nettype wire
