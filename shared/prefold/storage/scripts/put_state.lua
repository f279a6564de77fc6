-- put_state(now, label, expected, body, tokens, incarnation) -> {'ok', version} | {'conflict', version} | {'no_room', raw tokens}
--    | {'none' | 'gone' | 'changing'}
-- Replaces the pinned state, of which version `expected` is there (0: none); an empty body takes it away. Its tokens count
-- within the limit from now on. With an incarnation only that life's, else 'none'.
-- Keys: all of the session. Atomic, because limit and context must agree.
return replace_pinned()
