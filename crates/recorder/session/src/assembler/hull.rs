//! The interval that several spans cover together.

use gapscope_spool::event::Span;
use serde::{Deserialize, Serialize};

/// From the first start to the last end; empty without a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hull {
    edges: Option<Edges>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Edges {
    start_ns: i64,
    end_ns: i64,
}

impl Hull {
    /// Takes in a span.
    #[inline]
    pub fn add(&mut self, span: Span) {
        self.add_edges(Edges {
            start_ns: span.start_ns,
            end_ns: span.end_ns(),
        });
    }

    /// Takes in all of another.
    #[inline]
    pub fn join(&mut self, other: Hull) {
        if let Some(edges) = other.edges {
            self.add_edges(edges);
        }
    }

    #[inline]
    fn add_edges(&mut self, new: Edges) {
        self.edges = Some(self.edges.map_or(new, |known| Edges {
            start_ns: known.start_ns.min(new.start_ns),
            end_ns: known.end_ns.max(new.end_ns),
        }));
    }

    /// What it covers.
    pub fn span(&self) -> Option<Span> {
        let edges = self.edges?;
        Some(Span::between(edges.start_ns, edges.end_ns))
    }
}
