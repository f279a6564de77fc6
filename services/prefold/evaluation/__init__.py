"""``prefold eval``: conversations as data, played on a running Prefold, and what its memory must and must not show."""
