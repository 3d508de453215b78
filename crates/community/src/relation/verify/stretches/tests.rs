use tidings_backbone::{
    Db, Durability, Tx,
    db::{BACKBONE_MIGRATIONS, Engine as On, MysqlOptions},
};
use tidings_testkit::{
    database::{Database, Engine, Place},
    on_every_engine,
};

use super::*;
use crate::relation::{
    counters::select_stored_after,
    rebuild::select_step,
    verify::{
        active::{Side, select_active},
        pairs::{select_extra, select_unlike},
        shards::select_sums,
        users::SELECT_NOBODIES,
    },
};

on_every_engine!(
    stretches_join_without_gap_or_overlap_and_none_is_long,
    each_statement_reads_a_range_of_few_rows_by_the_primary_key,
);

const GENERATION: Generation = Generation::FIRST;

/// The database, whose end is that of the test, too.
async fn database(engine: Engine) -> (Database, Db) {
    let database = Database::new(engine).await;
    let db = match &database.place {
        Place::File(file) => Db::open_sqlite(file).await.unwrap(),
        Place::Url(url) => Db::open_mysql(MysqlOptions::from_url(url).unwrap()).await.unwrap(),
    };
    db.migrate(&[BACKBONE_MIGRATIONS, crate::MIGRATIONS].concat()).await.unwrap();
    (database, db)
}

/// Facts and mirror rows of these pairs of owner and follower, and mirror rows of the next generation.
async fn fill(tx: &mut Tx, pairs: impl Iterator<Item = (i64, i64)>) {
    let mut conn = tx.conn();
    let head = "INSERT INTO following (from_user_id, to_user_id, rel_status, version, created_at, updated_at) VALUES";
    let rows = pairs.map(|(to, from)| [from, to, 1, 1, 1, 1].map(Value::from)).collect();
    conn.execute_rows("preparing", head, rows, "").await.unwrap();
    for generation in ["1", "2"] {
        let sql = format!(
            "INSERT INTO follower (generation, to_user_id, from_user_id, rel_status, version, created_at, updated_at) \
             SELECT {generation}, to_user_id, from_user_id, rel_status, version, created_at, updated_at FROM following"
        );
        conn.execute("preparing", sql, Vec::new()).await.unwrap();
    }
}

async fn count(conn: &mut Conn<'_>, stretch: &Stretch) -> i64 {
    let sql = stretch.select(conn.engine(), "COUNT(*)", "", "");
    conn.fetch_optional("counting", sql, stretch.args()).await.unwrap().unwrap().int(0).unwrap()
}

async fn stretches_join_without_gap_or_overlap_and_none_is_long(engine: Engine) {
    let (_database, db) = database(engine).await;
    let mut tx = db.write(Durability::Full).await.unwrap();
    // Owners with 1 to 12 followers each, and ids that only damage makes.
    let owners = [i64::MIN, -1, 0, 1, 2, 3, 7, 8, 9, 10, 11, i64::MAX];
    let followers =
        |number: usize| (0..=number as i64).map(|at| [at * 3 - 2, i64::MIN, i64::MAX][(at % 7 % 3) as usize]);
    let pairs = owners.into_iter().enumerate();
    let pairs: std::collections::BTreeSet<(i64, i64)> =
        pairs.flat_map(|(number, owner)| followers(number).map(move |from| (owner, from))).collect();
    let number = pairs.len() as i64;
    fill(&mut tx, pairs.into_iter()).await;
    let sql = "UPDATE following SET id = ? WHERE to_user_id = ? AND from_user_id = -2";
    for (id, owner) in [(i64::MAX, 7_i64), (-7, 8)] {
        assert_eq!(tx.conn().execute("preparing", sql, vec![id.into(), owner.into()]).await.unwrap(), 1);
    }
    let mut conn = tx.conn();
    for table in [Table::Facts, Table::Mirror(GENERATION)] {
        for rows_max in [1, 2, 3, 5, 8, 13, 100] {
            let (mut rows, mut stretches) = (0, Stretches::by(table, rows_max));
            let mut keys = std::collections::BTreeSet::new();
            while let Some(stretch) = stretches.next(&mut conn).await.unwrap() {
                let found = count(&mut conn, &stretch).await;
                assert!(found <= rows_max, "{found} rows in {stretch:?}");
                rows += found;
                let sql = stretch.select(conn.engine(), "r.to_user_id, r.from_user_id", "", "");
                for row in conn.fetch("reading", sql, stretch.args()).await.unwrap() {
                    keys.insert((row.int(0).unwrap(), row.int(1).unwrap()));
                }
            }
            // Together they are all: as many rows as there are, and each in one of them.
            assert_eq!((rows, keys.len() as i64), (number, number), "{table:?} by {rows_max}");
        }
    }
    tx.rollback().await.unwrap();
}

/// Lines of the longest list, and of all others together.
const LINES: i64 = 6_000;
const ROWS_MAX: i64 = 100;

async fn each_statement_reads_a_range_of_few_rows_by_the_primary_key(engine: Engine) {
    let (_database, db) = database(engine).await;
    let mut tx = db.write(Durability::Full).await.unwrap();
    let crowd = (0..LINES).map(|at| (1_000 + at / 3, at % 3));
    fill(&mut tx, (0..LINES).map(|from| (500, from)).chain(crowd)).await;
    if engine != Engine::Sqlite {
        let sql = "INSERT INTO user_counter SELECT generation, from_user_id, 0, 0, 0, 0, 0, 0 FROM follower \
                   WHERE to_user_id = 500";
        tx.conn().execute("preparing", sql, Vec::new()).await.unwrap();
        let sql = "INSERT INTO account SELECT from_user_id, from_user_id, from_user_id, 0 FROM following \
                   WHERE to_user_id = 500";
        tx.conn().execute("preparing", sql, Vec::new()).await.unwrap();
    }
    tx.commit().await.unwrap();
    let mut tx = db.read().await.unwrap();
    let mut conn = tx.conn();
    let on = conn.engine();
    for table in [Table::Facts, Table::Mirror(GENERATION)] {
        let mut stretches = Stretches::by(table, ROWS_MAX);
        let mut seen = std::collections::BTreeSet::new();
        while let Some(rest) = stretches.rest() {
            let mut said = vec![stretches.select_last(&rest, on)];
            let stretch = stretches.next(&mut conn).await.unwrap().unwrap();
            if !seen.insert((stretch.range, stretch.bounds.contains(&i64::MIN.into()))) {
                continue;
            }
            said.extend(statements(&stretch, on));
            for (sql, args) in said {
                explain(&mut conn, &sql, &args).await;
                read_few(&mut conn, &sql, args).await;
            }
        }
        let kinds = if table == Table::Facts { 3 } else { 6 };
        assert!(seen.len() >= kinds - 1, "{seen:?}");
    }
    let after: Vec<Value> = vec![GENERATION.0.into(), 7.into(), ROWS_MAX.into()];
    let before: Vec<Value> = vec![GENERATION.0.into(), ROWS_MAX.into()];
    let step: Vec<Value> = vec![7.into(), ROWS_MAX.into()];
    for (sql, args) in [
        (select_stored_after(on), after),
        (SELECT_NOBODIES.to_owned(), before),
        (select_step("following"), step.clone()),
        (select_step("account"), step),
    ] {
        explain(&mut conn, &sql, &args).await;
        read_few(&mut conn, &sql, args).await;
    }
}

/// Every statement that reads a stretch.
fn statements(stretch: &Stretch, on: On) -> Vec<(String, Vec<Value>)> {
    // True of all: MariaDB works it out where the owner is one.
    let within = "AND r.to_user_id % 256 < 256";
    let mut said: Vec<_> = [
        stretch.select(on, "COUNT(*)", "", within),
        select_sums(stretch, on),
        select_active(stretch, on, Side::Follower),
        select_active(stretch, on, Side::Followed),
    ]
    .map(|sql| (sql, stretch.args()))
    .into();
    said.push(match stretch.table {
        Table::Facts => (select_unlike(stretch, on, within), [vec![GENERATION.0.into()], stretch.args()].concat()),
        Table::Mirror(_) => (select_extra(stretch, on, within), stretch.args()),
    });
    said
}

/// How the database goes about it: rows of the stretch by a range, and one row of another table for each.
async fn explain(conn: &mut Conn<'_>, sql: &str, args: &[Value]) {
    if conn.engine() == On::Sqlite {
        let steps = conn.fetch("explaining", format!("EXPLAIN QUERY PLAN {sql}"), args.to_vec()).await.unwrap();
        for step in steps {
            let step = step.text(3).unwrap();
            let is_range = ["id>?", "id<?"].iter().any(|range| step.contains(range));
            let is_joined = step.contains("from_user_id=?") && step.contains("to_user_id=?");
            assert!(!step.starts_with("SCAN") || step == "SCAN step", "{step}: {sql}");
            assert!(!step.starts_with("SEARCH") || is_range || is_joined, "{step}: {sql}");
        }
        return;
    }
    // What begins with the least number there is is no condition to MySQL; it reads on from there until it has enough.
    let is_range = |how: &str| how == "range" || (["index", "ref"].contains(&how) && args.contains(&i64::MIN.into()));
    let (of_type, of_key, of_extra) = if conn.engine() == On::Mysql { (4, 6, 11) } else { (3, 5, 9) };
    // A text of its own each time: when it is executed once more, MariaDB 10.11 explains an outer join as impossible.
    let sql = format!("EXPLAIN FORMAT=TRADITIONAL {sql} /* {args:?} */");
    for row in conn.fetch("explaining", sql.clone(), args.to_vec()).await.unwrap() {
        let text = |column| row.text_or_null(column).unwrap().unwrap_or_default();
        let (table, how, key, extra) = (text(2), text(of_type), text(of_key), text(of_extra));
        let is_right = match &*table {
            "r" | "user_counter" | "following" | "account" => is_range(&how) && key == "PRIMARY",
            "m" | "f" => how == "eq_ref" && ["PRIMARY", "following_pair"].contains(&&*key),
            derived => derived.starts_with("<derived"),
        };
        let is_sorted = extra.contains("filesort") && !sql.contains("GROUP BY");
        assert!(is_right && !is_sorted, "{table} {how} {key} {extra}: {sql}");
    }
}

/// How many rows it reads indeed; SQLite does not tell.
async fn read_few(conn: &mut Conn<'_>, sql: &str, args: Vec<Value>) {
    if conn.engine() == On::Sqlite {
        return;
    }
    let before = rows_read(conn).await;
    conn.fetch("reading", sql.to_owned(), args).await.unwrap();
    let read = rows_read(conn).await - before;
    // Once by the range, once for the joined table, twice where they are grouped; and the question itself.
    assert!(read < ROWS_MAX * 10, "{read} rows: {sql}");
}

async fn rows_read(conn: &mut Conn<'_>) -> i64 {
    let rows = conn.fetch("asking", "SHOW SESSION STATUS LIKE 'Handler_read%'", Vec::new()).await.unwrap();
    rows.iter().map(|row| row.text(1).unwrap().parse::<i64>().unwrap()).sum()
}
