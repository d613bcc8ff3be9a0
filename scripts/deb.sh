#!/bin/sh
# Makes a Debian package of what `make install` installs. Needs dpkg-dev. Usage: scripts/deb.sh PROGRAM FOLDER, from `make deb`.
set -eu

[ $# = 2 ] || { echo "usage: $0 PROGRAM FOLDER" >&2; exit 2; }
program=$1
folder=$2
cd "$(dirname "$0")/.."
for tool in dpkg-deb dpkg-shlibdeps dpkg-architecture; do
    command -v "$tool" >/dev/null || { echo "$tool is missing: apt-get install dpkg-dev" >&2; exit 1; }
done

version=$("$program" --version | sed -n '1s/^holdup \([^ ]*\).*/\1/p')
architecture=$(dpkg-architecture -qDEB_HOST_ARCH)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree

make --no-print-directory install DESTDIR="$tree" PREFIX=/usr >/dev/null
# Names and lines of holdup's own code are as large as the program, for whoever debugs holdup.
rm -r "$tree/usr/bin/.debug"
# Where Debian's zsh looks.
mkdir -p "$tree/usr/share/zsh/vendor-completions"
mv "$tree/usr/share/zsh/site-functions/_holdup" "$tree/usr/share/zsh/vendor-completions/_holdup"
rmdir "$tree/usr/share/zsh/site-functions"
gzip -9 -n "$tree"/usr/share/man/man1/*.1

doc=$tree/usr/share/doc/holdup
mkdir -p "$doc"
{
    echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
    echo
    echo 'Files: *'
    echo 'Copyright: the authors of holdup'
    echo 'License: MIT or Apache-2.0'
    sed 's/^$/./; s/^/ /' LICENSE-MIT
    echo ' .'
    echo ' The Apache License, Version 2.0, is in /usr/share/common-licenses/Apache-2.0.'
} >"$doc/copyright"
gzip -9 -n <CHANGELOG.md >"$doc/changelog.gz"
cp README.md SECURITY.md "$doc"

# dpkg-shlibdeps wants a source package around it.
mkdir "$work/debian"
echo 'Source: holdup' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O tree/usr/bin/holdup tree/usr/bin/holdup-load tree/usr/bin/holdup-fleet | sed -n 's/^shlibs:Depends=//p')
# Relative relocations are packed where the linker can; dpkg-shlibdeps does not know which C library reads them.
if readelf -S --wide "$tree/usr/bin/holdup" | grep -q ' \.relr\.dyn '; then libraries="$libraries, libc6 (>= 2.36)"; fi

mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<END
Package: holdup
Version: $version
Architecture: $architecture
Maintainer: the authors of holdup <holdup@localhost>
Section: utils
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: $libraries
Description: says what holds the cores up
 Records what threads wait for, and explains which of those waits kept the
 CPUs idle, and who caused them; reads what perf, Windows, Perfetto, trace-cmd
 and LTTng have recorded; compares runs; measures locks, counters and servers.
END
cat >"$tree/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
END
cat >"$tree/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl --no-reload disable --now holdup.service holdup-agent.service || true; fi
END
cat >"$tree/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
# What the flight recorder wrote.
if [ "$1" = purge ]; then rm -rf /var/lib/holdup; fi
END
chmod 755 "$tree/DEBIAN/postinst" "$tree/DEBIAN/prerm" "$tree/DEBIAN/postrm"

mkdir -p "$folder"
package=$folder/holdup_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$tree" "$package" >/dev/null
echo "$package"
