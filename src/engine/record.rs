//! Takes a record apart: head, arguments, flows, and a string by value.

use kymograph_protos::device::{DeviceSlot, LaunchSlot, Vendor};
use kymograph_protos::packet::{Arg, Name, Strings, Value};
use kymograph_protos::record::{
    ArgType, Extra, Kind, NAME_BY_VALUE, Record, Slot, StrId, TYPE_BITS,
};

/// A record with its tail taken apart. Reused from record to record.
#[derive(Clone, Debug, Default)]
pub struct Decoded {
    /// Arguments that need no bytes.
    args: Vec<(StrId, ArgType, u64)>,
    pub flows: Vec<u64>,
    pub flow_ends: Vec<u64>,
    /// Correlation ids of device work that the event asked for, or waited for.
    pub launched: Vec<u64>,
    pub waited: Vec<u64>,
    /// What a device did, for records of that kind.
    pub device: DeviceSlot,
    pub launch: Option<LaunchSlot>,
    /// The track the event belongs to, 0 for the thread's.
    pub track: u64,
    /// The last `i64` without a name: the rank of a track.
    pub rank: Option<i64>,
    /// A string by value: a name or an argument.
    bytes: Vec<u8>,
    /// The argument that `bytes` are the value of, if they are one.
    bytes_arg: Option<StrId>,
    /// Whether `bytes` are the event's name.
    by_value: bool,
    /// Whether the last record had a tail.
    dirty: bool,
    /// The name of the argument that says the first of `launched`; none to say nothing.
    correlation: StrId,
}

/// The category of a record's name.
pub fn category(head: &Record, strings: &impl Strings) -> StrId {
    if head.tag & NAME_BY_VALUE != 0 { head.site } else { strings.text(head.site).category }
}

/// The nesting stack of a `Begin` or `Push`: `NONE` for scopes, else the category.
pub fn stack_of(head: &Record, strings: &impl Strings) -> StrId {
    if head.kind == Kind::Push as u8 { category(head, strings) } else { StrId::NONE }
}

/// How many slots the record at the start of `slots` takes, if they are all there.
pub fn record_len(slots: &[Slot]) -> Option<usize> {
    let head: Record = bytemuck::cast(*slots.first()?);
    let len = 1 + head.tail as usize;
    (len <= slots.len()).then_some(len)
}

impl Decoded {
    /// Calls that launched something say its number by this name.
    pub fn saying(correlation: StrId) -> Decoded {
        Decoded { correlation, ..Decoded::default() }
    }

    /// Takes the record at the start of `slots` apart.
    ///
    /// Inlined: a head that came back through memory would be stored by halves and loaded
    /// whole, which the processor has to wait for.
    #[inline(always)]
    pub fn read(&mut self, slots: &[Slot], strings: &impl Strings) -> (Record, Option<Kind>) {
        let head: Record = bytemuck::cast(slots[0]);
        let kind = Kind::from_u8(head.kind);
        self.args.clear();
        self.by_value = head.tag & NAME_BY_VALUE != 0;
        if head.tail > 0 || self.dirty {
            self.dirty = head.tail > 0;
            self.read_rest(kind, &slots[1..1 + head.tail as usize]);
        }
        let ty = ArgType::from_u8(head.tag & TYPE_BITS);
        self.first_arg(ty.unwrap_or(ArgType::None), head, strings);
        if let Some(number) = self.launched.first()
            && !self.correlation.is_none()
        {
            let correlation = Vendor::of_call(*number).1;
            self.args.push((self.correlation, ArgType::U64, correlation.into()));
        }
        (head, kind)
    }

    #[inline(never)]
    fn read_rest(&mut self, kind: Option<Kind>, tail: &[Slot]) {
        let own = if kind == Some(Kind::Device) { self.read_device(tail) } else { 0 };
        self.read_tail(&tail[own..]);
    }

    /// Reads the slots that only device records have; returns how many there are.
    fn read_device(&mut self, tail: &[Slot]) -> usize {
        self.device = tail.first().map(|slot| bytemuck::cast(*slot)).unwrap_or_default();
        self.launch = None;
        match (self.device.launch, tail) {
            (1, [_, launch, ..]) => {
                self.launch = Some(bytemuck::cast(*launch));
                2
            }
            _ => tail.len().min(1),
        }
    }

    /// Adds an argument.
    pub fn add(&mut self, name: StrId, ty: ArgType, bits: u64) {
        self.args.push((name, ty, bits));
        self.dirty = true;
    }

    /// The argument in the head itself: it comes before those in the tail.
    #[inline]
    fn first_arg(&mut self, ty: ArgType, head: Record, strings: &impl Strings) {
        match ty {
            ArgType::None => return,
            ArgType::Flow => self.flows.push(head.arg),
            ArgType::FlowEnd => self.flow_ends.push(head.arg),
            ArgType::Launch => self.launched.push(head.arg),
            ArgType::Wait => self.waited.push(head.arg),
            _ => return self.args.insert(0, (strings.text(head.site).arg, ty, head.arg)),
        }
        self.dirty = true;
    }

    fn read_tail(&mut self, tail: &[Slot]) {
        self.flows.clear();
        self.flow_ends.clear();
        self.launched.clear();
        self.waited.clear();
        self.bytes.clear();
        self.bytes_arg = None;
        self.track = 0;
        self.rank = None;
        for (index, slot) in tail.iter().enumerate() {
            for extra in bytemuck::cast::<Slot, [Extra; 2]>(*slot) {
                match ArgType::from_u8(extra.ty) {
                    None | Some(ArgType::None) => {}
                    Some(ArgType::Flow) => self.flows.push(extra.value),
                    Some(ArgType::FlowEnd) => self.flow_ends.push(extra.value),
                    Some(ArgType::Launch) => self.launched.push(extra.value),
                    Some(ArgType::Wait) => self.waited.push(extra.value),
                    Some(ArgType::Track) => self.track = extra.value,
                    Some(ArgType::I64) if extra.name.is_none() => {
                        self.rank = Some(extra.value as i64);
                    }
                    Some(ArgType::Bytes) => {
                        let rest = bytemuck::cast_slice::<Slot, u8>(&tail[index + 1..]);
                        let len = (extra.value as usize).min(rest.len());
                        self.bytes.extend_from_slice(&rest[..len]);
                        self.bytes_arg = (!extra.name.is_none()).then_some(extra.name);
                        return;
                    }
                    Some(ty) => self.args.push((extra.name, ty, extra.value)),
                }
            }
        }
    }

    /// Makes its arrows pass through instead of ending: where they began may be in a file
    /// that is not this one, and an end without a beginning is a defect of a trace.
    pub fn leave_flows_open(&mut self) {
        self.flows.append(&mut self.flow_ends);
    }

    /// Takes the place of a record that has a text for its only argument.
    pub fn say(&mut self, name: StrId, text: &[u8]) {
        *self = Decoded::default();
        self.bytes.extend_from_slice(text);
        self.bytes_arg = (!name.is_none()).then_some(name);
        self.dirty = true;
    }

    /// The value of the argument called `name`, as bits.
    pub fn number(&self, name: &[u8], strings: &impl Strings) -> Option<u64> {
        self.args.iter().find(|(id, ..)| strings.text(*id).bytes == name).map(|arg| arg.2)
    }

    /// All arguments as texts.
    pub fn texts(&self, strings: &impl Strings) -> Vec<(Vec<u8>, String)> {
        let text = |id: StrId| String::from_utf8_lossy(strings.text(id).bytes).into_owned();
        self.args
            .iter()
            .map(|&(name, ty, bits)| {
                let value = match ty {
                    ArgType::Str => text(StrId(bits as u32)),
                    ArgType::I64 => (bits as i64).to_string(),
                    ArgType::F64 => f64::from_bits(bits).to_string(),
                    _ => bits.to_string(),
                };
                (strings.text(name).bytes.to_vec(), value)
            })
            .collect()
    }

    /// The string by value, if it is an argument or a fact.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The event's name: `site`, or the bytes that came instead of it.
    pub fn name(&self, site: StrId) -> Name<'_> {
        if self.by_value { Name::Bytes(&self.bytes) } else { Name::Id(site) }
    }

    /// The same as text.
    pub fn text<'a>(&'a self, site: StrId, strings: &'a impl Strings) -> &'a [u8] {
        if self.by_value { &self.bytes } else { strings.text(site).bytes }
    }

    /// Calls `f` with the arguments.
    #[inline(always)]
    pub fn with_args<R>(&self, f: impl FnOnce(&[Arg<'_>]) -> R) -> R {
        let one;
        let more;
        let args: &[Arg<'_>] = match (self.args.as_slice(), self.bytes_arg) {
            ([], None) => &[],
            ([only], None) => {
                one = [arg(only)];
                &one
            }
            _ => {
                more = self.more_args();
                &more
            }
        };
        f(args)
    }

    #[inline(never)]
    fn more_args(&self) -> Few<'_> {
        let bytes = &*self.bytes;
        let last =
            self.bytes_arg.map(|name| Arg { name: Name::Id(name), value: Value::Bytes(bytes) });
        let mut few = Few { few: [NO_ARG; FEW], count: 0, many: Vec::new() };
        let count = self.args.len() + usize::from(last.is_some());
        let all = self.args.iter().map(arg).chain(last);
        if count <= FEW {
            for (to, from) in few.few.iter_mut().zip(all) {
                *to = from;
            }
            few.count = count;
        } else {
            few.many = all.collect();
        }
        few
    }
}

const NO_ARG: Arg<'_> = Arg { name: Name::Id(StrId::NONE), value: Value::Bool(false) };
const FEW: usize = 6;

/// Arguments, without allocating if there are few.
struct Few<'a> {
    few: [Arg<'a>; FEW],
    count: usize,
    many: Vec<Arg<'a>>,
}

impl<'a> std::ops::Deref for Few<'a> {
    type Target = [Arg<'a>];

    fn deref(&self) -> &[Arg<'a>] {
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }
}

#[inline(always)]
fn arg<'a>(&(name, ty, bits): &(StrId, ArgType, u64)) -> Arg<'a> {
    let value = match ty {
        ArgType::Bool => Value::Bool(bits != 0),
        ArgType::I64 => Value::I64(bits as i64),
        ArgType::F64 => Value::F64(f64::from_bits(bits)),
        ArgType::Str => Value::Str(StrId(bits as u32)),
        ArgType::Pointer => Value::Pointer(bits),
        ArgType::List => Value::List(bits as u32),
        _ => Value::U64(bits),
    };
    Arg { name: Name::Id(name), value }
}
