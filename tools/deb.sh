#!/bin/sh
# Makes the Debian packages mlo, libmlo0 and libmlo-dev of what `make install` put into a folder. Usage: deb.sh VERSION INSTALLED OUT
# (same files same bytes: what has a date has that of SOURCE_DATE_EPOCH)
set -eu
LC_ALL=C; export LC_ALL
: "${SOURCE_DATE_EPOCH:=1767225600}"; export SOURCE_DATE_EPOCH
version=$1-1~make1 from=$(cd "$2" && pwd) out=$(mkdir -p "$3" && cd "$3" && pwd)
here=$(cd "$(dirname "$0")/.." && pwd)
major=${1%%.*}
lib=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
work=$out/work
rm -rf "$work"
mkdir -p "$work/debian"
printf 'Source: mlo\n\nPackage: mlo\nArchitecture: any\n' > "$work/debian/control"

# package NAME SECTION DEPENDS SUMMARY < the longer description: what lies in $work/NAME becomes NAME_VERSION_ARCH.deb
package() {
    root=$work/$1 doc=$work/$1/usr/share/doc/$1
    mkdir -p "$root/DEBIAN" "$doc"
    {
        printf 'Package: %s\nSource: mlo\nVersion: %s\nArchitecture: %s\n' "$1" "$version" "$(dpkg --print-architecture)"
        printf 'Maintainer: the mlo authors <mlo@example.org>\nInstalled-Size: %s\nDepends: %s\n' "$(du -k -s "$root/usr" | cut -f1)" "$3"
        printf 'Section: %s\nPriority: optional\nDescription: %s\n' "$2" "$4"
        sed 's/^/ /'
    } > "$root/DEBIAN/control"
    {
        printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: mlo\n\nFiles: *\nCopyright: 2026 the mlo authors\nLicense: Expat\n'
        sed -e 1,4d -e 's/^$/./' -e 's/^/ /' "$here/LICENSE"
    } > "$doc/copyright"
    gzip -9nc "$here/CHANGELOG.md" > "$doc/changelog.gz"
    printf 'mlo (%s) unstable; urgency=medium\n\n  * Made by make deb.\n\n -- the mlo authors <mlo@example.org>  %s\n' "$version" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9nc > "$doc/changelog.Debian.gz"
    chmod -R u=rwX,go=rX "$root"
    find "$root" -name 'lib*.so.*' -type f -exec chmod 644 {} +
    (cd "$root" && find usr -type f | sort | xargs md5sum > DEBIAN/md5sums)
    find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$root" "$out" > /dev/null
    echo "$out/$1_${version}_$(dpkg --print-architecture).deb"
}
needs() { (cd "$work" && dpkg-shlibdeps -O "$@" 2> /dev/null | sed 's/^shlibs:Depends=//'); }

mkdir -p "$work/mlo/usr/share/zsh/vendor-completions" "$work/libmlo$major/$lib" "$work/libmlo-dev/$lib" "$work/libmlo-dev/usr/share"
cp -a "$from/usr/bin" "$work/mlo/usr/"
cp -a "$from/usr/share/man" "$from/usr/share/bash-completion" "$from/usr/share/fish" "$work/mlo/usr/share/"
cp -a "$from/usr/share/zsh/site-functions/_mlo" "$work/mlo/usr/share/zsh/vendor-completions/"
gzip -9nf "$work/mlo/usr/share/man/man1/mlo.1"
strip "$work/mlo/usr/bin/mlo" -R .comment -R .note
cp -a "$from/$lib"/libmlo.so.* "$work/libmlo$major/$lib/"
strip --strip-unneeded -R .comment -R .note "$work/libmlo$major/$lib/libmlo.so.$1"
cp -a "$from/usr/include" "$work/libmlo-dev/usr/"
cp -a "$from/usr/share/mlo" "$work/libmlo-dev/usr/share/"
cp -a "$from/$lib/libmlo.a" "$from/$lib/libmlo.so" "$from/$lib/pkgconfig" "$from/$lib/cmake" "$work/libmlo-dev/$lib/"
strip --strip-debug -R .comment -R .note "$work/libmlo-dev/$lib/libmlo.a"

mkdir -p "$work/libmlo$major/DEBIAN"
echo "libmlo $major libmlo$major (>= $1)" > "$work/libmlo$major/DEBIAN/shlibs"
echo "activate-noawait ldconfig" > "$work/libmlo$major/DEBIAN/triggers"

package mlo electronics "$(needs mlo/usr/bin/mlo)" 'compiler from ONNX transformers to verified streaming Verilog' << 'END'
mlo finds the layer that repeats in a transformer exported as ONNX, proves the
loop equal to the original, and writes one copy of the layer as Verilog
through which each layer's weights are streamed, with a bench that compares
every word.
.
Icarus Verilog or Verilator simulate what it writes.
END
package "libmlo$major" libs "$(needs "libmlo$major/$lib/libmlo.so.$1")" 'compiler from ONNX transformers to streaming Verilog - library' << 'END'
The stages of mlo as a library in C99: read, scope, extract, roll, quantize,
lower, fold, emit. This package has the shared library.
END
package libmlo-dev libdevel "libmlo$major (= $version), libcjson-dev, libnanopb-dev" 'compiler from ONNX transformers to streaming Verilog - development' << 'END'
The stages of mlo as a library in C99: read, scope, extract, roll, quantize,
lower, fold, emit. This package has the header, the static library, what
pkg-config and CMake read, and the whole library as one C file.
END
rm -rf "$work"
