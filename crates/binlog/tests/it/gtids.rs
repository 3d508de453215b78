//! GTIDs, in events and as text.

use proptest::prelude::*;
use tidings_binlog::{
    Error, Event,
    gtid::{
        mariadb,
        mysql::{self, Set, Source, Tag},
    },
};

use crate::samples::find;

#[test]
fn mariadb_events_tell_domain_server_and_sequence() {
    let gtids = find("mariadb/gtids", |event| match event {
        Event::MariadbGtid(gtid) => Some(format!("{} {}", gtid.gtid, gtid.is_transactional)),
        _ => None,
    });
    // The last one is of a table without transactions.
    assert_eq!(gtids, ["0-1-1 true", "5-1-1 true", "5-77-2 true", "0-77-2 false"]);
}

#[test]
fn a_position_that_lacks_a_domain_takes_it_from_the_list_and_keeps_what_it_has() {
    let lists = find("mariadb/gtids_2", |event| match event {
        Event::GtidList(list) => Some(list.clone()),
        _ => None,
    });
    let list = &lists[0];
    assert_eq!(list.len(), 4, "two servers in each of two domains");
    let mut position: mariadb::Position = "5-1-100".parse().unwrap();
    position.add_missing(list);
    assert_eq!(position.to_string(), "0-77-2,5-1-100");
    // The last of a domain is the newest, though its servers come in any order.
    assert_eq!(list.iter().copied().collect::<mariadb::Position>().to_string(), "0-77-2,5-77-2");
}

#[test]
fn mariadb_positions_are_read_and_written() {
    let position: mariadb::Position = " 7-1-5,\n0-2-18446744073709551615 ".parse().unwrap();
    assert_eq!(position.to_string(), "0-2-18446744073709551615,7-1-5");
    assert!(position.contains("7-9-5".parse().unwrap()) && !position.contains("7-1-6".parse().unwrap()));
    assert!(!position.contains("8-1-1".parse().unwrap()), "of a domain that is not known");
    assert!("".parse::<mariadb::Position>().unwrap().is_empty());
    for wrong in ["1-2", "1-2-3-4", "a-1-1", "-1-1-1", "+1-1-1", "1-1-", "4294967296-1-1", "1-1-1,", "1-1-1,1-2-2"] {
        assert!(matches!(wrong.parse::<mariadb::Position>(), Err(Error::Gtid { .. })), "{wrong}");
    }
}

#[test]
fn mysql_events_tell_uuid_tag_and_number() {
    let gtids = find("mysql/gtids", |event| match event {
        Event::MysqlGtid(gtid) => Some(gtid.gtid.to_string()),
        _ => None,
    });
    let (server, _) = gtids[0].split_once(':').unwrap();
    let other = "11111111-2222-3333-4444-555555555555";
    let expected = [
        format!("{server}:1"),
        format!("{server}:some_tag:1"),
        format!("{other}:7"),
        format!("{other}:other:9223372036854775806"),
    ];
    assert_eq!(gtids, expected);
    // What a server says was in its first file is what was in it.
    let previous = find("mysql/gtids_2", |event| match event {
        Event::PreviousGtids(set) => Some(set.clone()),
        _ => None,
    });
    let mut set = Set::default();
    gtids.iter().for_each(|gtid| set.insert(&gtid.parse().unwrap()));
    assert_eq!(previous, [set]);
    let expected = format!("{server}:1:some_tag:1,{other}:7:other:9223372036854775806");
    assert_eq!(previous[0].to_string(), expected);
}

#[test]
fn mysql_sets_are_read_leniently_and_written_canonically() {
    let a = "3E11FA47-71CA-11E1-9E33-C80AA9429562";
    let lower = a.to_lowercase();
    let text = format!("{a}:7:1-3:2-5:Tag_1:4-9 : 10,\n{lower}:other:1, 00000000-0000-0000-0000-000000000000:1-1");
    let set: Set = text.parse().unwrap();
    let expected = format!("00000000-0000-0000-0000-000000000000:1,{lower}:1-5:7:other:1:tag_1:4-10");
    assert_eq!(set.to_string(), expected);
    assert_eq!(expected.parse::<Set>().unwrap(), set);
    let with = |part: &str| format!("{a}:{part}");
    for wrong in ["0", "1-", "5-x", "+5", "9223372036854775807", "2tag:1", "a-b:1", &"t".repeat(33)] {
        assert!(matches!(with(wrong).parse::<Set>(), Err(Error::Gtid { .. })), "{wrong}");
    }
    for wrong in ["1:1", "3E11FA4771CA11E19E33C80AA9429562:1", "x"] {
        assert!(wrong.parse::<Set>().is_err(), "{wrong}");
    }
}

fn gtids() -> impl Strategy<Value = Vec<mysql::Gtid>> {
    let gtid = (0u128..2, "|[a-c]", 1u64..40).prop_map(|(uuid, tag, number)| {
        let source = Source { uuid: uuid::Uuid::from_u128(uuid), tag: Tag::new(&tag).unwrap() };
        mysql::Gtid { source, number }
    });
    prop::collection::vec(gtid, 0..60)
}

fn set_of(gtids: &[mysql::Gtid]) -> Set {
    let mut set = Set::default();
    gtids.iter().for_each(|gtid| set.insert(gtid));
    set
}

proptest! {
    #[test]
    fn a_set_holds_what_was_inserted_and_nothing_else(gtids in gtids(), others in gtids()) {
        let set = set_of(&gtids);
        for gtid in gtids.iter().chain(&others) {
            prop_assert_eq!(set.contains(gtid), gtids.contains(gtid), "{}", gtid);
        }
    }

    #[test]
    fn a_set_does_not_depend_on_the_order_and_survives_text_and_bytes(gtids in gtids()) {
        let set = set_of(&gtids);
        let reversed: Vec<mysql::Gtid> = gtids.iter().rev().cloned().collect();
        prop_assert_eq!(&set_of(&reversed), &set);
        prop_assert_eq!(&set.to_string().parse::<Set>().unwrap(), &set);
        prop_assert_eq!(&Set::decode(&set.encode()).unwrap(), &set);
    }

    #[test]
    fn a_union_holds_both_sets(left in gtids(), right in gtids()) {
        let (left, right) = (set_of(&left), set_of(&right));
        let mut union = left.clone();
        union.insert_all(&right);
        prop_assert!(union.contains_all(&left) && union.contains_all(&right));
        prop_assert_eq!(left.contains_all(&right), union == left);
    }

    #[test]
    fn a_gtid_survives_text(gtids in gtids()) {
        for gtid in gtids {
            prop_assert_eq!(gtid.to_string().parse::<mysql::Gtid>().unwrap(), gtid);
        }
    }

    #[test]
    fn a_position_is_the_last_gtid_of_each_domain(
        parts in prop::collection::vec((0u32..4, 0u32..3, 0u64..100), 0..30),
    ) {
        let gtids = parts.iter().map(|(domain_id, server_id, sequence)| mariadb::Gtid {
            domain_id: *domain_id,
            server_id: *server_id,
            sequence: *sequence,
        });
        let position: mariadb::Position = gtids.clone().collect();
        for domain in 0..4 {
            prop_assert_eq!(position.get(domain), gtids.clone().rfind(|gtid| gtid.domain_id == domain));
        }
        prop_assert_eq!(position.to_string().parse::<mariadb::Position>().unwrap(), position);
    }

    #[test]
    fn no_text_and_no_bytes_break_the_readers(
        text in "[0-9a-f:, _-]{0,80}",
        bytes in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        if let Ok(set) = text.parse::<Set>() {
            prop_assert_eq!(set.to_string().parse::<Set>().unwrap(), set);
        }
        if let Ok(position) = text.parse::<mariadb::Position>() {
            prop_assert_eq!(position.to_string().parse::<mariadb::Position>().unwrap(), position);
        }
        if let Ok(set) = Set::decode(&bytes) {
            prop_assert_eq!(Set::decode(&set.encode()).unwrap(), set);
        }
    }
}
