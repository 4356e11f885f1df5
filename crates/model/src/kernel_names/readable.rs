//! Turns a kernel's name into a readable one: recognises the library or compiler that made the name, and calls the
//! parser for it.

use super::cpp::{self, Segment, Token, TokenKind};
use super::{fused, matrix, operations, pytorch, templates};
use std::borrow::Cow;

/// The name of a kernel without any name.
pub const UNKNOWN: &str = "unknown kernel";

/// Returns a readable name: `add<float> (vec4)`, `gemm bf16 128x256 bias TNN (nvjet …)`. `full_name` is the whole C++
/// name where `name` is a shorter one. Unknown names stay as they are.
///
/// ```
/// use gapscope_model::kernel_names::readable;
/// let of_pytorch = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, \
///     std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";
/// assert_eq!(readable(of_pytorch, None), "add<float> (vec4)");
/// assert_eq!(readable("triton_poi_fused_cos_0", None), "triton_poi_fused_cos_0");
/// ```
pub fn readable<'a>(name: &'a str, full_name: Option<&str>) -> Cow<'a, str> {
    if let Some(known) = library_kernel_name(full_name.unwrap_or(name)) {
        return Cow::Owned(known);
    }
    match full_name.filter(|full| *full != name) {
        Some(_) => {}
        None => {
            if let Some(plain) = cpp::parse(name).and_then(|tokens| plain(&tokens)) {
                return Cow::Owned(library_kernel_name(&plain).unwrap_or(plain));
            }
        }
    }
    match name.trim() {
        "" => Cow::Borrowed(UNKNOWN),
        _ => Cow::Borrowed(name),
    }
}

/// Returns the readable name of a kernel from a known library, by the first module that recognises it; `None` for
/// others.
pub fn library_kernel_name(name: &str) -> Option<String> {
    let tokens = cpp::parse(name)?;
    let path = cpp::path(&tokens);
    let kernel = path.last()?;
    match (tokens.as_slice(), kernel.name) {
        ([_], flat) => matrix::name(flat).or_else(|| fused::name(flat)),
        (_, "") => None,
        // MLX appends template arguments to the operations.
        ([_, _], flat) if kernel.parameters.is_none() && fused::name(flat).is_some() => {
            fused::name(flat)
        }
        _ => pytorch::name(kernel).or_else(|| templates::name(&path)),
    }
}

/// Returns a function's name without its return type, namespaces and parameters; `None` for other names, and for
/// those that would mean nothing.
fn plain(tokens: &[Token]) -> Option<String> {
    let path = cpp::path(tokens);
    let kernel: &Segment = path.last()?;
    if kernel.parameters.is_none()
        || !ends_with_parameters(tokens)
        || kernel.name.starts_with("operator")
        || matches!(kernel.name, "" | "lambda")
        || kernel.name.starts_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    // Some names mean nothing without the enclosing one: `gemvx::kernel<…>`.
    let around = match kernel.name {
        "kernel" | "Kernel" | "run" | "main" => path.iter().rev().nth(1).map(|part| part.name),
        _ => None,
    };
    let around = around.filter(|name| !name.is_empty());
    let around = around.map_or(String::new(), |name| format!("{name}::"));
    // cuBLAS parameters among the arguments repeat the types before them.
    let own = |item: &&Vec<Token>| {
        let path = cpp::path(item);
        !path
            .last()
            .is_some_and(|part| part.name.starts_with("cublas"))
    };
    let arguments: Vec<String> = (kernel.arguments.iter().filter(own))
        .map(|item| operations::type_text(item))
        .collect();
    let arguments = match kernel.arguments {
        [] => String::new(),
        _ => format!("<{}>", arguments.join(", ")),
    };
    Some(format!("{around}{}{arguments}", kernel.name))
}

/// Returns a C++ name without its parameters, which repeat the template arguments.
pub fn without_parameters(name: &str) -> &str {
    match cpp::parse(name) {
        Some(tokens) if ends_with_parameters(&tokens) => {
            let start = tokens.last().map_or(name.len(), Token::start);
            &name[..start]
        }
        _ => name,
    }
}

/// Returns true where the tokens end with a function's parameters, unlike `add<float> (vec4)`.
fn ends_with_parameters(tokens: &[Token]) -> bool {
    matches!(
        tokens,
        [
            _,
            ..,
            Token {
                kind: TokenKind::Group('(', _),
                spaced: false,
                ..
            }
        ]
    )
}
