#!/bin/sh
# What Verilator's make calls a compiler through (OBJCACHE). Its programs run for seconds here: half of -O1's time to compile is not worth it.
# ccache, where it is installed, since Verilator's own library is the same in every build.
set -- "$@" -O1 -fno-tree-pre -fno-tree-fre -fno-tree-dominator-opts
if command -v ccache >/dev/null 2>&1; then exec ccache "$@"; fi
exec "$@"
