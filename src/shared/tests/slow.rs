//! A store that takes its time: some requests until a test lets them through, others for a random moment.

use std::fmt;
use std::ops::Range;
use std::sync::Mutex as StdMutex;

use async_trait::async_trait;
use axum::body::Bytes;
use futures::TryStreamExt as _;
use futures::stream::{BoxStream, once};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::*;
use crate::basics::lock::lock;

/// The name of the request that lists all objects.
pub(super) const LIST: &str = "list";

/// The store, over one in memory.
#[derive(Debug, Default)]
pub(super) struct Slow {
    inner: Arc<InMemory>,
    now: Arc<Now>,
}

#[derive(Debug, Default)]
struct Now {
    /// The requests that are not let through, by the end of the name of the object.
    closed: StdMutex<BTreeSet<String>>,
    /// The requests that have come to wait.
    waiting: StdMutex<BTreeSet<String>>,
    random: StdMutex<Option<StdRng>>,
}

impl Now {
    async fn pass(&self, name: &str) {
        let pause = lock(&self.random).as_mut().map(|random| Duration::from_micros(random.random_range(0..2_000)));
        if let Some(pause) = pause {
            sleep(pause).await;
        }
        let is_closed = || lock(&self.closed).iter().find(|end| name.ends_with(end.as_str())).cloned();
        while let Some(end) = is_closed() {
            lock(&self.waiting).insert(end);
            sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Slow {
    /// Lets each request wait for a moment.
    pub(super) fn random(seed: u64) -> Arc<Self> {
        let slow = Self::default();
        *lock(&slow.now.random) = Some(StdRng::seed_from_u64(seed));
        Arc::new(slow)
    }

    /// Lets nothing through that is about such an object.
    pub(super) fn close(&self, name: &str) {
        lock(&self.now.waiting).remove(name);
        lock(&self.now.closed).insert(name.to_owned());
    }

    /// Lets it through again.
    pub(super) fn open(&self, name: &str) {
        lock(&self.now.closed).remove(name);
    }

    /// Waits until something waits, beside the work that leads to it.
    pub(super) async fn reached<T>(&self, name: &str, work: &mut (impl Future<Output = T> + Unpin)) {
        for _ in 0..10_000 {
            if lock(&self.now.waiting).contains(name) {
                return;
            }
            assert!(futures::poll!(&mut *work).is_pending(), "it is over before it has come to {name}");
            sleep(Duration::from_millis(1)).await;
        }
        unreachable!("nothing has come to {name}");
    }

    /// Returns what is there of an object, at once.
    pub(super) async fn text(&self, name: &str) -> Option<String> {
        let found = self.inner.get(&ObjectPath::from(format!("fleet/{name}"))).await.ok()?;
        Some(String::from_utf8_lossy(&found.bytes().await.expect("it is in memory")).into_owned())
    }

    /// Opens it for a host.
    pub(super) fn host(self: &Arc<Self>, folder: &Path, syncs: &[&str]) -> Host {
        let store: Arc<dyn ObjectStore> = Arc::clone(self) as _;
        let mut host = Host::start(folder, |state| {
            Shared::with(Remote::over(store, "fleet"), state, (Path::new("reports"), "test", true))
        });
        host.syncs = syncs.iter().map(|sync| (*sync).to_owned()).collect();
        host
    }
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("slow")
    }
}

#[async_trait]
impl ObjectStore for Slow {
    async fn put_opts(&self, at: &ObjectPath, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.now.pass(at.as_ref()).await;
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        self.now.pass(at.as_ref()).await;
        self.inner.get_opts(at, options).await
    }

    async fn get_ranges(&self, at: &ObjectPath, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(at, ranges).await
    }

    fn delete_stream(&self, at: BoxStream<'static, Result<ObjectPath>>) -> BoxStream<'static, Result<ObjectPath>> {
        let now = Arc::clone(&self.now);
        let passed = at.and_then(move |at| {
            let now = Arc::clone(&now);
            async move {
                now.pass(at.as_ref()).await;
                Ok(at)
            }
        });
        self.inner.delete_stream(passed.boxed())
    }

    /// A listing shows the objects that were there before the wait.
    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (listed, now) = (self.inner.list(prefix), Arc::clone(&self.now));
        let wait = async move {
            let listed: Vec<ObjectMeta> = listed.try_collect().await?;
            now.pass(LIST).await;
            Result::<_>::Ok(iter(listed.into_iter().map(Ok)))
        };
        once(wait).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &ObjectPath, to: &ObjectPath, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
