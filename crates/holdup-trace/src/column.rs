//! What a column can hold.

use arrow_array::types::{ArrowPrimitiveType, Int16Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};

use crate::SpanOutcome;
use crate::refer::Refer;
use crate::{Cpu, FrameId, LockId, LockKind, Nanos, SpaceId, StackId, StringId, SwitchState, ThreadIdx};
use crate::{LossKind, Timestamp, WakeContext};

/// A value that a column can hold.
pub trait Column: Copy {
    /// How it is stored.
    type Arrow: ArrowPrimitiveType;
    /// To the stored form.
    fn store(self) -> <Self::Arrow as ArrowPrimitiveType>::Native;
    /// From the stored form.
    fn load(native: <Self::Arrow as ArrowPrimitiveType>::Native) -> Self;
    /// Bytes of the stored form.
    const WIDTH: usize = std::mem::size_of::<<Self::Arrow as ArrowPrimitiveType>::Native>();
    /// Appends values from the bytes of their stored forms, little-endian.
    fn load_all(bytes: &[u8], to: &mut Vec<Self>);
    /// Whether it names one of the trace's strings.
    const IS_STRING: bool = false;
    /// Shows itself, if it is an id.
    fn refer(&mut self, _to: &mut dyn Refer) {}
}

macro_rules! column {
    (@is string) => { const IS_STRING: bool = true; };
    (@is stack) => {};
    ($($ty:ty: $arrow:ty, |$v:ident| $store:expr, |$n:ident| $load:expr $(, refers to $what:ident)?;)+) => {
        $(impl Column for $ty {
            type Arrow = $arrow;
            fn store(self) -> <Self::Arrow as ArrowPrimitiveType>::Native { let $v = self; $store }
            fn load($n: <Self::Arrow as ArrowPrimitiveType>::Native) -> Self { $load }
            fn load_all(bytes: &[u8], to: &mut Vec<Self>) {
                type Native = <$arrow as ArrowPrimitiveType>::Native;
                let (natives, _) = bytes.as_chunks::<{ std::mem::size_of::<Native>() }>();
                to.extend(natives.iter().map(|n| Self::load(Native::from_le_bytes(*n))));
            }
            $(column!(@is $what);)?
            $(fn refer(&mut self, to: &mut dyn Refer) { to.$what(self); })?
        })+
    };
}

column! {
    u8: UInt8Type, |v| v, |n| n;
    u16: UInt16Type, |v| v, |n| n;
    u32: UInt32Type, |v| v, |n| n;
    u64: UInt64Type, |v| v, |n| n;
    i16: Int16Type, |v| v, |n| n;
    bool: UInt8Type, |v| u8::from(v), |n| n != 0;
    Timestamp: UInt64Type, |v| v.nanos(), |n| Timestamp::from_nanos_since_start(n);
    Nanos: UInt64Type, |v| v.0, |n| Nanos(n);
    Cpu: UInt16Type, |v| v.0, |n| Cpu(n);
    ThreadIdx: UInt32Type, |v| v.0, |n| ThreadIdx(n);
    StackId: UInt32Type, |v| v.0, |n| StackId(n), refers to stack;
    FrameId: UInt32Type, |v| v.0, |n| FrameId(n);
    StringId: UInt32Type, |v| v.0, |n| StringId(n), refers to string;
    LockId: UInt32Type, |v| v.0, |n| LockId(n);
    SpaceId: UInt32Type, |v| v.0, |n| SpaceId(n);
    SwitchState: UInt8Type, |v| v.code(), |n| SwitchState::from_code(n);
    LockKind: UInt8Type, |v| v.code(), |n| LockKind::from_code(n);
    WakeContext: UInt8Type, |v| v.code(), |n| WakeContext::from_code(n);
    LossKind: UInt8Type, |v| v.code(), |n| LossKind::from_code(n);
    SpanOutcome: UInt8Type, |v| v.code(), |n| SpanOutcome::from_code(n);
}
