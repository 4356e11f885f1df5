//! Builds expressions lazily: nothing is computed until an expression is lowered to kernels and evaluated.

use crate::op::{Binary, Unary};

/// A node of an [`Expr`], by position. A node reads only nodes before it, so that the order of nodes is an order of
/// evaluation.
pub type NodeId = usize;

#[derive(Clone, Copy, Debug, PartialEq)]
/// An operation, or a value that operations read.
pub enum Node {
    /// The array with this number among the expression's inputs.
    Input(usize),
    Constant(f32),
    Unary(Unary, NodeId),
    Binary(Binary, NodeId, NodeId),
}

impl Node {
    /// Returns the nodes that this one reads.
    pub fn operands(&self) -> Vec<NodeId> {
        match *self {
            Node::Input(_) | Node::Constant(_) => vec![],
            Node::Unary(_, a) => vec![a],
            Node::Binary(_, a, b) => vec![a, b],
        }
    }

    /// Returns the name of the operation; `None` for inputs and constants.
    pub fn op_name(&self) -> Option<&'static str> {
        match self {
            Node::Input(_) | Node::Constant(_) => None,
            Node::Unary(op, _) => Some(op.name()),
            Node::Binary(op, ..) => Some(op.name()),
        }
    }
}

/// Operations over arrays of one length. The last node is the result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expr {
    nodes: Vec<Node>,
}

impl Expr {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next input array, and returns its node, as the three methods below do for theirs.
    pub fn input(&mut self) -> NodeId {
        self.push(Node::Input(self.inputs()))
    }

    pub fn constant(&mut self, value: f32) -> NodeId {
        self.push(Node::Constant(value))
    }

    pub fn unary(&mut self, op: Unary, a: NodeId) -> NodeId {
        self.push(Node::Unary(op, a))
    }

    pub fn binary(&mut self, op: Binary, a: NodeId, b: NodeId) -> NodeId {
        self.push(Node::Binary(op, a, b))
    }

    fn push(&mut self, node: Node) -> NodeId {
        assert!(
            node.operands().iter().all(|&id| id < self.nodes.len()),
            "a node may only read earlier nodes"
        );
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn inputs(&self) -> usize {
        self.nodes
            .iter()
            .filter(|node| matches!(node, Node::Input(_)))
            .count()
    }

    pub fn op_names(&self) -> impl Iterator<Item = &'static str> {
        self.nodes.iter().filter_map(Node::op_name)
    }

    /// Splits the expression into one step for each operation, as eager evaluation runs it.
    pub fn steps(&self) -> Vec<Step> {
        (0..self.nodes.len())
            .filter(|&id| self.nodes[id].op_name().is_some())
            .map(|id| self.step(id))
            .collect()
    }

    /// Makes the expression of one operation. Its constants are kept, and all other operands become inputs.
    fn step(&self, output: NodeId) -> Step {
        let mut expr = Expr::new();
        let mut reads = Vec::new();
        let mut place = |id: NodeId| match self.nodes[id] {
            Node::Constant(value) => expr.constant(value),
            _ => {
                reads.push(id);
                expr.input()
            }
        };
        match self.nodes[output] {
            Node::Unary(op, a) => {
                let a = place(a);
                expr.unary(op, a);
            }
            Node::Binary(op, a, b) => {
                let first = place(a);
                let second = if a == b { first } else { place(b) };
                expr.binary(op, first, second);
            }
            Node::Input(_) | Node::Constant(_) => unreachable!("steps() asks for operations only"),
        }
        Step {
            expr,
            reads,
            output,
        }
    }
}

/// One operation of an expression as an expression of its own, with the nodes that are its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub expr: Expr,
    pub reads: Vec<NodeId>,
    /// The node of the whole expression that it computes.
    pub output: NodeId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_read_the_nodes_before_them() {
        let mut expr = Expr::new();
        let x = expr.input();
        let sin = expr.unary(Unary::Sin, x);
        let product = expr.binary(Binary::Mul, sin, x);
        let steps = expr.steps();
        assert_eq!(steps.len(), 2);
        assert_eq!((steps[0].reads.clone(), steps[0].output), (vec![x], sin));
        assert_eq!(
            (steps[1].reads.clone(), steps[1].output),
            (vec![sin, x], product)
        );
    }

    #[test]
    fn a_constant_is_part_of_its_step_and_no_input() {
        let mut expr = Expr::new();
        let x = expr.input();
        let c = expr.constant(2.5);
        expr.binary(Binary::Sub, c, x);
        let step = &expr.steps()[0];
        assert_eq!(step.expr.inputs(), 1);
        assert_eq!(
            step.expr.nodes(),
            [
                Node::Constant(2.5),
                Node::Input(0),
                Node::Binary(Binary::Sub, 0, 1)
            ]
        );
    }

    #[test]
    fn an_array_used_twice_by_one_operation_is_one_input() {
        let mut expr = Expr::new();
        let x = expr.input();
        expr.binary(Binary::Add, x, x);
        assert_eq!(expr.steps()[0].expr.inputs(), 1);
        assert_eq!(expr.steps()[0].reads, [x]);
    }
}
