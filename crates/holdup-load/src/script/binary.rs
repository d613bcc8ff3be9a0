//! `fs::open_binary`: numbers and bytes of a file, wherever they lie in it. Nothing but what is asked for is in memory.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use holdup_base::named;
use rune::runtime::{Bytes, Mut, VmResult};
use rune::{Any, ContextError, Module, Value, vm_try};

use super::beneath::Files;
use super::failure::Failure;

named! {
    /// Which byte of a number comes first.
    enum Order {
        /// The least.
        Little = "LE",
        /// The greatest.
        Big = "BE",
    }
}

impl Order {
    fn of(word: &str) -> Result<Order, Failure> {
        let order = Order::ALL.iter().find(|order| order.name().eq_ignore_ascii_case(word));
        order.copied().ok_or_else(|| Failure::new(format!("{word:?} is no order of bytes: it is fs::LE or fs::BE")))
    }
}

/// How a number stands in the file.
#[derive(Clone, Copy)]
enum Number {
    U32,
    I32,
    I64,
    F32,
    F64,
}

impl Number {
    /// The functions that read one, and a list of them.
    const READ: [(&str, &str, Number); 5] = [
        ("read_u32", "read_u32_vec", Number::U32),
        ("read_i32", "read_i32_vec", Number::I32),
        ("read_i64", "read_i64_vec", Number::I64),
        ("read_f32", "read_f32_vec", Number::F32),
        ("read_f64", "read_f64_vec", Number::F64),
    ];

    fn bytes(self) -> usize {
        match self {
            Number::U32 | Number::I32 | Number::F32 => 4,
            Number::I64 | Number::F64 => 8,
        }
    }

    /// The number that these bytes, the least first, are.
    fn value(self, [a, b, c, d, e, f, g, h]: [u8; 8]) -> Value {
        let (four, eight) = ([a, b, c, d], [a, b, c, d, e, f, g, h]);
        match self {
            Number::U32 => Value::from(i64::from(u32::from_le_bytes(four))),
            Number::I32 => Value::from(i64::from(i32::from_le_bytes(four))),
            Number::I64 => Value::from(i64::from_le_bytes(eight)),
            Number::F32 => Value::from(f64::from(f32::from_le_bytes(four))),
            Number::F64 => Value::from(f64::from_le_bytes(eight)),
        }
    }
}

/// A file, and where the next read begins.
#[derive(Any)]
#[rune(item = ::fs)]
struct BinaryFile {
    read: BufReader<File>,
    name: String,
    length: u64,
    at: u64,
}

impl BinaryFile {
    fn open(files: &Files, file: &str) -> Result<BinaryFile, Failure> {
        let opened = files.plain(Path::new(file)).map_err(|refusal| Failure::new(refusal.sentence()))?;
        let length = opened.metadata().map_err(|error| Failure::new(format!("{file}: {error}")))?.len();
        Ok(BinaryFile { read: BufReader::new(opened), name: file.to_owned(), length, at: 0 })
    }

    fn cant(&self, why: impl std::fmt::Display) -> Failure {
        Failure::new(format!("{}: {why}", self.name))
    }

    fn seek(&mut self, to: i64) -> Result<(), Failure> {
        let to = u64::try_from(to).map_err(|_| self.cant(format!("byte {to} is before its first, which is 0")))?;
        self.go(to)
    }

    fn seek_relative(&mut self, by: i64) -> Result<(), Failure> {
        match self.at.checked_add_signed(by) {
            Some(to) if to <= self.length => self.go(to),
            _ => Err(self.cant(format!("{by} bytes from byte {} are outside of its {}", self.at, self.length))),
        }
    }

    /// What is buffered stays if the place is in it: a script that reads records in their order reads each block once.
    fn go(&mut self, to: u64) -> Result<(), Failure> {
        let moved = match i64::try_from(i128::from(to) - i128::from(self.at)) {
            Ok(by) => self.read.seek_relative(by),
            Err(_) => self.read.seek(SeekFrom::Start(to)).map(drop),
        };
        moved.map_err(|error| self.cant(error))?;
        self.at = to;
        Ok(())
    }

    /// Says so before anything is read or held for it: `count` parts of `size` bytes are not all there.
    fn expect(&self, count: usize, size: usize) -> Result<(), Failure> {
        let rest = self.length.saturating_sub(self.at);
        let wanted = (count as u64).checked_mul(size as u64);
        if wanted.is_some_and(|wanted| wanted <= rest) {
            return Ok(());
        }
        Err(self
            .cant(format!("it ends at byte {}: {count} times {size} from byte {} are not there", self.length, self.at)))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        let read: io::Result<()> = self.read.read_exact(bytes);
        read.map_err(|error| self.cant(error))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn number(&mut self, number: Number, order: Order) -> Result<Value, Failure> {
        let mut bytes = [0; 8];
        let of_it = &mut bytes[..number.bytes()];
        self.fill(of_it)?;
        if order == Order::Big {
            of_it.reverse();
        }
        Ok(number.value(bytes))
    }

    fn one(&mut self, number: Number, order: &str) -> Result<Value, Failure> {
        let order = Order::of(order)?;
        self.expect(1, number.bytes())?;
        self.number(number, order)
    }

    /// In memory that the engine counts, as below.
    fn many(&mut self, number: Number, order: &str, count: usize) -> VmResult<Result<rune::runtime::Vec, Failure>> {
        let order = match Order::of(order).and_then(|order| self.expect(count, number.bytes()).map(|()| order)) {
            Ok(order) => order,
            Err(failure) => return VmResult::Ok(Err(failure)),
        };
        let mut values = vm_try!(rune::runtime::Vec::with_capacity(count));
        for _ in 0..count {
            match self.number(number, order) {
                Ok(value) => vm_try!(values.push(value)),
                Err(failure) => return VmResult::Ok(Err(failure)),
            }
        }
        VmResult::Ok(Ok(values))
    }

    fn raw(&mut self, count: usize) -> VmResult<Result<Bytes, Failure>> {
        if let Err(failure) = self.expect(count, 1) {
            return VmResult::Ok(Err(failure));
        }
        let mut bytes = rune::alloc::Vec::new();
        vm_try!(bytes.try_resize(count, 0_u8));
        VmResult::Ok(self.fill(bytes.as_mut_slice()).map(|()| Bytes::from_vec(bytes)))
    }
}

/// Adds it.
pub(super) fn install(module: &mut Module, files: &Files) -> Result<(), ContextError> {
    module.ty::<BinaryFile>()?;
    for order in Order::ALL {
        module.constant(order.name(), order.name()).build()?;
    }
    let files = files.clone();
    module.function("open_binary", move |file: &str| BinaryFile::open(&files, file)).build()?;
    module.associated_function("len", |file: Mut<BinaryFile>| file.length)?;
    module.associated_function("seek", |mut file: Mut<BinaryFile>, to: i64| file.seek(to))?;
    module.associated_function("seek_relative", |mut file: Mut<BinaryFile>, by: i64| file.seek_relative(by))?;
    module.associated_function("read_bytes", |mut file: Mut<BinaryFile>, count: usize| file.raw(count))?;
    for (one, many, number) in Number::READ {
        module.associated_function(one, move |mut file: Mut<BinaryFile>, order: &str| file.one(number, order))?;
        module.associated_function(many, move |mut file: Mut<BinaryFile>, order: &str, count: usize| {
            file.many(number, order, count)
        })?;
    }
    Ok(())
}
