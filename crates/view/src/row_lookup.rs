//! Finds the row of a table that a row of an SQL answer stands for, by the values that identify it.

use gapscope_trace::Trace;
use gapscope_trace::column::Values as _;
use gapscope_trace::tables::Table as _;
use std::collections::BTreeMap;

/// The reason why values do not identify a single row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RowLookupError {
    #[error("Its values are not numbers.")]
    NotNumbers,
    #[error("It has no column that tells rows apart.")]
    NoIdentifyingColumn,
    #[error("Several rows have these values.")]
    Several,
    #[error("No row has these values.")]
    NoRow,
}

/// A column that identifies rows, with its value in a row; ids count as numbers.
type Column<'a> = (&'static str, Box<dyn Fn(usize) -> Option<i128> + 'a>);

/// Makes the number of a cell by its kind: `id` and `number`, or `maybe_id` and `maybe_number`, which may be absent.
macro_rules! value {
    (id $cell:expr) => {
        Some(i128::from($cell.0))
    };
    (maybe_id $cell:expr) => {
        $cell.map(|id| i128::from(id.0))
    };
    (number $cell:expr) => {
        Some(i128::from($cell))
    };
    (maybe_number $cell:expr) => {
        $cell.map(i128::from)
    };
}

/// Finds the only row of a table with these values by column, or says why there is none. Values of columns that do
/// not identify rows are ignored. Returns `None` for tables that are not drawn.
pub fn find_row(
    trace: &Trace,
    table: &str,
    values: &BTreeMap<String, String>,
) -> Option<Result<usize, RowLookupError>> {
    let tables = &trace.tables;
    macro_rules! find {
        ($table:ident: $($column:ident $kind:ident),+) => {{
            let table = &tables.$table;
            let columns: Vec<Column> = vec![
                $((stringify!($column), Box::new(move |row| value!($kind table.$column.value(row))))),+
            ];
            only(table.len(), columns, values)
        }};
    }
    Some(match table {
        "dispatches" => {
            find!(dispatches: command_buffer maybe_id, submission maybe_id, start_ns maybe_number, duration_ns maybe_number,
                position number, queue id, kernel id)
        }
        "transfers" => {
            find!(transfers: command_buffer maybe_id, submission maybe_id, start_ns maybe_number, duration_ns maybe_number,
                position number, queue id)
        }
        "opaque_work" => {
            find!(opaque_work: command_buffer maybe_id, submission maybe_id, start_ns maybe_number, duration_ns maybe_number,
                position number, queue id)
        }
        "command_buffers" => {
            find!(command_buffers: id id, start_ns maybe_number, duration_ns maybe_number, queue id)
        }
        "submissions" => {
            find!(submissions: id id, start_ns number, duration_ns number, queue id)
        }
        "host_calls" => {
            find!(host_calls: start_ns number, duration_ns number, process id, thread maybe_id, queue maybe_id)
        }
        "markers" => {
            find!(markers: start_ns maybe_number, duration_ns maybe_number, label id, process id, thread maybe_id, queue maybe_id,
                command_buffer maybe_id)
        }
        "samples" => find!(samples: time_ns number, process id, thread id),
        _ => return None,
    })
}

/// Returns the only one of the first `rows` rows whose `columns` have the `values` given for them; columns without a
/// value are not compared.
fn only(
    rows: usize,
    columns: Vec<Column>,
    values: &BTreeMap<String, String>,
) -> Result<usize, RowLookupError> {
    let mut wanted = Vec::new();
    for (name, cell) in columns {
        if let Some(value) = values.get(name) {
            let value = value
                .parse::<i128>()
                .map_err(|_| RowLookupError::NotNumbers)?;
            wanted.push((value, cell));
        }
    }
    if wanted.is_empty() {
        return Err(RowLookupError::NoIdentifyingColumn);
    }
    let mut found = (0..rows).filter(|row| {
        wanted
            .iter()
            .all(|(value, cell)| cell(*row) == Some(*value))
    });
    match (found.next(), found.next()) {
        (Some(row), None) => Ok(row),
        (Some(_), Some(_)) => Err(RowLookupError::Several),
        (None, _) => Err(RowLookupError::NoRow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
manifest sampling_mode=dispatch start_ns=0 end_ns=1ms
command_buffer id=1 process=1 queue=1 submission=1 start_ns=100 duration_ns=80 dispatches=2
dispatch command_buffer=1 position=0 queue=1 kernel=1 start_ns=100 duration_ns=40
dispatch command_buffer=1 position=1 queue=1 kernel=1 start_ns=140 duration_ns=40
dispatch command_buffer=1 position=2 queue=1 kernel=1";

    #[test]
    fn a_row_is_found_by_what_only_it_has() {
        let trace = Trace::from_text(TEXT).unwrap();
        let find = |table: &str, values: &[(&str, &str)]| {
            let values = values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            find_row(&trace, table, &values.collect())
        };
        assert_eq!(find("dispatches", &[("start_ns", "140")]), Some(Ok(1)));
        let second = [("command_buffer", "1"), ("position", "2"), ("bytes", "x")];
        assert_eq!(find("dispatches", &second), Some(Ok(2)));
        assert_eq!(find("command_buffers", &[("id", "1")]), Some(Ok(0)));
        for (values, error) in [
            (&[("duration_ns", "40")][..], RowLookupError::Several),
            (&[("start_ns", "141")], RowLookupError::NoRow),
            (&[("start_ns", "early")], RowLookupError::NotNumbers),
            (&[("bytes", "1")], RowLookupError::NoIdentifyingColumn),
        ] {
            assert_eq!(find("dispatches", values), Some(Err(error)));
        }
        assert_eq!(find("losses", &[("count", "1")]), None);
    }
}
