//! Waiting for a service that is away: a process that is started before its database is no failure.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{Result, http::Readiness};

const GAP_MIN: Duration = Duration::from_millis(250);
const GAP_MAX: Duration = Duration::from_secs(10);

/// Tries until it is done; `service` is what is waited for meanwhile. Nothing if `shutdown` came first.
///
/// # Errors
/// What no waiting heals: a wrong password, a database that is not there, a topic made otherwise.
pub(super) async fn until_done<T, F: Future<Output = Result<T>>>(
    service: &'static str,
    readiness: Option<&Readiness>,
    shutdown: &CancellationToken,
    attempt: impl Fn() -> F,
) -> Result<Option<T>> {
    let mut gap = GAP_MIN;
    loop {
        let tried = tokio::select! {
            tried = attempt() => tried,
            () = shutdown.cancelled() => return Ok(None),
        };
        let error = match tried {
            Ok(done) => {
                readiness.inspect(|readiness| readiness.wait_for(None));
                return Ok(Some(done));
            }
            Err(error) if error.is_transient() => error,
            Err(error) => return Err(error),
        };
        readiness.inspect(|readiness| readiness.wait_for(Some(service)));
        let (error, next_try_ms) = (tidings_backbone::Error::chain(&error), gap.as_millis());
        tracing::warn!(service, error, next_try_ms, "waiting for a service");
        tokio::select! {
            () = tokio::time::sleep(gap) => {}
            () = shutdown.cancelled() => return Ok(None),
        }
        gap = (gap * 2).min(GAP_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::Error;

    fn away() -> Error {
        tidings_backbone::Error::Lease { source: std::io::Error::other("away"), path: "x".into() }.into()
    }

    #[tokio::test]
    async fn a_service_that_comes_back_is_waited_for_and_what_cannot_heal_is_not() {
        let shutdown = CancellationToken::new();
        let tries = Cell::new(0);
        let comes_back = || async {
            tries.set(tries.get() + 1);
            if tries.get() < 2 { Err(away()) } else { Ok(7) }
        };
        assert_eq!(until_done("database", None, &shutdown, comes_back).await.unwrap(), Some(7));
        let wrong = || async { Err::<(), _>(Error::Usage("wrong".to_owned())) };
        assert!(until_done("database", None, &shutdown, wrong).await.is_err());
    }

    #[tokio::test]
    async fn who_is_to_end_waits_no_longer() {
        let shutdown = CancellationToken::new();
        let tries = || async {
            shutdown.cancel();
            Err::<(), _>(away())
        };
        assert!(until_done("database", None, &shutdown, tries).await.unwrap().is_none());
    }
}
