//! The kernels that apt offers, fetched and unpacked, but not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Names of Debian's packages that stand for the newest kernel of a line and flavour.
const NEWEST: &str = r"^linux-image-([0-9.]+-)?((rt|cloud)-)?amd64$";

/// An unpacked kernel.
#[derive(Debug)]
pub struct Kernel {
    /// As uname tells it.
    pub release: String,
    /// What is booted.
    pub image: PathBuf,
    /// Where its modules lie.
    pub modules: PathBuf,
}

/// What `apt` offers: packages that stand for kernels.
pub fn offered() -> Result<Vec<String>> {
    let found = output(Command::new("apt-cache").args(["search", "--names-only", NEWEST]))?;
    let mut names: Vec<String> = found.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// The kernel of `package`, or of the newest that it stands for, below `folder`. It is fetched unless it is there.
pub fn kernel(folder: &Path, package: &str) -> Result<Kernel> {
    let package = newest(package)?;
    let unpacked = folder.join("unpacked").join(&package);
    if !unpacked.join("boot").is_dir() {
        fetch(folder, &package, &unpacked)?;
    }
    let images = fs::read_dir(unpacked.join("boot"))?.flatten().map(|entry| entry.file_name());
    let mut releases = images.filter_map(|name| Some(name.to_str()?.strip_prefix("vmlinuz-")?.to_owned()));
    let release = releases.next().with_context(|| format!("{package} holds no kernel"))?;
    let image = unpacked.join("boot").join(format!("vmlinuz-{release}"));
    let modules = ["lib/modules", "usr/lib/modules"].map(|parent| unpacked.join(parent).join(&release));
    let modules =
        modules.into_iter().find(|path| path.is_dir()).with_context(|| format!("{package} has no modules"))?;
    Ok(Kernel { release, image, modules })
}

/// The package that `package` depends on, where it is no kernel itself.
fn newest(package: &str) -> Result<String> {
    let depends = output(Command::new("apt-cache").args(["depends", "--important", package]))?;
    let on = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    Ok(on.filter(|name| name.starts_with("linux-image-")).map(str::to_owned).next().unwrap_or_else(|| package.into()))
}

fn fetch(folder: &Path, package: &str, unpacked: &Path) -> Result<()> {
    let folder = folder.join("packages");
    fs::create_dir_all(&folder)?;
    eprintln!("fetching {package}");
    output(Command::new("apt-get").args(["-q", "download", package]).current_dir(&folder))?;
    // apt writes a colon in a version as %3a.
    let of_it = |name: &str| name.strip_prefix(package).is_some_and(|rest| rest.starts_with('_'));
    let files = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    let mut found = files.filter(|path| path.file_name().and_then(|n| n.to_str()).is_some_and(of_it));
    let archive = found.next().with_context(|| format!("apt-get download {package} left no file"))?;
    fs::create_dir_all(unpacked)?;
    output(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(unpacked))?;
    fs::remove_file(&archive)?;
    Ok(())
}

/// What a command prints.
pub fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{program} cannot be run"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}: {}", output.status, said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
