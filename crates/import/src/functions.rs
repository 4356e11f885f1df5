//! Returns the class, call kind and API of a function of a GPU API from its name, for all importers.
//!
//! [`gapscope_model::cuda`] has the table of CUDA's functions. HIP names its functions after them. The functions of other APIs
//! are in `tables.rs`.

mod tables;

use gapscope_model::cuda::{FunctionClass, base_name};
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::HostCallKind;

/// Returns the class of a function of CUDA, HIP, HSA, oneAPI, OpenCL, MTIA or Ascend; `None` for functions without a class and for
/// other names.
pub(crate) fn class_of(name: &str) -> Option<FunctionClass> {
    FunctionClass::from_function(name)
        .or_else(|| look_up(tables::OTHERS, name))
        .or_else(|| hip_class(base_name(name.strip_prefix("hip")?).trim_end_matches("_spt")))
}

/// Returns the class of a function of HIP from its name behind `hip`: that of CUDA's function of the same name or,
/// where names differ, of the one that does the same.
fn hip_class(rest: &str) -> Option<FunctionClass> {
    match look_up(tables::HIP, rest) {
        Some(same) => FunctionClass::from_function(same),
        None => {
            let named = |start: &str| FunctionClass::from_function(&format!("{start}{rest}"));
            named("cuda").or_else(|| named("cu"))
        }
    }
}

/// Returns what a table, sorted by name, has for a name.
fn look_up<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    let row = table.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(table[row].1)
}

/// Returns the kind of a call of CUDA, HIP, HSA, oneAPI, MTIA or Vulkan; `None` if the name is none of their functions.
/// Text behind the function's name, such as parameters, is ignored. A function of CUDA, HIP, HSA, Level Zero or Vulkan that is in no
/// table is [`HostCallKind::OtherCall`].
pub(crate) fn host_call_kind(name: &str) -> Option<HostCallKind> {
    let name = bare_name(name);
    if let Some(class) = class_of(name) {
        return Some(class.host_call_kind());
    }
    if let Some(rest) = after(name, "vk") {
        return Some(vulkan_call_kind(rest));
    }
    let is_call = api_of(name).is_some()
        || after(name, "ze").is_some()
        || name.starts_with("hsa_")
        || name.starts_with("__hip");
    is_call.then_some(HostCallKind::OtherCall)
}

/// Returns the name of a function without the text behind it, such as parameters.
pub(crate) fn bare_name(name: &str) -> &str {
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    &name[..end.unwrap_or(name.len())]
}

/// Returns a kernel's name without what AMD's compiler adds to the name of the object that describes the kernel:
/// `.kd`, or ` [clone .kd]` in demangled names.
pub(crate) fn kernel_name(name: &str) -> &str {
    let bare = name.strip_suffix(" [clone .kd]");
    bare.or(name.strip_suffix(".kd")).unwrap_or(name)
}

/// Returns the API of the devices that a function of CUDA or HIP uses; `None` for other functions. Vulkan does not
/// count, because a process may call Vulkan beside CUDA or HIP.
pub(crate) fn api_of(name: &str) -> Option<Api> {
    let apis = [("cuda", Api::Cuda), ("hip", Api::Hip), ("cu", Api::Cuda)];
    let mut apis = apis.into_iter();
    apis.find_map(|(prefix, api)| after(name, prefix).map(|_| api))
}

/// Returns the kind of a function of Vulkan from its name behind `vk`.
fn vulkan_call_kind(rest: &str) -> HostCallKind {
    look_up(tables::VULKAN, rest).unwrap_or(HostCallKind::OtherCall)
}

/// Returns the part of a name behind a prefix, and an underscore if there is one, if that part starts with a capital
/// letter, as in the names of functions.
fn after<'a>(function: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = function.strip_prefix(prefix)?;
    let rest = rest.strip_prefix('_').unwrap_or(rest);
    rest.starts_with(|c: char| c.is_ascii_uppercase())
        .then_some(rest)
}

#[cfg(test)]
mod tests;
