//! The page, as it was built from `ui/`.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};

/// What the page may load: what comes from here, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
    font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Sent with every answer.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // The address holds the token.
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The page's files as text, for a document that holds them all.
pub struct Files {
    /// `index.html`
    pub html: &'static str,
    /// `app.js`
    pub script: &'static str,
    /// `app.css`
    pub style: &'static str,
}

/// The page as it was built.
pub const PAGE: Files = Files {
    html: include_str!("../dist/index.html"),
    script: include_str!("../dist/app.js"),
    style: include_str!("../dist/app.css"),
};

/// The files by their addresses behind the token.
const FILES: [(&str, &str, &[u8]); 3] = [
    ("", "text/html; charset=utf-8", PAGE.html.as_bytes()),
    ("app.js", "text/javascript; charset=utf-8", PAGE.script.as_bytes()),
    ("app.css", "text/css; charset=utf-8", PAGE.style.as_bytes()),
];

/// The file of the page at this address.
pub(crate) fn file(path: &str) -> Option<Response<Body>> {
    let (_, content, bytes) = FILES.iter().find(|(name, ..)| *name == path)?;
    Some(answer(StatusCode::OK, content, Body::from(*bytes)))
}

/// An answer with all headers.
pub(crate) fn answer(status: StatusCode, content: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A refusal in words.
pub(crate) fn refuse(status: StatusCode) -> Response<Body> {
    let why = status.canonical_reason().unwrap_or("refused");
    answer(status, "text/plain; charset=utf-8", Body::from(format!("{why}\n")))
}
