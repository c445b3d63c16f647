from collections.abc import Iterator, Sequence
from typing import Any

from stepscope._engine import ArrowRows
from stepscope._table import Table

class Rows(Table):
    def __init__(self, rows: ArrowRows) -> None: ...
    @property
    def columns(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_dicts(self) -> list[dict[str, Any]]: ...

def ask(
    paths: Sequence[str],
    query: str,
    *,
    align: str,
    offsets: Sequence[tuple[int, int]],
    rank_from: str | None,
    join: bool,
    memory: int | None,
) -> Rows: ...
def ask_in_batches(
    paths: Sequence[str],
    query: str,
    *,
    align: str,
    offsets: Sequence[tuple[int, int]],
    rank_from: str | None,
    join: bool,
    memory: int | None,
) -> Iterator[Rows]: ...
