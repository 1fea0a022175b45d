//! What devices did.

use super::positions::{Position, Positions};
use super::{ActivityId, ArgsId, ContextId, KernelId, LaunchId, Nanos, QueueId, StageId, StrId};

/// Work on a queue of a device: a kernel, a copy, a collective. Activities of one queue
/// may overlap.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Activity {
    /// Where it ran.
    pub queue: QueueId,
    /// When it began.
    pub start: Nanos,
    /// How long it took.
    pub dur: Nanos,
    /// What it is called; may be none.
    pub name: StrId,
    /// What kind of work it was.
    pub stage: Option<StageId>,
    /// The context that it belonged to.
    pub context: Option<ContextId>,
    /// The kernel that ran.
    pub kernel: Option<KernelId>,
    /// The dimensions of its launch.
    pub launch: Option<LaunchId>,
    /// What joins it with the call that launched it ([`super::Flows::links`]): several
    /// activities may share one (a graph). 0 if there is none.
    pub correlation: u64,
    /// Its arguments, without those of its kernel.
    pub args: Option<ArgsId>,
}

impl Activity {
    /// An activity without name, kind and arguments.
    pub fn new(queue: QueueId, start: Nanos, dur: Nanos) -> Activity {
        Activity {
            queue,
            start,
            dur,
            name: StrId::NONE,
            stage: None,
            context: None,
            kernel: None,
            launch: None,
            correlation: 0,
            args: None,
        }
    }

    /// When it ended.
    pub fn end(&self) -> Nanos {
        self.start + self.dur
    }
}

/// The table of activities: a vector per column.
#[derive(Clone, Debug, Default)]
pub struct Activities {
    starts: Vec<i64>,
    durs: Vec<i64>,
    correlations: Vec<u64>,
    queues: Vec<QueueId>,
    names: Vec<StrId>,
    stages: Vec<Option<StageId>>,
    contexts: Vec<Option<ContextId>>,
    kernels: Vec<Option<KernelId>>,
    launches: Vec<Option<LaunchId>>,
    args: Vec<Option<ArgsId>>,
    positions: Positions,
}

impl Activities {
    /// Adds an activity.
    pub fn push(&mut self, activity: Activity) -> ActivityId {
        self.starts.push(activity.start.0);
        self.durs.push(activity.dur.0);
        self.correlations.push(activity.correlation);
        self.queues.push(activity.queue);
        self.names.push(activity.name);
        self.stages.push(activity.stage);
        self.contexts.push(activity.context);
        self.kernels.push(activity.kernel);
        self.launches.push(activity.launch);
        self.args.push(activity.args);
        ActivityId::at(self.starts.len() - 1)
    }

    /// The activity.
    ///
    /// # Panics
    ///
    /// When it is not in this table.
    pub fn get(&self, id: ActivityId) -> Activity {
        let row = id.index();
        Activity {
            queue: self.queues[row],
            start: Nanos(self.starts[row]),
            dur: Nanos(self.durs[row]),
            name: self.names[row],
            stage: self.stages[row],
            context: self.contexts[row],
            kernel: self.kernels[row],
            launch: self.launches[row],
            correlation: self.correlations[row],
            args: self.args[row],
        }
    }

    /// Changes an activity.
    ///
    /// # Panics
    ///
    /// When it is not in this table.
    pub fn set(&mut self, id: ActivityId, activity: Activity) {
        let row = id.index();
        self.queues[row] = activity.queue;
        self.starts[row] = activity.start.0;
        self.durs[row] = activity.dur.0;
        self.names[row] = activity.name;
        self.stages[row] = activity.stage;
        self.contexts[row] = activity.context;
        self.kernels[row] = activity.kernel;
        self.launches[row] = activity.launch;
        self.correlations[row] = activity.correlation;
        self.args[row] = activity.args;
    }

    /// Where it stood in the file that it was read from; `None` if the file's order is not known.
    pub fn position(&self, id: ActivityId) -> Option<Position> {
        self.positions.get(id.index())
    }

    /// Says where it stood.
    pub fn set_position(&mut self, id: ActivityId, position: Option<Position>) {
        self.positions.set(id.index(), position);
    }

    /// The last position of any.
    pub(crate) fn last_position(&self) -> u32 {
        self.positions.last()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// When each activity begins, in nanoseconds: a column, row by row.
    pub fn starts(&self) -> &[i64] {
        &self.starts
    }

    /// How long each takes, in nanoseconds.
    pub fn durs(&self) -> &[i64] {
        &self.durs
    }

    /// What each is called.
    pub fn names(&self) -> &[StrId] {
        &self.names
    }

    /// Where each ran.
    pub fn queues(&self) -> &[QueueId] {
        &self.queues
    }

    /// What joins each with the call that launched it; 0 if there is none.
    pub fn correlations(&self) -> &[u64] {
        &self.correlations
    }

    /// What kind of work each is.
    pub fn stages(&self) -> &[Option<StageId>] {
        &self.stages
    }

    /// The arguments of each.
    pub fn args(&self) -> &[Option<ArgsId>] {
        &self.args
    }

    /// Moves the times of some activities, which are given by number.
    pub(crate) fn shift(&mut self, rows: std::ops::Range<usize>, by: Nanos) {
        for time in self.starts.get_mut(rows).unwrap_or_default() {
            *time = (Nanos(*time) + by).0;
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.starts.capacity() * 24 + self.queues.capacity() * 28 + self.positions.bytes()
    }

    /// All activities, in the order in which they were added.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Activity> + '_ {
        self.ids().map(|id| self.get(id))
    }

    /// The handles of all activities.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ActivityId> + use<> {
        (0..self.len()).map(ActivityId::at)
    }

    /// The handles of all activities, queue by queue and on each in the order of time.
    pub fn by_queue(&self) -> Vec<ActivityId> {
        let mut order: Vec<ActivityId> = self.ids().collect();
        order.sort_by_key(|id| (self.queues[id.index()], self.starts[id.index()]));
        order
    }
}
