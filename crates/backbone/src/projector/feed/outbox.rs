//! Reads the log ahead: while one batch is being applied, the next is read and decoded on another core.

use tokio::task::JoinHandle;

use crate::{
    Db, Error, Result,
    log::Offset,
    outbox::{self, Batch},
};

/// Reads batches of one projector.
#[derive(Debug)]
pub(super) struct Reader {
    db: Db,
    batch_events_max: usize,
    /// The batch after this offset, on its way. What is committed never changes, so it cannot be outdated.
    ahead: Option<(Offset, JoinHandle<Result<Batch>>)>,
}

impl Reader {
    pub(super) fn new(db: Db, batch_events_max: usize) -> Self {
        Self { db, batch_events_max, ahead: None }
    }

    /// What comes after `after`; no events when the log ends there.
    pub(super) async fn read(&mut self, after: Offset) -> Result<Batch> {
        let ahead = match self.ahead.take() {
            Some((begun_after, reading)) if begun_after == after => reading
                .await
                .unwrap_or_else(|error| Err(Error::Invariant { message: format!("reading ahead ended: {error}") }))?,
            _ => Batch::Events(Vec::new()),
        };
        let batch = match ahead {
            // Nothing was read ahead, or the log has grown since.
            Batch::Events(events) if events.is_empty() => read_batch(&self.db, after, self.batch_events_max).await?,
            ahead => ahead,
        };
        if let Batch::Events(events) = &batch
            && events.len() == self.batch_events_max
            && let Some(last) = events.last()
        {
            let (db, after, limit) = (self.db.clone(), last.offset, self.batch_events_max);
            self.ahead = Some((after, tokio::spawn(async move { read_batch(&db, after, limit).await })));
        }
        Ok(batch)
    }
}

async fn read_batch(db: &Db, after: Offset, limit: usize) -> Result<Batch> {
    let mut tx = db.glance().await?;
    outbox::read_batch(&mut tx.conn(), after, limit).await
}
