//! The vdso: code that the kernel maps into every process without a file.

use std::fs::File;
use std::os::unix::fs::FileExt;

use holdup_trace::Image;

/// What the kernel calls it.
pub(crate) const NAME: &str = "[vdso]";

/// The vdso of this process, which is that of all 64-bit processes under this kernel. `None` if `image` has another
/// size: then it is another one (that of a 32-bit process, or of another kernel).
pub(crate) fn of_this_kernel(image: &Image) -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|l| l.ends_with(NAME))?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let size = u64::from_str_radix(end, 16).ok()?.checked_sub(start)?;
    if size != image.end.checked_sub(image.start)? || size > 1 << 20 {
        return None;
    }
    let mut bytes = vec![0; size as usize];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
}
