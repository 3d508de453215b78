//! Reads the log ahead: while one batch is being applied, the next is read and decoded on another core.

use tokio::task::JoinHandle;

use crate::{
    Error, Result,
    log::{Log, Offset, Recorded},
};

/// Reads batches of one projector.
#[derive(Debug)]
pub(super) struct Reader {
    log: Log,
    batch_events_max: usize,
    /// The batch after this offset, on its way. What is committed never changes, so it cannot be outdated.
    ahead: Option<(Offset, JoinHandle<Result<Vec<Recorded>>>)>,
}

impl Reader {
    pub(super) fn new(log: Log, batch_events_max: usize) -> Self {
        Self { log, batch_events_max, ahead: None }
    }

    /// The batch after `after`; empty when the log ends there.
    pub(super) async fn read(&mut self, after: Offset) -> Result<Vec<Recorded>> {
        let mut batch = self.take_ahead(after).await?;
        if batch.is_empty() {
            // Nothing was read ahead, or the log has grown since.
            batch = self.log.read(after, self.batch_events_max).await?;
        }
        if batch.len() == self.batch_events_max
            && let Some(last) = batch.last()
        {
            let (log, after, limit) = (self.log.clone(), last.offset, self.batch_events_max);
            self.ahead = Some((after, tokio::spawn(async move { log.read(after, limit).await })));
        }
        Ok(batch)
    }

    async fn take_ahead(&mut self, after: Offset) -> Result<Vec<Recorded>> {
        match self.ahead.take() {
            Some((begun_after, reading)) if begun_after == after => reading
                .await
                .unwrap_or_else(|error| Err(Error::Invariant { message: format!("reading ahead ended: {error}") })),
            _ => Ok(Vec::new()),
        }
    }
}
