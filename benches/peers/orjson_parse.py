"""orjson: parses the text into Python objects, nothing else. ``python orjson_parse.py start|load FILE``"""

import os
import sys

import orjson

mode, file = sys.argv[1:]
if mode == "load":
    with open(file, "rb") as opened:
        trace = orjson.loads(opened.read())
    assert trace["traceEvents"], "no rows"
os._exit(0)  # Taking millions of objects apart again is not part of it.
