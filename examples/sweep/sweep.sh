#!/bin/sh
# A sweep: precision x folding x memory of one model, a JSON line a point, two points at a time. Usage: sweep.sh MODEL.onnx OUT [JOBS]
#
#   WEIGHTS="8 6 4" TARGETS="40000 80000" MEMORY="layer block" FLAGS="--calib x.npz" sh examples/sweep/sweep.sh bert.onnx sweep 4
#   mlo show --html sweep/points.jsonl -o sweep.html
#
# A point: {"weights","target","memory","cycles","multipliers","lut","ff","dsp","bram","cosine","relative"}; what does not fit or is not supported has
# "refused" instead. Each point is a file of its own that appears whole, so that a sweep which was killed goes on where it was: start it again.
# GNU parallel shares the work where it is installed, else xargs.
set -eu
model=$1 out=$2 jobs=${3:-2}
mlo=${MLO:-mlo}
mkdir -p "$out/points"

# one WEIGHTS TARGET MEMORY: the point, unless it is there
if [ "${4:-}" = one ]; then
    weights=$5 target=$6 memory=$7
    point=$out/points/w$weights-t$target-$memory.json
    [ ! -f "$point" ] || exit 0
    made=$(mktemp -d)
    trap 'rm -rf "$made"' EXIT
    status=0
    # shellcheck disable=SC2086
    $mlo compile "$model" --weights "$weights" --target-cycles "$target" --memory "$memory" ${FLAGS:-} -o "$made/build" > "$made/said" 2> "$made/lines" || status=$?
    if [ "$status" = 0 ]; then
        $mlo show --json "$made/build/host/core.onnx" > "$made/shown"
        jq -c --slurpfile shown "$made/shown" --argjson w "$weights" --argjson t "$target" --arg m "$memory" '($shown[0].area // {}) as $a
            | {weights: $w, target: $t, memory: $m, cycles: .predicted_cycles, multipliers, lut: $a.lut, ff: $a.ff, dsp: $a.dsp, bram: $a.bram,
               cosine: .error[0].cosine, relative: .error[0].relative}' "$made/said" > "$made/point"
    elif [ "$status" = 1 ] || [ "$status" = 4 ]; then
        jq -c --argjson w "$weights" --argjson t "$target" --arg m "$memory" '{weights: $w, target: $t, memory: $m, refused: .error.message}' "$made/said" > "$made/point"
    else
        cat "$made/lines" >&2
        exit "$status"
    fi
    mv "$made/point" "$point.part" && mv "$point.part" "$point"
    exit 0
fi

each() { for w in ${WEIGHTS:-8 6 4}; do for t in ${TARGETS:-20000 40000 80000}; do for m in ${MEMORY:-layer block}; do echo "$w $t $m"; done; done; done; }
if command -v parallel > /dev/null; then
    each | parallel --will-cite -j "$jobs" --colsep ' ' sh "$0" "$model" "$out" "$jobs" one
else
    each | xargs -P "$jobs" -L 1 sh "$0" "$model" "$out" "$jobs" one
fi
each | while read -r w t m; do cat "$out/points/w$w-t$t-$m.json"; done > "$out/points.jsonl.part"
mv "$out/points.jsonl.part" "$out/points.jsonl"
