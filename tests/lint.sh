#!/bin/sh
# SPDX-License-Identifier: MIT
# lint.sh [style | MODULE ...]: the style of the C and of the Verilog; every verilog/*.v (or these) as top in Icarus -Wall, Verilator -Wall and Yosys.
#
# The C, what a formatter cannot hold: lines of 120 columns and one statement or struct member at most, functions of 60 statements, half of
# them 11 at most and 95 % 33 (style.awk); a kernel's name only in its own file; one min and one max; failures passed on by mlo_failed. A module has 250 lines of logic at most,
# and a header that says Contract, Throughput, Latency, Stall, Legal.
# (test_library breaks each of these rules in a copy of the tree, and asks that this says so.)
# At its default parameters and, in Icarus and Verilator, at every parameter set that tests/formal/claims proves it at.
# Prints a line per check, before it what the tool had to say, if anything; exit 1 if there was any failure.
# mlo_sim_*.v are simulation models: Yosys is not asked about them.
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../verilog" || exit 2
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT
failures=0
checks=0
floor=600       # checks of all modules, at least

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

only=
if [ "${1-}" = style ]; then
    only=style
    modules=
elif [ $# -gt 0 ]; then
    floor=0
    modules=
    for m in "$@"; do modules="$modules mlo_${m#mlo_}"; done
else
    modules=$(ls mlo_*.v | sed 's/\.v$//')
fi

# nothing FILES PATTERN [BUT]: no line that matches, comments and those that match BUT left out
nothing() { grep -nE "$2" $1 | grep -vE ':[0-9]+: *(/?\*|#)' | grep -vE "${3:-^$}"; true; }

style() {
    cd "$here/.." || exit 2
    sources=$(ls src/*.c src/*/*.c cli/*.c main.c)
    library=$(ls src/*.c src/*/*.c)
    # shellcheck disable=SC2086
    {
    check "C: lines and functions" awk -f tests/style.awk $sources
    check "C: half of the functions have 11 statements at most, 95 % 33" sh -c "awk -v counts=1 -f tests/style.awk $(echo $sources) | sort -n |
        awk '/^[0-9]+ / { s[++n] = \$1 } END { if (n < 2000 || s[int(n / 2)] > 11 || s[int(n * 0.95)] > 33) print n, s[int(n / 2)], s[int(n * 0.95)] }'"
    check "C: kernels are named in their own files" nothing "$(echo $library)" '"mlo\.[A-Z][A-Za-z]*"' '^src/(kernels|ops/deeploy)|/\*.*"mlo'
    check "C: metadata keys are spelled in one file" nothing "$(echo $library)" '"mlo\.[a-z_.%]+"' '^src/ground/keys.c|"mlo\.(h|core|shape1|axes0|index%d)"'
    check "C: flows are asked for their verbs, not for their names" nothing "$(echo $library)" 'MLO_FLOW_' '^src/(kernels/|core/(core|predict).c)'
    check "C: one min, one max" nothing "$(echo $library)" 'return a [<>] b [?] a : b;' '^src/ground/base.c'
    check "C: failures are passed on by mlo_failed" nothing "$(echo $library)" '\(int\)[a-z>-]*error\.code' '^src/ground/base.c'
    # shellcheck disable=SC2046
    check "Verilog: a module's header says Contract, Throughput, Latency, Stall, Legal" awk '
        FNR == 1 { said = ""; open = 1 }
        open && /^\/\/ / { said = said " " $2 }
        open && /^module/ {
            open = 0
            for (i = split("Contract Throughput Latency Stall Legal", word); i; i--)
                if (said !~ " " word[i]) print FILENAME ": its header has no line that begins with // " word[i]
        }' $(ls verilog/mlo_*.v | grep -v mlo_sim_)
    check "Verilog: a module has 250 lines of logic at most" awk '
        FNR == 1 { if (n > 250) print file ": " n; n = 0; file = FILENAME }
        /^`ifdef FORMAL/ { proof = 1 }
        !proof && NF && !/^ *\/\// { n++ }
        /^`endif/ { proof = 0 }
        END { if (n > 250) print file ": " n }' verilog/mlo_*.v
    }
    cd verilog || exit 2
}
[ "$floor" -eq 0 ] || style

for m in $modules; do
    tools "$m"
    case $m in
    mlo_sim_*) ;;
    *) check "yosys $m" yosys -q -p "read_verilog $m.v; hierarchy -check -libdir . -top $m; proc; check -assert" ;;
    esac
    # the same line may serve several proofs: depths, flags and proof-only parameters (F_*) do not matter here
    sets=$(awk '$1 == "proof" { s = ""; for (i = 2; i <= NF; i++) if ($i ~ /=/ && $i !~ /^F_/) s = s " " $i; if (s != "") print s }' "$here/formal/claims/$m.txt" 2>/dev/null | sort -u)
    [ -z "$sets" ] && continue
    while read -r line; do
        # shellcheck disable=SC2086
        tools "$m" $line
    done <<END
$sets
END
done
[ -z "$only" ] || floor=0
[ "$floor" -eq 0 ] || echo "floor $floor"
if [ "$checks" -lt "$floor" ]; then
    echo "FAIL lint.sh: it made $checks checks; there are $floor at least"
    failures=$((failures + 1))
fi
echo "lint: $checks checks, $failures failed"
[ "$failures" -eq 0 ]
