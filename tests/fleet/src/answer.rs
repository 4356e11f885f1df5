//! Answers to a query, and whether two are one.

use crate::Result;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use std::path::Path;
use std::process::Command;

/// Sums of fractions depend on their order.
const ROUNDING: f64 = 1e-9;

/// Columns and rows as text.
pub struct Answer {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Answer {
    /// What `gapscope query` answers; no text in it may have a comma.
    pub fn of_gapscope(program: &str, runs: &Path, sql: &str) -> Result<Answer> {
        let mut command = Command::new(program);
        command.args(["--format", "csv"]);
        let output = command.arg(runs.join("rank=*")).arg(sql).output();
        let output = output.map_err(|error| format!("cannot start {program}: {error}"))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{program}: {}", complaint.trim()).into());
        }
        let text = String::from_utf8(output.stdout)?;
        let mut lines = (text.lines()).map(|line| line.split(',').map(str::to_owned).collect());
        Ok(Answer {
            columns: lines.next().unwrap_or_default(),
            rows: lines.collect(),
        })
    }

    pub fn of_batches(batches: &[RecordBatch]) -> Result<Answer> {
        let schema = batches.first().map(RecordBatch::schema);
        let fields = schema.iter().flat_map(|schema| schema.fields());
        let mut rows = Vec::new();
        for batch in batches {
            for row in 0..batch.num_rows() {
                let cells = batch.columns().iter();
                let cells = cells.map(|column| array_value_to_string(column, row));
                rows.push(cells.collect::<std::result::Result<_, _>>()?);
            }
        }
        Ok(Answer {
            columns: fields.map(|field| field.name().clone()).collect(),
            rows,
        })
    }

    /// # Errors
    /// They differ: where.
    pub fn is_equal(&self, other: &Answer) -> Result<()> {
        let (ours, theirs) = (&self.columns, &other.columns);
        if ours != theirs {
            return Err(format!("the columns are {theirs:?}, and not {ours:?}").into());
        }
        let (ours, theirs) = (self.rows.len(), other.rows.len());
        if ours != theirs {
            return Err(format!("there are {theirs} rows, and not {ours}").into());
        }
        for (number, (ours, theirs)) in self.rows.iter().zip(&other.rows).enumerate() {
            if ours.len() != theirs.len() || !ours.iter().zip(theirs).all(|(a, b)| same(a, b)) {
                return Err(format!("row {number} is {theirs:?}, and not {ours:?}").into());
            }
        }
        Ok(())
    }
}

/// Whether two cells say the same: as numbers where both are.
fn same(ours: &str, theirs: &str) -> bool {
    match (ours.parse::<f64>(), theirs.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= ROUNDING * a.abs().max(b.abs()).max(1.0),
        _ => ours == theirs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_differ_are_not_one() {
        let answer = |cells: [&str; 2]| Answer {
            columns: vec!["rank".to_owned(), "ms".to_owned()],
            rows: vec![cells.map(str::to_owned).to_vec()],
        };
        let one = answer(["7", "1.5"]);
        assert!(one.is_equal(&answer(["7", "1.5000000000001"])).is_ok());
        assert!(one.is_equal(&answer(["8", "1.5"])).is_err());
        assert!(one.is_equal(&answer(["7", "1.6"])).is_err());
        assert!(one.is_equal(&answer(["7", ""])).is_err());
        let mut none = answer(["7", "1.5"]);
        none.rows.clear();
        assert!(one.is_equal(&none).is_err());
    }
}
