//! The table maps that are in force, and those that were read before.

use std::{collections::HashMap, sync::Arc};

use crate::{
    Error, Flavor, Table,
    limits::{TABLES_KEPT_MAX, TABLES_OF_STATEMENT_MAX},
};

/// Servers write a table map for every statement, nearly always the same few. So a map is kept after
/// its statement with the bytes it was read from, and not read again while they are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    /// Of the statement that is being read. Usually there is one.
    of_statement: Vec<Arc<Table>>,
    known: HashMap<u64, Known>,
}

#[derive(Clone, Debug)]
struct Known {
    bytes: Box<[u8]>,
    table: Arc<Table>,
}

impl Tables {
    /// The table that a table map describes, from now on in force.
    pub(super) fn map(&mut self, id: u64, body: &[u8], flavor: Flavor) -> Result<Arc<Table>, Error> {
        let table = match self.known.get(&id) {
            Some(known) if *known.bytes == *body => Arc::clone(&known.table),
            _ => self.read(id, body, flavor)?,
        };
        let count = self.of_statement.len();
        match self.of_statement.iter_mut().find(|table| table.id() == id) {
            Some(former) => *former = Arc::clone(&table),
            None if count < TABLES_OF_STATEMENT_MAX => self.of_statement.push(Arc::clone(&table)),
            None => {
                let (place, limit) = ("table maps of a statement", TABLES_OF_STATEMENT_MAX as u64);
                return Err(Error::TooLarge { place, found: limit + 1, limit });
            }
        }
        Ok(table)
    }

    fn read(&mut self, id: u64, body: &[u8], flavor: Flavor) -> Result<Arc<Table>, Error> {
        let table = Arc::new(Table::read(id, body, flavor)?);
        if self.known.len() >= TABLES_KEPT_MAX {
            // Which of them come again cannot be known; those that do are read once more.
            self.known.clear();
        }
        self.known.insert(id, Known { bytes: body.into(), table: Arc::clone(&table) });
        Ok(table)
    }

    pub(super) fn get(&self, id: u64) -> Option<Arc<Table>> {
        self.of_statement.iter().find(|table| table.id() == id).cloned()
    }

    pub(super) fn describe(&mut self, table: Arc<Table>) {
        if let Some(former) = self.of_statement.iter_mut().find(|former| former.id() == table.id()) {
            *former = Arc::clone(&table);
        }
        if let Some(known) = self.known.get_mut(&table.id()) {
            known.table = table;
        }
    }

    pub(super) fn end_statement(&mut self) {
        self.of_statement.clear();
    }

    pub(super) fn forget(&mut self) {
        self.of_statement.clear();
        self.known.clear();
    }
}
