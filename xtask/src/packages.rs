//! Installs packages of the system that are missing, if this user may install packages: with Debian's apt, for this
//! machine or into a folder ([`PrivateApt`]).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;

/// The way in which this user installs packages.
enum Installer {
    Root,
    Sudo,
}

impl Installer {
    fn command(&self, program: &str) -> Command {
        let mut command = match self {
            Installer::Root => Command::new(program),
            Installer::Sudo => {
                let mut command = Command::new("sudo");
                command.args([
                    "--non-interactive",
                    "DEBIAN_FRONTEND=noninteractive",
                    program,
                ]);
                command
            }
        };
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }
}

/// Returns true if a Debian package is installed.
pub fn is_installed(package: &str) -> bool {
    version(package).is_some()
}

/// Returns the version of an installed Debian package.
pub fn version(package: &str) -> Option<String> {
    let mut query = Command::new("dpkg-query");
    query.args([
        "--show",
        "--showformat=${db:Status-Status} ${Version}",
        package,
    ]);
    let shown = command::output(&mut query).ok()?;
    shown.strip_prefix("installed ").map(str::to_owned)
}

/// Installs Debian packages. If `backports` is set, those that the release's backports have come from there.
///
/// Without apt, or without the right to use it, the error is a sentence that tells the user what to install.
pub fn install(packages: &[&str], backports: bool) -> Result<()> {
    let list = packages.join(" ");
    if !command::succeeds("apt-get", &["--version"]) {
        bail!(
            "this system has no apt: install what Debian calls {list} with its own package manager and run the task again"
        );
    }
    let installer = if command::output(Command::new("id").arg("-u"))?.trim() == "0" {
        Installer::Root
    } else if command::succeeds("sudo", &["--non-interactive", "true"]) {
        Installer::Sudo
    } else {
        bail!("installing needs root: run `sudo apt-get install {list}` and then the task again");
    };
    // An old list of packages names files that the archive no longer contains.
    command::run(installer.command("apt-get").args(["--quiet", "update"]))?;
    let suite = if backports {
        backports_suite(&installer)?
    } else {
        None
    };
    let mut install = installer.command("apt-get");
    install.args(["--quiet", "--yes", "--no-install-recommends", "install"]);
    if let Some(suite) = &suite {
        install.arg(format!("--target-release={suite}"));
    }
    command::run(install.args(packages))
}

/// Returns the codename of the system's release if it is one of Debian's.
pub fn release() -> Option<String> {
    let release = std::fs::read_to_string("/etc/os-release").ok()?;
    let is_debian = os_release_field(&release, "ID") == Some("debian");
    let name = os_release_field(&release, "VERSION_CODENAME")?;
    is_debian.then(|| name.to_owned())
}

/// Returns the release's backports suite (newer packages for an older release), which is set up if needed; `None`
/// on systems without backports.
fn backports_suite(installer: &Installer) -> Result<Option<String>> {
    // The Mesa of newer releases is recent enough.
    if release().as_deref() != Some("bookworm") {
        return Ok(None);
    }
    let suite = "bookworm-backports";
    let archives = archives()?;
    if archives.iter().any(|(_, codename)| codename == suite) {
        return Ok(Some(suite.to_owned()));
    }
    let Some((uri, _)) = archives.iter().find(|(_, codename)| codename == "bookworm") else {
        return Ok(None);
    };
    let file = std::env::temp_dir().join(format!("{suite}.{}.sources", std::process::id()));
    std::fs::write(&file, sources_file(uri, suite))
        .with_context(|| format!("cannot write {}", file.display()))?;
    let target = format!("/etc/apt/sources.list.d/{suite}.sources");
    let mut install = installer.command("install");
    let installed = command::run(install.arg("--mode=644").arg(&file).arg(&target));
    let _ = std::fs::remove_file(&file);
    installed?;
    if let Err(error) = command::run(installer.command("apt-get").args(["--quiet", "update"])) {
        command::run(installer.command("rm").arg(&target))?;
        eprintln!("the archive in use has no {suite} ({error:#}): going on without it");
        return Ok(None);
    }
    Ok(Some(suite.to_owned()))
}

/// Returns the package archives that apt uses, as (address, codename of the release).
fn archives() -> Result<Vec<(String, String)>> {
    let mut query = Command::new("apt-get");
    query.args([
        "indextargets",
        "--format",
        "$(REPO_URI) $(CODENAME)",
        "Created-By: Packages",
    ]);
    Ok(command::output(&mut query)?
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(uri, codename)| (uri.to_owned(), codename.to_owned()))
        .collect())
}

/// Returns the text of the file that makes apt use a suite of an archive.
fn sources_file(uri: &str, suite: &str) -> String {
    let mut text = format!("Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\n");
    let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
    if Path::new(keys).exists() {
        text += &format!("Signed-By: {keys}\n");
    }
    text
}

/// An apt with lists, packages and sources of its own, which unpacks packages of other suites without installing
/// them, so that the machine's apt stays as it is.
pub struct PrivateApt {
    folder: PathBuf,
}

impl PrivateApt {
    /// Creates an apt that uses this machine's archive with other `suites`, and packages for another architecture
    /// if `architecture` is given.
    pub fn new(folder: &Path, suites: &[&str], architecture: Option<&str>) -> Result<PrivateApt> {
        let archives = archives().context("this system has no apt")?;
        let (uri, _) = (archives.iter())
            .find(|(uri, _)| uri.trim_end_matches('/').ends_with("/debian"))
            .context("apt uses no archive of Debian's here")?;
        for part in ["lists/partial", "cache/archives/partial"] {
            std::fs::create_dir_all(folder.join(part))?;
        }
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let lines = suites
            .iter()
            .map(|suite| format!("deb [signed-by={keys}] {uri} {suite} main\n"));
        std::fs::write(folder.join("sources.list"), lines.collect::<String>())?;
        // With an empty status, no package counts as installed.
        std::fs::write(folder.join("status"), "")?;
        let at = folder.display();
        let mut settings = format!(
            "Dir::Etc::sourcelist \"{at}/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\n\
             Dir::Etc::preferencesparts \"/dev/null\";\nDir::State::lists \"{at}/lists\";\n\
             Dir::State::status \"{at}/status\";\nDir::Cache \"{at}/cache\";\nAcquire::Languages \"none\";\n\
             Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\nAPT::Sandbox::User \"root\";\n"
        );
        if let Some(architecture) = architecture {
            settings += &format!(
                "APT::Architecture \"{architecture}\";\nAPT::Architectures {{ \"{architecture}\"; }};\n"
            );
        }
        std::fs::write(folder.join("settings"), settings)?;
        let apt = PrivateApt {
            folder: folder.to_owned(),
        };
        command::run(apt.command("apt-get").args(["--quiet", "update"]))?;
        Ok(apt)
    }

    /// Returns a command of a program of apt.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.folder.join("settings"));
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// Downloads packages with the packages that they need, and unpacks them into a folder. Their scripts do not
    /// run.
    pub fn unpack(&self, packages: &[&str], root: &Path) -> Result<()> {
        let mut install = self.command("apt-get");
        install.args("--quiet --yes --no-install-recommends --download-only install".split(' '));
        command::run(install.args(packages))?;
        for entry in std::fs::read_dir(self.folder.join("cache/archives"))?.flatten() {
            let package = entry.path();
            if package
                .extension()
                .is_none_or(|extension| extension != "deb")
            {
                continue;
            }
            // `dpkg -x` would replace the links to usr by folders.
            let unpack = format!(
                "dpkg-deb --fsys-tarfile '{}' | tar -x --keep-directory-symlink -f - -C '{}'",
                package.display(),
                root.display()
            );
            command::output(Command::new("sh").args(["-ec", &unpack]))?;
        }
        Ok(())
    }
}

/// Returns the value of a field of `/etc/os-release`, without quotes.
fn os_release_field<'a>(text: &'a str, field: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix('='))
        .map(|value| value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::os_release_field;

    #[test]
    fn fields_of_os_release_are_found_by_their_whole_name() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12\"\nVERSION_ID=\"12\"\nID=debian\nVERSION_CODENAME=bookworm\n";
        assert_eq!(os_release_field(text, "ID"), Some("debian"));
        assert_eq!(os_release_field(text, "VERSION_ID"), Some("12"));
        assert_eq!(os_release_field(text, "VERSION_CODENAME"), Some("bookworm"));
        assert_eq!(os_release_field(text, "CODENAME"), None);
    }
}
