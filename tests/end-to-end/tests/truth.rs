//! The facts that `planted`, the test program, states about its own work: a line of JSON for each of its processes.

use serde_json::Value;

/// The lines that one run printed.
#[derive(Debug)]
pub struct Truth(Vec<Value>);

impl Truth {
    /// Reads a program's standard output. Lines that are not JSON are skipped.
    pub fn parse(stdout: &str) -> Truth {
        let lines = stdout.lines().filter(|line| line.starts_with('{'));
        Truth(
            lines
                .map(|line| serde_json::from_str(line).expect("a line of JSON"))
                .collect(),
        )
    }

    /// Returns the number of processes that printed a line.
    pub fn processes(&self) -> usize {
        self.0.len()
    }

    /// Returns the sum of a count over all processes.
    pub fn sum(&self, name: &str) -> u64 {
        let value = |line: &Value| {
            line[name]
                .as_u64()
                .unwrap_or_else(|| panic!("no {name} in {line}"))
        };
        self.0.iter().map(value).sum()
    }

    /// Returns a value of the only process.
    pub fn get(&self, name: &str) -> &Value {
        assert_eq!(self.0.len(), 1, "one process: {:?}", self.0);
        &self.0[0][name]
    }

    /// Returns the hashes of the results of all processes, sorted because processes end in any order.
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
