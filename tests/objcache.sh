#!/bin/sh
# What Verilator's make calls a compiler through (OBJCACHE). Its programs run for seconds here: -Og without its dearest passes compiles them in two thirds
# of the time of -O1 without these, and they run as fast. ccache, where it is installed, since Verilator's own library is the same in every build.
set -- "$@" -Og -fno-tree-pre -fno-tree-fre -fno-tree-dominator-opts -fno-var-tracking -fno-exceptions
if command -v ccache >/dev/null 2>&1; then exec ccache "$@"; fi
exec "$@"
