//! What a scope costs, in ns of this thread's CPU time: nowhere recorded, then recorded. `scope_cost RUN`.

const TIMES: u32 = 1_000_000;

fn main() -> Result<(), stepscope::RecordError> {
    let run = std::env::args().nth(1).unwrap_or_else(|| "stepscope-runs/scope-cost".into());
    println!("an empty function          {:.2} ns", best(nothing));
    println!("a literal, not recorded    {:.2} ns", best(constant));
    println!("a text, not recorded       {:.2} ns", best(text));
    let _run = stepscope::record(run).start()?;
    println!("a literal, recorded        {:.2} ns", best(constant));
    println!("a text, recorded           {:.2} ns", best(text));
    Ok(())
}

fn nothing() {}

fn constant() {
    stepscope::scope!("forward");
}

fn text() {
    stepscope::scope!(std::hint::black_box("forward"));
}

/// The fastest of several rounds, per call.
fn best(call: fn()) -> f64 {
    let round = || {
        let start = cpu_ns();
        (0..TIMES).for_each(|_| std::hint::black_box(call)());
        (cpu_ns() - start) / f64::from(TIMES)
    };
    (0..9).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// What the calling thread has spent on a processor; the machine may be shared.
fn cpu_ns() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}
