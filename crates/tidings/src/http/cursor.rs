//! Cursors: where a list goes on, as text that means nothing to its reader.
//!
//! A cursor carries its version, the list it was made for, a place in that list and a check sum. It
//! is not a secret and grants nothing: the check sum catches what was cut or mistyped, and a cursor
//! of another list is refused instead of leading somewhere.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tidings_backbone::{
    log::{Offset, Part},
    parking,
};
use tidings_community::{UserId, relation::read::Mark};
use tidings_event::Timestamp;

use super::problem::Problem;
use crate::auth::sha256;

const VERSION: u8 = 1;
const CHECK_BYTES: usize = 4;
/// Longest text that is looked at: one with a projector, a part of the log and a key.
const CHARS_MAX: usize = 1_600;
/// The parameter that carries a cursor.
pub(super) const PARAMETER: &str = "cursor";

/// A list that is paged by cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListName {
    Followings(UserId),
    Followers(UserId),
    Common(UserId, UserId),
    Events,
    Parked,
    ParkedEvents,
    Audit,
    Reconciliations,
}

impl ListName {
    fn code(self) -> u8 {
        match self {
            Self::Followings(_) => 1,
            Self::Followers(_) => 2,
            Self::Common(..) => 3,
            Self::Events => 4,
            Self::Parked => 5,
            Self::ParkedEvents => 6,
            Self::Audit => 7,
            Self::Reconciliations => 8,
        }
    }

    fn scope(self) -> Vec<i64> {
        match self {
            Self::Followings(user) | Self::Followers(user) => vec![user.get()],
            Self::Common(user, other) => vec![user.get(), other.get()],
            Self::Events | Self::Parked | Self::ParkedEvents | Self::Audit | Self::Reconciliations => Vec::new(),
        }
    }
}

/// A place in a list, as a cursor carries it: numbers, and texts behind them.
pub(super) trait Place: Sized {
    /// How many numbers.
    const NUMBERS: usize;

    fn numbers(&self) -> Vec<i64>;

    fn texts(&self) -> Vec<String> {
        Vec::new()
    }

    fn from_parts(numbers: &[i64], texts: &[String]) -> Option<Self>;
}

impl Place for Mark {
    const NUMBERS: usize = 2;

    fn numbers(&self) -> Vec<i64> {
        vec![self.at.0, self.user.get()]
    }

    fn from_parts(numbers: &[i64], texts: &[String]) -> Option<Self> {
        let ([at, user], []) = (numbers, texts) else { return None };
        Some(Self { at: Timestamp(*at), user: (*user).try_into().ok()? })
    }
}

impl Place for UserId {
    const NUMBERS: usize = 1;

    fn numbers(&self) -> Vec<i64> {
        vec![self.get()]
    }

    fn from_parts(numbers: &[i64], texts: &[String]) -> Option<Self> {
        let ([user], []) = (numbers, texts) else { return None };
        (*user).try_into().ok()
    }
}

impl Place for Offset {
    const NUMBERS: usize = 1;

    fn numbers(&self) -> Vec<i64> {
        vec![self.0]
    }

    fn from_parts(numbers: &[i64], texts: &[String]) -> Option<Self> {
        let ([offset], []) = (numbers, texts) else { return None };
        (*offset >= 0).then_some(Self(*offset))
    }
}

impl Place for parking::Mark {
    const NUMBERS: usize = 1;

    fn numbers(&self) -> Vec<i64> {
        vec![self.parked_at.0]
    }

    fn texts(&self) -> Vec<String> {
        vec![self.projector.clone(), self.part.to_string(), self.key.clone()]
    }

    fn from_parts(numbers: &[i64], texts: &[String]) -> Option<Self> {
        let ([parked_at], [projector, part, key]) = (numbers, texts) else { return None };
        let (projector, part, key) = (projector.clone(), part.parse().ok()?, key.clone());
        Some(Self { parked_at: Timestamp(*parked_at), projector, part, key })
    }
}

/// Where an event of a parked key stands.
impl Place for (Part, Offset) {
    const NUMBERS: usize = 1;

    fn numbers(&self) -> Vec<i64> {
        self.1.numbers()
    }

    fn texts(&self) -> Vec<String> {
        vec![self.0.to_string()]
    }

    fn from_parts(numbers: &[i64], texts: &[String]) -> Option<Self> {
        let [part] = texts else { return None };
        Some((part.parse().ok()?, Offset::from_parts(numbers, &[])?))
    }
}

/// The cursor for `place` in `list`.
pub(super) fn write(list: ListName, place: &impl Place) -> String {
    let mut bytes = vec![VERSION, list.code()];
    for number in list.scope().into_iter().chain(place.numbers()) {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    for text in place.texts() {
        // None is longer than a column, which has 255 bytes.
        bytes.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    let check = sha256(&bytes);
    bytes.extend_from_slice(&check[..CHECK_BYTES]);
    URL_SAFE_NO_PAD.encode(bytes)
}
/// The place in `list` that a cursor names.
pub(super) fn read<P: Place>(list: ListName, text: &str) -> Result<P, Problem> {
    let scope = list.scope();
    let (numbers, texts) =
        decode(list, text, scope.len() + P::NUMBERS).map_err(|detail| Problem::field(PARAMETER, detail))?;
    match numbers.strip_prefix(scope.as_slice()) {
        None => Err(Problem::field(PARAMETER, OTHER_LIST)),
        Some(place) => P::from_parts(place, &texts).ok_or_else(|| Problem::field(PARAMETER, MALFORMED)),
    }
}

const MALFORMED: &str = "is not a cursor; take it from `next_cursor` as it is";
const OTHER_LIST: &str = "was made for another list";
const NUMBER_BYTES: usize = 8;

/// The numbers of a cursor of this list, which has so many, and its texts.
fn decode(list: ListName, text: &str, numbers: usize) -> Result<(Vec<i64>, Vec<String>), &'static str> {
    if text.len() > CHARS_MAX {
        return Err(MALFORMED);
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| MALFORMED)?;
    let (content, check) = bytes.split_at_checked(bytes.len().saturating_sub(CHECK_BYTES)).ok_or(MALFORMED)?;
    if sha256(content)[..CHECK_BYTES] != *check {
        return Err(MALFORMED);
    }
    let (&[version, code], content) = content.split_first_chunk().ok_or(MALFORMED)?;
    if version != VERSION {
        return Err("is of a version that is not known here");
    }
    if code != list.code() {
        return Err(OTHER_LIST);
    }
    let (numbers, mut rest) = content.split_at_checked(numbers * NUMBER_BYTES).ok_or(MALFORMED)?;
    let (numbers, _) = numbers.as_chunks();
    let numbers = numbers.iter().map(|number| i64::from_be_bytes(*number)).collect();
    let mut texts = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (text, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or(MALFORMED)?;
        texts.push(std::str::from_utf8(text).map_err(|_| MALFORMED)?.to_owned());
        rest = after;
    }
    if rest.is_empty() { Ok((numbers, texts)) } else { Err(MALFORMED) }
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
        fn a_cursor_with_texts_leads_back_to_its_place(at: i64, key in "\\PC{0,60}", number in 0..=i32::MAX) {
            let part = Part { topic: "tidings.relation".into(), number };
            let mark = parking::Mark { parked_at: Timestamp(at), projector: "p".to_owned(), part: part.clone(), key };
            prop_assert_eq!(&read::<parking::Mark>(ListName::Parked, &write(ListName::Parked, &mark)).unwrap(), &mark);
            let place = (part, Offset(7));
            let cursor = write(ListName::ParkedEvents, &place);
            prop_assert_eq!(read::<(Part, Offset)>(ListName::ParkedEvents, &cursor).unwrap(), place);
            prop_assert!(read::<parking::Mark>(ListName::Parked, &cursor).is_err());
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
