//! Submits to queues, and chooses queues for a kind of work.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use ash::vk;

use crate::Unsupported;
use crate::recorded::Recorded;
use crate::truth::Tally;

/// A queue with the work that was submitted to it.
pub struct Queue {
    pub handle: vk::Queue,
    pub family: u32,
    tally: Mutex<Tally>,
}

impl Queue {
    pub fn new(handle: vk::Queue, family: u32) -> Self {
        Self {
            handle,
            family,
            tally: Mutex::default(),
        }
    }

    /// Locks the queue, because Vulkan allows one thread at a time on a queue.
    pub fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `submit`, which submits the command buffers of `recorded` in one call, and counts it.
    pub fn submit(
        &self,
        recorded: &[&Recorded],
        submit: impl FnOnce(vk::Queue) -> Result<(), vk::Result>,
    ) -> Result<()> {
        let mut tally = self.lock();
        submit(self.handle)?;
        tally.submits += 1;
        for recorded in recorded {
            tally.command_buffers += 1;
            *tally += recorded.tally;
        }
        Ok(())
    }
}

/// A queue by its family and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub family: u32,
    pub index: u32,
}

/// Chooses `count` queues that can do `work`: first of the wanted family, then of other families, then further queues
/// of a family.
pub fn choose(
    families: &[vk::QueueFamilyProperties],
    wanted: Option<u32>,
    count: usize,
    work: vk::QueueFlags,
) -> Result<Vec<Position>> {
    let able = |family: u32| {
        let mut flags = families[family as usize].queue_flags;
        // A queue that can draw or compute can also transfer, and need not report it.
        if flags.intersects(vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE) {
            flags |= vk::QueueFlags::TRANSFER;
        }
        flags.contains(work)
    };
    let mut order: Vec<u32> = (0..families.len() as u32)
        .filter(|&family| able(family))
        .collect();
    if let Some(wanted) = wanted {
        if !order.contains(&wanted) {
            bail!(Unsupported(format!(
                "there is no queue family {wanted} with {work:?}"
            )));
        }
        order.sort_by_key(|&family| family != wanted);
    }
    let chosen: Vec<_> = [0, 1]
        .into_iter()
        .flat_map(|index| order.iter().map(move |&family| Position { family, index }))
        .filter(|position| position.index < families[position.family as usize].queue_count)
        .take(count)
        .collect();
    if chosen.len() < count {
        let found = chosen.len();
        bail!(Unsupported(format!(
            "the mode needs {count} queues with {work:?}, but the device has {found}"
        )));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vk::QueueFlags as Flags;

    fn families(of: &[(Flags, u32)]) -> Vec<vk::QueueFamilyProperties> {
        of.iter()
            .map(|&(queue_flags, queue_count)| vk::QueueFamilyProperties {
                queue_flags,
                queue_count,
                ..Default::default()
            })
            .collect()
    }

    fn chosen(wanted: Option<u32>, count: usize, work: Flags) -> Option<Vec<(u32, u32)>> {
        let families = families(&[
            (Flags::GRAPHICS | Flags::COMPUTE, 2),
            (Flags::TRANSFER, 1),
            (Flags::COMPUTE, 1),
        ]);
        let chosen = choose(&families, wanted, count, work).ok()?;
        Some(
            chosen
                .iter()
                .map(|position| (position.family, position.index))
                .collect(),
        )
    }

    #[test]
    fn other_families_come_before_second_queues() {
        assert_eq!(
            chosen(None, 3, Flags::COMPUTE),
            Some(vec![(0, 0), (2, 0), (0, 1)])
        );
        assert_eq!(
            chosen(Some(2), 2, Flags::COMPUTE),
            Some(vec![(2, 0), (0, 0)])
        );
        assert_eq!(chosen(None, 4, Flags::COMPUTE), None);
    }

    #[test]
    fn every_family_can_transfer() {
        assert_eq!(chosen(Some(1), 1, Flags::TRANSFER), Some(vec![(1, 0)]));
        assert_eq!(chosen(Some(2), 1, Flags::TRANSFER), Some(vec![(2, 0)]));
        assert_eq!(chosen(Some(1), 1, Flags::COMPUTE), None);
    }
}
