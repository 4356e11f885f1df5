//! Writes the sentences of a report that say what a comparison of equal work means. "Before" and "after" are the two
//! sides; an evaluation is one instance of a side's label. Each function returns `None` where there is nothing to
//! say.

use super::comparison::{Basis, CopyEvidence, Ratio, WorkComparison};
use super::difference::{Difference, difference};
use super::figure::Figure;
use super::unknown;
use super::work_cost::{Reason, WorkCost};
use crate::launch_sizes::SizeEvidence;
use crate::samples::{MedianRatio, Spread};
use gapscope_timeline::quantity::{self, Bytes, Percent, duration_f64, listed};
use gapscope_timeline::thresholds::{DRIFT_PART, LEAST_EVALUATIONS};
use gapscope_timeline::vocabulary::Words;

/// Returns all sentences, the most important first. Where the sides did different work there are only the basis and
/// the untimed work.
pub(super) fn sentences(comparison: &WorkComparison) -> Vec<String> {
    let writer = SentenceWriter::new(comparison);
    let mut sentences = Vec::new();
    sentences.extend(writer.basis());
    if comparison.basis.is_unlike() {
        for work in [&comparison.before, &comparison.after] {
            sentences.extend(untimed(work));
        }
        return sentences;
    }
    sentences.extend(writer.few_kernels());
    sentences.extend(writer.sizes());
    sentences.push(writer.gpu_time());
    sentences.extend(writer.pace());
    sentences.extend(writer.counts());
    sentences.extend(writer.bytes());
    sentences.extend(writer.empty_space());
    for work in [&comparison.before, &comparison.after] {
        sentences.extend(writer.unsteady(work));
        sentences.extend(left_out(work));
        sentences.extend(untimed(work));
    }
    sentences.extend(writer.chance());
    sentences.extend(unknown::sentence(comparison));
    sentences
}

/// Writes the sentences of one comparison.
struct SentenceWriter<'a> {
    comparison: &'a WorkComparison,
    before: &'a str,
    after: &'a str,
    /// The words of the API of both sides, or neutral ones where they differ.
    words: Words,
}

impl<'a> SentenceWriter<'a> {
    fn new(comparison: &'a WorkComparison) -> SentenceWriter<'a> {
        let WorkComparison { before, after, .. } = comparison;
        SentenceWriter {
            comparison,
            before: &before.name,
            after: &after.name,
            words: Words::common([before.api, after.api]),
        }
    }

    fn ratio(&self, figure: Figure) -> Option<&'a Ratio> {
        let ratios = &self.comparison.ratios;
        ratios.iter().find(|ratio| ratio.figure == figure)
    }

    /// Returns a sentence on the basis for which the work is taken as equal; `None` where the labels are that basis.
    fn basis(&self) -> Option<String> {
        let SentenceWriter { before, after, .. } = self;
        let WorkComparison {
            before: a,
            after: b,
            ..
        } = self.comparison;
        match self.comparison.basis {
            Basis::Labels if a.by_command_buffers || b.by_command_buffers => Some(
                "An evaluation is a command buffer with the label here: compare only what takes equally many of them.".to_owned(),
            ),
            Basis::Labels => None,
            Basis::Claim => Some(
                "How often each side did the work is not known: figures are of all of it, and compare only if both did equal work."
                    .to_owned(),
            ),
            Basis::NoCommonKernel if a.only_one_dispatches(b) => {
                let (some, none) = match a.dispatch_count {
                    Some(0) => (b, a),
                    _ => (a, b),
                };
                let noun = self.words.dispatch;
                Some(format!(
                    "Not the same work: {} launched no kernel, and {} needed {}. The figures stand beside each other and say nothing of which is better.",
                    none.name,
                    some.name,
                    noun.count(some.dispatch_count.unwrap_or(0))
                ))
            }
            Basis::Nested => {
                let (outer, inner) = if a.is_around_other { (before, after) } else { (after, before) };
                Some(format!(
                    "Not comparable: the label {inner} lies in {outer}, whose figures here are without the work of {inner}. A change in {inner} is one change of {outer} too, and counts once."
                ))
            }
            Basis::OtherThreads => {
                let lacking = [a, b].into_iter().filter(|work| work.lacks_work()).map(|work| {
                    let time = duration_f64(work.meanwhile_ns.unwrap_or(0) as f64);
                    format!("{time} of GPU work while {} was open", work.name)
                });
                Some(format!(
                    "Not comparable: other threads launched {}, outside of all labels, and hardly any at other times, as PyTorch's autograd does. It is not known whether that work belongs to the label: set the label on the thread that launches.",
                    listed(&lacking.collect::<Vec<_>>())
                ))
            }
            Basis::NoCommonKernel | Basis::FewCommonKernels => {
                let common = self.comparison.common_kernels.unwrap_or(0);
                let all = quantity::count_of(self.comparison.all_kernels?, "kernel", "kernels");
                let are = match common {
                    0 => "none of them is in both".to_owned(),
                    1 => "1 of them is in both".to_owned(),
                    several => format!("{} of them are in both", quantity::count(several)),
                };
                Some(format!(
                    "Not the same work: {before} and {after} ran {all}, and {are}. The figures stand beside each other and say nothing of which is better; \
                     label what is meant to be equal, and compare the labels."
                ))
            }
        }
    }

    /// Returns true where the sizes of launches and transfers say nothing against equal work.
    fn has_equal_sizes(&self) -> bool {
        let launches = self.comparison.launch_sizes;
        matches!(launches, None | Some(SizeEvidence::Equal))
            && self.comparison.copy_sizes == CopyEvidence::Equal
    }

    /// Returns sentences on the sizes of the dispatches of kernels that ran on both sides, and of transfers, where they differ.
    fn sizes(&self) -> Vec<String> {
        let mut sentences = self.comparison.size_sentences.clone();
        let SentenceWriter { before, after, .. } = self;
        let other_launches = self.comparison.launch_sizes == Some(SizeEvidence::Unequal);
        let evidence = match &self.comparison.copy_sizes {
            CopyEvidence::OtherSizes(sentence) => {
                sentences.push(sentence.clone());
                match other_launches {
                    true => "its launches and transfers tell",
                    false => "its transfers tell",
                }
            }
            _ if other_launches => "its launches tell",
            _ => return sentences,
        };
        sentences.insert(
            0,
            format!("Not equal work: {after} did other work than {before}, as far as the sizes of {evidence}."),
        );
        sentences
    }

    /// Returns true where only the labels say that the work is equal, and the kernels do not.
    fn rests_on_labels(&self) -> bool {
        self.comparison.basis == Basis::Labels && self.comparison.few_common_kernels
    }

    /// Returns a sentence on how few kernels both sides have in common, where only the labels say that they are
    /// equal.
    fn few_kernels(&self) -> Option<String> {
        let (common, all) = (
            self.comparison.common_kernels?,
            self.comparison.all_kernels?,
        );
        let all = quantity::count_of(all, "kernel", "kernels");
        let are = match common {
            0 => format!("None of {all} is"),
            1 => format!("1 of {all} is"),
            several => format!("{} of {all} are", quantity::count(several)),
        };
        self.rests_on_labels().then(|| {
            format!("{are} in both: equal only if the labels mean the same work, as where kernels were fused.")
        })
    }

    /// Returns `if both did equal work, ` where it is not known that they did, else an empty text.
    fn condition(&self) -> &'static str {
        match self.comparison.basis {
            Basis::Labels if self.has_equal_sizes() => "",
            _ => "if both did equal work, ",
        }
    }

    /// Returns the sentence on the difference in GPU time, or that it is not known.
    fn gpu_time(&self) -> String {
        let told = self.ratio(Figure::GpuBusy).and_then(|ratio| {
            let SentenceWriter { before, after, .. } = self;
            let each = self.each();
            let (a, b) = (ratio.before?, ratio.after?);
            Some(match difference(ratio, duration_f64)? {
                Difference::None => format!(
                    "{}{after} and {before} took the same GPU time: {}{each}",
                    self.condition(),
                    duration_f64(a)
                ),
                Difference::Noise(interval) => format!(
                    "{after} took {}{each} of GPU time, and {before} {}: the difference is within the spread of the evaluations ({interval}; {})",
                    duration_f64(b),
                    duration_f64(a),
                    self.counted()
                ),
                Difference::Clear(clear) => format!(
                    "{}{}: {}{}",
                    self.condition(),
                    clear.took([*before, *after], "GPU time"),
                    clear.values([a, b].map(duration_f64), each),
                    self.in_brackets(clear.interval)
                ),
            })
        });
        match told {
            Some(told) => sentence(&told),
            None => "GPU times of one of the two are not known.".to_owned(),
        }
    }

    /// Returns, in brackets, the interval and the number of evaluations, or an empty text without an interval.
    fn in_brackets(&self, interval: Option<String>) -> String {
        match interval {
            Some(interval) => format!(" ({interval}; {})", self.counted()),
            None => String::new(),
        }
    }

    /// Returns the number of evaluations with known GPU time of both sides, as text; those after come first where the
    /// numbers differ.
    fn counted(&self) -> String {
        let WorkComparison { before, after, .. } = self.comparison;
        let [a, b] = [before, after].map(|work| work.samples(Figure::GpuBusy).len() as u64);
        match a == b {
            true => format!("{} evaluations each", quantity::count(a)),
            false => format!(
                "{} and {} evaluations",
                quantity::count(b),
                quantity::count(a)
            ),
        }
    }

    /// Returns a sentence that a side changed while it ran: the medians of the first and second half of its
    /// evaluations differ by more than noise, and by a relevant part (`DRIFT_PART`) of the difference of the sides.
    fn unsteady(&self, work: &WorkCost) -> Option<String> {
        let ratio = self.ratio(Figure::GpuBusy)?;
        let difference = ratio
            .ratio
            .filter(|_| ratio.within_noise == Some(false))?
            .ln()
            .abs();
        let samples = work.samples(Figure::GpuBusy);
        let (first, second) = samples.split_at(samples.len() / 2);
        let drift = MedianRatio::from_samples(first, second)?;
        let large = drift.ratio.ln().abs() >= DRIFT_PART * difference;
        let median = |samples: &[f64]| {
            Spread::from_samples(samples).map(|spread| duration_f64(spread.median))
        };
        let (first, second) = (median(first)?, median(second)?);
        (large && drift.is_within_noise() == Some(false)).then(|| {
            format!(
                "GPU time of {} changed while it ran, from {first} in the first half of its evaluations to {second} in the second: what changed it may be a part of the difference. Record again, and let both take turns.",
                work.name
            )
        })
    }

    /// Returns ` an evaluation` where figures are of one evaluation, else an empty text.
    fn each(&self) -> &'static str {
        match self.comparison.per_evaluation {
            true => " an evaluation",
            false => "",
        }
    }

    /// Returns a sentence on the time from the start of one evaluation to the start of the next.
    fn pace(&self) -> Option<String> {
        let ratio = self.ratio(Figure::Pace)?;
        let SentenceWriter { before, after, .. } = self;
        let (a, b) = (ratio.before?, ratio.after?);
        let (a, b) = (duration_f64(a), duration_f64(b));
        let start =
            "From the start of one evaluation to the start of the next, the host's part included,";
        Some(match difference(ratio, duration_f64)? {
            Difference::None => format!("{start} both took {a}."),
            Difference::Noise(interval) => format!(
                "{start} {after} took {b} and {before} {a}: the difference is within the spread ({interval})."
            ),
            Difference::Clear(clear) => format!(
                "{start} {}: {}{}.",
                clear.took([*before, *after], "time"),
                clear.values([a, b], ""),
                (clear.interval).map_or_else(String::new, |interval| format!(" ({interval})"))
            ),
        })
    }

    /// Returns a sentence on the changes of dispatches, command buffers and submissions.
    fn counts(&self) -> Option<String> {
        let nouns = [
            (Figure::Dispatches, self.words.dispatch),
            (Figure::CommandBuffers, self.words.command_buffer),
            (Figure::Submissions, self.words.submission),
        ];
        let mut same = Vec::new();
        let mut other = Vec::new();
        let mut fewer = true;
        for (figure, noun) in nouns {
            let Some((a, b)) = self.ratio(figure).and_then(|r| r.before.zip(r.after)) else {
                continue;
            };
            let noun_of = |count: f64| match count == 1.0 {
                true => noun.one,
                false => noun.many,
            };
            if a == b {
                if a > 0.0 {
                    same.push(format!("{} {}", quantity::mean_count(a), noun_of(a)));
                }
            } else {
                fewer &= b < a;
                other.push(format!(
                    "{} {} instead of {}",
                    quantity::mean_count(b),
                    noun_of(b),
                    quantity::mean_count(a)
                ));
            }
        }
        let SentenceWriter { before, after, .. } = self;
        let each = match self.comparison.per_evaluation {
            true => " for an evaluation",
            false => " in all",
        };
        let known = self.comparison.basis == Basis::Labels && !self.rests_on_labels();
        let saved = match fewer && known {
            true => ": what each launch and hand-over costs is saved",
            false => "",
        };
        match (same.is_empty(), other.is_empty()) {
            (true, true) => None,
            (false, true) => Some(format!(
                "{after} and {before} needed the same{each}: {}.",
                listed(&same)
            )),
            (_, false) => Some(format!("{after} needed {}{each}{saved}.", listed(&other))),
        }
    }

    /// Returns a sentence on the bytes that dispatches of each side could reach.
    fn bytes(&self) -> Option<String> {
        let ratio = self.ratio(Figure::BoundBytes)?;
        let (a, b) = (ratio.before?, ratio.after?);
        let SentenceWriter { before, after, .. } = self;
        (a + b > 0.0).then(|| {
            format!(
                "Dispatches of {after} could reach {}{} through their bindings, those of {before} {}.",
                Bytes(b),
                self.each(),
                Bytes(a)
            )
        })
    }

    /// Returns a sentence that a GPU is less busy because it is done sooner, where that is so.
    fn empty_space(&self) -> Option<String> {
        let busy = self.ratio(Figure::GpuBusy)?;
        let all = self.ratio(Figure::Pace)?;
        let sooner = |ratio: &Ratio| {
            ratio.ratio.is_some_and(|r| r > 1.0) && ratio.within_noise != Some(true)
        };
        let share_before = busy.before? / all.before?;
        let share_after = busy.after? / all.after?;
        let told = self.comparison.basis == Basis::Labels
            && self.has_equal_sizes()
            && sooner(busy)
            && sooner(all)
            && share_after < share_before;
        let SentenceWriter { before, after, .. } = self;
        let condition = match self.rests_on_labels() {
            true => "if the labels mean the same work, ",
            false => "",
        };
        told.then(|| {
            format!(
                "The GPU is busy for {} of the time in {before} and for {} in {after}: {condition}the empty space after is saved time, for the work ended sooner.",
                Percent(share_before),
                Percent(share_after)
            )
        })
    }

    /// Returns a sentence that says why a difference is not judged against chance, where it is not.
    fn chance(&self) -> Option<String> {
        let ratio = self.ratio(Figure::GpuBusy)?;
        if ratio.ratio.is_none() || ratio.within_noise.is_some() {
            return None;
        }
        let counted = |count: u64| quantity::count_of(count, "evaluation", "evaluations");
        let WorkComparison { before, after, .. } = self.comparison;
        let count = |work: &WorkCost| work.samples(Figure::GpuBusy).len() as u64;
        Some(match self.comparison.per_evaluation {
            false => "Whether the difference is more than chance is not known: there is one figure for each side. Label what is one evaluation, and compare the labels.".to_owned(),
            true => format!(
                "Whether the difference is more than chance is not known: that takes {LEAST_EVALUATIONS} evaluations of each; {} has {}, {} has {}.",
                before.name,
                counted(count(before)),
                after.name,
                counted(count(after))
            ),
        })
    }
}

/// Returns a sentence on the evaluations of a side that are left out.
fn left_out(work: &WorkCost) -> Option<String> {
    let evaluations = work.evaluations?;
    let reasons: Vec<String> = (work.left_out.iter())
        .map(|out| {
            let one = out.count == 1;
            let why = match (out.because, one) {
                (Reason::WarmUp, true) => "is warm-up",
                (Reason::WarmUp, false) => "are warm-up",
                (Reason::FirstUse, _) => "is the first and compiles or loads code",
                (Reason::NoWork, true) => "launched no GPU work",
                (Reason::NoWork, false) => {
                    "launched no GPU work (lazy work runs where its result is asked for: ask for it inside the label)"
                }
                (Reason::Unclear, true) => "may share work with others",
                (Reason::Unclear, false) => "may share their work with others",
                (Reason::Unfinished, _) => "had not ended when the recording did",
            };
            format!("{} {why}", quantity::count(out.count))
        })
        .collect();
    (!reasons.is_empty()).then(|| {
        format!(
            "Left out of {} of {}: {}.",
            quantity::count_of(evaluations, "evaluation", "evaluations"),
            work.name,
            listed(&reasons)
        )
    })
}

/// Returns a sentence on the number of pieces of work without known times, where there are any.
fn untimed(work: &WorkCost) -> Option<String> {
    (work.untimed_count > 0).then(|| {
        format!(
            "Times of {} of {} are not known; evaluations with such have no times.",
            quantity::count_of(work.untimed_count, "piece of work", "pieces of work"),
            work.name
        )
    })
}

/// Adds a full stop, and a capital letter where the text begins with our own word.
fn sentence(text: &str) -> String {
    match text.strip_prefix("if ") {
        Some(rest) => format!("If {rest}."),
        None => format!("{text}."),
    }
}
