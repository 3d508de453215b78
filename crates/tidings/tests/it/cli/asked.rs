//! What an operator is asked, and what is refused before anybody is.

use super::folder::{Folder, follows};

fn imported() -> Folder {
    let folder = Folder::new();
    let file = folder.file("follows.csv", follows(20, 5));
    folder.done(&["import", "follows", &file]);
    folder
}

#[tokio::test]
async fn a_projector_that_cannot_be_forgotten_is_refused_before_anybody_is_asked() {
    let folder = imported();
    let refused = |name: &str, why: &str| {
        let said = folder.tidings(&["projector", "forget", name]);
        assert!(said.status != 0 && said.err.contains(why), "{name}: {}{}", said.out, said.err);
        assert!(!said.err.contains("--yes"), "nobody was asked: {}", said.err);
    };
    refused("relation", "this program has the projector `relation`");
    refused("nobody", "there is no position of a projector `nobody`");
    assert_eq!(folder.by_hand("UPDATE projector_position SET projector = 'former'").await, 1);
    let asked = folder.tidings(&["projector", "forget", "former"]);
    assert!(asked.status != 0 && asked.err.contains("forgetting how far `former` is needs `--yes`"), "{}", asked.err);
    let done = folder.done(&["projector", "forget", "former", "--yes"]).out;
    assert_eq!(done, "1 position of `former` is removed\n");
}
