//! Inputs of PyTorch's operators: lists, which our recordings have as texts of JSON. They are lists in
//! the hub, as in Kineto's files, so that whoever asks for shapes need not know who recorded them.

use hashbrown::HashMap;

use crate::chrome::args::Values;
use crate::json::{Kind, Texts};
use crate::trace::{Slice, StrId, Trace, Value};

/// The arguments that are lists.
const LISTS: [&str; 4] = ["Input Dims", "Input Strides", "Input type", "Concrete Inputs"];

/// Makes lists of the texts; a text that is none stays.
pub(super) fn unfold(trace: &mut Trace) {
    let names: Vec<StrId> = LISTS.iter().filter_map(|name| trace.strings.find(name)).collect();
    if names.is_empty() || !trace.is_own() {
        return;
    }
    let mut lists = Lists::default();
    let mut entries = Vec::new();
    for id in trace.slices.ids() {
        let slice = trace.slices.get(id);
        let is_text =
            |name: &StrId| matches!(trace.args.find(slice.args, *name), Some(Value::Str(_)));
        if !names.iter().any(is_text) {
            continue;
        }
        entries.clear();
        entries.extend(trace.args.entries(slice.args));
        for (name, value) in &mut entries {
            if let Value::Str(text) = *value
                && names.contains(name)
            {
                *value = lists.list(trace, text);
            }
        }
        let args = trace.args.add(&entries);
        trace.slices.set(id, Slice { args, ..slice });
    }
}

/// Lists by their texts, which repeat all the time.
#[derive(Default)]
struct Lists {
    known: HashMap<StrId, Value>,
    texts: Texts,
    values: Values,
}

impl Lists {
    fn list(&mut self, trace: &mut Trace, text: StrId) -> Value {
        if let Some(known) = self.known.get(&text) {
            return *known;
        }
        let said = trace.strings.get(text).to_owned();
        let list = self.texts.read(&said, |value| {
            (value.kind() == Kind::Array).then(|| self.values.value(trace, value))
        });
        let value = list.flatten().unwrap_or(Value::Str(text));
        self.known.insert(text, value);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Nanos;

    fn recorded(producer: &str, inputs: &[&str]) -> (Trace, Vec<Value>) {
        let mut trace = Trace::default();
        trace.facts.producer = trace.strings.intern(producer);
        let name = trace.strings.intern("Input Dims");
        for text in inputs {
            let text = trace.strings.intern(text);
            let args = trace.args.add(&[(name, Value::Str(text))]);
            let slice = Slice::new(crate::trace::TrackId::at(0), Nanos(0), Nanos(1));
            trace.slices.push(Slice { args, ..slice });
        }
        unfold(&mut trace);
        let args = trace.slices.iter().map(|slice| trace.args.find(slice.args, name).unwrap());
        let args = args.collect();
        (trace, args)
    }

    #[test]
    fn texts_of_recordings_are_lists_and_others_stay() {
        let texts =
            ["[[8, 64], [8, 64], []]", "[[2, 3], [2, 3]]", "[[8, 64], [8, 64], []]", "[[1, 2"];
        let (trace, values) = recorded("Kymograph 0.1.0", &texts);
        let json = |value: &Value| trace.json(*value);
        assert_eq!(
            values.iter().map(json).collect::<Vec<_>>(),
            ["[[8, 64], [8, 64], []]", "[[2, 3], [2, 3]]", "[[8, 64], [8, 64], []]", "\"[[1, 2\"",]
        );
        let (_, foreign) = recorded("Kineto", &texts[..1]);
        assert!(matches!(foreign[0], Value::Str(_)));
    }
}
