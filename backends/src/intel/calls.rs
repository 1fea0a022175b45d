//! Calls of SYCL and Level Zero, waits, collectives, overheads: what threads did.
//!
//! Calls lie on a track under their thread's, as ranges: those inside others go to further
//! lanes of it. They are written when all buffers at hand were read, outer ones first.
//!
//! A call of SYCL makes calls of Level Zero, with the same correlation id; one of them gets
//! the arrow. Which is known when both are there, and the inner one comes first: so a call
//! of Level Zero that may launch something waits for one more round.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char};
use std::ptr;

use kymograph_protos::device::Vendor;
use kymograph_protos::record::{CALLS_TRACK, THREAD_TRACK};
use kymograph_protos::{ArgType, Extra, Kind, Record, StrId};

use super::decode::Decoder;
use super::names;
use super::sys::{GROUP_LEVEL_ZERO, GROUP_OPENCL, Pti, SUCCESS, kind};
use crate::device::args::Args;
use crate::device::ranges::Ids;
use crate::device::raw::Raw;

/// Upper bits of our ids of ranges and tracks ("XP"): other sources number theirs too.
pub(super) const OURS: Ids = Ids::of(*b"XP");
/// Threads whose tracks are remembered.
const MAX_THREADS: usize = 1 << 16;

/// Calls that were read and not written yet, and what is known of calls.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pending: Vec<Call>,
    /// By group, number and category.
    functions: HashMap<(u32, u32, StrId), Function>,
    threads: HashSet<u32>,
    /// How often PTI was asked for all it has.
    flushes: u64,
    pub(super) pti: Option<&'static Pti>,
}

/// A function of an API.
#[derive(Clone, Copy, Debug)]
struct Function {
    site: StrId,
    /// Whether it may launch something, and whether that is always reported.
    launches: bool,
    reported: bool,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    start: u64,
    end: u64,
    thread: u32,
    correlation: u32,
    category: StrId,
    group: u32,
    function: u32,
    code: u32,
    /// How often PTI was asked when it was read.
    flushes: u64,
}

impl Calls {
    /// Whom to ask for the names of functions.
    pub(crate) fn name_by(&mut self, pti: &'static Pti) {
        self.pti = Some(pti);
    }
}

impl Decoder {
    /// pti_view_record_api.
    pub(super) fn call(&mut self, raw: Raw<'_>) {
        self.counts.calls += 1;
        let runtime = raw.u32(0) == kind::RUNTIME_API;
        self.calls.pending.push(Call {
            start: raw.u64(8),
            end: raw.u64(16),
            thread: raw.u32(36),
            correlation: raw.u32(40),
            category: if runtime { self.keys.runtime } else { self.keys.driver },
            group: raw.u32(24),
            function: raw.u32(28),
            code: raw.u32(44),
            flushes: self.calls.flushes,
        });
    }

    /// PTI was asked for all it has.
    pub(crate) fn flushed(&mut self) {
        self.calls.flushes += 1;
    }

    /// Writes the calls that were read; `last` if no more will come. One that may lie within
    /// another waits for what PTI says when it is asked the next time: a call is reported when
    /// it is over, the outer one last.
    pub(crate) fn settle(&mut self, last: bool) {
        let mut calls = std::mem::take(&mut self.calls.pending);
        if calls.is_empty() {
            return;
        }
        // Outer ones before inner ones.
        calls.sort_by_key(|call| (call.thread, call.start, u64::MAX - call.end));
        let runtime = self.keys.runtime;
        let outer = calls.iter().filter(|call| call.category == runtime);
        let claimed: HashSet<u32> = outer.map(|call| call.correlation).collect();
        for call in calls {
            let Function { site, launches, reported } = self.function(&call);
            let inner = call.category != runtime && claimed.contains(&call.correlation);
            let fresh = call.flushes == self.calls.flushes;
            if launches && !inner && call.category != runtime && fresh && !last {
                self.calls.pending.push(call);
                continue;
            }
            let mut args = Args::new();
            if reported && call.category == runtime && call.code == 0 {
                self.launches.asked(call.correlation);
            }
            if launches && !inner {
                let id = Vendor::Intel.call(call.correlation.into());
                args.push(Extra::new(StrId::NONE, ArgType::Launch, id));
            }
            if self.all_args {
                args.unsigned(self.keys.correlation, call.correlation);
            }
            if call.code != 0 {
                args.unsigned(self.keys.return_code, call.code);
            }
            self.on_thread(call.thread, site, (call.start, call.end), args);
        }
    }

    fn function(&mut self, call: &Call) -> Function {
        let key = (call.group, call.function, call.category);
        if let Some(known) = self.calls.functions.get(&key) {
            return *known;
        }
        let name = self.function_name(call.group, call.function);
        let known = Function {
            site: self.recorder.intern_or_wait(call.category, &name),
            launches: names::may_launch(&name),
            reported: self.all_work && names::has_work(&name),
        };
        // A number that lies must not cost memory.
        if self.calls.functions.len() < 1 << 14 {
            self.calls.functions.insert(key, known);
        }
        known
    }

    fn function_name(&self, group: u32, function: u32) -> Vec<u8> {
        let mut name: *const c_char = ptr::null();
        if let Some(pti) = self.calls.pti {
            // SAFETY: stores a pointer to a static C string.
            let result = unsafe { (pti.api_name)(group, function, &mut name) };
            if result == SUCCESS && !name.is_null() {
                // SAFETY: as above.
                return unsafe { CStr::from_ptr(name) }.to_bytes().to_vec();
            }
        }
        let api = match group {
            GROUP_LEVEL_ZERO => "Level Zero",
            GROUP_OPENCL => "OpenCL",
            _ => "SYCL",
        };
        format!("{api} function {function}").into_bytes()
    }

    /// pti_view_record_synchronization.
    pub(super) fn wait(&mut self, raw: Raw<'_>) {
        self.counts.waits += 1;
        let name = self.function_name(raw.u32(68), raw.u32(64));
        let mut args = Args::new();
        let ty = self.keys.intern(names::wait(raw.u32(4)));
        args.push(Extra::new(self.keys.sync_type, ArgType::Str, ty.0.into()));
        args.unless_zero(self.keys.wait_events, raw.u32(56));
        args.unless_zero(self.keys.return_code, raw.u32(60));
        args.unsigned(self.keys.thread, raw.u32(48));
        if self.all_args {
            args.unsigned(self.keys.correlation, raw.u32(52));
            let handles = [
                (self.keys.context_handle, 8),
                (self.keys.queue_handle, 16),
                (self.keys.event_handle, 24),
            ];
            for (key, at) in handles {
                args.push(Extra::new(key, ArgType::Pointer, raw.u64(at)));
            }
        }
        let site = self.recorder.intern_or_wait(self.keys.sync, &name);
        self.range(site, (raw.u64(32), raw.u64(40)), args.extras());
    }

    /// pti_view_record_comms of 1.0.
    ///
    /// # Safety
    /// The name in it is a C string, or null.
    pub(super) unsafe fn collective(&mut self, raw: Raw<'_>) {
        self.counts.collectives += 1;
        let name = raw.u64(56) as *const c_char;
        let name = match name.is_null() {
            true => b"<unknown>".as_slice(),
            // SAFETY: the caller's promise.
            false => unsafe { CStr::from_ptr(name) }.to_bytes(),
        };
        let site = self.recorder.intern_or_wait(self.keys.collective, &[b"xccl::", name].concat());
        let mut args = Args::new();
        args.unsigned(self.keys.communicator, raw.u64(48));
        args.unless_zero(self.keys.send, raw.u64(32));
        args.unless_zero(self.keys.receive, raw.u64(40));
        self.on_thread(raw.u32(28), site, (raw.u64(8), raw.u64(16)), args);
    }

    /// pti_view_record_overhead.
    pub(super) fn overhead(&mut self, raw: Raw<'_>) {
        self.counts.overheads += 1;
        let mut args = Args::new();
        args.unsigned(self.keys.overhead_cost, raw.u64(40));
        args.unsigned(self.keys.overhead_count, raw.u32(32));
        args.unsigned(self.keys.thread, raw.u64(24));
        let name = names::overhead(raw.u32(48));
        let site = self.recorder.intern_or_wait(self.keys.overhead, name.as_bytes());
        self.range(site, (raw.u64(8), raw.u64(16)), args.extras());
    }

    /// A slice on the track of calls of a thread.
    fn on_thread(&mut self, thread: u32, site: StrId, times: (u64, u64), mut args: Args) {
        let track = OURS.id(thread.into());
        if self.calls.threads.len() < MAX_THREADS && self.calls.threads.insert(thread) {
            let head = Record {
                other: track,
                arg: THREAD_TRACK | u64::from(thread),
                site: self.keys.intern(CALLS_TRACK),
                kind: Kind::Track as u8,
                ..Record::default()
            };
            self.recorder.push(head, &[]);
        }
        args.push(Extra::new(StrId::NONE, ArgType::Track, track));
        self.range(site, times, args.extras());
    }

    /// A slice that belongs to no queue.
    fn range(&mut self, site: StrId, (start, end): (u64, u64), extras: &[Extra]) {
        if let Some(times) = self.times(start, end) {
            self.ranges.push(site, times, extras);
        }
    }
}
