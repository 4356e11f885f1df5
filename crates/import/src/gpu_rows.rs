//! Rows of Chrome's JSON that the user says are those of a GPU, because the file does not say it: a text such as
//! `pid=1,tid=*` goes in, and the rows that it names come out.

use std::str::FromStr;

/// The members of the text, for messages.
const MEMBERS: &str = "write pid=…, tid=…, process=NAME, thread=NAME or cat=… (* stands for any text), and device=N or unit=ns";

/// Rows of a file that are those of a GPU. An event is on such a row where all that is named fits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuRows {
    pub(crate) pid: Option<String>,
    pub(crate) tid: Option<String>,
    pub(crate) process: Option<String>,
    pub(crate) thread: Option<String>,
    pub(crate) category: Option<String>,
    /// The number of the device.
    pub(crate) device: u32,
    pub(crate) unit: TimeUnit,
}

/// The unit of the times of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Nanoseconds,
    /// What the format prescribes.
    #[default]
    Microseconds,
    Milliseconds,
}

impl TimeUnit {
    /// Returns the power of ten of the unit's nanoseconds.
    pub(crate) fn decimals(self) -> i64 {
        match self {
            TimeUnit::Nanoseconds => 0,
            TimeUnit::Microseconds => 3,
            TimeUnit::Milliseconds => 6,
        }
    }
}

impl FromStr for GpuRows {
    type Err = String;

    fn from_str(text: &str) -> Result<GpuRows, String> {
        let mut rows = GpuRows::default();
        for member in text.split(',') {
            let Some((key, value)) = member.trim().split_once('=') else {
                return Err(format!("{member:?} has no value: {MEMBERS}"));
            };
            let pattern = Some(value.to_owned());
            match key {
                "pid" => rows.pid = pattern,
                "tid" => rows.tid = pattern,
                "process" => rows.process = pattern,
                "thread" => rows.thread = pattern,
                "cat" => rows.category = pattern,
                "device" => match value.parse() {
                    Ok(device) => rows.device = device,
                    Err(_) => return Err(format!("device={value} is no number")),
                },
                "unit" => {
                    rows.unit = match value {
                        "ns" => TimeUnit::Nanoseconds,
                        "us" => TimeUnit::Microseconds,
                        "ms" => TimeUnit::Milliseconds,
                        _ => return Err(format!("unit={value} is none of ns, us and ms")),
                    }
                }
                _ => return Err(format!("{key:?} names no rows: {MEMBERS}")),
            }
        }
        let patterns = [
            &rows.pid,
            &rows.tid,
            &rows.process,
            &rows.thread,
            &rows.category,
        ];
        match patterns.iter().all(|pattern| pattern.is_none()) {
            true => Err(format!("no row is named: {MEMBERS}")),
            false => Ok(rows),
        }
    }
}

/// What tells the row of an event. A name that the file does not have is empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub pid: &'a [u8],
    pub tid: &'a [u8],
    pub process: &'a [u8],
    pub thread: &'a [u8],
    pub category: &'a [u8],
}

impl GpuRows {
    /// Returns whether an event is on one of the rows.
    pub(crate) fn has(&self, row: Row) -> bool {
        let fits = |pattern: &Option<String>, text: &[u8]| {
            pattern
                .as_ref()
                .is_none_or(|pattern| fits(pattern.as_bytes(), text))
        };
        fits(&self.pid, row.pid)
            && fits(&self.tid, row.tid)
            && fits(&self.process, row.process)
            && fits(&self.thread, row.thread)
            && fits(&self.category, row.category)
    }
}

/// Returns whether a text fits a pattern, in which `*` stands for any text.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match memchr::memmem::find(rest, part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_any_text_where_they_have_a_star() {
        for (pattern, text, expected) in [
            ("1", "1", true),
            ("1", "12", false),
            ("*", "", true),
            ("GPU*", "GPU 0", true),
            ("*GPU", "my GPU", true),
            ("*GPU*", "a GPU queue", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("aa*a", "aa", false),
            ("", "x", false),
        ] {
            assert_eq!(
                fits(pattern.as_bytes(), text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn a_text_that_names_no_rows_says_what_to_write() {
        assert!("pid=1,tid=*,device=2,unit=ns".parse::<GpuRows>().is_ok());
        for text in [
            "",
            "pid",
            "device=1",
            "gpu=1",
            "pid=1,unit=s",
            "pid=1,device=x",
        ] {
            let error = text.parse::<GpuRows>().unwrap_err();
            assert!(!error.is_empty() && !error.contains('\n'), "{error}");
        }
    }
}
