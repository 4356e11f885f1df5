//! Selects the columns of a trace to read.

use crate::tables::*;
use crate::{Names, for_each_table};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The columns of a trace that are to be read. All others stay empty, so that a report that needs a few columns of
/// ten million dispatches takes a fraction of the time and memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The names of the selected columns, by table.
    tables: BTreeMap<&'static str, BTreeSet<&'static str>>,
    /// True where ids are not to be checked.
    unchecked: bool,
    /// The user's names for kernels, which reading applies.
    names: Option<Arc<Names>>,
}

impl Selection {
    /// Selects all columns of all tables.
    pub fn all() -> Selection {
        let mut selection = Selection::default();
        macro_rules! add {
            ($($field:ident: $table:ty,)+) => { $(selection = selection.with::<$table>();)+ };
        }
        for_each_table!(add);
        selection
    }

    /// Selects the manifest alone.
    pub fn manifest() -> Selection {
        Selection::default()
    }

    /// Selects the ids that other tables refer to, and nothing else. Ids of a table that is added to this selection
    /// are checked.
    pub fn referenced_ids() -> Selection {
        let id = &["id"];
        Selection::default()
            .columns::<Kernels>(id)
            .columns::<Labels>(id)
            .columns::<Buffers>(id)
            .columns::<Bindings>(id)
            .columns::<Memory>(&["allocation"])
            .columns::<Submissions>(id)
            .columns::<CommandBuffers>(id)
            .columns::<Counters>(id)
            .columns::<Stacks>(id)
            .columns::<Frames>(id)
    }

    /// Returns true for a table whose ids other tables refer to.
    pub fn is_referenced(table: &str) -> bool {
        Selection::referenced_ids().has_table(table)
    }

    /// Adds all columns of table `T`.
    pub fn with<T: Table>(self) -> Selection {
        self.columns::<T>(T::COLUMNS)
    }

    /// Removes table `T`.
    pub fn without<T: Table>(mut self) -> Selection {
        self.tables.remove(T::NAME);
        self
    }

    /// Adds these columns of table `T`.
    ///
    /// # Panics
    /// `T` has no such column.
    pub fn columns<T: Table>(mut self, columns: &[&'static str]) -> Selection {
        let wanted = self.tables.entry(T::NAME).or_default();
        for column in columns {
            let known = T::COLUMNS.contains(column);
            assert!(known, "{} has no column {column}", T::NAME);
            wanted.insert(column);
        }
        self
    }

    /// Skips the check whether ids lead anywhere, which takes a pass over every column of ids: there will be no
    /// [`crate::Diagnostic::UnknownId`].
    pub fn unchecked(mut self) -> Selection {
        self.unchecked = true;
        self
    }

    /// Renames kernels with `names`, where there are any, and selects the columns that this needs.
    pub fn named(self, names: Option<&Arc<Names>>) -> Selection {
        let Some(names) = names else {
            return self;
        };
        let columns = [
            "source",
            "specialisation",
            "name",
            "name_source",
            "full_name",
        ];
        Selection {
            names: Some(names.clone()),
            ..self.columns::<Kernels>(&columns)
        }
    }

    pub(crate) fn has_table(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    pub(crate) fn is_checked(&self) -> bool {
        !self.unchecked
    }

    pub(crate) fn names(&self) -> Option<&Names> {
        self.names.as_deref()
    }

    pub(crate) fn has_column(&self, table: &str, column: &str) -> bool {
        (self.tables.get(table)).is_some_and(|columns| columns.contains(column))
    }
}
