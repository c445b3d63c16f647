//! Spans and events of `tracing`, recorded by the layer and read back.
#![cfg(target_os = "linux")]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use stepscope_capture::{Capture, Event};
use tracing::{Instrument, info, info_span};
use tracing_subscriber::layer::SubscriberExt;

/// One run a process: what all tests look at is recorded once.
fn recorded() -> &'static Capture {
    static CAPTURE: std::sync::OnceLock<Capture> = std::sync::OnceLock::new();
    CAPTURE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let subscriber = tracing_subscriber::registry().with(stepscope::TracingLayer::new());
        tracing::subscriber::set_global_default(subscriber).unwrap();
        let early = info_span!("early", number = 1);
        let run = stepscope::record(folder.path().join("run")).start().unwrap();
        std::thread::Builder::new()
            .name("the main loop of it".into())
            .spawn(move || work(&early))
            .unwrap()
            .join()
            .unwrap();
        run.stop();
        info_span!("late").in_scope(|| info!("too late"));
        stepscope_run::open(&folder.path().join("run")).unwrap().captures.remove(0)
    })
}

fn work(early: &tracing::Span) {
    early.in_scope(|| ());
    let outer = info_span!("outer", layer = 3, name = "a b", later = tracing::field::Empty);
    outer.in_scope(|| {
        info!(loss = 0.5, "a message");
        info_span!("inner").in_scope(|| outer.in_scope(|| ()));
    });
    outer.record("later", true);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| outer.in_scope(|| ()));
        }
    });
    info_span!("long", text = "x".repeat(1_000)).in_scope(|| ());
    let mut task = pin!(two_polls().instrument(info_span!("task")));
    let mut context = Context::from_waker(Waker::noop());
    while task.as_mut().poll(&mut context).is_pending() {}
    let (first, second) = (info_span!("first").entered(), info_span!("second").entered());
    drop(first);
    drop(second);
}

/// Pending once, then done.
async fn two_polls() {
    let mut was_polled = false;
    std::future::poll_fn(|_| match std::mem::replace(&mut was_polled, true) {
        false => Poll::Pending,
        true => Poll::Ready(()),
    })
    .await;
}

fn named(name: &str) -> Vec<&'static Event> {
    let capture = recorded();
    capture.events.iter().filter(|event| capture.names[event.name as usize] == name).collect()
}

fn holds(outer: &Event, inner: &Event) -> bool {
    outer.thread == inner.thread && outer.start_ns <= inner.start_ns && inner.end_ns <= outer.end_ns
}

#[test]
fn a_span_is_a_range_called_after_its_name_and_fields() {
    let outer = named("outer{layer=3 name=\"a b\"}");
    let [whole, again] = outer[..] else { panic!("{outer:?}") };
    assert!(holds(whole, named("inner")[0]));
    assert!(holds(named("inner")[0], again), "a span can be entered again inside itself");
    assert_eq!(recorded().threads[whole.thread as usize].name, "the main loop of it");
}

#[test]
fn an_event_is_a_moment_inside_the_ranges_around_it() {
    let [event] = named("a message{loss=0.5}")[..] else { panic!("{:?}", recorded().names) };
    assert!(holds(named("outer{layer=3 name=\"a b\"}")[0], event));
}

#[test]
fn a_span_on_several_threads_is_a_range_on_each_with_the_fields_known_by_then() {
    let ranges = named("outer{layer=3 name=\"a b\" later=true}");
    assert_eq!(ranges.len(), 2);
    assert_ne!(ranges[0].thread, ranges[1].thread);
}

#[test]
fn a_task_is_a_range_each_time_it_is_polled() {
    // `tracing` enters the span once more to drop the task.
    assert_eq!(named("task").len(), 3);
}

#[test]
fn spans_left_in_another_order_than_entered_keep_their_ends() {
    let (first, second) = (named("first")[0], named("second")[0]);
    assert!(first.start_ns <= second.start_ns && first.end_ns <= second.end_ns);
}

#[test]
fn spans_from_before_have_their_name_and_none_is_recorded_afterwards() {
    assert_eq!(named("early").len(), 1);
    assert!(named("late").is_empty() && named("too late").is_empty());
    assert!(recorded().events.iter().all(|event| !event.is_unfinished));
    assert_eq!((recorded().dropped, recorded().damaged.len()), (0, 0));
}

#[test]
fn long_fields_are_cut() {
    let long = recorded().names.iter().find(|name| name.starts_with("long{")).unwrap();
    assert!(long.ends_with("x…}") && long.len() < 300, "{long}");
}
