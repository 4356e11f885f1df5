//! Refuses texts with several statements, and statements that write.

use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::ast::Statement as Ast;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// The most operators of a statement. The engine walks `1 + 1 + …` by a call in a call for each of them, and the stack of a
/// thread has an end.
const MAX_OPERATORS: usize = 2_000;

/// Returns the number of operators in a text, with words such as `and` and `union`; `None` for a text of no tokens.
fn operators(sql: &str) -> Option<usize> {
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize().ok()?;
    let is_operator = |token: &Token| match token {
        Token::Word(word) => {
            const WORDS: [&str; 10] = [
                "and",
                "or",
                "not",
                "union",
                "except",
                "intersect",
                "join",
                "like",
                "is",
                "case",
            ];
            word.quote_style.is_none() && WORDS.contains(&&*word.value.to_ascii_lowercase())
        }
        Token::EOF
        | Token::Whitespace(_)
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::Comma
        | Token::Period
        | Token::LParen
        | Token::RParen
        | Token::SemiColon => false,
        _ => true,
    };
    Some(tokens.iter().filter(|token| is_operator(token)).count())
}

/// Returns why a text is refused, in one sentence; `None` if it is not. Invalid SQL, and statements that the engine
/// refuses itself, are not judged here.
pub(crate) fn refusal(sql: &str) -> Option<String> {
    if sql.trim().is_empty() {
        return Some(
            "no SQL was given: write a statement such as `select * from devices`".to_owned(),
        );
    }
    if let Some(operators) = operators(sql).filter(|operators| *operators > MAX_OPERATORS) {
        return Some(format!(
            "the SQL has {operators} operators, and at most {MAX_OPERATORS} are answered: write lists as `in (…)` or `values`"
        ));
    }
    let mut statements = DFParser::parse_sql(sql).ok()?;
    if statements.len() > 1 {
        return Some(format!(
            "one statement is answered at a time, and these are {}: ask them one by one",
            statements.len()
        ));
    }
    let is_answered = match statements.pop_front()? {
        // The engine judges the explained statement.
        Statement::Explain(_) => true,
        Statement::Statement(statement) => match *statement {
            Ast::Query(_)
            | Ast::Explain { .. }
            | Ast::ExplainTable { .. }
            | Ast::ShowTables { .. }
            | Ast::ShowColumns { .. }
            | Ast::ShowVariable { .. }
            | Ast::ShowFunctions { .. } => true,
            // The engine's refusal of these has a better explanation.
            Ast::CreateTable(_)
            | Ast::CreateView { .. }
            | Ast::Drop { .. }
            | Ast::Insert(_)
            | Ast::Update { .. }
            | Ast::Delete(_) => true,
            _ => false,
        },
        Statement::CreateExternalTable(_) => true,
        _ => false,
    };
    let verb = sql.split_whitespace().next().unwrap_or_default();
    (!is_answered).then(|| {
        format!(
            "only statements that read are answered (select, with, values, show, describe, explain), and {} is none: the file for \
             an answer is named by -o",
            verb.to_lowercase()
        )
    })
}
