// Made by mlo @VERSION@ from shapes, widths and folding; structure only, the logic is in the modules beside this file.
// One layer, for a core that is not rolled: each copy has parameter memories of its own.
`default_nettype none
module mlo_layer (
    input  wire         clk,
    input  wire         core_rst,
    output wire [@STAT_MSB@:0] stat,
    input  wire [@AXI_MSB@:0] p_tdata,
    input  wire         p_tlast,
    input  wire [@PORTS_MSB@:0] p_tvalid,
    output wire [@PORTS_MSB@:0] p_tready,
    input  wire [@WIDTH_MSB@:0] body_tdata,
    input  wire [2:0]   body_tuser,
    input  wire         body_tvalid,
    output wire         body_tready,
    output wire [@WIDTH_MSB@:0] result_tdata,
    output wire [2:0]   result_tuser,
    output wire         result_tvalid,
    input  wire         result_tready
);
@BODY@
endmodule
`default_nettype wire
