//! Reads the file beside the ledgers, a batch ahead of them.

use std::io;

use tidings_community::Pair;
use tokio::sync::mpsc;

use super::source::Source;
use crate::follows_csv::BadLine;

/// Batches read ahead.
const BATCHES_AHEAD: usize = 2;

/// How to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Lines of a batch.
    pub(super) lines: usize,
    /// The first line of interest; those before were dealt with by an earlier run.
    pub(super) from_line: u64,
    /// Whether to end at the first bad line.
    pub(super) strict: bool,
}

/// Some lines of the file.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Follows, each with its line.
    pub(super) follows: Vec<(u64, Pair)>,
    /// Lines that are none, each with the reason.
    pub(super) bad: Vec<(u64, BadLine)>,
    /// The line after the last one of the batch.
    pub(super) next_line: u64,
    /// Bytes of the file read so far.
    pub(super) bytes_read: u64,
}

impl Batch {
    pub(super) fn lines(&self) -> usize {
        self.follows.len() + self.bad.len()
    }

    /// The follows to load: of line `i` those at `i`, or with both directions at `2 * i` and after it.
    pub(super) fn pairs(&self, mutual: bool) -> Vec<Pair> {
        let pairs = self.follows.iter().map(|(_, pair)| *pair);
        if mutual {
            pairs.flat_map(|pair| [pair, Pair { from: pair.to, to: pair.from }]).collect()
        } else {
            pairs.collect()
        }
    }
}

/// Reads in a thread of its own, which ends with the file, the first error, or when nobody listens.
/// It is no task of the runtime's: that would wait, at the end of the program, for a pipe that is silent.
pub(super) fn read(mut source: Source, reading: Reading) -> mpsc::Receiver<io::Result<Batch>> {
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
    std::thread::spawn(move || {
        loop {
            let batch = next(&mut source, &reading).transpose();
            let is_last = match &batch {
                None => return,
                Some(Err(_)) => true,
                Some(Ok(batch)) => reading.strict && !batch.bad.is_empty(),
            };
            if batch.is_none_or(|batch| sender.blocking_send(batch).is_err()) || is_last {
                return;
            }
        }
    });
    receiver
}

fn next(source: &mut Source, reading: &Reading) -> io::Result<Option<Batch>> {
    let mut batch = Batch::default();
    while batch.lines() < reading.lines {
        let Some(line) = source.csv.read()? else { break };
        if line.number < reading.from_line {
            continue;
        }
        batch.next_line = line.number + 1;
        match line.follow {
            Ok(pair) => batch.follows.push((line.number, pair)),
            Err(bad) => {
                batch.bad.push((line.number, bad));
                if reading.strict {
                    break;
                }
            }
        }
    }
    batch.bytes_read = source.read.get();
    Ok((batch.lines() > 0).then_some(batch))
}
