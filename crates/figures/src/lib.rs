//! What benchmarks measure: each figure beside the bound it has to reach, and a report with plots.
//!
//! Figures are printed as they come. At the end they are written, with the plots, to `target/bench/NAME.md`, and the
//! exit code says whether a bound was missed.

mod plot;
mod process;

pub use process::{Process, machine_mib};

use plot::Plot;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The figures of one benchmark.
#[derive(Debug)]
pub struct Report {
    name: &'static str,
    /// Only scenarios whose name contains one of these are wanted; none means all.
    words: Vec<String>,
    /// What scenarios are told, as `name=value`.
    options: Vec<(String, String)>,
    rows: Vec<Row>,
    plots: Vec<Plot>,
}

#[derive(Debug)]
struct Row {
    what: String,
    figure: f64,
    unit: &'static str,
    bound: Bound,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// There is none; the figure is to be known.
    None,
}

impl Report {
    /// Which scenarios are wanted, and what they are told, is read from the command line: `cargo bench --bench NAME -- word
    /// word name=value`.
    pub fn from_arguments(name: &'static str) -> Self {
        Self::told(name, std::env::args().skip(1))
    }

    fn told(name: &'static str, arguments: impl Iterator<Item = String>) -> Self {
        let mut report = Report { name, words: Vec::new(), options: Vec::new(), rows: Vec::new(), plots: Vec::new() };
        // What cargo passes itself starts with a dash.
        for argument in arguments.filter(|argument| !argument.starts_with('-')) {
            match argument.split_once('=') {
                Some((name, value)) => report.options.push((name.to_owned(), value.to_owned())),
                None => report.words.push(argument),
            }
        }
        report
    }

    /// What was given as `name=value`.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn wants(&self, scenario: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| scenario.contains(word.as_str()))
    }

    /// For scenarios that take too long to be run unless somebody names them.
    pub fn asks_for(&self, scenario: &str) -> bool {
        self.words.iter().any(|word| word == scenario)
    }

    pub fn at_least(&mut self, what: &str, figure: f64, unit: &'static str, bound: f64) {
        self.row(what, figure, unit, Bound::AtLeast(bound));
    }

    pub fn at_most(&mut self, what: &str, figure: f64, unit: &'static str, bound: f64) {
        self.row(what, figure, unit, Bound::AtMost(bound));
    }

    /// A figure that need not reach anything.
    pub fn tell(&mut self, what: &str, figure: f64, unit: &'static str) {
        self.row(what, figure, unit, Bound::None);
    }

    #[allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]
    fn row(&mut self, what: &str, figure: f64, unit: &'static str, bound: Bound) {
        let row = Row { what: what.to_owned(), figure, unit, bound };
        println!("{:<62} {:>12} {:<8} {}", row.what, number(figure), unit, row.verdict());
        self.rows.push(row);
    }

    /// Curves in one picture: each a name and its points.
    pub fn plot(&mut self, title: &str, axes: (&str, &str), curves: Vec<(String, Vec<(f64, f64)>)>) {
        self.plots.push(Plot { title: title.to_owned(), axes: (axes.0.to_owned(), axes.1.to_owned()), curves });
    }

    /// Writes the report; the code is a failure if a bound was missed.
    #[allow(clippy::print_stdout, reason = "it says where the report is")]
    pub fn finish(self) -> ExitCode {
        let dir = directory();
        let written = std::fs::create_dir_all(&dir).and_then(|()| {
            for (at, plot) in self.plots.iter().enumerate() {
                std::fs::write(dir.join(self.picture(at)), plot.svg())?;
            }
            std::fs::write(dir.join(format!("{}.md", self.name)), self.text())
        });
        match written {
            Ok(()) => println!("report: {}", dir.join(format!("{}.md", self.name)).display()),
            Err(error) => println!("the report could not be written to {}: {error}", dir.display()),
        }
        let missed = self.rows.iter().filter(|row| !row.holds()).count();
        if missed == 0 {
            return ExitCode::SUCCESS;
        }
        println!("{missed} bounds missed");
        ExitCode::FAILURE
    }

    fn picture(&self, at: usize) -> String {
        format!("{}-{}.svg", self.name, at + 1)
    }

    fn text(&self) -> String {
        let mut text = format!("# {}\n\n| what | figure | bound |\n|---|---|---|\n", self.name);
        for row in &self.rows {
            let _ = writeln!(text, "| {} | {} {} | {} |", row.what, number(row.figure), row.unit, row.verdict());
        }
        for (at, plot) in self.plots.iter().enumerate() {
            let _ = write!(text, "\n![{}]({})\n", plot.title, self.picture(at));
        }
        text
    }
}

impl Row {
    fn holds(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.figure >= bound,
            Bound::AtMost(bound) => self.figure <= bound,
            Bound::None => true,
        }
    }

    fn verdict(&self) -> String {
        let (word, bound) = match self.bound {
            Bound::AtLeast(bound) => ("at least", bound),
            Bound::AtMost(bound) => ("at most", bound),
            Bound::None => return String::new(),
        };
        format!("{word} {}{}", number(bound), if self.holds() { "" } else { "  MISSED" })
    }
}

/// With as many digits as are of interest.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 1_000.0 => format!("{value:.0}"),
        middle if middle >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `target/bench`, beside the directory this program was built into.
fn directory() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.ancestors().nth(3).map(|target| target.join("bench")).unwrap_or_else(|| PathBuf::from("bench"))
}

/// In milliseconds; `times` are sorted here.
pub fn percentile(times: &mut [Duration], percent: f64) -> f64 {
    times.sort_unstable();
    let at = (times.len().saturating_sub(1) as f64 * percent / 100.0).round();
    times.get(at as usize).map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report::told("x", ["--bench", "large", "against=a=b"].map(str::to_owned).into_iter())
    }

    #[test]
    fn a_report_says_what_was_missed() {
        let mut report = report();
        report.at_least("pods", 3_999.0, "/s", 4_000.0);
        report.at_most("memory", 12.345, "MiB", 20.0);
        report.tell("nodes", 5.0, "");
        let text = report.text();
        assert!(text.contains("| pods | 3999 /s | at least 4000  MISSED |"), "{text}");
        assert!(text.contains("| memory | 12.35 MiB | at most 20.00 |"), "{text}");
        assert!(text.contains("| nodes | 5.00  |  |"), "{text}");
        assert_eq!(report.rows.iter().map(Row::holds).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn only_what_is_asked_for_is_run() {
        assert!(report().wants("large clusters"));
        assert!(!report().wants("small clusters"));
        assert!(Report { words: Vec::new(), ..report() }.wants("anything"));
        assert_eq!((report().option("against"), report().option("large")), (Some("a=b"), None));
    }

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let mut times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&mut times, 50.0), 51.0);
        assert_eq!(percentile(&mut times, 100.0), 100.0);
        assert!(percentile(&mut [], 50.0).is_nan());
    }
}
