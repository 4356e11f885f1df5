//! Folds the repeated modules of a model: `blocks.*.attn` for `blocks.0.attn`, `blocks.1.attn` and so on.
//!
//! Modules in one place whose paths differ only in numbers are folded where they have the same shape: they have the same modules
//! inside, by name. Numbered modules with nothing inside must also run the same kernels, since a list of modules of different
//! kinds has numbers too.
//!
//! An old node is one of the given tree, a new node one of the folded tree; the members of a new node are the old
//! ones folded into it.

use super::rows::{LabelRow, rows, sorted};
use super::tree::{LabelTree, Node};
use gapscope_timeline::Timeline;
use gapscope_trace::lookup::NONE;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

/// The GPU work under labels that differ only in the numbers of a model's modules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct FoldedLabel {
    /// The work of all of them. In path and text `*` stands for the numbers, or `[0-3]` where modules with other numbers have
    /// another shape.
    #[serde(flatten)]
    pub row: LabelRow,
    /// How many labels are in this row; 1 for a label that is not folded.
    pub layer_count: u64,
    /// Mean over these labels of the time in which at least one piece of a label's work ran; absent when one's is unknown.
    pub layer_mean_busy_ns: Option<f64>,
    /// The least of these times.
    pub layer_min_busy_ns: Option<i64>,
    /// The greatest.
    pub layer_max_busy_ns: Option<i64>,
}

/// Folds a tree whose rows are `unfolded`. Returns an empty list where nothing is folded.
pub(super) fn folded(
    timeline: &Timeline,
    tree: &LabelTree,
    unfolded: &[LabelRow],
) -> Vec<FoldedLabel> {
    if !tree.nodes.iter().any(|node| node.is_module) {
        return Vec::new();
    }
    let mut plan = FoldPlan::new(timeline, tree);
    let roots = (0..tree.count()).filter(|node| tree.parent(*node).is_none());
    plan.place(None, roots.collect());
    if plan.members.len() == tree.count() {
        return Vec::new();
    }
    let folded = plan.tree();
    let labels = rows(timeline, &folded);
    let labels = labels.into_iter().zip(&plan.members);
    let labels = labels.map(|(row, members)| with_layers(row, members, unfolded));
    sorted(&folded, labels.collect(), |label: &FoldedLabel| &label.row)
}

/// Adds to a row the figures of single labels. `unfolded` has the rows of the old nodes, `members` their indices.
fn with_layers(row: LabelRow, members: &[usize], unfolded: &[LabelRow]) -> FoldedLabel {
    let busy = members.iter().map(|node| unfolded[*node].inclusive.busy_ns);
    let busy: Option<Vec<i64>> = busy.collect();
    let busy = busy.unwrap_or_default();
    FoldedLabel {
        row,
        layer_count: members.len() as u64,
        layer_mean_busy_ns: (!busy.is_empty())
            .then(|| busy.iter().map(|ns| *ns as f64).sum::<f64>() / busy.len() as f64),
        layer_min_busy_ns: busy.iter().min().copied(),
        layer_max_busy_ns: busy.iter().max().copied(),
    }
}

/// The folded tree as it grows, parents before their children.
struct FoldPlan<'t> {
    tree: &'t LabelTree<'t>,
    /// The old nodes directly inside each old node.
    children: Vec<Vec<usize>>,
    /// The hash of each old node's shape: of what is inside it, by name, or of its kernels.
    shapes: Vec<u64>,
    texts: Vec<String>,
    /// For each new node: its parent, its depth and the end of the nodes inside it.
    places: Vec<(Option<usize>, u32, u32)>,
    /// For each new node: the old nodes that are folded into it.
    members: Vec<Vec<usize>>,
}

impl<'t> FoldPlan<'t> {
    fn new(timeline: &Timeline, tree: &'t LabelTree<'t>) -> FoldPlan<'t> {
        let mut children = vec![Vec::new(); tree.count()];
        for node in 0..tree.count() {
            if let Some(parent) = tree.parent(node) {
                children[parent].push(node);
            }
        }
        let is_numbered = |node: usize| {
            let around = tree.parent(node).map_or("", |parent| tree.text(parent));
            let (_, name) = name_in(tree.text(node), around);
            tree.nodes[node].is_module && name.split('.').any(is_number)
        };
        let mut kernels: Vec<Option<BTreeSet<u32>>> = (0..tree.count())
            .map(|node| (children[node].is_empty() && is_numbered(node)).then(BTreeSet::new))
            .collect();
        let dispatches = &timeline.dispatches;
        for (kernel, label) in dispatches.kernels.iter().zip(dispatches.labels.iter()) {
            let node = tree.node_of_row(label) as usize;
            if let Some(Some(kernels)) = kernels.get_mut(node) {
                kernels.insert(kernel);
            }
        }
        let mut shapes = vec![0; tree.count()];
        for node in (0..tree.count()).rev() {
            let inside = children[node].iter().map(|child| {
                let (_, name) = name_in(tree.text(*child), tree.text(node));
                (starred(name), shapes[*child])
            });
            let inside: BTreeSet<(String, u64)> = inside.collect();
            let mut hasher = DefaultHasher::new();
            (inside, &kernels[node]).hash(&mut hasher);
            shapes[node] = hasher.finish();
        }
        FoldPlan {
            tree,
            children,
            shapes,
            texts: Vec::new(),
            places: Vec::new(),
            members: Vec::new(),
        }
    }

    /// Puts nodes and everything inside them into the new tree. The recursion is as deep as labels nest, which is bounded.
    fn place(&mut self, parent: Option<usize>, nodes: Vec<usize>) {
        let depth = parent.map_or(0, |parent| self.places[parent].1 + 1);
        let around = parent.map_or(String::new(), |parent| self.texts[parent].clone());
        for (text, members) in self.merged(&around, nodes) {
            let at = self.texts.len();
            self.texts.push(text);
            self.places.push((parent, depth, 0));
            let inside = members.iter().flat_map(|node| &self.children[*node]);
            let inside = inside.copied().collect();
            self.members.push(members);
            self.place(Some(at), inside);
            self.places[at].2 = self.texts.len() as u32;
        }
    }

    /// Groups nodes in one place by their new texts, the keys of the result: `*` for the numbers where all of that
    /// name have one shape, otherwise the numbers of those with the same shape. `around` is the new text of the node
    /// around them.
    fn merged(&self, around: &str, nodes: Vec<usize>) -> BTreeMap<String, Vec<usize>> {
        // The names, by their common part and then by shape.
        let mut alike: HashMap<String, HashMap<u64, BTreeSet<&str>>> = HashMap::new();
        for node in &nodes {
            let name = self.name(*node).1;
            let shapes = alike.entry(starred(name)).or_default();
            shapes.entry(self.shapes[*node]).or_default().insert(name);
        }
        let mut merged: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for node in nodes {
            let (inside, name) = self.name(node);
            let star = starred(name);
            let shapes = &alike[&star];
            let names = &shapes[&self.shapes[node]];
            let text = if !self.tree.nodes[node].is_module || names.len() < 2 {
                name.to_owned()
            } else if shapes.len() == 1 {
                star
            } else {
                star.replacen('*', &numbers(names), 1)
            };
            let text = if inside {
                format!("{around}.{text}")
            } else {
                text
            };
            merged.entry(text).or_default().push(node);
        }
        merged
    }

    /// Returns whether a node lies inside the path of the module around it, then its name there.
    fn name(&self, node: usize) -> (bool, &'t str) {
        let around = self.tree.parent(node).map_or("", |n| self.tree.text(n));
        name_in(self.tree.text(node), around)
    }

    /// Returns the folded tree, with the same labels in it.
    fn tree(&self) -> LabelTree<'_> {
        let mut new_of = vec![0; self.tree.count()];
        for (new, members) in self.members.iter().enumerate() {
            for node in members {
                new_of[*node] = new as u32;
            }
        }
        let places = self.places.iter().zip(&self.texts).zip(&self.members);
        LabelTree {
            ids: self.tree.ids.clone(),
            node_of_row: (self.tree.node_of_row.iter())
                .map(|node| new_of.get(*node as usize).copied().unwrap_or(*node))
                .collect(),
            nodes: places
                .map(|(((parent, depth, end), text), members)| Node {
                    text,
                    parent: parent.map_or(NONE, |parent| parent as u32),
                    depth: *depth,
                    end: *end,
                    is_module: self.tree.nodes[members[0]].is_module,
                })
                .collect(),
        }
    }
}

/// Returns whether a module lies inside the path around it, then its name there, such as `attn` of `blocks.3.attn` in
/// `blocks.3`, or its whole text where it lies elsewhere.
fn name_in<'a>(text: &'a str, around: &str) -> (bool, &'a str) {
    let inside = text
        .strip_prefix(around)
        .and_then(|rest| rest.strip_prefix('.'));
    match inside {
        Some(name) if !around.is_empty() => (true, name),
        _ => (false, text),
    }
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a name with `*` for its numbers.
fn starred(name: &str) -> String {
    let parts: Vec<&str> = name
        .split('.')
        .map(|part| if is_number(part) { "*" } else { part })
        .collect();
    parts.join(".")
}

/// Returns the first numbers of names, as `[0-3,7]`.
fn numbers(names: &BTreeSet<&str>) -> String {
    let first = names
        .iter()
        .filter_map(|name| name.split('.').find(|part| is_number(part)));
    let numbers: BTreeSet<u64> = first.filter_map(|number| number.parse().ok()).collect();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let ranges = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    format!("[{}]", ranges.collect::<Vec<_>>().join(","))
}
