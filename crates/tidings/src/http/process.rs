//! What the operating system tells of this process, under the names that Prometheus' own clients use.

use metrics::{counter, gauge};

/// Publishes memory, processor time and files; called when metrics are scraped. Linux alone tells them.
pub(super) fn publish_gauges() {
    if let Some(bytes) = resident_bytes() {
        gauge!("process_resident_memory_bytes").set(bytes as f64);
    }
    if let Some(seconds) = cpu_seconds() {
        counter!("process_cpu_seconds_total").absolute(seconds);
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        gauge!("process_open_fds").set(files.count() as f64);
    }
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1_024)
}

/// Whole seconds; the system counts in hundredths.
fn cpu_seconds() -> Option<u64> {
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name before the numbers is in brackets and may itself hold blanks.
    let numbers: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| numbers.get(at)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}
