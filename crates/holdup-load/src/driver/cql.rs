//! Cassandra and ScyllaDB.

use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::ExecutionError;
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::query_result::QueryResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::statement::Consistency;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::unprepared::Statement;

use super::{Args, ConnectOptions, Driver, DriverError, Pending, Reply, ServerInfo, Value, Want, about, tls};

mod bind;
mod decode;
mod duration;
mod number;
mod refuse;

/// Rows in a page where the options name none.
const PAGE_SIZE: i32 = 5000;

/// Each thread learns the cluster again this often, besides being told of changes. Rare, since it is measured along.
const METADATA_INTERVAL: Duration = Duration::from_secs(600);

/// One thread's session. It neither retries nor times out: what is around it does, and counts both.
pub(super) struct Cql {
    session: Session,
    prepared: RefCell<HashMap<String, Rc<PreparedStatement>>>,
    page_size: i32,
    server: Option<ServerInfo>,
}

impl Cql {
    pub(super) async fn connect(options: &ConnectOptions) -> Result<Cql, DriverError> {
        let address = &options.address;
        let page_size = options.page_size.unwrap_or(PAGE_SIZE);
        if page_size <= 0 {
            return Err(DriverError::fatal(format!("A page of {page_size} rows can't be: give at least 1.")));
        }
        let connections = NonZeroUsize::new(options.connections).unwrap_or(NonZeroUsize::MIN);
        let mut builder = SessionBuilder::new()
            .default_execution_profile_handle(profile(options)?.into_handle())
            .connection_timeout(options.connect_timeout)
            .pool_size(PoolSize::PerHost(connections))
            .cluster_metadata_refresh_interval(METADATA_INTERVAL)
            // Routing needs keyspaces and partitioners; columns and types would be fetched by each thread for nothing.
            .fetch_full_schema_metadata(false)
            .tls_context(tls::wanted(options)?);
        for (host, port) in &address.hosts {
            let brackets = if host.contains(':') { ("[", "]") } else { ("", "") };
            builder = builder.known_node(format!("{}{host}{}:{port}", brackets.0, brackets.1));
        }
        if let Some(user) = options.user.as_ref().or(address.user.as_ref()) {
            let password = options.password.as_ref().or(address.password.as_ref());
            builder = builder.user(user, password.map_or("", String::as_str));
        }
        if !address.path.is_empty() {
            builder = builder.use_keyspace(&address.path, false);
        }
        let session = builder.build().await.map_err(|error| refuse::session(&error, address))?;
        let driver = Cql { session, prepared: RefCell::default(), page_size, server: None };
        Ok(Cql { server: about::soon(driver.about()).await, ..driver })
    }

    /// Fetches all pages, which is what a client that wants its rows does.
    async fn pages<F, P>(&self, want: Want, page: F) -> Result<Reply, DriverError>
    where
        F: Fn(PagingState) -> P,
        P: Future<Output = Result<(QueryResult, PagingStateResponse), ExecutionError>>,
    {
        let mut reply = Reply::default();
        let mut rows: Vec<Value> = Vec::new();
        let mut state = PagingState::start();
        loop {
            let (result, next) = page(state).await.map_err(|error| refuse::execution(&error))?;
            if result.is_rows() {
                let result = result.into_rows_result().map_err(|error| decode::unreadable(&error))?;
                reply.rows += result.rows_num() as u64;
                if want == Want::Values {
                    decode::rows(&result, &mut rows)?;
                }
            }
            match next.into_paging_control_flow() {
                ControlFlow::Break(()) => break,
                ControlFlow::Continue(next) => state = next,
            }
        }
        reply.values = (want == Want::Values).then_some(Value::List(rows));
        Ok(reply)
    }

    /// What the server says of itself. ScyllaDB has its own version at the first place, and at the second that of the Cassandra
    /// it was like long ago.
    async fn about(&self) -> Option<ServerInfo> {
        let scylla = self.text_of("SELECT version FROM system.versions").await;
        let server = match scylla {
            Some(version) => ServerInfo::new("ScyllaDB", &version),
            None => ServerInfo::new("Cassandra", &self.text_of("SELECT release_version FROM system.local").await?),
        };
        Some(server.of_cluster(self.text_of("SELECT cluster_name FROM system.local").await.as_deref()))
    }

    /// The text that a statement selects.
    async fn text_of(&self, statement: &str) -> Option<String> {
        let Value::List(rows) = self.execute(statement, &Args::None, Want::Values).await.ok()?.values? else {
            return None;
        };
        let Value::Map(columns) = rows.into_iter().next()? else { return None };
        match columns.into_iter().next()?.1 {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn statement(&self, text: &str) -> Statement {
        Statement::new(text).with_page_size(self.page_size)
    }
}

impl Driver for Cql {
    fn prepare<'a>(&'a self, key: &'a str, statement: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let prepared =
                self.session.prepare(self.statement(statement)).await.map_err(|error| refuse::prepare(&error))?;
            self.prepared.borrow_mut().insert(key.to_owned(), Rc::new(prepared));
            Ok(())
        })
    }

    fn execute<'a>(&'a self, statement: &'a str, args: &'a Args, want: Want) -> Pending<'a, Reply> {
        Box::pin(async move {
            let statement = self.statement(statement);
            self.pages(want, |state| self.session.query_single_page(statement.clone(), bind::BoundArgs(args), state))
                .await
        })
    }

    fn execute_prepared<'a>(&'a self, key: &'a str, args: &'a Args, want: Want) -> Pending<'a, Reply> {
        Box::pin(async move {
            let prepared = self.prepared.borrow().get(key).cloned().ok_or_else(|| super::never_prepared(key))?;
            self.pages(want, |state| self.session.execute_single_page(&prepared, bind::BoundArgs(args), state)).await
        })
    }

    fn batch_prepared<'a>(&'a self, statements: &'a [(String, Args)]) -> Pending<'a, Reply> {
        Box::pin(async move {
            let mut batch = Batch::new(BatchType::Logged);
            let mut values = Vec::with_capacity(statements.len());
            for (key, args) in statements {
                let prepared = self.prepared.borrow().get(key).cloned().ok_or_else(|| super::never_prepared(key))?;
                batch.append_statement(PreparedStatement::clone(&prepared));
                values.push(bind::BoundArgs(args));
            }
            self.session.batch(&batch, values).await.map_err(|error| refuse::execution(&error))?;
            Ok(Reply::default())
        })
    }

    fn server(&self) -> Option<ServerInfo> {
        self.server.clone()
    }

    fn datacenters(&self) -> Result<Vec<String>, DriverError> {
        let cluster = self.session.get_cluster_state();
        let mut names: Vec<String> =
            cluster.get_nodes_info().iter().filter_map(|node| node.datacenter.clone()).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }
}

fn profile(options: &ConnectOptions) -> Result<ExecutionProfile, DriverError> {
    let consistency = options.consistency.as_deref().map_or(Ok(Consistency::LocalQuorum), consistency)?;
    let nodes = match &options.datacenter {
        Some(name) => DefaultPolicy::builder().prefer_datacenter(name.clone()).permit_dc_failover(false),
        None => DefaultPolicy::builder(),
    };
    Ok(ExecutionProfile::builder()
        .load_balancing_policy(nodes.build())
        .consistency(consistency)
        .request_timeout(None)
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .build())
}

const CONSISTENCIES: [(&str, Consistency); 11] = [
    ("ANY", Consistency::Any),
    ("ONE", Consistency::One),
    ("TWO", Consistency::Two),
    ("THREE", Consistency::Three),
    ("QUORUM", Consistency::Quorum),
    ("ALL", Consistency::All),
    ("LOCAL_QUORUM", Consistency::LocalQuorum),
    ("EACH_QUORUM", Consistency::EachQuorum),
    ("LOCAL_ONE", Consistency::LocalOne),
    ("SERIAL", Consistency::Serial),
    ("LOCAL_SERIAL", Consistency::LocalSerial),
];

fn consistency(name: &str) -> Result<Consistency, DriverError> {
    let wanted = name.replace('-', "_").to_ascii_uppercase();
    CONSISTENCIES.iter().find(|(name, _)| *name == wanted).map(|(_, consistency)| *consistency).ok_or_else(|| {
        let names: Vec<&str> = CONSISTENCIES.iter().map(|(name, _)| *name).collect();
        DriverError::fatal(format!("There is no consistency {name:?}: it is one of {}.", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consistency_is_found_in_any_case() {
        assert_eq!(consistency("local_one"), Ok(Consistency::LocalOne));
        assert_eq!(consistency("Each-Quorum"), Ok(Consistency::EachQuorum));
        assert!(consistency("most").unwrap_err().message.contains("LOCAL_QUORUM"));
    }
}
