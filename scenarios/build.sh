#!/bin/sh
# Builds the scenarios by the build lines of truth.toml: build.sh [--pairs] OUTDIR [NAME...]
# With --pairs the pairs: OUTDIR/held/NAME and OUTDIR/fixed/NAME.
set -eu
pairs=
[ "${1-}" != --pairs ] || { pairs=1; shift; }
[ $# -ge 1 ] || { echo "usage: $0 [--pairs] OUTDIR [NAME...]" >&2; exit 2; }
mkdir -p "$1" ${pairs:+"$1/held" "$1/fixed"}
all=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")"
names=" $* "
name=
failed=0
while IFS= read -r line; do
    case $line in
        'name = "'*) name=${line#name = \"}; name=${name%\"}; continue ;;
        "build = '"*) [ -z "$pairs" ] || continue; OUT=$all ;;
        "held = '"*) [ -n "$pairs" ] || continue; OUT=$all/held ;;
        "fixed = '"*) [ -n "$pairs" ] || continue; OUT=$all/fixed ;;
        *) continue ;;
    esac
    case $names in "  " | *" $name "*) ;; *) continue ;; esac
    command=${line#*\'}
    command=${command%\'}
    OUT=$OUT sh -c "$command" || { echo "$name does not build: $command" >&2; failed=1; }
done < truth.toml
exit $failed
