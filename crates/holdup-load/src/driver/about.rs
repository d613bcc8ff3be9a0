//! What a server says of itself: for reports, since a figure is of a version.

use std::fmt;
#[cfg(any(feature = "cql", feature = "postgres", feature = "redis"))]
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a server is waited for that does not say its version.
#[cfg(any(feature = "cql", feature = "postgres", feature = "redis"))]
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Characters of a name or a version that are kept.
#[cfg(any(feature = "cql", feature = "http", feature = "postgres", feature = "redis"))]
const LONGEST: usize = 100;

/// The software that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerInfo {
    /// What it calls itself.
    pub software: String,
    /// Its version in its own words; empty if it does not tell.
    pub version: String,
    /// The cluster's name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

impl ServerInfo {
    /// A server without a cluster. Only the beginning of long words is kept: they are a stranger's.
    #[cfg(any(feature = "cql", feature = "http", feature = "postgres", feature = "redis"))]
    pub(super) fn new(software: &str, version: &str) -> ServerInfo {
        ServerInfo { software: shortened(software), version: shortened(version), cluster: None }
    }

    #[cfg(feature = "cql")]
    pub(super) fn of_cluster(self, cluster: Option<&str>) -> ServerInfo {
        ServerInfo { cluster: cluster.map(shortened), ..self }
    }
}

/// The answer to a question for it, if it comes soon: no run fails for want of it.
#[cfg(any(feature = "cql", feature = "postgres", feature = "redis"))]
pub(super) async fn soon(answer: impl Future<Output = Option<ServerInfo>>) -> Option<ServerInfo> {
    tokio::time::timeout(LONGEST_WAIT, answer).await.ok().flatten()
}

impl fmt::Display for ServerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.software)?;
        if !self.version.is_empty() {
            write!(f, " {}", self.version)?;
        }
        self.cluster.iter().try_for_each(|cluster| write!(f, ", cluster {cluster:?}"))
    }
}

#[cfg(any(feature = "cql", feature = "http", feature = "postgres", feature = "redis"))]
fn shortened(words: &str) -> String {
    words.trim().chars().take(LONGEST).collect()
}
