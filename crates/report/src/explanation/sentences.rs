//! Makes claims of the sentences that the sections of a report have beside their tables: input are the findings and the claims that
//! there are, output a claim for each further sentence, in the report's order.

use super::{Claim, ClaimKind};
use crate::document::Block;
use crate::section::*;
use gapscope_analysis::Findings;
use gapscope_analysis::unread::{
    CAUSES, CODE, COMMAND_BUFFERS, COUNTERS, KERNELS, LABELS, MEMORY, PROFILED, SAMPLED, TRANSFERS,
};
use gapscope_timeline::{Timeline, Vocabulary};

/// The number of rows of tables that sentences may speak of, as in a report without options.
const TOP: usize = 10;

/// Returns claims of what a report says in sentences and `claims` do not.
pub(super) fn sentences(timeline: &Timeline, findings: &Findings, claims: &[Claim]) -> Vec<Claim> {
    use ClaimKind::{Idle, Unknown, Work};
    let manifest = &timeline.trace.manifest;
    let names = Vocabulary::new(manifest);
    let words = names.words();
    let places = Places {
        origin_ns: manifest.start_ns,
        span_ns: timeline
            .work_window()
            .map_or(0, |window| window.length_ns()),
    };
    let has_stacks = manifest.stack_rate_hz.is_some() || findings.code.is_some();
    let code = match has_stacks {
        true => code::blocks(findings, words, TOP),
        false => Vec::new(),
    };
    let sections: [(ClaimKind, &[&str], Vec<Block>); 14] = [
        (Idle, CAUSES, gaps::blocks(findings, words, TOP, places)),
        (Idle, CODE, code),
        (Work, KERNELS, kernels::blocks(findings, TOP)),
        (Work, KERNELS, limits::blocks(findings, TOP)),
        (Work, PROFILED, profiled::blocks(findings)),
        (Work, SAMPLED, instructions::blocks(findings, TOP)),
        (Work, LABELS, labels::blocks(findings, TOP, false)),
        (Work, LABELS, operators::blocks(findings, TOP)),
        (
            Work,
            COMMAND_BUFFERS,
            command_buffers::blocks(findings, words, TOP, places),
        ),
        (Work, TRANSFERS, transfers::blocks(findings)),
        (Work, MEMORY, memory::blocks(findings, places)),
        (Work, COUNTERS, counters::blocks(findings, &names, TOP)),
        (Work, CAUSES, launch_latency::blocks(findings, &names)),
        (Unknown, &[], accuracy::blocks(findings, &[])),
    ];
    let mut texts = Vec::new();
    for (kind, tables, blocks) in sections {
        if !findings.knows(tables) {
            continue;
        }
        for block in blocks {
            let (Block::Sentence(text) | Block::Item(text)) = block else {
                continue;
            };
            let text = text.plain_text();
            let is_told = |claim: &Claim| claim.text.contains(text.trim_end_matches('.'));
            if !claims.iter().any(is_told) {
                texts.push((kind, text));
            }
        }
    }
    let claim = |(kind, text)| Claim {
        kind,
        text,
        ..Claim::default()
    };
    texts.into_iter().map(claim).collect()
}
