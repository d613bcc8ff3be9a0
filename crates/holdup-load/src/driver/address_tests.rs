use super::*;

fn parsed(text: &str) -> Address {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    text.parse::<Address>().expect_err(text)
}

fn hosts(pairs: &[(&str, u16)]) -> Vec<(String, u16)> {
    pairs.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect()
}

#[test]
fn a_bare_host_is_cql() {
    let address = parsed("db1");
    assert_eq!((address.kind, address.hosts), (Kind::Cql, hosts(&[("db1", 9042)])));
    assert_eq!(parsed("db1:19042").hosts, hosts(&[("db1", 19042)]));
    assert_eq!(parsed("db1:1,db2").hosts, hosts(&[("db1", 1), ("db2", 9042)]));
}

#[test]
fn each_scheme_has_its_kind_and_port() {
    for (text, kind, port, tls) in [
        ("cql://h", Kind::Cql, 9042, false),
        ("postgres://h", Kind::Postgres, 5432, false),
        ("postgresql://h", Kind::Postgres, 5432, false),
        ("postgres://h/d?sslmode=require", Kind::Postgres, 5432, true),
        ("http://h", Kind::Http, 80, false),
        ("https://h", Kind::Http, 443, true),
        ("redis://h", Kind::Redis, 6379, false),
        ("rediss://h", Kind::Redis, 6379, true),
    ] {
        let address = parsed(text);
        assert_eq!((address.kind, address.hosts, address.tls), (kind, hosts(&[("h", port)]), tls), "{text}");
    }
}

#[test]
fn a_login_is_decoded_and_its_password_never_shown() {
    let address = parsed("postgres://an%40na:p%3Aw@h:1/shop");
    assert_eq!(address.user.as_deref(), Some("an@na"));
    assert_eq!(address.password.as_deref(), Some("p:w"));
    assert_eq!(address.path, "shop");
    assert_eq!(address.to_string(), "postgres://an@na@h:1/shop");
    let address = parsed("redis://:secret@h/3");
    assert_eq!((address.user, address.password.as_deref()), (None, Some("secret")));
    let error = refused("redis://u:secret@h/three");
    assert!(!error.contains("secret") && error.contains("is a number"), "{error}");
}

#[test]
fn a_slash_in_a_password_does_not_begin_the_path() {
    let address = parsed("postgres://u:a/b@h/d");
    assert_eq!((address.password.as_deref(), address.path.as_str()), (Some("a/b"), "d"));
    assert_eq!(parsed("http://h:80/a@b").path, "a@b");
}

#[test]
fn ipv6_stands_in_brackets() {
    let address = parsed("cql://[::1]:9043,[fe80::2]/ks");
    assert_eq!(address.hosts, hosts(&[("::1", 9043), ("fe80::2", 9042)]));
    assert_eq!(address.to_string(), "cql://[::1]:9043,[fe80::2]:9042/ks");
    assert!(refused("cql://::1").contains("without brackets"));
    assert!(refused("cql://[::1").contains("without its ]"));
}

#[test]
fn a_prefix_of_http_is_kept_as_it_is() {
    assert_eq!(parsed("http://h/api/v%201/").path, "api/v%201");
    assert!(refused("http://h/a?b=c").contains("belongs into the statements"));
}

#[test]
fn what_is_shown_is_read_back_the_same() {
    for text in ["cql://a:1,b:2/ks", "https://h:443/x/y", "rediss://u@h:6379/1", "postgres://h:5432"] {
        assert_eq!(parsed(text).to_string(), text);
    }
}

#[test]
fn mistakes_are_sentences_that_name_them() {
    for (text, part) in [
        ("mysql://h", "\"mysql\""),
        ("cql://", "no host"),
        ("cql://a,,b", "comma too many"),
        ("h:0", "\"0\""),
        ("h:70000", "\"70000\""),
        ("cql://h/a/b", "more than one part"),
        ("cql://h?x=1", "options have no place"),
        ("postgres://h?application_name=x", "only sslmode"),
        ("redis://u:%zz@h", "%25"),
    ] {
        let error = refused(text);
        assert!(error.contains(part) && error.ends_with('.'), "{text}: {error}");
    }
}
