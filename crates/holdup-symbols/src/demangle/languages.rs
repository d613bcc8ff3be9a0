//! Names of compilers that write what a linker does not take in codes of their own, where no library reads them: GHC, OCaml, Fortran's
//! modules, and D's plain names.
//!
//! What a code does not begin, or does not end as its compiler would, is no such name, and stays as it is.

/// The readable form; `None` where it is none of these. O(bytes), and no longer than the name but for a few bytes.
pub(super) fn demangle(name: &str) -> Option<String> {
    haskell(name).or_else(|| ocaml(name)).or_else(|| fortran(name)).or_else(|| d(name))
}

/// `base_GHCziBase_zpzp_info` → `base:GHC.Base.++_info`: package, module and name, z-encoded each; a program's own need no package. `_info`
/// stays, as it tells Haskell's code from others'.
///
/// The codes are of "The Z-encoding" in GHC's commentary.
fn haskell(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.strip_suffix("_info")?.split('_').collect();
    let (package, [module, function]) = match parts[..] {
        [module, function] => (None, [module, function]),
        [package, module, function] => (Some(package), [module, function]),
        _ => return None,
    };
    if !module.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let plain = [package.unwrap_or_default(), module, function];
    let [package, module, function] = plain.map(unz);
    let (package, module, function) = (package?, module?, function?);
    // Others have such names without a code, too: `SSL_session_info`.
    let is_coded = module == "Main" || plain != [&package, &module, &function];
    let is_module = module.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '\''));
    if !is_coded || !is_module || !is_variable(&function) {
        return None;
    }
    let package = if package.is_empty() { package } else { package + ":" };
    Some(format!("{package}{module}.{function}_info"))
}

/// Whether it is a word, with what the compiler puts before and into it, or an operator.
fn is_variable(name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'' | '$' | '#' | '.');
    !name.is_empty() && (name.chars().all(is_word) || !name.chars().any(char::is_alphanumeric))
}

/// Undoes z-encoding; `None` if something in it is no code.
fn unz(text: &str) -> Option<String> {
    let (mut out, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = chars.next() {
        let plain = match c {
            'z' => match chars.next()? {
                'a' => '&',
                'b' => '|',
                'c' => '^',
                'd' => '$',
                'e' => '=',
                'g' => '>',
                'h' => '#',
                'i' => '.',
                'l' => '<',
                'm' => '-',
                'n' => '!',
                'p' => '+',
                'q' => '\'',
                'r' => '\\',
                's' => '/',
                't' => '*',
                'u' => '_',
                'v' => '%',
                'z' => 'z',
                digit => coded(digit, &mut chars)?,
            },
            'Z' => match chars.next()? {
                'L' => '(',
                'R' => ')',
                'M' => '[',
                'N' => ']',
                'C' => ':',
                'Z' => 'Z',
                digit => {
                    tuple(digit, &mut chars, &mut out)?;
                    continue;
                }
            },
            other => other,
        };
        out.push(plain);
    }
    Some(out)
}

/// `z3bbU`: a character by its number in hexadecimal digits, of which the first is a decimal one.
fn coded(first: char, rest: &mut std::str::Chars) -> Option<char> {
    let mut code = first.to_digit(10)?;
    loop {
        match rest.next()? {
            'U' => return char::from_u32(code).filter(|c| !c.is_control()),
            digit => code = code.checked_mul(16)?.checked_add(digit.to_digit(16)?)?,
        }
    }
}

/// `Z2T` is a pair, `Z2H` an unboxed one.
fn tuple(first: char, rest: &mut std::str::Chars, out: &mut String) -> Option<()> {
    let mut count = first.to_digit(10)?;
    loop {
        let (open, close) = match rest.next()? {
            'T' => ("(", ")"),
            'H' => ("(#", "#)"),
            digit => {
                count = count.checked_mul(10)?.checked_add(digit.to_digit(10)?).filter(|n| *n < 100)?;
                continue;
            }
        };
        out.push_str(open);
        (1..count).for_each(|_| out.push(','));
        out.push_str(close);
        return Some(());
    }
}

/// `camlStdlib__List__map_271` → `Stdlib.List.map`: since OCaml 5 with a dot before the function's name. A `$` begins the two digits of
/// another character. What has no name keeps its number: `Main.fun_312`.
fn ocaml(name: &str) -> Option<String> {
    let rest = name.strip_prefix("caml").filter(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))?;
    let (stem, number) = rest.rsplit_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    if !is_number || !(stem.contains("__") || stem.contains('.')) {
        return None;
    }
    let mut out = String::with_capacity(rest.len());
    let mut pieces = stem.split('$');
    out.push_str(pieces.next()?);
    for piece in pieces {
        let code = piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok())?;
        out.push(char::from(code).is_ascii_graphic().then_some(char::from(code))?);
        out.push_str(&piece[2..]);
    }
    let out = out.replace("__", ".");
    Some(if out.ends_with(".fun") { format!("{out}_{number}") } else { out })
}

/// `__ocean_MOD_step` → `ocean::step`.
fn fortran(name: &str) -> Option<String> {
    let (module, function) = name.strip_prefix("__")?.split_once("_MOD_")?;
    let is_name = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    (is_name(module) && is_name(function)).then(|| format!("{module}::{function}"))
}

/// `_D3app5Stock7reserveMFiZv` → `app.Stock.reserve`: names with their lengths before them; what has templates or repeats stays.
fn d(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("_D")?;
    let mut parts = Vec::new();
    while let Some(end) = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0) {
        let length: usize = rest[..end].parse().ok()?;
        let part = rest.get(end..end.checked_add(length)?).filter(|part| is_identifier(part))?;
        parts.push(part);
        rest = &rest[end + length..];
    }
    let is_function = rest.starts_with(['F', 'M']) && rest.contains('Z');
    (parts.len() > 1 && is_function).then(|| parts.join("."))
}

fn is_identifier(part: &str) -> bool {
    let first = part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && !part.starts_with("__T") && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_their_authors_wrote_them() {
        for (raw, wanted) in [
            ("Main_zdwzdsgo16_info", "Main.$w$sgo16_info"),
            ("base_GHCziBase_zpzp_info", "base:GHC.Base.++_info"),
            ("appzm1zi0_Stock_reservezq_info", "app-1.0:Stock.reserve'_info"),
            ("Main_z3bbU_info", "Main.λ_info"),
            ("ghczmprim_GHCziTuple_Z2T_info", "ghc-prim:GHC.Tuple.(,)_info"),
            ("camlStdlib__List__map_271", "Stdlib.List.map"),
            ("camlDune__exe__Main.reserve_12", "Dune.exe.Main.reserve"),
            ("camlStdlib__$5e_130", "Stdlib.^"),
            ("camlMain__fun_312", "Main.fun_312"),
            ("__ocean_MOD_step", "ocean::step"),
            ("_D3app5Stock7reserveMFiZv", "app.Stock.reserve"),
        ] {
            assert_eq!(demangle(raw).as_deref(), Some(wanted), "{raw}");
        }
    }

    #[test]
    fn what_only_looks_like_one_stays() {
        for raw in [
            "get_user_info",
            "resize_info",
            "Get_lazy_info",
            "SSL_session_info",
            "My_size_info",
            "Main__info",
            "Main_z_info",
            "Main_z7U_info",
            "Main_zffffffffffU_info",
            "a_b_C_d_info",
            "caml_thread_yield",
            "camlMain_12",
            "camlMain__x",
            "camlMain__$0a_1",
            "camlMain__$ä_1",
            "__MOD_",
            "__x_MOD_",
            "_D",
            "_Dmain",
            "_D3app4mä",
            "_D9app",
            "_D99999999999999999999a",
            "_D3app5valuei",
            "_D3app3__T3fooMFZv",
        ] {
            assert_eq!(demangle(raw), None, "{raw}");
        }
    }
}
