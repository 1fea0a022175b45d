//! Names of arguments, as Habana's profiler for PyTorch writes them.

use kymograph_protos::{ArgType, Extra, Recorder, StrId};

use super::layout::{self, Event};
use crate::vendor::args::Args;

macro_rules! keys {
    ($($field:ident = $text:literal,)*) => {
        /// Ids of the names.
        #[derive(Clone, Copy)]
        pub(crate) struct Keys {
            recorder: &'static dyn Recorder,
            $(pub(crate) $field: StrId,)*
        }

        impl Keys {
            pub(crate) fn new(recorder: &'static dyn Recorder) -> Keys {
                let id = |text: &str| recorder.intern(StrId::NONE, text.as_bytes());
                Keys { recorder, $($field: id($text),)* }
            }
        }
    };
}

keys! {
    api = "api",
    context = "context",
    data_type = "dataType",
    device = "device",
    event_handle = "eventHandle",
    event_name = "EventName",
    // Kineto's category for calls of vendors that it has no other for.
    host = "privateuse1_runtime",
    recipe = "recipeId",
    recipe_name = "recipeName",
    stream = "stream",
    stream_handle = "streamHandle",
}

impl Keys {
    pub(crate) fn intern(&self, text: &[u8]) -> StrId {
        self.recorder.intern(StrId::NONE, text)
    }

    fn text(&self, args: &mut Args, key: StrId, text: &[u8]) {
        if !text.is_empty() {
            args.push(Extra::new(key, ArgType::Str, self.intern(text).0.into()));
        }
    }

    /// What an event says of itself; `all` also what others follow from.
    pub(crate) fn describe(&self, event: &Event<'_>, all: bool, args: &mut Args) {
        self.text(args, self.recipe_name, event.recipe_name());
        self.text(args, self.data_type, event.data_type());
        for (key, value) in event.extras() {
            let key = self.intern(key);
            match value {
                layout::Extra::Number(number) => args.unsigned(key, number),
                layout::Extra::Float(number) => args.float(key, number),
                layout::Extra::Text(text) => self.text(args, key, text),
            }
        }
        if all {
            args.unless_zero(self.recipe, event.recipe());
            for (key, handle) in
                [(self.stream_handle, event.stream()), (self.event_handle, event.event_handle())]
            {
                if handle != 0 {
                    self.text(args, key, format!("{handle:#x}").as_bytes());
                }
            }
            if !event.operation().is_empty() {
                self.text(args, self.event_name, event.name());
            }
        }
    }
}
