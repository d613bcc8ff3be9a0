//! Version 6: descriptions in a fixed order, then options, then where each CPU's data is.

use super::description::{Buffer, CpuData, Description, PageLayout};
use super::file::{Damage, File, Head, expect};
use super::functions::Functions;
use super::options::{self, number};
use crate::bytes::{Cursor, u64_at};
use crate::linux::cpus::MAX_CPUS;

/// A buffer that was recorded beside the main one: where it is told of, and its name.
type Instance = (u64, String);

/// Reads all descriptions.
pub fn read(file: &mut File, head: &Head) -> Result<Description, Damage> {
    let mut d = Description::new(head.long);
    file.c_string()?;
    let size = file.u64()?;
    d.page = PageLayout::parse(&String::from_utf8_lossy(&file.take(size)?), head.long);
    file.c_string()?;
    let size = file.u64()?;
    file.take(size)?;
    formats(file, "ftrace", &mut d)?;
    for _ in 0..file.u32()? {
        let system = file.c_string()?;
        formats(file, &system, &mut d)?;
    }
    let size = file.u32()?;
    d.functions = Functions::parse(&file.take(size.into())?);
    // Texts of trace_printk.
    let size = file.u32()?;
    file.take(size.into())?;
    let size = file.u64()?;
    let names = file.take(size)?;
    d.add_names(&names);
    let cpus = file.u32()?;
    d.cpus = cpus;
    let (instances, has_clock) = read_options(file, &mut d)?;
    let main = buffer(file, (cpus, head.page_size), String::new(), has_clock)?;
    d.buffers.push(main);
    for (offset, name) in instances {
        file.jump(offset)?;
        file.array::<10>()?;
        let instance = buffer(file, (cpus, head.page_size), name, has_clock)?;
        d.buffers.push(instance);
    }
    Ok(d)
}

fn formats(file: &mut File, system: &str, to: &mut Description) -> Result<(), Damage> {
    for _ in 0..file.u32()? {
        let size = file.u64()?;
        let text = file.take(size)?;
        to.add_format(system, &text);
    }
    Ok(())
}

/// Reads options, if there are any, and the word that announces the CPUs' data.
fn read_options(file: &mut File, d: &mut Description) -> Result<(Vec<Instance>, bool), Damage> {
    let (mut instances, mut has_clock) = (Vec::new(), false);
    if &file.array::<10>()? == b"options  \0" {
        loop {
            let at = file.at();
            let id = u16::from_le_bytes(file.array()?);
            if id == number::DONE {
                break;
            }
            let size = file.u32()?;
            let bytes = file.take(size.into())?;
            match id {
                number::BUFFER => {
                    let offset = expect(u64_at(&bytes, 0), at, "a buffer's place")?;
                    instances.push((offset, crate::bytes::text(bytes.get(8..).unwrap_or(&[]))));
                }
                number::TRACECLOCK => has_clock = true,
                _ => options::add(d, id, &bytes),
            }
        }
        file.array::<10>()?;
    }
    Ok((instances, has_clock))
}

/// Where each CPU's data is, and by which clock.
fn buffer(file: &mut File, (cpus, page_size): (u32, u32), name: String, has_clock: bool) -> Result<Buffer, Damage> {
    if cpus > MAX_CPUS.into() {
        return Err(file.damage(format!("{cpus} CPUs are not plausible")));
    }
    let table = file.take(u64::from(cpus) * 16)?;
    let mut c = Cursor::new(&table);
    let places = (0..cpus).filter_map(|cpu| Some(CpuData { cpu, offset: c.u64()?, size: c.u64()? }));
    let cpus = places.filter(|p| p.size > 0).collect();
    let mut clock = String::new();
    if has_clock {
        let size = file.u64()?;
        clock = options::clock_of(&String::from_utf8_lossy(&file.take(size)?));
    }
    Ok(Buffer { name, clock, cpus, packed: false, page_size })
}
