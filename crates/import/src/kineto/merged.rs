//! Imports a merged file, in which SGLang and others put the profiles of several ranks of one program: the names of the
//! processes begin with the rank, as in `[TP00] 1000`. Each rank becomes a trace, as if it had a file of its own.

use super::document::Document;
use super::facts::TracePart;
use super::files::{self, Aside};
use super::import_file::import;
use super::source::{self, Source};
use crate::{Error, Options, Output};
use gapscope_trace::manifest::Rank;
use std::path::Path;

/// The size of the beginning of a file in which a merged file names a rank.
const LOOKED_AT: usize = 1 << 18;

/// Beginnings of the names of processes: the place of a rank in tensor, pipeline, data and expert parallelism, or its number.
const PREFIXES: [&[u8]; 5] = [b"\"[TP", b"\"[PP", b"\"[DP", b"\"[EP", b"\"[Rank"];

/// Returns whether the beginning of a file names processes of ranks.
pub(super) fn is_merged(path: &Path) -> bool {
    let Ok(mut file) = source::open(path) else {
        return false;
    };
    let mut bytes = vec![0; LOOKED_AT];
    let filled = files::fill(&mut *file, &mut bytes, 0);
    let has = |prefix: &&[u8]| memchr::memmem::find(&bytes[..filled], prefix).is_some();
    PREFIXES.iter().any(has)
}

/// Imports the ranks of a merged file, each into its own trace. The file is read once for each rank.
pub(super) fn ranks(
    path: &Path,
    all_bytes: u64,
    options: &Options,
    output: &mut Output,
) -> Result<(), Error> {
    let mut aside = Aside::default();
    Document::new(Source::open(path)?).read(&mut aside)?;
    let new = output.trace()?;
    let shift_ns = Some(aside.times.shift_ns());
    if aside.prefixes.len() < 2 {
        let part = TracePart {
            shift_ns,
            ..TracePart::whole((0, all_bytes))
        };
        return import(path, new, part, options, output).map(drop);
    }
    let world_size = aside.prefixes.len() as u32;
    // The names of ranks have leading zeros, so that the order of texts is that of numbers.
    for (rank, prefix) in (0..).zip(&aside.prefixes) {
        let part = TracePart {
            bytes: (0, all_bytes),
            shift_ns,
            rank: Some(Rank {
                rank,
                local_rank: None,
                world_size,
            }),
            prefix,
            ..TracePart::default()
        };
        let trace = output.rank(rank)?;
        import(path, trace, part, options, output)?;
    }
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let names: Vec<_> = (aside.prefixes.iter())
        .map(|prefix| String::from_utf8_lossy(prefix))
        .collect();
    let note = format!(
        "Imported from {file}, in which the profiles of {world_size} ranks were merged: {}.",
        names.join(", ")
    );
    output.finish_ranks(new, (0..world_size).collect(), options, vec![note])
}
