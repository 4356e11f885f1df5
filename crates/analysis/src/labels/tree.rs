//! Builds from a trace's table of labels a tree of their nesting, in which the work under each label is found. Labels
//! of the table with the same texts from the outermost label on are one node.

use super::origin::LabelOrigins;
use gapscope_trace::Trace;
use gapscope_trace::ids::LabelId;
use gapscope_trace::lookup::{IdIndex, NONE, label_path};
use gapscope_trace::tables::{HOST_CODE_DOMAINS, OPERATOR_DOMAIN, Table};
use std::collections::HashMap;

/// The labels of a trace in their nesting. Parents come before their children: the labels inside label `n` are `n +
/// 1..end(n)`. Labels of a framework's operators are left out, and their work belongs to the label around them.
#[derive(Debug, Default)]
pub struct LabelTree<'a> {
    /// The row of each label in the table.
    pub(super) ids: IdIndex<LabelId>,
    /// The node of each label, by the label's row in the table. An operator has the node of the label around it, or
    /// [`NONE`].
    pub(super) node_of_row: Vec<u32>,
    pub(super) nodes: Vec<Node<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) text: &'a str,
    /// The node of the label around it, or [`NONE`].
    pub(super) parent: u32,
    pub(super) depth: u32,
    /// The number after the last node inside it.
    pub(super) end: u32,
    /// True where the label is the path of a module and gapscope set it.
    pub(super) is_module: bool,
}

impl<'a> LabelTree<'a> {
    /// Builds the tree of a trace's labels.
    pub fn new(trace: &'a Trace) -> LabelTree<'a> {
        let rows = &trace.tables.labels;
        let ids = IdIndex::new(&rows.id);
        let origins = LabelOrigins::new(trace, &ids);
        let mut modules: Vec<bool> = Vec::new();
        let mut found: HashMap<(u32, &str), u32> = HashMap::new();
        let mut children: Vec<Vec<u32>> = Vec::new();
        let mut texts: Vec<&str> = Vec::new();
        let mut roots: Vec<u32> = Vec::new();
        let mut chain = Vec::new();
        let node_of_row: Vec<u32> = (0..rows.len())
            .map(|row| {
                chain.clear();
                chain.extend(rows.outwards(&ids, row));
                chain.retain(|row| !origins.is_operator(*row));
                let mut node = NONE;
                for row in chain.iter().rev() {
                    let text = &*rows.text[*row];
                    node = *found.entry((node, text)).or_insert_with(|| {
                        let fresh = texts.len() as u32;
                        texts.push(text);
                        modules.push(origins.is_module(*row));
                        children.push(Vec::new());
                        match children.get_mut(node as usize) {
                            Some(siblings) => siblings.push(fresh),
                            None => roots.push(fresh),
                        }
                        fresh
                    });
                }
                node
            })
            .collect();
        let mut tree = LabelTree {
            ids,
            node_of_row,
            nodes: Vec::with_capacity(texts.len()),
        };
        let mut place = vec![0; texts.len()];
        for root in roots {
            tree.place(root, NONE, 0, &texts, &children, &mut place);
        }
        for (node, is_module) in place.iter().zip(modules) {
            tree.nodes[*node as usize].is_module = is_module;
        }
        for node in &mut tree.node_of_row {
            *node = place.get(*node as usize).copied().unwrap_or(NONE);
        }
        tree
    }

    /// Puts a label and those inside it in order, behind the nodes so far: `texts` and `children` are by numbers in
    /// the order of finding, and `place` gets the new number of each. The recursion is as deep as labels nest, which
    /// is bounded.
    fn place(
        &mut self,
        node: u32,
        parent: u32,
        depth: u32,
        texts: &[&'a str],
        children: &[Vec<u32>],
        place: &mut [u32],
    ) {
        let at = self.nodes.len();
        place[node as usize] = at as u32;
        self.nodes.push(Node {
            text: texts[node as usize],
            parent,
            depth,
            end: 0,
            is_module: false,
        });
        for child in &children[node as usize] {
            self.place(*child, at as u32, depth + 1, texts, children, place);
        }
        self.nodes[at].end = self.nodes.len() as u32;
    }

    /// Returns the node of the label with an id, or [`NONE`].
    #[inline]
    pub fn node(&self, id: Option<LabelId>) -> u32 {
        self.node_of_row(id.map_or(NONE, |id| self.ids.row(id)))
    }

    /// Returns the node of the label in a row of the table, or [`NONE`].
    #[inline]
    pub fn node_of_row(&self, row: u32) -> u32 {
        self.node_of_row.get(row as usize).copied().unwrap_or(NONE)
    }

    /// Returns the number of nodes.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the text of a label.
    pub fn text(&self, node: usize) -> &'a str {
        self.nodes[node].text
    }

    /// Returns the node of the label around a label.
    pub fn parent(&self, node: usize) -> Option<usize> {
        (self.nodes[node].parent != NONE).then_some(self.nodes[node].parent as usize)
    }

    /// Returns the texts from the outermost label to the given label, joined by ` / `.
    pub fn path(&self, node: usize) -> String {
        let outwards = std::iter::successors(Some(node), |node| self.parent(*node));
        label_path(outwards.map(|node| self.text(node)))
    }

    /// Counts how often each label was set. Markers that tell about the host's code are no labels.
    pub fn instances(&self, trace: &Trace) -> Vec<u64> {
        let mut instances = vec![0; self.count()];
        let markers = &trace.tables.markers;
        let is_code = |domain| domain == OPERATOR_DOMAIN || HOST_CODE_DOMAINS.contains(&domain);
        let domains = markers.domain.distinct().iter();
        let is_code: Vec<bool> = domains
            .map(|domain| domain.as_deref().is_some_and(is_code))
            .collect();
        for (row, label) in markers.label.iter().enumerate() {
            let domain = markers.domain.number(row);
            if domain.is_some_and(|domain| is_code[domain as usize]) {
                continue;
            }
            if let Some(count) = instances.get_mut(self.node(Some(*label)) as usize) {
                *count += 1;
            }
        }
        instances
    }
}
