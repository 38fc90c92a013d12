// SPDX-License-Identifier: MIT
// mlo_isqrt: floor(sqrt(w)) of one number at a time, one bit per cycle
//
// Contract    m_tdata = floor(sqrt(s_tdata)).
// Throughput  one number per RBITS + 2 cycles when the result is taken at once.
// Latency     s_tvalid && s_tready in cycle t: m_tvalid from cycle t + RBITS + 1.
// Stall       holds the result until m_tready; s_tready only when idle.
// Legal       RBITS >= 2.
`default_nettype none

module mlo_isqrt #(
    parameter RBITS = 8             // bits of the root; the number has twice as many
) (
    input  wire               clk,
    input  wire               rst,
    input  wire [2*RBITS-1:0] s_tdata,
    input  wire               s_tvalid,
    output wire               s_tready,
    output wire [RBITS-1:0]   m_tdata,
    output wire               m_tvalid,
    input  wire               m_tready
);
    generate
        if (RBITS < 2) mlo_error_RBITS_must_be_at_least_2 u_rbits ();
    endgenerate

    localparam [1:0] IDLE = 2'd0, ROOT = 2'd1, DONE = 2'd2;
    localparam CBITS = $clog2(RBITS);
    localparam [31:0]      LAST_32 = RBITS - 1;
    localparam [CBITS-1:0] LAST    = LAST_32[CBITS-1:0], ONE = 1;

    reg  [1:0]         state;
    reg  [CBITS-1:0]   left;                        // steps after this one
    reg  [2*RBITS-1:0] w;                           // digits that are yet to come, at the top
    reg  [RBITS-1:0]   root;
    reg  [RBITS:0]     rem;                         // of the digits so far: they are root^2 + rem

    // A step tries 4 rem + the next digit of base 4 against 4 root + 1.
    wire [RBITS+2:0] minuend    = {rem, w[2*RBITS-1:2*RBITS-2]};
    wire [RBITS+3:0] difference = {1'b0, minuend} - {2'b00, root, 2'b01};
    wire             fits       = !difference[RBITS+3];

    always @(posedge clk) begin
        left <= left - ONE;
        case (state)
            IDLE: if (s_tvalid) begin
                w     <= s_tdata;
                root  <= {RBITS{1'b0}};
                rem   <= {(RBITS + 1){1'b0}};
                left  <= LAST;
                state <= ROOT;
            end
            ROOT: begin
                w    <= w << 2;
                root <= {root[RBITS-2:0], fits};
                rem  <= fits ? difference[RBITS:0] : minuend[RBITS:0];
                if (left == {CBITS{1'b0}}) state <= DONE;
            end
            default: if (m_tready) state <= IDLE;
        endcase
        if (rst) state <= IDLE;
    end

    assign s_tready = state == IDLE;
    assign m_tvalid = state == DONE;
    assign m_tdata  = root;

    wire unused = &{1'b0, difference[RBITS+2:RBITS+1], minuend[RBITS+2:RBITS+1]};

`ifdef FORMAL
    // Root and remainder of the digits so far, in every reachable state; at the end of all.
    localparam WBITS = 2 * RBITS;
    localparam FB    = WBITS + 3;
    reg  f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    reg  [WBITS-1:0] f_w;
    reg  [7:0]       f_age;                                 // cycles since it was accepted
    always @(posedge clk) begin
        if (s_tvalid && s_tready) f_w <= s_tdata;
        f_age <= (s_tvalid && s_tready) ? 8'd1 : (f_age == 8'd255) ? f_age : f_age + 8'd1;
    end
    wire [7:0]       f_i      = (state == ROOT) ? RBITS - 1 - left : RBITS;     // digits done
    wire [FB-1:0]    f_one    = 1, f_root = root, f_square = f_root * f_root;
    wire [WBITS-1:0] f_eaten  = f_w << 2 * f_i;
    always @* if (f_past_valid) begin
        assert (state != 2'd3);
        if (state == ROOT) begin
            assert (left < RBITS && f_age == RBITS - left);
            assert (w == f_eaten);
        end
        if (state != IDLE) begin
            assert (f_square + rem == f_w >> 2 * (RBITS - f_i));
            assert (rem <= 2 * f_root && f_root < (f_one << f_i));
        end
        if (m_tvalid) begin
            assert (f_age >= RBITS + 1);
            assert (f_square <= f_w && (f_root + 1'b1) * (f_root + 1'b1) > f_w);
        end
    end
    always @(posedge clk) if (f_past_valid && !$past(rst)) begin
        if ($past(m_tvalid && !m_tready)) assert (m_tvalid && $stable(m_tdata));
        if (m_tvalid && !$past(m_tvalid)) assert (f_age == RBITS + 1);
        cover ($past(m_tvalid && !m_tready) && m_tready && m_tdata[0] && rem != 0);
    end
`endif
endmodule

`default_nettype wire
