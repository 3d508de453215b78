//! How every row of an outbox comes to be noted as pending: by a trigger, and where there was none, by a look.
//!
//! A trigger may vanish without a word: a restore leaves triggers out, tools that change a table put a copy
//! in its place, somebody drops and makes the table. So it is known when the trigger was made, and up to
//! which number all rows are noted. Whoever finds another trigger, or none, notes the rows above that number
//! again; those of them that were published are told by what the checkpoints name as sent.

use super::pending::{self, MARK_MISSED, MARK_NOTED, MARK_ROW, MARK_TRIGGER, SHARDS};
use crate::{
    Error, Result,
    limits::RELAY_POLL_NOTE_ROWS,
    relay::{
        FirstStart, OutboxTable,
        connection::{Connection, server_code},
        definition,
        lease::lock_name,
        select,
        server::quoted,
    },
};

/// What the server says of trouble that passes by itself: a lock is not had in time, a deadlock, a statement
/// that was ended, a shutdown.
const TRANSIENT: [u16; 4] = [1205, 1213, 1317, 1053];

const DOING: &str = "noting the pending rows";

/// How the rows of one outbox are noted.
#[derive(Debug)]
pub(super) struct Noting {
    outbox: OutboxTable,
    /// Names as statements have them.
    table: String,
    pending: String,
    seq: String,
    key: String,
    /// What tells a row from another one that has its number.
    identity: String,
}

/// What is known of the table of pending rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    /// All rows up to this number are noted.
    noted: u64,
    /// The identity of the row that has this number.
    row: u64,
    /// When the trigger was made that notes the rows above; nothing while rows that it missed are being noted.
    trigger: Option<u64>,
}

/// The trigger as the server has it.
#[derive(Debug)]
struct Trigger {
    /// The table whose rows it notes.
    table: String,
    /// When it was made, in hundredths of a second since the Unix epoch.
    made: u64,
}

fn shard(row: &str, key: &str) -> String {
    // A row without a key must not make the statement of its writer fail.
    format!("COALESCE(CRC32({row}{key}), 0) % {SHARDS}")
}

impl Noting {
    /// # Errors
    /// When the outbox has no column to tell rows or keys by.
    pub(super) async fn of(connection: &mut Connection, outbox: &OutboxTable) -> Result<Self> {
        let columns = definition::read(connection, outbox).await?;
        Ok(Self {
            table: quoted(&outbox.database, &outbox.name),
            pending: pending::table(outbox),
            seq: select::name(&outbox.columns.seq),
            key: pending::key_column(outbox, &columns)?,
            identity: pending::identity(outbox, &columns, "outbox"),
            outbox: outbox.clone(),
        })
    }

    /// Makes sure that each row that is committed from now on is noted, and that each before was. Several
    /// pollers may do so at once.
    ///
    /// # Errors
    /// When the account may not make the table or the trigger; the error says which statements somebody else
    /// can run.
    pub(super) async fn ensure(&self, connection: &mut Connection, first_start: FirstStart) -> Result<()> {
        if self.is_ensured(connection).await? {
            return Ok(());
        }
        // One at a time: what another one notes and a worker strikes off must not be noted once more.
        let lock = lock_name(&format!("pending:{}", self.outbox.full_name()));
        let taken = "SELECT GET_LOCK(?, 1)";
        while connection.first::<(Option<i64>,)>(DOING, taken, (lock.as_str(),)).await? != Some((Some(1),)) {}
        self.make(connection, first_start).await?;
        connection.first::<(Option<i64>,)>(DOING, "SELECT RELEASE_LOCK(?)", (lock,)).await.map(drop)
    }

    /// Whether the trigger is the one that is known. If so, all rows that are there are noted.
    async fn is_ensured(&self, connection: &mut Connection) -> Result<bool> {
        let Some(marks) = self.marks(connection).await? else { return Ok(false) };
        // The row before the trigger: a row that was missed since comes after it and has a higher number.
        let last = self.last(connection).await?;
        let trigger = self.trigger(connection).await?.filter(|trigger| self.is_ours(trigger));
        if trigger.is_none_or(|trigger| Some(trigger.made) != marks.trigger) {
            return Ok(false);
        }
        if let Some((noted, row)) = last.filter(|(noted, _)| *noted > marks.noted) {
            // Nothing happens where another poller has done so.
            let sql = format!(
                "UPDATE {} SET seq = CASE shard WHEN {MARK_NOTED} THEN ? ELSE ? END WHERE \
                 (shard = {MARK_NOTED} AND seq = ?) OR (shard = {MARK_ROW} AND seq = ?)",
                self.pending
            );
            connection.rows(DOING, &sql, (noted, row, marks.noted, marks.row)).await?;
        }
        Ok(true)
    }

    /// Makes what is missing. Making the trigger waits for open transactions of the outbox, so no row escapes
    /// it once it is there.
    async fn make(&self, connection: &mut Connection, first_start: FirstStart) -> Result<()> {
        if self.is_ensured(connection).await? {
            return Ok(());
        }
        let marks = self.marks(connection).await?;
        let found = self.trigger(connection).await?;
        let is_there = found.as_ref().is_some_and(|trigger| self.is_ours(trigger));
        let drop_sql = format!("DROP TRIGGER {}", self.trigger_name());
        let statements = [
            (!self.has_table(connection).await?).then(|| self.table_sql()),
            // It went with the table when that was renamed, and names are unique.
            (found.is_some() && !is_there).then_some(drop_sql),
            (!is_there).then(|| self.trigger_sql()),
        ];
        if marks.is_some() {
            let sql = format!("INSERT IGNORE INTO {} (shard, seq) VALUES ({MARK_MISSED}, 0)", self.pending);
            connection.run(DOING, &sql).await?;
        }
        for sql in statements.into_iter().flatten() {
            self.run(connection, &sql).await?;
        }
        let trigger = loop {
            match self.trigger(connection).await?.filter(|trigger| self.is_ours(trigger)) {
                Some(trigger) => break trigger,
                // Gone already, or hidden from this account: making it tells which.
                None => self.run(connection, &self.trigger_sql()).await?,
            }
        };
        let last = self.last(connection).await?;
        let after = match marks {
            None => (first_start == FirstStart::Earliest).then_some(0),
            Some(marks) => Some(self.noted(connection, marks, last).await?),
        };
        if let Some((after, (last, _))) = after.zip(last) {
            self.note(connection, after, last).await?;
        }
        let (noted, row) = last.unwrap_or_default();
        self.mark(connection, noted, row, trigger.made).await
    }

    /// Makes something, or says what is in the way and who can make it.
    async fn run(&self, connection: &mut Connection, sql: &str) -> Result<()> {
        const TRIGGER_EXISTS: u16 = 1359;
        match connection.run(DOING, sql).await {
            Err(error) if server_code(&error) == Some(TRIGGER_EXISTS) => {
                Err(self.denied("the trigger is not to be seen"))
            }
            Err(error) if server_code(&error).is_some_and(|code| !TRANSIENT.contains(&code)) => {
                Err(self.denied(&Error::chain(&error)))
            }
            made => made,
        }
    }

    /// The number up to which rows were noted, though the trigger is gone: 0 if the table is another one,
    /// whose numbers have begun anew.
    async fn noted(&self, connection: &mut Connection, marks: Marks, last: Option<(u64, u64)>) -> Result<u64> {
        let sql = format!("SELECT {} FROM {} AS outbox WHERE {} = ?", self.identity, self.table, self.seq);
        let row: Option<(u64,)> = connection.first(DOING, &sql, (marks.noted,)).await?;
        let is_same = match row {
            Some((row,)) => row == marks.row,
            None => last.is_some_and(|(last, _)| last > marks.noted),
        };
        let noted = if is_same { marks.noted } else { 0 };
        let table = self.outbox.full_name();
        tracing::warn!(table, noted, "the trigger of an outbox was gone; the rows above are noted again");
        Ok(noted)
    }

    /// Notes rows, in pages, since a statement has its time.
    async fn note(&self, connection: &mut Connection, mut after: u64, to: u64) -> Result<()> {
        let (table, seq) = (&self.table, &self.seq);
        let page = format!(
            "SELECT CAST(MAX(seq) AS UNSIGNED) FROM (SELECT {seq} AS seq FROM {table} WHERE {seq} > ? AND {seq} <= ? \
             ORDER BY {seq} LIMIT {RELAY_POLL_NOTE_ROWS}) AS page"
        );
        let rows = format!(
            "INSERT IGNORE INTO {} (shard, seq) SELECT {}, {seq} FROM {table} WHERE {seq} > ? AND {seq} <= ?",
            self.pending,
            shard("", &self.key)
        );
        while let Some((Some(end),)) = connection.first::<(Option<u64>,)>(DOING, &page, (after, to)).await? {
            connection.rows(DOING, &rows, (after, end)).await?;
            after = end;
        }
        Ok(())
    }

    async fn mark(&self, connection: &mut Connection, noted: u64, row: u64, trigger: u64) -> Result<()> {
        let pending = &self.pending;
        connection.run(DOING, "START TRANSACTION").await?;
        connection.run(DOING, &format!("DELETE FROM {pending} WHERE shard >= {MARK_MISSED}")).await?;
        let sql = format!(
            "INSERT INTO {pending} (shard, seq) VALUES ({MARK_TRIGGER}, ?), ({MARK_ROW}, ?), ({MARK_NOTED}, ?)"
        );
        connection.rows(DOING, &sql, (trigger, row, noted)).await?;
        connection.run(DOING, "COMMIT").await
    }

    /// Nothing if rows were never noted as a whole.
    async fn marks(&self, connection: &mut Connection) -> Result<Option<Marks>> {
        const NO_SUCH_TABLE: u16 = 1146;
        let of = |mark: u32| format!("MAX(CASE shard WHEN {mark} THEN seq END)");
        let sql = format!(
            "SELECT {}, {}, {}, {} FROM {} WHERE shard >= {MARK_MISSED}",
            of(MARK_NOTED),
            of(MARK_ROW),
            of(MARK_TRIGGER),
            of(MARK_MISSED),
            self.pending
        );
        type Row = (Option<u64>, Option<u64>, Option<u64>, Option<u64>);
        let row = match connection.first::<Row>(DOING, &sql, ()).await {
            Err(error) if server_code(&error) == Some(NO_SUCH_TABLE) => None,
            row => row?,
        };
        let marks = |(noted, row, trigger, missed): Row| {
            Some(Marks { noted: noted?, row: row?, trigger: trigger.filter(|_| missed.is_none()) })
        };
        Ok(row.and_then(marks))
    }

    /// The number and the identity of the last row that is there.
    async fn last(&self, connection: &mut Connection) -> Result<Option<(u64, u64)>> {
        let (table, seq) = (&self.table, &self.seq);
        let sql = format!(
            "SELECT CAST({seq} AS UNSIGNED), {} FROM {table} AS outbox ORDER BY {seq} DESC LIMIT 1",
            self.identity
        );
        connection.first(DOING, &sql, ()).await
    }

    async fn trigger(&self, connection: &mut Connection) -> Result<Option<Trigger>> {
        let sql = "SELECT EVENT_OBJECT_TABLE, CAST(COALESCE(UNIX_TIMESTAMP(CREATED), 0) * 100 AS UNSIGNED) \
                   FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ? AND TRIGGER_NAME = ?";
        let name = pending::trigger_of(&self.outbox.name);
        let row = connection.first::<(String, u64)>(DOING, sql, (self.outbox.database.as_str(), name)).await?;
        Ok(row.map(|(table, made)| Trigger { table, made }))
    }

    fn is_ours(&self, trigger: &Trigger) -> bool {
        // Servers that do not tell cases apart may have lowered it.
        trigger.table.eq_ignore_ascii_case(&self.outbox.name)
    }

    async fn has_table(&self, connection: &mut Connection) -> Result<bool> {
        let sql = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";
        let name = pending::table_of(&self.outbox.name);
        let row = connection.first::<(i64,)>(DOING, sql, (self.outbox.database.as_str(), name)).await?;
        Ok(row.is_some_and(|(count,)| count > 0))
    }

    fn trigger_name(&self) -> String {
        quoted(&self.outbox.database, &pending::trigger_of(&self.outbox.name))
    }

    fn table_sql(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {} (shard SMALLINT UNSIGNED NOT NULL, seq BIGINT UNSIGNED NOT NULL, \
             PRIMARY KEY (shard, seq)) ENGINE = InnoDB",
            self.pending
        )
    }

    /// It makes no statement of a writer fail: a number may be noted already in a table that was made anew.
    fn trigger_sql(&self) -> String {
        format!(
            "CREATE TRIGGER {} AFTER INSERT ON {} FOR EACH ROW INSERT INTO {} (shard, seq) VALUES ({}, NEW.{seq}) \
             ON DUPLICATE KEY UPDATE seq = NEW.{seq}",
            self.trigger_name(),
            self.table,
            self.pending,
            shard("NEW.", &self.key),
            seq = self.seq
        )
    }

    fn denied(&self, why: &str) -> Error {
        let reason = format!(
            "{why}: let somebody who may run: {}; {}; (where a binlog is on, that is SUPER or \
             `log_bin_trust_function_creators = 1`), and give the relay's user TRIGGER on the outbox, so that it \
             sees whether the trigger is there",
            self.table_sql(),
            self.trigger_sql()
        );
        Error::RelayStopped { reason }
    }
}
