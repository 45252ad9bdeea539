//! What of the kernel's abilities a mount uses.

use std::io;

use fuser::{InitFlags, KernelConfig};

use super::KernelCache;
use crate::cache::Mode;

/// Requests that the kernel may have under way in the background, such as
/// read-ahead.
const BACKGROUND_MAX: u16 = 64;
/// Largest write: what the kernel sends at most unless its limit of pages is
/// raised.
const WRITE_BYTES_MAX: u32 = 1 << 20;
fn wanted_flags(mode: Mode, kernel: KernelCache) -> InitFlags {
    let always = InitFlags::FUSE_ATOMIC_O_TRUNC
        | InitFlags::FUSE_DO_READDIRPLUS
        | InitFlags::FUSE_READDIRPLUS_AUTO
        | InitFlags::FUSE_ASYNC_DIO
        | InitFlags::FUSE_PARALLEL_DIROPS
        // Else the kernel asks for an extended attribute before each write.
        | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
    let pages = match (kernel, mode) {
        (KernelCache::WriteBack, _) => InitFlags::FUSE_WRITEBACK_CACHE,
        (KernelCache::Direct, _) => InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        (KernelCache::PassThrough, _) => InitFlags::FUSE_PASSTHROUGH,
        // An open file's copy changes by this mount alone; without one, pages
        // go when somebody else has changed the source's file.
        (KernelCache::Pages, Mode::None) => InitFlags::FUSE_AUTO_INVAL_DATA,
        (KernelCache::Pages, _) => InitFlags::FUSE_EXPLICIT_INVAL_DATA,
    };
    always | pages
}

/// Agrees with the kernel on what is used. What it lacks is done without, but
/// for passing through, which is asked for by name.
pub(super) fn choose(mode: Mode, kernel: KernelCache, config: &mut KernelConfig) -> io::Result<()> {
    let can = config.capabilities();
    if kernel == KernelCache::PassThrough {
        if !can.contains(InitFlags::FUSE_PASSTHROUGH) {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        // Or less, if the kernel has other limits.
        let _ = config.set_max_stack_depth(1);
    }
    let _ = config.add_capabilities(wanted_flags(mode, kernel) & can);
    let _ = config.set_max_write(WRITE_BYTES_MAX);
    let _ = config.set_max_background(BACKGROUND_MAX);
    Ok(())
}
