//! Certificates for tests of TLS.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use holdup_testing::Need;
use tempfile::TempDir;

use super::directory;

/// A certificate that nobody signed but itself, for `localhost` and 127.0.0.1.
pub struct Certificate {
    _dir: TempDir,
    /// PEM.
    pub chain: PathBuf,
    /// PEM.
    pub key: PathBuf,
}

/// What [`make`] needs.
pub const NEEDS: &[Need] = &[Need::Program("openssl")];

/// # Errors
/// Why it can't be had here.
pub fn make() -> Result<Certificate, String> {
    let dir = directory("certificate");
    let (chain, key) = (dir.path().join("server.crt"), dir.path().join("server.key"));
    let output = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        // Without this one it would be a certificate of an authority, which may not be a server's.
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&chain)
        .stdin(Stdio::null())
        .output()
        .map_err(|_| "there is no openssl")?;
    if !output.status.success() {
        return Err(format!("openssl failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(Certificate { _dir: dir, chain, key })
}
