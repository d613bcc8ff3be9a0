//! The first file system of a guest: holdup, the programs it records, their libraries, and a shell.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::fetch::{Kernel, output};

/// For the disk on which a guest hands its results back, in the order in which they are loaded. Some kernels have some built in.
const MODULES: [&str; 6] =
    ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"];

const INIT: &str = include_str!("init.sh");

/// What a guest gets besides its kernel.
pub struct Image<'a> {
    pub holdup: &'a Path,
    /// Found in /programs.
    pub programs: &'a [PathBuf],
    /// Lines for the script `init.sh`.
    pub jobs: &'a str,
}

impl Image<'_> {
    /// Puts the archive that `kernel` boots with into `file`; `root` is where it is put together.
    pub fn make(&self, kernel: &Kernel, root: &Path, file: &Path) -> Result<()> {
        if root.exists() {
            fs::remove_dir_all(root)?;
        }
        for folder in ["bin", "programs", "modules", "out", "proc", "sys/fs/cgroup", "dev", "tmp"] {
            fs::create_dir_all(root.join(folder))?;
        }
        let busybox = ["/usr/bin/busybox", "/bin/busybox"].map(Path::new).into_iter().find(|path| path.exists());
        let busybox = busybox.context("busybox is missing: apt-get install busybox-static")?;
        fs::copy(busybox, root.join("bin/busybox"))?;
        symlink("busybox", root.join("bin/sh"))?;
        fs::copy(self.holdup, root.join("bin/holdup"))?;
        for program in self.programs {
            fs::copy(program, root.join("programs").join(program.file_name().context("a program has a name")?))?;
        }
        for library in libraries(self.programs.iter().map(PathBuf::as_path).chain([self.holdup]))? {
            let to = root.join(library.strip_prefix("/").unwrap_or(&library));
            fs::create_dir_all(to.parent().context("a library lies in a folder")?)?;
            fs::copy(&library, to)?;
        }
        modules(kernel, &root.join("modules"))?;
        fs::write(root.join("init"), INIT)?;
        fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755))?;
        fs::write(root.join("jobs"), self.jobs)?;
        pack(busybox, root, file)
    }
}

/// All that `programs` are linked with, the loader too.
fn libraries<'a>(programs: impl Iterator<Item = &'a Path>) -> Result<BTreeSet<PathBuf>> {
    let mut all = BTreeSet::new();
    for program in programs {
        let listed = output(Command::new("ldd").arg(program))?;
        let paths = listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
        all.extend(paths.map(PathBuf::from));
    }
    Ok(all)
}

/// Copies the modules, unpacked, named so that they sort in the order in which they are loaded.
fn modules(kernel: &Kernel, to: &Path) -> Result<()> {
    let there = kernel.modules.join("kernel/drivers");
    for (i, name) in MODULES.iter().enumerate() {
        let to = to.join(format!("{i}-{name}.ko"));
        for folder in ["virtio", "block"] {
            let plain = there.join(folder).join(format!("{name}.ko"));
            let packed = there.join(folder).join(format!("{name}.ko.xz"));
            if plain.exists() {
                fs::copy(plain, &to)?;
            } else if packed.exists() {
                let done = Command::new("xz").arg("-dc").arg(packed).stdout(File::create(&to)?).status()?;
                ensure!(done.success(), "xz cannot unpack {name}");
            }
        }
    }
    Ok(())
}

fn pack(busybox: &Path, root: &Path, file: &Path) -> Result<()> {
    let script = "cd \"$1\" && find . | \"$2\" cpio -o -H newc";
    let mut pack = Command::new("sh");
    pack.args(["-c", script, "sh"]).arg(root).arg(busybox).stdout(File::create(file)?).stderr(Stdio::null());
    ensure!(pack.status()?.success(), "busybox cpio cannot pack {}", root.display());
    Ok(())
}
