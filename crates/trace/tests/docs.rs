//! The page about numbers lists every finding as the code has it.

use stepscope_trace::FindingCode;

#[test]
fn the_table_of_findings_is_the_list_in_the_code() {
    let page = include_str!("../../../docs/metrics.md");
    let header = "| code | severity | it says |\n|---|---|---|\n";
    let (_, table) = page.split_once(header).expect("docs/metrics.md has the table of findings");
    let written: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    let row = |code: &FindingCode| format!("| `{}` | {} | {} |", code.code(), code.severity().as_str(), code.says());
    assert_eq!(written, FindingCode::ALL.iter().map(row).collect::<Vec<_>>());
}
