#!/bin/sh
# What `make test` does: every step, also after one that failed. Says at the end which failed, and exits with 1 for them.
set -u
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
failed=

# step NAME COMMAND…
step() {
    name=$1
    shift
    echo "==> $name: $*"
    "$@" || failed="$failed
  $name: $*"
}

# The database of advisories is the only part that needs the network.
check_licenses() {
    "$cargo" deny check bans licenses sources || return 1
    if "$cargo" deny fetch db >/dev/null 2>&1; then
        "$cargo" deny check advisories
    else
        echo "skipped: cargo deny check advisories (their database is out of reach)"
    fi
}

trap 'exit 130' INT
trap 'exit 143' TERM

step "tools" scripts/install-deps.sh test
step "format" "$cargo" fmt --all --check
step "lints" "$cargo" clippy --workspace --all-targets -- -D warnings
step "repository rules" "$cargo" run --quiet --package xtask -- tidy
step "tests" "$cargo" test --workspace --no-fail-fast
step "damaged files, optimized" "$cargo" test --release --package holdup-trace --test mutations
if "$cargo" deny --version >/dev/null 2>&1; then
    step "dependencies" check_licenses
else
    echo "skipped: cargo deny check (to have it: cargo install --locked cargo-deny)"
fi

if [ -n "$failed" ]; then
    echo
    echo "failed:$failed"
    exit 1
fi
echo "all steps passed"
