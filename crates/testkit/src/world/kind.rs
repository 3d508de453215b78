//! Which worlds there are, and tests on each of them.

use crate::database::Engine;

/// Chooses the world of tests that do not care: `embedded` unless set.
const WORLD_VARIABLE: &str = "TIDINGS_TEST_WORLD";

/// The worlds there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One process, and SQLite in its data folder.
    Embedded,
    /// MariaDB, Kafka and Redis.
    Mariadb,
    /// MySQL, Kafka and Redis.
    Mysql,
}

impl Kind {
    /// The one that the environment chooses.
    ///
    /// # Panics
    /// When it names none.
    pub fn chosen() -> Self {
        match std::env::var(WORLD_VARIABLE).as_deref() {
            Err(_) | Ok("embedded") => Self::Embedded,
            Ok("mariadb") => Self::Mariadb,
            Ok("mysql") => Self::Mysql,
            Ok(other) => panic!("{WORLD_VARIABLE}={other}: the worlds are embedded, mariadb and mysql"),
        }
    }

    /// Whether the tests on it were called off.
    pub fn is_left_out(self) -> bool {
        self.engine().is_left_out()
    }

    pub(crate) fn engine(self) -> Engine {
        match self {
            Self::Embedded => Engine::Sqlite,
            Self::Mariadb => Engine::Mariadb,
            Self::Mysql => Engine::Mysql,
        }
    }

    /// A distributed world: the one that the environment chooses, or else the first that was not called off.
    ///
    /// # Panics
    /// When all of them were.
    pub fn distributed() -> Self {
        let chosen = [Self::chosen(), Self::Mariadb, Self::Mysql].into_iter();
        let found = chosen.filter(|kind| *kind != Self::Embedded).find(|kind| !kind.is_left_out());
        found.expect("a test that needs a distributed world needs MariaDB or MySQL")
    }
}

/// Makes a test of each function on each world: `on_every_world!(first, second)` for
/// `async fn first(kind: Kind)`. They are found as `on_embedded::first`, `on_mariadb::first`, ...
#[macro_export]
macro_rules! on_every_world {
    (@one $module:ident, $kind:ident, $($name:ident),+) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $name() {
                    let kind = $crate::Kind::$kind;
                    if kind.is_left_out() {
                        eprintln!("not run: this engine was left out");
                        return;
                    }
                    super::$name(kind).await;
                }
            )+
        }
    };
    ($($name:ident),+ $(,)?) => {
        $crate::on_every_world!(@one on_embedded, Embedded, $($name),+);
        $crate::on_every_world!(@one on_mariadb, Mariadb, $($name),+);
        $crate::on_every_world!(@one on_mysql, Mysql, $($name),+);
    };
}

/// As [`on_every_world!`], for what only the distributed ones have.
#[macro_export]
macro_rules! on_every_distributed_world {
    ($($name:ident),+ $(,)?) => {
        $crate::on_every_world!(@one only_on_mariadb, Mariadb, $($name),+);
        $crate::on_every_world!(@one only_on_mysql, Mysql, $($name),+);
    };
}
