//! Addresses of servers.

/// A parsed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub tls: bool,
    pub host: String,
    pub port: u16,
    /// From the first slash on, with the query.
    pub path: String,
}

impl Url {
    /// `http://host:8080/path`; the error is a sentence.
    pub fn parse(text: &str) -> Result<Url, String> {
        let bad = |why: &str| format!("{text:?} is not an address that can be asked: {why}");
        let (scheme, rest) = text.split_once("://").ok_or_else(|| bad("write http://HOST/ or https://HOST/"))?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(bad("only http and https are known")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(bad("names and passwords are not sent"));
        }
        if !path.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(bad("it has characters that would have to be escaped"));
        }
        let (host, port) = match authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((host, port)) => (host, port.parse().map_err(|_| bad("its port is not a number below 65536"))?),
            None => (authority, if tls { 443 } else { 80 }),
        };
        let inside = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
        let fine = inside.map_or_else(
            || host.bytes().all(allowed) && !host.is_empty(),
            |ip| ip.bytes().all(|c| c.is_ascii_hexdigit() || matches!(c, b':' | b'.')) && !ip.is_empty(),
        );
        if !fine {
            return Err(bad("it has no host"));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Url { tls, host: inside.unwrap_or(host).to_owned(), port, path: format!("{slash}{path}") })
    }

    /// Where a redirection leads.
    pub fn join(&self, location: &str) -> Result<Url, String> {
        if location.contains("://") {
            return Url::parse(location);
        }
        if let Some(rest) = location.strip_prefix("//") {
            return Url::parse(&format!("{}://{rest}", if self.tls { "https" } else { "http" }));
        }
        let folder =
            self.path.split('?').next().and_then(|path| path.rsplit_once('/')).map_or("", |(folder, _)| folder);
        let path = if location.starts_with('/') { location.to_owned() } else { format!("{folder}/{location}") };
        if !path.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(format!("it leads to {location:?}, which is not an address"));
        }
        Ok(Url { path, ..self.clone() })
    }

    /// The host, and the port where it is not the usual one: what a request names.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == if self.tls { 443 } else { 80 } { host } else { format!("{host}:{}", self.port) }
    }
}

/// One part of a path, escaped.
pub(super) fn escaped(part: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'~' | b'+');
    part.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let url = |tls, host: &str, port, path: &str| Url { tls, host: host.into(), port, path: path.into() };
        let cases = [
            ("http://a", url(false, "a", 80, "/")),
            ("HTTPS://a.b-c/x/y?z=1#f", url(true, "a.b-c", 443, "/x/y?z=1")),
            ("http://a:81?q", url(false, "a", 81, "/?q")),
            ("http://[::1]:8080/x", url(false, "::1", 8080, "/x")),
            ("https://[fe80::1]/", url(true, "fe80::1", 443, "/")),
        ];
        for (text, expected) in cases {
            assert_eq!(Url::parse(text), Ok(expected), "{text}");
        }
        assert_eq!(url(false, "::1", 8080, "/").authority(), "[::1]:8080");
        assert_eq!(url(true, "a", 443, "/").authority(), "a");
        for bad in [
            "a",
            "ftp://a",
            "http://",
            "http://:80",
            "http://a:b/",
            "http://u:p@a/",
            "http://a/\r\nX: y",
            "http://a b/",
            "http://[::1",
            "http://[]/",
        ] {
            assert!(Url::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn redirections_are_followed_from_where_they_are() {
        let from = Url::parse("http://a:81/x/y?z").unwrap();
        let to = |location: &str| from.join(location).map(|u| format!("{}|{}|{}", u.tls, u.authority(), u.path));
        assert_eq!(to("/b").unwrap(), "false|a:81|/b");
        assert_eq!(to("b").unwrap(), "false|a:81|/x/b");
        assert_eq!(to("//c/d").unwrap(), "false|c|/d");
        assert_eq!(to("https://c/d").unwrap(), "true|c|/d");
        assert!(to("file:///etc/passwd").is_err() && to("/a\r\nHost: b").is_err());
        assert_eq!(escaped("My App+1.pdb"), "My%20App+1.pdb");
        assert_eq!(escaped("a/../b"), "a%2F..%2Fb");
    }
}
