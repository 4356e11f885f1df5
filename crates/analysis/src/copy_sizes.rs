//! Compares the sizes of single transfers before and after a change, direction by direction: sums over both sides' transfers go in, and
//! whether as many bytes were transferred in another way comes out.

use crate::launch_sizes::is_same;
use gapscope_timeline::launch_size::SizeMoments;
use gapscope_timeline::quantity::listed;
use gapscope_trace::tables::TransferKind;
use std::collections::{BTreeMap, BTreeSet};

/// The bytes of single transfers by kind; `None` where those of one are not known.
pub type CopySizes<Kind> = Option<BTreeMap<Kind, SizeMoments>>;

/// Adds a transfer.
pub fn add_copy(sizes: &mut CopySizes<TransferKind>, kind: TransferKind, bytes: Option<u64>) {
    match (sizes.as_mut(), bytes) {
        (Some(sizes), Some(bytes)) => {
            let of_kind = sizes.entry(kind).or_default();
            *of_kind = of_kind.plus(SizeMoments::new(bytes));
        }
        _ => *sizes = None,
    }
}

/// Returns the sizes by the names of the kinds.
pub fn by_name(sizes: &CopySizes<TransferKind>) -> CopySizes<String> {
    let sizes = sizes.as_ref()?.iter();
    Some(
        sizes
            .map(|(kind, sizes)| (kind.as_str().to_owned(), *sizes))
            .collect(),
    )
}

/// Returns the sentence on transfers that are of other kinds or sizes, where as many have as many bytes in all. Each side has the
/// number of evaluations, or runs, that its transfers are of.
pub fn other_copies([before, after]: [(&BTreeMap<String, SizeMoments>, f64); 2]) -> Option<String> {
    let kinds: BTreeSet<&String> = before.0.keys().chain(after.0.keys()).collect();
    let differs = |kind: &&&String| {
        let [first, second] = [before, after].map(|(sizes, evaluations)| {
            let sizes = sizes.get(**kind).copied().unwrap_or_default();
            (sizes, sizes.count() as f64 / evaluations)
        });
        !is_same([first.1, second.1]) || !first.0.is_like(second.0)
    };
    let kinds: Vec<&str> = kinds
        .iter()
        .filter(differs)
        .map(|kind| kind.as_str())
        .collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "As many transfers have as many bytes in all, in other sizes or directions: {}.",
            listed(&kinds)
        )
    })
}
