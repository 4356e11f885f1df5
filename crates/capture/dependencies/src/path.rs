//! Finds the critical path of a [`Graph`]: the chain of dependent commands that takes longest, and so bounds the time
//! of the window however much runs in parallel. The window is the recorded stretch of the program.

use crate::graph::Graph;

/// The chain of dependent commands with the greatest length.
#[derive(Debug, Clone, PartialEq)]
pub struct CriticalPath {
    /// Indices of the chain's nodes, from the first to the last.
    pub nodes: Vec<usize>,
    /// Length of the chain: in nanoseconds if `timed`, else its number of nodes.
    pub length: u64,
    /// Sum of the lengths of all nodes of the graph.
    pub work: u64,
    /// Whether lengths are in nanoseconds, because the duration of every node is known. Otherwise each node counts 1.
    pub timed: bool,
}

impl CriticalPath {
    /// Returns how many nodes could run at the same time on average, if only dependencies kept them apart.
    pub fn parallelism(&self) -> Option<f64> {
        (self.length > 0).then(|| self.work as f64 / self.length as f64)
    }
}

impl Graph {
    /// Finds the longest chain; returns `None` if there is no node, or edges are missing.
    pub fn critical_path(&self) -> Option<CriticalPath> {
        if self.nodes.is_empty() || self.cut_at.is_some() {
            return None;
        }
        let timed = self.nodes.iter().all(|node| node.duration_ns.is_some());
        let weight = |node: usize| match timed {
            true => self.nodes[node].duration_ns.unwrap_or(0),
            false => 1,
        };
        let mut length: Vec<u64> = (0..self.nodes.len()).map(weight).collect();
        let mut before = vec![None; self.nodes.len()];
        // Edges are sorted by their later end, and lead forward only.
        for edge in &self.edges {
            let through = length[edge.from].saturating_add(weight(edge.to));
            if through > length[edge.to] {
                length[edge.to] = through;
                before[edge.to] = Some(edge.from);
            }
        }
        let last = (0..self.nodes.len())
            .rev()
            .max_by_key(|node| length[*node])?;
        let mut nodes = vec![last];
        let mut at = last;
        while let Some(earlier) = before[at] {
            nodes.push(earlier);
            at = earlier;
        }
        nodes.reverse();
        Some(CriticalPath {
            length: length[last],
            work: (0..self.nodes.len())
                .map(weight)
                .fold(0, u64::saturating_add),
            nodes,
            timed,
        })
    }
}
