//! What a metric is to those who read it.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// A metric, as it is described beside its values and in the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, with the unit at the end.
    pub name: &'static str,
    /// What it does with values.
    pub kind: Kind,
    /// The names of its labels. None of them has the identity of anything as its value.
    pub labels: &'static [&'static str],
    /// What it means, in one line.
    pub help: &'static str,
}

/// What a metric does with values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It adds them up since the start of the process.
    Counter,
    /// It shows the last one.
    Gauge,
    /// It counts how many were at most so large.
    Histogram(Buckets),
}

/// Bounds of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buckets {
    /// Seconds that work takes: from a quarter of a millisecond to ten seconds.
    Work,
    /// Seconds from a commit to what follows from it: from a millisecond to half an hour.
    Delay,
    /// Things in a batch: from one to the 65,536 that a relay writes while it catches up.
    Size,
    /// Bytes: from a kibibyte to four mebibytes.
    Bytes,
}

impl Buckets {
    /// The upper bounds.
    pub fn bounds(self) -> &'static [f64] {
        match self {
            Self::Work => {
                &[0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]
            }
            Self::Delay => &[
                0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
                300.0, 600.0, 1_800.0,
            ],
            Self::Size => &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 8_192.0, 65_536.0],
            Self::Bytes => &[1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0, 524_288.0, 1_048_576.0, 4_194_304.0],
        }
    }
}

impl Metric {
    /// A counter.
    pub const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: Kind::Counter, labels, help }
    }

    /// A gauge.
    pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: Kind::Gauge, labels, help }
    }

    /// A histogram.
    pub const fn histogram(
        name: &'static str,
        buckets: Buckets,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Histogram(buckets), labels, help }
    }

    /// Tells the recorder of this process what the metric means.
    pub fn describe(&self) {
        match self.kind {
            Kind::Counter => describe_counter!(self.name, Unit::Count, self.help),
            Kind::Gauge => describe_gauge!(self.name, Unit::Count, self.help),
            Kind::Histogram(_) => describe_histogram!(self.name, Unit::Count, self.help),
        }
    }
}
