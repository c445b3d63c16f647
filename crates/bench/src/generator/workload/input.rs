//! The next batch: from the loader's workers, then to the device beside the computing.

use super::super::builder::ScriptBuilder;
use super::super::kernels::Stream;

const LOADER: &str = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";

/// Takes the next batch.
pub(super) fn next_batch(script: &mut ScriptBuilder) {
    script.python("torch/utils/data/dataloader.py(701): __next__", |script| {
        script.label(LOADER, String::new(), |script| {
            script.python("torch/utils/data/dataloader.py(1445): _next_data", |script| {
                script.python("torch/utils/data/dataloader.py(1399): _get_data", |script| {
                    script.python("torch/utils/data/dataloader.py(1234): _try_get_data", |script| {
                        script.python("queue.py(154): get", |script| {
                            script.python_leaves(&["threading.py(299): __enter__", "threading.py(302): __exit__"]);
                        });
                    });
                });
                script.python("torch/utils/data/dataloader.py(1474): _process_data", |script| {
                    script.python_leaves(&["torch/utils/data/dataloader.py(1426): _try_put_index"]);
                });
            });
        });
    });
    script.python("train.py(61): to_device", |script| {
        for _ in 0..2 {
            script.python("<built-in method to of Tensor object at 0x7d67180cc190>", |script| {
                let inputs = "i64[16,559] =4 =0 =0 =True =True =False -";
                script.op("aten::to", inputs, |script| {
                    script.op("aten::_to_copy", inputs, |script| {
                        script.op("aten::empty_strided", "=[16,559] =[559,1] =4 =0 =0 =True", |_| {});
                        script.op("aten::copy_", "i64[16,559] i64[16,559] =True", |script| {
                            script.copy("Memcpy HtoD (Pinned -> Device)", 8 * 8944, 24, Stream::Copy);
                        });
                    });
                });
            });
        }
        script.python("torch/cuda/streams.py(54): wait_stream", |script| {
            script.stream_waits(Stream::Compute, Stream::Copy);
        });
    });
}
