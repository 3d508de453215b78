//! `tidings import`: repeatable, resumable, exact about what it did not take.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Command, Stdio},
};

use flate2::{Compression, write::GzEncoder};
use serde_json::json;

use super::folder::{Folder, Said, follows};

#[test]
fn importing_again_changes_nothing_and_makes_no_event() {
    let folder = Folder::new();
    let file = folder.file("follows.csv", follows(2_000, 100));
    let first = folder.done(&["import", "follows", &file]);
    let counts = ["lines", "follows", "changed", "unchanged", "bad lines", "users added", "events"];
    assert_eq!(counts.map(|name| first.count(name)), [2_000, 2_000, 2_000, 0, 0, 100, 2_100]);
    assert_eq!(folder.head(), 2_100);

    let second = folder.done(&["import", "follows", &file]);
    assert_eq!(counts.map(|name| second.count(name)), [2_000, 2_000, 0, 2_000, 0, 0, 0]);
    assert_eq!(folder.head(), 2_100);
    // The command waited for what follows from the follows.
    assert!(folder.done(&["lag"]).out.contains("caught up"));
    assert!(folder.done(&["verify"]).out.contains("with 0 events on their way: 0 differences"));
}

#[test]
fn mutual_adds_both_directions_and_two_columns_need_no_names() {
    let folder = Folder::new();
    let file = folder.file("friends.csv", "user_a,user_b\n1,2\n3,1\n2,1\n");
    let said = folder.done(&["import", "follows", &file, "--mutual"]);
    assert_eq!((said.count("follows"), said.count("changed"), said.count("unchanged")), (6, 4, 2));
    // Without it the same file is another import, and nothing of it is new.
    assert_eq!(folder.done(&["import", "follows", &file]).count("unchanged"), 3);
}

#[test]
fn columns_are_chosen_by_name() {
    let folder = Folder::new();
    let file = folder.file("wide.csv", "since,target,source\n2020,2,1\n");
    let refused = folder.tidings(&["import", "follows", &file]);
    assert_eq!(refused.status, 1);
    assert!(refused.err.contains("\"since\", \"target\", \"source\""), "{}", refused.err);
    assert!(!folder.data().exists(), "a wrong file must leave no data folder behind");

    folder.done(&["import", "follows", &file, "--from-column", "source", "--to-column", "target"]);
    let events = folder.done(&["events", "tail", "--type", "relation"]).out;
    assert!(events.contains("\"from\":\"1\",\"to\":\"2\""), "{events}");
}

#[test]
fn bad_lines_are_told_with_their_number_and_the_rest_is_imported() {
    let folder = Folder::new();
    let text = b"from,to\n1,2\n1\nx,2\n5,5\n\n1,9223372036854775808\n1,\xff\n3,4\n".to_vec();
    let file = folder.file("follows.csv", &text);
    let said = folder.done(&["import", "follows", &file, "--batch", "3"]);
    assert_eq!((said.count("lines"), said.count("changed"), said.count("bad lines")), (7, 2, 5));
    let told: Vec<&str> = said.err.lines().filter(|line| line.starts_with("line ")).collect();
    let expected = [
        "line 3: 1 columns, but the header has 2",
        "line 4: \"x\" is not a user id",
        "line 5: user 5 follows himself",
        "line 7: \"9223372036854775808\" is out of range: the last user id is 9223372036854775807",
        "line 8: \"\u{fffd}\" is not UTF-8 text",
    ];
    assert_eq!(told, expected);
}

#[test]
fn only_the_first_bad_lines_are_told_and_all_are_counted() {
    let folder = Folder::new();
    let file = folder.file("follows.csv", format!("from,to\n{}", "x,y\n".repeat(50)));
    let said = folder.done(&["import", "follows", &file]);
    assert_eq!(said.count("bad lines"), 50);
    assert_eq!(said.err.lines().filter(|line| line.starts_with("line ")).count(), 20, "{}", said.err);
    assert!(said.out.contains("30 of the bad lines are not shown"), "{}", said.out);
}

#[test]
fn strict_stops_at_the_first_bad_line_with_an_error() {
    let folder = Folder::new();
    let file = folder.file("follows.csv", "from,to\n1,2\nx,2\n3,4\n");
    let said = folder.tidings(&["import", "follows", &file, "--strict"]);
    assert_eq!(said.status, 1);
    assert!(said.err.contains("line 3: \"x\" is not a user id; stopped there"), "{}", said.err);
    assert_eq!((said.count("changed"), said.count("bad lines")), (1, 1));
}

#[test]
fn strict_stops_at_the_same_line_however_often_it_is_run() {
    let folder = Folder::new();
    for (name, bad, reason) in [("text.csv", "x,2", "\"x\" is not a user id"), ("self.csv", "5,5", "follows himself")] {
        let file = folder.file(name, format!("from,to\n1,2\n{bad}\n3,4\n"));
        for run in 1..=3 {
            let said = folder.tidings(&["import", "follows", &file, "--strict"]);
            assert_eq!(said.status, 1, "run {run} of {name}: {}{}", said.out, said.err);
            assert!(said.err.contains("line 3: ") && said.err.contains(reason), "run {run}: {}", said.err);
        }
        // Without it the bad line is told and passed over.
        assert_eq!(folder.done(&["import", "follows", &file]).count("bad lines"), 1);
    }
}

#[test]
fn gzip_is_the_same_as_plain_whatever_the_name() {
    let folder = Folder::new();
    let text = follows(500, 50);
    let plain = folder.file("follows.csv", &text);
    assert_eq!(folder.done(&["import", "follows", &plain]).count("changed"), 500);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = folder.file("follows.dat", packed.finish().unwrap());
    let said = folder.done(&["import", "follows", &packed]);
    assert_eq!((said.count("lines"), said.count("changed"), said.count("unchanged")), (500, 0, 500));
}

#[test]
fn a_torn_gzip_file_is_an_error_and_what_came_before_it_stays() {
    let folder = Folder::new();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(follows(20_000, 500).as_bytes()).unwrap();
    let mut packed = packed.finish().unwrap();
    packed.truncate(packed.len() / 2);
    let file = folder.file("follows.csv.gz", packed);
    let said = folder.tidings(&["import", "follows", &file, "--batch", "500"]);
    assert_eq!(said.status, 1);
    assert!(said.err.contains("failed while reading"), "{}", said.err);
    assert!(said.count("changed") > 0);
    folder.done(&["verify"]);
}

#[test]
fn a_pipe_is_read_like_a_file() {
    let folder = Folder::new();
    let mut command = folder.command(&["import", "follows", "/dev/stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(follows(300, 30).as_bytes()).unwrap();
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!((said.status, said.count("changed")), (0, 300), "{}", said.err);
}

#[test]
fn a_killed_import_continues_where_it_was() {
    let folder = Folder::new();
    let file = large_with_bad_line(&folder);
    let (mut child, _) = import_past_bad_line(&folder, &file);
    child.kill().unwrap();
    child.wait().unwrap();
    let head = folder.head();
    assert!(head > 0);
    continues_to_the_end(&folder, &file, head);
}

#[test]
fn an_interrupted_import_ends_after_its_batch_and_continues_there() {
    let folder = Folder::new();
    let file = large_with_bad_line(&folder);
    let (mut child, mut said) = import_past_bad_line(&folder, &file);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("the same command continues there"), "{rest}");
    continues_to_the_end(&folder, &file, folder.head());
}

/// Lines of the large file.
const LARGE_LINES: u64 = 30_000;
/// The bad line by which a test notices that the import is under way.
const BAD_LINE: usize = 4_000;

fn large_with_bad_line(folder: &Folder) -> String {
    let text = follows(LARGE_LINES - 1, 700);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(BAD_LINE - 1, "bad,line");
    folder.file("large.csv", lines.join("\n"))
}

/// Starts an import, and returns when it has told the bad line: earlier batches are committed and noted.
fn import_past_bad_line(folder: &Folder, file: &str) -> (Child, impl std::io::BufRead + use<>) {
    let mut command = folder.command(&["import", "follows", file, "--batch", "256"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with(&format!("line {BAD_LINE}: ")) {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "the import ended before its bad line");
    }
    (child, said)
}

/// The next run continues, and makes exactly the events that are missing; the one after it begins anew.
fn continues_to_the_end(folder: &Folder, file: &str, head: u64) {
    let resumed = folder.done(&["import", "follows", file]);
    assert!(resumed.err.contains("continuing at line "), "{}", resumed.err);
    assert!(resumed.count("lines") < LARGE_LINES);
    assert_eq!(folder.head(), head + resumed.count("events"));
    assert_eq!(folder.head(), LARGE_LINES - 1 + 700);
    folder.done(&["verify"]);

    let again = folder.done(&["import", "follows", file]);
    assert!(!again.err.contains("continuing"), "{}", again.err);
    assert_eq!((again.count("lines"), again.count("changed"), again.count("events")), (LARGE_LINES, 0, 0));
}

#[tokio::test]
async fn an_import_goes_beside_a_server_that_shows_it_at_once() {
    let world = crate::world(&[]).await;
    let file = world.scratch_folder().join("follows.csv");
    std::fs::write(&file, follows(3_000, 150)).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        tokio::task::spawn_blocking(move || Said::from(command.output().unwrap()))
    };
    let said = run(&["import", "follows", file.to_str().unwrap()]).await.unwrap();
    assert_eq!((said.status, said.count("changed")), (0, 3_000), "{}", said.err);
    // The import has waited for the server's projector.
    let counters = world.admin().await.read("/v1/users/7/counters").await;
    assert_eq!((&counters["followings"], &counters["followers"]), (&json!(20), &json!(20)));
    let verified = run(&["verify"]).await.unwrap();
    assert_eq!(verified.status, 0, "{}", verified.out);
}

#[tokio::test]
async fn a_user_whose_handle_is_taken_is_told_by_the_line() {
    let world = crate::world(&[]).await;
    world.admin().await.post("/v1/admin/users", &json!({"user_id": "9", "handle": "user-5"})).await.json(201);
    let file = world.scratch_folder().join("follows.csv");
    std::fs::write(&file, "from,to\n1,2\n5,1\n9,1\n").unwrap();
    let mut command = world.command(&["import", "follows", file.to_str().unwrap(), "--mutual"]);
    let said = Said::from(tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap());
    assert_eq!((said.status, said.count("changed"), said.count("bad lines")), (0, 4, 1), "{}", said.err);
    assert!(said.err.contains("line 3: user 5 could not be registered: the handle `user-5` belongs"), "{}", said.err);
}
