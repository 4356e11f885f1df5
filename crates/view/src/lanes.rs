//! Splits the rows of a track into lanes, in each of which rows do not overlap, and writes them as frames.

use crate::density_index::TableRows;
use crate::frame::Frame;
use crate::protocol::{ColumnType, TrackHeader};
use crate::range_query::{self, RangeQuery, RangeRows};
use crate::texts::{NONE, Texts};
use crate::track::{DrawnTable, ROW_BITS, TrackId, WholeCommandBuffers, place};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::lanes::Lanes;
use gapscope_trace::Trace;
use gapscope_trace::ids::CommandBufferId;
use gapscope_trace::lookup::IdIndex;

/// The rows of one track by lane, with later additions.
#[derive(Debug, Default)]
pub struct PlacedRows {
    lanes: Lanes,
    /// For each table of the track the number of rows that have been placed.
    taken: Vec<usize>,
    additions: Vec<Addition>,
}

/// Rows that were added at one time.
#[derive(Debug, Default, Clone)]
struct Addition {
    generation: u64,
    /// Places (see [`place`]) by lane, and within a lane in order of start.
    rows: Vec<u32>,
    /// The index in `rows` at which each lane starts, and the end of the last.
    bounds: Vec<usize>,
}

/// The columns of a track that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// Times, names and rows.
    Rows,
    /// Labels.
    Labels,
}

impl Columns {
    fn frame(
        self,
        id: TrackId,
        trace: &Trace,
        texts: &Texts,
        added: &Addition,
        header: TrackHeader,
    ) -> Vec<u8> {
        match self {
            Columns::Rows => rows_frame(id, trace, texts, added, header),
            Columns::Labels => labels_frame(id, trace, texts, added, header),
        }
    }
}

impl PlacedRows {
    /// Places the rows that were added to the trace since the last call, as those of `generation`. `all` are the rows
    /// of the track, where they are known.
    pub fn extend(
        &mut self,
        id: TrackId,
        trace: &Trace,
        whole: &WholeCommandBuffers,
        texts: &Texts,
        generation: u64,
        all: &[TableRows],
    ) {
        let tables = id.tables();
        self.taken.resize(tables.len(), 0);
        let first = self.taken.iter().all(|taken| *taken == 0);
        let mut rows: Vec<u32> = Vec::new();
        for (at, source) in tables.iter().enumerate() {
            let count = source.rows(trace).min(1 << ROW_BITS);
            let mut add = |row: usize| {
                if source.times(trace, row).is_some() {
                    rows.push((at as u32) << ROW_BITS | row as u32);
                }
            };
            if first && !all.is_empty() {
                let of_source = all.iter().filter(|places| places.source == *source);
                let rows = of_source.flat_map(|places| places.rows.iter().cloned().flatten());
                rows.map(|row| row as usize)
                    .take_while(|row| *row < count)
                    .for_each(add);
            } else {
                (self.taken[at]..count)
                    .filter(|row| source.track(trace, *row, whole) == id)
                    .for_each(&mut add);
            }
            self.taken[at] = count;
        }
        if rows.is_empty() {
            return;
        }
        let interval = |row: &u32| {
            let (source, row) = place(tables, *row);
            source.times(trace, row).unwrap_or_default()
        };
        let order = |row: &u32| {
            let Interval { start_ns, end_ns } = interval(row);
            let depth = match place(tables, *row) {
                (DrawnTable::Marker, row) => texts.label_depth(trace.tables.markers.label[row]),
                _ => 0,
            };
            // An outer row comes before the rows inside of it.
            (start_ns, std::cmp::Reverse(end_ns), depth)
        };
        if !rows.is_sorted_by_key(order) {
            rows.sort_by_cached_key(order);
        }
        let lanes: Vec<u32> = rows
            .iter()
            .map(|row| self.lanes.place(interval(row)))
            .collect();
        let mut bounds = vec![0; self.lanes.count() + 1];
        for lane in &lanes {
            bounds[*lane as usize + 1] += 1;
        }
        for lane in 1..bounds.len() {
            bounds[lane] += bounds[lane - 1];
        }
        if self.lanes.count() > 1 {
            let mut next = bounds.clone();
            let mut by_lane = vec![0; rows.len()];
            for (row, lane) in rows.iter().zip(&lanes) {
                let at = &mut next[*lane as usize];
                by_lane[*at] = *row;
                *at += 1;
            }
            rows = by_lane;
        }
        self.additions.push(Addition {
            generation,
            rows,
            bounds,
        });
    }

    /// Makes a frame of the rows that came after generation `after`.
    pub fn frame(
        &self,
        id: TrackId,
        trace: &Trace,
        texts: &Texts,
        after: u64,
        columns: Columns,
    ) -> Vec<u8> {
        let added = self.after(after);
        let generation = self
            .additions
            .last()
            .map_or(after, |last| last.generation)
            .max(after);
        let header = TrackHeader {
            generation,
            ..TrackHeader::default()
        };
        columns.frame(id, trace, texts, &added, header)
    }

    /// Makes a frame of the rows in a range.
    pub fn part(
        &self,
        id: TrackId,
        trace: &Trace,
        texts: &Texts,
        asked: RangeQuery,
        columns: Columns,
    ) -> Vec<u8> {
        let all = self.after(0);
        let generation = self.additions.last().map_or(0, |last| last.generation);
        let mut header = TrackHeader {
            generation,
            ..TrackHeader::default()
        };
        let at = |row: usize| place(id.tables(), all.rows[row]);
        let part = RangeRows::new(&all.bounds, asked, |row| {
            let (source, row) = at(row);
            source.times(trace, row).unwrap_or_default()
        });
        match part {
            RangeRows::Rows(lanes) => {
                let mut bounds = vec![0];
                let mut rows = Vec::new();
                for lane in lanes {
                    rows.extend_from_slice(&all.rows[lane]);
                    bounds.push(rows.len());
                }
                let rows = Addition {
                    generation,
                    rows,
                    bounds,
                };
                header.part = Some([asked.range.start_ns, asked.range.end_ns]);
                columns.frame(id, trace, texts, &rows, header)
            }
            RangeRows::Slices(lanes) => range_query::frame(&lanes, asked.range, header, |row| {
                let (source, row) = at(row);
                name(source, row, trace, texts)
            }),
        }
    }

    /// Returns all additions after a generation as one.
    fn after(&self, generation: u64) -> std::borrow::Cow<'_, Addition> {
        use std::borrow::Cow;
        let from = self
            .additions
            .partition_point(|addition| addition.generation <= generation);
        let additions = &self.additions[from..];
        if let [one] = additions
            && one.bounds.len() == self.lanes.count() + 1
        {
            return Cow::Borrowed(one);
        }
        let mut all = Addition {
            generation,
            bounds: vec![0],
            ..Addition::default()
        };
        for lane in 0..self.lanes.count() {
            for addition in additions {
                if let Some(range) = addition.bounds.get(lane..lane + 2) {
                    all.rows
                        .extend_from_slice(&addition.rows[range[0]..range[1]]);
                }
            }
            all.bounds.push(all.rows.len());
        }
        Cow::Owned(all)
    }
}

fn rows_frame(
    id: TrackId,
    trace: &Trace,
    texts: &Texts,
    added: &Addition,
    mut header: TrackHeader,
) -> Vec<u8> {
    let tables = id.tables();
    let rows = &added.rows;
    header.tables = tables.iter().map(|source| source.table()).collect();
    header.lanes = added.bounds.clone();
    let times = |at: &u32| {
        let (source, row) = place(tables, *at);
        source.times(trace, row).unwrap_or_default()
    };
    let longest = rows
        .iter()
        .map(|at| times(at).length_ns())
        .max()
        .unwrap_or(0);
    let duration = match longest <= i64::from(u32::MAX) {
        true => ColumnType::U32,
        false => ColumnType::F64,
    };
    let columns = [
        ("start", ColumnType::F64),
        ("duration", duration),
        ("name", ColumnType::U32),
        ("row", ColumnType::U32),
    ];
    let mut frame = Frame::new(header, rows.len(), &columns);
    frame.f64(rows.iter().map(|at| times(at).start_ns as f64));
    match duration {
        ColumnType::F64 => frame.f64(rows.iter().map(|at| times(at).length_ns() as f64)),
        _ => frame.u32(rows.iter().map(|at| times(at).length_ns() as u32)),
    }
    frame.u32(rows.iter().map(|at| {
        let (source, row) = place(tables, *at);
        name(source, row, trace, texts)
    }));
    frame.u32(rows.iter().copied());
    frame.finish()
}

/// Returns the text that names a row.
#[inline]
pub fn name(source: DrawnTable, row: usize, trace: &Trace, texts: &Texts) -> u32 {
    let tables = &trace.tables;
    match source {
        DrawnTable::Dispatch => texts.kernel(tables.dispatches.kernel[row]),
        DrawnTable::Transfer => texts.transfer(tables.transfers.kind[row]),
        DrawnTable::Opaque => texts.opaque(tables.opaque_work.kind[row]),
        DrawnTable::CommandBuffer => texts.command_buffer(row),
        DrawnTable::HostCall => texts.call(tables.host_calls.call[row]),
        DrawnTable::Marker => texts.label(tables.markers.label[row]),
    }
}

fn labels_frame(
    id: TrackId,
    trace: &Trace,
    texts: &Texts,
    added: &Addition,
    header: TrackHeader,
) -> Vec<u8> {
    let sources = id.tables();
    let tables = &trace.tables;
    let command_buffers = IdIndex::new(&tables.command_buffers.id);
    let around = |command_buffer: Option<CommandBufferId>| {
        let row = command_buffers.get(command_buffer?)?;
        tables.command_buffers.label.at(row)
    };
    let mut frame = Frame::new(header, added.rows.len(), &[("label", ColumnType::U32)]);
    frame.u32(added.rows.iter().map(|at| {
        let (source, row) = place(sources, *at);
        let label = match source {
            DrawnTable::Dispatch => tables
                .dispatches
                .label
                .at(row)
                .or_else(|| around(tables.dispatches.command_buffer.at(row))),
            DrawnTable::Transfer => tables
                .transfers
                .label
                .at(row)
                .or_else(|| around(tables.transfers.command_buffer.at(row))),
            DrawnTable::Opaque => tables
                .opaque_work
                .label
                .at(row)
                .or_else(|| around(tables.opaque_work.command_buffer.at(row))),
            DrawnTable::CommandBuffer => tables.command_buffers.label.at(row),
            DrawnTable::Marker => Some(tables.markers.label[row]),
            DrawnTable::HostCall => None,
        };
        label.map_or(NONE, |id| texts.label_path(id))
    }));
    frame.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density_index::DensityIndex;
    use crate::frame::tests::{column, parse};
    use gapscope_trace::ids::QueueId;
    use gapscope_trace::tables::{Dispatch, Table, Transfer};
    use proptest::prelude::*;

    /// The rows of a frame by lane: start, end and place.
    fn lanes(frame: &[u8]) -> Vec<Vec<(i64, i64, u32)>> {
        let (header, _) = parse(frame);
        let bounds: Vec<usize> = header["lanes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap() as usize)
            .collect();
        let (start, duration, row) = (
            column(frame, "start"),
            column(frame, "duration"),
            column(frame, "row"),
        );
        assert_eq!(*bounds.last().unwrap(), start.len());
        bounds
            .windows(2)
            .map(|two| {
                let rows = two[0]..two[1];
                rows.map(|at| {
                    (
                        start[at] as i64,
                        (start[at] + duration[at]) as i64,
                        row[at] as u32,
                    )
                })
                .collect()
            })
            .collect()
    }

    fn push(trace: &mut Trace, transfer: bool, queue: u32, start_ns: i64, duration_ns: i64) {
        let (start_ns, duration_ns) = (Some(start_ns), Some(duration_ns));
        match transfer {
            true => trace.tables.transfers.push(Transfer {
                queue: QueueId(queue),
                start_ns,
                duration_ns,
                ..Transfer::default()
            }),
            false => trace.tables.dispatches.push(Dispatch {
                queue: QueueId(queue),
                start_ns,
                duration_ns,
                ..Dispatch::default()
            }),
        }
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_lane_and_no_lane_overlaps_however_the_trace_grows(
            parts in proptest::collection::vec(proptest::collection::vec((any::<bool>(), 1u32..3, 0i64..500, 0i64..40), 0..40), 1..5)
        ) {
            let mut trace = Trace::default();
            let mut placed = [PlacedRows::default(), PlacedRows::default()];
            let mut grown: [Vec<Vec<(i64, i64, u32)>>; 2] = Default::default();
            for (generation, part) in parts.iter().enumerate() {
                let generation = generation as u64 + 1;
                for (transfer, queue, start_ns, ns) in part {
                    push(&mut trace, *transfer, *queue, *start_ns, *ns);
                }
                let texts = Texts::new(&trace);
                for queue in 0..2 {
                    let id = TrackId::Work(QueueId(queue as u32 + 1));
                    placed[queue].extend(id, &trace, &WholeCommandBuffers::None, &texts, generation, &[]);
                    let addition = placed[queue].frame(id, &trace, &texts, generation - 1, Columns::Rows);
                    for (lane, rows) in lanes(&addition).into_iter().enumerate() {
                        if grown[queue].len() <= lane {
                            grown[queue].push(Vec::new());
                        }
                        grown[queue][lane].extend(rows);
                    }
                }
            }
            let texts = Texts::new(&trace);
            let mut found = Vec::new();
            for queue in 0..2 {
                let id = TrackId::Work(QueueId(queue as u32 + 1));
                let whole = lanes(&placed[queue].frame(id, &trace, &texts, 0, Columns::Rows));
                prop_assert_eq!(&whole, &grown[queue]);
                // Taken up at once, the rows that the survey knows are those that are looked for.
                let index = DensityIndex::new(&trace, &WholeCommandBuffers::None);
                let density = index.tracks.iter().find(|track| track.id == id);
                let at_once = |all: &[TableRows]| {
                    let mut placed = PlacedRows::default();
                    placed.extend(id, &trace, &WholeCommandBuffers::None, &texts, 1, all);
                    placed.frame(id, &trace, &texts, 0, Columns::Rows)
                };
                prop_assert_eq!(at_once(density.map_or(&[], |track| &track.places)), at_once(&[]));
                for lane in &whole {
                    prop_assert!(lane.windows(2).all(|two| two[0].1 <= two[1].0), "{:?}", lane);
                    for (start_ns, end_ns, at) in lane {
                        let (source, row) = place(id.tables(), *at);
                        let times = source.times(&trace, row).unwrap();
                        prop_assert_eq!((times.start_ns, times.end_ns), (*start_ns, *end_ns));
                        prop_assert_eq!(source.track(&trace, row, &WholeCommandBuffers::None), id);
                        found.push((source.table(), row));
                    }
                }
            }
            found.sort_unstable();
            let mut all: Vec<_> = (0..trace.tables.dispatches.len()).map(|row| ("dispatches", row)).collect();
            all.extend((0..trace.tables.transfers.len()).map(|row| ("transfers", row)));
            prop_assert_eq!(found, all);
        }
    }

    /// The frame of a track, as if it were asked for alone.
    fn frame_of(trace: &Trace, texts: &Texts, id: TrackId, columns: Columns) -> Vec<u8> {
        let mut placed = PlacedRows::default();
        placed.extend(id, trace, &WholeCommandBuffers::None, texts, 1, &[]);
        placed.frame(id, trace, texts, 0, columns)
    }

    #[test]
    fn a_long_duration_is_exact_too() {
        let mut trace = Trace::default();
        push(&mut trace, false, 1, 5, 1 << 40);
        let texts = Texts::new(&trace);
        let frame = frame_of(&trace, &texts, TrackId::Work(QueueId(1)), Columns::Rows);
        assert_eq!(column(&frame, "duration"), [(1u64 << 40) as f64]);
    }

    #[test]
    fn a_row_without_a_label_has_that_of_its_command_buffer() {
        let trace = Trace::from_text(
            "label id=1 text=a\nlabel id=2 text=b parent=1
            command_buffer id=1 queue=1 label=1
            dispatch command_buffer=1 queue=1 kernel=1 start_ns=0 duration_ns=1
            dispatch command_buffer=1 queue=1 kernel=1 start_ns=2 duration_ns=1 label=2
            dispatch queue=1 kernel=1 start_ns=4 duration_ns=1",
        )
        .unwrap();
        let texts = Texts::new(&trace);
        let frame = frame_of(&trace, &texts, TrackId::Work(QueueId(1)), Columns::Labels);
        let labels: Vec<_> = column(&frame, "label")
            .iter()
            .map(|id| texts.text(*id as u32).to_owned())
            .collect();
        assert_eq!(labels, ["a", "a / b", ""]);
    }

    #[test]
    fn of_labels_that_start_and_end_together_the_outer_one_has_the_lower_lane() {
        let trace = Trace::from_text(
            "label id=1 text=inner parent=2\nlabel id=2 text=outer
            marker label=1 scope=command-buffer queue=1 start_ns=5 duration_ns=10
            marker label=2 scope=command-buffer queue=1 start_ns=5 duration_ns=10",
        )
        .unwrap();
        let texts = Texts::new(&trace);
        let frame = frame_of(&trace, &texts, TrackId::Labels(QueueId(1)), Columns::Rows);
        let names = column(&frame, "name");
        let names = names.iter().map(|name| texts.text(*name as u32));
        assert_eq!(names.collect::<Vec<_>>(), ["outer", "inner"]);
    }
}
