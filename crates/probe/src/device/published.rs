//! The published loops of the Virtual Device report, run on the devices.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::slots::until_done;
use super::target::Target;
use super::{Device, Page};
use crate::buffer::{Buffer, page_bytes};
use crate::mapping::Mapping;
use crate::published_loops::{Form, OutputWindows, PageTarget, send_pages};
use crate::workloads::copy::mover::{CallError, portion};

/// Room for as many mappings as a process may have (vm.max_map_count), so that keeping
/// them does not allocate.
const MAPPINGS_MAX: usize = 1 << 16;

fn refused(errno: Errno) -> CallError {
    CallError::new("ioctl", errno)
}

/// The published master's memory.
pub struct Pages {
    form: Form,
    buffer_bytes: usize,
    /// The mapped page of the device.
    page: Option<Mapping>,
    /// Pages of the device that the printed loop leaves mapped. They keep the device open, so they
    /// are unmapped when the connection ends.
    left: Vec<Mapping>,
    /// The page-table entry of the file's page that was sent last.
    pub entry: Option<Page>,
}

impl Pages {
    pub fn new(form: Form, buffer_bytes: usize) -> Self {
        let left = match form {
            Form::Printed => Vec::with_capacity(MAPPINGS_MAX),
            Form::Mended => Vec::new(),
        };
        Self {
            form,
            buffer_bytes,
            page: None,
            left,
            entry: None,
        }
    }

    pub fn send(
        &mut self,
        device: &Device,
        file: (BorrowedFd<'_>, u64),
        calls: &mut u64,
    ) -> Result<(), CallError> {
        let (form, buffer_bytes) = (self.form, self.buffer_bytes);
        let mut target = DevicePages {
            device,
            pages: self,
        };
        send_pages(form, file, buffer_bytes, &mut target, calls)
    }
}

struct DevicePages<'a> {
    device: &'a Device,
    pages: &'a mut Pages,
}

impl PageTarget for DevicePages<'_> {
    fn map(&mut self, offset: u64) -> Result<(), CallError> {
        let (device, access) = (self.device.as_fd(), ProtFlags::WRITE);
        let page = Mapping::of_file(device, offset, page_bytes(), access, MapFlags::SHARED)
            .map_err(|errno| CallError::new("mmap", errno))?;
        self.pages.left.extend(self.pages.page.replace(page));
        Ok(())
    }

    fn page(&mut self) -> &mut Mapping {
        self.pages.page.as_mut().expect("the page was mapped")
    }

    fn send(&mut self, length: usize, calls: &mut u64) -> Result<usize, CallError> {
        *calls += 1;
        until_done(self.device, "send", || self.device.send_published(length))
    }

    fn look_up(&mut self, address: u64) -> Result<(), CallError> {
        match self.pages.form {
            Form::Printed => self.device.log_page(address).map_err(refused),
            Form::Mended => {
                self.pages.entry = Some(self.device.page(address).map_err(refused)?);
                Ok(())
            }
        }
    }

    fn unmap(&mut self) {
        self.pages.page = None;
    }
}

/// The published slave's memory.
pub struct Windows {
    buffer: Buffer,
    output: OutputWindows,
    /// The page-table entry of the window that was mapped last.
    pub entry: Option<Page>,
}

impl Windows {
    pub fn new(buffer_bytes: usize, window_bytes: usize) -> Self {
        Self {
            buffer: Buffer::aligned(buffer_bytes),
            output: OutputWindows::new(window_bytes),
            entry: None,
        }
    }

    pub(super) fn receive(
        &mut self,
        device: &Device,
        target: &mut Target<'_>,
    ) -> Result<(), CallError> {
        let (file, buffer) = (target.file, self.buffer.bytes_mut());
        let mut received = 0;
        while received < target.size_bytes {
            let wanted = portion(target.size_bytes - received, buffer.len());
            let length = until_done(device, "receive", || {
                rustix::io::read(device.as_fd(), &mut buffer[..wanted])
            })?;
            if length == 0 {
                return Err(CallError::no_progress("receive"));
            }
            target.arrived();
            let bytes = &buffer[..length];
            self.output.append(file, bytes, &mut |address| {
                device.log_page(address).map_err(refused)
            })?;
            received += length as u64;
        }
        let entry = &mut self.entry;
        self.output.finish(file, &mut |address| {
            *entry = Some(device.page(address).map_err(refused)?);
            Ok(())
        })
    }
}
