//! Takes away the times of work that contradict those of other work of the same queue: kernels that take no time where half of
//! them do, work that starts together with other work, and work that ends after later work of its own stream. The works of
//! one queue after the other go in; works that cannot be true lose their times, and their numbers come out as notes.

use super::ROUNDING_NS;
use crate::inventory::Inventory;
use gapscope_model::Span;

/// So many pieces of work of a queue do not start in the same nanosecond, whatever runs beside each other there.
const STARTS_TOGETHER: usize = 8;

/// A piece of work that is in no graph: nodes of graphs run side by side.
#[derive(Debug)]
pub(crate) struct TimedWork<'a> {
    pub span: &'a mut Option<Span>,
    pub is_kernel: bool,
}

/// How many pieces of work have lost their times so far.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    equal_starts: u64,
    overlaps: u64,
}

impl Doubts {
    /// Takes the impossible times of a queue's work away. A stream of CUDA runs one piece of work at a time; other queues may
    /// run several, or in another order.
    pub fn add_queue(&mut self, mut works: Vec<TimedWork<'_>>, is_stream: bool) {
        forget_no_lengths(&mut works);
        works.retain(|work| work.span.is_some());
        works.sort_by_key(|work| work.span.map(|span| span.start_ns));
        self.equal_starts += forget_equal_starts(&mut works, is_stream);
        if is_stream {
            works.retain(|work| work.span.is_some());
            self.overlaps += forget_overlaps(&mut works);
        }
    }

    /// Notes how many pieces of work have lost their times.
    pub fn note(self, inventory: &mut Inventory) {
        if self.equal_starts > 0 {
            inventory.note(format!(
                "{} pieces of work start in the same nanosecond as other work of their queue, which is impossible: the times of that work are not used.",
                self.equal_starts
            ));
        }
        note_ends(
            inventory,
            self.overlaps,
            "after later work of the same stream",
        );
    }
}

/// Notes how many pieces of work end at an impossible time.
pub(super) fn note_ends(inventory: &mut Inventory, count: u64, when: &str) {
    let works = match count {
        0 => return,
        1 => "1 piece of work ends".to_owned(),
        _ => format!("{count} pieces of work end"),
    };
    inventory.note(format!(
        "{works} {when}, which is impossible: the times of that work are not used."
    ));
}

/// Takes the times away from kernels that take no time, where half of the queue's kernels or more do: the file does not have
/// their lengths.
fn forget_no_lengths(works: &mut [TimedWork<'_>]) {
    let takes_no_time =
        |work: &TimedWork| work.is_kernel && work.span.is_some_and(|span| span.duration_ns == 0);
    let kernels = works.iter().filter(|work| work.is_kernel);
    let all = kernels.filter(|work| work.span.is_some()).count();
    let without = works.iter().filter(|work| takes_no_time(work)).count();
    if without * 2 >= all {
        let works = works.iter_mut().filter(|work| takes_no_time(work));
        works.for_each(|work| *work.span = None);
    }
}

/// Takes the times away from work that starts together with other work of its queue: from any where [`STARTS_TOGETHER`] do, and
/// from that of a stream of CUDA where a quarter or more does. Work that is no longer than what profilers round may do so, but not
/// so many kernels. `works` are in order of their starts. Returns how many there are.
fn forget_equal_starts(works: &mut [TimedWork<'_>], is_stream: bool) -> u64 {
    let is_long = |work: &TimedWork| work.span.is_some_and(|span| span.duration_ns > ROUNDING_NS);
    let start_ns = |work: &TimedWork| work.span.map(|span| span.start_ns);
    let long = works.iter().filter(|work| is_long(work)).count();
    let groups = works.chunk_by(|a, b| start_ns(a) == start_ns(b));
    let together = groups.map(|group| group.iter().filter(|work| is_long(work)).count());
    let together: usize = together.filter(|count| *count > 1).sum();
    let least = match is_stream && together * 4 >= long {
        true => 2,
        false => STARTS_TOGETHER,
    };
    let mut count = 0;
    for group in works.chunk_by_mut(|a, b| start_ns(a) == start_ns(b)) {
        let kernels_or_long = |work: &&mut TimedWork| work.is_kernel || is_long(work);
        let of_any_length = group.iter_mut().filter(kernels_or_long).count();
        let long = group.iter().filter(|work| is_long(work)).count();
        let takes_all = of_any_length >= STARTS_TOGETHER;
        if takes_all || long >= least {
            let impossible =
                (group.iter_mut()).filter(|work| is_long(work) || takes_all && work.is_kernel);
            impossible.for_each(|work| {
                *work.span = None;
                count += 1;
            });
        }
    }
    count
}

/// Takes the times away from work that ends after later work of its own stream, because work of a stream ends in order,
/// and returns how many there are. `works` are of one stream, in order of their starts. Where a quarter or more
/// would be of this kind, the queue stands for several streams, and all are believed.
fn forget_overlaps(works: &mut [TimedWork<'_>]) -> u64 {
    let mut least_end_ns = i64::MAX;
    let mut impossible = Vec::new();
    for (index, work) in works.iter().enumerate().rev() {
        let Some(span) = *work.span else { continue };
        if span.end_ns() > least_end_ns.saturating_add(ROUNDING_NS) {
            impossible.push(index);
        } else {
            least_end_ns = least_end_ns.min(span.end_ns());
        }
    }
    if impossible.len() * 4 >= works.len() {
        return 0;
    }
    for index in &impossible {
        *works[*index].span = None;
    }
    impossible.len() as u64
}
