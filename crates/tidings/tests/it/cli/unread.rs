//! What is printed for nobody: `tidings audit | head` closes its pipe as soon as it has enough.

use std::process::Stdio;

use super::folder::{Folder, Said, follows};

#[test]
fn a_command_whose_output_nobody_reads_any_more_ends_quietly() {
    let folder = Folder::new();
    let file = folder.file("follows.csv", follows(20, 5));
    folder.done(&["import", "follows", &file]);
    folder.done(&["rebuild", "start", "relation"]);
    folder.done(&["reconcile"]);
    for command in [
        "audit",
        "audit --json",
        "config check",
        "events tail",
        "lag",
        "parked list",
        "rebuild status",
        "reconcile list",
        "verify",
        "--help",
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        // Closed before the first word, which is the earliest that it can be.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut unread = folder.command(&arguments);
        let child = unread.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!((said.status, &*said.err), (0, ""), "{command}");
    }
}
