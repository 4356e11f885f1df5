//! Reads and enables the features of a device (optional abilities that Vulkan lists as members of structures) by
//! their names: [`Features::none`] makes the structures, [`Features::chain`] links them for the driver, which fills
//! them or enables what [`Features::turn_on`] set.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr;

use ash::vk;

use crate::registry::{BLOCKS, FEATURES};

/// Room for the members of a structure: no structure of features has more.
const MEMBERS: usize = 128;

/// A structure of features of any kind: all begin with these fields and continue with `VkBool32`s.
#[repr(C)]
#[derive(Debug, Clone)]
struct AnyFeatures {
    /// `VkStructureType`
    s_type: i32,
    /// The next structure of the chain; null at its end.
    next: *mut c_void,
    members: [vk::Bool32; MEMBERS],
}

/// The structures of [`BLOCKS`] that a device knows, as a chain.
#[derive(Debug)]
pub struct Features {
    /// Structures by number of the block; `None` if the device lacks the extension.
    blocks: Vec<Option<Box<AnyFeatures>>>,
}

impl Features {
    /// Makes the structures for a device with these extensions, with all features off.
    pub fn none(extensions: &BTreeSet<String>) -> Features {
        let known = |block: &crate::registry::Block| {
            let has = block.extension.is_none_or(|name| extensions.contains(name));
            has.then(|| {
                Box::new(AnyFeatures {
                    s_type: block.s_type,
                    next: ptr::null_mut(),
                    members: [vk::FALSE; MEMBERS],
                })
            })
        };
        Features {
            blocks: BLOCKS.iter().map(known).collect(),
        }
    }

    /// Links the structures, and returns the first, `VkPhysicalDeviceFeatures2`. The chain lives as long as `self`.
    pub fn chain(&mut self) -> *mut c_void {
        let mut next = ptr::null_mut();
        for block in self.blocks.iter_mut().rev().flatten() {
            block.next = next;
            next = ptr::from_mut(block.as_mut()).cast();
        }
        next
    }

    /// Returns whether the feature with this name is on.
    pub fn has(&self, name: &str) -> bool {
        place(name).is_some_and(|(block, member)| {
            let block = self.blocks[block].as_ref();
            block.is_some_and(|block| block.members[member] == vk::TRUE)
        })
    }

    /// Turns a feature on, and returns the extension that it belongs to; `None` if it belongs to Vulkan 1.3, or if
    /// the device does not know it.
    pub fn turn_on(&mut self, name: &str) -> Option<&'static str> {
        let (block, member) = place(name)?;
        self.blocks[block].as_mut()?.members[member] = vk::TRUE;
        BLOCKS[block].extension
    }

    /// Removes the structures of extensions that are not enabled.
    pub fn retain(&mut self, extensions: &BTreeSet<String>) {
        for (block, description) in self.blocks.iter_mut().zip(BLOCKS) {
            if description
                .extension
                .is_some_and(|name| !extensions.contains(name))
            {
                *block = None;
            }
        }
    }
}

/// Returns the index of a feature's structure among `BLOCKS`, and that of its member.
fn place(name: &str) -> Option<(usize, usize)> {
    let feature = FEATURES.iter().find(|feature| feature.name == name)?;
    Some((feature.block, feature.member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{CAPABILITIES, Need};

    #[test]
    fn every_feature_that_a_capability_names_has_a_place() {
        let needs = CAPABILITIES.iter().flat_map(|(_, _, needs)| *needs);
        for need in needs {
            if let Need::Feature(name) = need {
                let (block, member) = place(name).expect(name);
                assert!(block < BLOCKS.len() && member < MEMBERS, "{name}");
            }
        }
    }

    #[test]
    fn features_are_where_the_headers_have_them() {
        let mut features = Features::none(&BTreeSet::new());
        assert_eq!(features.turn_on("shaderFloat16"), None);
        assert_eq!(features.turn_on("synchronization2"), None);
        assert_eq!(features.turn_on("shaderInt16"), None);
        // SAFETY: the chain has the structures of the headers in this order, each with room for all members.
        unsafe {
            let first = features.chain().cast::<vk::PhysicalDeviceFeatures2<'_>>();
            assert_eq!((*first).features.shader_int16, vk::TRUE);
            let second = (*first)
                .p_next
                .cast::<vk::PhysicalDeviceVulkan11Features<'_>>();
            let third = (*second)
                .p_next
                .cast::<vk::PhysicalDeviceVulkan12Features<'_>>();
            assert_eq!((*third).shader_float16, vk::TRUE);
            let fourth = (*third)
                .p_next
                .cast::<vk::PhysicalDeviceVulkan13Features<'_>>();
            assert_eq!((*fourth).synchronization2, vk::TRUE);
            assert!((*fourth).p_next.is_null());
        }
    }

    #[test]
    fn a_feature_of_an_extension_that_is_missing_is_off() {
        let mut features = Features::none(&BTreeSet::new());
        features.turn_on("cooperativeMatrix");
        assert!(!features.has("cooperativeMatrix"));
        let mut features =
            Features::none(&BTreeSet::from(["VK_KHR_cooperative_matrix".to_owned()]));
        assert_eq!(
            features.turn_on("cooperativeMatrix"),
            Some("VK_KHR_cooperative_matrix")
        );
        assert!(features.has("cooperativeMatrix"));
    }
}
