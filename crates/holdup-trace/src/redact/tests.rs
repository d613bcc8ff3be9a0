use super::*;

fn redactor() -> Redactor {
    Redactor { host: "db-7".to_owned(), ..Redactor::default() }
}

#[test]
fn folders_become_numbers_and_names_stay() {
    let mut r = redactor();
    assert_eq!(r.path("/home/ann/proj/cache.c"), "d1/cache.c");
    assert_eq!(r.path("/home/ann/proj/other.c"), "d1/other.c");
    assert_eq!(r.path("../src/cache.c"), "d2/cache.c");
    assert_eq!(r.path("C:\\Users\\ann\\a.dll"), "d3/a.dll");
    for same in ["[kernel]", "[vdso]", "//anon", "/init", "libc.so.6", ""] {
        assert_eq!(r.path(same), same);
    }
    // By this the analysis knows whose code it is.
    assert_eq!(r.path("/home/ann/.cargo/registry/src/index/tokio-1/x.rs"), "d4/.cargo/registry/x.rs");
    assert_eq!(r.path("/usr/include/c++/14/thread"), "d5/include/c++/thread");
}

#[test]
fn groups_keep_what_is_above_them() {
    let mut r = redactor();
    let [a, b] = ["/user.slice/user-1000.slice", "/user.slice/user-1000.slice/ann.scope"].map(|g| r.group(g));
    assert_eq!((a.as_str(), b.as_str()), ("/g1/g2", "/g1/g2/g3"));
    assert_eq!(r.group("/"), "/");
}

#[test]
fn paths_in_text_go_and_all_else_stays() {
    let mut r = redactor();
    for same in
        ["kworker/u8:2-events", "jbd2/vda-8", "a / b", "operator/", "std::ops::Div::div", "1/2", "runtime/debug.Stack"]
    {
        assert_eq!(r.text(same), same);
    }
    assert_eq!(r.text("no names for /home/ann/x/y.so: gone; see /opt/z/a"), "no names for d1/y.so: gone; see d2/a");
    assert_eq!(r.text("LazyCompile:~foo file:/srv/ann/app.js:12"), "LazyCompile:~foo file:d3/app.js:12");
    assert_eq!(r.text("--config=/etc/ann/a.conf"), "--config=d4/a.conf");
    assert_eq!(r.text("~/ann/x"), "d5/x");
    assert_eq!(r.text("D:\\ann\\x.exe runs"), "d6/x.exe runs");
}

#[test]
fn the_host_is_a_word() {
    let r = redactor();
    assert_eq!(r.without_host("at db-7: db-70, xdb-7, db-7"), "at host: db-70, xdb-7, host");
}
