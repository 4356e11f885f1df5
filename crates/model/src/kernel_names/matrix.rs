//! Names matrix products and convolutions of NVIDIA's libraries. Their kernels are named by words between
//! underscores, which are reordered by interest: `nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_bias_TNN` becomes `gemm
//! bf16 128x256 bias TNN (nvjet sm90 tst 64x4 1x2 h bz coopA)`. Words of all kernels and repeated types are dropped.

/// The properties of a matrix product or convolution, from the words of its kernel's name: the tile is the size of
/// the part that a workgroup computes, the epilogue what follows on the result; `details` are all other words. Empty
/// where no word says it.
#[derive(Default)]
struct Product<'a> {
    operation: &'a str,
    input_type: &'a str,
    tile: &'a str,
    epilogue: Vec<&'a str>,
    layout: &'a str,
    details: Vec<&'a str>,
}

impl<'a> Product<'a> {
    /// Sorts a word in by its form. A repetition of the input type is dropped.
    fn word(&mut self, word: &'a str) {
        if self.tile.is_empty() && is_tile(word) {
            self.tile = word;
        } else if is_epilogue(word) {
            self.epilogue.push(word);
        } else if self.layout.is_empty() && is_layout(word) {
            self.layout = word;
        } else if self.input_type.is_empty() && is_type(word) {
            self.input_type = word;
        } else if !(is_type(word) && word == self.input_type) {
            self.details.push(word);
        }
    }

    /// Returns the readable name; `None` without a tile.
    fn name(self) -> Option<String> {
        if self.tile.is_empty() {
            return None;
        }
        let input_type = match self.input_type {
            "fp16" => "f16",
            "fp32" => "f32",
            other => other,
        };
        let words = [self.operation, input_type, self.tile].into_iter();
        let words = words.chain(self.epilogue).chain([self.layout]);
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        Some(format!("{} ({})", words.join(" "), self.details.join(" ")))
    }
}

/// Returns the readable name of a kernel, by its first words; `None` for other kernels.
pub(super) fn name(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
    match words.first()? {
        &"nvjet" => nvjet(&words),
        &"cutlass" => instruction(&words),
        &("maxwell" | "pascal" | "volta" | "turing" | "ampere" | "ada" | "hopper"
        | "blackwell") => instruction(&words),
        first if first.starts_with("sm") && words.get(1) == Some(&"xmma") => xmma(&words),
        _ => None,
    }
}

/// Names `nvjet_[ARCHITECTURE_]TYPES_TILE_…`.
fn nvjet<'a>(words: &[&'a str]) -> Option<String> {
    let mut product = Product {
        operation: "gemm",
        details: vec!["nvjet"],
        ..Product::default()
    };
    let mut rest = words[1..].iter().copied().peekable();
    product
        .details
        .extend(rest.next_if(|word| word.starts_with("sm")));
    let types: &'a str = rest.next()?;
    // Letters for the types of inputs, accumulator and output, with cuBLAS's usual abbreviations.
    product.input_type = match types {
        "hsh" | "hss" | "hhh" => "f16",
        "tst" | "tss" => "bf16",
        other => other,
    };
    if product.input_type != types {
        product.details.push(types);
    }
    rest.for_each(|word| product.word(word));
    product.name()
}

/// Names kernels of cuBLAS and CUTLASS with a word such as `sgemm`, `s16816gemm` or `s16816fprop`.
fn instruction(words: &[&str]) -> Option<String> {
    let mut product = Product::default();
    let at = words.iter().position(|word| operation(word).is_some())?;
    let (instruction, named) = operation(words[at])?;
    product.operation = named;
    product.input_type = match instruction {
        "s" => "f32",
        "d" => "f64",
        "h" => "f16",
        "c" => "complex f32",
        "z" => "complex f64",
        _ => "",
    };
    let typed = !product.input_type.is_empty();
    for (place, word) in words.iter().enumerate() {
        match place {
            _ if place != at => product.word(word),
            _ if !typed => product.details.push(instruction),
            _ => {}
        }
    }
    if product.input_type.is_empty() {
        // The instruction is better than no type.
        product.input_type = instruction;
        product.details.retain(|word| *word != instruction);
    }
    product.name()
}

/// Splits a word such as `s16816gemm` into the instruction and the readable operation; `None` for other words.
fn operation(word: &str) -> Option<(&str, &'static str)> {
    [
        ("gemm", "gemm"),
        ("fprop", "conv fprop"),
        ("dgrad", "conv dgrad"),
        ("wgrad", "conv wgrad"),
    ]
    .iter()
    .find_map(|(end, named)| {
        let instruction = word.strip_suffix(end)?;
        let letter = instruction.chars().next()?;
        ("sdhczi".contains(letter) && instruction[1..].chars().all(|c| c.is_ascii_alphanumeric()))
            .then_some((instruction, *named))
    })
}

/// Names `sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_…_execute_kernel__5x_cublas`.
fn xmma(words: &[&str]) -> Option<String> {
    let operation = match *words.get(2)? {
        "gemm" => "gemm",
        "fprop" => "conv fprop",
        "dgrad" => "conv dgrad",
        "wgrad" => "conv wgrad",
        _ => return None,
    };
    let mut product = Product {
        operation,
        details: vec!["xmma", words[0]],
        ..Product::default()
    };
    let mut rest = words[3..].iter().copied().peekable();
    while let Some(word) = rest.next() {
        match word {
            "implicit" | "gemm" if operation != "gemm" => {}
            "execute" if rest.peek() == Some(&"split") => {
                rest.by_ref().take(2).for_each(drop);
                product.epilogue.push("split-k");
            }
            "execute" | "kernel" | "5x" => {}
            _ if product.input_type.is_empty() && pair(word).is_some() => {
                // Types of both inputs come first, then those of accumulator and output.
                let (a, b) = pair(word)?;
                product.input_type = if a == b { a } else { word };
                for _ in 0..2 {
                    let further = rest.next_if(|word| is_type(word) || pair(word).is_some());
                    let same =
                        |word: &&str| *word != product.input_type && pair(word) != Some((a, a));
                    product.details.extend(further.filter(same));
                }
            }
            _ => product.word(word.strip_prefix("tilesize").unwrap_or(word)),
        }
    }
    product.name()
}

/// Returns the two types in a word such as `f32f32`; `None` for other words.
fn pair(word: &str) -> Option<(&str, &str)> {
    (2..word.len().saturating_sub(1)).find_map(|at| {
        let (a, b) = (word.get(..at)?, word.get(at..)?);
        (is_type(a) && is_type(b)).then_some((a, b))
    })
}

/// Returns true for the name of a type of numbers.
fn is_type(word: &str) -> bool {
    matches!(
        word,
        "f16"
            | "bf16"
            | "tf32"
            | "f32"
            | "f64"
            | "fp16"
            | "fp32"
            | "e4m3"
            | "e5m2"
            | "i8"
            | "s8"
            | "u8"
            | "s32"
            | "int8"
    )
}

/// Returns true for `128x64` and `128x64x32`.
fn is_tile(word: &str) -> bool {
    let sides: Vec<&str> = word.split('x').collect();
    let number = |side: &&str| !side.is_empty() && side.bytes().all(|c| c.is_ascii_digit());
    sides.len() >= 2 && sides.iter().all(number)
}

/// Returns true for a word that says what follows on the product.
fn is_epilogue(word: &str) -> bool {
    matches!(
        word,
        "relu" | "gelu" | "silu" | "dgelu" | "drelu" | "bias" | "bgrad" | "badd" | "splitK"
    )
}

/// Returns true for a word that says which matrices are transposed, or how an image lies in memory.
fn is_layout(word: &str) -> bool {
    let letters = |of: &str| (2..=4).contains(&word.len()) && word.chars().all(|c| of.contains(c));
    letters("nt") || letters("NT") || matches!(word, "nhwc" | "nchw")
}
