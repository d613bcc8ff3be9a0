#!/bin/sh
# Rebuilds the committed BPF object. Needs clang only. Usage: bpf/build.sh [OUTPUT]
set -e
cd "$(dirname "$0")"
out=${1:-recorder.bpf.o}
clang -target bpf -mcpu=v3 -O2 -g -Wall -Werror -Wno-unused-function -fdebug-compilation-dir=. -c recorder.bpf.c -o "$out"
# Line tables and source are not loaded; BTF is.
if command -v llvm-strip >/dev/null; then llvm-strip -g "$out"; fi
