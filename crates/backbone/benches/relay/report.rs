//! What was measured, as a table.

use crate::{
    child::Outcome,
    debezium,
    measure::{Found, Plan, Rounds, SHAPES, Timed},
    table::Table,
};

pub(crate) fn print(plan: &Plan, found: &Found) {
    let rate = |seconds: f64| plan.rows as f64 / seconds;
    let mut table = Table::default();
    let binlog = found.binlog.best();
    let read = rate(binlog.seconds);
    table.figure(
        "ceiling: raw binlog read",
        format!("{read:.0}/s"),
        format!("{:.0} MB/s, {} binlog events for {} rows", megabytes(binlog), binlog.events, plan.rows),
        "–",
    );
    let produced = rate(*found.produce.best());
    let bytes = found.record_bytes as f64;
    let of_bytes = |seconds: f64| format!("{:.0} MB/s before compression, lz4", bytes / seconds / 1e6);
    table.figure("ceiling: raw Kafka produce", format!("{produced:.0}/s"), of_bytes(*found.produce.best()), "–");
    let in_transactions = rate(*found.produce_in_transactions.best());
    table.figure(
        "raw Kafka produce in transactions",
        format!("{in_transactions:.0}/s"),
        of_bytes(*found.produce_in_transactions.best()),
        "–",
    );
    for (rounds, (_, name)) in found.reading.iter().zip(SHAPES) {
        let made = rate(rounds.best().seconds);
        table.ratio(&format!("relay before Kafka, {name}"), made, ("raw binlog read", read), "100,000/s");
    }
    let relayed = rate(found.relay.best().seconds);
    let slower = if read < produced { ("raw binlog read", read) } else { ("raw Kafka produce", produced) };
    table.ratio("relay into Kafka", relayed, slower, "0.7x");
    table.ratio("relay into Kafka", relayed, ("raw Kafka produce in transactions", in_transactions), "–");
    memory_and_time(&mut table, "relay into Kafka", &found.relay);
    memory_and_time(&mut table, "relay before Kafka", &found.reading[0]);
    if let Some((relay, engine)) = &found.peers {
        peers(&mut table, relay, engine, (rate(found.reading[2].best().seconds), rate(relay.best().seconds)), &rate);
    }
    table.print();
}

fn megabytes(read: &crate::ceilings::Read) -> f64 {
    read.bytes as f64 / read.seconds / 1e6
}

fn memory_and_time(table: &mut Table, what: &str, rounds: &Rounds<Outcome>) {
    let best = rounds.best();
    let cpu = format!(
        "processor: {:.2} s reading, formatting, handing over; {:.2} s Kafka's client; of {:.2} s",
        best.cpu.others,
        best.cpu.kafka_client,
        best.seconds()
    );
    let peak = rounds.all().iter().map(|outcome| outcome.peak_kib).fold(0.0, f64::max);
    let target = if best.cpu.kafka_client > 0.0 { "< 40 MB" } else { "–" };
    table.figure(&format!("{what}: peak memory"), mebibytes(peak), cpu, target);
}

fn peers(
    table: &mut Table,
    relay: &Rounds<Outcome>,
    engine: &Rounds<debezium::Outcome>,
    (reading, relayed): (f64, f64),
    rate: &impl Fn(f64) -> f64,
) {
    let peer = ("Debezium's engine into nothing", rate(engine.best().seconds));
    table.ratio("relay into Kafka, Debezium router records", relayed, peer, "5x");
    table.ratio("relay before Kafka, Debezium router records", reading, peer, "–");
    let peak = |peaks: &mut dyn Iterator<Item = f64>| peaks.fold(0.0, f64::max);
    let own = peak(&mut relay.all().iter().map(|outcome| outcome.peak_kib));
    // Its smallest, so that nothing is laid at its door.
    let its = engine.all().iter().map(|outcome| outcome.peak_kib).fold(f64::MAX, f64::min);
    table.figure(
        "relay into Kafka, Debezium router records: peak memory",
        mebibytes(own),
        format!("Debezium's engine, {}: {}, {:.1} times as much", debezium::HEAP, mebibytes(its), its / own),
        "10 times",
    );
}

fn mebibytes(kib: f64) -> String {
    format!("{:.0} MB", kib / 1024.0)
}
