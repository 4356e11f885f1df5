//! Names the operations of PyTorch's functors (types whose values are called like functions) and lambdas, and formats
//! C++ types and values without namespaces: parsed tokens go in, a [`Functor`] or a text comes out. Both are in one
//! module, because an operation has types, and a template argument may be a lambda.

use super::cpp::{self, Segment, Token, TokenKind};
use std::fmt;

/// An operation on numbers of some types.
#[derive(Debug, PartialEq)]
pub(super) struct Functor {
    pub name: String,
    /// The types that tell operations of one name apart.
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
pub(super) fn functor(tokens: &[Token]) -> Option<Functor> {
    let path = cpp::path(tokens);
    match path.iter().rfind(|part| part.name == "lambda") {
        Some(lambda) => lambda_functor(&path, lambda),
        None => struct_functor(path.last()?),
    }
}

/// Names a lambda by the function that it is in.
fn lambda_functor(path: &[Segment], lambda: &Segment) -> Option<Functor> {
    let place = path.iter().position(|part| part.parameters.is_some())?;
    let mut function = path[place];
    if function.name == "operator()" {
        let enclosing = path.get(place.checked_sub(1)?)?;
        if enclosing.name == "_cuda_scatter_gather_internal_kernel" {
            return scatter_gather(enclosing, &function);
        }
        function = *enclosing;
    }
    if matches!(
        function.name,
        "gpu_kernel_impl" | "gpu_kernel_impl_nocast" | "gpu_index_kernel"
    ) {
        return functor(function.arguments.first()?);
    }
    if matches!(function.name, "" | "lambda" | "operator()") {
        return None;
    }
    let arguments = match function.arguments {
        [] => lambda.parameters.unwrap_or_default(),
        arguments => arguments,
    };
    let mut types = cpp::distinct(arguments.iter().map(|argument| type_text(argument)));
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
            None => function_name(function.name),
        },
        types,
    })
}

/// Names a functor by its type's name, without what PyTorch adds to it.
fn struct_functor(part: &Segment) -> Option<Functor> {
    let argument = |at: usize| part.arguments.get(at).map(Vec::as_slice);
    let whole = |name: String| {
        let types = part.arguments.iter().map(|argument| type_text(argument));
        Functor {
            name,
            types: cpp::distinct(types),
        }
    };
    let name = part.name;
    match name {
        "func_wrapper_t" => return functor(argument(1)?),
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

/// Names `BinaryFunctor<A, B, R, Op>`: an operation on types A and B with the result R. `named` makes its name from
/// that of `Op`.
fn between(part: &Segment, named: impl Fn(String) -> String) -> Option<Functor> {
    let [a, b, result, operation] = part.arguments else {
        return None;
    };
    let name = named(functor(operation)?.name);
    let result = type_text(result);
    let mut types = cpp::distinct([type_text(a), type_text(b)]);
    if types != [result.as_str()]
        && let Some(last) = types.last_mut()
    {
        last.push_str(&format!(" -> {result}"));
    }
    Some(Functor { name, types })
}

/// Names `_cuda_scatter_gather_internal_kernel<is_scatter, T>::operator()<Op>(…)::lambda`.
fn scatter_gather(kernel: &Segment, operator: &Segment) -> Option<Functor> {
    let [scatters, element] = kernel.arguments else {
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
        types: vec![type_text(element)],
    })
}

/// Shortens a function's name: `direct_copy_kernel_cuda` becomes `copy`, `GeluCUDAKernelImpl` becomes `gelu`.
fn function_name(name: &str) -> String {
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

/// Formats a template argument: `at::native::X<c10::BFloat16 const*>` becomes `X<bf16 const*>`, `(unsigned long)4`
/// becomes `4`.
pub(super) fn type_text(tokens: &[Token]) -> String {
    let mut text = String::new();
    write_type(tokens, &mut text);
    text
}

/// Appends template arguments or parameters, with commas between them.
fn list(items: &[Vec<Token>], out: &mut String) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_type(item, out);
    }
}

/// Appends a type or a value without namespaces: a lambda by its operation, a value without the cast to its type.
fn write_type(tokens: &[Token], out: &mut String) {
    let tokens = match tokens {
        [cast, value @ ..] if is_number(value) => {
            if let TokenKind::Group('(', of) = &cast.kind
                && let [of] = of.as_slice()
                && let Some(value) = literal(of, value)
            {
                out.push_str(&value);
                return;
            }
            tokens
        }
        _ => tokens,
    };
    let path = cpp::path(tokens);
    if path.iter().any(|part| part.name == "lambda")
        && let Some(operation) = functor(tokens)
    {
        out.push_str(&operation.to_string());
        return;
    }
    // Start of the current segment of a path.
    let mut part = out.len();
    let mut before: Option<&Token> = None;
    for (at, token) in tokens.iter().enumerate() {
        let after = |kind: fn(&TokenKind) -> bool| before.is_some_and(|before| kind(&before.kind));
        match &token.kind {
            TokenKind::Scope => out.truncate(part),
            TokenKind::Word(word) => {
                let joined = |kind: &TokenKind| match kind {
                    TokenKind::Scope | TokenKind::Sign("&" | "!" | "-" | "#") => true,
                    TokenKind::Group('(', _) => !token.spaced,
                    _ => false,
                };
                if before.is_some_and(|before| !joined(&before.kind)) {
                    out.push(' ');
                }
                if !after(|kind| *kind == TokenKind::Scope) {
                    part = out.len();
                }
                let next = tokens.get(at + 1).map(|next| &next.kind);
                out.push_str(match next {
                    Some(TokenKind::Scope) => word,
                    _ => renamed(word),
                });
            }
            TokenKind::Sign(sign) => out.push_str(sign),
            TokenKind::Group(bracket, items) => {
                if *bracket == '<'
                    && let Some(bytes) = opaque(before, items)
                {
                    out.truncate(part);
                    out.push_str(&bytes);
                } else {
                    if token.spaced && !after(|kind| *kind == TokenKind::Scope) && before.is_some()
                    {
                        out.push(' ');
                        part = out.len();
                    }
                    out.push(*bracket);
                    list(items, out);
                    out.push(match bracket {
                        '<' => '>',
                        '(' => ')',
                        '[' => ']',
                        _ => '}',
                    });
                }
            }
        }
        before = Some(token);
    }
}

/// Formats PyTorch's `OpaqueType<4>`, which stands for any type of that size, as `4B`. `before` is the token before
/// the brackets; `None` for other types.
fn opaque(before: Option<&Token>, items: &[Vec<Token>]) -> Option<String> {
    match (before.map(|token| &token.kind), items) {
        (Some(TokenKind::Word("OpaqueType")), [bytes]) => Some(format!("{}B", cpp::number(bytes)?)),
        _ => None,
    }
}

/// Returns true for `4` and `-4`.
fn is_number(tokens: &[Token]) -> bool {
    let digits = |token: &Token| matches!(token.kind, TokenKind::Word(word) if word.starts_with(|c: char| c.is_ascii_digit()));
    match tokens {
        [value] => digits(value),
        [sign, value] => sign.kind == TokenKind::Sign("-") && digits(value),
        _ => false,
    }
}

/// Formats a value that is written with a cast to its type; `None` for other types than truth values, integers and
/// ggml's.
fn literal(cast: &[Token], value: &[Token]) -> Option<String> {
    let last = cpp::word(&value[value.len() - 1..])?;
    let sign = if value.len() == 2 { "-" } else { "" };
    match cpp::path(cast).last()?.name {
        "bool" => Some((last != "0").to_string()),
        "ggml_type" => Some(ggml_type(last)?.to_owned()),
        "int" | "long" | "char" | "short" | "unsigned" | "signed" => Some(format!("{sign}{last}")),
        _ => None,
    }
}

/// Shortens types that have common short names, and numbers with suffixes.
fn renamed(word: &str) -> &str {
    match word {
        "BFloat16" | "__nv_bfloat16" | "nv_bfloat16" | "bfloat16_t" => "bf16",
        "Half" | "__half" | "half_t" => "half",
        "__nv_bfloat162" => "bf16x2",
        "__half2" => "half2",
        _ if word.starts_with(|c: char| c.is_ascii_digit()) => {
            let plain = word.trim_end_matches(['u', 'l']);
            match plain.bytes().all(|c| c.is_ascii_digit()) {
                true => plain,
                false => word,
            }
        }
        _ => word,
    }
}

/// Returns the name of one of llama.cpp's tensor types, by its number in ggml.h; `None` for unknown numbers.
fn ggml_type(number: &str) -> Option<&'static str> {
    Some(match number {
        "0" => "f32",
        "1" => "f16",
        "2" => "q4_0",
        "3" => "q4_1",
        "6" => "q5_0",
        "7" => "q5_1",
        "8" => "q8_0",
        "9" => "q8_1",
        "10" => "q2_K",
        "11" => "q3_K",
        "12" => "q4_K",
        "13" => "q5_K",
        "14" => "q6_K",
        "15" => "q8_K",
        "16" => "iq2_xxs",
        "17" => "iq2_xs",
        "18" => "iq3_xxs",
        "19" => "iq1_s",
        "20" => "iq4_nl",
        "21" => "iq3_s",
        "22" => "iq2_s",
        "23" => "iq4_xs",
        "29" => "iq1_m",
        "30" => "bf16",
        _ => return None,
    })
}
