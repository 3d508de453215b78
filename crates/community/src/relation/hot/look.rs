//! Looking at what is kept without serving it, and dropping it: for reconciliation.

use tidings_backbone::Result;
use tidings_event::Timestamp;

use super::{
    Hot, ListName,
    counters::{changes_of, decode},
    list::{Line, number, read_member},
};
use crate::{UserId, relation::counters::Counters};

/// A list that would be served while its number is the database's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::relation) struct KeptList {
    pub(in crate::relation) changes: i64,
    /// Whether it is all of the list, and not its beginning alone.
    pub(in crate::relation) is_whole: bool,
    pub(in crate::relation) lines: Vec<Line>,
}

/// What is kept of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::relation) struct Kept {
    pub(in crate::relation) followers: Option<KeptList>,
    pub(in crate::relation) followings: Option<KeptList>,
    /// With the number of changes that they were read at.
    pub(in crate::relation) counters: Option<(Counters, i64)>,
}

type Answer = (Vec<Vec<u8>>, Vec<Vec<u8>>, Vec<u8>);

impl Hot {
    /// All that is kept of a user and would be served.
    pub(in crate::relation) async fn look(&self, user: UserId) -> Result<Kept> {
        let call = self
            .0
            .look
            .call()
            .key(self.list_key(ListName::Followers, user))
            .key(self.list_key(ListName::Followings, user))
            .key(self.counters_key(user))
            .key(self.0.redis.key("uf:epoch"));
        let (followers, followings, counters): Answer = self.0.redis.call("looking at hot state", &call).await?;
        Ok(Kept {
            followers: read_list(&followers),
            followings: read_list(&followings),
            counters: decode(&counters).and_then(|(found, _)| Some((found, changes_of(&counters)?))),
        })
    }

    /// Drops all that is kept of a user.
    pub(in crate::relation) async fn drop_kept(&self, user: UserId) -> Result<()> {
        let call = self
            .0
            .drop
            .call()
            .key(self.list_key(ListName::Followers, user))
            .key(self.list_key(ListName::Followings, user))
            .key(self.counters_key(user));
        self.0.redis.call::<i64>("dropping hot state", &call).await.map(drop)
    }

    /// A number that is another one at each call.
    pub(in crate::relation) fn lot(&self) -> u64 {
        self.token().iter().rev().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

fn read_list(answer: &[Vec<u8>]) -> Option<KeptList> {
    let [changes, whole, lines @ ..] = answer else { return None };
    let line = |line: &[Vec<u8>]| Some((read_member(&line[0])?, Timestamp(number(&line[1])?)));
    let lines = lines.chunks_exact(2).map(line).collect::<Option<Vec<Line>>>()?;
    Some(KeptList { changes: number(changes)?, is_whole: whole == b"1", lines })
}
