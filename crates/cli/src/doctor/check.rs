//! The checks of `gapscope doctor` and their results, in the form of its JSON. A check's id and group ([`Subject`])
//! with a result makes a [`Check`]; all checks make [`Examined`].

use gapscope_timeline::vocabulary::capitalized;
use schemars::JsonSchema;
use serde::Serialize;

/// The result of examining a machine.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Examined {
    /// Whether programs of Vulkan, CUDA or Metal can be recorded.
    pub can_record: bool,
    /// All checks. New ones may be added; their ids stay the same.
    pub checks: Vec<Check>,
}

/// A check of something that a recording needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// The stable name, such as `cuda-cupti`.
    pub id: &'static str,
    /// What the check is for.
    pub group: Group,
    /// The result.
    pub state: State,
    /// What was found: a file, a version, names of devices, an amount; `null` for nothing.
    pub found: Option<String>,
    /// A sentence that says what follows for the user; `null` for nothing.
    pub follows: Option<String>,
    /// A sentence that says what to do; `null` when nothing has to be done.
    pub mend: Option<String>,
}

/// What a check is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Recording Vulkan programs.
    Vulkan,
    /// Recording CUDA programs.
    Cuda,
    /// Recording Metal programs.
    Metal,
    /// The machine that records: place for traces, permissions.
    #[serde(rename = "host")]
    Machine,
    /// Programs and packages beside gapscope.
    Programs,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Everything is as it should be.
    Ok,
    /// It exists and offers less than it could.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "Xcode's tools are there or not")
    )]
    Limited,
    /// It does not exist or does not work.
    Missing,
    /// It could not be determined.
    Unknown,
}

/// The group and the id of a check, from which its result makes the check.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    group: Group,
    id: &'static str,
}

impl Subject {
    pub fn new(group: Group, id: &'static str) -> Subject {
        Subject { group, id }
    }

    /// Creates the check that passed.
    pub fn ok(self, found: impl Into<String>) -> Check {
        Check {
            follows: None,
            ..self.other(State::Ok, "", "").found(found)
        }
    }

    /// Creates the check of something that offers less than it could.
    #[cfg(target_os = "linux")]
    pub fn limited(self, follows: impl Into<String>, mend: impl Into<String>) -> Check {
        self.other(State::Limited, follows, mend)
    }

    /// Creates the check of something that does not exist or does not work.
    pub fn missing(self, follows: impl Into<String>, mend: impl Into<String>) -> Check {
        self.other(State::Missing, follows, mend)
    }

    /// Creates the check of something that could not be determined.
    #[cfg(target_os = "linux")]
    pub fn unknown(self, follows: impl Into<String>, mend: impl Into<String>) -> Check {
        self.other(State::Unknown, follows, mend)
    }

    /// Creates the check that was skipped because the check `without` did not pass.
    #[cfg(target_os = "linux")]
    pub fn unasked(self, without: &str) -> Check {
        self.unknown(format!("Not asked without {without}"), "")
    }

    /// Creates the check with a state, its consequence and a remedy.
    pub fn other(self, state: State, follows: impl Into<String>, mend: impl Into<String>) -> Check {
        Check {
            id: self.id,
            group: self.group,
            state,
            found: None,
            follows: Some(sentence(&follows.into())),
            mend: Some(sentence(&mend.into())).filter(|mend| !mend.is_empty()),
        }
    }
}

impl Check {
    /// Sets the text about what was found, such as a file or a version.
    pub fn found(self, found: impl Into<String>) -> Check {
        Check {
            found: Some(found.into()).filter(|found| !found.is_empty()),
            ..self
        }
    }

    /// Returns true if a recording can rely on the checked thing.
    pub fn serves(&self) -> bool {
        matches!(self.state, State::Ok | State::Limited)
    }
}

/// Returns the text with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    match text {
        "" => String::new(),
        // The name of a library keeps its lower-case first letter.
        _ if text.starts_with("lib") => format!("{text}."),
        _ => format!("{}.", capitalized(text)),
    }
}

impl State {
    /// Returns the state as JSON spells it.
    pub fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
            State::Unknown => "unknown",
        }
    }
}

impl Examined {
    /// Concludes from the checks whether this machine can record.
    pub fn from_checks(checks: Vec<Check>) -> Examined {
        let can_record = [Group::Vulkan, Group::Cuda, Group::Metal]
            .into_iter()
            .any(|api| records(&checks, api));
        Examined { can_record, checks }
    }

    /// Returns true if programs of an API can be recorded.
    pub fn records(&self, api: Group) -> bool {
        records(&self.checks, api)
    }
}

/// Returns true if the checks that an API needs pass, and a trace can be written.
fn records(checks: &[Check], api: Group) -> bool {
    let place = checks.iter().find(|check| check.id == "place");
    let serves = |id: &&str| checks.iter().any(|check| check.id == *id && check.serves());
    place.is_none_or(|place| place.state != State::Missing) && needed(api).iter().all(serves)
}

/// Returns the ids of the checks that must pass to record programs of an API.
fn needed(api: Group) -> &'static [&'static str] {
    match api {
        Group::Vulkan => &["vulkan-devices", "vulkan-layer"],
        Group::Cuda => &["cuda-devices", "cuda-library", "cuda-cupti"],
        Group::Metal => &["metal-xctrace"],
        Group::Machine | Group::Programs => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &'static str, state: State) -> Check {
        Subject::new(Group::Machine, id).other(state, "so", "do")
    }

    #[test]
    fn one_whole_way_to_record_is_enough() {
        let vulkan = |layer| {
            let checks = vec![
                check("vulkan-devices", State::Limited),
                check("vulkan-layer", layer),
                check("cuda-devices", State::Missing),
            ];
            Examined::from_checks(checks)
        };
        let whole = vulkan(State::Ok);
        assert!(whole.can_record && whole.records(Group::Vulkan) && !whole.records(Group::Cuda));
        assert!(!vulkan(State::Missing).can_record);
        assert!(!vulkan(State::Unknown).can_record);
        assert!(!Examined::from_checks(Vec::new()).can_record);
    }

    #[test]
    fn without_a_place_for_traces_nothing_is_recorded() {
        let checks = vec![
            check("metal-xctrace", State::Ok),
            check("place", State::Missing),
        ];
        let examined = Examined::from_checks(checks);
        assert!(!examined.can_record && !examined.records(Group::Metal));
    }

    #[test]
    fn what_follows_is_a_sentence() {
        let check = check("x", State::Missing);
        assert_eq!(check.follows.as_deref(), Some("So."));
        assert_eq!(sentence("libcuda.so.1: no"), "libcuda.so.1: no.");
        assert_eq!(sentence(""), "");
    }
}
