"""Reads the samples of a data set in one of the formats that jobs keep them in: ``formats.py write|read FORMAT FOLDER``.

Reading prints the bytes of the samples that it got, so that somebody else knows what must have been read.
"""

import sys
from pathlib import Path

import numpy as np

SAMPLES, SIZE = 64, 16 * 1024


def sample(number):
    return np.random.default_rng(number).integers(0, 256, SIZE, dtype=np.uint8)


def write(name, folder):
    if name == "image_folder":
        from PIL import Image

        for number in range(SAMPLES):
            Image.fromarray(sample(number).reshape(64, 256)).save(folder / f"{number}.png")
    elif name == "npz":
        np.savez(folder / "data.npz", **{str(number): sample(number) for number in range(SAMPLES)})
    elif name == "memmap":
        np.concatenate([sample(number) for number in range(SAMPLES)]).tofile(folder / "data.bin")
    elif name == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({"image": [sample(number).tobytes() for number in range(SAMPLES)]})
        pq.write_table(table, folder / "data.parquet", row_group_size=8, compression="none")
    elif name == "hdf5":
        import h5py

        with h5py.File(folder / "data.h5", "w") as file:
            for number in range(SAMPLES):
                file[str(number)] = sample(number)
    elif name == "lmdb":
        import lmdb

        with lmdb.open(str(folder / "data"), map_size=1 << 26) as data, data.begin(write=True) as transaction:
            for number in range(SAMPLES):
                transaction.put(str(number).encode(), sample(number).tobytes())
    elif name == "webdataset":
        import webdataset

        with webdataset.TarWriter(str(folder / "data.tar")) as tar:
            for number in range(SAMPLES):
                tar.write({"__key__": f"{number:04}", "bin": sample(number).tobytes()})
    elif name == "safetensors":
        from safetensors.numpy import save_file

        save_file({str(number): sample(number) for number in range(SAMPLES)}, folder / "data.safetensors")


def read(name, folder):
    """Each sample, one after the other."""
    numbers = map(str, range(SAMPLES))
    if name == "image_folder":
        from PIL import Image

        for number in numbers:
            with Image.open(folder / f"{number}.png") as image:
                yield np.asarray(image).reshape(-1)
    elif name == "npz":
        with np.load(folder / "data.npz") as data:
            yield from (data[number] for number in numbers)
    elif name == "memmap":
        data = np.memmap(folder / "data.bin", dtype=np.uint8, mode="r")
        yield from (np.array(data[number * SIZE : (number + 1) * SIZE]) for number in range(SAMPLES))
    elif name == "parquet":
        import pyarrow.parquet as pq

        file = pq.ParquetFile(folder / "data.parquet")
        for group in range(file.num_row_groups):
            for image in file.read_row_group(group)["image"]:
                yield np.frombuffer(image.as_py(), dtype=np.uint8)
    elif name == "hdf5":
        import h5py

        with h5py.File(folder / "data.h5") as file:
            yield from (file[number][:] for number in numbers)
    elif name == "lmdb":
        import lmdb

        with lmdb.open(str(folder / "data"), readonly=True, lock=False) as data, data.begin() as transaction:
            for number in numbers:
                yield np.frombuffer(transaction.get(number.encode()), dtype=np.uint8)
    elif name == "webdataset":
        import webdataset

        for item in webdataset.WebDataset(str(folder / "data.tar"), shardshuffle=False):
            yield np.frombuffer(item["bin"], dtype=np.uint8)
    elif name == "safetensors":
        from safetensors import safe_open

        with safe_open(folder / "data.safetensors", "numpy") as data:
            yield from (data.get_tensor(number) for number in numbers)


if __name__ == "__main__":
    action, name, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if action == "write":
        write(name, folder)
    else:
        samples = list(read(name, folder))
        assert len(samples) == SAMPLES
        assert all((sample(number) == found).all() for number, found in enumerate(samples))
        print(sum(found.nbytes for found in samples))
