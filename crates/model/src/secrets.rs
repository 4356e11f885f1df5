//! Hides what looks like a secret in the arguments of a command. Arguments go in, and come out with [`HIDDEN`] in place of
//! each secret.
//!
//! Traces are given to others, and command lines hold passwords and keys. No rule finds them all: those here know the
//! common forms, and would rather hide a harmless word than show a secret.

/// Stands in the place of a secret.
pub const HIDDEN: &str = "***";

/// The last words of names whose value is a secret, such as `--hf-token` or `DB_PASSWORD`.
const NAMES: [&str; 14] = [
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "pass",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "credentials",
    "bearer",
    "pat",
    "signature",
];
/// Words that make a secret of a following `key`, such as `--api-key` or `AWS_SECRET_ACCESS_KEY`.
const KEYS: [&str; 6] = ["api", "access", "secret", "private", "auth", "account"];
/// The beginnings of tokens of services: AWS, GitHub, GitLab, Hugging Face, OpenAI, Slack, Google, and JSON Web Tokens.
const TOKENS: [&str; 19] = [
    "AKIA",
    "ASIA",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "hf_",
    "sk-",
    "sk_live_",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
];
/// The fewest characters behind the beginning of a token. Shorter words only begin alike.
const MIN_TOKEN_CHARACTERS: usize = 16;

/// Returns the arguments of a command without what looks like a secret.
pub fn hide(arguments: &[String]) -> Vec<String> {
    let mut is_next = false;
    arguments
        .iter()
        .map(|argument| {
            // A shell's command has several words in one argument.
            let words = argument.split(' ').map(|word| {
                let (shown, names_next) = hide_in_word(word, is_next);
                is_next = names_next || (is_next && word.is_empty());
                shown
            });
            words.collect::<Vec<_>>().join(" ")
        })
        .collect()
}

/// Returns a word without its secrets, and whether the next word is one. `is_secret` says that the word before named
/// this one as such.
fn hide_in_word(word: &str, is_secret: bool) -> (String, bool) {
    // `--password --verbose` gives no password, and `Authorization: Bearer TOKEN` goes on.
    let is_name = names_secret(word.trim_end_matches(':'));
    if is_secret && !word.is_empty() && !word.starts_with("--") && !is_name {
        return (HIDDEN.to_owned(), false);
    }
    if is_name
        && (word.starts_with('-') || word.ends_with(':') || word.eq_ignore_ascii_case("bearer"))
    {
        return (word.to_owned(), true);
    }
    let assigned = hide_assigned(word);
    (hide_tokens(&hide_user_info(&assigned)), false)
}

/// Returns true where a name, such as that of an option or a variable, is that of a secret.
fn names_secret(name: &str) -> bool {
    let lower = name.trim_matches(['-', '"', '\'']).to_ascii_lowercase();
    let mut parts = lower.rsplit(['-', '_', '.']);
    match (parts.next(), parts.next()) {
        (Some("key"), Some(before)) => KEYS.contains(&before),
        (Some(last), _) => {
            NAMES.contains(&last) || matches!(last, "accesskey" | "secretkey" | "authtoken")
        }
        _ => false,
    }
}

/// Hides values that are assigned to names of secrets: `--token=X`, `KEY=X`, and `&key=X` in an address.
fn hide_assigned(word: &str) -> String {
    let mut shown = String::new();
    for (index, piece) in word.split_inclusive(['?', '&', ';']).enumerate() {
        let separator = piece
            .ends_with(['?', '&', ';'])
            .then(|| &piece[piece.len() - 1..]);
        let text = &piece[..piece.len() - separator.map_or(0, str::len)];
        // The first piece is an option or a variable, the others are parts of an address.
        let name_end = text
            .find('=')
            .filter(|_| index > 0 || !text.contains("://"));
        match name_end.filter(|end| names_secret(&text[..*end])) {
            Some(end) if end + 1 < text.len() => {
                shown.push_str(&text[..=end]);
                shown.push_str(HIDDEN);
            }
            _ => shown.push_str(text),
        }
        shown.push_str(separator.unwrap_or_default());
    }
    shown
}

/// Hides the password of `scheme://user:password@host`, and a long user name without one, which is a token.
fn hide_user_info(word: &str) -> String {
    let Some((before, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let Some(at) = rest[..authority_end].rfind('@') else {
        return word.to_owned();
    };
    let (user_info, host) = rest.split_at(at);
    match user_info.split_once(':') {
        Some((user, _)) => format!("{before}://{user}:{HIDDEN}{host}"),
        None if user_info.len() >= MIN_TOKEN_CHARACTERS => format!("{before}://{HIDDEN}{host}"),
        None => word.to_owned(),
    }
}

/// Hides tokens of services, wherever they stand in a word.
fn hide_tokens(word: &str) -> String {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut shown = String::new();
    let mut rest = word;
    let mut follows = false;
    while let Some(first) = rest.chars().next() {
        let begun = TOKENS
            .iter()
            .find(|token| !follows && rest.starts_with(**token));
        let length = begun.map_or(0, |token| {
            let behind = rest[token.len()..].find(|c| !is_of_token(c));
            behind.map_or(rest.len(), |end| token.len() + end)
        });
        match begun {
            Some(token) if length >= token.len() + MIN_TOKEN_CHARACTERS => {
                shown.push_str(token);
                shown.push_str(HIDDEN);
                rest = &rest[length..];
                follows = true;
            }
            _ => {
                shown.push(first);
                rest = &rest[first.len_utf8()..];
                follows = first.is_ascii_alphanumeric();
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(line: &[&str]) -> String {
        let arguments: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        hide(&arguments).join(" ")
    }

    #[test]
    fn secrets_are_hidden_and_names_stay() {
        for (line, shown) in [
            (
                &["run", "--password", "hunter2", "--steps", "10"][..],
                "run --password *** --steps 10",
            ),
            (&["run", "--token=abc"], "run --token=***"),
            (&["run", "--hf-token", "abc"], "run --hf-token ***"),
            (&["env", "DB_PASSWORD=x", "run"], "env DB_PASSWORD=*** run"),
            (
                &["env", "AWS_SECRET_ACCESS_KEY=x/y", "run"],
                "env AWS_SECRET_ACCESS_KEY=*** run",
            ),
            (&["run", "--api-key", "k"], "run --api-key ***"),
            (
                &["git", "https://me:pw@host/p"],
                "git https://me:***@host/p",
            ),
            (
                &["get", "https://h/p?a=1&token=x&b=2"],
                "get https://h/p?a=1&token=***&b=2",
            ),
            (
                &["curl", "-H", "Authorization: Bearer abc"],
                "curl -H Authorization: Bearer ***",
            ),
            (
                &["sh", "-c", "run --password hunter2 | tee log"],
                "sh -c run --password *** | tee log",
            ),
            (&["a", "AKIAIOSFODNN7EXAMPLE"], "a AKIA***"),
            (
                &["a", "x=ghp_0123456789abcdefghijABCDEFGHIJ012345"],
                "a x=ghp_***",
            ),
            (&["a", "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"], "a hf_***"),
        ] {
            assert_eq!(hidden(line), shown);
        }
    }

    #[test]
    fn harmless_words_stay() {
        for line in [
            &[
                "python",
                "train.py",
                "--tokenizer",
                "gpt2",
                "--max-tokens",
                "512",
                "--key",
                "a",
            ][..],
            &["run", "--password", "--verbose"],
            &["ssh://git@host/p", "user@host", "https://host/a@b"],
            &[
                "task-list",
                "risk-0123456789abcdefghij",
                "hf_small",
                "MONKEY=1",
                "--passes=2",
            ],
            &["run", "--cache-key=v1", "sk-learn"],
        ] {
            assert_eq!(hidden(line), line.join(" "));
        }
    }
}
