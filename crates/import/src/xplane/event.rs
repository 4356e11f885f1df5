//! Decodes the lines (streams and threads) of a plane, which is of a GPU or a part of the host, and their events.

use super::plane::{Fact, Plane};
use crate::protobuf::Message;
use std::borrow::Cow;

/// A line of a plane: the events of a stream or of a thread.
pub(super) struct Line<'a> {
    pub id: i64,
    pub name: Cow<'a, str>,
    /// The time from which the times of its events count.
    pub start_ns: i64,
    message: Message<'a>,
}

/// A decoded event with its times and facts.
pub(super) struct Event<'a> {
    pub name: &'a str,
    pub start_ns: i64,
    pub duration_ns: i64,
    /// The facts of the event, and then those of its kind, with their names.
    pub facts: Vec<(&'a str, Fact<'a>)>,
}

/// The reason why an event is not imported.
pub(super) enum Odd {
    /// The time of the event is out of range.
    Impossible,
    /// The event counts occurrences and has no time.
    Aggregate,
}

impl<'a> Line<'a> {
    /// Decodes a line without its events. A line without a name gets the one that the profiler shows.
    pub fn parse(message: Message<'a>) -> Line<'a> {
        let mut line = Line {
            id: 0,
            name: Cow::Borrowed(""),
            start_ns: 0,
            message,
        };
        let mut shown = None;
        for (number, value) in message.fields() {
            match number {
                1 => line.id = value.signed(),
                2 => line.name = value.text(),
                3 => line.start_ns = value.signed(),
                11 => shown = Some(value.text()).filter(|text| !text.is_empty()),
                _ => {}
            }
        }
        if line.name.is_empty() {
            line.name = shown.unwrap_or_default();
        }
        line
    }

    /// Returns the undecoded events.
    pub fn events(&self) -> impl Iterator<Item = Message<'a>> {
        let fields = self.message.fields().filter(|(number, _)| *number == 4);
        fields.filter_map(|(_, value)| value.message())
    }

    /// Decodes an event of the line, whose names and texts `plane` has.
    pub fn event<'p>(&self, message: Message<'p>, plane: &'p Plane<'p>) -> Result<Event<'p>, Odd> {
        let (mut id, mut offset_ps, mut duration_ps) = (0, 0, 0);
        let mut aggregate = false;
        let mut facts = Vec::new();
        for (number, value) in message.fields() {
            match (number, value.message()) {
                (1, _) => id = value.signed(),
                (2, _) => offset_ps = value.signed(),
                (3, _) => duration_ps = value.signed(),
                (4, Some(stat)) => facts.extend(plane.stat(stat)),
                (5, _) => aggregate = true,
                _ => {}
            }
        }
        if aggregate {
            return Err(Odd::Aggregate);
        }
        let metadata = plane.event(id);
        let shared = metadata.into_iter().flat_map(|metadata| &metadata.stats);
        facts.extend(shared.filter_map(|stat| plane.stat(*stat)));
        // Starts and ends are rounded down alike, so that adjacent events stay adjacent.
        let end_ps = offset_ps.checked_add(duration_ps).ok_or(Odd::Impossible)?;
        let at = |ps: i64| self.start_ns.checked_add(ps.div_euclid(1000));
        let (start_ns, end_ns) = (at(offset_ps), at(end_ps));
        let (Some(start_ns), Some(end_ns)) = (start_ns, end_ns) else {
            return Err(Odd::Impossible);
        };
        let duration_ns = end_ns.checked_sub(start_ns).filter(|_| duration_ps >= 0);
        Ok(Event {
            name: metadata.map_or("", |metadata| &metadata.name),
            start_ns,
            duration_ns: duration_ns.ok_or(Odd::Impossible)?,
            facts,
        })
    }
}

impl Event<'_> {
    /// Returns the fact with a name; `None` if the event lacks it.
    pub fn fact(&self, name: &str) -> Option<&Fact<'_>> {
        let found = self.facts.iter().find(|(key, _)| *key == name)?;
        Some(&found.1)
    }

    /// Returns the text of the fact with a name, if the fact is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fact(name)?.text()
    }

    /// Returns the number of the fact with a name, if the fact is an integer that is not negative.
    pub fn unsigned(&self, name: &str) -> Option<u64> {
        self.fact(name)?.unsigned()
    }
}

/// Returns the value of a fact that the plane itself has, by its name; `None` if it lacks the fact.
pub(super) fn own_fact<'a>(plane: &Plane<'a>, name: &str) -> Option<Fact<'a>> {
    let mut facts = plane.own_stats.iter().filter_map(|stat| plane.stat(*stat));
    facts.find(|(key, _)| *key == name).map(|(_, fact)| fact)
}
