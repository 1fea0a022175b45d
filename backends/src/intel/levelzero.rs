//! Level Zero: whether it works in this process, and which devices it has.
//!
//! PTI asserts that it does, and aborts the process if not (seen with PTI 1.2: `zeInit`
//! without a driver, and a driver that knows no `zeDeviceGetSubDevices`). So what it would
//! assert is asked here first. That initialises Level Zero, as PTI itself would; it is
//! only done in a process that uses it.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use kymograph_protos::device::Vendor;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::sys::{
    DeviceProperties, LevelZero, ZE_DEVICE_GPU, ZE_DEVICE_PROPERTIES, ZE_SUCCESS, ZE_UNINITIALISED,
};
use crate::device::error::Result;
use crate::load::Library;

const LOADER: &CStr = c"libze_loader.so.1";
/// Drivers, devices of a driver and parts of a device at most.
const MAX_HANDLES: usize = 64;

/// A GPU, or a part of one (a tile), which PTI names by the same kind of UUID.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) uuid: [u8; 16],
    pub(crate) name: String,
    pub(crate) units: u32,
    pub(crate) clock_mhz: u32,
    pub(crate) part: bool,
}

/// The loader of Level Zero, if the process has it or may have it (`load`).
pub(crate) fn loader(load: bool) -> Option<&'static LevelZero> {
    static FOUND: OnceLock<LevelZero> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Some(found);
    }
    let library = if load { Library::load(LOADER) } else { Library::present(LOADER) };
    let found = LevelZero::find(library?).ok()?;
    Some(FOUND.get_or_init(|| found))
}

/// `ZE_RESULT_ERROR_UNINITIALIZED`: what Level Zero says where there is none.
pub const UNINITIALISED: c_int = ZE_UNINITIALISED;

/// The GPUs of this process in the order of Level Zero, or what PTI would abort for.
pub(crate) fn devices(zero: &LevelZero) -> Result<Vec<Device>> {
    // SAFETY: 0: all kinds of drivers, as SYCL and PTI ask for.
    let result = unsafe { (zero.init)(0) };
    if result != ZE_SUCCESS {
        let why = format!("Level Zero has no driver that works here (zeInit: {result:#x})");
        return Err(why.into());
    }
    let drivers = handles(|count, to| {
        // SAFETY: a count and as many places.
        unsafe { (zero.drivers)(count, to) }
    });
    let drivers = drivers.map_err(|code| format!("Level Zero: zeDriverGet: {code:#x}"))?;
    let mut devices = Vec::new();
    for driver in drivers {
        let found = handles(|count, to| {
            // SAFETY: a driver of Level Zero's; a count and as many places.
            unsafe { (zero.devices)(driver, count, to) }
        });
        let found = found.map_err(|code| format!("Level Zero: zeDeviceGet: {code:#x}"))?;
        for device in found {
            let Some(described) = describe(zero, device, false) else { continue };
            devices.push(described);
            let parts = handles(|count, to| {
                // SAFETY: a device of Level Zero's; a count and as many places.
                unsafe { (zero.sub_devices)(device, count, to) }
            });
            let parts = parts.map_err(|code| {
                format!(
                    "the driver of Level Zero is not one that PTI works with \
                         (zeDeviceGetSubDevices: {code:#x})"
                )
            })?;
            devices.extend(parts.into_iter().filter_map(|part| describe(zero, part, true)));
        }
    }
    if devices.is_empty() {
        return Err("Level Zero has no GPU here".into());
    }
    Ok(devices)
}

/// What a function of Level Zero lists: it is asked how many there are, then for them.
fn handles(
    mut list: impl FnMut(*mut u32, *mut *mut c_void) -> i32,
) -> std::result::Result<Vec<*mut c_void>, i32> {
    let mut count = 0;
    match list(&mut count, ptr::null_mut()) {
        ZE_SUCCESS => {}
        error => return Err(error),
    }
    let mut all = vec![ptr::null_mut(); (count as usize).min(MAX_HANDLES)];
    count = all.len() as u32;
    if count == 0 {
        return Ok(all);
    }
    match list(&mut count, all.as_mut_ptr()) {
        ZE_SUCCESS => {}
        error => return Err(error),
    }
    all.truncate(count as usize);
    Ok(all)
}

fn describe(zero: &LevelZero, device: *mut c_void, part: bool) -> Option<Device> {
    // SAFETY: numbers, bytes and a pointer that may be null.
    let mut properties: DeviceProperties = unsafe { std::mem::zeroed() };
    properties.stype = ZE_DEVICE_PROPERTIES;
    // SAFETY: a device of Level Zero's, and the struct that its type says.
    let result = unsafe { (zero.device_properties)(device, &mut properties) };
    if result != ZE_SUCCESS || properties.kind != ZE_DEVICE_GPU {
        return None;
    }
    let name = CStr::from_bytes_until_nul(&properties.name).unwrap_or_default();
    Some(Device {
        uuid: properties.uuid,
        name: name.to_string_lossy().into_owned(),
        units: properties
            .slices
            .saturating_mul(properties.subslices_per_slice)
            .saturating_mul(properties.units_per_subslice),
        clock_mhz: properties.core_clock_mhz,
        part,
    })
}

/// Puts a device into the inventory.
pub(crate) fn state(recorder: &dyn ColdRecorder, index: u32, device: &Device) {
    let key = |name: &str| recorder.intern_or_wait(StrId::NONE, name.as_bytes());
    let text =
        |name: &str, value: &str| Extra::new(key(name), ArgType::Str, u64::from(key(value).0));
    let count = |name: &str, value: u32| Extra::new(key(name), ArgType::U64, value.into());
    let mut facts = vec![text("vendor", "Intel"), text("uuid", &uuid(&device.uuid))];
    if device.units > 0 {
        facts.push(count("execution_units", device.units));
        facts.push(count("core_clock_mhz", device.clock_mhz));
    }
    let part = if device.part { ", a part of it" } else { "" };
    let head = Record {
        other: Vendor::Intel.gpu(index).into(),
        site: key(&format!("{}{part}", device.name)),
        kind: Kind::Gpu as u8,
        ..Record::default()
    };
    recorder.push(head, &facts);
}

fn uuid(bytes: &[u8; 16]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            text.push('-');
        }
        text += &format!("{byte:02x}");
    }
    text
}
