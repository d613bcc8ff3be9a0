//! Where a server is: what stands on the command line, taken apart.

use std::fmt;
use std::str::FromStr;

/// Which kind of server, and so which driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Cassandra, ScyllaDB and what else speaks CQL.
    Cql,
    /// PostgreSQL and what else speaks its protocol.
    Postgres,
    /// A server of HTTP/1.1.
    Http,
    /// Redis, Valkey and what else speaks RESP.
    Redis,
}

impl Kind {
    fn default_port(self, tls: bool) -> u16 {
        match self {
            Kind::Cql => 9042,
            Kind::Postgres => 5432,
            Kind::Http if tls => 443,
            Kind::Http => 80,
            Kind::Redis => 6379,
        }
    }

    fn scheme(self, tls: bool) -> &'static str {
        match self {
            Kind::Cql => "cql",
            Kind::Postgres => "postgres",
            Kind::Http if tls => "https",
            Kind::Http => "http",
            Kind::Redis if tls => "rediss",
            Kind::Redis => "redis",
        }
    }
}

/// The address of a system under test, such as `cql://h1,h2:9042/keyspace`, `postgres://user:password@host/database`,
/// `https://host/prefix` or `redis://host/0`. Without a scheme it is CQL. Shown, it has no password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// What is spoken there.
    pub kind: Kind,
    /// Names or IP addresses (v6 without brackets) with their ports; at least one.
    pub hosts: Vec<(String, u16)>,
    /// Who logs in.
    pub user: Option<String>,
    /// With which password.
    pub password: Option<String>,
    /// The database, keyspace, number of the database (Redis) or prefix of each target (HTTP), without its first slash. May be
    /// empty.
    pub path: String,
    /// Whether the address asks for TLS.
    pub tls: bool,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let wrong = |why: String| format!("The address {:?} {why}.", hide_password(text));
        let (scheme, rest) = text.split_once("://").unwrap_or(("cql", text));
        let (kind, mut tls) = match scheme {
            "cql" => (Kind::Cql, false),
            "postgres" | "postgresql" => (Kind::Postgres, false),
            "http" => (Kind::Http, false),
            "https" => (Kind::Http, true),
            "redis" => (Kind::Redis, false),
            "rediss" => (Kind::Redis, true),
            other => {
                return Err(wrong(format!(
                    "starts with {other:?}: use cql, postgres, http, https, redis or rediss before the ://"
                )));
            }
        };
        let (rest, options) = rest.split_once('?').map_or((rest, None), |(rest, options)| (rest, Some(options)));
        if let Some(options) = options {
            tls |= tls_option(kind, options).map_err(wrong)?;
        }
        // The password may hold a slash, the path an `@`: the login ends at the last `@` before the path begins.
        let (login, rest) = split_login(rest);
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, password) = login.map_or(Ok((None, None)), parse_login).map_err(wrong)?;
        let hosts = hosts
            .split(',')
            .map(|host| parse_host(host, kind.default_port(tls)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(wrong)?;
        let path = match kind {
            Kind::Http => path.trim_end_matches('/').to_owned(),
            _ => percent_decode(path).ok_or_else(|| wrong("has a % that is not followed by two hex digits".into()))?,
        };
        check_path(kind, &path).map_err(wrong)?;
        Ok(Address { kind, hosts, user, password, path, tls })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.kind.scheme(self.tls))?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        for (index, (host, port)) in self.hosts.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if host.contains(':') {
                write!(f, "{comma}[{host}]:{port}")?;
            } else {
                write!(f, "{comma}{host}:{port}")?;
            }
        }
        if self.path.is_empty() { Ok(()) } else { write!(f, "/{}", self.path) }
    }
}

/// For messages: what was typed, with stars in place of a password.
fn hide_password(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let colon = if scheme.is_empty() { "" } else { "://" };
    match split_login(rest) {
        (Some(login), rest) => match login.split_once(':') {
            Some((user, _)) => format!("{scheme}{colon}{user}:***@{rest}"),
            None => text.to_owned(),
        },
        (None, _) => text.to_owned(),
    }
}

fn split_login(rest: &str) -> (Option<&str>, &str) {
    let authority = rest.find('/').map_or(rest, |slash| &rest[..slash]);
    // With a slash in its password a login seems to be a host with an odd port.
    let has_port = authority.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_ok());
    match authority.rfind('@').or_else(|| rest.rfind('@').filter(|_| !has_port)) {
        Some(at) => (Some(&rest[..at]), &rest[at + 1..]),
        None => (None, rest),
    }
}

fn parse_login(login: &str) -> Result<(Option<String>, Option<String>), String> {
    let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
    let decode =
        |part: &str| percent_decode(part).ok_or_else(|| "has a % in user or password: write it as %25".to_owned());
    let user = decode(user)?;
    let password = password.map(decode).transpose()?;
    Ok(((!user.is_empty()).then_some(user), password))
}

fn parse_host(text: &str, default_port: u16) -> Result<(String, u16), String> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or("has a [ without its ]")?;
        match (after, after.strip_prefix(':')) {
            ("", _) => (host, None),
            (_, Some(port)) => (host, Some(port)),
            _ => return Err(format!("has {after:?} after the ]: only a colon and a port may stand there")),
        }
    } else if text.matches(':').count() > 1 {
        return Err(format!("has the IPv6 address {text:?} without brackets: write [{text}]"));
    } else {
        text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)))
    };
    if host.is_empty() {
        return Err("names no host, or has a comma too many".into());
    }
    if host.contains(char::is_whitespace) {
        return Err(format!("has blanks in the host {host:?}"));
    }
    let port = match port {
        None => default_port,
        Some(port) => match port.parse::<u16>() {
            Ok(port) if port > 0 => port,
            _ => return Err(format!("has the port {port:?}: it is a number from 1 to 65535")),
        },
    };
    Ok((host.to_owned(), port))
}

fn tls_option(kind: Kind, options: &str) -> Result<bool, String> {
    match (kind, options) {
        (Kind::Postgres, "sslmode=disable" | "sslmode=prefer" | "sslmode=allow") => Ok(false),
        (Kind::Postgres, "sslmode=require" | "sslmode=verify-ca" | "sslmode=verify-full") => Ok(true),
        (Kind::Postgres, _) => Err(format!("ends in {options:?}: of such options only sslmode is known")),
        (Kind::Http, _) => Err("has a query: it belongs into the statements".into()),
        _ => Err(format!("ends in {options:?}: options have no place in it")),
    }
}

fn check_path(kind: Kind, path: &str) -> Result<(), String> {
    match kind {
        Kind::Redis if !path.is_empty() && path.parse::<u32>().is_err() => {
            Err(format!("names the database {path:?}: in Redis it is a number"))
        }
        Kind::Cql | Kind::Postgres if path.contains('/') => {
            Err(format!("has more than one part after the host: {path:?}"))
        }
        _ => Ok(()),
    }
}

/// `None` where a `%` stands without two hex digits, or the bytes are no UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?);
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
