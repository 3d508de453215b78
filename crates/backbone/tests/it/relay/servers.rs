//! A server that a test may stop, kill, pause and set up anew, beside those that all tests share.

use std::path::Path;

use mysql_async::prelude::Queryable;
use tidings_testkit::database::Engine;
use tokio::{process::Command, sync::Mutex, sync::MutexGuard};

use super::world::{World, short};

/// The set of services that they are in.
const SET: &str = "relay";

/// One test at a time has it.
static MARIADB: Mutex<()> = Mutex::const_new(());
static MYSQL: Mutex<()> = Mutex::const_new(());

/// As `on_both!`, on a MariaDB and on a MySQL that a test has for itself alone.
macro_rules! on_own_of_both {
    ($($lists:tt)+) => {
        $crate::relay::world::on_servers!($crate::relay::servers::Own, alone_on_mariadb, alone_on_mysql; $($lists)+);
    };
}
pub(crate) use on_own_of_both;

/// A server of one's own. It is left running, like those that all tests share, for the next test.
pub(crate) struct Own {
    pub(crate) world: World,
    service: &'static str,
    _turn: MutexGuard<'static, ()>,
}

impl Own {
    /// The server of this engine with a fresh database, once it is this test's turn.
    pub(crate) async fn on(engine: Engine, test: &str) -> Self {
        let (service, turn) = match engine {
            Engine::Sqlite => panic!("SQLite has no server"),
            Engine::Mariadb => ("mariadb", MARIADB.lock().await),
            Engine::Mysql => ("mysql", MYSQL.lock().await),
        };
        let mut world = World::at(start(service, SET).await, &short(test)).await;
        // A test that failed may have left something.
        for setting in ["binlog_format = 'ROW'", "binlog_row_metadata = 'FULL'", "max_allowed_packet = 67108864"] {
            world.sql(format!("SET GLOBAL {setting}")).await;
        }
        if !world.is_mariadb {
            for mode in ["OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"] {
                // One step at a time; it may stand at any.
                drop(world.conn.query_drop(format!("SET GLOBAL gtid_mode = {mode}")).await);
            }
        }
        Self { world, service, _turn: turn }
    }

    /// Stops it in order, and starts it again.
    pub(crate) async fn restart(&mut self) {
        run(&["restart", "--set", SET, self.service]).await;
        self.reconnect().await;
    }

    /// Kills it, and starts it again.
    pub(crate) async fn crash(&mut self) {
        self.kill().await;
        self.start().await;
    }

    pub(crate) async fn kill(&self) {
        run(&["kill", "--set", SET, self.service]).await;
    }

    pub(crate) async fn start(&mut self) {
        run(&["up", "--set", SET, self.service]).await;
        self.reconnect().await;
    }

    /// Freezes it.
    pub(crate) async fn pause(&self) {
        run(&["pause", "--set", SET, self.service]).await;
    }

    pub(crate) async fn resume(&self) {
        run(&["resume", "--set", SET, self.service]).await;
    }

    /// A new connection in the place of the one that broke.
    pub(crate) async fn reconnect(&mut self) {
        self.world.conn = self.world.another().await;
    }
}

/// Starts a server, and answers its address.
pub(crate) async fn start(service: &str, set: &str) -> String {
    start_with("", service, set).await
}

/// The same with further settings of MariaDB or MySQL.
pub(crate) async fn start_with(settings: &str, service: &str, set: &str) -> String {
    let mut up = Command::new(script());
    answer(up.args(["up", "--set", set, service]).env("TIDINGS_SERVICES_SQL_SETTINGS", settings)).await;
    let env = run(&["env", "--set", set, service]).await;
    env.trim().split_once('=').unwrap().1.to_owned()
}

pub(crate) async fn run(args: &[&str]) -> String {
    answer(Command::new(script()).args(args)).await
}

async fn answer(command: &mut Command) -> String {
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn script() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services")
}
