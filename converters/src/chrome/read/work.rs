//! Work on devices: what Kineto says of it in arguments, in the hub's own terms.

use super::Reader;
use crate::chrome::args::intern;
use crate::chrome::event::Event;
use crate::chrome::flows::Last;
use crate::chrome::rows::{Id, Place, RowKind};
use crate::json::Element;
use crate::trace::{
    Activity, Api, Context, ContextId, Dim3, EventRef, Kernel, KernelId, Launch, LaunchId, ListId,
    Nanos, Position, Stage, StageId, StrId, Trace, Value, Work,
};

/// Sizes that are remembered, the latest first.
const SIZES: usize = 16;

impl Reader {
    pub(super) fn activity(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        (pid, tid): (Id, Id),
        (start, dur): (i64, Nanos),
        (category, work): (StrId, Work),
    ) {
        let place = self.rows.place(&mut self.trace, RowKind::Queue, pid, tid);
        let Place::Queue(queue) = place else { return };
        let name = intern(&mut self.trace, event.name());
        let correlation = self.gather(element, event);
        let context = self.context(pid);
        let (mut launch, mut kernel) = (None, None);
        if work == Work::Kernel {
            launch = self.launch();
            kernel = Some(self.kernel(name));
        }
        let activity = Activity {
            name,
            stage: Some(self.stage(category, work)),
            context,
            kernel,
            launch,
            correlation,
            args: self.trace.args.add(&self.entries),
            ..Activity::new(queue, Nanos(start), dur)
        };
        let id = self.trace.activities.push(activity);
        self.trace.activities.set_position(id, Some(Position::new(self.position)));
        let event = EventRef::Activity(id);
        self.flows.last =
            Some(Last { pid, tid, start, event, correlation, position: self.position });
    }

    fn take(&mut self, key: StrId, wanted: impl Fn(&Trace, Value) -> bool) -> Option<Value> {
        let at = self.entries.iter().position(|(name, _)| *name == key)?;
        wanted(&self.trace, self.entries[at].1).then(|| self.entries.remove(at).1)
    }

    fn launch(&mut self) -> Option<LaunchId> {
        let grid = self.size(self.names.grid);
        let block = self.size(self.names.block);
        let launch = Launch { grid, block };
        if launch == Launch::default() {
            return None;
        }
        Some(*self.launches.entry(launch).or_insert_with(|| self.trace.launches.push(launch)))
    }

    /// Takes a size out of the arguments, if it is one.
    fn size(&mut self, key: StrId) -> Option<Dim3> {
        let at = self.entries.iter().position(|(name, _)| *name == key)?;
        let Value::List(list) = self.entries[at].1 else { return None };
        let size = match self.sizes.iter().find(|(known, _)| *known == list) {
            Some((_, size)) => *size,
            None => {
                let size = dim(&self.trace, list)?;
                if self.sizes.len() == SIZES {
                    self.sizes.pop();
                }
                self.sizes.insert(0, (list, size));
                size
            }
        };
        self.entries.remove(at);
        Some(size)
    }

    fn kernel(&mut self, name: StrId) -> KernelId {
        let whole = |_: &Trace, value| matches!(value, Value::I64(_));
        let mut own = Vec::new();
        for key in [self.names.registers, self.names.shared] {
            if let Some(value) = self.take(key, whole) {
                own.push((key, value));
            }
        }
        let args = self.trace.args.add(&own);
        let kernel = Kernel { name, demangled: name, architecture: StrId::NONE, args };
        *self.kernels.entry(kernel).or_insert_with(|| self.trace.kernels.push(kernel))
    }

    /// The context that the arguments name. Processes number theirs alike, but seldom share a
    /// device.
    fn context(&mut self, device: Id) -> Option<ContextId> {
        let (_, value) = self.entries.iter().find(|(name, _)| *name == self.names.context)?;
        let Value::I64(number) = *value else { return None };
        let number = u64::try_from(number).ok()?;
        if let Some((_, id)) = self.contexts.iter().find(|(known, _)| *known == (device, number)) {
            return Some(*id);
        }
        // The process is put in at the end, when it is known which one that is.
        let id = self.trace.contexts.push(Context { number, pid: 0, api: Api::Unknown });
        self.contexts.push(((device, number), id));
        Some(id)
    }

    fn stage(&mut self, category: StrId, work: Work) -> StageId {
        let known = self.stages.iter().find(|known| known.0 == category && known.1 == work);
        if let Some(known) = known {
            return known.2;
        }
        let text = self.trace.strings.get(category).to_owned();
        let stage: Stage = work.stage(&mut self.trace, &text);
        let id = self.trace.stages.push(stage);
        self.stages.push((category, work, id));
        id
    }
}

/// Three dimensions, when a list holds them.
fn dim(trace: &Trace, list: ListId) -> Option<Dim3> {
    let mut items = trace.args.items(list).map(|item| match item {
        Value::I64(n) => u32::try_from(n).ok(),
        _ => None,
    });
    let (x, y, z) = (items.next()??, items.next()??, items.next()??);
    items.next().is_none().then_some(Dim3 { x, y, z })
}
