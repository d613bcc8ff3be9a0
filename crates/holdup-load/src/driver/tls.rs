//! TLS for all drivers: one configuration, made from the options.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::{ConnectOptions, DriverError, TlsOptions};

/// Where distributions keep the certificates that their users trust.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The configuration, if the address or the options ask for TLS.
pub(super) fn wanted(options: &ConnectOptions) -> Result<Option<Arc<ClientConfig>>, DriverError> {
    match &options.tls {
        Some(tls) => client_config(tls).map(Some),
        None if options.address.tls => client_config(&TlsOptions::default()).map(Some),
        None => Ok(None),
    }
}

fn client_config(options: &TlsOptions) -> Result<Arc<ClientConfig>, DriverError> {
    // Named here, since a program with two providers in it has no default one.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| DriverError::fatal(format!("TLS can't be set up: {error}.")))?;
    let builder = if options.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAny(provider.signature_verification_algorithms)))
    } else {
        builder.with_root_certificates(roots(options.ca.as_deref())?)
    };
    let config = match (&options.certificate, &options.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?).map_err(|error| {
                DriverError::fatal(format!(
                    "The certificate {} and the key {} can't be used together: {error}.",
                    certificate.display(),
                    key.display()
                ))
            })?
        }
        (Some(_), None) => return Err(DriverError::fatal("A certificate for TLS needs its key: give both.")),
        (None, Some(_)) => return Err(DriverError::fatal("A key for TLS needs its certificate: give both.")),
    };
    Ok(Arc::new(config))
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, DriverError> {
    let mut store = RootCertStore::empty();
    if let Some(path) = ca {
        for certificate in certificates(path)? {
            store.add(certificate).map_err(|error| {
                DriverError::fatal(format!("A certificate of {} can't be trusted: {error}.", path.display()))
            })?;
        }
        return Ok(store);
    }
    let found = std::env::var_os("SSL_CERT_FILE")
        .map(PathBuf::from)
        .into_iter()
        .chain(SYSTEM_ROOTS.map(PathBuf::from))
        .find(|path| path.is_file());
    let Some(path) = found else {
        return Err(DriverError::fatal(
            "This system keeps no list of trusted certificates where one is usually kept: name a PEM file to trust.",
        ));
    };
    // One odd certificate among a distribution's hundred is no reason to trust none.
    store.add_parsable_certificates(certificates(&path)?);
    Ok(store)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, DriverError> {
    let unreadable = |error| DriverError::fatal(format!("The certificates {} can't be read: {error}.", path.display()));
    let all: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)?;
    if all.is_empty() {
        return Err(DriverError::fatal(format!("There is no PEM certificate in {}.", path.display())));
    }
    Ok(all)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, DriverError> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| DriverError::fatal(format!("The key {} can't be read: {error}.", path.display())))
}

/// Trusts every certificate, yet still has the server prove that it holds the certificate's key.
#[derive(Debug)]
struct AcceptAny(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
