//! Turns the findings on a trace into claims (statements with figures) in plain English, each with the rows of the
//! trace that it rests on.
//!
//! The claims are the report's own findings and sentences, the largest first, and then each row of its tables. An explanation adds where to look: ids of rows, and a query
//! that finds the figures again.

mod claims;
mod page;
mod ranks;
mod sentences;

use crate::ranks::RanksReport;
use gapscope_analysis::Findings;
use gapscope_comparison::ranks::RankFindings;
use gapscope_timeline::Timeline;
use ranks::RanksInTrace;
use schemars::JsonSchema;
use serde::Serialize;

/// The maximum number of the most costly kernels and transfers that are explained. Of causes of idle time each is.
const MAX_WORKS: usize = 3;

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

/// A statement about the trace, and the rows that it rests on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    /// What the claim is about.
    pub kind: ClaimKind,
    /// The claim in plain English, with the rows as `[gap 17]`.
    pub text: String,
    /// What to do about it, where the report says something.
    pub advice: Option<String>,
    /// The figures of the claim.
    pub figures: Vec<Figure>,
    /// The rows that the claim names.
    pub rows: Vec<Row>,
    /// SQL for `gapscope query` on the trace, whose first row has the figures by their names; null where only the report has them.
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
    /// A row of a table of the report.
    Figures,
}

impl ClaimKind {
    /// Returns the place of claims of this kind: what is unknown comes behind the costs, and rows of tables come last.
    fn place(self) -> u8 {
        match self {
            ClaimKind::Unknown => 1,
            ClaimKind::Figures => 2,
            _ => 0,
        }
    }
}

/// A figure of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// Its name, which ends with its unit: `_ns`, `_bytes`, `_count`.
    pub name: String,
    /// Its value.
    pub value: i64,
    /// Where `gapscope report --json` has the figure, as a JSON pointer; null where it is a column of the claim's query.
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
    fn new(table: &str, id: u64) -> Row {
        Row {
            table: table.to_owned(),
            id,
        }
    }

    /// Returns the mark by which texts refer to the row.
    fn mark(&self) -> String {
        let one = match self.table.as_str() {
            "command_buffers" => "command buffer",
            table => table.strip_suffix('s').unwrap_or(table),
        };
        format!("[{one} {}]", self.id)
    }

    /// Returns the name of the column that identifies rows of a table.
    fn column(table: &str) -> &'static str {
        match table {
            "gaps" => "gap",
            _ => "id",
        }
    }
}

impl Explanation {
    /// Returns the explanation of a trace with these findings.
    pub fn new(
        trace: &str,
        timeline: &Timeline,
        findings: &Findings,
        remarks: &[String],
    ) -> Explanation {
        Explanation::of_ranks(trace, timeline, findings, remarks, None)
    }

    /// Returns the explanation of a trace with these findings, which says of which rank each thing is where the trace has several.
    pub fn of_ranks(
        trace: &str,
        timeline: &Timeline,
        findings: &Findings,
        remarks: &[String],
        ranks: Option<&RankFindings>,
    ) -> Explanation {
        let ranks = ranks.map(|ranks| RanksInTrace::new(findings, ranks));
        Explanation {
            explanation_version: 1,
            trace: trace.to_owned(),
            verdict: findings.verdict.as_str().to_owned(),
            claims: claims::claims(timeline, findings, remarks, ranks),
        }
    }

    /// Returns the explanation of a folder of ranks. Its claims have neither figures nor rows, which are in the traces of the ranks.
    pub fn of_folder(report: &RanksReport) -> Explanation {
        Explanation {
            explanation_version: 1,
            trace: report.folder.to_owned(),
            verdict: report.findings.verdict.as_str().to_owned(),
            claims: sentences::of_folder(report),
        }
    }

    /// Returns the explanation as JSON text, which ends with a line feed.
    ///
    /// # Errors
    ///
    /// Fails where JSON cannot be written.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        crate::stable_json::pretty(self)
    }
}
