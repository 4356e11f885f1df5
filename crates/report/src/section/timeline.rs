//! Makes the section with a picture of the timeline: a line for each device and queue with the busy share of each
//! slice of time, under devices a line with the causes of idle time, an axis of times, and the legend of the causes.

use super::{Places, most, rest};
use crate::document::{Block, Text, Tone};
use crate::{fit, number};
use gapscope_analysis::Findings;
use gapscope_analysis::activity::{Activity, ActivityRow, Slice};
use gapscope_analysis::gaps::Cause;
use gapscope_timeline::Vocabulary;
use gapscope_timeline::busy;
use gapscope_timeline::vocabulary::UNKNOWN_DEVICE;
use gapscope_trace::ids::QueueId;
use std::collections::BTreeSet;

/// The number of columns for the name of a row.
const NAME_COLUMNS: usize = 12;
/// The characters for the busy share of a slice, by eighths.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the number of slices of time that fit a terminal.
pub const fn slices(columns: usize) -> usize {
    // A line has a margin, a name, a blank, the slices, a blank and `busy 100 %`.
    let others = 2 + NAME_COLUMNS + 1 + 1 + 7;
    if columns > others + 20 {
        columns - others
    } else {
        20
    }
}

/// The number of devices on the first screen.
const FIRST_DEVICES: usize = 8;
/// The number of queues on the first screen, where one device has several.
const FIRST_QUEUES: usize = 3;
/// The number of notes on the verdict and of causes of idle time up to which the first screen has queues.
const MAX_BESIDE_QUEUES: usize = 4;

/// Makes the section, with times that `places` formats; none without rows of activity. Of devices and of queues it has the `top` that
/// were busy for longest.
pub(crate) fn blocks(
    findings: &Findings,
    names: &Vocabulary,
    activity: &Activity,
    top: usize,
    places: Places,
) -> Vec<Block> {
    picture(findings, names, activity, [top, top], places)
}

/// Makes the part for the first screen: few devices, or one with few queues. A report that says much else has no queues there.
pub(crate) fn first(
    findings: &Findings,
    names: &Vocabulary,
    activity: &Activity,
    places: Places,
) -> Vec<Block> {
    let devices = activity.rows.iter().filter(|row| row.queue_id.is_none());
    let says_much =
        findings.headline.len() + super::gaps::large(findings).len() > MAX_BESIDE_QUEUES;
    let queues = match devices.count() {
        1 if !says_much => FIRST_QUEUES,
        _ => 0,
    };
    let mut blocks = picture(findings, names, activity, [FIRST_DEVICES, queues], places);
    blocks.truncate(2);
    blocks
}

/// Makes the picture under its heading, and says how many devices and queues it lacks. `top` is the number of devices and of queues.
fn picture(
    findings: &Findings,
    names: &Vocabulary,
    activity: &Activity,
    top: [usize; 2],
    places: Places,
) -> Vec<Block> {
    let Some(longest) = activity.rows.iter().map(|row| row.slices.len()).max() else {
        return Vec::new();
    };
    let span = activity.window.length_ns();
    let devices = busy::names(&findings.devices);
    let mut lines = Vec::new();
    let (of_devices, of_queues): (Vec<&ActivityRow>, Vec<&ActivityRow>) =
        (activity.rows.iter()).partition(|row| row.queue_id.is_none());
    let busiest = |rows: Vec<&ActivityRow>, top: usize| -> Vec<ActivityKey> {
        let shown = most(&rows, top, |row| {
            row.slices.iter().map(|slice| slice.busy_ns).sum()
        });
        shown.into_iter().map(|at| key(rows[at])).collect()
    };
    let counts = [of_devices.len(), of_queues.len()];
    let devices_shown = busiest(of_devices, top[0]);
    let queues_shown = busiest(of_queues, top[1]);
    let is_shown = |row: &&ActivityRow| match row.queue_id {
        None => devices_shown.contains(&key(row)),
        Some(_) => queues_shown.contains(&key(row)),
    };
    let mut drawn = BTreeSet::new();
    for row in activity.rows.iter().filter(is_shown) {
        lines.push(busy_line(&devices, names, row));
        if row.queue_id.is_none() && row.slices.iter().any(|s| drawn_cause(s).is_some()) {
            lines.push(idle_line(names, row));
            drawn.extend(row.slices.iter().filter_map(drawn_cause));
        }
    }
    lines.push(axis(places, activity.window.start_ns, span, longest));
    lines.extend(legend(findings, names, &drawn, longest));
    let slice = number::duration(span / longest.max(1) as i64);
    let mut blocks = vec![
        Block::Heading(
            "Timeline".into(),
            format!("a column is {slice}; right: busy share"),
        ),
        Block::Picture(lines),
    ];
    rest(&mut blocks, counts[0], devices_shown.len(), "devices");
    rest(
        &mut blocks,
        counts[1],
        queues_shown.len(),
        names.words().queue.many,
    );
    blocks
}

/// The device and the queue of a row.
type ActivityKey = (u32, Option<QueueId>);

fn key(row: &ActivityRow) -> ActivityKey {
    (row.device, row.queue_id)
}

/// Draws the busy share of each slice, after the name of the device or queue.
fn busy_line(devices: &[String], names: &Vocabulary, row: &ActivityRow) -> Text {
    let name = match row.queue_id {
        None => match devices.get(row.device as usize) {
            Some(name) => short(&fit::clean(name)).to_owned(),
            None => UNKNOWN_DEVICE.to_owned(),
        },
        Some(id) => fit::clean(&names.queue(id)).into_owned(),
    };
    let name = fit::clip(&name, NAME_COLUMNS);
    let padding = " ".repeat(NAME_COLUMNS + 1 - fit::width(&name));
    let mut line = Text::new().and(format!("{name}{padding}"));
    for slice in &row.slices {
        line.push(Tone::Good, glyph(slice).to_string());
    }
    let busy: i64 = row.slices.iter().map(|s| s.busy_ns).sum();
    let length: i64 = row.slices.iter().map(|s| s.length_ns).sum();
    line.and(format!(" {:>7}", number::share_of(busy, length)))
}

/// Returns a device's name without the parentheses that drivers put behind it.
fn short(name: &str) -> &str {
    match name.split_once(" (") {
        Some((short, _)) if !short.is_empty() => short,
        _ => name,
    }
}

/// Returns the character for a slice's busy share; a blank only where nothing ran.
fn glyph(slice: &Slice) -> char {
    if slice.busy_ns <= 0 {
        return ' ';
    }
    let share = slice.busy_ns as f64 / slice.length_ns.max(1) as f64;
    let level = (share * 8.0).round().clamp(1.0, 8.0) as usize;
    LEVELS[level - 1]
}

/// Draws the letter of the main cause under each slice that is idle for at least a tenth of its length.
fn idle_line(names: &Vocabulary, row: &ActivityRow) -> Text {
    let title = "idle by";
    let mut line = Text::new().faint(format!("{title:width$}", width = NAME_COLUMNS + 1));
    for slice in &row.slices {
        match drawn_cause(slice) {
            Some(cause) => {
                let facts = cause.facts(names.words().api);
                line.push(Tone::Cause(facts.family), facts.letter.to_string());
            }
            None => line.push(Tone::Plain, " "),
        }
    }
    line
}

/// Returns the cause whose letter stands under a slice, where that is idle for at least a tenth of its length.
fn drawn_cause(slice: &Slice) -> Option<Cause> {
    let idle_ns = slice.length_ns - slice.busy_ns;
    slice.idle_cause.filter(|_| idle_ns * 10 >= slice.length_ns)
}

/// Returns lines that say what the drawn letters stand for, the causes with most idle time first.
fn legend(
    findings: &Findings,
    names: &Vocabulary,
    drawn: &BTreeSet<Cause>,
    columns: usize,
) -> Vec<Text> {
    const GUTTER: usize = 3;
    let causes = findings.idle_time.causes.iter().map(|total| total.cause);
    let causes = causes.filter(|cause| drawn.contains(cause));
    // The lines are as wide as those of the picture, with the shares at their end.
    let room = NAME_COLUMNS + 1 + columns + 8;
    let mut lines: Vec<Text> = Vec::new();
    for cause in causes {
        let facts = cause.facts(names.words().api);
        let width = fit::width(facts.name) + 2;
        let line = match lines.last_mut() {
            Some(line) if line.width() + GUTTER + width <= room => {
                line.push(Tone::Plain, " ".repeat(GUTTER));
                line
            }
            _ => {
                lines.push(Text::new());
                let last = lines.len() - 1;
                &mut lines[last]
            }
        };
        line.push(Tone::Cause(facts.family), facts.letter.to_string());
        line.push(Tone::Faint, format!(" {}", facts.name));
    }
    lines
}

/// Draws times at the ends and in the middle.
fn axis(places: Places, from: i64, span: i64, columns: usize) -> Text {
    let mut marks = vec![(0, places.at(from))];
    let middle = places.at(from.saturating_add(span / 2));
    let end = places.at(from.saturating_add(span));
    if columns >= 40 {
        marks.push((columns / 2, middle));
    }
    marks.push((columns.saturating_sub(fit::width(&end)), end));
    let mut line = String::new();
    let mut used = 0;
    for (at, text) in marks {
        line.push_str(&" ".repeat(at.saturating_sub(used)));
        used = at + fit::width(&text);
        line.push_str(&text);
    }
    Text::new().faint(format!("{}{line}", " ".repeat(NAME_COLUMNS + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_height_of_a_slice_is_its_busy_share() {
        let glyph = |busy_ns| {
            super::glyph(&Slice {
                length_ns: 1000,
                busy_ns,
                idle_cause: None,
            })
        };
        assert_eq!(glyph(0), ' ');
        assert_eq!(glyph(1), '▁');
        assert_eq!(glyph(500), '▄');
        assert_eq!(glyph(1000), '█');
    }

    #[test]
    fn the_picture_fits_the_terminal() {
        for columns in [60, 80, 120] {
            assert_eq!(2 + NAME_COLUMNS + 1 + slices(columns) + 1 + 7, columns);
        }
    }
}
