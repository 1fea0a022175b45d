//! Fields of vendors' records, by name: where each lies, and what the headers call it.

/// How the records of a kind are laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// What the vendor's header calls the struct; empty: it is not compared with the header.
    pub(crate) name: &'static str,
    /// Bytes that it has at least, in the oldest version; 0: it is not read.
    pub(crate) least: usize,
    /// The header's names of its fields, and their offsets.
    pub(crate) fields: &'static [(&'static str, usize)],
    /// Offsets of those that are times.
    pub(crate) times: &'static [usize],
}

/// Declares records and their layouts:
/// `module: Type = "struct", least bytes, times [field, …] { field = u32 @ offset "name", … }`
/// makes `Type`, a view of a record with a method for each field, and `module::LAYOUT`.
macro_rules! records {
    ($(
        $(#[$doc:meta])*
        $module:ident: $record:ident = $name:literal, $least:literal, times [$($time:ident),*] {
            $($field:ident = $ty:ident @ $at:literal $header:literal,)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[allow(dead_code, reason = "records that are only passed on are not looked into")]
        pub(crate) struct $record<'a>(pub(crate) crate::device::raw::Raw<'a>);

        #[allow(
            dead_code,
            clippy::wrong_self_convention,
            reason = "fields that are only converted; `from_device` is where work comes from"
        )]
        impl $record<'_> {
            $(#[inline]
            pub(crate) fn $field(self) -> $ty {
                self.0.$ty($at)
            })*
        }

        #[allow(dead_code, non_upper_case_globals, reason = "named as the fields are")]
        mod $module {
            $(const $field: usize = $at;)*
            pub(super) const LAYOUT: crate::device::fields::Layout =
                crate::device::fields::Layout {
                    name: $name,
                    least: $least,
                    fields: &[$(($header, $field)),*],
                    times: &[$($time),*],
                };
        }
    )*};
}
pub(crate) use records;

/// Declares kinds of records: `NAME = number: module` makes `kind::NAME`, the table `KINDS`, and
/// `layout(number)`. The modules are those of [`records!`].
macro_rules! kinds {
    ($(#[$doc:meta])* $($name:ident = $number:literal: $module:ident,)*) => {
        $(#[$doc])*
        #[allow(dead_code, reason = "kinds that are only passed on")]
        pub(crate) mod kind {
            $(pub(crate) const $name: u32 = $number;)*
        }

        /// The header's names of kinds, and their numbers and layouts.
        pub(crate) const KINDS: &[(&str, u32, &crate::device::fields::Layout)] =
            &[$((stringify!($name), $number, &$module::LAYOUT)),*];

        /// How the records of a kind are laid out, if it is known.
        pub(crate) fn layout(kind: u32) -> Option<&'static crate::device::fields::Layout> {
            match kind {
                $($number => Some(&$module::LAYOUT),)*
                _ => None,
            }
        }
    };
}
pub(crate) use kinds;
