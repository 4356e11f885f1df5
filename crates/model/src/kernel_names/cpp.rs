//! Parses names of C++ functions and types into trees of their brackets: [`parse`] makes tokens of a name, and
//! [`path`] makes of tokens the segments between `::`, each with its arguments.
//!
//! It accepts the output of GNU's demangler, `at::native::(anonymous namespace)::k<4ul, {lambda(float)#1}>(int)`, and
//! of Nsight's, `at::native::<unnamed>::k<(unsigned long)4, [lambda(float) (instance 1)]>(T1)`.

/// The most bytes of a name that is parsed; longer names are not.
const MAX_NAME_BYTES: usize = 1 << 16;
/// The greatest depth of brackets in a name that is parsed; deeper names are not.
const MAX_DEPTH: usize = 100;

/// A part of a C++ name, with its position.
#[derive(Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub kind: TokenKind<'a>,
    /// True if blanks precede the token.
    pub spaced: bool,
    /// The offset in the name at which the token begins.
    start: usize,
}

/// The kind of a token, with its text or its contents.
#[derive(Debug, PartialEq)]
pub(super) enum TokenKind<'a> {
    /// An identifier or a number.
    Word(&'a str),
    /// `::`.
    Scope,
    /// `*`, `&`, `->` and the like.
    Sign(&'a str),
    /// The comma-separated items between brackets, with the opening bracket.
    Group(char, Vec<Vec<Token<'a>>>),
}

impl<'a> Token<'a> {
    /// Returns the position in the name.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns the text of an identifier or number; `None` for other tokens.
    fn word(&self) -> Option<&'a str> {
        match self.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// A bracket that has not been closed yet, with the items that were read inside it.
struct OpenBracket<'a> {
    bracket: char,
    spaced: bool,
    start: usize,
    items: Vec<Vec<Token<'a>>>,
}

/// Splits a name into tokens; `None` where its brackets do not match, a comma stands outside of them, or a limit is
/// exceeded. In a name that was cut (it ends with `…`) the open brackets end there.
pub(super) fn parse(name: &str) -> Option<Vec<Token<'_>>> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let mut open: Vec<OpenBracket> = Vec::new();
    let mut tokens: Vec<Token> = Vec::new();
    let (mut at, mut spaced) = (0, false);
    while let Some(next) = name[at..].chars().next() {
        let start = at;
        at += next.len_utf8();
        let kind = match next {
            _ if next.is_whitespace() => {
                spaced = true;
                continue;
            }
            ':' if name[at..].starts_with(':') => {
                at += 1;
                TokenKind::Scope
            }
            _ if is_word(next) => {
                at = name[start..]
                    .find(|c| !is_word(c))
                    .map_or(name.len(), |length| start + length);
                let word = &name[start..at];
                if word == "operator" {
                    at += operator(&name[at..]);
                }
                TokenKind::Word(match word {
                    "operator" if name[start..at].ends_with("()") => "operator()",
                    _ => name[start..at].trim_end(),
                })
            }
            '<' | '(' | '[' | '{' => {
                if open.len() == MAX_DEPTH {
                    return None;
                }
                open.push(OpenBracket {
                    bracket: next,
                    spaced,
                    start,
                    items: vec![std::mem::take(&mut tokens)],
                });
                spaced = false;
                continue;
            }
            ',' => {
                open.last_mut()?.items.push(std::mem::take(&mut tokens));
                spaced = false;
                continue;
            }
            '-' if name[at..].starts_with('>') => {
                at += 1;
                TokenKind::Sign("->")
            }
            '>' | ')' | ']' | '}' => {
                let closed = open.pop().filter(|open| closes(open.bracket, next))?;
                tokens = close(closed, tokens);
                spaced = false;
                continue;
            }
            _ => TokenKind::Sign(&name[start..at]),
        };
        tokens.push(Token {
            kind,
            spaced,
            start,
        });
        spaced = false;
    }
    if name.ends_with('…') {
        while let Some(closed) = open.pop() {
            tokens = close(closed, tokens);
        }
    }
    open.is_empty().then_some(tokens)
}

/// Returns the tokens before a bracket, followed by the group that it closes. `last` is the group's last item.
fn close<'a>(mut closed: OpenBracket<'a>, last: Vec<Token<'a>>) -> Vec<Token<'a>> {
    // The first item holds the tokens before the bracket.
    let mut tokens = closed.items.remove(0);
    if !(last.is_empty() && closed.items.is_empty()) {
        closed.items.push(last);
    }
    tokens.push(Token {
        kind: TokenKind::Group(closed.bracket, closed.items),
        spaced: closed.spaced,
        start: closed.start,
    });
    tokens
}

/// Returns true for letters of identifiers and numbers.
fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '~' | '$')
}

/// Returns true if a closing bracket belongs to an opening one.
fn closes(open: char, close: char) -> bool {
    matches!(
        (open, close),
        ('<', '>') | ('(', ')') | ('[', ']') | ('{', '}')
    )
}

/// Returns the length of the rest of an operator's name, behind the word `operator`.
fn operator(rest: &str) -> usize {
    let blanks = rest.len() - rest.trim_start_matches(' ').len();
    let signs = &rest[blanks..];
    let length = match signs {
        _ if signs.starts_with("()") || signs.starts_with("[]") => 2,
        _ => signs
            .find(|c| !"<>=-+*/!&|^%~".contains(c))
            .unwrap_or(signs.len()),
    };
    match length {
        0 => 0,
        // `operator<<int>` is `operator<` of `int`.
        2 if signs.starts_with("<<") && signs.contains('>') => blanks + 1,
        _ => blanks + length,
    }
}

/// A segment of a path: `name<arguments>(parameters)`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment<'t, 'a> {
    /// `lambda` for a lambda; empty for an unnamed namespace.
    pub name: &'a str,
    /// Template arguments.
    pub arguments: &'t [Vec<Token<'a>>],
    /// Parameters, for a function.
    pub parameters: Option<&'t [Vec<Token<'a>>]>,
}

/// Returns the path at the end of tokens: `a`, `b<c>(d)` for `void a::b<c>(d)`.
pub(super) fn path<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<Segment<'t, 'a>> {
    let mut start = 0;
    for (at, pair) in tokens.windows(2).enumerate() {
        let [before, token] = pair else { continue };
        let begins = match &token.kind {
            TokenKind::Word("const" | "volatile") | TokenKind::Scope | TokenKind::Sign(_) => false,
            TokenKind::Word(_) | TokenKind::Group(..) => {
                token.spaced && before.kind != TokenKind::Scope
            }
        };
        if begins {
            start = at + 1;
        }
    }
    let parts = tokens[start..].split(|token| token.kind == TokenKind::Scope);
    parts.map(segment).collect()
}

/// Reads the name, the arguments and the parameters of a segment.
fn segment<'t, 'a>(tokens: &'t [Token<'a>]) -> Segment<'t, 'a> {
    let mut parsed = Segment {
        name: "",
        arguments: &[],
        parameters: None,
    };
    for (at, token) in tokens.iter().enumerate() {
        match &token.kind {
            TokenKind::Word(word) if parsed.name.is_empty() => parsed.name = word,
            TokenKind::Group('{' | '[', items) if at == 0 => {
                let inside = items.first().map_or(&[][..], Vec::as_slice);
                if inside.first().and_then(Token::word) == Some("lambda") {
                    parsed = segment(&inside[..inside.len().min(2)]);
                }
            }
            TokenKind::Group('<', items) if !parsed.name.is_empty() => parsed.arguments = items,
            TokenKind::Group('(', items) if !parsed.name.is_empty() => {
                parsed.parameters = Some(items)
            }
            _ => {}
        }
    }
    parsed
}

/// Returns the word of tokens that are a single word; `None` for others.
pub(super) fn word<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    match tokens {
        [token] => token.word(),
        // `(int)4`
        [cast, token] if matches!(cast.kind, TokenKind::Group('(', _)) => token.word(),
        _ => None,
    }
}

/// Returns the value of tokens that are one integer of any type; `None` for others.
pub(super) fn number(tokens: &[Token]) -> Option<u64> {
    word(tokens)?.trim_end_matches(['u', 'l']).parse().ok()
}

/// Returns true for `true` and `(bool)1`.
pub(super) fn is_true(tokens: &[Token]) -> bool {
    let is_bool = |token: &Token| matches!(&token.kind, TokenKind::Group('(', items) if items.len() == 1 && word(&items[0]) == Some("bool"));
    match tokens {
        [token] => token.word() == Some("true"),
        [cast, token] => is_bool(cast) && token.word() == Some("1"),
        _ => false,
    }
}

/// Removes duplicates and keeps the order.
pub(super) fn distinct(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}
