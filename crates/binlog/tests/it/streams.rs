//! Events as servers send them: checksums, the first rotate event, heartbeats.

use tidings_binlog::{Decoder, Error, Event, EventType, Events, Flavor, Header, checksum};

use crate::samples::{ALL, each, find, line, rows, sample};

const STREAMS: [&str; 5] =
    ["mariadb/stream", "mariadb/stream_none", "mysql/stream", "mysql/stream_none", "mysql/stream_v2"];

#[test]
fn the_first_rotate_names_the_file_exactly_whether_a_checksum_follows_it_or_not() {
    for name in STREAMS {
        let rotates = find(name, |event| match event {
            Event::Rotate(rotate) => Some((rotate.file.to_owned(), rotate.position)),
            _ => None,
        });
        let file = |number| (format!("mysql-bin.{number:06}"), 4);
        assert_eq!(rotates[0], file(1), "{name}");
        // The end of the first file, and the start of the second.
        assert_eq!(rotates[1..], [file(2), file(2)], "{name}");
    }
}

#[test]
fn heartbeats_tell_where_the_stream_is() {
    for (name, position) in [("mariadb/stream", 546), ("mysql/stream", 470), ("mysql/stream_v2", 470)] {
        let heartbeats = find(name, |event| match event {
            Event::Heartbeat(heartbeat) => Some((heartbeat.file.to_owned(), heartbeat.position)),
            _ => None,
        });
        assert_eq!(heartbeats, vec![("mysql-bin.000002".to_owned(), position); 2], "{name}");
    }
}

#[test]
fn a_mariadb_heartbeat_beyond_four_gib_has_its_position_before_the_name() {
    let mut body = (5u64 << 30).to_le_bytes().to_vec();
    body.extend_from_slice(b"bin.000009");
    let header = header(EventType::HEARTBEAT, body.len());
    let mut decoder = Decoder::new(Flavor::Mariadb);
    let Event::Heartbeat(heartbeat) = decoder.decode(&header, &body).unwrap() else {
        panic!("no heartbeat");
    };
    assert_eq!((heartbeat.file, heartbeat.position), ("bin.000009", 5 << 30));
}

#[test]
fn it_is_told_whether_events_have_checksums_and_who_wrote_them() {
    let formats = |name| {
        find(name, |event| match event {
            Event::FormatDescription(format) => Some((format.server_version.to_owned(), format.has_checksums)),
            _ => None,
        })
    };
    assert_eq!(formats("mariadb/stream")[0], ("10.11.19-MariaDB-0+deb12u1-log".to_owned(), Some(true)));
    assert_eq!(formats("mysql/stream")[0].0, "9.7.4-2");
    let created = find("mysql/stream", |event| match event {
        Event::FormatDescription(format) => Some(format.created > 0),
        _ => None,
    });
    assert_eq!(created, [true, false], "only the first file of a server's run says when it began");
}

#[test]
fn an_event_whose_checksum_the_client_cut_off_is_the_same_event() {
    for name in STREAMS {
        let (flavor, bytes) = sample(name);
        let (mut whole, mut cut) = (Decoder::new(flavor), Decoder::new(flavor));
        let mut has_checksums = false;
        for event in Events::new(bytes) {
            let (header, body) = event.unwrap();
            // As mysql_async does: of the format description the algorithm too, of the events before it
            // nothing.
            let short = match header.event_type {
                EventType::FORMAT_DESCRIPTION => {
                    has_checksums = body[body.len() - 5] == 1;
                    &body[..body.len() - 5]
                }
                _ if has_checksums => &body[..body.len() - 4],
                _ => body,
            };
            let (whole, cut) = (whole.decode(&header, body).unwrap(), cut.decode(&header, short).unwrap());
            if !matches!(whole, Event::FormatDescription(_)) {
                assert_eq!(format!("{whole:?}"), format!("{cut:?}"), "{name}");
            }
            if has_checksums && header.event_type != EventType::FORMAT_DESCRIPTION {
                assert_eq!(checksum::of(&header, short).to_le_bytes(), body[short.len()..], "{name}");
            }
        }
    }
}

#[test]
fn a_changed_bit_anywhere_in_an_event_is_noticed() {
    let (flavor, bytes) = sample("mariadb/texts");
    let mut events = Events::new(bytes).map(Result::unwrap);
    let (format, format_body) = events.next().unwrap();
    let (header, body) = events.find(|(header, _)| header.event_type == EventType::TABLE_MAP).unwrap();
    let mut decoder = Decoder::new(flavor);
    decoder.decode(&format, format_body).unwrap();
    decoder.decode(&header, body).unwrap();
    for bit in 0..body.len() * 8 {
        let mut body = body.to_vec();
        body[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(decoder.decode(&header, &body), Err(Error::Checksum { .. })), "bit {bit}");
    }
    let mut body = format_body.to_vec();
    body[7] ^= 1;
    assert!(matches!(decoder.decode(&format, &body), Err(Error::Checksum { .. })));
}

#[test]
fn a_whole_event_is_verified_as_it_lies_in_its_file() {
    let (_, bytes) = sample("mysql/numbers");
    let mut rest = bytes;
    while !rest.is_empty() {
        let header = Header::parse(rest).unwrap();
        let (event, after) = rest.split_at(header.event_size as usize);
        assert!(checksum::verify(event), "{header:?}");
        assert!(!checksum::verify(&event[..event.len() - 1]), "{header:?}");
        rest = after;
    }
    assert!(!checksum::verify(&[]));
    assert!(!checksum::verify(&bytes[..Header::LENGTH]));
}

#[test]
fn an_event_of_another_size_than_its_header_says_is_refused() {
    let header = header(EventType::XID, 8);
    let mut decoder = Decoder::new(Flavor::Mysql);
    for size in [0, 3, 7, 9, 12] {
        let refused = decoder.decode(&header, &[0; 12][..size]);
        assert!(matches!(refused, Err(Error::Size { expected: 27, .. })), "{size}: {refused:?}");
    }
    assert!(matches!(decoder.decode(&header, &[0; 8]), Ok(Event::Commit(0))));
}

#[test]
fn unknown_events_are_loud_unless_the_server_calls_them_ignorable() {
    let mut decoder = Decoder::new(Flavor::Mysql);
    let mut unknown = header(EventType(99), 3);
    assert!(matches!(decoder.decode(&unknown, b"new"), Ok(Event::Unknown(EventType(99)))));
    unknown.flags = Header::IGNORABLE;
    assert!(matches!(decoder.decode(&unknown, b"new"), Ok(Event::Ignored(EventType(99)))));
}

#[test]
fn real_servers_send_nothing_that_is_unknown_here() {
    for (name, ..) in ALL {
        each(name, |header, event| assert!(!matches!(event, Event::Unknown(_)), "{name}: {header:?}"));
    }
}

#[test]
fn headers_are_written_as_they_were_read() {
    for (name, ..) in ALL {
        let (_, bytes) = sample(name);
        let header = Header::parse(bytes).unwrap();
        assert_eq!(header.to_bytes(), bytes[..Header::LENGTH], "{name}");
    }
}

#[test]
fn a_server_that_knows_more_events_than_there_are_numbers_breaks_nothing() {
    let (flavor, bytes) = sample("mysql/numbers");
    let (mut header, body) = Events::new(bytes).next().unwrap().unwrap();
    // Without its algorithm and checksum, and with header lengths that go on and on.
    let body = [&body[..body.len() - 5], &[0; 300]].concat();
    header.event_size = (Header::LENGTH + body.len() + 5) as u32;
    let mut decoder = Decoder::new(flavor);
    let format = decoder.decode(&header, &body);
    assert!(matches!(format, Ok(Event::FormatDescription(format)) if format.has_checksums.is_none()));
}

#[test]
fn an_incident_tells_what_the_server_says() {
    let body = b"\x01\0\x0cevents lost?rest";
    let mut decoder = Decoder::new(Flavor::Mariadb);
    let event = decoder.decode_inner(&header(EventType::INCIDENT, body.len()), body).unwrap();
    assert!(matches!(event, Event::Incident { kind: 1, message: b"events lost?" }), "{event:?}");
}

#[test]
fn rows_behind_the_beginning_of_an_encrypted_file_are_read_as_the_server_sends_them_in_clear_text() {
    let (flavor, bytes) = sample("mariadb/texts");
    // Behind the format description, as in the file: the scheme, the version of the key, and a nonce.
    let (_, rest) = bytes.split_at(Header::parse(bytes).unwrap().event_size as usize);
    let body = [&[1][..], &7u32.to_le_bytes(), b"twelve bytes"].concat();
    let header = header(EventType::MARIADB_START_ENCRYPTION, body.len() + checksum::LENGTH);
    let checksum = checksum::of(&header, &body).to_le_bytes();
    let format = &bytes[..bytes.len() - rest.len()];
    let stream = [format, &header.to_bytes(), &body, &checksum, rest].concat();

    let mut decoder = Decoder::new(flavor);
    let (mut begins, mut read) = (0, Vec::new());
    for event in Events::new(&stream) {
        let (header, body) = event.unwrap();
        match decoder.decode(&header, body).unwrap() {
            Event::StartEncryption => begins += 1,
            Event::Rows(rows) => read.extend(rows.reader().map(|row| line(&rows, &row.unwrap()))),
            _ => {}
        }
    }
    assert_eq!((begins, read), (1, rows("mariadb/texts")));
}

/// The header of an event that has no checksum.
pub(crate) fn header(event_type: EventType, body_bytes: usize) -> Header {
    let event_size = (Header::LENGTH + body_bytes) as u32;
    Header { timestamp: 0, event_type, server_id: 1, event_size, next_position: 0, flags: 0 }
}
