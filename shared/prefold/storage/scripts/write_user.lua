-- write_user(version, epoch, ttl_ms, profile, put…, drop…, suppress…, lift…, unindexed…) -> 1 | 0 | -1
-- Puts and drops rows of a user, with the profile as it is then ('': none). 0: somebody wrote since `version`, -1: the
-- user was erased since `epoch`; then nothing changes.
-- Keys: all of the user (each ends `ttl_ms` after the last write). Atomic, because rows, profile and what is left to the
-- indexers must tell of the same moment.
return write_rows()
