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
            let node = tree.node_of_row(timeline.dispatches.labels.at(work.row()));
            works.of_node[(node as usize).min(outside)] += 1;
            let at = places.find(timeline, work.row(), node, &mut works.kernels);
            works.kernels[at].push(work);
        });
        for untimed in &timeline.dispatches.untimed {
            let row = untimed.row as usize;
            let node = tree.node_of_row(timeline.dispatches.labels.at(row));
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
    found: Found,
}

/// Kernels of the digest by path and kernel; the last one is of dispatches of unknown kernels.
enum Found {
    /// A place for each, or [`NONE`].
    Dense(Vec<u32>),
    /// Of those that there are: all would take too much.
    Sparse(HashMap<usize, u32>),
}

/// Places of paths and kernels of which each has its own.
const MOST_DENSE: usize = 1 << 20;

impl Places {
    fn of(timeline: &Timeline, tree: &LabelTree) -> Places {
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
        let places = paths.len().saturating_mul(kernels_of(timeline));
        Places {
            paths,
            path_of_node,
            found: match places {
                0..=MOST_DENSE => Found::Dense(vec![NONE; places]),
                _ => Found::Sparse(HashMap::new()),
            },
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
        let kernel = kernel.unwrap_or(timeline.kernel_names.all().len());
        let node = (node as usize).min(self.path_of_node.len() - 1);
        let path = self.path_of_node[node] as usize;
        let place = path * kernels_of(timeline) + kernel;
        let at = match &mut self.found {
            Found::Dense(found) => &mut found[place],
            Found::Sparse(found) => found.entry(place).or_insert(NONE),
        };
        if *at == NONE {
            *at = kernels.len() as u32;
            let named = timeline.kernel_names.all().get(kernel);
            kernels.push(KernelDigest {
                name: named
                    .map_or("unknown kernel", |named| &named.name)
                    .to_owned(),
                path: self.paths[path].clone(),
                ..KernelDigest::default()
            });
        }
        *at as usize
    }
}

/// Kernels by name, and one for those that are unknown.
fn kernels_of(timeline: &Timeline) -> usize {
    timeline.kernel_names.all().len() + 1
}
