//! Gives access to the cells of rows in a table that xctrace exported, by the names of their columns.

use super::cell::{Process, Thread, Value};
use std::rc::Rc;

/// The columns of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Schema {
    pub name: String,
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Column {
    /// The name of the column, such as `start`.
    pub mnemonic: String,
    /// The type of the column and the tag of its cells, such as `start-time`.
    pub engineering_type: String,
}

impl Schema {
    /// Returns the first of `mnemonics` (names of columns) for which the table has no column.
    pub fn lacks<'a>(&self, mnemonics: &[&'a str]) -> Option<&'a str> {
        let has = |mnemonic: &str| self.columns.iter().any(|c| c.mnemonic == mnemonic);
        mnemonics.iter().copied().find(|mnemonic| !has(mnemonic))
    }

    fn index_of(&self, mnemonic: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.mnemonic == mnemonic)
    }
}

/// A row whose cells are in the order of the schema's columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub schema: &'a Schema,
    pub cells: &'a [Value],
}

impl Row<'_> {
    /// Returns the cell in a column; `None` if the table lacks the column.
    fn value(&self, mnemonic: &str) -> Option<&Value> {
        self.cells.get(self.schema.index_of(mnemonic)?)
    }

    /// Returns the whole number in a column; `None` if the cell is missing or another value.
    pub fn number(&self, mnemonic: &str) -> Option<u64> {
        match self.value(mnemonic)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a time or duration in nanoseconds; `None` as for [`Self::number`].
    pub fn ns(&self, mnemonic: &str) -> Option<i64> {
        i64::try_from(self.number(mnemonic)?).ok()
    }

    /// Returns the id in a column; 0 and all bits set mean that there is none.
    pub fn id(&self, mnemonic: &str) -> Option<u64> {
        self.number(mnemonic)
            .filter(|id| *id != u64::MAX && *id != 0)
    }

    /// Returns the text in a column if it is not empty.
    pub fn text(&self, mnemonic: &str) -> Option<&Rc<str>> {
        match self.value(mnemonic)? {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Returns the process in a column; `None` as for [`Self::number`].
    pub fn process(&self, mnemonic: &str) -> Option<&Rc<Process>> {
        match self.value(mnemonic)? {
            Value::Process(process) => Some(process),
            _ => None,
        }
    }

    /// Returns the thread in a column; `None` as for [`Self::number`].
    pub fn thread(&self, mnemonic: &str) -> Option<&Rc<Thread>> {
        match self.value(mnemonic)? {
            Value::Thread(thread) => Some(thread),
            _ => None,
        }
    }
}
