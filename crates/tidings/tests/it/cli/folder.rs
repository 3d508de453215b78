//! A data folder and the commands on it.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

pub(super) struct Folder(tempfile::TempDir);

/// What a command answered.
pub(super) struct Said {
    pub(super) status: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl Folder {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    /// Writes a file beside the data.
    pub(super) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let file = self.0.path().join(name);
        std::fs::write(&file, content).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// `tidings ARGUMENTS --data DATA`, to be run.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::BINARY);
        command.args(arguments).arg("--data").arg(self.data());
        command
    }

    /// Runs `tidings ARGUMENTS` to its end.
    pub(super) fn tidings(&self, arguments: &[&str]) -> Said {
        Said::from(self.command(arguments).output().unwrap())
    }

    /// The same, which must succeed.
    pub(super) fn done(&self, arguments: &[&str]) -> Said {
        let said = self.tidings(arguments);
        assert_eq!(said.status, 0, "{arguments:?}: {}{}", said.out, said.err);
        said
    }

    /// Offset of the last event.
    pub(super) fn head(&self) -> u64 {
        let lag: Value = serde_json::from_str(&self.done(&["lag", "--json"]).out).unwrap();
        lag["log"]["head"].as_u64().unwrap()
    }

    /// Damages the database by hand; answers how many rows the statement changed.
    pub(super) async fn by_hand(&self, sql: &'static str) -> u64 {
        use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
        let options = SqliteConnectOptions::new().filename(self.data().join("tidings.db"));
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let changed = sqlx::query(sql).execute(&mut connection).await.unwrap().rows_affected();
        connection.close().await.unwrap();
        changed
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { status: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Said {
    /// A count of the summary of an import.
    pub(super) fn count(&self, name: &str) -> u64 {
        let line = self.out.lines().find(|line| line.starts_with(&format!("{name}  ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in: {}{}", self.out, self.err));
        line.split_whitespace().last().unwrap().parse().unwrap()
    }
}

/// A file of follows of users 0 to `users` that has no line twice: `lines` of them.
pub(super) fn follows(lines: u64, users: u64) -> String {
    assert!(lines <= users * (users - 1), "so many pairs there are");
    let mut text = "from,to\n".to_owned();
    for line in 0..lines {
        // Each user follows those after him, a round at a time.
        let (from, round) = (line % users, line / users);
        writeln!(text, "{from},{}", (from + round + 1) % users).unwrap();
    }
    text
}
