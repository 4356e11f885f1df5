//! Puts dispatches, of which there may be ten million, into lanes (slices that follow each other), so that none stays in
//! memory as a row. The dispatches come in pieces of their table, which are read one after the other.
//!
//! Rows come nearly in the order of their starts. A first pass finds how early the rows after each piece begin on
//! each queue. The second pass then knows, piece by piece, which of the waiting rows no later row can precede.

use crate::packed::{Lane, pack_dispatch, pack_row};
use crate::slice::{Dispatch, Slice};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::lanes::Lanes;
use gapscope_trace::optional::Optional;

/// The earliest start of the dispatches of a queue, by piece: in order of pieces, and once settled the last piece
/// first.
#[derive(Debug, Default)]
pub(super) struct PieceStarts(Vec<PieceStart>);

/// A piece of the table of dispatches, with the earliest start of a queue's dispatches in it.
#[derive(Debug, Clone, Copy)]
struct PieceStart {
    piece: u32,
    start_ns: i64,
}

impl PieceStarts {
    /// Adds a dispatch of a piece. Pieces come in their order.
    #[inline]
    pub fn add(&mut self, piece: u32, start_ns: i64) {
        match self.0.last_mut() {
            Some(last) if last.piece == piece => last.start_ns = last.start_ns.min(start_ns),
            _ => self.0.push(PieceStart { piece, start_ns }),
        }
    }

    /// Replaces each start by the earliest of its piece and of all later ones, and puts the last piece first.
    fn settle(&mut self) {
        let mut earliest_ns = i64::MAX;
        for PieceStart { start_ns, .. } in self.0.iter_mut().rev() {
            earliest_ns = earliest_ns.min(*start_ns);
            *start_ns = earliest_ns;
        }
        self.0.reverse();
    }

    /// Returns the earliest start of a dispatch after a piece, once settled; `None` when there is no such dispatch.
    /// Forgets the pieces up to this one, so that pieces must come in their order.
    fn earliest_after(&mut self, piece: u32) -> Option<i64> {
        while self.0.pop_if(|next| next.piece <= piece).is_some() {}
        self.0.last().map(|next| next.start_ns)
    }
}

/// The lanes of a queue's work under construction: [`WorkLanes::take`] for each piece, then [`WorkLanes::finish`].
#[derive(Debug)]
pub(super) struct WorkLanes {
    /// The settled starts, which tell which rows are ready.
    starts: PieceStarts,
    /// Chooses the first lane that is free at the start of a slice.
    chooser: Lanes,
    /// The lanes with their slices.
    lanes: Vec<Lane>,
    /// Other work than dispatches, in order.
    others: std::iter::Peekable<std::vec::IntoIter<Slice>>,
    /// The dispatches that a later row may still precede.
    waiting: Vec<WaitingDispatch>,
    /// Number of rows of `waiting` that were not ready when they were last checked.
    unready: usize,
    /// The packed facts of the waiting dispatches.
    packed: Vec<u8>,
}

/// The dispatches of a queue in a piece.
#[derive(Debug, Default)]
pub(super) struct PieceWork {
    rows: Vec<WaitingDispatch>,
    /// The packed facts of the dispatches.
    packed: Vec<u8>,
}

impl PieceWork {
    /// Adds a dispatch. `flow` is the number by which the arrow from its submission is found, 0 for none
    /// ([`Slice::flow`]).
    #[inline]
    pub fn push(&mut self, interval: Interval, dispatch: &Dispatch, flow: u32) {
        let at = self.packed.len();
        pack_dispatch(dispatch, flow, &mut self.packed);
        self.rows.push(WaitingDispatch {
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            at,
            length: self.packed.len() - at,
        });
    }
}

/// A dispatch that waits for its turn.
#[derive(Debug, Clone, Copy)]
struct WaitingDispatch {
    start_ns: i64,
    end_ns: i64,
    /// Offset at which the packed facts begin.
    at: usize,
    /// The number of bytes of these facts.
    length: usize,
}

impl WorkLanes {
    pub fn new(mut starts: PieceStarts, mut others: Vec<Slice>) -> WorkLanes {
        starts.settle();
        // A stable sort, here and for dispatches below, keeps the order of rows with equal times.
        others.sort_by_key(|slice| (slice.start_ns, slice.end_ns));
        WorkLanes {
            starts,
            chooser: Lanes::default(),
            lanes: Vec::new(),
            others: others.into_iter().peekable(),
            waiting: Vec::new(),
            unready: 0,
            packed: Vec::new(),
        }
    }

    /// Adds the dispatches of the next piece.
    pub fn take(&mut self, piece: u32, added: PieceWork) {
        if self.waiting.is_empty() {
            (self.waiting, self.packed) = (added.rows, added.packed);
        } else {
            let before = self.packed.len();
            let rows = added.rows.into_iter().map(|row| WaitingDispatch {
                at: before + row.at,
                ..row
            });
            self.waiting.extend(rows);
            self.packed.extend_from_slice(&added.packed);
        }
        self.end_piece(piece);
    }

    /// Places the waiting dispatches that begin before any dispatch after this piece, with the other work between
    /// them. Before the last dispatch has come, it leaves all waiting until twice as many wait as could not be placed
    /// the last time: rows that wait for long would otherwise be sorted and searched again for each piece.
    fn end_piece(&mut self, piece: u32) {
        let next_start_ns = self.starts.earliest_after(piece);
        if next_start_ns.is_some() && self.waiting.len() < 2 * self.unready {
            return;
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        let order = |row: &WaitingDispatch| (row.start_ns, row.end_ns);
        if !waiting.is_sorted_by_key(order) {
            waiting.sort_by_key(order);
        }
        let ready = next_start_ns.map_or(waiting.len(), |next_start_ns| {
            waiting.partition_point(|row| row.start_ns < next_start_ns)
        });
        let packed = std::mem::take(&mut self.packed);
        for row in &waiting[..ready] {
            let before = |other: &Slice| (other.start_ns, other.end_ns) < order(row);
            while let Some(other) = self.others.next_if(before) {
                self.place_other(&other);
            }
            let facts = &packed[row.at..row.at + row.length];
            self.place(row.start_ns, row.end_ns, facts);
        }
        for row in &waiting[ready..] {
            let at = self.packed.len();
            self.packed
                .extend_from_slice(&packed[row.at..row.at + row.length]);
            self.waiting.push(WaitingDispatch { at, ..*row });
        }
        self.unready = self.waiting.len();
    }

    /// Returns the lanes, when all pieces have come.
    pub fn finish(mut self) -> Vec<Lane> {
        self.end_piece(u32::MAX);
        while let Some(other) = self.others.next() {
            self.place_other(&other);
        }
        self.lanes.iter_mut().for_each(Lane::finish);
        self.lanes
    }

    /// Places work other than dispatches.
    fn place_other(&mut self, slice: &Slice) {
        let mut facts = Vec::new();
        pack_row(slice, &mut facts);
        self.place(slice.start_ns, slice.end_ns, &facts);
    }

    /// Puts a slice, with its packed facts, into the first free lane.
    fn place(&mut self, start_ns: i64, end_ns: i64, facts: &[u8]) {
        let lane = self.chooser.place(Interval::new(start_ns, end_ns));
        self.lanes.resize_with(self.chooser.count(), Lane::default);
        self.lanes[lane as usize].push(start_ns, end_ns, facts);
    }
}

/// Returns the rows of a table whose start and duration are known and make an interval, with that interval.
pub(super) fn timed(
    start_ns: &Optional<i64>,
    duration_ns: &Optional<i64>,
) -> impl Iterator<Item = (usize, Interval)> {
    (0..start_ns.len()).filter_map(|row| {
        let interval = Interval::from_row(start_ns.at(row), duration_ns.at(row))?;
        Some((row, interval))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slice::SliceKind;
    use proptest::prelude::*;

    proptest! {
        /// Rows give the same lanes however they are cut into pieces and whatever their order.
        #[test]
        fn lanes_are_those_of_all_rows_at_once(
            rows in proptest::collection::vec((0i64..60, 0i64..9), 0..120),
            others in proptest::collection::vec((0i64..60, 0i64..9), 0..20),
            size in 1usize..30,
        ) {
            let mut starts = PieceStarts::default();
            for (piece, rows) in (0..).zip(rows.chunks(size)) {
                rows.iter().for_each(|row| starts.add(piece, row.0));
            }
            let others = (0..).zip(&others).map(|(row, (start_ns, ns))| Slice {
                start_ns: *start_ns,
                end_ns: start_ns + ns,
                row,
                flow: 0,
                kind: SliceKind::Transfer,
            });
            let others: Vec<Slice> = others.collect();
            let mut work = WorkLanes::new(starts, others.clone());
            let mut position = 0;
            for (piece, rows) in (0..).zip(rows.chunks(size)) {
                let mut added = PieceWork::default();
                for (start_ns, ns) in rows {
                    let dispatch = Dispatch { position, ..Dispatch::default() };
                    added.push(Interval::new(*start_ns, start_ns + ns), &dispatch, 0);
                    position += 1;
                }
                work.take(piece, added);
            }
            let lanes = work.finish();
            let drawn = lanes.iter().map(|lane| {
                let drawn = lane.slices().map(|drawn| {
                    // Dispatches have a position here and others a row; the other one is 0.
                    let row = drawn.slice.row + drawn.dispatch.position;
                    (drawn.slice.start_ns, drawn.slice.end_ns, drawn.slice.kind, row)
                });
                drawn.collect::<Vec<_>>()
            });
            let mut all: Vec<_> = rows.iter().zip(0..).map(|((start_ns, ns), row)| {
                (*start_ns, start_ns + ns, SliceKind::Dispatch, row)
            }).collect();
            all.extend(others.iter().map(|other| (other.start_ns, other.end_ns, other.kind, other.row)));
            all.sort_by_key(|row| (row.0, row.1));
            let mut chooser = Lanes::default();
            let mut expected: Vec<Vec<_>> = Vec::new();
            for row in all {
                let lane = chooser.place(Interval::new(row.0, row.1));
                expected.resize_with(chooser.count(), Vec::new);
                expected[lane as usize].push(row);
            }
            prop_assert_eq!(drawn.collect::<Vec<_>>(), expected);
        }
    }
}
