//! Generates one WGSL kernel that computes a whole expression: inputs are bound in order, the output after them.

use std::fmt::Write;

use crate::expr::{Expr, Node};

/// The number of elements that one workgroup computes.
pub const WORKGROUP_SIZE: u32 = 256;

/// The entry point in the source. It differs from the kernel's own name, such as `sin`, which would hide the WGSL
/// function that the kernel calls. The compiler of kernels renames the entry point after parsing.
pub const PARSED_ENTRY_POINT: &str = "elementwise";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// A kernel as text.
pub struct Kernel {
    pub name: String,
    pub source: String,
}

impl Kernel {
    pub fn new(expr: &Expr) -> Self {
        Self {
            name: name(expr),
            source: source(expr),
        }
    }
}

/// Returns the operation's name, or `fused_` and the names of all operations.
fn name(expr: &Expr) -> String {
    let ops: Vec<_> = expr.op_names().collect();
    match ops[..] {
        [op] => op.to_owned(),
        _ => format!("fused_{}", ops.join("_")),
    }
}

/// Returns the WGSL, in which each node of the expression is one variable.
fn source(expr: &Expr) -> String {
    let mut bindings = String::new();
    for input in 0..expr.inputs() {
        let _ = writeln!(
            bindings,
            "@group(0) @binding({input}) var<storage, read> input{input}: array<f32>;"
        );
    }
    let mut body = String::new();
    for (id, node) in expr.nodes().iter().enumerate() {
        let value = match *node {
            Node::Input(input) => format!("input{input}[i]"),
            Node::Constant(constant) => format!("f32({constant:?})"),
            Node::Unary(op, a) => op.wgsl(&format!("v{a}")),
            Node::Binary(op, a, b) => op.wgsl(&format!("v{a}"), &format!("v{b}")),
        };
        let _ = writeln!(body, "    let v{id} = {value};");
    }
    let output = expr.inputs();
    let result = expr.nodes().len() - 1;
    format!(
        "{bindings}@group(0) @binding({output}) var<storage, read_write> output: array<f32>;

@compute @workgroup_size({WORKGROUP_SIZE})
fn {PARSED_ENTRY_POINT}(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {{
    let i = id.y * groups.x * {WORKGROUP_SIZE}u + id.x;
    if i >= arrayLength(&output) {{
        return;
    }}
{body}    output[i] = v{result};
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Chain;

    fn kernel(chain: &str) -> Kernel {
        Kernel::new(chain.parse::<Chain>().unwrap().expr())
    }

    #[test]
    fn a_chain_is_one_kernel_that_keeps_values_in_registers() {
        let kernel = kernel("sin,add:2.5,mul:x");
        assert_eq!(kernel.name, "fused_sin_add_mul");
        assert_eq!(
            kernel.source,
            "\
@group(0) @binding(0) var<storage, read> input0: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(256)
fn elementwise(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let i = id.y * groups.x * 256u + id.x;
    if i >= arrayLength(&output) {
        return;
    }
    let v0 = input0[i];
    let v1 = sin(v0);
    let v2 = f32(2.5);
    let v3 = v1 + v2;
    let v4 = v3 * v0;
    output[i] = v4;
}
"
        );
    }

    #[test]
    fn a_single_operation_gives_its_name() {
        assert_eq!(kernel("sin").name, "sin");
        assert_eq!(kernel("pow:2").name, "pow");
    }

    #[test]
    fn every_kernel_is_valid_wgsl() {
        let all = "abs,ceil,cos,exp,floor,log,neg,reciprocal,sigmoid,sin,sqrt,square,tanh,\
                   add:1,sub:-2.5,mul:1e-30,div:3e38,max:x,min:-0,pow:x";
        for chain in all.split(',').chain([all]) {
            let source = kernel(chain).source;
            if let Err(error) = wgpu::naga::front::wgsl::parse_str(&source) {
                panic!("{chain}: {}", error.emit_to_string(&source));
            }
        }
    }
}
