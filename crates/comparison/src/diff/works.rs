//! Sums up the work of a run while going over it once: the times of kernels and their labels, and the times of the
//! whole run in blocks (sums of consecutive values, by which two runs are compared).

use super::names;
use super::parts::RunPlace;
use super::run::{Evaluations, KernelDigest};
use super::samples::Blocks;
use gapscope_analysis::labels::LabelTree;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::launch_size::{GroupThreads, LaunchSize};
use gapscope_timeline::{Timeline, Work, WorkKind};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{Kernels, Table};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The share of dispatches that must lie under a repeated label, so that its instances are evaluations, by which all
/// figures are divided (those of dispatches outside of the label, too).
const EVALUATED_SHARE: f64 = 0.98;

/// The sums of one pass over all work of a run.
pub(super) struct WorkTotals {
    pub kernels: Vec<KernelDigest>,
    /// The number of dispatches under each label; the last number counts dispatches without a label.
    dispatches_by_node: Vec<u64>,
    /// The time in which a GPU ran something, from one start of work to the next, in blocks.
    pub busy: Blocks,
    /// The whole time from one start to the next.
    pub wall: Blocks,
    /// The rest of it.
    pub idle: Blocks,
    /// The times of the transfers.
    pub transfers: Blocks,
    /// The workgroups and threads of all dispatches.
    pub size: LaunchSize,
    /// The end of the run, behind all dispatches with times.
    pub place: RunPlace,
}

impl WorkTotals {
    /// Passes over all work, then over the dispatches without times, which are only counted.
    pub fn new(timeline: &Timeline, tree: &LabelTree) -> WorkTotals {
        let mut index = KernelIndex::new(timeline, tree);
        let mut works = WorkTotals {
            kernels: Vec::new(),
            dispatches_by_node: vec![0; tree.count() + 1],
            busy: Blocks::default(),
            wall: Blocks::default(),
            idle: Blocks::default(),
            transfers: Blocks::default(),
            size: LaunchSize::default(),
            place: RunPlace::default(),
        };
        let group_threads = GroupThreads::new(&timeline.trace.tables.kernels);
        let outside = tree.count();
        let mut before: Option<Interval> = None;
        timeline.each_work(|work| {
            works.add_to_blocks(&mut before, work.interval);
            if work.kind() == WorkKind::Transfer {
                works.transfers.push(work.interval.length_ns() as f64);
            }
            if work.kind() != WorkKind::Dispatch {
                return;
            }
            let node = tree.node_of_row(timeline.dispatches.labels.at(work.row()));
            works.dispatches_by_node[(node as usize).min(outside)] += 1;
            let at = index.find(timeline, work.row(), node, &mut works.kernels);
            works.kernels[at].push(work, works.place);
            works.place.advance();
            works.kernels[at]
                .size
                .add(group_threads.launch(timeline, work.row()));
        });
        for untimed in &timeline.dispatches.untimed {
            let row = untimed.row as usize;
            let node = tree.node_of_row(timeline.dispatches.labels.at(row));
            works.dispatches_by_node[(node as usize).min(outside)] += 1;
            let at = index.find(timeline, row, node, &mut works.kernels);
            works.kernels[at].count += 1;
            works.kernels[at]
                .size
                .add(group_threads.launch(timeline, row));
        }
        for kernel in &mut works.kernels {
            works.size.add(kernel.size);
            kernel.parts.coarsen(works.place);
        }
        works
    }

    /// Adds the time from the start of one piece of work to the start of the next.
    fn add_to_blocks(&mut self, before: &mut Option<Interval>, next: Interval) {
        let Some(last) = before else {
            *before = Some(next);
            return;
        };
        let passed = next.start_ns - last.start_ns;
        let ran = (last.end_ns.min(next.start_ns) - last.start_ns).max(0);
        self.wall.push(passed as f64);
        self.busy.push(ran as f64);
        self.idle.push((passed - ran) as f64);
        *before = Some(Interval::new(next.start_ns, next.end_ns.max(last.end_ns)));
    }

    /// Returns the labels that were set at least twice and that enough dispatches lie under, the outermost first.
    pub fn evaluations(&self, timeline: &Timeline, tree: &LabelTree) -> Vec<Evaluations> {
        let all: u64 = self.dispatches_by_node.iter().sum();
        let set = tree.instances(timeline.trace);
        let mut inclusive = self.dispatches_by_node.clone();
        // Nodes of labels inside a label come after the label's node.
        for node in (0..tree.count()).rev() {
            if let Some(parent) = tree.parent(node) {
                inclusive[parent] += inclusive[node];
            }
        }
        let mut paths: BTreeMap<(usize, String), (u64, u64)> = BTreeMap::new();
        for node in 0..tree.count() {
            let path = names::normal_path(&tree.path(node));
            let depth = std::iter::successors(Some(node), |node| tree.parent(*node)).count();
            let (count, work) = paths.entry((depth, path)).or_default();
            *count += set[node];
            *work += inclusive[node];
        }
        let enough = |work: u64| work as f64 >= EVALUATED_SHARE * all as f64;
        (paths.into_iter())
            .filter(|(_, (count, work))| *count >= 2 && all > 0 && enough(*work))
            .map(|((_, path), (count, _))| Evaluations { path, count })
            .collect()
    }
}

impl KernelDigest {
    /// Adds a dispatch with its time.
    #[inline]
    fn push(&mut self, work: &Work, place: RunPlace) {
        let ns = work.interval.length_ns();
        self.count += 1;
        self.timed += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.blocks.push(ns as f64);
        self.lengths.push(ns);
        self.parts.push(place, ns as f64);
    }
}

/// Finds the kernel of the run's digest (what is kept of a run) that a dispatch belongs to.
struct KernelIndex {
    /// The label paths without numbers; the first is empty, for work without a label.
    paths: Vec<String>,
    /// The index of the path of each label; the last index is for work without a label.
    path_of_node: Vec<u32>,
    slots: KernelSlots,
    /// The codes of each kernel, in the order of the timeline's names.
    codes: Vec<BTreeSet<String>>,
}

/// The index of the digest's kernel for each pair of path and kernel. The last kernel of a path stands for unknown
/// kernels.
enum KernelSlots {
    /// A slot for each pair of path and kernel, which may be [`NONE`].
    Dense(Vec<u32>),
    /// The used slots only, since all would take too much memory.
    Sparse(HashMap<usize, u32>),
}

/// The maximum number of pairs of path and kernel for which each has a slot of its own.
const MAX_DENSE_SLOTS: usize = 1 << 20;

impl KernelIndex {
    /// Finds the path of each label; no kernel is known yet.
    fn new(timeline: &Timeline, tree: &LabelTree) -> KernelIndex {
        let mut known: HashMap<String, u32> = HashMap::from([(String::new(), 0)]);
        let mut paths = vec![String::new()];
        let mut path_of_node: Vec<u32> = (0..tree.count())
            .map(|node| {
                let path = names::normal_path(&tree.path(node));
                *known.entry(path).or_insert_with_key(|path| {
                    paths.push(path.clone());
                    paths.len() as u32 - 1
                })
            })
            .collect();
        path_of_node.push(0);
        let slots = paths.len().saturating_mul(kernel_count(timeline));
        KernelIndex {
            paths,
            path_of_node,
            slots: match slots {
                0..=MAX_DENSE_SLOTS => KernelSlots::Dense(vec![NONE; slots]),
                _ => KernelSlots::Sparse(HashMap::new()),
            },
            codes: codes(timeline),
        }
    }

    /// Returns the index in `kernels` of a dispatch's kernel under its label, and adds the kernel where it is new.
    #[inline]
    fn find(
        &mut self,
        timeline: &Timeline,
        row: usize,
        node: u32,
        kernels: &mut Vec<KernelDigest>,
    ) -> usize {
        let kernel = timeline.kernel_row(row);
        let kernel = kernel.and_then(|row| timeline.kernel_names.index_of_row(row));
        let kernel = kernel.unwrap_or(timeline.kernel_names.all().len());
        let node = (node as usize).min(self.path_of_node.len() - 1);
        let path = self.path_of_node[node] as usize;
        let slot = path * kernel_count(timeline) + kernel;
        let at = match &mut self.slots {
            KernelSlots::Dense(slots) => &mut slots[slot],
            KernelSlots::Sparse(slots) => slots.entry(slot).or_insert(NONE),
        };
        if *at == NONE {
            *at = kernels.len() as u32;
            let named = timeline.kernel_names.all().get(kernel);
            kernels.push(KernelDigest {
                name: named
                    .map_or("unknown kernel", |named| &named.name)
                    .to_owned(),
                path: self.paths[path].clone(),
                codes: self.codes.get(kernel).cloned().unwrap_or_default(),
                ..KernelDigest::default()
            });
        }
        *at as usize
    }
}

/// Returns the number of kernels that have different names, and one more for unknown kernels.
fn kernel_count(timeline: &Timeline) -> usize {
    timeline.kernel_names.all().len() + 1
}

/// Returns for each name of kernels what identifies their codes: the hash of the code, its function and its specialisation
/// constants. A set is empty where the hash of one is not known, or more codes share the name than it tells apart.
fn codes(timeline: &Timeline) -> Vec<BTreeSet<String>> {
    let names = &timeline.kernel_names;
    let table = &timeline.trace.tables.kernels;
    let mut codes: Vec<Option<BTreeSet<String>>> = names
        .all()
        .iter()
        .map(|named| (named.codes == 1).then(BTreeSet::new))
        .collect();
    for row in 0..table.len() {
        let Some(name) = names.index_of_row(row) else {
            continue;
        };
        codes[name] = codes[name].take().and_then(|mut codes| {
            codes.insert(code(table, row)?);
            Some(codes)
        });
    }
    codes.into_iter().map(Option::unwrap_or_default).collect()
}

/// Returns what identifies the code of the kernel in a row, where the hash of the code is known.
fn code(table: &Kernels, row: usize) -> Option<String> {
    let hash = table.source.get(row)?.as_deref()?;
    let entry_point = table.entry_point.get(row).and_then(|name| name.as_deref());
    let constants = table
        .specialisation
        .get(row)
        .and_then(|text| text.as_deref());
    let parts = [Some(hash), entry_point, constants];
    Some(parts.map(Option::unwrap_or_default).join("/"))
}
