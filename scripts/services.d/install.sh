# What `scripts/services` needs from Debian. Only packages without a service of their own: an installation for
# tests must not start a server on the usual port of a developer's machine.
# shellcheck shell=bash

# Each command that an instance needs, with the package that brings it.
needed_by() {
    case $1 in
        mariadb) echo "mariadbd:mariadb-server-core mariadb:mariadb-client-core" ;;
        mysql) echo "debootstrap:debootstrap gpgv:gpgv" ;;
        redis) echo "redis-cli:redis-tools redis-check-rdb:redis-tools" ;;
        kafka-*) echo "java:default-jre-headless mvn:maven" ;;
    esac
}

# Sets `as_root` to what runs a command as root; says what to do where nothing can.
find_root() {
    as_root=()
    [[ $EUID -ne 0 ]] || return 0
    command -v sudo >/dev/null || die "root is needed once; as root, please run: $*"
    as_root=(sudo)
}

install_packages() {
    local PATH=$PATH:/usr/sbin:/sbin instance pair missing=() as_root
    for instance in "$@"; do
        for pair in $(needed_by "$instance"); do
            command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
        done
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
    command -v apt-get >/dev/null || die "this is not Debian; please install what these hold: ${missing[*]}"
    find_root "apt-get update && apt-get install --no-install-recommends ${missing[*]}"
    echo "services: installing ${missing[*]}" >&2
    (
        lock apt
        "${as_root[@]}" apt-get update --quiet --quiet
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet \
            -o DPkg::Lock::Timeout=300 --no-install-recommends "${missing[@]}"
    ) </dev/null >&2
}
