//! Defines macros for tables of functions: a row has a field, the function's names, its parameters and a meaning;
//! [`function_table`](crate::function_table) makes a structure of the next layer's functions from the rows, and
//! [`hook_table`](crate::hook_table) the lookup of hooks. Parameters have the types of the binary interface, so that
//! the tables have functions that ash (the crate with Vulkan's functions) does not know.

/// A parameter that points to structures, arrays or a dispatchable handle.
pub type Pointer = *const std::ffi::c_void;

/// Defines a structure of the next layer's functions, from the rows of a table: field, names, parameters, meaning.
#[macro_export]
macro_rules! function_table {
    (
        $(#[$doc:meta])*
        $table:ident($handle:ty) -> $result:ty:
        $($field:ident $($name:literal)+ ($($argument:ident: $type:ty),*) = $what:expr;)+
    ) => {
        $(#[$doc])*
        pub struct $table {
            $(pub $field: Option<unsafe extern "system" fn($handle $(, $type)*) -> $result>,)+
        }

        impl $table {
            /// Looks up the next layer's functions of a device.
            ///
            /// # Safety
            /// `device` has been made by the next layer, to which `get` belongs.
            pub unsafe fn load(
                device: ash::vk::Device,
                get: $crate::loader::GetDeviceProcAddr,
            ) -> $table {
                $table {
                    // SAFETY: as the caller promises; a function of that name has these parameters, which the tests compare
                    // with the registry.
                    $($field: unsafe {
                        $crate::functions::find(device, get, &[$(concat!($name, "\0")),+]).map(|function| {
                            std::mem::transmute::<
                                unsafe extern "system" fn(),
                                unsafe extern "system" fn($handle $(, $type)*) -> $result,
                            >(function)
                        })
                    },)+
                }
            }
        }
    };
}

/// Defines the hooks of a table's functions, by name.
#[macro_export]
macro_rules! hook_table {
    ($($hook:ident $($name:literal)+ ($($argument:ident: $type:ty),*) = $what:expr;)+) => {
        /// Returns the hook of a function.
        pub fn hook(name: &str) -> ash::vk::PFN_vkVoidFunction {
            let function = match name {
                $($($name)|+ => $hook as *const (),)+
                _ => return None,
            };
            // SAFETY: it points to a function, which is called only after the cast back.
            unsafe { std::mem::transmute(function) }
        }

        /// The names of each function, and the types of its parameters after the first.
        #[cfg(test)]
        pub const FUNCTIONS: &[(&[&str], &[&str])] =
            &[$((&[$($name),+], &[$(stringify!($type)),*])),+];
    };
}
