#!/bin/sh
# Builds what does not record for aarch64, and runs its tests under qemu-user. Needs the packages that it asks for, and rustup.
# Usage: scripts/try-aarch64.sh [FOLDER], where it builds.
set -eu
cd "$(dirname "$0")/.."
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null || {
        echo "$tool is missing: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user" >&2
        exit 1
    }
done
rustup target add aarch64-unknown-linux-gnu

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu'
tests() {
    cargo test --target aarch64-unknown-linux-gnu --target-dir "$target" --no-fail-fast "$@"
}
target=${1:-target/aarch64}
failed=0
tests -p holdup-base -p holdup-trace -p holdup-analysis || failed=1
# One test makes a process by vfork, of which qemu makes a fork: it would wait for ever. So may a process that is forked while another
# thread of qemu's has one of its locks: one test at a time.
tests -p holdup-sync -- --skip a_child_that_borrows_the_memory_adds_to_it --test-threads 1 || failed=1
exit "$failed"
