//! `tidings serve --demo`: a community, and commands that work as they are printed.

use std::process::Command;

use serde_json::Value;
use tidings_testkit::{Process, process::Signal};

use super::folder::Folder;

const PRINTED: usize = 3;

fn serve(folder: &Folder) -> (Process, Vec<String>) {
    let demo = Process::start(folder.command(&["serve", "--demo", "--listen", "127.0.0.1:0"]), "the binary");
    demo.line_containing("Tidings is at http://127.0.0.1:");
    let commands = (0..PRINTED).map(|_| demo.line_containing("curl ")).collect();
    (demo, commands)
}

/// Runs a command in another folder, as somebody does who copies it.
fn run(command: &str) -> Value {
    let silent = command.replacen("curl ", "curl --silent --show-error --fail-with-body --noproxy '*' ", 1);
    let output = Command::new("sh").args(["-c", &silent]).current_dir("/").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{command}: {text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_printed_commands_work_as_printed_and_again_after_a_restart() {
    let folder = Folder::new();
    let (mut demo, commands) = serve(&folder);
    let follow = run(&commands[0]);
    assert_eq!((&follow["changed"], &follow["following"]), (&true.into(), &true.into()));
    assert_eq!(run(&commands[1])["items"].as_array().unwrap().len(), 3);
    assert!(run(&commands[2])["followers"].as_u64().unwrap() > 1_000, "the first is a celebrity");
    demo.signal(Signal::TERM);
    assert!(demo.wait().success(), "{}", demo.said());
    assert!(demo.said().contains("100 %"), "{}", demo.said());
    folder.done(&["verify"]);
    let head = folder.head();

    let (mut demo, commands) = serve(&folder);
    assert_eq!(run(&commands[0])["changed"], false);
    demo.signal(Signal::TERM);
    assert!(demo.wait().success());
    assert!(!demo.said().contains("loading"), "{}", demo.said());
    assert_eq!(folder.head(), head);
}

#[test]
fn other_data_is_left_alone_and_its_users_are_shown() {
    let folder = Folder::new();
    let file = folder.file("follows.csv", "from,to\n500,600\n");
    folder.done(&["import", "follows", &file]);
    let (_demo, commands) = serve(&folder);
    assert!(commands[0].contains("--user 500 ") && commands[0].ends_with("/v1/me/following/600"), "{commands:?}");
    assert_eq!(run(&commands[0])["changed"], false);
    assert_eq!(run(&commands[2])["followers"], 1);
    assert_eq!(folder.head(), 3);
}

#[test]
fn a_demo_that_was_killed_while_loading_is_loaded_to_its_end() {
    let folder = Folder::new();
    let file = folder.file("follows.csv", "from,to\n1,2\n");
    folder.done(&["import", "follows", &file]);
    // What a killed demo leaves behind: some data, and the sign that there is more to come.
    std::fs::write(folder.data().join("demo.loading"), "").unwrap();
    let (_demo, commands) = serve(&folder);
    assert!(run(&commands[2])["followers"].as_u64().unwrap() > 1_000);
    assert!(folder.path().join("data").join("demo.loading").metadata().is_err());
}
