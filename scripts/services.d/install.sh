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

install_packages() {
    local PATH=$PATH:/usr/sbin:/sbin instance pair missing=() as_root=()
    for instance in "$@"; do
        for pair in $(needed_by "$instance"); do
            command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
        done
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
    command -v apt-get >/dev/null || die "this is not Debian; please install what these hold: ${missing[*]}"
    if [[ $EUID -ne 0 ]]; then
        command -v sudo >/dev/null ||
            die "as root, please run: apt-get install --yes --no-install-recommends ${missing[*]}"
        as_root=(sudo)
    fi
    echo "services: installing ${missing[*]}" >&2
    (
        lock apt
        "${as_root[@]}" apt-get update --quiet --quiet
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet \
            --no-install-recommends "${missing[@]}"
    ) </dev/null >&2
}
