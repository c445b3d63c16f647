//! A program that works on the lines that it is given, and records itself: `lines RUN`.
//!
//! Each line of standard input is a step, and standard output has a line for each step that is done: a run that grows
//! on command, to look at while it does.

use std::io::BufRead;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let run = std::env::args().nth(1).unwrap_or_else(|| "stepscope-runs/lines".into());
    let recording = stepscope::record(run).fact("example", "lines").start()?;
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let words = {
            stepscope::scope!("count words");
            line?.split_whitespace().count()
        };
        stepscope::step();
        println!("step {number}: {words} words");
    }
    recording.stop();
    Ok(())
}
