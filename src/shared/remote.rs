//! The side of the store: objects below a prefix, with a limit for time and size at every request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{
    Error, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, RetryConfig, UpdateVersion,
};
use tokio::time::timeout;

use crate::shared::connect::{Connector, LIMIT};
use crate::shared::error::{Said, SharedError};
use crate::shared::settings::{Kind, StoreSettings};

/// The most bytes of a file.
pub(super) const MOST_BYTES: u64 = 64 << 20;

/// The time limit of all tries of one request. Each has a shorter one, which is that of the connection.
const ALL_TRIES: Duration = Duration::from_secs(90);

/// The number of tries after the first.
const RETRIES: usize = 4;

/// The store.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    /// The address, which holds no credentials.
    pub(super) url: String,
    /// The store is a folder: the tag of an object may stay the same when it is written twice at once.
    pub(super) is_folder: bool,
}

/// An object as it was read.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    pub(super) meta: ObjectMeta,
}

/// The object that is expected in the place of which another is put.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    /// There is none.
    None,
    /// This version.
    Version(UpdateVersion),
}

impl Remote {
    /// Opens the store of the settings. Its requests are not made yet.
    pub(super) fn open(settings: &StoreSettings) -> Result<Self, SharedError> {
        let address = settings.address()?;
        let options = settings.all_options()?;
        let url = settings.url.clone();
        let fail = |source: &dyn std::error::Error| SharedError::Open { url: url.clone(), source: Said::of(source) };
        let is_folder = address.kind == Kind::Folder;
        let store: Arc<dyn ObjectStore> = if is_folder {
            let store = LocalFileSystem::new_with_prefix(&address.path).map_err(|error| fail(&error))?;
            Arc::new(store.with_fsync(true))
        } else {
            let connector = Connector::new().map_err(|error| fail(&error))?;
            build(address.kind, &settings.url, options, connector).map_err(|error| fail(&error))?
        };
        let prefix = if is_folder { String::new() } else { address.path };
        Ok(Self { store, prefix, url, is_folder })
    }

    /// Uses a store that is there already.
    #[cfg(test)]
    pub(super) fn over(store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        Self { store, prefix: prefix.to_owned(), url: "memory:///".to_owned(), is_folder: false }
    }

    fn path(&self, name: &str) -> ObjectPath {
        let prefix = self.prefix.split('/').filter(|part| !part.is_empty());
        prefix.chain(name.split('/')).collect()
    }

    /// Returns all objects by their names below the prefix, which others may have given.
    pub(super) async fn list(&self) -> Result<BTreeMap<String, ObjectMeta>, SharedError> {
        let fail = |source| SharedError::List { url: self.url.clone(), source };
        let prefix = (!self.prefix.is_empty()).then(|| ObjectPath::from(self.prefix.as_str()));
        let mut stream = self.store.list(prefix.as_ref());
        let mut found = BTreeMap::new();
        loop {
            let next = timeout(ALL_TRIES, stream.try_next()).await.map_err(|_| fail(Said::late(ALL_TRIES)))?;
            let Some(meta) = next.map_err(|error| fail(Said::of(&error)))? else { return Ok(found) };
            let path = meta.location.as_ref();
            let name = if self.prefix.is_empty() { Some(path) } else { path.strip_prefix(&self.prefix) };
            if let Some(name) = name {
                found.insert(name.strip_prefix('/').unwrap_or(name).to_owned(), meta);
            }
        }
    }

    /// Reads an object; `None` if there is none. One that is too large is an error before it is read.
    pub(super) async fn get(&self, name: &str) -> Result<Option<Found>, SharedError> {
        let path = self.path(name);
        let read = async {
            let result = match self.store.get(&path).await {
                Err(Error::NotFound { .. }) => return Ok(Ok(None)),
                other => other?,
            };
            let meta = result.meta.clone();
            let mut bytes = Vec::new();
            let mut stream = result.into_stream();
            while let Some(part) = stream.next().await {
                bytes.extend_from_slice(&part?);
                if bytes.len() as u64 > MOST_BYTES {
                    return Ok(Err(too_large(name)));
                }
            }
            Ok(Ok(Some(Found { bytes, meta })))
        };
        self.limited("read", name, read).await?
    }

    /// Returns what is said of an object; `None` if there is none.
    pub(super) async fn head(&self, name: &str) -> Result<Option<ObjectMeta>, SharedError> {
        let path = self.path(name);
        let look = async {
            match self.store.head(&path).await {
                Err(Error::NotFound { .. }) => Ok(None),
                other => other.map(Some),
            }
        };
        self.limited("look at", name, look).await
    }

    /// Writes an object in the place of what is expected there; `None` if that is something else.
    pub(super) async fn put(
        &self,
        name: &str,
        bytes: Vec<u8>,
        expected: Expected,
    ) -> Result<Option<UpdateVersion>, SharedError> {
        let path = self.path(name);
        let payload = PutPayload::from(bytes);
        let write = async {
            let mode = match &expected {
                Expected::None => PutMode::Create,
                Expected::Version(version) => PutMode::Update(version.clone()),
            };
            let written = self.store.put_opts(&path, payload.clone(), PutOptions::from(mode)).await;
            let written = match written {
                Err(Error::NotImplemented { .. }) if self.is(&path, &expected).await? => {
                    // As good as it gets: there is a moment in which another host can write.
                    self.store.put_opts(&path, payload, PutOptions::from(PutMode::Overwrite)).await
                }
                Err(Error::NotImplemented { .. }) => return Ok(None),
                other => other,
            };
            match written {
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotFound { .. }) => Ok(None),
                other => other.map(|result| Some(UpdateVersion { e_tag: result.e_tag, version: result.version })),
            }
        };
        self.limited("write", name, write).await
    }

    /// Tells whether there is what is expected.
    async fn is(&self, path: &ObjectPath, expected: &Expected) -> object_store::Result<bool> {
        match (self.store.head(path).await, expected) {
            (Err(Error::NotFound { .. }), expected) => Ok(matches!(expected, Expected::None)),
            (Err(error), _) => Err(error),
            (Ok(_), Expected::None) => Ok(false),
            (Ok(meta), Expected::Version(version)) => Ok(meta.e_tag == version.e_tag),
        }
    }

    /// Deletes an object; one that is not there is no error.
    pub(super) async fn delete(&self, name: &str) -> Result<(), SharedError> {
        let path = self.path(name);
        let delete = async {
            match self.store.delete(&path).await {
                Err(Error::NotFound { .. }) => Ok(()),
                other => other,
            }
        };
        self.limited("delete", name, delete).await
    }

    async fn limited<T>(
        &self,
        action: &'static str,
        name: &str,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, SharedError> {
        let fail = |source| SharedError::Object { action, object: name.to_owned(), url: self.url.clone(), source };
        let answer = timeout(ALL_TRIES, request).await.map_err(|_| fail(Said::late(ALL_TRIES)))?;
        answer.map_err(|error| fail(Said::of(&error)))
    }
}

pub(super) fn too_large(name: &str) -> SharedError {
    SharedError::TooLarge { object: name.to_owned(), most: MOST_BYTES }
}

/// Nothing is read from the environment here; where no credentials are given, the library asks the machine for its own.
fn build(
    kind: Kind,
    url: &str,
    options: BTreeMap<String, String>,
    connector: Connector,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: LIMIT, ..RetryConfig::default() };
    Ok(match kind {
        Kind::Folder => Arc::new(LocalFileSystem::new()),
        Kind::S3 => {
            let builder = AmazonS3Builder::new().with_url(url).with_retry(retry).with_http_connector(connector);
            let set = |builder: AmazonS3Builder, (key, value): (String, String)| {
                Ok::<_, Error>(builder.with_config(key.parse()?, value))
            };
            Arc::new(options.into_iter().try_fold(builder, set)?.build()?)
        }
        Kind::Gcs => {
            let builder =
                GoogleCloudStorageBuilder::new().with_url(url).with_retry(retry).with_http_connector(connector);
            let set = |builder: GoogleCloudStorageBuilder, (key, value): (String, String)| {
                Ok::<_, Error>(builder.with_config(key.parse()?, value))
            };
            Arc::new(options.into_iter().try_fold(builder, set)?.build()?)
        }
        Kind::Azure => {
            let builder = MicrosoftAzureBuilder::new().with_url(url).with_retry(retry).with_http_connector(connector);
            let set = |builder: MicrosoftAzureBuilder, (key, value): (String, String)| {
                Ok::<_, Error>(builder.with_config(key.parse()?, value))
            };
            Arc::new(options.into_iter().try_fold(builder, set)?.build()?)
        }
    })
}
