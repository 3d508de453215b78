//! The statements that `docs/relay.md` prints, run as they stand there.

use tidings_testkit::{
    database::{Database, Engine, Place, say},
    on_every_server,
};

use super::{relay_alone::Relay, relay_refused::refusal};

on_every_server!(the_statements_of_the_page_are_all_that_either_mode_needs);

/// The SQL of the page with that in it, for this database and an account of its name.
fn sql(with: &str, name: &str) -> Vec<String> {
    let page = include_str!("../../../../../docs/relay.md");
    let pieces = page.split("```sql\n").skip(1).map(|piece| piece.split("```").next().unwrap());
    let found: Vec<&str> = pieces.filter(|piece| piece.contains(with)).collect();
    let [piece] = found[..] else { panic!("{with} is in {} pieces", found.len()) };
    let ours = piece.replace("shop.", &format!("{name}.")).replace("'relay'", &format!("'{name}'"));
    ours.split(";\n").filter(|sql| !sql.trim().is_empty()).map(str::to_owned).collect()
}

fn config(server: &str, name: &str, mode: &str) -> String {
    let (_, place) = server.rsplit_once('@').unwrap();
    format!(
        "source = \"mysql://{name}:secret@{place}/{name}\"\ngroup = \"{name}\"\nmode = \"{mode}\"\n\
         tables = [{{ name = \"outbox\" }}]\n\
         sink = {{ kind = \"stdout\", file = \"{mode}.checkpoint\" }}\n"
    )
}

async fn the_statements_of_the_page_are_all_that_either_mode_needs(engine: Engine) {
    let database = Database::new(engine).await;
    let Place::Url(url) = &database.place else { unreachable!("a server has an address") };
    let (server, name) = url.rsplit_once('/').unwrap();
    let run = async |statements: Vec<String>| {
        for sql in statements {
            say(server, sql).await.unwrap();
        }
    };
    let insert = |number: u32| {
        vec![format!(
            "INSERT INTO {name}.outbox (event_id, event_type, event_key, payload) VALUES \
             (UUID(), 'order.made', 'o{number}', '{{\"n\":{number}}}')"
        )]
    };
    run(sql("CREATE TABLE", name)).await;
    run(sql("CREATE USER", name)).await;
    run(insert(1)).await;
    let mut relay = Relay::start(&database, &config(server, name, "binlog"));
    assert_eq!(relay.next().await["key"], "o1");
    relay.process.kill().await.unwrap();

    run(vec![format!("REVOKE REPLICATION SLAVE, REPLICATION CLIENT ON *.* FROM '{name}'@'%'")]).await;
    run(sql("TRIGGER ON", name)).await;
    // A binlog is on, so that this account may make no trigger.
    let said = refusal(&database, &config(server, name, "poll"));
    let (_, printed) = said.rsplit_once("who may run: ").unwrap_or_else(|| panic!("{said}"));
    run(printed.split("; ").take(2).map(str::to_owned).collect()).await;
    let mut relay = Relay::start(&database, &config(server, name, "poll"));
    run(insert(2)).await;
    let mut keys = Vec::new();
    while keys.last().is_none_or(|key| key != "o2") {
        keys.push(relay.next().await["key"].clone());
    }
    relay.process.kill().await.unwrap();

    run(sql("DROP TRIGGER", name)).await;
    run(insert(3)).await;
    run(vec![format!("DROP USER '{name}'@'%'")]).await;
}
