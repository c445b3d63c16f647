use super::*;
use proptest::prelude::*;
use stepscope_engine::{Column, Unit};

fn table() -> Table {
    Table {
        columns: vec![
            Column::new("name", Unit::Text, "", vec![Some("Conv"), Some("mm"), None, Some("addmm")]),
            Column::new("total_ns", Unit::Nanoseconds, "", vec![Some(5), Some(30), Some(7), None]),
            Column::new("idle_ratio", Unit::Ratio, "", vec![Some(0.5), None, Some(f64::NAN), Some(0.25)]),
            Column::new("tensor_cores", Unit::Flag, "", vec![Some(true), Some(false), None, Some(true)]),
        ],
    }
}

fn page_query(raw: &str) -> Result<PageQuery, Failure> {
    PageQuery::of(&Query::parse(Some(raw), &PARAMETERS)?)
}

fn rows(raw: &str) -> Vec<usize> {
    page_query(raw).and_then(|page_query| page_query.matching(&table(), "t")).unwrap()
}

#[test]
fn a_page_has_the_begin_of_a_long_text_and_a_file_has_all_of_it() {
    let long = format!("a{}", "é".repeat(1 << 16));
    let table = Table { columns: vec![Column::new("name", Unit::Text, "", vec![Some(long.as_str()), Some("b")])] };
    let texts = |table: &Table| match &table.columns[0].values {
        Values::Text(values) => values.iter().flatten().map(|text| text.to_string()).collect::<Vec<_>>(),
        _ => panic!("no texts"),
    };
    let query = page_query("").unwrap();
    let cut = texts(&query.page(&table, "t").unwrap().0);
    assert_eq!([cut[0].len(), cut[1].len()], [LONGEST_TEXT - 1 + "…".len(), 1]);
    assert!(long.starts_with(cut[0].trim_end_matches('…')));
    assert_eq!(texts(&query.all(&table, "t").unwrap()), [long.as_str(), "b"]);
}

#[test]
fn conditions_hold_for_rows_with_an_answer() {
    for (raw, expected) in [
        ("", vec![0, 1, 2, 3]),
        ("where=total_ns:gt:5", vec![1, 2]),
        ("where=total_ns:ge:5&where=total_ns:lt:30", vec![0, 2]),
        ("where=total_ns:ne:5", vec![1, 2]),
        ("where=total_ns:le:6.5", vec![0]),
        ("where=total-ns:eq:30", vec![1]),
        ("where=idle_ratio:lt:0.5", vec![3]),
        ("where=idle_ratio:ne:0.5", vec![3]),
        ("where=tensor_cores:eq:yes", vec![0, 3]),
        ("where=name:has:MM", vec![1, 3]),
        ("where=name:eq:mm", vec![1]),
        ("where=name:lt:b", vec![0, 3]),
        ("where=name:eq:a:b", vec![]),
        ("where=name:eq:", vec![2]),
        ("where=total_ns:eq:", vec![3]),
        ("where=total_ns:ne:", vec![0, 1, 2]),
        ("where=idle_ratio:eq:", vec![1]),
        ("where=tensor_cores:eq:", vec![2]),
        ("search=CONV", vec![0]),
        ("search=mm&sort=name", vec![3, 1]),
        ("sort=total_ns", vec![1, 2, 0, 3]),
        ("sort=-total_ns", vec![0, 2, 1, 3]),
    ] {
        assert_eq!(rows(raw), expected, "{raw}");
    }
}

#[test]
fn a_page_says_where_it_stands() {
    let (page, counts) = page_query("where=total_ns:ge:0&offset=1&limit=1").unwrap().page(&table(), "t").unwrap();
    let all = Page { offset: 1, rows: 1, matching: 3, total: 4, matching_sums: 0, total_sums: 0 };
    assert_eq!((page.len(), counts), (1, all));
    let (_, counts) = page_query("offset=99&limit=99999999").unwrap().page(&table(), "t").unwrap();
    assert_eq!(counts, Page { offset: 99, rows: 0, matching: 4, ..all });
}

#[test]
fn rows_that_stand_for_others_are_counted_by_themselves() {
    let counts = |raw: &str| {
        let (steps, rows) = ([Some(1), Some(2), None], ["one", "one", "mean"]);
        let table = Table {
            columns: vec![
                Column::new("step", Unit::Count, "", steps.to_vec()),
                Column::new("row", Unit::Text, "", rows.map(Some).to_vec()),
            ],
        };
        let (_, page) = page_query(raw).unwrap().page(&table, "t").unwrap();
        [page.matching, page.matching_sums, page.total, page.total_sums]
    };
    assert_eq!(counts("limit=1"), [3, 1, 3, 1]);
    assert_eq!(counts("where=step:gt:1"), [1, 0, 3, 1]);
    assert_eq!(counts("where=row:eq:mean"), [1, 1, 3, 1]);
}

#[test]
fn words_of_the_pages_find_what_results_call_otherwise() {
    let table = Table {
        columns: vec![Column::new("cause", Unit::Text, "", vec![Some("host_sync"), Some("host sync"), Some("hosts")])],
    };
    let found = |raw: &str| page_query(raw).unwrap().matching(&table, "t").unwrap();
    assert_eq!([found("search=host+sync"), found("search=host_sync")], [vec![0, 1], vec![0]]);
    assert_eq!([found("search=waits&or=host_sync&or=host"), found("search=hosts&or=host_sync")], [vec![0], vec![0, 2]]);
    assert_eq!(found("or=host_sync"), [0, 1, 2], "without a search it says nothing");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for raw in ["where=total_ns", "where=total_ns:about:5", "where=:::", "limit=-1", "limit=x", "offset=1.5"] {
        assert!(page_query(raw).is_err(), "{raw}");
    }
    for raw in
        ["sort=xyz", "where=xyz:eq:1", "where=total_ns:eq:many", "where=total_ns:has:1", "where=tensor_cores:eq:maybe"]
    {
        assert!(page_query(raw).unwrap().page(&table(), "t").is_err(), "{raw}");
    }
}

proptest! {
    #[test]
    fn any_query_is_answered_or_refused(
        column in "(name|total_ns|idle_ratio|tensor_cores|-|.{0,4})", op in "(eq|ne|lt|le|gt|ge|has|.{0,2})", value in ".{0,8}",
        sort in "-?(name|total_ns|idle_ratio|tensor_cores|.{0,4})", search in ".{0,4}",
        offset in any::<Option<u64>>(), limit in any::<Option<u64>>(),
    ) {
        let mut raw = form_urlencoded::Serializer::new(String::new());
        raw.append_pair("where", &format!("{column}:{op}:{value}")).append_pair("sort", &sort).append_pair("search", &search);
        for (name, number) in [("offset", offset), ("limit", limit)] {
            if let Some(number) = number {
                raw.append_pair(name, &number.to_string());
            }
        }
        if let Ok((page, counts)) = page_query(&raw.finish()).and_then(|page_query| page_query.page(&table(), "t")) {
            prop_assert!(page.len() == counts.rows && counts.rows <= counts.matching && counts.matching <= counts.total);
        }
    }
}
