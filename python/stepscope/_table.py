"""Rows that other libraries take over."""


class Table:
    """Rows that have ``__arrow_c_stream__``, Arrow's PyCapsule interface, in the forms of other libraries."""

    def to_arrow(self):
        """The rows as a ``pyarrow.Table``; needs pyarrow 14 or later."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self):
        """The rows as a ``pandas.DataFrame``; needs pandas and pyarrow."""
        return self.to_arrow().to_pandas()

    def to_polars(self):
        """The rows as a ``polars.DataFrame``; needs polars 1.3 or later."""
        import polars

        return polars.DataFrame(self)
