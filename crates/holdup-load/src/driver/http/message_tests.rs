use http_body_util::BodyExt;

use super::*;

/// The first line, the headers and the body.
type Sent = (String, Vec<(String, String)>, String);

fn request(text: &str, args: &Args) -> Result<Sent, String> {
    let request = Message::parse(text).and_then(|message| message.request("/api", args)).map_err(|e| e.message)?;
    let first = format!("{} {}", request.method(), request.uri());
    let headers = request
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()))
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let body = runtime.block_on(request.into_body().collect()).expect("a body").to_bytes();
    Ok((first, headers, String::from_utf8(body.to_vec()).expect("text")))
}

#[test]
fn a_line_alone_is_a_request() {
    let (first, headers, body) = request("GET /users/{}?q={}", &args([7.into(), "a b&ü".into()])).unwrap();
    assert_eq!((first.as_str(), headers.len(), body.as_str()), ("GET /api/users/7?q=a%20b%26%C3%BC", 0, ""));
    let (first, ..) = request("  DELETE /x HTTP/1.1\n", &Args::None).unwrap();
    assert_eq!(first, "DELETE /api/x");
}

#[test]
fn headers_and_body_take_values_as_they_are() {
    let text = "POST /a\r\n  X-Id: {id}\r\nContent-Type: application/json\r\n\r\n{{\"id\": {id}, \"tags\": {tags}}}";
    let tags = Value::List(vec![Value::Text("a\"b".into()), Value::Null, Value::Float(0.5)]);
    let args = Args::Named(vec![("id".into(), 7.into()), ("tags".into(), tags)]);
    let (_, headers, body) = request(text, &args).unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(headers, [pair("x-id", "7"), pair("content-type", "application/json")]);
    assert_eq!(body, r#"{"id": 7, "tags": ["a\"b",null,0.5]}"#);
}

#[test]
fn a_value_can_t_add_a_header() {
    let error = request("GET /\nX: {}", &args(["a\r\nY: b".into()])).unwrap_err();
    assert!(error.contains("x can't be sent"), "{error}");
}

#[test]
fn mistakes_name_the_request() {
    for (text, part) in [
        ("GET", "not a method and a target"),
        ("GET users", "starts with a slash"),
        ("GET /a b", "no blanks"),
        ("GET /{", "belongs to no placeholder"),
        ("GET /\nnonsense", "without a colon"),
        ("GET /{}{a}", "use one kind"),
        ("G T / /", "starts with a slash"),
    ] {
        let error = request(text, &Args::None).unwrap_err();
        assert!(error.contains(part) && error.starts_with("The request"), "{text}: {error}");
    }
}

#[test]
fn a_login_is_base64() {
    // The example of RFC 7617.
    assert_eq!(basic("Aladdin", "open sesame").unwrap(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

fn args<const N: usize>(values: [Value; N]) -> Args {
    Args::Positional(values.into())
}

impl From<i64> for Value {
    fn from(int: i64) -> Value {
        Value::Int(int)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}
