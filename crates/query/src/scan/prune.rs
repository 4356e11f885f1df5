//! Excludes row groups (parts of Parquet files) that cannot have a row of the answer, by the statistics in the
//! footers of files and by the values that all rows of a trace share.

use super::reader::UNKNOWN_AS_NUMBER;
use super::row_group::RowGroup;
use crate::schema::{Origin, TableFacts};
use crate::source::Traces;
use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt64Array, new_null_array};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::Session;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_optimizer::pruning::{PruningPredicateBuilder, PruningStatistics};
use gapscope_trace::table_file::{Statistic, TableFile};
use std::collections::HashSet;
use std::sync::Arc;

/// The facts about row groups that are known without reading them.
pub(crate) struct Pruning<'a> {
    pub facts: &'a TableFacts,
    pub traces: &'a Traces,
    /// The table's file in each trace; `None` where there is none.
    pub files: &'a [Option<TableFile>],
    pub groups: &'a [RowGroup],
}

impl Pruning<'_> {
    /// Returns, for each row group, whether it may have a row that passes all filters.
    pub fn that_may_match(
        &self,
        state: &dyn Session,
        filters: &[Expr],
    ) -> Result<Vec<bool>, DataFusionError> {
        let every = || Ok(vec![true; self.groups.len()]);
        let Some(filter) = conjunction(filters.iter().cloned()) else {
            return every();
        };
        let schema = DFSchema::try_from(self.facts.schema.clone())?;
        let filter = state.create_physical_expr(filter, &schema)?;
        let predicate = PruningPredicateBuilder::new()
            .with_file_schema(self.facts.schema.clone())
            .build(filter);
        match predicate {
            Some(predicate) => predicate.prune(self),
            None => every(),
        }
    }

    /// Returns, for each row group, the value that its rows share; `None` for a column that is not the trace's.
    fn constants(&self, column: &Column) -> Option<ArrayRef> {
        let column = &self.facts.columns[self.facts.column(&column.name)?];
        let Origin::Trace(value) = column.origin else {
            return None;
        };
        let groups = self.groups.iter();
        ScalarValue::iter_to_array(groups.map(|group| self.traces.value(value, group.source))).ok()
    }

    /// Returns a statistic of a column for each row group; null where a footer lacks it, and `None` for a column that
    /// the table's files do not have or whose statistics cannot be used.
    fn file_statistics(&self, column: &Column, statistic: Statistic) -> Option<ArrayRef> {
        let known = &self.facts.columns[self.facts.column(&column.name)?];
        let data_type = match statistic {
            _ if known.origin != Origin::Own => return None,
            // The footer does not count the ids that are read as nulls.
            Statistic::NullCount if column.name == UNKNOWN_AS_NUMBER => return None,
            Statistic::NullCount => &DataType::UInt64,
            // Statistics of texts may be truncated, and NaN has no order.
            _ if !known.data_type.is_integer() => return None,
            _ => &known.data_type,
        };
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.groups.len());
        for group in self.groups {
            let file = self.files[group.source].as_ref()?;
            let found = file.statistic(&column.name, group.index, statistic);
            arrays.push(found.unwrap_or_else(|| new_null_array(data_type, 1)));
        }
        let arrays: Vec<_> = arrays.iter().map(AsRef::as_ref).collect();
        concat(&arrays).ok()
    }
}

impl PruningStatistics for Pruning<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.constants(column)
            .or_else(|| self.file_statistics(column, Statistic::Min))
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.constants(column)
            .or_else(|| self.file_statistics(column, Statistic::Max))
    }

    fn num_containers(&self) -> usize {
        self.groups.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        self.file_statistics(column, Statistic::NullCount)
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let rows = self.groups.iter().map(|group| group.rows as u64);
        Some(Arc::new(rows.map(Some).collect::<UInt64Array>()))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
