//! Sums up strace's lines.

use std::collections::HashMap;

use toll_core::format;

use super::assembly::{Assembly, Event};
use super::descriptor;
use super::line::{Call, CallResult};
use super::shape::{Role, Shape};
use super::sizes::Sizes;
use super::tally::{CallSum, Outcome, Tally};

#[derive(Debug, Default)]
pub struct LineTally {
    pub tally: Tally,
    assembly: Assembly,
    program_of: HashMap<u32, usize>,
    lines: u64,
}

impl LineTally {
    /// Adds the next line. Returns the event that the line completed, if any.
    pub fn feed(&mut self, line: &str) -> Option<Event> {
        self.lines += 1;
        let event = self.assembly.feed(line);
        match &event {
            Some(Event::Call { thread, call, .. }) => self.count(*thread, call),
            Some(Event::Ended { thread, .. }) => self.tally.end_thread(*thread),
            Some(Event::Signal { .. }) | None => {}
        }
        event
    }

    /// Returns the sums, and notes for the reader of the report.
    pub fn finish(mut self) -> (Tally, Vec<String>) {
        self.tally.finish();
        let mut notes = Vec::new();
        if self.assembly.not_understood > 0 {
            notes.push(format!(
                "{} of strace's {} not understood and not counted",
                format::count(self.assembly.not_understood as f64),
                format::counted(self.lines, "line")
            ));
        }
        (self.tally, notes)
    }

    fn count(&mut self, thread: u32, call: &Call) {
        let program = self.program(thread, call);
        let outcome = match &call.result {
            CallResult::Error(name) => Outcome::Error(name.clone()),
            CallResult::Value(value) => self.outcome(call, u64::try_from(*value).unwrap_or(0)),
            CallResult::Restarted | CallResult::Unknown => Outcome::Other,
        };
        self.tally.add(&CallSum {
            thread,
            program,
            name: &call.name,
            calls: 1,
            traced_ns: call.duration_ns.unwrap_or(0),
            outcome,
        });
    }

    /// Returns the program of a call's process. A process that has executed no program yet still
    /// runs the command's program.
    fn program(&mut self, thread: u32, call: &Call) -> usize {
        if call.name == "execve" && call.result == CallResult::Value(0) {
            let path = call
                .arguments
                .first()
                .map_or("", |path| path.trim_matches('"'));
            let name = path.rsplit('/').next().unwrap_or(path);
            let program = self.tally.program(name);
            self.program_of.insert(thread, program);
        }
        if self.tally.programs.is_empty() {
            self.tally.program("");
        }
        self.program_of.get(&thread).copied().unwrap_or(0)
    }

    fn outcome(&mut self, call: &Call, value: u64) -> Outcome {
        let argument = |at: usize| call.arguments.get(at).map_or("", String::as_str);
        let shape = Shape::for_call(&call.name);
        let ends = shape.and_then(|shape| {
            let ends = shape.ends.iter();
            let ends = ends.map(|(_, at)| descriptor::parse(argument(*at)));
            Some((shape, ends.collect::<Option<Vec<_>>>()?))
        });
        let Some((shape, ends)) = ends else {
            return Outcome::Other;
        };
        let only_asks =
            argument(1) == "0" && call.arguments.last().is_some_and(|w| w == "SEEK_CUR");
        if shape.role == Role::Seek && only_asks {
            return Outcome::Other;
        }
        let files: Vec<_> = ends.into_iter().map(|end| self.tally.file(end)).collect();
        if shape.role == Role::Seek {
            return Outcome::Sought(files[0]);
        }
        let asked = shape.asked.and_then(|at| argument(at).parse().ok());
        let mut sizes = Sizes::default();
        sizes.add(value);
        Outcome::Moved {
            files,
            sizes,
            is_whole: value > 0 && asked.is_none_or(|asked: u64| value >= asked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::FileTally;
    use super::*;

    /// From real runs, `strace -f -y -s 0 --syscall-times=ns`.
    const SEVERAL: &str = r#"7647  sendmsg(3<socket:[949743]>, {msg_name=NULL, msg_namelen=0, msg_iov=[...], msg_iovlen=2, msg_controllen=0, msg_flags=0}, 0) = 5 <0.000020969>
7647  recvmsg(4<socket:[949744]>, {msg_name=0x7ffd9cd78070, msg_namelen=110 => 0, msg_iov=[...], msg_iovlen=1, msg_controllen=0, msg_flags=0}, 0) = 5 <0.000016585>
7647  sendto(3<socket:[949743]>, ""..., 3, 0, NULL, 0) = 3 <0.000012563>
7647  writev(1</tmp/stdout>, [...], 2) = 4 <0.000013150>
7647  copy_file_range(5</tmp/tr/in>, NULL, 6</tmp/tr/out>, NULL, 1000, 0) = 1000 <0.000041011>
7647  sendfile(6</tmp/tr/out>, 5</tmp/tr/in>, [0] => [5000], 5000) = 5000 <0.000019288>
7647  splice(5</tmp/tr/in>, NULL, 8<pipe:[949745]>, NULL, 100, 0) = 100 <0.000013198>
7647  readv(7<pipe:[949745]>, [...], 2) = 30 <0.000011485>
7647  pwritev2(6</tmp/tr/out>, [...], 2, 0, 0) = 3 <0.000015883>
7647  writev(6</tmp/tr/out>(deleted), [...], 1) = 1 <0.000014091>
7647  read(99, 0x7f00, 1) = -1 EBADF (Bad file descriptor) <0.000001000>
7647  lseek(5</tmp/tr/in>, 0, SEEK_CUR) = 0 <0.000001000>
7647  lseek(5</tmp/tr/in>, 10, SEEK_SET) = 10 <0.000001000>
7647  +++ exited with 0 +++
"#;

    /// Returns the sums and notes of lines.
    fn summed(lines: &str) -> (Tally, Vec<String>) {
        let mut tally = LineTally::default();
        for line in lines.lines() {
            tally.feed(line);
        }
        tally.finish()
    }

    fn tally(lines: &str) -> Tally {
        let (tally, notes) = summed(lines);
        assert_eq!(notes, [] as [&str; 0]);
        tally
    }

    fn file<'a>(tally: &'a Tally, name: &str) -> &'a FileTally {
        let found = tally.files.iter().find(|(file, _)| file.name == name);
        &found.unwrap_or_else(|| panic!("no {name}")).1
    }

    #[test]
    fn every_way_to_move_bytes_is_counted() {
        let tally = tally(SEVERAL);
        let bytes = |name: &str| tally.calls[name].bytes;
        for (name, count) in [
            ("sendmsg", 5),
            ("recvmsg", 5),
            ("sendto", 3),
            ("writev", 5),
            ("copy_file_range", 1000),
            ("sendfile", 5000),
            ("splice", 100),
            ("readv", 30),
            ("pwritev2", 3),
        ] {
            assert_eq!(bytes(name), Some(count), "{name}");
        }
        assert_eq!(bytes("lseek"), None);
        let read = &tally.calls["read"];
        assert_eq!((read.calls, read.bytes), (1, None));
        assert_eq!(read.errors["EBADF"], 1);
        assert_eq!(tally.calls["splice"].traced_ns, 13_198);
    }

    #[test]
    fn files_have_their_directions() {
        let tally = tally(SEVERAL);
        let input = file(&tally, "/tmp/tr/in");
        assert_eq!(input.read.transfer.bytes(), 6100);
        assert_eq!(input.seeks, 1, "asking for the position is not a seek");
        let output = file(&tally, "/tmp/tr/out");
        assert_eq!(output.written.transfer.bytes(), 6000);
        assert_eq!(output.written.apart.bytes(), 3);
        assert_eq!(output.written.stream.bytes(), 1);
        assert_eq!(output.written.all().calls(), 4);
    }

    #[test]
    fn a_call_that_got_less_than_it_asked_for_stands_for_itself() {
        let tally = tally(
            "1 read(3</a>, \"\"..., 10) = 10 <0.000000100>\n\
             1 read(3</a>, \"\"..., 10) = 4 <0.000000100>\n\
             1 read(3</a>, \"\", 10) = 0 <0.000000100>\n",
        );
        let read = &file(&tally, "/a").read;
        assert_eq!((read.stream.calls(), read.stream.bytes()), (1, 10));
        assert_eq!((read.apart.calls(), read.apart.bytes()), (2, 4));
        assert_eq!(read.traced_ns, 300);
    }

    #[test]
    fn calls_are_charged_to_the_program_that_a_process_has_executed() {
        let tally = tally(
            "1 execve(\"/bin/sh\", [\"sh\"], 0x7 /* 3 vars */) = 0 <0.000000100>\n\
             2 read(3</a>, \"\"..., 4) = 4 <0.000000010>\n\
             2 execve(\"/nowhere/tail\", [\"tail\"], 0x7) = -1 ENOENT (No such file) <0.000000001>\n\
             2 execve(\"/usr/bin/tail\", [\"tail\"], 0x7) = 0 <0.000000020>\n\
             2 read(3</b>, \"\"..., 4) = 4 <0.000000030>\n\
             1 read(3</b>, \"\"..., 4) = 4 <0.000000040>\n",
        );
        let programs = tally.programs.iter();
        let seen: Vec<_> = programs
            .map(|one| (&one.name[..], one.calls, one.traced_ns))
            .collect();
        assert_eq!(seen, [("sh", 4, 151), ("tail", 2, 50)]);
        let users = |name| {
            file(&tally, name)
                .programs
                .iter()
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!((users("/a"), users("/b")), (vec![0], vec![0, 1]));
    }

    #[test]
    fn a_copy_is_seen_by_its_sums() {
        let lines = "1 read(3</a>, \"\"..., 9) = 9 <0.1>\n1 write(4</b>, \"\"..., 9) = 9 <0.1>\n";
        let same = tally(lines);
        assert_eq!(same.copies.values().next(), Some(&9));
        let other = tally(&lines.replace("9) = 9", "9) = 8").replacen("= 8", "= 9", 1));
        assert!(other.copies.is_empty());
        // Calls of different threads are not a copy.
        let two = tally(&lines.replace("1 write", "2 write"));
        assert!(two.copies.is_empty());
        assert_eq!(two.threads.len(), 2);
    }

    #[test]
    fn what_never_returned_moved_nothing() {
        let tally = tally(
            "1 read(0<pipe:[1]>,  <unfinished ...>\n1 +++ killed by SIGKILL +++\n\
             2 read(0<pipe:[1]>, 0x1, 5) = ? ERESTARTSYS (To be restarted) <0.1>\n",
        );
        assert_eq!(tally.calls["read"].calls, 1);
        assert!(tally.files.is_empty());
    }

    #[test]
    fn lines_that_are_not_understood_are_told() {
        let (_, notes) = summed("1 read(0<pipe:[1]>, \"\"..., 1) = 1 <0.1>\n1 nonsense\n");
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("1 of strace's 2 lines"), "{notes:?}");
    }
}
