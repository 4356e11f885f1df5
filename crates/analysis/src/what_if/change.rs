//! Reads what a user wants to change: `WHAT=VALUE` goes in, a [`Change`] comes out, or a sentence on what is wrong with the text.

use crate::gaps::Cause;
use gapscope_trace::tables::TransferKind;
use wildmatch::WildMatch;

/// A change to a recorded run.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The text from which it was read.
    pub text: String,
    /// The only rank that is changed; `None` for all.
    pub(super) rank: Option<u32>,
    pub(super) what: What,
}

/// What a change is made to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// The times of pieces of the run.
    Time(Target, To),
    /// Of the waits of the host for a device, only each so many-th is kept, and the last.
    WaitEach(u64),
    /// Of the transfers of one kind or of all, only each so many-th is kept, and the last, with their calls and waits.
    TransferEach(Option<TransferKind>, u64),
    /// Transfers run beside kernels: they have a queue of their own.
    OverlapTransfers,
    /// Work of different queues no longer waits for each other.
    IndependentQueues,
}

/// Pieces of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    /// Kernels of these names.
    Kernels(WildMatch),
    /// Work in labels of these texts.
    Labels(WildMatch),
    /// Transfers, of one kind or of all.
    Transfers(Option<TransferKind>),
    /// All work of the devices.
    Device,
    /// Calls of these names.
    Calls(WildMatch),
    /// Calls that hand over work.
    Launches,
    /// Calls that compile or load code.
    Compilation,
    /// The host's time outside of recorded calls.
    Host,
    /// The host's time while a device idled for a cause.
    Idle(Cause),
    /// The host's time in code: a function, or a line of a file.
    Code(Code),
}

/// A place in the code of the program.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Code {
    /// The name of a function, or the end of the path of a file.
    pub(super) name: String,
    /// The line; `None` for a function.
    pub(super) line: Option<u32>,
}

/// A change to a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum To {
    /// So many times as long.
    Factor(f64),
    /// Exactly so long.
    Exactly(i64),
    /// Longer by so much, or shorter, but never less than nothing.
    Longer(i64),
}

impl Code {
    /// Returns the place as the user wrote it.
    pub(super) fn text(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.name),
            None => self.name.clone(),
        }
    }
}

impl To {
    /// Returns what becomes of a time.
    pub(super) fn apply(self, ns: i64) -> i64 {
        match self {
            To::Factor(factor) => (ns as f64 * factor).round() as i64,
            To::Exactly(to_ns) => to_ns,
            To::Longer(by_ns) => ns.saturating_add(by_ns).max(0),
        }
    }
}

/// The forms of `WHAT=VALUE`, for messages and help.
pub const FORMS: &str = "kernel:NAME, label:TEXT, transfer, transfer:host-to-device, device, call:FUNCTION, launch, compile, host, \
     cause:CAUSE or code:FUNCTION or code:FILE:LINE, each with =0, =0.5x, =3us, =+1ms or =-1ms; wait=each10, transfer:d2h=each10, \
     transfer=overlap or queues=independent; each for one rank of several with rank:N. before it";

impl Change {
    /// Returns true for changes to the host's time outside of calls.
    pub(super) fn is_of_host(&self) -> bool {
        let target = match &self.what {
            What::Time(target, _) => target,
            _ => return false,
        };
        matches!(target, Target::Host | Target::Idle(_) | Target::Code(_))
    }

    /// Returns true for changes to transfers.
    pub(super) fn is_of_transfers(&self) -> bool {
        matches!(
            self.what,
            What::Time(Target::Transfers(_), _) | What::TransferEach(..) | What::OverlapTransfers
        )
    }

    /// Returns true for changes after which work runs at other times because of itself or of fewer waits.
    pub(super) fn is_of_work(&self) -> bool {
        match &self.what {
            What::Time(target, _) => matches!(
                target,
                Target::Kernels(_) | Target::Labels(_) | Target::Transfers(_) | Target::Device
            ),
            What::WaitEach(_)
            | What::TransferEach(..)
            | What::OverlapTransfers
            | What::IndependentQueues => true,
        }
    }

    /// Reads a change.
    ///
    /// # Errors
    /// A sentence without a full stop, where the text has another form or a value that cannot be meant.
    pub fn read(text: &str) -> Result<Change, String> {
        let read = || {
            let (rank, rest) = read_rank(text)?;
            Ok((rank, read(rest)?))
        };
        let (rank, what) =
            read().map_err(|problem: String| format!("`{text}` is no change: {problem}"))?;
        Ok(Change {
            text: text.to_owned(),
            rank,
            what,
        })
    }
}

/// Reads the rank before a change, as in `rank:3.host=0.5x`, and returns the rest.
fn read_rank(text: &str) -> Result<(Option<u32>, &str), String> {
    let Some(rest) = text.strip_prefix("rank:") else {
        return Ok((None, text));
    };
    let split = rest.split_once('.');
    let split = split.and_then(|(rank, change)| Some((rank.parse().ok()?, change)));
    match split {
        Some((rank, change)) => Ok((Some(rank), change)),
        None => Err("a rank has a number and a change, such as rank:3.host=0.5x".to_owned()),
    }
}

fn read(text: &str) -> Result<What, String> {
    let split = text.rsplit_once('=');
    let (what, value) = split.ok_or_else(|| format!("write WHAT=VALUE, with one of {FORMS}"))?;
    match (what, value) {
        ("transfer", "overlap") => return Ok(What::OverlapTransfers),
        ("queues", "independent") => return Ok(What::IndependentQueues),
        ("queues", _) => return Err("queues can only be `independent`".to_owned()),
        ("wait", _) => {
            let problem = "waits take `eachN`, where N is 2 or more, such as wait=each10";
            let each = read_each(value).ok_or(problem)?;
            return Ok(What::WaitEach(each));
        }
        ("batch", _) | ("launch", "graph") => {
            let reason = "that changes which kernels run together, which a replay of times cannot know; record a run with it and use `diff`";
            return Err(reason.to_owned());
        }
        _ => {}
    }
    let (noun, name) = what.split_once(':').unwrap_or((what, ""));
    if noun == "transfer" && value.starts_with("each") {
        let problem = "of transfers, `eachN` keeps each N-th, where N is 2 or more, such as transfer:d2h=each10";
        let each = read_each(value).ok_or(problem)?;
        return Ok(What::TransferEach(transfer_kind(name)?, each));
    }
    let to = read_value(value)?;
    let target = match (noun, name) {
        ("transfer", kind) => Target::Transfers(transfer_kind(kind)?),
        ("device", "") => Target::Device,
        ("launch", "") => Target::Launches,
        ("compile", "") => Target::Compilation,
        ("host", "") => Target::Host,
        ("kernel", name) if !name.is_empty() => Target::Kernels(WildMatch::new(name)),
        ("label", name) if !name.is_empty() => Target::Labels(WildMatch::new(name)),
        ("call", name) if !name.is_empty() => Target::Calls(WildMatch::new(name)),
        ("code", place) if !place.is_empty() => Target::Code(read_place(place)),
        ("cause", name) => {
            let cause = Cause::ALL.into_iter().find(|cause| cause.as_str() == name);
            let names = || Cause::ALL.map(|cause| cause.as_str()).join(", ");
            Target::Idle(cause.ok_or_else(|| format!("the causes are {}", names()))?)
        }
        _ => return Err(format!("`{what}` is none of {FORMS}")),
    };
    let is_of_host = matches!(target, Target::Host | Target::Idle(_) | Target::Code(_));
    if is_of_host && !matches!(to, To::Factor(_)) {
        let problem = "the host's time is no single time: give 0 or a factor, such as host=0.5x";
        return Err(problem.to_owned());
    }
    Ok(What::Time(target, to))
}

/// Reads the number of `eachN`, which is 2 or more.
fn read_each(value: &str) -> Option<u64> {
    let number = value.strip_prefix("each")?.parse().ok()?;
    (number >= 2).then_some(number)
}

/// Reads the kind of a transfer, by its name or by the short one that CUDA's tools use; `None` for all kinds, where there is no name.
fn transfer_kind(name: &str) -> Result<Option<TransferKind>, String> {
    if name.is_empty() {
        return Ok(None);
    }
    let short = match name {
        "h2d" => Some(TransferKind::HostToDevice),
        "d2h" => Some(TransferKind::DeviceToHost),
        "d2d" => Some(TransferKind::Copy),
        "p2p" => Some(TransferKind::PeerToPeer),
        _ => None,
    };
    let kinds = TransferKind::ALL.iter().copied();
    let kind = short.or_else(|| kinds.clone().find(|kind| kind.as_str() == name));
    let names = || kinds.map(|kind| kind.as_str()).collect::<Vec<_>>();
    kind.map(Some)
        .ok_or_else(|| format!("the kinds of transfers are {}", names().join(", ")))
}

fn read_place(place: &str) -> Code {
    let line = place.rsplit_once(':');
    let line = line.and_then(|(file, line)| Some((file, line.parse().ok()?)));
    match line {
        Some((file, line)) => Code {
            name: file.to_owned(),
            line: Some(line),
        },
        None => Code {
            name: place.to_owned(),
            line: None,
        },
    }
}

/// The greatest factor, and the longest time, a day, of a change.
const MAX_FACTOR: f64 = 1e6;
const MAX_NS: f64 = 86_400e9;

fn read_value(text: &str) -> Result<To, String> {
    let problem = || format!("`{text}` is no value: write 0, 0.5x, 3us, +1ms or -1ms");
    let number = |text: &str, most: f64| -> Result<f64, String> {
        let number: f64 = text.parse().map_err(|_| problem())?;
        let is_usable = (0.0..=most).contains(&number) && number.is_sign_positive();
        is_usable.then_some(number).ok_or_else(problem)
    };
    let time = |text: &str| -> Result<i64, String> {
        let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
        let unit = units.iter().find(|(unit, _)| text.ends_with(unit));
        let (unit, scale) = unit.ok_or_else(problem)?;
        Ok((number(&text[..text.len() - unit.len()], MAX_NS / scale)? * scale) as i64)
    };
    if let Some(factor) = text.strip_suffix('x') {
        return Ok(To::Factor(number(factor, MAX_FACTOR)?));
    }
    if let Some(by) = text.strip_prefix('+') {
        return Ok(To::Longer(time(by)?));
    }
    if let Some(by) = text.strip_prefix('-') {
        return Ok(To::Longer(-time(by)?));
    }
    match text {
        "0" => Ok(To::Factor(0.0)),
        text => Ok(To::Exactly(time(text)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_factors_are_read() {
        let to = |text: &str| match Change::read(text).unwrap().what {
            What::Time(_, to) => to,
            other => panic!("{other:?}"),
        };
        assert_eq!(to("kernel:gemm*=0.5x"), To::Factor(0.5));
        assert_eq!(to("host=0"), To::Factor(0.0));
        assert_eq!(to("call:cuda*=3us"), To::Exactly(3_000));
        assert_eq!(to("transfer:h2d=+1.5ms"), To::Longer(1_500_000));
        assert_eq!(to("device=-10ns"), To::Longer(-10));
    }

    #[test]
    fn a_change_may_be_of_one_rank() {
        let change = Change::read("rank:3.code:train.py:41=0").unwrap();
        assert_eq!(change.rank, Some(3));
        let code = Target::Code(read_place("train.py:41"));
        assert_eq!(change.what, What::Time(code, To::Factor(0.0)));
    }

    #[test]
    fn kinds_of_transfers_have_short_names() {
        for (text, kind) in [
            ("transfer:h2d=0", TransferKind::HostToDevice),
            ("transfer:d2h=0", TransferKind::DeviceToHost),
            ("transfer:d2d=0", TransferKind::Copy),
            ("transfer:p2p=0", TransferKind::PeerToPeer),
            ("transfer:fill=0", TransferKind::Fill),
        ] {
            let expected = What::Time(Target::Transfers(Some(kind)), To::Factor(0.0));
            assert_eq!(Change::read(text).unwrap().what, expected, "{text}");
        }
        let kept = Change::read("transfer:d2h=each10").unwrap().what;
        let expected = What::TransferEach(Some(TransferKind::DeviceToHost), 10);
        assert_eq!(kept, expected);
    }

    #[test]
    fn a_name_may_hold_an_equals_sign() {
        let change = Change::read("kernel:f<n=3>=2x").unwrap();
        let name = WildMatch::new("f<n=3>");
        let expected = What::Time(Target::Kernels(name), To::Factor(2.0));
        assert_eq!(change.what, expected);
    }

    #[test]
    fn a_line_of_a_file_and_a_function_are_places() {
        let line = read_place("train.py:41");
        assert_eq!((line.name.as_str(), line.line), ("train.py", Some(41)));
        let function = read_place("Model.forward");
        assert_eq!(function.line, None);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_a_sentence() {
        for text in [
            "",
            "kernel",
            "kernel:=0",
            "kernel:a",
            "kernel:a=fast",
            "kernel:a=-x",
            "kernel:a=nanx",
            "host=3us",
            "wait=each1",
            "wait=never",
            "batch=each4",
            "launch=graph",
            "queues=2",
            "cause:boredom=0",
            "transfer:sideways=0",
            "transfer:d2h=each1",
            "transfer=each",
            "kernel:a=1e300x",
            "kernel:a=1000000s",
            "kernel:a=-0x",
            "code:inner=+1ms",
            "device=\u{b5}s",
            "rank:3=0",
            "rank:x.host=0",
            "rank:3.",
            "rank:-1.host=0",
        ] {
            let problem = Change::read(text).unwrap_err();
            assert!(problem.contains("is no change: "), "{problem}");
            assert!(!problem.ends_with('.'), "{problem}");
        }
    }
}
