//! Checks a comparison's figures against gates (limits on how much worse they may become): gates go in, a
//! [`GateResult`] for each comes out.

use super::changes::Comparison;
use super::estimate::Estimate;
use super::gate::{Gate, GateOf, Limit};
use super::matching::Pair;
use super::options::Options;
use super::result::{GateResult, GateStatus};
use super::words::unknown_sides;
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
    /// gates share. It holds if the interval is within the limit, or a change beyond the limit would have shown.
    fn gate(&self, gate: &Gate, gates: usize, options: &Options) -> GateResult {
        let estimate = match &gate.of {
            GateOf::Metric(metric) => Some(self.estimate(*metric)),
            GateOf::Kernel(name) => {
                let found = self.kernels(name);
                (!found.is_empty()).then(|| self.estimate_of(&found))
            }
        };
        let has_figure = estimate.is_some();
        let estimate = estimate.unwrap_or_default();
        let level = options.level / gates as f64;
        let least_ratio = estimate.least_ratio(level);
        let figures = (estimate.before.zip(estimate.after)).filter(|_| estimate.is_known());
        let status = match figures {
            None if options.allow_unknown => GateStatus::UnknownAllowed,
            None => GateStatus::Unknown,
            Some((before, after)) => status(gate.limit, &estimate, [before, after], level),
        };
        let sides = [(estimate.before, 0), (estimate.after, 1)];
        let unknown =
            unknown_sides(sides.map(|(figure, side)| figure.filter(|_| !estimate.at_least[side])));
        let unknown = match estimate.is_known() || estimate.at_least == [false; 2] {
            true => unknown.to_owned(),
            false => format!("{unknown}, as some of the work was not recorded"),
        };
        let sentence = match (figures, &gate.of) {
            (None, GateOf::Kernel(name)) if !has_figure => format!("no kernel is called `{name}`."),
            (None, GateOf::Kernel(name)) => {
                format!("the times of `{name}` are not known {unknown}.")
            }
            (None, GateOf::Metric(metric)) => format!("{} is not known {unknown}.", metric.key()),
            (Some(figures), _) => {
                let per_evaluation = self.evaluated.is_some();
                sentences::gate(
                    gate,
                    status,
                    &estimate,
                    figures,
                    (least_ratio, per_evaluation),
                )
            }
        };
        GateResult {
            gate: gate.text.clone(),
            status,
            sentence,
            before: estimate.before,
            after: estimate.after,
            unit: gate.of.unit(),
            ratio: estimate.ratio,
            low: estimate.low,
            high: estimate.high,
            p_noise: estimate.p,
            least_ratio_told: least_ratio,
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

/// Judges a figure that is known on both sides against a limit, at a level of noise.
fn status(limit: Limit, estimate: &Estimate, [before, after]: [f64; 2], level: f64) -> GateStatus {
    let ratio = estimate.ratio.unwrap_or(match before == after {
        true => 1.0,
        false => f64::INFINITY,
    });
    let beyond = match limit {
        Limit::Share(share) => ratio - 1.0 > share,
        Limit::Absolute(by) => after - before > by,
    };
    // Equal times of two runs may be equal by chance.
    if estimate.exact || (before == after && estimate.noise.is_none()) {
        return match beyond {
            true => GateStatus::Broken,
            false => GateStatus::Held,
        };
    }
    // The ratio from which on the limit is exceeded. Parts of nothing are absolute.
    let limit_ratio = match limit {
        Limit::Share(share) => 1.0 + share,
        Limit::Absolute(by) if before > 0.0 => 1.0 + by / before,
        Limit::Absolute(by) => 1.0 + by,
    };
    let is_certain = estimate.p.is_some_and(|p| p <= level);
    let is_within = estimate.high.is_some_and(|high| high <= limit_ratio);
    let would_show = (estimate.noise).is_some_and(|noise| noise.least_ratio(level) <= limit_ratio);
    match beyond {
        true if is_certain => GateStatus::Broken,
        true => GateStatus::Noise,
        false if is_within || would_show => GateStatus::Held,
        false => GateStatus::Undecided,
    }
}
