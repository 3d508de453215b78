//! What changed in a JSON document.

use super::Json;
use crate::{Error, cursor::Cursor};

const PLACE: &str = "differences of JSON";

/// The differences between a JSON document before and after an update, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonDiffs<'a> {
    bytes: &'a [u8],
}

/// One difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonDiff<'a> {
    /// What to do.
    pub operation: JsonOperation,
    /// Where, as a path of MySQL such as `$.a[1]`.
    pub path: &'a str,
    /// The new value; nothing for a removal.
    pub value: Option<Json<'a>>,
}

/// What to do with the value at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonOperation {
    /// As `JSON_REPLACE` does.
    Replace,
    /// As `JSON_INSERT` and `JSON_ARRAY_INSERT` do.
    Insert,
    /// As `JSON_REMOVE` does.
    Remove,
}

impl<'a> JsonDiffs<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The differences. After an error there are none.
    pub fn iter(&self) -> impl Iterator<Item = Result<JsonDiff<'a>, Error>> + use<'a> {
        let mut cursor = Cursor::new(self.bytes, PLACE);
        std::iter::from_fn(move || {
            if cursor.is_empty() {
                return None;
            }
            let diff = read(&mut cursor);
            if diff.is_err() {
                cursor = Cursor::new(&[], PLACE);
            }
            Some(diff)
        })
    }
}

fn read<'a>(cursor: &mut Cursor<'a>) -> Result<JsonDiff<'a>, Error> {
    let operation = match cursor.u8()? {
        0 => JsonOperation::Replace,
        1 => JsonOperation::Insert,
        2 => JsonOperation::Remove,
        _ => return Err(cursor.malformed("the operation is not known")),
    };
    let length = cursor.packed_length()?;
    let path = cursor.text(length)?;
    let value = match operation {
        JsonOperation::Remove => None,
        _ => Some(Json::new(cursor.packed_bytes()?)),
    };
    Ok(JsonDiff { operation, path, value })
}
