//! One pass over all work of a run: what its kernels took, and under which labels.

use super::digest::{Evaluations, KernelDigest};
use super::names;
use super::samples::Blocks;
use crate::intervals::Interval;
use crate::labels::LabelTree;
use crate::timeline::{Timeline, Work, WorkKind};
use gapscope_trace::lookup::NONE;
use std::collections::{BTreeMap, HashMap};

/// The share of dispatches that must lie under a label whose instances are evaluations: what lies outside is divided by their number, too.
const EVALUATED_SHARE: f64 = 0.98;

/// What one pass over all work gives.
pub(super) struct Works {
    pub kernels: Vec<KernelDigest>,
    /// Dispatches by label.
    of_node: Vec<u64>,
    pub busy: Blocks,
    pub wall: Blocks,
    pub idle: Blocks,
}

impl Works {
    pub fn of(timeline: &Timeline, tree: &LabelTree) -> Works {
        let mut places = Places::of(timeline, tree);
        let mut works = Works {
            kernels: Vec::new(),
            of_node: vec![0; tree.len() + 1],
            busy: Blocks::default(),
            wall: Blocks::default(),
            idle: Blocks::default(),
        };
        let outside = tree.len();
        let mut before: Option<Interval> = None;
        timeline.each_work(|work| {
            works.add_to_blocks(&mut before, work.interval);
            if work.kind() != WorkKind::Dispatch {
                return;
            }
            let node = tree.node_of_row(timeline.dispatches.labels[work.row()]);
            works.of_node[(node as usize).min(outside)] += 1;
            let at = places.find(timeline, work.row(), node, &mut works.kernels);
            works.kernels[at].push(work);
        });
        for untimed in &timeline.dispatches.untimed {
            let row = untimed.row as usize;
            let node = tree.node_of_row(timeline.dispatches.labels[row]);
            works.of_node[(node as usize).min(outside)] += 1;
            let at = places.find(timeline, row, node, &mut works.kernels);
            works.kernels[at].count += 1;
        }
        works
    }

    /// Adds what passes from the start of one piece of work to that of the next.
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

    pub fn evaluations(&self, timeline: &Timeline, tree: &LabelTree) -> Vec<Evaluations> {
        let all: u64 = self.of_node.iter().sum();
        let set = tree.instances(timeline.trace);
        let mut inclusive = self.of_node.clone();
        // Labels inside a label come after it.
        for node in (0..tree.len()).rev() {
            if let Some(parent) = tree.parent(node) {
                inclusive[parent] += inclusive[node];
            }
        }
        let mut paths: BTreeMap<(usize, String), (u64, u64)> = BTreeMap::new();
        for node in 0..tree.len() {
            let path = names::of_path(&tree.path(node));
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
    #[inline]
    fn push(&mut self, work: &Work) {
        let ns = work.interval.length_ns();
        self.count += 1;
        self.timed += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.blocks.push(ns as f64);
        self.lengths.push(ns);
    }
}

/// Which kernel of the digest a dispatch belongs to.
struct Places {
    paths: Vec<String>,
    /// By label; the last one is of work without.
    path_of_node: Vec<u32>,
    found: HashMap<(u32, u32), u32>,
    last: Option<((u32, u32), u32)>,
}

impl Places {
    fn of(_timeline: &Timeline, tree: &LabelTree) -> Places {
        let mut known: HashMap<String, u32> = HashMap::from([(String::new(), 0)]);
        let mut paths = vec![String::new()];
        let mut path_of_node: Vec<u32> = (0..tree.len())
            .map(|node| {
                let path = names::of_path(&tree.path(node));
                *known.entry(path).or_insert_with_key(|path| {
                    paths.push(path.clone());
                    paths.len() as u32 - 1
                })
            })
            .collect();
        path_of_node.push(0);
        Places {
            paths,
            path_of_node,
            found: HashMap::new(),
            last: None,
        }
    }

    #[inline]
    fn find(
        &mut self,
        timeline: &Timeline,
        row: usize,
        node: u32,
        kernels: &mut Vec<KernelDigest>,
    ) -> usize {
        let kernel = timeline.kernel_row(row);
        let kernel = kernel.and_then(|row| timeline.kernel_names.of_row(row));
        let kernel = kernel.map_or(NONE, |kernel| kernel as u32);
        let node = (node as usize).min(self.path_of_node.len() - 1);
        let key = (kernel, self.path_of_node[node]);
        if let Some((last, at)) = self.last
            && last == key
        {
            return at as usize;
        }
        let at = *self.found.entry(key).or_insert_with(|| {
            let named = timeline.kernel_names.all().get(kernel as usize);
            kernels.push(KernelDigest {
                name: named
                    .map_or("unknown kernel", |named| &named.name)
                    .to_owned(),
                path: self.paths[key.1 as usize].clone(),
                ..KernelDigest::default()
            });
            kernels.len() as u32 - 1
        });
        self.last = Some((key, at));
        at as usize
    }
}
