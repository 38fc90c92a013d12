#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh: from a bare Debian or Ubuntu to `mlo` on the PATH: what is missing by apt-get, the build, make install. PREFIX says where (/usr/local).
# Root's rights are asked for (sudo) only where they are needed: by apt-get when something is missing, by a PREFIX that is not one's own.
set -e
cd "$(dirname "$0")/.."
PREFIX=${PREFIX:-/usr/local}
rooted() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

if ! command -v make > /dev/null; then
    command -v apt-get > /dev/null || { echo "install.sh: there is neither make nor apt-get here; \`make packages\` says what mlo needs"; exit 1; }
    echo "make: installing"
    rooted apt-get update -qq
    rooted env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends make > /dev/null 2>&1
fi
make --no-print-directory packages
echo "mlo: building"
make --no-print-directory -s -j2 ready
mkdir -p "$PREFIX" 2> /dev/null || true
own=; [ -w "$PREFIX" ] || own=rooted
$own make --no-print-directory -s install PREFIX="$PREFIX"
"$PREFIX/bin/mlo" --version
echo "in $PREFIX/bin/mlo; next: make demo, or mlo help"
