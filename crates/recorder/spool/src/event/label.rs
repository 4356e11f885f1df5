//! Labels: what the program says of its own work.

use crate::ids;
use gapscope_model::{MODULE_DOMAIN, OPERATOR_DOMAIN};
use serde::{Deserialize, Serialize};

/// Where a label is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LabelScope {
    /// On a queue: it covers what is submitted to it until its end.
    Queue(ids::Queue),
    /// On the writing thread.
    Thread,
    /// On the writing thread, in a domain (of NVTX): its labels nest among themselves only.
    Domain(ids::LabelDomain),
    /// On the process: it may end on another thread and overlap others in any way. At its end it has no text.
    Range {
        /// Its domain.
        domain: ids::LabelDomain,
        /// Tells ranges apart.
        range: ids::LabelRange,
    },
}

/// Labels that gapscope has set for a program that sets none, each in a domain of its own, so that they are told from the
/// program's and nest around and inside them: modules around operators, and the program's own labels between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// A module of the model, by its path.
    Module,
    /// An operator of the framework.
    Operator,
}

impl Layer {
    /// All, at the index that [`Self::index`] says.
    pub const ALL: [Layer; 2] = [Layer::Module, Layer::Operator];

    /// Its number: of the interface too.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its domain, whose name a hook writes before its first use as it does for every domain.
    pub fn domain(self) -> ids::LabelDomain {
        // Domains of NVTX are counted from 1.
        ids::LabelDomain(u32::MAX - self as u32)
    }

    /// The layer with a domain; none: a domain of the program.
    pub fn of(domain: ids::LabelDomain) -> Option<Layer> {
        Layer::ALL
            .into_iter()
            .find(|layer| layer.domain() == domain)
    }

    /// The name of its domain.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Module => MODULE_DOMAIN,
            Layer::Operator => OPERATOR_DOMAIN,
        }
    }
}

/// Which end of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum LabelEdge {
    Begin,
    End,
    Instant,
}

/// The value that a program gave a label.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Payload {
    /// A count.
    Unsigned(u64),
    /// A number.
    Signed(i64),
    /// A number with a fraction.
    Float(f64),
}
