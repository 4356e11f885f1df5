//! Refuses texts with several statements, and statements that write.

use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::ast::Statement as Ast;

/// Returns why a text is refused, in one sentence; `None` if it is not. Invalid SQL, and statements that the engine
/// refuses itself, are not judged here.
pub(crate) fn refusal(sql: &str) -> Option<String> {
    if sql.trim().is_empty() {
        return Some(
            "no SQL was given: write a statement such as `select * from devices`".to_owned(),
        );
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
