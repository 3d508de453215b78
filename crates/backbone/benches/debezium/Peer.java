import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Executors;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.MemoryOffsetBackingStore;

/**
 * Debezium's embedded engine with the outbox event router, from a position of the binlog on, into nothing:
 * its records are counted as the objects that they are, and become no bytes.
 *
 * Arguments: kind (mariadb or mysql), host, port, user, password, database, table, file, offset, GTIDs,
 * records.
 * Prints `records seconds peakKiB`: the time from the first record to the last one.
 */
public final class Peer {
    private static final String NAME = "peer";

    private Peer() {}

    /** Where the connector is told to begin. */
    public static final class Noted extends MemoryOffsetBackingStore {
        @Override
        public void configure(WorkerConfig config) {
            super.configure(config);
            String key = "[\"" + NAME + "\",{\"server\":\"" + NAME + "\"}]";
            String value = "{\"file\":\"" + System.getProperty("peer.file") + "\",\"pos\":"
                + System.getProperty("peer.offset") + ",\"gtids\":\"" + System.getProperty("peer.gtids") + "\"}";
            data.put(bytes(key), bytes(value));
        }

        @Override
        public Set<Map<String, Object>> connectorPartitions(String connector) {
            return Set.of();
        }

        private static ByteBuffer bytes(String text) {
            return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
        }
    }

    /** Counts, and ends the process after the last record. */
    private static final class Counter
            implements DebeziumEngine.ChangeConsumer<ChangeEvent<SourceRecord, SourceRecord>> {
        private final long wanted;
        private long seen;
        private long firstAt;

        Counter(long wanted) {
            this.wanted = wanted;
        }

        @Override
        public void handleBatch(
                List<ChangeEvent<SourceRecord, SourceRecord>> records,
                DebeziumEngine.RecordCommitter<ChangeEvent<SourceRecord, SourceRecord>> committer)
                throws InterruptedException {
            long before = System.nanoTime();
            for (ChangeEvent<SourceRecord, SourceRecord> record : records) {
                if (record.value().topic().startsWith("outbox.event.")) {
                    firstAt = seen == 0 ? before : firstAt;
                    seen++;
                }
                committer.markProcessed(record);
            }
            committer.markBatchFinished();
            if (seen >= wanted) {
                double seconds = (System.nanoTime() - firstAt) / 1e9;
                System.out.println(seen + " " + seconds + " " + peakKib());
                Runtime.getRuntime().halt(0);
            }
        }

        private static String peakKib() {
            try {
                for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                    if (line.startsWith("VmHWM:")) {
                        return line.replaceAll("[^0-9]", "");
                    }
                }
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
            return "0";
        }
    }

    public static void main(String[] args) {
        String kind = args[0];
        System.setProperty("peer.file", args[7]);
        System.setProperty("peer.offset", args[8]);
        System.setProperty("peer.gtids", args[9]);
        boolean isMariadb = kind.equals("mariadb");
        Properties properties = new Properties();
        properties.putAll(Map.ofEntries(
            Map.entry("name", NAME),
            Map.entry("topic.prefix", NAME),
            Map.entry("connector.class", isMariadb
                ? "io.debezium.connector.mariadb.MariaDbConnector" : "io.debezium.connector.mysql.MySqlConnector"),
            Map.entry("offset.storage", Noted.class.getName()),
            // The schema is read from the tables, and the stream begins at the offset.
            Map.entry("snapshot.mode", "recovery"),
            Map.entry("schema.history.internal", "io.debezium.relational.history.MemorySchemaHistory"),
            Map.entry("schema.history.internal.store.only.captured.tables.ddl", "true"),
            Map.entry("database.hostname", args[1]),
            Map.entry("database.port", args[2]),
            Map.entry("database.user", args[3]),
            Map.entry("database.password", args[4]),
            Map.entry("database.server.id", "77101"),
            Map.entry("database.ssl.mode", isMariadb ? "disable" : "preferred"),
            Map.entry("database.include.list", args[5]),
            Map.entry("table.include.list", args[5] + "." + args[6]),
            Map.entry("include.schema.changes", "false"),
            Map.entry("tombstones.on.delete", "false"),
            Map.entry("transforms", "outbox"),
            Map.entry("transforms.outbox.type", "io.debezium.transforms.outbox.EventRouter"),
            Map.entry("transforms.outbox.table.field.event.id", "event_id"),
            Map.entry("transforms.outbox.table.field.event.key", "event_key"),
            Map.entry("transforms.outbox.table.field.event.payload", "payload"),
            Map.entry("transforms.outbox.route.by.field", "aggregate_type")));
        DebeziumEngine<ChangeEvent<SourceRecord, SourceRecord>> engine = DebeziumEngine.create(Connect.class)
            .using(properties)
            .notifying(new Counter(Long.parseLong(args[10])))
            .using((success, message, error) -> {
                System.err.println("the engine has ended: " + message + (error == null ? "" : ": " + error));
                Runtime.getRuntime().halt(1);
            })
            .build();
        Executors.newSingleThreadExecutor().execute(engine);
    }
}
