//! Takes the name of the processors from the text of `/proc/cpuinfo`.

/// The ARM cores of machines with GPUs, by implementer and part as in Linux's `arch/arm64/include/asm/cputype.h`.
const ARM_CORES: &[(u32, u32, &str)] = &[
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd42, "Cortex-A78AE"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd83, "Neoverse-V3AE"),
    (0x41, 0xd84, "Neoverse-V3"),
    (0x41, 0xd85, "Cortex-X925"),
    (0x41, 0xd87, "Cortex-A725"),
    (0x4e, 0x003, "Denver 2"),
    (0x4e, 0x004, "Carmel"),
];

/// Returns the processors' name, which is empty when the text has none. On ARM the kernel gives numbers of cores
/// instead of a name, and a machine may have cores of several kinds.
pub fn name(cpuinfo: &str) -> String {
    if let Some(name) = values(cpuinfo, "model name", ':').next() {
        return name.to_owned();
    }
    let implementers = values(cpuinfo, "CPU implementer", ':');
    let parts = values(cpuinfo, "CPU part", ':');
    let mut names: Vec<String> = Vec::new();
    for (implementer, part) in implementers.zip(parts) {
        let name = core(implementer, part);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// Returns the name of an ARM core by its two hexadecimal numbers (`0x41`), or a name that holds them.
fn core(implementer: &str, part: &str) -> String {
    let number = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let known = ARM_CORES
        .iter()
        .find(|(i, p, _)| (Some(*i), Some(*p)) == (number(implementer), number(part)));
    known.map_or_else(
        || format!("ARM implementer {implementer} part {part}"),
        |(_, _, name)| (*name).to_owned(),
    )
}

/// Returns the values of `key` in lines of keys and values.
pub fn values<'a>(text: &'a str, key: &str, separator: char) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(move |line| line.split_once(separator))
        .filter(move |(found, _)| found.trim() == key)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::name;

    /// Returns the text of `/proc/cpuinfo` for ARM cores: pairs of implementer and part.
    fn arm(cores: &[(&str, &str)]) -> String {
        let entry = |(number, (implementer, part)): (usize, &(&str, &str))| {
            format!(
                "processor\t: {number}\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd atomics\nCPU implementer\t: {implementer}\n\
                 CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: {part}\nCPU revision\t: 0\n\n"
            )
        };
        cores.iter().enumerate().map(entry).collect()
    }

    #[test]
    fn a_processor_of_x86_has_its_name() {
        let text = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\n\nprocessor\t: 1\n";
        assert_eq!(name(text), "Intel(R) Xeon(R) CPU @ 2.20GHz");
    }

    #[test]
    fn cores_of_arm_are_named_each_kind_once() {
        assert_eq!(name(&arm(&[("0x41", "0xd4f"); 2])), "Neoverse-V2");
        let two_kinds = arm(&[("0x41", "0xd85"), ("0x41", "0xd87"), ("0x41", "0xd85")]);
        assert_eq!(name(&two_kinds), "Cortex-X925, Cortex-A725");
    }

    #[test]
    fn a_core_that_is_not_known_is_told_by_its_numbers() {
        assert_eq!(
            name(&arm(&[("0xc0", "0xac3")])),
            "ARM implementer 0xc0 part 0xac3"
        );
        assert_eq!(name("processor\t: 0\n"), "");
    }
}
