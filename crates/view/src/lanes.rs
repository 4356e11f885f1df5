//! Splits the rows of a track into lanes, in each of which rows do not overlap, and writes them as frames. A live
//! trace grows: the rows of each addition are placed behind those that are there, so that earlier rows keep their
//! lanes. The page asks for all additions after the generation (which grows with each change of a trace) that it has,
//! or for the rows in a range of time. A place is a number that holds a table and a row.

use crate::density_index::TableRows;
use crate::frame::Frame;
use crate::protocol::{ColumnType, TrackHeader};
use crate::range_query::{self, RangeRows, TrackRows};
use crate::texts::{NONE, Texts};
use crate::track::{DrawnTable, ROW_BITS, TrackId, WholeCommandBuffers, place};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::lanes::Lanes;
use gapscope_timeline::submit_calls::SubmitCalls;
use gapscope_trace::Trace;
use gapscope_trace::ids::CommandBufferId;
use gapscope_trace::lookup::IdIndex;
use std::borrow::Cow;

/// The rows of one track by lane, with later additions.
#[derive(Debug, Default)]
pub struct PlacedRows {
    /// The ends of the lanes so far.
    lanes: Lanes,
    /// For each table of the track the number of rows that have been placed.
    taken: Vec<usize>,
    /// All additions, in order of their generations.
    additions: Vec<Addition>,
}

/// Rows that were added at one time.
#[derive(Debug, Default, Clone)]
struct Addition {
    /// The generation of the snapshot that the rows came with.
    generation: u64,
    /// The places of the rows by lane, and within a lane in order of start.
    rows: Vec<u32>,
    /// The index in `rows` at which each lane starts, and the end of the last.
    bounds: Vec<usize>,
}

/// The columns of a track that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// Times, names and rows.
    Rows,
    /// The labels of the rows alone, in the same order.
    Labels,
}

/// A track of a trace, with the texts that name its rows.
#[derive(Clone, Copy)]
pub struct TraceTrack<'a> {
    id: TrackId,
    /// The tables that the track's rows may come from.
    tables: &'static [DrawnTable],
    trace: &'a Trace,
    texts: &'a Texts,
}

impl<'a> TraceTrack<'a> {
    pub fn new(id: TrackId, trace: &'a Trace, texts: &'a Texts) -> TraceTrack<'a> {
        let tables = id.tables();
        TraceTrack {
            id,
            tables,
            trace,
            texts,
        }
    }

    /// Returns the time of the row at a place; an empty one where it is not known.
    #[inline]
    fn times(&self, at: u32) -> Interval {
        let (source, row) = place(self.tables, at);
        source.times(self.trace, row).unwrap_or_default()
    }

    /// Returns the number of the text that names the row at a place.
    #[inline]
    fn name(&self, at: u32) -> u32 {
        let (source, row) = place(self.tables, at);
        name(source, row, self.trace, self.texts)
    }

    /// Makes a frame of some columns of the added rows.
    fn frame(&self, columns: Columns, added: &Addition, header: TrackHeader) -> Vec<u8> {
        match columns {
            Columns::Rows => self.rows_frame(added, header),
            Columns::Labels => self.labels_frame(added, header),
        }
    }

    /// Makes the frame of times, names and places of the added rows.
    fn rows_frame(&self, added: &Addition, mut header: TrackHeader) -> Vec<u8> {
        let rows = &added.rows;
        header.tables = self.tables.iter().map(|source| source.table()).collect();
        header.lanes = added.bounds.clone();
        let durations = rows.iter().map(|at| self.times(*at).length_ns());
        let columns = [
            ("start", ColumnType::F64),
            ("duration", ColumnType::of_durations(durations.clone())),
            ("name", ColumnType::U32),
            ("row", ColumnType::U32),
        ];
        let mut frame = Frame::new(header, rows.len(), &columns);
        frame.f64(rows.iter().map(|at| self.times(*at).start_ns as f64));
        frame.durations(durations);
        frame.u32(rows.iter().map(|at| self.name(*at)));
        frame.u32(rows.iter().copied());
        frame.finish()
    }

    /// Makes the frame of the added rows' labels, as numbers of the texts of their paths.
    fn labels_frame(&self, added: &Addition, header: TrackHeader) -> Vec<u8> {
        let tables = &self.trace.tables;
        let command_buffers = IdIndex::new(&tables.command_buffers.id);
        let around = |command_buffer: Option<CommandBufferId>| {
            let row = command_buffers.get(command_buffer?)?;
            tables.command_buffers.label.at(row)
        };
        let label = |at: &u32| {
            let (source, row) = place(self.tables, *at);
            match source {
                DrawnTable::CommandBuffer => tables.command_buffers.label.at(row),
                DrawnTable::Marker => Some(tables.markers.label[row]),
                _ => {
                    let work = source.work(self.trace)?;
                    (work.label.at(row)).or_else(|| around(work.command_buffer.at(row)))
                }
            }
        };
        let labels = added.rows.iter().map(label);
        let mut frame = Frame::new(header, added.rows.len(), &[("label", ColumnType::U32)]);
        frame.u32(labels.map(|id| id.map_or(NONE, |id| self.texts.label_path(id))));
        frame.finish()
    }
}

impl PlacedRows {
    /// Places the rows that were added to the trace since the last call, as those of `generation`. `all` are all rows
    /// of the track, where they are known; it is used at the first call only, and may be empty.
    pub fn extend(
        &mut self,
        track: TraceTrack,
        whole: &WholeCommandBuffers,
        calls: &SubmitCalls,
        generation: u64,
        all: &[TableRows],
    ) {
        let TraceTrack {
            id,
            tables,
            trace,
            texts,
        } = track;
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
                    .filter(|row| source.is_drawn(trace, *row, calls))
                    .filter(|row| source.track(trace, *row, whole) == id)
                    .for_each(&mut add);
            }
            self.taken[at] = count;
        }
        if rows.is_empty() {
            return;
        }
        let order = |row: &u32| {
            let Interval { start_ns, end_ns } = track.times(*row);
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
        let times = rows.iter().map(|row| track.times(*row));
        let lanes: Vec<u32> = times.map(|times| self.lanes.place(times)).collect();
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

    /// Makes a frame of rows of the track.
    pub fn frame(&self, track: TraceTrack, rows: TrackRows, columns: Columns) -> Vec<u8> {
        let last = self.additions.last().map_or(0, |last| last.generation);
        let asked = match rows {
            TrackRows::In(asked) => asked,
            TrackRows::After(generation) => {
                let header = TrackHeader {
                    generation: last.max(generation),
                    ..TrackHeader::default()
                };
                return track.frame(columns, &self.after(generation), header);
            }
        };
        let mut header = TrackHeader {
            generation: last,
            ..TrackHeader::default()
        };
        let all = self.after(0);
        match RangeRows::new(&all.bounds, asked, |row| track.times(all.rows[row])) {
            RangeRows::Rows(lanes) => {
                let mut part = Addition {
                    bounds: vec![0],
                    ..Addition::default()
                };
                for lane in lanes {
                    part.rows.extend_from_slice(&all.rows[lane]);
                    part.bounds.push(part.rows.len());
                }
                header.part = Some([asked.range.start_ns, asked.range.end_ns]);
                track.frame(columns, &part, header)
            }
            RangeRows::Slices(lanes) => {
                let name = |row: usize| track.name(all.rows[row]);
                range_query::frame(&lanes, asked.range, header, name)
            }
        }
    }

    /// Returns all additions after a generation as one.
    fn after(&self, generation: u64) -> Cow<'_, Addition> {
        let older = |addition: &Addition| addition.generation <= generation;
        let additions = &self.additions[self.additions.partition_point(older)..];
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
                if let Some(&[from, to]) = addition.bounds.get(lane..lane + 2) {
                    all.rows.extend_from_slice(&addition.rows[from..to]);
                }
            }
            all.bounds.push(all.rows.len());
        }
        Cow::Owned(all)
    }
}

/// Returns the number of the text that names a row.
#[inline]
pub fn name(source: DrawnTable, row: usize, trace: &Trace, texts: &Texts) -> u32 {
    let tables = &trace.tables;
    match source {
        DrawnTable::Dispatch => texts.kernel(tables.dispatches.kernel[row]),
        DrawnTable::Transfer => texts.transfer(tables.transfers.kind[row]),
        DrawnTable::Opaque => texts.opaque(tables.opaque_work.kind[row]),
        DrawnTable::CommandBuffer => texts.command_buffer(row),
        DrawnTable::HostCall => texts.host_call(&tables.host_calls, row),
        DrawnTable::Submission => texts.launch(&tables.submissions, row),
        DrawnTable::Marker => texts.label(tables.markers.label[row]),
    }
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
        let bounds: Vec<usize> = serde_json::from_value(header["lanes"].clone()).unwrap();
        let [start, duration, row] = ["start", "duration", "row"].map(|name| column(frame, name));
        assert_eq!(*bounds.last().unwrap(), start.len());
        let lane = |at: usize| {
            let end = start[at] + duration[at];
            (start[at] as i64, end as i64, row[at] as u32)
        };
        let lanes = bounds.windows(2);
        lanes
            .map(|two| (two[0]..two[1]).map(lane).collect())
            .collect()
    }

    /// Adds a transfer or a dispatch.
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
                    let track = TraceTrack::new(id, &trace, &texts);
                    placed[queue].extend(track, &WholeCommandBuffers::None, &SubmitCalls::default(), generation, &[]);
                    let addition = placed[queue].frame(track, TrackRows::After(generation - 1), Columns::Rows);
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
                let track = TraceTrack::new(id, &trace, &texts);
                let whole = lanes(&placed[queue].frame(track, TrackRows::After(0), Columns::Rows));
                prop_assert_eq!(&whole, &grown[queue]);
                // Taken up at once, the rows that the survey knows are those that are looked for.
                let index = DensityIndex::new(&trace, &WholeCommandBuffers::None, &SubmitCalls::default());
                let density = index.tracks.iter().find(|density| density.id == id);
                let at_once = |all: &[TableRows]| {
                    let mut placed = PlacedRows::default();
                    placed.extend(track, &WholeCommandBuffers::None, &SubmitCalls::default(), 1, all);
                    placed.frame(track, TrackRows::After(0), Columns::Rows)
                };
                prop_assert_eq!(at_once(density.map_or(&[], |density| &density.places)), at_once(&[]));
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
        let track = TraceTrack::new(id, trace, texts);
        placed.extend(
            track,
            &WholeCommandBuffers::None,
            &SubmitCalls::default(),
            1,
            &[],
        );
        placed.frame(track, TrackRows::After(0), columns)
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
