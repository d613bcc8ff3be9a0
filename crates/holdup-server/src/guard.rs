//! Who may ask at all.

use axum::http::{HeaderMap, Request, StatusCode, header};

use crate::token::Token;

/// Names under which this machine knows itself.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// What lies behind the token in the address.
///
/// # Errors
/// The status with which to refuse: the address without the token is an address that does not exist.
pub(crate) fn admit<'r, B>(request: &'r Request<B>, token: &Token) -> Result<&'r str, StatusCode> {
    if !is_of_this_machine(request.headers()) {
        return Err(StatusCode::FORBIDDEN);
    }
    let path = request.uri().path().strip_prefix('/').ok_or(StatusCode::NOT_FOUND)?;
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    if token.is(first) && path.contains('/') { Ok(rest) } else { Err(StatusCode::NOT_FOUND) }
}

/// Whether it was asked for by a name of this machine, and by no other site's page.
pub(crate) fn is_of_this_machine(headers: &HeaderMap) -> bool {
    host(headers).is_some_and(|host| is_of_loopback(host) && is_same_origin(headers, host))
}

/// The one host that is named.
fn host(headers: &HeaderMap) -> Option<&str> {
    let mut named = headers.get_all(header::HOST).iter();
    let host = named.next()?.to_str().ok()?;
    named.next().is_none().then_some(host)
}

/// Whether `host` is this machine by a name that no other can have; with any port, which a tunnel may have changed.
fn is_of_loopback(host: &str) -> bool {
    LOOPBACK.iter().any(|name| {
        host.strip_prefix(name).is_some_and(|rest| match rest.strip_prefix(':') {
            Some(port) => port.parse::<u16>().is_ok(),
            None => rest.is_empty(),
        })
    })
}

/// Whether the page that asks, where the browser says which, is ours.
fn is_same_origin(headers: &HeaderMap, host: &str) -> bool {
    let origins = || headers.get_all(header::ORIGIN).iter();
    let same = origins().all(|o| o.to_str().ok().and_then(|o| o.strip_prefix("http://")) == Some(host));
    let fetched = headers.get("sec-fetch-site").is_none_or(|site| matches!(site.as_bytes(), b"same-origin" | b"none"));
    same && fetched
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(path: &str, headers: &[(&str, &str)], token: &Token) -> Result<String, StatusCode> {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        admit(&request.body(()).unwrap(), token).map(str::to_owned)
    }

    #[test]
    fn only_this_page_gets_in() {
        let token = Token::new().unwrap();
        let inside = format!("/{token}/api/ask");
        let ok = [("host", "127.0.0.1:8000")];
        assert_eq!(asked(&inside, &ok, &token).as_deref(), Ok("api/ask"));
        assert_eq!(
            asked(&inside, &[("host", "localhost:9"), ("origin", "http://localhost:9")], &token).as_deref(),
            Ok("api/ask")
        );
        for outside in ["/", "/api/ask", "/0123456789abcdef0123456789abcdef/api/ask", "//api/ask"] {
            assert_eq!(asked(outside, &ok, &token), Err(StatusCode::NOT_FOUND), "{outside}");
        }
        assert_eq!(asked(&format!("/{token}"), &ok, &token), Err(StatusCode::NOT_FOUND));
        let foreign: [&[(&str, &str)]; 8] = [
            &[],
            &[("host", "evil.example:8000")],
            &[("host", "127.0.0.1.evil.example")],
            &[("host", "localhost:8000"), ("host", "evil.example")],
            &[("host", "localhost:80x")],
            &[("host", "localhost:8000"), ("origin", "http://evil.example")],
            &[("host", "localhost:8000"), ("origin", "null")],
            &[("host", "localhost:8000"), ("sec-fetch-site", "cross-site")],
        ];
        for headers in foreign {
            assert_eq!(asked(&inside, headers, &token), Err(StatusCode::FORBIDDEN), "{headers:?}");
        }
    }
}
