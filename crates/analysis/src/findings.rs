//! Runs all analyses on the timeline of one trace and returns their results as [`Findings`], from which reports are
//! made.
//!
//! Order of calls: a trace is read with [`Findings::selection`], analysed by [`Findings::new`], and what rests on
//! tables that could not be read is then marked as unknown (`withdraw.rs`).

mod code;
mod selection;
mod withdraw;

use crate::code::{Code, HostCode, lost_stacks};
use crate::command_buffers::{self, CommandBuffers};
use crate::conditions::{self, ConditionNote, Pressure};
use crate::contradictions::Contradiction;
use crate::critical_path::CriticalPath;
use crate::drift::{self, Drift};
use crate::equal_work::{self, WorkComparison};
use crate::fill::DeviceFill;
use crate::finding::Finding;
use crate::gaps::{self, Advice, AdviceSubject, Cause, CauseSummary, GapFinder, IdleTime};
use crate::headline::{HeadlineInput, HeadlineNote, headline, undefined_queues};
use crate::instructions::{self, SampledKernel};
use crate::kernel_bytes;
use crate::kernels::{self, Kernel};
use crate::labels::{self, FoldedLabel, LabelRow};
use crate::latency::{self, QueueLatency};
use crate::limits::{self, KernelLimits};
use crate::memory_timeline::{self, MemoryRow};
use crate::operators::{self, OperatorRow};
use crate::profiled::{self, ProfiledKernel};
use crate::several_ranks;
use crate::steps::{FoundSteps, Step, StepSummary, StepSums};
use crate::transfers::{self, TransferRow};
use crate::unread::{CAUSES, CONDITIONS, KERNELS, WORK};
use crate::verdict::{Bound, Evidence, Judgement, Phase, PhaseSums};
use crate::warm_up::{self, FirstUses, WarmUp};
use crate::what_if::gains::{Gains, Named, Replays};
use crate::work_advice::work_advice;
use code::{CodeKeys, code_keys, sampled_host};
use gapscope_timeline::Timeline;
use gapscope_timeline::bound_bytes::BindingSets;
use gapscope_timeline::busy::{self, DeviceBusy};
use gapscope_timeline::counters::{self, Counter, CounterRow};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::ADVICE_SHARE;
use gapscope_timeline::unknown_counts::{Count, UnknownCount, unknown_counts};
use gapscope_trace::manifest::{Loss, LossSchema, SamplingMode, Unmeasured};
use gapscope_trace::parallel;
use gapscope_trace::tables::Table;
use gapscope_trace::{Trace, UnreadTable};
use schemars::JsonSchema;
use serde::Serialize;
use std::panic::resume_unwind;

/// The options of all analyses.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// True to leave the warm-up (see [`crate::warm_up`]) out of gaps and verdict. Default: true.
    pub exclude_warm_up: bool,
    /// The part of the recording that gaps and verdict are limited to, without a search for warm-up. A label filter
    /// replaces it.
    pub window: Option<Interval>,
    /// Gaps shorter than this many nanoseconds are counted apart and not explained. Default: 0, which explains all
    /// gaps.
    pub gap_threshold_ns: i64,
    /// The number of the longest gaps, command buffers and so on that are listed. Default: 10.
    pub longest: usize,
    /// The names of the labels of two parts that do equal work, the part before the change first: `("eager",
    /// "compiled")`.
    pub equal_work: Option<(String, String)>,
    /// What is replayed for [`Findings::gains`]. Default: changes and the critical path.
    pub replays: Replays,
}

impl Options {
    /// Returns the options for findings whose gains nobody shows.
    pub fn without_gains() -> Options {
        Options {
            replays: Replays::None,
            ..Options::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            exclude_warm_up: true,
            window: None,
            gap_threshold_ns: 0,
            longest: 10,
            equal_work: None,
            replays: Replays::ChangesAndPath,
        }
    }
}

/// The findings of one trace, in the order and under the keys that `gapscope report --json` prints them.
///
/// Counts and tables are of the whole recording; gaps and verdict are of the analysed window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Findings {
    /// What bounds the speed: `host-bound`, `device-bound`, `transfer-bound`, `sync-bound`, `communication-bound`,
    /// `latency-bound`, `mixed` or `unknown`.
    pub verdict: Bound,
    /// Why the verdict is what it is.
    #[serde(flatten)]
    pub verdict_evidence: Evidence,
    /// What a reader must know with the verdict, in the order in which reports say it.
    pub headline: Vec<HeadlineNote>,
    /// Parts of the program whose verdicts differ, in order of time: the work of labels, or the times around a change. Absent
    /// where none differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// The steps of the program (the iterations of its loop) in order of time; empty where neither ranges nor repeating launches tell
    /// them, or where labels are selected.
    pub steps: Finding<Vec<Step>>,
    /// The median step, and which are slow; absent without steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_summary: Option<StepSummary>,
    /// The critical paths through transfers and communication that computing waited for; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub critical_paths: Vec<CriticalPath>,
    /// The one critical path through the work of all devices, by the kind of its work; absent where one device worked, or where
    /// none waited for another or for transfers and communication.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joint_critical_paths: Vec<CriticalPath>,
    /// True where communication hides waits for other ranks: the trace is of one rank, and that alone does not tell both apart. Absent where not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hides_waits_for_ranks: bool,
    /// Device times that contradict host times; absent where none do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<Contradiction>,
    /// How the GPU was sampled.
    pub sampling_mode: SamplingMode,
    /// The greatest error of a device time on the host's clock, over the devices that ran work.
    pub clock_error_ns: Option<i64>,
    /// Why the clock error is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_error_unknown_because: Option<&'static str>,
    /// Start of the recording on the host's monotonic clock.
    pub start_ns: i64,
    /// Length of the recording.
    pub wall_ns: Option<i64>,
    /// Why the length is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_unknown_because: Option<&'static str>,
    /// Time in which at least one device ran something, over the whole recording.
    pub gpu_busy_ns: Option<i64>,
    /// Why the busy time is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_busy_unknown_because: Option<&'static str>,
    /// From the start of the first work of any device to the end of the last.
    pub work_window: Option<Interval>,
    /// The part of the work's window that gaps and verdict are of: without warm-up.
    pub analysed_window: Option<Interval>,
    /// Warm-up that was found, or why none was.
    pub warm_up: WarmUp,
    /// Dispatches; like the counts below null where their table cannot be read, or where none was recorded although there may
    /// have been some: `unknown_counts` says why.
    pub dispatch_count: Finding<u64>,
    /// Dispatches whose times are known.
    pub timed_dispatch_count: Finding<u64>,
    /// Submitted command buffers.
    pub command_buffer_count: Finding<u64>,
    /// Submissions, without host functions and waits that are put on a queue by themselves.
    pub submission_count: Finding<u64>,
    /// Transfers.
    pub transfer_count: Finding<u64>,
    /// Bytes that transfers of known size wrote; null where none of their sizes is known.
    pub transfer_bytes: Finding<u64>,
    /// Transfers of unknown size.
    pub transfer_unknown_bytes_count: Finding<u64>,
    /// Counts that are not known, as what they count was not recorded, or not all of it; absent where all are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_counts: Vec<UnknownCount>,
    /// Busy time of each device in the analysed window.
    pub devices: Vec<DeviceBusy>,
    /// Idle time of the devices by cause, the greatest first.
    pub gaps: Finding<Vec<CauseSummary>>,
    /// What to do: first about transfers or communication that bound the speed, then about the causes of idle time that cost the most, the
    /// greatest first; without causes about which nothing helps.
    pub advice: Finding<Vec<Advice>>,
    /// What would help most, by replays of the recorded run with changes; without any where the trace cannot be read whole, and where
    /// labels are selected.
    #[serde(flatten)]
    pub gains: Gains,
    /// Idle time in detail; null where no work has known times.
    pub idle_time: Finding<IdleTime>,
    /// The code behind the idle time; absent where neither samples nor ranges tell it.
    #[serde(flatten, serialize_with = "code_keys")]
    #[schemars(with = "Option<CodeKeys>")]
    pub code: Option<Code>,
    /// How much of the devices their kernels could use.
    pub fill: Finding<Vec<DeviceFill>>,
    /// Kernels, the greatest total first, untimed ones after by count.
    pub kernels: Finding<Vec<Kernel>>,
    /// What the limits of kernels by hardware counters rest on; absent where the trace has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_limits: Option<KernelLimits>,
    /// Launches of CUDA kernels that were profiled one by one (`gapscope record --profile-kernel`); absent where none was.
    #[serde(skip_serializing_if = "Finding::is_known_empty")]
    pub profiled_kernels: Finding<Vec<ProfiledKernel>>,
    /// CUDA kernels whose instructions were sampled (`gapscope record --instructions`), most samples first; absent where none was.
    #[serde(skip_serializing_if = "Finding::is_known_empty")]
    pub sampled_kernels: Finding<Vec<SampledKernel>>,
    /// Labels, parents before their children, siblings by busy time.
    pub labels: Finding<Vec<LabelRow>>,
    /// The same with a model's modules folded into one row (`blocks.*.attn`); empty where there are none.
    pub folded_labels: Finding<Vec<FoldedLabel>>,
    /// Operators of PyTorch, those with the greatest own time first; empty where the recording has not labelled them.
    pub operators: Finding<Vec<OperatorRow>>,
    /// Command buffers.
    pub command_buffers: Finding<CommandBuffers>,
    /// Transfers by kind.
    pub transfers: Finding<Vec<TransferRow>>,
    /// Device memory.
    pub memory: Finding<Vec<MemoryRow>>,
    /// Counters as they were measured; absent where there are none.
    #[serde(skip_serializing_if = "Finding::is_known_empty")]
    pub counters: Finding<Vec<CounterRow>>,
    /// Conditions of machine and devices that may have changed the numbers; absent where there are none.
    #[serde(skip_serializing_if = "Finding::is_known_empty")]
    pub conditions: Finding<Vec<ConditionNote>>,
    /// Conditions that could not be measured; absent where all were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Unmeasured>,
    /// Launch latency and queue depth by queue.
    #[serde(rename = "launch_latency")]
    pub latency: Finding<Vec<QueueLatency>>,
    /// Drift of dispatches against command buffers.
    pub drift: Finding<Drift>,
    /// Equal work compared, with `--compare-labels`.
    pub equal_work: Option<WorkComparison>,
    /// Tables that could not be read, or not whole: what rests on them is null, and counts of their rows are of those
    /// that could be read ([`Findings::knows_rows`]).
    pub unread: Vec<UnreadTable>,
    /// What was not recorded.
    #[schemars(with = "Vec<LossSchema>")]
    pub losses: Vec<Loss>,
    /// Sentences that every report prints. JSON has them together with those about reading the trace.
    #[serde(skip)]
    pub notes: Vec<String>,
}

impl Findings {
    /// Returns why a count is not known; `None` where it is known, or where only its table cannot be read.
    pub fn unknown_count(&self, count: Count) -> Option<&UnknownCount> {
        let mut unknown = self.unknown_counts.iter();
        unknown.find(|unknown| unknown.count == count)
    }

    /// Returns the advice on transfers or communication that bound the speed.
    pub fn advice_on_work(&self) -> Option<&Advice> {
        let mut all = self.advice.iter();
        all.find(|advice| matches!(advice.cause, AdviceSubject::Work(_)))
    }

    /// Returns what the unknown causes of idle time may have been, without a capital and a full stop.
    pub fn unknown_because(&self) -> Option<&str> {
        self.gaps.iter().find_map(|gap| gap.may_be.as_deref())
    }

    /// Returns the advice on a cause of idle time, or `None` where no device idled for that cause or nothing helps.
    pub fn advice_on(&self, cause: Cause) -> Option<&str> {
        let gap = self.gaps.iter().find(|gap| gap.cause == cause)?;
        Some(gap.advice.as_str()).filter(|advice| !advice.is_empty())
    }

    /// Runs all analyses of a trace.
    pub fn new(trace: &Trace, options: &Options) -> Findings {
        Findings::from_timeline(&Timeline::new(trace), options)
    }

    /// Runs all analyses of a timeline.
    ///
    /// Where a [`LabelFilter`](gapscope_timeline::LabelFilter) selects work, counts and tables are of that work only.
    /// Gaps and verdict are of the whole devices from the first selected work to the last with known times, since the
    /// work in between keeps the devices busy whatever its label.
    pub fn from_timeline(timeline: &Timeline, options: &Options) -> Findings {
        Findings::from_gaps(&GapFinder::new(timeline), options)
    }

    /// Runs the analyses of [`Findings::from_timeline`] with a finder of gaps that exists already.
    pub fn from_gaps(finder: &GapFinder, options: &Options) -> Findings {
        Findings::from_gaps_beside(finder, options, || ()).0
    }

    /// Runs the same analyses, and `beside` on another thread as soon as the gaps are explained, from where on explanations cost
    /// nothing.
    pub fn from_gaps_beside<T: Send>(
        finder: &GapFinder,
        options: &Options,
        beside: impl FnOnce() -> T + Send,
    ) -> (Findings, T) {
        let timeline = finder.timeline();
        let selected = timeline.selected();
        let bindings = BindingSets::new(timeline.trace);
        std::thread::scope(|scope| {
            let others = scope.spawn(|| Findings::independent(finder, options));
            // The tables of labels need nothing of the rest, and take long on traces with many labels.
            let labels = scope.spawn(|| (labels::labels(selected), operators::operators(selected)));
            let others = || others.join().unwrap_or_else(|panic| resume_unwind(panic));
            let (mut findings, beside) =
                Findings::without_labels(finder, &bindings, options, others, beside);
            let (labels, operators) = labels.join().unwrap_or_else(|panic| resume_unwind(panic));
            findings.labels = labels.rows.into();
            findings.folded_labels = labels.folded.into();
            findings.operators = operators.into();
            let mut findings = findings.without_unread(&timeline.trace.unread);
            if options.replays != Replays::None && !timeline.is_filtered() && findings.knows(CAUSES)
            {
                findings.gains = Gains::new(finder, &findings.named(), options.replays);
            }
            (findings, beside)
        })
    }

    /// Returns true where transfers take a share of the judged time worth advice, be it beside kernels.
    fn moves_data(&self) -> bool {
        let rows = self.transfers.known().into_iter().flatten();
        let busy_ns = rows
            .filter_map(|row| row.busy_ns)
            .fold(0, i64::saturating_add);
        let window = self.analysed_window;
        window.is_some_and(|window| ratio(busy_ns, window.length_ns()) >= ADVICE_SHARE)
    }

    /// Returns what the findings name that a program could change.
    fn named(&self) -> Named<'_> {
        Named {
            advice: &self.advice,
            kernels: match self.knows(KERNELS) {
                true => &self.kernels,
                false => &[],
            },
            moves_data: self.moves_data(),
            code: self.code.as_ref(),
            steps: &self.steps,
            analysed_window: self.analysed_window,
        }
    }

    /// Computes all findings but those on labels. `others` returns what [`Findings::independent`] makes on another
    /// thread meanwhile, and `beside` is run on another thread once the gaps are explained.
    fn without_labels<T: Send>(
        finder: &GapFinder,
        bindings: &BindingSets,
        options: &Options,
        others: impl FnOnce() -> (Findings, Vec<Counter>),
        beside: impl FnOnce() -> T + Send,
    ) -> (Findings, T) {
        let timeline = finder.timeline();
        let selected = timeline.selected();
        let (manifest, tables) = (&selected.trace.manifest, &selected.trace.tables);
        let gpu_busy_ns = busy::any_busy_ns(selected);
        let mut kernels = kernels::kernels(selected, bindings, None, gpu_busy_ns);
        kernel_bytes::add(selected, bindings, None, &mut kernels);
        let window = match timeline.is_filtered() {
            true => selected.work_window(),
            false => options.window,
        };
        let warm_up = match window {
            Some(_) => WarmUp {
                reason: "Warm-up was not looked for: the window was given.".to_owned(),
                ..WarmUp::default()
            },
            None => warm_up::warm_up(timeline),
        };
        let equal_work = (options.equal_work.as_ref()).and_then(|(before, after)| {
            let first_uses = FirstUses::new(selected, &warm_up);
            let excludes = options.exclude_warm_up && !timeline.is_filtered();
            let first_uses = excludes.then_some(&first_uses);
            equal_work::equal_work(selected, bindings, first_uses, before, after)
        });
        let excluded = warm_up.excluded.filter(|_| options.exclude_warm_up);
        let analysed_window = timeline.work_window().map(|all| match (window, excluded) {
            (Some(given), _) => all.intersection(given),
            (None, Some(excluded)) => Interval::new(excluded.end_ns, all.end_ns),
            (None, None) => all,
        });
        kernels::add_judged(selected, analysed_window, &mut kernels);
        let (explainer, threshold_ns) = (&finder.explainer, options.gap_threshold_ns);
        let (idle_time, host_code) = parallel::both(
            || {
                let idle_time = analysed_window.map(|window| {
                    gaps::explained_idle_time(explainer, window, threshold_ns, options.longest)
                });
                idle_time.unwrap_or_default()
            },
            // As the gaps, the code behind them is of the whole devices.
            || HostCode::new(finder),
        );
        let judge = || {
            Judgement::of_idle_time(
                finder,
                analysed_window,
                idle_time,
                threshold_ns,
                options.longest,
                host_code.as_ref(),
            )
        };
        let summed_window = analysed_window.filter(|_| !timeline.is_filtered());
        let summed_window = summed_window.filter(|window| !window.is_empty());
        let steps = || {
            let found = FoundSteps::new(timeline)?;
            Some(StepSums::new(
                explainer,
                found,
                summed_window?,
                threshold_ns,
            ))
        };
        let phases = || summed_window.map(|window| PhaseSums::new(explainer, window));
        let ((judged, phase_sums), (step_sums, beside)) = parallel::both(
            || parallel::both(judge, phases),
            || parallel::both(steps, beside),
        );
        let (others, recorded) = others();
        let pressure = Pressure::new(&recorded, analysed_window);
        // Advice is on the rest of the time where one gap, such as the start of a program, is most of it.
        let outside = judged.code.as_ref().filter(|_| judged.long_gap.is_some());
        let outside = outside.map(Code::outside_of_longest);
        let samples = sampled_host(outside.as_ref().or(judged.code.as_ref()));
        let advice = gaps::advice(timeline, &judged.idle_time, samples, pressure);
        let advice = judged.reserved(advice);
        // Without a table of work, it would not be known what ran beside a kernel.
        let knows = |tables: &[&str]| {
            let mut unread = timeline.trace.unread.iter();
            !unread.any(|unread| tables.contains(&unread.table))
        };
        let kernel_limits = match knows(WORK) && knows(CONDITIONS) && knows(KERNELS) {
            true => limits::limit(selected, &recorded, None, &mut kernels),
            false => None,
        };
        let sum = |figure: fn(&TransferRow) -> u64| {
            let figures = others.transfers.iter().map(figure);
            figures.fold(0, u64::saturating_add)
        };
        let timed = kernels.iter().map(|kernel| kernel.durations.timed_count);
        let causes = judged.idle_time.causes.iter().zip(advice);
        let because = gaps::unknown_because(timeline, &judged.idle_time);
        let gaps: Vec<CauseSummary> = causes
            .map(|(total, advice)| CauseSummary::new(total, advice, because.as_deref()))
            .collect();
        let wall_ns = (manifest.end_ns > manifest.start_ns)
            .then(|| manifest.end_ns.saturating_sub(manifest.start_ns));
        let (steps, step_summary) = match step_sums {
            Some(sums) => sums.judged(finder, host_code.as_ref()),
            None => (Vec::new(), None),
        };
        let phases = phase_sums.map_or(Vec::new(), |sums| sums.phases(judged.bound));
        let headline = headline(&HeadlineInput {
            timeline,
            phases: &phases,
            devices: &judged.devices,
            conditions: &others.conditions,
            contradictions: &judged.contradictions,
            long_gap: judged.long_gap.as_deref(),
            unmeasured: &judged.unmeasured,
            window: analysed_window,
            wall_ns,
        });
        let hides_waits_for_ranks = judged.hides_waits_for_ranks();
        let judged_ns = judged.evidence.window_ns.unwrap_or(0);
        let is_worth_it = |gap: &&CauseSummary| {
            ratio(gap.total_ns, judged_ns) >= ADVICE_SHARE && !gap.advice.is_empty()
        };
        let on_idle_time = gaps.iter().filter(is_worth_it).map(|gap| Advice {
            cause: AdviceSubject::Idle(gap.cause),
            text: gap.advice.clone(),
        });
        let on_work = work_advice(timeline, &judged);
        let advice: Vec<Advice> = on_work.into_iter().chain(on_idle_time).collect();
        let findings = Findings {
            verdict: judged.bound,
            verdict_evidence: judged.evidence,
            headline,
            phases,
            steps: steps.into(),
            step_summary,
            critical_paths: judged.critical_paths.by_device,
            joint_critical_paths: judged.critical_paths.joint,
            hides_waits_for_ranks,
            contradictions: judged.contradictions,
            sampling_mode: manifest.sampling_mode,
            clock_error_ns: clock_error_ns(selected),
            start_ns: manifest.start_ns,
            wall_ns,
            gpu_busy_ns,
            work_window: selected.work_window(),
            analysed_window,
            warm_up,
            dispatch_count: (selected.dispatches.count() as u64).into(),
            timed_dispatch_count: timed.sum::<u64>().into(),
            command_buffer_count: (tables.command_buffers.len() as u64).into(),
            submission_count: selected.submission_count().into(),
            transfer_count: (tables.transfers.len() as u64).into(),
            transfer_bytes: sum(|row| row.bytes.unwrap_or(0)).into(),
            transfer_unknown_bytes_count: sum(|row| row.unknown_bytes_count).into(),
            unknown_counts: unknown_counts(timeline),
            devices: judged.devices,
            gaps: gaps.into(),
            advice: advice.into(),
            idle_time: judged.idle_time.into(),
            code: judged.code,
            fill: judged.fill.into(),
            kernels: kernels.into(),
            kernel_limits,
            profiled_kernels: profiled::profiled_kernels(selected).into(),
            sampled_kernels: instructions::sampled_kernels(selected).into(),
            unmeasured: manifest.unmeasured.clone(),
            equal_work,
            losses: (manifest.losses.iter().cloned())
                .chain(undefined_queues(timeline))
                .chain(lost_stacks(timeline.trace))
                .collect(),
            notes: (manifest.notes.iter().cloned())
                .chain(several_ranks::note(selected))
                .chain(profiled::note(selected))
                .collect(),
            ..others
        };
        (findings, beside)
    }

    /// Computes the findings that need neither the times of kernels nor gaps. Returns with them the measured
    /// counters, which are not of selected work only: none where work is selected.
    fn independent(finder: &GapFinder, options: &Options) -> (Findings, Vec<Counter>) {
        let timeline = finder.timeline();
        let selected = timeline.selected();
        let recorded = counters::recorded(timeline);
        let end_ns = timeline.trace.manifest.end_ns;
        let findings = Findings {
            transfers: transfers::transfers(selected).into(),
            command_buffers: command_buffers::command_buffers(selected, options.longest).into(),
            memory: memory_timeline::memory_timeline(timeline).into(),
            counters: counters::counter_rows(&recorded, end_ns).into(),
            conditions: conditions::conditions(timeline, &recorded).into(),
            drift: drift::drift(selected, options.longest).into(),
            latency: latency::latency(timeline, finder.explainer.order()).into(),
            ..Findings::default()
        };
        match timeline.is_filtered() {
            true => (findings, Vec::new()),
            false => (findings, recorded),
        }
    }
}

/// Returns the greatest clock error of the GPUs that ran work; `None` where one of them is not known.
fn clock_error_ns(timeline: &Timeline) -> Option<i64> {
    let working = (0..timeline.gpus.len()).filter(|gpu| !timeline.gpus[*gpu].works.is_empty());
    let errors = working.map(|gpu| timeline.clock_error_ns(gpu));
    errors.reduce(|a, b| Some(a?.max(b?)))?
}
