//! A mistyped data folder.

use std::process::Command;

use super::folder::{Folder, Said};

#[test]
fn a_mistyped_folder_is_told_and_not_made() {
    let folder = Folder::new();
    for command in ["login-link", "token --user 1", "token --admin", "lag", "verify", "events tail"] {
        let said = folder.tidings(&command.split(' ').collect::<Vec<_>>());
        assert_ne!(said.status, 0, "{command}");
        assert!(said.err.contains("there is no data in"), "{command}: {}", said.err);
        assert!(!folder.data().exists(), "{command}");
    }
}

#[test]
fn a_token_can_be_made_before_the_first_start_where_data_is_kept_by_default() {
    let folder = Folder::new();
    let mut token = Command::new(crate::BINARY);
    let said = Said::from(token.args(["token", "--admin"]).current_dir(folder.path()).output().unwrap());
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(folder.path().join("tidings-data/keys").exists());
}
