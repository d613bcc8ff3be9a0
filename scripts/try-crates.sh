#!/bin/sh
# Packages the crates as for a registry, installs the program from what came out, uses it, and says how long it took.
# Nothing is published. Usage: scripts/try-crates.sh [FOLDER], which is made, or emptied, and kept.
set -eu
cd "$(dirname "$0")/.."
folder=$(mkdir -p "${1:-target/crates}" && cd "${1:-target/crates}" && pwd)
rm -rf "${folder:?}/src" "$folder/root"
mkdir "$folder/src"

# Crates that are not for others say publish = false; some need others of which there is no version.
set --
for manifest in $(grep -l '^publish = false' xtask/Cargo.toml crates/*/Cargo.toml); do
    set -- "$@" --exclude "$(basename "$(dirname "$manifest")")"
done
cargo package --quiet --workspace "$@" --no-verify --allow-dirty --target-dir "$folder/target"
for crate in "$folder"/target/package/*.crate; do tar -xzf "$crate" -C "$folder/src"; done
set -- # one --config for each crate, as if the registry had it
for crate in "$folder"/src/*; do
    name=$(basename "$crate")
    set -- "$@" --config "patch.crates-io.${name%-*}.path='$crate'"
done
echo "packaged: $(($# / 2)) crates"
begin=$(date +%s)
CARGO_TARGET_DIR="$folder/target" cargo install --quiet "$@" --path "$folder"/src/holdup-[0-9]* --root "$folder/root"
echo "installed in $(($(date +%s) - begin)) s:" "$folder"/root/bin/*
"$folder/root/bin/holdup" --version
"$folder/root/bin/holdup" record -o "$folder/t.holdup" -- sh -c 'sleep 0.2; sleep 0.1'
"$folder/root/bin/holdup" explain "$folder/t.holdup"
