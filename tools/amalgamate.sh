#!/bin/sh
# Writes mlo.c: src/mlo.c with every `#include "file.c"` replaced by that file. A line in front of each says where it is from.
# Usage: amalgamate.sh src/mlo.c build > mlo.c
# (files are looked for beside src/mlo.c, then in the second directory, where generated ones lie)
LC_ALL=C; export LC_ALL
awk -v dir="$(dirname "$1")" -v made="$2" '
    /^#include "[a-z0-9_/]*\.c"/ {
        split($0, part, "\""); file = dir "/" part[2]
        if ((getline line < file) < 0) file = made "/" part[2]; else close(file)
        printf "\n/* ======== src/%s ======== */\n", part[2]
        while ((getline line < file) > 0) print line
        close(file); next }
    { print }' "$1"
