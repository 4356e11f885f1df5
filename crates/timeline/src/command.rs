//! Writes the recorded command as a person would type it.

use crate::vocabulary::file_name;
use gapscope_trace::Manifest;

/// Returns the command as a person would type it.
pub fn command_line(command: &[String]) -> String {
    let words = command.iter().map(|word| {
        let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the recorded command without the folder that the program is in; `gapscope info` shows it.
pub fn short_command(manifest: &Manifest) -> String {
    let mut command = manifest.command.clone();
    if let Some(program) = command.first_mut() {
        *program = file_name(program).to_owned();
    }
    command_line(&command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_where_a_shell_needs_it() {
        let command = ["python", "-c", "print('a b')", ""].map(str::to_owned);
        assert_eq!(command_line(&command), r"python -c 'print('\''a b'\'')' ''");
    }
}
