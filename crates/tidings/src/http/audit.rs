//! The route of the audit: who did what, and why.

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::value::RawValue;
use tidings_backbone::{audit, log::Offset};
use utoipa::ToSchema;

use super::{
    cursor::ListName,
    input::Query,
    moment::Moment,
    page::{self, CursorParams, Items},
    problem::Problem,
    state::AppState,
};

/// What an operator did.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditView {
    /// Rises with each record.
    id: i64,
    /// When.
    at: Moment,
    /// Who: the subject of a token, or `cli:` and a user of the operating system.
    #[schema(example = "cli:ada")]
    actor: String,
    /// What was done.
    #[schema(example = "parking.discard")]
    action: String,
    /// To which projector, if to one.
    projector: Option<String>,
    /// To which key, if to one.
    key: Option<String>,
    /// To which event, if to one.
    event_id: Option<String>,
    /// Why.
    reason: Option<String>,
    /// What else there is to know, such as the event that was discarded.
    #[schema(value_type = Object)]
    details: Box<RawValue>,
}

/// What operators did, the newest first
#[utoipa::path(
    get, path = "/v1/admin/audit", tag = "admin", operation_id = "audit",
    params(CursorParams),
    responses((status = 200, body = Items<AuditView>)),
)]
pub(super) async fn audit(State(app): State<AppState>, mut query: Query) -> Result<Json<Items<AuditView>>, Problem> {
    let limit = page::limit(&mut query)? as usize;
    // The ids of records go up as offsets do.
    let before: Option<Offset> = page::place(&mut query, ListName::Audit)?;
    query.end()?;
    let mut tx = app.db.read().await?;
    let mut records = audit::list(tx.conn(), before.map(|before| before.0), limit + 1).await?;
    let more = records.len() > limit;
    records.truncate(limit);
    let next = records.last().map(|record| Offset(record.id)).filter(|_| more);
    let items = records.into_iter().map(view).collect::<Result<_, _>>()?;
    Ok(Json(Items::new(items, ListName::Audit, next.as_ref())))
}

fn view(record: audit::Record) -> Result<AuditView, Problem> {
    Ok(AuditView {
        id: record.id,
        at: Moment(record.at),
        actor: record.actor,
        action: record.action,
        projector: record.projector,
        key: record.key,
        event_id: record.event_id,
        reason: record.reason,
        details: RawValue::from_string(record.details).map_err(|error| Problem::internal(&error))?,
    })
}
