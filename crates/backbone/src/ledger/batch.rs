//! One batch: known idempotency keys are answered from what is stored, the rest is decided, and
//! facts, events and answers are committed together.

use std::{collections::HashMap, sync::Arc};

use tidings_event::Timestamp;

use super::{Answered, Decide, Submission, SubmitError};
use crate::{
    Db, Durability, Error, Result,
    idempotency::{self, Answer, Stored},
};

/// What becomes of one submission of the batch.
enum Plan<D: Decide> {
    /// It is decided, as the command with this number.
    Decide(usize),
    /// Its answer stands already: it was answered before, or its key was used for something else.
    Answered(Answered<D>),
}

/// Decides and commits a batch; answer `i` belongs to submission `i`. An error means that nothing
/// was committed.
pub(super) async fn commit<D: Decide>(
    decide: &D,
    db: &Db,
    at: Timestamp,
    batch: &[Submission<D>],
) -> Result<Vec<Answered<D>>> {
    let mut tx = db.write(Durability::Full).await?;
    let keys: Vec<_> = batch.iter().filter_map(|submission| submission.idempotency.as_ref()).collect();
    let stored = if keys.is_empty() { Stored::new() } else { idempotency::find(&mut tx.conn(), &keys).await? };
    let (plans, commands) = plan(batch, &stored);

    let decided = if commands.is_empty() { Vec::new() } else { decide.decide(&commands, at, tx.conn()).await? };
    if decided.len() != commands.len() {
        let message = format!("ledger `{}` answered {} of {} commands", D::NAME, decided.len(), commands.len());
        return Err(Error::Invariant { message });
    }
    if !keys.is_empty() {
        let answers = first_answers::<D>(batch, &plans, &decided);
        idempotency::store(&mut tx.conn(), &answers, at).await?;
    }
    fail::fail_point!("ledger-before-commit", |_| std::process::abort());
    tx.commit().await?;
    fail::fail_point!("ledger-after-commit", |_| std::process::abort());
    // Nothing may fail from here on: an error would have the batch decided again.
    Ok(plans.into_iter().map(|plan| answer(plan, &decided)).collect())
}

/// Plans each submission; answers the commands to decide as well, in order.
fn plan<'b, D: Decide>(batch: &'b [Submission<D>], stored: &Stored) -> (Vec<Plan<D>>, Vec<&'b D::Command>) {
    let mut in_batch: HashMap<(&str, &str), (&[u8; 32], usize)> = HashMap::new();
    let mut commands = Vec::with_capacity(batch.len());
    let mut plans = Vec::with_capacity(batch.len());
    for submission in batch {
        let known = submission.idempotency.as_ref().and_then(|key| {
            if let Some((fingerprint, answer)) = stored.get(&(key.scope.clone(), key.key.clone())) {
                return Some(Plan::Answered(repeated::<D>(fingerprint == &key.fingerprint, answer)));
            }
            let slot = (key.scope.as_str(), key.key.as_str());
            match in_batch.get(&slot) {
                Some((fingerprint, first)) if **fingerprint == key.fingerprint => Some(Plan::Decide(*first)),
                Some(_) => Some(Plan::Answered(Err(SubmitError::KeyReused))),
                None => {
                    in_batch.insert(slot, (&key.fingerprint, commands.len()));
                    None
                }
            }
        });
        plans.push(known.unwrap_or_else(|| {
            commands.push(&submission.command);
            Plan::Decide(commands.len() - 1)
        }));
    }
    (plans, commands)
}

type KeyedAnswer<'b, D> = (&'b idempotency::IdempotencyKey, Answer<<D as Decide>::Outcome, <D as Decide>::Refusal>);

/// The answers that are stored: one for each decided command that carries a key. Submissions that
/// repeat each other share their command's number; the first of them stores it.
fn first_answers<'b, D: Decide>(
    batch: &'b [Submission<D>],
    plans: &[Plan<D>],
    decided: &[Result<D::Outcome, D::Refusal>],
) -> Vec<KeyedAnswer<'b, D>> {
    let mut next = 0;
    let mut answers = Vec::new();
    for (submission, plan) in batch.iter().zip(plans) {
        let Plan::Decide(number) = plan else { continue };
        if *number != next {
            continue;
        }
        next += 1;
        if let Some(key) = &submission.idempotency {
            let answer = match &decided[*number] {
                Ok(outcome) => Answer::Done(outcome.clone()),
                Err(refusal) => Answer::Refused(refusal.clone()),
            };
            answers.push((key, answer));
        }
    }
    answers
}

/// The answer to a submission whose key was used before, for the same or for something else.
fn repeated<D: Decide>(same: bool, stored: &str) -> Answered<D> {
    if !same {
        return Err(SubmitError::KeyReused);
    }
    match serde_json::from_str(stored) {
        Ok(Answer::Done(outcome)) => Ok(Ok(outcome)),
        Ok(Answer::Refused(refusal)) => Ok(Err(refusal)),
        // Written by another version of the program: the command was decided, but how cannot be told.
        Err(source) => Err(SubmitError::Failed(Arc::new(Error::Json { doing: "reading a stored answer", source }))),
    }
}

fn answer<D: Decide>(plan: Plan<D>, decided: &[Result<D::Outcome, D::Refusal>]) -> Answered<D> {
    match plan {
        Plan::Decide(number) => Ok(decided[number].clone()),
        Plan::Answered(answered) => answered,
    }
}
