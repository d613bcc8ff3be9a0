//! Boots a kernel under software emulation and takes back what it left on its disk.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::fetch::output;

const QEMU: &str = "qemu-system-x86_64";

/// Room for what a guest hands back: a sparse file.
const DISK_BYTES: u64 = 1 << 30;

/// A machine to be.
pub struct Guest<'a> {
    pub image: &'a Path,
    pub initrd: &'a Path,
    pub cpus: u32,
    /// Words for the kernel's command line.
    pub words: &'a str,
    pub patience: Duration,
}

impl Guest<'_> {
    /// Runs it until it switches itself off; `results` then holds its files and what its console said.
    pub fn run(&self, results: &Path) -> Result<()> {
        if results.exists() {
            fs::remove_dir_all(results)?;
        }
        fs::create_dir_all(results)?;
        let (disk, console) = (results.join("disk"), results.join("console.log"));
        File::create(&disk)?.set_len(DISK_BYTES)?;
        let mut machine = Machine(self.command(&disk, &console)?.spawn().with_context(missing)?);
        let began = Instant::now();
        let status = loop {
            if let Some(status) = machine.0.try_wait()? {
                break status;
            }
            let limit = self.patience.as_secs() / 60;
            ensure!(began.elapsed() < self.patience, "it still runs after {limit} minutes: {}", console.display());
            thread::sleep(Duration::from_millis(200));
        };
        ensure!(status.success(), "{QEMU}: {status}: {}", console.display());
        let unpacked = output(Command::new("tar").arg("-xf").arg(&disk).arg("-C").arg(results));
        unpacked.with_context(|| format!("it left nothing on its disk: {}", console.display()))?;
        fs::remove_file(&disk)?;
        Ok(())
    }

    fn command(&self, disk: &Path, console: &Path) -> Result<Command> {
        let console = File::create(console)?;
        let mut command = Command::new("nice");
        // One thread for all of its CPUs: with one for each, they ran into a breakpoint that was gone, again and again, in 7 of 21 boots of
        // Linux 6.1. See also `stumbled`.
        command.args(["-n", "10", QEMU, "-accel", "tcg,thread=single", "-cpu", "max", "-m", "4096", "-nodefaults"]);
        command.args(["-display", "none", "-serial", "stdio", "-no-reboot", "-smp"]).arg(self.cpus.to_string());
        command.arg("-kernel").arg(self.image).arg("-initrd").arg(self.initrd);
        command.arg("-append").arg(format!("console=ttyS0 panic=-1 quiet {}", self.words));
        command.arg("-drive").arg(format!("file={},format=raw,if=virtio", disk.display()));
        command.stdin(Stdio::null()).stderr(console.try_clone()?).stdout(console);
        Ok(command)
    }
}

/// Whether a CPU of the guest ran into a breakpoint that another one had put there for a moment, as kernels do to switch tracepoints on, and
/// taken away again. Software emulation is late to see that now and then; no processor is.
pub fn stumbled(results: &Path) -> bool {
    let console = fs::read_to_string(results.join("console.log")).unwrap_or_default();
    console.contains("Oops: int3") || console.contains("int3: 0000")
}

fn missing() -> String {
    format!("{QEMU} cannot be run: apt-get install qemu-system-x86")
}

/// Ends with whoever waits for it.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended by itself: nothing to do then.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
