//! The recording clock: raw ticks on the hot path, nanoseconds of `CLOCK_BOOTTIME` in the
//! file.
//!
//! Where the processor has a counter of constant rate (x86-64: invariant TSC; AArch64:
//! `CNTVCT_EL0`), a tick is that counter, read in a few nanoseconds. The writer converts:
//! it compares the counter with the system clock about ten times a second ([`Anchor`])
//! and keeps a piecewise linear map ([`Converter`]) that is continuous and never runs
//! backwards. The system clock's rate is itself adjusted (NTP), so no single factor stays
//! right for hours; each new piece aims at where the system clock will be at the next
//! anchor, so an error is gone a tenth of a second after it was seen. If a comparison is late
//! (a busy machine), what was recorded since lies between two that are known, and is
//! converted by both.
//!
//! Everywhere else a tick is a nanosecond of `CLOCK_BOOTTIME`.

use crate::config::ClockChoice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kymograph_protos::packet::Snapshot;

/// Whether ticks are the processor's counter.
static COUNTER: AtomicBool = AtomicBool::new(false);

/// How often the map should be compared with the system clock.
pub const ANCHOR_INTERVAL: Duration = Duration::from_millis(100);

/// Where ticks come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Source {
    /// The processor's counter where that is safe, else the system clock.
    #[default]
    Auto,
    /// The processor's counter.
    Counter,
    /// `CLOCK_BOOTTIME`.
    System,
}

/// Chooses the source of ticks. Must not be called during a recording.
pub fn select(source: Source) {
    let counter = match source {
        Source::Auto => counter_is_safe(),
        Source::Counter => cfg!(any(target_arch = "x86_64", target_arch = "aarch64")),
        Source::System => false,
    };
    COUNTER.store(counter, Ordering::Relaxed);
}

/// Sets the source of ticks and reads the clocks: from here on events belong to a recording. Must
/// not be called during a recording.
pub(crate) fn choose(clock: ClockChoice) -> Anchor {
    select(match clock {
        ClockChoice::Auto => Source::Auto,
        ClockChoice::Tsc => Source::Counter,
        ClockChoice::Boottime => Source::System,
    });
    Anchor::now()
}

/// Whether ticks are the processor's counter now.
pub fn uses_counter() -> bool {
    COUNTER.load(Ordering::Relaxed)
}

/// The time now, in ticks.
#[inline(always)]
pub fn ticks() -> u64 {
    ticks_of(COUNTER.load(Ordering::Relaxed))
}

/// The time now in ticks of another process, which are the processor's counter or not.
#[inline(always)]
pub fn ticks_of(by_counter: bool) -> u64 {
    if by_counter { counter() } else { system(libc::CLOCK_BOOTTIME) }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: the instruction exists on every x86-64 and has no operands.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: reads a register that Linux lets every process read.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn counter() -> u64 {
    system(libc::CLOCK_BOOTTIME)
}

/// A clock of the system in nanoseconds.
pub fn system(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable. The clocks used here exist on every Linux; if one did
    // not, the time would be 0.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The system's clocks, now.
pub fn snapshot() -> Snapshot {
    Snapshot {
        boottime: system(libc::CLOCK_BOOTTIME),
        monotonic: system(libc::CLOCK_MONOTONIC),
        realtime: system(libc::CLOCK_REALTIME),
    }
}

/// Whether the counter runs at one rate, in all power states, on all processors.
///
/// The processor says so (CPUID 8000_0007h EDX bit 8, AMD APM and Intel SDM), and the
/// kernel, which watches the counter, still uses it, or is a guest of a hypervisor that
/// offers a clock made from it.
#[cfg(target_arch = "x86_64")]
pub fn counter_is_safe() -> bool {
    use std::arch::x86_64::__cpuid;
    #[allow(unused_unsafe, reason = "unsafe before Rust 1.94")]
    // SAFETY: CPUID exists on every x86-64.
    let invariant = unsafe {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
    };
    let kernel =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let trusted = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"];
    invariant && kernel.is_ok_and(|name| trusted.contains(&name.trim()))
}

/// As on x86-64: the generic timer is constant and shared by definition (Arm ARM D11).
#[cfg(not(target_arch = "x86_64"))]
pub fn counter_is_safe() -> bool {
    cfg!(target_arch = "aarch64")
}

/// The same moment on both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Anchor {
    /// In ticks.
    pub ticks: u64,
    /// In nanoseconds of `CLOCK_BOOTTIME`.
    pub nanos: u64,
}

impl Anchor {
    /// Reads both clocks, as nearly at once as a few tries allow.
    pub fn now() -> Anchor {
        Anchor::of(uses_counter())
    }

    /// As [`Anchor::now`], in ticks of another process: see [`ticks_of`].
    pub fn of(by_counter: bool) -> Anchor {
        if !by_counter {
            let now = ticks_of(false);
            return Anchor { ticks: now, nanos: now };
        }
        (0..8)
            .map(|_| {
                let before = ticks_of(true);
                let nanos = system(libc::CLOCK_BOOTTIME);
                let width = ticks_of(true).saturating_sub(before);
                (width, Anchor { ticks: before + width / 2, nanos })
            })
            .min_by_key(|(width, _)| *width)
            .map_or(Anchor { ticks: 0, nanos: 0 }, |(_, anchor)| anchor)
    }
}

/// One piece of the map: from `ticks` on, `nanos + (t - ticks) × rate`.
#[derive(Clone, Copy, Debug)]
struct Piece {
    ticks: u64,
    nanos: u64,
    rate: f64,
}

impl Piece {
    fn at(&self, ticks: u64) -> u64 {
        let distance = ticks.wrapping_sub(self.ticks) as i64;
        self.nanos.saturating_add_signed((distance as f64 * self.rate) as i64)
    }
}

/// Converts ticks to nanoseconds: see the module. Pure; time comes in as [`Anchor`]s.
#[derive(Clone, Debug)]
pub struct Converter {
    /// Newest last; never empty.
    pieces: Vec<Piece>,
    /// Anchors for the rate, oldest first.
    history: std::collections::VecDeque<Anchor>,
    /// Up to this tick times were converted: the map stays as it is there.
    used: u64,
}

/// How long the first measurement of the rate takes.
const CALIBRATION: Duration = Duration::from_millis(2);
/// Anchors over which the rate is measured: ten seconds' worth.
const HISTORY: usize = 100;
/// Pieces kept for times long past; older ones are thinned out.
const PIECES: usize = 4096;
/// A difference that is no drift but a step: the machine slept.
const STEP_NANOS: u64 = 1_000_000;

impl Converter {
    /// From `first` and now; waits until they are some milliseconds apart.
    pub fn calibrate(first: Anchor, by_counter: bool) -> Converter {
        let passed = Duration::from_nanos(Anchor::of(by_counter).nanos.saturating_sub(first.nanos));
        std::thread::sleep(CALIBRATION.saturating_sub(passed));
        Converter::new(first, Anchor::of(by_counter))
    }

    /// From two anchors some milliseconds apart.
    pub fn new(first: Anchor, second: Anchor) -> Converter {
        let rate = rate(first, second).unwrap_or(1.0);
        Converter {
            pieces: vec![Piece { ticks: first.ticks, nanos: first.nanos, rate }],
            history: [first, second].into(),
            used: first.ticks,
        }
    }

    /// Of a time that is past: through all of these, which are in order. `None` if there are
    /// none.
    pub fn through(anchors: &[Anchor]) -> Option<Converter> {
        let last = *anchors.last()?;
        let mut pieces: Vec<Piece> = anchors
            .windows(2)
            .map(|pair| {
                let rate = rate(pair[0], pair[1]).unwrap_or(1.0);
                Piece { ticks: pair[0].ticks, nanos: pair[0].nanos, rate }
            })
            .collect();
        let rate = pieces.last().map_or(1.0, |piece| piece.rate);
        pieces.push(Piece { ticks: last.ticks, nanos: last.nanos, rate });
        Some(Converter { pieces, history: [last].into(), used: last.ticks })
    }

    /// A moment in nanoseconds.
    #[inline]
    pub fn nanos(&self, ticks: u64) -> u64 {
        match self.pieces.as_slice() {
            [.., last] if ticks >= last.ticks => last.at(ticks),
            // The last one may begin in the future.
            [.., piece, _] if ticks >= piece.ticks => piece.at(ticks),
            _ => self.long_ago(ticks),
        }
    }

    /// Says that times up to now were converted.
    pub fn use_up(&mut self, ticks: u64) {
        self.used = ticks;
    }

    /// The reverse, for a moment that is near or in the future: the first tick that is not
    /// before it.
    pub fn ticks(&self, nanos: u64) -> u64 {
        let last = &self.pieces[self.pieces.len() - 1];
        let piece = match self.pieces.partition_point(|p| p.nanos <= nanos) {
            _ if nanos >= last.nanos => last,
            after => &self.pieces[after.saturating_sub(1)],
        };
        let distance = nanos.wrapping_sub(piece.nanos) as i64;
        piece.ticks.saturating_add_signed((distance as f64 / piece.rate).ceil() as i64)
    }

    #[cold]
    fn long_ago(&self, ticks: u64) -> u64 {
        let after = self.pieces.partition_point(|p| p.ticks <= ticks);
        self.pieces[after.saturating_sub(1)].at(ticks)
    }

    /// Corrects the map by a comparison of the clocks made just now.
    pub fn correct(&mut self, anchor: Anchor) {
        if self.pieces.len() > 1 && self.pieces[self.pieces.len() - 1].ticks >= anchor.ticks {
            // The future has become another one.
            self.pieces.pop();
        }
        let last = self.pieces[self.pieces.len() - 1];
        if anchor.ticks <= last.ticks {
            return;
        }
        let shown = last.at(anchor.ticks);
        let error = anchor.nanos as i64 - shown as i64;
        if error.unsigned_abs() > STEP_NANOS {
            self.history.clear();
            self.history.push_back(anchor);
            // Forward only: time that was already written is not taken back.
            let nanos = anchor.nanos.max(shown);
            self.add(Piece { ticks: anchor.ticks, nanos, ..last });
            return;
        }
        self.history.push_back(anchor);
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        let steady = rate(self.history[0], anchor).unwrap_or(last.rate);
        // Never below half speed: the map must not stand still or run backwards.
        let slew = |over: f64| (1.0 + error as f64 / over).clamp(0.5, 1.5);
        let interval = ANCHOR_INTERVAL.as_nanos() as f64;
        let waiting = anchor.ticks.saturating_sub(self.used.max(last.ticks));
        if waiting as f64 * steady >= interval {
            // Late: from where times were converted to here.
            let ticks = anchor.ticks - waiting;
            let nanos = last.at(ticks);
            self.add(Piece { ticks, nanos, rate: last.rate * slew((shown - nanos) as f64) });
            self.go_on(anchor.ticks, steady);
        } else {
            self.add(Piece { ticks: anchor.ticks, nanos: shown, rate: steady * slew(interval) });
            // The next comparison may be late.
            self.go_on(anchor.ticks + (interval / steady) as u64, steady);
        }
    }

    /// From this tick on the map runs at another rate.
    fn go_on(&mut self, ticks: u64, rate: f64) {
        let nanos = self.pieces[self.pieces.len() - 1].at(ticks);
        self.add(Piece { ticks, nanos, rate });
    }

    fn add(&mut self, piece: Piece) {
        if self.pieces.len() == PIECES {
            // The newest stays.
            let mut keep = true;
            self.pieces.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.pieces.push(piece);
    }
}

/// Nanoseconds per tick between two anchors.
fn rate(from: Anchor, to: Anchor) -> Option<f64> {
    let ticks = to.ticks.checked_sub(from.ticks).filter(|t| *t > 0)?;
    let nanos = to.nanos.checked_sub(from.nanos).filter(|n| *n > 0)?;
    Some(nanos as f64 / ticks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose system clock is steered against a counter of 2.6 GHz.
    struct Machine {
        ticks: u64,
        nanos: f64,
        noise: u64,
    }

    impl Machine {
        fn run(&mut self, seconds: f64, ppm: f64) -> Anchor {
            self.ticks += (seconds * 2.6e9) as u64;
            self.nanos += seconds * 1e9 * (1.0 + ppm * 1e-6);
            self.noise = self.noise.wrapping_mul(6364136223846793005).wrapping_add(1);
            let jitter = (self.noise >> 33) % 41;
            Anchor { ticks: self.ticks, nanos: (self.nanos as u64 + jitter).saturating_sub(20) }
        }
    }

    fn started() -> (Machine, Converter) {
        let mut machine = Machine { ticks: 7_000_000_000, nanos: 1e15, noise: 1 };
        let converter = Converter::new(machine.run(0.0, 0.0), machine.run(0.01, 0.0));
        (machine, converter)
    }

    #[test]
    fn stays_within_a_microsecond_over_hours_of_steering() {
        let (mut machine, mut converter) = started();
        let (mut worst, mut before) = (0i64, 0);
        for step in 0..4 * 36_000u64 {
            // NTP changes the rate by some ppm every minute or so.
            let ppm = [0.0, 3.0, -2.0, 5.0, -4.0][(step / 640 % 5) as usize];
            let anchor = machine.run(0.1, ppm);
            let shown = converter.nanos(anchor.ticks);
            assert!(shown > before);
            before = shown;
            if step > 20 {
                worst = worst.max((shown as i64 - machine.nanos as i64).abs());
            }
            converter.correct(anchor);
        }
        assert!(worst < 1000, "{worst} ns");
        assert!(converter.pieces.len() <= PIECES);
    }

    #[test]
    fn a_late_comparison_serves_what_was_recorded_before_it() {
        // The first rate is wrong by the noise over ten milliseconds.
        let (mut machine, mut converter) = started();
        converter.correct(machine.run(0.1, 0.0));
        for late in [0.4, 2.0, 0.1, 0.3] {
            let used = machine.ticks + 26_000_000;
            let kept = converter.nanos(used);
            converter.use_up(used);
            let halfway = machine.run(late / 2.0, 0.0);
            let anchor = machine.run(late / 2.0, 0.0);
            converter.correct(anchor);
            assert_eq!(converter.nanos(used), kept, "what was written stays");
            for (at, what) in [(halfway, "halfway"), (anchor, "at the end")] {
                let error = converter.nanos(at.ticks) as i64 - at.nanos as i64;
                assert!(error.abs() < 500, "{what} of {late} s: {error} ns");
            }
            // And nothing is overdone after it.
            let after = machine.run(0.15, 0.0);
            let error = converter.nanos(after.ticks) as i64 - after.nanos as i64;
            assert!(error.abs() < 500, "after {late} s: {error} ns");
            converter.correct(after);
        }
    }

    #[test]
    fn old_times_keep_their_place() {
        let (mut machine, mut converter) = started();
        let moments: Vec<(u64, u64)> = (0..50)
            .map(|_| {
                converter.correct(machine.run(0.1, 20.0));
                (machine.ticks + 5, converter.nanos(machine.ticks + 5))
            })
            .collect();
        assert!(moments.iter().all(|(ticks, nanos)| converter.nanos(*ticks) == *nanos));
        assert!(moments.iter().all(|(ticks, nanos)| converter.ticks(*nanos).abs_diff(*ticks) < 9));
        assert!(
            moments.iter().all(|(_, nanos)| converter.nanos(converter.ticks(*nanos)) == *nanos)
        );
    }

    #[test]
    fn a_past_is_read_through_its_anchors() {
        let anchors = [(1_000, 50_000), (2_000, 51_000), (4_000, 55_000)];
        let anchors = anchors.map(|(ticks, nanos)| Anchor { ticks, nanos });
        let converter = Converter::through(&anchors).unwrap();
        let expected = [(500, 49_500), (1_500, 50_500), (3_000, 53_000), (5_000, 57_000)];
        for (ticks, nanos) in expected {
            assert_eq!(converter.nanos(ticks), nanos);
        }
        assert!(Converter::through(&[]).is_none());
        assert_eq!(Converter::through(&anchors[..1]).unwrap().nanos(1_007), 50_007);
    }

    #[test]
    fn a_machine_that_slept_steps_forward_and_never_back() {
        let (mut machine, mut converter) = started();
        converter.correct(machine.run(0.1, 0.0));
        machine.nanos += 3.6e12;
        let anchor = machine.run(0.1, 0.0);
        converter.correct(anchor);
        assert_eq!(converter.nanos(anchor.ticks), anchor.nanos);
        machine.nanos -= 5e9;
        let back = machine.run(0.1, 0.0);
        converter.correct(back);
        assert!(converter.nanos(back.ticks) >= anchor.nanos);
    }

    #[test]
    fn the_real_counter_agrees_with_the_real_clock() {
        select(Source::Auto);
        let first = Anchor::now();
        std::thread::sleep(Duration::from_millis(20));
        let converter = Converter::new(first, Anchor::now());
        let now = Anchor::now();
        let error = converter.nanos(now.ticks).abs_diff(now.nanos);
        assert!(error < 50_000, "{error} ns");
    }
}
