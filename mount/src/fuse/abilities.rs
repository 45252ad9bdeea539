//! Negotiates the features of FUSE that a mount uses.

use std::io;

use fuser::{InitFlags, KernelConfig};

use crate::cache::Mode;
use crate::mount::KernelCache;

/// Limit on the kernel's background requests in flight, such as read-ahead.
const BACKGROUND_MAX: u16 = 64;
/// Length of the largest write request. The kernel sends no larger one unless its limit
/// of pages is raised.
const WRITE_BYTES_MAX: u32 = 1 << 20;

fn wanted_flags(mode: Mode, kernel: KernelCache) -> InitFlags {
    let always = InitFlags::FUSE_ATOMIC_O_TRUNC
        | InitFlags::FUSE_DO_READDIRPLUS
        | InitFlags::FUSE_READDIRPLUS_AUTO
        | InitFlags::FUSE_ASYNC_DIO
        | InitFlags::FUSE_PARALLEL_DIROPS
        // Otherwise the kernel asks for an extended attribute before each write.
        | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
    let pages = match (kernel, mode) {
        (KernelCache::WriteBack, _) => InitFlags::FUSE_WRITEBACK_CACHE,
        (KernelCache::Direct, _) => InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        (KernelCache::PassThrough, _) => InitFlags::FUSE_PASSTHROUGH,
        // Only this mount changes the copy of an open file. Without a copy, pages
        // are dropped when somebody else has changed the source's file.
        (KernelCache::Pages, Mode::None) => InitFlags::FUSE_AUTO_INVAL_DATA,
        (KernelCache::Pages, _) => InitFlags::FUSE_EXPLICIT_INVAL_DATA,
    };
    always | pages
}

/// Negotiates FUSE features with the kernel. A missing feature is not used, but missing
/// pass-through is an error, because an option requests it.
pub(super) fn choose_abilities(
    mode: Mode,
    kernel: KernelCache,
    config: &mut KernelConfig,
) -> io::Result<()> {
    let can = config.capabilities();
    if kernel == KernelCache::PassThrough {
        if !can.contains(InitFlags::FUSE_PASSTHROUGH) {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        // The kernel may have a lower limit.
        let _ = config.set_max_stack_depth(1);
    }
    let _ = config.add_capabilities(wanted_flags(mode, kernel) & can);
    let _ = config.set_max_write(WRITE_BYTES_MAX);
    let _ = config.set_max_background(BACKGROUND_MAX);
    Ok(())
}
