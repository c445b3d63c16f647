"""The recorder reads CUPTI's records where its headers put their fields, in every version of every structure."""

import cupti_headers
import pytest


@pytest.fixture(scope="module")
def records(checkout):
    return cupti_headers.ours((checkout / "crates/recorder_device/src/cuda/records.rs").read_text())


def test_fields_stand_where_the_headers_put_them(records, tmp_path):
    assert records.keys() == cupti_headers.STRUCTURES.keys()
    folders = cupti_headers.folders()
    assert folders, f"no headers of CUPTI in this environment; {cupti_headers.VARIABLE} may name a folder"
    for number, headers in enumerate(folders):
        place = tmp_path / str(number)
        place.mkdir()
        found = cupti_headers.theirs(headers, records, place)
        assert cupti_headers.differences(records, found) == [], headers


def test_a_wrong_place_is_seen(records, tmp_path):
    found = cupti_headers.theirs(cupti_headers.folders()[0], records, tmp_path)
    for record, fields in records.items():
        for name, (offset, size) in fields.items():
            for place in ((offset + 4, size), (offset, 2 * size)):
                moved = {**records, record: {**fields, name: place}}
                assert any(f".{name} is at" in line for line in cupti_headers.differences(moved, found)), (record, name)
    absent = {**records, "kernel": {**records["kernel"], "noSuchField": (0, 4)}}
    assert cupti_headers.differences(absent, found) == ["kernel has no noSuchField"]
