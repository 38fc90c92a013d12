# The core in Vivado: vivado -mode batch -source vivado.tcl [-tclargs PART [WHAT]]
#   synth   out of context, with reports; this is what it does if nothing is said
#   ip      a component for the catalogue of other projects, ip/component.xml
#   zynq    the core beside the processor of a Zynq UltraScale+: registers, its memory, a DMA for each stream; a bitstream, and system.hwh for PYNQ
# (zynq leaves the processor's DDR as Vivado presets it for the part: for a board, set board_part of the project and apply its preset to `ps`)
set part [expr {$argc > 0 ? [lindex $argv 0] : "xczu7ev-ffvc1156-2-e"}]
set what [expr {$argc > 1 ? [lindex $argv 1] : "synth"}]
if {$what ni {synth ip zynq}} {error "vivado.tcl: there is no '$what'; say synth, ip or zynq"}

proc synth {part} {
    synth_design -top mlo_top -part $part -mode out_of_context
    create_clock -period 4.0 [get_ports clk]
    report_utilization -hierarchical -file utilization.txt
    report_timing_summary -file timing.txt
}

proc ip {part} {
    ipx::package_project -root_dir ip -vendor mlo -library core -taxonomy /UserIP -import_files -force
    set core [ipx::current_core]
    set_property display_name "A transformer layer, streamed" $core
    ipx::create_xgui_files $core
    ipx::update_checksums $core
    ipx::check_integrity $core
    ipx::save_core $core
}

proc cell {ip name args} {
    set made [create_bd_cell -type ip -vlnv [get_ipdefs xilinx.com:ip:$ip:*] $name]
    if {[llength $args]} {set_property -dict $args $made}
    return $made
}

# A way from master to slave, with what Vivado puts between them.
proc bus {master slave of} {
    apply_bd_automation -rule xilinx.com:bd_rule:axi4 -config [list Master $master Slave $slave Clk_master /ps/pl_clk0 Clk_slave /ps/pl_clk0 Clk_xbar /ps/pl_clk0] [get_bd_intf_pins $of]
}

proc clocked {clock reset} {
    connect_bd_net [get_bd_pins ps/pl_clk0] [get_bd_pins $clock]
    connect_bd_net [get_bd_pins reset/peripheral_aresetn] [get_bd_pins $reset]
}

# A stream of the core's has a DMA of its own, by a converter between their widths.
proc dma {stream in} {
    set bytes [expr {([get_property LEFT [get_bd_pins core/${stream}_tdata]] + 1) / 8}]
    cell axi_dma dma_$stream CONFIG.c_include_sg 0 CONFIG.c_sg_length_width 26 CONFIG.c_include_mm2s $in CONFIG.c_include_s2mm [expr {!$in}]
    cell axis_dwidth_converter width_$stream CONFIG.M_TDATA_NUM_BYTES [expr {$in ? $bytes : 4}]
    set ends [expr {$in ? [list dma_$stream/M_AXIS_MM2S core/$stream] : [list core/$stream dma_$stream/S_AXIS_S2MM]}]
    connect_bd_intf_net [get_bd_intf_pins [lindex $ends 0]] [get_bd_intf_pins width_$stream/S_AXIS]
    connect_bd_intf_net [get_bd_intf_pins width_$stream/M_AXIS] [get_bd_intf_pins [lindex $ends 1]]
    clocked width_$stream/aclk width_$stream/aresetn
    set port dma_$stream/[expr {$in ? "M_AXI_MM2S" : "M_AXI_S2MM"}]
    bus /$port /ps/S_AXI_HP0_FPD $port
    bus /ps/M_AXI_HPM0_FPD /dma_$stream/S_AXI_LITE dma_$stream/S_AXI_LITE
}

proc zynq {part} {
    create_bd_design system
    cell zynq_ultra_ps_e ps CONFIG.PSU__USE__M_AXI_GP0 1 CONFIG.PSU__USE__M_AXI_GP1 0 CONFIG.PSU__USE__S_AXI_GP2 1 CONFIG.PSU__USE__S_AXI_GP3 1 CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ 200
    cell proc_sys_reset reset
    connect_bd_net [get_bd_pins ps/pl_clk0] [get_bd_pins reset/slowest_sync_clk]
    connect_bd_net [get_bd_pins ps/pl_resetn0] [get_bd_pins reset/ext_reset_in]
    create_bd_cell -type module -reference mlo_top core
    connect_bd_net [get_bd_pins ps/pl_clk0] [get_bd_pins core/clk]
    connect_bd_net [get_bd_pins reset/peripheral_reset] [get_bd_pins core/rst]
    bus /ps/M_AXI_HPM0_FPD /core/s_axil core/s_axil
    foreach port {m_axi m_axi_kv} {
        if {[llength [get_bd_intf_pins -quiet core/$port]]} {bus /core/$port /ps/S_AXI_HP1_FPD core/$port}
    }
    foreach {stream in} {s_axis 1 s1_axis 1 s2_axis 1 s3_axis 1 m_axis 0} {
        if {[llength [get_bd_intf_pins -quiet core/$stream]]} {dma $stream $in}
    }
    assign_bd_address
    validate_bd_design
    save_bd_design
    add_files -norecurse [make_wrapper -files [get_files system.bd] -top]
    set_property top system_wrapper [current_fileset]
    launch_runs impl_1 -to_step write_bitstream
    wait_on_run impl_1
}

create_project -force mlo vivado -part $part
add_files [glob rtl/*.v]
add_files -fileset sim_1 [glob tb/*.v]
set_property top mlo_top [current_fileset]
set_property top mlo_tb [get_filesets sim_1]
update_compile_order -fileset sources_1
$what $part
