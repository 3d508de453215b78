//! The relay of this Tidings: from its own outbox to its own topics.

use std::collections::BTreeMap;

use tidings_backbone::relay::{
    FirstStart, Format, Formatter, Options, Relay, Route, Sink,
    sink::{self, kafka},
};

use crate::{
    Result,
    config::{Config, EventFormat, RelayMode, RelayStart},
    store::Store,
};

/// Puts the relay together. Nothing is connected yet.
pub(super) fn relay(store: &Store, config: &Config) -> Result<Relay> {
    let (kafka, clock) = (&config.kafka, store.clock.clone());
    let mut options = Options::new(config.database.address()?.reveal(), config.relay_group());
    options.first_start = match config.relay.start {
        RelayStart::Earliest => FirstStart::Earliest,
        RelayStart::Latest => FirstStart::Latest,
    };
    let place = sink::Options::Kafka(kafka::Options {
        brokers: kafka.brokers.clone(),
        properties: kafka.properties.reveal().clone(),
        prefix: kafka.prefix.clone(),
        // Those of this product are made at start, by every role.
        topics: Vec::new(),
        partitions: kafka.partitions,
        replicas: kafka.replicas,
    });
    let sink = Sink::open(&place, config.relay_group(), &clock)?;
    let formatter = Formatter::new(&routes(config), &kafka.prefix, clock.clone(), sink.record_bytes_max())?;
    Ok(match config.relay.mode {
        RelayMode::Binlog => Relay::new(options, formatter, sink, clock)?,
        RelayMode::Poll => Relay::polling(options, formatter, place, clock)?,
    })
}

/// Families with a format of their own first: the first route that fits decides.
fn routes(config: &Config) -> Vec<Route> {
    let mut by_format: BTreeMap<&'static str, (Format, Vec<String>)> = BTreeMap::new();
    for (family, event_format) in &config.relay.formats {
        let (name, format) = format(*event_format);
        by_format.entry(name).or_insert((format, Vec::new())).1.push(family.clone());
    }
    let own = by_format.into_values().map(|(format, families)| Route { families, format, ..Route::default() });
    let (_, usual) = format(config.relay.format);
    own.chain([Route { format: usual, ..Route::default() }]).collect()
}

fn format(format: EventFormat) -> (&'static str, Format) {
    match format {
        EventFormat::CloudEventsJson => ("json", Format::CloudeventsJson(Default::default())),
        EventFormat::CloudEventsProtobuf => ("protobuf", Format::CloudeventsProtobuf(Default::default())),
    }
}
