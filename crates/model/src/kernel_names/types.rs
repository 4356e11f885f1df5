//! Formats C++ types and values without namespaces, and with short names of number types.

use super::cpp::{self, Kind, Token};
use super::functor;

/// Formats a template argument: `at::native::X<c10::BFloat16 const*>` becomes `X<bf16 const*>`, `(unsigned long)4`
/// becomes `4`.
pub(super) fn text(tokens: &[Token]) -> String {
    let mut text = String::new();
    write(tokens, &mut text);
    text
}

fn list(items: &[Vec<Token>], out: &mut String) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write(item, out);
    }
}

fn write(tokens: &[Token], out: &mut String) {
    let tokens = match tokens {
        [cast, value @ ..] if is_number(value) => {
            if let Kind::Group('(', of) = &cast.kind
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
        && let Some(functor) = functor::of(tokens)
    {
        out.push_str(&functor.to_string());
        return;
    }
    // Start of the current segment of a path.
    let mut part = out.len();
    let mut before: Option<&Token> = None;
    for (at, token) in tokens.iter().enumerate() {
        let after = |kind: fn(&Kind) -> bool| before.is_some_and(|before| kind(&before.kind));
        match &token.kind {
            Kind::Scope => out.truncate(part),
            Kind::Word(word) => {
                let joined = |kind: &Kind| match kind {
                    Kind::Scope | Kind::Sign("&" | "!" | "-" | "#") => true,
                    Kind::Group('(', _) => !token.spaced,
                    _ => false,
                };
                if before.is_some_and(|before| !joined(&before.kind)) {
                    out.push(' ');
                }
                if !after(|kind| *kind == Kind::Scope) {
                    part = out.len();
                }
                let next = tokens.get(at + 1).map(|next| &next.kind);
                out.push_str(match next {
                    Some(Kind::Scope) => word,
                    _ => renamed(word),
                });
            }
            Kind::Sign(sign) => out.push_str(sign),
            Kind::Group(bracket, items) => {
                if *bracket == '<'
                    && let Some(bytes) = opaque(before, items)
                {
                    out.truncate(part);
                    out.push_str(&bytes);
                } else {
                    if token.spaced && !after(|kind| *kind == Kind::Scope) && before.is_some() {
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

/// Formats PyTorch's `OpaqueType<4>`, which stands for any type of that size, as `4B`.
fn opaque(before: Option<&Token>, items: &[Vec<Token>]) -> Option<String> {
    match (before.map(|token| &token.kind), items) {
        (Some(Kind::Word("OpaqueType")), [bytes]) => Some(format!("{}B", cpp::number(bytes)?)),
        _ => None,
    }
}

/// Returns true for `4` and `-4`.
fn is_number(tokens: &[Token]) -> bool {
    let digits = |token: &Token| matches!(token.kind, Kind::Word(word) if word.starts_with(|c: char| c.is_ascii_digit()));
    match tokens {
        [value] => digits(value),
        [sign, value] => sign.kind == Kind::Sign("-") && digits(value),
        _ => false,
    }
}

/// Formats a value that is written with a cast to its type.
fn literal(of: &[Token], value: &[Token]) -> Option<String> {
    let last = cpp::word(&value[value.len() - 1..])?;
    let sign = if value.len() == 2 { "-" } else { "" };
    match cpp::path(of).last()?.name {
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

/// Returns the name of llama.cpp's tensor types, by their numbers in ggml.h.
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
