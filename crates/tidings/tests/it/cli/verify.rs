//! `tidings verify` and `tidings lag`: what they tell, and their exit status.

use serde_json::Value;

use super::folder::{Folder, follows};

fn imported() -> Folder {
    let folder = Folder::new();
    let file = folder.file("follows.csv", follows(400, 25));
    folder.done(&["import", "follows", &file]);
    folder
}

#[tokio::test]
async fn a_row_that_was_deleted_by_hand_is_found() {
    let folder = imported();
    let deleted = folder.by_hand("DELETE FROM follower WHERE from_user_id = 3 AND to_user_id = 5").await;
    assert_eq!(deleted, 1);

    let said = folder.tidings(&["verify"]);
    assert_eq!(said.status, 1, "{}", said.err);
    assert!(said.out.contains("mirror row missing, 3:5:"), "{}", said.out);

    let said = folder.tidings(&["verify", "--json"]);
    assert_eq!(said.status, 1);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["facts"], 400);
    let kinds = report["kinds"].as_array().unwrap();
    let missing = kinds.iter().find(|kind| kind["what"] == "mirror row missing").unwrap();
    assert_eq!((&missing["checked"], &missing["differences"]), (&400.into(), &1.into()));
    assert_eq!(report["examples"][0]["subject"], "3:5");
}

#[test]
fn what_cannot_be_verified_is_neither_right_nor_wrong() {
    let folder = Folder::new();
    let said = folder.tidings(&["verify"]);
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(said.err.contains("there is no data in"), "{}", said.err);
    assert!(!folder.data().exists(), "looking must not make a folder");

    std::fs::create_dir(folder.data()).unwrap();
    std::fs::write(folder.data().join("tidings.db"), "this is no database, and long enough to be told from one")
        .unwrap();
    assert_eq!(folder.tidings(&["verify"]).status, 2);
    assert_eq!(folder.tidings(&["verify", "--config", "/nowhere.toml"]).status, 2);
}

#[tokio::test]
async fn lag_is_told_though_nothing_runs() {
    let folder = imported();
    assert!(folder.done(&["lag"]).out.contains("caught up"));
    let moved = folder.by_hand("UPDATE projector_position SET log_offset = log_offset - 30").await;
    assert_eq!(moved, 1);

    let lag: Value = serde_json::from_str(&folder.done(&["lag", "--json"]).out).unwrap();
    let projector = &lag["projectors"][0];
    assert_eq!((&projector["projector"], &projector["lag_events"]), (&"relation".into(), &30.into()));
    assert_eq!((&projector["position"], &projector["state"]), (&395.into(), &"behind".into()));
    assert!(projector["oldest_age_ms"].as_i64().unwrap() >= 0);
    assert_eq!(lag["log"]["head"], 425);
    assert!(folder.done(&["lag"]).out.contains("behind"));
}

#[tokio::test]
async fn events_that_are_gone_before_they_were_applied_are_told() {
    let folder = imported();
    folder.by_hand("UPDATE projector_position SET log_offset = 100").await;
    folder.by_hand("DELETE FROM outbox WHERE seq <= 200").await;
    assert!(folder.done(&["lag"]).out.contains("needs events that are gone"));
}
