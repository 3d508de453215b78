//! What every engine must do alike, and what only a server can do to us.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sqlx::{Connection as _, MySqlConnection};
use tidings_backbone::{
    Conn, Db, Durability, Error,
    db::{MysqlOptions, Value},
    outbox,
};
use tidings_testkit::{
    database::{Engine, Place, end_connections, say},
    on_every_engine,
};

use crate::world::World;

on_every_engine!(
    input_rows_come_back_as_they_went_in,
    numbers_are_stored_and_counted_whatever_their_number,
    a_reader_sees_one_moment,
    keys_are_compared_byte_for_byte,
    an_abandoned_statement_leaves_nothing_behind,
    faults_of_data_are_told_from_all_others,
    an_application_emits_in_a_transaction_of_its_own,
    a_savepoint_takes_back_what_came_after_it,
);

async fn input_rows_come_back_as_they_went_in(engine: Engine) {
    let world = World::on(engine).await;
    let texts = ["", "a", "a ", "😀 中文", "\"quoted\" \\ 'and'", "line\nbreak\ttab"];
    let numbers = [0, 1, -1, i64::MAX, i64::MIN, 1 << 53, (1 << 53) + 1];
    let bytes: Vec<Vec<u8>> = vec![vec![], vec![0, 255, 0x27, 0x22], (0..=255).collect()];
    let rows: Vec<[Value; 4]> = (0..700)
        .map(|number: usize| {
            [
                (number as i64).into(),
                numbers[number % numbers.len()].into(),
                texts[number % texts.len()].into(),
                bytes[number % bytes.len()].clone().into(),
            ]
        })
        .collect();
    let mut tx = world.db.read().await.unwrap();
    let sql = |input: &str| format!("WITH k (n, a, b, c) AS ({input}) SELECT n, a, b, c FROM k");
    let mut seen = std::collections::BTreeSet::new();
    for row in tx.conn().fetch_rows("testing", sql, rows).await.unwrap() {
        let number = usize::try_from(row.int(0).unwrap()).unwrap();
        assert_eq!(row.int(1).unwrap(), numbers[number % numbers.len()]);
        assert_eq!(row.text(2).unwrap(), texts[number % texts.len()]);
        assert_eq!(row.bytes(3).unwrap(), bytes[number % bytes.len()]);
        seen.insert(number);
    }
    assert_eq!(seen.len(), 700);
}

async fn numbers_are_stored_and_counted_whatever_their_number(engine: Engine) {
    let world = World::on(engine).await;
    let mut tx = world.db.write(Durability::Full).await.unwrap();
    let mut conn = tx.conn();
    conn.execute("making", "CREATE TABLE n (id BIGINT PRIMARY KEY, a BIGINT NOT NULL, b BIGINT)", vec![])
        .await
        .unwrap();
    let numbers = [0, -1, i64::MAX, i64::MIN, (1 << 53) + 1];
    let tail = conn.engine().on_conflict("id", &format!("a = {}, b = n.id", conn.engine().inserted("a")));
    let mut stored = 0;
    for count in [1, 32, 33, 5_000_usize] {
        let row = |id: usize| [(id as i64).into(), numbers[id % numbers.len()].into(), Value::Null];
        let rows: Vec<[Value; 3]> = (0..count).map(row).collect();
        let changed = conn.execute_numbers("storing", "INSERT INTO n (id, a, b) VALUES", rows, &tail).await.unwrap();
        // Of those that were there, none but the newest has been changed to what it is; a change counts twice there.
        let new = count - stored;
        let expected = if engine == Engine::Sqlite { count..=count } else { new..=new + 2 * stored };
        assert!(expected.contains(&usize::try_from(changed).unwrap()), "{changed} of {count}");
        stored = count;
    }
    let rows = conn.fetch("looking", "SELECT id, a, b FROM n ORDER BY id", vec![]).await.unwrap();
    assert_eq!(rows.len(), 5_000);
    for (id, row) in rows.iter().enumerate() {
        let b = (id < 33).then_some(id as i64);
        let seen = (row.int(0).unwrap(), row.int(1).unwrap(), row.int_or_null(2).unwrap());
        assert_eq!(seen, (id as i64, numbers[id % numbers.len()], b));
    }
}

async fn a_reader_sees_one_moment(engine: Engine) {
    let world = World::on(engine).await;
    let mut before = world.db.read().await.unwrap();
    let count = "SELECT COUNT(*) FROM outbox";
    let look = async |conn: &mut Conn<'_>| conn.fetch("looking", count, vec![]).await.unwrap()[0].int(0).unwrap();
    assert_eq!(look(&mut before.conn()).await, 0);
    world.emit("switch.turned", [("a".to_owned(), 1)]).await;
    assert_eq!(look(&mut before.conn()).await, 0);
    before.commit().await.unwrap();
    assert_eq!(look(&mut world.db.read().await.unwrap().conn()).await, 1);
}

async fn keys_are_compared_byte_for_byte(engine: Engine) {
    let world = World::on(engine).await;
    let mut tx = world.db.write(Durability::Full).await.unwrap();
    let keys = ["a", "a ", " a", "A", "á", "a\u{301}", "😀", "😁", ""];
    let sql = "INSERT INTO idempotency_key (scope, idem_key, fingerprint, answer, created_at) VALUES";
    let rows = keys.iter().map(|key| [(*key).into(), (*key).into(), vec![1].into(), "{}".into(), 1.into()]).collect();
    tx.conn().execute_rows("storing", sql, rows, "").await.unwrap();
    for key in keys {
        let input = |input: &str| format!("SELECT idem_key FROM idempotency_key WHERE (scope, idem_key) IN ({input})");
        let found = tx.conn().fetch_rows("looking", input, vec![[key.into(), key.into()]]).await.unwrap();
        assert_eq!(found.iter().map(|row| row.text(0).unwrap()).collect::<Vec<_>>(), [key]);
    }
}

/// A statement that waits for another transaction is given up; what its own had done is undone.
async fn an_abandoned_statement_leaves_nothing_behind(engine: Engine) {
    let world = World::on(engine).await;
    world.execute("INSERT INTO switch (name, is_on) VALUES ('lamp', 0)").await;
    let turn = "UPDATE switch SET is_on = 1 WHERE name = 'lamp'";
    let mut first = world.db.write(Durability::Full).await.unwrap();
    first.conn().execute("turning", turn, vec![]).await.unwrap();
    for _ in 0..20 {
        let db = world.db.clone();
        let second = tokio::spawn(async move {
            let mut second = db.write(Durability::Full).await.unwrap();
            second.conn().execute("x", "INSERT INTO switch (name, is_on) VALUES ('x', 1)", vec![]).await.unwrap();
            second.conn().execute("waiting", turn, vec![]).await.unwrap();
        });
        // However far it has come.
        tokio::task::yield_now().await;
        world.count("SELECT COUNT(*) FROM switch").await;
        second.abort();
        assert!(second.await.unwrap_err().is_cancelled());
    }
    first.commit().await.unwrap();
    world.execute("INSERT INTO switch (name, is_on) VALUES ('y', 0)").await;
    assert_eq!(
        world.rows("SELECT name, is_on FROM switch ORDER BY name").await,
        [("lamp".to_owned(), 1), ("y".to_owned(), 0)]
    );
}

async fn faults_of_data_are_told_from_all_others(engine: Engine) {
    let world = World::on(engine).await;
    world.execute("INSERT INTO switch (name, is_on) VALUES ('lamp', 0)").await;
    let long = format!("INSERT INTO switch (name, is_on) VALUES ('{}', 0)", "x".repeat(300));
    let mut faults = vec![
        "INSERT INTO switch (name, is_on) VALUES ('lamp', 0)".to_owned(),
        "INSERT INTO switch (name, is_on) VALUES ('b', NULL)".to_owned(),
        "INSERT INTO switch (name, is_on) VALUES ('b', 2)".to_owned(),
    ];
    if engine != Engine::Sqlite {
        faults.extend([long, "INSERT INTO switch (name, is_on) VALUES ('b', 1e30)".to_owned()]);
        faults.push("INSERT INTO switch (name, is_on) VALUES ('b', 'one')".to_owned());
    }
    for sql in faults {
        let error = execute(&world.db, sql.clone()).await.unwrap_err();
        assert!(error.is_fault_of_data() && !error.is_transient(), "{sql}: {error:?}");
        let (chain, said) = (Error::chain(&error), std::error::Error::source(&error).unwrap().to_string());
        assert!(chain.ends_with(&said), "what the driver says is said once: {chain}");
    }
    for sql in ["SELECT nothing FROM nowhere", "DELETE FROM nowhere", "not SQL"] {
        let error = execute(&world.db, sql.to_owned()).await.unwrap_err();
        assert!(!error.is_fault_of_data() && !error.is_transient(), "{sql}: {error:?}");
    }
}

async fn execute(db: &Db, sql: String) -> Result<u64, Error> {
    let mut tx = db.write(Durability::Full).await.unwrap();
    let done = tx.conn().execute("testing", sql, vec![]).await;
    tx.rollback().await.unwrap();
    done
}

/// Beside a server that writes without a pause a command gets its turn, too.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_writes_without_a_pause_lets_another_process_go_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidings.db");
    let busy = Db::open_sqlite(&file).await.unwrap();
    let mut tx = busy.write(Durability::Rebuildable).await.unwrap();
    tx.conn().execute("making", "CREATE TABLE n (id INTEGER PRIMARY KEY)", vec![]).await.unwrap();
    tx.commit().await.unwrap();
    // What a second process has: connections of its own.
    let other = Db::open_sqlite(&file).await.unwrap();
    let written = Arc::new(AtomicU64::new(0));
    let writing = tokio::spawn({
        let written = Arc::clone(&written);
        async move {
            loop {
                let mut tx = busy.write(Durability::Rebuildable).await.unwrap();
                tx.conn().execute("writing", "INSERT INTO n DEFAULT VALUES", vec![]).await.unwrap();
                // A batch that takes its time, for which the lock is held.
                tokio::time::sleep(Duration::from_millis(20)).await;
                tx.commit().await.unwrap();
                written.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let mut waited = 0;
    for _ in 0..20 {
        let before = written.load(Ordering::Relaxed);
        other.write(Durability::Rebuildable).await.unwrap().commit().await.unwrap();
        waited += written.load(Ordering::Relaxed) - before;
    }
    writing.abort();
    assert!(waited < 100, "20 turns were waited for while another one had {waited}");
}

async fn a_savepoint_takes_back_what_came_after_it(engine: Engine) {
    let world = World::on(engine).await;
    let mut tx = world.db.write(Durability::Full).await.unwrap();
    for sql in [
        "INSERT INTO switch (name, is_on) VALUES ('a', 1)",
        "SAVEPOINT here",
        "INSERT INTO switch (name, is_on) VALUES ('b', 1)",
        "ROLLBACK TO SAVEPOINT here",
        "RELEASE SAVEPOINT here",
    ] {
        tx.conn().execute("testing", sql, vec![]).await.unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(world.rows("SELECT name, is_on FROM switch").await, [("a".to_owned(), 1)]);
}

async fn an_application_emits_in_a_transaction_of_its_own(engine: Engine) {
    let world = World::on(engine).await;
    let event = || vec![world.event("switch.turned", "lamp", 1)];
    match &world.database.place {
        Place::File(file) => {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
            let mut own = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
            let mut tx = own.begin().await.unwrap();
            outbox::emit(Conn::from(&mut *tx), event()).await.unwrap();
            tx.commit().await.unwrap();
        }
        Place::Url(url) => {
            let mut own = MySqlConnection::connect(url).await.unwrap();
            let mut tx = own.begin().await.unwrap();
            outbox::emit(Conn::from(&mut *tx), event()).await.unwrap();
            tx.rollback().await.unwrap();
            let mut tx = own.begin().await.unwrap();
            outbox::emit(Conn::from(&mut *tx), event()).await.unwrap();
            tx.commit().await.unwrap();
        }
    }
    assert_eq!(world.count("SELECT COUNT(*) FROM outbox").await, 1);
}

mod server {
    //! MySQL and MariaDB alone.

    use tidings_testkit::on_every_server;

    use super::*;

    on_every_server!(
        a_killed_connection_is_transient_and_the_next_one_works,
        contention_is_transient,
        a_server_that_turned_read_only_is_left_by_every_connection,
        an_account_is_let_in_whose_password_the_server_has_not_seen,
        a_misspelt_address_is_refused,
    );

    /// The connections that the database has to this process, without the one that asks.
    async fn kill_all(world: &World) {
        let Place::Url(url) = &world.database.place else { return };
        let (server, name) = url.rsplit_once('/').unwrap();
        let mut asking = MySqlConnection::connect(server).await.unwrap();
        end_connections(&mut asking, &format!("db = '{name}'")).await.unwrap();
    }

    async fn a_killed_connection_is_transient_and_the_next_one_works(engine: Engine) {
        let world = World::on(engine).await;
        let insert = "INSERT INTO switch (name, is_on) VALUES ('lamp', 1)";
        let mut tx = world.db.write(Durability::Full).await.unwrap();
        tx.conn().execute("x", insert, vec![]).await.unwrap();
        kill_all(&world).await;
        let error = tx.conn().execute("x", "SELECT 1", vec![]).await.unwrap_err();
        assert!(error.is_transient() && !error.is_fault_of_data(), "{error:?}");
        drop(tx);
        assert_eq!(world.count("SELECT COUNT(*) FROM switch").await, 0);

        // Idle ones: the first use finds out, and takes the others along.
        let all: Vec<_> = futures::future::join_all((0..5).map(|_| world.db.write(Durability::Full))).await;
        for tx in all {
            tx.unwrap().rollback().await.unwrap();
        }
        kill_all(&world).await;
        assert!(world.db.write(Durability::Full).await.is_err_and(|error| error.is_transient()));
        world.db.write(Durability::Full).await.unwrap();
        world.execute(insert).await;
        assert_eq!(world.count("SELECT COUNT(*) FROM switch").await, 1);
    }

    async fn contention_is_transient(engine: Engine) {
        let world = World::on(engine).await;
        world.execute("INSERT INTO switch (name, is_on) VALUES ('a', 0), ('b', 0)").await;
        let turn = |name: &str| format!("UPDATE switch SET is_on = 1 WHERE name = '{name}'");
        let mut first = world.db.write(Durability::Full).await.unwrap();
        let mut second = world.db.write(Durability::Full).await.unwrap();
        first.conn().execute("x", turn("a"), vec![]).await.unwrap();
        second.conn().execute("x", turn("b"), vec![]).await.unwrap();
        let (mut one, mut two) = (first.conn(), second.conn());
        let (one, two) = tokio::join!(one.execute("x", turn("b"), vec![]), two.execute("x", turn("a"), vec![]));
        let loser = one.and(two).unwrap_err();
        assert!(loser.is_transient() && !loser.is_fault_of_data(), "{loser:?}");
    }

    async fn a_server_that_turned_read_only_is_left_by_every_connection(engine: Engine) {
        let world = World::on(engine).await;
        let id = async |db: &Db| {
            let mut tx = db.write(Durability::Full).await.unwrap();
            let sql = "SELECT CAST(CONNECTION_ID() AS SIGNED)";
            let id = tx.conn().fetch_optional("asking", sql, vec![]).await.unwrap().unwrap().int(0).unwrap();
            tx.rollback().await.unwrap();
            id
        };
        let before = id(&world.db).await;
        assert_eq!(id(&world.db).await, before, "a clean connection is used again");
        // As a replica answers to a write, without turning the server of all other tests into one.
        let Place::Url(url) = &world.database.place else { return };
        let trigger = "CREATE TRIGGER read_only BEFORE INSERT ON switch FOR EACH ROW \
                       SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'read only'";
        say(url, trigger.to_owned()).await.unwrap();
        let error = execute(&world.db, "INSERT INTO switch (name, is_on) VALUES ('a', 0)".to_owned()).await;
        assert!(error.is_err_and(|error| error.is_transient() && !error.is_fault_of_data()));
        assert_ne!(id(&world.db).await, before);
    }

    /// As each is just after a restart of MySQL. MariaDB lets it in by another way, and is there for comparison.
    async fn an_account_is_let_in_whose_password_the_server_has_not_seen(engine: Engine) {
        let world = World::on(engine).await;
        let Place::Url(url) = &world.database.place else { return };
        let (server, name) = url.rsplit_once('/').unwrap();
        let host = server.rsplit_once('@').unwrap().1;
        let account = &name[name.len().saturating_sub(32)..];
        say(url, format!("CREATE USER '{account}'@'127.0.0.1' IDENTIFIED BY 'never said'")).await.unwrap();
        say(url, format!("GRANT ALL PRIVILEGES ON `{name}`.* TO '{account}'@'127.0.0.1'")).await.unwrap();
        let address = format!("mysql://{account}:never%20said@{host}/{name}");
        if engine == Engine::Mysql {
            let in_clear = MysqlOptions::from_url(&format!("{address}?ssl-mode=DISABLED")).unwrap();
            let error = Db::open_mysql(in_clear).await.unwrap_err();
            assert!(Error::chain(&error).contains("turn TLS on in the server"), "{error:?}");
        }
        let db = Db::open_mysql(MysqlOptions::from_url(&address).unwrap()).await.unwrap();
        execute(&db, "INSERT INTO switch (name, is_on) VALUES ('a', 0)".to_owned()).await.unwrap();
        db.close().await;
        say(url, format!("DROP USER '{account}'@'127.0.0.1'")).await.unwrap();
    }

    async fn a_misspelt_address_is_refused(_: Engine) {
        for (address, reason) in [
            ("postgres://root@localhost/x", "begins with mysql://"),
            ("mysql://root@localhost", "names no database"),
            ("mysql://root@localhost/x?ssl_mode=REQUIRED", "unknown parameter `ssl_mode`"),
        ] {
            let error = MysqlOptions::from_url(address).unwrap_err();
            assert!(Error::chain(&error).contains(reason), "{error:?}");
        }
        let secret = MysqlOptions::from_url("mysql://root:hunter2@localhost/x").unwrap();
        assert!(!format!("{secret:?}").contains("hunter2"));
    }
}
