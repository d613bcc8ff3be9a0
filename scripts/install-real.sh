#!/bin/sh
# Installs the programs of `cargo xtask real` with apt, as root or with a sudo that asks no password. A case whose program
# is missing is skipped, so none of them is needed to build or to test holdup.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }

if ! has apt-get; then
    echo "There is no apt-get here: install by hand what the skipped cases of \`cargo xtask real\` name." >&2
    exit 1
fi
root=
if [ "$(id -u)" != 0 ]; then root="sudo -n"; fi

# A daemon's package must not start it: the cases start their own, in a folder of theirs.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | $root tee "$policy" >/dev/null
    $root chmod 755 "$policy"
    trap '$root rm -f "$policy"' EXIT
fi

$root apt-get update -q >&2 || true
# One by one, since a name that apt does not offer would keep the others out.
for package in postgresql postgresql-contrib redis-server nginx-light memcached libmemcached-tools mariadb-server sysbench sqlite3 \
    wrk apache2-utils python3 strace gdb \
    gcc g++ make cmake autoconf git pigz zstd xz-utils bzip2 coreutils findutils libgomp1 gfortran \
    openjdk-17-jdk-headless maven golang-go nodejs npm etcd-server etcd-client gunicorn python3-venv \
    ruby flac lame ninja-build lighttpd perl p7zip-full rsync curl varnish haproxy pgbouncer \
    php-fpm apache2 libapache2-mod-wsgi-py3 puma bindfs fio openmpi-bin libopenmpi-dev; do
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$package" >/dev/null ||
        echo "apt-get could not install $package: cases that need it are skipped." >&2
done

# What Debian's Python lacks, in a folder of its own: `cargo xtask requests` looks for it there. py-spy is looked for in PATH.
python="$(dirname "$0")/../target/real-python"
if [ ! -x "$python/bin/python" ]; then
    python3 -m venv "$python" &&
        "$python/bin/pip" install -q opentelemetry-sdk opentelemetry-exporter-otlp-proto-common ||
        echo "pip could not install OpenTelemetry's SDK: the case that needs it is skipped." >&2
fi
if ! has py-spy; then
    "$python/bin/pip" install -q py-spy && $root ln -sf "$(realpath "$python/bin/py-spy")" /usr/local/bin/py-spy ||
        echo "pip could not install py-spy: cases that need it are skipped." >&2
fi
