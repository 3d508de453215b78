# MariaDB from Debian, and the settings that it has in common with MySQL.
# shellcheck shell=bash disable=SC2154

# For tests on this machine alone; every server listens on 127.0.0.1 only.
test_password=tidings

mariadb_start() {
    local dir=$set_dir/$1 as_user=() PATH=$PATH:/usr/sbin
    [[ $EUID -ne 0 ]] || as_user=(--user=root)
    mkdir -p "$dir/tmp"
    if [[ ! -d $dir/data ]]; then
        # Made beside and moved into place: an installation that was interrupted is not taken for a whole one.
        rm -rf "$dir/data.new"
        # A folder of its own for temporary tables too: each server that starts removes what it takes for old ones.
        # `--force`: no account is named after this machine, so it need not know its own name.
        TMPDIR=$dir/tmp mariadb-install-db --no-defaults --force "${as_user[@]}" --datadir="$dir/data.new" --skip-test-db \
            --auth-root-authentication-method=normal >"$dir/log" 2>&1 </dev/null ||
            die_with_log "$1" "its data directory could not be made"
        mv "$dir/data.new" "$dir/data"
    fi
    mariadb_accounts >"$dir/accounts.sql"
    mariadbd --version | sed 's/.*Ver \([^ ]*\).*/\1/' >"$dir/version"
    mapfile -t settings < <(sql_settings "$dir")
    spawn "$1" mariadbd --no-defaults "${as_user[@]}" "${settings[@]}" \
        --gtid-strict-mode=ON --log-slave-updates=ON --innodb-log-file-size=256M
}

# The settings that MariaDB and MySQL both know. What a product should set for the relay, and as durable as a
# product's: a server that lost commits in a crash would make the crash tests prove nothing.
sql_settings() {
    cat <<SETTINGS
--datadir=$1/data
--socket=$1/socket
--pid-file=$1/server.pid
--tmpdir=$1/tmp
--init-file=$1/accounts.sql
--port=$(<"$1/port")
--bind-address=127.0.0.1
--skip-name-resolve
--server-id=1
--log-bin=mysql-bin
--binlog-format=ROW
--binlog-row-image=FULL
--binlog-row-metadata=FULL
--sync-binlog=1
--max-binlog-size=256M
--binlog-expire-logs-seconds=86400
--innodb-flush-log-at-trx-commit=1
--innodb-buffer-pool-size=512M
--max-allowed-packet=64M
--max-connections=500
--character-set-server=utf8mb4
--default-time-zone=+00:00
--performance-schema=OFF
SETTINGS
    local further
    read -ra further <<<"${TIDINGS_SERVICES_SQL_SETTINGS:-}"
    [[ ${#further[@]} -eq 0 ]] || printf '%s\n' "${further[@]}"
}

# Run by the server at each start before it takes connections, and kept out of the binlog.
# `tidings` has the rights that the documentation asks of a product's account, and no more.
mariadb_accounts() {
    local host
    echo "SET sql_log_bin = 0;"
    for host in 127.0.0.1 localhost; do
        echo "CREATE USER IF NOT EXISTS 'tidings'@'$host' IDENTIFIED BY '$test_password';"
        echo "GRANT ALL PRIVILEGES ON \`tidings%\`.* TO 'tidings'@'$host';"
        echo "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'tidings'@'$host';"
    done
}

mariadb_answers() {
    timeout 5 mariadb --no-defaults --protocol=tcp --host=127.0.0.1 --port="$(port_of "$1")" --user=root \
        --connect-timeout=4 --execute='SELECT 1' </dev/null >/dev/null 2>&1
}

mariadb_address() {
    echo "mysql://root@127.0.0.1:$(port_of "$1")"
}
