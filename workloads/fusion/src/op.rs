//! Defines the elementwise operations with their names, WGSL, f64 semantics and permitted GPU errors.

use std::fmt;

/// Defines a kind of operations with their names, which are those of the flag `--chain`: an enum with `ALL` and
/// `name`.
macro_rules! operations {
    ($type:ident, $count:literal: $($variant:ident = $name:literal,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type {
            $($variant,)+
        }

        impl $type {
            pub const ALL: [$type; $count] = [$($type::$variant,)+];

            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

operations! {
    Unary, 13:
    Abs = "abs",
    Ceil = "ceil",
    Cos = "cos",
    Exp = "exp",
    Floor = "floor",
    Log = "log",
    Neg = "neg",
    Reciprocal = "reciprocal",
    Sigmoid = "sigmoid",
    Sin = "sin",
    Sqrt = "sqrt",
    Square = "square",
    Tanh = "tanh",
}

operations! {
    Binary, 7:
    Add = "add",
    Sub = "sub",
    Mul = "mul",
    Div = "div",
    Max = "max",
    Min = "min",
    Pow = "pow",
}

impl Unary {
    /// Returns the operation as WGSL on the expression `x`.
    pub fn wgsl(self, x: &str) -> String {
        match self {
            Unary::Neg => format!("-{x}"),
            Unary::Reciprocal => format!("1.0 / {x}"),
            Unary::Sigmoid => format!("1.0 / (1.0 + exp(-{x}))"),
            Unary::Square => format!("{x} * {x}"),
            _ => format!("{}({x})", self.name()),
        }
    }

    /// Computes the operation in f64, for the reference.
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Unary::Abs => x.abs(),
            Unary::Ceil => x.ceil(),
            Unary::Cos => x.cos(),
            Unary::Exp => x.exp(),
            Unary::Floor => x.floor(),
            Unary::Log => x.ln(),
            Unary::Neg => -x,
            Unary::Reciprocal => 1.0 / x,
            Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Unary::Sin => x.sin(),
            Unary::Sqrt => x.sqrt(),
            Unary::Square => x * x,
            Unary::Tanh => x.tanh(),
        }
    }

    /// Returns the absolute error that Vulkan's precision rules permit for `y = self(x)`.
    pub fn permitted_error(self, x: f64, y: f64) -> f64 {
        match self {
            // The rule covers only [-π, π]; a larger angle loses as many bits as its reduction needs.
            Unary::Sin | Unary::Cos => 2f64.powi(-11) * (x.abs() / std::f64::consts::PI).max(1.0),
            Unary::Exp => (3.0 + 2.0 * x.abs()) * ulp(y),
            Unary::Log => (3.0 * ulp(y)).max(2f64.powi(-21)),
            Unary::Sqrt => 4.0 * ulp(y),
            Unary::Reciprocal => 2.5 * ulp(y),
            Unary::Sigmoid => (8.0 + 2.0 * x.abs()) * ulp(y),
            // The permitted error follows from exponentials that cancel near zero.
            Unary::Tanh => 8.0 * ulp(1.0),
            Unary::Abs | Unary::Ceil | Unary::Floor | Unary::Neg | Unary::Square => ulp(y),
        }
    }
}

impl Binary {
    /// Returns the operation as WGSL on the expressions `a` and `b`.
    pub fn wgsl(self, a: &str, b: &str) -> String {
        match self {
            Binary::Add => format!("{a} + {b}"),
            Binary::Sub => format!("{a} - {b}"),
            Binary::Mul => format!("{a} * {b}"),
            Binary::Div => format!("{a} / {b}"),
            Binary::Max | Binary::Min | Binary::Pow => format!("{}({a}, {b})", self.name()),
        }
    }

    /// Computes the operation in f64, for the reference.
    pub fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => a / b,
            Binary::Max => a.max(b),
            Binary::Min => a.min(b),
            // WGSL defines `pow` as exp2(b * log2(a)), which has no value for a negative base.
            Binary::Pow if a < 0.0 => f64::NAN,
            Binary::Pow => a.powf(b),
        }
    }

    /// Returns the absolute error that Vulkan's precision rules permit for `y = self(a, b)`.
    pub fn permitted_error(self, a: f64, b: f64, y: f64) -> f64 {
        match self {
            Binary::Div => 2.5 * ulp(y),
            // The error is exp2's own plus log2's multiplied by the exponent.
            Binary::Pow => (3.0 + 8.0 * (b * a.ln()).abs() + 4.0 * b.abs()) * ulp(y),
            _ => ulp(y),
        }
    }
}

/// Returns one unit in the last place of an f32 near `y`, or the smallest normal f32, because a GPU may flush smaller
/// values to zero.
fn ulp(y: f64) -> f64 {
    (y.abs() * 2f64.powi(-23)).max(f64::from(f32::MIN_POSITIVE))
}
