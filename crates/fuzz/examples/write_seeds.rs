//! Writes the seeds of every target where `cargo fuzz` looks for them: `fuzz/corpus/TARGET/seed-N`.

use std::path::Path;
use stepscope_fuzz::{TARGETS, seeds};

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for target in TARGETS {
        let folder = corpus.join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (at, bytes) in seeds(target.name).iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{at}")), bytes)?;
        }
    }
    Ok(())
}
