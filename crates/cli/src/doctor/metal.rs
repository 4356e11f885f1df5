//! Checks Apple's tools, which recording Metal programs needs: xctrace for timelines, gpucapture for captures.

use super::check::{Check, Group, Subject};
use gapscope_metal::{Error, GpuCapture, Xctrace};

const GROUP: Group = Group::Metal;

/// Returns all checks of Metal; empty on a system that does not record Metal.
pub fn checks() -> Vec<Check> {
    match crate::record_metal::applies() {
        true => vec![
            xctrace(Xctrace::find().version()),
            gpucapture(GpuCapture::find().map(|_| ())),
        ],
        false => Vec::new(),
    }
}

fn xctrace(version: Result<String, Error>) -> Check {
    let subject = Subject::new(GROUP, "metal-xctrace");
    match version {
        Ok(version) => subject.ok(version),
        Err(error) => subject.missing(
            format!("Metal programs cannot be recorded: {error}"),
            "install Xcode and start it once: the command line tools alone have no xctrace",
        ),
    }
}

fn gpucapture(found: Result<(), Error>) -> Check {
    let subject = Subject::new(GROUP, "metal-gpucapture");
    match found {
        Ok(()) => subject.ok("gpucapture"),
        Err(error) => subject.missing(
            format!("`gapscope record --gputrace` captures nothing: {error}"),
            "use macOS 27 or newer for it; recording does not need it",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn a_mac_without_xcode_records_nothing() {
        let check = xctrace(Xctrace::at("/nowhere/xctrace").version());
        assert_eq!(check.state, State::Missing);
        assert!(check.follows.unwrap().contains("install Xcode"));
        let version = Ok("xctrace version 27.2".to_owned());
        assert_eq!(xctrace(version).state, State::Ok);
        let none = gpucapture(GpuCapture::at("/nowhere/gpucapture").map(|_| ()));
        assert_eq!(none.state, State::Missing);
    }
}
