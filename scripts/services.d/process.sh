# Processes of `scripts/services`: started apart from the caller, found and stopped by their pid.
# shellcheck shell=bash disable=SC2154  # set_dir and its like are set by scripts/services

answer_limit_seconds=90
stop_limit_seconds=60
log_bytes_max=$((10 * 1024 * 1024))

# Holds a lock until this process ends. Only for subshells that do one thing.
lock() {
    local descriptor
    exec {descriptor}>"$root_dir/locks/$1"
    if ! flock --nonblock "$descriptor"; then
        echo "services: waiting for another one that works on $1" >&2
        flock "$descriptor"
    fi
}

# The moment a process was started, in clock ticks since boot, and its state letter.
# The name before them is in brackets and may itself hold blanks, so everything up to it is cut off.
started_and_state() {
    local line fields
    line=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    read -ra fields <<<"${line##*) }"
    echo "${fields[19]} ${fields[0]}"
}

# Prints the pid of a running instance. A pid file may outlive its process and the number may since belong
# to another, so the file also says when the process was started.
pid_of() {
    local pid started now state threads
    read -r pid started <"$set_dir/$1/pid" || return 1
    read -r now state < <(started_and_state "$pid") || return 1
    [[ $now == "$started" ]] || return 1
    # A zombie is dead, unless it is but the first thread and others still hold its port and files.
    if [[ $state == Z ]]; then
        threads=("/proc/$pid/task"/*)
        [[ ${#threads[@]} -gt 1 ]] || return 1
    fi
    echo "$pid"
} 2>/dev/null

is_alive() {
    pid_of "$1" >/dev/null
}

is_paused() {
    local pid started state
    pid=$(pid_of "$1") && read -r started state < <(started_and_state "$pid") && [[ $state == T ]]
}

state_of() {
    if ! is_alive "$1"; then
        echo down
    elif is_paused "$1"; then
        echo paused
    elif "$(service_of "$1")_answers" "$1"; then
        echo up
    else
        echo 'not answering'
    fi
}

signal() {
    local pid
    pid=$(pid_of "$1") && kill -s "$2" "$pid"
}

# Starts a program that outlives this script: in a session of its own, with no descriptor of the caller, so
# that `$(scripts/services up)` ends when the script does and not when the server does.
spawn() {
    local dir=$set_dir/$1 log=$set_dir/$1/log
    shift
    if [[ -e $log && $(stat --format %s "$log") -gt $log_bytes_max ]]; then
        mv "$log" "$log.old"
    fi
    (
        local descriptor
        for descriptor in "/proc/$BASHPID/fd"/*; do
            descriptor=${descriptor##*/}
            # 255 is bash's own and closes itself.
            [[ $descriptor -le 2 || $descriptor -eq 255 ]] || exec {descriptor}>&-
        done
        cd /
        exec setsid "$@" </dev/null >>"$log" 2>&1
    ) &
    local started
    started=$(started_and_state "$!") || true
    echo "$! ${started% *}" >"$dir/pid"
}

wait_until_dead() {
    while is_alive "$1"; do
        sleep 0.02
    done
}

# In order, and by force if that takes too long. A paused process only sees a signal when it goes on.
stop() {
    local deadline=$((SECONDS + stop_limit_seconds))
    signal "$1" TERM || return 0
    signal "$1" CONT || true
    while is_alive "$1"; do
        if ((SECONDS >= deadline)); then
            echo "$1: did not stop within $stop_limit_seconds s and was killed" >&2
            signal "$1" KILL || true
            wait_until_dead "$1"
        fi
        sleep 0.05
    done
    rm -f "$set_dir/$1/pid"
}

# Fails if the instance ends instead.
wait_until_answers() {
    local deadline=$((SECONDS + answer_limit_seconds)) service
    service=$(service_of "$1")
    until "${service}_answers" "$1"; do
        is_alive "$1" || return 1
        ((SECONDS < deadline)) || die_with_log "$1" "gave no answer in $answer_limit_seconds s"
        sleep 0.05
    done
}

die_with_log() {
    tail --lines 8 "$set_dir/$1/log" >&2 || true
    die "$1: $2; the log: $set_dir/$1/log"
}

port_of() {
    cat "$set_dir/$1/port"
}

# Whether something listens there.
is_taken() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Settles the ports of instances that are about to start. The default set has known ones; another set gets
# free ones at its first start, below those that the kernel gives to outgoing connections, and keeps them.
choose_ports() {
    (
        lock ports
        local instance file port
        for instance in "$@"; do
            file=$set_dir/$instance/port
            mkdir -p "${file%/*}"
            chmod 700 "${file%/*}"
            if [[ $set_name == default ]]; then
                is_alive "$instance" || default_port "$instance" >"$file"
            elif [[ ! -e $file ]]; then
                # Two in a row, because a Kafka broker needs two.
                until port=$((20000 + 2 * (SRANDOM % 6000))) &&
                    ! grep --quiet --no-messages --line-regexp "$port" "$root_dir"/*/*/port &&
                    ! is_taken "$port" && ! is_taken $((port + 1)); do :; done
                echo "$port" >"$file"
            fi
        done
    )
}

default_port() {
    case $1 in
        mariadb) echo "${TIDINGS_SERVICES_MARIADB_PORT:-13306}" ;;
        mysql) echo "${TIDINGS_SERVICES_MYSQL_PORT:-13307}" ;;
        redis) echo "${TIDINGS_SERVICES_REDIS_PORT:-16379}" ;;
        kafka-*) echo $((${TIDINGS_SERVICES_KAFKA_PORT:-19092} + 2 * (${1#kafka-} - 1))) ;;
    esac
}
