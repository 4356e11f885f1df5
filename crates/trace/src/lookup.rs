//! Finds rows, labels and parts of the manifest by id.

use crate::ids::{DeviceId, Id, LabelId, ProcessId, QueueId};
use crate::manifest::{Device, Manifest, Process, Queue};
use crate::tables::{Labels, Submissions};
use std::marker::PhantomData;

/// Stands for no row where a row number is kept in 32 bits.
pub const NONE: u32 = u32::MAX;

/// Maps the ids of a table to rows. Of several rows with one id it knows the first.
#[derive(Debug, Clone)]
pub struct IdIndex<I>(RowLookup, PhantomData<fn(I)>);

/// The rows by id, in one of two forms.
#[derive(Debug, Clone)]
enum RowLookup {
    /// For ids that are roughly a counter: the row of `id - first`, or [`NONE`].
    Dense { first: u64, rows: Vec<u32> },
    /// Pairs of id and row, sorted.
    Sparse(Vec<(u64, u32)>),
}

impl<I> IdIndex<I> {
    const fn from_lookup(lookup: RowLookup) -> Self {
        IdIndex(lookup, PhantomData)
    }
}

impl<I> Default for IdIndex<I> {
    /// Returns the index of an empty table.
    fn default() -> Self {
        IdIndex::from_lookup(RowLookup::Sparse(Vec::new()))
    }
}

impl<I: Id> IdIndex<I> {
    /// Indexes the column `ids`.
    ///
    /// # Panics
    /// There are more than 4294967294 rows.
    pub fn new(ids: &[I]) -> IdIndex<I> {
        assert!(ids.len() < NONE as usize, "a table has too many rows");
        let ids = ids.iter().map(|id| id.number());
        let (Some(first), Some(last)) = (ids.clone().min(), ids.clone().max()) else {
            return IdIndex::default();
        };
        let rows = ids.clone().zip(0..ids.len() as u32);
        let span = last - first;
        if span / 8 > ids.len() as u64 {
            let mut pairs: Vec<(u64, u32)> = rows.collect();
            pairs.sort_unstable();
            return IdIndex::from_lookup(RowLookup::Sparse(pairs));
        }
        let mut places = vec![NONE; span as usize + 1];
        for (id, row) in rows {
            let place = &mut places[(id - first) as usize];
            if *place == NONE {
                *place = row;
            }
        }
        IdIndex::from_lookup(RowLookup::Dense {
            first,
            rows: places,
        })
    }

    /// Returns the row of `id`, or [`NONE`].
    #[inline]
    pub fn row(&self, id: I) -> u32 {
        let id = id.number();
        match &self.0 {
            RowLookup::Dense { first, rows } => id
                .checked_sub(*first)
                .and_then(|at| rows.get(usize::try_from(at).ok()?))
                .copied()
                .unwrap_or(NONE),
            RowLookup::Sparse(pairs) => {
                let at = pairs.partition_point(|(other, _)| *other < id);
                match pairs.get(at) {
                    Some((other, row)) if *other == id => *row,
                    _ => NONE,
                }
            }
        }
    }

    /// Returns the row of `id`.
    #[inline]
    pub fn get(&self, id: I) -> Option<usize> {
        match self.row(id) {
            NONE => None,
            row => Some(row as usize),
        }
    }
}

/// The depth at which walks through labels end: labels of a damaged trace may contain themselves.
const MAX_LABEL_DEPTH: usize = 64;

impl Labels {
    /// Returns the rows of a label and its ancestors, innermost first. `ids` is the index of this table.
    pub fn outwards(&self, ids: &IdIndex<LabelId>, row: usize) -> impl Iterator<Item = usize> {
        let parent = |row: &usize| self.parent.at(*row).and_then(|parent| ids.get(parent));
        std::iter::successors(Some(row), parent).take(MAX_LABEL_DEPTH)
    }

    /// Returns the path of a label: texts from the outermost to its own, such as `step / attention / matmul`.
    pub fn path(&self, ids: &IdIndex<LabelId>, row: usize) -> String {
        label_path(self.outwards(ids, row).map(|row| &*self.text[row]))
    }
}

/// Joins texts, which come innermost first, to a path.
pub fn label_path<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut texts: Vec<&str> = texts.collect();
    texts.reverse();
    texts.join(" / ")
}

/// The paths of all labels of a trace.
#[derive(Debug, Clone)]
pub struct LabelPaths {
    index: IdIndex<LabelId>,
    paths: Vec<String>,
}

impl LabelPaths {
    /// Computes the paths of all labels.
    pub fn new(labels: &Labels) -> LabelPaths {
        let index = IdIndex::new(&labels.id);
        let paths = (0..labels.id.len())
            .map(|row| labels.path(&index, row))
            .collect();
        LabelPaths { index, paths }
    }

    /// Returns the path of a label; `None` for one that the trace does not have.
    pub fn get(&self, label: LabelId) -> Option<&str> {
        self.index.get(label).map(|row| self.paths[row].as_str())
    }
}

impl Manifest {
    /// Returns the queue with this id.
    pub fn queue(&self, id: QueueId) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.id == id)
    }

    /// Returns the device with this id.
    pub fn device(&self, id: DeviceId) -> Option<&Device> {
        self.devices.iter().find(|device| device.id == id)
    }

    /// Returns the device of the queue with this id.
    pub fn device_of_queue(&self, queue: QueueId) -> Option<&Device> {
        self.device(self.queue(queue)?.device)
    }

    /// Returns the process with this id.
    pub fn process(&self, id: ProcessId) -> Option<&Process> {
        self.processes.iter().find(|process| process.id == id)
    }
}

impl Submissions {
    /// Returns the time when the host call of a row returned.
    pub fn end_ns(&self, row: usize) -> i64 {
        self.start_ns[row].saturating_add(self.duration_ns[row])
    }
}
