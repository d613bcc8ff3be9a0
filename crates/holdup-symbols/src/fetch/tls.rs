//! TLS, with the certificates that this system trusts.

use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

pub(super) type Tls = StreamOwned<ClientConnection, TcpStream>;

/// Where distributions keep the certificates that their users trust.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The handshake itself happens with the first write.
pub(super) fn connect(tcp: TcpStream, host: &str) -> Result<Tls, String> {
    let cannot = |e: &dyn std::fmt::Display| format!("TLS cannot be set up ({e})");
    let name = ServerName::try_from(host.to_owned()).map_err(|e| cannot(&e))?;
    // Named here, since a program with two providers in it has no default one.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = builder.map_err(|e| cannot(&e))?.with_root_certificates(roots()?).with_no_client_auth();
    let client = ClientConnection::new(Arc::new(config), name).map_err(|e| cannot(&e))?;
    Ok(StreamOwned::new(client, tcp))
}

fn roots() -> Result<RootCertStore, String> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let path = named.into_iter().chain(SYSTEM_ROOTS.map(PathBuf::from)).find(|path| path.is_file());
    let path = path.ok_or("this system keeps no list of trusted certificates: name a PEM file in SSL_CERT_FILE")?;
    let certificates = CertificateDer::pem_file_iter(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut store = RootCertStore::empty();
    // One odd certificate among a distribution's hundred is no reason to trust none.
    store.add_parsable_certificates(certificates.filter_map(Result::ok));
    Ok(store)
}
