//! The layer for `tracing`.

use crate::{is_recording, recorder, scope};
use std::cell::RefCell;
use std::fmt::{Debug, Write};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Longest text of fields that is kept; what is longer ends in `…`.
const MAX_FIELDS_BYTES: usize = 256;

/// A layer that records spans as ranges and events as moments, while a run records.
///
/// A range reaches from entering a span to leaving it, on the thread that does so: a span of an async task becomes one
/// range each time it is polled, wherever that happens; a span that several threads enter is on all of them. Its name is
/// the span's, with its fields: `forward{layer=3}`. An event is a range without length, called after its message and
/// fields. Levels are filtered as for any other layer, with `with_filter`.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let subscriber = tracing_subscriber::registry().with(stepscope::TracingLayer::new());
/// tracing::subscriber::with_default(subscriber, || {
///     let _span = tracing::info_span!("forward", layer = 3).entered();
/// });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TracingLayer {
    has_fields: bool,
    has_events: bool,
}

impl Default for TracingLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl TracingLayer {
    /// A layer that records spans with their fields, and events.
    pub const fn new() -> Self {
        Self { has_fields: true, has_events: true }
    }

    /// Leaves out the fields of spans: ranges are called after their spans alone, which costs less and sums up better.
    pub const fn without_fields(self) -> Self {
        Self { has_fields: false, ..self }
    }

    /// Leaves out events.
    pub const fn without_events(self) -> Self {
        Self { has_events: false, ..self }
    }
}

/// What a span's ranges are called; kept with the span where it has fields.
struct RangeName(String);

/// A range that is open on this thread.
struct Open {
    span: u64,
    token: usize,
    name: String,
}

thread_local! {
    static OPEN: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TracingLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        // Spans that began before recording did are called after their metadata alone.
        if !self.has_fields || !is_recording() || attributes.is_empty() {
            return;
        }
        let fields = Fields::of(|fields| attributes.record(fields));
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(RangeName(fields.behind(attributes.metadata().name())));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|_| self.has_fields && is_recording()) else { return };
        let more = Fields::of(|fields| values.record(fields));
        let mut extensions = span.extensions_mut();
        let before = extensions.get_mut::<RangeName>().and_then(|name| name.0.strip_suffix('}').map(str::to_string));
        let name = match before {
            Some(before) => more.after(before),
            None => more.behind(span.name()),
        };
        extensions.replace(RangeName(name));
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|_| is_recording()) else { return };
        let name = span.extensions().get::<RangeName>().map_or_else(|| span.name().to_string(), |name| name.0.clone());
        scope::introduce_thread();
        let token = recorder::begin_label(&name);
        let open = Open { span: id.into_u64(), token, name };
        let _ = OPEN.try_with(|all| all.try_borrow_mut().map(|mut all| all.push(open)));
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let take = |all: &mut Vec<Open>| {
            let at = all.iter().rposition(|open| open.span == id.into_u64())?;
            Some(all.remove(at))
        };
        let open = OPEN.try_with(|all| all.try_borrow_mut().ok().and_then(|mut all| take(&mut all))).ok().flatten();
        if let Some(open) = open {
            recorder::end_label(open.token, &open.name);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !self.has_events || !is_recording() {
            return;
        }
        let fields = Fields::of(|fields| event.record(fields));
        let name = match &fields.message {
            Some(message) => message.clone(),
            None => event.metadata().name().to_string(),
        };
        let name = if fields.text.is_empty() { name } else { fields.behind(&name) };
        scope::introduce_thread();
        let token = recorder::begin_label(&name);
        recorder::end_label(token, &name);
    }
}

/// Fields as text: `layer=3 name="x"`.
#[derive(Default)]
struct Fields {
    text: String,
    message: Option<String>,
}

impl Fields {
    fn of(record: impl FnOnce(&mut Self)) -> Self {
        let mut fields = Self::default();
        record(&mut fields);
        fields
    }

    /// `name{text}`.
    fn behind(&self, name: &str) -> String {
        format!("{name}{{{}}}", self.text)
    }

    /// `before text}`, of a name that has fields already.
    fn after(&self, before: String) -> String {
        if before.len() > 2 * MAX_FIELDS_BYTES { before + "}" } else { format!("{before} {}}}", self.text) }
    }

    fn add(&mut self, name: &str, value: std::fmt::Arguments<'_>) {
        if self.text.len() >= MAX_FIELDS_BYTES {
            return;
        }
        let space = if self.text.is_empty() { "" } else { " " };
        // Writing to text cannot fail; a value's own `Debug` may.
        let _ = write!(self.text, "{space}{name}={value}");
        if self.text.len() > MAX_FIELDS_BYTES {
            cut(&mut self.text);
        }
    }
}

/// Ends `text` with `…` at a whole character.
fn cut(text: &mut String) {
    let end = (0..=MAX_FIELDS_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
    text.push('…');
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let mut message = format!("{value:?}");
            if message.len() > MAX_FIELDS_BYTES {
                cut(&mut message);
            }
            self.message = Some(message);
        } else {
            self.add(field.name(), format_args!("{value:?}"));
        }
    }
}
