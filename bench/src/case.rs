//! What is copied from where to where.

use serde::{Deserialize, Serialize};

/// A pair of source and sink. Sources are warm: wholly in the page cache.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// File to `/dev/null`.
    Null,
    /// File to a pipe whose reader reads.
    PipeRead,
    /// File to a pipe whose reader splices into `/dev/null`.
    PipeSplice,
    /// Pipe to a pipe whose reader reads.
    PipeToPipe,
    /// Pipe to a new file on the work file system.
    PipeToFile,
    /// File to a new file on the same tmpfs.
    Tmpfs,
    /// File to a new file on the same ext4.
    Ext4,
    /// File to a new file on the same XFS, which shares blocks between files.
    Xfs,
    /// File to a new file on the same Btrfs, which shares blocks between files.
    Btrfs,
    /// File to a TCP connection over the loopback interface.
    Tcp,
}

/// Where bytes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A path operand.
    File,
    /// Standard input, a pipe that a thread of the harness fills.
    Pipe,
}

/// Where bytes go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sink {
    Null,
    /// A pipe that a thread of the harness empties by read(2).
    PipeRead,
    /// A pipe that a thread of the harness empties by splice(2).
    PipeSplice,
    /// A file that exists and is empty.
    File,
    /// A socket whose peer is a thread of the harness that reads.
    Tcp,
}

/// A file system that holds files of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileSystem {
    /// The one of the work directory.
    Work,
    /// A tmpfs.
    Tmpfs,
    /// ext4 on a loop device.
    Ext4,
    /// XFS on a loop device.
    Xfs,
    /// Btrfs on a loop device.
    Btrfs,
}

impl FileSystem {
    /// Name as mount(8) takes it; `work` is none.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Work => "work",
            FileSystem::Tmpfs => "tmpfs",
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
        }
    }
}

impl Case {
    /// All cases, in the order of the table.
    pub const ALL: [Case; 10] = [
        Case::Null,
        Case::PipeRead,
        Case::PipeSplice,
        Case::PipeToPipe,
        Case::PipeToFile,
        Case::Tmpfs,
        Case::Ext4,
        Case::Xfs,
        Case::Btrfs,
        Case::Tcp,
    ];

    /// Name on the command line and in the table.
    pub fn name(self) -> &'static str {
        match self {
            Case::Null => "null",
            Case::PipeRead => "pipe-read",
            Case::PipeSplice => "pipe-splice",
            Case::PipeToPipe => "pipe-to-pipe",
            Case::PipeToFile => "pipe-to-file",
            Case::Tmpfs => "tmpfs",
            Case::Ext4 => "ext4",
            Case::Xfs => "xfs",
            Case::Btrfs => "btrfs",
            Case::Tcp => "tcp",
        }
    }

    /// Source and sink in words, for the legend.
    pub fn description(self) -> &'static str {
        match self {
            Case::Null => "file to /dev/null",
            Case::PipeRead => "file to a pipe whose reader reads",
            Case::PipeSplice => "file to a pipe whose reader splices into /dev/null",
            Case::PipeToPipe => "pipe to a pipe whose reader reads",
            Case::PipeToFile => "pipe to a new file on the work file system",
            Case::Tmpfs => "file to a new file on the same tmpfs",
            Case::Ext4 => "file to a new file on the same ext4",
            Case::Xfs => "file to a new file on the same XFS",
            Case::Btrfs => "file to a new file on the same Btrfs",
            Case::Tcp => "file to a TCP connection over the loopback interface",
        }
    }

    pub(crate) fn source(self) -> Source {
        match self {
            Case::PipeToPipe | Case::PipeToFile => Source::Pipe,
            _ => Source::File,
        }
    }

    pub(crate) fn sink(self) -> Sink {
        match self {
            Case::Null => Sink::Null,
            Case::PipeRead | Case::PipeToPipe => Sink::PipeRead,
            Case::PipeSplice => Sink::PipeSplice,
            Case::PipeToFile | Case::Tmpfs | Case::Ext4 | Case::Xfs | Case::Btrfs => Sink::File,
            Case::Tcp => Sink::Tcp,
        }
    }

    /// The file system of the source file, and of the sink if it is a file.
    pub fn file_system(self) -> FileSystem {
        match self {
            Case::Tmpfs => FileSystem::Tmpfs,
            Case::Ext4 => FileSystem::Ext4,
            Case::Xfs => FileSystem::Xfs,
            Case::Btrfs => FileSystem::Btrfs,
            _ => FileSystem::Work,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn a_case_has_one_name_everywhere() {
        assert_eq!(Case::ALL.as_slice(), Case::value_variants());
        for case in Case::ALL {
            let on_command_line = case.to_possible_value().expect("no case is hidden");
            assert_eq!(on_command_line.get_name(), case.name());
            let in_document = serde_json::to_value(case).expect("a case is a word");
            assert_eq!(in_document, case.name());
        }
    }
}
