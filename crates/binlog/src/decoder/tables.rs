//! The table maps that are in force, and those that were read before.

use std::{collections::HashMap, sync::Arc};

use crate::{
    Error, Flavor, Table,
    limits::{TABLES_KEPT_MAX, TABLES_OF_STATEMENT_MAX},
    table::Described,
};

/// Servers write a table map for every statement, nearly always the same few. So a map is kept after
/// its statement with the bytes it was read from, and not read again while they are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    /// Of the statement that is being read. Usually there is one.
    of_statement: Vec<Described>,
    known: HashMap<u64, Known>,
}

#[derive(Clone, Debug)]
struct Known {
    bytes: Box<[u8]>,
    described: Described,
}

impl Tables {
    /// What a table map describes, from now on in force.
    pub(super) fn map(&mut self, id: u64, body: &[u8], flavor: Flavor) -> Result<Described, Error> {
        let described = match self.known.get(&id) {
            Some(known) if *known.bytes == *body => known.described.clone(),
            _ => self.read(id, body, flavor)?,
        };
        let count = self.of_statement.len();
        match self.find(id) {
            Some(former) => *former = described.clone(),
            None if count < TABLES_OF_STATEMENT_MAX => self.of_statement.push(described.clone()),
            None => {
                let (place, limit) = ("table maps of a statement", TABLES_OF_STATEMENT_MAX as u64);
                return Err(Error::TooLarge { place, found: limit + 1, limit });
            }
        }
        Ok(described)
    }

    fn read(&mut self, id: u64, body: &[u8], flavor: Flavor) -> Result<Described, Error> {
        let described = Described::read(id, body, flavor)?;
        if self.known.len() >= TABLES_KEPT_MAX {
            // Which of them come again cannot be known; those that do are read once more.
            self.known.clear();
        }
        self.known.insert(id, Known { bytes: body.into(), described: described.clone() });
        Ok(described)
    }

    fn find(&mut self, id: u64) -> Option<&mut Described> {
        self.of_statement.iter_mut().find(|described| described.id() == id)
    }

    pub(super) fn get(&self, id: u64) -> Option<Described> {
        self.of_statement.iter().find(|described| described.id() == id).cloned()
    }

    pub(super) fn describe(&mut self, table: Arc<Table>) {
        let id = table.id();
        let described = Described::Table(table);
        if let Some(former) = self.find(id) {
            *former = described.clone();
        }
        if let Some(known) = self.known.get_mut(&id) {
            known.described = described;
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
