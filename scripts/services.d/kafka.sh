# Apache Kafka in KRaft mode, its jars resolved by Maven. A cluster has one node or three, each broker and
# controller at once.
# shellcheck shell=bash disable=SC2154

# The size of the set's cluster: chosen at its first start, because the voters of its controller are fixed.
kafka_brokers() {
    local file=$set_dir/kafka-brokers chosen=${brokers:-1}
    if [[ -e $file ]]; then
        chosen=$(<"$file")
        [[ -z $brokers || $brokers == "$chosen" ]] ||
            echo "services: the cluster has $chosen broker(s); another size needs: down --wipe kafka" >&2
    fi
    echo "$chosen"
}

kafka_forget() {
    local data
    for data in "$set_dir"/kafka-[1-9]/data; do
        [[ ! -e $data ]] || return 0
    done
    rm -rf "$set_dir"/kafka-*
}

# The directory with the jars, filled at first use.
kafka_jars() {
    local pom=$here/kafka-pom.xml version jars
    version=$(sed -n 's/.*<kafka.version>\(.*\)<.*/\1/p' "$pom")
    jars=$shared_dir/kafka-$version
    if [[ ! -d $jars ]]; then
        (
            lock kafka-jars
            [[ -d $jars ]] || { kafka_fetch "$pom" "$jars" && kafka_learn "$jars"; }
        ) >&2 </dev/null || die "Apache Kafka could not be fetched"
    fi
    echo "$jars"
}

kafka_fetch() {
    echo "services: fetching Apache Kafka ${2##*-}"
    rm -rf "$2.new" &&
        mvn --batch-mode --quiet -Dstyle.color=never --file "$1" dependency:copy-dependencies \
            -DincludeScope=runtime -DoutputDirectory="$2.new" &&
        mv "$2.new" "$2"
}

# Runs a node once for Java to keep what it found out about its classes. Measured on two idle cores: 1.0 s from
# the start to the first answer with it, 1.9 s without; tests start a node often, and beside other work.
kafka_learn() {
    local services=${here%.d}
    if TIDINGS_SERVICES_KAFKA_LEARN=$1/classes.new "$services" up --set learning kafka-1 &&
        "$services" down --set learning --wipe kafka-1; then
        mv "$1/classes.new" "$1/classes.jsa" || true
    fi
}

kafka_start() {
    local dir=$set_dir/$1 jars heap=${TIDINGS_SERVICES_KAFKA_HEAP:-512m} java learn=()
    jars=$(kafka_jars)
    kafka_settings "$1" >"$dir/server.properties"
    # The second compiler stays, although the first alone starts a little sooner: without it the server would be
    # the slower end of every benchmark.
    java=(java "-Xmx$heap" "-Xms$heap" -XX:+UseSerialGC "-Dlog4j2.configurationFile=$here/kafka-log4j2.xml")
    [[ ! -e $jars/classes.jsa ]] || java+=("-XX:SharedArchiveFile=$jars/classes.jsa")
    java+=(-cp "$jars/*")
    if [[ ! -e $dir/data/meta.properties ]]; then
        "${java[@]}" kafka.tools.StorageTool format --cluster-id "$(<"$set_dir/kafka-cluster")" \
            --config "$dir/server.properties" >"$dir/log" 2>&1 </dev/null ||
            die_with_log "$1" "its data directory could not be made"
    fi
    echo "${jars##*-}" >"$dir/version"
    [[ -z ${TIDINGS_SERVICES_KAFKA_LEARN:-} ]] ||
        learn=("-XX:ArchiveClassesAtExit=$TIDINGS_SERVICES_KAFKA_LEARN")
    spawn "$1" "${java[@]}" "${learn[@]}" kafka.Kafka "$dir/server.properties"
}

# The brokers of one cluster must agree on its identity and on all their ports before the first of them starts.
kafka_cluster() {
    local number size brothers=()
    size=$(kafka_brokers 2>/dev/null)
    (
        lock "$set_name.kafka"
        [[ -s $set_dir/kafka-brokers ]] || echo "$size" >"$set_dir/kafka-brokers"
        [[ -s $set_dir/kafka-cluster ]] ||
            head --bytes 16 /dev/urandom | base64 | tr '+/' 'Aa' | tr --delete = >"$set_dir/kafka-cluster"
    )
    for ((number = 1; number <= size; number++)); do
        brothers+=("kafka-$number")
    done
    choose_ports "${brothers[@]}"
}

kafka_settings() {
    local number=${1#kafka-} port size voters='' voter replicas in_sync=1
    port=$(port_of "$1")
    size=$(<"$set_dir/kafka-brokers")
    for ((voter = 1; voter <= size; voter++)); do
        voters+=${voters:+,}$voter@127.0.0.1:$(($(port_of "kafka-$voter") + 1))
    done
    replicas=$size
    [[ $size -eq 1 ]] || in_sync=2
    cat <<SETTINGS
process.roles=broker,controller
node.id=$number
controller.quorum.voters=$voters
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$port
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$set_dir/$1/data
# A node that was killed may only return when its old session has ended: 9 s by default.
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=4000
auto.create.topics.enable=false
default.replication.factor=$replicas
min.insync.replicas=$in_sync
group.initial.rebalance.delay.ms=0
# Few partitions of the internal topics: they are made at the first use, and each takes time and files.
offsets.topic.num.partitions=8
offsets.topic.replication.factor=$replicas
transaction.state.log.num.partitions=8
transaction.state.log.replication.factor=$replicas
transaction.state.log.min.isr=$in_sync
share.coordinator.state.topic.num.partitions=8
share.coordinator.state.topic.replication.factor=$replicas
share.coordinator.state.topic.min.isr=$in_sync
SETTINGS
}

# Asks the broker which brokers it knows: a Metadata request, version 4, about no topic, as Kafka's protocol
# writes it. Spoken here because Kafka's own tools take a second to start. The answer is a length, the
# request's number, a delay, and the count of brokers, four bytes each.
kafka_answers() {
    local words
    words=$(
        exec 2>/dev/null
        exec 3<>"/dev/tcp/127.0.0.1/$(port_of "$1")" || exit 1
        printf '\0\0\0\x17\0\x03\0\x04\0\0\0\x01\0\x08services\0\0\0\0\0' >&3
        timeout 2 head --bytes 16 <&3 | od --address-radix=n --format=x1 --width=16
    ) || return 1
    read -ra words <<<"$words"
    [[ ${#words[@]} -eq 16 ]] && ((16#${words[15]} >= $(kafka_running)))
}

# How many brokers of the set should know each other. A paused one is soon given up by the others.
kafka_running() {
    local number running=0
    for number in 1 2 3; do
        if is_alive "kafka-$number" && ! is_paused "kafka-$number"; then
            running=$((running + 1))
        fi
    done
    echo "$running"
}

kafka_address() {
    echo "127.0.0.1:$(port_of "$1")"
}
