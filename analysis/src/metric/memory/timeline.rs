//! How much memory is in use over time, by what it is for.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use super::categories::{Category, Phases};
use super::events::pairs;
use super::records::{records, within};
use crate::table::Rows;
use crate::{Column, Error, Model, Options, Unit};

pub(super) const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("device", "whose memory it is: CPU, GPU0, …"),
    Column::moment("ts", "when it changes"),
    Column::text("category", "what the memory is for: see the metric"),
    Column::int("allocated", "in use for that from then on").unit(Unit::Bytes),
];

pub(super) fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let mut records = records(model, options.tensorboard)?;
    within(&mut records, model, options);
    let phases = Phases::of(model, &records);
    let mut categories = vec![Category::BeforeTrace; records.len()];
    for (from, to) in pairs(&records, false) {
        let Some(from) = from else { continue };
        let released = to.map(|to| records[to].time);
        let category = phases.category(from, records[from].time, released);
        categories[from] = category;
        if let Some(to) = to {
            categories[to] = category;
        }
    }
    // What is in use of each category now, by device.
    let mut levels: BTreeMap<String, [i64; Category::ALL.len()]> = BTreeMap::new();
    let mut changes: BTreeMap<String, Vec<(i64, Category, i64)>> = BTreeMap::new();
    for (record, category) in records.iter().zip(categories) {
        let device = record.device();
        let known = levels.contains_key(&device);
        let level = levels.entry(device.clone()).or_default();
        let before = *level;
        level[category as usize] += record.bytes;
        if let Some((allocated, _)) = record.totals {
            // The allocator's sum tells what is held that no allocation of the trace accounts for.
            let own: i64 = level[1..].iter().sum();
            level[Category::BeforeTrace as usize] = allocated.saturating_sub(own);
        }
        let changes = changes.entry(device).or_default();
        for category in Category::ALL {
            let now = level[category as usize];
            if now != before[category as usize] || !known && category == Category::BeforeTrace {
                changes.push((record.time, category, now));
            }
        }
    }
    let mut rows = Rows::new(COLUMNS);
    for (device, changes) in changes {
        for (time, category, now) in changes {
            rows.push([
                model.rank.into(),
                device.as_str().into(),
                time.into(),
                category.name().into(),
                now.into(),
            ]);
        }
    }
    rows.finish()
}

#[cfg(test)]
mod tests {
    use crate::Options;
    use crate::metric::memory::{EVENTS, TIMELINE};
    use crate::metric::testing::{rows, table};

    /// Two steps: forward, backward, optimizer. Times are microseconds.
    const LINES: &str = r#"
        user_annotation | ProfilerStep#1 | 1 | 0 | 100 |
        cpu_op | enumerate(DataLoader)#x.__next__ | 1 | 1 | 9 |
        cpu_instant_event | [memory] | 1 | 5 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 1, "Bytes": 10, "Total Allocated": 110, "Total Reserved": 0
        cpu_op | aten::mm | 1 | 12 | 10 |
        cpu_instant_event | [memory] | 1 | 13 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 2, "Bytes": 20, "Total Allocated": 130, "Total Reserved": 0
        cpu_instant_event | [memory] | 1 | 14 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 3, "Bytes": 5, "Total Allocated": 135, "Total Reserved": 0
        cpu_instant_event | [memory] | 1 | 16 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 3, "Bytes": -5, "Total Allocated": 130, "Total Reserved": 0
        cpu_op | autograd::engine::evaluate_function: MmBackward0 | 2 | 30 | 10 |
        cpu_instant_event | [memory] | 2 | 31 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 4, "Bytes": 40, "Total Allocated": 170, "Total Reserved": 0
        cpu_instant_event | [memory] | 2 | 32 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 5, "Bytes": 7, "Total Allocated": 177, "Total Reserved": 0
        cpu_op | torch::autograd::AccumulateGrad | 2 | 42 | 6 |
        cpu_instant_event | [memory] | 2 | 45 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 5, "Bytes": -7, "Total Allocated": 170, "Total Reserved": 0
        cpu_instant_event | [memory] | 1 | 50 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 2, "Bytes": -20, "Total Allocated": 150, "Total Reserved": 0
        user_annotation | Optimizer.step#Adam.step | 1 | 60 | 20 |
        cpu_instant_event | [memory] | 1 | 61 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 6, "Bytes": 80, "Total Allocated": 230, "Total Reserved": 0
        cpu_instant_event | [memory] | 1 | 62 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 7, "Bytes": 3, "Total Allocated": 233, "Total Reserved": 0
        cpu_instant_event | [memory] | 1 | 63 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 7, "Bytes": -3, "Total Allocated": 230, "Total Reserved": 0
        cpu_instant_event | [memory] | 1 | 90 | 0 | "Device Type": 0, "Device Id": -1, "Addr": 9, "Bytes": -100, "Total Allocated": 130, "Total Reserved": 0
        user_annotation | ProfilerStep#2 | 1 | 100 | 100 |
        cpu_op | autograd::engine::evaluate_function: MmBackward0 | 2 | 130 | 10 |
    "#;

    #[test]
    fn allocations_have_the_category_of_where_they_are_made_and_how_long_they_are_held() {
        let events = table(&EVENTS, LINES, &Options::default());
        assert_eq!(
            rows(&events, &["size", "category"]),
            [
                "10 input",
                "20 activation",
                "5 temporary",
                "40 gradient",
                "7 temporary",
                "80 optimizer_state",
                "3 temporary",
                "100 before_trace",
            ]
        );
    }

    #[test]
    fn categories_add_up_to_what_the_allocator_has() {
        let timeline = table(&TIMELINE, LINES, &Options::default());
        let found = rows(&timeline, &["ts", "category", "allocated"]);
        assert_eq!(found[0], "5000 before_trace 100");
        assert_eq!(found[1], "5000 input 10");
        assert_eq!(found.last().map(String::as_str), Some("90000 before_trace 0"));
        let mut last = std::collections::BTreeMap::new();
        for row in &found {
            let words: Vec<&str> = row.split(' ').collect();
            last.insert(words[1].to_owned(), words[2].parse::<i64>().unwrap());
        }
        assert_eq!(last.values().sum::<i64>(), 130);
        assert_eq!((last["gradient"], last["optimizer_state"], last["activation"]), (40, 80, 0));
    }
}
