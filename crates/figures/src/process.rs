//! What a running program uses, as the kernel counts it.

/// A running program.
#[derive(Clone, Debug)]
pub struct Process(String);

/// In a second; the kernel's interface has had this unit since ever.
const TICKS: f64 = 100.0;

impl Process {
    pub fn this() -> Self {
        Process("self".to_owned())
    }

    pub fn of(id: u32) -> Self {
        Process(id.to_string())
    }

    /// What it has used so far, in user and system mode.
    pub fn cpu_seconds(&self) -> f64 {
        let stat = self.read("stat");
        // The name of the program may hold anything; what follows its last bracket is numbers.
        let numbers: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| numbers.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(f64::NAN);
        (ticks(11) + ticks(12)) / TICKS
    }

    pub fn resident_mib(&self) -> f64 {
        self.memory("VmRSS:")
    }

    /// The most that was ever resident.
    pub fn peak_mib(&self) -> f64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, field: &str) -> f64 {
        mib(&self.read("status"), field)
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.0)).unwrap_or_default()
    }
}

/// All memory of the machine.
pub fn machine_mib() -> f64 {
    mib(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal:")
}

/// A field of what the kernel tells of memory.
fn mib(told: &str, field: &str) -> f64 {
    let line = told.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().map_or(f64::NAN, |kib| kib / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_knows_what_it_uses() {
        let this = Process::this();
        assert!(this.resident_mib() > 0.5 && this.peak_mib() >= this.resident_mib());
        assert!(this.cpu_seconds() >= 0.0);
        assert!(Process::of(0).resident_mib().is_nan());
    }
}
