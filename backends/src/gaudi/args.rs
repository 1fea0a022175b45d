//! Names of arguments, as Habana's profiler for PyTorch writes them.

use kymograph_protos::{ArgType, Extra, StrId};

use super::layout::{self, DATA_TYPE, Event, OPERATION};
use super::texts::Texts;
use crate::device::args::Args;
use crate::device::keys::keys;

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
    fn text(&self, args: &mut Args, key: StrId, text: &[u8]) {
        if !text.is_empty() {
            args.push(Extra::new(key, ArgType::Str, self.intern(text).0.into()));
        }
    }

    /// What an event says of itself; `all` also what others follow from.
    pub(crate) fn describe(
        &self,
        event: &Event<'_>,
        texts: &mut Texts,
        all: bool,
        args: &mut Args,
    ) {
        let own = [(self.recipe_name, event.recipe_name()), (self.data_type, Some(DATA_TYPE))];
        for (key, at) in own {
            let Some(at) = at else { continue };
            let text = texts.get(self.recorder, event.pointer(at), || event.text(at));
            if !text.id.is_none() {
                args.push(Extra::new(key, ArgType::Str, text.id.0.into()));
            }
        }
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
            if !event.text(OPERATION).is_empty() {
                self.text(args, self.event_name, event.name());
            }
        }
    }
}
