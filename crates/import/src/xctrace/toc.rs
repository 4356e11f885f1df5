//! Reads the table of contents that `xctrace export --toc` writes.
//!
//! The document lists the runs of a recording with their process, machine, times and tables. It also holds the name
//! of the machine, its UUID and the environment of the target, which are not read.

use super::document::{attribute, name};
use super::root::{DocumentError, Root, root};
use gapscope_trace::manifest::Exit;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::io::BufRead;

/// The table of contents of a recording, which may hold several runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toc {
    /// The runs in order.
    pub runs: Vec<Run>,
}

/// A run of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// The number of the run, counted from 1.
    pub number: u32,
    /// The pid of the recorded process.
    pub pid: Option<u32>,
    /// The name of the process.
    pub process_name: Option<String>,
    /// The arguments of the process as one text.
    pub arguments: Option<String>,
    /// The exit status of the process.
    pub exit_status: Option<i32>,
    /// The reason of the process's end, such as `exit(0)`.
    pub termination_reason: Option<String>,
    /// The operating system and its version.
    pub system: Option<String>,
    /// The model of the machine.
    pub model: Option<String>,
    /// The start of the run as an ISO 8601 date.
    pub start_date: Option<String>,
    /// The duration of the run in nanoseconds.
    pub duration_ns: Option<i64>,
    /// The reason of the run's end, such as `Target app exited`.
    pub end_reason: Option<String>,
    /// The version of Instruments.
    pub instruments_version: Option<String>,
    /// The schemas of the run's tables, one for each table.
    pub tables: Vec<String>,
}

impl Toc {
    /// Reads a table of contents from the text of a file.
    ///
    /// # Errors
    /// The text is torn, not XML, or another document.
    pub fn read(text: impl BufRead) -> Result<Toc, DocumentError> {
        let mut reader = Reader::from_reader(text);
        match root(&mut reader)? {
            Root::Toc => read(&mut reader),
            Root::Tables => Err(DocumentError::Tables),
        }
    }

    /// Returns the last run that has Metal's tables, or else the last run.
    pub fn metal_run(&self) -> Option<&Run> {
        let metal = |run: &&Run| run.tables.iter().any(|table| table.starts_with("metal-"));
        self.runs.iter().rfind(metal).or(self.runs.last())
    }
}

impl Run {
    /// Returns the exit of the process, if the process ended within the recording: the reasons of its end and of the
    /// run's end, where they are given, must be exits.
    pub fn exit(&self) -> Option<Exit> {
        let orderly = self.termination_reason.as_deref();
        let exited = self.end_reason.as_deref();
        let known = orderly.is_none_or(|reason| reason.starts_with("exit"))
            && exited.is_none_or(|reason| reason.contains("exited"));
        self.exit_status.filter(|_| known).map(Exit::Code)
    }
}

/// Reads a table of contents whose root element has been read.
pub(super) fn read<R: BufRead>(reader: &mut Reader<R>) -> Result<Toc, DocumentError> {
    reader.config_mut().expand_empty_elements = true;
    let mut toc = Toc::default();
    let mut path: Vec<String> = Vec::new();
    let mut text = String::new();
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Err(error) => return Err(DocumentError::DamagedToc(error)),
            Ok(Event::Eof) => return Err(DocumentError::TornToc),
            Ok(Event::Start(start)) => {
                text.clear();
                path.push(name(&start).to_owned());
                let at: Vec<&str> = path.iter().map(String::as_str).collect();
                let get = |key: &str| attribute(&start, key).filter(|value| !value.is_empty());
                match (at.as_slice(), toc.runs.last_mut()) {
                    (["run"], _) => toc.runs.push(Run {
                        number: get("number").and_then(|n| n.parse().ok()).unwrap_or(1),
                        ..Run::default()
                    }),
                    (["run", "info", "target", "device"], Some(run)) => {
                        let version = get("os-version").unwrap_or_default();
                        run.system =
                            get("platform").map(|p| format!("{p} {version}").trim().to_owned());
                        run.model = get("model");
                    }
                    (["run", "info", "target", "process"], Some(run)) => {
                        run.pid = get("pid").and_then(|pid| pid.parse().ok());
                        run.process_name = get("name");
                        run.arguments = get("arguments");
                        run.exit_status = get("return-exit-status").and_then(|s| s.parse().ok());
                        run.termination_reason = get("termination-reason");
                    }
                    (["run", "data", "table"], Some(run)) => run.tables.extend(get("schema")),
                    _ => {}
                }
            }
            Ok(Event::Text(part)) => text.push_str(&part.xml10_content()),
            Ok(Event::End(_)) => {
                let Some(ended) = path.pop() else {
                    return Ok(toc);
                };
                if let (["run", "info", "summary"], Some(run)) = (
                    path.iter()
                        .map(String::as_str)
                        .collect::<Vec<_>>()
                        .as_slice(),
                    toc.runs.last_mut(),
                ) {
                    let value = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
                    match ended.as_str() {
                        "start-date" => run.start_date = value,
                        "duration" => run.duration_ns = value.as_deref().and_then(seconds_to_ns),
                        "end-reason" => run.end_reason = value,
                        "instruments-version" => run.instruments_version = value,
                        _ => {}
                    }
                }
            }
            Ok(_) => {}
        }
    }
}

/// Converts a decimal number of seconds to nanoseconds exactly; further decimals are cut off.
fn seconds_to_ns(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let whole: i64 = whole.parse().ok()?;
    whole
        .checked_mul(1_000_000_000)?
        .checked_add(digits.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_exactly() {
        assert_eq!(seconds_to_ns("6.075493"), Some(6_075_493_000));
        assert_eq!(seconds_to_ns("8"), Some(8_000_000_000));
        assert_eq!(seconds_to_ns("a"), None);
        assert_eq!(seconds_to_ns("99999999999999"), None);
    }
}
