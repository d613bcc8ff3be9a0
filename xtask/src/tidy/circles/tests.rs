use super::*;

/// The circles of a crate with these files below `src/`; `lib.rs` first.
fn circles(files: &[(&str, &str)], known: &[&Known]) -> (Vec<String>, usize) {
    let read = |file: &Path| -> Result<Option<String>> {
        let text = files.iter().find(|(name, _)| Path::new("src").join(name) == file);
        Ok(text.map(|(_, text)| (*text).to_owned()))
    };
    let modules = source::modules(Path::new("src/lib.rs"), &read).unwrap();
    let (complaints, met) = complaints_of(&modules, known);
    (complaints, met.len())
}

/// The circles of a crate with modules `a` and `b`.
fn of(a: &str, b: &str) -> Vec<String> {
    circles(&[("lib.rs", "mod a;\nmod b;"), ("a.rs", a), ("b.rs", b)], &[]).0
}

/// What an `a` may say to use `f` of `b`.
const USES: &[&str] = &[
    "use crate::b::f;",
    "use crate::{b::{self, f}, a};",
    "use super::b::{g::h, f as other};",
    "use super::b;",
    "use super::{b as c};",
    "use crate::b::*;",
    "pub use self::super::b::f;",
    "fn x() { crate::b::f(); }",
    "fn x() { super::b::f() }",
    "fn x() { use super::b::f; f() }",
    "fn x() { y.map(|_| vec![super::b::f()]); }",
    "type X = Vec<crate::b::T>;",
    "impl From<u8> for crate::b::T { fn from(_: u8) -> Self { Self } }",
    "mod inner { fn x() { super::super::b::f() } }",
    "#[arg(value_parser = crate::b::f)] struct X;",
    "const fn x() {} const X: T = T { x: 1 }; const Y: u8 = crate::b::F;",
    "#![allow(dead_code)]\n//! crate::c\nuse super::b::f;",
];

/// What is no use of `b`.
const NO_USES: &[&str] = &[
    "use other::b::f;",
    "use ::b::f;",
    "// use crate::b::f;\n/// [`crate::b::f`]\nfn x() { \"crate::b::f\"; }",
    "#[cfg(test)]\nmod tests { use crate::b::f; }",
    "#[cfg(all(test, feature = \"x\"))] fn x() { crate::b::f() }",
    "#![cfg(test)] use crate::b::f;",
    "fn x(b: u8) { x.b(); x.b.f; y(b); Y { b } }",
    "fn x<'b>() -> impl Sized + use<'b> { b::f() }",
];

#[test]
fn modules_that_use_each_other_are_found_however_it_is_written() {
    for uses in USES {
        let found = of(uses, "use super::a::x;");
        assert_eq!(found.len(), 1, "{uses}");
        assert!(found[0].contains("a → b: src/a.rs:") && found[0].contains("b → a: src/b.rs:1"), "{}", found[0]);
    }
}

#[test]
fn one_way_is_no_circle_nor_is_what_is_no_use() {
    for uses in USES {
        assert_eq!(of(uses, "use std::fmt; pub fn f() {}"), [""; 0], "{uses}");
    }
    for uses in NO_USES {
        assert_eq!(of(uses, "use super::a::x;"), [""; 0], "{uses}");
    }
}

#[test]
fn the_complaint_names_a_line_for_each_arrow() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "\nuse crate::b::f;"),
        ("b.rs", "\n\nfn f() { crate::c::f() }"),
        ("c.rs", "pub mod d;"),
        ("c/d.rs", "\nfn f() {\n    crate::a::f();\n}"),
    ];
    let (found, _) = circles(&files, &[]);
    let arrows = "\n    a → b: src/a.rs:2 (crate::b::f)\n    b → c: src/b.rs:3 (crate::c::f)\n    c → a: src/c/d.rs:3 (crate::a::f)";
    assert_eq!(found, [arrows]);
}

#[test]
fn a_name_that_a_parent_passes_on_is_the_childs() {
    let files = [("lib.rs", "mod a; mod b; pub use b::T; pub use a::*;"), ("a.rs", "use super::T; pub struct S;")];
    let with = |b: &'static str| circles(&[files[0], files[1], ("b.rs", b)], &[]).0.len();
    assert_eq!(with("pub struct T(crate::S);"), 1);
    assert_eq!(with("pub struct T; macro_rules! m { () => { $crate::S } }"), 1);
    assert_eq!(with("pub struct T;"), 0);
}

#[test]
fn a_module_on_the_way_to_a_name_is_used_too() {
    let c = "pub struct T;";
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::T;"),
        ("b.rs", "pub use crate::c::T;"),
        ("c.rs", c),
    ];
    assert_eq!(circles(&files, &[]).0, [""; 0]);
    let back = [files[0], files[1], ("b.rs", "pub use crate::c::T; use crate::a::x;"), files[3]];
    assert_eq!(circles(&back, &[]).0.len(), 1);
}

#[test]
fn a_child_may_use_data_of_its_parents_file_but_not_what_needs_the_child() {
    let child = |uses: &'static str, lib: &'static str| circles(&[("lib.rs", lib), ("a.rs", uses)], &[]).0.len();
    let data = "mod a; pub struct Data { x: u8 } impl Data { fn new() -> Data { a::make() } }";
    assert_eq!(child("use super::Data;", data), 0);
    assert_eq!(child("fn f() { super::Data::new() }", data), 1);
    assert_eq!(child("use super::*; fn f(d: Data) {}", data), 0);
    assert_eq!(child("use super::Data;", "mod a; pub struct Data { x: a::Part }"), 1);
    assert_eq!(child("use crate::Data;", "mod a; use a::Part; pub struct Data { x: Inner } struct Inner(Part);"), 1);
    assert_eq!(child("fn f() { crate::help() }", "mod a; fn run() { a::f() } fn help() {}"), 0);
    assert_eq!(child("fn f() { crate::help() }", "mod a; fn run() { a::f() } fn help() { run() }"), 1);
}

#[test]
fn a_method_of_self_in_another_file_is_a_use_of_that_file() {
    let lib = ("lib.rs", "mod a; mod b;");
    let a = ("a.rs", "pub struct S; impl S { fn f(&self) { self.g(); } }");
    assert_eq!(circles(&[lib, a, ("b.rs", "use crate::a::S; impl S { pub fn g(&self) {} }")], &[]).0.len(), 1);
    assert_eq!(circles(&[lib, a, ("b.rs", "use crate::a::S; impl S { pub fn h(&self) {} }")], &[]).0.len(), 0);
}

#[test]
fn children_may_be_pages_of_one_type_of_their_parent() {
    let a = ("a.rs", "impl super::S { pub fn f(&self) { self.g() } }");
    let b = ("b.rs", "use super::S; impl S { pub fn g(&self) { x(Self::f) } }");
    assert_eq!(circles(&[("lib.rs", "mod a; mod b; struct S;"), a, b], &[]).0, [""; 0]);
    let by_name = ("a.rs", "impl super::S { pub fn f(&self) { super::S::g(self) } }");
    let other = ("b.rs", "use super::S; impl S { pub fn g(&self) { S::f(self) } }");
    assert_eq!(circles(&[("lib.rs", "mod a; mod b; struct S;"), by_name, other], &[]).0.len(), 1);
}

#[test]
fn macros_are_used_without_a_path() {
    let lib = ("lib.rs", "#[macro_use] mod a; mod b;");
    let a = |more: &str| format!("macro_rules! made {{ () => {{}} }} {more}");
    assert_eq!(circles(&[lib, ("a.rs", &a("use crate::b::f;")), ("b.rs", "made!();")], &[]).0.len(), 1);
    assert_eq!(circles(&[lib, ("a.rs", &a("")), ("b.rs", "made!();")], &[]).0.len(), 0);
}

#[test]
fn a_known_circle_is_left_out_and_must_be_there() {
    let known = Known { of: "", arrow: ("b", "a"), why: "it waits" };
    let lib = ("lib.rs", "mod a; mod b;");
    let two = [lib, ("a.rs", "use crate::b::f;"), ("b.rs", "use crate::a::f;")];
    assert_eq!(circles(&two, &[&known]), (Vec::new(), 1));
    let one = [lib, ("a.rs", ""), ("b.rs", "use crate::a::f;")];
    assert_eq!(circles(&one, &[&known]), (Vec::new(), 0));
}

#[test]
fn a_file_that_is_missing_is_said() {
    let read = |_: &Path| -> Result<Option<String>> { Ok(Some("mod gone;".to_owned())) };
    let only = |file: &Path| if file.ends_with("lib.rs") { read(file) } else { Ok(None) };
    let error = source::modules(Path::new("src/lib.rs"), &only).err().unwrap().to_string();
    assert_eq!(error, "gone has no file");
}
