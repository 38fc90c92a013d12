#!/bin/sh
# The sources of cJSON and nanopb, for what links them in (make wheel) or compiles them for another machine (make web): the ones that Debian's
# packages are made of, with its corrections. Nothing but the folder changes: apt reads lists of its own. Usage: third.sh FOLDER
# (elsewhere: put cjson/cJSON.[ch] and pb.h, pb_common.[ch], pb_decode.[ch], pb_encode.[ch] into FOLDER, and touch FOLDER/ready)
set -e
command -v apt-get > /dev/null && command -v dpkg-source > /dev/null || { echo "third: sources of cJSON and nanopb are asked of apt-get and dpkg-source, which are not here; put them into $1 (tools/third.sh says which)" >&2; exit 1; }
mkdir -p "$1/apt/lists/partial" "$1/apt/cache/archives/partial" "$1/apt/sources" "$1/cjson"
cd "$1"
top=$PWD/apt
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -f "$list" ] && grep -q 'debian\|ubuntu' "$list" || continue
    sed -e 's/^Types:.*/Types: deb-src/' -e 's/^deb /deb-src /' "$list" > "apt/sources/$(basename "$list")"
done
set -- -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$top/sources" -o Dir::State::Lists="$top/lists" -o Dir::Cache="$top/cache" -o APT::Sandbox::User=
if ! (apt-get "$@" update && cd apt && apt-get "$@" source cjson nanopb) > apt/log 2>&1; then
    tail -3 apt/log >&2
    echo "third: apt-get source cjson nanopb failed" >&2
    exit 1
fi
cp apt/cjson-*/cJSON.c apt/cjson-*/cJSON.h cjson/
cp apt/cjson-*/LICENSE cjson/
cp apt/nanopb-*/pb*.[ch] .
cp apt/nanopb-*/LICENSE.txt LICENSE.nanopb
rm -rf apt
touch ready
