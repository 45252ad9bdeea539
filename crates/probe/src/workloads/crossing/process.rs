//! Threads, processes and programs that end immediately.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr::null;

use toll_wire::Failure;

use crate::failure::{self, OrFail};
use crate::fork;

/// Argument that makes the probe end immediately. The probe is the static program that is spawned.
pub const END_FLAG: &CStr = c"--end";

const SELF: &str = "/proc/self/exe";
const DYNAMIC: &str = "/bin/true";

pub fn create_thread(calls: u64) -> Result<(), Failure> {
    for _ in 0..calls {
        let thread = std::thread::Builder::new().spawn(|| ());
        let thread = thread.failed_to("measure a crossing by clone")?;
        if thread.join().is_err() {
            return Err(failure::failed(
                "cannot measure a crossing by clone: the thread panicked",
            ));
        }
    }
    Ok(())
}

pub fn fork_process(calls: u64) -> Result<(), Failure> {
    for _ in 0..calls {
        fork::start_and_wait().failed_to("measure a crossing by fork")?;
    }
    Ok(())
}

/// Spawns a program that needs no dynamic linker: this one.
pub fn spawn_static() -> Result<impl FnMut(u64) -> Result<(), Failure>, Failure> {
    if has_interpreter(SELF)? {
        return Err(failure::unsupported(
            "cannot spawn a static program: toll-probe was linked dynamically; link it statically",
        ));
    }
    // Resolved here, because otherwise every call would resolve the link in /proc.
    let path = std::fs::read_link(SELF).failed_to("find the file of toll-probe")?;
    let path = path.into_os_string().into_encoded_bytes();
    let path = CString::new(path).expect("a path has no zero byte");
    Ok(move |calls| spawn_each(&path, &[&path, END_FLAG], calls))
}

/// Spawns a program that the dynamic linker loads.
pub fn spawn_dynamic() -> Result<impl FnMut(u64) -> Result<(), Failure>, Failure> {
    if !has_interpreter(DYNAMIC)? {
        return Err(failure::unsupported(format!(
            "cannot spawn a dynamic program: {DYNAMIC} is linked statically; use a system where \
             it is linked dynamically"
        )));
    }
    let path = CString::new(DYNAMIC).expect("the name has no zero byte");
    Ok(move |calls| spawn_each(&path, &[&path], calls))
}

fn spawn_each(path: &CStr, words: &[&CStr], calls: u64) -> Result<(), Failure> {
    let mut argv: Vec<*mut libc::c_char> = words.iter().map(|w| w.as_ptr().cast_mut()).collect();
    argv.push(std::ptr::null_mut());
    let environment: [*mut libc::c_char; 1] = [std::ptr::null_mut()];
    for _ in 0..calls {
        let mut pid = 0;
        // SAFETY: the path and both lists end with a zero and outlive the call.
        let error = unsafe {
            libc::posix_spawn(
                &raw mut pid,
                path.as_ptr(),
                null(),
                null(),
                argv.as_ptr(),
                environment.as_ptr(),
            )
        };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error))
                .failed_to("measure a crossing by posix_spawn");
        }
        fork::wait_for(pid).failed_to("measure a crossing by posix_spawn")?;
    }
    Ok(())
}

/// Whether a program's file names a dynamic linker (PT_INTERP of elf(5)).
fn has_interpreter(path: &str) -> Result<bool, Failure> {
    const HEADER_BYTES: usize = 64;
    const ENTRY_BYTES: usize = 56;
    const PT_INTERP: u32 = 3;
    let cannot = |error: io::Error| {
        let advice = "use a 64-bit system that has this program";
        failure::unsupported_by(&format!("spawn {path}"), &error, advice)
    };
    let file = File::open(path).map_err(cannot)?;
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).map_err(cannot)?;
    if !header.starts_with(b"\x7fELF\x02") {
        return Err(cannot(io::Error::other("it is not a 64-bit ELF file")));
    }
    let offset = u64::from_ne_bytes(header[32..40].try_into().expect("eight bytes"));
    let entries = u16::from_ne_bytes(header[56..58].try_into().expect("two bytes"));
    for entry in 0..u64::from(entries) {
        let mut kind = [0; 4];
        let place = offset.saturating_add(entry * ENTRY_BYTES as u64);
        file.read_exact_at(&mut kind, place).map_err(cannot)?;
        if u32::from_ne_bytes(kind) == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}
