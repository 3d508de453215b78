//! What is committed and not in the log for too long.

use tidings_event::Timestamp;

use super::{Compared, Difference};
use crate::{Result, log::KafkaLog};

const KIND: &str = "event not relayed";

/// Looks for events that were committed before `late` and are not in the log; younger ones are on their way.
pub(super) async fn check(log: &KafkaLog, late: Timestamp) -> Result<Compared> {
    let mut compared = Compared::of("relay");
    let relayed = log.relayed().await?;
    (compared.shards, compared.rows) = (1, relayed.behind.unsigned_abs());
    let Some(oldest) = relayed.oldest.filter(|oldest| *oldest < late) else {
        compared.lagging = relayed.behind.unsigned_abs();
        return Ok(compared);
    };
    let found = log.left_before(relayed.published, late).await?;
    let total = found.count.clamp(1, relayed.behind.max(1)).unsigned_abs();
    compared.shards_differing = 1;
    compared.lagging = relayed.behind.unsigned_abs().saturating_sub(total);
    let difference = |subject: String, at: Timestamp| Difference {
        kind: KIND.into(),
        subject,
        expected: format!("in the log soon after {at}"),
        found: "not there".to_owned(),
    };
    compared.differences = found.first.iter().map(|(id, at)| difference(format!("event {id}"), *at)).collect();
    if compared.differences.is_empty() {
        compared.differences.push(difference("an event".to_owned(), oldest));
    }
    compared.kinds.insert(KIND, total);
    compared.note("the relay sends these events once it runs: see `tidings lag` and the log of the relay");
    Ok(compared)
}
