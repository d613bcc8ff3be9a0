#!/bin/sh
# Installs a package in a Debian of its own, uses it, removes it, and looks what is left. Needs root, debootstrap and the network.
# Usage: scripts/try-deb.sh PACKAGE [SUITE]
set -eu

[ $# -ge 1 ] || { echo "usage: $0 PACKAGE [SUITE]" >&2; exit 2; }
package=$1
suite=${2:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
[ "$(id -u)" = 0 ] || { echo "$0 makes a system of its own: run it as root" >&2; exit 4; }
command -v debootstrap >/dev/null || { echo "debootstrap is missing: apt-get install debootstrap" >&2; exit 1; }
# What is mounted in there is gone with this process.
[ "${TRIED-}" = 1 ] || exec env TRIED=1 unshare --mount --propagation private "$0" "$package" "$suite"

root=$(mktemp -d)
trap 'umount -R "$root/proc" "$root/sys" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
debootstrap --variant=minbase "$suite" "$root" "$mirror" >/dev/null
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
cp "$package" "$root/holdup.deb"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive HOME=/root "$@"; }
apt() { inside apt-get -qq -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 "$@" >/dev/null; }
files() { (cd "$root" && find . -xdev \( -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./var/lib/dpkg -o -path ./proc \
    -o -path ./sys -o -path ./tmp \) -prune -o -print | sort); }

apt install -y --no-install-recommends /holdup.deb
apt purge -y holdup
# With the libraries that stay.
files >"$root/tmp/before"
apt install -y --no-install-recommends /holdup.deb
inside holdup --version
inside holdup record -o /tmp/t.holdup -- sh -c 'sleep 0.2; sleep 0.1'
inside holdup explain /tmp/t.holdup
inside holdup lab list | head -n 3
inside sh -c 'echo "pub async fn run(ctx, i) {}" >/tmp/w.rn; holdup load list /tmp/w.rn'
inside holdup export /tmp/t.holdup --format parquet --dataset /tmp/traces
inside holdup fleet report /tmp/traces | head -n 3
[ -e "$root/usr/share/man/man1/holdup.1.gz" ] && [ -e "$root/usr/share/bash-completion/completions/holdup" ]
apt purge -y holdup
files >"$root/tmp/after"
if ! diff "$root/tmp/before" "$root/tmp/after"; then
    echo "these files are left, or gone" >&2
    exit 1
fi
echo "installed, used, removed; nothing is left"
