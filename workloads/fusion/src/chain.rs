//! Reads the `--chain` flag: operations applied one after the other to the input `x`, as an expression.

use std::str::FromStr;

use anyhow::{Result, bail};

use crate::expr::{Expr, NodeId};
use crate::op::{Binary, Unary};

/// A chain such as `sin,add:2.5,mul:x`: each operation takes the result so far, and a binary one also `x` or a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    text: String,
    expr: Expr,
}

impl Chain {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn expr(&self) -> &Expr {
        &self.expr
    }
}

impl FromStr for Chain {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut expr = Expr::new();
        let x = expr.input();
        let mut value = x;
        for link in text.split(',').map(str::trim) {
            value = append(&mut expr, x, value, link)?;
        }
        Ok(Self {
            text: text.to_owned(),
            expr,
        })
    }
}

/// Adds the operation of one link, such as `add:2.5`, to an expression whose result so far is `value`, and returns
/// the node of its result. It fails for an unknown operation, and for an operand that is missing, superfluous or not
/// a finite number.
fn append(expr: &mut Expr, x: NodeId, value: NodeId, link: &str) -> Result<NodeId> {
    let (name, operand) = match link.split_once(':') {
        Some((name, operand)) => (name, Some(operand)),
        None => (link, None),
    };
    if name.is_empty() {
        bail!("an operation is missing: write for example sin,cos,exp,log");
    }
    if let Some(op) = Unary::ALL.into_iter().find(|op| op.name() == name) {
        return match operand {
            None => Ok(expr.unary(op, value)),
            Some(_) => bail!("{name} takes no operand, but \"{link}\" gives one"),
        };
    }
    if let Some(op) = Binary::ALL.into_iter().find(|op| op.name() == name) {
        let operand = match operand {
            None => bail!("{name} needs an operand: a number as in {name}:2.5, or {name}:x"),
            Some("x") => x,
            Some(number) => match number.parse::<f32>() {
                Ok(constant) if constant.is_finite() => expr.constant(constant),
                _ => bail!("the operand of \"{link}\" is neither x nor a finite number"),
            },
        };
        return Ok(expr.binary(op, value, operand));
    }
    let known: Vec<_> = Unary::ALL
        .iter()
        .map(|op| op.name())
        .chain(Binary::ALL.iter().map(|op| op.name()))
        .collect();
    bail!(
        "there is no operation \"{name}\"; there are {}",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Node;

    #[test]
    fn a_chain_becomes_an_expression() {
        let chain: Chain = "sin, add:2.5, mul:x".parse().unwrap();
        assert_eq!(
            chain.expr().nodes(),
            [
                Node::Input(0),
                Node::Unary(Unary::Sin, 0),
                Node::Constant(2.5),
                Node::Binary(Binary::Add, 1, 2),
                Node::Binary(Binary::Mul, 3, 0),
            ]
        );
    }

    #[track_caller]
    fn refuses(chain: &str, reason: &str) {
        let error = chain.parse::<Chain>().unwrap_err().to_string();
        assert!(
            error.contains(reason),
            "{chain:?} was refused with: {error}"
        );
    }

    #[test]
    fn mistakes_are_named() {
        refuses("", "an operation is missing");
        refuses("sin,,cos", "an operation is missing");
        refuses("sin,cosh", "no operation \"cosh\"");
        refuses("sin:2", "sin takes no operand");
        refuses("add", "add needs an operand");
        refuses("add:y", "neither x nor a finite number");
        refuses("add:inf", "neither x nor a finite number");
    }
}
