//! Where it is measured: what the command line says.

use tidings_testkit::database::Engine;

/// The two modes, the distributed one on one of two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// One process on SQLite.
    Embedded,
    /// A server for facts and projections, Kafka and Redis: those of `TIDINGS_TEST_...`.
    Distributed(Engine),
}

impl Place {
    /// A target that differs between the modes.
    pub(crate) fn target(self, embedded: &'static str, distributed: &'static str) -> &'static str {
        if self == Self::Embedded { embedded } else { distributed }
    }
}

const MEASUREMENTS: [&str; 6] = ["writes", "projector", "delay", "process", "telemetry", "journey"];

/// What to measure, and where.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) place: Place,
    chosen: Vec<String>,
}

impl Plan {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Self {
        let mut plan = Self { place: Place::Embedded, chosen: Vec::new() };
        for argument in arguments {
            match argument.as_str() {
                // What `cargo bench` says to every benchmark.
                "--bench" => {}
                "--mariadb" => plan.place = Place::Distributed(Engine::Mariadb),
                "--mysql" => plan.place = Place::Distributed(Engine::Mysql),
                name if MEASUREMENTS.contains(&name) => plan.chosen.push(argument),
                other => panic!("what is `{other}`? There are --mariadb, --mysql and {}", MEASUREMENTS.join(", ")),
            }
        }
        plan
    }

    /// Without a choice, all is measured.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.chosen.is_empty() || self.chosen.iter().any(|chosen| chosen == name)
    }
}
