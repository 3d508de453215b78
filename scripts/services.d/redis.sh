# Redis from Debian. Durable to the last second, as the documentation asks of a product.
# shellcheck shell=bash disable=SC2154

redis_start() {
    local dir=$set_dir/$1 program
    mkdir -p "$dir/data"
    # Debian's redis-server is a link to redis-check-rdb, in a package that also starts a server on the usual
    # port. The program is in redis-tools and goes by its name, so that a link of our own does.
    program=$(command -v redis-server) || {
        program=$shared_dir/redis-server
        ln --symbolic --force "$(command -v redis-check-rdb)" "$program"
    }
    "$program" --version | sed 's/.* v=\([^ ]*\).*/\1/' >"$dir/version"
    spawn "$1" "$program" --bind 127.0.0.1 --port "$(port_of "$1")" --protected-mode yes \
        --dir "$dir/data" --appendonly yes --appendfsync everysec --save '' --daemonize no
}

# PING says LOADING while the file is read.
redis_answers() {
    [[ $(timeout 5 redis-cli -h 127.0.0.1 -p "$(port_of "$1")" ping </dev/null 2>/dev/null) == PONG ]]
}

redis_address() {
    echo "redis://127.0.0.1:$(port_of "$1")"
}
