//! Schemas and enumerations that the program registered.
//!
//! They are copied at registration, with names ready to be interned, and kept for good. An
//! id is found in one step: ids that we gave out are indices, ids that the program chose
//! are looked up per domain.

use kymograph_protos::StrId;

use super::super::super::memory;
use super::super::super::table::{Interned, List, Map};
use super::super::super::text::{ascii, clip};
use super::super::sys::{self, EnumAttributes, SchemaAttributes, SchemaEntry};
use super::fields::{Primitive, predefined};

static LAYOUTS: List<Layout> = List::new();
/// (category of the domain, id chosen by the program) → index in [`LAYOUTS`], plus 1.
static CHOSEN: Map = Map::new();

/// Entries of one schema or enumeration, at most.
const MAX_ENTRIES: usize = 1024;
/// Bytes of an entry's name, at most.
const MAX_NAME: usize = 256;

/// What an id stands for.
pub(crate) enum Layout {
    Schema(Schema),
    Enumeration(Enumeration),
}

/// A structure.
pub(crate) struct Schema {
    pub(crate) fields: Vec<Field>,
    /// Size of one, if the program said.
    pub(crate) size: Option<usize>,
    /// Alignment of one.
    pub(crate) align: usize,
    /// Alignment that members have at most; 0: natural.
    pub(crate) pack: usize,
    /// Whether members follow one another, as opposed to choices of a union.
    pub(crate) is_struct: bool,
}

/// A member.
pub(crate) struct Field {
    pub(crate) key: Interned,
    pub(crate) flags: u64,
    pub(crate) ty: Type,
    pub(crate) detail: u64,
    /// Where it is, if that was said.
    pub(crate) offset: Option<u64>,
}

/// The type of a member.
#[derive(Clone, Copy)]
pub(crate) enum Type {
    Primitive(Primitive),
    Schema(&'static Schema),
    Enumeration(&'static Enumeration),
    Unknown,
}

/// A number's name, and whether it is a flag.
type Named = (u64, bool, Vec<u8>);

/// Names of numbers.
pub(crate) struct Enumeration {
    pub(crate) size: usize,
    pub(crate) names: Vec<Named>,
}

/// The layout with this id, in the domain of this category.
pub(crate) fn find(category: StrId, id: u64) -> Option<&'static Layout> {
    let index = if id >= sys::DYNAMIC_IDS {
        u32::try_from(id - sys::DYNAMIC_IDS).ok()?
    } else {
        CHOSEN.get(category.0.into(), id)? - 1
    };
    LAYOUTS.get(index)
}

/// The type that an entry means by a number.
pub(crate) fn type_of(category: StrId, ty: u64) -> Type {
    if ty < sys::STATIC_IDS {
        return predefined(ty).map_or(Type::Unknown, Type::Primitive);
    }
    match find(category, ty) {
        Some(Layout::Schema(schema)) => Type::Schema(schema),
        Some(Layout::Enumeration(names)) => Type::Enumeration(names),
        None => Type::Unknown,
    }
}

impl Type {
    /// Alignment of one, as C would choose it.
    pub(crate) fn align(self) -> usize {
        match self {
            Type::Primitive(primitive) => primitive.align(),
            Type::Schema(schema) => schema.align,
            Type::Enumeration(names) => names.size.max(1),
            Type::Unknown => 1,
        }
    }
}

fn add(category: StrId, chosen: Option<u64>, layout: Layout) -> u64 {
    let Some(index) = LAYOUTS.push(layout) else {
        return 0;
    };
    match chosen {
        // Every copy of NVTX in the process registers the same: the last one counts.
        Some(id) if (sys::STATIC_IDS..sys::DYNAMIC_IDS).contains(&id) => {
            if CHOSEN.insert(category.0.into(), id, index + 1) { id } else { 0 }
        }
        _ => sys::DYNAMIC_IDS + u64::from(index),
    }
}

/// Registers a schema. Returns its id, or 0 if it makes no sense.
///
/// # Safety
/// `attributes` is NULL or what NVTX passes to `nvtxPayloadSchemaRegister`.
pub(crate) unsafe fn register(category: StrId, attributes: *const SchemaAttributes) -> u64 {
    if attributes.is_null() {
        return 0;
    }
    // SAFETY: not NULL. The structure has had this size since the extension exists.
    let attributes = unsafe { attributes.read_unaligned() };
    let has = |field| attributes.field_mask & field == field;
    if !has(sys::SCHEMA_HAS_ENTRIES | sys::SCHEMA_HAS_COUNT)
        || attributes.entries.is_null()
        || attributes.entry_count > MAX_ENTRIES
    {
        return 0;
    }
    let pack = if has(sys::SCHEMA_HAS_PACK) { attributes.pack } else { 0 };
    let pack = if pack.is_power_of_two() && pack <= 16 { pack } else { 0 };
    let mut fields = Vec::new();
    for i in 0..attributes.entry_count {
        // SAFETY: there are that many entries.
        let field = unsafe { field(category, i, &attributes.entries.add(i).read_unaligned()) };
        if field.and_then(|field| memory::push(&mut fields, field)).is_none() {
            return 0;
        }
    }
    let natural = fields.iter().map(|field| field.align()).max().unwrap_or(1);
    let ty = if has(sys::SCHEMA_HAS_TYPE) { attributes.ty } else { sys::SCHEMA_STATIC };
    let size =
        (ty == sys::SCHEMA_STATIC && has(sys::SCHEMA_HAS_SIZE)).then_some(attributes.static_size);
    let schema = Schema {
        fields,
        size: size.filter(|&size| size > 0),
        align: if pack == 0 { natural } else { natural.min(pack) },
        pack,
        is_struct: ty == sys::SCHEMA_STATIC || ty == sys::SCHEMA_DYNAMIC,
    };
    add(category, has(sys::SCHEMA_HAS_ID).then_some(attributes.id), Layout::Schema(schema))
}

/// # Safety
/// The entry's name is NULL or a C string.
unsafe fn field(category: StrId, index: usize, entry: &SchemaEntry) -> Option<Field> {
    // SAFETY: the caller's promise.
    let name = clip(unsafe { ascii(entry.name) }, MAX_NAME);
    let key = if name.is_empty() {
        Interned::new(&memory::format(format_args!("payload[{index}]"))?)
    } else {
        Interned::new(name)
    };
    Some(Field {
        key: key?,
        flags: entry.flags,
        ty: type_of(category, entry.ty),
        detail: entry.detail,
        // 0 means "after the one before", but for the first.
        offset: (index == 0 || entry.offset != 0).then_some(entry.offset),
    })
}

impl Field {
    /// A value that is all there is.
    pub(crate) fn unnamed(ty: Type) -> Field {
        Field { key: Interned::known(b"payload"), flags: 0, ty, detail: 0, offset: Some(0) }
    }

    /// Alignment in its structure.
    pub(crate) fn align(&self) -> usize {
        if self.is_reference() { 8 } else { self.ty.align() }
    }

    /// Whether the payload holds a pointer or an offset instead of the value.
    pub(crate) fn is_reference(&self) -> bool {
        self.flags & (sys::FLAG_POINTER | sys::FLAG_OFFSETS) != 0
    }
}

/// Registers an enumeration. Returns its id, or 0 if it makes no sense.
///
/// # Safety
/// `attributes` is NULL or what NVTX passes to `nvtxPayloadEnumRegister`.
pub(crate) unsafe fn register_enumeration(
    category: StrId,
    attributes: *const EnumAttributes,
) -> u64 {
    if attributes.is_null() {
        return 0;
    }
    // SAFETY: not NULL, and of this size since the extension exists.
    let attributes = unsafe { attributes.read_unaligned() };
    let has = |field| attributes.field_mask & field == field;
    let needed = sys::ENUM_HAS_ENTRIES | sys::ENUM_HAS_COUNT | sys::ENUM_HAS_SIZE;
    if !has(needed)
        || attributes.entries.is_null()
        || attributes.entry_count > MAX_ENTRIES
        || !matches!(attributes.size, 1 | 2 | 4 | 8)
    {
        return 0;
    }
    let mut names = Vec::new();
    for i in 0..attributes.entry_count {
        // SAFETY: there are `entry_count` of them, and names are NULL or C strings.
        let (entry, name) = unsafe {
            let entry = attributes.entries.add(i).read_unaligned();
            (entry, ascii(entry.name))
        };
        let name = memory::concat(&[clip(name, MAX_NAME)]);
        let named = name.map(|name| (entry.value, entry.is_flag != 0, name));
        if named.and_then(|named| memory::push(&mut names, named)).is_none() {
            return 0;
        }
    }
    let layout = Layout::Enumeration(Enumeration { size: attributes.size, names });
    add(category, has(sys::ENUM_HAS_ID).then_some(attributes.id), layout)
}

impl Enumeration {
    /// The name of a value, or of the flags that it is made of; none if it has none.
    pub(crate) fn name(&self, value: u64) -> Option<Vec<u8>> {
        if let Some((_, _, name)) = self.names.iter().find(|(v, _, _)| *v == value) {
            return memory::concat(&[name]);
        }
        let mut rest = value;
        let mut text = Vec::new();
        for (flag, is_flag, name) in &self.names {
            if *is_flag && *flag != 0 && rest & flag == *flag {
                rest &= !flag;
                let between: &[u8] = if text.is_empty() { b"" } else { b"|" };
                text = memory::concat(&[&text, between, name])?;
            }
        }
        (rest == 0 && !text.is_empty()).then_some(text)
    }
}
