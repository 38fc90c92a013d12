# A Vivado project of the core: vivado -mode batch -source vivado.tcl [-tclargs PART]
set part [expr {$argc > 0 ? [lindex $argv 0] : "xczu7ev-ffvc1156-2-e"}]
create_project -force mlo vivado -part $part
add_files [glob rtl/*.v]
add_files -fileset sim_1 [glob tb/*.v]
set_property top mlo_top [current_fileset]
set_property top mlo_tb [get_filesets sim_1]
update_compile_order -fileset sources_1
synth_design -top mlo_top -part $part -mode out_of_context
create_clock -period 4.0 [get_ports clk]
report_utilization -hierarchical -file utilization.txt
report_timing_summary -file timing.txt
