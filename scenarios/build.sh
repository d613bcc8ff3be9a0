#!/bin/sh
# Builds the scenarios by the build lines of truth.toml: build.sh OUTDIR [NAME...]
set -eu
[ $# -ge 1 ] || { echo "usage: $0 OUTDIR [NAME...]" >&2; exit 2; }
mkdir -p "$1"
OUT=$(cd "$1" && pwd)
export OUT
shift
cd "$(dirname "$0")"
names=" $* "
name=
failed=0
while IFS= read -r line; do
    case $line in
        'name = "'*) name=${line#name = \"}; name=${name%\"} ;;
        "build = '"*)
            case $names in "  " | *" $name "*) ;; *) continue ;; esac
            command=${line#build = \'}
            command=${command%\'}
            sh -c "$command" || { echo "$name does not build: $command" >&2; failed=1; }
            ;;
    esac
done < truth.toml
exit $failed
