//! What a relay alone refuses at its start, before it has made anything.

use tidings_testkit::{
    Process,
    database::{Database, Engine, Place, say},
    on_every_server,
};

use crate::database::Hand;

on_every_server!(
    a_seq_that_is_no_integer_and_columns_that_are_not_there_are_told_before_anything_is_made,
    who_is_not_let_in_ends_with_the_reason_and_who_was_waits_until_he_is_again,
);

const TABLE: &str = "CREATE TABLE happenings (
    id CHAR(36) NOT NULL PRIMARY KEY, aggregatetype VARCHAR(64) NOT NULL, aggregateid VARCHAR(64) NOT NULL,
    type VARCHAR(64) NOT NULL, payload TEXT NOT NULL
) DEFAULT CHARACTER SET utf8mb4";

fn relay(database: &Database, config: &str) -> Process {
    let file = database.folder.path().join("relay.toml");
    std::fs::write(&file, config).unwrap();
    let mut command = std::process::Command::new(crate::BINARY);
    command.args(["relay", "--config"]).arg(&file).current_dir(database.folder.path());
    Process::start(command, "the binary should be there")
}

/// What a relay says that ends by itself.
pub(super) fn refusal(database: &Database, config: &str) -> String {
    let mut relay = relay(database, config);
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

async fn who_is_not_let_in_ends_with_the_reason_and_who_was_waits_until_he_is_again(engine: Engine) {
    let database = Database::new(engine).await;
    let Place::Url(url) = &database.place else { unreachable!("a server has an address") };
    let (server, name) = url.rsplit_once('/').unwrap();
    let (_, place) = server.rsplit_once('@').unwrap();
    let table = TABLE.replace("id CHAR(36) NOT NULL PRIMARY KEY", "no BIGINT AUTO_INCREMENT PRIMARY KEY, id CHAR(36)");
    say(url, table).await.unwrap();
    say(server, format!("CREATE USER '{name}'@'%' IDENTIFIED BY 'secret'")).await.unwrap();
    let address = |password: &str, database: &str| format!("mysql://{name}:{password}@{place}/{database}");
    let columns = "seq = \"no\", event_key = \"aggregateid\"";
    // In the end it knows no database that it may not see, so that one is denied to it.
    let wrong = [(address("wrong", name), "1045"), (address("secret", name), "1044"), (format!("{url}_no"), "1049")];
    for (wrong, code) in wrong {
        for mode in ["binlog", "poll"] {
            let said = refusal(&database, &config(&wrong, mode, columns));
            assert!(said.contains(code) && said.contains("user, password and database"), "{mode}: {said}");
            let last = said.lines().last().unwrap();
            assert_eq!(last.matches("ERROR ").count(), 1, "it is said once: {last}");
        }
    }

    let rights = format!("GRANT ALL PRIVILEGES ON *.* TO '{name}'@'%'");
    say(server, rights).await.unwrap();
    let insert =
        |key: &str| format!("INSERT INTO happenings VALUES (NULL, UUID(), 'order', '{key}', 'OrderMade', '{{}}')");
    for mode in ["binlog", "poll"] {
        let mut relay = relay(&database, &config(&address("secret", name), mode, columns));
        say(url, insert(&format!("{mode} before"))).await.unwrap();
        relay.line_containing(&format!("{mode} before"));
        say(server, format!("ALTER USER '{name}'@'%' IDENTIFIED BY 'another'")).await.unwrap();
        Hand::on_server(server).await.end_connections_of(name).await;
        relay.wait_until_said("1045");
        say(server, format!("ALTER USER '{name}'@'%' IDENTIFIED BY 'secret'")).await.unwrap();
        say(url, insert(&format!("{mode} after"))).await.unwrap();
        relay.line_containing(&format!("{mode} after"));
        let said = relay.said();
        assert!(
            !said.contains("WARN tidings_backbone::relay::recover: reading"),
            "a first start is no trouble: {said}"
        );
        relay.end();
        std::fs::remove_file(database.folder.path().join("c"))
            .or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
            .unwrap();
    }
    say(server, format!("DROP USER '{name}'@'%'")).await.unwrap();
}
