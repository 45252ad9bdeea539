//! Single modules of the library, which it shows to nobody.

#![expect(dead_code, reason = "the library uses more of a module than its tests")]

mod source {
    pub use userfs::source::*;
}
#[path = "../../src/fuse/convert.rs"]
mod convert;
#[path = "../../src/cache/copy.rs"]
mod copy;
#[path = "../../src/mount/metadata_cache.rs"]
mod metadata_cache;
#[path = "../../src/fuse/splice.rs"]
mod splice;

mod copies;
mod listings;
mod splicing;
mod times;
mod tree;
