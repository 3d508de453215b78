//! What waits to be decided, and which of it may be decided now.

use std::collections::{HashSet, VecDeque};

use super::{Decide, Submission};

/// Submissions in the order in which they came, and the keys of the batches that are under way.
pub(super) struct Queue<D: Decide> {
    waiting: VecDeque<(u64, Submission<D>)>,
    under_way: HashSet<u64>,
}

/// Submissions that are decided together, and their keys.
pub(super) struct Batch<D: Decide> {
    pub(super) submissions: Vec<Submission<D>>,
    pub(super) keys: HashSet<u64>,
}

impl<D: Decide> Queue<D> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), under_way: HashSet::new() }
    }

    pub(super) fn push(&mut self, key: u64, submission: Submission<D>) {
        self.waiting.push_back((key, submission));
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The first that may be decided, at most `max`: none whose key is under way, and so none that came after it
    /// under the same key. Nothing when there are fewer than `min`.
    pub(super) fn take(&mut self, min: usize, max: usize) -> Option<Batch<D>> {
        let under_way = &self.under_way;
        let is_free = |key: &u64| !under_way.contains(key);
        let has_enough = || self.waiting.iter().filter(|(key, _)| is_free(key)).take(min).count() == min;
        if self.waiting.len() < min || !has_enough() {
            return None;
        }
        let mut batch = Batch { submissions: Vec::new(), keys: HashSet::new() };
        let mut left = VecDeque::new();
        while let Some((key, submission)) = self.waiting.pop_front() {
            if batch.submissions.len() < max && is_free(&key) {
                batch.keys.insert(key);
                batch.submissions.push(submission);
            } else {
                left.push_back((key, submission));
            }
        }
        self.waiting = left;
        self.under_way.extend(&batch.keys);
        Some(batch)
    }

    /// A batch has been answered.
    pub(super) fn end(&mut self, keys: &HashSet<u64>) {
        self.under_way.retain(|key| !keys.contains(key));
    }
}
