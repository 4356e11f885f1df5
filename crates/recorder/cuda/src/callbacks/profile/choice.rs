//! Which launches the user has chosen, and which of them cannot be profiled.

use super::launch::Launch;
use super::refusal;
use gapscope_spool::model::kernel_names::{Spellings, is_communication};
use gapscope_spool::model::kernel_profile::Wanted;
use rustc_hash::FxHashMap;

/// Names that are remembered.
const MOST_NAMES: usize = 1 << 14;

/// What the user has chosen, and how much of it is left.
pub struct Choice {
    wanted: Vec<Counted>,
    /// Which of them the kernels of these names are.
    names: FxHashMap<Box<str>, Option<Named>>,
    said: Vec<String>,
    /// Anything was launched.
    launched: bool,
}

struct Counted {
    wanted: Wanted,
    left: u32,
    /// There was a launch of such a kernel, whatever became of it.
    seen: bool,
}

/// A kernel that is wanted.
#[derive(Debug, Clone)]
struct Named {
    wanted: Vec<usize>,
    shown: Box<str>,
    communicates: bool,
}

/// A launch to profile.
pub struct Chosen {
    wanted: usize,
    shown: Box<str>,
    communicates: bool,
}

impl Choice {
    pub fn of(wanted: Vec<Wanted>) -> Choice {
        let counted = |wanted: Wanted| Counted {
            left: wanted.launches,
            wanted,
            seen: false,
        };
        Choice {
            wanted: wanted.into_iter().map(counted).collect(),
            names: FxHashMap::default(),
            said: Vec::new(),
            launched: false,
        }
    }

    /// Whether the launch of this kernel, as the code calls it, is one to profile.
    pub fn chosen(&mut self, kernel: &str) -> Option<Chosen> {
        self.launched = true;
        if !self.names.contains_key(kernel) {
            if self.names.len() >= MOST_NAMES {
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
        Some(Chosen {
            wanted: *wanted,
            shown: named.shown.clone(),
            communicates: named.communicates,
        })
    }

    fn named(&self, kernel: &str) -> Option<Named> {
        let spellings = Spellings::new(kernel);
        let wanted: Vec<usize> = (0..self.wanted.len())
            .filter(|at| spellings.contain(&self.wanted[*at].wanted.name))
            .collect();
        (!wanted.is_empty()).then(|| Named {
            wanted,
            shown: spellings.shown().into(),
            communicates: is_communication(kernel) || is_communication(spellings.shown()),
        })
    }

    /// Why a launch cannot be profiled, and a sentence for the report where it was not said before.
    pub fn refuse(&mut self, chosen: &Chosen, launch: Launch) -> Option<Option<String>> {
        let sentence = match launch {
            _ if chosen.communicates => refusal::communicates(&chosen.shown),
            Launch::Kernel => return None,
            Launch::Captured => refusal::captured(&chosen.shown),
            Launch::Unknown => refusal::unknown_launch(&chosen.shown),
        };
        let is_new = !self.said.contains(&sentence);
        if is_new {
            self.said.push(sentence.clone());
        }
        Some(is_new.then_some(sentence))
    }

    pub fn take(&mut self, chosen: &Chosen) {
        self.wanted[chosen.wanted].left -= 1;
    }

    pub fn give_back(&mut self, chosen: &Chosen) {
        self.wanted[chosen.wanted].left += 1;
    }

    /// True when nothing is left to profile.
    pub fn is_done(&self) -> bool {
        self.wanted.iter().all(|counted| counted.left == 0)
    }

    /// Says which choices came to nothing.
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
        Choice::of(wanted.iter().filter_map(|text| text.parse().ok()).collect())
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
        let mut said = Vec::new();
        choice.unmet(|sentence| said.push(sentence));
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("\"gone\""), "{}", said[0]);
    }

    #[test]
    fn kernels_that_communicate_and_captures_are_refused_and_said_once() {
        let mut choice = choice(&["nccl:9", "fill<float>"]);
        let nccl = choice
            .chosen("ncclDevKernel_AllReduce_Sum_f32_RING_LL")
            .unwrap();
        let said = choice.refuse(&nccl, Launch::Kernel).unwrap();
        assert!(said.is_some_and(|sentence| sentence.contains("hang")));
        assert_eq!(choice.refuse(&nccl, Launch::Kernel), Some(None));
        let fill = choice.chosen(FILL).unwrap();
        assert!(choice.refuse(&fill, Launch::Kernel).is_none());
        let said = choice.refuse(&fill, Launch::Captured).unwrap();
        assert!(said.is_some_and(|sentence| sentence.contains("captured")));
    }
}
