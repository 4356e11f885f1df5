//! Simulates descriptors. No shader reads them: they are checked and forgotten.

use std::collections::HashSet;
use std::sync::Mutex;

use ash::vk::{self, Handle};

use crate::buffer::Buffer;
use crate::device::{self, lock, plain_objects};
use crate::object::{self, Body, Object};
use crate::{chain, misuse};

pub struct DescriptorPool {
    max_sets: usize,
    frees_sets: bool,
    sets: Mutex<HashSet<u64>>,
}

impl Body for DescriptorPool {
    type Handle = vk::DescriptorPool;
}

pub struct DescriptorSet;

impl Body for DescriptorSet {
    type Handle = vk::DescriptorSet;
}

plain_objects! {
    DescriptorSetLayout, create_layout("vkCreateDescriptorSetLayout"),
        destroy_layout("vkDestroyDescriptorSetLayout"), vk::DescriptorSetLayoutCreateInfo<'_>;
    DescriptorUpdateTemplate, create_template("vkCreateDescriptorUpdateTemplate"),
        destroy_template("vkDestroyDescriptorUpdateTemplate"), vk::DescriptorUpdateTemplateCreateInfo<'_>;
}

pub unsafe extern "system" fn get_layout_support(
    _: vk::Device,
    _: *const vk::DescriptorSetLayoutCreateInfo<'_>,
    out: *mut vk::DescriptorSetLayoutSupport<'_>,
) {
    (*out).supported = vk::TRUE;
}

pub unsafe extern "system" fn create_pool(
    device: vk::Device,
    info: *const vk::DescriptorPoolCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DescriptorPool,
) -> vk::Result {
    let frees_sets = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
    device::create("vkCreateDescriptorPool", device, out, |_| DescriptorPool {
        max_sets: (*info).max_sets as usize,
        frees_sets: (*info).flags.contains(frees_sets),
        sets: Mutex::default(),
    })
}

pub unsafe extern "system" fn destroy_pool(
    device: vk::Device,
    pool: vk::DescriptorPool,
    _: *const vk::AllocationCallbacks<'_>,
) {
    const CALL: &str = "vkDestroyDescriptorPool";
    if let Some((_, pool)) = device::destroy::<DescriptorPool>(CALL, device, pool) {
        free_all(CALL, pool);
    }
}

pub unsafe extern "system" fn reset_pool(
    _: vk::Device,
    pool: vk::DescriptorPool,
    _: vk::DescriptorPoolResetFlags,
) -> vk::Result {
    const CALL: &str = "vkResetDescriptorPool";
    let Some(pool) = object::get::<DescriptorPool>(CALL, pool) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    free_all(CALL, pool);
    vk::Result::SUCCESS
}

fn free_all(call: &str, pool: &Object<DescriptorPool>) {
    for set in lock(&pool.sets).drain() {
        object::destroy::<DescriptorSet>(call, vk::DescriptorSet::from_raw(set));
    }
}

pub unsafe extern "system" fn allocate_sets(
    _: vk::Device,
    info: *const vk::DescriptorSetAllocateInfo<'_>,
    out: *mut vk::DescriptorSet,
) -> vk::Result {
    const CALL: &str = "vkAllocateDescriptorSets";
    let info = &*info;
    let Some(pool) = object::get::<DescriptorPool>(CALL, info.descriptor_pool) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let mut sets = lock(&pool.sets);
    let layouts = chain::slice(info.p_set_layouts, info.descriptor_set_count);
    if sets.len() + layouts.len() > pool.max_sets {
        return vk::Result::ERROR_OUT_OF_POOL_MEMORY;
    }
    for (index, &layout) in layouts.iter().enumerate() {
        object::get::<DescriptorSetLayout>(CALL, layout);
        let set = object::create(DescriptorSet);
        sets.insert(set.as_raw());
        *out.add(index) = set;
    }
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn free_sets(
    _: vk::Device,
    pool: vk::DescriptorPool,
    count: u32,
    sets: *const vk::DescriptorSet,
) -> vk::Result {
    const CALL: &str = "vkFreeDescriptorSets";
    let Some(pool) = object::get::<DescriptorPool>(CALL, pool) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    if !pool.frees_sets {
        misuse::report(CALL, "the pool was created without FREE_DESCRIPTOR_SET");
    }
    for &set in chain::slice(sets, count) {
        if !set.is_null() && !lock(&pool.sets).remove(&set.as_raw()) {
            misuse::report(CALL, "the set does not belong to this pool");
        }
        object::destroy::<DescriptorSet>(CALL, set);
    }
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn update_sets(
    _: vk::Device,
    writes: u32,
    p_writes: *const vk::WriteDescriptorSet<'_>,
    copies: u32,
    p_copies: *const vk::CopyDescriptorSet<'_>,
) {
    const CALL: &str = "vkUpdateDescriptorSets";
    for write in chain::slice(p_writes, writes) {
        check_update(CALL, write.dst_set);
        check_buffers(CALL, write);
    }
    for copy in chain::slice(p_copies, copies) {
        check_update(CALL, copy.dst_set);
        object::get::<DescriptorSet>(CALL, copy.src_set);
    }
}

pub unsafe extern "system" fn update_set_with_template(
    _: vk::Device,
    set: vk::DescriptorSet,
    template: vk::DescriptorUpdateTemplate,
    _: *const std::ffi::c_void,
) {
    const CALL: &str = "vkUpdateDescriptorSetWithTemplate";
    check_update(CALL, set);
    object::get::<DescriptorUpdateTemplate>(CALL, template);
}

fn check_update(call: &str, set: vk::DescriptorSet) {
    if object::get::<DescriptorSet>(call, set).is_some_and(|set| set.header.is_pending()) {
        misuse::report(call, "a submitted command buffer uses the set");
    }
}

/// Checks the buffers of a write, which must exist.
pub unsafe fn check_buffers(call: &str, write: &vk::WriteDescriptorSet<'_>) {
    let holds_buffers = matches!(
        write.descriptor_type,
        vk::DescriptorType::UNIFORM_BUFFER
            | vk::DescriptorType::STORAGE_BUFFER
            | vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC
            | vk::DescriptorType::STORAGE_BUFFER_DYNAMIC
    );
    if holds_buffers {
        for info in chain::slice(write.p_buffer_info, write.descriptor_count) {
            object::get::<Buffer>(call, info.buffer);
        }
    }
}
