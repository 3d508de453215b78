//! While something is away, a relay says so once for each of its pauses, which grow, and says nothing else.

use std::{collections::HashMap, time::Duration};

use tidings_backbone::{
    limits::{RELAY_BACKOFF_MAX, RELAY_BACKOFF_MIN},
    relay::State,
};

use super::{
    poll,
    servers::{Own, on_own_of_both},
    whole::{self, numbers},
    world::within,
};
use crate::{
    said::{Line, Said},
    sinks::broker::{committed, local},
};

on_own_of_both!(
    a_relay_whose_database_is_away_says_so_once_for_each_pause,
    a_poller_whose_database_is_away_says_so_once_for_each_pause_and_so_does_each_of_its_shards,
);

/// Waits until there are so many lines by somebody.
pub(crate) async fn until(said: &Said, by: &str, lines: usize) {
    let count = || said.lines().iter().filter(|line| line.by == by).count();
    within(async {
        while count() < lines {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Each line tells of the pause that is the next one of whoever says it.
pub(crate) fn assert_one_for_each_pause(lines: &[Line], text: &str) {
    let mut steps: HashMap<&str, u32> = HashMap::new();
    for line in lines {
        let step = steps.entry(&line.by).or_default();
        let longest = (RELAY_BACKOFF_MIN.as_millis() << *step).min(RELAY_BACKOFF_MAX.as_millis());
        *step += 1;
        let is_next = line.pause_ms.is_some_and(|pause| (longest / 2..=longest).contains(&pause));
        assert!(is_next && line.text == text, "{line:?} of {lines:?}");
    }
}

const SOURCE_AWAY: &str = "the relay's source is away; trying again";
pub(crate) const SINK_AWAY: &str = "the relay's sink is away; trying again";

/// Two times: the second begins with a short pause again.
async fn assert_says_little(own: &mut Own, said: &Said, mut relayed: impl AsyncFnMut(u64)) {
    let group = own.world.group.clone();
    for start in [10, 20] {
        own.world.emit(start - 10..start).await;
        relayed(start).await;
        let before = said.lines().len();
        own.kill().await;
        until(said, &group, said.lines()[..before].iter().filter(|line| line.by == group).count() + 6).await;
        assert_one_for_each_pause(&said.lines()[before..], SOURCE_AWAY);
        own.start().await;
    }
    own.world.emit(20..30).await;
    relayed(30).await;
}

async fn a_relay_whose_database_is_away_says_so_once_for_each_pause(mut own: Own) {
    let (log, said) = (local(), Said::by(&own.world.group));
    let mut relay = whole::Running::start(&own.world, &log).await;
    assert_says_little(&mut own, &said, async |records| relay.until_records(records).await).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..30).collect::<Vec<_>>());
}

async fn a_poller_whose_database_is_away_says_so_once_for_each_pause_and_so_does_each_of_its_shards(mut own: Own) {
    let (log, said) = (local(), Said::by(&own.world.group));
    let mut relay = poll::Running::start(&own.world, &log);
    assert_says_little(&mut own, &said, async |records| relay.until(records).await).await;
    within(relay.handle.wait_for(|status| status.state == State::Active)).await.unwrap();
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..30).collect::<Vec<_>>());
}
