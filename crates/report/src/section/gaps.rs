//! Makes the section on idle time by cause, with advice. A gap is a time in which a GPU ran nothing between two
//! works.

use super::{Places, bar, code, count, thread_text};
use crate::document::{Block, Table, Text, Tone};
use crate::what_if::gain_text;
use crate::{fit, number};
use gapscope_analysis::Findings;
use gapscope_analysis::cause_note::{CauseNote, is_worth_a_note};
use gapscope_analysis::gaps::{
    AdviceSubject, Cause, Gap, GapBin, GapTotal, HostTime, IdleTime, Pattern, Regularity, Side,
    ThreadAtWork,
};
use gapscope_analysis::what_if::gains::GainSubject;
use gapscope_timeline::busy;
use gapscope_timeline::thresholds::ADVICE_SHARE;
use gapscope_timeline::vocabulary::Words;

/// Makes the section; none where the verdict rests on no time. `places` formats the times at which gaps start.
pub(crate) fn blocks(findings: &Findings, words: &Words, top: usize, places: Places) -> Vec<Block> {
    let idle = &findings.idle_time;
    let Some((window, heading)) = heading(findings) else {
        return Vec::new();
    };
    let mut blocks = vec![heading];
    if findings.gaps.is_empty() {
        blocks.push(Block::Sentence(
            "The GPU was never idle between its first and its last work.".into(),
        ));
        return blocks;
    }
    let share = |gap: &GapTotal| gap.total_ns as f64 / window as f64;
    let counts = |gap: &GapTotal| gap.cause != Cause::Recording;
    let tone = |gap: &GapTotal| Tone::Cause(gap.cause.facts(words.api).family);
    let table = Table::with_rows(&idle.causes)
        .text("cause", |gap| {
            Text::new().strong(gap.cause.facts(words.api).name)
        })
        .number("total", |gap| number::duration(gap.total_ns))
        .number("share", |gap| match counts(gap) {
            true => number::share(share(gap)).into(),
            false => Text::new().faint("left out"),
        })
        .number("gaps", |gap| count(gap.count))
        .number("main cause", |gap| count(gap.main_count))
        .bars(|gap| {
            let share = if counts(gap) { share(gap) } else { 0.0 };
            Text::new().with(tone(gap), bar(share, 12))
        })
        .notes("what to do", |gap| {
            if share(gap) < ADVICE_SHARE {
                return None;
            }
            let CauseNote { code, advice } = CauseNote::new(findings, gap);
            // Of unknown time a sentence below says why it is not known.
            let advice = advice.filter(|_| gap.cause != Cause::Unknown);
            let advice = advice.map(|advice| format!("{advice} ({})", gain(findings, gap.cause)));
            match (code, advice) {
                (Some(code), Some(advice)) => {
                    Some(Text::new().and(code).faint(format!(" · {advice}")))
                }
                (Some(code), None) => Some(code.into()),
                (None, advice) => advice.map(|advice| Text::new().faint(advice)),
            }
        });
    blocks.push(Block::Table(table.build()));
    if let Some(because) = findings.unknown_because() {
        let text = format!("Why the cause of some is unknown: {because}.");
        blocks.push(Block::Sentence(text.into()));
    }
    blocks.extend(patterns(findings));
    blocks.extend(lengths(&idle.histogram));
    let submitting = "Meanwhile the submitting threads were in ";
    blocks.extend(host_time(submitting, &idle.host_calls));
    let others = "Other threads of the program were meanwhile in ";
    blocks.extend(host_time(others, &idle.other_thread_calls));
    blocks.extend(at_work(&idle.threads_at_work));
    blocks.extend(uncertain(idle).map(|text| Block::Sentence(Text::new().faint(text))));
    if idle.below_threshold_count > 0 {
        let text = format!(
            "{} below the threshold, {} in all, are not in the table.",
            number::count_of(idle.below_threshold_count, "gap", "gaps"),
            number::duration(idle.below_threshold_ns),
        );
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
    blocks.extend(longest(findings, words, top.min(5), places));
    blocks
}

/// Says what advice on a cause would bring.
fn gain(findings: &Findings, cause: Cause) -> String {
    let gains = &findings.gains;
    let is_it = |subject: &GainSubject| *subject == GainSubject::Idle(cause);
    match gains.of_advice(AdviceSubject::Idle(cause)) {
        Some(gain) => format!("gain: {}", gain_text(gain.low, gain.mid, gain.high)),
        None if gains.knows(is_it) => format!("gain: below {}", number::Percent(ADVICE_SHARE)),
        None => "gain: not known".to_owned(),
    }
}

/// Returns the time of which idle time is a share, and the heading; `None` where no time was judged.
fn heading(findings: &Findings) -> Option<(i64, Block)> {
    let idle = &findings.idle_time;
    // Shares are of the verdict's time, which excludes idle time that the recording itself caused.
    let window_ns = findings.verdict_evidence.window_ns.filter(|ns| *ns > 0)?;
    let mut gaps = findings.gaps.iter();
    let left_out = gaps.find(|gap| gap.cause == Cause::Recording);
    let left_out_ns = left_out.map_or(0, |gap| gap.total_ns);
    let aside = format!(
        "{} of {} in {}",
        number::share_of(idle.total_ns.saturating_sub(left_out_ns), window_ns),
        number::duration(window_ns),
        number::count_of(idle.gap_count, "gap", "gaps"),
    );
    let heading = Block::Heading("Idle time by cause".into(), aside);
    Some((window_ns, heading))
}

/// Returns the causes with at least the share of the judged time from which on advice is given.
pub(crate) fn large(findings: &Findings) -> Vec<&GapTotal> {
    let window_ns = findings.verdict_evidence.window_ns.unwrap_or(i64::MAX);
    let counts = |gap: &&GapTotal| {
        gap.cause != Cause::Recording && number::ratio(gap.total_ns, window_ns) >= ADVICE_SHARE
    };
    findings.idle_time.causes.iter().filter(counts).collect()
}

/// Makes the part for the first screen: the causes that count, each with its code; none where no cause counts.
pub(crate) fn first(findings: &Findings, words: &Words) -> Vec<Block> {
    let Some((window_ns, heading)) = heading(findings) else {
        return Vec::new();
    };
    let causes = large(findings);
    if causes.is_empty() {
        return Vec::new();
    }
    let tone = |gap: &GapTotal| Tone::Cause(gap.cause.facts(words.api).family);
    let share = |gap: &GapTotal| number::ratio(gap.total_ns, window_ns);
    let table = Table::with_rows(&causes)
        .text("cause", |gap| {
            Text::new().strong(gap.cause.facts(words.api).name)
        })
        .number("total", |gap| number::duration(gap.total_ns))
        .number("share", |gap| number::share(share(gap)))
        .number("gaps", |gap| count(gap.count))
        .bars(|gap| Text::new().with(tone(gap), bar(share(gap), 24)))
        .notes("code", |gap| {
            let note = CauseNote::new(findings, gap);
            // Against what is not known nothing helps: the text in place of advice says why it is not.
            let reason = note.advice.filter(|_| gap.cause == Cause::Unknown);
            note.code.or(reason).map(Text::from)
        });
    vec![heading, Block::Table(table.brief().build())]
}

/// Returns a sentence on how much idle time could have another cause, and the bounds of the verdict's sides (host,
/// waiting, launch, unknown); `None` where the causes are certain.
fn uncertain(idle: &IdleTime) -> Option<String> {
    let Some(ns) = idle.uncertain_ns else {
        return Some(
            "How much of it could have another cause is not known, because the clocks' error is not."
                .to_owned(),
        );
    };
    if ns == 0 {
        return None;
    }
    let mut text = format!(
        "Up to {} of it could have another cause, within the clocks' error",
        number::duration(ns)
    );
    if is_worth_a_note(ns, idle.total_ns) {
        let sides = idle.sides.iter().filter_map(|range| {
            let (least_ns, most_ns) = (range.at_least_ns?, range.at_most_ns?);
            let what = match range.side {
                Side::Host => "the host had not submitted",
                Side::Sync => "host and device, or queues, waited for each other",
                Side::Launch => "the device started or ordered what it had",
                Side::Unknown => "it is not known why,",
            };
            let [least, most] = [least_ns, most_ns].map(number::duration);
            Some(format!("{what} for {least} to {most}"))
        });
        text += &format!(": {}", sides.collect::<Vec<_>>().join(", "));
    }
    Some(text + ".")
}

/// Returns, for each device, a sentence on whether the gaps that carry the idle time are regular.
fn patterns(findings: &Findings) -> Vec<Block> {
    let devices = &findings.idle_time.devices;
    let told = |regularity| regularity != Regularity::Unknown;
    let idle = (devices.iter()).filter(|device| told(device.pattern.regularity));
    let names = busy::names(&findings.devices);
    let sentences = idle.map(|device| {
        let sentence = pattern(&device.pattern);
        let name = names.get(device.device as usize);
        let sentence = match name.filter(|_| devices.len() > 1) {
            Some(name) => format!("{name}: {sentence}"),
            None => sentence,
        };
        Block::Sentence(sentence.into())
    });
    sentences.collect()
}

/// Says at which period gaps come, or how far apart they are.
fn pattern(pattern: &Pattern) -> String {
    let gaps = number::count_of(pattern.gap_count, "gap", "gaps");
    let share = pattern.share.map(number::share);
    let share = share.unwrap_or("an unknown share".to_owned());
    let carry = format!("the longest {gaps} make up {share} of the idle time");
    match (pattern.regularity, pattern.period_ns, pattern.spread_share) {
        (Regularity::Regular, Some(period_ns), Some(spread)) => {
            let each = match pattern.gaps_per_period {
                Some(1) | None => "one".to_owned(),
                Some(several) => several.to_string(),
            };
            format!(
                "The gaps are regular: {each} every {} (±{}); {carry}.",
                number::duration(period_ns),
                number::share(spread),
            )
        }
        _ => {
            let apart = pattern.apart_p25_ns.zip(pattern.apart_p75_ns);
            let apart = apart.map_or(String::new(), |(low_ns, high_ns)| {
                let [low, high] = [low_ns, high_ns].map(number::duration);
                format!(" from one to the next it is mostly {low} to {high};")
            });
            format!("The gaps are irregular:{apart} {carry}.")
        }
    }
}

/// Returns a list of the numbers of gaps by length and their sums, or `None` where lengths do not differ.
fn lengths(histogram: &[GapBin]) -> Option<Block> {
    let bins = histogram.iter().filter(|bin| bin.count > 0).map(|bin| {
        let range = match (bin.from_ns, bin.to_ns) {
            (0, Some(to_ns)) => format!("below {}", edge(to_ns)),
            (from_ns, Some(to_ns)) => format!("of {} to {}", edge(from_ns), edge(to_ns)),
            (from_ns, None) => format!("of {} and more", edge(from_ns)),
        };
        let total = number::duration(bin.total_ns);
        format!("{} {range} ({total})", number::count(bin.count))
    });
    let bins: Vec<String> = bins.collect();
    let text = format!("Gaps by length: {}.", bins.join(", "));
    (bins.len() > 1).then(|| Block::Sentence(text.into()))
}

/// Formats the edge of a bin of lengths, a power of ten.
fn edge(ns: i64) -> String {
    match ns {
        ..1_000_000 => format!("{} µs", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

/// Returns a list of the four calls in which threads were longest while the GPU waited for the submitting thread.
fn host_time(lead: &str, calls: &[HostTime]) -> Option<Block> {
    let mut text = Text::new().and(lead);
    let listed = calls.iter().filter(|call| call.total_ns > 0).take(4);
    let listed: Vec<String> = listed.map(host_call).collect();
    if listed.is_empty() {
        return None;
    }
    text.push(Default::default(), format!("{}.", listed.join(", ")));
    Some(Block::Sentence(text))
}

/// Says what other threads did while the submitting thread was late.
fn at_work(threads: &[ThreadAtWork]) -> Option<Block> {
    let thread = |thread: &ThreadAtWork| {
        let name = thread_text(thread.thread_name.as_deref(), thread.thread);
        let time = number::duration(thread.total_ns);
        format!("{name}, mostly in {} (about {time})", thread.mostly_in)
    };
    let listed: Vec<String> = threads.iter().take(3).map(thread).collect();
    let text = format!(
        "While the submitting thread was late, others were at work: {}.",
        listed.join("; ")
    );
    (!listed.is_empty()).then(|| Block::Sentence(text.into()))
}

/// Formats a call with its time; a call that was not counted stands for code outside of calls.
fn host_call(call: &HostTime) -> String {
    let name = call.function.as_deref().unwrap_or(call.call);
    let time = number::duration(call.total_ns);
    match call.count {
        0 => format!("code {} ({time})", call.call),
        times => {
            let calls = number::count_of(times, "call", "calls");
            format!("{name} ({time}, {calls})")
        }
    }
}

/// Returns the table of the longest gaps, each with the code that ran meanwhile.
fn longest(findings: &Findings, words: &Words, top: usize, places: Places) -> Vec<Block> {
    let gaps = &findings.idle_time.longest;
    if gaps.is_empty() || top == 0 {
        return Vec::new();
    }
    let codes = findings.code.iter().flat_map(|code| &code.longest);
    let codes = codes
        .map(|code| code::of_gap(code))
        .chain(std::iter::repeat(String::new()));
    let rows: Vec<(&Gap, String)> = gaps.iter().zip(codes).take(top).collect();
    let table = Table::with_rows(&rows)
        .number("longest", |(gap, _)| number::duration(gap.duration_ns))
        .number("at", |(gap, _)| places.at(gap.start_ns))
        .word("cause", |(gap, _)| {
            let facts = gap.cause.facts(words.api);
            Text::new().with(Tone::Cause(facts.family), facts.name)
        })
        .spare(1)
        .name("between", |(gap, _)| between(gap))
        .notes("code", |(_, code)| {
            (!code.is_empty()).then(|| code.as_str().into())
        });
    vec![Block::Table(table.build())]
}

/// Names the works before and after a gap.
fn between(gap: &Gap) -> String {
    format!("{}{}{}", gap.before.name, fit::ARROW, gap.after.name)
}
