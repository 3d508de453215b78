//! The table that is printed.

/// One line of it.
struct Line {
    what: String,
    measured: String,
    against: String,
    ratio: String,
    target: &'static str,
}

/// Collects figures and prints them.
#[derive(Default)]
pub(crate) struct Table(Vec<Line>);

impl Table {
    /// Adds a rate and the rate it is measured against, both in events per second.
    pub(crate) fn ratio(&mut self, what: &str, rate: f64, against: (&str, f64), target: &'static str) {
        let (peer, peer_rate) = against;
        self.0.push(Line {
            what: what.to_owned(),
            measured: format!("{rate:.0}/s"),
            against: format!("{peer}: {peer_rate:.0}/s"),
            ratio: format!("{:.2}x", rate / peer_rate),
            target,
        });
    }

    /// Adds a figure that stands for itself.
    pub(crate) fn figure(&mut self, what: &str, measured: String, against: String, target: &'static str) {
        self.0.push(Line { what: what.to_owned(), measured, against, ratio: "–".to_owned(), target });
    }

    /// Prints the lines as a Markdown table.
    pub(crate) fn print(&self) {
        println!("| what | measured | against, in the same run | ratio | target |");
        println!("|---|---|---|---|---|");
        for line in &self.0 {
            println!("| {} | {} | {} | {} | {} |", line.what, line.measured, line.against, line.ratio, line.target);
        }
    }
}
