//! Labels: texts by which a program, or gapscope for it, describes what its work is for. The types say where a
//! label applies and which end of it an event marks.

use crate::ids;
use gapscope_model::{MODULE_DOMAIN, OPERATOR_DOMAIN};
use serde::{Deserialize, Serialize};

/// The place to which a label applies: a queue, a thread, a domain on a thread, or the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LabelScope {
    /// On a queue: it covers everything submitted to the queue until its end.
    Queue(ids::Queue),
    /// On the writing thread.
    Thread,
    /// On the writing thread, in a domain (of NVTX) whose labels nest only among themselves.
    Domain(ids::LabelDomain),
    /// On the process: it may end on another thread and overlap others in any way. Its end has no text.
    Range {
        /// The domain.
        domain: ids::LabelDomain,
        /// Tells ranges apart.
        range: ids::LabelRange,
    },
}

/// The kinds of labels that gapscope injects into a program without labels. Each kind has its own domain, which tells
/// it from the program's labels; modules nest around operators, and the program's own labels between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// A module of the model, by its path.
    Module,
    /// An operator of the framework.
    Operator,
}

impl Layer {
    /// All kinds, at the position of [`Self::index`].
    pub const ALL: [Layer; 2] = [Layer::Module, Layer::Operator];

    /// Returns the number, by which the functions of `crate::interface` name the kind, too.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the domain. A hook writes its name before the first use, as for every domain.
    pub fn domain(self) -> ids::LabelDomain {
        // Domains of NVTX are counted from 1.
        ids::LabelDomain(u32::MAX - self as u32)
    }

    /// Returns the kind with a domain; `None` for a domain of the program.
    pub fn with_domain(domain: ids::LabelDomain) -> Option<Layer> {
        Layer::ALL
            .into_iter()
            .find(|layer| layer.domain() == domain)
    }

    /// Returns the name of the domain.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Module => MODULE_DOMAIN,
            Layer::Operator => OPERATOR_DOMAIN,
        }
    }
}

/// The part of a label that an event marks: its begin, its end, or all of a label without a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum LabelEdge {
    Begin,
    End,
    Instant,
}

/// A number that a program attached to a label.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Payload {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
}
