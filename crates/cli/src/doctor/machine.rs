//! Checks the properties of the machine that recordings need, from facts that [`super::linux`] finds.

use super::check::{Check, Group, Subject};
use super::trial::Reason;
use gapscope_recorder::machine::StacksAllowed;
use gapscope_timeline::quantity;

const GROUP: Group = Group::Machine;
/// The free space below which a check warns: a long recording then fills the disk, and work is lost and counted.
const LOW_SPACE_BYTES: u64 = 1 << 30;

/// The facts about the machine from which the checks follow.
#[derive(Debug, Clone)]
pub struct MachineFacts {
    /// The folder for recordings, and the number of bytes that may be written there, or the reason why none can be.
    pub place: (String, Result<u64, Reason>),
    /// The facts about a program's threads that may be read, or the reason why reading could not be tried.
    pub stacks: Result<StacksAllowed, Reason>,
    /// The kind of container in which this process runs; `None` outside containers.
    pub container: Option<String>,
    /// True if system calls are filtered, false if not; `None` if unknown.
    pub filters: Option<bool>,
}

/// Returns all checks of the machine.
pub fn checks(known: &MachineFacts) -> Vec<Check> {
    let [stacks, running] = stacks(&known.stacks);
    vec![place(known), stacks, running, container(known)]
}

/// Checks whether traces can be written, and whether there is space for them.
fn place(known: &MachineFacts) -> Check {
    let subject = Subject::new(GROUP, "place");
    let (folder, free) = &known.place;
    match free {
        Ok(bytes) if *bytes >= LOW_SPACE_BYTES => {
            subject.ok(format!("{} free in {folder}", quantity::bytes(*bytes)))
        }
        Ok(bytes) => subject
            .limited(
                "a long recording fills the disk; then work is lost, and counted",
                "free some space, or record to another disk with `-o`",
            )
            .found(format!("{} free in {folder}", quantity::bytes(*bytes))),
        Err(why) => subject
            .missing(
                format!("no trace can be written into this folder: {why}"),
                "go to a folder that you may write to, or name one with `-o`",
            )
            .found(folder.clone()),
    }
}

/// Checks whether stacks can be read, of threads that wait and of threads that run.
fn stacks(stacks: &Result<StacksAllowed, Reason>) -> [Check; 2] {
    let subjects = ["stacks", "stacks-running"].map(|id| Subject::new(GROUP, id));
    let allowed = match stacks {
        Ok(allowed) => allowed,
        Err(why) => return subjects.map(|subject| subject.unknown(why.to_string(), "")),
    };
    let [memory, running] = subjects;
    [
        match &allowed.memory {
            Ok(()) => memory.ok("process_vm_readv reads programs that gapscope starts"),
            Err(why) => memory.limited(
                "reports name the code behind idle time only where the hooks see it: stacks cannot be read from outside",
                why.to_string(),
            ),
        },
        match &allowed.running {
            Ok(rate_hz) => running.ok(format!(
                "perf_event_open, {rate_hz} times in a second of a thread's own time"
            )),
            Err(why) => running.limited(
                "native frames of threads that run are not known; those of threads that wait, and Python's, are",
                why.to_string(),
            ),
        },
    ]
}

fn container(known: &MachineFacts) -> Check {
    let filters = match known.filters {
        Some(true) => "system calls are filtered (seccomp)",
        Some(false) => "system calls are not filtered",
        None => "whether system calls are filtered is not known",
    };
    let place = match &known.container {
        Some(kind) => format!("in a container ({kind})"),
        None => "not in a container".to_owned(),
    };
    Subject::new(GROUP, "container").ok(format!("{place}; {filters}"))
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    fn known() -> MachineFacts {
        MachineFacts {
            place: ("/data".to_owned(), Ok(50 << 30)),
            stacks: Ok(StacksAllowed {
                memory: Ok(()),
                running: Ok(199),
            }),
            container: None,
            filters: Some(false),
        }
    }

    fn state(known: &MachineFacts, id: &str) -> State {
        let checks = checks(known);
        checks.iter().find(|check| check.id == id).unwrap().state
    }

    #[test]
    fn a_place_with_little_space_is_limited_and_one_that_is_closed_missing() {
        assert_eq!(state(&known(), "place"), State::Ok);
        let with = |free| MachineFacts {
            place: ("/data".to_owned(), free),
            ..known()
        };
        assert_eq!(state(&with(Ok(5 << 20)), "place"), State::Limited);
        let closed = with(Err("Permission denied".into()));
        assert_eq!(state(&closed, "place"), State::Missing);
    }

    #[test]
    fn what_may_not_be_read_says_what_to_do() {
        let refused = MachineFacts {
            stacks: Ok(StacksAllowed {
                memory: Err(
                    "kernel.yama.ptrace_scope forbids it (EPERM): set it to 1 or lower".into(),
                ),
                running: Err("kernel.perf_event_paranoid is 3: set it to 2".into()),
            }),
            ..known()
        };
        let checks = checks(&refused);
        let mends: Vec<_> = checks[1..3]
            .iter()
            .map(|check| check.mend.clone().unwrap())
            .collect();
        assert!(
            mends[0].contains("set it to 1") && mends[1].contains("set it to 2"),
            "{mends:?}"
        );
        assert!(
            checks[1..3]
                .iter()
                .all(|check| check.state == State::Limited)
        );
    }
}
