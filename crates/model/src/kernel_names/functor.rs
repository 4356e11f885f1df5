//! Names the operation of a PyTorch functor or lambda: `CUDAFunctor_add<float>` becomes `add<float>`.

use super::cpp::{self, Part, Token};
use super::types;
use std::fmt;

/// An operation on numbers of some types.
#[derive(Debug, PartialEq)]
pub(super) struct Functor {
    pub name: String,
    pub types: Vec<String>,
}

impl fmt::Display for Functor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.types.as_slice() {
            [] => f.write_str(&self.name),
            types => write!(f, "{}<{}>", self.name, types.join(", ")),
        }
    }
}

/// Returns the operation that these tokens name; `None` for an unknown one.
pub(super) fn of(tokens: &[Token]) -> Option<Functor> {
    let path = cpp::path(tokens);
    match path.iter().rfind(|part| part.name == "lambda") {
        Some(lambda) => of_lambda(&path, lambda),
        None => of_struct(path.last()?),
    }
}

/// Names a lambda after the function that contains it.
fn of_lambda(path: &[Part], lambda: &Part) -> Option<Functor> {
    let place = path.iter().position(|part| part.parameters.is_some())?;
    let mut function = path[place];
    if function.name == "operator()" {
        let of = path.get(place.checked_sub(1)?)?;
        if of.name == "_cuda_scatter_gather_internal_kernel" {
            return scatter_gather(of, &function);
        }
        function = *of;
    }
    if matches!(
        function.name,
        "gpu_kernel_impl" | "gpu_kernel_impl_nocast" | "gpu_index_kernel"
    ) {
        return self::of(function.arguments.first()?);
    }
    if matches!(function.name, "" | "lambda" | "operator()") {
        return None;
    }
    let arguments = match function.arguments {
        [] => lambda.parameters.unwrap_or_default(),
        arguments => arguments,
    };
    let mut types = cpp::distinct(arguments.iter().map(|argument| types::text(argument)));
    let copied = match function.name {
        "bfloat16_copy_kernel_cuda" => Some("bf16"),
        "float16_copy_kernel_cuda" => Some("half"),
        _ => None,
    };
    if let (Some(to), [from]) = (copied, types.as_slice()) {
        types = vec![format!("{from} -> {to}")];
    }
    Some(Functor {
        name: match copied {
            Some(_) => "copy".to_owned(),
            None => of_function(function.name),
        },
        types,
    })
}

fn of_struct(part: &Part) -> Option<Functor> {
    let argument = |at: usize| part.arguments.get(at).map(Vec::as_slice);
    let whole = |name: String| {
        let types = part.arguments.iter().map(|argument| types::text(argument));
        Functor {
            name,
            types: cpp::distinct(types),
        }
    };
    let name = part.name;
    match name {
        "func_wrapper_t" => return of(argument(1)?),
        "BinaryFunctor" => return between(part, |name| name),
        "AUnaryFunctor" => return between(part, |name| format!("scalar_{name}")),
        "BUnaryFunctor" => return between(part, |name| format!("{name}_scalar")),
        "ArgMaxOps" => return Some(whole("argmax".to_owned())),
        "ArgMinOps" => return Some(whole("argmin".to_owned())),
        _ => {}
    }
    for (prefix, before, behind) in [
        ("CUDAFunctor_", "", ""),
        ("CUDAFunctorOnSelf_", "", "_scalar"),
        ("CUDAFunctorOnOther_", "scalar_", ""),
    ] {
        if let Some(operation) = name.strip_prefix(prefix).filter(|rest| !rest.is_empty()) {
            return Some(whole(format!("{before}{operation}{behind}")));
        }
    }
    let endings = ["_functor", "Functor", "Ops"];
    let operation = endings.iter().find_map(|end| name.strip_suffix(end))?;
    (!operation.is_empty()).then(|| whole(snake(operation)))
}

/// Names `BinaryFunctor<A, B, R, Op>`: an operation on types A and B with the result R.
fn between(part: &Part, named: impl Fn(String) -> String) -> Option<Functor> {
    let [a, b, result, operation] = part.arguments else {
        return None;
    };
    let name = named(of(operation)?.name);
    let result = types::text(result);
    let mut types = cpp::distinct([types::text(a), types::text(b)]);
    if types != [result.as_str()]
        && let Some(last) = types.last_mut()
    {
        last.push_str(&format!(" -> {result}"));
    }
    Some(Functor { name, types })
}

/// Names `_cuda_scatter_gather_internal_kernel<is_scatter, T>::operator()<Op>(…)::lambda`.
fn scatter_gather(of: &Part, operator: &Part) -> Option<Functor> {
    let [scatters, of_type] = of.arguments else {
        return None;
    };
    let operation = cpp::path(operator.arguments.first()?).last()?.name;
    let name = match (cpp::is_true(scatters), operation) {
        (false, "TensorAssign") => "gather".to_owned(),
        (true, "TensorAssign") => "scatter".to_owned(),
        (true, _) => format!("scatter_{}", snake(operation.strip_prefix("Reduce")?)),
        _ => return None,
    };
    Some(Functor {
        name,
        types: vec![types::text(of_type)],
    })
}

/// Shortens a function's name: `direct_copy_kernel_cuda` becomes `copy`, `GeluCUDAKernelImpl` becomes `gelu`.
fn of_function(name: &str) -> String {
    if name == "direct_copy_kernel_cuda" {
        return "copy".to_owned();
    }
    const ENDINGS: [&str; 12] = [
        "_functor",
        "_kernel_cuda_impl",
        "_kernel_cuda",
        "_kernel_impl",
        "_cuda_kernel",
        "_cuda_out",
        "_kernel",
        "_cuda",
        "CUDAKernelImpl",
        "CUDAKernel",
        "KernelImpl",
        "Kernel",
    ];
    let bare = name.strip_prefix("launch_").unwrap_or(name);
    let bare = ENDINGS
        .iter()
        .find_map(|end| bare.strip_suffix(end))
        .unwrap_or(bare);
    match bare {
        "" => name.to_owned(),
        bare => snake(bare),
    }
}

/// Converts camel case to snake case: `CompareEq` becomes `compare_eq`.
pub(super) fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut before = '_';
    for letter in name.chars() {
        if letter.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
        before = letter;
    }
    out
}
