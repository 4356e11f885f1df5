//! Checks a comparison's figures against gates (limits on how much worse they may become): gates go in, a
//! [`GateResult`] for each comes out.

use super::changes::Comparison;
use super::gate::{Gate, GateOf, Limit};
use super::matching::Pair;
use super::options::Options;
use super::result::{GateResult, GateStatus};
use super::{names, sentences};

impl<'a> Comparison<'a> {
    /// Returns the result of each gate.
    pub fn gates(&self, gates: &[Gate], options: &Options) -> Vec<GateResult> {
        gates
            .iter()
            .map(|gate| self.gate(gate, gates.len(), options))
            .collect()
    }

    /// Judges one gate: it is broken if the figure grew beyond the limit and noise is ruled out, at a level that all
    /// gates share.
    fn gate(&self, gate: &Gate, gates: usize, options: &Options) -> GateResult {
        let estimate = match &gate.of {
            GateOf::Metric(metric) => Some(self.estimate(*metric)),
            GateOf::Kernel(name) => {
                let found = self.kernels(name);
                (!found.is_empty()).then(|| self.estimate_of(&found))
            }
        };
        let found = estimate.unwrap_or_default();
        let status = match found.before.zip(found.after) {
            None if options.allow_unknown => GateStatus::UnknownAllowed,
            None => GateStatus::Unknown,
            Some((before, after)) => {
                let ratio = found.ratio.unwrap_or(match before == after {
                    true => 1.0,
                    false => f64::INFINITY,
                });
                let beyond = match gate.limit {
                    Limit::Share(share) => ratio - 1.0 > share,
                    Limit::Absolute(by) => after - before > by,
                };
                let level = options.level / gates as f64;
                let certain = found.exact || found.p.is_some_and(|p| p <= level);
                match (beyond, certain) {
                    (false, _) => GateStatus::Held,
                    (true, true) => GateStatus::Broken,
                    (true, false) => GateStatus::Noise,
                }
            }
        };
        let known = estimate.is_some();
        GateResult {
            gate: gate.text.clone(),
            status,
            sentence: sentences::gate(gate, status, &found, known, self.evaluated.is_some()),
            before: found.before,
            after: found.after,
            unit: gate.of.unit(),
            ratio: found.ratio,
            low: found.low,
            high: found.high,
            p_noise: found.p,
        }
    }

    /// Returns the kernels of a name. Where there are none, it returns those whose names differ from it only in
    /// counters.
    fn kernels(&self, name: &str) -> Vec<&Pair<'a>> {
        let of = |same: &dyn Fn(&str) -> bool| -> Vec<&Pair<'a>> {
            let both = |pair: &&Pair| {
                pair.before
                    .iter()
                    .chain(&pair.after)
                    .any(|kernel| same(kernel.name))
            };
            self.pairs.iter().filter(both).collect()
        };
        let exact = of(&|other| other == name);
        if !exact.is_empty() {
            return exact;
        }
        let normal = names::normal_kernel(name);
        of(&|other| names::normal_kernel(other) == normal)
    }
}
