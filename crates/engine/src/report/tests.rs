//! Reports of drawn traces, in words.

use super::*;
use stepscope_trace::FindingCode;
use stepscope_trace::drawn::drawn;

fn report_of(drawing: &str) -> Report {
    report(&OpenedRun::of(drawn(drawing)), &Selection::default(), "RUN").unwrap()
}

#[test]
fn a_job_without_a_gpu_is_told_by_its_steps_and_operators() {
    let report = report_of(
        "rank 0 step     0000000000|1111111111
         rank 0 input 1  dd........dd........
         rank 0 cpu 1    ..aaaab.....aaaab...",
    );
    assert_eq!(
        report.verdict,
        [
            "A step takes 10.0 µs (mean of 2): 50.0 % goes to operators on the CPU, 30.0 % to code outside of operators and 20.0 % to waiting for data.",
            "Nothing names what runs outside of operators, with no samples of Python's stacks: stepscope record takes them.",
            "The top operator is a with 80.0 % of all operator time.",
        ]
    );
    assert!(report.devices.is_empty() && report.kernels.table.is_empty());
    assert_eq!(report.operators.by, "host_self_ns");
    assert_eq!(report.steps.unwrap().count, 2);
}

#[test]
fn a_job_with_a_gpu_is_told_by_its_idle_time_first() {
    let report = report_of(
        "rank 0 step      0000000000
         rank 0 cpu 1     aaaaaaaa..
         rank 0 launch 1  C.........
         rank 0 stream 7  .CCCC....K",
    );
    assert_eq!(report.verdict[0], "GPU 0 was idle for 44.4 % of 9.00 µs; the rest is 55.6 % computing.");
    assert_eq!(report.verdict[2], "The top kernel is C with 80.0 % of all kernel time.");
    assert_eq!(report.verdict[3], "20.0 % of the device time has no launch record, so no operator is charged with it.");
    assert_eq!(report.operators.by, "device_self_ns");
    let idle = &report.devices[0].breakdown.parts[3];
    assert_eq!((idle.class, idle.ns), ("idle", 4_000));
}

#[test]
fn a_device_alone_has_no_operators() {
    let report = report_of("rank 0 stream 7  CC..NN");
    assert!(report.verdict[0].starts_with("GPU 0 was idle for 33.3 % of 6.00 µs; "), "{:?}", report.verdict);
    assert!(
        report.verdict[1].starts_with("No steps are marked in the 6.00 µs that were recorded: "),
        "{:?}",
        report.verdict
    );
    assert!(report.operators.table.is_empty());
}

#[test]
fn several_devices_are_told_together() {
    let report = report_of(
        "rank 0 stream 7  CCCC
         rank 1 stream 7  C..C",
    );
    let together = "2 GPUs were idle for 25.0 % of their time together, GPU 0 of rank 1 the most with 50.0 %.";
    assert_eq!(report.verdict[0], together);
}

/// Five steps of 1 ms, each cell 100 us.
fn report_of_steps(stream: &str) -> Report {
    let row = |cells: &str| cells.chars().map(|cell| cell.to_string().repeat(100)).collect::<String>();
    let steps: String = (0..5).map(|step| row(&step.to_string().repeat(10))).collect();
    report_of(&format!("rank 0 step {steps}\nrank 0 stream 7 {}", row(stream).repeat(5)))
}

#[test]
fn what_to_mend_first_is_the_first_sentence() {
    let report = report_of_steps("CCCCCCCNNN");
    assert_eq!(report.verdict[0], "Communication could hide under computing (N): up to 1.50 ms, 30.0 % to gain.");
    assert_eq!(report.advice[0].fault, "Communication could hide under computing");
}

#[test]
fn a_healthy_run_says_so_and_how_many_rules_judged() {
    let report = report_of_steps("CCCCCCCCCC");
    let judged = report.coverage.rules_judged;
    let all = judged + report.coverage.rules_not_judged;
    let says = format!("Nothing above 4 % to gain, by the {judged} of {all} rules that could be judged.");
    assert_eq!(report.verdict[0], says);
    let verdict = report_of("rank 0 step 0000\nrank 0 stream 7 CCCC").verdict;
    assert!(verdict[0].starts_with("GPU 0"), "one step says nothing: {verdict:?}");
}

#[test]
fn an_answer_from_two_steps_says_that_they_are_few() {
    let few = |steps: &str, cells: &str| report_of(&format!("rank 0 step {steps}\nrank 0 stream 7 {cells}")).verdict;
    let long = |cells: &str| cells.chars().map(|cell| cell.to_string().repeat(1_000)).collect::<String>();
    let says = "Only two steps were recorded whole: what happens there may be chance. Record ten or more.";
    let two = few(&long("0000011111"), &long("CCCN|NCCN|N"));
    assert!(two[0].contains(" to gain.") && two[1] == says, "{two:?}");
    let three = few(&long("000111222"), &long("CNNCNNCNN"));
    assert!(three[0].contains(" to gain.") && three[1].starts_with("GPU 0"), "{three:?}");
    // One of many that is asked for is not all that there is.
    let run =
        OpenedRun::of(drawn(&format!("rank 0 step {}\nrank 0 stream 7 {}", long("0000011111"), long("CCCN|NCCN|N"))));
    let one = report(&run, &Selection { step: Some(1), ..Selection::default() }, "RUN").unwrap().verdict;
    assert!(!one.iter().any(|sentence| sentence.contains("recorded whole")), "{one:?}");
}

#[test]
fn of_a_job_that_is_still_being_recorded_the_verdict_says_so_after_the_answer() {
    let mut trace = drawn("rank 0 step 0011223344\nrank 0 stream 7 CCCCCCCCCC");
    let verdict = |trace: &Trace| report(&OpenedRun::of(trace.clone()), &Selection::default(), "RUN").unwrap().verdict;
    let ended = verdict(&trace);
    trace.findings.add(FindingCode::ProcessRunning, || "rank 0".into());
    let running = verdict(&trace);
    assert_eq!(running[1], "The job is still being recorded: this is what it did so far.");
    assert_eq!([&running[..1], &running[2..]].concat(), ended);
}

#[test]
fn an_empty_trace_says_so() {
    let report = report(&OpenedRun::of(Trace::default()), &Selection::default(), "RUN").unwrap();
    assert_eq!(report.verdict, ["Nothing was recorded: the trace holds no events."]);
    assert!(report.to_json().starts_with("{\"schema\":\"stepscope/1\",\"run\":{\"name\":\"\""));
}

#[test]
fn a_slow_step_is_worth_a_look() {
    let report = report_of("rank 0 step 011112");
    let commands: Vec<&str> = report.next.iter().map(|next| next.command.as_str()).collect();
    assert_eq!(commands[0], "stepscope report RUN --step 1");
    assert_eq!(
        report.steps.as_ref().map(|steps| (steps.slowest.step, steps.max_ns, steps.min_ns)),
        Some((1, 4_000, 1_000))
    );
}

#[test]
fn several_ranks_are_said_as_they_were_asked_for() {
    let trace = drawn("rank 0 step 011112\nrank 1 step 011112\nrank 2 step 011112");
    let asked = |text: &str| {
        let selection = Selection { ranks: text.parse().unwrap(), ..Selection::default() };
        let report = report(&OpenedRun::of(trace.clone()), &selection, "RUN").unwrap();
        let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        let command = report.next.iter().find(|next| next.command.contains("step_breakdown")).unwrap().command.clone();
        (json["rank"].clone(), json["ranks"].clone(), report.processes.len(), command)
    };
    let command = |ranks: &str| format!("stepscope analyze step_breakdown RUN --rank {ranks}");
    assert_eq!(asked("1"), (1.into(), serde_json::Value::Null, 1, command("1")));
    assert_eq!(asked("1-2"), (serde_json::Value::Null, "1-2".into(), 2, command("1-2")));
}

#[test]
fn a_part_that_is_not_there_is_an_error() {
    let asked = Selection { ranks: 3.into(), ..Selection::default() };
    let error = report(&OpenedRun::of(drawn("rank 0 step 0011")), &asked, "RUN").unwrap_err();
    assert_eq!(error.to_string(), "rank 3 is not in this run");
}
