//! The devices that a process uses, and what the trace calls them.
//!
//! Each vendor counts its devices from 0, and each process counts those that it sees. In a trace
//! a number stands for one device: processes of one recording agree on it by the control page
//! ([`Page::gpu`]), and a process that records alone counts for itself.

use std::sync::Arc;

use kymograph_protos::device::Vendor;
use kymograph_protos::packet::{self, Arg, Device, Name, Strings, Value};
use kymograph_protos::rows;

use crate::page::Page;
use crate::process::identity::mix;

/// A device.
#[derive(Clone, Debug, Default)]
struct Item {
    /// What records call it ([`Vendor::gpu`]).
    number: u32,
    /// What the trace calls it.
    place: u32,
    identity: u64,
    name: Vec<u8>,
    /// Its 16 bytes, if its metadata say them.
    uuid: Vec<u8>,
    metadata: Vec<(Vec<u8>, String)>,
    /// What its kernels are compiled for.
    code: Vec<u8>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Inventory {
    page: Option<Arc<Page>>,
    items: Vec<Item>,
    /// Whether a device is called otherwise than by its vendor's number.
    renumbers: bool,
}

/// A number that lies must not cost memory.
const MAX: u32 = 1 << 12;

/// Arguments that repeat the number of a device.
const DEVICES: [&[u8]; 5] = [b"device", b"fromDevice", b"toDevice", b"inDevice", b"outDevice"];

impl Inventory {
    /// Has the devices agree with those of the other processes that write to the trace.
    pub fn share(&mut self, page: Option<Arc<Page>>) {
        self.page = page;
    }

    /// What the trace calls a device.
    pub fn place(&mut self, number: u32) -> u32 {
        match self.known(number) {
            Some(item) => item.place,
            None => {
                let identity = identity(number % MAX, &[]);
                self.add(number, identity).place
            }
        }
    }

    /// The same of a device of a vendor; as the vendor does, if it was not heard of.
    pub fn shown(&self, vendor: Vendor, index: i64) -> i64 {
        let number = u32::try_from(index).ok().map(|index| vendor.gpu(index));
        number.and_then(|number| self.known(number)).map_or(index, |item| item.place.into())
    }

    /// What the device's kernels are compiled for; may be empty.
    pub fn code(&self, number: u32) -> &[u8] {
        self.known(number).map_or(&[], |item| &item.code)
    }

    /// A device says what it is.
    pub fn describe(&mut self, number: u32, name: Vec<u8>, metadata: Vec<(Vec<u8>, String)>) {
        let uuid = fact(&metadata, b"uuid").map(uuid).unwrap_or_default();
        let identity = identity(number % MAX, &metadata);
        let at = self.items.iter().position(|item| item.number == number % MAX);
        let item = match at {
            Some(at) => &mut self.items[at],
            None => self.add(number, identity),
        };
        item.code = code(&metadata);
        (item.name, item.uuid, item.metadata) = (name, uuid, metadata);
    }

    /// States all of them, each at its place.
    pub fn write(&self, out: &mut Vec<u8>, sequence: u32, time: u64) {
        let Some(last) = self.items.iter().map(|item| item.place).max() else { return };
        let rows: Vec<String> = self.items.iter().map(Item::row).collect();
        // Readers count; what is empty says nothing of the device that another process has there.
        let mut all = vec![Device::default(); last as usize + 1];
        for (item, row) in self.items.iter().zip(&rows) {
            all[item.place as usize] = item.as_device(row);
        }
        packet::devices(out, sequence, time, &all);
    }

    /// The arguments of something that a vendor's device did, with the numbers that the trace has
    /// for devices; none if they are right as they are.
    pub fn renumber<'a>(
        &self,
        args: &[Arg<'a>],
        vendor: Vendor,
        strings: &impl Strings,
    ) -> Option<Vec<Arg<'a>>> {
        if !self.renumbers {
            return None;
        }
        let renumbered = |arg: &Arg<'a>| {
            let value = match (arg.name, arg.value) {
                (Name::Id(name), value) if !DEVICES.contains(&strings.text(name).bytes) => value,
                (Name::Id(_), Value::I64(index)) => Value::I64(self.shown(vendor, index)),
                (Name::Id(_), Value::U64(index)) => {
                    Value::U64(self.shown(vendor, index as i64) as u64)
                }
                (_, value) => value,
            };
            Arg { value, ..*arg }
        };
        Some(args.iter().map(renumbered).collect())
    }

    fn known(&self, number: u32) -> Option<&Item> {
        self.items.iter().find(|item| item.number == number % MAX)
    }

    fn add(&mut self, number: u32, identity: u64) -> &mut Item {
        let number = number % MAX;
        // Some libraries say the same of all their devices.
        let taken = self.items.iter().any(|item| item.identity == identity);
        let identity = if taken { mix(&[identity, number.into()]) } else { identity };
        let shared = self.page.as_ref().and_then(|page| page.gpu(identity));
        let own = self.items.len() as u32;
        let base = if self.page.is_some() { Page::GPUS } else { 0 };
        let place = shared.unwrap_or(base + own);
        self.renumbers |= Vendor::of_gpu(number).1 != place;
        self.items.push(Item { number, place, identity, ..Item::default() });
        self.items.last_mut().expect("it was pushed")
    }
}

/// What is the same in all processes that see a device: whose it is, its id, and where it is
/// plugged in, as far as that is known.
fn identity(number: u32, metadata: &[(Vec<u8>, String)]) -> u64 {
    let says = |text: &&str| text.bytes().any(|byte| byte.is_ascii_hexdigit() && byte != b'0');
    let of = |key| fact(metadata, key).filter(says).unwrap_or_default();
    let (uuid, pci) = (of(b"uuid"), of(b"pci"));
    let mut parts = vec![Vendor::of_gpu(number).0 as u64, uuid.len() as u64];
    if uuid.is_empty() && pci.is_empty() {
        parts.push(number.into());
    }
    let word = |chunk: &[u8]| chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let texts = uuid.as_bytes().chunks(8).chain(pci.as_bytes().chunks(8));
    parts.extend(texts.map(word));
    mix(&parts)
}

fn fact<'a>(metadata: &'a [(Vec<u8>, String)], key: &[u8]) -> Option<&'a str> {
    metadata.iter().find(|(known, _)| known == key).map(|(_, text)| text.as_str())
}

/// What compilers call what a device runs: `sm_90`, `gfx942`.
fn code(metadata: &[(Vec<u8>, String)]) -> Vec<u8> {
    let capability = fact(metadata, b"compute_capability").and_then(|text| text.split_once('.'));
    match capability {
        Some((major, minor)) => format!("sm_{major}{minor}").into_bytes(),
        None => fact(metadata, b"architecture").unwrap_or_default().as_bytes().to_vec(),
    }
}

/// The bytes of a device's id from its text: hexadecimal digits, with words in front and
/// hyphens between them; none if it has others.
fn uuid(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    let last = digits.len().saturating_sub(32);
    let pairs = digits[last..].chunks(2).filter_map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    let bytes: Vec<u8> = pairs.collect();
    if bytes.len() == 16 { bytes } else { Vec::new() }
}

impl Item {
    /// What viewers show of the device.
    fn row(&self) -> String {
        rows::device(self.place.into(), &String::from_utf8_lossy(&self.name))
    }

    /// The device, with the metadata that have a place of their own in it.
    fn as_device<'a>(&'a self, row: &'a str) -> Device<'a> {
        let (name, model) = (row.as_bytes(), &self.name[..]);
        let mut device = Device { name, model, uuid: &self.uuid, ..Device::default() };
        for (key, value) in &self.metadata {
            match key.as_slice() {
                b"vendor" => device.vendor = value.as_bytes(),
                b"architecture" => device.architecture = value.as_bytes(),
                b"pci" => device.pci = value.as_bytes(),
                _ => device.facts.push((key, value.clone())),
            }
        }
        device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(inventory: &mut Inventory, number: u32, metadata: &[(&str, &str)]) -> u32 {
        let metadata =
            metadata.iter().map(|(k, v)| (k.as_bytes().to_vec(), (*v).to_owned())).collect();
        inventory.describe(number, b"a device".to_vec(), metadata);
        inventory.place(number)
    }

    #[test]
    fn processes_agree_on_the_devices_that_both_see() {
        let page = Arc::new(Page::new());
        let process = || {
            let mut inventory = Inventory::default();
            inventory.share(Some(Arc::clone(&page)));
            inventory
        };
        let id = |n: u8| format!("GPU-{:032x}", 0xabcd_0000 + u128::from(n));
        let (amd, intel) = (Vendor::Amd.gpu(0), Vendor::Intel.gpu(0));
        let mut first = process();
        let pci = [("pci", "0000:05:00.0")];
        assert_eq!(described(&mut first, 0, &[("uuid", &id(0))]), 0);
        assert_eq!(described(&mut first, 1, &[("uuid", &id(1))]), 1);
        // It sees the second device only, as CUDA_VISIBLE_DEVICES has it, and another vendor's.
        let mut second = process();
        assert_eq!(described(&mut second, 0, &[("uuid", &id(1))]), 1);
        assert_eq!(described(&mut second, amd, &pci), 2);
        assert_eq!((second.shown(Vendor::Nvidia, 0), second.shown(Vendor::Amd, 0)), (1, 2));
        assert_eq!(second.shown(Vendor::Amd, 7), 7, "it was not heard of");
        // Devices of one machine that all say the same are several; all zero says nothing.
        let mut third = process();
        let same = [("uuid", id(9))];
        let same: Vec<_> = same.iter().map(|(k, v)| (*k, v.as_str())).collect();
        assert_eq!(described(&mut third, intel, &same), 3);
        assert_eq!(described(&mut third, intel + 1, &same), 4);
        let zero = "GPU-00000000-0000-0000-0000-000000000000";
        assert_eq!(described(&mut third, intel + 2, &[("uuid", zero)]), 5);
        assert_eq!(described(&mut process(), intel + 2, &[("uuid", zero)]), 5);
    }

    #[test]
    fn alone_they_are_numbered_as_they_come() {
        let mut inventory = Inventory::default();
        assert_eq!(described(&mut inventory, Vendor::Amd.gpu(0), &[]), 0);
        assert!(!inventory.renumbers);
        assert_eq!(described(&mut inventory, 0, &[]), 1);
        assert!(inventory.renumbers);
        let mut out = Vec::new();
        inventory.write(&mut out, 1, 1);
        assert!(!out.is_empty());
    }
}
