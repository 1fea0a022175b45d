//! A layer for `tracing`: what a program says through `tracing` goes into the trace.
//!
//! ```
//! use kymograph::{Config, Recording, layer::Layer};
//! use tracing_subscriber::layer::SubscriberExt;
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("t.pftrace");
//! let subscriber = tracing_subscriber::registry().with(Layer::new());
//! let recording = Recording::start(Config::to_file(&path))?;
//! tracing::subscriber::with_default(subscriber, || {
//!     let _span = tracing::info_span!("request", id = 7).entered();
//!     tracing::info!(bytes = 512, "answered");
//! });
//! assert_eq!(recording.stop().events, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | `tracing` | trace |
//! |---|---|
//! | target | category: `CATEGORIES=my_crate*,-my_crate::noisy` filters, [`crate::Category::set_enabled`] switches |
//! | span | slices or a range: see [`Style`] |
//! | field | typed argument; what is only `Debug` or `Display` becomes a string |
//! | field recorded later | argument of the next beginning or end of the span |
//! | `follows_from` | an arrow from the cause's latest slice, if it is not closed yet |
//! | event | instant on the thread, called by its message |
//!
//! A span that is entered again, perhaps on another thread, as futures are, has an arrow
//! from its slice before. Several followers of one slice are one chain of arrows: that is
//! how flows are drawn.
//!
//! A span that was made before the recording started, or while its category was off, is
//! recorded from its next entrance on, without the fields it had by then.
//!
//! One such layer per process, please: two would share their notes on a span. Without a
//! recording the layer costs a lookup per span and event, and [`Layer::alone`] saves the
//! rest.
//!
//! What the layer remembers of a span lies in the registry's extensions and nowhere else,
//! so it allocates nothing of its own per span, event or field.

mod entered;
mod fields;
mod sites;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kymograph_protos::record::{ArgType, Kind};
use kymograph_protos::{Recorder, StrId};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::__private::COMPILED_IN;
use crate::api::draft::Draft;
use crate::api::range::unique;
use crate::api::{Flow, Track};
use crate::queue::PRODUCER;
use crate::recorder::PIPELINE;
use entered::Open;
use fields::{Text, Values};
use sites::Site;

/// Rows below each other; spans that are deeper share the last one.
const MAX_ROWS: u32 = 16;
/// Causes that a span can have before it begins.
const MAX_CAUSES: usize = 4;

/// What a span looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// A slice for each time it is entered, on the thread that entered it: who runs what,
    /// when. Spans that are exited in another order than they were entered are cut where
    /// the outer one ends, so that each slice is true.
    #[default]
    Threads,
    /// One range from its creation to its close, on whatever threads: how long it took.
    /// Each name has a row under its parent's, so that the rows are the tree of spans;
    /// spans that overlap lie side by side in it. Entering leaves no mark.
    Ranges,
}

/// See the module. All its methods may be called from any thread.
#[derive(Debug, Default)]
pub struct Layer {
    style: Style,
    alone: bool,
    /// Rows of [`Style::Ranges`]: by their parent (0: none) and the span's place.
    rows: Mutex<HashMap<(u64, usize), Track>>,
}

impl Layer {
    /// A layer of the default style.
    pub fn new() -> Layer {
        Layer::default()
    }

    /// Chooses another style.
    #[must_use]
    pub fn style(mut self, style: Style) -> Layer {
        self.style = style;
        self
    }

    /// Says that no other layer wants spans and events: those that no recording wants are
    /// then not even made, and cost some nanoseconds. A span that was not made when the
    /// recording started is not in it.
    #[must_use]
    pub fn alone(mut self) -> Layer {
        self.alone = true;
        self
    }

    /// The row of a span below that of its parent.
    fn row(&self, parent: Option<&Track>, site: &'static Site) -> Track {
        let key = (parent.map_or(0, Track::key), std::ptr::from_ref(site).addr());
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Track::with(site.metadata.name().as_bytes(), parent.cloned(), None);
        rows.entry(key).or_insert_with(make).clone()
    }
}

fn wanted(site: &Site) -> bool {
    COMPILED_IN && PIPELINE.enabled(site.category)
}

/// What is remembered of a span.
#[derive(Debug)]
struct Span {
    site: &'static Site,
    /// Fields that no event has carried yet.
    values: Values,
    /// On its latest slice; 0 before the first.
    flow: u64,
    /// Whether that slice has a follower: the next one starts a new flow then, lest an
    /// arrow lead from the follower back to it.
    followed: bool,
    /// Flows of its causes, for its next beginning or end.
    causes: [u64; MAX_CAUSES],
    cause_count: usize,
    /// Its range; 0: none was recorded.
    range: u64,
    /// Its row.
    row: Option<Track>,
    level: u32,
}

impl Span {
    fn new(site: &'static Site, values: Values) -> Span {
        Span {
            site,
            values,
            flow: 0,
            followed: false,
            causes: [0; MAX_CAUSES],
            cause_count: 0,
            range: 0,
            row: None,
            level: 0,
        }
    }

    /// A slice of it begins: by its name, with its flow.
    fn begins(&mut self, kind: Kind) -> Draft<'static> {
        if self.flow == 0 || self.followed {
            self.flow = Flow::new().id();
            self.followed = false;
        }
        let mut draft = self.site.draft(kind);
        draft.arg(StrId::NONE, ArgType::Flow, self.flow);
        draft
    }

    /// Adds what waits for the next beginning or end, and records that.
    fn push(&mut self, draft: Draft<'static>) -> bool {
        let values = std::mem::take(&mut self.values);
        let mut draft: Draft<'_> = draft;
        for flow in &self.causes[..std::mem::take(&mut self.cause_count)] {
            draft.arg(StrId::NONE, ArgType::Flow, *flow);
        }
        values.add_to(self.site, &mut draft);
        draft.push()
    }
}

impl<S> tracing_subscriber::Layer<S> for Layer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Names are interned here, once.
        sites::get(metadata);
        if self.alone { Interest::sometimes() } else { Interest::always() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        !self.alone || sites::find(metadata).is_none_or(wanted)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let Some(context) = cx.span(id) else { return };
        let site = sites::get(attributes.metadata());
        // Formatted before anything is locked: `Debug` of a field is the program's code.
        let mut values = Values::default();
        if wanted(site) {
            attributes.record(&mut values.visit(None));
        }
        let mut span = Span::new(site, values);
        if self.style == Style::Ranges {
            let (above, level) = context.parent().map_or((None, 0), |parent| {
                let extensions = parent.extensions();
                let parent = extensions.get::<Span>();
                parent.map_or((None, 0), |p| (p.row.clone(), p.level + 1))
            });
            let row = match above {
                Some(row) if level >= MAX_ROWS => row,
                above => self.row(above.as_ref(), site),
            };
            if wanted(site) {
                let id = unique();
                let mut draft = span.begins(Kind::RangeBegin).other(id);
                draft.track(row.id());
                span.range = if span.push(draft) { id } else { 0 };
            }
            (span.row, span.level) = (Some(row), level);
        }
        context.extensions_mut().insert(span);
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, cx: Context<'_, S>) {
        let Some(context) = cx.span(id) else { return };
        if !wanted(sites::get(context.metadata())) {
            return;
        }
        let mut values = Values::default();
        record.record(&mut values.visit(None));
        if let Some(span) = context.extensions_mut().get_mut::<Span>() {
            span.values.update(values);
        }
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, cx: Context<'_, S>) {
        let (Some(context), Some(cause)) = (cx.span(id), cx.span(follows)) else { return };
        let flow = match cause.extensions_mut().get_mut::<Span>() {
            Some(cause) if cause.flow != 0 && id != follows => {
                cause.followed = true;
                cause.flow
            }
            // It has no slice that an arrow could start from.
            _ => return,
        };
        if let Some(span) = context.extensions_mut().get_mut::<Span>() {
            match span.causes.get_mut(span.cause_count) {
                Some(slot) => {
                    *slot = flow;
                    span.cause_count += 1;
                }
                None => PRODUCER.with(|producer| producer.cut_short()),
            }
        }
    }

    fn on_enter(&self, id: &Id, cx: Context<'_, S>) {
        if self.style != Style::Threads {
            return;
        }
        let Some(context) = cx.span(id) else { return };
        let mut extensions = context.extensions_mut();
        let Some(span) = extensions.get_mut::<Span>() else { return };
        let recorded = wanted(span.site) && {
            let draft = span.begins(Kind::Begin);
            span.push(draft)
        };
        entered::push(Open { span: id.into_u64(), site: span.site, recorded });
    }

    fn on_exit(&self, id: &Id, cx: Context<'_, S>) {
        if self.style != Style::Threads {
            return;
        }
        entered::pop(id.into_u64(), || {
            let mut draft = Draft::new(Kind::End, StrId::NONE);
            let context = cx.span(id);
            match context.as_ref().map(|context| context.extensions_mut()) {
                Some(mut extensions) => match extensions.get_mut::<Span>() {
                    Some(span) => span.push(draft),
                    None => draft.push(),
                },
                None => draft.push(),
            };
        });
    }

    fn on_close(&self, id: Id, cx: Context<'_, S>) {
        if self.style != Style::Ranges {
            return;
        }
        let Some(context) = cx.span(&id) else { return };
        let mut extensions = context.extensions_mut();
        let Some(span) = extensions.get_mut::<Span>() else { return };
        if span.range != 0 {
            let draft = Draft::new(Kind::RangeEnd, StrId::NONE).other(span.range);
            span.push(draft);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let site = sites::get(event.metadata());
        if !wanted(site) {
            return;
        }
        let (mut values, mut message) = (Values::default(), Text::default());
        event.record(&mut values.visit(Some(&mut message)));
        let mut draft = match message.text() {
            Some(text) => Draft::called(Kind::Instant, site.category, text),
            None => site.draft(Kind::Instant),
        };
        values.add_to(site, &mut draft);
        draft.push();
    }
}
