//! Imports files that do not say their ranks (the processes of a distributed program): takes the ranks that the user
//! names for them, and writes a trace for each file, inside of one for all.

use crate::{Error, Options, Output};
use gapscope_trace::manifest::Rank;
use std::path::PathBuf;

/// Returns the ranks that the user names for `files`, in their order; `None` where the files say their ranks.
///
/// # Errors
/// There are more or fewer files than ranks, or two files would be of one rank.
pub(crate) fn named(files: &[PathBuf], options: &Options) -> Result<Option<Vec<Rank>>, Error> {
    let ranks = &options.ranks;
    if ranks.is_empty() {
        return Ok(None);
    }
    let wrong = |reason: String| Err(Error::Ranks { reason });
    if ranks.len() != files.len() {
        return wrong(format!(
            "ranks named: {}, files: {}; name a rank for each file, in the order of the files",
            ranks.len(),
            files.len()
        ));
    }
    for (index, rank) in ranks.iter().enumerate() {
        if ranks[..index].contains(rank) {
            return wrong(format!("rank {rank} is named for two files"));
        }
    }
    let greatest = ranks.iter().max().map_or(0, |rank| rank.saturating_add(1));
    let world_size = greatest.max(ranks.len() as u32);
    let rank = |rank: &u32| Rank {
        rank: *rank,
        local_rank: None,
        world_size,
    };
    Ok(Some(ranks.iter().map(rank).collect()))
}

/// Imports each file alone, through an importer's `read`, as the trace of the rank that the user names for it.
pub(crate) fn import_each(
    read: fn(&[PathBuf], &Options, &mut Output) -> Result<(), Error>,
    inputs: &[PathBuf],
    options: &Options,
    output: &mut Output,
) -> Result<(), Error> {
    let ranks = named(inputs, options)?.unwrap_or_default();
    let new = output.trace()?;
    for (input, rank) in inputs.iter().zip(&ranks) {
        output.begin_rank(Some(*rank));
        read(std::slice::from_ref(input), options, output)?;
    }
    output.begin_rank(None);
    let note = "The user named the ranks of the files, which do not say them. The times of ranks can be compared where the files say by the wall clock when they began.";
    output.finish_ranks(new, options.ranks.clone(), options, vec![note.to_owned()])
}
