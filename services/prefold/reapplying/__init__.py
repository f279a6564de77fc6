"""``prefold reapply-erasures``: after a restore, erases again what was erased since the backup was taken."""
