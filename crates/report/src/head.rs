//! Collects the sentences that stand beside the verdict at the head of a report.
//!
//! The findings go in, with the manifest of their trace. The sentences come out in the order in which they are read; the
//! report, explanations and the page show these.

use crate::page::ended_badly;
use crate::section::{steps, verdict};
use gapscope_analysis::Findings;
use gapscope_analysis::headline::HeadlineKind;
use gapscope_timeline::vocabulary::Words;
use gapscope_trace::manifest::Manifest;
use schemars::JsonSchema;
use serde::Serialize;

/// The sentences beside the verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeadSentences {
    /// What makes the verdict doubtful: a program that ended badly, and times that contradict each other. These come
    /// before the verdict.
    pub before: Vec<String>,
    /// What belongs to the verdict: its part of the run, phases, devices, and conditions.
    pub notes: Vec<String>,
    /// Kernels that fill little of the GPU, and warm-up.
    pub details: Vec<String>,
    /// The median step of the program, how many are slow, and why the slowest are; empty without steps.
    pub steps: Vec<String>,
}

impl HeadSentences {
    /// Collects the sentences, in the words of an API.
    pub fn new(manifest: &Manifest, findings: &Findings, words: &Words) -> HeadSentences {
        let of_kind = |is_doubt: bool| {
            let notes = findings.headline.iter();
            let notes =
                notes.filter(move |note| (note.kind == HeadlineKind::Contradiction) == is_doubt);
            notes.map(|note| note.sentence.clone())
        };
        let filled = verdict::underfilled(findings, words).map(|text| text.plain_text());
        let warm_up = &findings.warm_up.reason;
        let warm_up = (!warm_up.is_empty()).then(|| warm_up.clone());
        HeadSentences {
            before: ended_badly(manifest)
                .into_iter()
                .chain(of_kind(true))
                .collect(),
            notes: of_kind(false).collect(),
            details: filled.into_iter().chain(warm_up).collect(),
            steps: steps::sentences(findings),
        }
    }
}
