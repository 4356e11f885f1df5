//! Hooks debug labels (texts by which programs name their work) and names of objects, which programs may set even
//! where the driver does not know them: the layer gets them, and the next layer only where it has the function.

use ash::vk;

use crate::arguments::text_at;
use crate::command::Label;
use crate::layer::{CommandHooks, ObjectHooks, QueueHooks, label_text};

type LabelInfo<'a> = *const vk::DebugUtilsLabelEXT<'a>;

/// Defines hooks that hand a label of a command buffer or a queue, decoded after `=`, to the named method of a trait.
macro_rules! labels {
    ($bound:ident.$record:ident: $(fn $hook:ident($handle:ident: $type:ty $(, $info:ident: $info_type:ty)?) = $label:expr;)+) => {
        $(pub(crate) unsafe extern "system" fn $hook<L: $bound>($handle: $type $(, $info: $info_type)?) {
            // SAFETY: the program's own call on a live handle, to which it has access; the label is null or valid.
            unsafe {
                let Some(device) = L::devices().get($handle) else {
                    return;
                };
                L::guard(|| device.$record($handle, $label));
                if let Some(call) = device.functions().$hook {
                    call($handle $(, $info)?);
                }
            }
        })+
    };
}

labels! {
    CommandHooks.record_label:
    fn cmd_begin_debug_utils_label(handle: vk::CommandBuffer, info: LabelInfo<'_>) = Label::Begin(label_text(info));
    fn cmd_end_debug_utils_label(handle: vk::CommandBuffer) = Label::End;
    fn cmd_insert_debug_utils_label(handle: vk::CommandBuffer, info: LabelInfo<'_>) = Label::Instant(label_text(info));
}

labels! {
    QueueHooks.label_queue:
    fn queue_begin_debug_utils_label(handle: vk::Queue, info: LabelInfo<'_>) = Label::Begin(label_text(info));
    fn queue_end_debug_utils_label(handle: vk::Queue) = Label::End;
    fn queue_insert_debug_utils_label(handle: vk::Queue, info: LabelInfo<'_>) = Label::Instant(label_text(info));
}

/// vkSetDebugUtilsObjectNameEXT.
pub(crate) unsafe extern "system" fn set_debug_utils_object_name<L: ObjectHooks>(
    handle: vk::Device,
    info: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = L::devices().get(handle) else {
            return vk::Result::ERROR_UNKNOWN;
        };
        L::guard(|| {
            let name = text_at((*info).p_object_name);
            device.name_object((*info).object_type, (*info).object_handle, &name);
        });
        match device.functions().set_debug_utils_object_name {
            Some(call) => call(handle, info),
            None => vk::Result::SUCCESS,
        }
    }
}
