#!/bin/sh
# Splits a program into itself, stripped, and PROGRAM.debug with the names and lines of its code, which debuggers, backtraces
# and holdup itself find beside it or in the folder .debug beside it. Fails where the program stays too large to ship.
set -eu

[ $# = 1 ] || [ $# = 2 ] || { echo "usage: $0 PROGRAM [BYTES]" >&2; exit 2; }
program=$1
most=${2:-25000000}
name=$(basename "$program")

if readelf -S --wide "$program" | grep -q ' \.debug_info '; then
    work=$(mktemp -d "$program.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    # Under these names: the link names its file.
    objcopy --only-keep-debug --compress-debug-sections=zlib "$program" "$work/$name.debug"
    # A copy of the program alone still knows the functions of `holdup demo`, and the locks of the standard library.
    objcopy --strip-all --wildcard --keep-symbol='*4demo7program*' --keep-symbol='*3std*' \
        --add-gnu-debuglink="$work/$name.debug" "$program" "$work/$name"
    mv "$work/$name.debug" "$program.debug"
    # Not written in place: cargo keeps the same file under another name.
    mv "$work/$name" "$program"
fi

# Where the C library is older than 2.36 the program holds 24 bytes for each address in it, instead of a bit (crates/holdup/build.rs).
readelf -S --wide "$program" | grep -q ' \.relr\.dyn ' || most=$((most + 1200000))

size=$(wc -c <"$program")
if [ "$size" -gt "$most" ]; then
    echo "$program has $size bytes, more than the $most that may be shipped: see what grew with \`size -A $program\`," >&2
    echo "and give code outside of hot loops opt-level \"s\" in Cargo.toml." >&2
    exit 1
fi
echo "$program: $size bytes"
