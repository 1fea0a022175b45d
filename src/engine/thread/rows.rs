//! A thread's tracks in the trace: its own and those beside it, their names, and saying all of
//! that again when a reader may not have seen it.

use kymograph_protos::StrId;
use kymograph_protos::packet::{EventType, Strings, ThreadTrack, Track};
use kymograph_protos::rows;

use super::super::context::Context;
use super::super::edges::crossing;
use super::super::nesting::Begun;
use super::super::record::Decoded;
use super::super::window::Side;
use super::Thread;
use crate::process::identity::mix;

/// Slices on a track, one inside the other: trace_processor drops those deeper than 512.
const MAX_DEPTH: usize = 500;

impl Thread {
    /// Gives the thread another name; it is described again before its next event.
    pub fn rename(&mut self, name: &[u8]) {
        self.named = true;
        if self.name != name {
            self.name = name.to_vec();
            self.described = false;
        }
    }

    /// Takes over what the system calls the thread now, unless the program named it.
    pub fn refresh_name(&mut self, cx: &mut Context<'_>) {
        if self.named || !self.described {
            return;
        }
        if let Some(name) = cx.origin.thread_name(self.tid)
            && name != self.name
        {
            self.name = name;
            self.describe(cx);
        }
    }

    /// Makes sure that the sequence and the thread's track are there to write to.
    #[inline]
    pub fn ready(&mut self, cx: &mut Context<'_>) {
        if self.sequence.is_stale(cx.clocks.boottime) {
            self.sequence.restart(cx.out, self.uuid, &cx.stated, cx.clocks.boottime, false);
            self.described = false;
        }
        if !self.described {
            self.described = true;
            self.describe(cx);
        }
    }

    /// Writes a new name after which the thread has recorded nothing.
    pub fn describe_if_due(&mut self, cx: &mut Context<'_>) {
        if self.sequence.is_started() && !self.described {
            self.ready(cx);
        }
    }

    #[cold]
    fn describe(&mut self, cx: &mut Context<'_>) {
        cx.process.threads.insert(self.tid);
        let track = ThreadTrack {
            uuid: self.uuid,
            parent: cx.process.uuid,
            pid: cx.process.pid,
            tid: self.tid,
            name: &self.name,
            rank: rows::thread_rank(cx.process.pid.into(), self.tid.into(), &self.name),
        };
        track.write(cx.out, self.sequence.id());
    }

    /// The track of slices at this depth: the thread's own (0), or one for the slices that
    /// are too deep for it.
    #[inline]
    pub fn track_at(&mut self, depth: usize, cx: &mut Context<'_>) -> u64 {
        match depth / MAX_DEPTH {
            0 => 0,
            part => {
                let from = part * MAX_DEPTH;
                self.sibling(part as u64, &format!("from depth {from}"), cx)
            }
        }
    }

    /// The track of slices of a nesting stack that cross others.
    pub fn side_track(&mut self, stack: StrId, cx: &mut Context<'_>) -> u64 {
        let category = match stack {
            StrId::NONE => "scopes".into(),
            stack => String::from_utf8_lossy(cx.strings.text(stack).bytes),
        };
        self.sibling(1 << 32 | u64::from(stack.0), &category, cx)
    }

    #[cold]
    fn sibling(&mut self, key: u64, what: &str, cx: &mut Context<'_>) -> u64 {
        let uuid = mix(&[self.uuid, key]);
        if !self.siblings.contains(&uuid) {
            self.siblings.push(uuid);
            let thread = String::from_utf8_lossy(&self.name);
            let name = format!("{thread} {} · {what}", self.tid);
            let track =
                Track { uuid, parent: self.uuid, name: name.as_bytes(), ..Track::default() };
            track.write(cx.out, self.sequence.id());
        }
        uuid
    }

    /// Forgets what was stated: the sequence restarts.
    pub fn expire(&mut self) {
        self.sequence.expire();
        self.described = false;
        self.siblings.clear();
    }

    /// Says anew what is open.
    pub fn restate(&mut self, cx: &mut Context<'_>) {
        let mut decoded = std::mem::take(&mut self.decoded);
        for depth in 0..self.stack.len() {
            if !self.stack[depth].written {
                continue;
            }
            self.track_at(depth, cx);
            let begun = std::mem::take(&mut self.stack[depth].begun);
            self.begin_again(&begun, self.stack[depth].track, &mut decoded, cx);
            self.stack[depth].begun = begun;
        }
        let sides = std::mem::take(&mut self.sides);
        for (stack, open) in sides.iter().filter(|(_, open)| !open.is_empty()) {
            self.side_track(*stack, cx);
            open.iter()
                .for_each(|open| self.begin_again(&open.begun, open.track, &mut decoded, cx));
        }
        self.sides = sides;
        self.decoded = decoded;
    }

    pub fn begin_again(
        &mut self,
        begun: &Begun,
        track: u64,
        decoded: &mut Decoded,
        cx: &mut Context<'_>,
    ) {
        if !begun.record.is_empty() {
            let (head, _) = decoded.read(&begun.record, cx.strings);
            if cx.restarts {
                decoded.leave_flows_open();
            }
            if cx.began_early(&head) {
                crossing::mark(decoded, &cx.origin.texts, Side::Opens);
            }
            self.emit(EventType::Begin, begun.time, track, &head, decoded, cx);
        }
    }
}
