//! The reader.

use std::io::Read;

use crate::builder::Builder;
use crate::json::{Error, Value, whole};
use crate::stacks::{Frame, Stack};
use crate::trace::{StrId, Trace};

/// The number of the process that all threads are in: the file has none.
const PROCESS: i64 = 1;

/// Reads a file.
///
/// # Errors
/// When it is none of speedscope's, or no JSON.
pub(crate) fn read(input: impl Read) -> Result<Trace, Error> {
    whole(input, |root| {
        let frames = root.get("shared").and_then(|shared| shared.get("frames"));
        let (Some(frames), Some(profiles)) = (frames, root.get("profiles")) else {
            return Err(Error::NotATrace("JSON without speedscope's `shared.frames`".to_owned()));
        };
        let mut build = Builder::default();
        let name = root.text("name").unwrap_or_else(|| "profile".into());
        build.name_process(PROCESS, &name);
        let frames: Vec<Frame> =
            frames.items().map(|frame| self::frame(&mut build, frame)).collect();
        for (row, profile) in profiles.items().enumerate() {
            let events = match profile.text("type").as_deref() {
                Some("evented") => true,
                Some("sampled") => false,
                _ => {
                    build.trace.facts.warn("profile of an unknown type, left out", None);
                    continue;
                }
            };
            let thread = row as i64 + 1;
            build.name_thread(PROCESS, thread, &profile.text("name").unwrap_or_default());
            let track = build.thread(PROCESS, thread);
            let category = build.text("sample");
            let mut reader = Profile::new(profile, Stack::new(track, category), &frames);
            if events {
                reader.events(&mut build, profile);
            } else {
                reader.samples(&mut build, profile);
            }
            reader.finish(&mut build);
        }
        Ok(build.finish("speedscope"))
    })?
}

/// A function: its name, and where it is.
fn frame(build: &mut Builder, frame: Value<'_>) -> Frame {
    let name = build.text(&frame.text("name").unwrap_or_default());
    let mut args = Vec::new();
    if let Some(file) = frame.text("file") {
        args.push((build.text("file"), build.string(&file)));
    }
    for key in ["line", "col"] {
        if let Some(number) = frame.get(key).and_then(Value::int) {
            args.push((build.text(key), crate::trace::Value::I64(number)));
        }
    }
    (name, build.trace.args.add(&args))
}

/// One profile, which is being read.
struct Profile<'a> {
    stack: Stack,
    frames: &'a [Frame],
    /// Nanoseconds of a unit.
    unit: f64,
    start: f64,
    /// Frames that are not in the list.
    unknown: u64,
    /// Ends that fit no beginning.
    loose: u64,
    end: i64,
}

impl<'a> Profile<'a> {
    fn new(profile: Value<'_>, stack: Stack, frames: &'a [Frame]) -> Profile<'a> {
        let unit = match profile.text("unit").as_deref() {
            Some("seconds") => 1e9,
            Some("milliseconds") => 1e6,
            Some("microseconds") => 1e3,
            // Bytes, and numbers of samples: one each.
            _ => 1.0,
        };
        let start = profile.get("startValue").and_then(Value::float).unwrap_or(0.0);
        Profile { stack, frames, unit, start, unknown: 0, loose: 0, end: i64::MIN }
    }

    fn nanos(&self, value: f64) -> i64 {
        // What is too large for either is the largest there is.
        (value * self.unit).round() as i64
    }

    fn frame(&mut self, value: Value<'_>) -> Frame {
        let frame = value.index().and_then(|index| self.frames.get(index));
        self.unknown += u64::from(frame.is_none());
        frame.copied().unwrap_or((StrId::NONE, None))
    }

    fn samples(&mut self, build: &mut Builder, profile: Value<'_>) {
        let Some(samples) = profile.get("samples") else { return };
        let mut weights = profile.get("weights").into_iter().flat_map(Value::items);
        let mut at = self.start;
        let mut stack = Vec::new();
        for sample in samples.items() {
            let weight = weights.next().and_then(Value::float).unwrap_or(1.0).max(0.0);
            stack.clear();
            for frame in sample.items() {
                let frame = self.frame(frame);
                stack.push(frame);
            }
            let times = (self.nanos(at), self.nanos(at + weight));
            self.stack.sample(&mut build.trace, times, &stack);
            at += weight;
        }
    }

    fn events(&mut self, build: &mut Builder, profile: Value<'_>) {
        let events = profile.get("events").into_iter().flat_map(Value::items);
        for event in events {
            let (Some(at), Some(frame)) =
                (event.get("at").and_then(Value::float), event.get("frame"))
            else {
                self.loose += 1;
                continue;
            };
            let (time, frame) = (self.nanos(at), self.frame(frame));
            self.end = self.end.max(time);
            match event.text("type").as_deref() {
                Some("O") => self.stack.push(&mut build.trace, frame, time),
                Some("C") if self.stack.innermost() == Some(frame) => {
                    let depth = self.stack.depth() - 1;
                    self.stack.close(&mut build.trace, depth, time);
                }
                _ => self.loose += 1,
            }
        }
        let last = profile.get("endValue").and_then(Value::float).unwrap_or(0.0);
        self.end = self.end.max(self.nanos(last));
        self.stack.close(&mut build.trace, 0, self.end);
    }

    fn finish(self, build: &mut Builder) {
        let facts = &mut build.trace.facts;
        for (what, count) in [
            ("function that is not in the list of frames", self.unknown),
            ("event of a profile that fits no other, left out", self.loose),
        ] {
            for _ in 0..count.min(1) {
                facts.warn(what, None);
            }
            if let Some(warning) = facts.warnings.iter_mut().find(|warning| warning.what == what) {
                warning.count += count.saturating_sub(1);
            }
        }
        self.stack.finish(&mut build.trace);
    }
}
