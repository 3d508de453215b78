//! The route of the journey of one event.

use axum::{Json, extract::State};
use tidings_backbone::Error;
use tidings_event::EventId;

use super::{
    input::{PathText, Query},
    problem::{Name, Problem},
    state::AppState,
};
use crate::journeys::JourneyView;

/// The journey of one event
///
/// When it was committed and by what, where it is in the log, and what became of it for each projector, with the times
/// between. It works for events that the outbox still holds, that are parked or were discarded, or that Kafka holds.
/// When projectors applied something is kept for a configured time (`projector.trail_minutes`).
#[utoipa::path(
    get, path = "/v1/admin/events/{event_id}/journey", tag = "admin", operation_id = "journey",
    params(("event_id" = String, Path, example = "019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c")),
    responses(
        (status = 200, body = JourneyView),
        (status = 404, description = "not-found: it is no longer known"),
        (status = 503, description = "search-gave-up: Kafka holds too much to look through, or busy"),
    ),
)]
pub(super) async fn journey(
    State(app): State<AppState>,
    PathText { name, text }: PathText,
    query: Query,
) -> Result<Json<JourneyView>, Problem> {
    query.end()?;
    let id: EventId = text.parse().map_err(|_| Problem::field(name, "must be a UUID"))?;
    let missing = || Problem::new(Name::NotFound).detail("an event of this id is no longer known, or never was");
    let journey = app.projectors.journey(id).await.map_err(not_told)?.ok_or_else(missing)?;
    Ok(Json(JourneyView::from(&journey)))
}

fn not_told(error: Error) -> Problem {
    match error {
        Error::SearchGaveUp => Problem::new(Name::SearchGaveUp).detail(error.to_string()),
        Error::SearchBusy => Problem::busy().detail(error.to_string()),
        error => error.into(),
    }
}
