//! Enables host query reset (queries, such as timestamps, are reset by a host call) among the features that a program
//! asks of a new device. Features come as a chain of structures that the layer must not write to, so the changed part
//! of the chain is copied: [`host_query_reset`] reads the chain, and [`ChainWithHostQueryReset::link`] gives the
//! changed one.

mod sizes;

use ash::vk;
use gapscope_vulkan_layer::arguments::find;
use sizes::size_of_structure;
use std::ffi::c_void;

/// A copy of a pNext chain up to the structure that decides on host query reset, with the feature set in it.
pub struct ChainWithHostQueryReset {
    /// Each structure as words, so that it is aligned like the original.
    copies: Vec<Vec<u64>>,
    /// The rest of the chain, which is the program's own.
    rest: *const c_void,
}

/// The state of host query reset in a chain.
pub enum HostQueryReset {
    /// The feature is enabled already.
    Enabled,
    /// No structure has the feature, so one can be put before the chain.
    Absent,
    /// A structure has the feature off; this copy has it on.
    Copied(ChainWithHostQueryReset),
    /// A structure has the feature off behind another structure whose size is not known.
    OutOfReach,
}

/// The head that all structures of a chain share.
type Head = vk::BaseInStructure<'static>;

/// Returns the place of the feature host query reset in a structure; `None` for a structure without it.
///
/// # Safety
/// `structure` is a structure of its type.
unsafe fn feature(structure: *mut Head) -> Option<*mut vk::Bool32> {
    // SAFETY: as the caller promises.
    unsafe {
        match (*structure).s_type {
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES => {
                let features = structure.cast::<vk::PhysicalDeviceVulkan12Features<'_>>();
                Some(&raw mut (*features).host_query_reset)
            }
            vk::StructureType::PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES => {
                let features = structure.cast::<vk::PhysicalDeviceHostQueryResetFeatures<'_>>();
                Some(&raw mut (*features).host_query_reset)
            }
            _ => None,
        }
    }
}

/// Returns whether a chain has the structure that decides on performance queries.
///
/// # Safety
/// `chain` is a valid pNext chain of a VkDeviceCreateInfo.
pub unsafe fn asks_for_performance_queries(chain: *const c_void) -> bool {
    let wanted = vk::StructureType::PHYSICAL_DEVICE_PERFORMANCE_QUERY_FEATURES_KHR;
    // SAFETY: as the caller promises.
    unsafe { find::<Head>(chain, wanted) }.is_some()
}

/// Returns the state of host query reset in a chain, with a changed copy where one is needed.
///
/// # Safety
/// `chain` is a valid pNext chain of a VkDeviceCreateInfo, with the loader's structures in it.
pub unsafe fn host_query_reset(chain: *const c_void) -> HostQueryReset {
    let mut copies = Some(Vec::new());
    let mut node = chain.cast::<Head>().cast_mut();
    while !node.is_null() {
        // SAFETY: every structure starts with the head, and the sizes belong to the types.
        unsafe {
            if let (Some(copies), Some(size)) = (&mut copies, size_of_structure((*node).s_type)) {
                let mut copy = vec![0u64; size.div_ceil(8)];
                std::ptr::copy_nonoverlapping(node.cast::<u8>(), copy.as_mut_ptr().cast(), size);
                copies.push(copy);
            } else {
                copies = None;
            }
            if let Some(enabled) = feature(node) {
                if *enabled == vk::TRUE {
                    return HostQueryReset::Enabled;
                }
                let rest = (*node).p_next.cast();
                return match copies {
                    Some(copies) => {
                        HostQueryReset::Copied(ChainWithHostQueryReset { copies, rest })
                    }
                    None => HostQueryReset::OutOfReach,
                };
            }
            node = (*node).p_next.cast_mut();
        }
    }
    HostQueryReset::Absent
}

impl ChainWithHostQueryReset {
    /// Returns the head of the changed chain, which lives as long as `self`.
    pub fn link(&mut self) -> *const c_void {
        let mut next = self.rest;
        for copy in self.copies.iter_mut().rev() {
            let node = copy.as_mut_ptr().cast::<Head>();
            // SAFETY: the copy is a whole structure.
            unsafe {
                (*node).p_next = next.cast();
                if let Some(enabled) = feature(node) {
                    *enabled = vk::TRUE;
                }
            }
            next = node.cast_const().cast();
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs for Vulkan 1.4 chain their structures in this order.
    #[test]
    fn a_structure_that_ash_does_not_know_hides_nothing() {
        let mut core12 = vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true);
        // This is VkPhysicalDeviceVulkan14Features, which ash does not know.
        let mut core14 = [0u64; 13];
        core14[0] = 55;
        core14[1] = (&raw mut core12) as u64;
        core14[12] = 1;
        // SAFETY: a chain of two structures.
        let found = unsafe { host_query_reset(core14.as_ptr().cast()) };
        let HostQueryReset::Copied(mut chain) = found else {
            panic!("it is within reach");
        };
        let head = chain.link().cast::<[u64; 13]>();
        // SAFETY: the chain has the same structures.
        let (copy14, copy12) = unsafe {
            let copy12 = (*head)[1] as *const vk::PhysicalDeviceVulkan12Features<'_>;
            (*head, *copy12)
        };
        assert_eq!((copy14[0], copy14[12]), (55, 1));
        assert_eq!((copy12.host_query_reset, copy12.timeline_semaphore), (1, 1));
        assert_eq!(core12.host_query_reset, 0, "the program's own is as it was");
    }
}
