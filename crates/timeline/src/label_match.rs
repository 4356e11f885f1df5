//! Finds the labels of a trace that a name given by a user means, as with `report --label` and `--compare-labels`.

use gapscope_trace::Trace;

/// The labels that a name means: those with exactly this text, or where there are none, those whose text contains it.
#[derive(Debug, Clone, Copy)]
pub struct LabelName<'a> {
    name: &'a str,
    /// True where a label of the trace has exactly this text.
    is_exact: bool,
}

impl<'a> LabelName<'a> {
    /// Looks a name up among the labels of a trace.
    pub fn new(trace: &Trace, name: &'a str) -> LabelName<'a> {
        let mut texts = trace.tables.labels.text.iter();
        LabelName {
            name,
            is_exact: texts.any(|text| **text == *name),
        }
    }

    /// Returns true where the name means a label with this text.
    pub fn means(&self, text: &str) -> bool {
        match self.is_exact {
            true => text == self.name,
            false => text.contains(self.name),
        }
    }

    /// Returns the index of the first of several names that means a label with this text; `None` where none does. A
    /// name that is the whole text goes first.
    pub fn first_of(names: &[LabelName], text: &str) -> Option<usize> {
        let exact = names
            .iter()
            .position(|name| name.is_exact && name.means(text));
        exact.or_else(|| names.iter().position(|name| name.means(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns those of the labels that the name means.
    fn meant(name: &str, labels: &[&str]) -> Vec<String> {
        let rows = (1..)
            .zip(labels)
            .map(|(id, text)| format!("label id={id} text=\"{text}\"\n"));
        let trace = Trace::from_text(&rows.collect::<String>()).unwrap();
        let name = LabelName::new(&trace, name);
        let meant = labels.iter().filter(|text| name.means(text));
        meant.map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_whole_text_means_only_the_labels_that_have_it() {
        assert_eq!(meant("step 1", &["step 1", "step 10"]), ["step 1"]);
    }

    #[test]
    fn a_part_of_a_text_means_all_labels_that_contain_it() {
        let labels = ["step 1", "step 10", "sort"];
        assert_eq!(meant("step", &labels), ["step 1", "step 10"]);
        assert_eq!(meant("loss", &labels), [""; 0]);
    }

    #[test]
    fn of_two_names_the_whole_text_goes_first() {
        let trace = Trace::from_text("label id=1 text=\"step 1\"\nlabel id=2 text=\"step 2\"");
        let trace = trace.unwrap();
        let names = ["step", "step 1"].map(|name| LabelName::new(&trace, name));
        let sides = ["step 1", "step 2", "sort"].map(|text| LabelName::first_of(&names, text));
        assert_eq!(sides, [Some(1), Some(0), None]);
    }
}
