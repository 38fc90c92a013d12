// SPDX-License-Identifier: MIT
// The rules of a stream, for contract.py: what a sender promises, and that tokens keep their order
`default_nettype none

// claim: the contract. (All other assertions are there for the induction: mutants are judged without them.)
module claim (input wire holds);
    always @* assert (holds);
endmodule

// goal: what must be reachable, or the proof would be about nothing
module goal (input wire reached);
    always @* assert (!reached);
endmodule

// stream: an offer stands, unchanged, until it is taken; all beats of a token have one sideband. GIVEN = 1: that is
// assumed (of an input), else asserted. start: the beat on offer begins a token; take: it is taken.
module stream #(
    parameter GIVEN = 0,
    parameter BEATS = 1,            // of a token
    parameter DATA  = 1,            // bits
    parameter USER  = 3,
    parameter BW    = (BEATS > 1) ? $clog2(BEATS) : 1
) (
    input  wire            clk, rst,
    input  wire            valid, ready,
    input  wire [DATA-1:0] data,
    input  wire [USER-1:0] user,
    output wire            start, ending, take,
    output reg  [BW-1:0]   beat,            // of the token
    output reg  [USER-1:0] token            // its sideband
);
    reg                 past = 1'b0, held;
    reg [DATA+USER-1:0] offer;
    assign start = beat == 0;
    assign ending = beat == BEATS - 1;
    assign take  = valid && ready;
    always @(posedge clk) begin
        past  <= 1'b1;
        held  <= valid && !ready && !rst;
        offer <= {user, data};
        if (take && start) token <= user;
        if (take) beat <= ending ? 0 : beat + 1'b1;
        if (rst)  beat <= 0;
    end
    always @* if (past) assert (beat < BEATS);
    wire stands   = !held || (valid && offer == {user, data});
    wire one_user = !valid || start || user == token;
    generate
        if (GIVEN) begin : given
            always @* if (past) assume (stands && one_user);
        end else begin : wanted
            claim u_stands   (.holds(!past || stands));
            claim u_one_user (.holds(!past || one_user));
        end
    endgenerate
endmodule

// beats: which beat of a token of BEATS is next
module beats #(
    parameter BEATS = 1,
    parameter BW    = (BEATS > 1) ? $clog2(BEATS) : 1
) (
    input  wire          clk, rst, take,
    output reg  [BW-1:0] beat,
    output wire          ending
);
    reg past = 1'b0;
    assign ending = beat == BEATS - 1;
    always @(posedge clk) begin
        past <= 1'b1;
        if (take) beat <= ending ? 0 : beat + 1'b1;
        if (rst)  beat <= 0;
    end
    always @* if (past) assert (beat < BEATS);
endmodule

// order: the tokens that come out are those that went in, one for one, in their order, with their sidebands, in BEATS beats
// each (a prefix of them: nothing is said about when). Two neighbours of the input, any two, are marked by the solver with
// tuser[2], and their sidebands kept. So: what comes right after the first marked token is the second one; each comes
// once, with its sideband; and nothing comes ahead of the very first token if that is marked. As that holds for every two
// neighbours, it holds for the whole sequence, however long, and takes few registers.
// For the induction: `line` is what is inside, oldest first, the beat on offer included; an entry stands for `count` beats
// of one token (0: it is empty). Replaying the receiver's rules over it must lead to where the sender is.
module order #(
    parameter BEATS = 1,            // of a token, at the output
    parameter N     = 1,            // entries
    parameter BW    = (BEATS > 1) ? $clog2(BEATS) : 1,
    parameter CW    = $clog2(BEATS + 1)
) (
    input  wire           clk, rst,
    input  wire           in_take,          // a token goes in
    input  wire [2:0]     in_user,
    input  wire           out_valid, out_ready,
    input  wire [2:0]     out_user,
    input  wire [BW-1:0]  beat,             // of the token on offer, and its sideband once it has begun
    input  wire [2:0]     token,
    input  wire [N*CW-1:0] line_count,      // of the oldest entry lowest
    input  wire [3*N-1:0] line_user,
    input  wire [BW-1:0]  at_beat,          // beats of the youngest token that went in, if it has to go on
    input  wire [2:0]     at_user,          // its sideband
    output reg  [1:0]     outs              // marked tokens that began to leave
);
    reg          past = 1'b0;
    reg [1:0]    ins;                       // marked tokens that came in
    reg          plain;                     // one without a mark came in before them
    reg [1:0]    word0, word1;              // the rest of their sidebands
    function fits(input [1:0] marked, input [2:0] user);
        fits = marked == 0 ? (user[2] ? user[1:0] == word0 : plain) : marked == 1 ? user == {1'b1, word1} : !user[2];
    endfunction
    always @(posedge clk) begin
        past <= 1'b1;
        if (in_take && in_user[2]) begin
            ins <= ins + 1'b1;
            if (ins == 0) word0 <= in_user[1:0];
            else          word1 <= in_user[1:0];
        end
        if (in_take && !in_user[2] && ins == 0) plain <= 1'b1;
        if (out_valid && out_ready && beat == 0) outs <= outs + out_user[2];
        if (rst) {ins, outs, plain} <= 0;
    end

    claim u_order (.holds(!past || !out_valid || beat != 0 || (fits(outs, out_user) && (!out_user[2] || ins > outs))));

    reg          ok;
    reg [CW:0]   at;
    reg [2:0]    user;
    reg [1:0]    marked;
    integer      i;
    always @* begin
        ok     = 1'b1;
        at     = beat;
        user   = token;
        marked = outs;
        for (i = 0; i < N; i = i + 1)
            if (line_count[i*CW +: CW] != 0) begin
                if (at == 0) begin
                    user   = line_user[3*i +: 3];
                    ok     = ok && fits(marked, user);
                    marked = marked + user[2];
                end else
                    ok = ok && user == line_user[3*i +: 3];
                at = at + line_count[i*CW +: CW];
                ok = ok && at <= BEATS;
                if (at == BEATS) at = 0;
            end
        ok = ok && at == at_beat && (at == 0 || user == at_user) && marked == ins;
    end
    always @* if (past) begin
        if (in_take) assume (ins == 0 || in_user[2] == (ins == 1));
        assert (ok);
        assert (beat < BEATS && ins < 3);
    end
endmodule

// watch: the words that come out are those that went in, one for one, in their order. They are numbered, going in and coming
// out, modulo more than fit inside; the solver picks a number, any, and the word that came in with it is kept to be compared.
// For the induction: the line as in `order`, an entry with a word; those with the same word stand together, and the last of
// them alone has `ends`.
module watch #(
    parameter BITS = 1,             // of a word
    parameter N    = 1,             // entries
    parameter NW   = $clog2(N + 1)
) (
    input  wire              clk, rst,
    input  wire              in_take,           // a word goes in
    input  wire [BITS-1:0]   in_word,
    input  wire              out_valid, out_take,       // it is on offer; it has left
    input  wire [BITS-1:0]   out_word,
    input  wire [N-1:0]      line_valid, line_ends,     // of the oldest entry lowest
    input  wire [N*BITS-1:0] line_word
);
    (* anyconst *) wire [NW-1:0] picked;
    reg            past = 1'b0;
    reg [NW-1:0]   ins, outs;
    reg [BITS-1:0] word;
    always @(posedge clk) begin
        past <= 1'b1;
        if (in_take && ins == picked) word <= in_word;
        if (in_take)  ins  <= ins + 1'b1;
        if (out_take) outs <= outs + 1'b1;
        if (rst) {ins, outs} <= 0;
    end
    claim u_watch (.holds(!past || !out_valid || (ins != outs && (outs != picked || out_word == word))));

    reg          ok;
    reg [NW-1:0] at;
    integer      i;
    always @* begin
        {ok, at} = {1'b1, outs};
        for (i = 0; i < N; i = i + 1)
            if (line_valid[i]) begin
                ok = ok && (at != picked || line_word[i*BITS +: BITS] == word);
                at = at + line_ends[i];
            end
    end
    always @* if (past) assert (ok && at == ins);
endmodule

// changes: a pipeline carries changes of iteration to a parameter memory. Between two of them there is a beat, which does
// not pass the memory before its bank is there: so none comes while a bank is missing, as mlo_param assumes.
module changes #(
    parameter N = 1                 // places, the oldest lowest
) (
    input  wire         clk, rst,
    input  wire         used, ready,        // there was a change; the memory's bank is there
    input  wire [N-1:0] mark, beat,
    input  wire         door        // 1: the first beat after the youngest change has yet to enter the pipeline
);
    reg     past = 1'b0, ok, begun, open;
    integer i;
    always @(posedge clk) past <= 1'b1;
    always @* begin
        begun = used;
        open  = ready;
        ok    = 1'b1;
        for (i = 0; i < N; i = i + 1)
            if (mark[i]) begin
                ok    = ok && (open || !begun) && !beat[i];
                begun = 1'b1;
                open  = 1'b0;
            end else if (beat[i])
                {ok, open} = {ok && begun, 1'b1};
    end
    always @* if (past) assert (ok && (!begun || open || door));
endmodule

// dealt: the order in which a loader deals out beats: port after port, n iterations, a round; then later rounds without the
// ports of RESIDENT. s: a beat, as {of a later round, iteration, port, number}.
module dealt #(
    parameter PORTS = 1,
    parameter [32*PORTS-1:0] BEATS = 1,         // of a port, at most 8
    parameter [PORTS-1:0] RESIDENT = 0,
    parameter [8*PORTS+7:0] BEFORE = 0,         // beats of an iteration before each port, and of all
    parameter PB = (PORTS > 1) ? $clog2(PORTS) : 1,
    parameter SW = 6 + PB
) (
    input  wire [1:0]    n,
    input  wire [SW-1:0] s,
    output wire [7:0]    place,                 // its place in the image, in beats
    output wire [SW-1:0] next, slot             // the beat after it; the first of the port after it
);
    wire [2:0]    number = s[2:0];
    wire [PB-1:0] port   = s[3 +: PB];
    wire [1:0]    it     = s[3+PB +: 2];
    assign place = it * BEFORE[8*PORTS +: 8] + BEFORE[8*port +: 8] + number;
    assign next  = number + 4'd1 < BEATS[32*port +: 8] ? s + 1'b1 : slot;
    reg           found, round;
    reg  [PB-1:0] to, first;
    integer       q;
    wire          ends  = it + 3'd1 >= n;
    always @* begin
        {found, to, first} = 0;
        for (q = PORTS - 1; q >= 0; q = q - 1) begin
            if (!RESIDENT[q]) first = q;
            if (q > port && !(s[SW-1] && RESIDENT[q])) {found, to} = {1'b1, q[PB-1:0]};
        end
        round = s[SW-1] || (!found && ends);
        if (!found) to = round ? first : 0;
    end
    assign slot = {round, found ? it : ends ? 2'd0 : it + 2'd1, to, 3'd0};
endmodule
`default_nettype wire
