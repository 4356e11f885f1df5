//! Finds ranks that are unlike the others: in what their device computed, idled or waited, and in single kernels.
//!
//! A figure of a rank is compared with the median over all ranks that have it. It is an outlier where it is off by more than
//! [`OUTLIER_SHARE`] of the median and by more than [`OUTLIER_SPREADS`] times the usual spread (the median distance from the median, times
//! 1.4826, which for normal noise is a standard deviation), and costs at least [`ADVICE_SHARE`] of the rank's judged time. Where more than
//! [`OUTLIER_MOST`] of the ranks are off, none is an outlier. So a few slow ranks do not hide each other, and ranks that differ by their
//! nature, such as the stages of a pipeline, widen the spread and give none.
//!
//! Ranks that are unlike in the same figure are one outlier. All figures are lengths of time: no two ranks' clocks are compared.
//!
//! What this cannot know: whether a rank has more to do. Kernels are compared by their mean, so that more runs make none slow, but larger
//! inputs do.

use super::digest::RankDigest;
use super::pipelines::Pipelines;
use gapscope_timeline::quantity::{Nanoseconds, Percent, ratio};
use gapscope_timeline::rank_list::named;
use gapscope_timeline::thresholds::{
    ADVICE_SHARE, FEW_RANKS, OUTLIER_MOST, OUTLIER_SHARE, OUTLIER_SPREADS,
};
use gapscope_timeline::vocabulary::capitalized;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Ranks that are unlike the others in one figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Outlier {
    /// The figure.
    pub what: Unlike,
    /// The kernel, where the figure is the mean time of one.
    pub kernel: Option<String>,
    /// The numbers of the ranks.
    pub ranks: Vec<u32>,
    /// The machine, where the ranks are all ranks of one. Absent where machines are not known, too.
    pub machine: Option<String>,
    /// The median of the ranks' figures.
    pub value_ns: i64,
    /// The median over all ranks.
    pub usual_ns: i64,
    /// The ranks' median over that of all.
    pub ratio: f64,
    /// The time that it costs the worst of the ranks over the recording.
    pub cost_ns: i64,
    /// The outlier in one sentence.
    pub sentence: String,
}

/// A figure that ranks are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unlike {
    /// Time in which a device ran something that is no collective: longer.
    Computes,
    /// Idle time: longer.
    Idles,
    /// Time in collectives: shorter, as the others wait there for it.
    Awaited,
    /// The mean time of a kernel: longer.
    Kernel,
}

/// The value of one figure of a rank.
#[derive(Debug, Clone, Copy)]
struct Value {
    /// The index of the rank.
    rank: usize,
    ns: i64,
    /// The number of times that the value counts.
    times: i64,
}

/// Returns the outliers among all ranks, the most costly first.
pub(super) fn outliers(ranks: &[&RankDigest], pipelines: &Pipelines) -> Vec<Outlier> {
    let mut outliers = Vec::new();
    let values = |figure: &dyn Fn(&RankDigest) -> Option<i64>| -> Vec<Value> {
        let each = ranks.iter().enumerate();
        each.filter_map(|(rank, digest)| {
            let ns = figure(digest)?;
            Some(Value { rank, ns, times: 1 })
        })
        .collect()
    };
    // How long a stage of a pipeline waits, idle or in a receive, depends on its place.
    let outside = |mut values: Vec<Value>| {
        values.retain(|value| !pipelines.has(value.rank));
        values
    };
    let computed = |digest: &RankDigest| {
        let (busy_ns, collective_ns) = (digest.row.gpu_busy_ns?, digest.row.collective_ns?);
        Some(busy_ns.saturating_sub(collective_ns))
    };
    outliers.extend(unlike(ranks, Unlike::Computes, None, &values(&computed)));
    let idle = |digest: &RankDigest| Some(digest.row.idle?.total_ns);
    outliers.extend(unlike(ranks, Unlike::Idles, None, &outside(values(&idle))));
    // Ranks that take part in other collectives wait in others.
    let count = |digest: &RankDigest| digest.row.collective_count.map(|count| count as i64);
    let usual_count = median(ranks.iter().filter_map(|rank| count(rank)));
    let usual = |digest: &RankDigest| count(digest) == usual_count;
    let collective = |digest: &RankDigest| {
        let ns = digest.row.collective_ns.filter(|ns| *ns > 0);
        ns.filter(|_| usual(digest))
    };
    outliers.extend(unlike(
        ranks,
        Unlike::Awaited,
        None,
        &outside(values(&collective)),
    ));
    let mut kernels: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (rank, digest) in ranks.iter().enumerate() {
        for (name, (count, total_ns)) in &digest.kernels {
            let times = i64::try_from(*count).unwrap_or(i64::MAX).max(1);
            let ns = total_ns / times;
            let values = kernels.entry(name).or_default();
            values.push(Value { rank, ns, times });
        }
    }
    for (name, values) in kernels {
        let mut slow = unlike(ranks, Unlike::Kernel, Some(name), &values);
        // A device that is slow at everything is mentioned once.
        slow.retain(|slow| !outliers.iter().any(|other| explains(other, slow)));
        outliers.extend(slow);
    }
    outliers.sort_by_key(|outlier| Reverse(outlier.cost_ns));
    outliers
}

/// Returns true if the same ranks compute for longer by at least about as much.
fn explains(other: &Outlier, slow: &Outlier) -> bool {
    other.what == Unlike::Computes
        && slow.ranks.iter().all(|rank| other.ranks.contains(rank))
        && slow.ratio - 1.0 <= 1.5 * (other.ratio - 1.0)
}

/// Returns the outliers of one figure by the rule above, machine by machine; none with too few ranks to compare.
fn unlike(
    ranks: &[&RankDigest],
    what: Unlike,
    kernel: Option<&str>,
    values: &[Value],
) -> Vec<Outlier> {
    let usual_ns = median(values.iter().map(|value| value.ns));
    let (Some(usual_ns), FEW_RANKS..) = (usual_ns, values.len() as u64) else {
        return Vec::new();
    };
    let off = values.iter().map(|value| (value.ns - usual_ns).abs());
    let spread_ns = median(off).unwrap_or(0) as f64 * 1.4826;
    let sign = if what == Unlike::Awaited { -1 } else { 1 };
    let least_ns = (OUTLIER_SPREADS * spread_ns).max(OUTLIER_SHARE * usual_ns as f64);
    let off_ns = |value: &Value| sign * (value.ns - usual_ns);
    let cost_ns = |value: &Value| off_ns(value).saturating_mul(value.times);
    let is_far = |value: &&Value| {
        let window_ns = ranks[value.rank].row.idle.map_or(0, |idle| idle.window_ns);
        off_ns(value) > 0
            && off_ns(value) as f64 > least_ns
            && cost_ns(value) as f64 >= ADVICE_SHARE * window_ns as f64
    };
    let far: Vec<&Value> = values.iter().filter(is_far).collect();
    if far.len() as f64 > OUTLIER_MOST * values.len() as f64 {
        return Vec::new();
    }
    let groups = machines(ranks, far).into_iter();
    let each = groups.filter_map(|(machine, group)| {
        let value_ns = median(group.iter().map(|value| value.ns))?;
        let mut ranks: Vec<u32> = group.iter().map(|v| ranks[v.rank].row.rank).collect();
        ranks.sort_unstable();
        let mut outlier = Outlier {
            what,
            kernel: kernel.map(str::to_owned),
            machine,
            ranks,
            value_ns,
            usual_ns,
            ratio: ratio(value_ns, usual_ns),
            cost_ns: group.iter().map(|value| cost_ns(value)).max()?,
            sentence: String::new(),
        };
        outlier.sentence = sentence(&outlier);
        Some(outlier)
    });
    each.collect()
}

/// Groups far values by machines of which all ranks are far, with the rest in one group.
fn machines<'a>(
    ranks: &[&RankDigest],
    far: Vec<&'a Value>,
) -> Vec<(Option<String>, Vec<&'a Value>)> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for rank in ranks {
        if let Some(machine) = &rank.row.machine {
            *sizes.entry(machine).or_default() += 1;
        }
    }
    let mut groups: BTreeMap<Option<&str>, Vec<&Value>> = BTreeMap::new();
    for value in far {
        let machine = ranks[value.rank].row.machine.as_deref();
        groups.entry(machine).or_default().push(value);
    }
    let (mut whole, mut rest) = (Vec::new(), Vec::new());
    for (machine, mut group) in groups {
        match machine.and_then(|machine| sizes.get(machine)) {
            Some(size) if *size == group.len() && *size > 1 && sizes.len() > 1 => {
                whole.push((machine.map(str::to_owned), group));
            }
            _ => rest.append(&mut group),
        }
    }
    whole.push((None, rest));
    whole
}

/// Returns the median, of an even number of values the lower middle one.
fn median(values: impl Iterator<Item = i64>) -> Option<i64> {
    let mut values: Vec<i64> = values.collect();
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// Returns the sentence about an outlier.
fn sentence(outlier: &Outlier) -> String {
    let who = who(outlier);
    let one = outlier.ranks.len() == 1;
    let s = if one { "s" } else { "" };
    let usual = Nanoseconds(outlier.usual_ns);
    let value = Nanoseconds(outlier.value_ns);
    let more = Percent((outlier.ratio - 1.0).abs());
    let text = match outlier.what {
        Unlike::Computes => {
            let gpus = if one { "GPU" } else { "GPUs" };
            let work = if one { "works" } else { "work" };
            format!(
                "the {gpus} of {who} {work} for {more} longer than the median rank's outside of collectives ({value} instead of {usual})."
            )
        }
        Unlike::Idles => {
            let are = if one { "is" } else { "are" };
            format!("{who} {are} idle for {value}, the median rank for {usual}.")
        }
        Unlike::Awaited => {
            let (are, it) = if one { ("is", "it") } else { ("are", "them") };
            format!(
                "{who} {are} in collectives for {value} only, the median rank for {usual}: the others wait there for {it}."
            )
        }
        Unlike::Kernel => format!(
            "{who} take{s} {:.2} times as long for {} ({value} instead of {usual} each).",
            outlier.ratio,
            outlier.kernel.as_deref().unwrap_or("a kernel"),
        ),
    };
    capitalized(&text)
}

/// Returns the text for an outlier's ranks.
fn who(outlier: &Outlier) -> String {
    let all_of_one = outlier.machine.is_some() && outlier.ranks.len() > 1;
    let machine = if all_of_one {
        ", all of one machine,"
    } else {
        ""
    };
    format!("{}{machine}", named(&outlier.ranks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::{Idle, RankRow};

    fn rank(number: u32, busy_ns: i64, gemm_ns: i64) -> RankDigest {
        let row = RankRow {
            rank: number,
            machine: Some(format!("m{}", number / 4)),
            gpu_busy_ns: Some(busy_ns),
            collective_ns: Some(1_000),
            idle: Some(Idle {
                window_ns: 1_000_000,
                total_ns: 1_000,
                ..Idle::default()
            }),
            ..RankRow::default()
        };
        RankDigest {
            kernels: BTreeMap::from([("gemm".to_owned(), (10, 10 * gemm_ns))]),
            ..RankDigest::for_tests(row)
        }
    }

    fn outliers_of(digests: &[RankDigest]) -> Vec<(Unlike, Vec<u32>, Option<String>)> {
        let digests: Vec<&RankDigest> = digests.iter().collect();
        let outliers = outliers(&digests, &Pipelines::default()).into_iter();
        let facts = outliers.map(|outlier| (outlier.what, outlier.ranks, outlier.machine));
        facts.collect()
    }

    #[test]
    fn a_slow_machine_and_a_slow_kernel_are_found_and_noise_is_not() {
        let noisy = |number: u32| 800_000 + i64::from(number * 37 % 16) * 1_000;
        let noisy = |number| rank(number, noisy(number), 40_000);
        let mut ranks: Vec<RankDigest> = (0..16).map(noisy).collect();
        assert_eq!(outliers_of(&ranks), []);
        for slow in 4..8 {
            ranks[slow as usize] = rank(slow, 950_000, 44_000);
        }
        ranks[11] = rank(11, 800_000, 90_000);
        assert_eq!(
            outliers_of(&ranks),
            [
                (Unlike::Kernel, vec![11], None),
                (Unlike::Computes, vec![4, 5, 6, 7], Some("m1".to_owned())),
            ]
        );
        // Three ranks are too few to say which one is unlike.
        assert_eq!(outliers_of(&ranks[4..7]), []);
    }

    #[test]
    fn halves_that_differ_are_no_outliers() {
        let ranks: Vec<RankDigest> = (0..16)
            .map(|number| rank(number, if number < 8 { 300_000 } else { 900_000 }, 1_000))
            .collect();
        assert_eq!(outliers_of(&ranks), []);
    }
}
