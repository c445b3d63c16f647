//! What stores hold, listed once and known for some seconds: a run of a thousand ranks is one listing, and not a request
//! for each of its files.

use crate::location::{Location, metadata_of};
use crate::runtime::wait;
use crate::{Fault, Metadata, StoreError};
use futures_util::TryStreamExt;
use object_store::ObjectMeta;
use object_store::path::Path as ObjectPath;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a listing is taken for true.
const KEPT: Duration = Duration::from_secs(10);
/// The most objects that a folder may hold.
const MOST_OBJECTS: usize = 500_000;

/// The objects below a folder, in folders of it as well.
pub(crate) struct Listing {
    folder: ObjectPath,
    at: Instant,
    objects: BTreeMap<String, ObjectMeta>,
    /// Objects that this process has written since then.
    written: Mutex<BTreeSet<String>>,
}

/// Those of a store, and what single objects are.
#[derive(Default)]
pub(crate) struct Listings {
    folders: Mutex<Vec<Arc<Listing>>>,
    heads: Mutex<HashMap<String, (Instant, ObjectMeta)>>,
}

impl Listings {
    /// The listing of the folder at `location`.
    pub(crate) fn listed(&self, location: &Location) -> io::Result<Arc<Listing>> {
        if let Some(known) = self.covering(&location.object).filter(|known| known.is_whole()) {
            return Ok(known);
        }
        let listing = Arc::new(Listing::request(location)?);
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        folders.retain(|known| known.is_whole());
        folders.push(listing.clone());
        Ok(listing)
    }

    /// What is at `object`, where a listing knows: `Some(None)` is that nothing is there.
    pub(crate) fn known(&self, object: &ObjectPath) -> Option<Option<Metadata>> {
        let listing = self.covering(object)?;
        if !listing.is_whole() {
            return listing.unwritten(object).map(|meta| Some(metadata_of(meta)));
        }
        // Of what it lists a listing does not say whether it is an object as well.
        (listing.folder != *object || !listing.objects.is_empty()).then(|| listing.of(object))
    }

    /// The object itself, in the same way.
    pub(crate) fn object(&self, object: &ObjectPath) -> Option<Option<ObjectMeta>> {
        let listing = self.covering(object).filter(|listing| listing.folder != *object)?;
        if !listing.is_whole() {
            return listing.unwritten(object).map(|meta| Some(meta.clone()));
        }
        Some(listing.objects.get(object.as_ref()).cloned())
    }

    /// The object itself, where the store was asked for it alone.
    pub(crate) fn head(&self, object: &ObjectPath) -> Option<ObjectMeta> {
        let heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        heads.get(object.as_ref()).filter(|(at, _)| at.elapsed() < KEPT).map(|(_, meta)| meta.clone())
    }

    pub(crate) fn keep_head(&self, object: &ObjectPath, meta: &ObjectMeta) {
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        heads.retain(|_, (at, _)| at.elapsed() < KEPT);
        heads.insert(object.to_string(), (Instant::now(), meta.clone()));
    }

    /// What was written is to be seen. Of the other objects is known what was known.
    pub(crate) fn forget(&self, object: &ObjectPath) {
        let folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        for listing in folders.iter().filter(|listing| object.prefix_matches(&listing.folder)) {
            listing.written.lock().unwrap_or_else(PoisonError::into_inner).insert(object.to_string());
        }
        drop(folders);
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).remove(object.as_ref());
    }

    fn covering(&self, object: &ObjectPath) -> Option<Arc<Listing>> {
        let mut listings = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        listings.retain(|listing| listing.at.elapsed() < KEPT);
        listings.iter().find(|listing| object.prefix_matches(&listing.folder)).cloned()
    }
}

impl Listing {
    fn request(location: &Location) -> io::Result<Self> {
        let Location { store, object: folder } = location.clone();
        wait(async move {
            let mut found = store.objects.list(Some(&folder).filter(|folder| !folder.as_ref().is_empty()));
            let mut objects = BTreeMap::new();
            while let Some(meta) = found.try_next().await.map_err(|error| store.told(&error))? {
                let meta = ObjectMeta { e_tag: meta.e_tag.map(quoted), ..meta };
                objects.insert(meta.location.as_ref().to_string(), meta);
                if objects.len() > MOST_OBJECTS {
                    let detail = format!("more than {MOST_OBJECTS} objects are below this folder");
                    return Err(StoreError::new(Fault::Other, &store.base, detail).into());
                }
            }
            Ok(Self { folder, at: Instant::now(), objects, written: Mutex::default() })
        })
    }

    /// Whether it says what is there and what is not: nothing was written since.
    fn is_whole(&self) -> bool {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// An object that was not written since.
    fn unwritten(&self, object: &ObjectPath) -> Option<&ObjectMeta> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        self.objects.get(object.as_ref()).filter(|_| !written.contains(object.as_ref()))
    }

    /// The names directly below `folder`, each once.
    pub(crate) fn names(&self, folder: &ObjectPath) -> Vec<String> {
        let below = below(folder);
        let paths = self.objects.range(below.clone()..).map(|(path, _)| path);
        let inside = paths.take_while(|path| path.starts_with(&below));
        let names: BTreeSet<&str> = inside.filter_map(|path| path[below.len()..].split('/').next()).collect();
        names.into_iter().filter(|name| !name.is_empty()).map(String::from).collect()
    }

    /// Paths of all objects below it.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.objects.keys().map(String::as_str)
    }

    /// An object, or a folder where others are below it.
    pub(crate) fn of(&self, object: &ObjectPath) -> Option<Metadata> {
        if let Some(meta) = self.objects.get(object.as_ref()) {
            return Some(metadata_of(meta));
        }
        let below = below(object);
        let is_folder = self.objects.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&below));
        is_folder.then_some(Metadata { is_folder: true, len: 0, modified: None, version: None })
    }
}

/// An `ETag` as requests have it: Azure's listings leave the quotes out.
fn quoted(e_tag: String) -> String {
    if e_tag.ends_with('"') { e_tag } else { format!("\"{e_tag}\"") }
}

/// What the names of objects in a folder begin with.
fn below(folder: &ObjectPath) -> String {
    if folder.as_ref().is_empty() { String::new() } else { format!("{folder}/") }
}
