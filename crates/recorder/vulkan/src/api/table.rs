//! Tables of functions with parameters of the binary interface, so that functions are in them of which ash knows nothing.

/// A parameter that points to structures, arrays or a dispatchable handle.
pub type Pointer = *const std::ffi::c_void;

/// A structure of the next layer's functions, from the rows of a table: field, names, parameters, what it is.
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
            /// `find` gives the first function that the next layer has of some names, each ended by NUL.
            pub fn load(find: impl Fn(&[&str]) -> ash::vk::PFN_vkVoidFunction) -> $table {
                $table {
                    $($field: find(&[$(concat!($name, "\0")),+]).map(|function| {
                        // SAFETY: a function of that name has these parameters, which the tests compare with the
                        // registry.
                        unsafe {
                            std::mem::transmute::<
                                unsafe extern "system" fn(),
                                unsafe extern "system" fn($handle $(, $type)*) -> $result,
                            >(function)
                        }
                    }),)+
                }
            }
        }
    };
}
pub(crate) use function_table;

/// The hooks of a table's functions, by name.
macro_rules! hook_table {
    ($($hook:ident $($name:literal)+ ($($argument:ident: $type:ty),*) = $what:expr;)+) => {
        /// The hook of a function.
        pub fn hook(name: &str) -> ash::vk::PFN_vkVoidFunction {
            let function = match name {
                $($($name)|+ => $hook as *const (),)+
                _ => return None,
            };
            // SAFETY: it points to a function, which is called only after the cast back.
            unsafe { std::mem::transmute(function) }
        }

        /// Names of each function, and the types of its parameters after the first.
        #[cfg(test)]
        pub const FUNCTIONS: &[(&[&str], &[&str])] =
            &[$((&[$($name),+], &[$(stringify!($type)),*])),+];
    };
}
pub(crate) use hook_table;
