//! A picture of some curves, as SVG.

use std::fmt::Write as _;

#[derive(Debug)]
pub(crate) struct Plot {
    pub title: String,
    pub axes: (String, String),
    pub curves: Vec<(String, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
/// Around the area that curves are drawn in.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
const COLOURS: [&str; 5] = ["#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df"];

impl Plot {
    pub(crate) fn svg(&self) -> String {
        let points = || self.curves.iter().flat_map(|(_, points)| points);
        let across = Scale::new(points().map(|point| point.0), LEFT, WIDTH - RIGHT);
        let up = Scale::new(points().map(|point| point.1), HEIGHT - BOTTOM, TOP);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        write_text(&mut svg, (WIDTH / 2.0, 20.0), "middle", &self.title);
        write_text(&mut svg, (WIDTH / 2.0, HEIGHT - 12.0), "middle", &self.axes.0);
        write_text(&mut svg, (8.0, TOP - 12.0), "start", &self.axes.1);
        for tick in across.ticks() {
            let x = across.place(tick);
            write_line(&mut svg, (x, TOP), (x, HEIGHT - BOTTOM));
            write_text(&mut svg, (x, HEIGHT - BOTTOM + 16.0), "middle", &short(tick));
        }
        for tick in up.ticks() {
            let y = up.place(tick);
            write_line(&mut svg, (LEFT, y), (WIDTH - RIGHT, y));
            write_text(&mut svg, (LEFT - 6.0, y + 4.0), "end", &short(tick));
        }
        for (at, (name, points)) in self.curves.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let place = |point: &(f64, f64)| format!("{:.1},{:.1}", across.place(point.0), up.place(point.1));
            let path: Vec<String> = points.iter().map(place).collect();
            let _ = writeln!(
                svg,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
                path.join(" ")
            );
            let y = TOP + 16.0 * (at + 1) as f64;
            let _ = writeln!(
                svg,
                "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>",
                LEFT + 8.0,
                y - 9.0
            );
            write_text(&mut svg, (LEFT + 24.0, y), "start", name);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn write_text(svg: &mut String, at: (f64, f64), anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{text}</text>", at.0, at.1);
}

fn write_line(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#d0d7de\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// From zero to the largest value, over a stretch of the picture.
struct Scale {
    max: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let max = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        Scale { max: if max > 0.0 { max } else { 1.0 }, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        self.from + (self.to - self.from) * value / self.max
    }

    /// Some round values: steps of one, two or five times a power of ten.
    fn ticks(&self) -> Vec<f64> {
        let magnitude = 10_f64.powf((self.max / 5.0).log10().floor());
        let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| magnitude * factor * 6.0 > self.max);
        let step = magnitude * factor.unwrap_or(10.0);
        (0..=(self.max / step).floor() as usize).map(|number| number as f64 * step).collect()
    }
}

fn short(value: f64) -> String {
    match value {
        large if large >= 1e6 => format!("{}M", large / 1e6),
        large if large >= 1e3 => format!("{}k", large / 1e3),
        small => format!("{}", (small * 1e6).round() / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_and_round() {
        let ticks = |max: f64| Scale::new([max].into_iter(), 0.0, 1.0).ticks();
        assert_eq!(ticks(150_000.0), [0.0, 50_000.0, 100_000.0, 150_000.0]);
        assert_eq!(ticks(0.9).len(), 5);
        assert_eq!(ticks(0.0).first(), Some(&0.0));
        assert_eq!(short(50_000.0), "50k");
    }

    #[test]
    fn a_picture_holds_its_curves() {
        let curves = vec![("a < b".to_owned(), vec![(0.0, 0.0), (10.0, 5.0)])];
        let plot = Plot { title: "t".to_owned(), axes: ("x".to_owned(), "y".to_owned()), curves };
        let svg = plot.svg();
        assert!(svg.contains("80.0,350.0 700.0,40.0"), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.ends_with("</svg>\n"));
    }
}
