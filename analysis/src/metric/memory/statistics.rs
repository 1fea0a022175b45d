//! What operators allocate and free, by name.

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use super::places::Places;
use super::records::{records, within};
use crate::table::Rows;
use crate::{Column, Error, Model, Options, Unit};

pub(super) const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("device", "whose memory it is: CPU, GPU0, …"),
    Column::text("operator", "the operator; null for what happens outside of all"),
    Column::int("calls", "how often it came; null outside of operators"),
    Column::int("size_increase", "allocated less freed").unit(Unit::Bytes),
    Column::int("self_size_increase", "that by itself").unit(Unit::Bytes),
    Column::int("allocation_count", "how many allocations"),
    Column::int("self_allocation_count", "those by itself"),
    Column::int("allocation_size", "allocated; the most first").unit(Unit::Bytes),
    Column::int("self_allocation_size", "that by itself").unit(Unit::Bytes),
];

/// Increase, allocations, allocated.
type Sum = [i64; 3];

pub(super) fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let plugin = options.tensorboard;
    let mut records = records(model, plugin)?;
    within(&mut records, model, options);
    let places = Places::of(model, plugin, &records);
    let mut sums: BTreeMap<(String, Option<&str>), (Sum, Sum)> = BTreeMap::new();
    for (record, around) in records.iter().zip(&places.around) {
        let device = record.device();
        let more = record.bytes.max(0);
        let own: Sum = [record.bytes, i64::from(more > 0), more];
        let mut names: Vec<&str> = around.iter().map(|row| model.name(*row)).collect();
        let innermost = names.first().copied();
        if innermost.is_none() && plugin.is_some() {
            continue;
        }
        add(&mut sums.entry((device.clone(), innermost)).or_default().1, own);
        if plugin.is_none() {
            names.sort_unstable();
            names.dedup();
        }
        for name in names {
            add(&mut sums.entry((device.clone(), Some(name))).or_default().0, own);
        }
        if innermost.is_none() {
            add(&mut sums.entry((device, None)).or_default().0, own);
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    match plugin {
        Some(_) => sums.retain(|(_, (all, own))| all.iter().chain(own).any(|value| *value != 0)),
        None => sums.order_by_key(|((device, _), (all, _))| (device.clone(), -all[2])),
    }
    let mut rows = Rows::new(COLUMNS);
    for ((device, name), (all, own)) in sums {
        rows.push([
            model.rank.into(),
            device.as_str().into(),
            name.into(),
            name.and_then(|name| places.calls.get(name).copied()).into(),
            all[0].into(),
            own[0].into(),
            all[1].into(),
            own[1].into(),
            all[2].into(),
            own[2].into(),
        ]);
    }
    rows.finish()
}

fn add(sum: &mut Sum, more: Sum) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(more));
}
