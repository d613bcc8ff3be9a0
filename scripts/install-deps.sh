#!/bin/sh
# Installs what is missing to build (`build`) or to test (`test`) holdup; does nothing where all is there.
# With apt, and as root or with a sudo that asks no password, it installs; else it says what to install.
set -eu

purpose=${1:-build}
case $purpose in build | test) ;; *) echo "usage: $0 [build|test]" >&2; exit 2 ;; esac

missing=
wanted=
need() { missing="$missing $1"; }
# What a test is skipped without.
want() { wanted="$wanted $1"; }
has() { command -v "$1" >/dev/null 2>&1; }
# A header or library counts as there if a program that uses it links.
links() { printf '#include <%s>\nint main(void) { return 0; }\n' "$1" | cc -x c -o /dev/null - "-l$2" 2>/dev/null; }

{ has gcc && has cc; } || need gcc
has make || need make
has pkg-config || need pkg-config
links stdlib.h c || need libc6-dev
links libelf.h elf || need libelf-dev
links zlib.h z || need zlib1g-dev
if [ "$purpose" = test ]; then
    has g++ || need g++
    has clang || need clang
    # Ubuntu has a `perf` that only says which package is missing.
    if ! perf version >/dev/null 2>&1; then
        if grep -qs '^ID=ubuntu' /etc/os-release; then need linux-tools-generic; else need linux-perf; fi
    fi
    # Servers for the drivers of `holdup load`. Cassandra comes through Maven and runs on Java 17 or 11, not on a later one.
    { has initdb || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; } || want postgresql
    has redis-server || want redis-server
    has openssl || want openssl
    # Its functions are read from its frames.
    has php || want php-cli
    # Spark and a store that speaks S3 come by pip.
    python3 -c 'import ensurepip' 2>/dev/null || want python3-venv
    # For the page of the view, and to look at it.
    has node || want nodejs
    has npm || want npm
    has chromium || want chromium
    has mvn || want maven
    if ! java -version 2>&1 | grep -Eq '"(11|17)[."]'; then
        if grep -qs '^VERSION_ID="12"' /etc/os-release; then want default-jre-headless; else want openjdk-17-jre-headless; fi
    fi
fi

root=none
if [ "$(id -u)" = 0 ]; then root=; elif has sudo && sudo -n true 2>/dev/null; then root="sudo -n"; fi

if [ -n "$missing" ]; then
    if has apt-get && [ "$root" != none ]; then
        echo "installing:$missing"
        # shellcheck disable=SC2086 # both are lists of words
        { $root apt-get update -q && $root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends $missing; } >&2 || {
            echo "apt-get could not install$missing: install them by hand, then run this again." >&2
            exit 1
        }
    else
        echo "Missing:$missing (names as on Debian and Ubuntu). Install them, then run this again." >&2
        exit 1
    fi
fi

if [ -n "$wanted" ]; then
    if has apt-get && [ "$root" != none ]; then
        $root apt-get update -q >&2 || true
        # One by one, since a name that apt does not offer would keep the others out.
        for package in $wanted; do
            $root env DEBIAN_FRONTEND=noninteractive \
                apt-get install -q -y --no-install-recommends "$package" >&2 ||
                echo "apt-get could not install $package: tests that need it are skipped." >&2
        done
    else
        echo "Not here:$wanted (names as on Debian and Ubuntu): tests that need them are skipped." >&2
    fi
fi

# The Rust toolchain is yours to choose: it is never installed from here.
if ! has cargo; then
    echo "Missing: a Rust toolchain, 1.90 or newer. See https://rustup.rs, then run this again." >&2
    exit 1
fi
if [ "$purpose" = test ] && ! { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1; then
    if has rustup; then
        rustup component add rustfmt clippy
    else
        echo "Missing: rustfmt and clippy for $(rustc --version). Install them, then run this again." >&2
        exit 1
    fi
fi
