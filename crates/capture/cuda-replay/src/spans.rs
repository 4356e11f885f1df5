//! Computes which addresses a replay reserves and maps: the ranges of allocations go in, ranges that are rounded and
//! joined come out.

/// The step at which the driver gives the address that it is asked for.
pub const RESERVED_STEP: u64 = 32 << 20;
/// The step of memory that is mapped on the GPU.
pub const MAPPED_STEP: u64 = 2 << 20;

/// A range of addresses: the first one, and the one behind the last.
pub type Span = (u64, u64);

/// Rounds ranges to a step, and joins those that touch or overlap. Returns them in order.
pub fn joined(ranges: impl IntoIterator<Item = Span>, step: u64) -> Vec<Span> {
    let rounded = ranges
        .into_iter()
        .map(|(start, end)| (start / step * step, end.next_multiple_of(step)));
    let mut sorted: Vec<Span> = rounded.collect();
    sorted.sort_unstable();
    let mut all: Vec<Span> = Vec::new();
    for (start, end) in sorted {
        match all.last_mut() {
            Some((_, last)) if *last >= start => *last = end.max(*last),
            _ => all.push((start, end)),
        }
    }
    all
}

/// Returns whether two ranges have an address in common.
pub fn overlap(a: Span, b: Span) -> bool {
    a.0 < b.1 && b.0 < a.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_rounded_and_joined() {
        assert_eq!(
            joined([(100, 110), (8, 12), (17, 20), (10, 11)], 8),
            [(8, 24), (96, 112)]
        );
        assert_eq!(joined([], 8), []);
        // Two that are rounded to neighbours are one.
        assert_eq!(joined([(0, 8), (8, 9)], 8), [(0, 16)]);
    }
}
