//! Parses the columns of a table from the SQL text that created the table, so that a scan can ask for them by name.

use super::record::{MAX_VALUES, Wanted};

/// The columns of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Columns {
    columns: Vec<Column>,
}

/// A column with the place of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    /// Where its values are.
    storage: Storage,
}

/// The place where the values of a column are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    InRecord,
    /// The column is the id of the row.
    RowId,
    /// The column is computed and not stored.
    Nowhere,
}

impl Columns {
    /// Returns the columns of the table `sqlite_schema`, which lists the tables.
    pub fn for_schema() -> Columns {
        let names = ["type", "name", "tbl_name", "rootpage", "sql"];
        let column = |name: &str| Column {
            name: name.to_owned(),
            storage: Storage::InRecord,
        };
        Columns {
            columns: names.map(column).to_vec(),
        }
    }

    /// Parses the columns of the table that `sql` creates. Returns `None` if the table cannot be scanned: it has no
    /// row ids, or the text is no `CREATE TABLE`.
    pub fn parse(sql: &str) -> Option<Columns> {
        let tokens = tokens(sql);
        let is = |token: Option<&Token>, word: &str| token.is_some_and(|t| t.is(word));
        if !is(tokens.first(), "create") || !is(tokens.get(1), "table") {
            return None;
        }
        let open = tokens.iter().position(|token| token.is("("))?;
        let mut depth = 0;
        let mut columns = Vec::new();
        let mut keys = Vec::new();
        let mut start = open + 1;
        for (at, token) in tokens.iter().enumerate().skip(open) {
            depth += i32::from(token.is("(")) - i32::from(token.is(")"));
            let ends = depth == 0;
            if ends || (depth == 1 && token.is(",")) {
                match definition(&tokens[start..at]) {
                    Some(Definition::Column(column)) => columns.push(column),
                    Some(Definition::Key(name)) => keys.push(name),
                    None => {}
                }
                start = at + 1;
            }
            if ends {
                // SQLite stores a table without row ids as an index.
                let rest = &tokens[at + 1..];
                if rest.iter().any(|token| token.is("without")) {
                    return None;
                }
                break;
            }
        }
        for column in &mut columns {
            if column.is_integer && keys.contains(&column.column.name.to_ascii_lowercase()) {
                column.column.storage = Storage::RowId;
            }
        }
        Some(Columns {
            columns: columns.into_iter().map(|typed| typed.column).collect(),
        })
    }

    /// Returns the index of the column with a name.
    pub fn place(&self, name: &str) -> Option<usize> {
        let same = |column: &Column| column.name.eq_ignore_ascii_case(name);
        self.columns.iter().position(same)
    }

    /// Maps the columns `names` to the values of the table's records. The slot of a value is the index of its name.
    pub fn wanted(&self, names: &[&str]) -> Wanted {
        debug_assert!(names.len() <= MAX_VALUES);
        let mut wanted = Wanted::default();
        for (slot, name) in names.iter().enumerate().take(MAX_VALUES) {
            let Some(place) = self.place(name) else {
                continue;
            };
            match self.columns[place].storage {
                Storage::RowId => wanted.want_row_id(slot),
                Storage::Nowhere => {}
                Storage::InRecord => {
                    let before = &self.columns[..place];
                    let computed = before
                        .iter()
                        .filter(|c| c.storage == Storage::Nowhere)
                        .count();
                    wanted.want(place - computed, slot);
                }
            }
        }
        wanted
    }
}

/// A column, and whether its type is exactly an integer, as the id of a row needs.
struct TypedColumn {
    column: Column,
    is_integer: bool,
}

/// An element of the list in `CREATE TABLE`: a column, or a key of the table.
enum Definition {
    Column(TypedColumn),
    /// A table's only key, with the name of its column.
    Key(String),
}

/// Returns the column or the only key that an element defines; `None` for other constraints. An integer that is the
/// primary key is the id of the row.
fn definition(tokens: &[Token]) -> Option<Definition> {
    let first = tokens.first()?;
    let is_key = tokens
        .windows(2)
        .any(|pair| pair[0].is("primary") && pair[1].is("key"));
    let of_table = ["constraint", "primary", "unique", "check", "foreign"];
    if of_table.iter().any(|word| first.is(word)) {
        let inside = tokens.iter().skip_while(|token| !token.is("(")).skip(1);
        let inside: Vec<&Token> = inside.take_while(|token| !token.is(")")).collect();
        let several = inside.iter().any(|token| token.is(","));
        let name = inside.first().filter(|_| is_key && !several)?;
        return Some(Definition::Key(name.text.to_ascii_lowercase()));
    }
    let is_integer = tokens.get(1).is_some_and(|token| token.is("integer"));
    let has = |word: &str| tokens.iter().skip(1).any(|token| token.is(word));
    let storage = if is_integer && is_key {
        Storage::RowId
    } else if has("as") && !has("stored") {
        Storage::Nowhere
    } else {
        Storage::InRecord
    };
    Some(Definition::Column(TypedColumn {
        column: Column {
            name: first.text.clone(),
            storage,
        },
        is_integer,
    }))
}

/// A token of SQL: a word, a name or a sign.
#[derive(Debug)]
struct Token {
    text: String,
    /// Whether the text was in quotes, so that it is a name and no keyword or sign.
    quoted: bool,
}

impl Token {
    /// Returns true if the token is the given keyword or sign.
    fn is(&self, word: &str) -> bool {
        !self.quoted && self.text.eq_ignore_ascii_case(word)
    }
}

/// Splits SQL into tokens, without white space and comments.
fn tokens(sql: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let close = match first {
            '"' | '\'' | '`' => Some(first),
            '[' => Some(']'),
            _ => None,
        };
        if let Some(close) = close {
            let (text, after) = quoted(&rest[1..], close);
            tokens.push(Token { text, quoted: true });
            rest = after;
        } else if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.find('\n').map_or("", |end| &comment[end..]);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.find("*/").map_or("", |end| &comment[end + 2..]);
        } else {
            let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
            let end = match is_word(first) {
                true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                false => first.len_utf8(),
            };
            if !first.is_whitespace() {
                let text = rest[..end].to_owned();
                tokens.push(Token {
                    text,
                    quoted: false,
                });
            }
            rest = &rest[end..];
        }
    }
    tokens
}

/// Returns the text before the closing quote and the text behind it. A doubled quote stands for one quote.
fn quoted(text: &str, close: char) -> (String, &str) {
    let mut out = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let doubled = c == close && chars.next_if(|(_, next)| *next == close).is_some();
        if c != close || doubled {
            out.push(c);
        } else {
            return (out, &text[at + c.len_utf8()..]);
        }
    }
    (out, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sql: &str) -> Option<String> {
        let columns = Columns::parse(sql)?;
        let shown = columns.columns.iter().map(|column| {
            let kept = match column.storage {
                Storage::InRecord => "",
                Storage::RowId => "=rowid",
                Storage::Nowhere => "=computed",
            };
            format!("{}{kept}", column.name)
        });
        Some(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn columns_are_read_from_what_tools_write() {
        let nsys = "CREATE TABLE StringIds (\n -- it's a comment, (with a bracket\n id INTEGER NOT NULL PRIMARY KEY, -- x\n value TEXT)";
        assert_eq!(names(nsys).unwrap(), "id=rowid value");
        let rocpd = "CREATE TABLE `rocpd_x_1` (\"id\" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, \"end\" BIGINT, \"type\" TEXT CHECK (\"type\" IN ('A', 'B')), FOREIGN KEY (id) REFERENCES `y` (id))";
        assert_eq!(names(rocpd).unwrap(), "id=rowid end type");
        let key = "create table t (a int, b integer, primary key (b), constraint c unique (a, b))";
        assert_eq!(names(key).unwrap(), "a b=rowid");
        let computed = "CREATE TABLE t (a, b AS (a + 1), c GENERATED ALWAYS AS (a) STORED)";
        assert_eq!(names(computed).unwrap(), "a b=computed c");
    }

    #[test]
    fn what_is_no_table_of_rows_is_left() {
        assert_eq!(names("CREATE TABLE t (a PRIMARY KEY) WITHOUT ROWID"), None);
        assert_eq!(names("CREATE VIRTUAL TABLE t USING fts5(a)"), None);
        assert_eq!(names("CREATE TABLE t AS SELECT 1"), None);
        assert_eq!(names("\"((("), None);
    }
}
