//! Remembers the traces of a recording as this user's own, so that their reports may quote the program's source.

use crate::page;
use gapscope_companion::state_folder;
use gapscope_trace::own_recordings::OwnRecordings;
use gapscope_trace::rank_folders;
use std::path::Path;

/// Remembers a trace that was recorded just now, and those of its ranks. A failure is printed, as it takes no more than
/// the quoted lines of source away.
pub fn remember(trace: &Path) {
    let Some(state) = state_folder() else {
        return;
    };
    let own = OwnRecordings::new(&state);
    let ranks = rank_folders(trace).into_iter().map(|(_, path)| path);
    let mut remembered = ranks.chain([trace.to_owned()]);
    if let Err(error) = remembered.try_for_each(|path| own.remember(&path)) {
        page::note(format!(
            "reports will not quote the program's source, because {} cannot be written: {error}",
            state.display()
        ));
    }
}
