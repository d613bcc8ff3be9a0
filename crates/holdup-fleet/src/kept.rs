//! A store in front of another one that asks for each small file once.
//!
//! A reader of Parquet asks for a file's end, where its columns are listed, and then for the columns. The files of a data set are so
//! small that their end is all of them: what comes with the first answer needn't be asked for again, which in a folder is two threads'
//! hand-over for each file, and in an object store half of the requests.

use std::collections::{HashMap, VecDeque};
use std::fmt::{Display, Formatter};
use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// As much is kept of what was read last, in bytes.
const AT_MOST: usize = 16 << 20;

/// Keeps the last files that were read whole.
#[derive(Debug)]
pub(crate) struct Kept {
    inner: Arc<dyn ObjectStore>,
    files: Mutex<Files>,
}

impl Kept {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Kept {
        Kept { inner, files: Mutex::default() }
    }

    fn find(&self, path: &Path) -> Option<Bytes> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).whole.get(path).cloned()
    }

    fn keep(&self, path: &Path, bytes: &Bytes) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).keep(path, bytes);
    }
}

#[derive(Debug, Default)]
struct Files {
    whole: HashMap<Path, Bytes>,
    /// In the order in which they came.
    order: VecDeque<Path>,
    bytes: usize,
}

impl Files {
    fn keep(&mut self, path: &Path, bytes: &Bytes) {
        if bytes.len() > AT_MOST {
            return;
        }
        self.bytes += bytes.len();
        match self.whole.insert(path.clone(), bytes.clone()) {
            Some(before) => self.bytes -= before.len(),
            None => self.order.push_back(path.clone()),
        }
        while self.bytes > AT_MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.whole.remove(&oldest).map_or(0, |b| b.len());
        }
    }
}

impl Display for Kept {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.inner)
    }
}

/// All bytes of an answer that is a whole file. One of this machine is read here: to hand that to a thread of its own costs more than
/// the reading.
async fn bytes_of(answer: GetResult) -> Result<Bytes> {
    let GetResult { payload: GetResultPayload::File(file, path), meta, .. } = answer else {
        return answer.bytes().await;
    };
    let mut bytes = Vec::new();
    match file.take(meta.size).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes.into()),
        Err(e) => {
            let source = format!("{}: {e}", path.display()).into();
            Err(object_store::Error::Generic { store: "folder", source })
        }
    }
}

#[async_trait]
impl ObjectStore for Kept {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let is_head = options.head;
        let answer = self.inner.get_opts(location, options).await?;
        if is_head || answer.range != (0..answer.meta.size) || answer.meta.size > AT_MOST as u64 {
            return Ok(answer);
        }
        let (meta, range, attributes) = (answer.meta.clone(), answer.range.clone(), answer.attributes.clone());
        let bytes = bytes_of(answer).await?;
        self.keep(location, &bytes);
        let payload = GetResultPayload::Stream(futures_util::stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult { payload, meta, range, attributes })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some(bytes) = self.find(location) else { return self.inner.get_ranges(location, ranges).await };
        let part = |r: &Range<u64>| {
            (r.start <= r.end && r.end <= bytes.len() as u64).then(|| bytes.slice(r.start as usize..r.end as usize))
        };
        match ranges.iter().map(part).collect::<Option<Vec<_>>>() {
            Some(parts) => Ok(parts),
            None => self.inner.get_ranges(location, ranges).await,
        }
    }

    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use object_store::{GetRange, ObjectStoreExt};

    use super::*;

    #[test]
    fn what_came_whole_is_not_asked_for_again() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(asked_once());
    }

    async fn asked_once() {
        let (store, small) = (Arc::new(InMemory::new()), Path::from("small"));
        let kept = Kept::new(store.clone());
        store.put(&small, PutPayload::from_static(b"0123456789")).await.unwrap();
        let end = GetOptions { range: Some(GetRange::Suffix(4)), ..GetOptions::default() };
        let answer = kept.get_opts(&small, end).await.unwrap();
        assert_eq!(answer.bytes().await.unwrap(), "6789");
        assert!(kept.find(&small).is_none(), "a part is not the file");

        assert_eq!(kept.get_range(&small, 0..20).await.unwrap(), "0123456789");
        store.delete(&small).await.unwrap();
        assert_eq!(kept.get_ranges(&small, &[2..4, 9..10]).await.unwrap(), ["23", "9"]);
        assert!(
            kept.get_ranges(&small, std::slice::from_ref(&(8..11))).await.is_err(),
            "beyond its end it is the store's to say what is wrong"
        );
    }

    #[test]
    fn the_oldest_make_room() {
        let mut files = Files::default();
        for name in 0..5 {
            files.keep(&Path::from(name.to_string()), &Bytes::from(vec![0; AT_MOST / 3]));
        }
        let mut left: Vec<_> = files.whole.keys().map(Path::as_ref).collect();
        left.sort_unstable();
        assert_eq!((left.as_slice(), files.order.len()), (&["2", "3", "4"][..], 3));
        assert!(files.bytes <= AT_MOST);
        files.keep(&Path::from("4"), &Bytes::from_static(b"another"));
        assert_eq!(
            files.bytes,
            files.whole.values().map(Bytes::len).sum::<usize>(),
            "what was replaced is not counted"
        );
    }
}
