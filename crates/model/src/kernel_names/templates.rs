//! Names kernels of CUTLASS, FlashAttention and CUB by their template arguments: the parsed path of the name goes in.
//! A tile is the size of the part that a workgroup computes.

use super::cpp::{self, Segment, Token};
use super::matrix;
use super::operations::{snake, type_text};

/// Returns the readable name; `None` for kernels of other libraries.
pub(super) fn name(path: &[Segment]) -> Option<String> {
    let kernel = path.last()?;
    match kernel.name {
        "Kernel" | "Kernel2" => matrix::name(cpp::word(kernel.arguments.first()?)?),
        "device_kernel" => device_kernel(kernel.arguments.first()?),
        name if name.starts_with("flash_") => flash_attention(kernel),
        name if name.starts_with("Device") => {
            let cub = path.iter().any(|part| part.name == "cub");
            cub.then(|| cub_kernel(kernel))
        }
        _ => None,
    }
}

/// Names `flash_fwd_kernel<Flash_fwd_kernel_traits<head, rows, columns, warps, bool, bool, T, …>, …>`.
fn flash_attention(kernel: &Segment) -> Option<String> {
    let path = cpp::path(kernel.arguments.first()?);
    let traits = path.last()?;
    if !matches!(
        traits.name,
        "Flash_fwd_kernel_traits" | "Flash_bwd_kernel_traits"
    ) {
        return None;
    }
    let number = |at: usize| cpp::number(traits.arguments.get(at)?);
    let (head, rows, columns) = (number(0)?, number(1)?, number(2)?);
    let float = traits.arguments.iter().map(|item| type_text(item));
    let float = float.into_iter().find(|text| is_float(text))?;
    let name = kernel.name.strip_suffix("_kernel").unwrap_or(kernel.name);
    Some(format!("{name}<{float}, hdim {head}> ({rows}x{columns})"))
}

/// Returns true for types of floating-point numbers.
fn is_float(text: &str) -> bool {
    matches!(text, "bf16" | "half" | "float" | "double" | "tf32")
}

/// Names the argument of CUTLASS's `device_kernel`, inside the wrappers for an architecture.
fn device_kernel(tokens: &[Token]) -> Option<String> {
    let path = cpp::path(tokens);
    let kernel = path.last()?;
    match kernel.name {
        "enable_sm90_or_later" | "enable_sm80_to_sm89" | "enable_sm90" | "enable_sm80" => {
            device_kernel(kernel.arguments.first()?)
        }
        "GemmUniversal" => universal(kernel),
        name if name.starts_with("FlashAttn") => {
            let main = cpp::path(kernel.arguments.first()?);
            let main = main.last()?;
            let mut tiles = main.arguments.iter().filter_map(|item| tile(item));
            // The first tile is that of the cluster.
            let sizes = tiles.nth(1)?;
            let [rows, columns, head] = sizes[..] else {
                return None;
            };
            let mut texts = main.arguments.iter().map(|item| type_text(item));
            let float = texts.find(|text| is_float(text))?;
            let (name, arch) = match name.find("Sm") {
                Some(at) => name.split_at(at),
                None => (name, ""),
            };
            let name = snake(name);
            let arch = arch.to_lowercase();
            Some(format!(
                "{name}<{float}, hdim {head}> ({arch} {rows}x{columns})"
            ))
        }
        _ => None,
    }
}

/// Names `GemmUniversal<problem, CollectiveMma<Mainloop<…>, tile, T, …>, …>`.
fn universal(kernel: &Segment) -> Option<String> {
    let main = cpp::path(kernel.arguments.get(1)?);
    let main = main.last().filter(|part| part.name == "CollectiveMma")?;
    let [schedule, sizes, of_type, ..] = main.arguments else {
        return None;
    };
    let sizes = tile(sizes)?.iter().map(u64::to_string).collect::<Vec<_>>();
    let path = cpp::path(schedule);
    let schedule = path.last()?;
    let name = schedule.name.strip_prefix("Mainloop")?;
    let how = schedule.arguments.iter().find_map(|item| {
        let path = cpp::path(item);
        let name = path.last()?.name;
        ["Pingpong", "Cooperative"]
            .into_iter()
            .find(|end| name.contains(end))
    });
    let how = how.map_or(String::new(), |how| format!(" {how}"));
    Some(format!(
        "gemm {} {} (cutlass {name}{how})",
        type_text(of_type),
        sizes.join("x")
    ))
}

/// Returns the sizes in `cute::tuple<cute::C<128>, cute::C<64>>`; `None` for other types.
fn tile(tokens: &[Token]) -> Option<Vec<u64>> {
    let path = cpp::path(tokens);
    let tuple = path.last().filter(|part| part.name == "tuple")?;
    let sizes = tuple.arguments.iter().map(|item| {
        let path = cpp::path(item);
        let size = path.last().filter(|part| part.name == "C")?;
        cpp::number(size.arguments.first()?)
    });
    sizes.collect()
}

/// Names a CUB kernel without its tuning policies, which repeat its types.
fn cub_kernel(kernel: &Segment) -> String {
    let tuned = |item: &&Vec<Token>| {
        let path = cpp::path(item);
        let named = |part: &Segment| {
            let name = part.name.to_lowercase();
            name.contains("policy") || name.contains("tuning")
        };
        !path.iter().any(named)
    };
    let arguments: Vec<String> = kernel
        .arguments
        .iter()
        .filter(tuned)
        .map(|item| type_text(item))
        .collect();
    let name = kernel.name.strip_suffix("Kernel").unwrap_or(kernel.name);
    match arguments.is_empty() {
        true => format!("{name} (cub)"),
        false => format!("{name}<{}> (cub)", arguments.join(", ")),
    }
}
