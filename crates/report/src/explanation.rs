//! What a trace shows, in plain English, with the rows that each claim rests on.
//!
//! Nothing is judged here: the claims are the report's own findings and sentences, the largest first. What is added is where to look:
//! ids of rows, and a query that finds the figures again.

mod claims;
mod page;

use gapscope_analysis::Findings;
use gapscope_timeline::Timeline;
use schemars::JsonSchema;
use serde::Serialize;

/// Causes that are told.
const TOLD: usize = 3;

/// What `gapscope explain --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Explanation {
    /// Version of the keys' meaning. Keys may be added without a new one; none is renamed or taken away.
    pub explanation_version: u32,
    /// Name of the trace.
    pub trace: String,
    /// What bounds the speed, as in the report.
    pub verdict: String,
    /// What the trace shows, the most important first.
    pub claims: Vec<Claim>,
}

/// Something that the trace shows, and what it rests on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    /// What it is about.
    pub kind: ClaimKind,
    /// It in plain English, with the rows as `[gap 17]`.
    pub text: String,
    /// What to do about it, where the report says something.
    pub advice: Option<String>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// The rows that it names.
    pub rows: Vec<Row>,
    /// SQL for `gapscope query` on the trace: its first row has the figures, by their names. null: they are the report's alone.
    pub query: Option<String>,
}

/// What a claim is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// What the program did.
    Program,
    /// What bounds its speed.
    Verdict,
    /// Time that the GPU was idle.
    Idle,
    /// Work that takes long.
    Work,
    /// What is not known, and why.
    #[default]
    Unknown,
}

/// A figure of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// Its name, which ends with its unit: `_ns`, `_bytes`, `_count`.
    pub name: String,
    /// Its value.
    pub value: i64,
    /// Where `gapscope report --json` has it, as a JSON pointer; null: it is a column of the claim's query.
    pub report: Option<String>,
}

/// A row of a table of the trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Row {
    /// The table, as `gapscope query` has it.
    pub table: String,
    /// Its id: the column `gap` of `gaps`, `id` of the others.
    pub id: u64,
}

impl Row {
    /// How texts name it.
    fn mark(&self) -> String {
        let one = match self.table.as_str() {
            "command_buffers" => "command buffer",
            table => table.strip_suffix('s').unwrap_or(table),
        };
        format!("[{one} {}]", self.id)
    }

    /// The condition that finds it.
    fn column(table: &str) -> &'static str {
        match table {
            "gaps" => "gap",
            _ => "id",
        }
    }
}

impl Explanation {
    /// Of a trace whose findings are `findings`.
    pub fn of(
        trace: &str,
        timeline: &Timeline,
        findings: &Findings,
        remarks: &[String],
    ) -> Explanation {
        Explanation {
            explanation_version: 1,
            trace: trace.to_owned(),
            verdict: findings.verdict.as_str().to_owned(),
            claims: claims::claims(timeline, findings, remarks),
        }
    }

    /// As JSON; the text ends with a line feed.
    ///
    /// # Errors
    /// None is known.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }
}
