//! Makes the JSON that `gapscope query` prints for programs about its tables, their columns and the saved queries.

use crate::saved;
use crate::session::{Session, type_name};
use serde_json::{Value, json};

impl Session {
    /// Returns the tables and columns with their meanings, and the saved queries with their SQL on these traces.
    pub fn catalogue(&self) -> Value {
        let tables = self.tables.iter().map(|table| {
            let columns = table.columns.iter().map(|column| {
                json!({"name": column.name, "type": type_name(&column.data_type), "meaning": column.meaning})
            });
            json!({"name": table.name, "meaning": table.meaning, "columns": columns.collect::<Vec<_>>()})
        });
        let saved = saved::ALL
            .iter()
            .map(|one| json!({"name": one.name, "meaning": one.meaning, "sql": self.sql_of(one)}));
        json!({"tables": tables.collect::<Vec<_>>(), "saved": saved.collect::<Vec<_>>()})
    }
}
