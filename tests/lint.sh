#!/bin/sh
# SPDX-License-Identifier: MIT
# lint.sh [MODULE ...]: every verilog/*.v (or these) as top in Icarus -Wall, Verilator -Wall and Yosys.
#
# At its default parameters and, in Icarus and Verilator, at every parameter set of tests/formal/grid.d.
# Prints a line per check, before it what the tool had to say, if anything; exit 1 if there was any failure.
# mlo_sim_*.v are simulation models: Yosys is not asked about them.
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../verilog" || exit 2
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT
failures=0
checks=0
floor=415       # checks of all modules, at least

# check WHAT COMMAND...: passes if it exits 0 and prints nothing
check() {
    what=$1
    shift
    checks=$((checks + 1))
    if ! "$@" >"$log" 2>&1 || [ -s "$log" ]; then
        sed 's/^/    /' "$log" | head -12
        echo "FAIL $what: see above"
        failures=$((failures + 1))
    else
        echo "ok $what"
    fi
}

# tools MODULE PARAM=VALUE...: the two simulators
tools() {
    top=$1
    shift
    overrides=
    generics=
    for p in "$@"; do
        overrides="$overrides -P$top.$p"
        generics="$generics -G$p"
    done
    # shellcheck disable=SC2086
    check "icarus $top $*" iverilog -g2005 -Wall -t null -y . -s "$top" $overrides "$top.v"
    # shellcheck disable=SC2086
    check "verilator $top $*" verilator --lint-only -Wall -y . --top-module "$top" $generics "$top.v"
}

if [ $# -gt 0 ]; then
    floor=0
    modules=
    for m in "$@"; do modules="$modules mlo_${m#mlo_}"; done
else
    modules=$(ls mlo_*.v | sed 's/\.v$//')
fi

for m in $modules; do
    tools "$m"
    case $m in
    mlo_sim_*) ;;
    *) check "yosys $m" yosys -q -p "read_verilog $m.v; hierarchy -check -libdir . -top $m; proc; check -assert" ;;
    esac
    # the same line may serve several proofs: depths, flags and proof-only parameters (F_*) do not matter here
    sets=$(cat "$here"/formal/grid.d/*.txt 2>/dev/null | awk -v m="$m" '$1 == m { s = ""; for (i = 2; i <= NF; i++) if ($i ~ /=/ && $i !~ /^F_/) s = s " " $i; if (s != "") print s }' | sort -u)
    [ -z "$sets" ] && continue
    while read -r line; do
        # shellcheck disable=SC2086
        tools "$m" $line
    done <<END
$sets
END
done
[ "$floor" -eq 0 ] || echo "floor $floor"
if [ "$checks" -lt "$floor" ]; then
    echo "FAIL lint.sh: it made $checks checks; there are $floor at least"
    failures=$((failures + 1))
fi
echo "lint: $checks checks, $failures failed"
[ "$failures" -eq 0 ]
