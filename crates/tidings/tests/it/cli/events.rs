//! `tidings events tail`: what is selected, and how it ends.

use std::process::Command;

use serde_json::Value;
use tidings_testkit::{Process, process::Signal};

use super::folder::{Folder, follows};

fn imported(lines: u64) -> Folder {
    let folder = Folder::new();
    let file = folder.file("follows.csv", follows(lines, 40));
    folder.done(&["import", "follows", &file]);
    folder
}

#[test]
fn the_last_events_are_shown_in_order() {
    let folder = imported(100);
    let shown = folder.done(&["events", "tail", "-n", "3"]).out;
    let offsets: Vec<&str> = shown.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(offsets, ["138", "139", "140"]);
    assert_eq!(folder.done(&["events", "tail"]).out.lines().count(), 10);
    assert_eq!(folder.done(&["events", "tail", "-n", "1000000"]).out.lines().count(), 140);
    assert_eq!(folder.done(&["events", "tail", "-n", "0"]).out, "");
}

#[test]
fn types_families_and_keys_select_among_all_events() {
    // More events than one step backwards reads.
    let folder = imported(1_500);
    let count = |arguments: &[&str]| {
        let arguments = [&["events", "tail", "-n", "100000"], arguments].concat();
        folder.done(&arguments).out.lines().count()
    };
    assert_eq!(count(&["--type", "account.registered"]), 40);
    assert_eq!(count(&["--type", "relation"]), 1_500);
    assert_eq!(count(&["--type", "relation.unfollowed"]), 0);
    assert_eq!(count(&["--key", "7"]), 39);
    assert_eq!(count(&["--key", "7", "--type", "account"]), 1);
    let oldest = folder.done(&["events", "tail", "-n", "1", "--type", "account"]).out;
    assert!(oldest.trim_start().starts_with("40 "), "{oldest}");
}

#[test]
fn json_is_one_cloud_event_a_line() {
    let folder = imported(50);
    let shown = folder.done(&["events", "tail", "-n", "2", "--json"]).out;
    for line in shown.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&event["specversion"], &event["type"]), (&"1.0".into(), &"relation.followed".into()));
    }
    assert_eq!(shown.lines().count(), 2);
}

#[test]
fn following_shows_what_another_process_commits_and_ends_when_interrupted() {
    let folder = imported(10);
    let mut tail = Process::start(folder.command(&["events", "tail", "--follow", "-n", "1"]), "the binary");
    tail.line_containing("relation.followed");
    let file = folder.file("more.csv", "from,to\n900,901\n");
    folder.done(&["import", "follows", &file]);
    tail.line_containing("\"handle\":\"user-900\"");
    tail.line_containing("\"from\":\"900\",\"to\":\"901\"");
    tail.signal(Signal::INT);
    assert!(tail.wait().success(), "{}", tail.said());
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let folder = imported(1_500);
    // Far more than a pipe holds, or nothing at all after the first line.
    for arguments in ["-n 100000", "-n 100000 --follow", "-n 1 --follow"] {
        let status = folder.file("status", "");
        let script = format!("{{ \"$0\" events tail {arguments} --data \"$1\"; echo $? >\"$2\"; }} | head -n 1");
        let mut command = Command::new("sh");
        command.args(["-c", &script, crate::BINARY]).arg(folder.data()).arg(&status);
        let mut shell = Process::start(command, "a shell");
        shell.line_containing("v1");
        assert!(shell.wait().success());
        assert_eq!(std::fs::read_to_string(status).unwrap(), "0\n", "{arguments}: {}", shell.said());
        assert_eq!(shell.said(), "", "{arguments}");
    }
}
