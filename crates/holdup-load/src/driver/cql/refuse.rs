//! What the server or the way to it refused, as a sentence, and whether trying again can help.

use scylla::errors::{
    BadQuery, BrokenConnectionErrorKind, ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind,
    DbError, ExecutionError, MetadataError, MetadataFetchErrorKind, NewSessionError, NextPageError, NextRowError,
    PrepareError, RequestAttemptError, RequestError, SerializationError, UseKeyspaceError,
};

use crate::driver::value::Misfit;
use crate::driver::{Address, DriverError};

/// Why no session came up.
pub(super) fn session(error: &NewSessionError, address: &Address) -> DriverError {
    let at = |error: DriverError| DriverError { message: format!("{address}: {}", error.message), ..error };
    match error {
        NewSessionError::FailedToResolveAnyHostname(names) => DriverError::fatal(format!(
            "No host of {address} has an IP address that can be found: look for a mistake in {}.",
            names.join(", ")
        )),
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(error)) => at(pool(error)),
        NewSessionError::MetadataError(MetadataError::FetchError(fetch)) => match &fetch.error {
            MetadataFetchErrorKind::PrepareError(error) => at(attempt(error)),
            MetadataFetchErrorKind::NextRowError(NextRowError::NextPageError(NextPageError::RequestFailure(error))) => {
                at(request(error))
            }
            _ => DriverError::transient(format!("{address} did not tell of its nodes: {error}.")),
        },
        NewSessionError::UseKeyspaceError(error) => use_keyspace(error, &address.path),
        other => DriverError::transient(format!("{address} can't be used: {other}.")),
    }
}

/// Why a statement failed.
pub(super) fn execution(error: &ExecutionError) -> DriverError {
    match error {
        ExecutionError::BadQuery(BadQuery::SerializationError(error)) => serialization(error),
        ExecutionError::LastAttemptError(error) => attempt(error),
        ExecutionError::ConnectionPoolError(error) => pool(error),
        ExecutionError::PrepareError(error) => prepare(error),
        ExecutionError::UseKeyspaceError(error) => use_keyspace(error, "named by the statement"),
        ExecutionError::EmptyPlan => DriverError::transient("No node of the cluster is known to be up."),
        ExecutionError::RequestTimeout(_)
        | ExecutionError::SchemaAgreementError(_)
        | ExecutionError::MetadataError(_) => DriverError::transient(sentence(&error.to_string())),
        _ => DriverError::fatal(sentence(&error.to_string())),
    }
}

/// Why a statement could not be prepared.
pub(super) fn prepare(error: &PrepareError) -> DriverError {
    match error {
        PrepareError::ConnectionPoolError(error) => pool(error),
        PrepareError::AllAttemptsFailed { first_attempt } => attempt(first_attempt),
        other => DriverError::fatal(sentence(&other.to_string())),
    }
}

fn request(error: &RequestError) -> DriverError {
    match error {
        RequestError::ConnectionPoolError(error) => pool(error),
        RequestError::LastAttemptError(error) => attempt(error),
        other => DriverError::transient(sentence(&other.to_string())),
    }
}

fn attempt(error: &RequestAttemptError) -> DriverError {
    match error {
        RequestAttemptError::SerializationError(error) => serialization(error),
        RequestAttemptError::DbError(kind, reason) => database(kind, reason),
        RequestAttemptError::BrokenConnectionError(broken) => {
            DriverError::transient(lost(broken.downcast_ref::<BrokenConnectionErrorKind>()))
        }
        RequestAttemptError::UnableToAllocStreamId => DriverError::transient(
            "The connection has no room for another request: use more of them, or fewer at once.",
        ),
        other => DriverError::fatal(sentence(&other.to_string())),
    }
}

/// The server's own sentence says more than the name of its kind; what has none gets the name.
fn database(kind: &DbError, reason: &str) -> DriverError {
    let message = if reason.trim().is_empty() { sentence(&kind.to_string()) } else { sentence(reason) };
    let is_transient = match kind {
        DbError::Unavailable { .. }
        | DbError::Overloaded
        | DbError::IsBootstrapping
        | DbError::TruncateError
        | DbError::ReadTimeout { .. }
        | DbError::WriteTimeout { .. }
        | DbError::ReadFailure { .. }
        | DbError::WriteFailure { .. }
        | DbError::RateLimitReached { .. }
        | DbError::Unprepared { .. } => true,
        // A node that is being stopped answers so, with only its text to tell.
        DbError::ServerError => reason.contains("shut") || reason.contains("drain") || reason.contains("timed out"),
        _ => false,
    };
    DriverError { message, is_transient }
}

fn serialization(error: &SerializationError) -> DriverError {
    match error.downcast_ref::<Misfit>() {
        Some(misfit) => DriverError::fatal(misfit),
        None => DriverError::fatal(sentence(&error.to_string())),
    }
}

fn pool(error: &ConnectionPoolError) -> DriverError {
    match error {
        ConnectionPoolError::Broken { last_connection_error } => connection(last_connection_error),
        ConnectionPoolError::Initializing => DriverError::transient("The connections are not up yet."),
        other => DriverError::fatal(sentence(&other.to_string())),
    }
}

fn connection(error: &ConnectionError) -> DriverError {
    match error {
        ConnectionError::ConnectTimeout => DriverError::transient("No connection came up in time."),
        // A certificate that nobody trusts stays so.
        ConnectionError::IoError(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            DriverError::fatal(format!("There is no TLS: {error}."))
        }
        ConnectionError::IoError(error) => DriverError::transient(format!("No connection came up: {error}.")),
        ConnectionError::BrokenConnection(broken) => {
            DriverError::transient(lost(broken.downcast_ref::<BrokenConnectionErrorKind>()))
        }
        ConnectionError::ConnectionSetupRequestError(setup) => match setup.get_error() {
            ConnectionSetupRequestErrorKind::DbError(kind, reason) => database(kind, reason),
            ConnectionSetupRequestErrorKind::MissingAuthentication => {
                DriverError::fatal("The server asks for a user and a password: give --user and set HOLDUP_PASSWORD.")
            }
            ConnectionSetupRequestErrorKind::BrokenConnection(broken) => {
                DriverError::transient(lost(broken.downcast_ref::<BrokenConnectionErrorKind>()))
            }
            other => DriverError::fatal(sentence(&other.to_string())),
        },
        ConnectionError::UseKeyspaceError(error) => use_keyspace(error, "of the address"),
        other => DriverError::transient(sentence(&other.to_string())),
    }
}

fn lost(kind: Option<&BrokenConnectionErrorKind>) -> String {
    match kind {
        Some(BrokenConnectionErrorKind::WriteError(error)) => format!("The connection is lost: {error}."),
        Some(BrokenConnectionErrorKind::KeepaliveTimeout(node)) => {
            format!("The connection is lost: the node {node} no longer answers.")
        }
        _ => "The connection is lost: the server closed it.".to_owned(),
    }
}

fn use_keyspace(error: &UseKeyspaceError, keyspace: &str) -> DriverError {
    match error {
        UseKeyspaceError::RequestError(error) => attempt(error),
        UseKeyspaceError::BadKeyspaceName(error) => {
            DriverError::fatal(format!("The keyspace {keyspace} can't be used: {error}."))
        }
        other => DriverError::transient(format!("The keyspace {keyspace} can't be used: {other}.")),
    }
}

/// One line that ends like a sentence.
fn sentence(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.ends_with(['.', '!', '?']) { line } else { format!("{line}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_under_load_is_transient_and_a_wrong_statement_is_not() {
        assert!(database(&DbError::Overloaded, "").is_transient);
        assert!(database(&DbError::ServerError, "Server is shutting down").is_transient);
        for kind in [DbError::SyntaxError, DbError::Invalid, DbError::Unauthorized, DbError::ServerError] {
            assert!(!database(&kind, "no").is_transient, "{kind}");
        }
    }

    #[test]
    fn the_server_s_words_become_one_sentence() {
        let error = database(&DbError::SyntaxError, "line 1:0 no viable\n alternative");
        assert_eq!(error.message, "line 1:0 no viable alternative.");
    }
}
