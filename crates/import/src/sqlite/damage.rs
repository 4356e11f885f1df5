//! Counts the pages and rows of a database that could not be read.

use gapscope_trace::Ledger;

/// The numbers of pages and rows that could not be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The number of pages that are missing, or that contradict the pages above them.
    pub pages: u64,
    /// The number of rows that cannot be decoded.
    pub rows: u64,
}

impl Damage {
    /// Adds the damage of another scan.
    pub fn add(&mut self, other: Damage) {
        self.pages += other.pages;
        self.rows += other.rows;
    }

    /// Adds the damage to the losses of an import.
    pub fn add_to(self, ledger: &mut Ledger) {
        let reason = "the file is cut or damaged";
        ledger.add("pages of the database".into(), self.pages, reason);
        ledger.add("rows of the database".into(), self.rows, reason);
    }
}
