//! From arguments to a script and a server.

use std::ops::Range;
use std::path::{Path, PathBuf};

use holdup_load::driver::{Address, ConnectOptions, TlsOptions};
use holdup_load::harness::Plan;
use holdup_load::script::{Limits, Source};
use holdup_load::session::Patience;

use crate::cli::{Connection, ScriptLimits, Target};
use crate::commands::Usage;

/// The script and its parameters.
pub fn source(args: &Target) -> anyhow::Result<Source> {
    let params = args.params.iter().map(|param| {
        let bad =
            || Usage(format!("-P {param}: write it as NAME=VALUE; `holdup load list WORKLOAD` names the parameters"));
        let (name, value) = param.split_once('=').ok_or_else(bad)?;
        Ok((name.to_owned(), value.to_owned()))
    });
    let params = params.collect::<Result<_, Usage>>()?;
    Ok(Source { path: found(&args.workload), params, limits: limits(&args.limits) })
}

/// Where a workload is: here, or in a folder that HOLDUP_WORKLOAD_PATH names. If nowhere, as it was written.
pub fn found(path: &Path) -> PathBuf {
    let folders = std::env::var_os("HOLDUP_WORKLOAD_PATH").unwrap_or_default();
    if path.is_absolute() || path.exists() {
        return path.to_owned();
    }
    let elsewhere = std::env::split_paths(&folders).filter(|folder| folder.is_absolute());
    elsewhere.map(|folder| folder.join(path)).find(|path| path.is_file()).unwrap_or_else(|| path.to_owned())
}

/// The numbers that cycles have.
pub fn cycles(start: u64, end: u64) -> Result<Range<u64>, Usage> {
    // A script's numbers are signed.
    if start < end && end <= i64::MAX.cast_unsigned() {
        Ok(start..end)
    } else {
        Err(Usage(format!("--start-cycle {start} --end-cycle {end}: the end should be above the start, and below 2⁶³")))
    }
}

/// A report in a folder gets a name: workload, functions, rate, and seconds since 1970.
pub fn report_path(path: &Path, plan: &Plan) -> PathBuf {
    if !path.is_dir() {
        return path.to_owned();
    }
    let workload = plan.source.path.file_stem().map_or("workload".into(), std::ffi::OsStr::to_string_lossy);
    let rate = plan.rate.map_or(String::new(), |rate| format!(".r{rate}"));
    let since = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    let name = format!("{workload}.{}{rate}.{since}.json", plan.mix.names().join("+"));
    // Functions are whatever the command line says.
    path.join(name.replace(|c: char| !(c.is_alphanumeric() || "._+-".contains(c)), "_"))
}

/// What the script may use.
pub fn limits(args: &ScriptLimits) -> Limits {
    Limits { time: args.script_time, memory: args.script_memory, any_file: args.allow_fs }
}

/// Timeouts and retries.
pub fn patience(args: &Target) -> Patience {
    Patience {
        timeout: args.timeout,
        retries: args.retries,
        pause: args.retry_pause.first,
        longest_pause: args.retry_pause.most,
        after_all_errors: args.retry_on_all_errors,
    }
}

/// What was asked of TLS: any of its options asks for it, whatever the address says.
fn tls_options(given: &Connection) -> Option<TlsOptions> {
    let options = TlsOptions {
        ca: given.tls_ca.clone(),
        certificate: given.tls_cert.clone(),
        key: given.tls_key.clone(),
        insecure: given.tls_insecure,
    };
    let asked = given.tls || given.tls_insecure || options.ca.is_some() || options.certificate.is_some();
    asked.then_some(options)
}

/// How to connect, if there is a server.
pub fn connect_options(args: &Target) -> anyhow::Result<Option<ConnectOptions>> {
    let Some(address) = &args.address else { return Ok(None) };
    let address: Address = address.parse().map_err(|e| Usage(format!("{address}: {e}")))?;
    let mut options = ConnectOptions::new(address);
    let given = &args.connection;
    options.connections = given.connections;
    options.connect_timeout = given.connect_timeout;
    options.user.clone_from(&given.user);
    // Not an argument: those of a program can be read by everybody on the machine.
    options.password = std::env::var("HOLDUP_PASSWORD").ok();
    options.consistency.clone_from(&given.consistency);
    options.page_size = given.page_size;
    options.datacenter.clone_from(&given.datacenter);
    options.tls = tls_options(given);
    Ok(Some(options))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        target: Target,
    }

    fn tls(args: &[&str]) -> Option<TlsOptions> {
        let line = Line::try_parse_from(["test", "w.rn", "rediss://h"].iter().chain(args)).expect("it parses");
        connect_options(&line.target).expect("options").expect("an address").tls
    }

    #[test]
    fn any_option_of_tls_asks_for_it() {
        assert!(tls(&[]).is_none());
        assert!(tls(&["--tls"]).is_some_and(|o| !o.insecure && o.ca.is_none()));
        assert!(tls(&["--tls-insecure"]).is_some_and(|o| o.insecure));
        assert!(tls(&["--tls-ca", "a.pem"]).is_some_and(|o| o.ca.is_some()));
        let client =
            tls(&["--tls-cert", "c.pem", "--tls-key", "k.pem"]).expect("a client's certificate is not left out");
        assert!(client.certificate.is_some() && client.key.is_some());
    }
}
