//! `generate --describe FILE…`: the shape of traces side by side — how many rows of each kind, how long, with how many
//! arguments. The file is read whole, so it should fit into memory.

mod shape;

use crate::text_table::{TextTable, grouped};
use shape::{Kind, Shape};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Prints the table.
pub(crate) fn run(files: &[PathBuf]) -> Result<(), String> {
    let shapes = files.iter().map(|file| shape_of(file)).collect::<Result<Vec<Shape>, String>>()?;
    let letters: Vec<String> = ('A'..='Z').map(String::from).collect();
    let mut heading = vec![""];
    for (letter, file) in letters.iter().zip(files) {
        println!("{letter}: {}", file.display());
        heading.extend(["", "", letter]);
    }
    println!();
    let mut table = TextTable::new(&heading);
    whole(&mut table, &shapes);
    line(&mut table, "", shapes.iter().map(|_| ["share", "args", "bytes"].map(str::to_string)).collect());
    for kind in kinds(&shapes) {
        line(&mut table, &kind, shapes.iter().map(|shape| cells(shape, &kind)).collect());
    }
    print!("{}", table.text());
    println!("\nshare of rows; arguments and bytes a row, bytes without the blanks between tokens");
    Ok(())
}

fn shape_of(file: &Path) -> Result<Shape, String> {
    let mut text = Vec::new();
    let read = crate::trace_text::open(file).and_then(|mut reader| reader.read_to_end(&mut text));
    read.map_err(|error| format!("cannot read: {error}: {}", file.display()))?;
    Shape::of(&text).ok_or_else(|| format!("no rows of a trace: {}", file.display()))
}

/// What holds for all rows together.
fn whole(table: &mut TextTable, shapes: &[Shape]) {
    let mut add = |name: &str, value: fn(&Shape) -> String| {
        line(table, name, shapes.iter().map(|shape| [String::new(), String::new(), value(shape)]).collect());
    };
    add("MB", |shape| format!("{:.1}", shape.text_bytes as f64 * 1e-6));
    add("rows", |shape| grouped(shape.rows));
    add("bytes a row", |shape| format!("{:.0}", shape.text_bytes as f64 / shape.rows as f64));
    add("bytes a row, without blanks", |shape| format!("{:.0}", shape.dense_bytes as f64 / shape.rows as f64));
    add("gzip makes it smaller by", |shape| format!("{:.1}x", shape.text_bytes as f64 / shape.gzip_bytes as f64));
    add("different names", |shape| grouped(shape.names as u64));
}

fn line(table: &mut TextTable, name: &str, files: Vec<[String; 3]>) {
    table.add(std::iter::once(name.to_string()).chain(files.into_iter().flatten()).collect());
}

/// Every kind of row that any trace has, those that are most common in the first ones first.
fn kinds(shapes: &[Shape]) -> Vec<String> {
    let mut share: BTreeMap<&str, f64> = BTreeMap::new();
    for shape in shapes {
        for (name, kind) in &shape.kinds {
            *share.entry(name).or_default() += kind.rows as f64 / shape.rows as f64;
        }
    }
    let mut kinds: Vec<(&str, f64)> = share.into_iter().collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    kinds.into_iter().map(|(name, _)| name.to_string()).collect()
}

fn cells(shape: &Shape, kind: &str) -> [String; 3] {
    match shape.kinds.get(kind) {
        Some(Kind { rows, arguments, bytes }) => [
            format!("{:.2} %", *rows as f64 * 100.0 / shape.rows as f64),
            format!("{:.1}", *arguments as f64 / *rows as f64),
            format!("{:.0}", *bytes as f64 / *rows as f64),
        ],
        None => ["–".into(), String::new(), String::new()],
    }
}
