//! What a relay alone refuses at its start, before it has made anything.

use tidings_testkit::{
    Process,
    database::{Database, Engine, Place, say},
    on_every_server,
};

on_every_server!(a_seq_that_is_no_integer_and_columns_that_are_not_there_are_told_before_anything_is_made);

const TABLE: &str = "CREATE TABLE happenings (
    id CHAR(36) NOT NULL PRIMARY KEY, aggregatetype VARCHAR(64) NOT NULL, aggregateid VARCHAR(64) NOT NULL,
    type VARCHAR(64) NOT NULL, payload TEXT NOT NULL
) DEFAULT CHARACTER SET utf8mb4";

/// What a relay says that ends by itself.
fn refusal(database: &Database, config: &str) -> String {
    let file = database.folder.path().join("relay.toml");
    std::fs::write(&file, config).unwrap();
    let mut command = std::process::Command::new(crate::BINARY);
    command.args(["relay", "--config"]).arg(&file).current_dir(database.folder.path());
    let mut relay = Process::start(command, "the binary should be there");
    assert!(!relay.wait().success(), "{}", relay.said());
    relay.said()
}

fn config(url: &str, mode: &str, columns: &str) -> String {
    format!(
        "source = \"{url}\"\ngroup = \"g\"\nmode = \"{mode}\"\n\
         tables = [{{ name = \"happenings\", columns = {{ {columns} }} }}]\n\
         sink = {{ kind = \"stdout\", file = \"c\" }}\n[[routes]]\nformat = {{ kind = \"debezium\" }}\n"
    )
}

async fn a_seq_that_is_no_integer_and_columns_that_are_not_there_are_told_before_anything_is_made(engine: Engine) {
    let database = Database::new(engine).await;
    let Place::Url(url) = &database.place else { unreachable!("a server has an address") };
    let (_, name) = url.rsplit_once('/').unwrap();
    say(url, TABLE.to_owned()).await.unwrap();
    for mode in ["binlog", "poll"] {
        let columns = "seq = \"id\", event_key = \"aggregateid\", event_type = \"kind\"";
        let said = refusal(&database, &config(url, mode, columns));
        let table = format!("`{name}.happenings`");
        for wanted in [&table, "`id`", "char(36)", "ADD COLUMN", "`kind`", "`event_type`"] {
            assert!(said.contains(wanted), "{mode}: {wanted} is not in: {said}");
        }
        let row = "INSERT INTO happenings VALUES (UUID(), 'order', 'o1', 'OrderMade', '{}')";
        say(url, row.to_owned()).await.expect("the application goes on");
        assert!(say(url, "SELECT 1 FROM happenings_pending".to_owned()).await.is_err(), "nothing was made");
    }
}
