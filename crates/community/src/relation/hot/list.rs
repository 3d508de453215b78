//! Lists of users in Redis: read, loaded, fenced.

use tidings_backbone::{
    Result,
    redis::{Call, Server},
};
use tidings_event::Timestamp;

use super::{Hot, millis};
use crate::{
    UserId, limits,
    relation::read::{Page, Start},
    telemetry,
};

/// Which list of a user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relation) enum ListName {
    /// Who follows him: from the mirror.
    Followers,
    /// Whom he follows: from facts.
    Followings,
}

/// A line of a list: somebody, and since when the follow holds.
pub(in crate::relation) type Line = (UserId, Timestamp);

/// What Redis has of a list.
#[derive(Debug)]
pub(in crate::relation) enum Found {
    /// Lines as wanted, fewer only at the end of the list; valid at this number of changes. So many
    /// lines of the list are kept.
    Lines { changes: i64, kept: u64, lines: Vec<Line> },
    /// Nothing, and the caller may load it.
    Load(Load),
    /// Nothing, and nothing is to be done.
    Nothing,
}

/// Leave to load a list, valid until somebody fences it. What is read for it must be read after this
/// was given.
#[derive(Debug)]
pub(in crate::relation) struct Load {
    server: Server,
    token: [u8; 16],
    epoch: String,
}

impl ListName {
    const fn key(self) -> &'static str {
        match self {
            Self::Followers => "uf:fans",
            Self::Followings => "uf:flws",
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::Followers => "followers",
            Self::Followings => "followings",
        }
    }
}

impl Hot {
    /// Looks for one line more than `page` has, in the list of `owner`. A list that was read at
    /// `known_old` counts as none.
    pub(in crate::relation) async fn read_list(
        &self,
        name: ListName,
        owner: UserId,
        page: &Page,
        known_old: Option<i64>,
    ) -> Found {
        let found = self.try_read_list(name, owner, page, known_old).await.unwrap_or(Found::Nothing);
        let outcome = match &found {
            Found::Lines { .. } => "found",
            Found::Load(_) => "load",
            Found::Nothing => "nothing",
        };
        telemetry::hot_list(name.told(), outcome);
        found
    }

    async fn try_read_list(&self, name: ListName, owner: UserId, page: &Page, known_old: Option<i64>) -> Result<Found> {
        let server = self.0.redis.server().await?;
        let token = self.token();
        let call = self.0.read_list.call();
        let call = self.list_keys(call, name, owner);
        let call = match name {
            ListName::Followers => call,
            ListName::Followings => call
                .key(self.0.redis.key(format_args!("{}:{owner}:fence", name.key())))
                .key(self.0.redis.key("uf:epoch")),
        };
        let call = call.arg(&token).arg(millis(limits::HOT_LOAD_TIME_MAX)).arg(page.limit() + 1);
        let call = match page.start() {
            Start::Offset(offset) => call.arg("offset").arg(offset).arg(""),
            Start::After(mark) => call.arg("after").arg(mark.at.0).arg(&member(mark.user)),
        };
        let call = call.arg(known_old.map(|changes| changes.to_string()).unwrap_or_default());
        let call = call.arg(server.run_id()).arg(millis(self.0.options.fence_time));
        let answer: Vec<Vec<u8>> = server.call("reading a list", &call).await?;
        Ok(read_answer(&answer, server, token).unwrap_or(Found::Nothing))
    }

    /// Keeps what was read for `load`: the whole list, or its beginning if there is one line too
    /// many. `changes` is the owner's number in the same snapshot.
    pub(in crate::relation) async fn store_list(
        &self,
        load: &Load,
        name: ListName,
        owner: UserId,
        changes: i64,
        lines: &[Line],
    ) {
        let is_whole = lines.len() <= self.0.options.list_entries_max;
        let Some(packed) = pack(&lines[..lines.len().min(self.0.options.list_entries_max)]) else { return };
        let call = self.list_keys(self.0.store_list.call(), name, owner);
        let call = call.arg(&load.token).arg(changes).arg(u8::from(is_whole)).arg(&load.epoch);
        let call = call.arg(self.keep_ms()).arg(packed);
        // Kept or not, the answer is the database's.
        let kept: Result<u8> = load.server.call("keeping a list", &call).await;
        telemetry::hot_list(name.told(), if kept.is_ok_and(|kept| kept == 1) { "kept" } else { "not_kept" });
    }

    /// Lines to read for a load.
    pub(in crate::relation) fn lines_to_load(&self) -> usize {
        self.0.options.list_entries_max + 1
    }

    /// Ends the lists of whom `owners` follow, before a commit changes them. An error says that they may
    /// still be served.
    pub(in crate::relation) async fn fence_followings(&self, owners: &[UserId]) -> Result<()> {
        let name = ListName::Followings;
        for owners in owners.chunks(limits::HOT_CALL_USERS_MAX) {
            let mut call = self.0.fence_lists.call();
            for owner in owners {
                call = self.list_keys(call, name, *owner);
                call = call.key(self.0.redis.key(format_args!("{}:{owner}:fence", name.key())));
            }
            let call = call.arg(millis(self.0.options.fence_time));
            self.0.redis.call::<()>("fencing lists", &call).await?;
        }
        Ok(())
    }

    fn list_keys<'s>(&self, call: Call<'s>, name: ListName, owner: UserId) -> Call<'s> {
        let key = name.key();
        call.key(self.list_key(name, owner)).key(self.0.redis.key(format_args!("{key}:{owner}:load")))
    }

    pub(super) fn list_key(&self, name: ListName, owner: UserId) -> String {
        self.0.redis.key(format_args!("{}:{owner}", name.key()))
    }
}

/// Reads what `read_list.lua` answers; `None` when it is not that.
fn read_answer(answer: &[Vec<u8>], server: Server, token: [u8; 16]) -> Option<Found> {
    match answer.split_first()? {
        (kind, [changes, kept, lines @ ..]) if kind == b"rows" => {
            let line = |line: &[Vec<u8>]| Some((read_member(&line[0])?, Timestamp(number(&line[1])?)));
            let lines = lines.chunks_exact(2).map(line).collect::<Option<Vec<Line>>>()?;
            Some(Found::Lines { changes: number(changes)?, kept: number(kept)?.try_into().ok()?, lines })
        }
        (kind, [epoch]) if kind == b"load" => {
            Some(Found::Load(Load { server, token, epoch: String::from_utf8(epoch.clone()).ok()? }))
        }
        _ => None,
    }
}

pub(super) fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Ids are not negative, so the order of these bytes is the order of the ids.
pub(super) fn member(user: UserId) -> [u8; 8] {
    user.get().to_be_bytes()
}

pub(super) fn read_member(bytes: &[u8]) -> Option<UserId> {
    UserId::try_from(i64::from_be_bytes(bytes.try_into().ok()?)).ok()
}

/// The largest moment that a score, a floating-point number, has exactly.
const SCORE_MAX: i64 = 1 << 53;

/// A moment in 8 bytes, if a score can have it.
pub(super) fn score(at: Timestamp) -> Option<[u8; 8]> {
    (0..=SCORE_MAX).contains(&at.0).then(|| at.0.to_be_bytes())
}

fn pack(lines: &[Line]) -> Option<Vec<u8>> {
    let mut packed = Vec::with_capacity(16 * lines.len());
    for (user, at) in lines {
        packed.extend(score(*at)?);
        packed.extend(member(*user));
    }
    Some(packed)
}
