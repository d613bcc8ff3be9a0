//! Where a data set is: a folder, or a place in an object store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ObjectStore, RetryConfig};
use url::Url;

use crate::{Error, Result};

/// How often a store is asked again at once: who has patience asks again later.
fn hasty() -> RetryConfig {
    RetryConfig { max_retries: 2, retry_timeout: Duration::from_secs(10), ..RetryConfig::default() }
}

/// Where a data set is.
#[derive(Debug, Clone)]
pub struct Place {
    /// What the user calls it.
    pub name: String,
    pub(crate) store: Arc<dyn ObjectStore>,
    /// The data set's keys begin with it.
    pub(crate) below: Key,
}

impl Place {
    /// `s3://BUCKET/PATH`, with the credentials, region and endpoint of the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`,
    /// …); anything without `://` is a folder that exists.
    ///
    /// # Errors
    /// A sentence: the folder is not there, or no store is known by such an address.
    pub fn find(name: &str) -> Result<Place> {
        if !name.contains("://") {
            return Place::folder(Path::new(name));
        }
        let wrong = |why: &dyn std::fmt::Display| Error::Input(format!("{name}: {why}; s3://BUCKET/PATH is expected"));
        let url = Url::parse(name).map_err(|e| wrong(&e))?;
        let bucket =
            url.host_str().filter(|_| url.scheme() == "s3").ok_or_else(|| wrong(&"it is no store that is known"))?;
        let store =
            AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(hasty()).build().map_err(|e| wrong(&e))?;
        let below = Key::from_url_path(url.path()).map_err(|e| wrong(&e))?;
        Ok(Place { name: name.to_owned(), store: Arc::new(store), below })
    }

    fn folder(path: &Path) -> Result<Place> {
        let name = path.display().to_string();
        let whole =
            path.canonicalize().map_err(|e| Error::Input(format!("{name}: {e}; a data set's folder is expected")))?;
        if !whole.is_dir() {
            return Err(Error::Input(format!(
                "{name} is no folder; `holdup export --format parquet --dataset` makes data sets"
            )));
        }
        let below = Key::from_absolute_path(&whole).map_err(|e| Error::Input(format!("{name}: {e}")))?;
        Ok(Place { name, store: Arc::new(LocalFileSystem::new()), below })
    }

    /// The store's key of a data set's key.
    pub(crate) fn key(&self, key: &str) -> Key {
        key.split('/').fold(self.below.clone(), |at, part| at.join(part))
    }
}
