//! Gates: limits, given by the user, on how much worse a figure may become before a comparison fails. This module
//! parses them.

use super::metric::{Metric, Unit};
use gapscope_analysis::gaps::Cause;
use gapscope_timeline::similar::{join_or, similar};
use thiserror::Error;

/// A limit on a change, such as `gpu_time > 3%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// The gate as it was written.
    pub text: String,
    /// The figure that must not grow.
    pub of: GateOf,
    /// The growth that is allowed.
    pub limit: Limit,
}

/// The figure that a gate limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateOf {
    /// A figure of the whole run.
    Metric(Metric),
    /// The time of a kernel, under all labels.
    Kernel(String),
}

/// The growth of a figure that a gate allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// A share of the figure's value before.
    Share(f64),
    /// A number of nanoseconds, bytes or pieces for one evaluation (instance of the label around repeated work) where
    /// evaluations are known, else for a run.
    Absolute(f64),
}

/// The error of a gate that cannot be parsed, with the place of the fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the gate `{text}` cannot be read at column {column}: {flaw}")]
pub struct GateError {
    text: String,
    /// The place of the fault in characters, from 1.
    column: usize,
    flaw: Flaw,
}

/// What is wrong with a gate's text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum Flaw {
    #[error("write `METRIC > LIMIT`, such as `gpu_time > 3%`")]
    NoLimit,
    #[error("`{name}` is none of {}", meant_metric(name))]
    UnknownMetric { name: String },
    #[error("a limit begins with a number, such as `3%` or `5ms`")]
    NoNumber,
    #[error("behind the number of this limit stands {0}")]
    UnknownUnit(&'static str),
}

/// Returns the names of figures that gates can begin with.
pub fn gate_metrics() -> Vec<String> {
    let whole = Metric::WHOLE.into_iter().map(Metric::key);
    let of_parts = ["idle_time(CAUSE)", "kernel(\"NAME\")", "launches"];
    whole.chain(of_parts.map(str::to_owned)).collect()
}

/// Says which figures there are, or which of them a misspelt name may stand for.
fn meant_metric(name: &str) -> String {
    let known = gate_metrics();
    match similar(name, known.iter().map(String::as_str)).as_slice() {
        [] => known.join(", "),
        alike => format!("the figures: did you mean {}?", join_or(alike)),
    }
}

impl Gate {
    /// Parses a gate: `METRIC > LIMIT`, where the limit is a number, alone or with a per cent sign or a unit of time
    /// or size.
    ///
    /// # Errors
    ///
    /// Fails if the text is no gate. The error names the place of the fault, and what could stand there.
    pub fn parse(text: &str) -> Result<Gate, GateError> {
        let wrong = |at: usize, flaw| GateError {
            text: text.to_owned(),
            column: text[..at].chars().count() + 1,
            flaw,
        };
        // A kernel's name may have any sign in it.
        let quoted = text.rfind('"').map_or(0, |quote| quote + 1);
        let Some(sign) = text[quoted..].find('>').map(|at| at + quoted) else {
            return Err(wrong(text.len(), Flaw::NoLimit));
        };
        let name = text[..sign].trim();
        let of = GateOf::from_name(name).ok_or_else(|| {
            let at = text.len() - text.trim_start().len();
            let name = name.to_owned();
            wrong(at, Flaw::UnknownMetric { name })
        })?;
        let rest = &text[sign + 1..];
        let at = sign + 1 + rest.len() - rest.trim_start().len();
        let limit = limit(rest.trim(), of.unit()).map_err(|flaw| wrong(at, flaw))?;
        Ok(Gate {
            text: text.trim().to_owned(),
            of,
            limit,
        })
    }
}

impl GateOf {
    /// Returns the unit of the figure that the gate limits.
    pub fn unit(&self) -> Unit {
        match self {
            GateOf::Metric(metric) => metric.unit(),
            GateOf::Kernel(_) => Unit::Ns,
        }
    }

    /// Returns the figure of a gate's left side: `kernel(NAME)` with or without quotes, `idle_time(CAUSE)` or a
    /// metric.
    fn from_name(name: &str) -> Option<GateOf> {
        let argument = |function: &str| {
            let inside = name.strip_prefix(function)?.trim_start();
            let inside = inside.strip_prefix('(')?.strip_suffix(')')?.trim();
            let bare = inside
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            Some(bare.unwrap_or(inside)).filter(|inside| !inside.is_empty())
        };
        if let Some(kernel) = argument("kernel") {
            return Some(GateOf::Kernel(kernel.to_owned()));
        }
        if let Some(cause) = argument("idle_time") {
            let cause = Cause::ALL
                .into_iter()
                .find(|known| known.as_str() == cause)?;
            return Some(GateOf::Metric(Metric::IdleOf(cause)));
        }
        // On CUDA each launch is a submission of its own.
        let name = if name == "launches" {
            "submissions"
        } else {
            name
        };
        let metric = Metric::WHOLE
            .into_iter()
            .find(|metric| metric.key() == name)?;
        Some(GateOf::Metric(metric))
    }
}

/// Parses the right side of a gate, whose unit must fit the figure's.
fn limit(text: &str, unit: Unit) -> Result<Limit, Flaw> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let number: f64 = number.parse().map_err(|_| Flaw::NoNumber)?;
    let suffix = suffix.trim();
    if suffix == "%" {
        return Ok(Limit::Share(number / 100.0));
    }
    let (units, example): (&[(&str, f64)], _) = match unit {
        Unit::Ns => (
            &[
                ("ns", 1.0),
                ("us", 1e3),
                ("µs", 1e3),
                ("ms", 1e6),
                ("s", 1e9),
            ],
            "`%`, ns, us, ms or s",
        ),
        Unit::Bytes => (
            &[
                ("B", 1.0),
                ("KB", 1e3),
                ("MB", 1e6),
                ("GB", 1e9),
                ("KiB", 1024.0),
                ("MiB", 1_048_576.0),
                ("GiB", 1_073_741_824.0),
            ],
            "`%`, B, KB, MB, GB, KiB, MiB or GiB",
        ),
        Unit::Count => (&[("", 1.0)], "`%` or nothing"),
    };
    let factor = units.iter().find(|(name, _)| *name == suffix);
    match factor {
        Some((_, factor)) => Ok(Limit::Absolute(number * factor)),
        None => Err(Flaw::UnknownUnit(example)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read() {
        let reads = |text: &str, of: GateOf, limit: Limit| {
            let gate = Gate::parse(text).unwrap();
            assert_eq!((gate.of, gate.limit), (of, limit), "{text}");
        };
        let metric = GateOf::Metric;
        let host_late = metric(Metric::IdleOf(Cause::HostLate));
        let kernel = GateOf::Kernel("a > b".to_owned());
        reads("gpu_time > 3%", metric(Metric::GpuTime), Limit::Share(0.03));
        reads(
            "wall_time>5ms",
            metric(Metric::WallTime),
            Limit::Absolute(5e6),
        );
        reads(
            "idle_time(host-late) > 1.5 us",
            host_late,
            Limit::Absolute(1500.0),
        );
        reads("kernel(\"a > b\") > 2 %", kernel, Limit::Share(0.02));
        let bytes = Limit::Absolute(1_048_576.0);
        reads("memory_peak > 1MiB", metric(Metric::MemoryPeak), bytes);
        let launches = metric(Metric::Submissions);
        reads("launches > 0", launches, Limit::Absolute(0.0));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, part) in [
            ("gpu_time", "column 9"),
            ("gputime > 3%", "column 1"),
            ("gputime > 3%", "did you mean gpu_time?"),
            ("zebra > 3%", "gpu_time, "),
            ("gpu_time > x", "column 12"),
            ("gpu_time > 3 KiB", "ms or s"),
            ("dispatches > 3ms", "or nothing"),
            ("idle_time(nothing) > 3%", "idle_time(CAUSE)"),
        ] {
            let error = Gate::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
