//! Shows how far an import is: a bar on a terminal, a line now and then elsewhere. On standard error.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};
use tidings_backbone::clock::Stopwatch;

use super::batches::Batch;

/// Seconds between two lines where there is no terminal.
const LINE_GAP_SECONDS: f64 = 3.0;

pub(super) struct Progress {
    shown: Shown,
    bytes: Option<u64>,
    stopwatch: Stopwatch,
}

enum Shown {
    Bar(ProgressBar),
    /// The second of the last line.
    Lines {
        last: f64,
    },
}

impl Progress {
    /// Of a file of `bytes`, begun when `stopwatch` was.
    pub(super) fn new(bytes: Option<u64>, stopwatch: Stopwatch) -> Self {
        let shown = if std::io::stderr().is_terminal() {
            let bar = bytes.map_or_else(ProgressBar::no_length, ProgressBar::new);
            let template = if bytes.is_some() { "{wide_bar} {percent:>3} %  {msg}" } else { "{spinner} {msg}" };
            Shown::Bar(
                bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())),
            )
        } else {
            Shown::Lines { last: 0.0 }
        };
        Self { shown, bytes, stopwatch }
    }

    /// `batch` has been committed, and with it `lines` in all.
    pub(super) fn update(&mut self, batch: &Batch, lines: u64) {
        let seconds = self.stopwatch.seconds();
        let text = format!("line {}, {:.0} lines/s", batch.next_line.saturating_sub(1), lines as f64 / seconds);
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_position(batch.bytes_read);
                bar.set_message(text);
            }
            Shown::Lines { last } if seconds - *last >= LINE_GAP_SECONDS => {
                *last = seconds;
                let percent = self.bytes.map(|bytes| batch.bytes_read * 100 / bytes.max(1));
                let percent = percent.map(|percent| format!("{percent} %, ")).unwrap_or_default();
                eprintln!("{percent}{text}");
            }
            Shown::Lines { .. } => {}
        }
    }

    /// Prints a line beside the bar.
    pub(super) fn say(&self, text: &str) {
        match &self.shown {
            Shown::Bar(bar) => bar.suspend(|| eprintln!("{text}")),
            Shown::Lines { .. } => eprintln!("{text}"),
        }
    }

    pub(super) fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}
