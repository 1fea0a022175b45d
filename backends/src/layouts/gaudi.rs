//! Synapse's.

use super::Table;
use crate::gaudi::layout as hpu;

pub(super) fn add(table: &mut Table) {
    let fields = [
        ("name", hpu::NAME),
        ("category", 8),
        ("type", 16),
        ("timestamp", 32),
        ("duration", 48),
        ("engineType", 64),
        ("engineIndex", 68),
        ("contextId", 72),
        ("arguments.dataType", hpu::DATA_TYPE),
        ("arguments.operation", hpu::OPERATION),
    ];
    let new = [
        ("arguments.recipeId", 96),
        ("arguments.recipeName", 104),
        ("arguments.streamHandle", 112),
        ("arguments.eventHandle", 120),
        ("arguments.extraArgs.count", 128),
        ("arguments.extraArgs.args", 136),
    ];
    let size = hpu::Layout::New.stride();
    table.add("gaudi", "synTraceEvent", size, size, &[&fields[..], &new].concat());
    let size = hpu::Layout::Old.stride();
    table.add("gaudi", "synTraceEvent", size, size, &fields);
    let numbers = [
        ("synSuccess", 0),
        ("synFail", 26),
        ("synTraceAll", 1),
        ("synTraceHost", 2),
        ("synTraceDevice", 3),
        ("synTraceFormatTEF", 1),
    ];
    for (name, value) in numbers {
        table.number("gaudi", name, value);
    }
}
