//! What stands around the events: members of the outermost object.

use super::args::{Values, intern, text_of};
use super::rows::Rows;
use crate::json::{self, Element, Kind};
use crate::trace::{ClockReading, Nanos, Trace, Value};

/// Takes a member. Scalars are facts as they are; of lists and objects the text is.
pub(super) fn member(
    trace: &mut Trace,
    rows: &mut Rows,
    values: &mut Values,
    key: &str,
    element: Element<'_>,
) {
    let root = element.root();
    if key == "deviceProperties" && devices(trace, rows, values, root).is_some() {
        return;
    }
    let value = match root.kind() {
        Kind::Array | Kind::Object => text_of(trace, root),
        _ => values.value(trace, root),
    };
    if let ("baseTimeNanoseconds", Value::I64(base)) = (key, value) {
        let realtime = Some(Nanos(base));
        trace.facts.readings.push(ClockReading { realtime, ..ClockReading::default() });
    }
    let key = trace.strings.intern(key);
    trace.facts.metadata.push((key, value));
}

/// `deviceProperties`, when they are what Kineto writes: objects with a number each.
fn devices(
    trace: &mut Trace,
    rows: &mut Rows,
    values: &mut Values,
    list: json::Value<'_>,
) -> Option<()> {
    let mut numbers = Vec::new();
    for device in list.items() {
        let Some(json::Number::Int(number)) = json::number(device.get("id")?) else { return None };
        let repeated = numbers.contains(&number)
            || rows.device_found(number).is_some_and(|id| trace.devices[id].properties.is_some());
        if repeated || device.get("name").is_some_and(|name| name.kind() != Kind::String) {
            return None;
        }
        numbers.push(number);
    }
    if numbers.is_empty() {
        return None;
    }
    for (device, number) in list.items().zip(numbers) {
        let id = rows.device(trace, number);
        let mut properties = Vec::new();
        for (key, value) in device.fields() {
            match key.raw() {
                "id" => {}
                "name" => trace.devices[id].name = intern(trace, value.as_str()),
                _ => {
                    let key = values.key(trace, key);
                    properties.push((key, values.value(trace, value)));
                }
            }
        }
        trace.devices[id].properties = trace.args.add(&properties);
        let name = trace.strings.get(trace.devices[id].name).to_owned();
        let vendor = ["NVIDIA", "AMD", "Intel"].into_iter().find(|vendor| name.contains(vendor));
        // V100s are called Tesla and nothing else.
        let vendor = vendor.or_else(|| name.starts_with("Tesla").then_some("NVIDIA"));
        if let Some(vendor) = vendor {
            trace.devices[id].vendor = trace.strings.intern(vendor);
        }
    }
    Some(())
}
