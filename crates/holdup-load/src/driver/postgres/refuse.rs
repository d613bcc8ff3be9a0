//! What PostgreSQL or the way to it refused, as a sentence, and whether trying again can help.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity};

use crate::driver::DriverError;
use crate::driver::value::Misfit;

/// SQLSTATEs that may be over soon: connection, rollback for others' sake, resources, shut-down and start, time-outs.
const TRANSIENT: [&str; 6] = ["08", "40", "53", "57P0", "57014", "55P03"];

/// Why no connection came up.
pub(super) fn connection(error: &Error, host: &str) -> DriverError {
    let is_transient = match error.as_db_error() {
        Some(refused) => is_transient(refused),
        None => error.source().is_some_and(|source| source.is::<std::io::Error>()) && !is_wrong_certificate(error),
    };
    DriverError { message: format!("There is no connection to {host}: {}", words(error)), is_transient }
}

/// Why a call failed; `end` is why its connection ended, if it did.
pub(super) fn call(error: &Error, end: Option<&str>) -> DriverError {
    if let Some(refused) = error.as_db_error() {
        return DriverError { message: words(error), is_transient: is_transient(refused) };
    }
    if let Some(misfit) = error.source().and_then(|source| source.downcast_ref::<Misfit>()) {
        return DriverError::fatal(misfit);
    }
    let is_io = error.source().is_some_and(|source| source.is::<std::io::Error>());
    if error.is_closed() || is_io {
        let why = end.map_or_else(|| words(error), str::to_owned);
        return DriverError::transient(format!("The connection is lost: {why}"));
    }
    DriverError::fatal(words(error))
}

/// Whether the server takes leave with this error.
pub(super) fn ends_session(error: &Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

/// The server's own words with its SQLSTATE, or else the innermost cause.
pub(super) fn words(error: &Error) -> String {
    match error.as_db_error() {
        Some(refused) => {
            let details = [refused.detail(), refused.hint()].into_iter().flatten();
            let all: Vec<&str> =
                std::iter::once(refused.message()).chain(details).map(|text| text.trim_end_matches('.')).collect();
            format!("{} ({}).", all.join(": "), refused.code().code())
        }
        None => {
            let mut innermost: &dyn std::error::Error = error;
            while let Some(source) = innermost.source() {
                innermost = source;
            }
            format!("{innermost}.")
        }
    }
}

fn is_transient(refused: &DbError) -> bool {
    TRANSIENT.iter().any(|class| refused.code().code().starts_with(class))
}

fn is_wrong_certificate(error: &Error) -> bool {
    error
        .source()
        .and_then(|source| source.downcast_ref::<std::io::Error>())
        .is_some_and(|error| matches!(error.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput))
}
