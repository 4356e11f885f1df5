//! Makes frames of the names of ranges: the functions of Python as PyTorch's profiler writes them, and any other
//! name, which is a frame of that name.

use crate::stacks::CodeFrame;
use gapscope_trace::tables::FrameKind;
use std::sync::Arc;

/// Returns the frame of a range by its name: `train.py(41): load_batch` is a line of Python, `<built-in function
/// sum>` and `<built-in method view of Tensor object at 0x7f3e>` are native code that Python called, and `aten::add`
/// is an operator.
pub fn frame_of_range(name: &str) -> CodeFrame {
    let frame = |kind, function: &str| CodeFrame {
        function: Some(Arc::from(function)),
        file: None,
        line: None,
        library: None,
        source: None,
        kind,
    };
    if let Some((file, line, function)) = line_of_python(name) {
        return CodeFrame {
            file: Some(Arc::from(file)),
            line: Some(line),
            ..frame(FrameKind::Python, function)
        };
    }
    let built_in = name
        .strip_prefix("<built-in ")
        .and_then(|rest| rest.strip_suffix('>'));
    match built_in.and_then(|rest| rest.split_once(' ')) {
        Some(("function", function)) => frame(FrameKind::Native, function),
        Some(("method", method)) => {
            // The address of the object is different in each call.
            let method = method.split(" at 0x").next().unwrap_or(method);
            let method = method.trim_end_matches(" object");
            frame(FrameKind::Native, method)
        }
        _ => frame(FrameKind::Native, name),
    }
}

/// Splits `FILE(LINE): FUNCTION`; `None` for other names.
fn line_of_python(name: &str) -> Option<(&str, u32, &str)> {
    let (place, function) = name.split_once("): ")?;
    let (file, line) = place.rsplit_once('(')?;
    Some((file, line.parse().ok()?, function)).filter(|_| !file.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ranges_are_frames() {
        for (name, text) in [
            ("train.py(41): load_batch", "train.py:41 load_batch"),
            ("/home/a/train (1).py(41): load", "train (1).py:41 load"),
            ("<string>(1): <module>", "<string>:1 <module>"),
            ("<built-in function zoom_shift>", "zoom_shift"),
            (
                "<built-in method view of Tensor object at 0x7f31>",
                "view of Tensor",
            ),
            (
                "<built-in method run of Engine object at 0x1>",
                "run of Engine",
            ),
            ("aten::add", "aten::add"),
            ("nn.Module: Linear_3", "nn.Module: Linear_3"),
            ("forward(x): step", "forward(x): step"),
            ("(3): f", "(3): f"),
        ] {
            assert_eq!(frame_of_range(name).text(), text, "{name}");
        }
    }
}
