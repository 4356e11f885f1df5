//! Turns the times of devices into the verdict and the sentences of its evidence. The functions that return texts
//! return them as ends or parts of sentences, unless they say otherwise.

use super::times::Times;
use crate::bound::{Bound, Evidence, VerdictPart};
use crate::fill::DeviceFill;
use crate::gaps::{Cause, GapTotal, Side};
use gapscope_timeline::quantity::{Nanoseconds, Percent, ratio};
use gapscope_timeline::thresholds::{
    ADVICE_SHARE, COMMUNICATION_SHARE, DEVICE_SHARE, IDLE_SHARE, TRANSFER_SHARE, UNKNOWN_SHARE,
};
use gapscope_trace::manifest::Api;
use std::cmp::Reverse;

/// What work without known times may have done while kernels computed.
const BESIDE_KERNELS: &str = " may have run beside the kernels";

impl Times<'_> {
    /// Returns the verdict, and the evidence for it.
    pub(crate) fn verdict(&self) -> (Bound, Evidence) {
        let bound = Bound::from_times(self);
        if self.window_ns == 0 {
            let sentence = "No GPU work has known times, so nothing can be said about what bounds the program.";
            let evidence = Evidence {
                sentence: sentence.to_owned(),
                ..Evidence::default()
            };
            return (bound, evidence);
        }
        let parts = self.parts();
        let (bound, sentence) = self.hedged(bound, self.sentence(bound, &parts));
        let evidence = Evidence {
            sentence,
            window_ns: Some(self.window_ns),
            parts,
        };
        (bound, evidence)
    }

    /// Returns what sentences call the device or devices.
    fn device(&self) -> &'static str {
        match self.several() {
            true => "the devices",
            false => "the device",
        }
    }

    /// Returns the parts of the time that are above 0, the largest first.
    fn parts(&self) -> Vec<VerdictPart> {
        let device = self.device();
        let at_least = |unsure: bool| if unsure { "at least, " } else { "" };
        let busy = &self.busy;
        let overlapped = match busy.overlapped_ns {
            0 => String::new(),
            ns => format!("; {} more overlapped with computing", Nanoseconds(ns)),
        };
        let hidden = match self.has_hidden_peers {
            true => {
                "; that includes waiting for other ranks, and the trace does not show for how long"
            }
            false => "",
        };
        let communicated = format!(
            "{}{device} communicated and computed nothing{overlapped}{hidden}",
            at_least(busy.unsure_communication)
        );
        let waited = "devices waited in collectives or receives for another device to come, as far as start and end times show";
        let moved = format!(
            "{}{device} ran transfers and nothing else",
            at_least(busy.unsure_transfer)
        );
        let [sync, launch] = [Side::Sync, Side::Launch].map(|side| self.causes_of(side));
        let sync = format!("{device} idled at synchronisation: {sync}");
        let launch = format!("{device} idled with work submitted: {launch}");
        let unknown = self.unmeasured();
        let mut parts = vec![
            self.part("compute", busy.compute_ns, self.computed()),
            self.part("communication", self.communication_ns(), communicated),
            self.part("peers", self.peers_ns, waited.to_owned()),
            self.part("transfer", busy.transfer_ns, moved),
            self.part("host", self.host_ns, self.waited_for_host()),
            self.part("sync", self.sync_ns, sync),
            self.part("launch", self.launch_ns, launch),
            self.part("imbalance", self.imbalance_ns, self.imbalance()),
            self.part("unknown", self.unmeasured_ns(), unknown),
        ];
        parts.retain(|part| part.total_ns > 0);
        parts.sort_by_key(|part| Reverse(part.total_ns));
        parts
    }

    /// Makes a part of its name in JSON, its time and the words that follow the time.
    fn part(&self, what: &'static str, total_ns: i64, text: String) -> VerdictPart {
        let share = self.share(total_ns);
        VerdictPart {
            what,
            total_ns,
            share,
            sentence: format!("{} ({}) {text}.", Nanoseconds(total_ns), Percent(share)),
            clause: self.clause(&text),
        }
    }

    /// Returns the words on a part of the time without their details, and with a pronoun for the device.
    fn clause(&self, text: &str) -> String {
        let pronoun = match self.several() {
            true => "they",
            false => "it",
        };
        // A doubt about what ran is no detail; that other work may have run beside kernels, which ran, is.
        let from = text.find(" may have ");
        let from = from.filter(|at| !text[*at..].starts_with(BESIDE_KERNELS));
        let from = from.unwrap_or(0);
        let end = text[from..].find([';', ':']);
        let text = &text[..end.map_or(text.len(), |end| from + end)];
        let (lead, subject) = match text.strip_prefix("at least, ") {
            Some(subject) => ("at least, ", subject),
            None => ("", text),
        };
        match subject.strip_prefix(self.device()) {
            Some(rest) => format!("{lead}{pronoun}{rest}"),
            None => text.to_owned(),
        }
    }

    /// Returns the verdict with its main number in a whole sentence.
    fn sentence(&self, bound: Bound, parts: &[VerdictPart]) -> String {
        let percent = |ns: i64| Percent(self.share(ns));
        let (device, was) = match self.several() {
            true => ("The devices", "were"),
            false => ("The device", "was"),
        };
        let for_share = |did: &str, ns| format!("{did} for {} of the time.", percent(ns));
        if let Some(path) = self.path.as_ref().filter(|_| bound != Bound::Unknown) {
            let path = path.sentence(bound, path.parts());
            let waited = percent(self.peers_ns);
            return format!(
                "{path} As far as start and end times show, devices wait in communication for others for {waited} of the time."
            );
        }
        match bound {
            Bound::Unknown if self.busy.doubtful_ns > self.busy.whole_ns.max(self.unknown_ns) => {
                let rest = match self.unknown_ns {
                    0 => String::new(),
                    ns => format!(
                        "; for {} of the time nothing that was measured ran",
                        percent(ns)
                    ),
                };
                format!(
                    "What {} ran is not known for {} of the time: work without known times may have run beside {}{rest}.",
                    self.device(),
                    percent(self.busy.doubtful_ns),
                    self.doubtful()
                )
            }
            Bound::Unknown if self.busy.whole_ns > self.unknown_ns => {
                let whole_ns = self.busy.whole_ns;
                let most_ns = self.window_ns - self.idle_ns();
                let busy = match most_ns - whole_ns {
                    0 => format!("for at most {}", percent(most_ns)),
                    least_ns => format!("for {} to {}", percent(least_ns), percent(most_ns)),
                };
                format!(
                    "{device} {was} busy {busy} of the time: {} are timed as a whole, and inside of them {} may have idled.",
                    self.whole(),
                    self.device()
                )
            }
            Bound::Unknown => format!(
                "Nothing that was measured ran on {} for {} of the time, and the trace does not say why.",
                self.device(),
                percent(self.unknown_ns)
            ),
            Bound::HostBound => {
                let to_submit = match self.waited_for_functions() {
                    true => "",
                    false => " to submit",
                };
                let waited = format!("{device} waited for the host{to_submit}");
                for_share(&waited, self.host_ns)
            }
            Bound::SyncBound if ratio(self.display_ns(), self.sync_ns) >= IDLE_SHARE => for_share(
                &format!("{device} waited for the display"),
                self.display_ns(),
            ),
            Bound::SyncBound if self.peers_ns > self.sync_ns => for_share(
                &format!("{device} waited in communication for another device"),
                self.peers_ns,
            ),
            Bound::SyncBound => {
                for_share(&format!("{device} idled at synchronisation"), self.sync_ns)
            }
            Bound::CommunicationBound
                if self.share(self.communication_ns()) >= COMMUNICATION_SHARE
                    && !self.awaits_communication() =>
            {
                let hidden = match self.has_hidden_peers {
                    true => {
                        " That includes waiting for other ranks: open the traces of all ranks together to see for how long."
                    }
                    false => "",
                };
                format!(
                    "{device} communicated, and computed nothing meanwhile, for {} of the time; communication overlapped with computing for {}.{hidden}",
                    percent(self.communication_ns()),
                    percent(self.busy.overlapped_ns)
                )
            }
            Bound::CommunicationBound => match self.pacing_communication() {
                Some(pace) => self.paced("communication", &pace),
                None => self.beside(
                    device,
                    "communicated",
                    self.nearly_exposed_communication_ns(),
                ),
            },
            Bound::TransferBound
                if self.share(self.busy.transfer_ns) >= TRANSFER_SHARE
                    && !self.awaits_transfers() =>
            {
                let moved = format!("{device} ran transfers and nothing else");
                for_share(&moved, self.busy.transfer_ns)
            }
            Bound::TransferBound => match self.pacing_transfers() {
                Some(pace) => self.paced("transfers", &pace),
                None => self.beside(device, "moved data", self.nearly_exposed_transfer_ns()),
            },
            Bound::LatencyBound => self.latency(device),
            Bound::DeviceBound if self.saturated_device().is_some() => {
                (self.saturated_device()).map_or_else(String::new, |path| self.saturated(path))
            }
            Bound::DeviceBound => {
                let busy_ns = self.window_ns - self.idle_ns() - self.busy.whole_ns;
                let at_least = match self.busy.whole_ns {
                    0 => "",
                    _ => " at least",
                };
                for_share(&format!("{device} {was} busy{at_least}"), busy_ns)
            }
            Bound::Mixed if self.share(self.imbalance_ns) >= IDLE_SHARE => {
                let idled = match self.several() {
                    true => "Some devices had no work while another had",
                    false => "The device had no work while another had",
                };
                for_share(idled, self.imbalance_ns)
            }
            Bound::Mixed => {
                let mut shares: Vec<String> = (parts.iter().take(3))
                    .map(|part| format!("{} {}", part.what, Percent(part.share)))
                    .collect();
                // A reader takes what has more than half for the cause.
                let most = parts.first().filter(|part| part.share >= IDLE_SHARE);
                let needed = most.and_then(VerdictPart::needed);
                if let (Some(share), Some((bound, needed))) = (shares.first_mut(), needed) {
                    *share += &format!(" ({bound} begins at {})", Percent(needed));
                }
                format!("No single cause bounds the speed: {}.", shares.join(", "))
            }
        }
    }

    /// Returns the whole sentence on a latency-bound device: whichever of starting work and underfilling it took
    /// `ADVICE_SHARE` of the time.
    fn latency(&self, device: &str) -> String {
        let it = if self.several() { "them" } else { "it" };
        let filled =
            format!("kernels that could fill less than a quarter of {it}: too little work at once");
        let underfilled_ns = self.underfilled_ns();
        let [launch, underfilled] = [self.launch_ns, underfilled_ns].map(|ns| self.share(ns));
        let busy_ns = self.window_ns - self.idle_ns();
        match (launch >= ADVICE_SHARE, underfilled >= ADVICE_SHARE) {
            (true, true) => format!(
                "{device} spent {} of the time on starting and ordering work, and {} on {filled}.",
                Percent(launch),
                Percent(underfilled)
            ),
            (false, true) => format!(
                "{device} spent {} of the time on {filled}.",
                Percent(underfilled)
            ),
            _ => format!(
                "{device} spent {} of the time on starting and ordering work, and {} on the work.",
                Percent(launch),
                Percent(self.share(busy_ns))
            ),
        }
    }

    /// Returns what the API calls work that is timed as a whole.
    fn whole(&self) -> &'static str {
        match self.api {
            Api::Cuda | Api::Hip => "graphs",
            Api::Vulkan | Api::Metal | Api::Unknown => "command buffers",
        }
    }

    /// Returns what the unknown part was: time inside of work that is timed as a whole, idle time without a known
    /// cause, or both.
    fn unmeasured(&self) -> String {
        let device = self.device();
        let idled =
            format!("nothing that was measured ran on {device}, and the trace does not say why");
        let ran = format!(
            "{} ran that are timed as a whole, and whether {device} worked or idled inside of them is not in the trace",
            self.whole()
        );
        let beside = format!(
            "work without known times may have run beside {}",
            self.doubtful()
        );
        let texts = [
            (self.busy.doubtful_ns, beside),
            (self.busy.whole_ns, ran),
            (self.unknown_ns, idled),
        ];
        let texts: Vec<_> = texts.into_iter().filter(|(ns, _)| *ns > 0).collect();
        match texts.as_slice() {
            [(_, only)] => only.clone(),
            several => {
                let parts = several
                    .iter()
                    .map(|(ns, text)| format!("for {} {text}", Nanoseconds(*ns)));
                let parts = parts.collect::<Vec<_>>().join("; ");
                format!("what {device} did is not known: {parts}")
            }
        }
    }

    /// Returns what ran while work without known times may have run.
    fn doubtful(&self) -> &'static str {
        match (self.busy.unsure_communication, self.busy.unsure_transfer) {
            (true, false) => "communication",
            (false, true) => "transfers",
            _ => "transfers or communication",
        }
    }

    /// Returns what the compute part was, and how much of it may have been something else, since some work is timed
    /// as a whole.
    fn computed(&self) -> String {
        let busy = &self.busy;
        let whole = self.whole();
        let (instead, also) = match (busy.unsure_communication, busy.unsure_transfer) {
            (true, true) => (
                "communicated or moved data",
                "computed, communicated or moved data",
            ),
            (true, false) => ("communicated", "computed or communicated"),
            (false, _) => ("moved data", "computed or moved data"),
        };
        let device = self.device();
        let mut text = match busy.unsure_ns {
            0 => format!("{device} computed"),
            ns if ns == busy.compute_ns => {
                format!("{device} {also}: {whole} with both are timed as a whole")
            }
            ns => format!(
                "{device} computed; for {} of that it may have {instead}: {whole} with both are timed as a whole",
                Nanoseconds(ns)
            ),
        };
        text.extend(self.filled());
        if busy.beside_compute_ns > 0 {
            text += &format!(
                "; of this, for {} ({} of the time), work without known times{BESIDE_KERNELS}",
                Nanoseconds(busy.beside_compute_ns),
                Percent(self.share(busy.beside_compute_ns))
            );
        }
        if busy.communication_ns == 0 && busy.overlapped_ns > 0 {
            let overlapped = Nanoseconds(busy.overlapped_ns);
            text += &format!("; all communication, {overlapped}, overlapped with that");
        }
        text
    }

    /// Returns how much of the devices the kernels filled, as the end of a sentence, where that is little or unknown.
    fn filled(&self) -> Option<String> {
        let sum = |of: fn(&DeviceFill) -> i64| {
            (self.fill.iter()).fold(0i64, |sum, fill| sum.saturating_add(of(fill)))
        };
        let counts = |ns: i64| self.share(ns) >= ADVICE_SHARE;
        let computed = |ns: i64| Percent(ratio(ns, self.busy.compute_ns));
        let (their, it) = match self.several() {
            true => ("their", "them"),
            false => ("its", "it"),
        };
        let underfilled_ns = self.underfilled_ns();
        if counts(underfilled_ns) {
            let used: f64 = (self.fill.iter())
                .filter_map(|fill| {
                    Some(fill.underfilled_mean_multiprocessors? * fill.underfilled_ns? as f64)
                })
                .sum();
            let sizes = || self.fill.iter().filter_map(|fill| fill.multiprocessors);
            let average = match (sizes().min(), sizes().max()) {
                (Some(size), Some(greatest)) if size == greatest => format!(
                    ": {:.1} of {size} multiprocessors on average",
                    used / underfilled_ns as f64
                ),
                _ => String::new(),
            };
            return Some(format!(
                "; for {} of that {their} kernels filled less than a quarter of {it}{average}",
                computed(underfilled_ns)
            ));
        }
        // Other APIs rarely tell the size of the device: nothing is said where it is not known.
        let sized = matches!(self.api, Api::Cuda | Api::Hip)
            || self.fill.iter().any(|fill| fill.multiprocessors.is_some());
        let unknown_ns = sum(|fill| fill.computing_ns - fill.known_ns.unwrap_or(0));
        (sized && counts(unknown_ns)).then(|| {
            let unknown = format!("; how much of {it} {their} kernels filled is unknown");
            match sum(|fill| fill.known_ns.unwrap_or(0)) {
                0 => unknown,
                _ => format!("{unknown} for {} of that", computed(unknown_ns)),
            }
        })
    }

    /// Returns that devices had no work, with the busy time of the devices.
    fn imbalance(&self) -> String {
        if !self.several() {
            return "the device had no work while another had".to_owned();
        }
        let was = |(name, ns): &(String, i64), first: bool| {
            let was = if first { " was busy" } else { "" };
            format!("{name}{was} for {}", Nanoseconds(*ns))
        };
        let named: Vec<String> = match self.busy_of.as_slice() {
            all if all.len() <= 4 => (all.iter().enumerate())
                .map(|(at, device)| was(device, at == 0))
                .collect(),
            // Of more than four devices only the first and the last are named.
            all => (all.first().into_iter().chain(all.last()).enumerate())
                .map(|(at, device)| was(device, at == 0))
                .collect(),
        };
        format!(
            "a device had no work while another had: {}",
            named.join(", ")
        )
    }

    /// Returns a list of the causes of a side with their times, in the words of the API.
    fn causes_of(&self, side: Side) -> String {
        let causes: Vec<&GapTotal> = (self.causes.iter())
            .filter(|total| total.cause.side() == side && total.total_ns > 0)
            .collect();
        let name = |total: &GapTotal| total.cause.facts(self.api).name;
        match causes.as_slice() {
            [only] => name(only).to_owned(),
            causes => (causes.iter())
                .map(|total| format!("{} {}", name(total), Nanoseconds(total.total_ns)))
                .collect::<Vec<_>>()
                .join(", "),
        }
    }

    /// Returns the part of the time at synchronisation that was a wait for the display.
    fn display_ns(&self) -> i64 {
        let display = |total: &&GapTotal| total.cause == Cause::Display;
        (self
            .causes
            .iter()
            .filter(display)
            .map(|total| total.total_ns))
        .sum()
    }

    /// Returns true where some of the host's part is not late submission.
    fn waited_for_functions(&self) -> bool {
        (self.causes.iter()).any(|total| total.cause == Cause::HostFunction && total.total_ns > 0)
    }

    /// Returns that the device waited for the host, and for what.
    fn waited_for_host(&self) -> String {
        let device = self.device();
        match self.waited_for_functions() {
            true => format!("{device} waited for the host{}", self.most()),
            false => format!(
                "{device} had nothing to do, because the host had not submitted it{}",
                self.most()
            ),
        }
    }

    /// Returns what the host mostly did while it was waited for, as the end of a sentence.
    fn most(&self) -> String {
        let counts = |total: &&GapTotal| total.cause != Cause::Recording;
        let known = (self.causes.iter()).filter(counts).filter_map(|total| {
            let doing = total.cause.facts(self.api).host_was?;
            let doing = match total.cause {
                Cause::HostCall => self.host_call.as_deref().unwrap_or(doing),
                Cause::HostLate => self.late_host.as_deref().unwrap_or(doing),
                _ => doing,
            };
            Some(match total.cause {
                Cause::HostLate => (total.total_ns - self.unknown_host_ns, doing),
                _ => (total.total_ns, doing),
            })
        });
        let of_host = |ns: i64| Percent(ratio(ns, self.host_ns));
        // The first of equal times is taken.
        match known.rev().max_by_key(|(ns, _)| *ns) {
            None => String::new(),
            // The unknown part is the greatest in traces of programs that measured themselves.
            Some((ns, _)) if ns < self.unknown_host_ns => format!(
                "; what it did for {} of that is not in the trace",
                of_host(self.unknown_host_ns)
            ),
            Some((ns, doing)) => {
                let is_function = Cause::HostFunction.facts(self.api).host_was == Some(doing);
                let (most, untimed) = match is_function && self.untimed_function_ns > 0 {
                    true => ("at most ", ", whose times are not recorded"),
                    false => ("", ""),
                };
                format!(
                    "; for {most}{} of that it was {doing}{untimed}",
                    of_host(ns)
                )
            }
        }
    }
}

impl VerdictPart {
    /// Returns the verdict that the part would be, and the share from which on.
    fn needed(&self) -> Option<(Bound, f64)> {
        match self.what {
            "compute" => Some((Bound::DeviceBound, DEVICE_SHARE)),
            "communication" => Some((Bound::CommunicationBound, COMMUNICATION_SHARE)),
            "transfer" => Some((Bound::TransferBound, TRANSFER_SHARE)),
            "unknown" => Some((Bound::Unknown, UNKNOWN_SHARE)),
            "host" => Some((Bound::HostBound, IDLE_SHARE)),
            "sync" | "peers" => Some((Bound::SyncBound, IDLE_SHARE)),
            "launch" => Some((Bound::LatencyBound, IDLE_SHARE)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::times::of_side;
    use gapscope_timeline::thresholds::UNDERFILLED_SHARE;

    fn host(causes: &[(Cause, i64)]) -> Evidence {
        let causes: Vec<GapTotal> = (causes.iter())
            .map(|(cause, total_ns)| GapTotal {
                cause: *cause,
                count: 1,
                total_ns: *total_ns,
                main_count: 1,
                main_ns: *total_ns,
                by_other_threads_ns: 0,
                uncertain_ns: None,
            })
            .collect();
        let host_ns = of_side(&causes, Side::Host);
        let times = Times {
            window_ns: 1_000,
            host_ns,
            causes: &causes,
            ..Times::default()
        };
        times.verdict().1
    }

    #[test]
    fn the_hosts_part_fits_functions_that_a_queue_waited_for() {
        let late = host(&[(Cause::HostLate, 900)]);
        assert_eq!(
            late.sentence,
            "The device waited for the host to submit for 90.0 % of the time."
        );
        assert_eq!(
            late.parts[0].sentence,
            "900 ns (90.0 %) the device had nothing to do, because the host had not submitted it; for 100 % of that it was outside of GPU calls."
        );
        let function = host(&[(Cause::HostFunction, 800), (Cause::HostLate, 100)]);
        assert_eq!(
            function.sentence,
            "The device waited for the host for 90.0 % of the time."
        );
        assert_eq!(
            function.parts[0].sentence,
            "900 ns (90.0 %) the device waited for the host; for 88.9 % of that it was running functions that a queue waited for."
        );
    }

    #[test]
    fn the_sentences_say_a_quarter() {
        assert_eq!(UNDERFILLED_SHARE, 0.25);
    }
}
