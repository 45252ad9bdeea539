//! What an ELF program needs from the dynamic linker.

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, FileHeader32, FileHeader64, PT_INTERP};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, FileKind};

/// Longest path or name that is read.
const TEXT_BYTES_MAX: usize = 4096;

/// Most libraries, or directories, that one file may name.
const NAMES_MAX: usize = 1024;

/// The interpreter and libraries that an ELF file names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Linking {
    /// Whether addresses have 64 bits, and the machine. The linker skips libraries of
    /// another kind.
    pub kind: (bool, u16),
    /// The dynamic linker (`PT_INTERP`).
    pub interpreter: Option<String>,
    /// Names of libraries (`DT_NEEDED`).
    pub needed: Vec<String>,
    /// Directories for the file's own libraries and for the libraries that these need (`DT_RPATH`).
    pub rpath: Vec<String>,
    /// Directories for the file's own libraries (`DT_RUNPATH`), which replace `rpath`.
    pub runpath: Vec<String>,
}

impl Linking {
    /// Reads the tables of an ELF file.
    ///
    /// # Errors
    /// If the content is not an ELF file, or is damaged.
    pub fn read(content: &[u8]) -> Result<Self, String> {
        match FileKind::parse(content) {
            Ok(FileKind::Elf64) => Self::read_as::<FileHeader64<Endianness>>(content, true),
            Ok(FileKind::Elf32) => Self::read_as::<FileHeader32<Endianness>>(content, false),
            _ => Err("it is not an ELF program".into()),
        }
    }

    fn read_as<Elf: FileHeader<Endian = Endianness>>(
        content: &[u8],
        is_64_bit: bool,
    ) -> Result<Self, String> {
        let damaged = |error: object::Error| format!("it is damaged: {error}");
        let header = Elf::parse(content).map_err(damaged)?;
        let endian = header.endian().map_err(damaged)?;
        let mut linking = Self {
            kind: (is_64_bit, header.e_machine(endian)),
            ..Self::default()
        };
        let segments = header.program_headers(endian, content).map_err(damaged)?;
        for segment in segments {
            if segment.p_type(endian) == PT_INTERP {
                let path = segment.data(endian, content).ok();
                let path = path.and_then(|path| text(path.split(|byte| *byte == 0).next()?));
                linking.interpreter =
                    Some(path.ok_or("it is damaged: its interpreter has no name")?);
            }
            let Some(entries) = segment.dynamic(endian, content).map_err(damaged)? else {
                continue;
            };
            let strings = strings::<Elf>(endian, content, segments, entries);
            let strings = strings.ok_or("it is damaged: its dynamic section has no names")?;
            linking.add_entries::<Elf>(endian, entries, strings)?;
        }
        Ok(linking)
    }

    fn add_entries<Elf: FileHeader<Endian = Endianness>>(
        &mut self,
        endian: Endianness,
        entries: &[Elf::Dyn],
        strings: &[u8],
    ) -> Result<(), String> {
        for entry in entries {
            let tag: i64 = entry.d_tag(endian).into();
            if ![DT_NEEDED, DT_RPATH, DT_RUNPATH].contains(&tag) {
                continue;
            }
            let value = usize::try_from(entry.d_val(endian).into()).ok();
            let named =
                value.and_then(|at| text(strings.get(at..)?.split(|byte| *byte == 0).next()?));
            let named = named.ok_or("it is damaged: a library has no name")?;
            let directories = || named.split(':').map(str::to_owned);
            match tag {
                DT_NEEDED => self.needed.push(named),
                DT_RPATH => self.rpath.extend(directories()),
                _ => self.runpath.extend(directories()),
            }
            // Names may overlap in the file, and so take more memory than the file has bytes.
            let counts = [&self.needed, &self.rpath, &self.runpath].map(Vec::len);
            if counts.iter().any(|count| *count > NAMES_MAX) {
                return Err(format!(
                    "it names more than {NAMES_MAX} libraries or directories"
                ));
            }
        }
        if !self.runpath.is_empty() {
            self.rpath.clear();
        }
        Ok(())
    }
}

/// Returns the names that a dynamic section refers to. Reads the names at the addresses to which
/// the linker would map them.
fn strings<'data, Elf: FileHeader<Endian = Endianness>>(
    endian: Endianness,
    content: &'data [u8],
    segments: &[Elf::ProgramHeader],
    entries: &[Elf::Dyn],
) -> Option<&'data [u8]> {
    let value = |tag: i64| -> Option<u64> {
        let found = entries
            .iter()
            .find(|entry| entry.d_tag(endian).into() == tag);
        Some(found?.d_val(endian).into())
    };
    let address = value(object::elf::DT_STRTAB)?;
    let length = value(object::elf::DT_STRSZ)?;
    segments
        .iter()
        .find_map(|one| one.data_range(endian, content, address, length).ok()?)
}

fn text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.is_empty() && text.len() <= TEXT_BYTES_MAX).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_names_its_own_linking_or_none() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let linking = Linking::read(&own).unwrap();
        assert!(linking.kind.0);
        assert_eq!(linking.interpreter.is_some(), !linking.needed.is_empty());
    }

    /// An ELF file whose dynamic section has one entry many times.
    fn repeating(tag: i64, count: usize) -> Vec<u8> {
        let text = [&[b'x'; 4000][..], b"\0"].concat();
        let (text_at, dynamic_at) = (176_u64, 176 + text.len() as u64);
        let mut dynamic = vec![(object::elf::DT_STRTAB, text_at)];
        dynamic.push((object::elf::DT_STRSZ, text.len() as u64));
        dynamic.extend(vec![(tag, 0); count]);
        let words = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let dynamic: Vec<u8> = dynamic
            .iter()
            .flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()].concat())
            .collect();
        let length = dynamic_at + dynamic.len() as u64;
        let segment = |kind: u64, at: u64, length: u64| -> Vec<u8> {
            words(&[kind | 4 << 32, at, at, at, length, length, 8])
        };
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend(words(&[3 | 62 << 16 | 1 << 32, 0, 64, 0]));
        let sizes: [u16; 8] = [0, 0, 64, 56, 2, 64, 0, 0];
        file.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
        file.extend(segment(1, 0, length));
        file.extend(segment(2, dynamic_at, dynamic.len() as u64));
        file.extend(text);
        file.extend(dynamic);
        file
    }

    #[test]
    fn names_that_overlap_are_refused_before_they_take_much_memory() {
        for tag in [DT_NEEDED, DT_RPATH, DT_RUNPATH] {
            assert!(Linking::read(&repeating(tag, NAMES_MAX)).is_ok());
            let error = Linking::read(&repeating(tag, 100_000)).unwrap_err();
            assert!(error.contains("it names more than"), "{error}");
        }
    }

    #[test]
    fn a_damaged_file_is_refused_or_names_nothing() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert!(Linking::read(b"#!/bin/sh\n").is_err());
        assert!(Linking::read(&own[..40]).is_err());
        let mut state = 1_u64;
        for _ in 0..2000 {
            let mut damaged = own[..4096.min(own.len())].to_vec();
            for _ in 0..8 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let at = (state >> 33) as usize % damaged.len();
                damaged[at] = (state >> 20) as u8;
            }
            // Neither a panic nor much memory.
            let _ = Linking::read(&damaged);
        }
    }
}
