//! Paging: one convention for every list. `limit`, and `cursor` or `offset` where a list has one.

use serde::Serialize;
use tidings_community::{
    limits::{PAGE_ENTRIES_MAX, PAGE_OFFSET_MAX},
    relation::read::{Mark, Page, Start},
};
use utoipa::{IntoParams, ToSchema};

use super::{
    cursor::{self, ListName, Place},
    input::Query,
    problem::Problem,
};

/// Lines of a page unless `limit` says otherwise.
const LIMIT_DEFAULT: u32 = 20;

/// A part of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Items<T> {
    /// The lines, in order.
    pub items: Vec<T>,
    /// Where the list goes on; null at its end.
    pub next_cursor: Option<String>,
}

/// How much of a list, and from where.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the parameters; they are read by `limit` and `place`")]
pub(super) struct CursorParams {
    /// Lines wanted.
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// `next_cursor` of the part before. Paging by it is stable while people follow and unfollow.
    cursor: Option<String>,
}

/// Lines to pass over instead of a cursor.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the parameter; it is read by `page`")]
pub(super) struct OffsetParam {
    /// Lines to pass over. Not together with `cursor`.
    #[param(minimum = 0, maximum = 10000, default = 0)]
    offset: Option<u32>,
}

/// Takes `limit` from the query.
pub(super) fn limit(query: &mut Query) -> Result<u32, Problem> {
    Ok(query.number("limit", 1..=PAGE_ENTRIES_MAX)?.unwrap_or(LIMIT_DEFAULT))
}

/// Takes `cursor` from the query, which must be one of `list`.
pub(super) fn place<P: Place>(query: &mut Query, list: ListName) -> Result<Option<P>, Problem> {
    query.take(cursor::PARAMETER)?.map(|text| cursor::read(list, &text)).transpose()
}

/// Takes `limit` and `cursor` or `offset` from the query, and expects nothing else there.
pub(super) fn page(mut query: Query, list: ListName) -> Result<Page, Problem> {
    let limit = limit(&mut query)?;
    let mark: Option<Mark> = place(&mut query, list)?;
    let offset = query.number("offset", 0..=PAGE_OFFSET_MAX)?;
    query.end()?;
    let start = match (mark, offset) {
        (Some(_), Some(_)) => return Err(Problem::field("offset", "must not be given together with `cursor`")),
        (Some(mark), None) => Start::After(mark),
        (None, offset) => Start::Offset(offset.unwrap_or(0)),
    };
    Page::new(limit, start).map_err(|error| Problem::field("limit", error.to_string()))
}

impl<T> Items<T> {
    /// The part of `list` that ends before `next`.
    pub(super) fn new<P: Place>(items: Vec<T>, list: ListName, next: Option<&P>) -> Self {
        Self { items, next_cursor: next.map(|place| cursor::write(list, place)) }
    }
}
