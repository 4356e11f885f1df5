//! Says a loss in a phrase: its number and what was lost, in the singular or the plural, such as `the labels of 3 pieces
//! of GPU work`. Most kinds say it themselves (`3 dispatch times`).

use super::LossKind;

impl LossKind {
    /// Returns the phrase for a count. `number` is the count as it is to be written.
    pub fn phrase(&self, count: u64, number: &str) -> String {
        match self.parts(count == 1) {
            Some((before, behind)) => format!("{before}{number}{behind}"),
            None => format!("{number} {}", self.for_count(count)),
        }
    }

    /// Returns what stands before and behind the number, for kinds whose text does not follow a number.
    fn parts(&self, one: bool) -> Option<(&'static str, &'static str)> {
        use LossKind::*;
        let [single, several] = match self {
            CommandBufferContents => [
                ("the contents of ", " command buffer"),
                ("the contents of ", " command buffers"),
            ],
            CommandBuffersOfWork => [
                ("the command buffer of ", " piece of GPU work"),
                ("the command buffers of ", " pieces of GPU work"),
            ],
            CudaWork => [
                ("the CUDA work of ", " process"),
                ("the CUDA work of ", " processes"),
            ],
            DeferredNvtxEvents => [
                ("", " deferred NVTX event, or batch of them"),
                ("", " deferred NVTX events, or batches of them"),
            ],
            DispatchKernels => [
                ("the kernel of ", " dispatch"),
                ("the kernels of ", " dispatches"),
            ],
            DispatchStarts => [
                ("the start of ", " dispatch"),
                ("the starts of ", " dispatches"),
            ],
            EventsOnQueues => [("", " event on a queue"), ("", " events on queues")],
            FileParts => [("", " part of a file"), ("", " parts of files")],
            FileRests => [("the end of ", " file"), ("the ends of ", " files")],
            HostCallsOfWork => [
                ("the host call of ", " piece of GPU work"),
                ("the host calls of ", " pieces of GPU work"),
            ],
            ImportedCommandBufferTimes => [
                ("the times of ", " command buffer"),
                ("the times of ", " command buffers"),
            ],
            KernelSources => [
                ("the source of ", " kernel"),
                ("the sources of ", " kernels"),
            ],
            LabelEnds => [("the end of ", " label"), ("the ends of ", " labels")],
            LabelStarts => [("the start of ", " label"), ("the starts of ", " labels")],
            LabelsOfWork => [
                ("the label of ", " piece of GPU work"),
                ("the labels of ", " pieces of GPU work"),
            ],
            ManagedMemoryMoves => [
                ("", " prefetch or discard of managed memory"),
                ("", " prefetches and discards of managed memory"),
            ],
            OpaqueWorkTimes => [
                ("the times of ", " piece of work that is timed as a whole"),
                ("the times of ", " pieces of work that are timed as a whole"),
            ],
            OverheadThreads => [
                ("the thread of ", " overhead"),
                ("the threads of ", " overheads"),
            ],
            PlausibleDeviceTimes => [
                ("plausible times of ", " piece of GPU work"),
                ("plausible times of ", " pieces of GPU work"),
            ],
            RankTraces => [("the trace of ", " rank"), ("the traces of ", " ranks")],
            RecordedFunctions => [
                ("the calls of ", " function"),
                ("the calls of ", " functions"),
            ],
            RegistersOfKernels => [
                ("the registers and the memory of ", " kernel"),
                ("the registers and the memory of ", " kernels"),
            ],
            SecondaryContents => [
                ("the contents of ", " secondary command buffer"),
                ("the contents of ", " secondary command buffers"),
            ],
            Stacks => [
                ("the stack of ", " host thread"),
                ("the stacks of ", " host threads"),
            ],
            TransferRoutes => [("the way of ", " transfer"), ("the ways of ", " transfers")],
            UnambiguousCallsOfWork => [
                ("the certainty which call launched ", " piece of GPU work"),
                ("the certainty which calls launched ", " pieces of GPU work"),
            ],
            UnlistedDispatches => [
                ("the dispatches of ", " command buffer"),
                ("the dispatches of ", " command buffers"),
            ],
            WaitsAndEvents => [
                ("", " wait or event on a queue"),
                ("", " waits and events on queues"),
            ],
            _ => return None,
        };
        Some(if one { single } else { several })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_said_for_one_and_for_several() {
        for (kind, one, several) in [
            (
                LossKind::FileRests,
                "the end of 1 file",
                "the ends of 2 files",
            ),
            (LossKind::FileParts, "1 part of a file", "2 parts of files"),
            (
                LossKind::HostCallsOfWork,
                "the host call of 1 piece of GPU work",
                "the host calls of 2 pieces of GPU work",
            ),
            (
                LossKind::UnambiguousCallsOfWork,
                "the certainty which call launched 1 piece of GPU work",
                "the certainty which calls launched 2 pieces of GPU work",
            ),
            (
                LossKind::WaitsAndEvents,
                "1 wait or event on a queue",
                "2 waits and events on queues",
            ),
            (
                LossKind::DispatchTimes,
                "1 dispatch time",
                "2 dispatch times",
            ),
            (
                LossKind::from_text("arrows of category fwdbwd"),
                "1 arrow of category fwdbwd",
                "2 arrows of category fwdbwd",
            ),
            (
                LossKind::from_text("moons of the user"),
                "1 moons of the user",
                "2 moons of the user",
            ),
        ] {
            assert_eq!(kind.phrase(1, "1"), one);
            assert_eq!(kind.phrase(2, "2"), several);
        }
    }

    #[test]
    fn no_kind_has_an_odd_singular() {
        // A noun in the plural behind the number 1 is a mistake, whatever follows.
        for kind in LossKind::ALL {
            let phrase = kind.phrase(1, "1");
            let noun = phrase.split("1 ").nth(1).unwrap();
            let words = noun.split([' ', ',']).take_while(|word| {
                ![
                    "of", "on", "for", "before", "between", "whose", "that", "at",
                ]
                .contains(word)
            });
            let last = words.last().unwrap();
            let is_plural = last.ends_with('s') && !last.ends_with("ss");
            assert!(!is_plural, "{phrase}");
        }
    }
}
