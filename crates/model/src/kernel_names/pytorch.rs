//! Names PyTorch's kernels by their operations: `gelu<bf16> (vec4)`, `sum<float> (reduce 512,1)`. The parsed name of
//! a template goes in; its arguments say the operation, the types and, in brackets, how the kernel runs.

use super::cpp::{self, Segment, Token};
use super::operations::{Functor, functor, snake, type_text};

/// Returns the readable name; `None` for kernels that are not PyTorch's, and for unknown operations.
pub(super) fn name(kernel: &Segment) -> Option<String> {
    let argument = |at: usize| kernel.arguments.get(at).map(Vec::as_slice);
    let number = |at: usize| argument(at).and_then(cpp::number);
    let done = |operation: Functor, how: &str| Some(format!("{operation} ({how})"));
    match kernel.name {
        "vectorized_elementwise_kernel" => {
            done(functor(argument(1)?)?, &format!("vec{}", number(0)?))
        }
        "unrolled_elementwise_kernel" => {
            let casts = |item: &Vec<Token>| {
                let path = cpp::path(item);
                path.last().is_some_and(|part| part.name == "LoadWithCast")
            };
            let how = match kernel.arguments.iter().any(casts) {
                true => "unrolled, cast",
                false => "unrolled",
            };
            done(functor(argument(0)?)?, how)
        }
        "elementwise_kernel" => done(functor(argument(2)?)?, "strided"),
        "elementwise_kernel_with_index" => done(functor(argument(1)?)?, "by index"),
        "index_elementwise_kernel" => done(functor(argument(2)?)?, "indexed"),
        "_scatter_gather_elementwise_kernel" => done(functor(argument(2)?)?, "indexed"),
        "reduce_kernel" => reduction(kernel),
        "multi_tensor_apply_kernel" => multi_tensor(kernel),
        "softmax_warp_forward" | "softmax_warp_backward" => softmax_of_warps(kernel),
        "cunn_SoftMaxForward"
        | "cunn_SoftMaxForwardSmem"
        | "cunn_SoftMaxBackward"
        | "cunn_SoftMaxBackwardSmem" => softmax_of_blocks(kernel),
        // A third argument is true for an RMS norm.
        "vectorized_layer_norm_kernel"
            if !kernel.arguments.iter().any(|item| cpp::is_true(item)) =>
        {
            Some(format!(
                "layer_norm{} (vectorized)",
                bracketed_type(kernel, 0)?
            ))
        }
        "layer_norm_grad_input_kernel" => Some(format!(
            "layer_norm_grad_input{}",
            bracketed_type(kernel, 0)?
        )),
        name => concatenation(kernel, name.strip_prefix("CatArrayBatchedCopy")?),
    }
}

/// Returns a template argument in brackets, such as `<float>`.
fn bracketed_type(kernel: &Segment, at: usize) -> Option<String> {
    Some(format!("<{}>", type_text(kernel.arguments.get(at)?)))
}

/// Names `reduce_kernel<threads, vector, ReduceOp<In, Op, Index, Out, …>>`.
fn reduction(kernel: &Segment) -> Option<String> {
    let [threads, vector, operation] = kernel.arguments else {
        return None;
    };
    let path = cpp::path(operation);
    let reduce = path.last().filter(|part| part.name == "ReduceOp")?;
    let [from, operation, _, to, ..] = reduce.arguments else {
        return None;
    };
    let (from, to) = (type_text(from), type_text(to));
    let name = functor(operation)?.name;
    let types = match from == to {
        true => from,
        false => format!("{from} -> {to}"),
    };
    let (threads, vector) = (cpp::number(threads)?, cpp::number(vector)?);
    Some(format!("{name}<{types}> (reduce {threads},{vector})"))
}

/// Names `multi_tensor_apply_kernel<Lists, Functor, further arguments…>`.
fn multi_tensor(kernel: &Segment) -> Option<String> {
    let [_, functor, further @ ..] = kernel.arguments else {
        return None;
    };
    let path = cpp::path(functor);
    let functor = path.last()?;
    let of_type = type_text(functor.arguments.first()?);
    let name = functor.name.strip_suffix("Functor")?;
    let operation = further.first().and_then(|item| {
        let path = cpp::path(item);
        Some(snake(path.last()?.name))
    });
    let operation = match operation.as_deref() {
        Some("plus") => Some("add"),
        Some("minus") => Some("sub"),
        Some("multiplies") => Some("mul"),
        Some("divides") => Some("div"),
        Some(other) if !["float", "double", "long"].contains(&other) => Some(other),
        _ => None,
    };
    let form = |prefix| name.strip_prefix(prefix).map(snake);
    let name = match (operation, form("BinaryOp"), form("PointwiseOp")) {
        (Some(operation), Some(form), _) => format!("{operation}_{form}"),
        (Some("mul"), _, Some(form)) => format!("addcmul_{form}"),
        (Some("div"), _, Some(form)) => format!("addcdiv_{form}"),
        (Some(operation), ..) if name == "UnaryOp" => operation.to_owned(),
        _ => snake(name.strip_suffix("Math").unwrap_or(name)),
    };
    Some(format!("{name}<{of_type}> (multi-tensor)"))
}

/// Names `softmax_warp_forward<In, Out, Accumulator, log2 of elements, is log[, is masked]>`.
fn softmax_of_warps(kernel: &Segment) -> Option<String> {
    let [from, to, _, elements, is_log, masked @ ..] = kernel.arguments else {
        return None;
    };
    let types = cpp::distinct([type_text(from), type_text(to)]).join(" -> ");
    let name = match (cpp::is_true(is_log), kernel.name) {
        (false, "softmax_warp_forward") => "softmax",
        (false, _) => "softmax_backward",
        (true, "softmax_warp_forward") => "log_softmax",
        (true, _) => "log_softmax_backward",
    };
    let masked = if masked.iter().any(|masked| cpp::is_true(masked)) {
        ", masked"
    } else {
        ""
    };
    let elements = 1u64.checked_shl(cpp::number(elements)? as u32)?;
    Some(format!("{name}<{types}> (warp, up to {elements}{masked})"))
}

/// Names `cunn_SoftMaxForward<vector, T, Accumulator, Out, Epilogue>`.
fn softmax_of_blocks(kernel: &Segment) -> Option<String> {
    let [vector, from, _, to, epilogue, ..] = kernel.arguments else {
        return None;
    };
    let path = cpp::path(epilogue);
    let name = match path.last()?.name {
        "SoftMaxForwardEpilogue" => "softmax",
        "LogSoftMaxForwardEpilogue" => "log_softmax",
        "SoftMaxBackwardEpilogue" => "softmax_backward",
        "LogSoftMaxBackwardEpilogue" => "log_softmax_backward",
        _ => return None,
    };
    let types = cpp::distinct([type_text(from), type_text(to)]).join(" -> ");
    let place = match kernel.name.ends_with("Smem") {
        true => "shared memory",
        false => "block",
    };
    let vector = cpp::number(vector)?;
    Some(format!("{name}<{types}> ({place}, vec{vector})"))
}

/// Names `CatArrayBatchedCopy<T, Index, dimensions, batch, stride>` and its variants.
fn concatenation(kernel: &Segment, variant: &str) -> Option<String> {
    let [of_type, _, sizes @ ..] = kernel.arguments else {
        return None;
    };
    let sizes: Vec<String> = sizes.iter().map(|size| type_text(size)).collect();
    let variant = match variant.trim_start_matches('_') {
        "" => String::new(),
        variant => format!("{} ", variant.replace('_', " ")),
    };
    let sizes = sizes.join(",");
    Some(format!("cat<{}> ({variant}{sizes})", type_text(of_type)))
}
