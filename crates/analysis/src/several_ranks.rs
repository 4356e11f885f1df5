//! Makes a note where a trace holds several ranks (processes or devices) of a distributed program.

use gapscope_timeline::Timeline;
use gapscope_timeline::collectives::devices_with_collectives;
use std::collections::BTreeSet;

/// Returns a sentence that says that a trace holds several ranks: kernels of collectives ran on several devices, or of several
/// processes. Returns `None` where they did not.
pub fn note(timeline: &Timeline) -> Option<String> {
    let devices = devices_with_collectives(timeline);
    if devices.len() < 2 {
        return None;
    }
    let processes: BTreeSet<_> = devices.iter().map(|(process, _)| *process).collect();
    let ranks = match processes.len() {
        1 => format!("{} devices of one process", devices.len()),
        1.. if devices.len() == processes.len() => format!("{} processes", processes.len()),
        _ => format!("{} devices of {} processes", devices.len(), processes.len()),
    };
    Some(format!(
        "{ranks} ran collectives: they are ranks in one trace, and its figures are of all of them together."
    ))
}
