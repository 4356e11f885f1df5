//! Tests writes of descriptors that reach beyond the end of their binding.

use super::*;

fn binding(number: u32, count: u32) -> LayoutBinding {
    LayoutBinding {
        number,
        kind: vk::DescriptorType::STORAGE_BUFFER,
        count,
        stages: vk::ShaderStageFlags::COMPUTE,
        flags: vk::DescriptorBindingFlags::empty(),
    }
}

fn layout(bindings: Vec<LayoutBinding>) -> SetLayout {
    SetLayout::new(vk::DescriptorSetLayoutCreateFlags::empty(), bindings)
}

#[test]
fn elements_past_the_end_of_a_binding_are_those_of_the_next() {
    let layout = layout(vec![binding(5, 1), binding(0, 3), binding(2, 2)]);
    let slot = |binding, element| layout.slots(binding, element).next();
    let first_of_2 = Slot {
        binding: 2,
        element: 0,
        index: 3,
    };
    assert_eq!(
        (slot(0, 3), slot(2, 0)),
        (Some(first_of_2), Some(first_of_2))
    );
    assert_eq!(slot(0, 5), slot(5, 0));
    assert_eq!(slot(1, 0), None);
}

#[test]
fn a_write_of_several_descriptors_runs_over_into_the_next_binding() {
    let layout = layout(vec![binding(0, 1), binding(1, 0), binding(2, 1)]);
    let infos = [16, 32].map(|offset| vk::DescriptorBufferInfo::default().offset(offset).range(4));
    let write = vk::WriteDescriptorSet::default()
        .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
        .buffer_info(&infos);
    let mut written = Vec::new();
    // SAFETY: the write is valid.
    unsafe {
        for_each_written(Some(&layout), &write, |slot, _, descriptor| {
            written.push((slot.binding, slot.element, descriptor));
        });
    }
    assert_eq!(
        written,
        [(0, 0, (&infos[0]).into()), (2, 0, (&infos[1]).into())]
    );
}

#[test]
fn a_template_for_graphics_pushes_nothing_for_compute() {
    use vk::DescriptorUpdateTemplateType as Kind;
    for (kind, point, pushes_for_others) in [
        (
            Kind::PUSH_DESCRIPTORS_KHR,
            vk::PipelineBindPoint::COMPUTE,
            false,
        ),
        (
            Kind::PUSH_DESCRIPTORS_KHR,
            vk::PipelineBindPoint::GRAPHICS,
            true,
        ),
        // A template for sets has no bind point.
        (Kind::DESCRIPTOR_SET, vk::PipelineBindPoint::GRAPHICS, false),
    ] {
        let entry = [vk::DescriptorUpdateTemplateEntry::default()];
        let info = vk::DescriptorUpdateTemplateCreateInfo::default()
            .template_type(kind)
            .pipeline_bind_point(point)
            .descriptor_update_entries(&entry);
        // SAFETY: the entries live during the call.
        let template = unsafe { Template::new(&info) };
        assert_eq!(template.entries.len(), 1);
        assert_eq!(template.pushes_for_others, pushes_for_others, "{kind:?}");
    }
}
