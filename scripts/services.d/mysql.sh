# MySQL, which Debian has in sid only. Its packages and their libraries are unpacked into a directory of their
# own and run from there by sid's own dynamic loader, so that nothing of this machine is upgraded and the
# server runs as the caller: no chroot, and no root but for the download.
# shellcheck shell=bash disable=SC2154

# The series that Tidings is tested with. sid goes on to the next one some day; what sid was on the day of this snapshot
# is then taken instead.
mysql_series=9.7
mysql_snapshot=http://snapshot.debian.org/archive/debian/20261031T000000Z

mysql_root() {
    local root=$shared_dir/mysql
    if [[ ! -d $root ]]; then
        (
            lock mysql-root
            [[ -d $root ]] || mysql_fetch "$root"
        ) >&2 </dev/null || die "MySQL could not be fetched"
    fi
    echo "$root"
}

mysql_fetch() {
    local download=$shared_dir/mysql.download unpacked=$1.new mirror deb found as_root PATH=$PATH:/usr/sbin:/sbin
    find_root scripts/services up mysql
    rm -rf "$unpacked" && mkdir "$unpacked" || return 1
    for mirror in "${TIDINGS_SERVICES_DEBIAN_MIRROR:-}" "$mysql_snapshot"; do
        mysql_download "$download" "$mirror" || continue
        deb=("$download"/var/cache/apt/archives/mysql-server-core_*.deb)
        found=$(dpkg-deb --field "${deb[0]}" Version) || return 1
        mysql_is_known "$found" && break
        echo "services: it is MySQL $found there, and Tidings is tested with $mysql_series"
    done
    mysql_is_known "${found:-}" ||
        die "MySQL $mysql_series could not be fetched; debootstrap's log: $shared_dir/mysql.log." \
            "TIDINGS_SERVICES_DEBIAN_MIRROR may name a mirror where sid has it;" \
            "TIDINGS_TEST_WITHOUT=mysql leaves its tests out"
    # Of the system that debootstrap would build, a server needs itself and the libraries.
    for deb in "$download"/var/cache/apt/archives/{mysql,lib,zlib}*.deb; do
        dpkg-deb --extract "$deb" "$unpacked" || return 1
    done
    "${as_root[@]}" rm -rf "$download"
    mysql_program "$unpacked" sbin/mysqld
    "${program[@]}" --no-defaults --version >>"$shared_dir/mysql.log" 2>&1 ||
        die "MySQL was unpacked but does not run; see $shared_dir/mysql.log"
    mv "$unpacked" "$1"
}

# By debootstrap, which checks sid's signature with the keys of this Debian.
mysql_download() {
    echo "services: fetching MySQL from Debian sid${2:+ at $2}"
    "${as_root[@]}" rm -rf "$1"
    "${as_root[@]}" debootstrap --variant=minbase --download-only --include=mysql-server-core,mysql-client-core \
        sid "$1" ${2:+"$2"} >"$shared_dir/mysql.log" 2>&1 && return
    echo "services: debootstrap failed there"
    return 1
}

mysql_is_known() {
    [[ $1 == "$mysql_series".* ]]
}

# Sets `program` to the words that run a program of the unpacked system.
mysql_program() {
    local root=$1 loader libraries=()
    for loader in "$root"/usr/lib*/ld-linux-*.so.* "$root"/lib*/ld-linux-*.so.*; do
        [[ ! -e $loader ]] || break
    done
    libraries=("$root"/usr/lib/*-linux-gnu*)
    program=("$loader" --argv0 "$root/usr/$2" --library-path "${libraries[0]}" "$root/usr/$2")
}

mysql_start() {
    local dir=$set_dir/$1 root program version settings where=()
    root=$(mysql_root)
    mysql_program "$root" sbin/mysqld
    version=$("${program[@]}" --no-defaults --version | sed 's/.*Ver \([^ ]*\).*/\1/')
    mysql_is_known "$version" ||
        die "there is MySQL $version, and Tidings is tested with $mysql_series; to have that fetched, remove $root"
    where=(--no-defaults "--basedir=$root/usr" "--lc-messages-dir=$root/usr/share/mysql"
        "--character-sets-dir=$root/usr/share/mysql/charsets" "--plugin-dir=$root/usr/lib/mysql/plugin")
    [[ $EUID -ne 0 ]] || where+=(--user=root)
    # How it compares names is decided with its data directory.
    [[ ${TIDINGS_SERVICES_SQL_SETTINGS:-} != *--lower-case-table-names=1* ]] || where+=(--lower-case-table-names=1)
    mkdir -p "$dir/tmp"
    if [[ ! -d $dir/data ]]; then
        rm -rf "$dir/data.new"
        TMPDIR=$dir/tmp "${program[@]}" "${where[@]}" --initialize-insecure --datadir="$dir/data.new" >"$dir/log" 2>&1 </dev/null ||
            die_with_log "$1" "its data directory could not be made"
        mv "$dir/data.new" "$dir/data"
    fi
    mysql_accounts >"$dir/accounts.sql"
    echo "$version" >"$dir/version"
    mapfile -t settings < <(sql_settings "$dir")
    # Left by a killed server whose process may not be reaped yet: the new one would take it for running.
    rm -f "$dir"/socket "$dir"/socket.lock
    spawn "$1" "${program[@]}" "${where[@]}" "${settings[@]}" --secure-file-priv=NULL --mysqlx=OFF \
        --gtid-mode=ON --enforce-gtid-consistency=ON --innodb-redo-log-capacity=512M
}

# As for MariaDB. Each account authenticates by caching_sha2_password, the server's default.
mysql_accounts() {
    local host
    echo "SET sql_log_bin = 0;"
    for host in 127.0.0.1 localhost; do
        echo "CREATE USER IF NOT EXISTS 'root'@'$host' IDENTIFIED BY '$test_password';"
        echo "ALTER USER 'root'@'$host' IDENTIFIED BY '$test_password';"
        echo "GRANT ALL PRIVILEGES ON *.* TO 'root'@'$host' WITH GRANT OPTION;"
        echo "CREATE USER IF NOT EXISTS 'tidings'@'$host' IDENTIFIED BY '$test_password';"
        echo "GRANT ALL PRIVILEGES ON \`tidings%\`.* TO 'tidings'@'$host';"
        echo "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'tidings'@'$host';"
    done
}

mysql_answers() {
    local program
    mysql_program "$shared_dir/mysql" bin/mysql
    MYSQL_PWD=$test_password timeout 5 "${program[@]}" --no-defaults --protocol=tcp --host=127.0.0.1 \
        --port="$(port_of "$1")" --user=root --connect-timeout=4 --execute='SELECT 1' </dev/null >/dev/null 2>&1
}

mysql_address() {
    echo "mysql://root:$test_password@127.0.0.1:$(port_of "$1")"
}
