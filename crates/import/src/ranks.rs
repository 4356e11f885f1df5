//! Imports files that do not say their ranks (the processes of a distributed program): takes the ranks that the user
//! names for them, and writes a trace for each file, inside of one for all.

use crate::{Error, Options, Output};
use gapscope_trace::manifest::Rank;
use std::path::{Path, PathBuf};

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

/// The words before the number of a rank in names of files and folders; the first word that all names have decides.
const WORDS: [&str; 3] = ["local_rank", "rank", "worker"];
/// The words before the place of a rank in pipeline, data, tensor and expert parallelism.
const PLACES: [&str; 4] = ["pp", "dp", "tp", "ep"];

/// Returns the ranks that the names of files, or of the folders in which they are, say: `rank_3/trace.json`,
/// `dp0_pp0_tp1_rank1.json`, `1764000-TP-1.json`; `None` unless all names say one. Names that all say another rank are
/// preferred; else some may say the same one, as those of several windows do.
pub(crate) fn from_names(files: &[&Path]) -> Option<Vec<Rank>> {
    let names: Vec<String> = files.iter().map(|file| name_with_folder(file)).collect();
    let numbers = |word: &&str| -> Option<Vec<u32>> {
        names.iter().map(|name| number_after(name, word)).collect()
    };
    let place = |name: &String| PLACES.map(|word| number_after(name, word));
    let places: Vec<_> = names.iter().map(place).collect();
    let all_have = places.iter().all(|place| place.iter().any(Option::is_some));
    let mut sorted = places.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let order = places
        .iter()
        .map(|place| sorted.partition_point(|other| other < place) as u32);
    let order = all_have.then(|| Vec::from_iter(order));
    let mut said = Vec::from_iter(WORDS.iter().filter_map(numbers));
    said.extend(order);
    let count = |ranks: &&Vec<u32>| {
        let mut ranks = (*ranks).clone();
        ranks.sort_unstable();
        ranks.dedup();
        ranks.len()
    };
    // Numbers inside of machines and places of parallelism come again where a program has more ranks.
    let of_all = || numbers(&"rank").or_else(|| numbers(&"worker"));
    let ranks = (said
        .iter()
        .find(|ranks| count(ranks) == files.len())
        .cloned())
    .or_else(of_all)
    .or_else(|| said.last().cloned())
    .filter(|ranks| count(&ranks) > 1)?;
    let greatest = ranks.iter().max().map_or(0, |rank| rank.saturating_add(1));
    let world_size = greatest.max(count(&&ranks) as u32);
    let rank = |rank| Rank {
        rank,
        local_rank: None,
        world_size,
    };
    Some(ranks.into_iter().map(rank).collect())
}

/// Returns the name of a file in lower case, behind that of its folder.
fn name_with_folder(file: &Path) -> String {
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
    let name = file.file_name().unwrap_or_default();
    let text = format!("{}/{}", folder.to_string_lossy(), name.to_string_lossy());
    text.to_ascii_lowercase()
}

/// Returns the number behind the last place of a word in a name, as in `rank3`, `rank_3`, `rank-3` and `rank=3`.
fn number_after(name: &str, word: &str) -> Option<u32> {
    let found = name.rmatch_indices(word).find_map(|(at, _)| {
        let is_whole = !name[..at].ends_with(|c: char| c.is_ascii_alphabetic());
        let rest = name[at + word.len()..].trim_start_matches(['_', '-', '=', '.', '[', ' ']);
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok().filter(|_| is_whole)
    });
    found.filter(|rank| *rank < 1 << 20)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_and_folders_say_ranks() {
        for (names, ranks) in [
            (["rank_1/trace.json", "rank_0/trace.json"], Some([1, 0])),
            (["run/rank0.json", "run/rank10.json"], Some([0, 10])),
            (
                ["p/dp0_pp0_tp0_rank0.17.json", "p/dp0_pp0_tp1_rank1.17.json"],
                Some([0, 1]),
            ),
            (["p/17-TP-1.json.gz", "p/17-TP-0.json.gz"], Some([1, 0])),
            (["p/TP-0-DP-1.json", "p/TP-1-DP-0.json"], Some([1, 0])),
            // Numbers of processes are none, and neither are equal ranks.
            (["p/host_10.17.json", "p/host_11.17.json"], None),
            (["rank0/a.json", "rank0/b.json"], None),
            (["local_rank0/a.json", "local_rank0/b.json"], None),
            (["p/frank0.json", "p/frank1.json"], None),
        ] {
            let paths = names.map(Path::new);
            let found = from_names(&paths);
            let found = found.map(|found| [found[0].rank, found[1].rank]);
            assert_eq!(found, ranks, "{names:?}");
        }
    }

    #[test]
    fn files_of_several_windows_say_their_rank_again() {
        for names in [
            [
                "rank0_step10.json",
                "rank0_step20.json",
                "rank1_step10.json",
            ],
            ["10-TP-0.json.gz", "20-TP-0.json.gz", "10-TP-1.json.gz"],
        ] {
            let ranks = from_names(&names.map(Path::new)).unwrap();
            assert_eq!(
                ranks.iter().map(|rank| rank.rank).collect::<Vec<_>>(),
                [0, 0, 1]
            );
            assert_eq!(ranks[0].world_size, 2);
        }
    }
}
