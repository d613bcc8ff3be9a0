#!/bin/sh
# What `make test` does: every step, also after one that failed. Says at the end which failed, and exits with 1 for them.
set -u
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
failed=
# Tests say there what they skip, and fail where the machine has what they say is missing.
HOLDUP_SKIPS=$(mktemp) || exit 1
HOLDUP_NO_SKIPS=1
export HOLDUP_SKIPS HOLDUP_NO_SKIPS
trap 'rm -f "$HOLDUP_SKIPS"' EXIT

# step NAME COMMAND…
step() {
    name=$1
    shift
    echo "==> $name: $*"
    "$@" || failed="$failed
  $name: $*"
}

# skipped STEP REASON
skipped() {
    printf '%s\tscripts/test.sh\t%s\n' "$1" "$2" >>"$HOLDUP_SKIPS"
}

# The database of advisories is the only part that needs the network.
check_licenses() {
    "$cargo" deny check bans licenses sources || return 1
    if "$cargo" deny fetch db >/dev/null 2>&1; then
        "$cargo" deny check advisories
    else
        skipped "cargo deny check advisories" "their database is out of reach"
    fi
}

trap 'exit 130' INT
trap 'exit 143' TERM

# The page that is committed must be what ui/ makes. Its packages come from the network.
check_page() {
    "$cargo" run --quiet --package xtask -- ui --check
}

# So must be the browser's side of the analysis. Another compiler makes other bytes of the same source.
wasm_compiler=crates/holdup-report/dist/rustc
can_make_wasm() {
    [ "$(rustc --version)" = "$(cat "$wasm_compiler")" ] && [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ]
}

# Spark and a store that speaks S3, for the tests of fleets: in a place of their own, from the registry of Python's packages.
python_packages() {
    venv=${CARGO_TARGET_DIR:-target}/python
    here='import pyspark, moto.server'
    if python3 -c "$here" 2>/dev/null; then return; fi
    if ! "$venv/bin/python3" -c "$here" 2>/dev/null; then
        # Where they can't be had, the tests say so.
        python3 -m venv "$venv" && "$venv/bin/pip" install --quiet 'pyspark>=4,<5' 'moto[server]>=5,<6' || return 0
    fi
    HOLDUP_PYTHON=$(realpath "$venv")/bin/python3
    export HOLDUP_PYTHON
}

step "tools" scripts/install-deps.sh test
step "packages of Python" python_packages
step "format" "$cargo" fmt --all --check
step "lints" "$cargo" clippy --workspace --features holdup/fleet --all-targets -- -D warnings
step "repository rules" "$cargo" run --quiet --package xtask -- tidy
# Before the tests, of which those in a browser need the page's packages.
if command -v node >/dev/null && command -v npm >/dev/null; then
    step "page" check_page
else
    skipped "cargo xtask ui --check" "no node and npm"
fi
if can_make_wasm; then
    step "WebAssembly" "$cargo" run --quiet --package xtask --features wasm -- wasm --check
else
    skipped "cargo xtask wasm --check" "no $(cat "$wasm_compiler") with wasm32-unknown-unknown"
fi
step "tests" "$cargo" test --workspace --features holdup/fleet --no-fail-fast
step "damaged files, optimized" "$cargo" test --release --package holdup-trace --test mutations
step "damaged files, at random" "$cargo" run --quiet --package holdup-fuzz -- --seconds 5
if "$cargo" deny --version >/dev/null 2>&1; then
    step "dependencies" check_licenses
else
    skipped "cargo deny check" "to have it: cargo install --locked cargo-deny"
fi

echo
if [ -s "$HOLDUP_SKIPS" ]; then
    echo "skipped (what, where, why):"
    sort -u "$HOLDUP_SKIPS" | sed 's/^/  /; s/\t/  /g'
else
    echo "skipped: nothing"
fi
if [ -n "$failed" ]; then
    echo
    echo "failed:$failed"
    exit 1
fi
echo "all steps passed"
