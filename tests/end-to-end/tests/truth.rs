//! What `planted` says it did: a line of JSON for each of its processes.

use serde_json::Value;

/// The lines of one run.
#[derive(Debug)]
pub struct Truth(Vec<Value>);

impl Truth {
    /// Reads a program's standard output; lines that are no JSON are the program's own.
    pub fn of(stdout: &str) -> Truth {
        let lines = stdout.lines().filter(|line| line.starts_with('{'));
        Truth(
            lines
                .map(|line| serde_json::from_str(line).expect("a line of JSON"))
                .collect(),
        )
    }

    /// The processes that spoke.
    pub fn processes(&self) -> usize {
        self.0.len()
    }

    /// A count, over all processes.
    pub fn sum(&self, name: &str) -> u64 {
        let value = |line: &Value| {
            line[name]
                .as_u64()
                .unwrap_or_else(|| panic!("no {name} in {line}"))
        };
        self.0.iter().map(value).sum()
    }

    /// A value of the only process.
    pub fn get(&self, name: &str) -> &Value {
        assert_eq!(self.0.len(), 1, "one process: {:?}", self.0);
        &self.0[0][name]
    }

    /// Hashes of the results, one a process; processes end in any order.
    pub fn results(&self) -> Vec<String> {
        let mut hashes: Vec<_> = self
            .0
            .iter()
            .map(|line| line["result_hash"].to_string())
            .collect();
        hashes.sort();
        hashes
    }
}
