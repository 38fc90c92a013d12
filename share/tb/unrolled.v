    // what looks into the core is of a rolled one
    task trace_streams; begin end endtask
    task say_fifos; begin end endtask
    task say_waits; begin end endtask
