//! The memory that this process and its children may use, as its control group says (cgroup v2): `MemoryHigh=` and
//! `MemoryMax=` of systemd, the limit of a container.
//!
//! Beyond the first the kernel slows the process down, beyond the second it ends it. What only holds files is given back by
//! the kernel before either, and does not count here.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// The control group of a process.
#[derive(Clone, Debug)]
pub(crate) struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Finds the one of this process; `None` without control groups of version 2.
    pub(crate) fn of_this_process() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        Self::find(&groups, Path::new(ROOT))
    }

    /// `groups` is as in `/proc/PID/cgroup`: that of version 2 has the number 0 and no controllers.
    pub(crate) fn find(groups: &str, root: &Path) -> Option<Self> {
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        let folder = root.join(path.trim_start_matches('/'));
        folder.join("memory.current").is_file().then_some(Self(folder))
    }

    /// Returns what is used of what may be used, in percent; `None` if there is no limit, or nobody says.
    pub(crate) fn used_percent(&self) -> Option<u64> {
        let limits = ["memory.high", "memory.max"].into_iter().filter_map(|file| self.number(file));
        let limit = limits.min().filter(|limit| *limit > 0)?;
        let stat = fs::read_to_string(self.0.join("memory.stat")).ok()?;
        let of = |key: &str| {
            let values = stat.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse::<u64>().ok());
            values.sum::<u64>()
        };
        let used = self.number("memory.current")?.saturating_sub(of("active_file") + of("inactive_file"));
        Some(used.saturating_mul(100) / limit)
    }

    /// Reads a file with one number; `None` for `max`, which is none.
    fn number(&self, file: &str) -> Option<u64> {
        fs::read_to_string(self.0.join(file)).ok()?.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_measured_by_the_lowest_limit_and_without_files() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let group = folder.path().join("system.slice/gatewright.service");
        fs::create_dir_all(&group).expect("a folder can be made");
        let write = |file: &str, text: &str| fs::write(group.join(file), text).expect("it can be written");
        let find = |groups: &str| MemoryGroup::find(groups, folder.path());
        let line = "1:name=systemd:/\n0::/system.slice/gatewright.service\n";
        assert!(find(line).is_none(), "no controller of memory");
        write("memory.current", "900\n");
        let found = find(line).expect("it is there");
        assert!(find("1:memory:/a\n").is_none() && find("").is_none());
        write("memory.stat", "anon 500\nactive_file 250\ninactive_file 150\nfile 400\nactive_file_more 9\n");
        write("memory.high", "max\n");
        write("memory.max", "max\n");
        assert_eq!(found.used_percent(), None, "there is no limit");
        write("memory.max", "2000\n");
        assert_eq!(found.used_percent(), Some(25));
        write("memory.high", "1000\n");
        assert_eq!(found.used_percent(), Some(50));
        write("memory.high", "0\n");
        assert_eq!(found.used_percent(), None, "a limit of nothing is met by nobody");
        write("memory.current", "garbage\n");
        write("memory.high", "1000\n");
        assert_eq!(found.used_percent(), None);
    }
}
