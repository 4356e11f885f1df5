//! Makes the section on the code that ran while GPUs were idle: lines of the program, by samples of the submitting
//! threads' stacks or by the ranges that these threads were in. A cause with few samples has no shares; the lines that hooks (gapscope's
//! libraries in the program) saw are named for it.

use super::{bar, count, thread_text};
use crate::document::{Block, Table, Text, Tone};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::code::{
    self, CauseCode, Code, CodeFrame, CodeLine, CodeTime, ExactLine, MIN_SAMPLES_FOR_SHARES,
};
use gapscope_analysis::gaps::Cause;
use gapscope_timeline::vocabulary::Words;
use gapscope_trace::tables::SampleSource;

/// The number of callers that are named of a range.
const CALLERS: usize = 4;

/// Makes the section; none where the findings have no stacks, or no idle time.
pub(crate) fn blocks(findings: &Findings, words: &Words, top: usize) -> Vec<Block> {
    let Some(code) = &findings.code else {
        return Vec::new();
    };
    let total_ns: i64 = code.causes.iter().map(|cause| cause.total_ns).sum();
    if total_ns == 0 {
        return Vec::new();
    }
    let is_of_ranges = code.is_of_ranges();
    let source = match is_of_ranges {
        true => "ranges".to_owned(),
        false => number::count_of(code.samples, "sample", "samples"),
    };
    let aside = format!(
        "{source} of submitting threads in {} of gaps",
        number::duration(total_ns),
    );
    let mut blocks = vec![Block::Heading("Code behind the idle time".into(), aside)];
    let mut rows: Vec<(&CauseCode, CodeLine)> = (code.causes.iter())
        .flat_map(|cause| {
            let lines = CodeLine::from_times(&cause.code);
            lines.into_iter().map(move |line| (cause, line))
        })
        .collect();
    rows.sort_by_key(|(_, line)| std::cmp::Reverse((line.total_ns, line.samples)));
    let shown = rows.len().min(top);
    let facts = |cause: &CauseCode| cause.cause.facts(words.api);
    let share = |line: &CodeLine| line.total_ns as f64 / total_ns as f64;

    let known = |cause: &CauseCode, text: String| match cause.has_shares() {
        true => Text::from(text),
        false => Text::new().faint("too few"),
    };
    let table = Table::with_rows(&rows[..shown])
        .name("code", |(_, line)| line.text.clone())
        .word("cause", |(cause, _)| {
            let facts = facts(cause);
            Text::new().with(Tone::Cause(facts.family), facts.name)
        })
        // A narrow terminal lacks this column first.
        .spare(1)
        .number(
            if is_of_ranges { "time" } else { "≈ time" },
            |(cause, line)| known(cause, number::duration(line.total_ns)),
        )
        .number("share", |(cause, line)| {
            known(cause, number::share(share(line)))
        });
    let table = match is_of_ranges {
        true => table,
        false => table.number("samples", |(_, line)| count(line.samples)),
    };
    let table = table
        .bars(|(cause, line)| {
            let columns = if cause.has_shares() { 12 } else { 0 };
            Text::new().with(Tone::Cause(facts(cause).family), bar(share(line), columns))
        })
        // The text of the source line, or the callers, stand below the row.
        .notes(
            if is_of_ranges {
                "called by"
            } else {
                "the line"
            },
            |(_, line)| match is_of_ranges {
                true => Some(Text::new().faint(callers(line.first)?)),
                false => Some(Text::new().faint(source_line(line.first)?)),
            },
        )
        .build();
    if rows.is_empty() {
        blocks.push(Block::Sentence(
            "No sample of a submitting thread lies in a gap.".into(),
        ));
    } else {
        blocks.push(Block::Table(table));
        super::rest(&mut blocks, rows.len(), shown, "lines");
    }
    let without_samples_ns = code.causes.iter().map(|cause| cause.without_samples_ns);
    let without_ns: i64 = without_samples_ns.sum();
    if without_ns > 0 && !rows.is_empty() {
        let text = format!(
            "For {} ({}) there {}.",
            number::duration(without_ns),
            number::share_of(without_ns, total_ns),
            if is_of_ranges {
                "is no range"
            } else {
                "are no samples"
            },
        );
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
    blocks.extend(missing(code));
    blocks.extend(exact(code));
    blocks.extend(sleep(code));
    blocks.extend(workers(code));
    blocks.extend(lock(code));
    blocks
}

/// Returns the text of the source line of the frame that represents a stack ([`code::own`]).
fn source_line(time: &CodeTime) -> Option<&str> {
    let frame = &time.frames[code::own(&time.frames)?];
    frame.source.as_deref()
}

/// Lists the callers of the frame that represents a stack, the innermost first; `None` where it has none.
fn callers(time: &CodeTime) -> Option<String> {
    let own = code::own(&time.frames)?;
    let callers = time.frames[own + 1..].iter();
    let mut named: Vec<String> = callers.clone().take(CALLERS).map(CodeFrame::text).collect();
    if callers.len() > CALLERS {
        named.push("…".to_owned());
    }
    (!named.is_empty()).then(|| format!("in {}", named.join(" < ")))
}

/// Returns the name of the code with the most time in a gap, which is the first of `code`. The time is told where it
/// is exact.
pub(crate) fn of_gap(code: &[CodeTime]) -> String {
    let Some(first) = code.first() else {
        return String::new();
    };
    match first.samples {
        0 => format!("{} {}", first.name(), number::duration(first.total_ns)),
        _ => first.name(),
    }
}

/// Says how many samples were taken, where many are missing.
fn missing(code: &Code) -> Option<Block> {
    let wanted = code.taken_samples.saturating_add(code.missing_samples);
    let text = format!(
        "The sampler got {} of {} in the recording; the losses say why.",
        number::count(code.taken_samples),
        number::count_of(wanted, "sample", "samples"),
    );
    code.misses_many().then(|| Block::Sentence(text.into()))
}

/// Lists the lines that hooks saw (after waits and at submissions), for causes with few samples: these lines are exact
/// where samples are too few.
fn exact(code: &Code) -> Vec<Block> {
    let few = code
        .causes
        .iter()
        .filter(|cause| cause.samples < MIN_SAMPLES_FOR_SHARES);
    let lines: Vec<&ExactLine> = few.flat_map(|cause| &cause.exact).collect();
    let sentence = |source: SampleSource, lead: &str| {
        let mut lines: Vec<(String, u64)> = (lines.iter())
            .filter(|line| line.source == source)
            .map(|line| (code::text(&line.frames), line.count))
            .collect();
        lines.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let listed = lines
            .iter()
            .take(3)
            .map(|(text, times)| format!("{text} ({})", number::count_of(*times, "time", "times")));
        let listed: Vec<String> = listed.collect();
        (!listed.is_empty())
            .then(|| Block::Sentence(Text::new().and(format!("{lead}{}.", listed.join(", ")))))
    };
    let waits = sentence(SampleSource::AfterWait, "Waits ended in ");
    let submissions = sentence(
        SampleSource::AtSubmission,
        "After gaps work was submitted in ",
    );
    waits.into_iter().chain(submissions).collect()
}

/// Says what late submitting threads waited for while they were blocked, and which other threads ran meanwhile.
fn sleep(code: &Code) -> Option<Block> {
    let late = code.of_cause(Cause::HostLate)?;
    let slept_for = late.sleeps.iter().take(3).map(|sleep| {
        let share = number::share_of(sleep.samples as i64, late.samples as i64);
        match late.has_shares() {
            true => format!("{} ({share})", sleep.words()),
            false => sleep.words(),
        }
    });
    let slept_for: Vec<String> = slept_for.collect();
    if slept_for.is_empty() {
        return None;
    }
    let mut text = format!(
        "While it was late, the submitting thread slept in {} of {}, waiting for: {}.",
        number::count(late.blocked()),
        number::count_of(late.samples, "sample", "samples"),
        slept_for.join("; "),
    );
    let ran = code.ran_meanwhile.iter().take(3).map(|thread| {
        let name = thread_text(thread.thread_name.as_deref(), thread.thread);
        let samples = number::count_of(thread.samples, "sample", "samples");
        match thread.frames.is_empty() {
            true => format!("{name}, {samples}"),
            false => format!("{name} in {}, {samples}", code::text(&thread.frames)),
        }
    });
    let ran: Vec<String> = ran.collect();
    if !ran.is_empty() {
        text += &format!(" Meanwhile ran: {}.", ran.join("; "));
    }
    Some(Block::Sentence(text.into()))
}

/// Says in which code worker processes were while a submitting thread waited for them.
fn workers(code: &Code) -> Option<Block> {
    let workers = code.workers.as_ref()?;
    let shares = workers.samples >= MIN_SAMPLES_FOR_SHARES;
    let lines = workers.code.iter().take(3).map(|line| match shares {
        true => {
            let share = number::share_of(line.samples as i64, workers.samples as i64);
            format!("{share} {}", code::text(&line.frames))
        }
        false => code::text(&line.frames),
    });
    let text = format!(
        "While a submitting thread waited for them, {} were in: {} ({}).",
        number::count_of(workers.processes, "worker process", "worker processes"),
        lines.collect::<Vec<_>>().join(", "),
        number::count_of(workers.samples, "sample", "samples"),
    );
    Some(Block::Sentence(text.into()))
}

/// Says which threads held Python's lock while a submitting thread waited for it.
fn lock(code: &Code) -> Option<Block> {
    let samples: u64 = code.gil.iter().map(|holder| holder.samples).sum();
    let holders = code.gil.iter().take(3).map(|holder| {
        let name = thread_text(holder.thread_name.as_deref(), holder.thread);
        let samples = number::count_of(holder.samples, "sample", "samples");
        match holder.frames.is_empty() {
            true => format!("{name}, {samples}"),
            false => format!("{name} in {}, {samples}", code::text(&holder.frames)),
        }
    });
    let text = format!(
        "In {} of {} a submitting thread waited for the interpreter's lock (GIL), which was held by: {}.",
        number::count(samples),
        number::count_of(code.samples, "sample", "samples"),
        holders.collect::<Vec<_>>().join("; "),
    );
    (samples > 0).then(|| Block::Sentence(text.into()))
}
