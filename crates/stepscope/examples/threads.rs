//! A program with steps and threads that records itself: `threads RUN [STEPS [WORKERS]]`.
//!
//! Each step hands a piece of work to every worker thread and waits for all of them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// Pieces of a worker's share of a step.
const PIECES: u64 = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let run = arguments.next().unwrap_or_else(|| "stepscope-runs/threads".into());
    let steps: u64 = arguments.next().map_or(Ok(20), |steps| steps.parse())?;
    let workers: u64 = arguments.next().map_or(Ok(3), |workers| workers.parse())?;

    let recording = stepscope::record(run).fact("example", "threads").schedule(stepscope::Schedule::new()).start()?;
    let (done, is_done) = channel();
    let workers: Vec<_> = (0..workers).map(|number| Worker::start(number, done.clone())).collect::<Result<_, _>>()?;
    for step in 0..steps {
        {
            stepscope::scope!("hand out");
            workers.iter().try_for_each(|worker| worker.work.send(step))?;
        }
        {
            stepscope::scope!("wait");
            let sums: Vec<u64> = is_done.iter().take(workers.len()).collect();
            assert!(sums.iter().all(|sum| *sum == sums[0]));
        }
        stepscope::step();
        println!("step {step}");
    }
    for Worker { work, thread } in workers {
        drop(work);
        thread.join().map_err(|_| "a worker panicked")?;
    }
    recording.stop();
    Ok(())
}

/// A thread that works on what it is sent.
struct Worker {
    work: Sender<u64>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn start(number: u64, done: Sender<u64>) -> std::io::Result<Self> {
        let (work, steps) = channel();
        let thread = Builder::new().name(format!("worker number {number}")).spawn(move || run(&steps, &done))?;
        Ok(Self { work, thread })
    }
}

fn run(steps: &Receiver<u64>, done: &Sender<u64>) {
    for step in steps {
        let sum = {
            stepscope::scope!("work");
            (0..PIECES).map(|piece| piece_of(step, piece)).fold(0, u64::wrapping_add)
        };
        if done.send(sum).is_err() {
            return;
        }
    }
}

fn piece_of(step: u64, piece: u64) -> u64 {
    let name = if piece.is_multiple_of(2) { "even piece" } else { "odd piece" };
    stepscope::scope!(name);
    (0..1_000).fold(step + piece, |sum, i| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i)))
}
