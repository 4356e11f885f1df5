//! Decides for each launch, by the kernel's name, whether the user has chosen it for profiling, and counts how many
//! are left. A kernel's name goes in; the choice and the reason for a refusal come out.

use super::launch::LaunchKind;
use super::refusal;
use gapscope_spool::model::kernel_names::{Spellings, is_communication};
use gapscope_spool::model::kernel_profile::Wanted;
use rustc_hash::FxHashMap;

/// The most names that are remembered.
const MAX_NAMES: usize = 1 << 14;

/// The user's choices, and how much of them is left.
pub struct Choice {
    wanted: Vec<Remaining>,
    /// The choices that match each kernel name that was launched; `None` where none does.
    names: FxHashMap<Box<str>, Option<MatchedKernel>>,
    /// The sentences of refusals that were passed on.
    noted: Vec<String>,
    /// Whether any kernel was launched.
    launched: bool,
}

/// A choice of the user, and the number of its launches that are still to be profiled.
struct Remaining {
    wanted: Wanted,
    /// Number of launches that are still to be profiled.
    left: u32,
    /// Whether a launch of such a kernel was seen, also if it was not profiled.
    seen: bool,
}

/// A kernel that belongs to a choice.
#[derive(Debug, Clone)]
struct MatchedKernel {
    /// The choices that match its name, as indices into [`Choice::wanted`].
    wanted: Vec<usize>,
    /// The name as people read it.
    shown: Box<str>,
    /// Whether it communicates with other devices, by its name.
    communicates: bool,
}

/// A launch to profile.
pub struct ChosenLaunch {
    /// The choice that it counts for, as an index into [`Choice::wanted`].
    wanted: usize,
    shown: Box<str>,
    communicates: bool,
}

impl Choice {
    pub fn new(wanted: Vec<Wanted>) -> Choice {
        let counted = |wanted: Wanted| Remaining {
            left: wanted.launches,
            wanted,
            seen: false,
        };
        Choice {
            wanted: wanted.into_iter().map(counted).collect(),
            names: FxHashMap::default(),
            noted: Vec::new(),
            launched: false,
        }
    }

    /// Returns the first choice with launches left that matches this kernel's name in the code, and marks all that
    /// match as seen.
    pub fn chosen(&mut self, kernel: &str) -> Option<ChosenLaunch> {
        self.launched = true;
        if !self.names.contains_key(kernel) {
            if self.names.len() >= MAX_NAMES {
                self.names.clear();
            }
            let named = self.named(kernel);
            self.names.insert(kernel.into(), named);
        }
        let named = self.names.get(kernel)?.as_ref()?;
        for wanted in &named.wanted {
            self.wanted[*wanted].seen = true;
        }
        let wanted = named.wanted.iter().find(|at| self.wanted[**at].left > 0)?;
        Some(ChosenLaunch {
            wanted: *wanted,
            shown: named.shown.clone(),
            communicates: named.communicates,
        })
    }

    /// Returns the choices that match a kernel's name; `None` for none.
    fn named(&self, kernel: &str) -> Option<MatchedKernel> {
        let spellings = Spellings::new(kernel);
        let wanted: Vec<usize> = (0..self.wanted.len())
            .filter(|at| spellings.contain(&self.wanted[*at].wanted.name))
            .collect();
        (!wanted.is_empty()).then(|| MatchedKernel {
            wanted,
            shown: spellings.shown().into(),
            communicates: is_communication(kernel) || is_communication(spellings.shown()),
        })
    }

    /// Returns `None` if a launch can be profiled, else the reason why not: a sentence for the report, or
    /// `Some(None)` where that sentence was noted before.
    pub fn refuse(&mut self, chosen: &ChosenLaunch, launch: LaunchKind) -> Option<Option<String>> {
        let sentence = match launch {
            _ if chosen.communicates => refusal::communicates(&chosen.shown),
            LaunchKind::Kernel => return None,
            LaunchKind::Captured => refusal::captured(&chosen.shown),
            LaunchKind::Unknown => refusal::unknown_launch(&chosen.shown),
        };
        let is_new = !self.noted.contains(&sentence);
        if is_new {
            self.noted.push(sentence.clone());
        }
        Some(is_new.then_some(sentence))
    }

    /// Counts a launch as profiled.
    pub fn take(&mut self, chosen: &ChosenLaunch) {
        self.wanted[chosen.wanted].left -= 1;
    }

    /// Counts a launch as not profiled after all.
    pub fn give_back(&mut self, chosen: &ChosenLaunch) {
        self.wanted[chosen.wanted].left += 1;
    }

    /// Returns whether nothing is left to profile.
    pub fn is_done(&self) -> bool {
        self.wanted.iter().all(|counted| counted.left == 0)
    }

    /// Names the choices that were not met.
    pub fn unmet(&self, mut say: impl FnMut(String)) {
        for counted in self.wanted.iter().filter(|c| self.launched && c.left > 0) {
            let profiled = counted.wanted.launches - counted.left;
            say(refusal::unmet(&counted.wanted, profiled, counted.seen));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: &str = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_";

    fn choice(wanted: &[&str]) -> Choice {
        Choice::new(wanted.iter().filter_map(|text| text.parse().ok()).collect())
    }

    #[test]
    fn the_first_launches_of_each_choice_are_chosen() {
        let mut choice = choice(&["fill<float>:2", "elementwise_kernel", "gone"]);
        let mut counted = Vec::new();
        for kernel in [FILL, "sgemm", FILL, FILL, FILL] {
            let chosen = choice.chosen(kernel);
            counted.push(chosen.as_ref().map(|chosen| chosen.wanted));
            if let Some(chosen) = chosen {
                choice.take(&chosen);
            }
        }
        assert_eq!(counted, [Some(0), None, Some(0), Some(1), None]);
        assert!(!choice.is_done());
        let mut noted = Vec::new();
        choice.unmet(|sentence| noted.push(sentence));
        assert_eq!(noted.len(), 1);
        assert!(noted[0].contains("\"gone\""), "{}", noted[0]);
    }

    #[test]
    fn kernels_that_communicate_and_captures_are_refused_and_said_once() {
        let mut choice = choice(&["nccl:9", "fill<float>"]);
        let nccl = choice
            .chosen("ncclDevKernel_AllReduce_Sum_f32_RING_LL")
            .unwrap();
        let noted = choice.refuse(&nccl, LaunchKind::Kernel).unwrap();
        assert!(noted.is_some_and(|sentence| sentence.contains("hang")));
        assert_eq!(choice.refuse(&nccl, LaunchKind::Kernel), Some(None));
        let fill = choice.chosen(FILL).unwrap();
        assert!(choice.refuse(&fill, LaunchKind::Kernel).is_none());
        let noted = choice.refuse(&fill, LaunchKind::Captured).unwrap();
        assert!(noted.is_some_and(|sentence| sentence.contains("captured")));
    }
}
