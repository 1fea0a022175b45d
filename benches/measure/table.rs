//! Tables in Markdown.

use super::turns::{Case, best, median, ratio};

/// What a row must stay below.
#[derive(Clone, Copy)]
pub enum Target {
    None,
    /// Times the floor.
    Ratio(f64),
    /// Nanoseconds.
    Nanos(f64),
}

pub struct Row {
    pub name: String,
    pub nanos: Vec<f64>,
    pub floor: Vec<f64>,
    pub target: Target,
}

impl Row {
    /// A case next to the floor that ran in turns with it.
    pub fn new(case: &Case<'_>, floor: &Case<'_>, target: Target) -> Row {
        let (nanos, floor) = (case.nanos.clone(), floor.nanos.clone());
        Row { name: case.name.clone(), nanos, floor, target }
    }
}

/// Prints a table. The ratio is the median over all rounds of a case's batch to the
/// floor's batch in the same round.
pub fn print(title: &str, rows: &[Row]) {
    println!("\n### {title}\n");
    println!("| case | best ns | median ns | × floor, best | × floor, median | target | |");
    println!("|---|--:|--:|--:|--:|--:|---|");
    for row in rows {
        let (best_ns, median_ns) = (best(&row.nanos), median(&row.nanos));
        let ratios = (best_ns / best(&row.floor), ratio(&row.nanos, &row.floor));
        let (target, met) = match row.target {
            Target::None => (String::new(), None),
            Target::Ratio(most) => (format!("≤ {most:.2} ×"), Some((ratios.1, ratios.0, most))),
            Target::Nanos(most) => (format!("≤ {most} ns"), Some((median_ns, best_ns, most))),
        };
        let verdict = match met {
            None => "",
            Some((median, _, most)) if median <= most => "met",
            Some((_, best, most)) if best <= most => "met by the best batch",
            Some(_) => "**missed**",
        };
        println!(
            "| {} | {best_ns:.2} | {median_ns:.2} | {:.2} | {:.2} | {target} | {verdict} |",
            row.name, ratios.0, ratios.1
        );
    }
}
