//! Cursors: where a list goes on, as text that means nothing to its reader.
//!
//! A cursor carries its version, the list it was made for, a mark in that list and a check sum. It
//! is not a secret and grants nothing: the check sum catches what was cut or mistyped, and a cursor
//! of another list is refused instead of leading somewhere.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tidings_community::{UserId, relation::read::Mark};
use tidings_event::Timestamp;

use super::problem::Problem;
use crate::auth::sha256;

const VERSION: u8 = 1;
const CHECK_BYTES: usize = 4;
/// Longest text that is looked at.
const CHARS_MAX: usize = 200;
/// The parameter that carries a cursor.
pub(super) const PARAMETER: &str = "cursor";

/// A list that is paged by cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListName {
    Followings(UserId),
    Followers(UserId),
    Common(UserId, UserId),
    Events,
}

impl ListName {
    fn code(self) -> u8 {
        match self {
            Self::Followings(_) => 1,
            Self::Followers(_) => 2,
            Self::Common(..) => 3,
            Self::Events => 4,
        }
    }

    fn scope(self) -> Vec<i64> {
        match self {
            Self::Followings(user) | Self::Followers(user) => vec![user.get()],
            Self::Common(user, other) => vec![user.get(), other.get()],
            Self::Events => Vec::new(),
        }
    }
}

/// A place in a list, as a cursor carries it.
pub(super) trait Place: Sized {
    fn numbers(&self) -> Vec<i64>;
    fn from_numbers(numbers: &[i64]) -> Option<Self>;
}

impl Place for Mark {
    fn numbers(&self) -> Vec<i64> {
        vec![self.at.0, self.user.get()]
    }

    fn from_numbers(numbers: &[i64]) -> Option<Self> {
        let [at, user] = *numbers else { return None };
        Some(Self { at: Timestamp(at), user: user.try_into().ok()? })
    }
}

impl Place for UserId {
    fn numbers(&self) -> Vec<i64> {
        vec![self.get()]
    }

    fn from_numbers(numbers: &[i64]) -> Option<Self> {
        let [user] = *numbers else { return None };
        user.try_into().ok()
    }
}

impl Place for tidings_backbone::log::Offset {
    fn numbers(&self) -> Vec<i64> {
        vec![self.0]
    }

    fn from_numbers(numbers: &[i64]) -> Option<Self> {
        let [offset] = *numbers else { return None };
        (offset >= 0).then_some(Self(offset))
    }
}

/// The cursor for `place` in `list`.
pub(super) fn write(list: ListName, place: &impl Place) -> String {
    let mut bytes = vec![VERSION, list.code()];
    for number in list.scope().into_iter().chain(place.numbers()) {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    let check = sha256(&bytes);
    bytes.extend_from_slice(&check[..CHECK_BYTES]);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The place in `list` that a cursor names.
pub(super) fn read<P: Place>(list: ListName, text: &str) -> Result<P, Problem> {
    let numbers = decode(list, text).map_err(|detail| Problem::field(PARAMETER, detail))?;
    let scope = list.scope();
    match numbers.strip_prefix(scope.as_slice()) {
        None => Err(Problem::field(PARAMETER, OTHER_LIST)),
        Some(place) => P::from_numbers(place).ok_or_else(|| Problem::field(PARAMETER, MALFORMED)),
    }
}

const MALFORMED: &str = "is not a cursor; take it from `next_cursor` as it is";
const OTHER_LIST: &str = "was made for another list";

fn decode(list: ListName, text: &str) -> Result<Vec<i64>, &'static str> {
    if text.len() > CHARS_MAX {
        return Err(MALFORMED);
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| MALFORMED)?;
    let (content, check) = bytes.split_at_checked(bytes.len().saturating_sub(CHECK_BYTES)).ok_or(MALFORMED)?;
    if sha256(content)[..CHECK_BYTES] != *check {
        return Err(MALFORMED);
    }
    let (&[version, code], numbers) = content.split_first_chunk().ok_or(MALFORMED)?;
    if version != VERSION {
        return Err("is of a version that is not known here");
    }
    if code != list.code() {
        return Err(OTHER_LIST);
    }
    let (numbers, []) = numbers.as_chunks() else { return Err(MALFORMED) };
    Ok(numbers.iter().map(|number| i64::from_be_bytes(*number)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn user(number: i64) -> UserId {
        number.try_into().unwrap()
    }

    proptest! {
        #[test]
        fn a_cursor_leads_back_to_its_place(owner in 0..=i64::MAX, at: i64, other in 0..=i64::MAX) {
            let mark = Mark { at: Timestamp(at), user: user(other) };
            let list = ListName::Followers(user(owner));
            prop_assert_eq!(read::<Mark>(list, &write(list, &mark)).unwrap(), mark);
        }

        #[test]
        fn a_cursor_of_one_list_is_refused_by_every_other(a in 0..5_i64, b in 0..5_i64, place in 0..=i64::MAX) {
            let lists = [
                ListName::Followings(user(a)),
                ListName::Followers(user(a)),
                ListName::Followers(user(a + 1)),
                ListName::Common(user(a), user(b)),
                ListName::Common(user(b), user(a + 7)),
                ListName::Events,
            ];
            for (made_for, list) in lists.iter().enumerate() {
                let cursor = write(*list, &user(place));
                for (read_for, other) in lists.iter().enumerate() {
                    prop_assert_eq!(read::<UserId>(*other, &cursor).is_ok(), made_for == read_for);
                }
            }
        }

        #[test]
        fn garbage_is_refused_and_never_panics(text in "\\PC{0,120}") {
            prop_assert!(read::<Mark>(ListName::Followers(user(1)), &text).is_err());
        }

        #[test]
        fn a_changed_or_cut_cursor_is_refused(place in 0..=i64::MAX, at in 0..24_usize, letter in "[A-Za-z0-9_-]") {
            let list = ListName::Followings(user(1));
            let cursor = write(list, &user(place));
            let mut changed = cursor.clone();
            changed.replace_range(at..=at, &letter);
            prop_assert!(changed == cursor || read::<UserId>(list, &changed).is_err());
            prop_assert!(read::<UserId>(list, &cursor[..at]).is_err());
        }
    }
}
