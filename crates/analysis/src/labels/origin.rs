//! Tells for each label of a trace whether the program set it, or gapscope for a framework's module or operator. A
//! marker is a row that says when a label was set; its domain names who set it.

use gapscope_trace::Trace;
use gapscope_trace::ids::LabelId;
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::tables::{MODULE_DOMAIN, OPERATOR_DOMAIN};
use std::collections::HashMap;

/// The labels that gapscope has set for the modules and operators of a framework, by row of the table of labels.
#[derive(Debug, Default)]
pub(crate) struct LabelOrigins {
    /// The origin of each label by its row; `None` for labels of the program. Empty where gapscope has set no label.
    rows: Vec<Option<FrameworkLabel>>,
}

/// What a label of gapscope names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameworkLabel {
    Module,
    Operator,
}

impl LabelOrigins {
    /// Reads the domains of all markers. Labels without a marker have the origin of a label of the same text.
    pub(crate) fn new(trace: &Trace, ids: &IdIndex<LabelId>) -> LabelOrigins {
        let (labels, markers) = (&trace.tables.labels, &trace.tables.markers);
        let domains = markers.domain.distinct().iter();
        let is_own = |domain: &str| matches!(domain, MODULE_DOMAIN | OPERATOR_DOMAIN);
        if !domains.flatten().any(|domain| is_own(domain)) {
            return LabelOrigins { rows: Vec::new() };
        }
        let mut rows = Vec::new();
        let mut texts: HashMap<&str, FrameworkLabel> = HashMap::new();
        // The domain of a label's own marker decides.
        let mut has_marker = Vec::new();
        for (label, domain) in markers.label.iter().zip(&markers.domain) {
            let origin = match domain.as_deref() {
                Some(MODULE_DOMAIN) => Some(FrameworkLabel::Module),
                Some(OPERATOR_DOMAIN) => Some(FrameworkLabel::Operator),
                _ => None,
            };
            let Some(row) = ids.get(*label) else { continue };
            if origin.is_some() && rows.is_empty() {
                rows = vec![None; labels.id.len()];
                has_marker = vec![false; labels.id.len()];
            }
            if let Some(known) = rows.get_mut(row) {
                *known = origin;
                has_marker[row] = true;
                if let Some(origin) = origin {
                    texts.insert(&labels.text[row], origin);
                }
            }
        }
        // In the backward pass operators begin before the module that they are inside of, and work of graphs has labels that were set
        // elsewhere, while the graph was made: these labels have no marker.
        for ((known, has_marker), text) in rows.iter_mut().zip(has_marker).zip(&labels.text) {
            if !has_marker {
                *known = texts.get(&**text).copied();
            }
        }
        LabelOrigins { rows }
    }

    /// Returns true where gapscope has set no label.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns true for a label that is the path of a module.
    pub(crate) fn is_module(&self, row: usize) -> bool {
        self.rows.get(row) == Some(&Some(FrameworkLabel::Module))
    }

    /// Returns true for a label that is the name of an operator.
    pub(crate) fn is_operator(&self, row: usize) -> bool {
        self.rows.get(row) == Some(&Some(FrameworkLabel::Operator))
    }
}
