//! The interface of a table, and the macro that defines one from a list of columns.

use crate::column::{ColumnValues, Texts};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use std::sync::Arc;

/// The facts about a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnFacts {
    /// Name of the column.
    pub name: &'static str,
    /// Arrow type.
    pub data_type: DataType,
    /// True when rows may lack a value.
    pub nullable: bool,
    /// Meaning of the column.
    pub meaning: &'static str,
    /// The texts that the column may hold, each with its meaning; empty when any value of its type is allowed.
    pub values: &'static [(&'static str, &'static str)],
}

/// A table: columns of equal length.
pub trait Table: Default {
    /// One row.
    type Row;
    /// The name of the table and of its file without extension.
    const NAME: &'static str;
    /// The word that begins a row in the text form.
    const ROW: &'static str;
    /// Names of the columns in order.
    const COLUMNS: &'static [&'static str];
    /// Meaning of a row.
    const MEANING: &'static str;
    /// Returns the facts about the columns, in order.
    fn columns() -> Vec<ColumnFacts>;
    /// Returns the Arrow schema.
    fn schema() -> Arc<Schema> {
        let fields = Self::columns().into_iter();
        Arc::new(Schema::new(
            fields
                .map(|c| Field::new(c.name, c.data_type, c.nullable))
                .collect::<Vec<_>>(),
        ))
    }
    /// Returns a row of defaults, for the text form, which only names columns with other values.
    fn blank() -> Self::Row;
    /// Returns the number of rows.
    fn len(&self) -> usize;
    /// Returns true without rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the number of rows of a table that rows were pushed to. Its columns are equally long, so this costs
    /// less than [`Self::len`].
    fn pushed(&self) -> usize;
    /// Appends a row.
    fn push(&mut self, row: Self::Row);
    /// Returns row `index`.
    ///
    /// # Panics
    /// `index` is not below [`Self::len`], or a column was not read.
    fn row(&self, index: usize) -> Self::Row;
    /// Returns the rows whose entry in `keep` is true, in their order. Columns that were not read stay empty.
    #[must_use]
    fn select(&self, keep: &[bool]) -> Self;
    /// Removes all rows and keeps the allocations.
    fn clear(&mut self);
    /// Moves all rows of `other` to the end of this table.
    fn append(&mut self, other: &mut Self);
    /// Returns the columns in the order of [`Self::COLUMNS`]. A caller that changes their lengths must leave them
    /// equal.
    fn columns_mut(&mut self) -> Vec<&mut dyn ColumnValues>;
    /// Converts all rows to one batch.
    ///
    /// # Panics
    /// The columns differ in length.
    fn to_batch(&self) -> RecordBatch;
    /// Appends a batch. A nullable column that the batch lacks gets defaults; columns that this version does not know
    /// are ignored.
    ///
    /// # Errors
    /// Returns the name of the column that is missing or has another type. The table is then unchanged.
    fn append_batch(&mut self, batch: &RecordBatch, texts: &mut Texts) -> Result<(), &'static str> {
        let before = self.len();
        let after = before + batch.num_rows();
        let mut failed = None;
        for (name, values) in Self::COLUMNS.iter().zip(self.columns_mut()) {
            let fits = match batch.column_by_name(name) {
                Some(array) => values.append_array(array.as_ref(), texts),
                None if values.nullable() => {
                    values.resize(after);
                    true
                }
                None => false,
            };
            if !fits {
                failed = Some(*name);
                break;
            }
        }
        let Some(name) = failed else { return Ok(()) };
        for values in self.columns_mut() {
            values.truncate(before);
        }
        Err(name)
    }
    /// Appends the text of one value, as in [`Self::row_to_text`]. Returns false when there is no value.
    ///
    /// # Panics
    /// There is no such row or column, or the column was not read.
    fn write_text(&self, row: usize, column: usize, to: &mut String) -> bool;
    /// Returns the present values of a row as texts.
    fn row_to_text(row: &Self::Row) -> Vec<(&'static str, String)>;
    /// Sets one column of a row from its text. Returns false when there is no such column, or the text is not of its
    /// type.
    fn set_from_text(row: &mut Self::Row, column: &str, text: &str) -> bool;
}

/// Defines a table and its row from the meaning of a row, the types' names, the word of the text form, the name of
/// the file, and the columns with their meanings and types.
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $table:ident of $row:ident, $word:literal in $name:literal {
            $($(#[doc = $column_doc:literal])+ $column:ident: $type:ty,)+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $table {
            $($(#[doc = $column_doc])+ pub $column: <$type as $crate::column::Column>::Values,)+
        }

        // Only tests may leave columns out of a row: every producer of a trace has to fill in each.
        #[doc = concat!("A row of [`", stringify!($table), "`].")]
        #[derive(Debug, Clone, PartialEq)]
        #[cfg_attr(any(test, feature = "synthetic"), derive(Default))]
        pub struct $row {
            $($(#[doc = $column_doc])+ pub $column: $type,)+
        }

        impl $crate::table::Table for $table {
            type Row = $row;
            const NAME: &'static str = $name;
            const ROW: &'static str = $word;
            const COLUMNS: &'static [&'static str] = &[$(stringify!($column)),+];

            const MEANING: &'static str = concat!($($doc),+);

            fn columns() -> Vec<$crate::table::ColumnFacts> {
                vec![$($crate::table::ColumnFacts {
                    name: stringify!($column),
                    data_type: <$type as $crate::column::Column>::data_type(),
                    nullable: <$type as $crate::column::Column>::NULLABLE,
                    meaning: concat!($($column_doc),+),
                    values: <$type as $crate::column::Column>::VALUES,
                }),+]
            }

            fn blank() -> $row {
                $row { $($column: <$type>::default()),+ }
            }

            fn len(&self) -> usize {
                // Columns that were not read are empty.
                let mut longest = 0;
                $(longest = longest.max(self.$column.len());)+
                longest
            }

            #[inline]
            fn pushed(&self) -> usize {
                [$(self.$column.len()),+][0]
            }

            fn push(&mut self, row: $row) {
                $($crate::column::Values::push(&mut self.$column, row.$column);)+
            }

            fn row(&self, index: usize) -> $row {
                $row { $($column: $crate::column::Values::value(&self.$column, index)),+ }
            }

            fn select(&self, keep: &[bool]) -> Self {
                Self { $($column: $crate::column::Values::select(&self.$column, keep)),+ }
            }

            fn clear(&mut self) {
                $($crate::column::Values::clear(&mut self.$column);)+
            }

            fn append(&mut self, other: &mut Self) {
                match self.pushed() {
                    0 => std::mem::swap(self, other),
                    _ => { $($crate::column::Values::append(&mut self.$column, &mut other.$column);)+ }
                }
                other.clear();
            }

            fn columns_mut(&mut self) -> Vec<&mut dyn $crate::column::ColumnValues> {
                vec![$(&mut self.$column as &mut dyn $crate::column::ColumnValues),+]
            }

            fn to_batch(&self) -> arrow_array::RecordBatch {
                arrow_array::RecordBatch::try_new(Self::schema(), vec![$(<$type as $crate::column::Column>::to_array(&self.$column)),+])
                    .expect("all columns have the length of the table")
            }

            fn write_text(&self, row: usize, column: usize, to: &mut String) -> bool {
                let writers: &[fn(&Self, usize, &mut String) -> bool] = &[$(
                    |table, row, to| $crate::column::Values::write_text(&table.$column, row, to)
                ),+];
                writers[column](self, row, to)
            }

            fn row_to_text(row: &$row) -> Vec<(&'static str, String)> {
                let columns = [$((stringify!($column), $crate::column::Column::to_text(&row.$column))),+];
                columns.into_iter().filter_map(|(name, text)| text.map(|t| (name, t))).collect()
            }

            fn set_from_text(row: &mut $row, column: &str, text: &str) -> bool {
                match column {
                    $(stringify!($column) => match <$type as $crate::column::Column>::from_text(text) {
                        Some(value) => { row.$column = value; true }
                        None => false,
                    },)+
                    _ => false,
                }
            }
        }
    };
}
pub(crate) use table;
