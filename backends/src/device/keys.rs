//! The names that a decoder says again and again, interned once.

/// `keys! { field = "name", … }` makes the struct `Keys` of their ids.
macro_rules! keys {
    ($($field:ident = $text:literal,)*) => {
        /// Ids of the names.
        #[derive(Clone, Copy)]
        pub(crate) struct Keys {
            recorder: &'static dyn kymograph_protos::ColdRecorder,
            $(pub(crate) $field: kymograph_protos::StrId,)*
        }

        impl Keys {
            pub(crate) fn new(recorder: &'static dyn kymograph_protos::ColdRecorder) -> Keys {
                let id = |text: &str| {
                    recorder.intern_or_wait(kymograph_protos::StrId::NONE, text.as_bytes())
                };
                Keys { recorder, $($field: id($text),)* }
            }

            /// The id of a name that is not among them.
            pub(crate) fn intern(&self, text: impl AsRef<[u8]>) -> kymograph_protos::StrId {
                let none = kymograph_protos::StrId::NONE;
                self.recorder.intern_or_wait(none, text.as_ref())
            }
        }
    };
}

pub(crate) use keys;
