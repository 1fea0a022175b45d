//! Work on devices, as Kineto writes it: what the hub keeps apart is among the arguments.

use std::io::{self, Write};

use super::Writer;
use crate::chrome::arrows::End;
use crate::chrome::operators::Operators;
use crate::chrome::own;
use crate::json::{write_int, write_string, write_uint};
use crate::trace::{Activity, ActivityId, EventRef, Launch, Phase, StrId, work_category};

impl<W: Write> Writer<'_, W> {
    /// Work, unless it is `kept` in another way, and the ends of arrows at it.
    pub(super) fn activity(&mut self, id: ActivityId, kept: bool) -> io::Result<()> {
        let trace = self.line.trace;
        let activity = trace.activities.get(id);
        let event = EventRef::Activity(id);
        if !kept {
            self.work(&activity)?;
        }
        let position = trace.activities.position(id);
        let launch = self.arrows.launch(activity.correlation);
        let marked = position.is_some_and(|position| position.marks != 0);
        if launch.is_none() && !marked && self.arrows.at(event).is_empty() {
            return Ok(());
        }
        let ids = self.places.queue(activity.queue).to_owned();
        // A file that has an order has its own arrows, too.
        if let Some(id) = launch.filter(|_| position.is_none()) {
            let (name, time, position) = (None, None, 0);
            let end = End { event, phase: Phase::End, id, name, time, position };
            self.arrow(end, &ids, activity.start.0)?;
        }
        self.arrows(event, position, activity.correlation, (&ids, activity.start.0))
    }

    fn work(&mut self, activity: &Activity) -> io::Result<()> {
        let trace = self.line.trace;
        let stage = activity.stage.map(|stage| &trace.stages[stage]);
        let kernel = activity.kernel.map(|kernel| trace.kernels[kernel].demangled);
        let name = kernel.filter(|name| *name != StrId::NONE).unwrap_or(activity.name);
        self.out.begin();
        let ids = self.places.queue(activity.queue);
        let out = &mut self.out.text;
        self.line.head(out, b'X', work_category(trace, stage), None, name);
        self.line.quotes.write(out, b'X', ids, true);
        self.line.time(out, activity.start.0);
        out.extend_from_slice(b", \"dur\": ");
        self.line.duration(out, activity.dur.0.max(0));
        self.line.members(out, activity.args, &[]);
        self.activity_args(activity);
        self.out.end()
    }

    /// An activity's arguments, in Kineto's order: those of the kernel and of the launch lie
    /// among the others.
    fn activity_args(&mut self, activity: &Activity) {
        let trace = self.line.trace;
        let of_launch = |operators: &Operators| operators.of_launch(activity.correlation);
        let operator = self.operators.as_ref().and_then(of_launch);
        let out = &mut self.out.text;
        out.extend_from_slice(b", \"args\": {");
        let first = out.len();
        let mut kernel = activity.kernel.and_then(|kernel| trace.kernels[kernel].args);
        let mut launch = activity.launch.map(|launch| trace.launches[launch]);
        let has = |name: Option<StrId>| {
            name.is_some_and(|name| trace.args.find(activity.args, name).is_some())
        };
        let missing = |out: &mut Vec<u8>, name: Option<StrId>, text: &str, value: i64| {
            if !has(name) {
                if out.len() > first {
                    out.extend_from_slice(b", ");
                }
                write_string(out, text);
                out.extend_from_slice(b": ");
                write_int(out, value);
            }
        };
        if let Some(number) = operator {
            own::Out { text: out, first }.put("External id", |to| write_uint(to, number.into()));
        }
        // Our own recording says these by other means.
        if !self.foreign_producer {
            let device = trace.devices[trace.queues[activity.queue].device].number;
            missing(out, self.names.device, "device", device);
            missing(out, self.names.stream, "stream", trace.stream(activity.queue));
            if activity.correlation != 0 {
                let correlation = self.arrows.number(activity.correlation) as i64;
                missing(out, self.names.correlation, "correlation", correlation);
            }
        }
        if let Some(own) = &self.own {
            own.activity(trace, activity, &mut own::Out { text: out, first });
        }
        for (name, value) in trace.args.entries(activity.args) {
            // What another profiler of the program numbered is of its own operators.
            if operator.is_some() && trace.strings.get(name) == "External id" {
                continue;
            }
            if Some(name) == self.names.blocks_per_sm {
                self.line.own(out, first, kernel.take());
            }
            if Some(name) == self.names.occupancy {
                dims(out, first, launch.take());
            }
            self.line.arg(out, first, name, value);
        }
        let own = self.own.as_ref();
        for (name, value) in trace.args.entries(kernel) {
            if !own.is_some_and(|own| own.replaces(name)) {
                self.line.arg(out, first, name, value);
            }
        }
        dims(out, first, launch);
        if let (Some(operators), Some(number), Some(_)) =
            (&self.operators, operator, activity.kernel)
        {
            for (name, value) in operators.collective(trace, number) {
                self.line.arg(out, first, name, value);
            }
        }
        out.push(b'}');
    }
}

/// Grid and block, as Kineto writes them.
fn dims(out: &mut Vec<u8>, first: usize, launch: Option<Launch>) {
    let Some(launch) = launch else { return };
    for (name, dim) in [("grid", launch.grid), ("block", launch.block)] {
        let Some(dim) = dim else { continue };
        if out.len() > first {
            out.extend_from_slice(b", ");
        }
        write_string(out, name);
        out.extend_from_slice(b": [");
        for (index, extent) in [dim.x, dim.y, dim.z].into_iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b", ");
            }
            write_uint(out, extent.into());
        }
        out.push(b']');
    }
}
