//! One stream of binlog events from the source.

use std::time::Duration;

use futures::StreamExt;
use mysql_async::{BinlogStream, BinlogStreamRequest, Conn, Sid, binlog::events, prelude::Queryable};
use tidings_binlog::{EventType, Flavor, Header, checksum};

use super::place::{Executed, Place};
use crate::{
    Error, Result,
    limits::{RELAY_CONNECT_TIME_MAX, RELAY_HEARTBEATS_MISSED_MAX},
    relay::{
        connection::{Address, in_time},
        refusal::Refusal,
        server,
    },
};

/// A stream from a place on.
pub(super) struct Stream {
    stream: BinlogStream,
    patience: Duration,
    /// Where it was asked to begin, for messages.
    from: String,
}

/// An event as it was received: its header, its body without checksum.
pub(super) struct Received(events::Event);

impl Received {
    pub(super) fn header(&self) -> Header {
        let header = self.0.header();
        Header {
            timestamp: header.timestamp(),
            event_type: EventType(header.event_type_raw()),
            server_id: header.server_id(),
            event_size: header.event_size(),
            next_position: header.log_pos(),
            flags: header.flags_raw(),
        }
    }

    pub(super) fn body(&self) -> &[u8] {
        self.0.data()
    }

    /// Whether the client took it out of a compressed transaction. The compressed transaction itself
    /// came before, and the client swallows errors in it, so only that one is read.
    fn is_from_payload(&self) -> bool {
        !self.0.footer().get_checksum_enabled()
    }

    /// Checks the bytes against the checksum that was sent with them. The client cuts it off unseen. Of
    /// a format description it cuts off more, and the server may have changed a flag.
    fn verify(&self, header: &Header) -> Result<(), tidings_binlog::Error> {
        let Some(found) = self.0.checksum().map(u32::from_le_bytes) else { return Ok(()) };
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            return Ok(());
        }
        let expected = checksum::of(header, self.body());
        if expected == found { Ok(()) } else { Err(tidings_binlog::Error::Checksum { expected, found }) }
    }
}

impl Stream {
    /// Connects and asks for the stream. Errors of the request itself come with the first event.
    ///
    /// `server_id` is the number under which the relay presents itself. A server ends the stream of one
    /// that has the same number, so a relay that took over evicts the one before it.
    pub(super) async fn open(address: &Address, place: &Place, server_id: u32, heartbeat: Duration) -> Result<Self> {
        let mut connection = address.connect().await?;
        let flavor = connection.flavor;
        let by_gtid = !place.executed.is_empty() && server::has_gtids(&mut connection).await?;
        let mut conn = connection.into_conn();
        for sql in preparations(flavor, heartbeat, by_gtid.then_some(&place.executed)) {
            in_time(RELAY_CONNECT_TIME_MAX, conn.query_drop(sql))
                .await?
                .map_err(|source| Error::Source { doing: "preparing the stream of the binlog", source })?;
        }
        let stream = in_time(RELAY_CONNECT_TIME_MAX, request(conn, place, server_id, flavor, by_gtid)).await??;
        let from = match by_gtid {
            true => place.executed.to_string(),
            false => format!("{}:{}", place.file, place.offset),
        };
        Ok(Self { stream, patience: heartbeat * (RELAY_HEARTBEATS_MISSED_MAX + 1), from })
    }

    /// The next event.
    ///
    /// # Errors
    /// The source is silent although it should say that it is alive, has ended the stream, refuses to
    /// give it, or sent bytes that do not have their checksum.
    pub(super) async fn next(&mut self) -> Result<(Header, Received)> {
        loop {
            let event = in_time(self.patience, self.stream.next()).await?;
            let received = match event {
                Some(Ok(event)) => Received(event),
                Some(Err(source)) => return Err(Refusal::error(&self.from, source)),
                None => return Err(Error::SourceEnded),
            };
            if received.is_from_payload() {
                continue;
            }
            let header = received.header();
            received.verify(&header).map_err(|source| Error::Binlog { place: self.from.clone(), source })?;
            return Ok((header, received));
        }
    }
}

/// What the stream's connection is told before the request.
fn preparations(flavor: Flavor, heartbeat: Duration, executed: Option<&Executed>) -> Vec<String> {
    let nanoseconds = heartbeat.as_nanos();
    let mut sql =
        vec![format!("SET @master_heartbeat_period = {nanoseconds}, @source_heartbeat_period = {nanoseconds}")];
    if flavor == Flavor::Mariadb {
        // Without this, GTIDs are sent as BEGIN and the texts of statements as further queries.
        sql.push("SET @mariadb_slave_capability = 4".to_owned());
        if let Some(executed) = executed {
            // The text is made of numbers, commas and hyphens alone.
            sql.push(format!("SET @slave_connect_state = '{executed}', @slave_gtid_strict_mode = 1"));
        }
    } else {
        sql.push("SET @source_binlog_checksum = 'ALL'".to_owned());
    }
    sql
}

async fn request(conn: Conn, place: &Place, server_id: u32, flavor: Flavor, by_gtid: bool) -> Result<BinlogStream> {
    let request = BinlogStreamRequest::new(server_id);
    let request = match (by_gtid, flavor) {
        (true, Flavor::Mariadb) => request.with_pos(4),
        (true, Flavor::Mysql) => request.with_gtid().with_gtid_set(sids(&place.executed.to_string())?).with_pos(4),
        (false, _) => request.with_filename(place.file.as_bytes()).with_pos(place.offset.max(4)),
    };
    conn.get_binlog_stream(request)
        .await
        .map_err(|source| Error::Source { doing: "asking for the stream of the binlog", source })
}

/// A set of GTIDs in the client's form: one entry for each server and tag.
fn sids(set: &str) -> Result<Vec<Sid<'static>>> {
    let mut sids = Vec::new();
    for source in set.split(',').filter(|source| !source.is_empty()) {
        let (uuid, rest) = source.split_once(':').unwrap_or((source, ""));
        let mut entries: Vec<String> = Vec::new();
        for part in rest.split(':') {
            let is_tag = part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
            match entries.last_mut() {
                Some(entry) if !is_tag => *entry = format!("{entry}:{part}"),
                _ => entries.push(format!("{uuid}:{part}")),
            }
        }
        for entry in entries {
            let sid: Sid<'_> = entry.parse().map_err(|source: std::io::Error| Error::Source {
                doing: "writing a set of GTIDs",
                source: mysql_async::Error::Io(source.into()),
            })?;
            sids.push(sid);
        }
    }
    Ok(sids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_gtids_is_parted_by_server_and_tag() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let parts = sids(&format!("{uuid}:1-5:7:alpha:2-3:beta:9,{uuid}:11")).unwrap();
        let tags: Vec<_> = parts.iter().map(|sid| sid.tag().map(|tag| tag.to_string())).collect();
        let intervals: Vec<_> = parts.iter().map(|sid| sid.intervals().len()).collect();
        assert_eq!(tags, [None, Some("alpha".to_owned()), Some("beta".to_owned()), None]);
        assert_eq!(intervals, [2, 1, 1, 1]);
        assert!(sids("").unwrap().is_empty());
    }
}
