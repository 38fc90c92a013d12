#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prove the stream contract of whole kernels by induction: every offer stands until it is taken; a token out for each token
in, in their order, with its sideband, in as many beats as it must have; parameter memories swapped only when they may be.
Likewise of the modules at the top's edge: entry and exit (each beat's words too), the loader with its reader and router
(AXI4's read channels, and to each port its beats), the registers (AXI4-Lite, and what reads give).

    contract.py [NAME ...]        all, or only these: requant, mvu ..

What is claimed is written in contract/rules.v, for any kernel. contract/mlo_NAME.v says which streams a kernel has and where
the tokens inside it are, oldest first: with that the claim is inductive. `given`, `wanted` and `reach` are shorthands for
streams (below); `inner` declares a register of the kernel that is looked at; `uses` takes in what two contracts share. The kernels are taken as they are, but for
what only computes numbers, and parameter memories and queues, of which just the contract is kept (contract/abstract.v): each
of those has a proof of its own. Of mlo_mvu_tiled's parts too just the contract is kept (contract/parts.v): it is proved here of
each (for mlo_tile and mlo_untile the same rules, contract/tiles.v, once claimed and once assumed). The bodies of kernels are read without their own `ifdef FORMAL.

The engine is the SAT solver in Yosys (temporal induction), for reachability and mutants the bounded model checker of its
ABC: seconds, where z3 takes minutes. One line per proof or mutant; exit 1 if one is not as it must be. What proved.txt holds
is not proved again each time: see proved.py."""
import os
import re
import subprocess
import proved
from proved import HERE, VERILOG
STEPS = 3       # of the induction; the base case has as many
DEEP = 80       # cycles within which mutants fail and goals are reached
DEEPER = {"mlo_layernorm": 120}         # two tokens of one beat, 43 cycles apart
TIMEOUT = 900

PROOFS = """
mlo_exit C=1 LANES=1 BITS=2
mlo_exit C=6 LANES=2 BITS=9
mlo_entry C=1 LANES=1 BITS=2
mlo_entry C=6 LANES=2 BITS=9
mlo_entry C=1 LANES=1 BITS=2 MASK=1
mlo_entry C=3 LANES=1 BITS=2 MASK=1
mlo_regs KERNELS=2 FRAMES=3 ITERATIONS=12
mlo_regs KERNELS=2 FRAMES=255 ITERATIONS=1 DEEPEST=40
mlo_loader ADDR_WIDTH=13 DATA_WIDTH=32 FIFO_BEATS=4 MAX_BURST=4 PORTS=2 BEATS=64'h0000000100000002
mlo_loader ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=1 PORTS=2 BEATS=64'h0000000100000001 RESIDENT=2'h1
mlo_loader ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=3 BEATS=96'h000000010000000200000001 RESIDENT=3'h5
mlo_loader ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=1 BEATS=32'h2 RESIDENT=1'h1
mlo_refill ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000001 BLOCKS=2 OFFSET=3 STRIDE=5
mlo_refill ADDR_WIDTH=13 DATA_WIDTH=32 FIFO_BEATS=4 MAX_BURST=4 PORTS=1 BEATS=32'h1 BLOCKS=3 OFFSET=0 STRIDE=3
mlo_refill ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=3 MAX_BURST=2 PORTS=3 BEATS=96'h000000010000000200000001 BLOCKS=1 OFFSET=1 STRIDE=9
mlo_axi_share PORTS=1 ADDR_WIDTH=2 DATA_WIDTH=2 DEPTH=2
mlo_axi_share PORTS=2 ADDR_WIDTH=2 DATA_WIDTH=2 DEPTH=3
mlo_axi_share PORTS=5 ADDR_WIDTH=2 DATA_WIDTH=2 DEPTH=4
mlo_requant C=2 PE=1 XBITS=2 YBITS=2
mlo_requant C=6 PE=2 XBITS=2 YBITS=2
mlo_requant C=3 PE=1 XBITS=2 YBITS=2 TABLE=1 TBITS=2
mlo_rotary C=2 D=2 T=2 PE=2 XBITS=2 YBITS=2
mlo_rotary C=8 D=4 T=3 PE=2 XBITS=2 YBITS=2
mlo_rotary C=12 D=4 T=2 PE=4 XBITS=2 YBITS=2
mlo_add C=1 PE=1 ABITS=2 BBITS=2 YBITS=2
mlo_add C=3 PE=1 ABITS=2 BBITS=2 YBITS=2
mlo_mul C=1 PE=1 ABITS=2 BBITS=2 YBITS=2
mlo_mul C=3 PE=1 ABITS=2 BBITS=2 YBITS=2
mlo_mvu K=1 N=1 PE=1 SIMD=1 XBITS=2 WBITS=2 ABITS=5 YBITS=2
mlo_mvu K=2 N=2 PE=1 SIMD=1 XBITS=2 WBITS=2 ABITS=5 YBITS=2
mlo_mvu K=2 N=4 PE=1 SIMD=1 XBITS=2 WBITS=2 ABITS=5 YBITS=2
mlo_mvu K=1 N=4 PE=1 SIMD=1 XBITS=2 WBITS=2 ABITS=5 YBITS=2
mlo_mvu K=1 N=4 PE=1 SIMD=1 XBITS=2 WBITS=2 ABITS=5 YBITS=2 TABLE=1 TBITS=2
mlo_mvu K=4 N=6 PE=2 SIMD=2 XBITS=2 WBITS=2 ABITS=6 YBITS=2
mlo_mvu K=3 N=2 PE=1 SIMD=3 XBITS=2 WBITS=2 ABITS=6 YBITS=2 TABLE=1 TBITS=2
mlo_tile WIDTH=6 BEATS=2 TILE=2 BLOCKS=2
mlo_tile WIDTH=6 BEATS=1 TILE=2 BLOCKS=2
mlo_tile WIDTH=6 BEATS=1 TILE=1 BLOCKS=3
mlo_untile WIDTH=11 BEATS=4 TILE=2 BLOCKS=2
mlo_untile WIDTH=11 BEATS=4 TILE=1 BLOCKS=3
mlo_mvu_tiled K=2 N=8 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=2 BLOCKS=2
mlo_mvu_tiled K=1 N=8 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=2 BLOCKS=2
mlo_mvu_tiled K=1 N=12 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=1 BLOCKS=3 TABLE=1
mlo_layernorm C=1 PE=1 XBITS=2 YBITS=2
mlo_layernorm C=6 PE=2 XBITS=2 YBITS=2 CENTER=0
mlo_layernorm C=4 PE=1 XBITS=2 YBITS=2 CENTER=0 GROUPS=2
mlo_layernorm C=6 PE=1 XBITS=2 YBITS=2 CENTER=0 GROUPS=3 OWN=1
mlo_attention H=1 D=1 T=2 PE=1 SIMD=1 XBITS=2 YBITS=2 STEP=18
mlo_attention H=1 D=1 T=5 PE=2 SIMD=1 XBITS=2 YBITS=2 STEP=20
mlo_attention H=2 D=1 T=2 PE=2 SIMD=1 XBITS=2 YBITS=2 STEP=19
mlo_attention H=1 D=2 T=2 PE=1 SIMD=1 XBITS=2 YBITS=2 STEP=18
mlo_attention H=1 D=1 T=2 PE=1 SIMD=1 XBITS=2 YBITS=2 STEP=18 PROB=1
mlo_attention H=1 D=1 T=3 PE=2 SIMD=1 XBITS=2 YBITS=2 STEP=19 CAUSAL=1
mlo_attention H=2 D=1 T=2 PE=2 SIMD=1 XBITS=2 YBITS=2 STEP=19 KVH=1
mlo_attention H=1 D=1 T=5 PE=2 SIMD=1 XBITS=2 YBITS=2 STEP=20 PROB=1 ROUND=1
"""

# what is claimed must fail
MUTANTS = [
    ("mlo_exit C=2 LANES=1 BITS=2", "s_axis_tuser[1] && (beat == FINAL)", "s_axis_tuser[1]"),
    ("mlo_exit C=2 LANES=1 BITS=2", "s_axis_tuser[1] && (beat == FINAL)", "s_axis_tuser[2] && (beat == FINAL)"),
    ("mlo_exit C=2 LANES=1 BITS=2", "{(PAD-BITS){data[i*BITS+BITS-1]}}", "{(PAD-BITS){1'b0}}"),
    ("mlo_exit C=2 LANES=1 BITS=2", ".m_tready(m_axis_tready)", ".m_tready(m_axis_tready || beat == 0)"),
    ("mlo_exit C=2 LANES=1 BITS=2", ".s_tvalid(s_axis_tvalid)", ".s_tvalid(s_axis_tvalid && s_axis_tuser[2:1] != 1)"),
    ("mlo_entry C=2 LANES=1 BITS=2", ".s_tvalid(take && in_final), .s_tready(flag_room)", ".s_tvalid(take), .s_tready(flag_room)"),
    ("mlo_entry C=2 LANES=1 BITS=2", "assign packed_data[i*BITS +: BITS] = s_axis_tdata[i*PAD +: BITS];", "assign packed_data[i*BITS +: BITS] = s_axis_tdata[i*PAD+1 +: BITS];"),
    ("mlo_entry C=2 LANES=1 BITS=2", "data_valid && last_valid && key_valid;", "data_valid && key_valid;"),
    ("mlo_entry C=2 LANES=1 BITS=2", ".m_tready(give), .level(level_unused)", ".m_tready(out_room), .level(level_unused)"),
    ("mlo_entry C=2 LANES=1 BITS=2", "{key, last, 1'b0, data}", "{key, s_axis_tlast, 1'b0, data}"),
    ("mlo_entry C=2 LANES=1 BITS=2 MASK=1", "data_valid && last_valid && key_valid;", "data_valid && last_valid;"),
    ("mlo_entry C=2 LANES=1 BITS=2 MASK=1", "assign give_final = give && (out_beat == FINAL);", "assign give_final = give && (out_beat == 0);"),
    ("mlo_regs KERNELS=2 FRAMES=3 ITERATIONS=12 DEEPEST=40", "s_axil_wvalid && !s_axil_bvalid;", "s_axil_wvalid;"),
    ("mlo_regs KERNELS=2 FRAMES=3 ITERATIONS=12 DEEPEST=40", "if (s_axil_rready) s_axil_rvalid <= 1'b0;", "s_axil_rvalid <= 1'b0;"),
    ("mlo_regs KERNELS=2 FRAMES=3 ITERATIONS=12 DEEPEST=40", "assign s_axil_arready = !reading && !s_axil_rvalid;", "assign s_axil_arready = !reading;"),
    ("mlo_regs KERNELS=2 FRAMES=3 ITERATIONS=12 DEEPEST=40", "if (iterations_top > DEEPEST_V)", "if (iterations_top >= DEEPEST_V)"),
    ("mlo_regs KERNELS=2 FRAMES=3 ITERATIONS=12 DEEPEST=40", "data | (base[31:0] & ~mask);", "data;"),
    ("mlo_regs KERNELS=2 FRAMES=3 ITERATIONS=12 DEEPEST=40", "if (s_axil_wstrb[0]) enable <= data[0];", "enable <= data[0];"),
    ("mlo_regs KERNELS=2 FRAMES=3 ITERATIONS=12 DEEPEST=40", "{30'd0, bus_error, busy}", "{30'd0, busy, bus_error}"),
    ("mlo_loader ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000002", "{16'd0, SUM};", "{16'd0, SUM + 32'd1};"),
    ("mlo_loader ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000002", "assign cmd_beats = total;", "assign cmd_beats = total + 48'd1;"),
    ("mlo_loader ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000001 RESIDENT=2'h1", "if (keeps) run <= at_next;", "if (keeps) run <= at;"),
    ("mlo_loader ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000001 RESIDENT=2'h1", "later ? base + offset[ADDR_WIDTH-1:0] : base;", "base;"),
    ("mlo_loader ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000002", ".rst(rst || flush), .iterations", ".rst(rst), .iterations"),
    ("mlo_loader ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000002", ".flush(flush), .idle", ".flush(1'b0), .idle"),
    ("mlo_loader ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000002", "beat <= |(m_axis_tvalid & m_axis_tready);", "beat <= |m_axis_tvalid;"),
    ("mlo_refill ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000001 BLOCKS=1 OFFSET=3 STRIDE=5", "if (tile_next && begun) begin", "if (tile_next) begin"),
    ("mlo_refill ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000001 BLOCKS=1 OFFSET=3 STRIDE=5", "(iteration + 16'd1 >= iterations);", "(iteration >= iterations);"),
    ("mlo_refill ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000001 BLOCKS=1 OFFSET=3 STRIDE=5", "last ? OFFSET : offset + STRIDE;", "last ? 48'd0 : offset + STRIDE;"),
    ("mlo_refill ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000001 BLOCKS=1 OFFSET=3 STRIDE=5", "if (cmd_ready) waits <= 1'b0;", ""),
    ("mlo_refill ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000001 BLOCKS=1 OFFSET=3 STRIDE=5", "assign tile_ready = !waits;", "assign tile_ready = 1'b1;"),
    ("mlo_refill ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000001 BLOCKS=1 OFFSET=3 STRIDE=5", "if (rst || flush) begin", "if (rst) begin"),
    ("mlo_refill ADDR_WIDTH=12 DATA_WIDTH=32 FIFO_BEATS=2 MAX_BURST=2 PORTS=2 BEATS=64'h0000000100000001 BLOCKS=1 OFFSET=3 STRIDE=5", ".rst(rst || flush), .iterations", ".rst(rst), .iterations"),
    ("mlo_axi_share PORTS=3 ADDR_WIDTH=2 DATA_WIDTH=2 DEPTH=3", "if (m_axi_arready) m_axi_arvalid <= 1'b0;", "m_axi_arvalid <= 1'b0;"),
    ("mlo_axi_share PORTS=3 ADDR_WIDTH=2 DATA_WIDTH=2 DEPTH=3", "if (room) begin", "if (owners_ready) begin"),
    ("mlo_axi_share PORTS=3 ADDR_WIDTH=2 DATA_WIDTH=2 DEPTH=3", "owners_ready && (!m_axi_arvalid || m_axi_arready);", "!m_axi_arvalid || m_axi_arready;"),
    ("mlo_axi_share PORTS=3 ADDR_WIDTH=2 DATA_WIDTH=2 DEPTH=3", "from & (~from + ONE);", "from;"),
    ("mlo_axi_share PORTS=3 ADDR_WIDTH=2 DATA_WIDTH=2 DEPTH=3", "(first != {PORTS{1'b0}}) ? first : s_arvalid;", "s_arvalid;"),
    ("mlo_axi_share PORTS=3 ADDR_WIDTH=2 DATA_WIDTH=2 DEPTH=3", ".m_tready(receive && m_axi_rlast)", ".m_tready(receive)"),
    ("mlo_axi_share PORTS=3 ADDR_WIDTH=2 DATA_WIDTH=2 DEPTH=3", "owned && |(owner & s_rready);", "owned && |s_rready;"),
    ("mlo_requant C=2 PE=1 XBITS=2 YBITS=2", "assign en = q_ready || !v[6];", "assign en = 1'b1;"),
    ("mlo_requant C=2 PE=1 XBITS=2 YBITS=2", "assign s_axis_tready = go || !valid;", "assign s_axis_tready = en;"),
    ("mlo_requant C=2 PE=1 XBITS=2 YBITS=2", "v <= {v[5:0], go};", "v <= {v[5:0], valid && en};"),
    ("mlo_requant C=3 PE=1 XBITS=2 YBITS=2 TABLE=1 TBITS=2", "u  <= {u[17:0], user};", "u  <= {u[17:0], s_axis_tuser};"),
    ("mlo_rotary C=4 D=2 T=2 PE=2 XBITS=2 YBITS=2", "assign en = o_ready || !v[8];", "assign en = 1'b1;"),
    ("mlo_rotary C=4 D=2 T=2 PE=2 XBITS=2 YBITS=2", "assign s_axis_tready = go || !valid;", "assign s_axis_tready = en;"),
    ("mlo_rotary C=4 D=2 T=2 PE=2 XBITS=2 YBITS=2", "v <= {v[7:0], go};", "v <= {v[7:0], valid && en};"),
    ("mlo_rotary C=4 D=2 T=2 PE=2 XBITS=2 YBITS=2", "u  <= {u[23:0], user};", "u  <= {u[23:0], s_axis_tuser};"),
    ("mlo_add C=2 PE=1 ABITS=2 BBITS=2 YBITS=2", "user4 <= user3;", "user4 <= user2;"),
    ("mlo_add C=2 PE=1 ABITS=2 BBITS=2 YBITS=2", "assign en = out_ready || !valid[5];", "assign en = out_ready || !valid[4];"),
    ("mlo_mul C=2 PE=1 ABITS=2 BBITS=2 YBITS=2", "{user[20:18], y7}", "{user[17:15], y7}"),
    ("mlo_mul C=2 PE=1 ABITS=2 BBITS=2 YBITS=2", "assign en = out_ready || !valid[7];", "assign en = out_ready || !valid[6];"),
    ("mlo_mvu K=2 N=2 PE=1 SIMD=1 XBITS=2 WBITS=2 ABITS=5 YBITS=2", "issue && run_last && run_n == N_LAST;", "issue && run_last;"),
    ("mlo_mvu K=2 N=2 PE=1 SIMD=1 XBITS=2 WBITS=2 ABITS=5 YBITS=2", "assign en_b = q_ready || !q_valid;", "assign en_b = 1'b1;"),
    ("mlo_mvu K=1 N=1 PE=1 SIMD=1 XBITS=2 WBITS=2 ABITS=5 YBITS=2", "assign en_a = !sum_last || take;", "assign en_a = 1'b1;"),
    ("mlo_mvu K=2 N=2 PE=1 SIMD=1 XBITS=2 WBITS=2 ABITS=5 YBITS=2", "take ? sum_user : t_user};", "take ? x_user : t_user};"),
    ("mlo_tile WIDTH=6 BEATS=1 TILE=2 BLOCKS=2", ".s_tdata(s_axis_tuser[0])", ".s_tdata(s_axis_tuser[1])"),
    ("mlo_tile WIDTH=6 BEATS=1 TILE=2 BLOCKS=2", "!count[1] && (w_begun || ask_ready);", "w_begun || ask_ready;"),
    ("mlo_tile WIDTH=6 BEATS=1 TILE=2 BLOCKS=2", "r_word = {r_addr, r_half};", "r_word = {r_addr, w_half};"),
    ("mlo_untile WIDTH=11 BEATS=4 TILE=2 BLOCKS=2", "w_addr + (w_end ? STEP : ONE);", "w_addr + ONE;"),
    ("mlo_untile WIDTH=11 BEATS=4 TILE=2 BLOCKS=2", "if (take && pass_0) ends", "if (take) ends"),
    ("mlo_untile WIDTH=11 BEATS=4 TILE=2 BLOCKS=2", "assign s_axis_tready = !count[1];", "assign s_axis_tready = 1'b1;"),
    ("mlo_mvu_tiled K=2 N=8 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=2 BLOCKS=2", ".BEATS(ROWS/PE), .TILE(TILE)", ".BEATS(N/PE), .TILE(TILE)"),
    ("mlo_mvu_tiled K=2 N=8 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=2 BLOCKS=2", ".BEATS(K/SIMD), .TILE(TILE)", ".BEATS(1), .TILE(TILE)"),
    ("mlo_mvu_tiled K=2 N=8 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=2 BLOCKS=2", ".TILE(TILE), .BLOCKS(BLOCKS)) u_tile", ".TILE(1), .BLOCKS(BLOCKS)) u_tile"),
    ("mlo_mvu_tiled K=2 N=8 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=2 BLOCKS=2", ".TILE(TILE), .BLOCKS(BLOCKS)) u_untile", ".TILE(TILE), .BLOCKS(BLOCKS+1)) u_untile"),
    ("mlo_mvu_tiled K=2 N=8 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=2 BLOCKS=2", ".s_axis_tuser(s_axis_tuser),", ".s_axis_tuser({s_axis_tuser[2:1], 1'b0}),"),
    ("mlo_mvu_tiled K=2 N=8 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=2 BLOCKS=2", ".s_axis_tuser(y_user),", ".s_axis_tuser(3'd0),"),
    ("mlo_mvu_tiled K=2 N=8 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=2 BLOCKS=2", ".s_axis_tuser(y_user),", ".s_axis_tuser(x_user),"),
    ("mlo_mvu_tiled K=2 N=8 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=2 BLOCKS=2", ".m_axis_tready(y_ready)", ".m_axis_tready(1'b1)"),
    ("mlo_mvu_tiled K=2 N=8 PE=1 SIMD=1 XBITS=6 YBITS=11 TILE=2 BLOCKS=2", ".tile_valid(tile_valid), .tile_next(tile_next)", ".tile_valid(tile_next), .tile_next(tile_valid)"),
    ("mlo_layernorm C=1 PE=1 XBITS=2 YBITS=2", "r_user   <= v_user;", "r_user   <= s_axis_tuser;"),
    ("mlo_attention H=1 D=1 T=1 PE=1 SIMD=1 XBITS=2 YBITS=2 STEP=8", "sum_tdata[SUMB+16 +: ALONG];", "{q_user, sum_tdata[SUMB+16 +: 6]};"),
]

STREAM = """
    wire %(n)s_start, %(n)s_ending, %(n)s_take;
    wire [2:0] %(n)s_token;
    wire [((%(beats)s > 1) ? $clog2(%(beats)s) : 1)-1:0] %(n)s_beat;
    stream #(.GIVEN(%(given)d), .BEATS(%(beats)s), .DATA($bits(%(name)s_tdata))) u_%(n)s (
        .clk(clk), .rst(rst), .valid(%(name)s_tvalid), .ready(%(name)s_tready), .data(%(name)s_tdata), .user(%(name)s_tuser),
        .start(%(n)s_start), .ending(%(n)s_ending), .take(%(n)s_take), .beat(%(n)s_beat), .token(%(n)s_token));
"""
REACH = """
    // the very first token begins an iteration
    reg begun;
    always @(posedge clk) begun <= !rst && (begun || %(a)s_take);
    always @* if (!begun && %(s)s_tvalid) assume (%(s)s_tuser[0]);
    // not vacuous: tokens leave, marked ones among them, and both streams had to wait
    reg [1:0]  left;
    reg        waited, wait_in;
    wire [1:0] outs;
    always @(posedge clk) begin
        if (%(b)s_take && %(b)s_ending && left != %(tokens)s) left <= left + 1'b1;
        if (%(m)s_tvalid && !%(m)s_tready) waited <= 1'b1;
        if (%(s)s_tvalid && !%(s)s_tready) wait_in <= 1'b1;
        if (rst) {left, waited, wait_in} <= 0;
    end
    goal u_goal (.reached(past && left == %(tokens)s && waited && wait_in && outs != 0));
"""


def read(path):
    with open(path) as f:
        return f.read()


def source(module):
    return read(os.path.join(VERILOG, module + ".v"))


def contract(name):
    return os.path.join(HERE, "contract", name + ".v")


def modules(name):
    return re.findall(r"^module (\w+)", read(contract(name)), re.M)


def left_open(module):
    """the files in contract/ of what is left open below `module`"""
    return ["abstract"] if module in modules("parts") else ["abstract", "parts"]


def submodules(module):
    """all modules below `module` that are not left open, itself excluded"""
    seen, todo, abstract = [], [module], [m for name in left_open(module) for m in modules(name)]
    while todo:
        text = re.sub(r"//.*", "", source(todo.pop()))
        for name in re.findall(r"^\s*(mlo_\w+)\s+(?:#\s*\(|\w+\s*\()", text, re.M):
            if not name.startswith("mlo_error_") and name != module and name not in seen + abstract:
                seen.append(name)
                todo.append(name)
    return seen


def expand(text, params):
    """uses FILE;   given STREAM BEATS;   wanted STREAM BEATS;   reach IN OUT TOKENS;   inner [RANGE] dut.NAME;   inner [RANGE] NEW = dut.NAME;
    memory COUNT [RANGE] NEW = dut.NAME;"""
    def value(expression):
        return eval(expression, {k: int(v) for k, v in params if v.isdigit()})

    def short(name):
        return name.replace("_axis", "")

    def statement(m):
        word, rest = m.group(1), m.group(2).strip()
        if word in ("given", "wanted"):
            name, beats = rest.split(None, 1)
            return STREAM % dict(n=short(name), name=name, beats=beats, given=word == "given")
        if word == "reach":
            s, m, tokens = rest.split()
            return REACH % dict(s=s, m=m, a=short(s), b=short(m), tokens=value(tokens))
        if word == "memory":                     # registers by now (-mem2reg)
            count, width, new, old = re.match(r"(\S+) \[(.*):0\] (\w+) = ([\w.]+)$", rest).groups()
            old = ["\\%s[%d] " % (old, i) for i in range(value(count))]
            lines = ["    (* hierconn *) wire [%s:0] %s;" % (width, x) for x in old]
            return "\n".join(lines + ["    wire [%d*(%s+1)-1:0] %s = {%s};" % (len(old), width, new, ", ".join(reversed(old)))])
        if "=" in rest:                         # another name for what has brackets in its own
            new, old = rest.split(" = ")
            width = new.rpartition(" ")[0]
            return "    (* hierconn *) wire %s \\%s ;\n    wire %s = \\%s ;" % (width, old, new, old)
        return "    (* hierconn *) wire %s;" % rest         # Yosys connects it to the register when it flattens

    text = re.sub(r"^uses (\w+);", lambda m: read(contract(m.group(1))), text, flags=re.M)
    text = re.sub(r"^ *(given|wanted|reach|inner|memory) ([^;]*);", statement, text, flags=re.M)
    return re.sub(r"(?<!\\)\b(?:dut|u_rules)\.[\w.]+", lambda m: "\\" + m.group(0) + " ", text)


def wrapper(module, params):
    """a module with the kernel's parameters and ports, the kernel in it, and its contract"""
    text = re.sub(r"`ifdef FORMAL.*?`endif", "", source(module), flags=re.S)
    head = re.search(r"^module %s\b.*?^\);" % module, text, re.M | re.S).group(0)
    names = re.findall(r"^\s*(?:,\s*)?parameter\s+(?:\[[^\]]*\]\s*)?(\w+)", head, re.M)
    head = re.sub(r"^module \w+", "module contract", head)
    head = re.sub(r"\boutput(\s+)reg\b", r"output\1wire", head)
    return """%s
    %s #(%s) dut (.*);
    reg past = 1'b0;                            // registers may hold anything before the reset: it stands for any reset
    always @(posedge clk) past <= 1'b1;
    always @* assume (rst == !past);
%s
endmodule
""" % (head, module, ", ".join(".%s(%s)" % (n, n) for n in names), expand(read(contract(module)), params))


# the modules of rules.v whose assertions stay in a proof
ALL = ["contract", "*stream*", "*order*", "*changes*", "*watch*", "*beats*", "*rules*", "*claim*", "*mlo_*"]
INDUCTION = ["select -list t:$assert", "opt -full", "dffunmap", "sat -prove-asserts -set-assumes -tempinduct -maxsteps %d" % STEPS]
AIG = ["opt -full", "techmap", "opt -fast", "dffunmap", "abc -g AND -fast", "opt_clean", "write_aiger -zinit -I -B model.aig"]
BMC = "read_aiger model.aig; fold; strash; orpos; scorr; bmc3 -F %d"


def files(module, params, text):
    """what Yosys reads"""
    below = [proved.File(m + ".v", source(m), False) for m in submodules(module)]
    rules = [proved.File(x + ".v", read(contract(x))) for x in ["rules", "tiles"] + left_open(module)]
    return [proved.File("contract.v", wrapper(module, params)), proved.File(module + ".v", text, False)] + below + rules


def script(module, params, keep, end):
    """what Yosys does; keep: the modules of rules.v whose assertions stay"""
    registers = "-mem2reg " if re.search("^memory ", read(contract(module)), re.M) else ""
    lines = ["read_verilog -defer -sv " + registers + " ".join(m + ".v" for m in [module] + submodules(module))]
    lines += ["read_verilog -formal -sv " + " ".join(x + ".v" for x in ["rules", "tiles"] + left_open(module))]
    lines += ["read_verilog -defer -formal -sv contract.v"]     # its default parameters, which may be large, are not elaborated
    lines += ["hierarchy -top contract " + " ".join("-chparam %s %s" % (k, v) for k, v in params), "proc"]
    lines += ["select *"] + ["select -del " + m for m in keep] + ["chformal -assert -remove", "select -clear"]
    lines += ["prep -flatten -top contract -nordff", "setattr -unset keep", "delete -output", "opt_clean", "async2sync", "memory_map"]
    return "; ".join(lines + end)


def run(command, directory):
    """its status (0: well) and what it says"""
    try:
        p = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return 1, "timeout"
    return p.returncode, p.stdout


def yosys(script, directory):
    """whether it went well; what it says"""
    status, out = run(["yosys", "-p", script], directory)
    lost = re.search(r".*(implicitly declared|used but has no driver).*", out)
    if lost or status:                          # a name that binds to nothing would make a claim about nothing
        return False, lost.group(0) if lost else out[-300:]
    return True, out


def induction(script, directory):
    well, out = yosys(script, directory)
    if well and "Induction step proven: SUCCESS!" in out:
        return True, "proved"
    return False, "refuted" if "model found for base case" in out else "\n".join(out.splitlines()[-4:])


def bounded(script, bmc, directory):
    well, out = yosys(script, directory)
    if not well:
        return False, out
    out = run(["yosys-abc", "-c", bmc], directory)[1]
    found = re.search(r"was asserted in frame (\d+)", out)
    return bool(found), "in cycle " + found.group(1) if found else "NOT found: " + out[-200:].strip()


def proof(name, job, keep, reach=False, old="", new=""):
    """of a line of PROOFS; reach: not that its assertions hold but that one does not. old: of a mutant"""
    module, params = job.split()[0], [x.split("=") for x in job.split()[1:]]
    text, wrong = source(module), ""
    if old:
        wrong = "" if text.count(old) == 1 else "text found %d times" % text.count(old)
        text = text.replace(old, new)
    asked, bmc = script(module, params, keep, AIG if reach else INDUCTION), BMC % DEEPER.get(module, DEEP)
    prove = lambda directory: bounded(asked, bmc, directory) if reach else induction(asked, directory)
    return proved.Proof(name, module, files(module, params, text), [asked, bmc] if reach else [asked], prove, wrong)


def proofs():
    for job in PROOFS.strip().splitlines():
        yield proof("contract of " + job, job, ALL)
        yield proof("reached in " + job, job, ["goal"], True)
    for job, old, new in MUTANTS:
        yield proof("mutant of %s: %s" % (job.split()[0], new), job, ["claim"], True, old, new)


if __name__ == "__main__":
    proved.main("contract", list(proofs()), proved.arguments(__doc__).parse_args(), floor=183)
