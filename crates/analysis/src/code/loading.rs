//! Recognises by the names of functions, files, labels and ranges that a host loads data.

use crate::stacks::CodeFrame;

/// Parts of names, without underscores and in lower case, that those use who load data: PyTorch's loader and its workers, TensorFlow's
/// datasets, and what training scripts call the step.
const LOADING: [&str; 13] = [
    "dataload",
    "datapipe",
    "datafetch",
    "datasets",
    "loadbatch",
    "loaddata",
    "nextbatch",
    "getbatch",
    "fetchbatch",
    "readbatch",
    "nextdata",
    "collate",
    "inputpipeline",
];

/// Returns true for a name of something that loads data.
pub fn is_loading(name: &str) -> bool {
    let plain: String = (name.chars())
        .filter(|c| !matches!(c, '_' | ' ' | '-'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    LOADING.iter().any(|part| plain.contains(part))
}

/// Returns true for a stack that has a frame of something that loads data.
pub fn loads_data(frames: &[CodeFrame]) -> bool {
    frames.iter().any(|frame| {
        let names = [&frame.function, &frame.file];
        names.into_iter().flatten().any(|name| is_loading(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_loaders_are_recognised() {
        for (name, expected) in [
            (
                "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
                true,
            ),
            ("torch/utils/data/dataloader.py", true),
            ("load_batch", true),
            ("data loading", true),
            ("get_batch", true),
            ("default_collate", true),
            ("forward", false),
            ("loader.exec_module", false),
            ("load_state_dict", false),
        ] {
            assert_eq!(is_loading(name), expected, "{name}");
        }
    }
}
