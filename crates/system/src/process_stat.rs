//! Reads the line in which the kernel describes a process.

/// Fields of /proc/PID/stat (proc_pid_stat(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStat {
    pub name: String,
    pub state: String,
    pub parent: i32,
    /// User and system time of all threads of the process, in clock ticks.
    pub cpu_ticks: u64,
    /// The process's start time since boot, in clock ticks.
    pub start_ticks: u64,
}

impl ProcessStat {
    /// Reads the fields; `None` if there is no such process, or it is hidden.
    pub fn read(pid: u32) -> Option<Self> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Option<Self> {
        // The name in parentheses may itself contain spaces and parentheses.
        let (start, rest) = text.rsplit_once(')')?;
        let (_, name) = start.split_once('(')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The manual's field 3 is the first field here.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            name: name.to_owned(),
            state: (*fields.first()?).to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            cpu_ticks: number(14)?.saturating_add(number(15)?),
            start_ticks: number(22)?,
        })
    }
}

/// Lists the PIDs of all visible processes.
pub fn all_processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_what_separates_fields() {
        let text = "7 (a) R 1 (b) S 3 7 7 0 -1 4194560 1 2 3 4 50 6 7 8 20 0 1 0 99 1024 200";
        let stat = ProcessStat::parse(text).unwrap();
        assert_eq!(stat.name, "a) R 1 (b");
        assert_eq!((stat.state.as_str(), stat.parent), ("S", 3));
        assert_eq!((stat.cpu_ticks, stat.start_ticks), (56, 99));
        assert_eq!(ProcessStat::parse("7 (a) S 3 7"), None);
    }

    #[test]
    fn this_process_is_among_all_and_has_begun() {
        let own = std::process::id();
        assert!(all_processes().any(|pid| pid == own));
        assert!(ProcessStat::read(own).unwrap().start_ticks > 0);
        assert_eq!(ProcessStat::read(u32::MAX), None);
    }
}
