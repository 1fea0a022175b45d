//! Arrows: between host events by flow ids, and from calls to what they launched.

use hashbrown::HashMap;

use super::{ActivityId, Api, InstantId, Nanos, SliceId, StrId, Trace};

/// An event of any kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum EventRef {
    /// A slice of the host.
    Slice(SliceId),
    /// A moment.
    Instant(InstantId),
    /// What a device did.
    Activity(ActivityId),
}

/// What a flow does at an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// It begins here.
    Start,
    /// It passes through; it begins here if it has not yet.
    Step,
    /// It ends here; its id may be used again.
    End,
}

/// A flow touches an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowPoint {
    /// Which flow. Flows with different names may have the same id.
    pub id: u64,
    /// What it does.
    pub phase: Phase,
    /// The event.
    pub event: EventRef,
    /// When it does so: within the event.
    pub time: Nanos,
    /// What the flow is called, where the format has names for flows.
    pub name: StrId,
    /// Where it stood in the file that it was read from; 0 if the file's order is not known, or
    /// it was no event there.
    pub position: u32,
}

/// What a call has to do with activities.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LaunchKind {
    /// It submitted them.
    Submit,
    /// It waited for them.
    Wait,
}

/// A slice submitted or waited for all activities of a correlation number, or an activity
/// waited for them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaunchLink {
    /// The call, or the activity.
    pub event: EventRef,
    /// The number.
    pub correlation: u64,
    /// Which of the two.
    pub kind: LaunchKind,
    /// The API that was called.
    pub api: Api,
}

/// An arrow from one event to another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Arrow {
    /// Where it begins.
    pub from: EventRef,
    /// Where it ends.
    pub to: EventRef,
}

/// All arrows of a trace, as they were given: by numbers.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// Where flows touch events.
    pub points: Vec<FlowPoint>,
    /// Calls and what they launched or waited for.
    pub links: Vec<LaunchLink>,
}

impl Flows {
    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.points.capacity() * size_of::<FlowPoint>()
            + self.links.capacity() * size_of::<LaunchLink>()
    }
}

impl Trace {
    /// The arrows between host events: each flow joins its points in the order of time.
    pub fn flow_arrows(&self) -> Vec<Arrow> {
        let mut order: Vec<&FlowPoint> = self.flows.points.iter().collect();
        order.sort_by_key(|point| point.time);
        let mut active: HashMap<(u64, StrId), EventRef> = HashMap::new();
        let mut arrows = Vec::new();
        for point in order {
            let key = (point.id, point.name);
            let from = match point.phase {
                Phase::Start => None,
                Phase::Step | Phase::End => active.get(&key).copied(),
            };
            if let Some(from) = from.filter(|from| *from != point.event) {
                arrows.push(Arrow { from, to: point.event });
            }
            match point.phase {
                Phase::End => drop(active.remove(&key)),
                Phase::Start | Phase::Step => drop(active.insert(key, point.event)),
            }
        }
        arrows
    }

    /// The arrows between calls and activities, and between activities. A correlation
    /// number that several calls submitted belongs to the last of them.
    pub fn launch_arrows(&self) -> Vec<Arrow> {
        let mut activities: HashMap<u64, Vec<ActivityId>> = HashMap::new();
        for (id, activity) in self.activities.ids().zip(self.activities.iter()) {
            if activity.correlation != 0 {
                activities.entry(activity.correlation).or_default().push(id);
            }
        }
        let mut submitters: HashMap<u64, EventRef> = HashMap::new();
        let mut arrows = Vec::new();
        for link in &self.flows.links {
            match link.kind {
                LaunchKind::Submit => drop(submitters.insert(link.correlation, link.event)),
                LaunchKind::Wait => {
                    let waited = activities.get(&link.correlation).into_iter().flatten();
                    arrows.extend(
                        waited.map(|id| Arrow { from: EventRef::Activity(*id), to: link.event }),
                    );
                }
            }
        }
        for (correlation, from) in submitters {
            let submitted = activities.get(&correlation).into_iter().flatten();
            arrows.extend(submitted.map(|id| Arrow { from, to: EventRef::Activity(*id) }));
        }
        arrows.sort_unstable();
        arrows
    }

    /// How many [`Trace::launch_arrows`] there are, without a list of them.
    pub fn launch_arrow_count(&self) -> u64 {
        // How many have a number, and whether a call that submitted it has been seen.
        let mut activities: HashMap<u64, (u64, bool)> =
            HashMap::with_capacity(self.activities.len());
        for correlation in self.activities.correlations().iter().filter(|number| **number != 0) {
            activities.entry(*correlation).or_default().0 += 1;
        }
        let mut arrows = 0;
        // A number counts once, however many calls submitted it.
        for link in &self.flows.links {
            let Some((count, submitted)) = activities.get_mut(&link.correlation) else { continue };
            if link.kind == LaunchKind::Wait || !std::mem::replace(submitted, true) {
                arrows += *count;
            }
        }
        arrows
    }
}
