//! What the system says of this process.

use serde::{Deserialize, Serialize};

/// Seconds of processor time, by who spent them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cpu {
    /// Threads of the Kafka client: batches, compression, the network.
    pub(crate) kafka_client: f64,
    /// All others: reading, decoding, formatting, handing records to the client.
    pub(crate) others: f64,
}

/// Clock ticks of the figures in `/proc`, per second: a constant of Linux's interface.
const TICKS_PER_SECOND: f64 = 100.0;

impl Cpu {
    pub(crate) fn of_this_process() -> Self {
        let mut cpu = Self::default();
        for thread in std::fs::read_dir("/proc/self/task").unwrap() {
            // A thread may end meanwhile.
            let Ok(stat) = std::fs::read_to_string(thread.unwrap().path().join("stat")) else { continue };
            let (name, rest) = stat.rsplit_once(") ").unwrap();
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let ticks: f64 = fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum();
            let is_client = name.split_once('(').unwrap().1.starts_with("rdk:");
            *(if is_client { &mut cpu.kafka_client } else { &mut cpu.others }) += ticks / TICKS_PER_SECOND;
        }
        cpu
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self { kafka_client: self.kafka_client - before.kafka_client, others: self.others - before.others }
    }
}

/// The most memory this process has had resident, in KiB.
pub(crate) fn peak_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
