//! CUPTI's.

use super::{ANY, Table};
use crate::nvidia::kinds::KINDS;

pub(super) fn add(table: &mut Table) {
    let mut known = Vec::new();
    for (name, number, layout) in KINDS {
        if !layout.name.is_empty() && !known.contains(&layout.name) {
            known.push(layout.name);
            let name = format!("CUpti_Activity{}*", layout.name);
            table.add("nvidia", &name, layout.least, ANY, layout.fields);
        }
        table.number("nvidia", &format!("CUPTI_ACTIVITY_KIND_{name}"), (*number).into());
    }
}
