//! Errors as a script sees them.

use rune::alloc::fmt::TryWrite as _;
use rune::runtime::{Formatter, VmResult};
use rune::{Any, ContextError, Module};

use crate::driver::DriverError;

/// The error of a statement or of a file, as a script sees it.
#[derive(Any, Clone, Debug)]
#[rune(item = ::latte)]
pub(super) struct Failure {
    #[rune(get)]
    pub(super) message: String,
    #[rune(get, copy)]
    pub(super) is_transient: bool,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), is_transient: false }
    }

    #[rune::function(instance, protocol = DISPLAY_FMT)]
    fn display(&self, f: &mut Formatter) -> VmResult<()> {
        rune::vm_write!(f, "{}", self.message)
    }

    #[rune::function(instance, protocol = DEBUG_FMT)]
    fn debug(&self, f: &mut Formatter) -> VmResult<()> {
        rune::vm_write!(f, "{}", self.message)
    }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Failure {
        Failure { message: error.message, is_transient: error.is_transient }
    }
}

/// Adds the error type.
pub(super) fn install(module: &mut Module) -> Result<(), ContextError> {
    module.ty::<Failure>()?;
    module.function_meta(Failure::display)?;
    module.function_meta(Failure::debug)?;
    Ok(())
}
