//! Finding rows by id.

use crate::manifest::{Device, Manifest, Process, Queue};
use crate::tables::Labels;
use std::collections::HashMap;

/// Where the rows of a table are, by id. Of rows that share an id it knows the first.
#[derive(Debug, Clone)]
pub struct IdIndex(Places);

#[derive(Debug, Clone)]
enum Places {
    /// Ids are usually counted from 0 or 1: the place is at the id, [`NOWHERE`] for an id that is not given.
    Dense(Vec<u32>),
    Sparse(HashMap<u64, u32>),
}

const NOWHERE: u32 = u32::MAX;

impl IdIndex {
    /// An index of the column `ids`.
    ///
    /// # Panics
    /// There are more than 4294967294 rows.
    pub fn new<I: Copy + Into<u64>>(ids: &[I]) -> IdIndex {
        assert!(ids.len() < NOWHERE as usize, "a table has too many rows");
        let greatest = ids.iter().map(|id| (*id).into()).max().unwrap_or(0);
        let rows = ids.iter().zip(0..ids.len() as u32).rev();
        if greatest <= 4 * ids.len() as u64 + 1024 {
            let mut places = vec![NOWHERE; greatest as usize + 1];
            for (id, row) in rows {
                places[(*id).into() as usize] = row;
            }
            IdIndex(Places::Dense(places))
        } else {
            IdIndex(Places::Sparse(
                rows.map(|(id, row)| ((*id).into(), row)).collect(),
            ))
        }
    }

    /// The row of `id`.
    pub fn get(&self, id: impl Into<u64>) -> Option<usize> {
        let id = id.into();
        let row = match &self.0 {
            Places::Dense(places) => places.get(usize::try_from(id).ok()?).copied(),
            Places::Sparse(places) => places.get(&id).copied(),
        };
        row.filter(|row| *row != NOWHERE).map(|row| row as usize)
    }
}

/// Labels with those around them, outermost first, such as `step / attention / matmul`.
#[derive(Debug, Clone)]
pub struct LabelPaths {
    index: IdIndex,
    paths: Vec<String>,
}

impl LabelPaths {
    /// The paths of all labels.
    pub fn new(labels: &Labels) -> LabelPaths {
        let index = IdIndex::new(&labels.id);
        let paths = (0..labels.id.len())
            .map(|row| path(labels, &index, row))
            .collect();
        LabelPaths { index, paths }
    }

    /// The path of a label; `None` for one that the trace does not have.
    pub fn get(&self, label: u32) -> Option<&str> {
        self.index.get(label).map(|row| self.paths[row].as_str())
    }
}

/// Labels nest no deeper than this: a damaged trace's may be their own parents.
const MOST_LABELS: usize = 256;

fn path(labels: &Labels, index: &IdIndex, row: usize) -> String {
    let parent = |row: &usize| labels.parent[*row].and_then(|parent| index.get(parent));
    let mut texts: Vec<&str> = std::iter::successors(Some(row), parent)
        .take(MOST_LABELS)
        .map(|row| labels.text[row].as_str())
        .collect();
    texts.reverse();
    texts.join(" / ")
}

impl Manifest {
    /// The queue with this id.
    pub fn queue(&self, id: u32) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.id == id)
    }

    /// The device with this id.
    pub fn device(&self, id: u32) -> Option<&Device> {
        self.devices.iter().find(|device| device.id == id)
    }

    /// The device of the queue with this id.
    pub fn device_of_queue(&self, queue: u32) -> Option<&Device> {
        self.device(self.queue(queue)?.device)
    }

    /// The process with this id.
    pub fn process(&self, id: u32) -> Option<&Process> {
        self.processes.iter().find(|process| process.id == id)
    }
}
