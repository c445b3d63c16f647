"""What an analysis returns."""

import functools
import json
from collections.abc import Mapping

from stepscope._table import Table


class Result(Table):
    """The result of an analysis: an envelope that reads like a dict, and a table of its rows.

    ``result["results"]`` is one dict a row; the other keys say what it means and what it rests on. The table goes to
    other libraries through Arrow's PyCapsule interface, without copying its columns: ``polars.DataFrame(result)``
    and ``pyarrow.table(result)`` take it as it is.
    """

    # It is no Mapping by its type: other libraries would take it for columns by name, and never ask for the table.
    __contains__ = Mapping.__contains__
    get = Mapping.get
    items = Mapping.items
    keys = Mapping.keys
    values = Mapping.values
    __hash__ = None

    def __init__(self, envelope):
        self._envelope = envelope

    @functools.cached_property
    def _content(self):
        return json.loads(self._envelope.to_json())

    def __getitem__(self, key):
        return self._content[key]

    def __iter__(self):
        return iter(self._content)

    def __len__(self):
        return len(self._content)

    def __eq__(self, other):
        if isinstance(other, Result):
            return self._content == other._content
        return self._content == other if isinstance(other, Mapping) else NotImplemented

    def __repr__(self):
        rows = len(self["results"])
        return f"<stepscope result of {self['analysis']}: {rows} {'row' if rows == 1 else 'rows'}>"

    def __arrow_c_stream__(self, requested_schema=None):
        """The rows as an Arrow stream, for libraries that know Arrow's PyCapsule interface."""
        return self._envelope.__arrow_c_stream__(requested_schema)

    def to_dict(self):
        """The envelope as plain dicts and lists; changing them does not change the result."""
        return json.loads(self._envelope.to_json())

    def to_json(self):
        """The envelope as JSON text, as ``stepscope analyze --json`` prints it."""
        return self._envelope.to_json()
